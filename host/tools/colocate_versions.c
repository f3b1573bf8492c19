/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A version is published into a slot that no outstanding request names, by a job of the training
 * queue that stands between the last step of one epoch and the first of the next. Requests
 * submitted from its completion on name it: the change falls between two requests, and each answer
 * tells its version.
 */
#include <stdlib.h>

#include "colocate.h"

int versions_open(struct versions *v, ct_device *dev, ct_model *model, size_t room) {
  struct ct_model_info info;
  *v = (struct versions){.dev = dev, .model = model, .room = room};
  v->version = calloc(room, sizeof *v->version);
  v->jobs = calloc(room, sizeof *v->jobs);
  if (!v->version || !v->jobs) return CT_ERR_MEMORY;
  const int rc = ct_model_info(model, &info);
  if (rc < 0) return rc;
  v->image_bytes = info.image_bytes;
  v->pitch = (info.image_bytes + 255) / 256 * 256;
  return ct_mem_alloc(dev, VERSION_SLOTS * v->pitch, &v->memory);
}

void versions_close(struct versions *v) {
  for (size_t i = 0; v->version && i < v->room; ++i)
    free(v->version[i].bytes);
  free(v->version);
  free(v->jobs);
  if (v->dev && v->memory) ct_mem_free(v->dev, v->memory);
  *v = (struct versions){.dev = NULL};
}

int versions_publish(struct versions *v, uint64_t step) {
  const size_t i = v->submitted;
  /* Slots go round; the newest version serves, so it is never its own slot's turn. */
  if (!v->version || i >= v->room) return CT_ERR_INTERNAL;
  const struct version *before = i >= VERSION_SLOTS ? &v->version[i - VERSION_SLOTS] : NULL;
  if (before && (before->outstanding || v->published < i)) return CT_ERR_FULL;
  v->version[i] = (struct version){.step = step,
                                   .image = v->memory + i % VERSION_SLOTS * v->pitch,
                                   .cycles = CT_NO_CYCLE,
                                   .accuracy = -1};
  v->jobs[i] = (struct job){JOB_PUBLISH, v, i};
  const int rc = ct_model_publish(v->model, v->version[i].image, &v->jobs[i], NULL);
  if (rc >= 0) v->submitted = i + 1;
  return rc < 0 ? rc : 0;
}

int versions_finish(struct versions *v, const struct job *job, const struct ct_event *result) {
  struct version *version = &v->version[job->index];
  if (result->start != CT_NO_CYCLE) version->cycles = result->end - result->start;
  version->bytes = malloc(v->image_bytes);
  if (!version->bytes) return CT_ERR_MEMORY;
  const int rc = ct_mem_read(v->dev, version->image, version->bytes, v->image_bytes);
  v->published = job->index + 1;
  return rc < 0 ? rc : 0;
}
