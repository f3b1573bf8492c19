/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks on a device: a graph of coltrain/graph.h, compiled and run.
 *
 *  Introduction
 *
 *    ct_graph *g;
 *    ct_network *net;
 *    ct_graph_create(&g);
 *    ct_graph_builtin(g, "lenet5", 16, false);
 *    ct_graph_check(g);
 *    if (ct_network_create(dev, g, NULL, &net) == 0) {
 *      ct_network_draw(net, 1);                          weights from a seed
 *      ct_network_write(net, ct_graph_find(g, "x"), images, 16 * 28 * 28);
 *      ct_network_run(net, CT_INFERENCE, 0);
 *      ct_network_read(net, ct_graph_find(g, "logits"), answers, 16 * 10);
 *      ct_network_free(net);
 *    }
 *
 *  A graph with gradients and updates is trained by the same calls: write inputs and labels, run,
 *  again. Weights stay on the device from run to run.
 *
 *  Conventions
 *
 *  Those of coltrain/coltrain.h hold. Tensors are named by the numbers that they have in the graph;
 *  their elements are in the graph's order, row-major. docs/graph.md says what runs on a device.
 */
#ifndef COLTRAIN_NETWORK_H
#define COLTRAIN_NETWORK_H

#include "coltrain/coltrain.h"
#include "coltrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Networks on a device ---------------------------------------------------------------- */

/* A graph on a device. */
typedef struct ct_network ct_network;

/* Whether there are kernels for an operator of that name. Any thread. */
bool ct_network_has(const char *op);

/* Whether a bit a number says what ReLUs let through, beside what is kept compressed, so that what
 * compressing loses changes none of that (docs/compression.md). */
enum ct_masks {
  CT_MASKS_DEFAULT, /* as `like` has them, if that keeps something compressed, or the file; else
                       CT_MASKS_STORED with an error above 0, CT_MASKS_OFF without */
  CT_MASKS_ON,      /* of all results of ReLUs */
  CT_MASKS_OFF,   /* less memory, fewer cycles; with errors as large as 0.1 answers become worse */
  CT_MASKS_STORED /* of those that are kept themselves, where errors have one sign; not of those
                     that are made again of what a normalisation reads, say */
};

/* How a graph is compiled; NULL and zeros are the defaults. */
struct ct_network_options {
  bool expect;       /* compute what each stage should take: ct_network_stage.expected */
  bool kernels;      /* a perceptron by kernels, too: slower; steps round by rows (docs/graph.md) */
  uint32_t mantissa; /* bits of the mantissas of HBFP in products: 2..8; 0: 8 */
  uint64_t seed;     /* of dropout, as in struct ct_reference */
  ct_network *like;  /* one on the same device whose programs it has, too, where they would be the
                        same: graphs that differ in schedules and attributes of updates alone.
                        Then they are neither made nor kept again. NULL: none */
  uint32_t members;  /* networks of this graph, up to 256: struct ct_members; 0: 1 */
  bool shared;       /* inputs and labels are those of all members */
  enum ct_masks masks;
  uint32_t bits;    /* of a number that is kept compressed, for which there are pages. 12 always
                       suffice; 0: these if nothing is lost, else as many as `error` is likely to
                       take. With `like`: those of that one */
  uint32_t refresh; /* steps from one look at gradients to the next, by which bounds of what is kept
                       compressed are set (docs/compression.md); 0: 50 */
  double error; /* what that may cost, as a part of the momentum: 0.01, say; 0: nothing is lost */
  /* One on the same device in whose memory its weights and states are, too: the same bits without
   * copies, at every moment. Each of its own has to be there, by name and shape, and to lie as its
   * programs want it: so it is with a perceptron's steps and answers as one stage, which are steps
   * by SGD and answers of 1 to 64 rows. By kernels steps have more beside their weights, and share
   * them with nobody. It writes no weights; those of the other may be freed, and they stay as long
   * as somebody has them. NULL: none */
  ct_network *weights_of;
  uintptr_t reserved[1]; /* 0 */
};

/* Compiles a checked graph for a device, finds room for its tensors and loads its programs. The
 * graph is copied. Weights and states are zeros until they are written or drawn. *network is NULL
 * on failure: CT_ERR_UNSUPPORTED names the nodes that the device cannot run, and why;
 * CT_ERR_NO_SPACE, CT_ERR_MEMORY; CT_ERR_BUSY: activations are to be kept compressed, and another
 * network on the device has the pages for that. */
