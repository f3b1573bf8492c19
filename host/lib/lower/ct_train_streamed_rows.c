/* SPDX-License-Identifier: Apache-2.0 */
/* What a streamed training step does without products: softmax with loss, sums, biases. */
#include "coltrain/coltrain.h"
#include "ct_train_streamed.h"

enum { MINUS_INF = 0xff800000u };

/* ---- Softmax ------------------------------------------------------------------------------- */

/* The row's sum of exponentials is no longer needed when its loss begins. */
enum { T_MAX, T_SUM, T_ROWLOSS = T_SUM, T_RECIP, T_LOG, T_E, T_D, T_LOSS, T_COUNT };

struct softmax {
  struct ct_streamed *s;
  uint32_t classes, ct, m, rows, cols;
  uint32_t z, y, g, dz;           /* tensors */
  uint32_t z_words, y_words, out; /* rings */
  uint32_t loads, results;
};

/* Calls a body for each column tile: in a loop, and for the last one, if that is partial. */
static void for_columns(struct softmax *k, ct_body *body) {
  const uint32_t whole = k->classes / CT_TILE;
  k->cols = CT_TILE;
  if (whole) ct_repeat(k->s->l, whole, body, k);
  k->cols = k->classes % CT_TILE;
  if (k->cols) body(k, whole);
}

static struct ct_ref load_z(struct softmax *k, uint32_t c) {
  struct ct_lower *l = k->s->l;
  const struct ct_ref words = ct_next(l, k->z_words), reg = ct_next(l, k->loads);
  ct_streamed_ld(k->s, ct_tile_of(l, k->z, k->m, c), words, CT_F32_TILE_UNITS);
  ct_vl(l, &(struct ct_vmove){.reg = reg, .spm = words, .rows = CT_TILE});
  return reg;
}

static struct ct_ref load_y(struct softmax *k, uint32_t c) {
  struct ct_lower *l = k->s->l;
  const struct ct_ref words = ct_next(l, k->y_words), reg = ct_next(l, k->loads);
  ct_streamed_ld_tile(k->s, ct_tile_of(l, k->y, k->m, c), words);
  ct_vl(l, &(struct ct_vmove){.reg = reg, .spm = words, .mode = CT_VL_HBFP8, .rows = CT_TILE});
  return reg;
}

static void add_to(struct softmax *k, uint32_t sum, uint32_t what, unsigned fn) {
  const struct ct_ref to = ct_streamed_temp(k->s, sum);
  ct_va(k->s->l,
        &(struct ct_va){
            .to = to, .a = to, .q = ct_streamed_temp(k->s, what), .c = CT_VA_TILE, .fn = fn});
}

static void max_tile(void *kernel, uint32_t c) {
  struct softmax *k = kernel;
  const struct ct_ref z = load_z(k, c);
  ct_va(k->s->l, &(struct ct_va){.to = ct_streamed_temp(k->s, T_E),
                                 .a = z,
                                 .ninf = true,
                                 .rows = k->rows,
                                 .cols = k->cols});
  add_to(k, T_MAX, T_E, CT_VA_MAX);
}

/* to = func(z - max), where the tile exists. */
static void minus_max(struct softmax *k, uint32_t to, struct ct_ref z, unsigned func) {
  ct_va(k->s->l, &(struct ct_va){.to = ct_streamed_temp(k->s, to),
                                 .a = z,
                                 .q = ct_streamed_temp(k->s, T_MAX),
                                 .c = CT_VA_TILE,
                                 .neg_c = true,
                                 .func = func,
                                 .rows = k->rows,
                                 .cols = k->cols});
}

static void sum_tile(void *kernel, uint32_t c) {
  struct softmax *k = kernel;
  minus_max(k, T_E, load_z(k, c), CT_VA_EXP);
  add_to(k, T_SUM, T_E, CT_VA_ADD);
}

/* g = (e * r - y) / batch */
static void gradient(struct softmax *k, struct ct_ref z, struct ct_ref y, struct ct_ref g) {
  struct ct_lower *l = k->s->l;
  const struct ct_ref e = ct_streamed_temp(k->s, T_E);
  minus_max(k, T_E, z, CT_VA_EXP);
  ct_va(l, &(struct ct_va){.to = e, .a = e, .q = ct_streamed_temp(k->s, T_RECIP), .b = CT_VA_TILE});
  ct_va(l, &(struct ct_va){.to = e, .a = e, .q = y, .c = CT_VA_TILE, .neg_c = true});
  ct_va(l, &(struct ct_va){.to = g,
                           .a = e,
                           .b = CT_VA_SCALAR,
                           .sb_reg = CT_TRAIN_INV,
                           .rows = k->rows,
                           .cols = k->cols});
}

