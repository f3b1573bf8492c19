/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "learn.h"
#include "serve.h"

enum { CAPACITY = 2000 /* requests of the run that measures it, at least */ };

enum {
  KEY_MODEL = CLI_KEY_VERB,
  KEY_REQUESTS,
  KEY_LOAD,
  KEY_ARRIVALS,
  KEY_TRACE,
  KEY_PERIOD,
  KEY_ON,
  KEY_BATCHING,
  KEY_MAX_BATCH,
  KEY_MAX_WAIT,
  KEY_MARGIN,
  KEY_STREAM,
  KEY_DEADLINE,
  KEY_BOUND,
  KEY_SEED,
  KEY_CSV
};

static enum ct_batching batching_of(const char *name, const struct argp_state *state) {
  enum ct_batching batching = CT_BATCHING_NONE;
  if (ct_batching_by_name(name, &batching))
    argp_error(state, "--batching: %s", ct_last_error(NULL));
  return batching;
}

/* Those that need no file. */
static enum arrivals_kind arrivals_of(const char *name, const struct argp_state *state) {
  enum arrivals_kind kind = ARRIVALS_POISSON;
  if (!arrivals_by_name(name, &kind) || kind == ARRIVALS_FILE)
    argp_error(state, "--arrivals: \"%s\" is none of poisson, constant, bursty", name);
  return kind;
}

static void add_model(struct serve_options *o, const char *arg, const struct argp_state *state) {
  if (o->models == SERVE_MODELS) {
    argp_error(state, "--model: a device serves %d models at most", SERVE_MODELS);
    return;
  }
  struct serve_shape *shape = &o->shape[o->models++];
  shape->layers = learn_parse_layers("--model", arg, state, shape->widths);
}