int ct_network_create(ct_device *dev, const ct_graph *graph,
                      const struct ct_network_options *options, ct_network **network);
void ct_network_free(ct_network *network);

/* The network's own graph, checked: for asking what there is. Valid until it is freed. NULL without
 * a network. */
ct_graph *ct_network_graph(ct_network *network);

/* Weights and states from a seed, as the graph says each begins: the same on every device. */
int ct_network_draw(ct_network *network, uint64_t seed);

/* ---- Tensors of a network ---------------------------------------------------------------- */

/* The elements of a tensor to the device and back: inputs, labels, weights and states can be
 * written; what lasts and what the graph gives can be read. Products take operands in HBFP8, so
 * what was written is rounded for them; weights come back as they are in FP32 where they are
 * trained, else as the products see them. What nothing reads that is run has no place: writing it
 * does nothing. CT_ERR_ARG: there is nothing to read, count is not the number of elements, or a
 * weight has NaN among its values: the sentence names its node.
 * CT_ERR_BUSY: weights and states are not read while runs under way change them, and not written
 * while any use them; inputs, labels and outputs not while a run has them. */
int ct_network_write(ct_network *network, int tensor, const float *data, size_t count);
int ct_network_read(ct_network *network, int tensor, float *data, size_t count);

/* ---- Runs of a network ------------------------------------------------------------------- */

/* Runs the network once and waits for its end, and before that for room in the queue. step is
 * counted from 0: schedules and Adam go by it, and where gradients accumulate it counts runs
 * (struct ct_optimise); one that failed may have added its gradient: go on with a step's first.
 * CT_ERR_JOB, CT_ERR_TIMEOUT; CT_ERR_BUSY while it is still under way; as ct_network_submit(). */
int ct_network_run(ct_network *network, enum ct_queue queue, uint64_t step);

/* A frame: places in device memory for the inputs, labels and outputs of a run. The network has one
 * of its own, which ct_network_write() and ct_network_read() mean; for several runs under way at
 * once each needs one. It may be freed before or after the network, and its memory goes when no run
 * uses it any more. *frame is NULL on failure: CT_ERR_NO_SPACE, CT_ERR_MEMORY; CT_ERR_UNSUPPORTED:
 * the network has more than 12 inputs, labels and outputs, and runs with its own frame and weights
 * alone. */
typedef struct ct_frame ct_frame;
int ct_frame_create(ct_network *network, ct_frame **frame);
void ct_frame_free(ct_frame *frame);

/* The network that it is of; NULL without a frame, or when that has been freed. */
ct_network *ct_frame_network(const ct_frame *frame);

/* As ct_network_write() and ct_network_read(), of a frame's inputs and labels, and of its outputs.
 * CT_ERR_BUSY: a run with the frame is under way. An output of a run that failed: its error; before
 * the first run: CT_ERR_ARG. */
int ct_frame_write(ct_frame *frame, int tensor, const float *data, size_t count);
int ct_frame_read(ct_frame *frame, int tensor, float *data, size_t count);

/* A run that is submitted. The structure is copied. */
struct ct_run {
  ct_frame *frame;     /* NULL: the network's own */
  ct_weights *weights; /* of ct_network_publish_submit() or ct_network_load_weights() for this
                          network, or for one that has the same (struct ct_network_options) and is
                          still there; NULL: its own */
  enum ct_queue queue;
  uint64_t step;         /* counted from 0 */
  uint64_t cycle;        /* when it begins by the device's clock; 0, or past: at once */
  void *user;            /* comes back in the event */
  uintptr_t reserved[4]; /* 0 */
};

/* Submits a run and returns at once: one CT_EVENT_RUN, however many jobs it takes; after a failure
 * its other jobs do not run. (Where activations are kept compressed it waits for a run that looks
 * at gradients, and in front of a first run, or behind one that found the pages full, for forward
 * passes that find bounds: CT_ERR_TIMEOUT, CT_ERR_DEVICE. See docs/compression.md.) A run of the
 * training queue gives way to inference between any two operations. CT_ERR_FULL: nothing was
 * submitted. CT_ERR_NO_SPACE: it takes more jobs than the queue holds. CT_ERR_BUSY: the frame's run
 * before is under way, the weights are not complete, or runs of the other queue use the network's
 * own weights and one of the two changes them: publish a version to be read beside training. Of a
 * network with dropout, whose runs share their masks, any run before is under way: wait for it.
 * CT_ERR_ARG: the weights are not for this network, or they are given to one whose runs change its
 * own, or that has dropout. CT_ERR_UNSUPPORTED: to one that has no frames. */
