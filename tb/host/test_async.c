/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs in flight, on emu: and sim:: cancelled in every state, waited for in vain, watched by a file
 * descriptor, scheduled, left behind by ct_close(); and versions that are swapped between requests.
 *
 * A job that does not end: on the simulator one that waits for a semaphore which nobody signals;
 * the emulator has no time and would end that at once, so there the device is frozen after the
 * first step.
 */
#include "ct_tb.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_network.h"
#include "ct_queue.h"
#include "ct_prog.h"
#include "flaky.h"
#include "one_copy.h"
#include "tiny_program.h"

enum { UNIT = 16 };

struct bed {
  ct_device *dev;
  bool emu;
  ct_program *copy, *endless;
  uint64_t at; /* units of memory: 0 holds a text, the others are written to */
};

static void open_bed(struct bed *b, bool emu) {
  struct ct_code code;
  *b = (struct bed){.emu = emu};
  if (ct_open(emu ? "emu:dram=32" : "sim:dram=32", &b->dev)) fail_msg("%s", ct_last_error(NULL));
  assert_int_equal(one_copy(1, 4096, &code, NULL), CT_OK);
  assert_int_equal(ct_code_load(b->dev, &code, &b->copy), CT_OK);
  b->endless = tiny_program(b->dev, true);
  char text[64 * UNIT] = "sixteen letters";
  assert_int_equal(ct_mem_alloc(b->dev, sizeof text, &b->at), CT_OK);
  assert_int_equal(ct_mem_write(b->dev, b->at, text, sizeof text), CT_OK);
}

static void close_bed(struct bed *b) {
  ct_program_free(b->copy);
  ct_program_free(b->endless);
  ct_close(b->dev);
}

static void freeze(struct bed *b, uint32_t control) {
  if (b->emu) assert_int_equal(ct_reg_write(b->dev, CT_REG_CTRL, control), CT_OK);
}

/* Copies the text to place number `to`. */
static uint64_t submit_copy(struct bed *b, enum ct_queue queue, uint32_t to, uint64_t cycle) {
  uint64_t tag = 0;
  const struct ct_job job = {.program = b->copy,
                             .args = {(uint32_t)(b->at / UNIT), (uint32_t)(b->at / UNIT) + to},
                             .version = to};
  assert_int_equal(ct_submit_at(b->dev, queue, &job, cycle, &tag), CT_OK);
  return tag;
}

static bool is_copied(struct bed *b, uint32_t to) {
  char text[UNIT];
  assert_int_equal(ct_mem_read(b->dev, b->at + (uint64_t)to * UNIT, text, UNIT), CT_OK);
  return memcmp(text, "sixteen letters", UNIT) == 0;
}

/* A job that has started and will not end. */
static uint64_t submit_endless(struct bed *b, enum ct_queue queue) {
  uint64_t tag = 0;
  struct ct_event r;
  const struct ct_job job = {.program = b->endless};
  freeze(b, 2);
  assert_int_equal(ct_submit(b->dev, queue, &job, &tag), CT_OK);
  freeze(b, 6);
  assert_int_equal(ct_wait(b->dev, tag, &r, CT_NO_WAIT), CT_ERR_TIMEOUT);
  uint32_t status = 0;
  assert_int_equal(
      ct_reg_read(b->dev, CT_CTX_BASE + (uint32_t)queue * CT_CTX_STRIDE + CT_CREG_STATUS, &status),
      CT_OK);
  /* Running, or executed to its END and waiting for its units. */
  if ((status & 7) != 3 && (status & 7) != 4) fail_msg("the job is in state %u", (unsigned)status);
  return tag;
}

static void check_result(struct bed *b, uint64_t tag, int error) {
  struct ct_event r = {.tag = 0};
  assert_int_equal(ct_wait(b->dev, tag, &r, 2000), CT_OK);
  assert_true(r.tag == tag);
  assert_int_equal(r.error, error);
}

/* ---- Cancelling ---- */

static void cancel_in_every_state(struct bed *b) {
  uint64_t now = 0;
  const uint64_t running = submit_endless(b, CT_INFERENCE);
  const uint64_t queued = submit_copy(b, CT_INFERENCE, 1, CT_NO_CYCLE);
  const uint64_t kept = submit_copy(b, CT_INFERENCE, 2, CT_NO_CYCLE);
  assert_int_equal(ct_now(b->dev, &now), CT_OK);
  const uint64_t scheduled = submit_copy(b, CT_TRAINING, 3, b->emu ? CT_NO_CYCLE : now + 5000);
  assert_int_equal(ct_cancel(b->dev, scheduled), CT_OK);
  assert_int_equal(ct_cancel(b->dev, queued), CT_OK);
  assert_int_equal(ct_cancel(b->dev, running), CT_OK);
  assert_int_equal(ct_cancel(b->dev, queued), CT_OK); /* again */
  freeze(b, 0);
  check_result(b, running, CT_ERR_CANCELLED);
  check_result(b, queued, CT_ERR_CANCELLED);
  check_result(b, scheduled, CT_ERR_CANCELLED);
  /* Finished, then reaped. */
  const uint64_t later = submit_copy(b, CT_INFERENCE, 4, CT_NO_CYCLE);
  check_result(b, later, CT_OK);
  assert_int_equal(ct_cancel(b->dev, kept), CT_OK);
  check_result(b, kept, CT_OK);
  assert_int_equal(ct_cancel(b->dev, kept), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_cancel(b->dev, later + 2), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_cancel(b->dev, 0), CT_ERR_NOT_FOUND);
  assert_false(is_copied(b, 1));
  assert_true(is_copied(b, 2));
  assert_false(is_copied(b, 3));
  assert_true(is_copied(b, 4));
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE) + ct_outstanding(b->dev, CT_TRAINING), 0);
}

