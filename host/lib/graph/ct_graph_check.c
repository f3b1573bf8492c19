/* SPDX-License-Identifier: Apache-2.0 */
/* Order, missing shapes, and what is wrong with a graph as a whole. */
#include <stdlib.h>
#include <string.h>

#include "ct_graph_impl.h"

/* ---- Order --------------------------------------------------------------------------------- */

/* Nodes wait for the inputs that other nodes make; those that wait for none are in a heap, the one
 * that was added first on top. */
struct sorting {
  ct_graph *g;
  uint32_t *missing;         /* by node */
  uint32_t *first, *readers; /* the readers of tensor t are readers[first[t] .. first[t + 1]) */
  uint32_t *heap, heaped;
  uint32_t *order, done;
};

static void push(struct sorting *s, uint32_t node) {
  uint32_t at = s->heaped++;
  for (; at && s->heap[(at - 1) / 2] > node; at = (at - 1) / 2)
    s->heap[at] = s->heap[(at - 1) / 2];
  s->heap[at] = node;
}

static uint32_t pop(struct sorting *s) {
  const uint32_t top = s->heap[0], last = s->heap[--s->heaped];
  uint32_t at = 0;
  for (uint32_t child = 1; child < s->heaped; child = 2 * at + 1) {
    if (child + 1 < s->heaped && s->heap[child + 1] < s->heap[child]) ++child;
    if (s->heap[child] >= last) break;
    s->heap[at] = s->heap[child];
    at = child;
  }
  s->heap[at] = last;
  return top;
}

static bool waits_for(const ct_graph *g, int tensor) {
  return tensor > 0 && g->tensor[tensor]->node >= 0;
}

static void note_readers(struct sorting *s) {
  const ct_graph *g = s->g;
  for (size_t i = 0; i < g->nodes; ++i)
    for (unsigned k = 0; k < g->node[i]->inputs; ++k)
      if (waits_for(g, g->node[i]->in[k])) {
        ++s->missing[i];
        ++s->first[g->node[i]->in[k]];
      }
  for (size_t t = 1; t <= g->tensors + 1; ++t) /* ends; what follows makes them beginnings */
    s->first[t] += s->first[t - 1];
  for (size_t i = g->nodes; i-- > 0;)
    for (unsigned k = g->node[i]->inputs; k-- > 0;)
      if (waits_for(g, g->node[i]->in[k])) s->readers[--s->first[g->node[i]->in[k]]] = (uint32_t)i;
}

/* Some node that waits for ever waits for another that does: after as many steps as there are nodes
 * one is in the circle. */
static int name_cycle(const struct sorting *s) {
  ct_graph *g = s->g;
  uint32_t at = 0;
  while (!s->missing[at])
    ++at;
  for (size_t step = 0; step < g->nodes; ++step)
    for (unsigned k = 0; k < g->node[at]->inputs; ++k)
      if (waits_for(g, g->node[at]->in[k]) && s->missing[g->tensor[g->node[at]->in[k]]->node]) {
        at = (uint32_t)g->tensor[g->node[at]->in[k]]->node;
        break;
      }
  return ct_refuse(g, g->node[at], "it needs its own output: the graph is cyclic");
}

static void sort_all(struct sorting *s) {
  const ct_graph *g = s->g;
  for (size_t i = 0; i < g->nodes; ++i)
    if (!s->missing[i]) push(s, (uint32_t)i);
  while (s->heaped) {
    const uint32_t node = pop(s);
    s->order[s->done++] = node;
    for (unsigned k = 0; k < g->node[node]->op->outputs; ++k) {
      const int t = g->node[node]->out[k];
      for (uint32_t r = s->first[t]; r < s->first[t + 1]; ++r)
        if (--s->missing[s->readers[r]] == 0) push(s, s->readers[r]);
    }
  }
}

