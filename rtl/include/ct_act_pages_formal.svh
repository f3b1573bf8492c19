// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_act_pages (tb/formal/ct_act_pages.proof), included at its end. A free stays until it is answered.

  logic             f_free_q;
  logic [PageW-1:0] f_page_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_free_q <= 1'b0;
    end else begin
      f_free_q <= free_valid_i && !free_ready_o && !reset_i;
    end
  end
  always_ff @(posedge clk_i) f_page_q <= free_page;
  `CT_ASSUME(FreeKept_M, !f_free_q || (free_valid_i && free_page == f_page_q))
  `CT_ASSUME(UnitsOfGroup_M, take_units_i != 7'd0 && take_units_i <= 7'd70)
  `CT_ASSUME(PagesFit_M, pages_i <= (PageW + 1)'(Pages))
  (* anyconst *) logic [PageW:0] f_pages;
  `CT_ASSUME(PagesStay_M, pages_i == f_pages)
  // A state in which a request is waited for has one.
  `CT_ASSERT(StateLegal_A, state_q == Idle || state_q == Open || state_q == Count)
  `CT_ASSERT(TakeWaits_A, state_q != Open || (tops_q != '0 && (!open_q || groups_q != 9'd0)))
  `CT_ASSERT(FreeWaits_A, state_q != Count || f_free_q)

  // Any page: groups in it that were taken and not freed.
  (* anyconst *) logic [PageW-1:0] f_pick;
  logic [8:0] f_groups_q;
  logic       f_take, f_give;
  logic       f_mine;      // it is the open page
  assign f_mine = open_q && page_q == f_pick;
  assign f_take = take_ready_o && !take_none_o && take_place_o[PlaceW-1:8] == f_pick;
  assign f_give = free_ready_o && !free_bad_o && free_page == f_pick;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      f_groups_q <= '0;
    else if (reset_i) f_groups_q <= '0;
    else              f_groups_q <= f_groups_q + 9'(f_take) - 9'(f_give);
  end
  `CT_ASSERT(Counts_A, f_mine ? groups_q == f_groups_q : {1'b0, f_pick} < fresh_q ? count_mem[f_pick] == f_groups_q : f_groups_q == 9'd0)
  `CT_ASSERT(ReadsCount_A, state_q != Count || (count_q == count_mem[free_page] && !mine && {1'b0, free_page} < fresh_q))
  `CT_ASSERT(GroupsFit_A, groups_q <= used_q && used_q <= 9'd256 && (groups_q != 9'd0 || used_q == 9'd0) && f_groups_q <= 9'd256)
  `CT_ASSERT(FreesWhatIsThere_A, !f_give || f_groups_q != 9'd0)
  `CT_ASSERT(OpensEmpty_A, !(opens && next == f_pick) || (f_groups_q == 9'd0 && !f_mine))
  `CT_ASSERT(InPage_A, !(take_ready_o && !take_none_o) || (open_q && 9'(take_place_o[7:0]) + {2'd0, take_units_i} <= 9'd256 && used_q[8] == 1'b0))
  `CT_ASSERT(FreshFits_A, fresh_q <= pages_i && (!open_q || {1'b0, page_q} < fresh_q) && tops_q <= fresh_q)

  // If it was freed, where that is written: there, and nowhere else. (Proven with few pages.)
  logic             f_freed_q, f_right;
  logic [PageW-1:0] f_at_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                             f_freed_q <= 1'b0;
    else if (reset_i)                        f_freed_q <= 1'b0;
    else if (freed_we && free_page == f_pick) f_freed_q <= 1'b1;
    else if (opens && next == f_pick)         f_freed_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (freed_we && free_page == f_pick) f_at_q <= tops_q[PageW-1:0];
  end
  always_comb begin
    f_right = 1'b1;
    for (int i = 0; i < Pages; i++) begin
      if ((PageW + 1)'(i) < tops_q && freed_mem[i] == f_pick && !(f_freed_q && f_at_q == PageW'(i))) f_right = 1'b0;
    end
  end
  `CT_ASSERT(FreedOnce_A, f_right)
  `CT_ASSERT(FreedPlace_A, !f_freed_q || ({1'b0, f_at_q} < tops_q && freed_mem[f_at_q] == f_pick && f_groups_q == 9'd0 && !f_mine && {1'b0, f_pick} < fresh_q))
  `CT_ASSERT(ReadsFreed_A, state_q != Open || freed_q == freed_mem[PageW'(tops_q - 1'b1)])
  // And so it is with all of them: each once, without groups, not open.
  logic f_all_right;
  always_comb begin
    f_all_right = 1'b1;
    for (int i = 0; i < Pages; i++) begin
      if ((PageW + 1)'(i) < tops_q) begin
        if ({1'b0, freed_mem[i]} >= fresh_q || (open_q && page_q == freed_mem[i]) || count_mem[freed_mem[i]] != 9'd0) f_all_right = 1'b0;
        for (int j = 0; j < Pages; j++) if (j < i && freed_mem[i] == freed_mem[j]) f_all_right = 1'b0;
      end
    end
  end
  `CT_ASSERT(AllFreed_A, f_all_right)
  // All pages that were used are in use or freed.
  logic [PageW:0] f_used;
  always_comb begin
    f_used = (PageW + 1)'(open_q);
    for (int i = 0; i < Pages; i++) begin
      if ((PageW + 1)'(i) < fresh_q && !(open_q && page_q == PageW'(i)) && count_mem[i] != 9'd0) f_used = f_used + 1'b1;
    end
  end
  `CT_ASSERT(HeldIsUsed_A, held_q == f_used)
  `CT_ASSERT(NoneIsLost_A, held_q + tops_q == fresh_q && most_q >= held_q)
