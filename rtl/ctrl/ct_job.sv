// SPDX-License-Identifier: Apache-2.0
//
// The jobs of one context, one after the other: takes descriptors from the ring, or batches of requests from ct_batch; loads programs, ends
// jobs, reports them.
//
// Two machines. The front end reads the descriptor and the program of the next job, whether it has begun or not:
//
//     NONE --> DESC ----------------> PROG ------------------> NONE, when the program of the running job has arrived
//               |  8 beats             ^ |
//               |  (program asked for  | | fetch_bad_i
//               |  with the second)    | v
//               +--------------------> HAVE     (bad NCMDS or FLAGS; not to run; program lost or wrongly guessed)
//
// The main machine runs the job in front (own_q: the front end's job has begun, and is the main machine's):
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
//            SettleCycles cycles with nothing but answers of stores outstanding (an error pulse follows its cause by a cycle or two).
//            Meanwhile the front end reads the next descriptor and program. If that job says OVERLAP, it starts when these answers
//            are all that is missing: the old job then waits for them in the last stage.
//  ABORT     flush_o is high: queues and units drop what is left. At least SettleCycles cycles. After a dead port it lasts until the
//            port has answered after all, or until a soft reset gives up what it owes (abandon_o).
//  COMPLETE  one cycle, or until the last stage is free.
//
// The last stage (old_q) holds a job that is over but for the answers to its stores, pushes its completion when these have come
// (old_i low), and is past cancel, reset and watchdog. An error answer becomes its code; if answers are missing for DRAIN_LIMIT cycles
// after the start of the next job (or after its error), the port is dead: it ends with DEAD, and the next job fails with DEAD, too.
//
// Batches    While batch_ready_o is high, form_i may rise: then no descriptor is taken from the ring until form_i has fallen. The batch's descriptor
//            comes as eight beats with batch_valid_i, the first with batch_first_i and batch_rows_i (the number of requests, which goes to r25),
//            none after a reset; its program is asked for with the second, as for any descriptor. It begins (batch_start_o, a pulse) only when all eight
//            are here, so never in DESC. A flush does not lose it; a soft reset does, until it has begun. It takes no completion and no room for one: over,
//            it waits in the last stage until batch_done_ready_i, beside the next job if that may overlap. HEAD does not move for it.
//            batch_due_i says that a batch could go: then descriptors and batches are taken in turn. batch_on_i: batches may come; then
//            a descriptor is not read ahead while there is no room for its completion, so that the host that pops none holds up no batch.
// Fetches    What is asked for before its job begins is soft: if anything is wrong with it (fetch_bad_i), it is forgotten and asked for
//            again when the job has begun; only then is it an error. If the last two programs were the same, this program is
//            asked for together with the next descriptor, as a guess, soft, too; it is fresh from memory, so only address and length are
//            guessed. A wrong guess costs the answers to what was asked for (fetch_drop_o forgets the rest of it).
//
// Invariants (asserted below)
//  1. A job of the ring starts only with room for its completion, so the last stage never waits for room.
//  2. The first error of a job is its code; only DEAD replaces it.
//  3. Semaphores are zero outside RUN and DRAIN.
//  4. HEAD moves when the descriptor has been read (its slot may then be written again), and by a soft reset, to TAIL as
//     it was then (in DESC only when the descriptor has been read).
//  5. A fetch is asked for only while the front end waits for it; after a lost one or a wrong guess, when no beat of it can come any more.
//
// Times      arrive: the cycle with tail_we_i that made the descriptor visible (ct_bells).
//            start: the cycle in which the read of the descriptor is first offered, or if it was read before, the first in which the job
//            is in front. end: the cycle in which the completion is first visible. The watchdog counts from start and rests
//            while the core is frozen.
// Errors     of one cycle: DMA before MXU, VPU, cancel, semaphores, fetch, descriptor, chain, watchdog, reset, dead port. In DESC the watchdog
//            uses the context's WATCHDOG, as the descriptor's own limit is not known yet. The errors of units and a cancel count from the
//            cycle after they have come (unit_err_q, cancel_q): DRAIN outlasts the first; the second is dropped if another job is in front then.
// Stages     what is long is cut at registers: the program is asked for in the cycle after the descriptor's second beat, ct_fetch hears of
//            a program and its start a cycle after that is decided (until then what it says is of the one before). The answers to fetches come
//            through registers of ct_core's, and what is said of the units with them, as one word: fetch_idle_i and units_idle_i are low in the
//            cycle after a fetch has been taken.
// Chains     A job that says CHAIN does nothing and ends with SKIPPED if the last completion of the ring had an error: the rest of a work whose
//            first jobs failed. It starts only when the job before it is wholly over (no overlap), so that is known.
// Cancel     cancel_i with cancel_named_i hits the job whose number (HEAD before it was taken) is cancel_num_i[15:0], if it has not left DRAIN:
//            the one in front, or the next one, which then ends as soon as it begins. Without a name it hits the job in front.
// Completion cpl_o = {rows, end, start, arrive, version, addr, code, tag}, see the localparams; 16 of them. What is known at the
//            start lies in a FIFO of its own, pushed when the front end may need its registers for the next job.

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

  typedef enum logic [2:0] {
    StIdle = 3'd0, StDesc = 3'd1, StProg = 3'd2, StRun = 3'd3, StDrain = 3'd4, StAbort = 3'd5, StComplete = 3'd6
  } state_e;
  localparam logic [2:0] StatusHeld = 3'd7;

  typedef enum logic [1:0] {FeNone = 2'd0, FeDesc = 2'd1, FeHave = 2'd2, FeProg = 2'd3} fe_e;

  state_e      state_d, state_q;
  logic        err_d, err_q;           // the job in front has failed
  logic        reset_seen_q;           // a soft reset came while in DESC
  logic        after_dead_d, after_dead_q;
  logic        silent_d, silent_q;     // ABORT without a job
  logic        kill_d, kill_q;         // fetches for a job that a reset has dropped are outstanding
  logic        dead_q;
  logic [31:0] timer_d, timer_q;       // cycles since the start; from the first error on: since that
  logic [1:0]  settle_d, settle_q;
  logic [15:0] head_d, head_q, tail_q;
  logic [15:0] reset_head_q;           // where that reset sets HEAD, once the descriptor has been read

  // Front end.
  fe_e         fe_d, fe_q;
  logic        own_d, own_q;           // its job is the one in front
  logic        request_d, request_q;   // a fetch is offered:
  logic        req_prog_d, req_prog_q; // of the program
  logic        req_soft_d, req_soft_q;
  logic        asked_d, asked_q;       // the program has been asked for
  logic        guess_d, guess_q;       // before the descriptor was known
  logic        wait_d, wait_q;         // nothing new until all fetches are answered
  logic        lost_d, lost_q;         // a soft fetch failed: no other one
  logic        drop_d, drop_q;
  logic        doomed_d, doomed_q;     // the next job of the ring is cancelled before its start (a batch may go before)
  logic [4:0]  fe_rows_d, fe_rows_q;   // requests of the batch it holds, 0: of the ring
  logic        fe_isb_d, fe_isb_q;     // what it holds, or held last, is a batch
  logic        ring_turn_q;            // the last one taken was a batch
  logic [2:0]  beat_q;                 // of the descriptor
  logic        first_beat_q;           // the first one came in the last cycle
  logic        second_beat_q;          // the second one did
  logic        same_q;                 // it names the program of the one before
  logic [31:0] tag_q, version_q, prog_q, next_limit_q;
  logic [9:0]  ncmds_q;
  logic        ncmds_bad_q, flags_bad_q, overlap_q, chain_q;
  logic        ring_bad_q;             // the last completion of the ring had an error
  logic [63:0] arrive_q;

  // The job in front.
  logic [31:0] limit_q, rows_q;        // the watchdog's limit less one
  logic        limited_q;
  logic [7:0]  code_q;
  logic [31:0] addr_q;
  logic [63:0] start_q;
  logic        meta_d, meta_q;         // what is known of it at its start is not in the FIFO yet
  logic [4:0]  rows_front_q;           // requests of the batch, 0: of the ring
  logic        front_isb_q;            // it is a batch

  // The last stage.
  logic        old_d, old_q, old_dead_q;
  logic        old_batch_q;            // it is a batch
  logic [7:0]  old_code_q;
  logic [31:0] old_addr_q, old_rows_q;
  logic        old_die, old_over, old_done, retire;

  logic        active;                 // a job that can still fail
  logic        start, over_start;      // the second: beside the job before
  logic        desc_ask, desc_beat, desc_last, prog_ask;
  logic        fe_here;                // the next job's descriptor is here
  logic        fe_batch, fe_ring;      // the front end holds a batch; it has something of the ring
  logic        batch_first;            // a batch comes
  logic        ring_ok, ring_more;     // the ring may be looked at; there is something in it
  logic        ring_more_q;            // there was in the cycle before,
  logic        ring_moved_q;           // in which HEAD or TAIL moved
  logic        room;                   // for the completion of the next one, if it takes one
  logic        flush_next;             // the next cycle flushes
  logic        desc_over;              // DESC is left
  logic        to_abort;               // ABORT comes next, or stays
  logic        gives_up;               // the port is dead: COMPLETE comes next, and goes on flushing
  logic [127:0] desc_data;
  logic [31:0] flags;                  // in the second beat
  logic        flags_bad;
  logic        fetch_quiet;
  logic        wrong_guess;
  logic        bad_desc;
  logic        skip;                   // the job in front is not to run: what it continues has failed
  logic        doomed;                 // nor is this one: it was cancelled before it began
  logic        fail;                   // the first error, now
  logic        unit_err_q;             // a unit has reported one in the cycle before, with
  logic [7:0]  unit_code_q;
  logic [31:0] unit_addr_q;
  logic [7:0]  fail_code;
  logic [31:0] fail_addr;
  logic        begin_anew;             // the timer, from the next cycle on,
  logic        anew_q;                 // in which it does not show it yet
  logic        wd_hit, wd_hit_q, drain_over, drain_over_q, quiet, settled, aborted;
  logic        cpl_ready;
  logic        named_head, named_last, named_front;
  logic        cancel_front, cancel_next;
  logic        cancel_q;               // the job in front was cancelled in the cycle before
  logic        loaded_q, begun_q;      // what prog_load_o and prog_start_o say has been said
  logic        prog_first, prog_loaded;

  // ---- Starting -------------------------------------------------------------------------------------------------------------

  assign active     = (state_q != StIdle) && (state_q != StAbort) && (state_q != StComplete);
  assign fe_batch   = (fe_q != FeNone) && fe_isb_q;
  assign fe_ring    = (fe_q != FeNone) ? !fe_batch : ring_more && ring_ok;
  assign room       = cpl_ready || fe_batch;
  assign want_o     = (state_q == StIdle) && (fe_ring || (fe_batch && fe_here)) && (!old_q || (old_batch_q && old_over && overlap_i)) && !kill_q &&
                      room && !hold_i;
  // (Nor in the cycle in which an answer to a store is reported as an error: it counts from the next one on, and would be the next job's. Other
  // units have been idle too long to report any.)
  assign over_start = (state_q == StDrain) && settled && fe_here && overlap_q && overlap_i && !bad_desc && !(doomed_q && !fe_batch) && !old_q &&
                      !meta_q && room && !hold_i && !fail && !err_i[0];
  assign start      = (want_o && gate_i && !reset_i) || over_start;
  assign start_o    = start;
  assign seal_o     = over_start;
  assign finish_o   = old_done;
  assign busy_o     = (state_q != StIdle && !after_dead_q && !silent_q) || old_q;
  assign quiet_o    = (state_q == StIdle && !old_q && fe_q == FeNone && !kill_q) || after_dead_q;

  // ---- Batches ----------------------------------------------------------------------------------------------------------------

  // A batch and the ring never take the front end in the same cycle: while a batch is due it has its turn, unless the ring has (and
  // then there is something in the ring that can be taken; what can not does not count).
  assign ring_more     = ring_more_q && !ring_moved_q;
  assign ring_ok       = !form_i && !(batch_due_i && !ring_turn_q && !freeze_i);
  assign batch_ready_o = (fe_q == FeNone) && !own_q && !wait_q && !kill_q && !hold_i && !freeze_i && !(ring_turn_q && ring_more && cpl_ready) &&
                         ((state_q == StIdle && !silent_q) || (state_q == StDrain && !meta_q));
  assign batch_first   = batch_valid_i && batch_first_i && (fe_q == FeNone);
  assign batch_start_o = start && fe_batch;
  assign rows_o        = rows_front_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                            ring_turn_q <= 1'b0;
    else if (form_i)                        ring_turn_q <= 1'b1;
    else if (desc_ask && state_q != StDesc) ring_turn_q <= 1'b0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rows_front_q <= '0;
      front_isb_q  <= 1'b0;
    end else if (start) begin
      rows_front_q <= fe_batch ? fe_rows_q : '0;
      front_isb_q  <= fe_batch;
    end
  end

  // ---- Front end --------------------------------------------------------------------------------------------------------------

  assign fetch_quiet = fetch_idle_i && !request_q;
  assign fe_here     = !own_q && (fe_q == FeHave || fe_q == FeProg);
  assign bad_desc    = ncmds_bad_q || flags_bad_q;
  assign skip        = (state_q == StProg) && chain_q && ring_bad_q;
  assign doomed      = (state_q == StProg) && doomed_q && !front_isb_q;
  // After a soft failure the descriptor is taken for lost, and what still comes is not it.
  assign desc_beat   = batch_first || ((fe_q == FeDesc) && (fe_batch ? batch_valid_i : fetch_rvalid_i && !(wait_q && lost_q)));
  assign desc_data   = (batch_first || fe_batch) ? batch_data_i : fetch_rdata_i;
  assign desc_last   = desc_beat && (beat_q == 3'd7);
  assign flags       = desc_data[32*(ct_pkg::DescFlags-4) +: 32];
  assign flags_bad   = (flags[31:2] != '0) || (flags[1] && fe_batch);  // (a batch is nobody's continuation)
  assign wrong_guess = (fe_q == FeDesc) && first_beat_q && guess_q && !same_q;
  // What the next state is, for those who cannot wait for it (NextStates_A).
  assign desc_over   = unit_err_q || (err_q && drain_over) || desc_last;
  assign gives_up    = (state_q == StAbort) && !aborted && drain_over && !after_dead_q && !silent_q;
  always_comb begin
    unique case (state_q)
      StIdle:                 to_abort = kill_q;
      StDesc:                 to_abort = desc_over && (unit_err_q || err_q || fail);
      StProg, StRun, StDrain: to_abort = fail;
      StAbort:                to_abort = !aborted && !gives_up;
      StComplete:             to_abort = !old_q && after_dead_q;
      default:                to_abort = 1'b0;
    endcase
  end
  assign flush_next  = to_abort || gives_up || (state_q == StComplete && old_q && after_dead_q);

  always_comb begin
    desc_ask = 1'b0;
    prog_ask = 1'b0;
    unique case (fe_q)
      FeNone: desc_ask = (start && state_q == StIdle) || (state_q == StDesc && !desc_over) ||
                         (state_q == StDrain && !fail && !(settled && units_done_i) && !meta_q && !own_q && !wait_q && !lost_q && ring_more && ring_ok && (cpl_ready || !batch_on_i) &&
                          !hold_i);
      // Not before it is known whether the job runs: else what is wrong with its program would come first.
      FeDesc: prog_ask = second_beat_q && !asked_q && !bad_desc && !(own_q && chain_q && ring_bad_q) && !wait_q;
      FeHave: prog_ask = !wait_q && !bad_desc && (own_q ? active : (!lost_q && (state_q == StDrain || state_q == StIdle)));
      default: ;
    endcase
    if (reset_i || kill_q || flush_next) begin
      desc_ask = 1'b0;
      prog_ask = 1'b0;
    end
  end

  always_comb begin
    fe_d       = fe_q;
    own_d      = own_q || start;
    request_d  = request_q && !fetch_ready_i;
    req_prog_d = req_prog_q;
    req_soft_d = req_soft_q;
    asked_d    = asked_q;
    guess_d    = guess_q;
    wait_d     = wait_q && !fetch_quiet;
    lost_d     = lost_q && !(own_q && to_abort);
    drop_d     = 1'b0;
    doomed_d   = (doomed_q || cancel_next) && !(own_q && !front_isb_q && (state_q == StProg || to_abort)) && !reset_i;
    kill_d     = kill_q;
    fe_rows_d  = fe_rows_q;
    fe_isb_d   = fe_isb_q;

    // The program is asked for with the descriptor if it was the same twice.
    if (request_q && fetch_ready_i && !req_prog_q && same_q && !lost_q) begin
      request_d  = 1'b1;
      req_prog_d = 1'b1;
      req_soft_d = 1'b1;
      asked_d    = 1'b1;
      guess_d    = 1'b1;
    end
    if (first_beat_q) guess_d = 1'b0;
    if (wrong_guess) begin
      drop_d    = 1'b1;
      asked_d   = 1'b0;
      wait_d    = 1'b1;
      request_d = 1'b0;
    end
    if (fe_q == FeDesc && wait_q && fetch_quiet && !fe_batch) fe_d = FeNone;  // the descriptor is what was lost
    if (batch_first) begin
      fe_d      = FeDesc;
      fe_rows_d = batch_rows_i;
      fe_isb_d  = 1'b1;
      asked_d   = 1'b0;
      guess_d   = 1'b0;
      lost_d    = 1'b0;
    end
    if (desc_ask) begin
      fe_rows_d  = '0;
      fe_isb_d   = 1'b0;
      fe_d       = FeDesc;
      request_d  = 1'b1;
      req_prog_d = 1'b0;
      req_soft_d = !own_d;
      asked_d    = 1'b0;
      guess_d    = 1'b0;
    end
    if (prog_ask) begin
      request_d  = 1'b1;
      req_prog_d = 1'b1;
      req_soft_d = !own_d;
      asked_d    = 1'b1;
    end
    if (fetch_bad_i && fe_q != FeNone) begin
      asked_d   = 1'b0;
      guess_d   = 1'b0;
      wait_d    = 1'b1;
      lost_d    = 1'b1;
      request_d = 1'b0;
      if (fe_q == FeProg) fe_d = FeHave;
    end
    if (desc_last) fe_d = asked_d ? FeProg : FeHave;
    if (fe_q == FeHave && prog_ask) fe_d = FeProg;
    if (own_q && fe_q == FeProg && !fetch_bad_i && prog_loaded && (state_q == StRun || state_q == StDrain)) begin
      fe_d   = FeNone;
      own_d  = 1'b0;
      lost_d = 1'b0;
    end

    // A flush drops all fetches; a job that has not begun keeps its descriptor, and a batch what will come of it.
    if (to_abort) begin
      if (own_q)                                 fe_d = FeNone;
      else if (fe_d == FeDesc && !fe_isb_d)      fe_d = FeNone;
      else if (fe_d == FeProg)                   fe_d = FeHave;
      asked_d   = 1'b0;
      own_d     = 1'b0;
      request_d = 1'b0;
      wait_d    = 1'b0;
      kill_d    = 1'b0;
    end
    if (reset_i && !own_q) begin
      kill_d    = (state_q == StIdle || state_q == StDrain || state_q == StAbort || state_q == StComplete) && !to_abort && (fe_q == FeDesc || fe_q == FeProg || wait_q || kill_q);
      fe_d      = FeNone;
      request_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fe_q         <= FeNone;
      own_q        <= 1'b0;
      request_q    <= 1'b0;
      req_prog_q   <= 1'b0;
      req_soft_q   <= 1'b0;
      asked_q      <= 1'b0;
      guess_q      <= 1'b0;
      wait_q       <= 1'b0;
      lost_q       <= 1'b0;
      drop_q       <= 1'b0;
      doomed_q     <= 1'b0;
      kill_q       <= 1'b0;
      fe_rows_q    <= '0;
      fe_isb_q     <= 1'b0;
      same_q       <= 1'b0;
      ncmds_bad_q  <= 1'b1;              // what the first descriptor is compared with is no program
      first_beat_q  <= 1'b0;
      second_beat_q <= 1'b0;
      beat_q        <= '0;
    end else begin
      fe_q         <= fe_d;
      own_q        <= own_d;
      request_q    <= request_d;
      req_prog_q   <= req_prog_d;
      req_soft_q   <= req_soft_d;
      asked_q      <= asked_d;
      guess_q      <= guess_d;
      wait_q       <= wait_d;
      lost_q       <= lost_d;
      drop_q       <= drop_d;
      doomed_q     <= doomed_d;
      kill_q       <= kill_d;
      fe_rows_q    <= fe_rows_d;
      fe_isb_q     <= fe_isb_d;
      first_beat_q  <= desc_beat && (beat_q == 3'd0);
      second_beat_q <= desc_beat && (beat_q == 3'd1);
      if (desc_beat && beat_q == 3'd0) begin
        same_q <= (desc_data[32*ct_pkg::DescProg +: 32] == prog_q) && (desc_data[32*ct_pkg::DescNcmds +: 32] == 32'(ncmds_q)) &&
                  !ncmds_bad_q;
        ncmds_bad_q <= (desc_data[32*ct_pkg::DescNcmds +: 32] == '0) ||
                       (desc_data[32*ct_pkg::DescNcmds +: 32] > ct_pkg::ProgMax);
      end
      if ((reset_i && !own_q) || (to_abort && !fe_batch && !batch_first) || (wait_q && fetch_quiet && !fe_batch && !batch_first)) beat_q <= '0;
      else if (desc_beat) beat_q <= beat_q + 3'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (desc_ask) begin
      tag_q        <= '0;
      version_q    <= '0;
      next_limit_q <= '0;
      flags_bad_q  <= 1'b0;
      overlap_q    <= 1'b0;
      chain_q      <= 1'b0;
    end
    if (desc_beat && beat_q == 3'd0) begin
      tag_q       <= desc_data[32*ct_pkg::DescTag +: 32];
      version_q   <= desc_data[32*ct_pkg::DescVersion +: 32];
      prog_q      <= desc_data[32*ct_pkg::DescProg +: 32];
      ncmds_q     <= desc_data[32*ct_pkg::DescNcmds +: 10];
    end
    if (desc_beat && beat_q == 3'd1) begin
      next_limit_q <= desc_data[32*(ct_pkg::DescWatchdog-4) +: 32];
      flags_bad_q  <= flags_bad;
      overlap_q    <= flags[0] && !flags[1];
      chain_q      <= flags[1];
    end
  end

  // The first two beats bring no arguments: they clear r25..r31, but for the number of a batch's requests in r25.
  assign arg_we_o    = desc_beat;
  assign arg_group_o = beat_q - 3'd2;
  assign arg_data_o  = batch_first ? 128'(batch_rows_i) : (beat_q < 3'd2) ? '0 : desc_data;

  // ct_fetch hears a cycle later that a program follows; until then it speaks of the one before.
  assign prog_first   = prog_first_i && !prog_load_o;
  assign prog_loaded  = prog_loaded_i && !prog_load_o;
  assign prog_load_o  = request_q && req_prog_q && !loaded_q;
  assign prog_start_o = (state_q == StProg && fe_q == FeProg) && !begun_q;
  assign prog_ncmds_o = ncmds_q;
  assign prog_stop_o  = (state_q == StAbort);
  // (The descriptor of a batch may be slower than its program.)
  // What comes with the news that the rest does not is not taken: the program would begin, and begin again when it is read again.
  assign prog_valid_o = fetch_rvalid_i && !fetch_bad_i && (fe_q == FeProg || (fe_q == FeDesc && fe_batch && asked_q));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      loaded_q <= 1'b0;
      begun_q  <= 1'b0;
    end else begin
      loaded_q <= request_q && req_prog_q;
      begun_q  <= (state_q == StProg) && (fe_q == FeProg);
    end
  end

  // A slot is 8 units of 16 bytes.
  assign fetch_valid_o = request_q && !wrong_guess;  // what it names has just been overwritten
  assign fetch_addr_o  = req_prog_q ? prog_q : ring_base_i + {13'd0, head_q & ~(16'hffff << ring_log2_i), 3'b000};
  assign fetch_len_o   = req_prog_q ? {ncmds_q, 1'b0} : 11'd8;
  assign fetch_soft_o  = req_soft_q;
  assign fetch_drop_o  = drop_q;

  // ---- Errors -----------------------------------------------------------------------------------------------------------------

  // (The timer is compared in the cycle before, with one less where it counts on.)
  assign wd_hit     = wd_hit_q && !anew_q;
  assign drain_over = drain_over_q && !anew_q;
  assign old_die    = old_q && old_i && drain_over && !old_dead_q;

  // The job at HEAD; the last one whose descriptor has been read; of these the one in front.
  assign named_head   = (cancel_num_i[15:0] == head_q);
  assign named_last   = (cancel_num_i[31:16] == head_q);
  assign named_front  = (state_q == StDesc) ? named_head : (fe_here && !fe_batch) ? (cancel_num_i[47:32] == head_q) : named_last;
  // Batches have no number.
  assign cancel_front = cancel_i && (!cancel_named_i || (!front_isb_q && named_front));
  assign cancel_next  = cancel_i && cancel_named_i && !own_q && !fe_batch && ((fe_q == FeDesc && named_head) || (fe_here && named_last));

  // The cancel hits the job in front a cycle later, if it is the same one then.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cancel_q <= 1'b0;
    else         cancel_q <= cancel_front && !start;
  end

  // Errors of the units, too, are known a cycle later; DRAIN lasts longer than that.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) unit_err_q <= 1'b0;
    else         unit_err_q <= (err_i != '0);
  end
  always_ff @(posedge clk_i) begin
    unit_code_q <= err_i[0] ? err_code_i[7:0]  : err_i[1] ? err_code_i[15:8]  : err_code_i[23:16];
    unit_addr_q <= err_i[0] ? err_addr_i[31:0] : err_i[1] ? err_addr_i[63:32] : err_addr_i[95:64];
  end

  always_comb begin
    fail      = active && !err_q;
    fail_code = ct_pkg::ErrOk;
    fail_addr = '0;
    if (unit_err_q) begin
      fail_code = unit_code_q;
      fail_addr = unit_addr_q;
    end else if (cancel_q) begin
      fail_code = ct_pkg::ErrCancelled;
    end else if (sem_err_i && state_q != StProg) begin
      fail_code = ct_pkg::ErrSem;
      fail_addr = 32'(sem_err_num_i);
    end else if (prog_err_i) begin
      fail_code = ct_pkg::ErrIllegal;
      fail_addr = 32'(prog_idx_i);
    end else if (state_q == StProg && bad_desc) begin
      fail_code = ct_pkg::ErrDescriptor;
      fail_addr = ncmds_bad_q ? ct_pkg::DescNcmds : ct_pkg::DescFlags;
    end else if (skip) begin
      fail_code = ct_pkg::ErrSkipped;
    end else if (wd_hit) begin
      fail_code = ct_pkg::ErrWatchdog;
      fail_addr = (state_q == StDesc || state_q == StProg) ? '0 : 32'(prog_idx_i);
    end else if (reset_i) begin
      fail_code = ct_pkg::ErrReset;
    end else if (old_die) begin
      fail_code = ct_pkg::ErrDead;
    end else if (doomed) begin
      fail_code = ct_pkg::ErrCancelled;
    end else begin
      fail = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      code_q <= ct_pkg::ErrOk;
      addr_q <= '0;
    end else if (fail) begin
      code_q <= fail_code;
      addr_q <= fail_addr;
    end else if (state_q == StAbort && state_d == StComplete && !aborted) begin
      code_q <= ct_pkg::ErrDead;
      addr_q <= '0;
    end
    if (start) start_q <= cycle_next_i;
    if (state_q == StDesc || state_q == StProg) begin
      limit_q   <= ((next_limit_q == '0) ? watchdog_i : next_limit_q) - 32'd1;
      limited_q <= (next_limit_q != '0) || (watchdog_i != '0);
    end
  end

  // ---- The state machine ------------------------------------------------------------------------------------------------------

  assign quiet   = queues_empty_i && units_quiet_i && !own_q;
  assign settled = (settle_q == 2'(SettleCycles - 1)) && quiet;
  assign aborted = (settle_q == 2'(SettleCycles - 1)) && queues_empty_i && units_idle_i;
  assign retire  = over_start || (state_q == StComplete && !old_q);

  always_comb begin
    state_d      = state_q;
    err_d        = err_q || fail;
    if (anew_q) timer_d = 32'(!(freeze_i && !err_q));
    else        timer_d = (timer_q == '1 || (freeze_i && !err_q)) ? timer_q : timer_q + 32'd1;
    after_dead_d = after_dead_q;
    silent_d     = silent_q;
    meta_d       = meta_q && !(state_q == StDrain || state_q == StAbort);
    settle_d     = '0;
    begin_anew   = fail;

    unique case (state_q)
      StIdle: begin
        after_dead_d = 1'b0;
        silent_d     = 1'b0;
        if (kill_q) begin
          state_d  = StAbort;
          silent_d = 1'b1;
        end
      end
      StDesc: begin
        if (unit_err_q || (err_q && drain_over)) state_d = StAbort;
        else if (desc_last)                    state_d = (err_q || fail) ? StAbort : StProg;
      end
      StProg: begin
        if (prog_first && fe_q == FeProg && !skip && !doomed) state_d = StRun;
        if (fail)                                             state_d = StAbort;
      end
      StRun: begin
        if (prog_end_i) state_d = StDrain;
        if (fail)       state_d = StAbort;
      end
      StDrain: begin
        if (quiet) settle_d = settled ? settle_q : settle_q + 2'd1;
        if (settled && units_done_i) state_d = StComplete;
        if (fail)                    state_d = StAbort;
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
    if (start) begin
      state_d = (fe_here || (fe_q == FeDesc && desc_last)) ? StProg : StDesc;
      err_d   = 1'b0;
      begin_anew = 1'b1;
      meta_d  = !fe_batch;
    end
    if (to_abort && (active || state_q == StIdle)) begin_anew = 1'b1;
    if (state_d != state_q) settle_d = '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      err_q        <= 1'b0;
      reset_seen_q <= 1'b0;
      after_dead_q <= 1'b0;
      silent_q     <= 1'b0;
      dead_q       <= 1'b0;
      meta_q       <= 1'b0;
      timer_q      <= '0;
      settle_q     <= '0;
      anew_q       <= 1'b0;
      wd_hit_q     <= 1'b0;
      drain_over_q <= 1'b0;
    end else begin
      state_q      <= state_d;
      err_q        <= err_d;
      reset_seen_q <= (state_q == StDesc) && (reset_seen_q || reset_i);
      after_dead_q <= after_dead_d;
      silent_q     <= silent_d;
      dead_q       <= dead_q || after_dead_d || old_die;
      meta_q       <= meta_d;
      anew_q       <= begin_anew;
      if (state_q != StIdle || anew_q) timer_q <= timer_d;
      wd_hit_q     <= !anew_q && !freeze_i && limited_q && (timer_q >= limit_q);
      drain_over_q <= !anew_q && (timer_q >= drain_limit_i);
      settle_q     <= settle_d;
    end
  end

  always_comb begin
    head_d = head_q;
    if (reset_i && (state_q != StDesc || desc_over))          head_d = tail_q;
    else if (state_q == StDesc && desc_over)                  head_d = reset_seen_q ? reset_head_q : head_q + 16'd1;
    else if (state_q != StDesc && desc_last && !fe_batch)     head_d = head_q + 16'd1;
  end

  always_ff @(posedge clk_i) begin
    if (reset_i) reset_head_q <= tail_q;
  end

  // HEAD and TAIL are compared in a cycle of its own: a cycle after one of them has moved there is nothing in the ring.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ring_more_q  <= 1'b0;
      ring_moved_q <= 1'b0;
    end else begin
      ring_more_q  <= (head_q != tail_q);
      ring_moved_q <= tail_we_i || reset_i || desc_last || (state_q == StDesc && desc_over);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
    end else begin
      head_q <= head_d;
      if (tail_we_i) tail_q <= tail_i;
    end
  end

  assign head_o      = head_q;
  assign tail_o      = tail_q;
  assign status_o    = (state_q == StIdle && (head_q != tail_q || fe_q != FeNone)) ? StatusHeld : state_q;
  assign dead_o      = dead_q;
  assign flush_o     = (state_q == StAbort) || (state_q == StComplete && after_dead_q);
  assign abandon_o   = (state_q == StAbort) && after_dead_q && reset_i;
  assign sem_clear_o = (state_q != StRun) && (state_q != StDrain);

  // ---- The last stage -----------------------------------------------------------------------------------------------------------

  assign old_over = old_q && (!old_i || old_dead_q);
  assign old_done = old_over && (!old_batch_q || batch_done_ready_i);
  assign old_d    = retire || (old_q && !old_done);

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
      old_dead_q <= retire ? after_dead_q : (old_dead_q || old_die) && !old_done;
    end
  end

  always_ff @(posedge clk_i) begin
    if (retire) begin
      old_batch_q <= front_isb_q;
      old_code_q <= code_q;
      old_addr_q <= addr_q;
      old_rows_q <= rows_q;
    end else if (old_die) begin
      old_code_q <= ct_pkg::ErrDead;
      old_addr_q <= '0;
    end else if (old_q && old_err_i && old_code_q == ct_pkg::ErrOk) begin
      old_code_q <= ct_pkg::ErrAxiWrite;
      old_addr_q <= old_err_addr_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                       ring_bad_q <= 1'b0;
    else if (old_done && !old_batch_q) ring_bad_q <= (old_code_q != ct_pkg::ErrOk);
  end

  // ---- Doorbell times -----------------------------------------------------------------------------------------------------------

  logic [63:0] bell;

  ct_bells u_bells (
    .clk_i, .rst_ni,
    .reset_i,
    .tail_we_i,
    .tail_i,
    .moves_i (tail_i != tail_q),
    .head_i  (head_q),
    .cycle_i,
    .bell_o  (bell)
  );

  always_ff @(posedge clk_i) begin
    if (fe_q == FeDesc && !reset_seen_q) arrive_q <= bell;
  end

  // ---- Completions ------------------------------------------------------------------------------------------------------------

  localparam int unsigned EarlyW = 192;  // tag, version, arrive, start
  localparam int unsigned LateW = 136;   // code, address, end, rows

  logic [EarlyW-1:0] early;
  logic [LateW-1:0]  late;
  logic              late_ready, early_valid;
  logic [4:0]        early_count;

  always_ff @(posedge clk_i) begin
    if (start)      rows_q <= '0;
    else if (row_i) rows_q <= rows_q + 32'd1;
  end

  ct_fifo #(.Width(EarlyW), .Depth(ct_pkg::CplDepth)) u_early (
    .clk_i, .rst_ni,
    .valid_i (meta_q && !meta_d),
    .ready_o (cpl_ready),
    .data_i  ({start_q, arrive_q, version_q, tag_q}),
    .valid_o (early_valid),
    .ready_i (cpl_pop_i && cpl_valid_o),
    .data_o  (early),
    .count_o (early_count)
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

  logic front_open;                    // a job is in front and not in the last stage
  assign front_open = active || state_q == StComplete || (state_q == StAbort && !after_dead_q && !silent_q);

  `CT_ASSERT(RoomForCompletion_A, (!meta_q || cpl_ready) && (!old_q || old_batch_q || late_ready))  // 1
  `CT_ASSERT(LateAfterEarly_A, !cpl_valid_o || early_valid)                                   // 1
  `CT_ASSERT(FailOnce_A, !(fail && err_q))                                                    // 2
  `CT_ASSERT(AbortHasCode_A, state_q != StAbort || silent_q || code_q != ct_pkg::ErrOk)       // 2
  `CT_ASSERT(DeadHasCode_A, !(state_q == StComplete && after_dead_q) || code_q == ct_pkg::ErrDead)  // 2
  `CT_ASSERT(CleanEnd_A, state_q != StDrain || code_q == ct_pkg::ErrOk)                       // 2
  `CT_ASSERT(SemsOnlyInJob_A, sem_clear_o == !(state_q == StRun || state_q == StDrain))       // 3
  `CT_ASSERT(FetchStates_A, !request_q || fe_q == FeDesc || fe_q == FeProg)                   // 5
  `CT_ASSERT(AskWhenQuiet_A, !(fe_q == FeHave && prog_ask) || fetch_quiet)                    // 5
  `CT_ASSERT(TakenInTurn_A, !(batch_ready_o && batch_due_i && (desc_ask || start)))
  `CT_ASSERT(BatchComesToFree_A, !(batch_valid_i && batch_first_i) || (fe_q == FeNone && !own_q && !kill_q) || reset_i)
  `CT_ASSERT(BatchBeginsWhole_A, !batch_start_o || fe_here)
  `CT_ASSERT(NoStrayBeat_A, !fetch_rvalid_i || fe_q == FeDesc || fe_q == FeProg || wait_q || kill_q || flush_o)  // 5
  `CT_ASSERT(OwnStates_A, !(state_q == StDesc || state_q == StProg) || own_q)
  `CT_ASSERT(DescState_A, state_q != StDesc || fe_q == FeDesc || fe_q == FeNone)
  `CT_ASSERT(ProgState_A, state_q != StProg || fe_q == FeHave || fe_q == FeProg)
  `CT_ASSERT(OwnReads_A, !own_q || state_q == StDesc || fe_q == FeHave || fe_q == FeProg)
  `CT_ASSERT(RunReadsOwn_A, state_q != StRun || own_q || fe_q == FeNone)
  `CT_ASSERT(NotOwnInIdle_A, !(state_q == StIdle || state_q == StAbort || state_q == StComplete) || !own_q)
  `CT_ASSERT(MoreIsThere_A, !ring_more || head_q != tail_q)
  `CT_ASSERT(NextStates_A, to_abort == (state_d == StAbort) && flush_next == (state_d == StAbort || (state_d == StComplete && after_dead_d)) &&
                           (state_q != StDesc || desc_over == (state_d != StDesc)))
  `CT_ASSERT(StateLegal_A, state_q <= StComplete)
  `CT_ASSERT(MetaStates_A, !meta_q || active || (state_q == StAbort && !silent_q && !after_dead_q))
  `CT_ASSERT(MetaKept_A, !(state_q == StDesc || state_q == StProg || state_q == StRun) || meta_q == (rows_front_q == '0))
  `CT_ASSERT(KindIsRows_A, fe_isb_q == (fe_rows_q != '0) && front_isb_q == (rows_front_q != '0))
  `CT_ASSERT(MetaOfRing_A, !meta_q || rows_front_q == '0)
  `CT_ASSERT(BatchNotInDesc_A, !(state_q == StDesc || (fe_q == FeDesc && own_q)) || (rows_front_q == '0 && !fe_batch))
  `CT_ASSERT(BatchNoGuess_A, !(fe_batch && fe_q == FeDesc) || (!guess_q && (!request_q || req_prog_q)))
  `CT_ASSERT(OwnKind_A, !own_q || fe_q == FeNone || fe_rows_q == rows_front_q)
  `CT_ASSERT(MetaOfFront_A, !meta_q || own_q || fe_q == FeNone)
  `CT_ASSERT(SilentStates_A, !silent_q || state_q == StIdle || state_q == StAbort)
  `CT_ASSERT(AfterDeadStates_A, !after_dead_q || state_q == StIdle || state_q == StAbort || state_q == StComplete)
  `CT_ASSERT(ErrorsLeave_A, !(state_q == StProg || state_q == StRun || state_q == StDrain) || !err_q)
  `CT_ASSERT(UnitErrHasCode_A, !unit_err_q || unit_code_q != ct_pkg::ErrOk)
  `CT_ASSERT(NoErrorNoCode_A, !active || err_q == (code_q != ct_pkg::ErrOk))
  `CT_ASSERT(KillStates_A, !kill_q || state_q == StIdle || state_q == StComplete)
  `CT_ASSERT(KillHasNone_A, !kill_q || fe_q == FeNone)
  `CT_ASSERT(WaitStates_A, !wait_q || fe_q != FeProg)
  `CT_ASSERT(AskedStates_A, !(request_q && fe_q == FeDesc && req_prog_q) || asked_q)
  `CT_ASSERT(ProgIsAsked_A, fe_q != FeProg || !request_q || req_prog_q)
  `CT_ASSERT(AbortAsksNothing_A, !flush_o || ((fe_q == FeNone || fe_q == FeHave || (fe_batch && fe_q == FeDesc && !asked_q)) && !request_q))
  `CT_ASSERT(GuessIsAsked_A, fe_q != FeDesc || !guess_q || asked_q)
  `CT_ASSERT(WaitAsksAgain_A, fe_q != FeDesc || !wait_q || !asked_q)
  `CT_ASSERT(DescFirst_A, !request_q || req_prog_q || (!asked_q && !guess_q))
  `CT_ASSERT(SecondBeat_A, !second_beat_q || fe_q != FeDesc || (beat_q == 3'd2 && !first_beat_q))
  `CT_ASSERT(BeatStates_A, fe_q == FeDesc || beat_q == '0)
  `CT_ASSERT(NcmdsInRange_A, ncmds_bad_q || (ncmds_q != '0 && 32'(ncmds_q) <= ct_pkg::ProgMax))
  `CT_ASSERT(SameIsGood_A, !same_q || !ncmds_bad_q)
  `CT_ASSERT(AskedIsGood_A, !(request_q && req_prog_q) || !ncmds_bad_q || wrong_guess)
  `CT_ASSERT(FetchLength_A, !fetch_valid_o || (fetch_len_o != '0 && 32'(fetch_len_o) <= 2 * ct_pkg::ProgMax))
  // Jobs that have started, in both halves of the completions.
  `CT_ASSERT(EarlyCount_A, 6'(early_count) == 6'(cpl_count_o) + 6'(old_q && !old_batch_q) + 6'(front_open && !meta_q && rows_front_q == '0))

  `CT_ASSUME(ErrorsHaveCodes_M, (!err_i[0] || err_code_i[7:0] != ct_pkg::ErrOk) && (!err_i[1] || err_code_i[15:8] != ct_pkg::ErrOk) &&
                                (!err_i[2] || err_code_i[23:16] != ct_pkg::ErrOk))

`ifdef FORMAL
  `include "ct_job_formal.svh"
`endif

  `CT_COVER(Held_C, status_o == StatusHeld && !cpl_ready)
  `CT_COVER(FailInDrain_C, state_q == StDrain && fail)
  `CT_COVER(Dead_C, state_q == StComplete && after_dead_q)
  `CT_COVER(Overlap_C, over_start)
  `CT_COVER(OldError_C, old_q && old_err_i)
  `CT_COVER(OldDead_C, old_die)
  `CT_COVER(GuessRight_C, fe_q == FeDesc && first_beat_q && guess_q && same_q)
  `CT_COVER(GuessWrong_C, drop_q)
  `CT_COVER(LostThenAsked_C, prog_ask && lost_q)
  `CT_COVER(DoomedBeforeStart_C, state_q == StProg && doomed_q)

endmodule

`default_nettype wire
