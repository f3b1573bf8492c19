// SPDX-License-Identifier: Apache-2.0
//
// The DMA: LD and ST commands and program fetches of both contexts on one AXI4 master.
//
//     LD      ct_dma_ld ───────┐
//     fetch   ct_dma_fetch (2) ┴─> ct_dma_rd ─> AR, R       ST      ct_dma_st ─> ct_dma_wr ─> AW, W, B
//
// What reads is a client of ct_dma_rd, what writes one of ct_dma_wr (docs/architecture.md: how to add one), in the order of their ranks: fetches,
// then LD. Reads and writes share nothing but the error of a context. See the blocks for latencies, throughput and the order of things.
//
// Errors      err_o[c] is a pulse with code and address; a context has one error until it is flushed. From the pulse on its
//             commands stand still, beats that come are dropped, bursts of W that were granted are finished, no signal is given. A
//             piece that leaves a DRAM window is not issued (of a burst nothing, of a stored record nothing), one that leaves the SPM
//             window is moved up to the offending word (LD) or not issued (ST).
// Flush       flush_i[c], a level, must stay until ld_idle_o[c] and st_idle_o[c]; both stay low while a transaction is outstanding.
// Abandon     abandon_i[c], a pulse under flush_i[c], forgets the outstanding transactions, so that the idles rise. Late answers are dropped as
//             far as IDs allow: an ID's answers come in order, so the next so many of the context are taken for the lost ones. If
//             the memory answers later bursts but never these, the context stays without answers; the port is then beyond help
//             without a reset of both sides. An AR, AW or W that the memory does not take stands in the other context's way, too.
// Freeze      while freeze_i is high no burst is granted; those granted run on.
// AXI         registered outputs; RREADY and BREADY constant; INCR bursts of 16-byte beats, at most 17; ID = context.

`default_nettype none
`include "ct_assert.svh"

