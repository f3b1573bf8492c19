// SPDX-License-Identifier: Apache-2.0
//
// Finds the frames of docs/usb.md in a stream of bytes and offers them, whole and checked, to ct_usb_exec.
//
// A frame begins with "CT" and a head of 12 bytes in all. A head with a wrong CRC or more than 2048 bytes of payload is dropped as a whole and
// the search goes on behind it. What is left is a frame: of another kind than REQUEST and HELLO it is swallowed; a wrong CRC behind its
// payload makes it damaged, which frame_damaged_o says. Nothing of a frame is on offer before its last byte has been checked.
//
// Rate        a byte a cycle, while the frame on offer is not yet taken, too: up to the last byte of the next one, which waits for that.
// Payload     word_o is the two bytes at 2 * word_addr_i of the frame on offer, a cycle later, the first of them in bits 7..0.
// Counters    bad_heads_o: "CT" and ten more bytes that were no head; bad_frames_o: damaged, or of another kind. They stop at the top.

`default_nettype none
`include "ct_assert.svh"

module ct_usb_rx (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        rx_valid_i,
  output logic        rx_ready_o,
  input  logic [7:0]  rx_data_i,

  // The frame on offer; ready takes it away.
  output logic        frame_valid_o,
  input  logic        frame_ready_i,
  output logic        frame_hello_o,    // HELLO; else REQUEST
  output logic        frame_damaged_o,
  output logic [15:0] frame_tag_o,
  output logic [11:0] frame_size_o,     // bytes of payload
  input  logic [9:0]  word_addr_i,
  output logic [15:0] word_o,

  output logic [7:0]  bad_heads_o,
  output logic [7:0]  bad_frames_o
);

  localparam logic [7:0]  MagicC  = 8'h43;
  localparam logic [7:0]  MagicT  = 8'h54;
  localparam logic [31:0] CrcOfCT = 32'h0974642b;  // the register after the two bytes of the magic
  localparam logic [3:0]  HeadEnd = 4'd11;
  localparam logic [7:0]  Request = 8'd1;
  localparam logic [7:0]  Hello   = 8'd2;

  typedef enum logic [1:0] {Head, Payload, Sum} state_e;

  state_e      state_d, state_q;
  logic [11:0] at_d, at_q;      // bytes of this part so far
  logic [31:0] crc_d, crc_q, crc_next;
  logic        bad_d, bad_q;    // a byte of the CRC was wrong
  logic [15:0] tag_d, tag_q, size_d, size_q;
  logic        hello_d, hello_q, known_d, known_q;
  logic        empty_q, huge_q; // the size is 0, but for its upper bits; above 2048: known long before the head's end
  logic        take, miss, commit, head_bad, frame_bad, at_end;
  logic        slot_q;              // of the payload that comes; the frame on offer has the other

  assign at_end     = (state_q == Head && at_q[3:0] == HeadEnd && empty_q) || (state_q == Sum && at_q[1:0] == 2'd3);
  assign rx_ready_o = !frame_valid_o || !at_end;
  assign take       = rx_valid_i && rx_ready_o;
  assign miss       = rx_data_i != ~crc_q[7:0];

  ct_usb_crc u_crc (.crc_i(crc_q), .byte_i(rx_data_i), .crc_o(crc_next));

  // Bytes of a head behind the magic, by their place.
  always_comb begin
    hello_d = hello_q;
    known_d = known_q;
    tag_d   = tag_q;
    size_d  = size_q;
    if (take && state_q == Head) begin
      case (at_q[3:0])
        4'd2: begin
          hello_d = rx_data_i == Hello;
          known_d = rx_data_i == Hello || rx_data_i == Request;
        end
        4'd4:    tag_d[7:0]   = rx_data_i;
        4'd5:    tag_d[15:8]  = rx_data_i;
        4'd6:    size_d[7:0]  = rx_data_i;
        4'd7:    size_d[15:8] = rx_data_i;
        default: ;
      endcase
    end
  end

  always_comb begin
    state_d   = state_q;
    at_d      = at_q;
    crc_d     = crc_q;
    bad_d     = bad_q;
    commit    = 1'b0;
    head_bad  = 1'b0;
    frame_bad = 1'b0;
    if (take) begin
      at_d = at_q + 12'd1;
      case (state_q)
        Head: begin
          // In the CRC's four bytes the register turns around once, so that it goes on from the same value behind them.
          crc_d = at_q[3] ? {crc_q[7:0], crc_q[31:8]} : crc_next;
          bad_d = at_q[3] && (bad_q || miss);
          if (at_q == 12'd0 && rx_data_i != MagicC) at_d = 12'd0;
          if (at_q == 12'd1) begin
            crc_d = CrcOfCT;
            if (rx_data_i != MagicT) at_d = (rx_data_i == MagicC) ? 12'd1 : 12'd0;
          end
          if (at_q[3:0] == HeadEnd) begin
            at_d     = 12'd0;
            bad_d    = 1'b0;
            head_bad = bad_q || miss || huge_q;
            if (!head_bad && !empty_q) state_d = Payload;
            if (!head_bad && empty_q) begin
              commit    = known_q;
              frame_bad = !known_q;
            end
          end
        end
        Payload: begin
          crc_d = crc_next;
          if (at_d == size_q[11:0]) begin
            state_d = Sum;
            at_d    = 12'd0;
          end
        end
        default: begin
          crc_d = {crc_q[7:0], crc_q[31:8]};
          bad_d = bad_q || miss;
          if (at_q[1:0] == 2'd3) begin
            state_d   = Head;
            at_d      = 12'd0;
            commit    = known_q;
            frame_bad = !known_q || bad_q || miss;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= Head;
      at_q         <= '0;
      bad_q        <= 1'b0;
      known_q      <= 1'b0;
      slot_q        <= 1'b0;
      frame_valid_o <= 1'b0;
      bad_heads_o   <= '0;
      bad_frames_o  <= '0;
    end else begin
      state_q <= state_d;
      at_q    <= at_d;
      bad_q   <= bad_d;
      known_q <= known_d;
      frame_valid_o <= commit || (frame_valid_o && !frame_ready_i);
      if (commit) slot_q <= !slot_q;
      if (head_bad && bad_heads_o != '1) bad_heads_o <= bad_heads_o + 8'd1;
      if (frame_bad && bad_frames_o != '1) bad_frames_o <= bad_frames_o + 8'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    crc_q   <= crc_d;
    hello_q <= hello_d;
    tag_q   <= tag_d;
    size_q  <= size_d;
    empty_q <= size_q[11:0] == 12'd0;
    huge_q  <= size_q[15:12] != 4'd0 || (size_q[11] && size_q[10:0] != 11'd0);
    if (commit) begin
      frame_hello_o   <= hello_q;
      frame_damaged_o <= frame_bad;
      frame_tag_o     <= tag_q;
      frame_size_o    <= size_q[11:0];
    end
  end

  // Payloads of up to 2048 bytes, two to a word: block RAM.
  logic [15:0] mem [0:2047];
  logic [7:0]  low_q;
  always_ff @(posedge clk_i) begin
    if (take && state_q == Payload) begin
      if (!at_q[0]) low_q <= rx_data_i;
      if (at_q[0] || state_d == Sum) mem[{slot_q, at_q[10:1]}] <= at_q[0] ? {rx_data_i, low_q} : {8'd0, rx_data_i};
    end
    word_o <= mem[{!slot_q, word_addr_i}];
  end

  `CT_ASSERT(SizeInTime_A, state_q != Head || at_q[3:0] <= 4'd8 || (empty_q == (size_q[11:0] == 12'd0) && huge_q == (size_q > 16'd2048)))
  `CT_ASSERT(SizeFits_A, state_q == Head || (size_q != 16'd0 && size_q <= 16'd2048))
  `CT_ASSERT(AtFits_A, state_q == Head ? at_q <= 12'd11 : state_q == Payload ? at_q < size_q[11:0] : at_q <= 12'd3)
  `CT_ASSERT(OnlyWithRoom_A, !commit || !frame_valid_o)
  `CT_ASSERT(OnlyChecked_A, !commit || frame_bad || (!bad_q && !miss))

`ifdef FORMAL
  `include "ct_usb_rx_formal.svh"
`endif

endmodule

`default_nettype wire
