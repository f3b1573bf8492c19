/* SPDX-License-Identifier: Apache-2.0 */
#include "feeder.h"

#include <stdlib.h>
#include <string.h>

#include "ct_rand.h"

int feeder_open(struct feeder *f, ct_device *dev, ct_model *model, const struct learn *l,
                const struct ct_dataset *ds, uint64_t first) {
  *f = (struct feeder){.dev = dev,
                       .model = model,
                       .ds = ds,
                       .batch = l->batch,
                       .seed = l->seed,
                       .per_epoch = learn_steps(l, ds),
                       .submitted = first,
                       .finished = first,
                       .written = first,
                       .order_epoch = UINT64_MAX};
  f->order = malloc(ds->train.count * sizeof *f->order);
  f->x = malloc((size_t)l->batch * ds->features * sizeof *f->x);
  f->labels = malloc(l->batch * sizeof *f->labels);
  if (!f->order || !f->x || !f->labels) return CT_ERR_MEMORY;
  f->batch_bytes = (ct_model_batch_size(model) + 255) / 256 * 256;
  f->slot_bytes = f->batch_bytes + 256;
  return ct_mem_alloc(dev, FEEDER_DEPTH * f->slot_bytes, &f->memory);
}

void feeder_close(struct feeder *f) {
  if (f->dev && f->memory) ct_mem_free(f->dev, f->memory);
  free(f->order);
  free(f->x);
  free(f->labels);
  *f = (struct feeder){.dev = NULL};
}

static uint64_t slot_address(const struct feeder *f, uint64_t step) {
  return f->memory + step % FEEDER_DEPTH * f->slot_bytes;
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
  return ct_model_batch_write(f->model, slot_address(f, step), f->x, f->labels);
}

int feeder_submit(struct feeder *f) {
  const uint64_t step = f->submitted;
  if (step - f->finished >= FEEDER_DEPTH) return CT_ERR_FULL;
  if (f->written == step) {
    const int rc = write_batch(f, step);
    if (rc < 0) return rc;
    f->written = step + 1;
  }
  struct job *job = &f->jobs[step % FEEDER_DEPTH];
  *job = (struct job){JOB_STEP, f, step};
  const uint64_t at = slot_address(f, step);
  const int rc = ct_model_step_submit(f->model, at, at + f->batch_bytes, NULL, job, NULL);
  if (rc >= 0) f->submitted = step + 1;
  return rc < 0 ? rc : 0;
}

int feeder_finish(struct feeder *f, const struct job *job, float *loss) {
  float sum = 0;
  const int rc =
      ct_mem_read(f->dev, slot_address(f, job->index) + f->batch_bytes, &sum, sizeof sum);
  *loss = sum / (float)f->batch;
  f->finished = job->index + 1;
  return rc < 0 ? rc : 0;
}
