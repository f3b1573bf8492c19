/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "ct_rand.h"
#include "learn.h"
#include "serve.h"

int serve_samples(struct serve_model *m) {
  struct ct_rand rand;
  m->x = malloc(SERVE_SAMPLES * m->inputs * sizeof *m->x);
  m->want = malloc(SERVE_SAMPLES * m->classes * sizeof *m->want);
  if (!m->x || !m->want) return cli_fail("no memory for the samples");
  ct_rand_seed(&rand, m->seed, CT_RAND_STREAM_WEIGHTS);
  for (size_t k = 0; k < SERVE_SAMPLES * m->inputs; ++k)
    m->x[k] = 2.0f * ct_rand_unit(&rand) - 1.0f;
  return 0;
}

void serve_name(const struct serve_shape *shape, char *text, size_t size) {
  if (shape->network)
    snprintf(text, size, "%s", shape->network);
  else
    learn_layers_text(shape->widths, shape->layers, text, size);
}

static int open_model(struct serve *s, size_t i) {
  const struct serve_shape *shape = &s->o->shape[i];
  struct serve_model *m = &s->model[i];
  const bool runs = shape->network && !s->o->batcher;
  *m = (struct serve_model){
      .kind = runs ? &serve_network : &serve_perceptron, .shape = shape, .seed = s->o->seed + i};
  return m->kind->open(s, m);
}

static int open_requests(struct serve *s) {
  const struct serve_options *o = s->o;
  return arrivals_open(&s->arrivals, &o->arrivals, o->requests, o->seed) ||
         requests_open(&s->run, o->requests) || requests_open(&s->trial, o->requests) ||
         requests_open(&s->probe, o->capacity ? o->capacity : o->requests);
}

int serve_open(struct serve *s, const struct serve_options *o) {
  *s = (struct serve){.o = o, .give_up = CT_NO_CYCLE, .most_runs = SIZE_MAX};
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
    if (s->model[i].kind) s->model[i].kind->close(&s->model[i]);
    free(s->model[i].x);
    free(s->model[i].want);
  }
  ct_close(s->emu);
  load_close(&s->load);
  arrivals_close(&s->arrivals);
  requests_close(&s->run);
  requests_close(&s->probe);
  requests_close(&s->trial);
  *s = (struct serve){.o = NULL};
}
