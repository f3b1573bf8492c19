/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving requests in batches, through the library: answers that do not depend on the batch, to the
 * bit, with several models, versions that change and weights that stay or go; requests that are
 * scheduled, cancelled, refused, failed; servers that are freed under load.
 *
 * On emu: and sim:.
 */
#include "server_bed.h"

#include <string.h>

/* ---- Answers ---- */

struct mix {
  struct ask ask[BED_ASKS];
  unsigned sizes[CT_BATCH_MAX + 1];
  size_t answered;
};

static void reap_some(struct bed *b, struct mix *m, size_t until_left) {
  struct ct_event r;
  while (ct_outstanding(b->dev, CT_INFERENCE) > until_left) {
    OK(ct_reap(b->dev, &r, 20000));
    bed_check(b, &r);
    ++m->sizes[r.batch];
    ++m->answered;
  }
}

static struct ask *free_ask(struct bed *b, struct mix *m) {
  for (uint32_t i = 0; i < BED_ASKS; ++i)
    if (!m->ask[i].busy) {
      m->ask[i].served = &b->served[ct_rng_below(&b->rng, BED_MODELS)];
      m->ask[i].sample = ct_rng_below(&b->rng, BED_SAMPLES);
      return &m->ask[i];
    }
  return NULL;
}

/* Bursts of requests to all models, with and without deadlines; now and then new weights, a
 * training step of another model, a job that uses all of the scratchpad, or a server that comes
 * anew with another policy. */
static void random_mixes(struct bed *b, size_t requests, bool stream) {
  struct mix *m = test_calloc(1, sizeof *m);
  struct bed_training training;
  bed_training_open(b->dev, &training);
  for (int i = 0; i < BED_MODELS; ++i)
    bed_serve(
        b, i,
        &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = 500, .stream = stream});
  while (m->answered < requests) {
    for (uint32_t n = 1 + ct_rng_below(&b->rng, 60); n; --n) {
      struct ask *a = free_ask(b, m);
      if (a)
        bed_push(b, a, ct_rng_below(&b->rng, 2) * (20000 + ct_rng_below(&b->rng, 999)),
                 CT_NO_CYCLE);
    }
    reap_some(b, m, ct_rng_below(&b->rng, 30));
    struct served *s = &b->served[ct_rng_below(&b->rng, BED_MODELS)];
    const uint32_t what = ct_rng_below(&b->rng, 40);
    if (what == 0 && s->version + 2 < BED_VERSIONS) {
      bed_next_version(b, s);
    } else if (what < 3) {
      const struct ct_serving how = {.batching = (enum ct_batching)ct_rng_below(&b->rng, 3),
                                     .max_batch = ct_rng_below(&b->rng, CT_BATCH_MAX + 1),
                                     .max_wait = ct_rng_below(&b->rng, 3000),
                                     .margin = 300,
                                     .stream = stream};
      reap_some(b, m, 0);
      ct_server_free(s->server);
      bed_serve(b, (int)(s - b->served), &how);
    } else if (what < 7) {
      bed_train(&training);
    } else if (what == 7) {
      float logits[BED_OUT_MOST];
      OK(ct_model_infer(s->model, s->weights, s->x[1], 1, logits));
      ct_assert_same("alone", logits, s->want[s->version][1], s->out * sizeof *logits);
    }
  }
  reap_some(b, m, 0);
  bed_check_training(&training);
  ct_model_free(training.model);
  unsigned seen = 0;
  for (unsigned n = 1; n <= CT_BATCH_MAX; ++n)
    seen += m->sizes[n] > 0;
  assert_in_range(seen, requests > 10000 ? CT_BATCH_MAX : 8, CT_BATCH_MAX);
  print_message("%zu answers, %u batches' mates of 16\n", m->answered, m->sizes[CT_BATCH_MAX]);
  test_free(m);
}

static void mixes_on(const char *uri, size_t requests, bool stream) {
  struct bed *b = bed_open(uri);
  random_mixes(b, requests, stream);
  bed_close(b);
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
    m->ask[i].sample = i;
    bed_push(b, &m->ask[i], 0, CT_NO_CYCLE);
  }
  reap_some(b, m, 0);
  return loaded(b) - before;
}

