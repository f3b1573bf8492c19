/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds a model with the batches of its epochs, several steps ahead of the device, so that the
 * training queue never runs dry.
 */
#ifndef FEEDER_H
#define FEEDER_H

#include "batch_order.h"
#include "learner.h"

/* What the user pointer of every submitted job points to. */
enum job_kind { JOB_STEP, JOB_PUBLISH, JOB_REQUEST };
struct job {
  enum job_kind kind;
  void *owner;    /* the feeder, or the server */
  uint64_t index; /* step, version or request */
};

/* Steps that are ahead of the device; of a graph, whose steps are long and of many jobs. */
enum { FEEDER_DEPTH = 8, FEEDER_GRAPH_DEPTH = 2 };

struct feeder {
  struct learner *learner;
  struct batch_order order;
  uint32_t depth;
  uint64_t submitted, finished; /* steps, counted from the model's first */
  uint64_t written;             /* steps whose batch is written */
  float *x;
  uint32_t *labels;
  struct learner_batch slot[FEEDER_DEPTH];
  struct job jobs[FEEDER_DEPTH];
};

/* With the data that the learner has. first: the step to begin with. A ct_error; close it either
 * way. */
int feeder_open(struct feeder *f, struct learner *learner, uint64_t first);
void feeder_close(struct feeder *f);

/* Submits the next step; CT_ERR_FULL if there is no room at present, or another ct_error. */
int feeder_submit(struct feeder *f);

/* Takes note of a finished step (its result's error is 0) and reads its loss, the mean over the
 * batch before the step. A ct_error. */
int feeder_finish(struct feeder *f, const struct job *job, float *loss);

#endif
