// SPDX-License-Identifier: Apache-2.0
//
// The reads of the DMA: AR and R for N clients of two contexts each, over one ring of outstanding bursts a context. A client says which
// burst it wants and gets its beats; it knows neither the bus nor its neighbours. (docs/architecture.md: how to add one.)
//
//     client 0 ─┐ per context, the first                          ┌─> beat_o, fault_o: the client whose burst it is
//     client 1 ─┼─> ct_arbiter ─> AR       R ─> entry of the burst ┤
//     client 2 ─┘        └─> entry of the burst ─^                └─> end_o: the burst has come, in the order of the ring
//
// Ports       bit 2*k + c is of client k, context c (0 inference, 1 training); the ID on the bus is the context.
// Entries     every burst has an entry in a ring of its context (8 of them) from its grant until its client has taken its end; the ring is
//             the cap on outstanding bursts (train_cap_i for training), and since an ID's answers come in order, its second pointer
//             (land) finds the entry of every beat of R. RREADY is constant: a client takes every beat.
// Request     valid_i with address (units of 16 bytes), beats (1..17, not beyond 4 KB), tag_i and end_tag_i holds until ready_o, but a client
//             may take it back: under flush_i or halt_i, or with a pulse of undo_i. It must lie in the windows of its context: the client
//             has looked. Of the clients of a context that ask, the lowest number goes first: one that asks without end is the last.
// Beat        beat_o (or fault_o, if the memory answered with an error), beat_first_o and beat_last_o in the burst, the burst's tag_i and
//             address; its data in the next cycle. Beats of a context come in the order of the grants.
// End         end_o with the burst's end_tag_i, a cycle after its last beat or later, until the client no longer answers with stay_i: a burst
//             in every cycle, in the order of the grants.
// Latency     request in t: AR in t + 1. A beat of R in t: beat_o in t + 1, data_o in t + 2, end_o in t + 2.
// Throughput  a burst in every second cycle, a beat a cycle.
// Grant       per burst under every policy: a request may be one of a million, and waits for room in the ring.
// Dropped     under flush_i[c] and halt_i[c] beats of c are counted but no client hears of them; ends are told.
// Idle        idle_o: the client has no entry. still_o[c]: nothing of c is outstanding, and nobody asks.
// Abandoned   bursts (abandon_i, under flush_i) have no entries any more; since an ID's answers come in order, the answers of the next so many bursts
//             of the context are dropped. They keep their places under the cap: a context with 8 lost bursts asks for nothing more
//             until a reset.
//
// Parameters
//   Clients  1 .. 8
//   TagW     bits of tag_i, which come back with each beat
//   EndW     bits of end_tag_i, which come back with the end
//   Chained  clients whose answers make somebody ask for more: while inference has such a burst outstanding, it counts as reading

`default_nettype none
`include "ct_assert.svh"

