/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores with a fault of their own (mutants.sh): the fault campaign must find each, and must find
 * nothing in the same model while the fault is off. Part of `make campaign`.
 */
#include <stdio.h>

#include "ct_commands.h"
#include "ct_damage.h"
#include "ct_flips.h"

static const struct ct_core core = {"mutant", &ct_core_mutant_sim, ct_core_mutant_sim_error,
                                    "dram=8"};

static void none(void *self) {
  ct_core_mutant_choose(self, 0);
}
static void unchecked_bit(void *self) {
  ct_core_mutant_choose(self, 1);
}
static void mute_port(void *self) {
  ct_core_mutant_choose(self, 2);
}
static void loads_anywhere(void *self) {
  ct_core_mutant_choose(self, 3);
}
static void vpu_anywhere(void *self) {
  ct_core_mutant_choose(self, 4);
}
static void dma_anywhere(void *self) {
  ct_core_mutant_choose(self, 5);
}

static void encodes_anything(void *self) {
  ct_core_mutant_choose(self, 6);
}
static void group_is_not_checked(void *self) {
  ct_core_mutant_choose(self, 7);
}

/* How much has to be enough to find it. */
enum { FLIPS = 3000, SHORT_LIVED = 6000, GROUPS = 300, COMMANDS = 200000 };
enum { WITHOUT = 60, WITHOUT_GROUPS = 10, WITHOUT_COMMANDS = 3000 };

static unsigned long flips(void (*start)(void *self), unsigned long count) {
  const struct ct_flips setup = {.core = &core,
                                 .look = ct_core_mutant_look,
                                 .count = count,
                                 .stream = 11,
                                 .start = start,
                                 .stop = true};
  struct ct_flips_result r;
  ct_flips_run(&setup, &r);
  printf("%lu flips, %lu wrong\n", r.flips, r.wrong);
  return r.wrong;
}

static unsigned long groups(void (*start)(void *self), unsigned long count) {
  const struct ct_damage setup = {
      .core = &core, .count = count, .stream = 13, .start = start, .stop = true};
  struct ct_damage_result r;
  ct_damage_run(&setup, &r);
  printf("%lu flips in memory, %lu wrong\n", r.flips, r.wrong);
  return r.wrong;
}

static unsigned long commands(void (*start)(void *self), unsigned long count) {
  const struct ct_commands setup = {
      .core = &core, .count = count, .stream = 12, .start = start, .stop = true};
  struct ct_commands_result r;
  ct_commands_run(&setup, &r);
  printf("%lu commands, %lu wrong\n", r.submitted, r.wrong);
  return r.wrong;
}

static void without_a_fault(void **state) {
  (void)state;
  ct_tb_seed();
  assert_int_equal(flips(none, WITHOUT), 0);
  assert_int_equal(groups(none, WITHOUT_GROUPS), 0);
  assert_int_equal(commands(none, WITHOUT_COMMANDS), 0);
}

static void a_parity_bit_is_not_checked(void **state) {
  (void)state;
  assert_true(flips(unchecked_bit, FLIPS) > 0);
}

static void a_read_port_reports_nothing(void **state) {
  (void)state;
  assert_true(flips(mute_port, FLIPS) > 0);
}

static void a_compressed_store_does_not_look_at_parity(void **state) {
  (void)state;
  assert_true(flips(encodes_anything, SHORT_LIVED) > 0);
}

static void a_group_is_not_checked(void **state) {
  (void)state;
  assert_true(groups(group_is_not_checked, GROUPS) > 0);
}

static void loads_leave_the_scratchpad_window(void **state) {
  (void)state;
  assert_true(commands(loads_anywhere, COMMANDS) > 0);
}

static void the_vector_unit_leaves_the_scratchpad_window(void **state) {
  (void)state;
  assert_true(commands(vpu_anywhere, COMMANDS) > 0);
}

static void loads_and_stores_leave_the_dram_windows(void **state) {
  (void)state;
  assert_true(commands(dma_anywhere, COMMANDS) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_fault),
      cmocka_unit_test(a_parity_bit_is_not_checked),
      cmocka_unit_test(a_read_port_reports_nothing),
      cmocka_unit_test(a_compressed_store_does_not_look_at_parity),
      cmocka_unit_test(a_group_is_not_checked),
      cmocka_unit_test(loads_leave_the_scratchpad_window),
      cmocka_unit_test(the_vector_unit_leaves_the_scratchpad_window),
      cmocka_unit_test(loads_and_stores_leave_the_dram_windows),
  };
  return cmocka_run_group_tests_name("fault mutants", tests, NULL, NULL);
}
