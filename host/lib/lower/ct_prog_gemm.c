/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product C = A * B^T of HBFP8 matrices in device memory.
 *
 * C is cut into blocks of up to 8 tiles, one half of ACC, and the contraction of a block runs over
 * k steps of one tile per row and column of the block.
 *
 *   LD  B(q) A(q)  ..landed..>  MM(q)  ..tile final..>  VA  ..>  VS  ..tile or row of tiles..>  ST
 *   LD step <..k step read.. MM        MM(b+2) <..tile copied.. VA(b)
 *
 * Three plans:
 *
 * Compact. Three or four tiles by as many and a few k steps: all of C is in ACC at once. After the
 * first k step, panels of B and of A come whole, in turn (see write_compact()).
 *
 * Whole B. If B fits the scratchpad it is read once and stays. The first band of up to 8 row tiles
 * meets it as it comes in; the other bands are single row tiles, so that little of A has to come
 * before all of B is at work on it. A is read once, too: nothing crosses the memory port twice.
 * With a panels of A and b of B no more than a * b tiles of C can be done, so where the memory is
 * slow both have to grow together: four panels of each, k step by k step, for all of ACC; with 8
 * row tiles four more of B, four more of A, one by one; then B column by column, with 4 row tiles
 * two by two. From then on each panel that comes brings as much work as it took to come, or more,
 * and results to store. (FP32 rows are stored when the last of a block's tiles in them is there, so
 * blocks are higher than wide there, and with few row tiles single columns: single_columns().)
 *
 * Streamed. Otherwise bands are of up to 4 row tiles, B comes anew for each band, and the
 * contraction is cut into chunks if need be; two chunks lie in SPM, so that one lands while the
 * other is in use. With one chunk the band's A stays for all of its blocks.
 *
 * The first block starts with the first two tiles: its first k steps are taken apart into products
 * of single tiles, in the order in which these land.
 *
 * Waits for space are exact: they start where the space had a user.
 */
#include <string.h>

#include "ct_prog.h"

#include "coltrain/coltrain.h"

/* Semaphores, named by who signals and who waits. */
enum { S_LD_B, S_LD_A, S_MM_LD, S_MM_VA, S_VA_MM, S_VA_VS, S_VS_VA, S_VS_ST, S_ST_VS };

enum {
  HALF = 8,
  /* k steps */
  MAX_STEPS = 127,   /* those of two blocks stay below 255 signals */
  MAX_WIDE = 84,     /* those of three blocks do */
  MIN_WIDE = 5,      /* measured: with fewer, stores decide; see starts_wide() */
  MIN_WIDE_F32 = 16, /* the same; see also single_columns() */
  MAX_COMPACT = 5,   /* with more, all of B's would keep A waiting */
  MAX_STRIDE = 1 << 23
};

/* Blocks of a band: rows of tiles, columns of a block. */
struct cut {
  uint32_t bm, bn;
};

struct gemm {
  struct ct_build b;
  const struct ct_gemm *s;
  uint32_t mt, nt, kt;     /* tiles */
  bool whole;              /* B stays */
  struct cut first, other; /* bands */
  bool halved;          /* the first band begins with blocks of half its rows: two of two columns */
  bool quartered;       /* or as cut_halved() says (halved, too) */
  bool wide;            /* the first two blocks are multiplied together: see wide_chunk() */
  bool compact;         /* all of C is in ACC at once: see write_compact() */
  bool all_signal;      /* the k steps of all blocks, those nobody waits for, too */
  uint32_t cols0, cols; /* blocks of the first band, of the others */
  uint32_t blocks;      /* in all */
  uint32_t chunks, chunk;      /* chunks of a block; k steps of all but the first */
  uint32_t out_words;          /* of a place for results; there are two */
  uint32_t a_at, b_at, out_at; /* SPM */
};

/* Rows m0.. and columns n0.. of C, in tiles. */
struct block {
  uint32_t index, band, m0, bm, n0, bn;
  bool band_first, band_last;
  bool rows; /* its tiles lie row by row in ACC and so on, not column by column */
};

/* k steps of a block, or of two neighbours of the same rows, step by step in turn: their columns
 * are b.n0..n0+bn, those from `border` on the second one's. */
struct chunk {
  struct block b;
  uint32_t border;
  uint32_t q; /* chunks before this one */
  uint32_t k0, steps;
  bool first, last; /* of the block */
  bool loads_a, loads_b;
};

