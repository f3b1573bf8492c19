/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of networks: whatever the others do, each member is what it is alone, to the bit.
 */
#include "array_bed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ct_array.h"
#include "ct_network.h"
#include "ct_queue.h"

struct rig {
  ct_device *dev, *beside; /* beside: where networks run alone */
  ct_array *array;
};

static void rig_open(struct rig *r, const char *uri, const struct ct_array_options *options) {
  if (ct_open(uri, &r->dev) || ct_open("emu:", &r->beside)) fail_msg("%s", ct_last_error(NULL));
  assert_int_equal(ct_array_create(r->dev, options, &r->array), CT_OK);
}

static void rig_close(struct rig *r) {
  ct_array_free(r->array);
  ct_close(r->dev);
  ct_close(r->beside);
}

static void run(struct rig *r, uint64_t runs) {
  if (ct_array_run(r->array, runs, NULL)) fail_msg("%s", ct_last_error(r->dev));
}

static struct ct_member_info member(struct rig *r, uint32_t number) {
  struct ct_member_info info;
  assert_int_equal(ct_array_member(r->array, number, &info), CT_OK);
  return info;
}

static struct ct_array_info facts(struct rig *r) {
  struct ct_array_info info;
  assert_int_equal(ct_array_info(r->array, &info), CT_OK);
  return info;
}

static void refused(struct rig *r, int want, const char *sentence, int got) {
  assert_int_equal(got, want);
  if (!strstr(ct_last_error(r->dev), sentence))
    fail_msg("\"%s\" does not say: %s", ct_last_error(r->dev), sentence);
}

static struct bed_feed feed_of(uint64_t seed) {
  return (struct bed_feed){seed, CT_NO_CYCLE, CT_NO_CYCLE, 0};
}

/* A perceptron with momentum. */
static struct bed_case small(struct bed_feed *feed, double rate) {
  return (struct bed_case){.widths = {16, 24, 5},
                           .layers = 2,
                           .batch = 4,
                           .how = {.schedule = {.rate = rate}, .momentum = 0.9},
                           .seed = 3,
                           .feed = feed};
}

/* ---- Eight LeNet-5 --------------------------------------------------------------------------- */

enum { MEMBERS = 8 };

/* With other rates, momenta and decays; they share batches, and programs but for one. */
static void lenets(struct rig *r, uint32_t batch, uint64_t runs) {
  struct bed_feed feed = feed_of(1);
  struct bed_case c[MEMBERS];
  uint32_t number[MEMBERS];
  for (unsigned i = 0; i < MEMBERS; ++i) {
    c[i] = (struct bed_case){.net = "lenet5",
                             .batch = batch,
                             .how = {.schedule = {.rate = 0.01 * (i + 1)},
                                     .momentum = 0.5 + 0.05 * i,
                                     .weight_decay = i ? 0.0001 * i : 0},
                             .seed = 1 + i / 2,
                             .feed = &feed};
    number[i] = bed_join(r->array, r->dev, &c[i]);
  }
  run(r, runs);
  assert_int_equal(facts(r).programs, 2);
  assert_int_equal(facts(r).runs, MEMBERS * runs);
  assert_int_equal(facts(r).batches, 2 * runs);
  for (unsigned i = 0; i < MEMBERS; ++i) {
    assert_int_equal(member(r, number[i]).beside, i ? MEMBERS - 1 : 1);
    bed_expect_alone(r->array, number[i], &c[i], runs, r->beside);
  }
}

static void test_lenets(void **state) {
  struct rig r;
  (void)state;
  rig_open(&r, "emu:", NULL);
  lenets(&r, 2, (uint64_t)ct_tb_draws(200));
  rig_close(&r);
}

static void test_lenets_on_cores(void **state) {
  struct rig r;
  (void)state;
  rig_open(&r, "sim:", NULL);
  lenets(&r, 1, 3);
  for (unsigned i = 1; i <= MEMBERS; ++i)
    assert_true(member(&r, i).cycles > 0);
  rig_close(&r);
}

/* ---- Programs -------------------------------------------------------------------------------- */

/* Members of one set of programs take no more of the memory for programs than one. */
static void test_programs_are_shared(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  (void)state;
  rig_open(&r, "emu:", NULL);
  struct bed_case c = small(&feed, 0.1);
  bed_join(r.array, r.dev, &c);
  ct_network *first = ct_array_network(r.array, 1);
  c.how.schedule = (struct ct_schedule){.rate = 1, .kind = CT_SCHEDULE_COSINE, .period = 9};
  c.how.momentum = 0.1;
  bed_join(r.array, r.dev, &c);
  assert_ptr_equal(ct_array_network(r.array, 2)->shared, first->shared);
  assert_int_equal(member(&r, 2).together, 2);
  c.how.weight_decay = 0.1; /* an operation more */
  bed_join(r.array, r.dev, &c);
  c.how.weight_decay = 0.2;
  bed_join(r.array, r.dev, &c);
  c.batch = 5;
  bed_join(r.array, r.dev, &c);
  c.how.optimiser = CT_OPTIMISER_ADAM;
  bed_join(r.array, r.dev, &c);
  c.how.beta1 = 0.5;
  c.how.beta2 = 0.6;
  c.how.epsilon = 1e-3;
  bed_join(r.array, r.dev, &c);
  assert_int_equal(facts(&r).programs, 4);
  assert_int_equal(ct_network_run(first, CT_TRAINING, 0), CT_ERR_UNSUPPORTED);
  assert_int_equal(ct_network_submit(first, &(struct ct_run){.queue = CT_TRAINING}, NULL),
                   CT_ERR_UNSUPPORTED);
  float x[4 * 16] = {0};
  const int input = ct_graph_find(ct_network_graph(first), "x");
  assert_int_equal(ct_network_write(first, input, x, 4 * 16), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(r.dev), "a member of an array"));
  assert_int_equal(member(&r, 7).together, 2);
  assert_int_equal(ct_array_leave(r.array, 1), CT_OK); /* whose graph was compiled */
  run(&r, 3);
  c = small(&feed, 1);
  c.how.schedule = (struct ct_schedule){.rate = 1, .kind = CT_SCHEDULE_COSINE, .period = 9};
  c.how.momentum = 0.1;
  bed_expect_alone(r.array, 2, &c, 3, r.beside);
  rig_close(&r);
}

