/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "learn.h"
#include "serve.h"

/* Requests of the run that measures the capacity, at least. */
enum { CAPACITY = 2000 };

/* Widths are digits with dashes between; all else is a network. */
static bool is_widths(const char *arg) {
  return strspn(arg, "0123456789-") == strlen(arg);
}

static void take_model(void *input, const char *arg, const struct argp_state *state) {
  struct serve_options *o = input;
  if (o->models == SERVE_MODELS) {
    argp_error(state, "--model: a device serves %d models at most", SERVE_MODELS);
    return;
  }
  struct serve_shape *shape = &o->shape[o->models++];
  if (is_widths(arg))
    shape->layers = learn_parse_layers("--model", arg, state, shape->widths);
  else
    shape->network = arg;
}

static void take_batching(void *input, const char *name, const struct argp_state *state) {
  struct serve_options *o = input;
  if (ct_batching_by_name(name, &o->serving.batching))
    argp_error(state, "--batching: %s", ct_last_error(NULL));
}

/* Those that need no file. */
static void take_arrivals(void *input, const char *name, const struct argp_state *state) {
  struct serve_options *o = input;
  o->chosen = true;
  if (!arrivals_by_name(name, &o->arrivals.kind) || o->arrivals.kind == ARRIVALS_FILE)
    argp_error(state, "--arrivals: \"%s\" is none of poisson, constant, bursty", name);
}

static void end(void *input, const struct argp_state *state) {
  struct serve_options *o = input;
  if (o->arrivals.file && o->chosen) argp_error(state, "--trace and --arrivals: one of them");
  if (o->arrivals.file) o->arrivals.kind = ARRIVALS_FILE;
  if (o->models == 0) take_model(o, "64-128-64-10", state);
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

#define OPTION_COUNT(field, least, most) CLI_COUNT_AT(struct serve_options, field, least, most)
#define OPTION_FILE(field, use) CLI_FILE_AT(struct serve_options, field, use)

int verb_serve_bench(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"json", "FILE", "Write the results (- for standard output)", 4,
       OPTION_FILE(json, CLI_WRITE)},
      {"csv", "FILE.csv", "Write a row for each request", 4, OPTION_FILE(csv, CLI_WRITE)},
      {"trace", "FILE.csv",
       "Arrivals as in a file whose first column has times, at the speed of the load", 1,
       OPTION_FILE(arrivals.file, CLI_READ)},
      {"model", "MODEL",
       "Widths of a perceptron, or a network: lenet5, resnet8, resnet20, vgg, a file that train "
       "has "
       "saved; again for each of up to 8 of one kind (64-128-64-10). Requests are for any of them",
       1, .call = take_model},
      {"requests", "N", "How many requests arrive (2000; to networks that go by runs 200)", 1,
       OPTION_COUNT(requests, 2, 10000000)},
      LOAD_OPTION(struct serve_options, permille),
      {"arrivals", "NAME", "poisson (the default), constant, bursty", 1, .call = take_arrivals},
      {"period", "C", "Cycles from burst to burst (100000)", 1,
       OPTION_COUNT(arrivals.period, 100, UINT32_MAX)},
      {"on", "P", "Percent of the period in which requests arrive (20)", 1,
       OPTION_COUNT(arrivals.on_percent, 1, 100)},
      {"deadline", "C", "Cycles a request may take (none)", 2,
       OPTION_COUNT(deadline, 1, UINT32_MAX)},
      {"bound", "C", "Search for the highest load with a p99 of so many cycles", 2,
       OPTION_COUNT(bound, 1, UINT32_MAX)},
      {"batching", "NAME", "When a batch goes: none, fixed, adaptive (none)", 3,
       .call = take_batching},
      {"max-batch", "N", "Requests in a batch at most (16; of runs, with none, 1)", 3,
       OPTION_COUNT(serving.max_batch, 1, 16)},
      {"max-wait", "C", "Cycles a request waits for others at most (0)", 3,
       OPTION_COUNT(serving.max_wait, 0, UINT32_MAX)},
      {"margin", "C", "Cycles a batch goes early, with adaptive (0: the library's)", 3,
       OPTION_COUNT(serving.margin, 0, UINT32_MAX)},
      {"stream", NULL, "Load weights for every batch, even if they fit", 3,
       CLI_FLAG_AT(struct serve_options, serving.stream)},
      {"seed", "S", "Decides weights, samples and arrivals (1)", 4,
       OPTION_COUNT(seed, 0, INT64_MAX)},
      {"device", "URI", "The device (" CLI_DEVICE ")", 4,
       CLI_TEXT_AT(struct serve_options, device)}};
  static const struct cli_command command = {
      CLI_COMMAND(options), .end = end,
      .doc =
          "Serves requests that arrive by themselves, in batches, and measures their latency.\v"
          "First the capacity is measured, with a queue that is never empty; then the requests "
          "arrive. Every answer is compared with emu:'s in every bit. On emu:, which has no time, "
          "only that is done. Batches of perceptrons are formed by the device, those of other "
          "networks by the host.\n\nExample:\n"
          "  coltrain serve-bench --load 0.7 --batching adaptive --deadline 20000\n"
          "  coltrain serve-bench --model lenet5 --requests 100\n"};
  struct serve_options o = {.device = CLI_DEVICE,
                            .capacity = CAPACITY,
                            .permille = 500,
                            .arrivals = {.on_percent = 20, .period = 100000},
                            .seed = 1};
  if (cli_options(&command, argc, argv, &o)) return 1;
  struct serve s;
  cli_catch_stop();
  int status = serve_open(&s, &o);
  if (!status) status = run(&s);
  serve_close(&s);
  return status;
}
