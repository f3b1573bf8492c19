// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_vpu_vl (tb/formal/ct_vpu_vl.proof), included at its end.

  // Words of the row that are left; steps since the next row is ready to start.
  logic [6:0] f_left, f_wait_q;
  assign f_left = mode_q == 2'd0 ? 7'd4 - 7'(word_q) : 7'd1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_wait_q <= '0;
    else         f_wait_q <= start_valid_i && !start_ready_o ? f_wait_q + 7'(step) : 7'd0;
  end
  `CT_ASSERT(WordsWalked_A, !act_q || (words_q == 3'(word_q) && (mode_q == 2'd0 || word_q == 2'd0)))
  `CT_ASSERT(LastEnds_A, !step || row_end == (f_left == 7'd1))

  // Any context: the rows of an operation come one after the other, whatever the other context does between them, and the last one is final.
  (* anyconst *) logic f_who;
  logic       f_open_q, f_ends_q;  // rows are to come; the row under way is the last
  logic [3:0] f_row_q;             // the next one
  logic       f_starts, f_more;
  assign f_starts = start && start_ctx_i == f_who;
  // The command that starts is the one in front of its context.
  `CT_ASSUME(StartsHead_M, !start_valid_i || start_cmd_i == (start_ctx_i ? head_i[511:256] : head_i[255:0]))
  assign f_more   = (f_open_q ? f_row_q : 4'd0) != head_i[256*f_who + ct_pkg::VlRowsLsb +: 4] - 4'd1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)             f_open_q <= 1'b0;
    else if (kill_i[f_who])  f_open_q <= 1'b0;
    else if (f_starts)       f_open_q <= f_more;
  end
  always_ff @(posedge clk_i) begin
    if (f_starts) f_row_q  <= (f_open_q ? f_row_q : 4'd0) + 4'd1;
    if (f_starts) f_ends_q <= !f_more;
  end
  // The command of an operation stays the same from row to row.
  `CT_ASSUME(SameRows_M, !f_starts || !f_open_q || f_row_q <= 4'(head_i[256*f_who + ct_pkg::VlRowsLsb +: 4] - 4'd1))
  `CT_ASSUME(BadIsNew_M, !(start_valid_i && start_bad_i && start_ctx_i == f_who) || !f_open_q)
  `CT_ASSERT(NextRow_A, next_q[4*f_who +: 4] == (f_open_q ? f_row_q : 4'd0) && (!f_open_q || f_row_q != 4'd0))
  `CT_ASSERT(RowInTurn_A, !f_starts || (start_row == (f_open_q ? f_row_q : 4'd0) && stays_o[start_ctx_i] == f_more))
  `CT_ASSERT(LastIsFinal_A, !act_q || ctx_q != f_who || final_q == f_ends_q)
  `CT_ASSERT(WaitAndLeft_A, !act_q || (f_wait_q + f_left <= 7'(MaxWords)))
  `CT_ASSERT(WaitBound_A, f_wait_q < 7'(MaxWords))

  // Any word, from its address to its write. ct_skid and ct_fifo are proven by themselves and cut away here: what is taken for granted of
  // them is that words come out as they went in and in order, and that none comes from nothing. The memory answers as ct_spm does.
  typedef enum logic [2:0] {FNone, FAsks, FGot1, FGot2, FWaits, FWord, FHalf, FWrite} f_at_e;
  (* anyseq *) logic f_pick;
  f_at_e             f_at_d, f_at_q;
  logic [3:0]        f_ahead_d, f_ahead_q;  // words in front of it, in ct_skid or ct_fifo
  logic [1:0]        f_asks_q;              // words in ct_skid
  logic [3:0]        f_waits_q;             // words in ct_fifo
  logic              f_op_ctx_q, f_ctx_q;   // owner and signals of the operation that started last; of the word
  logic [9:0]        f_op_sig_q, f_sig_q;
  logic [MetaW+19:0] f_ask_q;               // the word as it went into ct_skid
  logic [MetaW-1:0]  f_got_q;               // and into ct_fifo
  logic              f_leaves;
  logic              f_part_q;              // one of its first three quarters was the last one to be written (4 lanes)
  logic              f_heard_q;             // it has completed its operation in the last cycle, and no flush dropped that
  logic              f_quiet_q;             // it was written in the last cycle and completed nothing
  logic              f_gone_q;              // what was written in the last cycle was the last there was
  logic              f_half_part_q;         // an earlier quarter of the word is in the middle of the dequantiser
  logic [19:0]       f_op_row_q, f_addr_q;  // address of the row that starts; that is asked for; of the word
  logic [15:0]       f_inc;

  assign f_leaves = f_ahead_q == '0;
  always_comb begin
    f_at_d    = f_at_q;
    f_ahead_d = f_ahead_q;
    unique case (f_at_q)
      FNone: if (step && f_pick) begin
        f_at_d    = FAsks;
        f_ahead_d = 4'(f_asks_q) - 4'(granted);
      end
      FAsks: if (granted) begin
        f_ahead_d = f_ahead_q - 4'd1;
        if (f_leaves) f_at_d = FGot1;
      end
      FGot1: f_at_d = FGot2;
      FGot2: begin
        f_at_d    = FWaits;
        f_ahead_d = f_waits_q - 4'(pop);
      end
      FWaits: if (pop) begin
        f_ahead_d = f_ahead_q - 4'd1;
        if (f_leaves) f_at_d = FWord;
      end
      FWord: begin
        if (parts)              f_at_d = FNone;
        if (load && beats_done) f_at_d = FHalf;
      end
      FHalf: if (move) f_at_d = FWrite;
      default: if (fired) f_at_d = FNone;
    endcase
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_at_q    <= FNone;
      f_asks_q  <= '0;
      f_waits_q <= '0;
      f_heard_q <= 1'b0;
      f_quiet_q <= 1'b0;
      f_gone_q  <= 1'b0;
      f_part_q  <= 1'b0;
      f_half_part_q <= 1'b0;
    end else begin
      f_at_q    <= f_at_d;
      f_asks_q  <= f_asks_q + 2'(step) - 2'(granted);
      f_waits_q <= f_waits_q + 4'(spm_rd_vld_i) - 4'(pop);
      f_heard_q <= f_at_q == FWrite && fired && f_ask_q[13] && !kill_i[f_ctx_q];
      f_quiet_q <= fired && (f_at_q == FWrite ? !f_ask_q[13] : f_part_q);
      f_gone_q  <= fired && !half_vld_q;
      if (move) f_half_part_q <= load && f_at_q == FWord && !beats_done;
      if (move) f_part_q      <= f_half_part_q;
    end
  end
  always_ff @(posedge clk_i) begin
    f_ahead_q <= f_ahead_d;
    if (start) {f_op_ctx_q, f_op_sig_q} <= {start_ctx_i, start_cmd_i[ct_pkg::AllSig0Lsb +: 10]};
    if (start) f_op_row_q <= start_at_i;
    if (f_at_q == FNone) begin
      f_ask_q            <= ask_word;
      {f_ctx_q, f_sig_q} <= {f_op_ctx_q, f_op_sig_q};
      f_addr_q           <= f_op_row_q + 20'(word_q);
    end
    if (f_at_q == FGot2) f_got_q <= MetaW'(got_word);
  end
  always_comb begin
    for (int s = 0; s < 16; s++) f_inc[s] = f_sig_q[4:0] == {1'b1, 4'(s)} || f_sig_q[9:5] == {1'b1, 4'(s)};
  end
  `CT_ASSUME(AsksInOrder_M, f_at_q != FAsks || !f_leaves || !spm_rd_valid_o || {spm_rd_addr_o, ask_meta} == f_ask_q)
  `CT_ASSUME(AsksOfSkid_M, (!spm_rd_valid_o || f_asks_q != '0) && (!ask_ready || f_asks_q < 2'd2))
  `CT_ASSUME(AnswersAsSpm_M, spm_rd_vld_i == got2_vld_q)
  `CT_ASSUME(WaitsInOrder_M, f_at_q != FWaits || !f_leaves || !fifo_valid || meta == f_got_q)
  `CT_ASSUME(WaitsOfFifo_M, (!fifo_valid || f_waits_q != '0) && fifo_ready_unused == (f_waits_q < 4'(FifoDepth)))

  // Where it is, it is what went in.
  `CT_ASSERT(OperationKept_A, !act_q || (ctx_q == f_op_ctx_q && sig_q == f_op_sig_q && addr_q == f_op_row_q))
  `CT_ASSERT(AskedAsStepped_A, f_at_q == FNone || (f_ask_q[0] == f_ctx_q && f_ask_q[23:14] == f_sig_q && f_ask_q[MetaW +: 20] == f_addr_q && (!f_ask_q[13] || f_ask_q[12:11] != 2'd0 || f_ask_q[10:9] == 2'd3)))
  `CT_ASSERT(InSkid_A, f_asks_q <= 2'd2 && (f_at_q != FAsks || f_ahead_q < 4'(f_asks_q)))
  `CT_ASSERT(InGot1_A, f_at_q != FGot1 || (got1_vld_q && {got1_addr_q, got1_q} == f_ask_q))
  `CT_ASSERT(InGot2_A, f_at_q != FGot2 || (got2_vld_q && {got2_addr_q, got2_q} == f_ask_q))
  `CT_ASSERT(InFifo_A, f_at_q != FWaits || (f_ahead_q < f_waits_q && f_got_q == f_ask_q[MetaW-1:0]))
  `CT_ASSERT(FifoInRange_A, f_waits_q <= 4'(FifoDepth))
  `CT_ASSERT(InWord_A, f_at_q != FWord || (word_vld_q && word_meta_q == f_ask_q[MetaW-1:0]))
  `CT_ASSERT(InHalf_A, f_at_q != FHalf || (half_vld_q && half_write_q[WriteW-1:AddrW] == {f_sig_q, f_ctx_q, f_ask_q[13], 1'b1}))
  `CT_ASSERT(PlaceInHalf_A, (f_at_q != FHalf && !f_half_part_q) || half_write_q[AddrW-1 -: 9] == {f_ctx_q, f_ask_q[4:1], f_ask_q[8:5]})
  `CT_ASSERT(InWrite_A, f_at_q != FWrite || (wr_vld_q && wr_word_end_q && wr_end_q == f_ask_q[13]))
  `CT_ASSERT(PartOfIt_A, (!f_half_part_q || (half_vld_q && f_at_q == FWord && !half_write_q[AddrW+1] && !half_write_q[AddrW])) && (!f_part_q || f_at_q == FWord || f_at_q == FHalf))
  `CT_ASSERT(CreditsAreWords_A, credit_q == 4'(f_asks_q) + 4'(got1_vld_q) + 4'(got2_vld_q) + f_waits_q)
  // The context that owns it reads it, has it written and hears of it; its parity error, too, and nobody else.
  `CT_ASSERT(OwnerAsks_A, f_at_q != FAsks || !f_leaves || !spm_rd_valid_o || (spm_rd_ctx_o == f_ctx_q && spm_rd_addr_o == f_addr_q))
  `CT_ASSERT(OwnerWritten_A, (f_at_q != FWrite && !(wr_vld_q && f_part_q)) ||
             wr_addr_q[AddrW-1 -: 9] == {f_ctx_q, f_ask_q[4:1], f_ask_q[8:5]})
  `CT_ASSERT(ParityToOwner_A, f_at_q != FGot2 || !spm_rd_perr_i || (err_parity_o == ({f_ctx_q, !f_ctx_q} & ~kill_i) && err_parity_addr_o == f_addr_q))
  `CT_ASSERT(SignalsHeard_A, !f_heard_q || sem_inc_o == (f_ctx_q ? {f_inc, 16'd0} : {16'd0, f_inc}))
  // The last word of an operation completes it when it is written whole, and no other word does.
  `CT_ASSERT(OwnerOfSignals_A, f_at_q != FWrite || (wr_ctx_q == f_ctx_q && wr_sig_q == f_sig_q))
  `CT_ASSERT(LastCompletes_A, f_at_q != FWrite || !fired || probe_o[5:4] == ({f_ctx_q, !f_ctx_q} & {2{f_ask_q[13]}}))
  `CT_ASSERT(PartDoesNot_A, !wr_vld_q || !f_part_q || !wr_end_q)
  `CT_ASSERT(OthersAreQuiet_A, !f_quiet_q || sem_inc_o == 32'd0)
  `CT_ASSERT(WrittenOnce_A, !f_gone_q || !wr_vld_q)
  `CT_ASSERT(NoMerge_A, !(sig_wait && fired && wr_end_q))
  `CT_ASSERT(NoLastLost_A, f_at_q == FNone || !f_ask_q[13] || f_at_d != FNone || fired)
