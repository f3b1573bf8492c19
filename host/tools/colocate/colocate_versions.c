/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A version is published by a job of the training queue that stands between the last step of one
 * epoch and the first of the next, while requests in flight name no more than VERSION_SLOTS.
 * Requests submitted from its completion on name it: the change falls between two requests, and
 * each answer tells its version.
 */
#include <stdlib.h>

#include "colocate.h"

int versions_open(struct versions *v, ct_device *dev, ct_model *model, size_t room) {
  struct ct_weights_info info;
  *v = (struct versions){.dev = dev, .model = model, .room = room};
  v->version = calloc(room, sizeof *v->version);
  v->jobs = calloc(room, sizeof *v->jobs);
  if (!v->version || !v->jobs) return CT_ERR_MEMORY;
  const int rc = ct_weights_info(ct_model_weights(model), &info);
  v->weights_bytes = rc < 0 ? 0 : info.bytes;
  return rc;
}

void versions_close(struct versions *v) {
  for (size_t i = 0; v->version && i < v->room; ++i) {
    ct_weights_free(v->version[i].weights);
    free(v->version[i].bytes);
  }
  free(v->version);
  free(v->jobs);
  *v = (struct versions){.dev = NULL};
}

int versions_publish(struct versions *v, uint64_t step) {
  const size_t i = v->submitted;
  if (!v->version || i >= v->room) return CT_ERR_INTERNAL;
  const struct version *before = i >= VERSION_SLOTS ? &v->version[i - VERSION_SLOTS] : NULL;
  if (before && (before->outstanding || v->published < i)) return CT_ERR_FULL;
  v->version[i] = (struct version){.step = step, .cycles = CT_NO_CYCLE, .accuracy = -1};
  v->jobs[i] = (struct job){JOB_PUBLISH, v, i};
  const int rc = ct_model_publish_submit(v->model, &v->jobs[i], &v->version[i].weights, NULL);
  if (rc >= 0) v->submitted = i + 1;
  return rc < 0 ? rc : 0;
}

int versions_finish(struct versions *v, const struct job *job, const struct ct_event *result) {
  struct version *version = &v->version[job->index];
  if (result->start != CT_NO_CYCLE) version->cycles = result->end - result->start;
  version->bytes = malloc(v->weights_bytes);
  if (!version->bytes) return CT_ERR_MEMORY;
  const int rc = ct_weights_read(version->weights, version->bytes, v->weights_bytes);
  if (job->index) {
    ct_weights_free(version[-1].weights);
    version[-1].weights = NULL;
  }
  v->published = job->index + 1;
  return rc < 0 ? rc : 0;
}
