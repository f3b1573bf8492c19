// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_ld (tb/formal/ct_dma_ld.proof), included at its end.

  // The walkers are proven by themselves and cut away here: this is what they keep to.
  logic [1:0] f_piece, f_burst;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_piece[c] = !drop[c] && seq_beats[5*c +: 5] != '0 && seq_beats[5*c +: 5] <= 5'd17 && 9'(seq_addr[32*c +: 8]) + 9'(seq_beats[5*c +: 5]) <= 9'd256;
      f_burst[c] = !drop[c] && f_beats[5*c +: 5] != '0 && f_beats[5*c +: 5] <= 5'd16 && 9'(f_addr[32*c +: 8]) + 9'(f_beats[5*c +: 5]) <= 9'd256;
    end
  end
  `CT_ASSUME(LoadPieces_M, (seq_valid & ~f_piece) == 2'b00)
  `CT_ASSUME(FetchBursts_M, (f_valid & ~f_burst) == 2'b00)
  `CT_ASSUME(AbandonUnderFlush_M, (abandon_i & ~flush_i) == 2'b00)

  // A burst of the memory has at most the 17 beats that were asked for.
  logic [9:0] f_come_q;  // beats of the burst of each context that have come
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_come_q <= '0;
    else if (r_vld_q && !rid) f_come_q[4:0] <= r_last_q ? 5'd0 : f_come_q[4:0] + 5'd1;
    else if (r_vld_q)         f_come_q[9:5] <= r_last_q ? 5'd0 : f_come_q[9:5] + 5'd1;
  end
  `CT_ASSUME(LastInTime_M, !r_vld_q || r_last_q || (rid ? f_come_q[9:5] : f_come_q[4:0]) < 5'd16)
  `CT_ASSUME(AnswersAreAsked_M, !r_vld_q || (rid ? lost_q[7:4] != '0 || land_q[7:4] != put_q[7:4] : lost_q[3:0] != '0 || land_q[3:0] != put_q[3:0]))

  // AR as the memory sees it.
  logic        f_ar_kept_q;
  logic [44:0] f_ar_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_ar_kept_q <= 1'b0;
    else         f_ar_kept_q <= m_axi_arvalid_o && !m_axi_arready_i;
  end
  always_ff @(posedge clk_i) f_ar_q <= {m_axi_arid_o, m_axi_araddr_o, m_axi_arlen_o};
  `CT_ASSERT(ArKept_A, !f_ar_kept_q || (m_axi_arvalid_o && f_ar_q == {m_axi_arid_o, m_axi_araddr_o, m_axi_arlen_o}))
  `CT_ASSERT(ArInPage_A, !m_axi_arvalid_o || (m_axi_arlen_o <= 8'd16 && 13'(m_axi_araddr_o[11:0]) + ((13'(m_axi_arlen_o) + 13'd1) << 4) <= 13'd4096))
  `CT_ASSERT(ArRange_A, !ar_v_q || (ar_beats_q != '0 && ar_beats_q <= 5'd17))

  // Any burst of any context, from its grant to its signals.
  (* anyconst *) logic       f_ctx;
  (* anyconst *) logic [3:0] f_pick;
  logic [3:0]       f_meta_q;   // its flags: fetch, last of the fetch, record, first of the run
  logic [9:0]       f_sig_q;
  logic [3:0]       f_put, f_land, f_sign, f_lost;
  logic             f_in;       // granted, and its signals not all given
  logic             f_turn;     // its signals are given now
  logic             f_turn_q, f_beat_q;
  assign f_put  = f_ctx ? put_q[7:4] : put_q[3:0];
  assign f_land = f_ctx ? land_q[7:4] : land_q[3:0];
  assign f_sign = f_ctx ? sig_q[7:4] : sig_q[3:0];
  assign f_lost = f_ctx ? lost_q[7:4] : lost_q[3:0];
  assign f_in   = 4'(f_pick - f_sign) < 4'(f_put - f_sign);
  assign f_turn = f_sign == f_pick && f_sign != f_land && !drop[f_ctx];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_turn_q  <= 1'b0;
      f_beat_q  <= 1'b0;
    end else begin
      f_turn_q  <= f_turn;
      f_beat_q  <= r_ours && !r_fault && !drop[f_ctx] && rid == f_ctx && f_land == f_pick && f_meta_q[3];
    end
  end
  always_ff @(posedge clk_i) begin
    if (grant && gnt[f_ctx] && f_put == f_pick) begin
      f_meta_q <= {who_fetch, who_fetch && f_last[who], !who_fetch && seq_rec[who], seq_first[who]};
      f_sig_q  <= who_fetch ? 10'd0 : put_sig;
    end
  end
  `CT_ASSERT(EntryKept_A, !f_in || (4'(meta_mem[{f_ctx, f_pick[2:0]}]) == f_meta_q && sig_mem[{f_ctx, f_pick[2:0]}] == f_sig_q))
  `CT_ASSERT(OrderOfPointers_A, 4'(f_land - f_sign) <= 4'(f_put - f_sign) && 4'(f_put - f_sign) <= 4'd8 && f_lost <= 4'd8)
  `CT_ASSERT(SecondOfTwo_A, !second_q[f_ctx] || (f_sign != f_land))
  // Its owner alone hears of it, once: the signals in its turn are its own, and there is no turn but after its last beat.
  logic [15:0] f_want_inc;
  logic        f_other_q;
  always_comb begin
    for (int s = 0; s < 16; s++) f_want_inc[s] = f_sig_q[4:0] == {1'b1, 4'(s)} || f_sig_q[9:5] == {1'b1, 4'(s)};
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_other_q <= 1'b0;
    else         f_other_q <= f_sign == f_land;
  end
  `CT_ASSERT(OwnerHears_A, !f_turn_q || (f_ctx ? inc_q[31:16] : inc_q[15:0]) == f_want_inc)
  `CT_ASSERT(NothingElseHeard_A, !f_other_q || (f_ctx ? inc_q[31:16] : inc_q[15:0]) == 16'd0)
  logic [1:0] f_times_q;        // how often it has given its signals
  logic       f_twice;
  assign f_twice = f_sig_q[9] && f_sig_q[9:5] == f_sig_q[4:0];
  always_ff @(posedge clk_i) begin
    if (grant && gnt[f_ctx] && f_put == f_pick) f_times_q <= 2'd0;
    else if (f_turn && !f_times_q[1])           f_times_q <= f_times_q + 2'd1;
  end
  `CT_ASSERT(TimesCounted_A, !f_in || (f_sign == f_pick && second_q[f_ctx] ? f_times_q == 2'd1 && f_twice : f_times_q == 2'd0))
  `CT_ASSERT(HeardOnce_A, !f_turn || f_times_q == 2'd0 || (f_times_q == 2'd1 && f_twice))
  `CT_ASSERT(FetchToOwner_A, !f_beat_q || fetch_rvalid_o == ({f_ctx, !f_ctx} & ~drop))
  `CT_ASSERT(OneFetcher_A, fetch_rvalid_o != 2'b11)

  // Training: its bursts on their way, and the beats of it that come while inference waits for a grant or for its next beat
  // (PRIORITY, floor 0).
  (* anyconst *) logic [3:0] f_cap;
  logic        f_const_q, f_waits;
  logic [3:0]  f_most;  // bursts that TRAIN_CAP allows
  logic [8:0]  f_wait_q, f_owed;
  logic [3:0]  f_trn;
  assign f_most  = f_cap == 4'd0 ? 4'd1 : f_cap > 4'd8 ? 4'd8 : f_cap;
  assign f_trn   = 4'(put_q[7:4] - land_q[7:4]) + lost_q[7:4];
  assign f_owed  = 9'd17 * 9'(f_trn) - 9'(f_come_q[9:5]);
  assign f_waits = ((want[0] && req[0]) || ((want[0] || out[0]) && patience_q != '0)) && qos_i[ct_pkg::QosStrict];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_const_q <= 1'b1;
      f_wait_q  <= '0;
    end else begin
      f_const_q <= f_const_q && train_cap_i == f_cap;
      if (!f_waits || (r_vld_q && !rid)) f_wait_q <= '0;
      else if (r_vld_q)                  f_wait_q <= f_wait_q + 9'd1;
    end
  end
  logic f_capped;
  assign f_capped = f_const_q && train_cap_i == f_cap;
  // Room as it was in the last cycle, in which nothing was granted.
  logic [3:0] f_count0, f_count1;
  assign f_count0 = 4'(put_q[3:0] - sig_q[3:0]) + lost_q[3:0];
  assign f_count1 = 4'(put_q[7:4] - sig_q[7:4]) + lost_q[7:4];
  `CT_ASSERT(RoomLeft_A, ar_v_q || ((!room_q[0] || f_count0 < 4'd8) && (!room_q[1] || f_count1 < 4'd8)))
  `CT_ASSERT(RoomOfCap_A, ar_v_q || !f_capped || !room_q[1] || f_count1 < f_most)
  `CT_ASSERT(TrainCap_A, !f_capped || 4'(put_q[7:4] - sig_q[7:4]) + lost_q[7:4] <= f_most)
  `CT_ASSERT(Begun_A, f_come_q[9:5] <= 5'd16 && f_come_q[4:0] <= 5'd16 && (f_come_q[9:5] == '0 || f_trn != '0))
  `CT_ASSERT(NoneWhileWaiting_A, !f_waits || !(grant && who))
  `CT_ASSERT(WaitAndOwed_A, !f_capped || f_wait_q + f_owed <= 9'd17 * 9'(f_most))
  `CT_ASSERT(WaitBound_A, !f_capped || f_wait_q <= 9'd17 * 9'(f_most))
