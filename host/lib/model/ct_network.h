/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network inside the library: its compiled form, and where its regions lie.
 *
 *   ct_network.c          making one, its tensors, facts     ct_network_data.c     elements, planes
 *   ct_network_run.c      runs: waited for, submitted        ct_network_tiles.c    of perceptrons
 *   ct_network_frame.c    frames
 *   ct_network_weights.c  versions of the weights            ct_network_copies.c   what they take
 *   ct_network_file.c     files                              ct_network_bounds.c   bounds in them
 *   ct_network_batches.c  for the batcher
 *   ct_network_same.c     networks with the weights of another
 *   ct_network_members.c  members: selecting one, runs of several
 *   ct_network_rank.c     networks side by side, which run in the same jobs
 *   ct_network_crowd.c    jobs of several members, of either kind
 *   ct_network_kept.c     what is kept compressed: pages      ct_network_look.c     bounds
 *   ct_network_try.c      bounds of its first run
 *   ct_network_expect.c   what stages should take
 *
 * Networks that have the same programs (struct ct_network_options.like) share them: what is
 * compiled is there once, and so is an arena for each queue, whose runs go one after the other. A
 * network of its own are what lasts, inputs and outputs, numbers of its runs, and what is known of
 * it.
 *
 * What lasts of a network are live weights (ct_weights.h). Networks that have the weights of
 * another (struct ct_network_options.weights_of) have the same ones, and so count their runs
 * together.
 *
 * Memory that runs under way use is held by references: the network has one for its handle, one for
 * each frame and each run, and its regions go with the last.
 */
#ifndef CT_NETWORK_H
#define CT_NETWORK_H

#include "coltrain/network.h"
#include "ct_compile.h"
#include "ct_model.h"

/* What a stage should take: struct ct_network_stage. */
struct ct_network_cost {
  uint64_t expected, busy;
  const char *bound, *unit; /* NULL: not known */
};

struct ct_network_part {
  struct ct_programs programs;
  uint64_t rows, cycles, commands, beside;
  struct ct_network_cost one, all; /* all: a run of all members, of several */
};

/* Where the regions of a run lie: addresses; 0: none. */
struct ct_regions {
  uint64_t lasting, arena;
  uint64_t state; /* of a guest */
  uint64_t external[CT_EXTERNALS];
};

/* Programs of stages for members at constant strides. */
struct ct_fusion_stage {
  struct ct_programs programs;
  struct ct_stage_group how; /* without codes */
};
struct ct_fusion {
  bool made;                     /* by ct_fusion_make(), with whatever came of it */
  struct ct_fusion_stage *stage; /* NULL: no stage has such programs */
};

enum { CT_MEMBERS = 256 };

/* Pages for so many bits a number suffice whatever is stored. */
enum { CT_PAGE_BYTES = 4096, CT_KEPT_BITS = 12 };

/* What is counted for each member; of the selected one how far training has come is with `live`. */
struct ct_network_member {
  uint64_t steps, seed, epochs;
  bool stale;
  size_t runs; /* under way, with its own weights */
};

/* The copies by which a version of another network's weights is made. */
struct ct_copies {
  bool made;
  struct ct_stretch *stretch;
  struct ct_turn *turn;
  size_t count, turns;
  struct ct_programs programs;
};

/* What networks of the same programs have in common. Programs go with the last that is open, so
 * that what is under way ends; arenas with the last whose runs have ended. */
struct ct_shared {
  ct_graph *graph; /* that was compiled */
  struct ct_compiled compiled;
  struct ct_programs *programs; /* by stage */
  struct ct_fusion group[2];    /* made when needed; [1]: inputs are those of all members */
  uint64_t ranks[CT_QUEUES];    /* arenas of so many members as run at once, of networks side by
                                   side; 0: none */
  bool expected;                /* what stages should take is known */
  struct ct_codes *codes;       /* by stage, where it is made again; NULL */
  uint64_t spare;               /* an arena that no queue has yet; 0: none */
  uint64_t arena[CT_QUEUES];    /* runs of a queue go one after the other */
  uint64_t pages;               /* for what is kept compressed, as allocated; 0: none */
  uint32_t page_count;
  uint32_t page_bits;   /* of a number, for which there are pages; 0: as usual, not known yet */
  bool nothing_lost;    /* so it was asked by the network that made them */
  uint64_t ends;        /* jobs of the training queue, those of all runs that use them */
  bool leaky;           /* a run has failed: there may be groups that no index knows */
  ct_network *looking;  /* whose run, the last one submitted, looks at gradients; or NULL */
  int error[CT_QUEUES]; /* CT_ERR_DEVICE: jobs of a network that is gone may use it */
  size_t open, refs;    /* networks */
};

