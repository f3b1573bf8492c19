/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving and training at once, measured as docs/experiments.md defines it.
 *
 *   verb_colocate.c      options, the order of things
 *   colocate_setup.c     data, device, models
 *   colocate_run.c       what each run hands over and takes; the runs, by the runner of load.h
 *   colocate_server.c    requests: device memory, answers
 *   colocate_versions.c  versions of the weights: slots, publishing, read back
 *   colocate_check.c     every answer again on emu:, in every bit
 *   colocate_trace.c     what the units did, cycle by cycle, as a file
 *   colocate_live.c      what `coltrain top` shows
 *   colocate_report.c    figures, JSON, CSV, text; the page for people is coltrain-report's, from
 * the JSON
 *
 * The runs, on a device with a clock:
 *   warm-up     a part of the first epoch, alone; then version 1 is published
 *   capacity    requests back to back, training off
 *   co-located  the arrivals, while the remaining steps train; where these end first, a second
 *               model of the same shape trains on, so that the training queue is never idle and the
 *               weights do not depend on time. A version is published after every epoch
 *   alone       the same arrivals, training off
 *   training    the second model's steps for as many cycles as the co-located window had
 *   others      if wanted: the first of the arrivals once more under each other policy, while the
 *               second model trains; given up after a bounded time, because some policies never
 *               catch up with the arrivals
 * Without a clock only warm-up and co-located are left: request i is served after the training step
 * at the same fraction of the run.
 */
#ifndef COLOCATE_H
#define COLOCATE_H

#include "arrivals.h"
#include "ct_trace.h"
#include "feeder.h"
#include "learn.h"
#include "live.h"
#include "load.h"
#include "requests.h"

/* ---- Versions ---- */

enum { VERSION_SLOTS = 4 };

struct version {
  uint64_t step;       /* steps that made it */
  ct_weights *weights; /* NULL: another is served, and requests in flight keep them */
  uint8_t *bytes;      /* of them, once they were published */
  size_t outstanding;  /* requests that name it */
  uint64_t cycles;     /* start to end of its publishing, CT_NO_CYCLE without a clock */
  double accuracy;     /* on the test images; below 0: not evaluated */
};

/* Version v (1, 2 ...) is version[v - 1]. */
struct versions {
  struct learner *learner;
  size_t weights_bytes;
  struct version *version;
  struct job *jobs;
  size_t room, submitted, published; /* the newest is version number `published` */
};

int versions_open(struct versions *v, struct learner *learner, size_t room);
void versions_close(struct versions *v);

/* Copies the weights as they are after the steps submitted so far; CT_ERR_FULL if all slots still
 * serve requests or the queue has no room. */
int versions_publish(struct versions *v, uint64_t step);
int versions_finish(struct versions *v, const struct job *job, const struct ct_event *result);

/* ---- Requests ---- */

/* DEPTH: requests handed to the device ahead of time; so many may be answered by the version before
 * a new one. */
enum { SERVER_DEPTH = 32 };

struct server {
  ct_device *dev;
  struct versions *versions;
  size_t classes;
  struct requests run;
  float *logits;                /* of every request */
  struct learner_places places; /* SERVER_DEPTH of them */
  size_t limit; /* requests that may be submitted: all, unless the device has no clock */
  bool waits;   /* the device cannot schedule: a request waits here until it is due */
  uint64_t due; /* when the next one is, if it does; else CT_NO_CYCLE */
  struct job jobs[SERVER_DEPTH];
};

/* count requests for test images drawn by the seed; none is scheduled. */
int server_open(struct server *s, struct learner *learner, struct versions *versions, size_t count);
void server_close(struct server *s);

/* Submits the next request with the newest version; CT_ERR_FULL if it has to wait in the host, for
 * room or until s->due. */
int server_submit(struct server *s);
int server_finish(struct server *s, const struct job *job, const struct ct_event *result);

/* ---- A run of everything ---- */

struct colocate_options {
  struct learn learn;
  size_t requests;
  uint32_t permille; /* of the capacity that is offered */
  enum ct_policy policy;
  const char *csv, *report, *trace;
  bool compare_given;
  size_t compare;                /* requests for each of the other policies; 0: none */
  uint64_t trace_from, trace_to; /* cycles; both 0: the first of co-location */
  uint64_t trace_bytes;          /* at most, in the file */
};

enum { POLICIES = 4 };

/* The first of the arrivals under another policy. */
struct other {
  enum ct_policy policy;
  struct server server;
  struct load_window window; /* closed: it was run */
};

struct colocate {
  struct colocate_options *o;
  const struct learn *l;
  struct ct_dataset ds;
  struct load load;
  struct learner learner, filler_learner;
  struct feeder feed, filler;
  struct versions versions;
  struct server probe, serve, alone; /* capacity, co-located, alone */
  uint64_t warm_steps, steps;        /* of the model: before version 1, in all */
  float *losses;                     /* of every step */
  uint64_t capacity_busy, capacity_done;
  struct arrivals arrivals;
  struct load_window together, train_alone;
  struct other other[POLICIES - 1];
  uint64_t give_up;      /* the present run ends at this cycle, whatever is missing; CT_NO_CYCLE */
  uint64_t filler_steps; /* of the second model in the co-located window */
  /* Of what the present run submits. */
  uint64_t feed_end;     /* the model trains up to this step */
  bool fill;             /* then the second one goes on */
  struct server *server; /* NULL: no serving */
  /* Found by the check. */
  bool checked;
  size_t wrong, wrong_alone, wrong_others;
  uint32_t weights_crc32;
  bool trained; /* to the last step */
  struct ct_progress_state state;
  uint64_t begun;    /* when co-location began */
  double later;      /* cycles of the runs to come */
  const char *label; /* of the present run */
  struct ct_trace *trace;
  bool traced;     /* the trace is still told of every cycle */
  bool trace_swap; /* its window is that of a swap */
  struct live live;
};

/* Opens data and device, makes models and requests; what is not given in o is filled in. 0, or 1
 * after a sentence; close it either way. */
int colocate_open(struct colocate *c, struct colocate_options *o);
void colocate_close(struct colocate *c);

/* Makes training, requests and the trace parts of the load. */
void colocate_parts(struct colocate *c);

/* The runs. 0, or 1 after a sentence; stopping by Ctrl-C is no failure. */
int colocate_runs(struct colocate *c);

/* Opens the trace if one is wanted and has the device watched. 0, or 1 after a sentence. */
int colocate_trace_open(struct colocate *c);

/* Takes note of a job; of the first arrival of co-location; stops watching when the trace has what
 * it wants. */
void colocate_trace_job(struct colocate *c, const struct job *job, const struct ct_event *result);
void colocate_trace_begin(struct colocate *c, uint64_t cycle);
int colocate_trace_turn(void *colocate);

/* Ends the file and says what is in it. 0, or 1 after a sentence. Again does nothing. */
int colocate_trace_close(struct colocate *c);

/* Tells whoever looks on (live.h) how it stands. */
void colocate_live(struct colocate *c);

/* The check on emu:, and accuracies. */
int colocate_check(struct colocate *c);

/* ---- Results ---- */

/* Of the requests so far, the first ones dropped; CT_NO_CYCLE where it is unknown, or never. */
struct ct_stats latency_of(const struct server *s, bool clock);

/* NaN for what is not known, or never. */
double cycles_or_nan(uint64_t cycles);

void colocate_print(const struct colocate *c);

/* The files that were asked for; 0, or 1 after a sentence. */
int colocate_write(const struct colocate *c);
int colocate_csv(const struct colocate *c);

#endif
