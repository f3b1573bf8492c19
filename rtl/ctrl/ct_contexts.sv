// SPDX-License-Identifier: Apache-2.0
//
// The contexts of ct_core: what decides which job and which command comes next. Two ct_ctx (0 inference, 1 training), the gate of policy JOB between them,
// and ct_batch in front of the first.
//
// Here        wiring, the registers under Latency, and the gate: one ct_arbiter whose operations are whole jobs. Under the other policies both contexts start jobs freely.
// Latency     answers to fetches, and what is said of the units with them, reach a context a cycle later; the start of a batch reaches ct_batch a cycle later.
//
// Parameters
//   QueueDepth, Conv, Batcher, Contexts, Compress   as ct_core

`default_nettype none
`include "ct_assert.svh"

module ct_contexts #(
  parameter  int unsigned QueueDepth = 16,
  parameter  int unsigned Conv       = 1,
  parameter  int unsigned Batcher    = 1,
  parameter  int unsigned Contexts   = 2,
  parameter  int unsigned Compress   = 0,
  localparam int unsigned Units      = ct_pkg::Units,
  localparam int unsigned CplW       = ct_pkg::CplW
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Registers, see ct_regs; [c] by context.
  input  logic [2:0]              policy_i,
  input  logic                    freeze_i,
  input  logic                    hold_i,
  input  logic [31:0]             drain_limit_i,
  input  logic [63:0]             cycle_i,
  input  logic [63:0]             cycle_next_i,
  input  logic [63:0]             ring_base_i,
  input  logic [7:0]              ring_log2_i,
  input  logic [63:0]             watchdog_i,
  input  logic [1:0]              tail_we_i,
  input  logic [15:0]             tail_wdata_i,
  input  logic [1:0]              ctx_reset_i,
  input  logic [1:0]              ctx_cancel_i,
  input  logic                    cancel_named_i,
  input  logic [47:0]             cancel_num_i,
  output logic [31:0]             tail_o,
  output logic [31:0]             head_o,
  output logic [5:0]              status_o,
  output logic [1:0]              quiet_o,
  output logic [1:0]              dead_o,
  output logic [1:0]              cpl_valid_o,
  output logic [9:0]              cpl_count_o,
  output logic [2*CplW-1:0]       cpl_o,
  input  logic [1:0]              cpl_pop_i,

  // Registers of the batcher.
  input  logic                    bat_wr_valid_i,
  output logic                    bat_wr_ready_o,
  input  logic [5:0]              bat_wr_word_i,
  input  logic [31:0]             bat_wr_data_i,
  input  logic                    bat_rd_valid_i,
  input  logic [5:0]              bat_rd_word_i,
  output logic                    bat_rd_vld_o,
  output logic [31:0]             bat_rd_data_o,
  output logic                    bat_irq_o,
  output logic                    bat_slack_o,      // see ct_batch

  // Counter events.
  output logic [1:0]              job_busy_o,
  output logic [1:0]              job_finish_o,
  output logic [1:0]              dispatch_o,

  // Units: a bit, or a word, 2*u + c of unit u and context c.
  output logic [2*Units-1:0]      cmd_valid_o,
  output logic [2*256*Units-1:0]  cmd_o,
  input  logic [2*Units-1:0]      cmd_ready_i,
  output logic [31:0]             sem_nz_o,         // 16*c + s
  input  logic [32*Units-1:0]     sem_dec_i,        // 32*u + 16*c + s
  input  logic [32*Units-1:0]     sem_inc_i,
  input  logic [2*Units-1:0]      idle_i,
  input  logic [1:0]              ld_quiet_i,
  input  logic [1:0]              st_quiet_i,
  output logic [1:0]              flush_o,
  output logic [1:0]              abandon_o,
  output logic [1:0]              st_seal_o,
  input  logic [1:0]              st_old_i,
  input  logic [1:0]              st_old_err_i,
  input  logic [31:0]             st_old_err_addr_i,
  input  logic [5:0]              err_i,            // 2*block + c; blocks: DMA, MXU, VPU
  input  logic [3*16-1:0]         err_code_i,       // 16*block + 8*c
  input  logic [3*64-1:0]         err_addr_i,       // 64*block + 32*c
  input  logic [1:0]              ev_rows_i,        // the MXU took a row

  // Fetches of descriptors and programs.
  output logic [1:0]              fetch_valid_o,
  input  logic [1:0]              fetch_ready_i,
  output logic [63:0]             fetch_addr_o,
  output logic [21:0]             fetch_len_o,
  output logic [1:0]              fetch_soft_o,
  output logic [1:0]              fetch_drop_o,
  input  logic [1:0]              fetch_bad_i,
  input  logic [1:0]              fetch_idle_i,
  input  logic [1:0]              fetch_rvalid_i,
  input  logic [127:0]            fetch_rdata_i,

  // Addresses of the rows of a batch, see ct_dma.
  input  logic [1:0]              gat_valid_i,
  input  logic [7:0]              gat_row_i,
  output logic [1:0]              gat_gnt_o,
  output logic [1:0]              gat_vld_o,
  output logic [31:0]             gat_addr_o
);

  // ---- Gate of policy JOB -----------------------------------------------------------------------------------------------------

  // A job is an operation of two slots, its start and its end: between them its context keeps the grant. The grant of a start
  // counts under JOB only, and not while a job of the other context runs that began under another policy. Nothing is flushed: a job
  // that has started finishes (OneCompletion_A of ct_job), that of a dead port, too.
  logic [1:0] job_want, job_gate, job_gnt, job_start;

  if (Contexts == 2) begin : g_job_gate
    ct_arbiter u_job_arbiter (
      .clk_i,
      .rst_ni,
      .qos_i    (ct_pkg::QosFcfs),
      .flush_i  (2'b00),
      .req_i    (job_want | job_finish_o),
      .defer_i  (1'b0),
      .last_i   (job_finish_o),
      .take_i   ((job_gnt & (job_start | job_finish_o)) != 2'b00),
      .gnt_o    (job_gnt)
    );
    assign job_gate = (policy_i != ct_pkg::PolicyJob) ? 2'b11 : job_gnt & ~{job_busy_o[0], job_busy_o[1]};
  end else begin : g_no_job_gate
    assign job_gnt  = 2'b01;
    assign job_gate = job_gnt;
    logic unused_want;
    assign unused_want = ^job_want;
  end

  // ---- Contexts -----------------------------------------------------------------------------------------------------------------

  logic [1:0]   fetch_rvalid_q, fetch_bad_q, fetch_idle_q;
  logic [127:0] fetch_rdata_q;

  // Requests and batches: context 0.
  logic [1:0]   batch_ready, batch_start, batch_done_valid;
  logic         batch_due, batch_on, batch_form, batch_valid, batch_first, batch_done_ready;
  logic [127:0] batch_data;
  logic [4:0]   batch_rows;
  logic [15:0]  batch_done_code;
  logic [63:0]  batch_done_addr, batch_done_rows;

  // Contexts take the answers to their fetches from registers. (What is idle is said as late as they, and not of a fetch just taken.)
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fetch_rvalid_q <= 2'b00;
      fetch_bad_q    <= 2'b00;
      fetch_idle_q   <= 2'b00;
    end else begin
      fetch_rvalid_q <= fetch_rvalid_i;
      fetch_bad_q    <= fetch_bad_i;
      fetch_idle_q   <= fetch_idle_i & ~(fetch_valid_o & fetch_ready_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (fetch_rvalid_i != 2'b00) fetch_rdata_q <= fetch_rdata_i;
  end

  for (genvar c = 0; c < 2; c++) begin : g_ctx
    logic                 c_idle_q, c_done_q, c_quiet_q;  // of its units, as late as the answers
    logic [Units-1:0]     c_cmd_valid, c_cmd_ready, c_idle;
    logic [256*Units-1:0] c_cmd;
    logic [16*Units-1:0]  c_sem_dec, c_sem_inc;

    for (genvar u = 0; u < Units; u++) begin : g_unit
      assign cmd_valid_o[2*u+c]        = c_cmd_valid[u];
      assign cmd_o[256*(2*u+c) +: 256] = c_cmd[256*u +: 256];
      assign c_cmd_ready[u]            = cmd_ready_i[2*u+c];
      assign c_idle[u]                 = idle_i[2*u+c];
      assign c_sem_dec[16*u +: 16]     = sem_dec_i[32*u+16*c +: 16];
      assign c_sem_inc[16*u +: 16]     = sem_inc_i[32*u+16*c +: 16];
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        c_idle_q  <= 1'b0;
        c_done_q  <= 1'b0;
        c_quiet_q <= 1'b0;
      end else begin
        c_idle_q  <= c_idle == '1 && !(fetch_valid_o[c] && fetch_ready_i[c]);
        c_done_q  <= c_idle[Units-1:1] == '1 && ld_quiet_i[c];
        c_quiet_q <= c_idle[Units-1:2] == '1 && ld_quiet_i[c] && st_quiet_i[c];
      end
    end

    if (c < Contexts) begin : g_on
      ct_ctx #(.QueueDepth(QueueDepth), .Conv(Conv), .Compress((c == 1) ? Compress : 0)) u_ctx (
        .clk_i,
        .rst_ni,
        .ring_base_i    (ring_base_i[32*c +: 32]),
        .ring_log2_i    (ring_log2_i[4*c +: 4]),
        .tail_we_i      (tail_we_i[c]),
        .tail_i         (tail_wdata_i),
        .watchdog_i     (watchdog_i[32*c +: 32]),
        .drain_limit_i,
        .reset_i        (ctx_reset_i[c]),
        .cancel_i       (ctx_cancel_i[c]),
        .cancel_named_i,
        .cancel_num_i,
        .hold_i,
        .freeze_i,
        .cycle_i,
        .cycle_next_i,
        .tail_o         (tail_o[16*c +: 16]),
        .head_o         (head_o[16*c +: 16]),
        .status_o       (status_o[3*c +: 3]),
        .dead_o         (dead_o[c]),
        .quiet_o        (quiet_o[c]),
        .want_o         (job_want[c]),
        .gate_i         (job_gate[c]),
        .overlap_i      (policy_i != ct_pkg::PolicyJob),
        .start_o        (job_start[c]),
        .finish_o       (job_finish_o[c]),
        .busy_o         (job_busy_o[c]),
        .cpl_valid_o    (cpl_valid_o[c]),
        .cpl_count_o    (cpl_count_o[5*c +: 5]),
        .cpl_o          (cpl_o[CplW*c +: CplW]),
        .cpl_pop_i      (cpl_pop_i[c]),
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
        .fetch_valid_o  (fetch_valid_o[c]),
        .fetch_ready_i  (fetch_ready_i[c]),
        .fetch_addr_o   (fetch_addr_o[32*c +: 32]),
        .fetch_len_o    (fetch_len_o[11*c +: 11]),
        .fetch_soft_o   (fetch_soft_o[c]),
        .fetch_drop_o   (fetch_drop_o[c]),
        .fetch_bad_i    (fetch_bad_q[c]),
        .fetch_idle_i   (fetch_idle_q[c]),
        .fetch_rvalid_i (fetch_rvalid_q[c]),
        .fetch_rdata_i  (fetch_rdata_q),
        .cmd_valid_o    (c_cmd_valid),
        .cmd_o          (c_cmd),
        .cmd_ready_i    (c_cmd_ready),
        .sem_nz_o       (sem_nz_o[16*c +: 16]),
        .sem_dec_i      (c_sem_dec),
        .sem_inc_i      (c_sem_inc),
        .flush_o        (flush_o[c]),
        .abandon_o      (abandon_o[c]),
        .units_idle_i   (c_idle_q),
        .units_done_i   (c_done_q),
        .units_quiet_i  (c_quiet_q),
        .seal_o         (st_seal_o[c]),
        .old_i          (st_old_i[c]),
        .old_err_i      (st_old_err_i[c]),
        .old_err_addr_i (st_old_err_addr_i),
        .err_i          ({err_i[4+c], err_i[2+c], err_i[c]}),
        .err_code_i     ({err_code_i[32+8*c +: 8], err_code_i[16+8*c +: 8], err_code_i[8*c +: 8]}),
        .err_addr_i     ({err_addr_i[128+32*c +: 32], err_addr_i[64+32*c +: 32], err_addr_i[32*c +: 32]}),
        .row_i          (ev_rows_i[c]),
        .dispatch_o     (dispatch_o[c])
      );
    end else begin : g_off
      // A context in which nothing ever happens: what serves it in the units is found to be idle, and goes.
      assign c_cmd_valid                 = '0;
      assign c_cmd                       = '0;
      assign sem_nz_o[16*c +: 16]        = '0;
      assign tail_o[16*c +: 16]          = '0;
      assign head_o[16*c +: 16]          = '0;
      assign status_o[3*c +: 3]          = '0;
      assign cpl_count_o[5*c +: 5]       = '0;
      assign cpl_o[CplW*c +: CplW]       = '0;
      assign batch_done_code[8*c +: 8]   = '0;
      assign batch_done_addr[32*c +: 32] = '0;
      assign batch_done_rows[32*c +: 32] = '0;
      assign fetch_addr_o[32*c +: 32]    = '0;
      assign fetch_len_o[11*c +: 11]     = '0;
      assign {dead_o[c], job_want[c], job_start[c], job_finish_o[c], job_busy_o[c], cpl_valid_o[c], batch_ready[c], batch_start[c], batch_done_valid[c],
              fetch_valid_o[c], fetch_soft_o[c], fetch_drop_o[c], flush_o[c], abandon_o[c], st_seal_o[c], dispatch_o[c]} = '0;
      assign quiet_o[c]                  = 1'b1;
      logic unused_off;
      assign unused_off = ^{c_cmd_ready, c_idle_q, c_done_q, c_quiet_q, c_sem_dec, c_sem_inc, ring_base_i[32*c +: 32], ring_log2_i[4*c +: 4],
                            watchdog_i[32*c +: 32], tail_we_i[c], ctx_reset_i[c], ctx_cancel_i[c], cpl_pop_i[c], job_gate[c], fetch_ready_i[c], fetch_bad_q[c],
                            fetch_idle_q[c], fetch_rvalid_q[c], st_old_i[c], st_old_err_i[c], err_i[c], err_i[2+c], err_i[4+c], err_code_i[8*c +: 8],
                            err_code_i[16+8*c +: 8], err_code_i[32+8*c +: 8], err_addr_i[32*c +: 32], err_addr_i[64+32*c +: 32], err_addr_i[128+32*c +: 32],
                            ev_rows_i[c]};
    end
  end

  // ---- Requests and batches -----------------------------------------------------------------------------------------------------

  if (Batcher != 0) begin : g_batch
    // (The choice of the next job is long enough without what its start sets off here.)
    logic batch_start_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) batch_start_q <= 1'b0;
      else         batch_start_q <= batch_start[0];
    end

    ct_batch u_batch (
      .clk_i,
      .rst_ni,
      .cycle_i,
      .wr_valid_i   (bat_wr_valid_i),
      .wr_ready_o   (bat_wr_ready_o),
      .wr_word_i    (bat_wr_word_i),
      .wr_data_i    (bat_wr_data_i),
      .rd_valid_i   (bat_rd_valid_i),
      .rd_word_i    (bat_rd_word_i),
      .rd_vld_o     (bat_rd_vld_o),
      .rd_data_o    (bat_rd_data_o),
      .irq_o        (bat_irq_o),
      .reset_i      (ctx_reset_i[0]),
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
      .gat_valid_i,
      .gat_row_i,
      .gat_gnt_o,
      .gat_vld_o,
      .gat_addr_o,
      .slack_o      (bat_slack_o)
    );
  end else begin : g_no_batch
    assign {bat_wr_ready_o, bat_rd_vld_o, bat_irq_o, bat_slack_o} = '0;
    assign bat_rd_data_o = '0;
    assign {batch_due, batch_on, batch_form, batch_valid, batch_first} = '0;
    assign batch_done_ready = 1'b1;
    assign batch_data       = '0;
    assign batch_rows       = '0;
    assign {gat_gnt_o, gat_vld_o} = '0;
    assign gat_addr_o = '0;
    logic unused_batch;
    assign unused_batch = ^{bat_wr_valid_i, bat_wr_word_i, bat_wr_data_i, bat_rd_valid_i, bat_rd_word_i, batch_ready[0], batch_start[0],
                            batch_done_valid[0], batch_done_code[7:0], batch_done_addr[31:0], batch_done_rows[31:0], gat_valid_i, gat_row_i};
  end
  logic unused_batch1;
  assign unused_batch1 = ^{batch_ready[1], batch_start[1], batch_done_valid[1], batch_done_code[15:8], batch_done_addr[63:32], batch_done_rows[63:32]};

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  // Under JOB two jobs run together only if one of them began under another policy: never do two start at once.
  `CT_ASSERT(JobAlone_A, policy_i != ct_pkg::PolicyJob || job_start != 2'b11)
  `CT_ASSERT(JobGate_A, policy_i != ct_pkg::PolicyJob || (job_start & {job_busy_o[0], job_busy_o[1]}) == 2'b00)
  `CT_COVER(BothBusy_C, job_busy_o == 2'b11)

endmodule

`default_nettype wire