static uint32_t ceil_div(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

/* ---- Blocks and chunks --------------------------------------------------------------------- */

/* Halved: the first block that is a single column. */
static uint32_t first_column(const struct gemm *g) {
  return g->quartered ? 8 : 2;
}

/* Halved: two blocks of half the rows. Quartered: four blocks of the upper four rows, two columns
 * each, then the other rows one by one with these eight columns. Then, in both, column by column.
 */
static void cut_halved(const struct gemm *g, struct block *b) {
  const uint32_t half = (g->first.bm + 1) / 2, i = b->index;
  if (i >= first_column(g))
    *b = (struct block){.index = i, .bm = g->first.bm, .n0 = i, .bn = 1};
  else if (!g->quartered)
    *b = (struct block){
        .index = i, .m0 = i ? half : 0, .bm = i ? g->first.bm - half : half, .bn = 2};
  else if (i < 4)
    *b = (struct block){.index = i, .bm = 4, .n0 = 2 * i, .bn = 2};
  else
    *b = (struct block){.index = i, .m0 = i, .bm = 1, .bn = 8};
}

static struct block block_at(const struct gemm *g, uint32_t index) {
  struct block b = {.index = index};
  uint32_t at = index;
  if (g->compact) {
    b.bm = g->mt;
    b.bn = g->nt;
  } else if (index < g->cols0) {
    b.bm = g->first.bm;
    b.n0 = index * g->first.bn;
    b.bn = ct_min_u32(g->first.bn, g->nt - ct_min_u32(b.n0, g->nt));
    if (g->halved) cut_halved(g, &b);
  } else {
    b.band = 1 + (index - g->cols0) / g->cols;
    at = (index - g->cols0) % g->cols;
    b.m0 = g->first.bm + (b.band - 1) * g->other.bm;
    b.bm = ct_min_u32(g->other.bm, g->mt - b.m0);
    b.n0 = at * g->other.bn;
    b.bn = ct_min_u32(g->other.bn, g->nt - b.n0);
  }
  b.rows |= b.bm == 1;
  b.band_first = at == 0;
  b.band_last = at + 1 == (b.band ? g->cols : g->cols0);
  return b;
}

static bool has_block(const struct gemm *g, uint32_t index) {
  return index < g->blocks;
}

/* 0 if there is no such block. */
static uint32_t block_tiles(const struct gemm *g, uint32_t index) {
  if (!has_block(g, index)) return 0;
  const struct block b = block_at(g, index);
  return b.bm * b.bn;
}

/* Tiles of the block that uses what another leaves. Where there is none, signals are given all the
 * same, and nobody takes them: then the last blocks roll up with the others. */
static uint32_t users(const struct gemm *g, uint32_t index) {
  return has_block(g, index) ? block_tiles(g, index) : HALF;
}

static uint32_t bands(const struct gemm *g) {
  return 1 + (g->blocks - g->cols0) / g->cols;
}

/* The first chunk is the short one: then waiting in order is safe (see load). */
static struct chunk chunk_at(const struct gemm *g, uint32_t q) {
  struct chunk c = {.b = block_at(g, q / g->chunks), .q = q};
  const uint32_t i = q % g->chunks, short_one = g->kt - (g->chunks - 1) * g->chunk;
  c.border = c.b.bn;
  c.k0 = i ? short_one + (i - 1) * g->chunk : 0;
  c.steps = i ? g->chunk : short_one;
  c.first = i == 0;
  c.last = i + 1 == g->chunks;
  const bool lower = g->halved && c.b.band == 0 && c.b.m0 > 0;
  c.loads_a = g->chunks > 1 || c.b.band_first || lower;
  c.loads_b = !g->whole || (c.b.band == 0 && !lower);
  return c;
}

/* The first two blocks, which are multiplied together: while the first operands come in, all of ACC
 * is at work on them. */
static struct chunk wide_chunk(const struct gemm *g) {
  struct chunk c = chunk_at(g, 0);
  c.b.bn += block_at(g, 1).bn;
  return c;
}
/* ---- Places in SPM ------------------------------------------------------------------------- */

/* Tiles lie panel by panel: those of a row tile (or column tile), k after k. */
static uint32_t panel_words(const struct gemm *g) {
  return g->chunk * CT_TILE;
}

/* Row tile m of the block. Bands use two places in turn; with one chunk, those of its parity. */
static uint32_t a_place(const struct gemm *g, const struct chunk *c, uint32_t m) {
  const uint32_t turn = g->chunks > 1 ? c->q : c->b.band;
  const uint32_t in_band = g->halved && c->b.band == 0 ? c->b.m0 : 0;
  return g->a_at + ((turn & 1) * g->first.bm + in_band + m) * panel_words(g);
}

static uint32_t b_place(const struct gemm *g, const struct chunk *c, uint32_t n) {
  const uint32_t panel = g->whole ? c->b.n0 : (c->q & 1) * g->first.bn;
  return g->b_at + (panel + n) * panel_words(g);
}

static uint32_t out_place(const struct gemm *g, const struct block *b) {
  return g->out_at + (b->index & 1) * g->out_words;
}

/* ---- LD ------------------------------------------------------------------------------------ */

/* Tiles to load: for each of n2 steps (signalled), n1 tiles. Counted in panels (of kt tiles in
 * memory) and tiles along k. */
struct tiles {
  unsigned reg, sem, wait;
  uint32_t panel, k; /* of the first, in memory */
  uint32_t spm;
  uint32_t n1, panels1; /* tiles; from one to the next: a panel (1), or a tile along k (0) */
  uint32_t n2, panels2; /* steps */
};

static void load_tiles(struct gemm *g, const struct tiles *t) {
  const uint32_t d_panel = g->kt * CT_RECORD_UNITS, s_panel = panel_words(g);
  CT_ADD(&g->b, LD, CT_SET(DMA_DRAM, (t->panel * g->kt + t->k) * CT_RECORD_UNITS),
         CT_SET(DMA_DRAM_REG, t->reg), CT_SET(DMA_SPM, t->spm), CT_SET(DMA_HDR, 1),
         CT_SET(DMA_NB, CT_TILE), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, t->n1),
         CT_SET(DMA_D1, t->panels1 ? t->panels1 * d_panel : CT_RECORD_UNITS),
         CT_SET(DMA_S1, t->panels1 ? t->panels1 * s_panel : CT_TILE), CT_SET(DMA_N2, t->n2),
         CT_SET(DMA_D2, t->panels2 ? t->panels2 * d_panel : CT_RECORD_UNITS),
         CT_SET(DMA_S2, t->panels2 ? t->panels2 * s_panel : CT_TILE), CT_SET(ALL_SIG0, t->sem),
         CT_SET(ALL_WAIT0, t->wait));
}

static struct tiles a_tiles(const struct gemm *g, const struct chunk *c, uint32_t m, uint32_t k) {
  return (struct tiles){.reg = CT_GEMM_A,
                        .sem = CT_SEM(S_LD_A),
                        .panel = c->b.m0 + m,
                        .k = c->k0 + k,
                        .spm = a_place(g, c, m) + k * CT_TILE,
                        .n1 = 1,
                        .n2 = 1};
}

static struct tiles b_tiles(const struct gemm *g, const struct chunk *c, uint32_t n, uint32_t k) {
  return (struct tiles){.reg = CT_GEMM_B,
                        .sem = CT_SEM(S_LD_B),
                        .panel = c->b.n0 + n,
                        .k = c->k0 + k,
                        .spm = b_place(g, c, n) + k * CT_TILE,
                        .n1 = 1,
                        .n2 = 1};
}

/* Whether this is the last block, and its columns come and go one after the other, each with all of
 * its k steps: then few tiles are left to store when the last operand has come or the last row has
 * been multiplied. (With more bands the commands of the last block would no longer be rolled up.)
 */
static bool by_columns(const struct gemm *g, const struct chunk *c) {
  return c->q > 0 && c->b.index + 1 == g->blocks && g->blocks == g->cols0 && g->chunks == 1 &&
         c->loads_b && !c->loads_a && c->b.bm > 1 && c->b.bn > 1 &&
         (c->b.bn + 1) * c->steps <= 2 * MAX_STEPS;
}

/* Whether a single column of row tiles comes row tile by row tile, each with all of its k steps:
 * then one tile is left to store when the last operand has come. */
static bool by_rows(const struct gemm *g) {
  return g->whole && g->nt == 1 && g->blocks == 1 && g->mt > 1 && g->mt * g->kt <= 2 * MAX_STEPS;
}

/* Steps k..k+steps of a chunk, each signalled. Where space had a user they wait for it, step by
 * step, by what comes first:
 *   streamed   B waits for the steps of the chunk two before (or of a later one, since the short
 *              chunk comes first); once it is through, that chunk's operands have all been read, so
 *              A needs no wait of its own;
 *   whole B    in the first band no space is short, but the signals are: a block's loads wait for
 *              the steps of the block two before (if the first two come together, from the fifth
 *              block on). A of a later band waits for those of the last block of the band two
 *              before, whose place it takes. */
