// SPDX-License-Identifier: Apache-2.0
//
// What leaves the transposer of the A streams gets one exponent: the largest of its tile's sixteen rows (docs/numerics.md, "Gathered blocks"). Beside
// ct_mxu_transpose in ct_mxu_afeed.
//
// Exponents   put_i with buffer, row and exponent of a word that is written; those of both buffers are kept. top_o[8*b +: 8] is the largest of buffer b
//             so far, of one whose rows are all the same that of all.
// Leaving     pick_i: from the next cycle on the columns of buffer pick_buf_i are read. Two cycles after pick_i the shifts of its rows stand, which is
//             when the first column comes out of the transposer.
// Alignment   row_i is a column, byte i from row i. A cycle later row_o has every byte shifted right by what its row's exponent is below the largest,
//             rounded to nearest even; 0 from 8 on, and for an exponent of 0.

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_gather (
  input  logic         clk_i,

  input  logic         put_i,
  input  logic         put_buf_i,
  input  logic [3:0]   put_row_i,
  input  logic [7:0]   put_exp_i,
  output logic [15:0]  top_o,

  input  logic         pick_i,
  input  logic         pick_buf_i,

  input  logic [127:0] row_i,
  output logic [127:0] row_o
);

  logic [255:0] exps_q;      // 8 bits for each row of each buffer
  logic [15:0]  top_q;
  logic [7:0]   put_top;
  logic         picked_q;
  logic [127:0] below_q;     // by how much each row's exponent is below the largest
  logic [15:0]  zero_q;      // rows that are zero
  logic [47:0]  shift_q;
  logic [15:0]  gone_q;      // rows of which nothing is left
  logic [127:0] floor_d, floor_q;
  logic [15:0]  up_d, up_q;

  assign put_top = put_buf_i ? top_q[15:8] : top_q[7:0];
  assign top_o   = top_q;

  always_ff @(posedge clk_i) begin
    if (put_i) begin
      exps_q[8*{put_buf_i, put_row_i} +: 8] <= put_exp_i;
      if (put_row_i == '0 || put_exp_i > put_top) top_q[8*put_buf_i +: 8] <= put_exp_i;
    end
  end

  always_ff @(posedge clk_i) begin
    picked_q <= pick_i;
    for (int i = 0; i < 16; i++) begin
      if (pick_i) begin
        below_q[8*i +: 8] <= pick_buf_i ? top_q[15:8] - exps_q[128+8*i +: 8] : top_q[7:0] - exps_q[8*i +: 8];
        zero_q[i]         <= pick_buf_i ? exps_q[128+8*i +: 8] == '0 : exps_q[8*i +: 8] == '0;
      end
      if (picked_q) begin
        shift_q[3*i +: 3] <= below_q[8*i +: 3];
        gone_q[i]         <= zero_q[i] || below_q[8*i+3 +: 5] != '0;
      end
    end
  end

  for (genvar i = 0; i < 16; i++) begin : g_lane
    logic signed [14:0] shifted;  // eight bits and what has been shifted out
    assign shifted = $signed({row_i[8*i +: 8], 7'd0}) >>> shift_q[3*i +: 3];
    assign floor_d[8*i +: 8] = gone_q[i] ? 8'd0 : shifted[14:7];
    assign up_d[i]           = !gone_q[i] && shifted[6] && (shifted[5:0] != '0 || shifted[7]);
    assign row_o[8*i +: 8]   = floor_q[8*i +: 8] + 8'(up_q[i]);
  end

  always_ff @(posedge clk_i) begin
    floor_q <= floor_d;
    up_q    <= up_d;
  end

`ifdef FORMAL
  `include "ct_mxu_gather_formal.svh"
`endif

endmodule

`default_nettype wire
