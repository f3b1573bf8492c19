/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coltrain load`: one measured run on a device of its own, as an experiment asks for it
 * (host/python/coltrain/experiments). A JSON object says what to run; its figures are another one,
 * and each of its requests a row of a CSV file.
 */
#ifndef VERB_LOAD_H
#define VERB_LOAD_H

#include "serve.h"

enum { LOAD_BATCH = 16 };

/* How long a request takes alone and with a full queue; training without requests; requests,
 * without training or beside it; how long batches of each size take. */
enum load_kind { LOAD_CAPACITY, LOAD_TRAINING, LOAD_REQUESTS, LOAD_COST };

struct load_spec {
  const char *kind_name, *policy_name, *arrivals_name, *batching_name;
  enum load_kind kind;
  struct serve_options serve;
  const char *label;
  enum ct_policy policy;
  size_t dropped;             /* of the first requests, unmeasured */
  uint64_t busy, done;        /* the capacity that the load is a part of */
  bool beside;                /* train while requests arrive */
  struct serve_shape trained; /* that network */
  const char *data;           /* on these samples */
  uint32_t train_batch;
  size_t samples; /* TRAINING: readings of the rows that it took */
  bool bounded;   /* ends as soon as more than late_allowed requests are late */
  size_t late_allowed;
};

/* Runs it: its figures go to o. 0, or 1 after a sentence; stopping by Ctrl-C is no failure. */
int load_run(const struct load_spec *spec, json_t *o);

/* Kind COST. */
int load_cost(const struct load_spec *spec, struct serve *s, json_t *o);

/* Requests of a model one by one: the longest of the last ones, in cycles. 0, or 1 after a
 * sentence. */
int load_ask_alone(struct serve *s, const struct serve_model *m, uint64_t *latency);

#endif
