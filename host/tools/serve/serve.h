/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load on a device that serves requests in batches, measured as docs/experiments.md defines it.
 *
 *   verb_serve.c    options, the order of things
 *   serve_setup.c   device, models, requests' samples, and what emu: answers to them
 *   serve_run.c     requests by the clock: capacity, one load, the highest load within a bound
 *   serve_report.c  JSON, CSV, text
 *   serve_trace.c   arrival times from a file
 */
#ifndef SERVE_H
#define SERVE_H

#include "cli.h"
#include "ct_progress.h"
#include "ct_stats.h"

enum serve_arrivals { SERVE_POISSON, SERVE_CONSTANT, SERVE_BURSTY, SERVE_TRACE };

/* PLACES: answers of each model in device memory; as many requests are on their way at most. */
enum { SERVE_MODELS = 8, SERVE_SAMPLES = 64, SERVE_PLACES = 4096, SERVE_PROBES = 10 };

struct serve_shape {
  uint32_t widths[CT_MAX_LAYERS + 1];
  size_t layers;
};

struct serve_options {
  const char *device, *json, *csv, *trace;
  bool trace_again; /* the trace is a ring, entered where the seed says */
  struct serve_shape shape[SERVE_MODELS];
  size_t models, requests;
  size_t capacity;   /* requests of the run that measures it; 0: as many as the others */
  uint32_t permille; /* of the capacity that is offered */
  enum serve_arrivals arrivals;
  uint32_t on_percent; /* of a period, SERVE_BURSTY */
  uint64_t period;     /* cycles */
  uint32_t deadline;   /* cycles; 0: none */
  uint64_t bound;      /* of p99, cycles; 0: no search */
  struct ct_serving serving;
  uint64_t seed;
};

struct serve_model {
  ct_model *model;
  ct_weights *weights;
  ct_server *server;
  size_t inputs, classes;
  ct_rows *rows;       /* the samples in device memory */
  ct_answers *answers; /* SERVE_PLACES of them */
  float *x, *want;     /* the samples, and the answers by emu: */
};

struct serve_request {
  uint64_t scheduled, arrive, start, end; /* device cycles; CT_NO_CYCLE */
  uint32_t model, sample, batch, version, code;
  uint16_t place; /* of its answer, while it is on its way */
  bool done, answered, wrong;
  enum ct_met met;
};

struct serve_run {
  size_t count, pushed, done, wrong, failed;
  uint32_t code;                 /* of the first one that failed */
  struct serve_request *request; /* count, in order of arrival */
  uint64_t in_batch[17];         /* requests that were in a batch of that many */
};

/* A load that was tried in the search, and the p99 it had. */
struct serve_probe {
  uint32_t permille;
  uint64_t p99;
};

/* What goes on beside the requests; members may be NULL. 0, or 1 after a sentence. */
struct serve_beside {
  int (*turn)(void *arg);    /* often: at least with every record */
  int (*arrived)(void *arg); /* once, when the clock shows the first arrival of a load */
  void *arg;
  int (*event)(void *arg, const struct ct_event *event); /* something else has ended */
};

struct serve {
  const struct serve_options *o;
  ct_device *dev;
  struct ct_info info;
  struct serve_model model[SERVE_MODELS];
  uint16_t free[SERVE_PLACES]; /* places that no request on its way has */
  size_t frees;
  uint64_t *times; /* of the trace, its own unit; NULL */
  size_t times_count;
  uint64_t *arrivals;
  uint64_t capacity_busy, capacity_done; /* cycles, requests */
  struct serve_run probe, run, trial;    /* capacity, the load asked for, loads of the search */
  size_t wrong;                          /* answers, of all runs */
  /* Of the load asked for, from its first arrival to its last end: what inference counted, cycles.
   */
  uint64_t counter[CT_MAX_COUNTERS], cycles;
  struct serve_probe probes[SERVE_PROBES];
  size_t probes_done;
  uint32_t sustainable; /* permille of the capacity; 0: none */
  struct serve_beside beside;
  unsigned vain;    /* waits without a record */
  uint64_t give_up; /* cycle after which no answer is waited for; CT_NO_CYCLE */
  FILE *text;
  struct ct_progress progress;
};

/* Opens the device, makes the models and asks emu: for the answers. 0, or 1 after a sentence; close
 * it either way. */
int serve_open(struct serve *s, const struct serve_options *o);
void serve_close(struct serve *s);

/* The runs. 0, or 1 after a sentence; stopping by Ctrl-C is no failure. */
int serve_runs(struct serve *s);

/* A part of them. All requests at once: the queue is never empty, which gives the capacity. Where
 * batches wait for more requests, only up to the end of the last full one: behind it they wait in
 * vain. */
int serve_capacity(struct serve *s);

/* The requests of run as they arrive at that load, permille of the capacity. */
int serve_load(struct serve *s, struct serve_run *run, uint32_t permille, const char *label);

/* 0 if no answer was wrong, else 1 after a sentence; the same for requests of a run that failed. */
int serve_check_wrong(uint64_t wrong);
int serve_check_answered(const struct serve_run *run);

/* Latencies of the measured requests of a run, all but the first `drop`: one without an answer
 * counts as CT_STATS_NEVER. 0, or 1 after a sentence. */
int serve_latencies(const struct serve_run *run, size_t drop, struct ct_stats *stats);

/* Of the same requests of s->run: those that came too late, or never; and those a second that were
 * in time (without a deadline: answered). */
void serve_deadlines(const struct serve *s, size_t drop, size_t *missed, double *goodput);

/* How many batches had 1, 2 ... 16 requests, a new array. */
json_t *serve_json_batches(const struct serve_run *run);

/* Arrival times from the first column of a CSV file, seconds or dates with times, in units of 100
 * ns; free(*times). 0, or 1 after a sentence. */
int serve_trace_read(const char *path, uint64_t **times, size_t *count);

void serve_print(const struct serve *s);
int serve_csv(const struct serve *s);
int serve_json(const struct serve *s);

const char *serve_arrivals_name(enum serve_arrivals arrivals);

#endif
