/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the graph: how tensors and nodes are kept, and what an operator is.
 *
 * An operator is one struct ct_gop in the table of ct_op.c: its shape, its gradient, its reference.
 * Gradients are nodes of the same table. Numbers of tensors that come from failed calls are
 * negative and go through everything that is given them, so functions that add nodes need not look
 * at them.
 *
 * Tensors and nodes do not move once they are made.
 */
#ifndef CT_GRAPH_IMPL_H
#define CT_GRAPH_IMPL_H

#include "coltrain/coltrain.h"
#include "coltrain/graph.h"

enum { CT_GOP_ATTRS = 8, CT_GOP_OUTPUTS = 5, CT_GOP_INPUTS = 1024 };

struct ct_gtensor {
  char *name;
  struct ct_shape shape;
  uint64_t elements; /* 0: the shape is not known */
  enum ct_format format;
  enum ct_role role;
  enum ct_initial initial;
  int node, gradient, becomes; /* as in struct ct_tensor_info */
};

struct ct_gvalue {
  uint32_t count;
  double value[4];
};

struct ct_gnode {
  const struct ct_gop *op;
  char *name;
  uint32_t index, inputs;
  int *in; /* inputs of them; 0: left out */
  int out[CT_GOP_OUTPUTS];
  struct ct_gvalue attr[CT_GOP_ATTRS];
  bool backward;
};

struct ct_graph {
  struct ct_gtensor **tensor; /* [1..tensors] */
  struct ct_gnode **node;     /* [0..nodes) */
  size_t tensors, nodes, tensor_room, node_room;
  bool checked, backward; /* backward: nodes that are added belong to gradients or updates */
  bool differentiated;
  const bool *wanted; /* by tensor, while gradients are made: it needs one */
  char error[512];
};

/* ---- Operators ----------------------------------------------------------------------------- */

/* An attribute of an operator: so many numbers (any from 1 to that if it varies) between low and
 * high. A fallback that is NaN: it has to be given. */
struct ct_attr_rule {
  const char *name;
  double low, high, fallback;
  uint32_t count;
  bool whole, varies;
  bool numbered; /* the fallback is the node's number */
};

/* A number; so many whole numbers; a list of up to so many, that has to be given. */
#define CT_NUMBER(name_, low_, high_, fallback_) \
  { .name = (name_), .count = 1, .low = (low_), .high = (high_), .fallback = (fallback_) }
#define CT_WHOLE(name_, count_, low_, high_, fallback_)                                          \
  {                                                                                              \
    .name = (name_), .count = (count_), .low = (low_), .high = (high_), .fallback = (fallback_), \
    .whole = true                                                                                \
  }
#define CT_LIST(name_, most_, low_, high_)                                              \
  {                                                                                     \
    .name = (name_), .count = (most_), .low = (low_), .high = (high_), .fallback = NAN, \
    .whole = true, .varies = true                                                       \
  }

/* A call of a reference: values of inputs (NULL: left out) and outputs, which are zeros before. */
struct ct_ref_call {
  const ct_graph *g;
  const struct ct_gnode *n;
  const double **in;
  double **out;
  uint64_t seed, step;
};

struct ct_gop {
  const char *name;
  uint32_t inputs, optional, outputs; /* optional: that may be left out, behind the others */
  const struct ct_attr_rule *attrs;   /* up to one without name; NULL: none */
  /* The shapes of outputs from those of inputs; refuses what does not fit, by ct_refuse(). */
  int (*shape)(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out);
  /* Adds nodes that make the gradients gx of inputs from those of outputs gy, 0 where nobody has
   * one. gx is all 0 before; what ct_wants() denies may stay so. NULL: it has no gradient. */
  void (*grad)(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx);
  void (*reference)(const struct ct_ref_call *c);
  uint64_t (*macs)(const ct_graph *g, const struct ct_gnode *n); /* NULL: it has no products */
  const void *own;                                               /* of the operator's file */
  uint64_t (*work)(const ct_graph *g, const struct ct_gnode *n); /* NULL: no more than its elements
                                                                  * and products */
};

/* All operators. */
extern const struct ct_gop *const ct_gops[];
const struct ct_gop *ct_gop_find(const char *name);
size_t ct_gop_count(void);

/* What Adam takes of its settings: where one is 0, the operator's own. */
struct ct_adam {
  double beta1, beta2, epsilon;
};
struct ct_adam ct_adam_of(const struct ct_optimise *how);

/* ---- For operators ------------------------------------------------------------------------- */

