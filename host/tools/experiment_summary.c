/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"

/* ---- Points that belong together ---- */

static bool same_setting(const struct exp_point *a, const struct exp_point *b) {
  return a->kind == b->kind && a->server == b->server && a->policy == b->policy &&
         a->permille == b->permille && a->arrivals == b->arrivals && !strcmp(a->memory, b->memory);
}

static const struct exp_point *find(const struct exp_point *points, size_t count,
                                    const struct exp_point *like, bool any_seed) {
  for (size_t i = 0; i < count; ++i)
    if (same_setting(&points[i], like) && (any_seed || points[i].seed == like->seed))
      return &points[i];
  return NULL;
}

static const struct exp_point *alone_of(const struct exp_point *points, size_t count,
                                        const struct exp_point *p) {
  struct exp_point like = *p;
  like.kind = EXP_ALONE;
  like.policy = CT_PRIORITY;
  return find(points, count, &like, false);
}

/* Rows that training alone took in as many cycles: between two of its samples on a straight line,
 * past the last one at the mean rate. */
static double rows_alone(const struct exp_result *t, uint64_t cycles) {
  const uint64_t at = cycles / t->pitch;
  if (at >= t->samples)
    return (double)t->sample[t->samples - 1] * (double)cycles / (double)(t->samples * t->pitch);
  const double from = at ? (double)t->sample[at - 1] : 0, to = (double)t->sample[at];
  return from + (to - from) * (double)(cycles % t->pitch) / (double)t->pitch;
}

/* Cycles that training alone took for as many rows, in the same way. */
static double cycles_alone(const struct exp_result *t, uint64_t rows) {
  const uint64_t last = t->sample[t->samples - 1];
  size_t at = 0;
  if (rows >= last) return (double)(t->samples * t->pitch) * (double)rows / (double)last;
  while (t->sample[at] < rows)
    ++at;
  const double from = at ? (double)t->sample[at - 1] : 0, to = (double)t->sample[at];
  const double part = to > from ? ((double)rows - from) / (to - from) : 0;
  return ((double)at + part) * (double)t->pitch;
}

/* ---- Requests one by one ---- */

/* The first columns of a row as numbers; empty ones are 0. How many there were. */
static size_t columns_of(const char *line, uint64_t *value, size_t most) {
  size_t n = 0;
  for (const char *p = line; n < most; ++p) {
    char *end = NULL;
    value[n++] = *p >= '0' && *p <= '9' ? strtoull(p, &end, 10) : 0;
    if (end) p = end;
    p += strcspn(p, ",");
    if (!*p) break;
  }
  return n;
}

/* Latencies by the number of the request, from a point's CSV; CT_STATS_NEVER for those without an
 * answer. NULL if there is no such file, or it has fewer answers than there were. A row that ends
 * within the cycle of its end is none. */
static uint64_t *read_rows(const struct exp_settings *settings, const struct exp_point *p,
                           const struct exp_result *r) {
  enum { REQUEST = 0, SCHEDULED = 3, END = 6, BATCH, COLUMNS };
  const size_t count = r->requests;
  char path[EXP_PATH], line[256];
  uint64_t answers = 0;
  exp_store_path(settings, p, ".csv", path);
  FILE *file = fopen(path, "r");
  uint64_t *latency = file ? malloc((count + 1) * sizeof *latency) : NULL;
  for (size_t i = 0; latency && i < count; ++i)
    latency[i] = CT_STATS_NEVER;
  while (latency && fgets(line, sizeof line, file)) {
    uint64_t v[COLUMNS];
    if (*line < '0' || *line > '9' || columns_of(line, v, COLUMNS) < COLUMNS) continue;
    if (v[REQUEST] >= count || v[END] < v[SCHEDULED]) continue;
    latency[v[REQUEST]] = v[END] - v[SCHEDULED];
    ++answers;
  }
  if (file) fclose(file);
  if (answers >= r->answered) return latency;
  free(latency);
  return NULL;
}

/* Counts the measured requests that were in time alone and late together. False: their rows are not
 * there. */
