/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double kRound = 0x1p-24; /* half an ulp of FP32, relative */
static const double kFunc = 0x1p-20;  /* relative error of a device function */
static const double kTiny = 0x1p-120; /* flushed subnormals */
static const double kSlack = 1.0001;  /* second-order terms and this program's own rounding */

static int mat_new(struct oracle_mat *m, int rows, int cols) {
  size_t n = (size_t)rows * (size_t)cols;
  m->rows = rows;
  m->cols = cols;
  m->value = calloc(n, sizeof(double));
  m->radius = calloc(n, sizeof(double));
  return m->value && m->radius ? 0 : -1;
}

static void mat_free(struct oracle_mat *m) {
  free(m->value);
  free(m->radius);
  memset(m, 0, sizeof *m);
}

/* The largest magnitude the tile around (r0, c0) may have (sign +1) or must have (sign -1). */
static double tile_peak(const struct oracle_mat *m, int r0, int c0, int sign) {
  double peak = 0;
  for (int r = r0; r < r0 + 16 && r < m->rows; r++)
    for (int c = c0; c < c0 + 16 && c < m->cols; c++) {
      size_t i = (size_t)r * (size_t)m->cols + (size_t)c;
      peak = fmax(peak, fabs(m->value[i]) + sign * m->radius[i]);
    }
  return peak;
}

/* Between neighbouring mantissas of so many bits. */
static double step_of(double peak, int bits) {
  if (peak <= 0) return 0;
  int e;
  frexp(peak, &e); /* peak = f * 2^e with f in [0.5, 1): the exponent field stands for 2^(e-1) */
  return ldexp(1.0, e - 1 - (bits - 2));
}

/* Widens the radii by what quantising in square tiles may change. With mask given, also says where
 * the quantised value is above zero: 1 surely, 0 surely not, 0.5 undecided. */
static void quantise_square(struct oracle_mat *m, int bits, double *mask) {
  const int most = (1 << (bits - 1)) - 1;
  for (int r0 = 0; r0 < m->rows; r0 += 16)
    for (int c0 = 0; c0 < m->cols; c0 += 16) {
      double coarse = step_of(tile_peak(m, r0, c0, +1), bits),
             fine = step_of(tile_peak(m, r0, c0, -1), bits);
      for (int r = r0; r < r0 + 16 && r < m->rows; r++)
        for (int c = c0; c < c0 + 16 && c < m->cols; c++) {
          size_t i = (size_t)r * (size_t)m->cols + (size_t)c;
          double v = m->value[i], e = m->radius[i];
          if (mask) mask[i] = v - e > 0.5 * coarse ? 1 : v + e <= 0.5 * fine ? 0 : 0.5;
          m->radius[i] += fabs(v) + e >= most * fine ? coarse : 0.5 * coarse;
        }
    }
}

/* c = a * b, where element (i, k) of a is a[i * ai + k * ak] and (k, j) of b is b[k * bk + j * bj].
 */
static void product(const struct oracle_mat *a, size_t ai, size_t ak, const struct oracle_mat *b,
                    size_t bk, size_t bj, size_t depth, struct oracle_mat *c) {
  double rounds = ceil((double)depth / 16.0) + 1;
  for (size_t i = 0; i < (size_t)c->rows; i++)
    for (size_t j = 0; j < (size_t)c->cols; j++) {
      double sum = 0, size = 0, err = 0;
      for (size_t k = 0; k < depth; k++) {
        size_t p = i * ai + k * ak, q = k * bk + j * bj;
        double av = a->value[p], ae = a->radius[p], bv = b->value[q], be = b->radius[q];
        sum += av * bv;
        size += (fabs(av) + ae) * (fabs(bv) + be);
        err += fabs(av) * be + fabs(bv) * ae + ae * be;
      }
      size_t o = i * (size_t)c->cols + j;
      c->value[o] = sum;
      c->radius[o] = (err + rounds * kRound * size) * kSlack + kTiny;
    }
}

static int mat_from(struct oracle_mat *m, int rows, int cols, const double *src) {
  if (mat_new(m, rows, cols)) return -1;
  memcpy(m->value, src, (size_t)rows * (size_t)cols * sizeof(double));
  return 0;
}