static void weights_stay(struct bed *b) {
  struct mix *m = test_calloc(1, sizeof *m);
  struct ct_server_info info;
  struct ct_weights_info of;
  for (int i = 0; i < BED_MODELS; ++i)
    bed_serve(
        b, i,
        &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_batch = 8, .max_wait = 5000});
  for (int i = 0; i < BED_MODELS; ++i) {
    const struct served *s = &b->served[i];
    OK(ct_server_info(s->server, &info));
    OK(ct_weights_info(s->weights, &of));
    assert_true(info.pinned_words > 0);
    const uint64_t weights = of.bytes / 16, rows = 8 * ct_pack_row_size(s->in) / 16;
    assert_true(batch_beats(b, m, i, 8) >= weights + rows);
    const uint64_t kept = batch_beats(b, m, i, 8);
    assert_in_range(kept, rows, rows + weights / 2); /* and the program */
  }
  /* All three have their places at once. */
  for (int i = 0; i < BED_MODELS; ++i) {
    OK(ct_weights_info(b->served[i].weights, &of));
    assert_true(batch_beats(b, m, i, 8) < of.bytes / 16);
  }
  /* A job of the ring, then a new version: loaded again, once. */
  for (int how = 0; how < 2; ++how) {
    float logits[BED_OUT_MOST];
    struct served *s = &b->served[0];
    OK(ct_weights_info(s->weights, &of));
    if (how)
      bed_next_version(b, s);
    else
      OK(ct_model_infer(s->model, s->weights, s->x[0], 1, logits));
    assert_true(batch_beats(b, m, 0, 8) > of.bytes / 16);
    assert_true(batch_beats(b, m, 0, 8) < of.bytes / 16);
  }
  test_free(m);
}

/* ---- Requests that do not come through ---- */

static void cancelled(struct bed *b) {
  enum { N = 6 };
  struct ask ask[N];
  struct ct_event r;
  bed_serve(b, 0, &(struct ct_serving){.max_batch = 2});
  for (uint32_t i = 0; i < N; ++i)
    ask[i] = (struct ask){.served = &b->served[0], .sample = i};
  bed_freeze(b, true); /* so that they wait */
  for (uint32_t i = 0; i < N; ++i)
    bed_push(b, &ask[i], 0, CT_NO_CYCLE);
  OK(ct_cancel(b->dev, ask[3].tag));
  OK(ct_cancel(b->dev, ask[0].tag));
  OK(ct_cancel(b->dev, ask[3].tag));
  bed_freeze(b, false);
  for (int i = 0; i < 2; ++i) {
    r = bed_reap(b, &ask[i ? 0 : 3]);
    assert_int_equal(r.error, CT_ERR_CANCELLED);
    assert_int_equal(r.code, CT_DEV_CANCELLED);
    assert_int_equal(r.met, CT_MET_NO);
    assert_int_equal(r.batch, 0);
  }
  static const int rest[] = {1, 2, 4, 5};
  for (unsigned i = 0; i < 4; ++i) {
    r = bed_reap(b, &ask[rest[i]]);
    bed_check(b, &r);
    assert_int_equal(ct_cancel(b->dev, r.tag), CT_ERR_NOT_FOUND);
  }
  assert_int_equal(ct_cancel(b->dev, 0), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_cancel(b->dev, 1000), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_reap(b->dev, &r, CT_FOREVER), CT_ERR_NOT_FOUND);
}

