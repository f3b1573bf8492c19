/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed activations (docs/compression.md) in C: the bound for every block, exponent and bound,
 * lengths, and that whatever is no group is found out. */
#include "ct_act.h"
#include "ct_num.h"
#include "ct_tb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = CT_ACT_TILES * CT_ACT_BLOCKS, kLanes = 16, kDraws = 20000, kFuzz = 200000 };

static unsigned length_of(unsigned v) {
  unsigned n = 0;
  while (v >> n)
    ++n;
  return n;
}

/* |x - x'| <= 2^(bound - 134), told without a real number: both in units of 2^(e - 133), and twice
 * the error against 2^(bound - e). */
static void holds(const struct ct_act_block *x, const struct ct_act_block *y, uint8_t bound) {
  const bool kept = x->e >= bound;
  assert_int_equal(y->e, kept ? x->e : bound);
  for (unsigned i = 0; i < kLanes; ++i) {
    const bool nothing = x->e == 0 || x->e == 255 || x->q[i] == -128;
    const int q = nothing ? 0 : x->q[i], error = q - (kept ? y->q[i] : 0);
    const unsigned shift = kept ? 0 : bound - x->e;
    if (q == 0) assert_int_equal(y->q[i], 0);
    if (kept) {
      assert_int_equal(error, 0);
    } else if (shift > 8) {
      assert_int_equal(y->q[i], 0); /* 2 * 127 < 2^8 */
    } else {
      assert_true(2 * abs(q - y->q[i] * (1 << shift)) <= 1 << shift);
    }
  }
}

/* Encodes and decodes a group, and holds every value to its bound; returns its units. */
static unsigned there_and_back(const struct ct_act_block *x, unsigned tiles, uint8_t bound) {
  struct ct_act_block y[kBlocks], z[kBlocks];
  uint8_t out[CT_ACT_BYTES];
  const unsigned units = ct_act_encode(x, tiles, bound, out);
  assert_in_range(units, 1, CT_ACT_UNITS);
  assert_true(ct_act_decode(out, units, tiles, y));
  memcpy(z, x, tiles * CT_ACT_BLOCKS * sizeof(*x));
  for (unsigned j = 0; j < tiles * CT_ACT_BLOCKS; ++j) {
    holds(&x[j], &y[j], bound);
    ct_act_round(&z[j], bound);
  }
  assert_memory_equal(y, z, tiles * CT_ACT_BLOCKS * sizeof(*y));
  return units;
}

/* All 256 mantissas in one tile, of every exponent, with every bound. */
static void every_mantissa(void **state) {
  (void)state;
  struct ct_act_block x[CT_ACT_BLOCKS];
  for (unsigned e = 0; e < 256; ++e) {
    for (unsigned i = 0; i < 256; ++i) {
      x[i / kLanes].e = (uint8_t)e;
      x[i / kLanes].q[i % kLanes] = (int8_t)i;
    }
    for (unsigned bound = 0; bound <= CT_ACT_MAX_BOUND; ++bound) {
      there_and_back(x, 1, (uint8_t)bound);
    }
  }
}

/* The bits of a group, added up from what docs/compression.md says; all blocks are rounded. */
static unsigned bits_of(const struct ct_act_block *x, unsigned tiles, uint8_t bound) {
  unsigned bits = 10;
  for (unsigned t = 0; t < tiles; ++t) {
    const struct ct_act_block *b = &x[t * CT_ACT_BLOCKS];
    unsigned low = 255, high = 0, sign = 0;
    for (unsigned j = 0; j < CT_ACT_BLOCKS; ++j) {
      if (b[j].e < low) low = b[j].e;
      if (b[j].e > high) high = b[j].e;
      for (unsigned i = 0; i < kLanes; ++i)
        sign |= b[j].q[i] < 0;
    }
    bits += high == bound ? 34 : 46 + 16 * length_of(high - low);
    for (unsigned j = 0; j < CT_ACT_BLOCKS; j += 2) {
      unsigned most = 0, some = 0;
      for (unsigned i = 0; i < 32; ++i) {
        const unsigned size = (unsigned)abs(b[j + i / 16].q[i % 16]);
        if (size > most) most = size;
        some += size > 0;
      }
      if (!most) continue;
      const unsigned plain = 32 * (length_of(most) + sign),
                     masked = 32 + some * (length_of(most - 1) + sign);
      bits += masked < plain ? masked : plain;
    }
  }
  return bits;
}

static void right_length(const struct ct_act_block *x, unsigned tiles, uint8_t bound) {
  struct ct_act_block y[kBlocks];
  memcpy(y, x, sizeof(y));
  for (unsigned j = 0; j < kBlocks; ++j)
    ct_act_round(&y[j], bound);
  assert_int_equal(there_and_back(x, tiles, bound), (bits_of(y, tiles, bound) + 8 + 127) / 128);
}

/* Steps of every shape: so many values that are not zero, the largest of so many bits, with and
 * without signs; exponents that all are the bound, are all the same, or are so far apart. */
