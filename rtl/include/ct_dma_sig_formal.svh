// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_sig (tb/formal/ct_dma_sig.proof), included at its end.

  // What ct_dma_rd and ct_dma_wr keep to (EndToOwner_A, EndOnce_A): an end that is to stay does, but for a flush.
  logic [1:0]  f_stay_q, f_end_kept;
  logic [19:0] f_tag_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_stay_q <= 2'b00;
    else         f_stay_q <= end_i & stay_o;
  end
  always_ff @(posedge clk_i) f_tag_q <= end_tag_i;
  always_comb begin
    for (int c = 0; c < 2; c++) f_end_kept[c] = !f_stay_q[c] || mute_i[c] || (end_i[c] && end_tag_i[10*c +: 10] == f_tag_q[10*c +: 10]);
  end
  `CT_ASSUME(EndKept_M, f_end_kept == 2'b11)

  // The signals of either context are those of the end that is told.
  (* anyconst *) logic f_ctx;
  logic        f_end, f_told_q, f_twice, f_again_q;
  logic [15:0] f_want_inc, f_inc_q, f_inc;
  logic [9:0]  f_sigs;
  assign f_sigs  = f_ctx ? end_tag_i[19:10] : end_tag_i[9:0];
  assign f_inc   = f_ctx ? inc_o[31:16] : inc_o[15:0];
  assign f_end   = end_i[f_ctx] && !mute_i[f_ctx];
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
      f_again_q <= f_end && stay_o[f_ctx];  // this end has been told before
    end
  end
  always_ff @(posedge clk_i) f_inc_q <= f_want_inc;
  `CT_ASSERT(OwnerHears_A, !f_told_q || f_inc == f_inc_q)
  `CT_ASSERT(NothingElseHeard_A, f_told_q || f_inc == 16'd0)
  `CT_ASSERT(SecondOfTwo_A, second_q[f_ctx] == f_again_q)
  `CT_ASSERT(HeardOnce_A, !f_end || stay_o[f_ctx] == (f_twice && !f_again_q))
