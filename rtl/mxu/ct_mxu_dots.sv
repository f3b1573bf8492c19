// SPDX-License-Identifier: Apache-2.0
//
// Weight tiles of both contexts (active and shadow) and the dot products of one A row with Cols active columns.
//
// Tiles       ld_valid_i writes columns 2 * ld_pair_i and the next one of ld_ctx_i's shadow tile: 16 weights and their exponent each. With
//             copy_i[c] the shadow tile of c becomes the active one at the end of the cycle, in which none of its columns is written.
// Storage     a LUT RAM for each column of multipliers, with both tiles of both contexts in it (and with fewer than 16 columns all the
//             columns that use these multipliers): a fraction of what registers and their multiplexers take.
// Rows        row_valid_i with a row: multiplied with columns Cols * row_part_i .. of row_ctx_i's active tile. One a cycle. Context and part
//             come a cycle before, with pre_valid_i; a copy_i in that cycle counts.
// Latency     s_o, ea_o, eb_o: Lat = 4 cycles after row_valid_i: operands, products, sums of four, sums.
//
// Parameters
//   Cols     columns computed at once, 16, 8 or 4
//   PackDsp  0: a multiplier for each product. 1: two products that share their A operand in one 18 x 18 multiplier (fewer DSPs, more
//            LUTs, slower to simulate). The results are the same bits.

