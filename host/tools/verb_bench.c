/* SPDX-License-Identifier: Apache-2.0 */
/* `coltrain bench WHAT`: the measurements, one file each (bench_*.c). */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "cli.h"

struct bench {
  const char *name, *text;
  int (*run)(int argc, char **argv);
};

static const struct bench benches[] = {
    {"sim", "how many cycles a second the simulator runs", bench_sim},
    {"emu", "how fast the C model computes, by path", bench_emu},
    {"gemm", "how busy products keep the array", bench_gemm},
    {"interference", "what inference and training cost each other", bench_interference},
};

static void print_help(FILE *to) {
  fputs("Usage: coltrain bench WHAT [OPTION...]\nMeasures:\n\n", to);
  for (size_t i = 0; i < sizeof benches / sizeof *benches; ++i)
    fprintf(to, "  %-14s %s\n", benches[i].name, benches[i].text);
  fputs(
      "\n  coltrain bench WHAT --help     the options of a measurement\n\n"
      "Example:\n  coltrain bench gemm --shape 256x256x256 --beside all\n",
      to);
}

int verb_bench(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return 2;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?")) {
    print_help(stdout);
    return 0;
  }
  for (size_t i = 0; i < sizeof benches / sizeof *benches; ++i) {
    if (strcmp(argv[1], benches[i].name) != 0) continue;
    char name[64];
    snprintf(name, sizeof name, "coltrain bench %s", benches[i].name);
    argv[1] = name;
    return benches[i].run(argc - 1, argv + 1);
  }
  struct cli_near near = {.given = argv[1]};
  for (size_t i = 0; i < sizeof benches / sizeof *benches; ++i)
    cli_consider(&near, benches[i].name);
  if (near.name)
    cli_fail("there is no measurement \"%s\"; did you mean \"%s\"?", argv[1], near.name);
  else
    cli_fail("there is no measurement \"%s\"; coltrain bench --help lists them", argv[1]);
  return 2;
}