/* Far ahead, a little ahead, and what is due between them. */
static void scheduled(struct bed *b) {
  enum { N = 40, GAP = 900 };
  struct ask ask[N];
  struct ct_event r;
  uint64_t now = 0;
  bed_serve(b, 2, NULL);
  OK(ct_now(b->dev, &now));
  if (b->emu) now = 0;
  for (uint32_t i = 0; i < N; ++i) {
    ask[i] = (struct ask){.served = &b->served[2], .sample = i % BED_SAMPLES};
    bed_push(b, &ask[i], 50000, now + 2000 + (uint64_t)i * GAP);
  }
  OK(ct_cancel(b->dev, ask[1].tag));
  OK(ct_cancel(b->dev, ask[N - 1].tag));
  for (uint32_t done = 0; done < N; ++done) {
    OK(ct_reap(b->dev, &r, 5000));
    const struct ask *a = r.user;
    const uint64_t at = now + 2000 + (uint64_t)(a - ask) * GAP;
    assert_true(r.scheduled == at);
    if (a == &ask[1] || a == &ask[N - 1]) {
      assert_int_equal(r.error, CT_ERR_CANCELLED);
      continue;
    }
    bed_check(b, &r);
    if (b->emu) {
      assert_true(r.arrive == CT_NO_CYCLE && r.start == CT_NO_CYCLE && r.end == CT_NO_CYCLE);
      continue;
    }
    assert_in_range(r.arrive, at, at + 100);
    assert_true(r.deadline == r.arrive + 50000 && r.arrive < r.start && r.start < r.end);
  }
}

/* More than the device has room for, and more than the library: these are refused, nothing else.
 * What waits in the host has arrived: its deadline runs. (Deadlines lie so far apart that what a
 * push takes does not change their order.) */
static void crowded(struct bed *b) {
  enum { MOST = 4096, DEADLINE = 20000, ACCESSES = 5 * 600 };
  uint64_t first = 0, last = 0, latest = 0;
  uint32_t late = 0;
  struct ask *ask = test_calloc(MOST + 1, sizeof *ask);
  const uint32_t count = b->emu ? MOST : 300;
  bed_serve(b, 2, NULL);
  bed_freeze(b, true);
  OK(ct_now(b->dev, &first));
  for (uint32_t i = 0; i < count; ++i) {
    ask[i] = (struct ask){.served = &b->served[2], .sample = i % BED_SAMPLES};
    bed_push(b, &ask[i], DEADLINE, CT_NO_CYCLE);
  }
  OK(ct_now(b->dev, &last));
  if (b->emu) {
    struct ask more = ask[0];
    const struct ct_request r = bed_request(b, &more);
    assert_int_equal(ct_server_push(b->served[2].server, &r, NULL), CT_ERR_FULL);
    assert_non_null(strstr(ct_last_error(b->dev), "4096 requests are under way"));
  }
  bed_freeze(b, false);
  for (uint32_t i = 0; i < count; ++i) {
    struct ct_event r;
    OK(ct_reap(b->dev, &r, 5000));
    bed_check(b, &r);
    if (b->emu) assert_true(r.user == &ask[i]);
    if (b->emu) continue;
    assert_in_range(r.arrive, first, last);
    assert_true(r.deadline == r.arrive + DEADLINE);
    assert_true(r.deadline + ACCESSES > latest);
    if (r.deadline > latest) latest = r.deadline;
    late += r.met == CT_MET_NO;
  }
  assert_true(b->emu || late > 0);
  test_free(ask);
}

/* The memory answers an input with an error: the batch fails as a whole, the next one does not. */
static void failed(struct bed *b) {
  struct ask ask[4];
  struct ct_event r;
  bed_serve(b, 0,
            &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_batch = 4, .max_wait = 3000});
  for (int round = 0; round < 3; ++round) {
    if (round == 1)
      OK(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_READ, bed_row_at(&b->served[0], 2)));
    for (uint32_t i = 0; i < 4; ++i) {
      ask[i] = (struct ask){.served = &b->served[0], .sample = i};
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    }
    for (uint32_t i = 0; i < 4; ++i) {
      r = bed_reap(b, &ask[i]);
      assert_int_equal(r.batch, 4);
      if (round != 1) {
        bed_check(b, &r);
        continue;
      }
      assert_int_equal(r.error, CT_ERR_JOB);
      assert_int_equal(r.code, CT_DEV_AXI_READ);
      assert_int_equal(r.met, CT_MET_NO);
    }
  }
}