/* Adds (l - d) * y to the row's loss. */
static void loss_terms(struct softmax *k, struct ct_ref z, struct ct_ref y) {
  struct ct_lower *l = k->s->l;
  const struct ct_ref d = ct_streamed_temp(k->s, T_D);
  minus_max(k, T_D, z, 0);
  ct_va(l,
        &(struct ct_va){
            .to = d, .a = ct_streamed_temp(k->s, T_LOG), .q = d, .c = CT_VA_TILE, .neg_c = true});
  ct_va(l, &(struct ct_va){
               .to = d, .a = d, .q = y, .b = CT_VA_TILE, .rows = k->rows, .cols = k->cols});
  add_to(k, T_ROWLOSS, T_D, CT_VA_ADD);
}

static void gradient_tile(void *kernel, uint32_t c) {
  struct softmax *k = kernel;
  struct ct_lower *l = k->s->l;
  const struct ct_ref z = load_z(k, c), y = load_y(k, c);
  const struct ct_ref g = ct_next(l, k->results), out = ct_next(l, k->out);
  const struct ct_ref square = ct_behind(out, CT_F32_TILE_UNITS);
  gradient(k, z, y, g);
  loss_terms(k, z, y);
  ct_vs(l, &(struct ct_vmove){.reg = g, .spm = out, .rows = CT_TILE});
  ct_vs(l, &(struct ct_vmove){.reg = g, .spm = square, .mode = CT_VS_SQUARE, .rows = CT_TILE});
  ct_streamed_st(k->s, ct_tile_of(l, k->g, k->m, c), out, CT_F32_TILE_UNITS);
  ct_streamed_st_tile(k->s, ct_tile_of(l, k->dz, k->m, c), square);
}

static void clear(struct softmax *k, uint32_t temp) {
  ct_va(k->s->l, &(struct ct_va){.to = ct_streamed_temp(k->s, temp)});
}

static void softmax_row(void *kernel, uint32_t m) {
  struct softmax *k = kernel;
  struct ct_lower *l = k->s->l;
  const struct ct_ref sum = ct_streamed_temp(k->s, T_SUM);
  k->m = m;
  ct_va(l,
        &(struct ct_va){.to = ct_streamed_temp(k->s, T_MAX), .c = CT_VA_SCALAR, .sc = MINUS_INF});
  for_columns(k, max_tile);
  ct_streamed_reduce(k->s, T_MAX, T_E, false, CT_VA_MAX, ct_streamed_temp(k->s, T_MAX));
  clear(k, T_SUM);
  for_columns(k, sum_tile);
  ct_streamed_reduce(k->s, T_SUM, T_E, false, CT_VA_ADD, sum);
  ct_va(l, &(struct ct_va){.to = ct_streamed_temp(k->s, T_RECIP), .a = sum, .func = CT_VA_RECIP});
  ct_va(l, &(struct ct_va){.to = ct_streamed_temp(k->s, T_LOG), .a = sum, .func = CT_VA_LOG});
  clear(k, T_ROWLOSS);
  for_columns(k, gradient_tile);
  ct_streamed_reduce(k->s, T_ROWLOSS, T_D, false, CT_VA_ADD, ct_streamed_temp(k->s, T_ROWLOSS));
  add_to(k, T_LOSS, T_ROWLOSS, CT_VA_ADD);
}

static void softmax_spaces(struct softmax *k) {
  struct ct_streamed *s = k->s;
  const uint32_t last = s->net->layers - 1;
  k->z = ct_streamed_z(s);
  k->g = ct_dram_tensor(s->l, "gradient", CT_TRAIN_WORK, s->at.g,
                        ct_grid(s->mt, k->ct, CT_F32_TILE_UNITS));
  k->y = ct_dram_tensor(s->l, "targets", CT_TRAIN_Y, 0, ct_grid(s->mt, k->ct, CT_RECORD_UNITS));
  k->dz = ct_streamed_dz(s, last);
  k->loads = ct_reg_ring(s->l, "loads", CT_R_TEMP + T_COUNT, 2);
  k->results = ct_reg_ring(s->l, "results", CT_R_TEMP + T_COUNT + 2, 2);
  k->z_words = ct_spm_ring(s->l, "logits", CT_F32_TILE_UNITS, s->slots);
  k->y_words = ct_spm_ring(s->l, "targets", CT_TILE, s->slots);
  k->out = ct_spm_ring(s->l, "out", CT_F32_TILE_UNITS + CT_TILE, s->slots);
}

