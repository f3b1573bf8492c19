/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights, batches, rows and answers while something in flight uses them, on emu: and sim:: what is
 * refused, what is ordered, that freeing is safe at any moment, and that device memory comes back
 * when the last user has gone, not before.
 *
 * The queues are held by jobs that do not end; on the emulator, which has no time, the device is
 * frozen.
 */
#include "ct_tb.h"

#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_cmd.h"
#include "ct_network.h"
#include "ct_queue.h"
#include "tiny_program.h"

enum { IN = 20, HIDDEN = 17, OUT = 5, BATCH = 4, ROWS = 20 };

static const uint32_t widths[] = {IN, HIDDEN, OUT};

struct bed {
  ct_device *dev;
  bool emu;
  ct_program *endless;
  ct_model *model;
  ct_batch *batch;
  ct_rows *rows;
  ct_answers *answers;
  float x[ROWS * IN];
  uint32_t labels[BATCH];
  uint64_t held[2]; /* tags of what holds the queues */
  uint64_t empty;   /* bytes of device memory in use before anything was made */
};

static void ok(struct bed *b, int err, const char *call) {
  if (err) fail_msg("%s: %d: %s", call, err, ct_last_error(b->dev));
}
#define OK(call) ok(b, call, #call)

static void refused(struct bed *b, int want, const char *part, int got, const char *call) {
  if (got != want) fail_msg("%s gave %d instead of %d: %s", call, got, want, ct_last_error(b->dev));
  if (!strstr(ct_last_error(b->dev), part))
    fail_msg("%s: \"%s\" does not speak of \"%s\"", call, ct_last_error(b->dev), part);
}
#define REFUSED(error, part, call) refused(b, error, part, call, #call)

/* Bytes of device memory that are allocated. */
static uint64_t used(const struct bed *b) {
  uint64_t sum = 0;
  for (const struct ct_heap_block *h = b->dev->data.first; h; h = h->next)
    sum += h->used ? h->size : 0;
  return sum;
}

static void open_bed(struct bed *b, bool emu) {
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.2f, .momentum = 0.5f}};
  *b = (struct bed){.emu = emu};
  if (ct_open(emu ? "emu:dram=32" : "sim:dram=32", &b->dev)) fail_msg("%s", ct_last_error(NULL));
  b->endless = tiny_program(b->dev, true);
  b->empty = used(b);
  for (int i = 0; i < ROWS * IN; ++i)
    b->x[i] = (float)(i * 5 % 17) * 0.1f - 0.6f;
  for (uint32_t i = 0; i < BATCH; ++i)
    b->labels[i] = i;
  OK(ct_model_create(b->dev, widths, 2, 3, &b->model));
  OK(ct_model_training(b->model, &training));
  OK(ct_batch_create(b->model, &b->batch));
  OK(ct_batch_write(b->batch, b->x, b->labels));
  OK(ct_rows_create(b->model, ROWS, &b->rows));
  OK(ct_rows_write(b->rows, 0, ROWS, b->x));
  OK(ct_answers_create(b->model, ROWS, &b->answers));
}

static void free_handles(struct bed *b) {
  ct_batch_free(b->batch);
  ct_rows_free(b->rows);
  ct_answers_free(b->answers);
  b->batch = NULL;
  b->rows = NULL;
  b->answers = NULL;
}

static void close_bed(struct bed *b) {
  free_handles(b);
  ct_model_free(b->model);
  assert_int_equal(used(b), b->empty);
  ct_program_free(b->endless);
  ct_close(b->dev);
}

/* ---- Holding a queue ----------------------------------------------------------------------- */

static void thaw(struct bed *b) {
  if (b->emu) OK(ct_reg_write(b->dev, CT_REG_CTRL, 0));
}

/* What is submitted from here on waits until let_go(). */
static void hold(struct bed *b) {
  for (int q = 0; q < 2; ++q)
    b->held[q] = tiny_hold(b->dev, (enum ct_queue)q, b->endless, b->emu);
}

/* Both are cancelled before the emulator goes on, or it would begin the second. */
static void let_go(struct bed *b) {
  for (int q = 0; q < 2; ++q)
    OK(ct_cancel(b->dev, b->held[q]));
  thaw(b);
  for (int q = 0; q < 2; ++q)
    OK(ct_wait(b->dev, b->held[q], NULL, 5000));
}

