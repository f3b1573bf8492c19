/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward pass of requests for networks that ct_prog_infer.c has no commands or no room for:
 * loops over blocks of column tiles, each of which runs over its contraction in chunks. Whatever
 * the widths are, a layer takes the same few commands. What lies in the scratchpad are two layers'
 * activations; weights, biases and answers go through rings.
 *
 *   for each layer, for each block of column tiles
 *     load the biases                                       biases, a register
 *     for each chunk of k steps: load weights, multiply     panels, ACC
 *     for each tile: add the bias, ReLU                     registers
 *     write k steps of the next layer, or answers and store them
 *
 * Tiles past the last whole block, and a layer's last one if it is not full, are blocks of one.
 */
#include "coltrain/coltrain.h"
#include "ct_infer_wide.h"
#include "ct_lower.h"

/* Tile registers 0..7: results of blocks, 8 and 9: of single tiles, 10 and 11: biases. */
enum { R_BLOCK = 0, R_SINGLE = 8, R_BIAS = 10, R_VA = 13, R_VL, R_VS };
enum { ACC_BLOCK = 0, ACC_SINGLE = 8, ACC_CARRIER = 15 };
enum { MOST_SIGNALS = 255, GROUP = 16, LEAST_CHUNK = 16, MOST_CHUNK = 2048 };

/* Which of two rings. */
enum { OF_BLOCK, OF_SINGLE, SIZES };

