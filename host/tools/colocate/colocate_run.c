/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "colocate.h"
#include "ct_arrivals.h"
#include "ct_stats.h"

/* WAIT_MS: how long Ctrl-C may go unnoticed. LEAD: cycles between handing over the first requests
 * and the first arrival. RECENT: answers that the accuracy on the progress line is taken over.
 * OTHER_PERCENT: how long a run under another policy may take, against its arrivals. */
enum { WAIT_MS = 1000, LEAD = 20000, RECENT = 200, DRAIN_TURNS = 100000, OTHER_PERCENT = 150 };

/* ---- Progress ---- */

static double recent_accuracy(const struct colocate *c, const struct server *s) {
  const size_t from = s->done > RECENT ? s->done - RECENT : 0;
  size_t right = 0;
  for (size_t i = from; i < s->done; ++i)
    right +=
        s->request[i].answered && s->request[i].answer == c->ds.test.labels[s->request[i].sample];
  return (double)right / (double)(s->done - from);
}

/* Cycles until the last request arrives. */
static double serving_rest(const struct colocate *c, const struct server *s) {
  const uint64_t last = s->request[s->count - 1].scheduled;
  return last > c->clock ? (double)(last - c->clock) : 0;
}

/* Cycles until the model is trained, at the pace since it began to serve. */
static double training_rest(const struct colocate *c) {
  const uint64_t steps = c->feed.finished - c->warm_steps;
  if (c->feed.finished <= c->warm_steps) return 0;
  return (double)(c->clock - c->begun) / (double)steps * (double)(c->steps - c->feed.finished);
}

/* Cycles that the runs under other policies will take at most, from number first on. */
static double others_rest(const struct colocate *c, size_t first) {
  if (!c->o->compare) return 0;
  const uint64_t span = c->arrivals[c->other[0].server.count - 1];
  return (double)(POLICIES - 1 - first) * OTHER_PERCENT / 100 * (double)span;
}

/* rest: cycles that this run and the later ones will take; below 0: nobody knows. */
static void show(struct colocate *c, double rest) {
  struct ct_progress_state *state = &c->state;
  const double done = (double)(c->clock - c->begun);
  state->label = c->label;
  state->known &= CT_PROGRESS_P99;
  if (rest >= 0 && done > 0) {
    state->known |= CT_PROGRESS_FRACTION;
    state->fraction = done / (done + rest);
  }
  if (c->feed.finished) {
    state->known |= CT_PROGRESS_LOSS;
    state->loss = (double)c->losses[c->feed.finished - 1];
  }
  const struct server *s = c->server;
  if (s && s->done && s != &c->probe) {
    state->known |= CT_PROGRESS_ACCURACY;
    state->accuracy = recent_accuracy(c, s);
    if (s->done % 64 == 0 && c->info.has_clock) {
      const struct latency l = latency_of(s, true);
      state->known = l.measured ? state->known | CT_PROGRESS_P99 : state->known & ~CT_PROGRESS_P99;
      state->p99 = (double)l.p99 * 1e6 / (double)c->info.clock_hz;
    }
  }
  ct_progress_update(&c->progress, state);
  colocate_live(c);
}

/* ---- One turn ---- */

/* Steps after which version number index + 1 is published. */
static uint64_t version_step(const struct colocate *c, size_t index) {
  return index ? index * c->feed.per_epoch : c->warm_steps;
}

static bool is_publishing_due(const struct colocate *c) {
  const size_t next = c->versions.submitted;
  return next < c->versions.room && c->feed.submitted == version_step(c, next);
}

/* Publishes, trains, publishes ... up to feed_end; then lets the second model train. */
static int top_up_training(struct colocate *c) {
  for (;;) {
    int rc;
    if (is_publishing_due(c))
      rc = versions_publish(&c->versions, c->feed.submitted);
    else if (c->feed.submitted < c->feed_end)
      rc = feeder_submit(&c->feed);
    else if (c->fill)
      rc = feeder_submit(&c->filler);
    else
      return 0;
    if (rc < 0) return rc;
  }
}

