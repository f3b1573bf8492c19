/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "colocate.h"
#include "ct_stats.h"

enum { LONG_SAMPLES = 2000, LONG_SERVICE = 20000 };

/* ---- Latency ---- */

/* A campaign's rule for what is dropped where a run has its size; else a tenth. */
static size_t dropped_of(size_t n) {
  return n >= ct_stats_requests(2000) ? ct_stats_drop_campaign(n) : ct_stats_drop(n);
}

static const struct ct_stats unknown = {.p50 = CT_NO_CYCLE, .p99 = CT_NO_CYCLE, .max = CT_NO_CYCLE};

/* by: the cycle by which they are answered; 0: nobody knows when they were. */
static struct ct_stats sum_up(const struct server *s, size_t n, size_t drop, uint64_t by) {
  struct ct_stats l = unknown;
  if (n > drop && by && requests_sum_up(&s->run, n, drop, by, &l)) l = unknown;
  l.dropped = drop < n ? drop : n;
  l.count = n - l.dropped;
  return l;
}

struct ct_stats latency_of(const struct server *s, bool clock) {
  return sum_up(s, s->run.done, dropped_of(s->run.count), clock ? CT_NO_CYCLE : 0);
}

struct ct_stats latency_of_first(const struct server *s, size_t n, uint64_t by) {
  if (n > s->run.count) n = s->run.count;
  return sum_up(s, n, ct_stats_drop(n), by);
}

/* ---- Figures ---- */

size_t served(const struct server *s) {
  return s->run.done - s->run.failed;
}

/* Never answered: failed on the device, or (never, unless something is broken) forgotten. */
size_t lost(const struct server *s) {
  return s->run.pushed - served(s);
}

double mean_loss(const struct colocate *c, bool last) {
  return learn_mean_loss(c->losses, c->feed.finished, last);
}

double cycles_or_nan(uint64_t cycles) {
  return cycles == CT_NO_CYCLE || cycles == CT_STATS_NEVER ? (double)NAN : (double)cycles;
}

double busy_share(const struct server *s) {
  double share = (double)NAN;
  if (s->run.done && requests_busy(&s->run, &share)) return (double)NAN;
  return share;
}

/* The version that gave the first or last answer; NULL without any. */
const struct version *serving_version(const struct colocate *c, bool last) {
  const struct server *s = &c->serve;
  if (!s->run.done) return NULL;
  const uint32_t number = s->run.request[last ? s->run.done - 1 : 0].version;
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

bool meets_definition(const struct colocate *c, const struct ct_stats *l) {
  const double service = c->capacity_done ? (double)c->capacity_busy / (double)c->capacity_done : 0;
  const size_t need = service > LONG_SERVICE ? LONG_SAMPLES : FULL_SAMPLES;
  return c->load.info.has_clock && l->count >= need && c->probe.run.count >= 2000 &&
         l->dropped >= 1000;
}
