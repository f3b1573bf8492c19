/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks that have the weights of another one: what lasts of them is in its memory.
 *
 * All that a network has there (weights, states, constants) must be in the other one, too, at the
 * same place and kept in the same way; it may lack ways of keeping that the other one has, unless
 * it changes it, since these would keep what was. What a run leaves there besides, values that are
 * made of weights once and masks of dropout, would be another one's: so there is none.
 */
#include <string.h>

#include "ct_graph_impl.h"
#include "ct_network.h"

static int refuse(const ct_network *n, const char *what, const char *how) {
  return ct_fail(n->dev, CT_ERR_UNSUPPORTED,
                 "the network cannot have the weights of the other: %.80s %s", what, how);
}

static bool lasts(const struct ct_seat *seat) {
  return seat->reg == CT_ARG_LASTING;
}

/* Each way of keeping is there, too, and has the same places. all: and there are no others. */
static bool same_places(const struct ct_lay *a, const struct ct_lay *b, bool all) {
  for (unsigned k = 0; k < CT_KEEPS; ++k) {
    const struct ct_seat *x = &a->mat.keep[k], *y = &b->mat.keep[k];
    if (lasts(x) && (!lasts(y) || x->at != y->at)) return false;
    if (all && lasts(y) && !lasts(x)) return false;
  }
  return a->kind == b->kind && a->mat.rows == b->mat.rows && a->mat.cols == b->mat.cols &&
         a->pitch == b->pitch && !memcmp(&a->weight, &b->weight, sizeof a->weight);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

static bool is_kept(const struct ct_lay *lay) {
  bool any = false;
  for (unsigned k = 0; k < CT_KEEPS; ++k)
    any |= lasts(&lay->mat.keep[k]);
  return lay->kind != CT_LAY_NONE && any;
}

/* Graphs that come of each other have them under the same numbers. */
static int find_like(ct_graph *g, size_t number, const char *name) {
  if (number <= g->tensors && !strcmp(g->tensor[number]->name, name)) return (int)number;
  return ct_graph_find(g, name);
}

static int fit_tensor(const ct_network *n, size_t i, const ct_network *in) {
  const struct ct_gtensor *t = n->graph->tensor[i];
  if (t->role != CT_ROLE_WEIGHT && t->role != CT_ROLE_STATE)
    return refuse(n, t->name, "lies with the weights");
  const int other = find_like(in->graph, i, t->name);
  if (other < 0) return refuse(n, t->name, "is not in it");
  const struct ct_shape *a = &t->shape, *b = &in->graph->tensor[other]->shape;
  if (a->dims != b->dims || memcmp(a->dim, b->dim, a->dims * sizeof *a->dim) != 0)
    return refuse(n, t->name, "has another shape there");
  const bool all = t->becomes; /* who changes it has to change it everywhere */
  if (same_places(&n->compiled.lay[i], &in->compiled.lay[other], all)) return CT_OK;
  return refuse(n, t->name, "is kept in another way there");
}

/* ---- What else lasts ----------------------------------------------------------------------- */

static bool has_constant(const ct_network *in, const struct ct_constant *k) {
  for (size_t i = 0; i < in->compiled.constants; ++i) {
    const struct ct_constant *other = &in->compiled.constant[i];
    if (other->value == k->value && same_places(&k->lay, &other->lay, false)) return true;
  }
  return false;
}

/* The first stage that runs once; NULL: there is none. */
static const char *runs_once(const ct_network *n) {
  for (size_t i = 0; i < n->compiled.stages; ++i)
    if (n->compiled.stage[i].once) return n->compiled.stage[i].node;
  return NULL;
}

static int fit_rest(const ct_network *n, const ct_network *in) {
  const char *once = runs_once(n);
  if (once) return refuse(n, once, "makes something of the weights, beside them");
  if (n->compiled.masks) return refuse(n, "its dropout", "has masks, beside them");
  for (size_t i = 0; i < n->compiled.constants; ++i)
    if (!has_constant(in, &n->compiled.constant[i]))
      return refuse(n, "one of its constants", "is not in it");
  return CT_OK;
}

int ct_network_fits(const ct_network *n, const ct_network *in) {
  if (n->narrow != in->narrow) return refuse(n, "its mantissas", "have another width there");
  if (n->members > 1 || in->members > 1) return refuse(n, "one of the two", "has several members");
  int err = fit_rest(n, in);
  for (size_t i = 1; i <= n->compiled.tensors && !err; ++i)
    if (is_kept(&n->compiled.lay[i])) err = fit_tensor(n, i, in);
  return err;
}

int ct_network_join(ct_network *n, ct_network *of) {
  int err = ct_network_fits(n, of);
  if (!err && runs_once(of)) err = refuse(n, runs_once(of), "makes something of them, beside them");
  if (!err && of->compiled.masks) err = refuse(n, "the other's dropout", "has masks, beside them");
  if (err) return err;
  n->live = of->live;
  n->borrows = true;
  ++n->live->refs;
  return CT_OK;
}
