/* SPDX-License-Identifier: Apache-2.0 */
/* A model inside the library: where it lies on its device, and its programs. */
#ifndef CT_MODEL_H
#define CT_MODEL_H

#include "ct_device.h"
#include "ct_prog.h"

_Static_assert(CT_MLP_LAYERS == CT_MAX_LAYERS, "one limit, in two headers");
_Static_assert(CT_INFER_ROW + CT_INFER_ROWS_MAX - 1 <= CT_MAX_ARGS, "rows are arguments");

struct ct_model {
  ct_device *dev;
  struct ct_mlp net;
  uint64_t seed, steps, epochs;
  uint64_t image, state; /* addresses */
  struct ct_training training;
  ct_program *step[CT_TRAIN_JOBS];
  int step_jobs;
  ct_program *infer[CT_INFER_ROWS_MAX]; /* by rows - 1; made when needed */
  ct_program *copy;
};

/* All of a model's numbers on the host: for each layer the weights (outputs x inputs), the biases
 * and their momentum, one after the other. */
struct ct_numbers {
  float *w[CT_MLP_LAYERS], *b[CT_MLP_LAYERS], *vw[CT_MLP_LAYERS], *vb[CT_MLP_LAYERS];
  float *all;
  size_t count;
};

int ct_numbers_alloc(const struct ct_mlp *net, struct ct_numbers *numbers);
void ct_numbers_free(struct ct_numbers *numbers);

/* A model on the device with undefined numbers. */
int ct_model_alloc(ct_device *dev, const struct ct_mlp *net, ct_model **model);

/* Weights from a seed, the rest 0. */
void ct_model_draw(const struct ct_mlp *net, uint64_t seed, struct ct_numbers *numbers);

int ct_model_upload(ct_model *model, const struct ct_numbers *numbers);
int ct_model_download(ct_model *model, struct ct_numbers *numbers);

#endif