/* A batch that takes longer than it may: an error for its requests, and the next one goes. */
static void watched(struct bed *b) {
  struct ask ask = {.served = &b->served[0], .sample = 3};
  for (int round = 0; round < 3; ++round) {
    bed_serve(b, 0, &(struct ct_serving){.watchdog = round == 1 ? 50 : 100000});
    bed_push(b, &ask, 0, CT_NO_CYCLE);
    const struct ct_event r = bed_reap(b, &ask);
    if (round != 1) {
      bed_check(b, &r);
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
    bed_serve(b, 0, NULL);
    if (!b->served[1].server) bed_serve(b, 1, NULL);
    for (uint32_t i = 0; i < 2 * N; ++i)
      ask[i] = (struct ask){.served = &b->served[i % 2], .sample = i % BED_SAMPLES};
    bed_freeze(b, true);
    for (uint32_t i = 0; i < 2 * N; ++i)
      bed_push(b, &ask[i], 0, b->emu || i < 20 ? CT_NO_CYCLE : now + 20ULL * i);
    if (b->emu) bed_freeze(b, false);
    if (how)
      ct_model_free(b->served[0].model);
    else
      ct_server_free(b->served[0].server);
    bed_freeze(b, false);
    for (uint32_t i = 0; i < 2 * N; ++i) {
      struct ct_event r;
      OK(ct_reap(b->dev, &r, 20000));
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
    const struct ct_request r = bed_request(b, &ask[0]);
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
  for (int emu = 0; emu < 2; ++emu) {
    struct bed *b = bed_open(emu ? "emu:dram=32" : "sim:dram=32");
    struct ask ask = {.served = &b->served[0]};
    bed_serve(b, 0, NULL);
    if (emu)
      bed_freeze(b, true);
    else
      OK(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_HANG, bed_row_at(&b->served[0], 0)));
    bed_push(b, &ask, 0, CT_NO_CYCLE);
    if (emu) {
      struct ct_event r;
      assert_int_equal(ct_reap(b->dev, &r, CT_NO_WAIT), CT_ERR_TIMEOUT);
      assert_int_equal(ct_reg_write(b->dev, CT_REG_CTRL, 6), CT_OK); /* it begins */
      assert_int_equal(ct_reg_write(b->dev, CT_REG_CTRL, 6), CT_OK);
    }
    ct_server_free(b->served[0].server);
    ct_model_free(b->served[0].model);
    ct_close(b->dev);
    for (int i = 0; i < BED_MODELS; ++i) {
      if (i) ct_model_free(b->served[i].model);
      bed_free_handles(&b->served[i]);
    }
    test_free(b);
  }
}

/* ---- The rest ---- */

static void poll_until_done(struct bed *b) {
  enum { N = 30 };
  struct ask ask[N];
  const int fd = ct_poll_fd(b->dev);
  int done = 0;
  bed_serve(b, 2, NULL);
  assert_false(bed_is_readable(fd));
  for (uint32_t i = 0; i < N; ++i) {
    ask[i] = (struct ask){.served = &b->served[2], .sample = i % BED_SAMPLES};
    bed_push(b, &ask[i], 0, CT_NO_CYCLE);
  }
  while (bed_is_readable(fd)) {
    struct ct_event r;
    const int err = ct_reap(b->dev, &r, CT_NO_WAIT);
    if (err == CT_ERR_TIMEOUT) continue;
    OK(err);
    bed_check(b, &r);
    ++done;
  }
  assert_int_equal(done, N);
}

/* As many models as the device takes; another model's weights; what is known. */
static void eight_models(struct bed *b) {
  struct ct_server_info info;
  ct_server *server[CT_MODELS];
  ct_model *model[CT_MODELS + 1];
  static const uint32_t small[] = {17, 16, 30, 24};
  for (unsigned i = 0; i <= CT_MODELS; ++i) {
    OK(ct_model_create(b->dev, small, 3, 5 + i, &model[i]));
    if (i < CT_MODELS) OK(ct_server_create(model[i], NULL, NULL, &server[i]));
  }
  ct_server *ninth = NULL;
  assert_int_equal(ct_server_create(model[CT_MODELS], NULL, NULL, &ninth), CT_ERR_FULL);
  assert_non_null(strstr(ct_last_error(b->dev), "8 models already"));
  ct_server_free(server[3]);
  OK(ct_server_create(model[CT_MODELS], NULL, NULL, &server[3]));
  float want[24], got[24];
  OK(ct_model_infer(model[0], NULL, b->served[2].x[4], 1, want));
  struct ask ask = {.served = &b->served[2], .sample = 4};
  struct ct_event r;
  /* Model 0's weights, by another one's server; the second that are published. */
  ct_weights *weights[2];
  for (int i = 0; i < 2; ++i)
    OK(ct_model_publish(model[0], &weights[i]));
  OK(ct_server_set_weights(server[6], weights[1]));
  const struct ct_request request = bed_request(b, &ask);
  OK(ct_server_push(server[6], &request, NULL));
  OK(ct_server_info(server[6], &info));
  assert_int_equal(info.version, 2);
  assert_int_equal(info.waiting, 1);
  for (int i = 0; i < 2; ++i)
    ct_weights_free(weights[i]);
  OK(ct_reap(b->dev, &r, 5000));
  assert_int_equal(r.version, 2);
  OK(ct_answers_read(b->served[2].answers, ask.place, 1, got));
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
    struct bed *b = bed_open(emu ? "emu:dram=32" : "sim:dram=32");
    struct ask ask[80];
    bed_serve(b, 0, NULL);
    bed_serve(b, 1, NULL);
    for (uint32_t i = 0; i < 80; ++i) {
      ask[i] = (struct ask){.served = &b->served[i % 2]};
      bed_push(b, &ask[i], 0, i < 40 ? CT_NO_CYCLE : UINT64_MAX / 2);
    }
    ct_close(b->dev);
    struct ct_event r;
    assert_int_equal(ct_reap(b->dev, &r, CT_NO_WAIT), CT_ERR_CLOSED);
    ct_server_free(b->served[0].server);
    for (int i = 0; i < BED_MODELS; ++i) {
      ct_model_free(b->served[i].model);
      bed_free_handles(&b->served[i]);
    }
    ct_server_free(b->served[1].server);
    test_free(b);
  }
}

/* As an older core is: the library does not touch registers that are not there. */
static void devices_without_batches(void **state) {
  (void)state;
  ct_server *server = NULL;
  struct bed *b = bed_open("emu:dram=32");
  b->dev->info.features &= ~CT_FEATURE_REQUESTS;
  assert_int_equal(ct_server_create(b->served[0].model, NULL, NULL, &server), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(b->dev), "makes no batches of requests"));
  assert_null(server);
  assert_null(b->dev->queues->above);
  assert_int_equal(ct_set_policy(b->dev, CT_SLACK), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(b->dev), "no policy CT_SLACK"));
  bed_close(b);
}

