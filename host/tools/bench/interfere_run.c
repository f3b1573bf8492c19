/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/lib/queue/ct_queue.h"
#include "interfere.h"

enum {
  WAIT_MS = 1000,
  WARM_JOBS = 2,
  BUSY_SHARE = 4,
  BUSY_LEAST = 8,
  QUEUED = 3,
  SETTLE = 4096, /* cycles in which a window opens, however long a counter takes to be read */
  WINDOW_MOST = 10000000 /* cycles; twenty training steps of the largest network at 16 bytes each */
};

static void show(struct interfere *t, double fraction) {
  const struct ct_progress_state state = {
      .label = t->label, .known = CT_PROGRESS_FRACTION, .fraction = fraction};
  if (t->label) ct_progress_update(&t->progress, &state);
}

/* ---- Windows ---- */

static int read_counters(struct interfere *t, uint64_t counter[2][COUNTERS]) {
  int rc = ct_counters(t->dev, CT_INFERENCE, counter[CT_INFERENCE], COUNTERS);
  if (rc >= 0) rc = ct_counters(t->dev, CT_TRAINING, counter[CT_TRAINING], COUNTERS);
  return rc < 0 ? rc : 0;
}

static int window_open(struct interfere *t, struct interfere_run *r) {
  interfere_clear(t);
  r->steps = t->steps_done;
  const int rc = read_counters(t, r->counter);
  return rc < 0 ? rc : ct_now(t->dev, &r->from);
}

static int window_close(struct interfere *t, struct interfere_run *r) {
  uint64_t now[2][COUNTERS] = {{0}};
  int rc = read_counters(t, now);
  if (rc >= 0) rc = ct_now(t->dev, &r->to);
  for (unsigned c = 0; c < 2; ++c)
    for (unsigned i = 0; i < COUNTERS; ++i)
      r->counter[c][i] = now[c][i] - r->counter[c][i];
  r->steps = t->steps_done - r->steps;
  r->probe = t->live;
  r->done = rc >= 0;
  return rc < 0 ? rc : 0;
}

/* ---- Jobs ---- */

static int submit(struct interfere *t, uint32_t request, uint64_t cycle) {
  struct ct_job job = {.program = t->infer};
  job.args[CT_INFER_IMAGE - 1] = (uint32_t)(ct_weights_address(t->weights) / CT_UNIT);
  job.args[CT_INFER_OUT - 1] = (uint32_t)((t->out + request * t->out_pitch) / CT_UNIT);
  job.args[CT_INFER_ROW - 1] = (uint32_t)((t->rows + request * t->row_pitch) / CT_UNIT);
  return ct_submit_at(t->dev, CT_INFERENCE, &job, cycle, NULL);
}

/* Takes one result; *mine: it is an inference job's. Keeps training going. */
static int reap(struct interfere *t, struct ct_event *result, bool *mine) {
  int rc = interfere_train(t);
  *mine = false;
  if (rc >= 0) rc = ct_reap(t->dev, result, WAIT_MS);
  if (rc == CT_ERR_TIMEOUT) return 0;
  if (rc < 0) return rc;
  if (result->error) return ct_event_error(t->dev, result);
  *mine = result->queue == CT_INFERENCE;
  if (result->user == t) ++t->steps_done;
  return 0;
}

/* The answer is emu:'s; it is wiped out, so that the next has to be made again. */
static int check(struct interfere *t, struct interfere_run *r, uint32_t request) {
  uint8_t *got = calloc(1, t->out_pitch);
  if (!got) return CT_ERR_MEMORY;
  const uint64_t at = t->out + request * t->out_pitch;
  const size_t size = t->net.width[t->net.layers] * sizeof(float);
  int rc = ct_mem_read(t->dev, at, got, size);
  r->wrong += memcmp(got, t->expected + request * t->out_pitch, size) != 0;
  memset(got, 0xff, size);
  if (rc >= 0) rc = ct_mem_write(t->dev, at, got, size);
  free(got);
  return rc;
}

/* One job at a time: number i a gap after number i - 1, the first one a gap after cycle `end`. */
static int serve(struct interfere *t, struct interfere_run *r, size_t jobs, uint64_t end) {
  struct ct_rand rand;
  int rc = 0;
  ct_rand_seed(&rand, t->o->seed + 1, CT_RAND_STREAM_INTERFERENCE);
  for (size_t i = 0; rc >= 0 && i < jobs && !cli_stopped(); ++i) {
    const uint64_t gap = GAP_LEAST + ct_rand_below(&rand, t->gap_range);
    const uint32_t request = (uint32_t)ct_rand_below(&rand, REQUESTS);
    struct ct_event result;
    bool mine = false;
    t->refusals.from = end + gap;
    rc = submit(t, request, end + gap);
    while (rc >= 0 && !mine && !cli_stopped())
      rc = reap(t, &result, &mine);
    if (rc < 0 || !mine) break;
    if (r->refused) r->refused[r->jobs] = interfere_refused_until(t, result.end);
    r->latency[r->jobs++] = result.end - result.arrive;
    r->served_cycles += result.end - result.arrive;
    end = result.end;
    rc = check(t, r, request);
    show(t, (double)(i + 1) / (double)jobs);
  }
  return rc;
}

/* Jobs back to back: the next ones are queued before one ends. The window is from the end of a
 * first job to the end of the last that counts, with others behind it, so that none of it is
 * without inference. */
