/* SPDX-License-Identifier: Apache-2.0 */
/* Models that are served in batches, asked by the clock: perceptrons, by widths or as networks, by
 * the device's batcher, for `serve-bench` and `load`; other networks by runs (serve_network.h), for
 * `serve-bench`. */
#ifndef SERVE_H
#define SERVE_H

#include "arrivals.h"
#include "asked.h"
#include "load.h"
#include "requests.h"

/* PLACES: answers of each model in device memory; as many requests are on their way at most. */
enum { SERVE_MODELS = 8, SERVE_SAMPLES = 64, SERVE_PLACES = 4096, SERVE_PROBES = 10 };

struct serve_shape {
  const char *network; /* by name or a file; NULL: a perceptron of these widths */
  uint32_t widths[CT_MAX_LAYERS + 1];
  size_t layers;
};

struct serve_options {
  const char *device, *json, *csv;
  struct serve_shape shape[SERVE_MODELS];
  size_t models, requests; /* requests 0: as many as the kind of models has as a rule */
  size_t capacity; /* requests of the run that measures it, at least, where the batcher is asked */
  uint32_t permille; /* of the capacity that is offered */
  struct arrivals_options arrivals;
  bool chosen;       /* by --arrivals */
  uint32_t deadline; /* cycles; 0: none */
  uint64_t bound;    /* of p99, cycles; 0: no search */
  struct ct_serving serving;
  uint64_t seed;
  bool batcher; /* networks go to the device's batcher or nowhere */
};

struct serve;
struct serve_model;

/* What it is to serve a kind of model. */
struct serve_kind {
  /* Makes it, with its samples. 0, or 1 after a sentence; close it either way. */
  int (*open)(struct serve *s, struct serve_model *m);
  /* Takes a request, whose place is for its answer; a ct_error. */
  int (*push)(struct serve *s, struct request *r);
  /* Its answer, once it has ended; a ct_error. */
  int (*read)(const struct serve_model *m, const struct request *r, float *answer);
  /* What emu: answers to a sample. 0, or 1 after a sentence. */
  int (*want)(const struct serve_model *m, uint32_t sample, const float **answer);
  /* What is known of weights that stay, and of deadlines; zeros: nothing. */
  void (*info)(const struct serve *s, const struct serve_model *m, struct ct_server_info *info);
  void (*close)(struct serve_model *m);
};
extern const struct serve_kind serve_perceptron, serve_network;

struct serve_model {
  const struct serve_kind *kind; /* NULL: not open */
  const struct serve_shape *shape;
  uint64_t seed;
  size_t inputs, classes;
  float *x, *want; /* the samples, and the answers by emu: */
  /* A network's, that of one row. */
  struct asked asked;
  struct asked_net one;
  /* What the batcher takes: a model of widths, or that network. */
  ct_model *model;
  ct_weights *weights;
  ct_server *server;
  ct_rows *rows;                  /* the samples in device memory */
  ct_answers *answers;            /* SERVE_PLACES of them */
  struct served_network *network; /* what goes by runs */
};

/* A load that was tried in the search, and the p99 it had. */
struct serve_probe {
  uint32_t permille;
  uint64_t p99;
};

/* What goes on beside the requests; 0, or 1 after a sentence. */
struct serve_beside {
  int (*arrived)(void *arg); /* once, when the clock shows the first arrival of a load; NULL */
  int (*event)(void *arg, const struct ct_event *event); /* something else has ended; NULL */
  void *arg;
};

struct serve {
  struct load load;
  const struct serve_options *o;
  bool by_runs; /* all models are networks whose batches the host forms */
  struct serve_model model[SERVE_MODELS];
  uint16_t free[SERVE_PLACES]; /* places that no request on its way has */
  size_t frees;
  ct_device *emu;         /* for networks; NULL: there is none */
  size_t runs, most_runs; /* of networks: under way */
  struct arrivals arrivals;
  uint64_t capacity_busy, capacity_done; /* cycles, requests */
  struct requests probe, run, trial;     /* capacity, the load asked for, loads of the search */
  struct requests *present;              /* those that are pushed; NULL */
  struct load_window window;             /* from the first arrival of run to its last end */
  size_t wrong;                          /* answers, of all runs */
  struct serve_probe probes[SERVE_PROBES];
  size_t probes_done;
  uint32_t sustainable; /* permille of the capacity; 0: none */
  struct serve_beside beside;
  uint64_t give_up; /* cycle after which no answer is waited for; CT_NO_CYCLE */
};

/* Opens the device, makes the models and asks emu: for the answers; what is not given in o is
 * filled in, for it depends on the models. 0, or 1 after a sentence; close it either way. */
int serve_open(struct serve *s, struct serve_options *o);
void serve_close(struct serve *s);

/* Makes the requests a part of the load. */
void serve_parts(struct serve *s);

/* For kinds of models: the samples of one whose inputs and classes are known, and room for what
 * emu: answers; notes that a request has ended, and compares its answer. 0, or 1 after a sentence.
 */
int serve_samples(struct serve_model *m);
int serve_ended(struct serve *s, struct request *r, const struct ct_event *event);

/* A server of the device's batcher for a perceptron that is open, in the place of the one before.
 */
int serve_batches(struct serve *s, struct serve_model *m, const struct ct_serving *how);

/* What the model is called: its widths, or its network. */
void serve_name(const struct serve_shape *shape, char *text, size_t size);

/* The runs. 0, or 1 after a sentence; stopping by Ctrl-C is no failure. */
int serve_runs(struct serve *s);

/* A part of them. All requests at once: the queue is never empty, which gives the capacity. Where
 * batches wait for more requests, only up to the end of the last full one: behind it they wait in
 * vain. */
int serve_capacity(struct serve *s);

/* The requests of run as they arrive at that load, permille of the capacity. */
int serve_load(struct serve *s, struct requests *run, uint32_t permille, const char *label);

/* 0 if no answer was wrong, else 1 after a sentence; the same for requests of a run that failed. */
int serve_check_wrong(uint64_t wrong);
int serve_check_answered(const struct requests *run);

/* Of the requests of s->run but the first `drop`: those that came too late, or never; and those a
 * second that were in time (without a deadline: answered). */
void serve_deadlines(const struct serve *s, size_t drop, size_t *missed, double *goodput);

/* The rows of s->run, if they are asked for. */
int serve_csv(const struct serve *s);

void serve_print(const struct serve *s);
int serve_json(const struct serve *s);

#endif
