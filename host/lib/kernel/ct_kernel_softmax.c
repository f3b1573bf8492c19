/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax of rows, with the loss (cross entropy) and its gradient.
 *
 * A group of sixteen rows goes over its planes three times: the largest of each row, the sum of
 * exponentials, results. Its tiles are loaded once if the scratchpad holds them, else each time.
 * Sums run over the planes for each lane, then over lanes by halving: 8, 4, 2, 1. The loss is
 * summed over all tiles first, then over rows and lanes.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_program.h"

static const uint32_t kMinusInf = 0xFF800000;

/* T_SUM becomes its reciprocal. T_RATE: row 0, the gradient of the loss over the rows. */
enum { T_MAX, T_SUM, T_LOG, T_E, T_D, T_LOSS, T_RATE, TEMPS };

struct source {
  enum ct_keep keep;
  uint32_t tensor, words; /* a ring in the scratchpad */
  struct ct_ref all;      /* of a group */
};

struct softmax {
  struct ct_vk v;
  const struct ct_softmax *k;
  uint32_t rows, classes, planes;
  struct source x, targets;
  bool together; /* all planes of a group lie in a slot */
  struct ct_vk_made y, dx, loss;
  uint32_t temp, loads, rate, result; /* registers */
  uint32_t out;
  /* Under way. */
  uint32_t group, first_group, in_group, plane, first_plane, cols;
};

static struct ct_ref temp(const struct softmax *s, unsigned i) {
  return ct_tile_of(s->v.l, s->temp, i, 0);
}

static void va(struct softmax *s, struct ct_va c) {
  c.rows = s->in_group;
  c.cols = s->cols;
  ct_va(s->v.l, &c);
}

/* ---- Tiles ---- */

static void load_group(struct softmax *s, struct source *from) {
  struct ct_lower *l = s->v.l;
  if (!s->together || from->tensor == 0) return;
  const bool f32 = from->keep == CT_KEEP_F32;
  const uint32_t groups = ct_tiles(s->rows);
  from->all = ct_next(l, from->words);
  ct_ld(l, &(struct ct_dma){.dram = ct_tiles_of(l, from->tensor, 0, s->planes, s->group, 1),
                            .spm = from->all,
                            .hdr = !f32,
                            .nb = f32 ? CT_F32_TILE_UNITS : CT_TILE,
                            .n1 = s->planes,
                            .d1 = (int32_t)(groups * ct_keep_units(from->keep)),
                            .s1 = (int32_t)ct_vk_words(from->keep)});
}

static struct ct_ref load(struct softmax *s, const struct source *from) {
  struct ct_lower *l = s->v.l;
  const struct ct_ref reg = ct_next(l, s->loads);
  struct ct_ref words = ct_behind(from->all, s->plane * ct_vk_words(from->keep));
  if (!s->together) {
    words = ct_next(l, from->words);
    ct_vk_ld(&s->v, from->keep, ct_tile_of(l, from->tensor, s->plane, s->group), words, 1);
  }
  ct_vl(l, &(struct ct_vmove){
               .reg = reg, .spm = words, .mode = ct_vk_vl_mode(from->keep), .rows = CT_TILE});
  return reg;
}

/* Calls a body for all planes. */
static void for_planes(struct softmax *s, ct_body *body) {
  const uint32_t whole = s->classes / CT_TILE;
  s->first_plane = 0;
  s->cols = CT_TILE;
  ct_repeat(s->v.l, whole, body, s);
  s->first_plane = whole;
  s->cols = s->classes % CT_TILE;
  if (s->cols) body(s, 0);
  s->cols = CT_TILE;
}

/* ---- Three times over the planes ---- */

static void largest(void *kernel, uint32_t p) {
  struct softmax *s = kernel;
  s->plane = s->first_plane + p;
  const struct ct_ref x = load(s, &s->x), e = temp(s, T_E), max = temp(s, T_MAX);
  va(s, (struct ct_va){.to = e, .a = x, .ninf = true});
  ct_va(s->v.l, &(struct ct_va){.to = max, .a = max, .q = e, .c = CT_VA_TILE, .fn = CT_VA_MAX});
}

