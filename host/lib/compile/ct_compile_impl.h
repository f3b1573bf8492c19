/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the compiler: values, steps, and how operators add them.
 *
 * A value is a matrix that a step makes, or that is there from the start. Which ways of keeping it
 * needs follows from the steps that use it, when all are there. Reshaping gives a tensor the value
 * of another one.
 *
 * Steps run in the order of their list, but those that depend on nothing but weights, states and
 * constants, which come first ("early").
 *
 * Functions that add things leave the first error in the compiler, and do nothing more then.
 */
#ifndef CT_COMPILE_IMPL_H
#define CT_COMPILE_IMPL_H

#include "ct_compile.h"
#include "ct_graph_impl.h"

enum { CT_NO_VALUE = -1, CT_FROM_START = -1 };
/* GIVEN: the host makes it anew for each run; it lies with what lasts. */
enum ct_value_place { CT_VALUE_ARENA, CT_VALUE_LASTING, CT_VALUE_EXTERNAL, CT_VALUE_GIVEN };

struct ct_val {
  uint32_t rows, cols;
  uint32_t images, h, w; /* rows = images * h * w */
  enum ct_lay_kind kind;
  struct ct_weight_lay weight;
  struct ct_window_shape windows;
  uint64_t units; /* of the one way of keeping that it has, which is no matrix of tiles; 0: it is */
  uint32_t pitch; /* then: units from row to row */
  bool fixed;     /* nobody else ever has its place: what it is not given stays zero */
  enum ct_value_place place;
  int tensor;       /* 0: of the compiler alone */
  int step;         /* that makes it; CT_FROM_START */
  unsigned part;    /* of that step's tile program: an operation */
  uint32_t readers; /* of its tensors, as in struct ct_compiler */
  uint32_t inside;  /* of these, nodes that have joined its step */
  int same;         /* whose place it takes: a weight's new value, that of the weight */
  int within;       /* whose planes it has, from `plane` on; that one is not within another */
  uint32_t plane;
  bool apart;   /* put together of planes, or some of them: no operand of a tile program that
                   `step` names, but one for those behind it */
  int reshaped; /* of which it has the elements, in rows of another length; or CT_NO_VALUE */
  int again;    /* which it is again for gradients; or CT_NO_VALUE */
  bool constant;
  float number;
  uint32_t stream, limit; /* GIVEN: a mask of dropout */
  enum ct_format format;  /* the widest that a tensor of it asks for, if one does */
  unsigned narrow;
  uint32_t whole; /* its numbers are whole, from 0 to that, at most 127: any format has them
                     exactly; 0: they are not */
  int index;  /* it has no place: its groups of compressed tiles are read by that; or CT_NO_VALUE */
  bool frees; /* ... which gives their pages back */
  int packed; /* the step that packs it; or CT_NO_VALUE */
  int beside; /* a value that is kept itself, or made again, by whose numbers this one's are
                 counted; or CT_NO_VALUE */
  /* Known at the end: */
  bool need[CT_KEEPS], any; /* any: used by something that takes every way of keeping */
  uint32_t runs;            /* it is read in the last of so many; 0: in none, 1: in each */
  int first, last;          /* steps between which it lives; CT_FROM_START: not made */
  struct ct_seat keep[CT_KEEPS];
};
enum ct_step_kind {
  CT_STEP_TILES,
  CT_STEP_CONV,
  CT_STEP_CONV_INPUT,
  CT_STEP_CONV_WEIGHTS,
  CT_STEP_POOL,
  CT_STEP_POOL_BACK,
  CT_STEP_SUM_ROWS,
  CT_STEP_SUM_COLS,
  CT_STEP_SPREAD_ROWS,
  CT_STEP_MOVE,
  CT_STEP_SOFTMAX,
  CT_STEP_PACK,
  CT_STEP_UNPACK,
  CT_STEP_FRONT,
  CT_STEP_KIND_COUNT
};

static inline bool ct_is_product(enum ct_step_kind kind) {
  return kind == CT_STEP_CONV || kind == CT_STEP_CONV_INPUT || kind == CT_STEP_CONV_WEIGHTS;
}

