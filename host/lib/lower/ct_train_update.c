/* SPDX-License-Identifier: Apache-2.0 */
/* A training step: the optimiser, for biases and for weights. See ct_train.h. */
#include "ct_train.h"

enum { RUN = 256 };

/* v = v * mu + t, w = v * -lr + w, on the elements that exist. */
void ct_train_optimise(struct train *t, const struct ct_optimised *o) {
  ct_va(t->l, &(struct ct_va){.to = o->v_new,
                              .a = o->v,
                              .b = CT_VA_SCALAR,
                              .sb_reg = CT_TRAIN_MU,
                              .q = o->t,
                              .c = CT_VA_TILE,
                              .rows = o->rows,
                              .cols = o->cols});
  ct_va(t->l, &(struct ct_va){.to = o->w_new,
                              .a = o->v_new,
                              .b = CT_VA_SCALAR,
                              .sb_reg = CT_TRAIN_NEG_LR,
                              .q = o->w,
                              .c = CT_VA_TILE,
                              .rows = o->rows,
                              .cols = o->cols});
}

/* ---- Biases -------------------------------------------------------------------------------- */

/* Sixteen column tiles, one a row of the register. */
static void bias_rows(struct train *t, uint32_t c, uint32_t rows) {
  const uint32_t at = c * CT_TILE * CT_F32_ROW_UNITS, words = rows * CT_F32_ROW_UNITS;
  const uint32_t from[3] = {t->vb, t->db, t->bias};
  struct ct_ref in[3];
  for (unsigned i = 0; i < 3; ++i) {
    in[i] = ct_next(t->l, t->load);
    ct_vl(t->l,
          &(struct ct_vmove){
              .spm = ct_tiles_of(t->l, from[i], at, words, 0, 1), .reg = in[i], .rows = rows});
  }
  const struct ct_optimised o = {.v = in[0],
                                 .t = in[1],
                                 .w = in[2],
                                 .v_new = ct_next(t->l, t->out),
                                 .w_new = ct_next(t->l, t->out),
                                 .rows = rows};
  ct_train_optimise(t, &o);
  ct_vs(t->l, &(struct ct_vmove){
                  .spm = ct_tiles_of(t->l, t->vb, at, words, 0, 1), .reg = o.v_new, .rows = rows});
  ct_vs(t->l,
        &(struct ct_vmove){
            .spm = ct_tiles_of(t->l, t->bias, at, words, 0, 1), .reg = o.w_new, .rows = rows});
}

static void some_rows(struct train *t, uint32_t c, uint32_t rows) {
  if (t->end == CT_TRAIN_UPDATES)
    bias_rows(t, c, rows);
  else
    ct_gradient_bias_rows(t, c, rows);
}

static void full_rows(void *train, uint32_t c) {
  some_rows(train, c, CT_TILE);
}

static void store_words(struct train *t, uint32_t dram, uint32_t spm, uint32_t words) {
  for (uint32_t at = 0; at < words; at += RUN) {
    const uint32_t n = ct_min_u32(RUN, words - at);
    ct_st(t->l, &(struct ct_dma){.dram = ct_tiles_of(t->l, dram, at, n, 0, 1),
                                 .spm = ct_tiles_of(t->l, spm, at, n, 0, 1),
                                 .nb = n});
  }
}

void ct_train_biases(struct train *t) {
  const uint32_t tiles = ct_mlp_bias_tile(t->net, t->net->layers), full = tiles / CT_TILE;
  ct_repeat(t->l, full, full_rows, t);
  if (tiles % CT_TILE) some_rows(t, full, tiles % CT_TILE);
  if (t->end == CT_TRAIN_UPDATES) store_words(t, t->image_bias, t->bias, tiles * CT_F32_ROW_UNITS);
  store_words(t, t->end == CT_TRAIN_UPDATES ? t->state_bias : t->gradient_bias, t->vb,
              tiles * CT_F32_ROW_UNITS);
}

