/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs, their tensors and nodes: made, asked. Shapes and order: ct_graph_check.c. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_graph_impl.h"

/* ---- Sentences ----------------------------------------------------------------------------- */

int ct_graph_fail(ct_graph *g, int error, const char *format, ...) {
  char text[sizeof g->error]; /* the arguments may point into the old sentence */
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  memcpy(g->error, text, sizeof g->error);
  return error;
}

int ct_refuse(ct_graph *g, const struct ct_gnode *n, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return ct_graph_fail(g, CT_ERR_ARG, "node %.80s (%s): %s", n->name, n->op->name, text);
}

const char *ct_graph_error(const ct_graph *g) {
  return g ? g->error : "the graph is NULL: ct_graph_create() makes one";
}

struct ct_shape_words ct_shape_text(const struct ct_shape *s) {
  struct ct_shape_words w = {"?"};
  size_t at = 0;
  for (uint32_t i = 0; i < s->dims && i < CT_GRAPH_DIMS; ++i)
    at += (size_t)snprintf(w.text + at, sizeof w.text - at, "%s%u", i ? "x" : "", s->dim[i]);
  return w;
}

int ct_graph_open(ct_graph *g) {
  if (!g) return CT_ERR_ARG;
  return g->checked ? ct_graph_fail(g, CT_ERR_ARG, "the graph was checked: it cannot be changed")
                    : CT_OK;
}

int ct_graph_has(ct_graph *g, int tensor, const char *what) {
  if (tensor < 0) return tensor;
  if (tensor > 0 && (size_t)tensor <= g->tensors) return CT_OK;
  return ct_graph_fail(g, CT_ERR_ARG, "%s: the graph has no tensor %d, it has 1..%zu", what, tensor,
                       g->tensors);
}

/* ---- Graphs -------------------------------------------------------------------------------- */

int ct_graph_create(ct_graph **graph) {
  if (!graph) return CT_ERR_ARG;
  *graph = calloc(1, sizeof **graph);
  return *graph ? CT_OK : CT_ERR_MEMORY;
}

static void free_node(struct ct_gnode *n) {
  if (n) {
    free(n->name);
    free(n->in);
  }
  free(n);
}

static void free_tensor(struct ct_gtensor *t) {
  if (t) free(t->name);
  free(t);
}

void ct_graph_free(ct_graph *g) {
  if (!g) return;
  for (size_t i = 1; i <= g->tensors; ++i)
    free_tensor(g->tensor[i]);
  for (size_t i = 0; i < g->nodes; ++i)
    free_node(g->node[i]);
  free(g->tensor);
  free(g->node);
  free(g);
}

static int no_memory(ct_graph *g) {
  return ct_graph_fail(g, CT_ERR_MEMORY, "no memory for the graph");
}

/* The list with room for one more pointer; NULL without memory, and the list is as it was. */
static void *grow(void *list, size_t *room, size_t used) {
  if (used < *room) return list;
  const size_t more = *room ? 2 * *room : 64;
  void *p = realloc(list, more * sizeof(void *));
  if (p) *room = more;
  return p;
}

/* ---- Shapes -------------------------------------------------------------------------------- */

uint64_t ct_shape_part(const struct ct_shape *s, uint32_t from, uint32_t to) {
  uint64_t n = 1;
  for (uint32_t i = from; i < to; ++i)
    n *= s->dim[i];
  return n;
}

bool ct_shape_same(const struct ct_shape *a, const struct ct_shape *b) {
  return a->dims == b->dims && !memcmp(a->dim, b->dim, a->dims * sizeof *a->dim);
}

/* What is wrong with a shape: "" if nothing is. Products stay below 2^64: each factor is at most
 * 2^24 and the product before it at most 2^34. */
