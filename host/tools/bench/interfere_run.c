/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "host/lib/queue/ct_queue.h"
#include "interfere.h"

enum {
  WARM_JOBS = 2,
  BUSY_SHARE = 4,
  BUSY_LEAST = 8,
  QUEUED = 3,
  SETTLE = 4096, /* cycles in which a window opens, however long a counter takes to be read */
  WINDOW_MOST = 10000000 /* cycles; twenty training steps of the largest network at 16 bytes each */
};

static void show(struct interfere *t, double fraction) {
  if (t->label) load_show(&t->load, t->label, fraction);
}

/* ---- Windows ---- */

static int window_open(struct interfere *t, struct interfere_run *r) {
  interfere_clear(t);
  r->steps = t->steps_done;
  r->window.clock_last = true;
  return load_window_open(&t->load, &r->window);
}

static int window_close(struct interfere *t, struct interfere_run *r) {
  if (load_window_close(&t->load, &r->window)) return 1;
  r->steps = t->steps_done - r->steps;
  r->probe = t->live;
  return 0;
}

/* ---- Jobs ---- */

static int submit(struct interfere *t, uint32_t request, uint64_t cycle) {
  struct ct_job job = {.program = t->infer};
  job.args[CT_INFER_IMAGE - 1] = (uint32_t)(ct_weights_address(t->weights) / CT_UNIT);
  job.args[CT_INFER_OUT - 1] = (uint32_t)((t->out + request * t->out_pitch) / CT_UNIT);
  job.args[CT_INFER_ROW - 1] = (uint32_t)((t->rows + request * t->row_pitch) / CT_UNIT);
  return load_check(&t->load, ct_submit_at(t->load.dev, CT_INFERENCE, &job, cycle, NULL),
                    "submitting a job");
}

int interfere_take(void *interfere, const struct ct_event *event) {
  struct interfere *t = interfere;
  if (event->error) return load_check(&t->load, ct_event_error(t->load.dev, event), "measuring");
  if (event->user == t) ++t->steps_done;
  if (event->queue != CT_INFERENCE) return 0;
  t->served = *event;
  ++t->served_count;
  return 0;
}

/* The answer is emu:'s; it is wiped out, so that the next has to be made again. */
static int check(struct interfere *t, struct interfere_run *r, uint32_t request) {
  uint8_t *got = calloc(1, t->out_pitch);
  if (!got) return cli_fail("no memory for an answer");
  const uint64_t at = t->out + request * t->out_pitch;
  const size_t size = t->net.width[t->net.layers] * sizeof(float);
  int rc = ct_mem_read(t->load.dev, at, got, size);
  r->wrong += memcmp(got, t->expected + request * t->out_pitch, size) != 0;
  memset(got, 0xff, size);
  if (rc >= 0) rc = ct_mem_write(t->load.dev, at, got, size);
  free(got);
  return load_check(&t->load, rc, "checking an answer");
}

/* One job at a time: number i a gap after number i - 1, the first one a gap after cycle `end`. */
static int serve(struct interfere *t, struct interfere_run *r, size_t jobs, uint64_t end) {
  struct ct_rand rand;
  ct_rand_seed(&rand, t->o->seed + 1, CT_RAND_STREAM_INTERFERENCE);
  for (size_t i = 0; i < jobs && !cli_stopped(); ++i) {
    const uint64_t gap = GAP_LEAST + ct_rand_below(&rand, t->gap_range);
    const uint32_t request = (uint32_t)ct_rand_below(&rand, REQUESTS);
    t->refusals.from = end + gap;
    if (submit(t, request, end + gap) || load_until_count(&t->load, &t->served_count, 1)) return 1;
    if (cli_stopped()) break;
    const struct ct_event *result = &t->served;
    if (r->refused) r->refused[r->jobs] = interfere_refused_until(t, result->end);
    r->latency[r->jobs++] = result->end - result->arrive;
    r->served_cycles += result->end - result->arrive;
    end = result->end;
    if (check(t, r, request)) return 1;
    show(t, (double)(i + 1) / (double)jobs);
  }
  return 0;
}

/* Jobs back to back: the next ones are queued before one ends. The window is from the end of a
 * first job to the end of the last that counts, with others behind it, so that none of it is
 * without inference. */
static int serve_busy(struct interfere *t, struct interfere_run *r, size_t jobs) {
  size_t submitted = 0;
  for (size_t reaped = 0; reaped <= jobs && !cli_stopped(); ++reaped) {
    for (; submitted - reaped < QUEUED; ++submitted)
      if (submit(t, (uint32_t)(submitted % REQUESTS), CT_NO_CYCLE)) return 1;
    if (load_until_count(&t->load, &t->served_count, 1)) return 1;
    if (cli_stopped()) break;
    if (!reaped && window_open(t, r)) return 1;
    if (reaped == jobs && window_close(t, r)) return 1;
    if (check(t, r, (uint32_t)(reaped % REQUESTS))) return 1;
    if (!reaped) continue;
    r->latency[r->jobs++] = t->served.end - t->served.start;
    r->served_cycles += t->served.end - t->served.start;
    show(t, (double)r->jobs / (double)jobs);
  }
  return 0;
}

