// SPDX-License-Identifier: Apache-2.0
//
// The DMA: LD and ST commands and program fetches of both contexts on one AXI4 master.
//
//     LD      ct_dma_ld ───────┐
//     fetch   ct_dma_fetch (2) ┴─> ct_dma_rd ─> AR, R       ST      ct_dma_st ─> ct_dma_wr ─> AW, W, B
//     (both in ct_dma_reads)                                LD and ST with Comp, of context 1: ct_dma_comp, a client of both
//
// What reads is a client of ct_dma_rd, what writes one of ct_dma_wr (docs/architecture.md: how to add one), in the order of their ranks: fetches,
// then LD, then what is compressed. Reads and writes share nothing but the error of a context, and compressed ones their pages. See the blocks for
// latencies, throughput and the order of things.
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
// Arena       of the compressed groups (docs/compression.md): arena_base_i, arena_pages_i pages, all free after arena_reset_i; how many are in use and were.
// AXI         registered outputs; RREADY and BREADY constant; INCR bursts of 16-byte beats, at most 17; ID = context.
//
// Parameters
//   Gather    1: context 0 has it (see ct_dma_seq)
//   Compress  1: LD and ST with Comp; 0: there are none, arena_held_o and arena_most_o are 0

`default_nettype none
`include "ct_assert.svh"

