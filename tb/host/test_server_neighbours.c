/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers beside a host that does not reap, cancels at any moment, and neighbours that hang or go:
 * each gets a clear error, and nobody else notices.
 *
 * On sim:, with a memory that stalls.
 */
#include <string.h>
#include <unistd.h>

#include "ct_server.h"
#include "flaky.h"
#include "server_bed.h"

/* ---- A host that does not reap ---- */

/* Time passes while nobody looks at what the device has to say. */
static void pass(struct bed *b, uint64_t cycles) {
  uint64_t begin = 0, now = 0;
  uint32_t id;
  OK(ct_now(b->dev, &begin));
  for (now = begin; now < begin + cycles;) {
    OK(ct_reg_read(b->dev, CT_REG_ID, &id));
    OK(ct_now(b->dev, &now));
  }
}

enum { UNREAPED = 300 };

/* A step of training, and an answer alone. */
static void other_calls_work(struct bed *b, struct bed_training *training) {
  const struct served *s = &b->served[1];
  float logits[BED_OUT_MOST];
  bed_train(training);
  OK(ct_model_infer(s->model, s->weights, s->x[1], 1, logits));
  ct_assert_same("alone", logits, s->want[s->version][1], s->out * sizeof *logits);
}

/* To models 0 and 2 in turns. */
static void all_come_in_order(struct bed *b, const struct ask *ask) {
  uint32_t next[2] = {0, 1};
  for (uint32_t i = 0; i < UNREAPED; ++i) {
    struct ct_event r;
    OK(ct_reap(b->dev, &r, 5000));
    const uint32_t which = r.server == b->served[2].server;
    assert_ptr_equal(r.user, &ask[next[which]]);
    next[which] += 2;
    bed_check(b, &r);
  }
}

/* Records pile up, in the device and then in the host; other calls go on working; more requests are
 * pushed; and when the host reaps again, each record is there, in order. */
static void nobody_reaps(void **state) {
  (void)state;
  enum { ROUNDS = 2 };
  struct ask *ask = test_calloc(UNREAPED, sizeof *ask);
  struct bed_training training;
  struct bed *b = bed_open("sim:dram=32,stall=25");
  bed_training_open(b->dev, &training);
  bed_serve(b, 0, NULL);
  bed_serve(b, 2, NULL);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    for (uint32_t i = 0; i < UNREAPED; ++i) {
      ask[i] = (struct ask){.served = &b->served[i % 2 * 2], .sample = i % BED_SAMPLES};
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
      if (i != UNREAPED / 2) continue;
      pass(b, 40000);
      other_calls_work(b, &training);
    }
    pass(b, 20000);
    assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), UNREAPED);
    all_come_in_order(b, ask);
  }
  bed_check_training(&training);
  ct_model_free(training.model);
  bed_close(b);
  test_free(ask);
}

/* ---- Cancels at any moment ---- */

/* Whether a batch is on its way: this look takes in nothing. */
static bool batch_runs(struct bed *b) {
  uint32_t state = 0;
  OK(ct_reg_read(b->dev, CT_REG_BATCH_STATE, &state));
  return state >> 8 & 255;
}

/* Requests by the state in which they are cancelled. */
enum { HOST = 90, QUEUE = 40, BATCH = 0, DONE = 1, AHEAD = 98, LATER = 99, IN_STATES = 100 };

/* In a batch, done, in the host, in the device. */
static void cancel_present(struct bed *b, struct ask *ask) {
  bed_push(b, &ask[BATCH], 0, CT_NO_CYCLE);
  for (int look = 0; look < 1000 && !batch_runs(b); ++look)
    continue;
  assert_true(batch_runs(b));
  OK(ct_cancel(b->dev, ask[BATCH].tag));
  bed_push(b, &ask[DONE], 0, CT_NO_CYCLE);
  pass(b, 20000);
  OK(ct_poll(b->dev));
  OK(ct_poll(b->dev));
  OK(ct_cancel(b->dev, ask[DONE].tag));
  bed_freeze(b, true);
  for (uint32_t i = 2; i < AHEAD; ++i)
    bed_push(b, &ask[i], 0, CT_NO_CYCLE);
  OK(ct_cancel(b->dev, ask[HOST].tag));
  OK(ct_cancel(b->dev, ask[QUEUE].tag));
  bed_freeze(b, false);
}