static struct ct_request request_for(struct bed *b, size_t row, size_t answer) {
  return (struct ct_request){.rows = b->rows, .answers = b->answers, .row = row, .answer = answer};
}

static void expect(struct bed *b, uint64_t tag, int error) {
  struct ct_event e;
  OK(ct_wait(b->dev, tag, &e, 5000));
  assert_int_equal(e.error, error);
}

static uint64_t submit_step(struct bed *b) {
  const struct ct_step step = {.batch = b->batch};
  uint64_t tag = 0;
  OK(ct_model_step_submit(b->model, &step, &tag));
  return tag;
}

static void weights_of(ct_model *m, float *w) {
  assert_int_equal(ct_model_get(m, 0, w, NULL, NULL, NULL), CT_OK);
}

/* ---- What is refused ----------------------------------------------------------------------- */

/* Live weights that a request of the inference queue reads, its rows and its answers. */
static void requests_in_flight(struct bed *b) {
  struct ct_request q = request_for(b, 2, 4), more = request_for(b, 1, 5);
  const struct ct_step step = {.batch = b->batch};
  float w[HIDDEN * IN], logits[2 * OUT];
  uint64_t tag = 0;
  q.count = 2;
  hold(b);
  OK(ct_model_infer_submit(b->model, &q, &tag));
  REFUSED(CT_ERR_BUSY, "a step would change", ct_model_step_submit(b->model, &step, NULL));
  REFUSED(CT_ERR_BUSY, "a step would change", ct_model_step(b->model, b->x, b->labels, NULL));
  REFUSED(CT_ERR_BUSY, "they can be set", ct_model_set(b->model, 0, w, NULL, NULL, NULL));
  REFUSED(CT_ERR_BUSY, "row 2 is being read", ct_rows_write(b->rows, 0, ROWS, b->x));
  REFUSED(CT_ERR_BUSY, "row 3 is being read", ct_rows_write(b->rows, 3, 1, b->x));
  REFUSED(CT_ERR_BUSY, "answer 4: its request is in flight",
          ct_answers_read(b->answers, 4, 2, logits));
  REFUSED(CT_ERR_BUSY, "answer 5 is awaited", ct_model_infer_submit(b->model, &more, NULL));
  OK(ct_rows_write(b->rows, 0, 2, b->x));
  OK(ct_rows_write(b->rows, 4, 1, b->x + 4 * IN));
  weights_of(b->model, w); /* nobody changes them */
  OK(ct_cancel(b->dev, tag));
  let_go(b);
  expect(b, tag, CT_ERR_CANCELLED);
  REFUSED(CT_ERR_CANCELLED, "answer 4: its request failed",
          ct_answers_read(b->answers, 4, 1, logits));
  /* The same again, to the end. */
  OK(ct_model_infer_submit(b->model, &q, &tag));
  expect(b, tag, CT_OK);
  OK(ct_answers_read(b->answers, 4, 2, logits));
  REFUSED(CT_ERR_ARG, "answer 6: no request", ct_answers_read(b->answers, 4, 3, logits));
  OK(ct_rows_write(b->rows, 2, 2, b->x));
}

/* What reads live weights in the order of the training queue: nobody sets them meanwhile, since an
 * answer and a version would have some of both. The host reads with it. */
static void readers_in_order(struct bed *b) {
  struct ct_request q = request_for(b, 2, 4);
  float w[HIDDEN * IN];
  ct_weights *version = NULL;
  q.queue = CT_TRAINING;
  for (unsigned i = 0; i < 2; ++i) {
    uint64_t tag = 0;
    hold(b);
    if (i)
      OK(ct_model_publish_submit(b->model, NULL, &version, &tag));
    else
      OK(ct_model_infer_submit(b->model, &q, &tag));
    weights_of(b->model, w);
    REFUSED(CT_ERR_BUSY, "they can be set", ct_model_set(b->model, 0, w, NULL, NULL, NULL));
    OK(ct_cancel(b->dev, tag));
    let_go(b);
    expect(b, tag, CT_ERR_CANCELLED);
    OK(ct_model_set(b->model, 0, w, NULL, NULL, NULL));
  }
  ct_weights_free(version);
}

