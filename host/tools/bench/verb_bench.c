/* SPDX-License-Identifier: Apache-2.0 */
/* `coltrain bench WHAT`: the measurements, one file each (bench_*.c). */
#include "bench.h"
#include "cli.h"

static const struct cli_choice benches[] = {
    {"sim", "how many cycles a second the simulator runs", bench_sim},
    {"emu", "how fast the C model computes, by path", bench_emu},
    {"link", "what the way to a device carries", bench_link},
    {"gemm", "how busy products keep the array", bench_gemm},
    {"interference", "what inference and training cost each other", bench_interference},
};

int verb_bench(int argc, char **argv) {
  static const struct cli_choices choices = {
      .verb = "bench",
      .what = "measurement",
      .intro = "Measures:",
      .example = "coltrain bench gemm --shape 256x256x256 --beside training",
      .choice = benches,
      .count = sizeof benches / sizeof *benches,
  };
  return cli_choose(&choices, argc, argv);
}
