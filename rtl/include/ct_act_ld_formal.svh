// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_act_ld (tb/formal/ct_act_ld.proof), included at its end. The decoder and what memory holds may be anything.

  (* anyconst *) logic [31:0] f_arena, f_base, f_limit;
  (* anyconst *) logic [PageW:0] f_pages;
  `CT_ASSUME(WindowsStay_M, arena_i == f_arena && base_i == f_base && limit_i == f_limit && pages_i == f_pages)
  `CT_ASSUME(ArenaAtPage_M, arena_i[7:0] == 8'd0 && pages_i <= (PageW + 1)'(1 << PageW))
  logic f_err_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_err_q <= 1'b0;
    else         f_err_q <= err_o;
  end
  `CT_ASSUME(ErrorHalts_M, !f_err_q || clear)
  `CT_ASSUME(GrantOfOffer_M, !rd_ready_i || rd_valid_o)

  // ct_dma_rd: under clear nobody hears of a beat, and later only of what was asked for since. Units of groups that are owed.
  logic [7:0] f_owed_q;
  logic       f_idx_owed_q;
  `CT_ASSUME(BeatIsOwed_M, !(beat_i || fault_i) || (!clear && (beat_tag_i[3] ? f_idx_owed_q : f_owed_q != 8'd0)))
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_owed_q     <= '0;
      f_idx_owed_q <= 1'b0;
    end else if (clear) begin
      f_owed_q     <= '0;
      f_idx_owed_q <= 1'b0;
    end else begin
      f_owed_q     <= f_owed_q + ((grp_ask && rd_ready_i) ? {3'd0, beats} : 8'd0) - 8'((beat_i || fault_i) && !beat_tag_i[3]);
      f_idx_owed_q <= (f_idx_owed_q || (idx_ask && rd_ready_i)) && !((beat_i || fault_i) && beat_tag_i[3]);
    end
  end
  // (Behind a fault comes an error, and then nothing.)
  logic f_lost_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)    f_lost_q <= 1'b0;
    else if (clear) f_lost_q <= 1'b0;
    else            f_lost_q <= f_lost_q || fault_i;
  end
  `CT_ASSERT(RoomCounted_A, f_lost_q || 9'(room_q) + 9'(8'(buf_in_q - buf_out_q)) + 9'(f_owed_q) + 9'(beat_q && !beat_idx_q) == 9'd128)
  `CT_ASSERT(LostHalts_A, !f_lost_q || f_err_q)
  `CT_ASSERT(IndexCounted_A, f_lost_q || idx_new_q == (f_idx_owed_q || idx_here_q || (beat_q && beat_idx_q)))
  `CT_ASSERT(IndexOnce_A, !(f_idx_owed_q && (idx_here_q || (beat_q && beat_idx_q))) && !(idx_here_q && beat_q && beat_idx_q))

  // A burst: in its page, in the window.
  `CT_ASSERT(StateLegal_A, state_q == Entry || state_q == Look || state_q == Burst)
  `CT_ASSERT(PartInPage_A, state_q != Burst || (9'(addr_q[7:0]) + {2'd0, left_q} <= 9'd256 && left_q != 7'd0 && left_q <= 7'd70))
  `CT_ASSERT(PlaceIsAddress_A, state_q != Look || addr_q[7:0] == place_q[7:0])
  `CT_ASSERT(PartInWindow_A, state_q != Burst || (addr_q >= base_i && {1'b0, addr_q} + 33'(left_q) <= {1'b0, limit_i}))
  `CT_ASSERT(IndexInWindow_A, !idx_ask || (rd_addr_o >= base_i && rd_addr_o < limit_i))

  // Requests are asked for, fetched and written in order.
  `CT_ASSERT(RingInOrder_A, 4'(in_q - put_q) <= 4'd8 && 4'(get_q - put_q) <= 4'(ask_q - put_q) && 4'(ask_q - put_q) <= 4'(in_q - put_q))
// (The last word of a group comes only when all its units have been asked for.)
  `CT_ASSUME(LastWhenAsked_M, !(d_valid && d_last) || put_q != get_q)
  `CT_ASSERT(EndHasGroup_A, end_q == Words || gone_q || put_q != get_q)
  `CT_ASSERT(EndLegal_A, end_q == Words || end_q == Free || (end_q == Done && !gone_q))
  `CT_ASSERT(PartHasRequest_A, state_q == Entry || get_q != ask_q)

  // What is on offer stays until it is granted, or until all is forgotten.
  logic        f_kept_q;
  logic [40:0] f_offer_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_kept_q <= 1'b0;
    else         f_kept_q <= rd_valid_o && !rd_ready_i;
  end
  always_ff @(posedge clk_i) f_offer_q <= {rd_addr_o, rd_beats_o, rd_tag_o};
  `CT_ASSERT(OfferKept_A, !f_kept_q || clear || (rd_valid_o && f_offer_q == {rd_addr_o, rd_beats_o, rd_tag_o}))
  `CT_ASSERT(KeptIsBurst_A, !grp_kept_q || clear || grp_ask)