module ct_dma_rd #(
  parameter int unsigned        Clients = 2,
  parameter int unsigned        TagW    = 8,
  parameter int unsigned        EndW    = 8,
  parameter logic [Clients-1:0] Chained = '0,
  localparam int unsigned       Ports   = 2 * Clients
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic [ct_pkg::QosW-1:0]       qos_i,
  input  logic                          freeze_i,
  input  logic [3:0]                    train_cap_i,
  input  logic                          yield_i,      // words of training are in the way of inference's VS
  input  logic                          block_i,      // words of either context are in the way of VS: no burst at all
  input  logic [1:0]                    flush_i,
  input  logic [1:0]                    halt_i,
  input  logic [1:0]                    abandon_i,

  input  logic [Ports-1:0]              valid_i,
  input  logic [32*Ports-1:0]           addr_i,
  input  logic [5*Ports-1:0]            beats_i,
  input  logic [TagW*Ports-1:0]         tag_i,
  input  logic [EndW*Ports-1:0]         end_tag_i,
  input  logic [Ports-1:0]              undo_i,
  output logic [Ports-1:0]              ready_o,

  output logic [Ports-1:0]              beat_o,
  output logic [Ports-1:0]              fault_o,
  output logic                          beat_ctx_o,
  output logic                          beat_first_o,
  output logic                          beat_last_o,
  output logic [31:0]                   beat_addr_o,  // of the burst
  output logic [TagW-1:0]               beat_tag_o,
  output logic [127:0]                  data_o,       // of the beat of the last cycle

  output logic [Ports-1:0]              end_o,
  output logic [2*EndW-1:0]             end_tag_o,
  input  logic [Ports-1:0]              stay_i,

  output logic [Ports-1:0]              idle_o,
  output logic [1:0]                    still_o,

  output logic                          m_axi_arvalid_o,
  input  logic                          m_axi_arready_i,
  output logic                          m_axi_arid_o,
  output logic [ct_pkg::AxiAddrW-1:0]   m_axi_araddr_o,
  output logic [7:0]                    m_axi_arlen_o,
  input  logic                          m_axi_rvalid_i,
  input  logic                          m_axi_rid_i,
  input  logic [127:0]                  m_axi_rdata_i,
  input  logic [1:0]                    m_axi_rresp_i,
  input  logic                          m_axi_rlast_i,

  output logic [1:0]                    ev_beats_o,
  output logic [1:0]                    ev_wait_arb_o,
  output logic [1:0]                    ev_wait_mem_o,
  output logic [9:0]                    probe_o  // complete, accept (last beat), slot used (a beat), granted, ready (see ct_core)
);

  if (Clients < 1 || Clients > 8 || TagW < 1 || EndW < 1) begin : g_check
    ct_error_dma_rd_needs_1_to_8_clients_with_tags u_error ();
  end

  localparam int unsigned WhoW = (Clients > 1) ? $clog2(Clients) : 1;

  logic [1:0] drop;
  assign drop = flush_i | halt_i;

  // R as it came: nothing of the memory's stands in front of the entries.
  logic         r_vld_q, r_id_q, r_err_q, r_last_q;
  logic         rid;
  logic [127:0] r_data_q;
  assign rid = r_id_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) r_vld_q <= 1'b0;
    else         r_vld_q <= m_axi_rvalid_i;
  end
  always_ff @(posedge clk_i) begin
    if (m_axi_rvalid_i) begin
      r_id_q   <= m_axi_rid_i;
      r_err_q  <= m_axi_rresp_i[1];
      r_last_q <= m_axi_rlast_i;
      r_data_q <= m_axi_rdata_i;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Rings of entries. Pointers run modulo 16, entries modulo 8: put = next free, land = answered now, sig = its end is told now.

  logic [7:0]              put_d, put_q, land_d, land_q, sig_d, sig_q;
  logic [7:0]              lost_d, lost_q;  // abandoned bursts whose answers may still come
  logic [WhoW+32+TagW-1:0] meta_mem [0:15];
  logic [WhoW+EndW-1:0]    end_mem [0:15];

  logic [7:0] cap;
  assign cap[3:0] = 4'd8;
  assign cap[7:4] = (train_cap_i == 4'd0) ? 4'd1 : (train_cap_i > 4'd8) ? 4'd8 : train_cap_i;

  // Of the clients of a context the first that asks.
  logic [Ports-1:0] pick;
  logic [1:0]       want;
  always_comb begin
    want = 2'b00;
    pick = '0;
    for (int k = 0; k < Clients; k++) begin
      pick[2*k +: 2] = valid_i[2*k +: 2] & ~want;
      want           = want | valid_i[2*k +: 2];
    end
  end

  // Grant.
  logic [1:0] req, gnt, undo;
  logic       ar_v_d, ar_v_q, take;
  logic [1:0] room_d, room_q;  // for one more burst, if none was granted in the last cycle
  logic       who;             // context granted
  logic       grant;

  // Inference that reads has the port to itself, but for the bursts that a floor gives training. With its full share of bursts
  // outstanding, training that filled in between would take two thirds of the bandwidth that inference is waiting for; behind its last
  // bursts, it would stand in front of what inference asks for next (a job that starts reads descriptor, program and operands one after
  // the other, hence the Linger cycles), and a memory that takes IDs out of turn would serve it first. A memory that leaves inference
  // without a beat for Patience cycles, with nothing of training in front of it, may be dead for it. Training does not wait for that,
  // whatever the floor, which counts the slots of inference only. What has been asked for lands whether a bank is taken or not, so training
  // asks for nothing either while its words keep those of inference's VS out of a bank.
  localparam int unsigned Linger   = 15;
  localparam int unsigned Patience = 255;
  logic [1:0]       hold, out;
  logic [Ports-1:0] busy;              // the client has an entry
  logic             chain;             // inference has one whose answer makes it ask for more
  logic             reads;             // inference does, or has just done so
  logic             moves;             // it asks for a burst or gets a beat
  logic [3:0]       linger_d, linger_q;
  logic [7:0]       patience_d, patience_q;

  always_comb begin
    chain = 1'b0;
    undo  = 2'b00;
    for (int k = 0; k < Clients; k++) begin
      if (Chained[k] && busy[2*k]) chain = 1'b1;
      undo = undo | undo_i[2*k +: 2];
    end
  end

  assign out        = {land_q[7:4] != put_q[7:4], land_q[3:0] != put_q[3:0]};
  assign linger_d   = (want[0] || chain) ? 4'(Linger) : linger_q - {3'd0, linger_q != '0};
  assign patience_d = (moves || !reads) ? 8'(Patience) : patience_q - {7'd0, patience_q != '0 && !out[1]};
  assign reads      = want[0] || chain || out[0] || linger_q != '0;
  assign hold       = {qos_i[ct_pkg::QosRanked] && ((reads && patience_q != '0) || yield_i), 1'b0};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      linger_q   <= '0;
      patience_q <= '0;
    end else begin
      linger_q   <= linger_d;
      patience_q <= patience_d;
    end
  end

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      room_d[c] = (put_q[4*c +: 4] - sig_q[4*c +: 4]) + lost_q[4*c +: 4] < cap[4*c +: 4];
      req[c]    = want[c] && !freeze_i && !block_i && room_q[c];
    end
  end

  // A burst in every second cycle: what room there is is known by then, and the memory's ready is not in the way.
  assign take    = !ar_v_q;
  assign grant   = take && gnt != 2'b00;
  assign moves   = (grant && gnt[0]) || (r_vld_q && !rid);
  assign who     = gnt[1];
  assign ready_o = grant ? pick & {Clients{gnt}} : '0;

  ct_arbiter u_ar_arbiter (
    .clk_i, .rst_ni, .qos_i,
    .flush_i (drop | undo),
    .req_i   (req),
    .defer_i (hold[1]),
    .last_i  (2'b11),
    .take_i  (take),
    .gnt_o   (gnt)
  );

  // The burst that is granted. (No variable part-selects here: Yosys makes shifters of them.)
  logic [31:0]     ar_addr_d, ar_addr_q;
  logic [4:0]      ar_beats_d, ar_beats_q;
  logic            ar_id_q;
  logic [WhoW-1:0] put_who;
  logic [TagW-1:0] put_tag;
  logic [EndW-1:0] put_end;
  logic [2:0]      put_at;

  assign ar_v_d = grant || (ar_v_q && !m_axi_arready_i);
  assign put_at = who ? put_q[6:4] : put_q[2:0];
  always_comb begin
    ar_addr_d  = '0;
    ar_beats_d = '0;
    put_who    = '0;
    put_tag    = '0;
    put_end    = '0;
    if (grant) begin
      for (int p = 0; p < Ports; p++) begin
        if (ready_o[p]) begin
          ar_addr_d  = ar_addr_d | addr_i[32*p +: 32];
          ar_beats_d = ar_beats_d | beats_i[5*p +: 5];
          put_who    = put_who | WhoW'(p / 2);
          put_tag    = put_tag | tag_i[TagW*p +: TagW];
          put_end    = put_end | end_tag_i[EndW*p +: EndW];
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ar_v_q <= 1'b0;
      room_q <= 2'b00;
    end else begin
      ar_v_q <= ar_v_d;
      room_q <= room_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (grant) begin
      ar_addr_q  <= ar_addr_d;
      ar_beats_q <= ar_beats_d;
      ar_id_q    <= who;
      meta_mem[{who, put_at}] <= {put_who, ar_addr_d, put_tag};
      end_mem[{who, put_at}]  <= {put_who, put_end};
    end
  end

  assign m_axi_arvalid_o = ar_v_q;
  assign m_axi_arid_o    = ar_id_q;
  assign m_axi_araddr_o  = {ar_addr_q, 4'd0};
  assign m_axi_arlen_o   = {3'd0, ar_beats_q} - 8'd1;

  // ---------------------------------------------------------------------------------------------------------------------------
  // R, second cycle: which burst, and whose. Data follow a cycle later.

  logic [WhoW+32+TagW-1:0] meta;
  logic [WhoW-1:0]         r_who;
  logic [1:0]              begun_q;  // a beat of the burst has come
  logic                    r_lost, r_ours;

  always_comb begin
    meta = '0;
    if (r_vld_q) meta = meta_mem[{rid, rid ? land_q[6:4] : land_q[2:0]}];
  end
  assign {r_who, beat_addr_o, beat_tag_o} = meta;

  assign r_lost       = r_vld_q && (rid ? lost_q[7:4] : lost_q[3:0]) != 4'd0;
  assign r_ours       = r_vld_q && !r_lost && (rid ? land_q[7:4] != put_q[7:4] : land_q[3:0] != put_q[3:0]);
  assign beat_ctx_o   = rid;
  assign beat_first_o = !begun_q[rid];
  assign beat_last_o  = r_last_q;

  logic [Ports-1:0] beat_to;
  always_comb begin
    for (int p = 0; p < Ports; p++) beat_to[p] = r_ours && rid == p[0] && r_who == WhoW'(p / 2) && !drop[p % 2];
  end
  assign beat_o  = r_err_q ? '0 : beat_to;
  assign fault_o = r_err_q ? beat_to : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begun_q    <= 2'b00;
      ev_beats_o <= 2'b00;
    end else begin
      ev_beats_o <= r_vld_q ? {rid, !rid} : 2'b00;
      if (r_ours && !rid) begun_q[0] <= !r_last_q;
      if (r_ours && rid) begun_q[1] <= !r_last_q;
      if (abandon_i[0]) begun_q[0] <= 1'b0;
      if (abandon_i[1]) begun_q[1] <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (r_ours) data_o <= r_data_q;
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Ends and pointers.

  logic [2*WhoW-1:0] end_who;
  logic [1:0]        landed, stay;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      landed[c] = sig_q[4*c +: 4] != land_q[4*c +: 4];
      {end_who[WhoW*c +: WhoW], end_tag_o[EndW*c +: EndW]} = end_mem[{c[0], sig_q[4*c +: 3]}];
    end
  end
  always_comb begin
    for (int p = 0; p < Ports; p++) end_o[p] = landed[p % 2] && end_who[WhoW*(p % 2) +: WhoW] == WhoW'(p / 2);
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
    land_d = land_q;
    sig_d  = sig_q;
    lost_d = lost_q;
    for (int c = 0; c < 2; c++) begin
      if (grant && gnt[c]) put_d[4*c +: 4] = put_q[4*c +: 4] + 4'd1;
      if (r_lost && rid == c[0] && r_last_q) lost_d[4*c +: 4] = lost_q[4*c +: 4] - 4'd1;
      if (r_ours && rid == c[0] && r_last_q) land_d[4*c +: 4] = land_q[4*c +: 4] + 4'd1;
      if (landed[c] && !stay[c]) sig_d[4*c +: 4] = sig_q[4*c +: 4] + 4'd1;
      if (abandon_i[c]) begin
        lost_d[4*c +: 4] = lost_d[4*c +: 4] + (put_d[4*c +: 4] - land_d[4*c +: 4]);
        put_d[4*c +: 4]  = 4'd0;
        land_d[4*c +: 4] = 4'd0;
        sig_d[4*c +: 4]  = 4'd0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      put_q  <= '0;
      land_q <= '0;
      sig_q  <= '0;
      lost_q <= '0;
    end else begin
      put_q  <= put_d;
      land_q <= land_d;
      sig_q  <= sig_d;
      lost_q <= lost_d;
    end
  end

  // Of the entries of a client: where the last one ends, if there is any.
  logic [4*Ports-1:0] stop_q;
  logic [Ports-1:0]   busy_q;
  always_comb begin
    for (int p = 0; p < Ports; p++) busy[p] = busy_q[p] && sig_q[4*(p % 2) +: 4] != stop_q[4*p +: 4];
  end
  assign idle_o = ~busy;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) busy_q <= '0;
    else         busy_q <= ready_o | (busy & ~{Clients{abandon_i}});
  end
  always_ff @(posedge clk_i) begin
    for (int p = 0; p < Ports; p++) begin
      if (ready_o[p]) stop_q[4*p +: 4] <= put_d[4*(p % 2) +: 4];
    end
  end

  // A cycle of a context is one of these or a beat, or it reads nothing.
  logic [1:0] beat, arb;
  assign beat    = {r_vld_q && rid, r_vld_q && !rid};
  assign arb     = ~beat & (out | want) & ({beat[0], beat[1]} | (hold & ~out));
  assign still_o = ~beat & ~out & ~want;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ev_wait_arb_o <= 2'b00;
      ev_wait_mem_o <= 2'b00;
    end else begin
      ev_wait_arb_o <= arb;
      ev_wait_mem_o <= ~beat & (out | want) & ~arb;
    end
  end

  assign probe_o = {landed & ~stay, beat & {2{r_last_q}}, beat, grant ? gnt : 2'b00, req & (~hold | gnt)};

  logic unused_resp;
  assign unused_resp = m_axi_rresp_i[0];

  logic [Ports-1:0] fit;  // would be a burst inside a page, of a context that may ask
  always_comb begin
    for (int p = 0; p < Ports; p++) begin
      fit[p] = !drop[p % 2] && beats_i[5*p +: 5] != '0 && beats_i[5*p +: 5] <= 5'd17 && 9'(addr_i[32*p +: 8]) + 9'(beats_i[5*p +: 5]) <= 9'd256;
    end
  end
  `CT_ASSUME(RequestFits_M, (valid_i & ~fit) == '0)
  `CT_ASSUME(AbandonUnderFlush_M, (abandon_i & ~flush_i) == 2'b00)
  `CT_ASSERT(CapKept0_A, 5'(4'(put_q[3:0] - sig_q[3:0])) + 5'(lost_q[3:0]) <= 5'd8)
  `CT_ASSERT(CapKept1_A, 5'(4'(put_q[7:4] - sig_q[7:4])) + 5'(lost_q[7:4]) <= 5'd8)
  `CT_ASSERT(LandBehindPut_A, 4'(land_q[3:0] - sig_q[3:0]) <= 4'(put_q[3:0] - sig_q[3:0]) &&
                              4'(land_q[7:4] - sig_q[7:4]) <= 4'(put_q[7:4] - sig_q[7:4]))
  `CT_ASSERT(BurstInPage_A, !ar_v_q || {1'b0, ar_addr_q[7:0]} + {4'd0, ar_beats_q} <= 9'd256)
  `CT_ASSERT(InferenceFirst_A, !(qos_i[ct_pkg::QosStrict] && req[0] && take) || gnt == 2'b01)
  `CT_ASSERT(BlockedAsksNothing_A, !block_i || !grant)
  `CT_ASSERT(OneClientHears_A, (beat_o & (beat_o - Ports'(1))) == '0 && (fault_o & (fault_o - Ports'(1))) == '0)
`ifdef FORMAL
  `include "ct_dma_rd_formal.svh"
`endif

  `CT_COVER(Contended_C, grant && (valid_i & ~pick) != '0)

endmodule

`default_nettype wire
