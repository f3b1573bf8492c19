/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks with several members: random graphs and numbers of members, trained by jobs for ranges
 * of them beside networks of their own. Weights, states and outputs are the same bytes, also of
 * members that a range leaves out. Programs for groups are proved race-free.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ct_compile.h"
#include "ct_file.h"
#include "ct_network.h"
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

/* Inputs, weights and states of a member, there and alone. Those that are shared are drawn alike.
 */
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
    const struct ct_members one = {
        .count = 1, .queue = CT_TRAINING, .step = r->step[m]++, .schedules = &r->rate[m]};
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
  for (size_t i = 0; i < s->group.codes.count; ++i) {
    struct ct_racecheck check = {.cmds = s->group.codes.job[i].cmd,
                                 .count = s->group.codes.job[i].count,
                                 .spm_words = spm_words,
                                 .depth = 16,
                                 .spm_holds_data = i > 0};
    uint32_t at = 32;
    for (unsigned reg = 1; reg < ct_compiled_group_reg(c); ++reg) {
      check.args[reg - 1] = at;
      at += (uint32_t)region(c, r, reg);
    }
    check.dram_units = at;
    check.args[ct_compiled_group_reg(c) - 1] = r->members / s->group.round;
    for (check.eager = 0; check.eager <= 6 && check.args[ct_compiled_group_reg(c) - 1];
         ++check.eager)
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
    found[1] += c.stage[i].group.round > 0;
    prove(r, &c, &c.stage[i], words);
  }
  assert_true(err == CT_OK || err == CT_ERR_NO_SPACE);
  ct_compiled_free(&c);
}

