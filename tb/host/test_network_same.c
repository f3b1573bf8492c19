/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks in one memory of weights: answers see each step of training at once, without a version;
 * steps of several batches go on from each other; who comes in whose way; who frees first; what
 * does not fit.
 */
#include "ct_tb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/network.h"
#include "ct_network.h"

enum { IN = 20, HIDDEN = 33, OUT = 7, MOST = 40 };
static const uint32_t kWidths[] = {IN, HIDDEN, OUT};
static const struct ct_optimise kSgd = {
    .schedule = {.rate = 0.05}, .momentum = 0.9, .weight_decay = 0.001};

static void ok(ct_device *dev, int rc) {
  if (rc < 0) fail_msg("%s", ct_last_error(dev));
}

#define REFUSED(dev, code, text, call)                                             \
  do {                                                                             \
    assert_int_equal(call, code);                                                  \
    if (!strstr(ct_last_error(dev), text)) fail_msg("\"%s\"", ct_last_error(dev)); \
  } while (0)

static ct_device *open_device(const char *uri) {
  ct_device *dev;
  if (ct_open(uri, &dev)) fail_msg("%s", ct_last_error(NULL));
  return dev;
}

/* ---- Networks ------------------------------------------------------------------------------ */

static ct_graph *graph(uint32_t rows, const struct ct_optimise *how) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_mlp(g, kWidths, 2, rows, how), CT_OK);
  if (how) assert_true(ct_graph_optimise(g, ct_graph_find(g, "loss"), how) >= 0);
  if (ct_graph_check(g) < 0) fail_msg("%s", ct_graph_error(g));
  return g;
}

static int try_make(ct_device *dev, uint32_t rows, const struct ct_optimise *how,
                    const struct ct_network_options *options, ct_network **n) {
  ct_graph *g = graph(rows, how);
  const int rc = ct_network_create(dev, g, options, n);
  ct_graph_free(g);
  return rc;
}

/* Steps or answers of so many rows, with the weights of another one if that is given. */
static ct_network *make(ct_device *dev, uint32_t rows, bool trains, ct_network *of) {
  const struct ct_network_options options = {.weights_of = of};
  ct_network *n;
  ok(dev, try_make(dev, rows, trains ? &kSgd : NULL, &options, &n));
  return n;
}

static int find(ct_network *n, const char *name) {
  const int t = ct_graph_find(ct_network_graph(n), name);
  assert_true(t > 0);
  return t;
}

static size_t size_of(ct_network *n, int tensor) {
  struct ct_tensor_info info;
  assert_int_equal(ct_graph_tensor_info(ct_network_graph(n), tensor, &info), CT_OK);
  return info.elements;
}

static float *read_all(ct_device *dev, ct_network *n, const char *name) {
  const int t = find(n, name);
  float *x = malloc(size_of(n, t) * sizeof *x);
  assert_non_null(x);
  ok(dev, ct_network_read(n, t, x, size_of(n, t)));
  return x;
}

static void same_tensor(ct_device *dev, ct_network *a, ct_network *b, const char *name) {
  float *x = read_all(dev, a, name), *y = read_all(dev, b, name);
  ct_assert_same(name, (uint8_t *)x, (uint8_t *)y, size_of(a, find(a, name)) * sizeof *x);
  free(x);
  free(y);
}

static void same_weights(ct_device *dev, ct_network *a, ct_network *b) {
  struct ct_tensor_info info;
  for (int t = 1; ct_graph_tensor_info(ct_network_graph(a), t, &info) == CT_OK; ++t)
    if (info.role == CT_ROLE_WEIGHT || info.role == CT_ROLE_STATE)
      same_tensor(dev, a, b, info.name);
}

static void copy_weights(ct_device *dev, ct_network *from, ct_network *to) {
  struct ct_tensor_info info;
  for (int t = 1; ct_graph_tensor_info(ct_network_graph(to), t, &info) == CT_OK; ++t) {
    if (info.role != CT_ROLE_WEIGHT && info.role != CT_ROLE_STATE) continue;
    float *x = read_all(dev, from, info.name);
    ok(dev, ct_network_write(to, t, x, info.elements));
    free(x);
  }
}