static int top_up_serving(struct server *s) {
  int rc = 0;
  while (rc >= 0)
    rc = server_submit(s);
  return rc;
}

static int dispatch(struct colocate *c, const struct ct_event *result) {
  static const char *const names[] = {"a training step", "the publishing of a version"};
  const struct job *job = result->user;
  float loss;
  int rc;
  if (c->trace && job && !result->error) colocate_trace_job(c, job, result);
  if (result->error && (!job || job->kind != JOB_REQUEST))
    return cli_fail("%s failed on the device: %s (address 0x%" PRIx32 ")",
                    names[job ? job->kind : JOB_STEP], ct_code_text(result->code), result->address);
  if (!job) return 0; /* a part of a step */
  if (job->kind == JOB_REQUEST) {
    rc = server_finish(job->owner, job, result);
  } else if (job->kind == JOB_PUBLISH) {
    rc = versions_finish(job->owner, job, result);
  } else {
    rc = feeder_finish(job->owner, job, &loss);
    if (job->owner == &c->feed) c->losses[job->index] = loss;
  }
  return rc < 0 ? cli_fail_device(c->dev, rc, "reading a result") : 0;
}

/* Hands over what there is room for and takes one result, if one comes before the given cycle. */
static int turn(struct colocate *c, uint64_t until) {
  struct ct_event result;
  int rc = top_up_training(c);
  if (rc < 0 && rc != CT_ERR_FULL) return cli_fail_device(c->dev, rc, "submitting training");
  rc = c->server ? top_up_serving(c->server) : 0;
  if (rc < 0 && rc != CT_ERR_FULL) return cli_fail_device(c->dev, rc, "submitting a request");
  if (c->traced) colocate_trace_turn(c);
  if (c->server && c->server->due < until) until = c->server->due;
  rc = until == CT_NO_CYCLE ? ct_reap(c->dev, &result, WAIT_MS)
                            : ct_reap_until(c->dev, &result, until, WAIT_MS);
  if (rc == CT_ERR_TIMEOUT) return 0;
  if (rc < 0) return cli_fail_device(c->dev, rc, "waiting for the device");
  if (result.end != CT_NO_CYCLE && result.end > c->clock) c->clock = result.end;
  return dispatch(c, &result);
}

static bool is_busy(const struct colocate *c) {
  return ct_outstanding(c->dev, CT_INFERENCE) + ct_outstanding(c->dev, CT_TRAINING) > 0;
}

/* Whether the model still has steps to take or versions to publish, or any job is under way. */
static bool is_training(const struct colocate *c) {
  return c->feed.finished < c->feed_end || is_publishing_due(c) || is_busy(c);
}

/* Submits nothing more and waits for what was submitted. */
static int drain(struct colocate *c) {
  c->feed_end = c->feed.submitted;
  c->fill = false;
  if (c->server) c->server->limit = c->server->submitted;
  for (int turns = 0; is_busy(c); ++turns) {
    if (turn(c, CT_NO_CYCLE)) return 1;
    if (turns >= DRAIN_TURNS) return cli_fail("the device does not finish its jobs");
  }
  c->server = NULL;
  return 0;
}

/* ---- Windows ---- */

static int read_clock(struct colocate *c, uint64_t *cycle) {
  const int rc = ct_now(c->dev, cycle);
  return rc < 0 ? cli_fail_device(c->dev, rc, "reading the clock") : 0;
}

/* Training's first: how much it did is a result, and reading takes a while. */
static int read_counters(struct colocate *c, uint64_t counter[2][CT_MAX_COUNTERS]) {
  int rc = ct_counters(c->dev, CT_TRAINING, counter[CT_TRAINING], CT_MAX_COUNTERS);
  if (rc >= 0) rc = ct_counters(c->dev, CT_INFERENCE, counter[CT_INFERENCE], CT_MAX_COUNTERS);
  return rc < 0 ? cli_fail_device(c->dev, rc, "reading the counters") : 0;
}

