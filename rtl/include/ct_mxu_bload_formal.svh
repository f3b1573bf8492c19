// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu_bload (tb/formal/ct_mxu_bload.proof), included at its end.

  // What the sequencer and ct_mxu keep to: at most KSteps permits beyond what has begun; a flush lasts until nothing is left.
  logic f_dirty_q;
  `CT_ASSUME(PermitsInHand_M, !permit_i || perm_q < PermW'(KSteps))
  `CT_ASSUME(FlushLasts_M, !f_dirty_q || flush_i)

  // Words by number, modulo 64: asked for, arrived, gone on. With a flush they begin anew; what it finds in the buffer goes at a word a cycle.
  logic [5:0] f_asked_q, f_come_q, f_gone_q, f_held, f_way;
  logic [3:0] f_kind_q;  // of the tiles, by number: transposed
  assign f_held = f_come_q - f_gone_q;
  assign f_way  = 6'(req_vld_q) + 6'(t1_vld_q) + 6'(t2_vld_q);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_asked_q <= '0;
      f_come_q  <= '0;
      f_gone_q  <= '0;
      f_dirty_q <= 1'b0;
    end else begin
      f_dirty_q <= flush_i && !idle_o;
      f_asked_q <= flush_i ? 6'd0 : f_asked_q + 6'(fire);
      f_come_q  <= flush_i ? 6'd0 : f_come_q + 6'(arrive);
      f_gone_q  <= flush_i ? 6'(word_vld_o) - f_held : f_gone_q + 6'(pop_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (fire && row_q == '0) f_kind_q[f_asked_q[5:4]] <= trans_q;
  end
  // The buffer is proven by itself (ct_fifo) and cut away: words come out as they went in and in order, and none comes from nothing.
  logic [5:0] f_buffered_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_buffered_q <= '0;
    else         f_buffered_q <= f_buffered_q + 6'(put) - 6'((pop_i || flush_i) && word_vld_o);
  end
  `CT_ASSUME(BufferHolds_M, word_vld_o == (f_buffered_q != '0) && buf_ready == (f_buffered_q != 6'(Depth)))
  `CT_ASSERT(Buffered_A, f_buffered_q == f_held)
  `CT_ASSUME(BufferKinds_M, flush_i || !word_vld_o || word_trans_o == f_kind_q[f_gone_q[5:4]])

  // A place is kept for each word, from the request on.
  `CT_ASSERT(PlacesKept_A, f_held <= 6'(Depth) && (f_dirty_q ? free_q == FreeW'(Depth) && f_way == '0 && !cur_vld_q && f_asked_q == '0 && f_come_q == '0 :
                                                               6'(free_q) + f_way + f_held + 6'(gone_q) == 6'(Depth)))
  `CT_ASSERT(WordsCounted_A, f_asked_q == f_come_q + f_way)

  // Any word: its address and kind as it was asked for, its data as it came.
  (* anyconst *) logic [5:0] f_sel;
  logic [19:0]  f_addr_q;
  logic [2:0]   f_tag_q;
  logic [135:0] f_word_q;
  logic         f_up, f_here, f_in_req, f_in_t1, f_in_t2;
  assign f_up     = f_sel - f_gone_q < f_asked_q - f_gone_q;  // asked for, and has not gone on
  assign f_here   = f_sel - f_gone_q < f_held;                // in the buffer
  assign f_in_req = req_vld_q && f_come_q + 6'(t2_vld_q) + 6'(t1_vld_q) == f_sel;
  assign f_in_t1  = t1_vld_q && f_come_q + 6'(t2_vld_q) == f_sel;
  assign f_in_t2  = t2_vld_q && f_come_q == f_sel;
  always_ff @(posedge clk_i) begin
    if (fire && f_asked_q == f_sel) begin
      f_addr_q <= addr_q + spm_base_i;
      f_tag_q  <= {trans_q, row_q == '0, row_last && n_last};
    end
    if (arrive && f_come_q == f_sel) f_word_q <= {spm_rd_exp_i, spm_rd_data_i};
  end
  `CT_ASSUME(BufferInOrder_M, flush_i || !f_here || f_gone_q != f_sel || {word_trans_o, word_o} == {f_tag_q[2], f_word_q})
  `CT_ASSERT(OnItsWay_A, (!f_in_req || {req_tag_q, req_addr_q} == {f_tag_q, f_addr_q}) &&
                         (!f_in_t1 || {t1_tag_q, t1_addr_q} == {f_tag_q, f_addr_q}) && (!f_in_t2 || {t2_tag_q, t2_addr_q} == {f_tag_q, f_addr_q}))
  `CT_ASSERT(ComesAsAsked_A, !(arrive && f_come_q == f_sel) || (err_addr_o == f_addr_q && kdone_o == f_tag_q[0]))
  `CT_ASSERT(PutAsCame_A, put == arrive && (!(put && f_come_q == f_sel) || put_word == {f_tag_q[2], spm_rd_exp_i, spm_rd_data_i}))
  // It goes on in its turn and as it came.
  `CT_ASSERT(GoesOnInTurn_A, !(pop_i && !flush_i && f_gone_q == f_sel) || (f_up && f_here && word_o == f_word_q && word_trans_o == f_tag_q[2]))
  `CT_ASSERT(NoneUnasked_A, !pop_i || f_held != '0)

  // Commands are whole tiles: a word's number is its row, and the words of a tile are of one kind.
  logic [5:0] f_n_req, f_n_t1;  // the numbers of the words on their way
  assign f_n_t1  = f_come_q + 6'(t2_vld_q);
  assign f_n_req = f_n_t1 + 6'(t1_vld_q);
  `CT_ASSERT(RowIsNumber_A, f_dirty_q || (cur_vld_q ? row_q == f_asked_q[3:0] && (row_q == '0 || f_kind_q[f_asked_q[5:4]] == trans_q) : f_asked_q[3:0] == '0))
  `CT_ASSERT(KindOfTile_A, f_dirty_q || ((!req_vld_q || req_tag_q[2] == f_kind_q[f_n_req[5:4]]) && (!t1_vld_q || t1_tag_q[2] == f_kind_q[f_n_t1[5:4]]) &&
                                         (!t2_vld_q || t2_tag_q[2] == f_kind_q[f_come_q[5:4]])))
  `CT_ASSERT(TagOfKind_A, f_dirty_q || !f_up || f_tag_q[2] == f_kind_q[f_sel[5:4]])
  `CT_ASSERT(StopsWhenHalted_A, !(halt_i || flush_i) || (!fire && !load))
  `CT_ASSERT(PermittedFirst_A, !(fire && k_start) || perm_q != '0)
  // A request stays as it is until it is taken.
  logic        f_kept_q;
  logic [19:0] f_req_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_kept_q <= 1'b0;
    else         f_kept_q <= spm_rd_valid_o && !spm_rd_ready_i && !flush_i;
  end
  always_ff @(posedge clk_i) f_req_q <= spm_rd_addr_o;
  `CT_ASSERT(KeepsRequest_A, !f_kept_q || (spm_rd_valid_o && spm_rd_addr_o == f_req_q))
