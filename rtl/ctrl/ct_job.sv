// SPDX-License-Identifier: Apache-2.0
//
// The jobs of one context, one after the other: takes descriptors from the ring, loads programs, ends jobs, reports them.
//
//            want, gate open              8 beats            first command
//     IDLE ------------------> DESC ------------------> PROG --------------> RUN
//      ^ ^                      |                        |                   |  END executed
//      | |                      | error                  | error      error  v
//      | |                      v                        v        +------- DRAIN
//      | |                    ABORT <---------------------+-------+          |  queues empty, units idle
//      | |                     |  ^                                          |
//      | |        idle, or     |  | the port was dead: wait for idle         |
//      | |        DRAIN_LIMIT  v  |                                          |
//      | +------------------- COMPLETE <-------------------------------------+
//      +--- idle (from ABORT after a dead port: without a completion)
//
//  IDLE      the ring is empty, or the job is held: no room for its completion, or policy JOB and the other context works
//            (STATUS shows 7, held, while a descriptor waits here).
//  DESC      reads the descriptor (8 beats). A cancel, a reset or the watchdog takes effect when it has arrived, so that the
//            completion has its tag; if it does not arrive within DRAIN_LIMIT cycles, without. A refused read ends it at once.
//  PROG      has asked for the program; RUN begins with its first command, while the others still arrive.
//  DRAIN     after END: waits until the rest of the program has arrived, the queues are empty and the units idle, in
//            SettleCycles cycles in a row (an error pulse follows its cause by a cycle or two).
//  ABORT     flush_o is high: queues and units drop what is left. At least SettleCycles cycles. After a dead port it lasts until the
//            port has answered after all, or until a soft reset gives up what it owes (abandon_o).
//  COMPLETE  one cycle: pushes the completion.
//
// Invariants (asserted below)
//  1. A job starts only with room for its completion, so COMPLETE never waits.
//  2. The first error of a job is its code; only DEAD replaces it.
//  3. Semaphores are zero outside RUN and DRAIN.
//  4. HEAD moves when the descriptor has been read (its slot may then be written again), and by a soft reset, to TAIL as
//     it was then (in DESC only when the descriptor has been read).
//  5. A fetch is asked for only in DESC and PROG; no context ever has two.
//  6. The front of the doorbell times, if valid, belongs to descriptors that have not been read yet, or is dropped in this cycle;
//     it is dropped in the cycle after the last of them has been read.
//
// Times      arrive: the cycle of the TAIL write that made the descriptor visible. Up to 64 such writes are remembered; one that
//            found all 64 in use is forgotten, and its descriptors show the next remembered write's time, or the last's.
//            start: the cycle in which the read of the descriptor is first offered. end: the cycle in which the completion is
//            first visible. The watchdog counts from start and rests while the core is frozen.
// Errors     of one cycle: DMA before MXU, VPU, semaphores, fetch, watchdog, reset, cancel. In DESC the watchdog uses the
//            context's WATCHDOG, as the descriptor's own limit is not known yet.
// Completion cpl_o = {rows, end, start, arrive, version, addr, code, tag}, see the localparams; a FIFO of 16.

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
  input  logic            hold_i,        // no job may start
  input  logic            freeze_i,      // stops the watchdog
  input  logic [63:0]     cycle_i,
  input  logic [63:0]     cycle_next_i,
  output logic [15:0]     tail_o,
  output logic [15:0]     head_o,
  output logic [2:0]      status_o,
  output logic            dead_o,        // the memory port owed answers past DRAIN_LIMIT (until the global reset)
  output logic            quiet_o,       // nothing runs and nothing can be waited for

  // The gate of policy JOB: want_o asks, gate_i lets start; start_o and finish_o are pulses; busy_o: a job runs.
  output logic            want_o,
  input  logic            gate_i,
  output logic            start_o,
  output logic            finish_o,
  output logic            busy_o,

  // Completions, oldest first.
  output logic            cpl_valid_o,
  output logic [4:0]      cpl_count_o,
  output logic [CplW-1:0] cpl_o,
  input  logic            cpl_pop_i,

  // DMA fetch client. The answer is in order and never refused.
  output logic            fetch_valid_o,
  input  logic            fetch_ready_i,
  output logic [31:0]     fetch_addr_o,
  output logic [10:0]     fetch_len_o,
  input  logic            fetch_rvalid_i,
  input  logic [127:0]    fetch_rdata_i,

  // ct_fetch.
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
  input  logic [2:0]      err_i,         // DMA, MXU, VPU
  input  logic [3*8-1:0]  err_code_i,
  input  logic [3*32-1:0] err_addr_i,
  input  logic            row_i          // the MXU took a row of this context
);

  localparam int unsigned SettleCycles = 4;
  localparam int unsigned Doorbells = 64;

  typedef enum logic [2:0] {
    StIdle = 3'd0, StDesc = 3'd1, StProg = 3'd2, StRun = 3'd3, StDrain = 3'd4, StAbort = 3'd5, StComplete = 3'd6
  } state_e;
  localparam logic [2:0] StatusHeld = 3'd7;

  state_e      state_d, state_q;
  logic        request_d, request_q;   // the fetch is offered
  logic [2:0]  beat_q;                 // of the descriptor
  logic        err_d, err_q;           // the job has failed
  logic        reset_seen_q;           // a soft reset came while in DESC
  logic        after_dead_d, after_dead_q;
  logic        dead_q;
  logic [31:0] timer_d, timer_q;       // cycles since the start; from the first error on: since that
  logic [2:0]  settle_d, settle_q;
  logic [15:0] head_d, head_q, tail_q;
  logic [15:0] reset_head_q;           // where that reset sets HEAD, once the descriptor has been read

  logic [31:0] tag_q, version_q, prog_q, limit_q, rows_q;
  logic [9:0]  ncmds_q;
  logic        ncmds_bad_q;
  logic [7:0]  code_q;
  logic [31:0] addr_q;
  logic [31:0] fetch_addr_q;
  logic [63:0] start_q, arrive_q;

  logic        active;                 // a job that can still fail
  logic        start, desc_beat, desc_last, desc_leave, flags_bad;
  logic        fail;                   // the first error, now
  logic        unit_err;
  logic [7:0]  fail_code;
  logic [31:0] fail_addr;
  logic        wd_hit, drain_over, settled;
  logic        cpl_ready;

  // ---- Starting -------------------------------------------------------------------------------------------------------------

  assign active     = (state_q != StIdle) && (state_q != StAbort) && (state_q != StComplete);
  assign want_o     = (state_q == StIdle) && (head_q != tail_q) && cpl_ready && !hold_i;
  assign start      = want_o && gate_i && !reset_i;
  assign start_o    = start;
  assign finish_o   = (state_q == StComplete);
  assign busy_o     = (state_q != StIdle) && !after_dead_q;
  assign quiet_o    = (state_q == StIdle) || after_dead_q;

  assign desc_beat  = (state_q == StDesc) && fetch_rvalid_i;
  assign desc_last  = desc_beat && (beat_q == 3'd7);
  assign desc_leave = (state_q == StDesc) && (state_d != StDesc);

  always_ff @(posedge clk_i) begin
    if (start) begin
      tag_q        <= '0;
      version_q    <= '0;
      start_q      <= cycle_next_i;
      // A slot is 8 units of 16 bytes.
      fetch_addr_q <= ring_base_i + {13'd0, head_q & ~(16'hffff << ring_log2_i), 3'b000};
    end
    if (desc_beat && beat_q == 3'd0) begin
      tag_q       <= fetch_rdata_i[32*ct_pkg::DescTag +: 32];
      version_q   <= fetch_rdata_i[32*ct_pkg::DescVersion +: 32];
      prog_q      <= fetch_rdata_i[32*ct_pkg::DescProg +: 32];
      ncmds_q     <= fetch_rdata_i[32*ct_pkg::DescNcmds +: 10];
      ncmds_bad_q <= (fetch_rdata_i[32*ct_pkg::DescNcmds +: 32] == '0) ||
                     (fetch_rdata_i[32*ct_pkg::DescNcmds +: 32] > ct_pkg::ProgMax);
    end
    if (start) limit_q <= watchdog_i;
    if (desc_beat && beat_q == 3'd1 && fetch_rdata_i[32*(ct_pkg::DescWatchdog-4) +: 32] != '0) begin
      limit_q <= fetch_rdata_i[32*(ct_pkg::DescWatchdog-4) +: 32];
    end
    if (desc_last) fetch_addr_q <= prog_q;
  end

  assign flags_bad = desc_beat && (beat_q == 3'd1) && (fetch_rdata_i[32*(ct_pkg::DescFlags-4) +: 32] != '0);

  // The first two beats bring no arguments: they clear r25..r31.
  assign arg_we_o    = desc_beat;
  assign arg_group_o = beat_q - 3'd2;
  assign arg_data_o  = (beat_q < 3'd2) ? '0 : fetch_rdata_i;

  assign prog_start_o = (state_q == StDesc) && (state_d == StProg);
  assign prog_ncmds_o = ncmds_q;
  assign prog_stop_o  = (state_q == StAbort);
  assign prog_valid_o = fetch_rvalid_i && (state_q == StProg || state_q == StRun || state_q == StDrain);

  assign fetch_valid_o = request_q;
  assign fetch_addr_o  = fetch_addr_q;
  assign fetch_len_o   = (state_q == StDesc) ? 11'd8 : {ncmds_q, 1'b0};

  // ---- Errors -----------------------------------------------------------------------------------------------------------------

  assign wd_hit     = (limit_q != '0) && (timer_q >= limit_q);
  assign drain_over = (timer_q >= drain_limit_i);
  assign unit_err   = (err_i != '0);

  always_comb begin
    fail      = active && !err_q;
    fail_code = ct_pkg::ErrOk;
    fail_addr = '0;
    if (err_i[0]) begin
      fail_code = err_code_i[7:0];
      fail_addr = err_addr_i[31:0];
    end else if (err_i[1]) begin
      fail_code = err_code_i[15:8];
      fail_addr = err_addr_i[63:32];
    end else if (err_i[2]) begin
      fail_code = err_code_i[23:16];
      fail_addr = err_addr_i[95:64];
    end else if (sem_err_i) begin
      fail_code = ct_pkg::ErrSem;
      fail_addr = 32'(sem_err_num_i);
    end else if (prog_err_i) begin
      fail_code = ct_pkg::ErrIllegal;
      fail_addr = 32'(prog_idx_i);
    end else if (desc_beat && beat_q == 3'd1 && ncmds_bad_q) begin
      fail_code = ct_pkg::ErrDescriptor;
      fail_addr = ct_pkg::DescNcmds;
    end else if (flags_bad) begin
      fail_code = ct_pkg::ErrDescriptor;
      fail_addr = ct_pkg::DescFlags;
    end else if (wd_hit) begin
      fail_code = ct_pkg::ErrWatchdog;
      fail_addr = (state_q == StDesc) ? '0 : 32'(prog_idx_i);
    end else if (reset_i) begin
      fail_code = ct_pkg::ErrReset;
    end else if (cancel_i) begin
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
    end else if (state_q == StAbort && state_d == StComplete && !settled) begin
      code_q <= ct_pkg::ErrDead;
      addr_q <= '0;
    end
  end

  // ---- The state machine ------------------------------------------------------------------------------------------------------

  assign settled = (settle_q == 3'(SettleCycles - 1)) && queues_empty_i && units_idle_i &&
                   (state_q == StAbort || prog_loaded_i);

  always_comb begin
    state_d      = state_q;
    request_d    = request_q && !fetch_ready_i;
    err_d        = err_q || fail;
    timer_d      = (timer_q == '1 || (freeze_i && !err_q)) ? timer_q : timer_q + 32'd1;
    after_dead_d = after_dead_q;
    settle_d     = '0;
    if (fail) timer_d = '0;

    unique case (state_q)
      StIdle: begin
        after_dead_d = 1'b0;
        if (start) begin
          state_d   = StDesc;
          request_d = 1'b1;
          err_d     = 1'b0;
          timer_d   = '0;
        end
      end
      StDesc: begin
        if (unit_err || (err_q && drain_over)) state_d = StAbort;
        else if (desc_last)                    state_d = err_d ? StAbort : StProg;
        if (state_d == StProg)                 request_d = 1'b1;
      end
      StProg: begin
        if (prog_first_i) state_d = StRun;
        if (fail)         state_d = StAbort;
      end
      StRun: begin
        if (prog_end_i) state_d = StDrain;
        if (fail)       state_d = StAbort;
      end
      StDrain: begin
        if (queues_empty_i && units_idle_i && prog_loaded_i) settle_d = settle_q + 3'd1;
        if (settled) state_d = StComplete;
        if (fail)    state_d = StAbort;
      end
      StAbort: begin
        if (queues_empty_i && units_idle_i) settle_d = settle_q + 3'd1;
        if (settled) begin
          state_d = after_dead_q ? StIdle : StComplete;
        end else if (drain_over && !after_dead_q) begin
          state_d      = StComplete;
          after_dead_d = 1'b1;
        end
      end
      StComplete: state_d = after_dead_q ? StAbort : StIdle;
      default:    state_d = StIdle;
    endcase
    if (state_d == StAbort) request_d = 1'b0;
    if (state_d == StAbort && active) timer_d = '0;
    if (state_d != state_q) settle_d = '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      request_q    <= 1'b0;
      err_q        <= 1'b0;
      reset_seen_q <= 1'b0;
      after_dead_q <= 1'b0;
      dead_q       <= 1'b0;
      beat_q       <= '0;
      timer_q      <= '0;
      settle_q     <= '0;
    end else begin
      state_q      <= state_d;
      request_q    <= request_d;
      err_q        <= err_d;
      reset_seen_q <= (state_q == StDesc) && (reset_seen_q || reset_i);
      after_dead_q <= after_dead_d;
      dead_q       <= dead_q || after_dead_d;
      if (desc_beat)  beat_q <= beat_q + 3'd1;
      if (desc_leave) beat_q <= '0;
      if (state_q != StIdle || start) timer_q <= timer_d;
      settle_q     <= settle_d;
    end
  end

  always_comb begin
    head_d = head_q;
    if (reset_i && (state_q != StDesc || desc_leave)) head_d = tail_q;
    else if (desc_leave) head_d = reset_seen_q ? reset_head_q : head_q + 16'd1;
  end

  always_ff @(posedge clk_i) begin
    if (reset_i) reset_head_q <= tail_q;
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
  assign status_o    = (state_q == StIdle && head_q != tail_q) ? StatusHeld : state_q;
  assign dead_o      = dead_q;
  assign flush_o     = (state_q == StAbort) || (state_q == StComplete && after_dead_q);
  assign abandon_o   = (state_q == StAbort) && after_dead_q && reset_i;
  assign sem_clear_o = (state_q != StRun) && (state_q != StDrain);

  // ---- Doorbell times: TAIL as written and the cycle, in a ring read ahead by one ---------------------------------------------

  localparam int unsigned BellW = $clog2(Doorbells);

  (* no_rw_check *)                     // never read where it is written, see BellsApart_A
  logic [79:0]      bells [0:Doorbells-1];
  logic [79:0]      front_q;             // the oldest, if front_vld_q
  logic             front_vld_q;
  logic [BellW-1:0] bell_w_q, bell_r_d, bell_r_q;
  logic [BellW:0]   bell_count_q, bell_left;
  logic [63:0]      last_bell_q;
  logic [15:0]      ahead;               // descriptors from the next to be read to the front's last
  logic             bell_push, bell_drop;

  assign ahead     = front_q[79:64] - head_q;
  assign bell_push = tail_we_i && (tail_i != tail_q) && (bell_count_q != (BellW + 1)'(Doorbells));
  assign bell_drop = front_vld_q && (ahead == '0 || ahead[15]);
  assign bell_r_d  = bell_r_q + BellW'(bell_drop);
  assign bell_left = bell_count_q - (BellW + 1)'(bell_drop);

  always_ff @(posedge clk_i) begin
    if (bell_push) bells[bell_w_q] <= {tail_i, cycle_i};
    front_q <= bells[bell_r_d];
    if (tail_we_i) last_bell_q <= cycle_i;
    if (state_q == StDesc && !reset_seen_q) arrive_q <= (front_vld_q && !bell_drop) ? front_q[63:0] : last_bell_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bell_w_q     <= '0;
      bell_r_q     <= '0;
      bell_count_q <= '0;
      front_vld_q  <= 1'b0;
    end else if (reset_i) begin
      bell_r_q     <= bell_w_q;
      bell_count_q <= '0;
      front_vld_q  <= 1'b0;
    end else begin
      bell_w_q     <= bell_w_q + BellW'(bell_push);
      bell_r_q     <= bell_r_d;
      bell_count_q <= bell_left + (BellW + 1)'(bell_push);
      front_vld_q  <= (bell_left != '0);
    end
  end

  // ---- Completions ------------------------------------------------------------------------------------------------------------

  logic [CplW-1:0] cpl;

  assign cpl[ct_pkg::CplTagLsb +: 32]     = tag_q;
  assign cpl[ct_pkg::CplCodeLsb +: 8]     = code_q;
  assign cpl[ct_pkg::CplAddrLsb +: 32]    = addr_q;
  assign cpl[ct_pkg::CplVersionLsb +: 32] = version_q;
  assign cpl[ct_pkg::CplArriveLsb +: 64]  = arrive_q;
  assign cpl[ct_pkg::CplStartLsb +: 64]   = start_q;
  assign cpl[ct_pkg::CplEndLsb +: 64]     = cycle_next_i;
  assign cpl[ct_pkg::CplRowsLsb +: 32]    = rows_q;

  always_ff @(posedge clk_i) begin
    if (start)      rows_q <= '0;
    else if (row_i) rows_q <= rows_q + 32'd1;
  end

  ct_fifo #(.Width(CplW), .Depth(ct_pkg::CplDepth)) u_cpl (
    .clk_i, .rst_ni,
    .valid_i (finish_o),
    .ready_o (cpl_ready),
    .data_i  (cpl),
    .valid_o (cpl_valid_o),
    .ready_i (cpl_pop_i),
    .data_o  (cpl_o),
    .count_o (cpl_count_o)
  );

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(RoomForCompletion_A, !busy_o || cpl_ready)                                       // 1
  `CT_ASSERT(FailOnce_A, !(fail && err_q))                                                    // 2
  `CT_ASSERT(AbortHasCode_A, state_q != StAbort || code_q != ct_pkg::ErrOk)                   // 2
  `CT_ASSERT(CleanEnd_A, state_q != StDrain || code_q == ct_pkg::ErrOk)                       // 2
  `CT_ASSERT(SemsOnlyInJob_A, sem_clear_o == !(state_q == StRun || state_q == StDrain))       // 3
  `CT_ASSERT(FetchStates_A, !request_q || state_q == StDesc || state_q == StProg)            // 5
  `CT_ASSERT(NoStrayBeat_A, !fetch_rvalid_i || state_q == StDesc || prog_valid_o || flush_o)  // 5
  `CT_ASSERT(SettleRange_A, settle_q < 3'(SettleCycles))
  `CT_ASSERT(BellCount_A, bell_count_q <= (BellW + 1)'(Doorbells))
  `CT_ASSERT(BellPointers_A, BellW'(bell_w_q - bell_r_q) == bell_count_q[BellW-1:0])
  `CT_ASSERT(BellsApart_A, !bell_push || bell_left == '0 || bell_r_d != bell_w_q)
  `CT_ASSERT(FrontHeld_A, !front_vld_q || bell_count_q != '0)                                 // 6

  `CT_COVER(Held_C, status_o == StatusHeld && !cpl_ready)
  `CT_COVER(FailInDrain_C, state_q == StDrain && fail)
  `CT_COVER(Dead_C, state_q == StComplete && after_dead_q)

endmodule

`default_nettype wire