/* Layers of different widths, because like ones share commands: this many need several jobs. */
enum {
  LAYERS = CT_MAX_LAYERS,
  STEP_ROWS = 4,
  WIDTH = 17,
  WIDEST = WIDTH + LAYERS,
  NUMBERS = 2 * WIDEST * (WIDEST + 1)
};

/* All weights, biases and momentum. */
static void read_model(ct_model *m, float (*x)[NUMBERS]) {
  for (size_t l = 0; l < LAYERS; ++l) {
    float *w = x[l], *b = w + WIDEST * WIDEST, *vw = b + WIDEST, *vb = vw + WIDEST * WIDEST;
    assert_int_equal(ct_model_get(m, l, w, b, vw, vb), CT_OK);
  }
}

static uint64_t submit_step(ct_model *m, ct_batch *batch) {
  const struct ct_step step = {.batch = batch};
  uint64_t tag = 0;
  assert_int_equal(ct_model_step_submit(m, &step, &tag), CT_OK);
  return tag;
}

/* A step on that batch does well. Frees the batch. */
static void step_changes_it(struct bed *b, ct_model *m, ct_batch *batch, float (*before)[NUMBERS]) {
  static float after[LAYERS][NUMBERS];
  struct ct_event e;
  assert_int_equal(ct_wait(b->dev, submit_step(m, batch), &e, 60000), CT_OK);
  assert_int_equal(e.error, CT_OK);
  read_model(m, after);
  assert_memory_not_equal(before, after, sizeof after);
  ct_batch_free(batch);
}

/* A model whose step takes several jobs, and a batch for it. */
static ct_model *model_of_several_jobs(struct bed *b, ct_batch **batch) {
  const struct ct_training training = {.batch = STEP_ROWS, .rates = {.lr = 0.05f}};
  static float x[STEP_ROWS * WIDTH];
  const uint32_t labels[STEP_ROWS] = {1, 2, 3, 4};
  uint32_t widths[LAYERS + 1];
  ct_model *m;
  for (int i = 0; i < STEP_ROWS * WIDTH; ++i)
    x[i] = (float)(i % 9) * 0.1f;
  for (uint32_t l = 0; l <= LAYERS; ++l)
    widths[l] = WIDTH + (l < LAYERS ? l : 0);
  assert_int_equal(ct_model_create(b->dev, widths, LAYERS, 1, &m), CT_OK);
  assert_int_equal(ct_model_training(m, &training), CT_OK);
  assert_true(ct_network_stage_jobs(m->plan->step[CT_GRADIENTS_NONE], 0) >= 2);
  assert_int_equal(ct_batch_create(m, batch), CT_OK);
  assert_int_equal(ct_batch_write(*batch, x, labels), CT_OK);
  return m;
}

/* A step that takes several jobs is cancelled as one. */
static void cancel_a_step(struct bed *b) {
  static float before[LAYERS][NUMBERS], after[LAYERS][NUMBERS];
  ct_batch *batch;
  ct_model *m = model_of_several_jobs(b, &batch);
  read_model(m, before);
  const uint64_t endless = submit_endless(b, CT_TRAINING), tag = submit_step(m, batch);
  assert_int_equal(ct_cancel(b->dev, tag), CT_OK);
  assert_int_equal(ct_cancel(b->dev, endless), CT_OK);
  freeze(b, 0);
  check_result(b, endless, CT_ERR_CANCELLED);
  check_result(b, tag, CT_ERR_CANCELLED);
  assert_int_equal(ct_outstanding(b->dev, CT_TRAINING), 0);
  read_model(m, after);
  assert_memory_equal(before, after, sizeof before);
  step_changes_it(b, m, batch, before);
  ct_model_free(m);
}

/* Random cancels among random jobs: a job says "cancelled" or has done its work, never neither. */
static void random_cancels(struct bed *b) {
  enum { JOBS = 60 };
  ct_rng rng = ct_rng_make(b->emu ? 1 : 2);
  uint64_t tag[JOBS];
  char blank[UNIT] = "";
  int cancelled = 0;
  for (uint32_t i = 0; i < JOBS; ++i)
    assert_int_equal(ct_mem_write(b->dev, b->at + (i + 1) * UNIT, blank, UNIT), CT_OK);
  for (uint32_t i = 0; i < JOBS; ++i) {
    if (ct_rng_percent(&rng, 30)) freeze(b, 2);
    tag[i] = submit_copy(b, (enum ct_queue)ct_rng_below(&rng, 2), i + 1, CT_NO_CYCLE);
    const uint32_t which = ct_rng_below(&rng, i + 1);
    if (ct_rng_percent(&rng, 40)) assert_int_equal(ct_cancel(b->dev, tag[which]), CT_OK);
    if (ct_rng_percent(&rng, 50)) freeze(b, 0);
  }
  freeze(b, 0);
  for (uint32_t i = 0; i < JOBS; ++i) {
    struct ct_event r;
    assert_int_equal(ct_wait(b->dev, tag[i], &r, 5000), CT_OK);
    if (r.error) assert_int_equal(r.error, CT_ERR_CANCELLED);
    if (!r.error) assert_true(is_copied(b, i + 1));
    cancelled += r.error != CT_OK;
  }
  assert_in_range(cancelled, 1, JOBS - 1);
}

