/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of double precision for the reference, within a few units in the last place. The
 * library is linked without libm, whose results differ from one machine to the next; these use
 * nothing but
 * + - * / and so do not.
 */
#ifndef CT_REAL_H
#define CT_REAL_H

#include <stdbool.h>
#include <stdint.h>

double ct_real_exp(double x);
double ct_real_log(double x); /* -Inf for 0, NaN below */
double ct_real_sqrt(double x);
double ct_real_tanh(double x);
double ct_real_erf(double x);
double ct_real_sigmoid(double x);
double ct_real_cos_pi(double x);            /* cos(pi x), x in 0..1 */
double ct_real_power(double x, uint64_t n); /* x^n */

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011):
 * four words from a counter of four and a key of two. */
void ct_philox(uint32_t counter[4], uint32_t key0, uint32_t key1);

/* Dropout (ct_op_dropout.c): which of the elements 4 group to 4 group + 3 are dropped. */
struct ct_dropout {
  uint64_t seed, step;
  uint32_t stream, limit; /* limit: the rate times 2^32 */
};
void ct_dropout_four(const struct ct_dropout *d, uint64_t group, bool dropped[4]);

#endif
