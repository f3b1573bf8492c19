// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu_gather (tb/formal/ct_mxu_gather.proof), included at its end.

  // (There is no reset here: nothing is said of a buffer before its row 0 has been put.)
  (* keep, anyseq *) logic rst_ni;

  // Any row of any buffer, and any bound.
  (* anyconst *) logic       f_buf;
  (* anyconst *) logic [3:0] f_row;
  (* anyconst *) logic [7:0] f_most;
  logic       f_put, f_have_q, f_low_q;  // the row has been put since row 0 was; all since then were at most f_most
  logic [7:0] f_exp_q, f_top;
  assign f_put = put_i && put_buf_i == f_buf;
  assign f_top = f_buf ? top_o[15:8] : top_o[7:0];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_have_q <= 1'b0;
      f_low_q  <= 1'b0;
    end else if (f_put) begin
      f_have_q <= put_row_i == f_row || (f_have_q && put_row_i != 4'd0);
      f_low_q  <= put_exp_i <= f_most && (f_low_q || put_row_i == 4'd0);
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_put && put_row_i == f_row) f_exp_q <= put_exp_i;
  end
  `CT_ASSERT(Stored_A, !f_have_q || exps_q[{f_buf, f_row, 3'd0} +: 8] == f_exp_q)
  `CT_ASSERT(TopIsLargest_A, !f_have_q || f_top >= f_exp_q)
  `CT_ASSERT(TopIsOneOfThem_A, !f_low_q || f_top <= f_most)

  // Its shift, from the pick on: a cycle later, as it stands, as it was for the byte that comes out.
  logic       f_ok1_q, f_ok2_q, f_ok3_q, f_zero1_q, f_zero2_q, f_zero3_q;
  logic [7:0] f_below1_q, f_below2_q, f_below3_q, f_byte_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_ok1_q <= 1'b0;
      f_ok2_q <= 1'b0;
      f_ok3_q <= 1'b0;
    end else begin
      f_ok1_q <= pick_i && pick_buf_i == f_buf && f_have_q;
      if (picked_q) f_ok2_q <= f_ok1_q;
      f_ok3_q <= f_ok2_q;
    end
  end
  always_ff @(posedge clk_i) begin
    f_below1_q <= f_top - f_exp_q;
    f_zero1_q  <= f_exp_q == 8'd0;
    if (picked_q) {f_below2_q, f_zero2_q} <= {f_below1_q, f_zero1_q};
    {f_below3_q, f_zero3_q, f_byte_q} <= {f_below2_q, f_zero2_q, row_i[{f_row, 3'd0} +: 8]};
  end
  `CT_ASSERT(ShiftComes_A, !f_ok1_q || (picked_q && below_q[{f_row, 3'd0} +: 8] == f_below1_q && zero_q[f_row] == f_zero1_q))
  `CT_ASSERT(ShiftStands_A, !f_ok2_q || (gone_q[f_row] == (f_zero2_q || f_below2_q >= 8'd8) && (gone_q[f_row] || shift_q[3*f_row +: 3] == f_below2_q[2:0])))
  // The byte is the nearest multiple: twice what it is off by is at most the step and, if it is the step, the multiple is even.
  logic signed [17:0] f_off;
  logic [17:0]        f_twice, f_step;
  logic [7:0]         f_got;
  logic               f_nearest;
  assign f_got     = row_o[{f_row, 3'd0} +: 8];
  assign f_step    = 18'd1 << f_below3_q[2:0];
  assign f_off     = $signed({{10{f_byte_q[7]}}, f_byte_q}) - ($signed({{10{f_got[7]}}, f_got}) <<< f_below3_q[2:0]);
  assign f_twice   = {f_off[17] ? -f_off[16:0] : f_off[16:0], 1'b0};
  assign f_nearest = f_twice < f_step || (f_twice == f_step && !f_got[0]);
  `CT_ASSERT(Aligned_A, !f_ok3_q || (f_zero3_q || f_below3_q >= 8'd8 ? f_got == 8'd0 : f_nearest))
