/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batching.h"

/* QUICK: percent of the requests. TIMES: of a request alone, the first bound. MARGIN: cycles for
 * the batcher and the start of a job. */
enum { QUICK = 10, TIMES = 10, MARGIN = 500 };

struct options {
  struct exp_options common;
  struct batching_row *rows; /* BATCHING_ROWS */
};

/* ---- Points ---- */

static struct exp_point cost_point(const struct exp_server *server) {
  struct exp_point p = {.kind = EXP_COST, .server = server, .memory = "", .seed = 1};
  snprintf(p.name, sizeof p.name, "%s-cost", server->name);
  return p;
}

static struct exp_point rate_point(const struct batching_row *row, size_t rate, uint64_t seed) {
  struct exp_point p = {.kind = EXP_RATE,
                        .server = row->server,
                        .memory = "",
                        .seed = seed,
                        .batching = row->batching};
  p.batching.rate = row->rate[rate];
  snprintf(p.name, sizeof p.name, "%.48s-rate%u-seed%u", row->name, (unsigned)p.batching.rate,
           (unsigned)seed);
  return p;
}

/* ---- Rows ---- */

/* Bounds of p99 in microseconds; 0: TIMES a request alone. */
static const struct {
  const char *name;
  uint64_t us;
} bounds[BATCHING_BOUNDS] = {{"10x", 0}, {"50us", 50}, {"500us", 500}};

static void name_rows(struct batching_row *rows) {
  static const uint32_t sizes[BATCHING_SIZES] = {1, EXP_BATCH};
  for (size_t i = 0; i < BATCHING_ROWS; ++i) {
    struct batching_row *row = &rows[i];
    const size_t bound = i / BATCHING_SIZES;
    row->server = &exp_servers[bound / BATCHING_BOUNDS];
    row->bound_us = bounds[bound % BATCHING_BOUNDS].us;
    row->bound_name = bounds[bound % BATCHING_BOUNDS].name;
    row->batching.max_batch = sizes[i % BATCHING_SIZES];
    snprintf(row->name, sizeof row->name, "%s-%s-batch%u", row->server->name, row->bound_name,
             (unsigned)row->batching.max_batch);
  }
}

/* What follows from the costs. A batch is due so early that it is in time although another one has
 * just begun, a second one is formed already (the device forms one ahead), and it grows to a full
 * one meanwhile. */
static int prepare(const struct options *o, struct batching_row *row) {
  const struct exp_point point = cost_point(row->server);
  struct exp_batching *b = &row->batching;
  struct exp_result cost;
  if (!exp_store_load(&o->common.settings, &point, &cost)) return 0;
  row->known = true;
  row->service = cost.service;
  row->clock_hz = cost.clock_hz;
  memcpy(row->cost, cost.cost, sizeof row->cost);
  b->bound = row->bound_us ? row->clock_hz / 1000000 * row->bound_us : TIMES * row->service;
  row->feasible = row->service <= b->bound;
  for (size_t n = 0; n < EXP_BATCH; ++n)
    b->service[n] = (uint32_t)row->cost[n + 1];
  if (b->max_batch > 1) b->margin = (uint32_t)(3 * row->cost[EXP_BATCH] - row->cost[1]) + MARGIN;
  row->interval = cost.interval[b->max_batch > 1];
  if (!row->feasible) return 0;
  batching_rates(row);
  const struct exp_point rate = rate_point(row, 0, 1);
  const size_t requests = exp_point_requests(&o->common.settings, &rate);
  return batching_model(row, requests, exp_point_dropped(&o->common.settings, requests));
}

/* A rate of a row: made if it is missing and shall be, then read. False: not there. */
static bool try_rate(const struct options *o, const struct batching_row *row, size_t rate,
                     uint64_t seed, bool make, struct exp_result *result, int *status) {
  const struct exp_point p = rate_point(row, rate, seed);
  bool left = false;
  *status = make && !cli_stopped() ? exp_make(&o->common.settings, &p, &left) : 0;
  return !*status && exp_store_load(&o->common.settings, &p, result);
}

/* Goes on with a row as far as points are there; makes what is missing, if it shall. What another
 * process is at is left to it. */
