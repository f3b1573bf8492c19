/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "colocate.h"
#include "ct_stats.h"
#include "ct_units.h"

/* Samples of a campaign, and of one whose service is long, in cycles. */
enum { FULL_SAMPLES = 10000, LONG_SAMPLES = 2000, LONG_SERVICE = 20000 };

/* ---- Latency ---- */

/* A campaign's rule for what is dropped where a run has its size; else a tenth. */
static size_t dropped_of(size_t n) {
  return n >= ct_stats_requests(2000) ? ct_stats_drop_campaign(n) : ct_stats_drop(n);
}

static const struct ct_stats unknown = {.p50 = CT_NO_CYCLE, .p99 = CT_NO_CYCLE, .max = CT_NO_CYCLE};

/* by: the cycle by which they are answered; 0: nobody knows when they were. */
static struct ct_stats sum_up(const struct server *s, size_t n, size_t drop, uint64_t by) {
  struct ct_stats l = unknown;
  if (n > drop && by && requests_sum_up(&s->run, n, drop, by, &l)) l = unknown;
  l.dropped = drop < n ? drop : n;
  l.count = n - l.dropped;
  return l;
}

struct ct_stats latency_of(const struct server *s, bool clock) {
  return sum_up(s, s->run.done, dropped_of(s->run.count), clock ? CT_NO_CYCLE : 0);
}

/* Of the first n requests (fewer if there are no more), a tenth dropped; one that was not answered
 * by that cycle counts as never. */
static struct ct_stats latency_of_first(const struct server *s, size_t n, uint64_t by) {
  if (n > s->run.count) n = s->run.count;
  return sum_up(s, n, ct_stats_drop(n), by);
}

/* ---- Figures ---- */

static size_t served(const struct server *s) {
  return s->run.done - s->run.failed;
}

/* Never answered: failed on the device, or (never, unless something is broken) forgotten. */
static size_t lost(const struct server *s) {
  return s->run.pushed - served(s);
}

static double mean_loss(const struct colocate *c, bool last) {
  return learn_mean_loss(c->losses, c->feed.finished, last);
}

double cycles_or_nan(uint64_t cycles) {
  return cycles == CT_NO_CYCLE || cycles == CT_STATS_NEVER ? (double)NAN : (double)cycles;
}

static double busy_share(const struct server *s) {
  double share = (double)NAN;
  if (s->run.done && requests_busy(&s->run, &share)) return (double)NAN;
  return share;
}

/* The version that gave the first or last answer; NULL without any. */
static const struct version *serving_version(const struct colocate *c, bool last) {
  const struct server *s = &c->serve;
  if (!s->run.done) return NULL;
  const uint32_t number = s->run.request[last ? s->run.done - 1 : 0].version;
  return number >= 1 && number <= c->versions.published ? &c->versions.version[number - 1] : NULL;
}

/* Accuracy of a version on the test images, NaN if it is not known. */
static double accuracy_of(const struct version *v) {
  return v && v->accuracy >= 0 ? v->accuracy : (double)NAN;
}

static double test_accuracy(const struct colocate *c) {
  const size_t n = c->versions.published;
  return c->trained && n == c->versions.room ? accuracy_of(&c->versions.version[n - 1])
                                             : (double)NAN;
}

/* Whether the run is as long as docs/results.md demands of a campaign. */
static bool meets_definition(const struct colocate *c, const struct ct_stats *l) {
  const double service = c->capacity_done ? (double)c->capacity_busy / (double)c->capacity_done : 0;
  const size_t need = service > LONG_SERVICE ? LONG_SAMPLES : FULL_SAMPLES;
  return c->load.info.has_clock && l->count >= need && c->probe.run.count >= 2000 &&
         l->dropped >= 1000;
}

/* ---- JSON ---- */

static json_t *json_serve(const struct colocate *c, const struct server *s, size_t wrong) {
  const struct ct_stats l = latency_of(s, c->load.info.has_clock);
  return json_pack(
      "{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:o}", "requests", (json_int_t)s->run.count,
      "completed", (json_int_t)served(s), "lost", (json_int_t)lost(s), "wrong",
      c->checked ? json_integer((json_int_t)wrong) : json_null(), "p50_cycles",
      cli_json_cycles(l.p50), "p99_cycles", cli_json_cycles(l.p99), "max_cycles",
      cli_json_cycles(l.max), "dropped", (json_int_t)l.dropped, "measured", (json_int_t)l.count,
      "u", c->load.info.has_clock ? cli_json_number(busy_share(s)) : json_null());
}

