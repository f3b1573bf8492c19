// SPDX-License-Identifier: Apache-2.0
//
// The decoder of compressed activations: groups of units in, HBFP8 blocks out (docs/compression.md has every bit; host/emu/ct_act.c is the same in C).
//
//     units ─> ct_act_bits ─> header, blocks ─> ct_act_unpack ─> words
//
// Input       the units of a group in order, the last one with last_i; tiles_i + 1 is how many tiles the group must have, the same with all of
//             them.
// Output      16 (tiles_i + 1) words in order, the last one with last_o. It comes out only when all of the group has been found right.
// Errors      err_o: the units are no such group. A level, until flush_i: nothing is taken and no word comes out any more. It comes behind all words of the
//             groups before. A group is wrong if it is longer or shorter than its headers say, if its bytes do not fold to 0, has another number of tiles,
//             exponents of more than 8 bits or above 255, or a mantissa of 128.
// Throughput  a tile in 17 cycles, if its units come; more only where 16 values take more than 128 bits.
// Latency     the last unit that a block needs taken in t: the block on offer in t + 5.
// Flush       flush_i forgets everything in a cycle. idle_o: nothing is inside.

`default_nettype none
`include "ct_assert.svh"

module ct_act_dec (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         flush_i,
  output logic         idle_o,
  output logic         err_o,

  input  logic [1:0]   tiles_i,
  input  logic         valid_i,
  output logic         ready_o,
  input  logic [127:0] data_i,
  input  logic         last_i,

  output logic         valid_o,
  input  logic         ready_i,
  output logic [127:0] data_o,
  output logic [7:0]   exp_o,
  output logic         last_o
);

  logic         in_ready, bits_idle, ended, wrong, full, take, over;
  logic [167:0] bits;
  logic [8:0]   have;
  logic [7:0]   len;
  logic         stop_q, err_q;    // a group is wrong, and nothing is taken; the words in front of it are out
  logic         unpack_err, bad;

  assign ready_o = in_ready && !stop_q;
  ct_act_bits u_bits (
    .clk_i, .rst_ni, .flush_i,
    .idle_o  (bits_idle),
    .valid_i (valid_i && !stop_q),
    .ready_o (in_ready),
    .data_i, .last_i,
    .tag_i   (tiles_i),
    .bits_o  (bits),
    .tag_o   (tiles),
    .have_o  (have),
    .ended_o (ended),
    .wrong_o (wrong),
    .full_o  (full),
    .take_i  (take),
    .len_i   (len),
    .next_i  (over)
  );

  // ---------------------------------------------------------------------------------------------------------------------------
  // A piece of the group: the header of a tile, that of the group in front of the first one's, or a block.

  logic [4:0]  phase_q;           // 0 the header, else the number of a block, plus 1
  logic [1:0]  tile_q, tiles, tiles_q;
  logic [44:0] head;              // signs, steps, the exponents' width and base
  logic [44:0] head_q;            // the same; without exponents of their own the width is 0 and the base is the bound
  logic [7:0]  bound_q;
  logic        first, last, fits, short, long, ready, exps;
  logic [31:0] steps;
  logic [3:0]  step;              // of a block: mask, and bits of a value without the sign
  logic [2:0]  pair;
  logic [3:0]  width;             // with it
  logic [4:0]  some;
  logic [15:0] lanes, next_q;     // of the block, of the second one of its step
  logic        front;             // the masks are in front

  `include "ct_act_fn.svh"

  assign first = phase_q == 5'd0 && tile_q == 2'd0;
  assign last  = phase_q == 5'd16 && tile_q == tiles_q;
  assign pair  = 3'((phase_q[3:0] - 4'd1) >> 1);
  assign steps = head_q[32:1];
  assign step  = steps[4*pair +: 4];
  assign width = (step == 4'd0) ? 4'd0 : {1'b0, step[3:1]} + 4'(head_q[0]);
  assign front = step[0] && phase_q[0];
  assign lanes = !step[0] ? 16'hFFFF : phase_q[0] ? bits[15:0] : next_q;
  assign exps  = first ? bits[11] : bits[1];

  // (Of a block alone, so that a simulator skips it while none is here.)
  always_comb begin
    some = '0;
    if (phase_q != 5'd0) some = ones(lanes);
  end

  always_comb begin
    head = first ? {bits[55:12], bits[10]} : {bits[45:2], bits[0]};
    if (!exps) head[44:33] = {first ? bits[7:0] : bound_q, 4'd0};
    len = times(some, width) + {4'd0, head_q[36:33]} + (front ? 8'd32 : 8'd0);
    if (phase_q == 5'd0) len = (exps ? 8'd46 : 8'd34) + (first ? 8'd10 : 8'd0);
  end

  // A last block waits for the end of the group, unless that is too far away. Bits that are not here yet can make a piece longer than it is, but not so
  // that it fits.
  assign fits  = {1'b0, len} <= have;
  assign short = ended && !fits;
  assign long  = last && fits && (ended ? have - {1'b0, len} >= 9'd128 : full);
  assign ready = fits && (!last || ended || full);
  assign bad   = short || (ready && (long || (last && wrong) || (first && bits[9:8] != tiles) || (phase_q == 5'd0 && head[36:33] > 4'd8)));

  logic unpack_ready, unpack_idle;
  assign take = ready && !bad && !stop_q && (phase_q == 5'd0 || unpack_ready);
  assign over = take && last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      phase_q <= '0;
      tile_q  <= '0;
      stop_q  <= 1'b0;
      err_q   <= 1'b0;
    end else if (flush_i) begin
      phase_q <= '0;
      tile_q  <= '0;
      stop_q  <= 1'b0;
      err_q   <= 1'b0;
    end else begin
      stop_q <= stop_q || bad || unpack_err;
      err_q  <= err_q || unpack_err || (stop_q && unpack_idle);
      if (take) begin
        phase_q <= (phase_q == 5'd16) ? 5'd0 : phase_q + 5'd1;
        if (phase_q == 5'd16) tile_q <= last ? 2'd0 : tile_q + 2'd1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (take && phase_q == 5'd0) head_q <= head;
    if (take && phase_q[0]) next_q <= bits[31:16];
    if (take && first) begin
      bound_q <= bits[7:0];
      tiles_q <= tiles;
    end
  end

  logic out_valid;
  ct_act_unpack u_unpack (
    .clk_i, .rst_ni, .flush_i,
    .idle_o    (unpack_idle),
    .err_o     (unpack_err),
    .valid_i   (take && phase_q != 5'd0),
    .ready_o   (unpack_ready),
    .bits_i    (bits),
    .front_i   (front),
    .lanes_i   (lanes),
    .mask_i    (step[0]),
    .size_i    (step[3:1]),
    .sign_i    (head_q[0]),
    .base_i    (head_q[44:37]),
    .off_bits_i(head_q[36:33]),
    .last_i    (last),
    .valid_o   (out_valid),
    .ready_i   (ready_i && !err_q),
    .data_o, .exp_o, .last_o
  );
  assign valid_o = out_valid && !err_q;
  assign err_o   = err_q;
  assign idle_o  = bits_idle && unpack_idle && phase_q == 5'd0 && tile_q == 2'd0 && !stop_q;

`ifdef FORMAL
  `include "ct_act_dec_formal.svh"
`endif

  `CT_COVER(TooLong_C, long)

endmodule

`default_nettype wire
