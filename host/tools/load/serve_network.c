/* SPDX-License-Identifier: Apache-2.0 */
#include "serve_network.h"

#include <stdlib.h>
#include <string.h>

const struct network_size *network_size_of(const struct served_network *n, uint32_t count) {
  size_t i = 0;
  while (i + 1 < n->sizes && n->size[i].net.rows < count)
    ++i;
  return &n->size[i];
}

/* ---- Opening ---- */

/* Places for the runs of a size. */
static int open_runs(struct serve_model *m, struct network_size *size) {
  int rc = 0;
  for (size_t i = 0; i < m->network->runs && rc >= 0; ++i) {
    struct network_run *run = &size->run[i];
    *run = (struct network_run){.of = m, .net = &size->net};
    rc = ct_frame_create(size->net.net, &run->frame);
  }
  return rc;
}

/* How long a run takes alone: the second, for the first brings programs. */
static int measure(struct network_size *size) {
  struct ct_event event = {.error = CT_OK};
  int rc = 0;
  for (int i = 0; i < 2 && rc >= 0; ++i)
    rc = asked_run(&size->net, size->run[0].frame, &event);
  size->service = event.end - event.start;
  return rc;
}

static size_t runs_that_fit(const struct asked_net *net) {
  const size_t fit = NETWORK_JOBS / (net->jobs ? net->jobs : 1);
  return fit < NETWORK_BATCHES ? NETWORK_BATCHES : fit < NETWORK_RUNS ? fit : NETWORK_RUNS;
}

/* The one for one row is there; the others have its weights, if they can. */
static int compile(struct serve_model *m, uint32_t rows, struct asked_net *net) {
  if (rows > 1) return asked_compile(&m->asked, rows, &m->network->size[0].net, net);
  *net = m->one;
  m->one = (struct asked_net){.dev = NULL};
  return 0;
}

static int open_size(struct serve *s, struct serve_model *m, uint32_t rows) {
  const struct ct_serving *how = &s->o->serving;
  struct served_network *n = m->network;
  struct network_size *size = &n->size[n->sizes++];
  if (compile(m, rows, &size->net)) return 1;
  n->runs = how->max_batch == 1 ? runs_that_fit(&size->net) : NETWORK_BATCHES;
  if (n->runs < s->most_runs) s->most_runs = n->runs;
  int rc = open_runs(m, size);
  if (rc >= 0 && how->batching == CT_BATCHING_ADAPTIVE && s->load.info.has_clock)
    rc = measure(size);
  return load_check(&s->load, rc, "a network cannot be served");
}

static int open_sizes(struct serve *s, struct serve_model *m) {
  const uint32_t most = s->o->serving.max_batch;
  uint32_t rows = 1;
  for (; rows < most; rows *= 2)
    if (open_size(s, m, rows)) return 1;
  return open_size(s, m, most);
}

/* The same network on emu:, to be asked for one row after the other. */
static int open_reference(struct serve *s, struct serve_model *m) {
  struct served_network *n = m->network;
  const struct asked *a = &m->asked;
  if (!s->emu && cli_open("emu:", &s->emu)) return 1;
  if (asked_open(&n->reference, s->emu, a->model, a->seed) ||
      asked_compile(&n->reference, 1, NULL, &n->one))
    return 1;
  const int rc = ct_frame_create(n->one.net, &n->place);
  return rc < 0 ? cli_fail_device(s->emu, rc, "asking emu: for the answers") : 0;
}

static int open_memory(struct serve_model *m) {
  struct served_network *n = m->network;
  n->got = calloc(SERVE_PLACES, m->classes * sizeof *n->got);
  n->in = calloc(REQUESTS_BATCH, m->inputs * sizeof *n->in);
  n->out = calloc(REQUESTS_BATCH, m->classes * sizeof *n->out);
  n->waiting = calloc(SERVE_PLACES, sizeof(struct request *));
  return n->got && n->in && n->out && n->waiting ? 0 : cli_fail("no memory for the requests");
}

static int network_open(struct serve *s, struct serve_model *m) {
  struct served_network *n = m->network = calloc(1, sizeof *n);
  if (!n) return cli_fail("no memory for a network");
  if (open_sizes(s, m)) return 1;
  m->inputs = n->size[0].net.features;
  m->classes = n->size[0].net.values;
  s->load.part[2] = (struct load_part){"submitting a run", network_form, s};
  return open_memory(m) || serve_samples(m) || open_reference(s, m);
}

static void network_close(struct serve_model *m) {
  struct served_network *n = m->network;
  if (!n) return;
  for (size_t i = 0; i < n->sizes; ++i) {
    for (size_t k = 0; k < n->runs; ++k)
      ct_frame_free(n->size[i].run[k].frame);
    asked_free(&n->size[i].net);
  }
  ct_frame_free(n->place);
  asked_free(&n->one);
  asked_close(&n->reference);
  free(n->got);
  free(n->in);
  free(n->out);
  free(n->waiting);
  free(n);
  m->network = NULL;
}

/* ---- Answers ---- */

static int network_read(const struct serve_model *m, const struct request *r, float *answer) {
  memcpy(answer, m->network->got + r->place * m->classes, m->classes * sizeof *answer);
  return 0;
}

/* What emu: answers to a row alone, asked once: a large network takes it a while. */
static int network_want(const struct serve_model *m, uint32_t sample, const float **answer) {
  struct served_network *n = m->network;
  struct ct_event event;
  float *want = m->want + sample * m->classes;
  int rc = 0;
  *answer = want;
  if (n->known[sample]) return 0;
  rc = ct_frame_write(n->place, n->one.input, m->x + sample * m->inputs, m->inputs);
  if (rc >= 0) rc = asked_run(&n->one, n->place, &event);
  if (rc >= 0) rc = ct_frame_read(n->place, n->one.output, want, m->classes);
  n->known[sample] = rc >= 0;
  return rc < 0 ? cli_fail_device(n->one.dev, rc, "asking emu: for an answer") : 0;
}

/* ---- Figures ---- */

static uint64_t longest(const struct serve *s) {
  uint64_t most = 0;
  for (size_t i = 0; i < s->o->models; ++i) {
    const struct served_network *n = s->model[i].network;
    for (size_t k = 0; n && k < n->sizes; ++k)
      if (n->size[k].service > most) most = n->size[k].service;
  }
  return most;
}

uint64_t network_margin(const struct serve *s) {
  return s->o->serving.margin ? s->o->serving.margin : NETWORK_BATCHES * longest(s);
}

static void network_info(const struct serve *s, const struct serve_model *m,
                         struct ct_server_info *info) {
  const uint64_t alone = m->network ? m->network->size[0].service : 0;
  const uint64_t margin = network_margin(s), safe = margin + alone;
  *info = (struct ct_server_info){.serving = s->o->serving};
  if (!alone) return;
  info->margin = margin < UINT32_MAX ? (uint32_t)margin : UINT32_MAX;
  info->least_deadline = alone < UINT32_MAX ? (uint32_t)alone : UINT32_MAX;
  info->safe_deadline = safe < UINT32_MAX ? (uint32_t)safe : UINT32_MAX;
}

const struct serve_kind serve_network = {network_open, network_push, network_read,
                                         network_want, network_info, network_close};
