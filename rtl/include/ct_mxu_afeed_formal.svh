// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu_afeed (tb/formal/ct_mxu_afeed.proof), included at its end.

  // What ct_mxu_agen keeps to (AsksInOrder_A, AsksWholeTiles_A, RoomOfRows_A there). A request stays until it is taken. A tile that was given a buffer is
  // asked for word by word, and nothing else before its last word is taken; a row as it is only while the transposer has nothing of its context.
  logic [1:0]  f_mid_q, f_tbuf_q;  // words of a tile are to be asked for, for this buffer, ...
  logic [7:0]  f_idx_q;            // ... from this one on
  logic [1:0]  f_kept_q, f_own_q, f_flush_q, f_given, f_tail, f_asks;
  logic [57:0] f_req_q, f_req;
  logic [1:0]  f_pad;
  always_comb begin
    f_given = alloc_i & alloc_ok_o;
    f_pad   = (Conv != 0) ? req_pad_i : 2'b00;
    for (int c = 0; c < 2; c++) begin
      f_req[29*c +: 29] = {req_addr_i[20*c +: 20], req_trans_i[c], req_buf_i[c], req_idx_i[4*c +: 4], req_klast_i[c], req_walk_i[c], req_pad_i[c]};
      f_tail[c] = req_ready_o[c] && req_trans_i[c] && req_idx_i[4*c +: 4] == 4'd15;
      f_asks[c] = (!f_kept_q[c] || (req_valid_i[c] && f_req[29*c +: 29] == f_req_q[29*c +: 29])) &&
                  (!req_valid_i[c] || (req_trans_i[c] ? f_mid_q[c] && req_buf_i[c] == f_tbuf_q[c] && req_idx_i[4*c +: 4] == f_idx_q[4*c +: 4]
                                                      : !f_mid_q[c] && (f_kept_q[c] || !f_own_q[c]))) &&
                  (!alloc_i[c] || (!flush_i[c] && !halt_i[c])) && (!alloc_i[c] || !all_taken[c] || !f_mid_q[c] || f_tail[c]);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_mid_q   <= 2'b00;
      f_kept_q  <= 2'b00;
      f_own_q   <= 2'b00;
      f_flush_q <= 2'b00;
    end else begin
      f_mid_q   <= ((f_mid_q & ~f_tail) | f_given) & ~flush_i;
      f_kept_q  <= req_valid_i & ~req_ready_o & ~flush_i;
      f_own_q   <= own_o;
      f_flush_q <= flush_i;
    end
  end
  always_ff @(posedge clk_i) begin
    for (int c = 0; c < 2; c++) begin
      f_req_q[29*c +: 29] <= f_req[29*c +: 29];
      if (f_given[c]) begin
        f_tbuf_q[c]        <= alloc_buf_o;
        f_idx_q[4*c +: 4]  <= '0;
      end else if (req_ready_o[c] && req_trans_i[c]) begin
        f_idx_q[4*c +: 4]  <= f_idx_q[4*c +: 4] + 4'd1;
      end
    end
  end
  `CT_ASSUME(AsksInOrder_M, f_asks == 2'b11)
  // What ct_mxu_agen relies on: a buffer is given when all words before have been taken; a context has something here from then on, not before.
  logic [1:0] f_gave_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_gave_q <= 2'b00;
    else         f_gave_q <= f_given;
  end
  `CT_ASSERT(GivenInTurn_A, (f_given & req_valid_i & ~req_ready_o) == 2'b00 && (alloc_ok_o & ~alloc_i) == 2'b00)
  `CT_ASSERT(OwnsWhatItFills_A, (f_mid_q & ~own_o) == 2'b00 && (own_o & ~f_own_q & ~f_gave_q) == 2'b00)

  // Rows of each context by number, modulo 128: asked for (one as it is when its request is taken, those of a tile when it is given a buffer), come to the
  // row buffer, popped. With a flush they begin anew.
  logic [13:0] f_asked_q, f_come_q, f_gone_q, f_next, f_base_q;  // f_base_q: of the tile in buffer b, the number of its first row
  logic [6:0]  f_obase_q;                                        // ... of the tile that leaves
  logic [1:0]  f_as_is, f_room, f_put;
  always_comb begin
    f_put = wr_direct | wr_turned;
    for (int c = 0; c < 2; c++) begin
      f_as_is[c]        = req_ready_o[c] && !req_trans_i[c];
      f_next[7*c +: 7]  = f_asked_q[7*c +: 7] + 7'(f_as_is[c]);
      f_room[c]         = (!f_given[c] || f_next[7*c +: 7] - f_gone_q[7*c +: 7] <= 7'd48) &&
                          (!(req_valid_i[c] && !req_trans_i[c]) || f_asked_q[7*c +: 7] - f_gone_q[7*c +: 7] <= 7'd63);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_asked_q <= '0;
      f_come_q  <= '0;
      f_gone_q  <= '0;
    end else begin
      for (int c = 0; c < 2; c++) begin
        f_asked_q[7*c +: 7] <= flush_i[c] ? 7'd0 : f_next[7*c +: 7] + (f_given[c] ? 7'(alloc_rows_i[4*c +: 4]) + 7'd1 : 7'd0);
        f_come_q[7*c +: 7]  <= flush_i[c] ? 7'd0 : f_come_q[7*c +: 7] + 7'(f_put[c]);
        f_gone_q[7*c +: 7]  <= flush_i[c] ? 7'd0 : f_gone_q[7*c +: 7] + 7'(pop_i[c]);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (alloc && !alloc_buf_o) f_base_q[6:0]  <= alloc_ctx ? f_next[13:7] : f_next[6:0];
    if (alloc && alloc_buf_o)  f_base_q[13:7] <= alloc_ctx ? f_next[13:7] : f_next[6:0];
    if (pick) f_obase_q <= pick_buf ? f_base_q[13:7] : f_base_q[6:0];
  end
  // (The row buffer has a place for each that is asked for.)
  `CT_ASSUME(RoomOfRows_M, f_room == 2'b11)

  // Words of the tile in buffer b that have come; f_fresh: b has a tile that does not leave yet.
  logic [9:0] f_got_q;
  logic [3:0] f_way;   // how many are on their way
  logic [1:0] f_fresh;
  logic [1:0] f_new_q;  // of context c, the buffer given last
  always_comb begin
    for (int b = 0; b < 2; b++) begin
      f_way[2*b +: 2] = 2'(t1_vld_q && t1_q.trans && t1_q.tbuf == b[0]) + 2'(t2_vld_q && t2_q.trans && t2_q.tbuf == b[0]);
      f_fresh[b]      = own_vld_q[b] && !(out_vld_q && out_buf_q == b[0] && !released_q);
    end
  end
  always_ff @(posedge clk_i) begin
    for (int b = 0; b < 2; b++) begin
      if (alloc && alloc_buf_o == b[0])               f_got_q[5*b +: 5] <= 5'd0;
      else if (arrive_trans && t2_q.tbuf == b[0]) f_got_q[5*b +: 5] <= f_got_q[5*b +: 5] + 5'd1;
    end
    if (f_given[0]) f_new_q[0] <= alloc_buf_o;
    if (f_given[1]) f_new_q[1] <= alloc_buf_o;
  end

  // Buffers: what is asked for, on its way and here of a tile adds up, and it is complete when its sixteen words are here.
  logic [1:0] f_filled, f_leaves, f_midok, f_clear;
  logic [3:0] f_rest;   // rows that leave after this one
  logic       f_t1ok, f_t2ok;
  assign f_rest = out_rows_q - out_col_q;
  always_comb begin
    for (int b = 0; b < 2; b++) begin
      f_filled[b] = f_fresh[b] ? f_got_q[5*b +: 5] + 5'(f_way[2*b +: 2]) <= 5'd16 && tile_in_q[b] == (f_got_q[5*b +: 5] == 5'd16) &&
                                 (f_mid_q[own_ctx_q[b]] && f_tbuf_q[own_ctx_q[b]] == b[0]) == (f_got_q[5*b +: 5] + 5'(f_way[2*b +: 2]) != 5'd16)
                               : f_way[2*b +: 2] == 2'd0 && !tile_in_q[b];
      f_midok[b]  = !f_mid_q[b] || (f_fresh[f_tbuf_q[b]] && own_ctx_q[f_tbuf_q[b]] == b[0] &&
                                    5'(f_idx_q[4*b +: 4]) == (f_tbuf_q[b] ? f_got_q[9:5] + 5'(f_way[3:2]) : f_got_q[4:0] + 5'(f_way[1:0])));
      // A buffer that was given away while its last tile leaves has nothing before that has left.
      f_clear[b]  = !(f_fresh[b] && out_vld_q && out_buf_q == b[0]) ||
                    (f_got_q[5*b +: 5] == 5'd0 && f_rest <= 4'd2 && (f_way[2*b +: 2] == 2'd0 || f_rest <= 4'd1) &&
                     (!(t2_vld_q && t2_q.trans && t2_q.tbuf == b[0]) || f_rest == 4'd0));
    end
    f_t2ok = !(t2_vld_q && t2_q.trans) || (f_fresh[t2_q.tbuf] && own_ctx_q[t2_q.tbuf] == t2_q.ctx &&
                                           5'(t2_q.idx) == (t2_q.tbuf ? f_got_q[9:5] : f_got_q[4:0]));
    f_t1ok = !(t1_vld_q && t1_q.trans) || (f_fresh[t1_q.tbuf] && own_ctx_q[t1_q.tbuf] == t1_q.ctx &&
                                           5'(t1_q.idx) == (t1_q.tbuf ? f_got_q[9:5] : f_got_q[4:0]) + 5'(t2_vld_q && t2_q.trans && t2_q.tbuf == t1_q.tbuf));
  end
  `CT_ASSERT(TileCounted_A, f_filled == 2'b11 && f_midok == 2'b11 && f_t1ok && f_t2ok)
  `CT_ASSERT(LeavesWhole_A, !out_vld_q || (out_col_q <= out_rows_q && (released_q ? f_rest <= 4'd3 : own_vld_q[out_buf_q] && own_ctx_q[out_buf_q] == out_ctx_q)))
  `CT_ASSERT(NotWrittenOver_A, f_clear == 2'b11)

  // Rows of any context: what is on its way, in the transposer, in its buffers, in this order, has the numbers from come to asked.
  (* anyconst *) logic f_ctx;
  logic [1:0] f_counted, f_order, f_apart, f_noplace, f_none;
  logic [1:0] f_a1, f_a2, f_lv, f_rv, f_tv, f_m0, f_m1;
  logic [6:0] f_p0, f_p1, f_e0, f_e1;
  assign f_e0 = f_base_q[6:0]  + 7'(rows_q[3:0]) + 7'd1;
  assign f_e1 = f_base_q[13:7] + 7'(rows_q[7:4]) + 7'd1;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_a1[c] = t1_vld_q && !t1_q.trans && t1_q.ctx == c[0];
      f_a2[c] = t2_vld_q && !t2_q.trans && t2_q.ctx == c[0];
      f_lv[c] = out_vld_q && out_ctx_q == c[0];
      f_rv[c] = row_vld_q && row_ctx_q == c[0];
      f_tv[c] = Conv != 0 && turned_vld && turned_ctx == c[0];  // (without walks that is the same row)
      f_m0[c] = f_fresh[0] && own_ctx_q[0] == c[0];
      f_m1[c] = f_fresh[1] && own_ctx_q[1] == c[0];
      f_p0 = f_come_q[7*c +: 7] + 7'(f_a1[c]) + 7'(f_a2[c]) + 7'(f_rv[c]) + 7'(f_tv[c]);
      f_p1 = f_lv[c] ? f_obase_q + 7'(out_rows_q) + 7'd1 : f_p0;
      f_counted[c] = count_q[7*c +: 7] == f_come_q[7*c +: 7] - f_gone_q[7*c +: 7] && wptr_q[6*c +: 6] == f_come_q[7*c +: 6] && rptr_q[6*c +: 6] == f_gone_q[7*c +: 6] &&
                     f_asked_q[7*c +: 7] - f_gone_q[7*c +: 7] <= 7'd64 &&
                     f_asked_q[7*c +: 7] - f_come_q[7*c +: 7] <= f_asked_q[7*c +: 7] - f_gone_q[7*c +: 7];
      case ({f_m1[c], f_m0[c]})
        2'b00:   f_order[c] = f_p1 == f_asked_q[7*c +: 7];
        2'b01:   f_order[c] = f_new_q[c] == 1'b0 && f_base_q[6:0]  == f_p1 && f_e0 == f_asked_q[7*c +: 7];
        2'b10:   f_order[c] = f_new_q[c] == 1'b1 && f_base_q[13:7] == f_p1 && f_e1 == f_asked_q[7*c +: 7];
        default: f_order[c] = f_new_q[c] ? f_base_q[6:0]  == f_p1 && f_base_q[13:7] == f_e0 && f_e1 == f_asked_q[7*c +: 7] &&
                                           (!f_mid_q[c] || f_tbuf_q[c]) && (f_got_q[4:0] == 5'd16 || (f_got_q[9:5] == 5'd0 && !(t2_vld_q && t2_q.trans && t2_q.tbuf)))
                                         : f_base_q[13:7] == f_p1 && f_base_q[6:0]  == f_e1 && f_e0 == f_asked_q[7*c +: 7] &&
                                           (!f_mid_q[c] || !f_tbuf_q[c]) && (f_got_q[9:5] == 5'd16 || (f_got_q[4:0] == 5'd0 && !(t2_vld_q && t2_q.trans && !t2_q.tbuf)));
      endcase
      if (f_lv[c] && f_obase_q + 7'(out_col_q) != f_p0) f_order[c] = 1'b0;
      // Rows as they are are on their way or asked for: nothing of the context is in the transposer; a tile may have begun to come behind them.
      f_none[c]  = !f_lv[c] && !f_rv[c] && !f_tv[c] && !(f_m0[c] && f_got_q[4:0] != '0) && !(f_m1[c] && f_got_q[9:5] != '0);
      f_apart[c] = (!(f_a1[c] || f_a2[c]) || f_none[c]) && !(f_a1[c] && t2_vld_q && t2_q.trans && t2_q.ctx == c[0]) &&
                   (!(req_valid_i[c] && !req_trans_i[c]) || (f_none[c] && !f_m0[c] && !f_m1[c]));
      // A place is not read while it is written.
      f_noplace[c] = !(pop_i[c] && f_put[c] && wptr_q[6*c +: 6] == rptr_q[6*c +: 6]) && !(f_put[c] && count_q[7*c +: 7] == 7'd64);
    end
  end
  `CT_ASSERT(RowsAddUp_A, f_counted[f_ctx])
  `CT_ASSERT(RowsInOrder_A, f_order[f_ctx])
  `CT_ASSERT(RowsApart_A, f_apart[f_ctx])
  `CT_ASSERT(RowHasPlace_A, f_noplace[f_ctx])

  // Of a request that was granted two cycles ago, and of no other, the answer is here; unless its context was flushed since.
  tag_t f_r1_q, f_r2_q;
  logic f_r1_vld_q, f_r2_vld_q, f_here;
  assign f_here = f_r2_vld_q && !flush_i[f_r2_q.ctx];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_r1_vld_q <= 1'b0;
      f_r2_vld_q <= 1'b0;
    end else begin
      f_r1_vld_q <= req_ready_o != 2'b00 && (req_ready_o & flush_i) == 2'b00;
      f_r2_vld_q <= f_r1_vld_q && !flush_i[f_r1_q.ctx];
    end
  end
  always_ff @(posedge clk_i) begin
    f_r1_q.ctx   <= req_ready_o[1];
    f_r1_q.trans <= req_ready_o[1] ? req_trans_i[1] : req_trans_i[0];
    f_r1_q.tbuf  <= req_ready_o[1] ? req_buf_i[1] : req_buf_i[0];
    f_r1_q.idx   <= req_ready_o[1] ? req_idx_i[7:4] : req_idx_i[3:0];
    f_r1_q.klast <= req_ready_o[1] ? req_klast_i[1] : req_klast_i[0];
    f_r1_q.walk  <= Conv != 0 && (req_ready_o & req_walk_i) != 2'b00;
    f_r1_q.pad   <= Conv != 0 && (req_ready_o & req_pad_i) != 2'b00;
    f_r1_q.addr  <= req_ready_o[1] ? req_addr_i[39:20] : req_addr_i[19:0];
    f_r2_q       <= f_r1_q;
  end
  `CT_ASSERT(AnswersAsAsked_A, t1_vld_q == f_r1_vld_q && (!t1_vld_q || t1_q == f_r1_q) && t2_vld_q == f_r2_vld_q && (!t2_vld_q || t2_q == f_r2_q))
  // The arbiters serve somebody if anybody asks: no operation has more than one slot (WorkConserving_A, OpenIsLocked_A of ct_arbiter).
  `CT_ASSUME(ArbitersServe_M, (gnt != 2'b00 || req_valid_i == 2'b00) && (alloc_gnt != 2'b00 || (alloc_i & {!alone, 1'b1}) == 2'b00))
  `CT_ASSERT(PortGivesItself_A, req_ready_o != 2'b11 && (req_ready_o & ~req_valid_i) == 2'b00 &&
                                ((req_ready_o & ~f_pad) != 2'b00) == (spm_rd_valid_o && spm_rd_ready_i) &&
                                (req_ready_o == 2'b00 || (spm_rd_ctx_o == req_ready_o[1] && spm_rd_addr_o == (req_ready_o[1] ? req_addr_i[39:20] : req_addr_i[19:0]))))
  // What is padding is not read, and waits for nobody who reads.
  `CT_ASSERT(PaddingIsNotRead_A, !(spm_rd_valid_o && f_pad[spm_rd_ctx_o]) && (gnt & f_pad & ~req_ready_o) == 2'b00)
  `CT_ASSERT(StepEndsOnce_A, kdone_o == (f_here && f_r2_q.klast ? {f_r2_q.ctx, !f_r2_q.ctx} : 2'b00))
  `CT_ASSERT(ParityToOwner_A, err_perr_o == (f_here && spm_rd_perr_i && !f_r2_q.pad ? {f_r2_q.ctx, !f_r2_q.ctx} : 2'b00) &&
                              ((err_perr_o | err_square_o) == 2'b00 || err_addr_o == f_r2_q.addr))

  // Any row of any context, and of it any byte: as the word came whose row it is or, if the row is a column of a tile (any one), its byte of this byte's word,
  // with Conv aligned to the largest exponent of the tile.
  (* anyconst *) logic [6:0] f_sel;
  (* anyconst *) logic [3:0] f_byte, f_col;
  (* anyconst *) logic [2:0] f_bit;         // (in the row buffer bit by bit, which the solver finds faster)
  logic [6:0] f_asked, f_come, f_gone;
  logic [1:0] f_mine;          // the row is column f_col of the tile of buffer b
  logic       f_granted, f_of_tile;
  logic [3:0] f_hit;           // the request that is taken: another word of its tile, the first one, the byte's word, the row itself
  logic [3:0] f_h1_q, f_h2_q;  // these, a cycle and two later
  logic [7:0] f_in_row, f_in_col, f_val_q;
  logic [7:0] f_in_exp;               // of the word that has come
  logic [7:0] f_exp_q, f_own_exp_q;  // of the row that comes of it, of the byte's word
  logic       f_same_q;              // all words of the tile so far had one exponent
  assign f_asked   = f_ctx ? f_asked_q[13:7] : f_asked_q[6:0];
  assign f_come    = f_ctx ? f_come_q[13:7] : f_come_q[6:0];
  assign f_gone    = f_ctx ? f_gone_q[13:7] : f_gone_q[6:0];
  assign f_mine    = {f_fresh[1] && own_ctx_q[1] == f_ctx && f_sel == f_base_q[13:7] + 7'(f_col) && f_col <= rows_q[7:4],
                      f_fresh[0] && own_ctx_q[0] == f_ctx && f_sel == f_base_q[6:0] + 7'(f_col) && f_col <= rows_q[3:0]};
  assign f_granted = f_ctx ? req_ready_o[1] && !flush_i[1] : req_ready_o[0] && !flush_i[0];
  assign f_of_tile = f_granted && req.trans && f_mine[req.tbuf];
  assign f_hit     = {f_of_tile && req.idx != '0, f_of_tile && req.idx == '0, f_of_tile && req.idx == f_byte, f_granted && !req.trans && f_asked == f_sel};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_h1_q <= '0;
      f_h2_q <= '0;
    end else begin
      f_h1_q <= f_hit;
      f_h2_q <= flush_i[f_ctx] ? '0 : f_h1_q;
    end
  end
  assign f_in_exp = f_r2_q.pad ? 8'd0 : spm_rd_exp_i;
  assign f_in_row = spm_rd_data_i[{f_byte, 3'd0} +: 8];
  assign f_in_col = spm_rd_data_i[{f_col, 3'd0} +: 8];
  always_ff @(posedge clk_i) begin
    if (f_h2_q[0])      f_val_q <= f_in_row;
    else if (f_h2_q[1]) f_val_q <= f_in_col;
    if (f_h2_q[1])      f_own_exp_q <= f_in_exp;
    if (f_h2_q[0] || f_h2_q[2] || (Conv != 0 && f_h2_q[3] && f_in_exp > f_exp_q)) f_exp_q <= f_in_exp;
    if (f_h2_q[3:2] != 2'b00) f_same_q <= f_h2_q[2] || (f_same_q && f_in_exp == f_exp_q);
  end
  // SQUARE: a word of its tile, which is none of a walk, came with another exponent than the first one. (Of a tile that has had such a word already nothing is said.)
  `CT_ASSERT(SquareOfTile_A, !(f_h2_q[3:1] != '0 && f_here) || (Conv != 0 && f_h2_q[3] && !f_same_q && !f_r2_q.walk) ||
                             err_square_o[f_ctx] == (f_h2_q[3] && !spm_rd_perr_i && !f_r2_q.walk && spm_rd_exp_i != f_exp_q))
  `CT_ASSERT(SquareToOwner_A, (err_square_o & ~(f_here && f_r2_q.trans && !f_r2_q.walk && f_r2_q.idx != '0 ? {f_r2_q.ctx, !f_r2_q.ctx} : 2'b00)) == 2'b00)

  // The transposer's memory is proven by itself (ct_mxu_transpose) and cut away: what leaves is a column of what was written two cycles ago or before.
  logic f_wr_vld_q, f_wr_buf_q, f_read_q;
  logic [7:0] f_wr_q, f_mem0_q, f_mem1_q, f_turned_q, f_see0, f_see1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_wr_vld_q <= 1'b0;
    else         f_wr_vld_q <= arrive_trans && t2_q.idx == f_byte;
  end
  always_ff @(posedge clk_i) begin
    f_wr_buf_q <= t2_q.tbuf;
    f_wr_q     <= f_in_col;
    if (f_wr_vld_q && !f_wr_buf_q) f_mem0_q <= f_wr_q;
    if (f_wr_vld_q && f_wr_buf_q)  f_mem1_q <= f_wr_q;
    if (out_vld_q) begin
      f_turned_q <= out_buf_q ? f_mem1_q : f_mem0_q;
      f_read_q   <= out_col_q == f_col;
    end
  end
  `CT_ASSUME(Turns_M, !f_read_q || row_data[{f_byte, 3'd0} +: 8] == f_turned_q)

  // So is ct_mxu_gather: the exponent of a tile is the largest of the words that have come; a byte that has left the transposer is aligned a cycle later, by what the
  // exponent of its word is below that of the tile picked two cycles ago.
  function automatic logic [7:0] f_align(input logic [7:0] value, input logic [7:0] below, input logic zero);
    logic signed [14:0] shifted;
    shifted = $signed({value, 7'd0}) >>> below[2:0];
    f_align = zero || below >= 8'd8 ? 8'd0 : shifted[14:7] + 8'(shifted[6] && (shifted[5:0] != '0 || shifted[7]));
  endfunction
  logic [7:0] f_top0_q, f_top1_q, f_word0_q, f_word1_q;  // of buffer b: the largest exponent, that of the byte's word
  logic       f_picked_q, f_read2_q, f_tile_zero;
  logic [8:0] f_pick_q, f_shift_q, f_shift, f_want;      // {the word is 0, how far it is below}: of the tile picked last, as it is applied now, and to the column that is read
  logic [7:0] f_aligned_q, f_final, f_tile_top, f_tile_word;
  assign f_tile_top  = pick_buf ? f_top1_q : f_top0_q;
  assign f_tile_word = pick_buf ? f_word1_q : f_word0_q;
  assign f_tile_zero = f_tile_word == 8'd0;
  assign f_shift     = f_picked_q ? f_pick_q : f_shift_q;
  assign f_want      = {f_own_exp_q == 8'd0, f_exp_q - f_own_exp_q};
  assign f_final     = Conv != 0 ? f_align(f_val_q, f_want[7:0], f_want[8]) : f_val_q;
  always_ff @(posedge clk_i) begin
    if (arrive_trans) begin
      if (!t2_q.tbuf && (t2_q.idx == '0 || in_exp > f_top0_q)) f_top0_q <= in_exp;
      if (t2_q.tbuf && (t2_q.idx == '0 || in_exp > f_top1_q))  f_top1_q <= in_exp;
      if (!t2_q.tbuf && t2_q.idx == f_byte) f_word0_q <= in_exp;
      if (t2_q.tbuf && t2_q.idx == f_byte)  f_word1_q <= in_exp;
    end
    f_picked_q <= pick;
    if (pick) f_pick_q <= {f_tile_zero, f_tile_top - f_tile_word};
    if (f_picked_q) f_shift_q <= f_pick_q;
    f_aligned_q <= f_align(f_turned_q, f_shift_q[7:0], f_shift_q[8]);
    f_read2_q   <= f_read_q;
  end
  `CT_ASSUME(Tops_M, Conv == 0 || exps == {f_top1_q, f_top0_q})
  `CT_ASSUME(Aligns_M, Conv == 0 || !f_read2_q || turned_data[{f_byte, 3'd0} +: 8] == f_aligned_q)

  logic [3:0] f_at_t1, f_at_t2;
  logic       f_mine1, f_mine2, f_stays;
  assign f_see0  = f_wr_vld_q && !f_wr_buf_q ? f_wr_q : f_mem0_q;
  assign f_see1  = f_wr_vld_q && f_wr_buf_q  ? f_wr_q : f_mem1_q;
  assign f_mine1 = t1_vld_q && t1_q.trans && f_mine[t1_q.tbuf];
  assign f_mine2 = t2_vld_q && t2_q.trans && f_mine[t2_q.tbuf];
  assign f_at_t1 = {f_mine1 && t1_q.idx != '0, f_mine1 && t1_q.idx == '0, f_mine1 && t1_q.idx == f_byte, f_a1[f_ctx] && f_come + 7'(f_a2[f_ctx]) == f_sel};
  assign f_at_t2 = {f_mine2 && t2_q.idx != '0, f_mine2 && t2_q.idx == '0, f_mine2 && t2_q.idx == f_byte, f_a2[f_ctx] && f_come == f_sel};
  assign f_stays = f_lv[f_ctx] && f_sel == f_obase_q + 7'(f_col) && f_col <= out_rows_q && f_col >= out_col_q;
  `CT_ASSERT(OnItsWay_A, f_h1_q == f_at_t1 && f_h2_q == f_at_t2)
  `CT_ASSERT(InBuffer_A, (!f_mine[0] || ((f_got_q[4:0] <= 5'(f_byte) || (f_see0 == f_val_q && f_word0_q == f_own_exp_q)) && (f_got_q[4:0] == '0 || exps[7:0] == f_exp_q))) &&
                         (!f_mine[1] || ((f_got_q[9:5] <= 5'(f_byte) || (f_see1 == f_val_q && f_word1_q == f_own_exp_q)) && (f_got_q[9:5] == '0 || exps[15:8] == f_exp_q))))
  `CT_ASSERT(Leaves_A, !(out_vld_q && f_wr_vld_q && f_wr_buf_q == out_buf_q) && (!f_stays || ((out_buf_q ? f_mem1_q : f_mem0_q) == f_val_q && out_exp_q == f_exp_q && f_shift == f_want)))
  // (A row that is not this column of a tile, or that came as it is, is not followed: f_seen_q.)
  logic         f_seen_q;
  logic [7:0]   f_lies_q;  // what it is there: the byte as it came, or aligned
  logic [135:0] f_place;
  assign f_place      = f_ctx ? rows1[f_sel[5:0]] : rows0[f_sel[5:0]];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_seen_q <= 1'b0;
    else if (f_put[f_ctx] && f_come == f_sel) f_seen_q <= !wr_turned[f_ctx] || (Conv != 0 ? f_read2_q : f_read_q);
  end
  always_ff @(posedge clk_i) begin
    if (f_put[f_ctx] && f_come == f_sel) f_lies_q <= wr_turned[f_ctx] ? f_final : f_in_row;
  end
  `CT_ASSERT(HasCome_A, !(f_put[f_ctx] && f_come == f_sel) || (wr_turned[f_ctx] ? f_h2_q == '0 : f_h2_q[0]))
  `CT_ASSERT(LeftAlone_A, f_h2_q == '0 || !(f_sel - f_gone < f_come - f_gone))
  `CT_ASSERT(Turned_A, !(f_rv[f_ctx] && f_come + 7'(f_tv[f_ctx]) == f_sel && f_read_q) ||
                       (f_turned_q == f_val_q && row_exp_q == f_exp_q && f_shift_q == f_want))
  `CT_ASSERT(AlignedInTurn_A, !(f_tv[f_ctx] && f_come == f_sel && f_read2_q) || (f_aligned_q == f_final && turned_exp == f_exp_q))
  `CT_ASSERT(InRowBuffer_A, !(f_seen_q && f_sel - f_gone < f_come - f_gone) || (f_place[{1'b0, f_byte, f_bit}] == f_lies_q[f_bit] && f_place[135:128] == f_exp_q))
  // It is popped in its turn, and stays until the next one is.
  logic       f_popped_q;
  logic [7:0] f_pval_q;
  logic [7:0] f_pexp_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)             f_popped_q <= 1'b0;
    else if (pop_i != 2'b00) f_popped_q <= pop_i[f_ctx] && f_gone == f_sel && f_seen_q;
  end
  always_ff @(posedge clk_i) begin
    if (pop_i != 2'b00) {f_pval_q, f_pexp_q} <= {f_lies_q, f_exp_q};
  end
  `CT_ASSERT(PoppedInTurn_A, !f_popped_q || (pop_ctx_q == f_ctx && row_o[{1'b0, f_byte, f_bit}] == f_pval_q[f_bit] && row_o[135:128] == f_pexp_q))

  // Waits. A complete tile leaves after the one that leaves.
  logic [7:0] f_waits_q;
  logic [1:0] f_bound;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_waits_q <= '0;
    end else begin
      for (int b = 0; b < 2; b++) f_waits_q[4*b +: 4] <= tile_in_q[b] && !(pick && pick_buf == b[0]) && !flush_buf[b] ? f_waits_q[4*b +: 4] + 4'd1 : 4'd0;
    end
  end
  always_comb begin
    for (int b = 0; b < 2; b++) f_bound[b] = !tile_in_q[b] || !out_vld_q || 5'(f_waits_q[4*b +: 4]) + 5'(f_rest) <= 5'd15;
  end
  `CT_ASSERT(LeavesSoon_A, f_bound == 2'b11 && (tile_in_q == 2'b00 || out_vld_q || pick) && (tile_in_q == 2'b00 || f_waits_q[3:0] + f_waits_q[7:4] != 4'd15 || pick))
  // PRIORITY, floor 0.
  `CT_ASSERT(NoneWhileWaiting_A, !strict || ((!req_valid_i[0] || !req_ready_o[1]) && (!(alloc_i[0] || (own_o[0] && !halt_i[0])) || !alloc_ok_o[1])))
  // Inference waits f_lost_q cycles for a buffer and f_due more at most: one of the two has all of its words, here or on their way, so it leaves.
  logic [4:0] f_lost_q, f_due, f_before;
  logic       f_waits;
  assign f_waits  = strict && alloc_i[0] && all_taken[0] && !alloc_ok_o[0] && !flush_i[1];
  assign f_before = out_vld_q ? 5'(f_rest) + 5'd1 : 5'd1;  // cycles until the next tile can begin to leave
  always_comb begin
    f_due = 5'd16;
    if (t1_vld_q && t1_q.trans && t1_q.idx == 4'd15) f_due = 5'd12 + (f_before > 5'd3 ? f_before : 5'd3);
    if (t2_vld_q && t2_q.trans && t2_q.idx == 4'd15) f_due = 5'd12 + (f_before > 5'd2 ? f_before : 5'd2);
    if (tile_in_q != 2'b00)       f_due = 5'd12 + f_before;
    if (out_vld_q && !released_q) f_due = f_rest > 4'd4 ? 5'(f_rest) - 5'd3 : 5'd1;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_lost_q <= '0;
    else         f_lost_q <= f_waits ? f_lost_q + 5'd1 : 5'd0;
  end
  `CT_ASSERT(WaitAndDue_A, !f_waits || 6'(f_lost_q) + 6'(f_due) <= 6'd16)
  `CT_ASSERT(WaitBound_A, f_lost_q <= 5'd16)
  // A flush leaves nothing.
  `CT_ASSERT(FlushEmpties_A, (f_flush_q & (avail_o | own_o | kdone_o | err_perr_o | err_square_o)) == 2'b00)