static const char *shape_fault(const struct ct_shape *s) {
  if (s->dims < 1 || s->dims > CT_GRAPH_DIMS) return "a tensor has 1 to 4 dimensions";
  uint64_t n = 1;
  for (uint32_t i = 0; i < s->dims; ++i) {
    if (s->dim[i] == 0) return i ? "a dimension is 0" : "the batch (its first dimension) is 0";
    if (s->dim[i] > CT_GRAPH_MOST_DIM) return "a dimension is larger than 2^24";
    n *= s->dim[i];
    if (n > CT_GRAPH_MOST_ELEMENTS) return "it has more than 2^34 elements";
  }
  return "";
}

static void take_shape(struct ct_gtensor *t, const struct ct_shape *s) {
  t->shape = *s;
  for (uint32_t i = s->dims; i < CT_GRAPH_DIMS; ++i)
    t->shape.dim[i] = 0;
  t->elements = ct_shape_elements(s);
}

/* An output's shape is what its node says; one that was declared must be the same. */
static int check_output(ct_graph *g, const struct ct_gnode *n, unsigned i,
                        const struct ct_shape *s) {
  const struct ct_gtensor *t = g->tensor[n->out[i]];
  const char *fault = shape_fault(s);
  if (*fault) return ct_refuse(g, n, "its output would be %s: %s", CT_SHAPE(s), fault);
  if (t->elements && !ct_shape_same(&t->shape, s))
    return ct_refuse(g, n, "its output %s was declared as %s, it is %s", t->name,
                     CT_SHAPE(&t->shape), CT_SHAPE(s));
  return CT_OK;
}

int ct_graph_infer(ct_graph *g, const struct ct_gnode *n) {
  struct ct_shape out[CT_GOP_OUTPUTS] = {{0}};
  int err = n->op->shape(g, n, out);
  for (unsigned i = 0; i < n->op->outputs && !err; ++i)
    err = check_output(g, n, i, &out[i]);
  for (unsigned i = 0; i < n->op->outputs && !err; ++i)
    take_shape(g->tensor[n->out[i]], &out[i]);
  return err;
}

/* ---- Tensors ------------------------------------------------------------------------------- */

/* The name is not looked up: ct_graph_check() compares all of them. */
static int new_tensor(ct_graph *g, const char *name, enum ct_role role) {
  struct ct_gtensor **list = grow(g->tensor, &g->tensor_room, g->tensors + 1);
  if (!list) return no_memory(g);
  g->tensor = list;
  struct ct_gtensor *t = calloc(1, sizeof *t);
  char made[32];
  snprintf(made, sizeof made, "tensor%zu", g->tensors + 1);
  if (t) t->name = strdup(name ? name : made);
  if (!t || !t->name) {
    free(t);
    return no_memory(g);
  }
  t->role = role;
  t->node = -1;
  g->tensor[++g->tensors] = t;
  return (int)g->tensors;
}

static int check_new_tensor(ct_graph *g, const struct ct_new_tensor *t) {
  const char *name = t->name ? t->name : "without name", *fault = shape_fault(&t->shape);
  if (t->role < CT_ROLE_INPUT || t->role > CT_ROLE_ACTIVATION)
    return ct_graph_fail(g, CT_ERR_ARG,
                         "tensor %.80s: an input, label, weight, state or activation can be "
                         "declared, not role %d",
                         name, (int)t->role);
  if (t->format < CT_FORMAT_FP32 || t->format > CT_FORMAT_COMPRESSED)
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %.80s: there is no format %d", name,
                         (int)t->format);
  if (t->initial < CT_INITIAL_ZEROS || t->initial > CT_INITIAL_HE)
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %.80s: there is no initial value %d", name,
                         (int)t->initial);
  if (t->reserved[0] || t->reserved[1])
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %.80s: reserved words are not 0", name);
  if (*fault && !(t->role == CT_ROLE_ACTIVATION && t->shape.dims == 0))
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %.80s of shape %s: %s", name, CT_SHAPE(&t->shape),
                         fault);
  return g->tensors < (size_t)4 * CT_GRAPH_MOST_NODES
             ? CT_OK
             : ct_graph_fail(g, CT_ERR_ARG, "tensor %.80s: the graph has too many tensors", name);
}

