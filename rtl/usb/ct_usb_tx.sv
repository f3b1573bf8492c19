// SPDX-License-Identifier: Apache-2.0
//
// Sends the frames of docs/usb.md: an answer from one of two buffers of 2048 bytes, or of its own an EVENT when the interrupt rose and no
// frame has said so since.
//
// Rate        a byte a cycle. A frame begins two cycles after it was asked for.
// Buffers     written by we_i at any time; the one that is being sent must stay as it is until start_ready_o is back.
// Interrupt   each frame carries irq_i of the cycle in which its status byte is made.
// Flush       tx_flush_o comes with the last byte of a frame: nothing follows that is already known of.

`default_nettype none
`include "ct_assert.svh"

module ct_usb_tx (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        irq_i,

  // An answer to send; ready: none is being sent.
  input  logic        start_valid_i,
  output logic        start_ready_o,
  input  logic [2:0]  start_code_i,
  input  logic [15:0] start_tag_i,
  input  logic [11:0] start_size_i,
  input  logic        start_buf_i,

  // The buffers, two bytes to a word, each with its own enable: {buffer, word}.
  input  logic [1:0]  we_i,
  input  logic [10:0] waddr_i,
  input  logic [15:0] wdata_i,

  output logic        tx_valid_o,
  input  logic        tx_ready_i,
  output logic [7:0]  tx_data_o,
  output logic        tx_flush_o
);

  typedef enum logic [1:0] {Idle, Head, Payload, Sum} state_e;

  state_e      state_d, state_q;
  logic [11:0] at_d, at_q;
  logic [31:0] crc_d, crc_q, crc_next;
  logic        event_q, announced_d, announced_q, valid_d, flush_d, move, begins, tells;
  logic [2:0]  code_q;
  logic [15:0] tag_q, word_q, cur_q;
  logic [11:0] size_q;
  logic [10:0] raddr_q;
  logic [7:0]  next;

  assign start_ready_o = state_q == Idle;
  assign tells         = irq_i && !announced_q;
  assign begins        = state_q == Idle && (start_valid_i || tells);
  assign move          = !tx_valid_o || tx_ready_i;

  ct_usb_crc u_crc (.crc_i(crc_q), .byte_i(next), .crc_o(crc_next));

  always_comb begin
    next = ~crc_q[7:0];
    if (state_q == Payload) next = at_q[0] ? cur_q[15:8] : cur_q[7:0];
    if (state_q == Head) begin
      case (at_q[3:0])
        4'd0:    next = 8'h43;
        4'd1:    next = 8'h54;
        4'd2:    next = event_q ? 8'd4 : 8'd3;
        4'd3:    next = {irq_i, 4'd0, code_q};
        4'd4:    next = tag_q[7:0];
        4'd5:    next = tag_q[15:8];
        4'd6:    next = size_q[7:0];
        4'd7:    next = {4'd0, size_q[11:8]};
        default: ;
      endcase
    end
  end

  always_comb begin
    state_d     = state_q;
    at_d        = at_q;
    crc_d       = crc_q;
    announced_d = announced_q && irq_i;
    valid_d     = tx_valid_o && !tx_ready_i;
    flush_d     = 1'b0;
    if (state_q == Idle) begin
      at_d  = 12'd0;
      crc_d = '1;
      if (begins) state_d = Head;
    end else if (move) begin
      valid_d = 1'b1;
      at_d    = at_q + 12'd1;
      crc_d   = crc_next;
      case (state_q)
        Head: begin
          // In the CRC's four bytes the register turns around once: the second CRC goes on from there.
          if (at_q[3]) crc_d = {crc_q[7:0], crc_q[31:8]};
          if (at_q[3:0] == 4'd3) announced_d = irq_i;
          if (at_q[3:0] == 4'd11) begin
            at_d    = 12'd0;
            state_d = (size_q == 12'd0) ? Idle : Payload;
            flush_d = size_q == 12'd0;
          end
        end
        Payload: begin
          if (at_d == size_q) begin
            at_d    = 12'd0;
            state_d = Sum;
          end
        end
        default: begin
          crc_d = {crc_q[7:0], crc_q[31:8]};
          if (at_q[1:0] == 2'd3) begin
            state_d = Idle;
            flush_d = 1'b1;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= Idle;
      at_q        <= '0;
      announced_q <= 1'b0;
      tx_valid_o  <= 1'b0;
    end else begin
      state_q     <= state_d;
      at_q        <= at_d;
      announced_q <= announced_d;
      tx_valid_o  <= valid_d;
    end
  end

  always_ff @(posedge clk_i) begin
    crc_q <= crc_d;
    if (begins) begin
      event_q <= !start_valid_i;
      code_q  <= start_valid_i ? start_code_i : '0;
      tag_q   <= start_valid_i ? start_tag_i : '0;
      size_q  <= start_valid_i ? start_size_i : '0;
    end
    if (move) begin
      tx_data_o  <= next;
      tx_flush_o <= flush_d;
    end
  end

  // The answers: block RAM. The word that is being sent is in a register, so that the CRC does not wait for the RAM; the next one is read
  // meanwhile.
  logic [15:0] mem [0:2047];
  logic        fetch;
  assign fetch = move && (state_q == Payload ? at_q[0] : state_q == Head && at_q[3:0] == 4'd11);
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 2; i++) if (we_i[i]) mem[waddr_i][8*i +: 8] <= wdata_i[8*i +: 8];
    word_q <= mem[raddr_q];
    if (begins) raddr_q <= {start_buf_i, 10'd0};
    if (fetch) begin
      cur_q   <= word_q;
      raddr_q <= {raddr_q[10], raddr_q[9:0] + 10'd1};
    end
  end

  `CT_ASSUME(SizeFits_M, !start_valid_i || start_size_i <= 12'd2048)
  // ct_usb_exec: the buffer that is being sent stays as it is.
  `CT_ASSUME(BufferStays_M, state_q == Idle || size_q == 12'd0 || we_i == 2'b00 || waddr_i[10] != raddr_q[10])
  `CT_ASSERT(AtFits_A, state_q == Idle || (state_q == Head ? at_q <= 12'd11 : state_q == Payload ? at_q < size_q : at_q <= 12'd3))

`ifdef FORMAL
  `include "ct_usb_tx_formal.svh"
`endif

endmodule

`default_nettype wire
