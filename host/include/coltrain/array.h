/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many trainings at once: an array of networks on one device, such as the same network with other
 * learning rates. Each member becomes, bit for bit, what it would have become alone.
 *
 *  Introduction
 *
 *    ct_array *array;
 *    uint32_t number;
 *    if (ct_array_create(dev, NULL, &array) == 0) {
 *      for (int i = 0; i < 8; ++i)
 *        ct_array_join(array, &(struct ct_member){.graph = graph,
 *                                                 .optimise = &how[i],
 *                                                 .feed = {write_batch, data},
 *                                                 .seed = 1}, &number);
 *      ct_array_run(array, 1000, NULL);
 *      ct_network_save(ct_array_network(array, best), "best.ctm");
 *      ct_array_free(array);
 *    }
 *
 *  Members of which only numbers of the optimiser differ share their programs; others have their
 *  own. Those that share them and are at the same run are put side by side, and run in the same
 *  jobs; perceptrons as one stage run in jobs of their own. Steps of all are in the training queue
 *  together, so that the device goes from one to the next without waiting for the host, and
 *  inference goes first as beside any training.
 *
 *  Conventions
 *
 *  Those of coltrain/coltrain.h hold. An array belongs to its device and follows its thread rule.
 *  docs/array.md says what it costs and when it pays.
 */
#ifndef COLTRAIN_ARRAY_H
#define COLTRAIN_ARRAY_H

#include "coltrain/network.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arrays ------------------------------------------------------------------------------- */

typedef struct ct_array ct_array;

/* How an array works; NULL and zeros are the defaults. */
struct ct_array_options {
  uint32_t ahead; /* runs of a member that are under way at once, 1..8; 0: 2 */
  uint32_t look;  /* runs of a member between two looks at its weights; 0: 100 */
  bool apart;     /* each run has jobs of its own: slower, less memory; struct ct_member_info */
  bool both; /* runs are in the inference queue, too, so that members fill each other's gaps on the
                device: where nobody asks for answers, since requests wait for whole runs there */
  uintptr_t reserved[5]; /* 0 */
};

/* An array without members. *array is NULL on failure: CT_ERR_MEMORY. */
int ct_array_create(ct_device *dev, const struct ct_array_options *options, ct_array **array);

/* Frees its members, too. */
void ct_array_free(ct_array *array);

/* ---- Members ------------------------------------------------------------------------------- */

/* Puts inputs and labels of a run, counted from 0, into a frame by ct_frame_write(); the same
 * whenever it is asked for the same run. It may make no other call with the device or the array. 0,
 * or a negative ct_error, with which the member ends. */
typedef int ct_feed_fn(void *arg, uint64_t run, ct_frame *frame);

/* Where the batches of a member come from. Members that have the same write and arg, and the same
 * programs, read the same batches, which are then written once. */
struct ct_feed {
  ct_feed_fn *write;
  void *arg;
};

/* A member that is to join. The structure is copied, and the graph with it. */
struct ct_member {
  const ct_graph *graph; /* with updates; with optimise: without gradients, to which these are
                            added; NULL: a file */
  const struct ct_optimise *optimise; /* NULL: the graph has its updates */
  const char *file; /* of a network, which goes on where it was saved; NULL: a graph */
  const char *loss; /* an output that is one number; NULL: "loss" */
  struct ct_feed feed;
  uint64_t seed;         /* that weights are drawn from; of a file: not looked at */
  uint64_t masks;        /* of dropout; of a file, 0: that which it had */
  uint32_t mantissa;     /* as in struct ct_network_options */
  void *user;            /* comes back in struct ct_member_info */
  uintptr_t reserved[4]; /* 0 */
};

/* Adds a member between two calls of ct_array_run(). *number names it, and is never used again. On
 * failure the others do not notice: CT_ERR_NO_SPACE, CT_ERR_UNSUPPORTED (it has more than 12
 * inputs, labels and outputs), CT_ERR_ARG, and as ct_network_create() and ct_network_load(). */
