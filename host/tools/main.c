/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coltrain command: one verb, its options, its exit status (0 done, 1 failed after a sentence,
 * 2 used wrongly).
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

struct verb {
  const char *name, *text;
  int (*run)(int argc, char **argv);
};

static const struct verb verbs[] = {
    {"colocate", "serve a model while training it; compare with each alone", verb_colocate},
    {"train", "train a network and save it", verb_train},
    {"infer", "run a saved model on a data set or a matrix", verb_infer},
    {"serve-bench", "serve requests in batches and measure their latency", verb_serve_bench},
    {"matmul", "multiply two float32 matrices in HBFP8", verb_matmul},
    {"top", "watch a colocate or train that is running", verb_top},
    {"list", "the devices that this machine has", verb_list},
    {"info", "what a device is", verb_info},
    {"test", "test the device at hand", verb_test},
    {"reset", "reset a device", verb_reset},
    {"dump", "the registers of a device by name", verb_dump},
    {"explain", "what each layer of a network costs", verb_explain},
    {"bench", "measure the device, the simulator, the C model", verb_bench},
    {"counters", "a device's performance counters", verb_counters},
    {"disasm", "show a device program as text", verb_disasm},
    {"load", "one measured run, as experiments ask for it", verb_load},
};

/* Programs in Python (host/python); anyone may add to them, as coltrain-VERB on the search path. */
static const struct {
  const char *name, *text;
} programs[] = {
    {"experiment", "the measurements behind docs/results.md"},
    {"report", "a page of one run, or of several beside each other"},
    {"import", "a model of ONNX as a network of Coltrain"},
    {"export", "a network of Coltrain as a model of ONNX"},
};
enum { VERBS = sizeof verbs / sizeof *verbs, PROGRAMS = sizeof programs / sizeof *programs };

static void print_help(FILE *to) {
  fputs(
      "Usage: coltrain VERB [OPTION...]\n"
      "Serves neural networks on a Coltrain device and trains them in its idle cycles.\n\n",
      to);
  for (size_t i = 0; i < VERBS; ++i)
    fprintf(to, "  %-11s %s\n", verbs[i].name, verbs[i].text);
  for (size_t i = 0; i < PROGRAMS; ++i)
    fprintf(to, "  %-11s %s\n", programs[i].name, programs[i].text);
  fputs(
      "\n  coltrain VERB --help      the options of a verb, as coltrain help VERB\n"
      "  coltrain --version        the version\n\n"
      "A device is named by --device: sim: (the simulated hardware, the default), emu: (the\n"
      "bit-exact model in C, without time), mmio:FILE (a core in the address space), usb: or\n"
      "serial:FILE (a board), with options behind, such as sim:latency=100,stall=25.\n\n"
      "Example:\n  coltrain colocate --data digits --report run.html\n",
      to);
}

/* argp shows the name it is called by: "coltrain VERB". */
static int run_verb(const struct verb *verb, int argc, char **argv) {
  char name[64];
  snprintf(name, sizeof name, "coltrain %s", verb->name);
  argv[0] = name;
  argp_err_exit_status = 2;
  return verb->run(argc, argv);
}

/* "help VERB..." becomes "VERB... --help". */
static void turn_help(int argc, char **argv) {
  static char option[] = "--help";
  for (int i = 1; i < argc - 1; ++i)
    argv[i] = argv[i + 1];
  argv[argc - 1] = option;
}

static int refuse(const char *name) {
  struct ct_near near = {.given = name};
  for (size_t i = 0; i < PROGRAMS; ++i)
    if (!strcmp(name, programs[i].name)) {
      cli_fail(
          "coltrain %s is a program in Python, coltrain-%s, which is neither beside coltrain "
          "nor on the search path; pip install ./host/python puts it there",
          name, name);
      return 1;
    }
  for (size_t i = 0; i < VERBS; ++i)
    ct_near_consider(&near, verbs[i].name);
  for (size_t i = 0; i < PROGRAMS; ++i)
    ct_near_consider(&near, programs[i].name);
  if (near.name)
    cli_fail("there is no verb \"%s\"; did you mean \"%s\"?", name, near.name);
  else
    cli_fail("there is no verb \"%s\"; coltrain --help lists them", name);
  return 2;
}

int main(int argc, char **argv) {
  cli_guard_output();
  if (argc < 2) {
    print_help(stderr);
    return 2;
  }
  if (argc > 2 && !strcmp(argv[1], "help")) turn_help(argc, argv);
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?") || !strcmp(argv[1], "help")) {
    print_help(stdout);
    return 0;
  }
  if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
    printf("coltrain %s\n", ct_version());
    return 0;
  }
  for (size_t i = 0; i < VERBS; ++i)
    if (!strcmp(argv[1], verbs[i].name)) return run_verb(&verbs[i], argc - 1, argv + 1);
  const int status = cli_external(argv[1], argv + 1);
  return status < 0 ? refuse(argv[1]) : status;
}
