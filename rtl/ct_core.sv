// SPDX-License-Identifier: Apache-2.0
//
// The core: two contexts (0 inference, 1 training) on one matrix array, one vector unit, one DMA and one scratchpad.
//
// Interfaces  AXI4-Lite slave (32 bit data, 12 bit byte address; see ct_regs), AXI4 master (128 bit data, 36 bit byte address, one ID
//             per context; see ct_dma), irq_o (level: an enabled context holds completions). One clock; rst_ni is asserted
//             asynchronously and must be released in step with the clock.
// Here        only wiring: the registers (ct_regs), the contexts with their jobs (ct_contexts), the units that do the work (ct_units), and who goes
//             first (ct_qos).
//
// Probe       probe_o[10*u +: 10] of unit u (0 DMA read, 1 DMA write, 2 MXU, 3 VL, 4 VA, 5 VS), each a pair with a bit for each context:
//               1:0  ready     a slot's worth of work has operands, destination and output space and asks the unit's arbiter (a read of training
//                            that defers to inference: not before it is owed)
//               3:2  granted   the arbiter gives it the slot: a burst, a row (VA with 16 lanes: an operation)
//               5:4  used      the unit moves something in this cycle: a beat, a row (with fewer columns than 16 a part of one), a word, a row of a tile
//               7:6  accept    the last of an operation has entered, or a flush drops the rest: the unit is free for the next
//               9:8  complete  its results are visible and its semaphores are signalled
//             Wires only: nothing is kept for it, and synthesis drops what it does not need.
//
// Parameters
//   Cols        columns of the array, 16, 8 or 4
//   VpuLanes    lanes of the vector unit, 16 or 4
//   FnLanes     lanes of it that have functions: VpuLanes, or 1 of 4 (see ct_vpu); the default is all of 16 and 1 of 4
//   SpmWords    scratchpad words of 16 mantissas and an exponent, a power of two, 128 .. 2^20
//   ClockHz     what CLOCK_HZ says
//   DramMib     what DRAM_BYTES says: device memory in MiB, 1 .. 65536
//   QueueDepth  commands in each of the twelve unit queues, 2 .. 64
//   PackDsp     1: the array puts two products into one DSP (see ct_mxu)
//   Contexts    2; 1: inference alone, without a training context and without a scheduler (FEATURES bit 1, training, is 0; registers and counters of
//               context 1, POLICY and FLOOR read 0): what a core without co-location would be
//   Conv        1: convolutions by walks (WPIX, WTAP, MM with Walk); 0: they are illegal, and FEATURES bit 5 is 0
//   Compress    1: LD and ST of context 1 can compress (Comp; docs/compression.md); 0: such commands are illegal, FEATURES bit 6 is 0
//   Batcher     1: requests become batches in hardware (ct_batch); 0: FEATURES bit 4 is 0, the registers from 0x300 read 0

