// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_vpu_vs (tb/formal/ct_vpu_vs.proof), included at its end.

  // Slots of the row that are left; slots since the next row is ready to start.
  logic [7:0] f_left, f_wait_q;
  assign f_left = four_slots ? 8'd4 - 8'(quad_q) : 8'd1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_wait_q <= '0;
    else         f_wait_q <= start_valid_i && !start_ready_o ? f_wait_q + 8'(step) : 8'd0;
  end
  `CT_ASSERT(InRow_A, !act_q || (four_slots || quad_q == 2'd0))
  `CT_ASSERT(LastEnds_A, !step || row_end == (f_left == 8'd1))
  `CT_ASSERT(SlotsAndLeft_A, !act_q || 8'(slots_q) + f_left <= (four_slots ? 8'd4 : 8'd1))
  `CT_ASSERT(WaitAndLeft_A, !act_q || (f_wait_q + f_left <= 8'(MaxSlots)))
  `CT_ASSERT(WaitBound_A, f_wait_q < 8'(MaxSlots))

  // Any context: the passes of an operation over its rows come one after the other, whatever the other context does between them, and the
  // last one is final. f_seen_q: rows of the first pass that have been through; f_row_q: rows that have been written.
  localparam bit RowWise = (VpuLanes == 4);  // mode 1: both passes over a row, then the next row
  (* anyconst *) logic f_who;
  logic       f_open_q, f_one_q, f_ends_q;  // rows are to come; there is no first pass; the row under way is the last
  logic [4:0] f_seen_q, f_row_q, f_seen, f_row, f_rows;
  logic       f_starts, f_one, f_first, f_final, f_by_row;
  assign f_starts = start && start_ctx_i == f_who;
  // The command that starts is the one in front of its context.
  `CT_ASSUME(StartsHead_M, !start_valid_i || start_cmd_i == (start_ctx_i ? head_i[511:256] : head_i[255:0]))
  assign f_rows   = 5'(start_last) + 5'd1;
  assign f_one    = f_open_q ? f_one_q : one_pass_start;
  assign f_seen   = f_open_q ? f_seen_q : 5'd0;
  assign f_row    = f_open_q ? f_row_q : 5'd0;
  assign f_by_row = RowWise && start_cmd_i[ct_pkg::VsModeLsb +: 2] == 2'd1;
  assign f_first  = !f_one && f_seen < (f_by_row ? f_row + 5'd1 : f_rows);
  assign f_final  = !f_first && f_row == f_rows - 5'd1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)            f_open_q <= 1'b0;
    else if (kill_i[f_who]) f_open_q <= 1'b0;
    else if (f_starts)      f_open_q <= !f_final;
  end
  logic [5:0] f_cmd_q;  // mode and rows of its command
  always_ff @(posedge clk_i) begin
    if (f_starts) begin
      f_one_q  <= f_one;
      f_seen_q <= f_seen + 5'(f_first);
      f_row_q  <= f_row + 5'(!f_first);
      f_ends_q <= f_final;
      f_cmd_q  <= {start_cmd_i[ct_pkg::VsModeLsb +: 2], start_last};
    end
  end
  // The command of an operation stays the same from row to row.
  `CT_ASSUME(SameRows_M, !f_starts || !f_open_q || f_cmd_q == {head_i[256*f_who + ct_pkg::VsModeLsb +: 2], 4'(head_i[256*f_who + ct_pkg::VsRowsLsb +: 4] - 4'd1)})
  `CT_ASSUME(BadIsNew_M, !(start_valid_i && start_bad_i && start_ctx_i == f_who) || !f_open_q)
  logic f_was_by_row;
  assign f_was_by_row = RowWise && f_cmd_q[5:4] == 2'd1;
  `CT_ASSERT(NextRow_A, begun_q[f_who] == f_open_q && (!f_open_q || (f_row_q <= 5'(f_cmd_q[3:0]) && !(f_was_by_row && f_one_q) && (f_one_q ||
             (f_was_by_row ? f_seen_q == f_row_q || f_seen_q == f_row_q + 5'd1
                           : f_seen_q <= 5'(f_cmd_q[3:0]) + 5'd1 && (f_row_q == '0 || f_seen_q == 5'(f_cmd_q[3:0]) + 5'd1))))))
  `CT_ASSERT(NextPass_A, !f_open_q || (next_pass_q[f_who] == (f_one_q || f_seen_q == (f_was_by_row ? f_row_q + 5'd1 : 5'(f_cmd_q[3:0]) + 5'd1)) &&
             next_row_q[4*f_who +: 4] == (next_pass_q[f_who] || f_was_by_row ? f_row_q[3:0] : f_seen_q[3:0])))
  `CT_ASSERT(RowInTurn_A, !f_starts || (start_pass == !f_first && start_row == (f_first && !f_by_row ? f_seen[3:0] : f_row[3:0]) && start_final == f_final))
  `CT_ASSERT(LastIsFinal_A, !act_q || ctx_q != f_who || final_q == f_ends_q)
  `CT_ASSERT(FinalWrites_A, !act_q || !final_q || pass_q)

  // Any slot, from its read to its word. ct_fifo is proven by itself and cut away here: what is taken for granted of it is that words come
  // out as they went in and in order, and that none comes from nothing.
  (* anyseq *) logic f_pick;
  logic [8:0]       f_at_d, f_at_q;        // the stage where it is; bit 0: it waits in ct_fifo, bit 8: in the register behind that
  logic [4:0]       f_ahead_q, f_waits_q;  // words in front of it there; words there
  logic             f_op_ctx_q, f_ctx_q;   // owner and signals of the operation that started last; of the slot
  logic [9:0]       f_op_sig_q, f_sig_q;
  logic [2:0]       f_op_narrow_q, f_narrow_q;  // and the width of its mantissas
  logic             f_last_q, f_makes_q;
  logic [19:0]      f_addr_q;
  logic [31:0]      f_put_q;               // how it went into ct_fifo: {address, signals, context, last}
  logic             f_goes;                // into the register
  logic             f_leaves, f_heard_q;   // the latter: it has completed its operation in the last cycle, and no flush dropped that
  logic             f_quiet_q;             // its word was written in the last cycle and completed nothing
  logic [19:0]      f_op_row_q;  // address of the row that starts; that is written
  logic [15:0]      f_inc;

  assign f_goes   = f_at_q[0] && f_ahead_q == '0 && taken;
  assign f_leaves = f_at_q[8] && pop;
  assign f_at_d   = {(f_at_q[8] && !pop) || f_goes, f_at_q[6:1], step && f_pick && f_at_q == '0, (f_at_q[0] && !f_goes) || (f_at_q[7] && f_makes_q)};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_at_q    <= '0;
      f_waits_q <= '0;
      f_heard_q <= 1'b0;
      f_quiet_q <= 1'b0;
    end else begin
      f_at_q    <= f_at_d;
      f_waits_q <= f_waits_q + 5'(push) - 5'(taken);
      f_heard_q <= f_leaves && f_last_q && !kill_i[f_ctx_q];
      f_quiet_q <= f_leaves && !f_last_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) f_op_row_q <= start_at_i;
    if (start) {f_op_ctx_q, f_op_sig_q, f_op_narrow_q} <= {start_ctx_i, start_cmd_i[ct_pkg::AllSig0Lsb +: 10], start_cmd_i[ct_pkg::VsNarrowLsb +: 3]};
    if (f_at_q == '0) begin
      {f_ctx_q, f_sig_q, f_narrow_q, f_last_q, f_makes_q} <= {f_op_ctx_q, f_op_sig_q, f_op_narrow_q, last, makes_word};
      f_addr_q <= f_op_row_q + ((mode_q == 2'd0) ? {18'd0, quad_q} : 20'd0);
    end
    f_ahead_q <= f_at_q[7] ? f_waits_q - 5'(taken) : f_ahead_q - 5'(taken);
    if (f_at_q[7]) f_put_q <= 32'(made_word);
  end
  always_comb begin
    for (int s = 0; s < 16; s++) f_inc[s] = f_sig_q[4:0] == {1'b1, 4'(s)} || f_sig_q[9:5] == {1'b1, 4'(s)};
  end
  `CT_ASSUME(WaitsInOrder_M, !f_at_q[0] || f_ahead_q != '0 || !fifo_valid || fifo_word[31:0] == f_put_q)
  `CT_ASSUME(WaitsOfFifo_M, (!fifo_valid || f_waits_q != '0) && fifo_ready_unused == (f_waits_q < 5'(FifoDepth)))

  // Where it is, it is what it was: {width, address, signals, context, last, makes a word} of a stage.
  logic [35:0] f_is;
  logic [3:0]  f_words;  // words in the stages
  assign f_is    = {f_narrow_q, f_addr_q, f_sig_q, f_ctx_q, f_last_q, f_makes_q};
  assign f_words = 4'(vld_q[1] && meta1_q[7]) + 4'(vld_q[2] && meta2_q[7]) + 4'(vld_q[3] && meta3_q[7]) + 4'(vld_q[4] && meta4_q[7]) + 4'(vld_q[5] && meta5_q[7]) + 4'(vld_q[6] && meta6_q[7]) + 4'(push);
  `CT_ASSERT(OperationKept_A, !act_q || (ctx_q == f_op_ctx_q && sig_q == f_op_sig_q && narrow_q == f_op_narrow_q && addr_q == f_op_row_q))
  `CT_ASSERT(AtOnePlace_A, (f_at_q & (f_at_q - 9'd1)) == '0 && (f_at_q == '0 || f_makes_q || !f_last_q))
  `CT_ASSERT(InStage1_A, !f_at_q[1] || (vld_q[1] && meta1_q[42:7] == f_is))
  `CT_ASSERT(InStage2_A, !f_at_q[2] || (vld_q[2] && meta2_q[42:7] == f_is))
  `CT_ASSERT(InStage3_A, !f_at_q[3] || (vld_q[3] && meta3_q[42:7] == f_is))
  `CT_ASSERT(InStage4_A, !f_at_q[4] || (vld_q[4] && meta4_q[42:7] == f_is))
  `CT_ASSERT(InStage5_A, !f_at_q[5] || (vld_q[5] && meta5_q[42:7] == f_is))
  `CT_ASSERT(InStage6_A, !f_at_q[6] || (vld_q[6] && meta6_q[42:7] == f_is))
  `CT_ASSERT(InStage7_A, !f_at_q[7] || (vld_q[7] && meta7_q[42:7] == f_is))
  `CT_ASSERT(InOut_A, !f_at_q[8] || (out_vld_q && f_makes_q && out_q[31:0] == f_is[32:1]))
  `CT_ASSERT(InFifo_A, f_waits_q <= 5'(FifoDepth) && (!f_at_q[0] || (f_ahead_q < f_waits_q && f_makes_q && f_put_q == f_is[32:1])))
  `CT_ASSERT(CreditsAreWords_A, credit_q == 5'(f_words) + f_waits_q)
  // The tile register of its owner is read, its owner's words are written and its owner hears of it.
  `CT_ASSERT(OwnerRead_A, !rf_en_o || rf_addr_o[AddrW-1] == f_op_ctx_q)
  `CT_ASSERT(OwnerWritten_A, !f_at_q[8] || spm_wr_addr_o == f_addr_q)
  // Its mantissas are as wide as its command says.
  `CT_ASSERT(WidthOfWord_A, !f_at_q[4] || quant_narrow == f_narrow_q)
  `CT_ASSERT(NanToOwner_A, !f_at_q[7] || nan_d == ({f_ctx_q, !f_ctx_q} & {2{push && !raw7 && meta7_q[6] && &exp7_q}}))
  `CT_ASSERT(SignalsHeard_A, !f_heard_q || sem_inc_o == (f_ctx_q ? {f_inc, 16'd0} : {16'd0, f_inc}))
  // The last word of an operation completes it when the scratchpad takes it, once, and no other word does.
  `CT_ASSERT(LastCompletes_A, !f_leaves || probe_o[5:4] == ({f_ctx_q, !f_ctx_q} & {2{f_last_q}}))
  `CT_ASSERT(OthersAreQuiet_A, !f_quiet_q || sem_inc_o == 32'd0)
  `CT_ASSERT(NoMerge_A, !(sig_wait && pop && out_last))
  `CT_ASSERT(NoLastLost_A, f_at_q == '0 || !f_last_q || f_at_d[8:2] != '0 || f_at_d[0] || f_leaves)
