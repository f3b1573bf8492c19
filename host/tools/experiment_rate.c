/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of `experiment batching`: COST, how long batches of 1 .. 16 take on a device that does
 * nothing else, and RATE, whether p99 stays within a bound at some rate of arrivals.
 */
#include <stdlib.h>
#include <string.h>

#include "experiment.h"

/* ROUNDS: batches of each size, the first of them unmeasured. WAIT: cycles after the first request
 * of a batch until it goes; all of them have come by then. LEAD: cycles between handing them over
 * and their arrival. ROW: full batches one after the other. MANY: measured requests in batches,
 * 2,000 full ones. UNIT: cycles that a rate is given for. */
enum { ROUNDS = 4, WAIT = 4000, LEAD = 4000, ROW = 4, MANY = 32000 };
enum { UNIT = 1000000000, WHOLE = 1000 };

/* ---- Settings ---- */

/* Of the rate in batches a run of few full ones says little: it may be above the capacity, and
 * over before p99 shows it. */
size_t exp_rate_measured(const struct exp_point *point) {
  return point->batching.max_batch > 1 ? MANY : point->server->measured;
}

void exp_rate_settings(const struct exp_point *point, json_t *o) {
  const struct exp_batching *b = &point->batching;
  if (point->kind == EXP_COST) {
    json_object_set_new(o, "batches_of_each_size", json_integer(ROUNDS - 1));
    json_object_set_new(o, "batches_in_a_row", json_integer(ROW));
    return;
  }
  json_t *service = json_array();
  for (size_t n = 0; n < EXP_BATCH; ++n)
    json_array_append_new(service, json_integer(b->service[n]));
  json_object_update_new(
      o, json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "batching",
                   ct_batching_name(b->max_batch > 1 ? CT_BATCHING_ADAPTIVE : CT_BATCHING_NONE),
                   "max_batch", (json_int_t)b->max_batch, "bound_cycles", (json_int_t)b->bound,
                   "rate_per_gigacycle", (json_int_t)b->rate, "margin_cycles",
                   (json_int_t)b->margin, "service_cycles", service));
}

static struct serve_options options_of(const struct exp_settings *settings,
                                       const struct exp_point *point, const char *csv) {
  const struct exp_batching *b = &point->batching;
  struct serve_options o = {.device = "sim:",
                            .csv = csv,
                            .models = point->server->models,
                            .requests = SERVE_SAMPLES,
                            .seed = point->seed};
  memcpy(o.shape, point->server->shape, sizeof o.shape[0] * point->server->models);
  if (point->kind == EXP_COST) return o;
  o.requests = exp_point_requests(settings, point);
  o.permille = WHOLE;
  o.arrivals = SERVE_POISSON;
  o.deadline = (uint32_t)b->bound;
  o.serving.batching = b->max_batch > 1 ? CT_BATCHING_ADAPTIVE : CT_BATCHING_NONE;
  o.serving.max_batch = b->max_batch;
  o.serving.margin = b->margin;
  memcpy(o.serving.service, b->service, sizeof b->service);
  return o;
}

/* ---- Cost ---- */

/* Requests that come together, and go in batches of that size. *first: cycles of the first batch
 * from start to end, *interval: from end to end, the mean of the others. */
static int some_batches(struct serve *s, const struct serve_model *m, uint32_t size, uint32_t count,
                        uint64_t *first, uint64_t *interval) {
  struct ct_event record;
  uint64_t now = 0, end = 0;
  int rc = ct_now(s->dev, &now);
  for (uint32_t i = 0; rc >= 0 && i < size * count; ++i) {
    const struct ct_request request = {.rows = m->rows,
                                       .row = i % SERVE_SAMPLES,
                                       .answers = m->answers,
                                       .answer = i,
                                       .cycle = now + LEAD};
    rc = ct_server_push(m->server, &request, NULL);
  }
  for (uint32_t i = 0; rc >= 0 && i < size * count; ++i) {
    rc = ct_reap(s->dev, &record, EXP_PATIENCE_MS);
    if (rc < 0) break;
    if (record.error) return cli_fail("a request failed: %s", ct_code_text(record.code));
    if (record.batch != size)
      return cli_fail("a batch of %u requests was to be measured, but %u went together",
                      (unsigned)size, (unsigned)record.batch);
    if (i < size) {
      end = record.end;
      *first = record.end - record.start;
    }
  }
  if (rc < 0) return cli_fail_device(s->dev, rc, "measuring what a batch costs");
  if (count > 1) *interval = (record.end - end) / (count - 1);
  return 0;
}

