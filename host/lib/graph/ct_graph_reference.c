/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs computed in double precision, node by node. What nobody reads any more is given back. */
#include <stdlib.h>
#include <string.h>

#include "ct_graph_impl.h"

struct running {
  ct_graph *g;
  const struct ct_reference *run;
  uint32_t *order;
  double **value;        /* by tensor; NULL: not there (yet, any more) */
  bool *given;           /* by tensor: the memory is the caller's */
  uint32_t *uses, *left; /* by tensor: reads of all nodes, and of those that are to come */
};

/* ---- What is given ------------------------------------------------------------------------- */

static int take_value(struct running *r, const struct ct_value *v) {
  ct_graph *g = r->g;
  const int err = ct_graph_has(g, v->tensor, "a value");
  if (err) return err;
  const struct ct_gtensor *t = g->tensor[v->tensor];
  if (!v->data) return ct_graph_fail(g, CT_ERR_ARG, "the value of tensor %.80s is NULL", t->name);
  if (v->count != t->elements)
    return ct_graph_fail(g, CT_ERR_ARG, "the value of tensor %.80s (%s) has %zu elements", t->name,
                         CT_SHAPE(&t->shape), v->count);
  if (r->given[v->tensor])
    return ct_graph_fail(g, CT_ERR_ARG, "the value of tensor %.80s is given twice", t->name);
  r->given[v->tensor] = true;
  r->value[v->tensor] = v->data;
  return CT_OK;
}

static int take_values(struct running *r) {
  int err = CT_OK;
  if (r->run->value_count && !r->run->values)
    return ct_graph_fail(r->g, CT_ERR_ARG, "the list of values is NULL");
  for (size_t i = 0; i < r->run->value_count && !err; ++i)
    err = take_value(r, &r->run->values[i]);
  for (size_t i = 1; i <= r->g->tensors && !err; ++i)
    if (r->g->tensor[i]->node < 0 && r->uses[i] && !r->given[i])
      err = ct_graph_fail(r->g, CT_ERR_ARG, "tensor %.80s comes from outside: it needs a value",
                          r->g->tensor[i]->name);
  return err;
}

static void count_uses(struct running *r) {
  const ct_graph *g = r->g;
  for (size_t i = 0; i < g->nodes; ++i)
    for (unsigned k = 0; k < g->node[i]->inputs; ++k)
      ++r->uses[g->node[i]->in[k]];
  for (size_t i = 1; i <= g->tensors; ++i)
    if (g->tensor[i]->becomes && r->run->update) {
      ++r->uses[g->tensor[i]->becomes]; /* never given back before the end */
      ++r->uses[i];
    }
  memcpy(r->left, r->uses, (g->tensors + 1) * sizeof *r->left);
}

/* ---- What it takes ------------------------------------------------------------------------- */

static bool kept(const struct running *r, int tensor) {
  return r->given[tensor] || r->left[tensor];
}

/* Doubles at once, by the steps that the run will take. */
static uint64_t most_doubles(struct running *r) {
  const ct_graph *g = r->g;
  uint64_t now = 0, most = 0;
  for (size_t i = 0; i < g->nodes; ++i) {
    const struct ct_gnode *n = g->node[r->order[i]];
    for (unsigned k = 0; k < n->op->outputs; ++k)
      if (!r->given[n->out[k]]) now += g->tensor[n->out[k]]->elements;
    if (now > most) most = now;
    for (unsigned k = 0; k < n->op->outputs; ++k)
      if (!kept(r, n->out[k])) now -= g->tensor[n->out[k]]->elements;
    for (unsigned k = 0; k < n->inputs; ++k)
      if (n->in[k] && --r->left[n->in[k]] == 0 && !r->given[n->in[k]])
        now -= g->tensor[n->in[k]]->elements;
  }
  memcpy(r->left, r->uses, (g->tensors + 1) * sizeof *r->left);
  return most;
}

