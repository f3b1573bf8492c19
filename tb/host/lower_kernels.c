/* SPDX-License-Identifier: Apache-2.0 */
#include "lower_kernels.h"

#include <string.h>

/* Scratchpad: tensors, then what the phases' rings take. Registers 0..3 are loaded, 4..11 hold
 * results, 12 and 13 are VA's own. */
enum { X_ROWS = 4, R_TEMP = 12, R_VL = 14, R_VS = 15, ACC_CARRIER = 15 };

static uint32_t place(struct kernel *k, uint32_t words) {
  const uint32_t at = k->spm;
  k->spm += words;
  return at;
}

/* ---- Drawing ------------------------------------------------------------------------------- */

static void draw_phase(struct kernel_phase *p, ct_rng *rng) {
  memset(p, 0, sizeof *p);
  p->kind = (enum kernel_kind)ct_rng_below(rng, K_KINDS);
  p->passes = 1 + ct_rng_below(rng, ct_rng_below(rng, 3) ? 12 : 4);
  p->inner = 1 + ct_rng_below(rng, 4);
  p->mt = 1 + ct_rng_below(rng, 2);
  p->bn = 1 + ct_rng_below(rng, 2);
  p->steps = 1 + ct_rng_below(rng, K_W_COLS);
  p->slots = 1 + ct_rng_below(rng, 3);
  p->more_slots = 1 + ct_rng_below(rng, 3);
  p->regs = 1 + ct_rng_below(rng, 4);
  p->reg_at = 4 + ct_rng_below(rng, 9 - p->regs);
  p->acc_slots = p->mt * p->bn * (1 + ct_rng_below(rng, 2));
  p->acc_at = ct_rng_below(rng, ACC_CARRIER - p->acc_slots);
  p->from = ct_rng_below(rng, 8);
  p->by_step = ct_rng_percent(rng, 60);
  p->more = ct_rng_percent(rng, 40);
  p->freed = ct_rng_percent(rng, 60);
  p->square = ct_rng_percent(rng, 50);
  p->split = ct_rng_percent(rng, 30);
  p->wide = ct_rng_percent(rng, 30);
  p->shape = ct_rng_below(rng, 1u << 16);
  p->walk = ct_rng_percent(rng, 40);
  if (p->kind == K_SINGLE || (p->mt > 1 && p->bn > 1)) p->more = false; /* tiles one way only */
  if (p->kind == K_SINGLE) p->wide = false;
  if (p->wide) p->by_step = false;
  if (p->more) p->regs = p->mt * p->bn * (1 + ct_rng_below(rng, 2));
  if (p->reg_at + p->regs > 12) p->reg_at = 12 - p->regs;
  if (p->kind == K_PRODUCT && p->passes * p->bn > K_Z_COLS * 3) p->passes = K_Z_COLS * 3 / p->bn;
}

void kernel_draw(struct kernel *k, ct_rng *rng) {
  memset(k, 0, sizeof *k);
  k->phases = 1 + ct_rng_below(rng, K_PHASES);
  for (unsigned i = 0; i < k->phases; ++i)
    draw_phase(&k->phase[i], rng);
}

void kernel_print(const struct kernel *k) {
  for (unsigned i = 0; i < k->phases; ++i) {
    const struct kernel_phase *p = &k->phase[i];
    print_message(
        "phase %u: kind %d, %u passes of %u, mt %u, bn %u, %u steps, %u and %u slots, %u registers "
        "from %u, %u tiles from %u, from %u, by_step %d, more %d, freed %d, square %d, split %d, "
        "wide %d, shape %x, walk %d\n",
        i, (int)p->kind, p->passes, p->inner, p->mt, p->bn, p->steps, p->slots, p->more_slots,
        p->regs, p->reg_at, p->acc_slots, p->acc_at, p->from, p->by_step, p->more, p->freed,
        p->square, p->split, p->wide, p->shape, p->walk);
  }
}

/* ---- What phases share --------------------------------------------------------------------- */

static uint32_t ring(struct kernel *k, const char *name, enum ct_place where, uint32_t at,
                     uint32_t size, uint32_t slots) {
  return ct_ring(k->l, &(struct ct_ring){
                           .name = name, .place = where, .at = at, .size = size, .slots = slots});
}