/* Rows of inputs, and for steps labels. */
static void put_rows(ct_device *dev, ct_network *n, uint32_t rows, bool trains, ct_rng *rng) {
  float x[MOST * IN], y[MOST * OUT] = {0};
  for (uint32_t i = 0; i < rows * IN; ++i)
    x[i] = ((float)ct_rng_below(rng, 2001) - 800.0f) * 1e-3f;
  for (uint32_t i = 0; i < rows; ++i)
    y[i * OUT + ct_rng_below(rng, OUT)] = 1;
  ok(dev, ct_network_write(n, find(n, "x"), x, (size_t)rows * IN));
  if (trains) ok(dev, ct_network_write(n, find(n, "y"), y, (size_t)rows * OUT));
}

static struct ct_event wait_for(ct_device *dev, uint64_t tag) {
  struct ct_event e;
  ok(dev, ct_wait(dev, tag, &e, CT_FOREVER));
  assert_int_equal(e.error, CT_OK);
  return e;
}

static ct_weights *publish(ct_device *dev, ct_network *from, ct_network *to) {
  ct_weights *w;
  uint64_t tag;
  ok(dev, ct_network_publish_submit(from, to, NULL, &w, &tag));
  wait_for(dev, tag);
  return w;
}

/* ---- What they see ------------------------------------------------------------------------- */

/* The same rows by the weights that it has and by a version of these: the same logits. */
static void check_answers(ct_device *dev, ct_network *steps, ct_network *n, uint32_t rows,
                          ct_rng *rng) {
  ct_network *other = make(dev, rows, false, NULL);
  ct_weights *w = publish(dev, steps, other);
  uint64_t tag;
  ct_rng again = *rng;
  put_rows(dev, n, rows, false, rng);
  put_rows(dev, other, rows, false, &again);
  ok(dev, ct_network_run(n, CT_TRAINING, 0));
  ok(dev, ct_network_submit(other, &(struct ct_run){.weights = w}, &tag));
  wait_for(dev, tag);
  same_tensor(dev, n, other, "logits");
  ct_weights_free(w);
  ct_network_free(other);
}

static void see_each_step(const char *uri) {
  static const uint32_t rows[] = {1, 3, 16, 40};
  enum { KINDS = sizeof rows / sizeof *rows };
  ct_rng rng = ct_rng_make(1);
  ct_device *dev = open_device(uri);
  ct_network *steps = make(dev, 9, true, NULL), *answers[KINDS];
  for (unsigned i = 0; i < KINDS; ++i) {
    answers[i] = make(dev, rows[i], false, i ? answers[i - 1] : steps);
    assert_true(answers[i]->live == steps->live);
    assert_int_equal(ct_network_stages(answers[i]), 1);
  }
  ok(dev, ct_network_draw(steps, 5));
  for (uint64_t step = 0; step < 3; ++step) {
    put_rows(dev, steps, 9, true, &rng);
    ok(dev, ct_network_run(steps, CT_TRAINING, step));
    for (unsigned i = 0; i < KINDS; ++i) {
      struct ct_network_info info;
      check_answers(dev, steps, answers[i], rows[i], &rng);
      assert_int_equal(ct_network_info(answers[i], &info), CT_OK);
      assert_int_equal(info.steps, step + 1);
      assert_int_equal(info.seed, 5);
    }
  }
  for (unsigned i = 0; i < KINDS; ++i)
    ct_network_free(answers[i]);
  ct_network_free(steps);
  ct_close(dev);
}

static void test_answers_see_each_step(void **state) {
  (void)state;
  see_each_step("emu:");
  see_each_step("sim:");
  see_each_step("sim:core=16x8");
}

/* Steps of 9 rows and of 20 in turn, on the same weights and momentum; what one leaves is what the
 * other is given by hand. */
static void test_steps_of_several_batches(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  ct_device *dev = open_device("emu:");
  ct_network *n[2] = {make(dev, 9, true, NULL)}, *alone[2];
  struct ct_network_info info;
  n[1] = make(dev, 20, true, n[0]);
  for (unsigned i = 0; i < 2; ++i)
    alone[i] = make(dev, i ? 20 : 9, true, NULL);
  ok(dev, ct_network_draw(n[0], 3));
  ok(dev, ct_network_draw(alone[0], 3));
  for (uint64_t step = 0; step < 4; ++step) {
    const unsigned now = step % 2;
    ct_rng again = rng;
    put_rows(dev, n[now], now ? 20 : 9, true, &rng);
    put_rows(dev, alone[now], now ? 20 : 9, true, &again);
    ok(dev, ct_network_run(n[now], CT_TRAINING, step));
    ok(dev, ct_network_run(alone[now], CT_TRAINING, step));
    same_tensor(dev, n[now], alone[now], "loss");
    same_weights(dev, n[0], alone[now]);
    same_weights(dev, n[1], alone[now]);
    copy_weights(dev, alone[now], alone[!now]);
  }
  assert_int_equal(ct_network_info(n[0], &info), CT_OK);
  assert_int_equal(info.steps, 4);
  for (unsigned i = 0; i < 2; ++i) {
    ct_network_free(n[i]);
    ct_network_free(alone[i]);
  }
  ct_close(dev);
}

