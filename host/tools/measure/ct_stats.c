/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { kDropLeast = 1000, kManySamples = 100000 };

size_t ct_stats_drop(size_t n) {
  return n / 10 + (n % 10 != 0);
}

size_t ct_stats_drop_campaign(size_t n) {
  const size_t tenth = ct_stats_drop(n);
  const size_t drop = tenth < kDropLeast ? kDropLeast : tenth;
  return drop < n ? drop : n;
}

size_t ct_stats_requests(size_t measured) {
  /* n - ceil(n / 10) = floor(9 n / 10) >= measured, so n = ceil(10 measured / 9). */
  const size_t n = measured + measured / 9 + (measured % 9 != 0);
  return n < measured + kDropLeast ? measured + kDropLeast : n;
}

static int compare(const void *a, const void *b) {
  uint64_t x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return (x > y) - (x < y);
}

void ct_stats_sort(uint64_t *samples, size_t n) {
  if (n > 1) qsort(samples, n, sizeof *samples, compare);
}

uint64_t ct_stats_quantile(const uint64_t *sorted, size_t n, unsigned num, unsigned den) {
  if (n == 0) return CT_STATS_NEVER;
  /* ceil(n * num / den), in two parts so that no n overflows. */
  const size_t rest = n % den * num;
  const size_t rank = n / den * num + rest / den + (rest % den != 0);
  return sorted[rank > 0 ? rank - 1 : 0];
}

void ct_stats_sum_up(struct ct_stats *stats, uint64_t *samples, size_t n, size_t drop) {
  memset(stats, 0, sizeof *stats);
  stats->dropped = drop < n ? drop : n;
  stats->count = n - stats->dropped;
  if (stats->count == 0) return;
  const uint64_t *v = samples + stats->dropped;
  ct_stats_sort(samples + stats->dropped, stats->count);
  size_t finite = 0;
  double sum = 0;
  for (; finite < stats->count && v[finite] != CT_STATS_NEVER; ++finite)
    sum += (double)v[finite];
  stats->never = stats->count - finite;
  stats->mean = finite ? sum / (double)finite : 0;
  stats->min = v[0];
  stats->p50 = ct_stats_quantile(v, stats->count, 1, 2);
  stats->p90 = ct_stats_quantile(v, stats->count, 9, 10);
  stats->p99 = ct_stats_quantile(v, stats->count, 99, 100);
  stats->max = v[stats->count - 1];
  if (stats->count >= kManySamples) stats->p999 = ct_stats_quantile(v, stats->count, 999, 1000);
}

void ct_stats_busy_add(struct ct_stats_busy *busy, uint64_t start, uint64_t end) {
  if (end <= busy->until) return;
  busy->cycles += end - (start > busy->until ? start : busy->until);
  busy->until = end;
}

double ct_stats_busy_share(const struct ct_stats_busy *busy, uint64_t from) {
  return busy->until > from ? (double)busy->cycles / (double)(busy->until - from) : NAN;
}
