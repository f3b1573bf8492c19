// SPDX-License-Identifier: Apache-2.0
//
// Commands of one queue that two blocks do: plain ones and compressed ones (comp_i).
//
// Order       a command goes to its block when the other one is quiet, so each command behaves as if all before it were finished, whichever block did
//             them. Commands of one kind follow each other as the block takes them.
// Quiet       plain_quiet_i and comp_quiet_i: of the commands taken nothing is left that a command of the other kind may meet; low from the cycle after a command is
//             taken. They are looked at a cycle later.
// Latency     none between commands of one kind.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_turn (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic valid_i,
  input  logic comp_i,
  output logic ready_o,

  output logic plain_valid_o,
  input  logic plain_ready_i,
  input  logic plain_quiet_i,
  output logic comp_valid_o,
  input  logic comp_ready_i,
  input  logic comp_quiet_i
);

  logic plain_quiet_q, comp_quiet_q, plain_take, comp_take;
  assign plain_valid_o = valid_i && !comp_i && comp_quiet_q;
  assign comp_valid_o  = valid_i && comp_i && plain_quiet_q;
  assign plain_take    = plain_valid_o && plain_ready_i;
  assign comp_take     = comp_valid_o && comp_ready_i;
  assign ready_o       = comp_i ? comp_ready_i && plain_quiet_q : plain_ready_i && comp_quiet_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      plain_quiet_q <= 1'b1;
      comp_quiet_q  <= 1'b1;
    end else begin
      plain_quiet_q <= plain_quiet_i && !plain_take;
      comp_quiet_q  <= comp_quiet_i && !comp_take;
    end
  end

  `CT_ASSERT(OneAtWork_A, plain_quiet_i || comp_quiet_i)
  `CT_ASSERT(OneTakes_A, !(plain_take && !comp_quiet_i) && !(comp_take && !plain_quiet_i))
`ifdef FORMAL
  `include "ct_dma_turn_formal.svh"
`endif

  `CT_COVER(Waits_C, valid_i && comp_i && comp_ready_i && !plain_quiet_q)

endmodule

`default_nettype wire
