/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines of servers with adaptive batches: kept by default wherever that is possible, at random
 * loads and deadlines, alone, beside other servers and beside training; service times that are
 * known for every size; deadlines that cannot hold; margins that follow.
 *
 * On sim:; what has no time on emu:, too.
 */
#include <stdio.h>
#include <string.h>

#include "ct_server.h"
#include "server_bed.h"

/* ---- What the device is told ---- */

static uint32_t model_word(struct bed *b, const struct ct_server *s, uint32_t word) {
  uint32_t value = 0;
  OK(ct_reg_write(b->dev, CT_REG_MODEL_ADDR, s->number * CT_MODEL_WORDS + word));
  OK(ct_reg_read(b->dev, CT_REG_MODEL_DATA, &value));
  return value;
}

static struct ct_server_info info_of(struct bed *b, int model) {
  struct ct_server_info info;
  OK(ct_server_info(b->served[model].server, &info));
  return info;
}

/* The device's table is info's, has every size, and never falls. */
static void check_table(struct bed *b, int model) {
  const struct ct_server *s = b->served[model].server;
  const struct ct_server_info info = info_of(b, model);
  for (uint32_t n = 0; n < CT_BATCH_MAX; ++n) {
    assert_true(info.service[n] > 0);
    assert_true(n == 0 || info.service[n] >= info.service[n - 1]);
    assert_int_equal(model_word(b, s, CT_MODEL_SERVICE + n), info.service[n]);
  }
  assert_int_equal(model_word(b, s, CT_MODEL_MARGIN), info.margin);
  assert_int_equal(info.least_deadline, info.service[0]);
  assert_int_equal(info.safe_deadline, info.service[0] + info.margin);
}

static void drop(struct bed *b, int model) {
  ct_server_free(b->served[model].server);
  b->served[model].server = NULL;
}

/* Whatever the largest batch, whether weights stay: known before the first request comes, and not
 * far from what batches take. */
static void every_size_is_known(void **state) {
  (void)state;
  struct bed *b = bed_open("sim:dram=32");
  for (int model = 0; model < BED_MODELS; ++model) {
    for (int draw = 0; draw < 4; ++draw) {
      const struct ct_serving how = {.batching = CT_BATCHING_ADAPTIVE,
                                     .max_batch = ct_rng_below(&b->rng, CT_BATCH_MAX + 1),
                                     .stream = ct_rng_below(&b->rng, 2)};
      struct ask ask = {.served = &b->served[model], .sample = 1};
      bed_serve(b, model, &how);
      check_table(b, model);
      assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 0);
      const uint32_t said = info_of(b, model).service[0];
      bed_push(b, &ask, 1, CT_NO_CYCLE);
      const struct ct_event r = bed_reap(b, &ask);
      bed_check(b, &r);
      assert_in_range(r.end - r.start, said * 9 / 10, said * 11 / 10);
      drop(b, model);
    }
  }
  bed_close(b);
}

/* Some sizes are given: these stay, the others lie between them. */
static void given_sizes_stay(void **state) {
  (void)state;
  for (int emu = 0; emu < 2; ++emu) {
    struct bed *b = bed_open(emu ? "emu:dram=32" : "sim:dram=32");
    for (int draw = 0; draw < 30; ++draw) {
      struct ct_serving how = {.batching = (enum ct_batching)ct_rng_below(&b->rng, 3)};
      uint32_t at = 0;
      for (uint32_t n = ct_rng_below(&b->rng, CT_BATCH_MAX); n < CT_BATCH_MAX;
           n += 1 + ct_rng_below(&b->rng, 6))
        how.service[n] = at += 1 + ct_rng_below(&b->rng, 5000);
      bed_serve(b, 0, &how);
      check_table(b, 0);
      const struct ct_server_info info = info_of(b, 0);
      for (uint32_t n = 0; n < CT_BATCH_MAX; ++n)
        if (how.service[n]) assert_int_equal(info.service[n], how.service[n]);
      drop(b, 0);
    }
    bed_close(b);
  }
}

/* Where nothing could be measured (here for want of device memory) batches go at once, until one
 * has been served. */
