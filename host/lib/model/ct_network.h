/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network inside the library: its compiled form, and where its regions lie.
 *
 *   ct_network.c          making one, its tensors, facts     ct_network_data.c     elements, planes
 *   ct_network_run.c      runs: waited for, submitted        ct_network_frame.c    frames
 *   ct_network_weights.c  versions of the weights            ct_network_file.c     files
 *   ct_network_members.c  members: selecting one, runs of several
 *
 * Memory that runs under way use is held by references: the network has one for its handle, one for
 * each frame and each run, and its regions go with the last.
 */
#ifndef CT_NETWORK_H
#define CT_NETWORK_H

#include "coltrain/network.h"
#include "ct_compile.h"
#include "ct_model.h"

struct ct_network_part {
  struct ct_programs programs, group;
  uint32_t round; /* members of a pass of `group`; 0: there is none */
  uint64_t rows, cycles, commands, expected, beside;
  const char *bound;
};

/* Where the regions of a run lie: addresses; 0: none. */
struct ct_regions {
  uint64_t lasting, arena;
  uint64_t external[CT_EXTERNALS];
};

/* Members whose arenas exist: as many run in a job at once. */
enum { CT_MEMBERS = 256, CT_MEMBERS_AT_ONCE = 8 };

/* What is counted for each member. */
struct ct_member {
  uint64_t steps, drawn, epochs;
  bool stale;
  size_t runs; /* of several members, under way */
};

/* The copies by which a version of another network's weights is made. */
struct ct_copies {
  struct ct_stretch *stretch;
  size_t count;
  struct ct_programs programs;
};

struct ct_network {
  struct ct_handle handle; /* first */
  ct_device *dev;
  ct_graph *graph; /* its own */
  struct ct_compiled compiled;
  unsigned narrow;
  struct ct_network_part *part; /* by stage */
  uint32_t members, selected;
  bool shared;               /* inputs and labels are those of all members */
  struct ct_member *member;  /* of each; of the selected one they are below */
  struct ct_regions base;    /* of member 0, but for the arena */
  struct ct_regions own;     /* of the selected one, but for the arena */
  uint64_t spare;            /* an arena that no queue has yet; 0: none */
  uint64_t arena[CT_QUEUES]; /* runs of a queue go one after the other */
  struct ct_copies copies;   /* that publish for this network; made when needed */
  uint32_t numbered;         /* highest number that a version has had */
  uint64_t seed;             /* of dropout */
  bool stale;                /* weights were written since the stages that run once have run */
  bool changes;              /* runs change weights or states: those stages run each time */
  enum ct_queue queue;       /* of the last run that was waited for */
  int error;                 /* how it ended; CT_ERR_DEVICE: jobs of it may be under way ... */
  uint64_t ends;             /* ... until so many jobs of the queue have completed */
  uint64_t steps;            /* runs that changed weights */
  uint64_t drawn;            /* the seed that weights were drawn from last */
  uint64_t epochs;
  size_t refs;
  size_t own_runs[CT_QUEUES]; /* submitted, under way, with its own weights; publishing counts */
  size_t published;           /* of these: versions of its weights that are being made */
  size_t arriving;            /* versions for it that are being made, by `copies` */
  size_t frame_runs;          /* the same with its own frame */
};

struct ct_frame {
  struct ct_handle handle; /* first */
  ct_device *dev;
  ct_network *network;
  struct ct_regions at; /* external alone */
  bool ran, busy;
  int outcome; /* of the last run */
  size_t refs;
};

/* The matrix of a tensor, rows x cols of it, from its elements, and back. */
size_t ct_lay_elements(const struct ct_lay *lay);
void ct_lay_spread(const struct ct_lay *lay, const float *data, float *matrix);
void ct_lay_gather(const struct ct_lay *lay, const float *matrix, float *data);

/* A matrix to all its places, and back from the best of them. */
int ct_network_put(ct_network *n, const struct ct_regions *r, const struct ct_mat *mat,
                   const float *matrix);
int ct_network_get(ct_network *n, const struct ct_regions *r, const struct ct_mat *mat,
                   float *matrix);

/* ---- ct_network.c ---- */

/* CT_OK, or an error with a sentence: NULL, freed before, or of a closed device. */
int ct_check_network(const ct_network *n);

/* The layout of a tensor of so many elements; CT_LAY_NONE: it has no place. */
int ct_network_find(ct_network *n, int tensor, size_t count, const struct ct_lay **lay);

/* Elements of such a tensor to those regions and back. */
int ct_network_put_tensor(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                          const float *data);
int ct_network_get_tensor(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                          float *data);

/* So much memory, all zeros; 0 units: none. */
int ct_network_alloc(ct_network *n, uint64_t units, uint64_t *addr);

/* The constants of a region of what lasts. */
int ct_network_put_constants(ct_network *n, const struct ct_regions *r);

/* A reference is over: the memory goes with the last. */
void ct_network_release(ct_network *n);

/* ---- ct_network_run.c ---- */

/* Arguments of the jobs of a run. */
void ct_network_arguments(const ct_network *n, const struct ct_regions *r, uint64_t step,
                          struct ct_job *job);

/* The arena of a queue, made when it is first needed. */
int ct_network_arena(ct_network *n, enum ct_queue queue, uint64_t *addr);

/* CT_OK if a run with the network's own weights may begin, as far as they are concerned. */
int ct_network_check_run(ct_network *n, enum ct_queue queue);
/* The masks of dropout of a run, if it has some. */
int ct_network_put_masks(ct_network *n, const struct ct_regions *r, uint64_t step);
/* CT_OK, or CT_ERR_NO_SPACE: so many jobs in a row will never fit the queue. */
int ct_network_check_most(ct_network *n, uint64_t most);

/* CT_OK, or CT_ERR_BUSY: jobs of a run that was waited for and failed are under way. What the
 * device has completed meanwhile counts, here and in the next function. */
int ct_network_ended(ct_network *n);

/* The same, or submitted runs use the network's own weights, or its own frame. what: of the
 * sentence, such as "written". */
int ct_network_still(ct_network *n, bool frame, const char *what);

/* The jobs of a network's stages in run `step`, all like one: those that run once, the rest, or
 * all. Returns how many there are; jobs may be NULL. */
enum ct_stages { CT_STAGES_ALL, CT_STAGES_ONCE, CT_STAGES_REST };
size_t ct_network_jobs(const ct_network *n, enum ct_stages which, uint64_t step,
                       const struct ct_job *like, struct ct_job *jobs);
/* How many there are in a run that ends a step: the most of all runs. */
size_t ct_network_most_jobs(const ct_network *n, enum ct_stages which);

/* CT_OK, or CT_ERR_UNSUPPORTED: inputs, labels or outputs lie with the network's own weights, where
 * other frames and other weights do not bring them. what: "frames", "versions of them". */
int ct_network_parts(ct_network *n, const char *what);

/* ---- ct_network_members.c ---- */

/* Where a member's regions are, but for the arena, which is the first of its queue's. */
struct ct_regions ct_network_member_at(const struct ct_network *n, uint32_t member);

/* ---- ct_network_frame.c ---- */

/* CT_OK if a run of the network can have the frame; it is under way, and has ended. */
int ct_frame_check(ct_network *n, ct_frame *f);
void ct_frame_take(ct_frame *f);
void ct_frame_drop(ct_frame *f, int error);

/* ---- ct_network_weights.c ---- */

void ct_copies_free(struct ct_copies *c);

#endif