/* A step and a version that wait: what each of them keeps others from. */
static void steps_in_flight(struct bed *b) {
  struct ct_request q = {.rows = b->rows, .answers = b->answers};
  float w[HIDDEN * IN], loss;
  uint8_t bytes[8192];
  ct_weights *later;
  ct_server *server = NULL;
  struct ct_weights_info info;
  uint64_t copy;
  hold(b);
  const uint64_t step = submit_step(b);
  OK(ct_model_publish_submit(b->model, &q, &later, &copy));
  OK(ct_weights_info(later, &info));
  assert_true(info.error == CT_ERR_BUSY && info.version == 1 && info.bytes <= sizeof bytes);
  REFUSED(CT_ERR_BUSY, "it can be written afterwards", ct_batch_write(b->batch, b->x, b->labels));
  REFUSED(CT_ERR_BUSY, "it can be read afterwards", ct_batch_loss(b->batch, &loss));
  REFUSED(CT_ERR_BUSY, "publish a version to be read", ct_model_infer_submit(b->model, &q, NULL));
  REFUSED(CT_ERR_BUSY, "it can be read when", ct_model_get(b->model, 0, w, NULL, NULL, NULL));
  REFUSED(CT_ERR_BUSY, "it can be saved when", ct_model_save(b->model, "/nowhere/at/all"));
  REFUSED(CT_ERR_BUSY, "it can be set when", ct_model_set(b->model, 0, w, NULL, NULL, NULL));
  REFUSED(CT_ERR_BUSY, "it can be read when",
          ct_weights_read(ct_model_weights(b->model), bytes, info.bytes));
  REFUSED(CT_ERR_BUSY, "not complete yet", ct_weights_read(later, bytes, info.bytes));
  REFUSED(CT_ERR_BUSY, "publish a version", ct_server_create(b->model, NULL, NULL, &server));
  REFUSED(CT_ERR_BUSY, "not complete yet", ct_server_create(b->model, later, NULL, &server));
  q.weights = later;
  REFUSED(CT_ERR_BUSY, "not complete yet", ct_model_infer_submit(b->model, &q, NULL));
  assert_null(server);
  OK(ct_cancel(b->dev, step));
  OK(ct_cancel(b->dev, copy));
  let_go(b);
  expect(b, step, CT_ERR_CANCELLED);
  expect(b, copy, CT_ERR_CANCELLED);
  REFUSED(CT_ERR_CANCELLED, "has no loss", ct_batch_loss(b->batch, &loss));
  REFUSED(CT_ERR_CANCELLED, "was never completed", ct_model_infer_submit(b->model, &q, NULL));
  REFUSED(CT_ERR_CANCELLED, "was never completed", ct_weights_read(later, bytes, info.bytes));
  ct_weights_free(later);
}

/* A server on live weights keeps steps off until it is freed, or serves others. */
static void served_weights_do_not_learn(struct bed *b) {
  const struct ct_step step = {.batch = b->batch};
  const struct ct_request q = {.rows = b->rows, .answers = b->answers};
  float want[OUT], got[OUT];
  ct_server *server;
  ct_weights *version;
  struct ct_event e;
  OK(ct_model_infer(b->model, NULL, b->x, 1, want));
  OK(ct_server_create(b->model, NULL, NULL, &server));
  REFUSED(CT_ERR_BUSY, "publish a version for them", ct_model_step_submit(b->model, &step, NULL));
  OK(ct_server_push(server, &q, NULL));
  OK(ct_reap(b->dev, &e, 5000));
  assert_true(e.error == CT_OK && e.version == 0);
  OK(ct_answers_read(b->answers, 0, 1, got));
  assert_memory_equal(got, want, sizeof got);
  OK(ct_model_publish(b->model, &version));
  OK(ct_server_set_weights(server, version));
  ct_weights_free(version); /* the server has it */
  expect(b, submit_step(b), CT_OK);
  OK(ct_server_push(server, &q, NULL));
  OK(ct_reap(b->dev, &e, 5000));
  assert_true(e.error == CT_OK && e.version == 1);
  OK(ct_answers_read(b->answers, 0, 1, got));
  assert_memory_equal(got, want, sizeof got);
  OK(ct_server_set_weights(server, NULL));
  REFUSED(CT_ERR_BUSY, "publish a version for them", ct_model_step_submit(b->model, &step, NULL));
  ct_server_free(server);
  expect(b, submit_step(b), CT_OK);
}

