/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that VA has no operation for, as sequences of those it has: what a kernel records for
 * one tile. docs/programming.md ("Sequences") lists the commands and how far off they are; their
 * bits are those of the operations. What lies outside rows x cols becomes +0.
 */
#ifndef CT_SEQUENCES_H
#define CT_SEQUENCES_H

#include "ct_lower.h"

/* y = f(x), or a gradient: y = g * f'. All are tile registers, different ones; only y may be any
 * other of them. Where x (g, in a gradient) is not used after the first (before the last) command
 * it may be an ACC tile. t, u, v: what comes in between, as far as the sequence says so. */
struct ct_sequence {
  struct ct_ref y, x, g, t, u, v;
  uint32_t rows, rows_reg, cols; /* as in struct ct_va */
  uint32_t more;                 /* further tiles, where the sequence has no t */
};

/* Commands each, and the registers in between. */
void ct_lower_root(struct ct_lower *l, const struct ct_sequence *s);    /* 2 */
void ct_lower_sigmoid(struct ct_lower *l, const struct ct_sequence *s); /* 2 */
void ct_lower_tanh(struct ct_lower *l, const struct ct_sequence *s);    /* 3 */
void ct_lower_gelu(struct ct_lower *l, const struct ct_sequence *s);    /* 13: t, u, v */
void ct_lower_erf(struct ct_lower *l, const struct ct_sequence *s);     /* 13: t, u, v */

/* Gradients. x is what the function gave. */
void ct_lower_sigmoid_back(struct ct_lower *l, const struct ct_sequence *s); /* 3: t */
void ct_lower_tanh_back(struct ct_lower *l, const struct ct_sequence *s);    /* 3: t */

#endif
