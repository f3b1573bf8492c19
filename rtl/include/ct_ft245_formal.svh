// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_ft245 (tb/formal/ct_ft245.proof), included at its end. ct_fifo keeps and orders its words by a proof of its own; here
// is what lies between the FIFOs and the pins.

  // The pins as they were before the last edge.
  logic             f_oe_q, f_drive_q, f_got_q, f_empty_q;
  logic [WordW-1:0] f_in_q;
  // The words that came and that the chip has not taken, by the pins alone: a queue that is shifted when it takes one.
  logic [WordW-1:0] f_word_d [0:2], f_word_q [0:2];
  logic [1:0]       f_held_d, f_held_q;
  logic             f_goes;
  assign f_goes = !wr_n_o && !txe_n_i;
  always_comb begin
    f_held_d    = f_held_q - 2'(f_goes);
    f_word_d[0] = f_goes ? f_word_q[1] : f_word_q[0];
    f_word_d[1] = f_goes ? f_word_q[2] : f_word_q[1];
    f_word_d[2] = f_word_q[2];
    if (tx_valid_i && tx_ready_o) begin
      case (f_held_d)
        2'd0:    f_word_d[0] = {tx_keep_i, tx_data_i};
        2'd1:    f_word_d[1] = {tx_keep_i, tx_data_i};
        default: f_word_d[2] = {tx_keep_i, tx_data_i};
      endcase
    end
    f_held_d = f_held_d + 2'(tx_valid_i && tx_ready_o);
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_oe_q    <= 1'b0;
      f_drive_q <= 1'b0;
      f_empty_q <= 1'b0;
      f_got_q   <= 1'b0;
      f_held_q  <= '0;
    end else begin
      f_oe_q    <= !oe_n_q;
      f_drive_q <= !let_go_q;
      f_empty_q <= (f_held_q == 2'd0);
      f_got_q   <= rd_q && !rxf_n_i;
      f_held_q  <= f_held_d;
    end
  end
  always_ff @(posedge clk_i) begin
    f_in_q <= {be_i, data_i};
    f_word_q[0] <= f_word_d[0];
    f_word_q[1] <= f_word_d[1];
    f_word_q[2] <= f_word_d[2];
  end

  `CT_ASSERT(StateFitsPins_A, oe_n_q != (state_q == Open || state_q == Read) && let_go_q != (state_q == Write) && (!rd_q || state_q == Read))
  `CT_ASSERT(RoomOnTheWay_A, (!rd_q || held <= 4'd5) && (!came_q || held <= 4'd6))
  `CT_ASSERT(EveryWordRead_A, in_valid == f_got_q && (!in_valid || in_q == f_in_q))
  `CT_ASSERT(EveryWordWritten_A, left == f_held_q && (!f_goes || (f_held_q != 2'd0 && data_o == f_word_q[0][Width-1:0] && be_o == f_word_q[0][WordW-1:Width])))
  `CT_ASSERT(WindowFits_A, (!taken_q || count_q != 2'd0) && (left == 2'd0 || now == f_word_q[0]) && (left < 2'd2 || next == f_word_q[1]) &&
                           (left != 2'd3 || taken_q || win2_q[WordW-1:0] == f_word_q[2]))
  `CT_ASSERT(GapBetweenSides_A, (oe_n_q || !f_drive_q) && (let_go_q || !f_oe_q) && (!rd_q || f_oe_q))
  `CT_ASSERT(FlushAfterWord_A, (siwu_n_q || (!flush_q && f_empty_q)) && (linger_q == '0 || count_q == 2'd0))
