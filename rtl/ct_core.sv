// SPDX-License-Identifier: Apache-2.0
//
// The core: two contexts (0 inference, 1 training) on one matrix array, one vector unit, one DMA and one scratchpad.
//
// Interfaces  AXI4-Lite slave (32 bit data, 12 bit byte address; see ct_regs), AXI4 master (128 bit data, 36 bit byte address, one ID
//             per context; see ct_dma), irq_o (level: an enabled context holds completions). One clock; rst_ni is asserted
//             asynchronously and must be released in step with the clock.
// Here        only wiring and the gate of policy JOB: one ct_arbiter whose operations are whole jobs. Under the other policies
//             both contexts start jobs freely.
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
//   Batcher     1: requests become batches in hardware (ct_batch); 0: FEATURES bit 4 is 0, the registers from 0x300 read 0

`default_nettype none
`include "ct_assert.svh"

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
  parameter int unsigned Contexts   = 2
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

  localparam int unsigned Units    = 6;  // LD, ST, MM, VL, VA, VS
  localparam int unsigned Counters = ct_pkg::NumCounters;
  localparam int unsigned CplW     = ct_pkg::CplW;

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

  ct_regs #(
    .Cols(Cols), .VpuLanes(VpuLanes), .SpmWords(SpmWords), .ClockHz(ClockHz), .DramMib(DramMib), .Batcher(Batcher), .Conv(Conv), .Contexts(Contexts)
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

  // ---- Gate of policy JOB -----------------------------------------------------------------------------------------------------

  // A job is an operation of two slots, its start and its end: between them its context keeps the grant. The grant of a start
  // counts under JOB only, and not while a job of the other context runs that began under another policy. Nothing is flushed: a job
  // that has started finishes (OneCompletion_A of ct_job), that of a dead port, too.
  logic [1:0] job_want, job_gate, job_gnt, job_start, job_finish, job_busy;

  if (Contexts == 2) begin : g_job_gate
    ct_arbiter u_job_arbiter (
      .clk_i,
      .rst_ni   (core_rst_n),
      .qos_i    (ct_pkg::QosFcfs),
      .flush_i  (2'b00),
      .req_i    (job_want | job_finish),
      .defer_i  (1'b0),
      .last_i   (job_finish),
      .take_i   ((job_gnt & (job_start | job_finish)) != 2'b00),
      .gnt_o    (job_gnt)
    );
    assign job_gate = (policy != ct_pkg::PolicyJob) ? 2'b11 : job_gnt & ~{job_busy[0], job_busy[1]};
  end else begin : g_no_job_gate
    assign job_gnt  = 2'b01;
    assign job_gate = job_gnt;
    logic unused_want;
    assign unused_want = ^job_want;
  end

  // ---- Contexts -----------------------------------------------------------------------------------------------------------------

  // Signals between contexts and units: [c] by context, then gathered by unit with context 1 in the upper half.
  logic [2*Units-1:0]     cmd_valid, cmd_ready;    // bit 2*u + c
  logic [2*256*Units-1:0] cmd;                     // 256*(2*u + c)
  logic [31:0]            sem_nz;                  // 16*c + s
  logic [32*Units-1:0]    sem_dec, sem_inc;        // 32*u + 16*c + s
  logic [2*Units-1:0]     idle;                    // bit 2*u + c
  logic [1:0]             flush, abandon, dispatch;
  logic [1:0]             fetch_valid, fetch_ready, fetch_rvalid, fetch_soft, fetch_drop, fetch_bad, fetch_idle;
  logic [1:0]             ld_quiet, st_quiet, st_seal, st_old, st_old_err;
  logic [31:0]            st_old_err_addr;
  logic [63:0]            fetch_addr;
  logic [21:0]            fetch_len;
  logic [127:0]           fetch_rdata;
  logic [1:0]             fetch_rvalid_q, fetch_bad_q, fetch_idle_q;
  logic [127:0]           fetch_rdata_q;
  logic [5:0]             err;                     // 2*block + c; blocks: DMA, MXU, VPU
  logic [3*16-1:0]        err_code;                // 16*block + 8*c
  logic [3*64-1:0]        err_addr;                // 64*block + 32*c
  logic [1:0]             ev_rows;

  // Requests and batches: context 0.
  logic [1:0]             batch_ready, batch_start, batch_done_valid;
  logic                   batch_due, batch_on, batch_form, batch_valid, batch_first, batch_done_ready;
  logic [127:0]           batch_data;
  logic [4:0]             batch_rows;
  logic [15:0]            batch_done_code;
  logic [63:0]            batch_done_addr, batch_done_rows;
  logic [1:0]             gat_valid, gat_gnt, gat_vld;
  logic [7:0]             gat_row;
  logic [31:0]            gat_addr;

  // Contexts take the answers to their fetches from registers. (What is idle is said as late as they, and not of a fetch just taken.)
  always_ff @(posedge clk_i or negedge core_rst_n) begin
    if (!core_rst_n) begin
      fetch_rvalid_q <= 2'b00;
      fetch_bad_q    <= 2'b00;
      fetch_idle_q   <= 2'b00;
    end else begin
      fetch_rvalid_q <= fetch_rvalid;
      fetch_bad_q    <= fetch_bad;
      fetch_idle_q   <= fetch_idle & ~(fetch_valid & fetch_ready);
    end
  end
  always_ff @(posedge clk_i) begin
    if (fetch_rvalid != 2'b00) fetch_rdata_q <= fetch_rdata;
  end

  // What stops a context stands in a register of its own near each of those that it stops: they lie all over a chip. So a unit is flushed from the cycle
  // after the context's queues are to the cycle after; meanwhile these offer nothing, and what it gives the semaphores is not looked at.
  (* keep *) logic [1:0] vl_flush_q, va_flush_q, vs_flush_q, dma_flush_q;
  always_ff @(posedge clk_i or negedge core_rst_n) begin
    if (!core_rst_n) begin
      vl_flush_q  <= 2'b00;
      va_flush_q  <= 2'b00;
      vs_flush_q  <= 2'b00;
      dma_flush_q <= 2'b00;
    end else begin
      vl_flush_q  <= flush;
      va_flush_q  <= flush;
      vs_flush_q  <= flush;
      dma_flush_q <= flush;
    end
  end

  for (genvar c = 0; c < 2; c++) begin : g_ctx
    logic                 c_idle_q, c_done_q, c_quiet_q;  // of its units, as late as the answers
    logic [Units-1:0]     c_cmd_valid, c_cmd_ready, c_idle;
    logic [256*Units-1:0] c_cmd;
    logic [16*Units-1:0]  c_sem_dec, c_sem_inc;

    for (genvar u = 0; u < Units; u++) begin : g_unit
      assign cmd_valid[2*u+c]           = c_cmd_valid[u];
      assign cmd[256*(2*u+c) +: 256]    = c_cmd[256*u +: 256];
      assign c_cmd_ready[u]             = cmd_ready[2*u+c];
      assign c_idle[u]                  = idle[2*u+c];
      assign c_sem_dec[16*u +: 16]      = sem_dec[32*u+16*c +: 16];
      assign c_sem_inc[16*u +: 16]      = sem_inc[32*u+16*c +: 16];
    end

    always_ff @(posedge clk_i or negedge core_rst_n) begin
      if (!core_rst_n) begin
        c_idle_q  <= 1'b0;
        c_done_q  <= 1'b0;
        c_quiet_q <= 1'b0;
      end else begin
        c_idle_q  <= c_idle == '1 && !(fetch_valid[c] && fetch_ready[c]);
        c_done_q  <= c_idle[Units-1:1] == '1 && ld_quiet[c];
        c_quiet_q <= c_idle[Units-1:2] == '1 && ld_quiet[c] && st_quiet[c];
      end
    end

    if (c < Contexts) begin : g_on
      ct_ctx #(.QueueDepth(QueueDepth), .Conv(Conv)) u_ctx (
        .clk_i,
        .rst_ni         (core_rst_n),
        .ring_base_i    (ring_base[32*c +: 32]),
        .ring_log2_i    (ring_log2[4*c +: 4]),
        .tail_we_i      (tail_we[c]),
        .tail_i         (tail_wdata),
        .watchdog_i     (watchdog[32*c +: 32]),
        .drain_limit_i  (drain_limit),
        .reset_i        (ctx_reset[c]),
        .cancel_i       (ctx_cancel[c]),
        .cancel_named_i (cancel_named),
        .cancel_num_i   (cancel_num),
        .hold_i         (hold),
        .freeze_i       (freeze),
        .cycle_i        (cycle),
        .cycle_next_i   (cycle_next),
        .tail_o         (tail[16*c +: 16]),
        .head_o         (head[16*c +: 16]),
        .status_o       (status[3*c +: 3]),
        .dead_o         (dead[c]),
        .quiet_o        (quiet[c]),
        .want_o         (job_want[c]),
        .gate_i         (job_gate[c]),
        .overlap_i      (policy != ct_pkg::PolicyJob),
        .start_o        (job_start[c]),
        .finish_o       (job_finish[c]),
        .busy_o         (job_busy[c]),
        .cpl_valid_o    (cpl_valid[c]),
        .cpl_count_o    (cpl_count[5*c +: 5]),
        .cpl_o          (cpl[CplW*c +: CplW]),
        .cpl_pop_i      (cpl_pop[c]),
        .batch_ready_o  (batch_ready[c]),
        .batch_due_i    ((c == 0) ? batch_due : 1'b0),
        .batch_on_i     ((c == 0) ? batch_on : 1'b0),
        .form_i         ((c == 0) ? batch_form : 1'b0),
        .batch_valid_i  ((c == 0) ? batch_valid : 1'b0),
        .batch_first_i  ((c == 0) ? batch_first : 1'b0),
        .batch_data_i   ((c == 0) ? batch_data : 128'd0),
        .batch_rows_i   ((c == 0) ? batch_rows : 5'd0),
        .batch_start_o  (batch_start[c]),
        .batch_done_valid_o (batch_done_valid[c]),
        .batch_done_ready_i ((c == 0) ? batch_done_ready : 1'b1),
        .batch_done_code_o  (batch_done_code[8*c +: 8]),
        .batch_done_addr_o  (batch_done_addr[32*c +: 32]),
        .batch_done_rows_o  (batch_done_rows[32*c +: 32]),
        .fetch_valid_o  (fetch_valid[c]),
        .fetch_ready_i  (fetch_ready[c]),
        .fetch_addr_o   (fetch_addr[32*c +: 32]),
        .fetch_len_o    (fetch_len[11*c +: 11]),
        .fetch_soft_o   (fetch_soft[c]),
        .fetch_drop_o   (fetch_drop[c]),
        .fetch_bad_i    (fetch_bad_q[c]),
        .fetch_idle_i   (fetch_idle_q[c]),
        .fetch_rvalid_i (fetch_rvalid_q[c]),
        .fetch_rdata_i  (fetch_rdata_q),
        .cmd_valid_o    (c_cmd_valid),
        .cmd_o          (c_cmd),
        .cmd_ready_i    (c_cmd_ready),
        .sem_nz_o       (sem_nz[16*c +: 16]),
        .sem_dec_i      (c_sem_dec),
        .sem_inc_i      (c_sem_inc),
        .flush_o        (flush[c]),
        .abandon_o      (abandon[c]),
        .units_idle_i   (c_idle_q),
        .units_done_i   (c_done_q),
        .units_quiet_i  (c_quiet_q),
        .seal_o         (st_seal[c]),
        .old_i          (st_old[c]),
        .old_err_i      (st_old_err[c]),
        .old_err_addr_i (st_old_err_addr),
        .err_i          ({err[4+c], err[2+c], err[c]}),
        .err_code_i     ({err_code[32+8*c +: 8], err_code[16+8*c +: 8], err_code[8*c +: 8]}),
        .err_addr_i     ({err_addr[128+32*c +: 32], err_addr[64+32*c +: 32], err_addr[32*c +: 32]}),
        .row_i          (ev_rows[c]),
        .dispatch_o     (dispatch[c])
      );
    end else begin : g_off
      // A context in which nothing ever happens: what serves it in the units is found to be idle, and goes.
      assign c_cmd_valid                     = '0;
      assign c_cmd                           = '0;
      assign sem_nz[16*c +: 16]              = '0;
      assign tail[16*c +: 16]                = '0;
      assign head[16*c +: 16]                = '0;
      assign status[3*c +: 3]                = '0;
      assign cpl_count[5*c +: 5]             = '0;
      assign cpl[CplW*c +: CplW]             = '0;
      assign batch_done_code[8*c +: 8]       = '0;
      assign batch_done_addr[32*c +: 32]     = '0;
      assign batch_done_rows[32*c +: 32]     = '0;
      assign fetch_addr[32*c +: 32]          = '0;
      assign fetch_len[11*c +: 11]           = '0;
      assign {dead[c], job_want[c], job_start[c], job_finish[c], job_busy[c], cpl_valid[c], batch_ready[c], batch_start[c], batch_done_valid[c],
              fetch_valid[c], fetch_soft[c], fetch_drop[c], flush[c], abandon[c], st_seal[c], dispatch[c]} = '0;
      assign quiet[c]                        = 1'b1;
      logic unused_off;
      assign unused_off = ^{c_cmd_ready, c_idle_q, c_done_q, c_quiet_q, c_sem_dec, c_sem_inc, ring_base[32*c +: 32], ring_log2[4*c +: 4],
                            watchdog[32*c +: 32], tail_we[c], ctx_reset[c], ctx_cancel[c], cpl_pop[c], job_gate[c], fetch_ready[c], fetch_bad_q[c],
                            fetch_idle_q[c], fetch_rvalid_q[c], st_old[c], st_old_err[c], err[c], err[2+c], err[4+c], err_code[8*c +: 8],
                            err_code[16+8*c +: 8], err_code[32+8*c +: 8], err_addr[32*c +: 32], err_addr[64+32*c +: 32], err_addr[128+32*c +: 32]};
    end
  end

  // ---- Requests and batches -----------------------------------------------------------------------------------------------------

  if (Batcher != 0) begin : g_batch
    // (The choice of the next job is long enough without what its start sets off here.)
    logic batch_start_q;
    always_ff @(posedge clk_i or negedge core_rst_n) begin
      if (!core_rst_n) batch_start_q <= 1'b0;
      else             batch_start_q <= batch_start[0];
    end

    ct_batch u_batch (
      .clk_i,
      .rst_ni       (core_rst_n),
      .cycle_i      (cycle),
      .wr_valid_i   (bat_wr_valid),
      .wr_ready_o   (bat_wr_ready),
      .wr_word_i    (bat_wr_word),
      .wr_data_i    (bat_wr_data),
      .rd_valid_i   (bat_rd_valid),
      .rd_word_i    (bat_rd_word),
      .rd_vld_o     (bat_rd_vld),
      .rd_data_o    (bat_rd_data),
      .irq_o        (bat_irq),
      .reset_i      (ctx_reset[0]),
      .job_ready_i  (batch_ready[0]),
      .due_o        (batch_due),
      .loaded_o     (batch_on),
      .form_o       (batch_form),
      .desc_valid_o (batch_valid),
      .desc_first_o (batch_first),
      .desc_data_o  (batch_data),
      .desc_rows_o  (batch_rows),
      .start_i      (batch_start_q),
      .done_valid_i (batch_done_valid[0]),
      .done_ready_o (batch_done_ready),
      .done_code_i  (batch_done_code[7:0]),
      .done_addr_i  (batch_done_addr[31:0]),
      .done_rows_i  (batch_done_rows[31:0]),
      .gat_valid_i  (gat_valid),
      .gat_row_i    (gat_row),
      .gat_gnt_o    (gat_gnt),
      .gat_vld_o    (gat_vld),
      .gat_addr_o   (gat_addr),
      .slack_o      (bat_slack)
    );
  end else begin : g_no_batch
    assign {bat_wr_ready, bat_rd_vld, bat_irq, bat_slack} = '0;
    assign bat_rd_data = '0;
    assign {batch_due, batch_on, batch_form, batch_valid, batch_first} = '0;
    assign batch_done_ready = 1'b1;
    assign batch_data = '0;
    assign batch_rows = '0;
    assign {gat_gnt, gat_vld} = '0;
    assign gat_addr = '0;
    logic unused_batch;
    assign unused_batch = ^{bat_wr_valid, bat_wr_word, bat_wr_data, bat_rd_valid, bat_rd_word, batch_ready[0], batch_start[0],
                            batch_done_valid[0], batch_done_code[7:0], batch_done_addr[31:0], batch_done_rows[31:0], gat_valid, gat_row};
  end
  logic unused_batch1;
  assign unused_batch1 = ^{batch_ready[1], batch_start[1], batch_done_valid[1], batch_done_code[15:8], batch_done_addr[63:32], batch_done_rows[63:32]};

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
    .clk_i,
    .rst_ni         (core_rst_n),
    .cmd_valid_i    (cmd_valid[5:4]),
    .cmd_i          (cmd[512*2 +: 512]),
    .cmd_ready_o    (cmd_ready[5:4]),
    .sem_nz_i       (sem_nz),
    .sem_dec_o      (sem_dec[32*2 +: 32]),
    .sem_inc_o      (sem_inc[32*2 +: 32]),
    .flush_i        (flush),          // (it has its registers)
    .idle_o         (idle[5:4]),
    .err_o          (err[3:2]),
    .err_code_o     (err_code[16 +: 16]),
    .err_addr_o     (err_addr[64 +: 64]),
    .qos_i          (qos),
    .freeze_i       (freeze),
    .spm_base_i     (spm_base),
    .spm_size_i     (spm_size),
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
    .ev_rows_o      (ev_rows),
    .ev_busy_o      (ev_mxu_busy),
    .ev_wait_arb_o  (ev_mxu_wait_arb),
    .ev_wait_b_o    (ev_mxu_wait_b),
    .ev_wait_a_o    (ev_mxu_wait_a),
    .ev_wait_sem_o  (ev_mxu_wait_sem),
    .probe_o        (probe_o[29:20])
  );

  // ---- Vector unit ----------------------------------------------------------------------------------------------------------

  ct_vpu #(.VpuLanes(VpuLanes), .FnLanes(FnLanes)) u_vpu (
    .clk_i,
    .rst_ni         (core_rst_n),
    .qos_i          (qos),
    .freeze_i       (freeze),
    .spm_base_i     (spm_base),
    .spm_size_i     (spm_size),
    .vl_cmd_valid_i (cmd_valid[7:6]),
    .vl_cmd_i       (cmd[512*3 +: 512]),
    .vl_cmd_ready_o (cmd_ready[7:6]),
    .vl_sem_nz_i    (sem_nz),
    .vl_sem_dec_o   (sem_dec[32*3 +: 32]),
    .vl_sem_inc_o   (sem_inc[32*3 +: 32]),
    .vl_flush_i     (vl_flush_q),
    .vl_idle_o      (idle[7:6]),
    .va_cmd_valid_i (cmd_valid[9:8]),
    .va_cmd_i       (cmd[512*4 +: 512]),
    .va_cmd_ready_o (cmd_ready[9:8]),
    .va_sem_nz_i    (sem_nz),
    .va_sem_dec_o   (sem_dec[32*4 +: 32]),
    .va_sem_inc_o   (sem_inc[32*4 +: 32]),
    .va_flush_i     (va_flush_q),
    .va_idle_o      (idle[9:8]),
    .vs_cmd_valid_i (cmd_valid[11:10]),
    .vs_cmd_i       (cmd[512*5 +: 512]),
    .vs_cmd_ready_o (cmd_ready[11:10]),
    .vs_sem_nz_i    (sem_nz),
    .vs_sem_dec_o   (sem_dec[32*5 +: 32]),
    .vs_sem_inc_o   (sem_inc[32*5 +: 32]),
    .vs_flush_i     (vs_flush_q),
    .vs_idle_o      (idle[11:10]),
    .err_o          (err[5:4]),
    .err_code_o     (err_code[32 +: 16]),
    .err_addr_o     (err_addr[128 +: 64]),
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

  ct_dma #(.Gather(Batcher)) u_dma (
    .gat_valid_o    (gat_valid),
    .gat_row_o      (gat_row),
    .gat_gnt_i      (gat_gnt),
    .gat_vld_i      (gat_vld),
    .gat_addr_i     (gat_addr),
    .clk_i,
    .rst_ni         (core_rst_n),
    .qos_i          (qos),
    .freeze_i       (freeze),
    .train_cap_i    (train_cap),
    .ld_yield_i     (ld_yield),
    .ld_block_i     (ld_block),
    .flush_i        (dma_flush_q),
    .abandon_i      (abandon),
    .ld_cmd_valid_i (cmd_valid[1:0]),
    .ld_cmd_i       (cmd[512*0 +: 512]),
    .ld_cmd_ready_o (cmd_ready[1:0]),
    .ld_sem_nz_i    (sem_nz),
    .ld_sem_dec_o   (sem_dec[32*0 +: 32]),
    .ld_sem_inc_o   (sem_inc[32*0 +: 32]),
    .ld_idle_o      (idle[1:0]),
    .ld_quiet_o     (ld_quiet),
    .st_cmd_valid_i (cmd_valid[3:2]),
    .st_cmd_i       (cmd[512*1 +: 512]),
    .st_cmd_ready_o (cmd_ready[3:2]),
    .st_sem_nz_i    (sem_nz),
    .st_sem_dec_o   (sem_dec[32*1 +: 32]),
    .st_sem_inc_o   (sem_inc[32*1 +: 32]),
    .st_idle_o      (idle[3:2]),
    .st_quiet_o     (st_quiet),
    .st_seal_i      (st_seal),
    .st_old_o       (st_old),
    .st_old_err_o   (st_old_err),
    .st_old_err_addr_o (st_old_err_addr),
    .err_o          (err[1:0]),
    .err_code_o     (err_code[0 +: 16]),
    .err_addr_o     (err_addr[0 +: 64]),
    .fetch_valid_i  (fetch_valid),
    .fetch_addr_i   (fetch_addr),
    .fetch_len_i    (fetch_len),
    .fetch_soft_i   (fetch_soft),
    .fetch_drop_i   (fetch_drop),
    .fetch_ready_o  (fetch_ready),
    .fetch_bad_o    (fetch_bad),
    .fetch_idle_o   (fetch_idle),
    .fetch_rvalid_o (fetch_rvalid),
    .fetch_rdata_o  (fetch_rdata),
    .fetch_rlast_o  (),
    .rd_base_i      (rd_base),
    .rd_limit_i     (rd_limit),
    .wr_base_i      (wr_base),
    .wr_limit_i     (wr_limit),
    .spm_base_i     (spm_base),
    .spm_size_i     (spm_size),
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
    .clk_i,
    .rst_ni      (core_rst_n),
    .rd_valid_i  (rd_valid),
    .rd_addr_i   (rd_addr),
    .strict_i    (qos[ct_pkg::QosStrict]),
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
    .flip_arm_i  (flip_arm),
    .flip_addr_i (flip_addr),
    .flip_bit_i  (flip_bit),
    .peek_i      (peek),
    .peek_addr_i (peek_addr),
    .peek_vld_o  (peek_vld),
    .peek_data_o (peek_data),
    .peek_exp_o  (peek_exp),
    .peek_perr_o (peek_perr)
  );

  logic unused_ld_ready;  // LD writes are always taken
  assign unused_ld_ready = ^{wr_ready[0], vl_refused};

  // ---- Counter events -------------------------------------------------------------------------------------------------------

  for (genvar c = 0; c < 2; c++) begin : g_ev
    assign ev[Counters*c+ct_pkg::CntBusy]       = job_busy[c];
    assign ev[Counters*c+ct_pkg::CntJobs]       = job_finish[c];
    assign ev[Counters*c+ct_pkg::CntMxuRows]    = ev_rows[c];
    assign ev[Counters*c+ct_pkg::CntMxuBusy]    = ev_mxu_busy[c];
    assign ev[Counters*c+ct_pkg::CntMxuWaitArb] = ev_mxu_wait_arb[c];
    assign ev[Counters*c+ct_pkg::CntMxuWaitB]   = ev_mxu_wait_b[c];
    assign ev[Counters*c+ct_pkg::CntMxuWaitA]   = ev_mxu_wait_a[c];
    assign ev[Counters*c+ct_pkg::CntMxuWaitSem] = ev_mxu_wait_sem[c];
    assign ev[Counters*c+ct_pkg::CntLdBeats]    = ev_ld_beats[c];
    assign ev[Counters*c+ct_pkg::CntStBeats]    = ev_st_beats[c];
    assign ev[Counters*c+ct_pkg::CntLdWaitArb]  = ev_ld_wait_arb[c];
    assign ev[Counters*c+ct_pkg::CntLdWaitMem]  = ev_ld_wait_mem[c];
    assign ev[Counters*c+ct_pkg::CntLdWaitSem]  = ev_ld_wait_sem[c];
    assign ev[Counters*c+ct_pkg::CntStWaitArb]  = ev_st_wait_arb[c];
    assign ev[Counters*c+ct_pkg::CntStWaitMem]  = ev_st_wait_mem[c];
    assign ev[Counters*c+ct_pkg::CntStWaitSem]  = ev_st_wait_sem[c];
    assign ev[Counters*c+ct_pkg::CntVlBusy]     = ev_vl_busy[c];
    assign ev[Counters*c+ct_pkg::CntVaBusy]     = ev_va_busy[c];
    assign ev[Counters*c+ct_pkg::CntVsBusy]     = ev_vs_busy[c];
    assign ev[Counters*c+ct_pkg::CntVlWaitArb]  = ev_vpu_wait_arb[c];
    assign ev[Counters*c+ct_pkg::CntVaWaitArb]  = ev_vpu_wait_arb[2+c];
    assign ev[Counters*c+ct_pkg::CntVsWaitArb]  = ev_vpu_wait_arb[4+c];
    assign ev[Counters*c+ct_pkg::CntVlWaitSem]  = ev_vpu_wait_sem[c];
    assign ev[Counters*c+ct_pkg::CntVaWaitSem]  = ev_vpu_wait_sem[2+c];
    assign ev[Counters*c+ct_pkg::CntVsWaitSem]  = ev_vpu_wait_sem[4+c];
    assign ev[Counters*c+ct_pkg::CntCmds]       = dispatch[c];
    assign ev[Counters*c+ct_pkg::CntNanGroups]  = ev_nan[c];

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
        if (idle[2*u+c] || counted[u] || freeze || flush[c]) silent_d[7*u +: 7] = '0;
        else if (banks[u])                                   silent_d[7*u +: 7] = silent_q[7*u +: 7];
        else                                                 silent_d[7*u +: 7] = silent_q[7*u +: 7] + 7'd1;
      end
    end
    always_ff @(posedge clk_i or negedge core_rst_n) begin
      if (!core_rst_n) silent_q <= '0;
      else             silent_q <= silent_d;
    end
    for (genvar u = 0; u < Units; u++) begin : g_silent
      `CT_ASSERT(WorkIsCounted_A, silent_q[7*u +: 7] <= 7'(Silent))
    end
`endif
  end

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  // Under JOB two jobs run together only if one of them began under another policy: never do two start at once.
  `CT_ASSERT(JobAlone_A, policy != ct_pkg::PolicyJob || job_start != 2'b11)
  `CT_ASSERT(JobGate_A, policy != ct_pkg::PolicyJob || (job_start & {job_busy[0], job_busy[1]}) == 2'b00)
  `CT_COVER(BothBusy_C, job_busy == 2'b11)

endmodule

`default_nettype wire
