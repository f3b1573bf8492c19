/* SPDX-License-Identifier: Apache-2.0 */
/* A model inside the library: where it lies on its device, and its programs. */
#ifndef CT_MODEL_H
#define CT_MODEL_H

#include <string.h>

#include "ct_fixed.h"
#include "ct_prog.h"
#include "ct_queue.h"

static inline uint32_t ct_bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline uint32_t ct_units_of(uint64_t addr) {
  return (uint32_t)(addr / CT_UNIT);
}

_Static_assert(CT_MLP_LAYERS == CT_MAX_LAYERS, "one limit, in two headers");
_Static_assert(CT_INFER_ROW + CT_INFER_ROWS_MAX - 1 <= CT_MAX_ARGS, "rows are arguments");

/* What follows a model's versions, above this layer: a server. */
struct ct_model_follower {
  /* From the next batch on, this version. */
  int (*commit)(void *self, uint64_t image, uint32_t version);
  /* Waits until nothing can use another version than the present one. */
  int (*settle)(void *self);
  /* The model is freed. */
  void (*end)(void *self);
};

/* The programs of a step of so many rows. */
struct ct_plan {
  ct_model *model; /* NULL: freed, and with it the programs */
  struct ct_plan *next;
  uint32_t batch;
  ct_program **step;
  int jobs;
  size_t refs; /* the model's, and one for each step that has not ended */
};

struct ct_model {
  struct ct_handle handle; /* first */
  ct_device *dev;
  struct ct_mlp net;
  uint64_t seed, steps, epochs;
  uint64_t image, state; /* addresses */
  struct ct_training training;
  struct ct_plan *plan;                 /* of new steps; NULL: not prepared */
  struct ct_plan *plans;                /* all that are there */
  ct_program *infer[CT_INFER_ROWS_MAX]; /* by rows - 1; made when needed */
  ct_program *copy;
  uint64_t served[2]; /* versions take turns in these two images; 0: not there yet */
  unsigned at;        /* which of them is served */
  uint32_t version;   /* that is served; 0: none */
  uint32_t numbered;  /* highest number that a version has had, also one whose commit failed */
  uint64_t swapped;   /* inference jobs before it: they may use the other image */
  const struct ct_model_follower *follower; /* NULL: requests for it come as jobs only */
  void *follower_self;
  unsigned left; /* servers of which a batch has not ended: the memory stays */
  bool stuck;    /* a job has not ended: the memory stays for good */
};

/* A server's batch has ended after all. */
void ct_model_left_ended(ct_model *model);

/* Ends the steps that are under way, as far as that is possible, and gives back their programs. */
void ct_plans_end(ct_model *model);

/* Bytes of an image. */
uint64_t ct_model_image_bytes(const ct_model *model);

/* All of a model's numbers on the host: for each layer the weights (outputs x inputs), the biases
 * and their momentum, one after the other. */
struct ct_numbers {
  float *w[CT_MLP_LAYERS], *b[CT_MLP_LAYERS], *vw[CT_MLP_LAYERS], *vb[CT_MLP_LAYERS];
  float *all;
  size_t count;
};

/* CT_OK, or an error with a sentence: NULL, freed before, or of a closed device. */
int ct_check_model(const ct_model *model);

size_t ct_numbers_count(const struct ct_mlp *net);
int ct_numbers_alloc(const struct ct_mlp *net, struct ct_numbers *numbers);
void ct_numbers_free(struct ct_numbers *numbers);

/* A model on the device with undefined numbers. */
int ct_model_alloc(ct_device *dev, const struct ct_mlp *net, ct_model **model);

/* Weights from a seed, the rest 0. */
void ct_model_draw(const struct ct_mlp *net, uint64_t seed, struct ct_numbers *numbers);

int ct_model_upload(ct_model *model, const struct ct_numbers *numbers);
int ct_model_download(ct_model *model, struct ct_numbers *numbers);

#endif