/* Operands of operations while a step is built: an input, the product in front, an operation. */
enum { CT_OPERAND_PRODUCT = 64, CT_OPERAND_OP = 128 };

struct ct_net_step {
  enum ct_step_kind kind;
  const struct ct_gnode *node;
  bool early;
  bool again; /* makes anew for gradients what was made in front */
  bool looks; /* at gradients, for what is kept compressed */
  int order;
  uint64_t scratch,
      scratch_units;  /* what it needs besides its tensors: in the arena, while it runs */
  bool frees;         /* UNPACK: the last of what it unpacks */
  uint32_t kept;      /* PACK: the number of what it packs, plus 1 */
  bool joined;        /* another step does it on the way */
  unsigned bound_reg; /* PACK: then the bound is in that argument */
  int made;  /* CONV_INPUT, CONV_WEIGHTS: the step right in front that it may do, or NO_VALUE */
  bool only; /* of such a step: nobody else reads what it makes */
  enum ct_keep way; /* PACK, UNPACK: how that is kept raw */
  uint32_t runs; /* it is needed in the last of so many; 0: not known yet. Of an update: as given */
  /* The tile program: inputs and the values that its operations make (CT_NO_VALUE: none). */
  struct ct_tilewise tile;
  int in[CT_TILE_INS], of[CT_TILE_OPS];
  /* Values that kernels name: CT_NO_VALUE where there is none. Of a sum dx is that of t alone, of a
   * maximum t is where it was. */
  int x, w, y, dx, dy, t, loss;
  struct ct_window_shape window; /* of a convolution, of pooling */
  enum ct_pool_kind pool_kind;
  bool count_pad;
  struct ct_sum_rows sum; /* of columns, too */
  struct ct_move move;
  struct ct_spread_rows spread;
};

struct ct_compiler {
  const ct_graph *g;
  const struct ct_compile_options *options;
  struct ct_compiled *out;
  int *value_of;     /* by tensor */
  uint32_t *readers; /* by tensor: nodes that read it, the caller if it is an output, tensors that
                        become it */
  struct ct_val *value;
  struct ct_net_step *step;
  uint32_t *order;
  size_t values, value_room, steps, step_room;
  struct ct_front *front;     /* a perceptron in front of the rest; NULL */
  struct ct_net_step nowhere; /* added when the compiler has failed: never read */
  char *missing;              /* what cannot run, sentence by sentence */
  size_t missing_size, missing_room;
  bool *noted; /* by node: it has one */
  size_t missed;
  int refusal;      /* the error of these */
  uint64_t scratch; /* where it begins in the arena */
  void *scan;       /* of who goes through uses */
  bool full;        /* numbers of a run had no register */
  int error;
};

/* ---- Errors ---- */

