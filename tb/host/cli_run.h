/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the coltrain command that was built beside a test: build/bin/coltrain, or for a test whose
 * name ends with .san build/san/bin/coltrain, and keeps what it printed.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <jansson.h>
#include <sys/types.h>

struct cli_run {
  int status;      /* of exit; 128 + signal if it was killed */
  char *out, *err; /* all that was written */
};

/* args: separated by single spaces. interrupt_ms: sends SIGINT after so many ms; 0: never. Free
 * with cli_run_free. */
struct cli_run cli_run(const char *args, unsigned interrupt_ms);
/* The same with any signal. */
struct cli_run cli_run_signal(const char *args, unsigned after_ms, int signal);
void cli_run_free(struct cli_run *run);

/* Starts it with its output in two files (out NULL: standard output is closed) and goes on; the
 * caller waits for the process. */
pid_t cli_start(const char *args, const char *out, const char *err);
void cli_sleep_ms(unsigned ms);

/* Runs and fails the test unless the status is as expected and err contains text. Returns what was
 * written to standard output; the caller frees it. */
char *cli_expect(int status, const char *text, const char *args);

/* The same with status 0 and JSON on standard output; json_decref it. */
json_t *cli_expect_json(const char *args);

/* Members on a path such as "serve.p99_cycles"; the test fails if they are missing. */
json_t *cli_at(json_t *root, const char *path);
double cli_number_at(json_t *root, const char *path);

/* A file of the run's own folder; formatted: cli_path("%s.npy", "a"). The string is overwritten by
 * the eighth call after. */
const char *cli_path(const char *name);

/* Group set-up and teardown: the folder. */
int cli_make_folder(void **state);
int cli_remove_folder(void **state);
/* One that exists, made by a program that has become this one. */
void cli_use_folder(const char *path);

/* Formats arguments of a run; the string is overwritten by the fourth call after. */
__attribute__((format(printf, 1, 2))) const char *cli_line(const char *format, ...);

/* How many lines a text has, the first of a table included. */
size_t cli_lines_of(const char *text);

/* The contents of a file with a zero behind it; *size may be NULL. */
char *cli_slurp(const char *path, size_t *size);

/* Fails the test, with the place, unless both files have the same bytes. */
void cli_assert_same_files(const char *a, const char *b);

#endif