struct ct_network {
  struct ct_handle handle; /* first */
  ct_device *dev;
  ct_weights *live; /* its own, of all members; NULL: it is a guest */
  bool borrows;     /* they are another network's, which alone writes them */
  struct ct_shared *shared;
  ct_graph *graph;             /* its own */
  struct ct_compiled compiled; /* the shared one, with this network's numbers of a run */
  unsigned narrow;
  bool kernels;                 /* it is by these, even if it is a perceptron */
  bool continued;               /* bounds of what is kept compressed come of its file's */
  bool once;                    /* there are stages that run once; else it is never stale */
  struct ct_network_part *part; /* by stage; programs are the shared ones */
  uint32_t members, selected;
  enum ct_masks masks;              /* of what is kept compressed; never CT_MASKS_DEFAULT */
  bool common;                      /* inputs and labels are those of all members */
  struct ct_network_member *member; /* of each; of the selected one they are below */
  struct ct_regions base;           /* of member 0: external alone */
  bool bare;                        /* it has no inputs and outputs of its own: frames alone */
  enum ct_model_job guest;          /* it has no memory at all: see ct_network_make_guest() */
  uint8_t *bound;                   /* of what is kept compressed, for the next run */
  struct ct_cycles_groups *groups;  /* of each, how long they are; NULL: nothing is kept so */
  uint64_t *stored;                 /* units that it takes, index and all */
  uint64_t measured;                /* steps after which these were looked at */
  double kept_error;                /* struct ct_network_options.error, .refresh */
  uint64_t pressed;                 /* struct ct_network_info.pressed */
  uint32_t refresh;
  int look_error;          /* of the look at its last run, which has not been told yet */
  struct ct_copies copies; /* that publish for this network; made when needed */
  uint32_t numbered;       /* highest number that a version has had */
  uint64_t seed;           /* of dropout */
  bool guessed;            /* the next run first tries whether there are enough pages */
  bool stale;              /* weights were written since the stages that run once have run */
  bool changes;            /* runs change weights or states: those stages run each time */
  enum ct_queue queue;     /* of the last run that was waited for */
  int error;               /* how it ended; CT_ERR_DEVICE: jobs of it may be under way ... */
  uint64_t ends;           /* ... until so many jobs of the queue have completed */
  size_t refs;
  struct ct_follower follower;
  size_t arriving;   /* versions for it that are being made, by `copies` */
  size_t frame_runs; /* submitted, under way, with its own frame */
};

/* A model's batch is one, too, of the network of its steps. */
struct ct_frame {
  struct ct_handle handle; /* first */
  ct_device *dev;
  ct_network *network;
  struct ct_regions at; /* external alone */
  bool ran;
  size_t busy;       /* runs under way: of a frame one at most */
  int outcome;       /* of the last run that ended */
  bool ranked;       /* outputs are in the rank of its network */
  uint32_t borrowed; /* a bit for each external whose place belongs to somebody else */
  size_t refs;
};

struct ct_batch {
  ct_frame frame; /* first */
  struct ct_plan *plan;
  ct_weights *live; /* of the model; there while a step is in flight */
  uint32_t classes;
  struct ct_lay x, y, loss;
  bool written;
};

/* The matrix of a tensor, rows x cols of it, from its elements, and back. */
size_t ct_lay_elements(const struct ct_lay *lay);
void ct_lay_spread(const struct ct_lay *lay, const float *data, float *matrix);
void ct_lay_gather(const struct ct_lay *lay, const float *matrix, float *data);

/* The address of a region, by the argument that has it as a rule. */
uint64_t ct_regions_at(const struct ct_regions *r, unsigned region);

/* Elements of a tensor of a perceptron (CT_LAY_TILES, _LINES, _VECTORS) to all its places, and back
 * from the best of them. */