static json_t *json_versions(const struct colocate *c) {
  json_t *list = json_array();
  for (size_t i = 0; i < c->versions.published; ++i) {
    const struct version *v = &c->versions.version[i];
    size_t answered = 0, right = 0;
    for (size_t r = 0; r < c->serve.run.done; ++r) {
      const struct request *q = &c->serve.run.request[r];
      if (!q->answered || q->version != i + 1) continue;
      ++answered;
      right += q->answer == c->ds.test.labels[q->sample];
    }
    json_array_append_new(
        list, json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "version", (json_int_t)i + 1, "step",
                        (json_int_t)v->step, "answered", (json_int_t)answered, "right",
                        (json_int_t)right, "test_accuracy", cli_json_number(accuracy_of(v)),
                        "publish_cycles", cli_json_cycles(v->cycles)));
  }
  return list;
}

static json_t *json_train(const struct colocate *c) {
  const struct load_window *w = &c->together;
  return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "steps",
                   (json_int_t)c->feed.finished, "steps_wanted", (json_int_t)c->steps, "loss_first",
                   cli_json_number(mean_loss(c, false)), "loss_last",
                   cli_json_number(mean_loss(c, true)), "test_accuracy",
                   cli_json_number(test_accuracy(c)), "cycles",
                   cli_json_cycles(w->closed ? w->to - w->from : CT_NO_CYCLE), "macs_per_cycle",
                   cli_json_number(load_window_macs(w)), "weights_crc32",
                   json_integer((json_int_t)c->weights_crc32), "warm_up_steps",
                   (json_int_t)c->warm_steps, "filler_steps_window", (json_int_t)c->filler_steps);
}

/* The first of the arrivals under every other policy; null for what was not answered in time. */
static json_t *json_others(const struct colocate *c) {
  json_t *list = json_array();
  for (size_t i = 0; i < POLICIES - 1; ++i) {
    const struct other *o = &c->other[i];
    if (!o->window.closed) continue;
    size_t answered = 0;
    for (size_t k = 0; k < o->server.run.count; ++k)
      answered += o->server.run.request[k].answered && o->server.run.request[k].end <= o->window.to;
    const struct ct_stats l = latency_of_first(&o->server, o->server.run.count, o->window.to);
    json_array_append_new(
        list,
        json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "policy", ct_policy_name(o->policy),
                  "requests", (json_int_t)o->server.run.count, "completed", (json_int_t)answered,
                  "p50_cycles", cli_json_cycles(l.p50), "p99_cycles", cli_json_cycles(l.p99),
                  "cycles", cli_json_cycles(o->window.to - o->window.from), "train_throughput",
                  cli_json_ratio(load_window_macs(&o->window), load_window_macs(&c->train_alone))));
  }
  return list;
}

/* One number for each request that is done: its value, or null. */
static json_t *json_column(const struct server *s, uint64_t (*value)(const struct request *r)) {
  json_t *list = json_array();
  for (size_t i = 0; i < s->run.done; ++i)
    json_array_append_new(list, cli_json_cycles(value(&s->run.request[i])));
  return list;
}

static uint64_t scheduled_of(const struct request *r) {
  return r->scheduled;
}
static uint64_t end_of(const struct request *r) {
  return r->answered ? r->end : CT_NO_CYCLE;
}
static uint64_t version_of(const struct request *r) {
  return r->answered ? r->version : CT_NO_CYCLE;
}

static json_t *json_right(const struct colocate *c) {
  json_t *list = json_array();
  for (size_t i = 0; i < c->serve.run.done; ++i) {
    const struct request *r = &c->serve.run.request[i];
    json_array_append_new(list,
                          json_integer(r->answered && r->answer == c->ds.test.labels[r->sample]));
  }
  return list;
}

/* What charts are drawn from: requests in order of arrival, losses by step. */
static json_t *json_series(const struct colocate *c) {
  json_t *loss = json_array();
  for (uint64_t i = 0; i < c->feed.finished; ++i)
    json_array_append_new(loss, cli_json_number((double)c->losses[i]));
  return json_pack("{s:{s:o, s:o, s:o, s:o}, s:{s:o, s:o}, s:o}", "serve", "scheduled",
                   json_column(&c->serve, scheduled_of), "end", json_column(&c->serve, end_of),
                   "version", json_column(&c->serve, version_of), "right", json_right(c), "alone",
                   "scheduled", json_column(&c->alone, scheduled_of), "end",
                   json_column(&c->alone, end_of), "loss", loss);
}

