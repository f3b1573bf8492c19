/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward pass of requests. A layer is cut into blocks of column tiles, whose sums have a place
 * in ACC each:
 *
 *   for each layer, for each block of column tiles
 *     load k steps of weights, and multiply behind them     panels, ACC
 *     for each tile: add the bias, ReLU                     registers
 *     write k steps of the next layer, or answers and store them
 *
 * There are two ways to run over them.
 *
 * Flat: block by block, a panel each, all biases at once. Loads run ahead of everything else,
 * through layers, as far as there is room: with all panels in the scratchpad at once nothing waits
 * for space, and weights may stay there for the next job; otherwise panels go round a ring. Blocks
 * have up to half of ACC. Nothing here makes MM or VL carry signals, so no calm tile is loaded.
 *
 * In loops, where that takes too many commands or too much room: panels are chunks of k steps,
 * biases come block by block, and whatever the widths are a layer takes the same few commands.
 * Tiles past the last whole block, and a layer's last one if it is not full, are blocks of one.
 *
 * Where two layers' activations have no room at all: ct_infer_spilled.c.
 */
#include "coltrain/coltrain.h"
#include "ct_infer_wide.h"
#include "ct_lower.h"

/* Tile registers 0..7: results of blocks, 8 and 9: of single tiles, 10 and 11: biases; without
 * loops 8..11 are biases, and a block may have half of ACC. */
enum { R_BLOCK = 0, R_SINGLE = 8, R_BIAS = 10, R_FLAT_BIAS = 8, R_VA = 13, R_VL, R_VS };
enum { FLAT_REGS = 8, FLAT_BIASES = 4, FLAT_ACC = 16 };
enum { ACC_BLOCK = 0, ACC_SINGLE = 8, ACC_CARRIER = 15 };
enum { MOST_SIGNALS = 255, GROUP = 16, LEAST_CHUNK = 16, MOST_CHUNK = 2048 };
enum { MOST_BIASES = 64, MOST_STEPS = 200, ANSWER_SLOTS = 2, MOST_SKEW = 7 };

/* Which of two rings. */
enum { OF_BLOCK, OF_SINGLE, SIZES };

struct wide {
  struct ct_lower *l;
  const struct ct_mlp *net;
  uint32_t rows, rows_reg;      /* their sum is the number of rows ... */
  uint32_t rows_max;            /* ... this at most */
  uint32_t planes;              /* units from one to the next of answers; 0: these are rows */
  uint32_t bn, slots, chunk;    /* tiles of a block, of the rings, k steps at most */
  bool by_step;                 /* products follow loads step by step */
  bool flat;                    /* no loops: blocks one by one, a panel each ... */
  bool whole, resident, pinned; /* ... and all panels have a place; are there; of their own */
  uint32_t pin_at;
  uint32_t pitch; /* words of a tile of activations: a row each */
  uint32_t spm;   /* words of scratchpad */
  uint32_t x[2], weights[CT_MLP_LAYERS], image_biases, answers;
  uint32_t panels, biases, results, bias_reg;
  uint32_t kept[CT_MLP_LAYERS], kept_biases; /* whole: panels by block and k step; flat */
  uint32_t acc[SIZES], reg[SIZES];
  /* The blocks under way. */
  uint32_t layer, first, tiles, size;
  uint32_t n, bias_from, results_made;
  struct ct_ref sums, bias;
};

/* ---- Places -------------------------------------------------------------------------------- */

static uint32_t widest(const struct wide *f, uint32_t parity) {
  uint32_t most = 0;
  for (uint32_t l = parity; l < f->net->layers; l += 2)
    if (ct_mlp_in(f->net, l) > most) most = ct_mlp_in(f->net, l);
  return most;
}

static uint32_t longest(const struct wide *f) {
  return widest(f, 0) > widest(f, 1) ? widest(f, 0) : widest(f, 1);
}