static void add_bias(struct oracle_mat *z, const double *bias) {
  for (int r = 0; r < z->rows; r++)
    for (int c = 0; c < z->cols; c++) {
      size_t i = (size_t)r * (size_t)z->cols + (size_t)c;
      z->value[i] += bias[c];
      z->radius[i] += kRound * (fabs(z->value[i]) + z->radius[i]) + kTiny;
    }
}

static void relu(struct oracle_mat *z) {
  size_t n = (size_t)z->rows * (size_t)z->cols;
  for (size_t i = 0; i < n; i++)
    z->value[i] = fmax(z->value[i], 0);
}

/* Replaces logits by the gradient of the mean loss and adds the rows' losses up. */
static void softmax_gradient(struct oracle_mat *z, const double *y, struct oracle_result *res) {
  for (int r = 0; r < z->rows; r++) {
    double *v = z->value + (size_t)r * (size_t)z->cols,
           *e = z->radius + (size_t)r * (size_t)z->cols;
    const double *t = y + (size_t)r * (size_t)z->cols;
    double top = v[0], wide = 0, sum = 0;
    for (int c = 0; c < z->cols; c++)
      top = fmax(top, v[c]);
    for (int c = 0; c < z->cols; c++)
      wide = fmax(wide, e[c] + kRound * (top - v[c]));
    for (int c = 0; c < z->cols; c++)
      sum += exp(v[c] - top);
    double spread = expm1(2 * wide) + 4 * kFunc + z->cols * kRound;
    for (int c = 0; c < z->cols; c++) {
      double loss = t[c] * (log(sum) - (v[c] - top));
      res->loss += loss;
      res->loss_radius += t[c] * (2 * wide + 4 * kFunc) + (kFunc + z->cols * kRound) * fabs(loss);
      double p = exp(v[c] - top) / sum;
      v[c] = (p - t[c]) / z->rows;
      e[c] = ((p * spread + kRound) / z->rows + 2 * kRound * fabs(v[c])) * kSlack + kTiny;
    }
  }
}

static void column_sums(const struct oracle_mat *z, struct oracle_mat *out) {
  for (int c = 0; c < z->cols; c++) {
    double size = 0;
    for (int r = 0; r < z->rows; r++) {
      size_t i = (size_t)r * (size_t)z->cols + (size_t)c;
      out->value[c] += z->value[i];
      out->radius[c] += z->radius[i];
      size += fabs(z->value[i]) + z->radius[i];
    }
    out->radius[c] += (z->rows + 5) * kRound * size + kTiny;
  }
}

/* t = w * wd + g, v' = v * mu + t, w' = w - lr * v', each operation rounded once. */
static int update(const struct oracle_step *s, const struct oracle_mat *g, const double *w,
                  double wd, const double *v, struct oracle_mat *new_w, struct oracle_mat *new_v) {
  if (mat_new(new_w, g->rows, g->cols) || mat_new(new_v, g->rows, g->cols)) return -1;
  size_t n = (size_t)g->rows * (size_t)g->cols;
  for (size_t i = 0; i < n; i++) {
    double size = fabs(w[i] * wd) + fabs(v[i] * s->mu) + fabs(g->value[i]) + g->radius[i];
    new_v->value[i] = v[i] * s->mu + w[i] * wd + g->value[i];
    new_v->radius[i] = (g->radius[i] + 4 * kRound * size) * kSlack + kTiny;
    new_w->value[i] = w[i] - s->lr * new_v->value[i];
    new_w->radius[i] =
        (fabs(s->lr) * new_v->radius[i] + 2 * kRound * (fabs(w[i]) + fabs(s->lr) * size)) * kSlack +
        kTiny;
  }
  return 0;
}

/* The activations act[0..layers] (quantised), the masks of the hidden ones, the last one's logits.
 */
static int forward(const struct oracle_step *s, struct oracle_mat *act, double **mask) {
  if (mat_from(&act[0], s->batch, s->width[0], s->x)) return -1;
  for (int l = 0; l < s->layers; l++) {
    size_t in = (size_t)s->width[l];
    struct oracle_mat w;
    if (mat_from(&w, s->width[l + 1], s->width[l], s->compute[l])) return -1;
    if (mat_new(&act[l + 1], s->batch, s->width[l + 1])) return -1;
    product(&act[l], in, 1, &w, 1, in, in, &act[l + 1]);
    mat_free(&w);
    add_bias(&act[l + 1], s->bias[l]);
    if (l + 1 == s->layers) continue;
    relu(&act[l + 1]);
    mask[l + 1] = calloc((size_t)s->batch * (size_t)s->width[l + 1], sizeof(double));
    if (!mask[l + 1]) return -1;
    quantise_square(&act[l + 1], s->mantissa, mask[l + 1]);
  }
  return 0;
}

