// SPDX-License-Identifier: Apache-2.0
//
// FP32 functions: y_o = f(x_i) on every lane, f chosen by sel_i: 0 exp, 1 reciprocal, 2 natural logarithm, 3 reciprocal square root.
// 4..7 are reserved and give NaN. docs/numerics.md gives the algorithms bit by bit and their measured errors.
//
// Latency     11 cycles, fixed (Lat below).
// Throughput  one vector a cycle, sel_i may change every cycle. No back-pressure: valid_o is valid_i eleven cycles later.
// Reset       clears the valid bits only; data registers move with their stage's valid bit.
// Cost        two MULT18X18D, two DP16KD (the table), 940 LUT4, 248 CCU2C and 761 FF a lane on ECP5 (Yosys 0.23).
//
// Every function is a decreasing convex one on 23 bits of argument: 7 bits choose a segment of the table, 16 bits (t) go on in it.
//     g = c1 - (c2 * t >> 20)    step = g * t >> 13    y = c0 - step
// Stages      1 unpack; exp: multiples of the mantissa    2 exp: the mantissa times log2(e)    3 exp: to fixed point   4 table
//             5 table's output again, near the multipliers (a block RAM is slow)   6 g   7 step   8 y (log: around a multiple of
//             ln 2)   9 normalise by 32, 16   10 normalise by 8, 4   11 normalise by 2, 1 and pack
//
// Parameters
//   Lanes  lanes side by side; lane i uses bits 32*i +: 32