bool ct_lay_is_mlp(const struct ct_lay *lay);
int ct_network_put_mlp(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                       const float *data);
int ct_network_get_mlp(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                       float *data);

/* The same of several, CT_PUTS at most (data NULL: not of this one). After CT_ERR_MEMORY nothing
 * has been written. */
enum { CT_PUTS = 2 };
struct ct_put {
  const struct ct_lay *lay;
  const float *data;
};
int ct_network_put_mlps(ct_network *n, const struct ct_regions *r, const struct ct_put *put,
                        size_t count);

/* The same in the caller's memory, in one way of keeping; between FP32 tiles others may lie. */
void ct_lay_pack(const struct ct_lay *lay, enum ct_keep keep, const float *from, uint8_t *to);
void ct_lay_unpack(const struct ct_lay *lay, enum ct_keep keep, const uint8_t *from, float *to);

/* A matrix to all its places, and back from the best of them. */
int ct_network_put(ct_network *n, const struct ct_regions *r, const struct ct_mat *mat,
                   const float *matrix);
int ct_network_get(ct_network *n, const struct ct_regions *r, const struct ct_mat *mat,
                   float *matrix);

/* The bytes of a matrix in all its places, as they are, and back; how many these are. */
size_t ct_network_raw(const struct ct_mat *mat);
int ct_network_get_raw(ct_network *n, const struct ct_regions *r, const struct ct_mat *mat,
                       uint8_t *bytes);
int ct_network_put_raw(ct_network *n, const struct ct_regions *r, const struct ct_mat *mat,
                       const uint8_t *bytes);

/* ---- ct_network.c ---- */

/* CT_OK, or an error with a sentence: NULL, freed before, or of a closed device. */
int ct_check_network(const ct_network *n);

/* As ct_network_create(). */
int ct_network_make(ct_device *dev, const ct_graph *graph, const struct ct_network_options *options,
                    bool bare, ct_network **network);
/* The programs of a model's answers or steps, by a graph that is a perceptron, whatever its rows:
 * CT_ERR_NO_SPACE where these have no room. Each run says where everything lies. */
int ct_network_make_guest(ct_device *dev, const ct_graph *graph, enum ct_model_job job,
                          ct_network **network);
/* CT_OK, or CT_ERR_UNSUPPORTED: it has no frame of its own. */
int ct_network_has_frame(ct_network *n);
/* CT_OK, or CT_ERR_UNSUPPORTED: the weights are another one's. what: as ct_network_still(). */
int ct_network_owned(ct_network *n, const char *what);

/* Whether none of them is NaN; else *at is the first that is none. */
bool ct_no_nan(const float *x, size_t count, size_t *at);

/* The layout of a tensor of so many elements; CT_LAY_NONE: it has no place. */
int ct_network_find(ct_network *n, int tensor, size_t count, const struct ct_lay **lay);

/* Elements of such a tensor to those regions and back. */
int ct_network_put_tensor(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                          const float *data);
int ct_network_get_tensor(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                          float *data);

/* So much memory, all zeros; 0 units, or a failure: none. */
int ct_network_alloc(ct_network *n, uint64_t units, uint64_t *addr);

/* The constants of a region of what lasts. */
int ct_network_put_constants(ct_network *n, const struct ct_regions *r);

/* A reference is over: the memory goes with the last. */
void ct_network_release(ct_network *n);

/* ---- ct_network_file.c ---- */

/* As ct_network_load(); choose: which network it is like, when its graph is known. NULL: as the
 * options say. */
struct ct_network_choice {
  ct_network *(*like)(const void *arg, const ct_graph *graph, const struct ct_network_options *how);
  const void *arg;
  bool bare;
};
int ct_network_load_like(ct_device *dev, const char *path, const struct ct_network_options *options,
                         const struct ct_network_choice *choose, ct_network **network);

/* Compiles the network's graph for its device; the result is to be freed, whatever comes. */
int ct_network_compile(ct_network *n, bool members, bool common, const struct ct_compile_room *room,
                       struct ct_compiled *compiled);

/* ---- ct_network_run.c ---- */

/* Arguments of the jobs of a run. */
void ct_network_arguments(const ct_network *n, const struct ct_regions *r, uint64_t step,
                          struct ct_job *job);

