/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device as a transport: its clock, scheduled writes, options, and the plug-in. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_pair.h"

static void open_core(struct ct_rig *rig, const struct ct_core *core, const char *args) {
  ct_rig_open(rig, core->name, core->ops, core->error, args);
}

static uint64_t now(struct ct_rig *rig) {
  uint64_t cycle;
  assert_int_equal(rig->ops->now(rig->self, &cycle), 0);
  return cycle;
}

/* A program of one END. */
static void submit_end(struct ct_rig *rig, unsigned ctx, uint32_t tag) {
  static const struct ct_gen_prog end = {.cmds = {{{CT_OP_END}}}, .count = 1};
  const struct ct_rig_job job = {.prog = &end, .tag = tag};
  ct_rig_submit(rig, ctx, &job);
}

static void clock_is_the_cycle_register(void **state) {
  struct ct_rig rig;
  open_core(&rig, *state, "dram=8");
  for (unsigned i = 0; i < 20; ++i) {
    const uint64_t before = now(&rig), value = ct_rig_read(&rig, CT_REG_CYCLE_LO);
    assert_in_range(value, before, now(&rig) - 1);
    assert_int_equal(ct_rig_read(&rig, CT_REG_CYCLE_HI), 0);
    const uint64_t until = now(&rig) + i;
    assert_int_equal(rig.ops->wait(rig.self, until, -1), 0);
    assert_int_equal(now(&rig), until);
    assert_int_equal(rig.ops->wait(rig.self, until - 1, -1), 0); /* has passed */
    assert_int_equal(now(&rig), until);
  }
  ct_rig_close(&rig);
}

/* The doorbell's cycle in the completion is the one that was asked for, whatever the host does
 * meanwhile. */
static void scheduled_writes_are_exact(void **state) {
  enum { N = 12 };
  struct ct_rig rig;
  uint64_t at[2][N];
  ct_rng rng = ct_rng_make(9);
  open_core(&rig, *state, "dram=8,stall=30");
  const uint64_t start = now(&rig) + 200;
  for (unsigned i = 0; i < N; ++i)
    for (unsigned c = 0; c < 2; ++c)
      at[c][i] = start + 300 * i + 150 * c + ct_rng_below(&rng, 100);
  for (unsigned i = N; i-- > 0;) { /* latest first: the queue is sorted by cycle */
    for (unsigned c = 0; c < 2; ++c) {
      const uint32_t tail = CT_CTX_BASE + c * CT_CTX_STRIDE + CT_CREG_TAIL;
      assert_int_equal(rig.ops->reg_write_at(rig.self, at[c][i], tail, i + 1), 0);
    }
  }
  for (unsigned i = 0; i < N; ++i)
    for (unsigned c = 0; c < 2; ++c)
      submit_end(&rig, c, i);
  while (now(&rig) < start + 300 * N + 400) { /* the bus is never quiet */
    ct_rig_write(&rig, CT_REG_FLOOR, ct_rng_below(&rng, 256));
    ct_rig_read(&rig, CT_REG_CYCLE_LO);
  }
  for (unsigned i = 0; i < N; ++i) {
    for (unsigned c = 0; c < 2; ++c) {
      const struct ct_rig_cpl cpl = ct_rig_reap(&rig, c, 100000);
      assert_int_equal(cpl.tag, i);
      assert_int_equal(cpl.arrive, at[c][i] + 1); /* a write counts from the next cycle on */
    }
  }
  ct_rig_close(&rig);
}

