/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_act.h"

#include <string.h>

#include "ct_num.h"

enum { kLanes = 16, kStepBlocks = 2, kSteps = CT_ACT_BLOCKS / kStepBlocks, kUnitBits = 128 };

/* Bits that it takes to write v. */
static unsigned width_of(unsigned v) {
  unsigned n = 0;
  for (; v; v >>= 1)
    ++n;
  return n;
}

static unsigned size_of(int8_t q) {
  return (unsigned)(q < 0 ? -q : q);
}

void ct_act_round(struct ct_act_block *b, uint8_t bound) {
  const uint8_t to = b->e > bound ? b->e : bound;
  const bool nothing = b->e == CT_EXP_ZERO || b->e == CT_EXP_NAN;
  for (unsigned i = 0; i < kLanes; ++i) {
    b->q[i] = nothing || b->q[i] == INT8_MIN ? 0 : ct_hbfp8_align(b->q[i], b->e, to);
  }
  b->e = to;
}

/* --- What a tile's header says --- */

struct step {
  bool mask;     /* only what is not zero is written, behind a mask of it */
  uint8_t width; /* bits of a value without its sign */
};

struct head {
  bool sign; /* values have signs */
  bool exps; /* blocks have exponents of their own */
  struct step step[kSteps];
  uint8_t exp_width, exp_base; /* of these */
};

/* Of 32 values: a length for all of them, or a mask and a length for those that are not zero, less
 * one. */
static struct step choose_step(const struct ct_act_block b[kStepBlocks], bool sign) {
  unsigned all = 0, less = 0, some = 0;
  for (unsigned i = 0; i < kStepBlocks * kLanes; ++i) {
    const unsigned size = size_of(b[i / kLanes].q[i % kLanes]);
    if (!size) continue;
    ++some;
    all |= size;
    less |= size - 1;
  }
  const unsigned plain = width_of(all), masked = width_of(less);
  const unsigned plain_bits = some ? kStepBlocks * kLanes * (plain + (sign ? 1u : 0u)) : 0;
  const unsigned mask_bits = kStepBlocks * kLanes + some * (masked + (sign ? 1u : 0u));
  if (mask_bits < plain_bits) return (struct step){true, (uint8_t)masked};
  return (struct step){false, (uint8_t)plain};
}

static struct head choose_head(const struct ct_act_block b[CT_ACT_BLOCKS], uint8_t bound) {
  struct head h = {.exp_base = b[0].e};
  uint8_t top = 0;
  for (unsigned j = 0; j < CT_ACT_BLOCKS; ++j) {
    if (b[j].e < h.exp_base) h.exp_base = b[j].e;
    if (b[j].e > top) top = b[j].e;
    for (unsigned i = 0; i < kLanes; ++i)
      h.sign |= b[j].q[i] < 0;
  }
  h.exps = top != bound;
  h.exp_width = (uint8_t)width_of(top - h.exp_base);
  for (unsigned j = 0; j < kSteps; ++j)
    h.step[j] = choose_step(&b[kStepBlocks * j], h.sign);
  return h;
}

/* Bits of a value of the step. (Where all values are zero there are none, and no signs.) */
static unsigned value_bits(const struct head *h, const struct step *s) {
  return s->mask || s->width ? s->width + (h->sign ? 1u : 0u) : 0u;
}

/* --- Encoding --- */

struct writer {
  uint8_t *out;
  unsigned bits;
};

static void put(struct writer *w, unsigned value, unsigned bits) {
  for (unsigned i = 0; i < bits; ++i, ++w->bits) {
    w->out[w->bits / 8] |= (uint8_t)((value >> i & 1) << w->bits % 8);
  }
}

static void put_head(struct writer *w, const struct head *h) {
  put(w, h->sign, 1);
  put(w, h->exps, 1);
  for (unsigned j = 0; j < kSteps; ++j) {
    put(w, h->step[j].mask, 1);
    put(w, h->step[j].width, 3);
  }
  if (!h->exps) return;
  put(w, h->exp_width, 4);
  put(w, h->exp_base, 8);
}

static void put_block(struct writer *w, const struct head *h, const struct step *s,
                      const struct ct_act_block *b) {
  for (unsigned i = 0; i < kLanes && s->mask; ++i)
    put(w, b->q[i] != 0, 1);
  if (h->exps) put(w, (unsigned)b->e - h->exp_base, h->exp_width);
  if (!value_bits(h, s)) return;
  for (unsigned i = 0; i < kLanes; ++i) {
    if (s->mask && !b->q[i]) continue;
    put(w, size_of(b->q[i]) - (s->mask ? 1u : 0u), s->width);
    if (h->sign) put(w, b->q[i] < 0, 1);
  }
}

