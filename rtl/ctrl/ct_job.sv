// SPDX-License-Identifier: Apache-2.0
//
// The jobs of one context, one after the other: takes descriptors from the ring, or batches of requests from ct_batch; loads programs, ends
// jobs, reports them.
//
// Two machines. The front end (ct_job_front, ct_job_desc) reads the descriptor and the program of the next job, whether it has begun or not. The
// main machine, here, runs the job in front (own: the front end's job has begun, and is the main machine's):
//
//            want, gate open            descriptor             first command
//     IDLE ------------------> DESC ------------------> PROG --------------> RUN
//      ^ ^  '--- descriptor is here already -------------^ ^                  |  END executed
//      | |                      | error                  | |error      error  v
//      | |                      v                        v +--overlap-------- DRAIN
//      | |                    ABORT <---------------------+-------+          |  queues empty, units idle
//      | |                     |  ^                                          |
//      | |        idle, or     |  | the port was dead: wait for idle         |
//      | |        DRAIN_LIMIT  v  |                                          |
//      | +------------------- COMPLETE <-------------------------------------+
//      +--- idle (from ABORT after a dead port, or without a job: no completion)
//
//  IDLE      the ring is empty, or the job is held: no room for its completion, or policy JOB and the other context works
//            (STATUS shows 7, held, while a descriptor waits here).
//  DESC      reads the descriptor (8 beats). A cancel, a reset or the watchdog takes effect when it has arrived, so that the
//            completion has its tag; if it does not arrive within DRAIN_LIMIT cycles, without. A refused read ends it at once.
//  PROG      has asked for the program; RUN begins with its first command, while the others still arrive.
//  DRAIN     after END: waits until the rest of the program has arrived, the queues are empty and the units done, the last
//            SettleCycles cycles with nothing but answers of stores outstanding (an error pulse follows its cause by a
//            cycle or two, or its unit is busy until the flush).
//            Meanwhile the front end reads the next descriptor and program. If that job says OVERLAP, it starts when these answers
//            are all that is missing: the old job then waits for them in the last stage.
//  ABORT     flush_o is high: queues and units drop what is left. At least SettleCycles cycles. After a dead port it lasts until the
//            port has answered after all, or until a soft reset gives up what it owes (abandon_o).
//  COMPLETE  one cycle, or until the last stage is free.
//
// Parts      ct_job_front reads; ct_job_ring has HEAD and TAIL; ct_job_error finds the first error of the job in front; ct_job_last, the last stage,
//            holds a job that is over but for the answers to its stores, and has the completions.
// Dead port  answers that are missing for DRAIN_LIMIT cycles after an error, or in the last stage after the start of the next job: the job that waits ends
//            with DEAD, and in the second case the next one, too.
// Batches    While batch_ready_o is high, form_i may rise: then no descriptor is taken from the ring until form_i has fallen. The batch's descriptor
//            comes as eight beats with batch_valid_i, the first with batch_first_i and batch_rows_i (the number of requests, which goes to r25),
//            none after a reset; its program is asked for with the second, as for any descriptor. It begins (batch_start_o, a pulse) only when all eight
//            are here, so never in DESC. A flush does not lose it; a soft reset does, until it has begun. It takes no completion and no room for one: over,
//            it waits in the last stage until batch_done_ready_i, beside the next job if that may overlap. HEAD does not move for it.
//            batch_due_i says that a batch could go: then descriptors and batches are taken in turn. batch_on_i: batches may come; then
//            a descriptor is not read ahead while there is no room for its completion, so that the host that pops none holds up no batch.
// Chains     A job that says CHAIN does nothing and ends with SKIPPED if the last completion of the ring had an error: the rest of a work whose
//            first jobs failed. It starts only when the job before it is wholly over (no overlap), so that is known.
// Cancel     cancel_i with cancel_named_i hits the job whose number (HEAD before it was taken) is cancel_num_i[15:0], if it has not left DRAIN:
//            the one in front, or the next one, which then ends as soon as it begins. Without a name it hits the job in front.
// Times      start of a job: the cycle in which the read of the descriptor is first offered, or if it was read before, the first in which the job
//            is in front. The watchdog counts from it and rests while the core is frozen.
// Stages     what is long is cut at registers. The answers to fetches come through registers of ct_contexts, and what is said of the units with them, as
//            one word: fetch_idle_i and units_idle_i are low in the cycle after a fetch has been taken.
//
// Invariants (asserted here and in the parts)
//  1. A job of the ring starts only with room for its completion, so the last stage never waits for room.
//  2. The first error of a job is its code; only DEAD replaces it.
//  3. Semaphores are zero outside RUN and DRAIN.
//  4. HEAD moves when the descriptor has been read, and by a soft reset.
//  5. A fetch is asked for only while the front end waits for it; after a lost one or a wrong guess, when no beat of it can come any more.