static void every_shape(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  static const unsigned far[10] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 155};
  struct ct_act_block x[kBlocks];
  for (unsigned shape = 0; shape < 33 * 8 * 2 * 10; ++shape) {
    const unsigned some = shape % 33, bits = shape / 33 % 8, sign = shape / 33 / 8 % 2;
    const unsigned spread = shape / 33 / 8 / 2;
    memset(x, 0, sizeof(x));
    for (unsigned j = 0; j < kBlocks; ++j) {
      x[j].e = (uint8_t)(spread ? 100 + ct_rng_below(&rng, far[spread]) : 90);
    }
    for (unsigned i = 0; i < kBlocks * kLanes && bits; ++i) {
      if (ct_rng_below(&rng, 32 - i % 32) >= some) continue;
      const int size = 1 + (int)ct_rng_below(&rng, (1u << bits) - 1);
      x[i / kLanes].q[i % kLanes] = (int8_t)(sign && ct_rng_percent(&rng, 50) ? -size : size);
    }
    right_length(x, 1 + shape % CT_ACT_TILES, 90);
  }
}

static void draw_block(ct_rng *rng, struct ct_act_block *b, unsigned kind) {
  b->e = (uint8_t)(kind & 1 ? ct_rng_u64(rng) : 120 + ct_rng_below(rng, 8));
  if (ct_rng_percent(rng, 3)) b->e = ct_rng_percent(rng, 50) ? 0 : 255;
  const unsigned density = ct_rng_below(rng, 101), bits = 1 + ct_rng_below(rng, 8);
  for (unsigned i = 0; i < kLanes; ++i) {
    const int8_t q = (int8_t)((int8_t)ct_rng_u64(rng) >> (8 - bits));
    b->q[i] = (int8_t)(!ct_rng_percent(rng, density) ? 0 : kind & 2 && q < 0 ? ~q : q);
  }
}

/* Groups as they come, and those that cannot be made smaller: never longer than 70 units. */
static void random_groups(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  struct ct_act_block x[kBlocks];
  unsigned longest = 0;
  for (int n = ct_tb_draws(kDraws); n > 0; --n) {
    const unsigned kind = ct_rng_below(&rng, 4), tiles = 1 + ct_rng_below(&rng, CT_ACT_TILES);
    const uint8_t bound = (uint8_t)(ct_rng_percent(&rng, 80) ? 116 + ct_rng_below(&rng, 18)
                                                             : ct_rng_below(&rng, 255));
    for (unsigned j = 0; j < kBlocks; ++j)
      draw_block(&rng, &x[j], kind);
    right_length(x, tiles, bound);
  }
  for (unsigned j = 0; j < kBlocks; ++j) {
    x[j].e = (uint8_t)(j % 2 ? 254 : 1);
    for (unsigned i = 0; i < kLanes; ++i)
      x[j].q[i] = (int8_t)(i % 2 ? 127 : -127);
  }
  longest = there_and_back(x, CT_ACT_TILES, 0);
  assert_int_equal(longest, CT_ACT_UNITS);
}

/* Nothing but the values counts: a record goes to blocks and back, and zeros take next to nothing.
 */
static void records(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  uint8_t record[CT_ACT_TILE_BYTES], again[CT_ACT_TILE_BYTES];
  struct ct_act_block b[CT_ACT_BLOCKS], zero[kBlocks];
  ct_rng_fill(&rng, record, sizeof(record));
  ct_act_from_record(b, record);
  ct_act_to_record(b, again);
  assert_memory_equal(record, again, sizeof(record));
  memset(zero, 0, sizeof(zero));
  assert_int_equal(there_and_back(zero, CT_ACT_TILES, 120), 2);
  assert_int_equal(there_and_back(zero, 1, 120), 1);
}

/* --- What it takes --- */

/* ReLU of normal numbers (nearly: sums of twelve), scaled so that a good third of them are above 0,
 * as blocks. */
static void draw_relu(ct_rng *rng, struct ct_act_block *b) {
  uint32_t x[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    int32_t sum = -6 * 65536 - 26000;
    for (unsigned n = 0; n < 12; ++n)
      sum += (int32_t)ct_rng_below(rng, 65536);
    const float f = sum > 0 ? (float)sum / 65536.0f : 0.0f;
    memcpy(&x[i], &f, sizeof(f));
  }
  b->e = ct_hbfp8_group_exp(x, kLanes);
  for (unsigned i = 0; i < kLanes; ++i)
    b->q[i] = ct_hbfp8_quant(x[i], b->e);
}

/* Bits of a value that no code of single values can go below. */
static double entropy(const unsigned *count, unsigned all) {
  double bits = 0;
  for (unsigned i = 0; i < 256; ++i) {
    const double p = (double)count[i] / all;
    if (count[i]) bits -= p * log2(p);
  }
  return bits;
}