/* The same with other numbers than its own. */
void ct_compiled_arguments(const struct ct_compiled *compiled, const struct ct_regions *r,
                           const struct ct_scalar *scalars, uint64_t step, struct ct_job *job);

/* Stages of a run. ONCE: those that run once. */
enum ct_stages { CT_STAGES_ALL, CT_STAGES_ONCE, CT_STAGES_REST };

/* Submits the jobs of a network's stages in run `step`, all like one, as a work whose queue, kind,
 * cycle and end are given. */
int ct_network_send(const ct_network *n, enum ct_stages which, uint64_t step,
                    const struct ct_job *like, struct ct_work *work, uint64_t *tag);

/* The arena of a queue, made when it is first needed. */
int ct_network_arena(ct_network *n, enum ct_queue queue, uint64_t *addr);

/* CT_OK if a run with the network's own weights may begin, as far as they are concerned. */
int ct_network_check_run(ct_network *n, enum ct_queue queue);
/* CT_OK if such a run may be submitted now. */
int ct_network_check_submit(ct_network *n, const struct ct_run *run);
/* The masks of dropout of a run, if it has some; no run that reads the last may be under way: that
 * is looked at, or known. */
int ct_network_put_masks(ct_network *n, const struct ct_regions *r, uint64_t step);
int ct_network_write_masks(ct_network *n, const struct ct_regions *r, uint64_t step);
/* CT_OK, or CT_ERR_NO_SPACE: so many jobs in a row will never fit the queue. */
int ct_network_check_most(ct_network *n, uint64_t most);
/* The stages in front of gradients, waited for; what they change stays changed. *full: the pages
 * for what is kept compressed have become full. */
int ct_network_run_forward(ct_network *n, enum ct_queue queue, const struct ct_regions *at,
                           uint64_t step, bool *full);

/* CT_OK, or CT_ERR_BUSY: jobs of a run that was waited for and failed are under way. What the
 * device has completed meanwhile counts, here and in the next function. */
int ct_network_ended(ct_network *n);

/* The same, or the host may not read the network's own weights, or change them; runs under way use
 * its own frame. what: of the sentence, such as "written". */
int ct_network_still(ct_network *n, bool change, const char *what);
int ct_network_frame_still(ct_network *n, const char *what);

/* How many jobs a stage takes. */
size_t ct_network_stage_jobs(const ct_network *n, size_t stage);

/* The jobs of a network's stages in run `step`, all like one: those that run once, the rest, or
 * all. Returns how many there are; jobs may be NULL. */
size_t ct_network_jobs(const ct_network *n, enum ct_stages which, uint64_t step,
                       const struct ct_job *like, struct ct_job *jobs);
/* How many there are in a run that ends a step: the most of all runs. */
size_t ct_network_most_jobs(const ct_network *n, enum ct_stages which);

/* CT_OK if the version is complete and was made for this network. */
int ct_network_takes(ct_network *n, ct_weights *w);

/* CT_OK, or CT_ERR_UNSUPPORTED: inputs, labels or outputs lie with the network's own weights, where
 * other frames and other weights do not bring them. what: "frames", "versions of them". */
int ct_network_parts(ct_network *n, const char *what);

/* A run of these members that is submitted with their own weights begins; has ended. */
void ct_network_begin(ct_network *n, enum ct_queue queue, uint32_t first, uint32_t count);
void ct_network_end(ct_network *n, enum ct_queue queue, uint32_t first, uint32_t count);

/* ---- ct_network_same.c ---- */

/* CT_OK if all that lasts of a network is at the same places of what lasts of the other; else
 * CT_ERR_UNSUPPORTED with a sentence that says what is not. */
int ct_network_fits(const ct_network *n, const ct_network *in);
/* It has the weights of the other from here on, before it has memory; CT_ERR_UNSUPPORTED. */
int ct_network_join(ct_network *n, ct_network *of);

/* ---- ct_network_members.c ---- */

/* A run of these members has ended well. */
void ct_network_note_run(ct_network *n, uint32_t first, uint32_t count);
/* Runs that have changed a member's weights. */
uint64_t ct_network_steps_of(const ct_network *n, uint32_t member);

/* Where a member's regions are, but for the arena, which is the first of its queue's; the selected
 * one's. */
