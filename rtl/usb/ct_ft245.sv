// SPDX-License-Identifier: Apache-2.0
//
// The FPGA's side of a synchronous 245 FIFO: an FTDI FT232H or FT2232H (Width 8), or a chip with wider words and byte enables. Runs on the
// chip's clock. Words from the pins come out of rx, words into tx go to the pins; none is lost or doubled, whatever either side does.
//
// Read        oe_n falls, a cycle later rd_n; each edge with both and rxf_n low is a word. Words that are on their way when rd_n rises have
//             their places.
// Write       wr_n is low while a word is on offer; each edge with txe_n low takes it. A word that is not taken stays.
// Turns       the pins have one direction at a time, and a cycle without any between two. A direction goes on while its words move; after
//             Turn words it gives way to the other if that one has something to do. Two turns cost 7 cycles.
// Flush       tx_flush_i with a word: once it has gone, and no other has come for Linger cycles, siwu_n is low for a cycle and the chip
//             sends a short packet. So frames that follow one another fill their packets.
// Rate        a word a cycle between turns.
// Pins        each output comes from a register of its own that nothing reads, with no logic behind it, and rxf_n and the data go straight into
//             registers: all of them fit into the cells of the pins. txe_n says at an edge whether the word at the pins is taken, and the next
//             one has to be there after the same edge: so it goes through one LUT to each register of a pin, and all else hears a cycle later
//             from taken_q that a word has gone.
//
// Parameters
//   Width   bits of a word: 8, 16 or 32
//   Turn    words after which a direction gives way, 1 to 65535
//   Linger  1 to 255

`default_nettype none
`include "ct_assert.svh"

