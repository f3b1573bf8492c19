// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu_head (tb/formal/ct_mxu_head.proof), included at its end.

  // As in ct_skid: rows are numbered modulo 16 on both sides, and any one number is followed. With a flush they begin anew.
  (* anyconst *) logic [3:0] f_pick;
  logic [3:0]       f_in_q, f_out_q;
  logic [Width-1:0] f_row_q, f_head_q;
  logic             f_ok_q;     // the row that is followed had its Wait2
  logic             f_kept_q, f_goes_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_in_q   <= '0;
      f_out_q  <= '0;
      f_kept_q <= 1'b0;
      f_goes_q <= 1'b0;
    end else begin
      f_in_q   <= flush_i ? 4'd0 : f_in_q + 4'(valid_i && ready_o);
      f_out_q  <= flush_i ? 4'd0 : f_out_q + 4'(take_i);
      f_kept_q <= head_vld_o && !take_i && !flush_i;
      f_goes_q <= next_vld_o && next_ok_i && !halt_i && !flush_i && (!head_vld_o || take_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o && f_in_q == f_pick) {f_row_q, f_ok_q} <= {data_i, 1'b0};
    else if (move_o && f_pick == f_out_q + 4'(head_vld_q)) f_ok_q <= next_ok_i;
    f_head_q <= head_o;
  end
  `CT_ASSERT(Numbered_A, 4'(f_in_q - f_out_q) == 4'(head_vld_q) + 4'(next_vld_q))
  `CT_ASSERT(LiesThere_A, (!head_vld_q || f_pick != f_out_q || (head_q == f_row_q && f_ok_q)) &&
                          (!next_vld_q || f_pick != 4'(f_out_q + 4'(head_vld_q)) || next_q == f_row_q))
  `CT_ASSERT(InOrder_A, !take_i || f_out_q != f_pick || (head_o == f_row_q && f_in_q != f_out_q))
  `CT_ASSERT(HasWait2_A, !head_vld_o || f_out_q != f_pick || f_ok_q)
  `CT_ASSERT(KeepsHead_A, !f_kept_q || (head_vld_o && head_o == f_head_q))
  `CT_ASSERT(FollowsAtOnce_A, !f_goes_q || head_vld_o)
  `CT_ASSERT(HaltStops_A, !(halt_i || flush_i) || !move_o)
