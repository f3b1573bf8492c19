/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ct_chain_job() adds for a product, on each array, against sums made by hand; that it counts
 * the passes of a loop, and gives up on a program that is too long. That measured jobs keep within
 * the whole sum is test_interference.
 */
#include "ct_tb.h"

#include "ct_build.h"
#include "ct_chain.h"

enum { KT = 2, ROWS = 24, NT = 3, ALL_ROWS = KT * ROWS * NT };

static struct ct_cmd product(bool transposed) {
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, CT_OP_MM);
  CT_PUT(&cmd, MM_KT, KT);
  CT_PUT(&cmd, MM_ROWS, ROWS);
  CT_PUT(&cmd, MM_NT, NT);
  CT_PUT(&cmd, MM_A_TRANS, transposed);
  return cmd;
}

static uint64_t job(const struct ct_chain_core *core, struct ct_cmd *cmd, size_t count) {
  const struct ct_code code = {.cmd = cmd, .count = count};
  return ct_chain_job(core, &code);
}

/* Of two products in a row, the second's part. */
static uint64_t part_of(const struct ct_chain_core *core, struct ct_cmd cmd) {
  struct ct_cmd two[3] = {cmd, cmd, {{0}}}, one[3] = {cmd, {{0}}, {{0}}};
  CT_PUT(&two[2], ALL_OP, CT_OP_END);
  CT_PUT(&one[1], ALL_OP, CT_OP_END);
  return job(core, two, 3) - job(core, one, 3);
}

/* With 8 columns a row of training can have begun a cycle before one of inference may, with 4 three
 * cycles; in the transposer there can be a tile of training, which takes 32. */
static void rows_wait_for_the_rest_of_one(void **state) {
  (void)state;
  static const struct {
    uint32_t cols;
    unsigned more; /* cycles a row */
  } arrays[] = {{16, 0}, {8, 1}, {4, 3}};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) {
    const struct ct_chain_core core = {arrays[i].cols, 4, 8, 0, 1, 1};
    assert_int_equal(part_of(&core, product(false)), arrays[i].more * ALL_ROWS);
    assert_int_equal(part_of(&core, product(true)), arrays[i].more * ALL_ROWS + 32);
  }
}

/* With a floor of 128 training is owed as many rows of the array, and words of A, as inference has.
 * A row takes 16 / columns cycles; with 8 or 4 columns words of A go in turn, too. */
static void training_has_what_it_is_owed(void **state) {
  (void)state;
  static const struct {
    uint32_t cols;
    unsigned times;
  } arrays[] = {{16, 0 + 1 + 1}, {8, 1 + 1 + 2}, {4, 3 + 1 + 4}};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) {
    const struct ct_chain_core core = {arrays[i].cols, 4, 8, 128, 1, 1};
    assert_int_equal(part_of(&core, product(false)), arrays[i].times * ALL_ROWS);
  }
}

static void passes_of_a_loop_count(void **state) {
  (void)state;
  enum { PASSES = 5 };
  const struct ct_chain_core core = {4, 4, 8, 0, 1, 1};
  struct ct_cmd cmd[4] = {{{0}}, product(false), {{0}}, {{0}}};
  CT_PUT(&cmd[0], ALL_OP, CT_OP_LOOP);
  CT_PUT(&cmd[0], CTL_COUNT, PASSES);
  CT_PUT(&cmd[2], ALL_OP, CT_OP_ENDL);
  CT_PUT(&cmd[3], ALL_OP, CT_OP_END);
  const uint64_t often = job(&core, cmd, 4);
  CT_PUT(&cmd[0], CTL_COUNT, 1);
  assert_int_equal(often - job(&core, cmd, 4), (PASSES - 1) * 3 * ALL_ROWS);
  CT_PUT(&cmd[0], CTL_COUNT, 1000000);
  assert_int_equal(job(&core, cmd, 4), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_wait_for_the_rest_of_one),
      cmocka_unit_test(training_has_what_it_is_owed),
      cmocka_unit_test(passes_of_a_loop_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
