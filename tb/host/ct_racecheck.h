/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proves one program race-free, for one set of arguments and whatever time each step takes: every
 * word of SPM and DRAM, tile register and ACC tile that one queue writes and another reads or
 * writes is ordered by semaphores (docs/architecture.md). Independent of the builders and of the
 * emulator.
 *
 * It follows what each queue knows to be complete (vector clocks) along the signals it takes. A
 * semaphore has one signalling and one waiting queue, so that the n-th taken is the n-th given.
 * Another queue may follow if it knows the last one before to be complete when it first signals or,
 * before it takes anything, when it first waits; then signals, and waits, still come in one order.
 * Operand reads and tiles of MM go on side by side: reads do not know what tiles wait for, and are
 * signalled before tiles of earlier commands unless they know these.
 * Also refused: reading SPM that the job has not written, commands outside the window, a dispatch
 * that gets stuck with queues of `depth` commands, more than 255 of a semaphore.
 */
#ifndef CT_RACECHECK_H
#define CT_RACECHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ct_cmd.h"

struct ct_racecheck {
  const struct ct_cmd *cmds;
  size_t count;
  uint32_t args[CT_NUM_ARGS];
  uint32_t spm_words;
  uint32_t dram_units; /* addresses must stay below */
  unsigned depth;      /* of a queue */
  int eager;      /* 1 LD, 2 ST, .. 6 VS: this queue goes as far as it can, always; 0: none does */
  unsigned batch; /* requests of a batch; 0: a job of the ring */
  uint32_t input[CT_BATCH_MAX], output[CT_BATCH_MAX];
  bool spm_holds_data; /* of a job before: reading what this one has not written is fine */
};

struct ct_racecheck_stats {
  uint64_t dispatched, ld_beats, st_beats, rows;
};

/* False: a sentence is in why. stats may be NULL. */
bool ct_racecheck(const struct ct_racecheck *program, struct ct_racecheck_stats *stats, char *why,
                  size_t why_size);

#endif
