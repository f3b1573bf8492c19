/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim:memory=sdram, through the library and the plug-in: the bytes of emu:, cycles that repeat, as
 * many refreshes as time has passed, and a sentence for what does not go together.
 */
#include "ct_tb.h"

#include <stdio.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_probe.h"

enum { M = 60, N = 70, K = 100, IN = 60, HIDDEN = 40, OUT = 10, BATCH = 24, STEPS = 2 };
enum { WEIGHTS = IN * HIDDEN + HIDDEN * OUT };

static ct_device *open_or_fail(const char *uri) {
  ct_device *dev;
  if (ct_open(uri, &dev)) fail_msg("%s", ct_last_error(NULL));
  return dev;
}

struct done {
  float c[M * N], loss[STEPS], w[WEIGHTS], logits[BATCH * OUT];
};
/* Cycles of the same, and what the chip was asked for. */
struct cost {
  uint64_t product, all, refreshes, rows;
};

static void fill(ct_rng *rng, float *x, size_t n) {
  for (size_t i = 0; i < n; ++i)
    x[i] = (float)ct_rng_below(rng, 4096) / 1024.0f - 2.0f;
}

static void multiply(ct_device *dev, ct_rng *rng, struct done *d, struct cost *cost) {
  static float a[M * K], b[K * N];
  struct ct_timing timing;
  fill(rng, a, M * K);
  fill(rng, b, K * N);
  if (ct_matmul(dev, CT_INFERENCE, M, N, K, a, b, d->c, &timing))
    fail_msg("%s", ct_last_error(dev));
  cost->product = timing.cycles;
}

static void learn(ct_device *dev, ct_rng *rng, struct done *d) {
  static const uint32_t widths[] = {IN, HIDDEN, OUT};
  static const struct ct_training training = {.batch = BATCH,
                                              .rates = {.lr = 0.1f, .momentum = 0.9f}};
  static float x[BATCH * IN];
  uint32_t labels[BATCH];
  ct_model *model;
  assert_int_equal(ct_model_create(dev, widths, 2, 3, &model), CT_OK);
  assert_int_equal(ct_model_training(model, &training), CT_OK);
  for (int i = 0; i < STEPS; ++i) {
    fill(rng, x, BATCH * IN);
    for (uint32_t j = 0; j < BATCH; ++j)
      labels[j] = ct_rng_below(rng, OUT);
    if (ct_model_step(model, x, labels, &d->loss[i])) fail_msg("%s", ct_last_error(dev));
  }
  assert_int_equal(ct_model_get(model, 0, d->w, NULL, NULL, NULL), CT_OK);
  assert_int_equal(ct_model_get(model, 1, d->w + IN * HIDDEN, NULL, NULL, NULL), CT_OK);
  assert_int_equal(ct_model_infer(model, NULL, x, BATCH, d->logits), CT_OK);
  ct_model_free(model);
}

static struct cost work(const char *uri, struct done *d) {
  static struct ct_probe probe;
  struct cost cost = {0};
  uint64_t from, to;
  ct_rng rng = ct_rng_make(4);
  ct_device *dev = open_or_fail(uri);
  memset(d, 0, sizeof *d);
  probe = (struct ct_probe){0};
  const bool probed = ct_probe(dev, &probe) == CT_OK;
  ct_now(dev, &from);
  multiply(dev, &rng, d, &cost);
  learn(dev, &rng, d);
  ct_now(dev, &to);
  if (probed) ct_probe(dev, NULL);
  ct_close(dev);
  cost.all = to - from;
  cost.refreshes = probe.refreshes;
  cost.rows = probe.rows;
  return cost;
}

