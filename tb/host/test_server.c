/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving requests in batches, through the library: answers that do not depend on the batch, to the
 * bit, with several models, versions that change and weights that stay or go; requests that are
 * scheduled, cancelled, refused, failed; servers that are freed under load.
 *
 * On emu: and sim:.
 */
#include "ct_tb.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_cmd.h"
#include "ct_device.h"

enum { MODELS = 3, SAMPLES = 20, OUT_MOST = 24, IN_MOST = 300, VERSIONS = 40, PLACES = 128 };

static const uint32_t widths[MODELS][4] = {
    {64, 40, 24, 10}, {IN_MOST, 33, 20, 7}, {17, 16, 30, 24}};

/* A model, its server, and what each version answers to each sample. */
struct served {
  ct_model *model;
  ct_server *server;
  uint32_t version;
  size_t in, out;
  uint64_t rows; /* packed samples in device memory */
  uint64_t row_size, answer_size;
  float x[SAMPLES][IN_MOST];
  float want[VERSIONS][SAMPLES][OUT_MOST];
};

struct bed {
  ct_device *dev;
  bool emu;
  ct_rng rng;
  struct served served[MODELS];
  uint64_t out; /* PLACES answers */
};

static void ok(struct bed *b, int err, const char *call) {
  if (err) fail_msg("%s: %d: %s", call, err, ct_last_error(b->dev));
}
#define OK(call) ok(b, call, #call)

/* ---- Setting up ---- */

/* Changes the weights at random, publishes them, and asks for each answer alone. */
static void next_version(struct bed *b, struct served *s) {
  enum { MOST = IN_MOST * 40 };
  float *w = test_malloc(MOST * sizeof *w);
  for (uint32_t l = 0; l < 3; ++l) {
    const size_t n = (size_t)widths[s - b->served][l] * widths[s - b->served][l + 1];
    assert_true(n <= MOST);
    for (size_t i = 0; i < n; ++i)
      w[i] = ((float)ct_rng_below(&b->rng, 2001) - 1000.0f) * 0.0004f;
    OK(ct_model_set(s->model, l, w, NULL, NULL, NULL));
  }
  test_free(w);
  assert_true(s->version + 1 < VERSIONS);
  OK(ct_model_serve(s->model, &s->version));
  for (size_t i = 0; i < SAMPLES; ++i)
    OK(ct_model_infer(s->model, CT_IMAGE_SERVED, s->x[i], 1, s->want[s->version][i]));
}

static void open_served(struct bed *b, struct served *s) {
  const uint32_t *width = widths[s - b->served];
  uint8_t row[2 * IN_MOST];
  s->in = width[0];
  s->out = width[3];
  OK(ct_model_create(b->dev, width, 3, 5, &s->model));
  s->row_size = ct_pack_row_size(s->in);
  s->answer_size = ct_model_answer_size(s->model);
  assert_true(s->row_size <= sizeof row && s->row_size % 16 == 0);
  OK(ct_mem_alloc(b->dev, SAMPLES * s->row_size, &s->rows));
  for (size_t i = 0; i < SAMPLES; ++i) {
    for (size_t k = 0; k < s->in; ++k)
      s->x[i][k] = (float)ct_rng_below(&b->rng, 1000) * 0.001f - 0.3f;
    assert_int_equal(ct_pack_row(s->x[i], s->in, row), CT_OK);
    OK(ct_mem_write(b->dev, s->rows + i * s->row_size, row, s->row_size));
  }
  next_version(b, s);
}

static void open_bed(struct bed *b, const char *uri) {
  struct ct_info info;
  memset(b, 0, sizeof *b);
  b->rng = ct_rng_make(1);
  if (ct_open(uri, &b->dev)) fail_msg("%s", ct_last_error(NULL));
  OK(ct_info(b->dev, &info));
  assert_true(info.features & CT_FEATURE_REQUESTS);
  b->emu = !info.has_clock;
  OK(ct_mem_alloc(b->dev, (uint64_t)PLACES * OUT_MOST * sizeof(float), &b->out));
  for (int i = 0; i < MODELS; ++i)
    open_served(b, &b->served[i]);
}

