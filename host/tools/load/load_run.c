/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "train_beside.h"
#include "verb_load.h"

/* ASKED: requests by themselves, the first ones unmeasured, because they load the weights. GIVE_UP:
 * percent of the arrivals' time after which the rest never comes. LOOK: cycles between two looks at
 * whether there is a point in going on. PITCH: cycles between two readings of training alone. */
enum { ASKED = 6, ASKED_FIRST = 2, GIVE_UP = 120, LOOK = 50000, PITCH = 20000 };

/* ---- Whether there is a point in going on ---- */

struct watch {
  struct serve *serve;
  struct trainer *trainer;
  uint64_t next_look;             /* cycle */
  size_t next, late, may_be_late; /* requests in the order of arrival */
};

/* Whether p99 will be infinite whatever comes: more requests are left than could be answered in
 * the time that is left, even at the capacity. */
static bool is_hopeless(const struct serve *s, uint64_t now) {
  const size_t left = s->run.count - s->run.done, may_miss = s->run.count / 100 + 1;
  if (s->give_up == CT_NO_CYCLE || now >= s->give_up || left <= may_miss) return false;
  return (double)(left - may_miss) * (double)s->capacity_busy / (double)s->capacity_done >
         (double)(s->give_up - now);
}

static int look(void *arg) {
  struct watch *w = arg;
  uint64_t now;
  const int rc = ct_now(w->serve->load.dev, &now);
  if (rc < 0 || now < w->next_look) return rc;
  w->next_look = now + LOOK;
  if (is_hopeless(w->serve, now)) w->serve->give_up = now;
  return 0;
}

/* More late ones than p99 leaves room for: what is left cannot change the verdict. */
static int count_late(void *arg) {
  struct watch *w = arg;
  struct serve *s = w->serve;
  for (; w->next < s->run.count && s->run.request[w->next].done; ++w->next) {
    const struct request *r = &s->run.request[w->next];
    w->late += !r->answered || r->end - r->scheduled > s->o->deadline;
  }
  if (w->late > w->may_be_late) s->give_up = 0;
  return 0;
}

/* The first request arrives: the window begins, and how long it may last is known. */
static int window_begin(void *arg) {
  struct watch *w = arg;
  struct serve *s = w->serve;
  const uint64_t *cycle = s->arrivals.cycle;
  if (trainer_begin(w->trainer)) return 1;
  s->give_up = w->trainer->from + (cycle[s->run.count - 1] - cycle[0]) / 100 * GIVE_UP + LOAD_LEAD;
  return 0;
}

static int other_event(void *arg, const struct ct_event *event) {
  const struct watch *w = arg;
  return trainer_take(w->trainer, event);
}

/* ---- Figures ---- */

static int json_served(const struct load_spec *spec, const struct serve *s, json_t *o) {
  const struct requests *run = &s->run;
  struct ct_stats l = {.count = 0};
  size_t missed = 0;
  double u = 0, goodput = 0;
  if (requests_sum_up(run, run->count, spec->dropped, CT_NO_CYCLE, &l) || requests_busy(run, &u))
    return 1;
  serve_deadlines(s, spec->dropped, &missed, &goodput);
  json_object_update_new(
      o,
      json_pack("{s:I, s:I, s:I, s:I, s:b, s:I, s:o, s:o, s:o, s:o, s:I, s:f, s:f, s:o}",
                "answered", (json_int_t)(run->done - run->failed), "wrong", (json_int_t)run->wrong,
                "measured", (json_int_t)l.count, "dropped", (json_int_t)l.dropped, "given_up",
                (int)(run->done < run->count), "deadline_cycles", (json_int_t)s->o->deadline,
                "p50_cycles", cli_json_cycles(l.p50), "p90_cycles", cli_json_cycles(l.p90),
                "p99_cycles", cli_json_cycles(l.p99), "max_cycles", cli_json_cycles(l.max),
                "deadline_misses", (json_int_t)missed, "goodput_per_second", goodput, "u",
                u >= 0 ? u : 0, "batches", requests_json_batches(run)));
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

int load_ask_alone(struct serve *s, const struct serve_model *m, uint64_t *latency) {
  struct ct_event record;
  for (int i = 0; i < ASKED && !cli_stopped(); ++i) {
    struct ct_request request = {.rows = m->rows, .answers = m->answers};
    uint64_t now = 0;
    int rc = ct_now(s->load.dev, &now);
    request.cycle = now + LOAD_LEAD;
    if (rc >= 0) rc = ct_server_push(m->server, &request, NULL);
    if (load_check(&s->load, rc, "asking a model alone") || load_reap(&s->load, &record)) return 1;
    if (!record.tag) break;
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
    const struct request *r = &s->probe.request[i];
    if (r->end - r->start > batch) batch = r->end - r->start;
  }
  json_object_update_new(
      o, json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "service_cycles", (json_int_t)service,
                   "batch_cycles", (json_int_t)batch, "busy_cycles", (json_int_t)s->capacity_busy,
                   "completed", (json_int_t)s->capacity_done, "wrong", (json_int_t)s->probe.wrong,
                   "batches", requests_json_batches(&s->probe)));
  return 0;
}