`default_nettype none

module ct_core #(
  parameter int unsigned Cols       = 16,
  parameter int unsigned VpuLanes   = 16,
  parameter int unsigned FnLanes    = (VpuLanes == 4) ? 1 : VpuLanes,
  parameter int unsigned SpmWords   = 65536,
  parameter int unsigned ClockHz    = 100000000,
  parameter int unsigned DramMib    = 256,
  parameter int unsigned QueueDepth = 16,
  parameter int unsigned PackDsp    = 0,
  parameter int unsigned Conv       = 1,
  parameter int unsigned Batcher    = 1,
  parameter int unsigned Contexts   = 2,
  parameter int unsigned Compress   = 0
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // AXI4-Lite slave: registers.
  input  logic         s_axil_awvalid_i,
  output logic         s_axil_awready_o,
  input  logic [11:0]  s_axil_awaddr_i,
  input  logic         s_axil_wvalid_i,
  output logic         s_axil_wready_o,
  input  logic [31:0]  s_axil_wdata_i,
  input  logic [3:0]   s_axil_wstrb_i,
  output logic         s_axil_bvalid_o,
  input  logic         s_axil_bready_i,
  output logic [1:0]   s_axil_bresp_o,
  input  logic         s_axil_arvalid_i,
  output logic         s_axil_arready_o,
  input  logic [11:0]  s_axil_araddr_i,
  output logic         s_axil_rvalid_o,
  input  logic         s_axil_rready_i,
  output logic [31:0]  s_axil_rdata_o,
  output logic [1:0]   s_axil_rresp_o,

  // AXI4 master: device memory.
  output logic         m_axi_awvalid_o,
  input  logic         m_axi_awready_i,
  output logic         m_axi_awid_o,
  output logic [35:0]  m_axi_awaddr_o,
  output logic [7:0]   m_axi_awlen_o,
  output logic [2:0]   m_axi_awsize_o,
  output logic [1:0]   m_axi_awburst_o,
  output logic         m_axi_wvalid_o,
  input  logic         m_axi_wready_i,
  output logic [127:0] m_axi_wdata_o,
  output logic [15:0]  m_axi_wstrb_o,
  output logic         m_axi_wlast_o,
  input  logic         m_axi_bvalid_i,
  output logic         m_axi_bready_o,
  input  logic         m_axi_bid_i,
  input  logic [1:0]   m_axi_bresp_i,
  output logic         m_axi_arvalid_o,
  input  logic         m_axi_arready_i,
  output logic         m_axi_arid_o,
  output logic [35:0]  m_axi_araddr_o,
  output logic [7:0]   m_axi_arlen_o,
  output logic [2:0]   m_axi_arsize_o,
  output logic [1:0]   m_axi_arburst_o,
  input  logic         m_axi_rvalid_i,
  output logic         m_axi_rready_o,
  input  logic         m_axi_rid_i,
  input  logic [127:0] m_axi_rdata_i,
  input  logic [1:0]   m_axi_rresp_i,
  input  logic         m_axi_rlast_i,

  output logic         irq_o,

  // What a simulator watches; leave it open in hardware.
  output logic [59:0]  probe_o
);

  if (Cols != 16 && Cols != 8 && Cols != 4) begin : g_check_cols
    ct_error_cols_must_be_16_8_or_4 u_error ();
  end
  if (VpuLanes != 16 && VpuLanes != 4) begin : g_check_lanes
    ct_error_vpu_lanes_must_be_16_or_4 u_error ();
  end
  if (SpmWords < 128 || SpmWords > 2 ** 20 || (SpmWords & (SpmWords - 1)) != 0) begin : g_check_spm
    ct_error_spm_words_must_be_a_power_of_two_from_128_to_2_to_the_20 u_error ();
  end
  if (Contexts != 1 && Contexts != 2) begin : g_check_contexts
    ct_error_contexts_must_be_1_or_2 u_error ();
  end
  if (ClockHz == 0) begin : g_check_clock
    ct_error_clock_hz_must_not_be_0 u_error ();
  end
  if (DramMib == 0 || DramMib > 65536) begin : g_check_dram
    ct_error_dram_mib_must_be_1_to_65536 u_error ();
  end

  localparam int unsigned Units    = ct_pkg::Units;
  localparam int unsigned Counters = ct_pkg::NumCounters;
  localparam int unsigned CplW     = ct_pkg::CplW;
  localparam int unsigned Comp     = (Contexts == 2) ? Compress : 0;

  // ---- Registers ------------------------------------------------------------------------------------------------------------

  logic                  core_rst_n;
  logic [2:0]            policy;       // as the register says
  logic [ct_pkg::QosW-1:0] qos;        // as the units see it
  logic                  bat_wr_valid, bat_wr_ready, bat_rd_valid, bat_rd_vld, bat_irq, bat_slack;
  logic [5:0]            bat_wr_word, bat_rd_word;
  logic [31:0]           bat_wr_data, bat_rd_data;
  logic [7:0]            train_floor;
  logic [3:0]            train_cap;
  logic                  freeze, hold;
  logic [31:0]           drain_limit;
  logic [63:0]           cycle, cycle_next;
  logic [63:0]           ring_base, watchdog, rd_base, rd_limit, wr_base, wr_limit;
  logic [7:0]            ring_log2;
  logic [1:0]            tail_we, ctx_reset, ctx_cancel, cpl_pop, quiet, dead, cpl_valid;
  logic              cancel_named;
  logic [47:0]       cancel_num;
  logic [15:0]           tail_wdata;
  logic [39:0]           spm_base, spm_size;
  logic [31:0]           tail, head;
  logic [5:0]            status;
  logic [9:0]            cpl_count;
  logic [2*CplW-1:0]     cpl;
  logic                  flip_arm, peek, peek_vld, peek_perr;
  logic [19:0]           flip_addr, peek_addr;
  logic [7:0]            flip_bit, peek_exp;
  logic [127:0]          peek_data;
  logic [2*Counters-1:0] ev;
  logic                  arena_reset;
  logic [31:0]           arena_base;
  logic [ct_pkg::CompPageW:0] arena_pages, arena_held, arena_most;

  ct_regs #(
    .Cols(Cols), .VpuLanes(VpuLanes), .SpmWords(SpmWords), .ClockHz(ClockHz), .DramMib(DramMib), .Batcher(Batcher), .Conv(Conv), .Contexts(Contexts),
    .Compress(Comp)
  ) u_regs (
    .clk_i, .rst_ni,
    .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_awaddr_i,
    .s_axil_wvalid_i, .s_axil_wready_o, .s_axil_wdata_i, .s_axil_wstrb_i,
    .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_bresp_o,
    .s_axil_arvalid_i, .s_axil_arready_o, .s_axil_araddr_i,
    .s_axil_rvalid_o, .s_axil_rready_i, .s_axil_rdata_o, .s_axil_rresp_o,
    .irq_o,
    .core_rst_no   (core_rst_n),
    .policy_o      (policy),
    .floor_o       (train_floor),
    .train_cap_o   (train_cap),
    .freeze_o      (freeze),
    .drain_limit_o (drain_limit),
    .cycle_o       (cycle),
    .cycle_next_o  (cycle_next),
    .ring_base_o   (ring_base),
    .ring_log2_o   (ring_log2),
    .tail_we_o     (tail_we),
    .tail_o        (tail_wdata),
    .reset_o       (ctx_reset),
    .cancel_o      (ctx_cancel),
    .cancel_named_o (cancel_named),
    .cancel_num_o  (cancel_num),
    .hold_o        (hold),
    .watchdog_o    (watchdog),
    .rd_base_o     (rd_base),
    .rd_limit_o    (rd_limit),
    .wr_base_o     (wr_base),
    .wr_limit_o    (wr_limit),
    .spm_base_o    (spm_base),
    .spm_size_o    (spm_size),
    .arena_reset_o (arena_reset),
    .arena_base_o  (arena_base),
    .arena_pages_o (arena_pages),
    .arena_held_i  (arena_held),
    .arena_most_i  (arena_most),
    .tail_i        (tail),
    .head_i        (head),
    .status_i      (status),
    .quiet_i       (quiet),
    .dead_i        (dead),
    .cpl_valid_i   (cpl_valid),
    .cpl_count_i   (cpl_count),
    .cpl_i         (cpl),
    .cpl_pop_o     (cpl_pop),
    .bat_wr_valid_o (bat_wr_valid),
    .bat_wr_ready_i (bat_wr_ready),
    .bat_wr_word_o  (bat_wr_word),
    .bat_wr_data_o  (bat_wr_data),
    .bat_rd_valid_o (bat_rd_valid),
    .bat_rd_word_o  (bat_rd_word),
    .bat_rd_vld_i   (bat_rd_vld),
    .bat_rd_data_i  (bat_rd_data),
    .bat_irq_i      (bat_irq),
    .flip_arm_o    (flip_arm),
    .flip_addr_o   (flip_addr),
    .flip_bit_o    (flip_bit),
    .peek_o        (peek),
    .peek_addr_o   (peek_addr),
    .peek_vld_i    (peek_vld),
    .peek_data_i   (peek_data),
    .peek_exp_i    (peek_exp),
    .peek_perr_i   (peek_perr),
    .ev_i          (ev)
  );

  // (Slack counts one cycle late: what is taken from the batcher's queue has some hundred cycles of margin.)
  if (Contexts == 2) begin : g_qos
    ct_qos u_qos (
      .clk_i,
      .rst_ni   (core_rst_n),
      .policy_i (policy),
      .floor_i  (train_floor),
      .slack_i  (bat_slack),
      .qos_o    (qos)
    );
  end else begin : g_no_qos
    // Nobody to choose between: as POLICY and FLOOR read.
    assign qos = (ct_pkg::QosW'(1) << ct_pkg::QosRanked) | (ct_pkg::QosW'(1) << ct_pkg::QosStrict);
    logic unused_qos;
    assign unused_qos = ^{train_floor, bat_slack};
  end

  // ---- Contexts ---------------------------------------------------------------------------------------------------------------

  // Between contexts and units; ct_contexts says how.
  logic [2*Units-1:0]      cmd_valid, cmd_ready, idle;
  logic [2*256*Units-1:0]  cmd;
  logic [31:0]             sem_nz, st_old_err_addr, gat_addr;
  logic [32*Units-1:0]     sem_dec, sem_inc;
  logic [1:0]              ld_quiet, st_quiet, flush, abandon, st_seal, st_old, st_old_err, ev_rows, fetch_valid, fetch_ready, fetch_soft,
                           fetch_drop, fetch_bad, fetch_idle, fetch_rvalid, gat_valid, gat_gnt, gat_vld, job_busy, job_finish, dispatch;
  logic [5:0]              err;
  logic [3*16-1:0]         err_code;
  logic [3*64-1:0]         err_addr;
  logic [63:0]             fetch_addr;
  logic [21:0]             fetch_len;
  logic [127:0]            fetch_rdata;
  logic [7:0]              gat_row;

  ct_contexts #(.QueueDepth(QueueDepth), .Conv(Conv), .Batcher(Batcher), .Contexts(Contexts), .Compress(Comp)) u_contexts (
    .clk_i,
    .rst_ni (core_rst_n),
    .policy_i (policy), .freeze_i (freeze), .hold_i (hold), .drain_limit_i (drain_limit), .cycle_i (cycle), .cycle_next_i (cycle_next),
    .ring_base_i (ring_base), .ring_log2_i (ring_log2), .watchdog_i (watchdog), .tail_we_i (tail_we), .tail_wdata_i (tail_wdata),
    .ctx_reset_i (ctx_reset), .ctx_cancel_i (ctx_cancel), .cancel_named_i (cancel_named), .cancel_num_i (cancel_num), .tail_o (tail), .head_o (head),
    .status_o (status), .quiet_o (quiet), .dead_o (dead), .cpl_valid_o (cpl_valid), .cpl_count_o (cpl_count), .cpl_o (cpl), .cpl_pop_i (cpl_pop),
    .bat_wr_valid_i (bat_wr_valid), .bat_wr_ready_o (bat_wr_ready), .bat_wr_word_i (bat_wr_word), .bat_wr_data_i (bat_wr_data),
    .bat_rd_valid_i (bat_rd_valid), .bat_rd_word_i (bat_rd_word), .bat_rd_vld_o (bat_rd_vld), .bat_rd_data_o (bat_rd_data), .bat_irq_o (bat_irq),
    .bat_slack_o (bat_slack),
    .job_busy_o (job_busy), .job_finish_o (job_finish), .dispatch_o (dispatch),
    .cmd_valid_o (cmd_valid), .cmd_o (cmd), .cmd_ready_i (cmd_ready), .sem_nz_o (sem_nz), .sem_dec_i (sem_dec), .sem_inc_i (sem_inc), .idle_i (idle),
    .ld_quiet_i (ld_quiet), .st_quiet_i (st_quiet), .flush_o (flush), .abandon_o (abandon), .st_seal_o (st_seal), .st_old_i (st_old),
    .st_old_err_i (st_old_err), .st_old_err_addr_i (st_old_err_addr), .err_i (err), .err_code_i (err_code), .err_addr_i (err_addr),
    .ev_rows_i (ev_rows),
    .fetch_valid_o (fetch_valid), .fetch_ready_i (fetch_ready), .fetch_addr_o (fetch_addr), .fetch_len_o (fetch_len), .fetch_soft_o (fetch_soft),
    .fetch_drop_o (fetch_drop), .fetch_bad_i (fetch_bad), .fetch_idle_i (fetch_idle), .fetch_rvalid_i (fetch_rvalid), .fetch_rdata_i (fetch_rdata),
    .gat_valid_i (gat_valid), .gat_row_i (gat_row), .gat_gnt_o (gat_gnt), .gat_vld_o (gat_vld), .gat_addr_o (gat_addr)
  );

  // ---- Units ------------------------------------------------------------------------------------------------------------------

  ct_units #(
    .Cols(Cols), .VpuLanes(VpuLanes), .FnLanes(FnLanes), .SpmWords(SpmWords), .PackDsp(PackDsp), .Conv(Conv), .Batcher(Batcher),
    .Compress(Comp)
  ) u_units (
    .clk_i,
    .rst_ni (core_rst_n),
    .qos_i (qos), .freeze_i (freeze), .train_cap_i (train_cap), .rd_base_i (rd_base), .rd_limit_i (rd_limit), .wr_base_i (wr_base),
    .wr_limit_i (wr_limit), .spm_base_i (spm_base), .spm_size_i (spm_size), .arena_reset_i (arena_reset), .arena_base_i (arena_base),
    .arena_pages_i (arena_pages), .arena_held_o (arena_held), .arena_most_o (arena_most), .flip_arm_i (flip_arm), .flip_addr_i (flip_addr), .flip_bit_i (flip_bit),
    .peek_i (peek), .peek_addr_i (peek_addr), .peek_vld_o (peek_vld), .peek_data_o (peek_data), .peek_exp_o (peek_exp), .peek_perr_o (peek_perr),
    .cmd_valid_i (cmd_valid), .cmd_i (cmd), .cmd_ready_o (cmd_ready), .sem_nz_i (sem_nz), .sem_dec_o (sem_dec), .sem_inc_o (sem_inc), .idle_o (idle),
    .ld_quiet_o (ld_quiet), .st_quiet_o (st_quiet), .flush_i (flush), .abandon_i (abandon), .st_seal_i (st_seal), .st_old_o (st_old),
    .st_old_err_o (st_old_err), .st_old_err_addr_o (st_old_err_addr), .err_o (err), .err_code_o (err_code), .err_addr_o (err_addr),
    .ev_rows_o (ev_rows), .fetch_valid_i (fetch_valid), .fetch_ready_o (fetch_ready), .fetch_addr_i (fetch_addr), .fetch_len_i (fetch_len),
    .fetch_soft_i (fetch_soft), .fetch_drop_i (fetch_drop), .fetch_bad_o (fetch_bad), .fetch_idle_o (fetch_idle), .fetch_rvalid_o (fetch_rvalid),
    .fetch_rdata_o (fetch_rdata), .gat_valid_o (gat_valid), .gat_row_o (gat_row), .gat_gnt_i (gat_gnt), .gat_vld_i (gat_vld), .gat_addr_i (gat_addr),
    .job_busy_i (job_busy), .job_finish_i (job_finish), .dispatch_i (dispatch), .ev_o (ev),
    .m_axi_awvalid_o, .m_axi_awready_i, .m_axi_awid_o, .m_axi_awaddr_o, .m_axi_awlen_o, .m_axi_awsize_o, .m_axi_awburst_o, .m_axi_wvalid_o,
    .m_axi_wready_i, .m_axi_wdata_o, .m_axi_wstrb_o, .m_axi_wlast_o, .m_axi_bvalid_i, .m_axi_bready_o, .m_axi_bid_i, .m_axi_bresp_i,
    .m_axi_arvalid_o, .m_axi_arready_i, .m_axi_arid_o, .m_axi_araddr_o, .m_axi_arlen_o, .m_axi_arsize_o, .m_axi_arburst_o, .m_axi_rvalid_i,
    .m_axi_rready_o, .m_axi_rid_i, .m_axi_rdata_i, .m_axi_rresp_i, .m_axi_rlast_i,
    .probe_o
  );

endmodule

`default_nettype wire