static int cost_of(struct serve *s, const struct serve_model *m, uint32_t size, uint64_t *cost) {
  uint64_t cycles[ROUNDS], none;
  for (size_t i = 0; i < ROUNDS && !cli_stopped(); ++i)
    if (some_batches(s, m, size, 1, &cycles[i], &none)) return 1;
  if (cli_stopped()) return 0;
  ct_stats_sort(cycles + 1, ROUNDS - 1);
  *cost = ct_stats_quantile(cycles + 1, ROUNDS - 1, 1, 2);
  return 0;
}

/* The model's server anew: complete batches of that size. */
static int collect(struct serve *s, struct serve_model *m, uint32_t size) {
  const struct ct_serving how = {
      .batching = CT_BATCHING_FIXED, .max_batch = size, .max_wait = WAIT};
  ct_server_free(m->server);
  m->server = NULL;
  const int rc = ct_server_create(m->model, m->weights, &how, &m->server);
  return rc < 0 ? cli_fail_device(s->dev, rc, "a model cannot be served") : 0;
}

/* From end to end of full batches that follow each other; the first ones load the weights. */
static int interval_of(struct serve *s, struct serve_model *m, uint32_t size, uint64_t *interval) {
  uint64_t first;
  if (cli_stopped()) return 0;
  return collect(s, m, size) || some_batches(s, m, size, ROW, &first, interval) ||
         some_batches(s, m, size, ROW, &first, interval);
}

static int costs_of(struct serve *s, struct serve_model *m, const char *label, json_t *list) {
  if (collect(s, m, EXP_BATCH)) return 1;
  for (uint32_t size = 1; size <= EXP_BATCH && !cli_stopped(); ++size) {
    uint64_t cost = 0;
    const struct ct_progress_state state = {
        .label = label, .known = CT_PROGRESS_FRACTION, .fraction = (double)size / EXP_BATCH};
    if (cost_of(s, m, size, &cost)) return 1;
    json_array_append_new(list, json_integer((json_int_t)cost));
    ct_progress_update(&s->progress, &state);
  }
  return 0;
}

/* A request alone, served at once; then batches, which wait until they are complete. */
static int run_cost(struct serve *s, const char *label, json_t *o) {
  struct serve_model *m = &s->model[0];
  uint64_t service = 0, one = 0, full = 0;
  json_t *list = json_array();
  json_object_set_new(o, "cost_cycles", list);
  if (exp_point_ask_alone(s, m, &service) || costs_of(s, m, label, list) ||
      interval_of(s, m, 1, &one) || interval_of(s, m, EXP_BATCH, &full))
    return 1;
  json_object_update_new(
      o, json_pack("{s:I, s:I, s:I, s:I}", "service_cycles", (json_int_t)service, "clock_hz",
                   (json_int_t)s->info.clock_hz, "interval_cycles_of_1", (json_int_t)one,
                   "interval_cycles_of_16", (json_int_t)full));
  return 0;
}

/* ---- Rate ---- */

/* Counts late requests in the order of arrival. */
struct watch {
  struct serve *serve;
  size_t next, late, may_be_late;
};

/* More late ones than p99 leaves room for: what is left cannot change the verdict. */
static int look(void *arg) {
  struct watch *w = arg;
  struct serve *s = w->serve;
  for (; w->next < s->run.count && s->run.request[w->next].done; ++w->next) {
    const struct serve_request *r = &s->run.request[w->next];
    w->late += !r->answered || r->end - r->scheduled > s->o->deadline;
  }
  if (w->late > w->may_be_late) s->give_up = 0;
  return 0;
}

static int run_rate(const struct exp_settings *settings, const struct exp_point *point,
                    struct serve *s, const char *label, json_t *o) {
  const size_t drop = exp_point_dropped(settings, s->run.count), n = s->run.count - drop;
  struct watch watch = {.serve = s, .next = drop, .may_be_late = n / 100};
  s->capacity_busy = UNIT;
  s->capacity_done = point->batching.rate;
  s->beside = (struct serve_beside){.turn = look, .arg = &watch};
  if (serve_load(s, &s->run, WHOLE, label) || cli_stopped()) return !cli_stopped();
  if (serve_csv(s) || exp_point_served(settings, s, o)) return 1;
  json_object_set_new(o, "late_allowed", json_integer((json_int_t)watch.may_be_late));
  return 0;
}

/* ---- A point ---- */

int exp_rate_run(const struct exp_settings *settings, const struct exp_point *point,
                 const char *csv, json_t *o) {
  const struct serve_options options = options_of(settings, point, csv);
  struct serve s;
  int status = serve_open(&s, &options);
  ct_progress_open(&s.progress, stderr);
  if (!status)
    status = point->kind == EXP_COST ? run_cost(&s, point->name, o)
                                     : run_rate(settings, point, &s, point->name, o);
  ct_progress_close(&s.progress);
  serve_close(&s);
  return status;
}
