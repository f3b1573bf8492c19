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

void bed_next_version(struct bed *b, struct served *s) {
  bed_draw_weights(b, s);
  assert_true(s->version + 1 < BED_VERSIONS);
  OK(ct_model_serve(s->model, &s->version));
  for (size_t i = 0; i < BED_SAMPLES; ++i)
    OK(ct_model_infer(s->model, CT_IMAGE_SERVED, s->x[i], 1, s->want[s->version][i]));
}

static void open_served(struct bed *b, struct served *s) {
  const uint32_t *width = widths[s - b->served];
  uint8_t row[2 * BED_IN_MOST];
  s->in = width[0];
  s->out = width[3];
  OK(ct_model_create(b->dev, width, 3, 5, &s->model));
  s->row_size = ct_pack_row_size(s->in);
  s->answer_size = ct_model_answer_size(s->model);
  assert_true(s->row_size <= sizeof row && s->row_size % 16 == 0);
  OK(ct_mem_alloc(b->dev, BED_SAMPLES * s->row_size, &s->rows));
  for (size_t i = 0; i < BED_SAMPLES; ++i) {
    for (size_t k = 0; k < s->in; ++k)
      s->x[i][k] = (float)ct_rng_below(&b->rng, 1000) * 0.001f - 0.3f;
    assert_int_equal(ct_pack_row(s->x[i], s->in, row), CT_OK);
    OK(ct_mem_write(b->dev, s->rows + i * s->row_size, row, s->row_size));
  }
  bed_next_version(b, s);
}

struct bed *bed_open(const char *uri) {
  struct ct_info info;
  struct bed *b = test_calloc(1, sizeof *b);
  b->rng = ct_rng_make(1);
  if (ct_open(uri, &b->dev)) fail_msg("%s", ct_last_error(NULL));
  OK(ct_info(b->dev, &info));
  assert_true(info.features & CT_FEATURE_REQUESTS);
  b->emu = !info.has_clock;
  OK(ct_mem_alloc(b->dev, (uint64_t)BED_PLACES * BED_OUT_MOST * sizeof(float), &b->out));
  for (int i = 0; i < BED_MODELS; ++i)
    open_served(b, &b->served[i]);
  return b;
}

void bed_close(struct bed *b) {
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 0);
  for (int i = 0; i < BED_MODELS; ++i) {
    if (i % 2) ct_server_free(b->served[i].server);
    ct_model_free(b->served[i].model);
    if (!(i % 2)) ct_server_free(b->served[i].server);
  }
  ct_close(b->dev);
  test_free(b);
}

void bed_serve(struct bed *b, int i, const struct ct_serving *how) {
  OK(ct_server_create(b->served[i].model, how, &b->served[i].server));
}

/* ---- Requests ---- */

struct ct_request bed_request(struct bed *b, struct ask *a) {
  return (struct ct_request){.input = a->served->rows + a->sample * a->served->row_size,
                             .output = b->out + (uint64_t)a->place * BED_OUT_MOST * sizeof(float),
                             .user = a};
}

void bed_push(struct bed *b, struct ask *a, uint32_t deadline, uint64_t cycle) {
  struct ct_request r = bed_request(b, a);
  r.deadline = deadline;
  a->busy = true;
  a->deadline = deadline;
  a->first_version = a->served->version;
  OK(ct_server_push_at(a->served->server, &r, cycle, &a->tag));
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
  OK(ct_mem_read(b->dev, b->out + (uint64_t)a->place * BED_OUT_MOST * sizeof(float), got,
                 sizeof got));
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
