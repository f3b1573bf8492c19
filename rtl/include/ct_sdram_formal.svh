// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_sdram (tb/formal/ct_sdram.proof), included at its end.

  // The queues and the commands are cut away: what is taken for granted of ct_fifo is that what it offers stays until it is taken, that its
  // room stays until it is used, and that it holds no more than its depth; of ct_sdram_seq that it sends only a beat it has.
  logic            f_ar_q, f_aw_q, f_b_q;  // on offer, and room, in the last cycle, and not used
  logic [ReqW-1:0] f_ar_req_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_ar_q <= 1'b0;
      f_aw_q <= 1'b0;
      f_b_q  <= 1'b0;
    end else begin
      f_ar_q <= ar_valid && !ar_take;
      f_aw_q <= aw_valid && !aw_take;
      f_b_q  <= b_room && !b_put;
    end
  end
  always_ff @(posedge clk_i) f_ar_req_q <= ar_req;
  `CT_ASSUME(OfferStays_M, (!f_ar_q || (ar_valid && ar_req == f_ar_req_q)) && (!f_aw_q || aw_valid))
  `CT_ASSUME(RoomStays_M, !f_b_q || b_room)
  `CT_ASSUME(DepthOfFifo_M, (!s_axi_rvalid_o || room_q < CountW'(Places)) && (!s_axi_wready_o || whole_q < CountW'(Places)))
  `CT_ASSUME(SendsABeat_M, !go || run_q)

  // Who has been overtaken can still go, and its turn is next: the burst under way, if any, is the other's.
  `CT_ASSERT(RoomInRange_A, room_q <= CountW'(Places) && whole_q <= CountW'(Places))
  `CT_ASSERT(ReadIsNext_A, !rd_over_q || (rd_can && !turn_q && (!run_q || write_q)))
  `CT_ASSERT(WriteIsNext_A, !wr_over_q || (wr_can && turn_q && (!run_q || !write_q)))
  `CT_ASSERT(RoomOfAnswer_A, !(run_q && write_q) || b_room)