/* Cycles of every unit and queue in a window, by what was done in them; null if there is none. */
static json_t *json_time(const struct load_window *w) {
  if (!w->closed) return json_null();
  return ct_units_json(w->counter[CT_INFERENCE], w->counter[CT_TRAINING], w->to - w->from);
}

/* Busy shares of the co-located window. */
static json_t *json_units(const struct colocate *c) {
  const struct load_window *w = &c->together;
  json_t *list = json_array();
  for (unsigned u = 0; w->closed && u < CT_UNIT_COUNT; ++u) {
    const struct ct_unit_time i = ct_unit_time(u, w->counter[CT_INFERENCE]),
                              t = ct_unit_time(u, w->counter[CT_TRAINING]);
    json_array_append_new(
        list, json_pack("{s:s, s:o, s:o}", "unit", ct_unit_name(u), "inference",
                        cli_json_ratio((double)i.busy, (double)(w->to - w->from)), "training",
                        cli_json_ratio((double)t.busy, (double)(w->to - w->from))));
  }
  return list;
}

static json_t *json_alone(const struct load_window *w) {
  return json_pack("{s:o, s:o}", "cycles",
                   cli_json_cycles(w->closed ? w->to - w->from : CT_NO_CYCLE), "macs_per_cycle",
                   cli_json_number(load_window_macs(w)));
}

static json_t *json_setup(const struct colocate *c) {
  const struct ct_stats l = latency_of(&c->serve, c->load.info.has_clock);
  const struct ct_info *info = &c->load.info;
  json_t *root = json_object();
  learn_json(c->l, root);
  if (c->learner.accumulate) /* a file has its own */
    json_object_set_new(root, "accumulate", json_integer(c->learner.accumulate));
  json_object_update_new(
      root,
      json_pack("{s:s, s:f, s:o, s:o, s:b, s:b, s:[I, I]}", "policy", ct_policy_name(c->o->policy),
                "load", (double)c->o->permille / 1000, "clock_hz",
                cli_json_cycles(info->has_clock ? info->clock_hz : CT_NO_CYCLE), "capacity",
                load_capacity_json(c->probe.run.done, c->capacity_busy, c->capacity_done),
                "meets_definition", meets_definition(c, &l), "stopped", cli_stopped(), "array",
                (json_int_t)info->array_rows, (json_int_t)info->array_cols));
  return root;
}

static json_t *json_ratios(const struct colocate *c) {
  const struct ct_stats together = latency_of(&c->serve, c->load.info.has_clock);
  const struct ct_stats alone = latency_of(&c->alone, c->load.info.has_clock);
  return json_pack(
      "{s:o, s:o}", "p99", cli_json_ratio(cycles_or_nan(together.p99), cycles_or_nan(alone.p99)),
      "train_throughput",
      cli_json_ratio(load_window_macs(&c->together), load_window_macs(&c->train_alone)));
}

static json_t *json_of(const struct colocate *c) {
  json_t *root = json_setup(c);
  json_t *serve = json_serve(c, &c->serve, c->wrong);
  json_object_update_new(
      serve,
      json_pack("{s:o, s:o, s:s, s:i}", "accuracy_first",
                cli_json_number(accuracy_of(serving_version(c, false))), "accuracy_last",
                cli_json_number(accuracy_of(serving_version(c, true))), "accuracy_over",
                "all test images, by the first and last version that answered", "refused", 0));
  json_object_update_new(
      root, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "serve", serve,
                      "serve_alone", json_serve(c, &c->alone, c->wrong_alone), "train",
                      json_train(c), "train_alone", json_alone(&c->train_alone), "ratio",
                      json_ratios(c), "versions", json_versions(c), "units", json_units(c),
                      "others", json_others(c), "time", json_time(&c->together), "time_alone",
                      json_time(&c->train_alone), "series", json_series(c)));
  return root;
}

/* The page is made from the same object, by coltrain-report. */
static int write_page(const struct colocate *c, json_t *root) {
  if (!c->o->report || cli_report(root, c->o->report)) return c->o->report != NULL;
  fprintf(c->load.text, "%s is the report; open it in a browser\n", c->o->report);
  return 0;
}