/* More numbers than there are registers: they are constants, and only rates may differ. */
static void test_many_numbers(void **state) {
  enum { LAYERS = 12 };
  ct_device *dev;
  ct_graph *g[3];
  ct_network *n[3];
  struct ct_network_info info;
  (void)state;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  for (int i = 0; i < 3; ++i) {
    const double rate = i == 1 ? 0.5 : 0.25;
    assert_int_equal(ct_graph_create(&g[i]), CT_OK);
    const int step = ct_graph_add(
        g[i], &(struct ct_new_node){
                  .op = "rate", .attrs = &(struct ct_attr){"rate", 1, {rate}}, .attr_count = 1});
    for (int k = 0; k < LAYERS; ++k) {
      const struct ct_shape shape = {2, {4, 4}};
      const struct ct_new_tensor state_of = {.role = CT_ROLE_STATE, .shape = shape},
                                 weight_of = {.role = CT_ROLE_WEIGHT, .shape = shape},
                                 input_of = {.shape = shape};
      const int w = ct_graph_tensor(g[i], &weight_of), v = ct_graph_tensor(g[i], &state_of);
      const int gradient = k ? w - 2 : ct_graph_tensor(g[i], &input_of);
      const struct ct_attr momentum = {"momentum", 1, {(k + 1) / (i == 2 ? 32.0 : 16.0)}};
      const int to =
          ct_graph_add(g[i], &(struct ct_new_node){.op = "sgd",
                                                   .inputs = (int[]){w, gradient, v, step},
                                                   .input_count = 4,
                                                   .attrs = &momentum,
                                                   .attr_count = 1});
      ct_graph_becomes(g[i], w, to);
      ct_graph_becomes(g[i], v, to + 1);
    }
    if (ct_graph_check(g[i])) fail_msg("%s", ct_graph_error(g[i]));
    const struct ct_network_options options = {.like = i ? n[0] : NULL};
    if (ct_network_create(dev, g[i], &options, &n[i])) fail_msg("%s", ct_last_error(dev));
  }
  assert_ptr_equal(n[1]->shared, n[0]->shared);
  assert_ptr_not_equal(n[2]->shared, n[0]->shared);
  assert_int_equal(ct_network_info(n[0], &info), CT_OK);
  assert_int_equal(info.together, 2);
  assert_true(n[0]->compiled.fixed);
  for (int i = 0; i < 3; ++i) {
    ct_network_free(n[i]);
    ct_graph_free(g[i]);
  }
  ct_close(dev);
}

/* ---- Members that end --------------------------------------------------------------------------
 */

static void test_a_loss_is_not_finite(void **state) {
  (void)state;
  for (uint32_t ahead = 1; ahead <= 3; ++ahead) {
    struct rig r;
    struct bed_feed good = feed_of(1), bad = feed_of(1);
    bad.poison = 4;
    rig_open(&r, "emu:", &(struct ct_array_options){.ahead = ahead});
    const struct bed_case c[3] = {small(&good, 0.1), small(&bad, 0.1), small(&good, 0.2)};
    for (int i = 0; i < 3; ++i)
      bed_join(r.array, r.dev, &c[i]);
    for (int i = 0; i < 10; ++i)
      run(&r, 1); /* in how many calls does not matter */
    const struct ct_member_info info = member(&r, 2);
    assert_int_equal(info.state, CT_MEMBER_DIVERGED);
    assert_int_equal(info.ended_by, 4);
    assert_false(isfinite(info.loss));
    assert_int_equal(facts(&r).ready, 2);
    bed_expect_alone(r.array, 1, &c[0], 10, r.beside);
    bed_expect_alone(r.array, 2, &c[1], 4 + ahead, r.beside);
    bed_expect_alone(r.array, 3, &c[2], 10, r.beside);
    rig_close(&r);
  }
}

/* A bias of -Inf in front of a ReLU is in no loss. */
static void test_a_weight_is_not_finite(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  (void)state;
  rig_open(&r, "emu:", &(struct ct_array_options){.look = 5});
  const struct bed_case c = small(&feed, 0.1);
  bed_join(r.array, r.dev, &c);
  bed_join(r.array, r.dev, &c);
  ct_network *n = ct_array_network(r.array, 1);
  float bias[24] = {-INFINITY};
  assert_int_equal(ct_network_write(n, ct_graph_find(ct_network_graph(n), "fc1.bias"), bias, 24),
                   CT_OK);
  run(&r, 4);
  assert_int_equal(member(&r, 1).state, CT_MEMBER_READY);
  assert_true(isfinite(member(&r, 1).loss));
  run(&r, 8);
  assert_int_equal(member(&r, 1).state, CT_MEMBER_DIVERGED);
  assert_int_equal(member(&r, 1).ended_by, 4);
  assert_int_equal(member(&r, 1).runs, 5);
  bed_expect_alone(r.array, 2, &c, 12, r.beside);
  rig_close(&r);
}

static void test_a_feed_fails(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1), empty = feed_of(2);
  (void)state;
  empty.refuse = 3;
  rig_open(&r, "emu:", NULL);
  const struct bed_case c[2] = {small(&feed, 0.1), small(&empty, 0.1)};
  bed_join(r.array, r.dev, &c[0]);
  bed_join(r.array, r.dev, &c[1]);
  run(&r, 6);
  assert_int_equal(member(&r, 2).state, CT_MEMBER_FAILED);
  assert_int_equal(member(&r, 2).error, CT_ERR_IO);
  assert_int_equal(member(&r, 2).ended_by, 3);
  bed_expect_alone(r.array, 1, &c[0], 6, r.beside);
  bed_expect_alone(r.array, 2, &c[1], 3, r.beside);
  rig_close(&r);
}

/* Cancels the run that was submitted last, from within: it is under way. */
struct saboteur {
  ct_device *dev;
  unsigned after;
  bool done;
};

