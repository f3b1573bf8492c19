/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that say that a tensor has another shape or order, that put tensors together or cut
 * them, and sums over what was repeated. */
#include <stdlib.h>

#include "ct_compile_impl.h"

/* ---- Shapes -------------------------------------------------------------------------------- */

/* An output of that value has to be copied: it is the caller's on both sides, or planes of another
 * one, which have no place of their own. */
static bool needs_copy(const struct ct_val *v) {
  return v->step == CT_FROM_START || v->within != CT_NO_VALUE;
}

static void give_as_it_is(struct ct_compiler *c, const struct ct_gnode *n, int x) {
  if (needs_copy(&c->value[x]) && c->g->tensor[n->out[0]]->role == CT_ROLE_OUTPUT) {
    struct ct_tiles t = ct_tiles_apart(c, n, c->value[x].rows, c->value[x].cols, false);
    ct_give(&t, n, 0, ct_tiles_axpb(&t, ct_tiles_in(&t, x), 1, 0), x);
  } else {
    ct_value_is(c, n->out[0], x);
  }
}

/* The elements stay where they are; who reads them looks whether that is what he needs. */
static void same_place(struct ct_compiler *c, const struct ct_gnode *n) {
  /* An input that is read so and in no other way is brought in so. */
  if (ct_graph_flattened(c->g, n->out[0]) && c->value_of[n->in[0]] == CT_NO_VALUE)
    ct_value_given(c, n->in[0], ct_out(c->g, n, 0));
  const int x = ct_value_in(c, n, 0);
  if (!c->error) give_as_it_is(c, n, x);
}
void ct_lower_op_reshape(struct ct_compiler *c, const struct ct_gnode *n) {
  same_place(c, n);
}
void ct_lower_op_flatten(struct ct_compiler *c, const struct ct_gnode *n) {
  same_place(c, n);
}

/* The value of a move is that of the node's output. */
static void give_moved(struct ct_compiler *c, const struct ct_gnode *n, int value) {
  const int y = ct_moved(c, n, value, ct_out(c->g, n, 0));
  ct_value_is(c, n->out[0], y);
}

void ct_lower_op_transpose(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *s = ct_in(c->g, n, 0);
  uint32_t perm[CT_GRAPH_DIMS];
  const int x = ct_value_plain_in(c, n, 0);
  if (c->error || x == CT_NO_VALUE) return;
  for (uint32_t i = 0; i < s->dims; ++i)
    perm[i] = ct_attr_u32(n, 0, i);
  give_moved(c, n, ct_permuted(c, n, x, s, perm));
}

/* ---- Tensors beside each other, and parts of them ------------------------------------------ */

/* Along the last dimension whole planes need not be turned; the last piece may be less. */
static bool whole_planes(const struct ct_shape *s, uint32_t axis, uint32_t channels) {
  return axis == s->dims - 1 && channels % CT_TILE == 0;
}

/* Pieces are made in planes of y. */
static void concat_planes(struct ct_compiler *c, const struct ct_gnode *n, const int *x) {
  const struct ct_shape *ys = ct_out(c->g, n, 0);
  const int y = ct_value_like(c, x[0]);
  if (c->error) return;
  c->value[y].cols = ct_shape_cols(ys);
  for (unsigned i = 0, plane = 0; i < n->inputs && !c->error; ++i) {
    const int part = ct_value_like(c, x[i]);
    struct ct_tiles t = ct_tiles_apart(c, n, c->value[x[i]].rows, c->value[x[i]].cols, false);
    ct_tiles_make(&t, ct_tiles_axpb(&t, ct_tiles_in(&t, x[i]), 1, 0), part);
    if (c->error) return;
    c->value[part].within = y;
    c->value[part].plane = plane;
    c->value[y].step = c->value[part].step;
    c->value[y].apart = true;
    plane += ct_tiles(c->value[x[i]].cols);
  }
  ct_value_is(c, n->out[0], y);
}

static void concat_rows(struct ct_compiler *c, const struct ct_gnode *n, const int *x,
                        uint32_t axis) {
  struct ct_part *part = calloc(n->inputs, sizeof *part);
  if (!part) {
    ct_compile_no_memory(c);
    return;
  }
  for (unsigned i = 0, begin = 0; i < n->inputs; ++i) {
    part[i] = (struct ct_part){x[i], begin, ct_in(c->g, n, i)->dim[axis]};
    begin += part[i].size;
  }
  give_moved(c, n, ct_whole_of(c, n, part, n->inputs, ct_out(c->g, n, 0), axis));
  free(part);
}

enum { PART_AXIS, PART_BEGIN, PART_SIZE };
void ct_lower_op_concat(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *ys = ct_out(c->g, n, 0);
  const uint32_t axis = ct_attr_u32(n, PART_AXIS, 0);
  int *x = calloc(n->inputs + 1, sizeof *x);
  bool planes = axis == ys->dims - 1, there = true;
  if (!x) {
    ct_compile_no_memory(c);
    return;
  }
  for (unsigned i = 0; i < n->inputs && !c->error; ++i) {
    x[i] = ct_value_plain_in(c, n, i);
    there = there && x[i] != CT_NO_VALUE;
    planes = planes && (i + 1 == n->inputs || whole_planes(ys, axis, ct_in(c->g, n, i)->dim[axis]));
  }
  if (!c->error && there && planes)
    concat_planes(c, n, x);
  else if (!c->error && there)
    concat_rows(c, n, x, axis);
  free(x);
}

