/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coltrain train --sweep`: one network trained with each combination of numbers, all at once
 * (coltrain/array.h), the best of them kept.
 *
 *   sweep_options.c   what is swept          sweep_feed.c     batches
 *   sweep.c           members, epochs        sweep_view.c     the table
 *   sweep_report.c    JSON                   sweep_judge.c    accuracies, who goes on
 *
 * A member takes the steps that `coltrain train` takes with its numbers, so its weights are
 * the same, to the bit.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "batch_order.h"
#include "coltrain/array.h"
#include "learn.h"
#include "live.h"

/* What can be swept, in this order. */
enum sweep_key {
  SWEEP_LR,
  SWEEP_MOMENTUM,
  SWEEP_DECAY,
  SWEEP_OPTIMISER, /* an enum ct_optimiser */
  SWEEP_BETA1,
  SWEEP_BETA2,
  SWEEP_EPSILON,
  SWEEP_BATCH,
  SWEEP_SEED,
  SWEEP_KEYS
};
enum { SWEEP_VALUES = 64, SWEEP_MEMBERS = 256 };

struct sweep_options {
  struct {
    double value[SWEEP_VALUES];
    size_t count; /* 0: not swept */
  } axis[SWEEP_KEYS];
  bool given;
  uint32_t halving; /* 0: all are trained to the end */
};

/* Reads "lr=0.01,0.03"; what is wrong is a usage error. */
void sweep_take(struct sweep_options *o, const char *arg, const struct argp_state *state);

const char *sweep_key_name(enum sweep_key key);

/* A value as people write it: "0.01", "adam". */
struct sweep_text {
  char text[24];
};
struct sweep_text sweep_value_text(enum sweep_key key, double value);

/* ---- Batches ---- */

/* Batches of a size in the order that a seed gives: those of `coltrain train` (feeder.h). */
struct sweep_feed {
  struct batch_order order;
  float *x, *y;
  uint32_t *labels;
};
int sweep_feed_open(struct sweep_feed *f, const struct ct_dataset *ds, uint32_t batch,
                    uint64_t seed); /* a ct_error; close it either way */
void sweep_feed_close(struct sweep_feed *f);
int sweep_feed_write(void *feed, uint64_t run, ct_frame *frame); /* of a struct ct_feed */

/* ---- Members ---- */

struct sweep_member {
  uint32_t number; /* of the array, too */
  double value[SWEEP_KEYS];
  struct sweep_feed *feed;
  struct ct_member_info info; /* as it was last */
  bool left;                  /* it has left the array */
  uint64_t epochs;            /* that it has finished */
  double sum;                 /* of losses, in the epoch under way ... */
  uint64_t count;             /* ... and how many */
  double loss, accuracy;      /* of its last epoch; NaN */
  uint32_t crc;
  json_t *by_epoch;
};

struct sweep {
  const struct learn *l;
  const struct sweep_options *o;
  struct ct_dataset data;
  ct_device *dev;
  ct_array *array;
  ct_network *answers; /* that evaluates */
  int asked, logits;   /* its tensors */
  struct sweep_feed *feed;
  size_t feeds;
  struct sweep_member *member;
  size_t members;
  uint64_t epoch;  /* under way, from 1 on */
  uint64_t cycles; /* spent on runs; CT_NO_CYCLE: no clock */
  bool evaluated;
  FILE *text;
  struct live live; /* for `coltrain top` */
  struct sweep_view {
    bool terminal;
    uint64_t drawn; /* ns */
  } view;
};

/* The sentence about a call that failed; 1. */
int sweep_fail(struct sweep *s, int error, const char *what);

/* Trains all and writes what was asked for. The exit status. */
int sweep_run(struct learn *l, const struct sweep_options *o);

/* ---- Judging ---- */

/* Rows of a run of the network that evaluates. */
enum { SWEEP_ROWS = 16 };

/* The accuracy of each member that has finished the epoch. 0, or 1 after a sentence. */
int sweep_evaluate(struct sweep *s);

/* Members from the best on: those that have diverged come last. */
void sweep_rank(const struct sweep *s, size_t *order);

/* After how many epochs members are compared for the n-th time, counted from 0, and how many go on;
 * false: there is no such time. */
bool sweep_rung(const struct sweep *s, size_t n, uint64_t *epochs, size_t *left);

/* ---- The table and the results ---- */

void sweep_view_open(struct sweep *s);
void sweep_view_update(struct sweep *s); /* if it is time to */
void sweep_view_epoch(struct sweep *s);  /* an epoch has ended */
void sweep_view_leave(struct sweep *s);  /* the terminal is as before: a sentence can be read */
void sweep_view_close(struct sweep *s);  /* the same, with the last table below */
int sweep_write_json(struct sweep *s, const struct sweep_member *best);

#endif
