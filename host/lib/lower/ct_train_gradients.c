/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training through gradients in device memory (docs/numerics.md, Gradients): what a step does at
 * its end instead of its update, and the update from there, which is a program of its own.
 */
#include "coltrain/coltrain.h"
#include "ct_train.h"

/* ---- A step's end -------------------------------------------------------------------------- */

/* Sixteen column tiles, one a row of the register. What was in device memory is where the momentum
 * would be. */
static void bias_rows(struct train *t, uint32_t c, uint32_t rows) {
  const uint32_t at = c * CT_TILE * CT_F32_ROW_UNITS, words = rows * CT_F32_ROW_UNITS;
  struct ct_va add = {.a = ct_next(t->l, t->load)};
  ct_vl(t->l, &(struct ct_vmove){
                  .spm = ct_tiles_of(t->l, t->db, at, words, 0, 1), .reg = add.a, .rows = rows});
  if (t->end == CT_TRAIN_ADDS) {
    add.q = ct_next(t->l, t->load);
    add.c = CT_VA_TILE;
    ct_vl(t->l, &(struct ct_vmove){
                    .spm = ct_tiles_of(t->l, t->vb, at, words, 0, 1), .reg = add.q, .rows = rows});
  }
  add.to = ct_next(t->l, t->out);
  add.rows = rows;
  ct_va(t->l, &add);
  ct_vs(t->l, &(struct ct_vmove){
                  .spm = ct_tiles_of(t->l, t->vb, at, words, 0, 1), .reg = add.to, .rows = rows});
}

static void full_rows(void *train, uint32_t c) {
  bias_rows(train, c, CT_TILE);
}

void ct_gradient_biases(struct train *t) {
  const uint32_t tiles = ct_mlp_bias_tile(t->net, t->net->layers), full = tiles / CT_TILE;
  ct_repeat(t->l, full, full_rows, t);
  if (tiles % CT_TILE) bias_rows(t, full, tiles % CT_TILE);
  ct_train_store_words(t, t->gradient_bias, t->vb, tiles * CT_F32_ROW_UNITS);
}

static void keep_tile(struct train *t, const struct ct_unit *u, uint32_t i, struct ct_ref acc) {
  const uint32_t gradients = t->gradients[t->layer], at = i * CT_F32_TILE_UNITS;
  const struct ct_ref out = ct_part(u->out, i, at);
  struct ct_va add = {.a = acc};
  if (t->end == CT_TRAIN_ADDS) {
    add.q = ct_next(t->l, t->keep_load);
    add.c = CT_VA_TILE;
    ct_vl(t->l, &(struct ct_vmove){.spm = ct_part(u->in, i, at), .reg = add.q, .rows = CT_TILE});
  }
  add.to = ct_next(t->l, t->keep_out);
  ct_va(t->l, &add);
  ct_vs(t->l, &(struct ct_vmove){.spm = out, .reg = add.to, .rows = CT_TILE});
  ct_st(t->l,
        &(struct ct_dma){
            .dram = ct_unit_tiles(t, gradients, u, i, 1), .spm = out, .nb = CT_F32_TILE_UNITS});
}

static void keep_unit(struct train *t, struct ct_unit *u) {
  if (t->end == CT_TRAIN_ADDS) {
    u->in = ct_next(t->l, t->in_slot);
    ct_unit_load(t, u, t->gradients[t->layer], CT_F32_TILE_UNITS, u->in);
  }
  u->out = ct_next(t->l, t->out_slot);
  const struct ct_ref acc = ct_unit_acc(t);
  ct_unit_multiply(t, u, acc);
  for (uint32_t i = 0; i < t->tiles; ++i)
    keep_tile(t, u, i, ct_nth(acc, i));
}

/* ---- An update ----------------------------------------------------------------------------- */

/* The gradient of each tile, scaled, is where a step would have it. */
static void apply_unit(struct train *t, struct ct_unit *u) {
  const struct ct_ref gradients = ct_next(t->l, t->gradient_slot);
  u->in = ct_next(t->l, t->in_slot);
  u->out = ct_next(t->l, t->out_slot);
  ct_unit_load(t, u, t->gradients[t->layer], CT_F32_TILE_UNITS, gradients);
  ct_unit_load(t, u, t->state[t->layer], CT_STATE_UNITS, u->in);
  for (uint32_t i = 0; i < t->tiles; ++i) {
    const struct ct_ref reg = ct_next(t->l, t->load);
    ct_vl(t->l,
          &(struct ct_vmove){
              .spm = ct_part(gradients, i, i * CT_F32_TILE_UNITS), .reg = reg, .rows = CT_TILE});
    ct_va(t->l,
          &(struct ct_va){
              .to = ct_train_temp(t, i), .a = reg, .b = CT_VA_SCALAR, .sb_reg = CT_APPLY_SCALE});
  }
  ct_unit_update(t, u);
}

void ct_gradient_unit(struct train *t, const struct ct_unit *at) {
  struct ct_unit u = *at;
  if (t->end == CT_TRAIN_APPLIES)
    apply_unit(t, &u);
  else
    keep_unit(t, &u);
}

