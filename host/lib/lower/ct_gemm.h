/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the programs for products C = A * B^T of HBFP8 matrices in device memory.
 *
 * C is cut into blocks of up to 8 tiles, one half of ACC, and the contraction of a block runs over
 * k steps of one tile per row and column of the block.
 *
 *   LD  B(q) A(q)  ..landed..>  MM(q)  ..tile final..>  VA  ..>  VS  ..tile or row of tiles..>  ST
 *   LD step <..k step read.. MM        MM(b+2) <..tile copied.. VA(b)
 *
 * Waits for space are exact: they start where the space had a user.
 *
 *   ct_prog_gemm.c      the chooser                  ct_gemm_compact.c   all of C in ACC
 *   ct_gemm_jobs.c      products as several jobs     ct_gemm_whole.c     B stays
 *   ct_gemm_blocks.c    blocks, chunks, places       ct_gemm_halved.c    B stays, more than 4 rows
 *   ct_gemm_load.c      LD                           ct_gemm_streamed.c  B comes anew
 *   ct_gemm_multiply.c  MM
 *   ct_gemm_drain.c     VA, VS, ST
 *   ct_gemm_least.c     one tile at a time, where the window holds no more
 *   ct_gemm_write.c     block by block, in loops where that is too long
 */
#ifndef CT_GEMM_H
#define CT_GEMM_H

#include "ct_prog.h"

#include "coltrain/coltrain.h"

/* Semaphores, named by who signals and who waits. */
enum { S_LD_B, S_LD_A, S_MM_LD, S_MM_VA, S_VA_MM, S_VA_VS, S_VS_VA, S_VS_ST, S_ST_VS };

enum {
  CT_GEMM_HALF = 8,        /* tiles of ACC for a block */
  CT_GEMM_MAX_STEPS = 127, /* k steps: those of two blocks stay below 255 signals */
  CT_GEMM_MAX_STRIDE = 1 << 23,
  CT_GEMM_MAX_LOAD = 4095 /* outer steps of an LD */
};

struct gemm;
struct block;
struct chunk;

/* A way to do a product. */
struct ct_gemm_strategy {
  bool b_stays;         /* all of B, read once */
  uint32_t together;    /* blocks that start() multiplies */
  uint32_t single_from; /* block of the first band from which on blocks are single columns; 0: cut
                         * alike */
  /* The first band's block b->index; NULL: blocks of first.bn columns. */
  void (*cut)(const struct gemm *g, struct block *b);
  /* Writes down what comes before the first chunk that is not multiplied there. */
  void (*start)(struct gemm *g);
  void (*multiply)(struct gemm *g, const struct chunk *c);
  /* Loads that may be written down once chunk c has been multiplied. */
  void (*ahead)(struct gemm *g, const struct chunk *c);
};

/* Blocks of a band: rows of tiles, columns of a block. */
struct cut {
  uint32_t bm, bn;
};

struct gemm {
  struct ct_build b;
  const struct ct_gemm *s;
  const struct ct_gemm_strategy *how;
  uint32_t mt, nt, kt;         /* tiles */
  uint32_t c_nt;               /* HBFP8: tiles of C from row to row */
  struct cut first, other;     /* bands */
  bool all_signal;             /* the k steps of all blocks, those nobody waits for, too */
  uint32_t cols0, cols;        /* blocks of the first band, of the others */
  uint32_t blocks;             /* in all */
  uint32_t chunks, chunk;      /* chunks of a block; k steps of all but the first */
  uint32_t out_words;          /* of a place for results; there are two */
  uint32_t a_at, b_at, out_at; /* SPM */
};

/* Whether a stride reaches so many panels. */
static inline bool ct_gemm_panels_near(const struct gemm *g, uint32_t panels) {
  return (uint64_t)panels * g->kt * CT_RECORD_UNITS < CT_GEMM_MAX_STRIDE;
}

/* ---- In a small window: ct_gemm_least.c ------------------------------------------------------ */

enum { CT_GEMM_ROOMY = 192 }; /* words from which on the other strategies find room */
int ct_gemm_least(const struct ct_gemm *shape, struct ct_code *code, const struct ct_why *why);

/* ---- Blocks, chunks, places: ct_gemm_blocks.c ------------------------------------------------ */

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

struct block ct_gemm_block(const struct gemm *g, uint32_t index);
struct chunk ct_gemm_chunk(const struct gemm *g, uint32_t q);
uint32_t ct_gemm_bands(const struct gemm *g);
uint32_t ct_gemm_block_tiles(const struct gemm *g, uint32_t index); /* 0: there is no such block */

/* Tiles of the block that uses what another leaves. Where there is none, signals are given all the
 * same, and nobody takes them: then the last blocks roll up with the others. */
uint32_t ct_gemm_users(const struct gemm *g, uint32_t index);

/* Blocks of at most `most` tiles, cut from `rows` rows. */
struct cut ct_gemm_cut_band(const struct gemm *g, uint32_t rows, uint32_t most);

/* How many blocks there are, once bands are cut. */
void ct_gemm_count(struct gemm *g);

/* Takes the room for two results of so many tiles at the most. Returns the words. */
uint32_t ct_gemm_place_results(struct gemm *g, uint32_t tiles);

