// SPDX-License-Identifier: Apache-2.0
//
// Weight tiles of both contexts (active and shadow) and the dot products of one A row with Cols active columns.
//
// Tiles       ld_valid_i[c] writes a word of context c's shadow tile: row ld_idx_i, or column ld_idx_i with ld_trans_i; the word's exponent
//             becomes that of column ld_idx_i of the product (words read transposed carry one exponent, so it is right for both).
//             copy_i[c] makes the shadow tile active; word 0 of the next tile may be written at the same edge.
// Rows        row_valid_i with a row: multiplied with columns 0 .. Cols-1 of row_ctx_i's active tile, or (Cols = 8, row_half_i) with
//             columns 8 .. 15. One a cycle.
// Latency     s_o, ea_o, eb_o: Lat = 4 cycles after row_valid_i: operands, products, sums of four, sums. row_valid_i and copy_i of one
//             context in one cycle: the row still sees the old tile.
//
// Parameters
//   Cols     columns computed at once, 16 or 8
//   PackDsp  0: a multiplier for each product. 1: two products that share their A operand in one 18 x 18 multiplier (fewer DSPs, more
//            LUTs, slower to simulate). The results are the same bits.

`default_nettype none

module ct_mxu_dots #(
  parameter int unsigned Cols    = 16,
  parameter int unsigned PackDsp = 0
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic [1:0]         ld_valid_i,
  input  logic [1:0]         ld_trans_i,
  input  logic [7:0]         ld_idx_i,
  input  logic [271:0]       ld_word_i,    // {exponent, mantissas} for each context
  input  logic [1:0]         copy_i,

  input  logic               row_valid_i,
  input  logic               row_ctx_i,
  input  logic               row_half_i,
  input  logic [135:0]       row_i,        // {exponent, mantissas}

  output logic [19*Cols-1:0] s_o,          // signed
  output logic [7:0]         ea_o,
  output logic [8*Cols-1:0]  eb_o
);

  if (Cols != 16 && Cols != 8) begin : g_check_cols
    ct_error_mxu_cols_must_be_16_or_8 u_error ();
  end

  // --- tiles ----------------------------------------------------------------------------------------------------------------

  // Column j of the product: 16 weights and an exponent.
  logic [127:0] shadow0 [0:15];
  logic [127:0] shadow1 [0:15];
  logic [127:0] active0 [0:15];
  logic [127:0] active1 [0:15];
  logic [127:0] shadow_exp0_q, shadow_exp1_q;
  logic [127:0] active_exp0_q, active_exp1_q;

  always_ff @(posedge clk_i) begin
    if (copy_i[0]) begin
      for (int j = 0; j < 16; j++) active0[j] <= shadow0[j];
      active_exp0_q <= shadow_exp0_q;
    end
    if (copy_i[1]) begin
      for (int j = 0; j < 16; j++) active1[j] <= shadow1[j];
      active_exp1_q <= shadow_exp1_q;
    end
    if (ld_valid_i[0]) begin
      shadow_exp0_q[8*ld_idx_i[3:0] +: 8] <= ld_word_i[135:128];
      if (ld_trans_i[0]) begin
        for (int j = 0; j < 16; j++) shadow0[j][8*ld_idx_i[3:0] +: 8] <= ld_word_i[8*j +: 8];
      end else begin
        shadow0[ld_idx_i[3:0]] <= ld_word_i[127:0];
      end
    end
    if (ld_valid_i[1]) begin
      shadow_exp1_q[8*ld_idx_i[7:4] +: 8] <= ld_word_i[271:264];
      if (ld_trans_i[1]) begin
        for (int j = 0; j < 16; j++) shadow1[j][8*ld_idx_i[7:4] +: 8] <= ld_word_i[136+8*j +: 8];
      end else begin
        shadow1[ld_idx_i[7:4]] <= ld_word_i[263:136];
      end
    end
  end

  // --- operands -------------------------------------------------------------------------------------------------------------

  logic [2:0]          vld_q;                    // what is in w_q, in the products, in the sums of four
  logic [127:0]        a_q;
  logic [128*Cols-1:0] w_q;
  logic [31:0]         ea_q;                     // stage i in bits 8*i +: 8
  logic [8*Cols-1:0]   eb0_q, eb1_q, eb2_q, eb3_q;
  logic [3:0]          col0;                     // first column of this half

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) vld_q <= '0;
    else         vld_q <= {vld_q[1:0], row_valid_i};
  end

  assign col0 = {(Cols == 8) && row_half_i, 3'b000};

  always_ff @(posedge clk_i) begin
    if (row_valid_i) begin
      a_q <= row_i[127:0];
      if (row_ctx_i) begin
        for (int j = 0; j < Cols; j++) w_q[128*j +: 128] <= active1[col0 | 4'(j)];
        eb0_q <= col0[3] ? active_exp1_q[127 -: 8*Cols] : active_exp1_q[8*Cols-1:0];
      end else begin
        for (int j = 0; j < Cols; j++) w_q[128*j +: 128] <= active0[col0 | 4'(j)];
        eb0_q <= col0[3] ? active_exp0_q[127 -: 8*Cols] : active_exp0_q[8*Cols-1:0];
      end
    end
    if (vld_q[0]) eb1_q <= eb0_q;
    if (vld_q[1]) eb2_q <= eb1_q;
    if (vld_q[2]) eb3_q <= eb2_q;
    ea_q <= {ea_q[23:0], row_i[135:128]};
  end

  assign ea_o = ea_q[31:24];
  assign eb_o = eb3_q;

  // --- products and sums ----------------------------------------------------------------------------------------------------

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
      if (vld_q[1]) begin
        for (int i = 0; i < 4 * Cols; i++)
          t_q[17*i +: 17] <= 17'($signed(p_q[64*i +: 16])) + 17'($signed(p_q[64*i+16 +: 16])) +
                             17'($signed(p_q[64*i+32 +: 16])) + 17'($signed(p_q[64*i+48 +: 16]));
      end
      if (vld_q[2]) begin
        for (int j = 0; j < Cols; j++)
          s_q[19*j +: 19] <= 19'($signed(t_q[68*j +: 17])) + 19'($signed(t_q[68*j+17 +: 17])) +
                             19'($signed(t_q[68*j+34 +: 17])) + 19'($signed(t_q[68*j+51 +: 17]));
      end
    end
  end else begin : g_packed
    // Columns 2j (weight w) and 2j + 1 (weight x) share a: P = a * (w + 1024 x) = a w + 1024 a x fits 18 x 18 bits because |q| <= 127.
    // The low ten bits of P are those of a w. Above them lies a x + h, where h = floor(a w / 1024) is in -16 .. 15, so five bits
    // of a x, multiplied separately, give h. Sums are taken of the three parts (low bits, h, P / 1024) and put together at the end.
    localparam int unsigned Pairs = Cols / 2;
    logic [416*Pairs-1:0] p_q;   // 16 products P of 26 bits for each pair
    logic [80*Pairs-1:0]  lo_q;  // 16 times five bits of a x
    logic [48*Pairs-1:0]  tl_q;  // four sums of the low bits, 12 bits each
    logic [28*Pairs-1:0]  th_q;  // four sums of h, 7 bits each
    logic [72*Pairs-1:0]  tp_q;  // four sums of P / 1024, 18 bits each

    // w + 1024 x as 18 bits.
    function automatic logic [17:0] pack(input logic [7:0] w, input logic [7:0] x);
      pack = {x - {7'd0, w[7]}, {2{w[7]}}, w};
    endfunction

    function automatic logic [4:0] high(input logic [4:0] p, input logic [4:0] lo);
      high = p - lo;
    endfunction

    always_ff @(posedge clk_i) begin
      if (vld_q[0]) begin
        for (int j = 0; j < Pairs; j++) begin
          for (int k = 0; k < 16; k++) begin
            p_q[26*(16*j+k) +: 26] <= 26'($signed(a_q[8*k +: 8]) * $signed(pack(w_q[256*j+8*k +: 8], w_q[256*j+128+8*k +: 8])));
            lo_q[5*(16*j+k) +: 5]  <= a_q[8*k +: 5] * w_q[256*j+128+8*k +: 5];
          end
        end
      end
      if (vld_q[1]) begin
        for (int i = 0; i < 4 * Pairs; i++) begin
          tl_q[12*i +: 12] <= {2'b0, p_q[104*i +: 10]} + {2'b0, p_q[104*i+26 +: 10]} +
                              {2'b0, p_q[104*i+52 +: 10]} + {2'b0, p_q[104*i+78 +: 10]};
          th_q[7*i +: 7]   <= 7'($signed(high(p_q[104*i+10 +: 5], lo_q[20*i +: 5]))) +
                              7'($signed(high(p_q[104*i+36 +: 5], lo_q[20*i+5 +: 5]))) +
                              7'($signed(high(p_q[104*i+62 +: 5], lo_q[20*i+10 +: 5]))) +
                              7'($signed(high(p_q[104*i+88 +: 5], lo_q[20*i+15 +: 5])));
          tp_q[18*i +: 18] <= 18'($signed(p_q[104*i+10 +: 16])) + 18'($signed(p_q[104*i+36 +: 16])) +
                              18'($signed(p_q[104*i+62 +: 16])) + 18'($signed(p_q[104*i+88 +: 16]));
        end
      end
      if (vld_q[2]) begin
        for (int j = 0; j < Pairs; j++) begin
          s_q[38*j +: 19]    <= {5'd0, 14'(tl_q[48*j +: 12]) + 14'(tl_q[48*j+12 +: 12]) + 14'(tl_q[48*j+24 +: 12]) + 14'(tl_q[48*j+36 +: 12])} +
                                {9'($signed(th_q[28*j +: 7])) + 9'($signed(th_q[28*j+7 +: 7])) +
                                 9'($signed(th_q[28*j+14 +: 7])) + 9'($signed(th_q[28*j+21 +: 7])), 10'd0};
          s_q[38*j+19 +: 19] <= 19'($signed(tp_q[72*j +: 18])) + 19'($signed(tp_q[72*j+18 +: 18])) +
                                19'($signed(tp_q[72*j+36 +: 18])) + 19'($signed(tp_q[72*j+54 +: 18])) -
                                (19'($signed(th_q[28*j +: 7])) + 19'($signed(th_q[28*j+7 +: 7])) +
                                 19'($signed(th_q[28*j+14 +: 7])) + 19'($signed(th_q[28*j+21 +: 7])));
        end
      end
    end
  end

endmodule

`default_nettype wire
