/* SPDX-License-Identifier: Apache-2.0 */
/* Records to compressed groups and back: what comes back is what the codec says, whatever size and
 * window, and no page is left in use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_act.h"
#include "ct_queue.h"
#include "ct_device.h"
#include "kernel_bed.h"

enum { PAGES = 256, PAGE = 4096 };

struct arena {
  struct kbed bed;
  uint64_t at;
};

static uint32_t reg(struct kbed *b, uint32_t offset) {
  uint32_t value;
  assert_int_equal(ct_reg_read(b->dev, ct_queue_reg(CT_TRAINING, offset), &value), CT_OK);
  return value;
}

static void set_reg(struct kbed *b, uint32_t offset, uint32_t value) {
  assert_int_equal(ct_reg_write(b->dev, ct_queue_reg(CT_TRAINING, offset), value), CT_OK);
}

static void open_arena(struct arena *a, const char *uri) {
  uint64_t addr;
  kb_open(&a->bed, uri, 5);
  assert_int_equal(ct_mem_alloc(a->bed.dev, (uint64_t)(PAGES + 1) * PAGE, &addr), CT_OK);
  a->at = (addr + PAGE - 1) / PAGE * PAGE;
  set_reg(&a->bed, CT_CREG_ARENA_BASE, (uint32_t)(a->at / 16));
  set_reg(&a->bed, CT_CREG_ARENA_PAGES, PAGES);
}

static uint8_t *bytes_of(const struct kbed *b, const struct ct_mat *m, enum ct_keep keep) {
  return b->mem + (size_t)16 * (m->keep[keep].at + (m->keep[keep].reg == 2 ? 100 : 0));
}

static void draw_tile(ct_rng *rng, uint8_t *record) {
  struct ct_act_block b[CT_ACT_BLOCKS];
  const unsigned spread = (unsigned)ct_rng_below(rng, 5), dense = (unsigned)ct_rng_below(rng, 101);
  for (unsigned i = 0; i < CT_ACT_BLOCKS; ++i) {
    b[i].e = (uint8_t)(120 + ct_rng_below(rng, 1 + spread));
    for (unsigned k = 0; k < 16; ++k)
      b[i].q[k] = (int8_t)(ct_rng_percent(rng, dense) ? (int)ct_rng_below(rng, 255) - 127 : 0);
  }
  ct_act_to_record(b, record);
}

static void run(struct kbed *b, const struct ct_pack *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  if (ct_kernel_pack(k, &room, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  kb_run(b, &codes, window);
}

static struct ct_seat draw_index(struct kbed *b, uint32_t units) {
  const struct ct_seat seat = {1, b->used};
  for (uint32_t u = 0; u < units; ++u)
    b->out[b->used++] = true;
  return seat;
}

static void one(struct arena *a, uint32_t rows, uint32_t cols, uint32_t window) {
  struct kbed *b = &a->bed;
  const enum ct_keep keep = ct_rng_percent(&b->rng, 50) ? CT_KEEP_ROWS : CT_KEEP_SQUARE;
  const uint8_t bound =
      ct_rng_percent(&b->rng, 40) ? 0 : (uint8_t)(118 + ct_rng_below(&b->rng, 12));
  kb_clear(b);
  const struct ct_mat x = kb_mat(b, rows, cols, 1u << keep, false);
  const struct ct_mat y = kb_mat(b, rows, cols, 1u << keep, true);
  const uint32_t units = ct_pack_units(rows, cols);
  const uint32_t tiles = ct_tiles(rows) * ct_tiles(cols);
  uint8_t *from = bytes_of(b, &x, keep), *to = bytes_of(b, &y, keep);
  for (uint32_t t = 0; t < tiles; ++t)
    draw_tile(&b->rng, from + (size_t)272 * t);
  struct ct_pack k = {.mat = x, .index = draw_index(b, units), .n1_reg = KB_NUMBER};
  b->number[0] = (uint32_t)bound << 4;
  run(b, &k, window);
  assert_true(reg(b, CT_CREG_ARENA_HELD) > 0);
  k.mat = y;
  k.back = true;
  for (unsigned last = 0; last < 2; ++last) { /* read, and read once more */
    k.free = last == 1;
    memset(to, 0xa5, (size_t)272 * tiles);
    run(b, &k, window);
    for (uint32_t t = 0; t < tiles; ++t) {
      struct ct_act_block want[CT_ACT_BLOCKS];
      uint8_t record[CT_ACT_TILE_BYTES];
      ct_act_from_record(want, from + (size_t)272 * t);
      for (unsigned i = 0; i < CT_ACT_BLOCKS; ++i)
        ct_act_round(&want[i], bound);
      ct_act_to_record(want, record);
      if (memcmp(record, to + (size_t)272 * t, 272) != 0)
        fail_msg("%u x %u, window %u: tile %u of %u", rows, cols, window, t, tiles);
    }
  }
  assert_in_range(reg(b, CT_CREG_ARENA_HELD), 0, 1);
}