static int serve_busy(struct interfere *t, struct interfere_run *r, size_t jobs) {
  size_t submitted = 0, reaped = 0;
  int rc = 0;
  while (rc >= 0 && reaped <= jobs && !cli_stopped()) {
    struct ct_event result;
    bool mine = false;
    while (rc >= 0 && submitted - reaped < QUEUED)
      rc = submit(t, (uint32_t)(submitted++ % REQUESTS), CT_NO_CYCLE);
    if (rc >= 0) rc = reap(t, &result, &mine);
    if (rc < 0 || !mine) continue;
    if (!reaped) rc = window_open(t, r);
    if (reaped == jobs) rc = window_close(t, r);
    if (rc >= 0) rc = check(t, r, (uint32_t)(reaped % REQUESTS));
    if (!reaped++) continue;
    r->latency[r->jobs++] = result.end - result.start;
    r->served_cycles += result.end - result.start;
    show(t, (double)r->jobs / (double)jobs);
  }
  return rc;
}

static int drain(struct interfere *t) {
  struct ct_event result;
  bool mine;
  int rc = 0;
  t->training = false;
  while (rc >= 0 && ct_outstanding(t->dev, CT_INFERENCE) + ct_outstanding(t->dev, CT_TRAINING))
    rc = reap(t, &result, &mine);
  return rc;
}

/* Until the load is in its stride; *end: when the last step of that was done. */
static int warm_up(struct interfere *t, uint64_t *end) {
  const uint64_t until = t->steps_done + WARM_JOBS;
  struct ct_event result = {.end = 0};
  bool mine;
  int rc = 0;
  t->training = true;
  while (rc >= 0 && t->steps_done < until && !cli_stopped())
    rc = reap(t, &result, &mine);
  *end = result.end;
  return rc;
}

/* ---- The runs ---- */

static int make_room(const struct interfere *t, struct interfere_run *r, size_t jobs) {
  r->latency = calloc(jobs, sizeof *r->latency);
  if (t->refused > 0) r->refused = calloc(jobs, sizeof *r->refused);
  return r->latency && (r->refused || t->refused == 0) ? 0 : CT_ERR_MEMORY;
}

/* The first jobs also load what stays in the scratchpad. */
int interfere_service(struct interfere *t, size_t jobs, uint64_t *cycles) {
  struct interfere_run few = {.jobs = 0};
  uint64_t now = 0;
  t->gap_range = 1;
  int rc = make_room(t, &few, jobs);
  if (rc >= 0) rc = ct_now(t->dev, &now);
  if (rc >= 0) rc = serve(t, &few, jobs, now);
  *cycles = few.jobs ? few.latency[few.jobs - 1] : 0;
  free(few.latency);
  free(few.refused);
  return rc;
}

/* What a job takes alone decides the gaps, unless those of a file are known: on the average they
 * are as long. */
static int calibrate(struct interfere *t) {
  const uint64_t known = t->gap_range;
  uint64_t service = 0;
  const int rc = interfere_service(t, WARM_JOBS, &service);
  t->gap_range = t->o->gap ? t->o->gap - GAP_LEAST + 1 : 2 * service;
  if (!t->o->gap && t->gap_range > 3 * (uint64_t)GAP_LEAST) t->gap_range -= 2 * (uint64_t)GAP_LEAST;
  if (known) t->gap_range = known;
  return rc;
}

static int run_alone(struct interfere *t) {
  int rc = calibrate(t);
  if (t->o->alone) return rc;
  if (rc >= 0) rc = make_room(t, &t->alone, t->o->jobs);
  if (rc >= 0) rc = window_open(t, &t->alone);
  if (rc >= 0) rc = serve(t, &t->alone, t->o->jobs, t->alone.from);
  return rc < 0 ? rc : window_close(t, &t->alone);
}

/* Jobs are placed by the end of a step and not by the host's clock, so that a run does not depend
 * on how long the host's accesses take: with --alone it is the same as without. */
static int run_together(struct interfere *t) {
  uint64_t end = 0;
  int rc = warm_up(t, &end);
  if (rc >= 0) rc = make_room(t, &t->together, t->o->jobs);
  if (rc >= 0) rc = window_open(t, &t->together);
  if (rc >= 0) rc = serve(t, &t->together, t->o->jobs, end + SETTLE);
  if (rc >= 0) rc = window_close(t, &t->together);
  const int drained = drain(t);
  return rc < 0 ? rc : drained;
}

/* Whole steps, from the end of one to the end of another, for at least as long as the run of both
 * (or WINDOW_MOST): a step has phases of different speed, and the counters of an unfinished one
 * would not be a step's. */
static int run_train_alone(struct interfere *t) {
  struct ct_event result;
  uint64_t now = 0;
  bool mine;
  int rc = warm_up(t, &now);
  if (rc >= 0) rc = window_open(t, &t->train_alone);
  const uint64_t as_long = t->together.to - t->together.from;
  const uint64_t end = t->train_alone.from + (as_long < WINDOW_MOST ? as_long : WINDOW_MOST);
  while (rc >= 0 && now < end && !cli_stopped()) {
    const uint64_t done = t->steps_done;
    while (rc >= 0 && t->steps_done == done && !cli_stopped())
      rc = reap(t, &result, &mine);
    if (rc >= 0) rc = ct_now(t->dev, &now);
    show(t, (double)(now - t->train_alone.from) / (double)(end - t->train_alone.from + 1));
  }
  if (rc >= 0) rc = window_close(t, &t->train_alone);
  const int drained = drain(t);
  return rc < 0 ? rc : drained;
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
  int rc = warm_up(t, &end);
  if (rc >= 0) rc = make_room(t, &t->busy, jobs);
  if (rc >= 0) rc = serve_busy(t, &t->busy, jobs);
  const int drained = drain(t);
  return rc < 0 ? rc : drained;
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
    ct_progress_open(&t->progress, stderr);
    t->label = runs[i].label;
    const int rc = runs[i].run(t);
    ct_progress_close(&t->progress);
    if (rc < 0) return cli_fail_device(t->dev, rc, "measuring");
  }
  return 0;
}
