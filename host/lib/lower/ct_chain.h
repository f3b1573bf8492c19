/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What training can cost inference, as docs/architecture.md derives it (What bounds a wait): each
 * operation of a unit, and a whole job, from its program.
 */
#ifndef CT_CHAIN_H
#define CT_CHAIN_H

#include <stdint.h>

#include "ct_build.h"

enum ct_chain_unit {
  CT_CHAIN_READ,
  CT_CHAIN_WRITE,
  CT_CHAIN_MXU,
  CT_CHAIN_VL,
  CT_CHAIN_VA,
  CT_CHAIN_VS,
  CT_CHAIN_UNITS
};

/* The core, and how it is shared under PRIORITY. */
struct ct_chain_core {
  uint32_t cols, lanes;      /* of the array, of the vector unit */
  uint32_t train_cap, floor; /* registers */
  uint64_t beat_cycles;      /* the memory takes for 16 bytes */
  uint32_t batch;            /* requests, of a program for batches */
};

/* Cycles (of reads: beats) that an operation of each unit can wait: CT_CHAIN_UNITS of them. */
void ct_chain_units(const struct ct_chain_core *sharing, uint64_t *unit);

/* Cycles that a job of that program can take longer than alone, where the memory refuses nothing.
 * 0: unknown, the program is too long. */
uint64_t ct_chain_job(const struct ct_chain_core *sharing, const struct ct_code *code);

#endif