int ct_network_submit(ct_network *network, const struct ct_run *run, uint64_t *tag);

/* ---- Members ------------------------------------------------------------------------------ */

/* A network may have several members: networks of one graph, each with its own weights, states,
 * inputs, labels and outputs (or with inputs and labels in common), which train in the same jobs: a
 * kernel's job does the work of all, and what one waits for another makes good. Each has the bits
 * that it would have alone (a perceptron by kernels: struct ct_network_options). Memory grows with
 * their number; what is needed for a while in a run is there for eight of them.
 *
 * Every other call means the member that was selected last, first member 0: it is a network like
 * any other then, which can be written, drawn, read, run, published and saved. But members have no
 * frames and take no versions of weights: ct_frame_create() and a run that is given one fail with
 * CT_ERR_UNSUPPORTED. CT_ERR_ARG: there is no such member. */
int ct_network_select(ct_network *network, uint32_t member);

/* A run of the members [first, first + count). The structure is copied. */
struct ct_members {
  uint32_t first, count;
  enum ct_queue queue;
  uint64_t step;         /* counted from 0 */
  const uint64_t *steps; /* of each of these members; NULL: step. Where gradients accumulate all are
                            as far in their step */
  const struct ct_schedule *schedules; /* of each; NULL: those of `updates` */
  uint64_t cycle;                      /* when it begins: as in struct ct_run */
  void *user;                          /* comes back in the event */
  const struct ct_optimise *updates; /* of each: schedule, momentum, weight decay (0 if the graph's
                                        weights do not decay, else above), Adam's betas and epsilon
                                        in place of the graph's; what else it says is not looked at.
                                        NULL: the graph's */
  uintptr_t reserved[3];             /* 0 */
};

/* As ct_network_run() and ct_network_submit(). One that is submitted is one CT_EVENT_RUN, so its
 * jobs must fit the queue together; CT_ERR_BUSY while a run of some of its members is under way,
 * but others may be. A failure may have changed some members and not others: in
 * which order their jobs run is not said. CT_ERR_ARG: there are not so many members, a number is
 * none that ct_graph_optimise() would take, or weights decay in one of member and graph and not in
 * the other. CT_ERR_UNSUPPORTED: updates are given, but the graph has more than ten numbers of a
 * run, which are constants of its programs then; or the network keeps activations compressed. */
int ct_network_run_members(ct_network *network, const struct ct_members *run);
int ct_network_submit_members(ct_network *network, const struct ct_members *run, uint64_t *tag);

/* ---- Weights of a network ---------------------------------------------------------------- */

/* Makes a version of the weights and states of `from`, as they are after the runs submitted to the
 * training queue before, for runs of `to` on the same device: a network that has weights and states
 * of the same names and shapes, such as the one for inference of what `from` trains; or `from`
 * itself. Works and returns as ct_model_publish_submit(): a job of the training queue,
 * CT_EVENT_PUBLISH, and ct_weights_info(), ct_weights_read() and ct_weights_free() take what it
 * makes. CT_ERR_UNSUPPORTED names a tensor that `from` lacks, or keeps in another way. CT_ERR_ARG:
 * the two are on different devices, have different mantissas, or there is nothing to copy.
 * CT_ERR_BUSY: a version that a network of another kind makes for `to` is not complete, or runs of
 * the inference queue change the weights of `from`, or one that failed is still under way. */
int ct_network_publish_submit(ct_network *from, ct_network *to, void *user, ct_weights **weights,
                              uint64_t *tag);

/* A version of what ct_weights_read() gave for a network of the same graph and mantissas, on any
 * device; size is exactly ct_network_info.weights_bytes. *weights is NULL on failure: CT_ERR_ARG,
 * CT_ERR_NO_SPACE, CT_ERR_MEMORY. */