static void known_by_what_is_served(void **state) {
  (void)state;
  enum { N = 3 };
  struct ask ask[N];
  struct bed *b = bed_open("sim:dram=32");
  uint64_t taken = 0;
  OK(ct_mem_alloc(b->dev, ct_heap_largest(&b->dev->data), &taken));
  while (ct_heap_largest(&b->dev->data) >= 256) {
    uint64_t more = 0;
    OK(ct_mem_alloc(b->dev, ct_heap_largest(&b->dev->data), &more));
  }
  bed_serve(b, 0, &(struct ct_serving){.batching = CT_BATCHING_ADAPTIVE, .max_wait = 1000000});
  assert_int_equal(info_of(b, 0).service[0], 0);
  assert_int_equal(info_of(b, 0).least_deadline, 0);
  for (uint32_t i = 0; i < N; ++i) {
    ask[i] = (struct ask){.served = &b->served[0], .sample = i};
    bed_push(b, &ask[i], i ? 40000 : 0, CT_NO_CYCLE);
    const struct ct_event r = bed_reap(b, &ask[i]);
    bed_check(b, &r);
    if (i == 0) assert_in_range(r.start - r.arrive, 1, 500);
    if (i == N - 1) assert_in_range(r.start - r.arrive, 10000, 40000);
    for (uint32_t n = 0; n < CT_BATCH_MAX; ++n)
      assert_true(info_of(b, 0).service[n] >= (n ? info_of(b, 0).service[n - 1] : 1));
  }
  bed_close(b);
}

/* A watchdog that is too short for any batch: the server is there, its requests get the error. */
static void no_batch_succeeds(void **state) {
  (void)state;
  struct ask ask = {.sample = 2};
  struct bed *b = bed_open("sim:dram=32");
  bed_serve(b, 0, &(struct ct_serving){.batching = CT_BATCHING_ADAPTIVE, .watchdog = 50});
  ask.served = &b->served[0];
  assert_int_equal(info_of(b, 0).safe_deadline, 0);
  bed_push(b, &ask, 30000, CT_NO_CYCLE);
  const struct ct_event r = bed_reap(b, &ask);
  assert_int_equal(r.code, CT_DEV_WATCHDOG);
  assert_int_equal(r.met, CT_MET_NO);
  bed_close(b);
}

/* ---- Margins follow ---- */

/* Others that are served, and training, make it longer; one that goes makes it shorter. */
static void margins_follow(void **state) {
  (void)state;
  static const struct ct_serving adaptive = {.batching = CT_BATCHING_ADAPTIVE};
  struct bed_training training;
  struct bed *b = bed_open("sim:dram=32");
  bed_serve(b, 0, &adaptive);
  const uint32_t alone = info_of(b, 0).margin;
  bed_serve(b, 1, &adaptive);
  OK(ct_poll(b->dev));
  const uint32_t two = info_of(b, 0).margin, other = info_of(b, 1).service[15];
  assert_true(two >= alone + other - alone / 8);
  assert_int_equal(model_word(b, b->served[0].server, CT_MODEL_MARGIN), two);
  drop(b, 1);
  OK(ct_poll(b->dev));
  assert_in_range(info_of(b, 0).margin, alone - alone / 8, alone + alone / 8);
  bed_training_open(b->dev, &training);
  bed_train(&training);
  const uint32_t beside = info_of(b, 0).margin;
  assert_true(beside > alone + alone / 8);
  assert_int_equal(model_word(b, b->served[0].server, CT_MODEL_MARGIN), beside);
  drop(b, 0);
  bed_serve(b, 0, &(struct ct_serving){.batching = CT_BATCHING_ADAPTIVE, .margin = 77});
  bed_train(&training);
  assert_int_equal(info_of(b, 0).margin, 77);
  ct_model_free(training.model);
  bed_close(b);
}

/* ---- Deadlines that cannot hold ---- */

struct lines {
  unsigned count[4];
  char last[256];
};

static void note(void *arg, int level, const char *text) {
  struct lines *l = arg;
  if (!strstr(text, "deadline of")) return;
  ++l->count[level];
  snprintf(l->last, sizeof l->last, "%s", text);
}

