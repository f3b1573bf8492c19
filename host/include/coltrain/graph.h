/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks as graphs: operators, shapes, gradients and a reference in double precision. No device
 * is needed.
 *
 *  Introduction
 *
 *  A graph has tensors and nodes. A node applies an operator to tensors and makes others. Calls
 *  that make a tensor return its number, 1 or more; a failed call returns a negative ct_error, and
 *  a call that is given such a number returns it again and leaves the sentence about it. So a
 *  network can be written down without a check in each line:
 *
 *    ct_graph *g;
 *    if (ct_graph_create(&g) == 0) {
 *      int x = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = {2, {32, 784}}});
 *      int w = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "w", .role = CT_ROLE_WEIGHT,
 *                                                     .shape = {2, {10, 784}}});
 *      int y = ct_graph_add(g, &(struct ct_new_node){.op = "linear", .name = "fc",
 *                                                .inputs = (int[]){x, w}, .input_count = 2});
 *      if (ct_graph_result(g, y) < 0 || ct_graph_check(g) < 0) puts(ct_graph_error(g));
 *      ct_graph_free(g);
 *    }
 *
 *  docs/graph.md has the operators, their inputs and attributes.
 *
 *  Conventions
 *
 *  Those of coltrain/coltrain.h hold. What differs: a graph has no device, so the sentence about a
 *  failed call is in the graph, ct_graph_error(); it names the node. A graph is used by one thread
 *  at a time, different graphs by different threads at once. The graph copies names, shapes and
 *  attributes that are passed in. Texts that it gives are valid until it is freed.
 */
#ifndef COLTRAIN_GRAPH_H
#define COLTRAIN_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Graphs -------------------------------------------------------------------------------- */

/* A network being described, or described. */
typedef struct ct_graph ct_graph;

/* An empty graph. *graph is NULL on failure: CT_ERR_MEMORY. */
int ct_graph_create(ct_graph **graph);
void ct_graph_free(ct_graph *graph);

/* A sentence about the last call that failed on this graph; "" if none did. Valid until the next
 * call with the graph. */
const char *ct_graph_error(const ct_graph *graph);

/* ---- Tensors ------------------------------------------------------------------------------- */

/* The most dimensions of a tensor, the largest of them, and the most elements; a graph has at most
 * so many nodes. */
#define CT_GRAPH_DIMS 4
#define CT_GRAPH_MOST_DIM 16777216
#define CT_GRAPH_MOST_ELEMENTS 17179869184
#define CT_GRAPH_MOST_NODES 65536

/* Dimensions, the batch first. Images are NHWC: batch, height, width, channels; in the device the
 * channels lie in blocks of 16. Tensors are row-major: the last dimension is contiguous. A scalar
 * is {1, {1}}. */
struct ct_shape {
  uint32_t dims; /* 1..CT_GRAPH_DIMS; 0: not known yet */
  uint32_t dim[CT_GRAPH_DIMS];
};

/* How the device keeps a tensor. The reference computes in double precision whatever it is. */
enum ct_format {
  CT_FORMAT_FP32,
  CT_FORMAT_HBFP8,
  CT_FORMAT_HBFP6,
  CT_FORMAT_HBFP4,
  CT_FORMAT_RECOMPUTE, /* HBFP8, and not kept for gradients where it can be made again from what is
                          kept: element-wise operators and pooling */
  CT_FORMAT_COMPRESSED /* HBFP8, and kept for gradients compressed (docs/compression.md), each
                          number within a bound: struct ct_network_options.error */
};

/* What a tensor is for. Inputs, labels, weights and states come from outside; the others are made
 * by nodes. A state is what lasts from one run to the next and has no gradient: statistics,
 * momentum. */
enum ct_role {
  CT_ROLE_INPUT,
  CT_ROLE_LABEL,
  CT_ROLE_WEIGHT,
  CT_ROLE_STATE,
  CT_ROLE_ACTIVATION,
  CT_ROLE_GRADIENT,
  CT_ROLE_OUTPUT
};

/* What a weight or state begins with. HE: uniform in +-sqrt(6 / n), n the product of all dimensions
 * but the first. */
enum ct_initial { CT_INITIAL_ZEROS, CT_INITIAL_ONES, CT_INITIAL_HE };

