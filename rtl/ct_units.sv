// SPDX-License-Identifier: Apache-2.0
//
// The units of ct_core: one matrix array, one vector unit, one DMA and one scratchpad, which both contexts share; and what they count.
//
// Here        only wiring, and the registers of flush_i. A word of a unit holds both contexts, context 1 in the upper half.
// Probe       see ct_core.
//
// Parameters
//   Cols, VpuLanes, FnLanes, SpmWords, PackDsp, Conv, Batcher, Compress   as ct_core

`default_nettype none
`include "ct_assert.svh"

module ct_units #(
  parameter  int unsigned Cols     = 16,
  parameter  int unsigned VpuLanes = 16,
  parameter  int unsigned FnLanes  = (VpuLanes == 4) ? 1 : VpuLanes,
  parameter  int unsigned SpmWords = 65536,
  parameter  int unsigned PackDsp  = 0,
  parameter  int unsigned Conv     = 1,
  parameter  int unsigned Batcher  = 1,
  parameter  int unsigned Compress = 0,
  localparam int unsigned PageW    = ct_pkg::CompPageW,
  localparam int unsigned Units    = ct_pkg::Units,
  localparam int unsigned Counters = ct_pkg::NumCounters
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Registers, see ct_regs.
  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic                    freeze_i,
  input  logic [3:0]              train_cap_i,
  input  logic [63:0]             rd_base_i,
  input  logic [63:0]             rd_limit_i,
  input  logic [63:0]             wr_base_i,
  input  logic [63:0]             wr_limit_i,
  input  logic [39:0]             spm_base_i,
  input  logic [39:0]             spm_size_i,
  input  logic                    arena_reset_i,
  input  logic [31:0]             arena_base_i,
  input  logic [PageW:0]          arena_pages_i,
  output logic [PageW:0]          arena_held_o,
  output logic [PageW:0]          arena_most_o,
  input  logic                    flip_arm_i,
  input  logic [19:0]             flip_addr_i,
  input  logic [7:0]              flip_bit_i,
  input  logic                    peek_i,
  input  logic [19:0]             peek_addr_i,
  output logic                    peek_vld_o,
  output logic [127:0]            peek_data_o,
  output logic [7:0]              peek_exp_o,
  output logic                    peek_perr_o,

  // Contexts, see ct_contexts.
  input  logic [2*Units-1:0]      cmd_valid_i,
  input  logic [2*256*Units-1:0]  cmd_i,
  output logic [2*Units-1:0]      cmd_ready_o,
  input  logic [31:0]             sem_nz_i,
  output logic [32*Units-1:0]     sem_dec_o,
  output logic [32*Units-1:0]     sem_inc_o,
  output logic [2*Units-1:0]      idle_o,
  output logic [1:0]              ld_quiet_o,
  output logic [1:0]              st_quiet_o,
  input  logic [1:0]              flush_i,
  input  logic [1:0]              abandon_i,
  input  logic [1:0]              st_seal_i,
  output logic [1:0]              st_old_o,
  output logic [1:0]              st_old_err_o,
  output logic [31:0]             st_old_err_addr_o,
  output logic [5:0]              err_o,
  output logic [3*16-1:0]         err_code_o,
  output logic [3*64-1:0]         err_addr_o,
  output logic [1:0]              ev_rows_o,
  input  logic [1:0]              fetch_valid_i,
  output logic [1:0]              fetch_ready_o,
  input  logic [63:0]             fetch_addr_i,
  input  logic [21:0]             fetch_len_i,
  input  logic [1:0]              fetch_soft_i,
  input  logic [1:0]              fetch_drop_i,
  output logic [1:0]              fetch_bad_o,
  output logic [1:0]              fetch_idle_o,
  output logic [1:0]              fetch_rvalid_o,
  output logic [127:0]            fetch_rdata_o,
  output logic [1:0]              gat_valid_o,
  output logic [7:0]              gat_row_o,
  input  logic [1:0]              gat_gnt_i,
  input  logic [1:0]              gat_vld_i,
  input  logic [31:0]             gat_addr_i,

  // Counter events; those of the contexts go through.
  input  logic [1:0]              job_busy_i,
  input  logic [1:0]              job_finish_i,
  input  logic [1:0]              dispatch_i,
  output logic [2*Counters-1:0]   ev_o,

  // AXI4 master: device memory.
  output logic                    m_axi_awvalid_o,
  input  logic                    m_axi_awready_i,
  output logic                    m_axi_awid_o,
  output logic [35:0]             m_axi_awaddr_o,
  output logic [7:0]              m_axi_awlen_o,
  output logic [2:0]              m_axi_awsize_o,
  output logic [1:0]              m_axi_awburst_o,
  output logic                    m_axi_wvalid_o,
  input  logic                    m_axi_wready_i,
  output logic [127:0]            m_axi_wdata_o,
  output logic [15:0]             m_axi_wstrb_o,
  output logic                    m_axi_wlast_o,
  input  logic                    m_axi_bvalid_i,
  output logic                    m_axi_bready_o,
  input  logic                    m_axi_bid_i,
  input  logic [1:0]              m_axi_bresp_i,
  output logic                    m_axi_arvalid_o,
  input  logic                    m_axi_arready_i,
  output logic                    m_axi_arid_o,
  output logic [35:0]             m_axi_araddr_o,
  output logic [7:0]              m_axi_arlen_o,
  output logic [2:0]              m_axi_arsize_o,
  output logic [1:0]              m_axi_arburst_o,
  input  logic                    m_axi_rvalid_i,
  output logic                    m_axi_rready_o,
  input  logic                    m_axi_rid_i,
  input  logic [127:0]            m_axi_rdata_i,
  input  logic [1:0]              m_axi_rresp_i,
  input  logic                    m_axi_rlast_i,

  output logic [59:0]             probe_o
);

  // What stops a context stands in a register of its own near each of those that it stops: they lie all over a chip. So a unit is flushed from the cycle
  // after the context's queues are to the cycle after; meanwhile these offer nothing, and what it gives the semaphores is not looked at.
  (* keep *) logic [1:0] vl_flush_q, va_flush_q, vs_flush_q, dma_flush_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      vl_flush_q  <= 2'b00;
      va_flush_q  <= 2'b00;
      vs_flush_q  <= 2'b00;
      dma_flush_q <= 2'b00;
    end else begin
      vl_flush_q  <= flush_i;
      va_flush_q  <= flush_i;
      vs_flush_q  <= flush_i;
      dma_flush_q <= flush_i;
    end
  end

  // ---- Matrix array --------------------------------------------------------------------------------------------------------

  logic [4:0]             rd_valid, rd_ready, rd_vld, rd_perr, rd_ctx;
  logic                   ld_wr_ctx, ld_yield, ld_block;
  logic                   vl_refused;  // VL waits for its bank of the tile registers
  logic [5*20-1:0]        rd_addr;
  logic [5*128-1:0]       rd_data;
  logic [5*8-1:0]         rd_exp;
  logic [1:0]             wr_valid, wr_ready;
  logic [2*20-1:0]        wr_addr;
  logic [2*128-1:0]       wr_data;
  logic [2*8-1:0]         wr_exp;
  logic                   acc_rd_valid, acc_rd_ctx;
  logic [3:0]             acc_rd_tile, acc_rd_row;
  logic [1:0]             acc_rd_beat;
  logic [32*VpuLanes-1:0] acc_rd_data;
  logic [1:0]             ev_mxu_busy, ev_mxu_wait_arb, ev_mxu_wait_b, ev_mxu_wait_a, ev_mxu_wait_sem;
  logic [1:0]             ev_ld_beats, ev_ld_wait_arb, ev_ld_wait_mem, ev_ld_wait_sem;
  logic [1:0]             ev_st_beats, ev_st_wait_arb, ev_st_wait_mem, ev_st_wait_sem;
  logic [1:0]             ev_vl_busy, ev_va_busy, ev_vs_busy, ev_nan;
  logic [5:0]             ev_vpu_wait_arb, ev_vpu_wait_sem;  // VS, VA, VL

  ct_mxu #(.Cols(Cols), .VpuLanes(VpuLanes), .PackDsp(PackDsp), .Conv(Conv)) u_mxu (
    .clk_i, .rst_ni,
    .cmd_valid_i    (cmd_valid_i[5:4]),
    .cmd_i          (cmd_i[512*2 +: 512]),
    .cmd_ready_o    (cmd_ready_o[5:4]),
    .sem_nz_i,
    .sem_dec_o      (sem_dec_o[32*2 +: 32]),
    .sem_inc_o      (sem_inc_o[32*2 +: 32]),
    .flush_i        (flush_i),        // (it has its registers)
    .idle_o         (idle_o[5:4]),
    .err_o          (err_o[3:2]),
    .err_code_o     (err_code_o[16 +: 16]),
    .err_addr_o     (err_addr_o[64 +: 64]),
    .qos_i, .freeze_i, .spm_base_i, .spm_size_i,
    .spm_rd_valid_o (rd_valid[2:0]),
    .spm_rd_addr_o  (rd_addr[59:0]),
    .spm_rd_ctx_o   (rd_ctx[2:0]),
    .spm_rd_ready_i (rd_ready[2:0]),
    .spm_rd_vld_i   (rd_vld[2:0]),
    .spm_rd_data_i  (rd_data[383:0]),
    .spm_rd_exp_i   (rd_exp[23:0]),
    .spm_rd_perr_i  (rd_perr[2:0]),
    .acc_rd_valid_i (acc_rd_valid),
    .acc_rd_ctx_i   (acc_rd_ctx),
    .acc_rd_tile_i  (acc_rd_tile),
    .acc_rd_row_i   (acc_rd_row),
    .acc_rd_beat_i  (acc_rd_beat),
    .acc_rd_data_o  (acc_rd_data),
    .ev_rows_o,
    .ev_busy_o      (ev_mxu_busy),
    .ev_wait_arb_o  (ev_mxu_wait_arb),
    .ev_wait_b_o    (ev_mxu_wait_b),
    .ev_wait_a_o    (ev_mxu_wait_a),
    .ev_wait_sem_o  (ev_mxu_wait_sem),
    .probe_o        (probe_o[29:20])
  );

  // ---- Vector unit ----------------------------------------------------------------------------------------------------------

  ct_vpu #(.VpuLanes(VpuLanes), .FnLanes(FnLanes)) u_vpu (
    .clk_i, .rst_ni, .qos_i, .freeze_i, .spm_base_i, .spm_size_i,
    .vl_cmd_valid_i (cmd_valid_i[7:6]),
    .vl_cmd_i       (cmd_i[512*3 +: 512]),
    .vl_cmd_ready_o (cmd_ready_o[7:6]),
    .vl_sem_nz_i    (sem_nz_i),
    .vl_sem_dec_o   (sem_dec_o[32*3 +: 32]),
    .vl_sem_inc_o   (sem_inc_o[32*3 +: 32]),
    .vl_flush_i     (vl_flush_q),
    .vl_idle_o      (idle_o[7:6]),
    .va_cmd_valid_i (cmd_valid_i[9:8]),
    .va_cmd_i       (cmd_i[512*4 +: 512]),
    .va_cmd_ready_o (cmd_ready_o[9:8]),
    .va_sem_nz_i    (sem_nz_i),
    .va_sem_dec_o   (sem_dec_o[32*4 +: 32]),
    .va_sem_inc_o   (sem_inc_o[32*4 +: 32]),
    .va_flush_i     (va_flush_q),
    .va_idle_o      (idle_o[9:8]),
    .vs_cmd_valid_i (cmd_valid_i[11:10]),
    .vs_cmd_i       (cmd_i[512*5 +: 512]),
    .vs_cmd_ready_o (cmd_ready_o[11:10]),
    .vs_sem_nz_i    (sem_nz_i),
    .vs_sem_dec_o   (sem_dec_o[32*5 +: 32]),
    .vs_sem_inc_o   (sem_inc_o[32*5 +: 32]),
    .vs_flush_i     (vs_flush_q),
    .vs_idle_o      (idle_o[11:10]),
    .err_o          (err_o[5:4]),
    .err_code_o     (err_code_o[32 +: 16]),
    .err_addr_o     (err_addr_o[128 +: 64]),
    .spm_rd_valid_o (rd_valid[4]),
    .spm_rd_addr_o  (rd_addr[80 +: 20]),
    .spm_rd_ctx_o   (rd_ctx[4]),
    .spm_rd_ready_i (rd_ready[4]),
    .spm_rd_vld_i   (rd_vld[4]),
    .spm_rd_data_i  (rd_data[512 +: 128]),
    .spm_rd_exp_i   (rd_exp[32 +: 8]),
    .spm_rd_perr_i  (rd_perr[4]),
    .spm_wr_valid_o (wr_valid[1]),
    .spm_wr_addr_o  (wr_addr[20 +: 20]),
    .spm_wr_data_o  (wr_data[128 +: 128]),
    .spm_wr_exp_o   (wr_exp[8 +: 8]),
    .spm_wr_ready_i (wr_ready[1]),
    .spm_wr_other_i (ld_wr_ctx),
    .spm_wr_yield_o (ld_yield),
    .spm_wr_block_o (ld_block),
    .vl_refused_o   (vl_refused),
    .acc_rd_valid_o (acc_rd_valid),
    .acc_rd_ctx_o   (acc_rd_ctx),
    .acc_rd_tile_o  (acc_rd_tile),
    .acc_rd_row_o   (acc_rd_row),
    .acc_rd_beat_o  (acc_rd_beat),
    .acc_rd_data_i  (acc_rd_data),
    .ev_vl_busy_o   (ev_vl_busy),
    .ev_va_busy_o   (ev_va_busy),
    .ev_vs_busy_o   (ev_vs_busy),
    .ev_wait_arb_o  (ev_vpu_wait_arb),
    .ev_wait_sem_o  (ev_vpu_wait_sem),
    .ev_nan_o       (ev_nan),
    .probe_o        (probe_o[59:30])
  );

  // ---- DMA ------------------------------------------------------------------------------------------------------------------

  ct_dma #(.Gather(Batcher), .Compress(Compress)) u_dma (
    .gat_valid_o, .gat_row_o, .gat_gnt_i, .gat_vld_i, .gat_addr_i, .clk_i, .rst_ni, .qos_i, .freeze_i, .train_cap_i,
    .ld_yield_i     (ld_yield),
    .ld_block_i     (ld_block),
    .flush_i        (dma_flush_q),
    .abandon_i,
    .ld_cmd_valid_i (cmd_valid_i[1:0]),
    .ld_cmd_i       (cmd_i[512*0 +: 512]),
    .ld_cmd_ready_o (cmd_ready_o[1:0]),
    .ld_sem_nz_i    (sem_nz_i),
    .ld_sem_dec_o   (sem_dec_o[32*0 +: 32]),
    .ld_sem_inc_o   (sem_inc_o[32*0 +: 32]),
    .ld_idle_o      (idle_o[1:0]),
    .ld_quiet_o,
    .st_cmd_valid_i (cmd_valid_i[3:2]),
    .st_cmd_i       (cmd_i[512*1 +: 512]),
    .st_cmd_ready_o (cmd_ready_o[3:2]),
    .st_sem_nz_i    (sem_nz_i),
    .st_sem_dec_o   (sem_dec_o[32*1 +: 32]),
    .st_sem_inc_o   (sem_inc_o[32*1 +: 32]),
    .st_idle_o      (idle_o[3:2]),
    .st_quiet_o, .st_seal_i, .st_old_o, .st_old_err_o, .st_old_err_addr_o,
    .err_o          (err_o[1:0]),
    .err_code_o     (err_code_o[0 +: 16]),
    .err_addr_o     (err_addr_o[0 +: 64]),
    .fetch_valid_i, .fetch_addr_i, .fetch_len_i, .fetch_soft_i, .fetch_drop_i, .fetch_ready_o, .fetch_bad_o, .fetch_idle_o, .fetch_rvalid_o,
    .fetch_rdata_o,
    .fetch_rlast_o  (),
    .rd_base_i, .rd_limit_i, .wr_base_i, .wr_limit_i, .spm_base_i, .spm_size_i,
    .arena_reset_i, .arena_base_i, .arena_pages_i, .arena_held_o, .arena_most_o,
    .spm_wr_valid_o (wr_valid[0]),
    .spm_wr_addr_o  (wr_addr[0 +: 20]),
    .spm_wr_ctx_o   (ld_wr_ctx),
    .spm_wr_data_o  (wr_data[0 +: 128]),
    .spm_wr_exp_o   (wr_exp[0 +: 8]),
    .spm_rd_valid_o (rd_valid[3]),
    .spm_rd_addr_o  (rd_addr[60 +: 20]),
    .spm_rd_ctx_o   (rd_ctx[3]),
    .spm_rd_ready_i (rd_ready[3]),
    .spm_rd_vld_i   (rd_vld[3]),
    .spm_rd_data_i  (rd_data[384 +: 128]),
    .spm_rd_exp_i   (rd_exp[24 +: 8]),
    .spm_rd_perr_i  (rd_perr[3]),
    .m_axi_awvalid_o, .m_axi_awready_i, .m_axi_awid_o, .m_axi_awaddr_o, .m_axi_awlen_o, .m_axi_awsize_o, .m_axi_awburst_o,
    .m_axi_wvalid_o, .m_axi_wready_i, .m_axi_wdata_o, .m_axi_wstrb_o, .m_axi_wlast_o,
    .m_axi_bvalid_i, .m_axi_bready_o, .m_axi_bid_i, .m_axi_bresp_i,
    .m_axi_arvalid_o, .m_axi_arready_i, .m_axi_arid_o, .m_axi_araddr_o, .m_axi_arlen_o, .m_axi_arsize_o, .m_axi_arburst_o,
    .m_axi_rvalid_i, .m_axi_rready_o, .m_axi_rid_i, .m_axi_rdata_i, .m_axi_rresp_i, .m_axi_rlast_i,
    .ev_ld_beats_o  (ev_ld_beats),
    .ev_st_beats_o  (ev_st_beats),
    .ev_ld_wait_arb_o(ev_ld_wait_arb),
    .ev_ld_wait_mem_o(ev_ld_wait_mem),
    .ev_ld_wait_sem_o(ev_ld_wait_sem),
    .ev_st_wait_arb_o(ev_st_wait_arb),
    .ev_st_wait_mem_o(ev_st_wait_mem),
    .ev_st_wait_sem_o(ev_st_wait_sem),
    .probe_o        (probe_o[19:0])
  );

  // ---- Scratchpad -----------------------------------------------------------------------------------------------------------

  // Half the columns read half as many words a cycle.
  ct_spm #(.Words(SpmWords), .Banks(Cols / 2)) u_spm (
    .clk_i, .rst_ni,
    .rd_valid_i  (rd_valid),
    .rd_addr_i   (rd_addr),
    .strict_i    (qos_i[ct_pkg::QosStrict]),
    .rd_yield_i  (rd_ctx),
    .rd_ready_o  (rd_ready),
    .rd_vld_o    (rd_vld),
    .rd_data_o   (rd_data),
    .rd_exp_o    (rd_exp),
    .rd_perr_o   (rd_perr),
    .wr_valid_i  (wr_valid),
    .wr_addr_i   (wr_addr),
    .wr_data_i   (wr_data),
    .wr_exp_i    (wr_exp),
    .wr_ready_o  (wr_ready),
    .flip_arm_i, .flip_addr_i, .flip_bit_i, .peek_i, .peek_addr_i, .peek_vld_o, .peek_data_o, .peek_exp_o,
    .peek_perr_o
  );

  logic unused_ld_ready;  // LD writes are always taken
  assign unused_ld_ready = ^{wr_ready[0], vl_refused};

  // ---- Counter events -------------------------------------------------------------------------------------------------------

  for (genvar c = 0; c < 2; c++) begin : g_ev
    assign ev_o[Counters*c+ct_pkg::CntBusy]       = job_busy_i[c];
    assign ev_o[Counters*c+ct_pkg::CntJobs]       = job_finish_i[c];
    assign ev_o[Counters*c+ct_pkg::CntMxuRows]    = ev_rows_o[c];
    assign ev_o[Counters*c+ct_pkg::CntMxuBusy]    = ev_mxu_busy[c];
    assign ev_o[Counters*c+ct_pkg::CntMxuWaitArb] = ev_mxu_wait_arb[c];
    assign ev_o[Counters*c+ct_pkg::CntMxuWaitB]   = ev_mxu_wait_b[c];
    assign ev_o[Counters*c+ct_pkg::CntMxuWaitA]   = ev_mxu_wait_a[c];
    assign ev_o[Counters*c+ct_pkg::CntMxuWaitSem] = ev_mxu_wait_sem[c];
    assign ev_o[Counters*c+ct_pkg::CntLdBeats]    = ev_ld_beats[c];
    assign ev_o[Counters*c+ct_pkg::CntStBeats]    = ev_st_beats[c];
    assign ev_o[Counters*c+ct_pkg::CntLdWaitArb]  = ev_ld_wait_arb[c];
    assign ev_o[Counters*c+ct_pkg::CntLdWaitMem]  = ev_ld_wait_mem[c];
    assign ev_o[Counters*c+ct_pkg::CntLdWaitSem]  = ev_ld_wait_sem[c];
    assign ev_o[Counters*c+ct_pkg::CntStWaitArb]  = ev_st_wait_arb[c];
    assign ev_o[Counters*c+ct_pkg::CntStWaitMem]  = ev_st_wait_mem[c];
    assign ev_o[Counters*c+ct_pkg::CntStWaitSem]  = ev_st_wait_sem[c];
    assign ev_o[Counters*c+ct_pkg::CntVlBusy]     = ev_vl_busy[c];
    assign ev_o[Counters*c+ct_pkg::CntVaBusy]     = ev_va_busy[c];
    assign ev_o[Counters*c+ct_pkg::CntVsBusy]     = ev_vs_busy[c];
    assign ev_o[Counters*c+ct_pkg::CntVlWaitArb]  = ev_vpu_wait_arb[c];
    assign ev_o[Counters*c+ct_pkg::CntVaWaitArb]  = ev_vpu_wait_arb[2+c];
    assign ev_o[Counters*c+ct_pkg::CntVsWaitArb]  = ev_vpu_wait_arb[4+c];
    assign ev_o[Counters*c+ct_pkg::CntVlWaitSem]  = ev_vpu_wait_sem[c];
    assign ev_o[Counters*c+ct_pkg::CntVaWaitSem]  = ev_vpu_wait_sem[2+c];
    assign ev_o[Counters*c+ct_pkg::CntVsWaitSem]  = ev_vpu_wait_sem[4+c];
    assign ev_o[Counters*c+ct_pkg::CntCmds]       = dispatch_i[c];
    assign ev_o[Counters*c+ct_pkg::CntNanGroups]  = ev_nan[c];

    // A cycle of a unit and a context counts once: busy, a wait, or nothing.
    `CT_ASSERT(OneMxu_A, $onehot0({ev_mxu_busy[c], ev_mxu_wait_arb[c], ev_mxu_wait_b[c], ev_mxu_wait_a[c], ev_mxu_wait_sem[c]}))
    `CT_ASSERT(OneLd_A, $onehot0({ev_ld_beats[c], ev_ld_wait_arb[c], ev_ld_wait_mem[c], ev_ld_wait_sem[c]}))
    `CT_ASSERT(OneSt_A, $onehot0({ev_st_beats[c], ev_st_wait_arb[c], ev_st_wait_mem[c], ev_st_wait_sem[c]}))
    `CT_ASSERT(OneVl_A, $onehot0({ev_vl_busy[c], ev_vpu_wait_arb[c], ev_vpu_wait_sem[c]}))
    `CT_ASSERT(OneVa_A, $onehot0({ev_va_busy[c], ev_vpu_wait_arb[2+c], ev_vpu_wait_sem[2+c]}))
    `CT_ASSERT(OneVs_A, $onehot0({ev_vs_busy[c], ev_vpu_wait_arb[4+c], ev_vpu_wait_sem[4+c]}))