static error_t parse_batching(int key, const char *arg, struct argp_state *state) {
  struct ct_serving *how = &((struct serve_options *)state->input)->serving;
  switch (key) {
    case KEY_BATCHING:
      how->batching = batching_of(arg, state);
      break;
    case KEY_MAX_BATCH:
      how->max_batch = (uint32_t)cli_count(state, "--max-batch", arg, 1, 16);
      break;
    case KEY_MAX_WAIT:
      how->max_wait = (uint32_t)cli_count(state, "--max-wait", arg, 0, UINT32_MAX);
      break;
    case KEY_MARGIN:
      how->margin = (uint32_t)cli_count(state, "--margin", arg, 0, UINT32_MAX);
      break;
    case KEY_STREAM:
      how->stream = true;
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static error_t parse_load(int key, char *arg, struct argp_state *state) {
  struct serve_options *o = state->input;
  switch (key) {
    case KEY_REQUESTS:
      o->requests = (size_t)cli_count(state, "--requests", arg, 2, 10000000);
      break;
    case KEY_LOAD:
      o->permille = (uint32_t)lroundf(1000 * cli_real(state, "--load", arg, 0.001f, 2.0f));
      break;
    case KEY_ARRIVALS:
      o->arrivals.kind = arrivals_of(arg, state);
      break;
    case KEY_TRACE:
      o->arrivals.file = arg;
      o->arrivals.kind = ARRIVALS_FILE;
      break;
    case KEY_PERIOD:
      o->arrivals.period = cli_count(state, "--period", arg, 100, UINT32_MAX);
      break;
    case KEY_ON:
      o->arrivals.on_percent = (uint32_t)cli_count(state, "--on", arg, 1, 100);
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct serve_options *o = state->input;
  if (parse_batching(key, arg, state) == 0 || parse_load(key, arg, state) == 0) return 0;
  switch (key) {
    case KEY_MODEL:
      add_model(o, arg, state);
      break;
    case KEY_DEADLINE:
      o->deadline = (uint32_t)cli_count(state, "--deadline", arg, 1, UINT32_MAX);
      break;
    case KEY_BOUND:
      o->bound = cli_count(state, "--bound", arg, 1, UINT32_MAX);
      break;
    case KEY_SEED:
      o->seed = cli_count(state, "--seed", arg, 0, INT64_MAX);
      break;
    case KEY_CSV:
      o->csv = arg;
      break;
    case ARGP_KEY_END:
      if (o->arrivals.file && o->arrivals.kind != ARRIVALS_FILE)
        argp_error(state, "--trace and --arrivals: one of them");
      o->capacity = o->requests > CAPACITY ? o->requests : CAPACITY;
      if (o->models == 0) add_model(o, "64-128-64-10", state);
      break;
    default:
      return cli_common(key, arg, state, &o->device, &o->json);
  }
  return 0;
}

/* Answers that are lost or wrong are a failure of the device, whatever the figures say. */
static int verdict(const struct serve *s) {
  return serve_check_wrong(s->wrong) || serve_check_answered(&s->run) || cli_stopped();
}

static int run(struct serve *s) {
  ct_progress_open(&s->load.progress, stderr);
  const int status = serve_runs(s);
  ct_progress_close(&s->load.progress);
  if (status && s->run.done < s->run.count) return status;
  serve_print(s); /* the load asked for, also if the search failed after it */
  const int results = serve_csv(s) | serve_json(s);
  return status || verdict(s) || results;
}

int verb_serve_bench(int argc, char **argv) {
  static const struct argp_option list[] = {
      {"model", KEY_MODEL, "W-W-W", 0,
       "Widths of a model; again for each of up to 8 (64-128-64-10). Requests are for any of them",
       1},
      {"requests", KEY_REQUESTS, "N", 0, "How many requests arrive (2000)", 1},
      {"load", KEY_LOAD, "F", 0, "Offered load as a part of the capacity (0.5)", 1},
      {"arrivals", KEY_ARRIVALS, "NAME", 0, "poisson (the default), constant, bursty", 1},
      {"trace", KEY_TRACE, "FILE.csv", 0,
       "Arrivals as in a file whose first column has times, at the speed of the load", 1},
      {"period", KEY_PERIOD, "C", 0, "Cycles from burst to burst (100000)", 1},
      {"on", KEY_ON, "P", 0, "Percent of the period in which requests arrive (20)", 1},
      {"deadline", KEY_DEADLINE, "C", 0, "Cycles a request may take (none)", 2},
      {"bound", KEY_BOUND, "C", 0, "Search for the highest load with a p99 of so many cycles", 2},
      {"batching", KEY_BATCHING, "NAME", 0, "When a batch goes: none, fixed, adaptive (none)", 3},
      {"max-batch", KEY_MAX_BATCH, "N", 0, "Requests in a batch at most (16)", 3},
      {"max-wait", KEY_MAX_WAIT, "C", 0, "Cycles a request waits for others at most (0)", 3},
      {"margin", KEY_MARGIN, "C", 0, "Cycles a batch goes early, with adaptive (0: the library's)",
       3},
      {"stream", KEY_STREAM, NULL, 0, "Load weights for every batch, even if they fit", 3},
      {"seed", KEY_SEED, "S", 0, "Decides weights, samples and arrivals (1)", 4},
      {"csv", KEY_CSV, "FILE.csv", 0, "Write a row for each request", 4},
      {"device", CLI_KEY_DEVICE, "URI", 0, "The device (" CLI_DEVICE ")", 4},
      {"json", CLI_KEY_JSON, "FILE", 0, "Write the results (- for standard output)", 4},
      {0}};
  static const struct argp argp = {
      .options = list,
      .parser = parse,
      .doc =
          "Serves requests that arrive by themselves, in batches, and measures their latency.\v"
          "First the capacity is measured, with a queue that is never empty; then the requests "
          "arrive. Every answer is compared with emu:'s in every bit. On emu:, which has no time, "
          "only that is done.\n\nExample:\n"
          "  coltrain serve-bench --load 0.7 --batching adaptive --deadline 20000\n"};
  struct serve_options o = {.device = CLI_DEVICE,
                            .requests = 2000,
                            .permille = 500,
                            .arrivals = {.on_percent = 20, .period = 100000},
                            .seed = 1};
  cli_parse(&argp, argc, argv, &o);
  const struct cli_file files[] = {{"--json", o.json, CLI_WRITE},
                                   {"--csv", o.csv, CLI_WRITE},
                                   {"--trace", o.arrivals.file, CLI_READ}};
  if (cli_files(files, sizeof files / sizeof *files)) return 1;
  struct serve s;
  cli_catch_stop();
  int status = serve_open(&s, &o);
  if (!status) status = run(&s);
  serve_close(&s);
  return status;
}
