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
      f_gone_q  <= flush_i ? 6'(buf_vld) - f_held : f_gone_q + 6'(pop);
    end
  end
  always_ff @(posedge clk_i) begin
    if (fire && row_q == '0) f_kind_q[f_asked_q[5:4]] <= trans_q;
  end
  // The buffer is proven by itself (ct_fifo) and cut away: words come out as they went in and in order, and none comes from nothing.
  logic [5:0] f_buffered_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_buffered_q <= '0;
    else         f_buffered_q <= f_buffered_q + 6'(put) - 6'((pop || flush_i) && buf_vld);
  end
  `CT_ASSUME(BufferHolds_M, buf_vld == (f_buffered_q != '0) && buf_ready == (f_buffered_q != 6'(Depth)))
  `CT_ASSERT(Buffered_A, f_buffered_q == f_held)
  `CT_ASSUME(BufferKinds_M, flush_i || !buf_vld || buf_trans == f_kind_q[f_gone_q[5:4]])

  // A place is kept for each word, from the request on.
  `CT_ASSERT(PlacesKept_A, f_held <= 6'(Depth) && (f_dirty_q ? free_q == FreeW'(Depth) && f_way == '0 && !cur_vld_q && f_asked_q == '0 && f_come_q == '0 :
                                                               6'(free_q) + f_way + f_held == 6'(Depth)))
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
  `CT_ASSUME(BufferInOrder_M, flush_i || !f_here || f_gone_q != f_sel || {buf_trans, buf_word} == {f_tag_q[2], f_word_q})
  `CT_ASSERT(OnItsWay_A, (!f_in_req || {req_tag_q, req_addr_q} == {f_tag_q, f_addr_q}) &&
                         (!f_in_t1 || {t1_tag_q, t1_addr_q} == {f_tag_q, f_addr_q}) && (!f_in_t2 || {t2_tag_q, t2_addr_q} == {f_tag_q, f_addr_q}))
  `CT_ASSERT(ComesAsAsked_A, !(arrive && f_come_q == f_sel) || (err_addr_o == f_addr_q && kdone_o == f_tag_q[0]))
  // It goes on in its turn and as it came, into the shadow tile at once or into the transposer.
  `CT_ASSERT(GoesOnInTurn_A, !(pop && f_gone_q == f_sel) || (f_up && word == (f_here ? f_word_q : {spm_rd_exp_i, spm_rd_data_i}) &&
                                                             fill == f_tag_q[2] && direct == !f_tag_q[2]))
  `CT_ASSERT(NoneUnasked_A, !pop || f_held != '0 || arrive)

  // Commands are whole tiles: a word's number is its row, and the words of a tile are of one kind.
  logic f_mid, f_mid_kind;
  assign f_mid      = f_gone_q[3:0] != '0;
  assign f_mid_kind = f_kind_q[f_gone_q[5:4]];
  logic [5:0] f_n_req, f_n_t1;  // the numbers of the words on their way
  assign f_n_t1  = f_come_q + 6'(t2_vld_q);
  assign f_n_req = f_n_t1 + 6'(t1_vld_q);
  `CT_ASSERT(RowIsNumber_A, f_dirty_q || (cur_vld_q ? row_q == f_asked_q[3:0] && (row_q == '0 || f_kind_q[f_asked_q[5:4]] == trans_q) : f_asked_q[3:0] == '0))
  `CT_ASSERT(KindOfTile_A, f_dirty_q || ((!req_vld_q || req_tag_q[2] == f_kind_q[f_n_req[5:4]]) && (!t1_vld_q || t1_tag_q[2] == f_kind_q[f_n_t1[5:4]]) &&
                                         (!t2_vld_q || t2_tag_q[2] == f_kind_q[f_come_q[5:4]])))
  `CT_ASSERT(TagOfKind_A, f_dirty_q || !f_up || f_tag_q[2] == f_kind_q[f_sel[5:4]])
  `CT_ASSERT(RowInPlace_A, f_dirty_q || (f_mid && f_mid_kind ? fill_row_q == f_gone_q[3:0] : fill_row_q == '0))
  `CT_ASSERT(ColumnInPlace_A, f_dirty_q || (f_mid && !f_mid_kind ? idx_q == f_gone_q[3:0] && turner_empty && turn_col_q == '0 && !full_q :
                                                                   idx_q == turn_col_q - 4'(out_vld_q)))
  `CT_ASSERT(WordInPlace_A, (!fill || fill_row_q == f_gone_q[3:0]) && (!direct || ld_idx_o == f_gone_q[3:0]))

  // The transposer: tiles leave in the order in which they came, whole, and none is written over before it has left.
  logic [1:0] f_tiles;
  assign f_tiles = 2'(tile_in_q[0]) + 2'(tile_in_q[1]) + 2'(last_q);
  `CT_ASSERT(TilesInOrder_A, f_dirty_q || (f_tiles <= 2'd2 && turn_buf_q == (fill_buf_q ^ f_tiles[0]) && !(last_q && tile_in_q[!fill_buf_q]) &&
                                           (tile_in_q == 2'b00 || tile_in_q[turn_buf_q]) && (fill_row_q == '0 || !tile_in_q[fill_buf_q]) && (turn_col_q == '0 || tile_in_q[turn_buf_q])))
  `CT_ASSERT(NotWrittenOver_A, !fill || !tile_in_q[fill_buf_q] || (turn_end && turn_buf_q == fill_buf_q))
  `CT_ASSERT(LeavesWhole_A, (!turn || tile_in_q[turn_buf_q]) && (!last_q || f_dirty_q || f_gone_q[3:0] == '0))
  // The shadow tile is left alone from its last column until it is taken.
  `CT_ASSERT(ShadowKept_A, !(full_q && ld_valid_o) && !(full_q && idx_q != '0))
  `CT_ASSERT(OneSource_A, !(direct && out_vld_q))

  `CT_ASSERT(StopsWhenHalted_A, !(halt_i || flush_i) || (!fire && !load))
  `CT_ASSERT(PermittedFirst_A, !(fire && k_start) || perm_q != '0 || permit_i)
  // A request stays as it is until it is taken.
  logic        f_kept_q;
  logic [19:0] f_req_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_kept_q <= 1'b0;
    else         f_kept_q <= spm_rd_valid_o && !spm_rd_ready_i && !flush_i;
  end
  always_ff @(posedge clk_i) f_req_q <= spm_rd_addr_o;
  `CT_ASSERT(KeepsRequest_A, !f_kept_q || (spm_rd_valid_o && spm_rd_addr_o == f_req_q))