static int sabotage(void *arg, const struct ct_member_run *ended) {
  struct saboteur *s = arg;
  (void)ended;
  if (s->done || s->after-- > 0) return 0;
  const uint64_t submitted = ct_queue_submitted(s->dev, CT_TRAINING);
  assert_int_equal(ct_cancel(s->dev, ct_job_tag(CT_TRAINING, submitted - 1)), CT_OK);
  s->done = true;
  return 0;
}

static void test_a_job_fails(void **state) {
  (void)state;
  for (unsigned after = 0; after < 6; ++after) {
    struct rig r;
    struct bed_feed feed = feed_of(1);
    unsigned failed = 0;
    rig_open(&r, "sim:", NULL);
    struct saboteur s = {.dev = r.dev, .after = after};
    const struct bed_case c[3] = {small(&feed, 0.1), small(&feed, 0.2), small(&feed, 0.3)};
    for (int i = 0; i < 3; ++i)
      bed_join(r.array, r.dev, &c[i]);
    assert_int_equal(ct_array_run(r.array, 8, &(struct ct_watch){sabotage, &s}), CT_OK);
    for (uint32_t i = 1; i <= 3; ++i) {
      const struct ct_member_info info = member(&r, i);
      if (info.state == CT_MEMBER_FAILED) {
        assert_int_equal(info.error, CT_ERR_CANCELLED);
        ++failed;
      } else {
        bed_expect_alone(r.array, i, &c[i - 1], 8, r.beside);
      }
    }
    assert_int_equal(failed, 1);
    rig_close(&r);
  }
}

/* ---- In the same jobs --------------------------------------------------------------------------
 */

/* By kernels, so that several go in a job. */
static struct bed_case adam(struct bed_feed *feed, double rate) {
  struct bed_case c = small(feed, rate);
  c.how.optimiser = CT_OPTIMISER_ADAM;
  c.how.momentum = 0;
  return c;
}

/* The last run that was submitted is cancelled: of all whose run it is nobody goes on. */
static void test_a_job_of_several_fails(void **state) {
  (void)state;
  for (unsigned after = 0; after < 8; after += 3) {
    struct rig r;
    struct bed_feed feed = feed_of(1), other = feed_of(2);
    unsigned failed = 0;
    rig_open(&r, "sim:", NULL);
    struct saboteur s = {.dev = r.dev, .after = after};
    const struct bed_case c[5] = {adam(&feed, 0.01), adam(&feed, 0.02), adam(&feed, 0.03),
                                  adam(&other, 0.01), adam(&other, 0.02)};
    for (int i = 0; i < 5; ++i)
      bed_join(r.array, r.dev, &c[i]);
    assert_int_equal(ct_array_run(r.array, 8, &(struct ct_watch){sabotage, &s}), CT_OK);
    for (uint32_t i = 1; i <= 5; ++i) {
      const struct ct_member_info info = member(&r, i);
      assert_int_equal(info.beside, i <= 3 ? 3 : 2);
      assert_int_equal(info.state, member(&r, i <= 3 ? 1 : 4).state);
      failed += info.state == CT_MEMBER_FAILED;
      if (info.state == CT_MEMBER_READY) bed_expect_alone(r.array, i, &c[i - 1], 8, r.beside);
    }
    assert_true(failed == 2 || failed == 3);
    rig_close(&r);
  }
}

/* One in the middle diverges: what is left of the rank are two parts, and one rank in the next
 * call. Who leaves makes no difference to the others. */
static void test_one_of_several_ends(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  struct bed_case c[7];
  (void)state;
  rig_open(&r, "emu:", NULL);
  for (int i = 0; i < 7; ++i) {
    c[i] = adam(&feed, 0.01 * (i + 1));
    c[i].how.beta1 = 0.5 + 0.05 * i;
    c[i].how.epsilon = 1e-6 * (i + 1);
    bed_join(r.array, r.dev, &c[i]);
  }
  run(&r, 1);
  assert_int_equal(member(&r, 1).beside, 7);
  ct_network *n = ct_array_network(r.array, 4);
  const float bias[24] = {INFINITY};
  assert_int_equal(ct_network_write(n, ct_graph_find(ct_network_graph(n), "fc1.bias"), bias, 24),
                   CT_OK);
  run(&r, 6);
  assert_int_equal(member(&r, 4).state, CT_MEMBER_DIVERGED);
  assert_int_equal(member(&r, 1).beside, 3);
  run(&r, 1);
  assert_int_equal(member(&r, 1).beside, 6);
  assert_int_equal(ct_array_leave(r.array, 2), CT_OK);
  assert_int_equal(ct_array_limit(r.array, 7, 9), CT_OK);
  run(&r, 4);
  assert_int_equal(member(&r, 4).runs, 3);
  assert_int_equal(member(&r, 1).beside, 4);
  for (uint32_t i = 1; i <= 7; ++i)
    if (i != 2 && i != 4) bed_expect_alone(r.array, i, &c[i - 1], i == 7 ? 9 : 12, r.beside);
  rig_close(&r);
}

/* Each with other batches: they have inputs of their own in the same jobs. The feed of one in the
 * middle fails; who else has the same feed comes together with that one. */
static void test_batches_of_their_own(void **state) {
  struct rig r;
  struct bed_feed feed[6];
  struct bed_case c[6];
  (void)state;
  rig_open(&r, "sim:", NULL);
  for (int i = 0; i < 6; ++i) {
    feed[i] = feed_of((uint64_t)i + 1);
    c[i] = adam(&feed[i], 0.01 * (i + 1));
    if (i < 5) bed_join(r.array, r.dev, &c[i]);
  }
  feed[2].refuse = 4;
  run(&r, 2);
  assert_int_equal(member(&r, 1).beside, 5);
  run(&r, 5);
  assert_int_equal(member(&r, 3).state, CT_MEMBER_FAILED);
  assert_int_equal(member(&r, 3).ended_by, 4);
  assert_int_equal(member(&r, 1).beside, 2);
  run(&r, 1);
  assert_int_equal(member(&r, 5).beside, 4);
  for (uint32_t i = 1; i <= 5; ++i)
    bed_expect_alone(r.array, i, &c[i - 1], i == 3 ? 4 : 8, r.beside);
  c[5].feed = &feed[0]; /* two are at the same run with the same feed, two pairs of others */
  for (uint32_t i = 2; i <= 5; ++i)
    assert_int_equal(ct_array_leave(r.array, i), CT_OK);
  for (int i = 0; i < 3; ++i)
    bed_join(r.array, r.dev, &c[i % 2 ? 5 : i]);
  run(&r, 3);
  bed_expect_alone(r.array, 1, &c[0], 11, r.beside);
  bed_expect_alone(r.array, 6, &c[0], 3, r.beside);
  bed_expect_alone(r.array, 7, &c[5], 3, r.beside);
  assert_int_equal(member(&r, 1).beside, 1);
  assert_int_equal(member(&r, 6).beside, 2);
  assert_int_equal(member(&r, 7).beside, 2);
  assert_int_equal(member(&r, 8).beside, 1);
  rig_close(&r);
}