static void minus_max(struct softmax *s, struct ct_ref to, struct ct_ref x, unsigned func) {
  va(s, (struct ct_va){
            .to = to, .a = x, .q = temp(s, T_MAX), .c = CT_VA_TILE, .neg_c = true, .func = func});
}

static void add(struct softmax *s, unsigned sum, unsigned what) {
  const struct ct_ref to = temp(s, sum);
  ct_va(s->v.l, &(struct ct_va){.to = to, .a = to, .q = temp(s, what), .c = CT_VA_TILE});
}

static void exponentials(void *kernel, uint32_t p) {
  struct softmax *s = kernel;
  s->plane = s->first_plane + p;
  minus_max(s, temp(s, T_E), load(s, &s->x), CT_VA_EXP);
  add(s, T_SUM, T_E);
}

/* target * (log of the sum - (x - max)) */
static void loss_of(struct softmax *s, struct ct_ref target) {
  const struct ct_ref d = temp(s, T_D);
  va(s, (struct ct_va){.to = d, .a = temp(s, T_LOG), .q = d, .c = CT_VA_TILE, .neg_c = true});
  va(s, (struct ct_va){.to = d, .a = d, .q = target, .b = CT_VA_TILE});
  add(s, T_LOSS, T_D);
}

static struct ct_ref gradient(struct softmax *s, struct ct_ref softmax, struct ct_ref target) {
  const struct ct_ref e = temp(s, T_E), to = ct_next(s->v.l, s->result);
  struct ct_va rate = {.to = to, .a = e, .b = CT_VA_SCALAR, .sb = ct_vk_bits(1 / (float)s->rows)};
  va(s, (struct ct_va){.to = e, .a = softmax, .q = target, .c = CT_VA_TILE, .neg_c = true});
  if (s->k->dloss.rows) {
    rate.b = CT_VA_ROW0;
    rate.q = temp(s, T_RATE);
  }
  va(s, rate);
  return to;
}

static void results(void *kernel, uint32_t p) {
  struct softmax *s = kernel;
  struct ct_lower *l = s->v.l;
  s->plane = s->first_plane + p;
  const struct ct_ref x = load(s, &s->x), e = temp(s, T_E);
  const struct ct_ref y = s->k->y.rows ? ct_next(l, s->result) : e;
  struct ct_ref dx = {.space = 0};
  minus_max(s, e, x, CT_VA_EXP);
  if (s->k->loss.rows) minus_max(s, temp(s, T_D), x, 0);
  va(s, (struct ct_va){.to = y, .a = e, .q = temp(s, T_SUM), .b = CT_VA_TILE});
  if (s->k->targets.rows) {
    const struct ct_ref target = load(s, &s->targets);
    if (s->k->dx.rows) dx = gradient(s, y, target);
    if (s->k->loss.rows) loss_of(s, target);
  }
  if (!s->k->y.rows && !s->k->dx.rows) return;
  const struct ct_ref out = ct_next(l, s->out);
  const uint32_t at = ct_vk_vs_made(&s->v, &s->y, y, out);
  ct_vk_vs_made(&s->v, &s->dx, dx, ct_behind(out, at));
  ct_vk_st_made(&s->v, &s->y, s->plane, out, s->group);
  ct_vk_st_made(&s->v, &s->dx, s->plane, ct_behind(out, at), s->group);
}

/* ---- A group ---- */

static void reduce(struct softmax *s, unsigned what, bool rows, unsigned fn) {
  ct_reduce(
      s->v.l,
      &(struct ct_reduce){
          .a = temp(s, what), .b = temp(s, T_E), .to = temp(s, what), .rows = rows, .fn = fn});
}

