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
void ct_gradient_bias_rows(struct train *t, uint32_t c, uint32_t rows) {
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
  u->out = t->out_slot ? ct_next(t->l, t->out_slot) : u->in;
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

/* Carriers read gradients, which nothing changes, and store where nobody reads. */
static void declare_carriers(struct train *t) {
  struct ct_lower *l = t->l;
  const uint32_t calm = ct_spm_tensor(l, "calm words", ct_grid(1, 1, CT_F32_ROW_UNITS));
  const uint32_t scratch =
      ct_dram_tensor(l, "scratch", CT_APPLY_GRADIENTS, ct_mlp_scratch_at(t->net), ct_grid(1, 1, 1));
  ct_lower_carriers(l, &(struct ct_carriers){.va_reg = R_VA,
                                             .vl_reg = R_VL,
                                             .vs_reg = R_VS,
                                             .acc = ACC,
                                             .spm = ct_spm_take(l, CT_CARRIER_WORDS),
                                             .calm = calm,
                                             .load = t->gradients[0],
                                             .store_spm = calm,
                                             .store_dram = scratch});
  ct_ld(l, &(struct ct_dma){.dram = ct_tile_of(l, t->gradient_bias, 0, 0),
                            .spm = ct_tile_of(l, calm, 0, 0),
                            .nb = CT_F32_ROW_UNITS});
}

static uint32_t tile_ring(struct train *t, const char *name, uint32_t units, uint32_t steps) {
  const uint32_t ring = ct_spm_ring(t->l, name, t->unit * units, t->slots);
  ct_ring_steps(t->l, ring, steps);
  return ring;
}

static void declare(struct train *t) {
  struct ct_lower *l = t->l;
  const uint32_t biases = t->bias_tiles * CT_F32_ROW_UNITS;
  ct_train_declare_model(t, CT_APPLY_GRADIENTS,
                         ct_grid(ct_mlp_bias_tile(t->net, t->net->layers), 1, CT_F32_ROW_UNITS));
  declare_carriers(t);
  t->load = ct_reg_ring(l, "loads", R_LOAD, LOADS);
  t->out = ct_reg_ring(l, "results", R_OUT, OUTS);
  t->temp = ct_reg_tensor(l, "temporaries", R_TEMP, R_TEMPS);
  t->bias_in = ct_spm_ring(l, "biases in", 3 * biases, 1);
  t->bias_out = ct_spm_ring(l, "biases out", 2 * biases, 1);
  t->gradient_slot = tile_ring(t, "gradients in", CT_F32_TILE_UNITS, t->unit);
  const bool in_place = t->slots == 1; /* a tile's new values take the old ones' words */
  t->in_slot = tile_ring(t, "state in", in_place ? CT_OUT_UNITS : CT_STATE_UNITS, t->unit);
  if (in_place) ct_ring_freed_by(l, t->in_slot, CT_Q_ST); /* wherever a job is cut */
  t->out_slot = in_place ? 0 : tile_ring(t, "state out", CT_OUT_UNITS, 0);
}

/* Single tiles, then fewer biases at a time, then fewer slots; false: none are left. */
static bool take_less(struct train *t) {
  uint32_t *const less[] = {&t->unit, &t->bias_tiles, &t->slots};
  for (unsigned i = 0; i < sizeof less / sizeof *less; ++i) {
    if (*less[i] == 1) continue;
    *less[i] /= 2;
    return true;
  }
  return false;
}

static int start(struct train *t, uint32_t spm_words, const struct ct_why *why) {
  uint64_t words;
  t->unit = CT_TRAIN_UNIT;
  t->bias_tiles = CT_TILE;
  t->slots = 2;
  do {
    t->l = ct_lower_start(CT_APPLY_ARGS, false);
    if (!t->l) return ct_why(why, CT_ERR_MEMORY, "out of memory");
    declare(t);
    words = ct_spm_taken(t->l);
    if (words <= spm_words) return CT_OK;
    ct_lower_drop(t->l);
  } while (take_less(t));
  return ct_why(why, CT_ERR_NO_SPACE,
                "an update from gradients needs %llu words of scratchpad, the window has %u",
                (unsigned long long)words, spm_words);
}

int ct_prog_apply(const struct ct_mlp *net, uint32_t spm_words, struct ct_codes *codes,
                  const struct ct_why *why) {
  struct train t = {.net = net, .end = CT_TRAIN_APPLIES};
  *codes = (struct ct_codes){NULL, 0};
  int err = ct_mlp_check(net, why);
  if (!err) err = start(&t, spm_words, why);
  if (err) return err;
  apply_biases(&t);
  for (uint32_t l = 0; l < net->layers; ++l)
    ct_train_update(&t, l);
  return ct_lower_finish(t.l, "an update from gradients", codes, why);
}