/* Biases: column tiles from `first` on, one a row of a register. The gradient comes first, for it
 * is over first: a ring's generations end in the order in which they began. */
static void apply_bias_rows(struct train *t, uint32_t first, uint32_t rows) {
  const uint32_t words = rows * CT_F32_ROW_UNITS, room = t->bias_tiles * CT_F32_ROW_UNITS;
  const uint32_t from[3] = {t->gradient_bias, t->state_bias, t->image_bias};
  const struct ct_ref in = ct_next(t->l, t->bias_in), out = ct_next(t->l, t->bias_out);
  struct ct_ref reg[3];
  for (uint32_t i = 0; i < 3; ++i) {
    const struct ct_ref slot = ct_behind(in, i * room);
    reg[i] = ct_next(t->l, t->load);
    ct_ld(t->l,
          &(struct ct_dma){
              .dram = ct_tiles_of(t->l, from[i], first, rows, 0, 1), .spm = slot, .nb = words});
    ct_vl(t->l, &(struct ct_vmove){.spm = slot, .reg = reg[i], .rows = rows});
  }
  const struct ct_optimised o = {.v = reg[1],
                                 .w = reg[2],
                                 .t = ct_train_temp(t, 0),
                                 .v_new = ct_next(t->l, t->out),
                                 .w_new = ct_next(t->l, t->out),
                                 .rows = rows};
  ct_va(t->l, &(struct ct_va){.to = o.t, .a = reg[0], .b = CT_VA_SCALAR, .sb_reg = CT_APPLY_SCALE});
  ct_train_optimise(t, &o);
  for (uint32_t i = 0; i < 2; ++i) {
    const struct ct_ref slot = ct_behind(out, i * room);
    ct_vs(t->l, &(struct ct_vmove){.spm = slot, .reg = i ? o.w_new : o.v_new, .rows = rows});
    ct_st(t->l,
          &(struct ct_dma){
              .dram = ct_tiles_of(t->l, from[1 + i], first, rows, 0, 1), .spm = slot, .nb = words});
  }
}

static void apply_full_rows(void *train, uint32_t pass) {
  struct train *t = train;
  apply_bias_rows(t, pass * t->bias_tiles, t->bias_tiles);
}

static void apply_biases(struct train *t) {
  const uint32_t tiles = ct_mlp_bias_tile(t->net, t->net->layers), full = tiles / t->bias_tiles;
  ct_repeat(t->l, full, apply_full_rows, t);
  if (tiles % t->bias_tiles) apply_bias_rows(t, full * t->bias_tiles, tiles % t->bias_tiles);
}

/* ---- Where things are ---------------------------------------------------------------------- */

/* A tile takes three loads and two results, so rings come round every two tiles. */
enum { R_LOAD = 0, LOADS = 6, R_OUT = 6, OUTS = 2, R_TEMP = 8, R_TEMPS = 4 };
enum { R_VA = 12, R_VL = 14, R_VS = 15, ACC = 0 };
enum { BIAS_IN = 3 * CT_F32_ROW_UNITS, BIAS_OUT = 2 * CT_F32_ROW_UNITS };
enum { CARRIED = CT_F32_ROW_UNITS + 1, UNIT = CT_F32_TILE_UNITS + CT_STATE_UNITS + CT_OUT_UNITS };

static int plan(struct train *t, uint32_t spm_words, const struct ct_why *why) {
  t->slots = 2;
  t->unit = CT_TRAIN_UNIT;
  t->bias_tiles = CT_TILE;
  for (;;) {
    const uint32_t words = CT_F32_ROW_UNITS + CARRIED + t->slots * t->unit * UNIT +
                           t->bias_tiles * (BIAS_IN + BIAS_OUT);
    if (words <= spm_words) return CT_OK;
    if (t->unit > 1)
      t->unit /= 2;
    else if (t->bias_tiles > 1)
      t->bias_tiles /= 2;
    else if (t->slots > 1)
      t->slots = 1;
    else
      return ct_why(why, CT_ERR_NO_SPACE,
                    "an update from gradients needs %u words of scratchpad, the window has %u",
                    words, spm_words);
  }
}

static uint32_t ring(struct train *t, const char *name, uint32_t *at, uint32_t size,
                     uint32_t slots) {
  const struct ct_ring ring = {
      .name = name, .place = CT_IN_SPM, .at = *at, .size = size, .slots = slots};
  *at += size * slots;
  return ct_ring(t->l, &ring);
}

static uint32_t tile_ring(struct train *t, const char *name, uint32_t *at, uint32_t units,
                          bool in) {
  const struct ct_ring ring = {.name = name,
                               .place = CT_IN_SPM,
                               .at = *at,
                               .size = t->unit * units,
                               .slots = t->slots,
                               .steps = in ? t->unit : 0};
  *at += ring.size * ring.slots;
  return ct_ring(t->l, &ring);
}

