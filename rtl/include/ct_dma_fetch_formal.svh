// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_fetch (tb/formal/ct_dma_fetch.proof), included at its end.

  // The request's length, beats of it that are cut, the end of the last burst.
  logic [10:0] f_len_q, f_cut_q;
  logic [31:0] f_end_q;
  logic        f_act_q, f_flush_q, f_kept_q;
  logic [63:0] f_checked_q;  // the window when the burst on offer was checked
  logic [37:0] f_burst_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_act_q   <= 1'b0;
      f_flush_q <= 1'b0;
      f_kept_q  <= 1'b0;
    end else begin
      f_act_q   <= act_q;
      f_flush_q <= drop;
      f_kept_q  <= rd_valid_o && !rd_ready_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (move) f_checked_q <= {base_i, limit_i};
    f_burst_q  <= {rd_addr_o, rd_beats_o, last_q};
    if (load) begin
      f_len_q <= req_len_i;
      f_cut_q <= '0;
      f_end_q <= req_addr_i;
    end else if (go) begin
      f_cut_q <= f_cut_q + 11'(beats);
      f_end_q <= piece_end[31:0];
    end
  end
  `CT_ASSERT(CutAndRest_A, !act_q || (f_cut_q + rem_q == f_len_q && rem_q != '0 && rem_q <= f_len_q && f_len_q <= 11'd1024 && addr_q == f_end_q))
  `CT_ASSERT(BurstOnOffer_A, !out_q || (rd_beats_o != '0 && rd_beats_o <= 5'd16 && 9'(rd_addr_o[7:0]) + 9'(rd_beats_o) <= 9'd256))
  `CT_ASSERT(BurstCut_A, !cut_q || (cut_beats_q != '0 && cut_beats_q <= 5'd16 && cut_end_q == {1'b0, cut_addr_q} + 33'(cut_beats_q) &&
                         9'(cut_addr_q[7:0]) + 9'(cut_beats_q) <= 9'd256))
  `CT_ASSERT(BurstInWindow_A, !out_q || (rd_addr_o >= f_checked_q[63:32] && {1'b0, rd_addr_o} + 33'(rd_beats_o) <= {1'b0, f_checked_q[31:0]}))
  `CT_ASSERT(OneOrTheOther_A, !(out_q && outside_q))
  `CT_ASSERT(RequestWhole_A, !f_act_q || act_q || f_flush_q || f_cut_q == f_len_q)
  `CT_ASSERT(KeepsOffer_A, !f_kept_q || flush_i || halt_i || drop_i || f_flush_q ||
                           (rd_valid_o && f_burst_q == {rd_addr_o, rd_beats_o, last_q}))

  // The answer: a beat of it, a cycle later, for each beat; the last is the last of the request's last burst. Nothing else is.
  logic f_beat_q, f_last_q, f_fault_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_beat_q  <= 1'b0;
      f_fault_q <= 1'b0;
    end else begin
      f_beat_q  <= beat_i;
      f_fault_q <= (fault_i && beat_soft) || seq_bad;
    end
  end
  always_ff @(posedge clk_i) f_last_q <= beat_end && beat_last_i;
  `CT_ASSERT(AnswerIsABeat_A, rvalid_o == (f_beat_q && !halt_i && !flush_i) && (!rvalid_o || rlast_o == f_last_q))
  `CT_ASSERT(SoftIsNoError_A, !(fault_i && beat_soft) || !err_o || outside_q)
  `CT_ASSERT(SoftIsTold_A, bad_o == f_fault_q)
