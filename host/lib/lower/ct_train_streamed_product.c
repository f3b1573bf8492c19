/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of a streamed training step: forward, backward, update.
 *
 * The result is cut into blocks of bm x bn tiles, column of blocks by column of blocks, from the
 * top down. A block's operands come in chunks of k steps through a ring; its sums stay in ACC from
 * chunk to chunk. The last column of blocks may be narrower and its last tile partial, so it is a
 * program of its own; the last row of blocks, whose last tile may be partial, is peeled.
 */
#include "coltrain/coltrain.h"
#include "ct_train_streamed.h"

enum { MOST_STEPS = 16, BIASES = 8, MOST_SUMS = 4 };
enum { WIDE_WINDOW = 8192, MOST_UPDATE = 4 };

enum kind { FORWARD, BACKWARD, UPDATE };

/* An operand: tiles (block tile, k step), or the other way round. */
struct operand {
  uint32_t tensor, row, col; /* units from row to row, column to column of its tiles */
  bool trans;                /* k steps are its rows */
};

struct product {
  struct ct_streamed *s;
  enum kind kind;
  uint32_t l;
  uint32_t rows, cols;     /* of the result, elements */
  uint32_t mt, nt, steps;  /* and tiles; tiles of the contraction */
  uint32_t bm, bn, blocks; /* of a block; blocks in a column */
  uint32_t first, columns; /* columns of blocks in this program */
  uint32_t chunk, chunks;  /* k steps of a chunk */
  struct operand a, b;
  uint32_t to, from, state, sums_at, bias_at; /* tensors */
  uint32_t ring, acc, res, out, in, regs, bias_words, bias_regs, sum_words;

  uint32_t i, j;           /* first tile of the block */
  struct ct_ref sum, bias; /* what is alive */
};

/* ---- One block ----------------------------------------------------------------------------- */

static struct ct_ref tiles(const struct product *p, const struct operand *o, uint32_t at,
                           uint32_t n, uint32_t k, uint32_t steps) {
  return o->trans ? ct_tiles_of(p->s->l, o->tensor, k, steps, at, n)
                  : ct_tiles_of(p->s->l, o->tensor, at, n, k, steps);
}

static void load(const struct product *p, const struct operand *o, struct ct_ref from,
                 struct ct_ref to, uint32_t n, uint32_t steps) {
  ct_ld(p->s->l, &(struct ct_dma){.dram = from,
                                  .spm = to,
                                  .hdr = true,
                                  .nb = CT_TILE,
                                  .n1 = n,
                                  .d1 = (int32_t)(o->trans ? o->col : o->row),
                                  .s1 = CT_TILE,
                                  .n2 = steps,
                                  .d2 = (int32_t)(o->trans ? o->row : o->col),
                                  .s2 = (int32_t)(n * CT_TILE)});
}

/* k steps from k on, loaded and multiplied. */
static void chunk(struct product *p, uint32_t k, uint32_t steps) {
  const struct ct_ref a = ct_next(p->s->l, p->ring);
  const struct ct_ref b = ct_behind(a, p->chunk * p->bm * CT_TILE);
  load(p, &p->a, tiles(p, &p->a, p->i, p->bm, k, steps), a, p->bm, steps);
  load(p, &p->b, tiles(p, &p->b, p->j, p->bn, k, steps), b, p->bn, steps);
  ct_mm(p->s->l, &(struct ct_mm){.a = a,
                                 .b = b,
                                 .acc = p->sum,
                                 .a_trans = p->a.trans,
                                 .b_trans = p->b.trans,
                                 .accum = k > 0,
                                 .am = CT_TILE,
                                 .ak = (int32_t)(p->bm * CT_TILE),
                                 .bn = CT_TILE,
                                 .bk = (int32_t)(p->bn * CT_TILE),
                                 .kt = steps,
                                 .nt = p->bn,
                                 .rows = p->bm * CT_TILE,
                                 .acc_n = p->bm});
}