static void load(struct gemm *g, const struct chunk *c, uint32_t k, uint32_t steps) {
  const bool early = g->halved ? c->b.band == 0 : c->q < (g->wide ? 4 : 2);
  const bool waits = g->whole && c->b.band ? c->b.band >= 2 : !early;
  unsigned wait = waits ? CT_SEM(S_MM_LD) : 0;
  if (c->loads_b) {
    struct tiles t = b_tiles(g, c, 0, k);
    const uint32_t later = by_columns(g, c) ? c->b.bn - 1 : 0; /* one behind the other */
    t.n1 = c->b.bn - later;
    t.panels1 = 1;
    t.n2 = steps + (wait ? 0 : later * steps);
    t.wait = wait;
    load_tiles(g, &t);
    if (later && wait) { /* there is a signal for each step of the block two before, no more */
      t = b_tiles(g, c, 1, k);
      t.n2 = later * steps;
      load_tiles(g, &t);
    }
    wait = 0;
  }
  if (c->loads_a) {
    struct tiles t = a_tiles(g, c, 0, k);
    t.n1 = c->b.bm;
    t.panels1 = 1;
    t.n2 = steps;
    t.wait = wait;
    load_tiles(g, &t);
  }
}

/* Whole B, one column a block: all columns from this chunk's on, which lie one behind the other. It
 * waits for products that come later in the program: they are dispatched past it, since behind it
 * comes no more than one load before the last of them. */
static void load_rest(struct gemm *g, const struct chunk *c) {
  struct tiles t = b_tiles(g, c, 0, 0);
  t.n2 = (g->nt - c->b.n0) * g->kt;
  t.wait = CT_SEM(S_MM_LD);
  load_tiles(g, &t);
}

/* Whether the first chunk's first step is taken apart. */
static bool apart(const struct chunk *c) {
  return c->q == 0 && c->b.bm >= 2;
}
/* The steps after it whose A comes in pieces: two, but not the last one, whose tiles become final.
 */
static uint32_t pieced(const struct chunk *c) {
  return apart(c) && c->b.bm % 2 == 0 && c->steps > 2 ? ct_min_u32(c->steps - 2, 2) : 0;
}

/* Row tiles of a piece: single ones next to the step taken apart, then halves. */
static uint32_t piece_rows(const struct chunk *c, uint32_t k) {
  return k == 1 && c->b.bn > 1 ? 1 : c->b.bm / 2;
}

/* Columns that each row tile of the step taken apart meets as it comes: two, so that every row tile
 * after the first brings two products, which take longer than its way here. One, if these tiles are
 * final already: those leave in the order of ACC. */
static uint32_t columns_apart(const struct chunk *c) {
  return c->last && c->steps == 1 ? 1 : ct_min_u32(c->b.bn, 2);
}

/* The first step's tiles one by one: a column of B, a row tile, perhaps the next column, the other
 * row tiles, the other columns. */
static void load_apart(struct gemm *g, const struct chunk *c) {
  const uint32_t two = columns_apart(c);
  struct tiles t = b_tiles(g, c, 0, 0);
  load_tiles(g, &t);
  t = a_tiles(g, c, 0, 0);
  t.panels2 = 1;
  t.n2 = two == 2 ? 1 : c->b.bm;
  load_tiles(g, &t);
  if (two == 2) {
    t = b_tiles(g, c, 1, 0);
    load_tiles(g, &t);
    t = a_tiles(g, c, 1, 0);
    t.panels2 = 1;
    t.n2 = c->b.bm - 1;
    load_tiles(g, &t);
  }
  if (c->b.bn == two) return;
  t = b_tiles(g, c, two, 0);
  t.n1 = c->b.bn - two;
  t.panels1 = 1;
  load_tiles(g, &t);
}

/* Another early step: all of B, and A in pieces. */
static void load_pieces(struct gemm *g, const struct chunk *c, uint32_t k) {
  struct tiles t = b_tiles(g, c, 0, k);
  t.n1 = c->b.bn;
  t.panels1 = 1;
  load_tiles(g, &t);
  t = a_tiles(g, c, 0, k);
  t.n1 = piece_rows(c, k);
  t.panels1 = 1;
  t.n2 = c->b.bm / t.n1;
  t.panels2 = t.n1;
  load_tiles(g, &t);
}

/* Row tiles m.., which lie one behind the other. */
static void load_rows(struct gemm *g, const struct chunk *c, uint32_t m) {
  struct tiles t = a_tiles(g, c, m, 0);
  t.n2 = (c->b.bm - m) * c->steps;
  load_tiles(g, &t);
}

/* The first chunk comes in growing pieces, so that the array starts early. */
static void load_first(struct gemm *g, const struct chunk *c) {
  uint32_t k = 0;
  if (apart(c)) {
    load_apart(g, c);
    k = 1;
  }
  for (uint32_t end = k + pieced(c); k < end; ++k)
    load_pieces(g, c, k);
  for (uint32_t piece = 1; k < c->steps; k += piece) {
    if (k >= 4) piece = k / 2;
    piece = ct_min_u32(piece, c->steps - k);
    load(g, c, k, piece);
  }
}

/* ---- MM ------------------------------------------------------------------------------------ */

/* Whether someone waits for the k steps of this block, or nobody does and they may be signalled all
 * the same: then the last blocks roll up with the others. */
static bool steps_awaited(const struct gemm *g, uint32_t index) {
  const struct block b = block_at(g, index);
  if (!g->whole) return true;
  const bool no_columns = g->halved && g->cols0 <= first_column(g);
  const bool early = g->halved && index + 2 < first_column(g);
  if (b.band > 0 || !(no_columns || early)) {
    if (g->all_signal || (b.band == 0 && index + 2 < g->cols0)) return true;
  }
  return b.band_last && b.band + 2 < bands(g);
}

/* A part of a chunk: rows m.. and columns n.. of its block, steps k... */
struct part {
  uint32_t m, bm, n, bn, k, steps;
  bool waits_a, waits_b;
  bool ends_step; /* nothing of its last step comes after it */
  uint32_t acc;   /* compact: its first ACC tile; its columns lie one behind the other */
};

/* The block of a part, and the part's first ACC tile. */
static uint32_t part_block(const struct chunk *c, const struct part *p) {
  return c->b.index + (p->n >= c->border ? 1 : 0);
}

static uint32_t part_acc(const struct chunk *c, const struct part *p) {
  const uint32_t n = p->n >= c->border ? p->n - c->border : p->n;
  return (part_block(c, p) & 1) * HALF + (c->b.rows ? p->m * c->b.bn + n : n * c->b.bm + p->m);
}

