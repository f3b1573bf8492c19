/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalisation: y = (x - mean) / sqrt(variance + epsilon) * scale + bias. Batch normalisation has
 * a mean and a variance for each channel (the last dimension): the running ones, or those of the
 * batch (batch_norm_train), which also gives the running ones that follow, momentum * running + (1
 * - momentum) * batch, as ONNX does: the variance is that of the batch itself. Layer normalisation
 * has them for each row over the dimensions from axis on.
 */
#include <math.h>

#include "ct_op.h"
#include "ct_real.h"

enum { EPSILON, OTHER };
#define EPSILON_RULE CT_NUMBER("epsilon", 0, 1, 1e-5)
static const struct ct_attr_rule batch_attrs[] = {EPSILON_RULE, {0}};
static const struct ct_attr_rule train_attrs[] = {
    EPSILON_RULE, CT_NUMBER("momentum", 0, 1, 0.9), {0}};
static const struct ct_attr_rule grad_attrs[] = {
    EPSILON_RULE, CT_WHOLE("batch", 1, 0, 1, NAN), {0}};

static double inverse_root(const struct ct_gnode *n, double variance) {
  return 1 / ct_real_sqrt(variance + ct_attr(n, EPSILON, 0));
}

/* ---- Batch normalisation ------------------------------------------------------------------- */

static struct ct_shape channels_of(const struct ct_shape *x) {
  return (struct ct_shape){1, {x->dim[x->dims - 1]}};
}

/* Inputs first to last are of one number a channel of x. */
static int need_channels(ct_graph *g, const struct ct_gnode *n, const struct ct_shape *x,
                         unsigned first, unsigned last) {
  static const char *const what[] = {"", "its scale", "its bias", "its mean", "its variance"};
  const struct ct_shape channels = channels_of(x);
  int err = CT_OK;
  for (unsigned i = first; i <= last && !err; ++i)
    err = ct_need_shape(g, n, i, &channels, what[i]);
  return err;
}

static int batch_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape *x = ct_in(g, n, 0);
  out[0] = *x;
  for (unsigned i = 1; i < n->op->outputs; ++i)
    out[i] = channels_of(x);
  if (x->dims < 2)
    return ct_refuse(g, n, "its input is %s, it must have 2 dimensions or more", CT_SHAPE(x));
  return need_channels(g, n, x, 1, 4);
}

static void normalise(const struct ct_ref_call *c, const double *mean, const double *variance) {
  const struct ct_shape *x = ct_in(c->g, c->n, 0);
  const uint64_t channels = x->dim[x->dims - 1];
  for (uint64_t i = 0; i < ct_shape_elements(x); ++i) {
    const uint64_t k = i % channels;
    c->out[0][i] =
        (c->in[0][i] - mean[k]) * inverse_root(c->n, variance[k]) * c->in[1][k] + c->in[2][k];
  }
}

static void batch_reference(const struct ct_ref_call *c) {
  normalise(c, c->in[3], c->in[4]);
}

static void train_reference(const struct ct_ref_call *c) {
  const struct ct_shape *x = ct_in(c->g, c->n, 0);
  const uint64_t channels = x->dim[x->dims - 1], all = ct_shape_elements(x);
  const uint64_t pixels = all / channels;
  const double rows = (double)pixels, momentum = ct_attr(c->n, OTHER, 0);
  double *mean = c->out[3], *variance = c->out[4];
  for (uint64_t i = 0; i < all; ++i)
    mean[i % channels] += c->in[0][i] / rows;
  for (uint64_t i = 0; i < all; ++i) {
    const double d = c->in[0][i] - mean[i % channels];
    variance[i % channels] += d * d / rows;
  }
  for (uint64_t k = 0; k < channels; ++k) {
    c->out[1][k] = momentum * c->in[3][k] + (1 - momentum) * mean[k];
    c->out[2][k] = momentum * c->in[4][k] + (1 - momentum) * variance[k];
  }
  normalise(c, mean, variance);
}

static int emit_batch_grad(ct_graph *g, const struct ct_gnode *n, int gy, const int statistics[2],
                           bool batch) {
  return CT_EMIT(g, n, .op = "batch_norm_grad",
                 CT_IN(gy, n->in[0], n->in[1], statistics[0], statistics[1]),
                 CT_ATTRS(ct_attr_copy(n, EPSILON), {"batch", 1, {batch}}));
}

/* The gradients of x, scale and bias are consecutive. */
static void give_three(int first, int *gx) {
  gx[0] = first;
  gx[1] = first < 0 ? first : first + 1;
  gx[2] = first < 0 ? first : first + 2;
}

