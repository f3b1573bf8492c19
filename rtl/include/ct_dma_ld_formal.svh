// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_ld (tb/formal/ct_dma_ld.proof), included at its end. The walkers are proven by themselves and cut away here.

  // What ct_dma_rd keeps to (EndToOwner_A, EndOnce_A): an end that is to stay does, but for a flush.
  logic [1:0]        f_stay_q;
  logic [2*EndW-1:0] f_tag_q;
  logic [1:0]        f_end_kept;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_stay_q <= 2'b00;
    else         f_stay_q <= end_i & end_stay_o;
  end
  always_ff @(posedge clk_i) f_tag_q <= end_tag_i;
  always_comb begin
    for (int c = 0; c < 2; c++) f_end_kept[c] = !f_stay_q[c] || drop[c] || (end_i[c] && end_tag_i[EndW*c +: EndW] == f_tag_q[EndW*c +: EndW]);
  end
  `CT_ASSUME(EndKept_M, f_end_kept == 2'b11)

  // The signals of either context are those of the end that is told.
  (* anyconst *) logic f_ctx;
  logic        f_end, f_told_q, f_twice, f_again_q;
  logic [15:0] f_want_inc, f_inc_q;
  logic [9:0]  f_sigs;
  assign f_sigs  = f_ctx ? end_tag_i[EndW +: EndW] : end_tag_i[0 +: EndW];
  assign f_end   = end_i[f_ctx] && !drop[f_ctx];
  assign f_twice = f_sigs[9] && f_sigs[4] && f_sigs[8:5] == f_sigs[3:0];
  always_comb begin
    for (int s = 0; s < 16; s++) f_want_inc[s] = f_sigs[4:0] == {1'b1, 4'(s)} || f_sigs[9:5] == {1'b1, 4'(s)};
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_told_q  <= 1'b0;
      f_again_q <= 1'b0;
    end else begin
      f_told_q  <= f_end;
      f_again_q <= f_end && end_stay_o[f_ctx];  // this end has been told before
    end
  end
  always_ff @(posedge clk_i) f_inc_q <= f_want_inc;
  `CT_ASSERT(OwnerHears_A, !f_told_q || (f_ctx ? inc_q[31:16] : inc_q[15:0]) == f_inc_q)
  `CT_ASSERT(NothingElseHeard_A, f_told_q || (f_ctx ? inc_q[31:16] : inc_q[15:0]) == 16'd0)
  `CT_ASSERT(SecondOfTwo_A, second_q[f_ctx] == f_again_q)
  `CT_ASSERT(HeardOnce_A, !f_end || end_stay_o[f_ctx] == (f_twice && !f_again_q))

  // Where a word of any run goes: its place is counted here by a register of its own.
  logic [SpmW-1:0] f_at_q, f_to;
  logic            f_mine, f_w_q;
  logic [SpmW-1:0] f_w_at_q;
  assign f_mine = r_beat && rid == f_ctx;
  assign f_to   = r_start ? m_spm : f_at_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_w_q <= 1'b0;
    else         f_w_q <= f_mine && !r_head;
  end
  always_ff @(posedge clk_i) begin
    if (f_mine) begin
      f_at_q   <= r_head ? m_spm : f_to + SpmW'(m_s0);
      f_w_at_q <= f_to;
    end
  end
  logic f_seen_q;  // the first beat of a run has come
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                 f_seen_q <= 1'b0;
    else if (f_mine && r_start)  f_seen_q <= 1'b1;
  end
  logic f_w_seen_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_w_seen_q <= 1'b0;
    else         f_w_seen_q <= f_seen_q || (f_mine && r_start);
  end
  `CT_ASSERT(NextKept_A, !f_seen_q || (f_ctx ? at_q[SpmW +: SpmW] : at_q[0 +: SpmW]) == f_at_q)
  `CT_ASSERT(WordPlaced_A, !f_w_q || !f_w_seen_q || (w_v_q && w_ctx_q == f_ctx && w_rel_q == f_w_at_q))