void ct_compile_fail(struct ct_compiler *c, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ct_compile_no_memory(struct ct_compiler *c);
/* The node cannot run: noted for the sentence at the end, with the first reason that is found. */
void ct_compile_miss(struct ct_compiler *c, const struct ct_gnode *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same of a node whose kernel cannot be made; what is neither CT_ERR_UNSUPPORTED nor
 * CT_ERR_NO_SPACE is no reason to go on. */
void ct_compile_no_kernel(struct ct_compiler *c, const struct ct_gnode *n, int error,
                          const char *reason);

/* ---- Shapes ---- */

/* A tensor as a matrix: its last dimension are the columns. */
static inline uint32_t ct_shape_cols(const struct ct_shape *s) {
  return s->dim[s->dims - 1];
}
static inline uint32_t ct_shape_rows(const struct ct_shape *s) {
  return (uint32_t)ct_shape_part(s, 0, s->dims - 1);
}

/* ---- Values ---- */

/* A new one; 0 where there is no memory. like: a value whose layout it has. */
int ct_value_new(struct ct_compiler *c, uint32_t rows, uint32_t cols);
int ct_value_like(struct ct_compiler *c, int like);
/* One for a tensor of that shape; the value is an image of that shape, if it has four dimensions.
 */
int ct_value_shape(struct ct_compiler *c, const struct ct_shape *s);
void ct_value_image(struct ct_compiler *c, int value, const struct ct_shape *s);
/* Of equal numbers, in r1; each once. */
int ct_value_constant(struct ct_compiler *c, uint32_t rows, uint32_t cols, float number);

/* A mask of dropout: 0 where the word of an element is below limit, else 1. */
int ct_value_mask(struct ct_compiler *c, int like, uint32_t stream, uint32_t limit);

/* That of a tensor; one from outside is made when it is first asked for. */
int ct_value_of(struct ct_compiler *c, int tensor);
static inline int ct_value_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i) {
  return ct_value_of(c, ct_has(n, i) ? n->in[i] : 0);
}
/* A tensor from outside, of which nothing is known yet, is a matrix of that shape. */
void ct_value_given(struct ct_compiler *c, int tensor, const struct ct_shape *s);
/* The tensor has that value from here on. */
void ct_value_is(struct ct_compiler *c, int tensor, int value);
/* Gives a weight its layout: outputs x taps x channels. A state of its shape gets it, too. */
int ct_value_weight(struct ct_compiler *c, int tensor, const struct ct_weight_lay *lay);
int ct_value_shaped(struct ct_compiler *c, int tensor, int like);
/* Weights that batch_norm_fold makes: their layer says how they lie, and has them made. */
bool ct_is_folded(const struct ct_compiler *c, int tensor);
int ct_fold_weight(struct ct_compiler *c, int tensor, const struct ct_weight_lay *lay);
bool ct_same_weights(const struct ct_weight_lay *a, const struct ct_weight_lay *b);
/* Whether rows and columns are those of the tensor's shape. */
bool ct_value_plain(const struct ct_compiler *c, int tensor);
/* That of input i with such rows and columns; another one is made if it has others. CT_NO_VALUE: it
 * cannot be, which is noted. */
int ct_value_plain_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i);
/* `count` inputs from i on; false: one cannot be. */
bool ct_values_plain_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i, int *vals,
                        unsigned count);

/* The kernel of a weight's gradient stores that as FP32 alone: products have to read a copy. */
static inline bool ct_is_fp32_alone(const struct ct_compiler *c, const struct ct_val *v) {
  return v->step != CT_FROM_START && c->step[v->step].kind == CT_STEP_CONV_WEIGHTS &&
         v->part == CT_OPERAND_PRODUCT;
}

/* Only weights, states, constants and what early steps make of them: the same in every run. */
bool ct_values_last(const struct ct_compiler *c, const int *vals, unsigned count);

/* ---- Steps ---- */

/* Windows of outputs y that go over an image x, by the attributes of the node. Of one group. */
struct ct_window_shape ct_window_read(const struct ct_gnode *n, const struct ct_shape *x,
                                      const struct ct_shape *y, uint32_t ky, uint32_t kx);

/* Valid until the next one is added. */
struct ct_net_step *ct_step_add(struct ct_compiler *c, enum ct_step_kind kind,
                                const struct ct_gnode *n);
/* The step makes the value, which it returns. */
int ct_step_makes(struct ct_compiler *c, const struct ct_net_step *s, int value);

/* ---- Normalisation ---- */

/* Attributes: ct_op_norm.c has them in this order. */
enum { CT_NORM_EPSILON, CT_NORM_OTHER };

/* ---- Sums ---- */

/* Over rows (all, or segments of so many), or over columns; as in ct_kernel.h. */
struct ct_sum_of {
  int x, less, times; /* CT_NO_VALUE: there is none */
  bool cols, squares;
  uint32_t segment;
  float scale;
};
/* One that is made already is not made again. */
int ct_value_sum(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_sum_of *what);
/* The same, not of segments, and *too, the sum of what->times, in one pass if neither is there. */
int ct_value_sums(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_sum_of *what,
                  int *too);

/* ---- Moves: ct_compile_moves.c ---- */

/* What they give is FP32, good for tile programs, sums and other moves; ct_moved() makes of it a
 * value that anybody may read, that of a tensor. */
int ct_moved(struct ct_compiler *c, const struct ct_gnode *n, int value, const struct ct_shape *s);
/* x, seen in that shape, its dimensions in another order: dimension i is perm[i] of x. */
int ct_permuted(struct ct_compiler *c, const struct ct_gnode *n, int x, const struct ct_shape *s,
                const uint32_t *perm);