/* Rows so far, PITCH after PITCH. */
static int run_training(const struct load_spec *spec, struct trainer *t, json_t *o) {
  struct load *l = t->load;
  json_t *list = json_array();
  uint64_t now = 0, rows = 0, first = 0;
  int status = load_until_count(l, &t->feed.finished, 1) || trainer_read(t, &first, &now) ||
               load_until(l, now + LOAD_LEAD) || trainer_begin(t);
  for (size_t i = 1; i <= spec->samples && !status && !cli_stopped(); ++i) {
    status = load_until(l, t->from + i * PITCH) || trainer_read(t, &rows, &now);
    json_array_append_new(list, json_integer((json_int_t)(rows - t->rows)));
  }
  json_object_update_new(o, json_pack("{s:i, s:I, s:o}", "pitch_cycles", PITCH, "training_steps",
                                      (json_int_t)(t->feed.finished - t->steps), "rows", list));
  return status;
}

static int run_requests(const struct load_spec *spec, struct serve *s, struct trainer *t,
                        json_t *o) {
  struct watch w = {
      .serve = s, .trainer = t, .next = spec->dropped, .may_be_late = spec->late_allowed};
  if (load_policy(&s->load, spec->policy)) return 1;
  s->beside = (struct serve_beside){
      .arrived = spec->bounded ? NULL : window_begin, .event = other_event, .arg = &w};
  if (spec->beside && load_until_count(&s->load, &t->feed.finished, 1)) return 1;
  s->load.part[2] = (struct load_part){"reading the clock", spec->bounded ? count_late : look, &w};
  if (serve_load(s, &s->run, spec->serve.permille, spec->label) || cli_stopped())
    return !cli_stopped();
  if (serve_csv(s) || json_served(spec, s, o)) return 1;
  if (spec->bounded)
    json_object_set_new(o, "late_allowed", json_integer((json_int_t)w.may_be_late));
  return spec->beside ? json_trained(t, o) : 0;
}

/* ---- A run ---- */

static int open_training(const struct load_spec *spec, struct trainer *t, struct load *l) {
  struct learn learn = LEARN_DEFAULTS;
  learn.data = spec->data;
  learn.seed = spec->serve.seed;
  learn.batch = spec->train_batch;
  learn.layers = spec->trained.layers;
  memcpy(learn.widths, spec->trained.widths, sizeof spec->trained.widths);
  return trainer_open(t, l, &learn);
}

static int run_serving(const struct load_spec *spec, json_t *o) {
  struct serve s;
  struct serve_options options = spec->serve;
  struct trainer t = {.load = &s.load};
  int status = serve_open(&s, &options);
  if (!status && spec->beside) status = open_training(spec, &t, &s.load);
  s.capacity_busy = spec->busy;
  s.capacity_done = spec->done;
  ct_progress_open(&s.load.progress, stderr);
  if (!status && spec->kind == LOAD_CAPACITY)
    status = run_capacity(&s, o);
  else if (!status && spec->kind == LOAD_COST)
    status = load_cost(spec, &s, o);
  else if (!status)
    status = run_requests(spec, &s, &t, o);
  ct_progress_close(&s.load.progress);
  trainer_close(&t);
  serve_close(&s);
  return status;
}

static int run_training_alone(const struct load_spec *spec, json_t *o) {
  struct load l;
  struct trainer t = {.load = &l};
  int status = load_open(&l, spec->serve.device, NULL);
  l.take = trainer_take;
  l.arg = &t;
  if (!status) status = open_training(spec, &t, &l);
  if (!status) status = run_training(spec, &t, o);
  trainer_close(&t);
  load_close(&l);
  return status;
}

int load_run(const struct load_spec *spec, json_t *o) {
  return spec->kind == LOAD_TRAINING ? run_training_alone(spec, o) : run_serving(spec, o);
}
