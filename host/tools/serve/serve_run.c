/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ct_arrivals.h"
#include "ct_rand.h"
#include "serve.h"

/* WAIT_MS: how long Ctrl-C may go unnoticed. PATIENCE: waits in vain until the device is given up.
 * LEAD: cycles between handing over the first requests and the first arrival. HIGHEST: load, in
 * permille, below which a sustainable one is searched: more than the capacity does not last. */
enum { WAIT_MS = 1000, PATIENCE = 600, LEAD = 20000, HIGHEST = 1000 };

/* ---- Requests ---- */

/* Which model and which sample, the same ones in every run. */
static void draw_requests(const struct serve *s, struct serve_run *run) {
  struct ct_rand rand;
  ct_rand_seed(&rand, s->o->seed, CT_RAND_STREAM_REQUESTS);
  for (size_t i = 0; i < run->count; ++i)
    run->request[i] =
        (struct serve_request){.model = (uint32_t)ct_rand_below(&rand, s->o->models),
                               .sample = (uint32_t)ct_rand_below(&rand, SERVE_SAMPLES),
                               .scheduled = CT_NO_CYCLE,
                               .arrive = CT_NO_CYCLE,
                               .start = CT_NO_CYCLE,
                               .end = CT_NO_CYCLE};
  run->pushed = run->done = run->wrong = run->failed = 0;
  memset(run->in_batch, 0, sizeof run->in_batch);
}

/* Pushes what there is room for, and no more than the memory has places for answers: whichever of
 * them are taken, however long. */
static int push(struct serve *s, struct serve_run *run) {
  for (; run->pushed < run->count; ++run->pushed) {
    struct serve_request *r = &run->request[run->pushed];
    const struct serve_model *m = &s->model[r->model];
    if (!s->frees) return 0;
    r->place = s->free[s->frees - 1];
    const struct ct_request request = {.rows = m->rows,
                                       .row = r->sample,
                                       .answers = m->answers,
                                       .answer = r->place,
                                       .deadline = s->o->deadline,
                                       .cycle = r->scheduled == CT_NO_CYCLE ? 0 : r->scheduled,
                                       .user = r};
    const int rc = ct_server_push(m->server, &request, NULL);
    if (rc == CT_ERR_FULL) return 0;
    if (rc < 0) return cli_fail_device(s->dev, rc, "pushing a request");
    --s->frees;
  }
  return 0;
}

/* Compares an answer with emu:'s, every bit. */
static int check(struct serve *s, struct serve_run *run, struct serve_request *r) {
  const struct serve_model *m = &s->model[r->model];
  float *got = malloc(m->classes * sizeof *got);
  if (!got) return cli_fail("no memory for an answer");
  const int rc = ct_answers_read(m->answers, r->place, 1, got);
  r->wrong =
      rc >= 0 && memcmp(got, m->want + r->sample * m->classes, m->classes * sizeof *got) != 0;
  run->wrong += r->wrong;
  s->wrong += r->wrong;
  free(got);
  return rc < 0 ? cli_fail_device(s->dev, rc, "reading an answer") : 0;
}

static int finish(struct serve *s, struct serve_run *run, const struct ct_event *record) {
  struct serve_request *r = record->user;
  r->done = true;
  r->answered = record->error == CT_OK;
  r->arrive = record->arrive;
  r->start = record->start;
  r->end = record->end;
  r->batch = record->batch;
  r->version = record->version;
  r->code = record->code;
  r->met = record->met;
  ++run->done;
  if (!r->answered && !run->failed++) run->code = r->code;
  if (record->batch < sizeof run->in_batch / sizeof *run->in_batch) ++run->in_batch[record->batch];
  const int status = r->answered ? check(s, run, r) : 0;
  s->free[s->frees++] = r->place;
  return status;
}