struct wide {
  struct ct_lower *l;
  const struct ct_mlp *net;
  uint32_t rows, rows_reg, rows_max; /* as in ct_prog_infer.c */
  uint32_t bn, slots, chunk;         /* tiles of a block, of the rings, k steps at most */
  bool by_step;                      /* products follow loads step by step */
  uint32_t pitch;                    /* words of a tile of activations: a row each */
  uint32_t spm;                      /* words of scratchpad */
  uint32_t x[2], weights[CT_MLP_LAYERS], image_biases, answers;
  uint32_t panels, biases, results, bias_reg;
  uint32_t acc[SIZES], reg[SIZES];
  /* The blocks under way. */
  uint32_t layer, first, tiles, cols, size;
  uint32_t n;
  struct ct_ref sums;
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
    f->weights[l] =
        ct_dram_tensor(f->l, "weights", CT_INFER_IMAGE, ct_mlp_tile(net, l) * CT_RECORD_UNITS,
                       ct_grid(ct_mlp_out(net, l), ct_mlp_in(net, l), CT_RECORD_UNITS));
  f->image_biases = ct_dram_tensor(f->l, "biases of the image", CT_INFER_IMAGE, ct_mlp_bias_at(net),
                                   row_of(ct_mlp_bias_tile(net, net->layers), CT_F32_ROW_UNITS));
  f->answers =
      ct_dram_tensor(f->l, "answers", f->rows_reg ? 0 : CT_INFER_OUT, 0,
                     row_of(f->rows_max * ct_mlp_out(net, net->layers - 1), CT_F32_ROW_UNITS));
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

static void declare(struct wide *f) {
  for (uint32_t i = 0; i < 2; ++i)
    f->x[i] =
        ct_spm_tensor(f->l, i ? "odd activations" : "activations", row_of(widest(f, i), f->pitch));
  declare_memory(f);
  const uint32_t calm = ct_spm_tensor(f->l, "a calm tile", row_of(1, CT_TILE));
  ct_lower_carriers(f->l, &(struct ct_carriers){.va_reg = R_VA,
                                                .vs_reg = R_VS,
                                                .vl_reg = R_VL,
                                                .acc = ACC_CARRIER,
                                                .spm = ct_spm_take(f->l, CT_CARRIER_WORDS),
                                                .calm = calm,
                                                .load = f->weights[0]});
  declare_rings(f);
  f->spm = (uint32_t)ct_spm_taken(f->l);
  ct_ld(f->l, &(struct ct_dma){.dram = ct_tile_of(f->l, f->weights[0], 0, 0),
                               .spm = ct_all_of(f->l, calm),
                               .hdr = true,
                               .nb = CT_TILE});
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

static void load_row(struct wide *f, uint32_t row, unsigned reg) {
  const uint32_t blocks = ct_mlp_in(f->net, 0), records = blocks / GROUP;
  const uint32_t from = ct_dram_tensor(f->l, "a row", reg, 0, row_of(records + 1, CT_RECORD_UNITS));
  load_records(f, from, row, 0, records, GROUP);
  load_records(f, from, row, records, 1, blocks % GROUP);
}

static void load_rows(struct wide *f) {
  if (f->rows_reg) load_row(f, 0, 0);
  for (uint32_t r = 0; r < f->rows; ++r)
    load_row(f, r, CT_INFER_ROW + r);
}

/* ---- Products ------------------------------------------------------------------------------ */

static void chunk(struct wide *f, uint32_t from, uint32_t steps) {
  const struct ct_ref panel = ct_next(f->l, f->panels);
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

/* ---- Results ------------------------------------------------------------------------------- */

static struct ct_ref load_biases(struct wide *f) {
  const struct ct_ref words = ct_next(f->l, f->biases), reg = ct_next(f->l, f->bias_reg);
  const uint32_t first = ct_mlp_bias_tile(f->net, f->layer) + f->n;
  ct_ld(f->l, &(struct ct_dma){.dram = ct_tiles_of(f->l, f->image_biases, 0, 1, first, f->tiles),
                               .spm = words,
                               .nb = f->tiles * CT_F32_ROW_UNITS});
  ct_vl(f->l, &(struct ct_vmove){.spm = words, .reg = reg, .rows = f->tiles});
  return reg;
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

static void write_results(struct wide *f, struct ct_ref regs) {
  const bool last = f->layer + 1 == f->net->layers;
  const struct ct_ref to = last ? ct_next(f->l, f->results)
                                : ct_tiles_of(f->l, f->x[(f->layer + 1) & 1], 0, 1, f->n, f->tiles);
  ct_vs(f->l, &(struct ct_vmove){.reg = regs,
                                 .spm = to,
                                 .mode = last ? CT_VS_F32 : CT_VS_ROWS,
                                 .rows = f->rows,
                                 .rows_reg = f->rows_reg,
                                 .stride = last ? f->tiles * CT_F32_ROW_UNITS : 1,
                                 .more = f->tiles - 1,
                                 .tile_stride = last ? CT_F32_ROW_UNITS : f->pitch});
  if (last) store_answers(f, to);
}

static void block(void *self, uint32_t pass) {
  struct wide *f = self;
  f->n = f->first + pass * f->tiles;
  const struct ct_ref bias = load_biases(f);
  multiply(f);
  const struct ct_ref regs = ct_next_n(f->l, f->reg[f->size], f->tiles);
  for (uint32_t i = 0; i < f->tiles; ++i)
    ct_va(f->l, &(struct ct_va){.to = ct_nth(regs, i),
                                .a = ct_nth(f->sums, i),
                                .q = bias,
                                .c = CT_VA_ROW0,
                                .row_xor = i,
                                .relu = f->layer + 1 < f->net->layers,
                                .part_rows = true,
                                .rows = f->rows,
                                .rows_reg = f->rows_reg,
                                .cols = f->cols});
  write_results(f, regs);
}

/* Blocks from column tile `first` on. ST carries no signals, so the answers' first slots are taken
 * in front of a loop. */
static void blocks(struct wide *f, uint32_t first, uint32_t count, uint32_t tiles, uint32_t cols) {
  const bool last = f->layer + 1 == f->net->layers;
  uint32_t peel = last && first == 0 ? ct_min_u32(count, f->slots) : 0;
  f->first = first;
  f->tiles = tiles;
  f->cols = cols;
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
  blocks(f, 0, wide, f->bn, CT_TILE);
  blocks(f, wide * f->bn, full % f->bn, 1, CT_TILE);
  blocks(f, full, rest > 0, 1, rest);
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

int ct_infer_wide(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why) {
  const bool batch = shape->rows == CT_INFER_BATCH;
  struct wide f = {.net = shape->net,
                   .rows = shape->rows,
                   .rows_reg = batch ? CT_BATCH_REG : 0,
                   .rows_max = batch ? shape->batch_most : shape->rows};
  if (f.rows_max == 0) f.rows_max = CT_INFER_ROWS_MAX;
  int err = CT_ERR_NO_SPACE;
  bool room = false, tried = false;
  f.pitch = f.rows_max;
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
