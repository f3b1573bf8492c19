/* SPDX-License-Identifier: Apache-2.0 */
/* The same numbers in another shape or order; several tensors in one, and parts of one. */
#include <math.h>
#include <string.h>

#include "ct_op.h"

static const struct ct_attr_rule reshape_attrs[] = {
    CT_LIST("shape", CT_GRAPH_DIMS, -1, CT_GRAPH_MOST_DIM), {0}};

/* ---- Reshape, flatten ---------------------------------------------------------------------- */

/* At most one dimension may be -1: what is left for it. */
static int reshape_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const uint64_t all = ct_shape_elements(ct_in(g, n, 0));
  uint64_t known = 1;
  int open = -1;
  out->dims = n->attr[0].count;
  for (uint32_t i = 0; i < out->dims; ++i) {
    const double d = ct_attr(n, 0, i);
    if (d < 0 && open >= 0) return ct_refuse(g, n, "its shape has two dimensions of -1");
    if (d < 0) open = (int)i;
    out->dim[i] = d < 0 ? 1 : (uint32_t)d;
    known = ct_macs(known, out->dim[i]);
  }
  if (open >= 0 && known && all % known == 0 && all / known <= CT_GRAPH_MOST_DIM)
    out->dim[open] = (uint32_t)(all / known);
  if (known && ct_macs(known, open >= 0 ? out->dim[open] : 1) == all) return CT_OK;
  return ct_refuse(g, n, "%s cannot be given the shape %s", CT_SHAPE(ct_in(g, n, 0)),
                   CT_SHAPE(out));
}

static void copy_reference(const struct ct_ref_call *c) {
  memcpy(c->out[0], c->in[0], ct_shape_elements(ct_out(c->g, c->n, 0)) * sizeof(double));
}

static void reshape_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  gx[0] = ct_emit_reshape(g, n, gy[0], ct_in(g, n, 0));
}

const struct ct_gop ct_gop_reshape = {.name = "reshape",
                                      .inputs = 1,
                                      .outputs = 1,
                                      .attrs = reshape_attrs,
                                      .shape = reshape_shape,
                                      .grad = reshape_grad,
                                      .reference = copy_reference};

/* To two dimensions: those in front of axis, and the others. */
static const struct ct_attr_rule flatten_attrs[] = {CT_WHOLE("axis", 1, 0, CT_GRAPH_DIMS, 1), {0}};

static int flatten_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape *x = ct_in(g, n, 0);
  const uint32_t axis = ct_attr_u32(n, 0, 0);
  if (axis > x->dims)
    return ct_refuse(g, n, "its input is %s, it has no axis %u", CT_SHAPE(x), axis);
  const uint64_t front = ct_shape_part(x, 0, axis), rest = ct_shape_part(x, axis, x->dims);
  if (front > CT_GRAPH_MOST_DIM || rest > CT_GRAPH_MOST_DIM)
    return ct_refuse(g, n, "%s flattened has a dimension larger than 2^24", CT_SHAPE(x));
  out[0] = (struct ct_shape){2, {(uint32_t)front, (uint32_t)rest}};
  return CT_OK;
}

const struct ct_gop ct_gop_flatten = {.name = "flatten",
                                      .inputs = 1,
                                      .outputs = 1,
                                      .attrs = flatten_attrs,
                                      .shape = flatten_shape,
                                      .grad = reshape_grad,
                                      .reference = copy_reference};

/* ---- Transpose: dimension i of the output is dimension perm[i] of the input ---------------- */

static const struct ct_attr_rule transpose_attrs[] = {
    CT_LIST("perm", CT_GRAPH_DIMS, 0, CT_GRAPH_DIMS - 1), {0}};

static int transpose_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape *x = ct_in(g, n, 0);
  unsigned seen = 0;
  out->dims = x->dims;
  for (uint32_t i = 0; i < x->dims && i < n->attr[0].count; ++i) {
    seen |= 1u << ct_attr_u32(n, 0, i);
    if (ct_attr_u32(n, 0, i) < x->dims) out->dim[i] = x->dim[ct_attr_u32(n, 0, i)];
  }
  if (n->attr[0].count == x->dims && seen == (1u << x->dims) - 1) return CT_OK;
  return ct_refuse(g, n, "perm must have each of 0..%u once, for its input is %s", x->dims - 1,
                   CT_SHAPE(x));
}