/* Input i in rows of that length, good for all readers; CT_NO_VALUE: there is no such input, or it
 * cannot be, which is noted. */
int ct_reshaped(struct ct_compiler *c, const struct ct_gnode *n, unsigned i, uint32_t cols);
/* Input i so that it can be spread over the elements of that shape: it has as many rows, or one. */
int ct_spread_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i,
                 const struct ct_shape *to);
/* Parts of tensors along an axis, from `begin` on: out of x, or of each x into a whole. */
struct ct_part {
  int x; /* CT_NO_VALUE: zeros */
  uint32_t begin, size;
};
int ct_part_of(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_part *part,
               const struct ct_shape *whole, uint32_t axis);
int ct_whole_of(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_part *part,
                unsigned parts, const struct ct_shape *whole, uint32_t axis);

/* ---- Element by element ---- */

/* An attribute of an update: in a register, or (reg 0) a constant. */
struct ct_number {
  unsigned reg;
  float value;
};

/* Operations under construction: in a step that was there, or in one of their own. */
struct ct_tiles {
  struct ct_compiler *c;
  int step;
};

/* For a node that works on values of that layout; `vals` are what it reads. more: operations that
 * it needs. join: it may become part of the step that made one of them. */
struct ct_tiles ct_tiles_for(struct ct_compiler *c, const struct ct_gnode *n, const int *vals,
                             unsigned count, unsigned more);
struct ct_tiles ct_tiles_apart(struct ct_compiler *c, const struct ct_gnode *n, uint32_t rows,
                               uint32_t cols, bool early);
/* Operands. */
unsigned ct_tiles_in(struct ct_tiles *t, int value);
unsigned ct_tiles_op(struct ct_tiles *t, enum ct_tile_fn fn, unsigned a, unsigned b);
unsigned ct_tiles_axpb(struct ct_tiles *t, unsigned a, float s, float plus);
unsigned ct_tiles_op_s(struct ct_tiles *t, enum ct_tile_fn fn, unsigned a, float s);
/* a times the number in an argument. */
unsigned ct_tiles_times(struct ct_tiles *t, unsigned a, unsigned reg);
/* a times an attribute; a plus one. */
unsigned ct_tiles_scaled(struct ct_tiles *t, unsigned a, struct ct_number by);
unsigned ct_tiles_plus(struct ct_tiles *t, unsigned a, struct ct_number more);
/* a where that number is above 0, else +0, whatever a is. */
unsigned ct_tiles_if(struct ct_tiles *t, unsigned a, unsigned reg);
/* The operand is a value: new, or one that was made for it before. */
int ct_tiles_make(struct ct_tiles *t, unsigned operand, int value);

/* Values of the first `count` inputs in vals fit each other: of one layout, or spread over it;
 * those that do not are replaced by others. The largest is *like; CT_NO_VALUE if none has all
 * elements of the output. false: they cannot, which is noted. */
bool ct_fit(struct ct_compiler *c, const struct ct_gnode *n, int *vals, unsigned count, int *like);
/* The operand is output i of the node, which lies as `like` does. */
void ct_give(struct ct_tiles *t, const struct ct_gnode *n, unsigned i, unsigned operand, int like);

/* ---- Numbers of a run: ct_compile_numbers.c ---- */

/* The register of one; n: the update that has it, or that accumulates. */
unsigned ct_scalar_reg(struct ct_compiler *c, enum ct_scalar_kind kind, const struct ct_gnode *n);

/* The same in a register that is given, of which there is no other name. */
void ct_scalar_in(struct ct_compiler *c, enum ct_scalar_kind kind, const struct ct_gnode *n,
                  unsigned reg);

struct ct_number ct_number_of(struct ct_compiler *c, enum ct_scalar_kind kind,
                              const struct ct_gnode *n);

/* ---- Operators: ct_compile_*.c ---- */

typedef void ct_lower_op(struct ct_compiler *c, const struct ct_gnode *n);
ct_lower_op *ct_lower_of(const char *op); /* NULL: there is none */

