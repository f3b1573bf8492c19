/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of rows: gradients of biases, statistics of batch normalisation and their gradients, global
 * average pooling.
 *
 * Rows of a plane lie side by side in the scratchpad, too, four words each (FP32) or one (HBFP8).
 * So sixteen rows, a block, are one VL, wherever a segment begins. FP32 is loaded by rows, HBFP8 by
 * tiles; where segments of HBFP8 do not begin with tiles, those of sixteen segments (which do) are
 * loaded together. The sums of sixteen segments are stored as rows of a tile in the scratchpad,
 * from which it is taken to be stored in the ways wanted.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_program.h"

enum { R_SUM, R_SUM_TOO, R_T, R_T_TOO, TEMPS, MOST_BLOCKS = 4, SOURCES = 2, LOADS = 3 };

struct source {
  const struct ct_mat *mat;
  enum ct_keep keep;
  uint32_t tensor, at; /* pieces of FP32 are rows; where it lies in a slot of one block */
};

struct sum {
  struct ct_vk v;
  const struct ct_sum_rows *k;
  uint32_t segment, segments, planes;
  struct source x[SOURCES], less;
  unsigned sources;
  bool together;   /* sixteen segments are loaded at once */
  uint32_t groups; /* x is these, of so many index units at once; 0: it is not */
  struct ct_vk_made y, too;
  uint32_t temp, less_reg, sums, result; /* registers */
  uint32_t loads[SOURCES];
  uint32_t words, less_words, sum_words, out_words; /* rings in the scratchpad */
  uint32_t block_words;                             /* of all sources */
  uint32_t slots, blocks;                           /* loaded by a command */
  /* Under way. */
  uint32_t plane, first_plane, cols, group, first_group, in_group, row, first_block, some, rows,
      units, first_unit;
  struct ct_ref less_row, all, sum_rows;
};

static struct ct_ref temp(const struct sum *s, unsigned i) {
  return ct_tile_of(s->v.l, s->temp, i, 0);
}

/* ---- A block ---- */

/* Words of a source in front of row `row` of what lies in a slot. */
static uint32_t words_of_rows(const struct source *x, uint32_t rows) {
  return rows * ct_vk_row_words(x->keep);
}

static void load_rows(struct sum *s, const struct source *x, uint32_t row, uint32_t rows,
                      struct ct_ref to) {
  const uint32_t tiles = ct_tiles(rows);
  if (x->keep == CT_KEEP_F32)
    ct_vk_ld_rows(&s->v, x->tensor, s->plane, row, rows, to);
  else
    ct_vk_ld(&s->v, x->keep, ct_tiles_of(s->v.l, x->tensor, s->plane, 1, row / CT_TILE, tiles), to,
             tiles);
}

static void va(struct sum *s, struct ct_va c) {
  c.rows = s->rows;
  c.cols = s->cols;
  ct_va(s->v.l, &c);
}

/* Sixteen rows (or what is left of a segment) on their way to the sums. */
struct block {
  struct ct_ref words[SOURCES], x[SOURCES], t, what;
};

/* The operations in front of the sum: each reads what the one before writes, so those of two blocks
 * take turns. */
enum { LESS = 1, TIMES = 2 };

static unsigned front_of(const struct sum *s) {
  const bool less = s->k->less.rows || s->k->magnitudes || s->k->zeros,
             times = s->k->squares || s->k->zeros || s->sources > 1;
  return (less ? LESS : 0) | (times ? TIMES : 0);
}

static void load_block(struct sum *s, struct block *b) {
  for (unsigned i = 0; i < s->sources; ++i) {
    b->x[i] = ct_next(s->v.l, s->loads[i]);
    ct_vl(s->v.l, &(struct ct_vmove){.reg = b->x[i],
                                     .spm = b->words[i],
                                     .mode = ct_vk_vl_mode(s->x[i].keep),
                                     .rows = s->rows});
  }
  b->what = b->x[0];
}

static void less(struct sum *s, struct block *b) {
  struct ct_va c = {.to = b->t, .a = b->what, .q = s->less_row, .c = CT_VA_ROW0, .neg_c = true};
  if (s->k->magnitudes || s->k->zeros) {
    c.q = b->what;
    c.c = CT_VA_TILE;
    c.fn = CT_VA_MAX;
  }
  va(s, c);
  b->what = b->t;
}

