// SPDX-License-Identifier: Apache-2.0
//
// What happens in single cycles, made visible: a lamp for each event, on for 1/16 to 1/8 second after it; and a heartbeat.
//
// Parameters
//   ClockHz   of clk_i, at least 32
//   Lamps     at least 1

`default_nettype none
`include "ct_assert.svh"

module ct_leds #(
  parameter  int unsigned ClockHz = 40000000,
  parameter  int unsigned Lamps   = 4,
  localparam int unsigned Period  = (ClockHz < 32) ? 2 : ClockHz / 16,
  localparam int unsigned CountW  = $clog2(Period)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic [Lamps-1:0] event_i,
  output logic [Lamps-1:0] lamp_o,
  output logic             beat_o   // half a second on, half a second off
);

  if (ClockHz < 32 || Lamps == 0) begin : g_check
    ct_error_leds_need_a_clock_of_32_hz_and_a_lamp u_error ();
  end

  logic [CountW-1:0] count_q;
  logic [3:0]        beat_q;
  logic [Lamps-1:0]  seen_q, lamp_q;   // since the last sixteenth; shown
  logic              turn;

  assign turn   = count_q == CountW'(Period - 1);
  assign lamp_o = lamp_q;
  assign beat_o = beat_q[3];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      beat_q  <= '0;
      seen_q  <= '0;
      lamp_q  <= '0;
    end else begin
      count_q <= turn ? '0 : count_q + 1'b1;
      if (turn) beat_q <= beat_q + 1'b1;
      seen_q  <= turn ? event_i : seen_q | event_i;
      lamp_q  <= turn ? seen_q | event_i : lamp_q | event_i;
    end
  end

endmodule

`default_nettype wire
