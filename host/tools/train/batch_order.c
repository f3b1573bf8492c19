/* SPDX-License-Identifier: Apache-2.0 */
#include "batch_order.h"

#include <stdlib.h>

#include "coltrain/coltrain.h"
#include "ct_rand.h"
#include "learn.h"

int batch_order_open(struct batch_order *o, const struct ct_dataset *ds, uint32_t batch,
                     uint64_t seed) {
  *o = (struct batch_order){.ds = ds,
                            .batch = batch,
                            .seed = seed,
                            .per_epoch = learn_steps(batch, ds),
                            .epoch = UINT64_MAX};
  o->order = malloc(ds->train.count * sizeof *o->order);
  return o->order ? CT_OK : CT_ERR_MEMORY;
}

void batch_order_close(struct batch_order *o) {
  free(o->order);
  *o = (struct batch_order){.ds = NULL};
}

static void shuffle(struct batch_order *o, uint64_t epoch) {
  struct ct_rand rand;
  if (o->epoch == epoch) return;
  for (size_t i = 0; i < o->ds->train.count; ++i)
    o->order[i] = (uint32_t)i;
  ct_rand_seed(&rand, o->seed, epoch << 32 | CT_RAND_STREAM_BATCHES);
  ct_rand_shuffle(&rand, o->order, o->ds->train.count);
  o->epoch = epoch;
}

void batch_order_read(struct batch_order *o, uint64_t step, float *x, uint32_t *labels) {
  const struct ct_dataset_part *part = &o->ds->train;
  shuffle(o, step / o->per_epoch);
  for (uint32_t j = 0; j < o->batch; ++j) {
    const uint32_t sample = o->order[(step % o->per_epoch * o->batch + j) % part->count];
    ct_dataset_values(o->ds, part, &sample, 1, x + (size_t)j * o->ds->features);
    labels[j] = part->labels[sample];
  }
}