static int check_cost(struct running *r) {
  const ct_graph *g = r->g;
  uint64_t work = 0;
  for (size_t i = 0; i < g->nodes; ++i) {
    const struct ct_gnode *n = g->node[i];
    const uint64_t more = n->op->work ? n->op->work(g, n) : ct_node_macs(g, n);
    work = more > CT_REFERENCE_MOST_MACS ? more : work + more;
    if (work > CT_REFERENCE_MOST_MACS)
      return ct_graph_fail(r->g, CT_ERR_NO_SPACE,
                           "node %.80s (%s): with it the reference needs more than 2^36 products",
                           n->name, n->op->name);
  }
  const uint64_t doubles = most_doubles(r);
  if (doubles <= CT_REFERENCE_MOST_DOUBLES) return CT_OK;
  return ct_graph_fail(r->g, CT_ERR_NO_SPACE,
                       "the reference would keep %llu numbers at once, %d are the most",
                       (unsigned long long)doubles, CT_REFERENCE_MOST_DOUBLES);
}

/* ---- The run ------------------------------------------------------------------------------- */

static void give_back(struct running *r, int tensor) {
  if (kept(r, tensor)) return;
  free(r->value[tensor]);
  r->value[tensor] = NULL;
}

static int make_outputs(struct running *r, const struct ct_gnode *n, double **out) {
  for (unsigned k = 0; k < n->op->outputs; ++k) {
    const uint64_t count = r->g->tensor[n->out[k]]->elements;
    double **value = &r->value[n->out[k]];
    if (!r->given[n->out[k]]) *value = calloc(count, sizeof **value);
    if (!*value)
      return ct_graph_fail(r->g, CT_ERR_MEMORY, "node %.80s (%s): no memory for its output",
                           n->name, n->op->name);
    if (r->given[n->out[k]]) memset(*value, 0, count * sizeof **value);
    out[k] = *value;
  }
  return CT_OK;
}

static int run_node(struct running *r, const struct ct_gnode *n) {
  double *out[CT_GOP_OUTPUTS];
  const double *in[CT_GOP_INPUTS];
  const int err = make_outputs(r, n, out);
  if (err) return err;
  for (unsigned k = 0; k < n->inputs; ++k)
    in[k] = n->in[k] ? r->value[n->in[k]] : NULL;
  n->op->reference(&(struct ct_ref_call){
      .g = r->g, .n = n, .in = in, .out = out, .seed = r->run->seed, .step = r->run->step});
  for (unsigned k = 0; k < n->op->outputs; ++k)
    give_back(r, n->out[k]);
  for (unsigned k = 0; k < n->inputs; ++k)
    if (n->in[k] && --r->left[n->in[k]] == 0) give_back(r, n->in[k]);
  return CT_OK;
}

static void update(struct running *r) {
  for (size_t i = 1; i <= r->g->tensors; ++i) {
    const struct ct_gtensor *t = r->g->tensor[i];
    if (t->becomes) memcpy(r->value[i], r->value[t->becomes], t->elements * sizeof(double));
  }
}

static int run_all(struct running *r) {
  count_uses(r);
  int err = take_values(r);
  if (!err) err = check_cost(r);
  for (size_t i = 0; i < r->g->nodes && !err; ++i)
    err = run_node(r, r->g->node[r->order[i]]);
  if (!err && r->run->update) update(r);
  for (size_t i = 1; i <= r->g->tensors; ++i)
    if (!r->given[i]) free(r->value[i]);
  return err;
}

int ct_graph_run_reference(ct_graph *g, const struct ct_reference *run) {
  if (!g) return CT_ERR_ARG;
  if (!run) return ct_graph_fail(g, CT_ERR_ARG, "the run is NULL");
  if (!g->checked)
    return ct_graph_fail(g, CT_ERR_ARG, "the graph was not checked: ct_graph_check() does that");
  for (size_t i = 0; i < sizeof run->reserved / sizeof *run->reserved; ++i)
    if (run->reserved[i])
      return ct_graph_fail(g, CT_ERR_ARG, "reserved[%zu] of struct ct_reference is not 0", i);
  const size_t n = g->tensors + 1;
  struct running r = {.g = g,
                      .run = run,
                      .value = calloc(n, sizeof *r.value),
                      .given = calloc(n, sizeof *r.given),
                      .uses = calloc(n, sizeof *r.uses),
                      .left = calloc(n, sizeof *r.left)};
  int err = CT_OK;
  if (!r.value || !r.given || !r.uses || !r.left)
    err = ct_graph_fail(g, CT_ERR_MEMORY, "no memory for the reference");
  if (!err) err = ct_graph_sort(g, &r.order);
  if (!err) err = run_all(&r);
  free(r.order);
  free(r.value);
  free(r.given);
  free(r.uses);
  free(r.left);
  return err;
}
