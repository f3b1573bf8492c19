// SPDX-License-Identifier: Apache-2.0
//
// Keeps the DMA's loads from holding up VS for ever: a word that the memory sends lands in its bank at once, and a word of VS that
// wants the same bank waits.
//
// What        counts the cycles in which a word of VS is refused, less the words that are written. At 32 block_o rises: the DMA asks for
//             no burst, of either context, until 64 words of VS are written or VS has nothing under way. (Half of VS's cycles may be
//             lost without that: words that meet by chance stop no load.)
// Bound       with at most B beats outstanding when block_o rises, an operation of 64 words loses at most 64 + 32 + 2 B cycles to loads.
// Enable      enable_i low holds it off: under PRIORITY with the floor at 0 a VS of training stops no load of inference.

`default_nettype none
`include "ct_assert.svh"

module ct_vpu_guard (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic enable_i,
  input  logic busy_i,     // VS has an operation under way
  input  logic valid_i,    // a word of VS wants its bank
  input  logic ready_i,    // and has it
  output logic block_o
);

  localparam int unsigned Refusals = 32;
  localparam int unsigned Written  = 64;

  logic       block_d, block_q;
  logic [5:0] count_d, count_q;  // while block_o is low refusals, less words; else words
  logic       word, refused, over;

  assign word    = valid_i && ready_i;
  assign refused = valid_i && !ready_i;
  assign over    = !busy_i || !enable_i;

  always_comb begin
    block_d = block_q;
    count_d = count_q;
    if (block_q) begin
      if (word) count_d = count_q + 6'd1;
      if (word && count_q == 6'(Written - 1)) block_d = 1'b0;
    end else if (refused) begin
      count_d = count_q + 6'd1;
      if (count_q == 6'(Refusals - 1)) begin
        block_d = 1'b1;
        count_d = '0;
      end
    end else if (word && count_q != '0) begin
      count_d = count_q - 6'd1;
    end
    if (over) begin
      block_d = 1'b0;
      count_d = '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      block_q <= 1'b0;
      count_q <= '0;
    end else begin
      block_q <= block_d;
      count_q <= count_d;
    end
  end

  assign block_o = block_q;

  `CT_ASSERT(CountInRange_A, block_q || count_q < 6'(Refusals))

`ifdef FORMAL
  `include "ct_vpu_guard_formal.svh"
`endif

endmodule

`default_nettype wire
