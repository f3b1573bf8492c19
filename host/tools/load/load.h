/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load on a device, measured as docs/experiments.md defines it: one runner behind `colocate`,
 * `serve-bench`, `load`, `train` and `bench interference`.
 *
 *   load.c          the device; parts that hand over work, one place that takes what ends
 *   requests.c      requests: what is asked, what came back, rows of results
 *   arrivals.c      when requests arrive; times from a file
 *   train_beside.c  training, as fast as the device can
 *   serve_setup.c   models that are served: of two kinds, behind struct serve_kind
 *   serve_perceptron.c  those that the device's batcher takes: perceptrons, as networks, too
 *   serve_network.c, serve_forming.c  other networks, whose batches the host forms
 *   serve_run.c     requests to them: capacity, one load, the highest load within a bound
 *   serve_report.c  results of `serve-bench`: JSON, text
 *   load_run.c      the runs of `load`: capacity, training, requests, cost (load_cost.c)
 *
 * A run is a loop of turns. A turn lets every part hand over what there is room for, so that no
 * queue runs dry, and takes one result, if one comes in time. What a part does depends on the
 * device's clock and on results alone, never on the host's clock: made again on `sim:`, a run gives
 * the same bytes.
 */
#ifndef LOAD_H
#define LOAD_H

#include "cli.h"
#include "ct_progress.h"

/* LEAD: cycles between handing over the first requests and the first arrival. */
enum { LOAD_PARTS = 3, LOAD_LEAD = 20000 };

/* Something that hands over work. */
struct load_part {
  const char *doing;        /* "submitting a request": of a sentence about a failure */
  int (*top_up)(void *arg); /* until there is no room: 0, CT_ERR_FULL; another ct_error fails */
  void *arg;
};

struct load {
  const char *uri;
  ct_device *dev;
  struct ct_info info;
  struct load_part part[LOAD_PARTS]; /* in this order; those without top_up are none */
  int (*take)(void *arg, const struct ct_event *event); /* 0, or 1 after a sentence */
  void *arg;
  uint64_t clock; /* end of the latest job */
  uint64_t due;   /* set by a part that waits for a cycle in the host */
  unsigned vain;  /* turns without a result */
  FILE *text;     /* for people */
  struct ct_progress progress;
};

/* Opens the device; json: where results go. 0, or 1 after a sentence; close it either way. */
int load_open(struct load *l, const char *uri, const char *json);
void load_close(struct load *l);

/* All that follows returns 0, or 1 after a sentence. Ctrl-C ends what waits, which is no failure.
 */

/* One turn; it takes a result only if that comes before the device's clock shows `until`,
 * CT_NO_CYCLE: in about a second. */
int load_turn(struct load *l, uint64_t until);

/* Turns until the clock shows that cycle; until a count has grown by so many; until no job is
 * left. */
int load_until(struct load *l, uint64_t cycle);
int load_until_count(struct load *l, const uint64_t *count, uint64_t more);
int load_drain(struct load *l);

/* The next event, for who asked for it and hands over nothing meanwhile; event->tag 0: Ctrl-C came
 * first. */
int load_reap(struct load *l, struct ct_event *event);

int load_now(struct load *l, uint64_t *cycle);
bool load_is_busy(const struct load *l);
int load_policy(struct load *l, enum ct_policy policy);

/* About a call of the library: 0, or 1 after the sentence. */
int load_check(const struct load *l, int rc, const char *doing);

/* The sentence about a job that failed on the device. 1. */
int load_job_failed(const struct ct_event *event, const char *what);

/* What emu: answers to n rows x with a model of that seed, to the bit what a device has to. */
int load_expect(const uint32_t *widths, size_t layers, uint64_t seed, const float *x, size_t n,
                float *y);

/* How far a run is. */
void load_show(struct load *l, const char *label, double fraction);

/* --load, in permille of the capacity. */
#define LOAD_OPTION(type, field)                                    \
  {                                                                 \
    "load", "F", "Offered load as a part of the capacity (0.5)", 1, \
        CLI_PERMILLE_AT(type, field, 0.001f, 2.0f)                  \
  }

/* "capacity" of results: how many requests it was measured with; `done` took `busy` cycles, 0: not
 * known. */
json_t *load_capacity_json(size_t requests, uint64_t busy, uint64_t done);

/* ---- Windows ---- */

/* Between two readings of the clock and the counters of both queues. Reading takes a while: either
 * the clock is read first, then training's counters, whose rows are a result, then inference's; or
 * the other way round. */
struct load_window {
  bool clock_last, closed;
  uint64_t from, to;
  uint64_t counter[2][CT_MAX_COUNTERS];
};

int load_window_open(struct load *l, struct load_window *w);
int load_window_close(struct load *l, struct load_window *w);

/* Multiply-accumulates of training in a cycle, NaN where they were not measured. */
double load_window_macs(const struct load_window *w);

#endif
