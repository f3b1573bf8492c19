/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which graphs are perceptrons. The layers are read from the logits back; then the graph that
 * ct_graph_mlp() and ct_graph_optimise() make of them is built, and each of its nodes has to have
 * its like here: the same operator, the same attributes, on the same tensors. So nothing has to be
 * known of how gradients and updates are written down.
 */
#include "ct_graph_perceptron.h"

#include <stdlib.h>
#include <string.h>

#include "ct_graph_impl.h"

/* The node that makes a tensor, if it is of that operator. */
static const struct ct_gnode *made_by(const ct_graph *g, int tensor, const char *op) {
  const int node = tensor > 0 ? g->tensor[tensor]->node : -1;
  if (node < 0 || g->node[node]->op != ct_gop_find(op)) return NULL;
  return g->node[node];
}

static bool is_given(const ct_graph *g, int tensor, enum ct_role role, uint32_t dims) {
  const struct ct_gtensor *t = g->tensor[tensor];
  return t->node < 0 && t->role == role && t->shape.dims == dims;
}

/* ---- What is there ------------------------------------------------------------------------- */

/* A layer in front of those that were read before. */
static bool add_layer(const ct_graph *g, const struct ct_gnode *n, struct ct_perceptron *p) {
  if (!n || !ct_has(n, 2) || p->layers == CT_MAX_LAYERS) return false;
  if (!is_given(g, n->in[1], CT_ROLE_WEIGHT, 2) || !is_given(g, n->in[2], CT_ROLE_WEIGHT, 1))
    return false;
  memmove(p->w + 1, p->w, p->layers * sizeof *p->w);
  memmove(p->b + 1, p->b, p->layers * sizeof *p->b);
  memmove(p->width + 1, p->width, (p->layers + 1) * sizeof *p->width);
  p->w[0] = n->in[1];
  p->b[0] = n->in[2];
  p->width[0] = ct_in(g, n, 1)->dim[1];
  p->width[1] = ct_in(g, n, 1)->dim[0];
  ++p->layers;
  return true;
}

static bool read_layers(const ct_graph *g, struct ct_perceptron *p) {
  const struct ct_gnode *relu = NULL;
  int t = p->logits;
  do {
    const struct ct_gnode *n = made_by(g, t, "linear");
    if (!add_layer(g, n, p)) return false;
    t = n->in[0];
    relu = made_by(g, t, "relu");
    if (relu) t = relu->in[0];
  } while (relu);
  p->flat = t;
  return true;
}

static bool read_input(const ct_graph *g, struct ct_perceptron *p) {
  const struct ct_shape *rows = &g->tensor[p->flat]->shape;
  p->x = ct_graph_flattened(g, p->flat);
  if (!p->x) p->x = p->flat;
  p->batch = rows->dim[0];
  const struct ct_gtensor *x = g->tensor[p->x];
  return rows->dims == 2 && x->node < 0 && x->role == CT_ROLE_INPUT;
}

/* The states of an update, and what all of them share. */
enum { MOMENTUM, DECAY };
static const struct ct_gnode *update_of(const ct_graph *g, int weight, int *state) {
  const struct ct_gnode *n = made_by(g, g->tensor[weight]->becomes, "sgd");
  *state = n ? n->in[2] : 0;
  if (!n || g->tensor[*state]->node >= 0 || g->tensor[*state]->role != CT_ROLE_STATE) return NULL;
  return n;
}

enum { KIND, BASE, WARMUP, PERIOD, FACTOR, FLOOR };
static bool read_updates(const ct_graph *g, struct ct_perceptron *p) {
  const struct ct_gnode *n = NULL;
  for (uint32_t l = p->layers; l-- > 0;)
    if (!update_of(g, p->b[l], &p->vb[l]) || !(n = update_of(g, p->w[l], &p->vw[l]))) return false;
  const struct ct_gnode *rate = n ? made_by(g, n->in[3], "rate") : NULL;
  if (!rate) return false;
  p->momentum = ct_attr(n, MOMENTUM, 0);
  p->decay = ct_attr(n, DECAY, 0);
  p->schedule = (struct ct_schedule){.rate = ct_attr(rate, BASE, 0),
                                     .kind = (enum ct_schedule_kind)ct_attr_u32(rate, KIND, 0),
                                     .warmup = ct_attr_u32(rate, WARMUP, 0),
                                     .period = ct_attr_u32(rate, PERIOD, 0),
                                     .factor = ct_attr(rate, FACTOR, 0),
                                     .floor = ct_attr(rate, FLOOR, 0)};
  return true;
}