/* Words but for the panels. */
static uint32_t words_of(const struct wide *f) {
  const uint32_t answers = f->rows_max * f->bn * CT_F32_ROW_UNITS;
  return (widest(f, 0) + widest(f, 1)) * f->pitch + CT_TILE + CT_CARRIER_WORDS +
         f->slots * (f->bn * CT_F32_ROW_UNITS + answers);
}

static uint32_t blocks_of(const struct wide *f, uint32_t l) {
  return ct_ceil_div(ct_mlp_out(f->net, l), f->bn);
}

/* What a program without loops has: commands (about), words of its panels, of the largest, k steps
 * of all. */
struct sizes {
  uint32_t commands, words, largest, steps, columns;
};

static struct sizes sizes_of(const struct wide *f) {
  struct sizes s = {.commands = 2 * f->rows + 8};
  for (uint32_t l = 0; l < f->net->layers; ++l) {
    const uint32_t kt = ct_mlp_in(f->net, l), nt = ct_mlp_out(f->net, l), blocks = blocks_of(f, l);
    const uint32_t panel = kt * ct_min_u32(f->bn, nt) * CT_TILE;
    s.commands += nt + 5 * blocks + ct_tiles(nt);
    s.words += kt * nt * CT_TILE;
    if (panel > s.largest) s.largest = panel;
    s.steps += kt * blocks;
    if (l) s.columns += kt;
  }
  return s;
}

static uint32_t flat_words(const struct wide *f) {
  const uint32_t biases = ct_mlp_bias_tile(f->net, f->net->layers) * CT_F32_ROW_UNITS;
  return (widest(f, 0) + widest(f, 1)) * f->pitch + MOST_SKEW + CT_CARRIER_WORDS +
         (f->pinned ? 0 : biases) + ANSWER_SLOTS * f->rows_max * f->bn * CT_F32_ROW_UNITS;
}

/* All panels in the scratchpad, so that loads wait for nothing; else a ring of two or more. */
static bool plan_panels(struct wide *f, uint32_t window) {
  const struct sizes s = sizes_of(f);
  const uint32_t words = flat_words(f), room = window - ct_min_u32(words, window);
  if (room == 0 || s.largest == 0 || s.commands > CT_PROG_MAX || s.columns > MOST_STEPS)
    return false;
  f->chunk = longest(f);
  f->whole = s.steps <= MOST_STEPS && (f->pinned || s.words <= room);
  if (f->whole || f->pinned) return f->whole;
  f->slots = ct_min_u32(room / s.largest, MOST_SIGNALS / f->chunk);
  return f->slots >= 2;
}

/* Blocks as wide as there is room for; whole tiles of activations, whose words lie in the banks as
 * those of weights do, or only their rows. */
static bool plan_flat(struct wide *f, uint32_t window) {
  for (f->bn = FLAT_ACC / 2; f->bn; f->bn /= 2) {
    f->pitch = CT_TILE;
    if (plan_panels(f, window)) return true;
    f->pitch = f->rows_max;
    if (plan_panels(f, window)) return true;
  }
  return false;
}

/* As long chunks as there is room for; false: not even short ones. */
static bool plan(struct wide *f, uint32_t window, uint32_t least) {
  const uint32_t words = words_of(f), step = f->bn * CT_TILE, most = longest(f);
  if (words >= window) return false;
  f->chunk = (window - words) / f->slots / step;
  f->chunk = ct_min_u32(f->chunk, f->by_step ? MOST_SIGNALS / f->slots : MOST_CHUNK);
  f->chunk = ct_min_u32(f->chunk, most);
  return f->chunk >= ct_min_u32(least, most);
}

/* ---- Spaces -------------------------------------------------------------------------------- */

static struct ct_grid row_of(uint32_t pieces, uint32_t piece) {
  return ct_grid(1, pieces, piece);
}

