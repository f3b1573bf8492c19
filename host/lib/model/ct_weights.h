/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights in device memory: live ones, which works change where they lie, and versions of them.
 *
 * A model has live weights, and so has a network, or several together. What is known of them is
 * here: where they are, who uses them now, how far training has come. Who uses them holds them by a
 * reference, and their memory goes with the last.
 *
 * Works of one queue are in order, so each sees what the ones before it have left. Between the two
 * queues, and with servers and the host, there is no order. So of live weights
 *
 *   a work that reads     meets none of the other queue that changes them
 *   a work that changes   meets none of the other queue, and no server
 *   a server              meets no work that changes them
 *   the host reads        while no work changes them
 *   the host changes      while nobody uses them
 *
 * and what would meet is refused with CT_ERR_BUSY. Publishing is a work of the training queue that
 * reads. A version is changed by nobody, and is used as soon as it is complete.
 */
#ifndef CT_WEIGHTS_H
#define CT_WEIGHTS_H

#include "coltrain/network.h"
#include "ct_prog.h"
#include "ct_queue.h"

struct ct_rank;

/* Who uses weights: works of a queue, servers. */
enum ct_weights_user {
  CT_WEIGHTS_BY_INFERENCE = CT_INFERENCE,
  CT_WEIGHTS_BY_TRAINING = CT_TRAINING,
  CT_WEIGHTS_BY_SERVER,
  CT_WEIGHTS_USERS
};

/* How: until it is dropped. */
struct ct_use {
  enum ct_weights_user by;
  bool changes;
};
static inline struct ct_use ct_use_reads(enum ct_queue queue) {
  return (struct ct_use){(enum ct_weights_user)queue, false};
}
static inline struct ct_use ct_use_changes(enum ct_queue queue) {
  return (struct ct_use){(enum ct_weights_user)queue, true};
}
static inline struct ct_use ct_use_serves(void) {
  return (struct ct_use){CT_WEIGHTS_BY_SERVER, false};
}

struct ct_weights {
  struct ct_handle handle; /* first */
  ct_device *dev;
  size_t refs;
  struct ct_mlp net;     /* of a model; layers 0: of a network */
  ct_network *network;   /* of a version: that it was made for; NULL: of a model */
  uint64_t bytes, image; /* of device memory, and its address */
  struct ct_rank *rank;  /* in whose memory the image is; NULL: it has memory of its own */
  uint32_t version;      /* 0: live */
  int error;             /* as in ct_weights_info */
  uint64_t steps;        /* that have made them */
  bool inside;           /* no caller has a handle of them */
  /* Of live ones. */
  bool live;
  uint64_t epochs, seed;
  size_t users[CT_WEIGHTS_USERS], changing[CT_WEIGHTS_USERS]; /* of these: they change them */
  struct ct_until left; /* jobs of calls that blocked and could not be ended */
  uint64_t state;       /* address of a model's; 0: nothing has been prepared for training */
  uint64_t gradients;   /* the same; 0: nobody has asked */
  uint32_t whole;       /* a bit for each layer whose gradients are there */
  size_t keepers;       /* works in flight that write or read gradients */
  uint64_t behind;      /* jobs that the training queue had seen behind the last of those */
};

/* ---- References ---- */

/* None in memory so far, and one reference: its maker's. */
int ct_weights_open(ct_device *dev, ct_weights **weights);
/* A version to be, with memory for an image of so many bytes; the reference is the handle's. */
int ct_weights_make(ct_device *dev, uint64_t bytes, ct_weights **weights);
void ct_weights_release(ct_weights *weights);
/* Whose they were is freed. */
void ct_weights_orphan(ct_weights *weights);

/* They are used, and are no more: a reference. */
void ct_weights_take(ct_weights *weights, struct ct_use use);
void ct_weights_drop(ct_weights *weights, struct ct_use use);

/* ---- Rules: CT_OK or CT_ERR_BUSY. What the device has completed meanwhile counts. ---- */

/* They may be used so now. */
int ct_weights_may(ct_weights *weights, struct ct_use use);
/* The host may read them, or change them. what: of the sentence, such as "saved". */
int ct_weights_still(ct_weights *weights, bool change, const char *what);
/* Anybody uses them; jobs are left that could not be ended. */
bool ct_weights_are_used(const ct_weights *weights);
bool ct_weights_are_left(const ct_weights *weights);
/* They are complete. Other errors: why they never will be. */
int ct_weights_ready(ct_weights *weights);

/* ---- Versions ---- */

/* A version that is made on the device, in a work of the training queue: by copies of what is at
 * `from`, and jobs behind these, which may be none. Whoever made it has its handle. */
struct ct_publishing {
  ct_weights *weights, *of; /* to be made; the live ones that are copied */
  uint64_t from;
  const struct ct_programs *copies;
  const struct ct_job *then;
  size_t jobs;
  uint32_t *numbered; /* highest number that a version has had */
  void *user;
  void (*done)(void *arg, ct_weights *weights); /* its outcome is known; may be NULL */
  void *arg;
};
int ct_publish(const struct ct_publishing *p, uint64_t *tag);
/* Before anything is made for it. */
int ct_publish_may(ct_weights *of);

/* A complete version of what ct_weights_read() gave, which must have so many bytes; of what, and
 * its number, are the caller's to say. */
int ct_weights_of(ct_device *dev, uint64_t bytes, const void *data, size_t size,
                  ct_weights **weights);

#endif