/* The only loss, and what goes into it. */
static bool read_loss(const ct_graph *g, struct ct_perceptron *p) {
  const struct ct_gop *op = ct_gop_find("cross_entropy");
  for (size_t i = 0; i < g->nodes; ++i) {
    const struct ct_gnode *n = g->node[i];
    if (n->op != op) continue;
    if (p->loss) return false;
    p->loss = n->out[0];
    p->logits = n->in[0];
    p->y = n->in[1];
  }
  return p->loss && g->tensor[p->y]->node < 0;
}

static size_t count_becoming(const ct_graph *g) {
  size_t count = 0;
  for (size_t t = 1; t <= g->tensors; ++t)
    count += g->tensor[t]->becomes != 0;
  return count;
}

/* Of several outputs the last; that it is the only one is looked at later. */
static int find_output(const ct_graph *g) {
  int output = 0;
  for (size_t t = 1; t <= g->tensors; ++t)
    if (g->tensor[t]->role == CT_ROLE_OUTPUT) output = (int)t;
  return output;
}

static bool describe(const ct_graph *g, struct ct_perceptron *p) {
  *p = (struct ct_perceptron){.trains = count_becoming(g) > 0};
  if (!p->trains) p->logits = find_output(g);
  if (p->trains && !read_loss(g, p)) return false;
  p->quiet = p->trains && g->tensor[p->logits]->role != CT_ROLE_OUTPUT;
  return read_layers(g, p) && read_input(g, p) && (!p->trains || read_updates(g, p));
}

/* A format counts for what a run makes and for inputs. */
static bool has_format(const struct ct_gtensor *t) {
  const bool counts = t->role != CT_ROLE_WEIGHT && t->role != CT_ROLE_STATE;
  return counts && t->role != CT_ROLE_OUTPUT && t->format != CT_FORMAT_FP32;
}

/* Nothing else is asked for, nothing is to be kept in another way, and nothing else lasts. */
static bool is_all(const ct_graph *g, const struct ct_perceptron *p) {
  for (size_t t = 1; t <= g->tensors; ++t) {
    const bool asked = g->tensor[t]->role == CT_ROLE_OUTPUT;
    if ((asked && (int)t != p->logits && (int)t != p->loss) || has_format(g->tensor[t]))
      return false;
  }
  return count_becoming(g) == (p->trains ? 4 * (size_t)p->layers : 0);
}

/* ---- The same graph ------------------------------------------------------------------------ */

/* A graph that is built, and where its tensors are in the one that is looked at. */
struct likeness {
  const ct_graph *of;
  ct_graph *built;
  int *like;   /* by tensor of `built`; 0: not known yet */
  bool *taken; /* by tensor of `of` */
};

static bool pair(struct likeness *k, int built, int of) {
  if (k->taken[of]) return false;
  k->taken[of] = true;
  k->like[built] = of;
  return true;
}

static bool same_attrs(const struct ct_gnode *a, const struct ct_gnode *b) {
  for (unsigned i = 0; a->op->attrs && a->op->attrs[i].name; ++i) {
    if (a->attr[i].count != b->attr[i].count) return false;
    for (uint32_t k = 0; k < a->attr[i].count; ++k)
      if (a->attr[i].value[k] != b->attr[i].value[k]) return false;
  }
  return true;
}

static bool is_like(const struct likeness *k, const struct ct_gnode *built,
                    const struct ct_gnode *of) {
  if (built->op != of->op || built->inputs != of->inputs || k->taken[of->out[0]]) return false;
  for (uint32_t i = 0; i < built->inputs; ++i)
    if (ct_has(built, i) != ct_has(of, i) || (ct_has(of, i) && k->like[built->in[i]] != of->in[i]))
      return false;
  return same_attrs(built, of);
}

/* Nodes come behind what they read. */
static bool pair_nodes(struct likeness *k) {
  for (size_t i = 0; i < k->built->nodes; ++i) {
    const struct ct_gnode *n = k->built->node[i], *found = NULL;
    for (size_t j = 0; j < k->of->nodes && !found; ++j)
      if (is_like(k, n, k->of->node[j])) found = k->of->node[j];
    for (uint32_t o = 0; found && o < n->op->outputs; ++o)
      if (!pair(k, n->out[o], found->out[o])) return false;
    if (!found) return false;
  }
  return true;
}

