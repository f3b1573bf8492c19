/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the verbs of the coltrain command share: sentences about errors, options, devices, JSON.
 *
 * A verb returns the exit status: 0, or 1 after a sentence on standard error. Usage errors end the
 * program with 2 inside argp.
 */
#ifndef CLI_H
#define CLI_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "coltrain/coltrain.h"
#include "coltrain/network.h"
#include "ct_near.h"

#define CLI_DEVICE "sim:"

/* ---- Verbs ---- */

int verb_info(int argc, char **argv);
int verb_list(int argc, char **argv);
int verb_test(int argc, char **argv);
int verb_reset(int argc, char **argv);
int verb_dump(int argc, char **argv);
int verb_explain(int argc, char **argv);
int verb_matmul(int argc, char **argv);
int verb_train(int argc, char **argv);
int verb_infer(int argc, char **argv);
int verb_colocate(int argc, char **argv);
int verb_disasm(int argc, char **argv);
int verb_counters(int argc, char **argv);
int verb_bench(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_serve_bench(int argc, char **argv);
int verb_load(int argc, char **argv);

/* Becomes the program coltrain-VERB with these arguments. -1: there is none; else the exit status,
 * after a sentence. */
int cli_external(const char *verb, char **argv);

/* Whether pages can be made: asked before hours of work. 0, or 1 after a sentence. */
int cli_report_check(void);

/* The page of a run, by coltrain-report. 0, or 1 after a sentence. */
int cli_report(json_t *root, const char *page);

/* ---- Errors ---- */

/* Prints "coltrain: SENTENCE"; returns 1. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Once, first of all: from here on what cannot be written to standard output ends the program with
 * 1 after a sentence, also in --help; a descriptor that was closed is nobody's file. */
void cli_guard_output(void);

/* The same about a call of the library that failed: "coltrain: WHAT: what it says". */
int cli_fail_device(const ct_device *dev, int error, const char *what);

/* ---- Options ---- */

/* An option: its line of --help, and where its value goes in the struct that a verb has for them.
 * The macros below fill in the rest. */
enum cli_kind { CLI_CALL, CLI_TEXT, CLI_FLAG, CLI_COUNT, CLI_REAL, CLI_PERMILLE, CLI_FILE };
enum cli_use { CLI_READ, CLI_RESUME, CLI_WRITE, CLI_REPLACE };
struct cli_option {
  const char *name, *arg, *text; /* arg NULL: it takes no value; a FILE: it is no option */
  int group;                     /* of --help */
  enum cli_kind kind;
  size_t at, size;
  uint64_t least, most;
  /* A bad value is an argp_error(). */
  void (*call)(void *input, const char *arg, const struct argp_state *state);
  float low, high;
  enum cli_use use;
  char letter; /* also -letter; 0: none */
};
#define CLI_AT(type, field) .at = offsetof(type, field), .size = sizeof(((type *)NULL)->field)
#define CLI_TEXT_AT(type, field) .kind = CLI_TEXT, CLI_AT(type, field)
#define CLI_FLAG_AT(type, field) .kind = CLI_FLAG, CLI_AT(type, field)
#define CLI_FILE_AT(type, field, how) .kind = CLI_FILE, CLI_AT(type, field), .use = (how)
#define CLI_COUNT_AT(type, field, from, to) \
  .kind = CLI_COUNT, CLI_AT(type, field), .least = (from), .most = (to)
#define CLI_REAL_AT(type, field, from, to) \
  .kind = CLI_REAL, CLI_AT(type, field), .low = (from), .high = (to)
#define CLI_PERMILLE_AT(type, field, from, to) \
  .kind = CLI_PERMILLE, CLI_AT(type, field), .low = (from), .high = (to)
#define CLI_DEVICE_AT(type, field) \
  { "device", "URI", "The device (" CLI_DEVICE ")", CLI_TEXT_AT(type, field) }

/* The options of a verb, and those that several verbs have, whose struct its own begins with. */
struct cli_command {
  const struct cli_option *option, *shared;
  size_t count, shared_count;
  const char *args, *doc;
  void (*arg)(void *input, const char *arg, const struct argp_state *state); /* NULL: none */
  void (*end)(void *input, const struct argp_state *state); /* when all are read; NULL */
  char *(*help)(int key, const char *text, void *input);    /* argp's help_filter; NULL */
};
#define CLI_COMMAND(options) .option = (options), .count = sizeof(options) / sizeof *(options)

/* Reads them into *input; a wrong use ends the program with 2 after a sentence. Then asks about the
 * files, cli_files(): 0, or 1 after a sentence. */
int cli_options(const struct cli_command *command, int argc, char **argv, void *input);

/* The same from the members of an object: those of a table that it has, CLI_TEXT and CLI_COUNT. 0,
 * or 1 after a sentence that begins with `what`. */
int cli_members(const char *what, const struct cli_option *members, size_t count,
                const json_t *object, void *input);

/* A verb that is followed by what it shall do, such as `bench gemm`: help, the one that is named,
 * or a sentence about a name that does not exist. Returns the exit status. */
struct cli_choice {
  const char *name, *text;
  int (*run)(int argc, char **argv);
};
struct cli_choices {
  const char *verb, *what; /* "bench", "measurement" */
  const char *intro, *example;
  const struct cli_choice *choice;
  size_t count;
};
int cli_choose(const struct cli_choices *choices, int argc, char **argv);

/* Values of options; a bad one is a usage error that names the option. */
uint64_t cli_count(const struct argp_state *state, const char *option, const char *text,
                   uint64_t min, uint64_t max);
float cli_real(const struct argp_state *state, const char *option, const char *text, float min,
               float max);

/* ---- Devices ---- */

/* Opens a device; 0, or 1 after a sentence. */
int cli_open(const char *uri, ct_device **dev);

/* The index of a counter by name, or -1. */
int cli_counter_index(const char *name);

/* Multiply-accumulates of a row of the array, as the counters and results count rows. */
#define CLI_MACS_PER_ROW 256u

/* ---- Models ---- */

/* CRC-32 (zlib's) of the weights and then the biases of all layers, FP32 little-endian; 0, or a
 * ct_error. */
int cli_weights_crc32(ct_model *model, uint32_t *crc);

/* The same of all weights and states of a network, in the order of its tensors. */
int cli_network_crc32(ct_network *network, uint32_t *crc);

/* Index of the largest of n values, the first of equal ones. */
uint32_t cli_argmax(const float *values, size_t n);

/* ---- Results ---- */

/* An integer, null for CT_NO_CYCLE. */
json_t *cli_json_cycles(uint64_t cycles);

/* Rows and columns of the device's array, null if they are not known. */
json_t *cli_json_array(ct_device *dev);

/* A number, null unless it is finite. */
json_t *cli_json_number(double x);

/* a / b, null unless both are finite and b is above 0. */
json_t *cli_json_ratio(double a, double b);

/* Writes to a file, or to standard output for "-", and drops the reference. path NULL: only drops
 * it. An object is given "coltrain" and "commit", the version and the commit it was built from
 * (null without Git). 0, or 1 after a sentence. */
int cli_json_write(const char *path, json_t *root);

/* The files of a run, asked about before hours of work: whether what is written can be made, and is
 * no other file of the run, nor of a data set in a folder, by whatever path. A path that is NULL is
 * none, nor is "-" of --json. What is CLI_RESUME is read before CLI_REPLACE, which may be the same,
 * is written. 0, or 1 after a sentence. */
struct cli_file {
  const char *option, *path;
  enum cli_use use;
};
int cli_files(const struct cli_file *files, size_t count);

/* Where the text for people goes: standard error if the JSON goes to standard output. */
FILE *cli_text(const char *json);

/* ---- Stopping ---- */

/* From here on Ctrl-C (and SIGTERM) only notes that it was pressed; pressed again it ends the
 * program. */
void cli_catch_stop(void);
bool cli_stopped(void);

/* Says so if it was pressed: 1, else 0. */
int cli_tell_stopped(FILE *text);

#endif