static void the_bytes_of_the_emulator(void **state) {
  (void)state;
  static const struct {
    const char *core, *memory;
  } runs[] = {{"16x8", "clock=40,cas=2"}, {"16x8", "clock=60,cas=3"},  {"16x4", "clock=25,cas=2"},
              {"16x8", "clock=80,cas=2"}, {"16x8", "clock=100,cas=3"}, {"16x16", "clock=60,cas=2"}};
  static struct done got, want;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i) {
    char uri[96];
    snprintf(uri, sizeof uri, "emu:dram=32,core=%s", runs[i].core);
    work(uri, &want);
    snprintf(uri, sizeof uri, "sim:core=%s,memory=sdram,%s", runs[i].core, runs[i].memory);
    const struct cost cost = work(uri, &got);
    print_message("%s: %llu cycles, %llu refreshes, %llu rows\n", uri, (unsigned long long)cost.all,
                  (unsigned long long)cost.refreshes, (unsigned long long)cost.rows);
    ct_assert_same(uri, &got, &want, sizeof want);
  }
}

static void cycles_repeat(void **state) {
  (void)state;
  static struct done d;
  const struct cost one = work("sim:core=16x8,memory=sdram", &d);
  const struct cost two = work("sim:core=16x8,memory=sdram,clock=100,cas=3", &d);
  assert_memory_equal(&one, &two, sizeof one);
  const struct cost slow = work("sim:core=16x8,memory=sdram,clock=40,cas=2", &d);
  const struct cost plain = work("sim:core=16x8,dram=32", &d);
  /* Fewer cycles pass at 40 MHz while the chip does what it takes nanoseconds for; two bytes a
   * cycle are fewer than sixteen. */
  assert_true(slow.product < one.product);
  assert_true(plain.product < slow.product);
  assert_int_equal(plain.refreshes, 0);
  assert_int_equal(plain.rows, 0);
}

/* One every 64 ms / 8192, at any clock; rows are opened after each. */
static void refreshes_are_counted(void **state) {
  (void)state;
  static const unsigned mhz[] = {25, 30, 35, 40, 60, 80, 100};
  static struct done d;
  for (size_t i = 0; i < sizeof mhz / sizeof *mhz; ++i) {
    char uri[64];
    snprintf(uri, sizeof uri, "sim:core=16x8,memory=sdram,clock=%u,cas=2", mhz[i]);
    const struct cost cost = work(uri, &d);
    const uint64_t due = cost.all * 10000 / (78125 * (uint64_t)mhz[i]);
    assert_in_range(cost.refreshes, due - due / 50 - 2, due + due / 10 + 2);
    assert_true(cost.rows > cost.refreshes);
  }
}

static void check_refused(const char *uri, const char *text) {
  ct_device *dev;
  assert_int_equal(ct_open(uri, &dev), CT_ERR_ARG);
  if (!strstr(ct_last_error(NULL), text)) fail_msg("%s", ct_last_error(NULL));
}

static void what_goes_together(void **state) {
  (void)state;
  struct ct_info info;
  ct_device *dev = open_or_fail("sim:core=16x8,memory=sdram,clock=60,cas=2");
  assert_int_equal(ct_info(dev, &info), CT_OK);
  assert_string_equal(info.memory, "SDRAM, 16 bit, 60 MHz, CAS latency 2");
  assert_true(info.dram_bytes == 32 << 20);
  assert_true(info.clock_hz == 60000000);
  ct_close(dev);
  dev = open_or_fail("sim:core=16x8,latency=20");
  assert_int_equal(ct_info(dev, &info), CT_OK);
  assert_string_equal(info.memory, "plain, 20 cycles, 16 bytes a cycle");
  ct_close(dev);
  check_refused("sim:memory=sdram,clock=50",
                "memory=sdram runs at clock=25, 30, 35, 40, 60, 80 or 100");
  check_refused("sim:memory=sdram,clock=60.5",
                "memory=sdram runs at clock=25, 30, 35, 40, 60, 80 or 100");
  check_refused("sim:memory=sdram,stall=5", "option stall= is of memory=plain");
  check_refused("sim:memory=sdram,dram=256", "memory=sdram has 32 MiB: leave dram= out");
  check_refused("sim:cas=2", "option cas= is of memory=sdram");
  check_refused("sim:memory=ddr", "one of plain|sdram");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bytes_of_the_emulator),
      cmocka_unit_test(cycles_repeat),
      cmocka_unit_test(refreshes_are_counted),
      cmocka_unit_test(what_goes_together),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
