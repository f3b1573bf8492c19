/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_tb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t ct_tb_seed(void) {
  static bool printed;
  const char *text = getenv("CT_SEED");
  const uint64_t seed = text && *text ? strtoull(text, NULL, 0) : 0xC017;
  if (!printed) {
    printf("CT_SEED=%" PRIu64 "\n", seed);
    fflush(stdout); /* an assertion in the model aborts, and the seed must be seen then */
    printed = true;
  }
  return seed;
}

uint64_t ct_tb_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* splitmix64, to spread a small seed over the state. */
static uint64_t split_mix(uint64_t *x) {
  uint64_t z = (*x += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

ct_rng ct_rng_make(uint64_t stream) {
  uint64_t x = ct_tb_seed();
  x = split_mix(&x) ^ stream;
  ct_rng rng;
  for (int i = 0; i < 4; ++i)
    rng.s[i] = split_mix(&x);
  return rng;
}

int ct_tb_draws(int n) {
  if (getenv("CT_ALL")) return n;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (n + 7) / 8;
#else
  return (n + 1) / 2;
#endif
}

static uint64_t rotate(uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

uint64_t ct_rng_u64(ct_rng *rng) {
  uint64_t *s = rng->s;
  const uint64_t result = rotate(s[1] * 5, 7) * 9;
  const uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate(s[3], 45);
  return result;
}

uint32_t ct_rng_below(ct_rng *rng, uint32_t bound) {
  return (uint32_t)(((ct_rng_u64(rng) >> 32) * bound) >> 32);
}

bool ct_rng_percent(ct_rng *rng, unsigned percent) {
  return ct_rng_below(rng, 100) < percent;
}

void ct_rng_fill(ct_rng *rng, void *buffer, size_t bytes) {
  unsigned char *p = buffer;
  for (size_t i = 0; i < bytes; ++i)
    p[i] = (unsigned char)(ct_rng_u64(rng) >> 56);
}

ct_stall ct_stall_make(uint64_t stream, unsigned percent, unsigned mean) {
  ct_stall stall = {.rng = ct_rng_make(stream), .percent = percent, .mean = mean ? mean : 1};
  return stall;
}

bool ct_stall_next(ct_stall *stall) {
  if (stall->left == 0) {
    stall->stalled = ct_rng_percent(&stall->rng, stall->percent);
    stall->left = 1 + ct_rng_below(&stall->rng, 2 * stall->mean - 1);
  }
  --stall->left;
  return stall->stalled;
}

const char *ct_tb_trace(void) {
  const char *file = getenv("CT_TRACE");
  return file && *file ? file : NULL;
}

void ct_tb_put(void *port, unsigned lsb, unsigned bits, uint32_t value) {
  uint8_t *bytes = port; /* a port's words are little-endian, as the machines that run benches */
  for (unsigned i = 0; i < bits; ++i) {
    const unsigned at = lsb + i;
    bytes[at / 8] = (uint8_t)((bytes[at / 8] & ~(1u << at % 8)) | (value >> i & 1) << at % 8);
  }
}

static void print_line(const char *label, const unsigned char *p, size_t n) {
  printf("    %s", label);
  for (size_t i = 0; i < n; ++i)
    printf(" %02x", p[i]);
  printf("\n");
}

void ct_assert_same(const char *what, const void *got, const void *want, size_t bytes) {
  if (memcmp(got, want, bytes) == 0) return;
  const unsigned char *g = got;
  const unsigned char *w = want;
  unsigned lines = 0;
  printf("%s: buffers of %zu bytes differ\n", what, bytes);
  for (size_t at = 0; at < bytes && lines < 8; at += 16) {
    const size_t n = bytes - at < 16 ? bytes - at : 16;
    if (memcmp(g + at, w + at, n) == 0) continue;
    printf("  at %zu (0x%zx)\n", at, at);
    print_line("got ", g + at, n);
    print_line("want", w + at, n);
    ++lines;
  }
  fflush(stdout);
  fail_msg("%s: not the expected bytes", what);
}

void ct_tb_round(unsigned long *left, const char *condition) {
  if (!*left) fail_msg("waiting in vain while %s", condition);
  --*left;
}

uint16_t ct_tb_qos(unsigned policy, unsigned floor) {
  enum { RANKED = 0x100, STRICT = 0x200, TURNS = 0x400, WHOLE = 0x800 };
  static const uint16_t rules[] = {RANKED, WHOLE, WHOLE | TURNS, WHOLE, TURNS};
  assert_true(policy < sizeof rules / sizeof *rules && floor < 256);
  return (uint16_t)(rules[policy] | (policy == 0 && floor == 0 ? STRICT : 0) | floor);
}
