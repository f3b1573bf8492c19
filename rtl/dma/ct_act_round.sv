// SPDX-License-Identifier: Apache-2.0
//
// The loss of compressed activations: a block of exponent e becomes one of the exponent max(e, bound), rounded to nearest even
// (docs/compression.md). Mantissas leave as sizes and signs.
//
// Blocks with e = 0 or 255, and mantissas of -128, are read as 0, as everywhere.
//
// Steps       with first_i a block comes in, with second_i the one that came in last goes on to the outputs. Whoever instantiates this keeps the valid bits.
// Throughput  a block a cycle.

`default_nettype none

module ct_act_round (
  input  logic         clk_i,
  input  logic         first_i,
  input  logic         second_i,

  input  logic [127:0] data_i,
  input  logic [7:0]   exp_i,
  input  logic [7:0]   bound_i,

  output logic [111:0] size_o,  // 7 bits a lane
  output logic [15:0]  neg_o,   // below 0 (so not 0)
  output logic [7:0]   exp_o
);

  // First cycle: how far the block is shifted.
  logic [7:0]   gap;
  logic [127:0] data_q;
  logic [7:0]   exp_q;
  logic [2:0]   shift_q;
  logic         below, gone_q;
  assign below = exp_i < bound_i;
  assign gap   = below ? bound_i - exp_i : 8'd0;

  always_ff @(posedge clk_i) begin
    if (first_i) begin
      data_q  <= data_i;
      exp_q   <= below ? bound_i : exp_i;
      shift_q <= gap[2:0];
      gone_q  <= exp_i == 8'd0 || exp_i == 8'd255 || gap[7:3] != 5'd0;
    end
  end

  // Second cycle: sizes, shifted and rounded. (127 shifted by one becomes 64: it fits. As a function, so that a simulator works only when there is a block.)
  function automatic logic [7:0] lane(input logic [7:0] q, input logic [2:0] shift, input logic gone);
    logic [6:0]  size, kept;
    logic [13:0] wide;      // the size, and what is shifted out of it
    begin
      size = q[7] ? 7'd0 - q[6:0] : q[6:0];  // (0 for -128)
      wide = {size, 7'd0} >> shift;
      kept = gone ? 7'd0 : wide[13:7] + 7'(wide[6] && (wide[5:0] != 6'd0 || wide[7]));
      lane = {q[7] && kept != 7'd0, kept};
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (second_i) begin
      for (int i = 0; i < 16; i++) {neg_o[i], size_o[7*i +: 7]} <= lane(data_q[8*i +: 8], shift_q, gone_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (second_i) exp_o <= exp_q;
  end

endmodule

`default_nettype wire
