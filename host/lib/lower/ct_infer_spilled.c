/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward pass of requests whose activations have no room in the window: each layer's inputs
 * lie in a workspace in device memory and come back for each block of column tiles.
 *
 *   rows          records of 16 blocks of each row become tiles of 16 blocks, one a row
 *   for each layer, for each block of column tiles
 *     zero sums
 *     for each chunk of k steps: load weights, load inputs, multiply
 *     add the biases, ReLU, write and store tiles of the next layer, or answers
 *
 * One thing is under way at a time: each command waits for the one before it, so all of them share
 * the same words, and a program is short whatever the widths and however many layers there are.
 * That is slow beside ct_infer_wide.c (nothing hides the loads), and is for what has no other way.
 *
 * A chain needs a token at the head of each loop, from in front of it and from its own end. So sums
 * begin with a product of zeros, which gives what the loop over chunks takes: a token for each
 * column tile, as its last chunk does for the biases. And a layer's last tile, if it is not full,
 * is done again from its sums, with the columns past its end cleared: no second copy of the block.
 */
#include "ct_infer_spilled.h"

#include "coltrain/coltrain.h"

/* Named by who signals and who waits. */
enum {
  S_MM_LD,
  S_ST_LD,
  S_LD_MM,
  S_ST_MM,
  S_LD_VL,
  S_VL_VA,
  S_MM_VA,
  S_VA_VS,
  S_LD_VS,
  S_VS_ST,
  S_LD_ST
};
enum { R_BIAS = 8, R_ZERO = 9, ACC_SPARE = 15, GROUP = 16, MOST_SIGNALS = 255 };
enum { ZERO_AT = 0 }; /* a tile of zeros, at the window's start */

struct spilled {
  struct ct_build b;
  const struct ct_mlp *net;
  uint32_t rows, rows_reg, pitch;  /* rows as in ct_infer_wide.c; words of a tile of inputs */
  uint32_t planes;                 /* of answers: as in ct_infer_wide.c */
  unsigned work;                   /* the argument that is the workspace's address */
  uint32_t x_at[2], scratch;       /* in it: inputs of layers, in turn; a unit that nobody reads */
  uint32_t bn, room;               /* column tiles of a block, k steps of a chunk at most */
  bool whole;                      /* chunks of a layer are of equal size */
  uint32_t bias_at, area_at, used; /* words */

  /* The layer and block under way. */
  uint32_t l, kt, chunk, n, tiles, first;
};

