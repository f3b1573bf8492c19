/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A version is published by a job of the training queue that stands between the last step of one
 * epoch and the first of the next, while requests in flight name no more than VERSION_SLOTS.
 * Requests submitted from its completion on name it: the change falls between two requests, and
 * each answer tells its version.
 */
#include <stdlib.h>

#include "colocate.h"

int versions_open(struct versions *v, struct learner *learner, size_t room) {
  *v = (struct versions){.learner = learner, .room = room};
  v->version = calloc(room, sizeof *v->version);
  v->jobs = calloc(room, sizeof *v->jobs);
  return v->version && v->jobs ? 0 : CT_ERR_MEMORY;
}

void versions_close(struct versions *v) {
  for (size_t i = 0; v->version && i < v->room; ++i) {
    ct_weights_free(v->version[i].weights);
    free(v->version[i].bytes);
  }
  free(v->version);
  free(v->jobs);
  *v = (struct versions){.learner = NULL};
}

int versions_publish(struct versions *v, uint64_t step) {
  const size_t i = v->submitted;
  if (!v->version || i >= v->room) return CT_ERR_INTERNAL;
  const struct version *before = i >= VERSION_SLOTS ? &v->version[i - VERSION_SLOTS] : NULL;
  if (before && (before->outstanding || v->published < i)) return CT_ERR_FULL;
  v->version[i] = (struct version){.step = step, .cycles = CT_NO_CYCLE, .accuracy = -1};
  v->jobs[i] = (struct job){JOB_PUBLISH, v, i};
  const int rc = learner_publish(v->learner, &v->jobs[i], &v->version[i].weights);
  if (rc >= 0) v->submitted = i + 1;
  return rc < 0 ? rc : 0;
}

int versions_finish(struct versions *v, const struct job *job, const struct ct_event *result) {
  struct version *version = &v->version[job->index];
  if (result->start != CT_NO_CYCLE) version->cycles = result->end - result->start;
  struct ct_weights_info info;
  int rc = ct_weights_info(version->weights, &info);
  if (rc < 0) return rc;
  v->weights_bytes = info.bytes;
  version->bytes = malloc(v->weights_bytes);
  if (!version->bytes) return CT_ERR_MEMORY;
  rc = ct_weights_read(version->weights, version->bytes, v->weights_bytes);
  if (job->index) {
    ct_weights_free(version[-1].weights);
    version[-1].weights = NULL;
  }
  v->published = job->index + 1;
  return rc < 0 ? rc : 0;
}