/* Of one that is left the rank goes; apart there are none. */
static void test_ranks(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  const struct bed_case c[2] = {adam(&feed, 0.01), adam(&feed, 0.02)};
  (void)state;
  for (int apart = 0; apart < 2; ++apart) {
    rig_open(&r, "emu:", &(struct ct_array_options){.apart = apart});
    for (int i = 0; i < 12; ++i)
      bed_join(r.array, r.dev, &c[i % 2]);
    run(&r, 3);
    assert_int_equal(member(&r, 1).beside, apart ? 1 : 6);
    const struct ct_network *n = ct_array_network(r.array, 1);
    assert_int_equal(n->live->rank != NULL, !apart);
    for (uint32_t i = 2; i <= 12; ++i)
      assert_int_equal(ct_array_leave(r.array, i), CT_OK);
    run(&r, 3);
    assert_true(!n->live->rank || n->live->rank->slots == 1);
    bed_expect_alone(r.array, 1, &c[0], 6, r.beside);
    rig_close(&r);
  }
}

/* ---- Who shares a member's weights -------------------------------------------------------------
 */

/* Answers with the weights of a perceptron's steps. */
static ct_network *answers_of(struct rig *r, const struct bed_case *c, ct_network *steps) {
  ct_graph *g;
  ct_network *n;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_mlp(g, c->widths, c->layers, c->batch, false), CT_OK);
  assert_int_equal(ct_graph_check(g), CT_OK);
  if (ct_network_create(r->dev, g, &(struct ct_network_options){.weights_of = steps}, &n))
    fail_msg("%s", ct_last_error(r->dev));
  ct_graph_free(g);
  return n;
}

/* What it answers to the same rows. */
static void ask(struct rig *r, ct_network *n, float *logits) {
  ct_graph *g = ct_network_graph(n);
  float x[4 * 16];
  for (unsigned i = 0; i < 4 * 16; ++i)
    x[i] = (float)((i * 37) % 127) / 64 - 1;
  assert_int_equal(ct_network_write(n, ct_graph_find(g, "x"), x, sizeof x / sizeof *x), CT_OK);
  if (ct_network_run(n, CT_INFERENCE, 0)) fail_msg("%s", ct_last_error(r->dev));
  assert_int_equal(ct_network_read(n, ct_graph_find(g, "logits"), logits, 4 * 5), CT_OK);
}

/* A member that is moved takes those along who have its weights; its memory is another's then. */
static void test_a_shared_member_moves(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  const struct bed_case c = small(&feed, 0.1);
  struct ct_rank *rank;
  float before[20], after[20];
  (void)state;
  rig_open(&r, "emu:", NULL);
  const uint32_t number = bed_join(r.array, r.dev, &c);
  ct_network *n = ct_array_network(r.array, number);
  ct_network *first = answers_of(&r, &c, n), *second = answers_of(&r, &c, first);
  ct_network *third = answers_of(&r, &c, n);
  run(&r, 3);
  ask(&r, second, before);
  ct_network_free(third); /* nobody goes there any more */
  const uint64_t old = n->live->image;
  assert_int_equal(ct_rank_create(n, &(struct ct_rank){.slots = 2, .common = true}, 2, &rank),
                   CT_OK);
  assert_int_equal(ct_network_move(n, rank, 1), CT_OK);
  uint8_t *junk = malloc(n->compiled.lasting * CT_UNIT);
  assert_non_null(junk);
  memset(junk, 0x7f, n->compiled.lasting * CT_UNIT);
  assert_int_equal(ct_mem_write(r.dev, old, junk, n->compiled.lasting * CT_UNIT), CT_OK);
  free(junk);
  ask(&r, second, after);
  assert_memory_equal(before, after, sizeof after);
  ask(&r, first, after);
  assert_memory_equal(before, after, sizeof after);
  run(&r, 2);
  bed_expect_alone(r.array, number, &c, 5, r.beside);
  assert_int_equal(ct_array_leave(r.array, number), CT_OK); /* the rank stays for the others */
  ask(&r, first, before);
  ask(&r, second, after);
  assert_memory_equal(before, after, sizeof after);
  ct_network_free(first);
  ct_network_free(second);
  rig_close(&r);
}

/* Whether memory is somebody's still, even if only of jobs that have not ended. */
static bool is_kept(const ct_device *dev, uint64_t at) {
  for (const struct ct_heap_block *b = dev->data.first; b; b = b->next)
    if (at >= b->addr && at < b->addr + b->size) return b->used;
  return false;
}

