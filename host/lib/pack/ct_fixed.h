/* SPDX-License-Identifier: Apache-2.0 */
/* FP32 made of integers, without the processor's floating point: whatever rounding the caller has
 * set. */
#ifndef CT_FIXED_H
#define CT_FIXED_H

#include <stdint.h>

/* v * 2^-point and x / n as FP32, rounded to nearest even (a subnormal result is 0). */
float ct_from_fixed(int64_t v, int point);
float ct_divide(float x, uint32_t n);

/* floor(sqrt(x)) */
uint64_t ct_floor_root(uint64_t x);

/* a / b for positive numbers, neither subnormal nor infinite, and the root of a * 2^-point, for a
 * number of so many words, lowest first, and an even point: as FP32, rounded to nearest
 * even (a subnormal result is 0, one that is too large infinity). */
float ct_quotient(float a, float b);
float ct_root(const uint64_t *a, unsigned words, int point);

#endif
