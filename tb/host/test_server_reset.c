/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resetting a queue: a server whose batch never ends gets its things back, each thing that was
 * under way has one event, and what came before or comes after does not notice.
 *
 * On sim:, with a memory that stalls or does not answer, and on emu:.
 */
#include <string.h>

#include "ct_server.h"
#include "server_bed.h"

static uint64_t used(const struct ct_heap *heap) {
  uint64_t sum = 0;
  for (const struct ct_heap_block *h = heap->first; h; h = h->next)
    sum += h->used ? h->size : 0;
  return sum;
}

static void hang(struct bed *b, bool on) {
  OK(b->dev->plugin.ops->fault(b->dev->self, on ? CT_FAULT_AXI_HANG : CT_FAULT_NONE,
                               on ? bed_row_at(&b->served[0], 0) : 0));
}

/* A batch of model 0 whose input never comes, and requests of it that wait behind. */
enum { WAITING = 5 };

static void begin_stuck(struct bed *b, struct ask *ask) {
  struct ct_event r;
  hang(b, true);
  for (uint32_t i = 0; i < WAITING; ++i) {
    ask[i] = (struct ask){.served = &b->served[0], .sample = i ? i : 0};
    bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    if (i == 0) assert_int_equal(ct_reap(b->dev, &r, 20), CT_ERR_TIMEOUT);
  }
}

/* Each of them has one event. */
static void all_end(struct bed *b, struct ask *ask, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    struct ct_event r;
    OK(ct_reap(b->dev, &r, 5000));
    struct ask *a = r.user;
    assert_true(a->busy && a >= ask && a < ask + count);
    a->busy = false;
    assert_true(r.code == CT_DEV_DEAD || r.code == CT_DEV_RESET || r.code == CT_DEV_UNLOADED);
    assert_int_equal(r.error, r.code == CT_DEV_DEAD ? CT_ERR_JOB : CT_ERR_CANCELLED);
    assert_int_equal(r.met, CT_MET_NO);
  }
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 0);
}

static void answers(struct bed *b, int model) {
  struct ask ask[BED_SAMPLES];
  for (uint32_t i = 0; i < BED_SAMPLES; ++i) {
    ask[i] = (struct ask){.served = &b->served[model], .sample = i};
    bed_push(b, &ask[i], 0, CT_NO_CYCLE);
  }
  for (uint32_t i = 0; i < BED_SAMPLES; ++i) {
    const struct ct_event r = bed_reap(b, &ask[i]);
    bed_check(b, &r);
  }
}

enum how { SERVER_STAYS, SERVER_GOES, BOTH_GO, HOWS };

/* As long as the batch may run nobody gets its number or its words of the scratchpad; after the
 * reset everything is there. */
static void stuck(enum how how) {
  struct ask ask[WAITING];
  struct bed *b = bed_open("sim:dram=32,stall=10");
  struct served *s = &b->served[0];
  const uint64_t data = used(&b->dev->data), code = used(&b->dev->code);
  bed_serve(b, 0, &(struct ct_serving){.max_batch = 1});
  const unsigned number = s->server->number;
  const uint32_t pin_at = s->server->pin_at;
  assert_true(s->server->pin_words > 0);
  OK(ct_reg_write(b->dev, CT_REG_DRAIN_LIMIT, UINT32_MAX));
  begin_stuck(b, ask);
  if (how != SERVER_STAYS) {
    ct_server_free(s->server);
    s->server = NULL;
    bed_serve(b, 2, NULL);
    assert_true(b->served[2].server->number != number);
    assert_true(b->served[2].server->pin_at + b->served[2].server->pin_words <= pin_at);
  }
  if (how == BOTH_GO) ct_model_free(s->model);
  OK(ct_reset(b->dev, CT_INFERENCE));
  uint32_t limit = 0;
  OK(ct_reg_read(b->dev, CT_REG_DRAIN_LIMIT, &limit));
  assert_int_equal(limit, UINT32_MAX);
  all_end(b, ask, WAITING);
  if (how != SERVER_STAYS) {
    assert_null(ct_requests_of(b->dev)->server[number]);
    ct_server_free(b->served[2].server);
    b->served[2].server = NULL;
    if (how == SERVER_GOES) assert_int_equal(used(&b->dev->code), code);
  }
  hang(b, false);
  if (how == BOTH_GO) {
    assert_true(used(&b->dev->data) < data);
    s->model = NULL;
  } else {
    if (how == SERVER_GOES) bed_serve(b, 0, NULL);
    assert_int_equal(s->server->number, number);
    assert_int_equal(s->server->pin_at, pin_at);
    answers(b, 0);
    bed_next_version(b, s);
    answers(b, 0);
  }
  bed_serve(b, 1, NULL);
  answers(b, 1);
  bed_close(b);
}

