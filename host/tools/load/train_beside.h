/* SPDX-License-Identifier: Apache-2.0 */
/* Training beside requests or alone: a part of a load that keeps the training queue full. */
#ifndef TRAIN_BESIDE_H
#define TRAIN_BESIDE_H

#include "feeder.h"
#include "load.h"

struct trainer {
  struct load *load;
  struct ct_dataset data;
  struct learn learn; /* of trainer_open() */
  struct learner learner;
  struct feeder feed;
  uint64_t end;               /* no step from here on is submitted; UINT64_MAX: none is the last */
  float *losses;              /* of the steps that finish, where they are wanted; NULL */
  size_t count;               /* steps that have finished here */
  uint64_t from, rows, steps; /* since its window began */
};

/* Opens the data and makes the model; load->part[1] becomes its steps. 0, or 1 after a sentence;
 * close it either way. */
int trainer_open(struct trainer *t, struct load *load, const struct learn *learn);
void trainer_close(struct trainer *t);

/* The rest of opening, for who has load, data and learner already: the first step is number
 * `first`. */
int trainer_start(struct trainer *t, uint64_t first);

/* Takes what the training queue has ended; load->take may be that. */
int trainer_take(void *trainer, const struct ct_event *event);

/* Rows of the array so far, and the clock; both, and the steps, become where a window begins. */
int trainer_read(const struct trainer *t, uint64_t *rows, uint64_t *cycle);
int trainer_begin(struct trainer *t);

#endif
