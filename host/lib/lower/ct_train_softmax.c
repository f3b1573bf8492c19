/* SPDX-License-Identifier: Apache-2.0 */
/* A training step: softmax, loss, sums of biases. The order of operations is docs/numerics.md's.
 * See ct_train.h. */
#include "ct_train.h"

/* Temporaries. */
enum { T_MAX, T_EXPSUM, T_RECIP, T_LOG, T_E, T_ROWLOSS = T_EXPSUM, T_TMP = T_E };

struct ct_ref ct_train_temp(const struct train *t, unsigned i) {
  return ct_tile_of(t->l, t->temp, i, 0);
}

static struct ct_ref temp(const struct train *t, unsigned i) {
  return ct_train_temp(t, i);
}

static void va(struct train *t, struct ct_va v) {
  ct_va(t->l, &v);
}

static void reduce(struct train *t, struct ct_ref a, struct ct_ref b, bool rows, unsigned fn,
                   struct ct_ref to) {
  ct_reduce(t->l, &(struct ct_reduce){.a = a, .b = b, .to = to, .rows = rows, .fn = fn});
}

static struct ct_ref load_tile(struct train *t, struct ct_ref spm, unsigned mode) {
  const struct ct_ref reg = ct_next(t->l, t->load);
  ct_vl(t->l, &(struct ct_vmove){.spm = spm, .reg = reg, .mode = mode, .rows = CT_TILE});
  return reg;
}

static struct ct_ref load_z(struct train *t, uint32_t c) {
  return load_tile(t, ct_tile_of(t->l, t->z, t->m, c), CT_VL_F32);
}

/* The row's tiles: the first and, if it is narrower, the last outside the loop. */
static void all_tiles(struct train *t, ct_body *tile) {
  const uint32_t part = t->classes % CT_TILE != 0 && t->ct > 1 ? 1 : 0;
  t->base = 0;
  tile(t, 0);
  t->base = 1;
  if (t->ct > 1) ct_repeat(t->l, t->ct - 1 - part, tile, t);
  if (part) tile(t, t->ct - 2);
}

/* ---- A row of tiles ------------------------------------------------------------------------ */

/* Before their gradient takes the place of the logits. */
static void store_z(struct train *t, uint32_t c) {
  ct_st(t->l, &(struct ct_dma){.dram = ct_tile_of(t->l, t->out_z, t->m, c),
                               .spm = ct_tile_of(t->l, t->z, t->m, c),
                               .nb = CT_F32_TILE_UNITS});
}

/* m = max over the row. */
static void max_tile(void *train, uint32_t i) {
  struct train *t = train;
  const uint32_t c = t->base + i;
  if (t->logits) store_z(t, c);
  va(t, (struct ct_va){.to = temp(t, c ? T_E : T_MAX),
                       .a = load_z(t, c),
                       .rows = ct_train_rows(t, t->m),
                       .cols = ct_in_tile(t->classes, c),
                       .ninf = true});
  if (c)
    va(t, (struct ct_va){.to = temp(t, T_MAX),
                         .a = temp(t, T_MAX),
                         .q = temp(t, T_E),
                         .c = CT_VA_TILE,
                         .fn = CT_VA_MAX});
}

/* to = func(z - m), where the tile exists. */
static void minus_max(struct train *t, unsigned to, struct ct_ref z, uint32_t c, unsigned func) {
  va(t, (struct ct_va){.to = temp(t, to),
                       .a = z,
                       .q = temp(t, T_MAX),
                       .c = CT_VA_TILE,
                       .neg_c = true,
                       .func = func,
                       .rows = ct_train_rows(t, t->m),
                       .cols = ct_in_tile(t->classes, c)});
}

/* s = sum of e. exp() is never -0, so the first tile needs no addition to +0. */
static void exp_tile(void *train, uint32_t i) {
  struct train *t = train;
  const uint32_t c = t->base + i;
  minus_max(t, c ? T_E : T_EXPSUM, load_z(t, c), c, CT_VA_EXP);
  if (c)
    va(t, (struct ct_va){
              .to = temp(t, T_EXPSUM), .a = temp(t, T_EXPSUM), .q = temp(t, T_E), .c = CT_VA_TILE});
}

/* g = (e * r - y) / batch. */
static struct ct_ref gradient(struct train *t, struct ct_ref z, struct ct_ref y, uint32_t c) {
  const struct ct_ref e = temp(t, T_E), out = ct_next(t->l, t->logit);
  minus_max(t, T_E, z, c, CT_VA_EXP);
  va(t, (struct ct_va){.to = e, .a = e, .q = temp(t, T_RECIP), .b = CT_VA_TILE});
  va(t, (struct ct_va){.to = e, .a = e, .q = y, .c = CT_VA_TILE, .neg_c = true});
  va(t, (struct ct_va){.to = out,
                       .a = e,
                       .b = CT_VA_SCALAR,
                       .sb_reg = CT_TRAIN_INV,
                       .rows = ct_train_rows(t, t->m),
                       .cols = ct_in_tile(t->classes, c)});
  return out;
}