static bool only_together(const struct exp_settings *settings, const struct exp_point *together,
                          const struct exp_point *alone, const struct exp_result *r,
                          const struct exp_result *ra, uint64_t *count) {
  uint64_t *a = read_rows(settings, alone, ra);
  uint64_t *b = read_rows(settings, together, r);
  const bool there = a && b;
  for (size_t i = r->requests - r->measured; a && b && i < r->requests; ++i)
    *count += a[i] <= r->deadline && b[i] > r->deadline;
  free(a);
  free(b);
  return there;
}

/* ---- Ratios ---- */

static struct exp_ratio ratio_of(const double *value, size_t n) {
  struct exp_ratio r = {.seeds = n, .mean = (double)NAN, .low = (double)NAN, .high = (double)NAN};
  bool infinite = false;
  for (size_t i = 0; i < n; ++i)
    infinite |= isinf(value[i]) != 0;
  if (infinite)
    r.mean = r.low = r.high = (double)INFINITY;
  else if (n == 1)
    r.mean = value[0];
  else if (n > 1)
    ct_stats_ratio(value, n, &r.mean, &r.low, &r.high);
  return r;
}

/* Of parts of something: one seed without any makes the mean 0. */
static struct exp_ratio part_of(const double *value, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (value[i] == 0) return (struct exp_ratio){.seeds = n, .mean = 0, .low = 0, .high = 0};
  return ratio_of(value, n);
}

static double figure(uint64_t cycles) {
  return cycles == CT_STATS_NEVER ? (double)INFINITY : (double)cycles;
}

static double mean_of(const double *value, size_t n) {
  return ratio_of(value, n).mean;
}

/* ---- Cells ---- */

/* What the seeds of a cell say, one value each. */
struct seeds {
  size_t n;
  double p99[EXP_SEEDS], alone[EXP_SEEDS], stretch[EXP_SEEDS], share[EXP_SEEDS], same[EXP_SEEDS],
      of_idle[EXP_SEEDS], u[EXP_SEEDS];
};

static void add_seed(struct seeds *s, const struct exp_result *r, const struct exp_result *alone,
                     const struct exp_result *training) {
  const size_t i = s->n++;
  s->p99[i] = figure(r->p99);
  s->alone[i] = figure(alone->p99);
  s->stretch[i] = s->p99[i] / s->alone[i];
  /* A run that was given up before it measured anything has no window to speak of. */
  const bool window = !r->given_up || r->answered > r->requests - r->measured;
  s->share[i] = window ? (double)r->rows / rows_alone(training, r->window) : (double)NAN;
  s->same[i] = window ? cycles_alone(training, r->rows) / (double)r->window : (double)NAN;
  s->of_idle[i] = s->share[i] / (1 - alone->u);
  s->u[i] = alone->u;
}

static void add_counts(struct exp_cell *c, const struct exp_result *r,
                       const struct exp_result *alone) {
  for (size_t n = 0; n <= EXP_BATCH; ++n)
    c->batches[n] += r->batches[n];
  c->requests += r->measured;
  c->answered += r->answered;
  c->asked += r->requests;
  c->lost_alone += alone->requests - alone->answered;
  c->wrong += r->wrong;
  c->wrong_alone += alone->wrong;
  c->missed += r->missed;
  c->missed_alone += alone->missed;
  c->deadline = r->deadline;
}

static void finish_cell(struct exp_cell *c, const struct seeds *s) {
  double most = 0, sum = 0;
  c->seeds = s->n;
  c->p99 = mean_of(s->p99, s->n);
  c->p99_alone = mean_of(s->alone, s->n);
  c->stretch = ratio_of(s->stretch, s->n);
  c->share = part_of(s->share, s->n);
  c->same_work = part_of(s->same, s->n);
  c->share_of_idle = part_of(s->of_idle, s->n);
  for (size_t i = 0; i < s->n; ++i) {
    sum += s->u[i];
    if (s->u[i] > most) most = s->u[i];
  }
  c->u = s->n ? sum / (double)s->n : (double)NAN;
  c->u_over_load = most / (c->point.permille / 1000.0);
  c->mean_batch = exp_mean_batch(c->batches);
}

