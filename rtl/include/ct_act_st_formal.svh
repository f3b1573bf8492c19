// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_act_st (tb/formal/ct_act_st.proof), included at its end. The encoder may give anything: groups of 1 to 70 units.

  // The driver: an arena at a page, windows that stay. ct_act_pages: a place within a page.
  (* anyconst *) logic [31:0] f_arena, f_base, f_limit;
  `CT_ASSUME(WindowsStay_M, arena_i == f_arena && base_i == f_base && limit_i == f_limit)
  `CT_ASSUME(ArenaAtPage_M, arena_i[7:0] == 8'd0)
  `CT_ASSUME(PlaceInPage_M, !(take_ready_i && !take_none_i) || 9'(take_place_i[7:0]) + {2'd0, take_units_o} <= 9'd256)
  `CT_ASSUME(TakeIsAsked_M, !take_ready_i || take_valid_o)
  // ct_act_enc: units of a group in order, at most 70, the last one with their number.
  `CT_ASSUME(GroupFits_M, !e_valid || (e_units == fill_at_q + 7'd1 && fill_at_q < 7'd70 && (e_last || fill_at_q < 7'd69)))
  `CT_ASSERT(FillFits_A, fill_at_q < 7'd70)
  `CT_ASSUME(ErrorHalts_M, !f_err_q || clear)
  logic f_err_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_err_q <= 1'b0;
    else         f_err_q <= err_o;
  end

  // ct_dma_wr: grants of what is offered; of the bursts that were granted the beats, in order. Two at most are under way.
  typedef struct packed {
    logic [4:0] left;
    logic [7:0] at;
    logic [1:0] tag;
  } f_burst_t;
  logic     f_one_q, f_two_q;
  f_burst_t f_first_q, f_second_q, f_new;
  logic     f_ends;
  assign f_new  = {wr_beats_o, wr_at_o, wr_tag_o};
  assign f_ends = beat_i && beat_last_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_one_q <= 1'b0;
      f_two_q <= 1'b0;
    end else begin
      f_one_q <= (f_one_q && !f_ends) || f_two_q || wr_ready_i;
      f_two_q <= f_one_q && !f_ends && (f_two_q || wr_ready_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_ends || !f_one_q) f_first_q <= f_two_q ? f_second_q : f_new;
    else if (beat_i) begin
      f_first_q.left <= f_first_q.left - 5'd1;
      f_first_q.at   <= f_first_q.at + 8'd1;
    end
    if (wr_ready_i) f_second_q <= f_new;
  end
  `CT_ASSUME(GrantOfOffer_M, !wr_ready_i || (wr_valid_o && !f_two_q))
  `CT_ASSUME(BeatOfBurst_M, !beat_i || (f_one_q && beat_at_i == f_first_q.at && beat_tag_i == f_first_q.tag && beat_last_i == (f_first_q.left == 5'd1)))
  `CT_ASSUME(Within_M, within_i == f_one_q)
  `CT_ASSERT(OneBeforeTwo_A, !f_two_q || f_one_q)
  // What was forgotten is not reused while W has a burst of it: the flush lasts until then, or the context is marked left.
  logic f_held_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_held_q <= 1'b0;
    else         f_held_q <= (flush_i || halt_i) && within_i && !abandon_i;
  end
  `CT_ASSUME(FlushUntilIdle_M, !f_held_q || flush_i || halt_i)
  `CT_ASSUME(AbandonUnderFlush_M, !abandon_i || flush_i)

  // A burst that is offered: in its page, in the window, whole in the buffer; it stays.
  `CT_ASSERT(StateLegal_A, state_q <= Index)
  `CT_ASSERT(PartInPage_A, !(state_q == Look || state_q == Burst || state_q == Write || state_q == Index) || 9'(addr_q[7:0]) + {2'd0, left_units_q} <= 9'd256)
  `CT_ASSERT(PartInWindow_A, !(state_q == Burst || state_q == Index) || (addr_q >= base_i && {1'b0, addr_q} + 33'(left_units_q) <= {1'b0, limit_i}))
  `CT_ASSERT(PartInBuffer_A, !(state_q == Look || state_q == Burst) || (left_units_q != 7'd0 && left_units_q <= 7'd70 && 8'(at_q) + 8'(left_units_q) == 8'(units)))
  `CT_ASSERT(PartIsIndex_A, !(state_q == Write || state_q == Index) || (left_units_q == 7'd1 && at_q == 7'd127 && p_store))
  `CT_ASSERT(Whole_A, state_q == Take || (full_q[send_q] && (sent_q[send_q] == (state_q == Enter && !p_store))))
  `CT_ASSERT(UnitsFit_A, !full_q[send_q] || (units != 7'd0 && units <= 7'd70))
  `CT_ASSERT(OtherUnitsFit_A, !full_q[!send_q] || (units_q[7*(!send_q) +: 7] != 7'd0 && units_q[7*(!send_q) +: 7] <= 7'd70))
  `CT_ASSERT(SentIsFull_A, (sent_q & ~full_q) == 2'b00)
  logic        f_kept_q;
  logic [44:0] f_offer_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_kept_q <= 1'b0;
    else         f_kept_q <= wr_valid_o && !wr_ready_i;
  end
  always_ff @(posedge clk_i) f_offer_q <= {wr_addr_o, wr_beats_o, wr_at_o};
  `CT_ASSERT(OfferKept_A, !f_kept_q || clear || (wr_valid_o && f_offer_q == {wr_addr_o, wr_beats_o, wr_at_o}))


  // No half is filled while W has a burst of it.
  logic f_reads0, f_reads1;
  assign f_reads0 = (f_one_q && !f_first_q.tag[1]) || (f_two_q && !f_second_q.tag[1]);
  assign f_reads1 = (f_one_q && f_first_q.tag[1]) || (f_two_q && f_second_q.tag[1]);
  `CT_ASSERT(NotWhileRead_A, clear || !((f_reads0 && !full_q[0]) || (f_reads1 && !full_q[1])))
  // The last burst of a half is marked, and only that; the others are of the half that is being sent.
  logic f_fin0, f_fin1, f_part;
  assign f_fin0 = (f_one_q && f_first_q.tag == 2'b01) || (f_two_q && f_second_q.tag == 2'b01);
  assign f_fin1 = (f_one_q && f_first_q.tag == 2'b11) || (f_two_q && f_second_q.tag == 2'b11);
  assign f_part = state_q == Burst || state_q == Enter || state_q == Write || state_q == Index;
  `CT_ASSERT(SentHasLast_A, clear || sent_q == {f_fin1, f_fin0})
  `CT_ASSERT(LastIsLast_A, clear || !(f_two_q && f_first_q.tag[0]) || f_second_q.tag[1] != f_first_q.tag[1])
  `CT_ASSERT(PartIsSent_A, clear || (!(f_one_q && !f_first_q.tag[0]) || sent_q[f_first_q.tag[1]] || (f_part && send_q == f_first_q.tag[1])))
  `CT_ASSERT(NextIsSent_A, clear || (!(f_two_q && !f_second_q.tag[0]) || (f_part && send_q == f_second_q.tag[1] && !sent_q[f_second_q.tag[1]])))
  `CT_ASSERT(LeftBehind_A, (!f_one_q || f_first_q.left != 5'd0) && (!f_two_q || f_second_q.left != 5'd0))
  // Every group that is encoded has its part of a request.
  logic [2:0] f_wait, f_parts;
  assign f_wait  = 3'(full_q[0] && !sent_q[0]) + 3'(full_q[1] && !sent_q[1]) + 3'(state_q == Enter && !p_store);
  assign f_parts = par_in_q - par_out_q;
  `CT_ASSUME(GroupWasAsked_M, !(e_valid && e_ready && e_last) || f_wait < f_parts)
  `CT_ASSERT(GroupHasPart_A, f_wait <= f_parts && f_parts <= 3'd4)
