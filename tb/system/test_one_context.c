/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core with one context (Contexts = 1): random programs on it leave what they leave on the
 * emulator, and it says what it has not: no training, nothing at the registers of context 1, no
 * policy.
 *
 * CT_ROUNDS=N: rounds (default 8).
 */
#include <stdlib.h>

#include "ct_pair.h"
#include "ct_sim_one.h"

enum { JOBS = 6, LIMIT = 3000000 };

static const struct ct_core one = {"16x8, one context", &ct_core_one_sim, ct_core_one_sim_error,
                                   "dram=8,spm=8192,cols=8,lanes=4"};

static void random_round(unsigned k, const char *memory) {
  struct ct_pair pair;
  ct_rng rng = ct_rng_make(900 + k);
  struct ct_gen_prog *progs = test_malloc((JOBS + 2) * sizeof *progs);
  const uint32_t in = ct_rig_unit(0, CT_RIG_IN), out = ct_rig_unit(0, CT_RIG_OUT);
  ct_pair_open(&pair, &one, memory);
  ct_pair_fill_input(&pair, 0, &rng);
  ct_gen_setup(&progs[0], in);
  for (unsigned j = 1; j <= JOBS; ++j)
    ct_gen_random(&rng, &progs[j], 20 + ct_rng_below(&rng, 120), in, out);
  ct_gen_dump(&progs[JOBS + 1], out);
  for (unsigned j = 0; j < JOBS + 2; ++j) {
    const struct ct_rig_job job = {.prog = &progs[j],
                                   .tag = 100 + j,
                                   .version = 7 * j,
                                   .flags = progs[j].overlap ? CT_FLAG_OVERLAP : 0};
    ct_pair_submit(&pair, 0, &job);
    /* Setup and dump alone: the others may overlap. */
    if (j == 0 || j >= JOBS) ct_pair_ring(&pair, 0);
    if (j != 0 && j < JOBS) continue;
    for (unsigned i = j == JOBS ? 1 : j; i <= j; ++i) {
      const struct ct_rig_cpl core = ct_rig_reap(&pair.rig[0], 0, LIMIT);
      const struct ct_rig_cpl emu = ct_rig_reap(&pair.rig[1], 0, LIMIT);
      assert_true(ct_same_completions(&core, &emu));
      assert_int_equal(core.code, CT_DEV_OK);
      assert_int_equal(core.tag, 100 + i);
    }
    assert_true(ct_same_out(&pair, 0, j ? j > JOBS ? "dump" : "jobs" : "setup"));
  }
  test_free(progs);
  ct_pair_close(&pair);
}

static void programs(void **state) {
  (void)state;
  static const char *const memory[] = {"", "latency=100", "stall=40", "latency=20,stall=10"};
  const char *rounds = getenv("CT_ROUNDS");
  for (unsigned k = 0, n = rounds ? (unsigned)atoi(rounds) : 8; k < n; ++k)
    random_round(k, memory[k % 4]);
}

/* What is written there has no effect, and what is read is 0. */
static void what_is_not_there(void **state) {
  (void)state;
  struct ct_rig rig;
  ct_rig_open(&rig, one.name, one.ops, one.error, "dram=8");
  assert_int_equal(ct_rig_read(&rig, CT_REG_FEATURES) & CT_FEATURE_TRAINER, 0);
  for (uint32_t creg = 0; creg < 0x80; creg += 4) {
    ct_rig_cwrite(&rig, 1, creg, UINT32_MAX);
    assert_int_equal(ct_rig_cread(&rig, 1, creg), 0);
  }
  ct_rig_write(&rig, CT_REG_POLICY, 3);
  ct_rig_write(&rig, CT_REG_FLOOR, 200);
  assert_int_equal(ct_rig_read(&rig, CT_REG_POLICY), 0);
  assert_int_equal(ct_rig_read(&rig, CT_REG_FLOOR), 0);
  ct_rig_pass(&rig, 200);
  for (unsigned i = 0; i < CT_NUM_CNT; ++i)
    assert_int_equal(ct_rig_counter(&rig, 1, i), 0);
  /* A global reset does not wait for a context that is not there. */
  ct_rig_write(&rig, CT_REG_CTRL, 1);
  ct_rig_pass(&rig, 100);
  assert_int_equal(ct_rig_read(&rig, CT_REG_CTRL) & 1, 0);
  ct_rig_close(&rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs),
                                     cmocka_unit_test(what_is_not_there)};
  return cmocka_run_group_tests_name("one context", tests, NULL, NULL);
}