static void multiply_tiles(struct gemm *g, const struct chunk *c, const struct part *p) {
  const uint32_t top = (c->b.m0 + p->m) * CT_TILE, index = part_block(c, p);
  const bool final = c->last && p->k + p->steps == c->steps;
  const uint32_t acc = g->compact ? p->acc : part_acc(c, p);
  const uint32_t acc_n = g->compact ? p->bm : c->b.rows ? 1 : c->b.bm;
  CT_ADD(&g->b, MM, CT_SET(MM_A, a_place(g, c, p->m) + p->k * CT_TILE),
         CT_SET(MM_AM, panel_words(g)), CT_SET(MM_AK, CT_TILE),
         CT_SET(MM_B, b_place(g, c, p->n) + p->k * CT_TILE), CT_SET(MM_BN, panel_words(g)),
         CT_SET(MM_BK, CT_TILE), CT_SET(MM_KT, p->steps), CT_SET(MM_NT, p->bn),
         CT_SET(MM_ROWS, ct_min_u32(g->s->m - top, p->bm * CT_TILE)), CT_SET(MM_ACC, acc),
         CT_SET(MM_ACC_N, acc_n), CT_SET(MM_ACCUM, !c->first || p->k > 0),
         CT_SET(ALL_WAIT0, p->waits_a ? CT_SEM(S_LD_A) : 0),
         CT_SET(ALL_WAIT1, p->waits_b ? CT_SEM(S_LD_B) : 0),
         CT_SET(ALL_WAIT2, c->first && p->k == 0 && index >= 2 ? CT_SEM(S_VA_MM) : 0),
         CT_SET(ALL_SIG0, p->ends_step && steps_awaited(g, index) ? CT_SEM(S_MM_LD) : 0),
         CT_SET(ALL_SIG1, final ? CT_SEM(S_MM_VA) : 0));
}

/* Of two blocks, k step by k step. */
static void multiply_part(struct gemm *g, const struct chunk *c, const struct part *p) {
  if (p->n >= c->border || p->n + p->bn <= c->border) {
    multiply_tiles(g, c, p);
    return;
  }
  struct part left = *p, right = *p;
  left.bn = c->border - p->n;
  left.steps = right.steps = 1;
  right.n = c->border;
  right.bn = p->bn - left.bn;
  right.waits_a = right.waits_b = false;
  for (uint32_t k = p->k; k < p->k + p->steps; ++k) {
    left.k = right.k = k;
    multiply_tiles(g, c, &left);
    multiply_tiles(g, c, &right);
  }
}

/* The first row tile with the first column, and perhaps with the second; each other row tile with
 * these; all with each other column. */
static void multiply_apart(struct gemm *g, const struct chunk *c) {
  const uint32_t bm = c->b.bm, bn = c->b.bn, two = columns_apart(c);
  for (uint32_t n = 0; n < two; ++n)
    multiply_part(
        g, c,
        &(struct part){.bm = 1, .n = n, .bn = 1, .steps = 1, .waits_a = n == 0, .waits_b = true});
  for (uint32_t m = 1; m < bm; ++m)
    multiply_part(g, c,
                  &(struct part){.m = m,
                                 .bm = 1,
                                 .bn = two,
                                 .steps = 1,
                                 .waits_a = true,
                                 .ends_step = m + 1 == bm && bn == two});
  if (two < bn)
    multiply_part(
        g, c,
        &(struct part){
            .bm = bm, .n = two, .bn = bn - two, .steps = 1, .waits_b = true, .ends_step = true});
}

static void multiply_pieces(struct gemm *g, const struct chunk *c, uint32_t k) {
  const uint32_t rows = piece_rows(c, k);
  for (uint32_t m = 0; m < c->b.bm; m += rows)
    multiply_part(g, c,
                  &(struct part){.m = m,
                                 .bm = rows,
                                 .bn = c->b.bn,
                                 .k = k,
                                 .steps = 1,
                                 .waits_a = true,
                                 .waits_b = m == 0,
                                 .ends_step = m + rows == c->b.bm});
}

/* Column by column. Of the last one the last row tile comes alone, behind the others: a tile takes
 * a beat more to store than its last k step has rows, and so none waits for the one before it. */
static void multiply_columns(struct gemm *g, const struct chunk *c) {
  const uint32_t bm = c->b.bm;
  for (uint32_t n = 0; n < c->b.bn; ++n) {
    const uint32_t alone = n + 1 == c->b.bn && g->s->m % CT_TILE == 0 ? 1 : 0;
    multiply_part(
        g, c,
        &(struct part){.bm = bm - alone, .n = n, .bn = 1, .steps = c->steps, .waits_b = true});
    if (alone)
      multiply_part(g, c, &(struct part){.m = bm - 1, .bm = 1, .n = n, .bn = 1, .steps = c->steps});
  }
}

/* The first step of the wide chunk, in quarters: two columns with two row tiles, with two others,
 * two other columns with all. */
static void start_wide(struct gemm *g, const struct chunk *c) {
  struct tiles t = b_tiles(g, c, 0, 0);
  t.n1 = 2;
  t.panels1 = 1;
  load_tiles(g, &t);
  t = a_tiles(g, c, 0, 0);
  t.n1 = t.n2 = t.panels2 = 2;
  t.panels1 = 1;
  load_tiles(g, &t);
  t = b_tiles(g, c, 2, 0);
  t.n1 = 2;
  t.panels1 = 1;
  load_tiles(g, &t);
  for (uint32_t m = 0; m < 4; m += 2)
    multiply_part(
        g, c,
        &(struct part){.m = m, .bm = 2, .bn = 2, .steps = 1, .waits_a = true, .waits_b = m == 0});
  multiply_part(g, c, &(struct part){.bm = 4, .n = 2, .bn = 2, .steps = 1, .waits_b = true});
}

/* Two blocks come k step by k step, and are multiplied so: first A, then the columns of the one and
 * of the other. */
static void work_wide(struct gemm *g, const struct chunk *c) {
  start_wide(g, c);
  for (uint32_t k = 1; k < c->steps; ++k) {
    struct tiles t = a_tiles(g, c, 0, k);
    t.n1 = c->b.bm;
    t.panels1 = 1;
    load_tiles(g, &t);
    t = b_tiles(g, c, 0, k);
    t.n1 = t.panels2 = c->border;
    t.panels1 = 1;
    t.n2 = 2;
    load_tiles(g, &t);
    struct part p = {.bm = c->b.bm, .bn = c->border, .k = k, .steps = 1, .waits_b = true};
    p.waits_a = true;
    multiply_tiles(g, c, &p);
    p.n = c->border;
    p.waits_a = false;
    multiply_tiles(g, c, &p);
  }
}

/* Row tile by row tile. */
static void multiply_rows(struct gemm *g, const struct chunk *c) {
  for (uint32_t m = 0; m < c->b.bm; ++m)
    multiply_part(g, c,
                  &(struct part){.m = m,
                                 .bm = 1,
                                 .bn = c->b.bn,
                                 .steps = c->steps,
                                 .waits_a = c->loads_a,
                                 .waits_b = m == 0 && c->loads_b,
                                 .ends_step = m + 1 == c->b.bm});
}