`default_nettype none
`include "ct_assert.svh"

module ct_job #(
  localparam int unsigned CplW = ct_pkg::CplW
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  // Registers. tail_we_i writes TAIL; cycle_next_i = cycle_i + 1.
  input  logic [31:0]     ring_base_i,
  input  logic [3:0]      ring_log2_i,
  input  logic            tail_we_i,
  input  logic [15:0]     tail_i,
  input  logic [31:0]     watchdog_i,
  input  logic [31:0]     drain_limit_i,
  input  logic            reset_i,       // pulse: soft reset
  input  logic            cancel_i,      // pulse
  input  logic            cancel_named_i,
  input  logic [47:0]     cancel_num_i,  // the number, one more and two more, so that comparing them with HEAD takes no adder
  input  logic            hold_i,        // no job may start
  input  logic            freeze_i,      // stops the watchdog
  input  logic [63:0]     cycle_i,
  input  logic [63:0]     cycle_next_i,
  output logic [15:0]     tail_o,
  output logic [15:0]     head_o,
  output logic [2:0]      status_o,
  output logic            dead_o,        // the memory port owed answers past DRAIN_LIMIT (until the global reset)
  output logic            quiet_o,       // nothing runs and nothing can be waited for

  // The gate of policy JOB: want_o asks, gate_i lets start; start_o and finish_o are pulses; busy_o: a job runs. overlap_i: a job may
  // start before the one before has finished.
  output logic            want_o,
  input  logic            gate_i,
  input  logic            overlap_i,
  output logic            start_o,
  output logic            finish_o,
  output logic            busy_o,

  // Completions, oldest first.
  output logic            cpl_valid_o,
  output logic [4:0]      cpl_count_o,
  output logic [CplW-1:0] cpl_o,
  input  logic            cpl_pop_i,

  // Batches (context 0; elsewhere all inputs low).
  output logic            batch_ready_o,
  input  logic            batch_due_i,
  input  logic            batch_on_i,
  input  logic            form_i,
  input  logic            batch_valid_i,
  input  logic            batch_first_i,
  input  logic [127:0]    batch_data_i,
  input  logic [4:0]      batch_rows_i,
  output logic            batch_start_o,
  output logic            batch_done_valid_o,
  input  logic            batch_done_ready_i,
  output logic [7:0]      batch_done_code_o,
  output logic [31:0]     batch_done_addr_o,
  output logic [31:0]     batch_done_rows_o,
  output logic [4:0]      rows_o,          // requests of the batch in front, 0: the job in front is of the ring

  // DMA fetch client. The answer is in order and never refused. fetch_idle_i: none is outstanding.
  output logic            fetch_valid_o,
  input  logic            fetch_ready_i,
  output logic [31:0]     fetch_addr_o,
  output logic [10:0]     fetch_len_o,
  output logic            fetch_soft_o,
  output logic            fetch_drop_o,
  input  logic            fetch_bad_i,
  input  logic            fetch_idle_i,
  input  logic            fetch_rvalid_i,
  input  logic [127:0]    fetch_rdata_i,

  // ct_fetch.
  output logic            prog_load_o,   // the beats of another program follow
  output logic            prog_start_o,
  output logic [9:0]      prog_ncmds_o,
  output logic            prog_stop_o,
  output logic            prog_valid_o,  // the beat on fetch_rdata_i is the program's
  output logic            arg_we_o,
  output logic [2:0]      arg_group_o,
  output logic [127:0]    arg_data_o,
  input  logic            prog_first_i,
  input  logic            prog_loaded_i,
  input  logic            prog_end_i,
  input  logic            prog_err_i,
  input  logic [9:0]      prog_idx_i,

  // Semaphores, queues, units.
  output logic            sem_clear_o,
  input  logic            sem_err_i,
  input  logic [3:0]      sem_err_num_i,
  output logic            flush_o,
  output logic            abandon_o,     // pulse: the DMA forgets what the dead port owes this context
  input  logic            queues_empty_i,
  input  logic            units_idle_i,
  input  logic            units_done_i,  // idle but for fetches
  input  logic            units_quiet_i, // and for answers to stores
  output logic            seal_o,        // pulse: the stores outstanding belong to the old job from now on
  input  logic            old_i,         // some of them still are
  input  logic            old_err_i,     // pulse: an error answer to one
  input  logic [31:0]     old_err_addr_i,
  input  logic [2:0]      err_i,         // DMA, MXU, VPU
  input  logic [3*8-1:0]  err_code_i,
  input  logic [3*32-1:0] err_addr_i,
  input  logic            row_i          // the MXU took a row of this context
);

  localparam int unsigned SettleCycles = 4;

  `include "ct_job_states.svh"
  localparam logic [2:0] StatusHeld = 3'd7;

  state_e      state_d, state_q;
  logic        after_dead_d, after_dead_q;
  logic        silent_d, silent_q;     // ABORT without a job
  logic        dead_q;
  logic [1:0]  settle_d, settle_q;

  logic        active;                 // a job that can still fail
  logic        start, over_start;      // the second: beside the job before
  logic        retire;                 // the job in front goes into the last stage
  logic        room;                   // for the completion of the next one, if it takes one
  logic        flush_next;             // the next cycle flushes
  logic        desc_over;              // DESC is left
  logic        to_abort;               // ABORT comes next, or stays
  logic        gives_up;               // the port is dead: COMPLETE comes next, and goes on flushing
  logic        quiet, settled, drained, aborted;

  // Front end.
  logic [1:0]  fe;
  logic        own, kill;
  logic        fe_here;                // the next job's descriptor is here
  logic        fe_batch, fe_ring;      // it holds a batch; it has something of the ring
  logic        desc_ask, desc_beat, desc_last;
  logic        request, req_prog;
  logic        bad_desc, ncmds_bad, skip, doomed, beside, prog_first, front_isb;
  logic [31:0] tag, version, next_limit;

  // The ring.
  logic [31:0] slot;
  logic [15:0] head, head_after, tail;
  logic        ring_more;
  logic [63:0] arrive;
  logic        cancelled, cancel_next;

  // Errors.
  logic        fail, err, unit_err, drain_over;
  logic [7:0]  fail_code, code;
  logic [31:0] addr;

  // The last stage.
  logic        meta, old, old_batch, old_over, old_done, old_die, ring_bad, cpl_ready;
  logic [4:0]  early_count;

  // ---- Starting -------------------------------------------------------------------------------------------------------------

  assign active     = (state_q != StIdle) && (state_q != StAbort) && (state_q != StComplete);
  assign room       = cpl_ready || fe_batch;
  assign want_o     = (state_q == StIdle) && (fe_ring || (fe_batch && fe_here)) && (!old || (old_batch && old_over && overlap_i)) && !kill && room && !hold_i;
  // (Nor in the cycle in which an answer to a store is reported as an error: it counts from the next one on, and would be the next job's. Other
  // units have been idle too long to report any.)
  assign over_start = (state_q == StDrain) && settled && beside && overlap_i && !old && !meta && room && !hold_i && !fail && !err_i[0];
  assign start      = (want_o && gate_i && !reset_i) || over_start;

  assign start_o       = start;
  assign batch_start_o = start && fe_batch;
  assign seal_o        = over_start;
  assign finish_o      = old_done;
  assign busy_o        = (state_q != StIdle && !after_dead_q && !silent_q) || old;
  assign quiet_o       = (state_q == StIdle && !old && fe == FeNone && !kill) || after_dead_q;

  // ---- The state machine ------------------------------------------------------------------------------------------------------

  // What the next state is, for those who cannot wait for it (NextStates_A).
  assign desc_over = unit_err || (err && drain_over) || desc_last;
  assign gives_up  = (state_q == StAbort) && !aborted && drain_over && !after_dead_q && !silent_q;
  always_comb begin
    unique case (state_q)
      StIdle:                 to_abort = kill;
      StDesc:                 to_abort = desc_over && (unit_err || err || fail);
      StProg, StRun, StDrain: to_abort = fail;
      StAbort:                to_abort = !aborted && !gives_up;
      StComplete:             to_abort = !old && after_dead_q;
      default:                to_abort = 1'b0;
    endcase
  end
  assign flush_next = to_abort || gives_up || (state_q == StComplete && old && after_dead_q);

  assign quiet   = queues_empty_i && units_quiet_i && !own;
  assign settled = (settle_q == 2'(SettleCycles - 1)) && quiet;
  assign drained = settled && units_done_i;
  assign aborted = (settle_q == 2'(SettleCycles - 1)) && queues_empty_i && units_idle_i;
  assign retire  = over_start || (state_q == StComplete && !old);

  always_comb begin
    state_d      = state_q;
    after_dead_d = after_dead_q;
    silent_d     = silent_q;
    settle_d     = '0;

    unique case (state_q)
      StIdle: begin
        after_dead_d = 1'b0;
        silent_d     = 1'b0;
        if (kill) begin
          state_d  = StAbort;
          silent_d = 1'b1;
        end
      end
      StDesc: begin
        if (unit_err || (err && drain_over)) state_d = StAbort;
        else if (desc_last)                  state_d = (err || fail) ? StAbort : StProg;
      end
      StProg: begin
        if (prog_first && fe == FeProg && !skip && !doomed) state_d = StRun;
        if (fail)                                           state_d = StAbort;
      end
      StRun: begin
        if (prog_end_i) state_d = StDrain;
        if (fail)       state_d = StAbort;
      end
      StDrain: begin
        if (quiet) settle_d = settled ? settle_q : settle_q + 2'd1;
        if (drained) state_d = StComplete;
        if (fail)    state_d = StAbort;
      end
      StAbort: begin
        if (queues_empty_i && units_idle_i) settle_d = aborted ? settle_q : settle_q + 2'd1;
        if (aborted) begin
          state_d = (after_dead_q || silent_q) ? StIdle : StComplete;
        end else if (drain_over && !after_dead_q) begin
          if (!silent_q) state_d = StComplete;
          after_dead_d = 1'b1;
        end
      end
      StComplete: if (retire) state_d = after_dead_q ? StAbort : StIdle;
      default:    state_d = StIdle;
    endcase
    if (start) state_d = (fe_here || (fe == FeDesc && desc_last)) ? StProg : StDesc;
    if (state_d != state_q) settle_d = '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      after_dead_q <= 1'b0;
      silent_q     <= 1'b0;
      dead_q       <= 1'b0;
      settle_q     <= '0;
    end else begin
      state_q      <= state_d;
      after_dead_q <= after_dead_d;
      silent_q     <= silent_d;
      dead_q       <= dead_q || after_dead_d || old_die;
      settle_q     <= settle_d;
    end
  end

  assign head_o      = head;
  assign tail_o      = tail;
  assign status_o    = (state_q == StIdle && (head != tail || fe != FeNone)) ? StatusHeld : state_q;
  assign dead_o      = dead_q;
  assign flush_o     = (state_q == StAbort) || (state_q == StComplete && after_dead_q);
  assign abandon_o   = (state_q == StAbort) && after_dead_q && reset_i;
  assign sem_clear_o = (state_q != StRun) && (state_q != StDrain);
  assign prog_stop_o = (state_q == StAbort);

  // ---- Parts --------------------------------------------------------------------------------------------------------------------

  ct_job_front u_front (
    .clk_i, .rst_ni,
    .reset_i, .hold_i, .freeze_i,
    .state_i (state_q), .active_i (active), .start_i (start), .fail_i (fail), .desc_over_i (desc_over), .drained_i (drained),
    .to_abort_i (to_abort), .flush_next_i (flush_next), .flush_i (flush_o), .silent_i (silent_q), .meta_i (meta), .ring_bad_i (ring_bad),
    .cpl_ready_i (cpl_ready), .cancel_next_i (cancel_next),
    .slot_i (slot), .ring_more_i (ring_more),
    .fe_o (fe), .own_o (own), .here_o (fe_here), .batch_o (fe_batch), .ring_o (fe_ring), .kill_o (kill), .request_o (request), .req_prog_o (req_prog),
    .desc_ask_o (desc_ask), .desc_beat_o (desc_beat), .desc_last_o (desc_last), .bad_desc_o (bad_desc), .ncmds_bad_o (ncmds_bad), .skip_o (skip), .doomed_o (doomed),
    .beside_o (beside), .tag_o (tag), .version_o (version), .limit_o (next_limit), .front_isb_o (front_isb), .rows_o,
    .batch_ready_o, .batch_due_i, .batch_on_i, .form_i, .batch_valid_i, .batch_first_i, .batch_data_i, .batch_rows_i,
    .fetch_valid_o, .fetch_ready_i, .fetch_addr_o, .fetch_len_o, .fetch_soft_o, .fetch_drop_o, .fetch_bad_i, .fetch_idle_i,
    .fetch_rvalid_i, .fetch_rdata_i,
    .prog_load_o, .prog_start_o, .prog_ncmds_o, .prog_valid_o, .arg_we_o, .arg_group_o, .arg_data_o, .prog_first_i, .prog_loaded_i,
    .prog_first_o (prog_first)
  );

  ct_job_ring u_ring (
    .clk_i, .rst_ni,
    .ring_base_i, .ring_log2_i, .tail_we_i, .tail_i, .reset_i, .cancel_i, .cancel_named_i, .cancel_num_i, .cycle_i,
    .tail_o (tail), .head_o (head),
    .state_i (state_q), .fe_i (fe), .own_i (own), .here_i (fe_here), .batch_i (fe_batch), .front_isb_i (front_isb), .start_i (start),
    .desc_last_i (desc_last), .desc_over_i (desc_over),
    .slot_o (slot), .after_o (head_after), .more_o (ring_more), .arrive_o (arrive),
    .cancel_o (cancelled), .cancel_next_o (cancel_next)
  );

  ct_job_error u_error (
    .clk_i, .rst_ni,
    .watchdog_i, .drain_limit_i, .freeze_i, .reset_i,
    .cancel_i (cancelled),
    .state_i (state_q), .active_i (active), .start_i (start), .to_abort_i (to_abort), .gives_up_i (gives_up), .old_die_i (old_die),
    .next_limit_i (next_limit), .bad_desc_i (bad_desc), .ncmds_bad_i (ncmds_bad), .skip_i (skip), .doomed_i (doomed),
    .sem_err_i, .sem_err_num_i, .prog_err_i, .prog_idx_i, .err_i, .err_code_i, .err_addr_i,
    .fail_o (fail), .fail_code_o (fail_code), .err_o (err), .unit_err_o (unit_err), .code_o (code), .addr_o (addr), .drain_over_o (drain_over)
  );

  ct_job_last u_last (
    .clk_i, .rst_ni,
    .cycle_next_i,
    .state_i (state_q), .start_i (start), .batch_i (fe_batch), .front_isb_i (front_isb), .tag_i (tag), .version_i (version), .arrive_i (arrive),
    .row_i, .code_i (code), .addr_i (addr), .retire_i (retire), .after_dead_i (after_dead_q), .meta_o (meta),
    .old_i, .old_err_i, .old_err_addr_i,
    .drain_over_i (drain_over),
    .old_o (old), .old_batch_o (old_batch), .over_o (old_over), .done_o (old_done), .die_o (old_die), .ring_bad_o (ring_bad),
    .batch_done_valid_o, .batch_done_ready_i, .batch_done_code_o, .batch_done_addr_o, .batch_done_rows_o,
    .cpl_ready_o (cpl_ready), .early_count_o (early_count), .cpl_valid_o, .cpl_count_o, .cpl_o, .cpl_pop_i
  );

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  logic front_open;                    // a job is in front and not in the last stage
  assign front_open = active || state_q == StComplete || (state_q == StAbort && !after_dead_q && !silent_q);

  `CT_ASSERT(AbortHasCode_A, state_q != StAbort || silent_q || code != ct_pkg::ErrOk)       // 2
  `CT_ASSERT(DeadHasCode_A, !(state_q == StComplete && after_dead_q) || code == ct_pkg::ErrDead)  // 2
  `CT_ASSERT(CleanEnd_A, state_q != StDrain || code == ct_pkg::ErrOk)                       // 2
  `CT_ASSERT(SemsOnlyInJob_A, sem_clear_o == !(state_q == StRun || state_q == StDrain))     // 3
  `CT_ASSERT(NextStates_A, to_abort == (state_d == StAbort) && flush_next == (state_d == StAbort || (state_d == StComplete && after_dead_d)) &&
                           (state_q != StDesc || desc_over == (state_d != StDesc)))
  `CT_ASSERT(StateLegal_A, state_q <= StComplete)
  `CT_ASSERT(MetaStates_A, !meta || active || (state_q == StAbort && !silent_q && !after_dead_q))
  `CT_ASSERT(SilentStates_A, !silent_q || state_q == StIdle || state_q == StAbort)
  `CT_ASSERT(AfterDeadStates_A, !after_dead_q || state_q == StIdle || state_q == StAbort || state_q == StComplete)
  // Jobs that have started, in both halves of the completions.
  `CT_ASSERT(EarlyCount_A, 6'(early_count) == 6'(cpl_count_o) + 6'(old && !old_batch) + 6'(front_open && !meta && rows_o == '0))

`ifdef FORMAL
  `include "ct_job_formal.svh"
`else
  // What the proofs alone look at.
  logic unused_formal;
  assign unused_formal = ^{desc_ask, desc_beat, request, req_prog, head_after, fail_code};
`endif

  `CT_COVER(Held_C, status_o == StatusHeld && !cpl_ready)
  `CT_COVER(Dead_C, state_q == StComplete && after_dead_q)
  `CT_COVER(Overlap_C, over_start)

endmodule

`default_nettype wire
