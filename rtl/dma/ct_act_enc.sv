// SPDX-License-Identifier: Apache-2.0
//
// The encoder of compressed activations: HBFP8 blocks in, groups of units out (docs/compression.md has every bit; host/emu/ct_act.c is the same in C).
//
//     words ─> ct_act_round ─┬─> ct_act_scan ──> header ─┐
//                            └─> mem (four tiles) ───────┴─> ct_act_pack ─> units
//
// Input       sixteen words make a tile, tiles_i + 1 tiles a group. bound_i and tiles_i stay the same for all words of a group.
// Twice       a tile is read twice: what its header says is known when all its words have come, and the header goes first. So a tile is written while
//             the one before is packed.
// Throughput  a tile in 17 cycles: as many as it has beats when it is stored as it is. Only where 16 values take more than 128 bits, mask and exponent
//             included, it may take more.
// Latency     first word of a tile taken in t: its header is in the accumulator of ct_act_pack in t + 26, if nothing waits.
// Output      units of a group in order, the last one with last_o and their number, 1 to 70.
// Flush       flush_i forgets everything in a cycle. idle_o: nothing is inside.

`default_nettype none
`include "ct_assert.svh"

module ct_act_enc (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         flush_i,
  output logic         idle_o,

  input  logic [7:0]   bound_i,
  input  logic [1:0]   tiles_i,
  input  logic         valid_i,
  output logic         ready_o,
  input  logic [127:0] data_i,
  input  logic [7:0]   exp_i,

  output logic         valid_o,
  input  logic         ready_i,
  output logic [127:0] data_o,
  output logic         last_o,
  output logic [6:0]   units_o
);

  // ---------------------------------------------------------------------------------------------------------------------------
  // Words come in, are rounded and written; the header is made meanwhile. All stand still when a header has nowhere to go.

  localparam int unsigned WordW = 8 + 16 + 112;
  localparam int unsigned AlsoW = 2 + 2 + 8;   // what a tile's header has besides: first and last of its group, tiles, bound

  logic             move, done, give, rd_free;
  logic [3:0]       idx_q, idx1_q, idx2_q;     // number of the word in its tile: next to come, and of those in ct_act_round
  logic [1:0]       tile_q, wr_slot_q;         // number of the tile in its group; where the tile lies that is written
  logic             v1_q, v2_q;
  logic [AlsoW-1:0] also1_q, also2_q, also_q;  // (the last one of the tile in ct_act_scan)
  logic [111:0]     size;
  logic [15:0]      neg;
  logic [7:0]       exp;
  logic [45:0]      head;
  logic [WordW-1:0] mem [0:63];
  logic [15:0]      mask_mem [0:63];           // lanes that are not zero, once more
  logic [15:0]      some;

  assign give    = done && rd_free;
  assign move    = !done || give;
  assign ready_o = move;

  ct_act_round u_round (
    .clk_i,
    .first_i (move && valid_i),
    .second_i(move && v1_q),
    .data_i, .exp_i, .bound_i,
    .size_o  (size),
    .neg_o   (neg),
    .exp_o   (exp)
  );

  ct_act_scan u_scan (
    .clk_i, .rst_ni, .flush_i,
    .move_i  (move),
    .valid_i (v2_q),
    .idx_i   (idx2_q),
    .size_i  (size),
    .neg_i   (neg),
    .exp_i   (exp),
    .bound_i (also2_q[7:0]),
    .done_o  (done),
    .head_o  (head)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      v1_q      <= 1'b0;
      v2_q      <= 1'b0;
      idx_q     <= '0;
      tile_q    <= '0;
      wr_slot_q <= '0;
    end else if (flush_i) begin
      v1_q      <= 1'b0;
      v2_q      <= 1'b0;
      idx_q     <= '0;
      tile_q    <= '0;
      wr_slot_q <= '0;
    end else if (move) begin
      v1_q <= valid_i;
      v2_q <= v1_q;
      if (valid_i) begin
        idx_q <= idx_q + 4'd1;
        if (idx_q == 4'd15) tile_q <= (tile_q == tiles_i) ? 2'd0 : tile_q + 2'd1;
      end
      if (v2_q && idx2_q == 4'd15) wr_slot_q <= wr_slot_q + 2'd1;
    end
  end

  always_comb begin
    some = '0;
    for (int i = 0; i < 16; i++) if (v2_q) some[i] = size[7*i +: 7] != 7'd0;
  end

  always_ff @(posedge clk_i) begin
    if (move) begin
      idx1_q  <= idx_q;
      idx2_q  <= idx1_q;
      also1_q <= {tile_q == 2'd0, tile_q == tiles_i, tiles_i, bound_i};
      also2_q <= also1_q;
      if (v2_q && idx2_q == 4'd15) also_q <= also2_q;
      if (v2_q) mem[{wr_slot_q, idx2_q}] <= {exp, neg, size};
      if (v2_q) mask_mem[{wr_slot_q, idx2_q}] <= some;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // A tile is packed: its header, then its words. The header of the next one may come with the last word.

  logic             h_v_q, h_first_q, h_last_q;
  logic [45:0]      h_head_q;
  logic [1:0]       h_tiles_q, rd_slot_q;
  logic [7:0]       h_bound_q;
  logic [4:0]       phase_q;                   // 0 the header, else the number of a word, plus 1
  logic             rd_move, rd_last, pack_ready;
  logic [3:0]       word;
  logic [31:0]      steps;
  logic [3:0]       step;                      // of the word: mask, and bits of a value
  assign rd_last = phase_q == 5'd16;
  assign rd_free = !h_v_q || (rd_move && rd_last);
  assign word    = phase_q[3:0] - 4'd1;
  assign steps   = h_head_q[33:2];
  assign step    = steps[4*word[3:1] +: 4];

  logic             r_v_q, r_head_q, r_mask_q, r_front_q, r_sign_q, r_exps_q, r_first_q, r_last_q;
  logic [2:0]       r_bits_q;
  logic [45:0]      r_bits_head_q;
  logic [1:0]       r_tiles_q;
  logic [7:0]       r_bound_q;
  logic [WordW-1:0] r_word_q;
  logic [15:0]      r_own_q, r_next_q;         // masks of the word, and of the one behind

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      h_v_q     <= 1'b0;
      r_v_q     <= 1'b0;
      phase_q   <= '0;
      rd_slot_q <= '0;
    end else if (flush_i) begin
      h_v_q     <= 1'b0;
      r_v_q     <= 1'b0;
      phase_q   <= '0;
      rd_slot_q <= '0;
    end else begin
      if (rd_free) h_v_q <= give;
      if (rd_move) begin
        r_v_q <= h_v_q;
        if (h_v_q) phase_q <= rd_last ? 5'd0 : phase_q + 5'd1;
        if (h_v_q && rd_last) rd_slot_q <= rd_slot_q + 2'd1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (give) begin
      h_head_q                                    <= head;
      {h_first_q, h_last_q, h_tiles_q, h_bound_q} <= also_q;
    end
    if (rd_move && h_v_q) begin
      r_head_q      <= phase_q == 5'd0;
      r_first_q     <= h_first_q;
      r_last_q      <= h_last_q && rd_last;
      r_tiles_q     <= h_tiles_q;
      r_bound_q     <= h_bound_q;
      r_bits_head_q <= h_head_q;
      r_mask_q      <= step[0];
      r_bits_q      <= step[3:1];
      r_front_q     <= step[0] && !word[0] && phase_q != 5'd0;
      r_word_q      <= mem[{rd_slot_q, word}];
      r_own_q       <= mask_mem[{rd_slot_q, word}];
      r_next_q      <= mask_mem[{rd_slot_q, word[3:1], 1'b1}];
    end
  end
  assign r_sign_q = r_bits_head_q[0];
  assign r_exps_q = r_bits_head_q[1];

  logic [127:0] values;
  logic [3:0]   bits;
  logic [5:0]   len;
  always_comb begin
    values = '0;
    for (int i = 0; i < 16; i++) if (r_v_q) begin
      values[8*i +: 8] = {1'b0, r_word_q[7*i +: 7] - 7'(r_mask_q)} | 8'(r_word_q[112+i]) << r_bits_q;
    end
    bits = (r_mask_q || r_bits_q != 3'd0) ? {1'b0, r_bits_q} + 4'(r_sign_q) : 4'd0;
    len  = (r_exps_q ? 6'd46 : 6'd34) + (r_first_q ? 6'd10 : 6'd0);
    if (r_head_q) begin
      values = r_first_q ? {72'd0, r_bits_head_q, r_tiles_q, r_bound_q} : {82'd0, r_bits_head_q};
      bits   = 4'd8;
    end
  end

  logic pack_idle;
  assign rd_move = !r_v_q || pack_ready;
  ct_act_pack u_pack (
    .clk_i, .rst_ni, .flush_i,
    .idle_o    (pack_idle),
    .valid_i   (r_v_q),
    .ready_o   (pack_ready),
    .head_i    (r_head_q),
    .len_i     (len),
    .last_i    (r_last_q),
    .front_i   (r_front_q),
    .masks_i   ({r_next_q, r_own_q}),
    .lanes_i   ((r_mask_q && !r_head_q) ? r_own_q : 16'hFFFF),
    .values_i  (values),
    .bits_i    (bits),
    .off_i     ((r_exps_q && !r_head_q) ? r_word_q[WordW-1 -: 8] - r_bits_head_q[45:38] : 8'd0),
    .off_bits_i(r_head_q ? 4'd0 : r_bits_head_q[37:34]),
    .valid_o, .ready_i, .data_o, .last_o, .units_o
  );

  // A tile is inside from its first word to its last piece.
  assign idle_o = idx_q == 4'd0 && tile_q == 2'd0 && !v1_q && !v2_q && wr_slot_q == rd_slot_q && !r_v_q && pack_idle;

  `CT_ASSERT(SlotsApart_A, 2'(wr_slot_q - rd_slot_q) != 2'd3)
`ifdef FORMAL
  `include "ct_act_enc_formal.svh"
`endif

  `CT_COVER(HeaderWaits_C, done && !rd_free)

endmodule

`default_nettype wire
