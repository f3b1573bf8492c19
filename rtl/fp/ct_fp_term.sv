// SPDX-License-Identifier: Apache-2.0
//
// One term of a matrix product in FP32: p_o = s_i * 2^(ea_i + eb_i - 266) on every lane (HBFP8; docs/numerics.md).
//
// s_i is the exact dot product of two blocks of 16 mantissas, |s_i| <= 16*127*127 < 2^18. The result is exact; it is zero below
// 2^-126 (sign kept) and Inf beyond the range. A block exponent of 255 gives NaN, one of 0 gives +0, and so does s_i = 0.
//
// Latency     2 cycles, fixed (Lat below).
// Throughput  one vector a cycle. No back-pressure: valid_o is valid_i two cycles later.
// Cost        228 LUT4, 19 CCU2C and 60 FF a lane on ECP5 (Yosys 0.23).
// Reset       clears the valid bits only; data registers move with their stage's valid bit.
//
// Parameters
//   Lanes  lanes side by side. All have the same A row, hence one ea_i; each has a B row (a column of C) of its own.

`default_nettype none

module ct_fp_term #(
  parameter int unsigned Lanes = 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                valid_i,
  input  logic [19*Lanes-1:0] s_i,     // signed
  input  logic [7:0]          ea_i,
  input  logic [8*Lanes-1:0]  eb_i,

  output logic                valid_o,
  output logic [32*Lanes-1:0] p_o
);

  localparam int unsigned Lat = 2;

  if (Lanes == 0) begin : g_check_lanes
    ct_error_fp_term_lanes_must_be_at_least_1 u_error ();
  end

  // Stage 1: {nan, sign, exponent[10, signed], zeros[2], magnitude[18]}: zeros * 8 leading zeros have been removed. The exponent
  // is that of a result whose magnitude had none; a magnitude of zero stays one.
  localparam int unsigned W1 = 32;

  function automatic logic [W1-1:0] prepare(input logic [18:0] s, input logic [7:0] ea, input logic [7:0] eb);
    logic [17:0] v;
    logic [1:0]  n;
    begin
      v = s[18] ? -s[17:0] : s[17:0];
      n = '0;
      if (v[17:2] == '0) begin
        v    = v << 16;
        n[1] = 1'b1;
      end
      if (v[17:10] == '0) begin
        v    = v << 8;
        n[0] = 1'b1;
      end
      if (ea == '0 || eb == '0) v = '0;
      prepare = {&ea || &eb, s[18], {2'b0, ea} + {2'b0, eb} - 10'd122, n, v};
    end
  endfunction

  function automatic logic [31:0] pack(input logic [W1-1:0] s);
    logic [17:0] v;
    logic [2:0]  n;
    logic [9:0]  exponent;
    begin
      v = s[17:0];
      n = '0;
      if (v[17:14] == '0) begin
        v    = v << 4;
        n[2] = 1'b1;
      end
      if (v[17:16] == '0) begin
        v    = v << 2;
        n[1] = 1'b1;
      end
      if (!v[17]) begin
        v    = v << 1;
        n[0] = 1'b1;
      end
      exponent = s[29:20] - {5'd0, s[19:18], n};
      if (s[31])                                       pack = 32'h7FC00000;
      else if (!v[17])                                 pack = '0;
      else if (exponent[9] || exponent == '0)          pack = {s[30], 31'd0};
      else if (exponent[8] || &exponent[7:0])          pack = {s[30], 8'hFF, 23'd0};
      else                                             pack = {s[30], exponent[7:0], v[16:0], 6'd0};
    end
  endfunction

  logic [Lat-1:0]      vld_q;
  logic [W1*Lanes-1:0] s1_q;
  logic [32*Lanes-1:0] p_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) vld_q <= '0;
    else         vld_q <= {vld_q[Lat-2:0], valid_i};
  end

  always_ff @(posedge clk_i) begin
    if (valid_i)  for (int i = 0; i < Lanes; i++) s1_q[W1*i +: W1] <= prepare(s_i[19*i +: 19], ea_i, eb_i[8*i +: 8]);
    if (vld_q[0]) for (int i = 0; i < Lanes; i++) p_q[32*i +: 32] <= pack(s1_q[W1*i +: W1]);
  end

  assign valid_o = vld_q[Lat-1];
  assign p_o     = p_q;

endmodule

`default_nettype wire
