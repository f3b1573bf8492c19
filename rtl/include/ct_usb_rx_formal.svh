// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_usb_rx (tb/formal/ct_usb_rx.proof), included at its end. Beside it goes a receiver that does what docs/usb.md says and
// no more: it counts the bytes of a frame through, keeps its head and the sum at its end as they came, and compares them when all is here.

  function automatic logic [7:0] f_magic(input logic [11:0] at);
    f_magic = (at == 12'd0) ? MagicC : MagicT;
  endfunction

  logic [11:0] f_n_q, f_n, f_at, f_body;  // bytes of the frame so far; the place of this byte in it, in what follows the head
  logic [95:0] f_head_q, f_head;          // the first byte in the lowest bits
  logic [31:0] f_sum_q, f_sum;            // of a payload, as it came
  logic [31:0] f_crc_q, f_crc, f_crc_from;
  logic [15:0] f_size;
  logic        f_seek, f_head_end, f_head_good, f_end, f_good, f_known, f_whole;
  ct_usb_crc u_f_crc (.crc_i(f_crc_from), .byte_i(rx_data_i), .crc_o(f_crc));

  // The search begins again with a byte that does not go on with it.
  assign f_at        = (f_n_q < 12'd2 && rx_data_i != f_magic(f_n_q)) ? 12'd0 : f_n_q;
  assign f_seek      = f_at == 12'd0 && rx_data_i != MagicC;
  assign f_body      = f_at - 12'd12;
  assign f_crc_from  = (f_at == 12'd0) ? '1 : f_crc_q;
  assign f_size      = f_head[63:48];
  assign f_head_end  = f_at == 12'd11;
  assign f_head_good = f_head[95:64] == ~f_crc_q && f_size <= 16'd2048;
  assign f_end       = (f_head_end && f_head_good && f_size == 16'd0) || (f_at > 12'd11 && {4'd0, f_body} == f_size + 16'd3);
  assign f_good      = f_size == 16'd0 || f_sum == ~f_crc_q;
  assign f_known     = f_head[23:16] == Request || f_head[23:16] == Hello;
  assign f_whole     = take && f_end && f_known;
  always_comb begin
    f_head = f_head_q;
    f_sum  = f_sum_q;
    for (int i = 0; i < 12; i++) if (f_at == 12'(i)) f_head[8*i +: 8] = rx_data_i;
    if (f_at > 12'd11) f_sum = {rx_data_i, f_sum_q[31:8]};
    f_n = (f_seek || f_end || (f_head_end && !f_head_good)) ? 12'd0 : f_at + 12'd1;
  end

  // What must be on offer, and the counters. One word of each payload, any.
  (* anyconst *) logic [9:0] f_word;
  logic        f_offer_q, f_hello_q, f_bad_q, f_asked_q, f_stays_q;
  logic [15:0] f_tag_q, f_in_q, f_out_q;
  logic [11:0] f_size_q, f_zeros_q;
  logic [7:0]  f_heads_q, f_frames_q;
  logic        f_in_word;
  assign f_in_word = f_at > 12'd11 && f_body < f_size[11:0] && f_body[10:1] == f_word;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_n_q      <= '0;
      f_offer_q  <= 1'b0;
      f_asked_q  <= 1'b0;
      f_stays_q  <= 1'b0;
      f_zeros_q  <= '0;
      f_heads_q  <= '0;
      f_frames_q <= '0;
    end else begin
      if (take) f_n_q <= f_n;
      f_offer_q <= f_whole || (f_offer_q && !frame_ready_i);
      f_asked_q <= f_offer_q && word_addr_i == f_word;
      f_stays_q <= frame_valid_o && !frame_ready_i;
      if (take) f_zeros_q <= (rx_data_i != 8'd0) ? '0 : f_zeros_q + 12'(f_zeros_q != '1);
      if (take && f_head_end && !f_head_good && f_heads_q != '1) f_heads_q <= f_heads_q + 8'd1;
      if (take && f_end && !(f_known && f_good) && f_frames_q != '1) f_frames_q <= f_frames_q + 8'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      f_head_q <= f_head;
      f_sum_q  <= f_sum;
      if (f_at < 12'd8 || (f_at > 12'd11 && {4'd0, f_body} < f_size)) f_crc_q <= f_crc;
      if (f_in_word) f_in_q <= f_body[0] ? {rx_data_i, f_in_q[7:0]} : {8'd0, rx_data_i};
    end
    if (f_whole) begin
      f_hello_q <= f_head[23:16] == Hello;
      f_bad_q   <= !f_good;
      f_tag_q   <= f_head[47:32];
      f_size_q  <= f_size[11:0];
      f_out_q   <= f_in_q;
    end
  end

  `CT_ASSERT(OfferedOnce_A, frame_valid_o == f_offer_q)
  `CT_ASSERT(OfferIsItsOwn_A, !frame_valid_o || (frame_hello_o == f_hello_q && frame_damaged_o == f_bad_q && frame_tag_o == f_tag_q &&
                                                 frame_size_o == f_size_q))
  `CT_ASSERT(OfferStays_A, !f_stays_q || frame_valid_o)
  `CT_ASSERT(PayloadIsItsOwn_A, !(f_asked_q && frame_valid_o) || {1'b0, f_word, 1'b0} >= frame_size_o || word_o == f_out_q)
  `CT_ASSERT(Counted_A, bad_heads_o == f_heads_q && bad_frames_o == f_frames_q)
  `CT_ASSERT(RefusesOnlyWhole_A, rx_ready_o || (frame_valid_o && (f_head_end || f_end)))
  `CT_ASSERT(ZerosEndFrames_A, f_zeros_q < 12'd2063 || f_n_q == 12'd0)

  // Where the two receivers are, and what they have in common.
  logic [2:0] f_turned;  // bytes of a sum that have come
  logic [31:0] f_came;   // those bytes, as far as they have come in the lowest
  assign f_turned = (state_q == Sum) ? {1'b0, at_q[1:0]} : (state_q == Head && at_q[3]) ? {1'b0, at_q[1:0]} : 3'd0;
  function automatic logic [31:0] f_turn(input logic [31:0] crc, input logic [2:0] n);
    f_turn = crc;
    for (int i = 1; i < 4; i++) if (n == 3'(i)) f_turn = (crc >> 8*i) | (crc << (32 - 8*i));
  endfunction
  assign f_came = (state_q == Sum) ? f_sum_q >> (6'd32 - {f_turned, 3'd0}) : f_head_q[95:64];
  logic f_differs;  // of them, one is not as the CRC wants it
  always_comb begin
    f_differs = 1'b0;
    for (int i = 0; i < 3; i++) if (3'(i) < f_turned) f_differs = f_differs || f_came[8*i +: 8] != ~f_crc_q[8*i +: 8];
  end
  `CT_ASSERT(SamePlace_A, f_n_q == (state_q == Head ? at_q : state_q == Payload ? at_q + 12'd12 : at_q + 12'd12 + size_q[11:0]))
  // A frame begins with no zero, and has 2064 bytes at most.
  `CT_ASSERT(ZerosInFrame_A, f_n_q == 12'd0 || f_zeros_q < f_n_q)
  `CT_ASSERT(StateIsOne_A, state_q == Head || state_q == Payload || state_q == Sum)
  `CT_ASSERT(SameMagic_A, (f_n_q < 12'd1 || f_head_q[7:0] == MagicC) && (f_n_q < 12'd2 || f_head_q[15:8] == MagicT))
  `CT_ASSERT(SameKind_A, f_n_q < 12'd3 || (hello_q == (f_head_q[23:16] == Hello) &&
                                           known_q == (f_head_q[23:16] == Hello || f_head_q[23:16] == Request)))
  `CT_ASSERT(SameTag_A, (f_n_q < 12'd5 || tag_q[7:0] == f_head_q[39:32]) && (f_n_q < 12'd6 || tag_q[15:8] == f_head_q[47:40]))
  `CT_ASSERT(SameSize_A, (f_n_q < 12'd7 || size_q[7:0] == f_head_q[55:48]) && (f_n_q < 12'd8 || size_q[15:8] == f_head_q[63:56]))
  `CT_ASSERT(SameCrc_A, f_n_q < 12'd2 || crc_q == f_turn(f_crc_q, f_turned))
  `CT_ASSERT(SameBad_A, (state_q == Head && !at_q[3]) || bad_q == f_differs)
  `CT_ASSERT(LowIsFirst_A, state_q != Payload || !at_q[0] || at_q[10:1] != f_word || (f_in_q == {8'd0, low_q}))
  `CT_ASSERT(WordComing_A, !((state_q == Payload && at_q > {1'b0, f_word, 1'b1}) || (state_q == Sum && {4'd0, 1'b0, f_word, 1'b0} < size_q)) ||
                           mem[{slot_q, f_word}] == f_in_q)
  `CT_ASSERT(WordOffered_A, !frame_valid_o || {1'b0, f_word, 1'b0} >= frame_size_o || mem[{!slot_q, f_word}] == f_out_q)
  // The CRC of the first byte is known.
  logic [31:0] f_first;
  ct_usb_crc u_f_first (.crc_i('1), .byte_i(MagicC), .crc_o(f_first));
  `CT_ASSERT(FirstCrc_A, f_n_q != 12'd1 || f_crc_q == f_first)
