/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

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

/* Every sample's answer alone, by the model in C. */
static int ask_emu(const struct serve *s, size_t i, struct serve_model *m, ct_device *emu) {
  const struct serve_shape *shape = &s->o->shape[i];
  ct_model *model = NULL;
  int rc = ct_model_create(emu, shape->widths, shape->layers, s->o->seed + i, &model);
  for (size_t k = 0; rc >= 0 && k < SERVE_SAMPLES; ++k)
    rc = ct_model_infer(model, NULL, m->x + k * m->inputs, 1, m->want + k * m->classes);
  ct_model_free(model);
  return rc;
}

static int open_handles(struct serve_model *m) {
  int rc = ct_rows_create(m->model, SERVE_SAMPLES, &m->rows);
  if (rc >= 0) rc = ct_rows_write(m->rows, 0, SERVE_SAMPLES, m->x);
  if (rc >= 0) rc = ct_answers_create(m->model, SERVE_PLACES, &m->answers);
  return rc;
}

static int open_model(struct serve *s, size_t i, ct_device *emu) {
  const struct serve_shape *shape = &s->o->shape[i];
  struct serve_model *m = &s->model[i];
  int rc = make_samples(s, i, m);
  if (rc >= 0) rc = ask_emu(s, i, m, emu);
  if (rc < 0) return cli_fail_device(emu, rc, "asking emu: for the answers");
  rc = ct_model_create(s->dev, shape->widths, shape->layers, s->o->seed + i, &m->model);
  if (rc >= 0) rc = open_handles(m);
  if (rc >= 0) rc = ct_model_publish(m->model, &m->weights);
  if (rc >= 0) rc = ct_server_create(m->model, m->weights, &s->o->serving, &m->server);
  if (rc < 0) return cli_fail_device(s->dev, rc, "a model cannot be served");
  return 0;
}

static int open_run(struct serve_run *run, size_t count) {
  run->count = count;
  run->request = calloc(count, sizeof *run->request);
  return run->request ? 0 : cli_fail("no memory for %zu requests", count);
}

/* The trace as a ring: it begins at an arrival that the seed chooses, and again a mean gap after
 * its end. */
static int repeat_trace(struct serve *s, size_t count) {
  const size_t n = s->times_count;
  const uint64_t span = s->times[n - 1] - s->times[0], round = span + span / (n - 1);
  uint64_t *times = malloc(count * sizeof *times);
  struct ct_rand rand;
  if (!times) return cli_fail("no memory for %zu arrivals", count);
  ct_rand_seed(&rand, s->o->seed, CT_RAND_STREAM_ARRIVALS);
  const size_t from = (size_t)ct_rand_below(&rand, n);
  for (size_t i = 0; i < count; ++i)
    times[i] = s->times[(from + i) % n] + (from + i) / n * round - s->times[from];
  free(s->times);
  s->times = times;
  s->times_count = count;
  return 0;
}

int serve_open(struct serve *s, const struct serve_options *o) {
  ct_device *emu = NULL;
  *s = (struct serve){.o = o, .text = cli_text(o->json), .give_up = CT_NO_CYCLE};
  for (; s->frees < SERVE_PLACES; ++s->frees)
    s->free[s->frees] = (uint16_t)s->frees;
  if (o->trace && serve_trace_read(o->trace, &s->times, &s->times_count)) return 1;
  if (o->trace && o->trace_again && repeat_trace(s, o->requests)) return 1;
  if (o->trace && s->times_count < o->requests)
    return cli_fail("%s has %zu arrivals, not %zu; give --requests", o->trace, s->times_count,
                    o->requests);
  if (o->trace && s->times[o->requests - 1] == s->times[0])
    return cli_fail(
        "%s: the first %zu arrivals are at the same time, which is no rate; give more "
        "--requests",
        o->trace, o->requests);
  s->arrivals = calloc(o->requests, sizeof *s->arrivals);
  if (!s->arrivals) return cli_fail("no memory for %zu arrivals", o->requests);
  if (open_run(&s->run, o->requests) || open_run(&s->trial, o->requests) ||
      open_run(&s->probe, o->capacity ? o->capacity : o->requests))
    return 1;
  if (cli_open(o->device, &s->dev)) return 1;
  int rc = ct_info(s->dev, &s->info);
  if (rc < 0) return cli_fail_device(s->dev, rc, o->device);
  if (cli_open("emu:", &emu)) return 1;
  int status = 0;
  for (size_t i = 0; i < o->models && !status; ++i)
    status = open_model(s, i, emu);
  ct_close(emu);
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
  ct_close(s->dev);
  free(s->times);
  free(s->arrivals);
  free(s->run.request);
  free(s->probe.request);
  free(s->trial.request);
  *s = (struct serve){.o = NULL};
}