/* A core with one context: nothing goes to the queue of the other. */
static void devices_with_one_context(void **state) {
  (void)state;
  static const unsigned char end_command[32] = {CT_OP_END};
  struct bed *b = bed_open("emu:dram=32");
  struct ct_job job = {.program = NULL};
  ct_program *p = NULL;
  uint64_t tag = 0;
  assert_int_equal(ct_program_load(b->dev, end_command, 1, &p), CT_OK);
  job.program = p;
  b->dev->info.features &= ~CT_FEATURE_TRAINING;
  assert_int_equal(ct_submit(b->dev, CT_TRAINING, &job, &tag), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(b->dev), "has one context"));
  assert_int_equal(ct_submit(b->dev, CT_INFERENCE, &job, &tag), CT_OK);
  assert_int_equal(ct_wait(b->dev, tag, NULL, CT_FOREVER), CT_OK);
  b->dev->info.features |= CT_FEATURE_TRAINING;
  ct_program_free(p);
  bed_close(b);
}

static void on_both(void (*test)(struct bed *)) {
  for (int emu = 0; emu < 2; ++emu) {
    struct bed *b = bed_open(emu ? "emu:dram=32" : "sim:dram=32");
    test(b);
    bed_close(b);
  }
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
      cmocka_unit_test(devices_with_one_context),
  };
  ct_tb_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
