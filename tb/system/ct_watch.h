/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated cores whose scratchpad is watched (ct_core_watch.sv): transports like the others, and
 * what the monitor knows of the last flip.
 */
#ifndef CT_WATCH_H
#define CT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "host/transports/sim/ct_sim.h"

struct ct_watch {
  bool live;     /* the inverted bit is in the memory now */
  bool done;     /* it has been */
  bool written;  /* a unit has written the word since the flip was asked for */
  uint32_t read; /* bit p: read port p was given the word while the bit was inverted */
  uint64_t at;   /* the device's cycle in which the bit was inverted */
};

typedef struct ct_watch ct_watch_fn(void *self);

CT_SIM_DECLARE(ct_core_watch);
ct_watch_fn ct_core_watch_look;

/* A model with faults of its own (mutants.sh): which one, from now on; 0 none. */
CT_SIM_DECLARE(ct_core_mutant);
ct_watch_fn ct_core_mutant_look;
void ct_core_mutant_choose(void *self, uint8_t which);

#endif