static void one_group(void *kernel, uint32_t g) {
  struct softmax *s = kernel;
  struct ct_lower *l = s->v.l;
  const struct ct_ref sum = temp(s, T_SUM);
  s->group = s->first_group + g;
  load_group(s, &s->x);
  load_group(s, &s->targets);
  ct_va(l, &(struct ct_va){.to = temp(s, T_MAX), .c = CT_VA_SCALAR, .sc = kMinusInf});
  for_planes(s, largest);
  reduce(s, T_MAX, false, CT_VA_MAX);
  ct_va(l, &(struct ct_va){.to = sum});
  for_planes(s, exponentials);
  reduce(s, T_SUM, false, CT_VA_ADD);
  if (s->k->loss.rows) ct_va(l, &(struct ct_va){.to = temp(s, T_LOG), .a = sum, .func = CT_VA_LOG});
  ct_va(l, &(struct ct_va){.to = sum, .a = sum, .func = CT_VA_RECIP});
  for_planes(s, results);
}

/* ---- The loss ---- */

/* Row 0: the gradient of the loss in all lanes, over the rows. */
static void find_rate(struct softmax *s) {
  struct ct_lower *l = s->v.l;
  enum ct_keep keep;
  if (s->k->dloss.rows == 0 || s->k->dx.rows == 0) return;
  ct_vk_keep(&s->k->dloss, &keep);
  const uint32_t words = ct_spm_tensor(l, "gradient of the loss", ct_grid(1, 1, CT_F32_ROW_UNITS));
  const uint32_t tensor = ct_vk_tensor(&s->v, &s->k->dloss, keep, false);
  const struct ct_ref spm = ct_all_of(l, words), reg = ct_next(l, s->rate);
  ct_vk_ld_row(&s->v, keep, ct_tile_of(l, tensor, 0, 0), spm);
  ct_vl(l, &(struct ct_vmove){.reg = reg, .spm = spm, .mode = ct_vk_vl_mode(keep), .rows = 1});
  struct ct_ref from = reg;
  for (unsigned i = 0; i < 4; ++i) {
    const struct ct_ref to = temp(s, i & 1 ? T_RATE : T_E);
    ct_va(l, &(struct ct_va){
                 .to = to, .a = from, .q = from, .c = CT_VA_TILE, .lane_xor = 1u << i, .rows = 1});
    from = to;
  }
  ct_va(l, &(struct ct_va){.to = from,
                           .a = from,
                           .b = CT_VA_SCALAR,
                           .sb = ct_vk_bits(1 / (float)s->rows),
                           .rows = 1});
}

static void finish_loss(struct softmax *s) {
  struct ct_lower *l = s->v.l;
  if (s->k->loss.rows == 0) return;
  const struct ct_ref to = ct_next(l, s->result), out = ct_next(l, s->out);
  reduce(s, T_LOSS, true, CT_VA_ADD);
  reduce(s, T_LOSS, false, CT_VA_ADD);
  ct_va(l, &(struct ct_va){.to = to,
                           .a = temp(s, T_LOSS),
                           .b = CT_VA_SCALAR,
                           .sb = ct_vk_bits(1 / (float)s->rows),
                           .rows = 1,
                           .cols = 1});
  s->plane = s->group = 0;
  ct_vk_vs_made(&s->v, &s->loss, to, out);
  ct_vk_st_made(&s->v, &s->loss, s->plane, out, s->group);
}

/* ---- Places ---- */

static void open_source(struct softmax *s, struct source *from, const struct ct_mat *m) {
  if (m->rows == 0) return;
  ct_vk_keep(m, &from->keep);
  from->tensor = ct_vk_tensor(&s->v, m, from->keep, false);
}