static void middle_chunk(void *kernel, uint32_t pass) {
  struct product *p = kernel;
  chunk(p, (pass + 1) * p->chunk, p->chunk);
}

static void multiply(struct product *p) {
  const uint32_t last = (p->chunks - 1) * p->chunk;
  p->sum = ct_next_n(p->s->l, p->acc, p->bm * p->bn);
  if (p->chunks > 1) chunk(p, 0, p->chunk);
  if (p->chunks > 2) ct_repeat(p->s->l, p->chunks - 2, middle_chunk, p);
  chunk(p, last, p->steps - last);
}

/* Valid rows and columns of a tile. Only tiles at the edge have fewer than 16. */
static uint32_t rows_of(const struct product *p, uint32_t m) {
  return ct_in_tile(p->rows, m);
}

static uint32_t cols_of(const struct product *p, uint32_t n) {
  return ct_in_tile(p->cols, n);
}

/* ---- Forward ------------------------------------------------------------------------------- */

static void forward_tile(struct product *p, struct ct_ref acc, uint32_t m, uint32_t n) {
  struct ct_lower *l = p->s->l;
  const bool last = p->l + 1 == p->s->net->layers;
  const struct ct_ref reg = ct_next(l, p->res), out = ct_next(l, p->out);
  ct_va(l, &(struct ct_va){.to = reg,
                           .a = acc,
                           .q = ct_nth(p->bias, n - p->j),
                           .c = CT_VA_ROW0,
                           .relu = !last,
                           .rows = rows_of(p, m),
                           .cols = cols_of(p, n)});
  ct_vs(l, &(struct ct_vmove){
               .reg = reg, .spm = out, .mode = last ? CT_VS_F32 : CT_VS_SQUARE, .rows = CT_TILE});
  if (last)
    ct_streamed_st(p->s, ct_tile_of(l, p->to, m, n), out, CT_F32_TILE_UNITS);
  else
    ct_streamed_st_tile(p->s, ct_tile_of(l, p->to, m, n), out);
}

static void load_biases(struct product *p) {
  struct ct_lower *l = p->s->l;
  const struct ct_ref words = ct_next(l, p->bias_words);
  p->bias = ct_next_n(l, p->bias_regs, p->bn);
  ct_streamed_ld(p->s, ct_tiles_of(l, p->bias_at, p->j, p->bn, 0, 1), words,
                 p->bn * CT_F32_ROW_UNITS);
  for (uint32_t n = 0; n < p->bn; ++n)
    ct_vl(l,
          &(struct ct_vmove){
              .reg = ct_nth(p->bias, n), .spm = ct_behind(words, n * CT_F32_ROW_UNITS), .rows = 1});
}

/* ---- Backward ------------------------------------------------------------------------------ */

enum { T_PARTIAL = MOST_SUMS }; /* temporaries 0..3 are sums */

static void backward_tile(struct product *p, struct ct_ref acc, uint32_t m, uint32_t n) {
  struct ct_lower *l = p->s->l;
  const struct ct_ref words = ct_next(l, p->in), sign = ct_next(l, p->regs);
  const struct ct_ref reg = ct_next(l, p->res), out = ct_next(l, p->out);
  const struct ct_ref sum = ct_streamed_temp(p->s, n - p->j);
  ct_streamed_ld_tile(p->s, ct_tile_of(l, p->from, m, n), words);
  ct_vl(l, &(struct ct_vmove){.reg = sign, .spm = words, .mode = CT_VL_SIGN, .rows = CT_TILE});
  ct_va(l, &(struct ct_va){.to = reg,
                           .a = acc,
                           .q = sign,
                           .c = CT_VA_TILE,
                           .fn = CT_VA_SELECT,
                           .rows = rows_of(p, m),
                           .cols = cols_of(p, n)});
  ct_va(l, &(struct ct_va){.to = sum, .a = sum, .q = reg, .c = CT_VA_TILE});
  ct_vs(l, &(struct ct_vmove){.reg = reg, .spm = out, .mode = CT_VS_SQUARE, .rows = CT_TILE});
  ct_streamed_st_tile(p->s, ct_tile_of(l, p->to, m, n), out);
}