/* No word, register or tile is handed on from member to member but by semaphores. */
static void test_races(void **state) {
  (void)state;
  const struct net_shape shape = {
      .training = true, .most_layers = 4, .most_channels = 40, .most_size = 10, .most_images = 5};
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

/* ---- Beside requests ----------------------------------------------------------------------- */

/* A perceptron that trains, and one of the same shape that answers. */
static ct_graph *perceptron(uint32_t batch, bool training) {
  static const uint32_t widths[] = {48, 64, 32, 10};
  const struct ct_optimise how = {.schedule = {.rate = 0.05}, .momentum = 0.9};
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_true(ct_graph_mlp(g, widths, 3, batch, training) >= 0);
  if (training) assert_int_equal(ct_graph_optimise(g, ct_graph_find(g, "loss"), &how), CT_OK);
  assert_int_equal(ct_graph_check(g), CT_OK);
  return g;
}

enum { GROUP = 6, ANSWERS = 40, BETWEEN = 5000 };

struct desk {
  ct_device *dev;
  ct_network *steps, *answers;
  uint64_t bound; /* what training can add to an answer */
};

static void must(const struct desk *d, int err, const char *what) {
  if (err) fail_msg("%s: %s", what, ct_last_error(d->dev));
}

static void open_desk(struct desk *d, const char *uri) {
  const struct ct_network_options members = {.kernels = true, .members = GROUP},
                                  expect = {.kernels = true, .expect = true};
  ct_graph *g[2] = {perceptron(16, true), perceptron(1, false)};
  *d = (struct desk){.bound = 0};
  if (ct_open(uri, &d->dev)) fail_msg("%s: %s", uri, ct_last_error(NULL));
  must(d, ct_network_create(d->dev, g[0], &members, &d->steps), "members");
  must(d, ct_network_create(d->dev, g[1], &expect, &d->answers), "answers");
  must(d, ct_network_draw(d->answers, 1), "draw");
  for (uint32_t m = 0; m < GROUP; ++m) {
    must(d, ct_network_select(d->steps, m), "select");
    must(d, ct_network_draw(d->steps, 2 + m), "draw");
  }
  for (size_t i = 0; i < ct_network_stages(d->answers); ++i) {
    struct ct_network_stage stage;
    must(d, ct_network_stage(d->answers, i, &stage), "stage");
    assert_true(stage.beside != CT_NO_CYCLE);
    d->bound += stage.beside;
  }
  size_t together = 0; /* it is a group's jobs that requests have beside them */
  for (size_t i = 0; i < ct_network_stages(d->steps); ++i) {
    struct ct_network_stage stage;
    must(d, ct_network_stage(d->steps, i, &stage), "stage");
    together += stage.round > 0;
  }
  assert_true(together > 2);
  ct_graph_free(g[0]);
  ct_graph_free(g[1]);
}

static void close_desk(struct desk *d) {
  ct_network_free(d->steps);
  ct_network_free(d->answers);
  ct_close(d->dev);
}

/* Keeps training busy with runs of so many members, one after the other; 0: no training. */
static void keep_busy(struct desk *d, uint32_t count, uint32_t *next) {
  const struct ct_members run = {.first = *next, .count = count, .queue = CT_TRAINING, .step = 0};
  if (!count) return;
  const int err = ct_network_submit_members(d->steps, &run, NULL);
  if (err == CT_ERR_BUSY || err == CT_ERR_FULL) return;
  must(d, err, "training");
  *next = (*next + count) % GROUP;
}

static int by_size(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

struct waits {
  uint64_t median, longest;
  unsigned steps; /* runs of training that ended meanwhile */
};

static struct waits answer(struct desk *d, uint32_t count) {
  uint64_t took[ANSWERS], at = 0;
  struct waits w = {.steps = 0};
  uint32_t next = 0;
  for (unsigned i = 0; i < ANSWERS; ++i) {
    const struct ct_run run = {.queue = CT_INFERENCE, .cycle = at};
    struct ct_event event;
    uint64_t tag;
    keep_busy(d, count, &next);
    keep_busy(d, count, &next);
    must(d, ct_network_submit(d->answers, &run, &tag), "an answer");
    do {
      must(d, ct_reap(d->dev, &event, CT_FOREVER), "reaping");
      assert_int_equal(event.error, CT_OK);
      w.steps += event.tag != tag;
      if (event.tag != tag) keep_busy(d, count, &next);
    } while (event.tag != tag);
    took[i] = event.end - event.arrive;
    at = event.end + BETWEEN + i; /* wherever training is then */
  }
  for (struct ct_event event; ct_reap(d->dev, &event, CT_FOREVER) == CT_OK;)
    assert_int_equal(event.error, CT_OK);
  qsort(took, ANSWERS, sizeof *took, by_size);
  w.median = took[ANSWERS / 2];
  w.longest = took[ANSWERS - 1];
  return w;
}

/* A job of a group gives way as any does, operation by operation: an answer takes no longer than
 * training's bound allows, and no longer than beside one member at a time but for a tenth. */
static void beside_requests(const char *uri) {
  struct desk d;
  open_desk(&d, uri);
  const struct waits alone = answer(&d, 0), one = answer(&d, 1), group = answer(&d, GROUP);
  printf(
      "%s: an answer takes %llu, %llu at most; beside members %llu, %llu; beside a group %llu, "
      "%llu; bound + %llu\n",
      uri, (unsigned long long)alone.median, (unsigned long long)alone.longest,
      (unsigned long long)one.median, (unsigned long long)one.longest,
      (unsigned long long)group.median, (unsigned long long)group.longest,
      (unsigned long long)d.bound);
  assert_true(one.steps > 0 && group.steps > 0);
  assert_true(group.longest <= alone.longest + d.bound);
  assert_true(group.median <= one.median + one.median / 10);
  assert_true(group.longest <= one.longest + one.longest / 10);
  close_desk(&d);
}

static void test_beside_requests(void **state) {
  (void)state;
  beside_requests("sim:");
  beside_requests("sim:core=16x8");
}

/* ---- What is refused ----------------------------------------------------------------------- */

static void expect(struct desk *d, int want, int got, const char *words) {
  assert_int_equal(got, want);
  if (!strstr(ct_last_error(d->dev), words))
    fail_msg("\"%s\" is not in: %s", words, ct_last_error(d->dev));
}

static void test_refused(void **state) {
  (void)state;
  struct desk d;
  ct_frame *frame;
  ct_network *n;
  uint64_t tag;
  open_desk(&d, "emu:");
  ct_graph *g = perceptron(1, false);
  const struct ct_network_options many = {.members = 257};
  expect(&d, CT_ERR_ARG, ct_network_create(d.dev, g, &many, &n), "256 are the most");
  ct_graph_free(g);
  expect(&d, CT_ERR_ARG, ct_network_select(d.steps, GROUP), "the network has 6");
  expect(&d, CT_ERR_UNSUPPORTED, ct_frame_create(d.steps, &frame), "6 members");
  const struct ct_members none = {.first = 2, .queue = CT_TRAINING},
                          far = {.first = 2, .count = GROUP - 1, .queue = CT_TRAINING},
                          two = {.first = 1, .count = 2, .queue = CT_TRAINING},
                          others = {.first = 3, .count = 3, .queue = CT_TRAINING},
                          spoilt = {.count = 1, .queue = CT_TRAINING, .reserved = {1}};
  expect(&d, CT_ERR_ARG, ct_network_run_members(d.steps, &none), "0 members from 2 on");
  expect(&d, CT_ERR_ARG, ct_network_run_members(d.steps, &far), "5 members from 2 on");
  expect(&d, CT_ERR_ARG, ct_network_run_members(d.steps, &spoilt), "reserved");
  must(&d, ct_network_submit_members(d.steps, &two, &tag), "two");
  must(&d, ct_network_submit_members(d.steps, &others, NULL), "others");
  const int err = ct_network_submit_members(d.steps, &two, NULL);
  if (err) expect(&d, CT_ERR_BUSY, err, "some of these members"); /* emu: may have ended it */
  ct_network_free(d.steps); /* runs are under way, or not yet reaped */
  d.steps = NULL;
  for (struct ct_event event; ct_reap(d.dev, &event, CT_FOREVER) == CT_OK;)
    assert_int_equal(event.error, CT_OK);
  close_desk(&d);
}

/* Everything else means the member that was selected; a member's file is a network like any. */
static void test_selected(void **state) {
  (void)state;
  char path[64];
  struct desk d;
  struct ct_network_info info;
  float w[2][64 * 48];
  ct_network *alone;
  open_desk(&d, "emu:");
  const int tensor = ct_graph_find(ct_network_graph(d.steps), "fc1.weight");
  must(&d, ct_network_select(d.steps, 4), "select");
  must(&d, ct_network_run(d.steps, CT_TRAINING, 0), "one alone");
  const struct ct_members run = {.first = 3, .count = 2, .queue = CT_TRAINING, .step = 1};
  must(&d, ct_network_run_members(d.steps, &run), "two");
  for (uint32_t m = 2; m < 5; ++m) {
    must(&d, ct_network_select(d.steps, m), "select");
    must(&d, ct_network_info(d.steps, &info), "info");
    assert_int_equal(info.members, GROUP);
    assert_int_equal(info.steps, m - 2);
    assert_int_equal(info.seed, 2 + m);
  }
  snprintf(path, sizeof path, "/tmp/ct-members-%ld.ctm", (long)getpid());
  must(&d, ct_network_save(d.steps, path), "saving");
  must(&d, ct_network_load(d.dev, path, NULL, &alone), "loading");
  must(&d, ct_network_info(alone, &info), "info");
  assert_int_equal(info.steps, 2);
  assert_int_equal(info.members, 1);
  const struct ct_members last = {.first = 4, .count = 1, .queue = CT_TRAINING, .step = 2};
  must(&d, ct_network_run_members(d.steps, &last), "the member");
  must(&d, ct_network_run(alone, CT_TRAINING, 2), "its copy");
  must(&d, ct_network_read(d.steps, tensor, w[0], 64 * 48), "read");
  must(&d, ct_network_read(alone, tensor, w[1], 64 * 48), "read");
  remove(path);
  assert_memory_equal(w[0], w[1], sizeof w[0]);
  ct_network_free(alone);
  close_desk(&d);
}

/* What is made of weights alone is made anew for members whose weights were written, whoever else
 * has run meanwhile. */
static void test_once(void **state) {
  (void)state;
  enum { N = 20, THREE = 3 };
  struct bed b;
  struct rig r = {.members = THREE};
  bed_make(&b);
  const int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(4, N));
  const int w = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(1, N));
  const int y = BED_ADD(&b, "add", BED_IN(x, BED_ADD(&b, "relu", BED_IN(w))));
  assert_true(ct_graph_result(b.g, y) >= 0);
  bed_check(&b);
  r.b = b;
  assert_true(try_open(&r, "emu:"));
  draw(&r, 5);
  static const struct ct_members run[] = {{.first = 0, .count = 2, .queue = CT_INFERENCE},
                                          {.first = 1, .count = 2, .queue = CT_INFERENCE},
                                          {.first = 0, .count = 3, .queue = CT_INFERENCE}};
  for (unsigned i = 0; i < 3; ++i) {
    ok(&r, r.all.dev, ct_network_run_members(r.all.net, &run[i]), "members");
    for (uint32_t m = run[i].first; m < run[i].first + run[i].count; ++m)
      net_run_device(&r.alone[m], 0);
    if (i) compare(&r, "emu:");
    float other[N] = {[3] = 1.5f + (float)i, [19] = -2};
    pick(&r, 1);
    ok(&r, r.all.dev, ct_network_write(r.all.net, w, other, N), "write");
    ok(&r, r.alone[1].dev, ct_network_write(r.alone[1].net, w, other, N), "write");
    pick(&r, 2);
  }
  close_all(&r);
  bed_free(&r.b);
}

