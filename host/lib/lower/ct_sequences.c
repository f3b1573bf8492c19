/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_sequences.h"

#include "coltrain/coltrain.h"

/* FP32 numbers by their bits. */
static const uint32_t kOne = 0x3F800000, kMinusOne = 0xBF800000, kTwo = 0x40000000,
                      kMinusTwo = 0xC0000000;

/* The command with the rows and columns of the sequence. */
static void va(struct ct_lower *l, const struct ct_sequence *s, struct ct_va c) {
  c.rows = s->rows;
  c.rows_reg = s->rows_reg;
  c.cols = s->cols;
  c.more = s->more;
  if (c.q.space && s->more)
    ct_lower_fail(l, CT_ERR_INTERNAL, "a sequence with an operand from a register, for %u tiles",
                  s->more + 1);
  else
    ct_va(l, &c);
}

/* to = func(a * b + c), scalars. */
static void scale(struct ct_lower *l, const struct ct_sequence *s, struct ct_va c) {
  c.b = c.sb ? CT_VA_SCALAR : CT_VA_NONE;
  c.c = c.sc ? CT_VA_SCALAR : CT_VA_NONE;
  va(l, s, c);
}

/* to = func(a * q + c), c a scalar. */
static void times(struct ct_lower *l, const struct ct_sequence *s, struct ct_va c) {
  c.b = CT_VA_TILE;
  c.c = c.sc ? CT_VA_SCALAR : CT_VA_NONE;
  va(l, s, c);
}

/* to = fn(a, q). */
static void with(struct ct_lower *l, const struct ct_sequence *s, struct ct_va c) {
  c.c = CT_VA_TILE;
  va(l, s, c);
}

void ct_lower_root(struct ct_lower *l, const struct ct_sequence *s) {
  scale(l, s, (struct ct_va){.to = s->y, .a = s->x, .func = CT_VA_RSQRT});
  scale(l, s, (struct ct_va){.to = s->y, .a = s->y, .func = CT_VA_RECIP});
}

/* 1 / (1 + e^(rate * x)). */
static void logistic(struct ct_lower *l, const struct ct_sequence *s, uint32_t rate) {
  scale(l, s, (struct ct_va){.to = s->y, .a = s->x, .sb = rate, .func = CT_VA_EXP});
  scale(l, s, (struct ct_va){.to = s->y, .a = s->y, .sc = kOne, .func = CT_VA_RECIP});
}

void ct_lower_sigmoid(struct ct_lower *l, const struct ct_sequence *s) {
  logistic(l, s, kMinusOne);
}

void ct_lower_tanh(struct ct_lower *l, const struct ct_sequence *s) {
  logistic(l, s, kMinusTwo);
  scale(l, s, (struct ct_va){.to = s->y, .a = s->y, .sb = kTwo, .sc = kMinusOne});
}

/* 1 - erf(|x|), or half of it at |x| / sqrt(2): e^(decay * x^2) times a polynomial, without the
 * constant term, in t = 1 / (1 + p |x|) (Abramowitz and Stegun, 7.1.26). */
struct tail {
  uint32_t p, a[5], decay;
};
static const struct tail kOfErf = {
    0x3EA7BA05, {0x3F87DC22, 0xBFBA00E3, 0x3FB5F0E3, 0xBE91A98E, 0x3E827906}, 0xBF800000};
static const struct tail kOfGelu = {
    0x3E6D3388, {0x3F07DC22, 0xBF3A00E3, 0x3F35F0E3, 0xBE11A98E, 0x3E027906}, 0xBF000000};

/* v = the tail, u = |x|. */
static void find_tail(struct ct_lower *l, const struct ct_sequence *s, const struct tail *tail) {
  with(l, s, (struct ct_va){.to = s->u, .a = s->x, .q = s->x, .neg_c = true, .fn = CT_VA_MAX});
  scale(l, s,
        (struct ct_va){.to = s->t, .a = s->u, .sb = tail->p, .sc = kOne, .func = CT_VA_RECIP});
  scale(l, s, (struct ct_va){.to = s->v, .a = s->t, .sb = tail->a[0], .sc = tail->a[1]});
  for (unsigned i = 2; i < 5; ++i)
    times(l, s, (struct ct_va){.to = s->v, .a = s->v, .q = s->t, .sc = tail->a[i]});
  times(l, s, (struct ct_va){.to = s->v, .a = s->v, .q = s->t});
  times(l, s, (struct ct_va){.to = s->t, .a = s->x, .q = s->x});
  scale(l, s, (struct ct_va){.to = s->t, .a = s->t, .sb = tail->decay, .func = CT_VA_EXP});
  times(l, s, (struct ct_va){.to = s->v, .a = s->v, .q = s->t});
}

/* max(x, 0) - |x| (1 - erf(|x| / sqrt(2))) / 2. */
void ct_lower_gelu(struct ct_lower *l, const struct ct_sequence *s) {
  find_tail(l, s, &kOfGelu);
  times(l, s, (struct ct_va){.to = s->v, .a = s->v, .q = s->u});
  scale(l, s, (struct ct_va){.to = s->u, .a = s->x, .relu = true});
  with(l, s, (struct ct_va){.to = s->y, .a = s->u, .q = s->v, .neg_c = true});
}

/* erf(|x|) with the sign of x: 2x within that and its negative. (It is at most 1.13 |x|.) */
void ct_lower_erf(struct ct_lower *l, const struct ct_sequence *s) {
  find_tail(l, s, &kOfErf);
  scale(l, s, (struct ct_va){.to = s->v, .a = s->v, .sb = kMinusOne, .sc = kOne});
  va(l, s,
     (struct ct_va){.to = s->t,
                    .a = s->x,
                    .q = s->v,
                    .b = CT_VA_SCALAR,
                    .sb = kTwo,
                    .c = CT_VA_TILE,
                    .fn = CT_VA_MIN});
  with(l, s, (struct ct_va){.to = s->y, .a = s->t, .q = s->v, .neg_c = true, .fn = CT_VA_MAX});
}

/* ---- Gradients ---- */

void ct_lower_sigmoid_back(struct ct_lower *l, const struct ct_sequence *s) {
  scale(l, s, (struct ct_va){.to = s->t, .a = s->x, .sb = kMinusOne, .sc = kOne});
  times(l, s, (struct ct_va){.to = s->t, .a = s->t, .q = s->x});
  times(l, s, (struct ct_va){.to = s->y, .a = s->g, .q = s->t});
}

void ct_lower_tanh_back(struct ct_lower *l, const struct ct_sequence *s) {
  times(l, s, (struct ct_va){.to = s->t, .a = s->x, .q = s->x});
  scale(l, s, (struct ct_va){.to = s->t, .a = s->t, .sb = kMinusOne, .sc = kOne});
  times(l, s, (struct ct_va){.to = s->y, .a = s->g, .q = s->t});
}
