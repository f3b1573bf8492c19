/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain_spec.h"
#include "feeder.h"
#include "load.h"

/* ASKED: requests by themselves, the first ones unmeasured, because they load the weights. LEAD:
 * cycles between the first step's end and the first arrival. GIVE_UP: percent of the arrivals' time
 * after which the rest never comes. LOOK: cycles between two looks at training. STEP_MOST: cycles
 * of a step, at most. PITCH: cycles between two readings of training alone. */
enum {
  ASKED = 6,
  ASKED_FIRST = 2,
  LEAD = 20000,
  GIVE_UP = 120,
  LOOK = 50000,
  STEP_MOST = 100000000,
  WAIT_MS = 1000,
  PITCH = 20000
};

/* ---- Training beside ---- */

struct trainer {
  struct serve *serve; /* NULL: nothing is served */
  ct_device *dev;
  struct learn learn;
  struct ct_dataset data;
  ct_model *model;
  struct feeder feed;
  bool on;
  uint64_t from, rows, steps; /* since the first arrival */
  uint64_t next;              /* cycle to look at training again */
};

static int trainer_open(struct trainer *t, const struct load *load, ct_device *dev) {
  t->dev = dev;
  t->learn = (struct learn)LEARN_DEFAULTS;
  t->learn.data = load->data;
  t->learn.seed = load->seed;
  t->learn.batch = load->train_batch;
  t->learn.layers = load->trained.layers;
  memcpy(t->learn.widths, load->trained.widths, sizeof load->trained.widths);
  if (learn_open(&t->learn, &t->data) || learn_create(&t->learn, dev, &t->model)) return 1;
  const int rc = feeder_open(&t->feed, dev, t->model, &t->learn, &t->data, 0);
  t->on = true;
  return rc < 0 ? cli_fail_device(dev, rc, "no room for batches") : 0;
}

static void trainer_close(struct trainer *t) {
  feeder_close(&t->feed);
  ct_model_free(t->model);
  ct_dataset_free(&t->data);
}

static int trainer_take(struct trainer *t, const struct ct_event *result) {
  const struct job *job = result->user;
  float loss;
  if (result->error)
    return cli_fail("a training step failed on the device: %s (address 0x%" PRIx32 ")",
                    ct_code_text(result->code), result->address);
  const int rc = job ? feeder_finish(&t->feed, job, &loss) : 0;
  return rc < 0 ? cli_fail_device(t->dev, rc, "reading a loss") : 0;
}

/* Keeps the training queue full. */
static int trainer_top_up(struct trainer *t) {
  int rc = 0;
  while (rc >= 0)
    rc = feeder_submit(&t->feed);
  return rc == CT_ERR_FULL ? 0 : cli_fail_device(t->dev, rc, "submitting a training step");
}

/* Whether p99 will be infinite whatever comes: more requests are left than could be answered in
 * the time that is left, even at the capacity. */
static bool is_hopeless(const struct serve *s, uint64_t now) {
  const size_t left = s->run.count - s->run.done, may_miss = s->run.count / 100 + 1;
  if (s->give_up == CT_NO_CYCLE || now >= s->give_up || left <= may_miss) return false;
  return (double)(left - may_miss) * (double)s->capacity_busy / (double)s->capacity_done >
         (double)(s->give_up - now);
}

/* A step has ended. */
static int trainer_event(void *arg, const struct ct_event *event) {
  struct trainer *t = arg;
  return trainer_take(t, event) || trainer_top_up(t);
}

/* Keeps it full now and then, and looks whether there is still a point in going on. */
static int trainer_turn(void *arg) {
  struct trainer *t = arg;
  uint64_t now;
  if (!t->on) return 0;
  const int rc = ct_now(t->dev, &now);
  if (rc < 0) return cli_fail_device(t->dev, rc, "reading the clock");
  if (now < t->next) return 0;
  t->next = now + LOOK;
  if (is_hopeless(t->serve, now)) t->serve->give_up = now;
  return trainer_top_up(t);
}

/* Until a cycle, or until a step has ended. */
static int trainer_run(struct trainer *t, uint64_t until) {
  uint64_t now = 0, first = 0;
  while (now < until && !cli_stopped()) {
    if (!first) first = now;
    if (until == CT_NO_CYCLE && now - first > STEP_MOST)
      return cli_fail("a training step has not ended after %d cycles", STEP_MOST);
    struct ct_event result;
    const uint64_t steps = t->feed.finished;
    if (trainer_top_up(t)) return 1;
    int rc = until == CT_NO_CYCLE ? ct_reap(t->dev, &result, WAIT_MS)
                                  : ct_reap_until(t->dev, &result, until, WAIT_MS);
    if (rc >= 0 && trainer_take(t, &result)) return 1;
    if (rc >= 0 || rc == CT_ERR_TIMEOUT) rc = ct_now(t->dev, &now);
    if (rc < 0) return cli_fail_device(t->dev, rc, "waiting for training");
    if (until == CT_NO_CYCLE && t->feed.finished > steps) break;
  }
  return 0;
}