/* ---- What belongs to whom ------------------------------------------------------------------- */

/* A perceptron that is trained, with so many members. */
static ct_network *perceptrons(ct_device *dev, uint32_t members) {
  static const uint32_t widths[] = {20, 12, 4};
  static const struct ct_optimise how = {.schedule = {.rate = 0.1}, .momentum = 0.9};
  ct_graph *g;
  ct_network *n = NULL;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_mlp(g, widths, 2, 4, true), CT_OK);
  assert_int_equal(ct_graph_optimise(g, ct_graph_find(g, "loss"), &how), CT_OK);
  assert_int_equal(ct_graph_check(g), CT_OK);
  const struct ct_network_options options = {.members = members};
  if (ct_network_create(dev, g, &options, &n)) fail_msg("%s", ct_last_error(dev));
  ct_graph_free(g);
  return n;
}

static uint64_t steps_of(ct_network *n, uint32_t member) {
  struct ct_network_info info;
  assert_int_equal(ct_network_select(n, member), CT_OK);
  assert_int_equal(ct_network_info(n, &info), CT_OK);
  return info.steps;
}

/* A run is the member's that was selected when it was submitted, whoever is when it ends. */
static void test_selected_during_a_run(void **state) {
  (void)state;
  struct ct_event event;
  uint64_t tag;
  ct_device *dev;
  assert_int_equal(ct_open("sim:", &dev), CT_OK);
  ct_network *n = perceptrons(dev, 3);
  for (uint32_t m = 0; m < 3; ++m) {
    assert_int_equal(ct_network_select(n, m), CT_OK);
    assert_int_equal(ct_network_draw(n, 1), CT_OK);
  }
  assert_int_equal(ct_network_select(n, 0), CT_OK);
  assert_int_equal(ct_network_submit(n, &(struct ct_run){.queue = CT_TRAINING}, &tag), CT_OK);
  assert_int_equal(ct_network_select(n, 2), CT_OK);
  assert_int_equal(ct_wait(dev, tag, &event, CT_FOREVER), CT_OK);
  assert_int_equal(steps_of(n, 2), 0);
  assert_int_equal(steps_of(n, 0), 1);
  ct_network_free(n);
  ct_close(dev);
}