static void declare_memory(struct wide *f) {
  const struct ct_mlp *net = f->net;
  for (uint32_t l = 0; l < net->layers; ++l)
    f->weights[l] = ct_dram_tensor(f->l, "weights", CT_INFER_IMAGE,
                                   (uint64_t)ct_mlp_tile(net, l) * CT_RECORD_UNITS,
                                   ct_grid(ct_mlp_out(net, l), ct_mlp_in(net, l), CT_RECORD_UNITS));
  f->image_biases = ct_dram_tensor(f->l, "biases of the image", CT_INFER_IMAGE, ct_mlp_bias_at(net),
                                   row_of(ct_mlp_bias_tile(net, net->layers), CT_F32_ROW_UNITS));
  f->answers = ct_dram_tensor(
      f->l, "answers", f->rows_reg ? 0 : CT_INFER_OUT, 0,
      f->planes ? row_of(ct_mlp_out(net, net->layers - 1), f->planes)
                : row_of(f->rows_max * ct_mlp_out(net, net->layers - 1), CT_F32_ROW_UNITS));
}

/* Panels by block and k step; a layer's last one may be narrower. */
static void declare_kept(struct wide *f) {
  const struct ct_mlp *net = f->net;
  const uint32_t biases = ct_mlp_bias_tile(net, net->layers);
  uint32_t at = f->pin_at;
  for (uint32_t l = 0; l < net->layers && f->whole; ++l) {
    const uint32_t kt = ct_mlp_in(net, l), bn = ct_min_u32(f->bn, ct_mlp_out(net, l));
    const uint32_t words = kt * ct_mlp_out(net, l) * CT_TILE;
    f->kept[l] =
        ct_tensor(f->l, &(struct ct_tensor){.name = "panels",
                                            .place = CT_IN_SPM,
                                            .at = f->pinned ? at : ct_spm_take(f->l, words),
                                            .size = words,
                                            .row = kt * bn * CT_TILE,
                                            .col = bn * CT_TILE});
    at += words;
  }
  f->kept_biases = f->pinned
                       ? ct_tensor(f->l, &(struct ct_tensor){.name = "biases",
                                                             .place = CT_IN_SPM,
                                                             .at = at,
                                                             .size = biases * CT_F32_ROW_UNITS,
                                                             .col = CT_F32_ROW_UNITS})
                       : ct_spm_tensor(f->l, "biases", row_of(biases, CT_F32_ROW_UNITS));
}

/* Words that are no whole tiles come last, so that the others begin in the same bank. */
static void declare_flat(struct wide *f) {
  const uint32_t answers = f->rows_max * f->bn * CT_F32_ROW_UNITS;
  declare_kept(f);
  f->results = ct_spm_ring(f->l, "answers of a block", answers, ANSWER_SLOTS);
  f->bias_reg = ct_reg_ring(f->l, "biases in a register", R_FLAT_BIAS, FLAT_BIASES);
  ct_ring_freed_by(f->l, f->bias_reg, CT_Q_VS);
  f->acc[OF_BLOCK] = ct_acc_ring(f->l, "sums", ACC_BLOCK, FLAT_ACC);
  f->reg[OF_BLOCK] = ct_reg_ring(f->l, "results", R_BLOCK, FLAT_REGS);
  if (!f->whole) {
    f->panels = ct_spm_ring(f->l, "panels", sizes_of(f).largest, f->slots);
    ct_ring_steps(f->l, f->panels, f->chunk);
    ct_ring_freed_by(f->l, f->panels, CT_Q_VS);
  }
  ct_lower_carriers(f->l, &(struct ct_carriers){.va_reg = R_VA,
                                                .vs_reg = R_VS,
                                                .spm = ct_spm_take(f->l, CT_CARRIER_WORDS),
                                                .load = f->weights[0]});
}