/* A doorbell that fails, with effect or without: the job is there, once, and those behind it. */
static void doorbells_that_fail(struct bed *b) {
  enum { DOORBELLS = 24 };
  ct_rng rng = ct_rng_make(ct_tb_seed());
  struct flaky way;
  flaky_begin(&way, b->dev);
  for (uint32_t i = 0; i < DOORBELLS; ++i) {
    const enum ct_queue queue = ct_rng_below(&rng, 2) ? CT_TRAINING : CT_INFERENCE;
    const bool again = ct_rng_below(&rng, 2);
    uint64_t tag = 0;
    struct ct_event e;
    flaky_fail_writes(&way, ct_queue_reg(queue, CT_CREG_TAIL), 1 + again,
                      ct_rng_below(&rng, 2) ? WITH : WITHOUT);
    tag = submit_copy(b, queue, 1 + i, CT_NO_CYCLE);
    if (again) assert_int_equal(ct_wait(b->dev, tag, &e, 2000), CT_ERR_DEVICE);
    if (ct_rng_below(&rng, 2)) check_result(b, tag, CT_OK);
    check_result(b, submit_copy(b, queue, 30 + i, CT_NO_CYCLE), CT_OK);
  }
  flaky_end(&way, b->dev);
  struct ct_event e;
  while (ct_reap(b->dev, &e, 2000) == CT_OK)
    assert_int_equal(e.error, CT_OK);
  for (uint32_t i = 0; i < DOORBELLS; ++i)
    assert_true(is_copied(b, 1 + i) && is_copied(b, 30 + i));
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE) + ct_outstanding(b->dev, CT_TRAINING), 0);
}

/* A reset ends the jobs of a doorbell that failed, too; none runs behind it. */
static void resets_behind_a_doorbell_that_fails(struct bed *b) {
  char blank[UNIT] = "";
  struct flaky way;
  flaky_begin(&way, b->dev);
  for (uint32_t i = 0; i < 8; ++i) {
    const enum ct_queue queue = i % 2 ? CT_TRAINING : CT_INFERENCE;
    struct ct_event e;
    assert_int_equal(ct_mem_write(b->dev, b->at + (1 + i) * UNIT, blank, UNIT), CT_OK);
    freeze(b, 2);
    flaky_fail_writes(&way, ct_queue_reg(queue, CT_CREG_TAIL), 1, i % 4 < 2 ? WITH : WITHOUT);
    const uint64_t tag = submit_copy(b, queue, 1 + i, CT_NO_CYCLE);
    assert_int_equal(ct_reset(b->dev, queue), CT_OK);
    freeze(b, 0);
    assert_int_equal(ct_wait(b->dev, tag, &e, 2000), CT_OK);
    assert_int_equal(e.error, CT_ERR_CANCELLED);
    check_result(b, submit_copy(b, queue, 30 + i, CT_NO_CYCLE), CT_OK);
    assert_false(is_copied(b, 1 + i));
  }
  flaky_end(&way, b->dev);
}

/* Completions that were taken in, but whose pop failed, with effect or without: none comes twice,
 * none is lost. */
static void pops_that_fail(struct bed *b) {
  enum { ROUNDS = 12, EACH = 5 };
  ct_rng rng = ct_rng_make(ct_tb_seed());
  struct flaky way;
  flaky_begin(&way, b->dev);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    const enum ct_queue queue = ct_rng_below(&rng, 2) ? CT_TRAINING : CT_INFERENCE;
    uint64_t tag[EACH];
    for (uint32_t i = 0; i < EACH; ++i)
      tag[i] = submit_copy(b, queue, 1 + i, CT_NO_CYCLE);
    for (uint32_t i = 0; i < EACH; ++i) {
      struct ct_event e = {.tag = 0};
      int err;
      flaky_fail_writes(&way, ct_queue_reg(queue, CT_CREG_CPL_POP), ct_rng_below(&rng, 3),
                        ct_rng_below(&rng, 2) ? WITH : WITHOUT);
      if (way.most == 0) way.percent = 0;
      while ((err = ct_reap(b->dev, &e, 2000)) == CT_ERR_DEVICE)
        continue;
      assert_int_equal(err, CT_OK);
      assert_true(e.tag == tag[i] && e.version == 1 + i && e.error == CT_OK);
    }
    assert_int_equal(ct_outstanding(b->dev, queue), 0);
  }
  flaky_end(&way, b->dev);
  check_result(b, submit_copy(b, CT_INFERENCE, 1, CT_NO_CYCLE), CT_OK);
  check_result(b, submit_copy(b, CT_TRAINING, 1, CT_NO_CYCLE), CT_OK);
}

/* ---- Timeouts ---- */

static void timeouts_leave_everything(struct bed *b) {
  struct ct_event r;
  const uint64_t tag = submit_endless(b, CT_TRAINING);
  uint64_t from = ct_tb_ms();
  assert_int_equal(ct_reap(b->dev, &r, 60), CT_ERR_TIMEOUT);
  assert_true(ct_tb_ms() - from < 3000);
  if (!b->emu) assert_true(ct_tb_ms() - from >= 60);
  from = ct_tb_ms();
  assert_int_equal(ct_wait(b->dev, tag, NULL, CT_NO_WAIT), CT_ERR_TIMEOUT);
  assert_true(ct_tb_ms() - from < 500);
  uint64_t now;
  assert_int_equal(ct_now(b->dev, &now), CT_OK);
  if (!b->emu) assert_int_equal(ct_reap_until(b->dev, &r, now + 3000, CT_FOREVER), CT_ERR_TIMEOUT);
  uint64_t later;
  assert_int_equal(ct_now(b->dev, &later), CT_OK);
  if (!b->emu) assert_in_range(later - now, 3000, 3500);
  assert_int_equal(ct_outstanding(b->dev, CT_TRAINING), 1);
  assert_int_equal(ct_cancel(b->dev, tag), CT_OK);
  freeze(b, 0);
  check_result(b, tag, CT_ERR_CANCELLED);
}