int ct_graph_tensor(ct_graph *g, const struct ct_new_tensor *t) {
  int id = ct_graph_open(g);
  if (id) return id;
  if (!t) return ct_graph_fail(g, CT_ERR_ARG, "the tensor is NULL");
  id = check_new_tensor(g, t);
  if (!id) id = new_tensor(g, t->name, t->role);
  if (id < 0) return id;
  struct ct_gtensor *made = g->tensor[id];
  made->format = t->format;
  made->initial = t->initial;
  if (t->shape.dims) take_shape(made, &t->shape);
  return id;
}

int ct_graph_result(ct_graph *g, int tensor) {
  int err = ct_graph_open(g);
  if (!err) err = ct_graph_has(g, tensor, "a result");
  if (err) return err;
  struct ct_gtensor *t = g->tensor[tensor];
  if (t->node < 0)
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %s is made by no node: it cannot be a result",
                         t->name);
  t->role = CT_ROLE_OUTPUT;
  return tensor;
}

int ct_graph_set_format(ct_graph *g, int tensor, enum ct_format format) {
  int err = ct_graph_open(g);
  if (!err) err = ct_graph_has(g, tensor, "a format");
  if (err) return err;
  if (format < CT_FORMAT_FP32 || format > CT_FORMAT_COMPRESSED)
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %s: there is no format %d", g->tensor[tensor]->name,
                         (int)format);
  g->tensor[tensor]->format = format;
  return tensor;
}

/* A map of what is in a batch: not a vector of statistics, not a loss. */
static bool is_map(const struct ct_gtensor *t) {
  return t->role == CT_ROLE_ACTIVATION && t->shape.dims > 1;
}

/* A gradient that is the sum of several, such as that of what a residual sum reads, and each of
 * these. */
static int keep_parts(ct_graph *g, int tensor, enum ct_format format) {
  const int node = g->tensor[tensor]->node;
  int err = ct_graph_set_format(g, tensor, format);
  if (err < 0 || node < 0 || !g->node[node]->backward ||
      strcmp(g->node[node]->op->name, "add") != 0)
    return err < 0 ? err : CT_OK;
  err = CT_OK;
  for (uint32_t i = 0; i < g->node[node]->inputs && !err; ++i) {
    const int part = g->node[node]->in[i];
    const struct ct_gtensor *t = g->tensor[part];
    if (t->node >= 0 && g->node[t->node]->backward && t->shape.dims > 1)
      err = keep_parts(g, part, format);
  }
  return err;
}

int ct_graph_keep(ct_graph *g, enum ct_role role, enum ct_format format) {
  int err = ct_graph_open(g), count = 0;
  if (!err && role != CT_ROLE_ACTIVATION && role != CT_ROLE_GRADIENT)
    err = ct_graph_fail(g, CT_ERR_ARG,
                        "activations and gradients are kept in a format, not role %d", (int)role);
  for (size_t i = 1; !err && i <= g->tensors; ++i) {
    const struct ct_gtensor *t = g->tensor[i];
    const int tensor = role == CT_ROLE_ACTIVATION ? (int)i : t->gradient;
    if (!is_map(t) || tensor <= 0) continue;
    err = keep_parts(g, tensor, format);
    ++count;
  }
  return err ? err : count;
}

int ct_graph_becomes(ct_graph *g, int state, int value) {
  int err = ct_graph_open(g);
  if (!err) err = ct_graph_has(g, state, "a state");
  if (!err) err = ct_graph_has(g, value, "the value of a state");
  if (err) return err;
  struct ct_gtensor *s = g->tensor[state];
  const struct ct_gtensor *v = g->tensor[value];
  if (s->role != CT_ROLE_WEIGHT && s->role != CT_ROLE_STATE)
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %s is no weight or state: it cannot become %s",
                         s->name, v->name);
  if (s->becomes)
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %s becomes %s already: it cannot become %s",
                         s->name, g->tensor[s->becomes]->name, v->name);
  if (v->elements && !ct_shape_same(&s->shape, &v->shape))
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %s is %s: it cannot become %s, which is %s",
                         s->name, CT_SHAPE(&s->shape), v->name, CT_SHAPE(&v->shape));
  if (v->node < 0 && v->role != CT_ROLE_ACTIVATION)
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %s is made by no node: %s cannot become it",
                         v->name, s->name);
  s->becomes = value;
  return state;
}