static void declare_rings(struct wide *f) {
  const uint32_t tiles = f->slots * f->bn;
  f->biases = ct_spm_ring(f->l, "biases", f->bn * CT_F32_ROW_UNITS, f->slots);
  f->results =
      ct_spm_ring(f->l, "answers of a block", f->rows_max * f->bn * CT_F32_ROW_UNITS, f->slots);
  f->panels = ct_spm_ring(f->l, "panels", f->chunk * f->bn * CT_TILE, f->slots);
  ct_ring_steps(f->l, f->panels, f->by_step ? f->chunk : 0);
  f->bias_reg = ct_reg_ring(f->l, "biases in a register", R_BIAS, f->slots);
  ct_ring_freed_by(f->l, f->bias_reg, CT_Q_VS);
  f->acc[OF_BLOCK] = ct_acc_ring(f->l, "sums", ACC_BLOCK, tiles);
  f->reg[OF_BLOCK] = ct_reg_ring(f->l, "results", R_BLOCK, tiles);
  f->acc[OF_SINGLE] = f->acc[OF_BLOCK];
  f->reg[OF_SINGLE] = f->reg[OF_BLOCK];
  if (f->bn == 1) return;
  f->acc[OF_SINGLE] = ct_acc_ring(f->l, "single sums", ACC_SINGLE, f->slots);
  f->reg[OF_SINGLE] = ct_reg_ring(f->l, "single results", R_SINGLE, f->slots);
}

static void declare_looped(struct wide *f) {
  const uint32_t calm = ct_spm_tensor(f->l, "a calm tile", row_of(1, CT_TILE));
  ct_lower_carriers(f->l, &(struct ct_carriers){.va_reg = R_VA,
                                                .vs_reg = R_VS,
                                                .vl_reg = R_VL,
                                                .acc = ACC_CARRIER,
                                                .spm = ct_spm_take(f->l, CT_CARRIER_WORDS),
                                                .calm = calm,
                                                .load = f->weights[0]});
  declare_rings(f);
  ct_ld(f->l, &(struct ct_dma){.dram = ct_tile_of(f->l, f->weights[0], 0, 0),
                               .spm = ct_all_of(f->l, calm),
                               .hdr = true,
                               .nb = CT_TILE});
}

/* Products of one row are slower where its words lie in the bank whose turn it is among those of
 * the weights: so these begin half the banks away, whose number is 8 at most. */
static void skew(struct wide *f, uint32_t from, uint32_t to) {
  enum { BANKS = 8 };
  ct_spm_take(f->l, f->flat ? (from - to + BANKS / 2) % BANKS : 0);
}

static void declare(struct wide *f) {
  if (f->pinned) skew(f, f->pin_at, 0);
  for (uint32_t i = 0; i < 2; ++i)
    f->x[i] =
        ct_spm_tensor(f->l, i ? "odd activations" : "activations", row_of(widest(f, i), f->pitch));
  declare_memory(f);
  if (!f->pinned) skew(f, 0, (uint32_t)ct_spm_taken(f->l));
  f->flat ? declare_flat(f) : declare_looped(f);
  f->spm = (uint32_t)ct_spm_taken(f->l);
}

/* ---- Rows ---------------------------------------------------------------------------------- */

/* Records of 16 blocks each; the last one may be shorter. */
static void load_records(struct wide *f, uint32_t from, uint32_t row, uint32_t first,
                         uint32_t records, uint32_t blocks) {
  const struct ct_ref to =
      ct_tiles_of(f->l, f->x[0], 0, 1, first * GROUP, (records - 1) * GROUP + blocks);
  if (blocks == 0 || records == 0) return;
  ct_ld(f->l, &(struct ct_dma){.dram = ct_tiles_of(f->l, from, 0, 1, first, records),
                               .spm = ct_behind(to, row),
                               .hdr = true,
                               .gather = f->rows_reg != 0,
                               .nb = blocks,
                               .s0 = f->pitch,
                               .n1 = records,
                               .d1 = CT_RECORD_UNITS,
                               .s1 = (int32_t)(GROUP * f->pitch),
                               .s2 = f->rows_reg != 0});
}