/* ---- What is ordered ----------------------------------------------------------------------- */

/* Live weights that are read on the training queue are those after the steps before, and a version
 * is of the moment it was submitted at: the same bits as with every step waited for. */
static void readers_are_behind_steps(struct bed *b) {
  enum { STEPS = 4 };
  float want[STEPS][OUT], got[OUT];
  struct bed twin;
  ct_weights *version[STEPS];
  uint64_t step[STEPS], answer[STEPS], copy[STEPS];
  open_bed(&twin, true);
  for (int i = 0; i < STEPS; ++i) {
    expect(&twin, submit_step(&twin), CT_OK);
    assert_int_equal(ct_model_infer(twin.model, NULL, b->x, 1, want[i]), CT_OK);
  }
  close_bed(&twin);
  hold(b);
  for (size_t i = 0; i < STEPS; ++i) {
    const struct ct_request q = {
        .rows = b->rows, .answers = b->answers, .answer = i, .queue = CT_TRAINING};
    step[i] = submit_step(b);
    OK(ct_model_infer_submit(b->model, &q, &answer[i]));
    OK(ct_model_publish_submit(b->model, NULL, &version[i], &copy[i]));
  }
  let_go(b);
  for (size_t i = 0; i < STEPS; ++i) {
    struct ct_event e;
    struct ct_weights_info info;
    expect(b, step[i], CT_OK);
    expect(b, answer[i], CT_OK);
    OK(ct_wait(b->dev, copy[i], &e, 5000));
    assert_true(e.error == CT_OK && e.kind == CT_EVENT_PUBLISH && e.version == i + 1);
    OK(ct_weights_info(version[i], &info));
    assert_true(info.error == CT_OK && info.version == i + 1 && info.steps == i + 1);
    OK(ct_answers_read(b->answers, i, 1, got));
    ct_assert_same("an answer behind steps", got, want[i], sizeof got);
    OK(ct_model_infer(b->model, version[i], b->x, 1, got));
    ct_assert_same("a version's answer", got, want[i], sizeof got);
  }
  /* The call that blocks is behind them, too. */
  const uint64_t last = submit_step(b);
  OK(ct_model_infer(b->model, NULL, b->x, 1, got));
  assert_memory_not_equal(got, want[STEPS - 1], sizeof got);
  expect(b, last, CT_OK);
  for (int i = 0; i < STEPS; ++i)
    ct_weights_free(version[i]);
}

/* ---- Freeing ------------------------------------------------------------------------------- */