/* A version that was made for one is good for the others, a server's, too. */
static void test_versions_are_for_all(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  ct_device *dev = open_device("emu:");
  ct_network *steps = make(dev, 9, true, NULL), *one = make(dev, 1, false, steps);
  ct_network *many = make(dev, 40, false, steps), *other = make(dev, 40, false, NULL);
  ct_server *server;
  uint64_t tag;
  ok(dev, ct_network_draw(steps, 4));
  ct_weights *w = publish(dev, steps, one), *of_other = publish(dev, steps, other);
  ct_rng again = rng;
  put_rows(dev, many, 40, false, &rng);
  put_rows(dev, other, 40, false, &again);
  put_rows(dev, steps, 9, true, &rng);
  ok(dev, ct_network_run(steps, CT_TRAINING, 0)); /* they are other weights from here on */
  ok(dev, ct_network_submit(many, &(struct ct_run){.weights = w}, &tag));
  wait_for(dev, tag);
  ok(dev, ct_network_submit(other, &(struct ct_run){.weights = of_other}, &tag));
  wait_for(dev, tag);
  same_tensor(dev, many, other, "logits");
  ok(dev, ct_network_server_create(many, w, NULL, &server));
  ct_server_free(server);
  REFUSED(dev, CT_ERR_ARG, "something else",
          ct_network_submit(other, &(struct ct_run){.weights = w}, &tag));
  REFUSED(dev, CT_ERR_ARG, "something else",
          ct_network_submit(many, &(struct ct_run){.weights = of_other}, &tag));
  ct_network_free(one); /* what it was made for */
  REFUSED(dev, CT_ERR_ARG, "something else",
          ct_network_submit(many, &(struct ct_run){.weights = w}, &tag));
  ct_weights_free(w);
  ct_weights_free(of_other);
  ct_network_free(other);
  ct_network_free(many);
  ct_network_free(steps);
  ct_close(dev);
}

/* ---- Who comes in whose way ---------------------------------------------------------------- */

static void test_runs_in_each_others_way(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(4);
  ct_device *dev = open_device("sim:"); /* emu: would end a run at once */
  ct_network *steps = make(dev, 9, true, NULL), *answers = make(dev, 4, false, steps);
  ct_network *more = make(dev, 2, false, steps);
  const int bias = find(steps, "fc1.bias");
  float x[HIDDEN];
  uint64_t tag[3];
  ct_weights *version;
  ct_server *server;
  const struct ct_run step = {.queue = CT_TRAINING}, ask = {.queue = CT_INFERENCE};
  ok(dev, ct_network_draw(steps, 4));
  put_rows(dev, steps, 9, true, &rng);
  put_rows(dev, answers, 4, false, &rng);
  put_rows(dev, more, 2, false, &rng);
  /* First runs make nothing beside the weights: they are readers as all that follow. */
  /* A step is under way: nobody reads beside it, but behind it. */
  ok(dev, ct_network_submit(steps, &step, &tag[0]));
  REFUSED(dev, CT_ERR_BUSY, "publish a version", ct_network_submit(answers, &ask, NULL));
  REFUSED(dev, CT_ERR_BUSY, "can be read", ct_network_read(answers, bias, x, HIDDEN));
  REFUSED(dev, CT_ERR_BUSY, "can be saved", ct_network_save(answers, "/nonexistent/x"));
  REFUSED(dev, CT_ERR_BUSY, "can be served",
          ct_network_server_create(answers, NULL, NULL, &server));
  ok(dev, ct_network_submit(answers, &step, &tag[1]));
  wait_for(dev, tag[0]);
  wait_for(dev, tag[1]);
  check_answers(dev, steps, answers, 4, &rng);
  /* Answers are: others may read, in either queue; no step, no writing. */
  ok(dev, ct_network_submit(answers, &ask, &tag[0]));
  ok(dev, ct_network_submit(more, &step, &tag[1]));
  REFUSED(dev, CT_ERR_BUSY, "publish a version", ct_network_submit(steps, &step, NULL));
  REFUSED(dev, CT_ERR_BUSY, "can be drawn", ct_network_draw(steps, 1));
  REFUSED(dev, CT_ERR_BUSY, "can be written", ct_network_write(steps, bias, x, HIDDEN));
  ok(dev, ct_network_read(steps, bias, x, HIDDEN)); /* the host reads with them */
  REFUSED(dev, CT_ERR_IO, "nonexistent", ct_network_save(steps, "/nonexistent/x"));
  wait_for(dev, tag[0]);
  wait_for(dev, tag[1]);
  ok(dev, ct_network_submit(steps, &step, &tag[2]));
  wait_for(dev, tag[2]);
  /* A version is being made: the host reads with it, and does not write. */
  ok(dev, ct_network_publish_submit(steps, answers, NULL, &version, &tag[0]));
  ok(dev, ct_network_read(steps, bias, x, HIDDEN));
  REFUSED(dev, CT_ERR_BUSY, "can be written", ct_network_write(steps, bias, x, HIDDEN));
  wait_for(dev, tag[0]);
  ok(dev, ct_network_write(steps, bias, x, HIDDEN));
  ct_weights_free(version);
  ct_network_free(more);
  ct_network_free(answers);
  ct_network_free(steps);
  ct_close(dev);
}

