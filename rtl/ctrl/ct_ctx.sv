// SPDX-License-Identifier: Apache-2.0
//
// One context: jobs (ct_job), program (ct_fetch), semaphores (ct_sem) and the command queues of the six units.
//
// Units are numbered LD 0, ST 1, MM 2, VL 3, VA 4, VS 5; cmd_o[256*u +: 256] is the oldest command of unit u, registers added in;
// its code and the numbers of registers read zero (ct_pkg::PackDma and its like say what a queue keeps).
// Latency     a dispatched command is offered to its unit in the next cycle. sem_nz_o shows a given semaphore in the next cycle.
// Flush       flush_o (level) makes the units drop what they have not accepted; the queues meanwhile offer nothing and run empty,
//             one command a cycle. units_idle_i: nothing of this context is left in any unit (see docs/architecture.md).
//
// Parameters
//   QueueDepth  commands in each queue, 2..64
//   Conv        1: there are walks (WPIX, WTAP, MM with Walk)
//   Compress    1: there are compressed LD and ST

`default_nettype none

module ct_ctx #(
  parameter  int unsigned QueueDepth = 16,
  parameter  int unsigned Conv = 0,
  parameter  int unsigned Compress = 0,
  localparam int unsigned CplW = ct_pkg::CplW
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // Registers, see ct_job.
  input  logic [31:0]      ring_base_i,
  input  logic [3:0]       ring_log2_i,
  input  logic             tail_we_i,
  input  logic [15:0]      tail_i,
  input  logic [31:0]      watchdog_i,
  input  logic [31:0]      drain_limit_i,
  input  logic             reset_i,
  input  logic             cancel_i,
  input  logic             cancel_named_i,
  input  logic [47:0]      cancel_num_i,
  input  logic             hold_i,
  input  logic             freeze_i,
  input  logic [63:0]      cycle_i,
  input  logic [63:0]      cycle_next_i,
  output logic [15:0]      tail_o,
  output logic [15:0]      head_o,
  output logic [2:0]       status_o,
  output logic             dead_o,
  output logic             quiet_o,

  // Gate of policy JOB, see ct_job.
  output logic             want_o,
  input  logic             gate_i,
  input  logic             overlap_i,
  output logic             start_o,
  output logic             finish_o,
  output logic             busy_o,

  // Completions.
  output logic             cpl_valid_o,
  output logic [4:0]       cpl_count_o,
  output logic [CplW-1:0]  cpl_o,
  input  logic             cpl_pop_i,

  // Batches, see ct_job.
  output logic             batch_ready_o,
  input  logic             batch_due_i,
  input  logic             batch_on_i,
  input  logic             form_i,
  input  logic             batch_valid_i,
  input  logic             batch_first_i,
  input  logic [127:0]     batch_data_i,
  input  logic [4:0]       batch_rows_i,
  output logic             batch_start_o,
  output logic             batch_done_valid_o,
  input  logic             batch_done_ready_i,
  output logic [7:0]       batch_done_code_o,
  output logic [31:0]      batch_done_addr_o,
  output logic [31:0]      batch_done_rows_o,

  // DMA fetch client.
  output logic             fetch_valid_o,
  input  logic             fetch_ready_i,
  output logic [31:0]      fetch_addr_o,
  output logic [10:0]      fetch_len_o,
  output logic             fetch_soft_o,
  output logic             fetch_drop_o,
  input  logic             fetch_bad_i,
  input  logic             fetch_idle_i,
  input  logic             fetch_rvalid_i,
  input  logic [127:0]     fetch_rdata_i,

  // Units.
  output logic [5:0]       cmd_valid_o,
  output logic [6*256-1:0] cmd_o,
  input  logic [5:0]       cmd_ready_i,
  output logic [15:0]      sem_nz_o,
  input  logic [6*16-1:0]  sem_dec_i,
  input  logic [6*16-1:0]  sem_inc_i,
  output logic             flush_o,
  output logic             abandon_o,
  input  logic             units_idle_i,
  input  logic             units_done_i,
  input  logic             units_quiet_i,
  output logic             seal_o,
  input  logic             old_i,
  input  logic             old_err_i,
  input  logic [31:0]      old_err_addr_i,
  input  logic [2:0]       err_i,         // DMA, MXU, VPU
  input  logic [3*8-1:0]   err_code_i,
  input  logic [3*32-1:0]  err_addr_i,
  input  logic             row_i,
  output logic             dispatch_o     // a command was executed or went into a queue (counter CMDS)
);

  if (QueueDepth < 2 || QueueDepth > 64) begin : g_check_depth
    ct_error_queue_depth_must_be_2_to_64 u_error ();
  end

  logic         prog_load, prog_start, prog_stop, prog_valid, prog_first, prog_loaded, prog_end, prog_err;
  logic [9:0]   prog_ncmds, prog_idx;
  logic [4:0]   rows;
  logic         arg_we;
  logic [2:0]   arg_group;
  logic [127:0] arg_data;
  logic         sem_clear, sem_err;
  logic [3:0]   sem_err_num;
  logic [5:0]   q_push, q_ready, q_valid;
  logic [255:0] q_cmd;

  ct_job u_job (
    .clk_i, .rst_ni,
    .ring_base_i, .ring_log2_i, .tail_we_i, .tail_i, .watchdog_i, .drain_limit_i, .reset_i, .cancel_i, .cancel_named_i, .cancel_num_i, .hold_i,
    .freeze_i,
    .cycle_i, .cycle_next_i, .tail_o, .head_o, .status_o, .dead_o, .quiet_o,
    .want_o, .gate_i, .overlap_i, .start_o, .finish_o, .busy_o,
    .cpl_valid_o, .cpl_count_o, .cpl_o, .cpl_pop_i,
    .batch_ready_o, .batch_due_i, .batch_on_i, .form_i, .batch_valid_i, .batch_first_i, .batch_data_i, .batch_rows_i,
    .batch_start_o, .batch_done_valid_o, .batch_done_ready_i, .batch_done_code_o, .batch_done_addr_o, .batch_done_rows_o,
    .rows_o         (rows),
    .fetch_valid_o, .fetch_ready_i, .fetch_addr_o, .fetch_len_o, .fetch_soft_o, .fetch_drop_o, .fetch_bad_i, .fetch_idle_i,
    .fetch_rvalid_i, .fetch_rdata_i,
    .prog_load_o    (prog_load),
    .prog_start_o   (prog_start),
    .prog_ncmds_o   (prog_ncmds),
    .prog_stop_o    (prog_stop),
    .prog_valid_o   (prog_valid),
    .arg_we_o       (arg_we),
    .arg_group_o    (arg_group),
    .arg_data_o     (arg_data),
    .prog_first_i   (prog_first),
    .prog_loaded_i  (prog_loaded),
    .prog_end_i     (prog_end),
    .prog_err_i     (prog_err),
    .prog_idx_i     (prog_idx),
    .sem_clear_o    (sem_clear),
    .sem_err_i      (sem_err),
    .sem_err_num_i  (sem_err_num),
    .flush_o, .abandon_o,
    .queues_empty_i (q_valid == '0),
    .units_idle_i, .units_done_i, .units_quiet_i, .seal_o, .old_i, .old_err_i, .old_err_addr_i,
    .err_i, .err_code_i, .err_addr_i, .row_i
  );

  ct_fetch #(.Conv(Conv), .Compress(Compress)) u_fetch (
    .clk_i, .rst_ni,
    .load_i       (prog_load),
    .start_i      (prog_start),
    .ncmds_i      (prog_ncmds),
    .stop_i       (prog_stop),
    .rows_i       (rows),
    .first_o      (prog_first),
    .loaded_o     (prog_loaded),
    .end_o        (prog_end),
    .err_o        (prog_err),
    .idx_o        (prog_idx),
    .done_o       (dispatch_o),
    .prog_valid_i (prog_valid),
    .prog_data_i  (fetch_rdata_i),
    .arg_we_i     (arg_we),
    .arg_group_i  (arg_group),
    .arg_data_i   (arg_data),
    .q_valid_o    (q_push),
    .q_cmd_o      (q_cmd),
    .q_ready_i    (q_ready)
  );

  ct_sem u_sem (
    .clk_i, .rst_ni,
    .clear_i   (sem_clear),
    .dec_i     (sem_dec_i),
    .inc_i     (sem_inc_i),
    .nz_o      (sem_nz_o),
    .err_o     (sem_err),
    .err_num_o (sem_err_num)
  );

  // Each queue keeps the fields that its unit reads. (Those of a compressed command are 0 where there is none: it is illegal.)
  localparam logic [255:0] DmaUsed = (Compress != 0) ? '1 : ~((256'd1 << ct_pkg::DmaCompLsb) | (256'd3 << ct_pkg::DmaFirstLsb) | (256'd1 << ct_pkg::DmaFreeLsb));
  for (genvar u = 0; u < 6; u++) begin : g_queue
    localparam int unsigned W = (u == 2) ? ct_pkg::MmKept : (u == 3) ? ct_pkg::VlKept : (u == 4) ? ct_pkg::VaKept :
                                (u == 5) ? ct_pkg::VsKept : ct_pkg::DmaKept;
    logic [W-1:0] newest, oldest;
    logic [255:0] cmd;

    if (u == 2) begin : g_mm
      assign newest = ct_pkg::PackMm(q_cmd);
      assign cmd    = ct_pkg::UnpackMm(oldest);
    end else if (u == 3) begin : g_vl
      assign newest = ct_pkg::PackVl(q_cmd);
      assign cmd    = ct_pkg::UnpackVl(oldest);
    end else if (u == 4) begin : g_va
      assign newest = ct_pkg::PackVa(q_cmd);
      assign cmd    = ct_pkg::UnpackVa(oldest);
    end else if (u == 5) begin : g_vs
      assign newest = ct_pkg::PackVs(q_cmd);
      assign cmd    = ct_pkg::UnpackVs(oldest);
    end else begin : g_dma
      assign newest = ct_pkg::PackDma(q_cmd & DmaUsed);
      assign cmd    = ct_pkg::UnpackDma(oldest);
    end

    ct_fifo #(.Width(W), .Depth(QueueDepth)) u_queue (
      .clk_i, .rst_ni,
      .valid_i (q_push[u]),
      .ready_o (q_ready[u]),
      .data_i  (newest),
      .valid_o (q_valid[u]),
      .ready_i (cmd_ready_i[u] || flush_o),
      .data_o  (oldest),
      .count_o ()
    );
    assign cmd_o[256*u +: 256] = cmd;
  end

  assign cmd_valid_o = flush_o ? 6'd0 : q_valid;

endmodule

`default_nettype wire