/* delta of the layer below: delta * W, masked; where the mask is undecided, between 0 and all. */
static int input_gradient(const struct oracle_step *s, int l, const struct oracle_mat *delta,
                          const double *mask, struct oracle_mat *below) {
  size_t in = (size_t)s->width[l], out = (size_t)s->width[l + 1];
  struct oracle_mat w;
  if (mat_from(&w, s->width[l + 1], s->width[l], s->compute[l])) return -1;
  if (mat_new(below, s->batch, s->width[l])) return -1;
  product(delta, out, 1, &w, in, 1, out, below);
  mat_free(&w);
  for (size_t i = 0; i < (size_t)s->batch * in; i++) {
    if (mask[i] == 0.5) below->radius[i] += 0.5 * fabs(below->value[i]);
    if (mask[i] == 0) below->radius[i] = 0;
    below->value[i] *= mask[i];
  }
  return 0;
}

/* Gradients and update of layer l from the FP32 delta of its output; quantises delta on the way. */
static int layer_update(const struct oracle_step *s, int l, struct oracle_mat *delta,
                        const struct oracle_mat *act, struct oracle_result *res) {
  size_t in = (size_t)s->width[l], out = (size_t)s->width[l + 1];
  if (mat_new(&res->grad_b[l], 1, s->width[l + 1])) return -1;
  column_sums(delta, &res->grad_b[l]);
  quantise_square(delta, s->mantissa, NULL);
  if (mat_new(&res->grad_w[l], s->width[l + 1], s->width[l])) return -1;
  product(delta, 1, out, act, in, 1, (size_t)s->batch, &res->grad_w[l]);
  if (update(s, &res->grad_w[l], s->master[l], s->weight_decay, s->momentum_w[l], &res->new_w[l],
             &res->new_vw[l]))
    return -1;
  return update(s, &res->grad_b[l], s->bias[l], 0, s->momentum_b[l], &res->new_b[l],
                &res->new_vb[l]);
}

static int backward(const struct oracle_step *s, struct oracle_mat *act, double **mask,
                    struct oracle_result *res) {
  for (int l = s->layers - 1; l >= 0; l--) {
    struct oracle_mat *delta = &act[l + 1], below = {0};
    if (layer_update(s, l, delta, &act[l], res)) return -1;
    if (l == 0) break;
    if (input_gradient(s, l, delta, mask[l], &below)) return -1;
    mat_free(&act[l]);
    act[l] = below;
  }
  return 0;
}

int oracle_run(const struct oracle_step *s, struct oracle_result *res) {
  struct oracle_mat act[ORACLE_MAX_LAYERS + 1] = {{0}};
  double *mask[ORACLE_MAX_LAYERS + 1] = {NULL};
  memset(res, 0, sizeof *res);
  int rc = forward(s, act, mask);
  if (!rc) {
    softmax_gradient(&act[s->layers], s->y, res);
    rc = backward(s, act, mask, res);
  }
  for (int l = 0; l <= s->layers; l++) {
    mat_free(&act[l]);
    free(mask[l]);
  }
  if (rc) oracle_free(res);
  return rc;
}

void oracle_free(struct oracle_result *res) {
  for (int l = 0; l < ORACLE_MAX_LAYERS; l++) {
    mat_free(&res->grad_w[l]);
    mat_free(&res->grad_b[l]);
    mat_free(&res->new_w[l]);
    mat_free(&res->new_b[l]);
    mat_free(&res->new_vw[l]);
    mat_free(&res->new_vb[l]);
  }
}

double oracle_excess(const struct oracle_mat *want, const double *got, size_t *where) {
  size_t n = (size_t)want->rows * (size_t)want->cols;
  double worst = 0;
  *where = 0;
  for (size_t i = 0; i < n; i++) {
    double d = fabs(got[i] - want->value[i]) / want->radius[i];
    if (isnan(d)) d = INFINITY;
    if (d > worst) {
      worst = d;
      *where = i;
    }
  }
  return worst;
}
