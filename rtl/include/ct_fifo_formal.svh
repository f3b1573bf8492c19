// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_fifo (tb/formal/ct_fifo.proof), included at its end.

  // Words are numbered as they go in and as they come out, modulo 256. Any one number is followed: its word lies where its distance
  // from the oldest says, and comes out as the word of that number.
  (* anyconst *) logic [7:0] f_pick;
  logic [7:0]       f_in_q, f_out_q, f_ahead;
  logic [CountW:0]  f_place;
  logic [Width-1:0] f_word_q, f_data_q;
  logic             f_kept_q;  // an offer was refused in the last cycle
  assign f_ahead = f_pick - f_out_q;
  assign f_place = (CountW + 1)'(rptr_q) + (CountW + 1)'(f_ahead);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_in_q   <= '0;
      f_out_q  <= '0;
      f_kept_q <= 1'b0;
    end else begin
      f_in_q   <= f_in_q + 8'(push);
      f_out_q  <= f_out_q + 8'(pop);
      f_kept_q <= valid_o && !ready_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (push && f_in_q == f_pick) f_word_q <= data_i;
    f_data_q <= data_o;
  end
  `CT_ASSERT(Numbered_A, 8'(f_in_q - f_out_q) == 8'(count_q))
  `CT_ASSERT(LiesThere_A, f_ahead >= 8'(count_q) ||
             mem[PtrW'(f_place >= (CountW + 1)'(Words) ? f_place - (CountW + 1)'(Words) : f_place)] == f_word_q)
  `CT_ASSERT(InOrder_A, !pop || f_out_q != f_pick || data_o == f_word_q)
  `CT_ASSERT(NothingFromNothing_A, !pop || f_in_q != f_out_q)
  `CT_ASSERT(KeepsOffer_A, !f_kept_q || (valid_o && data_o == f_data_q))