static void multiply(struct gemm *g, const struct chunk *c) {
  uint32_t k = 0;
  if (by_rows(g)) {
    multiply_rows(g, c);
    return;
  }
  if (by_columns(g, c)) {
    multiply_columns(g, c);
    return;
  }
  if (apart(c)) {
    multiply_apart(g, c);
    k = 1;
  }
  for (uint32_t end = k + pieced(c); k < end; ++k)
    multiply_pieces(g, c, k);
  if (k == c->steps) return;
  multiply_part(g, c,
                &(struct part){.bm = c->b.bm,
                               .bn = c->b.bn,
                               .k = k,
                               .steps = c->steps - k,
                               .waits_a = c->loads_a,
                               .waits_b = c->loads_b,
                               .ends_step = true});
}

/* ---- VA, VS, ST ---------------------------------------------------------------------------- */

/* A product takes a permission for each of its tiles: where the block two before had fewer,
 * operations without effect on its last tile register give the rest. */
static uint32_t missing(const struct gemm *g, uint32_t block) {
  const uint32_t has = block_tiles(g, block), wants = block_tiles(g, block + 2);
  return wants > has ? wants - has : 0;
}

/* Whether the block's operations write tile register i of its half. */
static bool writes(const struct gemm *g, uint32_t block, uint32_t i) {
  return i < users(g, block) || (i == HALF - 1 && missing(g, block));
}

/* What becomes of a final tile: equal neighbours share their commands. */
struct copy {
  uint32_t rows, cols;
  uint8_t reused;    /* its tile register had a user: VS */
  uint8_t rewritten; /* and will have one: VA */
  uint8_t again;     /* its ACC tile will be written again */
  uint8_t out_used;  /* its place for the result had a user: ST */
  uint8_t line;      /* FP32: tiles of a column, or of a row */
  uint8_t ends_row;  /* FP32: the last of its row of tiles */
  uint8_t zero[2];   /* no padding: compared whole */
};

/* Row and column of a block's tile i. */
static uint32_t tile_row(const struct block *b, uint32_t i) {
  return b->rows ? i / b->bn : i % b->bm; /* NOLINT(*.DivideZero): a block has tiles */
}

static uint32_t tile_column(const struct block *b, uint32_t i) {
  return b->rows ? i % b->bn : i / b->bm;
}

/* Results in HBFP8 wait for their places tile by tile, those in FP32 with their first tile for the
 * whole block two (or four) before, since blocks of other shapes lie differently. */
static struct copy copy_of(const struct gemm *g, const struct block *b, uint32_t i) {
  const uint32_t m = tile_row(b, i), n = tile_column(b, i);
  const bool hbfp8 = g->s->result == CT_GEMM_HBFP8;
  struct copy c;
  memset(&c, 0, sizeof c); /* to be compared whole */
  c.rows = ct_in_tile(g->s->m, b->m0 + m);
  c.cols = ct_in_tile(g->s->n, b->n0 + n);
  c.reused = b->index >= 2 && i < block_tiles(g, b->index - 2);
  c.rewritten = writes(g, b->index + 2, i);
  c.again = i < users(g, b->index + 2);
  if (hbfp8) {
    c.out_used = c.reused;
  } else {
    c.out_used = b->index >= 2 && i == 0;
    c.line = (uint8_t)(b->rows ? m : n);
    c.ends_row = n + 1 == b->bn;
  }
  return c;
}

/* VA and VS for `count` tiles from i on. */
static void copy_tiles(struct gemm *g, const struct block *b, const struct copy *c, uint32_t i,
                       uint32_t count) {
  const bool hbfp8 = g->s->result == CT_GEMM_HBFP8;
  const uint32_t reg = (b->index & 1) * HALF + i, pitch = b->bn * CT_F32_ROW_UNITS;
  const uint32_t m = tile_row(b, i), n = tile_column(b, i);
  const uint32_t stride = b->rows ? CT_F32_ROW_UNITS : CT_TILE * pitch;
  const uint32_t place = hbfp8 ? i * CT_TILE : m * CT_TILE * pitch + n * CT_F32_ROW_UNITS;
  CT_ADD(&g->b, VA, CT_SET(VA_A_SRC, 1), CT_SET(VA_TA, reg), CT_SET(VA_TD, reg),
         CT_SET(VA_MORE, count - 1), CT_SET(VA_ROWS, c->rows), CT_SET(VA_COLS, c->cols),
         CT_SET(VA_FULL, hbfp8), CT_SET(ALL_WAIT0, CT_SEM(S_MM_VA)),
         CT_SET(ALL_WAIT1, c->reused ? CT_SEM(S_VS_VA) : 0), CT_SET(ALL_SIG0, CT_SEM(S_VA_VS)),
         CT_SET(ALL_SIG1, c->again ? CT_SEM(S_VA_MM) : 0));
  CT_ADD(&g->b, VS, CT_SET(VS_TS, reg), CT_SET(VS_MORE, count - 1),
         CT_SET(VS_SPM, out_place(g, b) + place), CT_SET(VS_MODE, hbfp8),
         CT_SET(VS_TILE_STRIDE, hbfp8 ? CT_TILE : stride), CT_SET(VS_ROW_STRIDE, hbfp8 ? 1 : pitch),
         CT_SET(VS_ROWS, hbfp8 ? CT_TILE : c->rows), CT_SET(ALL_WAIT0, CT_SEM(S_VA_VS)),
         CT_SET(ALL_WAIT1, c->out_used ? CT_SEM(S_ST_VS) : 0),
         CT_SET(ALL_SIG0, c->rewritten ? CT_SEM(S_VS_VA) : 0),
         CT_SET(ALL_SIG1, hbfp8 || c->ends_row ? CT_SEM(S_VS_ST) : 0));
}

/* HBFP8: records of the block's tiles i.., in C the tiles `at`, at + next, ... */
static void store_records(struct gemm *g, const struct block *b, uint32_t i, uint32_t at,
                          uint32_t next, uint32_t count, bool again) {
  CT_ADD(&g->b, ST, CT_SET(DMA_DRAM, at * CT_RECORD_UNITS), CT_SET(DMA_DRAM_REG, CT_GEMM_C),
         CT_SET(DMA_HDR, 1), CT_SET(DMA_NB, CT_TILE),
         CT_SET(DMA_SPM, out_place(g, b) + i * CT_TILE), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1),
         CT_SET(DMA_N2, count), CT_SET(DMA_D2, count > 1 ? next * CT_RECORD_UNITS : 0),
         CT_SET(DMA_S2, CT_TILE), CT_SET(ALL_WAIT0, CT_SEM(S_VS_ST)),
         CT_SET(ALL_SIG0, again ? CT_SEM(S_ST_VS) : 0));
}

static void store_hbfp8(struct gemm *g, const struct block *b) {
  const uint32_t again = users(g, b->index + 2), tiles = b->bm * b->bn;
  const uint32_t row = b->bn == g->nt ? tiles : b->bn; /* whole rows lie one behind the other */
  const uint32_t line = b->rows ? row : b->bm;
  const uint32_t most = b->rows || g->nt * CT_RECORD_UNITS < MAX_STRIDE ? HALF : 1;
  for (uint32_t i = 0, count; i < tiles; i += count) {
    count = ct_min_u32(most, line - i % line);
    if (i < again) count = ct_min_u32(count, again - i);
    const uint32_t at = (b->m0 + tile_row(b, i)) * g->nt + b->n0 + tile_column(b, i);
    store_records(g, b, i, at, b->rows ? 1 : g->nt, count, i < again);
  }
}

