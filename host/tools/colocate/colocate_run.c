/* SPDX-License-Identifier: Apache-2.0 */

#include "colocate.h"

/* RECENT: answers that the accuracy on the progress line is taken over. OTHER_PERCENT: how long a
 * run under another policy may take, against its arrivals. */
enum { RECENT = 200, OTHER_PERCENT = 150 };

/* ---- Progress ---- */

static double recent_accuracy(const struct colocate *c, const struct server *s) {
  const size_t from = s->run.done > RECENT ? s->run.done - RECENT : 0;
  size_t right = 0;
  for (size_t i = from; i < s->run.done; ++i)
    right += s->run.request[i].answered &&
             s->run.request[i].answer == c->ds.test.labels[s->run.request[i].sample];
  return (double)right / (double)(s->run.done - from);
}

/* Cycles until the last request arrives. */
static double serving_rest(const struct colocate *c, const struct server *s) {
  const uint64_t last = s->run.request[s->run.count - 1].scheduled;
  return last > c->load.clock ? (double)(last - c->load.clock) : 0;
}

/* Cycles until the model is trained, at the pace since it began to serve. */
static double training_rest(const struct colocate *c) {
  const uint64_t steps = c->feed.finished - c->warm_steps;
  if (c->feed.finished <= c->warm_steps) return 0;
  return (double)(c->load.clock - c->begun) / (double)steps * (double)(c->steps - c->feed.finished);
}

/* Cycles that the runs under other policies will take at most, from number first on. */
static double others_rest(const struct colocate *c, size_t first) {
  if (!c->o->compare) return 0;
  const uint64_t span = c->arrivals.cycle[c->other[0].server.run.count - 1];
  return (double)(POLICIES - 1 - first) * OTHER_PERCENT / 100 * (double)span;
}

/* rest: cycles that this run and the later ones will take; below 0: nobody knows. */
static void show(struct colocate *c, double rest) {
  struct ct_progress_state *state = &c->state;
  const double done = (double)(c->load.clock - c->begun);
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
  if (s && s->run.done && s != &c->probe) {
    state->known |= CT_PROGRESS_ACCURACY;
    state->accuracy = recent_accuracy(c, s);
    if (s->run.done % 64 == 0 && c->load.info.has_clock) {
      const struct ct_stats l = latency_of(s, true);
      state->known = l.count ? state->known | CT_PROGRESS_P99 : state->known & ~CT_PROGRESS_P99;
      state->p99 = (double)l.p99 * 1e6 / (double)c->load.info.clock_hz;
    }
  }
  ct_progress_update(&c->load.progress, state);
  colocate_live(c);
}

/* ---- One turn ---- */

/* Steps after which version number index + 1 is published. */
static uint64_t version_step(const struct colocate *c, size_t index) {
  return index ? index * c->feed.order.per_epoch : c->warm_steps;
}

static bool is_publishing_due(const struct colocate *c) {
  const size_t next = c->versions.submitted;
  return next < c->versions.room && c->feed.submitted == version_step(c, next);
}

