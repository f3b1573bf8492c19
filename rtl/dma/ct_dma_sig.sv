// SPDX-License-Identifier: Apache-2.0
//
// Signals of LD and ST: what the end of a burst gives to the semaphores of its context.
//
// An end (end_i[c]) carries two signals, each a bit that says whether it is one and a semaphore. Both are given a cycle later on inc_o[c]; if
// they are of the same semaphore, stay_o[c] holds the end for a cycle and the second follows the first. Under mute_i[c] an end gives nothing.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_sig (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic [1:0]  mute_i,
  input  logic [1:0]  end_i,
  input  logic [19:0] end_tag_i,
  output logic [1:0]  stay_o,
  output logic [31:0] inc_o
);

  logic [1:0]  both;  // the end gives the same semaphore twice
  logic [1:0]  second_d, second_q;
  logic [31:0] inc_d, inc_q;

  always_comb begin
    second_d = 2'b00;
    inc_d    = '0;
    both     = 2'b00;
    for (int c = 0; c < 2; c++) begin
      if (end_i[c] && !mute_i[c]) begin
        both[c]     = end_tag_i[10*c + 9] && end_tag_i[10*c + 5 +: 5] == end_tag_i[10*c +: 5];
        second_d[c] = both[c] && !second_q[c];
        for (int s = 0; s < 16; s++) begin
          inc_d[16*c + s] = end_tag_i[10*c +: 5] == {1'b1, 4'(s)} || end_tag_i[10*c + 5 +: 5] == {1'b1, 4'(s)};
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      second_q <= 2'b00;
      inc_q    <= '0;
    end else begin
      second_q <= second_d;
      inc_q    <= inc_d;
    end
  end

  assign stay_o = second_d;
  assign inc_o  = inc_q;

`ifdef FORMAL
  `include "ct_dma_sig_formal.svh"
`endif

endmodule

`default_nettype wire