/* The largest magnitudes so far; 1 where one is 0. */
static void count(struct sum *s, struct block *b) {
  va(s, (struct ct_va){.to = temp(s, R_SUM_TOO),
                       .a = temp(s, R_SUM_TOO),
                       .q = b->what,
                       .c = CT_VA_TILE,
                       .fn = CT_VA_MAX,
                       .part_rows = true});
  va(s, (struct ct_va){.to = b->t, .a = b->what, .c = CT_VA_SCALAR, .fn = CT_VA_EQUAL});
}

static void times(struct sum *s, struct block *b) {
  if (s->k->zeros) count(s, b);
  if (s->k->squares) {
    va(s, (struct ct_va){.to = b->t, .a = b->what, .q = b->what, .b = CT_VA_TILE});
    b->what = b->t;
  }
  if (s->sources < 2) return;
  va(s, (struct ct_va){.to = b->t, .a = b->what, .q = b->x[1], .b = CT_VA_TILE});
  b->what = b->t;
}

static void add(struct sum *s, unsigned sum, struct ct_ref what) {
  va(s, (struct ct_va){
            .to = temp(s, sum), .a = temp(s, sum), .q = what, .c = CT_VA_TILE, .part_rows = true});
}

static void add_block(struct sum *s, const struct block *b) {
  add(s, R_SUM, b->what);
}

/* Its first operation; the last one of the block before comes behind it, if that is not done. */
static void begin_block(struct sum *s, struct block *b, const struct block *before) {
  const unsigned front = front_of(s);
  load_block(s, b);
  if (front & LESS)
    less(s, b);
  else if (front & TIMES)
    times(s, b);
  if (s->k->times.rows && s->k->too.rows) add(s, R_SUM_TOO, b->x[1]);
  if (before) add_block(s, before);
}

/* The blocks of a pass, two by two; sums are made in their order. */
static void add_blocks(struct sum *s, struct block *b) {
  const bool both = front_of(s) == (LESS | TIMES);
  for (uint32_t i = 0; i < s->some; i += 2) {
    const bool two = i + 1 < s->some;
    begin_block(s, &b[i], i ? &b[i - 1] : NULL);
    if (two) begin_block(s, &b[i + 1], NULL);
    if (both) times(s, &b[i]);
    if (both && two) times(s, &b[i + 1]);
    add_block(s, &b[i]);
    if (two && i + 2 >= s->some) add_block(s, &b[i + 1]);
  }
}

/* The blocks of a pass: loaded by a command each source, or there already. */
static void some_blocks(void *kernel, uint32_t pass) {
  struct sum *s = kernel;
  const uint32_t rows = s->rows < CT_TILE ? s->rows : s->some * CT_TILE;
  const uint32_t first = (s->first_block + pass * s->some) * CT_TILE;
  const bool loaded = s->together || s->groups;
  struct ct_ref slot = s->all, from[SOURCES] = {{.space = 0}};
  if (!loaded) slot = ct_next(s->v.l, s->words);
  for (unsigned i = 0; i < s->sources; ++i) {
    const uint32_t tiles = s->together ? s->segment
                           : s->groups ? s->groups * CT_GROUPS_TILES
                                       : s->blocks;
    from[i] = ct_behind(slot, s->x[i].at * tiles);
    if (!loaded) load_rows(s, &s->x[i], s->row + first, rows, from[i]);
  }
  struct block block[MOST_BLOCKS] = {{.what = {.space = 0}}};
  for (uint32_t b = 0; b < s->some; ++b) {
    for (unsigned i = 0; i < s->sources; ++i) {
      const uint32_t row = b * CT_TILE + (s->together ? s->row + first : s->groups ? first : 0);
      block[b].words[i] = ct_behind(from[i], words_of_rows(&s->x[i], row));
    }
    block[b].t = temp(s, R_T + b % 2);
  }
  add_blocks(s, block);
}

static void blocks(struct sum *s, uint32_t first, uint32_t count, uint32_t some, uint32_t rows) {
  s->first_block = first;
  s->some = some;
  s->rows = rows;
  ct_repeat(s->v.l, count, some_blocks, s);
}

/* ---- A segment ---- */

/* A tile of sums goes to device memory. */
static void store(struct sum *s, const struct ct_vk_made *to, struct ct_ref result) {
  const struct ct_ref out = ct_next(s->v.l, s->out_words);
  ct_vk_vs_made(&s->v, to, result, out);
  ct_vk_st_made(&s->v, to, s->plane, out, s->group);
}