`default_nettype none

module ct_mxu_dots #(
  parameter int unsigned Cols    = 16,
  parameter int unsigned PackDsp = 0
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               ld_valid_i,
  input  logic               ld_ctx_i,
  input  logic [2:0]         ld_pair_i,
  input  logic [271:0]       ld_words_i,   // {exponent, mantissas} for each column
  input  logic [1:0]         copy_i,

  input  logic               pre_valid_i,
  input  logic               pre_ctx_i,
  input  logic [1:0]         pre_part_i,
  input  logic               row_valid_i,
  input  logic [135:0]       row_i,        // {exponent, mantissas}

  output logic [19*Cols-1:0] s_o,          // signed
  output logic [7:0]         ea_o,
  output logic [8*Cols-1:0]  eb_o
);

  if (Cols != 16 && Cols != 8 && Cols != 4) begin : g_check_cols
    ct_error_mxu_cols_must_be_16_8_or_4 u_error ();
  end

  // --- tiles and operands ---------------------------------------------------------------------------------------------------

  // Address in the RAMs: context, which of its two tiles, and which part of the columns.
  localparam int unsigned PartW = (Cols == 16) ? 0 : (Cols == 8) ? 1 : 2;
  localparam int unsigned AddrW = 2 + PartW;
  localparam int unsigned Words = 1 << AddrW;

  logic [1:0]          bank_d, bank_q;           // the active tile of each context
  logic [AddrW-1:0]    rd_addr, wr_addr;
  logic [2:0]          vld_q;                    // what is in w_q, in the products, in the sums of four
  logic [127:0]        a_q;
  logic [128*Cols-1:0] w_q;
  logic [31:0]         ea_q;                     // stage i in bits 8*i +: 8
  logic [8*Cols-1:0]   eb0_q, eb1_q, eb2_q, eb3_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bank_q <= 2'b00;
      vld_q  <= '0;
    end else begin
      bank_q <= bank_d;
      vld_q  <= {vld_q[1:0], row_valid_i};
    end
  end

  assign bank_d = bank_q ^ copy_i;
  logic unused_part;
  assign unused_part = ^pre_part_i;
  if (PartW == 0) begin : g_whole
    assign rd_addr = {pre_ctx_i, bank_d[pre_ctx_i]};
    assign wr_addr = {ld_ctx_i, !bank_q[ld_ctx_i]};
  end else begin : g_parts
    assign rd_addr = {pre_ctx_i, bank_d[pre_ctx_i], pre_part_i[PartW-1:0]};
    assign wr_addr = {ld_ctx_i, !bank_q[ld_ctx_i], ld_pair_i[2 -: PartW]};
  end

  for (genvar j = 0; j < Cols; j++) begin : g_col
    (* ram_style = "distributed" *) logic [135:0] tiles [0:Words-1];
    // A copy for each column: it drives 34 RAMs.
    (* keep *) logic [AddrW-1:0] rd_addr_q;
    logic wr;
    assign wr = ld_valid_i && (ld_pair_i & 3'(Cols / 2 - 1)) == 3'(j / 2);
    always_ff @(posedge clk_i) begin
      if (wr) tiles[wr_addr] <= ld_words_i[136*(j%2) +: 136];
      if (pre_valid_i) rd_addr_q <= rd_addr;
      if (row_valid_i) {eb0_q[8*j +: 8], w_q[128*j +: 128]} <= tiles[rd_addr_q];
    end
  end

  always_ff @(posedge clk_i) begin
    if (row_valid_i) a_q   <= row_i[127:0];
    if (vld_q[0])    eb1_q <= eb0_q;
    if (vld_q[1])    eb2_q <= eb1_q;
    if (vld_q[2])    eb3_q <= eb2_q;
    ea_q <= {ea_q[23:0], row_i[135:128]};
  end

  assign ea_o = ea_q[31:24];
  assign eb_o = eb3_q;

  // --- products and sums ----------------------------------------------------------------------------------------------------

  // Sums are written as pairs, with the sign bit of what goes into every other adder inverted, that is with 2^(n-1) added to it: Yosys
  // would merge adders that follow each other directly into a carry-save tree of five times the size.

  // x0 + x1 + x2 + x3, 16 bits signed each, |x| < 2^14; the sum is offset by 2^16.
  function automatic logic [16:0] sum4(input logic [63:0] x);
    logic [15:0] y0, y1;
    y0   = x[15:0] + x[31:16];
    y1   = x[47:32] + x[63:48];
    sum4 = {1'b0, ~y0[15], y0[14:0]} + {1'b0, ~y1[15], y1[14:0]};
  endfunction

  // The same of four sums that are offset by 2^16 each; the result is not.
  function automatic logic [18:0] sum16(input logic [67:0] x);
    logic [17:0] y0, y1;
    y0    = {1'b0, x[16:0]} + {1'b0, x[33:17]};
    y1    = {1'b0, x[50:34]} + {1'b0, x[67:51]};
    sum16 = {{2{~y0[17]}}, y0[16:0]} + {{2{~y1[17]}}, y1[16:0]};
  endfunction

  logic [19*Cols-1:0] s_q;
  assign s_o = s_q;

  if (PackDsp == 0) begin : g_plain
    logic [256*Cols-1:0] p_q;  // 16 products of 16 bits for each column
    logic [68*Cols-1:0]  t_q;  // four sums of 17 bits for each column

    always_ff @(posedge clk_i) begin
      if (vld_q[0]) begin
        for (int j = 0; j < Cols; j++)
          for (int k = 0; k < 16; k++)
            p_q[16*(16*j+k) +: 16] <= 16'($signed(a_q[8*k +: 8]) * $signed(w_q[128*j+8*k +: 8]));
      end
      if (vld_q[1]) for (int i = 0; i < 4 * Cols; i++) t_q[17*i +: 17] <= sum4(p_q[64*i +: 64]);
      if (vld_q[2]) for (int j = 0; j < Cols; j++)     s_q[19*j +: 19] <= sum16(t_q[68*j +: 68]);
    end
  end else begin : g_packed
    // Columns 2j (weight w) and 2j + 1 (weight x) share a: P = a * (w + 1024 x) = a w + 1024 a x fits 18 x 18 bits because |q| <= 127.
    // The low ten bits of P are those of a w. Above them lies a x + h, where h = floor(a w / 1024) is in -16 .. 15, so five bits
    // of a x, multiplied separately, give h. Sums of four are taken of the three parts (low bits, h, P / 1024), then put together.
    localparam int unsigned Pairs = Cols / 2;
    logic [416*Pairs-1:0] p_q;   // 16 products P of 26 bits for each pair
    logic [80*Pairs-1:0]  lo_q;  // 16 times five bits of a x
    logic [48*Pairs-1:0]  tl_q;  // four sums of the low bits, 12 bits each
    logic [28*Pairs-1:0]  th_q;  // four sums of h, 7 bits each, signed
    logic [68*Pairs-1:0]  tp_q;  // four sums of P / 1024, 17 bits each, offset by 2^16

    // w + 1024 x as 18 bits.
    function automatic logic [17:0] pack(input logic [7:0] w, input logic [7:0] x);
      pack = {x - {7'd0, w[7]}, {2{w[7]}}, w};
    endfunction

    // Five bits of a x, as rows of ANDs: a multiplication would take another DSP.
    function automatic logic [4:0] low_product(input logic [4:0] a, input logic [4:0] x);
      low_product = (x & {5{a[0]}}) + {x[3:0] & {4{a[1]}}, 1'b0} + {x[2:0] & {3{a[2]}}, 2'b0} +
                    {x[1:0] & {2{a[3]}}, 3'b0} + {x[0] & a[4], 4'b0};
    endfunction

    // Sum of four numbers of ten bits.
    function automatic logic [11:0] sum_low(input logic [39:0] p);
      logic [10:0] y0, y1;
      y0      = {1'b0, p[9:0]} + {1'b0, p[19:10]};
      y1      = {1'b0, p[29:20]} + {1'b0, p[39:30]};
      // Both with 1024 taken away, which 2048 gives back.
      sum_low = ({{2{~y0[10]}}, y0[9:0]} + {{2{~y1[10]}}, y1[9:0]}) ^ 12'h800;
    endfunction

    // Sum of h over four P: from bits 14..10 of each P and five bits of each a x.
    function automatic logic [6:0] sum_high(input logic [19:0] p, input logic [19:0] lo);
      logic [19:0] h;
      logic [5:0]  y0, y1;
      for (int i = 0; i < 4; i++) h[5*i +: 5] = (p[5*i +: 5] - lo[5*i +: 5]) ^ 5'h10;
      y0       = {1'b0, h[4:0]} + {1'b0, h[9:5]};
      y1       = {1'b0, h[14:10]} + {1'b0, h[19:15]};
      sum_high = {{2{~y0[5]}}, y0[4:0]} + {{2{~y1[5]}}, y1[4:0]};
    endfunction

    // Sums of four products a w, and of four a x, offset by 2^16.
    function automatic logic [16:0] sum_w(input logic [11:0] low, input logic [6:0] high);
      sum_w = {high + {5'd0, low[11:10]}, low[9:0]} ^ 17'h10000;
    endfunction

    function automatic logic [16:0] sum_x(input logic [16:0] all, input logic [6:0] high);
      sum_x = ((all ^ 17'h10000) - {{10{high[6]}}, high}) ^ 17'h10000;
    endfunction

    always_ff @(posedge clk_i) begin
      if (vld_q[0]) begin
        for (int j = 0; j < Pairs; j++) begin
          for (int k = 0; k < 16; k++) begin
            p_q[26*(16*j+k) +: 26] <= 26'($signed(a_q[8*k +: 8]) * $signed(pack(w_q[256*j+8*k +: 8], w_q[256*j+128+8*k +: 8])));
            lo_q[5*(16*j+k) +: 5]  <= low_product(a_q[8*k +: 5], w_q[256*j+128+8*k +: 5]);
          end
        end
      end
      if (vld_q[1]) begin
        for (int i = 0; i < 4 * Pairs; i++) begin
          tl_q[12*i +: 12] <= sum_low({p_q[104*i+78 +: 10], p_q[104*i+52 +: 10], p_q[104*i+26 +: 10], p_q[104*i +: 10]});
          th_q[7*i +: 7]   <= sum_high({p_q[104*i+88 +: 5], p_q[104*i+62 +: 5], p_q[104*i+36 +: 5], p_q[104*i+10 +: 5]}, lo_q[20*i +: 20]);
          tp_q[17*i +: 17] <= sum4({p_q[104*i+88 +: 16], p_q[104*i+62 +: 16], p_q[104*i+36 +: 16], p_q[104*i+10 +: 16]});
        end
      end
      if (vld_q[2]) begin
        for (int j = 0; j < Pairs; j++) begin
          s_q[38*j +: 19]    <= sum16({sum_w(tl_q[48*j+36 +: 12], th_q[28*j+21 +: 7]), sum_w(tl_q[48*j+24 +: 12], th_q[28*j+14 +: 7]),
                                       sum_w(tl_q[48*j+12 +: 12], th_q[28*j+7 +: 7]), sum_w(tl_q[48*j +: 12], th_q[28*j +: 7])});
          s_q[38*j+19 +: 19] <= sum16({sum_x(tp_q[68*j+51 +: 17], th_q[28*j+21 +: 7]), sum_x(tp_q[68*j+34 +: 17], th_q[28*j+14 +: 7]),
                                       sum_x(tp_q[68*j+17 +: 17], th_q[28*j+7 +: 7]), sum_x(tp_q[68*j +: 17], th_q[28*j +: 7])});
        end
      end
    end
  end

endmodule

`default_nettype wire