static void close_bed(struct bed *b) {
  assert_int_equal(ct_server_outstanding(b->dev), 0);
  for (int i = 0; i < MODELS; ++i) {
    if (i % 2) ct_server_free(b->served[i].server);
    ct_model_free(b->served[i].model);
    if (!(i % 2)) ct_server_free(b->served[i].server);
  }
  ct_close(b->dev);
}

static void serve(struct bed *b, int i, const struct ct_serving *how) {
  OK(ct_server_create(b->served[i].model, how, &b->served[i].server));
}

/* ---- Requests ---- */

/* Where a request writes, and what; user of a request. */
struct ask {
  struct served *served;
  uint32_t sample, place;
  uint32_t first_version; /* that was served when it was pushed */
  uint64_t tag;
  bool busy;
};

static struct ct_request request_of(struct bed *b, struct ask *a) {
  return (struct ct_request){.input = a->served->rows + a->sample * a->served->row_size,
                             .output = b->out + (uint64_t)a->place * OUT_MOST * sizeof(float),
                             .user = a};
}

static void push(struct bed *b, struct ask *a, uint32_t deadline, uint64_t cycle) {
  struct ct_request r = request_of(b, a);
  r.deadline = deadline;
  a->busy = true;
  a->first_version = a->served->version;
  OK(ct_server_push_at(a->served->server, &r, cycle, &a->tag));
}

/* The answer is the version's to this sample, every bit. */
static void check_answer(struct bed *b, const struct ct_record *r) {
  struct ask *a = r->user;
  float got[OUT_MOST];
  assert_true(a->busy && r->tag == a->tag && r->server == a->served->server);
  if (r->error) fail_msg("a request failed: %s", ct_code_name(r->code));
  assert_true(r->met || r->deadline != CT_NO_CYCLE);
  assert_in_range(r->batch, 1, CT_BATCH_MAX);
  assert_in_range(r->version, a->first_version, a->served->version);
  OK(ct_mem_read(b->dev, b->out + (uint64_t)a->place * OUT_MOST * sizeof(float), got, sizeof got));
  ct_assert_same("answer", got, a->served->want[r->version][a->sample],
                 a->served->out * sizeof *got);
  a->busy = false;
}

/* ---- Training beside it ---- */

enum { BATCH = 8, TRAINED = 20 };
static const uint32_t trained_widths[] = {TRAINED, 17, 5};

struct training {
  ct_model *model;
  unsigned steps;
};

static void open_training(ct_device *dev, struct training *t) {
  const struct ct_training how = {.batch = BATCH, .lr = 0.2f, .momentum = 0.5f};
  *t = (struct training){.steps = 0};
  assert_int_equal(ct_model_create(dev, trained_widths, 2, 3, &t->model), CT_OK);
  assert_int_equal(ct_model_training(t->model, &how), CT_OK);
}

/* Each step has its own batch. */
static void train(struct training *t) {
  float x[BATCH * TRAINED];
  uint32_t labels[BATCH];
  for (unsigned i = 0; i < BATCH * TRAINED; ++i)
    x[i] = (float)((i * (t->steps + 3)) % 11) * 0.1f;
  for (unsigned i = 0; i < BATCH; ++i)
    labels[i] = (i + t->steps) % 5;
  assert_int_equal(ct_model_step(t->model, x, labels, NULL), CT_OK);
  ++t->steps;
}

/* The same weights as without any serving. */
static void check_training(const struct training *t) {
  float w[2][TRAINED * 17];
  struct training alone;
  ct_device *emu;
  assert_int_equal(ct_open("emu:dram=32", &emu), CT_OK);
  open_training(emu, &alone);
  while (alone.steps < t->steps)
    train(&alone);
  assert_int_equal(ct_model_get(t->model, 0, w[0], NULL, NULL, NULL), CT_OK);
  assert_int_equal(ct_model_get(alone.model, 0, w[1], NULL, NULL, NULL), CT_OK);
  ct_assert_same("trained weights", w[0], w[1], sizeof w[0]);
  ct_model_free(alone.model);
  ct_close(emu);
}

