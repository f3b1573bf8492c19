/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiment.h"

enum { POINTS = 4096 };

struct options {
  struct exp_options common;
  bool quick, core;
};

/* ---- The points ---- */

struct points {
  struct exp_point *list;
  size_t count;
};

/* "784-512-256-10-round_robin-load50-bursty-bandwidth8-seed3" */
static void name_point(struct exp_point *p) {
  const struct exp_policy_text policy = exp_policy_text(p->policy);
  const char *what = p->kind == EXP_CAPACITY   ? "capacity"
                     : p->kind == EXP_TRAINING ? "training"
                     : p->kind == EXP_ALONE    ? "alone"
                                               : policy.text;
  int n = snprintf(p->name, sizeof p->name, "%s%s%s", p->server ? p->server->name : "",
                   p->server ? "-" : "", what);
  if (p->kind >= EXP_ALONE)
    n += snprintf(p->name + n, sizeof p->name - (size_t)n, "-load%u-%s", p->permille / 10,
                  serve_arrivals_name(p->arrivals));
  if (*p->memory) n += snprintf(p->name + n, sizeof p->name - (size_t)n, "-%s", p->memory);
  if (p->kind >= EXP_ALONE)
    snprintf(p->name + n, sizeof p->name - (size_t)n, "-seed%u", (unsigned)p->seed);
  for (char *c = p->name; *c; ++c) {
    if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    if (*c == '=') *c = '_';
  }
}

static void add(struct points *all, struct exp_point point) {
  name_point(&point);
  for (size_t i = 0; i < all->count; ++i)
    if (!strcmp(all->list[i].name, point.name)) return;
  if (all->count < POINTS) all->list[all->count++] = point;
}

/* A point beside training, and what it is compared with: the same arrivals alone. */
static void add_pair(struct points *all, struct exp_point point) {
  struct exp_point alone = point;
  alone.kind = EXP_ALONE;
  alone.policy = CT_PRIORITY;
  point.kind = EXP_TOGETHER;
  add(all, alone);
  add(all, point);
}

static const uint32_t quick_loads[] = {500, 800};

static void add_core(struct points *all, const struct options *o, enum ct_policy first,
                     enum ct_policy last) {
  const uint32_t *load = o->quick ? quick_loads : exp_loads;
  const size_t count = o->quick ? 2 : EXP_LOADS;
  for (uint64_t seed = 1; seed <= o->common.seeds; ++seed)
    for (size_t s = 0; s < 2; ++s)
      for (size_t l = 0; l < count; ++l)
        for (unsigned p = first; p <= last; ++p)
          add_pair(all, (struct exp_point){.server = &exp_servers[s],
                                           .policy = (enum ct_policy)p,
                                           .permille = load[l],
                                           .memory = "",
                                           .seed = seed,
                                           .core = true});
}

/* The other axes, one at a time, at half load under PRIORITY; and the load up to which no deadline
 * may be missed. */
static void add_axes(struct points *all, const struct options *o) {
  for (uint64_t seed = 1; seed <= o->common.seeds; ++seed) {
    for (size_t s = 0; s < 2; ++s) {
      const struct exp_point half = {
          .server = &exp_servers[s], .permille = 500, .memory = "", .seed = seed};
      struct exp_point p = half;
      p.permille = 700;
      add_pair(all, p);
      p = half;
      p.policy = CT_SLACK;
      add_pair(all, p);
      p = half;
      p.arrivals = SERVE_BURSTY;
      add_pair(all, p);
      p = half;
      p.arrivals = SERVE_TRACE;
      add_pair(all, p);
      p = half;
      p.memory = "bandwidth=8";
      add_pair(all, p);
    }
    add_pair(all, (struct exp_point){
                      .server = &exp_servers[2], .permille = 500, .memory = "", .seed = seed});
  }
}