/* Members go by kernels, and so does what is saved of one. */
static void test_a_file_of_a_perceptron(void **state) {
  (void)state;
  char path[] = "/tmp/ct_members.XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  ct_device *dev;
  ct_network *back = NULL;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  ct_network *n = perceptrons(dev, 2), *alone = perceptrons(dev, 1);
  assert_int_equal(ct_network_stages(alone), 1);
  assert_true(ct_network_stages(n) > 1);
  assert_int_equal(ct_network_draw(n, 1), CT_OK);
  assert_int_equal(ct_network_save(n, path), CT_OK);
  if (ct_network_load(dev, path, NULL, &back)) fail_msg("%s", ct_last_error(dev));
  assert_int_equal(ct_network_stages(back), ct_network_stages(n));
  ct_network_free(back);
  ct_network_free(alone);
  ct_network_free(n);
  ct_close(dev);
  unlink(path);
}

/* More inputs than jobs have arguments: members cannot share them. */
static void test_too_many_to_share(void **state) {
  (void)state;
  enum { INPUTS = 14 };
  struct bed b;
  ct_device *dev;
  ct_network *n = NULL;
  bed_make(&b);
  int sum = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(4, 16));
  for (int i = 1; i < INPUTS; ++i)
    sum = BED_ADD(&b, "add", BED_IN(sum, bed_tensor(&b, CT_ROLE_INPUT, SHAPE(4, 16))));
  ct_graph_result(b.g, sum);
  bed_check(&b);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct ct_network_options apart = {.members = 3}, shared = {.members = 3, .shared = true};
  assert_int_equal(ct_network_create(dev, b.g, &shared, &n), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(dev), "members cannot share them"));
  assert_int_equal(ct_network_create(dev, b.g, &apart, &n), CT_OK);
  ct_network_free(n);
  ct_close(dev);
  bed_free(&b);
}

