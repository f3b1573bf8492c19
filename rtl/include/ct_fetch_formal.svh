// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_fetch (tb/formal/ct_fetch.proof), included at its end.

  // Of any command of the program: what it is. The same each time the program is read while it runs; a program that is read for another
  // run may be another one.
  (* anyconst *) logic [8:0] f_sel;
  (* anyseq *) logic [255:0] f_new;
  logic [255:0] f_val_q;
  always_ff @(posedge clk_i) begin
    if (load_i && (start_i || !run_d)) f_val_q <= f_new;
  end
  `CT_ASSUME(BeatsOfTheProgram_M, !prog_valid_i || load_i || beats_q[9:1] != f_sel ||
                                  prog_data_i == (beats_q[0] ? f_val_q[255:128] : f_val_q[127:0]))

  // What ct_job keeps to while a program runs.
  logic [9:0] f_ncmds_q;
  logic [4:0] f_rows_q;
  always_ff @(posedge clk_i) begin
    f_ncmds_q <= ncmds_i;
    f_rows_q  <= rows_i;
  end
  `CT_ASSUME(NcmdsStay_M, !run_q || (ncmds_i == f_ncmds_q && rows_i == f_rows_q))
  `CT_ASSUME(NcmdsInRange_M, !(run_q || start_i) || (ncmds_i != '0 && ncmds_i <= 10'd512))

  // The program as it is to be executed, one command after the other: a stack that grows by its depth, not by shifts.
  logic [255:0] f_src_q;       // the command in IR as it came from the program
  logic [9:0]   f_pc_q;
  logic [255:0] f_o_src_q;     // the command in O, and its number
  logic [9:0]   f_o_pc_q;
  logic         f_dead;        // the command in O is refused: what has been executed behind it, nobody sees
  logic [2:0]   f_depth_q;
  logic [39:0]  f_body_q;
  logic [127:0] f_left_q;
  logic [5:0]   f_op;
  logic [1:0]   f_top;
  logic         f_again;       // the ENDL in IR goes back
  assign f_op    = f_src_q[ct_pkg::AllOpLsb +: ct_pkg::AllOpW];
  assign f_dead  = o_vld_q && o_bad_q;
  assign f_top   = f_depth_q[1:0] - 2'd1;
  assign f_again = f_left_q[32*f_top +: 32] != 32'd1;
  always_ff @(posedge clk_i) begin
    if (p_move) f_src_q <= p_cmd_q;
    if (take) begin
      f_o_src_q <= f_src_q;
      f_o_pc_q  <= f_pc_q;
    end
    if (start_i) begin
      f_pc_q    <= '0;
      f_depth_q <= '0;
    end else if (take) begin
      f_pc_q <= f_pc_q + 10'd1;
      if (f_op == ct_pkg::OpLoop) begin
        f_body_q[10*f_depth_q[1:0] +: 10] <= f_pc_q + 10'd1;
        f_left_q[32*f_depth_q[1:0] +: 32] <= ir_q[ct_pkg::CtlCountLsb +: 32];
        f_depth_q <= f_depth_q + 3'd1;
      end
      if (f_op == ct_pkg::OpEndl) begin
        if (f_again) begin
          f_pc_q <= f_body_q[10*f_top +: 10];
          f_left_q[32*f_top +: 32] <= f_left_q[32*f_top +: 32] - 32'd1;
        end else begin
          f_depth_q <= f_depth_q - 3'd1;
        end
      end
    end
  end

  // The loops here and there are the same, and each begins before the next.
  logic [3:0] f_same, f_nested;
  logic [7:0] f_up;        // the next one up of the loop at i
  always_comb begin
    for (int i = 0; i < 4; i++) begin
      f_up[2*i +: 2] = 2'(i + 1);
      f_same[i] = 3'(i) >= depth_q || f_pc_q == 10'd512 ||
                  (3'(i) + 3'd1 == depth_q ? {last_q, 1'b0, body_q, left_q} : {stack[i][41], 1'b0, stack[i][40:0]}) ==
                  {f_left_q[32*i +: 32] == 32'd1, f_body_q[10*i +: 10], f_left_q[32*i +: 32]};
      f_nested[i] = 3'(i) >= f_depth_q ||
                    (f_left_q[32*i +: 32] != '0 &&
                     f_body_q[10*i +: 10] <= (3'(i) + 3'd1 == f_depth_q ? f_pc_q : f_body_q[10*f_up[2*i +: 2] +: 10]));
    end
  end
  `CT_ASSERT(PcIsPc_A, !run_q || f_dead || (pc_q == f_pc_q && depth_q == f_depth_q && f_pc_q <= ncmds_i && fpc_q <= ncmds_i))
  `CT_ASSERT(OutPc_A, !o_vld_q || o_pc_q == f_o_pc_q)
  `CT_ASSERT(SameLoops_A, !run_q || f_dead || (f_same == 4'hf && f_nested == 4'hf))
  `CT_ASSERT(StillIsEmpty_A, run_q || (!o_vld_q && !ir_vld_q && !p_vld_q))
  // The command of that number in the buffer, in P and in IR.
  logic [135:0] f_hi;
  assign f_hi = mem_hi[f_sel];
  `CT_ASSERT(Buffered_A, (avail <= {1'b0, f_sel} || {f_hi[127:0], mem_lo[f_sel]} == f_val_q) &&
                         (beats_q != {1'b0, f_sel, 1'b1} || mem_lo[f_sel] == f_val_q[127:0]))
  // Reads in two steps, because the solver takes minutes for one: P's command of that number was read at its place, and what was read there is it.
  logic f_at_sel_q;
  always_ff @(posedge clk_i) begin
    if (read) f_at_sel_q <= read_pc[8:0] == f_sel;
  end
  `CT_ASSERT(ReadAtPlace_A, !p_vld_q || fpc_q != {1'b0, f_sel} + 10'd1 || f_at_sel_q)
  `CT_ASSERT(PlaceIsRight_A, !p_vld_q || !f_at_sel_q || p_cmd_q == f_val_q)
  `CT_ASSERT(ReadRight_A, !p_vld_q || fpc_q != {1'b0, f_sel} + 10'd1 || p_cmd_q == f_val_q)
  `CT_ASSERT(InTurn_A, !ir_vld_q || f_dead || f_pc_q != {1'b0, f_sel} || f_src_q == f_val_q)

  // What a command is was decoded as it came: shown of the command of any number as it lies in the buffer, and of the code whose high half is
  // awaited. So it holds of all of them, and of the one that has been read from there (DecodedIsRead_M).
  logic [17:0] f_ops;
  logic [11:0] f_kinds;
  always_comb begin
    f_ops = {p_cmd_q[5:0], f_val_q[5:0], mem_lo[beats_q[9:1]][5:0]};
    for (int i = 0; i < 3; i++) begin
      unique case (f_ops[6*i +: 6])
        ct_pkg::OpNop:  f_kinds[4*i +: 4] = KindNop;
        ct_pkg::OpEnd:  f_kinds[4*i +: 4] = KindEnd;
        ct_pkg::OpLoop: f_kinds[4*i +: 4] = KindLoop;
        ct_pkg::OpEndl: f_kinds[4*i +: 4] = KindEndl;
        ct_pkg::OpAddi: f_kinds[4*i +: 4] = KindAddi;
        ct_pkg::OpLd:   f_kinds[4*i +: 4] = KindLd;
        ct_pkg::OpSt:   f_kinds[4*i +: 4] = KindSt;
        ct_pkg::OpMm:   f_kinds[4*i +: 4] = KindMm;
        ct_pkg::OpWpix, ct_pkg::OpWtap: f_kinds[4*i +: 4] = KindWalk;
        ct_pkg::OpVl:   f_kinds[4*i +: 4] = KindVl;
        ct_pkg::OpVa:   f_kinds[4*i +: 4] = KindVa;
        ct_pkg::OpVs:   f_kinds[4*i +: 4] = KindVs;
        default:        f_kinds[4*i +: 4] = KindBad;
      endcase
    end
  end
  `CT_ASSERT(DecodedAsItCame_A, (avail <= {1'b0, f_sel} || f_hi[131:128] == f_kinds[7:4]) && (!beats_q[0] || w_kind == f_kinds[3:0]))
  `CT_ASSUME(DecodedIsRead_M, !p_vld_q || p_kind_q == f_kinds[11:8])

  // What of a command stays as it is: all but the fields that have a register.
  logic [255:0] f_sums;
  logic [5:0]   f_unit;
  kind_e        f_kind;
  always_comb begin
    f_sums = '0;
    f_unit = '0;
    f_kind = KindBad;
    unique case (f_op)
      ct_pkg::OpNop:  f_kind = KindNop;
      ct_pkg::OpEnd:  f_kind = KindEnd;
      ct_pkg::OpLoop: begin f_kind = KindLoop; f_sums[ct_pkg::CtlCountLsb +: 32] = '1; end
      ct_pkg::OpEndl: f_kind = KindEndl;
      ct_pkg::OpAddi: f_kind = KindAddi;
      ct_pkg::OpLd, ct_pkg::OpSt: begin
        f_kind = (f_op == ct_pkg::OpLd) ? KindLd : KindSt;
        f_unit = (f_op == ct_pkg::OpLd) ? 6'd1 : 6'd2;
        f_sums[ct_pkg::DmaDramLsb +: 32] = '1;
        f_sums[ct_pkg::DmaSpmLsb +: ct_pkg::DmaSpmW] = '1;
        f_sums[ct_pkg::DmaN1Lsb +: ct_pkg::DmaN1W] = '1;
      end
      ct_pkg::OpMm: begin
        f_kind = KindMm;
        f_unit = 6'd4;
        f_sums[ct_pkg::MmALsb +: ct_pkg::MmAW] = '1;
        f_sums[ct_pkg::MmBLsb +: ct_pkg::MmBW] = '1;
        f_sums[ct_pkg::MmRowsLsb +: ct_pkg::MmRowsW] = '1;
        if (Conv != 0) f_sums[ct_pkg::MmPosLsb +: ct_pkg::MmPosW] = '1;
      end
      ct_pkg::OpWpix, ct_pkg::OpWtap: begin
        f_kind = KindWalk;
        f_unit = 6'd4;
      end
      ct_pkg::OpVl: begin
        f_kind = KindVl;
        f_unit = 6'd8;
        f_sums[ct_pkg::VlSpmLsb +: ct_pkg::VlSpmW] = '1;
        f_sums[ct_pkg::VlRowsLsb +: ct_pkg::VlRowsW] = '1;
      end
      ct_pkg::OpVa: begin
        f_kind = KindVa;
        f_unit = 6'd16;
        f_sums[ct_pkg::VaSbLsb +: 32] = '1;
        f_sums[ct_pkg::VaScLsb +: 32] = '1;
        f_sums[ct_pkg::VaRowsLsb +: ct_pkg::VaRowsW] = '1;
      end
      ct_pkg::OpVs: begin
        f_kind = KindVs;
        f_unit = 6'd32;
        f_sums[ct_pkg::VsSpmLsb +: ct_pkg::VsSpmW] = '1;
        f_sums[ct_pkg::VsRowsLsb +: ct_pkg::VsRowsW] = '1;
      end
      default: f_kind = KindBad;
    endcase
  end
  `CT_ASSERT(KindIsOps_A, !ir_vld_q || (kind_q == f_kind && ir_q[ct_pkg::AllOpLsb +: ct_pkg::AllOpW] == f_op))
  `CT_ASSERT(RestStays_A, !ir_vld_q || ((ir_q ^ f_src_q) & ~f_sums) == '0)
  logic [255:0] f_gather;
  always_comb begin
    f_gather = '0;
    if ((f_unit[0] || f_unit[1]) && f_src_q[ct_pkg::DmaGatherLsb]) f_gather[ct_pkg::DmaN2Lsb +: ct_pkg::DmaN2W] = '1;
  end
  // The same of the command in O.
  logic [255:0] f_o_same_q;
  logic [5:0]   f_o_unit_q;
  logic         f_o_is_end;
  always_ff @(posedge clk_i) begin
    if (take) begin
      f_o_same_q <= ~f_sums & ~f_gather;
      f_o_unit_q <= f_unit;
    end
  end
  assign f_o_is_end = f_o_src_q[ct_pkg::AllOpLsb +: ct_pkg::AllOpW] == ct_pkg::OpEnd;
  `CT_ASSERT(OutKind_A, !o_vld_q || (run_q && o_unit_q == f_o_unit_q && o_end_q == f_o_is_end))
  // What goes out is the command whose turn it is, to its unit, and it goes when it is counted.
  `CT_ASSERT(Dispatched_A, !o_vld_q || ((o_cmd_q ^ f_o_src_q) & f_o_same_q) == '0)
  `CT_ASSERT(OnceEach_A, q_cmd_o == o_cmd_q && (q_valid_o & q_ready_i) == (done_o ? f_o_unit_q : 6'd0))
  // An offer stays until it is taken, or execution is stopped.
  logic [5:0]   f_offer_q;
  logic [255:0] f_offer_cmd_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_offer_q <= '0;
    else         f_offer_q <= q_valid_o & ~q_ready_i;
  end
  always_ff @(posedge clk_i) f_offer_cmd_q <= q_cmd_o;
  `CT_ASSERT(KeepsOffer_A, f_offer_q == '0 || stop_i || (q_valid_o == f_offer_q && q_cmd_o == f_offer_cmd_q))
  // Execution ends by END, by an error or by a stop, and with the number of what ended it.
  logic f_run_q, f_started_q, f_ended_q, f_wrong_q, f_stopped_q;
  logic [9:0] f_idx_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {f_run_q, f_started_q} <= 2'b00;
    else         {f_run_q, f_started_q} <= {run_q, start_i};
  end
  always_ff @(posedge clk_i) begin
    f_ended_q   <= out && f_o_is_end;
    f_wrong_q   <= wrong;
    f_idx_q     <= idx_o;
    f_stopped_q <= stop_i;
  end
  `CT_ASSERT(EndsForAReason_A, run_q == (f_started_q || (f_run_q && !f_ended_q && !f_wrong_q && !f_stopped_q)))
  `CT_ASSERT(EndIsSaid_A, !(f_run_q && f_ended_q) || (end_o && !run_q))
  `CT_ASSERT(NoEndInRun_A, !run_q || !end_o)
  `CT_ASSERT(ErrorIsTold_A, !err_o || f_started_q || idx_o == f_idx_q)
  `CT_ASSERT(ErrorAtIndex_A, !wrong || (run_q && q_valid_o == '0 && !done_o &&
                                        (o_vld_q ? idx_o == f_o_pc_q : idx_o == f_pc_q && f_pc_q == ncmds_i)))
  `CT_ASSERT(LoopsInRange_A, !take || illegal || f_dead || !((f_op == ct_pkg::OpLoop && f_depth_q == 3'd4) || (f_op == ct_pkg::OpEndl && f_depth_q == '0)))
  // Walks: a product with Walk goes out behind a WPIX and a WTAP of the same run.
  logic [1:0] f_walks_q, f_o_walk;
  logic [5:0] f_o_op;
  assign f_o_op   = o_cmd_q[ct_pkg::AllOpLsb +: ct_pkg::AllOpW];
  assign f_o_walk = {f_o_op == ct_pkg::OpWtap, f_o_op == ct_pkg::OpWpix};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      f_walks_q <= 2'b00;
    else if (start_i) f_walks_q <= 2'b00;
    else if (done_o)  f_walks_q <= f_walks_q | f_o_walk;
  end
  `CT_ASSERT(WalksKnown_A, Conv == 0 || !run_q || f_dead || walks_q == (f_walks_q | (o_vld_q ? f_o_walk : 2'b00)))
  `CT_ASSERT(WalkBehindBoth_A, !q_valid_o[2] || f_o_op != ct_pkg::OpMm || !o_cmd_q[ct_pkg::MmWalkLsb] || f_walks_q == 2'b11)
