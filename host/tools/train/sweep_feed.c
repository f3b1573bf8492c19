/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "ct_rand.h"
#include "sweep.h"

int sweep_feed_open(struct sweep_feed *f, const struct ct_dataset *ds, uint32_t batch,
                    uint64_t seed) {
  *f = (struct sweep_feed){.ds = ds,
                           .batch = batch,
                           .seed = seed,
                           .per_epoch = learn_steps(batch, ds),
                           .order_epoch = UINT64_MAX};
  f->order = malloc(ds->train.count * sizeof *f->order);
  f->x = malloc((size_t)batch * ds->features * sizeof *f->x);
  f->y = malloc((size_t)batch * ds->classes * sizeof *f->y);
  return f->order && f->x && f->y ? 0 : CT_ERR_MEMORY;
}

void sweep_feed_close(struct sweep_feed *f) {
  free(f->order);
  free(f->x);
  free(f->y);
  *f = (struct sweep_feed){.ds = NULL};
}

static void shuffle(struct sweep_feed *f, uint64_t epoch) {
  struct ct_rand rand;
  if (f->order_epoch == epoch) return;
  for (size_t i = 0; i < f->ds->train.count; ++i)
    f->order[i] = (uint32_t)i;
  ct_rand_seed(&rand, f->seed, epoch << 32 | CT_RAND_STREAM_BATCHES);
  ct_rand_shuffle(&rand, f->order, f->ds->train.count);
  f->order_epoch = epoch;
}

int sweep_feed_write(void *feed, uint64_t run, ct_frame *frame) {
  struct sweep_feed *f = feed;
  const struct ct_dataset_part *part = &f->ds->train;
  const size_t features = f->ds->features, classes = f->ds->classes;
  ct_graph *g = ct_network_graph(ct_frame_network(frame));
  shuffle(f, run / f->per_epoch);
  memset(f->y, 0, f->batch * classes * sizeof *f->y);
  for (uint32_t j = 0; j < f->batch; ++j) {
    const uint32_t sample = f->order[(run % f->per_epoch * f->batch + j) % part->count];
    ct_dataset_values(f->ds, part, &sample, 1, f->x + j * features);
    f->y[j * classes + part->labels[sample]] = 1.0f;
  }
  const int rc = ct_frame_write(frame, ct_graph_find(g, "x"), f->x, f->batch * features);
  return rc < 0 ? rc : ct_frame_write(frame, ct_graph_find(g, "y"), f->y, f->batch * classes);
}
