// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu_array (tb/formal/ct_mxu_array.proof), included at its end.

  // What ct_mxu_head keeps to. The row behind the head becomes the head when there is none, or when it is issued; and is the head until then.
  logic [1:0]  f_head_q, f_goes, f_moves_q;  // there is a head; it is issued
  logic [15:0] f_acc_q;
  assign f_goes = {iss_valid_i && iss_ctx_i, iss_valid_i && !iss_ctx_i};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_head_q <= 2'b00;
    else         f_head_q <= (f_head_q & ~f_goes) | move_i;
  end
  always_ff @(posedge clk_i) begin
    for (int c = 0; c < 2; c++) f_acc_q[8*c +: 8] <= move_i[c] ? next_acc_i[8*c +: 8] : head_acc_i[8*c +: 8];
  end
  `CT_ASSUME(OneHead_M, (f_goes & ~f_head_q) == 2'b00 && (move_i & f_head_q & ~f_goes) == 2'b00)
  `CT_ASSUME(HeadStays_M, (!f_head_q[0] || head_acc_i[7:0] == f_acc_q[7:0]) && (!f_head_q[1] || head_acc_i[15:8] == f_acc_q[15:8]))
  `CT_ASSUME(IssuesHead_M, !iss_valid_i || (iss_acc_i == (iss_ctx_i ? head_acc_i[15:8] : head_acc_i[7:0]) && !more))
  // Rows on their way to the sum of the head, by comparison.
  logic [2*AddStage-1:0] f_meets;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      for (int i = 0; i < AddStage; i++)
        f_meets[AddStage*c + i] = vld_q[i] && beat_q[W*i+AddrB +: 9] == {c[0], head_acc_i[8*c +: 8]};
    end
  end
  `CT_ASSERT(Followed_A, (!f_head_q[0] || g_hazard[0].meets_q == f_meets[AddStage-2:0]) &&
                         (!f_head_q[1] || g_hazard[1].meets_q == f_meets[2*AddStage-2:AddStage]))
  `CT_ASSERT(HazardKnown_A, (!f_head_q[0] || hazard_o[0] == (f_meets[AddStage-1:0] != '0)) &&
                            (!f_head_q[1] || hazard_o[1] == (f_meets[2*AddStage-1:AddStage] != '0)))