static uint64_t taken(uint64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/* Handles that are freed while work is in flight: their memory stays as long as that, and no
 * longer. */
static void memory_stays_for_its_users(struct bed *b) {
  const struct ct_request q = request_for(b, 0, 0);
  struct ct_request on_version = request_for(b, 1, 1);
  ct_weights *version, *copied;
  uint64_t tag[4];
  OK(ct_model_publish(b->model, &version));
  on_version.weights = version;
  hold(b);
  OK(ct_model_infer_submit(b->model, &on_version, &tag[0]));
  tag[1] = submit_step(b);
  OK(ct_model_publish_submit(b->model, NULL, &copied, &tag[2]));
  const struct ct_request behind = {.rows = q.rows, .answers = q.answers, .queue = CT_TRAINING};
  OK(ct_model_infer_submit(b->model, &behind, &tag[3]));
  const uint64_t before = used(b);
  ct_weights_free(version);
  ct_weights_free(copied);
  free_handles(b);
  assert_int_equal(used(b), before);
  for (int i = 0; i < 4; ++i)
    OK(ct_cancel(b->dev, tag[i]));
  let_go(b);
  for (int i = 0; i < 4; ++i)
    expect(b, tag[i], CT_ERR_CANCELLED);
  const uint64_t image = taken(ct_image_bytes(&b->model->net)),
                 state = taken((uint64_t)ct_mlp_state_units(&b->model->net) * CT_UNIT);
  assert_int_equal(used(b), b->empty + image + state);
}

/* The model goes while all that is in flight; what cannot be ended keeps what it uses. */
static void a_model_goes_in_flight(struct bed *b) {
  struct ct_request request = request_for(b, 0, 0);
  ct_weights *version, *copied;
  uint64_t tag[3];
  OK(ct_model_publish(b->model, &version));
  request.weights = version;
  hold(b);
  OK(ct_model_infer_submit(b->model, &request, &tag[0]));
  tag[1] = submit_step(b);
  OK(ct_model_publish_submit(b->model, NULL, &copied, &tag[2]));
  const uint64_t before = used(b);
  ct_program_free(b->endless); /* so that the others can be ended; not on the emulator */
  ct_model_free(b->model);
  b->model = NULL;
  if (b->emu) assert_int_equal(used(b), before);
  thaw(b);
  for (int i = 0; i < 3; ++i) {
    struct ct_event e;
    OK(ct_wait(b->dev, tag[i], &e, 5000));
    assert_true(e.error == CT_ERR_CANCELLED || (!b->emu && !e.error));
  }
  for (int q = 0; q < 2; ++q)
    expect(b, b->held[q], CT_ERR_CANCELLED);
  free_handles(b);
  ct_weights_free(copied);
  assert_int_equal(used(b), b->empty + taken(ct_image_bytes(&version->net)));
  ct_weights_free(version);
  b->endless = tiny_program(b->dev, true);
}

/* The device goes first. */
static void the_device_goes_in_flight(struct bed *b) {
  const struct ct_request q = request_for(b, 0, 0);
  struct ct_request on_version = request_for(b, 1, 1);
  ct_weights *version, *copied;
  ct_server *server;
  OK(ct_model_publish(b->model, &version));
  OK(ct_server_create(b->model, version, NULL, &server));
  on_version.weights = version;
  hold(b);
  OK(ct_model_infer_submit(b->model, &on_version, NULL));
  (void)submit_step(b);
  OK(ct_model_publish_submit(b->model, NULL, &copied, NULL));
  struct ct_request pushed = q;
  pushed.answer = 7;
  OK(ct_server_push(server, &pushed, NULL));
  if (b->emu) ct_weights_free(version);
  ct_close(b->dev);
  REFUSED(CT_ERR_CLOSED, "is closed", ct_batch_write(b->batch, b->x, b->labels));
  REFUSED(CT_ERR_CLOSED, "is closed", ct_rows_write(b->rows, 0, 1, b->x));
  REFUSED(CT_ERR_CLOSED, "is closed", ct_weights_info(copied, &(struct ct_weights_info){0}));
  free_handles(b);
  if (!b->emu) ct_weights_free(version);
  ct_weights_free(copied);
  if (b->emu) ct_server_free(server);
  ct_model_free(b->model);
  if (!b->emu) ct_server_free(server);
  ct_program_free(b->endless);
  open_bed(b, b->emu);
}

/* ---- Models that only serve ---------------------------------------------------------------- */

/* Without training a model has an image in device memory and nothing else, and gradients only where
 * they were asked for; its numbers are there all the same, before and after it is prepared. */
static void serving_costs_an_image(struct bed *b) {
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f}};
  float w[2][HIDDEN * IN], bias[2][HIDDEN], logits[2][OUT];
  const uint64_t before = used(b);
  ct_model *m;
  OK(ct_model_create(b->dev, widths, 2, 5, &m));
  const uint64_t image = taken(ct_image_bytes(&m->net));
  assert_int_equal(used(b) - before, image);
  for (int i = 0; i < HIDDEN; ++i)
    bias[0][i] = (float)i * 0.01f;
  weights_of(m, w[0]);
  OK(ct_model_set(m, 0, NULL, bias[0], NULL, NULL));
  OK(ct_model_infer(m, NULL, b->x, 1, logits[0]));
  OK(ct_model_training(m, &training));
  assert_int_equal(used(b) - before,
                   image + taken((uint64_t)ct_mlp_state_units(&m->net) * CT_UNIT));
  struct ct_training with = training;
  with.gradients = true;
  OK(ct_model_training(m, &with));
  OK(ct_model_training(m, &training));
  assert_int_equal(used(b) - before, image +
                                         taken((uint64_t)ct_mlp_state_units(&m->net) * CT_UNIT) +
                                         taken((uint64_t)ct_mlp_gradient_units(&m->net) * CT_UNIT));
  OK(ct_model_get(m, 0, w[1], bias[1], NULL, NULL));
  assert_memory_equal(w[0], w[1], sizeof w[0]);
  assert_memory_equal(bias[0], bias[1], sizeof bias[0]);
  OK(ct_model_infer(m, NULL, b->x, 1, logits[1]));
  assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
  ct_model_free(m);
  assert_int_equal(used(b), before);
}