module ct_dma #(
  parameter int unsigned Gather = 0      // context 0 has it (see ct_dma_seq)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic                          freeze_i,
  input  logic [3:0]                    train_cap_i,
  input  logic                          ld_yield_i,       // see ct_dma_rd
  input  logic                          ld_block_i,
  input  logic [1:0]                    flush_i,
  input  logic [1:0]                    abandon_i,

  input  logic [1:0]                    ld_cmd_valid_i,
  input  logic [2*ct_pkg::CmdW-1:0]     ld_cmd_i,
  output logic [1:0]                    ld_cmd_ready_o,
  input  logic [31:0]                   ld_sem_nz_i,
  output logic [31:0]                   ld_sem_dec_o,
  output logic [31:0]                   ld_sem_inc_o,
  output logic [1:0]                    ld_idle_o,
  output logic [1:0]                    ld_quiet_o,      // no load is left; fetches may be

  input  logic [1:0]                    st_cmd_valid_i,
  input  logic [2*ct_pkg::CmdW-1:0]     st_cmd_i,
  output logic [1:0]                    st_cmd_ready_o,
  input  logic [31:0]                   st_sem_nz_i,
  output logic [31:0]                   st_sem_dec_o,
  output logic [31:0]                   st_sem_inc_o,
  output logic [1:0]                    st_idle_o,
  output logic [1:0]                    st_quiet_o,      // nothing is left but granted bursts and their answers
  input  logic [1:0]                    st_seal_i,       // see ct_dma_wr
  output logic [1:0]                    st_old_o,
  output logic [1:0]                    st_old_err_o,
  output logic [31:0]                   st_old_err_addr_o,

  // Addresses for Gather: LD, ST, both of context 0.
  output logic [1:0]                    gat_valid_o,
  output logic [7:0]                    gat_row_o,
  input  logic [1:0]                    gat_gnt_i,
  input  logic [1:0]                    gat_vld_i,
  input  logic [31:0]                   gat_addr_i,

  output logic [1:0]                    err_o,
  output logic [15:0]                   err_code_o,
  output logic [63:0]                   err_addr_o,

  // Fetchers of programs and descriptors; their answers are never refused.
  input  logic [1:0]                    fetch_valid_i,
  input  logic [63:0]                   fetch_addr_i,
  input  logic [21:0]                   fetch_len_i,
  input  logic [1:0]                    fetch_soft_i,    // see ct_dma_fetch
  input  logic [1:0]                    fetch_drop_i,
  output logic [1:0]                    fetch_ready_o,
  output logic [1:0]                    fetch_bad_o,
  output logic [1:0]                    fetch_idle_o,
  output logic [1:0]                    fetch_rvalid_o,
  output logic [127:0]                  fetch_rdata_o,
  output logic                          fetch_rlast_o,

  // Windows.
  input  logic [63:0]                   rd_base_i,
  input  logic [63:0]                   rd_limit_i,
  input  logic [63:0]                   wr_base_i,
  input  logic [63:0]                   wr_limit_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_base_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_size_i,

  // SPM write port 0 (always accepted) and read port 3.
  output logic                          spm_wr_valid_o,
  output logic [ct_pkg::SpmAddrW-1:0]   spm_wr_addr_o,
  output logic                          spm_wr_ctx_o,
  output logic [127:0]                  spm_wr_data_o,
  output logic [7:0]                    spm_wr_exp_o,
  output logic                          spm_rd_valid_o,
  output logic [ct_pkg::SpmAddrW-1:0]   spm_rd_addr_o,
  output logic                          spm_rd_ctx_o,
  input  logic                          spm_rd_ready_i,
  input  logic                          spm_rd_vld_i,
  input  logic [127:0]                  spm_rd_data_i,
  input  logic [7:0]                    spm_rd_exp_i,
  input  logic                          spm_rd_perr_i,

  output logic                          m_axi_awvalid_o,
  input  logic                          m_axi_awready_i,
  output logic [ct_pkg::AxiIdW-1:0]     m_axi_awid_o,
  output logic [ct_pkg::AxiAddrW-1:0]   m_axi_awaddr_o,
  output logic [7:0]                    m_axi_awlen_o,
  output logic [2:0]                    m_axi_awsize_o,
  output logic [1:0]                    m_axi_awburst_o,
  output logic                          m_axi_wvalid_o,
  input  logic                          m_axi_wready_i,
  output logic [127:0]                  m_axi_wdata_o,
  output logic [15:0]                   m_axi_wstrb_o,
  output logic                          m_axi_wlast_o,
  input  logic                          m_axi_bvalid_i,
  output logic                          m_axi_bready_o,
  input  logic [ct_pkg::AxiIdW-1:0]     m_axi_bid_i,
  input  logic [1:0]                    m_axi_bresp_i,
  output logic                          m_axi_arvalid_o,
  input  logic                          m_axi_arready_i,
  output logic [ct_pkg::AxiIdW-1:0]     m_axi_arid_o,
  output logic [ct_pkg::AxiAddrW-1:0]   m_axi_araddr_o,
  output logic [7:0]                    m_axi_arlen_o,
  output logic [2:0]                    m_axi_arsize_o,
  output logic [1:0]                    m_axi_arburst_o,
  input  logic                          m_axi_rvalid_i,
  output logic                          m_axi_rready_o,
  input  logic [ct_pkg::AxiIdW-1:0]     m_axi_rid_i,
  input  logic [127:0]                  m_axi_rdata_i,
  input  logic [1:0]                    m_axi_rresp_i,
  input  logic                          m_axi_rlast_i,

  // Counter events: beats moved; a read or write waited for the other context, for the memory, a command for a semaphore.
  output logic [1:0]                    ev_ld_beats_o,
  output logic [1:0]                    ev_st_beats_o,
  output logic [1:0]                    ev_ld_wait_arb_o,
  output logic [1:0]                    ev_ld_wait_mem_o,
  output logic [1:0]                    ev_ld_wait_sem_o,
  output logic [1:0]                    ev_st_wait_arb_o,
  output logic [1:0]                    ev_st_wait_mem_o,
  output logic [1:0]                    ev_st_wait_sem_o,

  // What a simulator watches: reads, writes (see ct_core).
  output logic [19:0]                   probe_o
);

  logic [1:0]  bad_d, bad_q;  // the context had an error and was not flushed yet
  logic [1:0]  ld_quiet, st_idle, st_quiet;
  logic [1:0]  ld_err, f_err, st_err, err_d, err_q;
  logic [15:0] ld_code, f_code, st_code, code_q;
  logic [63:0] ld_addr, f_addr, st_addr, addr_q;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Reads: the clients, the first of a context first; bit 2*k + c is of client k, context c.

  localparam int unsigned Clients   = 2;
  localparam int unsigned Fetch     = 0;
  localparam int unsigned Load      = 1;
  localparam int unsigned LdTagW    = ct_pkg::SpmAddrW + 15 + 2;
  localparam int unsigned FetchTagW = 2;
  localparam int unsigned TagW      = LdTagW;
  localparam int unsigned EndW      = 10;

  logic [2*Clients-1:0]      rd_valid, rd_ready, rd_undo, rd_beat, rd_fault, rd_end, rd_stay, rd_idle;
  logic [64*Clients-1:0]     rd_addr;
  logic [10*Clients-1:0]     rd_beats;
  logic [2*TagW*Clients-1:0] rd_tag;
  logic [2*EndW*Clients-1:0] rd_end_tag;
  logic                      beat_ctx, beat_first, beat_last;
  logic [31:0]               beat_addr;
  logic [TagW-1:0]           beat_tag;
  logic [127:0]              rd_data;
  logic [2*EndW-1:0]         end_tag;
  logic [1:0]                rd_still;

  ct_dma_rd #(.Clients(Clients), .TagW(TagW), .EndW(EndW), .Chained(Clients'(1) << Fetch)) u_rd (
    .clk_i, .rst_ni, .qos_i, .freeze_i, .train_cap_i, .flush_i, .abandon_i,
    .yield_i      (ld_yield_i),
    .block_i      (ld_block_i),
    .halt_i       (bad_q),
    .valid_i      (rd_valid),
    .addr_i       (rd_addr),
    .beats_i      (rd_beats),
    .tag_i        (rd_tag),
    .end_tag_i    (rd_end_tag),
    .undo_i       (rd_undo),
    .ready_o      (rd_ready),
    .beat_o       (rd_beat),
    .fault_o      (rd_fault),
    .beat_ctx_o   (beat_ctx),
    .beat_first_o (beat_first),
    .beat_last_o  (beat_last),
    .beat_addr_o  (beat_addr),
    .beat_tag_o   (beat_tag),
    .data_o       (rd_data),
    .end_o        (rd_end),
    .end_tag_o    (end_tag),
    .stay_i       (rd_stay),
    .idle_o       (rd_idle),
    .still_o      (rd_still),
    .m_axi_arvalid_o, .m_axi_arready_i, .m_axi_arid_o, .m_axi_araddr_o, .m_axi_arlen_o,
    .m_axi_rvalid_i, .m_axi_rid_i, .m_axi_rdata_i, .m_axi_rresp_i, .m_axi_rlast_i,
    .ev_beats_o   (ev_ld_beats_o),
    .ev_wait_arb_o(ev_ld_wait_arb_o),
    .ev_wait_mem_o(ev_ld_wait_mem_o),
    .probe_o      (probe_o[9:0])
  );

  ct_dma_ld #(.Gather(Gather != 0)) u_ld (
    .clk_i, .rst_ni, .flush_i,
    .halt_i       (bad_q),
    .quiet_o      (ld_quiet),
    .cmd_valid_i  (ld_cmd_valid_i),
    .cmd_i        (ld_cmd_i),
    .cmd_ready_o  (ld_cmd_ready_o),
    .sem_nz_i     (ld_sem_nz_i),
    .sem_dec_o    (ld_sem_dec_o),
    .sem_inc_o    (ld_sem_inc_o),
    .gat_valid_o  (gat_valid_o[0]),
    .gat_row_o    (gat_row_o[3:0]),
    .gat_gnt_i    (gat_gnt_i[0]),
    .gat_vld_i    (gat_vld_i[0]),
    .gat_addr_i,
    .base_i       (rd_base_i),
    .limit_i      (rd_limit_i),
    .spm_base_i, .spm_size_i,
    .err_o        (ld_err),
    .err_code_o   (ld_code),
    .err_addr_o   (ld_addr),
    .rd_valid_o   (rd_valid[2*Load +: 2]),
    .rd_addr_o    (rd_addr[64*Load +: 64]),
    .rd_beats_o   (rd_beats[10*Load +: 10]),
    .rd_tag_o     (rd_tag[2*TagW*Load +: 2*TagW]),
    .rd_end_tag_o (rd_end_tag[2*EndW*Load +: 2*EndW]),
    .rd_ready_i   (rd_ready[2*Load +: 2]),
    .beat_i       (rd_beat[2*Load +: 2]),
    .fault_i      (rd_fault[2*Load +: 2]),
    .beat_ctx_i   (beat_ctx),
    .beat_first_i (beat_first),
    .beat_addr_i  (beat_addr),
    .beat_tag_i   (beat_tag),
    .data_i       (rd_data),
    .end_i        (rd_end[2*Load +: 2]),
    .end_tag_i    (end_tag),
    .end_stay_o   (rd_stay[2*Load +: 2]),
    .rd_idle_i    (rd_idle[2*Load +: 2]),
    .rd_still_i   (rd_still),
    .spm_wr_valid_o, .spm_wr_addr_o, .spm_wr_ctx_o, .spm_wr_data_o, .spm_wr_exp_o,
    .ev_wait_sem_o(ev_ld_wait_sem_o)
  );
  assign rd_undo[2*Load +: 2] = 2'b00;

  logic [1:0]             f_rlast;
  logic [2*FetchTagW-1:0] f_tag;
  for (genvar c = 0; c < 2; c++) begin : g_fetch
    ct_dma_fetch u_fetch (
      .clk_i, .rst_ni,
      .flush_i     (flush_i[c]),
      .halt_i      (bad_q[c]),
      .drop_i      (fetch_drop_i[c]),
      .idle_o      (fetch_idle_o[c]),
      .req_valid_i (fetch_valid_i[c]),
      .req_addr_i  (fetch_addr_i[32*c +: 32]),
      .req_len_i   (fetch_len_i[11*c +: 11]),
      .req_soft_i  (fetch_soft_i[c]),
      .req_ready_o (fetch_ready_o[c]),
      .base_i      (rd_base_i[32*c +: 32]),
      .limit_i     (rd_limit_i[32*c +: 32]),
      .err_o       (f_err[c]),
      .err_code_o  (f_code[8*c +: 8]),
      .err_addr_o  (f_addr[32*c +: 32]),
      .bad_o       (fetch_bad_o[c]),
      .rd_valid_o  (rd_valid[2*Fetch + c]),
      .rd_addr_o   (rd_addr[32*(2*Fetch + c) +: 32]),
      .rd_beats_o  (rd_beats[5*(2*Fetch + c) +: 5]),
      .rd_tag_o    (f_tag[FetchTagW*c +: FetchTagW]),
      .rd_undo_o   (rd_undo[2*Fetch + c]),
      .rd_ready_i  (rd_ready[2*Fetch + c]),
      .beat_i      (rd_beat[2*Fetch + c]),
      .fault_i     (rd_fault[2*Fetch + c]),
      .beat_last_i (beat_last),
      .beat_addr_i (beat_addr),
      .beat_tag_i  (beat_tag[FetchTagW-1:0]),
      .rd_idle_i   (rd_idle[2*Fetch + c]),
      .rvalid_o    (fetch_rvalid_o[c]),
      .rlast_o     (f_rlast[c])
    );
    assign rd_tag[TagW*(2*Fetch + c) +: TagW]     = TagW'(f_tag[FetchTagW*c +: FetchTagW]);
    assign rd_end_tag[EndW*(2*Fetch + c) +: EndW] = '0;
  end
  assign rd_stay[2*Fetch +: 2] = 2'b00;
  logic unused_end;
  assign unused_end = ^rd_end[2*Fetch +: 2];
  assign fetch_rdata_o         = rd_data;
  assign fetch_rlast_o         = f_rlast != 2'b00;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Writes: the clients, as above.

  localparam int unsigned WrClients = 1;
  localparam int unsigned Store     = 0;
  localparam int unsigned WrAtW     = 5;
  localparam int unsigned WrTagW    = 3;
  localparam int unsigned WrEndW    = 10;

  logic [2*WrClients-1:0]        wr_valid, wr_ready, wr_busy, wr_beat, wr_fault, wr_end, wr_stay, wr_within, wr_idle;
  logic [64*WrClients-1:0]       wr_addr;
  logic [10*WrClients-1:0]       wr_beats;
  logic [2*WrAtW*WrClients-1:0]  wr_at;
  logic [2*WrTagW*WrClients-1:0] wr_tag;
  logic [2*WrEndW*WrClients-1:0] wr_end_tag;
  logic [128*WrClients-1:0]      wr_data;
  logic                          wr_beat_last;
  logic [WrAtW-1:0]              wr_beat_at;
  logic [WrTagW-1:0]             wr_beat_tag;
  logic [31:0]                   wr_fault_addr;
  logic [2*WrEndW-1:0]           wr_told_tag;
  logic [1:0]                    wr_still;

  ct_dma_wr #(.Clients(WrClients), .AtW(WrAtW), .TagW(WrTagW), .EndW(WrEndW)) u_wr (
    .clk_i, .rst_ni, .qos_i, .freeze_i, .flush_i, .abandon_i,
    .halt_i         (bad_q),
    .seal_i         (st_seal_i),
    .old_o          (st_old_o),
    .old_err_o      (st_old_err_o),
    .old_err_addr_o (st_old_err_addr_o),
    .valid_i        (wr_valid),
    .addr_i         (wr_addr),
    .beats_i        (wr_beats),
    .at_i           (wr_at),
    .tag_i          (wr_tag),
    .end_tag_i      (wr_end_tag),
    .ready_o        (wr_ready),
    .busy_i         (wr_busy),
    .beat_o         (wr_beat),
    .beat_at_o      (wr_beat_at),
    .beat_tag_o     (wr_beat_tag),
    .beat_last_o    (wr_beat_last),
    .data_i         (wr_data),
    .fault_o        (wr_fault),
    .fault_addr_o   (wr_fault_addr),
    .end_o          (wr_end),
    .end_tag_o      (wr_told_tag),
    .stay_i         (wr_stay),
    .within_o       (wr_within),
    .idle_o         (wr_idle),
    .still_o        (wr_still),
    .m_axi_awvalid_o, .m_axi_awready_i, .m_axi_awid_o, .m_axi_awaddr_o, .m_axi_awlen_o,
    .m_axi_wvalid_o, .m_axi_wready_i, .m_axi_wdata_o, .m_axi_wlast_o,
    .m_axi_bvalid_i, .m_axi_bid_i, .m_axi_bresp_i,
    .ev_beats_o     (ev_st_beats_o),
    .ev_wait_arb_o  (ev_st_wait_arb_o),
    .ev_wait_mem_o  (ev_st_wait_mem_o),
    .probe_o        (probe_o[19:10])
  );

  ct_dma_st #(.Gather(Gather != 0)) u_st (
    .clk_i, .rst_ni, .qos_i, .flush_i, .abandon_i,
    .halt_i       (bad_q),
    .idle_o       (st_idle),
    .quiet_o      (st_quiet),
    .cmd_valid_i  (st_cmd_valid_i),
    .cmd_i        (st_cmd_i),
    .cmd_ready_o  (st_cmd_ready_o),
    .sem_nz_i     (st_sem_nz_i),
    .sem_dec_o    (st_sem_dec_o),
    .sem_inc_o    (st_sem_inc_o),
    .gat_valid_o  (gat_valid_o[1]),
    .gat_row_o    (gat_row_o[7:4]),
    .gat_gnt_i    (gat_gnt_i[1]),
    .gat_vld_i    (gat_vld_i[1]),
    .gat_addr_i,
    .base_i       (wr_base_i),
    .limit_i      (wr_limit_i),
    .spm_base_i, .spm_size_i,
    .err_o        (st_err),
    .err_code_o   (st_code),
    .err_addr_o   (st_addr),
    .spm_rd_valid_o, .spm_rd_addr_o, .spm_rd_ctx_o, .spm_rd_ready_i, .spm_rd_vld_i, .spm_rd_data_i, .spm_rd_exp_i, .spm_rd_perr_i,
    .wr_valid_o   (wr_valid[2*Store +: 2]),
    .wr_addr_o    (wr_addr[64*Store +: 64]),
    .wr_beats_o   (wr_beats[10*Store +: 10]),
    .wr_at_o      (wr_at[2*WrAtW*Store +: 2*WrAtW]),
    .wr_tag_o     (wr_tag[2*WrTagW*Store +: 2*WrTagW]),
    .wr_end_tag_o (wr_end_tag[2*WrEndW*Store +: 2*WrEndW]),
    .wr_ready_i   (wr_ready[2*Store +: 2]),
    .wr_busy_o    (wr_busy[2*Store +: 2]),
    .beat_i       (wr_beat[2*Store +: 2]),
    .beat_at_i    (wr_beat_at),
    .beat_tag_i   (wr_beat_tag),
    .beat_last_i  (wr_beat_last),
    .data_o       (wr_data[128*Store +: 128]),
    .fault_i      (wr_fault[2*Store +: 2]),
    .fault_addr_i (wr_fault_addr),
    .end_i        (wr_end[2*Store +: 2]),
    .end_tag_i    (wr_told_tag),
    .end_stay_o   (wr_stay[2*Store +: 2]),
    .old_i        (st_old_o),
    .wr_within_i  (wr_within[2*Store +: 2]),
    .wr_idle_i    (wr_idle[2*Store +: 2]),
    .wr_still_i   (wr_still),
    .ev_wait_sem_o(ev_st_wait_sem_o)
  );

  // ---------------------------------------------------------------------------------------------------------------------------
  // Errors: loads are work of programs that have been fetched.

  assign err_d = (ld_err | f_err | st_err) & ~bad_q & ~flush_i;
  assign bad_d = (bad_q | err_d) & ~flush_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bad_q <= 2'b00;
      err_q <= 2'b00;
    end else begin
      bad_q <= bad_d;
      err_q <= err_d;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int c = 0; c < 2; c++) begin
      if (err_d[c]) begin
        code_q[8*c +: 8]   <= ld_err[c] ? ld_code[8*c +: 8] : f_err[c] ? f_code[8*c +: 8] : st_code[8*c +: 8];
        addr_q[32*c +: 32] <= ld_err[c] ? ld_addr[32*c +: 32] : f_err[c] ? f_addr[32*c +: 32] : st_addr[32*c +: 32];
      end
    end
  end

  assign err_o      = err_q;
  assign err_code_o = code_q;
  assign err_addr_o = addr_q;

  // A context with an error is idle only once it is being flushed: a job does not end well by it.
  assign ld_idle_o = ld_quiet & fetch_idle_o & ~(bad_q & ~flush_i);
  assign st_idle_o = st_idle & ~(bad_q & ~flush_i);
  assign ld_quiet_o = ld_quiet & ~bad_q;
  assign st_quiet_o = st_quiet & ~bad_q;

  assign m_axi_awsize_o  = 3'd4;
  assign m_axi_awburst_o = 2'd1;
  assign m_axi_wstrb_o   = 16'hffff;
  assign m_axi_bready_o  = 1'b1;
  assign m_axi_arsize_o  = 3'd4;
  assign m_axi_arburst_o = 2'd1;
  assign m_axi_rready_o  = 1'b1;

  logic [1:0] flushed_q;  // flushed in the last cycle, but not idle then
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) flushed_q <= 2'b00;
    else         flushed_q <= flush_i & ~(ld_idle_o & st_idle_o) & ~abandon_i;
  end

  `CT_ASSUME(FlushUntilIdle_M, (flushed_q & ~flush_i) == 2'b00)
  `CT_ASSUME(AbandonUnderFlush_M, (abandon_i & ~flush_i) == 2'b00)
  `CT_ASSERT(OneErrorUntilFlush_A, (err_d & bad_q) == 2'b00)

endmodule

`default_nettype wire