static void stuck_things_come_back(void **state) {
  (void)state;
  for (enum how how = 0; how < HOWS; ++how)
    stuck(how);
}

/* A server that was to be made, whose first batch never ends. */
static void stuck_at_its_creation(void **state) {
  (void)state;
  struct ct_server *server = NULL;
  struct bed *b = bed_open("sim:dram=32");
  const struct ct_serving how = {.batching = CT_BATCHING_ADAPTIVE};
  const uint64_t data = used(&b->dev->data), code = used(&b->dev->code);
  OK(ct_reg_write(b->dev, CT_REG_DRAIN_LIMIT, UINT32_MAX));
  OK(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_HANG, b->served[1].weights->image));
  assert_int_equal(ct_server_create(b->served[1].model, b->served[1].weights, &how, &server),
                   CT_ERR_TIMEOUT);
  assert_non_null(strstr(ct_last_error(b->dev), "to be measured do not end"));
  assert_null(server);
  assert_true(used(&b->dev->data) > data);
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 0);
  OK(ct_reset(b->dev, CT_INFERENCE));
  hang(b, false);
  assert_int_equal(used(&b->dev->data), data);
  assert_int_equal(used(&b->dev->code), code);
  bed_serve(b, 1, &how);
  answers(b, 1);
  bed_close(b);
}

/* ---- At any moment ---- */

enum { MOST = 60, JOBS = 12, ROUNDS = 14 };

struct job {
  size_t place;
  uint64_t tag;
  uint32_t sample;
  bool busy;
};

struct mess {
  struct ask ask[MOST];
  struct job job[JOBS];
  unsigned answered, reset, jobs_done, jobs_reset;
};

/* Work of both kinds; later: some of it for later, and what is behind it waits in the host. */
static void submit_mess(struct bed *b, struct mess *m, uint64_t now, bool later) {
  for (uint32_t i = 0; i < MOST; ++i) {
    const uint64_t at = !later || i % 3 ? CT_NO_CYCLE : now + ct_rng_below(&b->rng, 20000);
    m->ask[i] = (struct ask){.served = &b->served[ct_rng_below(&b->rng, BED_MODELS)],
                             .sample = ct_rng_below(&b->rng, BED_SAMPLES)};
    bed_push(b, &m->ask[i], ct_rng_below(&b->rng, 2) * 30000, at);
  }
  for (uint32_t i = 0; i < JOBS; ++i) {
    struct served *s = &b->served[1];
    m->job[i] = (struct job){.sample = ct_rng_below(&b->rng, BED_SAMPLES), .busy = true};
    struct ask ask = {.served = s, .sample = m->job[i].sample};
    struct ct_request q = bed_request(b, &ask);
    m->job[i].place = ask.place;
    const uint64_t at = !later || i < JOBS / 2 ? CT_NO_CYCLE : now + ct_rng_below(&b->rng, 20000);
    q.weights = s->weights;
    q.cycle = at == CT_NO_CYCLE ? 0 : at;
    q.user = &m->job[i];
    OK(ct_model_infer_submit(s->model, &q, &m->job[i].tag));
  }
}

static void take_job(struct bed *b, struct mess *m, const struct ct_event *e) {
  struct job *j = e->user;
  struct served *s = &b->served[1];
  float got[BED_OUT_MOST];
  assert_true(j->busy && e->tag == j->tag);
  j->busy = false;
  m->jobs_done += !e->error;
  m->jobs_reset += e->error != CT_OK;
  if (e->error) {
    assert_int_equal(e->error, CT_ERR_CANCELLED);
    assert_int_equal(e->code, CT_DEV_RESET);
    return;
  }
  OK(ct_answers_read(s->answers, j->place, 1, got));
  ct_assert_same("a job", got, s->want[s->version][j->sample], s->out * sizeof *got);
}

static void take_all(struct bed *b, struct mess *m) {
  while (ct_outstanding(b->dev, CT_INFERENCE)) {
    struct ct_event e;
    OK(ct_reap(b->dev, &e, 20000));
    if (e.kind == CT_EVENT_ANSWER) {
      take_job(b, m, &e);
    } else if (e.error) {
      struct ask *a = e.user;
      assert_true(a->busy && e.tag == a->tag);
      assert_int_equal(e.error, CT_ERR_CANCELLED);
      assert_int_equal(e.code, CT_DEV_RESET);
      a->busy = false;
      ++m->reset;
    } else {
      bed_check(b, &e);
      ++m->answered;
    }
  }
  for (uint32_t i = 0; i < MOST; ++i)
    assert_false(m->ask[i].busy);
  for (uint32_t i = 0; i < JOBS; ++i)
    assert_false(m->job[i].busy);
}