/* Adds (l - d) * y to the row's loss. */
static void loss_terms(struct train *t, struct ct_ref z, struct ct_ref y, uint32_t c) {
  const struct ct_ref d = temp(t, T_E), sum = temp(t, T_ROWLOSS);
  minus_max(t, T_E, z, c, 0);
  va(t, (struct ct_va){.to = d, .a = temp(t, T_LOG), .q = d, .c = CT_VA_TILE, .neg_c = true});
  va(t, (struct ct_va){.to = d,
                       .a = d,
                       .q = y,
                       .b = CT_VA_TILE,
                       .rows = ct_train_rows(t, t->m),
                       .cols = ct_in_tile(t->classes, c)});
  va(t, (struct ct_va){
            .to = sum, .a = c ? sum : (struct ct_ref){.space = 0}, .q = d, .c = CT_VA_TILE});
}

static void gradient_tile(void *train, uint32_t i) {
  struct train *t = train;
  const uint32_t c = t->base + i;
  const struct ct_ref z = load_z(t, c);
  const struct ct_ref y = load_tile(t, ct_tile_of(t->l, t->y, t->m, c), CT_VL_HBFP8);
  const struct ct_ref g = gradient(t, z, y, c);
  loss_terms(t, z, y, c);
  ct_vs(t->l,
        &(struct ct_vmove){.reg = g, .spm = ct_tile_of(t->l, t->z, t->m, c), .rows = CT_TILE});
  ct_vs(t->l, &(struct ct_vmove){.reg = g,
                                 .spm = ct_tile_of(t->l, t->dz[t->net->layers - 1], t->m, c),
                                 .mode = CT_VS_SQUARE,
                                 .rows = CT_TILE});
}

static void row(void *train, uint32_t m) {
  struct train *t = train;
  const struct ct_ref loss = ct_tile_of(t->l, t->sum_loss, 0, 0);
  t->m = m;
  all_tiles(t, max_tile);
  reduce(t, temp(t, T_MAX), temp(t, T_E), false, CT_VA_MAX, temp(t, T_MAX));
  all_tiles(t, exp_tile);
  reduce(t, temp(t, T_EXPSUM), temp(t, T_E), false, CT_VA_ADD, temp(t, T_EXPSUM));
  va(t, (struct ct_va){.to = temp(t, T_RECIP), .a = temp(t, T_EXPSUM), .func = CT_VA_RECIP});
  va(t, (struct ct_va){.to = temp(t, T_LOG), .a = temp(t, T_EXPSUM), .func = CT_VA_LOG});
  all_tiles(t, gradient_tile);
  reduce(t, temp(t, T_ROWLOSS), temp(t, T_E), false, CT_VA_ADD, temp(t, T_ROWLOSS));
  va(t, (struct ct_va){.to = loss, .a = loss, .q = temp(t, T_ROWLOSS), .c = CT_VA_TILE});
}

/* ---- Sums ---------------------------------------------------------------------------------- */

/* Adds a tile of gradients to the partial sums of its column. */
void ct_train_add_sum(struct train *t, unsigned sum, struct ct_ref tile, bool first) {
  va(t, (struct ct_va){.to = temp(t, sum),
                       .a = first ? (struct ct_ref){.space = 0} : temp(t, sum),
                       .q = tile,
                       .c = CT_VA_TILE});
}

/* Partial sums of rows to the bias gradient of a column tile. */
void ct_train_finish_sum(struct train *t, unsigned sum, uint32_t layer, uint32_t n) {
  const struct ct_ref out = ct_next(t->l, t->sum);
  const uint32_t at = (ct_mlp_bias_tile(t->net, layer) + n) * CT_F32_ROW_UNITS;
  reduce(t, temp(t, sum), temp(t, T_TMP), true, CT_VA_ADD, out);
  ct_vs(t->l,
        &(struct ct_vmove){
            .reg = out, .spm = ct_tiles_of(t->l, t->db, at, CT_F32_ROW_UNITS, 0, 1), .rows = 1});
}

static void sum_tile(void *train, uint32_t i) {
  struct train *t = train;
  t->m = i + 1;
  ct_train_add_sum(t, 0, load_z(t, t->c), false);
}

static void sum_column(void *train, uint32_t c) {
  struct train *t = train;
  t->c = c;
  t->m = 0;
  ct_train_add_sum(t, 0, load_z(t, c), true);
  ct_repeat(t->l, t->mt - 1, sum_tile, t);
  ct_train_finish_sum(t, 0, t->net->layers - 1, c);
}

void ct_train_softmax(struct train *t) {
  const uint32_t part = t->batch % CT_TILE != 0 ? 1 : 0;
  const struct ct_ref loss = ct_tile_of(t->l, t->sum_loss, 0, 0);
  const struct ct_ref at = ct_tiles_of(t->l, t->loss, 0, CT_F32_ROW_UNITS, 0, 1);
  va(t, (struct ct_va){.to = loss});
  ct_repeat(t->l, t->mt - part, row, t);
  if (part) row(t, t->mt - 1);
  const struct ct_ref out = ct_next(t->l, t->logit);
  reduce(t, loss, temp(t, T_TMP), true, CT_VA_ADD, out);
  ct_vs(t->l, &(struct ct_vmove){.reg = out, .spm = at, .rows = 1});
  ct_st(t->l, &(struct ct_dma){.dram = ct_tile_of(t->l, t->out_loss, 0, 0), .spm = at, .nb = 1});
  ct_repeat(t->l, t->ct, sum_column, t);
}