/* A call that blocks gives up, and takes its job with it. */
static void blocking_calls_give_up(struct bed *b) {
  const float two = 2, three = 3;
  float six = 0;
  if (b->emu) return; /* nothing is ever in the way there */
  const uint64_t tag = submit_endless(b, CT_INFERENCE);
  assert_int_equal(ct_set_timeout(b->dev, 80), CT_OK);
  const uint64_t from = ct_tb_ms();
  /* Its job waits behind one that does not end, so that even a cancel cannot end it. */
  assert_int_equal(ct_matmul(b->dev, CT_INFERENCE, 1, 1, 1, &two, &three, &six, NULL),
                   CT_ERR_DEVICE);
  assert_true(ct_tb_ms() - from < 3000);
  assert_int_equal(ct_matmul(b->dev, CT_TRAINING, 1, 1, 1, &two, &three, &six, NULL), CT_OK);
  assert_true(six == 6.0f);
  assert_int_equal(ct_cancel(b->dev, tag), CT_OK);
  check_result(b, tag, CT_ERR_CANCELLED);
  struct ct_event r;
  assert_int_equal(ct_reap(b->dev, &r, 2000), CT_OK); /* of the product */
  assert_int_equal(r.error, CT_ERR_CANCELLED);
  /* A job that runs for too long, by a device that is frozen half way. */
  assert_int_equal(ct_matmul(b->dev, CT_INFERENCE, 1, 1, 1, &two, &three, &six, NULL), CT_OK);
  enum { N = 160 };
  float *big = calloc((size_t)3 * N * N, sizeof *big);
  assert_non_null(big);
  assert_int_equal(ct_set_timeout(b->dev, 1), CT_OK);
  assert_int_equal(
      ct_matmul(b->dev, CT_INFERENCE, N, N, N, big, big + N * N, big + 2 * N * N, NULL),
      CT_ERR_TIMEOUT);
  assert_non_null(strstr(ct_last_error(b->dev), "within 1 ms and was cancelled"));
  assert_int_equal(ct_set_timeout(b->dev, CT_FOREVER), CT_OK);
  assert_int_equal(ct_matmul(b->dev, CT_INFERENCE, 1, 1, 1, &two, &three, &six, NULL), CT_OK);
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 0);
  free(big);
}

/* Memory that never answers: the call gives up all the same, and so does closing. */
static void a_dead_memory_is_no_trap(void **state) {
  (void)state;
  const float x[64] = {1};
  float y[64];
  struct bed b;
  open_bed(&b, false);
  assert_int_equal(ct_set_timeout(b.dev, 50), CT_OK);
  /* Where the next allocation lies. */
  assert_int_equal(b.dev->plugin.ops->fault(b.dev->self, CT_FAULT_AXI_HANG, b.at + 1024), 0);
  uint64_t from = ct_tb_ms();
  const int err = ct_matmul(b.dev, CT_INFERENCE, 8, 8, 8, x, x, y, NULL);
  if (err != CT_ERR_DEVICE && err != CT_ERR_TIMEOUT) fail_msg("%d: %s", err, ct_last_error(b.dev));
  assert_true(ct_tb_ms() - from < 3000);
  from = ct_tb_ms();
  close_bed(&b);
  assert_true(ct_tb_ms() - from < 1000);
}

/* ---- Freeing what is in use ---- */

static void free_while_running(struct bed *b) {
  const uint64_t from = ct_tb_ms();
  static const uint32_t widths[] = {20, 30, 5};
  static const float x[8 * 20] = {1, 2, 3};
  static const uint32_t labels[8] = {1, 2, 3};
  const struct ct_training training = {.batch = 8, .rates = {.lr = 0.1f}};
  ct_model *m;
  ct_batch *batch;
  struct ct_request request = {.queue = CT_TRAINING};
  struct ct_event r;
  /* Behind a job that does not end: a model's step and request, then both it and the job go. */
  assert_int_equal(ct_model_create(b->dev, widths, 2, 1, &m), CT_OK);
  assert_int_equal(ct_model_training(m, &training), CT_OK);
  assert_int_equal(ct_batch_create(m, &batch), CT_OK);
  assert_int_equal(ct_batch_write(batch, x, labels), CT_OK);
  assert_int_equal(ct_rows_create(m, 1, &request.rows), CT_OK);
  assert_int_equal(ct_rows_write(request.rows, 0, 1, x), CT_OK);
  assert_int_equal(ct_answers_create(m, 1, &request.answers), CT_OK);
  const uint64_t endless = submit_endless(b, CT_TRAINING), step = submit_step(m, batch);
  uint64_t answer;
  assert_int_equal(ct_model_infer_submit(m, &request, &answer), CT_OK);
  assert_int_equal(b->endless->jobs, 1);
  ct_program_free(b->endless); /* on the emulator, frozen, this cannot be waited for */
  b->endless = NULL;
  freeze(b, 0);
  ct_model_free(m);
  check_result(b, endless, CT_ERR_CANCELLED);
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(ct_reap(b->dev, &r, 2000), CT_OK);
    assert_true(r.tag == step || r.tag == answer);
    assert_true(r.error == CT_OK || r.error == CT_ERR_CANCELLED);
  }
  assert_int_equal(ct_outstanding(b->dev, CT_TRAINING), 0);
  assert_true(ct_tb_ms() - from < 3000);
  ct_rows_free(request.rows);
  ct_answers_free(request.answers);
  ct_batch_free(batch);
  check_result(b, submit_copy(b, CT_TRAINING, 5, CT_NO_CYCLE), CT_OK);
  assert_true(is_copied(b, 5));
  assert_int_equal(b->copy->jobs, 0);
}

/* ---- The file descriptor ---- */

static bool is_readable(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  assert_in_range(poll(&p, 1, 0), 0, 1);
  return p.revents & POLLIN;
}

static void poll_until_done(struct bed *b) {
  enum { JOBS = 20 };
  const int fd = ct_poll_fd(b->dev);
  int done = 0;
  assert_true(fd >= 0);
  assert_false(is_readable(fd));
  for (uint32_t i = 0; i < JOBS; ++i)
    submit_copy(b, (enum ct_queue)(i % 2), 1 + i, CT_NO_CYCLE);
  assert_int_equal(ct_poll_fd(b->dev), fd);
  while (is_readable(fd)) {
    struct ct_event r;
    const int err = ct_reap(b->dev, &r, CT_NO_WAIT);
    if (err == CT_ERR_TIMEOUT) continue;
    assert_int_equal(err, CT_OK);
    assert_int_equal(r.error, CT_OK);
    ++done;
  }
  assert_int_equal(done, JOBS);
  submit_copy(b, CT_TRAINING, 1, CT_NO_CYCLE);
  assert_true(is_readable(fd)); /* and it stays open until the device is closed */
}

