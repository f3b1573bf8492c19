/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver and monitors around one ct_vpu: command queues, semaphores, SPM and ACC of two contexts.
 *
 * A test gives commands to vpu_emit() in program order; that runs the model at once. vpu_cycle()
 * moves the hardware: dispatch in program order, six queues, counting semaphores, an SPM with
 * random stalls. Every word written to the SPM is compared, in order, with what the model wrote.
 */
#ifndef VPU_BENCH_H
#define VPU_BENCH_H

#include "ct_tb.h"
#include "vpu_model.h"

enum { kCtx = 2, kSides = 3, kVl = 0, kVa = 1, kVs = 2, kSems = 16 };
enum { kMaxProgram = 1024, kMaxWrites = 32768, kMaxStarts = 4096, kQueue = 3 };

/* The ports of one side. */
typedef struct {
  uint8_t *cmd_valid_i, *cmd_ready_o, *flush_i, *idle_o;
  uint32_t *cmd_i, *sem_nz_i, *sem_dec_o, *sem_inc_o;
} vpu_side_ports;

/* One view of the models, which are types of their own. */
typedef struct {
  CT_TB_ANY_CALLS;
  unsigned lanes;
  uint8_t *freeze_i, *err_o;
  uint16_t *qos_i;
  uint64_t *spm_base_i, *spm_size_i, *err_addr_o;
  uint16_t *err_code_o;
  vpu_side_ports side[kSides];
  uint8_t *spm_rd_valid_o, *spm_rd_ready_i, *spm_rd_vld_i, *spm_rd_exp_i, *spm_rd_perr_i;
  uint8_t *spm_wr_valid_o, *spm_wr_ready_i, *spm_wr_other_i, *spm_wr_yield_o, *spm_wr_exp_o;
  uint8_t *spm_rd_ctx_o;
  uint32_t *spm_rd_addr_o, *spm_rd_data_i, *spm_wr_addr_o, *spm_wr_data_o;
  uint8_t *acc_rd_valid_o, *acc_rd_ctx_o, *acc_rd_tile_o, *acc_rd_row_o, *acc_rd_beat_o;
  uint32_t *acc_rd_data_i;
  uint32_t *probe_o;
  uint8_t *ev_vl_busy_o, *ev_va_busy_o, *ev_vs_busy_o, *ev_wait_arb_o, *ev_nan_o;
} vpu_ports;

typedef struct {
  struct ct_cmd cmd[kQueue];
  unsigned count;
  unsigned inside; /* commands taken by the unit since the last flush */
  unsigned owed;   /* signals of those that have not come */
  bool paid;       /* semaphores taken, not started yet */
  uint64_t ready;  /* cycle since which the command in front is ready, or the next one */
} vpu_queue;

typedef struct {
  vpu_state model;
  vpu_word spm[kWindow]; /* what is in the hardware's SPM */
  bool bad_parity[kWindow];
  struct ct_cmd program[kMaxProgram];
  unsigned emitted, dispatched;
  vpu_queue queue[kSides];
  unsigned sem[kSems];
  unsigned gift[kSems]; /* still to be given by the bench, at random times */
  vpu_write writes[kMaxWrites];
  unsigned expected, seen;
  uint64_t nan_events;
  unsigned quiet;   /* cycles since an error or the start of a flush: soon no signal may come */
  uint8_t err_code; /* of the first error; 0: none */
  uint32_t err_addr;
} vpu_ctx;

/* The start of an operation, seen by the probe, or by the busy bits. */
typedef struct {
  uint64_t cycle, waited; /* cycles that it was ready before */
  unsigned ctx;
} vpu_start;

typedef struct {
  vpu_ports p;
  vpu_ctx ctx[kCtx];
  uint32_t base[kCtx], size[kCtx];
  ct_rng rng;
  ct_stall rd_stall, wr_stall, dispatch_stall[kCtx];
  unsigned policy, floor;
  unsigned flush; /* bit c */
  uint64_t cycle;
  /* reads under way, by age */
  struct {
    bool valid, perr;
    vpu_word word;
  } read[2];
  struct {
    bool valid;
    unsigned ctx, tile, row, beat;
  } acc[2];
  vpu_start starts[kSides][kMaxStarts]; /* operations that waited for a semaphore */
  unsigned started[kSides];
  uint64_t wait_arb[kCtx];
} vpu_bench;

/* variant: 0 16 lanes, 1 4 lanes with one function, 2 4 lanes with four. Free it with vpu_close().
 */
vpu_bench *vpu_open(unsigned variant, uint64_t stream);
void vpu_close(vpu_bench *b);

/* Percent of the cycles in which the SPM does not take a read, a write; dispatch pauses. */
void vpu_stalls(vpu_bench *b, uint64_t stream, unsigned read, unsigned write, unsigned dispatch);

/* Puts a word into the SPM of hardware and model. */
void vpu_poke(vpu_bench *b, unsigned c, uint32_t at, const vpu_word *word);

/* Appends a command; returns its index. The model has executed it when this returns. */
unsigned vpu_emit(vpu_bench *b, unsigned c, const struct ct_cmd *cmd);
/* The same without the model: for commands that end in an error. */
unsigned vpu_emit_only(vpu_bench *b, unsigned c, const struct ct_cmd *cmd);

void vpu_cycle(vpu_bench *b);
/* True when context c has nothing left to dispatch, queued or under way. */
bool vpu_finished(const vpu_bench *b, unsigned c);
/* Cycles until both contexts are finished; fails the test after `limit`. Compares what is left. */
void vpu_run(vpu_bench *b, uint64_t limit);
/* What must hold of a finished context: SPM, count of writes and NaN groups, gifts taken. */
void vpu_compare(vpu_bench *b, unsigned c);
/* Aborts context c as ct_job does; afterwards it is empty, and the model's SPM is the hardware's.
 */
void vpu_abort(vpu_bench *b, unsigned c, uint64_t limit);

#endif
