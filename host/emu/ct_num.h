/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numeric contract (docs/numerics.md) in integer C: every operation of the hardware on single
 * values, bit by bit. This is the specification in code, written to be read; fast paths elsewhere
 * are checked against it.
 *
 * FP32 values travel as their bit patterns (uint32_t). Subnormal operands count as zeros of their
 * sign, subnormal results become zeros of their sign, every NaN produced is CT_FP_NAN.
 */
#ifndef CT_NUM_H
#define CT_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CT_FP_NAN 0x7FC00000u
#define CT_FP_INF 0x7F800000u
#define CT_FP_ONE 0x3F800000u
#define CT_FP_SIGN 0x80000000u

/* Block exponents with a meaning of their own. */
#define CT_EXP_ZERO 0  /* all elements are zero */
#define CT_EXP_NAN 255 /* the block is NaN */

/* a + b and a * b, rounded to nearest even. */
uint32_t ct_fp_add(uint32_t a, uint32_t b);
uint32_t ct_fp_mul(uint32_t a, uint32_t b);

/* The larger, the smaller: NaN if either is; max(+0, -0) = +0, min(+0, -0) = -0. */
uint32_t ct_fp_max(uint32_t a, uint32_t b);
uint32_t ct_fp_min(uint32_t a, uint32_t b);

/* a > b; false if either is NaN. */
bool ct_fp_gt(uint32_t a, uint32_t b);

/* a == b; false if either is NaN, true of zeros whatever their signs. */
bool ct_fp_eq(uint32_t a, uint32_t b);

/* x > 0 ? x : +0; NaN for NaN. */
uint32_t ct_fp_relu(uint32_t x);

/* One term of a matrix product: s * 2^(ea + eb - 266) for a block dot product s of HBFP8 mantissas,
 * |s| < 2^24 (it is at most 16 * 127 * 127), and the two block exponents. */
uint32_t ct_fp_term(int32_t s, uint8_t ea, uint8_t eb);

/* q * 2^(e - 133). The code -128, which never occurs in a block, counts as 0. */
uint32_t ct_hbfp8_dequant(int8_t q, uint8_t e);

/* The shared exponent of n values: the largest exponent field, 255 if any is Inf or NaN. */
uint8_t ct_hbfp8_group_exp(const uint32_t *x, size_t n);

/* The mantissa of x in a block of exponent e, rounded to nearest even, within +-127. */
int8_t ct_hbfp8_quant(uint32_t x, uint8_t e);

/* The same with a mantissa of 8 - narrow bits, narrow at most 6: rounded to a multiple of
 * 2^narrow, within the largest of them below 128. */
int8_t ct_hbfp8_quant_narrow(uint32_t x, uint8_t e, unsigned narrow);

/* The mantissa of a block of exponent e as a block of exponent to >= e has it, rounded to nearest
 * even: a row of a gathered tile. */
int8_t ct_hbfp8_align(int8_t q, uint8_t e, uint8_t to);

/* The functions of the function unit, by the numbers that select them there. 4..7 are reserved
 * and give NaN. */
enum ct_fn {
  CT_FN_EXP = 0,
  CT_FN_RECIP = 1,
  CT_FN_LOG = 2,
  CT_FN_RSQRT = 3,
};
uint32_t ct_fn(enum ct_fn fn, uint32_t x);

uint32_t ct_fn_exp(uint32_t x);   /* e^x */
uint32_t ct_fn_recip(uint32_t x); /* 1 / x */
uint32_t ct_fn_log(uint32_t x);   /* natural logarithm */
uint32_t ct_fn_rsqrt(uint32_t x); /* 1 / sqrt(x) */

#endif
