/* SPDX-License-Identifier: Apache-2.0 */
/* FP32 made of integers, without the processor's floating point: whatever rounding the caller has
 * set. */
#ifndef CT_FIXED_H
#define CT_FIXED_H

#include <stdint.h>

/* v * 2^-point and x / n as FP32, rounded to nearest even (a subnormal result is 0). */
float ct_from_fixed(int64_t v, int point);
float ct_divide(float x, uint32_t n);

#endif
