/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of a measurement: quantiles that are samples, never interpolated. What several
 * seeds say together is host/python/coltrain/stats.py's.
 *
 * p-quantile of N samples: the ceil(p * N)-th smallest, p = num / den, in integers. A refused
 * request counts as infinite: give it CT_STATS_NEVER, which sorts last.
 */
#ifndef CT_STATS_H
#define CT_STATS_H

#include <stddef.h>
#include <stdint.h>

#define CT_STATS_NEVER UINT64_MAX

/* How many of the first of n samples a run drops because the queue was still filling: 10 %, rounded
 * up. That is at least the 1,000 which a campaign drops as soon as n is above 10,000 - the size
 * that a campaign has; in a short run 1,000 would be most of it. */
size_t ct_stats_drop(size_t n);

/* The same by the rule of a campaign whatever n is: max(1000, 10 %), at most n. For the long
 * services whose runs have 3,000 requests and measure 2,000. */
size_t ct_stats_drop_campaign(size_t n);

/* How many requests a campaign has to make so that measured ones are left: the smallest n with
 * n - ct_stats_drop_campaign(n) >= measured. */
size_t ct_stats_requests(size_t measured);

/* Sorts from small to large. */
void ct_stats_sort(uint64_t *samples, size_t n);

/* The ceil(n * num / den)-th smallest, at least the first, of sorted samples; 1 <= num <= den, den
 * below 2^20. CT_STATS_NEVER for n = 0: nothing has arrived. */
uint64_t ct_stats_quantile(const uint64_t *sorted, size_t n, unsigned num, unsigned den);

struct ct_stats {
  size_t count;   /* samples measured */
  size_t dropped; /* of the first ones */
  size_t never;   /* of those measured, CT_STATS_NEVER */
  uint64_t min, p50, p90, p99, max;
  uint64_t p999; /* only from 100,000 samples on, else 0 */
  double mean;   /* of those that are not CT_STATS_NEVER; 0 if there is none */
};

/* Drops the first drop of n samples, in order of arrival, sorts the rest in place and sums it up.
 * With nothing left every figure is 0. */
void ct_stats_sum_up(struct ct_stats *stats, uint64_t *samples, size_t n, size_t drop);

/* The time in which something was in service, of which stretches may overlap. */
struct ct_stats_busy {
  uint64_t cycles, until;
};

/* Adds a stretch. They come in the order of their ends. */
void ct_stats_busy_add(struct ct_stats_busy *busy, uint64_t start, uint64_t end);

/* Its part of the time from that cycle to the last end; NaN if nothing ended after it. */
double ct_stats_busy_share(const struct ct_stats_busy *busy, uint64_t from);

#endif