/* ---- Answers ---- */

struct mix {
  struct ask ask[PLACES];
  unsigned sizes[CT_BATCH_MAX + 1];
  size_t answered;
};

static void reap_some(struct bed *b, struct mix *m, size_t until_left) {
  struct ct_record r;
  while (ct_server_outstanding(b->dev) > until_left) {
    OK(ct_server_reap(b->dev, &r, 20000));
    check_answer(b, &r);
    ++m->sizes[r.batch];
    ++m->answered;
  }
}

static struct ask *free_ask(struct bed *b, struct mix *m) {
  for (uint32_t i = 0; i < PLACES; ++i)
    if (!m->ask[i].busy) {
      m->ask[i].place = i;
      m->ask[i].served = &b->served[ct_rng_below(&b->rng, MODELS)];
      m->ask[i].sample = ct_rng_below(&b->rng, SAMPLES);
      return &m->ask[i];
    }
  return NULL;
}

/* Bursts of requests to all models, with and without deadlines; now and then new weights, a
 * training step of another model, a job that uses all of the scratchpad, or a server that comes
 * anew with another policy. */
static void random_mixes(struct bed *b, size_t requests, bool stream) {
  struct mix *m = test_calloc(1, sizeof *m);
  struct training training;
  open_training(b->dev, &training);
  for (int i = 0; i < MODELS; ++i)
    serve(b, i,
          &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = 500, .stream = stream});
  while (m->answered < requests) {
    for (uint32_t n = 1 + ct_rng_below(&b->rng, 60); n; --n) {
      struct ask *a = free_ask(b, m);
      if (a)
        push(b, a, ct_rng_below(&b->rng, 2) * (20000 + ct_rng_below(&b->rng, 999)), CT_NO_CYCLE);
    }
    reap_some(b, m, ct_rng_below(&b->rng, 30));
    struct served *s = &b->served[ct_rng_below(&b->rng, MODELS)];
    const uint32_t what = ct_rng_below(&b->rng, 40);
    if (what == 0 && s->version + 2 < VERSIONS) {
      next_version(b, s);
    } else if (what < 3) {
      const struct ct_serving how = {.batching = (enum ct_batching)ct_rng_below(&b->rng, 3),
                                     .max_batch = ct_rng_below(&b->rng, CT_BATCH_MAX + 1),
                                     .max_wait = ct_rng_below(&b->rng, 3000),
                                     .margin = 300,
                                     .stream = stream};
      reap_some(b, m, 0);
      ct_server_free(s->server);
      serve(b, (int)(s - b->served), &how);
    } else if (what < 7) {
      train(&training);
    } else if (what == 7) {
      float logits[OUT_MOST];
      OK(ct_model_infer(s->model, CT_IMAGE_SERVED, s->x[1], 1, logits));
      ct_assert_same("alone", logits, s->want[s->version][1], s->out * sizeof *logits);
    }
  }
  reap_some(b, m, 0);
  check_training(&training);
  ct_model_free(training.model);
  unsigned seen = 0;
  for (unsigned n = 1; n <= CT_BATCH_MAX; ++n)
    seen += m->sizes[n] > 0;
  assert_in_range(seen, requests > 10000 ? CT_BATCH_MAX : 8, CT_BATCH_MAX);
  print_message("%zu answers, %u batches' mates of 16\n", m->answered, m->sizes[CT_BATCH_MAX]);
  test_free(m);
}

static void mixes_on(const char *uri, size_t requests, bool stream) {
  struct bed *b = test_malloc(sizeof *b);
  open_bed(b, uri);
  random_mixes(b, requests, stream);
  close_bed(b);
  test_free(b);
}

