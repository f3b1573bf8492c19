/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks in the device's batches: what a server of a perceptron answers is what a run of it does,
 * whatever trains it, and what cannot be served is refused with a sentence.
 */
#include "ct_tb.h"

#include <stdlib.h>
#include <string.h>

#include "coltrain/network.h"

enum { IN = 40, OUT = 5, ROWS = 23, BATCH = 8 };
static const uint32_t kWidths[] = {IN, 33, OUT};

struct bed {
  ct_device *dev;
  ct_network *steps, *answers;
  ct_rows *rows;
  ct_answers *places;
  float x[ROWS][IN];
};

static void ok(const struct bed *b, int rc) {
  if (rc < 0) fail_msg("%s", ct_last_error(b->dev));
}

static ct_graph *trained(const struct ct_optimise *how) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  if (ct_graph_mlp(g, kWidths, 2, BATCH, true) ||
      ct_graph_optimise(g, ct_graph_find(g, "loss"), how) || ct_graph_check(g))
    fail_msg("%s", ct_graph_error(g));
  return g;
}

static ct_graph *answering(const ct_graph *from, uint32_t rows) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  if (ct_graph_answers(g, from, ct_graph_find((ct_graph *)from, "logits"), rows) ||
      ct_graph_check(g))
    fail_msg("%s", ct_graph_error(g));
  return g;
}

static void open_bed(struct bed *b, const char *uri, const struct ct_optimise *how) {
  ct_rng rng = ct_rng_make(1);
  ct_graph *g = trained(how), *a = answering(g, 3);
  if (ct_open(uri, &b->dev)) fail_msg("%s", ct_last_error(NULL));
  ok(b, ct_network_create(b->dev, g, NULL, &b->steps));
  ok(b, ct_network_create(b->dev, a, NULL, &b->answers));
  ok(b, ct_network_draw(b->steps, 3));
  for (unsigned i = 0; i < ROWS * IN; ++i)
    b->x[i / IN][i % IN] = ((float)ct_rng_below(&rng, 2001) - 900.0f) * 1e-3f;
  ok(b, ct_network_rows_create(b->answers, ROWS, &b->rows));
  ok(b, ct_network_answers_create(b->answers, ROWS, &b->places));
  ok(b, ct_rows_write(b->rows, 0, ROWS, b->x[0]));
  ct_graph_free(a);
  ct_graph_free(g);
}

static void close_bed(struct bed *b) {
  ct_rows_free(b->rows);
  ct_answers_free(b->places);
  ct_network_free(b->answers);
  ct_network_free(b->steps);
  ct_close(b->dev);
}

static struct ct_event wait_for(const struct bed *b, uint64_t tag) {
  struct ct_event e;
  ok(b, ct_wait(b->dev, tag, &e, CT_FOREVER));
  if (e.error) fail_msg("%s", ct_code_text(e.code));
  return e;
}

static uint64_t step(const struct bed *b, uint64_t number) {
  float y[BATCH * OUT] = {0};
  uint64_t tag;
  for (unsigned i = 0; i < BATCH; ++i)
    y[i * OUT + (i + number) % OUT] = 1;
  ct_graph *g = ct_network_graph(b->steps);
  ok(b, ct_network_write(b->steps, ct_graph_find(g, "x"), b->x[0], BATCH * IN));
  ok(b, ct_network_write(b->steps, ct_graph_find(g, "y"), y, BATCH * OUT));
  ok(b, ct_network_submit(b->steps, &(struct ct_run){.queue = CT_TRAINING, .step = number}, &tag));
  return tag;
}

static ct_weights *publish(const struct bed *b) {
  ct_weights *w;
  uint64_t tag;
  ok(b, ct_network_publish_submit(b->steps, b->answers, NULL, &w, &tag));
  wait_for(b, tag);
  return w;
}

/* What runs answer, three rows at a time. */
static void by_runs(const struct bed *b, ct_weights *w, float want[ROWS][OUT]) {
  ct_graph *g = ct_network_graph(b->answers);
  float x[3][IN], y[3][OUT];
  for (unsigned i = 0; i < ROWS; i += 3) {
    uint64_t tag;
    for (unsigned k = 0; k < 3; ++k)
      memcpy(x[k], b->x[(i + k) % ROWS], sizeof x[k]);
    ok(b, ct_network_write(b->answers, ct_graph_find(g, "x"), x[0], 3 * IN));
    ok(b, ct_network_submit(b->answers, &(struct ct_run){.weights = w}, &tag));
    wait_for(b, tag);
    ok(b, ct_network_read(b->answers, ct_graph_find(g, "logits"), y[0], 3 * OUT));
    for (unsigned k = 0; k < 3; ++k)
      memcpy(want[(i + k) % ROWS], y[k], sizeof y[k]);
  }
}