/* A tensor. Its name is unique; NULL: made up. One of role CT_ROLE_ACTIVATION may be declared
 * before the node that makes it; its shape, if it has one, is then compared. */
struct ct_new_tensor {
  const char *name;
  struct ct_shape shape;
  enum ct_format format;
  enum ct_role role;
  enum ct_initial initial;
  uintptr_t reserved[2]; /* 0 */
};

/* Declares a tensor and returns its number. */
int ct_graph_tensor(ct_graph *graph, const struct ct_new_tensor *tensor);

/* Makes what a node makes an output of the graph: its role becomes CT_ROLE_OUTPUT. Returns it. */
int ct_graph_result(ct_graph *graph, int tensor);

/* Says how the device is to keep a tensor. Returns it. Who reads it reads the rounded numbers, but
 * for operators that join the kernel which makes it. What lasts from run to run, gradients of
 * weights, outputs, and what an operator needs in FP32 (the gradient of max_pool, softmax, what
 * changes the order of elements) stay FP32. */
int ct_graph_set_format(ct_graph *graph, int tensor, enum ct_format format);

/* The same of all tensors of a role, CT_ROLE_ACTIVATION or CT_ROLE_GRADIENT: those with rows of
 * their own for what is in a batch. Of gradients those of such activations. Call it when all nodes
 * are there, ct_graph_optimise() included. How many tensors there are. */
int ct_graph_keep(ct_graph *graph, enum ct_role role, enum ct_format format);

/* Says that a weight or state has the value of another tensor of its shape after a run. Each has at
 * most one such tensor. */
int ct_graph_becomes(ct_graph *graph, int state, int value);

/* The number of the tensor of this name, or CT_ERR_NOT_FOUND. */
int ct_graph_find(ct_graph *graph, const char *name);

/* What is known of a tensor. */
struct ct_tensor_info {
  const char *name;
  struct ct_shape shape;
  enum ct_format format;
  enum ct_role role;
  enum ct_initial initial;
  int node;          /* that makes it, counted from 0 in the order of the calls; -1: none */
  int gradient;      /* the tensor that is its gradient; 0: none */
  int becomes;       /* the tensor whose value it has after a run; 0: it stays */
  uint64_t elements; /* 0: not known yet */
  uintptr_t reserved[4];
};

/* Copies what is known of a tensor to *info. */
int ct_graph_tensor_info(ct_graph *graph, int tensor, struct ct_tensor_info *info);

/* ---- Nodes --------------------------------------------------------------------------------- */

/* An attribute of a node: up to four numbers. */
struct ct_attr {
  const char *name;
  uint32_t count;
  double value[4];
};

/* A node. Inputs are numbers of tensors, 0 for one that is left out. outputs: NULL, or tensors that
 * were declared before, as many as the operator makes. The name is for people and for the tensors
 * that it makes; NULL: made up. */
struct ct_new_node {
  const char *op, *name;
  const int *inputs;
  size_t input_count;
  const int *outputs;
  const struct ct_attr *attrs;
  size_t attr_count;
  uintptr_t reserved[2]; /* 0 */
};

/* Adds a node and returns the number of the first tensor that it makes; the others have the numbers
 * that follow, unless they were declared before. Shapes are inferred at once where they can be. */
int ct_graph_add(ct_graph *graph, const struct ct_new_node *node);

/* Has a node, counted from 0 in the order of the calls, read another tensor of the same shape as
 * one of its inputs, counted from 0. So gradients can be made of something else than what they are
 * the gradients of, such as what a program has rounded. Returns the tensor. */
int ct_graph_reads(ct_graph *graph, size_t node, size_t input, int tensor);

/* The name of an operator, NULL beyond the last. Any thread. */
const char *ct_graph_op_name(size_t index);

/* The name of an attribute of an operator, NULL beyond its last and for an operator that does not
 * exist. Any thread. */
const char *ct_graph_op_attr(const char *op, size_t index);

/* What is known of a node. */
struct ct_node_info {
  const char *op, *name;
  const int *inputs, *outputs;
  uint32_t input_count, output_count;
  uint64_t macs; /* multiply-accumulates of its products; 0 for what has none */
  bool backward; /* made by ct_graph_gradients() or ct_graph_optimise() */
  uintptr_t reserved[4];
};