static void transpose_reference(const struct ct_ref_call *c) {
  const struct ct_shape *x = ct_in(c->g, c->n, 0), *y = ct_out(c->g, c->n, 0);
  for (uint64_t i = 0; i < ct_shape_elements(y); ++i) {
    uint64_t rest = i, from = 0;
    for (uint32_t d = y->dims; d-- > 0; rest /= y->dim[d])
      from += rest % y->dim[d] * ct_shape_part(x, ct_attr_u32(c->n, 0, d) + 1, x->dims);
    c->out[0][i] = c->in[0][from];
  }
}

static void transpose_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  struct ct_attr back = {"perm", n->attr[0].count, {0}};
  for (uint32_t i = 0; i < back.count; ++i)
    back.value[ct_attr_u32(n, 0, i)] = i;
  gx[0] = CT_EMIT(g, n, .op = "transpose", CT_IN(gy[0]), CT_ATTRS(back));
}

const struct ct_gop ct_gop_transpose = {.name = "transpose",
                                        .inputs = 1,
                                        .outputs = 1,
                                        .attrs = transpose_attrs,
                                        .shape = transpose_shape,
                                        .grad = transpose_grad,
                                        .reference = transpose_reference};

/* ---- Concat, slice ------------------------------------------------------------------------- */

enum { AXIS, BEGIN, SIZE };
#define AXIS_RULE CT_WHOLE("axis", 1, 0, CT_GRAPH_DIMS - 1, NAN)
#define BEGIN_RULE CT_WHOLE("begin", 1, 0, CT_GRAPH_MOST_DIM, NAN)
static const struct ct_attr_rule concat_attrs[] = {AXIS_RULE, {0}};
static const struct ct_attr_rule slice_attrs[] = {
    AXIS_RULE, BEGIN_RULE, CT_WHOLE("size", 1, 1, CT_GRAPH_MOST_DIM, NAN), {0}};

/* A part of a tensor: from begin on along an axis. */
struct part {
  const struct ct_shape *whole, *part;
  uint32_t axis;
  uint64_t begin;
};

/* Copies it out of the whole, or into it. */
static void copy_part(const struct part *p, double *to, const double *from, bool out) {
  const uint64_t row = ct_shape_part(p->part, p->axis, p->part->dims);
  const uint64_t pitch = ct_shape_part(p->whole, p->axis, p->whole->dims);
  const uint64_t at = p->begin * ct_shape_part(p->whole, p->axis + 1, p->whole->dims);
  for (uint64_t i = 0; i < ct_shape_part(p->whole, 0, p->axis); ++i)
    memcpy(out ? to + i * row : to + i * pitch + at, out ? from + i * pitch + at : from + i * row,
           row * sizeof *to);
}

static int need_axis(ct_graph *g, const struct ct_gnode *n, const struct ct_shape *x) {
  return ct_attr_u32(n, AXIS, 0) < x->dims ? CT_OK
                                           : ct_refuse(g, n, "its input is %s, it has no axis %u",
                                                       CT_SHAPE(x), ct_attr_u32(n, AXIS, 0));
}

static int concat_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const uint32_t axis = ct_attr_u32(n, AXIS, 0);
  uint64_t sum = 0;
  out[0] = *ct_in(g, n, 0);
  const int err = need_axis(g, n, out);
  if (err) return err;
  for (unsigned i = 0; i < n->inputs; ++i) {
    if (!ct_has(n, i)) return ct_refuse(g, n, "input %u is missing", i);
    struct ct_shape same = *ct_in(g, n, i);
    sum += axis < same.dims ? same.dim[axis] : 0;
    if (axis < same.dims) same.dim[axis] = out->dim[axis];
    if (!ct_shape_same(&same, out))
      return ct_refuse(g, n, "%s and %s differ in more than dimension %u", CT_SHAPE(out),
                       CT_SHAPE(ct_in(g, n, i)), axis);
  }
  if (sum > CT_GRAPH_MOST_DIM)
    return ct_refuse(g, n, "its output has a dimension larger than 2^24");
  out->dim[axis] = (uint32_t)sum;
  return CT_OK;
}