static bool is_last(const struct spilled *f) {
  return f->l + 1 == f->net->layers;
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static void load_row(struct spilled *f, uint32_t group, uint32_t row, uint32_t blocks) {
  const bool gather = f->rows_reg != 0, last = gather || row + 1 == f->rows;
  CT_ADD(&f->b, LD, CT_SET(DMA_DRAM, group * CT_RECORD_UNITS),
         CT_SET(DMA_DRAM_REG, gather ? 0 : CT_INFER_ROW + row), CT_SET(DMA_GATHER, gather),
         CT_SET(DMA_SPM, row), CT_SET(DMA_HDR, 1), CT_SET(DMA_NB, blocks), CT_SET(DMA_S0, f->pitch),
         CT_SET(DMA_N1, 1), CT_SET(DMA_N2, 1), CT_SET(DMA_S2, gather),
         CT_SET(ALL_WAIT1, row == 0 ? CT_SEM(S_ST_LD) : 0),
         CT_SET(ALL_SIG1, last ? CT_SEM(S_LD_ST) : 0));
}

static void turn_blocks(struct spilled *f, uint32_t group, uint32_t blocks) {
  for (uint32_t r = 0; r < (f->rows_reg ? 1 : f->rows); ++r)
    load_row(f, group, r, blocks);
  CT_ADD(&f->b, ST, CT_SET(DMA_DRAM, f->x_at[0] + group * GROUP * CT_RECORD_UNITS),
         CT_SET(DMA_DRAM_REG, f->work), CT_SET(DMA_HDR, 1), CT_SET(DMA_NB, f->pitch),
         CT_SET(DMA_S0, 1), CT_SET(DMA_N1, blocks), CT_SET(DMA_D1, CT_RECORD_UNITS),
         CT_SET(DMA_S1, f->pitch), CT_SET(DMA_N2, 1), CT_SET(ALL_WAIT1, CT_SEM(S_LD_ST)),
         CT_SET(ALL_SIG1, CT_SEM(S_ST_LD)));
}

static void turn_group(void *pass_of, uint32_t pass) {
  struct spilled *f = pass_of;
  turn_blocks(f, pass, GROUP);
}

static void write_zeros(struct spilled *f, uint32_t at, uint32_t wait, uint32_t signal) {
  CT_ADD(&f->b, VS, CT_SET(VS_TS, R_ZERO), CT_SET(VS_SPM, at), CT_SET(VS_MODE, 1),
         CT_SET(VS_ROW_STRIDE, 1), CT_SET(VS_ROWS, CT_TILE), CT_SET(ALL_WAIT0, wait),
         CT_SET(ALL_SIG0, signal));
}

/* A store that only passes the token on: a semaphore is signalled by one queue. */
static void store_nothing(struct spilled *f, uint32_t signal) {
  CT_ADD(&f->b, ST, CT_SET(DMA_DRAM, f->scratch), CT_SET(DMA_DRAM_REG, f->work),
         CT_SET(DMA_SPM, ZERO_AT), CT_SET(DMA_NB, 1), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1),
         CT_SET(DMA_N2, 1), CT_SET(ALL_WAIT1, CT_SEM(S_VS_ST)), CT_SET(ALL_SIG1, signal));
}

/* Rows that a batch does not have are stored, too: as zeros, and not as what lay there. */
static void turn_rows(struct spilled *f) {
  const uint32_t blocks = ct_mlp_in(f->net, 0);
  CT_ADD(&f->b, VA, CT_SET(VA_A_SRC, 2), CT_SET(VA_TD, R_ZERO), CT_SET(VA_FULL, 1),
         CT_SET(VA_ROWS, CT_TILE), CT_SET(VA_COLS, CT_TILE), CT_SET(ALL_SIG0, CT_SEM(S_VA_VS)));
  for (uint32_t i = 0; i < f->pitch; ++i)
    write_zeros(f, i * CT_TILE, i == 0 ? CT_SEM(S_VA_VS) : 0,
                i + 1 == f->pitch ? CT_SEM(S_VS_ST) : 0);
  store_nothing(f, CT_SEM(S_ST_LD));
  ct_build_passes(&f->b, blocks / GROUP, turn_group, f);
  if (blocks % GROUP) turn_blocks(f, blocks / GROUP, blocks % GROUP);
  CT_ADD(&f->b, LD, CT_SET(DMA_DRAM_REG, CT_INFER_IMAGE), CT_SET(DMA_SPM, ZERO_AT),
         CT_SET(DMA_NB, 1), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1), CT_SET(DMA_N2, 1),
         CT_SET(ALL_WAIT1, CT_SEM(S_ST_LD)), CT_SET(ALL_SIG1, CT_SEM(S_LD_VS)));
  write_zeros(f, ZERO_AT, CT_SEM(S_LD_VS), CT_SEM(S_VS_ST));
  store_nothing(f, CT_SEM(S_ST_MM));
}

/* ---- Products ------------------------------------------------------------------------------ */

static void multiply_zeros(struct spilled *f, uint32_t acc, uint32_t tiles, uint32_t signal) {
  CT_ADD(&f->b, MM, CT_SET(MM_A, ZERO_AT), CT_SET(MM_B, ZERO_AT), CT_SET(MM_KT, 1),
         CT_SET(MM_NT, tiles), CT_SET(MM_ROWS, f->rows), CT_SET(MM_ROWS_REG, f->rows_reg),
         CT_SET(MM_ACC, acc), CT_SET(MM_ACC_N, 1), CT_SET(ALL_WAIT0, CT_SEM(S_ST_MM)),
         CT_SET(ALL_SIG1, signal));
}

