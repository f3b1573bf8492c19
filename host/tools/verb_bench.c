/* SPDX-License-Identifier: Apache-2.0 */
/* `coltrain bench WHAT`: the measurements, one file each (bench_*.c). */
#include "bench.h"
#include "cli.h"

static const struct cli_choice benches[] = {
    {"sim", "how many cycles a second the simulator runs", bench_sim},
    {"emu", "how fast the C model computes, by path", bench_emu},
    {"gemm", "how busy products keep the array", bench_gemm},
    {"interference", "what inference and training cost each other", bench_interference},
};

int bench_write(const char *path, json_t *root, int status) {
  json_object_set_new(root, "coltrain", json_string(CT_VERSION_STRING));
  json_object_set_new(root, "stopped", json_boolean(cli_stopped()));
  json_object_set_new(root, "failed", json_boolean(status != 0));
  const int written = cli_json_write(path, root);
  return status | cli_tell_stopped(cli_text(path)) | written;
}

int verb_bench(int argc, char **argv) {
  static const struct cli_choices choices = {
      .verb = "bench",
      .what = "measurement",
      .intro = "Measures:",
      .example = "coltrain bench gemm --shape 256x256x256 --beside all",
      .choice = benches,
      .count = sizeof benches / sizeof *benches,
  };
  return cli_choose(&choices, argc, argv);
}