/* clang-format off */
#define CT_LOWERED(X) \
  X(relu) X(relu_grad) X(leaky_relu) X(leaky_relu_grad) X(clip) X(clip_grad) X(sigmoid) \
  X(sigmoid_grad) X(tanh) X(tanh_grad) X(erf) X(erf_grad) X(gelu) X(gelu_grad) X(scale) X(dropout) X(add) \
  X(sub) X(mul) X(div) X(fill) X(sum_to) X(conv) X(conv_input_grad) X(conv_weight_grad) X(linear) \
  X(matmul) X(max_pool) X(max_pool_grad) X(average_pool) X(average_pool_grad) \
  X(global_average_pool) X(global_average_pool_grad) X(batch_norm) X(batch_norm_train) \
  X(batch_norm_grad) X(batch_norm_fold) X(layer_norm) X(layer_norm_grad) X(softmax) X(softmax_grad) X(cross_entropy) \
  X(cross_entropy_grad) X(mse) X(reshape) X(flatten) X(transpose) X(concat) X(slice) \
  X(slice_grad) X(rate) X(accumulate) X(clip_norm) X(sgd) X(adam)
/* clang-format on */
#define CT_LOWER_DECLARE(op) void ct_lower_op_##op(struct ct_compiler *c, const struct ct_gnode *n);
CT_LOWERED(CT_LOWER_DECLARE)
#undef CT_LOWER_DECLARE

/* ---- Perceptrons: ct_compile_mlp.c ---- */

/* All of the graph as one stage, if it is a perceptron that can be; false: it is not, and nothing
 * has been done. */
bool ct_compile_mlp(struct ct_compiler *c);

/* Programs of its answers. On failure nothing is left to be freed. */
struct ct_mlp_answers {
  const struct ct_mlp *net;
  uint32_t batch;
  bool planes; /* in the places of a matrix, instead of rows */
  struct ct_passes passes;
  struct ct_codes codes;
  uint64_t work; /* units of workspace */
};
int ct_mlp_answers(const struct ct_compiler *c, struct ct_mlp_answers *a, const struct ct_why *why);
/* Units of a row of inputs. */
uint32_t ct_mlp_row(const struct ct_mlp *net);

/* ---- A perceptron in front of other nodes: ct_compile_front.c ---- */

/* Finds it, if there is one that can be a stage. */
void ct_front_find(struct ct_compiler *c);
/* Whether a node is part of it; adds its step, with the last of them. */
bool ct_front_has(const struct ct_compiler *c, const struct ct_gnode *n);
void ct_front_lower(struct ct_compiler *c, const struct ct_gnode *n);
/* What is known when all has a place: where its weights lie, its workspace, its stage. */
void ct_front_describe(struct ct_compiler *c);
void ct_front_scratch(struct ct_compiler *c);
void ct_front_stage(struct ct_compiler *c, const struct ct_net_step *s, struct ct_stage *stage);
void ct_front_free(struct ct_compiler *c);

/* ---- The end: places and programs ---- */

/* Units of a value in one way of keeping. */
static inline uint64_t ct_val_units(const struct ct_val *v, enum ct_keep keep) {
  return v->units ? v->units : ct_mat_units(v->rows, v->cols, keep);
}

void ct_compile_places(struct ct_compiler *c);
/* What is made again, or lies compressed, between its last use in front and its first for
 * gradients: when the ways of keeping are known, and before places are given. */
void ct_compile_kept(struct ct_compiler *c);
/* Gates of gradients, such as those of a ReLU, that read what is to be kept compressed read a mask
 * of it instead, which is kept exactly. Orders are twice what they are. */
void ct_compile_gates(struct ct_compiler *c);
/* What is known of it when places are. */
void ct_compile_kept_places(struct ct_compiler *c);
/* In which runs each step is needed, when all are there in their order. */
void ct_compile_runs(struct ct_compiler *c);
void ct_compile_programs(struct ct_compiler *c);