/* Reaped. */
static void reap_present(struct bed *b, const struct ask *ask) {
  unsigned gone = 0;
  for (uint32_t i = 0; i < AHEAD; ++i) {
    struct ct_event r;
    OK(ct_reap(b->dev, &r, 5000));
    const struct ask *a = r.user;
    assert_int_equal(r.error == CT_OK, a != &ask[HOST] && a != &ask[QUEUE]);
    if (r.error == CT_OK) bed_check(b, &r);
    gone += r.error == CT_ERR_CANCELLED && r.code == CT_DEV_CANCELLED && r.batch == 0;
    assert_int_equal(ct_cancel(b->dev, r.tag), CT_ERR_NOT_FOUND);
  }
  assert_int_equal(gone, 2);
}

/* Ahead of its time: one that the device is to get in a moment, and one much later. */
static void cancel_scheduled(struct bed *b, struct ask *ask) {
  uint64_t now = 0;
  OK(ct_now(b->dev, &now));
  bed_push(b, &ask[AHEAD], 0, now + 800);
  bed_push(b, &ask[LATER], 0, now + 80000);
  for (uint32_t i = AHEAD; i <= LATER; ++i)
    OK(ct_cancel(b->dev, ask[i].tag));
  for (uint32_t i = AHEAD; i <= LATER; ++i) {
    struct ct_event r;
    OK(ct_reap(b->dev, &r, 5000));
    assert_int_equal(r.code, CT_DEV_CANCELLED);
  }
}

static void cancelled_in_every_state(void **state) {
  (void)state;
  struct ask ask[IN_STATES];
  struct bed *b = bed_open("sim:dram=32,stall=25");
  bed_serve(b, 0, &(struct ct_serving){.max_batch = 1});
  bed_serve(b, 2, &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = 9000});
  for (uint32_t i = 0; i < IN_STATES; ++i)
    ask[i] = (struct ask){.served = &b->served[i < AHEAD ? 0 : 2], .sample = i % BED_SAMPLES};
  cancel_present(b, ask);
  reap_present(b, ask);
  cancel_scheduled(b, ask);
  bed_close(b);
}

/* On a device that has a descriptor for its interrupt, a request that is cancelled in the host can
 * be reaped at once, and ct_poll_fd() says so. */
static void cancel_in_the_host_is_shown(void **state) {
  (void)state;
  struct flaky flaky;
  struct ask ask = {.sample = 1};
  uint64_t now = 0;
  struct bed *b = bed_open("sim:dram=32");
  bed_serve(b, 0, NULL);
  flaky_begin(&flaky, b->dev);
  flaky_have_irq(&flaky);
  const int fd = ct_poll_fd(b->dev);
  ask.served = &b->served[0];
  OK(ct_now(b->dev, &now));
  bed_push(b, &ask, 0, now + 80000);
  assert_false(bed_is_readable(fd));
  OK(ct_cancel(b->dev, ask.tag));
  assert_true(bed_is_readable(fd));
  assert_int_equal(bed_reap(b, &ask).code, CT_DEV_CANCELLED);
  assert_false(bed_is_readable(fd));
  flaky_end(&flaky, b->dev);
  bed_close(b);
  close(flaky.irq);
}

