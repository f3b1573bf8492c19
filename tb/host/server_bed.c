/* SPDX-License-Identifier: Apache-2.0 */
#include "server_bed.h"

#include <poll.h>
#include <string.h>

static const uint32_t widths[BED_MODELS][4] = {
    {64, 40, 24, 10}, {BED_IN_MOST, 33, 20, 7}, {17, 16, 30, 24}};

void bed_ok(struct bed *b, int err, const char *call) {
  if (err) fail_msg("%s: %d: %s", call, err, ct_last_error(b->dev));
}

/* ---- Setting up ---- */

void bed_draw_weights(struct bed *b, struct served *s) {
  enum { MOST = BED_IN_MOST * 40 };
  float *w = test_malloc(MOST * sizeof *w);
  for (uint32_t l = 0; l < 3; ++l) {
    const size_t n = (size_t)widths[s - b->served][l] * widths[s - b->served][l + 1];
    assert_true(n <= MOST);
    for (size_t i = 0; i < n; ++i)
      w[i] = ((float)ct_rng_below(&b->rng, 2001) - 1000.0f) * 0.0004f;
    OK(ct_model_set(s->model, l, w, NULL, NULL, NULL));
  }
  test_free(w);
}

int bed_publish(struct bed *b, struct served *s) {
  struct ct_weights_info info;
  ct_weights *weights;
  OK(ct_model_publish(s->model, &weights));
  const int err = s->server ? ct_server_set_weights(s->server, weights) : CT_OK;
  if (err) {
    ct_weights_free(weights); /* the server has it as long as batches may use it */
    return err;
  }
  OK(ct_weights_info(weights, &info));
  s->version = info.version;
  ct_weights_free(s->weights);
  s->weights = weights;
  return CT_OK;
}

void bed_next_version(struct bed *b, struct served *s) {
  bed_draw_weights(b, s);
  assert_true(s->version + 1 < BED_VERSIONS);
  OK(bed_publish(b, s));
  for (size_t i = 0; i < BED_SAMPLES; ++i)
    OK(ct_model_infer(s->model, s->weights, s->x[i], 1, s->want[s->version][i]));
}

static void open_served(struct bed *b, struct served *s) {
  const uint32_t *width = widths[s - b->served];
  s->in = width[0];
  s->out = width[3];
  OK(ct_model_create(b->dev, width, 3, 5, &s->model));
  OK(ct_rows_create(s->model, BED_SAMPLES, &s->rows));
  OK(ct_answers_create(s->model, BED_PLACES, &s->answers));
  for (size_t i = 0; i < BED_SAMPLES; ++i) {
    for (size_t k = 0; k < s->in; ++k)
      s->x[i][k] = (float)ct_rng_below(&b->rng, 1000) * 0.001f - 0.3f;
    OK(ct_rows_write(s->rows, i, 1, s->x[i]));
  }
  bed_next_version(b, s);
}

uint64_t bed_row_at(const struct served *s, size_t sample) {
  return s->rows->at + sample * s->rows->pitch;
}

struct bed *bed_open(const char *uri) {
  struct ct_info info;
  struct bed *b = test_calloc(1, sizeof *b);
  b->rng = ct_rng_make(1);
  if (ct_open(uri, &b->dev)) fail_msg("%s", ct_last_error(NULL));
  OK(ct_info(b->dev, &info));
  assert_true(info.features & CT_FEATURE_REQUESTS);
  b->emu = !info.has_clock;
  for (int i = 0; i < BED_MODELS; ++i)
    open_served(b, &b->served[i]);
  return b;
}

void bed_free_handles(struct served *s) {
  ct_weights_free(s->weights);
  ct_rows_free(s->rows);
  ct_answers_free(s->answers);
  s->weights = NULL;
  s->rows = NULL;
  s->answers = NULL;
}

void bed_close(struct bed *b) {
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 0);
  for (int i = 0; i < BED_MODELS; ++i) {
    if (i % 2) ct_server_free(b->served[i].server);
    ct_model_free(b->served[i].model);
    if (!(i % 2)) ct_server_free(b->served[i].server);
    bed_free_handles(&b->served[i]);
  }
  ct_close(b->dev);
  test_free(b);
}

void bed_serve(struct bed *b, int i, const struct ct_serving *how) {
  OK(ct_server_create(b->served[i].model, b->served[i].weights, how, &b->served[i].server));
}

/* ---- Requests ---- */

