/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much inference feels training, and training inference.
 *
 *   bench_interference.c  options, the order of things
 *   interfere_setup.c     device, network, requests, what trains
 *   interfere_run.c       the runs
 *   interfere_alone.c     the run of inference alone, from the file of an earlier run
 *   interfere_refused.c   the same where the memory refuses at random
 *   interfere_report.c    JSON, text
 *
 * The runs: inference alone; training alone; both; inference back to back (u = 1) beside training.
 * Inference is one job at a time, a row of one request each. A job is handed over a gap after the
 * one before it was complete; gaps are drawn by the seed, uniform from GAP_LEAST on, with a mean
 * that makes u about a half (or up to --gap), and are the same in both runs.
 */
#ifndef INTERFERE_H
#define INTERFERE_H

#include "ct_rand.h"
#include "load.h"
#include "host/transports/ct_probe.h"
#include "host/lib/lower/ct_chain.h"
#include "host/lib/lower/ct_prog.h"

/* What the training queue runs. */
enum interfere_load {
  LOAD_MODEL,    /* steps of stochastic gradient descent of the same network */
  LOAD_STRESS,   /* every unit with its longest operations all the time; computes nothing of use */
  LOAD_BANKS,    /* every unit with what is in the way of others most, in one bank */
  LOAD_PRODUCTS, /* products on operands that stay in the scratchpad: one row a cycle, alone */
  LOAD_NONE      /* nothing: inference alone is all there is */
};

const char *interfere_load_name(enum interfere_load load);

struct interfere_options {
  const char *device, *json, *alone; /* alone: NULL, or a file that has that run */
  const char *network;
  size_t jobs;
  uint32_t batch, floor, train_cap, gap; /* train_cap, gap: 0: the device's, measured */
  uint64_t seed;
  enum interfere_load load;
  enum ct_policy policy;
  bool resident; /* inference does not load weights again */
};

enum { REQUESTS = 16, BATCHES = 4, GAP_LEAST = 600, RECENT = 1 << 13 };

/* A stretch of time and what happened in it. */
struct interfere_run {
  struct load_window window; /* closed: the run is done */
  uint64_t served_cycles;    /* with an inference job in service */
  uint64_t *latency;         /* of each job, doorbell to completion; NULL: no inference */
  uint64_t *refused; /* in each, cycles in which the memory refused something; NULL: never */
  size_t jobs, wrong;
  uint64_t steps; /* training jobs that ended */
  struct ct_probe probe;
};

/* Longest waits for training, by unit, in cycles the unit spends on it. */
struct interfere_bound {
  uint64_t unit[CT_UNIT_COUNT];
  uint64_t job; /* of a whole job */
};

struct interfere {
  const struct interfere_options *o;
  struct ct_mlp net;
  struct load load;
  ct_model *model;
  struct ct_code code; /* of an inference job */
  ct_program *infer;   /* ... and on the device */
  ct_program *train;   /* of a load that is not the model */
  ct_weights *weights; /* that inference reads */
  ct_batch *batch[BATCHES];
  uint64_t rows, row_pitch, out, out_pitch, scratch;
  uint8_t *expected; /* answers of emu:, out_pitch each */
  struct ct_rand rand;
  uint64_t beat_cycles; /* of the memory for 16 bytes */
  double refused;       /* part of the beats' cycles in which it refuses, at random */
  uint64_t unrefused;   /* what a job takes alone on a memory that never does; 0: not known */
  uint64_t gap_range;   /* gaps are GAP_LEAST + below(gap_range) */
  uint64_t steps_done, steps_submitted;
  bool training;          /* whether the queue is kept full */
  struct ct_event served; /* the inference job that ended last */
  uint64_t served_count;
  struct ct_probe live; /* what the device adds to */
  struct { /* its count of refusals: before cycle `from`, after each of the last ones */
    uint64_t from, before, cycle, recent[RECENT];
  } refusals;
  const char *label; /* of the run under way */
  struct interfere_run alone, train_alone, together, busy;
  json_t *alone_json; /* of the file that alone was read from, or NULL */
  struct interfere_bound bound;
  uint32_t train_cap; /* bursts that training may have outstanding */
};

/* 0, or 1 after a sentence; close it either way. */
int interfere_open(struct interfere *t, const struct interfere_options *o);
void interfere_close(struct interfere *t);
int interfere_runs(struct interfere *t);

/* What the last of some jobs takes alone. 0, or 1 after a sentence. */
int interfere_service(struct interfere *t, size_t jobs, uint64_t *cycles);

/* What the device adds to is zero again. */
void interfere_clear(struct interfere *t);

/* Cycles with a refusal from t->refusals.from to `end`, or, if that is long ago, to now. */
uint64_t interfere_refused_until(const struct interfere *t, uint64_t end);

/* Finds t->unrefused: 0, or 1 after a sentence. */
int interfere_unrefused(struct interfere *t);

/* The most cycles that a job took more than t->unrefused and those with a refusal in it. */
int64_t interfere_beyond(const struct interfere *t, const struct interfere_run *r);

/* The run of inference alone, with its gaps, from o->alone: 0, or 1 after a sentence. It has to be
 * of the same jobs (interfere_jobs_json(), a new reference) and whole. */
int interfere_alone_read(struct interfere *t);
json_t *interfere_jobs_json(const struct interfere_options *o);

/* Takes a result of either queue. */
int interfere_take(void *interfere, const struct ct_event *event);

void interfere_bounds(struct interfere *t);

/* Whether t->bound.job is a bound: it is reckoned for PRIORITY with the floor at 0. */
bool interfere_job_bounded(const struct interfere *t);

/* Prints, writes JSON, says whether a bound was broken or an answer wrong: 0 or 1. */
int interfere_report(const struct interfere *t);

#endif
