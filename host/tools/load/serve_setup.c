/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "ct_rand.h"
#include "serve.h"

/* The samples of model i: uniform in [-1, 1). */
static int make_samples(const struct serve *s, size_t i, struct serve_model *m) {
  const struct serve_shape *shape = &s->o->shape[i];
  struct ct_rand rand;
  m->inputs = shape->widths[0];
  m->classes = shape->widths[shape->layers];
  m->x = malloc(SERVE_SAMPLES * m->inputs * sizeof *m->x);
  m->want = malloc(SERVE_SAMPLES * m->classes * sizeof *m->want);
  if (!m->x || !m->want) return CT_ERR_MEMORY;
  ct_rand_seed(&rand, s->o->seed + i, CT_RAND_STREAM_WEIGHTS);
  for (size_t k = 0; k < SERVE_SAMPLES * m->inputs; ++k)
    m->x[k] = 2.0f * ct_rand_unit(&rand) - 1.0f;
  return 0;
}

static int open_handles(struct serve_model *m) {
  int rc = ct_rows_create(m->model, SERVE_SAMPLES, &m->rows);
  if (rc >= 0) rc = ct_rows_write(m->rows, 0, SERVE_SAMPLES, m->x);
  if (rc >= 0) rc = ct_answers_create(m->model, SERVE_PLACES, &m->answers);
  return rc;
}

static int open_model(struct serve *s, size_t i) {
  const struct serve_shape *shape = &s->o->shape[i];
  const uint64_t seed = s->o->seed + i;
  struct serve_model *m = &s->model[i];
  if (make_samples(s, i, m)) return cli_fail("no memory for the samples");
  if (load_expect(shape->widths, shape->layers, seed, m->x, SERVE_SAMPLES, m->want)) return 1;
  int rc = ct_model_create(s->load.dev, shape->widths, shape->layers, seed, &m->model);
  if (rc >= 0) rc = open_handles(m);
  if (rc >= 0) rc = ct_model_publish(m->model, &m->weights);
  if (rc >= 0) rc = ct_server_create(m->model, m->weights, &s->o->serving, &m->server);
  return load_check(&s->load, rc, "a model cannot be served");
}

static int open_requests(struct serve *s) {
  const struct serve_options *o = s->o;
  return arrivals_open(&s->arrivals, &o->arrivals, o->requests, o->seed) ||
         requests_open(&s->run, o->requests) || requests_open(&s->trial, o->requests) ||
         requests_open(&s->probe, o->capacity ? o->capacity : o->requests);
}

int serve_open(struct serve *s, const struct serve_options *o) {
  *s = (struct serve){.o = o, .give_up = CT_NO_CYCLE};
  for (; s->frees < SERVE_PLACES; ++s->frees)
    s->free[s->frees] = (uint16_t)s->frees;
  if (open_requests(s) || load_open(&s->load, o->device, o->json)) return 1;
  int status = 0;
  for (size_t i = 0; i < o->models && !status; ++i)
    status = open_model(s, i);
  serve_parts(s);
  return status;
}

void serve_close(struct serve *s) {
  for (size_t i = 0; i < SERVE_MODELS; ++i) {
    ct_server_free(s->model[i].server);
    ct_model_free(s->model[i].model);
    ct_weights_free(s->model[i].weights);
    ct_rows_free(s->model[i].rows);
    ct_answers_free(s->model[i].answers);
    free(s->model[i].x);
    free(s->model[i].want);
  }
  load_close(&s->load);
  arrivals_close(&s->arrivals);
  requests_close(&s->run);
  requests_close(&s->probe);
  requests_close(&s->trial);
  *s = (struct serve){.o = NULL};
}
