// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_seq (tb/formal/ct_dma_seq.proof), included at its end.

  // The command's own numbers; steps and runs done; beats of the run that are cut; where the last piece of the run ended.
  logic [11:0] f_n1_q, f_n2_q, f_runs_q, f_steps_q;
  logic [8:0]  f_len_q, f_cut_q;
  logic [31:0] f_end_q;
  logic        f_act_q, f_flush_q, f_kept_q;
  logic [63:0] f_checked_q;  // the window when the piece on offer was checked
  logic [84:0] f_piece, f_piece_q;
  assign f_piece = {addr_o, beats_o, spm_o, s0_o, rec_o, first_o, sig0_o, sig1_o, 1'b0};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_act_q   <= 1'b0;
      f_flush_q <= 1'b0;
      f_kept_q  <= 1'b0;
    end else begin
      f_act_q   <= act_q && !load;
      f_flush_q <= flush_i;
      f_kept_q  <= valid_o && !ready_i;
    end
  end
  always_ff @(posedge clk_i) begin
    f_piece_q  <= f_piece;
    if (load) begin
      f_n1_q    <= cmd_i[ct_pkg::DmaN1Lsb +: 12];
      f_n2_q    <= cmd_i[ct_pkg::DmaN2Lsb +: 12];
      f_len_q   <= cmd_i[ct_pkg::DmaNbLsb +: 9] + 9'(cmd_i[ct_pkg::DmaHdrLsb]);
      f_cut_q   <= '0;
      f_runs_q  <= '0;
      f_steps_q <= '0;
    end else if (step_q) begin
      f_cut_q   <= run_end_q ? 9'd0 : f_cut_q + 9'(cut_beats_q);
      f_runs_q  <= step_end_q ? 12'd0 : f_runs_q + 12'(run_end_q);
      f_steps_q <= f_steps_q + 12'(step_end_q);
      f_end_q   <= cut_end_q[31:0];
    end
    if (move) f_checked_q <= {base_i, limit_i};
  end
  `CT_ASSERT(LenLegal_A, !act_q || (len_q == f_len_q && len_q != 9'd0 && len_q <= (rec_q ? 9'd17 : 9'd256)))
  `CT_ASSERT(CutAndRest_A, !act_q || (f_cut_q + rem_q == f_len_q && rem_q != 9'd0 && rem_q <= f_len_q))
  `CT_ASSERT(RunsAndRest_A, !act_q || (f_runs_q + i1_q + 12'd1 == f_n1_q && n1_q + 12'd1 == f_n1_q && i1_q <= n1_q))
  `CT_ASSERT(StepsAndRest_A, !act_q || (f_steps_q + i2_q + 12'd1 == f_n2_q && i2_q < f_n2_q))
  `CT_ASSERT(RecordWhole_A, !act_q || !rec_q || SplitRecords || f_cut_q == '0)
  `CT_ASSERT(PieceOnOffer_A, !out_q || (beats_o != '0 && beats_o <= (rec_o ? 5'd17 : 5'd16) &&
                             ((rec_o && !SplitRecords) || 9'(addr_o[7:0]) + 9'(beats_o) <= 9'd256)))
  `CT_ASSERT(PieceCut_A, !cut_q || (cut_beats_q != '0 && cut_beats_q <= (cut_rec_q ? 5'd17 : 5'd16) && cut_end_q == {1'b0, cut_addr_q} + 33'(cut_beats_q) &&
                         ((cut_rec_q && !SplitRecords) || 9'(cut_addr_q[7:0]) + 9'(cut_beats_q) <= 9'd256)))
  `CT_ASSERT(PieceInWindow_A, !out_q || (addr_o >= f_checked_q[63:32] && {1'b0, addr_o} + 33'(beats_o) <= {1'b0, f_checked_q[31:0]}))
  `CT_ASSERT(OneOrTheOther_A, !(out_q && bad_q))
  // What was cut is what the walk stands at, until it goes on.
  `CT_ASSERT(StepOfCut_A, !step_q || (cut_q && act_q && !miss_q && cut_addr_q == addr_q && 9'(cut_beats_q) <= rem_q && run_end_q == (9'(cut_beats_q) == rem_q) &&
                          step_end_q == (run_end_q && i1_q == '0) && (run_end_q || !rec_q || SplitRecords) && cmd_end_q == (step_end_q && i2_q == '0)))
  // Pieces of a run follow each other; the last one ends it; what is new is new.
  `CT_ASSERT(RunWhole_A, !go || ((new_run_q || addr_q == f_end_q) && run_end == (f_cut_q + 9'(beats) == f_len_q)))
  `CT_ASSERT(NewOnce_A, !act_q || new_run_q == (f_cut_q == '0))
  `CT_ASSERT(AddrFollows_A, !act_q || new_run_q || addr_q == f_end_q)
  // A command ends after N2 steps of N1 runs, and a step's last piece is the one that says so.
  `CT_ASSERT(CommandWhole_A, !(step_q && cmd_end_q) || (f_steps_q + 12'd1 == f_n2_q && f_runs_q + 12'd1 == f_n1_q && f_cut_q + 9'(cut_beats_q) == f_len_q))
  `CT_ASSERT(EndsOnlyThere_A, !f_act_q || act_q || f_flush_q || (f_steps_q == f_n2_q && f_runs_q == '0 && f_cut_q == '0))
  `CT_ASSERT(StepSignal_A, !step_q || (cut_sig0_q == (f_runs_q + 12'd1 == f_n1_q && f_cut_q + 9'(cut_beats_q) == f_len_q ? sig0_q : 5'd0) &&
                           cut_sig1_q == (cmd_end_q ? sig1_q : 5'd0)))
  // What is waited for, before a step and before the command, is taken in the cycle after; no piece is cut in that one.
  logic [4:0]  f_wait1_q, f_wait2_q;
  logic [15:0] f_taken_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_taken_q <= '0;
    else         f_taken_q <= go ? need_q : '0;
  end
  always_ff @(posedge clk_i) begin
    if (load) begin
      f_wait1_q <= cmd_i[ct_pkg::AllWait1Lsb +: 5];
      f_wait2_q <= cmd_i[ct_pkg::AllWait2Lsb +: 5];
    end
  end
  `CT_ASSERT(WaitsOnce_A, sem_dec_o == f_taken_q && (!act_q || need_q == ((f_cut_q == '0 && f_runs_q == '0 ? sem_mask(wait0_q) : 16'd0) |
                          (f_cut_q == '0 && f_runs_q == '0 && f_steps_q == '0 ? sem_mask(f_wait1_q) | sem_mask(f_wait2_q) : 16'd0))))
  `CT_ASSERT(LooksAfterTaking_A, sem_dec_o == '0 || !go)

  // With Gather: what was asked for, row by row (f_asks_q of them), and what was answered last.
  logic [11:0] f_asks_q;
  logic [31:0] f_dram_q, f_answer_q, f_step_q;
  logic        f_gnt_q, f_step_new_q;
  assign f_step_new_q = f_cut_q == '0 && f_runs_q == '0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_gnt_q <= 1'b0;
    else         f_gnt_q <= gat_valid_o && gat_gnt_i;
  end
  always_ff @(posedge clk_i) begin
    if (gat_vld_i) f_answer_q <= gat_addr_i;
    if (load) begin
      f_dram_q <= cmd_i[ct_pkg::DmaDramLsb +: 32];
      f_asks_q <= '0;
    end else if (gat_valid_o && gat_gnt_i) begin
      f_asks_q <= f_asks_q + 12'd1;
    end
    if (use_addr) f_step_q <= f_dram_q + gat_addr_q;
  end
  `CT_ASSUME(GrantsAsked_M, !gat_gnt_i || gat_valid_o)
  `CT_ASSUME(AnswersGrant_M, gat_vld_i == f_gnt_q)
  logic f_inhand;                      // the address of the next step is here, or comes in this cycle
  assign f_inhand = gat_vld_q || f_gnt_q;
  `CT_ASSERT(GatherAsks_A, !gat_valid_o || (12'(gat_row_o) == f_asks_q && f_asks_q < f_n2_q))
  `CT_ASSERT(GatherInTurn_A, !(act_q && gather_q) || (f_asks_q == f_steps_q + 12'(!miss_q) + 12'(f_inhand)))
  `CT_ASSERT(GatherNext_A, !(act_q && gather_q) || (gat_row_q == f_asks_q[3:0] && 12'(gat_last_q) + 12'd1 == f_n2_q && gat_more_q == (f_asks_q < f_n2_q) &&
                           gat_asked_q == f_gnt_q))
  `CT_ASSERT(GatherRows_A, !(act_q && gather_q) || (f_n2_q <= 12'd16 && f_asks_q <= f_n2_q))
  `CT_ASSERT(GatherOneInHand_A, !(gat_vld_q && f_gnt_q))
  `CT_ASSERT(GatherKept_A, !(act_q && gather_q && gat_vld_q) || gat_addr_q == f_answer_q)
  `CT_ASSERT(GatherBase_A, !(act_q && gather_q) || step_addr_q == f_dram_q)
  `CT_ASSERT(GatherMiss_A, !miss_q || (act_q && gather_q && f_step_new_q))
  `CT_ASSERT(GatherAddr_A, !(go && gather_q && f_step_new_q) || addr_q == f_step_q)
  `CT_ASSERT(GatherStep_A, !(act_q && gather_q && !miss_q && f_step_new_q) || addr_q == f_step_q)
  `CT_ASSERT(KeepsOffer_A, !f_kept_q || flush_i || halt_i || f_flush_q || (valid_o && f_piece == f_piece_q))
