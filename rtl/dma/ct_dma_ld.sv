// SPDX-License-Identifier: Apache-2.0
//
// The reading half of the DMA: LD commands and program fetches of both contexts, the AR and R channels, landing in the SPM.
//
//     ct_dma_seq  ─┐ per context, fetch first
//     ct_dma_fetch ┴─> ct_arbiter ─> AR       R ─> entry of the burst ─> SPM write port / fetch answer ─> signals
//                          └─> entry of the burst ─^
//
// Entries     every burst has an entry in a ring of its context (8 of them) from its grant until its signals are given; the ring is
//             the cap on outstanding bursts (train_cap_i for training), and since an ID's answers come in order, its second pointer
//             (land) finds the entry of every beat of R. RREADY is constant: landing space is the SPM itself.
// Latency     command taken in t: AR in t + 4. A beat of R in t: written to the SPM in t + 3, its step's signals (sem_inc_o) in t + 4 at the
//             earliest.
// Throughput  a burst in every second cycle, a beat a cycle.
// Grant       per burst under every policy: a step of a command may have a million beats, and waits for room in the ring.
// Order       bursts of a context are asked for, landed and signalled in order; Sig0 before Sig1 of the same semaphore, a cycle apart.
// Errors      err_o[c] is combinational, with code and address; the one above registers it and answers with halt_i[c]. From then (and
//             under flush_i[c]) beats of c are counted but dropped, nothing new is asked for, no signal is given.
// Soft        a fetch that is only a guess, or comes before its turn, is soft: what goes wrong with it is no error but a pulse of
//             fetch_bad_o, its good beats come nevertheless. fetch_drop_i forgets what was not asked for yet of a soft fetch.
// Quiet       quiet_o[c]: no load of c is left, whatever fetches are. fetch_idle_o[c]: no fetch is.
// Abandoned   bursts (abandon_i) no longer count as outstanding for idle_o; since an ID's answers come in order, the answers of the
//             next so many bursts of the context are dropped. They keep their places under the cap: a context with 8 lost bursts asks for
//             nothing more until a reset.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_ld #(
  parameter bit Gather = 1'b0           // context 0 has it (see ct_dma_seq)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic                          freeze_i,
  input  logic [3:0]                    train_cap_i,
  input  logic                          yield_i,      // words of training are in the way of inference's VS
  input  logic                          block_i,      // words of either context are in the way of VS: no burst at all
  input  logic [1:0]                    flush_i,
  input  logic [1:0]                    halt_i,
  input  logic [1:0]                    abandon_i,
  output logic [1:0]                    idle_o,
  output logic [1:0]                    quiet_o,

  input  logic [1:0]                    cmd_valid_i,
  input  logic [2*ct_pkg::CmdW-1:0]     cmd_i,
  output logic [1:0]                    cmd_ready_o,
  input  logic [31:0]                   sem_nz_i,
  output logic [31:0]                   sem_dec_o,
  output logic [31:0]                   sem_inc_o,

  output logic                          gat_valid_o,  // of context 0
  output logic [3:0]                    gat_row_o,
  input  logic                          gat_gnt_i,
  input  logic                          gat_vld_i,
  input  logic [31:0]                   gat_addr_i,

  input  logic [1:0]                    fetch_valid_i,
  input  logic [63:0]                   fetch_addr_i,
  input  logic [21:0]                   fetch_len_i,
  input  logic [1:0]                    fetch_soft_i,
  input  logic [1:0]                    fetch_drop_i,
  output logic [1:0]                    fetch_ready_o,
  output logic [1:0]                    fetch_bad_o,
  output logic [1:0]                    fetch_idle_o,
  output logic [1:0]                    fetch_rvalid_o,
  output logic [127:0]                  fetch_rdata_o,
  output logic                          fetch_rlast_o,

  input  logic [63:0]                   base_i,
  input  logic [63:0]                   limit_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_base_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_size_i,
  output logic [1:0]                    err_o,
  output logic [15:0]                   err_code_o,
  output logic [63:0]                   err_addr_o,

  output logic                          spm_wr_valid_o,
  output logic [ct_pkg::SpmAddrW-1:0]   spm_wr_addr_o,
  output logic                          spm_wr_ctx_o,
  output logic [127:0]                  spm_wr_data_o,
  output logic [7:0]                    spm_wr_exp_o,

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
  output logic [1:0]                    ev_wait_sem_o,
  output logic [9:0]                    probe_o  // complete, accept (last beat), slot used (a beat), granted, ready (see ct_core)
);

  localparam int unsigned SpmW  = ct_pkg::SpmAddrW;
  localparam int unsigned CmdW  = ct_pkg::CmdW;
  localparam int unsigned MetaW = 32 + SpmW + 15 + 5;

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
  // What each context wants to read next.

  logic [1:0]        seq_idle, seq_valid, seq_ready, seq_err, seq_rec, seq_first;
  logic [63:0]       seq_addr, seq_err_addr;
  logic [9:0]        seq_beats, seq_sig0, seq_sig1;
  logic [2*SpmW-1:0] seq_spm;
  logic [29:0]       seq_s0;
  logic [1:0]        f_idle, f_valid, f_ready, f_err, f_last, f_bad, f_soft;
  logic [63:0]       f_addr, f_err_addr;
  logic [9:0]        f_beats;

  logic [1:0] gat_valid;
  logic [7:0] gat_row;
  assign gat_valid_o = gat_valid[0];
  assign gat_row_o   = gat_row[3:0];
  logic unused_gather;
  assign unused_gather = ^{gat_valid[1], gat_row[7:4]};

  for (genvar c = 0; c < 2; c++) begin : g_ctx
    ct_dma_seq #(.SplitRecords(1'b1), .Gather((c == 0) ? Gather : 1'b0)) u_seq (
      .clk_i, .rst_ni,
      .flush_i     (flush_i[c]),
      .halt_i      (halt_i[c]),
      .idle_o      (seq_idle[c]),
      .cmd_valid_i (cmd_valid_i[c]),
      .cmd_i       (cmd_i[CmdW*c +: CmdW]),
      .cmd_ready_o (cmd_ready_o[c]),
      .sem_nz_i    (sem_nz_i[16*c +: 16]),
      .sem_dec_o   (sem_dec_o[16*c +: 16]),
      .gat_valid_o (gat_valid[c]),
      .gat_row_o   (gat_row[4*c +: 4]),
      .gat_gnt_i   ((c == 0) ? gat_gnt_i : 1'b0),
      .gat_vld_i   ((c == 0) ? gat_vld_i : 1'b0),
      .gat_addr_i,
      .base_i      (base_i[32*c +: 32]),
      .limit_i     (limit_i[32*c +: 32]),
      .err_o       (seq_err[c]),
      .err_addr_o  (seq_err_addr[32*c +: 32]),
      .valid_o     (seq_valid[c]),
      .ready_i     (seq_ready[c]),
      .addr_o      (seq_addr[32*c +: 32]),
      .beats_o     (seq_beats[5*c +: 5]),
      .spm_o       (seq_spm[SpmW*c +: SpmW]),
      .s0_o        (seq_s0[15*c +: 15]),
      .rec_o       (seq_rec[c]),
      .first_o     (seq_first[c]),
      .sig0_o      (seq_sig0[5*c +: 5]),
      .sig1_o      (seq_sig1[5*c +: 5])
    );

    ct_dma_fetch u_fetch (
      .clk_i, .rst_ni,
      .flush_i     (flush_i[c]),
      .halt_i      (halt_i[c]),
      .drop_i      (fetch_drop_i[c]),
      .idle_o      (f_idle[c]),
      .req_valid_i (fetch_valid_i[c]),
      .req_addr_i  (fetch_addr_i[32*c +: 32]),
      .req_len_i   (fetch_len_i[11*c +: 11]),
      .req_soft_i  (fetch_soft_i[c]),
      .req_ready_o (fetch_ready_o[c]),
      .base_i      (base_i[32*c +: 32]),
      .limit_i     (limit_i[32*c +: 32]),
      .err_o       (f_err[c]),
      .err_addr_o  (f_err_addr[32*c +: 32]),
      .bad_o       (f_bad[c]),
      .valid_o     (f_valid[c]),
      .ready_i     (f_ready[c]),
      .addr_o      (f_addr[32*c +: 32]),
      .beats_o     (f_beats[5*c +: 5]),
      .last_o      (f_last[c]),
      .soft_o      (f_soft[c])
    );
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Rings of entries. Pointers run modulo 16, entries modulo 8: put = next free, land = answered now, sig = signalled now.

  logic [7:0]       put_d, put_q, land_d, land_q, sig_d, sig_q;
  logic [7:0]       lost_d, lost_q;  // abandoned bursts whose answers may still come
  logic [MetaW-1:0] meta_mem [0:15];
  logic [9:0]       sig_mem [0:15];

  logic [7:0] cap;
  assign cap[3:0] = 4'd8;
  assign cap[7:4] = (train_cap_i == 4'd0) ? 4'd1 : (train_cap_i > 4'd8) ? 4'd8 : train_cap_i;

  // Grant.
  logic [1:0] want, req, gnt;
  logic       ar_v_d, ar_v_q, take;
  logic [1:0] room_d, room_q;  // for one more burst, if none was granted in the last cycle
  logic       who;         // context granted
  logic       who_fetch;   // and its fetch, not its load
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
  logic [1:0] hold, out;
  logic [1:0] f_out;               // bursts of a fetch are outstanding
  logic       reads;               // inference does, or has just done so
  logic       moves;               // it asks for a burst or gets a beat
  logic [3:0] linger_d, linger_q;
  logic [7:0] patience_d, patience_q;
  assign out        = {land_q[7:4] != put_q[7:4], land_q[3:0] != put_q[3:0]};
  assign linger_d   = (want[0] || f_out[0]) ? 4'(Linger) : linger_q - {3'd0, linger_q != '0};
  assign patience_d = (moves || !reads) ? 8'(Patience) : patience_q - {7'd0, patience_q != '0 && !out[1]};
  assign reads      = want[0] || f_out[0] || out[0] || linger_q != '0;
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

  assign want = f_valid | seq_valid;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      room_d[c] = (put_q[4*c +: 4] - sig_q[4*c +: 4]) + lost_q[4*c +: 4] < cap[4*c +: 4];
      req[c]    = want[c] && !freeze_i && !block_i && room_q[c];
    end
  end

  // A burst in every second cycle: what room there is is known by then, and the memory's ready is not in the way.
  assign take      = !ar_v_q;
  assign grant     = take && gnt != 2'b00;
  assign moves     = (grant && gnt[0]) || (r_vld_q && !rid);
  assign who       = gnt[1];
  assign who_fetch = who ? f_valid[1] : f_valid[0];
  assign f_ready   = grant ? gnt & f_valid : 2'b00;
  assign seq_ready = grant ? gnt & ~f_valid : 2'b00;

  ct_arbiter u_ar_arbiter (
    .clk_i, .rst_ni, .qos_i,
    .flush_i (drop | fetch_drop_i | f_bad),
    .req_i   (req),
    .defer_i (hold[1]),
    .last_i  (2'b11),
    .take_i  (take),
    .gnt_o   (gnt)
  );

  logic [31:0] ar_addr_d, ar_addr_q;
  logic [4:0]  ar_beats_d, ar_beats_q;
  logic        ar_id_q;

  assign ar_v_d     = grant || (ar_v_q && !m_axi_arready_i);
  always_comb begin
    unique case ({grant, who, who_fetch})
      3'b100:  {ar_beats_d, ar_addr_d} = {seq_beats[4:0], seq_addr[31:0]};
      3'b101:  {ar_beats_d, ar_addr_d} = {f_beats[4:0], f_addr[31:0]};
      3'b110:  {ar_beats_d, ar_addr_d} = {seq_beats[9:5], seq_addr[63:32]};
      3'b111:  {ar_beats_d, ar_addr_d} = {f_beats[9:5], f_addr[63:32]};
      default: {ar_beats_d, ar_addr_d} = '0;
    endcase
  end

  // The rest of the entry. (No variable part-selects here: Yosys makes shifters of them.)
  logic [2:0]      put_at;
  logic [SpmW-1:0] put_spm;
  logic [14:0]     put_s0;
  logic [9:0]      put_sig;
  assign put_at  = who ? put_q[6:4] : put_q[2:0];
  assign put_spm = who ? seq_spm[SpmW +: SpmW] : seq_spm[0 +: SpmW];
  assign put_s0  = who ? seq_s0[29:15] : seq_s0[14:0];
  assign put_sig = who ? {seq_sig1[9:5], seq_sig0[9:5]} : {seq_sig1[4:0], seq_sig0[4:0]};

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
      meta_mem[{who, put_at}] <= {ar_addr_d, put_spm, put_s0, who_fetch && f_soft[who], who_fetch, who_fetch && f_last[who],
                                  !who_fetch && seq_rec[who], seq_first[who]};
      sig_mem[{who, put_at}]  <= who_fetch ? 10'd0 : put_sig;
    end
  end

  assign m_axi_arvalid_o = ar_v_q;
  assign m_axi_arid_o    = ar_id_q;
  assign m_axi_araddr_o  = {ar_addr_q, 4'd0};
  assign m_axi_arlen_o   = {3'd0, ar_beats_q} - 8'd1;

  // ---------------------------------------------------------------------------------------------------------------------------
  // R, second cycle: which burst, which word of it.

  logic [MetaW-1:0] meta;
  logic [31:0]      m_addr;
  logic [SpmW-1:0]  m_spm;
  logic [14:0]      m_s0;
  logic             m_soft, m_fetch, m_fetch_last, m_rec, m_first;

  always_comb begin
    meta = '0;
    if (r_vld_q) meta = meta_mem[{rid, rid ? land_q[6:4] : land_q[2:0]}];
  end
  assign {m_addr, m_spm, m_s0, m_soft, m_fetch, m_fetch_last, m_rec, m_first} = meta;

  logic [1:0]        begun_q;        // a beat of the burst has come
  logic [2*SpmW-1:0] at_q;           // next word of the run, relative
  logic [7:0]        idx_q;          // its number in the record
  logic [127:0]      exps0_q, exps1_q;
  logic              r_lost, r_ours, r_fault, r_bad, r_head, r_start;
  logic [SpmW-1:0]   r_at, r_next;
  logic [3:0]        r_idx;

  assign r_lost  = r_vld_q && (rid ? lost_q[7:4] : lost_q[3:0]) != 4'd0;
  assign r_ours  = r_vld_q && !r_lost && (rid ? land_q[7:4] != put_q[7:4] : land_q[3:0] != put_q[3:0]);
  assign r_fault = r_ours && r_err_q;
  assign r_bad   = r_fault && !m_soft;
  assign r_start = !begun_q[rid] && m_first;   // first beat of a run
  assign r_head  = r_start && m_rec;
  assign r_at    = r_start ? m_spm : rid ? at_q[SpmW +: SpmW] : at_q[0 +: SpmW];

  assign r_idx   = rid ? idx_q[7:4] : idx_q[3:0];
  always_comb begin
    r_next = '0;
    if (r_ours) r_next = r_head ? m_spm : r_at + {{(SpmW-15){1'b0}}, m_s0};
  end

  logic            w_v_q, w_ctx_q, w_rec_q;  // a word to be written
  logic [1:0]      soft_bad_q;
  logic [1:0]      w_fetch_q;                // a beat for a fetcher
  logic            w_flast_q;
  logic [SpmW-1:0] w_rel_q;
  logic [3:0]      w_idx_q;
  logic [127:0]    w_data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      w_v_q      <= 1'b0;
      w_fetch_q  <= 2'b00;
      soft_bad_q <= 2'b00;
      begun_q    <= 2'b00;
      ev_beats_o <= 2'b00;
    end else begin
      w_v_q      <= r_ours && !r_bad && !m_fetch && !r_head && !drop[rid];
      w_fetch_q  <= (r_ours && !r_fault && m_fetch && !drop[rid]) ? {rid, !rid} : 2'b00;
      soft_bad_q <= f_bad | ((r_fault && m_soft && !drop[rid]) ? {rid, !rid} : 2'b00);
      ev_beats_o <= r_vld_q ? {rid, !rid} : 2'b00;
      if (r_ours && !rid) begun_q[0] <= !r_last_q;
      if (r_ours && rid) begun_q[1] <= !r_last_q;
      if (abandon_i[0]) begun_q[0] <= 1'b0;
      if (abandon_i[1]) begun_q[1] <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (r_ours) begin
      w_ctx_q   <= rid;
      w_rec_q   <= m_rec;
      w_flast_q <= m_fetch_last && r_last_q;
      w_rel_q   <= r_at;
      w_idx_q   <= r_idx;
      w_data_q  <= r_data_q;
      if (!m_fetch) begin
        if (!rid) begin
          at_q[0 +: SpmW] <= r_next;
          idx_q[3:0]      <= r_head ? 4'd0 : r_idx + 4'd1;
          if (r_head) exps0_q <= r_data_q;
        end else begin
          at_q[SpmW +: SpmW] <= r_next;
          idx_q[7:4]         <= r_head ? 4'd0 : r_idx + 4'd1;
          if (r_head) exps1_q <= r_data_q;
        end
      end
    end
  end

  // R, third cycle: the window, the physical address, the exponent; then out.
  logic w_out;  // outside the SPM window
  logic x_v_q;
  assign w_out          = w_v_q && !drop[w_ctx_q] && w_rel_q >= (w_ctx_q ? spm_size_i[SpmW +: SpmW] : spm_size_i[0 +: SpmW]);
  assign spm_wr_valid_o = x_v_q && !drop[spm_wr_ctx_o];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) x_v_q <= 1'b0;
    else         x_v_q <= w_v_q && !w_out && !drop[w_ctx_q];
  end

  always_ff @(posedge clk_i) begin
    if (w_v_q) begin
      spm_wr_addr_o <= w_rel_q + (w_ctx_q ? spm_base_i[SpmW +: SpmW] : spm_base_i[0 +: SpmW]);
      spm_wr_ctx_o  <= w_ctx_q;
      spm_wr_data_o <= w_data_q;
      spm_wr_exp_o  <= w_exp;
    end
  end

  logic [7:0] w_exp;
  logic [127:0] exps;
  always_comb begin
    exps  = '0;
    w_exp = 8'd0;
    if (w_v_q && w_rec_q) begin
      exps  = w_ctx_q ? exps1_q : exps0_q;
      w_exp = exps[8*w_idx_q +: 8];
    end
  end

  assign fetch_rvalid_o = w_fetch_q & ~drop;
  assign fetch_rdata_o  = w_data_q;
  assign fetch_rlast_o  = w_flast_q;
  assign fetch_bad_o    = soft_bad_q;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Pointers and signals.

  logic [1:0]  both;             // the entry gives the same semaphore twice
  logic [1:0]  second_d, second_q;
  logic [31:0] inc_d, inc_q;

  always_comb begin
    put_d    = put_q;
    land_d   = land_q;
    sig_d    = sig_q;
    lost_d   = lost_q;
    second_d = second_q;
    inc_d    = '0;
    both     = 2'b00;
    for (int c = 0; c < 2; c++) begin
      if (grant && gnt[c]) put_d[4*c +: 4] = put_q[4*c +: 4] + 4'd1;
      if (r_lost && rid == c[0] && r_last_q) lost_d[4*c +: 4] = lost_q[4*c +: 4] - 4'd1;
      if (r_ours && rid == c[0] && r_last_q) land_d[4*c +: 4] = land_q[4*c +: 4] + 4'd1;
      if (sig_q[4*c +: 4] != land_q[4*c +: 4]) begin
        both[c]         = !drop[c] && sig_mem[{c[0], sig_q[4*c +: 3]}][9] &&
                          sig_mem[{c[0], sig_q[4*c +: 3]}][9:5] == sig_mem[{c[0], sig_q[4*c +: 3]}][4:0];
        second_d[c]     = both[c] && !second_q[c];
        sig_d[4*c +: 4] = second_d[c] ? sig_q[4*c +: 4] : sig_q[4*c +: 4] + 4'd1;
        if (!drop[c]) begin
          for (int s = 0; s < 16; s++) begin
            inc_d[16*c + s] = sig_mem[{c[0], sig_q[4*c +: 3]}][4:0] == {1'b1, 4'(s)} ||
                              sig_mem[{c[0], sig_q[4*c +: 3]}][9:5] == {1'b1, 4'(s)};
          end
        end
      end
      if (abandon_i[c]) begin
        lost_d[4*c +: 4] = lost_d[4*c +: 4] + (put_d[4*c +: 4] - land_d[4*c +: 4]);
        put_d[4*c +: 4]  = 4'd0;
        land_d[4*c +: 4] = 4'd0;
        sig_d[4*c +: 4]  = 4'd0;
        second_d[c]      = 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      put_q    <= '0;
      land_q   <= '0;
      sig_q    <= '0;
      lost_q   <= '0;
      second_q <= 2'b00;
      inc_q    <= '0;
    end else begin
      put_q    <= put_d;
      land_q   <= land_d;
      sig_q    <= sig_d;
      lost_q   <= lost_d;
      second_q <= second_d;
      inc_q    <= inc_d;
    end
  end

  // (A cycle later: the last word is written then.)
  logic [1:0] told_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sem_inc_o <= '0;
      told_q    <= 2'b00;
    end else begin
      sem_inc_o <= {drop[1] ? 16'd0 : inc_q[31:16], drop[0] ? 16'd0 : inc_q[15:0]};
      told_q    <= {inc_q[31:16] != 16'd0, inc_q[15:0] != 16'd0};
    end
  end

  logic [1:0] signalled, beat;
  assign signalled = {sig_q[7:4] != land_q[7:4] && !second_d[1], sig_q[3:0] != land_q[3:0] && !second_d[0]};
  assign beat    = {r_vld_q && rid, r_vld_q && !rid};

  // A cycle of a context is one of these or a beat, or it reads nothing.
  logic [1:0] arb;
  assign arb = ~beat & (out | want) & ({beat[0], beat[1]} | (hold & ~out));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ev_wait_arb_o <= 2'b00;
      ev_wait_mem_o <= 2'b00;
      ev_wait_sem_o <= 2'b00;
    end else begin
      ev_wait_arb_o <= arb;
      ev_wait_mem_o <= ~beat & (out | want) & ~arb;
      ev_wait_sem_o <= ~beat & ~out & ~want & ~seq_idle;
    end
  end

  assign probe_o = {signalled, beat & {2{r_last_q}}, beat, grant ? gnt : 2'b00, req & (~hold | gnt)};

  // Of the outstanding bursts: where the last load and the last fetch end, if there are any.
  logic [7:0] ld_end_q, f_end_q;
  logic [1:0] ld_out_q, f_out_q, ld_out;

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      ld_out[c] = ld_out_q[c] && sig_q[4*c +: 4] != ld_end_q[4*c +: 4];
      f_out[c]  = f_out_q[c] && sig_q[4*c +: 4] != f_end_q[4*c +: 4];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ld_out_q <= 2'b00;
      f_out_q  <= 2'b00;
    end else begin
      ld_out_q <= seq_ready | (ld_out & ~abandon_i);
      f_out_q  <= f_ready | (f_out & ~abandon_i);
    end
  end

  always_ff @(posedge clk_i) begin
    for (int c = 0; c < 2; c++) begin
      if (seq_ready[c]) ld_end_q[4*c +: 4] <= put_d[4*c +: 4];
      if (f_ready[c])   f_end_q[4*c +: 4]  <= put_d[4*c +: 4];
    end
  end

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      quiet_o[c]      = seq_idle[c] && !ld_out[c] && inc_q[16*c +: 16] == 16'd0 && !told_q[c] && !(w_v_q && w_ctx_q == c[0]) && !(x_v_q && spm_wr_ctx_o == c[0]);
      fetch_idle_o[c] = f_idle[c] && !f_out[c] && !w_fetch_q[c];
      idle_o[c] = seq_idle[c] && f_idle[c] && put_q[4*c +: 4] == sig_q[4*c +: 4] && inc_q[16*c +: 16] == 16'd0 && !told_q[c] &&
                  !(w_v_q && w_ctx_q == c[0]) && !(x_v_q && spm_wr_ctx_o == c[0]) && !w_fetch_q[c];
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Errors, the oldest work first.

  always_comb begin
    err_o      = 2'b00;
    err_code_o = '0;
    err_addr_o = '0;
    for (int c = 0; c < 2; c++) begin
      if (!(w_out || r_bad || seq_err[c] || f_err[c])) begin
        err_o[c] = 1'b0;
      end else if (w_out && w_ctx_q == c[0]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrSpmWindow;
        err_addr_o[32*c +: 32] = {{(32-SpmW){1'b0}}, w_rel_q};
      end else if (r_bad && rid == c[0] && !drop[c]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrAxiRead;
        err_addr_o[32*c +: 32] = m_addr;
      end else if (seq_err[c] || f_err[c]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrDramReadWindow;
        err_addr_o[32*c +: 32] = seq_err[c] ? seq_err_addr[32*c +: 32] : f_err_addr[32*c +: 32];
      end
    end
  end

  logic unused_resp;
  assign unused_resp = m_axi_rresp_i[0];

  `CT_ASSERT(CapKept0_A, 5'(4'(put_q[3:0] - sig_q[3:0])) + 5'(lost_q[3:0]) <= 5'd8)
  `CT_ASSERT(CapKept1_A, 5'(4'(put_q[7:4] - sig_q[7:4])) + 5'(lost_q[7:4]) <= 5'd8)
  `CT_ASSERT(LandBehindPut_A, 4'(land_q[3:0] - sig_q[3:0]) <= 4'(put_q[3:0] - sig_q[3:0]) &&
                              4'(land_q[7:4] - sig_q[7:4]) <= 4'(put_q[7:4] - sig_q[7:4]))
  `CT_ASSERT(BurstInPage_A, !ar_v_q || {1'b0, ar_addr_q[7:0]} + {4'd0, ar_beats_q} <= 9'd256)
  `CT_ASSERT(InferenceFirst_A, !(qos_i[ct_pkg::QosStrict] && req[0] && take) || gnt == 2'b01)
  `CT_ASSERT(BlockedAsksNothing_A, !block_i || !grant)
  `CT_ASSERT(NothingWrittenWhenDropped_A, !spm_wr_valid_o || !drop[spm_wr_ctx_o])
`ifdef FORMAL
  `include "ct_dma_ld_formal.svh"
`endif

  `CT_COVER(SplitRecord_C, w_v_q && w_rec_q && !r_start && r_ours && !begun_q[rid])

endmodule

`default_nettype wire
