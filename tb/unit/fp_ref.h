/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the FP benches share: the host's FPU as a reference, a generator of operands that meet,
 * and the corner cases.
 */
#ifndef FP_REF_H
#define FP_REF_H

#include "ct_tb.h"

/*
 * a + b and a * b on the host's FPU with subnormals flushed (x86: FTZ and DAZ), NaNs canonical.
 * fp_ref_available() is false on hosts that cannot; there the results are ct_num's.
 */
bool fp_ref_available(void);
uint32_t fp_ref_add(uint32_t a, uint32_t b);
uint32_t fp_ref_mul(uint32_t a, uint32_t b);

/* Corner cases: zeros, subnormals, the ends of the range, ties, neighbours of powers of two, Inf,
 * NaNs. */
extern const uint32_t fp_corners[];
extern const size_t fp_corners_count;

/* A pair for an adder: mostly of near exponents, so that all alignments and cancellations come up.
 */
void fp_gen_add(ct_rng *rng, uint32_t *a, uint32_t *b);
/* A pair for a multiplier: often with a product at an end of the range. */
void fp_gen_mul(ct_rng *rng, uint32_t *a, uint32_t *b);
/* One value, with mantissas of few ones or few zeros as often as random ones. */
uint32_t fp_gen(ct_rng *rng);

#endif
