/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "colocate.h"

/* COMPARE: requests for each other policy in a report. LIMIT: megabytes of a trace. */
enum { COMPARE = 400, LIMIT = 50 };

/* One of those that are compared; what slack looks at, the deadlines of a server's requests, there
 * are none of here. */
static void take_policy(void *input, const char *name, const struct argp_state *state) {
  struct colocate_options *o = input;
  if (ct_policy_by_name(name, &o->policy))
    argp_error(state, "--policy: %s", ct_last_error(NULL));
  else if ((int)o->policy >= POLICIES)
    argp_error(state, "--policy: %s is for requests with deadlines, and these have none", name);
}

/* FROM:TO, cycles. */
static void take_window(void *input, const char *arg, const struct argp_state *state) {
  struct colocate_options *o = input;
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

static void take_compare(void *input, const char *arg, const struct argp_state *state) {
  struct colocate_options *o = input;
  o->compare = (size_t)cli_count(state, "--compare", arg, 0, 1000000);
  o->compare_given = true;
}

static void end(void *input, const struct argp_state *state) {
  struct colocate_options *o = input;
  if (!o->trace && o->trace_to) argp_error(state, "--trace-window is of use with --trace only");
  if (o->report && !o->compare_given) o->compare = COMPARE;
  o->trace_bytes *= 1000000;
}

/* ---- The order of things ---- */

/* A run that was stopped leaves a model that `train --resume` goes on with; one of a file's weights
 * has begun at step 0, which the file that it leaves does not say. */
static int save(struct colocate *c) {
  if (!c->l->save) return 0;
  const int rc = learner_save(&c->learner, c->l->save, c->feed.finished / c->feed.order.per_epoch);
  if (rc < 0) return cli_fail_device(c->load.dev, rc, "saving the model");
  if (!c->trained)
    fprintf(c->load.text, "%s has the model after these steps%s\n", c->l->save,
            learn_is_file(c->l->model) ? "" : "; coltrain train --resume goes on from there");
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
  if (!status && learner_crc32(&c->learner, &c->weights_crc32))
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
  static const struct cli_option options[] = {
      {"csv", "FILE.csv", "Write a row for each request; those served alone go to FILE.alone.csv",
       1, CLI_FILE_AT(struct colocate_options, csv, CLI_WRITE)},
      {"report", "FILE.html", "Write a page with charts for people; any browser shows it", 2,
       CLI_FILE_AT(struct colocate_options, report, CLI_WRITE)},
      {"trace", "FILE.json",
       "Write what every unit does, cycle by cycle; ui.perfetto.dev and chrome://tracing show it",
       2, CLI_FILE_AT(struct colocate_options, trace, CLI_WRITE)},
      {"requests", "N", "How many requests arrive (2000)", 1,
       CLI_COUNT_AT(struct colocate_options, requests, 1, 1000000)},
      LOAD_OPTION(struct colocate_options, permille),
      {"policy", "NAME",
       "Who goes first: priority (inference; the default), fcfs, round-robin, job", 1,
       .call = take_policy},
      {"compare", "N",
       "Repeat the first N requests under each of the other policies (with --report 400, else 0)",
       2, .call = take_compare},
      {"trace-window", "FROM:TO",
       "Cycles of the trace (the 100000 in which new weights first take over)", 2,
       .call = take_window},
      {"trace-limit", "MB", "The size at which the trace ends (50)", 2,
       CLI_COUNT_AT(struct colocate_options, trace_bytes, 1, 1000000)}};
  static const struct cli_command command = {
      CLI_COMMAND(options), LEARN_SHARED, .end = end,
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
                               .trace_bytes = LIMIT};
  if (cli_options(&command, argc, argv, &o)) return 1;
  if (o.report && cli_report_check()) return 1;
  struct colocate c;
  cli_catch_stop();
  int status = colocate_open(&c, &o);
  if (!status) status = run(&c);
  colocate_close(&c);
  return status;
}