module ct_dma #(
  parameter  int unsigned Gather   = 0,
  parameter  int unsigned Compress = 0,
  localparam int unsigned PageW    = ct_pkg::CompPageW
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

  // Compressed groups, of context 1.
  input  logic                          arena_reset_i,
  input  logic [31:0]                   arena_base_i,
  input  logic [PageW:0]                arena_pages_i,
  output logic [PageW:0]                arena_held_o,
  output logic [PageW:0]                arena_most_o,

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

  localparam int unsigned SpmW = ct_pkg::SpmAddrW;
  localparam int unsigned CmdW = ct_pkg::CmdW;
  localparam int unsigned EndW = 10;

  logic [1:0]  bad_d, bad_q;  // the context had an error and was not flushed yet
  logic [1:0]  ld_quiet, st_idle, st_quiet;
  logic [1:0]  rd_err, st_err, err_d, err_q;
  logic [15:0] rd_code, st_code, code_q;
  logic [63:0] rd_addr, st_addr, addr_q;

  // What is compressed, of context 1 (comp_*), and what it leaves of context 1's commands and of the scratchpad's ports.
  logic            comp_ld_quiet, comp_st_quiet, comp_st_idle, comp_err, comp_ld_wait_mem, comp_ld_wait_sem, comp_st_wait_sem;
  logic [7:0]      comp_code;
  logic [31:0]     comp_addr;
  logic [1:0]      ld_valid, ld_ready, st_valid, st_ready, ld_wait_mem, ld_wait_sem, st_wait_sem;
  logic [31:0]     ld_dec, ld_inc, st_dec, st_inc;
  logic [15:0]     comp_ld_dec, comp_ld_inc, comp_st_dec, comp_st_inc;
  logic            rd_valid, wr_valid, rd_ctx, wr_ctx;  // of the scratchpad
  logic [SpmW-1:0] rd_at, wr_at;
  logic [127:0]    wr_word;
  logic [7:0]      wr_exp;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Reads.

  logic         crd_valid, crd_ready, crd_beat, crd_fault, crd_last, crd_idle, crd_still;
  logic [31:0]  crd_addr, crd_beat_addr;
  logic [4:0]   crd_beats;
  logic [3:0]   crd_tag, crd_beat_tag;
  logic [127:0] rd_data;

  ct_dma_reads #(.Gather(Gather), .Compress(Compress)) u_reads (
    .clk_i, .rst_ni, .qos_i, .freeze_i, .train_cap_i, .flush_i, .abandon_i,
    .yield_i       (ld_yield_i),
    .block_i       (ld_block_i),
    .halt_i        (bad_q),
    .err_o         (rd_err),
    .err_code_o    (rd_code),
    .err_addr_o    (rd_addr),
    .cmd_valid_i   (ld_valid),
    .cmd_i         (ld_cmd_i),
    .cmd_ready_o   (ld_ready),
    .sem_nz_i      (ld_sem_nz_i),
    .sem_dec_o     (ld_dec),
    .sem_inc_o     (ld_inc),
    .quiet_o       (ld_quiet),
    .gat_valid_o   (gat_valid_o[0]),
    .gat_row_o     (gat_row_o[3:0]),
    .gat_gnt_i     (gat_gnt_i[0]),
    .gat_vld_i     (gat_vld_i[0]),
    .gat_addr_i,
    .spm_wr_valid_o(wr_valid),
    .spm_wr_addr_o (wr_at),
    .spm_wr_ctx_o  (wr_ctx),
    .spm_wr_data_o (wr_word),
    .spm_wr_exp_o  (wr_exp),
    .fetch_valid_i, .fetch_addr_i, .fetch_len_i, .fetch_soft_i, .fetch_drop_i, .fetch_ready_o, .fetch_bad_o, .fetch_idle_o, .fetch_rvalid_o,
    .fetch_rlast_o,
    .data_o        (rd_data),
    .comp_valid_i  (crd_valid), .comp_addr_i (crd_addr), .comp_beats_i (crd_beats), .comp_tag_i (crd_tag), .comp_ready_o (crd_ready),
    .comp_beat_o   (crd_beat), .comp_fault_o (crd_fault), .comp_beat_last_o (crd_last), .comp_beat_addr_o (crd_beat_addr),
    .comp_beat_tag_o (crd_beat_tag), .comp_idle_o (crd_idle), .comp_still_o (crd_still),
    .base_i        (rd_base_i),
    .limit_i       (rd_limit_i),
    .spm_base_i, .spm_size_i,
    .m_axi_arvalid_o, .m_axi_arready_i, .m_axi_arid_o, .m_axi_araddr_o, .m_axi_arlen_o,
    .m_axi_rvalid_i, .m_axi_rid_i, .m_axi_rdata_i, .m_axi_rresp_i, .m_axi_rlast_i,
    .ev_beats_o    (ev_ld_beats_o),
    .ev_wait_arb_o (ev_ld_wait_arb_o),
    .ev_wait_mem_o (ld_wait_mem),
    .ev_wait_sem_o (ld_wait_sem),
    .probe_o       (probe_o[9:0])
  );
  assign fetch_rdata_o = rd_data;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Writes: the clients, the first of a context first; bit 2*k + c is of client k, context c.

  localparam int unsigned WrClients = (Compress != 0) ? 2 : 1;
  localparam int unsigned Store     = 0;
  localparam int unsigned Comp      = 1;
  localparam int unsigned StAtW     = 5;
  localparam int unsigned WrAtW     = (Compress != 0) ? 8 : StAtW;
  localparam int unsigned WrTagW    = 3;

  logic [2*WrClients-1:0]        wr_ask, wr_ready, wr_busy, wr_beat, wr_fault, wr_end, wr_stay, wr_within, wr_idle;
  logic [64*WrClients-1:0]       wr_addr;
  logic [10*WrClients-1:0]       wr_beats;
  logic [2*WrAtW*WrClients-1:0]  wr_from;
  logic [2*WrTagW*WrClients-1:0] wr_tag;
  logic [2*EndW*WrClients-1:0] wr_end_tag;
  logic [128*WrClients-1:0]      wr_data;
  logic                          wr_beat_last;
  logic [WrAtW-1:0]              wr_beat_at;
  logic [WrTagW-1:0]             wr_beat_tag;
  logic [31:0]                   wr_fault_addr;
  logic [2*EndW-1:0]           wr_told_tag;
  logic [1:0]                    wr_still;
  logic [2*StAtW-1:0]            st_from;

  ct_dma_wr #(.Clients(WrClients), .AtW(WrAtW), .TagW(WrTagW), .EndW(EndW)) u_wr (
    .clk_i, .rst_ni, .qos_i, .freeze_i, .flush_i, .abandon_i,
    .halt_i         (bad_q),
    .seal_i         (st_seal_i),
    .old_o          (st_old_o),
    .old_err_o      (st_old_err_o),
    .old_err_addr_o (st_old_err_addr_o),
    .valid_i        (wr_ask),
    .addr_i         (wr_addr),
    .beats_i        (wr_beats),
    .at_i           (wr_from),
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
    .cmd_valid_i  (st_valid),
    .cmd_i        (st_cmd_i),
    .cmd_ready_o  (st_ready),
    .sem_nz_i     (st_sem_nz_i),
    .sem_dec_o    (st_dec),
    .sem_inc_o    (st_inc),
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
    .spm_rd_valid_o (rd_valid),
    .spm_rd_addr_o (rd_at),
    .spm_rd_ctx_o (rd_ctx),
    .spm_rd_ready_i, .spm_rd_vld_i, .spm_rd_data_i, .spm_rd_exp_i, .spm_rd_perr_i,
    .wr_valid_o   (wr_ask[2*Store +: 2]),
    .wr_addr_o    (wr_addr[64*Store +: 64]),
    .wr_beats_o   (wr_beats[10*Store +: 10]),
    .wr_at_o      (st_from),
    .wr_tag_o     (wr_tag[2*WrTagW*Store +: 2*WrTagW]),
    .wr_end_tag_o (wr_end_tag[2*EndW*Store +: 2*EndW]),
    .wr_ready_i   (wr_ready[2*Store +: 2]),
    .wr_busy_o    (wr_busy[2*Store +: 2]),
    .beat_i       (wr_beat[2*Store +: 2]),
    .beat_at_i    (wr_beat_at[StAtW-1:0]),
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
    .ev_wait_sem_o(st_wait_sem)
  );

  assign wr_from[2*WrAtW*Store +: 2*WrAtW] = {WrAtW'(st_from[2*StAtW-1:StAtW]), WrAtW'(st_from[StAtW-1:0])};

  // ---------------------------------------------------------------------------------------------------------------------------
  // What is compressed.

  if (Compress != 0) begin : g_comp
    ct_dma_comp u_comp (
      .clk_i, .rst_ni,
      .flush_i (flush_i[1]), .halt_i (bad_q[1]), .abandon_i (abandon_i[1]), .err_o (comp_err), .err_code_o (comp_code), .err_addr_o (comp_addr),
      .pages_reset_i (arena_reset_i), .arena_i (arena_base_i), .pages_i (arena_pages_i), .held_o (arena_held_o), .most_o (arena_most_o),
      .rd_base_i (rd_base_i[63:32]), .rd_limit_i (rd_limit_i[63:32]), .wr_base_i (wr_base_i[63:32]), .wr_limit_i (wr_limit_i[63:32]),
      .spm_base_i (spm_base_i[SpmW +: SpmW]), .spm_size_i (spm_size_i[SpmW +: SpmW]),
      .ld_cmd_valid_i (ld_cmd_valid_i[1]), .ld_cmd_i (ld_cmd_i[CmdW +: CmdW]), .ld_cmd_ready_o (ld_cmd_ready_o[1]), .ld_plain_valid_o (ld_valid[1]),
      .ld_plain_ready_i (ld_ready[1]), .ld_plain_quiet_i (ld_quiet[1]), .ld_sem_nz_i (ld_sem_nz_i[31:16]), .ld_sem_dec_o (comp_ld_dec),
      .ld_sem_inc_o (comp_ld_inc), .ld_quiet_o (comp_ld_quiet),
      .st_cmd_valid_i (st_cmd_valid_i[1]), .st_cmd_i (st_cmd_i[CmdW +: CmdW]), .st_cmd_ready_o (st_cmd_ready_o[1]), .st_plain_valid_o (st_valid[1]),
      .st_plain_ready_i (st_ready[1]), .st_plain_quiet_i (st_quiet[1]), .st_sem_nz_i (st_sem_nz_i[31:16]), .st_sem_dec_o (comp_st_dec),
      .st_sem_inc_o (comp_st_inc), .st_quiet_o (comp_st_quiet), .st_idle_o (comp_st_idle),
      .plain_rd_valid_i (rd_valid), .plain_rd_addr_i (rd_at), .plain_rd_ctx_i (rd_ctx),
      .spm_rd_valid_o, .spm_rd_addr_o, .spm_rd_ctx_o, .spm_rd_ready_i, .spm_rd_data_i, .spm_rd_exp_i, .spm_rd_perr_i,
      .ld_hold_i (ld_yield_i || ld_block_i),
      .plain_wr_valid_i (wr_valid), .plain_wr_addr_i (wr_at), .plain_wr_ctx_i (wr_ctx), .plain_wr_data_i (wr_word), .plain_wr_exp_i (wr_exp),
      .spm_wr_valid_o, .spm_wr_addr_o, .spm_wr_ctx_o, .spm_wr_data_o, .spm_wr_exp_o,
      .rd_valid_o (crd_valid), .rd_addr_o (crd_addr), .rd_beats_o (crd_beats), .rd_tag_o (crd_tag), .rd_ready_i (crd_ready), .rd_beat_i (crd_beat),
      .rd_fault_i (crd_fault), .rd_beat_last_i (crd_last), .rd_beat_addr_i (crd_beat_addr), .rd_beat_tag_i (crd_beat_tag), .rd_data_i (rd_data),
      .rd_idle_i (crd_idle), .rd_still_i (crd_still),
      .wr_valid_o (wr_ask[2*Comp + 1]), .wr_addr_o (wr_addr[64*Comp + 32 +: 32]), .wr_beats_o (wr_beats[10*Comp + 5 +: 5]),
      .wr_at_o (wr_from[WrAtW*(2*Comp + 1) +: WrAtW]), .wr_tag_o (wr_tag[WrTagW*(2*Comp + 1) +: 2]), .wr_end_tag_o (wr_end_tag[EndW*(2*Comp + 1) +: EndW]),
      .wr_ready_i (wr_ready[2*Comp + 1]), .wr_busy_o (wr_busy[2*Comp + 1]), .wr_beat_i (wr_beat[2*Comp + 1]), .wr_beat_at_i (wr_beat_at),
      .wr_beat_tag_i (wr_beat_tag[1:0]), .wr_beat_last_i (wr_beat_last), .wr_data_o (wr_data[128*Comp +: 128]), .wr_fault_i (wr_fault[2*Comp + 1]),
      .wr_fault_addr_i (wr_fault_addr), .wr_end_i (wr_end[2*Comp + 1]), .wr_told_i (wr_told_tag[EndW +: EndW]), .wr_stay_o (wr_stay[2*Comp + 1]),
      .wr_old_i (st_old_o[1]), .wr_within_i (wr_within[2*Comp + 1]), .wr_idle_i (wr_idle[2*Comp + 1]), .wr_still_i (wr_still[1]),
      .ev_ld_wait_mem_o (comp_ld_wait_mem), .ev_ld_wait_sem_o (comp_ld_wait_sem), .ev_st_wait_sem_o (comp_st_wait_sem)
    );
    assign wr_tag[WrTagW*(2*Comp + 1) + 2] = 1'b0;
    // Context 0 has none.
    assign {wr_ask[2*Comp], wr_busy[2*Comp], wr_stay[2*Comp]} = '0;
    assign wr_addr[64*Comp +: 32]           = '0;
    assign wr_beats[10*Comp +: 5]           = '0;
    assign wr_from[WrAtW*2*Comp +: WrAtW]   = '0;
    assign wr_tag[WrTagW*2*Comp +: WrTagW]  = '0;
    assign wr_end_tag[EndW*2*Comp +: EndW]  = '0;
    logic unused_comp;
    assign unused_comp = ^{wr_ready[2*Comp], wr_beat[2*Comp], wr_fault[2*Comp], wr_end[2*Comp], wr_within[2*Comp], wr_idle[2*Comp]};
    assign ld_valid[0]       = ld_cmd_valid_i[0];
    assign st_valid[0]       = st_cmd_valid_i[0];
    assign ld_cmd_ready_o[0] = ld_ready[0];
    assign st_cmd_ready_o[0] = st_ready[0];
  end else begin : g_no_comp
    assign {ld_valid, st_valid}             = {ld_cmd_valid_i, st_cmd_valid_i};
    assign {ld_cmd_ready_o, st_cmd_ready_o} = {ld_ready, st_ready};
    assign {spm_rd_valid_o, spm_rd_addr_o, spm_rd_ctx_o}                               = {rd_valid, rd_at, rd_ctx};
    assign {spm_wr_valid_o, spm_wr_addr_o, spm_wr_ctx_o, spm_wr_data_o, spm_wr_exp_o}  = {wr_valid, wr_at, wr_ctx, wr_word, wr_exp};
    assign {crd_valid, crd_addr, crd_beats, crd_tag, arena_held_o, arena_most_o}       = '0;
    assign {comp_err, comp_code, comp_addr, comp_ld_dec, comp_ld_inc, comp_st_dec, comp_st_inc} = '0;
    assign {comp_ld_quiet, comp_st_quiet, comp_st_idle, comp_ld_wait_mem, comp_ld_wait_sem, comp_st_wait_sem} = 6'b111000;
    logic unused_comp;
    assign unused_comp = ^{arena_reset_i, arena_base_i, arena_pages_i, crd_ready, crd_beat, crd_fault, crd_last, crd_beat_addr, crd_beat_tag, crd_idle, crd_still};
  end

  assign ld_sem_dec_o     = {ld_dec[31:16] | comp_ld_dec, ld_dec[15:0]};
  assign ld_sem_inc_o     = {ld_inc[31:16] | comp_ld_inc, ld_inc[15:0]};
  assign st_sem_dec_o     = {st_dec[31:16] | comp_st_dec, st_dec[15:0]};
  assign st_sem_inc_o     = {st_inc[31:16] | comp_st_inc, st_inc[15:0]};
  assign ev_ld_wait_mem_o = ld_wait_mem | {comp_ld_wait_mem, 1'b0};
  assign ev_ld_wait_sem_o = ld_wait_sem | {comp_ld_wait_sem, 1'b0};
  assign ev_st_wait_sem_o = st_wait_sem | {comp_st_wait_sem, 1'b0};

  // ---------------------------------------------------------------------------------------------------------------------------
  // Errors.

  logic [1:0] cerr;
  assign cerr  = {comp_err, 1'b0};
  assign err_d = (rd_err | cerr | st_err) & ~bad_q & ~flush_i;
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
        code_q[8*c +: 8]   <= rd_err[c] ? rd_code[8*c +: 8] : cerr[c] ? comp_code : st_code[8*c +: 8];
        addr_q[32*c +: 32] <= rd_err[c] ? rd_addr[32*c +: 32] : cerr[c] ? comp_addr : st_addr[32*c +: 32];
      end
    end
  end

  assign err_o      = err_q;
  assign err_code_o = code_q;
  assign err_addr_o = addr_q;

  // A context with an error is idle only once it is being flushed: a job does not end well by it.
  assign ld_idle_o  = ld_quiet & {comp_ld_quiet, 1'b1} & fetch_idle_o & ~(bad_q & ~flush_i);
  assign st_idle_o  = st_idle & {comp_st_idle, 1'b1} & ~(bad_q & ~flush_i);
  assign ld_quiet_o = ld_quiet & {comp_ld_quiet, 1'b1} & ~bad_q;
  assign st_quiet_o = st_quiet & {comp_st_quiet, 1'b1} & ~bad_q;

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
