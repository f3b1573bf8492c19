// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_usb_tx (tb/formal/ct_usb_tx.proof), included at its end. Beside it goes a sender that does what docs/usb.md says and no
// more: it keeps what it was asked for, counts the bytes of a frame through, and has a CRC of what has gone.

  logic        f_busy_q, f_event_q, f_said_q, f_have_q, f_last_q, f_buf_q;
  logic        f_free, f_takes, f_tells, f_makes, f_ends;
  logic [2:0]  f_code_q;
  logic [15:0] f_tag_q;
  logic [11:0] f_size_q, f_n_q, f_body, f_unsaid_q;  // f_n: bytes of the frame so far; f_body: the place behind the head
  logic [31:0] f_crc_q, f_crc;
  logic [7:0]  f_byte, f_byte_q;
  logic [15:0] f_pair;
  ct_usb_crc u_f_crc (.crc_i(f_crc_q), .byte_i(f_byte), .crc_o(f_crc));

  assign f_free  = !tx_valid_o || tx_ready_i;
  assign f_takes = start_valid_i && start_ready_o;
  assign f_tells = !f_busy_q && !start_valid_i && irq_i && !f_said_q;
  assign f_makes = f_busy_q && f_free;
  assign f_body  = f_n_q - 12'd12;
  assign f_ends  = f_n_q == (f_size_q == 12'd0 ? 12'd11 : f_size_q + 12'd15);
  assign f_pair  = mem[{f_buf_q, f_body[10:1]}];

  always_comb begin
    f_byte = f_body[0] ? f_pair[15:8] : f_pair[7:0];
    if (f_n_q < 12'd12) begin
      case (f_n_q[3:0])
        4'd0:    f_byte = 8'h43;
        4'd1:    f_byte = 8'h54;
        4'd2:    f_byte = f_event_q ? 8'd4 : 8'd3;
        4'd3:    f_byte = {irq_i, 4'd0, f_code_q};
        4'd4:    f_byte = f_tag_q[7:0];
        4'd5:    f_byte = f_tag_q[15:8];
        4'd6:    f_byte = f_size_q[7:0];
        4'd7:    f_byte = {4'd0, f_size_q[11:8]};
        4'd8:    f_byte = ~f_crc_q[7:0];
        4'd9:    f_byte = ~f_crc_q[15:8];
        4'd10:   f_byte = ~f_crc_q[23:16];
        default: f_byte = ~f_crc_q[31:24];
      endcase
    end else if (f_body >= f_size_q) begin
      for (int i = 0; i < 4; i++) if (f_body == f_size_q + 12'(i)) f_byte = ~f_crc_q[8*i +: 8];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_busy_q   <= 1'b0;
      f_said_q   <= 1'b0;
      f_have_q   <= 1'b0;
      f_n_q      <= '0;
      f_unsaid_q <= '0;
    end else begin
      f_busy_q   <= f_takes || f_tells || (f_busy_q && !(f_makes && f_ends));
      f_said_q   <= irq_i && (f_said_q || (f_makes && f_n_q == 12'd3));
      f_have_q   <= f_makes || (f_have_q && !tx_ready_i);
      f_unsaid_q <= (!irq_i || f_said_q || (f_makes && f_n_q == 12'd3)) ? '0 : f_unsaid_q + 12'(f_makes || !f_busy_q);
      if (f_takes || f_tells) f_n_q <= '0;
      else if (f_makes) f_n_q <= f_n_q + 12'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_takes || f_tells) begin
      f_event_q <= f_tells;
      f_code_q  <= f_tells ? '0 : start_code_i;
      f_tag_q   <= f_tells ? '0 : start_tag_i;
      f_size_q  <= f_tells ? '0 : start_size_i;
      f_buf_q   <= start_buf_i;
      f_crc_q   <= '1;
    end else if (f_makes && (f_n_q < 12'd8 || (f_n_q > 12'd11 && f_body < f_size_q))) begin
      f_crc_q   <= f_crc;
    end
    if (f_makes) begin
      f_byte_q <= f_byte;
      f_last_q <= f_ends;
    end
  end

  `CT_ASSERT(BytesAreFrames_A, tx_valid_o == f_have_q && (!tx_valid_o || tx_data_o == f_byte_q))
  `CT_ASSERT(FlushAtEnd_A, !tx_valid_o || tx_flush_o == f_last_q)
  `CT_ASSERT(OneAtATime_A, start_ready_o == !f_busy_q)
  `CT_ASSERT(TellsInTime_A, f_unsaid_q <= 12'd2064)

  // Where the two senders are, and what they have in common.
  logic [31:0] f_turned;
  logic [2:0]  f_turns;
  assign f_turns = (state_q == Sum || (state_q == Head && at_q[3])) ? {1'b0, at_q[1:0]} : 3'd0;
  always_comb begin
    f_turned = f_crc_q;
    for (int i = 1; i < 4; i++) if (f_turns == 3'(i)) f_turned = (f_crc_q >> 8*i) | (f_crc_q << (32 - 8*i));
  end
  `CT_ASSERT(SamePlace_A, !f_busy_q || f_n_q == (state_q == Head ? at_q : state_q == Payload ? at_q + 12'd12 : at_q + 12'd12 + f_size_q))
  `CT_ASSERT(SameFrame_A, !f_busy_q || (event_q == f_event_q && code_q == f_code_q && tag_q == f_tag_q && size_q == f_size_q && raddr_q[10] == f_buf_q))
  `CT_ASSERT(SizeFits_A, !f_busy_q || (f_size_q <= 12'd2048 && (state_q == Head || f_size_q != 12'd0) && (!f_event_q || f_size_q == 12'd0)))
  `CT_ASSERT(SameSaid_A, announced_q == f_said_q)
  `CT_ASSERT(SameCrc_A, !f_busy_q || crc_q == f_turned)
  `CT_ASSERT(ReadsAhead_A, !f_busy_q || state_q == Sum || raddr_q[9:0] == (state_q == Head ? 10'd0 : at_q[10:1] + 10'd1))
  `CT_ASSERT(ReadInTime_A, !f_busy_q || f_size_q == 12'd0 || !((state_q == Head && at_q != 12'd0) || (state_q == Payload && at_q[0])) ||
                           word_q == mem[raddr_q])
  `CT_ASSERT(WordInWork_A, !f_busy_q || state_q != Payload || cur_q == mem[{f_buf_q, at_q[10:1]}])
  `CT_ASSERT(UnsaidSoFar_A, f_unsaid_q <= (!f_busy_q ? 12'd2060 : f_n_q < 12'd4 ? 12'd2061 + f_n_q : f_n_q - 12'd4))
