/* SPDX-License-Identifier: Apache-2.0 */
/* Perceptrons under load: the device's batcher serves them. */
#include "serve.h"

static int open_handles(struct serve_model *m) {
  int rc = ct_rows_create(m->model, SERVE_SAMPLES, &m->rows);
  if (rc >= 0) rc = ct_rows_write(m->rows, 0, SERVE_SAMPLES, m->x);
  if (rc >= 0) rc = ct_answers_create(m->model, SERVE_PLACES, &m->answers);
  return rc;
}

static int perceptron_open(struct serve *s, struct serve_model *m) {
  const struct serve_shape *shape = m->shape;
  m->inputs = shape->widths[0];
  m->classes = shape->widths[shape->layers];
  if (serve_samples(m)) return 1;
  if (load_expect(shape->widths, shape->layers, m->seed, m->x, SERVE_SAMPLES, m->want)) return 1;
  int rc = ct_model_create(s->load.dev, shape->widths, shape->layers, m->seed, &m->model);
  if (rc >= 0) rc = open_handles(m);
  if (rc >= 0) rc = ct_model_publish(m->model, &m->weights);
  if (rc >= 0) rc = ct_server_create(m->model, m->weights, &s->o->serving, &m->server);
  return load_check(&s->load, rc, "a model cannot be served");
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