/* ---- Weights: up to four neighbouring tiles of a column (down) or of a row ------------------- */

struct ct_ref ct_unit_tiles(const struct train *t, uint32_t tensor, const struct ct_unit *u,
                            uint32_t i, uint32_t tiles) {
  return ct_tiles_of(t->l, tensor, u->n + (t->down ? i : 0), t->down ? tiles : 1,
                     u->k + (t->down ? 0 : i), t->down ? 1 : tiles);
}

/* So many units of each tile, side by side. */
void ct_unit_load(struct train *t, const struct ct_unit *u, uint32_t tensor, uint32_t units,
                  struct ct_ref to) {
  const uint32_t step = t->down ? ct_mlp_in(t->net, t->layer) : 1;
  ct_ld(t->l, &(struct ct_dma){.dram = ct_unit_tiles(t, tensor, u, 0, t->tiles),
                               .spm = to,
                               .by_step = true,
                               .nb = units,
                               .n2 = t->tiles,
                               .d2 = (int32_t)(step * units),
                               .s2 = (int32_t)units});
}

struct ct_ref ct_unit_acc(struct train *t) {
  return ct_next_n(t->l, t->tiles == t->unit ? t->acc_unit : t->acc_rest[t->tiles], t->tiles);
}

void ct_unit_multiply(struct train *t, const struct ct_unit *u, struct ct_ref acc) {
  const uint32_t rows = t->down ? t->tiles : 1, columns = t->down ? 1 : t->tiles;
  ct_mm(t->l, &(struct ct_mm){.a = ct_tiles_of(t->l, t->dz[t->layer], 0, t->mt, u->n, rows),
                              .a_trans = true,
                              .am = (int32_t)(t->mt * CT_TILE),
                              .ak = CT_TILE,
                              .b = ct_tiles_of(t->l, t->x[t->layer], 0, t->mt, u->k, columns),
                              .b_trans = true,
                              .bn = (int32_t)(t->mt * CT_TILE),
                              .bk = CT_TILE,
                              .acc = acc,
                              .kt = t->mt,
                              .nt = columns,
                              .rows = rows * CT_TILE,
                              .acc_n = 1});
}

static void store_tile(struct train *t, const struct ct_unit *u, uint32_t i,
                       const struct ct_optimised *o) {
  const struct ct_ref out = ct_part(u->out, i, i * CT_OUT_UNITS);
  const struct ct_ref copy = ct_behind(out, CT_STATE_UNITS);
  ct_vs(t->l, &(struct ct_vmove){.spm = out, .reg = o->v_new, .rows = CT_TILE});
  ct_vs(t->l, &(struct ct_vmove){
                  .spm = ct_behind(out, CT_F32_TILE_UNITS), .reg = o->w_new, .rows = CT_TILE});
  ct_vs(t->l,
        &(struct ct_vmove){.spm = copy, .reg = o->w_new, .mode = CT_VS_SQUARE, .rows = CT_TILE});
  ct_st(t->l, &(struct ct_dma){.dram = ct_unit_tiles(t, t->state[t->layer], u, i, 1),
                               .spm = out,
                               .nb = CT_STATE_UNITS});
  ct_st(t->l, &(struct ct_dma){.dram = ct_unit_tiles(t, t->weights[t->layer], u, i, 1),
                               .spm = copy,
                               .hdr = true,
                               .nb = CT_TILE});
}