/* Pushes and takes one event, if one comes before the given cycle. */
static int turn(struct serve *s, struct serve_run *run, uint64_t until) {
  struct ct_event record;
  if (push(s, run)) return 1;
  if (s->beside.turn && s->beside.turn(s->beside.arg)) return 1;
  const int rc = until == CT_NO_CYCLE ? ct_reap(s->dev, &record, WAIT_MS)
                                      : ct_reap_until(s->dev, &record, until, WAIT_MS);
  if (rc == CT_ERR_TIMEOUT && ++s->vain <= PATIENCE) return 0;
  s->vain = 0;
  if (rc < 0) return cli_fail_device(s->dev, rc, "waiting for the device");
  if (record.kind == CT_EVENT_REQUEST) return finish(s, run, &record);
  return s->beside.event ? s->beside.event(s->beside.arg, &record) : 0;
}

static void show(struct serve *s, const struct serve_run *run, const char *label) {
  const struct ct_progress_state state = {.label = label,
                                          .known = CT_PROGRESS_FRACTION,
                                          .fraction = (double)run->done / (double)run->count};
  ct_progress_update(&s->progress, &state);
}

static int read_clock(struct serve *s, uint64_t *now) {
  const int rc = ct_now(s->dev, now);
  return rc < 0 ? cli_fail_device(s->dev, rc, "reading the clock") : 0;
}

static int run_all(struct serve *s, struct serve_run *run, const char *label) {
  ct_progress_clear(&s->progress);
  ct_progress_open(&s->progress, stderr);
  while (run->done < run->count && !cli_stopped()) {
    uint64_t now = 0;
    if (s->give_up != CT_NO_CYCLE && read_clock(s, &now)) return 1;
    if (now >= s->give_up) break;
    if (turn(s, run, s->give_up)) return 1;
    show(s, run, label);
  }
  return 0;
}

/* Up to the first arrival, which is told to what goes on beside. */
static int await_first(struct serve *s, struct serve_run *run) {
  const uint64_t first = run->request[0].scheduled;
  uint64_t now = 0;
  if (!s->beside.arrived) return 0;
  while (now < first && !cli_stopped())
    if (turn(s, run, first) || read_clock(s, &now)) return 1;
  return cli_stopped() ? 0 : s->beside.arrived(s->beside.arg);
}

/* ---- Runs ---- */

int serve_check_wrong(uint64_t wrong) {
  if (!wrong) return 0;
  return cli_fail("%" PRIu64 " answers differ from emu:: the device computes wrongly", wrong);
}

int serve_check_answered(const struct serve_run *run) {
  if (!run->failed) return 0;
  return cli_fail("%zu requests were not answered; the first of them: %s", run->failed,
                  ct_code_text(run->code));
}

/* The cycle in which the last batch ends, of any size or of the full size only; 0: there is none.
 */
static uint64_t last_end(const struct serve_run *run, uint32_t full) {
  uint64_t last = 0;
  for (size_t i = 0; i < run->count; ++i)
    if (run->request[i].end > last && (!full || run->request[i].batch == full))
      last = run->request[i].end;
  return last;
}

int serve_capacity(struct serve *s) {
  const struct ct_serving *how = &s->o->serving;
  struct serve_run *run = &s->probe;
  uint64_t first = CT_NO_CYCLE, last = 0;
  draw_requests(s, run);
  if (run_all(s, run, "capacity")) return 1;
  if (cli_stopped()) return 0;
  if (serve_check_answered(run)) return 1;
  if (how->batching != CT_BATCHING_NONE) last = last_end(run, how->max_batch ? how->max_batch : 16);
  if (!last) last = last_end(run, 0);
  s->capacity_done = 0;
  for (size_t i = 0; i < run->count; ++i) {
    if (run->request[i].start < first) first = run->request[i].start;
    s->capacity_done += run->request[i].end <= last;
  }
  s->capacity_busy = last > first ? last - first : 0;
  if (s->capacity_busy && s->capacity_done) return 0;
  return cli_fail("the capacity cannot be measured: no request was answered");
}