/* Whether the block of a chunk is the last one, and its columns come and go one after the other,
 * each with all of its k steps: then few tiles are left to store when the last operand has come or
 * the last row has been multiplied. (With more bands the commands of the last block would no longer
 * be rolled up.) */
bool ct_gemm_by_columns(const struct gemm *g, const struct chunk *c);

/* Tiles lie panel by panel: those of a row tile (or column tile), k after k. */
uint32_t ct_gemm_panel_words(const struct gemm *g);
/* Row tile m, column tile n of a chunk's block; a block's results. */
uint32_t ct_gemm_a_place(const struct gemm *g, const struct chunk *c, uint32_t m);
uint32_t ct_gemm_b_place(const struct gemm *g, const struct chunk *c, uint32_t n);
uint32_t ct_gemm_out_place(const struct gemm *g, const struct block *b);

/* ---- LD: ct_gemm_load.c ---------------------------------------------------------------------- */

/* Tiles to load: for each of n2 steps (signalled), n1 tiles. Counted in panels (of kt tiles in
 * memory) and tiles along k. */
struct tiles {
  unsigned reg, sem, wait;
  uint32_t panel, k; /* of the first, in memory */
  uint32_t spm;
  uint32_t n1, panels1; /* tiles; from one to the next: a panel (1), or a tile along k (0) */
  uint32_t n2, panels2; /* steps */
};

/* The tile of row (column) m (n) of a chunk's block, k step k. */
struct tiles ct_gemm_a_tiles(const struct gemm *g, const struct chunk *c, uint32_t m, uint32_t k);
struct tiles ct_gemm_b_tiles(const struct gemm *g, const struct chunk *c, uint32_t n, uint32_t k);
void ct_gemm_load_tiles(struct gemm *g, const struct tiles *t);

/* All steps of a chunk, each signalled, behind those who use their places. */
void ct_gemm_load(struct gemm *g, const struct chunk *c);
/* The first chunk, in growing pieces, so that the array starts early. */
void ct_gemm_load_first(struct gemm *g, const struct chunk *c);
/* Row tiles m.., which lie one behind the other. */
void ct_gemm_load_rows(struct gemm *g, const struct chunk *c, uint32_t m);

/* How the first chunk comes, and is multiplied: whether its first step is taken apart, how many
 * steps after it come in pieces, of how many row tiles, and how many columns each row tile of the
 * step taken apart meets as it comes. */
bool ct_gemm_apart(const struct chunk *c);
uint32_t ct_gemm_split_steps(const struct chunk *c);
uint32_t ct_gemm_piece_rows(const struct chunk *c, uint32_t k);
uint32_t ct_gemm_columns_apart(const struct chunk *c);

/* ---- MM: ct_gemm_multiply.c ------------------------------------------------------------------ */

/* A part of a chunk: rows m.. and columns n.. of its block, steps k... */
struct part {
  uint32_t m, bm, n, bn, k, steps;
  bool waits_a, waits_b;
  bool ends_step; /* nothing of its last step comes after it */
  uint32_t acc,
      acc_n; /* its first ACC tile, and from column to column: see ct_gemm_multiply_at() */
};

/* p->acc and p->acc_n say where. */
void ct_gemm_multiply_at(struct gemm *g, const struct chunk *c, const struct part *p);
/* Where the block's tiles lie, or those of its two blocks, k step by k step. */
void ct_gemm_multiply_part(struct gemm *g, const struct chunk *c, const struct part *p);
/* A whole chunk. */
void ct_gemm_multiply(struct gemm *g, const struct chunk *c);

/* ---- VA, VS, ST: ct_gemm_drain.c ------------------------------------------------------------- */

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

/* HBFP8: records of a block's tiles i.., in C the tiles `at`, at + next, ... */
struct records {
  uint32_t i, count, at, next;
  bool again; /* their place will be used again */
};

/* VA and VS for `count` tiles from i on. */
void ct_gemm_copy_tiles(struct gemm *g, const struct block *b, const struct copy *c, uint32_t i,
                        uint32_t count);
void ct_gemm_store_records(struct gemm *g, const struct block *b, const struct records *r);
/* A whole block. */
void ct_gemm_drain(struct gemm *g, const struct block *b);

/* ---- All ------------------------------------------------------------------------------------- */

/* Chooses the strategy and makes its plan. False: B does not stay. */
bool ct_gemm_plan_whole(struct gemm *g);
/* Blocks of at most `most` tiles. CT_ERR_NO_SPACE: the window is too small. */
int ct_gemm_plan_streamed(struct gemm *g, uint32_t most, const struct ct_why *why);
/* B stays, and the first band has more than four row tiles. */
const struct ct_gemm_strategy *ct_gemm_choose_halved(const struct gemm *g);

/* All of C in ACC. */
bool ct_gemm_is_compact(const struct gemm *g);
extern const struct ct_gemm_strategy ct_gemm_compact;

/* The first two blocks as one chunk: while the first operands come in, all of ACC is at work on
 * them. They come k step by k step, and are multiplied so. */
void ct_gemm_work_wide(struct gemm *g);

/* A of a later band, if there is such a band. */
void ct_gemm_load_band(struct gemm *g, uint32_t band);

/* Writes down the whole product. */
void ct_gemm_write(struct gemm *g);

#endif