static void clear_sums(struct product *p) {
  for (uint32_t n = 0; n < p->bn; ++n)
    ct_va(p->s->l, &(struct ct_va){.to = ct_streamed_temp(p->s, n)});
}

static void store_sums(struct product *p) {
  struct ct_lower *l = p->s->l;
  for (uint32_t n = 0; n < p->bn; ++n) {
    const struct ct_ref reg = ct_next(l, p->res), out = ct_next(l, p->sum_words);
    ct_streamed_reduce(p->s, n, T_PARTIAL, true, CT_VA_ADD, reg);
    ct_vs(l, &(struct ct_vmove){.reg = reg, .spm = out, .rows = 1});
    ct_streamed_st(p->s, ct_tile_of(l, p->sums_at, p->j + n, 0), out, CT_F32_ROW_UNITS);
  }
}

/* ---- Update -------------------------------------------------------------------------------- */

/* t = w * wd + g, v = v * mu + t, w = v * -lr + w. */
static void update_values(struct product *p, struct ct_ref g, const struct ct_ref *in,
                          const struct ct_ref *out, const struct ct_va *edge) {
  struct ct_lower *l = p->s->l;
  ct_va(
      l,
      &(struct ct_va){
          .to = g, .a = in[1], .b = CT_VA_SCALAR, .sb_reg = CT_TRAIN_WD, .q = g, .c = CT_VA_TILE});
  ct_va(l, &(struct ct_va){.to = out[0],
                           .a = in[0],
                           .b = CT_VA_SCALAR,
                           .sb_reg = CT_TRAIN_MU,
                           .q = g,
                           .c = CT_VA_TILE,
                           .rows = edge->rows,
                           .cols = edge->cols});
  ct_va(l, &(struct ct_va){.to = out[1],
                           .a = out[0],
                           .b = CT_VA_SCALAR,
                           .sb_reg = CT_TRAIN_NEG_LR,
                           .q = in[1],
                           .c = CT_VA_TILE,
                           .rows = edge->rows,
                           .cols = edge->cols});
}

static void update_tile(struct product *p, struct ct_ref g, uint32_t m, uint32_t n) {
  struct ct_lower *l = p->s->l;
  const struct ct_ref words = ct_next(l, p->in), out = p->out ? ct_next(l, p->out) : words;
  const struct ct_ref in[2] = {ct_next(l, p->regs), ct_next(l, p->regs)};
  const struct ct_ref res[2] = {ct_next(l, p->res), ct_next(l, p->res)};
  const struct ct_va edge = {.rows = rows_of(p, m), .cols = cols_of(p, n)};
  ct_streamed_ld(p->s, ct_tile_of(l, p->state, m, n), words, CT_STATE_UNITS);
  for (uint32_t i = 0; i < 2; ++i)
    ct_vl(l, &(struct ct_vmove){
                 .reg = in[i], .spm = ct_behind(words, i * CT_F32_TILE_UNITS), .rows = CT_TILE});
  update_values(p, g, in, res, &edge);
  for (uint32_t i = 0; i < 2; ++i)
    ct_vs(l, &(struct ct_vmove){
                 .reg = res[i], .spm = ct_behind(out, i * CT_F32_TILE_UNITS), .rows = CT_TILE});
  ct_vs(l, &(struct ct_vmove){.reg = res[1],
                              .spm = ct_behind(out, CT_STATE_UNITS),
                              .mode = CT_VS_SQUARE,
                              .rows = CT_TILE});
  ct_streamed_st(p->s, ct_tile_of(l, p->state, m, n), out, CT_STATE_UNITS);
  ct_streamed_st_tile(p->s, ct_tile_of(l, p->to, m, n), ct_behind(out, CT_STATE_UNITS));
}

