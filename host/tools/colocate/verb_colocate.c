/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "colocate.h"

enum {
  KEY_REQUESTS = CLI_KEY_VERB,
  KEY_LOAD,
  KEY_POLICY,
  KEY_CSV,
  KEY_REPORT,
  KEY_COMPARE,
  KEY_TRACE,
  KEY_WINDOW,
  KEY_LIMIT
};

/* COMPARE: requests for each other policy in a report. LIMIT: megabytes of a trace. */
enum { COMPARE = 400, LIMIT = 50 };

/* One of those that are compared; what slack looks at, the deadlines of a server's requests, there
 * are none of here. */
static enum ct_policy policy_of(const char *name, const struct argp_state *state) {
  enum ct_policy policy = CT_PRIORITY;
  if (ct_policy_by_name(name, &policy))
    argp_error(state, "--policy: %s", ct_last_error(NULL));
  else if ((int)policy >= POLICIES)
    argp_error(state, "--policy: %s is for requests with deadlines, and these have none", name);
  return policy;
}

/* FROM:TO, cycles. */
static void parse_window(struct colocate_options *o, const char *arg,
                         const struct argp_state *state) {
  char *colon = NULL, *end = NULL;
  errno = 0;
  o->trace_from = strtoull(arg, &colon, 10);
  if (*colon == ':') o->trace_to = strtoull(colon + 1, &end, 10);
  if (*arg < '0' || *arg > '9' || *colon != ':' || colon[1] < '0' || colon[1] > '9' || *end ||
      errno)
    argp_error(state, "--trace-window: \"%s\" is not FROM:TO, two numbers of cycles", arg);
  else if (o->trace_from >= o->trace_to)
    argp_error(state, "--trace-window: %s is empty; the first cycle must be below the second", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct colocate_options *o = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &o->learn;
      break;
    case KEY_REQUESTS:
      o->requests = (size_t)cli_count(state, "--requests", arg, 1, 1000000);
      break;
    case KEY_LOAD:
      o->permille = (uint32_t)lroundf(1000 * cli_real(state, "--load", arg, 0.001f, 2.0f));
      break;
    case KEY_POLICY:
      o->policy = policy_of(arg, state);
      break;
    case KEY_CSV:
      o->csv = arg;
      break;
    case KEY_REPORT:
      o->report = arg;
      break;
    case KEY_COMPARE:
      o->compare = (size_t)cli_count(state, "--compare", arg, 0, 1000000);
      o->compare_given = true;
      break;
    case KEY_TRACE:
      o->trace = arg;
      break;
    case KEY_WINDOW:
      parse_window(o, arg, state);
      break;
    case KEY_LIMIT:
      o->trace_bytes = cli_count(state, "--trace-limit", arg, 1, 1000000) * 1000000;
      break;
    case ARGP_KEY_END:
      if (!o->trace && o->trace_to) argp_error(state, "--trace-window is of use with --trace only");
      if (o->report && !o->compare_given) o->compare = COMPARE;
      break;
    default:
      return cli_common(key, arg, state, NULL, NULL);
  }
  return 0;
}

/* ---- The order of things ---- */

/* A run that was stopped leaves a model that `train --resume` goes on with. */
static int save(struct colocate *c) {
  if (!c->l->save) return 0;
  ct_model_set_epochs(c->model, c->feed.finished / c->feed.per_epoch);
  const int rc = ct_model_save(c->model, c->l->save);
  if (rc < 0) return cli_fail_device(c->load.dev, rc, "saving the model");
  if (!c->trained)
    fprintf(c->load.text,
            "%s has the model after these steps; coltrain train --resume goes on from there\n",
            c->l->save);
  return 0;
}

/* Answers that are lost or wrong are a failure of the device, whatever the figures say. */
static int verdict(const struct colocate *c) {
  const size_t lost = c->serve.run.pushed - (c->serve.run.done - c->serve.run.failed);
  if (c->wrong || c->wrong_alone || c->wrong_others)
    return cli_fail(
        "%zu answers differ from emu: with the weights of their version: the device "
        "computes wrongly",
        c->wrong + c->wrong_alone + c->wrong_others);
  if (lost || c->alone.run.failed)
    return cli_fail("%zu requests were not answered", lost + c->alone.run.failed);
  return cli_stopped();
}

static int run(struct colocate *c) {
  ct_progress_open(&c->load.progress, stderr);
  int status = colocate_runs(c);
  if (!status && cli_weights_crc32(c->model, &c->weights_crc32))
    status = cli_fail_device(c->load.dev, CT_ERR_DEVICE, "reading the weights back");
  if (!status) status = colocate_check(c);
  ct_progress_close(&c->load.progress);
  if (status) return status;
  colocate_print(c);
  const int results = colocate_csv(c) | save(c) | colocate_trace_close(c) | colocate_write(c);
  const int failed = verdict(c);
  return results || failed;
}

int verb_colocate(int argc, char **argv) {
  static const struct argp_option list[] = {
      {"requests", KEY_REQUESTS, "N", 0, "How many requests arrive (2000)", 1},
      {"load", KEY_LOAD, "F", 0, "Offered load as a part of the capacity (0.5)", 1},
      {"policy", KEY_POLICY, "NAME", 0,
       "Who goes first: priority (inference; the default), fcfs, round-robin, job", 1},
      {"csv", KEY_CSV, "FILE.csv", 0,
       "Write a row for each request; those served alone go to FILE.alone.csv", 1},
      {"report", KEY_REPORT, "FILE.html", 0,
       "Write a page with charts for people; any browser shows it", 2},
      {"compare", KEY_COMPARE, "N", 0,
       "Repeat the first N requests under each of the other policies (with --report 400, else 0)",
       2},
      {"trace", KEY_TRACE, "FILE.json", 0,
       "Write what every unit does, cycle by cycle; ui.perfetto.dev and chrome://tracing show it",
       2},
      {"trace-window", KEY_WINDOW, "FROM:TO", 0,
       "Cycles of the trace (the 100000 in which new weights first take over)", 2},
      {"trace-limit", KEY_LIMIT, "MB", 0, "The size at which the trace ends (50)", 2},
      {0}};
  static const struct argp_child children[] = {{&learn_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = list,
      .parser = parse,
      .children = children,
      .doc =
          "Serves a model while training it, then each alone, and compares.\vAfter a quarter of "
          "the first epoch the model begins to answer requests that arrive by themselves, while "
          "training goes on; after every epoch the new weights take over between two requests. "
          "Every answer is computed again by emu: and compared in every bit. Ctrl-C stops, prints "
          "what was measured so far and saves the model as it is.\n\nExample:\n"
          "  coltrain colocate --load 0.7 --report run.html --trace run.json\n"};
  struct colocate_options o = {.learn = LEARN_DEFAULTS,
                               .requests = 2000,
                               .permille = 500,
                               .policy = CT_PRIORITY,
                               .trace_bytes = LIMIT * 1000000ull};
  cli_parse(&argp, argc, argv, &o);
  const struct cli_file files[] = {
      {"--save", o.learn.save, CLI_WRITE}, {"--json", o.learn.json, CLI_WRITE},
      {"--csv", o.csv, CLI_WRITE},         {"--report", o.report, CLI_WRITE},
      {"--trace", o.trace, CLI_WRITE},     {"--data", o.learn.data, CLI_READ}};
  if (cli_files(files, sizeof files / sizeof *files)) return 1;
  if (o.report && cli_report_check()) return 1;
  struct colocate c;
  cli_catch_stop();
  int status = colocate_open(&c, &o);
  if (!status) status = run(&c);
  colocate_close(&c);
  return status;
}