int ct_network_load_weights(ct_network *network, const void *data, size_t size,
                            ct_weights **weights);

/* ---- Networks in the device's batches ----------------------------------------------------- */

/* A server of a network that is a perceptron (docs/graph.md): the device makes batches of its
 * requests, as of a model's. Works and returns as ct_server_create(); ct_server_push() and all
 * other calls of servers take what it makes. weights: a version that was made for the network;
 * NULL: its own as they are now, whatever becomes of them. A request is one row, however many rows
 * a run has. The server ends with the network. CT_ERR_UNSUPPORTED: the network is no perceptron, or
 * the device makes no batches; CT_ERR_ARG: the weights are for something else; CT_ERR_BUSY: runs
 * under way change its own. */
int ct_network_server_create(ct_network *network, ct_weights *weights,
                             const struct ct_serving *serving, ct_server **server);

/* Rows of inputs and places for answers of its requests: as ct_rows_create() and
 * ct_answers_create(), and good for each other's models and networks. CT_ERR_UNSUPPORTED: the
 * network is no perceptron. */
int ct_network_rows_create(ct_network *network, size_t count, ct_rows **rows);
int ct_network_answers_create(ct_network *network, size_t count, ct_answers **answers);

/* ---- Files of networks ------------------------------------------------------------------- */

/* Writes graph, weights, states and how far training has come to a file (docs/model-format.md,
 * format 2), from which training goes on bit by bit; of what is kept compressed settings and
 * bounds, too. It is replaced as ct_model_save() does it. CT_ERR_IO, CT_ERR_MEMORY; CT_ERR_BUSY
 * while runs that change its weights are under way. */
int ct_network_save(ct_network *network, const char *path);

/* A network from a file, on any device; one that ct_model_save() wrote (format 1) is that of its
 * steps, or of answers to one row where it was never prepared for any. options NULL, or mantissa or
 * seed 0: those that it had; it is by kernels if it was, or if that is asked for. All members begin
 * with what the file has. What is kept compressed goes on with the settings and bounds of the file:
 * error, refresh and bits 0 mean these. CT_ERR_ARG: another error or refresh, masks that it does
 * not have, bounds for other tensors than the network keeps. Where a file has no bounds, as those
 * of older releases, they begin anew with the options. *network is NULL on failure:
 * CT_ERR_NOT_FOUND, CT_ERR_PERMISSION, CT_ERR_IO, CT_ERR_FORMAT (the sentence names file and
 * reason), and as ct_network_create(). */
int ct_network_load(ct_device *dev, const char *path, const struct ct_network_options *options,
                    ct_network **network);

/* Weights, states and how far training has come from a file into the network, or its selected
 * member. The file's graph may differ in schedules and attributes of updates alone; the network's
 * hold. CT_ERR_ARG: it is of another one, or what is kept compressed is kept otherwise; CT_ERR_BUSY
 * while runs with the network's own weights are under way; CT_ERR_UNSUPPORTED: the weights are
 * another one's, or the network is a member of an array, which counts its runs itself
 * (ct_array_join() of the file). Errors of files as ct_network_load(). After any of these nothing
 * has changed; only where the device fails meanwhile part of the file may be there. */
int ct_network_restore(ct_network *network, const char *path);

/* What is known of a network. */
struct ct_network_info {
  uint64_t seed;            /* that its weights were drawn from last; 0: they were not */
  uint64_t steps;           /* runs that have changed its own weights or states */
  uint64_t epochs;          /* as set by ct_network_set_epochs() */
  uint64_t weights_bytes;   /* of ct_weights_read() and ct_network_load_weights() */
  uint32_t mantissa;        /* bits, 2..8 */
  uint32_t jobs;            /* most that a run takes, but for stages that run only once */
  bool changes;             /* its runs change its weights */
  uint32_t accumulate;      /* runs that make a step: struct ct_optimise; else 1 */
  uint32_t inputs, classes; /* of a perceptron that ct_network_server_create() takes; else 0 */
  uint64_t run_bytes;       /* device memory for what a run makes and needs for a while; of members
                               of an array that have run in the same jobs for eight of them, too,
                               in each queue in which they have */
  uint32_t together;        /* networks that have its programs, itself among them: see `like` */
  uint32_t members;     /* networks of this graph that it is; facts are those of the selected one */
  uint64_t frame_bytes; /* device memory for inputs, labels and outputs: of a frame */
  uint64_t pages;       /* bytes of device memory for what is kept compressed ... */
  uint64_t pages_most;  /* ... and how much of it was in use at a time at most, so far */
  double error;         /* how that is done, as in struct ct_network_options; 0 if nothing is kept
                           so, as all below */
  uint32_t refresh, bits;
  enum ct_masks masks;
  bool continued;   /* its bounds are those of its file, or came of them */
  uint64_t pressed; /* looks at gradients behind the first 20 steps, and runs that failed, for which
                       there were too few pages: bounds are larger than `error` wants */
};