/* At creation it is refused; at a push it is said in the log, once, and served all the same. */
static void what_cannot_hold(void **state) {
  (void)state;
  struct lines lines = {{0}, ""};
  struct ask ask[3];
  ct_server *server = NULL;
  struct bed *b = bed_open("sim:dram=32");
  b->dev->log = note;
  b->dev->log_arg = &lines;
  b->dev->log_level = CT_LOG_INFO;
  struct ct_serving how = {.batching = CT_BATCHING_ADAPTIVE, .deadline = 300};
  assert_int_equal(ct_server_create(b->served[0].model, b->served[0].weights, &how, &server),
                   CT_ERR_ARG);
  assert_non_null(strstr(ct_last_error(b->dev), "a deadline of 300 cycles cannot hold: a request"));
  assert_null(server);
  how.batching = CT_BATCHING_NONE;
  assert_int_equal(ct_server_create(b->served[0].model, b->served[0].weights, &how, &server),
                   CT_ERR_ARG);
  how = (struct ct_serving){.batching = CT_BATCHING_ADAPTIVE, .deadline = 50000};
  bed_serve(b, 0, &how);
  assert_int_equal(lines.count[CT_LOG_WARNING], 0);
  for (uint32_t i = 0; i < 3; ++i) {
    ask[i] = (struct ask){.served = &b->served[0], .sample = i};
    bed_push(b, &ask[i], i ? 300 : 60000, CT_NO_CYCLE);
    const struct ct_event r = bed_reap(b, &ask[i]);
    bed_check(b, &r);
    assert_int_equal(r.met, i ? CT_MET_NO : CT_MET_YES);
    assert_int_equal(lines.count[CT_LOG_WARNING], i > 0);
  }
  assert_non_null(strstr(lines.last, "cannot hold: a request alone takes"));
  bed_close(b);
}

/* ---- Deadlines that hold ---- */

/* BUDGET: cycles of a load, about. HOST: between requests, at least: it takes the host some fifteen
 * register accesses to push one and take its record. */
enum { HOST = 250, ASKS = BED_ASKS, REQUESTS = 350, BUDGET = 250000 };

struct load {
  const char *uri;
  int models;             /* that are served */
  bool training;          /* goes on beside them */
  bool mixed;             /* only model 0 is adaptive */
  uint32_t load_percent;  /* of what full batches can take */
  uint32_t slack_percent; /* of the deadline above the safe one */
};

struct steps {
  struct bed_training training;
  ct_batch *batch;
  uint64_t submitted, done;
  unsigned adaptive; /* requests of adaptive servers that have ended */
  bool over;         /* nothing more is submitted */
};

/* Up to four steps wait. */
static void keep_training(struct bed *b, struct steps *t) {
  const struct ct_step step = {.batch = t->batch, .user = t};
  while (!t->over && t->submitted - t->done < 4) {
    OK(ct_model_step_submit(t->training.model, &step, NULL));
    ++t->submitted;
  }
}

/* Wide enough that a step keeps every unit busy. */
static void begin_training(struct bed *b, struct steps *t) {
  static const uint32_t widths[] = {200, 128, 10};
  static const float x[32 * 200];
  static const uint32_t labels[32];
  const struct ct_training how = {.batch = 32, .rates = {.lr = 0.1f, .momentum = 0.5f}};
  *t = (struct steps){.batch = NULL};
  OK(ct_model_create(b->dev, widths, 2, 3, &t->training.model));
  OK(ct_model_training(t->training.model, &how));
  OK(ct_batch_create(t->training.model, &t->batch));
  OK(ct_batch_write(t->batch, x, labels));
  keep_training(b, t);
}

static void take_one(struct bed *b, struct steps *t, unsigned *missed, unsigned *ended) {
  struct ct_event e;
  OK(ct_reap(b->dev, &e, 20000));
  if (e.kind == CT_EVENT_STEP) {
    assert_int_equal(e.error, CT_OK);
    ++t->done;
    keep_training(b, t);
    return;
  }
  bed_check(b, &e);
  ++*ended;
  if (e.server->how.batching != CT_BATCHING_ADAPTIVE) return; /* promises nothing */
  ++t->adaptive;
  *missed += e.met != CT_MET_YES;
}