/* Copies what is known of a node, counted from 0 in the order of the calls. */
int ct_graph_node_info(ct_graph *graph, size_t index, struct ct_node_info *info);

/* An attribute of a node as it is used, with what was left out. CT_ERR_NOT_FOUND. */
int ct_graph_node_attr(ct_graph *graph, size_t index, const char *name, struct ct_attr *attr);

/* ---- Whole graphs -------------------------------------------------------------------------- */

/* What is known of a graph. */
struct ct_graph_info {
  size_t nodes, tensors;
  uint64_t weights, states; /* their elements */
  uint64_t macs;            /* of all nodes */
  bool checked;
  uintptr_t reserved[4];
};

/* Copies what is known of a graph to *info. */
int ct_graph_info(ct_graph *graph, struct ct_graph_info *info);

/* Multiply-accumulates of all nodes; 0 for those whose shapes are not known. */
uint64_t ct_graph_macs(const ct_graph *graph);

/* Infers what shapes are missing and looks for what is wrong: cycles, tensors that nothing makes,
 * shapes that do not fit. After that the graph cannot be changed. A graph that is refused can. */
int ct_graph_check(ct_graph *graph);

/* The order in which nodes can run: copies up to count node numbers to order (may be NULL with
 * count 0) and returns how many there are. Of those that could run, the one that was added first
 * does. CT_ERR_ARG for a cycle. */
int ct_graph_order(ct_graph *graph, uint32_t *order, size_t count);

/* Adds nodes that compute the gradients of loss, a scalar, by the tensors wanted (NULL: all
 * weights). What a tensor that is used several times gets is summed. Once for a graph. */
int ct_graph_gradients(ct_graph *graph, int loss, const int *wanted, size_t count);

/* The tensor that is the gradient of another, 0 if it has none. */
int ct_graph_gradient(ct_graph *graph, int tensor);

/* Replaces every batch normalisation by running statistics ("batch_norm") whose input only it uses
 * and a convolution or linear layer makes: the layer gets weights and bias that contain it, made by
 * nodes "batch_norm_fold". Returns how many were replaced. */
int ct_graph_fold(ct_graph *graph);

/* ---- Training ------------------------------------------------------------------------------ */

/* Learning rates by the number of the step, from 0 on. A warm-up of n steps multiplies the rate of
 * step s < n by (s + 1) / n; then, t = s - n:
 *   CT_SCHEDULE_CONSTANT  rate
 *   CT_SCHEDULE_STEP      rate * factor ^ floor(t / period)
 *   CT_SCHEDULE_COSINE    floor + (rate - floor) * (1 + cos(pi * min(t, period) / period)) / 2 */
enum ct_schedule_kind { CT_SCHEDULE_CONSTANT, CT_SCHEDULE_STEP, CT_SCHEDULE_COSINE };
struct ct_schedule {
  double rate; /* 0..1000 */
  enum ct_schedule_kind kind;
  uint32_t warmup, period; /* steps; a period of at least 1 where it is used */
  double factor;           /* 0..1 */
  double floor;            /* 0..rate */
};

/* The rate of a step. Any thread. */
double ct_schedule_rate(const struct ct_schedule *schedule, uint64_t step);

/* SGD with momentum: v' = momentum v + g + decay w, w' = w - rate v'. Adam: m' = b1 m + (1 - b1) g,
 * v' = b2 v + (1 - b2) g^2, w' = w - rate (m' / (1 - b1^t)) / (sqrt(v' / (1 - b2^t)) + epsilon), t
 * the step counted from 1, with decay w added to g; AdamW: w' has rate decay w less instead. */
enum ct_optimiser { CT_OPTIMISER_SGD, CT_OPTIMISER_ADAM, CT_OPTIMISER_ADAMW };

/* How a graph is trained; zeros are the defaults where a default is named. */
struct ct_optimise {
  enum ct_optimiser optimiser;
  struct ct_schedule schedule;
  double momentum, weight_decay; /* 0..1; weights of one dimension (biases, scales) do not decay */
  double beta1, beta2, epsilon;  /* of Adam: 0 for 0.9, 0.999, 1e-8 */
  double clip; /* most that the norm of all gradients may be: all are scaled down to that; 0: any */
  uint32_t accumulate;   /* runs that make a step, up to CT_MOST_ACCUMULATED; 0: 1 */
  uintptr_t reserved[3]; /* 0 */
};

