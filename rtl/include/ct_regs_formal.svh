// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_regs (tb/formal/ct_regs.proof), included at its end.

  // AXI4-Lite as the master sees it: offers stay as they are until they are taken, and there is one answer to each request.
  logic        f_b_kept_q, f_r_kept_q;
  logic [33:0] f_r_q;
  logic [1:0]  f_bresp_q;
  logic [2:0]  f_aw_q, f_w_q, f_ar_q;  // requests taken and not answered
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_b_kept_q <= 1'b0;
      f_r_kept_q <= 1'b0;
      f_aw_q     <= '0;
      f_w_q      <= '0;
      f_ar_q     <= '0;
    end else begin
      f_b_kept_q <= s_axil_bvalid_o && !s_axil_bready_i;
      f_r_kept_q <= s_axil_rvalid_o && !s_axil_rready_i;
      f_aw_q     <= f_aw_q + 3'(s_axil_awvalid_i && s_axil_awready_o) - 3'(s_axil_bvalid_o && s_axil_bready_i);
      f_w_q      <= f_w_q + 3'(s_axil_wvalid_i && s_axil_wready_o) - 3'(s_axil_bvalid_o && s_axil_bready_i);
      f_ar_q     <= f_ar_q + 3'(s_axil_arvalid_i && s_axil_arready_o) - 3'(s_axil_rvalid_o && s_axil_rready_i);
    end
  end
  always_ff @(posedge clk_i) begin
    f_r_q     <= {s_axil_rdata_o, s_axil_rresp_o};
    f_bresp_q <= s_axil_bresp_o;
  end
  // The counters' answer to the read is proven to come; here it comes only when it was asked for.
  `CT_ASSUME(CountWhenAsked_M, !count_vld || rd_q == RdCounter)
  `CT_ASSERT(BKept_A, !f_b_kept_q || (s_axil_bvalid_o && s_axil_bresp_o == f_bresp_q))
  `CT_ASSERT(RKept_A, !f_r_kept_q || (s_axil_rvalid_o && f_r_q == {s_axil_rdata_o, s_axil_rresp_o}))
  // What was taken lies in front, or its answer is on offer (a skid that is full refuses).
  `CT_ASSERT(OneWriteAnswer_A, f_aw_q == 3'(s_axil_bvalid_o) + 3'(aw_valid) + 3'(!s_axil_awready_o) &&
                               f_w_q == 3'(s_axil_bvalid_o) + 3'(w_valid) + 3'(!s_axil_wready_o))
  `CT_ASSERT(OneReadAnswer_A, f_ar_q == 3'(rd_q != RdIdle) && (!s_axil_rvalid_o || f_ar_q == 3'd1))
  `CT_ASSERT(TogetherTaken_A, !wr || (aw_valid && w_valid))
