// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_usb_exec (tb/formal/ct_usb_exec.proof), included at its end.

  // ct_usb_rx: a frame on offer stays as it is until it is taken away. ct_usb_mem: what is done was begun.
  logic        f_offered_q, f_hello_q, f_damaged_q, f_busy_q;
  logic [15:0] f_tag_q;
  logic [11:0] f_size_q;
  logic        f_good, f_request;
  logic [43:0] f_reg_q;
  logic        f_aw_q, f_w_q, f_ar_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_offered_q <= 1'b0;
      f_busy_q    <= 1'b0;
      f_aw_q      <= 1'b0;
      f_w_q       <= 1'b0;
      f_ar_q      <= 1'b0;
    end else begin
      f_offered_q <= frame_valid_i && !frame_ready_o;
      f_busy_q    <= burst_start_o || (f_busy_q && !burst_done_i);
      f_aw_q      <= aw_q && !m_axil_awready_i;
      f_w_q       <= w_q && !m_axil_wready_i;
      f_ar_q      <= ar_q && !m_axil_arready_i;
    end
  end
  always_ff @(posedge clk_i) begin
    f_hello_q   <= frame_hello_i;
    f_damaged_q <= frame_damaged_i;
    f_tag_q     <= frame_tag_i;
    f_size_q    <= frame_size_i;
    f_reg_q     <= {m_axil_awaddr_o, m_axil_wdata_o};
  end
  `CT_ASSUME(FrameStays_M, !f_offered_q || (frame_valid_i && frame_hello_i == f_hello_q && frame_damaged_i == f_damaged_q &&
                                            frame_tag_i == f_tag_q && frame_size_i == f_size_q))
  `CT_ASSUME(Busy_M, burst_busy_i == f_busy_q && (!burst_done_i || f_busy_q))

  assign f_good    = frame_valid_i && !frame_damaged_i;
  assign f_request = f_good && !frame_hello_i && !again;

  `CT_ASSERT(FrameInWork_A, state_q == Idle || frame_valid_i)
  `CT_ASSERT(GoodInWork_A, state_q == Idle || state_q == Send || f_good)
  `CT_ASSERT(RequestInWork_A, state_q == Idle || state_q == Send || state_q == Drain || f_request)
  `CT_ASSERT(DrainOfGood_A, state_q != Drain || (f_good && (frame_hello_i || f_request)))
  `CT_ASSERT(NoOtherAccess_A, !(reg_go || burst_start_o) || f_request)
  `CT_ASSERT(OneAnswerEach_A, frame_ready_o == (answer_valid_o && answer_ready_i) && (!frame_ready_o || frame_valid_i))
  `CT_ASSERT(AnswerIsItsOwn_A, !answer_valid_o || (frame_damaged_i ? answer_code_o == CodeDamaged : kept_vld_q && kept_tag_q == frame_tag_i))
  `CT_ASSERT(BurstIsFree_A, !burst_start_o || !burst_busy_i)
  `CT_ASSERT(FillIsFree_A, !fill_o || !burst_busy_i)
  `CT_ASSERT(FillInState_A, mv_to_q != ToBeats || !mv_busy || (state_q == MemFill && !burst_busy_i))
  `CT_ASSERT(MoverInState_A, !mv_busy || state_q == Op || state_q == MemFill || state_q == MemDrain || state_q == Drain)
  `CT_ASSERT(OpInState_A, mv_to_q != ToOp || !mv_busy || state_q == Op)
  `CT_ASSERT(FreeInFill_A, state_q != MemFill || !burst_busy_i)
  `CT_ASSERT(WithinPage_A, !(state_q == MemNext || state_q == MemFill || state_q == MemWait || state_q == MemDrain) || op_q[43:32] <= end_q)
  `CT_ASSERT(BurstInBlock_A, !burst_start_o || burst_first_o <= burst_last_o)
  `CT_ASSERT(RegKeepsOffers_A, (!f_aw_q || aw_q) && (!f_w_q || w_q) && (!f_ar_q || ar_q))
  `CT_ASSERT(RegOffersStay_A, !(f_aw_q || f_w_q || f_ar_q) || {m_axil_awaddr_o, m_axil_wdata_o} == f_reg_q)
  `CT_ASSERT(RegOneAtATime_A, !(b_wait_q && r_wait_q) && (!(aw_q || w_q) || b_wait_q) && (!ar_q || r_wait_q))

  // A wait ends with its last cycle at the latest.
  logic f_late_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_late_q  <= 1'b0;
    end else begin
      f_late_q  <= late;
    end
  end
  `CT_ASSERT(TimerInWait_A, timer_q == '0 || state_q == RegWait || state_q == MemWait || state_q == Next || state_q == Drain ||
                            state_q == MemDrain || (state_q == MemNext && !is_read))
  `CT_ASSERT(LateEnds_A, !f_late_q || (state_q != RegWait && state_q != MemWait))
