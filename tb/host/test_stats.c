/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles by their definition, and what is dropped. */
#include "ct_tb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/tools/measure/ct_stats.h"

/* The definition itself: the smallest sample x such that at least ceil(p N) samples are <= x. */
static uint64_t by_definition(const uint64_t *v, size_t n, unsigned num, unsigned den) {
  const size_t rank = (n * num + den - 1) / den;
  uint64_t best = UINT64_MAX;
  for (size_t i = 0; i < n; ++i) {
    size_t below = 0;
    for (size_t k = 0; k < n; ++k)
      below += v[k] <= v[i];
    if (below >= rank && v[i] < best) best = v[i];
  }
  return best;
}

static void quantiles(void **state) {
  (void)state;
  static const unsigned p[][2] = {{1, 2}, {9, 10}, {99, 100}, {999, 1000}, {1, 1}, {1, 1000}};
  ct_rng rng = ct_rng_make(1);
  for (int turn = 0; turn < 300; ++turn) {
    uint64_t v[300], sorted[300];
    const size_t n = 1 + ct_rng_below(&rng, 299);
    for (size_t i = 0; i < n; ++i) { /* with equal ones, and infinite ones */
      v[i] = ct_rng_percent(&rng, 50) ? ct_rng_below(&rng, 50) : ct_rng_u64(&rng);
      if (ct_rng_percent(&rng, 2)) v[i] = CT_STATS_NEVER;
    }
    memcpy(sorted, v, sizeof v);
    ct_stats_sort(sorted, n);
    for (size_t i = 0; i < sizeof p / sizeof *p; ++i)
      assert_int_equal(ct_stats_quantile(sorted, n, p[i][0], p[i][1]),
                       by_definition(v, n, p[i][0], p[i][1]));
  }
}

/* Ranks where rounding would go wrong: of 1..N the quantile is its own rank. */
static void ranks(void **state) {
  (void)state;
  static uint64_t v[10001];
  for (size_t i = 0; i < 10001; ++i)
    v[i] = i + 1;
  assert_int_equal(ct_stats_quantile(v, 100, 99, 100), 99);
  assert_int_equal(ct_stats_quantile(v, 101, 99, 100), 100);
  assert_int_equal(ct_stats_quantile(v, 10000, 99, 100), 9900);
  assert_int_equal(ct_stats_quantile(v, 10001, 99, 100), 9901);
  assert_int_equal(ct_stats_quantile(v, 1, 99, 100), 1);
  assert_int_equal(ct_stats_quantile(v, 1, 1, 100), 1);
  assert_int_equal(ct_stats_quantile(v, 2, 1, 2), 1);
  assert_int_equal(ct_stats_quantile(v, 3, 1, 2), 2);
  assert_int_equal(ct_stats_quantile(v, 1000, 999, 1000), 999);
  assert_int_equal(ct_stats_quantile(v, 1000, 1, 1), 1000);
  assert_int_equal(ct_stats_quantile(NULL, 0, 99, 100), CT_STATS_NEVER);
}

static void dropped(void **state) {
  (void)state;
  assert_int_equal(ct_stats_drop(0), 0);
  assert_int_equal(ct_stats_drop(1), 1);
  assert_int_equal(ct_stats_drop(2000), 200);
  assert_int_equal(ct_stats_drop(2001), 201);
  assert_int_equal(ct_stats_drop(11000), 1100);
  assert_int_equal(ct_stats_drop(SIZE_MAX), SIZE_MAX / 10 + 1);
  assert_int_equal(ct_stats_drop_campaign(0), 0);
  assert_int_equal(ct_stats_drop_campaign(500), 500);
  assert_int_equal(ct_stats_drop_campaign(3000), 1000);
  assert_int_equal(ct_stats_drop_campaign(10000), 1000);
  assert_int_equal(ct_stats_drop_campaign(11112), 1112);
  assert_int_equal(ct_stats_requests(2000), 3000);
  assert_int_equal(ct_stats_requests(10000), 11112);
  for (size_t measured = 1; measured < 30000; measured += 7) {
    const size_t n = ct_stats_requests(measured);
    assert_true(n - ct_stats_drop_campaign(n) >= measured);
    assert_true(n - 1 - ct_stats_drop_campaign(n - 1) < measured);
  }
}

static void sums(void **state) {
  (void)state;
  static uint64_t v[100200];
  struct ct_stats s;
  for (size_t i = 0; i < 100200; ++i) /* 200 early ones that must not count, then 100000 .. 1 */
    v[i] = i < 200 ? 7000000 : 100200 - i;
  ct_stats_sum_up(&s, v, 100200, 200);
  assert_int_equal(s.count, 100000);
  assert_int_equal(s.dropped, 200);
  assert_int_equal(s.never, 0);
  assert_int_equal(s.min, 1);
  assert_int_equal(s.p50, 50000);
  assert_int_equal(s.p90, 90000);
  assert_int_equal(s.p99, 99000);
  assert_int_equal(s.p999, 99900);
  assert_int_equal(s.max, 100000);
  assert_true(s.mean == 50000.5);
  ct_stats_sum_up(&s, v, 100200, 201);
  assert_int_equal(s.count, 99999);
  assert_int_equal(s.p999, 0); /* one too few */
  uint64_t few[5] = {5, CT_STATS_NEVER, 1, 3, CT_STATS_NEVER};
  ct_stats_sum_up(&s, few, 5, 0);
  assert_int_equal(s.never, 2);
  assert_true(s.mean == 3);
  assert_int_equal(s.p50, 5);
  assert_int_equal(s.p99, CT_STATS_NEVER);
  ct_stats_sum_up(&s, few, 5, 9);
  assert_int_equal(s.count, 0);
  assert_int_equal(s.dropped, 5);
  assert_int_equal(s.max, 0);
  ct_stats_sum_up(&s, NULL, 0, 0);
  assert_int_equal(s.count, 0);
}

/* Stretches that overlap, lie in another or follow each other count each cycle once. */
static void time_in_service(void **state) {
  (void)state;
  static const uint64_t stretch[][2] = {{100, 120}, {110, 130}, {105, 130}, {150, 160}, {140, 170}};
  struct ct_stats_busy busy = {0};
  assert_true(isnan(ct_stats_busy_share(&busy, 0)));
  for (size_t i = 0; i < sizeof stretch / sizeof *stretch; ++i)
    ct_stats_busy_add(&busy, stretch[i][0], stretch[i][1]);
  assert_int_equal(busy.cycles, 30 + 10 + 10);
  assert_true(ct_stats_busy_share(&busy, 70) == 0.5);
  assert_true(isnan(ct_stats_busy_share(&busy, 170)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quantiles), cmocka_unit_test(ranks),           cmocka_unit_test(dropped),
      cmocka_unit_test(sums),      cmocka_unit_test(time_in_service),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
