/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiment.h"

enum { SEEDS = 5, SEEDS_MOST = 20, POINTS = 4096, PROCESSES = 16 };

struct options {
  struct exp_settings settings;
  const char *only, *json, *report;
  uint64_t seeds, jobs;
  bool quick, core;
};

/* ---- The points ---- */

struct points {
  struct exp_point *list;
  size_t count;
};

/* "784-512-256-10-round_robin-load50-bursty-bandwidth8-seed3" */
static void name_point(struct exp_point *p) {
  const char *what = p->kind == EXP_CAPACITY   ? "capacity"
                     : p->kind == EXP_TRAINING ? "training"
                     : p->kind == EXP_ALONE    ? "alone"
                                               : exp_policy_name(p->policy);
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

static const uint32_t loads[] = {200, 500, 800, 900}, quick_loads[] = {500, 800};

static void add_core(struct points *all, const struct options *o, enum ct_policy first,
                     enum ct_policy last) {
  const uint32_t *load = o->quick ? quick_loads : loads;
  const size_t count = o->quick ? 2 : 4;
  for (uint64_t seed = 1; seed <= o->seeds; ++seed)
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
  for (uint64_t seed = 1; seed <= o->seeds; ++seed) {
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
  const bool axes = !o->quick && !o->core;
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

static bool is_wanted(const struct options *o, const struct exp_point *p) {
  return is_reference(p) || !o->only || fnmatch(o->only, p->name, 0) == 0;
}

/* The capacity that a point's load is a part of. */
static bool capacity_of(const struct options *o, const struct points *all,
                        const struct exp_point *p, struct exp_result *capacity) {
  for (size_t i = 0; i < all->count; ++i) {
    const struct exp_point *q = &all->list[i];
    if (q->kind == EXP_CAPACITY && q->server == p->server && !strcmp(q->memory, p->memory))
      return exp_store_load(&o->settings, q, capacity);
  }
  return false;
}

static int make_claimed(const struct options *o, const struct points *all,
                        const struct exp_point *p) {
  struct exp_result capacity = {.there = false}, there;
  struct exp_settings settings = o->settings;
  char csv[EXP_PATH];
  json_t *json = NULL;
  if (exp_store_load(&o->settings, p, &there)) {
    exp_result_free(&there);
    return 0;
  }
  if (!is_reference(p) && !capacity_of(o, all, p, &capacity))
    return cli_fail("%s: the capacity it refers to was not measured", p->name);
  exp_store_path(&o->settings, p, ".csv", csv);
  settings.number = (size_t)(p - all->list) + 1;
  settings.count = all->count;
  if (exp_point_run(&settings, p, is_reference(p) ? NULL : &capacity, csv, &json)) return 1;
  return json ? exp_store_save(&o->settings, p, json) : 0;
}

/* Makes a point that is missing; *left is set where another process is at it. */
static int make(const struct options *o, const struct points *all, const struct exp_point *p,
                bool *left) {
  struct exp_result there;
  if (exp_store_load(&o->settings, p, &there)) {
    exp_result_free(&there);
    return 0;
  }
  const int claim = exp_store_claim(&o->settings, p);
  if (claim == -1) *left = true;
  if (claim < 0) return claim != -1;
  const int status = make_claimed(o, all, p);
  close(claim);
  return status;
}

/* Everything that other points refer to, whoever makes it; then the points. */
static int make_all(const struct options *o, const struct points *all) {
  bool left = true;
  while (left && !cli_stopped()) {
    left = false;
    for (size_t i = 0; i < all->count && !cli_stopped(); ++i)
      if (is_reference(&all->list[i]) && make(o, all, &all->list[i], &left)) return 1;
    if (left) sleep(1);
  }
  for (size_t i = 0; i < all->count && !cli_stopped(); ++i)
    if (is_wanted(o, &all->list[i]) && make(o, all, &all->list[i], &left)) return 1;
  return 0;
}

/* The same in several processes on one folder; each has its own devices. */
static int make_by(const struct options *o, const struct points *all) {
  pid_t child[PROCESSES];
  size_t children = 0;
  int status = 0;
  fflush(NULL);
  while (children + 1 < o->jobs) {
    const pid_t pid = fork();
    if (pid < 0) break; /* fewer then */
    if (pid == 0) {
      if (!freopen("/dev/null", "w", stderr)) _exit(1);
      _exit(make_all(o, all));
    }
    child[children++] = pid;
  }
  status = make_all(o, all);
  for (size_t i = 0; i < children; ++i) {
    int how = 0;
    while (waitpid(child[i], &how, 0) < 0 && errno == EINTR)
      ;
    if (!WIFEXITED(how) || WEXITSTATUS(how)) status = 1;
  }
  return status;
}

/* ---- The command ---- */

enum {
  KEY_OUT = CLI_KEY_VERB,
  KEY_ONLY,
  KEY_SEEDS,
  KEY_JOBS,
  KEY_QUICK,
  KEY_CORE,
  KEY_TRACE,
  KEY_DATA,
  KEY_PART,
  KEY_REPORT
};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *o = state->input;
  switch (key) {
    case KEY_OUT:
      o->settings.out = arg;
      break;
    case KEY_ONLY:
      o->only = arg;
      break;
    case KEY_SEEDS:
      o->seeds = cli_count(state, "--seeds", arg, 1, SEEDS_MOST);
      break;
    case KEY_JOBS:
      o->jobs = cli_count(state, "--jobs", arg, 1, PROCESSES);
      break;
    case KEY_QUICK:
      o->quick = true;
      o->seeds = 1;
      break;
    case KEY_CORE:
      o->core = true;
      break;
    case KEY_TRACE:
      o->settings.trace = arg;
      break;
    case KEY_DATA:
      o->settings.data = arg;
      break;
    case KEY_PART:
      o->settings.part = (uint32_t)cli_count(state, "--part", arg, 1, 100);
      break;
    case KEY_REPORT:
      o->report = arg;
      break;
    default:
      return cli_common(key, arg, state, NULL, &o->json);
  }
  return 0;
}

static int conclude(const struct options *o, const struct points *all) {
  char json[EXP_PATH], report[EXP_PATH];
  struct exp_summary summary;
  snprintf(json, sizeof json, "%s/summary.json", o->settings.out);
  snprintf(report, sizeof report, "%s/report.html", o->settings.out);
  if (exp_summary_make(&o->settings, all->list, all->count, &summary)) return 1;
  FILE *text = cli_text(o->json);
  exp_summary_print(&summary, text);
  int status = cli_json_write(o->json ? o->json : json, exp_summary_json(&summary));
  status |= exp_report(&summary, o->report ? o->report : report);
  if (!status) fprintf(text, "report         %s\n", o->report ? o->report : report);
  exp_summary_free(&summary);
  return status;
}

static int run(const struct options *o) {
  struct points all = {.list = calloc(POINTS, sizeof *all.list)};
  if (!all.list) return cli_fail("no memory for the list of points");
  make_points(&all, o);
  int status = exp_store_open(&o->settings);
  if (!status) status = make_by(o, &all);
  if (!status) status = conclude(o, &all);
  free(all.list);
  if (cli_stopped())
    fprintf(stderr, "Stopped. The same command goes on with the points that are missing.\n");
  return status || cli_stopped();
}

int experiment_colocation(int argc, char **argv) {
  static const struct argp_option list[] = {
      {"out", KEY_OUT, "DIR", 0,
       "Folder of the points; those that are there are kept (build/experiments/colocation)", 1},
      {"quick", KEY_QUICK, NULL, 0, "A tenth of the core grid: one seed, two loads", 2},
      {"core", KEY_CORE, NULL, 0, "The core grid only, without the other axes", 2},
      {"seeds", KEY_SEEDS, "N", 0, "Arrivals, samples and weights by seeds 1 .. N (5)", 2},
      {"only", KEY_ONLY, "PATTERN", 0, "Make only points of that name, such as 'digits-*'", 2},
      {"part", KEY_PART, "P", 0, "Percent of the requests that the definition asks for (100)", 2},
      {"jobs", KEY_JOBS, "N", 0, "Processes at once (1)", 3},
      {"data", KEY_DATA, "NAME", 0, "What is trained on (fashion-mnist)", 3},
      {"trace", KEY_TRACE, "FILE.csv", 0,
       "Arrivals of the axis `trace` (host/data/traces/azure-conversation.csv)", 3},
      {"report", KEY_REPORT, "FILE.html", 0, "The page (report.html in the folder)", 4},
      {"json", CLI_KEY_JSON, "FILE", 0, "The summary (summary.json in the folder)", 4},
      {0}};
  static const struct argp argp = {
      .options = list,
      .parser = parse,
      .doc =
          "Serves requests in batches beside training, at several loads and under every policy, "
          "and compares with each alone (docs/experiments.md).\vA point is a run on a simulated "
          "device of its own. Its figures and a row for each request are files in the folder; an "
          "experiment that was stopped goes on with the points that are missing. The whole of it "
          "simulates 2.5 billion cycles.\n\nExample:\n"
          "  coltrain experiment colocation --quick --jobs 2 --out build/quick\n"};
  struct options o = {.settings = {.out = "build/experiments/colocation",
                                   .trace = "host/data/traces/azure-conversation.csv",
                                   .data = "fashion-mnist",
                                   .part = 100,
                                   .on_percent = 50,
                                   .period = 20},
                      .seeds = SEEDS,
                      .jobs = 1};
  cli_parse(&argp, argc, argv, &o);
  if (cli_writable(o.json) || cli_writable(o.report)) return 1;
  cli_catch_stop();
  return run(&o);
}