/* ---- Numbers of updates, masks, files ---------------------------------------------------------
 */

enum { KIN = 5, BATCH = 6 };

/* Dropout between two layers, by Adam or with momentum; decay is in the programs. */
static ct_graph *dropping(const struct ct_optimise *how) {
  ct_graph *g;
  struct ct_attr rate = {"rate", 1, {0.25}};
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int x = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = {2, {BATCH, 20}}});
  const struct ct_new_tensor label = {.name = "y", .role = CT_ROLE_LABEL, .shape = {2, {BATCH, 7}}},
                             w1 = {.role = CT_ROLE_WEIGHT,
                                   .initial = CT_INITIAL_HE,
                                   .shape = {2, {24, 20}}},
                             w2 = {.role = CT_ROLE_WEIGHT,
                                   .initial = CT_INITIAL_HE,
                                   .shape = {2, {7, 24}}};
  const int y = ct_graph_tensor(g, &label);
  int t = ct_graph_add(
      g, &(struct ct_new_node){
             .op = "linear", .inputs = (int[]){x, ct_graph_tensor(g, &w1)}, .input_count = 2});
  t = ct_graph_add(
      g, &(struct ct_new_node){
             .op = "dropout", .inputs = &t, .input_count = 1, .attrs = &rate, .attr_count = 1});
  t = ct_graph_add(
      g, &(struct ct_new_node){
             .op = "linear", .inputs = (int[]){t, ct_graph_tensor(g, &w2)}, .input_count = 2});
  t = ct_graph_add(
      g, &(struct ct_new_node){.op = "cross_entropy", .inputs = (int[]){t, y}, .input_count = 2});
  assert_true(ct_graph_result(g, t) >= 0);
  if (ct_graph_optimise(g, t, how) || ct_graph_check(g)) fail_msg("%s", ct_graph_error(g));
  return g;
}

/* Of Adam a job has numbers for two members, of momentum for five. */
static void draw_updates(struct ct_optimise *how, enum ct_optimiser optimiser) {
  for (unsigned m = 0; m < KIN; ++m)
    how[m] =
        (struct ct_optimise){.optimiser = optimiser,
                             .schedule = {.rate = 0.01 * (m + 1),
                                          .kind = m % 2 ? CT_SCHEDULE_COSINE : CT_SCHEDULE_CONSTANT,
                                          .period = 4},
                             .momentum = 0.5 + 0.1 * m,
                             .weight_decay = 0.001 * (m + 1),
                             .beta1 = m ? 0.9 - 0.1 * m : 0,
                             .beta2 = m ? 0.99 : 0,
                             .epsilon = 1e-6 * m};
}

static void put(ct_network *n, unsigned seed) {
  float x[BATCH * 20], y[BATCH * 7] = {0};
  for (unsigned i = 0; i < BATCH * 20; ++i)
    x[i] = (float)((i * 37 + seed * 11) % 127) / 64 - 1;
  for (unsigned i = 0; i < BATCH; ++i)
    y[i * 7 + (i + seed) % 7] = 1;
  ct_graph *g = ct_network_graph(n);
  assert_int_equal(ct_network_write(n, ct_graph_find(g, "x"), x, BATCH * 20), CT_OK);
  assert_int_equal(ct_network_write(n, ct_graph_find(g, "y"), y, BATCH * 7), CT_OK);
}

