// SPDX-License-Identifier: Apache-2.0
//
// FP32 to HBFP8: q_o is the mantissa of x_i in a block of exponent e_i, on every lane (docs/numerics.md), rounded to nearest even.
// narrow_i makes mantissas of 8 - narrow_i bits (0..6): they stand in the upper bits of q_o, with zeros below.
//
// e_i is the largest exponent field of the group, found by the caller; with 0 (all zero) and 255 (Inf or NaN in the group) every
// q_o is 0. Mantissas saturate at +-127 (what is left of it without the lowest narrow_i bits), as does a value too large for e_i, which the
// caller's maximum rules out.
//
// Latency     3 cycles, fixed (Lat below).
// Throughput  one vector a cycle. No back-pressure: valid_o is valid_i three cycles later.
// Cost        86 LUT4, 14 CCU2C and 34 FF a lane on ECP5 (Yosys 0.23); 5 and 1 of them for the narrower ones.
// Reset       clears the valid bits only; data registers move with their stage's valid bit.
//
// Stages      1 distance of the exponents; what lies below the half   2 scale to 7 integer bits, the half and a sticky bit
//             3 round, saturate, apply the sign
//
// Parameters
//   Lanes  lanes side by side, elements of one group: they share e_i

`default_nettype none

module ct_hbfp_quant #(
  parameter int unsigned Lanes = 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                valid_i,
  input  logic [32*Lanes-1:0] x_i,
  input  logic [7:0]          e_i,
  input  logic [2:0]          narrow_i,

  output logic                valid_o,
  output logic [8*Lanes-1:0]  q_o      // signed
);

  localparam int unsigned Lat = 3;

  if (Lanes == 0) begin : g_check_lanes
    ct_error_hbfp_quant_lanes_must_be_at_least_1 u_error ();
  end

  // Stage 1: {sign, zero, too large, distance[4], leading bits[8] of the mantissa, sticky}; from a distance of 8 on only the sticky bit is left.
  localparam int unsigned W1 = 16;

  function automatic logic [W1-1:0] compare(input logic [31:0] x, input logic [7:0] e);
    logic [8:0] gap;
    begin
      gap     = {1'b0, e} - {1'b0, x[30:23]};
      compare = {x[31], e == '0 || &e || x[30:23] == '0, gap[8], gap[7:3] != 5'd0, gap[2:0], 1'b1, x[22:16], x[15:0] != '0};
    end
  endfunction

  localparam int unsigned W2 = 10;  // {sign, integer[7], half, sticky}

  function automatic logic [W2-1:0] scale(input logic [W1-1:0] s);
    logic [7:0] lost;
    begin
      lost = s[8:1] & ~(8'hFF << s[11:9]);
      if (s[14])      scale = '0;
      else if (s[13]) scale = {s[15], 9'h1FF};
      else if (s[12]) scale = {s[15], 9'h001};
      else            scale = {s[15], s[8:1] >> s[11:9], lost != '0 || s[0]};
    end
  endfunction

  // What is kept lies above the bit that says half; `dropped` is the part of the integer below, `lowest` the lowest bit that is kept, alone.
  // Adding a one to each bit under the half, and the lowest bit, carries into what is kept exactly when nearest even is upwards. (The sticky
  // bit is always under the half, so it and the lowest one make the carry of that place.)
  function automatic logic [7:0] round(input logic [W2-1:0] s, input logic [5:0] dropped, input logic [6:0] lowest);
    logic [8:0] sum;
    logic [7:0] v;
    begin
      sum   = {1'b0, s[8:1]} + {3'd0, dropped} + {8'd0, s[0] || (s[8:2] & lowest) != '0};
      v     = {1'b0, (7'(sum >> 1) | {7{sum[8]}}) & ~{1'b0, dropped}};
      round = s[9] ? -v : v;
    end
  endfunction

  logic [Lat-1:0]      vld_q;
  logic [W1*Lanes-1:0] s1_q;
  logic [W2*Lanes-1:0] s2_q;
  logic [2:0]          narrow1_q;
  logic [5:0]          dropped2_q;
  logic [6:0]          lowest2_q;
  logic [8*Lanes-1:0]  q_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) vld_q <= '0;
    else         vld_q <= {vld_q[Lat-2:0], valid_i};
  end

  always_ff @(posedge clk_i) begin
    if (valid_i) narrow1_q <= narrow_i;
    if (vld_q[0]) begin
      dropped2_q <= ~(6'h3F << narrow1_q);
      lowest2_q  <= 7'd1 << narrow1_q;
    end
    if (valid_i)  for (int i = 0; i < Lanes; i++) s1_q[W1*i +: W1] <= compare(x_i[32*i +: 32], e_i);
    if (vld_q[0]) for (int i = 0; i < Lanes; i++) s2_q[W2*i +: W2] <= scale(s1_q[W1*i +: W1]);
    if (vld_q[1]) for (int i = 0; i < Lanes; i++) q_q[8*i +: 8] <= round(s2_q[W2*i +: W2], dropped2_q, lowest2_q);
  end

  assign valid_o = vld_q[Lat-1];
  assign q_o     = q_q;

endmodule

`default_nettype wire