/* They are loaded in front of each chunk, too: a load of so many steps as there are column tiles
 * takes the tokens of the product before, one by one, so that behind it operands may be replaced.
 */
static void load_biases(struct spilled *f, uint32_t signal) {
  const uint32_t row = ct_mlp_bias_tile(f->net, f->l) + f->n;
  CT_ADD(&f->b, LD, CT_SET(DMA_DRAM, ct_mlp_bias_at(f->net) + row * CT_F32_ROW_UNITS),
         CT_SET(DMA_DRAM_REG, CT_INFER_IMAGE), CT_SET(DMA_SPM, f->bias_at),
         CT_SET(DMA_NB, CT_F32_ROW_UNITS), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1),
         CT_SET(DMA_N2, f->tiles), CT_SET(DMA_D2, CT_F32_ROW_UNITS),
         CT_SET(DMA_S2, CT_F32_ROW_UNITS), CT_SET(ALL_WAIT0, CT_SEM(S_MM_LD)),
         CT_SET(ALL_SIG1, signal));
}

static void multiply(struct spilled *f, uint32_t k, uint32_t steps) {
  const uint32_t a_at = f->area_at, b_at = a_at + f->chunk * f->pitch;
  const uint32_t tile = ct_mlp_tile(f->net, f->l) + f->n * f->kt + k;
  load_biases(f, 0);
  CT_ADD(&f->b, LD, CT_SET(DMA_DRAM, tile * CT_RECORD_UNITS), CT_SET(DMA_DRAM_REG, CT_INFER_IMAGE),
         CT_SET(DMA_SPM, b_at), CT_SET(DMA_HDR, 1), CT_SET(DMA_NB, CT_TILE), CT_SET(DMA_S0, 1),
         CT_SET(DMA_N1, steps), CT_SET(DMA_D1, CT_RECORD_UNITS), CT_SET(DMA_S1, CT_TILE),
         CT_SET(DMA_N2, f->tiles), CT_SET(DMA_D2, f->kt * CT_RECORD_UNITS),
         CT_SET(DMA_S2, f->chunk * CT_TILE));
  CT_ADD(&f->b, LD, CT_SET(DMA_DRAM, f->x_at[f->l & 1] + k * CT_RECORD_UNITS),
         CT_SET(DMA_DRAM_REG, f->work), CT_SET(DMA_SPM, a_at), CT_SET(DMA_HDR, 1),
         CT_SET(DMA_NB, f->pitch), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1), CT_SET(DMA_N2, steps),
         CT_SET(DMA_D2, CT_RECORD_UNITS), CT_SET(DMA_S2, f->pitch),
         CT_SET(ALL_SIG0, CT_SEM(S_LD_MM)));
  CT_ADD(&f->b, MM, CT_SET(MM_A, a_at), CT_SET(MM_AK, f->pitch), CT_SET(MM_B, b_at),
         CT_SET(MM_BN, f->chunk * CT_TILE), CT_SET(MM_BK, CT_TILE), CT_SET(MM_KT, steps),
         CT_SET(MM_NT, f->tiles), CT_SET(MM_ROWS, f->rows), CT_SET(MM_ROWS_REG, f->rows_reg),
         CT_SET(MM_ACCUM, 1), CT_SET(MM_ACC_N, 1), CT_SET(ALL_WAIT0, CT_SEM(S_LD_MM)),
         CT_SET(ALL_SIG1, CT_SEM(S_MM_LD)));
}

static void multiply_chunk(void *pass_of, uint32_t pass) {
  struct spilled *f = pass_of;
  multiply(f, pass * f->chunk, f->chunk);
}

static void multiply_all(struct spilled *f) {
  multiply_zeros(f, 0, f->tiles, CT_SEM(S_MM_LD));
  ct_build_passes(&f->b, f->kt / f->chunk, multiply_chunk, f);
  if (f->kt % f->chunk) multiply(f, f->kt - f->kt % f->chunk, f->kt % f->chunk);
}