/* The first blocks last: who has them has the row. */
static void load_row(struct wide *f, uint32_t row, unsigned reg) {
  const uint32_t blocks = ct_mlp_in(f->net, 0), records = blocks / GROUP;
  const uint32_t from = ct_dram_tensor(f->l, "a row", reg, 0, row_of(records + 1, CT_RECORD_UNITS));
  load_records(f, from, row, records, 1, blocks % GROUP);
  load_records(f, from, row, 0, records, GROUP);
}

static void load_rows(struct wide *f) {
  if (f->rows_reg) load_row(f, 0, 0);
  for (uint32_t r = 0; r < f->rows; ++r)
    load_row(f, r, CT_INFER_ROW + r);
}

/* ---- Products ------------------------------------------------------------------------------ */

/* The weights of the block under way, k steps from `from` on. */
static struct ct_ref load_panel(struct wide *f, uint32_t from, uint32_t steps) {
  const struct ct_ref panel =
      f->whole ? ct_tiles_of(f->l, f->kept[f->layer], f->n / f->bn, 1, from, steps)
               : ct_next(f->l, f->panels);
  if (f->resident) return panel;
  ct_ld(f->l, &(struct ct_dma){
                  .dram = ct_tiles_of(f->l, f->weights[f->layer], f->n, f->tiles, from, steps),
                  .spm = panel,
                  .by_step = f->by_step,
                  .hdr = true,
                  .nb = CT_TILE,
                  .n1 = f->tiles,
                  .d1 = (int32_t)(ct_mlp_in(f->net, f->layer) * CT_RECORD_UNITS),
                  .s1 = CT_TILE,
                  .n2 = steps,
                  .d2 = CT_RECORD_UNITS,
                  .s2 = (int32_t)(f->tiles * CT_TILE)});
  return panel;
}

static void multiply_steps(struct wide *f, struct ct_ref panel, uint32_t from, uint32_t steps) {
  ct_mm(f->l, &(struct ct_mm){.a = ct_tiles_of(f->l, f->x[f->layer & 1], 0, 1, from, steps),
                              .b = panel,
                              .acc = f->sums,
                              .by_step = f->by_step,
                              .accum = from > 0,
                              .ak = (int32_t)f->pitch,
                              .bn = CT_TILE,
                              .bk = (int32_t)(f->tiles * CT_TILE),
                              .kt = steps,
                              .nt = f->tiles,
                              .rows = f->rows,
                              .rows_reg = f->rows_reg,
                              .acc_n = 1});
}

static void chunk(struct wide *f, uint32_t from, uint32_t steps) {
  multiply_steps(f, load_panel(f, from, steps), from, steps);
}

static void later_chunk(void *self, uint32_t pass) {
  struct wide *f = self;
  chunk(f, (pass + 1) * f->chunk, f->chunk);
}

static void multiply(struct wide *f) {
  const uint32_t kt = ct_mlp_in(f->net, f->layer), chunks = (kt + f->chunk - 1) / f->chunk;
  f->sums = ct_next_n(f->l, f->acc[f->size], f->tiles);
  chunk(f, 0, ct_min_u32(kt, f->chunk));
  if (chunks > 2) ct_repeat(f->l, chunks - 2, later_chunk, f);
  if (chunks > 1) chunk(f, (chunks - 1) * f->chunk, kt - (chunks - 1) * f->chunk);
}

/* With weights that are there the first k step alone waits for the rows. */
static void multiply_at_once(struct wide *f, struct ct_ref panel) {
  const uint32_t kt = ct_mlp_in(f->net, f->layer);
  const bool alone = f->resident && f->layer == 0 && f->n == 0 && kt > 1;
  f->sums = ct_next_n(f->l, f->acc[OF_BLOCK], f->tiles);
  if (alone) multiply_steps(f, panel, 0, 1);
  if (alone) panel = ct_tiles_of(f->l, f->kept[0], 0, 1, 1, kt - 1);
  multiply_steps(f, panel, alone, kt - alone);
}