/* Row 0 of sums, by halves, times the scale; of the largest magnitudes, the largest. */
static void finish(struct sum *s, unsigned sum, const struct ct_vk_made *y) {
  struct ct_lower *l = s->v.l;
  const unsigned fn = s->k->zeros && sum == R_SUM_TOO ? CT_VA_MAX : CT_VA_ADD;
  const struct ct_ref to = ct_next(l, s->result);
  for (unsigned half = 8, i = 0; half > 0; half /= 2, ++i) {
    const struct ct_ref from = temp(s, i & 1 ? R_T : sum);
    ct_va(l, &(struct ct_va){.to = temp(s, i & 1 ? sum : R_T),
                             .a = from,
                             .q = from,
                             .c = CT_VA_TILE,
                             .fn = fn,
                             .row_xor = half,
                             .rows = half});
  }
  struct ct_va scale = {.to = to, .a = temp(s, sum), .rows = 1};
  if (s->k->scale != 1) {
    scale.b = CT_VA_SCALAR;
    scale.sb = ct_vk_bits(s->k->scale);
  }
  if (s->segments == 1) scale.cols = s->cols;
  ct_va(l, &scale);
  if (s->segments == 1)
    store(s, y, to);
  else
    ct_vs(l,
          &(struct ct_vmove){
              .reg = to, .spm = ct_behind(s->sum_rows, s->in_group * CT_F32_ROW_UNITS), .rows = 1});
}

static void all_blocks(struct sum *s) {
  const uint32_t whole = s->segment / CT_TILE, rest = whole % s->blocks;
  blocks(s, 0, whole / s->blocks, s->blocks, CT_TILE);
  if (rest) blocks(s, whole - rest, 1, rest, CT_TILE);
  if (s->segment % CT_TILE) blocks(s, whole, 1, 1, s->segment % CT_TILE);
}

static void begin_all(struct sum *s) {
  ct_va(s->v.l, &(struct ct_va){.to = temp(s, R_SUM)});
  if (s->k->too.rows) ct_va(s->v.l, &(struct ct_va){.to = temp(s, R_SUM_TOO)});
}

static void finish_all(struct sum *s) {
  finish(s, R_SUM, &s->y);
  if (s->k->too.rows) finish(s, R_SUM_TOO, &s->too);
}

static void segment(void *kernel, uint32_t i) {
  struct sum *s = kernel;
  s->in_group = i;
  s->row = (s->together ? i : s->group * CT_TILE + i) * s->segment;
  begin_all(s);
  all_blocks(s);
  finish_all(s);
}

/* ---- Sixteen segments: a tile of sums ---- */

static void gather(struct sum *s, uint32_t rows) {
  struct ct_lower *l = s->v.l;
  const struct ct_ref reg = ct_next(l, s->sums), result = ct_next(l, s->result);
  ct_vl(l, &(struct ct_vmove){.reg = reg, .spm = s->sum_rows, .rows = rows});
  ct_va(l, &(struct ct_va){.to = result, .a = reg, .rows = rows, .cols = s->cols});
  store(s, &s->y, result);
}

static void load_together(struct sum *s, uint32_t segments) {
  if (!s->together) return;
  s->all = ct_next(s->v.l, s->words);
  for (unsigned i = 0; i < s->sources; ++i)
    load_rows(s, &s->x[i], s->group * CT_TILE * s->segment, segments * s->segment,
              ct_behind(s->all, s->x[i].at * s->segment));
}

static void group_of(struct sum *s, uint32_t group, uint32_t segments) {
  s->group = group;
  load_together(s, segments);
  if (s->segments > 1) s->sum_rows = ct_next(s->v.l, s->sum_words);
  ct_repeat(s->v.l, segments, segment, s);
  if (s->segments > 1) gather(s, segments);
}

static void whole_group(void *kernel, uint32_t g) {
  group_of(kernel, g, CT_TILE);
}

/* ---- Planes ---- */

static struct ct_ref load_less(struct sum *s) {
  struct ct_ref words = {.space = 0};
  if (s->k->less.rows == 0) return words;
  words = ct_next(s->v.l, s->less_words);
  ct_vk_ld_row(&s->v, s->less.keep, ct_tile_of(s->v.l, s->less.tensor, s->plane, 0), words);
  return words;
}

static void take_less(struct sum *s, struct ct_ref words) {
  if (s->k->less.rows == 0) return;
  s->less_row = ct_next(s->v.l, s->less_reg);
  ct_vl(s->v.l,
        &(struct ct_vmove){
            .reg = s->less_row, .spm = words, .mode = ct_vk_vl_mode(s->less.keep), .rows = 1});
}