/* ---- Nodes --------------------------------------------------------------------------------- */

static int check_value(ct_graph *g, const struct ct_gnode *n, const struct ct_attr_rule *r,
                       double x) {
  if (isnan(x)) return ct_refuse(g, n, "attribute %s is NaN", r->name);
  if (x < r->low || x > r->high)
    return ct_refuse(g, n, "attribute %s is %g, it must be %g..%g", r->name, x, r->low, r->high);
  if (r->whole && x != (double)(int64_t)x)
    return ct_refuse(g, n, "attribute %s is %g, it must be a whole number", r->name, x);
  return CT_OK;
}

static int take_attr(ct_graph *g, struct ct_gnode *n, unsigned at, const struct ct_attr *a) {
  const struct ct_attr_rule *r = &n->op->attrs[at];
  struct ct_gvalue *v = &n->attr[at];
  if (v->count) return ct_refuse(g, n, "attribute %s is given twice", r->name);
  if (a->count < 1 || a->count > r->count || (!r->varies && a->count != r->count))
    return ct_refuse(g, n, "attribute %s has %u numbers, it must have %s%u", r->name, a->count,
                     r->varies ? "1 to " : "", r->count);
  v->count = a->count;
  for (unsigned i = 0; i < a->count; ++i) {
    const int err = check_value(g, n, r, a->value[i]);
    if (err) return err;
    v->value[i] = a->value[i];
  }
  return CT_OK;
}

static int fall_back(ct_graph *g, struct ct_gnode *n, unsigned at) {
  const struct ct_attr_rule *r = &n->op->attrs[at];
  struct ct_gvalue *v = &n->attr[at];
  if (v->count) return CT_OK;
  if (isnan(r->fallback)) return ct_refuse(g, n, "attribute %s is missing", r->name);
  v->count = r->count;
  for (unsigned i = 0; i < r->count; ++i)
    v->value[i] = r->numbered ? n->index : r->fallback;
  return CT_OK;
}

static int take_attrs(ct_graph *g, struct ct_gnode *n, const struct ct_new_node *given) {
  for (size_t i = 0; i < given->attr_count; ++i) {
    const struct ct_attr *a = &given->attrs[i];
    unsigned at = 0;
    if (!a->name) return ct_refuse(g, n, "an attribute has no name");
    while (n->op->attrs && n->op->attrs[at].name && strcmp(n->op->attrs[at].name, a->name) != 0)
      ++at;
    if (!n->op->attrs || !n->op->attrs[at].name)
      return ct_refuse(g, n, "it has no attribute %.40s", a->name);
    const int err = take_attr(g, n, at, a);
    if (err) return err;
  }
  int err = CT_OK;
  for (unsigned at = 0; n->op->attrs && n->op->attrs[at].name && !err; ++at)
    err = fall_back(g, n, at);
  return err;
}

static int take_inputs(ct_graph *g, struct ct_gnode *n, const struct ct_new_node *given) {
  const struct ct_gop *op = n->op;
  if (given->input_count < op->inputs)
    return ct_refuse(g, n, "it has too few inputs: %zu, it takes %u", given->input_count,
                     op->inputs);
  if (given->input_count > (size_t)op->inputs + op->optional)
    return ct_refuse(g, n, "it has too many inputs: %zu, it takes %u at most", given->input_count,
                     op->inputs + op->optional);
  for (size_t i = 0; i < given->input_count; ++i) {
    if (given->inputs[i] == 0 && i >= op->inputs) continue;
    if (given->inputs[i] < 0 || (size_t)given->inputs[i] > g->tensors || given->inputs[i] == 0)
      return ct_refuse(g, n, "input %zu is tensor %d, the graph has 1..%zu", i, given->inputs[i],
                       g->tensors);
  }
  n->in = malloc((given->input_count + 1) * sizeof *n->in);
  if (!n->in) return no_memory(g);
  n->inputs = (uint32_t)given->input_count;
  if (n->inputs) memcpy(n->in, given->inputs, n->inputs * sizeof *n->in);
  return CT_OK;
}

