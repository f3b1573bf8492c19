/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bench.h"
#include "interfere.h"

static void take_training(void *input, const char *name, const struct argp_state *state) {
  struct interfere_options *o = input;
  for (int i = LOAD_MODEL; i <= LOAD_NONE; ++i) {
    o->load = (enum interfere_load)i;
    if (!strcmp(name, interfere_load_name(o->load))) return;
  }
  argp_error(state, "--training: \"%s\" is none of model, stress, banks, products, none", name);
}

static void take_policy(void *input, const char *name, const struct argp_state *state) {
  struct interfere_options *o = input;
  if (ct_policy_by_name(name, &o->policy)) argp_error(state, "--policy: %s", ct_last_error(NULL));
}

#define COUNT(field, least, most) CLI_COUNT_AT(struct interfere_options, field, least, most)

int bench_interference(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"device", "URI", "The device, a simulated one (" CLI_DEVICE ")",
       CLI_TEXT_AT(struct interfere_options, device)},
      {"json", "FILE", "Write all results; - is standard output",
       CLI_FILE_AT(struct interfere_options, json, CLI_WRITE)},
      {"alone", "FILE", "Take inference alone from the --json of an earlier run of the same jobs",
       CLI_FILE_AT(struct interfere_options, alone, CLI_READ)},
      {"jobs", "N", "Inference jobs (10000)", COUNT(jobs, 1, 1000000)},
      {"network", "NET", "digits, WIDTHxLAYERS or widths such as 784-512-256-10 (the default)",
       CLI_TEXT_AT(struct interfere_options, network)},
      {"batch", "N", "Rows of a training step (64)", COUNT(batch, 1, 1024)},
      {"training", "LOAD",
       "What trains: model (the same network; the default), stress (every unit all the time), "
       "banks (every unit, words and rows all in one bank), "
       "products (rows of the array from resident operands), none (inference alone, no more)",
       .call = take_training},
      {"resident", NULL, "Inference keeps its weights in the scratchpad",
       CLI_FLAG_AT(struct interfere_options, resident)},
      {"policy", "NAME",
       "Who goes first: priority (inference; the default), fcfs, round-robin, job, slack",
       .call = take_policy},
      {"floor", "N", "Training's guaranteed share in 1/256 (0)", COUNT(floor, 0, 255)},
      {"train-cap", "N", "TRAIN_CAP (the device's)", COUNT(train_cap, 1, UINT32_MAX)},
      {"gap", "N", "Longest gap before a job in cycles (such that jobs take half of the time)",
       COUNT(gap, GAP_LEAST + 1, UINT32_MAX)},
      {"seed", "N", "Seed of gaps, requests and weights (1)", COUNT(seed, 0, UINT32_MAX)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      .doc =
          "Measures what inference and training cost each other: inference jobs one at a time "
          "at seeded gaps, alone and beside training, the same jobs in both; waits of every "
          "unit against their bounds. Fails if a bound is broken or an answer is not emu:'s."
          "\vExample:\n  coltrain bench interference --network digits --jobs 1000\n"};
  struct interfere_options o = {
      .device = CLI_DEVICE, .network = "784-512-256-10", .jobs = 10000, .batch = 64, .seed = 1};
  if (cli_options(&command, argc, argv, &o)) return 1;
  if (o.alone && o.load == LOAD_NONE)
    return cli_fail("--alone is for a run beside training: leave one of --alone, --training none");
  static struct interfere t; /* NOLINT: histograms are large for a stack */
  cli_catch_stop();
  int status = interfere_open(&t, &o);
  if (!status) interfere_bounds(&t);
  if (!status) status = interfere_runs(&t);
  if (!status) status = interfere_report(&t);
  interfere_close(&t);
  return status;
}
