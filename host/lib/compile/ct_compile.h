/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a graph to jobs. Each operator is lowered to steps; a step is a kernel (ct_kernel.h) with
 * the element-wise operators that could be joined to it. Then every tensor gets its places in
 * device memory, and each step its programs. No device is needed, only the size of the window.
 *
 * Device memory is in regions, each behind an argument of the jobs:
 *
 *   r1  what lasts: weights, states, constants
 *   r2  what is needed for a while in a run; tensors that do not live at the same time share places
 *   r3  ..: the inputs, labels and outputs of the graph, one each; what is left of them is in r1
 *   then numbers of a run, such as the learning rate (FP32 bits)
 *
 * A graph that is a perceptron as a whole is one stage: the programs of ct_prog.h, whose arguments
 * are others. Its regions have the same names; struct ct_argument says which register has what.
 *
 * Members: all of it may exist several times, at constant strides. Then kernels have programs for
 * groups, too (struct ct_fused), whose loop over members has as many passes as one more argument
 * says, right behind the regions (ct_compiled_group_reg()). Behind it are the numbers that the
 * stage uses, member by member: so a job is for as many members as there are registers for.
 */
#ifndef CT_COMPILE_H
#define CT_COMPILE_H

#include "coltrain/graph.h"
#include "ct_cycles.h"
#include "ct_kernel.h"

enum { CT_ARG_LASTING = 1, CT_ARG_ARENA, CT_ARG_FIRST };
enum {
  CT_EXTERNALS = 12,
  CT_SCALARS = 10,
  CT_ARG_SCALAR = CT_ARG_FIRST + CT_EXTERNALS,
  CT_ARG_STATE,          /* a region of models, no argument */
  CT_MEMBERS_AT_ONCE = 8 /* of a job, at most */
};

/* How the elements of a tensor become those of a matrix. */
enum ct_lay_kind {
  CT_LAY_NONE,    /* the tensor is not in device memory */
  CT_LAY_MATRIX,  /* rows x cols in its own order; a flattened image: of the image */
  CT_LAY_WEIGHT,  /* outputs x taps x channels: see ct_kernel.h */
  CT_LAY_WINDOWS, /* a row for each pixel of a convolution's output: what it sees, by taps, lines
                     first; how images of few channels are brought in */
  CT_LAY_NUMBER,  /* an argument holds its bits */
  /* Of a perceptron; `mat` says where, but not in planes: */
  CT_LAY_TILES, /* tiles row by row: records one behind the other, FP32 tiles every `pitch` units */
  CT_LAY_LINES, /* FP32, a row every `pitch` units */
  CT_LAY_VECTORS /* a row as ct_pack_row() makes it every `pitch` units */
};
/* Weights of a layer. Groups of less than a block of channels share a product: it has `channels` of
 * them, an output sees `own`, and so many outputs see the same. The rest are zeros. */
struct ct_weight_lay {
  uint32_t taps, channels, own, outputs;
};
struct ct_lay {
  enum ct_lay_kind kind;
  struct ct_mat mat;
  struct ct_weight_lay weight;    /* WEIGHT */
  struct ct_window_shape windows; /* WINDOWS */
  unsigned reg;                   /* NUMBER */
  uint32_t pitch;                 /* TILES, LINES, VECTORS */
  uint32_t divide; /* what is read is that part of what is there; 0: all of it. LINES */
};

/* An input, label or output of the graph. */
struct ct_external {
  int tensor;
  unsigned reg;
  uint64_t units;
  bool shared; /* by all members */
};

/* A number of a run that the caller computes by ct_compiled_scalar(); t is the step, counted from
 * 1, to which the run belongs: `runs` of them are one. Those from MOMENTUM on are attributes of
 * updates, the same in all runs; they are no constants of the programs, so that networks which
 * differ in them alone have the same programs. Where there are more numbers than registers they are
 * constants after all (struct ct_compiled.fixed). */