/* One seed of a cell, if all that it needs is there. False: its run is there, but not the rest. */
static bool take_seed(const struct exp_settings *settings, const struct exp_point *points,
                      size_t count, const struct exp_point *p, const struct exp_result *training,
                      struct exp_cell *c, struct seeds *s) {
  const struct exp_point *a = alone_of(points, count, p);
  struct exp_result r, alone = {.there = false};
  uint64_t late = 0;
  if (!exp_store_load(settings, p, &r)) return true;
  const bool whole = a && exp_store_load(settings, a, &alone) && training->there &&
                     s->n < EXP_SEEDS && only_together(settings, p, a, &r, &alone, &late);
  if (whole) {
    add_seed(s, &r, &alone, training);
    add_counts(c, &r, &alone);
    c->missed_only_together += late;
  }
  exp_result_free(&r);
  exp_result_free(&alone);
  return whole;
}

static void make_cell(const struct exp_point *points, const struct exp_point *first,
                      struct exp_summary *summary, struct exp_cell *c) {
  const size_t count = summary->points;
  const struct exp_point like = {.kind = EXP_TRAINING, .memory = first->memory};
  const struct exp_point *t = find(points, count, &like, true);
  struct exp_result training = {.there = false};
  struct seeds s = {.n = 0};
  *c = (struct exp_cell){.point = *first};
  if (t) exp_store_load(summary->settings, t, &training);
  for (size_t i = 0; i < count; ++i)
    if (same_setting(&points[i], first) &&
        !take_seed(summary->settings, points, count, &points[i], &training, c, &s))
      summary->lacking[summary->lacking_count++] = points[i];
  finish_cell(c, &s);
  exp_result_free(&training);
}

static int order(const void *a, const void *b) {
  const struct exp_point *x = &((const struct exp_cell *)a)->point;
  const struct exp_point *y = &((const struct exp_cell *)b)->point;
  if (x->core != y->core) return x->core ? -1 : 1;
  if (x->server != y->server) return x->server < y->server ? -1 : 1;
  if (x->arrivals != y->arrivals) return x->arrivals < y->arrivals ? -1 : 1;
  const int memory = strcmp(x->memory, y->memory);
  if (memory) return memory;
  if (x->policy != y->policy) return x->policy < y->policy ? -1 : 1;
  return (x->permille > y->permille) - (x->permille < y->permille);
}

static void load_capacities(const struct exp_settings *settings, const struct exp_point *points,
                            size_t count, struct exp_summary *summary) {
  for (size_t i = 0; i < EXP_SERVERS; ++i) {
    const struct exp_point like = {.kind = EXP_CAPACITY, .server = &exp_servers[i], .memory = ""};
    const struct exp_point *p = find(points, count, &like, true);
    if (p) exp_store_load(settings, p, &summary->capacity[i]);
  }
}

int exp_summary_make(const struct exp_settings *settings, const struct exp_point *points,
                     size_t count, struct exp_summary *summary) {
  *summary = (struct exp_summary){.settings = settings,
                                  .points = count,
                                  .cell = calloc(count + 1, sizeof *summary->cell),
                                  .lacking = calloc(count + 1, sizeof *summary->lacking)};
  if (!summary->cell || !summary->lacking) return cli_fail("no memory for the summary");
  for (size_t i = 0; i < count; ++i) {
    struct exp_result r;
    const bool there = exp_store_load(settings, &points[i], &r);
    summary->there += there;
    summary->wrong += r.wrong;
    exp_result_free(&r);
    if (!there && points[i].kind >= EXP_ALONE)
      summary->lacking[summary->lacking_count++] = points[i];
    if (points[i].kind != EXP_TOGETHER || find(points, count, &points[i], true) != &points[i])
      continue;
    struct exp_cell cell;
    make_cell(points, &points[i], summary, &cell);
    if (cell.seeds) summary->cell[summary->cells++] = cell;
  }
  qsort(summary->cell, summary->cells, sizeof *summary->cell, order);
  load_capacities(settings, points, count, summary);
  return 0;
}

