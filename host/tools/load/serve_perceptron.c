/* SPDX-License-Identifier: Apache-2.0 */
/* Perceptrons under load, by widths or as networks: the device's batcher serves them. */
#include <stdlib.h>

#include "serve.h"

/* ---- Of widths ---- */

static int make_handles(struct serve_model *m) {
  int rc = ct_rows_create(m->model, SERVE_SAMPLES, &m->rows);
  if (rc >= 0) rc = ct_answers_create(m->model, SERVE_PLACES, &m->answers);
  return rc < 0 ? rc : ct_model_publish(m->model, &m->weights);
}

static int open_model(struct serve *s, struct serve_model *m) {
  const struct serve_shape *shape = m->shape;
  m->inputs = shape->widths[0];
  m->classes = shape->widths[shape->layers];
  if (serve_samples(m)) return 1;
  if (load_expect(shape->widths, shape->layers, m->seed, m->x, SERVE_SAMPLES, m->want)) return 1;
  int rc = ct_model_create(s->load.dev, shape->widths, shape->layers, m->seed, &m->model);
  if (rc >= 0) rc = make_handles(m);
  return load_check(&s->load, rc, "a model cannot be served");
}

/* ---- As a network ---- */

static int ask(const struct serve_model *m, const struct asked_net *n, ct_frame *place) {
  struct ct_event event;
  int rc = 0;
  for (size_t i = 0; i < SERVE_SAMPLES && rc >= 0; ++i) {
    rc = ct_frame_write(place, n->input, m->x + i * m->inputs, m->inputs);
    if (rc >= 0) rc = asked_run(n, place, &event);
    if (rc >= 0) rc = ct_frame_read(place, n->output, m->want + i * m->classes, m->classes);
  }
  return rc;
}

/* What emu: answers to the samples. */
static int expect(struct serve_model *m) {
  struct asked asked = {.dev = NULL};
  struct asked_net one = {.dev = NULL};
  ct_device *emu = NULL;
  ct_frame *place = NULL;
  int rc = 0, status = cli_open("emu:", &emu) ||
                       asked_open(&asked, emu, m->shape->network, m->seed) ||
                       asked_compile(&asked, 1, NULL, &one);
  if (!status) rc = ct_frame_create(one.net, &place);
  if (!status && rc >= 0) rc = ask(m, &one, place);
  if (rc < 0) status = cli_fail_device(emu, rc, "asking emu: for the answers");
  ct_frame_free(place);
  asked_free(&one);
  asked_close(&asked);
  ct_close(emu);
  return status;
}

static int open_network(struct serve *s, struct serve_model *m) {
  m->inputs = m->one.features;
  m->classes = m->one.values;
  int rc = ct_network_rows_create(m->one.net, SERVE_SAMPLES, &m->rows);
  if (rc >= 0) rc = ct_network_answers_create(m->one.net, SERVE_PLACES, &m->answers);
  return load_check(&s->load, rc, m->shape->network) || serve_samples(m) || expect(m);
}

/* ---- Of both kinds ---- */

int serve_batches(struct serve *s, struct serve_model *m, const struct ct_serving *how) {
  ct_server_free(m->server);
  m->server = NULL;
  const int rc = m->one.net ? ct_network_server_create(m->one.net, m->one.weights, how, &m->server)
                            : ct_server_create(m->model, m->weights, how, &m->server);
  return load_check(&s->load, rc, "a model cannot be served");
}

static int perceptron_open(struct serve *s, struct serve_model *m) {
  const int status = m->shape->network ? open_network(s, m) : open_model(s, m);
  if (status) return status;
  const int rc = ct_rows_write(m->rows, 0, SERVE_SAMPLES, m->x);
  return load_check(&s->load, rc, "a model cannot be served") ||
         serve_batches(s, m, &s->o->serving);
}

static void perceptron_close(struct serve_model *m) {
  ct_server_free(m->server);
  ct_model_free(m->model);
  ct_weights_free(m->weights);
  ct_rows_free(m->rows);
  ct_answers_free(m->answers);
}

static int perceptron_push(struct serve *s, struct request *r) {
  const struct serve_model *m = &s->model[r->model];
  const struct ct_request request = {.rows = m->rows,
                                     .row = r->sample,
                                     .answers = m->answers,
                                     .answer = r->place,
                                     .deadline = s->o->deadline,
                                     .cycle = r->scheduled == CT_NO_CYCLE ? 0 : r->scheduled,
                                     .user = r};
  return ct_server_push(m->server, &request, NULL);
}

static int perceptron_read(const struct serve_model *m, const struct request *r, float *answer) {
  return ct_answers_read(m->answers, r->place, 1, answer);
}

static int perceptron_want(const struct serve_model *m, uint32_t sample, const float **answer) {
  *answer = m->want + sample * m->classes;
  return 0;
}

static void perceptron_info(const struct serve *s, const struct serve_model *m,
                            struct ct_server_info *info) {
  (void)s;
  if (ct_server_info(m->server, info)) *info = (struct ct_server_info){.pinned_words = 0};
}

const struct serve_kind serve_perceptron = {perceptron_open, perceptron_push, perceptron_read,
                                            perceptron_want, perceptron_info, perceptron_close};