/* What the others refer to comes first; then what the targets are about. */
static void make_points(struct points *all, const struct options *o) {
  static const char *const memories[] = {"", "bandwidth=8"};
  const bool axes = o->common.settings.whole;
  for (size_t m = 0; m < (axes ? 2 : 1); ++m) {
    for (size_t s = 0; s < (axes && !m ? 3 : 2); ++s)
      add(all,
          (struct exp_point){
              .kind = EXP_CAPACITY, .server = &exp_servers[s], .memory = memories[m], .seed = 1});
    add(all, (struct exp_point){.kind = EXP_TRAINING, .memory = memories[m], .seed = 1});
  }
  add_core(all, o, CT_PRIORITY, CT_PRIORITY);
  if (axes) add_axes(all, o);
  add_core(all, o, CT_FCFS, CT_WHOLE_JOB);
}

/* ---- Making them ---- */

static bool is_reference(const struct exp_point *p) {
  return p->kind == EXP_CAPACITY || p->kind == EXP_TRAINING;
}

/* Whether p is needed to say anything about q: its capacity, training alone, the same arrivals
 * alone. */
static bool belongs(const struct exp_point *p, const struct exp_point *q) {
  if (strcmp(p->memory, q->memory) != 0) return false;
  if (p->kind == EXP_TRAINING) return q->kind == EXP_TOGETHER;
  if (p->server != q->server || p->kind == EXP_TOGETHER) return false;
  return p->kind == EXP_CAPACITY || (p->permille == q->permille && p->arrivals == q->arrivals &&
                                     p->seed == q->seed && q->kind == EXP_TOGETHER);
}

/* Marks the points that --only names, and what they need. 0, or 1 after a sentence. */
static int choose(struct points *all, const char *only) {
  size_t count = 0;
  for (size_t i = 0; i < all->count; ++i) {
    struct exp_point *q = &all->list[i];
    if (only && fnmatch(only, q->name, 0) != 0) continue;
    q->wanted = true;
    ++count;
    for (size_t k = 0; k < all->count; ++k)
      all->list[k].wanted |= belongs(&all->list[k], q);
  }
  return count ? 0
               : cli_fail("--only: none of the %zu points is called \"%s\"; the last one is %s",
                          all->count, only, all->list[all->count - 1].name);
}

/* Tells the points what their loads are a part of, as far as it was measured. */
static void note_capacities(const struct options *o, const struct points *all) {
  for (size_t i = 0; i < all->count; ++i) {
    const struct exp_point *q = &all->list[i];
    struct exp_result r;
    if (q->kind != EXP_CAPACITY || !exp_store_load(&o->common.settings, q, &r)) continue;
    for (size_t k = 0; k < all->count; ++k) {
      struct exp_point *p = &all->list[k];
      if (!is_reference(p) && p->server == q->server && !strcmp(p->memory, q->memory))
        p->capacity = (struct exp_capacity){r.service, r.batch, r.busy, r.done};
    }
    exp_result_free(&r);
  }
}

static int make(const struct options *o, const struct points *all, const struct exp_point *p,
                bool *left) {
  struct exp_settings settings = o->common.settings;
  settings.number = (size_t)(p - all->list) + 1;
  settings.count = all->count;
  return exp_make(&settings, p, left);
}

struct work {
  const struct options *o;
  const struct points *all;
};

/* Everything that other points refer to, whoever makes it; then the points. */
static int make_all(const void *arg) {
  const struct work *w = arg;
  const struct points *all = w->all;
  bool left = true;
  while (left && !cli_stopped()) {
    left = false;
    for (size_t i = 0; i < all->count && !cli_stopped(); ++i)
      if (is_reference(&all->list[i]) && all->list[i].wanted &&
          make(w->o, all, &all->list[i], &left))
        return 1;
    if (left) sleep(1);
  }
  note_capacities(w->o, all);
  for (size_t i = 0; i < all->count && !cli_stopped(); ++i)
    if (all->list[i].wanted && make(w->o, all, &all->list[i], &left)) return 1;
  return 0;
}