/* A run that could not be ended keeps the weights of a member that has left, in a rank or not. */
static void test_left_behind_by_a_run(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  const struct bed_case c = small(&feed, 0.1);
  struct ct_rank *rank;
  struct ct_event e;
  float logits[20];
  (void)state;
  for (unsigned ranked = 0; ranked < 2; ++ranked) {
    rig_open(&r, "emu:", NULL);
    const uint32_t number = bed_join(r.array, r.dev, &c);
    ct_network *n = ct_array_network(r.array, number), *answers = answers_of(&r, &c, n);
    run(&r, 1);
    ask(&r, answers, logits);
    if (ranked) {
      const struct ct_rank two = {.slots = 2, .common = true};
      assert_int_equal(ct_rank_create(n, &two, 2, &rank), CT_OK);
      assert_int_equal(ct_network_move(n, rank, 1), CT_OK);
    }
    const uint64_t at = n->live->image;
    assert_int_equal(ct_set_timeout(r.dev, 1), CT_OK);
    assert_int_equal(ct_reg_write(r.dev, CT_REG_CTRL, 2), CT_OK); /* no job begins */
    assert_int_equal(ct_network_run(answers, CT_INFERENCE, 0), CT_ERR_DEVICE);
    assert_int_equal(ct_array_leave(r.array, number), CT_OK);
    ct_network_free(answers);
    assert_true(is_kept(r.dev, at));
    assert_int_equal(ct_reg_write(r.dev, CT_REG_CTRL, 0), CT_OK);
    while (ct_outstanding(r.dev, CT_INFERENCE))
      assert_int_equal(ct_reap(r.dev, &e, 1000), CT_OK);
    assert_false(is_kept(r.dev, at));
    rig_close(&r);
  }
}

/* ---- Both queues -------------------------------------------------------------------------------
 */

/* The queues that runs of members have been in: a bit for each. */
struct queues {
  const ct_array *array;
  unsigned seen[6];
};

static int note_queue(void *arg, const struct ct_member_run *run) {
  struct queues *q = arg;
  q->seen[run->number - 1] |= 1u << q->array->member[run->number - 1]->queue;
  return 0;
}

static bool has_changed(const struct queues *q) {
  bool any = false;
  for (unsigned i = 0; i < 6; ++i)
    any |= q->seen[i] == (1u << CT_INFERENCE | 1u << CT_TRAINING);
  return any;
}

/* A rank in each queue, and perceptrons, one stage each. They change places, since the inference
 * queue is faster; all together it takes less time than in one queue. */
static void test_both_queues(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  struct bed_case c[6];
  uint64_t took[2], from = 0;
  (void)state;
  for (int both = 0; both < 2; ++both) {
    rig_open(&r, "sim:", &(struct ct_array_options){.both = both});
    for (int i = 0; i < 6; ++i) {
      c[i] = (i < 5 ? adam : small)(&feed, 0.01 * (i + 1));
      bed_join(r.array, r.dev, &c[i]);
    }
    run(&r, 1);
    assert_int_equal(member(&r, 5).beside, both ? 3 : 5);
    assert_int_equal(ct_now(r.dev, &from), CT_OK);
    struct queues queues = {.array = r.array};
    assert_int_equal(ct_array_run(r.array, 49, &(struct ct_watch){note_queue, &queues}), CT_OK);
    assert_true(has_changed(&queues) == both);
    assert_int_equal(ct_now(r.dev, &took[both]), CT_OK);
    took[both] -= from;
    for (uint32_t i = 1; i <= 6; ++i)
      bed_expect_alone(r.array, i, &c[i - 1], 50, r.beside);
    rig_close(&r);
  }
  printf("%llu cycles in one queue, %llu in both\n", (unsigned long long)took[0],
         (unsigned long long)took[1]);
  assert_true(took[1] < took[0] - took[0] / 10);
}

/* Runs that a queue holds, and when its last one ended. */
struct ends {
  const ct_array *array;
  size_t most;
  uint64_t last[CT_QUEUES], run;
};

static int note_end(void *arg, const struct ct_member_run *run) {
  struct ends *e = arg;
  size_t held[CT_QUEUES] = {0};
  const enum ct_queue queue = e->array->member[run->number - 1]->queue;
  for (size_t i = 0; i < e->array->flights; ++i)
    ++held[e->array->flight[i].queue];
  for (unsigned q = 0; q < CT_QUEUES; ++q)
    if (held[q] > e->most) e->most = held[q];
  e->last[queue] = run->end;
  e->run = run->end - run->start;
  return 0;
}

/* The slower queue holds few runs, so that neither works long while the other is empty. */
static void test_both_end_together(void **state) {
  enum { MEMBERS = 12 };
  struct rig r;
  struct bed_feed feed = feed_of(1);
  struct bed_case c[MEMBERS];
  (void)state;
  rig_open(&r, "sim:", &(struct ct_array_options){.both = true});
  for (int i = 0; i < MEMBERS; ++i) {
    c[i] = small(&feed, 0.01 * (i + 1));
    bed_join(r.array, r.dev, &c[i]);
  }
  struct ends e = {.array = r.array};
  assert_int_equal(ct_array_run(r.array, 4, &(struct ct_watch){note_end, &e}), CT_OK);
  assert_in_range(e.most, 2, 3);
  const uint64_t a = e.last[CT_TRAINING], b = e.last[CT_INFERENCE];
  assert_true((a > b ? a - b : b - a) < 4 * e.run);
  for (uint32_t i = 1; i <= MEMBERS; ++i)
    bed_expect_alone(r.array, i, &c[i - 1], 4, r.beside);
  rig_close(&r);
}

/* While a version of a member is being made, its runs are behind that. */
static void test_both_beside_a_version(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  const struct bed_case c[3] = {adam(&feed, 0.01), adam(&feed, 0.02), adam(&feed, 0.03)};
  ct_weights *version;
  struct ct_event event;
  (void)state;
  rig_open(&r, "sim:", &(struct ct_array_options){.both = true});
  for (int i = 0; i < 3; ++i)
    bed_join(r.array, r.dev, &c[i]);
  run(&r, 2);
  for (uint32_t i = 1; i <= 3; ++i) {
    ct_network *n = ct_array_network(r.array, i);
    assert_int_equal(ct_network_publish_submit(n, n, NULL, &version, NULL), CT_OK);
    run(&r, 3);
    while (ct_reap(r.dev, &event, 0) == CT_OK)
      assert_int_equal(event.error, CT_OK);
    ct_weights_free(version);
  }
  for (uint32_t i = 1; i <= 3; ++i)
    bed_expect_alone(r.array, i, &c[i - 1], 11, r.beside);
  rig_close(&r);
}

/* Tries to make versions of members whose runs change weights in the inference queue. */
struct publisher {
  struct rig *r;
  unsigned met, refused;
};

