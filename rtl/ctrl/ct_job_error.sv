// SPDX-License-Identifier: Apache-2.0
//
// The errors of the job in front of ct_job: what fails it, with which code, and the timer behind the watchdog and DRAIN_LIMIT.
//
// First      fail_o (one cycle) is the job's first error; it is code_o and addr_o from the next cycle on, and only DEAD replaces it (gives_up_i).
// Order      of errors of one cycle: DMA before MXU, VPU, cancel, semaphores, program, descriptor, chain, watchdog, reset, dead port, a cancel before its start.
// A cycle    later: the errors of units and a cancel count from the cycle after they have come. DRAIN outlasts the first (unit_err_o); the second is
//            dropped if another job is in front then (ct_job_ring).
// Timer      counts from start_i, and from the first error on anew; while the core is frozen (freeze_i) it rests, but not after an error. Both limits
//            are compared in the cycle before, with one less where it counts on. In DESC the watchdog uses the context's WATCHDOG, as the
//            descriptor's own limit is not known yet.

`default_nettype none
`include "ct_assert.svh"

module ct_job_error (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic [31:0]     watchdog_i,
  input  logic [31:0]     drain_limit_i,
  input  logic            freeze_i,
  input  logic            reset_i,
  input  logic            cancel_i,       // a cancel of the job in front came in the cycle before

  // The main machine: its state, what it does in this cycle.
  input  logic [2:0]      state_i,
  input  logic            active_i,       // a job is in front that can still fail
  input  logic            start_i,
  input  logic            to_abort_i,     // ABORT comes next, or stays
  input  logic            gives_up_i,     // the port is dead: COMPLETE comes next
  input  logic            old_die_i,      // the port is dead: the job in the last stage ends

  // The front end, see ct_job_front.
  input  logic [31:0]     next_limit_i,
  input  logic            bad_desc_i,
  input  logic            ncmds_bad_i,
  input  logic            skip_i,
  input  logic            doomed_i,

  input  logic            sem_err_i,
  input  logic [3:0]      sem_err_num_i,
  input  logic            prog_err_i,
  input  logic [9:0]      prog_idx_i,
  input  logic [2:0]      err_i,          // DMA, MXU, VPU
  input  logic [3*8-1:0]  err_code_i,
  input  logic [3*32-1:0] err_addr_i,

  output logic            fail_o,
  output logic [7:0]      fail_code_o,
  output logic            err_o,          // the job in front has failed
  output logic            unit_err_o,     // a unit has reported an error in the cycle before
  output logic [7:0]      code_o,
  output logic [31:0]     addr_o,
  output logic            drain_over_o    // DRAIN_LIMIT has passed
);

  `include "ct_job_states.svh"

  logic        err_q;
  logic        unit_err_q;             // a unit has reported one in the cycle before, with
  logic [7:0]  unit_code_q;
  logic [31:0] unit_addr_q;
  logic [31:0] fail_addr;
  logic [7:0]  code_q;
  logic [31:0] addr_q;
  logic [31:0] limit_q;                // the watchdog's limit less one
  logic        limited_q;
  logic [31:0] timer_d, timer_q;       // cycles since the start; from the first error on: since that
  logic        begin_anew;             // the timer, from the next cycle on,
  logic        anew_q;                 // in which it does not show it yet
  logic        wd_hit, wd_hit_q, drain_over_q;

  // ---- The timer --------------------------------------------------------------------------------------------------------------

  assign wd_hit       = wd_hit_q && !anew_q;
  assign drain_over_o = drain_over_q && !anew_q;
  assign begin_anew   = fail_o || start_i || (to_abort_i && (active_i || state_i == StIdle));

  always_comb begin
    if (anew_q) timer_d = 32'(!(freeze_i && !err_q));
    else        timer_d = (timer_q == '1 || (freeze_i && !err_q)) ? timer_q : timer_q + 32'd1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      timer_q      <= '0;
      anew_q       <= 1'b0;
      wd_hit_q     <= 1'b0;
      drain_over_q <= 1'b0;
    end else begin
      anew_q       <= begin_anew;
      if (state_i != StIdle || anew_q) timer_q <= timer_d;
      wd_hit_q     <= !anew_q && !freeze_i && limited_q && (timer_q >= limit_q);
      drain_over_q <= !anew_q && (timer_q >= drain_limit_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_i == StDesc || state_i == StProg) begin
      limit_q   <= ((next_limit_i == '0) ? watchdog_i : next_limit_i) - 32'd1;
      limited_q <= (next_limit_i != '0) || (watchdog_i != '0);
    end
  end

  // ---- The first error --------------------------------------------------------------------------------------------------------

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      unit_err_q <= 1'b0;
      err_q      <= 1'b0;
    end else begin
      unit_err_q <= (err_i != '0);
      err_q      <= (err_q || fail_o) && !start_i;
    end
  end

  always_ff @(posedge clk_i) begin
    unit_code_q <= err_i[0] ? err_code_i[7:0]  : err_i[1] ? err_code_i[15:8]  : err_code_i[23:16];
    unit_addr_q <= err_i[0] ? err_addr_i[31:0] : err_i[1] ? err_addr_i[63:32] : err_addr_i[95:64];
  end

  always_comb begin
    fail_o      = active_i && !err_q;
    fail_code_o = ct_pkg::ErrOk;
    fail_addr   = '0;
    if (unit_err_q) begin
      fail_code_o = unit_code_q;
      fail_addr   = unit_addr_q;
    end else if (cancel_i) begin
      fail_code_o = ct_pkg::ErrCancelled;
    end else if (sem_err_i && state_i != StProg) begin
      fail_code_o = ct_pkg::ErrSem;
      fail_addr   = 32'(sem_err_num_i);
    end else if (prog_err_i) begin
      fail_code_o = ct_pkg::ErrIllegal;
      fail_addr   = 32'(prog_idx_i);
    end else if (state_i == StProg && bad_desc_i) begin
      fail_code_o = ct_pkg::ErrDescriptor;
      fail_addr   = ncmds_bad_i ? ct_pkg::DescNcmds : ct_pkg::DescFlags;
    end else if (skip_i) begin
      fail_code_o = ct_pkg::ErrSkipped;
    end else if (wd_hit) begin
      fail_code_o = ct_pkg::ErrWatchdog;
      fail_addr   = (state_i == StDesc || state_i == StProg) ? '0 : 32'(prog_idx_i);
    end else if (reset_i) begin
      fail_code_o = ct_pkg::ErrReset;
    end else if (old_die_i) begin
      fail_code_o = ct_pkg::ErrDead;
    end else if (doomed_i) begin
      fail_code_o = ct_pkg::ErrCancelled;
    end else begin
      fail_o = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      code_q <= ct_pkg::ErrOk;
      addr_q <= '0;
    end else if (fail_o) begin
      code_q <= fail_code_o;
      addr_q <= fail_addr;
    end else if (gives_up_i) begin
      code_q <= ct_pkg::ErrDead;
      addr_q <= '0;
    end
  end

  assign err_o      = err_q;
  assign unit_err_o = unit_err_q;
  assign code_o     = code_q;
  assign addr_o     = addr_q;

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(FailOnce_A, !(fail_o && err_q))  // ct_job 2
  `CT_ASSERT(ErrorsLeave_A, !(state_i == StProg || state_i == StRun || state_i == StDrain) || !err_q)
  `CT_ASSERT(UnitErrHasCode_A, !unit_err_q || unit_code_q != ct_pkg::ErrOk)
  `CT_ASSERT(NoErrorNoCode_A, !active_i || err_q == (code_q != ct_pkg::ErrOk))

  `CT_ASSUME(ErrorsHaveCodes_M, (!err_i[0] || err_code_i[7:0] != ct_pkg::ErrOk) && (!err_i[1] || err_code_i[15:8] != ct_pkg::ErrOk) &&
                                (!err_i[2] || err_code_i[23:16] != ct_pkg::ErrOk))

  `CT_COVER(FailInDrain_C, state_i == StDrain && fail_o)

endmodule

`default_nettype wire