`ifdef VERILATOR
    // Nor is any forgotten: a unit that has work has an event, but for what its pipeline takes (Silent cycles) while no bank keeps it up.
    // (For the simulator alone: nothing else has a use for it.)
    localparam int unsigned Silent = 64;
    logic [Units-1:0]   counted, banks;
    assign banks   = {wr_valid[1] && !wr_ready[1], 1'b0, (rd_valid[4] && !rd_ready[4]) || vl_refused,
                      (rd_valid[0] && !rd_ready[0]) || (rd_valid[1+c] && !rd_ready[1+c]), rd_valid[3] && !rd_ready[3], 1'b0};
    logic [7*Units-1:0] silent_d, silent_q;
    assign counted = {|{ev_vs_busy[c], ev_vpu_wait_arb[4+c], ev_vpu_wait_sem[4+c]}, |{ev_va_busy[c], ev_vpu_wait_arb[2+c], ev_vpu_wait_sem[2+c]},
                      |{ev_vl_busy[c], ev_vpu_wait_arb[c], ev_vpu_wait_sem[c]},
                      |{ev_mxu_busy[c], ev_mxu_wait_arb[c], ev_mxu_wait_b[c], ev_mxu_wait_a[c], ev_mxu_wait_sem[c]},
                      |{ev_st_beats[c], ev_st_wait_arb[c], ev_st_wait_mem[c], ev_st_wait_sem[c]},
                      |{ev_ld_beats[c], ev_ld_wait_arb[c], ev_ld_wait_mem[c], ev_ld_wait_sem[c]}};
    always_comb begin
      for (int u = 0; u < Units; u++) begin
        if (idle_o[2*u+c] || counted[u] || freeze_i || flush_i[c]) silent_d[7*u +: 7] = '0;
        else if (banks[u])                                         silent_d[7*u +: 7] = silent_q[7*u +: 7];
        else                                                       silent_d[7*u +: 7] = silent_q[7*u +: 7] + 7'd1;
      end
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) silent_q <= '0;
      else         silent_q <= silent_d;
    end
    for (genvar u = 0; u < Units; u++) begin : g_silent
      `CT_ASSERT(WorkIsCounted_A, silent_q[7*u +: 7] <= 7'(Silent))
    end
`endif
  end

endmodule

`default_nettype wire