/* The bytes of all weights and states. */
static void expect_same(ct_network *a, ct_network *b) {
  ct_graph *g = ct_network_graph(a);
  struct ct_graph_info info;
  float x[2][24 * 24];
  ct_graph_info(g, &info);
  for (size_t i = 1; i <= info.tensors; ++i) {
    struct ct_tensor_info t;
    ct_graph_tensor_info(g, (int)i, &t);
    if (t.role != CT_ROLE_WEIGHT && t.role != CT_ROLE_STATE) continue;
    assert_int_equal(ct_network_read(a, (int)i, x[0], t.elements), CT_OK);
    assert_int_equal(ct_network_read(b, (int)i, x[1], t.elements), CT_OK);
    assert_memory_equal(x[0], x[1], t.elements * sizeof(float));
  }
}

/* Two runs of disjoint members at once, although each has masks. */
static void run_in_parts(ct_network *all, const struct ct_optimise *how, uint64_t step) {
  const struct ct_members part[2] = {
      {.count = 3, .queue = CT_TRAINING, .step = step, .updates = how},
      {.first = 3, .count = KIN - 3, .queue = CT_TRAINING, .step = step, .updates = how + 3}};
  struct ct_event event;
  for (unsigned i = 0; i < 2; ++i)
    assert_int_equal(ct_network_submit_members(all, &part[i], NULL), CT_OK);
  for (unsigned i = 0; i < 2; ++i) {
    assert_int_equal(ct_reap(all->dev, &event, CT_FOREVER), CT_OK);
    assert_int_equal(event.error, CT_OK);
  }
}

/* Members with numbers of their own are networks whose graphs have these. */
static void test_updates(void **state) {
  (void)state;
  for (int adam = 0; adam < 2; ++adam) {
    ct_device *dev;
    ct_network *all, *alone[KIN];
    struct ct_optimise how[KIN];
    draw_updates(how, adam ? CT_OPTIMISER_ADAM : CT_OPTIMISER_SGD);
    assert_int_equal(ct_open("sim:", &dev), CT_OK);
    ct_graph *g = dropping(&how[0]);
    const struct ct_network_options options = {.members = KIN, .seed = 5};
    assert_int_equal(ct_network_create(dev, g, &options, &all), CT_OK);
    ct_graph_free(g);
    for (unsigned m = 0; m < KIN; ++m) {
      g = dropping(&how[m]);
      const struct ct_network_options one = {.seed = 5};
      assert_int_equal(ct_network_create(dev, g, &one, &alone[m]), CT_OK);
      ct_graph_free(g);
      assert_int_equal(ct_network_draw(alone[m], m + 1), CT_OK);
      assert_int_equal(ct_network_select(all, m), CT_OK);
      assert_int_equal(ct_network_draw(all, m + 1), CT_OK);
      put(all, m);
      put(alone[m], m);
    }
    for (uint64_t step = 0; step < 3; ++step) {
      run_in_parts(all, how, step);
      for (unsigned m = 0; m < KIN; ++m)
        assert_int_equal(ct_network_run(alone[m], CT_TRAINING, step), CT_OK);
    }
    for (unsigned m = 0; m < KIN; ++m) {
      assert_int_equal(ct_network_select(all, m), CT_OK);
      expect_same(all, alone[m]);
      ct_network_free(alone[m]);
    }
    how[1].weight_decay = 0;
    assert_int_equal(
        ct_network_run_members(
            all, &(struct ct_members){.count = KIN, .queue = CT_TRAINING, .updates = how}),
        CT_ERR_ARG);
    assert_non_null(strstr(ct_last_error(dev), "weight_decay of member 1"));
    ct_network_free(all);
    ct_close(dev);
  }
}