void exp_summary_free(struct exp_summary *summary) {
  for (size_t i = 0; i < EXP_SERVERS; ++i)
    exp_result_free(&summary->capacity[i]);
  free(summary->cell);
  free(summary->lacking);
  *summary = (struct exp_summary){.settings = NULL};
}

/* ---- Targets ---- */

/* What a target speaks of: the core grid under PRIORITY; all runs under PRIORITY but those in
 * bursts, whose load is 1 while they last; all runs under PRIORITY; all. */
enum scope { SCOPE_CORE, SCOPE_STEADY, SCOPE_PRIORITY, SCOPE_ALL };

struct rule {
  const char *text, *server; /* NULL: any */
  enum scope scope;
  uint32_t low, high; /* loads, permille */
  bool at_most;
  double (*value)(const struct exp_cell *c);
  double limit;
};

static bool is_meant(const struct exp_point *p, const struct rule *rule) {
  if (p->permille < rule->low || p->permille > rule->high) return false;
  if (rule->server && strcmp(p->server->name, rule->server) != 0) return false;
  if (rule->scope == SCOPE_ALL) return true;
  if (p->policy != CT_PRIORITY) return false;
  if (rule->scope == SCOPE_STEADY) return p->arrivals != SERVE_BURSTY;
  return rule->scope == SCOPE_PRIORITY || p->core;
}

static bool is_held(const struct rule *rule, double value) {
  return rule->at_most ? value <= rule->limit : value >= rule->limit;
}

/* The unfavourable end of an interval; of a single seed there is only the value. */
static double upper(const struct exp_ratio *r) {
  return isnan(r->high) ? r->mean : r->high;
}
static double lower(const struct exp_ratio *r) {
  return isnan(r->low) ? r->mean : r->low;
}

static double stretch_of(const struct exp_cell *c) {
  return upper(&c->stretch);
}
static double idle_of(const struct exp_cell *c) {
  return lower(&c->share_of_idle);
}
static double share_of(const struct exp_cell *c) {
  return lower(&c->share);
}
static double use_of(const struct exp_cell *c) {
  return c->u_over_load;
}
static double late_of(const struct exp_cell *c) {
  return (double)c->missed_only_together;
}
static double wrong_of(const struct exp_cell *c) {
  return (double)(c->wrong + c->wrong_alone);
}
static double lost_of(const struct exp_cell *c) {
  return (double)(c->asked - c->answered + c->lost_alone);
}

/* Whether the full experiment has more to say: points of this one are missing, a load of the core
 * grid or the other axes are not among them, there are fewer seeds than it asks for, or the runs
 * are shorter. */
static bool is_lacking(const struct exp_summary *summary, const struct rule *rule) {
  if (summary->settings->part < 100) return true;
  if (rule->scope != SCOPE_CORE && !summary->settings->whole) return true;
  for (size_t i = 0; i < summary->lacking_count; ++i)
    if (is_meant(&summary->lacking[i], rule)) return true;
  for (size_t s = 0; s < 2; ++s)
    for (size_t l = 0; l < EXP_LOADS; ++l) {
      const struct exp_point p = {.server = &exp_servers[s],
                                  .permille = exp_loads[l],
                                  .memory = "",
                                  .policy = CT_PRIORITY,
                                  .core = true};
      bool there = !is_meant(&p, rule);
      for (size_t i = 0; i < summary->cells && !there; ++i) {
        const struct exp_cell *c = &summary->cell[i];
        there = c->seeds >= EXP_CORE_SEEDS && c->point.server == p.server &&
                c->point.permille == p.permille && is_meant(&c->point, rule);
      }
      if (!there) return true;
    }
  return false;
}

/* Cells without a value are the worst where nothing is against the target. */
static const struct exp_cell *worst_of(const struct exp_summary *summary, const struct rule *rule) {
  const struct exp_cell *worst = NULL, *unknown = NULL;
  for (size_t i = 0; i < summary->cells; ++i) {
    const struct exp_cell *c = &summary->cell[i];
    if (!is_meant(&c->point, rule)) continue;
    const double v = rule->value(c), w = worst ? rule->value(worst) : v;
    if (isnan(v))
      unknown = c;
    else if (!worst || (rule->at_most ? v > w : v < w))
      worst = c;
  }
  return unknown && (!worst || is_held(rule, rule->value(worst))) ? unknown : worst;
}