static void batch_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  give_three(emit_batch_grad(g, n, gy[0], &n->in[3], false), gx);
  for (unsigned i = 3; i < 5; ++i)
    if (ct_wants(g, n, i))
      gx[0] = ct_refuse(g, n, "its statistics (%.80s) have no gradient", g->tensor[n->in[i]]->name);
}

static void train_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  give_three(gy[0] ? emit_batch_grad(g, n, gy[0], &n->out[3], true) : 0, gx);
  for (unsigned i = 1; i < 5; ++i)
    if (gy[i])
      gx[0] = ct_refuse(g, n, "the loss depends on its statistics (%.80s), which have no gradient",
                        g->tensor[n->out[i]]->name);
}

/* gy, x, scale, mean, variance. */
static int batch_grad_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape *x = ct_in(g, n, 1);
  out[0] = *x;
  out[1] = out[2] = channels_of(x);
  const int err = ct_need_shape(g, n, 0, x, "the gradient of its output");
  return err ? err : need_channels(g, n, x, 2, 4);
}

/* With h = (x - mean) / root, sums over the rows: bias' = sum gy, scale' = sum gy h; x' = scale /
 * root * gy, less the means of gy and of gy h times h where the statistics are those of the batch.
 */
static void batch_grad_reference(const struct ct_ref_call *c) {
  const double *gy = c->in[0], *x = c->in[1], *scale = c->in[2], *mean = c->in[3],
               *variance = c->in[4];
  const struct ct_shape *s = ct_in(c->g, c->n, 1);
  const uint64_t channels = s->dim[s->dims - 1], all = ct_shape_elements(s);
  const uint64_t pixels = all / channels;
  const double rows = (double)pixels, batch = ct_attr(c->n, OTHER, 0);
  for (uint64_t i = 0; i < all; ++i) {
    const uint64_t k = i % channels;
    c->out[1][k] += gy[i] * (x[i] - mean[k]) * inverse_root(c->n, variance[k]);
    c->out[2][k] += gy[i];
  }
  for (uint64_t i = 0; i < all; ++i) {
    const uint64_t k = i % channels;
    const double root = inverse_root(c->n, variance[k]), h = (x[i] - mean[k]) * root;
    c->out[0][i] = scale[k] * root * (gy[i] - batch * (c->out[2][k] + h * c->out[1][k]) / rows);
  }
}

const struct ct_gop ct_gop_batch_norm = {.name = "batch_norm",
                                         .inputs = 5,
                                         .outputs = 1,
                                         .attrs = batch_attrs,
                                         .shape = batch_shape,
                                         .grad = batch_grad,
                                         .reference = batch_reference};
const struct ct_gop ct_gop_batch_norm_train = {.name = "batch_norm_train",
                                               .inputs = 5,
                                               .outputs = 5,
                                               .attrs = train_attrs,
                                               .shape = batch_shape,
                                               .grad = train_grad,
                                               .reference = train_reference};
const struct ct_gop ct_gop_batch_norm_grad = {.name = "batch_norm_grad",
                                              .inputs = 5,
                                              .outputs = 3,
                                              .attrs = grad_attrs,
                                              .shape = batch_grad_shape,
                                              .reference = batch_grad_reference};

/* ---- Folding: weights and bias of the layer in front that contain the normalisation -------- */

/* w, scale, bias, mean, variance and the layer's bias, if it has one. */
static int fold_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape outputs = {1, {ct_in(g, n, 0)->dim[0]}};
  out[0] = *ct_in(g, n, 0);
  out[1] = outputs;
  const int err = need_channels(g, n, &outputs, 1, 4);
  return err ? err : ct_need_shape(g, n, 5, &outputs, "the layer's bias");
}

static void fold_reference(const struct ct_ref_call *c) {
  const struct ct_shape *w = ct_in(c->g, c->n, 0);
  const uint64_t row = ct_shape_part(w, 1, w->dims);
  for (uint64_t k = 0; k < w->dim[0]; ++k) {
    const double factor = c->in[1][k] * inverse_root(c->n, c->in[4][k]);
    for (uint64_t i = k * row; i < (k + 1) * row; ++i)
      c->out[0][i] = c->in[0][i] * factor;
    c->out[1][k] = ((ct_has(c->n, 5) ? c->in[5][k] : 0) - c->in[3][k]) * factor + c->in[2][k];
  }
}

const struct ct_gop ct_gop_batch_norm_fold = {.name = "batch_norm_fold",
                                              .inputs = 5,
                                              .optional = 1,
                                              .outputs = 2,
                                              .attrs = batch_attrs,
                                              .shape = fold_shape,
                                              .reference = fold_reference};

/* ---- Layer normalisation ------------------------------------------------------------------- */

static const struct ct_attr_rule layer_attrs[] = {
    EPSILON_RULE, CT_WHOLE("axis", 1, -1, CT_GRAPH_DIMS - 1, -1), {0}};