static void plane(void *kernel, uint32_t p) {
  struct sum *s = kernel;
  const uint32_t whole = s->segments / CT_TILE, rest = s->segments % CT_TILE;
  s->plane = s->first_plane + p;
  take_less(s, load_less(s));
  ct_repeat(s->v.l, whole, whole_group, s);
  if (rest) group_of(s, whole, rest);
}

/* ---- Groups ---- */

/* What is loaded for a stretch. */
struct loaded {
  struct ct_vk_stretch at;
  struct ct_ref words, less;
};

/* With the blocks of the other source. */
static void load_stretch(struct sum *s, struct loaded *t) {
  const struct ct_vk_stretch *at = &t->at;
  s->plane = at->plane;
  if (at->first) t->less = load_less(s);
  t->words = ct_next(s->v.l, s->words);
  if (s->sources > 1)
    load_rows(s, &s->x[1], at->unit * CT_GROUPS_TILES * CT_TILE,
              at->units * CT_GROUPS_TILES * CT_TILE,
              ct_behind(t->words, s->x[1].at * s->groups * CT_GROUPS_TILES));
  ct_vk_ld_groups(&s->v, ct_tiles_of(s->v.l, s->x[0].tensor, s->plane, 1, at->unit, at->units),
                  t->words, at->units, s->k->x.free);
}

static void add_stretch(struct sum *s, const struct loaded *t) {
  s->plane = t->at.plane;
  s->cols = ct_in_tile(s->k->x.cols, t->at.plane);
  s->all = t->words;
  if (t->at.first) take_less(s, t->less);
  if (t->at.first) begin_all(s);
  blocks(s, 0, t->at.units * CT_GROUPS_TILES / s->blocks, s->blocks, CT_TILE);
  if (t->at.last) finish_all(s);
}

static void stretches(struct sum *s) {
  const struct ct_vk_units of = {.planes = ct_mat_planes(&s->k->x),
                                 .units = s->segment / CT_TILE / CT_GROUPS_TILES,
                                 .at_once = s->groups};
  struct loaded next = {0}, now;
  bool more = ct_vk_next_stretch(&of, &next.at);
  load_stretch(s, &next);
  while (more && !ct_lower_error(s->v.l)) {
    now = next;
    more = ct_vk_next_stretch(&of, &next.at);
    if (more) load_stretch(s, &next);
    add_stretch(s, &now);
  }
}

static void all_planes(struct sum *s) {
  if (s->groups) {
    stretches(s);
    return;
  }
  const uint32_t whole = s->k->x.cols / CT_TILE;
  s->first_plane = 0;
  s->cols = CT_TILE;
  ct_repeat(s->v.l, whole, plane, s);
  s->first_plane = whole;
  s->cols = s->k->x.cols % CT_TILE;
  if (s->cols) plane(s, 0);
}

/* ---- Places ---- */

static void add_source(struct sum *s, const struct ct_mat *m) {
  struct source *x = &s->x[s->sources++];
  const bool groups = m->groups.reg;
  x->mat = m;
  x->keep = CT_KEEP_ROWS;
  if (!groups) ct_vk_keep(m, &x->keep);
  x->tensor = groups                   ? ct_vk_groups_tensor(&s->v, m, false)
              : x->keep == CT_KEEP_F32 ? ct_vk_rows_tensor(&s->v, m, false)
                                       : ct_vk_tensor(&s->v, m, x->keep, false);
  s->groups |= groups; /* how many is known later */
  x->at = s->block_words;
  s->block_words += ct_vk_words(x->keep);
  s->together |= x->keep != CT_KEEP_F32 && s->segments > 1 && s->segment % CT_TILE != 0;
}

static uint32_t blocks_of_slot(const struct sum *s) {
  if (s->groups) return s->groups * CT_GROUPS_TILES;
  return s->together ? s->segment : s->blocks;
}