static int window_open(struct colocate *c, struct window *w) {
  return read_clock(c, &w->from) || read_counters(c, w->counter);
}

static int window_close(struct colocate *c, struct window *w) {
  uint64_t now[2][CT_MAX_COUNTERS] = {{0}};
  if (read_clock(c, &w->to) || read_counters(c, now)) return 1;
  for (unsigned i = 0; i < CT_MAX_COUNTERS; ++i)
    for (unsigned q = 0; q < 2; ++q)
      w->counter[q][i] = now[q][i] - w->counter[q][i];
  w->closed = true;
  return 0;
}

/* Turns until the device's clock shows cycle. */
static int turn_until(struct colocate *c, uint64_t cycle) {
  uint64_t now = 0;
  while (!cli_stopped()) {
    if (read_clock(c, &now)) return 1;
    if (now >= cycle) break;
    if (turn(c, cycle)) return 1;
  }
  return 0;
}

/* ---- The runs ---- */

static int run_warm_up(struct colocate *c) {
  c->label = "warm-up";
  c->feed_end = c->warm_steps;
  while (c->versions.published < 1 && !cli_stopped()) {
    if (turn(c, CT_NO_CYCLE)) return 1;
    show(c, -1);
  }
  return 0;
}

/* Makes the list of arrivals from what the requests took back to back. */
static int run_capacity(struct colocate *c) {
  c->label = "capacity";
  c->server = &c->probe;
  while (c->probe.done < c->probe.count && !cli_stopped()) {
    if (turn(c, CT_NO_CYCLE)) return 1;
    show(c, -1);
  }
  if (cli_stopped()) return 0;
  if (c->probe.failed)
    return cli_fail("%zu requests failed on the device before training began", c->probe.failed);
  c->server = NULL;
  c->capacity_done = c->probe.count - 1;
  c->capacity_busy = c->probe.request[c->probe.count - 1].end - c->probe.request[0].end;
  c->mean_q16 = ct_arrivals_mean_q16(c->capacity_busy, c->capacity_done, c->o->permille);
  if (ct_arrivals_poisson(c->l->seed, c->mean_q16, c->arrivals, c->serve.count))
    return cli_fail("no arrivals can be made for a load of %.3f; choose --load nearer to 1",
                    (double)c->o->permille / 1000);
  return 0;
}

/* Requests as scheduled; the window, if any, goes from the first arrival to the last completion. */
static int run_arrivals(struct colocate *c, struct server *s, struct window *w) {
  uint64_t now = 0;
  if (read_clock(c, &now)) return 1;
  server_schedule(s, now + LEAD, c->arrivals);
  c->server = s;
  if (s == &c->serve) colocate_trace_begin(c, s->request[0].scheduled);
  if (turn_until(c, s->request[0].scheduled)) return 1;
  if (w && window_open(c, w)) return 1;
  while (s->done < s->count && c->clock < c->give_up && !cli_stopped()) {
    if (turn(c, CT_NO_CYCLE)) return 1;
    const double serving = serving_rest(c, s), training = w ? training_rest(c) : 0;
    show(c, (serving > training ? serving : training) + c->later);
  }
  if (w && window_close(c, w)) return 1;
  return 0;
}

static int run_together(struct colocate *c) {
  c->label = "serving and training";
  c->feed_end = c->steps;
  c->fill = true;
  c->begun = c->clock;
  ct_progress_clear(&c->progress); /* time left counts from here */
  ct_progress_open(&c->progress, stderr);
  c->later = 2 * (double)c->arrivals[c->serve.count - 1] + others_rest(c, 0);
  if (run_arrivals(c, &c->serve, &c->together)) return 1;
  c->filler_steps = c->filler.finished;
  c->fill = false;
  c->server = NULL;
  c->label = "training on";
  while (is_training(c) && !cli_stopped()) {
    if (turn(c, CT_NO_CYCLE)) return 1;
    show(c, training_rest(c) + c->later);
  }
  return 0;
}

