// SPDX-License-Identifier: Apache-2.0
//
// A level from outside, or from another clock, brought into clk_i: for single wires that change seldom, such as a serial line or a button.
// What belongs together (a word) goes through ct_async_fifo.
//
// Latency     Stages edges, or one more.
//
// Parameters
//   Stages  flip-flops, at least 2
//   Reset   the level after a reset

`default_nettype none
`include "ct_assert.svh"

module ct_sync #(
  parameter int unsigned Stages = 2,
  parameter bit          Reset  = 1'b0
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic level_i,
  output logic level_o
);

  if (Stages < 2) begin : g_check
    ct_error_sync_stages_must_be_at_least_2 u_error ();
  end

  localparam int unsigned Length = (Stages < 2) ? 2 : Stages;
  (* async_reg = "true", keep = "true" *) logic [Length-1:0] level_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) level_q <= {Length{Reset}};
    else         level_q <= {level_q[Length-2:0], level_i};
  end
  assign level_o = level_q[Length-1];

endmodule

`default_nettype wire