static uint32_t spm_tensor(struct kernel *k, const char *name, uint32_t rows, uint32_t cols,
                           uint32_t row, uint32_t col) {
  const uint32_t size = rows > 1 && row > col ? rows * row : cols * col;
  return ct_tensor(k->l, &(struct ct_tensor){.name = name,
                                             .place = CT_IN_SPM,
                                             .at = place(k, size),
                                             .size = size,
                                             .row = row,
                                             .col = col});
}

static uint32_t dram_tensor(struct kernel *k, const char *name, unsigned reg, uint32_t at,
                            uint32_t row, uint32_t col) {
  return ct_tensor(k->l, &(struct ct_tensor){.name = name,
                                             .place = CT_IN_DRAM,
                                             .reg = reg,
                                             .at = at,
                                             .size = 1u << 16,
                                             .row = row,
                                             .col = col});
}

static void declare(struct kernel *k) {
  k->w = dram_tensor(k, "weights", K_WEIGHTS, 0, K_W_COLS * CT_RECORD_UNITS, CT_RECORD_UNITS);
  k->s = dram_tensor(k, "state", K_STATE, 0, CT_F32_TILE_UNITS, 0);
  k->o = dram_tensor(k, "out", K_OUT, 0, K_Z_COLS * CT_F32_TILE_UNITS, CT_F32_TILE_UNITS);
  k->c = dram_tensor(k, "calm", K_CALM, 0, 1, 1);
  k->x = spm_tensor(k, "x", X_ROWS, K_W_COLS, CT_TILE, X_ROWS * CT_TILE);
  k->y = spm_tensor(k, "y", X_ROWS, K_Z_COLS * 3, CT_TILE, X_ROWS * CT_TILE);
  k->z = spm_tensor(k, "z", K_Z_ROWS, K_Z_COLS, K_Z_COLS * CT_F32_TILE_UNITS, CT_F32_TILE_UNITS);
  k->cs = spm_tensor(k, "calm words", 1, 1, K_CALM_UNITS, K_CALM_UNITS);
  k->temp = ct_tensor(
      k->l,
      &(struct ct_tensor){.name = "temp", .place = CT_IN_REG, .at = R_TEMP, .size = 2, .col = 1});
  const struct ct_carriers carriers = {.va_reg = R_TEMP + 1,
                                       .vs_reg = R_VS,
                                       .vl_reg = R_VL,
                                       .acc = ACC_CARRIER,
                                       .spm = place(k, CT_F32_ROW_UNITS + 1),
                                       .calm = k->cs,
                                       .load = k->w,
                                       .store_spm = k->cs,
                                       .store_dram = k->c};
  ct_lower_carriers(k->l, &carriers);
}

static void load_all(struct kernel *k) {
  ct_ld(k->l,
        &(struct ct_dma){
            .dram = ct_all_of(k->l, k->c), .spm = ct_all_of(k->l, k->cs), .nb = K_CALM_UNITS});
  ct_ld(k->l, &(struct ct_dma){.dram = ct_tiles_of(k->l, k->w, 0, X_ROWS, 0, K_W_COLS),
                               .spm = ct_all_of(k->l, k->x),
                               .hdr = true,
                               .nb = CT_TILE,
                               .n1 = X_ROWS,
                               .d1 = K_W_COLS * CT_RECORD_UNITS,
                               .s1 = CT_TILE,
                               .n2 = K_W_COLS,
                               .d2 = CT_RECORD_UNITS,
                               .s2 = X_ROWS * CT_TILE});
  ct_ld(k->l, &(struct ct_dma){.dram = ct_tiles_of(k->l, k->s, 0, K_Z_ROWS * K_Z_COLS, 0, 1),
                               .spm = ct_all_of(k->l, k->z),
                               .nb = CT_F32_TILE_UNITS,
                               .n1 = 1,
                               .n2 = K_Z_ROWS * K_Z_COLS,
                               .d2 = CT_F32_TILE_UNITS,
                               .s2 = CT_F32_TILE_UNITS});
}

