/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What training can cost a whole job of inference, from its program, as docs/architecture.md
 * derives it (What bounds a wait) from what it can cost each operation (ct_bound.h).
 */
#ifndef CT_CHAIN_H
#define CT_CHAIN_H

#include <stdint.h>

#include "ct_build.h"

/* The core, and how it is shared under PRIORITY. */
struct ct_chain_core {
  uint32_t cols, lanes;      /* of the array, of the vector unit */
  uint32_t train_cap, floor; /* registers */
  uint64_t beat_cycles;      /* the memory takes for 16 bytes */
  uint32_t batch;            /* requests, of a program for batches */
};

/* Cycles that a job of that program can take longer than alone, where the memory refuses nothing.
 * 0: unknown, the program is too long. */
uint64_t ct_chain_job(const struct ct_chain_core *sharing, const struct ct_code *code);

#endif
