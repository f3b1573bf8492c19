// SPDX-License-Identifier: Apache-2.0
//
// FP32 adder: sum_o = a_i + b_i on every lane, by the rules of docs/numerics.md (nearest even, subnormals are zeros, one NaN).
//
// Latency     6 cycles, fixed (Lat below).
// Throughput  one vector a cycle. No back-pressure: valid_o is valid_i six cycles later.
// Reset       clears the valid bits only; the data registers move with their stage's valid bit and are otherwise kept, so an
//             idle adder costs a simulator nothing and sum_o stays until the next valid_o.
// Cost        387 LUT4, 59 CCU2C and 286 FF a lane on ECP5 (Yosys 0.52).
//
// Stages      1 order the operands   2 align the smaller   3 add   4 normalise by 16, 8, 4   5 normalise by 2, 1   6 round
//
// Parameters
//   Lanes  adders side by side; lane i uses bits 32*i +: 32

`default_nettype none

module ct_fp_add #(
  parameter int unsigned Lanes = 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                valid_i,
  input  logic [32*Lanes-1:0] a_i,
  input  logic [32*Lanes-1:0] b_i,

  output logic                valid_o,
  output logic [32*Lanes-1:0] sum_o
);

  localparam int unsigned Lat = 6;

  if (Lanes == 0) begin : g_check_lanes
    ct_error_fp_add_lanes_must_be_at_least_1 u_error ();
  end

  // Bits a lane keeps after each stage; the functions below say what they are.
  localparam int unsigned W1 = 64;
  localparam int unsigned W2 = 62;
  localparam int unsigned W3 = 40;
  localparam int unsigned W4 = 45;
  localparam int unsigned W5 = 40;

  // Stage 1: {nan, inf, sign, subtract, exponent[8], distance[5], larger[23], smaller[24]}, by magnitude. The larger one's hidden
  // bit is exponent != 0. A distance of 27 or more leaves of the smaller operand only that it was not zero.
  function automatic logic [W1-1:0] order(input logic [31:0] a, input logic [31:0] b);
    logic        swap, sub, a_top, b_top, nan;
    logic [31:0] x;
    logic [30:0] y;
    logic [7:0]  gap, gap_ab, gap_ba;
    begin
      // Both distances beside the comparison, not after it: this is the longest path of the stage.
      gap_ab = a[30:23] - b[30:23];
      gap_ba = b[30:23] - a[30:23];
      swap   = a[30:0] < b[30:0];
      x      = swap ? b : a;
      y      = swap ? a[30:0] : b[30:0];
      sub    = a[31] ^ b[31];
      a_top  = &a[30:23];
      b_top  = &b[30:23];
      nan    = (a_top && a[22:0] != '0) || (b_top && b[22:0] != '0) || (a_top && b_top && sub);
      gap    = swap ? gap_ba : gap_ab;
      order  = {nan, a_top || b_top, x[31], sub, x[30:23], gap > 8'd31 ? 5'd31 : gap[4:0],
                x[30:23] != '0 ? x[22:0] : 23'd0, y[30:23] != '0, y[30:23] != '0 ? y[22:0] : 23'd0};
    end
  endfunction

  // Stage 2: {nan, inf, sign, subtract, exponent[8], larger[23], aligned[27]}; aligned ends in guard, round and sticky, and is
  // inverted already if it is subtracted. It is shifted by nibbles, then by bits, which makes what is lost cheap to find.
  function automatic logic [W2-1:0] align(input logic [W1-1:0] s);
    logic [4:0]  gap;
    logic [26:0] y, far, lost;
    logic [2:0]  near;
    begin
      gap   = s[51:47];
      y     = {s[23:0], 3'b0};
      far   = y >> {gap[4:2], 2'd0};
      lost  = y & ~(27'h7FFFFFF << {gap[4:2], 2'd0});
      near  = far[2:0] & ~(3'd7 << gap[1:0]);
      align = {s[63:52], s[46:24], ((far >> gap[1:0]) | {26'd0, lost != '0 || near != '0}) ^ {27{s[60]}}};
    end
  endfunction

  // Stage 3: {nan, inf, sign, subtract, exponent[8], sum[28]}; the larger operand's hidden bit has become bit 26. Both columns of
  // the adder's lowest place make the carry that completes the negation.
  function automatic logic [W3-1:0] add(input logic [W2-1:0] s);
    logic [28:0] x, y;
    begin
      x   = {1'b0, s[57:50] != '0, s[49:27], 4'b1};
      y   = {s[58], s[26:0], s[58]};
      add = {s[61:50], 28'((x + y) >> 1)};
    end
  endfunction

  // Stage 4: {nan, inf, sign, subtract, exponent[8], zeros[5], sum[28]}: leading zeros removed by 16, 8 and 4.
  function automatic logic [W4-1:0] shift_far(input logic [W3-1:0] s);
    logic [27:0] v;
    logic [4:0]  n;
    begin
      v = s[27:0];
      n = '0;
      if (v[27:12] == '0) begin
        v = v << 16;
        n[4] = 1'b1;
      end
      if (v[27:20] == '0) begin
        v = v << 8;
        n[3] = 1'b1;
      end
      if (v[27:24] == '0) begin
        v = v << 4;
        n[2] = 1'b1;
      end
      shift_far = {s[39:28], n, v};
    end
  endfunction

  // Stage 5: {nan, inf, sign, subtract, exponent - 1 [10, signed], mantissa[24], guard, sticky}; a mantissa without its top bit is a
  // zero.
  function automatic logic [W5-1:0] shift_near(input logic [W4-1:0] s);
    logic [27:0] v;
    logic [4:0]  n;
    begin
      v = s[27:0];
      n = s[32:28];
      if (v[27:26] == '0) begin
        v = v << 2;
        n[1] = 1'b1;
      end
      if (!v[27]) begin
        v = v << 1;
        n[0] = 1'b1;
      end
      shift_near = {s[44:41], {2'b0, s[40:33]} - {5'd0, n}, v[27:3], v[2:0] != '0};
    end
  endfunction

  // Stage 6. A result below 2^-126 is exact (both operands are multiples of 2^-149), so looking before rounding is enough. The
  // mantissa's top bit completes the exponent. x - x is +0.
  function automatic logic [31:0] round(input logic [W5-1:0] s);
    logic [31:0] rounded;  // nine bits of exponent, 23 of fraction: a carry out of the fraction is already right
    begin
      rounded = {s[34:26], s[24:2]} + {8'd0, 1'b1, 22'd0, s[1] && (s[0] || s[2])};
      if (s[39])                                          round = 32'h7FC00000;
      else if (s[38])                                     round = {s[37], 8'hFF, 23'd0};
      else if (!s[25] || s[35])                           round = {s[37] && (s[25] || !s[36]), 31'd0};
      else if (rounded[31] || rounded[30:23] == 8'hFF)    round = {s[37], 8'hFF, 23'd0};
      else                                                round = {s[37], rounded[30:0]};
    end
  endfunction

  logic [Lat-1:0]      vld_q;
  logic [W1*Lanes-1:0] s1_q;
  logic [W2*Lanes-1:0] s2_q;
  logic [W3*Lanes-1:0] s3_q;
  logic [W4*Lanes-1:0] s4_q;
  logic [W5*Lanes-1:0] s5_q;
  logic [32*Lanes-1:0] sum_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) vld_q <= '0;
    else         vld_q <= {vld_q[Lat-2:0], valid_i};
  end

  always_ff @(posedge clk_i) begin
    if (valid_i)  for (int i = 0; i < Lanes; i++) s1_q[W1*i +: W1] <= order(a_i[32*i +: 32], b_i[32*i +: 32]);
    if (vld_q[0]) for (int i = 0; i < Lanes; i++) s2_q[W2*i +: W2] <= align(s1_q[W1*i +: W1]);
    if (vld_q[1]) for (int i = 0; i < Lanes; i++) s3_q[W3*i +: W3] <= add(s2_q[W2*i +: W2]);
    if (vld_q[2]) for (int i = 0; i < Lanes; i++) s4_q[W4*i +: W4] <= shift_far(s3_q[W3*i +: W3]);
    if (vld_q[3]) for (int i = 0; i < Lanes; i++) s5_q[W5*i +: W5] <= shift_near(s4_q[W4*i +: W4]);
    if (vld_q[4]) for (int i = 0; i < Lanes; i++) sum_q[32*i +: 32] <= round(s5_q[W5*i +: W5]);
  end

  assign valid_o = vld_q[Lat-1];
  assign sum_o   = sum_q;

endmodule

`default_nettype wire
