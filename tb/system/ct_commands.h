/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random commands (ct_fuzz.h) as jobs of the training context, job after job, while the inference
 * context does known work. What must hold:
 *
 *   - every job of inference ends well, and its memory and results are the emulator's, byte by
 * byte;
 *   - outside training's writable window no byte of device memory changes;
 *   - at the end all of the scratchpad outside training's window is as the emulator has it, and so
 *     are inference's ACC and tile registers;
 *   - every job of training completes, whatever it was, and now and then and at the end that
 * context does a right job right;
 *   - a job whose descriptor is bad, or which continues one that failed, ends with that code.
 *
 * Policy, floor and training's bursts are drawn, also while all that works, over all that the
 * registers take; now and then the host cancels jobs of training.
 */
#ifndef CT_COMMANDS_H
#define CT_COMMANDS_H

#include <stdio.h>

#include "ct_fuzz.h"
#include "ct_pair.h"

enum { CT_COMMANDS_CODES = 24 };

struct ct_commands {
  const struct ct_core *core;
  unsigned long count;       /* commands to submit, and to see dispatched, at least */
  uint64_t stream;           /* of random numbers */
  void (*start)(void *self); /* called with the opened device; may be NULL */
  bool stop;                 /* at the first thing that is wrong */
};

struct ct_commands_result {
  unsigned long submitted, jobs[2]; /* of training: the random ones */
  unsigned long compressed;         /* of those submitted: LD and ST with Comp */
  uint64_t dispatched;              /* commands that left the dispatcher (counter CMDS) */
  unsigned long kind[CT_FUZZ_KINDS],
      code[CT_COMMANDS_CODES]; /* random jobs: what they were, how they ended */
  unsigned long right_jobs;    /* training's proofs that it still works, of three jobs each */
  unsigned long wrong;         /* checks that failed */
  unsigned policies;           /* drawn, each of the eight values in turn */
  uint64_t cycles;
};

void ct_commands_run(const struct ct_commands *setup, struct ct_commands_result *result);
void ct_commands_print(const struct ct_commands_result *result);
/* As in docs/data/faults-commands.csv: the names of the columns, and a row. */
void ct_commands_csv_head(FILE *file);
void ct_commands_csv_row(FILE *file, const char *core, const struct ct_commands_result *result,
                         const char *rtl_commit);

#endif