/* Leaves a sentence and returns error. ct_refuse(): CT_ERR_ARG, about a node. */
int ct_graph_fail(ct_graph *g, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int ct_refuse(ct_graph *g, const struct ct_gnode *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline const struct ct_shape *ct_in(const ct_graph *g, const struct ct_gnode *n,
                                           unsigned i) {
  return &g->tensor[n->in[i]]->shape;
}
static inline const struct ct_shape *ct_out(const ct_graph *g, const struct ct_gnode *n,
                                            unsigned i) {
  return &g->tensor[n->out[i]]->shape;
}
static inline bool ct_has(const struct ct_gnode *n, unsigned i) {
  return i < n->inputs && n->in[i] > 0;
}
static inline double ct_attr(const struct ct_gnode *n, unsigned attr, unsigned i) {
  return n->attr[attr].value[i];
}
static inline uint32_t ct_attr_u32(const struct ct_gnode *n, unsigned attr, unsigned i) {
  return (uint32_t)n->attr[attr].value[i];
}

/* Elements of a shape that was checked, of a part of its dimensions. */
uint64_t ct_shape_part(const struct ct_shape *s, uint32_t from, uint32_t to);
static inline uint64_t ct_shape_elements(const struct ct_shape *s) {
  return ct_shape_part(s, 0, s->dims);
}
bool ct_shape_same(const struct ct_shape *a, const struct ct_shape *b);
static inline struct ct_shape ct_shape_last(const struct ct_shape *s, uint32_t dim) {
  struct ct_shape t = *s;
  t.dim[t.dims - 1] = dim;
  return t;
}

/* Whether the run is the last of those that make a step (struct ct_optimise.accumulate). */
static inline bool ct_ends_step(uint64_t run, uint32_t runs) {
  return run % runs == runs - 1;
}

/* A product of two numbers of elements; the largest number if it would be larger. */
static inline uint64_t ct_macs(uint64_t a, uint64_t b) {
  return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* "32x784", for sentences. */
struct ct_shape_words {
  char text[64];
};
struct ct_shape_words ct_shape_text(const struct ct_shape *s);
#define CT_SHAPE(s) (ct_shape_text(s).text)

/* Refuses input i unless it has that shape. what: what the shape belongs to. */
int ct_need_shape(ct_graph *g, const struct ct_gnode *n, unsigned i, const struct ct_shape *want,
                  const char *what);

/* Whether somebody needs the gradient of this input; it is there and it leads to what is wanted. */
bool ct_wants(const ct_graph *g, const struct ct_gnode *n, unsigned i);

/* Adds a node for node n (NULL: for none), which names it. */
struct ct_emit {
  const char *op;
  const int *in;
  size_t inputs;
  const struct ct_attr *attrs;
  size_t attr_count;
};
int ct_emit(ct_graph *g, const struct ct_gnode *n, const struct ct_emit *e);
#define CT_IN(...) .in = (int[]){__VA_ARGS__}, .inputs = sizeof((int[]){__VA_ARGS__}) / sizeof(int)
#define CT_ATTRS(...)                       \
  .attrs = (struct ct_attr[]){__VA_ARGS__}, \
  .attr_count = sizeof((struct ct_attr[]){__VA_ARGS__}) / sizeof(struct ct_attr)
#define CT_EMIT(g, n, ...) ct_emit(g, n, &(struct ct_emit){__VA_ARGS__})

/* An attribute that is a shape; the attribute of a node, for another node. */
struct ct_attr ct_attr_shape(const char *name, const struct ct_shape *s);
struct ct_attr ct_attr_copy(const struct ct_gnode *n, unsigned attr);

/* Adds nodes that sum x over what was broadcast, down to that shape (x itself if it has it). */
int ct_emit_sum_to(ct_graph *g, const struct ct_gnode *n, int x, const struct ct_shape *to);
int ct_emit_reshape(ct_graph *g, const struct ct_gnode *n, int x, const struct ct_shape *to);

/* Shape functions that several operators share: that of input 0, or a scalar. */
int ct_shape_of_first(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out);
int ct_shape_scalar(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out);

/* ---- For the files of the graph ------------------------------------------------------------ */

/* Refuses NULL, a graph that was checked, a number that is no tensor (a negative one: silently). */
int ct_graph_open(ct_graph *g);
int ct_graph_has(ct_graph *g, int tensor, const char *what);
/* Tensors of all nodes in an order in which they can run, or a refusal; free it. */
int ct_graph_sort(ct_graph *g, uint32_t **order);
/* Infers the shapes of a node whose inputs have theirs. */
int ct_graph_infer(ct_graph *g, const struct ct_gnode *n);
/* Infers what is missing, in that order. */
int ct_graph_infer_all(ct_graph *g, const uint32_t *order);
uint64_t ct_node_macs(const ct_graph *g, const struct ct_gnode *n);

/* The input of which a tensor has all numbers of each row, if nothing else reads that; 0: there is
 * none. */
int ct_graph_flattened(const ct_graph *g, int tensor);

/* A copy that can be changed, though the graph was checked: only sentences are written to that.
 * *copy is NULL, or has the sentence, on failure; free it either way. */
int ct_graph_copy(const ct_graph *graph, ct_graph **copy);

/* How much a graph has. A call that adds several things and is refused takes them back. */
struct ct_mark {
  size_t tensors, nodes;
};
struct ct_mark ct_graph_mark(const ct_graph *g);
void ct_graph_rollback(ct_graph *g, struct ct_mark mark);

#endif
