/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks with several members: random graphs and numbers of members, trained by jobs for ranges
 * of them beside networks of their own. Weights, states and outputs are the same bytes, also of
 * members that a range leaves out. Programs for groups are proved race-free.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_compile.h"
#include "ct_racecheck.h"
#include "network_bed.h"

enum { MOST = 11 };

/* A network of members, and networks alone beside it, one for each, on emu:. */
struct rig {
  struct bed b;
  struct net_bed all, alone[MOST];
  uint32_t members;
  uint64_t step[MOST];
  struct ct_schedule rate[MOST];
  bool shared;
  char text[1024];
};

static void ok(const struct rig *r, ct_device *dev, int err, const char *what) {
  if (err) fail_msg("%s: %s: %s", what, ct_last_error(dev), r->text);
}

static bool try_open(struct rig *r, const char *uri) {
  const struct ct_network_options options = {
      .seed = r->b.seed, .members = r->members, .shared = r->shared};
  r->all = (struct net_bed){.bed = &r->b};
  if (ct_open(uri, &r->all.dev)) fail_msg("%s: %s", uri, ct_last_error(NULL));
  const int err = ct_network_create(r->all.dev, r->b.g, &options, &r->all.net);
  if (err == CT_ERR_NO_SPACE && strstr(ct_last_error(r->all.dev), "words of scratchpad")) {
    ct_close(r->all.dev);
    return false;
  }
  ok(r, r->all.dev, err, "members");
  for (uint32_t m = 0; m < r->members; ++m)
    net_open(&r->alone[m], &r->b, "emu:");
  return true;
}

static void close_all(struct rig *r) {
  net_close(&r->all);
  for (uint32_t m = 0; m < r->members; ++m)
    net_close(&r->alone[m]);
}

static void pick(struct rig *r, uint32_t m) {
  ok(r, r->all.dev, ct_network_select(r->all.net, m), "select");
}

/* Inputs, weights and states of a member, there and alone. Those that are shared are drawn alike. */
static void draw(struct rig *r, uint64_t seed) {
  for (uint32_t m = 0; m < r->members; ++m) {
    for (unsigned both = 0; both < 2; ++both) {
      ct_rng rng = ct_rng_make(seed + (r->shared ? 0 : m));
      pick(r, m);
      net_draw(both ? &r->all : &r->alone[m], seed + 100 + m, &rng);
    }
  }
}

static void new_inputs(struct rig *r, uint64_t seed) {
  for (uint32_t m = 0; m < r->members; ++m)
    for (unsigned both = 0; both < 2; ++both) {
      ct_rng rng = ct_rng_make(seed + (r->shared ? 0 : m));
      pick(r, m);
      net_draw_inputs(both ? &r->all : &r->alone[m], &rng);
    }
}

static void compare(struct rig *r, const char *uri) {
  for (uint32_t m = 0; m < r->members; ++m) {
    pick(r, m);
    if (net_digest(&r->all) != net_digest(&r->alone[m]))
      fail_msg("%s: member %u of %u differs: %s", uri, m, r->members, r->text);
  }
}

/* Waited for, or submitted. */
static void run(struct rig *r, const struct ct_members *how, bool wait) {
  struct ct_event event;
  uint64_t tag;
  if (wait) {
    ok(r, r->all.dev, ct_network_run_members(r->all.net, how), "a run");
    return;
  }
  const int err = ct_network_submit_members(r->all.net, how, &tag);
  if (err == CT_ERR_NO_SPACE) { /* too many jobs for one work */
    run(r, how, true);
    return;
  }
  ok(r, r->all.dev, err, "submitting");
  ok(r, r->all.dev, ct_reap(r->all.dev, &event, CT_FOREVER), "reaping");
  assert_int_equal(event.error, CT_OK);
  assert_true(event.tag == tag);
}

/* A range of members, each with a rate and a step of its own; the others are frozen. */
static void some(struct rig *r, ct_rng *rng) {
  const uint32_t first = ct_rng_below(rng, r->members);
  const struct ct_members how = {.first = first,
                                 .count = 1 + ct_rng_below(rng, r->members - first),
                                 .queue = ct_rng_below(rng, 4) ? CT_TRAINING : CT_INFERENCE,
                                 .steps = r->step + first,
                                 .schedules = r->rate + first};
  run(r, &how, ct_rng_below(rng, 2));
  for (uint32_t m = first; m < first + how.count; ++m) {
    const struct ct_members one = {.count = 1,
                                   .queue = CT_TRAINING,
                                   .step = r->step[m]++,
                                   .schedules = &r->rate[m]};
    ok(r, r->alone[m].dev, ct_network_run_members(r->alone[m].net, &one), "alone");
  }
}

static bool try_on(struct rig *r, const char *uri, unsigned rounds, ct_rng *rng) {
  const uint64_t seed = ct_rng_u64(rng);
  if (!try_open(r, uri)) return false;
  draw(r, seed);
  for (uint32_t m = 0; m < r->members; ++m) {
    r->step[m] = 0;
    r->rate[m] = (struct ct_schedule){.rate = 0.01 * (1 + ct_rng_below(rng, 16))};
  }
  for (unsigned i = 0; i < rounds; ++i) {
    some(r, rng);
    compare(r, uri);
    if (i % 2) new_inputs(r, seed + i);
  }
  close_all(r);
  return true;
}