/* No room for what training needs: the model goes on answering, and can be prepared later. */
static void preparing_without_room(struct bed *b) {
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f}};
  uint64_t most = ct_heap_largest(&b->dev->data), rest = 0;
  float logits[2][OUT];
  ct_model *m;
  OK(ct_model_create(b->dev, widths, 2, 5, &m));
  OK(ct_model_infer(m, NULL, b->x, 1, logits[0]));
  most = ct_heap_largest(&b->dev->data);
  OK(ct_mem_alloc(b->dev, most - 2048, &rest));
  REFUSED(CT_ERR_NO_SPACE, "no room for", ct_model_training(m, &training));
  REFUSED(CT_ERR_ARG, "not been prepared", ct_model_step(m, b->x, b->labels, NULL));
  OK(ct_model_infer(m, NULL, b->x, 1, logits[1]));
  assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
  OK(ct_mem_free(b->dev, rest));
  OK(ct_model_training(m, &training));
  struct ct_training with = training;
  with.gradients = true;
  most = ct_heap_largest(&b->dev->data);
  OK(ct_mem_alloc(b->dev, most - 2048, &rest));
  REFUSED(CT_ERR_NO_SPACE, "no room for", ct_model_training(m, &with));
  REFUSED(CT_ERR_ARG, "prepared for gradients", ct_model_apply(m, NULL));
  OK(ct_mem_free(b->dev, rest));
  OK(ct_model_training(m, &with));
  OK(ct_model_step(m, b->x, b->labels, NULL));
  ct_model_free(m);
}

/* A version goes from one device to another and answers there with the same bits. */
static void versions_travel(struct bed *b) {
  float want[OUT], got[OUT];
  struct ct_weights_info info;
  struct bed there;
  ct_weights *here_version, *there_version;
  open_bed(&there, !b->emu);
  for (int i = 0; i < 3; ++i)
    expect(b, submit_step(b), CT_OK);
  OK(ct_model_publish(b->model, &here_version));
  OK(ct_model_infer(b->model, here_version, b->x, 1, want));
  OK(ct_weights_info(here_version, &info));
  void *bytes = test_malloc(info.bytes);
  OK(ct_weights_read(here_version, bytes, info.bytes));
  assert_int_equal(ct_weights_load(there.model, bytes, info.bytes, &there_version), CT_OK);
  test_free(bytes);
  assert_int_equal(ct_model_infer(there.model, there_version, b->x, 1, got), CT_OK);
  ct_assert_same("an answer elsewhere", got, want, sizeof got);
  REFUSED(CT_ERR_ARG, "another device", ct_model_infer(b->model, there_version, b->x, 1, got));
  ct_weights_free(here_version);
  ct_weights_free(there_version);
  close_bed(&there);
}

/* ---- Everything at random ------------------------------------------------------------------ */

/* Steps, versions and requests by them, freed, cancelled and reaped in any order: every answer that
 * comes is its version's, and in the end all memory is there again. */
enum { VERSIONS = 5, ACTIONS = 400, KNOWN = 64 };

struct known {
  ct_weights *weights; /* NULL: freed */
  bool ready;          /* its event was reaped, and was good */
  uint32_t number;
};

struct play {
  struct known version[VERSIONS];
  uint64_t steps;         /* submitted, all of which do well */
  float (*want)[OUT];     /* after so many steps, for row 0 */
  uint64_t of[KNOWN * 4]; /* steps of version number */
  uint64_t answer_tag[ROWS];
  uint32_t answer_version[ROWS];
  unsigned checked;
};