/* FP32: rows of tiles m.. of the block, `rows` rows in each. */
static void store_rows(struct gemm *g, const struct block *b, uint32_t m, uint32_t count,
                       uint32_t rows) {
  const uint32_t row_tile = b->m0 + m, pitch = b->bn * CT_F32_ROW_UNITS;
  const uint32_t used = (g->s->n + 3) / 4 - b->n0 * CT_F32_ROW_UNITS;
  const bool again = m + count == b->bm;
  CT_ADD(&g->b, ST, CT_SET(DMA_DRAM, row_tile * CT_TILE * g->s->pitch + b->n0 * CT_F32_ROW_UNITS),
         CT_SET(DMA_DRAM_REG, CT_GEMM_C), CT_SET(DMA_SPM, out_place(g, b) + m * CT_TILE * pitch),
         CT_SET(DMA_NB, ct_min_u32(pitch, used)), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, rows),
         CT_SET(DMA_D1, g->s->pitch), CT_SET(DMA_S1, pitch), CT_SET(DMA_N2, count),
         CT_SET(DMA_D2, count > 1 ? CT_TILE * g->s->pitch : 0), CT_SET(DMA_S2, CT_TILE * pitch),
         CT_SET(ALL_WAIT0, CT_SEM(S_VS_ST)), CT_SET(ALL_SIG1, again ? CT_SEM(S_ST_VS) : 0));
}

static void store_f32(struct gemm *g, const struct block *b) {
  const uint32_t most = CT_TILE * (uint64_t)g->s->pitch < MAX_STRIDE ? HALF : 1;
  for (uint32_t m = 0, count; m < b->bm; m += count) {
    const uint32_t rows = ct_in_tile(g->s->m, b->m0 + m);
    count = 1;
    while (m + count < b->bm && count < most && ct_in_tile(g->s->m, b->m0 + m + count) == rows)
      ++count;
    store_rows(g, b, m, count, rows);
  }
}

static void top_up(struct gemm *g, const struct block *b) {
  const uint32_t n = missing(g, b->index);
  const bool reused = n && b->index >= 2 && block_tiles(g, b->index - 2) == HALF;
  for (uint32_t i = 0; i < n; i += 2)
    CT_ADD(&g->b, VA, CT_SET(VA_A_SRC, 2), CT_SET(VA_TD, (b->index & 1) * HALF + HALF - 1),
           CT_SET(VA_ROWS, 1), CT_SET(VA_COLS, 1),
           CT_SET(ALL_WAIT0, i == 0 && reused ? CT_SEM(S_VS_VA) : 0),
           CT_SET(ALL_SIG0, CT_SEM(S_VA_MM)), CT_SET(ALL_SIG1, i + 1 < n ? CT_SEM(S_VA_MM) : 0));
}

static void drain(struct gemm *g, const struct block *b) {
  const uint32_t tiles = b->bm * b->bn;
  for (uint32_t i = 0, count; i < tiles; i += count) {
    const struct copy c = copy_of(g, b, i);
    for (count = 1; i + count < tiles; ++count) {
      const struct copy next = copy_of(g, b, i + count);
      if (memcmp(&c, &next, sizeof c) != 0) break;
    }
    copy_tiles(g, b, &c, i, count);
  }
  if (g->s->result == CT_GEMM_HBFP8)
    store_hbfp8(g, b);
  else
    store_f32(g, b);
  top_up(g, b);
}

/* ---- All ----------------------------------------------------------------------------------- */

/* Blocks of at most `most` tiles, cut from `rows` rows. */
static struct cut cut_band(const struct gemm *g, uint32_t rows, uint32_t most) {
  struct cut c = {.bm = ct_min_u32(rows, most)};
  c.bn = ct_min_u32(most / c.bm, g->nt);
  return c;
}

static void count_blocks(struct gemm *g) {
  g->cols0 = g->halved ? g->nt : ceil_div(g->nt, g->first.bn);
  if (g->compact) g->cols0 = 1;
  g->cols = ceil_div(g->nt, g->other.bn);
  g->blocks = g->cols0 + ceil_div(g->mt - g->first.bm, g->other.bm) * g->cols;
}

static void place_results(struct gemm *g) {
  const uint32_t other = g->mt > g->first.bm ? g->other.bm * g->other.bn : 0;
  uint32_t tiles = g->first.bm * g->first.bn;
  if (g->halved || g->compact) tiles = HALF;
  if (other > tiles) tiles = other;
  g->out_words = tiles * (g->s->result == CT_GEMM_HBFP8 ? CT_TILE : CT_F32_TILE_UNITS);
}

/* Whether the first band's blocks are single columns: one row tile; and in FP32, where rows of a
 * block are stored when the last of its tiles in them is there, up to four row tiles, unless the
 * contraction is long enough for the stores to pass beside it. */
static bool single_columns(const struct gemm *g) {
  const bool f32 = g->s->result == CT_GEMM_F32;
  return g->first.bm == 1 || (f32 && g->first.bm <= 4 && g->kt < MIN_WIDE_F32);
}

/* Whether the first two blocks come together. Not with few k steps: there it is the stores that
 * take long, and they would begin later. */
static bool starts_wide(const struct gemm *g) {
  const uint32_t least = g->s->result == CT_GEMM_HBFP8 ? MIN_WIDE : MIN_WIDE_F32;
  if (g->quartered) return true;
  return g->first.bm == 4 && g->nt > 4 && g->kt >= least && g->kt <= MAX_WIDE;
}

/* False: B does not fit. */
static bool plan_whole(struct gemm *g) {
  const bool hbfp8 = g->s->result == CT_GEMM_HBFP8;
  const uint64_t panel = (uint64_t)g->kt * CT_TILE;
  g->whole = true;
  g->first = cut_band(g, ct_min_u32(g->mt, HALF), HALF);
  if (single_columns(g)) g->first.bn = 1;
  g->halved = g->first.bm > 4 && g->nt >= 2;
  g->compact = hbfp8 && g->mt > 2 && g->mt <= 4 && g->nt > 2 && g->nt <= 4 && g->kt > 1 &&
               g->kt <= MAX_COMPACT;
  g->quartered = hbfp8 && g->first.bm == 8 && g->nt >= 8 && g->kt >= 2 && g->kt <= MAX_STEPS / 3;
  g->other.bn = ct_min_u32(hbfp8 ? 8 : 4, g->nt);
  g->other.bm = HALF / g->other.bn;
  g->chunks = 1;
  g->chunk = g->kt;
  count_blocks(g);
  const uint32_t a_panels = g->first.bm + (bands(g) > 1 ? g->other.bm : 0);
  const uint64_t words = (g->nt + a_panels) * panel;
  if (g->kt > MAX_STEPS || words > g->s->spm_words) return false;
  g->wide = starts_wide(g);
  g->all_signal = bands(g) < 3 && g->blocks * (uint64_t)g->kt <= (uint64_t)2 * MAX_STEPS;
  place_results(g);
  g->out_at = 0;
  g->a_at = 2 * g->out_words;
  g->b_at = g->a_at + a_panels * g->chunk * CT_TILE;
  return words + g->a_at <= g->s->spm_words;
}