/* Instead: to device memory, or added to what is there. */
static void keep_tile(struct product *p, struct ct_ref g, uint32_t m, uint32_t n) {
  struct ct_lower *l = p->s->l;
  struct ct_va add = {.a = g};
  if (p->s->shape->gradients == CT_GRADIENTS_ADD) {
    const struct ct_ref words = ct_next(l, p->in);
    add.q = ct_next(l, p->regs);
    add.c = CT_VA_TILE;
    ct_streamed_ld(p->s, ct_tile_of(l, p->state, m, n), words, CT_F32_TILE_UNITS);
    ct_vl(l, &(struct ct_vmove){.reg = add.q, .spm = words, .rows = CT_TILE});
  }
  const struct ct_ref out = ct_next(l, p->out);
  add.to = ct_next(l, p->res);
  ct_va(l, &add);
  ct_vs(l, &(struct ct_vmove){.reg = add.to, .spm = out, .rows = CT_TILE});
  ct_streamed_st(p->s, ct_tile_of(l, p->state, m, n), out, CT_F32_TILE_UNITS);
}

/* ---- All blocks ---------------------------------------------------------------------------- */

/* All gradients leave ACC at once, so that the next product may begin. */
static void take_gradients(struct product *p) {
  for (uint32_t t = 0; t < p->bm * p->bn; ++t)
    ct_va(p->s->l, &(struct ct_va){.to = ct_streamed_temp(p->s, t), .a = ct_nth(p->sum, t)});
}

static void block(void *kernel, uint32_t pass) {
  struct product *p = kernel;
  p->i = pass * p->bm;
  multiply(p);
  if (p->kind == UPDATE) take_gradients(p);
  for (uint32_t t = 0; t < p->bm * p->bn; ++t) {
    const uint32_t m = p->i + t % p->bm, n = p->j + t / p->bm;
    if (p->kind == FORWARD)
      forward_tile(p, ct_nth(p->sum, t), m, n);
    else if (p->kind == BACKWARD)
      backward_tile(p, ct_nth(p->sum, t), m, n);
    else if (p->s->shape->gradients)
      keep_tile(p, ct_streamed_temp(p->s, t), m, n);
    else
      update_tile(p, ct_streamed_temp(p->s, t), m, n);
  }
}

static void column(void *kernel, uint32_t pass) {
  struct product *p = kernel;
  p->j = p->first + pass * p->bn;
  if (p->kind == FORWARD) load_biases(p);
  if (p->kind == BACKWARD) clear_sums(p);
  if (p->blocks > 1) ct_repeat(p->s->l, p->blocks - 1, block, p);
  block(p, p->blocks - 1);
  if (p->kind == BACKWARD) store_sums(p);
}

/* ---- Tensors and rings --------------------------------------------------------------------- */

static struct operand operand(uint32_t tensor, uint32_t cols, bool trans) {
  return (struct operand){
      .tensor = tensor, .row = cols * CT_RECORD_UNITS, .col = CT_RECORD_UNITS, .trans = trans};
}

static uint32_t weights(struct product *p) {
  const struct ct_mlp *net = p->s->net;
  return ct_dram_tensor(p->s->l, "weights", CT_TRAIN_IMAGE,
                        (uint64_t)ct_mlp_tile(net, p->l) * CT_RECORD_UNITS,
                        ct_grid(ct_mlp_out(net, p->l), ct_mlp_in(net, p->l), CT_RECORD_UNITS));
}

/* A row of four units for each column tile of a layer, behind `at`. */
static uint32_t bias_rows(struct product *p, unsigned reg, uint64_t at, uint32_t l) {
  at += (uint64_t)ct_mlp_bias_tile(p->s->net, l) * CT_F32_ROW_UNITS;
  return ct_dram_tensor(p->s->l, "biases", reg, at,
                        ct_grid(ct_mlp_out(p->s->net, l), 1, CT_F32_ROW_UNITS));
}