/* ct_compile_joins.c: what can be made again on the way, when orders and lives are known. */
void ct_compile_made(struct ct_compiler *c);
/* Whether it makes something that is packed. */
bool ct_packs(const struct ct_compiler *c, const struct ct_net_step *s);
/* What a step may do for others, it does; or not. Returns whether it does anything. */
bool ct_join(struct ct_compiler *c, const struct ct_net_step *s, bool joins);
/* A stage loads what is kept compressed. */
void ct_stage_loads(struct ct_stage *stage, uint32_t kept);
/* A step that another one does has no program: that one's stage has its bytes. */
void ct_has_joined(struct ct_compiler *c, const struct ct_net_step *s);

/* Calls f for each value that a step reads (way: a way of keeping, or CT_KEEPS for any) or makes.
 */
typedef void ct_value_use(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                          bool made);
void ct_step_uses(struct ct_compiler *c, struct ct_net_step *s, ct_value_use *f);
/* The value lives at that step, which makes it or reads it. Planes of another value are that one's:
 * the one that lives is returned. */
struct ct_val *ct_value_lives(struct ct_compiler *c, const struct ct_net_step *s, int value,
                              bool made);

/* ---- Who reads what is kept ---- */

static inline bool ct_step_is_back(const struct ct_net_step *s) {
  return s->node->backward || s->again;
}

struct ct_readers {
  int front;                /* the last step in front that makes or reads it */
  int first;                /* the first for gradients; CT_FROM_START: there is none */
  size_t step;              /* its number in the list */
  bool need[CT_KEEPS], any; /* how those for gradients read it */
  bool again;               /* one of them makes something again */
  bool in_front;            /* somebody in front reads it */
};
struct ct_readers ct_readers_of(struct ct_compiler *c, int value);
/* Whether it is a matrix of its own that a run makes in front, and that gradients read when at
 * least one other step has run. Orders are twice what they are. */
bool ct_value_is_kept(const struct ct_compiler *c, int value, const struct ct_readers *r);
/* Whether what gradients read of it is made again of something that is kept. */
bool ct_is_made_again(struct ct_compiler *c, int value, const struct ct_readers *r);

/* The even order that is not behind that one. */
static inline int ct_even(int order) {
  return order - (order & 1);
}

/* A step that makes something anew. */
bool ct_step_makes_again(const struct ct_net_step *s);
/* A step reads another value from here on; false: it did not read that one. */
bool ct_step_reads_instead(struct ct_net_step *s, int value, int instead);
/* A new step in front of that order, which is twice what it will be. */
struct ct_net_step *ct_step_between(struct ct_compiler *c, enum ct_step_kind kind,
                                    const struct ct_gnode *n, int order);
/* FP32, with what lasts. */
void ct_value_for_host(struct ct_compiler *c, int value);
/* The value as its groups alone, and whether a sum of rows can read them. */
int ct_value_of_groups(struct ct_compiler *c, int value, int index);
bool ct_can_sum_groups(const struct ct_compiler *c, int value);

/* ---- Bounds: ct_compile_bounds.c ---- */

/* Whether a bound can follow all that gradients make of a value, and of what is made of it again.
 */
bool ct_bound_follows(struct ct_compiler *c, int value);
/* Adds what the bound of the last one kept follows: of what step `again` makes again of it; of its
 * copy, which gradients read; where there is none of these, of the means and maxima made of it. */
void ct_bound_derived(struct ct_compiler *c, int value, size_t again);
void ct_bound_sums(struct ct_compiler *c, int value, int copy);
void ct_bound_means(struct ct_compiler *c, int value, struct ct_kept *k);
/* What the host would have to read else, for the last one kept: sums of momenta; counts of its
 * numbers, by groups that are read at `order` (CT_FROM_START: none can be), or what is unpacked. */
void ct_bound_counts(struct ct_compiler *c, int value, int index, int order);

/* ---- Programs ---- */

/* Units that a step needs besides its tensors, when it is known how these are kept. */
uint64_t ct_step_scratch(const struct ct_compiler *c, const struct ct_net_step *s);

/* Where a step's programs go, and what its kernel may use. */
struct ct_target {
  struct ct_room room;
  struct ct_codes *codes;
  char text[200];
  struct ct_why why;
};

/* ct_compile_programs.c: the kernel of a step. */
int ct_step_program(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t);
/* ct_compile_groups.c: its programs for groups of members; t is changed. */
void ct_step_group(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t);

#endif