static void answers_do_not_depend_on_the_batch(void **state) {
  (void)state;
  mixes_on("emu:dram=32", 12000, false);
  mixes_on("emu:dram=32,path=plain,spm=16384", 1500, true);
}

static void answers_of_the_hardware(void **state) {
  (void)state;
  mixes_on("sim:dram=32,stall=10", 600, false);
}

/* ---- Weights that stay ---- */

static uint64_t loaded(struct bed *b) {
  uint64_t counter[32];
  assert_in_range(ct_counters(b->dev, CT_INFERENCE, counter, 32), CT_CNT_LD_BEATS + 1, 32);
  return counter[CT_CNT_LD_BEATS];
}

/* Beats that n requests of a model, in one batch, take. */
static uint64_t batch_beats(struct bed *b, struct mix *m, int model, uint32_t n) {
  const uint64_t before = loaded(b);
  for (uint32_t i = 0; i < n; ++i) {
    m->ask[i].served = &b->served[model];
    m->ask[i].place = m->ask[i].sample = i;
    push(b, &m->ask[i], 0, CT_NO_CYCLE);
  }
  reap_some(b, m, 0);
  return loaded(b) - before;
}

static void weights_stay(struct bed *b) {
  struct mix *m = test_calloc(1, sizeof *m);
  struct ct_server_info info;
  struct ct_model_info model;
  for (int i = 0; i < MODELS; ++i)
    serve(b, i,
          &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_batch = 8, .max_wait = 5000});
  for (int i = 0; i < MODELS; ++i) {
    const struct served *s = &b->served[i];
    OK(ct_server_info(s->server, &info));
    OK(ct_model_info(s->model, &model));
    assert_true(info.pinned_words > 0);
    const uint64_t weights = model.image_bytes / 16, rows = 8 * s->row_size / 16;
    assert_true(batch_beats(b, m, i, 8) >= weights + rows);
    const uint64_t kept = batch_beats(b, m, i, 8);
    assert_in_range(kept, rows, rows + weights / 2); /* and the program */
  }
  /* All three have their places at once. */
  for (int i = 0; i < MODELS; ++i) {
    OK(ct_model_info(b->served[i].model, &model));
    assert_true(batch_beats(b, m, i, 8) < model.image_bytes / 16);
  }
  /* A job of the ring, then a new version: loaded again, once. */
  for (int how = 0; how < 2; ++how) {
    float logits[OUT_MOST];
    struct served *s = &b->served[0];
    OK(ct_model_info(s->model, &model));
    if (how)
      next_version(b, s);
    else
      OK(ct_model_infer(s->model, CT_IMAGE_SERVED, s->x[0], 1, logits));
    assert_true(batch_beats(b, m, 0, 8) > model.image_bytes / 16);
    assert_true(batch_beats(b, m, 0, 8) < model.image_bytes / 16);
  }
  test_free(m);
}

/* ---- Requests that do not come through ---- */

static void freeze(struct bed *b, bool frozen) {
  OK(ct_reg_write(b->dev, CT_REG_CTRL, frozen ? 2 : 0));
}

static struct ct_record reap_tag(struct bed *b, const struct ask *a) {
  struct ct_record r;
  OK(ct_server_reap(b->dev, &r, 5000));
  assert_true(r.user == a && r.tag == a->tag);
  return r;
}

