/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What publishing copies from a network to a version for another one: each weight and state of the
 * same name and shape, in all the ways in which it is wanted there.
 *
 * Weights of a perceptron's programs (CT_LAY_TILES) and of kernels (CT_LAY_WEIGHT) are the same
 * square tiles in the same order, but each is turned; biases are the first rows of tiles, or all.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_graph_impl.h"
#include "ct_network.h"

/* Lists being made. */
struct plan {
  ct_network *from, *to;
  struct ct_stretch *stretch;
  struct ct_turn *turn;
  size_t count, room, turns, turn_room;
};

/* Room for one more element of a list. */
static int grow(const struct plan *p, void **list, size_t count, size_t *room, size_t size) {
  if (count < *room) return CT_OK;
  const size_t more = 2 * *room + 16;
  void *all = realloc(*list, more * size);
  if (!all) return ct_fail(p->to->dev, CT_ERR_MEMORY, "no memory for the copies of a version");
  *list = all;
  *room = more;
  return CT_OK;
}

static int add(struct plan *p, uint32_t from, uint32_t to, uint64_t units) {
  const int err = grow(p, (void **)&p->stretch, p->count, &p->room, sizeof *p->stretch);
  if (!err) p->stretch[p->count++] = (struct ct_stretch){from, to, (uint32_t)units};
  return err;
}

static int add_turn(struct plan *p, const struct ct_turn *turn) {
  const int err = grow(p, (void **)&p->turn, p->turns, &p->turn_room, sizeof *p->turn);
  if (!err) p->turn[p->turns++] = *turn;
  return err;
}