/* ---- Arrivals ---- */

static void arrivals_are_open_loop(struct bed *b) {
  enum { JOBS = 12, GAP = 700 };
  uint64_t now = 0, tag[JOBS], last = 0;
  assert_int_equal(ct_now(b->dev, &now), CT_OK);
  for (uint32_t i = 0; i < JOBS; ++i)
    tag[i] = submit_copy(b, CT_INFERENCE, 1 + i, b->emu ? 5 + i : now + 1000 + (uint64_t)i * GAP);
  for (uint32_t i = 0; i < JOBS; ++i) {
    struct ct_event r;
    assert_int_equal(ct_wait(b->dev, tag[i], &r, 5000), CT_OK);
    assert_int_equal(r.version, 1 + i);
    if (b->emu) {
      assert_true(r.scheduled == 5 + i && r.arrive == CT_NO_CYCLE);
      continue;
    }
    assert_true(r.scheduled == now + 1000 + (uint64_t)i * GAP);
    assert_in_range(r.arrive, r.scheduled, r.scheduled + 16);
    assert_true(r.arrive <= r.start && r.start < r.end && r.end > last);
    last = r.end;
  }
}

/* ---- Closing ---- */

static void close_within_a_second(bool emu, int how) {
  struct bed b;
  open_bed(&b, emu);
  /* On the emulator a second step would end the first job. */
  for (int q = 0; q < (emu ? 1 : 2) && how > 0; ++q)
    submit_endless(&b, (enum ct_queue)q);
  if (how == 2) { /* as full as it gets */
    const struct ct_job job = {.program = b.copy};
    freeze(&b, 2);
    while (ct_submit(b.dev, CT_TRAINING, &job, NULL) == CT_OK) {
    }
    uint64_t now;
    assert_int_equal(ct_now(b.dev, &now), CT_OK);
    for (uint32_t i = 0; i < 200 && !emu; ++i)
      submit_copy(&b, CT_INFERENCE, 1, i % 2 ? now + i : UINT64_MAX / 2);
  }
  if (how == 3) { /* the memory does not answer any more */
    freeze(&b, 0);
    assert_int_equal(b.dev->plugin.ops->fault(b.dev->self, CT_FAULT_AXI_HANG, b.at), 0);
    submit_copy(&b, CT_INFERENCE, 1, CT_NO_CYCLE);
    submit_copy(&b, CT_TRAINING, 1, CT_NO_CYCLE);
    struct ct_event r;
    ct_reap(b.dev, &r, CT_NO_WAIT);
  }
  const uint64_t from = ct_tb_ms();
  ct_close(b.dev);
  const uint64_t took = ct_tb_ms() - from;
  if (took >= 1000) fail_msg("closing (%d) took %u ms", how, (unsigned)took);
  ct_program_free(b.copy);
  ct_program_free(b.endless);
}

static void closing_is_bounded(void **state) {
  (void)state;
  for (int emu = 0; emu < 2; ++emu)
    for (int how = 0; how < 4; ++how)
      close_within_a_second(emu, how);
}

/* ---- Works of several jobs ---- */

/* A work of copies to places of its own, of which one may be sent where nothing may be written. */
struct drawn {
  uint64_t tag;
  unsigned jobs, bad; /* bad = jobs: none */
  bool cancelled;
};

enum { WORKS = 12, MOST_JOBS = 5 };

static void submit_drawn(struct bed *b, enum ct_queue queue, unsigned i, struct drawn *d,
                         ct_rng *rng) {
  struct ct_job job[MOST_JOBS];
  memset(job, 0, sizeof job);
  d->jobs = 1 + ct_rng_below(rng, MOST_JOBS);
  d->bad = ct_rng_below(rng, 2) ? d->jobs : ct_rng_below(rng, d->jobs);
  for (unsigned k = 0; k < d->jobs; ++k) {
    const uint32_t place = (uint32_t)(b->at / UNIT) + 1 + (i % 12) * MOST_JOBS + k;
    job[k] = (struct ct_job){.program = b->copy,
                             .args = {(uint32_t)(b->at / UNIT), k == d->bad ? 0 : place},
                             .flags = ct_rng_below(rng, 2) ? CT_JOB_OVERLAP : 0,
                             .user = d};
  }
  const struct ct_work work = {
      .queue = queue, .kind = CT_EVENT_STEP, .job = job, .jobs = d->jobs, .cycle = CT_NO_CYCLE};
  assert_int_equal(ct_submit_work(b->dev, &work, &d->tag), CT_OK);
}

/* What the event says, and that nothing behind a failure has run. */
static void check_drawn(struct bed *b, unsigned i, const struct drawn *d,
                        const struct ct_event *e) {
  char place[MOST_JOBS][UNIT], text[UNIT];
  const uint64_t at = b->at + UNIT + (uint64_t)(i % 12) * sizeof place;
  assert_ptr_equal(e->user, d);
  assert_int_equal(e->kind, CT_EVENT_STEP);
  assert_int_equal(e->jobs, d->jobs);
  assert_int_equal(ct_mem_read(b->dev, b->at, text, sizeof text), CT_OK);
  assert_int_equal(ct_mem_read(b->dev, at, place, sizeof place), CT_OK);
  unsigned ran = 0;
  while (ran < d->jobs && memcmp(place[ran], text, UNIT) == 0)
    ++ran;
  for (unsigned k = ran; k < d->jobs; ++k)
    assert_memory_not_equal(place[k], text, UNIT);
  if (d->cancelled && e->error == CT_ERR_CANCELLED) {
    assert_true(ran <= d->bad);
    return;
  }
  assert_int_equal(ran, d->bad);
  assert_int_equal(e->error, d->bad < d->jobs ? CT_ERR_JOB : CT_OK);
  assert_int_equal(e->code, d->bad < d->jobs ? CT_DEV_DRAM_WRITE_WINDOW : CT_DEV_OK);
}