int ct_streamed_softmax(struct ct_streamed *s) {
  const uint32_t classes = s->net->width[s->net->layers], batch = s->shape->batch;
  struct softmax k = {.s = s, .classes = classes, .ct = ct_tiles(classes)};
  const int err = ct_streamed_begin(s, T_COUNT);
  if (err) return err;
  softmax_spaces(&k);
  const uint32_t loss = ct_dram_tensor(s->l, "loss", CT_TRAIN_LOSS, 0, ct_grid(1, 1, 1));
  clear(&k, T_LOSS);
  k.rows = CT_TILE;
  if (batch / CT_TILE) ct_repeat(s->l, batch / CT_TILE, softmax_row, &k);
  k.rows = batch % CT_TILE;
  if (k.rows) softmax_row(&k, batch / CT_TILE);
  const struct ct_ref reg = ct_next(s->l, k.results), out = ct_next(s->l, k.out);
  ct_streamed_reduce(s, T_LOSS, T_D, true, CT_VA_ADD, reg);
  ct_vs(s->l, &(struct ct_vmove){.reg = reg, .spm = out, .rows = 1});
  ct_streamed_st(s, ct_tile_of(s->l, loss, 0, 0), out, 1);
  return ct_streamed_end(s);
}

/* ---- Bias gradients of the last layer ------------------------------------------------------ */

struct sums {
  struct ct_streamed *s;
  uint32_t c, g, db, words, out, loads, results;
};

static void add_row_tile(void *kernel, uint32_t m) {
  struct sums *k = kernel;
  struct ct_lower *l = k->s->l;
  const struct ct_ref words = ct_next(l, k->words), reg = ct_next(l, k->loads);
  const struct ct_ref sum = ct_streamed_temp(k->s, 0);
  ct_streamed_ld(k->s, ct_tile_of(l, k->g, m, k->c), words, CT_F32_TILE_UNITS);
  ct_vl(l, &(struct ct_vmove){.reg = reg, .spm = words, .rows = CT_TILE});
  ct_va(l, &(struct ct_va){.to = sum, .a = sum, .q = reg, .c = CT_VA_TILE});
}

static void sum_column(void *kernel, uint32_t c) {
  struct sums *k = kernel;
  struct ct_lower *l = k->s->l;
  k->c = c;
  ct_va(l, &(struct ct_va){.to = ct_streamed_temp(k->s, 0)});
  ct_repeat(l, k->s->mt, add_row_tile, k);
  const struct ct_ref reg = ct_next(l, k->results), out = ct_next(l, k->out);
  ct_streamed_reduce(k->s, 0, 1, true, CT_VA_ADD, reg);
  ct_vs(l, &(struct ct_vmove){.reg = reg, .spm = out, .rows = 1});
  ct_streamed_st(k->s, ct_tile_of(l, k->db, c, 0), out, CT_F32_ROW_UNITS);
}

int ct_streamed_last_sums(struct ct_streamed *s) {
  const uint32_t last = s->net->layers - 1, ct = ct_mlp_out(s->net, last);
  struct sums k = {.s = s};
  const int err = ct_streamed_begin(s, 2);
  if (err) return err;
  k.g = ct_dram_tensor(s->l, "gradient", CT_TRAIN_WORK, s->at.g,
                       ct_grid(s->mt, ct, CT_F32_TILE_UNITS));
  k.db = ct_dram_tensor(s->l, "bias gradients", CT_TRAIN_WORK,
                        s->at.db + (uint64_t)ct_mlp_bias_tile(s->net, last) * CT_F32_ROW_UNITS,
                        ct_grid(ct, 1, CT_F32_ROW_UNITS));
  k.loads = ct_reg_ring(s->l, "loads", CT_R_TEMP + 2, 2);
  k.results = ct_reg_ring(s->l, "results", CT_R_TEMP + 4, 1);
  k.words = ct_spm_ring(s->l, "in", CT_F32_TILE_UNITS, s->slots);
  k.out = ct_spm_ring(s->l, "out", CT_F32_ROW_UNITS, 1);
  ct_repeat(s->l, ct, sum_column, &k);
  return ct_streamed_end(s);
}

/* ---- Biases -------------------------------------------------------------------------------- */

/* A register takes sixteen column tiles, one a row; fewer in a small window. */
struct biases {
  struct ct_streamed *s;
  uint32_t rows, at, tiles;
  uint32_t v, g, b;
  uint32_t in, out, loads, results;
};