/* All rows as requests; the largest batch. */
static unsigned by_batches(const struct bed *b, ct_server *server, float got[ROWS][OUT]) {
  uint64_t tag[ROWS];
  unsigned most = 0;
  for (unsigned i = 0; i < ROWS; ++i) {
    const struct ct_request r = {.rows = b->rows, .row = i, .answers = b->places, .answer = i};
    ok(b, ct_server_push(server, &r, &tag[i]));
  }
  for (unsigned i = 0; i < ROWS; ++i) {
    const struct ct_event e = wait_for(b, tag[i]);
    assert_int_equal(e.kind, CT_EVENT_REQUEST);
    if (e.batch > most) most = e.batch;
  }
  ok(b, ct_answers_read(b->places, 0, ROWS, got[0]));
  return most;
}

static void check_answers(const struct bed *b, ct_server *server, ct_weights *w) {
  float got[ROWS][OUT], want[ROWS][OUT];
  const unsigned most = by_batches(b, server, got);
  assert_in_range(most, 2, 16);
  by_runs(b, w, want);
  ct_assert_same("answers", (const uint8_t *)got, (const uint8_t *)want, sizeof got);
}

static void check_serving(const char *uri, const struct ct_optimise *how) {
  static const struct ct_serving ways[] = {
      {.batching = CT_BATCHING_NONE},
      {.batching = CT_BATCHING_ADAPTIVE, .stream = true},
      {.batching = CT_BATCHING_FIXED, .max_batch = 5, .max_wait = 1000}};
  struct bed b;
  open_bed(&b, uri, how);
  for (unsigned i = 0; i < sizeof ways / sizeof *ways; ++i) {
    ct_server *server;
    wait_for(&b, step(&b, 2 * i));
    ct_weights *first = publish(&b), *second;
    ok(&b, ct_network_server_create(b.answers, first, &ways[i], &server));
    check_answers(&b, server, first);
    const uint64_t beside = step(&b, 2 * i + 1);
    check_answers(&b, server, first);
    wait_for(&b, beside);
    second = publish(&b);
    ok(&b, ct_server_set_weights(server, second));
    ct_weights_free(first); /* the last batches may use them */
    check_answers(&b, server, second);
    ct_server_free(server);
    ct_weights_free(second);
  }
  close_bed(&b);
}

static const struct ct_optimise kSgd = {.schedule = {.rate = 0.1}, .momentum = 0.9};
static const struct ct_optimise kAdam = {.optimiser = CT_OPTIMISER_ADAM,
                                         .schedule = {.rate = 0.01}};

static void test_answers_are_those_of_runs(void **state) {
  (void)state;
  check_serving("emu:", &kSgd);
  check_serving("emu:", &kAdam);
  check_serving("sim:", &kSgd);
  check_serving("sim:core=16x8", &kAdam);
}

/* Without a version: its own weights as they are at that moment. */
static void test_own_weights(void **state) {
  (void)state;
  struct bed b;
  ct_server *server;
  float first[ROWS][OUT], second[ROWS][OUT], got[ROWS][OUT];
  open_bed(&b, "emu:", &kSgd);
  ok(&b, ct_network_draw(b.answers, 1));
  by_runs(&b, NULL, first);
  ok(&b, ct_network_server_create(b.answers, NULL, NULL, &server));
  ok(&b, ct_network_draw(b.answers, 2));
  by_runs(&b, NULL, second);
  by_batches(&b, server, got);
  assert_memory_equal(got, first, sizeof got);
  ok(&b, ct_server_set_weights(server, NULL));
  by_batches(&b, server, got);
  assert_memory_equal(got, second, sizeof got);
  assert_true(memcmp(first, second, sizeof first) != 0);
  struct ct_server_info info;
  ok(&b, ct_server_info(server, &info));
  assert_int_equal(info.version, 2);
  ct_server_free(server);
  close_bed(&b);
}

