// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_st (tb/formal/ct_dma_st.proof), included at its end.

  // What the walkers, proven by themselves, keep to (records are cut at 4 KB here), and who drops.
  logic [1:0] f_piece, f_held_q;  // the second: dropped in the last cycle, and neither idle nor abandoned then; or in error
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_piece[c] = !drop[c] && seq_beats[5*c +: 5] > {4'd0, seq_rec[c]} && seq_beats[5*c +: 5] <= (seq_rec[c] ? 5'd17 : 5'd16) &&
                 (seq_rec[c] || 9'(seq_addr[32*c +: 8]) + 9'(seq_beats[5*c +: 5]) <= 9'd256);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_held_q <= 2'b00;
    else         f_held_q <= (drop & ~idle_o & ~abandon_i) | (err_o & ~drop);
  end
  `CT_ASSUME(StorePieces_M, (seq_valid & ~f_piece) == 2'b00)
  `CT_ASSUME(DropUntilIdle_M, (f_held_q & ~drop) == 2'b00)
  `CT_ASSUME(AbandonUnderFlush_M, (abandon_i & ~flush_i) == 2'b00)
  `CT_ASSUME(SpmAnswers_M, spm_rd_vld_i == tag_v_q[1])

  // AW and W as the memory sees them. It answers a burst when it has its address and its last beat.
  logic         f_aw_kept_q, f_w_kept_q;
  logic [44:0]  f_aw_q;
  logic [128:0] f_w_q;
  logic [9:0]   f_asked_q, f_sent_q;  // of each context, without those that are answered: addresses, last beats
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_aw_kept_q <= 1'b0;
      f_w_kept_q  <= 1'b0;
      f_asked_q   <= '0;
      f_sent_q    <= '0;
    end else begin
      f_aw_kept_q <= m_axi_awvalid_o && !m_axi_awready_i;
      f_w_kept_q  <= m_axi_wvalid_o && !m_axi_wready_i;
      for (int c = 0; c < 2; c++) begin
        f_asked_q[5*c +: 5] <= f_asked_q[5*c +: 5] + 5'(m_axi_awvalid_o && m_axi_awready_i && m_axi_awid_o == c[0]) -
                               5'(b_vld_q && bid == c[0]);
        f_sent_q[5*c +: 5]  <= f_sent_q[5*c +: 5] + 5'(m_axi_wvalid_o && m_axi_wready_i && m_axi_wlast_o && w_ctx_q == c[0]) -
                               5'(b_vld_q && bid == c[0]);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    f_aw_q <= {m_axi_awid_o, m_axi_awaddr_o, m_axi_awlen_o};
    f_w_q  <= {m_axi_wdata_o, m_axi_wlast_o};
  end
  `CT_ASSUME(AnswersAreAsked_M, !b_vld_q || (bid ? f_asked_q[9:5] != '0 && f_sent_q[9:5] != '0 : f_asked_q[4:0] != '0 && f_sent_q[4:0] != '0))
  `CT_ASSERT(AwKept_A, !f_aw_kept_q || (m_axi_awvalid_o && f_aw_q == {m_axi_awid_o, m_axi_awaddr_o, m_axi_awlen_o}))
  `CT_ASSERT(WKept_A, !f_w_kept_q || (m_axi_wvalid_o && f_w_q == {m_axi_wdata_o, m_axi_wlast_o}))
  `CT_ASSERT(AwInPage_A, !m_axi_awvalid_o || (m_axi_awlen_o <= 8'd16 && 13'(m_axi_awaddr_o[11:0]) + ((13'(m_axi_awlen_o) + 13'd1) << 4) <= 13'd4096))
  `CT_ASSERT(GrantRange_A, !aw_go || (who_beats != '0 && who_beats <= 5'd17))
  `CT_ASSERT(JobSizes_A, (!job_v_q || (job_q.left != '0 && job_q.left <= 5'd17)) &&
             (!next_v_q || (next_q.left != '0 && next_q.left <= 5'd17 && job_q.left <= 5'd2)))
  // What was made out in the last cycle is still so.
  logic [1:0] f_prepared, f_room;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_prepared[c] = !ok_q[c] || (done_q[3*c +: 3] != send_q[3*c +: 3] && aw_end[c] == next_end[c] && aw_slot[16*c +: 16] == slot[SlotW*c +: 16] &&
                                   aw_addr[32*c +: 32] == next_addr[32*c +: 32] && aw_beats[5*c +: 5] == next_beats[5*c +: 5]);
      f_room[c]     = aw_v_q || !room_q[c] || 6'(5'(put_q[5*c +: 5] - sig_q[5*c +: 5])) + 6'(lost_q[5*c +: 5]) < 6'd16;
    end
  end
  `CT_ASSERT(BurstPrepared_A, f_prepared == 2'b11)
  `CT_ASSERT(RoomLeft_A, f_room == 2'b11)
  `CT_ASSERT(AwRange_A, !aw_v_q || (aw_beats_q != '0 && aw_beats_q <= 5'd17))

  // Slots and what is under way between the pointers, while the context is not being cleared. (When it no longer is, nothing is left.)
  logic [1:0] f_tag0, f_tag1, f_job, f_next, f_legal, f_off, f_count, f_place, f_young, f_words, f_order, f_all, f_ring;
  logic [9:0] f_landed_q;          // words of the piece that is read that have come
  logic [9:0] f_await;             // number of the word after those asked for
  logic [39:0] f_len;              // words of the piece in each slot
  logic       g_last;              // the younger tag
  logic [1:0] g_slot;
  logic [3:0] g_idx;
  assign {g_slot, g_idx, g_last} = tag0_q[TagW-2 : SpmW];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_landed_q <= '0;
    else begin
      for (int c = 0; c < 2; c++) begin
        if (clear[c]) f_landed_q[5*c +: 5] <= 5'd0;
        else if (t_good && t_ctx == c[0]) f_landed_q[5*c +: 5] <= t_last ? 5'd0 : f_landed_q[5*c +: 5] + 5'd1;
      end
    end
  end
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_tag0[c] = tag_v_q[0] && tag0_q[TagW-1] == c[0];
      f_tag1[c] = tag_v_q[1] && t_ctx == c[0];
      f_job[c]  = job_v_q && job_q.ctx == c[0];
      f_next[c] = next_v_q && next_q.ctx == c[0];
      f_legal[c] = 1'b1;
      for (int s = 0; s < 4; s++) begin
        f_len[20*c + 5*s +: 5] = f_slots[SlotW*(4*c+s) + 11 +: 5] - 5'(f_slots[SlotW*(4*c+s) + 10]);
        // Filled and not all granted.
        if (3'(2'(2'(s) - send_q[3*c +: 2])) < 3'(fill_q[3*c +: 3] - send_q[3*c +: 3])) begin
          f_legal[c] = f_legal[c] && f_slots[SlotW*(4*c+s) + 11 +: 5] > 5'(f_slots[SlotW*(4*c+s) + 10]) &&
                       f_slots[SlotW*(4*c+s) + 11 +: 5] <= (f_slots[SlotW*(4*c+s) + 10] ? 5'd17 : 5'd16) &&
                       (f_slots[SlotW*(4*c+s) + 10] ||
                        9'(f_slots[SlotW*(4*c+s) + 16 +: 8]) + 9'(f_slots[SlotW*(4*c+s) + 11 +: 5]) <= 9'd256);
        end
      end
      f_off[c] = off_q[5*c +: 5] == '0 || (done_q[3*c +: 3] != send_q[3*c +: 3] && slot[SlotW*c + 10] &&
                 off_q[5*c +: 5] == 5'(5'd0 - slot[SlotW*c + 16 +: 5]) &&
                 9'(slot[SlotW*c + 16 +: 8]) + 9'(slot[SlotW*c + 11 +: 5]) > 9'd256);
      // Slots that W still reads, slots that are read.
      f_count[c] = 3'(send_q[3*c +: 3] - free_q[3*c +: 3]) == 3'(f_job[c] && job_q.fin) + 3'(f_next[c] && next_q.fin) &&
                   3'(fill_q[3*c +: 3] - done_q[3*c +: 3]) == 3'(rd_v_q[c]) + 3'(f_tag0[c] && g_last) + 3'(f_tag1[c] && t_last);
      f_place[c] = (!f_job[c] || job_q.slot == free_q[3*c +: 2]) &&
                   (!f_next[c] || next_q.slot == 2'(free_q[3*c +: 2] + 2'(f_job[c] && job_q.fin))) &&
                   (!f_tag1[c] || t_slot == done_q[3*c +: 2]) &&
                   (!f_tag0[c] || g_slot == 2'(done_q[3*c +: 2] + 2'(f_tag1[c] && t_last))) &&
                   (!rd_v_q[c] || rd_slot_q[2*c +: 2] == 2'(fill_q[3*c +: 2] - 2'd1));
      // A piece in two bursts: the second follows.
      f_young[c] = (!(f_next[c] && !next_q.fin) || off_q[5*c +: 5] != '0) &&
                   (!(f_job[c] && !job_q.fin) || (f_next[c] ? next_q.fin : off_q[5*c +: 5] != '0));
      // The words of a piece are asked for and come one after the other, as many as it has.
      f_await[5*c +: 5] = f_tag0[c] ? (g_last ? 5'd0 : 5'(g_idx) + 5'd1) : f_tag1[c] ? (t_last ? 5'd0 : 5'(t_idx) + 5'd1) : f_landed_q[5*c +: 5];
      f_order[c] = (!f_tag1[c] || 5'(t_idx) == f_landed_q[5*c +: 5]) &&
                   (!f_tag0[c] || 5'(g_idx) == (f_tag1[c] ? (t_last ? 5'd0 : 5'(t_idx) + 5'd1) : f_landed_q[5*c +: 5])) &&
                   (rd_v_q[c] ? 5'(rd_idx_q[4*c +: 4]) == f_await[5*c +: 5] : f_await[5*c +: 5] == 5'd0);
      f_words[c] = (!rd_v_q[c] || (rd_left_q[5*c +: 5] != '0 && rd_left_q[5*c +: 5] <= 5'd16 &&
                                   6'(rd_idx_q[4*c +: 4]) + 6'(rd_left_q[5*c +: 5]) == 6'(f_len[20*c + 5*rd_slot_q[2*c +: 2] +: 5]))) &&
                   (!(f_tag0[c] && g_last) || 5'(g_idx) + 5'd1 == f_len[20*c + 5*g_slot +: 5]) &&
                   (!(f_tag1[c] && t_last) || 5'(t_idx) + 5'd1 == f_len[20*c + 5*t_slot +: 5]);
    end
  end
  `CT_ASSERT(SlotLegal_A, f_legal == 2'b11)
  `CT_ASSERT(SecondHalf_A, f_off == 2'b11)
  `CT_ASSERT(SlotsCounted_A, (f_count | clear) == 2'b11)
  `CT_ASSERT(SlotsPlaced_A, (f_place | clear) == 2'b11)
  `CT_ASSERT(HalvesTogether_A, (f_young | clear) == 2'b11)
  `CT_ASSERT(WordsInOrder_A, (f_order | clear) == 2'b11)
  `CT_ASSERT(WordsWhole_A, (f_words | clear) == 2'b11)

  // Any slot: words that have come since it was filled. None is granted before it has all.
  (* anyconst *) logic       f_sctx;
  (* anyconst *) logic [1:0] f_slot;
  logic [4:0] f_got_q;
  logic [2:0] f_ago;   // its place behind free
  logic [2:0] f_dones, f_fills;
  logic [4:0] f_full;
  assign f_ago   = 3'(2'(f_slot - (f_sctx ? free_q[4:3] : free_q[1:0])));
  assign f_dones = f_sctx ? 3'(done_q[5:3] - free_q[5:3]) : 3'(done_q[2:0] - free_q[2:0]);
  assign f_fills = f_sctx ? 3'(fill_q[5:3] - free_q[5:3]) : 3'(fill_q[2:0] - free_q[2:0]);
  assign f_full  = f_len[20*f_sctx + 5*f_slot +: 5];
  always_ff @(posedge clk_i) begin
    if (load[f_sctx] && f_slot == (f_sctx ? fill_q[4:3] : fill_q[1:0])) f_got_q <= 5'd0;
    else if (t_good && t_ctx == f_sctx && t_slot == f_slot)            f_got_q <= f_got_q + 5'd1;
  end
  `CT_ASSERT(Complete_A, clear[f_sctx] || (f_ago < f_dones ? f_got_q == f_full : f_ago >= f_fills ||
             f_got_q == (f_ago == f_dones ? f_landed_q[5*f_sctx +: 5] : 5'd0)))
  `CT_ASSERT(GrantedWhole_A, !(aw_go && who == f_sctx && f_slot == (f_sctx ? send_q[4:3] : send_q[1:0])) || f_got_q == f_full)

  // Bursts of each context: addresses and last beats on their way, answers that are owed, abandoned ones.
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_ring[c] = f_asked_q[5*c +: 5] <= 5'd16 && f_sent_q[5*c +: 5] <= 5'd16 &&
                  5'(put_q[5*c +: 5] - ans_q[5*c +: 5] + lost_q[5*c +: 5]) == 5'(f_asked_q[5*c +: 5] + 5'(aw_v_q && aw_id_q == c[0])) &&
                  5'(put_q[5*c +: 5] - ans_q[5*c +: 5] + lost_q[5*c +: 5]) ==
                  5'(f_sent_q[5*c +: 5] + 5'(f_job[c]) + 5'(f_next[c]) + 5'(s1_v_q && s1_last_q && s1_ctx_q == c[0]) +
                     5'(w_v_q && m_axi_wlast_o && w_ctx_q == c[0])) &&
                  6'(5'(put_q[5*c +: 5] - sig_q[5*c +: 5])) + 6'(lost_q[5*c +: 5]) <= 6'd16;
      // W stands in none that is abandoned, or the stores of the context wait.
      f_all[c]  = left_q[c] || 5'(put_q[5*c +: 5] - ans_q[5*c +: 5]) >= 5'(f_job[c]) + 5'(f_next[c]);
    end
  end
  `CT_ASSERT(AnswersOwed_A, f_ring == 2'b11)
  `CT_ASSERT(NextBehind_A, !next_v_q || job_v_q)
  `CT_ASSERT(NoOrphan_A, (!(w_v_q && !m_axi_wlast_o) || (s1_v_q ? s1_ctx_q == w_ctx_q : job_v_q && job_q.ctx == w_ctx_q)) &&
             (!(s1_v_q && !s1_last_q) || (job_v_q && job_q.ctx == s1_ctx_q)))
  `CT_ASSERT(NoneLostInW_A, f_all == 2'b11)
  // Idle, and nothing was abandoned: AW, W and the memory have nothing of the context.
  logic [1:0] f_rest;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_rest[c] = (aw_v_q && aw_id_q == c[0]) || f_job[c] || f_next[c] || (s1_v_q && s1_ctx_q == c[0]) || (w_v_q && w_ctx_q == c[0]) ||
                  rd_v_q[c] || tags[c] || f_asked_q[5*c +: 5] != '0 || f_sent_q[5*c +: 5] != '0 || inc_q[16*c +: 16] != '0;
    end
  end
  `CT_ASSERT(IdleIsIdle_A, !(idle_o[0] && lost_q[4:0] == '0 && f_rest[0]) && !(idle_o[1] && lost_q[9:5] == '0 && f_rest[1]))

  // Any burst of any context, by its number: from its grant to its signals.
  (* anyconst *) logic       f_ctx;
  (* anyconst *) logic [4:0] f_pick;
  logic [9:0]  f_sig_q;
  logic [31:0] f_addr_q;
  logic [4:0]  f_put, f_ans, f_sign, f_mark, f_lost;
  logic        f_in, f_old_q, f_old;      // granted, and its signals not all given; it is of the job before
  logic        f_answer, f_good, f_bad;   // the oldest unanswered burst of the context is answered now; this one is, well, or with an error
  logic        f_turn, f_turn_q, f_none_q, f_olderr_q;
  logic [15:0] f_want_inc, f_inc;
  assign f_put    = f_ctx ? put_q[9:5] : put_q[4:0];
  assign f_ans    = f_ctx ? ans_q[9:5] : ans_q[4:0];
  assign f_sign   = f_ctx ? sig_q[9:5] : sig_q[4:0];
  assign f_mark   = f_ctx ? mark_q[9:5] : mark_q[4:0];
  assign f_lost   = f_ctx ? lost_q[9:5] : lost_q[4:0];
  assign f_inc    = f_ctx ? inc_q[31:16] : inc_q[15:0];
  assign f_in     = 5'(f_pick - f_sign) < 5'(f_put - f_sign);
  assign f_old    = f_old_q || seal_i[f_ctx];
  assign f_answer = b_vld_q && bid == f_ctx && f_lost == '0 && f_ans != f_put;
  assign f_good   = f_answer && !b_err_q && f_ans == f_pick;
  assign f_bad    = f_answer && b_err_q && f_ans == f_pick && f_in;
  assign f_turn   = f_sign == f_pick && (f_sign != f_ans || (f_good && !f_old)) && !f_old_q && !drop[f_ctx];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_turn_q   <= 1'b0;
      f_none_q   <= 1'b0;
      f_old_q    <= 1'b0;
      f_olderr_q <= 1'b0;
    end else begin
      f_turn_q   <= f_turn;
      f_none_q   <= (f_sign == f_ans && !(f_answer && !b_err_q)) || (f_sign == f_pick && !f_turn) || drop[f_ctx];
      f_old_q    <= f_in && f_old && !abandon_i[f_ctx];
      f_olderr_q <= f_bad && f_old;
    end
  end
  always_ff @(posedge clk_i) begin
    if (aw_go && aw_gnt[f_ctx] && f_put == f_pick) begin
      f_sig_q  <= aw_end[who] ? who_slot[9:0] : 10'd0;
      f_addr_q <= who_addr;
    end
  end
  always_comb begin
    for (int s = 0; s < 16; s++) f_want_inc[s] = f_sig_q[4:0] == {1'b1, 4'(s)} || f_sig_q[9:5] == {1'b1, 4'(s)};
  end
  `CT_ASSERT(EntryKept_A, !f_in || ent_mem[{f_ctx, f_pick[3:0]}] == {f_addr_q, f_sig_q})
  `CT_ASSERT(MarkInRing_A, !old_q[f_ctx] || (f_mark != f_sign && 5'(f_mark - f_sign) <= 5'(f_put - f_sign)))
  `CT_ASSERT(OldOwed_A, owed_q[f_ctx] == (old_q[f_ctx] && 5'(f_ans - f_sign) < 5'(f_mark - f_sign)))
  `CT_ASSERT(OldToMark_A, !f_in || f_old_q == (old_q[f_ctx] && 5'(f_pick - f_sign) < 5'(f_mark - f_sign)))
  `CT_ASSERT(OwnerHears_A, !f_turn_q || f_inc == f_want_inc)
  `CT_ASSERT(NothingElseHeard_A, !f_none_q || f_inc == 16'd0)
  `CT_ASSERT(SecondOfTwo_A, !second_q[f_ctx] || f_sign != f_ans)
  logic [1:0] f_times_q;  // how often it has given its signals
  logic       f_twice;
  assign f_twice = f_sig_q[9] && f_sig_q[9:5] == f_sig_q[4:0];
  always_ff @(posedge clk_i) begin
    if (aw_go && aw_gnt[f_ctx] && f_put == f_pick) f_times_q <= 2'd0;
    else if (f_turn && !f_times_q[1]) f_times_q <= f_times_q + 2'd1;
  end
  `CT_ASSERT(TimesCounted_A, !f_in || (f_sign == f_pick && second_q[f_ctx] ? f_times_q == 2'd1 && f_twice : f_times_q == 2'd0))
  `CT_ASSERT(HeardOnce_A, !f_turn || f_times_q == 2'd0 || (f_times_q == 2'd1 && f_twice))
  `CT_ASSERT(ErrorToOwner_A, !f_bad || drop[f_ctx] || f_old || (err_o[f_ctx] &&
             {err_code_o[8*f_ctx +: 8], err_addr_o[32*f_ctx +: 32]} == {ct_pkg::ErrAxiWrite, f_addr_q}))
  `CT_ASSERT(ErrorOfNoOther_A, !f_bad || !(err_o[!f_ctx] && err_code_o[8*(1-f_ctx) +: 8] == ct_pkg::ErrAxiWrite))
  `CT_ASSERT(OldErrorApart_A, !f_olderr_q || (old_err_o == {f_ctx, !f_ctx} && old_err_addr_o == f_addr_q))
  `CT_ASSERT(OldErrorIsNone_A, !(f_bad && f_old) || err_code_o[8*f_ctx +: 8] != ct_pkg::ErrAxiWrite)

  // W follows AW: bursts are numbered modulo 16 as they are granted and as their last beat goes; the burst of any number has the beats
  // that AW said. Beats of the burst at the output that have gone: f_gone_q.
  (* anyconst *) logic [3:0] f_burst;
  logic [3:0] f_granted_q, f_ended_q, f_jobs;
  logic [4:0] f_beats_q, f_gone_q;
  logic       f_owner_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_granted_q <= '0;
      f_ended_q   <= '0;
      f_gone_q    <= '0;
    end else begin
      f_granted_q <= f_granted_q + 4'(aw_go);
      if (m_axi_wvalid_o && m_axi_wready_i) begin
        f_gone_q  <= m_axi_wlast_o ? 5'd0 : f_gone_q + 5'd1;
        f_ended_q <= f_ended_q + 4'(m_axi_wlast_o);
      end
    end
  end
  always_ff @(posedge clk_i) if (aw_go && f_granted_q == f_burst) {f_owner_q, f_beats_q} <= {who, who_beats};
  // Bursts whose last beat is still to go: in the output register, in s1, at hand, next.
  logic f_w_end, f_s1_end;
  logic [3:0] f_at_job;   // number of the burst at hand
  logic [4:0] f_before;   // of that burst: gone and in the output register, when no last beat is in front of it
  assign f_w_end  = w_v_q && m_axi_wlast_o;
  assign f_s1_end = s1_v_q && s1_last_q;
  assign f_jobs   = 4'(f_w_end) + 4'(f_s1_end) + 4'(job_v_q) + 4'(next_v_q);
  assign f_at_job = f_ended_q + 4'(f_w_end) + 4'(f_s1_end);
  assign f_before = f_w_end ? 5'd0 : f_gone_q + 5'(w_v_q);

  // (That a burst has 1 to 17 beats is said above, GrantRange_A.)
  logic f_fits;
  assign f_fits = f_beats_q != '0 && f_beats_q <= 5'd17;
  `CT_ASSERT(Numbered_A, 4'(f_granted_q - f_ended_q) == f_jobs && (f_gone_q == '0 || f_jobs != '0))
  `CT_ASSERT(AwOfBurst_A, !aw_v_q || f_burst != 4'(f_granted_q - 4'd1) || {aw_id_q, aw_beats_q} == {f_owner_q, f_beats_q})
  `CT_ASSERT(NextBeats_A, !next_v_q || f_burst != 4'(f_at_job + 4'd1) || {next_q.ctx, next_q.left} == {f_owner_q, f_beats_q})
  `CT_ASSERT(JobBeats_A, !job_v_q || f_burst != f_at_job || !f_fits || (job_q.ctx == f_owner_q && job_q.left != '0 &&
             6'(f_s1_end ? 5'd0 : 6'(f_before) + 6'(s1_v_q)) + 6'(job_q.left) == 6'(f_beats_q)))
  `CT_ASSERT(PipeBeats_A, !f_s1_end || f_burst != 4'(f_ended_q + 4'(f_w_end)) || !f_fits || (s1_ctx_q == f_owner_q && 6'(f_before) + 6'd1 == 6'(f_beats_q)))
  `CT_ASSERT(OutBeats_A, !f_w_end || f_burst != f_ended_q || !f_fits || (w_ctx_q == f_owner_q && 6'(f_gone_q) + 6'd1 == 6'(f_beats_q)))
  // The last beat is the last exactly.
  `CT_ASSERT(LastAtEnd_A, !m_axi_wvalid_o || f_burst != f_ended_q || !f_fits || m_axi_wlast_o == (6'(f_gone_q) + 6'd1 == 6'(f_beats_q)))

  // Beats of W that pass while a ready burst of inference waits (PRIORITY, floor 0): those of the burst at hand and the one granted.
  logic [5:0] f_wait_q, f_ahead;
  logic       f_waits;
  assign f_waits = aw_req[0] && qos_i[ct_pkg::QosStrict];
  assign f_ahead = 6'(w_v_q) + 6'(s1_v_q) + (job_v_q ? 6'(job_q.left) : 6'd0) + (next_v_q ? 6'(next_q.left) : 6'd0);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_wait_q <= '0;
    else if (!f_waits || (aw_go && aw_gnt[0])) f_wait_q <= '0;
    else if (m_axi_wvalid_o && m_axi_wready_i) f_wait_q <= f_wait_q + 6'd1;
  end
  `CT_ASSERT(WaitAndAhead_A, f_wait_q + f_ahead <= 6'd21)
  `CT_ASSERT(WaitBound_A, f_wait_q <= 6'd21)
  `CT_ASSERT(NoneWhileWaiting_A, !f_waits || !(aw_go && who))
