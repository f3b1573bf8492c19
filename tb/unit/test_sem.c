/* SPDX-License-Identifier: Apache-2.0 */
/* ct_sem: random traffic of six units on sixteen counters, and both errors, against a model. */
#include <string.h>

#include "ct_tb.h"

#include "ct_sem_dut.h"

enum { kUnits = 6, kSems = 16 };

/* What the six units do in a cycle: bit s of word u. */
typedef struct {
  uint16_t dec[kUnits], inc[kUnits];
} traffic;

typedef struct {
  ct_sem_dut *dut;
  int count[kSems];
  bool told; /* expected on err_o after the last edge, with told_num */
  unsigned told_num;
  bool err;         /* the same of the next edge */
  unsigned err_num; /* if err */
  unsigned errors;
} bench;

static bench open_bench(void) {
  bench b = {.dut = ct_sem_new(ct_tb_trace())};
  *b.dut->clear_i = 1; /* as between jobs, and in reset */
  memset(b.dut->dec_i, 0, 12);
  memset(b.dut->inc_i, 0, 12);
  ct_sem_reset(b.dut, 2);
  return b;
}

/* The model: the state after an edge. */
static void model_edge(bench *b, const traffic *t, bool clear) {
  b->told = b->err && !clear;
  b->told_num = b->err_num;
  b->err = false;
  for (unsigned s = 0; s < kSems; ++s) {
    if (clear) {
      b->count[s] = 0;
      continue;
    }
    int n = b->count[s];
    for (unsigned u = 0; u < kUnits; ++u)
      n += (t->inc[u] >> s & 1) - (t->dec[u] >> s & 1);
    if ((n < 0 || n > 255) && !b->err) {
      b->err = true;
      b->err_num = s;
      ++b->errors;
    }
    if (n >= 0 && n <= 255) b->count[s] = n;
  }
}

static void check(const bench *b) {
  unsigned nz = 0;
  for (unsigned s = 0; s < kSems; ++s)
    nz |= (unsigned)(b->count[s] > 0) << s;
  assert_int_equal(*b->dut->nz_o, nz);
  assert_int_equal(*b->dut->err_o, b->told);
  if (b->told) assert_int_equal(*b->dut->err_num_o, b->told_num);
}

static void cycle(bench *b, const traffic *t, bool clear) {
  memcpy(b->dut->dec_i, t->dec, sizeof t->dec);
  memcpy(b->dut->inc_i, t->inc, sizeof t->inc);
  *b->dut->clear_i = clear;
  ct_sem_tick(b->dut);
  model_edge(b, t, clear);
  check(b);
}

/* Units give at random and take what they see, each semaphore being waited for by one unit; percent
 * says how much more is given than taken. Rarely (if wild) a unit takes what is not there. */
static traffic random_traffic(const bench *b, ct_rng *rng, unsigned give, unsigned take,
                              bool wild) {
  traffic t;
  memset(&t, 0, sizeof t);
  for (unsigned s = 0; s < kSems; ++s) {
    for (unsigned u = 0; u < kUnits; ++u)
      if (ct_rng_percent(rng, give)) t.inc[u] |= (uint16_t)(1u << s);
    const unsigned waiter = s % kUnits;
    if (b->count[s] > 0 && ct_rng_percent(rng, take)) t.dec[waiter] |= (uint16_t)(1u << s);
    if (wild && ct_rng_below(rng, 200) == 0) t.dec[(waiter + 1) % kUnits] |= (uint16_t)(1u << s);
  }
  return t;
}

static void random_run(uint64_t stream, unsigned give, unsigned take, bool wild, bool errors) {
  bench b = open_bench();
  ct_rng rng = ct_rng_make(stream);
  for (int i = 0; i < 20000; ++i) {
    const traffic t = random_traffic(&b, &rng, give, take, wild);
    cycle(&b, &t, ct_rng_below(&rng, 3000) == 0);
  }
  assert_int_equal(b.errors > 0, errors);
  ct_sem_free(b.dut);
}

static void balanced(void **state) {
  (void)state;
  random_run(1, 4, 70, false, false);
}

static void overflows(void **state) {
  (void)state;
  random_run(2, 20, 50, false, true);
}

static void underflows(void **state) {
  (void)state;
  random_run(3, 2, 60, true, true);
}

/* An error that comes when the semaphores are cleared already is the last job's, and not told. */
static void cleared_errors(void **state) {
  (void)state;
  bench b = open_bench();
  traffic take, none;
  memset(&take, 0, sizeof take);
  memset(&none, 0, sizeof none);
  take.dec[1] = 1u << 5;
  for (unsigned when = 0; when < 4; ++when) { /* the cycle in which they are cleared */
    cycle(&b, &none, true);
    cycle(&b, &take, when == 0);
    for (unsigned i = 1; i < 4; ++i)
      cycle(&b, &none, i == when);
  }
  assert_int_equal(b.errors, 3);
  ct_sem_free(b.dut);
}

/* The limits themselves are legal: 255 is held, and taken again one by one. */
static void counts_to_255(void **state) {
  (void)state;
  bench b = open_bench();
  traffic give, take;
  memset(&give, 0, sizeof give);
  memset(&take, 0, sizeof take);
  give.inc[4] = take.dec[2] = 1u << 9;
  for (int i = 0; i < 255; ++i)
    cycle(&b, &give, false);
  assert_int_equal(b.errors, 0);
  for (int i = 0; i < 255; ++i)
    cycle(&b, &take, false);
  assert_int_equal(b.errors, 0);
  assert_int_equal(*b.dut->nz_o, 0);
  cycle(&b, &take, false);
  assert_int_equal(b.errors, 1);
  assert_int_equal(b.err_num, 9);
  take.dec[2] = 0;
  cycle(&b, &take, false);
  assert_true(b.told);
  ct_sem_free(b.dut);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(balanced),      cmocka_unit_test(overflows),
      cmocka_unit_test(underflows),    cmocka_unit_test(cleared_errors),
      cmocka_unit_test(counts_to_255),
  };
  return cmocka_run_group_tests_name("ct_sem", tests, NULL, NULL);
}