/* Outputs that were declared, or new ones. */
static int take_outputs(ct_graph *g, struct ct_gnode *n, const struct ct_new_node *given) {
  const enum ct_role role = g->backward ? CT_ROLE_GRADIENT : CT_ROLE_ACTIVATION;
  for (unsigned i = 0; i < n->op->outputs; ++i) {
    char name[160];
    const int id = given->outputs ? given->outputs[i] : 0;
    if (!given->outputs) {
      if (i)
        snprintf(name, sizeof name, "%.140s:%u", n->name, i);
      else
        snprintf(name, sizeof name, "%.140s", n->name);
      n->out[i] = new_tensor(g, name, role);
      if (n->out[i] < 0) return n->out[i];
    } else if (id <= 0 || (size_t)id > g->tensors) {
      return ct_refuse(g, n, "output %u is tensor %d, the graph has 1..%zu", i, id, g->tensors);
    } else if (g->tensor[id]->role != CT_ROLE_ACTIVATION && g->tensor[id]->node < 0) {
      return ct_refuse(g, n, "tensor %s comes from outside: no node can make it",
                       g->tensor[id]->name);
    } else if (g->tensor[id]->node >= 0) {
      return ct_refuse(g, n, "tensor %s is made by node %s already", g->tensor[id]->name,
                       g->node[g->tensor[id]->node]->name);
    } else {
      n->out[i] = id;
    }
    g->tensor[n->out[i]]->node = (int)n->index; /* so that none is taken twice */
  }
  return CT_OK;
}

static int infer_if_known(ct_graph *g, const struct ct_gnode *n) {
  for (unsigned i = 0; i < n->inputs; ++i)
    if (n->in[i] && !g->tensor[n->in[i]]->elements) return CT_OK;
  return ct_graph_infer(g, n);
}

static int build(ct_graph *g, struct ct_gnode *n, const struct ct_new_node *given) {
  char made[80];
  snprintf(made, sizeof made, "%.60s%zu", given->op, g->nodes);
  n->name = strdup(given->name ? given->name : made);
  struct ct_gnode **list = grow(g->node, &g->node_room, g->nodes);
  if (list) g->node = list;
  if (!n->name || !list) return no_memory(g);
  n->index = (uint32_t)g->nodes;
  n->backward = g->backward;
  if (g->nodes >= CT_GRAPH_MOST_NODES)
    return ct_refuse(g, n, "the graph has %d nodes, which is the most", CT_GRAPH_MOST_NODES);
  int err = take_inputs(g, n, given);
  if (!err) err = take_attrs(g, n, given);
  g->node[g->nodes] = n;
  if (!err) err = take_outputs(g, n, given);
  return err ? err : infer_if_known(g, n);
}

/* What a refused node has left behind: new tensors, and marks and shapes of declared ones. */
static void take_back(ct_graph *g, const struct ct_gnode *n, size_t tensors) {
  while (g->tensors > tensors)
    free_tensor(g->tensor[g->tensors--]);
  for (unsigned i = 0; i < n->op->outputs; ++i)
    if (n->out[i] > 0 && (size_t)n->out[i] <= tensors &&
        g->tensor[n->out[i]]->node == (int)n->index)
      g->tensor[n->out[i]]->node = -1;
}

