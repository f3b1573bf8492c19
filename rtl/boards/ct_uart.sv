// SPDX-License-Identifier: Apache-2.0
//
// A serial line: 8 data bits, no parity, one stop bit; bytes in and out with valid and ready.
//
// Rate        Baud, of a clock of at least 8 * Baud. A bit need not be whole cycles (3 Mbaud at 40 MHz: 13.33): its length is kept in 2^-16 of a bit
//             a cycle, and what is left over goes into the next one.
// Receive     each bit is sampled within a cycle of its middle, on average there: half a cycle, because the line falls somewhere between two edges
//             of the clock, and half a cycle, because samples are whole cycles apart. So a sender may be 3.8 % faster or slower with the least clock, and
//             4 % at 3 Mbaud and 25, 35 or 40 MHz (test_uart). A byte whose stop bit is low (a break, another rate) is dropped. There is no
//             flow control on the line: a byte that comes while rx_ready_i is low for longer than Room bytes is lost, which a protocol above has to
//             bear.
// Send        a bit begins with the first edge at or after its time. tx_o is high while there is nothing to send.
// Pins        rx_i goes through a synchroniser here; tx_o is a register.
//
// Parameters
//   ClockHz   of clk_i
//   Baud      bits a second
//   Room      bytes kept of what came

`default_nettype none
`include "ct_assert.svh"

module ct_uart #(
  parameter int unsigned ClockHz = 40000000,
  parameter int unsigned Baud    = 3000000,
  parameter int unsigned Room    = 16
) (
  input  logic       clk_i,
  input  logic       rst_ni,

  input  logic       rx_i,
  output logic       tx_o,

  output logic       rx_valid_o,
  input  logic       rx_ready_i,
  output logic [7:0] rx_data_o,

  input  logic       tx_valid_i,
  output logic       tx_ready_o,
  input  logic [7:0] tx_data_i
);

  if (Baud == 0 || ClockHz / 8 < Baud) begin : g_check
    ct_error_uart_clock_must_be_at_least_8_times_the_baud_rate u_error ();
  end

  // Bits in a cycle, in 2^-16.
  localparam logic [63:0] StepLong = (64'(Baud) * 64'd65536 + 64'(ClockHz) / 64'd2) / 64'(ClockHz);
  localparam logic [15:0] Step     = StepLong[15:0];

  // ---- In ---------------------------------------------------------------------------------------------------------------------------

  logic        line, rx_run_q, rx_take, rx_bit;
  logic [15:0] rx_at_q;
  logic [3:0]  rx_nth_q;     // bit that comes next: 0 the start bit, 1 .. 8 data, 9 the stop bit; 10: that was low
  logic [7:0]  rx_byte_q;
  logic        rx_ready, rx_take_q, rx_lost_q;  // lost: one was dropped in the last cycle, for want of room

  ct_sync #(.Reset(1'b1)) u_line (.clk_i, .rst_ni, .level_i(rx_i), .level_o(line));

  // Where samples fall. The line falls at 0, and the edge at u cycles is the first that sees it low, 0 < u <= 1. A run starts two edges later, for
  // the synchroniser, which then gives what the line was at u + 1. In its cycle j the run samples u + j, and rx_next is the start and j Steps. From a
  // start of half a bit the sample of bit n would have j = the cycles of n bits and a half, rounded up: late by u and the rounding, 0 to 2 cycles.
  // From a Step further it comes a cycle earlier: -1 to 1 cycle, 0 on average.
  localparam logic [15:0] StartAt = 16'h8000 + Step;

  logic [16:0] rx_next;
  assign rx_next = {1'b0, rx_at_q} + {1'b0, Step};
  assign rx_bit  = rx_run_q && rx_next[16];               // the middle of a bit
  assign rx_take = rx_bit && rx_nth_q == 4'd9 && line;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rx_run_q <= 1'b0;
      rx_at_q  <= '0;
      rx_nth_q <= '0;
    end else if (!rx_run_q) begin
      rx_run_q <= !line;
      rx_at_q  <= StartAt;
      rx_nth_q <= '0;
    end else begin
      rx_at_q <= rx_next[15:0];
      if (rx_nth_q == 4'd10) rx_run_q <= !line;
      else if (rx_bit) begin
        rx_nth_q <= rx_nth_q + 1'b1;
        // A start bit that is gone by its middle was none. After a stop bit that is low the line has to rise first.
        if (rx_nth_q == 4'd0 && line) rx_run_q <= 1'b0;
        else if (rx_nth_q == 4'd9)    rx_run_q <= !line;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (rx_bit && rx_nth_q != 4'd9) rx_byte_q <= {line, rx_byte_q[7:1]};
  end

  ct_fifo #(.Width(8), .Depth(Room)) u_rx (
    .clk_i, .rst_ni,
    .valid_i(rx_take_q), .ready_o(rx_ready), .data_i(rx_byte_q),
    .valid_o(rx_valid_o), .ready_i(rx_ready_i), .data_o(rx_data_o), .count_o()
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rx_take_q <= 1'b0;
      rx_lost_q <= 1'b0;
    end else begin
      rx_take_q <= rx_take;
      rx_lost_q <= rx_take_q && !rx_ready;
    end
  end
  `CT_COVER(Lost_C, rx_lost_q)

  // ---- Out --------------------------------------------------------------------------------------------------------------------------

  logic        tx_run_q, tx_q, tx_bit;
  logic [15:0] tx_at_q;
  logic [16:0] tx_next;
  logic [3:0]  tx_left_q;
  logic [8:0]  tx_byte_q;   // what is to come, the next bit at the bottom; ones behind it

  assign tx_next    = {1'b0, tx_at_q} + {1'b0, Step};
  assign tx_bit     = tx_next[16];
  assign tx_ready_o = !tx_run_q;
  assign tx_o       = tx_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tx_run_q  <= 1'b0;
      tx_q      <= 1'b1;
      tx_at_q   <= '0;
      tx_left_q <= '0;
      tx_byte_q <= '1;
    end else if (!tx_run_q) begin
      tx_run_q  <= tx_valid_i;
      tx_q      <= !tx_valid_i;
      tx_at_q   <= '0;
      tx_left_q <= 4'd9;
      tx_byte_q <= {1'b1, tx_data_i};
    end else begin
      tx_at_q <= tx_next[15:0];
      if (tx_bit) begin
        tx_q      <= tx_byte_q[0];
        tx_byte_q <= {1'b1, tx_byte_q[8:1]};
        tx_left_q <= tx_left_q - 1'b1;
        tx_run_q  <= tx_left_q != '0;
      end
    end
  end

endmodule

`default_nettype wire