/* Accumulation of gradients over so many runs, each with a batch of its own: the mean of their
 * gradients is what one run with all rows would have, but for its rounding, for batch normalisation
 * (whose statistics are those of each run's batch; running ones follow in each run) and for
 * dropout (each run has its own masks). Runs are counted from 0, as in struct ct_run; n of them are
 * a step, so run r belongs to step r / n, by which schedules and Adam go, and weights change in the
 * runs with r % n = n - 1 alone. Clipping takes the mean. It is a state of the graph,
 * NAME.gradient, that the first run of a step begins anew, whatever it holds. A loss is that
 * of the run's rows: that of a step is the mean over its runs. */
#define CT_MOST_ACCUMULATED 65536

/* Adds gradients of loss by all weights, and nodes that update these; momentum and the like are
 * states of the graph, NAME.momentum, NAME.mean and NAME.square. Fixes CT_ERR_ARG for a graph that
 * has gradients. */
int ct_graph_optimise(ct_graph *graph, int loss, const struct ct_optimise *how);

/* Describes in an empty graph what answers take of a graph that is trained: the nodes in front of
 * its tensor `output`, for so many rows, inputs included. Normalisation by the batch becomes that
 * by running statistics, dropout is left out. Weights and states keep their names, so what one
 * network has learnt another may serve. CT_ERR_ARG: gradients or updates make the tensor. */
int ct_graph_answers(ct_graph *graph, const ct_graph *trained, int output, uint32_t batch);

/* ---- Networks by name ---------------------------------------------------------------------- */

/* Describes a network in an empty graph:
 *   "lenet5"    28x28x1, ten classes; 61,706 parameters
 *   "resnet8"   32x32x3, ten classes, MLPerf Tiny's; 78,666 parameters, running statistics included
 *   "resnet20"  32x32x3, ten classes, projections as shortcuts; 272,474 weights
 *   "vgg"       32x32x3, ten classes: three pairs of 3x3 convolutions with 16, 32 and 64 channels,
 *               the mean of 2x2 behind each, without normalisation; 82,330 weights
 *
 * Tensors "x", "logits" (an output) and, with training, "y" (labels as probabilities) and "loss".
 * Training decides whose statistics normalise: the batch's or the running ones. */
int ct_graph_builtin(ct_graph *graph, const char *name, uint32_t batch, bool training);

/* The same for a perceptron with ReLU between its layers: layers + 1 widths. */
int ct_graph_mlp(ct_graph *graph, const uint32_t *widths, size_t layers, uint32_t batch,
                 bool training);

/* ---- As bytes ------------------------------------------------------------------------------ */

/* All of a graph but that it was checked, as docs/graph.md describes it: the same graph gives the
 * same bytes. *data is the caller's to give back by ct_graph_free_bytes(). */
int ct_graph_pack(ct_graph *graph, uint8_t **data, size_t *size);
void ct_graph_free_bytes(uint8_t *data);

/* Reads such bytes into an empty graph, which is empty still if they are refused: CT_ERR_FORMAT, or
 * what the calls say that build a graph. ct_graph_check() is still to be called. */
int ct_graph_unpack(ct_graph *graph, const uint8_t *data, size_t size);

/* ---- The reference ------------------------------------------------------------------------- */

/* Where a tensor's value comes from or goes to; count is its number of elements. */
struct ct_value {
  int tensor;
  double *data;
  size_t count;
};

/* A run of the reference. */
struct ct_reference {
  const struct ct_value
      *values; /* of all tensors that come from outside, and what is to be known */
  size_t value_count;
  uint64_t seed, step;   /* dropout is a function of both; schedules and Adam of step */
  bool update;           /* weights and states become what ct_graph_becomes() says */
  uintptr_t reserved[4]; /* 0 */
};

/* The most that a run of the reference may need: doubles at once, multiply-accumulates. */
#define CT_REFERENCE_MOST_DOUBLES 268435456
#define CT_REFERENCE_MOST_MACS 68719476736

/* Computes a checked graph in double precision on the host, by the definitions of the operators.
 * CT_ERR_NO_SPACE when it needs too much, CT_ERR_MEMORY. */
int ct_graph_run_reference(ct_graph *graph, const struct ct_reference *run);

#ifdef __cplusplus
}
#endif

#endif