static int plan_streamed(struct gemm *g, uint32_t most, const struct ct_why *why) {
  g->whole = g->halved = g->quartered = g->wide = g->compact = false;
  g->first = cut_band(g, ct_min_u32(g->mt, 4), most);
  g->first.bm = ct_min_u32(most / g->first.bn, g->mt);
  g->other = g->first;
  count_blocks(g);
  const uint32_t step = 2 * (g->first.bm + g->first.bn) * CT_TILE;
  place_results(g);
  const uint32_t out = 2 * g->out_words;
  if (g->s->spm_words < out + step)
    return ct_why(why, CT_ERR_NO_SPACE, "a product needs %u words of scratchpad, the window has %u",
                  out + step, g->s->spm_words);
  const uint32_t fit = ct_min_u32((g->s->spm_words - out) / step, MAX_STEPS);
  g->chunks = ceil_div(g->kt, fit);
  g->chunk = ceil_div(g->kt, g->chunks);
  g->out_at = 0;
  g->a_at = out;
  g->b_at = out + 2 * g->chunk * g->first.bm * CT_TILE;
  return CT_OK;
}

/* Commands reach 2^23 units from an argument; tile counts stay far from 32 bits. */
static int check(const struct ct_gemm *s, const struct ct_why *why) {
  if (s->m == 0 || s->n == 0 || s->k == 0)
    return ct_why(why, CT_ERR_ARG, "a product of %u x %u x %u has no elements", s->m, s->n, s->k);
  if (s->result == CT_GEMM_F32 && s->pitch < (s->n + 3) / 4)
    return ct_why(why, CT_ERR_ARG, "a pitch of %u units does not hold %u columns", s->pitch, s->n);
  const uint64_t a = (uint64_t)ct_tiles(s->m) * ct_tiles(s->k) * CT_RECORD_UNITS;
  const uint64_t b = (uint64_t)ct_tiles(s->n) * ct_tiles(s->k) * CT_RECORD_UNITS;
  const uint64_t c = s->result == CT_GEMM_F32
                         ? (uint64_t)s->m * s->pitch
                         : (uint64_t)ct_tiles(s->m) * ct_tiles(s->n) * CT_RECORD_UNITS;
  const bool far = s->result == CT_GEMM_F32 && s->pitch >= 1 << 23;
  if (a >> 31 || b >> 31 || c >> 31 || ct_tiles(s->k) >= 1 << 18 || far)
    return ct_why(why, CT_ERR_NO_SPACE, "a product of %u x %u x %u is too large for one job", s->m,
                  s->n, s->k);
  return CT_OK;
}

/* A of a later band, if there is such a band. */
static void load_band(struct gemm *g, uint32_t band) {
  if (band >= bands(g)) return;
  const struct chunk c = chunk_at(g, g->cols0 + (band - 1) * g->cols);
  load(g, &c, 0, c.steps);
}

/* What comes behind the first chunk's operands. */
static void load_second(struct gemm *g) {
  struct chunk c = chunk_at(g, 1);
  if (!g->quartered) {
    if (!g->wide) load(g, &c, 0, c.steps);
    return;
  }
  for (uint32_t q = 2; q < 4; ++q) {
    c = chunk_at(g, q);
    load(g, &c, 0, c.steps);
  }
  c = chunk_at(g, 4);
  c.b.bm = g->first.bm - c.b.m0;
  load_rows(g, &c, 0);
}

/* Loads that may be written down once chunk q has been multiplied. */
static void load_ahead(struct gemm *g, const struct chunk *c) {
  const uint32_t next = c->q + 2;
  const struct chunk n = chunk_at(g, next);
  if (!g->whole) {
    if (next < g->blocks * g->chunks) load(g, &n, 0, n.steps);
    return;
  }
  if (g->halved && c->q == 0 && first_column(g) < g->cols0) {
    const struct chunk rest = chunk_at(g, first_column(g));
    load_rest(g, &rest);
    load_band(g, 1);
  }
  if (!g->halved && next < g->cols0) load(g, &n, 0, n.steps);
  if (!g->halved && next + 1 == g->cols0) load_band(g, 1);
  if (c->b.band_last) load_band(g, c->b.band + 2);
}

/* ---- Compact ------------------------------------------------------------------------------- */

/* Tiles of C that become final together: the corner of two by two; then, panel by panel, those that
 * a panel of B or of A has in common with the panels that are there: a column, or a row. */
static struct part piece_at(const struct gemm *g, uint32_t i, uint32_t acc) {
  struct part p = {.bm = 2, .bn = 2, .acc = acc};
  if (i == 0) return p;
  for (uint32_t at = 2;; ++at) {
    if (at < g->nt && --i == 0) {
      p.n = at;
      p.bn = 1;
      p.bm = ct_min_u32(at, g->mt);
      return p;
    }
    if (at < g->mt && --i == 0) {
      p.m = at;
      p.bm = 1;
      p.bn = ct_min_u32(at + 1, g->nt);
      return p;
    }
  }
}

static uint32_t pieces(const struct gemm *g) {
  return 1 + (g->mt - 2) + (g->nt - 2);
}

/* Panels first..first+n of an operand, steps k..k+steps, a signal for each step. */
static void load_panels(struct gemm *g, struct tiles first, uint32_t n, uint32_t k,
                        uint32_t steps) {
  first.k += k;
  first.spm += k * CT_TILE;
  first.n1 = n;
  first.panels1 = 1;
  first.n2 = steps;
  load_tiles(g, &first);
}

/* The first k step, tile by tile: one of B and two of A, so that rows begin and go on; then B's
 * other panels, and A's. */
static void start_compact(struct gemm *g, const struct chunk *c) {
  struct tiles t = b_tiles(g, c, 0, 0);
  load_tiles(g, &t);
  t = a_tiles(g, c, 0, 0);
  t.panels2 = 1;
  t.n2 = 2;
  load_tiles(g, &t);
  t = b_tiles(g, c, 1, 0);
  t.panels2 = 1;
  t.n2 = g->nt - 1;
  load_tiles(g, &t);
  t = a_tiles(g, c, 2, 0);
  t.panels2 = 1;
  t.n2 = g->mt - 2;
  load_tiles(g, &t);
}