int ct_array_join(ct_array *array, const struct ct_member *member, uint32_t *number);

/* Takes a member out and frees its network: CT_ERR_NOT_FOUND. */
int ct_array_leave(ct_array *array, uint32_t number);

/* A member's network: to read, save or publish it between two calls of ct_array_run(), or to write
 * its weights. It has no inputs and outputs of its own, so it cannot be run by others; it must not
 * be freed. NULL, and a sentence: there is no such member. */
ct_network *ct_array_network(ct_array *array, uint32_t number);

/* Lets a member take no run from that number on, counted from 0; CT_NO_CYCLE, as at first: any. So
 * members of other batch sizes can see the same data. CT_ERR_NOT_FOUND. */
int ct_array_limit(ct_array *array, uint32_t number, uint64_t run);

/* DIVERGED: a loss or a weight was NaN or Inf. FAILED: a run or its feed failed. Neither runs any
 * more. */
enum ct_member_state { CT_MEMBER_READY, CT_MEMBER_DIVERGED, CT_MEMBER_FAILED };

/* What is known of a member. */
struct ct_member_info {
  uint32_t number;
  enum ct_member_state state;
  int error;         /* of a failed one */
  uint64_t runs;     /* that it has had, those before it joined too: the next has this number */
  uint64_t ended_by; /* the first run with such a loss, or behind which weights were found to be so,
                        or that failed; CT_NO_CYCLE: none */
  float loss;        /* of its last run; NaN before */
  uint32_t together; /* members that have its programs, itself among them */
  uint64_t bytes;    /* of device memory that it has for itself */
  uint64_t cycles;   /* that its runs took, by the device's clock, and of runs in the same jobs
                        its part; 0 without one */
  void *user;
  uint64_t beside; /* members in the jobs of its last run, itself among them: when such a run fails
                      all of them have failed; 0 before the first */
  uintptr_t reserved[3];
};

/* Copies what is known of the members, up to count, in the order in which they joined; returns how
 * many there are. members may be NULL with count 0. */
size_t ct_array_members(const ct_array *array, struct ct_member_info *members, size_t count);

/* The same of one: CT_ERR_NOT_FOUND. */
int ct_array_member(const ct_array *array, uint32_t number, struct ct_member_info *info);

/* ---- Running ------------------------------------------------------------------------------- */

/* A run that has ended. */
struct ct_member_run {
  uint32_t number;     /* of the member */
  uint64_t run;        /* counted from 0 */
  int error;           /* CT_OK, or how it ended */
  float loss;          /* NaN if it failed */
  uint64_t start, end; /* by the device's clock, or CT_NO_CYCLE */
  enum ct_member_state state;
};

/* Called when a run has ended, in the order of the runs. It may ask about the array and its
 * members, but make no other call with the device. Not 0: no more runs begin. */
typedef int ct_watch_fn(void *arg, const struct ct_member_run *run);
struct ct_watch {
  ct_watch_fn *ended;
  void *arg;
};

/* Each member that is ready takes so many more runs, in turn; returns when all have ended. Events
 * of other work stay for ct_reap(). watch may be NULL. A member that fails or diverges is no error:
 * ct_array_member() says so. One whose run `r` had a loss that is not finite still takes the runs
 * in front of r + ahead: as many as alone. Errors, after which the runs under way are waited for by
 * the next call: CT_ERR_TIMEOUT and CT_ERR_DEVICE as ct_wait() gives them, CT_ERR_MEMORY. */
int ct_array_run(ct_array *array, uint64_t runs, const struct ct_watch *watch);

/* What is known of an array. */
struct ct_array_info {
  size_t members, ready; /* ready: that would run */
  size_t programs;       /* sets of programs that they have */
  uint64_t batches;      /* written by feeds so far */
  uint64_t runs;         /* that have ended */
  uint64_t bytes;        /* of device memory for batches */
  uintptr_t reserved[4];
};

/* Copies what is known to *info. */
int ct_array_info(const ct_array *array, struct ct_array_info *info);

#ifdef __cplusplus
}
#endif

#endif