enum ct_scalar_kind {
  CT_SCALAR_RATE, /* the learning rate */
  CT_SCALAR_MINUS_RATE,
  CT_SCALAR_STEP, /* the rate / (1 - beta1^t) */
  CT_SCALAR_ROOT, /* 1 / (1 - beta2^t) */
  CT_SCALAR_KEEP, /* 0 in the first run of a step, else 1 */
  CT_SCALAR_MOMENTUM,
  CT_SCALAR_DECAY,
  CT_SCALAR_BETA1,
  CT_SCALAR_REST1, /* 1 - beta1, in FP32 */
  CT_SCALAR_BETA2,
  CT_SCALAR_REST2,
  CT_SCALAR_EPSILON,
  CT_SCALAR_KINDS
};
struct ct_scalar {
  double value; /* of the kind: beta, momentum, ... */
  struct ct_schedule schedule;
  enum ct_scalar_kind kind;
  uint32_t runs;
  unsigned reg;
  uint32_t node; /* of the graph: whose it is, of several that share it the first */
};

/* What register i + 1 of a job holds. A region is named by the argument that has it as a rule:
 * CT_ARG_LASTING, CT_ARG_ARENA, or one from CT_ARG_FIRST on. */
enum ct_argument_kind {
  CT_ARGUMENT_NONE,
  CT_ARGUMENT_REGION,
  CT_ARGUMENT_SCALAR,
  CT_ARGUMENT_INVERSE /* 1 / at in FP32, rounded to nearest whatever rounding the caller has set */
};
struct ct_argument {
  enum ct_argument_kind kind;
  unsigned region; /* REGION */
  uint32_t at;     /* units from its start; SCALAR: its number */
  uint32_t row;    /* REGION: units that it moves by for each row that a pass begins later */
};

/* What a constant in r1 begins with: equal numbers, in the places that its lay has. */
struct ct_constant {
  struct ct_lay lay;
  float value;
};

/* What the host makes for each run: a mask of dropout (ct_value_mask()). */
struct ct_mask {
  struct ct_mat mat;
  uint32_t stream, limit;
};

/* What is kept compressed from forward to backward. Jobs that store it get the bound's exponent in
 * an argument, from bit 4 on, in place of what that has as a rule: kernels that do nothing else in
 * CT_ARG_BOUND, others in one that no region has. */
enum { CT_ARG_BOUND = CT_ARG_FIRST, CT_KEPT_SUMS = 8 };
struct ct_stores {
  uint32_t kept; /* the number of what is stored compressed */
  unsigned reg;
};

/* A weight whose gradient is made of it: what the bound follows. That may be the scale of what
 * normalises it. */
struct ct_kept_sum {
  int through, divisor; /* it makes what makes the gradient, normalised: scale and variance; or 0 */
  bool derived;         /* ... or otherwise */
  int variance;         /* the state that has the variance of its columns; 0: a plain product */
  double epsilon;       /* that variance or divisor has added */
  int momentum;         /* the state that has its momentum, or its mean */
  /* Sums, column by column: FP32. */
  struct ct_mat delta;      /* of squares of the other operand */
  struct ct_mat magnitudes; /* of the momentum, behind its update */
};
struct ct_kept {
  const char *tensor; /* of the graph; the node that makes it, if it has none */
  int value;          /* of the compiler */
  uint32_t rows, cols;
  uint32_t
      whole;   /* its numbers are whole, from 0 to that, and kept exactly; 0: they have a bound */
  bool beside; /* they stand beside others, whose numbers are counted */
  struct ct_seat index; /* its index units */
  struct ct_kept_sum sum[CT_KEPT_SUMS];
  unsigned sums;                /* 0: nothing is known that its bound could follow */
  struct ct_mat zeros, largest; /* of its numbers, column by column: how many are 0, the largest
                                   magnitude, FP32; cols 0: the device does not say */
};

