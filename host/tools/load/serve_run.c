/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "serve_network.h"

/* HIGHEST: load, in permille, below which a sustainable one is searched: more than the capacity
 * does not last. */
enum { HIGHEST = 1000 };

/* ---- Requests ---- */

static void draw(const struct serve *s, struct requests *run) {
  requests_draw(run, s->o->seed, s->o->models, SERVE_SAMPLES);
}

/* Pushes what there is room for, and no more than the memory has places for answers: whichever of
 * them are taken, however long. */
static int push(void *arg) {
  struct serve *s = arg;
  struct requests *run = s->present;
  for (; run && s->frees && run->pushed < run->count; ++run->pushed, --s->frees) {
    struct request *r = &run->request[run->pushed];
    r->place = s->free[s->frees - 1];
    const int rc = s->model[r->model].kind->push(s, r);
    if (rc < 0) return rc;
  }
  return 0;
}

/* Compares an answer with emu:'s, every bit. */
static int check(struct serve *s, struct requests *run, struct request *r) {
  const struct serve_model *m = &s->model[r->model];
  const size_t size = m->classes * sizeof(float);
  const float *want = NULL;
  if (m->kind->want(m, r->sample, &want)) return 1;
  float *got = malloc(size);
  const int rc = got ? m->kind->read(m, r, got) : CT_ERR_MEMORY;
  r->wrong = rc >= 0 && memcmp(got, want, size) != 0;
  run->wrong += r->wrong;
  s->wrong += r->wrong;
  free(got);
  return load_check(&s->load, rc, "reading an answer");
}

int serve_ended(struct serve *s, struct request *r, const struct ct_event *event) {
  requests_take(s->present, r, event);
  const int status = r->answered ? check(s, s->present, r) : 0;
  s->free[s->frees++] = r->place;
  return status;
}

static int take(void *arg, const struct ct_event *event) {
  struct serve *s = arg;
  if (event->kind == CT_EVENT_REQUEST) return serve_ended(s, event->user, event);
  if (event->kind == CT_EVENT_RUN && event->queue == CT_INFERENCE) return network_take(s, event);
  return s->beside.event ? s->beside.event(s->beside.arg, event) : 0;
}

void serve_parts(struct serve *s) {
  s->load.part[0] = (struct load_part){"pushing a request", push, s};
  s->load.take = take;
  s->load.arg = s;
}

static int run_all(struct serve *s, struct requests *run, const char *label) {
  struct load *l = &s->load;
  ct_progress_clear(&l->progress);
  ct_progress_open(&l->progress, stderr);
  s->present = run;
  while (run->done < run->count && !cli_stopped()) {
    uint64_t now = 0;
    if (s->give_up != CT_NO_CYCLE && load_now(l, &now)) return 1;
    if (now >= s->give_up) break;
    if (load_turn(l, s->give_up)) return 1;
    load_show(l, label, (double)run->done / (double)run->count);
  }
  return 0;
}

/* Up to the first arrival, which is told to what goes on beside. */
static int await_first(struct serve *s, struct requests *run) {
  if (!s->beside.arrived) return 0;
  s->present = run;
  if (load_until(&s->load, run->request[0].scheduled)) return 1;
  return cli_stopped() ? 0 : s->beside.arrived(s->beside.arg);
}

/* ---- Runs ---- */

int serve_check_wrong(uint64_t wrong) {
  if (!wrong) return 0;
  return cli_fail("%" PRIu64 " answers differ from emu:: the device computes wrongly", wrong);
}

int serve_check_answered(const struct requests *run) {
  if (!run->failed) return 0;
  return cli_fail("%zu requests were not answered; the first of them: %s", run->failed,
                  ct_code_text(run->code));
}

/* The cycle in which the last batch ends, of any size or of the full size only; 0: there is none.
 */
static uint64_t last_end(const struct requests *run, uint32_t full) {
  uint64_t last = 0;
  for (size_t i = 0; i < run->count; ++i)
    if (run->request[i].end > last && (!full || run->request[i].batch == full))
      last = run->request[i].end;
  return last;
}

int serve_capacity(struct serve *s) {
  const struct ct_serving *how = &s->o->serving;
  struct requests *run = &s->probe;
  uint64_t first = CT_NO_CYCLE, last = 0;
  draw(s, run);
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

int serve_load(struct serve *s, struct requests *run, uint32_t permille, const char *label) {
  uint64_t now = 0;
  if (arrivals_make(&s->arrivals, s->capacity_busy, s->capacity_done, permille)) return 1;
  draw(s, run);
  if (load_now(&s->load, &now)) return 1;
  requests_schedule(run, now + LOAD_LEAD, s->arrivals.cycle);
  return await_first(s, run) || run_all(s, run, label);
}

static int sum_up_trial(const struct serve *s, struct ct_stats *stats) {
  const size_t n = s->trial.count;
  return requests_sum_up(&s->trial, n, ct_stats_drop(n), CT_NO_CYCLE, stats);
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
    if (sum_up_trial(s, &stats)) return 1;
    s->probes[s->probes_done++] = (struct serve_probe){permille, stats.p99};
    *(stats.p99 <= s->o->bound ? &good : &bad) = permille;
    s->sustainable = good;
  }
  return 0;
}

/* Inference is read first, before the first request is under way. */
static int open_window(void *arg) {
  struct serve *s = arg;
  s->window.clock_last = true;
  return load_window_open(&s->load, &s->window);
}

static int run_load(struct serve *s) {
  s->beside = (struct serve_beside){.arrived = open_window, .arg = s};
  const int status =
      serve_load(s, &s->run, s->o->permille, "serving") || load_window_close(&s->load, &s->window);
  s->beside = (struct serve_beside){.arrived = NULL};
  return status;
}

/* Without a clock there are only answers to check. */
int serve_runs(struct serve *s) {
  if (!s->load.info.has_clock) {
    draw(s, &s->run);
    return run_all(s, &s->run, "serving");
  }
  if (serve_capacity(s) || cli_stopped()) return !cli_stopped();
  if (run_load(s)) return 1;
  return s->o->bound && !cli_stopped() ? run_search(s) : 0;
}