struct ct_regions ct_network_member_at(const struct ct_network *n, uint32_t member);
struct ct_regions ct_network_own(const struct ct_network *n);

/* ---- ct_network_crowd.c ---- */

/* A member of a run of several, as its jobs need it. */
struct ct_crowd_member {
  struct ct_regions at; /* but for the arena */
  uint64_t step;
  struct ct_scalar scalar[CT_SCALARS];
};
typedef void ct_crowd_fn(const void *arg, uint32_t i, struct ct_crowd_member *member);

/* Members at constant strides that run together. */
struct ct_crowd {
  const ct_network *n; /* whose programs they have */
  const struct ct_fusion *group;
  uint32_t count;
  ct_crowd_fn *of; /* says of member i what there is to say */
  const void *arg;
  uint64_t arena; /* of the first; the others' follow */
  bool once;      /* what is made once is made */
  void *user;
  struct ct_job *job; /* NULL: they are counted */
  size_t jobs;
};
/* The jobs, in their order. */
void ct_crowd_jobs(struct ct_crowd *c);
/* All jobs, which have been counted, as one work. how: its queue, cycle, and what is called at its
 * end. */
int ct_crowd_submit(struct ct_crowd *c, const struct ct_work *how, uint64_t *tag);

/* Programs for groups of networks like this one, made when they are first asked for; without
 * stages where the device has no room for them, and of a perceptron as one stage. */
int ct_fusion_make(ct_network *n, bool common, const struct ct_fusion **group);
/* Loads what was compiled for them. CT_ERR_NO_SPACE: no room for programs. */
int ct_fusion_load(ct_network *n, struct ct_compiled *compiled, struct ct_fusion *group);
void ct_fusion_free(struct ct_fusion *group, size_t stages);

/* ---- ct_network_rank.c ---- */

/* Memory of networks of the same programs, slot by slot at constant strides: what lasts, and the
 * outputs of so many frames of each, and where they have not the same inputs (`common`) these, too.
 * Held by the networks that lie in it. */
enum { CT_RANK_FRAMES = 8 };
struct ct_rank {
  ct_device *dev;
  uint32_t slots;
  bool common;
  struct ct_regions at[CT_RANK_FRAMES]; /* of slot 0; `lasting` of the first alone */
  struct ct_until left;                 /* jobs that still use weights whose owners are gone */
  size_t refs;
};
/* Nothing of it is held yet: to be dropped, should nobody move in. CT_ERR_NO_SPACE. */
int ct_rank_create(ct_network *like, const struct ct_rank *how, uint32_t frames,
                   struct ct_rank **rank);
void ct_rank_drop(struct ct_rank *rank);
/* The same for weights in it that these jobs may still use. */
void ct_rank_leave(struct ct_rank *rank, const struct ct_until *left);

/* Brings what a network and its frames have of that to a slot. No run and no version of it may be
 * under way. */
int ct_network_move(ct_network *n, struct ct_rank *rank, uint32_t slot);
void ct_frame_move(ct_frame *f, const struct ct_rank *rank, uint32_t frame, uint32_t slot);

/* A run of networks that follow each other in a rank, each with a frame of the same number. */
struct ct_rank_run {
  ct_network *const *network;
  ct_frame *const *frame;
  uint32_t count;
  uint64_t step;
  enum ct_queue queue;
};
/* As ct_network_submit() of each, one event for all. CT_ERR_NO_SPACE: the queue never holds their
 * jobs. */
int ct_rank_submit(const struct ct_rank_run *run, uint64_t *tag);

/* ---- ct_network_kept.c ---- */

/* Pages and bounds, if something is kept compressed. */
int ct_kept_open(ct_network *n);
/* The last network of the same programs is gone. */
void ct_kept_leave(ct_device *dev, struct ct_shared *shared);
/* A run in that queue begins; it has been submitted; how one has ended. */
int ct_kept_begin(ct_network *n, enum ct_queue queue);
void ct_kept_submitted(ct_network *n, uint64_t step);
void ct_kept_ended(ct_network *n, int error, uint32_t code);
/* A forward pass alone has ended, or not, which frees no page. */
void ct_kept_leaks(ct_network *n);
/* All bounds that follow gradients become larger by so many powers of two. False: none can. */
bool ct_kept_widen(ct_network *n, unsigned by);
/* The network is gone. */
void ct_kept_forget(ct_network *n);
/* Whether run `step` has the stages that look at gradients. */
bool ct_kept_looks(const ct_network *n, uint64_t step);
/* What a run that looked has seen becomes the bounds of the next, if one has looked. After an error
 * it is looked at again when the next begins. */