module ct_ft245 #(
  parameter  int unsigned Width  = 8,
  parameter  int unsigned Turn   = 512,
  parameter  int unsigned Linger = 32,
  localparam int unsigned KeepW  = (Width < 8) ? 1 : Width / 8
) (
  input  logic             clk_i,      // the chip's
  input  logic             rst_ni,

  // Pins. The pads are driven while drive_o is high; be: which bytes of a word count (leave it open, or 1, with 8 bits).
  input  logic             rxf_n_i,
  input  logic             txe_n_i,
  output logic             oe_n_o,
  output logic             rd_n_o,
  output logic             wr_n_o,
  output logic             siwu_n_o,
  input  logic [Width-1:0] data_i,
  output logic [Width-1:0] data_o,
  input  logic [KeepW-1:0] be_i,
  output logic [KeepW-1:0] be_o,
  output logic             drive_o,

  output logic             rx_valid_o,
  input  logic             rx_ready_i,
  output logic [Width-1:0] rx_data_o,
  output logic [KeepW-1:0] rx_keep_o,

  input  logic             tx_valid_i,
  output logic             tx_ready_o,
  input  logic [Width-1:0] tx_data_i,
  input  logic [KeepW-1:0] tx_keep_i,
  input  logic             tx_flush_i
);

  if (Width != 8 && Width != 16 && Width != 32) begin : g_check_width
    ct_error_ft245_width_must_be_8_16_or_32 u_error ();
  end
  if (Turn < 1 || Turn > 65535) begin : g_check_turn
    ct_error_ft245_turn_must_be_1_to_65535 u_error ();
  end

  if (Linger < 1 || Linger > 255) begin : g_check_linger
    ct_error_ft245_linger_must_be_1_to_255 u_error ();
  end

  localparam int unsigned WordW = Width + KeepW;
  localparam int unsigned Depth = 8;   // of what was read
  localparam logic [3:0]  Room  = 4'd4; // a word may come in this cycle, and three are on their way

  //   Idle -> Open -> Read -> Idle -> Write -> Idle ...
  typedef enum logic [1:0] {Idle, Open, Read, Write} state_e;

  state_e           state_d, state_q;
  logic             oe_d, rd_d, rd_q, wr_d, drive_d, siwu_d;  // active high
  (* keep *) logic  wr_q, offer_q;  // both: wr_n is low
  logic             rxf_n_q, txe_q, came_q;  // came: rd_n was low at the last edge
  logic [WordW-1:0] in_q;
  logic [15:0]      turn_d, turn_q;
  logic             wrote_d, wrote_q;      // the last direction

  // ---- From the pins ----------------------------------------------------------------------------------------------------------------

  logic       in_valid, in_ready, has_room;
  logic [3:0] held;
  assign in_valid = came_q && !rxf_n_q;
  assign has_room = held <= 4'(Depth) - Room;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rxf_n_q <= 1'b1;
      txe_q   <= 1'b0;
      came_q  <= 1'b0;
    end else begin
      rxf_n_q <= rxf_n_i;
      txe_q   <= !txe_n_i;
      came_q  <= rd_q;
    end
  end
  always_ff @(posedge clk_i) in_q <= {be_i, data_i};

  ct_fifo #(.Width(WordW), .Depth(Depth)) u_in (
    .clk_i, .rst_ni,
    .valid_i(in_valid), .ready_o(in_ready), .data_i(in_q),
    .valid_o(rx_valid_o), .ready_i(rx_ready_i), .data_o({rx_keep_o, rx_data_o}),
    .count_o(held)
  );

  // ---- To the pins ------------------------------------------------------------------------------------------------------------------

  // Words that are on offer, or will be, the oldest first; taken_q: that one has gone at the last edge, and leaves its place at the next.
  logic [WordW:0]   win0_d, win0_q, win1_d, win1_q, win2_d, win2_q;  // the top bit: flush
  logic [1:0]       count_d, count_q, left;    // left: that have not gone
  logic [WordW-1:0] now, next;                 // the oldest of these, and the one behind
  logic             taken, taken_q, push;

  assign taken      = wr_q && !txe_n_i;
  assign left       = count_q - 2'(taken_q);
  assign now        = taken_q ? win1_q[WordW-1:0] : win0_q[WordW-1:0];
  assign next       = taken_q ? win2_q[WordW-1:0] : win1_q[WordW-1:0];
  assign tx_ready_o = (left != 2'd3);
  assign push       = tx_valid_i && tx_ready_o;
  // One LUT from txe_n to a pin: wr_n is one of two that are known before; and the data look at offer_q, a copy of wr_q, or synthesis would let
  // all of them share the LUT of `taken`, and each had two.
  (* keep *) logic wr_low;
  logic            wr_high;
  assign wr_d       = txe_n_i ? wr_high : wr_low;
  assign count_d    = left + 2'(push);

  always_comb begin
    win0_d = taken_q ? win1_q : win0_q;
    win1_d = taken_q ? win2_q : win1_q;
    win2_d = win2_q;
    if (push) begin
      case (left)
        2'd0:    win0_d = {tx_flush_i, tx_keep_i, tx_data_i};
        2'd1:    win1_d = {tx_flush_i, tx_keep_i, tx_data_i};
        default: win2_d = {tx_flush_i, tx_keep_i, tx_data_i};
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    win0_q <= win0_d;
    win1_q <= win1_d;
    win2_q <= win2_d;
  end

  // ---- Directions -------------------------------------------------------------------------------------------------------------------

  logic       can_read, can_write, tired, stays;
  logic       flush_d, flush_q, txe_before_q;
  logic [7:0] linger_d, linger_q;
  assign can_read  = !rxf_n_q && has_room;
  assign can_write = txe_q && (left != 2'd0);
  assign tired     = (turn_q >= 16'(Turn)) || (taken_q && turn_q == 16'(Turn - 1));
  // The chip has had no room at two edges, or there is nothing more, or the other side has waited for its turn.
  assign stays     = (left != 2'd0) && (txe_q || txe_before_q) && !(tired && can_read);

  always_comb begin
    state_d = state_q;
    oe_d    = 1'b0;
    rd_d    = 1'b0;
    wr_low  = 1'b0;
    wr_high = 1'b0;
    drive_d = 1'b0;
    siwu_d  = 1'b0;
    turn_d  = turn_q;
    wrote_d = wrote_q;
    flush_d = taken_q ? win0_q[WordW] : flush_q;
    case (state_q)
      Idle: begin
        turn_d = 16'd0;
        // Nobody drives the pins in this cycle. The direction that had them last comes second.
        if (can_read && (wrote_q || !can_write)) begin
          state_d = Open;
          oe_d    = 1'b1;
          wrote_d = 1'b0;
        end else if (can_write) begin
          state_d = Write;
          drive_d = 1'b1;
          wr_low  = 1'b1;
          wr_high = 1'b1;
          wrote_d = 1'b1;
        end
      end
      Open: begin
        state_d = Read;
        oe_d    = 1'b1;
        rd_d    = has_room;
      end
      Read: begin
        oe_d = 1'b1;
        rd_d = has_room;
        if (in_valid) turn_d = turn_q + {15'd0, !tired};
        if (rxf_n_q || !has_room || (tired && can_write)) begin
          state_d = Idle;
          oe_d    = 1'b0;
          rd_d    = 1'b0;
        end
      end
      default: begin
        if (taken_q) turn_d = turn_q + {15'd0, !tired};
        if (stays) begin
          drive_d = 1'b1;
          wr_low  = !wr_q || (left != 2'd1);
          wr_high = 1'b1;
        end else begin
          state_d = Idle;
        end
      end
    endcase
    // A flush waits until no word has been there for a while.
    linger_d = (count_q != 2'd0 || tx_valid_i) ? '0 : linger_q + {7'd0, flush_q};
    if (flush_q && linger_q == 8'(Linger)) begin
      siwu_d   = 1'b1;
      flush_d  = 1'b0;
      linger_d = '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      rd_q    <= 1'b0;
      wr_q    <= 1'b0;
      offer_q <= 1'b0;
      turn_q  <= '0;
      wrote_q <= 1'b0;
      count_q <= '0;
      taken_q <= 1'b0;
      flush_q <= 1'b0;
      linger_q <= '0;
      txe_before_q <= 1'b0;
    end else begin
      state_q <= state_d;
      rd_q    <= rd_d;
      wr_q    <= wr_d;
      offer_q <= wr_d;
      turn_q  <= turn_d;
      wrote_q <= wrote_d;
      count_q <= count_d;
      taken_q <= taken;
      flush_q <= flush_d;
      linger_q <= linger_d;
      txe_before_q <= txe_q;
    end
  end

  // Of the pins: nothing but assertions reads them. (The data have the reset of let_go_q, which a pin's registers share.)
  logic             oe_n_q, rd_n_q, wr_n_q, siwu_n_q, let_go_q;
  logic [WordW-1:0] pin_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      oe_n_q   <= 1'b1;
      rd_n_q   <= 1'b1;
      wr_n_q   <= 1'b1;
      siwu_n_q <= 1'b1;
      let_go_q <= 1'b1;
      pin_q    <= '0;
    end else begin
      oe_n_q   <= !oe_d;
      rd_n_q   <= !rd_d;
      wr_n_q   <= !wr_d;
      siwu_n_q <= !siwu_d;
      let_go_q <= !drive_d;
      pin_q    <= (offer_q && !txe_n_i) ? next : now;
    end
  end

  assign oe_n_o          = oe_n_q;
  assign rd_n_o          = rd_n_q;
  assign wr_n_o          = wr_n_q;
  assign siwu_n_o        = siwu_n_q;
  assign drive_o         = !let_go_q;
  assign {be_o, data_o}  = pin_q;

  `CT_ASSERT(ReadFits_A, !in_valid || in_ready)
  `CT_ASSERT(PinsFollow_A, rd_n_q == !rd_q && wr_n_q == !wr_q && offer_q == wr_q && (!wr_q || pin_q == now))
  `CT_ASSERT(OneDirection_A, (oe_n_q || let_go_q) && (!rd_q || !oe_n_q) && (!wr_q || (!let_go_q && left != 2'd0)))

`ifdef FORMAL
  `include "ct_ft245_formal.svh"
`endif

endmodule

`default_nettype wire