/* Whenever it comes, a cancel changes one record at most, its own. */
static void cancels_at_random(void **state) {
  (void)state;
  enum { N = 60, ROUNDS = 8 };
  struct ask ask[N];
  unsigned gone = 0, answered = 0;
  struct bed *b = bed_open("sim:dram=32,stall=25");
  bed_serve(b, 0, &(struct ct_serving){.max_batch = 4});
  bed_serve(b, 2, &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = 700});
  for (unsigned round = 0; round < ROUNDS; ++round) {
    bool asked[N] = {false};
    for (uint32_t i = 0; i < N; ++i) {
      ask[i] = (struct ask){.served = &b->served[i % 2 * 2], .sample = i % BED_SAMPLES};
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
      if (!ct_rng_percent(&b->rng, 40)) continue;
      const uint32_t which = ct_rng_below(&b->rng, i + 1);
      if (ct_rng_percent(&b->rng, 50)) pass(b, ct_rng_below(&b->rng, 500));
      OK(ct_cancel(b->dev, ask[which].tag));
      asked[which] = true;
    }
    for (uint32_t i = 0; i < N; ++i) {
      struct ct_event r;
      OK(ct_reap(b->dev, &r, 5000));
      const struct ask *a = r.user;
      assert_true(a->busy && (r.error == CT_OK || asked[a - ask]));
      if (r.error == CT_OK) bed_check(b, &r);
      ask[a - ask].busy = false;
      gone += r.error != CT_OK;
      answered += r.error == CT_OK;
    }
  }
  assert_true(gone > 20 && answered > 100);
  bed_close(b);
}

/* ---- Neighbours ---- */

enum { ARRIVALS = 120 };

/* Requests to model 2 by a clock, and what is to happen beside them. */
struct run {
  const char *uri;
  uint32_t gap;
  bool training; /* hangs */
  bool both;     /* model 0 has as many requests */
  bool unload;   /* model 0 goes when half of model 2's are answered */

  uint64_t latency[ARRIVALS]; /* from the time asked for to the end of the batch */
  uint64_t longest;           /* batch of model 2 */
  uint64_t reads;             /* LDs of a batch, and the read of its program */
  unsigned unloaded, waited;  /* requests of model 0; of these, had arrived in the device */
  struct ask ask[ARRIVALS], beside[ARRIVALS];
};

static uint64_t reads_of_a_batch(struct bed *b, const struct ct_server *s) {
  uint8_t bytes[CT_CMD_BYTES];
  uint64_t reads = 1;
  for (uint32_t i = 0; i < s->program->count; ++i) {
    OK(ct_mem_read(b->dev, s->program->addr + i * (uint64_t)CT_CMD_BYTES, bytes, sizeof bytes));
    const struct ct_cmd cmd = ct_cmd_from_bytes(bytes);
    const uint32_t op = ct_cmd_get(&cmd, CT_F_ALL_OP), steps = ct_cmd_get(&cmd, CT_F_DMA_N2);
    assert_true(op != CT_OP_LOOP);
    if (op == CT_OP_LD) reads += steps ? steps : 1;
  }
  return reads;
}

/* Loads without end: the read port is never idle. */
static ct_program *greedy(struct bed *b) {
  struct ct_cmd cmd[4] = {{{0}}, {{0}}, {{0}}, {{0}}};
  uint8_t bytes[4 * CT_CMD_BYTES];
  ct_program *program = NULL;
  CT_PUT(&cmd[0], ALL_OP, CT_OP_LOOP);
  CT_PUT(&cmd[0], CTL_COUNT, UINT32_MAX);
  CT_PUT(&cmd[1], ALL_OP, CT_OP_LD);
  CT_PUT(&cmd[1], DMA_DRAM, (uint32_t)(bed_row_at(&b->served[1], 0) / CT_UNIT));
  CT_PUT(&cmd[1], DMA_NB, 256);
  CT_PUT(&cmd[1], DMA_S0, 1);
  CT_PUT(&cmd[1], DMA_N1, 1);
  CT_PUT(&cmd[1], DMA_N2, 1);
  CT_PUT(&cmd[2], ALL_OP, CT_OP_ENDL);
  CT_PUT(&cmd[3], ALL_OP, CT_OP_END);
  for (int i = 0; i < 4; ++i)
    ct_cmd_to_bytes(&cmd[i], bytes + (size_t)i * CT_CMD_BYTES);
  OK(ct_program_load(b->dev, bytes, 4, &program));
  return program;
}