/* The corner tile by tile, then piece by piece. */
static void multiply_start(struct gemm *g, const struct chunk *c) {
  struct part p = {.bm = 1, .bn = 1, .steps = 1, .waits_a = true, .waits_b = true};
  multiply_tiles(g, c, &p);
  p = (struct part){.m = 1, .bm = 1, .bn = 1, .steps = 1, .waits_a = true, .acc = 1};
  multiply_tiles(g, c, &p);
  p = (struct part){.bm = 2, .n = 1, .bn = 1, .steps = 1, .waits_b = true, .acc = 2};
  multiply_tiles(g, c, &p);
  for (uint32_t i = 1, acc = 4; i < pieces(g); ++i, acc += p.bm * p.bn) {
    p = piece_at(g, i, acc);
    p.steps = 1;
    p.waits_a = p.m > 0;
    p.waits_b = p.m == 0;
    multiply_tiles(g, c, &p);
  }
}

/* The other k steps. The last tile comes alone, behind the others: a tile takes a beat more to
 * store than its last k step has rows, and so none waits for the one before it. */
static void multiply_compact(struct gemm *g, const struct chunk *c) {
  uint32_t acc = 0;
  for (uint32_t i = 0; i < pieces(g); ++i) {
    struct part p = piece_at(g, i, acc);
    acc += p.bm * p.bn;
    p.k = 1;
    p.steps = g->kt - 1;
    p.waits_a = i == 0 || p.m > 0;
    p.waits_b = i == 0 || p.m == 0;
    if (i + 1 < pieces(g)) {
      multiply_tiles(g, c, &p);
      continue;
    }
    struct part last = p;
    if (p.bm > 1)
      last.m += --p.bm;
    else
      last.n += --p.bn;
    multiply_tiles(g, c, &p);
    last.bm = last.bn = 1;
    last.acc = acc - 1;
    last.waits_a = last.waits_b = false;
    multiply_tiles(g, c, &last);
  }
}

/* Tiles of C, as they lie in ACC. */
static uint32_t order_compact(const struct gemm *g, uint32_t *tile) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < pieces(g); ++i) {
    const struct part p = piece_at(g, i, count);
    for (uint32_t n = p.n; n < p.n + p.bn; ++n)
      for (uint32_t m = p.m; m < p.m + p.bm; ++m)
        tile[count++] = m * g->nt + n;
  }
  return count;
}

static struct copy copy_compact(const struct gemm *g, uint32_t tile) {
  struct copy c;
  memset(&c, 0, sizeof c); /* to be compared whole */
  c.rows = ct_in_tile(g->s->m, tile / g->nt);
  c.cols = ct_in_tile(g->s->n, tile % g->nt);
  return c;
}

static void drain_compact(struct gemm *g, const struct block *b) {
  uint32_t tile[2 * HALF];
  const uint32_t tiles = order_compact(g, tile);
  for (uint32_t i = 0, count; i < tiles; i += count) {
    const struct copy c = copy_compact(g, tile[i]);
    for (count = 1; i + count < tiles && count < HALF; ++count) {
      const struct copy next = copy_compact(g, tile[i + count]);
      if (memcmp(&c, &next, sizeof c) != 0) break;
    }
    copy_tiles(g, b, &c, i, count);
  }
  for (uint32_t i = 0, count; i < tiles; i += count) {
    const uint32_t next = i + 1 < tiles ? tile[i + 1] - tile[i] : 0;
    for (count = 1; i + count < tiles && tile[i + count] - tile[i + count - 1] == next; ++count) {
    }
    store_records(g, b, i, tile[i], next, count, false);
  }
}

/* A small product, all of it in ACC. Its first k step gives the array work at once; then panels of
 * A and B come whole, in turn, so that tiles of C are finished, and stored, from early on. Where
 * the memory is slow, a panel's tiles take as long to come as those that the panel before has
 * finished take to leave. */
static void write_compact(struct gemm *g) {
  const struct chunk c = chunk_at(g, 0);
  const uint32_t steps = g->kt - 1;
  start_compact(g, &c);
  load_panels(g, b_tiles(g, &c, 0, 0), 2, 1, steps);
  load_panels(g, a_tiles(g, &c, 0, 0), 2, 1, steps);
  for (uint32_t i = 1; i < pieces(g); ++i) {
    const struct part p = piece_at(g, i, 0);
    load_panels(g, p.m ? a_tiles(g, &c, p.m, 0) : b_tiles(g, &c, p.n, 0), 1, 1, steps);
  }
  multiply_start(g, &c);
  multiply_compact(g, &c);
  drain_compact(g, &c.b);
}

/* Writes down the whole product. */
static void write_all(struct gemm *g) {
  if (g->compact) {
    write_compact(g);
    return;
  }
  const uint32_t total = g->blocks * g->chunks;
  struct chunk c = g->wide ? wide_chunk(g) : chunk_at(g, 0);
  if (by_rows(g)) {
    struct chunk top = c;
    top.b.bm = 1;
    load_first(g, &top);
    load_rows(g, &c, 1);
  } else if (g->wide) {
    work_wide(g, &c);
  } else {
    load_first(g, &c);
  }
  if (total > 1 && !(g->whole && g->cols0 == 1)) {
    load_second(g);
  }
  if (g->whole && g->cols0 <= (g->halved ? first_column(g) : 2)) load_band(g, 1);
  for (uint32_t q = 0; q < total; ++q) {
    c = chunk_at(g, q);
    if (!g->wide || q >= 2) multiply(g, &c);
    load_ahead(g, &c);
    if (c.last) drain(g, &c.b);
  }
}

static void prepare(struct gemm *g, const struct ct_gemm *shape) {
  memset(g, 0, sizeof *g);
  g->s = shape;
  g->mt = ct_tiles(shape->m);
  g->nt = ct_tiles(shape->n);
  g->kt = ct_tiles(shape->k);
}

static int build(struct gemm *g, struct ct_code *code, const struct ct_why *why) {
  ct_build_init(&g->b, CT_GEMM_ARGS);
  write_all(g);
  return ct_code_finish(&g->b, code, "a product", why);
}

/* Shapes that are irregular in every direction may not fit a program with the largest blocks:
 * smaller ones take fewer commands (and more traffic). */
int ct_prog_gemm(const struct ct_gemm *shape, struct ct_code *code, const struct ct_why *why) {
  struct gemm g;
  code->cmd = NULL;
  code->count = 0;
  int err = check(shape, why);
  if (err) return err;
  prepare(&g, shape);
  if (plan_whole(&g)) {
    err = build(&g, code, why);
    if (err != CT_ERR_NO_SPACE) return err;
  }
  for (uint32_t most = HALF; most >= 2; most /= 2) {
    prepare(&g, shape);
    err = plan_streamed(&g, most, why);
    if (!err) err = build(&g, code, why);
    if (err != CT_ERR_NO_SPACE) break;
  }
  return err;
}
