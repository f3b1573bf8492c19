// SPDX-License-Identifier: Apache-2.0
//
// The last stage of ct_job, and its completions: holds a job that is over but for the answers to its stores (old_i), and pushes its completion when
// these have come.
//
// In and out  retire_i (a pulse, while old_o is low) takes the job in front with its code. over_o: nothing is waited for any more; done_o (a pulse) ends it:
//             a job of the ring has its completion pushed, a batch its result taken (batch_done_ready_i) and takes none.
// Errors      it is past cancel, reset and watchdog. An error answer becomes its code; if answers are missing when drain_over_i comes, the port is dead:
//             it ends with DEAD (die_o). After a dead port (after_dead_i) nothing is waited for. ring_bad_o: the last completion had an error.
// Completion  cpl_o = {rows, end, start, arrive, version, addr, code, tag}, see ct_pkg; 16 of them in two FIFOs. What is known at the start, the early
//             half, is pushed when the job leaves RUN, as the front end may then need its registers for the next job (meta_o: not yet); the late half with
//             the end. cpl_ready_o: there is room for one more.
// Times       start: the cycle after start_i. end: the cycle in which the completion is first visible.
//

`default_nettype none
`include "ct_assert.svh"

module ct_job_last #(
  localparam int unsigned CplW = ct_pkg::CplW
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic [63:0]     cycle_next_i,

  // The job in front.
  input  logic [2:0]      state_i,
  input  logic            start_i,
  input  logic            batch_i,       // what starts is a batch
  input  logic            front_isb_i,   // what is in front is one
  input  logic [31:0]     tag_i,
  input  logic [31:0]     version_i,
  input  logic [63:0]     arrive_i,
  input  logic            row_i,
  input  logic [7:0]      code_i,
  input  logic [31:0]     addr_i,
  input  logic            retire_i,
  input  logic            after_dead_i,
  output logic            meta_o,

  // The last stage.
  input  logic            old_i,
  input  logic            old_err_i,
  input  logic [31:0]     old_err_addr_i,
  input  logic            drain_over_i,
  output logic            old_o,
  output logic            old_batch_o,
  output logic            over_o,
  output logic            done_o,
  output logic            die_o,
  output logic            ring_bad_o,

  output logic            batch_done_valid_o,
  input  logic            batch_done_ready_i,
  output logic [7:0]      batch_done_code_o,
  output logic [31:0]     batch_done_addr_o,
  output logic [31:0]     batch_done_rows_o,

  // Completions, oldest first.
  output logic            cpl_ready_o,
  output logic [4:0]      early_count_o, // early halves, those of cpl_o included
  output logic            cpl_valid_o,
  output logic [4:0]      cpl_count_o,
  output logic [CplW-1:0] cpl_o,
  input  logic            cpl_pop_i
);

  `include "ct_job_states.svh"

  logic        old_d, old_q, old_dead_q;
  logic        old_batch_q;            // it is a batch
  logic [7:0]  old_code_q;
  logic [31:0] old_addr_q, old_rows_q;
  logic        old_die, old_over, old_done;
  logic        ring_bad_q;             // the last completion of the ring had an error
  logic        meta_d, meta_q;         // what is known of the job in front at its start is not in the FIFO yet
  logic [63:0] start_q;
  logic [31:0] rows_q;

  // ---- The last stage -----------------------------------------------------------------------------------------------------------

  assign old_die  = old_q && old_i && drain_over_i && !old_dead_q;
  assign old_over = old_q && (!old_i || old_dead_q);
  assign old_done = old_over && (!old_batch_q || batch_done_ready_i);
  assign old_d    = retire_i || (old_q && !old_done);

  assign old_o       = old_q;
  assign old_batch_o = old_batch_q;
  assign over_o      = old_over;
  assign done_o      = old_done;
  assign die_o       = old_die;
  assign ring_bad_o  = ring_bad_q;

  assign batch_done_valid_o = old_over && old_batch_q;
  assign batch_done_code_o  = old_code_q;
  assign batch_done_addr_o  = old_addr_q;
  assign batch_done_rows_o  = old_rows_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      old_q      <= 1'b0;
      old_dead_q <= 1'b0;
    end else begin
      old_q      <= old_d;
      // After a dead port nothing is waited for.
      old_dead_q <= retire_i ? after_dead_i : (old_dead_q || old_die) && !old_done;
    end
  end

  always_ff @(posedge clk_i) begin
    if (retire_i) begin
      old_batch_q <= front_isb_i;
      old_code_q  <= code_i;
      old_addr_q  <= addr_i;
      old_rows_q  <= rows_q;
    end else if (old_die) begin
      old_code_q  <= ct_pkg::ErrDead;
      old_addr_q  <= '0;
    end else if (old_q && old_err_i && old_code_q == ct_pkg::ErrOk) begin
      old_code_q  <= ct_pkg::ErrAxiWrite;
      old_addr_q  <= old_err_addr_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                       ring_bad_q <= 1'b0;
    else if (old_done && !old_batch_q) ring_bad_q <= (old_code_q != ct_pkg::ErrOk);
  end

  // ---- Completions ------------------------------------------------------------------------------------------------------------

  localparam int unsigned EarlyW = 192;  // tag, version, arrive, start
  localparam int unsigned LateW = 136;   // code, address, end, rows

  logic [EarlyW-1:0] early;
  logic [LateW-1:0]  late;
  logic              late_ready, early_valid;

  assign meta_d = start_i ? !batch_i : meta_q && !(state_i == StDrain || state_i == StAbort);
  assign meta_o = meta_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) meta_q <= 1'b0;
    else         meta_q <= meta_d;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) start_q <= cycle_next_i;
    if (start_i)    rows_q <= '0;
    else if (row_i) rows_q <= rows_q + 32'd1;
  end

  ct_fifo #(.Width(EarlyW), .Depth(ct_pkg::CplDepth)) u_early (
    .clk_i, .rst_ni,
    .valid_i (meta_q && !meta_d),
    .ready_o (cpl_ready_o),
    .data_i  ({start_q, arrive_i, version_i, tag_i}),
    .valid_o (early_valid),
    .ready_i (cpl_pop_i && cpl_valid_o),
    .data_o  (early),
    .count_o (early_count_o)
  );

  ct_fifo #(.Width(LateW), .Depth(ct_pkg::CplDepth)) u_late (
    .clk_i, .rst_ni,
    .valid_i (old_done && !old_batch_q),
    .ready_o (late_ready),
    .data_i  ({old_rows_q, cycle_next_i, old_addr_q, old_code_q}),
    .valid_o (cpl_valid_o),
    .ready_i (cpl_pop_i),
    .data_o  (late),
    .count_o (cpl_count_o)
  );

  assign cpl_o[ct_pkg::CplTagLsb +: 32]     = early[31:0];
  assign cpl_o[ct_pkg::CplVersionLsb +: 32] = early[63:32];
  assign cpl_o[ct_pkg::CplArriveLsb +: 64]  = early[127:64];
  assign cpl_o[ct_pkg::CplStartLsb +: 64]   = early[191:128];
  assign cpl_o[ct_pkg::CplCodeLsb +: 8]     = late[7:0];
  assign cpl_o[ct_pkg::CplAddrLsb +: 32]    = late[39:8];
  assign cpl_o[ct_pkg::CplEndLsb +: 64]     = late[103:40];
  assign cpl_o[ct_pkg::CplRowsLsb +: 32]    = late[135:104];

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(RoomForCompletion_A, (!meta_q || cpl_ready_o) && (!old_q || old_batch_q || late_ready))  // ct_job 1
  `CT_ASSERT(LateAfterEarly_A, !cpl_valid_o || early_valid)                                    // ct_job 1

`ifdef FORMAL
  // Of what has started, each of the ring leaves its early half behind, once.
  logic [7:0] f_metas_q, f_early_q;
  logic       f_early;
  assign f_early = meta_q && !meta_d;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_metas_q <= '0;
      f_early_q <= '0;
    end else begin
      f_metas_q <= f_metas_q + 8'(start_i && !batch_i);
      f_early_q <= f_early_q + 8'(f_early);
    end
  end
  `CT_ASSERT(OneEarly_A, 8'(f_metas_q - f_early_q) == 8'(meta_q) && (!f_early || cpl_ready_o))
`endif

  `CT_COVER(OldError_C, old_q && old_err_i)
  `CT_COVER(OldDead_C, old_die)

endmodule

`default_nettype wire