static int trainer_read(const struct trainer *t, uint64_t *rows, uint64_t *cycle) {
  uint64_t counter[CT_MAX_COUNTERS] = {0};
  int rc = ct_counters(t->dev, CT_TRAINING, counter, CT_MAX_COUNTERS);
  *rows = counter[CT_CNT_MXU_ROWS];
  if (rc >= 0) rc = ct_now(t->dev, cycle);
  return rc < 0 ? cli_fail_device(t->dev, rc, "reading the counters") : 0;
}

/* The first request arrives: the window begins, and how long it may last is known. */
static int window_begin(void *arg) {
  struct trainer *t = arg;
  struct serve *s = t->serve;
  const uint64_t span = s->arrivals[s->run.count - 1] - s->arrivals[0];
  if (trainer_read(t, &t->rows, &t->from)) return 1;
  t->steps = t->feed.finished;
  s->give_up = t->from + span / 100 * GIVE_UP + LEAD;
  return 0;
}

/* ---- Figures ---- */

static int compare_ends(const void *a, const void *b) {
  const struct serve_request *x = a, *y = b;
  return (x->end > y->end) - (x->end < y->end);
}

/* Part of the time since the first arrival in which a batch was in service. Requests of several
 * models are not answered in the order in which they arrive. */
static int busy_of(const struct serve_run *run, double *u) {
  struct ct_stats_busy busy = {0};
  uint64_t first = CT_NO_CYCLE;
  struct serve_request *sorted = malloc(run->count * sizeof *sorted);
  if (!sorted) return cli_fail("no memory for %zu requests", run->count);
  memcpy(sorted, run->request, run->count * sizeof *sorted);
  qsort(sorted, run->count, sizeof *sorted, compare_ends);
  for (size_t i = 0; i < run->count; ++i) {
    if (sorted[i].scheduled < first) first = sorted[i].scheduled;
    if (sorted[i].answered) ct_stats_busy_add(&busy, sorted[i].start, sorted[i].end);
  }
  *u = busy.until > first ? ct_stats_busy_share(&busy, first) : 0;
  free(sorted);
  return 0;
}

static int json_served(const struct load *load, const struct serve *s, json_t *o) {
  const struct serve_run *run = &s->run;
  const size_t drop = load->dropped;
  struct ct_stats l = {.count = 0};
  size_t missed = 0;
  double u = 0, goodput = 0;
  if (serve_latencies(run, drop, &l) || busy_of(run, &u)) return 1;
  serve_deadlines(s, drop, &missed, &goodput);
  json_object_update_new(
      o,
      json_pack("{s:I, s:I, s:I, s:I, s:b, s:I, s:o, s:o, s:o, s:o, s:I, s:f, s:f, s:o}",
                "answered", (json_int_t)(run->done - run->failed), "wrong", (json_int_t)run->wrong,
                "measured", (json_int_t)l.count, "dropped", (json_int_t)l.dropped, "given_up",
                (int)(run->done < run->count), "deadline_cycles", (json_int_t)s->o->deadline,
                "p50_cycles", cli_json_cycles(l.p50), "p90_cycles", cli_json_cycles(l.p90),
                "p99_cycles", cli_json_cycles(l.p99), "max_cycles", cli_json_cycles(l.max),
                "deadline_misses", (json_int_t)missed, "goodput_per_second", goodput, "u", u,
                "batches", serve_json_batches(run)));
  return 0;
}

static int json_trained(const struct trainer *t, json_t *o) {
  uint64_t rows = 0, now = 0;
  if (trainer_read(t, &rows, &now)) return 1;
  json_object_update_new(
      o, json_pack("{s:I, s:I, s:I}", "window_cycles", (json_int_t)(now - t->from), "training_rows",
                   (json_int_t)(rows - t->rows), "training_steps",
                   (json_int_t)(t->feed.finished - t->steps)));
  return 0;
}

/* ---- Kinds ---- */

/* Requests of a model one by one: the latency of the last ones. */
int load_ask_alone(struct serve *s, const struct serve_model *m, uint64_t *latency) {
  struct ct_event record;
  for (int i = 0; i < ASKED && !cli_stopped(); ++i) {
    struct ct_request request = {.rows = m->rows, .answers = m->answers};
    uint64_t now = 0;
    int rc = ct_now(s->dev, &now);
    request.cycle = now + LEAD;
    if (rc >= 0) rc = ct_server_push(m->server, &request, NULL);
    if (rc >= 0) rc = ct_reap(s->dev, &record, LOAD_PATIENCE_MS);
    if (rc < 0) return cli_fail_device(s->dev, rc, "asking a model alone");
    if (record.error) return cli_fail("a request failed: %s", ct_code_text(record.code));
    if (i >= ASKED_FIRST && record.end - record.arrive > *latency)
      *latency = record.end - record.arrive;
  }
  return 0;
}

