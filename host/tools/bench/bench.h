/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurements of `coltrain bench`. Each has its own options and returns the exit status, like
 * a verb.
 */
#ifndef BENCH_H
#define BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

int bench_interference(int argc, char **argv);
int bench_sim(int argc, char **argv);
int bench_emu(int argc, char **argv);
int bench_gemm(int argc, char **argv);
int bench_link(int argc, char **argv);

/* Writes what was measured, after a failure (status 1) or Ctrl-C what there is by then, with
 * whether it "failed" or was "stopped", and drops root. Returns the exit
 * status: 1 also if it was stopped or cannot be written, after a sentence. */
int bench_write(const char *path, json_t *root, int status);

/* Seconds of a clock. */
double bench_seconds(clockid_t clock);

/* Whether there is such a device, or else why not. */
bool bench_exists(const char *uri, char *why, size_t size);

#endif
