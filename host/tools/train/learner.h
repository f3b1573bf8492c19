/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is trained and served by `train`, `colocate` and `load`: a perceptron (ct_model), or a graph
 * of layers (ct_network: one that takes steps, one that answers).
 *
 *   learner.c         what both have in common     learner_mlp.c    perceptrons
 *   learner_graph.c   graphs
 *
 * A graph has the tensors x (an input, the rows first), logits (an output), y (labels as
 * probabilities) and loss (an output), as networks by name have.
 *
 * Functions return a ct_error, 0 or above on success, unless they say otherwise.
 */
#ifndef LEARNER_H
#define LEARNER_H

#include "coltrain/network.h"
#include "learn.h"

struct learner;
struct learner_batch;
struct learner_places;

/* A request: for a sample of the test images, at a cycle (CT_NO_CYCLE: at once). */
struct learner_request {
  size_t place; /* of those that it has */
  uint32_t sample;
  ct_weights *weights;
  uint64_t cycle;
  void *user;
};

/* What the two kinds do; the functions below say what. */
struct learner_ops {
  int (*batch_open)(struct learner *l, struct learner_batch *b);
  int (*batch_write)(struct learner_batch *b, const float *x, const uint32_t *labels);
  int (*batch_loss)(struct learner_batch *b, float *loss);
  int (*step)(struct learner *l, struct learner_batch *b, uint64_t step, void *user);
  int (*publish)(struct learner *l, void *user, ct_weights **weights);
  int (*load_weights)(struct learner *l, const void *data, size_t size, ct_weights **weights);
  int (*places_open)(struct learner *l, struct learner_places *p);
  int (*ask)(struct learner_places *p, const struct learner_request *r);
  int (*answer)(struct learner_places *p, size_t place, float *logits);
  int (*infer)(struct learner *l, ct_weights *weights, const float *x, size_t n, float *logits);
  int (*evaluate)(struct learner *l, ct_weights *weights, const struct ct_dataset_part *part,
                  size_t *right);
  int (*crc32)(struct learner *l, uint32_t *crc);
  int (*save)(struct learner *l, const char *path, uint64_t epochs);
  int (*resume)(struct learner *l); /* 0, or 1 after a sentence */
  void (*close)(struct learner *l);
};

struct learner {
  const struct learner_ops *ops; /* NULL: not open */
  const struct learn *learn;
  const struct ct_dataset *ds;
  ct_device *dev;
  size_t features, classes;
  uint32_t batch;      /* rows of a step */
  uint32_t accumulate; /* of a graph from a file: runs that make a step; else 0 */
  /* A perceptron's. */
  ct_model *model;
  ct_rows *images; /* the test images; NULL: nobody has asked for one */
  /* A graph's. */
  ct_network *steps, *answers;   /* steps NULL: it only answers */
  struct asked_keep keep;        /* of steps */
  int x, y, loss, asked, logits; /* tensors: of steps, and of answers */
};

/* A new one, ready for training or (trains false) for answers alone. 0, or 1 after a sentence;
 * close it either way. learn and ds must stay. */
int learner_open(struct learner *l, const struct learn *learn, const struct ct_dataset *ds,
                 ct_device *dev, bool trains);
void learner_close(struct learner *l);

/* One from a file that learner_save() has written, in two parts: what the file says of training
 * goes to *learn where it was not given, then the data are opened, then it is made ready for
 * training. 0, or 1 after a sentence. */
struct learner_past {
  uint64_t steps, epochs;
};
int learner_load(struct learner *l, struct learn *learn, ct_device *dev, const char *path,
                 struct learner_past *past);
int learner_resume(struct learner *l, const struct ct_dataset *ds); /* NULL: of a graph, to infer */

/* ---- Training ---- */

/* A place for the rows of a step. Close it either way. */
struct learner_batch {
  struct learner *of;
  ct_batch *batch;
  ct_frame *frame;
};
int learner_batch_open(struct learner *l, struct learner_batch *b);
void learner_batch_close(struct learner_batch *b);

/* While no step on it is under way. loss: of the last one, the mean over the batch before it. */
int learner_batch_write(struct learner_batch *b, const float *x, const uint32_t *labels);
int learner_batch_loss(struct learner_batch *b, float *loss);

/* Submits the step of that number. */
int learner_step(struct learner *l, struct learner_batch *b, uint64_t step, void *user);

/* Says on stderr what somebody who has trained should know, if there is something. */
void learner_tell(struct learner *l);

/* ---- Serving ---- */

/* Submits the publishing of the weights as they are after the steps before. */
int learner_publish(struct learner *l, void *user, ct_weights **weights);

/* A version of what ct_weights_read() gave on another device. */
int learner_load_weights(struct learner *l, const void *data, size_t size, ct_weights **weights);

/* Places for count requests that are under way at once. Close it either way. */
struct learner_places {
  struct learner *of;
  size_t count;
  ct_answers *answers;
  ct_frame **frame;
  float *x; /* a sample */
};
int learner_places_open(struct learner *l, struct learner_places *p, size_t count);
void learner_places_close(struct learner_places *p);

/* Submits a request. Its answer, when it has ended well. */
int learner_ask(struct learner_places *p, const struct learner_request *r);
int learner_answer(struct learner_places *p, size_t place, float *logits);

/* ---- Calls that wait ---- */

/* Logits of n rows by these weights (NULL: the live ones). */
int learner_infer(struct learner *l, ct_weights *weights, const float *x, size_t n, float *logits);

/* How many of a part's images they classify rightly. */
int learner_evaluate(struct learner *l, ct_weights *weights, const struct ct_dataset_part *part,
                     size_t *right);

/* CRC-32 (zlib's) of all weights, FP32 little-endian. */
int learner_crc32(struct learner *l, uint32_t *crc);

/* Writes a file from which training goes on. */
int learner_save(struct learner *l, const char *path, uint64_t epochs);

/* ---- The two kinds ---- */

extern const struct learner_ops learner_mlp, learner_graph;

/* 0, or 1 after a sentence. */
int learner_mlp_open(struct learner *l, bool trains);
int learner_mlp_load(struct learner *l, struct learn *learn, const char *path,
                     struct learner_past *past);
int learner_graph_open(struct learner *l, bool trains);
int learner_graph_load(struct learner *l, struct learn *learn, const char *path,
                       struct learner_past *past);

#endif
