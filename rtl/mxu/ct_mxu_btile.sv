// SPDX-License-Identifier: Apache-2.0
//
// Shadow tiles: takes the words of both B streams (ct_mxu_bload), transposes what is to be transposed, and writes pairs of columns into
// the tile RAMs of ct_mxu_dots, over one bus.
//
// Pairs       Each context gathers two columns, so that one bus carries what both streams bring. A pair waits a cycle at most for one of
//             the other context: both go on at a column a cycle.
// Transposer  one for both contexts, with a buffer of 16 words for each, so that neither ever waits for the other's tile. Word i of a tile
//             is written after column i of the one before has left (see ct_mxu_transpose): 20 cycles a tile. Contexts that bring words in
//             one cycle take turns; with strict_i context 0 goes first. A tile that has begun to leave leaves at a column a cycle,
//             and its pairs go first: so a tile begins only when the shadow tile is free for all of it.
// Order       a word that is not to be transposed waits until the transposer has nothing of its context.
// Shadow      tile_ready_o[c]: the shadow tile is complete. take_i[c] (the first row of its operation enters the array) frees it. Without
//             transposition a tile may be taken every 16 cycles. The RAMs are written a cycle after a pair has gone; ct_mxu_array
//             makes the tile active two cycles after take_i, before the first pair of the next one is written.
// Flush       drops everything of a context.

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_btile (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         strict_i,
  input  logic [1:0]   flush_i,

  // The oldest word of each stream.
  input  logic [1:0]   word_vld_i,
  input  logic [1:0]   word_trans_i,
  input  logic [271:0] word_i,        // {exponent, mantissas}
  output logic [1:0]   pop_o,

  // Columns 2 * ld_pair_o (lower half) and 2 * ld_pair_o + 1 of the shadow tile.
  output logic         ld_valid_o,
  output logic         ld_ctx_o,
  output logic [2:0]   ld_pair_o,
  output logic [271:0] ld_words_o,

  output logic [1:0]   tile_ready_o,
  input  logic [1:0]   take_i,
  output logic [1:0]   idle_o
);

  // --- transposer -----------------------------------------------------------------------------------------------------------

  logic [7:0]   row_d, row_q;        // of context c, the next word of the tile that fills its buffer
  logic [1:0]   last_d, last_q;      // the last word of a tile is being written
  logic [1:0]   in_d, in_q;          // there is a tile
  logic [1:0]   wr_turn_d, wr_turn_q, rd_turn_d, rd_turn_q;
  logic [15:0]  exp_q;
  logic [1:0]   fill_ok, fill_want, fill;
  logic         fill_ctx, fill_last_q;
  logic [3:0]   fill_row;
  logic [127:0] fill_word;

  logic         turn, turn_end;      // a column is read; the last one
  logic         turning_d, turning_q, turn_ctx_d, turn_ctx_q;
  logic [3:0]   turn_col_d, turn_col_q;
  logic [7:0]   turn_exp_q;
  logic [1:0]   can_turn;
  logic         begin_turn;
  logic         out_vld_q, out_ctx_q;
  logic [7:0]   out_exp_q;
  logic [127:0] out_data;

  // --- pairs ----------------------------------------------------------------------------------------------------------------

  logic [3:0]   held_d, held_q;      // of context c, columns gathered
  logic [5:0]   pair_d, pair_q;      // the next pair
  logic [1:0]   full_d, full_q;
  logic [1:0]   empty, direct, out, room, put, want, leave;
  logic [271:0] column;
  logic [271:0] even_q, odd_q;

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      // A word written while a column is read lands after it.
      fill_ok[c]   = !last_q[c] && (!in_q[c] || (turning_q && turn_ctx_q == c[0] && row_q[4*c +: 4] < turn_col_q));
      fill_want[c] = word_vld_i[c] && word_trans_i[c] && fill_ok[c] && !flush_i[c];
      empty[c]     = !in_q[c] && row_q[4*c +: 4] == '0 && !last_q[c] && !(out_vld_q && out_ctx_q == c[0]);
      can_turn[c]  = in_q[c] && !full_q[c] && held_q[2*c +: 2] == '0 && !(out_vld_q && out_ctx_q == c[0]) && !flush_i[c] &&
                     !(turning_q && turn_ctx_q == c[0]);
    end
  end

  assign fill_ctx  = (fill_want == 2'b11) ? !strict_i && !fill_last_q : fill_want[1];
  assign fill      = fill_want & {fill_ctx, !fill_ctx};
  assign fill_row  = fill_ctx ? row_q[7:4] : row_q[3:0];
  assign fill_word = fill_ctx ? word_i[263:136] : word_i[127:0];

  assign turn       = turning_q && !flush_i[turn_ctx_q];
  assign turn_end   = turn && turn_col_q == 4'd15;
  assign begin_turn = (!turning_q || turn_end) && can_turn != 2'b00;

  always_comb begin
    turning_d  = begin_turn || (turn && !turn_end);
    turn_ctx_d = begin_turn ? !can_turn[0] : turn_ctx_q;
    turn_col_d = (turn && !turn_end) ? turn_col_q + 4'd1 : 4'd0;
    row_d      = row_q;
    last_d     = 2'b00;
    in_d       = (in_q | last_q);
    wr_turn_d  = wr_turn_q;
    rd_turn_d  = rd_turn_q;
    if (turn_end) begin
      in_d[turn_ctx_q]      = 1'b0;
      rd_turn_d[turn_ctx_q] = !rd_turn_q[turn_ctx_q];
    end
    for (int c = 0; c < 2; c++) begin
      if (fill[c]) begin
        row_d[4*c +: 4] = row_q[4*c +: 4] + 4'd1;
        last_d[c]       = row_q[4*c +: 4] == 4'd15;
        if (last_d[c]) wr_turn_d[c] = !wr_turn_q[c];
      end
      if (flush_i[c]) begin
        row_d[4*c +: 4] = '0;
        in_d[c]         = 1'b0;
        wr_turn_d[c]    = 1'b0;
        rd_turn_d[c]    = 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      row_q       <= '0;
      last_q      <= 2'b00;
      in_q        <= 2'b00;
      wr_turn_q   <= 2'b00;
      rd_turn_q   <= 2'b00;
      fill_last_q <= 1'b0;
      turning_q   <= 1'b0;
      turn_ctx_q  <= 1'b0;
      turn_col_q  <= '0;
      out_vld_q   <= 1'b0;
    end else begin
      row_q       <= row_d;
      last_q      <= last_d;
      in_q        <= in_d;
      wr_turn_q   <= wr_turn_d;
      rd_turn_q   <= rd_turn_d;
      if (fill != 2'b00) fill_last_q <= fill_ctx;
      turning_q   <= turning_d;
      turn_ctx_q  <= turn_ctx_d;
      turn_col_q  <= turn_col_d;
      out_vld_q   <= turn;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fill[0])    exp_q[7:0]  <= word_i[135:128];
    if (fill[1])    exp_q[15:8] <= word_i[271:264];
    if (begin_turn) turn_exp_q  <= can_turn[0] ? exp_q[7:0] : exp_q[15:8];
    if (turn) begin
      out_ctx_q <= turn_ctx_q;
      out_exp_q <= turn_exp_q;
    end
  end

  ct_mxu_transpose u_transpose (
    .clk_i, .rst_ni,
    .wr_valid_i(fill != 2'b00), .wr_buf_i(fill_ctx), .wr_turn_i(wr_turn_q[fill_ctx]), .wr_row_i(fill_row), .wr_data_i(fill_word),
    .rd_valid_i(turn), .rd_buf_i(turn_ctx_q), .rd_turn_i(rd_turn_q[turn_ctx_q]), .rd_col_i(turn_col_q), .rd_data_o(out_data)
  );

  assign want  = ~full_q & {held_q[3], held_q[1]};
  // Context 0 first, but for columns that come from the transposer and cannot wait.
  assign leave = (want == 2'b11) ? ((out_vld_q && out_ctx_q) ? 2'b10 : 2'b01) : want;
  assign pop_o = direct | fill;

  always_comb begin
    held_d = held_q;
    pair_d = pair_q;
    full_d = full_q & ~take_i;
    for (int c = 0; c < 2; c++) begin
      room[c]   = !held_q[2*c+1] || leave[c];
      direct[c] = word_vld_i[c] && !word_trans_i[c] && empty[c] && room[c] && !flush_i[c];
      out[c]    = out_vld_q && out_ctx_q == c[0] && !flush_i[c];
      put[c]    = direct[c] || out[c];
      column[136*c +: 136] = out[c] ? {out_exp_q, out_data} : word_i[136*c +: 136];
      held_d[2*c +: 2] = (leave[c] ? 2'd0 : held_q[2*c +: 2]) + 2'(put[c]);
      if (leave[c]) begin
        pair_d[3*c +: 3] = pair_q[3*c +: 3] + 3'd1;
        if (&pair_q[3*c +: 3]) full_d[c] = 1'b1;
      end
      if (flush_i[c]) begin
        held_d[2*c +: 2] = '0;
        pair_d[3*c +: 3] = '0;
        full_d[c]        = 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      held_q <= '0;
      pair_q <= '0;
      full_q <= 2'b00;
    end else begin
      held_q <= held_d;
      pair_q <= pair_d;
      full_q <= full_d;
    end
  end

  logic         ld_vld_q, ld_ctx_q;
  logic [2:0]   ld_pair_q;
  logic [271:0] ld_words_q;

  always_ff @(posedge clk_i) begin
    for (int c = 0; c < 2; c++) begin
      if (put[c] && !held_q[2*c]) even_q[136*c +: 136] <= column[136*c +: 136];
      if (put[c] && held_q[2*c])  odd_q[136*c +: 136]  <= column[136*c +: 136];
    end
    if (leave != 2'b00) begin
      ld_ctx_q   <= leave[1];
      ld_pair_q  <= leave[1] ? pair_q[5:3] : pair_q[2:0];
      ld_words_q <= leave[1] ? {odd_q[271:136], even_q[271:136]} : {odd_q[135:0], even_q[135:0]};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ld_vld_q <= 1'b0;
    else         ld_vld_q <= leave != 2'b00;
  end

  assign ld_valid_o   = ld_vld_q;
  assign ld_ctx_o     = ld_ctx_q;
  assign ld_pair_o    = ld_pair_q;
  assign ld_words_o   = ld_words_q;
  assign tile_ready_o = full_q;

  always_comb begin
    for (int c = 0; c < 2; c++)
      idle_o[c] = empty[c] && held_q[2*c +: 2] == '0 && pair_q[3*c +: 3] == '0 && !full_q[c];
  end

  `CT_ASSUME(TakesWholeTiles_M, (take_i & ~tile_ready_o) == 2'b00)
  `CT_ASSERT(ColumnHasRoom_A, (out & ~room) == 2'b00)
  `CT_ASSERT(OneSource_A, (direct & out) == 2'b00)

`ifdef FORMAL
  `include "ct_mxu_btile_formal.svh"
`endif

endmodule

`default_nettype wire