static void random_rig(struct rig *r, const struct net_shape *shape, uint32_t most, ct_rng *rng) {
  *r = (struct rig){.members = 2 + ct_rng_below(rng, most - 1), .shared = ct_rng_below(rng, 2)};
  net_random(&r->b, shape, rng);
  net_text(&r->b, r->text, sizeof r->text);
  if (getenv("SHOW")) printf("%u members: %s\n", r->members, r->text);
}

/* ---- Programs ------------------------------------------------------------------------------ */

/* What a region of all members takes. */
static uint64_t region(const struct ct_compiled *c, const struct rig *r, unsigned reg) {
  if (reg == CT_ARG_LASTING) return c->lasting * r->members;
  if (reg == CT_ARG_ARENA) return c->arena * r->members;
  for (size_t i = 0; i < c->externals; ++i)
    if (c->external[i].reg == reg) return c->external[i].units * r->members;
  return 0;
}

static void prove(const struct rig *r, const struct ct_compiled *c, const struct ct_stage *s,
                  uint32_t spm_words) {
  char why[256];
  for (size_t i = 0; i < s->group.count; ++i) {
    struct ct_racecheck check = {.cmds = s->group.job[i].cmd,
                                 .count = s->group.job[i].count,
                                 .spm_words = spm_words,
                                 .depth = 16,
                                 .spm_holds_data = i > 0};
    uint32_t at = 32;
    for (unsigned reg = 1; reg < CT_ARG_SCALAR; ++reg) {
      check.args[reg - 1] = at;
      at += (uint32_t)region(c, r, reg);
    }
    check.dram_units = at;
    check.args[CT_ARG_PASSES - 1] = r->members / s->round;
    for (check.eager = 0; check.eager <= 6 && check.args[CT_ARG_PASSES - 1]; ++check.eager)
      if (!ct_racecheck(&check, NULL, why, sizeof why))
        fail_msg("%s (%s), job %zu: %s: %s", s->node, s->op, i, why, r->text);
  }
}

static void prove_all(const struct rig *r, uint32_t words, uint32_t cols, size_t found[2]) {
  const struct ct_cycles_core core = {.cols = cols, .lanes = 16, .walks = true};
  const struct ct_compile_options options = {
      .spm_words = words, .walks = true, .members = true, .shared = r->shared, .core = &core};
  struct ct_compiled c;
  const int err = ct_compile(r->b.g, &options, &c);
  for (size_t i = 0; i < c.stages && !err; ++i) {
    found[0] += c.stage[i].codes.count > 0;
    found[1] += c.stage[i].round > 0;
    prove(r, &c, &c.stage[i], words);
  }
  assert_true(err == CT_OK || err == CT_ERR_NO_SPACE);
  ct_compiled_free(&c);
}

/* No word, register or tile is handed on from member to member but by semaphores. */
static void test_races(void **state) {
  (void)state;
  const struct net_shape shape = {.training = true,
                                  .most_layers = 4,
                                  .most_channels = 40,
                                  .most_size = 10,
                                  .most_images = 5};
  ct_rng rng = ct_rng_make(11);
  size_t found[2] = {0};
  for (int i = 0, draws = ct_tb_draws(12); i < draws; ++i) {
    struct rig r;
    random_rig(&r, &shape, 8, &rng);
    prove_all(&r, i % 3 == 2 ? 1024 : 6144, i % 2 ? 8 : 16, found);
    bed_free(&r.b);
  }
  printf("%zu kernels, %zu with programs for members\n", found[0], found[1]);
  assert_true(found[1] * 2 > found[0]);
}

/* ---- Bits ---------------------------------------------------------------------------------- */

static void drawn_on(const char *uri, const struct net_shape *like, uint32_t most, int draws,
                     unsigned rounds, ct_rng *rng) {
  int done = 0;
  for (int i = 0; done < draws; ++i) {
    struct net_shape shape = *like;
    struct rig r;
    if (i == 4 * draws + 8) fail_msg("%s is too small for nearly all of them", uri);
    shape.training = i % 4 != 3;
    random_rig(&r, &shape, most, rng);
    done += try_on(&r, uri, rounds, rng);
    bed_free(&r.b);
  }
}

static void test_emulated(void **state) {
  (void)state;
  const struct net_shape shape = {
      .most_layers = 4, .most_channels = 40, .most_size = 12, .most_images = 6};
  ct_rng rng = ct_rng_make(12);
  drawn_on("emu:", &shape, MOST, ct_tb_draws(12), 4, &rng);
  drawn_on("emu:core=16x8", &shape, MOST, ct_tb_draws(6), 4, &rng);
}

static void test_simulated(void **state) {
  (void)state;
  const struct net_shape shape = {
      .most_layers = 3, .most_channels = 33, .most_size = 6, .most_images = 4};
  ct_rng rng = ct_rng_make(13);
  drawn_on("sim:stall=25", &shape, 5, ct_tb_draws(2), 3, &rng);
  drawn_on("sim:core=16x8,stall=25", &shape, 5, ct_tb_draws(2), 3, &rng);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_races),
                                     cmocka_unit_test(test_emulated),
                                     cmocka_unit_test(test_simulated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
