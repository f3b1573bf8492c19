// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_act_enc (tb/formal/ct_act_enc.proof), included at its end. Rounding and packing are cut away: their values may be any.

  // Words that have come: up to the number of the next one, those in ct_act_round right behind each other.
  logic [3:0] f_next2;   // number of the word that is written next
  assign f_next2 = idx_q - 4'(v1_q) - 4'(v2_q);
  `CT_ASSERT(WordsInOrder_A, (!v1_q || idx1_q == 4'(idx_q - 4'd1)) && (!v2_q || idx2_q == f_next2))

  // Tiles between their last word and their header: ct_act_scan says done three steps behind the last word.
  logic [2:0] f_made_q;
  logic       f_whole;
  assign f_whole = v2_q && idx2_q == 4'd15;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      f_made_q <= '0;
    else if (flush_i) f_made_q <= '0;
    else if (move)    f_made_q <= {f_made_q[1:0], f_whole};
  end
  `CT_ASSUME(DoneInThree_M, done == f_made_q[2])
  logic [3:0] f_since_q;  // steps since the last whole tile, or 15
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      f_since_q <= 4'd15;
    else if (flush_i) f_since_q <= 4'd15;
    else if (move)    f_since_q <= f_whole ? 4'd0 : f_since_q + 4'(f_since_q != 4'd15);
  end
  `CT_ASSERT(OneIsMade_A, f_made_q == {f_since_q == 4'd2, f_since_q == 4'd1, f_since_q == 4'd0})
  `CT_ASSERT(SinceIsWords_A, f_since_q == 4'd15 || f_next2 <= f_since_q + 4'd1)

  // Places: of the tile that is packed, of one whose header is made, of the one that is written. No word is written where one is still to be read.
  `CT_ASSERT(PlacesCounted_A, 2'(wr_slot_q - rd_slot_q) == 2'(h_v_q) + 2'(f_made_q != '0))
  `CT_ASSERT(WriteApart_A, !(move && v2_q && h_v_q) || wr_slot_q != rd_slot_q)
  `CT_ASSERT(PhaseRuns_A, phase_q <= 5'd16 && (h_v_q || phase_q == 5'd0))

  // Any tile, by its number modulo 4, and any word of it: what is packed is what was written, behind the tile's own header.
  (* anyconst *) logic [1:0] f_slot;
  (* anyconst *) logic [3:0] f_idx;
  logic [WordW-1:0] f_word_q;
  logic [45:0]      f_head_q;
  logic             f_packs_q;  // the word was read in the last step
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      f_packs_q <= 1'b0;
    else if (flush_i) f_packs_q <= 1'b0;
    else if (rd_move) f_packs_q <= h_v_q && phase_q == 5'(f_idx) + 5'd1 && rd_slot_q == f_slot;
  end
  always_ff @(posedge clk_i) begin
    if (move && v2_q && wr_slot_q == f_slot && idx2_q == f_idx) f_word_q <= {exp, neg, size};
    if (give && 2'(rd_slot_q + 2'(h_v_q)) == f_slot) f_head_q <= head;
  end
  `CT_ASSERT(Lies_A, !(h_v_q && rd_slot_q == f_slot && phase_q <= 5'(f_idx) + 5'd1) || (mem[{f_slot, f_idx}] == f_word_q && h_head_q == f_head_q))
  `CT_ASSERT(Waits_A, !(f_made_q != '0 && 2'(rd_slot_q + 2'(h_v_q)) == f_slot) || mem[{f_slot, f_idx}] == f_word_q)
  `CT_ASSERT(Comes_A, !(wr_slot_q == f_slot && f_next2 > f_idx) || mem[{f_slot, f_idx}] == f_word_q)
  `CT_ASSERT(PacksItsWord_A, !(r_v_q && f_packs_q) || (!r_head_q && r_word_q == f_word_q && r_bits_head_q == f_head_q))
  `CT_ASSERT(PackedPlace_A, !(r_v_q && f_packs_q) || (f_idx == 4'd15 ? rd_slot_q == 2'(f_slot + 2'd1) && phase_q == 5'd0 :
                            h_v_q && rd_slot_q == f_slot && phase_q == 5'(f_idx) + 5'd2))
