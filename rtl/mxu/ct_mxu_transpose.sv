// SPDX-License-Identifier: Apache-2.0
//
// Transposer: two buffers of 16 words of 16 bytes, written by rows and read by columns. What is in which buffer is the business of
// ct_mxu_afeed.
//
// Storage     sixteen byte-wide banks of LUT RAM, skewed: byte j of word i lies in bank (i + j) mod 16 at address i. So a word and
//             a column both touch every bank once, and the only logic is a rotation on each side.
// Latency     rd_data_o is column rd_col_i of buffer rd_buf_i (byte i from word i) one cycle after rd_valid_i, until the next read.
// Timing      a word is readable in the cycle after its write.

`default_nettype none

module ct_mxu_transpose (
  input  logic         clk_i,

  input  logic         wr_valid_i,
  input  logic         wr_buf_i,
  input  logic [3:0]   wr_row_i,
  input  logic [127:0] wr_data_i,

  input  logic         rd_valid_i,
  input  logic         rd_buf_i,
  input  logic [3:0]   rd_col_i,
  output logic [127:0] rd_data_o
);

  // Byte m of the result is byte (m - n) mod 16 of x.
  function automatic logic [127:0] rotate(input logic [127:0] x, input logic [3:0] n);
    logic [127:0] y;
    y = n[0] ? {x[119:0], x[127:120]} : x;
    y = n[1] ? {y[111:0], y[127:112]} : y;
    y = n[2] ? {y[95:0], y[127:96]} : y;
    rotate = n[3] ? {y[63:0], y[127:64]} : y;
  endfunction

  logic [127:0] wr_skewed;  // byte m goes to bank m
  logic [127:0] bank_q;     // byte m came from bank m
  logic [3:0]   col_q;

  assign wr_skewed = rotate(wr_data_i, wr_row_i);

  for (genvar m = 0; m < 16; m++) begin : g_bank
    logic [7:0] mem [0:31];
    logic [3:0] rd_row;
    // Bank m holds byte rd_col_i of word m - rd_col_i.
    assign rd_row = 4'(m) - rd_col_i;
    always_ff @(posedge clk_i) begin
      if (wr_valid_i) mem[{wr_buf_i, wr_row_i}] <= wr_skewed[8*m +: 8];
      if (rd_valid_i) bank_q[8*m +: 8] <= mem[{rd_buf_i, rd_row}];
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_valid_i) col_q <= rd_col_i;
  end

  assign rd_data_o = rotate(bank_q, -col_q);

endmodule

`default_nettype wire