int ct_kept_look(ct_network *n);
/* How long groups are becomes what it was in the last run, if that has ended, and nobody has asked
 * since: then true. */
bool ct_kept_measured(ct_network *n);
/* Bytes of what a stage reads and writes, by that. */
void ct_kept_bytes(const ct_network *n, const struct ct_stage *stage, uint64_t *read,
                   uint64_t *written);
/* Bounds are those of all runs that have ended, of a network of which none is under way. An error
 * as when it runs. */
int ct_kept_settle(ct_network *n);
/* The same before the host changes what runs have left: the next run tells of an error. */
void ct_kept_hear(ct_network *n);
/* Bounds begin anew, whatever runs so far have seen. */
void ct_kept_anew(ct_network *n);
/* The bound of what a stage stores, as its jobs get it. */
void ct_kept_arguments(const ct_network *n, const struct ct_stage *stage, struct ct_job *job);

/* ---- ct_network_try.c ---- */

/* Before a run that sees these numbers: bounds for which the pages are enough, if they were only
 * guessed. */
int ct_network_try(ct_network *n, enum ct_queue queue, const struct ct_regions *at, uint64_t step);

/* ---- ct_network_expect.c ---- */

/* This device, when it does nothing else. */
struct ct_cycles_core ct_network_core(const ct_network *n);
/* What a stage should take, as long as the stages from it on have their programs; how long the
 * device has been busy with the one before goes in and out. */
int ct_expect_stage(ct_network *n, size_t stage, uint64_t *ahead);
/* Of a run of all members, while the programs are there. */
int ct_expect_members(ct_network *n);
/* Keeps the programs, if that changes with what runs leave behind; made again then. */
int ct_expect_keep(ct_network *n);
void ct_expect_again(ct_network *n);
void ct_expect_free(struct ct_shared *shared);

/* ---- ct_network_frame.c ---- */

/* Whether runs make it: an output. Else it is an input or a label. */
bool ct_network_makes(const ct_network *n, const struct ct_external *x);

/* A frame of which only outputs have places of their own, unless it is to be whole. Those of inputs
 * and labels are lent to it, while no run is under way: they are made for networks of the same
 * programs. */
int ct_frame_make(ct_network *n, bool whole, ct_frame **frame);
/* In memory that is all zeros: one of which all is in one piece, in the order of its externals.
 * What begins with it goes with its last reference, which the first one here is; after a failure it
 * is the caller's as before. */
int ct_frame_open(ct_network *n, ct_frame *f);
void ct_frame_release(ct_frame *f);
/* CT_OK, or CT_ERR_BUSY. what: of it, such as "batch"; how: such as "written". */
int ct_frame_idle(const ct_frame *f, const char *what, const char *how);
int ct_inputs_make(ct_network *n, struct ct_regions *at);
void ct_inputs_free(ct_device *dev, struct ct_regions *at);
void ct_frame_lend(ct_frame *f, const struct ct_regions *at);

/* CT_OK if a run of the network can have the frame; it is under way; it has ended, and then its
 * reference is released, or both at once. */
int ct_frame_check(ct_network *n, ct_frame *f);
void ct_frame_take(ct_frame *f);
void ct_frame_ended(ct_frame *f, int error);
void ct_frame_drop(ct_frame *f, int error);

/* ---- ct_network_batches.c ---- */

/* CT_OK if the device's batcher takes the network; CT_ERR_UNSUPPORTED. */
int ct_network_batched(ct_network *n);
/* The version that is to be served: the one given, if it is complete and for this network, or a new
 * one of its own weights as they are now (*own), whose handle is the caller's to free. */
int ct_network_version(ct_network *n, ct_weights **weights, bool *own);

/* ---- ct_network_copies.c ---- */

/* The programs that copy what `to` wants of `from`, in to->copies: made, unless they are there from
 * the last time. */
int ct_copies_make(ct_network *from, ct_network *to);
void ct_copies_free(struct ct_copies *c);

#endif
