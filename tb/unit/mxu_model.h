/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What MM commands do, word by word and row by row: the order of the SPM reads, the k steps they
 * belong to, the contents of ACC. Written from docs/architecture.md and the contract, not from the
 * RTL.
 */
#ifndef MXU_MODEL_H
#define MXU_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "ct_cmd.h"
#include "ct_walk.h"

enum {
  kSpmWords = 1 << 14,
  kMaxSteps = 4096,    /* k steps of all commands of a context */
  kMaxReads = 1 << 17, /* words one stream of a context reads */
  kMaxTiles = 2048,    /* final tiles of a context */
  kMaxOps = 8192,      /* tile operations of a context */
};

typedef struct {
  int8_t q[kSpmWords][16];
  uint8_t e[kSpmWords];
  bool bad[kSpmWords]; /* reads with a parity error */
} mxu_spm;

/* Contents of ACC of one context; a row counts only once it was written. */
typedef struct {
  uint32_t x[16][16][16]; /* tile, row, column */
  bool known[16][16];     /* tile, row */
} mxu_acc;

typedef struct {
  uint32_t addr; /* physical */
  unsigned step; /* k step, counted over all commands */
} mxu_read;

/* An output tile that became final, with what it then held. */
typedef struct {
  unsigned tile;
  uint32_t x[16][16];
  bool known[16];
} mxu_final;

/* All that a context is expected to do: appended to by each command. */
typedef struct {
  mxu_acc acc;
  struct ct_walk walk; /* as WPIX and WTAP have said */
  mxu_read a[kMaxReads], b[kMaxReads];
  unsigned num_a, num_b;
  unsigned num_steps;
  unsigned a_end[kMaxSteps], b_end[kMaxSteps]; /* reads up to and including this k step */
  struct ct_cmd step_cmd[kMaxSteps];
  bool step_first[kMaxSteps]; /* first k step of its command */
  mxu_final final[kMaxTiles];
  unsigned num_finals;
  unsigned op_rows[kMaxOps]; /* rows of each tile operation, in order */
  unsigned num_ops;
  unsigned num_rows;
  unsigned takes[16], gives[16]; /* of each semaphore, in total */
} mxu_expect;

/* Appends a command whose addresses are relative to base. */
void mxu_model_run(mxu_expect *x, const struct ct_cmd *cmd, const mxu_spm *spm, uint32_t base);

#endif
