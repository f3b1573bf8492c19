// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_rd (tb/formal/ct_dma_rd.proof), included at its end.

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

  // Any burst of any context, from its grant to its end.
  (* anyconst *) logic       f_ctx;
  (* anyconst *) logic [3:0] f_pick;
  logic [WhoW-1:0]  f_who_q;
  logic [31:0]      f_addr_q;
  logic [TagW-1:0]  f_tag_q;
  logic [EndW-1:0]  f_end_q;
  logic             f_done_q;   // its last beat has come
  logic             f_ended_q;  // its end has been taken
  logic [3:0]       f_put, f_land, f_sign, f_lost;
  logic             f_grant;
  logic             f_in;       // granted, and its end not taken
  logic             f_beat;     // a beat of it comes
  logic             f_turn;     // its end is told
  logic [Ports-1:0] f_owner;
  assign f_put   = f_ctx ? put_q[7:4] : put_q[3:0];
  assign f_land  = f_ctx ? land_q[7:4] : land_q[3:0];
  assign f_sign  = f_ctx ? sig_q[7:4] : sig_q[3:0];
  assign f_lost  = f_ctx ? lost_q[7:4] : lost_q[3:0];
  assign f_grant = grant && gnt[f_ctx] && f_put == f_pick;
  assign f_in    = 4'(f_pick - f_sign) < 4'(f_put - f_sign);
  assign f_beat  = r_ours && rid == f_ctx && f_land == f_pick;
  assign f_turn  = f_sign == f_pick && f_sign != f_land;
  always_comb begin
    for (int p = 0; p < Ports; p++) f_owner[p] = f_ctx == p[0] && f_who_q == WhoW'(p / 2);
  end
  always_ff @(posedge clk_i) begin
    if (f_grant) begin
      for (int p = 0; p < Ports; p++) begin
        if (valid_i[p] && ready_o[p]) begin
          f_who_q  <= WhoW'(p / 2);
          f_addr_q <= addr_i[32*p +: 32];
          f_tag_q  <= tag_i[TagW*p +: TagW];
          f_end_q  <= end_tag_i[EndW*p +: EndW];
        end
      end
      f_done_q  <= 1'b0;
      f_ended_q <= 1'b0;
    end else begin
      if (f_beat && beat_last_o)                 f_done_q  <= 1'b1;
      if (f_turn && (stay_i & end_o & f_owner) == '0) f_ended_q <= 1'b1;
    end
  end
  `CT_ASSERT(EntryKept_A, !f_in || (meta_mem[{f_ctx, f_pick[2:0]}] == {f_who_q, f_addr_q, f_tag_q} && end_mem[{f_ctx, f_pick[2:0]}] == {f_who_q, f_end_q}))
  `CT_ASSERT(OrderOfPointers_A, 4'(f_land - f_sign) <= 4'(f_put - f_sign) && 4'(f_put - f_sign) <= 4'd8 && f_lost <= 4'd8)
  `CT_ASSERT(ReadyIsAsked_A, (ready_o & ~valid_i) == '0 && (ready_o & (ready_o - Ports'(1))) == '0 && grant == (ready_o != '0))
  logic f_first;  // of the clients of a context that ask the first is taken
  always_comb begin
    f_first = 1'b1;
    for (int p = 2; p < Ports; p++) begin
      for (int q = p % 2; q < p; q += 2) if (ready_o[p] && valid_i[q]) f_first = 1'b0;
    end
  end
  `CT_ASSERT(FirstClientFirst_A, f_first)

  // Its beats: to its owner, with its tag; and there are no others.
  `CT_ASSERT(BeatToOwner_A, !f_beat || drop[f_ctx] || ((beat_o | fault_o) == f_owner && (beat_o == '0) == r_err_q && beat_ctx_o == f_ctx &&
                            beat_tag_o == f_tag_q && beat_addr_o == f_addr_q))
  `CT_ASSERT(NoOtherBeat_A, (r_ours && !drop[rid]) || (beat_o | fault_o) == '0)
  `CT_ASSERT(LostUnheard_A, !r_vld_q || (rid ? lost_q[7:4] : lost_q[3:0]) == '0 || (beat_o | fault_o) == '0)
  `CT_ASSERT(ComesOfAsked_A, f_come_q[4:0] == '0 || lost_q[3:0] != '0 || land_q[3:0] != put_q[3:0])
  `CT_ASSERT(BegunKnown_A, begun_q == {f_come_q[9:5] != '0 && lost_q[7:4] == '0, f_come_q[4:0] != '0 && lost_q[3:0] == '0})
  `CT_ASSERT(FirstOfBurst_A, !r_ours || beat_first_o == ((rid ? f_come_q[9:5] : f_come_q[4:0]) == '0))
  logic         f_data_v_q;
  logic [127:0] f_data_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_data_v_q <= 1'b0;
    else         f_data_v_q <= beat_o != '0;
  end
  always_ff @(posedge clk_i) f_data_q <= r_data_q;
  `CT_ASSERT(DataFollows_A, !f_data_v_q || data_o == f_data_q)

  // Its end: told to its owner, with its tag, after its last beat, and once.
  `CT_ASSERT(DoneKnown_A, !f_in || f_done_q == (4'(f_pick - f_sign) < 4'(f_land - f_sign)))
  `CT_ASSERT(EndToOwner_A, !f_turn || ((end_o & (f_ctx ? {Clients{2'b10}} : {Clients{2'b01}})) == f_owner && f_done_q &&
                           end_tag_o[EndW*f_ctx +: EndW] == f_end_q))
  `CT_ASSERT(NoOtherEnd_A, f_sign != f_land || (end_o & (f_ctx ? {Clients{2'b10}} : {Clients{2'b01}})) == '0)
  `CT_ASSERT(EndOnce_A, !f_in || !f_ended_q)

  // Idle is said by a client that has no entry, and by no other.
  logic [Ports-1:0] f_stop_behind, f_stop_in;
  always_comb begin
    for (int p = 0; p < Ports; p++) begin
      f_stop_behind[p] = busy_q[p] && 4'(stop_q[4*p +: 4] - f_sign) > 4'(f_pick - f_sign);
      f_stop_in[p]     = !busy[p] || 4'(stop_q[4*p +: 4] - sig_q[4*(p % 2) +: 4]) <= 4'(put_q[4*(p % 2) +: 4] - sig_q[4*(p % 2) +: 4]);
    end
  end
  `CT_ASSERT(StopBehind_A, !f_in || (f_owner & ~f_stop_behind) == '0)
  `CT_ASSERT(StopInRing_A, f_stop_in == '1)
  `CT_ASSERT(IdleHasNone_A, !f_in || (f_owner & idle_o) == '0)
  `CT_ASSERT(OwnerKnown_A, !f_in || f_owner != '0)

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
