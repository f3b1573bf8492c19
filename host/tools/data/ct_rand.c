/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_rand.h"

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

void ct_rand_seed(struct ct_rand *rand, uint64_t seed, uint64_t stream) {
  uint64_t x = seed ^ mix(stream);
  for (int i = 0; i < 4; ++i) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    rand->s[i] = mix(x);
  }
}

uint64_t ct_rand_next(struct ct_rand *rand) {
  uint64_t *s = rand->s;
  const uint64_t result = rotl(s[1] * 5, 7) * 9;
  const uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotl(s[3], 45);
  return result;
}

uint64_t ct_rand_below(struct ct_rand *rand, uint64_t n) {
  if (n == 0) return 0;
  const uint64_t first = (UINT64_C(0) - n) % n;
  uint64_t x;
  do {
    x = ct_rand_next(rand);
  } while (x < first);
  return x % n;
}

float ct_rand_unit(struct ct_rand *rand) {
  return (float)(ct_rand_next(rand) >> 40) * 0x1p-24f;
}

void ct_rand_shuffle(struct ct_rand *rand, uint32_t *order, size_t n) {
  for (size_t i = n; i-- > 1;) {
    const size_t j = (size_t)ct_rand_below(rand, (uint64_t)i + 1);
    const uint32_t t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
}
