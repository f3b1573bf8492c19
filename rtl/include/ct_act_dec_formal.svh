// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_act_dec (tb/formal/ct_act_dec.proof), included at its end. The window and the values may be any.

  // What is here of a group does not end before its end, and less of it is not wanted later.
  `CT_ASSERT(PhaseRuns_A, phase_q <= 5'd16 && (tile_q <= tiles_q || (phase_q == 5'd0 && tile_q == 2'd0)))
  `CT_ASSERT(WidthFits_A, phase_q == 5'd0 || head_q[36:33] <= 4'd8)
  `CT_ASSERT(TakesWhatIsHere_A, !take || ({1'b0, len} <= have && len <= 8'd168))
  `CT_ASSERT(GroupEndsRight_A, !over || (ended && !wrong && have - {1'b0, len} < 9'd128))

  // Blocks of the group that have been taken: as many as its tiles have, the last one at its end.
  logic [6:0] f_blocks_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                       f_blocks_q <= '0;
    else if (flush_i || over)          f_blocks_q <= '0;
    else if (take && phase_q != 5'd0)  f_blocks_q <= f_blocks_q + 7'd1;
  end
  `CT_ASSERT(BlocksCounted_A, f_blocks_q == {1'b0, tile_q, 4'd0} + (phase_q == 5'd0 ? 7'd0 : 7'(phase_q) - 7'd1))
  `CT_ASSERT(AllBlocks_A, !over || 7'(f_blocks_q + 7'd1) == {1'b0, tiles_q, 4'd0} + 7'd16)

  // An error stays until a flush, and nothing moves.
  logic f_err_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_err_q <= 1'b0;
    else         f_err_q <= err_o && !flush_i;
  end
  `CT_ASSERT(ErrorStays_A, !f_err_q || err_o)
  `CT_ASSERT(QuietAfterError_A, !err_o || (!valid_o && !ready_o && !take))
  `CT_ASSERT(StopsBeforeError_A, !err_o || stop_q)
  `CT_ASSERT(StoppedTakesNothing_A, !stop_q || (!ready_o && !take))
  // Nothing that is wrong is waited for: with the end or three units here a piece is taken, or is an error, or waits for the words in front of it.
  `CT_ASSUME(EnoughWhenFull_M, !full || ended || have >= 9'd257)
  `CT_ASSERT(DecidesWhenFull_A, !(full || ended) || take || bad || stop_q || !unpack_ready)