static void place(struct sum *s, bool lean) {
  struct ct_lower *l = s->v.l;
  uint32_t reg = CT_VK_FIRST_REG;
  add_source(s, &s->k->x);
  if (s->k->times.rows) add_source(s, &s->k->times);
  if (s->k->less.rows) {
    ct_vk_keep(&s->k->less, &s->less.keep);
    s->less.tensor = ct_vk_tensor(&s->v, &s->k->less, s->less.keep, false);
  }
  const uint32_t out_words = ct_vk_made(&s->v, &s->k->y, &s->y);
  const uint32_t too_words = ct_vk_made(&s->v, &s->k->too, &s->too);
  s->temp = ct_reg_tensor(l, "sums", reg, TEMPS);
  reg += TEMPS;
  /* Groups come in short loops: registers that come round in a pass leave no passes over. */
  const unsigned loads = s->groups ? MOST_BLOCKS : LOADS;
  for (unsigned i = 0; i < s->sources; ++i, reg += loads)
    s->loads[i] = ct_reg_ring(l, "loads", reg, loads);
  s->less_reg = ct_reg_ring(l, "row", reg++, 1);
  if (s->segments > 1) s->sums = ct_reg_ring(l, "tile of sums", reg++, 1);
  s->result = ct_reg_ring(l, "results", reg, lean || s->groups ? 1 : 2);
  ct_vk_carriers(&s->v, CT_VK_FIRST_REG);
  const uint32_t slots = s->v.room->group && !lean ? 2 : 1; /* one member's, the next one's */
  s->sum_words = ct_spm_ring(l, "tile of sums", CT_F32_TILE_UNITS, slots);
  s->out_words = ct_spm_ring(l, "out", out_words > too_words ? out_words : too_words, slots);
  s->less_words = ct_spm_ring(l, "row", CT_F32_ROW_UNITS, s->groups ? 2 : slots);
  const uint64_t left = ct_vk_left(&s->v);
  s->slots = !lean && left >= 2 * (uint64_t)s->block_words ? 2 : 1;
  s->blocks = 1;
  if (!lean && left >= (uint64_t)MOST_BLOCKS * s->slots * s->block_words) s->blocks = MOST_BLOCKS;
  if (s->groups) {
    s->groups = ct_groups_at_once(ct_tiles(s->k->x.rows));
    s->slots = 2;
  }
  if (s->together) s->slots = !lean && left >= 2 * (uint64_t)s->segment * s->block_words ? 2 : 1;
  s->words = ct_spm_ring(l, "in", s->block_words * blocks_of_slot(s), s->slots);
}

static int check(struct sum *s) {
  const struct ct_sum_rows *k = s->k;
  int err = ct_vk_check(&s->v, &k->x, "x", k->x.rows, k->x.cols);
  if (!err && k->times.rows)
    err = ct_vk_check(&s->v, &k->times, "the factor", k->x.rows, k->x.cols);
  if (!err && k->less.rows) err = ct_vk_check(&s->v, &k->less, "what is taken away", 1, k->x.cols);
  if (err) return err;
  s->segment = k->segment ? k->segment : k->x.rows;
  if (k->x.rows % s->segment)
    return ct_why(s->v.why, CT_ERR_ARG, "%s: %u rows in segments of %u", s->v.name, k->x.rows,
                  s->segment);
  s->segments = k->x.rows / s->segment;
  if ((k->x.groups.reg && s->segments > 1) || k->times.groups.reg)
    return ct_why(s->v.why, CT_ERR_ARG, "%s: groups in segments, or of a factor", s->v.name);
  err = ct_vk_check(&s->v, &k->y, "y", s->segments, k->x.cols);
  const bool alone = !k->times.rows && !k->less.rows && !k->squares;
  if ((k->zeros && (!alone || !k->too.rows)) || (k->magnitudes && !alone))
    return ct_why(s->v.why, CT_ERR_ARG, "%s: magnitudes are counted or summed alone", s->v.name);
  if (err || !k->too.rows) return err;
  if (k->segment || !(k->times.rows || k->zeros))
    return ct_why(s->v.why, CT_ERR_ARG, "%s: two of them are of all rows of two matrices",
                  s->v.name);
  return ct_vk_check(&s->v, &k->too, "the second sum", 1, k->x.cols);
}

static void member(void *kernel, uint32_t i) {
  (void)i;
  all_planes(kernel);
}

static int make(const struct ct_sum_rows *k, const struct ct_room *room, bool lean,
                struct ct_codes *codes, const struct ct_why *why) {
  struct sum s = {.k = k};
  int err = ct_vk_start(&s.v, "a sum of rows", room, why);
  if (err) return err;
  err = check(&s);
  if (err) {
    ct_lower_drop(s.v.l);
    return err;
  }
  place(&s, lean);
  ct_members(s.v.l, member, &s);
  return ct_vk_end(&s.v, codes);
}

int ct_kernel_sum_rows(const struct ct_sum_rows *k, const struct ct_room *room,
                       struct ct_codes *codes, const struct ct_why *why) {
  *codes = (struct ct_codes){NULL, 0};
  const int err = make(k, room, false, codes, why);
  return err == CT_ERR_NO_SPACE ? make(k, room, true, codes, why) : err;
}