/* ---- Results ------------------------------------------------------------------------------- */

static void load_all_biases(struct wide *f) {
  const uint32_t tiles = ct_mlp_bias_tile(f->net, f->net->layers);
  for (uint32_t t = 0, n; t < tiles && !f->resident; t += n) {
    n = ct_min_u32(MOST_BIASES, tiles - t);
    ct_ld(f->l, &(struct ct_dma){.dram = ct_tiles_of(f->l, f->image_biases, 0, 1, t, n),
                                 .spm = ct_tiles_of(f->l, f->kept_biases, 0, 1, t, n),
                                 .nb = n * CT_F32_ROW_UNITS});
  }
}

/* Those of 16 tiles, or of what is left of the layer. */
static void take_biases(struct wide *f) {
  const uint32_t left = ct_mlp_out(f->net, f->layer) - f->n, n = ct_min_u32(GROUP, left);
  const uint32_t first = ct_mlp_bias_tile(f->net, f->layer) + f->n;
  f->bias = ct_next(f->l, f->bias_reg);
  f->bias_from = f->n;
  ct_vl(f->l,
        &(struct ct_vmove){
            .spm = ct_tiles_of(f->l, f->kept_biases, 0, 1, first, n), .reg = f->bias, .rows = n});
}

static void load_biases(struct wide *f) {
  const struct ct_ref words = ct_next(f->l, f->biases);
  const uint32_t first = ct_mlp_bias_tile(f->net, f->layer) + f->n;
  ct_ld(f->l, &(struct ct_dma){.dram = ct_tiles_of(f->l, f->image_biases, 0, 1, first, f->tiles),
                               .spm = words,
                               .nb = f->tiles * CT_F32_ROW_UNITS});
  f->bias = ct_next(f->l, f->bias_reg);
  f->bias_from = f->n;
  ct_vl(f->l, &(struct ct_vmove){.spm = words, .reg = f->bias, .rows = f->tiles});
}

static void store_planes(struct wide *f, struct ct_ref words) {
  ct_st(f->l, &(struct ct_dma){.dram = ct_tiles_of(f->l, f->answers, 0, 1, f->n, f->tiles),
                               .spm = words,
                               .nb = CT_F32_ROW_UNITS,
                               .n1 = f->rows,
                               .d1 = CT_F32_ROW_UNITS,
                               .s1 = (int32_t)(f->tiles * CT_F32_ROW_UNITS),
                               .n2 = f->tiles,
                               .d2 = (int32_t)f->planes,
                               .s2 = CT_F32_ROW_UNITS});
}

static void store_answers(struct wide *f, struct ct_ref words) {
  const bool gather = f->rows_reg != 0;
  const uint32_t pitch = (f->net->width[f->net->layers] + 3) / 4, row = f->tiles * CT_F32_ROW_UNITS;
  ct_st(f->l, &(struct ct_dma){.dram = ct_tiles_of(f->l, f->answers, 0, 1, f->n, f->tiles),
                               .spm = words,
                               .gather = gather,
                               .nb = ct_min_u32(row, pitch - f->n * CT_F32_ROW_UNITS),
                               .n1 = gather ? 1 : f->rows,
                               .d1 = (int32_t)pitch,
                               .s1 = (int32_t)row,
                               .s2 = gather ? (int32_t)row : 0});
}

/* Tiles of the block from `first` on. */
static void write_results(struct wide *f, struct ct_ref regs, struct ct_ref answers,
                          uint32_t first) {
  const bool last = f->layer + 1 == f->net->layers;
  const struct ct_ref to =
      last ? ct_part(answers, first, first * CT_F32_ROW_UNITS)
           : ct_tiles_of(f->l, f->x[(f->layer + 1) & 1], 0, 1, f->n + first, regs.gens);
  ct_vs(f->l, &(struct ct_vmove){.reg = regs,
                                 .spm = to,
                                 .mode = last ? CT_VS_F32 : CT_VS_ROWS,
                                 .rows = f->rows,
                                 .rows_reg = f->rows_reg,
                                 .stride = last ? f->tiles * CT_F32_ROW_UNITS : 1,
                                 .more = regs.gens - 1,
                                 .tile_stride = last ? CT_F32_ROW_UNITS : f->pitch});
}