int ct_graph_sort(ct_graph *g, uint32_t **order) {
  size_t inputs = 1;
  for (size_t i = 0; i < g->nodes; ++i)
    inputs += g->node[i]->inputs;
  struct sorting s = {.g = g,
                      .missing = calloc(g->nodes + 1, sizeof *s.missing),
                      .first = calloc(g->tensors + 2, sizeof *s.first),
                      .readers = calloc(inputs, sizeof *s.readers),
                      .heap = calloc(g->nodes + 1, sizeof *s.heap),
                      .order = calloc(g->nodes + 1, sizeof *s.order)};
  int err = CT_OK;
  if (!s.missing || !s.first || !s.readers || !s.heap || !s.order) {
    err = ct_graph_fail(g, CT_ERR_MEMORY, "no memory to sort the graph");
  } else {
    note_readers(&s);
    sort_all(&s);
    if (s.done < g->nodes) err = name_cycle(&s);
  }
  free(s.missing);
  free(s.first);
  free(s.readers);
  free(s.heap);
  if (err) free(s.order);
  *order = err ? NULL : s.order;
  return err;
}

int ct_graph_order(ct_graph *g, uint32_t *order, size_t count) {
  uint32_t *all;
  if (!g || (count && !order)) return CT_ERR_ARG;
  const int err = ct_graph_sort(g, &all);
  if (err) return err;
  const size_t n = count < g->nodes ? count : g->nodes;
  if (n) memcpy(order, all, n * sizeof *order);
  free(all);
  return (int)g->nodes;
}

int ct_graph_infer_all(ct_graph *g, const uint32_t *order) {
  int err = CT_OK;
  for (size_t i = 0; i < g->nodes && !err; ++i) {
    const struct ct_gnode *n = g->node[order[i]];
    for (unsigned k = 0; k < n->inputs; ++k)
      if (n->in[k] && !g->tensor[n->in[k]]->elements)
        return ct_refuse(g, n, "its input %s is made by no node", g->tensor[n->in[k]]->name);
    err = ct_graph_infer(g, n);
  }
  return err;
}

/* ---- Check --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
  const struct ct_gtensor *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static int check_names(ct_graph *g) {
  const size_t n = g->tensors;
  const size_t each =
      sizeof(struct ct_gtensor *); /* NOLINT(bugprone-sizeof-expression): of pointers */
  struct ct_gtensor **all = malloc((n + 1) * each);
  if (!all) return ct_graph_fail(g, CT_ERR_MEMORY, "no memory to check the graph");
  int err = CT_OK;
  if (n) memcpy(all, g->tensor + 1, n * each);
  if (n) qsort(all, n, each, by_name);
  for (size_t i = 1; i < n && !err; ++i)
    if (!strcmp(all[i]->name, all[i - 1]->name))
      err = ct_graph_fail(g, CT_ERR_ARG, "two tensors are called %.80s: names must differ",
                          all[i]->name);
  free(all);
  return err;
}

static int check_tensor(ct_graph *g, const struct ct_gtensor *t) {
  if (t->node < 0 && t->role >= CT_ROLE_ACTIVATION)
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %.80s is made by no node", t->name);
  if (t->becomes && g->tensor[t->becomes]->node < 0)
    return ct_graph_fail(g, CT_ERR_ARG, "tensor %.80s becomes %.80s, which is made by no node",
                         t->name, g->tensor[t->becomes]->name);
  if (!t->becomes || ct_shape_same(&t->shape, &g->tensor[t->becomes]->shape)) return CT_OK;
  return ct_graph_fail(g, CT_ERR_ARG, "tensor %.80s is %s: it cannot become %.80s, which is %s",
                       t->name, CT_SHAPE(&t->shape), g->tensor[t->becomes]->name,
                       CT_SHAPE(&g->tensor[t->becomes]->shape));
}

int ct_graph_check(ct_graph *g) {
  if (!g) return CT_ERR_ARG;
  if (g->checked) return CT_OK;
  if (!g->nodes) return ct_graph_fail(g, CT_ERR_ARG, "the graph has no nodes");
  uint32_t *order;
  int err = ct_graph_sort(g, &order);
  if (err) return err;
  err = ct_graph_infer_all(g, order);
  free(order);
  for (size_t i = 1; i <= g->tensors && !err; ++i)
    err = check_tensor(g, g->tensor[i]);
  if (!err) err = check_names(g);
  g->checked = !err;
  return err;
}