`default_nettype none

module ct_fn #(
  parameter int unsigned Lanes = 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                valid_i,
  input  logic [2:0]          sel_i,
  input  logic [32*Lanes-1:0] x_i,

  output logic                valid_o,
  output logic [32*Lanes-1:0] y_o
);

  localparam int unsigned Lat = 11;

  if (Lanes == 0) begin : g_check_lanes
    ct_error_fn_lanes_must_be_at_least_1 u_error ();
  end

  // FnTable, 512 rows of 64 bits: {c0[28], 0[2], c1[18], c2[16]}, row 128 * function + segment.
  `include "ct_fn_table.svh"

  localparam logic [1:0] Exp   = 2'd0;
  localparam logic [1:0] Recip = 2'd1;
  localparam logic [1:0] Log   = 2'd2;
  localparam logic [1:0] Rsqrt = 2'd3;

  // ln(2) in units of 2^-28, and its multiples by 0..15: the logarithm's k * ln 2 is two of them and an adder.
  localparam logic [31:0] Ln2 = 32'h0B17217F;
  localparam logic [16*32-1:0] Ln2Times = {
    Ln2 * 32'd15, Ln2 * 32'd14, Ln2 * 32'd13, Ln2 * 32'd12, Ln2 * 32'd11, Ln2 * 32'd10, Ln2 * 32'd9, Ln2 * 32'd8,
    Ln2 * 32'd7,  Ln2 * 32'd6,  Ln2 * 32'd5,  Ln2 * 32'd4,  Ln2 * 32'd3,  Ln2 * 32'd2,  Ln2,         32'd0
  };

  // The way of a lane from stage to stage beside the number itself:
  //   {special[2], sign of y, exponent[10, signed], aux[8]}
  // special: what y is whatever the polynomial gives. exponent: the field of y if y's polynomial lies in [1, 2) (2^28 of the
  // logarithm's units are 1). aux: exp: how far to shift; log: the multiple of ln 2; reciprocal square root: an odd power of 2.
  localparam int unsigned WCtl = 21;
  localparam logic [1:0] None = 2'd0;
  localparam logic [1:0] Nan  = 2'd1;
  localparam logic [1:0] Inf  = 2'd2;
  localparam logic [1:0] Zero = 2'd3;

  // --- Stage 1 ---

  function automatic logic [WCtl-1:0] unpack(input logic [2:0] sel, input logic [31:0] x);
    logic       zero, top, neg;
    logic [1:0] special;
    logic       sign;
    logic [9:0] exponent;
    logic [7:0] e, aux;
    begin
      e        = x[30:23];
      neg      = x[31];
      zero     = e == '0;
      top      = &e;
      special  = None;
      sign     = 1'b0;
      exponent = 10'd126;
      aux      = '0;
      case (sel[1:0])
        Exp: begin
          // The exponent is made in stage 4, out of the number; that far, sign is x's. Zeros are shifted away like all |x| < 2^-25.
          sign = neg;
          aux  = 8'd133 - e;
          if (e > 8'd133) special = neg ? Zero : Inf;
        end
        Recip: begin
          sign     = neg;
          exponent = 10'd253 - {2'b0, e};
          if (zero) special = Inf;
          if (top)  special = Zero;
        end
        Log: begin
          // x = 2^(e-127) (1 + m): log(x) = (e - 126) ln 2 - y for x >= 1, -log(x) = (126 - e) ln 2 + y below.
          sign = e < 8'd127;
          aux  = sign ? 8'd126 - e : e - 8'd126;
          if (top)          special = Inf;
          if (neg)          special = Nan;
          if (zero)         special = Inf;
        end
        default: begin  // Rsqrt
          sign     = neg;
          exponent = 10'd190 - {3'b0, e[7:1]} - {9'd0, e[0]};
          aux      = {7'd0, !e[0]};
          if (top)  special = Zero;
          if (neg)  special = Nan;
          if (zero) special = Inf;
        end
      endcase
      if (sel[2] || (top && x[22:0] != '0)) special = Nan;
      unpack = {special, sign, exponent, aux};
    end
  endfunction

  // The mantissa times 23, 85 and 155, of which log2(e) = 0x17154765 * 2^-28 is made:
  // 0x17154765 = 23 * 2^24 + 85 * 2^14 + 2^11 - 155.
  function automatic logic [28:0] times_23(input logic [23:0] m);
    times_23 = {1'b0, m, 4'd0} + {2'b0, m, 3'd0} - {5'd0, m};
  endfunction
  function automatic logic [31:0] times_5(input logic [23:0] m);
    times_5 = {6'd0, m, 2'd0} + {8'd0, m};
  endfunction
  function automatic logic [31:0] times_85(input logic [23:0] m);
    times_85 = (times_5(m) << 4) + times_5(m);
  endfunction
  function automatic logic [31:0] times_155(input logic [23:0] m);
    times_155 = (times_5(m) << 5) - times_5(m);
  endfunction

  // --- Stage 2: bits 52..21 of the mantissa times 0x17154765 ---

  function automatic logic [31:0] times_log2e(input logic [23:0] m, input logic [28:0] m23, input logic [31:0] m85,
                                              input logic [31:0] m155);
    logic [52:0] low, high;
    begin
      low         = {18'd0, m, 11'd0} - {21'd0, m155};
      high        = {m23, 24'd0} + {7'd0, m85, 14'd0};
      times_log2e = 32'((low + high) >> 21);
    end
  endfunction

  // --- Stage 3: {whole[9, signed], argument[23]} ---

  // exp: w = -x / ln 2. p * 2^-24 is |x| / ln 2 for a shift by 0.
  function automatic logic [31:0] to_fixed(input logic x_neg, input logic [31:0] p, input logic [7:0] shift);
    logic [31:0] z;
    begin
      z        = p >> shift;
      to_fixed = 32'(((x_neg ? {1'b0, z} : {1'b1, ~z}) + 33'd1) >> 1);  // rounds half up to 23 bits, and negates: the same carry
    end
  endfunction

  // aux is that of unpack().
  function automatic logic [31:0] reduce(input logic [1:0] fn, input logic x_neg, input logic [7:0] aux, input logic [22:0] m,
                                         input logic [31:0] p);
    reduce = fn == Exp ? to_fixed(x_neg, p, aux) : fn == Rsqrt ? {9'd0, aux[0], m[22:1]} : {9'd0, m};
  endfunction

  // --- Stage 4 ---

  // {special[2], sign, exponent[10, signed]}
  function automatic logic [12:0] finish(input logic [1:0] fn, input logic [12:0] c, input logic [8:0] whole);
    finish = fn == Exp ? {c[12:11], 1'b0, 10'd126 - {whole[8], whole}} : c;
  endfunction

  // The whole multiple of ln 2 (log), or the 1 that the tables of functions in [1, 2) leave out.
  function automatic logic [35:0] offset(input logic [1:0] fn, input logic [7:0] k);
    offset = fn == Log ? {Ln2Times[32*k[7:4] +: 32], 4'd0} + {4'd0, Ln2Times[32*k[3:0] +: 32]} : 36'h008000000;
  endfunction

  // --- Stages 6 to 8 ---

  function automatic logic [17:0] slope(input logic [17:0] c1, input logic [15:0] c2, input logic [15:0] t);
    slope = c1 - {6'd0, 12'(({16'd0, c2} * {16'd0, t}) >> 20)};
  endfunction

  function automatic logic [20:0] step(input logic [17:0] g, input logic [15:0] t);
    step = 21'(({16'd0, g} * {18'd0, t}) >> 13);
  endfunction

  // A falling y (all but log of x >= 1) is base - step, a rising one base + step.
  function automatic logic rises(input logic [1:0] fn, input logic sign);
    rises = fn == Log && !sign;
  endfunction

  // --- Stages 9 to 11: {special, sign, exponent, zeros, value}: normalised in three goes, then packed, truncating ---

  localparam int unsigned W9  = 51;  // zeros[2], value[36]
  localparam int unsigned W10 = 44;  // zeros[4], value[27]: of its top four bits one is set

  function automatic logic [W9-1:0] shift_far(input logic [12:0] c, input logic [35:0] y);
    logic [35:0] v;
    logic [1:0]  n;
    begin
      v = y;
      n = '0;
      if (v[35:4] == '0) begin
        v    = v << 32;
        n[1] = 1'b1;
      end
      if (v[35:20] == '0) begin
        v    = v << 16;
        n[0] = 1'b1;
      end
      shift_far = {c, n, v};
    end
  endfunction

  function automatic logic [W10-1:0] shift_near(input logic [W9-1:0] s);
    logic [35:0] v;
    logic [1:0]  n;
    begin
      v = s[35:0];
      n = '0;
      if (v[35:28] == '0) begin
        v    = v << 8;
        n[1] = 1'b1;
      end
      if (v[35:32] == '0) begin
        v    = v << 4;
        n[0] = 1'b1;
      end
      shift_near = {s[50:36], n, v[35:9]};
    end
  endfunction

  function automatic logic [31:0] pack(input logic [12:0] c, input logic [3:0] far, input logic [26:0] y);
    logic [26:0] v;
    logic [1:0]  n;
    logic [9:0]  exponent;
    begin
      v = y;
      n = '0;
      if (v[26:25] == '0) begin
        v    = v << 2;
        n[1] = 1'b1;
      end
      if (!v[26]) begin
        v    = v << 1;
        n[0] = 1'b1;
      end
      exponent = c[9:0] + 10'd8 - {4'd0, far, n};
      if (c[12:11] == Nan)                               pack = 32'h7FC00000;
      else if (c[12:11] == Inf)                          pack = {c[10], 8'hFF, 23'd0};
      else if (c[12:11] == Zero)                         pack = {c[10], 31'd0};
      else if (!v[26])                                   pack = '0;
      else if (exponent[9] || exponent == '0)            pack = {c[10], 31'd0};
      else if (exponent[8] || &exponent[7:0])            pack = {c[10], 8'hFF, 23'd0};
      else                                               pack = {c[10], exponent[7:0], v[25:3]};
    end
  endfunction

  // --- Pipeline ---

  // One copy of the table for all lanes: the tools make as many memories of it as their ports need.
  logic [61:0] rom [0:511];
  initial begin
    for (int i = 0; i < 512; i++) rom[i] = {FnTable[64*i + 36 +: 28], FnTable[64*i +: 34]};
  end

  logic [Lat-1:0]        vld_q;
  logic [1:0]            fn1_q, fn2_q, fn3_q, fn4_q, fn5_q, fn6_q, fn7_q;
  logic [WCtl*Lanes-1:0] ctl1_q, ctl2_q, ctl3_q;
  logic [29*Lanes-1:0]   m23_q;
  logic [32*Lanes-1:0]   m85_q, m155_q, prod2_q, arg3_q;
  logic [23*Lanes-1:0]   mant1_q, mant2_q;
  logic [13*Lanes-1:0]   ctl4_q, ctl5_q, ctl6_q, ctl7_q, ctl8_q;
  logic [36*Lanes-1:0]   offset4_q, offset5_q, base6_q, base7_q, y8_q;
  logic [16*Lanes-1:0]   t4_q, t5_q, t6_q;
  logic [62*Lanes-1:0]   row4_q, row5_q;
  logic [18*Lanes-1:0]   g6_q;
  logic [21*Lanes-1:0]   step7_q;
  logic [W9*Lanes-1:0]   s9_q;
  logic [W10*Lanes-1:0]  s10_q;
  logic [32*Lanes-1:0]   y_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) vld_q <= '0;
    else         vld_q <= {vld_q[Lat-2:0], valid_i};
  end

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      fn1_q <= sel_i[1:0];
      for (int i = 0; i < Lanes; i++) begin
        ctl1_q[WCtl*i +: WCtl] <= unpack(sel_i, x_i[32*i +: 32]);
        mant1_q[23*i +: 23]    <= x_i[32*i +: 23];
        m23_q[29*i +: 29]      <= times_23({1'b1, x_i[32*i +: 23]});
        m85_q[32*i +: 32]      <= times_85({1'b1, x_i[32*i +: 23]});
        m155_q[32*i +: 32]     <= times_155({1'b1, x_i[32*i +: 23]});
      end
    end
    if (vld_q[0]) begin
      fn2_q  <= fn1_q;
      ctl2_q <= ctl1_q;
      for (int i = 0; i < Lanes; i++) begin
        mant2_q[23*i +: 23] <= mant1_q[23*i +: 23];
        prod2_q[32*i +: 32] <= times_log2e({1'b1, mant1_q[23*i +: 23]}, m23_q[29*i +: 29], m85_q[32*i +: 32], m155_q[32*i +: 32]);
      end
    end
    if (vld_q[1]) begin
      fn3_q  <= fn2_q;
      ctl3_q <= ctl2_q;
      for (int i = 0; i < Lanes; i++) begin
        arg3_q[32*i +: 32] <= reduce(fn2_q, ctl2_q[WCtl*i + 18], ctl2_q[WCtl*i +: 8], mant2_q[23*i +: 23],
                                     prod2_q[32*i +: 32]);
      end
    end
    if (vld_q[2]) begin
      fn4_q <= fn3_q;
      for (int i = 0; i < Lanes; i++) begin
        row4_q[62*i +: 62]    <= rom[{fn3_q, arg3_q[32*i + 16 +: 7]}];
        t4_q[16*i +: 16]      <= arg3_q[32*i +: 16];
        ctl4_q[13*i +: 13]    <= finish(fn3_q, ctl3_q[WCtl*i + 8 +: 13], arg3_q[32*i + 23 +: 9]);
        offset4_q[36*i +: 36] <= offset(fn3_q, ctl3_q[WCtl*i +: 8]);
      end
    end
    if (vld_q[3]) begin
      fn5_q     <= fn4_q;
      row5_q    <= row4_q;
      t5_q      <= t4_q;
      ctl5_q    <= ctl4_q;
      offset5_q <= offset4_q;
    end
    if (vld_q[4]) begin
      fn6_q  <= fn5_q;
      t6_q   <= t5_q;
      ctl6_q <= ctl5_q;
      for (int i = 0; i < Lanes; i++) begin
        g6_q[18*i +: 18]    <= slope(row5_q[62*i + 16 +: 18], row5_q[62*i +: 16], t5_q[16*i +: 16]);
        base6_q[36*i +: 36] <= rises(fn5_q, ctl5_q[13*i + 10]) ? offset5_q[36*i +: 36] - {8'd0, row5_q[62*i + 34 +: 28]}
                                                               : offset5_q[36*i +: 36] + {8'd0, row5_q[62*i + 34 +: 28]};
      end
    end
    if (vld_q[5]) begin
      fn7_q   <= fn6_q;
      ctl7_q  <= ctl6_q;
      base7_q <= base6_q;
      for (int i = 0; i < Lanes; i++) step7_q[21*i +: 21] <= step(g6_q[18*i +: 18], t6_q[16*i +: 16]);
    end
    if (vld_q[6]) begin
      ctl8_q <= ctl7_q;
      for (int i = 0; i < Lanes; i++) begin
        y8_q[36*i +: 36] <= rises(fn7_q, ctl7_q[13*i + 10]) ? base7_q[36*i +: 36] + {15'd0, step7_q[21*i +: 21]}
                                                            : base7_q[36*i +: 36] - {15'd0, step7_q[21*i +: 21]};
      end
    end
    if (vld_q[7]) for (int i = 0; i < Lanes; i++) s9_q[W9*i +: W9] <= shift_far(ctl8_q[13*i +: 13], y8_q[36*i +: 36]);
    if (vld_q[8]) for (int i = 0; i < Lanes; i++) s10_q[W10*i +: W10] <= shift_near(s9_q[W9*i +: W9]);
    if (vld_q[9]) for (int i = 0; i < Lanes; i++) y_q[32*i +: 32] <= pack(s10_q[W10*i + 31 +: 13], s10_q[W10*i + 27 +: 4], s10_q[W10*i +: 27]);
  end

  assign valid_o = vld_q[Lat-1];
  assign y_o     = y_q;

endmodule

`default_nettype wire
