/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver and monitors of ct_mxu: command queues, semaphores, an SPM with random stalls, a reader of
 * ACC. Every cycle is checked against mxu_model: order and permission of each SPM read, time of
 * each signal, each final tile while the array goes on.
 */
#ifndef MXU_TB_H
#define MXU_TB_H

#include "ct_tb.h"
#include "mxu_model.h"

enum { kVariants = 6, kWidths = 3 }; /* the first three: each width of the array */
extern const char *const mxu_variant_names[kVariants];

/* One view of the models, which are types of their own. */
typedef struct {
  CT_TB_ANY_CALLS;
  unsigned cols, lanes;
  bool walks;
  uint8_t *cmd_valid_i, *cmd_ready_o, *flush_i, *idle_o, *err_o, *freeze_i;
  uint16_t *qos_i;
  uint32_t *cmd_i, *sem_nz_i, *sem_dec_o, *sem_inc_o;
  uint16_t *err_code_o;
  uint64_t *err_addr_o, *spm_base_i, *spm_size_i, *spm_rd_addr_o;
  uint8_t *spm_rd_valid_o, *spm_rd_ready_i, *spm_rd_vld_i, *spm_rd_perr_i;
  uint32_t *spm_rd_data_i, *spm_rd_exp_i;
  uint8_t *acc_rd_valid_i, *acc_rd_ctx_i, *acc_rd_tile_i, *acc_rd_row_i, *acc_rd_beat_i;
  uint32_t *acc_rd_data_o;
  uint8_t *ev_rows_o, *ev_busy_o, *ev_wait_arb_o, *ev_wait_b_o, *ev_wait_a_o, *ev_wait_sem_o;
} mxu_pins;

enum { kMaxCmds = 256 };

/* How a program of a context uses its semaphores. */
typedef enum {
  kFree,      /* whatever is waited for is given at random times; ACC is compared at the end */
  kHandshake, /* commands use Wait2 = 6 + i % 2 and Sig1; each final tile is read at once, then its
                 command's Wait2 given again */
  kShared, /* as kFree, but Sig0 and Sig1, or Wait0 and Wait2, may name one semaphore: only totals
              are compared */
} mxu_mode;

typedef struct {
  uint32_t base, size;
  mxu_mode mode;
  mxu_expect *expect;
  struct ct_cmd cmds[kMaxCmds];
  unsigned num_cmds, next_cmd;
  unsigned cmd_tiles[kMaxCmds];    /* output tiles of the command */
  unsigned cum[kMaxSteps][16];     /* counts taken by k steps up to and including this one */
  unsigned sem[16], owed[16];      /* semaphores; what the driver still has to give */
  unsigned taken[16], given[16];   /* by the unit */
  unsigned granted[2], arrived[2]; /* words of A and of B */
  unsigned sig0_step[16];          /* k steps before this one have been signalled */
  unsigned finals_seen, finals_read;
  unsigned rows, busy, wait_arb, wait_b, wait_a, wait_sem;
  unsigned wait_run, max_wait_run; /* consecutive cycles of wait_arb */
  unsigned op, op_row;             /* operation and row that comes next */
  uint64_t first_row, last_row;    /* cycles */
  bool err;
  uint8_t err_code;
  uint32_t err_addr;
  bool lost; /* flushed or failed: what is left is not compared */
} mxu_ctx;

typedef struct {
  unsigned ctx, tile, row, beat;
  const mxu_final *want;
  bool from_signal; /* counts as finals_read of the context when done */
} mxu_job;

typedef struct {
  bool valid;
  unsigned ctx, row, beat;
  const mxu_final *want;
} mxu_acc_beat;

typedef struct {
  bool valid;
  unsigned ctx;
  uint32_t addr;
} mxu_spm_beat;

typedef struct {
  mxu_pins p;
  mxu_spm *spm;
  mxu_ctx c[2];
  uint64_t cycle;
  ct_rng rng;
  ct_stall spm_stall[3], cmd_stall[2], acc_stall;
  unsigned give_percent;
  unsigned policy, floor;
  mxu_spm_beat spm_pipe[3][2];
  mxu_job jobs[64];
  unsigned first_job, num_jobs;
  mxu_acc_beat acc_pipe[2];
} mxu_tb;

/* stall: percent of the cycles in which SPM ports, queues and the reader hold still. */
mxu_tb *mxu_tb_open(unsigned variant, uint64_t stream, unsigned stall);
void mxu_tb_close(mxu_tb *tb);

/* Random contents: words 0 .. kSpmWords/4 of each half with exponents of their own, the others one
 * exponent per 16 words. */
void mxu_tb_fill(mxu_tb *tb);

/* Gives a context a new program and forgets the last one; ACC stays as it is. */
void mxu_tb_load(mxu_tb *tb, unsigned ctx, mxu_mode mode, const struct ct_cmd *cmds, unsigned num);

void mxu_tb_cycle(mxu_tb *tb);
bool mxu_tb_done(const mxu_tb *tb, unsigned ctx);
/* Runs until both programs are done (those not lost), and checks the totals. */
void mxu_tb_run(mxu_tb *tb, unsigned limit);
/* Compares ACC of a context with the model. */
void mxu_tb_check_acc(mxu_tb *tb, unsigned ctx);
/* Flushes a context for at least that many cycles, and until it is idle if wait. */
void mxu_tb_flush(mxu_tb *tb, unsigned ctx, unsigned cycles, bool wait);

#endif