static void scheduled_writes_keep_their_order(void **state) {
  struct ct_rig rig;
  open_core(&rig, *state, "dram=8");
  const uint64_t at = now(&rig) + 100;
  for (uint32_t i = 0; i < 5; ++i)
    assert_int_equal(rig.ops->reg_write_at(rig.self, at, CT_REG_FLOOR, 10 + i), 0);
  assert_int_equal(rig.ops->wait(rig.self, at, -1), 0);
  assert_int_equal(ct_rig_read(&rig, CT_REG_FLOOR), 10); /* the others are still to come */
  ct_rig_pass(&rig, 50);
  assert_int_equal(ct_rig_read(&rig, CT_REG_FLOOR), 14);
  assert_int_equal(rig.ops->reg_write_at(rig.self, 1, CT_REG_FLOOR, 77), 0); /* long past */
  ct_rig_pass(&rig, 2);
  assert_int_equal(ct_rig_read(&rig, CT_REG_FLOOR), 77);
  assert_int_equal(rig.ops->reg_write_at(rig.self, 1, 0x1000, 0), CT_ERR_ARG);
  assert_int_equal(rig.ops->reg_write_at(rig.self, 1, 2, 0), CT_ERR_ARG);
  ct_rig_close(&rig);
}

static void waits_for_the_interrupt(void **state) {
  struct ct_rig rig;
  open_core(&rig, *state, "dram=8");
  submit_end(&rig, 1, 5);
  ct_rig_ring(&rig, 1);
  assert_int_equal(rig.ops->wait(rig.self, now(&rig) + 3000, -1), 0); /* it is not enabled */
  ct_rig_write(&rig, CT_REG_IRQ_ENABLE, 1);
  assert_int_equal(rig.ops->wait(rig.self, now(&rig) + 100, -1), 0);
  ct_rig_write(&rig, CT_REG_IRQ_ENABLE, 2);
  assert_int_equal(rig.ops->wait(rig.self, CT_NO_CYCLE, -1), 1);
  assert_int_equal(ct_rig_reap(&rig, 1, 100).tag, 5);
  ct_rig_pass(&rig, 2); /* what was reaped counts from the next cycle on */
  /* Polling lets time pass; a timeout ends a wait that nothing else would end. */
  const uint64_t before = now(&rig);
  assert_int_equal(rig.ops->wait(rig.self, CT_NO_CYCLE, 0), 0);
  assert_true(now(&rig) > before);
  assert_int_equal(rig.ops->wait(rig.self, CT_NO_CYCLE, 30), 0);
  ct_rig_close(&rig);
}

/* One seed, one behaviour, to the cycle; another seed, another. */
static void runs_repeat(void **state) {
  static const char *const args[] = {"dram=8,stall=40,seed=5", "dram=8,stall=40,seed=5",
                                     "dram=8,stall=40,seed=6"};
  uint64_t end[3];
  struct ct_gen_prog *prog = test_malloc(sizeof *prog);
  ct_gen_setup(prog, ct_rig_unit(0, CT_RIG_IN));
  for (unsigned i = 0; i < 3; ++i) {
    struct ct_rig rig;
    const struct ct_rig_job job = {.prog = prog};
    open_core(&rig, *state, args[i]);
    ct_rig_submit(&rig, 0, &job);
    ct_rig_ring(&rig, 0);
    end[i] = ct_rig_reap(&rig, 0, 100000).end;
    ct_rig_close(&rig);
  }
  assert_int_equal(end[0], end[1]);
  assert_int_not_equal(end[0], end[2]);
  test_free(prog);
}

static void memory_has_the_size_asked_for(void **state) {
  struct ct_rig rig;
  uint8_t byte = 1;
  open_core(&rig, *state, "dram=16");
  assert_int_equal(ct_rig_read(&rig, CT_REG_DRAM_BYTES), 16);
  assert_int_equal(rig.ops->mem_write(rig.self, (16 << 20) - 1, &byte, 1), 0);
  assert_int_equal(rig.ops->mem_write(rig.self, 16 << 20, &byte, 1), CT_ERR_ARG);
  assert_int_equal(rig.ops->mem_read(rig.self, (16 << 20) - 1, &byte, 2), CT_ERR_ARG);
  assert_int_equal(rig.ops->mem_read(rig.self, UINT64_MAX, &byte, 2), CT_ERR_ARG);
  ct_rig_close(&rig);
}

struct wrong {
  const char *args, *named; /* what the sentence has to name */
};

static void refuses(const struct ct_transport_ops *ops, const struct wrong *w, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    void *self = NULL;
    char why[256] = "";
    assert_true(ops->open(w[i].args, &self, why, sizeof why) < 0);
    if (!strstr(why, w[i].named)) fail_msg("\"%s\": \"%s\"", w[i].args, why);
  }
}

