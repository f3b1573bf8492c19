// SPDX-License-Identifier: Apache-2.0
//
// Transposer: two buffers of 16 words of 16 bytes, written by rows and read by columns. What is in which buffer is the business of
// ct_mxu_afeed and ct_mxu_btile.
//
// Storage     sixteen byte-wide banks of LUT RAM, skewed: byte j of word i lies in bank (i + j) mod 16 at address i. So a word and
//             a column both touch every bank once, and the only logic is a rotation on each side.
// Turned      with wr_turn_i the byte lies at address j: then word i has the places that column i had of a tile that is not turned, and
//             the other way round. So one buffer takes a tile while the one before leaves it, if word i comes after column i has gone, and
//             every other tile is written and read with wr_turn_i and rd_turn_i.
// Latency     rd_data_o is column rd_col_i of buffer rd_buf_i (byte i from word i) one cycle after rd_valid_i, until the next read.
// Timing      a word is readable two cycles after wr_valid_i, and what it replaces until one cycle after it.

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_transpose (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         wr_valid_i,
  input  logic         wr_buf_i,
  input  logic         wr_turn_i,
  input  logic [3:0]   wr_row_i,
  input  logic [127:0] wr_data_i,

  input  logic         rd_valid_i,
  input  logic         rd_buf_i,
  input  logic         rd_turn_i,
  input  logic [3:0]   rd_col_i,
  output logic [127:0] rd_data_o
);

  // Byte m of the result is byte (m - n) mod 16 of x: by 0 .. 3, and by 0, 4, 8 or 12.
  function automatic logic [127:0] rotate_near(input logic [127:0] x, input logic [1:0] n);
    logic [127:0] y;
    y = n[0] ? {x[119:0], x[127:120]} : x;
    rotate_near = n[1] ? {y[111:0], y[127:112]} : y;
  endfunction

  function automatic logic [127:0] rotate_far(input logic [127:0] x, input logic [1:0] n);
    logic [127:0] y;
    y = n[0] ? {x[95:0], x[127:96]} : x;
    rotate_far = n[1] ? {y[63:0], y[127:64]} : y;
  endfunction

  logic         wr_vld_q;
  logic         wr_buf_q, wr_turn_q;
  logic [3:0]   wr_row_q;
  logic [127:0] wr_data_q;
  logic [127:0] wr_skewed;  // byte m goes to bank m
  logic [127:0] banks;      // byte m comes from bank m
  logic [3:0]   turn;       // byte i of the column is in bank i + rd_col_i
  logic [127:0] rd_data_q;
  logic [1:0]   turn_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) wr_vld_q <= 1'b0;
    else         wr_vld_q <= wr_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (wr_valid_i) begin
      wr_buf_q  <= wr_buf_i;
      wr_turn_q <= wr_turn_i;
      wr_row_q  <= wr_row_i;
      wr_data_q <= rotate_near(wr_data_i, wr_row_i[1:0]);
    end
  end

  assign wr_skewed = rotate_far(wr_data_q, wr_row_q[3:2]);
  assign turn      = -rd_col_i;

`ifdef FORMAL
  // Any place.
  (* anyconst *) logic       f_buf;
  (* anyconst *) logic [3:0] f_bank, f_addr;
  logic [127:0] f_banks;
`endif

  for (genvar m = 0; m < 16; m++) begin : g_bank
    logic [7:0] mem [0:31];
    logic [3:0] rd_addr, wr_addr;
    // Bank m holds byte rd_col_i of word m - rd_col_i.
    assign rd_addr = rd_turn_i ? rd_col_i : 4'(m) - rd_col_i;
    assign wr_addr = wr_turn_q ? 4'(m) - wr_row_q : wr_row_q;
    assign banks[8*m +: 8] = mem[{rd_buf_i, rd_addr}];
    always_ff @(posedge clk_i) begin
      if (wr_vld_q) mem[{wr_buf_q, wr_addr}] <= wr_skewed[8*m +: 8];
    end
`ifdef FORMAL
    assign f_banks[8*m +: 8] = mem[{f_buf, f_addr}];
`endif
  end

  always_ff @(posedge clk_i) begin
    if (rd_valid_i) begin
      rd_data_q <= rotate_near(banks, turn[1:0]);
      turn_q    <= turn[3:2];
    end
  end

  assign rd_data_o = rotate_far(rd_data_q, turn_q);

`ifdef FORMAL
  // What was written there last: the byte, of which word, and how it is stored.
  logic       f_wr, f_rd, f_wr_q, f_known_q, f_read_q;
  logic       f_wr_turn_q, f_turn_q;
  logic [3:0] f_wr_row_q, f_row_q, f_rd_row_q, f_rd_byte_at, f_wr_byte_at;
  logic [7:0] f_wr_byte_q, f_byte_q, f_rd_byte_q, f_stored, f_coming, f_out;
  assign f_wr         = wr_valid_i && wr_buf_i == f_buf && (wr_turn_i ? f_bank - wr_row_i : wr_row_i) == f_addr;
  assign f_rd         = rd_valid_i && rd_buf_i == f_buf && (rd_turn_i ? rd_col_i : f_bank - rd_col_i) == f_addr;
  assign f_wr_byte_at = f_bank - wr_row_i;
  assign f_rd_byte_at = f_bank - rd_col_i;
  assign f_stored     = f_banks[8*f_bank +: 8];
  assign f_coming     = wr_skewed[8*f_bank +: 8];
  assign f_out        = rd_data_o[8*f_rd_row_q +: 8];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_wr_q    <= 1'b0;
      f_known_q <= 1'b0;
      f_read_q  <= 1'b0;
    end else begin
      f_wr_q    <= f_wr;
      f_known_q <= f_known_q || f_wr_q;
      if (rd_valid_i) f_read_q <= f_rd && f_known_q;
    end
  end
  always_ff @(posedge clk_i) begin
    f_wr_byte_q <= wr_data_i[8*f_wr_byte_at +: 8];
    f_wr_row_q  <= wr_row_i;
    f_wr_turn_q <= wr_turn_i;
    if (f_wr_q) begin
      f_byte_q <= f_wr_byte_q;
      f_row_q  <= f_wr_row_q;
      f_turn_q <= f_wr_turn_q;
    end
    if (rd_valid_i) begin
      f_rd_byte_q <= f_byte_q;
      f_rd_row_q  <= f_rd_byte_at;
    end
  end
  `CT_ASSERT(Written_A, f_wr_q == (wr_vld_q && wr_buf_q == f_buf && (wr_turn_q ? f_bank - wr_row_q : wr_row_q) == f_addr) &&
                        (!f_wr_q || (f_coming == f_wr_byte_q && wr_row_q == f_wr_row_q && wr_turn_q == f_wr_turn_q)))
  `CT_ASSERT(Stored_A, !f_known_q || (f_stored == f_byte_q && (f_turn_q ? f_bank - f_row_q : f_row_q) == f_addr))
  // What is read of the place is what was written there; read as it was stored, it stands where its word says, and was that word's byte of this column.
  `CT_ASSERT(ColumnOfWords_A, !f_read_q || f_out == f_rd_byte_q)
  `CT_ASSERT(RowOfColumn_A, !(f_rd && f_known_q) || rd_turn_i != f_turn_q || (f_rd_byte_at == f_row_q && 4'(f_bank - f_row_q) == rd_col_i))
`endif

endmodule

`default_nettype wire
