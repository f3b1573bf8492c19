// SPDX-License-Identifier: Apache-2.0
//
// HBFP8 to FP32: x_o = q_i * 2^(e_i - 133) on every lane (docs/numerics.md). Exact, except that results below 2^-126 are zeros.
//
// e_i = 255 gives NaN, e_i = 0 gives +0, whatever q_i is. The code -128, which never occurs in a block, counts as 0.
// In sign mode (mode_i = 2) a lane gives 1.0 if q_i > 0 and e_i is neither 0 nor 255, else +0: the derivative of ReLU.
//
// In mode 0 a lane gives raw_i: FP32 words take the same registers.
//
// Latency     2 cycles of those in which en_i is high (Lat below).
// Throughput  one vector a cycle. Back-pressure: en_i low holds everything; valid_o is valid_i two moves later.
// Cost        84 LUT4, 12 CCU2C and 64 FF a lane on ECP5 (Yosys 0.52).
// Reset       clears the valid bits only; data registers move with their stage's valid bit.
//
// Stages      1 magnitude without its leading zeros   2 exponent, packed
//
// Parameters
//   Lanes  lanes side by side, elements of one block: they share e_i

`default_nettype none

module ct_hbfp_dequant #(
  parameter int unsigned Lanes = 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                en_i,
  input  logic                valid_i,
  input  logic [1:0]          mode_i,  // 0 raw_i, 1 HBFP8, 2 its sign
  input  logic [8*Lanes-1:0]  q_i,     // signed
  input  logic [7:0]          e_i,
  input  logic [32*Lanes-1:0] raw_i,

  output logic                valid_o,
  output logic [32*Lanes-1:0] x_o
);

  localparam int unsigned Lat = 2;

  if (Lanes == 0) begin : g_check_lanes
    ct_error_hbfp_dequant_lanes_must_be_at_least_1 u_error ();
  end

  localparam logic [1:0] Raw  = 2'd0;
  localparam logic [1:0] Sign = 2'd2;

  // Stage 1: {sign, leading zeros[3], magnitude[7] without them}, in the lowest bits.
  function automatic logic [31:0] normalise(input logic [7:0] q);
    logic [6:0] v;
    logic [2:0] n;
    begin
      v = q[7] ? -q[6:0] : q[6:0];
      n = '0;
      if (v[6:3] == '0) begin
        v    = v << 4;
        n[2] = 1'b1;
      end
      if (v[6:5] == '0) begin
        v    = v << 2;
        n[1] = 1'b1;
      end
      if (!v[6]) begin
        v    = v << 1;
        n[0] = 1'b1;
      end
      normalise = {21'd0, q[7], n, v};
    end
  endfunction

  function automatic logic [31:0] pack(input logic [10:0] s, input logic [7:0] e);
    logic [8:0] exponent;
    begin
      exponent = {1'b0, e} - {6'd0, s[9:7]};
      if (&e)                                        pack = 32'h7FC00000;
      else if (!s[6] || e == '0)                     pack = '0;
      else if (exponent[8] || exponent[7:0] == '0)   pack = {s[10], 31'd0};
      else                                           pack = {s[10], exponent[7:0], s[5:0], 17'd0};
    end
  endfunction

  function automatic logic [31:0] is_positive(input logic sign, input logic some, input logic [7:0] e);
    is_positive = (!sign && some && e != '0 && !(&e)) ? 32'h3F800000 : '0;
  endfunction

  logic [Lat-1:0]      vld_q;
  logic [1:0]          mode_q;
  logic [7:0]          e_q;
  logic [32*Lanes-1:0] s_q, x_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)   vld_q <= '0;
    else if (en_i) vld_q <= {vld_q[0], valid_i};
  end

  always_ff @(posedge clk_i) begin
    if (en_i && valid_i) begin
      mode_q <= mode_i;
      e_q    <= e_i;
      for (int i = 0; i < Lanes; i++) s_q[32*i +: 32] <= mode_i == Raw ? raw_i[32*i +: 32] : normalise(q_i[8*i +: 8]);
    end
    if (en_i && vld_q[0]) begin
      for (int i = 0; i < Lanes; i++) begin
        x_q[32*i +: 32] <= mode_q == Raw  ? s_q[32*i +: 32]
                         : mode_q == Sign ? is_positive(s_q[32*i + 10], s_q[32*i + 6], e_q) : pack(s_q[32*i +: 11], e_q);
      end
    end
  end

  assign valid_o = vld_q[Lat-1];
  assign x_o     = x_q;

endmodule

`default_nettype wire
