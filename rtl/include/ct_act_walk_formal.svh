// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_act_walk (tb/formal/ct_act_walk.proof), included at its end.

  `CT_ASSERT(StepFits_A, !act_q || (groups_q != 3'd0 && {1'b0, first_q} + groups_q <= 3'd4 && i1_q < groups_q))

  // Steps of a command: as many as it says, each with as many groups, each step with its semaphores once.
  logic [11:0] f_steps_q, f_opened_q;
  logic [11:0] f_n2_q;
  logic        f_opens;
  assign f_opens = open || (go && !open_q && need_q == 16'd0);
  always_ff @(posedge clk_i) begin
    if (load) begin
      f_n2_q     <= n2_i;
      f_steps_q  <= 12'd0;
      f_opened_q <= 12'd0;
    end else begin
      f_steps_q  <= f_steps_q + 12'(go && step_end);
      f_opened_q <= f_opened_q + 12'(f_opens && !(open_q));
    end
  end
  `CT_ASSERT(StepsCounted_A, !act_q || (f_steps_q + left_q + 12'd1 == f_n2_q && left_q < f_n2_q))
  `CT_ASSERT(OpenOnce_A, !act_q || f_opened_q == f_steps_q + 12'(open_q))
  `CT_ASSERT(OpensFirst_A, !go || open_q || need_q == 16'd0)
  `CT_ASSERT(OpenMeansStep_A, !act_q || open_q || i1_q == 3'd0)

  // A request stays until it is taken, or the walk ends.
  logic        f_kept_q;
  logic [31:0] f_index_q;
  logic [19:0] f_spm_q;
  logic [13:0] f_rest_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_kept_q <= 1'b0;
    else         f_kept_q <= valid_o && !ready_i;
  end
  always_ff @(posedge clk_i) {f_index_q, f_spm_q, f_rest_q} <= {index_o, spm_o, begin_o, end_o, entry_o, sigs_o};
  `CT_ASSERT(OfferKept_A, !f_kept_q || halt_i || flush_i ||
                          (valid_o && {f_index_q, f_spm_q, f_rest_q} == {index_o, spm_o, begin_o, end_o, entry_o, sigs_o}))