static void add_bias(struct wide *f, struct ct_ref to, uint32_t i) {
  ct_va(f->l, &(struct ct_va){.to = to,
                              .a = ct_nth(f->sums, i),
                              .q = f->bias,
                              .c = CT_VA_ROW0,
                              .row_xor = f->n + i - f->bias_from,
                              .relu = f->layer + 1 < f->net->layers,
                              .part_rows = true,
                              .rows = f->rows,
                              .rows_reg = f->rows_reg,
                              .cols = ct_in_tile(f->net->width[f->layer + 1], f->n + i)});
}

/* In two parts where the registers of results end in between. */
static void finish(struct wide *f) {
  const bool last = f->layer + 1 == f->net->layers;
  const uint32_t registers = f->flat ? FLAT_REGS : f->tiles;
  const struct ct_ref answers = last ? ct_next(f->l, f->results) : (struct ct_ref){.space = 0};
  for (uint32_t i = 0, n; i < f->tiles; i += n) {
    n = ct_min_u32(f->tiles - i, registers - f->results_made % registers);
    const struct ct_ref regs = ct_next_n(f->l, f->reg[f->size], n);
    for (uint32_t t = 0; t < n; ++t)
      add_bias(f, ct_nth(regs, t), i + t);
    write_results(f, regs, answers, i);
    f->results_made += n;
  }
  if (last && f->planes)
    store_planes(f, answers);
  else if (last)
    store_answers(f, answers);
}

/* ---- Blocks -------------------------------------------------------------------------------- */

static void block(void *self, uint32_t pass) {
  struct wide *f = self;
  f->n = f->first + pass * f->tiles;
  load_biases(f);
  multiply(f);
  finish(f);
}

/* Without loops all biases come behind the first panel. */
static void flat_block(struct wide *f, uint32_t n) {
  const uint32_t nt = ct_mlp_out(f->net, f->layer);
  f->n = n;
  f->tiles = ct_min_u32(f->bn, nt - n);
  f->size = OF_BLOCK;
  const struct ct_ref panel = load_panel(f, 0, ct_mlp_in(f->net, f->layer));
  if (f->layer == 0 && n == 0) load_all_biases(f);
  if (n % GROUP == 0) take_biases(f);
  multiply_at_once(f, panel);
  finish(f);
}

/* Blocks from column tile `first` on. ST carries no signals, so the answers' first slots are taken
 * in front of a loop. */
static void blocks(struct wide *f, uint32_t first, uint32_t count, uint32_t tiles) {
  const bool last = f->layer + 1 == f->net->layers;
  uint32_t peel = last && first == 0 ? ct_min_u32(count, f->slots) : 0;
  f->first = first;
  f->tiles = tiles;
  f->size = tiles == f->bn ? OF_BLOCK : OF_SINGLE;
  for (uint32_t i = 0; i < peel; ++i)
    block(f, i);
  f->first += peel * tiles;
  if (count > peel) ct_repeat(f->l, count - peel, block, f);
}

static void layer(struct wide *f, uint32_t l) {
  const uint32_t width = f->net->width[l + 1], full = width / CT_TILE, rest = width % CT_TILE;
  const uint32_t wide = full / f->bn;
  f->layer = l;
  for (uint32_t n = 0; f->flat && n < ct_mlp_out(f->net, l); n += f->bn)
    flat_block(f, n);
  if (f->flat) return;
  blocks(f, 0, wide, f->bn);
  blocks(f, wide * f->bn, full % f->bn, 1);
  blocks(f, full, rest > 0, 1);
}

/* ---- All ----------------------------------------------------------------------------------- */

