/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "ct_rand.h"
#include "learn.h"
#include "serve.h"

/* How many arrive, unless it is said; runs take much longer. */
enum { REQUESTS = 2000, REQUESTS_BY_RUNS = 200 };

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

/* Whether the device's batcher takes it, so that the host need not form its batches. */
static bool is_batched(const struct serve *s, const struct serve_model *m) {
  struct ct_network_info info;
  if (!m->shape->network || s->o->batcher) return true;
  return s->load.info.features & CT_FEATURE_REQUESTS && !ct_network_info(m->one.net, &info) &&
         info.inputs > 0;
}

/* What a network is is known when it has been compiled. */
static int describe(struct serve *s, size_t i, bool *batched) {
  const struct serve_shape *shape = &s->o->shape[i];
  struct serve_model *m = &s->model[i];
  *m = (struct serve_model){.shape = shape, .seed = s->o->seed + i};
  if (shape->network && (asked_open(&m->asked, s->load.dev, shape->network, m->seed) ||
                         asked_compile(&m->asked, 1, NULL, &m->one)))
    return 1;
  *batched = is_batched(s, m);
  return 0;
}

static int describe_all(struct serve *s) {
  size_t batched = 0;
  for (size_t i = 0; i < s->o->models; ++i) {
    bool one = false;
    if (describe(s, i, &one)) return 1;
    batched += one;
  }
  s->by_runs = !batched;
  if (!batched || batched == s->o->models) return 0;
  return cli_fail(
      "--model: perceptrons go into the batches of the device, other networks into runs of their "
      "own; give one kind");
}

static void fill_in(const struct serve *s, struct serve_options *o) {
  struct ct_serving *how = &o->serving;
  if (!o->requests) o->requests = s->by_runs ? REQUESTS_BY_RUNS : REQUESTS;
  if (s->by_runs || o->capacity < o->requests) o->capacity = o->requests;
  if (s->by_runs && !how->max_batch)
    how->max_batch = how->batching == CT_BATCHING_NONE ? 1 : REQUESTS_BATCH;
}

static int open_requests(struct serve *s) {
  const struct serve_options *o = s->o;
  return arrivals_open(&s->arrivals, &o->arrivals, o->requests, o->seed) ||
         requests_open(&s->run, o->requests) || requests_open(&s->trial, o->requests) ||
         requests_open(&s->probe, o->capacity);
}

static int open_models(struct serve *s) {
  int status = 0;
  for (size_t i = 0; i < s->o->models && !status; ++i) {
    struct serve_model *m = &s->model[i];
    m->kind = s->by_runs ? &serve_network : &serve_perceptron;
    status = m->kind->open(s, m);
  }
  return status;
}

int serve_open(struct serve *s, struct serve_options *o) {
  *s = (struct serve){.o = o, .give_up = CT_NO_CYCLE, .most_runs = SIZE_MAX};
  for (; s->frees < SERVE_PLACES; ++s->frees)
    s->free[s->frees] = (uint16_t)s->frees;
  if (load_open(&s->load, o->device, o->json) || describe_all(s)) return 1;
  fill_in(s, o);
  const int status = open_requests(s) || open_models(s);
  serve_parts(s);
  return status;
}

void serve_close(struct serve *s) {
  for (size_t i = 0; i < SERVE_MODELS; ++i) {
    if (s->model[i].kind) s->model[i].kind->close(&s->model[i]);
    asked_free(&s->model[i].one);
    asked_close(&s->model[i].asked);
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
