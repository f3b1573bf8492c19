// SPDX-License-Identifier: Apache-2.0
//
// The proof of ct_async_fifo, included at the end of that module (ifdef FORMAL). The solver moves both clocks as it likes (clk2fflogic);
// after one reset of both sides there is none.
//
// Words are numbered modulo 256 on both sides, and any one number is followed.

  (* keep *) logic rst_ni;
  assign rst_ni = wrst_ni;
  always @(*) assume (wrst_ni == rrst_ni);

  (* anyconst *) logic [7:0] f_pick;
  logic [7:0]       f_in_q, f_out_q, f_ahead;
  logic [Width-1:0] f_word_q, f_data_q;
  logic             f_kept_q;
  logic [PtrW-1:0]  f_wgray_q, f_rgray_q;

  always_ff @(posedge wclk_i or negedge wlive) begin
    if (!wlive) begin
      f_in_q    <= '0;
      f_wgray_q <= '0;
    end else begin
      f_in_q    <= f_in_q + 8'(push);
      f_wgray_q <= wgray_q;
    end
  end
  always_ff @(posedge wclk_i) if (push && f_in_q == f_pick) f_word_q <= wdata_i;
  always_ff @(posedge rclk_i or negedge rlive) begin
    if (!rlive) begin
      f_out_q   <= '0;
      f_kept_q  <= 1'b0;
      f_rgray_q <= '0;
    end else begin
      f_out_q   <= f_out_q + 8'(pop);
      f_kept_q  <= rvalid_o && !rready_i;
      f_rgray_q <= rgray_q;
    end
  end
  always_ff @(posedge rclk_i) f_data_q <= rdata_o;
  assign f_ahead = f_pick - f_out_q;

  function automatic logic [PtrW-1:0] f_binary(input logic [PtrW-1:0] code);
    f_binary = code;
    for (int i = 1; i < PtrW; i++) f_binary = f_binary ^ (code >> i);
  endfunction

  // How far behind the pointer each stage of the other side is; it grows along the chain.
  logic [PtrW-1:0]   f_held;
  logic [ChainW-1:0] f_wlag, f_rlag;
  logic [Stages-1:0] f_wlag_grows, f_rlag_grows;
  assign f_held = wptr_q - rptr_q;
  for (genvar i = 0; i < Stages; i++) begin : g_lag
    assign f_wlag[PtrW*i+:PtrW] = wptr_q - f_binary(wseen_q[PtrW*i+:PtrW]);
    assign f_rlag[PtrW*i+:PtrW] = rptr_q - f_binary(rseen_q[PtrW*i+:PtrW]);
    if (i == 0) begin : g_first
      assign f_wlag_grows[i] = 1'b1;
      assign f_rlag_grows[i] = 1'b1;
    end else begin : g_next
      assign f_wlag_grows[i] = f_wlag[PtrW*i+:PtrW] >= f_wlag[PtrW*(i-1)+:PtrW];
      assign f_rlag_grows[i] = f_rlag[PtrW*i+:PtrW] >= f_rlag[PtrW*(i-1)+:PtrW];
    end
  end

  `CT_ASSERT(GrayOfPointer_A, wgray_q == gray(wptr_q) && rgray_q == gray(rptr_q))
  `CT_ASSERT(LiveInOrder_A, (wlive_q & (wlive_q + 1'b1)) == '0 && (rlive_q & (rlive_q + 1'b1)) == '0)
  `CT_ASSERT(LagsInOrder_A, &f_wlag_grows && &f_rlag_grows)
  `CT_ASSERT(WriterSeenLate_A, f_wlag[ChainW-1-:PtrW] <= f_held)
  `CT_ASSERT(ReaderSeenLate_A, (PtrW + 1)'(f_held) + (PtrW + 1)'(f_rlag[ChainW-1-:PtrW]) <= (PtrW + 1)'(Depth))
  `CT_ASSERT(NeverAboveDepth_A, f_held <= PtrW'(Depth))
  `CT_ASSERT(OneBitChanges_A, ((wgray_q ^ f_wgray_q) & ((wgray_q ^ f_wgray_q) - 1'b1)) == '0 &&
             ((rgray_q ^ f_rgray_q) & ((rgray_q ^ f_rgray_q) - 1'b1)) == '0)
  `CT_ASSERT(Numbered_A, 8'(f_in_q - f_out_q) == 8'(f_held) && PtrW'(f_in_q) == wptr_q)
  `CT_ASSERT(LiesThere_A, f_ahead >= 8'(f_held) || mem[f_pick[AddrW-1:0]] == f_word_q)
  `CT_ASSERT(InOrder_A, !pop || f_out_q != f_pick || rdata_o == f_word_q)
  `CT_ASSERT(NothingFromNothing_A, !pop || f_in_q != f_out_q)
  `CT_ASSERT(KeepsOffer_A, !f_kept_q || (rvalid_o && rdata_o == f_data_q))
