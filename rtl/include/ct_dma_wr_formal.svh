// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_wr (tb/formal/ct_dma_wr.proof), included at its end.

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
  `CT_ASSERT(AwRange_A, !aw_v_q || (aw_beats_q != '0 && aw_beats_q <= 5'd17))
  `CT_ASSERT(JobSizes_A, (!job_v_q || (job_q.left != '0 && job_q.left <= 5'd17)) &&
             (!next_v_q || (next_q.left != '0 && next_q.left <= 5'd17 && job_q.left <= 5'd2)))

  // Who is granted.
  logic f_first;  // of the clients of a context that ask the first is taken
  always_comb begin
    f_first = 1'b1;
    for (int p = 2; p < Ports; p++) begin
      for (int q = p % 2; q < p; q += 2) if (ready_o[p] && valid_i[q]) f_first = 1'b0;
    end
  end
  `CT_ASSERT(ReadyIsAsked_A, (ready_o & ~valid_i) == '0 && (ready_o & (ready_o - Ports'(1))) == '0 && grant == (ready_o != '0))
  `CT_ASSERT(FirstClientFirst_A, f_first)

  // Bursts of each context: addresses and last beats on their way, answers that are owed, abandoned ones; all have places in the ring.
  logic [1:0]  f_job, f_next, f_ring, f_room, f_kept;
  logic [11:0] f_count;
  logic        f_job_lost_q, f_next_lost_q;  // the burst was abandoned
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_job[c]          = job_v_q && job_q.ctx == c[0];
      f_next[c]         = next_v_q && next_q.ctx == c[0];
      f_count[6*c +: 6] = 6'(5'(put_q[5*c +: 5] - sig_q[5*c +: 5])) + 6'(lost_q[5*c +: 5]);
      f_room[c]         = aw_v_q || !room_q[c] || f_count[6*c +: 6] < 6'd16;
      f_ring[c] = f_asked_q[5*c +: 5] <= 5'd16 && f_sent_q[5*c +: 5] <= 5'd16 &&
                  5'(put_q[5*c +: 5] - ans_q[5*c +: 5] + lost_q[5*c +: 5]) == 5'(f_asked_q[5*c +: 5] + 5'(aw_v_q && aw_id_q == c[0])) &&
                  5'(put_q[5*c +: 5] - ans_q[5*c +: 5] + lost_q[5*c +: 5]) ==
                  5'(f_sent_q[5*c +: 5] + 5'(f_job[c]) + 5'(f_next[c]) + 5'(s1_v_q && s1_last_q && s1_ctx_q == c[0]) +
                     5'(w_v_q && m_axi_wlast_o && w_ctx_q == c[0]));
      // W stands in none that has no entry, unless it was abandoned.
      f_kept[c] = 5'(put_q[5*c +: 5] - ans_q[5*c +: 5]) >= 5'(f_job[c] && !f_job_lost_q) + 5'(f_next[c] && !f_next_lost_q);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_job_lost_q  <= 1'b0;
      f_next_lost_q <= 1'b0;
    end else begin
      if (job_free && next_v_q)   f_job_lost_q <= f_next_lost_q || abandon_i[next_q.ctx];
      else if (job_free && grant) f_job_lost_q <= 1'b0;
      else                        f_job_lost_q <= f_job_lost_q || abandon_i[job_q.ctx];
      f_next_lost_q <= !grant && (f_next_lost_q || abandon_i[next_q.ctx]);
    end
  end
  `CT_ASSERT(RoomLeft_A, f_room == 2'b11)
  `CT_ASSERT(CapKept_A, f_count[5:0] <= 6'd16 && f_count[11:6] <= 6'd16)
  `CT_ASSERT(AnswersOwed_A, f_ring == 2'b11)
  `CT_ASSERT(NextBehind_A, !next_v_q || job_v_q)
  `CT_ASSERT(NoOrphan_A, (!(w_v_q && !m_axi_wlast_o) || (s1_v_q ? s1_ctx_q == w_ctx_q : job_v_q && job_q.ctx == w_ctx_q)) &&
             (!(s1_v_q && !s1_last_q) || (job_v_q && job_q.ctx == s1_ctx_q)))
  `CT_ASSERT(EntriesInW_A, f_kept == 2'b11)
  // Nothing is outstanding or abandoned: AW, W and the memory have nothing of the context.
  logic [1:0] f_rest;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_rest[c] = (aw_v_q && aw_id_q == c[0]) || f_job[c] || f_next[c] || (s1_v_q && s1_ctx_q == c[0]) || (w_v_q && w_ctx_q == c[0]) ||
                  f_asked_q[5*c +: 5] != '0 || f_sent_q[5*c +: 5] != '0;
    end
  end
  `CT_ASSERT(IdleIsIdle_A, !(put_q[4:0] == ans_q[4:0] && lost_q[4:0] == '0 && f_rest[0]) && !(put_q[9:5] == ans_q[9:5] && lost_q[9:5] == '0 && f_rest[1]))

  // Any burst of any context, by its number: from its grant to its end.
  (* anyconst *) logic       f_ctx;
  (* anyconst *) logic [4:0] f_pick;
  logic [WhoW-1:0]  f_who_q;
  logic [31:0]      f_addr_q;
  logic [EndW-1:0]  f_end_q;
  logic [4:0]       f_put, f_ans, f_sign, f_mark, f_lost;
  logic             f_grant;
  logic             f_in, f_old_q, f_old;      // granted, and its end not taken; it is of the job before
  logic             f_answer, f_good, f_bad;   // the oldest unanswered burst of the context is answered now; this one is, well, or with an error
  logic             f_turn;                    // its end is told
  logic             f_done_q, f_ended_q, f_olderr_q;  // it has been answered; its end has been taken
  logic [Ports-1:0] f_owner, f_mine;
  assign f_put    = f_ctx ? put_q[9:5] : put_q[4:0];
  assign f_ans    = f_ctx ? ans_q[9:5] : ans_q[4:0];
  assign f_sign   = f_ctx ? sig_q[9:5] : sig_q[4:0];
  assign f_mark   = f_ctx ? mark_q[9:5] : mark_q[4:0];
  assign f_lost   = f_ctx ? lost_q[9:5] : lost_q[4:0];
  assign f_grant  = grant && gnt[f_ctx] && f_put == f_pick;
  assign f_in     = 5'(f_pick - f_sign) < 5'(f_put - f_sign);
  assign f_old    = f_old_q || seal_i[f_ctx];
  assign f_answer = b_vld_q && bid == f_ctx && f_lost == '0 && f_ans != f_put;
  assign f_good   = f_answer && !b_err_q && f_ans == f_pick;
  assign f_bad    = f_answer && b_err_q && f_ans == f_pick && f_in;
  assign f_turn   = f_sign == f_pick && (f_sign != f_ans || (f_good && !f_old));
  assign f_mine   = f_ctx ? {Clients{2'b10}} : {Clients{2'b01}};
  always_comb begin
    for (int p = 0; p < Ports; p++) f_owner[p] = f_ctx == p[0] && f_who_q == WhoW'(p / 2);
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_old_q    <= 1'b0;
      f_olderr_q <= 1'b0;
    end else begin
      f_old_q    <= f_in && f_old && !abandon_i[f_ctx];
      f_olderr_q <= f_bad && f_old;
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_grant) begin
      for (int p = 0; p < Ports; p++) begin
        if (valid_i[p] && ready_o[p]) begin
          f_who_q  <= WhoW'(p / 2);
          f_addr_q <= addr_i[32*p +: 32];
          f_end_q  <= end_tag_i[EndW*p +: EndW];
        end
      end
      f_done_q  <= 1'b0;
      f_ended_q <= 1'b0;
    end else begin
      if (f_answer && f_ans == f_pick)                f_done_q  <= 1'b1;
      if (f_turn && (stay_i & end_o & f_owner) == '0) f_ended_q <= 1'b1;
    end
  end
  `CT_ASSERT(EntryKept_A, !f_in || (addr_mem[{f_ctx, f_pick[3:0]}] == {f_who_q, f_addr_q} &&
                          (f_ctx ? end1_mem[f_pick[3:0]] : end0_mem[f_pick[3:0]]) == {f_who_q, f_end_q}))
  `CT_ASSERT(OwnerKnown_A, !f_in || f_owner != '0)
  `CT_ASSERT(MarkInRing_A, !old_q[f_ctx] || (f_mark != f_sign && 5'(f_mark - f_sign) <= 5'(f_put - f_sign)))
  `CT_ASSERT(OldOwed_A, owed_q[f_ctx] == (old_q[f_ctx] && 5'(f_ans - f_sign) < 5'(f_mark - f_sign)))
  `CT_ASSERT(OldToMark_A, !f_in || f_old_q == (old_q[f_ctx] && 5'(f_pick - f_sign) < 5'(f_mark - f_sign)))
  `CT_ASSERT(DoneKnown_A, !f_in || f_done_q == (5'(f_pick - f_sign) < 5'(f_ans - f_sign)))
  // Its end: told to its owner, with its tag, after its answer, and once; under old_o if it is of the job before.
  `CT_ASSERT(EndToOwner_A, !f_turn || ((end_o & f_mine) == f_owner && (f_done_q || f_good) && end_tag_o[EndW*f_ctx +: EndW] == f_end_q &&
                           f_old_q == old_o[f_ctx]))
  `CT_ASSERT(NoOtherEnd_A, !((f_sign == f_ans && !(f_answer && !b_err_q)) || (f_sign == f_pick && !f_turn)) || (end_o & f_mine) == '0)
  `CT_ASSERT(EndOnce_A, !f_in || !f_ended_q)
  // An error: to its owner, with its address; of the job before apart; of an abandoned burst nowhere.
  `CT_ASSERT(ErrorToOwner_A, !f_bad || drop[f_ctx] || f_old || (fault_o == f_owner && fault_addr_o == f_addr_q))
  `CT_ASSERT(NoOtherError_A, fault_o == '0 || (b_vld_q && b_err_q && (bid ? lost_q[9:5] : lost_q[4:0]) == '0 && !drop[bid]))
  `CT_ASSERT(OldErrorApart_A, !f_olderr_q || (old_err_o == {f_ctx, !f_ctx} && old_err_addr_o == f_addr_q))
  `CT_ASSERT(OldErrorIsNone_A, !(f_bad && f_old) || fault_o == '0)

  // Idle is said by a client that has no entry, and by no other; W has no burst of it then, but abandoned ones.
  logic [Ports-1:0] f_stop_behind, f_stop_in;
  always_comb begin
    for (int p = 0; p < Ports; p++) begin
      f_stop_behind[p] = Clients == 1 || (busy_q[p] && 5'(stop_q[5*p +: 5] - f_sign) > 5'(f_pick - f_sign));
      f_stop_in[p]     = Clients == 1 || !busy[p] || 5'(stop_q[5*p +: 5] - sig_q[5*(p % 2) +: 5]) <= 5'(put_q[5*(p % 2) +: 5] - sig_q[5*(p % 2) +: 5]);
    end
  end
  `CT_ASSERT(StopBehind_A, !f_in || (f_owner & ~f_stop_behind) == '0)
  `CT_ASSERT(StopInRing_A, f_stop_in == '1)
  `CT_ASSERT(IdleHasNone_A, !f_in || (f_owner & idle_o) == '0)
  logic [4:0]       f_num, f_num_next;  // of the burst at hand, of the next one
  logic [Ports-1:0] f_job_port, f_next_port;
  assign f_num      = f_put - 5'd1 - 5'(f_next[f_ctx] && !f_next_lost_q);
  assign f_num_next = f_put - 5'd1;
  always_comb begin
    for (int p = 0; p < Ports; p++) begin
      f_job_port[p]  = job_q.ctx == p[0] && job_q.who == WhoW'(p / 2);
      f_next_port[p] = next_q.ctx == p[0] && next_q.who == WhoW'(p / 2);
    end
  end
  `CT_ASSERT(WithinOwned_A, (!(f_job[f_ctx] && !f_job_lost_q && f_num == f_pick) || (f_in && f_owner == f_job_port)) &&
                            (!(f_next[f_ctx] && !f_next_lost_q && f_num_next == f_pick) || (f_in && f_owner == f_next_port)))
  `CT_ASSERT(WithinHasEntry_A, (!(f_job[f_ctx] && !f_job_lost_q && f_num == f_pick) || (f_job_port & idle_o) == '0) &&
                               (!(f_next[f_ctx] && !f_next_lost_q && f_num_next == f_pick) || (f_next_port & idle_o) == '0))

  // W follows AW: bursts are numbered modulo 16 as they are granted and as their last beat goes; the burst of any number has the beats
  // that AW said, and its client is asked for them. Beats of the burst at the output that have gone: f_gone_q.
  (* anyconst *) logic [3:0] f_burst;
  logic [3:0]       f_granted_q, f_ended_at_q, f_jobs;
  logic [4:0]       f_beats_q, f_gone_q;
  job_t             f_job_q;
  logic [Ports-1:0] f_giver;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_granted_q  <= '0;
      f_ended_at_q <= '0;
      f_gone_q     <= '0;
    end else begin
      f_granted_q <= f_granted_q + 4'(grant);
      if (m_axi_wvalid_o && m_axi_wready_i) begin
        f_gone_q     <= m_axi_wlast_o ? 5'd0 : f_gone_q + 5'd1;
        f_ended_at_q <= f_ended_at_q + 4'(m_axi_wlast_o);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (grant && f_granted_q == f_burst) begin
      for (int p = 0; p < Ports; p++) begin
        if (ready_o[p]) begin
          f_job_q.ctx  <= p[0];
          f_job_q.who  <= WhoW'(p / 2);
          f_job_q.tag  <= tag_i[TagW*p +: TagW];
          f_job_q.at   <= at_i[AtW*p +: AtW];
          f_job_q.left <= beats_i[5*p +: 5];
        end
      end
    end
  end
  assign f_beats_q = f_job_q.left;
  always_comb begin
    for (int p = 0; p < Ports; p++) f_giver[p] = f_job_q.ctx == p[0] && f_job_q.who == WhoW'(p / 2);
  end
  // Bursts whose last beat is still to go: in the output register, in s1, at hand, next.
  logic       f_w_end, f_s1_end;
  logic [3:0] f_at_s1, f_at_job;   // numbers of the bursts in s1 and at hand
  logic [4:0] f_before;   // of that burst: gone and in the output register, when no last beat is in front of it
  assign f_w_end  = w_v_q && m_axi_wlast_o;
  assign f_s1_end = s1_v_q && s1_last_q;
  assign f_jobs   = 4'(f_w_end) + 4'(f_s1_end) + 4'(job_v_q) + 4'(next_v_q);
  assign f_at_s1  = f_ended_at_q + 4'(f_w_end);
  assign f_at_job = f_at_s1 + 4'(f_s1_end);
  assign f_before = f_w_end ? 5'd0 : f_gone_q + 5'(w_v_q);

  // (That a burst has 1 to 17 beats is assumed above, RequestFits_M.)
  logic f_fits;
  assign f_fits = f_beats_q != '0 && f_beats_q <= 5'd17;
  `CT_ASSERT(Numbered_A, 4'(f_granted_q - f_ended_at_q) == f_jobs && (f_gone_q == '0 || f_jobs != '0))
  `CT_ASSERT(AwOfBurst_A, !aw_v_q || f_burst != 4'(f_granted_q - 4'd1) || {aw_id_q, aw_beats_q} == {f_job_q.ctx, f_beats_q})
  `CT_ASSERT(NextBeats_A, !next_v_q || f_burst != 4'(f_at_job + 4'd1) || next_q == f_job_q)
  `CT_ASSERT(JobBeats_A, !job_v_q || f_burst != f_at_job || !f_fits || ({job_q.ctx, job_q.who, job_q.tag} == {f_job_q.ctx, f_job_q.who, f_job_q.tag} &&
             job_q.left != '0 && job_q.left <= f_beats_q && job_q.at == AtW'(f_job_q.at + AtW'(f_beats_q) - AtW'(job_q.left)) &&
             6'(f_s1_end ? 5'd0 : 6'(f_before) + 6'(s1_v_q)) + 6'(job_q.left) == 6'(f_beats_q)))
  `CT_ASSERT(PipeBeats_A, !f_s1_end || f_burst != f_at_s1 || !f_fits || 6'(f_before) + 6'd1 == 6'(f_beats_q))
  `CT_ASSERT(PipeOwner_A, !s1_v_q || f_burst != f_at_s1 || !f_fits || {s1_ctx_q, s1_who_q} == {f_job_q.ctx, f_job_q.who})
  `CT_ASSERT(OutBeats_A, !f_w_end || f_burst != f_ended_at_q || !f_fits || (w_ctx_q == f_job_q.ctx && 6'(f_gone_q) + 6'd1 == 6'(f_beats_q)))
  // The last beat is the last exactly.
  `CT_ASSERT(LastAtEnd_A, !m_axi_wvalid_o || f_burst != f_ended_at_q || !f_fits || m_axi_wlast_o == (6'(f_gone_q) + 6'd1 == 6'(f_beats_q)))
  // Its beats are asked of its owner, in their order, and what that gives is what goes out.
  logic [127:0] f_data_q;  // of its beat in the output register
  always_ff @(posedge clk_i) if (s1_v_q && adv && f_burst == f_at_s1) f_data_q <= data_i[128*f_job_q.who +: 128];
  `CT_ASSERT(BeatOfOwner_A, beat_o == '0 || f_burst != f_at_job || !f_fits || (beat_o == f_giver && beat_tag_o == f_job_q.tag &&
             beat_at_o == AtW'(f_job_q.at + AtW'(f_s1_end ? 5'd0 : f_before + 5'(s1_v_q))) &&
             beat_last_o == (6'(f_s1_end ? 5'd0 : f_before + 5'(s1_v_q)) + 6'd1 == 6'(f_beats_q))))
  `CT_ASSERT(DataOfOwner_A, !w_v_q || f_burst != f_ended_at_q || !f_fits || m_axi_wdata_o == f_data_q)
  logic [Ports-1:0] f_in_w;
  assign f_in_w = (job_v_q ? f_job_port : '0) | (next_v_q ? f_next_port : '0);
  `CT_ASSERT(WithinIsWithin_A, within_o == f_in_w)

  // Beats of W that pass while a ready burst of inference waits (PRIORITY, floor 0): those of the burst at hand and the one granted.
  logic [5:0] f_wait_q, f_ahead;
  logic       f_waits;
  assign f_waits = req[0] && qos_i[ct_pkg::QosStrict];
  assign f_ahead = 6'(w_v_q) + 6'(s1_v_q) + (job_v_q ? 6'(job_q.left) : 6'd0) + (next_v_q ? 6'(next_q.left) : 6'd0);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_wait_q <= '0;
    else if (!f_waits || (grant && gnt[0])) f_wait_q <= '0;
    else if (m_axi_wvalid_o && m_axi_wready_i) f_wait_q <= f_wait_q + 6'd1;
  end
  `CT_ASSERT(WaitAndAhead_A, f_wait_q + f_ahead <= 6'd21)
  `CT_ASSERT(WaitBound_A, f_wait_q <= 6'd21)
  `CT_ASSERT(NoneWhileWaiting_A, !f_waits || !(grant && who))

  // While the memory takes what it is given, no burst that the ring has room for waits for ever: cycles without a grant while one asks.
  logic [5:0] f_still_q, f_until;
  logic       f_stands;
  assign f_stands = req != 2'b00 && !grant && m_axi_awready_i && m_axi_wready_i;
  assign f_until  = (job_v_q ? 6'(job_q.left) : 6'd0) + (next_v_q ? 6'(next_q.left) : 6'd0) + 6'(aw_v_q);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)        f_still_q <= '0;
    else if (!f_stands) f_still_q <= '0;
    else                f_still_q <= f_still_q + 6'd1;
  end
  `CT_ASSERT(GrantNears_A, f_still_q == '0 || f_still_q + f_until <= 6'd20)
  `CT_ASSERT(GrantComes_A, f_still_q <= 6'd20)
  // Still: nothing of the context moves, is outstanding or asks.
  `CT_ASSERT(StillIsStill_A, (still_o & (f_job | f_next | want)) == 2'b00 && !(still_o[0] && put_q[4:0] != ans_q[4:0]) &&
                             !(still_o[1] && put_q[9:5] != ans_q[9:5]))
