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
 * 0.1 off; a scale of a single channel, whose gradient cancels, 0.16. */
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
  net_expect(&n, training ? 0.2 : 0.05, net_text(&b, text, sizeof text));
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

/* Returns how many cores were too small. */
static int same_on(const char *const *uri, size_t uris, const struct net_shape *shape,
                   ct_rng *rng) {
  const uint64_t seed = ct_rng_u64(rng);
  struct bed b;
  char text[1024];
  net_random(&b, shape, rng);
  const uint64_t want = digest_on(&b, uri[0], seed);
  int small = want == 0;
  for (size_t i = 1; i < uris; ++i) {
    const uint64_t got = digest_on(&b, uri[i], seed);
    small += got == 0;
    if (want && got && got != want)
      fail_msg("%s and %s differ: %s", uri[0], uri[i], net_text(&b, text, sizeof text));
  }
  bed_free(&b);
  return small;
}

static void test_same_on_emulated_cores(void **state) {
  (void)state;
  static const char *const uris[] = {"emu:", "emu:core=16x8", "emu:core=16x4"};
  const int draws = ct_tb_draws(25);
  ct_rng rng = ct_rng_make(3);
  int small = 0;
  for (int i = 0; i < draws; ++i)
    small += same_on(uris, 3,
                     &(struct net_shape){.training = i % 2,
                                         .accumulate = i % 4 == 3 ? 2 : 0,
                                         .most_layers = 4,
                                         .most_channels = 70,
                                         .most_size = 20,
                                         .most_images = 9},
                     &rng);
  printf("%d of %d times a scratchpad was too small\n", small, 3 * draws);
  assert_true(small < draws);
}

static void test_same_on_simulated_cores(void **state) {
  (void)state;
  static const char *const uris[] = {"emu:", "sim:stall=25", "sim:core=16x8,stall=25"};
  const int draws = ct_tb_draws(6);
  ct_rng rng = ct_rng_make(4);
  int small = 0;
  for (int i = 0; i < draws; ++i)
    small += same_on(uris, 3,
                     &(struct net_shape){.training = i % 2 == 0,
                                         .accumulate = i % 4 == 0 ? 2 : 0,
                                         .most_layers = 3,
                                         .most_channels = 33,
                                         .most_size = 8,
                                         .most_images = 4},
                     &rng);
  printf("%d of %d times a scratchpad was too small\n", small, 3 * draws);
  assert_true(small < draws);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_steps),
                                     cmocka_unit_test(test_same_on_emulated_cores),
                                     cmocka_unit_test(test_same_on_simulated_cores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
