/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrival times of open-loop requests: a Poisson process (or constant gaps, bursts, the times of a
 * trace) in integer cycles, the same list for the same seed on every machine and with every
 * compiler. No floating point is involved.
 *
 * To the bit (unsigned 64-bit integers; >> and / round down):
 *
 *   x      the next number of the generator (ct_rand.h, stream CT_RAND_STREAM_ARRIVALS of the
 *          seed); 0 is drawn again. u = x / 2^64 is uniform in (0, 1).
 *   log2   k = position of the highest set bit of x; m = the 32 bits of x from there down (zeros
 *          shifted in), that is 1 <= m / 2^31 < 2. Then 32 times: s = m * m; if s >= 2^63 the next
 *          bit of the fraction, from the highest down, is 1 and m = s >> 32; else it is 0 and
 *          m = s >> 31. log2(x) = k + fraction / 2^32, less than 2^-29 too small.
 *   E      l = 2^38 - (k * 2^32 + fraction), which is -log2(u) * 2^32 and at least 1;
 *          e = (l >> 32) * c + ((l mod 2^32) * c >> 32), where c = 2977044472 is ln(2) * 2^32 to
 *          the nearest. e / 2^32 is -ln(u) within 2^-27: exponential of mean 1, at most 44.4.
 *   gap    mean * e / 2^32, the product in full, in 1/65536 of a cycle like mean, the mean gap.
 *   time   the sum of the gaps so far; a request arrives in cycle time >> 16. Fractions add up, so
 *          that the rate is right for short gaps too.
 *
 * The first request arrives one gap after cycle 0. Several may arrive in one cycle.
 */
#ifndef CT_ARRIVALS_H
#define CT_ARRIVALS_H

#include <stddef.h>
#include <stdint.h>

/* Largest mean gap, in 1/65536 of a cycle: 2^32 cycles. */
#define CT_ARRIVALS_MEAN_MAX (UINT64_C(1) << 48)

/* Writes count arrival cycles, never decreasing. mean_q16: mean gap in 1/65536 of a cycle, 1 ..
 * CT_ARRIVALS_MEAN_MAX. 0; -1 for another mean, or if the list would run past cycle 2^48. */
int ct_arrivals_poisson(uint64_t seed, uint64_t mean_q16, uint64_t *cycles, size_t count);

/* The same with constant gaps: request i arrives in cycle (i + 1) * mean >> 16. */
int ct_arrivals_constant(uint64_t mean_q16, uint64_t *cycles, size_t count);

/* Bursts: in every period of that many cycles requests arrive in the first on of them only, as a
 * Poisson process whose rate makes up for it. Cycle t of the process alone, with mean * on / period
 * (rounded down) as its mean, is cycle t / on * period + t mod on. 1 <= on <= period < 2^32. */
int ct_arrivals_bursty(uint64_t seed, uint64_t mean_q16, uint64_t on, uint64_t period,
                       uint64_t *cycles, size_t count);

/* A trace brought to the device's speed: times that never decrease, in any unit, become cycles so
 * that the mean gap between the first and the last is mean; the first arrives one mean gap after
 * cycle 0. Rounded down. -1 also for times that decrease, that are all the same, or whose span is
 * 2^62 or more. */
int ct_arrivals_trace(uint64_t mean_q16, const uint64_t *times, uint64_t *cycles, size_t count);

/* The mean gap that offers permille/1000 of a capacity of done completions in busy cycles:
 * (busy / done) / (permille / 1000), in 1/65536 of a cycle to the nearest. 0 if any argument is 0
 * or the result is not 1 .. CT_ARRIVALS_MEAN_MAX. */
uint64_t ct_arrivals_mean_q16(uint64_t busy, uint64_t done, uint32_t permille);

/* -ln(x / 2^64) in 1/2^32, e above; x at least 1. */
uint64_t ct_arrivals_exponential(uint64_t x);

#endif
