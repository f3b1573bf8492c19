// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_ld (tb/formal/ct_dma_ld.proof), included at its end. The walkers are proven by themselves and cut away here.

  // Where a word of any run goes, of either context: its place is counted here by a register of its own.
  (* anyconst *) logic f_ctx;
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