struct ct_request bed_request(struct bed *b, struct ask *a) {
  struct served *s = a->served;
  (void)b;
  do
    s->next = (s->next + 1) % BED_PLACES;
  while (s->answers->state[s->next] == CT_ANSWER_AWAITED);
  a->place = s->next;
  return (struct ct_request){
      .rows = s->rows, .row = a->sample, .answers = s->answers, .answer = a->place, .user = a};
}

void bed_push(struct bed *b, struct ask *a, uint32_t deadline, uint64_t cycle) {
  struct ct_request r = bed_request(b, a);
  r.deadline = deadline;
  r.cycle = cycle == CT_NO_CYCLE ? 0 : cycle;
  a->busy = true;
  a->deadline = deadline;
  a->first_version = a->served->version;
  OK(ct_server_push(a->served->server, &r, &a->tag));
}

/* Whether it was in time, from its times. */
static enum ct_met bed_met(const struct bed *b, const struct ask *a, const struct ct_event *r) {
  if (!a->deadline) {
    assert_true(r->deadline == CT_NO_CYCLE);
    return CT_MET_YES;
  }
  if (b->emu) {
    assert_true(r->deadline == CT_NO_CYCLE);
    return CT_MET_UNKNOWN;
  }
  assert_true(r->deadline == r->arrive + a->deadline);
  return r->end <= r->deadline ? CT_MET_YES : CT_MET_NO;
}

void bed_check(struct bed *b, const struct ct_event *r) {
  struct ask *a = r->user;
  float got[BED_OUT_MOST];
  assert_true(a->busy && r->tag == a->tag && r->server == a->served->server);
  if (r->error) fail_msg("a request failed: %s", ct_code_name(r->code));
  assert_int_equal(r->met, bed_met(b, a, r));
  assert_in_range(r->batch, 1, CT_BATCH_MAX);
  assert_in_range(r->version, a->first_version, a->served->version);
  OK(ct_answers_read(a->served->answers, a->place, 1, got));
  ct_assert_same("answer", got, a->served->want[r->version][a->sample],
                 a->served->out * sizeof *got);
  a->busy = false;
}

void bed_freeze(struct bed *b, bool frozen) {
  OK(ct_reg_write(b->dev, CT_REG_CTRL, frozen ? 2 : 0));
}

struct ct_event bed_reap(struct bed *b, const struct ask *a) {
  struct ct_event r;
  OK(ct_reap(b->dev, &r, 5000));
  assert_true(r.user == a && r.tag == a->tag);
  return r;
}

bool bed_is_readable(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  assert_in_range(poll(&p, 1, 0), 0, 1);
  return p.revents & POLLIN;
}

/* ---- Training beside it ---- */

static const uint32_t trained_widths[] = {BED_TRAINED, 17, 5};

void bed_training_open(ct_device *dev, struct bed_training *t) {
  const struct ct_training how = {.batch = BED_BATCH, .rates = {.lr = 0.2f, .momentum = 0.5f}};
  *t = (struct bed_training){.steps = 0};
  assert_int_equal(ct_model_create(dev, trained_widths, 2, 3, &t->model), CT_OK);
  assert_int_equal(ct_model_training(t->model, &how), CT_OK);
}

void bed_train(struct bed_training *t) {
  float x[BED_BATCH * BED_TRAINED];
  uint32_t labels[BED_BATCH];
  for (unsigned i = 0; i < BED_BATCH * BED_TRAINED; ++i)
    x[i] = (float)((i * (t->steps + 3)) % 11) * 0.1f;
  for (unsigned i = 0; i < BED_BATCH; ++i)
    labels[i] = (i + t->steps) % 5;
  assert_int_equal(ct_model_step(t->model, x, labels, NULL), CT_OK);
  ++t->steps;
}

void bed_check_training(const struct bed_training *t) {
  float w[2][BED_TRAINED * 17];
  struct bed_training alone;
  ct_device *emu;
  assert_int_equal(ct_open("emu:dram=32", &emu), CT_OK);
  bed_training_open(emu, &alone);
  while (alone.steps < t->steps)
    bed_train(&alone);
  assert_int_equal(ct_model_get(t->model, 0, w[0], NULL, NULL, NULL), CT_OK);
  assert_int_equal(ct_model_get(alone.model, 0, w[1], NULL, NULL, NULL), CT_OK);
  ct_assert_same("trained weights", w[0], w[1], sizeof w[0]);
  ct_model_free(alone.model);
  ct_close(emu);
}