static bool pair_given(struct likeness *k, const struct ct_perceptron *built,
                       const struct ct_perceptron *of) {
  bool fits = pair(k, built->flat, of->flat);
  if (of->trains) fits = fits && pair(k, built->y, of->y);
  for (uint32_t l = 0; l < of->layers; ++l) {
    fits = fits && pair(k, built->w[l], of->w[l]) && pair(k, built->b[l], of->b[l]);
    if (of->trains)
      fits = fits && pair(k, built->vw[l], of->vw[l]) && pair(k, built->vb[l], of->vb[l]);
  }
  return fits;
}

/* What lasts becomes the same. */
static bool same_values(const struct likeness *k) {
  for (size_t t = 1; t <= k->built->tensors; ++t) {
    const int becomes = k->built->tensor[t]->becomes;
    if (becomes && k->of->tensor[k->like[t]]->becomes != k->like[becomes]) return false;
  }
  return true;
}

int ct_graph_perceptron_make(const struct ct_perceptron *p, ct_graph **graph) {
  const struct ct_optimise how = {
      .schedule = p->schedule, .momentum = p->momentum, .weight_decay = p->decay};
  ct_graph *g = NULL;
  int err = ct_graph_create(&g);
  if (!err) err = ct_graph_mlp(g, p->width, p->layers, p->batch, p->trains);
  if (!err && p->quiet) g->tensor[ct_graph_find(g, "logits")]->role = CT_ROLE_ACTIVATION;
  if (!err && p->trains) err = ct_graph_optimise(g, ct_graph_find(g, "loss"), &how);
  if (!err) err = ct_graph_check(g);
  *graph = err ? NULL : g;
  if (err) ct_graph_free(g);
  return err;
}

static int compare(struct likeness *k, const struct ct_perceptron *of) {
  struct ct_perceptron built;
  k->like = calloc(k->built->tensors + 1, sizeof *k->like);
  k->taken = calloc(k->of->tensors + 1, sizeof *k->taken);
  const bool room = k->like && k->taken;
  const bool same = room && describe(k->built, &built) && pair_given(k, &built, of) &&
                    pair_nodes(k) && same_values(k);
  free(k->like);
  free(k->taken);
  return room ? same : CT_ERR_MEMORY;
}

int ct_graph_perceptron(const ct_graph *g, struct ct_perceptron *p) {
  if (!g->checked || !describe(g, p) || !is_all(g, p)) return 0;
  struct likeness k = {.of = g};
  int err = ct_graph_perceptron_make(p, &k.built);
  if (err) return err == CT_ERR_MEMORY ? err : 0;
  err = compare(&k, p);
  ct_graph_free(k.built);
  return err;
}

/* ---- In front of a larger graph ------------------------------------------------------------ */

static size_t readers_of(const ct_graph *g, int tensor) {
  size_t count = g->tensor[tensor]->role == CT_ROLE_OUTPUT;
  for (size_t i = 0; i < g->nodes; ++i)
    for (uint32_t k = 0; k < g->node[i]->inputs; ++k)
      count += g->node[i]->in[k] == tensor;
  return count;
}

/* For the next node alone, and kept as it comes. */
static bool is_between(const ct_graph *g, int tensor) {
  return readers_of(g, tensor) == 1 && !has_format(g->tensor[tensor]);
}

static bool is_own(const ct_graph *g, const struct ct_perceptron *p) {
  int t = p->logits;
  bool own = !has_format(g->tensor[t]);
  for (uint32_t l = p->layers; l-- > 0 && own;) {
    own = readers_of(g, p->w[l]) == 1 && readers_of(g, p->b[l]) == 1;
    t = g->node[g->tensor[t]->node]->in[0];
    own = own && is_between(g, t);
    if (!l || !own) break;
    t = g->node[g->tensor[t]->node]->in[0];
    own = is_between(g, t);
  }
  return own && is_between(g, p->x);
}

bool ct_graph_front(const ct_graph *g, struct ct_perceptron *p) {
  bool found = false;
  if (!g->checked || count_becoming(g)) return false;
  for (size_t i = 0; i < g->nodes; ++i) {
    struct ct_perceptron one = {.logits = g->node[i]->out[0]};
    if (!read_layers(g, &one) || !read_input(g, &one) || one.layers < 2 || !is_own(g, &one))
      continue;
    if (!found || one.layers > p->layers) *p = one;
    found = true;
  }
  return found;
}
