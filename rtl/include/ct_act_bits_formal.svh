// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_act_bits (tb/formal/ct_act_bits.proof), included at its end.

  // Units are numbered as they come, modulo 16, and so are those that have gone. Any bit of any one is followed.
  (* anyconst *) logic [3:0] f_pick;
  (* anyconst *) logic [6:0] f_bit;
  logic [3:0] f_in_q, f_out_q, f_ahead;
  logic       f_value_q, f_last_q;   // the bit; its unit is the last one of a group
  logic       f_here;                // it is here and has not been taken
  logic [8:0] f_place;               // in the window
  assign f_ahead = f_pick - f_out_q;
  assign f_here  = f_ahead < 4'(count_q) && {f_ahead[1:0], f_bit} >= {2'd0, at_q};
  assign f_place = {f_ahead[1:0], f_bit} - {2'd0, at_q};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_in_q  <= '0;
      f_out_q <= '0;
    end else if (flush_i) begin
      f_in_q  <= '0;
      f_out_q <= '0;
    end else begin
      f_in_q  <= f_in_q + 4'(push);
      f_out_q <= f_out_q + 4'(gone);
    end
  end
  always_ff @(posedge clk_i) begin
    if (push && f_in_q == f_pick) {f_value_q, f_last_q} <= {data_i[f_bit], last_i};
  end
  `CT_ASSERT(Numbered_A, 4'(f_in_q - f_out_q) == 4'(count_q))
  `CT_ASSERT(LiesThere_A, f_ahead >= 4'(count_q) || (units_q[{f_ahead[1:0], f_bit}] == f_value_q && last_q[f_ahead[1:0]] == f_last_q))
  `CT_ASSERT(OnShow_A, !f_here || f_place >= 9'd152 || bits_o[f_place[7:0]] == f_value_q)
  // Of the units that are here, those up to the first last one are the group's.
  `CT_ASSERT(OwnUnits_A, f_ahead >= 4'(count_q) || (f_ahead < 4'(own)) == ((f_ahead < 4'd1 || !last_q[0]) && (f_ahead < 4'd2 || !last_q[1])))
  `CT_ASSERT(HaveIsOwn_A, !f_here || (f_place < have_o) == (f_ahead < 4'(own) && !(ended_o && f_ahead + 4'd1 == 4'(own) && f_bit >= 7'd120)))
  // What is taken is the front of the window, and nothing else; a group that is over goes up to its last unit.
  logic       f_was_q, f_take_q, f_next_q;
  logic [8:0] f_place_q;
  logic [7:0] f_len_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_was_q <= 1'b0;
    else         f_was_q <= f_here && !flush_i;
  end
  always_ff @(posedge clk_i) begin
    f_place_q <= f_place;
    f_len_q   <= len_i;
    f_take_q  <= take_i && !next_i;
    f_next_q  <= take_i && next_i;
  end
  `CT_ASSERT(TakesTheFront_A, !f_was_q || f_next_q || (f_here == !(f_take_q && f_place_q < 9'(f_len_q)) &&
                              (!f_here || f_place == (f_take_q ? f_place_q - 9'(f_len_q) : f_place_q))))
