// SPDX-License-Identifier: Apache-2.0
//
// The head of a context's rows: what belongs to the row that enters the array next, in a register, and of the row behind it in another. So
// the choice of a row begins at registers, and what it has to know of a row is found out a cycle before.
//
//   FIFO of ct_mxu --> next (takes its Wait2; ct_mxu_array looks for a row on its way to the same sum) --> head (is chosen)
//
// Rate        a row a cycle.
// Wait2       A row moves to the head when next_ok_i says that it has its Wait2, or needs none: so the head waits for no semaphore. What is
//             given in cycle t is taken in t, and the row can go in t + 1.
// Halt        nothing moves (after an error, until the flush).
// Flush       drops both.
//
// Parameters
//   Width  bits that belong to a row

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_head #(
  parameter int unsigned Width = 26
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             flush_i,
  input  logic             halt_i,

  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] data_i,

  output logic             next_vld_o,
  output logic [Width-1:0] next_o,
  input  logic             next_ok_i,   // it has its Wait2
  output logic             move_o,      // it is the head in the next cycle

  output logic             head_vld_o,
  output logic [Width-1:0] head_o,
  input  logic             take_i       // the head enters the array
);

  logic             next_vld_q, head_vld_q;
  logic [Width-1:0] next_q, head_q;
  logic             move;

  assign move    = next_vld_q && next_ok_i && (!head_vld_q || take_i) && !halt_i && !flush_i;
  assign ready_o = !next_vld_q || move;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_vld_q <= 1'b0;
      head_vld_q <= 1'b0;
    end else begin
      next_vld_q <= ((next_vld_q && !move) || valid_i) && !flush_i;
      head_vld_q <= ((head_vld_q && !take_i) || move) && !flush_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (ready_o && valid_i) next_q <= data_i;
    if (move)               head_q <= next_q;
  end

  assign next_vld_o = next_vld_q;
  assign next_o     = next_q;
  assign move_o     = move;
  assign head_vld_o = head_vld_q;
  assign head_o     = head_q;

  `CT_ASSUME(TakesWhatIsThere_M, !take_i || (head_vld_o && !halt_i && !flush_i))

`ifdef FORMAL
  `include "ct_mxu_head_formal.svh"
`endif

endmodule

`default_nettype wire
