/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of columns, a number for each row: layer normalisation, the gradient of softmax, losses.
 *
 * A group of sixteen rows goes over its planes once. The sum of column c is in lane c mod 16, until
 * lanes are added by halving: 8, 4, 2, 1.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_program.h"

enum { T_SUM, T_SUM_TOO, T_X, T_LESS, TEMPS, SOURCES = 2 };

struct source {
  enum ct_keep keep;
  uint32_t tensor, words; /* a ring in the scratchpad */
};

struct sum_cols {
  struct ct_vk v;
  const struct ct_sum_cols *k;
  struct source x[SOURCES], less;
  unsigned sources;
  struct ct_vk_made y, too;
  uint32_t temp, loads, result, out; /* registers; a ring in the scratchpad */
  /* Under way. */
  uint32_t group, first_group, rows, first_plane, cols;
};

static struct ct_ref temp(const struct sum_cols *s, unsigned i) {
  return ct_tile_of(s->v.l, s->temp, i, 0);
}

static void va(struct sum_cols *s, struct ct_va c) {
  c.rows = s->rows;
  c.cols = s->cols;
  ct_va(s->v.l, &c);
}

static struct ct_ref load(struct sum_cols *s, const struct source *from, uint32_t plane) {
  struct ct_lower *l = s->v.l;
  const struct ct_ref words = ct_next(l, from->words), reg = ct_next(l, s->loads);
  ct_vk_ld(&s->v, from->keep, ct_tile_of(l, from->tensor, plane, s->group), words, 1);
  ct_vl(l, &(struct ct_vmove){
               .reg = reg, .spm = words, .mode = ct_vk_vl_mode(from->keep), .rows = CT_TILE});
  return reg;
}

static void add(struct sum_cols *s, unsigned sum, struct ct_ref what) {
  const struct ct_ref to = temp(s, sum);
  ct_va(s->v.l, &(struct ct_va){.to = to, .a = to, .q = what, .c = CT_VA_TILE});
}

static void plane(void *kernel, uint32_t p) {
  struct sum_cols *s = kernel;
  struct ct_ref what = load(s, &s->x[0], s->first_plane + p);
  const struct ct_ref x = temp(s, T_X);
  if (s->k->less.rows) {
    va(s, (struct ct_va){.to = x, .a = what, .q = temp(s, T_LESS), .c = CT_VA_TILE, .neg_c = true});
    what = x;
  }
  if (s->k->squares) {
    va(s, (struct ct_va){.to = x, .a = what, .q = what, .b = CT_VA_TILE});
    what = x;
  }
  if (s->sources > 1) {
    const struct ct_ref times = load(s, &s->x[1], s->first_plane + p);
    va(s, (struct ct_va){.to = x, .a = what, .q = times, .b = CT_VA_TILE});
    what = x;
    if (s->k->too.rows) add(s, T_SUM_TOO, times);
  }
  add(s, T_SUM, what);
}

/* A column in lane 0, to all lanes: the others are zeros, so sums are it. */
static void load_less(struct sum_cols *s) {
  if (!s->k->less.rows) return;
  struct ct_ref from = load(s, &s->less, 0);
  for (unsigned i = 0; i < 4; ++i) {
    const struct ct_ref to = temp(s, i & 1 ? T_LESS : T_X);
    va(s, (struct ct_va){.to = to, .a = from, .q = from, .c = CT_VA_TILE, .lane_xor = 1u << i});
    from = to;
  }
}

static void finish(struct sum_cols *s, unsigned of, const struct ct_vk_made *y) {
  struct ct_lower *l = s->v.l;
  const struct ct_ref sum = temp(s, of), to = ct_next(l, s->result), out = ct_next(l, s->out);
  ct_reduce(l, &(struct ct_reduce){.a = sum, .b = temp(s, T_X), .to = sum});
  s->cols = 1;
  va(s, (struct ct_va){.to = to, .a = sum, .b = CT_VA_SCALAR, .sb = ct_vk_bits(s->k->scale)});
  ct_vk_vs_made(&s->v, y, to, out);
  ct_vk_st_made(&s->v, y, 0, out, s->group);
}