/* Slots for tiles that come and go: those of a block, as then rings have come round behind it. */
static uint32_t tile_slots(const struct product *p) {
  return p->s->shape->spm_words < WIDE_WINDOW ? p->s->slots : p->bm * p->bn;
}

static void forward_spaces(struct product *p) {
  struct ct_streamed *s = p->s;
  const uint32_t kt = ct_mlp_in(s->net, p->l);
  const bool last = p->l + 1 == s->net->layers;
  p->a = operand(ct_streamed_x(s, p->l), kt, false);
  p->b = operand(weights(p), kt, false);
  p->bias_at = bias_rows(p, CT_TRAIN_IMAGE, ct_mlp_bias_at(s->net), p->l);
  p->to = last ? ct_streamed_z(s) : ct_streamed_x(s, p->l + 1);
  p->bias_words = ct_spm_ring(s->l, "biases", p->bn * CT_F32_ROW_UNITS, 1);
  p->bias_regs = ct_reg_ring(s->l, "bias registers", CT_R_TEMP, p->bn);
  p->res = ct_reg_ring(s->l, "results", CT_R_TEMP + BIASES, 2);
  p->out = ct_spm_ring(s->l, "out", last ? CT_F32_TILE_UNITS : CT_TILE, tile_slots(p));
}

static void backward_spaces(struct product *p) {
  struct ct_streamed *s = p->s;
  p->a = operand(ct_streamed_dz(s, p->l), p->steps, false);
  p->b = operand(weights(p), p->nt, true);
  p->from = ct_streamed_x(s, p->l);
  p->to = ct_streamed_dz(s, p->l - 1);
  p->sums_at = bias_rows(p, CT_TRAIN_WORK, s->at.db, p->l - 1);
  p->regs = ct_reg_ring(s->l, "signs", CT_R_TEMP + T_PARTIAL + 1, 2);
  p->res = ct_reg_ring(s->l, "results", CT_R_TEMP + T_PARTIAL + 3, 2);
  p->sum_words = ct_spm_ring(s->l, "sums", CT_F32_ROW_UNITS, p->bn);
  p->in = ct_spm_ring(s->l, "activations", CT_TILE, tile_slots(p));
  p->out = ct_spm_ring(s->l, "out", CT_TILE, tile_slots(p));
}

static void update_spaces(struct product *p) {
  struct ct_streamed *s = p->s;
  p->a = operand(ct_streamed_dz(s, p->l), p->mt, true);
  p->b = operand(ct_streamed_x(s, p->l), p->nt, true);
  const bool keeps = s->shape->gradients != CT_GRADIENTS_NONE;
  const uint32_t units = keeps ? CT_F32_TILE_UNITS : CT_STATE_UNITS, more = keeps ? 0 : CT_TILE;
  p->to = weights(p);
  p->state =
      ct_dram_tensor(s->l, keeps ? "gradients" : "state", CT_TRAIN_STATE,
                     (uint64_t)ct_mlp_tile(s->net, p->l) * units, ct_grid(p->mt, p->nt, units));
  const uint32_t regs = keeps ? 2 : 4; /* two tiles' */
  p->regs = ct_reg_ring(s->l, "loads", CT_R_TEMP + MOST_UPDATE, regs);
  p->res = ct_reg_ring(s->l, "results", CT_R_TEMP + MOST_UPDATE + 4, regs);
  /* New values take the old ones' words; a gradient that is loaded and one that is stored need
   * less. */
  const bool in_place = s->slots == 1 && !keeps;
  p->in = ct_spm_ring(s->l, "in", in_place ? units + more : units, tile_slots(p));
  p->out = in_place ? 0 : ct_spm_ring(s->l, "out", units + more, tile_slots(p));
}

/* k steps of a chunk in a ring of so many slots; 0: none fit. With two slots the number of chunks
 * is even, so that the ring has come round behind each block and loops need no copies of it. */