int colocate_write(const struct colocate *c) {
  json_t *root = json_of(c);
  const int page = write_page(c, root);
  return cli_json_write(c->l->json, root) | page;
}

/* ---- CSV ---- */

static int write_rows(const struct server *s, const char *path) {
  return requests_csv(&s->run, path, "id,scheduled,start,end,version,answer");
}

int colocate_csv(const struct colocate *c) {
  const char *path = c->o->csv;
  if (!path) return 0;
  if (write_rows(&c->serve, path)) return 1;
  if (!c->alone.run.done) return 0;
  const size_t size = strlen(path) + sizeof ".alone.csv";
  char *name = malloc(size);
  if (!name) return cli_fail("no memory for the name of a file");
  const size_t len = strlen(path),
               stem = len > 4 && !strcmp(path + len - 4, ".csv") ? len - 4 : len;
  snprintf(name, size, "%.*s.alone.csv", (int)stem, path);
  const int status = write_rows(&c->alone, name);
  free(name);
  return status;
}

/* ---- Text ---- */

static void print_figure(FILE *to, double x) {
  if (isfinite(x))
    fprintf(to, " %13.2f", x);
  else
    fprintf(to, " %13s", "-");
}

static void print_row(FILE *to, const char *name, double alone, double together, const char *unit) {
  fprintf(to, "  %-22s", name);
  print_figure(to, alone);
  print_figure(to, together);
  if (isfinite(alone) && isfinite(together) && alone > 0)
    fprintf(to, "   x %.3f", together / alone);
  fprintf(to, "   %s\n", unit);
}

static void print_times(const struct colocate *c) {
  FILE *to = c->load.text;
  const struct ct_stats t = latency_of(&c->serve, true), a = latency_of(&c->alone, true);
  const double us = 1e6 / (double)c->load.info.clock_hz;
  if (!c->capacity_busy) {
    fputs("\n  stopped before the capacity was known, so no request was sent and nothing timed\n",
          to);
    return;
  }
  fprintf(to, "\n  %-22s %13s %13s   ratio\n", "", "alone", "co-located");
  print_row(to, "latency, median", cycles_or_nan(a.p50) * us, cycles_or_nan(t.p50) * us, "us");
  print_row(to, "latency, p99", cycles_or_nan(a.p99) * us, cycles_or_nan(t.p99) * us, "us");
  print_row(to, "latency, longest", cycles_or_nan(a.max) * us, cycles_or_nan(t.max) * us, "us");
  print_row(to, "training", load_window_macs(&c->train_alone), load_window_macs(&c->together),
            "multiply-accumulates a cycle");
  const double service = (double)c->capacity_busy / (double)c->capacity_done;
  fprintf(to, "\n  capacity: a request every %.1f cycles; offered load %.3g; 1 us is %.6g cycles\n",
          service, (double)c->o->permille / 1000, (double)c->load.info.clock_hz / 1e6);
  fprintf(to, "  measured: %zu requests, after the first %zu", t.count, t.dropped);
  if (!meets_definition(c, &t))
    fprintf(to, " (a short run; a campaign has %zu)", ct_stats_requests(FULL_SAMPLES));
  fputc('\n', to);
}

static void print_accuracy(FILE *to, const char *name, double accuracy) {
  if (isfinite(accuracy)) fprintf(to, "%s %.2f %%", name, 100 * accuracy);
}

void colocate_print(const struct colocate *c) {
  FILE *to = c->load.text;
  const struct server *s = &c->serve;
  cli_tell_stopped(to);
  fprintf(to, "served    %zu of %zu requests, %zu lost", served(s), s->run.count, lost(s));
  if (c->checked) fprintf(to, ", %zu wrong", c->wrong);
  print_accuracy(to, "; accuracy of the first version", accuracy_of(serving_version(c, false)));
  print_accuracy(to, ", of the last", accuracy_of(serving_version(c, true)));
  fprintf(to, "\ntrained   %" PRIu64 " of %" PRIu64 " steps", c->feed.finished, c->steps);
  if (c->feed.finished) fprintf(to, ", loss %.4f to %.4f", mean_loss(c, false), mean_loss(c, true));
  print_accuracy(to, ", test accuracy", test_accuracy(c));
  fprintf(to, "\nversions  %zu published, swapped between two requests\n", c->versions.published);
  if (c->load.info.has_clock) print_times(c);
}
