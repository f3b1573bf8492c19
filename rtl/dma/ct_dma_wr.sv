// SPDX-License-Identifier: Apache-2.0
//
// The writes of the DMA: AW, W and B for N clients of two contexts each, over one ring of outstanding bursts a context. A client says
// which burst it has and gives its beats; it knows neither the bus nor its neighbours. (docs/architecture.md: how to add one.)
//
//     client 0 ─┐ per context, the first             ┌─> AW
//     client 1 ─┼─> ct_arbiter ─> burst of W ────────┴─> beat_o ─> client ─> data_i ─> W     B ─> entry ─> fault_o, end_o: the client
//     client 2 ─┘        └─> entry of the burst ────────────────────────────────────────────────^       whose burst it is
//
// Ports       bit 2*k + c is of client k, context c (0 inference, 1 training); the ID on the bus is the context.
// Request     valid_i with address (units of 16 bytes), beats (1..17, not beyond 4 KB), at_i, tag_i and end_tag_i holds until ready_o, but
//             under flush_i or halt_i, when nobody asks. All data of the burst must be at hand: W never waits for a client. It must lie in
//             the window of its context: the client has looked. Of the clients of a context that ask, the lowest number goes first.
// Grant       of AW and W together, per burst under every policy, when at most two beats of the burst before it are left and the memory has
//             taken its address: inference waits for no more than the burst under way and one granted in its last two beats.
// Beat        beat_o with the burst's tag and beat_at_o, which counts up from the burst's at_i, and beat_last_o; the client drives data_i from
//             the next cycle on until the beat after it is asked for. Bursts come in the order of the grants, flushed or not: what was granted is
//             always finished, and its client keeps its data while within_o. The data of a client that is not asked are not looked at.
// Entries     every burst has an entry in a ring of its context (16 of them) from its grant until its client has taken its end. BREADY is
//             constant. An ID's answers come in order, so the ring's second pointer (ans) finds the entry of every answer.
// End         end_o with the burst's end_tag_i, in the cycle in which its answer is looked at (after an error the next one) or later, until the client no
//             longer answers with stay_i: a burst in every cycle, in the order of the grants.
// Error       fault_o with the address of the burst, to the client whose burst it is; under flush_i[c] and halt_i[c] nobody hears of it. Its end is told.
// Seal        seal_i[c], a pulse while nobody of c asks, makes all bursts outstanding those of the job before: an error answer is no fault but a
//             pulse of old_err_o[c] with old_err_addr_o, under flush_i[c] and halt_i[c], too. old_o[c] is high from the next cycle until the last
//             of their ends has been taken: an end under old_o[c] is of the job before. One job before at a time.
// Abandoned   bursts (abandon_i, under flush_i) have no entries any more; as many answers of the context are dropped when they come. They keep their
//             places in the ring: a context with 16 lost bursts writes nothing more until a reset.
// Latency     request in t: AW in t + 1, its first beat asked for in t + 1, on W in t + 3. B in t: end_o in t + 1.
// Throughput  a burst in every second cycle, a beat a cycle without a gap between bursts.
// Idle        idle_o: the client has no entry. still_o[c]: nothing of c moves or is outstanding, and no client has anything to write.
//
// Parameters
//   Clients  1 .. 8
//   AtW      bits of at_i: where the burst's data lie with its client
//   TagW     bits of tag_i, which come back with each beat
//   EndW     bits of end_tag_i, which come back with the end

`default_nettype none
`include "ct_assert.svh"

