/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a simulated core did, as a file in the Chrome trace event format: ui.perfetto.dev and
 * chrome://tracing open it.
 *
 *   jobs          for each queue: how many jobs it holds, and every job from doorbell to completion
 *   each unit     for each context a track of operations and a track of waits
 *
 * An operation is a burst of the DMA, a pass of up to 16 rows through the array, a tile of the
 * vector unit: from the cycle it occupies its unit to the one after its last. Inside it stand the
 * cycles in which nothing of it moved, with the reason; "preempted by" if the other context had
 * its slot. Its `busy` is what the unit's counter counts for it (docs/programming.md). A wait goes
 * from ready to granted; its name says for whom.
 *
 *   struct ct_trace *trace = ct_trace_open(path, clock_hz, bytes);
 *   ct_trace_window(trace, from, to);
 *   probe.watch = ct_trace_cycle, probe.watch_arg = trace;    (ct_probe.h)
 *   ct_trace_job(...), ct_trace_swap(...);
 *   ct_trace_close(trace, &summary);
 *
 * The core is watched from the first call of ct_trace_cycle() on; where it was at rest then, `busy`
 * is exact in any window. For one thread at a time.
 */
#ifndef CT_TRACE_H
#define CT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ct_probe.h"

struct ct_trace;

struct ct_trace_summary {
  uint64_t from, to;      /* cycles the file covers: to is less than asked for if it was full */
  uint64_t events, bytes; /* in the file */
  bool full, failed;      /* the size was reached; the file could not be written */
  uint64_t busy[CT_UNIT_COUNT][2], preempted[CT_UNIT_COUNT][2]; /* within from .. to */
};

enum ct_trace_kind { CT_TRACE_REQUEST, CT_TRACE_STEP, CT_TRACE_PUBLISH };

/* Creates the file; it will not grow much beyond that many bytes. NULL with errno set on failure.
 * Nothing is written until a window is set. */
struct ct_trace *ct_trace_open(const char *path, uint64_t clock_hz, uint64_t bytes);

/* Cycles from <= cycle < to are written. Another window takes the place of the one before. */
void ct_trace_window(struct ct_trace *trace, uint64_t from, uint64_t to);

/* Whether cycles are still to come; false once the window is past or the file full. */
bool ct_trace_wants(const struct ct_trace *trace);

/* One settled cycle of probe_o: a ct_probe_watch, trace is the struct. */
void ct_trace_cycle(void *trace, uint64_t cycle, uint64_t events);

/* A job that has been reaped: doorbell, start and end as in struct ct_event. */
void ct_trace_job(struct ct_trace *trace, enum ct_trace_kind kind, unsigned queue, uint64_t number,
                  uint64_t arrive, uint64_t start, uint64_t end);

/* From this cycle on requests are answered by that version of the weights. */
void ct_trace_swap(struct ct_trace *trace, uint64_t version, uint64_t cycle);

/* Ends the file and frees; summary may be NULL. 0, or -1 with errno set if it could not be written.
 * NULL is ignored. */
int ct_trace_close(struct ct_trace *trace, struct ct_trace_summary *summary);

#endif
