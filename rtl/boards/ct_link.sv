// SPDX-License-Identifier: Apache-2.0
//
// Two lines to the host in front of one bridge: 0 the FIFO of an add-on, 1 the serial line. Bytes go to and from the line that was chosen.
//
// Choice      the other line is chosen when it has a byte and the chosen one has moved none, in either direction, for Quiet cycles: a
//             frame that is under way is never mixed with another. Bytes of the line that is not chosen wait. So the line that a host uses is found
//             without a switch, and one without a host, or without a clock, is left.
// Leftover    a frame whose host has gone is taken by the next line; a receiver looks for the next magic, as after any damage.
// Paths       no registers: valid and ready go through one multiplexer, that of sel_o, a register.
//
// Parameters
//   Quiet  cycles, at least 2

`default_nettype none
`include "ct_assert.svh"

module ct_link #(
  parameter  int unsigned Quiet = 16384,
  localparam int unsigned TimeW = (Quiet < 2) ? 2 : $clog2(Quiet) + 1
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic [1:0]  rx_valid_i,
  output logic [1:0]  rx_ready_o,
  input  logic [15:0] rx_data_i,
  output logic [1:0]  tx_valid_o,
  input  logic [1:0]  tx_ready_i,
  output logic [7:0]  tx_data_o,
  output logic        tx_flush_o,

  // The bridge.
  output logic        rx_valid_o,
  input  logic        rx_ready_i,
  output logic [7:0]  rx_data_o,
  input  logic        tx_valid_i,
  output logic        tx_ready_o,
  input  logic [7:0]  tx_data_i,
  input  logic        tx_flush_i,

  output logic        sel_o,    // the line chosen
  output logic        moved_o   // a byte has moved in the last cycle
);

  if (Quiet < 2) begin : g_check
    ct_error_link_quiet_must_be_at_least_2 u_error ();
  end

  logic             sel_q, moved, moved_q, quiet;
  logic [TimeW-1:0] time_q;  // cycles without a byte

  assign rx_valid_o = sel_q ? rx_valid_i[1] : rx_valid_i[0];
  assign rx_data_o  = sel_q ? rx_data_i[15:8] : rx_data_i[7:0];
  assign rx_ready_o = {sel_q && rx_ready_i, !sel_q && rx_ready_i};
  assign tx_valid_o = {sel_q && tx_valid_i, !sel_q && tx_valid_i};
  assign tx_ready_o = sel_q ? tx_ready_i[1] : tx_ready_i[0];
  assign tx_data_o  = tx_data_i;
  assign tx_flush_o = tx_flush_i;
  assign sel_o      = sel_q;
  assign moved_o    = moved_q;

  assign moved = (rx_valid_o && rx_ready_i) || (tx_valid_i && tx_ready_o);
  assign quiet = time_q == TimeW'(Quiet);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sel_q   <= 1'b0;
      moved_q <= 1'b0;
      time_q  <= '0;
    end else begin
      moved_q <= moved;
      if (moved)       time_q <= '0;
      else if (!quiet) time_q <= time_q + 1'b1;
      if (quiet && !moved && (sel_q ? rx_valid_i[0] : rx_valid_i[1])) begin
        sel_q  <= !sel_q;
        time_q <= '0;
      end
    end
  end

  // No byte moves on a line that is not chosen.
  `CT_ASSERT(OneLine_A, ((rx_ready_o | tx_valid_o) & {!sel_q, sel_q}) == 2'b00)
  `CT_ASSERT(TimeInRange_A, time_q <= TimeW'(Quiet))

`ifdef FORMAL
  // A line that was chosen a cycle ago and is not now was quiet then.
  logic             f_sel_q, f_moved_q;
  logic [TimeW-1:0] f_quiet_q;  // cycles without a byte, counted here
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_sel_q   <= 1'b0;
      f_moved_q <= 1'b0;
      f_quiet_q <= '0;
    end else begin
      f_sel_q   <= sel_q;
      f_moved_q <= moved;
      f_quiet_q <= moved ? '0 : (f_quiet_q == TimeW'(Quiet)) ? f_quiet_q : f_quiet_q + 1'b1;
    end
  end
  `CT_ASSERT(TimeIsQuiet_A, time_q <= f_quiet_q && f_quiet_q <= TimeW'(Quiet))
  `CT_ASSERT(LeavesQuietLine_A, sel_q == f_sel_q || (!f_moved_q && f_quiet_q == TimeW'(Quiet)))
`endif

endmodule

`default_nettype wire