/* ---- Results ------------------------------------------------------------------------------- */

static void take_biases(struct spilled *f) {
  load_biases(f, CT_SEM(S_LD_VL));
  CT_ADD(&f->b, VL, CT_SET(VL_SPM, f->bias_at), CT_SET(VL_ROW_STRIDE, CT_F32_ROW_UNITS),
         CT_SET(VL_ROWS, f->tiles), CT_SET(VL_TD, R_BIAS), CT_SET(ALL_WAIT0, CT_SEM(S_LD_VL)),
         CT_SET(ALL_SIG0, CT_SEM(S_VL_VA)));
}

static void finish(struct spilled *f, uint32_t i, uint32_t cols, uint32_t wait) {
  CT_ADD(&f->b, VA, CT_SET(VA_A_SRC, 1), CT_SET(VA_TA, i), CT_SET(VA_C_SRC, 2),
         CT_SET(VA_TQ, R_BIAS), CT_SET(VA_ROW_XOR, i), CT_SET(VA_RELU, !is_last(f)),
         CT_SET(VA_TD, i), CT_SET(VA_FULL, 1), CT_SET(VA_ROWS, f->rows),
         CT_SET(VA_ROWS_REG, f->rows_reg), CT_SET(VA_COLS, cols), CT_SET(ALL_WAIT0, wait),
         CT_SET(ALL_SIG0, CT_SEM(S_VA_VS)));
}

/* Results from `from` on; the last of all tells the store. */
static void write_tiles(struct spilled *f, uint32_t from, uint32_t to, uint32_t signal) {
  const bool last = is_last(f);
  const uint32_t words = last ? CT_F32_ROW_UNITS : f->pitch;
  if (from == to) return;
  CT_ADD(&f->b, VS, CT_SET(VS_TS, from), CT_SET(VS_SPM, f->area_at + (from - f->first) * words),
         CT_SET(VS_MODE, last ? 0 : 1), CT_SET(VS_ROWS, last ? f->rows : f->pitch),
         CT_SET(VS_ROWS_REG, last ? f->rows_reg : 0),
         CT_SET(VS_ROW_STRIDE, last ? f->tiles * CT_F32_ROW_UNITS : 1),
         CT_SET(VS_MORE, to - from - 1), CT_SET(VS_TILE_STRIDE, words),
         CT_SET(ALL_WAIT0, CT_SEM(S_VA_VS)), CT_SET(ALL_SIG0, signal));
}

static void store_tiles(struct spilled *f) {
  CT_ADD(&f->b, ST, CT_SET(DMA_DRAM, f->x_at[(f->l + 1) & 1] + (f->n + f->first) * CT_RECORD_UNITS),
         CT_SET(DMA_DRAM_REG, f->work), CT_SET(DMA_SPM, f->area_at), CT_SET(DMA_HDR, 1),
         CT_SET(DMA_NB, f->pitch), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, f->tiles - f->first),
         CT_SET(DMA_D1, CT_RECORD_UNITS), CT_SET(DMA_S1, f->pitch), CT_SET(DMA_N2, 1),
         CT_SET(ALL_WAIT1, CT_SEM(S_VS_ST)), CT_SET(ALL_SIG1, CT_SEM(S_ST_MM)));
}

static void store_planes(struct spilled *f) {
  CT_ADD(&f->b, ST, CT_SET(DMA_DRAM, f->n * f->planes), CT_SET(DMA_DRAM_REG, CT_INFER_OUT),
         CT_SET(DMA_SPM, f->area_at), CT_SET(DMA_NB, CT_F32_ROW_UNITS), CT_SET(DMA_S0, 1),
         CT_SET(DMA_N1, f->rows), CT_SET(DMA_D1, CT_F32_ROW_UNITS),
         CT_SET(DMA_S1, f->tiles * CT_F32_ROW_UNITS), CT_SET(DMA_N2, f->tiles),
         CT_SET(DMA_D2, f->planes), CT_SET(DMA_S2, CT_F32_ROW_UNITS),
         CT_SET(ALL_WAIT1, CT_SEM(S_VS_ST)), CT_SET(ALL_SIG1, CT_SEM(S_ST_MM)));
}