/* The worst cell decides; with something missing, only against. */
static void judge(const struct exp_summary *summary, const struct rule *rule,
                  struct exp_target *target) {
  const struct exp_cell *worst = worst_of(summary, rule);
  snprintf(target->text, sizeof target->text, "%s", rule->text);
  target->held = -1;
  snprintf(target->figure, sizeof target->figure, "not measured");
  if (!worst) return;
  const double v = rule->value(worst);
  const char *server = worst->point.server->name;
  const double load = worst->point.permille / 1000.0;
  if (isnan(v)) {
    snprintf(target->figure, sizeof target->figure,
             "no ratio: never answered without training either (%s at load %.1f)", server, load);
    return;
  }
  const bool lacks = is_lacking(summary, rule);
  target->held = is_held(rule, v);
  if (lacks && target->held) target->held = -1;
  snprintf(target->figure, sizeof target->figure, "%.5g (%s at load %.1f)%s", v, server, load,
           lacks ? ", of a part of the experiment" : "");
}

size_t exp_summary_targets(const struct exp_summary *summary,
                           struct exp_target target[EXP_TARGETS]) {
  static const char large[] = "784-512-256-10";
  static const struct rule rules[] = {
      {"p99 beside training at most 1.10 of p99 alone, 784-512-256-10, loads up to 0.8", large,
       SCOPE_CORE, 0, 800, true, stretch_of, 1.10},
      {"training at least 0.95 of 1 - u, 784-512-256-10, loads up to 0.8", large, SCOPE_CORE, 0,
       800, false, idle_of, 0.95},
      {"u at most 1.05 of the load, 784-512-256-10, loads up to 0.8", large, SCOPE_CORE, 0, 800,
       true, use_of, 1.05},
      {"training at least 0.78 of its speed alone at load 0.2, 784-512-256-10", large, SCOPE_CORE,
       200, 200, false, share_of, 0.78},
      {"requests in time alone and late beside training, but in bursts: none at loads up to 0.7",
       NULL, SCOPE_STEADY, 0, 700, true, late_of, 0},
      {"requests that were never answered, alone or beside training: none", NULL, SCOPE_PRIORITY, 0,
       1000, true, lost_of, 0},
      {"answers that differ from emu:, under any policy: none", NULL, SCOPE_ALL, 0, 1000, true,
       wrong_of, 0},
  };
  const size_t count = sizeof rules / sizeof *rules;
  for (size_t i = 0; i < count; ++i)
    judge(summary, &rules[i], &target[i]);
  return count;
}

/* ---- JSON ---- */

static json_t *number(double x) {
  return isnan(x) || isinf(x) ? json_null() : json_real(x);
}

static json_t *json_ratio(const struct exp_ratio *r) {
  return json_pack("{s:o, s:o, s:o}", "mean", number(r->mean), "low", number(r->low), "high",
                   number(r->high));
}

/* p99 null: never. */
static json_t *json_cell(const struct exp_cell *c) {
  json_t *batches = json_array();
  for (size_t n = 1; n <= EXP_BATCH; ++n)
    json_array_append_new(batches, json_integer((json_int_t)c->batches[n]));
  char device[EXP_URI];
  snprintf(device, sizeof device, "sim:%s", c->point.memory);
  json_t *o =
      json_pack("{s:s, s:s, s:f, s:s, s:s, s:b, s:i}", "server", c->point.server->name, "policy",
                exp_policy_text(c->point.policy).text, "load", c->point.permille / 1000.0,
                "arrivals", serve_arrivals_name(c->point.arrivals), "device", device, "core",
                (int)c->point.core, "seeds", (int)c->seeds);
  json_object_update_new(
      o, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:o}", "p99_cycles",
                   number(c->p99), "p99_alone_cycles", number(c->p99_alone), "stretch",
                   json_ratio(&c->stretch), "training_share", json_ratio(&c->share),
                   "training_same_rows", json_ratio(&c->same_work), "training_share_of_idle",
                   json_ratio(&c->share_of_idle), "u", c->u, "u_over_load_max", c->u_over_load,
                   "mean_batch", c->mean_batch, "batches", batches));
  json_object_update_new(
      o, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "asked", (json_int_t)c->asked,
                   "answered", (json_int_t)c->answered, "wrong", (json_int_t)c->wrong,
                   "wrong_alone", (json_int_t)c->wrong_alone, "measured", (json_int_t)c->requests,
                   "deadline_cycles", (json_int_t)c->deadline, "missed", (json_int_t)c->missed,
                   "missed_alone", (json_int_t)c->missed_alone, "missed_only_together",
                   (json_int_t)c->missed_only_together));
  return o;
}