enum { HANGING = 4, LIMIT = 40000 };

static ct_program *training_hangs(struct bed *b, uint64_t start) {
  ct_program *program = greedy(b);
  for (uint64_t i = 0; i < HANGING; ++i) {
    const struct ct_job job = {.program = program, .watchdog = LIMIT};
    OK(ct_submit_at(b->dev, CT_TRAINING, &job, start + i * LIMIT, NULL));
  }
  return program;
}

static void check_hung(const struct ct_event *e) {
  assert_int_equal(e->kind, CT_EVENT_JOB);
  assert_int_equal(e->error, CT_ERR_JOB);
  assert_int_equal(e->code, CT_DEV_WATCHDOG);
  assert_int_equal(e->queue, CT_TRAINING);
  assert_in_range(e->end - e->start, LIMIT, LIMIT + 2000);
  assert_non_null(strstr(ct_code_text(e->code), "longer than its limit"));
}

/* hung: jobs whose events came between those of requests. */
static void training_has_failed(struct bed *b, ct_program *program, unsigned hung) {
  uint64_t counter[32];
  for (; hung < HANGING; ++hung) {
    struct ct_event e;
    OK(ct_reap(b->dev, &e, 20000));
    check_hung(&e);
  }
  /* It has read in most of the cycles. */
  assert_in_range(ct_counters(b->dev, CT_TRAINING, counter, 32), CT_CNT_LD_BEATS + 1, 32);
  assert_true(counter[CT_CNT_LD_BEATS] > HANGING * LIMIT / 2);
  ct_program_free(program);
}

static void push_all(struct bed *b, struct run *run, uint64_t start) {
  for (uint32_t i = 0; i < ARRIVALS; ++i) {
    const uint64_t at = start + (uint64_t)i * run->gap;
    run->ask[i] = (struct ask){.served = &b->served[2], .sample = i % BED_SAMPLES};
    run->beside[i] = (struct ask){.served = &b->served[0], .sample = i % BED_SAMPLES};
    if (run->both) bed_push(b, &run->beside[i], 0, at);
    bed_push(b, &run->ask[i], 0, at);
  }
}

/* Model 0's requests may be unloaded, and only by an unload. */
static void take(struct bed *b, struct run *run, const struct ct_event *r) {
  const struct ask *a = r->user;
  if (a->served == &b->served[0] && r->error) {
    assert_int_equal(r->error, CT_ERR_CANCELLED);
    assert_int_equal(r->code, CT_DEV_UNLOADED);
    ++run->unloaded;
    run->waited += r->arrive != CT_NO_CYCLE;
    return;
  }
  bed_check(b, r);
  if (a->served == &b->served[0]) return;
  run->latency[a - run->ask] = r->end - r->scheduled;
  if (r->end - r->start > run->longest) run->longest = r->end - r->start;
}

/* Every request of model 2 is answered, to the bit. */
static void run(struct run *run) {
  ct_program *program = NULL;
  uint64_t start = 0;
  unsigned served = 0, hung = 0;
  struct bed *b = bed_open(run->uri);
  bed_serve(b, 2, &(struct ct_serving){.stream = true});
  bed_serve(b, 0,
            &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = 4000, .stream = true});
  run->reads = reads_of_a_batch(b, b->served[2].server);
  OK(ct_now(b->dev, &start));
  start += 5000;
  if (run->training) program = training_hangs(b, start);
  push_all(b, run, start);
  while (ct_outstanding(b->dev, CT_INFERENCE)) {
    struct ct_event r;
    OK(ct_reap(b->dev, &r, 20000));
    if (r.kind != CT_EVENT_REQUEST) {
      check_hung(&r);
      ++hung;
      continue;
    }
    take(b, run, &r);
    served += ((struct ask *)r.user)->served == &b->served[2];
    /* Between two batches of model 0, so that some of its requests wait in the device. */
    if (served == ARRIVALS / 2 + 5 && run->unload) ct_server_free(b->served[0].server);
    if (served == ARRIVALS / 2 + 5) run->unload = false;
  }
  assert_int_equal(served, ARRIVALS);
  if (run->unloaded) b->served[0].server = NULL;
  if (run->training) training_has_failed(b, program, hung);
  bed_close(b);
}

