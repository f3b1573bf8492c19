/* SPDX-License-Identifier: Apache-2.0 */
/* A core and the emulator side by side, and comparisons between the two that print what differs. */
#ifndef CT_PAIR_H
#define CT_PAIR_H

#include "ct_rig.h"

/* The supported cores. */
struct ct_core {
  const char *name;
  const struct ct_transport_ops *ops;
  const char *(*error)(void *self);
  const char *emu_args;
};

/* The cores that every bench goes through, and all of them: the third is for random programs, the
 * second with a narrower array and half the scratchpad. */
enum { CT_CORES = 2, CT_ALL_CORES = 3 };
extern const struct ct_core ct_cores[CT_ALL_CORES];

/* rig[0] is the core, rig[1] the emulator. */
struct ct_pair {
  struct ct_rig rig[2];
};

/* args: the simulated memory's, without dram=. */
void ct_pair_open(struct ct_pair *pair, const struct ct_core *core, const char *args);
void ct_pair_close(struct ct_pair *pair);

/* The same access on both. */
void ct_pair_write(struct ct_pair *pair, uint32_t offset, uint32_t value);
void ct_pair_cwrite(struct ct_pair *pair, unsigned ctx, uint32_t creg, uint32_t value);
void ct_pair_mem_write(struct ct_pair *pair, uint64_t addr, const void *bytes, size_t size);
void ct_pair_submit(struct ct_pair *pair, unsigned ctx, const struct ct_rig_job *job);
void ct_pair_ring(struct ct_pair *pair, unsigned ctx);

/* New random contents of a context's input area. */
void ct_pair_fill_input(struct ct_pair *pair, unsigned ctx, ct_rng *rng);

bool ct_same_out(struct ct_pair *pair, unsigned ctx, const char *when);
bool ct_same_completions(const struct ct_rig_cpl *core, const struct ct_rig_cpl *emu);
/* reads: beats read, too; where a job fails the core may have read more or less of what comes
 * behind. */
bool ct_same_counters(struct ct_pair *pair, bool reads);

#endif