static int write_all(struct wide *f, struct ct_code *code, const struct ct_why *why) {
  struct ct_codes codes;
  f->l =
      ct_lower_start(f->rows_reg ? CT_INFER_IMAGE : CT_INFER_ROW + f->rows - 1, f->rows_reg != 0);
  if (!f->l) return ct_why(why, CT_ERR_MEMORY, "out of memory");
  ct_lower_one_job(f->l);
  declare(f);
  load_rows(f);
  for (uint32_t l = 0; l < f->net->layers; ++l)
    layer(f, l);
  const int err = ct_lower_finish(f->l, "a forward pass", &codes, why);
  if (err) return err;
  *code = codes.job[0];
  codes.job[0].cmd = NULL;
  ct_codes_free(&codes);
  return CT_OK;
}

/* Ways to cut a layer, the fastest first. Of the last two every ring comes round in one pass: the
 * first takes the least room, the second, without loops over chunks, the fewest commands. */
static const struct {
  uint32_t bn, slots, least;
  bool by_step;
} ways[] = {{4, 2, LEAST_CHUNK, true}, {2, 2, LEAST_CHUNK, true}, {1, 2, LEAST_CHUNK, true},
            {1, 2, 1, true},           {1, 1, 1, true},           {1, 1, MOST_CHUNK, false}};

static int no_room(const struct wide *f, bool commands, uint32_t window, const struct ct_why *why) {
  if (!commands)
    return ct_why(why, CT_ERR_NO_SPACE,
                  "the activations of %u rows in two layers that follow each other take a window "
                  "of %u words, this one has %u",
                  f->rows_max, words_of(f) + CT_TILE, window);
  return ct_why(why, CT_ERR_NO_SPACE,
                "a forward pass through %u layers in so few commands as a device takes needs "
                "a window of %u words, this one has %u",
                f->net->layers, words_of(f) + ct_min_u32(longest(f), MOST_CHUNK) * CT_TILE, window);
}

static void start(struct wide *f, const struct ct_infer *shape) {
  const bool batch = shape->rows == CT_INFER_BATCH;
  *f = (struct wide){.net = shape->net,
                     .rows = shape->rows,
                     .rows_reg = batch ? CT_BATCH_REG : 0,
                     .rows_max = batch ? shape->batch_most : shape->rows,
                     .planes = shape->planes};
  if (f->rows_max == 0) f->rows_max = CT_INFER_ROWS_MAX;
  f->pitch = f->rows_max;
}

int ct_infer_wide(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why) {
  struct wide f;
  int err = CT_ERR_NO_SPACE;
  bool room = false, tried = false;
  start(&f, shape);
  for (size_t i = 0; i < sizeof ways / sizeof *ways && err == CT_ERR_NO_SPACE; ++i) {
    f.bn = ways[i].bn;
    f.slots = ways[i].slots;
    f.by_step = ways[i].by_step;
    tried = plan(&f, shape->spm_words, ways[i].least);
    room |= tried;
    if (tried) err = write_all(&f, code, why);
  }
  if (!err && shape->used) *shape->used = f.spm;
  return err == CT_ERR_NO_SPACE && !tried ? no_room(&f, room, shape->spm_words, why) : err;
}

/* A program for weights that are there has the form of the one that loads them, so that they lie
 * where that one puts them. */
int ct_infer_flat(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why) {
  struct wide f;
  start(&f, shape);
  f.flat = f.by_step = true;
  f.pinned = shape->pinned;
  f.pin_at = shape->pin_at;
  const bool fits = plan_flat(&f, shape->spm_words);
  if (!fits || (shape->resident && !f.whole))
    return ct_why(why, CT_ERR_NO_SPACE,
                  "the weights of all layers do not fit a window of %u words, or their loads take "
                  "more commands than a program has",
                  shape->spm_words);
  f.resident = shape->resident;
  const int err = write_all(&f, code, why);
  if (!err && shape->used) *shape->used = f.spm;
  return err;
}