/* How much later a request was answered in the second run than in the first, at most. */
static uint64_t most_later(const struct run *first, const struct run *second) {
  uint64_t most = 0;
  for (unsigned i = 0; i < ARRIVALS; ++i)
    if (second->latency[i] > first->latency[i] + most)
      most = second->latency[i] - first->latency[i];
  return most;
}

static const char *const devices[] = {"sim:dram=32", "sim:dram=32,stall=25"};

/* A training job that reads without end until its watchdog ends it, and again: it gets its error;
 * requests are answered, none later than alone by more than the bound of docs/architecture.md. */
static void training_runs_into_its_watchdog(void **state) {
  (void)state;
  enum { TRAIN_CAP = 4, A_READ = 17 * TRAIN_CAP + 1 };
  struct run *alone = test_malloc(sizeof *alone), *beside = test_malloc(sizeof *beside);
  for (uint64_t stalls = 0; stalls < 2; ++stalls) {
    *alone = (struct run){.uri = devices[stalls], .gap = 1500};
    *beside = (struct run){.uri = devices[stalls], .gap = 1500, .training = true};
    run(alone);
    run(beside);
    /* A memory that stalls in a quarter of the cycles takes 4/3 of them for a beat. */
    const uint64_t bound = alone->reads * A_READ * (3 + stalls) / 3;
    const uint64_t most = most_later(alone, beside);
    print_message("%s: alone %llu cycles, beside up to %llu more, bound %llu\n", alone->uri,
                  (unsigned long long)alone->latency[0], (unsigned long long)most,
                  (unsigned long long)bound);
    assert_true(most <= bound);
  }
  test_free(alone);
  test_free(beside);
}

/* A model that is unloaded under load: what waits leaves, the rest is answered; requests of the
 * other model are all answered, none later than if it had stayed by more than a batch takes, which
 * is one that a request may only just have missed. */
static void a_model_goes_under_load(void **state) {
  (void)state;
  struct run *stays = test_malloc(sizeof *stays), *goes = test_malloc(sizeof *goes);
  for (unsigned stalls = 0; stalls < 2; ++stalls) {
    *stays = (struct run){.uri = devices[stalls], .gap = 400, .both = true};
    *goes = (struct run){.uri = devices[stalls], .gap = 400, .both = true, .unload = true};
    run(stays);
    run(goes);
    const uint64_t most = most_later(stays, goes);
    print_message(
        "%s: %u unloaded, %u waited in the device; others up to %llu cycles later, bound %llu\n",
        stays->uri, goes->unloaded, goes->waited, (unsigned long long)most,
        (unsigned long long)stays->longest);
    assert_int_equal(stays->unloaded, 0);
    assert_in_range(goes->unloaded, ARRIVALS / 4, ARRIVALS / 2 + 20);
    assert_true(goes->waited > 2 && goes->waited < goes->unloaded);
    assert_true(most <= stays->longest);
  }
  test_free(stays);
  test_free(goes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nobody_reaps),
      cmocka_unit_test(cancelled_in_every_state),
      cmocka_unit_test(cancel_in_the_host_is_shown),
      cmocka_unit_test(cancels_at_random),
      cmocka_unit_test(training_runs_into_its_watchdog),
      cmocka_unit_test(a_model_goes_under_load),
  };
  ct_tb_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