static int run_alone(struct colocate *c) {
  c->label = "serving alone";
  c->later = (double)(c->together.to - c->together.from) + others_rest(c, 0);
  return run_arrivals(c, &c->alone, NULL);
}

/* Has the second model train; waits until the first of its steps is through. */
static int start_filler(struct colocate *c) {
  const uint64_t before = c->filler.finished;
  c->server = NULL;
  c->fill = true;
  while (c->filler.finished == before && !cli_stopped())
    if (turn(c, CT_NO_CYCLE)) return 1;
  return 0;
}

static int run_train_alone(struct colocate *c) {
  const uint64_t length = c->together.to - c->together.from;
  c->label = "training alone";
  if (start_filler(c) || window_open(c, &c->train_alone)) return 1;
  const uint64_t end = c->train_alone.from + length;
  for (uint64_t part = 1; part <= 100 && !cli_stopped(); ++part) {
    if (turn_until(c, end - length / 100 * (100 - part))) return 1;
    show(c, (end > c->clock ? (double)(end - c->clock) : 0) + others_rest(c, 0));
  }
  return window_close(c, &c->train_alone);
}

/* The first of the arrivals under another policy, until they are answered or half as much time
 * again is over. */
static int run_other(struct colocate *c, struct other *o) {
  uint64_t now = 0;
  char label[32];
  snprintf(label, sizeof label, "under %s", ct_policy_name(o->policy));
  c->label = label;
  c->state.known = 0;
  const int rc = ct_set_policy(c->dev, o->policy);
  if (rc < 0) return cli_fail_device(c->dev, rc, "setting the policy");
  if (start_filler(c) || read_clock(c, &now)) return 1;
  if (cli_stopped()) return 0;
  o->run = true;
  c->give_up = now + LEAD + c->arrivals[o->server.count - 1] / 100 * OTHER_PERCENT;
  const int status = run_arrivals(c, &o->server, &o->window);
  c->give_up = CT_NO_CYCLE;
  c->label = "";
  return status || drain(c);
}

static int run_others(struct colocate *c) {
  for (size_t i = 0; i < POLICIES - 1 && c->o->compare && !cli_stopped(); ++i) {
    c->later = others_rest(c, i + 1);
    if (run_other(c, &c->other[i])) return 1;
  }
  const int rc = ct_set_policy(c->dev, c->o->policy);
  return rc < 0 ? cli_fail_device(c->dev, rc, "setting the policy") : 0;
}

/* Without a clock: a step, then the requests that are due by then; one queue at a time, so the
 * same versions answer the same requests every time. */
static int run_in_turns(struct colocate *c) {
  const uint64_t all = c->steps - c->warm_steps;
  c->label = "serving and training";
  c->server = &c->serve;
  for (uint64_t s = 1; s <= all + 1 && !cli_stopped(); ++s) {
    c->feed_end = s <= all ? c->warm_steps + s : c->steps;
    c->serve.limit = c->serve.done;
    while (is_training(c))
      if (turn(c, CT_NO_CYCLE)) return 1;
    c->serve.limit = s <= all ? s * c->serve.count / all : c->serve.count;
    while (c->serve.done < c->serve.limit)
      if (turn(c, CT_NO_CYCLE)) return 1;
    c->clock = s; /* nothing else tells the time */
    show(c, (double)(all + 1 - s));
  }
  return 0;
}

static int run_all(struct colocate *c) {
  static int (*const runs[])(struct colocate *) = {run_capacity, run_together, run_alone,
                                                   run_train_alone, run_others};
  if (run_warm_up(c)) return 1;
  if (!c->info.has_clock) return cli_stopped() ? 0 : run_in_turns(c);
  for (size_t i = 0; i < sizeof runs / sizeof *runs && !cli_stopped(); ++i)
    if (runs[i](c)) return 1;
  return 0;
}

int colocate_runs(struct colocate *c) {
  int status = run_all(c);
  if (!status) status = drain(c);
  c->trained = c->feed.finished == c->steps;
  return status;
}
