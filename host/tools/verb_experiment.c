/* SPDX-License-Identifier: Apache-2.0 */
/* `coltrain experiment WHAT`: many measurements by one definition (experiment.h). */
#include <string.h>

#include "cli.h"
#include "experiment.h"

static const struct cli_choice experiments[] = {
    {"colocation", "requests beside training: loads, policies, memories, arrivals",
     experiment_colocation},
    {"batching", "what batches add to the throughput within a bound of latency",
     experiment_batching},
};

int verb_experiment(int argc, char **argv) {
  static const struct cli_choices choices = {
      .verb = "experiment",
      .what = "experiment",
      .intro = "Makes:",
      .example = "coltrain experiment colocation --quick --out build/quick",
      .choice = experiments,
      .count = sizeof experiments / sizeof *experiments,
  };
  return cli_choose(&choices, argc, argv);
}