static int make_arrivals(struct serve *s, uint32_t permille) {
  const struct serve_options *o = s->o;
  const uint64_t mean = ct_arrivals_mean_q16(s->capacity_busy, s->capacity_done, permille);
  const uint64_t on = o->period * o->on_percent / 100;
  int rc = -1;
  switch (o->arrivals) {
    case SERVE_CONSTANT:
      rc = ct_arrivals_constant(mean, s->arrivals, o->requests);
      break;
    case SERVE_BURSTY:
      rc = ct_arrivals_bursty(o->seed, mean, on, o->period, s->arrivals, o->requests);
      break;
    case SERVE_TRACE:
      rc = ct_arrivals_trace(mean, s->times, s->arrivals, o->requests);
      break;
    default:
      rc = ct_arrivals_poisson(o->seed, mean, s->arrivals, o->requests);
  }
  return rc ? cli_fail("no arrivals can be made for a load of %.3f; choose --load nearer to 1",
                       (double)permille / 1000)
            : 0;
}

int serve_load(struct serve *s, struct serve_run *run, uint32_t permille, const char *label) {
  uint64_t now = 0;
  if (make_arrivals(s, permille)) return 1;
  draw_requests(s, run);
  if (read_clock(s, &now)) return 1;
  for (size_t i = 0; i < run->count; ++i)
    run->request[i].scheduled = now + LEAD + s->arrivals[i];
  return await_first(s, run) || run_all(s, run, label);
}

int serve_latencies(const struct serve_run *run, size_t drop, struct ct_stats *stats) {
  uint64_t *latency = malloc((run->count + 1) * sizeof *latency);
  if (!latency) return cli_fail("no memory for %zu latencies", run->count);
  for (size_t i = 0; i < run->count; ++i) {
    const struct serve_request *r = &run->request[i];
    latency[i] = r->answered ? r->end - r->scheduled : CT_STATS_NEVER;
  }
  ct_stats_sum_up(stats, latency, run->count, drop);
  free(latency);
  return 0;
}

/* The highest load at which p99 stays within the bound, halving the range that is left. */
static int run_search(struct serve *s) {
  uint32_t good = 0, bad = HIGHEST;
  while (s->probes_done < SERVE_PROBES && bad - good > 1 && !cli_stopped()) {
    const uint32_t permille = (good + bad) / 2;
    struct ct_stats stats = {.p99 = CT_STATS_NEVER};
    char label[32];
    snprintf(label, sizeof label, "load %.3f", (double)permille / 1000);
    if (serve_load(s, &s->trial, permille, label)) return 1;
    if (cli_stopped()) return 0;
    if (serve_check_answered(&s->trial)) return 1;
    if (serve_latencies(&s->trial, ct_stats_drop(s->trial.count), &stats)) return 1;
    s->probes[s->probes_done++] = (struct serve_probe){permille, stats.p99};
    *(stats.p99 <= s->o->bound ? &good : &bad) = permille;
    s->sustainable = good;
  }
  return 0;
}

/* What the inference queue has counted, and the clock, since the last call or the beginning. */
static int count(void *arg) {
  struct serve *s = arg;
  uint64_t now[CT_MAX_COUNTERS] = {0}, cycle = 0;
  const int rc = ct_counters(s->dev, CT_INFERENCE, now, CT_MAX_COUNTERS);
  if (rc < 0) return cli_fail_device(s->dev, rc, "reading the counters");
  if (read_clock(s, &cycle)) return 1;
  for (size_t i = 0; i < CT_MAX_COUNTERS; ++i)
    s->counter[i] = now[i] - s->counter[i];
  s->cycles = cycle - s->cycles;
  return 0;
}

static int run_load(struct serve *s) {
  s->beside = (struct serve_beside){.arrived = count, .arg = s};
  const int status = serve_load(s, &s->run, s->o->permille, "serving") || count(s);
  s->beside = (struct serve_beside){NULL};
  return status;
}

/* Without a clock there are only answers to check. */
int serve_runs(struct serve *s) {
  if (!s->info.has_clock) {
    draw_requests(s, &s->run);
    return run_all(s, &s->run, "serving");
  }
  if (serve_capacity(s) || cli_stopped()) return !cli_stopped();
  if (run_load(s)) return 1;
  return s->o->bound && !cli_stopped() ? run_search(s) : 0;
}