static uint32_t chunk_steps(const struct product *p, uint32_t slots, uint32_t step) {
  const uint32_t window = p->s->shape->spm_words;
  const uint64_t taken = ct_spm_taken(p->s->l);
  const uint32_t room = taken < window ? window - (uint32_t)taken : 0;
  uint32_t most = ct_min_u32(room / (slots * step), MOST_STEPS);
  most = ct_min_u32(most, ct_ceil_div(p->steps, slots));
  while (slots == 2 && most && ct_ceil_div(p->steps, most) % 2)
    --most;
  return most;
}

static void operand_ring(struct product *p) {
  const uint32_t step = (p->bm + p->bn) * CT_TILE;
  uint32_t slots = p->steps > 1 ? 2 : 1;
  p->chunk = chunk_steps(p, slots, step);
  if (p->chunk == 0) {
    slots = 1;
    p->chunk = chunk_steps(p, slots, step);
  }
  if (p->chunk == 0) p->chunk = 1; /* ct_streamed_end() refuses what has no room */
  p->chunks = ct_ceil_div(p->steps, p->chunk);
  p->ring = ct_spm_ring(p->s->l, "operands", p->chunk * step, slots);
}

/* The largest block of up to `most` tiles with whole columns of blocks. */
static void choose_block(struct product *p, uint32_t most) {
  p->bm = 1;
  for (uint32_t bm = 2; bm <= 4; ++bm)
    if (p->mt % bm == 0 && 2 * bm <= most) p->bm = bm;
  p->bn = most / p->bm;
  if (p->kind == BACKWARD && p->bn > MOST_SUMS) p->bn = MOST_SUMS;
  p->blocks = p->mt / p->bm;
}

static int program(struct product *p, uint32_t first, uint32_t bn, uint32_t columns) {
  static const uint32_t temps[] = {
      [FORWARD] = 0, [BACKWARD] = T_PARTIAL + 1, [UPDATE] = MOST_UPDATE};
  const int err = ct_streamed_begin(p->s, temps[p->kind]);
  if (err) return err;
  p->first = first;
  p->bn = bn;
  p->columns = columns;
  if (p->kind == FORWARD)
    forward_spaces(p);
  else if (p->kind == BACKWARD)
    backward_spaces(p);
  else
    update_spaces(p);
  p->acc = ct_acc_ring(p->s->l, "products", 0, p->bm * p->bn);
  operand_ring(p);
  ct_repeat(p->s->l, columns, column, p);
  return ct_streamed_end(p->s);
}

static int product(struct product *p, uint32_t most) {
  p->mt = ct_tiles(p->rows);
  p->nt = ct_tiles(p->cols);
  choose_block(p, p->s->slots == 1 ? 1 : most);
  const uint32_t bn = p->bn, whole = p->cols / CT_TILE / bn;
  int err = whole ? program(p, 0, bn, whole) : CT_OK;
  if (!err && whole * bn < p->nt) err = program(p, whole * bn, p->nt - whole * bn, 1);
  return err;
}

int ct_streamed_forward(struct ct_streamed *s, uint32_t l) {
  struct product p = {.s = s,
                      .kind = FORWARD,
                      .l = l,
                      .rows = s->shape->batch,
                      .cols = s->net->width[l + 1],
                      .steps = ct_mlp_in(s->net, l)};
  return product(&p, BIASES);
}

int ct_streamed_backward(struct ct_streamed *s, uint32_t l) {
  struct product p = {.s = s,
                      .kind = BACKWARD,
                      .l = l,
                      .rows = s->shape->batch,
                      .cols = s->net->width[l],
                      .steps = ct_mlp_out(s->net, l)};
  return product(&p, 8);
}

int ct_streamed_update(struct ct_streamed *s, uint32_t l) {
  struct product p = {.s = s,
                      .kind = UPDATE,
                      .l = l,
                      .rows = s->net->width[l + 1],
                      .cols = s->net->width[l],
                      .steps = s->mt};
  return product(&p, MOST_UPDATE);
}
