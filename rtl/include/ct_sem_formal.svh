// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_sem (tb/formal/ct_sem.proof), included at its end.

  // Each semaphore by itself, as a plain sum of what the units give and take, which stays where it is rather than leave its range.
  function automatic logic [3:0] f_count6(input logic [5:0] x);
    f_count6 = 4'(x[0]) + 4'(x[1]) + 4'(x[2]) + 4'(x[3]) + 4'(x[4]) + 4'(x[5]);
  endfunction
  logic [8*NumSems-1:0]  f_cnt_q;
  logic [4*NumSems-1:0]  f_change;
  logic [11*NumSems-1:0] f_sum;
  logic [NumSems-1:0]    f_wrong, f_wrong_q, f_told_q;
  always_comb begin
    for (int s = 0; s < NumSems; s++) begin
      f_change[4*s +: 4] = f_count6({inc_i[80+s], inc_i[64+s], inc_i[48+s], inc_i[32+s], inc_i[16+s], inc_i[s]})
                         - f_count6({dec_i[80+s], dec_i[64+s], dec_i[48+s], dec_i[32+s], dec_i[16+s], dec_i[s]});
      f_sum[11*s +: 11] = 11'(f_cnt_q[8*s +: 8]) + {{7{f_change[4*s+3]}}, f_change[4*s +: 4]};
      f_wrong[s] = !clear_i && f_sum[11*s+8 +: 3] != '0;  // below 0 in two's complement, or above 255
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_cnt_q   <= '0;
      f_wrong_q <= '0;
      f_told_q  <= '0;
    end else begin
      f_wrong_q <= f_wrong;
      f_told_q  <= clear_i ? '0 : f_wrong_q;
      for (int s = 0; s < NumSems; s++) begin
        if (clear_i)          f_cnt_q[8*s +: 8] <= '0;
        else if (!f_wrong[s]) f_cnt_q[8*s +: 8] <= f_sum[11*s +: 8];
      end
    end
  end
  `CT_ASSERT(CountsAll_A, cnt_q == f_cnt_q)
  `CT_ASSERT(WrongSeen_A, wrong_q == f_wrong_q)
  `CT_ASSERT(ErrorsSeen_A, err_o == (f_told_q != '0))
  `CT_ASSERT(ErrorIsOne_A, !err_o || (f_told_q[err_num_o] && (f_told_q & ~(16'hffff << err_num_o)) == '0))
