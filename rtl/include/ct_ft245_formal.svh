// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_ft245 (tb/formal/ct_ft245.proof), included at its end. ct_fifo keeps and orders its words by a proof of its own; here
// is what lies between the FIFOs and the pins.

  // The pins as they were before the last edge.
  logic             f_oe_q, f_drive_q, f_got_q, f_kept_q;
  logic [WordW-1:0] f_in_q, f_popped_q;
  logic [7:0]       f_pops_q, f_taken_q;  // modulo 256
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_oe_q    <= 1'b0;
      f_drive_q <= 1'b0;
      f_got_q   <= 1'b0;
      f_kept_q  <= 1'b0;
      f_pops_q  <= '0;
      f_taken_q <= '0;
    end else begin
      f_oe_q    <= oe_q;
      f_drive_q <= drive_q;
      f_got_q   <= rd_q && !rxf_n_i;
      f_kept_q  <= full_q && !taken;
      f_pops_q  <= f_pops_q + 8'(load);
      f_taken_q <= f_taken_q + 8'(!wr_n_o && !txe_n_i);
    end
  end
  always_ff @(posedge clk_i) begin
    f_in_q <= {be_i, data_i};
    if (load) f_popped_q <= out_word;
  end

  `CT_ASSERT(StateFitsPins_A, oe_q == (state_q == Open || state_q == Read) && drive_q == (state_q == Write) && (!rd_q || state_q == Read))
  `CT_ASSERT(RoomOnTheWay_A, (!rd_q || held <= 4'd5) && (!came_q || held <= 4'd6))
  `CT_ASSERT(EveryWordRead_A, in_valid == f_got_q && (!in_valid || in_q == f_in_q))
  `CT_ASSERT(EveryWordWritten_A, 8'(f_pops_q - f_taken_q) == 8'(full_q) && (!full_q || out_q == f_popped_q) && (!f_kept_q || full_q))
  `CT_ASSERT(GapBetweenSides_A, !(oe_q && f_drive_q) && !(drive_q && f_oe_q) && (!rd_q || f_oe_q))
  `CT_ASSERT(FlushAfterWord_A, !siwu_q || !flush_q || full_q)