static int lacks(const struct plan *p, const char *name, const char *how) {
  return ct_fail(p->to->dev, CT_ERR_UNSUPPORTED,
                 "weights cannot be published between these networks: %.80s %s", name, how);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

static bool lasts(const struct ct_lay *lay) {
  for (unsigned k = 0; k < CT_KEEPS; ++k)
    if (lay->mat.keep[k].reg && lay->mat.keep[k].reg != CT_ARG_LASTING) return false;
  return lay->kind != CT_LAY_NONE;
}

static bool same_shape(const struct ct_shape *a, const struct ct_shape *b) {
  return a->dims == b->dims && !memcmp(a->dim, b->dim, a->dims * sizeof *a->dim);
}

/* Whether each element is at the same place of the matrix. */
static bool same_order(const struct ct_lay *a, const struct ct_lay *b) {
  return a->kind == b->kind && a->mat.rows == b->mat.rows && a->mat.cols == b->mat.cols &&
         !memcmp(&a->weight, &b->weight, sizeof a->weight);
}

/* A matrix in one way of keeping. */
static int add_alike(struct plan *p, enum ct_keep keep, const struct ct_lay *from,
                     const struct ct_lay *to) {
  const struct ct_mat *m = &to->mat;
  const uint32_t tiles = ct_tiles(m->rows) * ct_tiles(m->cols);
  uint32_t a = from->mat.keep[keep].at, b = m->keep[keep].at;
  if (to->kind == CT_LAY_LINES) return add(p, a, b, (uint64_t)m->rows * to->pitch);
  if (to->kind != CT_LAY_TILES || keep != CT_KEEP_F32)
    return add(p, a, b, ct_mat_units(m->rows, m->cols, keep));
  int err = CT_OK;
  for (uint32_t i = 0; i < tiles && !err; ++i, a += from->pitch, b += to->pitch)
    err = add(p, a, b, CT_F32_TILE_UNITS);
  return err;
}

/* Weights of a kernel whose layer sees one pixel. */
static bool is_plain_weight(const struct ct_lay *lay) {
  return lay->kind == CT_LAY_WEIGHT && lay->weight.taps == 1 &&
         lay->weight.own == lay->weight.channels;
}

static bool are_turned(const struct ct_lay *a, const struct ct_lay *b) {
  return (a->kind == CT_LAY_TILES && is_plain_weight(b)) ||
         (b->kind == CT_LAY_TILES && is_plain_weight(a));
}

/* Biases: planes of which the first row counts, and a line. */
static bool are_lines(const struct ct_lay *a, const struct ct_lay *b) {
  const bool one = a->mat.rows == 1 && b->mat.rows == 1;
  return one && ((a->kind == CT_LAY_LINES && b->kind == CT_LAY_MATRIX) ||
                 (a->kind == CT_LAY_MATRIX && b->kind == CT_LAY_LINES));
}

static int add_line(struct plan *p, const struct ct_lay *from, const struct ct_lay *to) {
  const uint32_t step[2] = {from->kind == CT_LAY_LINES ? CT_F32_ROW_UNITS : CT_F32_TILE_UNITS,
                            to->kind == CT_LAY_LINES ? CT_F32_ROW_UNITS : CT_F32_TILE_UNITS};
  const uint32_t a = from->mat.keep[CT_KEEP_F32].at, b = to->mat.keep[CT_KEEP_F32].at;
  int err = CT_OK;
  for (uint32_t i = 0; i < ct_tiles(to->mat.cols) && !err; ++i)
    err = add(p, a + i * step[0], b + i * step[1], CT_F32_ROW_UNITS);
  return err;
}

/* One way of keeping of a tensor. */
static int add_keep(struct plan *p, const struct ct_gtensor *t, enum ct_keep keep,
                    const struct ct_lay *to, const struct ct_lay *from) {
  const struct ct_seat *a = &from->mat.keep[keep], *b = &to->mat.keep[keep];
  if (!a->reg) return lacks(p, t->name, "is not kept in the way that is wanted");
  if (same_order(from, to)) return add_alike(p, keep, from, to);
  if (are_turned(from, to) && keep == CT_KEEP_SQUARE)
    return add_turn(
        p, &(struct ct_turn){a->at, b->at, ct_tiles(from->mat.rows) * ct_tiles(from->mat.cols)});
  if (are_lines(from, to) && keep == CT_KEEP_F32) return add_line(p, from, to);
  return lacks(p, t->name, "lies in another order");
}

/* A tensor in all the ways in which it is wanted. */
static int add_tensor(struct plan *p, const struct ct_gtensor *t, const struct ct_lay *to,
                      const struct ct_lay *from) {
  if (!lasts(from) || !lasts(to)) return lacks(p, t->name, "does not lie with the weights");
  int err = CT_OK;
  for (unsigned k = 0; k < CT_KEEPS && !err; ++k)
    if (to->mat.keep[k].reg) err = add_keep(p, t, (enum ct_keep)k, to, from);
  return err;
}

static int by_from(const void *a, const void *b) {
  const struct ct_stretch *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

/* Neighbours on both sides are one: of a perceptron all is, the image. */
static void join(struct plan *p) {
  size_t kept = 0;
  if (!p->count) return;
  qsort(p->stretch, p->count, sizeof *p->stretch, by_from);
  for (size_t i = 1; i < p->count; ++i) {
    struct ct_stretch *last = &p->stretch[kept];
    const struct ct_stretch *s = &p->stretch[i];
    if (s->from == last->from + last->units && s->to == last->to + last->units)
      last->units += s->units;
    else
      p->stretch[++kept] = *s;
  }
  p->count = kept + 1;
}

static int plan(struct plan *p) {
  const ct_graph *to = p->to->graph;
  int err = CT_OK;
  for (size_t i = 1; i <= to->tensors && !err; ++i) {
    const struct ct_gtensor *t = to->tensor[i];
    const struct ct_lay *lay = &p->to->compiled.lay[i];
    if ((t->role != CT_ROLE_WEIGHT && t->role != CT_ROLE_STATE) || lay->kind == CT_LAY_NONE)
      continue;
    const int tensor = ct_graph_find(p->from->graph, t->name);
    if (tensor < 0) return lacks(p, t->name, "is not in the one that is copied from");
    if (!same_shape(&p->from->graph->tensor[tensor]->shape, &t->shape))
      return lacks(p, t->name, "has another shape");
    err = add_tensor(p, t, lay, &p->from->compiled.lay[tensor]);
  }
  if (!err) join(p);
  return err;
}

/* ---- Programs ------------------------------------------------------------------------------ */

void ct_copies_free(struct ct_copies *c) {
  ct_programs_free(&c->programs);
  free(c->stretch);
  free(c->turn);
  *c = (struct ct_copies){.stretch = NULL};
}

/* Programs that are under way are not replaced. */
static int check_arriving(ct_network *to) {
  const int err = to->arriving ? ct_poll(to->dev) : CT_OK;
  if (err || !to->arriving) return err;
  return ct_fail(to->dev, CT_ERR_BUSY,
                 "versions that another network publishes for this one are under way: the next can "
                 "begin when they have ended");
}

/* The same as the last time. */
static bool are_there(const struct plan *p, const struct ct_copies *c) {
  if (!c->made || c->count != p->count || c->turns != p->turns) return false;
  return (!p->count || !memcmp(c->stretch, p->stretch, p->count * sizeof *p->stretch)) &&
         (!p->turns || !memcmp(c->turn, p->turn, p->turns * sizeof *p->turn));
}

static int build(const struct plan *p, struct ct_codes *codes, const struct ct_why *why) {
  const uint32_t words = ct_window_words(p->to->dev);
  int err = ct_prog_copies(p->stretch, p->count, words, codes, why);
  for (size_t i = 0; i < p->turns && !err; ++i) {
    struct ct_codes more;
    err = ct_kernel_turn(&p->turn[i], words, &more, why);
    if (!err) err = ct_codes_append(codes, &more, why);
  }
  if (err) ct_codes_free(codes);
  return err;
}

static int make_programs(struct plan *p) {
  struct ct_copies *c = &p->to->copies;
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  struct ct_codes codes;
  int err = check_arriving(p->to);
  if (err) return err;
  ct_copies_free(c);
  err = build(p, &codes, &why);
  if (err) return ct_fail(p->to->dev, err, "%s", text);
  err = ct_programs_load(p->to->dev, &codes, &c->programs);
  if (err) return err;
  c->made = true;
  c->stretch = p->stretch;
  c->count = p->count;
  c->turn = p->turn;
  c->turns = p->turns;
  p->stretch = NULL;
  p->turn = NULL;
  return CT_OK;
}

int ct_copies_make(ct_network *from, ct_network *to) {
  struct plan list = {.from = from, .to = to};
  int err = plan(&list);
  if (!err && !are_there(&list, &to->copies)) err = make_programs(&list);
  free(list.stretch);
  free(list.turn);
  return err;
}