static void one_group(void *kernel, uint32_t g) {
  struct sum_cols *s = kernel;
  const uint32_t whole = s->k->x.cols / CT_TILE, rest = s->k->x.cols % CT_TILE;
  s->group = s->first_group + g;
  s->cols = CT_TILE;
  load_less(s);
  ct_va(s->v.l, &(struct ct_va){.to = temp(s, T_SUM)});
  if (s->k->too.rows) ct_va(s->v.l, &(struct ct_va){.to = temp(s, T_SUM_TOO)});
  s->first_plane = 0;
  ct_repeat(s->v.l, whole, plane, s);
  s->first_plane = whole;
  s->cols = rest;
  if (rest) plane(s, 0);
  finish(s, T_SUM, &s->y);
  if (s->k->too.rows) finish(s, T_SUM_TOO, &s->too);
}

/* ---- Places ---- */

static void open_source(struct sum_cols *s, struct source *from, const struct ct_mat *m) {
  ct_vk_keep(m, &from->keep);
  from->tensor = ct_vk_tensor(&s->v, m, from->keep, false);
}

static void place(struct sum_cols *s) {
  struct ct_lower *l = s->v.l;
  open_source(s, &s->x[s->sources++], &s->k->x);
  if (s->k->times.rows) open_source(s, &s->x[s->sources++], &s->k->times);
  if (s->k->less.rows) open_source(s, &s->less, &s->k->less);
  const uint32_t words = ct_vk_made(&s->v, &s->k->y, &s->y);
  const uint32_t too_words = ct_vk_made(&s->v, &s->k->too, &s->too);
  s->temp = ct_reg_tensor(l, "sums", CT_VK_FIRST_REG, TEMPS);
  s->loads = ct_reg_ring(l, "loads", CT_VK_FIRST_REG + TEMPS, 4);
  s->result = ct_reg_ring(l, "results", CT_VK_FIRST_REG + TEMPS + 4, 2);
  ct_vk_carriers(&s->v, CT_VK_FIRST_REG + T_X);
  s->out = ct_spm_ring(l, "out", words > too_words ? words : too_words, 1);
  if (s->k->less.rows) s->less.words = ct_spm_ring(l, "column", ct_vk_words(s->less.keep), 1);
  uint32_t each = 0;
  for (unsigned i = 0; i < s->sources; ++i)
    each += ct_vk_words(s->x[i].keep);
  const uint32_t slots = ct_vk_left(&s->v) >= 2 * (uint64_t)each ? 2 : 1;
  for (unsigned i = 0; i < s->sources; ++i)
    s->x[i].words = ct_spm_ring(l, "in", ct_vk_words(s->x[i].keep), slots);
}

static int check(const struct sum_cols *s) {
  const struct ct_sum_cols *k = s->k;
  int err = ct_vk_check(&s->v, &k->x, "x", k->x.rows, k->x.cols);
  if (!err && k->times.rows)
    err = ct_vk_check(&s->v, &k->times, "the factor", k->x.rows, k->x.cols);
  if (!err && k->less.rows) err = ct_vk_check(&s->v, &k->less, "what is taken away", k->x.rows, 1);
  if (!err) err = ct_vk_check(&s->v, &k->y, "y", k->x.rows, 1);
  if (err || !k->too.rows) return err;
  if (!k->times.rows)
    return ct_why(s->v.why, CT_ERR_ARG, "%s: two of them are of two matrices", s->v.name);
  return ct_vk_check(&s->v, &k->too, "the sum of the factor", k->x.rows, 1);
}

static void member(void *kernel, uint32_t i) {
  struct sum_cols *s = kernel;
  const uint32_t rows = s->k->x.rows;
  (void)i;
  s->first_group = 0;
  s->rows = CT_TILE;
  ct_repeat(s->v.l, rows / CT_TILE, one_group, s);
  s->first_group = rows / CT_TILE;
  s->rows = rows % CT_TILE;
  if (s->rows) one_group(s, 0);
}

int ct_kernel_sum_cols(const struct ct_sum_cols *k, const struct ct_room *room,
                       struct ct_codes *codes, const struct ct_why *why) {
  struct sum_cols s = {.k = k};
  *codes = (struct ct_codes){NULL, 0};
  int err = ct_vk_start(&s.v, "a sum of columns", room, why);
  if (err) return err;
  err = check(&s);
  if (err) {
    ct_lower_drop(s.v.l);
    return err;
  }
  place(&s);
  ct_members(s.v.l, member, &s);
  return ct_vk_end(&s.v, codes);
}
