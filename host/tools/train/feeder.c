/* SPDX-License-Identifier: Apache-2.0 */
#include "feeder.h"

#include <stdlib.h>

#include "ct_rand.h"

int feeder_open(struct feeder *f, struct learner *learner, uint64_t first) {
  const struct ct_dataset *ds = learner->ds;
  *f = (struct feeder){.learner = learner,
                       .ds = ds,
                       .batch = learner->batch,
                       .depth = learner->steps ? FEEDER_GRAPH_DEPTH : FEEDER_DEPTH,
                       .seed = learner->learn->seed,
                       .per_epoch = learn_steps(learner->batch, ds),
                       .submitted = first,
                       .finished = first,
                       .written = first,
                       .order_epoch = UINT64_MAX};
  f->order = malloc(ds->train.count * sizeof *f->order);
  f->x = malloc((size_t)f->batch * ds->features * sizeof *f->x);
  f->labels = malloc(f->batch * sizeof *f->labels);
  if (!f->order || !f->x || !f->labels) return CT_ERR_MEMORY;
  int rc = 0;
  for (size_t i = 0; rc >= 0 && i < f->depth; ++i)
    rc = learner_batch_open(learner, &f->slot[i]);
  return rc;
}

void feeder_close(struct feeder *f) {
  for (size_t i = 0; i < f->depth; ++i)
    learner_batch_close(&f->slot[i]);
  free(f->order);
  free(f->x);
  free(f->labels);
  *f = (struct feeder){.learner = NULL};
}

static struct learner_batch *slot_of(struct feeder *f, uint64_t step) {
  return &f->slot[step % f->depth];
}

static void shuffle(struct feeder *f, uint64_t epoch) {
  struct ct_rand rand;
  if (f->order_epoch == epoch) return;
  for (size_t i = 0; i < f->ds->train.count; ++i)
    f->order[i] = (uint32_t)i;
  ct_rand_seed(&rand, f->seed, epoch << 32 | CT_RAND_STREAM_BATCHES);
  ct_rand_shuffle(&rand, f->order, f->ds->train.count);
  f->order_epoch = epoch;
}

static int write_batch(struct feeder *f, uint64_t step) {
  const struct ct_dataset_part *part = &f->ds->train;
  shuffle(f, step / f->per_epoch);
  for (uint32_t j = 0; j < f->batch; ++j) {
    const uint32_t sample = f->order[(step % f->per_epoch * f->batch + j) % part->count];
    ct_dataset_values(f->ds, part, &sample, 1, f->x + (size_t)j * f->ds->features);
    f->labels[j] = part->labels[sample];
  }
  return learner_batch_write(slot_of(f, step), f->x, f->labels);
}

int feeder_submit(struct feeder *f) {
  const uint64_t step = f->submitted;
  if (step - f->finished >= f->depth) return CT_ERR_FULL;
  if (f->written == step) {
    const int rc = write_batch(f, step);
    if (rc < 0) return rc;
    f->written = step + 1;
  }
  struct job *job = &f->jobs[step % f->depth];
  *job = (struct job){JOB_STEP, f, step};
  const int rc = learner_step(f->learner, slot_of(f, step), step, job);
  if (rc >= 0) f->submitted = step + 1;
  return rc < 0 ? rc : 0;
}

int feeder_finish(struct feeder *f, const struct job *job, float *loss) {
  const int rc = learner_batch_loss(slot_of(f, job->index), loss);
  f->finished = job->index + 1;
  return rc < 0 ? rc : 0;
}