static uint32_t axis_of(const struct ct_gnode *n, const struct ct_shape *x) {
  return ct_attr(n, OTHER, 0) < 0 ? x->dims - 1 : ct_attr_u32(n, OTHER, 0);
}

/* The shape of scale and bias. */
static struct ct_shape row_of(const struct ct_gnode *n, const struct ct_shape *x) {
  struct ct_shape s = {0};
  for (uint32_t i = axis_of(n, x); i < x->dims; ++i)
    s.dim[s.dims++] = x->dim[i];
  return s;
}

static int need_axis(ct_graph *g, const struct ct_gnode *n, const struct ct_shape *x) {
  return axis_of(n, x) < x->dims
             ? CT_OK
             : ct_refuse(g, n, "its input is %s, it has no axis %u", CT_SHAPE(x), axis_of(n, x));
}

static int layer_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  out[0] = *ct_in(g, n, 0);
  int err = need_axis(g, n, out);
  if (err) return err;
  const struct ct_shape row = row_of(n, out);
  err = ct_need_shape(g, n, 1, &row, "its scale");
  return err ? err : ct_need_shape(g, n, 2, &row, "its bias");
}

struct moments {
  double mean, root;
};

static struct moments moments_of(const struct ct_gnode *n, const double *x, uint64_t count) {
  double mean = 0, variance = 0;
  for (uint64_t i = 0; i < count; ++i)
    mean += x[i] / (double)count;
  for (uint64_t i = 0; i < count; ++i)
    variance += (x[i] - mean) * (x[i] - mean) / (double)count;
  return (struct moments){mean, inverse_root(n, variance)};
}

static void layer_reference(const struct ct_ref_call *c) {
  const struct ct_shape *x = ct_in(c->g, c->n, 0), row = row_of(c->n, x);
  const uint64_t count = ct_shape_elements(&row);
  for (uint64_t at = 0; at < ct_shape_elements(x); at += count) {
    const struct moments m = moments_of(c->n, c->in[0] + at, count);
    for (uint64_t i = 0; i < count; ++i)
      c->out[0][at + i] =
          (c->in[0][at + i] - m.mean) * m.root * c->in[1][i] + (ct_has(c->n, 2) ? c->in[2][i] : 0);
  }
}

static void layer_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  int three[3];
  give_three(CT_EMIT(g, n, .op = "layer_norm_grad", CT_IN(gy[0], n->in[0], n->in[1]),
                     CT_ATTRS(ct_attr_copy(n, EPSILON), ct_attr_copy(n, OTHER))),
             three);
  for (unsigned i = 0; i < n->inputs; ++i)
    gx[i] = three[i];
}

/* gy, x, scale. */
static int layer_grad_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  out[0] = *ct_in(g, n, 1);
  int err = need_axis(g, n, out);
  if (err) return err;
  out[1] = out[2] = row_of(n, out);
  err = ct_need_shape(g, n, 0, out, "the gradient of its output");
  return err ? err : ct_need_shape(g, n, 2, &out[1], "its scale");
}

/* As in a batch, with s = gy * scale for gy. */
static void layer_grad_reference(const struct ct_ref_call *c) {
  const double *gy = c->in[0], *scale = c->in[2];
  const uint64_t count = ct_shape_elements(ct_out(c->g, c->n, 1)),
                 all = ct_shape_elements(ct_out(c->g, c->n, 0));
  for (uint64_t at = 0; at < all; at += count) {
    const struct moments m = moments_of(c->n, c->in[1] + at, count);
    double sum = 0, sum_h = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const double h = (c->in[1][at + i] - m.mean) * m.root;
      c->out[1][i] += gy[at + i] * h;
      c->out[2][i] += gy[at + i];
      sum += gy[at + i] * scale[i] / (double)count;
      sum_h += gy[at + i] * scale[i] * h / (double)count;
    }
    for (uint64_t i = 0; i < count; ++i)
      c->out[0][at + i] =
          m.root * (gy[at + i] * scale[i] - sum - (c->in[1][at + i] - m.mean) * m.root * sum_h);
  }
}

const struct ct_gop ct_gop_layer_norm = {.name = "layer_norm",
                                         .inputs = 2,
                                         .optional = 1,
                                         .outputs = 1,
                                         .attrs = layer_attrs,
                                         .shape = layer_shape,
                                         .grad = layer_grad,
                                         .reference = layer_reference};
const struct ct_gop ct_gop_layer_norm_grad = {.name = "layer_norm_grad",
                                              .inputs = 3,
                                              .outputs = 3,
                                              .attrs = layer_attrs,
                                              .shape = layer_grad_shape,
                                              .reference = layer_grad_reference};