static void cancelled(struct bed *b) {
  enum { N = 6 };
  struct ask ask[N];
  struct ct_record r;
  serve(b, 0, &(struct ct_serving){.max_batch = 2});
  for (uint32_t i = 0; i < N; ++i)
    ask[i] = (struct ask){.served = &b->served[0], .sample = i, .place = i};
  freeze(b, true); /* so that they wait */
  for (uint32_t i = 0; i < N; ++i)
    push(b, &ask[i], 0, CT_NO_CYCLE);
  OK(ct_server_cancel(b->dev, ask[3].tag));
  OK(ct_server_cancel(b->dev, ask[0].tag));
  OK(ct_server_cancel(b->dev, ask[3].tag));
  freeze(b, false);
  for (int i = 0; i < 2; ++i) {
    r = reap_tag(b, &ask[i ? 0 : 3]);
    assert_int_equal(r.error, CT_ERR_CANCELLED);
    assert_int_equal(r.code, CT_DEV_CANCELLED);
    assert_false(r.met);
    assert_int_equal(r.batch, 0);
  }
  static const int rest[] = {1, 2, 4, 5};
  for (unsigned i = 0; i < 4; ++i) {
    r = reap_tag(b, &ask[rest[i]]);
    check_answer(b, &r);
    assert_int_equal(ct_server_cancel(b->dev, r.tag), CT_ERR_NOT_FOUND);
  }
  assert_int_equal(ct_server_cancel(b->dev, 0), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_server_cancel(b->dev, 1000), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_server_reap(b->dev, &r, CT_FOREVER), CT_ERR_NOT_FOUND);
}

/* Far ahead, a little ahead, and what is due between them. */
static void scheduled(struct bed *b) {
  enum { N = 40, GAP = 900 };
  struct ask ask[N];
  struct ct_record r;
  uint64_t now = 0;
  serve(b, 2, NULL);
  OK(ct_now(b->dev, &now));
  if (b->emu) now = 0;
  for (uint32_t i = 0; i < N; ++i) {
    ask[i] = (struct ask){.served = &b->served[2], .sample = i % SAMPLES, .place = i};
    push(b, &ask[i], 50000, now + 2000 + (uint64_t)i * GAP);
  }
  OK(ct_server_cancel(b->dev, ask[1].tag));
  OK(ct_server_cancel(b->dev, ask[N - 1].tag));
  for (uint32_t done = 0; done < N; ++done) {
    OK(ct_server_reap(b->dev, &r, 5000));
    const struct ask *a = r.user;
    const uint64_t at = now + 2000 + (uint64_t)a->place * GAP;
    assert_true(r.scheduled == at);
    if (a == &ask[1] || a == &ask[N - 1]) {
      assert_int_equal(r.error, CT_ERR_CANCELLED);
      continue;
    }
    check_answer(b, &r);
    if (b->emu) {
      assert_true(r.arrive == CT_NO_CYCLE && r.start == CT_NO_CYCLE && r.end == CT_NO_CYCLE);
      continue;
    }
    assert_in_range(r.arrive, at, at + 100);
    assert_true(r.deadline == r.arrive + 50000 && r.arrive < r.start && r.start < r.end);
    assert_int_equal(r.met, r.end <= r.deadline);
  }
}

/* More than the device has room for, and more than the library: these are refused, nothing else.
 * What waits in the host has arrived: its deadline runs. */
static void crowded(struct bed *b) {
  enum { MOST = 4096, DEADLINE = 20000 };
  uint64_t first = 0, last = 0;
  uint32_t late = 0;
  struct ask *ask = test_calloc(MOST + 1, sizeof *ask);
  const uint32_t count = b->emu ? MOST : 300;
  serve(b, 2, NULL);
  freeze(b, true);
  OK(ct_now(b->dev, &first));
  for (uint32_t i = 0; i < count; ++i) {
    ask[i] = (struct ask){.served = &b->served[2], .sample = i % SAMPLES, .place = i % SAMPLES};
    push(b, &ask[i], DEADLINE, CT_NO_CYCLE);
  }
  OK(ct_now(b->dev, &last));
  if (b->emu) {
    const struct ct_request r = request_of(b, &ask[0]);
    assert_int_equal(ct_server_push(b->served[2].server, &r, NULL), CT_ERR_FULL);
    assert_non_null(strstr(ct_last_error(b->dev), "4096 requests were pushed since"));
  }
  freeze(b, false);
  for (uint32_t i = 0; i < count; ++i) {
    const struct ct_record r = reap_tag(b, &ask[i]);
    check_answer(b, &r);
    if (b->emu) continue;
    assert_in_range(r.arrive, first, last);
    assert_true(r.deadline == r.arrive + DEADLINE && r.met == (r.end <= r.deadline));
    late += !r.met;
  }
  assert_true(b->emu || late > 0);
  test_free(ask);
}