static void refuses_wrong_options(void **state) {
  static const struct wrong sim[] = {
      {"foo=1", "foo"},
      {"stall=100", "stall"},
      {"stall=", "stall"},
      {"latency=0", "latency"},
      {"bandwidth=17", "bandwidth"},
      {"seed=-1", "seed"},
      {"seed=1x", "seed"},
      {"dram", "dram"},
      {"dram=0", "dram"},
      {"stall=5,,latency=3", "\"\""},
      {"dram=8,bar", "bar"},
  };
  static const struct wrong emu[] = {
      {"spm=1000", "spm"}, {"spm=64", "spm"}, {"cols=17", "cols"}, {"stall=5", "stall"}};
  const struct ct_core *core = *state;
  refuses(core->ops, sim, sizeof sim / sizeof *sim);
  refuses(&ct_transport_emu, emu, sizeof emu / sizeof *emu);
}

/* The plug-in chooses the core. */
static void plug_in(void **state) {
  (void)state;
  char path[512];
  const char *build = getenv("BUILD");
  snprintf(path, sizeof path, "%s/lib/coltrain/sim.so", build ? build : "build");
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib) fail_msg("%s", dlerror());
  const struct ct_transport_ops *(*plugin)(void);
  *(void **)&plugin = dlsym(lib, "ct_transport_plugin");
  assert_non_null(plugin);
  const struct ct_transport_ops *ops = plugin();
  static const struct wrong wrong[] = {
      {"core=7x7", "core=7x7"}, {"core=16x8,foo=1", "foo"}, {"wave=", "wave"}, {"core=", "core"}};
  refuses(ops, wrong, sizeof wrong / sizeof *wrong);
  static const char *const args[] = {"dram=8", "dram=8,core=16x16", "core=16x8,dram=8"};
  for (unsigned i = 0; i < 3; ++i) {
    struct ct_rig rig;
    ct_rig_open(&rig, "sim", ops, NULL, args[i]);
    assert_int_equal(ct_rig_read(&rig, CT_REG_ID), CT_ID_VALUE);
    assert_int_equal(ct_rig_read(&rig, CT_REG_GEOMETRY), i == 2 ? 0x10040810 : 0x10101010);
    assert_int_equal(ct_rig_read(&rig, CT_REG_SPM_WORDS), i == 2 ? 8192 : 65536);
    submit_end(&rig, 0, 3);
    ct_rig_ring(&rig, 0);
    assert_int_equal(ct_rig_reap(&rig, 0, 10000).tag, 3);
    ct_rig_close(&rig);
  }
  dlclose(lib);
}

static const struct {
  const char *name;
  CMUnitTestFunction test;
} all[] = {
    {"the clock is the CYCLE register", clock_is_the_cycle_register},
    {"scheduled writes are exact", scheduled_writes_are_exact},
    {"scheduled writes keep their order", scheduled_writes_keep_their_order},
    {"waits for the interrupt", waits_for_the_interrupt},
    {"runs repeat", runs_repeat},
    {"the memory has the size asked for", memory_has_the_size_asked_for},
    {"wrong options are refused", refuses_wrong_options},
};

enum { COUNT = sizeof all / sizeof *all, TESTS = CT_CORES * COUNT + 1 };

int main(void) {
  char names[TESTS][64];
  struct CMUnitTest tests[TESTS] = {{0}};
  for (size_t i = 0; i < CT_CORES * COUNT; ++i) {
    const struct ct_core *core = &ct_cores[i / COUNT];
    snprintf(names[i], sizeof names[i], "%s: %s", core->name, all[i % COUNT].name);
    tests[i].name = names[i];
    tests[i].test_func = all[i % COUNT].test;
    tests[i].initial_state = (void *)core;
  }
  tests[TESTS - 1] = (struct CMUnitTest)cmocka_unit_test(plug_in);
  ct_tb_seed();
  return cmocka_run_group_tests_name("simulated device", tests, NULL, NULL);
}
