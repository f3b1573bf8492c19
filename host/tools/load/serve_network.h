/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks under load that the device's batcher does not take (docs/graph.md): the host forms the
 * batches: a network is compiled for 1, 2, 4, 8, 16 rows, as far as batches may have so
 * many, and requests that wait go together in a run of the smallest of them that holds them.
 *
 *   serve_network.c   opening, answers, what emu: answers
 *   serve_forming.c   which requests go together, and when
 *
 * When a batch goes is decided by the device's clock and by results alone. Where the device takes
 * runs for a later cycle, a batch is handed over as soon as there is room and all that is to be in
 * it is known: it is the batch that a host without delay would form in that cycle.
 */
#ifndef SERVE_NETWORK_H
#define SERVE_NETWORK_H

#include "asked.h"
#include "serve.h"

/* SIZES: 1, 2, 4, 8, 16 rows. RUNS: under way at once, at most, by themselves; JOBS: that all of
 * these take, so that they fit the shortest queue. BATCHES: the same where requests wait for
 * others: one is on the device and one waits, as with the device's batcher. */
enum { NETWORK_SIZES = 5, NETWORK_RUNS = 16, NETWORK_JOBS = 112, NETWORK_BATCHES = 2 };

/* A place for a run, with what is in it while it is under way. */
struct network_run {
  struct serve_model *of;
  const struct asked_net *net;
  ct_frame *frame;
  uint32_t count; /* requests; 0: it is free */
  struct request *request[REQUESTS_BATCH];
};

struct network_size {
  struct asked_net net;
  struct network_run run[NETWORK_RUNS];
  uint64_t service; /* cycles that a run takes alone; 0: not measured */
};

struct served_network {
  struct asked reference; /* on emu: */
  struct network_size size[NETWORK_SIZES];
  size_t sizes, runs; /* of each size */
  struct asked_net one;
  ct_frame *place;           /* of one */
  bool known[SERVE_SAMPLES]; /* which of serve_model.want have been asked for */
  float *got;                /* answers, by the place of the request */
  float *in, *out;           /* of a run */
  struct request **waiting;  /* SERVE_PLACES, a ring, in order of arrival */
  size_t first, count;
};

/* The smallest size that holds so many requests. */
const struct network_size *network_size_of(const struct served_network *n, uint32_t count);

/* Cycles that a batch goes before its deadline less what it takes: as asked for, or what two of the
 * longest runs take, one on the device and one that waits. */
uint64_t network_margin(const struct serve *s);

/* A request joins the line of its model; a load_part.top_up that hands over batches; what has ended
 * of a run. ct_errors; the last: 0, or 1 after a sentence. */
int network_push(struct serve *s, struct request *r);
int network_form(void *serve);
int network_take(struct serve *s, const struct ct_event *event);

#endif
