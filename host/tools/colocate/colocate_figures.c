/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "colocate.h"
#include "coltrain_spec.h"
#include "ct_stats.h"

enum { ENDS = 10, LONG_SAMPLES = 2000, LONG_SERVICE = 20000 };

/* ---- Latency ---- */

/* A campaign's rule for what is dropped where a run has its size; else a tenth. */
static size_t dropped_of(size_t n) {
  return n >= ct_stats_requests(2000) ? ct_stats_drop_campaign(n) : ct_stats_drop(n);
}

static const struct latency unknown = {.p50 = CT_NO_CYCLE, .p99 = CT_NO_CYCLE, .max = CT_NO_CYCLE};

static void sum_up(struct latency *l, uint64_t *samples, size_t n) {
  struct ct_stats stats;
  ct_stats_sum_up(&stats, samples, n, l->dropped);
  l->p50 = stats.p50;
  l->p99 = stats.p99;
  l->max = stats.max;
}

struct latency latency_of(const struct server *s, bool clock) {
  struct latency l = unknown;
  const size_t n = s->done;
  uint64_t *samples = n && clock ? malloc(n * sizeof *samples) : NULL;
  l.dropped = dropped_of(s->count) < n ? dropped_of(s->count) : n;
  l.measured = n - l.dropped;
  if (samples && l.measured) {
    server_latencies(s, 0, n, samples);
    sum_up(&l, samples, n);
  }
  free(samples);
  return l;
}

struct latency latency_of_first(const struct server *s, size_t n, uint64_t by) {
  struct latency l = unknown;
  if (n > s->count) n = s->count;
  uint64_t *samples = n ? malloc(n * sizeof *samples) : NULL;
  if (!samples) return l;
  server_latencies(s, 0, n, samples);
  for (size_t i = 0; i < n; ++i)
    if (s->request[i].answered && s->request[i].end > by) samples[i] = CT_STATS_NEVER;
  l.dropped = ct_stats_drop(n);
  l.measured = n - l.dropped;
  sum_up(&l, samples, n);
  free(samples);
  return l;
}

/* ---- Figures ---- */

size_t served(const struct server *s) {
  return s->done - s->failed;
}

/* Never answered: failed on the device, or (never, unless something is broken) forgotten. */
size_t lost(const struct server *s) {
  return s->submitted - served(s);
}

/* Mean loss of the first or last ENDS steps of the model, or of half of them if there are fewer. */
double mean_loss(const struct colocate *c, bool last) {
  const uint64_t steps = c->feed.finished, half = (steps + 1) / 2, n = half < ENDS ? half : ENDS;
  double sum = 0;
  for (uint64_t i = 0; i < n; ++i)
    sum += (double)c->losses[last ? steps - 1 - i : i];
  return n ? sum / (double)n : (double)NAN;
}

/* Multiply-accumulates a cycle in a window, NaN where it was not measured. */
double macs_per_cycle(const struct window *w) {
  if (!w->closed || w->to <= w->from) return (double)NAN;
  return (double)w->counter[CT_TRAINING][CT_CNT_MXU_ROWS] * CLI_MACS_PER_ROW /
         (double)(w->to - w->from);
}

double cycles_or_nan(uint64_t cycles) {
  return cycles == CT_NO_CYCLE || cycles == CT_STATS_NEVER ? (double)NAN : (double)cycles;
}

/* Share of the time between the first arrival and the last completion in which a request was in
 * service. */
double busy_share(const struct server *s) {
  struct ct_stats_busy busy = {0};
  for (size_t i = 0; i < s->done; ++i)
    if (s->request[i].answered) ct_stats_busy_add(&busy, s->request[i].start, s->request[i].end);
  return ct_stats_busy_share(&busy, s->done ? s->request[0].scheduled : 0);
}

/* The version that gave the first or last answer; NULL without any. */
const struct version *serving_version(const struct colocate *c, bool last) {
  const struct server *s = &c->serve;
  if (!s->done) return NULL;
  const uint32_t number = s->request[last ? s->done - 1 : 0].version;
  return number >= 1 && number <= c->versions.published ? &c->versions.version[number - 1] : NULL;
}

/* Accuracy of a version on the test images, NaN if it is not known. */
double accuracy_of(const struct version *v) {
  return v && v->accuracy >= 0 ? v->accuracy : (double)NAN;
}

double test_accuracy(const struct colocate *c) {
  const size_t n = c->versions.published;
  return c->trained && n == c->versions.room ? accuracy_of(&c->versions.version[n - 1])
                                             : (double)NAN;
}

bool meets_definition(const struct colocate *c, const struct latency *l) {
  const double service = c->capacity_done ? (double)c->capacity_busy / (double)c->capacity_done : 0;
  const size_t need = service > LONG_SERVICE ? LONG_SAMPLES : FULL_SAMPLES;
  return c->info.has_clock && l->measured >= need && c->probe.count >= 2000 && l->dropped >= 1000;
}