/* The memory answers an input with an error: the batch fails as a whole, the next one does not. */
static void failed(struct bed *b) {
  struct ask ask[4];
  struct ct_record r;
  serve(b, 0,
        &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_batch = 4, .max_wait = 3000});
  for (int round = 0; round < 3; ++round) {
    if (round == 1)
      OK(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_READ,
                                   b->served[0].rows + 2 * b->served[0].row_size));
    for (uint32_t i = 0; i < 4; ++i) {
      ask[i] = (struct ask){.served = &b->served[0], .sample = i, .place = i};
      push(b, &ask[i], 0, CT_NO_CYCLE);
    }
    for (uint32_t i = 0; i < 4; ++i) {
      r = reap_tag(b, &ask[i]);
      assert_int_equal(r.batch, 4);
      if (round != 1) {
        check_answer(b, &r);
        continue;
      }
      assert_int_equal(r.error, CT_ERR_JOB);
      assert_int_equal(r.code, CT_DEV_AXI_READ);
      assert_false(r.met);
    }
  }
}

/* A batch that takes longer than it may: an error for its requests, and the next one goes. */
static void watched(struct bed *b) {
  struct ask ask = {.served = &b->served[0], .sample = 3, .place = 3};
  for (int round = 0; round < 3; ++round) {
    serve(b, 0, &(struct ct_serving){.watchdog = round == 1 ? 50 : 100000});
    push(b, &ask, 0, CT_NO_CYCLE);
    const struct ct_record r = reap_tag(b, &ask);
    if (b->emu || round != 1) {
      check_answer(b, &r);
    } else {
      assert_int_equal(r.error, CT_ERR_JOB);
      assert_int_equal(r.code, CT_DEV_WATCHDOG);
    }
    ct_server_free(b->served[0].server);
    b->served[0].server = NULL;
  }
}

/* A server goes while its requests wait, in the device and in the host; another one's stay. */
static void freed_under_load(struct bed *b) {
  enum { N = 100 };
  struct ask ask[2 * N];
  for (int how = 0; how < 2; ++how) {
    unsigned unloaded = 0, answered = 0;
    uint64_t now = 0;
    OK(ct_now(b->dev, &now));
    serve(b, 0, NULL);
    if (!b->served[1].server) serve(b, 1, NULL);
    for (uint32_t i = 0; i < 2 * N; ++i)
      ask[i] = (struct ask){.served = &b->served[i % 2], .sample = i % SAMPLES, .place = i % 2};
    freeze(b, true);
    for (uint32_t i = 0; i < 2 * N; ++i)
      push(b, &ask[i], 0, b->emu || i < 20 ? CT_NO_CYCLE : now + 20ULL * i);
    if (b->emu) freeze(b, false);
    if (how)
      ct_model_free(b->served[0].model);
    else
      ct_server_free(b->served[0].server);
    freeze(b, false);
    for (uint32_t i = 0; i < 2 * N; ++i) {
      struct ct_record r;
      OK(ct_server_reap(b->dev, &r, 20000));
      struct ask *a = r.user;
      if (a->served == &b->served[1] || r.error == CT_OK) {
        assert_int_equal(r.error, CT_OK);
        answered += a->served == &b->served[1];
        continue;
      }
      assert_int_equal(r.error, CT_ERR_CANCELLED);
      assert_int_equal(r.code, CT_DEV_UNLOADED);
      ++unloaded;
    }
    assert_int_equal(answered, N);
    assert_in_range(unloaded, b->emu ? 1 : N - 2 * CT_BATCH_MAX, N);
    struct ct_server_info info;
    const struct ct_request r = request_of(b, &ask[0]);
    if (!how) continue;
    assert_int_equal(ct_server_push(b->served[0].server, &r, NULL), CT_ERR_CLOSED);
    assert_non_null(strstr(ct_last_error(b->dev), "the server's model was freed before"));
    assert_int_equal(ct_server_info(b->served[0].server, &info), CT_ERR_CLOSED);
    ct_server_free(b->served[0].server);
    b->served[0].server = NULL;
    b->served[0].model = NULL;
  }
}

