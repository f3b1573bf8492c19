// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_usb_exec (tb/formal/ct_usb_exec.proof), included at its end.

  // ct_usb_rx: a frame on offer stays as it is until it is taken away. ct_usb_mem and ct_usb_reg: what is done was begun.
  logic        f_offered_q, f_hello_q, f_damaged_q, f_busy_q;
  logic [15:0] f_tag_q;
  logic [11:0] f_size_q;
  logic        f_good, f_request;
  logic        f_reg_q, f_half_q, f_write_q;  // an access to a register is under way; the half and the kind of the last burst
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_offered_q <= 1'b0;
      f_busy_q    <= 1'b0;
      f_reg_q     <= 1'b0;
    end else begin
      f_offered_q <= frame_valid_i && !frame_ready_o;
      f_busy_q    <= burst_start_o || (f_busy_q && !burst_done_i);
      f_reg_q     <= reg_start_o || (f_reg_q && !reg_done_i);
    end
  end
  always_ff @(posedge clk_i) begin
    f_hello_q   <= frame_hello_i;
    f_damaged_q <= frame_damaged_i;
    f_tag_q     <= frame_tag_i;
    f_size_q    <= frame_size_i;
    if (burst_start_o) begin
      f_half_q  <= burst_first_o[7];
      f_write_q <= burst_write_o;
    end
  end
  `CT_ASSUME(FrameStays_M, !f_offered_q || (frame_valid_i && frame_hello_i == f_hello_q && frame_damaged_i == f_damaged_q &&
                                            frame_tag_i == f_tag_q && frame_size_i == f_size_q))
  `CT_ASSUME(Busy_M, burst_busy_i == f_busy_q && (!burst_done_i || f_busy_q))
  `CT_ASSUME(RegBusy_M, reg_busy_i == f_reg_q && (!reg_done_i || f_reg_q))

  assign f_good    = frame_valid_i && !frame_damaged_i;
  assign f_request = f_good && !frame_hello_i && !again;

  `CT_ASSERT(FrameInWork_A, state_q == Idle || frame_valid_i)
  `CT_ASSERT(GoodInWork_A, state_q == Idle || state_q == Send || f_good)
  `CT_ASSERT(RequestInWork_A, state_q == Idle || state_q == Send || state_q == Drain || f_request)
  `CT_ASSERT(DrainOfGood_A, state_q != Drain || (f_good && (frame_hello_i || f_request)))
  `CT_ASSERT(NoOtherAccess_A, !(reg_start_o || burst_start_o) || f_request)
  `CT_ASSERT(OneAnswerEach_A, frame_ready_o == (answer_valid_o && answer_ready_i) && (!frame_ready_o || frame_valid_i))
  `CT_ASSERT(AnswerIsItsOwn_A, !answer_valid_o || (frame_damaged_i ? answer_code_o == CodeDamaged : kept_vld_q && kept_tag_q == frame_tag_i))
  `CT_ASSERT(BurstIsFree_A, !burst_start_o || !burst_busy_i)
  `CT_ASSERT(RegIsFree_A, !reg_start_o || !reg_busy_i)
  // A burst has its half for itself.
  `CT_ASSERT(FillIsFree_A, !fill_o || !burst_busy_i || (f_write_q && fill_at_o[6] != f_half_q))
  `CT_ASSERT(BeatIsFree_A, mv_from_q != FromBeats || !mv_busy || !burst_busy_i || (!f_write_q && (!run_q || mv_src_q[6] != f_half_q)))
  // The burst that an operation waits for is that under way: of this part, or of the one before while this one is filled.
  `CT_ASSERT(OwnInState_A, !own_q || state_q == MemNext || state_q == MemFill || state_q == MemWait)
  `CT_ASSERT(OwnIsBusy_A, !(state_q == MemFill || state_q == MemWait || (state_q == MemNext && !fresh_q)) || own_q == burst_busy_i)
  `CT_ASSERT(FreshInBounds_A, state_q != Bounds || fresh_q)
  `CT_ASSERT(FreshOwnsNone_A, state_q != MemNext || !own_q || (!fresh_q && !is_read && timer_q == '0))
  `CT_ASSERT(FillOfWrite_A, state_q != MemFill || (!is_read && !fresh_q))
  `CT_ASSERT(OwnHalf_A, !own_q || (f_write_q == !is_read && f_half_q == (op_q[39] ^ (state_q != MemWait))))
  // Words that the mover has still to put, and to read.
  logic [7:0] f_puts;
  assign f_puts = (run_q ? {1'b0, mv_left_q} + 8'd1 + 8'(mv_more_q) : 8'd0) + 8'(v1_q) + 8'(v2_q) + 8'(v3_q) - 8'(mv_skip_q);
  `CT_ASSERT(FillInHalf_A, mv_to_q != ToBeats || !mv_busy || (state_q == MemFill && mv_dst_q[6] == op_q[39] && mv_left_q[6] == 1'b0 &&
                                                              {2'd0, mv_dst_q[5:0]} + f_puts <= 8'd64))
  `CT_ASSERT(BeatsInHalf_A, mv_from_q != FromBeats || !mv_busy || (state_q == Drain && !burst_busy_i) ||
                            (is_read && !mv_more_q && (state_q == MemNext || state_q == MemWait) &&
                             (!run_q || (mv_src_q[6] != op_q[39] && {2'd0, mv_src_q[5:0]} + {1'b0, mv_left_q} <= 8'd63))))
  `CT_ASSERT(MoverInState_A, !mv_busy || state_q == Op || state_q == MemFill || state_q == Drain ||
                             ((state_q == MemNext || state_q == MemWait) && mv_from_q == FromBeats && is_read && !fresh_q))
  `CT_ASSERT(OpInState_A, mv_to_q != ToOp || !mv_busy || state_q == Op)
  `CT_ASSERT(WithinPage_A, !(state_q == MemNext || state_q == MemFill || state_q == MemWait) || op_q[43:32] <= end_q)
  `CT_ASSERT(BurstInHalf_A, !burst_start_o || (burst_first_o <= burst_last_o && burst_first_o[7] == burst_last_o[7]))
  // A wait ends with its last cycle at the latest, or when the mover rests.
  logic f_late_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_late_q  <= 1'b0;
    end else begin
      f_late_q  <= late && (state_q == RegWait || (own_q && !burst_done_i && !mv_busy));
    end
  end
  `CT_ASSERT(LateEnds_A, !f_late_q || (state_q != RegWait && state_q != MemWait && state_q != MemFill))
