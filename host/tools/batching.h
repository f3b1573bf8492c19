/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coltrain experiment batching`: the highest rate of requests within a bound of p99, for single
 * requests and for batches (docs/experiments.md).
 *
 *   experiment_batching.c  options, rows, the order of things
 *   batching_search.c      which rate of a row is tried next
 *   batching_model.c       a queue in C that proposes the first one
 *   batching_summary.c     ratios, targets, JSON and text
 *   batching_page.c        the page for people; its charts are batching_charts.c
 *
 * A row is a network, a bound and a size of batches. Its rates are a list in steps of 1 % that ends
 * at the capacity; the search ends with two neighbours of which one was sustained and the next was
 * not, or with the last of the list.
 */
#ifndef BATCHING_H
#define BATCHING_H

#include "experiment.h"

enum { BATCHING_SERVERS = 2, BATCHING_BOUNDS = 3, BATCHING_SIZES = 2, BATCHING_RATES = 1024 };
enum { BATCHING_ROWS = BATCHING_SERVERS * BATCHING_BOUNDS * BATCHING_SIZES };

/* A rate that was tried. */
struct batching_try {
  size_t rate; /* its place in the list */
  struct exp_result result;
};
enum { BATCHING_TRIES = 64 };

/* The rate that was found, with other arrivals. */
struct batching_seed {
  uint64_t seed;
  struct exp_result result;
};

struct batching_row {
  const struct exp_server *server;
  const char *bound_name; /* "10x", "50us", "500us" */
  uint64_t bound_us;      /* 0: not in microseconds */
  char name[EXP_NAME];
  bool known, feasible; /* the costs are there; a request alone is within the bound */
  uint64_t service;     /* of a request alone, cycles */
  uint64_t clock_hz, cost[EXP_BATCH + 1];
  uint64_t interval;             /* from end to end of full batches in a row */
  struct exp_batching batching;  /* but for the rate */
  uint64_t rate[BATCHING_RATES]; /* in 10^9 cycles, rising */
  size_t rates, model;           /* the rate to begin with */
  bool below;                    /* the model says: not even the lowest; no run is worth it */
  struct batching_try tried[BATCHING_TRIES];
  size_t tries, step;
  const struct batching_try *good, *bad; /* the highest sustained, the lowest not; NULL: none */
  size_t seeds;
  struct batching_seed seed[EXP_SEEDS];
};

/* ---- The search (batching_search.c) ---- */

/* Lists a row's rates, up to the capacity. */
void batching_rates(struct batching_row *row);

/* The place of the rate to try next; SIZE_MAX: the search is over. */
size_t batching_next(const struct batching_row *row);

/* Takes note of what came out. */
void batching_take(struct batching_row *row, size_t rate, const struct exp_result *result);

/* The rate that a row which sustains none is below, a second, and who says so. */
double batching_floor(const struct batching_row *row);
const char *batching_floor_by(const struct batching_row *row);

/* Whether both neighbours are known, or nothing below or above is left to try. */
bool batching_is_over(const struct batching_row *row);

/* Whether the bound held. */
bool batching_held(const struct batching_row *row, const struct exp_result *result);

/* ---- The model (batching_model.c) ---- */

/* Sets row->model: the highest rate at which p99 of that many requests, the first ones dropped, is
 * within the bound in a queue that knows nothing but the costs; row->below if there is none. 0, or
 * 1 after a sentence. */
int batching_model(struct batching_row *row, size_t requests, size_t dropped);

/* ---- What it says (batching_summary.c) ---- */

json_t *batching_json(const struct batching_row *rows, const struct exp_settings *settings);
void batching_print(const struct batching_row *rows, const struct exp_settings *settings, FILE *to);

/* How many times the rate of single requests Equinox (MICRO 2021) reports at 500 us. */
extern const double batching_equinox;

/* Rate a second. */
double batching_per_second(const struct batching_row *row, size_t rate);

/* Part of the capacity, which is that of full batches in a row. */
double batching_load(const struct batching_row *row, size_t rate);

/* The row of single requests with the same network and bound. */
const struct batching_row *batching_single(const struct batching_row *rows,
                                           const struct batching_row *row);

/* How many times the rate of single requests batches sustain; 0: not known. */
double batching_gain(const struct batching_row *rows, const struct batching_row *row);

/* What the costs promise: 16 c(1) / c(16). */
double batching_promise(const struct batching_row *row);

size_t batching_targets(const struct batching_row *rows, const struct exp_settings *settings,
                        struct exp_target target[EXP_TARGETS]);

/* Wrong answers of all runs, and how many answers these had. */
uint64_t batching_wrong(const struct batching_row *rows, uint64_t *answered);

/* ---- The page (batching_page.c) ---- */

/* Writes it. 0, or 1 after a sentence. */
int batching_page(const struct batching_row *rows, const struct exp_settings *settings,
                  const char *path);

#endif