static void slice_planes(struct ct_compiler *c, const struct ct_gnode *n, int x) {
  const int part = ct_value_like(c, x);
  if (c->error) return;
  struct ct_val *v = &c->value[part];
  const struct ct_val *whole = &c->value[x];
  v->cols = ct_attr_u32(n, PART_SIZE, 0);
  v->within = whole->within == CT_NO_VALUE ? x : whole->within;
  v->plane = whole->plane + ct_attr_u32(n, PART_BEGIN, 0) / CT_TILE;
  v->step = whole->step;
  v->apart = true;
  v->place = whole->place;
  if (c->g->tensor[n->out[0]]->role != CT_ROLE_OUTPUT) {
    ct_value_is(c, n->out[0], part);
    return;
  }
  struct ct_tiles t = ct_tiles_apart(c, n, v->rows, v->cols, false);
  ct_give(&t, n, 0, ct_tiles_axpb(&t, ct_tiles_in(&t, part), 1, 0), part);
}

void ct_lower_op_slice(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *s = ct_in(c->g, n, 0);
  const uint32_t axis = ct_attr_u32(n, PART_AXIS, 0), begin = ct_attr_u32(n, PART_BEGIN, 0),
                 size = ct_attr_u32(n, PART_SIZE, 0);
  const int x = ct_value_plain_in(c, n, 0);
  if (c->error || x == CT_NO_VALUE) return;
  if (whole_planes(s, axis, begin) && (begin + size == s->dim[axis] || size % CT_TILE == 0))
    slice_planes(c, n, x);
  else
    give_moved(c, n, ct_part_of(c, n, &(struct ct_part){x, begin, size}, s, axis));
}

/* Zeros on both sides. */
void ct_lower_op_slice_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *s = ct_out(c->g, n, 0);
  const uint32_t axis = ct_attr_u32(n, PART_AXIS, 0), begin = ct_attr_u32(n, PART_BEGIN, 0),
                 size = ct_in(c->g, n, 0)->dim[axis], end = begin + size;
  const int x = ct_value_plain_in(c, n, 0);
  struct ct_part part[3];
  unsigned parts = 0;
  if (c->error || x == CT_NO_VALUE) return;
  if (begin) part[parts++] = (struct ct_part){CT_NO_VALUE, 0, begin};
  part[parts++] = (struct ct_part){x, begin, size};
  if (end < s->dim[axis]) part[parts++] = (struct ct_part){CT_NO_VALUE, end, s->dim[axis] - end};
  give_moved(c, n, ct_whole_of(c, n, part, parts, s, axis));
}

void ct_lower_op_fill(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *s = ct_out(c->g, n, 0);
  const float number = (float)ct_attr(n, 1, 0);
  const int x = ct_value_constant(c, ct_shape_rows(s), ct_shape_cols(s), number);
  if (!c->error) give_as_it_is(c, n, x);
}

/* ---- Sums over what was repeated ----------------------------------------------------------- */

/* Sums of the last dimension come first. Then rows, in the order of the tensor: where those that
 * are summed do not lie side by side they are brought there. */
static void sum_repeated(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *s = ct_in(c->g, n, 0), *to = ct_out(c->g, n, 0);
  const uint32_t last = s->dims - 1, ahead = s->dims - to->dims;
  struct ct_sum_of sum = {
      .x = ct_value_plain_in(c, n, 0), .less = CT_NO_VALUE, .times = CT_NO_VALUE, .scale = 1};
  struct ct_shape rows = *s;
  uint32_t perm[CT_GRAPH_DIMS], kept = 0, at = 0;
  if (c->error || sum.x == CT_NO_VALUE) return;
  if (to->dim[to->dims - 1] != s->dim[last]) {
    rows.dim[last] = 1;
    sum.cols = true;
    sum.x = ct_value_sum(c, n, &sum);
    sum.cols = false;
  }
  for (int summed = 0; summed < 2; ++summed) {
    for (uint32_t d = 0; d < last; ++d)
      if ((d < ahead || to->dim[d - ahead] != s->dim[d]) == (summed != 0)) perm[at++] = d;
    if (!summed) kept = at;
  }
  perm[last] = last;
  if (kept < last) {
    sum.x = ct_permuted(c, n, sum.x, &rows, perm);
    sum.segment = 1;
    for (uint32_t i = kept; i < last; ++i)
      sum.segment *= s->dim[perm[i]];
    sum.x = ct_value_sum(c, n, &sum);
  }
  ct_value_is(c, n->out[0], sum.x);
}

/* Where nothing was repeated there is nothing to add. */
void ct_lower_op_sum_to(struct ct_compiler *c, const struct ct_gnode *n) {
  if (ct_shape_elements(ct_in(c->g, n, 0)) == ct_shape_elements(ct_out(c->g, n, 0)))
    same_place(c, n);
  else
    sum_repeated(c, n);
}
