/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many cycles a job takes, computed from its program: a model of the device's time. Nothing is
 * executed and no device is needed. It knows what a unit does in what order, what its commands and
 * steps cost, which semaphores they take and give, and how the memory answers; so it is exact but
 * for what depends on addresses in the scratchpad (two ports that want one bank; it does know what
 * ST loses to A where a row takes several cycles), on the other context, which is taken to be idle,
 * and on how long groups of compressed tiles are, which it is told (struct ct_cycles_groups).
 *
 *   struct ct_cycles_core core = {.cols = info.array_cols, .lanes = info.vpu_lanes, .walks = true};
 *   struct ct_cycles out;
 *   int err = ct_cycles(&core, code.cmd, code.count, args, &out);
 *   ... out.total, ct_cycles_bound(&out)
 *
 * Jobs in a row: each has the commands of the one behind it as `next`, whose `ahead` is then its
 * `tail`; their totals add up.
 */
#ifndef CT_CYCLES_H
#define CT_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ct_bound.h"
#include "ct_cmd.h"

/* Index units of compressed tiles (docs/compression.md), and the units that a group of four tiles
 * takes of which they tell. Of groups that nobody names they are as many as there can be, 70. */
struct ct_cycles_groups {
  uint32_t index, count; /* device memory, units: the first one; so many */
  uint32_t units;        /* 2..70 */
};

struct ct_cycles_core {
  uint32_t cols, lanes; /* of the array: 16, 8 or 4; of the vector unit: 16 or 4 */
  uint32_t fn_lanes;    /* lanes with functions; 0: all of 16, 1 of 4 */
  bool walks;           /* the core has CT_FEATURE_CONVOLUTION */
  uint32_t latency;     /* of the memory, cycles; 0: 60 */
  uint32_t bytes;       /* a cycle each way, 1..16; 0: 16 */
  uint32_t reads; /* that may be outstanding, 1..8; 0: 8, as of inference (training: TRAIN_CAP) */
  uint32_t requests; /* in the batch that the job is; 0: it comes from the ring */
  uint64_t ahead; /* cycles before its start in which its descriptor could be read; 0: it is read at
                     the start, as of a job on an idle device */
  uint32_t next;  /* commands of the job behind it, which are read from END on, before what LD still
                     has to read; 0: there is none */
  const struct ct_cycles_groups *groups; /* so many; may be NULL */
  size_t groups_count;
};

struct ct_cycles {
  uint64_t total; /* ct_event.end - start */
  uint64_t tail;  /* the last of these: from the dispatch of END on, without what LD keeps the
                     program of the next job waiting; at least 1 */
  /* Cycles in which each unit had work in it: the memory's channels (beats, each as long as the
   * memory takes; tiles in groups 17, if that is longer), the array (a tile's rows, or, if that is
   * longer, the load of its weights), the sides of the vector unit. */
  uint64_t busy[CT_UNIT_COUNT];
  uint64_t beats_read, beats_written; /* descriptor and program included: LD_BEATS, ST_BEATS */
  uint64_t rows;                      /* of the array: MXU_ROWS */
  uint64_t commands;                  /* executed or dispatched: CMDS */
};

/* What keeps a job from being faster. */
enum ct_cycles_by {
  CT_BY_ARRAY,
  CT_BY_MEMORY,
  CT_BY_VECTOR, /* VL, VA or VS */
  CT_BY_LATENCY /* none of them is busy for three quarters of the time: they wait for each other */
};

/* Commands, and steps of units (bursts, rows, tiles), that are followed at most. */
enum { CT_CYCLES_COMMANDS = 1 << 20, CT_CYCLES_STEPS = 1 << 26 };

/* args: r1..r24. CT_ERR_ARG: a core that there is not, or a program that ends with an error or
 * never: an illegal command, no END, a wait for what nobody signals, more than 255 of a semaphore.
 * CT_ERR_NO_SPACE: more commands or steps than are followed. CT_ERR_MEMORY. */
int ct_cycles(const struct ct_cycles_core *core, const struct ct_cmd *cmd, size_t count,
              const uint32_t args[CT_NUM_ARGS], struct ct_cycles *out);

enum ct_cycles_by ct_cycles_bound(const struct ct_cycles *cycles);

/* "array", "memory", "vector unit", "latency". */
const char *ct_cycles_by_name(enum ct_cycles_by by);

#endif