/* A batch that does not end by itself: on the simulator its memory does not answer. */
static void stuck_batches_are_left(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  for (int emu = 0; emu < 2; ++emu) {
    open_bed(b, emu ? "emu:dram=32" : "sim:dram=32");
    struct ask ask = {.served = &b->served[0]};
    serve(b, 0, NULL);
    if (emu)
      freeze(b, true);
    else
      OK(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_HANG, b->served[0].rows));
    push(b, &ask, 0, CT_NO_CYCLE);
    if (emu) {
      struct ct_record r;
      assert_int_equal(ct_server_reap(b->dev, &r, CT_NO_WAIT), CT_ERR_TIMEOUT);
      assert_int_equal(ct_reg_write(b->dev, CT_REG_CTRL, 6), CT_OK); /* it begins */
      assert_int_equal(ct_reg_write(b->dev, CT_REG_CTRL, 6), CT_OK);
    }
    ct_server_free(b->served[0].server);
    ct_model_free(b->served[0].model);
    ct_close(b->dev);
    for (int i = 1; i < MODELS; ++i)
      ct_model_free(b->served[i].model);
  }
  test_free(b);
}

/* ---- The rest ---- */

static bool is_readable(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  assert_in_range(poll(&p, 1, 0), 0, 1);
  return p.revents & POLLIN;
}

static void poll_until_done(struct bed *b) {
  enum { N = 30 };
  struct ask ask[N];
  const int fd = ct_poll_fd(b->dev);
  int done = 0;
  serve(b, 2, NULL);
  assert_false(is_readable(fd));
  for (uint32_t i = 0; i < N; ++i) {
    ask[i] = (struct ask){.served = &b->served[2], .sample = i % SAMPLES, .place = i};
    push(b, &ask[i], 0, CT_NO_CYCLE);
  }
  while (is_readable(fd)) {
    struct ct_record r;
    const int err = ct_server_reap(b->dev, &r, CT_NO_WAIT);
    if (err == CT_ERR_TIMEOUT) continue;
    OK(err);
    check_answer(b, &r);
    ++done;
  }
  assert_int_equal(done, N);
}

/* As many models as the device takes; a version of one's own; what is known. */
static void eight_models(struct bed *b) {
  struct ct_server_info info;
  ct_server *server[CT_MODELS];
  ct_model *model[CT_MODELS + 1];
  static const uint32_t small[] = {17, 16, 30, 24};
  for (unsigned i = 0; i <= CT_MODELS; ++i) {
    OK(ct_model_create(b->dev, small, 3, 5 + i, &model[i]));
    OK(ct_model_serve(model[i], NULL));
    if (i < CT_MODELS) OK(ct_server_create(model[i], NULL, &server[i]));
  }
  ct_server *ninth = NULL;
  assert_int_equal(ct_server_create(model[CT_MODELS], NULL, &ninth), CT_ERR_FULL);
  assert_non_null(strstr(ct_last_error(b->dev), "8 models already"));
  ct_server_free(server[3]);
  OK(ct_server_create(model[CT_MODELS], NULL, &server[3]));
  float want[24], got[24];
  OK(ct_model_infer(model[0], CT_IMAGE_OWN, b->served[2].x[4], 1, want));
  const struct ct_request request = {.input = b->served[2].rows + 4 * b->served[2].row_size,
                                     .output = b->out};
  struct ct_record r;
  /* Model 0's weights, by another one's server. */
  OK(ct_server_publish(server[6], ct_model_image(model[0]), 77));
  OK(ct_server_push(server[6], &request, NULL));
  OK(ct_server_info(server[6], &info));
  assert_int_equal(info.version, 77);
  assert_int_equal(info.waiting, 1);
  OK(ct_server_reap(b->dev, &r, 5000));
  assert_int_equal(r.version, 77);
  OK(ct_mem_read(b->dev, b->out, got, sizeof got));
  ct_assert_same("answer", got, want, sizeof got);
  for (unsigned i = 0; i < CT_MODELS; ++i)
    ct_server_free(server[i]);
  for (unsigned i = 0; i <= CT_MODELS; ++i)
    ct_model_free(model[i]);
}