module ct_dma_wr #(
  parameter int unsigned  Clients = 1,
  parameter int unsigned  AtW     = 5,
  parameter int unsigned  TagW    = 8,
  parameter int unsigned  EndW    = 8,
  localparam int unsigned Ports   = 2 * Clients
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,

  input  logic [ct_pkg::QosW-1:0]     qos_i,
  input  logic                        freeze_i,
  input  logic [1:0]                  flush_i,
  input  logic [1:0]                  halt_i,
  input  logic [1:0]                  abandon_i,
  input  logic [1:0]                  seal_i,
  output logic [1:0]                  old_o,
  output logic [1:0]                  old_err_o,
  output logic [31:0]                 old_err_addr_o,

  input  logic [Ports-1:0]            valid_i,
  input  logic [32*Ports-1:0]         addr_i,
  input  logic [5*Ports-1:0]          beats_i,
  input  logic [AtW*Ports-1:0]        at_i,
  input  logic [TagW*Ports-1:0]       tag_i,
  input  logic [EndW*Ports-1:0]       end_tag_i,
  output logic [Ports-1:0]            ready_o,
  input  logic [Ports-1:0]            busy_i,       // has something to write that is not on offer yet

  output logic [Ports-1:0]            beat_o,
  output logic [AtW-1:0]              beat_at_o,
  output logic [TagW-1:0]             beat_tag_o,
  output logic                        beat_last_o,
  input  logic [128*Clients-1:0]      data_i,

  output logic [Ports-1:0]            fault_o,
  output logic [31:0]                 fault_addr_o,
  output logic [Ports-1:0]            end_o,
  output logic [2*EndW-1:0]           end_tag_o,
  input  logic [Ports-1:0]            stay_i,

  output logic [Ports-1:0]            within_o,     // W has a burst of the client, or will have in the next cycle
  output logic [Ports-1:0]            idle_o,
  output logic [1:0]                  still_o,

  output logic                        m_axi_awvalid_o,
  input  logic                        m_axi_awready_i,
  output logic                        m_axi_awid_o,
  output logic [ct_pkg::AxiAddrW-1:0] m_axi_awaddr_o,
  output logic [7:0]                  m_axi_awlen_o,
  output logic                        m_axi_wvalid_o,
  input  logic                        m_axi_wready_i,
  output logic [127:0]                m_axi_wdata_o,
  output logic                        m_axi_wlast_o,
  input  logic                        m_axi_bvalid_i,
  input  logic                        m_axi_bid_i,
  input  logic [1:0]                  m_axi_bresp_i,

  output logic [1:0]                  ev_beats_o,
  output logic [1:0]                  ev_wait_arb_o,
  output logic [1:0]                  ev_wait_mem_o,
  output logic [9:0]                  probe_o  // complete, accept (last beat), slot used (a beat), granted, ready (see ct_core)
);

  if (Clients < 1 || Clients > 8 || AtW < 1 || TagW < 1 || EndW < 1) begin : g_check
    ct_error_dma_wr_needs_1_to_8_clients_with_tags u_error ();
  end

  localparam int unsigned WhoW = (Clients > 1) ? $clog2(Clients) : 1;

  logic [1:0] drop;
  assign drop = flush_i | halt_i;

  // B as it came: nothing of the memory's stands in front of the entries.
  logic b_vld_q, b_err_q, bid;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) b_vld_q <= 1'b0;
    else         b_vld_q <= m_axi_bvalid_i;
  end
  always_ff @(posedge clk_i) begin
    bid     <= m_axi_bid_i;
    b_err_q <= m_axi_bresp_i[1];
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Rings of entries and the grant. Pointers run modulo 32, entries modulo 16: put = next free, ans = answered now, sig = its end is
  // told now.

  logic [9:0]         put_d, put_q, ans_d, ans_q, sig_d, sig_q;
  logic [9:0]         lost_d, lost_q;  // abandoned bursts whose answers may still come
  logic [WhoW+31:0]   addr_mem [0:31];  // for an error; what an end needs is kept by context

  // Of the clients of a context the first that asks.
  logic [Ports-1:0] pick;
  logic [1:0]       want, more;
  always_comb begin
    want = 2'b00;
    more = 2'b00;
    pick = '0;
    for (int k = 0; k < Clients; k++) begin
      pick[2*k +: 2] = valid_i[2*k +: 2] & ~want;
      want           = want | valid_i[2*k +: 2];
      more           = more | busy_i[2*k +: 2];
    end
  end

  logic [1:0] req, gnt;
  logic [1:0] room_d, room_q;  // for one more burst, if none was granted in the last cycle
  logic       aw_v_q, take, grant;
  logic       who;             // context granted

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      room_d[c] = (put_q[5*c +: 5] - sig_q[5*c +: 5]) + lost_q[5*c +: 5] < 5'd16;
      req[c]    = want[c] && !freeze_i && room_q[c];
    end
  end

  ct_arbiter u_aw_arbiter (
    .clk_i, .rst_ni, .qos_i,
    .flush_i (drop),
    .req_i   (req),
    .defer_i (1'b0),
    .last_i  (2'b11),
    .take_i  (take),
    .gnt_o   (gnt)
  );

  assign grant   = take && gnt != 2'b00;
  assign who     = gnt[1];
  assign ready_o = grant ? pick & {Clients{gnt}} : '0;

  // The burst that is granted. (No variable part-selects here: Yosys makes shifters of them.)
  typedef struct packed {
    logic            ctx;
    logic [WhoW-1:0] who;
    logic [TagW-1:0] tag;
    logic [AtW-1:0]  at;    // of the next beat
    logic [4:0]      left;  // beats left
  } job_t;

  logic [31:0]     aw_addr_d, aw_addr_q;
  logic [4:0]      aw_beats_q;
  logic            aw_id_q;
  logic [EndW-1:0] put_end;
  job_t            new_job;

  always_comb begin
    aw_addr_d   = '0;
    put_end     = '0;
    new_job     = '0;
    new_job.ctx = who;
    for (int p = 0; p < Ports; p++) begin
      if (pick[p] && gnt[p % 2]) begin
        aw_addr_d    = aw_addr_d | addr_i[32*p +: 32];
        put_end      = put_end | end_tag_i[EndW*p +: EndW];
        new_job.who  = new_job.who | WhoW'(p / 2);
        new_job.tag  = new_job.tag | tag_i[TagW*p +: TagW];
        new_job.at   = new_job.at | at_i[AtW*p +: AtW];
        new_job.left = new_job.left | beats_i[5*p +: 5];
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_v_q <= 1'b0;
      room_q <= 2'b00;
    end else begin
      aw_v_q <= grant || (aw_v_q && !m_axi_awready_i);
      room_q <= room_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (grant) begin
      aw_id_q    <= who;
      aw_addr_q  <= aw_addr_d;
      aw_beats_q <= new_job.left;
      addr_mem[{who, who ? put_q[8:5] : put_q[3:0]}] <= {new_job.who, aw_addr_d};
    end
  end

  assign m_axi_awvalid_o = aw_v_q;
  assign m_axi_awid_o    = aw_id_q;
  assign m_axi_awaddr_o  = {aw_addr_q, 4'd0};
  assign m_axi_awlen_o   = {3'd0, aw_beats_q} - 8'd1;

  // ---------------------------------------------------------------------------------------------------------------------------
  // W: the burst being sent and the next one. A beat is asked for (step), its data are at data_i (s1), then in the output register.

  job_t            job_q, next_q;
  logic            job_v_d, job_v_q, next_v_d, next_v_q;
  logic            step, job_end, job_free;
  logic            s1_v_q, s1_ctx_q, s1_last_q;
  logic [WhoW-1:0] s1_who_q;
  logic            w_v_q, w_ctx_q;
  logic            adv;       // the output register takes a beat

  assign take     = !aw_v_q && !next_v_q && (!job_v_q || job_q.left <= 5'd2);
  assign adv      = !w_v_q || m_axi_wready_i;
  assign step     = job_v_q && (!s1_v_q || adv);
  assign job_end  = step && job_q.left == 5'd1;
  assign job_free = !job_v_q || job_end;

  assign beat_at_o   = job_q.at;
  assign beat_tag_o  = job_q.tag;
  assign beat_last_o = job_q.left == 5'd1;
  always_comb begin
    for (int p = 0; p < Ports; p++) begin
      beat_o[p]   = step && job_q.ctx == p[0] && (Clients == 1 || job_q.who == WhoW'(p / 2));
      within_o[p] = (job_v_q && job_q.ctx == p[0] && (Clients == 1 || job_q.who == WhoW'(p / 2))) ||
                    (next_v_q && next_q.ctx == p[0] && (Clients == 1 || next_q.who == WhoW'(p / 2)));
    end
  end

  always_comb begin
    job_v_d  = job_v_q && !job_end;
    next_v_d = next_v_q;
    if (job_free && next_v_q) begin
      job_v_d  = 1'b1;
      next_v_d = 1'b0;
    end
    if (grant) begin
      if (job_free) job_v_d = 1'b1;
      else          next_v_d = 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      job_v_q    <= 1'b0;
      next_v_q   <= 1'b0;
      s1_v_q     <= 1'b0;
      w_v_q      <= 1'b0;
      ev_beats_o <= 2'b00;
    end else begin
      job_v_q    <= job_v_d;
      next_v_q   <= next_v_d;
      s1_v_q     <= step || (s1_v_q && !adv);
      w_v_q      <= s1_v_q || (w_v_q && !m_axi_wready_i);
      ev_beats_o <= (w_v_q && m_axi_wready_i) ? {w_ctx_q, !w_ctx_q} : 2'b00;
    end
  end

  always_ff @(posedge clk_i) begin
    if (job_free && next_v_q) begin
      job_q <= next_q;
    end else if (job_free && grant) begin
      job_q <= new_job;
    end else if (step) begin
      job_q.at   <= job_q.at + AtW'(1);
      job_q.left <= job_q.left - 5'd1;
    end
    if (grant) next_q <= new_job;
    if (step) begin
      s1_ctx_q  <= job_q.ctx;
      s1_who_q  <= job_q.who;
      s1_last_q <= beat_last_o;
    end
  end

  logic [127:0] data;
  always_comb begin
    data = '0;
    for (int k = 0; k < Clients; k++) begin
      if (Clients == 1 || s1_who_q == WhoW'(k)) data = data | data_i[128*k +: 128];
    end
  end

  always_ff @(posedge clk_i) begin
    if (s1_v_q && adv) begin
      m_axi_wdata_o <= data;
      m_axi_wlast_o <= s1_last_q;
      w_ctx_q       <= s1_ctx_q;
    end
  end

  assign m_axi_wvalid_o = w_v_q;

  // ---------------------------------------------------------------------------------------------------------------------------
  // B: whose burst is answered.

  logic [1:0]      old_d, old_q;    // bursts of the job before are outstanding:
  logic [9:0]      mark_d, mark_q;  // those before this entry
  logic [1:0]      owed_d, owed_q;  // and some of their answers (new ones may come before the ends of all are taken)
  logic            b_lost, b_ours, b_old;
  logic [WhoW-1:0] b_who;
  assign b_lost = b_vld_q && (bid ? lost_q[9:5] : lost_q[4:0]) != 5'd0;
  assign b_ours = b_vld_q && !b_lost && (bid ? ans_q[9:5] != put_q[9:5] : ans_q[4:0] != put_q[4:0]);
  assign b_old  = bid ? seal_i[1] || owed_q[1] : seal_i[0] || owed_q[0];
  always_comb begin
    {b_who, fault_addr_o} = '0;
    if (b_ours && b_err_q) {b_who, fault_addr_o} = addr_mem[{bid, bid ? ans_q[8:5] : ans_q[3:0]}];
  end
  always_comb begin
    for (int p = 0; p < Ports; p++) begin
      fault_o[p] = b_ours && b_err_q && !b_old && bid == p[0] && !drop[p % 2] && (Clients == 1 || b_who == WhoW'(p / 2));
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) old_err_o <= 2'b00;
    else         old_err_o <= (b_ours && b_old && b_err_q) ? {bid, !bid} : 2'b00;
  end
  always_ff @(posedge clk_i) begin
    if (b_ours && b_err_q) old_err_addr_o <= fault_addr_o;
  end

  // Ends. The last answer is the end at once, unless it is an error or the old job's.
  logic [1:0]        answered, stay;
  logic [2*WhoW-1:0] end_who;
  logic [WhoW+EndW-1:0] end0_mem [0:15];
  logic [WhoW+EndW-1:0] end1_mem [0:15];
  always_ff @(posedge clk_i) begin
    if (grant && !who) end0_mem[put_q[3:0]] <= {new_job.who, put_end};
    if (grant && who)  end1_mem[put_q[8:5]] <= {new_job.who, put_end};
  end
  assign {end_who[0 +: WhoW], end_tag_o[0 +: EndW]}       = end0_mem[sig_q[3:0]];
  assign {end_who[WhoW +: WhoW], end_tag_o[EndW +: EndW]} = end1_mem[sig_q[8:5]];
  always_comb begin
    for (int c = 0; c < 2; c++) answered[c] = sig_q[5*c +: 5] != ans_q[5*c +: 5] || (b_ours && bid == c[0] && !b_err_q && !b_old);
  end
  always_comb begin
    for (int p = 0; p < Ports; p++) end_o[p] = answered[p % 2] && (Clients == 1 || end_who[WhoW*(p % 2) +: WhoW] == WhoW'(p / 2));
  end
  // (Two processes, or the tools see a loop from an end to itself.)
  always_comb begin
    stay = 2'b00;
    for (int p = 0; p < Ports; p++) begin
      if (end_o[p] && stay_i[p]) stay[p % 2] = 1'b1;
    end
  end

  always_comb begin
    put_d  = put_q;
    ans_d  = ans_q;
    sig_d  = sig_q;
    lost_d = lost_q;
    mark_d = mark_q;
    old_d  = old_q;
    owed_d = owed_q;
    for (int c = 0; c < 2; c++) begin
      if (grant && gnt[c]) put_d[5*c +: 5] = put_q[5*c +: 5] + 5'd1;
      if (b_lost && bid == c[0]) lost_d[5*c +: 5] = lost_q[5*c +: 5] - 5'd1;
      if (b_ours && bid == c[0]) ans_d[5*c +: 5] = ans_q[5*c +: 5] + 5'd1;
      if (answered[c] && !stay[c]) sig_d[5*c +: 5] = sig_q[5*c +: 5] + 5'd1;
      if (abandon_i[c]) begin
        lost_d[5*c +: 5] = lost_d[5*c +: 5] + (put_d[5*c +: 5] - ans_d[5*c +: 5]);
        put_d[5*c +: 5]  = 5'd0;
        ans_d[5*c +: 5]  = 5'd0;
        sig_d[5*c +: 5]  = 5'd0;
      end
      mark_d[5*c +: 5] = seal_i[c] ? put_d[5*c +: 5] : mark_q[5*c +: 5];
      owed_d[c] = (seal_i[c] || owed_q[c]) && ans_d[5*c +: 5] != mark_d[5*c +: 5] && !abandon_i[c];
      old_d[c]  = (seal_i[c] || old_q[c]) && sig_d[5*c +: 5] != mark_d[5*c +: 5] && !abandon_i[c];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      put_q  <= '0;
      ans_q  <= '0;
      sig_q  <= '0;
      lost_q <= '0;
      mark_q <= '0;
      old_q  <= '0;
      owed_q <= '0;
    end else begin
      put_q  <= put_d;
      ans_q  <= ans_d;
      sig_q  <= sig_d;
      lost_q <= lost_d;
      mark_q <= mark_d;
      old_q  <= old_d;
      owed_q <= owed_d;
    end
  end
  assign old_o = old_q;

  // Who has entries: of more than one client, where the last one of each ends.
  logic [Ports-1:0]   busy, busy_q;
  logic [5*Ports-1:0] stop_q;
  always_comb begin
    for (int p = 0; p < Ports; p++) begin
      busy[p] = (Clients == 1) ? sig_q[5*(p % 2) +: 5] != put_q[5*(p % 2) +: 5] : busy_q[p] && sig_q[5*(p % 2) +: 5] != stop_q[5*p +: 5];
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) busy_q <= '0;
    else         busy_q <= ready_o | (busy & ~{Clients{abandon_i}});
  end
  always_ff @(posedge clk_i) begin
    for (int p = 0; p < Ports; p++) begin
      if (ready_o[p]) stop_q[5*p +: 5] <= put_d[5*(p % 2) +: 5];
    end
  end
  assign idle_o = ~busy;

  // A cycle of a context is one of these or a beat on W, or it writes nothing.
  logic [1:0] sent, pend, work;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      sent[c] = w_v_q && m_axi_wready_i && w_ctx_q == c[0];
      pend[c] = want[c] || (job_v_q && job_q.ctx == c[0]) || (next_v_q && next_q.ctx == c[0]) ||
                (s1_v_q && s1_ctx_q == c[0]) || (w_v_q && w_ctx_q == c[0]);
      work[c] = pend[c] || more[c] || put_q[5*c +: 5] != ans_q[5*c +: 5];
    end
  end
  assign still_o = ~sent & ~work;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ev_wait_arb_o <= 2'b00;
      ev_wait_mem_o <= 2'b00;
    end else begin
      ev_wait_arb_o <= ~sent & pend & {sent[0], sent[1]};
      ev_wait_mem_o <= ~sent & work & ~(pend & {sent[0], sent[1]});
    end
  end

  logic [1:0] beat;
  assign beat    = {step && job_q.ctx, step && !job_q.ctx};
  assign probe_o = {answered & ~stay, beat & {2{job_end}}, beat, grant ? gnt : 2'b00, req};

  logic unused_resp;
  assign unused_resp = m_axi_bresp_i[0];

  logic [Ports-1:0] fit;  // would be a burst inside a page, of a context that may ask
  always_comb begin
    for (int p = 0; p < Ports; p++) begin
      fit[p] = !drop[p % 2] && beats_i[5*p +: 5] != '0 && beats_i[5*p +: 5] <= 5'd17 && 9'(addr_i[32*p +: 8]) + 9'(beats_i[5*p +: 5]) <= 9'd256;
    end
  end
  `CT_ASSUME(RequestFits_M, (valid_i & ~fit) == '0)
  `CT_ASSUME(AbandonUnderFlush_M, (abandon_i & ~flush_i) == 2'b00)
  `CT_ASSUME(SealWhenQuiet_M, (seal_i & (want | old_q | drop)) == 2'b00)
  `CT_ASSERT(BurstInPage_A, !aw_v_q || {1'b0, aw_addr_q[7:0]} + {4'd0, aw_beats_q} <= 9'd256)
  `CT_ASSERT(InferenceFirst_A, !(qos_i[ct_pkg::QosStrict] && req[0] && take) || gnt == 2'b01)
  `CT_ASSERT(AnsweredAfterPut_A, 5'(ans_q[4:0] - sig_q[4:0]) <= 5'(put_q[4:0] - sig_q[4:0]) &&
                                 5'(ans_q[9:5] - sig_q[9:5]) <= 5'(put_q[9:5] - sig_q[9:5]))
  `CT_ASSERT(OneClientGives_A, (beat_o & (beat_o - Ports'(1))) == '0)
`ifdef FORMAL
  `include "ct_dma_wr_formal.svh"
`endif

  `CT_COVER(Contended_C, grant && (valid_i & ~pick) != '0)
  `CT_COVER(Full_C, want != 2'b00 && room_q != 2'b11)

endmodule

`default_nettype wire