/* Answers right behind a step in its queue, which waits for the last stores: by submitting, by
 * waiting. The step is seen whole, as behind a step that was waited for. */
static void behind_a_step(const char *uri, uint32_t rows, bool waits) {
  float got[2][MOST * OUT];
  ct_device *dev = open_device(uri);
  for (unsigned apart = 0; apart < 2; ++apart) {
    ct_rng rng = ct_rng_make(8);
    ct_network *steps = make(dev, 16, true, NULL), *answers = make(dev, rows, false, steps);
    const struct ct_run run = {.queue = CT_INFERENCE};
    uint64_t tag[2];
    ok(dev, ct_network_draw(steps, 4));
    put_rows(dev, steps, 16, true, &rng);
    put_rows(dev, answers, rows, false, &rng);
    ok(dev, ct_network_run(answers, CT_INFERENCE, 0));
    ok(dev, ct_network_submit(steps, &run, &tag[0]));
    if (apart) wait_for(dev, tag[0]);
    if (waits)
      ok(dev, ct_network_run(answers, CT_INFERENCE, 0));
    else
      ok(dev, ct_network_submit(answers, &run, &tag[1]));
    const struct ct_event step = apart ? (struct ct_event){0} : wait_for(dev, tag[0]);
    const struct ct_event answer = waits ? (struct ct_event){0} : wait_for(dev, tag[1]);
    if (!apart && !waits) assert_true(answer.start >= step.end);
    ok(dev, ct_network_read(answers, find(answers, "logits"), got[apart], (size_t)rows * OUT));
    ct_network_free(answers);
    ct_network_free(steps);
  }
  ct_assert_same("logits", (uint8_t *)got[0], (uint8_t *)got[1],
                 (size_t)rows * OUT * sizeof(float));
  ct_close(dev);
}

static void test_answers_behind_a_step(void **state) {
  (void)state;
  static const unsigned stall[] = {0, 50, 80, 97};
  for (unsigned seed = 1; seed <= 6; ++seed)
    for (unsigned i = 0; i < sizeof stall / sizeof *stall; ++i) {
      char uri[64];
      snprintf(uri, sizeof uri, "sim:stall=%u,seed=%u", stall[i], seed);
      behind_a_step(uri, seed % 2 ? 1 : 5, seed % 3 == 0);
    }
  behind_a_step("sim:memory=sdram", 1, false);
}

/* The largest piece of memory that is free. */
static uint64_t largest(ct_device *dev) {
  uint64_t least = 0, most = 1 << 20, at;
  while (most - least > CT_UNIT) {
    const uint64_t half = (least + most) / 2;
    if (ct_mem_alloc(dev, half, &at)) {
      most = half;
    } else {
      ok(dev, ct_mem_free(dev, at));
      least = half;
    }
  }
  return least;
}