static int search(const struct options *o, struct batching_row *row, bool make) {
  struct exp_result result;
  int status = 0;
  for (size_t rate; (rate = batching_next(row)) != SIZE_MAX;) {
    if (!try_rate(o, row, rate, 1, make, &result, &status)) return status;
    batching_take(row, rate, &result);
  }
  for (uint64_t seed = 1; row->good && seed <= o->common.seeds && !status; ++seed)
    if (try_rate(o, row, row->good->rate, seed, make, &result, &status))
      row->seed[row->seeds++] = (struct batching_seed){seed, result};
  return status;
}

static bool is_wanted(const struct options *o, const struct batching_row *row) {
  return !o->common.only || fnmatch(o->common.only, row->name, 0) == 0;
}

/* The costs of the networks that are wanted, whoever measures them. */
static int make_costs(const struct options *o) {
  bool left = true;
  while (left && !cli_stopped()) {
    left = false;
    for (size_t i = 0; i < BATCHING_ROWS && !cli_stopped(); ++i) {
      const struct exp_point p = cost_point(o->rows[i].server);
      if (is_wanted(o, &o->rows[i]) && exp_make(&o->common.settings, &p, &left)) return 1;
    }
    if (left) sleep(1);
  }
  return 0;
}

static int make_all(const void *arg) {
  const struct options *o = arg;
  if (make_costs(o)) return 1;
  for (size_t i = 0; i < BATCHING_ROWS && !cli_stopped(); ++i) {
    struct batching_row row = o->rows[i];
    if (!is_wanted(o, &row)) continue;
    if (prepare(o, &row)) return 1;
    if (row.feasible && search(o, &row, true)) return 1;
  }
  return 0;
}

/* ---- The command ---- */

enum { KEY_QUICK = CLI_KEY_VERB };

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *o = state->input;
  (void)arg;
  if (key == ARGP_KEY_INIT)
    state->child_inputs[0] = &o->common;
  else if (key == KEY_QUICK)
    o->common.settings.part = QUICK;
  else
    return ARGP_ERR_UNKNOWN;
  return 0;
}

static int conclude(const struct options *o) {
  const struct exp_options *c = &o->common;
  char json[EXP_PATH], path[EXP_PATH];
  const char *report = exp_options_path(c, c->report, "report.html", path);
  FILE *text = cli_text(c->json);
  for (size_t i = 0; i < BATCHING_ROWS; ++i)
    if (prepare(o, &o->rows[i]) || (o->rows[i].feasible && search(o, &o->rows[i], false))) return 1;
  batching_print(o->rows, &c->settings, text);
  int status = cli_json_write(exp_options_path(c, c->json, "summary.json", json),
                              batching_json(o->rows, &c->settings));
  status |= batching_page(o->rows, &c->settings, report);
  if (!status) fprintf(text, "report         %s\n", report);
  uint64_t answered;
  return status | serve_check_wrong(batching_wrong(o->rows, &answered));
}

static int run(struct options *o) {
  o->rows = calloc(BATCHING_ROWS, sizeof *o->rows);
  if (!o->rows) return cli_fail("no memory for the rows");
  name_rows(o->rows);
  int status = exp_store_open(&o->common.settings);
  if (!status) {
    status = exp_make_by(o->common.jobs, make_all, o);
    status |= conclude(o); /* what is there, whatever went wrong */
  }
  free(o->rows);
  return exp_make_end(status);
}

int experiment_batching(int argc, char **argv) {
  static const struct argp_option list[] = {
      {"quick", KEY_QUICK, NULL, 0, "A tenth of the requests", 2}, {0}};
  static const struct argp_child children[] = {{&exp_options_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = list,
      .children = children,
      .parser = parse,
      .doc =
          "Searches for the highest rate of requests whose p99 stays within a bound, for single "
          "requests and for batches of up to 16 (docs/experiments.md).\vEvery rate that is tried "
          "is a run on a simulated device of its own. Its figures and a row for each request are "
          "files in the folder; an experiment that was stopped goes on with what is missing.\n\n"
          "Example:\n"
          "  coltrain experiment batching --only 'digits-*' --jobs 2 --out build/digits\n"};
  struct options o = {.common = {.settings = {.out = "build/experiments/batching", .part = 100},
                                 .seeds = 1,
                                 .jobs = 1}};
  cli_parse(&argp, argc, argv, &o);
  const struct cli_file files[] = {{"--json", o.common.json, CLI_WRITE},
                                   {"--report", o.common.report, CLI_WRITE},
                                   {"--trace", o.common.settings.trace, CLI_READ}};
  if (cli_files(files, sizeof files / sizeof *files)) return 1;
  cli_catch_stop();
  return run(&o);
}