static uint32_t regs(struct train *t, const char *name, uint32_t at, uint32_t slots) {
  return ct_ring(t->l, &(struct ct_ring){
                           .name = name, .place = CT_IN_REG, .at = at, .size = 1, .slots = slots});
}

/* rows x cols pieces of so many units. */
static uint32_t memory(struct train *t, const char *name, unsigned reg, uint32_t at,
                       const uint32_t *shape) {
  return ct_tensor(t->l, &(struct ct_tensor){.name = name,
                                             .place = CT_IN_DRAM,
                                             .reg = reg,
                                             .at = at,
                                             .size = shape[0] * shape[1] * shape[2],
                                             .row = shape[1] * shape[2],
                                             .col = shape[2]});
}

static void declare_memory(struct train *t) {
  const struct ct_mlp *n = t->net;
  const uint32_t rows[3] = {ct_mlp_bias_tile(n, n->layers), 1, CT_F32_ROW_UNITS};
  for (uint32_t l = 0; l < n->layers; ++l) {
    const uint32_t at = ct_mlp_tile(n, l), nt = ct_mlp_out(n, l), kt = ct_mlp_in(n, l);
    const uint32_t w[3] = {nt, kt, CT_RECORD_UNITS}, s[3] = {nt, kt, CT_STATE_UNITS},
                   g[3] = {nt, kt, CT_F32_TILE_UNITS};
    t->weights[l] = memory(t, "weights", CT_APPLY_IMAGE, at * CT_RECORD_UNITS, w);
    t->state[l] = memory(t, "state", CT_APPLY_STATE, at * CT_STATE_UNITS, s);
    t->gradients[l] = memory(t, "gradients", CT_APPLY_GRADIENTS, at * CT_F32_TILE_UNITS, g);
  }
  t->image_bias = memory(t, "biases", CT_APPLY_IMAGE, ct_mlp_bias_at(n), rows);
  t->state_bias = memory(t, "momentum of biases", CT_APPLY_STATE, ct_mlp_bias_momentum_at(n), rows);
  t->gradient_bias =
      memory(t, "gradients of biases", CT_APPLY_GRADIENTS, ct_mlp_bias_gradient_at(n), rows);
}

/* Carriers read gradients, which nothing changes, and store where nobody reads. */
static void declare(struct train *t) {
  static const uint32_t one[3] = {1, 1, 1};
  uint32_t at = CT_F32_ROW_UNITS;
  declare_memory(t);
  const uint32_t scratch = memory(t, "scratch", CT_APPLY_GRADIENTS, ct_mlp_scratch_at(t->net), one);
  const uint32_t calm = ct_tensor(t->l, &(struct ct_tensor){.name = "calm words",
                                                            .place = CT_IN_SPM,
                                                            .size = CT_F32_ROW_UNITS,
                                                            .row = CT_F32_ROW_UNITS});
  ct_lower_carriers(t->l, &(struct ct_carriers){.va_reg = R_VA,
                                                .vl_reg = R_VL,
                                                .vs_reg = R_VS,
                                                .acc = ACC,
                                                .spm = at,
                                                .calm = calm,
                                                .load = t->gradients[0],
                                                .store_spm = calm,
                                                .store_dram = scratch});
  at += CARRIED;
  t->load = regs(t, "loads", R_LOAD, LOADS);
  t->out = regs(t, "results", R_OUT, OUTS);
  t->temp = ct_tensor(
      t->l,
      &(struct ct_tensor){
          .name = "temporaries", .place = CT_IN_REG, .at = R_TEMP, .size = R_TEMPS, .row = 1});
  t->bias_in = ring(t, "biases in", &at, t->bias_tiles * BIAS_IN, 1);
  t->bias_out = ring(t, "biases out", &at, t->bias_tiles * BIAS_OUT, 1);
  t->gradient_slot = tile_ring(t, "gradients in", &at, CT_F32_TILE_UNITS, true);
  t->in_slot = tile_ring(t, "state in", &at, CT_STATE_UNITS, true);
  t->out_slot = tile_ring(t, "state out", &at, CT_OUT_UNITS, false);
  ct_ld(t->l, &(struct ct_dma){.dram = ct_tile_of(t->l, t->gradient_bias, 0, 0),
                               .spm = ct_tile_of(t->l, calm, 0, 0),
                               .nb = CT_F32_ROW_UNITS});
}

int ct_prog_apply(const struct ct_mlp *net, uint32_t spm_words, struct ct_codes *codes,
                  const struct ct_why *why) {
  struct train t = {.net = net, .end = CT_TRAIN_APPLIES};
  *codes = (struct ct_codes){NULL, 0};
  int err = ct_mlp_check(net, why);
  if (!err) err = plan(&t, spm_words, why);
  if (err) return err;
  t.l = ct_lower_start(CT_APPLY_ARGS, false);
  if (!t.l) return ct_why(why, CT_ERR_MEMORY, "out of memory");
  declare(&t);
  apply_biases(&t);
  for (uint32_t l = 0; l < net->layers; ++l)
    ct_train_update(&t, l);
  return ct_lower_finish(t.l, "an update from gradients", codes, why);
}