/* With index entries and the ends of units, on average, over so many groups. */
static void costs(void **state) {
  (void)state;
  for (unsigned bound = 126; bound <= 134; ++bound) {
    ct_rng rng = ct_rng_make(6);
    unsigned units = 0, plain = 0, masked = 0, count[256] = {0};
    enum { kGroups = 200, kValues = kGroups * kBlocks * kLanes };
    for (unsigned n = 0; n < kGroups; ++n) {
      struct ct_act_block x[kBlocks];
      uint8_t out[CT_ACT_BYTES];
      for (unsigned j = 0; j < kBlocks; ++j)
        draw_relu(&rng, &x[j]);
      units += ct_act_encode(x, CT_ACT_TILES, (uint8_t)bound, out);
      for (unsigned j = 0; j < kBlocks; ++j)
        ct_act_round(&x[j], (uint8_t)bound);
      for (unsigned j = 0; j < kBlocks; j += 2) {
        unsigned most = 0, some = 0;
        for (unsigned i = 0; i < 32; ++i) {
          const unsigned q = (unsigned)x[j + i / kLanes].q[i % kLanes];
          if (q > most) most = q;
          some += q > 0;
          ++count[q];
        }
        plain += 5 + 32 * length_of(most);
        masked += most ? 5 + 32 + some * length_of(most) : 5;
      }
    }
    const double all = 32.0 * kGroups + 128.0 * units, least = entropy(count, kValues);
    print_message(
        "bound %u: one length %.3f, mask and length %.3f, groups with their index %.3f, "
        "entropy %.3f bits a value\n",
        bound, (double)plain / kValues, (double)masked / kValues, all / kValues, least);
    assert_true(all < masked + 0.3 * kValues && all < plain + 0.3 * kValues &&
                least * kValues < all);
  }
}

/* --- What is no group --- */

/* In memory of its own size, so that a sanitizer sees every read and write outside. */
static bool decodes(const uint8_t *in, unsigned units, unsigned tiles) {
  uint8_t *exact = malloc((size_t)units * CT_ACT_UNIT + !units);
  struct ct_act_block *b = malloc(tiles * CT_ACT_BLOCKS * sizeof(*b));
  assert_non_null(exact);
  assert_non_null(b);
  memcpy(exact, in, (size_t)units * CT_ACT_UNIT);
  const bool ok = ct_act_decode(exact, units, tiles, b);
  free(exact);
  free(b);
  return ok;
}

static void mend(uint8_t *in, unsigned units) {
  uint8_t check = 0;
  for (unsigned i = 0; i < units * CT_ACT_UNIT; ++i)
    check ^= in[i];
  in[units * CT_ACT_UNIT - 1] ^= check;
}

/* A unit less or more is no such group, even with a check that fits. */
static void other_lengths(const uint8_t *group, unsigned units, unsigned tiles) {
  uint8_t other[CT_ACT_BYTES + CT_ACT_UNIT] = {0};
  memcpy(other, group, (size_t)units * CT_ACT_UNIT);
  if (units > 1) mend(other, units - 1);
  assert_false(decodes(other, units - 1, tiles));
  memcpy(other, group, (size_t)units * CT_ACT_UNIT);
  other[units * CT_ACT_UNIT - 1] = 0;
  mend(other, units + 1);
  assert_false(decodes(other, units + 1, tiles));
}

/* Any one bit turned over, any other length, any other number of tiles. */
static void damage(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(4);
  struct ct_act_block x[kBlocks];
  uint8_t out[CT_ACT_BYTES];
  for (unsigned n = 0; n < 40; ++n) {
    const unsigned tiles = 1 + n % CT_ACT_TILES;
    for (unsigned j = 0; j < kBlocks; ++j)
      draw_block(&rng, &x[j], n / 4);
    const unsigned units = ct_act_encode(x, tiles, (uint8_t)(n % 3 ? 110 + n % 20 : 0), out);
    assert_true(decodes(out, units, tiles));
    for (unsigned bit = 0; bit < units * 128; ++bit) {
      out[bit / 8] ^= (uint8_t)(1 << bit % 8);
      assert_false(decodes(out, units, tiles));
      out[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    other_lengths(out, units, tiles);
    for (unsigned t = 1; t <= CT_ACT_TILES; ++t)
      assert_true(decodes(out, units, t) == (t == tiles));
  }
}

/* Any bytes, with a check that fits, so that all of the decoder sees them. */
static void any_bytes(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(5);
  uint8_t in[CT_ACT_BYTES];
  unsigned good = 0;
  for (int n = ct_tb_draws(kFuzz); n > 0; --n) {
    const unsigned units =
        ct_rng_below(&rng, 4) ? 1 + ct_rng_below(&rng, 5) : 1 + ct_rng_below(&rng, CT_ACT_UNITS);
    ct_rng_fill(&rng, in, units * CT_ACT_UNIT);
    const unsigned tiles = 1 + (in[1] & 3u);
    uint8_t check = 0;
    for (unsigned i = 0; i < units * CT_ACT_UNIT; ++i)
      check ^= in[i];
    in[units * CT_ACT_UNIT - 1] ^= check;
    good += decodes(in, units, tiles);
  }
  assert_in_range(good, 1, kFuzz / 50); /* most are none */
  assert_false(decodes(in, 0, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_mantissa), cmocka_unit_test(every_shape),
      cmocka_unit_test(random_groups),  cmocka_unit_test(records),
      cmocka_unit_test(costs),          cmocka_unit_test(damage),
      cmocka_unit_test(any_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