static void store_answers(struct spilled *f) {
  const bool gather = f->rows_reg != 0;
  const uint32_t units = (f->net->width[f->net->layers] + 3) / 4, at = f->n * CT_F32_ROW_UNITS;
  const uint32_t row = f->tiles * CT_F32_ROW_UNITS;
  CT_ADD(&f->b, ST, CT_SET(DMA_DRAM, at), CT_SET(DMA_DRAM_REG, gather ? 0 : CT_INFER_OUT),
         CT_SET(DMA_GATHER, gather), CT_SET(DMA_SPM, f->area_at),
         CT_SET(DMA_NB, ct_min_u32(row, units - at)), CT_SET(DMA_S0, 1),
         CT_SET(DMA_N1, gather ? 1 : f->rows), CT_SET(DMA_D1, units), CT_SET(DMA_S1, row),
         CT_SET(DMA_N2, 1), CT_SET(DMA_S2, gather ? row : 0), CT_SET(ALL_WAIT1, CT_SEM(S_VS_ST)),
         CT_SET(ALL_SIG1, CT_SEM(S_ST_MM)));
}

/* Tiles from f->first on. */
static void put_results(struct spilled *f) {
  write_tiles(f, f->first, f->tiles - 1, 0);
  write_tiles(f, f->tiles - 1, f->tiles, CT_SEM(S_VS_ST));
  if (is_last(f) && f->planes)
    store_planes(f);
  else if (is_last(f))
    store_answers(f);
  else
    store_tiles(f);
}

/* ---- Blocks -------------------------------------------------------------------------------- */

static void block(struct spilled *f, uint32_t n, uint32_t tiles, uint32_t cols) {
  f->n = n;
  f->tiles = tiles;
  f->first = 0;
  multiply_all(f);
  take_biases(f);
  for (uint32_t i = 0; i < tiles; ++i)
    finish(f, i, cols, i == 0 ? CT_SEM(S_VL_VA) : 0);
  put_results(f);
}

static void whole_block(void *pass_of, uint32_t pass) {
  struct spilled *f = pass_of;
  block(f, pass * f->bn, f->bn, CT_TILE);
}

/* The last tile once more, from its sums. */
static void cut_last_tile(struct spilled *f, uint32_t tiles, uint32_t cols) {
  f->tiles = tiles % f->bn ? tiles % f->bn : f->bn;
  f->n = tiles - f->tiles;
  f->first = f->tiles - 1;
  multiply_zeros(f, ACC_SPARE, 1, CT_SEM(S_MM_VA));
  finish(f, f->first, cols, CT_SEM(S_MM_VA));
  put_results(f);
}

static uint32_t chunk_of(const struct spilled *f) {
  uint32_t chunk = ct_min_u32(f->kt, f->room);
  if (!f->whole) { /* as many chunks, less uneven */
    return ct_ceil_div(f->kt, ct_ceil_div(f->kt, chunk));
  }
  while (f->kt % chunk)
    --chunk;
  return chunk;
}

/* Answers are stored without what lies past their end: a tile that is not full is a block. */
static void layer(struct spilled *f, uint32_t l) {
  const uint32_t width = f->net->width[l + 1], rest = width % CT_TILE;
  f->l = l;
  f->kt = ct_mlp_in(f->net, l);
  f->chunk = chunk_of(f);
  const uint32_t tiles = is_last(f) ? width / CT_TILE : ct_mlp_out(f->net, l);
  ct_build_passes(&f->b, tiles / f->bn, whole_block, f);
  if (tiles % f->bn) block(f, tiles - tiles % f->bn, tiles % f->bn, CT_TILE);
  if (rest && is_last(f))
    block(f, tiles, 1, rest);
  else if (rest)
    cut_last_tile(f, tiles, rest);
}

