/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers that are the same on every machine and with every compiler, to the bit.
 *
 * Generator (all arithmetic modulo 2^64):
 *   mix(z):   z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9; z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
 *             return z ^ (z >> 31)                       (the finaliser of splitmix64; mix(0) = 0)
 *   seeding:  x = seed ^ mix(stream); then four times x += 0x9E3779B97F4A7C15, s[i] = mix(x)
 *             (stream 0 is splitmix64 seeded with seed, as the authors of xoshiro advise)
 *   next:     xoshiro256**: result = rotl(s1 * 5, 7) * 9; t = s1 << 17; s2 ^= s0; s3 ^= s1;
 *             s1 ^= s2; s0 ^= s3; s2 ^= t; s3 = rotl(s3, 45)
 *   below(n): draw x until x >= (2^64 - n) mod n; return x mod n. The values kept are a multiple of
 *             n in number, so every result is equally likely.
 *   shuffle:  Fisher-Yates from the end: for i = n - 1 down to 1, swap elements i and below(i + 1)
 *
 * One seed serves a whole run: what needs numbers takes a stream of its own, so that drawing more
 * in one place changes nothing in another. Not for secrets.
 */
#ifndef CT_RAND_H
#define CT_RAND_H

#include <stddef.h>
#include <stdint.h>

struct ct_rand {
  uint64_t s[4];
};

/* The streams in use; add yours at the end, never renumber: results depend on the numbers. */
enum ct_rand_stream {
  CT_RAND_STREAM_NONE = 0,
  CT_RAND_STREAM_DATASET = 1,      /* order and split of a data set */
  CT_RAND_STREAM_ARRIVALS = 2,     /* arrival times */
  CT_RAND_STREAM_WEIGHTS = 3,      /* first weights of a network */
  CT_RAND_STREAM_BATCHES = 4,      /* order of the samples in training, epoch by epoch */
  CT_RAND_STREAM_REQUESTS = 5,     /* which sample a request carries */
  CT_RAND_STREAM_INTERFERENCE = 6, /* gaps, requests and batches of bench interference */
  CT_RAND_STREAM_IMAGES = 7,       /* images of a data set that is drawn */
};

void ct_rand_seed(struct ct_rand *rand, uint64_t seed, uint64_t stream);

/* 0 .. 2^64 - 1 */
uint64_t ct_rand_next(struct ct_rand *rand);

/* 0 .. n - 1; 0, and nothing drawn, for n = 0. */
uint64_t ct_rand_below(struct ct_rand *rand, uint64_t n);

/* [0, 1) in steps of 2^-24, exact in FP32: (next >> 40) * 2^-24. */
float ct_rand_unit(struct ct_rand *rand);

/* Puts the n indices in order into a random order. */
void ct_rand_shuffle(struct ct_rand *rand, uint32_t *order, size_t n);

#endif