/* A stage for more rows than its programs take runs them several times in a row, each time for the
 * same number of rows. The last pass may begin in the one before: what is computed again has the
 * same bits. */
enum { CT_MLP_ROWS_MAX = 4 * CT_INFER_ROWS_MAX }; /* of a perceptron's answers */
struct ct_passes {
  uint32_t count, rows, all; /* count 0: it runs once, for all rows */
};

/* Programs for members of a group. */
struct ct_stage_group {
  struct ct_codes codes;
  uint32_t round;             /* members of a pass; 0: there are no such programs */
  uint32_t most;              /* members of a job, at most: whole passes */
  unsigned numbers;           /* that a member has in its jobs ... */
  uint8_t number[CT_SCALARS]; /* ... and which of the network's scalars these are */
};

/* A kernel of the network. */
struct ct_stage {
  const char *node, *op; /* of the graph; of what the kernel does, such as "conv" */
  bool backward;
  bool once;     /* depends on what lasts alone: it need not run again until that changes */
  uint32_t runs; /* it is there for each of so many, and runs in the last of them; 1: in all */
  bool overlaps; /* its jobs read nothing that the job before writes, as long as that changes no
                    weights: CT_JOB_OVERLAP */
  struct ct_passes passes;
  struct ct_argument *own; /* [CT_MAX_ARGS], all regions: what its jobs have instead of `argument`;
                              NULL: nothing else */
  uint64_t macs;
  uint64_t read, written;               /* bytes of its tensors, but for what is compressed */
  bool looks;                           /* part of those runs alone that look at gradients */
  struct ct_stores store[CT_TILE_OUTS]; /* what it stores compressed */
  unsigned stores;
  uint32_t load[CT_TILE_INS + 1]; /* numbers of what it loads compressed */
  unsigned loads;
  struct ct_codes codes;
  struct ct_stage_group group;
};

struct ct_compiled {
  struct ct_lay *lay; /* by tensor, [1..tensors] */
  size_t tensors;
  struct ct_external external[CT_EXTERNALS];
  struct ct_scalar scalar[CT_SCALARS];
  struct ct_constant *constant;
  struct ct_mask *mask;
  struct ct_kept *kept;
  size_t externals, scalars, constants, masks, kepts;
  bool whole;   /* a perceptron as one stage: its programs have arguments of their own */
  bool fixed;   /* attributes of updates are constants of the programs */
  bool crowded; /* there are more than CT_EXTERNALS: the rest of them lie in r1 */
  struct ct_stage *stage;
  size_t stages;
  uint64_t lasting, arena; /* units of r1 and r2 */
  struct ct_argument argument[CT_MAX_ARGS];
  unsigned args;
  struct ct_mlp mlp; /* a perceptron that answers, whose image is all of r1; layers 0: it is not */
  char *why; /* after a failure: a sentence as long as it has to be; NULL: no memory for it */
};

/* What a graph is for a model (ct_model_create()): a perceptron, of any batch, or refused. Its
 * state, or what its steps keep of gradients, is a region of its own. */
enum ct_model_job {
  CT_MODEL_NONE,  /* it is of no model */
  CT_MODEL_RUN,   /* answers, or steps that update */
  CT_MODEL_SET,   /* steps that leave gradients ... */
  CT_MODEL_ADD,   /* ... or add to those that are there */
  CT_MODEL_UPDATE /* of a step, the update by these, which are in r2, each times CT_APPLY_SCALE */
};

/* Device memory that there is, and how often each region will be in it. */
struct ct_compile_room {
  uint64_t bytes;
  uint32_t lasting, arena, external;
};