static int publish_meanwhile(void *arg, const struct ct_member_run *ended) {
  struct publisher *p = arg;
  ct_weights *version;
  for (size_t i = 0; i < p->r->array->members; ++i) {
    const struct ct_array_member *m = p->r->array->member[i];
    ct_network *n = m->network;
    if (m->number == ended->number || !n->live->rank || !n->live->users[CT_INFERENCE]) continue;
    const int err = ct_network_publish_submit(n, n, NULL, &version, NULL);
    const bool ran = n->live->users[CT_INFERENCE] > 0; /* still, as far as the device has said */
    p->met += ran;
    p->refused += ran && err == CT_ERR_BUSY;
    if (!err) ct_weights_free(version);
  }
  return 0;
}

/* A version is made in the training queue, which knows no order with the other. */
static void test_no_version_beside_a_rank(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  const struct bed_case c[4] = {adam(&feed, 0.01), adam(&feed, 0.02), adam(&feed, 0.03),
                                adam(&feed, 0.04)};
  struct publisher p = {.r = &r};
  (void)state;
  rig_open(&r, "sim:", &(struct ct_array_options){.both = true});
  for (int i = 0; i < 4; ++i)
    bed_join(r.array, r.dev, &c[i]);
  run(&r, 1);
  assert_true(member(&r, 1).beside > 1);
  assert_int_equal(ct_array_run(r.array, 6, &(struct ct_watch){publish_meanwhile, &p}), CT_OK);
  assert_true(p.met > 0);
  assert_int_equal(p.met, p.refused);
  for (uint32_t i = 1; i <= 4; ++i)
    bed_expect_alone(r.array, i, &c[i - 1], 7, r.beside);
  rig_close(&r);
}

/* ---- Stopping, going on ------------------------------------------------------------------------
 */

struct watched {
  uint64_t runs, next[4], stop;
};

static int watch(void *arg, const struct ct_member_run *ended) {
  struct watched *w = arg;
  assert_int_equal(ended->run, w->next[ended->number]);
  assert_int_equal(ended->error, CT_OK);
  assert_true(isfinite(ended->loss));
  ++w->next[ended->number];
  return ++w->runs == w->stop;
}

static void test_stopping(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  struct watched w = {.stop = 7};
  (void)state;
  rig_open(&r, "emu:", NULL);
  const struct bed_case c[3] = {small(&feed, 0.1), small(&feed, 0.2), small(&feed, 0.3)};
  for (int i = 0; i < 3; ++i)
    bed_join(r.array, r.dev, &c[i]);
  assert_int_equal(ct_array_run(r.array, CT_NO_CYCLE, &(struct ct_watch){watch, &w}), CT_OK);
  assert_true(w.runs >= 7 && w.runs <= 7 + 6);
  for (uint32_t i = 1; i <= 3; ++i)
    bed_expect_alone(r.array, i, &c[i - 1], w.next[i], r.beside);
  assert_int_equal(ct_outstanding(r.dev, CT_TRAINING), 0);
  rig_close(&r);
}

static void test_limits(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  (void)state;
  rig_open(&r, "emu:", NULL);
  const struct bed_case c = small(&feed, 0.1);
  bed_join(r.array, r.dev, &c);
  bed_join(r.array, r.dev, &c);
  assert_int_equal(ct_array_limit(r.array, 1, 5), CT_OK);
  run(&r, 3);
  run(&r, 3);
  bed_expect_alone(r.array, 1, &c, 5, r.beside);
  bed_expect_alone(r.array, 2, &c, 6, r.beside);
  assert_int_equal(ct_array_limit(r.array, 1, CT_NO_CYCLE), CT_OK);
  assert_int_equal(ct_array_limit(r.array, 3, 1), CT_ERR_NOT_FOUND);
  run(&r, 2);
  bed_expect_alone(r.array, 1, &c, 7, r.beside);
  rig_close(&r);
}

static void test_files(void **state) {
  struct rig r, other;
  struct bed_feed feed = feed_of(1);
  char path[] = "/tmp/ct_test_array_XXXXXX";
  (void)state;
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  rig_open(&r, "emu:", NULL);
  const struct bed_case c = small(&feed, 0.1);
  bed_join(r.array, r.dev, &c);
  bed_join(r.array, r.dev, &c);
  run(&r, 5);
  assert_int_equal(ct_network_save(ct_array_network(r.array, 2), path), CT_OK);
  ct_network *n;
  assert_int_equal(ct_network_load(r.beside, path, NULL, &n), CT_OK); /* an ordinary network */
  bed_run_alone(n, &c, 5, 4);
  rig_open(&other, "emu:", NULL);
  bed_join(other.array, other.dev, &c);
  const struct ct_member from = {.file = path, .feed = {bed_write, &feed}};
  assert_int_equal(ct_array_join(other.array, &from, NULL), CT_OK);
  assert_int_equal(member(&other, 2).together, 2);
  run(&other, 4);
  assert_int_equal(bed_digest(n), bed_digest(ct_array_network(other.array, 2)));
  bed_expect_alone(other.array, 1, &c, 4, other.beside);
  bed_expect_alone(other.array, 2, &c, 9, other.beside);
  refused(&r, CT_ERR_UNSUPPORTED, "can join from the file",
          ct_network_restore(ct_array_network(r.array, 2), path));
  assert_int_equal(member(&r, 2).runs, 5);
  ct_network_free(n);
  rig_close(&other);
  rig_close(&r);
  unlink(path);
}

/* ---- Memory ------------------------------------------------------------------------------------
 */

static void test_memory_is_full(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  uint32_t joined = 0;
  int err;
  (void)state;
  rig_open(&r, "emu:dram=1", NULL);
  struct bed_case c = small(&feed, 0.1);
  c.widths[0] = 100;
  c.widths[1] = 100;
  while (!(err = bed_try_join(r.array, &c, NULL)))
    ++joined;
  assert_int_equal(err, CT_ERR_NO_SPACE);
  assert_in_range(joined, 2, 20);
  assert_int_equal(facts(&r).members, joined);
  run(&r, 3);
  assert_int_equal(bed_try_join(r.array, &c, NULL), CT_ERR_NO_SPACE);
  for (uint32_t i = 1; i <= joined; ++i)
    bed_expect_alone(r.array, i, &c, 3, r.beside);
  assert_int_equal(ct_array_leave(r.array, 1), CT_OK);
  const uint32_t number = bed_join(r.array, r.dev, &c);
  run(&r, 3);
  bed_expect_alone(r.array, number, &c, 3, r.beside);
  bed_expect_alone(r.array, 2, &c, 6, r.beside);
  rig_close(&r);
}