static void concat_reference(const struct ct_ref_call *c) {
  const uint32_t axis = ct_attr_u32(c->n, AXIS, 0);
  uint64_t begin = 0;
  for (unsigned i = 0; i < c->n->inputs; ++i) {
    const struct part p = {ct_out(c->g, c->n, 0), ct_in(c->g, c->n, i), axis, begin};
    copy_part(&p, c->out[0], c->in[i], false);
    begin += ct_in(c->g, c->n, i)->dim[axis];
  }
}

static void concat_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  double begin = 0;
  for (unsigned i = 0; i < n->inputs; ++i) {
    const double size = ct_in(g, n, i)->dim[ct_attr_u32(n, AXIS, 0)];
    if (ct_wants(g, n, i))
      gx[i] = CT_EMIT(g, n, .op = "slice", CT_IN(gy[0]),
                      CT_ATTRS(ct_attr_copy(n, AXIS), {"begin", 1, {begin}}, {"size", 1, {size}}));
    begin += size;
  }
}

const struct ct_gop ct_gop_concat = {.name = "concat",
                                     .inputs = 1,
                                     .optional = CT_GOP_INPUTS - 1,
                                     .outputs = 1,
                                     .attrs = concat_attrs,
                                     .shape = concat_shape,
                                     .grad = concat_grad,
                                     .reference = concat_reference};

/* For a slice the part's size is an attribute, for its gradient the whole's. */
static int slice_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const uint32_t axis = ct_attr_u32(n, AXIS, 0), begin = ct_attr_u32(n, BEGIN, 0),
                 size = ct_attr_u32(n, SIZE, 0);
  out[0] = *ct_in(g, n, 0);
  const int err = need_axis(g, n, out);
  if (err) return err;
  const uint32_t had = out->dim[axis];
  const bool back = n->op == &ct_gop_slice_grad;
  out->dim[axis] = size;
  if (begin + (back ? had : size) <= (back ? size : had)) return CT_OK;
  return ct_refuse(g, n, "%u elements from %u on do not fit dimension %u of %s", back ? had : size,
                   begin, axis, CT_SHAPE(back ? out : ct_in(g, n, 0)));
}

static void slice_reference(const struct ct_ref_call *c) {
  const struct part p = {ct_in(c->g, c->n, 0), ct_out(c->g, c->n, 0), ct_attr_u32(c->n, AXIS, 0),
                         ct_attr_u32(c->n, BEGIN, 0)};
  copy_part(&p, c->out[0], c->in[0], true);
}

static void slice_grad_reference(const struct ct_ref_call *c) {
  const struct part p = {ct_out(c->g, c->n, 0), ct_in(c->g, c->n, 0), ct_attr_u32(c->n, AXIS, 0),
                         ct_attr_u32(c->n, BEGIN, 0)};
  copy_part(&p, c->out[0], c->in[0], false);
}

static void slice_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const double whole = ct_in(g, n, 0)->dim[ct_attr_u32(n, AXIS, 0)];
  gx[0] = CT_EMIT(g, n, .op = "slice_grad", CT_IN(gy[0]),
                  CT_ATTRS(ct_attr_copy(n, AXIS), ct_attr_copy(n, BEGIN), {"size", 1, {whole}}));
}

const struct ct_gop ct_gop_slice = {.name = "slice",
                                    .inputs = 1,
                                    .outputs = 1,
                                    .attrs = slice_attrs,
                                    .shape = slice_shape,
                                    .grad = slice_grad,
                                    .reference = slice_reference};
const struct ct_gop ct_gop_slice_grad = {.name = "slice_grad",
                                         .inputs = 1,
                                         .outputs = 1,
                                         .attrs = slice_attrs,
                                         .shape = slice_shape,
                                         .reference = slice_grad_reference};