/* Works follow one another in both queues, some of them fail, some are cancelled: each has one
 * event, and none disturbs the next. */
static void works_are_one_thing(struct bed *b) {
  ct_rng rng = ct_rng_make(ct_tb_seed());
  for (unsigned round = 0; round < 8; ++round) {
    static const char zero[63 * UNIT];
    struct drawn drawn[WORKS];
    const enum ct_queue queue = ct_rng_below(&rng, 2) ? CT_TRAINING : CT_INFERENCE;
    memset(drawn, 0, sizeof drawn);
    assert_int_equal(ct_mem_write(b->dev, b->at + UNIT, zero, sizeof zero), CT_OK);
    for (unsigned i = 0; i < WORKS; ++i)
      submit_drawn(b, queue, i, &drawn[i], &rng);
    assert_int_equal(ct_outstanding(b->dev, queue), WORKS);
    for (unsigned i = 0; i < 3; ++i) {
      struct drawn *d = &drawn[ct_rng_below(&rng, WORKS)];
      d->cancelled = true;
      assert_int_equal(ct_cancel(b->dev, d->tag), CT_OK);
    }
    for (unsigned i = 0; i < WORKS; ++i) {
      struct ct_event e;
      assert_int_equal(ct_reap(b->dev, &e, 5000), CT_OK);
      check_drawn(b, i, &drawn[i], &e);
    }
    assert_int_equal(ct_outstanding(b->dev, queue), 0);
    const float two = 2, three = 3;
    float six = 0;
    assert_int_equal(ct_matmul(b->dev, queue, 1, 1, 1, &two, &three, &six, NULL), CT_OK);
  }
}

/* A work of `jobs` copies to the places from 1 on, of which the first runs `first`. */
static uint64_t submit_copies(struct bed *b, unsigned jobs, const ct_program *first) {
  struct ct_job job[MOST_JOBS];
  uint64_t tag = 0;
  memset(job, 0, sizeof job);
  for (unsigned k = 0; k < jobs; ++k)
    job[k] = (struct ct_job){.program = k ? b->copy : first,
                             .args = {(uint32_t)(b->at / UNIT), (uint32_t)(b->at / UNIT) + 1 + k}};
  const struct ct_work work = {
      .queue = CT_TRAINING, .kind = CT_EVENT_STEP, .job = job, .jobs = jobs, .cycle = CT_NO_CYCLE};
  assert_int_equal(ct_submit_work(b->dev, &work, &tag), CT_OK);
  return tag;
}

/* The first so many jobs of a cancelled work have run, and no other; all of them if it says that it
 * did well. */
static void check_cancelled(struct bed *b, uint64_t tag, unsigned jobs) {
  struct ct_event e = {.tag = 0};
  unsigned ran = 0;
  assert_int_equal(ct_wait(b->dev, tag, &e, 5000), CT_OK);
  while (ran < jobs && is_copied(b, 1 + ran))
    ++ran;
  for (unsigned k = ran; k < jobs; ++k)
    assert_false(is_copied(b, 1 + k));
  if (ran < jobs) assert_int_equal(e.error, CT_ERR_CANCELLED);
  assert_int_equal(e.code, e.error ? CT_DEV_CANCELLED : CT_DEV_OK);
}

/* The device goes on while a work is cancelled: on a way that takes as long as a job, every access
 * finds it in another state. */
static void cancels_on_a_slow_way(struct bed *b) {
  enum { ROUNDS = 300, LAG = 300 };
  static const char zero[63 * UNIT];
  ct_rng rng = ct_rng_make(ct_tb_seed());
  struct flaky way;
  flaky_begin(&way, b->dev);
  way.rng = ct_rng_make(ct_tb_seed());
  for (unsigned round = 0; round < ROUNDS; ++round) {
    const unsigned jobs = 1 + ct_rng_below(&rng, MOST_JOBS), others = ct_rng_below(&rng, 4);
    uint64_t other[4];
    assert_int_equal(ct_mem_write(b->dev, b->at + UNIT, zero, sizeof zero), CT_OK);
    for (unsigned i = 0; i < others; ++i)
      other[i] = submit_copy(b, CT_TRAINING, MOST_JOBS + 1, CT_NO_CYCLE);
    const uint64_t tag = submit_copies(b, jobs, b->copy);
    way.lag = ct_rng_below(&rng, LAG);
    assert_int_equal(ct_cancel(b->dev, tag), CT_OK);
    way.lag = 0;
    check_cancelled(b, tag, jobs);
    for (unsigned i = 0; i < others; ++i)
      check_result(b, other[i], CT_OK);
  }
  flaky_end(&way, b->dev);
}

/* A program goes of which the first job of a work is: what is behind it does not run either. */
static void free_a_program_of_a_work(struct bed *b) {
  struct ct_code code;
  ct_program *first;
  assert_int_equal(one_copy(1, 4096, &code, NULL), CT_OK);
  assert_int_equal(ct_code_load(b->dev, &code, &first), CT_OK);
  freeze(b, 2);
  const uint64_t tag = submit_copies(b, MOST_JOBS, first);
  ct_program_free(first);
  freeze(b, 0);
  check_cancelled(b, tag, MOST_JOBS);
}

/* A training step of several jobs whose first one fails: it says so, nothing is left over, and the
 * weights are what they were. */
