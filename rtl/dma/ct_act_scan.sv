// SPDX-License-Identifier: Apache-2.0
//
// Makes the header of a tile of compressed activations from its sixteen rounded blocks (docs/compression.md): signs or none, the exponents' base and
// width, and for each step of 32 values the shorter of a length for all and a mask with a length for those that are not zero.
//
// Blocks come in order, one in a cycle with valid_i and move_i, idx_i being the block's number in the tile. Three cycles with move_i after the last one
// done_o is high, with the header, until move_i.
//
// Header      bit 0 signs, 1 exponents, 4*j+2 and 4*j+5..4*j+3 mask and width of step j, then the exponents' width (4) and base (8), which are 0 without
//             exponents.

`default_nettype none

module ct_act_scan (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         flush_i,
  input  logic         move_i,
  input  logic         valid_i,
  input  logic [3:0]   idx_i,
  input  logic [111:0] size_i,
  input  logic [15:0]  neg_i,
  input  logic [7:0]   exp_i,
  input  logic [7:0]   bound_i,

  output logic         done_o,
  output logic [45:0]  head_o
);

  `include "ct_act_fn.svh"

  // Bits that it takes to write v.
  function automatic logic [2:0] width7(input logic [6:0] v);
    width7 = 3'd0;
    for (int i = 0; i < 7; i++) if (v[i]) width7 = 3'(i + 1);
  endfunction

  function automatic logic [3:0] width8(input logic [7:0] v);
    width8 = 4'd0;
    for (int i = 0; i < 8; i++) if (v[i]) width8 = 4'(i + 1);
  endfunction

  // A mask for `some` values of `masked` bits each is shorter than 32 values of `plain` bits. (Of zeros only it is not. A product by additions: it would
  // take a DSP block.)
  function automatic logic shorter(input logic [5:0] some, input logic [3:0] masked, input logic [3:0] plain);
    logic [9:0] bits;
    begin
      bits = 10'd32;
      for (int i = 0; i < 4; i++) if (masked[i]) bits = bits + (10'(some) << i);
      shorter = bits < {1'b0, plain, 5'd0};
    end
  endfunction

  // A block: all sizes together, those that are not zero less one together, and how many those are.
  logic [6:0] all_d, less_d;
  logic [15:0] some_d;
  always_comb begin
    all_d  = '0;
    less_d = '0;
    some_d = '0;
    for (int i = 0; i < 16; i++) if (valid_i) begin
      all_d     = all_d | size_i[7*i +: 7];
      some_d[i] = size_i[7*i +: 7] != 7'd0;
      if (some_d[i]) less_d = less_d | (size_i[7*i +: 7] - 7'd1);
    end
  end

  logic       b_v_q, b_neg_q;
  logic [3:0] b_idx_q;
  logic [6:0] b_all_q, b_less_q;
  logic [4:0] b_some_q;
  logic [7:0] b_exp_q, b_bound_q;

  // A step: the same of two blocks. A tile: signs, the smallest and the largest exponent.
  logic       p_v_q;
  logic [2:0] p_idx_q;
  logic [6:0] p_all_q, p_less_q;
  logic [5:0] p_some_q;
  logic       t_neg_q;
  logic [7:0] t_low_q, t_top_q, t_bound_q;

  // The choices: both widths, and whether to take the mask, without signs and with them.
  logic [63:0] steps_q;
  logic        neg_q, done_q;
  logic [7:0]  low_q, top_q, bound_q;
  logic [2:0]  plain, masked;
  assign plain  = width7(p_all_q);
  assign masked = width7(p_less_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      b_v_q  <= 1'b0;
      p_v_q  <= 1'b0;
      done_q <= 1'b0;
    end else if (flush_i) begin
      b_v_q  <= 1'b0;
      p_v_q  <= 1'b0;
      done_q <= 1'b0;
    end else if (move_i) begin
      b_v_q  <= valid_i;
      p_v_q  <= b_v_q && b_idx_q[0];
      done_q <= p_v_q && p_idx_q == 3'd7;
    end
  end

  always_ff @(posedge clk_i) begin
    if (move_i && valid_i) begin
      b_idx_q   <= idx_i;
      b_all_q   <= all_d;
      b_less_q  <= less_d;
      b_some_q  <= ones(some_d);
      b_neg_q   <= neg_i != '0;
      b_exp_q   <= exp_i;
      b_bound_q <= bound_i;
    end
    if (move_i && b_v_q) begin
      p_idx_q   <= b_idx_q[3:1];
      p_all_q   <= b_idx_q[0] ? p_all_q | b_all_q : b_all_q;
      p_less_q  <= b_idx_q[0] ? p_less_q | b_less_q : b_less_q;
      p_some_q  <= b_idx_q[0] ? p_some_q + {1'b0, b_some_q} : {1'b0, b_some_q};
      t_neg_q   <= b_neg_q || (t_neg_q && b_idx_q != 4'd0);
      t_bound_q <= b_bound_q;
      if (b_idx_q == 4'd0 || b_exp_q < t_low_q) t_low_q <= b_exp_q;
      if (b_idx_q == 4'd0 || b_exp_q > t_top_q) t_top_q <= b_exp_q;
    end
    if (move_i && p_v_q) begin
      steps_q[8*p_idx_q +: 8] <= {shorter(p_some_q, {1'b0, masked} + 4'd1, {1'b0, plain} + 4'd1), shorter(p_some_q, {1'b0, masked}, {1'b0, plain}),
                                  masked, plain};
      if (p_idx_q == 3'd7) begin
        neg_q   <= t_neg_q;
        low_q   <= t_low_q;
        top_q   <= t_top_q;
        bound_q <= t_bound_q;
      end
    end
  end

  logic exps;
  assign exps   = top_q != bound_q;  // (none is below)
  assign done_o = done_q;

  always_comb begin
    head_o       = '0;
    head_o[0]    = neg_q;
    head_o[1]    = exps;
    for (int j = 0; j < 8; j++) if (done_q) begin
      head_o[4*j+2]      = neg_q ? steps_q[8*j+7] : steps_q[8*j+6];
      head_o[4*j+3 +: 3] = head_o[4*j+2] ? steps_q[8*j+3 +: 3] : steps_q[8*j +: 3];
    end
    if (exps && done_q) begin
      head_o[37:34] = width8(top_q - low_q);
      head_o[45:38] = low_q;
    end
  end

endmodule

`default_nettype wire