/* Copies what is known to *info. */
int ct_network_info(const ct_network *network, struct ct_network_info *info);

/* Notes how many epochs the network has been trained, for its file. NULL is ignored. */
void ct_network_set_epochs(ct_network *network, uint64_t epochs);

/* A kernel of the network, in the order in which they run. */
struct ct_network_stage {
  const char *node, *op;  /* of the graph; what the kernel does. Valid as long as the network */
  bool backward;          /* it belongs to gradients or updates */
  bool once;              /* run again only when weights have been written */
  uint32_t jobs;          /* that it takes */
  uint64_t macs;          /* multiply-accumulates that the operator has */
  uint64_t read, written; /* bytes of its tensors */
  uint64_t rows;          /* of 16 x 16 multiply-accumulates that the array took, last run */
  uint64_t cycles;        /* that the last run took; CT_NO_CYCLE: not known, or not part of that */
  uint64_t expected;      /* cycles that its programs should take; CT_NO_CYCLE: not known; 0: it is
                             part of no run. Of what is compressed the size is not known before it
                             is there: groups are taken to be as long as there are pages for */
  const char *bound;      /* what it waits for most: "array", "memory", ...; "" : not known */
  uint64_t commands;      /* of its programs */
  uint32_t runs;          /* of so many it is part of the last: updates where gradients accumulate;
                             1: of each */
  uint64_t beside;  /* cycles more that its jobs can take beside training (PRIORITY, a memory of
                       16 bytes a cycle); CT_NO_CYCLE: not known */
  uint32_t round;   /* members that a pass of its loop takes; 0: they run one after the other */
  uint64_t busy;    /* cycles of the expected ones in which the unit works that works most */
  const char *unit; /* that unit: "array", "reads", "writes", "VL", "VA", "VS"; "": not known */
  /* The same of a run of all members, in the same jobs where that is faster; `round` says where.
   * With one member it is what is above. */
  uint64_t all_expected, all_busy;
  const char *all_bound, *all_unit;
};

/* How many stages there are; copies the facts of one. CT_ERR_NOT_FOUND beyond the last. */
size_t ct_network_stages(const ct_network *network);
int ct_network_stage(ct_network *network, size_t index, struct ct_network_stage *stage);

/* ---- What is kept compressed --------------------------------------------------------------- */

/* A tensor of the graph that is kept compressed (CT_FORMAT_COMPRESSED) from forward to backward. */
struct ct_network_kept {
  const char *tensor; /* its name, or the node's that makes it; valid as long as the network */
  uint64_t values;    /* numbers of the tensor */
  uint64_t bytes;     /* that they took in the last run, index and all; 0: none has ended well */
  uint32_t bound;     /* K: a number is kept to within 2^(K - 134); 0: exactly */
  bool exact;         /* whole numbers, such as the mask of a ReLU: the bound stays 0 ... */
  bool beside;        /* ... that stand beside a tensor that is kept: none of their own are saved */
  uint64_t padded;    /* numbers with the padding to whole tiles, which is compressed with them */
  uintptr_t reserved[3];
};

/* Copies the facts of one. CT_ERR_NOT_FOUND beyond the last; CT_ERR_BUSY while a run of the network
 * is under way. */
int ct_network_kept(ct_network *network, size_t index, struct ct_network_kept *kept);

/* Sets its K, 0 to 254, for runs from now on; with struct ct_network_options.error until the next
 * look at gradients. CT_ERR_ARG: such as above 0 for what is kept exactly; CT_ERR_NOT_FOUND. */
int ct_network_keep_within(ct_network *network, size_t index, uint32_t bound);

#ifdef __cplusplus
}
#endif

#endif