enum { PIECES = 400 };

/* All memory that is left, in pieces. */
struct filler {
  uint64_t at[PIECES];
  size_t count;
};

static void fill_up(ct_device *dev, struct filler *f) {
  for (uint64_t size = 1 << 20; size >= CT_UNIT; size /= 2)
    while (f->count < PIECES && !ct_mem_alloc(dev, size, &f->at[f->count]))
      ++f->count;
  assert_true(f->count < PIECES);
}

static void empty(ct_device *dev, struct filler *f) {
  while (f->count > 0)
    assert_int_equal(ct_mem_free(dev, f->at[--f->count]), CT_OK);
}

/* Where a rank's runs have no memory its members run one by one, and together again when there is
 * some. Who joins then gets what runs of ranks had. */
static void test_ranks_without_memory(void **state) {
  struct rig r;
  struct bed_feed feed[5];
  struct bed_case c[5];
  struct ct_network_info before, after;
  struct filler rest = {.count = 0};
  (void)state;
  rig_open(&r, "emu:dram=2", NULL);
  for (int i = 0; i < 5; ++i) {
    feed[i] = feed_of(i < 2 ? 1 : (uint64_t)i);
    c[i] = adam(&feed[i < 2 ? 0 : i], 0.01 * (i + 1));
    if (i < 4) bed_join(r.array, r.dev, &c[i]);
  }
  assert_int_equal(ct_network_info(ct_array_network(r.array, 1), &before), CT_OK);
  const uint64_t bytes = member(&r, 3).bytes;
  run(&r, 1);
  assert_int_equal(member(&r, 1).beside, 2);
  assert_int_equal(member(&r, 3).beside, 2);
  assert_true(member(&r, 3).bytes > bytes); /* inputs, too */
  assert_int_equal(ct_network_info(ct_array_network(r.array, 1), &after), CT_OK);
  assert_int_equal(after.run_bytes, 9 * before.run_bytes);
  assert_true(ct_array_spare(r.array));
  assert_false(ct_array_spare(r.array));
  fill_up(r.dev, &rest);
  run(&r, 3);
  assert_int_equal(member(&r, 1).beside, 1);
  assert_int_equal(member(&r, 3).beside, 1);
  assert_int_equal(feed[2].asked, 4); /* once for each run */
  empty(r.dev, &rest);
  run(&r, 2);
  assert_int_equal(member(&r, 1).beside, 2);
  fill_up(r.dev, &rest);
  bed_join(r.array, r.dev, &c[4]);
  run(&r, 2);
  empty(r.dev, &rest);
  run(&r, 1);
  for (uint32_t i = 1; i <= 5; ++i)
    bed_expect_alone(r.array, i, &c[i - 1], i < 5 ? 9 : 3, r.beside);
  rig_close(&r);
}

/* ---- Arrays drawn at random --------------------------------------------------------------------
 */

enum { MOST = 6, FEEDS = 3, ROUNDS = 6 };

struct drawn {
  struct bed_case c;
  uint32_t number; /* 0: there is none */
  uint64_t runs;   /* that it should have had */
};

/* What a member becomes when it is asked for more runs. */
static void goes_on(struct drawn *d, uint64_t runs, uint32_t ahead) {
  const uint32_t own = d->c.drop != 0 ? 1 : ahead;
  const uint64_t most = d->c.feed->poison == CT_NO_CYCLE ? CT_NO_CYCLE : d->c.feed->poison + own;
  d->runs = d->runs + runs < most ? d->runs + runs : most;
}

static void check_all(struct rig *r, const struct drawn *d) {
  for (unsigned i = 0; i < MOST; ++i)
    if (d[i].number) bed_expect_alone(r->array, d[i].number, &d[i].c, d[i].runs, r->beside);
}

/* Half of them are like another one, so that they can run in the same jobs. */
static void draw_member(const struct drawn *d, struct bed_case *c, struct bed_feed *feed,
                        ct_rng *rng) {
  const struct drawn *other = &d[ct_rng_below(rng, MOST)];
  if (other->number && ct_rng_percent(rng, 60)) {
    bed_draw_kin(c, &other->c, rng);
    if (ct_rng_percent(rng, 30)) c->feed = &feed[ct_rng_below(rng, FEEDS)];
    return;
  }
  bed_draw_case(c, rng);
  c->feed = &feed[ct_rng_below(rng, FEEDS)];
}

static void random_round(struct rig *r, struct drawn *d, struct bed_feed *feed, ct_rng *rng) {
  for (unsigned i = 0; i < MOST; ++i) {
    if (d[i].number && ct_rng_percent(rng, 25)) {
      assert_int_equal(ct_array_leave(r->array, d[i].number), CT_OK);
      d[i].number = 0;
    }
    if (d[i].number || !ct_rng_percent(rng, 60)) continue;
    draw_member(d, &d[i].c, feed, rng);
    d[i].number = bed_join(r->array, r->dev, &d[i].c);
    d[i].runs = 0;
  }
}

static void test_random(void **state) {
  ct_rng rng = ct_rng_make(77);
  const int draws = ct_tb_draws(12);
  unsigned together = 0;
  (void)state;
  for (int n = draws; n > 0; --n) {
    struct rig r;
    struct drawn d[MOST] = {{.number = 0}};
    struct bed_feed feed[FEEDS] = {feed_of(1), feed_of(2), feed_of(3)};
    const uint32_t ahead = 1 + ct_rng_below(&rng, 3);
    feed[2].poison = 3 + ct_rng_below(&rng, 8);
    rig_open(&r, ct_rng_percent(&rng, 50) ? "emu:dram=1" : "emu:core=16x8",
             &(struct ct_array_options){.ahead = ahead, .both = ct_rng_percent(&rng, 40)});
    for (int k = 0; k < ROUNDS; ++k) {
      const uint64_t runs = ct_rng_below(&rng, 7);
      random_round(&r, d, feed, &rng);
      run(&r, runs);
      for (unsigned i = 0; i < MOST; ++i)
        if (d[i].number) {
          goes_on(&d[i], runs, ahead);
          together += member(&r, d[i].number).beside > 1;
        }
    }
    check_all(&r, d);
    rig_close(&r);
  }
  /* (Under the sanitizers there are few, and perhaps none of these.) */
  if (draws >= 12) assert_true(together > 0);
}