/* The rings that results pass: loads, registers. */
static void register_rings(struct kernel *k) {
  const struct kernel_phase *p = k->p;
  k->load = ring(k, "loads", CT_IN_REG, p->shape & 1, 1, 1 + (p->shape >> 1) % 3);
  k->res = ring(k, "results", CT_IN_REG, p->reg_at, 1, p->regs);
}

/* ---- Products ------------------------------------------------------------------------------ */

static void load_panel(struct kernel *k, struct ct_ref w, uint32_t c, uint32_t from, uint32_t n) {
  const struct kernel_phase *p = k->p;
  ct_ld(k->l, &(struct ct_dma){.dram = ct_tiles_of(k->l, k->w, c * p->bn, p->bn, from, n),
                               .spm = p->by_step ? ct_part(w, from, from * p->bn * CT_TILE)
                                                 : ct_behind(w, from * p->bn * CT_TILE),
                               .by_step = p->by_step,
                               .hdr = true,
                               .nb = CT_TILE,
                               .n1 = p->bn,
                               .d1 = K_W_COLS * CT_RECORD_UNITS,
                               .s1 = CT_TILE,
                               .n2 = n,
                               .d2 = CT_RECORD_UNITS,
                               .s2 = (int32_t)(p->bn * CT_TILE)});
}

static void product_results(struct kernel *k, struct ct_ref acc, uint32_t c, uint32_t m0) {
  const struct kernel_phase *p = k->p;
  const uint32_t tiles = p->mt * p->bn;
  for (uint32_t i = 0; i < tiles; i += p->more ? tiles : 1) {
    const uint32_t n = p->more ? tiles : 1, col = c * p->bn + i / p->mt;
    const struct ct_ref out = ct_next_n(k->l, k->res, n);
    struct ct_ref a = ct_nth(acc, i);
    a.gens = n;
    ct_va(k->l, &(struct ct_va){
                    .to = out,
                    .a = a,
                    .q = p->wide ? ct_tile_of(k->l, k->temp, 0, 0) : (struct ct_ref){.space = 0},
                    .c = p->wide ? CT_VA_TILE : CT_VA_NONE,
                    .relu = p->square,
                    .more = n - 1});
    const struct ct_ref to = ct_tiles_of(k->l, k->y, m0 + (p->more ? 0 : i % p->mt),
                                         p->more ? p->mt : 1, col, p->more ? p->bn : 1);
    ct_vs(k->l, &(struct ct_vmove){.reg = out,
                                   .spm = to,
                                   .mode = p->square ? CT_VS_SQUARE : CT_VS_ROWS,
                                   .rows = CT_TILE,
                                   .more = n - 1,
                                   .tile_stride = p->mt == 1 ? X_ROWS * CT_TILE : CT_TILE});
  }
}

/* x as an image of 8 x 8 pixels, seen pixel by pixel: what a product without walks does, too. */
static const struct ct_walk_shape *walk(const struct kernel_phase *p, struct ct_walk_shape *s) {
  *s = (struct ct_walk_shape){.w = 8,
                              .h = X_ROWS * 2,
                              .pixel = 1,
                              .line = 8,
                              .image = X_ROWS * CT_TILE,
                              .block = X_ROWS * CT_TILE,
                              .nx = 8,
                              .ny = X_ROWS * 2,
                              .sx = 1,
                              .sy = 1,
                              .kx = 1,
                              .cb = (int32_t)p->steps};
  return s;
}

static void start_walk(struct kernel *k, bool in_loop) {
  struct ct_walk_shape s;
  if (k->p->walk && in_loop == !!(k->p->shape & 8)) ct_mm_walk(k->l, walk(k->p, &s));
}

static void multiply(struct kernel *k, struct ct_ref w, struct ct_ref acc, uint32_t m0,
                     bool steps) {
  const struct kernel_phase *p = k->p;
  struct ct_walk_shape s;
  ct_mm(k->l, &(struct ct_mm){.a = ct_tiles_of(k->l, k->x, m0, p->mt, 0, p->steps),
                              .b = w,
                              .acc = acc,
                              .by_step = steps,
                              .walk = p->walk,
                              .pos = ct_walk_pos(walk(p, &s), 0, (int32_t)m0 * 2, 1),
                              .am = CT_TILE,
                              .ak = X_ROWS * CT_TILE,
                              .bn = CT_TILE,
                              .bk = (int32_t)(p->bn * CT_TILE),
                              .kt = p->steps,
                              .nt = p->bn,
                              .rows = p->mt * CT_TILE,
                              .acc_n = p->mt});
}