static void sizes(void **state) {
  (void)state;
  struct arena a;
  open_arena(&a, "emu:");
  for (uint32_t tiles = 1; tiles < 40; ++tiles)
    one(&a, 16 * tiles, 3, 2048);
  for (unsigned round = 0; round < 60; ++round)
    one(&a, 1 + ct_rng_below(&a.bed.rng, 600), 1 + ct_rng_below(&a.bed.rng, 70),
        round % 3 ? 4096 : 300);
  kb_close(&a.bed);
}

/* ---- Groups that other kernels read ---- */

enum { MOST_ROWS = 6 * 256, MOST_COLS = 40, CARRIERS = 1024 };

/* A matrix, its groups, and what is read beside it. */
struct grouped {
  struct ct_mat x, groups, other, less;
};

static struct ct_mat numbers(struct kbed *b, uint32_t rows, uint32_t cols) {
  const struct ct_mat m =
      kb_mat(b, rows, cols, ct_rng_percent(&b->rng, 50) ? KB_F32 : KB_ROWS, false);
  uint32_t *x = calloc((size_t)rows * cols, sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < (size_t)rows * cols; ++i)
    x[i] = kb_bits((float)ct_rng_below(&b->rng, 255) / 64 - 2);
  kb_put(b, &m, x);
  free(x);
  return m;
}

static struct grouped draw_grouped(struct kbed *b) {
  const uint32_t units = 1 + ct_rng_below(&b->rng, 6), rows = CT_GROUPS_TILES * CT_TILE * units,
                 cols = 1 + ct_rng_below(&b->rng, units > 4 ? 24 : MOST_COLS);
  struct grouped g;
  kb_clear(b);
  g.x = kb_mat(b, rows, cols, KB_ROWS, false);
  for (uint32_t t = 0; t < ct_tiles(rows) * ct_tiles(cols); ++t)
    draw_tile(&b->rng, bytes_of(b, &g.x, CT_KEEP_ROWS) + (size_t)272 * t);
  const struct ct_pack k = {
      .mat = g.x, .index = draw_index(b, ct_pack_units(rows, cols)), .n1_reg = KB_NUMBER};
  b->number[0] = 0;
  run(b, &k, 4096);
  g.groups = (struct ct_mat){.rows = rows, .cols = cols, .groups = k.index};
  g.other = numbers(b, rows, cols);
  g.less = numbers(b, 1, cols);
  return g;
}

/* So many words are enough, by what the compiler reckons. */
static uint32_t window_of(uint32_t tiles, uint32_t words_of_a_tile) {
  return 2 * ct_groups_at_once(tiles) * CT_GROUPS_TILES * words_of_a_tile + CARRIERS;
}

static uint32_t words_of(const struct ct_mat *m) {
  return m->keep[CT_KEEP_F32].reg ? CT_F32_TILE_UNITS : CT_TILE;
}

static void same(const struct kbed *b, const struct ct_mat *want, const struct ct_mat *got) {
  uint32_t *x = calloc((size_t)MOST_ROWS * MOST_COLS, sizeof *x),
           *y = calloc((size_t)MOST_ROWS * MOST_COLS, sizeof *y);
  assert_true(x && y);
  kb_get(b, want, x);
  kb_get(b, got, y);
  if (memcmp(x, y, (size_t)want->rows * want->cols * sizeof *x) != 0)
    fail_msg("of %u x %u it differs from records", want->rows, want->cols);
  free(x);
  free(y);
}

