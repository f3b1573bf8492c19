// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_vpu_va (tb/formal/ct_vpu_va.proof), included at its end.

  // Issues of the start that are left (the gap behind it counts as one); cycles since the next one is ready, but for those in which the
  // flush or the error of the one under way ends it.
  logic [8:0] f_rows, f_left, f_wait_q, f_most;
  assign f_rows = single_q ? 9'd0 : 9'(4'(last_row_q - row_q));
  assign f_left = gap_q ? 9'd1 : ((VpuLanes == 4 ? f_rows * 9'd4 + 9'd4 - 9'(beat) : f_rows + 9'd1) << (FnTurns && func_q[3] ? 2 : 0))
                                 - 9'(turn) + 9'(needs_gap);
  assign f_most = 9'(MaxBeats) + 9'(needs_gap);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_wait_q <= '0;
    else         f_wait_q <= start_valid_i && !start_ready_o ? f_wait_q + 9'(issue) : 9'd0;
  end
  // The last four rows go together; before them, and where the end tells, one by one.
  logic f_one_by_one, f_in_tile;
  assign f_one_by_one = tail_q || (FnTurns && func_q[3]);
  assign f_in_tile    = row_q <= last_row_q && (single_q ? final_q == (f_one_by_one && row_q == (tail_q ? 4'd0 : last_row_q)) &&
                        (f_one_by_one || 4'(last_row_q - row_q) >= 4'd4) : final_q && !f_one_by_one && 4'(last_row_q - row_q) < 4'd4);
  `CT_ASSERT(InTile_A, !act_q || gap_q || (!(FnTurns && !func_q[3] && turn != 2'd0) &&
             (VpuLanes == 4 ? f_in_tile : final_q && !single_q && !tail_q && row_q <= last_row_q)))
  `CT_ASSERT(GapActive_A, !gap_q || (act_q && needs_gap))
  `CT_ASSERT(LastEnds_A, !issue || last == (f_left == 9'd1 + 9'(needs_gap)))
  `CT_ASSERT(BeatsAndLeft_A, !act_q || 9'(beats_q) + f_left <= f_most)
  `CT_ASSERT(WaitAndLeft_A, !act_q || (f_wait_q + f_left <= f_most))
  `CT_ASSERT(WaitBound_A, f_wait_q < 9'(MaxBeats) || (needs_gap && f_wait_q == 9'(MaxBeats)))

  // Any context: the rows of an operation come one after the other, whatever the other context does between them, and the last one is final.
  (* anyconst *) logic f_who;
  logic       f_open_q, f_ends_q;  // rows are to come; the start under way is the last
  logic [3:0] f_row_q;             // the next one
  logic       f_starts, f_whole;
  logic [3:0] f_row;
  assign f_starts = start && start_ctx_i == f_who;
  assign f_row    = f_open_q ? f_row_q : {3'd0, start_tail};
  assign f_whole  = VpuLanes == 16 || (!start_tail && !start_turns && 5'(f_row) + 5'd4 > 5'(start_last));
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)            f_open_q <= 1'b0;
    else if (kill_i[f_who]) f_open_q <= 1'b0;
    else if (f_starts)      f_open_q <= !f_whole && f_row != (start_tail ? 4'd0 : start_last);
  end
  always_ff @(posedge clk_i) begin
    if (f_starts) begin
      f_row_q  <= start_tail && f_row == start_last ? 4'd0 : f_row + 4'd1;
      f_ends_q <= f_whole || f_row == (start_tail ? 4'd0 : start_last);
    end
  end
  // The command of an operation stays the same from row to row: {tail, turns, last row} of each context.
  logic [11:0] f_cmds_q;
  logic [1:0]  f_next_in;
  always_ff @(posedge clk_i) if (start) f_cmds_q[6*start_ctx_i +: 6] <= {start_tail, start_turns, start_last};
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_next_in[c] = !begun_q[c] || (VpuLanes == 4 && next_q[4*c +: 4] <= f_cmds_q[6*c +: 4] &&
                     (f_cmds_q[6*c + 4 +: 2] != 2'b00 || 4'(f_cmds_q[6*c +: 4] - next_q[4*c +: 4]) >= 4'd3));
    end
  end
  // Legal rows (RowsLegal_M) of the command in front, which is looked at a cycle earlier: one row has no other to go last.
  `CT_ASSUME(TailHasRows_M, !start || !start_tail || start_last != 4'd0)
  // The command that starts has been in front since it was looked at.
  `CT_ASSUME(StartsHead_M, !start || start_turns == (FnTurns && start_cmd_i[ct_pkg::VaFuncLsb + 3]))
  `CT_ASSUME(SameRows_M, !start || !begun_q[start_ctx_i] || f_cmds_q[6*start_ctx_i +: 6] == {start_tail, start_turns, start_last})
  `CT_ASSERT(NextInTile_A, f_next_in == 2'b11)
  `CT_ASSERT(NextRow_A, begun_q[f_who] == f_open_q && (!f_open_q || next_q[4*f_who +: 4] == f_row_q))
  `CT_ASSERT(RowInTurn_A, !f_starts || (start_row == f_row && start_final == (f_whole || f_row == (start_tail ? 4'd0 : start_last)) && f_row <= start_last))
  `CT_ASSERT(LastIsFinal_A, !act_q || ctx_q != f_who || final_q == f_ends_q)

  // An operation tells that it is complete with one of its writes, which belongs to its last start.
  logic       f_told_q;
  logic [3:0] f_tell_row;
  assign f_tell_row = last_row_q < 4'd3 ? 4'd0 : last_row_q - 4'd3;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)              f_told_q <= 1'b0;
    else if (start)           f_told_q <= 1'b0;
    else if (issue && tells)  f_told_q <= 1'b1;
  end
  `CT_ASSERT(ToldSoFar_A, !act_q || f_told_q == (gap_q || (VpuLanes == 16 ? row_q != 4'd0 : !tail_q && !(FnTurns && func_q[3]) && final_q &&
             (row_q > f_tell_row || (row_q == f_tell_row && beat >= 2'd2)))))
  `CT_ASSERT(TellsOnce_A, !(issue && tells && (f_told_q || !final_q)) && (!act_q || !finish || !final_q || f_told_q || (issue && tells)))

  // Any row (quarter), from its issue to its write: stage k has it while bit k is set.
  (* anyseq *) logic f_pick;
  logic [VaLat:1] f_at_d, f_at_q;
  logic           f_op_ctx_q, f_ctx_q;  // owner and signals of the operation that started last; of the row
  logic [9:0]     f_op_sig_q, f_sig_q;
  logic [3:0]     f_op_td_q;
  logic [10:0]    f_is_q;               // {beat, row, tile, tells} of the row
  logic [2:0]     f_turn_q;             // {turn, with a function}: of four issues of a quarter with one the last is written
  logic           f_heard_q;            // it has completed its operation in the last cycle, and no flush dropped that
  logic           f_quiet_q;            // it was in the last stage in the last cycle and completed nothing
  logic           f_twice_q;            // the write of the last cycle completed an operation that doubles a signal
  logic           f_short_q;            // the row that is written came the short way
  logic [15:0]    f_inc;
  logic [VaLat:1] f_long, f_tells, f_doubles, f_same;
  always_comb begin
    f_at_d        = {f_at_q[VaLat-1:1], issue && f_pick && f_at_q == '0};
    f_at_d[4]     = f_at_q[3] && !short3;
    f_at_d[VaLat] = f_at_q[PadStage] || (f_at_q[3] && short3);
    for (int k = 1; k <= VaLat; k++) begin
      f_long[k]    = vld_q[k] && (k > 3 || !short_pipe_q[k < 4 ? k : 3]) && !(k == VaLat && f_short_q);
      f_tells[k]   = vld_q[k] && meta[MetaW*k];
      f_doubles[k] = f_tells[k] && meta[MetaW*k + 5] && meta[MetaW*k + 1 +: 5] == meta[MetaW*k + 6 +: 5];
      f_same[k]    = vld_q[k] && ctx_pipe_q[k] == f_ctx_q && meta[MetaW*k +: 21] == {f_is_q[10:1], f_sig_q, f_is_q[0]} &&
                     (!FnTurns || {meta[MetaW*k + MetaTurn +: 2], meta[MetaW*k + 32]} == f_turn_q);
    end
    for (int s = 0; s < 16; s++) f_inc[s] = f_sig_q[4:0] == {1'b1, 4'(s)} || f_sig_q[9:5] == {1'b1, 4'(s)};
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_at_q    <= '0;
      f_heard_q <= 1'b0;
      f_quiet_q <= 1'b0;
      f_twice_q <= 1'b0;
      f_short_q <= 1'b0;
    end else begin
      f_at_q    <= f_at_d;
      f_heard_q <= f_at_q[VaLat] && f_is_q[0] && !kill_i[f_ctx_q];
      f_quiet_q <= f_at_q[VaLat] && !f_is_q[0] && !sig_wait_unused;
      f_twice_q <= f_doubles[VaLat];
      f_short_q <= short3;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) begin
      f_op_ctx_q <= start_ctx_i;
      f_op_sig_q <= start_cmd_i[ct_pkg::AllSig0Lsb +: 10];
      f_op_td_q  <= start_cmd_i[ct_pkg::VaTdLsb +: 4];
    end
    if (f_at_q == '0) begin
      {f_ctx_q, f_sig_q} <= {f_op_ctx_q, f_op_sig_q};
      f_is_q             <= {beat, row_q, f_op_td_q, tells};
      f_turn_q           <= {turn, func_q[3]};
    end
  end
  // A row that goes the short way has none of the long way in front of it that it could meet.
  logic [VaLat-5:1] f_near;
  always_comb begin
    for (int k = 1; k <= VaLat - 5; k++) f_near[k] = f_long[k] && long_q < CountW'(VaLat - 3 - k);
  end
  `CT_ASSERT(LongCounted_A, f_near == '0 && (!f_long[VaLat-4] || long_q != '0))
  `CT_ASSERT(ShortAlone_A, (!act_q || !short_q || (long_q == '0 && f_long[VaLat-3:1] == '0)) &&
             (!vld_q[1] || f_long[1] || f_long[VaLat-2:2] == '0) && (!vld_q[2] || f_long[2] || f_long[VaLat-1:3] == '0) && (!short3 || f_long[VaLat:4] == '0))
  // Where it is, it is what it was.
  `CT_ASSERT(Moves_A, vld_q == '0 || moving_q)
  `CT_ASSERT(OperationKept_A, !act_q || (ctx_q == f_op_ctx_q && sig_q == f_op_sig_q && td_q == f_op_td_q))
  `CT_ASSERT(AtOnePlace_A, (f_at_q & (f_at_q - 1'b1)) == '0)
  `CT_ASSERT(SameInStage_A, (f_at_q & ~f_same) == '0)
  // No completion comes while the second of two equal signals is given.
  `CT_ASSERT(ApartInPipe_A, (f_doubles[VaLat:2] & f_tells[VaLat-1:1]) == '0 && !(f_doubles[1] && issue && tells) &&
             !(f_doubles[VaLat] && short3 && f_tells[3]))
  `CT_ASSERT(NoMerge_A, !f_twice_q || !f_tells[VaLat])
  // Its owner's tile register is written and its owner hears of it, once.
  logic [AddrW-1:0] f_place;
  assign f_place = AddrW'(VpuLanes == 4 ? {f_ctx_q, f_is_q[4:1], f_is_q[8:5], f_is_q[10:9]} : 11'({f_ctx_q, f_is_q[4:1], f_is_q[8:5]}));
  `CT_ASSERT(OwnerWritten_A, !f_at_q[VaLat] || (wr_addr_o == f_place && wr_valid_o == (!FnTurns || !f_turn_q[0] || f_turn_q[2:1] == 2'd3)))
  `CT_ASSERT(WrittenOfStage_A, !wr_valid_o || vld_q[VaLat])
  `CT_ASSERT(TellsCompletes_A, !f_at_q[VaLat] || probe_o[5:4] == ({f_ctx_q, !f_ctx_q} & {2{f_is_q[0]}}))
  `CT_ASSERT(OthersAreQuiet_A, !f_quiet_q || sem_inc_o == 32'd0)
  `CT_ASSERT(SignalsHeard_A, !f_heard_q || sem_inc_o == (f_ctx_q ? {f_inc, 16'd0} : {16'd0, f_inc}))