/* The memory is there until the last of them is gone, then it is free again. */
static void test_who_is_freed_first(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(5);
  ct_device *dev = open_device("emu:dram=1");
  const uint64_t most = largest(dev);
  ct_network *steps = make(dev, 9, true, NULL), *first = make(dev, 4, false, steps);
  ct_network *second = make(dev, 3, false, first), *other = make(dev, 3, false, NULL);
  uint64_t at = 0;
  ok(dev, ct_network_draw(steps, 4));
  ct_weights *w = publish(dev, steps, other);
  ct_network_free(steps);
  ct_network_free(first);
  ct_rng again = rng;
  put_rows(dev, second, 3, false, &rng);
  put_rows(dev, other, 3, false, &again);
  const uint64_t junk = 1 << 18;
  uint8_t *bytes = malloc(junk);
  assert_non_null(bytes);
  memset(bytes, 0x7f, junk);
  ok(dev, ct_mem_alloc(dev, junk, &at)); /* nobody else gets it meanwhile */
  ok(dev, ct_mem_write(dev, at, bytes, junk));
  ok(dev, ct_network_run(second, CT_INFERENCE, 0));
  uint64_t tag;
  ok(dev, ct_network_submit(other, &(struct ct_run){.weights = w}, &tag));
  wait_for(dev, tag);
  same_tensor(dev, second, other, "logits");
  free(bytes);
  ok(dev, ct_mem_free(dev, at));
  ct_weights_free(w);
  ct_network_free(other);
  ct_network_free(second);
  assert_int_equal(largest(dev), most);
  ct_close(dev);
}

/* All of them at once. */
static void test_the_device_is_closed(void **state) {
  (void)state;
  ct_device *dev = open_device("emu:");
  ct_network *steps = make(dev, 9, true, NULL), *answers = make(dev, 4, false, steps);
  uint64_t tag;
  ok(dev, ct_network_draw(steps, 4));
  ok(dev, ct_network_submit(answers, &(struct ct_run){.queue = CT_TRAINING}, &tag));
  ct_close(dev);
  assert_int_equal(ct_network_run(answers, CT_INFERENCE, 0), CT_ERR_CLOSED);
  ct_network_free(steps);
  ct_network_free(answers);
}

/* ---- What does not fit --------------------------------------------------------------------- */

static void refuse(ct_device *dev, ct_network *of, const char *text, int error,
                   const struct ct_network_options *like, bool trains) {
  struct ct_network_options options = *like;
  ct_network *n = of;
  options.weights_of = of;
  REFUSED(dev, error, text, try_make(dev, 4, trains ? &kSgd : NULL, &options, &n));
  assert_null(n);
}

static ct_graph *one_layer(void) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int x = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = {2, {1, IN}}});
  const int w = ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "w", .role = CT_ROLE_WEIGHT, .shape = {2, {OUT, IN}}});
  const int b = ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "b", .role = CT_ROLE_WEIGHT, .shape = {1, {OUT}}});
  const int in[] = {x, w, b};
  const int y =
      ct_graph_add(g, &(struct ct_new_node){.op = "linear", .inputs = in, .input_count = 3});
  if (ct_graph_result(g, y) < 0 || ct_graph_check(g) < 0) fail_msg("%s", ct_graph_error(g));
  return g;
}

