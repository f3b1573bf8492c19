/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue with one engine that serves batches as the device does (docs/programming.md, "When a
 * batch goes"), each for as long as its cost says, or less where one follows another. It spares the
 * simulator the rates that are far off. What it says is reported in one case, labelled model: when
 * even the lowest rate is too high, which the simulator would take an hour to confirm.
 */
#include <stdlib.h>

#include "batching.h"
#include "ct_arrivals.h"

enum { UNIT = 1000000000, WHOLE = 1000 };

struct queue {
  const struct batching_row *row;
  uint64_t *arrival, *latency;
  size_t count, dropped;
};

/* When the batch is formed whose first request is `first`, at that cycle at the earliest: when the
 * one before has begun. *size: how many are in it. */
static uint64_t departure(const struct queue *q, size_t first, uint64_t earliest, size_t *size) {
  const struct exp_batching *b = &q->row->batching;
  uint64_t now = q->arrival[first] > earliest ? q->arrival[first] : earliest;
  size_t n = 1;
  for (;;) {
    while (n < b->max_batch && first + n < q->count && q->arrival[first + n] <= now)
      ++n;
    *size = n;
    if (n == b->max_batch) return now;
    const uint64_t takes = q->row->cost[n] + b->margin;
    const uint64_t due = takes < b->bound ? q->arrival[first] + b->bound - takes : 0;
    if (due <= now) return now;
    if (first + n == q->count || q->arrival[first + n] > due) return due;
    now = q->arrival[first + n];
  }
}

static bool is_sustained(struct queue *q, uint64_t rate) {
  const struct batching_row *row = q->row;
  const uint64_t mean = ct_arrivals_mean_q16(UNIT, rate, WHOLE);
  const uint64_t lead = row->service - row->cost[1]; /* up to the start of a batch */
  const uint64_t cost = row->cost[row->batching.max_batch];
  const uint64_t overlap = cost > row->interval ? cost - row->interval : 0;
  uint64_t start = 0, end = 0; /* of the batch before */
  struct ct_stats stats;
  if (ct_arrivals_poisson(1, mean, q->arrival, q->count)) return false;
  for (size_t i = 0; i < q->count;) {
    size_t n;
    const uint64_t ready = departure(q, i, start, &n) + lead;
    start = ready + overlap > end ? ready : end - overlap;
    end = start + row->cost[n];
    for (size_t k = 0; k < n; ++k)
      q->latency[i + k] = end - q->arrival[i + k];
    i += n;
  }
  ct_stats_sum_up(&stats, q->latency, q->count, q->dropped);
  return stats.p99 <= row->batching.bound;
}

int batching_model(struct batching_row *row, size_t requests, size_t dropped) {
  struct queue q = {.row = row,
                    .arrival = malloc(requests * sizeof *q.arrival),
                    .latency = malloc(requests * sizeof *q.latency),
                    .count = requests,
                    .dropped = dropped};
  size_t good = 0, bad = row->rates;
  const bool room = q.arrival && q.latency;
  while (room && bad - good > 1) {
    const size_t middle = (good + bad) / 2;
    *(is_sustained(&q, row->rate[middle]) ? &good : &bad) = middle;
  }
  row->model = good;
  row->below = room && good == 0 && !is_sustained(&q, row->rate[0]);
  free(q.arrival);
  free(q.latency);
  return room ? 0 : cli_fail("no memory for %zu arrivals", requests);
}
