/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of a unit, put together: a cycle of a unit and a context is busy, a wait for the
 * other context, a wait for something else, or idle (docs/programming.md).
 */
#ifndef CT_UNITS_H
#define CT_UNITS_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "coltrain/coltrain.h"
#include "host/lib/isa/ct_bound.h"

struct ct_unit_time {
  uint64_t busy, other, operands, semaphore;
};

/* "DMA read" ... */
const char *ct_unit_name(unsigned unit);

/* From a queue's counters, in the order of ct_counters(). */
struct ct_unit_time ct_unit_time(unsigned unit, const uint64_t counters[CT_MAX_COUNTERS]);

/* What is left of that many cycles; below 0 if the counters do not add up. */
int64_t ct_unit_idle(const struct ct_unit_time *time, uint64_t cycles);

/* The same as JSON, of both queues, or of the one that is not NULL: an array of unit, queue, busy,
 * other, operands, semaphore, idle. */
json_t *ct_units_list(const uint64_t *inference, const uint64_t *training, uint64_t cycles);

/* The cycles and that array, as units; null unless there are cycles. */
json_t *ct_units_json(const uint64_t *inference, const uint64_t *training, uint64_t cycles);

/* A table for both queues, or the one that is not NULL, in percent of the cycles. */
void ct_units_print(FILE *to, const uint64_t *inference, const uint64_t *training, uint64_t cycles);

#endif