/* A network and a model of the same widths, each with a server: rows are good for both. */
static void test_beside_a_model(void **state) {
  (void)state;
  struct bed b;
  ct_server *one, *two;
  ct_model *m;
  float first[ROWS][OUT], second[ROWS][OUT];
  open_bed(&b, "emu:", &kSgd);
  ok(&b, ct_model_create(b.dev, kWidths, 2, 7, &m));
  ok(&b, ct_network_draw(b.answers, 7));
  ok(&b, ct_network_server_create(b.answers, NULL, NULL, &one));
  ok(&b, ct_server_create(m, NULL, NULL, &two));
  by_batches(&b, one, first);
  by_batches(&b, two, second);
  assert_memory_equal(first, second, sizeof first);
  ct_model_free(m);
  ct_server_free(two); /* what it served is gone */
  ct_server_free(one);
  close_bed(&b);
}

#define REFUSED(bed, error, part, call)                                                      \
  do {                                                                                       \
    assert_int_equal(call, error);                                                           \
    if (!strstr(ct_last_error((bed)->dev), part)) fail_msg("%s", ct_last_error((bed)->dev)); \
  } while (0)

static void refuse_network(const struct bed *b, ct_graph *g, uint32_t mantissa) {
  const struct ct_network_options options = {.mantissa = mantissa};
  ct_network *n;
  ct_server *server = (ct_server *)b;
  ct_rows *rows = (ct_rows *)b;
  ct_answers *answers = (ct_answers *)b;
  ok(b, ct_network_create(b->dev, g, &options, &n));
  REFUSED(b, CT_ERR_UNSUPPORTED, "perceptrons alone",
          ct_network_server_create(n, NULL, NULL, &server));
  REFUSED(b, CT_ERR_UNSUPPORTED, "submit runs", ct_network_rows_create(n, 3, &rows));
  REFUSED(b, CT_ERR_UNSUPPORTED, "submit runs", ct_network_answers_create(n, 3, &answers));
  assert_null(server);
  assert_null(rows);
  assert_null(answers);
  ct_network_free(n);
}

static void test_what_is_refused(void **state) {
  (void)state;
  struct bed b;
  ct_server *server, *second;
  ct_graph *g = trained(&kSgd), *wide = answering(g, 65), *lenet;
  open_bed(&b, "emu:", &kSgd);
  refuse_network(&b, g, 0);
  refuse_network(&b, wide, 0);
  ct_graph *narrow = answering(g, 1);
  refuse_network(&b, narrow, 4);
  assert_int_equal(ct_graph_create(&lenet), CT_OK);
  assert_int_equal(ct_graph_builtin(lenet, "lenet5", 1, false), CT_OK);
  assert_int_equal(ct_graph_check(lenet), CT_OK);
  refuse_network(&b, lenet, 0);
  ct_weights *w = publish(&b), *other;
  uint64_t tag;
  ok(&b, ct_network_publish_submit(b.steps, b.steps, NULL, &other, &tag));
  wait_for(&b, tag);
  REFUSED(&b, CT_ERR_ARG, "something else",
          ct_network_server_create(b.answers, other, NULL, &server));
  REFUSED(&b, CT_ERR_ARG, "waiting policy",
          ct_network_server_create(b.answers, w, &(struct ct_serving){.batching = 9}, &server));
  ok(&b, ct_network_server_create(b.answers, w, NULL, &server));
  REFUSED(&b, CT_ERR_ARG, "served already", ct_network_server_create(b.answers, w, NULL, &second));
  REFUSED(&b, CT_ERR_ARG, "something else", ct_server_set_weights(server, other));
  ct_weights_free(other);
  ct_weights_free(w);
  ct_network_free(b.answers);
  b.answers = NULL;
  REFUSED(&b, CT_ERR_CLOSED, "was freed before", ct_server_set_weights(server, NULL));
  ct_server_free(server);
  assert_int_equal(ct_network_server_create(NULL, NULL, NULL, &server), CT_ERR_ARG);
  ct_graph_free(g);
  ct_graph_free(wide);
  ct_graph_free(narrow);
  ct_graph_free(lenet);
  close_bed(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_answers_are_those_of_runs), cmocka_unit_test(test_own_weights),
      cmocka_unit_test(test_beside_a_model), cmocka_unit_test(test_what_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
