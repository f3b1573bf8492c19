/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bench.h"
#include "interfere.h"

enum {
  KEY_JOBS = CLI_KEY_VERB,
  KEY_NETWORK,
  KEY_SEED,
  KEY_BATCH,
  KEY_TRAINING,
  KEY_RESIDENT,
  KEY_POLICY,
  KEY_FLOOR,
  KEY_CAP,
  KEY_GAP,
  KEY_ALONE
};

static enum interfere_load load_of(const char *name, const struct argp_state *state) {
  if (!strcmp(name, "model")) return LOAD_MODEL;
  if (!strcmp(name, "stress")) return LOAD_STRESS;
  if (!strcmp(name, "banks")) return LOAD_BANKS;
  if (!strcmp(name, "products")) return LOAD_PRODUCTS;
  if (!strcmp(name, "none")) return LOAD_NONE;
  argp_error(state, "--training: \"%s\" is none of model, stress, banks, products, none", name);
  return LOAD_MODEL;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct interfere_options *o = state->input;
  switch (key) {
    case KEY_JOBS:
      o->jobs = (size_t)cli_count(state, "--jobs", arg, 1, 1000000);
      break;
    case KEY_NETWORK:
      o->network = arg;
      break;
    case KEY_SEED:
      o->seed = cli_count(state, "--seed", arg, 0, UINT32_MAX);
      break;
    case KEY_BATCH:
      o->batch = (uint32_t)cli_count(state, "--batch", arg, 1, 1024);
      break;
    case KEY_TRAINING:
      o->load = load_of(arg, state);
      break;
    case KEY_RESIDENT:
      o->resident = true;
      break;
    case KEY_POLICY:
      if (ct_policy_by_name(arg, &o->policy))
        argp_error(state, "--policy: %s", ct_last_error(NULL));
      break;
    case KEY_FLOOR:
      o->floor = (uint32_t)cli_count(state, "--floor", arg, 0, 255);
      break;
    case KEY_CAP:
      o->train_cap = (uint32_t)cli_count(state, "--train-cap", arg, 1, UINT32_MAX);
      break;
    case KEY_GAP:
      o->gap = (uint32_t)cli_count(state, "--gap", arg, GAP_LEAST + 1, UINT32_MAX);
      break;
    case KEY_ALONE:
      o->alone = arg;
      break;
    default:
      return cli_common(key, arg, state, &o->device, &o->json);
  }
  return 0;
}

int bench_interference(int argc, char **argv) {
  static const struct argp_option list[] = {
      {"device", CLI_KEY_DEVICE, "URI", 0, "The device, a simulated one (" CLI_DEVICE ")", 0},
      {"json", CLI_KEY_JSON, "FILE", 0, "Write all results; - is standard output", 0},
      {"jobs", KEY_JOBS, "N", 0, "Inference jobs (10000)", 0},
      {"network", KEY_NETWORK, "NET", 0,
       "digits, WIDTHxLAYERS or widths such as 784-512-256-10 (the default)", 0},
      {"batch", KEY_BATCH, "N", 0, "Rows of a training step (64)", 0},
      {"training", KEY_TRAINING, "LOAD", 0,
       "What trains: model (the same network; the default), stress (every unit all the time), "
       "banks (every unit, words and rows all in one bank), "
       "products (rows of the array from resident operands), none (inference alone, no more)",
       0},
      {"resident", KEY_RESIDENT, NULL, 0, "Inference keeps its weights in the scratchpad", 0},
      {"policy", KEY_POLICY, "NAME", 0,
       "Who goes first: priority (inference; the default), fcfs, round-robin, job, slack", 0},
      {"floor", KEY_FLOOR, "N", 0, "Training's guaranteed share in 1/256 (0)", 0},
      {"train-cap", KEY_CAP, "N", 0, "TRAIN_CAP (the device's)", 0},
      {"gap", KEY_GAP, "N", 0,
       "Longest gap before a job in cycles (such that jobs take half of the time)", 0},
      {"alone", KEY_ALONE, "FILE", 0,
       "Take inference alone from the --json of an earlier run of the same jobs", 0},
      {"seed", KEY_SEED, "N", 0, "Seed of gaps, requests and weights (1)", 0},
      {0}};
  static const struct argp argp = {
      .options = list,
      .parser = parse,
      .doc =
          "Measures what inference and training cost each other: inference jobs one at a time "
          "at seeded gaps, alone and beside training, the same jobs in both; waits of every "
          "unit against their bounds. Fails if a bound is broken or an answer is not emu:'s."
          "\vExample:\n  coltrain bench interference --network digits --jobs 1000\n"};
  struct interfere_options o = {
      .device = CLI_DEVICE, .network = "784-512-256-10", .jobs = 10000, .batch = 64, .seed = 1};
  cli_parse(&argp, argc, argv, &o);
  if (o.alone && o.load == LOAD_NONE)
    return cli_fail("--alone is for a run beside training: leave one of --alone, --training none");
  const struct cli_file files[] = {{"--json", o.json, CLI_WRITE}, {"--alone", o.alone, CLI_READ}};
  if (cli_files(files, sizeof files / sizeof *files)) return 1;
  static struct interfere t; /* NOLINT: histograms are large for a stack */
  cli_catch_stop();
  int status = interfere_open(&t, &o);
  if (!status) interfere_bounds(&t);
  if (!status) status = interfere_runs(&t);
  if (!status) status = interfere_report(&t);
  interfere_close(&t);
  return status;
}