static void test_what_does_not_fit(void **state) {
  (void)state;
  ct_device *dev = open_device("emu:"), *second = open_device("emu:");
  const struct ct_network_options plain = {.mantissa = 0}, kernels = {.kernels = true};
  ct_network *steps = make(dev, 9, true, NULL), *answers = make(dev, 1, false, NULL), *n = steps;
  refuse(dev, steps, "is kept in another way", CT_ERR_UNSUPPORTED, &kernels, false);
  refuse(dev, answers, "is kept in another way", CT_ERR_UNSUPPORTED, &plain, true);
  refuse(dev, steps, "another width", CT_ERR_UNSUPPORTED,
         &(struct ct_network_options){.mantissa = 4}, false);
  refuse(dev, steps, "several members", CT_ERR_UNSUPPORTED,
         &(struct ct_network_options){.members = 3}, true);
  REFUSED(second, CT_ERR_ARG, "on another device",
          try_make(second, 4, NULL, &(struct ct_network_options){.weights_of = steps}, &n));
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_mlp(g, (const uint32_t[]){IN, HIDDEN + 1, OUT}, 2, 1, false), CT_OK);
  assert_true(ct_graph_check(g) >= 0);
  REFUSED(dev, CT_ERR_UNSUPPORTED, "another shape",
          ct_network_create(dev, g, &(struct ct_network_options){.weights_of = steps}, &n));
  ct_graph_free(g);
  g = one_layer();
  REFUSED(dev, CT_ERR_UNSUPPORTED, "w is not in it",
          ct_network_create(dev, g, &(struct ct_network_options){.weights_of = steps}, &n));
  ct_graph_free(g);
  /* Weights are written where they are. */
  float x[HIDDEN] = {0};
  n = make(dev, 1, false, steps);
  REFUSED(dev, CT_ERR_UNSUPPORTED, "written there",
          ct_network_write(n, find(n, "fc1.bias"), x, HIDDEN));
  REFUSED(dev, CT_ERR_UNSUPPORTED, "drawn there", ct_network_draw(n, 1));
  ok(dev, ct_network_read(n, find(n, "fc1.bias"), x, HIDDEN));
  ct_network_free(n);
  REFUSED(
      dev, CT_ERR_ARG, "has weights",
      ct_network_load(dev, "/nonexistent", &(struct ct_network_options){.weights_of = steps}, &n));
  ct_network_free(answers);
  ct_network_free(steps);
  REFUSED(dev, CT_ERR_CLOSED, "freed before",
          try_make(dev, 4, NULL, &(struct ct_network_options){.weights_of = steps}, &n));
  ct_close(second);
  ct_close(dev);
}

/* Programs and weights of another one: only inputs and outputs are its own. */
static void test_programs_of_another(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(7);
  ct_device *dev = open_device("emu:");
  ct_network *one = make(dev, 4, false, NULL), *two;
  struct ct_network_info info;
  uint64_t tag[2];
  ok(dev,
     try_make(dev, 4, NULL, &(struct ct_network_options){.weights_of = one, .like = one}, &two));
  assert_int_equal(ct_network_info(two, &info), CT_OK);
  assert_int_equal(info.together, 2);
  assert_true(two->live == one->live);
  ok(dev, ct_network_draw(one, 7));
  ct_rng again = rng;
  put_rows(dev, one, 4, false, &rng);
  put_rows(dev, two, 4, false, &again);
  for (unsigned i = 0; i < 2; ++i)
    ok(dev, ct_network_submit(i ? two : one, &(struct ct_run){.frame = NULL}, &tag[i]));
  for (unsigned i = 0; i < 2; ++i)
    wait_for(dev, tag[i]);
  same_tensor(dev, one, two, "logits");
  ct_network_free(one);
  put_rows(dev, two, 4, false, &rng);
  ok(dev, ct_network_run(two, CT_INFERENCE, 0));
  ct_network_free(two);
  ct_close(dev);
}

/* By kernels, too, where these want the same: of the same graph for another number of rows. */
static void test_kernels(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(6);
  ct_device *dev = open_device("emu:");
  ct_network *one, *four;
  struct ct_network_options how = {.kernels = true};
  ok(dev, try_make(dev, 1, NULL, &how, &one));
  how.weights_of = one;
  ok(dev, try_make(dev, 4, NULL, &how, &four));
  assert_true(four->live == one->live);
  ok(dev, ct_network_draw(one, 7));
  ct_network *other = make(dev, 4, false, NULL);
  ok(dev, ct_network_draw(other, 7));
  ct_rng again = rng;
  put_rows(dev, four, 4, false, &rng);
  put_rows(dev, other, 4, false, &again);
  ok(dev, ct_network_run(four, CT_INFERENCE, 0));
  ok(dev, ct_network_run(other, CT_INFERENCE, 0));
  same_tensor(dev, four, other, "logits");
  ct_network_free(other);
  ct_network_free(four);
  ct_network_free(one);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_answers_see_each_step), cmocka_unit_test(test_steps_of_several_batches),
      cmocka_unit_test(test_versions_are_for_all),  cmocka_unit_test(test_runs_in_each_others_way),
      cmocka_unit_test(test_answers_behind_a_step), cmocka_unit_test(test_the_device_is_closed),
      cmocka_unit_test(test_who_is_freed_first),    cmocka_unit_test(test_what_does_not_fit),
      cmocka_unit_test(test_programs_of_another),   cmocka_unit_test(test_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
