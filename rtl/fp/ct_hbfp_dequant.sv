// SPDX-License-Identifier: Apache-2.0
//
// HBFP8 to FP32: x_o = q_i * 2^(e_i - 133) on every lane (docs/numerics.md). Exact, except that results below 2^-126 are zeros.
//
// e_i = 255 gives NaN, e_i = 0 gives +0, whatever q_i is. The code -128, which never occurs in a block, counts as 0.
// In sign mode (mode_i = 1) a lane gives 1.0 if q_i > 0 and e_i is neither 0 nor 255, else +0: the derivative of ReLU.
//
// Latency     1 cycle, fixed (Lat below).
// Throughput  one vector a cycle. No back-pressure: valid_o is valid_i one cycle later.
// Cost        84 LUT4, 12 CCU2C and 16 FF a lane on ECP5 (Yosys 0.23).
// Reset       clears the valid bit only; the data register moves with valid_i.
//
// Parameters
//   Lanes  lanes side by side, elements of one block: they share e_i

`default_nettype none

module ct_hbfp_dequant #(
  parameter int unsigned Lanes = 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                valid_i,
  input  logic                mode_i,
  input  logic [8*Lanes-1:0]  q_i,     // signed
  input  logic [7:0]          e_i,

  output logic                valid_o,
  output logic [32*Lanes-1:0] x_o
);

  localparam int unsigned Lat = 1;

  if (Lanes == 0) begin : g_check_lanes
    ct_error_hbfp_dequant_lanes_must_be_at_least_1 u_error ();
  end

  function automatic logic [31:0] convert(input logic [7:0] q, input logic [7:0] e);
    logic [6:0] v;
    logic [2:0] n;  // leading zeros of the magnitude
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
      if (&e)                        convert = 32'h7FC00000;
      else if (!v[6] || e == '0)     convert = '0;
      else if (e <= {5'd0, n})       convert = {q[7], 31'd0};
      else                           convert = {q[7], e - {5'd0, n}, v[5:0], 17'd0};
    end
  endfunction

  function automatic logic [31:0] is_positive(input logic [7:0] q, input logic [7:0] e);
    is_positive = (!q[7] && q != '0 && e != '0 && !(&e)) ? 32'h3F800000 : '0;
  endfunction

  logic [Lat-1:0]      vld_q;
  logic [32*Lanes-1:0] x_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) vld_q <= '0;
    else         vld_q <= valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      for (int i = 0; i < Lanes; i++) begin
        x_q[32*i +: 32] <= mode_i ? is_positive(q_i[8*i +: 8], e_i) : convert(q_i[8*i +: 8], e_i);
      end
    end
  end

  assign valid_o = vld_q[Lat-1];
  assign x_o     = x_q;

endmodule

`default_nettype wire