/* ---- All ----------------------------------------------------------------------------------- */

/* The workspace: inputs of even and of odd layers. Returns its units. */
static uint64_t lay_out(struct spilled *f) {
  uint64_t units = 0;
  for (uint32_t parity = 0; parity < 2; ++parity) {
    uint32_t most = 0;
    for (uint32_t l = parity; l < f->net->layers; l += 2)
      if (ct_mlp_in(f->net, l) > most) most = ct_mlp_in(f->net, l);
    f->x_at[parity] = (uint32_t)units;
    units += (uint64_t)most * CT_RECORD_UNITS;
  }
  f->scratch = (uint32_t)units;
  return units + 1;
}

/* Words of the window that chunks of so many k steps take. */
static uint32_t plan(struct spilled *f, uint32_t bn, uint32_t chunk) {
  const uint32_t answers = f->pitch * bn * CT_F32_ROW_UNITS;
  const uint32_t operands = chunk * (f->pitch + bn * CT_TILE);
  f->bn = bn;
  f->room = chunk;
  f->bias_at = ZERO_AT + CT_TILE;
  f->area_at = f->bias_at + bn * CT_F32_ROW_UNITS;
  f->used = f->area_at + (answers > operands ? answers : operands);
  if (f->used < GROUP * f->pitch) f->used = GROUP * f->pitch;
  return f->used;
}

/* The longest chunks that fit; false: none. */
static bool fit(struct spilled *f, uint32_t bn, uint32_t window) {
  if (plan(f, bn, 1) > window) return false;
  uint32_t chunk = (window - f->area_at) / (f->pitch + bn * CT_TILE), longest = 0;
  for (uint32_t l = 0; l < f->net->layers; ++l)
    if (ct_mlp_in(f->net, l) > longest) longest = ct_mlp_in(f->net, l);
  chunk = ct_min_u32(chunk, longest); /* no more words than are used */
  plan(f, bn, ct_min_u32(chunk, MOST_SIGNALS));
  return true;
}

static int write_all(struct spilled *f, struct ct_code *code, const struct ct_why *why) {
  ct_build_init(&f->b, f->work);
  f->b.batch = f->rows_reg != 0;
  turn_rows(f);
  for (uint32_t l = 0; l < f->net->layers; ++l)
    layer(f, l);
  return ct_code_finish(&f->b, code, "a forward pass", why);
}

/* Ways to cut a layer, the fastest first; the last takes the fewest commands. */
static const struct {
  uint32_t bn;
  bool whole;
} ways[] = {{8, false}, {4, false}, {2, false}, {1, false}, {1, true}};

int ct_infer_spilled(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why) {
  const bool batch = shape->rows == CT_INFER_BATCH;
  struct spilled f = {.net = shape->net,
                      .rows = shape->rows,
                      .rows_reg = batch ? CT_BATCH_REG : 0,
                      .planes = shape->planes,
                      .pitch = batch ? shape->batch_most : shape->rows,
                      .work = ct_infer_work(shape->rows)};
  if (f.pitch == 0) f.pitch = CT_INFER_ROWS_MAX;
  if (plan(&f, 1, 1) > shape->spm_words)
    return ct_why(why, CT_ERR_NO_SPACE,
                  "a request of %u rows needs a window of %u words, this one has %u", f.pitch,
                  f.used, shape->spm_words);
  const uint64_t units = lay_out(&f);
  int err = CT_ERR_NO_SPACE;
  for (size_t i = 0; i < sizeof ways / sizeof *ways && err == CT_ERR_NO_SPACE; ++i) {
    f.whole = ways[i].whole;
    if (fit(&f, ways[i].bn, shape->spm_words)) err = write_all(&f, code, why);
  }
  if (err) return err;
  *shape->work = units;
  if (shape->used) *shape->used = f.used;
  return CT_OK;
}