json_t *exp_targets_json(const struct exp_target *target, size_t count) {
  json_t *list = json_array();
  for (size_t i = 0; i < count; ++i)
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:o}", "target", target[i].text, "figure", target[i].figure,
                        "held", target[i].held < 0 ? json_null() : json_boolean(target[i].held)));
  return list;
}

void exp_targets_print(const struct exp_target *target, size_t count, FILE *to) {
  static const char *const held[] = {"missing", "NOT HELD", "held"};
  for (size_t i = 0; i < count; ++i)
    fprintf(to, "%-9s %s: %s\n", held[target[i].held + 1], target[i].text, target[i].figure);
}

json_t *exp_summary_json(const struct exp_summary *summary) {
  struct exp_target target[EXP_TARGETS];
  const size_t targets = exp_summary_targets(summary, target);
  json_t *cells = json_array(), *servers = json_array();
  for (size_t i = 0; i < summary->cells; ++i)
    json_array_append_new(cells, json_cell(&summary->cell[i]));
  for (size_t i = 0; i < EXP_SERVERS; ++i) {
    const struct exp_result *r = &summary->capacity[i];
    if (r->there)
      json_array_append_new(
          servers, json_pack("{s:s, s:I, s:o}", "server", exp_servers[i].name, "service_cycles",
                             (json_int_t)r->service, "capacity_cycles_per_request",
                             cli_json_ratio((double)r->busy, (double)r->done)));
  }
  return json_pack("{s:s, s:s, s:I, s:I, s:i, s:o, s:o, s:o}", "experiment", "colocation",
                   "training", exp_trained, "points", (json_int_t)summary->points, "points_there",
                   (json_int_t)summary->there, "part_percent", (int)summary->settings->part,
                   "servers", servers, "cells", cells, "targets",
                   exp_targets_json(target, targets));
}

/* ---- Text ---- */

static void print_cell(const struct exp_cell *c, FILE *to) {
  fprintf(to, "%-15s %-11s %4.1f  %-8s %-12s", c->point.server->name,
          exp_policy_text(c->point.policy).text, c->point.permille / 1000.0,
          serve_arrivals_name(c->point.arrivals), *c->point.memory ? c->point.memory : "default");
  if (isinf(c->p99))
    fprintf(to, " %10s %8s", "never", "");
  else
    fprintf(to, " %10.0f x %6.3f", c->p99, c->stretch.mean);
  if (isnan(c->share.mean))
    fprintf(to, "  %5s  %5.3f  %5s", "-", c->u, "-");
  else
    fprintf(to, "  %5.3f  %5.3f  %5.2f", c->share.mean, c->u, c->share_of_idle.mean);
  fprintf(to, "  %5.2f  %zu\n", c->mean_batch, c->seeds);
}

void exp_summary_print(const struct exp_summary *summary, FILE *to) {
  struct exp_target target[EXP_TARGETS];
  const size_t count = exp_summary_targets(summary, target);
  fprintf(to, "%zu of %zu points are there\n\n", summary->there, summary->points);
  fprintf(to, "%-15s %-11s %4s  %-8s %-12s %10s %8s  %5s  %5s  %5s  %5s  %s\n", "server", "policy",
          "load", "arrivals", "memory", "p99", "/ alone", "train", "u", "/1-u", "batch", "seeds");
  for (size_t i = 0; i < summary->cells; ++i)
    print_cell(&summary->cell[i], to);
  fputc('\n', to);
  exp_targets_print(target, count, to);
}