static void a_failed_step_changes_nothing(struct bed *b) {
  static float before[LAYERS][NUMBERS], after[LAYERS][NUMBERS];
  ct_batch *batch;
  struct ct_event e;
  ct_model *m = model_of_several_jobs(b, &batch);
  read_model(m, before);
  assert_int_equal(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_READ,
                                             batch->frame.at.external[CT_MLP_X]),
                   0);
  assert_int_equal(ct_wait(b->dev, submit_step(m, batch), &e, 60000), CT_OK);
  assert_int_equal(e.error, CT_ERR_JOB);
  assert_int_equal(e.code, CT_DEV_AXI_READ);
  assert_int_equal(e.jobs, ct_network_stage_jobs(m->plan->step[CT_GRADIENTS_NONE], 0));
  assert_int_equal(ct_outstanding(b->dev, CT_TRAINING), 0);
  assert_int_equal(ct_reap(b->dev, &e, CT_NO_WAIT), CT_ERR_NOT_FOUND);
  read_model(m, after);
  assert_memory_equal(before, after, sizeof before);
  step_changes_it(b, m, batch, before);
  ct_model_free(m);
}

/* ---- Transfers of memory that fail ---- */

enum { ROUNDS = 60, SIDE = 20 };

/* What has been submitted and what has come of it. */
struct traffic {
  ct_device *dev;
  ct_rng rng;
  ct_model *model;
  ct_batch *batch;
  unsigned events, expected, refused;
  bool spoilt; /* the batch */
};

/* A call does well, says that the device failed, or finds a step in flight. */
static bool did(struct traffic *t, int err) {
  const bool busy = err == CT_ERR_BUSY && t->events < t->expected;
  if (err != CT_OK && err != CT_ERR_DEVICE && !busy) fail_msg("%d: %s", err, ct_last_error(t->dev));
  t->refused += err == CT_ERR_DEVICE;
  return err == CT_OK;
}

static void multiply_beside(struct bed *b, struct traffic *t, enum ct_queue queue) {
  float x[SIDE * SIDE] = {0}, y[SIDE * SIDE], z[SIDE * SIDE];
  for (int i = 0; i < SIDE; ++i)
    x[i * SIDE + i] = 1;
  for (int i = 0; i < SIDE * SIDE; ++i)
    y[i] = (float)ct_rng_below(&t->rng, 100);
  if (did(t, ct_matmul(b->dev, queue, SIDE, SIDE, SIDE, x, y, z, NULL)))
    assert_memory_equal(y, z, sizeof z);
}

static void transfer_beside(struct bed *b, struct traffic *t) {
  uint8_t wrote[3000], read[3000];
  uint64_t at;
  const size_t size = 1 + ct_rng_below(&t->rng, sizeof wrote);
  ct_rng_fill(&t->rng, wrote, sizeof wrote);
  assert_int_equal(ct_mem_alloc(b->dev, size, &at), CT_OK);
  if (did(t, ct_mem_write(b->dev, at, wrote, size)) && did(t, ct_mem_read(b->dev, at, read, size)))
    assert_memory_equal(wrote, read, size);
  assert_int_equal(ct_mem_free(b->dev, at), CT_OK);
}

static void write_beside(struct traffic *t) {
  static const float x[STEP_ROWS * WIDTH] = {0.5f, 0.25f};
  const uint32_t labels[STEP_ROWS] = {4, 3, 2, 1};
  const int err = ct_batch_write(t->batch, x, labels);
  if (err != CT_ERR_BUSY || t->events == t->expected) t->spoilt = !did(t, err);
}

static void act_beside(struct bed *b, struct traffic *t) {
  static float x[STEP_ROWS * WIDTH], y[NUMBERS];
  const enum ct_queue queue = ct_rng_below(&t->rng, 2) ? CT_TRAINING : CT_INFERENCE;
  const struct ct_job copy = {.program = b->copy,
                              .args = {(uint32_t)(b->at / UNIT), (uint32_t)(b->at / UNIT) + 1}};
  const struct ct_step step = {.batch = t->batch};
  uint64_t tag;
  int err;
  switch (ct_rng_below(&t->rng, 7)) {
    case 0:
      t->expected += did(t, ct_submit(b->dev, queue, &copy, &tag));
      break;
    case 1:
      err = ct_model_step_submit(t->model, &step, &tag);
      if (t->spoilt)
        assert_int_equal(err, CT_ERR_ARG); /* a batch that did not get through whole is none */
      else
        t->expected += did(t, err);
      break;
    case 2:
      multiply_beside(b, t, queue);
      break;
    case 3:
      did(t, ct_model_infer(t->model, NULL, x, 1, y));
      break;
    case 4:
      write_beside(t);
      break;
    case 5:
      did(t, ct_model_get(t->model, 0, y, NULL, NULL, NULL));
      break;
    default:
      transfer_beside(b, t);
  }
}

static void take_events(struct bed *b, struct traffic *t, int timeout_ms) {
  struct ct_event e;
  while (t->events < t->expected && ct_reap(b->dev, &e, timeout_ms) == CT_OK) {
    assert_int_equal(e.error, CT_OK);
    ++t->events;
  }
}

/* The way to device memory fails beside jobs of both queues, for a part of what goes over it. A
 * call that says it did well did; of what was submitted there is one event each; and nothing is
 * left of what was refused. */
static void transfers_that_fail(struct bed *b) {
  static float before[LAYERS][NUMBERS];
  struct traffic t = {.dev = b->dev, .rng = ct_rng_make(ct_tb_seed() + 5)};
  struct flaky way;
  t.model = model_of_several_jobs(b, &t.batch);
  flaky_begin(&way, b->dev);
  for (unsigned i = 0; i < ROUNDS; ++i) {
    way.mem_percent = i % 3 ? 10 * (i % 3) : 0;
    for (unsigned n = ct_rng_below(&t.rng, 6); n > 0; --n)
      act_beside(b, &t);
    take_events(b, &t, ct_rng_below(&t.rng, 2) ? CT_NO_WAIT : 1);
  }
  way.mem_percent = 0;
  take_events(b, &t, 60000);
  assert_int_equal(t.events, t.expected);
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE) + ct_outstanding(b->dev, CT_TRAINING), 0);
  assert_true(way.mem_failed > 10 && t.refused > 5 && t.expected > 5);
  multiply_beside(b, &t, CT_TRAINING);
  multiply_beside(b, &t, CT_INFERENCE);
  flaky_end(&way, b->dev);
  while (t.spoilt)
    write_beside(&t);
  read_model(t.model, before);
  step_changes_it(b, t.model, t.batch, before);
  ct_model_free(t.model);
}

