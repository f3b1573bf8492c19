// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_usb_reg (tb/formal/ct_usb_reg.proof), included at its end.

  // Offers as they were before the last edge, if they were refused.
  logic        f_aw_q, f_w_q, f_ar_q;
  logic [43:0] f_reg_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_aw_q <= 1'b0;
      f_w_q  <= 1'b0;
      f_ar_q <= 1'b0;
    end else begin
      f_aw_q <= aw_q && !m_axil_awready_i;
      f_w_q  <= w_q && !m_axil_wready_i;
      f_ar_q <= ar_q && !m_axil_arready_i;
    end
  end
  always_ff @(posedge clk_i) f_reg_q <= {m_axil_awaddr_o, m_axil_wdata_o};
  `CT_ASSERT(KeepsOffers_A, (!f_aw_q || aw_q) && (!f_w_q || w_q) && (!f_ar_q || ar_q))
  `CT_ASSERT(OffersStay_A, !(f_aw_q || f_w_q || f_ar_q) || {m_axil_awaddr_o, m_axil_wdata_o} == f_reg_q)
  `CT_ASSERT(OneAtATime_A, !(b_wait_q && r_wait_q) && (!(aw_q || w_q) || b_wait_q) && (!ar_q || r_wait_q))
  `CT_ASSERT(DoneOfBusy_A, !done_o || busy_o)