/* ---- The command ---- */

enum { KEY_QUICK = CLI_KEY_VERB, KEY_CORE, KEY_TRACE, KEY_DATA };

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *o = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &o->common;
      break;
    case KEY_QUICK:
      o->quick = true;
      break;
    case KEY_CORE:
      o->core = true;
      break;
    case KEY_TRACE:
      o->common.settings.trace = arg;
      break;
    case KEY_DATA:
      o->common.settings.data = arg;
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static int conclude(const struct options *o, const struct points *all) {
  const struct exp_options *c = &o->common;
  char json[EXP_PATH], path[EXP_PATH];
  const char *report = exp_options_path(c, c->report, "report.html", path);
  struct exp_summary summary;
  note_capacities(o, all);
  if (exp_summary_make(&c->settings, all->list, all->count, &summary)) return 1;
  FILE *text = cli_text(c->json);
  exp_summary_print(&summary, text);
  int status = cli_json_write(exp_options_path(c, c->json, "summary.json", json),
                              exp_summary_json(&summary));
  status |= exp_report(&summary, report);
  if (!status) fprintf(text, "report         %s\n", report);
  status |= serve_check_wrong(summary.wrong);
  exp_summary_free(&summary);
  return status;
}

static int run(const struct options *o) {
  struct points all = {.list = calloc(POINTS, sizeof *all.list)};
  if (!all.list) return cli_fail("no memory for the list of points");
  make_points(&all, o);
  const struct work work = {o, &all};
  int status = choose(&all, o->common.only) || exp_store_open(&o->common.settings);
  if (!status) {
    status = exp_make_by(o->common.jobs, make_all, &work);
    status |= conclude(o, &all); /* what is there, whatever went wrong */
  }
  free(all.list);
  return exp_make_end(status);
}

int experiment_colocation(int argc, char **argv) {
  static const struct argp_option list[] = {
      {"quick", KEY_QUICK, NULL, 0, "A tenth of the core grid: one seed, two loads", 2},
      {"core", KEY_CORE, NULL, 0, "The core grid only, without the other axes", 2},
      {"data", KEY_DATA, "NAME", 0, "What is trained on (fashion-mnist)", 3},
      {"trace", KEY_TRACE, "FILE.csv", 0,
       "Arrivals of the axis `trace` (host/data/traces/azure-conversation.csv)", 3},
      {0}};
  static const struct argp_child children[] = {{&exp_options_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = list,
      .children = children,
      .parser = parse,
      .doc =
          "Serves requests in batches beside training, at several loads and under every policy, "
          "and compares with each alone (docs/experiments.md).\vA point is a run on a simulated "
          "device of its own. Its figures and a row for each request are files in the folder; an "
          "experiment that was stopped goes on with the points that are missing. The whole of it "
          "simulates up to 2.8 billion cycles.\n\nExample:\n"
          "  coltrain experiment colocation --quick --jobs 2 --out build/quick\n"};
  struct options o = {.common = {.settings = {.out = "build/experiments/colocation",
                                              .trace = "host/data/traces/azure-conversation.csv",
                                              .data = "fashion-mnist",
                                              .part = 100,
                                              .on_percent = 50,
                                              .period = 20},
                                 .jobs = 1}};
  cli_parse(&argp, argc, argv, &o);
  if (!o.common.seeds) o.common.seeds = o.quick ? 1 : EXP_CORE_SEEDS;
  o.common.settings.whole = !o.quick && !o.core;
  const struct cli_file files[] = {{"--json", o.common.json, CLI_WRITE},
                                   {"--report", o.common.report, CLI_WRITE},
                                   {"--trace", o.common.settings.trace, CLI_READ}};
  if (cli_files(files, sizeof files / sizeof *files)) return 1;
  cli_catch_stop();
  return run(&o);
}
