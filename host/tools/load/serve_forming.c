/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of networks: which requests go together, and when. */
#include <string.h>

#include "serve_network.h"

/* ---- Lines ---- */

static struct request *waiting(const struct served_network *n, size_t i) {
  return n->waiting[(n->first + i) % SERVE_PLACES];
}

/* When the request that is so far back has arrived, or will have. */
static uint64_t arrives(const struct served_network *n, size_t i) {
  return waiting(n, i)->arrive;
}

int network_push(struct serve *s, struct request *r) {
  struct served_network *n = s->model[r->model].network;
  uint64_t now = 0;
  int rc = 0;
  if (r->scheduled == CT_NO_CYCLE && s->load.info.has_clock) rc = ct_now(s->load.dev, &now);
  r->arrive = r->scheduled == CT_NO_CYCLE ? now : r->scheduled;
  n->waiting[(n->first + n->count++) % SERVE_PLACES] = r;
  return rc;
}

/* ---- When a batch goes ---- */

/* It is full, or the oldest has waited for so long. */
static uint64_t goes_fixed(const struct serve *s, const struct served_network *n) {
  const struct ct_serving *how = &s->o->serving;
  const uint64_t end = arrives(n, 0) + how->max_wait;
  if (n->count < how->max_batch || arrives(n, how->max_batch - 1) > end) return end;
  return arrives(n, how->max_batch - 1);
}

/* The latest cycle at which so many go that one more could still join them in time. */
static uint64_t latest(const struct serve *s, const struct served_network *n, uint32_t count) {
  const uint64_t due = arrives(n, 0) + s->o->deadline, last = arrives(n, count - 1);
  const uint64_t early = network_margin(s) + network_size_of(n, count + 1)->service;
  return due > early && due - early > last ? due - early : last;
}

static uint64_t goes_adaptive(const struct serve *s, const struct served_network *n) {
  const uint32_t most = s->o->serving.max_batch;
  for (uint32_t count = 1; count < most; ++count) {
    const uint64_t cycle = latest(s, n, count);
    if (count == n->count || arrives(n, count) > cycle) return cycle;
  }
  return arrives(n, most - 1);
}

/* When the next batch of a model goes, if there is room. */
static uint64_t goes(const struct serve *s, const struct served_network *n) {
  const enum ct_batching how = s->o->serving.batching;
  if (!s->load.info.has_clock) return 0;
  if (how == CT_BATCHING_NONE) return arrives(n, 0);
  return how == CT_BATCHING_ADAPTIVE && s->o->deadline ? goes_adaptive(s, n) : goes_fixed(s, n);
}

/* The model whose batch goes first; of those that go now, the one whose first request is the
 * oldest. NULL: nothing waits. */
static struct serve_model *next_model(struct serve *s, uint64_t now, uint64_t *cycle) {
  struct serve_model *next = NULL;
  for (size_t i = 0; i < s->o->models; ++i) {
    const struct served_network *n = s->model[i].network;
    if (!n || !n->count) continue;
    uint64_t at = goes(s, n);
    if (at < now) at = now;
    if (next && at > *cycle) continue;
    if (next && at == *cycle && arrives(n, 0) >= arrives(next->network, 0)) continue;
    next = &s->model[i];
    *cycle = at;
  }
  return next;
}

/* ---- Handing over ---- */

static struct network_run *free_run(struct served_network *n, uint32_t count) {
  struct network_run *run = n->size[network_size_of(n, count) - n->size].run;
  while (run->count)
    ++run; /* as many as may be under way */
  return run;
}

/* Their rows, and zeros behind them. */
static int write_rows(const struct serve_model *m, const struct network_run *run, uint32_t count) {
  const struct served_network *n = m->network;
  const size_t row = m->inputs * sizeof(float), rows = run->net->rows;
  memset(n->in, 0, rows * row);
  for (uint32_t i = 0; i < count; ++i)
    memcpy(n->in + i * m->inputs, m->x + waiting(n, i)->sample * m->inputs, row);
  return ct_frame_write(run->frame, run->net->input, n->in, rows * m->inputs);
}

/* Those that have arrived by then go in that cycle. */
static int submit(struct serve *s, struct serve_model *m, uint64_t cycle, bool now) {
  struct served_network *n = m->network;
  uint32_t count = 1;
  while (count < s->o->serving.max_batch && count < n->count && arrives(n, count) <= cycle)
    ++count;
  struct network_run *run = free_run(n, count);
  int rc = write_rows(m, run, count);
  if (rc >= 0) rc = asked_submit(run->net, run->frame, now ? 0 : cycle, run, NULL);
  if (rc < 0) return rc;
  for (uint32_t i = 0; i < count; ++i)
    run->request[i] = waiting(n, i);
  run->count = count;
  n->first = (n->first + count) % SERVE_PLACES;
  n->count -= count;
  ++s->runs;
  return 0;
}

int network_form(void *arg) {
  struct serve *s = arg;
  const struct ct_info *info = &s->load.info;
  int rc = 0;
  while (s->runs < s->most_runs && rc >= 0) {
    uint64_t now = 0, cycle = 0;
    if (info->has_clock) rc = ct_now(s->load.dev, &now);
    struct serve_model *m = rc < 0 ? NULL : next_model(s, now, &cycle);
    if (!m) return rc;
    if (cycle > now && !info->has_schedule) {
      if (cycle < s->load.due) s->load.due = cycle;
      return CT_ERR_FULL;
    }
    rc = submit(s, m, cycle, cycle == now);
  }
  return rc < 0 ? rc : CT_ERR_FULL;
}

/* ---- Results ---- */

/* Nobody knows whether a deadline was met where there is no time. */
static enum ct_met met(const struct serve *s, const struct request *r, uint64_t end) {
  if (!s->o->deadline) return CT_MET_YES;
  if (!s->load.info.has_clock) return CT_MET_UNKNOWN;
  return end - r->arrive <= s->o->deadline ? CT_MET_YES : CT_MET_NO;
}

int network_take(struct serve *s, const struct ct_event *event) {
  struct network_run *run = event->user;
  const struct serve_model *m = run->of;
  struct served_network *n = m->network;
  const uint32_t count = run->count;
  const size_t size = m->classes * sizeof *n->got;
  int status = 0, rc = 0;
  --s->runs;
  run->count = 0;
  if (!event->error)
    rc = ct_frame_read(run->frame, run->net->output, n->out, run->net->rows * m->classes);
  if (load_check(&s->load, rc, "reading the answers")) return 1;
  for (uint32_t i = 0; i < count && !status; ++i) {
    struct request *r = run->request[i];
    struct ct_event one = *event;
    memcpy(n->got + r->place * m->classes, n->out + i * m->classes, size);
    one.batch = count;
    one.arrive = r->arrive;
    one.met = met(s, r, event->end);
    status = serve_ended(s, r, &one);
  }
  return status;
}
