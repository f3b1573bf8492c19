/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks on the device: forward and whole training steps, beside the reference, and byte
 * for byte on emulated and simulated cores of all sizes, whose scratchpads and so programs differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network_bed.h"

/* Networks without kinks: what is off is rounding alone. Of 300 training steps the worst tensor is
 * 0.1 off (a scale of a single channel, whose gradient cancels, 0.16: net_random() has none).
 * Activations and gradients that are kept in HBFP8 are rounded twice as often. */
static void against_reference(ct_rng *rng, bool training) {
  const struct net_shape shape = {.smooth = true,
                                  .training = training,
                                  .most_layers = 3,
                                  .most_channels = 40,
                                  .most_size = 12,
                                  .most_images = 6};
  struct net_bed n;
  struct bed b;
  char text[1024];
  net_random(&b, &shape, rng);
  if (getenv("SHOW")) printf("%s\n", net_text(&b, text, sizeof text));
  net_open(&n, &b, "emu:");
  net_draw(&n, ct_rng_u64(rng), rng);
  net_run(&n);
  net_expect(&n, (training ? 0.15 : 0.05) * (b.formats ? 2 : 1), net_text(&b, text, sizeof text));
  net_close(&n);
  bed_free(&b);
}

static void test_forward(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  for (int i = 0, draws = ct_tb_draws(30); i < draws; ++i)
    against_reference(&rng, false);
}

static void test_steps(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  for (int i = 0, draws = ct_tb_draws(30); i < draws; ++i)
    against_reference(&rng, true);
}

/* ---- The same bytes everywhere ------------------------------------------------------------- */

/* 0: the core's scratchpad is too small. */
static uint64_t digest_on(struct bed *b, const char *uri, uint64_t seed) {
  struct net_bed n;
  ct_rng rng = ct_rng_make(seed);
  if (!net_try_open(&n, b, uri)) return 0;
  net_draw(&n, seed, &rng);
  net_run_device(&n, 0);
  net_run_device(&n, 1);
  const uint64_t digest = net_digest(&n);
  net_close(&n);
  return digest;
}

enum { CORES = 3 };

/* Counts the cores that had room for it. */
static void same_on(const char *const *uri, const struct net_shape *shape, ct_rng *rng,
                    int tried[CORES]) {
  const uint64_t seed = ct_rng_u64(rng);
  struct bed b;
  char text[1024];
  net_random(&b, shape, rng);
  const uint64_t want = digest_on(&b, uri[0], seed);
  tried[0] += want != 0;
  for (size_t i = 1; want && i < CORES; ++i) {
    const uint64_t got = digest_on(&b, uri[i], seed);
    tried[i] += got != 0;
    if (got && got != want)
      fail_msg("%s and %s differ: %s", uri[0], uri[i], net_text(&b, text, sizeof text));
  }
  bed_free(&b);
}

/* A network that a core is too small for has not been tried there: another one is, for all. */
static void same_on_all(const char *const *uri, struct net_shape shape, int draws, ct_rng *rng) {
  int tried[CORES] = {0}, least = 0;
  for (int i = 0; least < draws; ++i) {
    if (i == 4 * draws + 8) fail_msg("a core is too small for nearly all of them");
    shape.training = i % 2 == 0;
    shape.accumulate = i % 4 == 0 ? 2 : 0;
    same_on(uri, &shape, rng, tried);
    least = tried[0];
    for (size_t k = 1; k < CORES; ++k)
      if (tried[k] < least) least = tried[k];
  }
  for (size_t i = 0; i < CORES; ++i)
    printf("%s: %d networks\n", uri[i], tried[i]);
}

static void test_same_on_emulated_cores(void **state) {
  (void)state;
  static const char *const uris[CORES] = {"emu:", "emu:core=16x8", "emu:core=16x4"};
  const struct net_shape shape = {
      .most_layers = 4, .most_channels = 70, .most_size = 20, .most_images = 9};
  ct_rng rng = ct_rng_make(3);
  same_on_all(uris, shape, ct_tb_draws(25), &rng);
}

static void test_same_on_simulated_cores(void **state) {
  (void)state;
  static const char *const uris[CORES] = {"emu:", "sim:stall=25", "sim:core=16x8,stall=25"};
  const struct net_shape shape = {
      .most_layers = 3, .most_channels = 33, .most_size = 8, .most_images = 4};
  ct_rng rng = ct_rng_make(4);
  same_on_all(uris, shape, ct_tb_draws(6), &rng);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_steps),
                                     cmocka_unit_test(test_same_on_emulated_cores),
                                     cmocka_unit_test(test_same_on_simulated_cores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
