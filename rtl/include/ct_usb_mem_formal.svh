// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_usb_mem (tb/formal/ct_usb_mem.proof), included at its end.

  // Channels as they were before the last edge, if they were refused; beats of this burst so far.
  logic         f_aw_q, f_w_q, f_ar_q;
  logic [35:0]  f_addr_q;
  logic [3:0]   f_len_q;
  logic [144:0] f_beat_q;
  logic [4:0]   f_beats_q;
  logic         f_w_done;
  assign f_w_done = m_axi_wvalid_o && m_axi_wready_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_aw_q    <= 1'b0;
      f_w_q     <= 1'b0;
      f_ar_q    <= 1'b0;
      f_beats_q <= '0;
    end else begin
      f_aw_q    <= m_axi_awvalid_o && !m_axi_awready_i;
      f_w_q     <= m_axi_wvalid_o && !m_axi_wready_i;
      f_ar_q    <= m_axi_arvalid_o && !m_axi_arready_i;
      f_beats_q <= start_i ? '0 : f_beats_q + 5'(f_w_done);
    end
  end
  always_ff @(posedge clk_i) begin
    f_addr_q <= m_axi_awaddr_o;
    f_len_q  <= m_axi_awlen_o[3:0];
    f_beat_q <= {m_axi_wlast_o, m_axi_wstrb_o, m_axi_wdata_o};
  end

  // A burst lies in one half of a block of 256 bytes.
  `CT_ASSUME(WithinHalf_M, !start_i || (first_i <= last_i && first_i[7] == last_i[7]))

  `CT_ASSERT(KeepsOffers_A, (!f_aw_q || m_axi_awvalid_o) && (!f_w_q || m_axi_wvalid_o) && (!f_ar_q || m_axi_arvalid_o))
  `CT_ASSERT(OffersStay_A, (!(f_aw_q || f_ar_q) || (m_axi_awaddr_o == f_addr_q && m_axi_awlen_o[3:0] == f_len_q)) &&
                           (!f_w_q || {m_axi_wlast_o, m_axi_wstrb_o, m_axi_wdata_o} == f_beat_q))
  // Beats offered and to come: the burst has len + 1 of them.
  `CT_ASSERT(Numbered_A, state_q != Write || (more_q ? f_beats_q + 5'(w_q) + 5'(4'(stop_q - index_q)) == {1'b0, len_q} :
                         f_beats_q + 5'(w_q) == {1'b0, len_q} + 5'd1))
  `CT_ASSERT(InBlock_A, state_q == Idle || ({1'b0, addr_q[2:0]} + len_q <= 4'd7 && stop_q == 4'(addr_q[3:0] + len_q)))
  `CT_ASSERT(IndexInBurst_A, state_q != Write || !more_q || (index_q >= addr_q[3:0] && index_q <= stop_q))
  `CT_ASSERT(LastIsLast_A, !w_q || wlast_q == (f_beats_q == {1'b0, len_q}))
  `CT_ASSERT(LastEndsMore_A, !w_q || wlast_q == !more_q)
  `CT_ASSERT(OneDirection_A, (!aw_q && !w_q && !more_q) || state_q == Write)
  `CT_ASSERT(ReadOnlyReads_A, !ar_q || state_q == Read)
  `CT_ASSERT(DoneWithAnswer_A, !done_o || (m_axi_bvalid_i && m_axi_bready_o) || (m_axi_rvalid_i && m_axi_rready_o && m_axi_rlast_i))
  `CT_ASSERT(AnswerBehindBeats_A, !m_axi_bready_o || f_beats_q == {1'b0, len_q} + 5'd1)