/* Publishes, trains, publishes ... up to feed_end; then lets the second model train. */
static int top_up_training(void *arg) {
  struct colocate *c = arg;
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

/* A part of the load, as are the next ones. */
static int top_up_serving(void *arg) {
  struct colocate *c = arg;
  int rc = 0;
  while (c->server && rc >= 0)
    rc = server_submit(c->server);
  if (c->server) c->load.due = c->server->due;
  return rc;
}

static int take(void *arg, const struct ct_event *result) {
  static const char *const names[] = {"a training step", "the publishing of a version"};
  struct colocate *c = arg;
  const struct job *job = result->user;
  float loss;
  int rc;
  if (c->trace && job && !result->error) colocate_trace_job(c, job, result);
  if (result->error && (!job || job->kind != JOB_REQUEST))
    return load_job_failed(result, names[job ? job->kind : JOB_STEP]);
  if (!job) return 0; /* a part of a step */
  if (job->kind == JOB_REQUEST) {
    rc = server_finish(job->owner, job, result);
  } else if (job->kind == JOB_PUBLISH) {
    rc = versions_finish(job->owner, job, result);
  } else {
    rc = feeder_finish(job->owner, job, &loss);
    if (job->owner == &c->feed) c->losses[job->index] = loss;
  }
  return load_check(&c->load, rc, "reading a result");
}

void colocate_parts(struct colocate *c) {
  c->load.part[0] = (struct load_part){"submitting training", top_up_training, c};
  c->load.part[1] = (struct load_part){"submitting a request", top_up_serving, c};
  c->load.part[2] = (struct load_part){"--trace", colocate_trace_turn, c};
  c->load.take = take;
  c->load.arg = c;
}

/* Whether the model still has steps to take or versions to publish, or any job is under way. */
static bool is_training(const struct colocate *c) {
  return c->feed.finished < c->feed_end || is_publishing_due(c) || load_is_busy(&c->load);
}

/* Submits nothing more and waits for what was submitted. */
static int drain(struct colocate *c) {
  c->feed_end = c->feed.submitted;
  c->fill = false;
  if (c->server) c->server->limit = c->server->run.pushed;
  if (load_drain(&c->load)) return 1;
  c->server = NULL;
  return 0;
}

/* ---- The runs ---- */

static int run_warm_up(struct colocate *c) {
  c->label = "warm-up";
  c->feed_end = c->warm_steps;
  while (c->versions.published < 1 && !cli_stopped()) {
    if (load_turn(&c->load, CT_NO_CYCLE)) return 1;
    show(c, -1);
  }
  return 0;
}

/* Makes the list of arrivals from what the requests took back to back. */
static int run_capacity(struct colocate *c) {
  c->label = "capacity";
  c->server = &c->probe;
  while (c->probe.run.done < c->probe.run.count && !cli_stopped()) {
    if (load_turn(&c->load, CT_NO_CYCLE)) return 1;
    show(c, -1);
  }
  if (cli_stopped()) return 0;
  if (c->probe.run.failed)
    return cli_fail("%zu requests failed on the device before training began", c->probe.run.failed);
  c->server = NULL;
  c->capacity_done = c->probe.run.count - 1;
  c->capacity_busy = c->probe.run.request[c->probe.run.count - 1].end - c->probe.run.request[0].end;
  if (arrivals_make(&c->arrivals, c->capacity_busy, c->capacity_done, c->o->permille)) return 1;
  return 0;
}

/* Requests as scheduled; the window, if any, goes from the first arrival to the last completion. */
static int run_arrivals(struct colocate *c, struct server *s, struct load_window *w) {
  uint64_t now = 0;
  if (load_now(&c->load, &now)) return 1;
  requests_schedule(&s->run, now + LOAD_LEAD, c->arrivals.cycle);
  c->server = s;
  if (s == &c->serve) colocate_trace_begin(c, s->run.request[0].scheduled);
  if (load_until(&c->load, s->run.request[0].scheduled)) return 1;
  if (w && load_window_open(&c->load, w)) return 1;
  while (s->run.done < s->run.count && c->load.clock < c->give_up && !cli_stopped()) {
    if (load_turn(&c->load, CT_NO_CYCLE)) return 1;
    const double serving = serving_rest(c, s), training = w ? training_rest(c) : 0;
    show(c, (serving > training ? serving : training) + c->later);
  }
  if (w && load_window_close(&c->load, w)) return 1;
  return 0;
}

static int run_together(struct colocate *c) {
  c->label = "serving and training";
  c->feed_end = c->steps;
  c->fill = true;
  c->begun = c->load.clock;
  ct_progress_clear(&c->load.progress); /* time left counts from here */
  ct_progress_open(&c->load.progress, stderr);
  c->later = 2 * (double)c->arrivals.cycle[c->serve.run.count - 1] + others_rest(c, 0);
  if (run_arrivals(c, &c->serve, &c->together)) return 1;
  c->filler_steps = c->filler.finished;
  c->fill = false;
  c->server = NULL;
  c->label = "training on";
  while (is_training(c) && !cli_stopped()) {
    if (load_turn(&c->load, CT_NO_CYCLE)) return 1;
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
  c->server = NULL;
  c->fill = true;
  return load_until_count(&c->load, &c->filler.finished, 1);
}

static int run_train_alone(struct colocate *c) {
  const uint64_t length = c->together.to - c->together.from;
  c->label = "training alone";
  if (start_filler(c) || load_window_open(&c->load, &c->train_alone)) return 1;
  const uint64_t end = c->train_alone.from + length;
  for (uint64_t part = 1; part <= 100 && !cli_stopped(); ++part) {
    if (load_until(&c->load, end - length / 100 * (100 - part))) return 1;
    show(c, (end > c->load.clock ? (double)(end - c->load.clock) : 0) + others_rest(c, 0));
  }
  return load_window_close(&c->load, &c->train_alone);
}

/* The first of the arrivals under another policy, until they are answered or half as much time
 * again is over. */
static int run_other(struct colocate *c, struct other *o) {
  uint64_t now = 0;
  char label[32];
  snprintf(label, sizeof label, "under %s", ct_policy_name(o->policy));
  c->label = label;
  c->state.known = 0;
  if (load_policy(&c->load, o->policy) || start_filler(c) || load_now(&c->load, &now)) return 1;
  if (cli_stopped()) return 0;
  c->give_up = now + LOAD_LEAD + c->arrivals.cycle[o->server.run.count - 1] / 100 * OTHER_PERCENT;
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
  return load_policy(&c->load, c->o->policy);
}

/* Without a clock: a step, then the requests that are due by then; one queue at a time, so the
 * same versions answer the same requests every time. */
static int run_in_turns(struct colocate *c) {
  const uint64_t all = c->steps - c->warm_steps;
  c->label = "serving and training";
  c->server = &c->serve;
  for (uint64_t s = 1; s <= all + 1 && !cli_stopped(); ++s) {
    c->feed_end = s <= all ? c->warm_steps + s : c->steps;
    c->serve.limit = c->serve.run.done;
    while (is_training(c))
      if (load_turn(&c->load, CT_NO_CYCLE)) return 1;
    c->serve.limit = s <= all ? s * c->serve.run.count / all : c->serve.run.count;
    while (c->serve.run.done < c->serve.limit)
      if (load_turn(&c->load, CT_NO_CYCLE)) return 1;
    c->load.clock = s; /* nothing else tells the time */
    show(c, (double)(all + 1 - s));
  }
  return 0;
}

static int run_all(struct colocate *c) {
  static int (*const runs[])(struct colocate *) = {run_capacity, run_together, run_alone,
                                                   run_train_alone, run_others};
  if (run_warm_up(c)) return 1;
  if (!c->load.info.has_clock) return cli_stopped() ? 0 : run_in_turns(c);
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