static void play_event(struct bed *b, struct play *p, const struct ct_event *e) {
  if (e->kind == CT_EVENT_PUBLISH) {
    struct known *k = e->user;
    if (k->weights && k->number == e->version) k->ready = e->error == CT_OK;
  }
  if (e->kind == CT_EVENT_ANSWER) {
    const size_t i = (size_t)((uint64_t *)e->user - p->answer_tag);
    float got[OUT];
    assert_true(p->answer_tag[i] == e->tag);
    p->answer_tag[i] = 0;
    if (e->error) return;
    assert_int_equal(e->version, p->answer_version[i]);
    OK(ct_answers_read(b->answers, i, 1, got));
    ct_assert_same("an answer", got, p->want[p->of[e->version]], sizeof got);
    ++p->checked;
  }
  if (e->kind == CT_EVENT_STEP) assert_int_equal(e->error, CT_OK);
}

static void play_request(struct bed *b, struct play *p, ct_rng *rng, const struct known *k) {
  const size_t i = ct_rng_below(rng, ROWS);
  struct ct_request q = {.rows = b->rows,
                         .answers = b->answers,
                         .answer = i,
                         .weights = k->weights,
                         .queue = (enum ct_queue)ct_rng_below(rng, 2),
                         .user = &p->answer_tag[i]};
  uint64_t tag = 0;
  if (p->answer_tag[i]) return; /* it may have been answered, but nobody has read it */
  OK(ct_model_infer_submit(b->model, &q, &tag));
  p->answer_tag[i] = tag;
  p->answer_version[i] = k->number;
  if (ct_rng_below(rng, 8) == 0) OK(ct_cancel(b->dev, tag));
}

static void play_version(struct bed *b, struct play *p, ct_rng *rng, struct known *k) {
  struct ct_weights_info info;
  if (!k->weights) {
    *k = (struct known){.ready = false};
    OK(ct_model_publish_submit(b->model, k, &k->weights, NULL));
    OK(ct_weights_info(k->weights, &info));
    assert_true(info.version < KNOWN * 4);
    k->number = info.version;
    p->of[info.version] = p->steps;
  } else if (ct_rng_below(rng, 8)) {
    if (k->ready) play_request(b, p, rng, k);
  } else {
    ct_weights_free(k->weights);
    k->weights = NULL;
  }
}

static void play_reap(struct bed *b, struct play *p, int timeout_ms) {
  struct ct_event e;
  while (!ct_reap(b->dev, &e, timeout_ms))
    play_event(b, p, &e);
}

/* What the model answers after each number of steps. */
static void learn_alone(const struct bed *b, struct play *p, int steps) {
  struct bed twin;
  open_bed(&twin, true);
  for (int i = 0; i <= steps; ++i) {
    if (i) expect(&twin, submit_step(&twin), CT_OK);
    assert_int_equal(ct_model_infer(twin.model, NULL, b->x, 1, p->want[i]), CT_OK);
  }
  close_bed(&twin);
}

static void anything_goes(struct bed *b) {
  ct_rng rng = ct_rng_make(b->emu ? 21 : 22);
  struct play *p = test_calloc(1, sizeof *p);
  p->want = test_calloc(KNOWN + 1, sizeof *p->want);
  learn_alone(b, p, KNOWN);
  const uint64_t before = used(b);
  for (int i = 0; i < ACTIONS; ++i) {
    const uint32_t what = ct_rng_below(&rng, 10);
    if (what == 0 && p->steps < KNOWN) {
      (void)submit_step(b);
      ++p->steps;
    } else if (what < 8) {
      play_version(b, p, &rng, &p->version[ct_rng_below(&rng, VERSIONS)]);
    } else {
      play_reap(b, p, b->emu || ct_rng_below(&rng, 2) ? CT_NO_WAIT : 20);
    }
  }
  for (int i = 0; i < VERSIONS; ++i)
    ct_weights_free(p->version[i].weights);
  while (ct_outstanding(b->dev, CT_INFERENCE) + ct_outstanding(b->dev, CT_TRAINING))
    play_reap(b, p, 5000);
  assert_int_equal(used(b), before);
  print_message("%u answers of versions of %llu steps\n", p->checked, (unsigned long long)p->steps);
  assert_true(p->checked > 3);
  test_free(p->want);
  test_free(p);
}