/* ---- Calls that are refused --------------------------------------------------------------------
 */

static void test_refusals(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  ct_array *none;
  (void)state;
  rig_open(&r, "emu:", NULL);
  const struct bed_case c = small(&feed, 0.1);
  ct_graph *g = bed_graph(&c);
  struct ct_member m = {.feed = {bed_write, &feed}};
  refused(&r, CT_ERR_ARG, "at most 8",
          ct_array_create(r.dev, &(struct ct_array_options){.ahead = 9}, &none));
  assert_null(none);
  refused(&r, CT_ERR_ARG, "a graph or of a file", ct_array_join(r.array, &m, NULL));
  m.graph = g;
  refused(&r, CT_ERR_ARG, "no updates", ct_array_join(r.array, &m, NULL));
  m.optimise = &c.how;
  m.loss = "nothing";
  refused(&r, CT_ERR_NOT_FOUND, "graph of the member", ct_array_join(r.array, &m, NULL));
  m.loss = "logits";
  assert_true(ct_array_join(r.array, &m, NULL) < 0);
  m.loss = NULL;
  m.feed.write = NULL;
  refused(&r, CT_ERR_ARG, "write", ct_array_join(r.array, &m, NULL));
  m.file = "x";
  refused(&r, CT_ERR_ARG, "a graph or of a file", ct_array_join(r.array, &m, NULL));
  m.graph = NULL;
  refused(&r, CT_ERR_ARG, "has its updates", ct_array_join(r.array, &m, NULL));
  assert_int_equal(facts(&r).members, 0);
  refused(&r, CT_ERR_NOT_FOUND, "no member 1", ct_array_leave(r.array, 1));
  assert_null(ct_array_network(r.array, 1));
  run(&r, 4); /* of nobody */
  ct_graph_free(g);
  rig_close(&r);
  ct_array_free(NULL);
}

/* The device is closed first: what is left can still be freed. */
/* ---- Beside other work --------------------------------------------------------------------- */

/* A version of a member's weights is being made, and runs of another network fill the queue: the
 * array waits for its turn, and a look at weights for the version. */
static void test_behind_others(void **state) {
  (void)state;
  static const struct ct_array_options options = {.look = 2};
  struct rig r;
  struct bed_feed feed = feed_of(3);
  const struct bed_case c = small(&feed, 0.1);
  struct ct_event event;
  ct_weights *version;
  uint64_t tag, submitted = 0;
  rig_open(&r, "sim:", &options);
  const uint32_t number = bed_join(r.array, r.dev, &c);
  run(&r, 2);
  ct_network *n = ct_array_network(r.array, number);
  assert_int_equal(ct_network_publish_submit(n, n, NULL, &version, &tag), CT_OK);
  ct_graph *g = NULL;
  ct_network *other = NULL;
  ct_frame *frame;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_mlp(g, (uint32_t[]){16, 8, 4}, 2, 4, false), CT_OK);
  assert_int_equal(ct_graph_check(g), CT_OK);
  assert_int_equal(ct_network_create(r.dev, g, NULL, &other), CT_OK);
  for (int err = CT_OK; !err; ++submitted) {
    assert_int_equal(ct_frame_create(other, &frame), CT_OK);
    err = ct_network_submit(other, &(struct ct_run){.frame = frame, .queue = CT_TRAINING}, &tag);
    assert_true(err == CT_OK || err == CT_ERR_FULL);
    ct_frame_free(frame);
  }
  assert_true(submitted > 10);
  run(&r, 2);
  assert_int_equal(member(&r, number).runs, 4);
  while (!ct_reap(r.dev, &event, 0))
    assert_int_equal(event.error, CT_OK);
  ct_weights_free(version);
  ct_network_free(other);
  ct_graph_free(g);
  rig_close(&r);
}

static void test_closed(void **state) {
  struct rig r;
  struct bed_feed feed = feed_of(1);
  (void)state;
  rig_open(&r, "emu:", NULL);
  const struct bed_case c = small(&feed, 0.1);
  const struct bed_case d = adam(&feed, 0.1);
  bed_join(r.array, r.dev, &c);
  bed_join(r.array, r.dev, &d);
  bed_join(r.array, r.dev, &d);
  run(&r, 2);
  ct_close(r.dev);
  assert_int_equal(ct_array_run(r.array, 1, NULL), CT_ERR_CLOSED);
  ct_array_free(r.array);
  ct_close(r.beside);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lenets),
      CT_PLAIN_TEST(test_lenets_on_cores),
      cmocka_unit_test(test_programs_are_shared),
      cmocka_unit_test(test_many_numbers),
      cmocka_unit_test(test_a_loss_is_not_finite),
      cmocka_unit_test(test_a_weight_is_not_finite),
      cmocka_unit_test(test_a_feed_fails),
      cmocka_unit_test(test_a_job_fails),
      cmocka_unit_test(test_a_job_of_several_fails),
      cmocka_unit_test(test_one_of_several_ends),
      cmocka_unit_test(test_batches_of_their_own),
      cmocka_unit_test(test_ranks),
      cmocka_unit_test(test_a_shared_member_moves),
      cmocka_unit_test(test_left_behind_by_a_run),
      CT_PLAIN_TEST(test_both_queues),
      cmocka_unit_test(test_both_end_together),
      cmocka_unit_test(test_both_beside_a_version),
      cmocka_unit_test(test_no_version_beside_a_rank),
      cmocka_unit_test(test_stopping),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_files),
      cmocka_unit_test(test_memory_is_full),
      cmocka_unit_test(test_ranks_without_memory),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_behind_others),
      cmocka_unit_test(test_closed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
