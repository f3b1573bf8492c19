// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu_btile (tb/formal/ct_mxu_btile.proof), included at its end.

  // Of any context: words taken, columns gathered, columns gone, by number, modulo 64. With a flush they begin anew.
  (* anyconst *) logic f_ctx;
  logic [5:0]   f_gone_q, f_put_q, f_left, f_stored;
  logic         f_kind_q;   // the tile of which words have been taken is to be transposed
  logic         f_vld, f_trans, f_pop, f_fill, f_direct, f_put, f_out, f_leave, f_full, f_in, f_last, f_turning, f_gone, f_some, f_held_any;
  logic [3:0]   f_row, f_rd;
  logic [1:0]   f_held;
  logic [2:0]   f_pair;
  logic [135:0] f_word, f_column, f_even, f_odd;
  always_comb begin
    f_gone    = flush_i[f_ctx];
    f_vld     = word_vld_i[f_ctx];
    f_trans   = word_trans_i[f_ctx];
    f_pop     = pop_o[f_ctx];
    f_fill    = fill[f_ctx];
    f_direct  = direct[f_ctx];
    f_put     = put[f_ctx];
    f_out     = out_vld_q && out_ctx_q == f_ctx;
    f_leave   = leave[f_ctx];
    f_full    = full_q[f_ctx];
    f_in      = in_q[f_ctx];
    f_last    = last_q[f_ctx];
    f_turning = turning_q && turn_ctx_q == f_ctx;
    f_row     = f_ctx ? row_q[7:4] : row_q[3:0];
    f_held    = f_ctx ? held_q[3:2] : held_q[1:0];
    f_pair    = f_ctx ? pair_q[5:3] : pair_q[2:0];
    f_word    = f_ctx ? word_i[271:136] : word_i[135:0];
    f_column  = f_ctx ? column[271:136] : column[135:0];
    f_even    = f_ctx ? even_q[271:136] : even_q[135:0];
    f_odd     = f_ctx ? odd_q[271:136] : odd_q[135:0];
    f_rd      = f_turning ? turn_col_q : 4'd0;
    f_some    = f_row != '0 || f_in || f_last || f_out;
    f_left    = f_put_q - 6'(f_held);
    f_stored  = f_gone_q - f_put_q - 6'(f_out);
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_gone_q <= '0;
      f_put_q  <= '0;
    end else begin
      f_gone_q <= f_gone ? 6'd0 : f_gone_q + 6'(f_pop);
      f_put_q  <= f_gone ? 6'd0 : f_put_q + 6'(f_put);
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_pop && f_gone_q[3:0] == '0) f_kind_q <= f_trans;
  end
  // Commands are whole tiles (RowIsNumber_A, KindOfTile_A of ct_mxu_bload).
  `CT_ASSUME(TilesOfAKind_M, !f_vld || f_gone || f_gone_q[3:0] == '0 || f_trans == f_kind_q)

  // Words go on in order: at once, or through the transposer, which then has all that was taken and not gathered.
  `CT_ASSERT(WordInPlace_A, f_row == (f_gone_q[3:0] != '0 && f_kind_q ? f_gone_q[3:0] : 4'd0) && (f_gone_q[3:0] == '0 || f_kind_q || !f_some))
  `CT_ASSERT(ColumnInPlace_A, f_stored == (f_in || f_last ? 6'd16 - 6'(f_rd) : 6'd0) + 6'(f_row) &&
                              (!f_some || (f_turning ? f_put_q[3:0] == f_rd - 4'(f_out) : f_put_q[3:0] == (f_out ? 4'd15 : 4'd0))))
  `CT_ASSERT(TilesInOrder_A, !(f_in && f_last) && (!f_turning || f_in) && (!f_out || f_turning || !(f_in || f_last)) && (f_in || turn_col_q == '0 || !f_turning) &&
                             (!f_last || f_row == '0) && (!f_in || f_row <= f_rd) && (turning_q || turn_col_q == '0) &&
                             rd_turn_q[f_ctx] == (wr_turn_q[f_ctx] ^ (f_in || f_last)))
  `CT_ASSERT(NotWrittenOver_A, !f_fill || (!f_last && (!f_in || (f_turning && f_row < turn_col_q))))
  `CT_ASSERT(TakenOnce_A, f_pop == (f_fill || f_direct) && !(f_fill && f_direct) && (!f_pop || (f_vld && f_fill == f_trans)) && fill != 2'b11)
  // A column is gathered in its turn: the word of its number, or what has been read of the transposer.
  `CT_ASSERT(GathersInTurn_A, !f_direct || (f_gone_q == f_put_q && f_column == f_word && !f_out))
  // What has begun to leave goes on: the next column in the next cycle.
  logic       f_goes_on_q;
  logic [3:0] f_next_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_goes_on_q <= 1'b0;
    else         f_goes_on_q <= f_turning && !f_gone && turn_col_q != 4'd15;
  end
  always_ff @(posedge clk_i) f_next_q <= turn_col_q + 4'd1;
  `CT_ASSERT(LeavesWhole_A, (!f_goes_on_q || (f_turning && f_out && turn_col_q == f_next_q)) &&
                            (!f_turning || (!f_full && (f_out || (turn_col_q == '0 && f_held == '0)) && (turn_col_q > 4'd1 || f_held == '0 || !f_out) &&
                                           (f_put_q[3:0] != '0 || f_held == '0))))
  `CT_ASSERT(FindsRoom_A, !f_out || f_gone || (room[f_ctx] && !f_direct))
  `CT_ASSERT(OutHasRoom_A, !f_out || (!f_full && (f_put_q[3:0] != '0 || f_held == '0)))

  // Pairs: what is gathered and has not gone, as it was gathered, and it goes as the pair of its number.
  `CT_ASSERT(PairsCounted_A, f_held <= 2'd2 && f_pair == f_left[3:1] && !f_left[0] && (!f_full || f_left[3:0] == '0))
  (* anyconst *) logic [5:0] f_sel;
  logic [135:0] f_col_q;
  logic [5:0]   f_at;
  logic         f_goes_q;
  assign f_at       = f_sel - f_left;
  assign f_held_any = f_at < 6'(f_held);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_goes_q <= 1'b0;
    else         f_goes_q <= f_leave && f_held_any;
  end
  always_ff @(posedge clk_i) begin
    if (f_put && f_put_q == f_sel && !(f_leave && f_held_any)) f_col_q <= f_column;
  end
  `CT_ASSERT(Held_A, !f_held_any || (f_sel[0] ? f_odd : f_even) == f_col_q)
  `CT_ASSERT(PairAsGathered_A, !f_goes_q || (ld_valid_o && ld_ctx_o == f_ctx && ld_pair_o == f_sel[3:1] && (f_sel[0] ? ld_words_o[271:136] : ld_words_o[135:0]) == f_col_q))
  `CT_ASSERT(OneAtATime_A, leave != 2'b11 && (leave & ~{held_q[3], held_q[1]}) == 2'b00)
  // The shadow tile is left alone from its last column until it is taken.
  `CT_ASSERT(ShadowKept_A, !(f_full && f_leave))
  // A pair that could go goes, or the other one does; and then this one, for that one has gathered one column at most.
  logic f_lost_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_lost_q <= 1'b0;
    else         f_lost_q <= want[f_ctx] && !f_leave && !f_gone;
  end
  `CT_ASSERT(PairWaitsOnce_A, !f_lost_q || (want[f_ctx] && f_leave))