static void product_block(void *kernel, uint32_t block) {
  struct kernel *k = kernel;
  const uint32_t m0 = (block + (k->p->wide ? 0 : 1)) * k->p->mt;
  const struct ct_ref acc = ct_next_n(k->l, k->acc, k->p->mt * k->p->bn);
  multiply(k, k->held, acc, m0, false);
  product_results(k, acc, k->row, m0);
}

static void product_pass(void *kernel, uint32_t c) {
  struct kernel *k = kernel;
  const struct kernel_phase *p = k->p;
  const uint32_t half = p->split ? p->steps / 2 : 0, blocks = X_ROWS / p->mt;
  const struct ct_ref w = ct_next(k->l, k->panel);
  k->held = w;
  k->row = c;
  start_walk(k, true);
  if (half) load_panel(k, w, c, 0, half);
  load_panel(k, w, c, half, p->steps - half);
  if (!p->wide) {
    const struct ct_ref acc = ct_next_n(k->l, k->acc, p->mt * p->bn);
    multiply(k, w, acc, 0, p->by_step);
    product_results(k, acc, c, 0);
  }
  if (p->shape & 2048) ct_repeat(k->l, p->wide ? blocks : blocks - 1, product_block, k);
}

static void product(struct kernel *k) {
  const struct kernel_phase *p = k->p;
  register_rings(k);
  k->panel = ct_ring(k->l, &(struct ct_ring){.name = "panels",
                                             .place = CT_IN_SPM,
                                             .at = place(k, p->slots * p->steps * p->bn * CT_TILE),
                                             .size = p->steps * p->bn * CT_TILE,
                                             .slots = p->slots});
  ct_ring_steps(k->l, k->panel, p->steps);
  if (p->freed) ct_ring_freed_by(k->l, k->panel, p->shape & 4 ? CT_Q_VS : CT_Q_VA);
  k->acc = ring(k, "products", CT_IN_ACC, p->acc_at, 1, p->acc_slots);
  if (p->wide)
    ct_va(k->l, &(struct ct_va){
                    .to = ct_tile_of(k->l, k->temp, 0, 0), .c = CT_VA_SCALAR, .sc_reg = K_SCALAR});
  start_walk(k, false);
  ct_repeat(k->l, p->passes, product_pass, k);
}

/* ---- Units of the state: loaded, changed, stored ------------------------------------------- */

static void change_tile(struct kernel *k, struct ct_ref in, struct ct_ref out, uint32_t i) {
  const struct kernel_phase *p = k->p;
  const struct ct_ref v = ct_next(k->l, k->load), r = ct_next(k->l, k->res);
  ct_vl(k->l, &(struct ct_vmove){.spm = p->by_step ? ct_part(in, i, i * CT_F32_TILE_UNITS)
                                                   : ct_behind(in, i * CT_F32_TILE_UNITS),
                                 .reg = v,
                                 .rows = CT_TILE});
  ct_va(k->l, &(struct ct_va){.to = r,
                              .a = v,
                              .b = CT_VA_SCALAR,
                              .sb_reg = K_SCALAR,
                              .q = v,
                              .c = CT_VA_TILE,
                              .rows = 1 + p->shape % CT_TILE});
  ct_vs(k->l, &(struct ct_vmove){
                  .spm = ct_part(out, i, i * CT_F32_TILE_UNITS), .reg = r, .rows = CT_TILE});
}