static int drain(struct interfere *t) {
  t->training = false;
  return load_drain(&t->load);
}

/* Until the load is in its stride; *end: when the last step of that was done. */
static int warm_up(struct interfere *t, uint64_t *end) {
  t->training = true;
  const int status = load_until_count(&t->load, &t->steps_done, WARM_JOBS);
  *end = t->load.clock;
  return status;
}

/* ---- The runs ---- */

static int make_room(const struct interfere *t, struct interfere_run *r, size_t jobs) {
  r->latency = calloc(jobs, sizeof *r->latency);
  if (t->refused > 0) r->refused = calloc(jobs, sizeof *r->refused);
  if (r->latency && (r->refused || t->refused == 0)) return 0;
  return cli_fail("no memory for %zu jobs", jobs);
}

/* The first jobs also load what stays in the scratchpad. */
int interfere_service(struct interfere *t, size_t jobs, uint64_t *cycles) {
  struct interfere_run few = {.jobs = 0};
  uint64_t now = 0;
  t->gap_range = 1;
  const int status =
      make_room(t, &few, jobs) || load_now(&t->load, &now) || serve(t, &few, jobs, now);
  *cycles = few.jobs ? few.latency[few.jobs - 1] : 0;
  free(few.latency);
  free(few.refused);
  return status;
}

/* What a job takes alone decides the gaps, unless those of a file are known: on the average they
 * are as long. */
static int calibrate(struct interfere *t) {
  const uint64_t known = t->gap_range;
  uint64_t service = 0;
  const int status = interfere_service(t, WARM_JOBS, &service);
  t->gap_range = t->o->gap ? t->o->gap - GAP_LEAST + 1 : 2 * service;
  if (!t->o->gap && t->gap_range > 3 * (uint64_t)GAP_LEAST) t->gap_range -= 2 * (uint64_t)GAP_LEAST;
  if (known) t->gap_range = known;
  return status;
}

static int run_alone(struct interfere *t) {
  struct interfere_run *r = &t->alone;
  if (calibrate(t)) return 1;
  if (t->o->alone) return 0;
  return make_room(t, r, t->o->jobs) || window_open(t, r) ||
         serve(t, r, t->o->jobs, r->window.from) || window_close(t, r);
}

/* Jobs are placed by the end of a step and not by the host's clock, so that a run does not depend
 * on how long the host's accesses take: with --alone it is the same as without. */
static int run_together(struct interfere *t) {
  struct interfere_run *r = &t->together;
  uint64_t end = 0;
  return warm_up(t, &end) || make_room(t, r, t->o->jobs) || window_open(t, r) ||
         serve(t, r, t->o->jobs, end + SETTLE) || window_close(t, r);
}

/* Whole steps, from the end of one to the end of another, for at least as long as the run of both
 * (or WINDOW_MOST): a step has phases of different speed, and the counters of an unfinished one
 * would not be a step's. */
static int run_train_alone(struct interfere *t) {
  const struct load_window *both = &t->together.window;
  struct load_window *w = &t->train_alone.window;
  uint64_t now = 0;
  if (warm_up(t, &now) || window_open(t, &t->train_alone)) return 1;
  const uint64_t as_long = both->to - both->from;
  const uint64_t end = w->from + (as_long < WINDOW_MOST ? as_long : WINDOW_MOST);
  while (now < end && !cli_stopped()) {
    if (load_until_count(&t->load, &t->steps_done, 1) || load_now(&t->load, &now)) return 1;
    show(t, (double)(now - w->from) / (double)(end - w->from + 1));
  }
  return window_close(t, &t->train_alone);
}

/* A share of the jobs, as many as fit into WINDOW_MOST, but not too few. */
static size_t busy_jobs(const struct interfere *t) {
  const size_t share = t->o->jobs / BUSY_SHARE;
  const size_t fit =
      t->alone.served_cycles ? WINDOW_MOST * t->alone.jobs / t->alone.served_cycles : share;
  const size_t jobs = share < fit ? share : fit;
  return jobs > BUSY_LEAST ? jobs : BUSY_LEAST;
}

static int run_busy(struct interfere *t) {
  const size_t jobs = busy_jobs(t);
  uint64_t end;
  return warm_up(t, &end) || make_room(t, &t->busy, jobs) || serve_busy(t, &t->busy, jobs);
}

int interfere_runs(struct interfere *t) {
  static const struct {
    int (*run)(struct interfere *);
    const char *label;
  } runs[] = {{run_alone, "inference alone"},
              {run_together, "both"},
              {run_train_alone, "training alone"},
              {run_busy, "both, back to back"}};
  if (t->o->alone && interfere_alone_read(t)) return 1;
  if (t->refused > 0 && interfere_unrefused(t)) return 1;
  const size_t count = t->o->load == LOAD_NONE ? 1 : sizeof runs / sizeof *runs;
  for (size_t i = 0; i < count && !cli_stopped(); ++i) {
    ct_progress_open(&t->load.progress, stderr);
    t->label = runs[i].label;
    const int status = runs[i].run(t) || drain(t);
    ct_progress_close(&t->load.progress);
    if (status) return 1;
  }
  return 0;
}