/* Cycles from one request to the next, exponential in the mean by a sum of halves. */
static uint64_t gap(struct bed *b, uint64_t mean) {
  uint64_t sum = 0;
  while (ct_rng_below(&b->rng, 2))
    sum += mean;
  return sum / 2 + ct_rng_below(&b->rng, (uint32_t)mean + 1);
}

/* How many in a thousand were late. */
static unsigned run_load(const struct load *l) {
  struct ask *ask = test_calloc(ASKS, sizeof *ask);
  struct steps training = {.batch = NULL};
  unsigned missed = 0, ended = 0;
  uint64_t full = 0, at = 0;
  uint32_t safe = 0;
  struct bed *b = bed_open(l->uri);
  for (int i = 0; i < l->models; ++i)
    bed_serve(
        b, i,
        &(struct ct_serving){.batching = l->mixed && i ? CT_BATCHING_NONE : CT_BATCHING_ADAPTIVE});
  /* What a server that is not adaptive takes is known when it has answered. */
  for (int i = 0; i < l->models; ++i) {
    ask[i] = (struct ask){.served = &b->served[i]};
    bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    const struct ct_event r = bed_reap(b, &ask[i]);
    bed_check(b, &r);
  }
  if (l->training) begin_training(b, &training);
  OK(ct_poll(b->dev));
  for (int i = 0; i < l->models; ++i) {
    const struct ct_server_info info = info_of(b, i);
    full += info.service[15] ? info.service[15] : info_of(b, 0).service[15];
    if (info.safe_deadline > safe) safe = info.safe_deadline;
  }
  uint64_t mean = full * 100 / (uint64_t)l->models / CT_BATCH_MAX / l->load_percent + 1;
  if (mean < HOST) mean = HOST;
  const uint32_t deadline = safe + safe / 100 * l->slack_percent;
  const unsigned count = mean * REQUESTS > BUDGET ? (unsigned)(BUDGET / mean) : REQUESTS;
  OK(ct_now(b->dev, &at));
  at += 5000;
  for (unsigned pushed = 0; ended < count;) {
    struct ask *a = &ask[pushed % ASKS];
    if (pushed == count || a->busy) {
      take_one(b, &training, &missed, &ended);
      continue;
    }
    *a = (struct ask){.served = &b->served[ct_rng_below(&b->rng, (uint32_t)l->models)],
                      .sample = ct_rng_below(&b->rng, BED_SAMPLES)};
    bed_push(b, a, deadline, at += gap(b, mean));
    ++pushed;
  }
  print_message("%s, %d models%s%s, load %u %%, deadline %u: %u of %u late\n", l->uri, l->models,
                l->mixed ? ", one adaptive" : "", l->training ? ", training" : "", l->load_percent,
                deadline, missed, training.adaptive);
  training.over = true;
  while (training.submitted > training.done)
    take_one(b, &training, &missed, &ended);
  ct_batch_free(training.batch);
  ct_model_free(training.training.model);
  bed_close(b);
  test_free(ask);
  return missed * 1000 / training.adaptive;
}

static void deadlines_hold(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(77);
  for (unsigned draw = 0; draw < (CT_TB_SANITIZED ? 5 : 10); ++draw) {
    const struct load l = {.uri = draw % 5 == 4 ? "sim:dram=32,stall=10" : "sim:dram=32",
                           .models = 1 + (int)ct_rng_below(&rng, BED_MODELS),
                           .training = draw % 2,
                           .mixed = ct_rng_below(&rng, 3) == 0,
                           .load_percent = 2 + ct_rng_below(&rng, 70),
                           .slack_percent = ct_rng_below(&rng, 4) * ct_rng_below(&rng, 100)};
    assert_in_range(run_load(&l), 0, 10);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_size_is_known),     cmocka_unit_test(given_sizes_stay),
      cmocka_unit_test(known_by_what_is_served), cmocka_unit_test(no_batch_succeeds),
      cmocka_unit_test(margins_follow),          cmocka_unit_test(what_cannot_hold),
      cmocka_unit_test(deadlines_hold),
  };
  ct_tb_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