/* The exclusive or of all bytes. */
static uint8_t fold(const uint8_t *bytes, unsigned n) {
  uint8_t x = 0;
  for (unsigned i = 0; i < n; ++i)
    x ^= bytes[i];
  return x;
}

unsigned ct_act_encode(const struct ct_act_block *b, unsigned tiles, uint8_t bound,
                       uint8_t out[CT_ACT_BYTES]) {
  struct writer w = {out, 0};
  memset(out, 0, CT_ACT_BYTES);
  put(&w, bound, 8);
  put(&w, tiles - 1, 2);
  for (unsigned t = 0; t < tiles; ++t) {
    struct ct_act_block tile[CT_ACT_BLOCKS];
    memcpy(tile, &b[t * CT_ACT_BLOCKS], sizeof(tile));
    for (unsigned j = 0; j < CT_ACT_BLOCKS; ++j)
      ct_act_round(&tile[j], bound);
    const struct head h = choose_head(tile, bound);
    put_head(&w, &h);
    for (unsigned j = 0; j < CT_ACT_BLOCKS; ++j) {
      put_block(&w, &h, &h.step[j / kStepBlocks], &tile[j]);
    }
  }
  const unsigned units = (w.bits + 8 + kUnitBits - 1) / kUnitBits, bytes = units * CT_ACT_UNIT;
  out[bytes - 1] = fold(out, bytes);
  return units;
}

/* --- Decoding --- */

struct reader {
  const uint8_t *in;
  unsigned bits, end;
  bool wrong;
};

static unsigned get(struct reader *r, unsigned bits) {
  unsigned value = 0;
  if (bits > r->end - r->bits) {
    r->wrong = true;
    r->bits = r->end;
    return 0;
  }
  for (unsigned i = 0; i < bits; ++i, ++r->bits) {
    value |= (r->in[r->bits / 8] >> r->bits % 8 & 1u) << i;
  }
  return value;
}

static struct head get_head(struct reader *r, uint8_t bound) {
  struct head h = {.exp_base = bound};
  h.sign = get(r, 1);
  h.exps = get(r, 1);
  for (unsigned j = 0; j < kSteps; ++j) {
    h.step[j].mask = get(r, 1);
    h.step[j].width = (uint8_t)get(r, 3);
  }
  if (!h.exps) return h;
  h.exp_width = (uint8_t)get(r, 4);
  h.exp_base = (uint8_t)get(r, 8);
  r->wrong |= h.exp_width > 8;
  return h;
}

static void get_block(struct reader *r, const struct head *h, const struct step *s,
                      struct ct_act_block *b) {
  const unsigned mask = s->mask ? get(r, kLanes) : 0xFFFFu;
  const unsigned e = h->exp_base + get(r, h->exp_width);
  r->wrong |= e > 255;
  b->e = (uint8_t)e;
  for (unsigned i = 0; i < kLanes; ++i) {
    b->q[i] = 0;
    if (!(mask >> i & 1)) continue;
    const unsigned size = get(r, s->width) + (s->mask ? 1u : 0u);
    r->wrong |= size > INT8_MAX;
    b->q[i] = (int8_t)(get(r, value_bits(h, s) - s->width) ? 0u - size : size);
  }
}

bool ct_act_decode(const uint8_t *in, unsigned units, unsigned tiles, struct ct_act_block *b) {
  const unsigned bits = units * kUnitBits;
  if (!units || units > CT_ACT_UNITS || fold(in, units * CT_ACT_UNIT)) return false;
  struct reader r = {in, 0, bits - 8, false}; /* the last byte is the check */
  const uint8_t bound = (uint8_t)get(&r, 8);
  if (get(&r, 2) + 1 != tiles) return false;
  for (unsigned t = 0; t < tiles; ++t) {
    const struct head h = get_head(&r, bound);
    for (unsigned j = 0; j < CT_ACT_BLOCKS && !r.wrong; ++j) {
      get_block(&r, &h, &h.step[j / kStepBlocks], &b[t * CT_ACT_BLOCKS + j]);
    }
    if (r.wrong) return false;
  }
  return r.end - r.bits < kUnitBits; /* not a unit more than it takes */
}

/* --- Records --- */

void ct_act_from_record(struct ct_act_block b[CT_ACT_BLOCKS], const uint8_t *record) {
  for (unsigned j = 0; j < CT_ACT_BLOCKS; ++j) {
    b[j].e = record[j];
    memcpy(b[j].q, record + CT_ACT_UNIT * (1 + j), kLanes);
  }
}

void ct_act_to_record(const struct ct_act_block b[CT_ACT_BLOCKS], uint8_t *record) {
  for (unsigned j = 0; j < CT_ACT_BLOCKS; ++j) {
    record[j] = b[j].e;
    memcpy(record + CT_ACT_UNIT * (1 + j), b[j].q, kLanes);
  }
}