struct ct_compile_options {
  uint32_t spm_words;                /* of the window */
  unsigned narrow;                   /* HBFP has mantissas of 8 - narrow bits */
  bool walks;                        /* the device has CT_FEATURE_CONVOLUTION: there are products */
  bool kernels;                      /* perceptrons are like all other graphs */
  bool compress;                     /* the device has CT_FEATURE_COMPRESSION */
  bool masks;                        /* of gates are kept beside what is compressed ... */
  bool masks_again;                  /* ... and beside what is made again of it */
  bool members;                      /* there are several */
  bool shared;                       /* they share inputs and labels */
  const struct ct_cycles_core *core; /* by whose cycles programs for members are weighed */
  enum ct_model_job model;
  const struct ct_compile_room *room; /* NULL: nobody has asked */
};

/* A graph that was checked; it must stay while the result is used. What cannot be compiled is
 * listed in compiled->why, node by node: CT_ERR_UNSUPPORTED, or CT_ERR_NO_SPACE where another
 * device would do. After a failure, too, the result is to be freed. */
int ct_compile(const ct_graph *graph, const struct ct_compile_options *options,
               struct ct_compiled *compiled);
void ct_compiled_free(struct ct_compiled *compiled);

/* Externals of a perceptron's answers and of its steps, in their order; of steps logits follow. */
enum { CT_MLP_X, CT_MLP_LOGITS };
enum { CT_MLP_Y = 1, CT_MLP_LOSS };

/* Where a layer of a perceptron lies behind one address: image, and from unit `state` on the state
 * (0: there is none). */
struct ct_layer_lays {
  struct ct_lay w, b, vw, vb; /* momentum: kind NONE without a state */
};
void ct_layer_lays(const struct ct_mlp *net, uint32_t layer, uint32_t state,
                   struct ct_layer_lays *lays);
/* Where an update (CT_MODEL_UPDATE) finds the gradients of a layer's weights and biases. */
void ct_layer_gradients(const struct ct_mlp *net, uint32_t layer, struct ct_lay *w,
                        struct ct_lay *b);

/* The argument of a group's jobs that says how many passes there are; numbers stand behind it. */
static inline unsigned ct_compiled_group_reg(const struct ct_compiled *compiled) {
  return CT_ARG_FIRST + (unsigned)compiled->externals;
}

/* Whether an operator of that name is compiled at all. */
bool ct_compile_has(const char *op);

/* The numbers of a mask in a run, rows x cols of its matrix. */
void ct_compiled_mask(const struct ct_mask *mask, uint64_t seed, uint64_t step, float *x);

/* The value of a number in a run, counted from 0: FP32. */
float ct_compiled_scalar(const struct ct_scalar *scalar, uint64_t run);

/* The number that it is by other attributes of updates and another schedule. */
void ct_compiled_update(struct ct_scalar *scalar, const struct ct_optimise *how);
/* The name of a number that operators would not take, or of weight_decay where weights decay in
 * one of the two and not in the other, which is part of the programs; NULL: all are right. */
const char *ct_compiled_wrong_schedule(const struct ct_schedule *schedule);
const char *ct_compiled_wrong_update(const struct ct_compiled *compiled,
                                     const struct ct_optimise *how);

/* Whether another graph, checked, has the same programs as the one that was compiled: all but
 * schedules and attributes of updates is equal, and these are numbers of a run. If so, and of
 * ct_compiled_numbers() alone: numbers and what else the runs of that graph need become its own, in
 * a copy of *compiled that shares all that it points to. */
bool ct_compiled_suits(const struct ct_compiled *compiled, const ct_graph *graph,
                       const ct_graph *other);
void ct_compiled_numbers(struct ct_compiled *compiled, const ct_graph *other);

/* Whether a stage is part of that run. */
bool ct_compiled_runs(const struct ct_stage *stage, uint64_t run);

/* How often its programs run; makes the arguments of the network's jobs those of a pass. */
uint32_t ct_compiled_passes(const struct ct_stage *stage);
void ct_compiled_pass(const struct ct_compiled *compiled, const struct ct_stage *stage,
                      uint32_t pass, uint32_t *args);

#endif