static int run_capacity(struct serve *s, json_t *o) {
  uint64_t service = 0, batch = 0;
  for (size_t i = 0; i < s->o->models; ++i)
    if (load_ask_alone(s, &s->model[i], &service)) return 1;
  if (serve_capacity(s) || cli_stopped()) return !cli_stopped();
  if (serve_check_wrong(s->wrong)) return 1;
  for (size_t i = 0; i < s->probe.count; ++i) {
    const struct serve_request *r = &s->probe.request[i];
    if (r->end - r->start > batch) batch = r->end - r->start;
  }
  json_object_update_new(
      o, json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "service_cycles", (json_int_t)service,
                   "batch_cycles", (json_int_t)batch, "busy_cycles", (json_int_t)s->capacity_busy,
                   "completed", (json_int_t)s->capacity_done, "wrong", (json_int_t)s->probe.wrong,
                   "batches", serve_json_batches(&s->probe)));
  return 0;
}

/* Rows so far, PITCH after PITCH. */
static int run_training(const struct load *load, struct trainer *t, json_t *o) {
  json_t *list = json_array();
  int status = trainer_run(t, CT_NO_CYCLE);
  uint64_t now = 0;
  if (!status) status = trainer_read(t, &t->rows, &now);
  if (!status) status = trainer_run(t, now + LEAD) || trainer_read(t, &t->rows, &t->from);
  t->steps = t->feed.finished;
  for (size_t i = 1; i <= load->samples && !status && !cli_stopped(); ++i) {
    uint64_t rows = 0;
    status = trainer_run(t, t->from + i * PITCH) || trainer_read(t, &rows, &now);
    json_array_append_new(list, json_integer((json_int_t)(rows - t->rows)));
  }
  json_object_update_new(o, json_pack("{s:i, s:I, s:o}", "pitch_cycles", PITCH, "training_steps",
                                      (json_int_t)(t->feed.finished - t->steps), "rows", list));
  return status;
}

/* Counts late requests in the order of arrival. */
struct watch {
  struct serve *serve;
  size_t next, late, may_be_late;
};

/* More late ones than p99 leaves room for: what is left cannot change the verdict. */
static int watch_turn(void *arg) {
  struct watch *w = arg;
  struct serve *s = w->serve;
  for (; w->next < s->run.count && s->run.request[w->next].done; ++w->next) {
    const struct serve_request *r = &s->run.request[w->next];
    w->late += !r->answered || r->end - r->scheduled > s->o->deadline;
  }
  if (w->late > w->may_be_late) s->give_up = 0;
  return 0;
}

static int run_requests(const struct load *load, struct serve *s, struct trainer *t, json_t *o) {
  struct watch watch = {.serve = s, .next = load->dropped, .may_be_late = load->late_allowed};
  const int rc = ct_set_policy(s->dev, load->policy);
  if (rc < 0) return cli_fail_device(s->dev, rc, "setting the policy");
  if (t->on && trainer_run(t, CT_NO_CYCLE)) return 1;
  s->beside =
      load->bounded
          ? (struct serve_beside){.turn = watch_turn, .arg = &watch}
          : (struct serve_beside){
                .turn = trainer_turn, .arrived = window_begin, .event = trainer_event, .arg = t};
  if (serve_load(s, &s->run, load->serve.permille, load->label) || cli_stopped())
    return !cli_stopped();
  if (serve_csv(s) || json_served(load, s, o)) return 1;
  if (load->bounded)
    json_object_set_new(o, "late_allowed", json_integer((json_int_t)watch.may_be_late));
  return t->on ? json_trained(t, o) : 0;
}

/* ---- A run ---- */

static int run_serving(const struct load *load, json_t *o) {
  struct serve s;
  struct trainer t = {.serve = &s};
  int status = serve_open(&s, &load->serve);
  t.dev = s.dev;
  if (!status && load->beside) status = trainer_open(&t, load, s.dev);
  s.capacity_busy = load->busy;
  s.capacity_done = load->done;
  ct_progress_open(&s.progress, stderr);
  if (!status && load->kind == LOAD_CAPACITY)
    status = run_capacity(&s, o);
  else if (!status && load->kind == LOAD_COST)
    status = load_cost(load, &s, o);
  else if (!status)
    status = run_requests(load, &s, &t, o);
  ct_progress_close(&s.progress);
  trainer_close(&t);
  serve_close(&s);
  return status;
}

static int run_training_alone(const struct load *load, json_t *o) {
  ct_device *dev = NULL;
  struct trainer t = {.serve = NULL};
  if (cli_open(load->serve.device, &dev)) return 1;
  int status = trainer_open(&t, load, dev);
  if (!status) status = run_training(load, &t, o);
  trainer_close(&t);
  ct_close(dev);
  return status;
}

int load_run(const struct load *load, json_t *o) {
  return load->kind == LOAD_TRAINING ? run_training_alone(load, o) : run_serving(load, o);
}
