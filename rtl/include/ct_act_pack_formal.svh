// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_act_pack (tb/formal/ct_act_pack.proof), included at its end. Pieces in front of the accumulator may be any: of 152 bits at most, the
// first of a group a header, all of a group 8898 bits at most (docs/compression.md).

  // Bits of the group that have been taken, and of the one whose last unit waits.
  logic [13:0] f_bits_q;
  logic        f_begins;
  assign f_begins = f_bits_q == 14'd0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                   f_bits_q <= '0;
    else if (flush_i)              f_bits_q <= '0;
    else if (take)                 f_bits_q <= p_last_q ? 14'd0 : f_bits_q + 14'(p_len_q);
  end
  `CT_ASSUME(PieceFits_M, p_len_q <= 8'd152 && p_piece_q >> p_len_q == '0)
  `CT_ASSUME(HeaderFirst_M, !f_begins || (!p_last_q && p_len_q >= 8'd34 && p_len_q <= 8'd56))
  `CT_ASSUME(GroupFits_M, f_bits_q + 14'(p_len_q) <= 14'd8898)

  // The accumulator holds what has been taken and has not gone: of this group, of the one that ends.
  logic [13:0] f_gone, f_end_q;  // bits that have gone of the group whose bits are in front; bits of the group that ends
  assign f_gone = {units_q, 7'd0};
  always_ff @(posedge clk_i) begin
    if (take && p_last_q) f_end_q <= f_bits_q + 14'(p_len_q);
  end
  `CT_ASSERT(OneState_A, !(fin_q && tail_q))
  `CT_ASSERT(Running_A, fin_q || tail_q || f_bits_q == f_gone + 14'(count_q))
  `CT_ASSERT(Ending_A, !fin_q || (f_begins && f_end_q <= f_gone + 14'd279 &&
                       (f_end_q >= f_gone ? 14'(count_q) == f_end_q - f_gone : count_q == 9'd0 && f_gone - f_end_q <= 14'd7)))
  `CT_ASSERT(Tail_A, !tail_q || (count_q == 9'd128 + 9'(f_bits_q) && f_bits_q <= 14'd56 && !f_begins && f_end_q + 14'd8 <= f_gone + 14'd128 &&
                     f_end_q + 14'd8 > f_gone))
  `CT_ASSERT(EndFits_A, !(fin_q || tail_q) || (f_end_q != '0 && f_end_q <= 14'd8898))
  `CT_ASSERT(BitsFit_A, f_bits_q <= 14'd8898)

  // Any bit of a group: it goes out in its place, once, and the check follows in the last byte.
  (* anyconst *) logic [13:0] f_pick;
  logic        f_bit_q, f_last_bit_q;  // of the group that comes, and of the one that ends
  logic        f_old, f_new;           // it is in the accumulator
  logic [13:0] f_place;                // there
  logic        f_value;
  always_ff @(posedge clk_i) begin
    if (take && f_pick >= f_bits_q && f_pick - f_bits_q < 14'(p_len_q)) f_bit_q <= p_piece_q[8'(f_pick - f_bits_q)];
    if (take && p_last_q) f_last_bit_q <= (f_pick >= f_bits_q) ? p_piece_q[8'(f_pick - f_bits_q)] : f_bit_q;
  end
  assign f_old   = (fin_q || tail_q) && f_pick < f_end_q && f_pick >= f_gone;
  assign f_new   = !fin_q && f_pick < f_bits_q && (tail_q || f_pick >= f_gone);
  assign f_place = f_pick - f_gone;
  assign f_value = f_old ? f_last_bit_q : f_bit_q;
  `CT_ASSERT(InPlace_A, !f_old || acc_q[9'(f_place)] == f_last_bit_q)
  `CT_ASSERT(NewInPlace_A, !f_new || acc_q[tail_q ? 9'(f_pick + 14'd128) : 9'(f_place)] == f_bit_q)
  `CT_ASSERT(GoesOut_A, !(pop && (f_old || (f_new && !tail_q)) && f_place < 14'd128) || data_o[f_place[6:0]] == f_value)

  // The bytes that have gone fold to check_q; with the last one all fold to 0.
  logic [7:0] f_fold;
  always_comb begin
    f_fold = check_q;
    for (int i = 0; i < 16; i++) f_fold = f_fold ^ data_o[8*i +: 8];
  end
  `CT_ASSERT(FoldsToZero_A, !(valid_o && last_o) || f_fold == 8'd0)

  // As many units as the bits and the check take.
  `CT_ASSERT(UnitsOfGroup_A, !(valid_o && last_o) || (14'(units_o) << 7 >= f_end_q + 14'd8 && 14'(units_o) << 7 < f_end_q + 14'd136))

  // An offer stays.
  logic         f_kept_q;
  logic [128:0] f_data_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_kept_q <= 1'b0;
    else         f_kept_q <= valid_o && !ready_i && !flush_i;
  end
  always_ff @(posedge clk_i) f_data_q <= {last_o, data_o};
  `CT_ASSERT(KeepsOffer_A, !f_kept_q || (valid_o && f_data_q == {last_o, data_o}))
