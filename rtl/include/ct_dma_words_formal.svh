// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_words (tb/formal/ct_dma_words.proof), included at its end.

  // What the walkers, proven by themselves, keep to (records are cut at 4 KB here).
  logic [1:0] f_drop, f_piece;
  assign f_drop = flush_i | halt_i;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_piece[c] = !f_drop[c] && beats_i[5*c +: 5] > {4'd0, rec_i[c]} && beats_i[5*c +: 5] <= (rec_i[c] ? 5'd17 : 5'd16) &&
                   (rec_i[c] || 9'(addr_i[32*c +: 8]) + 9'(beats_i[5*c +: 5]) <= 9'd256);
    end
  end
  `CT_ASSUME(StorePieces_M, (valid_i & ~f_piece) == 2'b00)
  `CT_ASSUME(SpmAnswers_M, spm_rd_vld_i || !tag_v_q[1])

  // What ct_dma_wr keeps to (ReadyIsAsked_A, BeatOfOwner_A, WithinIsWithin_A, NextBehind_A): it grants what is offered, has at most two bursts, and asks for
  // their beats in their order.
  typedef struct packed {
    logic       ctx;
    logic [1:0] slot;
    logic       fin;
    logic [4:0] at;
    logic [4:0] left;
  } f_job_t;
  logic       f_job_v_q, f_next_v_q, f_end;
  f_job_t     f_job_q, f_next_q, f_new;
  logic [1:0] f_job, f_next, f_in_w;
  assign f_end    = beat_i != 2'b00 && f_job_q.left == 5'd1;
  assign f_new    = {wr_ready_i[1], wr_ready_i[1] ? wr_tag_o[5:3] : wr_tag_o[2:0], wr_ready_i[1] ? wr_at_o[9:5] : wr_at_o[4:0],
                     wr_ready_i[1] ? wr_beats_o[9:5] : wr_beats_o[4:0]};
  assign f_job    = {f_job_v_q && f_job_q.ctx, f_job_v_q && !f_job_q.ctx};
  assign f_next   = {f_next_v_q && f_next_q.ctx, f_next_v_q && !f_next_q.ctx};
  assign f_in_w   = f_job | f_next;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_job_v_q  <= 1'b0;
      f_next_v_q <= 1'b0;
    end else begin
      f_job_v_q  <= (f_job_v_q && !f_end) || f_next_v_q || wr_ready_i != 2'b00;
      f_next_v_q <= f_job_v_q && !f_end && (f_next_v_q || wr_ready_i != 2'b00);
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_end || !f_job_v_q) f_job_q <= f_next_v_q ? f_next_q : f_new;
    else if (beat_i != 2'b00) begin
      f_job_q.at   <= f_job_q.at + 5'd1;
      f_job_q.left <= f_job_q.left - 5'd1;
    end
    if (wr_ready_i != 2'b00) f_next_q <= f_new;
  end
  `CT_ASSUME(GrantOfOffer_M, (wr_ready_i & ~wr_valid_o) == 2'b00 && wr_ready_i != 2'b11 && !(wr_ready_i != 2'b00 && f_next_v_q))
  `CT_ASSUME(BeatOfBurst_M, beat_i == 2'b00 || (f_job_v_q && beat_i == {f_job_q.ctx, !f_job_q.ctx} && beat_at_i == f_job_q.at &&
             beat_tag_i == {f_job_q.slot, f_job_q.fin} && beat_last_i == (f_job_q.left == 5'd1)))
  `CT_ASSUME(Within_M, wr_within_i == f_in_w)
  // A drop lasts until the context is idle (WithinHasEntry_A: W is through then), or abandoned; an error is followed by one.
  logic [1:0] f_held_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_held_q <= 2'b00;
    else         f_held_q <= (f_drop & ~(idle_o & (~f_in_w | left_q)) & ~abandon_i) | (err_o & ~f_drop);
  end
  `CT_ASSUME(DropUntilIdle_M, (f_held_q & ~f_drop) == 2'b00)
  `CT_ASSUME(AbandonUnderFlush_M, (abandon_i & ~flush_i) == 2'b00)

  // What ct_dma_wr may rely on: a burst of 1 to 17 beats inside 4 KB, of a context that may ask, until it is granted or dropped.
  logic [1:0]  f_fit, f_prepared;
  logic [1:0]  f_wait_q, f_same;
  logic [54:0] f_was0_q, f_was1_q;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_fit[c] = !clear[c] && wr_beats_o[5*c +: 5] != '0 && wr_beats_o[5*c +: 5] <= 5'd17 &&
                 9'(wr_addr_o[32*c +: 8]) + 9'(wr_beats_o[5*c +: 5]) <= 9'd256;
      // What was made out in the last cycle is still so.
      f_prepared[c] = !ok_q[c] || (done_q[3*c +: 3] != send_q[3*c +: 3] && wr_end[c] == next_end[c] && wr_at_o[AtW*c +: AtW] == next_at[AtW*c +: AtW] &&
                                   wr_addr_o[32*c +: 32] == next_addr[32*c +: 32] && wr_beats_o[5*c +: 5] == next_beats[5*c +: 5] &&
                                   wr_tag_o[TagW*c +: TagW] == {send_q[3*c +: 2], next_end[c]} &&
                                   wr_end_tag_o[EndW*c +: EndW] == (next_end[c] ? slot[SlotW*c +: EndW] : '0));
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_wait_q <= 2'b00;
    else         f_wait_q <= wr_valid_o & ~wr_ready_i;
  end
  always_ff @(posedge clk_i) begin
    f_was0_q <= {wr_addr_o[31:0], wr_beats_o[4:0], wr_at_o[4:0], wr_tag_o[2:0], wr_end_tag_o[9:0]};
    f_was1_q <= {wr_addr_o[63:32], wr_beats_o[9:5], wr_at_o[9:5], wr_tag_o[5:3], wr_end_tag_o[19:10]};
  end
  assign f_same[0] = wr_valid_o[0] && f_was0_q == {wr_addr_o[31:0], wr_beats_o[4:0], wr_at_o[4:0], wr_tag_o[2:0], wr_end_tag_o[9:0]};
  assign f_same[1] = wr_valid_o[1] && f_was1_q == {wr_addr_o[63:32], wr_beats_o[9:5], wr_at_o[9:5], wr_tag_o[5:3], wr_end_tag_o[19:10]};
  `CT_ASSERT(BurstFits_A, (wr_valid_o & ~f_fit) == 2'b00)
  `CT_ASSERT(BurstPrepared_A, f_prepared == 2'b11)
  `CT_ASSERT(OfferKept_A, (f_wait_q & ~clear & ~f_same) == 2'b00)

  // Slots and what is under way between the pointers, while the context is not being cleared. (When it no longer is, nothing is left.)
  logic [1:0] f_tag0, f_tag1, f_legal, f_half, f_count, f_place, f_young, f_words, f_order, f_left, f_job_fits, f_next_fits;
  logic [9:0] f_landed_q;          // words of the piece that is read that have come
  logic [9:0] f_await;             // number of the word after those asked for
  logic [39:0] f_len;              // words of the piece in each slot
  logic [39:0] f_cut;              // of these, in its first burst, if it has two
  logic [7:0]  f_recs;
  logic       g_last;              // the younger tag
  logic [1:0] g_slot;
  logic [3:0] g_idx;
  assign {g_slot, g_idx, g_last} = tag0_q[ReadTagW-2 : SpmW];
  logic [1:0] f_seen;              // the last word of a piece is looked at
  assign f_seen = p_v_q && p_last_q ? {p_ctx_q, !p_ctx_q} : 2'b00;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_landed_q <= '0;
    else begin
      for (int c = 0; c < 2; c++) begin
        if (clear[c]) f_landed_q[5*c +: 5] <= 5'd0;
        else if (t_come && t_ctx == c[0]) f_landed_q[5*c +: 5] <= t_last ? 5'd0 : f_landed_q[5*c +: 5] + 5'd1;
      end
    end
  end
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_tag0[c] = tag_v_q[0] && tag0_q[ReadTagW-1] == c[0];
      f_tag1[c] = tag_v_q[1] && t_ctx == c[0];
      f_legal[c] = 1'b1;
      for (int s = 0; s < 4; s++) begin
        f_len[20*c + 5*s +: 5] = f_slots[SlotW*(4*c+s) + 11 +: 5] - 5'(f_slots[SlotW*(4*c+s) + 10]);
        f_cut[20*c + 5*s +: 5] = 5'(~f_slots[SlotW*(4*c+s) + 16 +: 5]);
        f_recs[4*c + s]        = f_slots[SlotW*(4*c+s) + 10];
        // Filled and not all sent.
        if (3'(2'(2'(s) - free_q[3*c +: 2])) < 3'(fill_q[3*c +: 3] - free_q[3*c +: 3])) begin
          f_legal[c] = f_legal[c] && f_slots[SlotW*(4*c+s) + 11 +: 5] > 5'(f_slots[SlotW*(4*c+s) + 10]) &&
                       f_slots[SlotW*(4*c+s) + 11 +: 5] <= (f_slots[SlotW*(4*c+s) + 10] ? 5'd17 : 5'd16) &&
                       (f_slots[SlotW*(4*c+s) + 10] ||
                        9'(f_slots[SlotW*(4*c+s) + 16 +: 8]) + 9'(f_slots[SlotW*(4*c+s) + 11 +: 5]) <= 9'd256);
        end
      end
      f_half[c] = !half_q[c] || (done_q[3*c +: 3] != send_q[3*c +: 3] && slot[SlotW*c + 10] &&
                  9'(slot[SlotW*c + 16 +: 8]) + 9'(slot[SlotW*c + 11 +: 5]) > 9'd256);
      // Slots that W still reads, slots that are read.
      f_count[c] = 3'(send_q[3*c +: 3] - free_q[3*c +: 3]) == 3'(f_job[c] && f_job_q.fin) + 3'(f_next[c] && f_next_q.fin) &&
                   3'(fill_q[3*c +: 3] - done_q[3*c +: 3]) == 3'(rd_v_q[c]) + 3'(f_tag0[c] && g_last) + 3'(f_tag1[c] && t_last) + 3'(f_seen[c]);
      f_place[c] = (!f_job[c] || f_job_q.slot == free_q[3*c +: 2]) &&
                   (!f_next[c] || f_next_q.slot == 2'(free_q[3*c +: 2] + 2'(f_job[c] && f_job_q.fin))) &&
                   (!f_tag1[c] || t_slot == 2'(done_q[3*c +: 2] + 2'(f_seen[c]))) &&
                   (!f_tag0[c] || g_slot == 2'(done_q[3*c +: 2] + 2'(f_tag1[c] && t_last) + 2'(f_seen[c]))) &&
                   (!rd_v_q[c] || rd_slot_q[2*c +: 2] == 2'(fill_q[3*c +: 2] - 2'd1));
      // A piece in two bursts: the second follows.
      f_young[c] = (!(f_next[c] && !f_next_q.fin) || half_q[c]) &&
                   (!(f_job[c] && !f_job_q.fin) || (f_next[c] ? f_next_q.fin : half_q[c]));
      // The words of a piece are asked for and come one after the other, as many as it has.
      f_await[5*c +: 5] = f_tag0[c] ? (g_last ? 5'd0 : 5'(g_idx) + 5'd1) : f_tag1[c] ? (t_last ? 5'd0 : 5'(t_idx) + 5'd1) : f_landed_q[5*c +: 5];
      f_order[c] = (!f_tag1[c] || 5'(t_idx) == f_landed_q[5*c +: 5]) &&
                   (!f_tag0[c] || 5'(g_idx) == (f_tag1[c] ? (t_last ? 5'd0 : 5'(t_idx) + 5'd1) : f_landed_q[5*c +: 5])) &&
                   (rd_v_q[c] ? 5'(rd_idx_q[4*c +: 4]) == f_await[5*c +: 5] : f_await[5*c +: 5] == 5'd0);
      f_words[c] = (!rd_v_q[c] || (rd_left_q[5*c +: 5] != '0 && rd_left_q[5*c +: 5] <= 5'd16 &&
                                   6'(rd_idx_q[4*c +: 4]) + 6'(rd_left_q[5*c +: 5]) == 6'(f_len[20*c + 5*rd_slot_q[2*c +: 2] +: 5]))) &&
                   (!(f_tag0[c] && g_last) || 5'(g_idx) + 5'd1 == f_len[20*c + 5*g_slot +: 5]) &&
                   (!(f_tag1[c] && t_last) || 5'(t_idx) + 5'd1 == f_len[20*c + 5*t_slot +: 5]);
      // Beats that are left: up to the last word of the piece, or of its first burst; in front of the first word only those of a record.
      f_job_fits[c]  = !f_job[c] || (f_job_q.left != '0 && f_job_q.left <= 5'd17 &&
                       6'(f_job_q.at == 5'd31 ? 5'd0 : f_job_q.at) + 6'(f_job_q.left) - 6'(f_job_q.at == 5'd31) ==
                       6'(f_job_q.fin ? f_len[20*c + 5*f_job_q.slot +: 5] : f_cut[20*c + 5*f_job_q.slot +: 5]) &&
                       (f_job_q.at != 5'd31 || f_recs[4*c + f_job_q.slot]));
      f_next_fits[c] = !f_next[c] || (f_next_q.left != '0 && f_next_q.left <= 5'd17 &&
                       6'(f_next_q.at == 5'd31 ? 5'd0 : f_next_q.at) + 6'(f_next_q.left) - 6'(f_next_q.at == 5'd31) ==
                       6'(f_next_q.fin ? f_len[20*c + 5*f_next_q.slot +: 5] : f_cut[20*c + 5*f_next_q.slot +: 5]) &&
                       (f_next_q.at != 5'd31 || f_recs[4*c + f_next_q.slot]));
      // Not cleared: what W has is of this context's life; its bursts that were abandoned keep it cleared.
      f_left[c] = clear[c] || 3'(fill_q[3*c +: 3] - free_q[3*c +: 3]) != '0 || !(f_in_w[c] || f_tag0[c] || f_tag1[c] || (p_v_q && p_ctx_q == c[0]) || rd_v_q[c]);
    end
  end
  `CT_ASSERT(SlotLegal_A, f_legal == 2'b11)
  `CT_ASSERT(SecondHalf_A, f_half == 2'b11)
  `CT_ASSERT(SlotsCounted_A, (f_count | clear) == 2'b11)
  `CT_ASSERT(SlotsPlaced_A, (f_place | clear) == 2'b11)
  `CT_ASSERT(HalvesTogether_A, (f_young | clear) == 2'b11)
  `CT_ASSERT(WordsInOrder_A, (f_order | clear) == 2'b11)
  `CT_ASSERT(WordsWhole_A, (f_words | clear) == 2'b11)
  `CT_ASSERT(LeftBehind_A, f_left == 2'b11)
  `CT_ASSERT(NextBehind_A, !f_next_v_q || f_job_v_q)
  `CT_ASSERT(BeatsOfPiece_A, ((f_job_fits & f_next_fits) | clear) == 2'b11)
  // Idle: no slot is in use, nothing is read; and W has no burst but of slots that were dropped.
  `CT_ASSERT(IdleIsIdle_A, (idle_o & ~clear & (f_in_w | f_tag0 | f_tag1 | {p_v_q && p_ctx_q, p_v_q && !p_ctx_q} | rd_v_q)) == 2'b00)

  // Any slot: words that have come since it was filled. None is granted before it has all, and W asks for no word that has not come.
  (* anyconst *) logic       f_sctx;
  (* anyconst *) logic [1:0] f_slot;
  logic [4:0] f_got_q;
  logic [2:0] f_ago;   // its place behind free
  logic [2:0] f_dones, f_fills, f_comes;
  logic       f_wrong_q;  // a word of it was bad
  logic [4:0] f_full;
  assign f_ago   = 3'(2'(f_slot - (f_sctx ? free_q[4:3] : free_q[1:0])));
  assign f_dones = f_sctx ? 3'(done_q[5:3] - free_q[5:3]) : 3'(done_q[2:0] - free_q[2:0]);
  assign f_fills = f_sctx ? 3'(fill_q[5:3] - free_q[5:3]) : 3'(fill_q[2:0] - free_q[2:0]);
  assign f_full  = f_len[20*f_sctx + 5*f_slot +: 5];
  always_ff @(posedge clk_i) begin
    if (load[f_sctx] && f_slot == (f_sctx ? fill_q[4:3] : fill_q[1:0])) f_got_q <= 5'd0;
    else if (t_come && t_ctx == f_sctx && t_slot == f_slot)            f_got_q <= f_got_q + 5'd1;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                                                                        f_wrong_q <= 1'b0;
    else if (load[f_sctx] && f_slot == (f_sctx ? fill_q[4:3] : fill_q[1:0]))            f_wrong_q <= 1'b0;
    else if (t_come && t_ctx == f_sctx && t_slot == f_slot && spm_rd_perr_i) f_wrong_q <= 1'b1;
  end
  assign f_comes = f_dones + 3'(f_seen[f_sctx]);
  `CT_ASSERT(Complete_A, clear[f_sctx] || (f_ago < f_comes ? f_got_q == f_full : f_ago >= f_fills ||
             f_got_q == (f_ago == f_comes ? f_landed_q[5*f_sctx +: 5] : 5'd0)))
  `CT_ASSERT(GrantedWhole_A, !(wr_ready_i[f_sctx] && f_slot == (f_sctx ? wr_tag_o[5:4] : wr_tag_o[2:1])) || f_got_q == f_full)
  `CT_ASSERT(WordHasCome_A, !(beat_i[f_sctx] && !clear[f_sctx] && f_slot == b_slot && !beat_at_i[4]) || 5'(beat_at_i[3:0]) < f_got_q)
  `CT_ASSERT(NoneWhileWaiting_A, !(qos_i[ct_pkg::QosStrict] && rd_req[0]) || !rd_gnt[1])
  // A slot with a bad word: its context is stopped in the next cycle, and nothing of the slot is granted.
  `CT_ASSERT(WrongIsDropped_A, !f_wrong_q || clear[f_sctx] || f_ago >= f_fills || (p_v_q && p_perr_q && p_ctx_q == f_sctx && f_ago == f_dones))
  `CT_ASSERT(GrantedRight_A, !(wr_ready_i[f_sctx] && f_slot == (f_sctx ? wr_tag_o[5:4] : wr_tag_o[2:1])) || !f_wrong_q)