static void place(struct softmax *s) {
  struct ct_lower *l = s->v.l;
  open_source(s, &s->x, &s->k->x);
  open_source(s, &s->targets, &s->k->targets);
  uint32_t words = ct_vk_made(&s->v, &s->k->y, &s->y) + ct_vk_made(&s->v, &s->k->dx, &s->dx);
  const uint32_t loss = ct_vk_made(&s->v, &s->k->loss, &s->loss);
  if (loss > words) words = loss;
  s->temp = ct_reg_tensor(l, "in between", CT_VK_FIRST_REG, TEMPS);
  s->loads = ct_reg_ring(l, "loads", CT_VK_FIRST_REG + TEMPS, 2);
  s->result = ct_reg_ring(l, "results", CT_VK_FIRST_REG + TEMPS + 2, 2);
  s->rate = ct_reg_ring(l, "rate", CT_VK_FIRST_REG + TEMPS + 4, 1);
  ct_vk_carriers(&s->v, CT_VK_FIRST_REG + T_E);
  s->out = ct_spm_ring(l, "out", words, s->v.room->group ? 2 : 1);
  const uint32_t x = ct_vk_words(s->x.keep);
  const uint32_t targets = s->targets.tensor ? ct_vk_words(s->targets.keep) : 0;
  const uint64_t left = ct_vk_left(&s->v), all = (uint64_t)(x + targets) * s->planes;
  s->together = all + CT_F32_ROW_UNITS <= left;
  const uint32_t tiles = s->together ? s->planes : 1;
  const uint32_t slots = 2 * (uint64_t)(x + targets) * tiles + CT_F32_ROW_UNITS <= left ? 2 : 1;
  s->x.words = ct_spm_ring(l, "x", x * tiles, slots);
  if (targets) s->targets.words = ct_spm_ring(l, "targets", targets * tiles, slots);
}

static int check(struct softmax *s) {
  const struct ct_softmax *k = s->k;
  const struct ct_mat *like_x[] = {&k->y, &k->targets, &k->dx}, *one[] = {&k->loss, &k->dloss};
  static const char *const names[] = {"y", "targets", "dx", "loss", "dloss"};
  int err = ct_vk_check(&s->v, &k->x, "x", k->x.rows, k->x.cols);
  for (unsigned i = 0; i < 3 && !err; ++i)
    if (like_x[i]->rows) err = ct_vk_check(&s->v, like_x[i], names[i], k->x.rows, k->x.cols);
  for (unsigned i = 0; i < 2 && !err; ++i)
    if (one[i]->rows) err = ct_vk_check(&s->v, one[i], names[3 + i], 1, 1);
  if (err) return err;
  if (!k->targets.rows && (k->loss.rows || k->dx.rows))
    return ct_why(s->v.why, CT_ERR_ARG, "%s: a loss or its gradient without targets", s->v.name);
  if (!k->y.rows && !k->loss.rows && !k->dx.rows)
    return ct_why(s->v.why, CT_ERR_ARG, "%s: nothing is wanted", s->v.name);
  return CT_OK;
}

static void member(void *kernel, uint32_t i) {
  struct softmax *s = kernel;
  (void)i;
  find_rate(s);
  ct_va(s->v.l, &(struct ct_va){.to = temp(s, T_LOSS)});
  s->first_group = 0;
  s->in_group = CT_TILE;
  ct_repeat(s->v.l, s->rows / CT_TILE, one_group, s);
  s->first_group = s->rows / CT_TILE;
  s->in_group = s->rows % CT_TILE;
  if (s->in_group) one_group(s, 0);
  finish_loss(s);
}

int ct_kernel_softmax(const struct ct_softmax *k, const struct ct_room *room,
                      struct ct_codes *codes, const struct ct_why *why) {
  struct softmax s = {.k = k, .rows = k->x.rows, .classes = k->x.cols};
  *codes = (struct ct_codes){NULL, 0};
  int err = ct_vk_start(&s.v, "softmax", room, why);
  if (err) return err;
  err = check(&s);
  if (err) {
    ct_lower_drop(s.v.l);
    return err;
  }
  s.planes = ct_tiles(s.classes);
  place(&s);
  ct_members(s.v.l, member, &s);
  return ct_vk_end(&s.v, codes);
}
