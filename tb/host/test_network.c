/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks on the device: perceptrons, LeNet-5, ResNets, forward and whole training steps, beside
 * the reference in double precision. HBFP8 has 7 bits behind the sign, so a product of n terms is
 * about 2^-8 off, whatever n is; layers add to that. What is compared is the distance of whole
 * tensors. Gradients behind ReLU are off by more: an activation that is rounded to the other side
 * of zero loses or gets all of its gradient. test_network_random has networks without kinks, and
 * tighter limits.
 */
#include <stdio.h>
#include <string.h>

#include "network_bed.h"

static void builtin(struct bed *b, const char *name, uint32_t batch, bool training) {
  bed_make(b);
  if (ct_graph_builtin(b->g, name, batch, training)) fail_msg("%s", ct_graph_error(b->g));
}

static void optimise(struct bed *b, const struct ct_optimise *how) {
  if (ct_graph_optimise(b->g, ct_graph_find(b->g, "loss"), how))
    fail_msg("%s", ct_graph_error(b->g));
  b->update = true;
}

static void compare(struct bed *b, double most, const char *what) {
  struct net_bed n;
  ct_rng rng = ct_rng_make(1);
  bed_check(b);
  net_open(&n, b, "emu:");
  net_draw(&n, 7, &rng);
  net_run(&n);
  net_expect(&n, most, what);
  net_close(&n);
  bed_free(b);
}

static void test_perceptron(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_mlp(b.g, (const uint32_t[]){50, 33, 20, 10}, 3, 21, false), CT_OK);
  compare(&b, 0.03, "perceptron");
}

static void test_perceptron_trains(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_mlp(b.g, (const uint32_t[]){50, 33, 20, 10}, 3, 21, true), CT_OK);
  optimise(&b, &(struct ct_optimise){.schedule = {.rate = 0.1}, .momentum = 0.9});
  compare(&b, 0.25, "perceptron, a step");
}

static void test_perceptron_trains_by_adam(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_mlp(b.g, (const uint32_t[]){50, 33, 20, 10}, 3, 21, true), CT_OK);
  optimise(&b,
           &(struct ct_optimise){
               .optimiser = CT_OPTIMISER_ADAMW, .schedule = {.rate = 0.001}, .weight_decay = 0.01});
  compare(&b, 0.35, "perceptron, a step of AdamW");
}

static void test_lenet5(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "lenet5", 4, false);
  compare(&b, 0.03, "lenet5");
}

static void test_lenet5_trains(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "lenet5", 4, true);
  optimise(&b, &(struct ct_optimise){.schedule = {.rate = 0.1}, .momentum = 0.9});
  compare(&b, 0.25, "lenet5, a step");
}

static void test_resnet8(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "resnet8", 2, false);
  compare(&b, 0.05, "resnet8");
}

static void test_resnet8_trains(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "resnet8", 2, true);
  optimise(&b, &(struct ct_optimise){.schedule = {.rate = 0.1}, .momentum = 0.9});
  compare(&b, 0.4, "resnet8, a step");
}

static void test_resnet20(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "resnet20", 1, false);
  compare(&b, 0.08, "resnet20");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_perceptron),
                                     cmocka_unit_test(test_perceptron_trains),
                                     cmocka_unit_test(test_perceptron_trains_by_adam),
                                     cmocka_unit_test(test_lenet5),
                                     cmocka_unit_test(test_lenet5_trains),
                                     cmocka_unit_test(test_resnet8),
                                     cmocka_unit_test(test_resnet8_trains),
                                     cmocka_unit_test(test_resnet20)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