static void unit_pass(void *kernel, uint32_t u) {
  struct kernel *k = kernel;
  const struct kernel_phase *p = k->p;
  const struct ct_ref in = ct_next(k->l, k->in), out = ct_next(k->l, k->out);
  const uint32_t row = p->from + u * p->inner;
  ct_ld(k->l, &(struct ct_dma){.dram = ct_tiles_of(k->l, k->s, row, p->inner, 0, 1),
                               .spm = in,
                               .by_step = p->by_step,
                               .nb = CT_F32_TILE_UNITS,
                               .n2 = p->inner,
                               .d2 = CT_F32_TILE_UNITS,
                               .s2 = CT_F32_TILE_UNITS});
  for (uint32_t i = 0; i < p->inner; ++i) {
    change_tile(k, in, out, i);
    if (p->split)
      ct_st(k->l, &(struct ct_dma){.dram = ct_tile_of(k->l, k->s, row + i, 0),
                                   .spm = ct_part(out, i, i * CT_F32_TILE_UNITS),
                                   .nb = CT_F32_TILE_UNITS});
  }
  if (!p->split)
    ct_st(k->l, &(struct ct_dma){.dram = ct_tiles_of(k->l, k->s, row, p->inner, 0, 1),
                                 .spm = out,
                                 .nb = CT_F32_TILE_UNITS,
                                 .n2 = p->inner,
                                 .d2 = CT_F32_TILE_UNITS,
                                 .s2 = CT_F32_TILE_UNITS});
}

static void units(struct kernel *k) {
  const struct kernel_phase *p = k->p;
  const uint32_t size = p->inner * CT_F32_TILE_UNITS;
  register_rings(k);
  k->in = ct_ring(k->l, &(struct ct_ring){.name = "in",
                                          .place = CT_IN_SPM,
                                          .at = place(k, p->slots * size),
                                          .size = size,
                                          .slots = p->slots});
  ct_ring_steps(k->l, k->in, p->inner);
  if (p->freed) ct_ring_freed_by(k->l, k->in, CT_Q_VA);
  k->out = ring(k, "out", CT_IN_SPM, place(k, p->more_slots * size), size, p->more_slots);
  ct_repeat(k->l, p->passes, unit_pass, k);
}

/* ---- Sums of rows, in two loops ------------------------------------------------------------ */

static void sum_tile(void *kernel, uint32_t j) {
  struct kernel *k = kernel;
  const struct ct_ref v = ct_next(k->l, k->load), sum = ct_tile_of(k->l, k->temp, 0, 0);
  ct_vl(k->l,
        &(struct ct_vmove){.spm = ct_tile_of(k->l, k->z, k->row, j), .reg = v, .rows = CT_TILE});
  ct_va(k->l, &(struct ct_va){.to = sum, .a = sum, .q = v, .c = CT_VA_TILE});
}

static void sum_row(void *kernel, uint32_t i) {
  struct kernel *k = kernel;
  const struct ct_ref sum = ct_tile_of(k->l, k->temp, 0, 0);
  k->row = i;
  ct_va(k->l, &(struct ct_va){.to = sum, .c = CT_VA_SCALAR, .sc_reg = K_SCALAR});
  ct_repeat(k->l, K_Z_COLS, sum_tile, k);
  const struct ct_ref r = ct_next(k->l, k->res);
  ct_va(k->l, &(struct ct_va){.to = r, .a = sum, .relu = k->p->square});
  ct_vs(k->l,
        &(struct ct_vmove){
            .spm = ct_tile_of(k->l, k->z, i, k->p->from % K_Z_COLS), .reg = r, .rows = CT_TILE});
}

/* ---- Tiles changed where they lie ---------------------------------------------------------- */

static void place_tile(void *kernel, uint32_t j) {
  struct kernel *k = kernel;
  const struct ct_ref v = ct_next(k->l, k->load), r = ct_next(k->l, k->res);
  const struct ct_ref at = ct_tile_of(k->l, k->z, k->row, j);
  ct_vl(k->l, &(struct ct_vmove){.spm = at, .reg = v, .rows = CT_TILE});
  ct_va(k->l, &(struct ct_va){.to = r, .a = v, .q = v, .c = CT_VA_TILE, .lane_xor = 1});
  ct_vs(k->l, &(struct ct_vmove){.spm = at, .reg = r, .rows = 8});
}

static void place_row(void *kernel, uint32_t i) {
  struct kernel *k = kernel;
  k->row = i;
  ct_repeat(k->l, 1 + k->p->inner % K_Z_COLS, place_tile, k);
}

/* ---- Through device memory ----------------------------------------------------------------- */