/* Whatever runs when it comes, in whatever state: one event each, answers to the bit, and the
 * training beside it is as it would be alone. */
static void resets_on(const char *uri) {
  struct mess *m = test_calloc(1, sizeof *m);
  struct bed_training training;
  struct bed *b = bed_open(uri);
  bed_training_open(b->dev, &training);
  for (int i = 0; i < BED_MODELS; ++i)
    bed_serve(b, i,
              &(struct ct_serving){.batching = (enum ct_batching)i,
                                   .max_batch = 1 + ct_rng_below(&b->rng, CT_BATCH_MAX),
                                   .max_wait = ct_rng_below(&b->rng, 3000)});
  for (unsigned round = 0; round < ROUNDS; ++round) {
    uint64_t now = 0;
    OK(ct_now(b->dev, &now));
    submit_mess(b, m, now, !b->emu && round % 3 == 2);
    if (!b->emu) {
      const uint64_t until = now + ct_rng_below(&b->rng, 12000);
      uint32_t id;
      for (; now < until; OK(ct_now(b->dev, &now)))
        OK(ct_reg_read(b->dev, CT_REG_ID, &id));
    }
    OK(ct_reset(b->dev, CT_INFERENCE));
    if (round % 3 == 0) OK(ct_reset(b->dev, CT_INFERENCE));
    take_all(b, m);
    bed_train(&training);
    answers(b, (int)(round % BED_MODELS));
  }
  print_message("%s: %u requests answered, %u reset; %u jobs done, %u reset\n", uri, m->answered,
                m->reset, m->jobs_done, m->jobs_reset);
  assert_true(b->emu || (m->answered > 50 && m->reset > 50));
  assert_true(b->emu || (m->jobs_done > 10 && m->jobs_reset > 10));
  bed_check_training(&training);
  ct_model_free(training.model);
  bed_close(b);
  test_free(m);
}

static void resets_at_random(void **state) {
  (void)state;
  resets_on("sim:dram=32,stall=25");
  resets_on("sim:dram=32");
  resets_on("emu:dram=32");
}

/* The training queue: a step that runs and steps that wait have one event each, and the next step
 * runs. Requests do not notice. */
static void training_is_reset(void **state) {
  (void)state;
  enum { STEPS = 5 };
  struct bed_training training;
  struct bed *b = bed_open("sim:dram=32");
  uint64_t tag[STEPS];
  struct ct_step step = {.batch = NULL};
  const float x[BED_BATCH * BED_TRAINED] = {0};
  const uint32_t labels[BED_BATCH] = {0};
  unsigned ended = 0;
  bed_serve(b, 0, NULL);
  bed_training_open(b->dev, &training);
  OK(ct_batch_create(training.model, &step.batch));
  OK(ct_batch_write(step.batch, x, labels));
  for (unsigned i = 0; i < STEPS; ++i)
    OK(ct_model_step_submit(training.model, &step, &tag[i]));
  OK(ct_reset(b->dev, CT_TRAINING));
  for (unsigned i = 0; i < STEPS; ++i) {
    struct ct_event e;
    OK(ct_wait(b->dev, tag[i], &e, 5000));
    assert_int_equal(e.kind, CT_EVENT_STEP);
    assert_true(!e.error || (e.error == CT_ERR_CANCELLED && e.code == CT_DEV_RESET));
    ended += e.error != CT_OK;
  }
  assert_true(ended >= STEPS - 1);
  assert_int_equal(ct_outstanding(b->dev, CT_TRAINING), 0);
  bed_train(&training);
  answers(b, 0);
  ct_batch_free(step.batch);
  ct_model_free(training.model);
  bed_close(b);
}

static void refused(void **state) {
  (void)state;
  ct_device *dev;
  assert_int_equal(ct_reset(NULL, CT_INFERENCE), CT_ERR_ARG);
  assert_int_equal(ct_open("emu:dram=32", &dev), CT_OK);
  assert_int_equal(ct_reset(dev, (enum ct_queue)2), CT_ERR_ARG);
  assert_int_equal(ct_reset(dev, CT_INFERENCE), CT_OK);
  assert_int_equal(ct_reset(dev, CT_TRAINING), CT_OK);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stuck_things_come_back),
      cmocka_unit_test(stuck_at_its_creation),
      cmocka_unit_test(resets_at_random),
      cmocka_unit_test(training_is_reset),
      cmocka_unit_test(refused),
  };
  ct_tb_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
