/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which samples a step takes. Step s takes samples j = 0 .. batch - 1 at position (s mod steps) *
 * batch + j, modulo the number of samples, of epoch s / steps. The order of epoch e is a shuffle
 * (ct_rand.h) by the stream e * 2^32 + CT_RAND_STREAM_BATCHES of the seed: it depends on seed and
 * epoch alone, so training resumed at an epoch goes on as if it had never stopped.
 */
#ifndef BATCH_ORDER_H
#define BATCH_ORDER_H

#include <stdint.h>

#include "ct_dataset.h"

struct batch_order {
  const struct ct_dataset *ds;
  uint32_t batch;
  uint64_t seed, per_epoch;
  uint64_t epoch; /* that order holds */
  uint32_t *order;
};

/* CT_ERR_MEMORY; close it either way. */
int batch_order_open(struct batch_order *o, const struct ct_dataset *ds, uint32_t batch,
                     uint64_t seed);
void batch_order_close(struct batch_order *o);

/* Writes the values of a step's samples to x, row by row, and their classes to labels. */
void batch_order_read(struct batch_order *o, uint64_t step, float *x, uint32_t *labels);

#endif
