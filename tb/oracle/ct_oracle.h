/* SPDX-License-Identifier: Apache-2.0
 *
 * Double-precision oracle of one training step of a multi-layer perceptron.
 *
 * It knows the mathematics (forward, softmax cross-entropy, back-propagation, momentum SGD) and how
 * coarse the device's formats are, and nothing else: it shares no code with the device, the
 * emulator or the library. Every value comes with a radius, a rigorous bound (up to the double
 * rounding of the bound itself) on how far a correct device may lie from it:
 *
 *   - a product of HBFP operands: each operand's radius times the other's magnitude, and one FP32
 *     rounding (2^-24 relative) of the sum of magnitudes for each addition;
 *   - quantising a 16x16 tile with mantissas of m bits: half a step of 2^(E-m+2), E the exponent of
 *     the tile's largest element, a whole step where the mantissa may clip at 2^(m-1) - 1;
 *   - ReLU's mask: where the activation may or may not have been quantised to zero, both outcomes;
 *   - exp, log, reciprocal: 2^-20 relative each.
 */
#ifndef CT_ORACLE_H
#define CT_ORACLE_H

#include <stddef.h>

enum { ORACLE_MAX_LAYERS = 8 };

/* A matrix of values and radii, row-major. */
struct oracle_mat {
  int rows, cols;
  double *value, *radius;
};

/* What one step starts from. Layer l maps width[l] to width[l + 1] values, 0 <= l < layers. */
struct oracle_step {
  int layers, batch;
  int width[ORACLE_MAX_LAYERS + 1];
  const double *x; /* batch x width[0], as the device holds it */
  const double *y; /* batch x width[layers], target distribution */
  const double
      *compute[ORACLE_MAX_LAYERS]; /* width[l+1] x width[l]: the HBFP8 compute copy's values */
  const double *master[ORACLE_MAX_LAYERS]; /* the same shape: FP32 masters */
  const double *bias[ORACLE_MAX_LAYERS];   /* width[l+1] */
  const double *momentum_w[ORACLE_MAX_LAYERS], *momentum_b[ORACLE_MAX_LAYERS];
  double lr, mu, weight_decay;
  int mantissa; /* bits of what the step quantises, 2..8 */
};

/* What it leads to; loss is the sum over the batch. */
struct oracle_result {
  double loss, loss_radius;
  struct oracle_mat grad_w[ORACLE_MAX_LAYERS], grad_b[ORACLE_MAX_LAYERS];
  struct oracle_mat new_w[ORACLE_MAX_LAYERS], new_b[ORACLE_MAX_LAYERS];
  struct oracle_mat new_vw[ORACLE_MAX_LAYERS], new_vb[ORACLE_MAX_LAYERS];
};

/* Computes the step. Returns 0, or -1 when memory runs out. The caller frees the result. */
int oracle_run(const struct oracle_step *step, struct oracle_result *result);
void oracle_free(struct oracle_result *result);

/* How far got lies outside the matrix' radii: the largest |got - value| / radius (at most 1 for a
 * correct device). got has rows x cols elements; a NaN counts as infinity. *where is its index. */
double oracle_excess(const struct oracle_mat *want, const double *got, size_t *where);

#endif