/* ---- On both ------------------------------------------------------------------------------- */

static void on_both(void (*test)(struct bed *)) {
  for (int emu = 0; emu < 2; ++emu) {
    struct bed b;
    open_bed(&b, emu);
    test(&b);
    assert_int_equal(ct_outstanding(b.dev, CT_TRAINING), 0);
    assert_int_equal(ct_outstanding(b.dev, CT_INFERENCE), 0);
    close_bed(&b);
  }
}

#define ON_BOTH(test)                           \
  static void test##_everywhere(void **state) { \
    (void)state;                                \
    on_both(test);                              \
  }

ON_BOTH(requests_in_flight)
ON_BOTH(readers_in_order)
ON_BOTH(steps_in_flight)
ON_BOTH(served_weights_do_not_learn)
ON_BOTH(readers_are_behind_steps)
ON_BOTH(memory_stays_for_its_users)
ON_BOTH(a_model_goes_in_flight)
ON_BOTH(the_device_goes_in_flight)
ON_BOTH(serving_costs_an_image)
ON_BOTH(preparing_without_room)
ON_BOTH(versions_travel)
ON_BOTH(anything_goes)

/* ---- Freed handles -------------------------------------------------------------------------- */

/* The last that a caller had are known to be freed: what a model has inside takes no place there.
 * (To free the batch again would read memory that is gone where this fails.) */
static void freed_before_its_model(void **state) {
  (void)state;
  struct bed own, *b = &own;
  ct_model *model;
  ct_batch *batch;
  float logits[3 * OUT];
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.2f}, .gradients = true};
  open_bed(b, true);
  OK(ct_model_create(b->dev, widths, 2, 3, &model));
  OK(ct_model_training(model, &training));
  for (size_t rows = 1; rows <= 3; ++rows)
    OK(ct_model_infer(model, NULL, b->x, rows, logits));
  OK(ct_batch_create(model, &batch));
  ct_batch_free(batch);
  ct_model_free(model);
  bool known = false;
  for (size_t i = 0; i < CT_GRAVES; ++i)
    known |= b->dev->grave[i] == &batch->frame.handle;
  assert_true(known);
  ct_batch_free(batch);
  assert_non_null(strstr(ct_last_error(b->dev), "the batch was freed before"));
  free_handles(b);
  ct_model_free(b->model);
  ct_program_free(b->endless);
  ct_close(b->dev);
}

/* A batch outlives its model: it can be written, and says what its last step has left. */
static void a_batch_without_its_model(void **state) {
  (void)state;
  struct bed own, *b = &own;
  float before, after;
  open_bed(b, true);
  expect(b, submit_step(b), CT_OK);
  OK(ct_batch_loss(b->batch, &before));
  ct_model_free(b->model);
  OK(ct_batch_write(b->batch, b->x, b->labels));
  OK(ct_batch_loss(b->batch, &after));
  assert_memory_equal(&before, &after, sizeof before);
  free_handles(b);
  assert_int_equal(used(b), b->empty);
  ct_program_free(b->endless);
  ct_close(b->dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(requests_in_flight_everywhere),
      cmocka_unit_test(readers_in_order_everywhere),
      cmocka_unit_test(steps_in_flight_everywhere),
      cmocka_unit_test(served_weights_do_not_learn_everywhere),
      cmocka_unit_test(readers_are_behind_steps_everywhere),
      cmocka_unit_test(memory_stays_for_its_users_everywhere),
      cmocka_unit_test(a_model_goes_in_flight_everywhere),
      cmocka_unit_test(the_device_goes_in_flight_everywhere),
      cmocka_unit_test(serving_costs_an_image_everywhere),
      cmocka_unit_test(preparing_without_room_everywhere),
      cmocka_unit_test(versions_travel_everywhere),
      cmocka_unit_test(anything_goes_everywhere),
      cmocka_unit_test(freed_before_its_model),
      cmocka_unit_test(a_batch_without_its_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