/* ---- Versions ---- */

enum { IN = 24, OUT = 7, BATCH = 8 };

static void train(ct_model *m, int steps) {
  float x[BATCH * IN];
  uint32_t labels[BATCH];
  ct_rng rng = ct_rng_make(9);
  for (int i = 0; i < BATCH * IN; ++i)
    x[i] = (float)ct_rng_below(&rng, 100) * 0.01f;
  for (int i = 0; i < BATCH; ++i)
    labels[i] = ct_rng_below(&rng, OUT);
  for (int i = 0; i < steps; ++i)
    assert_int_equal(ct_model_step(m, x, labels, NULL), CT_OK);
}

static void versions_take_turns(struct bed *b) {
  enum { VERSIONS = 5, EACH = 3 };
  static const uint32_t widths[] = {IN, 30, OUT};
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.2f, .momentum = 0.5f}};
  float x[IN], want[VERSIONS][OUT], own[OUT], served[OUT];
  uint64_t tag[VERSIONS][EACH];
  ct_model *m;
  ct_rows *rows;
  ct_answers *answers;
  ct_weights *weights = NULL;
  assert_int_equal(ct_model_create(b->dev, widths, 2, 3, &m), CT_OK);
  assert_int_equal(ct_model_training(m, &training), CT_OK);
  for (int i = 0; i < IN; ++i)
    x[i] = (float)i * 0.03f;
  assert_int_equal(ct_rows_create(m, 1, &rows), CT_OK);
  assert_int_equal(ct_rows_write(rows, 0, 1, x), CT_OK);
  assert_int_equal(ct_answers_create(m, VERSIONS * EACH, &answers), CT_OK);
  for (uint32_t v = 0; v < VERSIONS; ++v) {
    train(m, 1);
    assert_int_equal(ct_model_infer(m, NULL, x, 1, want[v]), CT_OK);
    ct_weights_free(weights); /* whatever still reads them */
    assert_int_equal(ct_model_publish(m, &weights), CT_OK);
    for (uint32_t i = 0; i < EACH; ++i) {
      const struct ct_request request = {
          .weights = weights, .rows = rows, .answers = answers, .answer = (size_t)v * EACH + i};
      assert_int_equal(ct_model_infer_submit(m, &request, &tag[v][i]), CT_OK);
    }
  }
  train(m, 1);
  for (uint32_t v = 0; v < VERSIONS; ++v)
    for (uint32_t i = 0; i < EACH; ++i) {
      struct ct_event r;
      float got[OUT];
      assert_int_equal(ct_wait(b->dev, tag[v][i], &r, 5000), CT_OK);
      assert_true(r.error == CT_OK && r.version == v + 1);
      assert_int_equal(ct_answers_read(answers, (size_t)v * EACH + i, 1, got), CT_OK);
      ct_assert_same("answer", got, want[v], sizeof got);
    }
  assert_int_equal(ct_model_infer(m, NULL, x, 1, own), CT_OK);
  assert_int_equal(ct_model_infer(m, weights, x, 1, served), CT_OK);
  assert_memory_equal(served, want[VERSIONS - 1], sizeof served);
  assert_memory_not_equal(own, served, sizeof own);
  ct_weights_free(weights);
  ct_rows_free(rows);
  ct_answers_free(answers);
  ct_model_free(m);
}

/* ---- On both ---- */

static void on_both(void (*test)(struct bed *)) {
  for (int emu = 0; emu < 2; ++emu) {
    struct bed b;
    open_bed(&b, emu);
    test(&b);
    close_bed(&b);
  }
}

#define ON_BOTH(test)                           \
  static void test##_everywhere(void **state) { \
    (void)state;                                \
    on_both(test);                              \
  }

ON_BOTH(cancel_in_every_state)
ON_BOTH(cancel_a_step)
ON_BOTH(random_cancels)
ON_BOTH(doorbells_that_fail)
ON_BOTH(resets_behind_a_doorbell_that_fails)
ON_BOTH(pops_that_fail)
ON_BOTH(timeouts_leave_everything)
ON_BOTH(blocking_calls_give_up)
ON_BOTH(free_while_running)
ON_BOTH(poll_until_done)
ON_BOTH(arrivals_are_open_loop)
ON_BOTH(works_are_one_thing)
ON_BOTH(cancels_on_a_slow_way)
ON_BOTH(free_a_program_of_a_work)
ON_BOTH(a_failed_step_changes_nothing)
ON_BOTH(transfers_that_fail)
ON_BOTH(versions_take_turns)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cancel_in_every_state_everywhere),
      cmocka_unit_test(cancel_a_step_everywhere),
      cmocka_unit_test(random_cancels_everywhere),
      cmocka_unit_test(doorbells_that_fail_everywhere),
      cmocka_unit_test(resets_behind_a_doorbell_that_fails_everywhere),
      cmocka_unit_test(pops_that_fail_everywhere),
      cmocka_unit_test(timeouts_leave_everything_everywhere),
      cmocka_unit_test(blocking_calls_give_up_everywhere),
      cmocka_unit_test(a_dead_memory_is_no_trap),
      cmocka_unit_test(free_while_running_everywhere),
      cmocka_unit_test(poll_until_done_everywhere),
      cmocka_unit_test(arrivals_are_open_loop_everywhere),
      cmocka_unit_test(closing_is_bounded),
      cmocka_unit_test(works_are_one_thing_everywhere),
      cmocka_unit_test(cancels_on_a_slow_way_everywhere),
      cmocka_unit_test(free_a_program_of_a_work_everywhere),
      cmocka_unit_test(a_failed_step_changes_nothing_everywhere),
      cmocka_unit_test(transfers_that_fail_everywhere),
      cmocka_unit_test(versions_take_turns_everywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
