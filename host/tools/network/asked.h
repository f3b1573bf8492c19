/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network that is only asked: by name, with weights of a seed, or from a file. It is compiled for
 * as many rows at once as one likes; the weights are the same.
 *
 * Functions return 0, or 1 after a sentence.
 */
#ifndef ASKED_H
#define ASKED_H

#include "cli.h"

struct asked {
  ct_device *dev;
  const char *model;
  uint64_t seed;
  ct_graph *named;  /* by name ... */
  ct_network *file; /* ... or from a file */
  ct_graph *graph;  /* that of the one or the other */
  int output;       /* its tensor that has the answers: logits, or the only one that it gives */
};

/* Close it either way. model must stay. */
int asked_open(struct asked *a, ct_device *dev, const char *model, uint64_t seed);
void asked_close(struct asked *a);

/* A network by name: for so many rows, with steps if `how` says how, activations and gradients kept
 * in a format. Checked; free it either way. */
struct asked_keep {
  bool given;
  enum ct_format format;
  double error; /* compressed: struct ct_network_options.error, .bits, .masks */
  uint32_t bits;
  enum ct_masks masks;
  bool chooses; /* auto: asked_largest() says how */
};
struct asked_name {
  const char *model;
  uint32_t rows;
  const struct ct_optimise *how;
  struct asked_keep keep;
};
int asked_named(const struct asked_name *of, ct_graph **g);
/* 0, or 1 after a sentence: it is left to a limit, and there is none. */
int asked_check_keep(const struct asked_keep *keep, uint64_t limit);

/* Makes of->keep, where that is left to it, the way with the largest batch, of equal ones the first
 * of fp32, hbfp8, recompute and compressed, and of->rows the most with which weights, states,
 * inputs, labels, outputs and what a step makes fit so many bytes of device memory. */
int asked_largest(ct_device *dev, struct asked_name *of, uint64_t limit);

/* The argument of --memory: bytes; what is none is a usage error. */
uint64_t asked_take_size(const char *arg, const struct argp_state *state);

/* The argument of --keep, and its name; what is none is a usage error. */
#define ASKED_KEEP                                                                              \
  "How activations and their gradients are kept between layers: fp32, hbfp8, hbfp6, hbfp4, "    \
  "recompute, compressed[:ERROR[:BITS]][:mask|:nomask], or with --memory auto: as the largest " \
  "batch has room, "
struct asked_keep asked_take_keep(const char *arg, const struct argp_state *state);
const char *asked_format_name(enum ct_format format);
/* What it says of how a network is compiled. */
void asked_keep_options(const struct asked_keep *keep, struct ct_network_options *options);

/* What answers take of a network's graph, for so many rows, checked; free it either way. */
int asked_graph(const char *model, const ct_graph *of, int output, uint32_t rows, ct_graph **g);

/* It, compiled for so many rows. */
struct asked_net {
  ct_device *dev;
  ct_network *net;
  ct_weights *weights;
  bool lent;               /* these are another one's */
  int input, output;       /* tensors */
  size_t features, values; /* of a row: numbers that go in, and come out */
  uint32_t rows, jobs;     /* jobs: that a run takes */
};

/* Free it either way, when no run is under way or later. of: one that was compiled for other rows,
 * and stays; what lasts is that one's, too, if it lies alike. NULL: there is none. */
int asked_compile(const struct asked *a, uint32_t rows, const struct asked_net *of,
                  struct asked_net *n);
void asked_free(struct asked_net *n);

/* Submits a run, which names `user` in its event; cycle 0: at once. tag may be NULL. A ct_error. */
int asked_submit(const struct asked_net *n, ct_frame *frame, uint64_t cycle, void *user,
                 uint64_t *tag);

/* Runs it and waits for its event. A ct_error. */
int asked_run(const struct asked_net *n, ct_frame *frame, struct ct_event *event);

#endif