static void biases_pass(void *kernel, uint32_t pass) {
  struct biases *k = kernel;
  struct ct_lower *l = k->s->l;
  const struct ct_ref in = ct_next(l, k->in), out = ct_next(l, k->out);
  const uint32_t at = k->at + pass * k->tiles, units = k->rows * CT_F32_ROW_UNITS;
  const uint32_t from[3] = {k->v, k->g, k->b}, to[2] = {k->v, k->b};
  struct ct_ref x[3], y[2];
  for (uint32_t i = 0; i < 3; ++i) {
    const struct ct_ref words = ct_behind(in, i * k->tiles * CT_F32_ROW_UNITS);
    x[i] = ct_next(l, k->loads);
    ct_streamed_ld(k->s, ct_tiles_of(l, from[i], at, k->rows, 0, 1), words, units);
    ct_vl(l, &(struct ct_vmove){.reg = x[i], .spm = words, .rows = k->rows});
  }
  y[0] = ct_next(l, k->results);
  y[1] = ct_next(l, k->results);
  ct_va(l, &(struct ct_va){.to = y[0],
                           .a = x[0],
                           .b = CT_VA_SCALAR,
                           .sb_reg = CT_TRAIN_MU,
                           .q = x[1],
                           .c = CT_VA_TILE,
                           .rows = k->rows});
  ct_va(l, &(struct ct_va){.to = y[1],
                           .a = y[0],
                           .b = CT_VA_SCALAR,
                           .sb_reg = CT_TRAIN_NEG_LR,
                           .q = x[2],
                           .c = CT_VA_TILE,
                           .rows = k->rows});
  for (uint32_t i = 0; i < 2; ++i) {
    const struct ct_ref words = ct_behind(out, i * k->tiles * CT_F32_ROW_UNITS);
    ct_vs(l, &(struct ct_vmove){.reg = y[i], .spm = words, .rows = k->rows});
    ct_streamed_st(k->s, ct_tiles_of(l, to[i], at, k->rows, 0, 1), words, units);
  }
}

/* Gradients instead: to device memory, or added to what is there. */
static void gradients_pass(void *kernel, uint32_t pass) {
  struct biases *k = kernel;
  struct ct_lower *l = k->s->l;
  const bool adds = k->s->shape->gradients == CT_GRADIENTS_ADD;
  const struct ct_ref in = ct_next(l, k->in), out = ct_next(l, k->out);
  const uint32_t at = k->at + pass * k->tiles, units = k->rows * CT_F32_ROW_UNITS;
  const uint32_t from[2] = {k->g, k->v};
  struct ct_ref x[2] = {{0}, {0}};
  for (uint32_t i = 0; i < (adds ? 2 : 1); ++i) {
    const struct ct_ref words = ct_behind(in, i * k->tiles * CT_F32_ROW_UNITS);
    x[i] = ct_next(l, k->loads);
    ct_streamed_ld(k->s, ct_tiles_of(l, from[i], at, k->rows, 0, 1), words, units);
    ct_vl(l, &(struct ct_vmove){.reg = x[i], .spm = words, .rows = k->rows});
  }
  const struct ct_ref y = ct_next(l, k->results);
  ct_va(l,
        &(struct ct_va){
            .to = y, .a = x[0], .q = x[1], .c = adds ? CT_VA_TILE : CT_VA_NONE, .rows = k->rows});
  ct_vs(l, &(struct ct_vmove){.reg = y, .spm = out, .rows = k->rows});
  ct_streamed_st(k->s, ct_tiles_of(l, k->v, at, k->rows, 0, 1), out, units);
}

int ct_streamed_biases(struct ct_streamed *s) {
  const uint32_t columns = ct_mlp_bias_tile(s->net, s->net->layers);
  const bool keeps = s->shape->gradients != CT_GRADIENTS_NONE;
  ct_body *body = keeps ? gradients_pass : biases_pass;
  struct biases k = {.s = s, .tiles = s->slots == 1 ? CT_TILE / 2 : CT_TILE};
  const int err = ct_streamed_begin(s, 0);
  if (err) return err;
  k.v = ct_dram_tensor(s->l, keeps ? "gradients" : "momentum", CT_TRAIN_STATE,
                       keeps ? ct_mlp_bias_gradient_at(s->net) : ct_mlp_bias_momentum_at(s->net),
                       ct_grid(columns, 1, CT_F32_ROW_UNITS));
  k.g = ct_dram_tensor(s->l, "bias gradients", CT_TRAIN_WORK, s->at.db,
                       ct_grid(columns, 1, CT_F32_ROW_UNITS));
  k.b = ct_dram_tensor(s->l, "biases", CT_TRAIN_IMAGE, ct_mlp_bias_at(s->net),
                       ct_grid(columns, 1, CT_F32_ROW_UNITS));
  k.loads = ct_reg_ring(s->l, "loads", CT_R_TEMP, 3);
  k.results = ct_reg_ring(s->l, "results", CT_R_TEMP + 3, 2);
  k.in = ct_spm_ring(s->l, "in", 3 * k.tiles * CT_F32_ROW_UNITS, 1);
  k.out = ct_spm_ring(s->l, "out", 2 * k.tiles * CT_F32_ROW_UNITS, 1);
  k.rows = k.tiles;
  if (columns / k.tiles) ct_repeat(s->l, columns / k.tiles, body, &k);
  k.at = columns / k.tiles * k.tiles;
  k.rows = columns - k.at;
  if (k.rows) body(&k, 0);
  return ct_streamed_end(s);
}
