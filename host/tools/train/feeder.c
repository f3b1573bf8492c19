/* SPDX-License-Identifier: Apache-2.0 */
#include "feeder.h"

#include <stdlib.h>

int feeder_open(struct feeder *f, struct learner *learner, uint64_t first) {
  *f = (struct feeder){.learner = learner,
                       .depth = learner->steps ? FEEDER_GRAPH_DEPTH : FEEDER_DEPTH,
                       .submitted = first,
                       .finished = first,
                       .written = first};
  int rc = batch_order_open(&f->order, learner->ds, learner->batch, learner->learn->seed);
  f->x = malloc((size_t)learner->batch * learner->ds->features * sizeof *f->x);
  f->labels = malloc(learner->batch * sizeof *f->labels);
  if (!rc && (!f->x || !f->labels)) rc = CT_ERR_MEMORY;
  for (size_t i = 0; rc >= 0 && i < f->depth; ++i)
    rc = learner_batch_open(learner, &f->slot[i]);
  return rc;
}

void feeder_close(struct feeder *f) {
  for (size_t i = 0; i < f->depth; ++i)
    learner_batch_close(&f->slot[i]);
  batch_order_close(&f->order);
  free(f->x);
  free(f->labels);
  *f = (struct feeder){.learner = NULL};
}

static struct learner_batch *slot_of(struct feeder *f, uint64_t step) {
  return &f->slot[step % f->depth];
}

static int write_batch(struct feeder *f, uint64_t step) {
  batch_order_read(&f->order, step, f->x, f->labels);
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