/* What a graph is refused for is refused here, too, and changes nothing. */
static void test_wrong_updates(void **state) {
  static const struct ct_optimise right = {.schedule = {.rate = 0.1}, .momentum = 0.5};
  static const struct {
    struct ct_optimise how;
    enum ct_optimiser optimiser;
    const char *name;
    bool schedule;
  } wrong[] = {
      {{.schedule = {.rate = 0.1}, .momentum = NAN}, CT_OPTIMISER_SGD, "momentum", false},
      {{.schedule = {.rate = 0.1}, .momentum = 1.5}, CT_OPTIMISER_SGD, "momentum", false},
      {{.schedule = {.rate = NAN}}, CT_OPTIMISER_SGD, "rate", true},
      {{.schedule = {.rate = -1}}, CT_OPTIMISER_SGD, "rate", true},
      {{.schedule = {.rate = 0.1, .floor = 0.2}}, CT_OPTIMISER_SGD, "floor", true},
      {{.schedule = {.rate = 0.1, .factor = 2}}, CT_OPTIMISER_SGD, "factor", true},
      {{.schedule = {.rate = 0.1, .kind = 9}}, CT_OPTIMISER_SGD, "kind", true},
      {{.schedule = {.rate = 0.1}, .weight_decay = 0.5}, CT_OPTIMISER_SGD, "weight_decay", false},
      {{.schedule = {.rate = 0.1}, .beta1 = 1}, CT_OPTIMISER_ADAM, "beta1", false},
      {{.schedule = {.rate = 0.1}, .beta2 = NAN}, CT_OPTIMISER_ADAM, "beta2", false},
      {{.schedule = {.rate = 0.1}, .epsilon = -1}, CT_OPTIMISER_ADAM, "epsilon", false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    ct_device *dev;
    ct_network *n;
    struct ct_optimise how[2] = {right, wrong[i].how};
    how[0].optimiser = wrong[i].optimiser;
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    ct_graph *g = dropping(&how[0]);
    assert_int_equal(ct_network_create(dev, g, &(struct ct_network_options){.members = 2}, &n),
                     CT_OK);
    assert_int_equal(ct_network_draw(n, 1), CT_OK);
    put(n, 1);
    struct ct_members run = {.count = 2, .queue = CT_TRAINING, .updates = how};
    assert_int_equal(ct_network_run_members(n, &run), CT_ERR_ARG);
    if (!strstr(ct_last_error(dev), wrong[i].name)) fail_msg("%zu: %s", i, ct_last_error(dev));
    how[1] = how[0];
    if (ct_network_run_members(n, &run)) fail_msg("%zu: %s", i, ct_last_error(dev));
    const struct ct_schedule schedules[] = {how[0].schedule, wrong[i].how.schedule};
    run.schedules = schedules;
    assert_int_equal(ct_network_run_members(n, &run), wrong[i].schedule ? CT_ERR_ARG : CT_OK);
    ct_network_free(n);
    ct_graph_free(g);
    ct_close(dev);
  }
}

/* A file without its last value, otherwise whole. */
static void cut_value(ct_device *dev, const char *path) {
  uint8_t *data;
  size_t size, at = 0;
  assert_int_equal(ct_file_read(dev, path, &data, &size), CT_OK);
  while (memcmp(data + at, "VALU", 4) != 0)
    ++at;
  const size_t first = at + 12, end = first + (size_t)ct_file_get(data + at + 4, 8);
  size_t last = first;
  for (size_t next = first; next < end; next += 12 + 4 * (size_t)ct_file_get(data + next + 4, 8))
    last = next;
  assert_true(last > first && end + 4 == size);
  ct_file_put(data + at + 4, last - first, 8);
  assert_int_equal(ct_file_write(dev, path, data, last + 4), CT_OK);
  free(data);
}

/* What lacks something changes nothing. */
static void test_restored_in_part(void **state) {
  ct_device *dev;
  ct_network *n, *like;
  struct ct_network_info info;
  struct ct_optimise how[KIN];
  char path[] = "/tmp/ct_members.XXXXXX";
  (void)state;
  draw_updates(how, CT_OPTIMISER_SGD);
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  ct_graph *g = dropping(&how[0]);
  assert_int_equal(ct_network_create(dev, g, NULL, &n), CT_OK);
  assert_int_equal(ct_network_create(dev, g, NULL, &like), CT_OK);
  assert_int_equal(ct_network_draw(n, 9), CT_OK);
  put(n, 1);
  assert_int_equal(ct_network_run(n, CT_TRAINING, 0), CT_OK);
  assert_int_equal(ct_network_save(n, path), CT_OK);
  cut_value(dev, path);
  assert_int_equal(ct_network_draw(n, 10), CT_OK);
  assert_int_equal(ct_network_draw(like, 10), CT_OK);
  ct_network_set_epochs(n, 3);
  assert_int_equal(ct_network_run(n, CT_TRAINING, 1), CT_OK);
  put(like, 1);
  assert_int_equal(ct_network_run(like, CT_TRAINING, 1), CT_OK);
  assert_int_equal(ct_network_restore(n, path), CT_ERR_FORMAT);
  assert_non_null(strstr(ct_last_error(dev), "has no value for"));
  expect_same(n, like);
  assert_int_equal(ct_network_info(n, &info), CT_OK);
  assert_true(info.steps == 2 && info.seed == 10 && info.epochs == 3);
  ct_network_free(n);
  ct_network_free(like);
  ct_graph_free(g);
  ct_close(dev);
  unlink(path);
}

/* A file is every member's, and one can have what another file says. */
static void test_restored(void **state) {
  ct_device *dev;
  ct_network *one, *all, *other;
  struct ct_network_info info;
  struct ct_optimise how[KIN];
  char path[] = "/tmp/ct_members.XXXXXX";
  (void)state;
  draw_updates(how, CT_OPTIMISER_SGD);
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  ct_graph *g = dropping(&how[0]), *h = dropping(&how[1]);
  assert_int_equal(ct_network_create(dev, g, NULL, &one), CT_OK);
  assert_int_equal(ct_network_draw(one, 9), CT_OK);
  put(one, 1);
  assert_int_equal(ct_network_run(one, CT_TRAINING, 0), CT_OK);
  assert_int_equal(ct_network_save(one, path), CT_OK);
  const struct ct_network_options options = {.members = 3};
  assert_int_equal(ct_network_load(dev, path, &options, &all), CT_OK);
  for (uint32_t m = 0; m < 3; ++m) {
    assert_int_equal(ct_network_select(all, m), CT_OK);
    expect_same(all, one);
    assert_int_equal(ct_network_info(all, &info), CT_OK);
    assert_true(info.steps == 1 && info.seed == 9);
    assert_int_equal(ct_network_draw(all, 20 + m), CT_OK);
  }
  assert_int_equal(ct_network_select(all, 1), CT_OK);
  assert_int_equal(ct_network_restore(all, path), CT_OK);
  expect_same(all, one);
  assert_int_equal(ct_network_select(all, 2), CT_OK);
  assert_int_equal(ct_network_draw(one, 22), CT_OK);
  assert_int_equal(ct_network_create(dev, h, NULL, &other), CT_OK);
  assert_int_equal(ct_network_restore(other, path), CT_OK); /* other numbers of updates */
  how[0].optimiser = CT_OPTIMISER_ADAM;
  ct_graph *third = dropping(&how[0]);
  ct_network_free(other);
  assert_int_equal(ct_network_create(dev, third, NULL, &other), CT_OK);
  assert_int_equal(ct_network_restore(other, path), CT_ERR_ARG);
  assert_non_null(strstr(ct_last_error(dev), "is of another network"));
  assert_int_equal(ct_network_restore(other, "/nowhere"), CT_ERR_NOT_FOUND);
  ct_network_free(other);
  ct_network_free(all);
  ct_network_free(one);
  ct_graph_free(g);
  ct_graph_free(h);
  ct_graph_free(third);
  ct_close(dev);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_races),
                                     cmocka_unit_test(test_emulated),
                                     cmocka_unit_test(test_simulated),
                                     CT_PLAIN_TEST(test_beside_requests),
                                     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_selected),
                                     cmocka_unit_test(test_selected_during_a_run),
                                     cmocka_unit_test(test_a_file_of_a_perceptron),
                                     cmocka_unit_test(test_too_many_to_share),
                                     cmocka_unit_test(test_once),
                                     cmocka_unit_test(test_updates),
                                     cmocka_unit_test(test_wrong_updates),
                                     cmocka_unit_test(test_restored_in_part),
                                     cmocka_unit_test(test_restored)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