static void sum_run(struct kbed *b, const struct ct_sum_rows *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  if (ct_kernel_sum_rows(k, &room, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  kb_run(b, &codes, window);
}

/* Twice: only the second gives the pages back. */
static void sum_grouped(struct kbed *b) {
  const struct grouped g = draw_grouped(b);
  const bool times = ct_rng_percent(&b->rng, 70), too = times && ct_rng_percent(&b->rng, 70);
  struct ct_sum_rows k = {.x = g.x, .squares = ct_rng_percent(&b->rng, 30), .scale = 0.5f};
  struct ct_mat y[2], z[2] = {{.rows = 0}};
  for (unsigned i = 0; i < 2; ++i) {
    y[i] = kb_mat(b, 1, g.x.cols, KB_F32, true);
    if (too) z[i] = kb_mat(b, 1, g.x.cols, 1 + 2 * ct_rng_below(&b->rng, 4), true);
  }
  if (times) k.times = g.other;
  if (ct_rng_percent(&b->rng, 50)) k.less = g.less;
  k.y = y[0];
  k.too = z[0];
  sum_run(b, &k, 8192);
  k.y = y[1];
  k.too = z[1];
  for (unsigned last = 0; last < 2; ++last) {
    k.x = g.groups;
    k.x.free = last;
    sum_run(b, &k,
            window_of(ct_tiles(g.x.rows) * ct_tiles(g.x.cols),
                      CT_TILE + (times ? words_of(&g.other) : 0)));
    same(b, &y[0], &y[1]);
    if (too) same(b, &z[0], &z[1]);
    if (last) assert_in_range(reg(b, CT_CREG_ARENA_HELD), 0, 1);
  }
}

static void tiles_run(struct kbed *b, const struct ct_tilewise *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  if (ct_kernel_tilewise(k, &room, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  kb_run(b, &codes, window);
}

/* x times the others where x is above 0, and what is taken from all rows. */
static void tiles_grouped(struct kbed *b) {
  const struct grouped g = draw_grouped(b);
  const unsigned keeps = 1 + 2 * (unsigned)ct_rng_below(&b->rng, 4);
  const struct ct_mat want = kb_mat(b, g.x.rows, g.x.cols, keeps, true),
                      got = kb_mat(b, g.x.rows, g.x.cols, keeps, true);
  struct ct_tilewise k = {.rows = g.x.rows, .cols = g.x.cols, .ins = 2, .ops = 2, .outs = 1};
  k.in[0] = (struct ct_tile_in){.mat = g.x, .spread = CT_SPREAD_NONE};
  k.in[1] = (struct ct_tile_in){.mat = g.other, .spread = CT_SPREAD_NONE};
  if (ct_rng_percent(&b->rng, 50)) {
    k.ins = 3;
    k.ops = 3;
    k.in[2] = (struct ct_tile_in){.mat = g.less, .spread = CT_SPREAD_ROWS};
  }
  k.op[0] = (struct ct_tile_op){.fn = CT_TILE_MUL, .a = 0, .b = 1};
  k.op[1] = (struct ct_tile_op){.fn = CT_TILE_SELECT, .a = k.ins, .b = 0};
  k.op[2] = (struct ct_tile_op){.fn = CT_TILE_SUB, .a = k.ins + 1, .b = 2};
  k.out[0] = (struct ct_tile_out){.value = k.ins + k.ops - 1, .mat = want};
  tiles_run(b, &k, 8192);
  k.out[0].mat = got;
  uint32_t words = CT_TILE + words_of(&g.other);
  for (unsigned keep = 0; keep < CT_KEEPS; ++keep)
    words += keeps >> keep & 1 ? keep == CT_KEEP_F32 ? CT_F32_TILE_UNITS : CT_TILE : 0;
  for (unsigned last = 0; last < 2; ++last) {
    k.in[0].mat = g.groups;
    k.in[0].mat.free = last;
    tiles_run(b, &k, window_of(ct_tiles(g.x.rows) * ct_tiles(g.x.cols), words));
    same(b, &want, &got);
    if (last) assert_in_range(reg(b, CT_CREG_ARENA_HELD), 0, 1);
  }
}

static void groups_are_read(void **state) {
  (void)state;
  struct arena a;
  open_arena(&a, "emu:");
  for (unsigned round = 0; round < 40; ++round) {
    sum_grouped(&a.bed);
    tiles_grouped(&a.bed);
  }
  kb_close(&a.bed);
}

/* ---- Groups that other kernels store ---- */

static void check_rounded(const struct kbed *b, const struct ct_mat *records,
                          const struct ct_mat *got, enum ct_keep keep, uint8_t bound) {
  for (uint32_t t = 0; t < ct_tiles(got->rows) * ct_tiles(got->cols); ++t) {
    struct ct_act_block want[CT_ACT_BLOCKS];
    uint8_t record[CT_ACT_TILE_BYTES];
    ct_act_from_record(want, bytes_of(b, records, keep) + (size_t)272 * t);
    for (unsigned i = 0; i < CT_ACT_BLOCKS; ++i)
      ct_act_round(&want[i], bound);
    ct_act_to_record(want, record);
    if (memcmp(record, bytes_of(b, got, keep) + (size_t)272 * t, sizeof record) != 0)
      fail_msg("%u x %u: tile %u of what was in groups differs", got->rows, got->cols, t);
  }
}

/* Of what such a kernel has stored: what the codec makes of the same in records. Pages are given
 * back. */
static void check_stored(struct kbed *b, const struct ct_mat *records, const struct ct_mat *stored,
                         uint8_t bound) {
  const enum ct_keep keep = stored->packed;
  const struct ct_mat y = kb_mat(b, stored->rows, stored->cols, 1u << keep, true);
  const struct ct_pack k = {
      .mat = y, .index = stored->groups, .back = true, .free = true, .n1_reg = KB_NUMBER};
  run(b, &k, 4096);
  check_rounded(b, records, &y, keep, bound);
}

/* An output in records, for comparison; and one that is stored as groups, besides other ways or in
 * no other. */
struct stored {
  struct ct_mat records, groups;
  uint8_t bound;
};

static struct stored draw_stored(struct kbed *b, uint32_t rows, uint32_t cols) {
  const enum ct_keep keep = ct_rng_percent(&b->rng, 50) ? CT_KEEP_ROWS : CT_KEEP_SQUARE;
  struct stored s = {.records = kb_mat(b, rows, cols, 1u << keep, true),
                     .groups = kb_mat(b, rows, cols, (unsigned)ct_rng_below(&b->rng, 8), true)};
  s.groups.packed = keep;
  s.groups.groups = draw_index(b, ct_pack_units(rows, cols));
  s.groups.bound_reg = KB_NUMBER;
  s.bound = ct_rng_percent(&b->rng, 40) ? 0 : (uint8_t)(126 + ct_rng_below(&b->rng, 8));
  b->number[0] = (uint32_t)s.bound << 4;
  return s;
}

static void same_ways(const struct kbed *b, const struct stored *s) {
  const enum ct_keep keep = s->groups.packed;
  const size_t bytes = (size_t)272 * ct_tiles(s->records.rows) * ct_tiles(s->records.cols);
  if (s->groups.keep[keep].reg)
    assert_memory_equal(bytes_of(b, &s->records, keep), bytes_of(b, &s->groups, keep), bytes);
}

/* x times others; two of its results are groups. */
static void tiles_stored(struct kbed *b) {
  const uint32_t units = 1 + ct_rng_below(&b->rng, 4), rows = CT_GROUPS_TILES * CT_TILE * units,
                 cols = 1 + ct_rng_below(&b->rng, MOST_COLS);
  kb_clear(b);
  struct ct_tilewise k = {.rows = rows, .cols = cols, .ins = 2, .ops = 2, .outs = 2};
  struct stored s[2];
  for (unsigned i = 0; i < 2; ++i) {
    s[i] = draw_stored(b, rows, cols);
    k.in[i] = (struct ct_tile_in){.mat = numbers(b, rows, cols), .spread = CT_SPREAD_NONE};
    k.out[i] = (struct ct_tile_out){.value = 2 + i, .mat = s[i].records};
  }
  if (ct_rng_percent(&b->rng, 50))
    k.in[1] = (struct ct_tile_in){.mat = numbers(b, 1, cols), .spread = CT_SPREAD_ROWS};
  k.op[0] = (struct ct_tile_op){.fn = CT_TILE_MUL, .a = 0, .b = 1};
  k.op[1] = (struct ct_tile_op){.fn = CT_TILE_RELU, .a = 2};
  if (ct_rng_percent(&b->rng, 50)) { /* a chain, of which two tiles go together */
    k.out[0] = k.out[1];
    s[0] = s[1];
    k.outs = 1;
  }
  tiles_run(b, &k, 8192);
  for (unsigned i = 0; i < k.outs; ++i)
    k.out[i].mat = s[i].groups;
  tiles_run(b, &k, 8192);
  for (unsigned i = 0; i < k.outs; ++i)
    same_ways(b, &s[i]);
  b->number[0] = (uint32_t)s[1].bound << 4;
  for (unsigned i = 0; i < k.outs; ++i)
    check_stored(b, &s[i].records, &s[i].groups, s[1].bound);
  assert_in_range(reg(b, CT_CREG_ARENA_HELD), 0, 1);
}

static bool conv_run(struct kbed *b, const struct ct_conv *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  const int err = ct_kernel_conv(k, &room, &codes, &(struct ct_why){why, sizeof why});
  if (err == CT_ERR_NO_SPACE) return false;
  if (err) fail_msg("%s", why);
  kb_run(b, &codes, window);
  return true;
}

static struct ct_mat drawn_records(struct kbed *b, uint32_t rows, uint32_t cols,
                                   enum ct_keep keep) {
  const struct ct_mat m = kb_mat(b, rows, cols, 1u << keep, false);
  uint32_t *x = calloc((size_t)rows * cols, sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < (size_t)rows * cols; ++i)
    x[i] = kb_bits((float)ct_rng_below(&b->rng, 127) / 64 - 1);
  kb_put(b, &m, x);
  free(x);
  return m;
}

/* Returns whether it had enough room for groups. */
static bool conv_stored(struct kbed *b, uint32_t window) {
  static const uint32_t sizes[][3] = {{1, 16, 16}, {4, 8, 8}, {3, 16, 32}, {2, 32, 8}, {16, 4, 4}};
  const uint32_t *size = sizes[ct_rng_below(&b->rng, 5)], kernel = 1 + 2 * ct_rng_below(&b->rng, 2),
                 stride = 1 + ct_rng_below(&b->rng, 2);
  const uint32_t in = 1 + ct_rng_below(&b->rng, 20), out = 1 + ct_rng_below(&b->rng, 40);
  const uint32_t rows = size[0] * size[1] * size[2], pad = kernel / 2;
  struct ct_tilewise after = {.rows = rows, .cols = out, .ins = 2, .ops = 1, .outs = 1};
  struct ct_conv k = {.after = &after,
                      .shape = {.images = size[0],
                                .h = size[1] * stride,
                                .w = size[2] * stride,
                                .oh = size[1],
                                .ow = size[2],
                                .ky = kernel,
                                .kx = kernel,
                                .sy = stride,
                                .sx = stride,
                                .dy = 1,
                                .dx = 1,
                                .groups = 1,
                                .top = (int32_t)pad,
                                .left = (int32_t)pad}};
  kb_clear(b);
  const struct stored s = draw_stored(b, rows, out);
  k.x = drawn_records(b, rows * stride * stride, in, CT_KEEP_ROWS);
  k.weights = drawn_records(b, kernel * kernel * ct_tiles(in) * CT_TILE, out, CT_KEEP_SQUARE);
  k.y = (struct ct_mat){.rows = rows, .cols = out};
  const bool row = ct_rng_percent(&b->rng, 50); /* else a chain does without loads */
  after.in[1] = (struct ct_tile_in){.mat = numbers(b, row ? 1 : rows, out),
                                    .spread = row ? CT_SPREAD_ROWS : CT_SPREAD_NONE};
  after.op[0] = (struct ct_tile_op){.fn = CT_TILE_ADD, .a = 0, .b = 1};
  after.out[0] = (struct ct_tile_out){.value = 2, .mat = s.records};
  if (!conv_run(b, &k, 8192)) fail_msg("no room for a small convolution");
  after.out[0].mat = s.groups;
  if (!conv_run(b, &k, window)) return false;
  same_ways(b, &s);
  check_stored(b, &s.records, &s.groups, s.bound);
  assert_in_range(reg(b, CT_CREG_ARENA_HELD), 0, 1);
  return true;
}

static void groups_are_stored(void **state) {
  (void)state;
  static const uint32_t windows[] = {1200, 3000, 8192};
  unsigned fit = 0;
  struct arena a;
  open_arena(&a, "emu:");
  for (unsigned round = 0; round < 60; ++round) {
    tiles_stored(&a.bed);
    fit += conv_stored(&a.bed, windows[round % 3]);
  }
  assert_in_range(fit, 30, 59); /* a small window is no place for an index unit */
  kb_close(&a.bed);
}

/* ---- Groups that are read, or of which more is made, on the way ---- */

static bool gradient_run(struct kbed *b, const struct ct_conv *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  const int err = ct_kernel_conv_input(k, &room, &codes, &(struct ct_why){why, sizeof why});
  if (err == CT_ERR_NO_SPACE) return false;
  if (err)
    fail_msg("%s (%u images, %u to %u channels, kernel %u, window %u)", why, k->shape.images,
             k->y.cols, k->x.cols, k->shape.ky, window);
  kb_run(b, &codes, window);
  return true;
}

static void same_bytes(const struct kbed *b, const struct ct_mat *x, const struct ct_mat *y,
                       const char *what) {
  for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
    const size_t units = (size_t)ct_mat_units(x->rows, x->cols, (enum ct_keep)keep);
    if (x->keep[keep].reg && memcmp(bytes_of(b, x, (enum ct_keep)keep),
                                    bytes_of(b, y, (enum ct_keep)keep), 16 * units) != 0)
      fail_msg("%s of %u x %u differs from what two kernels make", what, x->rows, x->cols);
  }
}

/* What is in the groups, or a tile program of it: a chain, or not. */
static struct ct_tilewise draw_made(struct kbed *b, const struct grouped *g) {
  struct ct_tilewise k = {.rows = g->x.rows, .cols = g->x.cols, .ins = 1, .outs = 1};
  const unsigned kind = (unsigned)ct_rng_below(&b->rng, 3);
  k.in[0] = (struct ct_tile_in){.mat = g->x, .spread = CT_SPREAD_NONE};
  if (kind == 0) return k;
  k.ins = 2;
  k.ops = 2;
  k.in[1] = (struct ct_tile_in){.mat = g->less, .spread = CT_SPREAD_ROWS};
  k.op[0] = (struct ct_tile_op){.fn = CT_TILE_MUL, .a = 0, .b = 1};
  k.op[1] = (struct ct_tile_op){.fn = kind == 1 ? CT_TILE_RELU : CT_TILE_SELECT, .a = 2, .b = 0};
  k.out[0].value = 3;
  return k;
}

/* The gradient of a convolution's input, where `seen` is above 0, and another one added. */
struct gradient {
  struct ct_conv conv;
  struct ct_tilewise after;
};

static void draw_gradient(struct kbed *b, const struct grouped *g, struct gradient *t) {
  const uint32_t kernel = 1 + 2 * ct_rng_below(&b->rng, 2), out = 1 + ct_rng_below(&b->rng, 20);
  const uint32_t images = g->x.rows / 256, size = 16;
  t->after =
      (struct ct_tilewise){.rows = g->x.rows, .cols = g->x.cols, .ins = 3, .ops = 1, .outs = 1};
  t->after.op[0] = (struct ct_tile_op){.fn = CT_TILE_SELECT, .a = 0, .b = 1};
  t->after.out[0].value = 3;
  if (ct_rng_percent(&b->rng, 50)) {
    t->after.in[2] = (struct ct_tile_in){.mat = g->other, .spread = CT_SPREAD_NONE};
    t->after.op[1] = (struct ct_tile_op){.fn = CT_TILE_ADD, .a = 3, .b = 2};
    t->after.ops = 2;
    t->after.out[0].value = 4;
  } else {
    t->after.ins = 2;
    t->after.out[0].value = 2;
  }
  for (unsigned i = 0; i < t->after.ops; ++i) /* values behind the inputs */
    t->after.op[i].a = i ? t->after.ins : 0;
  t->conv = (struct ct_conv){.after = &t->after,
                             .shape = {.images = images,
                                       .h = size,
                                       .w = size,
                                       .oh = size,
                                       .ow = size,
                                       .ky = kernel,
                                       .kx = kernel,
                                       .sy = 1,
                                       .sx = 1,
                                       .dy = 1,
                                       .dx = 1,
                                       .groups = 1,
                                       .top = (int32_t)kernel / 2,
                                       .left = (int32_t)kernel / 2}};
  t->conv.x = (struct ct_mat){.rows = g->x.rows, .cols = g->x.cols};
  t->conv.y = drawn_records(b, g->x.rows, out, CT_KEEP_SQUARE);
  t->conv.weights =
      drawn_records(b, kernel * kernel * ct_tiles(g->x.cols) * CT_TILE, out, CT_KEEP_SQUARE);
}

/* Returns how many windows had enough room. */
static unsigned made_on_the_way(struct kbed *b) {
  static const uint32_t windows[] = {2000, 6000, 16384};
  const struct grouped g = draw_grouped(b);
  const bool rows = ct_rng_percent(&b->rng, 50), stored = ct_rng_percent(&b->rng, 60);
  struct ct_made made = {.k = draw_made(b, &g), .stored = stored};
  struct ct_mat seen[2], dx[2];
  struct gradient t;
  const unsigned ways = 1 + (unsigned)ct_rng_below(&b->rng, 7);
  unsigned fit = 0;
  for (unsigned i = 0; i < 2; ++i) {
    seen[i] = kb_mat(b, g.x.rows, g.x.cols, rows || made.k.ops == 0 ? KB_ROWS : KB_SQUARE, true);
    dx[i] = kb_mat(b, g.x.rows, g.x.cols, ways, true);
  }
  draw_gradient(b, &g, &t);
  made.k.out[0].mat = seen[0];
  tiles_run(b, &made.k, 8192);
  t.after.in[1] = (struct ct_tile_in){.mat = seen[0], .spread = CT_SPREAD_NONE};
  t.after.out[0].mat = dx[0];
  if (!gradient_run(b, &t.conv, 16384)) fail_msg("no room for a small gradient");
  made.k.in[0].mat = g.groups;
  made.k.out[0].mat = seen[1];
  t.after.in[1].mat = seen[1];
  t.after.out[0].mat = dx[1];
  t.conv.made = &made;
  for (unsigned w = 0; w < 3; ++w) {
    made.k.in[0].mat.free = w == 2;
    if (!gradient_run(b, &t.conv, windows[w])) continue;
    same_bytes(b, &dx[0], &dx[1], "a gradient");
    if (stored && made.k.ops) same_bytes(b, &seen[0], &seen[1], "what is made on the way");
    if (stored && !made.k.ops) check_rounded(b, &g.x, &seen[1], CT_KEEP_ROWS, 0);
    ++fit;
    if (w == 2) assert_in_range(reg(b, CT_CREG_ARENA_HELD), 0, 1);
  }
  if (reg(b, CT_CREG_ARENA_HELD) > 1) set_reg(b, CT_CREG_ARENA_PAGES, PAGES);
  return fit;
}

static void more_is_made(void **state) {
  (void)state;
  unsigned fit = 0;
  struct arena a;
  open_arena(&a, "emu:");
  for (unsigned round = 0; round < 30; ++round)
    fit += made_on_the_way(&a.bed);
  printf("  %u of 90 windows had room\n", fit);
  assert_in_range(fit, 30, 89);
  kb_close(&a.bed);
}

/* ---- Pixels that are read in groups ---- */

static bool weights_run(struct kbed *b, const struct ct_conv *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  const int err = ct_kernel_conv_weights(k, &room, &codes, &(struct ct_why){why, sizeof why});
  if (err == CT_ERR_NO_SPACE) return false;
  if (err)
    fail_msg("%s (%u images, %u to %u channels, kernel %u, window %u)", why, k->shape.images,
             k->x.cols, k->y.cols, k->shape.ky, window);
  kb_run(b, &codes, window);
  return true;
}

/* Images of 16 x 16, or of one pixel. */
static struct ct_window_shape draw_shape(struct kbed *b, uint32_t rows) {
  const uint32_t size = ct_rng_percent(&b->rng, 20) ? 1 : 16, stride = size > 1 ? 2 : 1;
  const uint32_t kernel = size > 1 && ct_rng_percent(&b->rng, 40) ? 3 : 1;
  const uint32_t s = ct_rng_percent(&b->rng, 70) ? stride : 1, out = (size + s - 1) / s;
  return (struct ct_window_shape){.images = rows / (size * size),
                                  .h = size,
                                  .w = size,
                                  .oh = out,
                                  .ow = out,
                                  .ky = kernel,
                                  .kx = kernel,
                                  .sy = s,
                                  .sx = s,
                                  .dy = 1,
                                  .dx = 1,
                                  .groups = 1,
                                  .top = (int32_t)kernel / 2,
                                  .left = (int32_t)kernel / 2};
}

/* Returns how many windows had enough room. The records may be stored, too. */
static unsigned pixels_in_groups(struct kbed *b) {
  static const uint32_t windows[] = {2000, 6000, 16384};
  const struct grouped g = draw_grouped(b);
  struct ct_conv k = {.shape = draw_shape(b, g.x.rows), .x = g.x};
  const uint32_t out = 1 + ct_rng_below(&b->rng, 40);
  struct ct_made made = {.k = {.rows = g.x.rows, .cols = g.x.cols, .ins = 1, .outs = 1},
                         .stored = ct_rng_percent(&b->rng, 60)};
  struct ct_mat dw[2];
  unsigned fit = 0;
  for (unsigned i = 0; i < 2; ++i)
    dw[i] = kb_mat(b, k.shape.ky * k.shape.kx * ct_tiles(g.x.cols) * CT_TILE, out, KB_F32, true);
  k.y = drawn_records(b, k.shape.images * k.shape.oh * k.shape.ow, out, CT_KEEP_SQUARE);
  k.weights = dw[0];
  if (!weights_run(b, &k, 16384)) fail_msg("no room for a small gradient");
  made.k.in[0].mat = g.groups;
  k.x = made.k.out[0].mat = kb_mat(b, g.x.rows, g.x.cols, KB_ROWS, true);
  k.weights = dw[1];
  k.made = &made;
  for (unsigned w = 0; w < 3; ++w) {
    made.k.in[0].mat.free = w == 2;
    if (!weights_run(b, &k, windows[w])) continue;
    same_bytes(b, &dw[0], &dw[1], "a gradient");
    if (made.stored) check_rounded(b, &g.x, &k.x, CT_KEEP_ROWS, 0);
    ++fit;
    if (w == 2) assert_in_range(reg(b, CT_CREG_ARENA_HELD), 0, 1);
  }
  if (reg(b, CT_CREG_ARENA_HELD) > 1) set_reg(b, CT_CREG_ARENA_PAGES, PAGES);
  return fit;
}

static void pixels_are_read(void **state) {
  (void)state;
  unsigned fit = 0;
  struct arena a;
  open_arena(&a, "emu:");
  for (unsigned round = 0; round < 40; ++round)
    fit += pixels_in_groups(&a.bed);
  printf("  %u of 120 windows had room\n", fit);
  assert_in_range(fit, 40, 119);
  kb_close(&a.bed);
}

static void refused(void **state) {
  (void)state;
  struct arena a;
  open_arena(&a, "emu:");
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(4096), narrow = kb_room(200);
  struct ct_pack k = {.mat = kb_mat(&a.bed, 40, 20, KB_F32, false), .index = {1, 0}};
  const struct ct_why to = {why, sizeof why};
  assert_int_equal(ct_kernel_pack(&k, &room, &codes, &to), CT_ERR_ARG);
  assert_string_equal(why, "packing tiles: FP32 has no groups");
  k.mat = kb_mat(&a.bed, 40, 20, KB_ROWS, false);
  assert_int_equal(ct_kernel_pack(&k, &narrow, &codes, &to), CT_ERR_NO_SPACE);
  k.index.reg = KB_ARGS + 1;
  assert_int_equal(ct_kernel_pack(&k, &room, &codes, &to), CT_ERR_ARG);
  kb_close(&a.bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes),
                                     cmocka_unit_test(groups_are_read),
                                     cmocka_unit_test(groups_are_stored),
                                     cmocka_unit_test(more_is_made),
                                     cmocka_unit_test(pixels_are_read),
                                     cmocka_unit_test(refused)};
  ct_tb_seed();
  return cmocka_run_group_tests_name("packing", tests, NULL, NULL);
}