/* With requests in every state, and servers that are freed afterwards. */
static void closed_with_requests(void **state) {
  (void)state;
  for (int emu = 0; emu < 2; ++emu) {
    struct bed *b = test_malloc(sizeof *b);
    open_bed(b, emu ? "emu:dram=32" : "sim:dram=32");
    struct ask ask[80];
    serve(b, 0, NULL);
    serve(b, 1, NULL);
    for (uint32_t i = 0; i < 80; ++i) {
      ask[i] = (struct ask){.served = &b->served[i % 2], .place = i};
      push(b, &ask[i], 0, i < 40 ? CT_NO_CYCLE : UINT64_MAX / 2);
    }
    ct_close(b->dev);
    struct ct_record r;
    assert_int_equal(ct_server_reap(b->dev, &r, CT_NO_WAIT), CT_ERR_CLOSED);
    ct_server_free(b->served[0].server);
    for (int i = 0; i < MODELS; ++i)
      ct_model_free(b->served[i].model);
    ct_server_free(b->served[1].server);
    test_free(b);
  }
}

/* As an older core is: the library does not touch registers that are not there. */
static void devices_without_batches(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  ct_server *server = NULL;
  open_bed(b, "emu:dram=32");
  b->dev->info.features &= ~CT_FEATURE_REQUESTS;
  assert_int_equal(ct_server_create(b->served[0].model, NULL, &server), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(b->dev), "makes no batches of requests"));
  assert_null(server);
  assert_null(b->dev->requests);
  assert_int_equal(ct_set_policy(b->dev, CT_SLACK), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(b->dev), "no policy CT_SLACK"));
  close_bed(b);
  test_free(b);
}

static void on_both(void (*test)(struct bed *)) {
  struct bed *b = test_malloc(sizeof *b);
  for (int emu = 0; emu < 2; ++emu) {
    open_bed(b, emu ? "emu:dram=32" : "sim:dram=32");
    test(b);
    close_bed(b);
  }
  test_free(b);
}

#define ON_BOTH(test)                           \
  static void test##_everywhere(void **state) { \
    (void)state;                                \
    on_both(test);                              \
  }

ON_BOTH(weights_stay)
ON_BOTH(cancelled)
ON_BOTH(scheduled)
ON_BOTH(crowded)
ON_BOTH(failed)
ON_BOTH(watched)
ON_BOTH(freed_under_load)
ON_BOTH(poll_until_done)
ON_BOTH(eight_models)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_do_not_depend_on_the_batch),
      cmocka_unit_test(answers_of_the_hardware),
      cmocka_unit_test(weights_stay_everywhere),
      cmocka_unit_test(cancelled_everywhere),
      cmocka_unit_test(scheduled_everywhere),
      cmocka_unit_test(crowded_everywhere),
      cmocka_unit_test(failed_everywhere),
      cmocka_unit_test(watched_everywhere),
      cmocka_unit_test(freed_under_load_everywhere),
      cmocka_unit_test(stuck_batches_are_left),
      cmocka_unit_test(poll_until_done_everywhere),
      cmocka_unit_test(eight_models_everywhere),
      cmocka_unit_test(closed_with_requests),
      cmocka_unit_test(devices_without_batches),
  };
  ct_tb_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