static void move_row(void *kernel, uint32_t i) {
  struct kernel *k = kernel;
  const bool save = k->p->kind == K_SAVE;
  const uint32_t half = k->p->wide ? K_Z_ROWS : 0;
  const struct ct_dma move = {.dram = ct_tiles_of(k->l, k->o, i + half, 1, 0, K_Z_COLS),
                              .spm = ct_tiles_of(k->l, k->z, i, 1, 0, K_Z_COLS),
                              .nb = K_Z_COLS * CT_F32_TILE_UNITS};
  if (save)
    ct_st(k->l, &move);
  else
    ct_ld(k->l, &move);
}

/* ---- Commands outside loops ---------------------------------------------------------------- */

static void single(struct kernel *k) {
  const struct kernel_phase *p = k->p;
  register_rings(k);
  k->acc = ring(k, "products", CT_IN_ACC, p->acc_at, 1, p->acc_slots);
  for (uint32_t i = 0; i < p->inner; ++i) {
    k->row = (p->from + i) % K_Z_ROWS;
    place_tile(k, (p->shape + i) % K_Z_COLS);
    const struct ct_ref acc = ct_next_n(k->l, k->acc, p->mt * p->bn);
    ct_mm(k->l, &(struct ct_mm){.a = ct_tiles_of(k->l, k->x, 0, p->mt, i % 2, 2),
                                .b = ct_tiles_of(k->l, k->x, 0, p->bn, 0, 2),
                                .acc = acc,
                                .am = CT_TILE,
                                .ak = X_ROWS * CT_TILE,
                                .bn = CT_TILE,
                                .bk = X_ROWS * CT_TILE,
                                .kt = 2,
                                .nt = p->bn,
                                .rows = p->mt * CT_TILE,
                                .acc_n = p->mt});
    product_results(k, acc, 0, 0);
  }
}

/* ---- All ----------------------------------------------------------------------------------- */

static void save_all(struct kernel *k) {
  ct_st(k->l, &(struct ct_dma){.dram = ct_tiles_of(k->l, k->o, 0, K_Z_ROWS, 0, K_Z_COLS),
                               .spm = ct_all_of(k->l, k->z),
                               .nb = CT_F32_TILE_UNITS,
                               .n2 = K_Z_ROWS * K_Z_COLS,
                               .d2 = CT_F32_TILE_UNITS,
                               .s2 = CT_F32_TILE_UNITS});
  ct_st(k->l, &(struct ct_dma){.dram = ct_tiles_of(k->l, k->w, X_ROWS, 12, 0, K_W_COLS),
                               .spm = ct_all_of(k->l, k->y),
                               .hdr = true,
                               .nb = CT_TILE,
                               .n2 = X_ROWS * K_Z_COLS * 3,
                               .d2 = CT_RECORD_UNITS,
                               .s2 = CT_TILE});
}

static void fill_y(struct kernel *k) {
  ct_ld(k->l, &(struct ct_dma){.dram = ct_tiles_of(k->l, k->w, X_ROWS, 12, 0, K_W_COLS),
                               .spm = ct_all_of(k->l, k->y),
                               .hdr = true,
                               .nb = CT_TILE,
                               .n2 = X_ROWS * K_Z_COLS * 3,
                               .d2 = CT_RECORD_UNITS,
                               .s2 = CT_TILE});
}

static void record_phase(struct kernel *k) {
  const struct kernel_phase *p = k->p;
  switch (p->kind) {
    case K_PRODUCT:
      product(k);
      break;
    case K_UNITS:
      units(k);
      break;
    case K_SUMS:
      register_rings(k);
      ct_repeat(k->l, 1 + p->passes % K_Z_ROWS, sum_row, k);
      break;
    case K_IN_PLACE:
      register_rings(k);
      ct_repeat(k->l, 1 + p->passes % K_Z_ROWS, place_row, k);
      break;
    case K_SINGLE:
      single(k);
      break;
    default:
      ct_repeat(k->l, K_Z_ROWS - p->passes % 3, move_row, k);
  }
}

void kernel_record(struct kernel *k, struct ct_lower *l) {
  k->l = l;
  k->spm = 0;
  declare(k);
  load_all(k);
  fill_y(k);
  for (unsigned i = 0; i < k->phases; ++i) {
    k->p = &k->phase[i];
    record_phase(k);
  }
  save_all(k);
}