int ct_graph_add(ct_graph *g, const struct ct_new_node *given) {
  int err = ct_graph_open(g);
  if (err) return err;
  if (!given || !given->op || (given->input_count && !given->inputs) ||
      (given->attr_count && !given->attrs))
    return ct_graph_fail(g, CT_ERR_ARG, "the node, its operator, inputs or attributes are NULL");
  for (size_t i = 0; i < given->input_count; ++i)
    if (given->inputs[i] < 0) return given->inputs[i];
  const char *name = given->name ? given->name : "without name";
  if (given->reserved[0] || given->reserved[1])
    return ct_graph_fail(g, CT_ERR_ARG, "node %.80s: reserved words are not 0", name);
  const struct ct_gop *op = ct_gop_find(given->op);
  if (!op)
    return ct_graph_fail(g, CT_ERR_UNSUPPORTED, "node %.80s: there is no operator %.80s", name,
                         given->op);
  struct ct_gnode *n = calloc(1, sizeof *n);
  const size_t tensors = g->tensors;
  if (!n) return no_memory(g);
  n->op = op;
  err = build(g, n, given);
  if (err) {
    take_back(g, n, tensors);
    free_node(n);
    return err;
  }
  ++g->nodes;
  return n->out[0];
}

int ct_graph_reads(ct_graph *g, size_t node, size_t input, int tensor) {
  int err = ct_graph_open(g);
  if (!err) err = ct_graph_has(g, tensor, "an input");
  if (err) return err;
  if (node >= g->nodes)
    return ct_graph_fail(g, CT_ERR_NOT_FOUND, "the graph has no node %zu, it has %zu", node,
                         g->nodes);
  struct ct_gnode *n = g->node[node];
  if (input >= n->inputs || !n->in[input])
    return ct_refuse(g, n, "it reads nothing as input %zu", input);
  const struct ct_gtensor *from = g->tensor[n->in[input]], *to = g->tensor[tensor];
  if (!from->elements || !to->elements || !ct_shape_same(&from->shape, &to->shape))
    return ct_refuse(g, n, "input %zu is %s, it cannot be %s, which is %s", input,
                     CT_SHAPE(&from->shape), to->name, CT_SHAPE(&to->shape));
  n->in[input] = tensor;
  return tensor;
}

/* ---- Taking back --------------------------------------------------------------------------- */

static size_t count_readers(const ct_graph *g, int tensor) {
  size_t count = 0;
  for (size_t i = 0; i < g->nodes; ++i)
    for (uint32_t k = 0; k < g->node[i]->inputs; ++k)
      count += g->node[i]->in[k] == tensor;
  return count;
}

int ct_graph_flattened(const ct_graph *g, int tensor) {
  const struct ct_gtensor *flat = g->tensor[tensor];
  const struct ct_gnode *n = flat->node < 0 ? NULL : g->node[flat->node];
  if (!n || (n->op != ct_gop_find("flatten") && n->op != ct_gop_find("reshape"))) return 0;
  const struct ct_gtensor *x = g->tensor[n->in[0]];
  if (x->node >= 0 || x->role != CT_ROLE_INPUT || count_readers(g, n->in[0]) != 1) return 0;
  return flat->shape.dims == 2 && flat->shape.dim[0] == x->shape.dim[0] ? n->in[0] : 0;
}

struct ct_mark ct_graph_mark(const ct_graph *g) {
  return (struct ct_mark){g->tensors, g->nodes};
}

void ct_graph_rollback(ct_graph *g, struct ct_mark mark) {
  while (g->nodes > mark.nodes) {
    take_back(g, g->node[g->nodes - 1], g->tensors);
    free_node(g->node[--g->nodes]);
  }
  while (g->tensors > mark.tensors)
    free_tensor(g->tensor[g->tensors--]);
  for (size_t i = 1; i <= g->tensors; ++i) {
    struct ct_gtensor *t = g->tensor[i];
    if ((size_t)t->becomes > mark.tensors) t->becomes = 0;
    if ((size_t)t->gradient > mark.tensors) t->gradient = 0;
  }
}
