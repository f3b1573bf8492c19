// SPDX-License-Identifier: Apache-2.0
//
// The reset of one clock domain: asserted at once, released in step with the clock.
//
// Latency     rst_no falls with arst_ni, without a clock; it rises Stages edges of clk_i after arst_ni has. Without a clock it stays low: a part
//             whose clock is missing stands still.
// Use         one instance for each clock; arst_ni may come from anywhere (a PLL's lock, a button).
//
// Parameters
//   Stages  flip-flops, at least 2

`default_nettype none
`include "ct_assert.svh"

module ct_reset #(
  parameter int unsigned Stages = 3
) (
  input  logic clk_i,
  input  logic arst_ni,
  output logic rst_no
);

  if (Stages < 2) begin : g_check
    ct_error_reset_stages_must_be_at_least_2 u_error ();
  end

  localparam int unsigned Length = (Stages < 2) ? 2 : Stages;
  (* async_reg = "true", keep = "true" *) logic [Length-1:0] live_q;

  always_ff @(posedge clk_i or negedge arst_ni) begin
    if (!arst_ni) live_q <= '0;
    else          live_q <= {live_q[Length-2:0], 1'b1};
  end
  assign rst_no = live_q[Length-1];

endmodule

`default_nettype wire
