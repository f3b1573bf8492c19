// SPDX-License-Identifier: Apache-2.0
//
// FP32 multiplier: prod_o = a_i * b_i on every lane, by the rules of docs/numerics.md (nearest even, subnormals are zeros, one NaN).
//
// Latency     5 cycles, fixed (Lat below).
// Throughput  one vector a cycle. No back-pressure: valid_o is valid_i five cycles later.
// Reset       clears the valid bits only; data registers move with their stage's valid bit.
// Cost        four MULT18X18D, 119 LUT4, 63 CCU2C and 243 FF a lane on ECP5 (Yosys 0.23).
//
// Stages      1 unpack   2 two half products   3 product   4 normalise   5 round. Stage 1 holds plain operands and stage 2 plain
//             products, so that a multiplier block has registers on both sides.
//
// Parameters
//   Lanes  multipliers side by side; lane i uses bits 32*i +: 32

`default_nettype none

module ct_fp_mul #(
  parameter int unsigned Lanes = 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                valid_i,
  input  logic [32*Lanes-1:0] a_i,
  input  logic [32*Lanes-1:0] b_i,

  output logic                valid_o,
  output logic [32*Lanes-1:0] prod_o
);

  localparam int unsigned Lat = 5;

  if (Lanes == 0) begin : g_check_lanes
    ct_error_fp_mul_lanes_must_be_at_least_1 u_error ();
  end

  localparam int unsigned WCtl = 13;  // {nan, inf, sign, exponent[10, signed]}

  // The mantissa with its hidden bit; zeros and subnormals give 0.
  function automatic logic [23:0] mantissa(input logic [30:0] x);
    mantissa = x[30:23] != '0 ? {1'b1, x[22:0]} : 24'd0;
  endfunction

  // What goes along with the product. The exponent is that of a product in [1, 2).
  function automatic logic [WCtl-1:0] control(input logic [31:0] a, input logic [31:0] b);
    logic a_top, b_top, nan, inf;
    begin
      a_top   = &a[30:23];
      b_top   = &b[30:23];
      inf     = a_top || b_top;
      nan     = (a_top && a[22:0] != '0) || (b_top && b[22:0] != '0) || (inf && (a[30:23] == '0 || b[30:23] == '0));
      control = {nan, inf, a[31] ^ b[31], {2'b0, a[30:23]} + {2'b0, b[30:23]} - 10'd127};
    end
  endfunction

  function automatic logic [35:0] times(input logic [23:0] a, input logic [11:0] b);
    times = {12'd0, a} * {24'd0, b};
  endfunction

  // Stage 4: {nan, inf, sign, exponent[10, signed], mantissa[24], guard, sticky}.
  localparam int unsigned W4 = WCtl + 26;

  function automatic logic [W4-1:0] normalise(input logic [WCtl-1:0] c, input logic [47:0] p);
    normalise = {c[12:10], c[9:0] + {9'd0, p[47]}, p[47] ? p[47:23] : p[46:22], p[21:0] != '0 || (p[47] && p[22])};
  endfunction

  // A product below 2^-126 that rounds up to it counts as normal: the exponent is looked at after rounding.
  function automatic logic [31:0] round(input logic [W4-1:0] s);
    logic [32:0] rounded;  // ten bits of exponent, 23 of fraction
    begin
      rounded = {s[35:26], s[24:2]} + {32'd0, s[1] && (s[0] || s[2])};
      if (s[38])                                                         round = 32'h7FC00000;
      else if (s[37])                                                    round = {s[36], 8'hFF, 23'd0};
      else if (!s[25] || rounded[32] || rounded[32:23] == '0)            round = {s[36], 31'd0};
      else if (rounded[31] || rounded[30:23] == 8'hFF)                   round = {s[36], 8'hFF, 23'd0};
      else                                                               round = {s[36], rounded[30:0]};
    end
  endfunction

  logic [Lat-1:0]        vld_q;
  logic [WCtl*Lanes-1:0] ctl1_q, ctl2_q, ctl3_q;
  logic [24*Lanes-1:0]   a1_q, b1_q;
  logic [36*Lanes-1:0]   low2_q, high2_q;
  logic [48*Lanes-1:0]   prod3_q;
  logic [W4*Lanes-1:0]   s4_q;
  logic [32*Lanes-1:0]   prod_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) vld_q <= '0;
    else         vld_q <= {vld_q[Lat-2:0], valid_i};
  end

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      for (int i = 0; i < Lanes; i++) begin
        ctl1_q[WCtl*i +: WCtl] <= control(a_i[32*i +: 32], b_i[32*i +: 32]);
        a1_q[24*i +: 24]       <= mantissa(a_i[32*i +: 31]);
        b1_q[24*i +: 24]       <= mantissa(b_i[32*i +: 31]);
      end
    end
    if (vld_q[0]) begin
      ctl2_q <= ctl1_q;
      for (int i = 0; i < Lanes; i++) begin
        low2_q[36*i +: 36]  <= times(a1_q[24*i +: 24], b1_q[24*i +: 12]);
        high2_q[36*i +: 36] <= times(a1_q[24*i +: 24], b1_q[24*i + 12 +: 12]);
      end
    end
    if (vld_q[1]) begin
      ctl3_q <= ctl2_q;
      for (int i = 0; i < Lanes; i++) begin
        prod3_q[48*i +: 48] <= {high2_q[36*i +: 36], 12'd0} + {12'd0, low2_q[36*i +: 36]};
      end
    end
    if (vld_q[2]) begin
      for (int i = 0; i < Lanes; i++) s4_q[W4*i +: W4] <= normalise(ctl3_q[WCtl*i +: WCtl], prod3_q[48*i +: 48]);
    end
    if (vld_q[3]) begin
      for (int i = 0; i < Lanes; i++) prod_q[32*i +: 32] <= round(s4_q[W4*i +: W4]);
    end
  end

  assign valid_o = vld_q[Lat-1];
  assign prod_o  = prod_q;

endmodule

`default_nettype wire