/* t = w * wd + g, then the optimiser. */
static void update_tile(struct train *t, const struct ct_unit *u, uint32_t i) {
  const struct ct_ref in = ct_part(u->in, i, i * CT_STATE_UNITS), g = ct_train_temp(t, i);
  const struct ct_optimised o = {
      .v = ct_next(t->l, t->load),
      .w = ct_next(t->l, t->load),
      .t = g,
      .v_new = ct_next(t->l, t->out),
      .w_new = ct_next(t->l, t->out),
      .rows = ct_in_tile(t->net->width[t->layer + 1], u->n + (t->down ? i : 0)),
      .cols = ct_in_tile(t->net->width[t->layer], u->k + (t->down ? 0 : i))};
  ct_vl(t->l, &(struct ct_vmove){.spm = in, .reg = o.v, .rows = CT_TILE});
  ct_vl(t->l,
        &(struct ct_vmove){.spm = ct_behind(in, CT_F32_TILE_UNITS), .reg = o.w, .rows = CT_TILE});
  ct_va(t->l,
        &(struct ct_va){
            .to = g, .a = o.w, .b = CT_VA_SCALAR, .sb_reg = CT_TRAIN_WD, .q = g, .c = CT_VA_TILE});
  ct_train_optimise(t, &o);
  store_tile(t, u, i, &o);
}

void ct_unit_update(struct train *t, const struct ct_unit *u) {
  for (uint32_t j = 0; j < t->tiles; ++j)
    update_tile(t, u, j);
}

static void update_unit(void *train, uint32_t i) {
  struct train *t = train;
  const uint32_t at = t->first + i * t->unit;
  struct ct_unit u = {.n = t->down ? at : t->line, .k = t->down ? t->line : at};
  if (t->end != CT_TRAIN_UPDATES) {
    ct_gradient_unit(t, &u);
    return;
  }
  u.in = ct_next(t->l, t->in_slot);
  u.out = ct_next(t->l, t->out_slot);
  const struct ct_ref acc = ct_unit_acc(t);
  ct_unit_load(t, &u, t->state[t->layer], CT_STATE_UNITS, u.in);
  ct_unit_multiply(t, &u, acc);
  ct_va(t->l,
        &(struct ct_va){
            .to = ct_tiles_of(t->l, t->temp, 0, t->tiles, 0, 1), .a = acc, .more = t->tiles - 1});
  ct_unit_update(t, &u);
}

static void update_line(void *train, uint32_t i) {
  struct train *t = train;
  t->line = t->base + i;
  ct_repeat(t->l, t->columns, update_unit, t);
}

/* The units [first, ..) of all lines; the last line may be different. */
static void all_lines(struct train *t, uint32_t lines, bool part) {
  t->base = 0;
  ct_repeat(t->l, lines - (part ? 1 : 0), update_line, t);
  t->base = lines - 1;
  if (part) update_line(t, 0);
}

/* How uneven lines of that many tiles are when cut into units: 0 evenly, 1 into halves, 2 not. */
static unsigned unevenness(const struct train *t, uint32_t length) {
  return length % t->unit == 0 ? 0 : length % 2 == 0 ? 1 : 2;
}

/* By columns of W or by rows, whichever units divide more evenly. Columns are the better choice
 * otherwise, for the product of a unit then needs each tile of X once. */
static bool goes_down(const struct train *t, uint32_t nt, uint32_t kt) {
  const unsigned column = unevenness(t, nt), row = unevenness(t, kt);
  return column < row || (column == row && nt >= t->unit);
}

void ct_train_update(struct train *t, uint32_t layer) {
  const uint32_t kt = ct_mlp_in(t->net, layer), nt = ct_mlp_out(t->net, layer);
  const uint32_t *width = t->net->width + layer;
  t->layer = layer;
  t->down = goes_down(t, nt, kt);
  const uint32_t lines = t->down ? kt : nt, length = t->down ? nt : kt;
  const bool part_line = width[t->down ? 0 : 1] % CT_TILE != 0;
  const bool part_end = width[t->down ? 1 : 0] % CT_TILE != 0;
  const uint32_t rest = length % t->unit, full = length / t->unit;
  const uint32_t alike = full - (rest == 0 && part_end ? 1 : 0);
  t->tiles = t->unit;
  t->first = 0;
  t->columns = alike;
  if (alike) all_lines(t, lines, part_line);
  t->first = alike * t->unit;
  t->tiles = rest ? rest : t->unit;
  t->columns = 1;
  if (t->first < length) all_lines(t, lines, part_line);
}
