/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of time on kernels of networks: layers of a ResNet and what stands around them take as
 * many cycles on the simulated cores as it says.
 */
#include <stdio.h>
#include <string.h>

#include "ct_kernel.h"
#include "ct_queue.h"
#include "cycles_bed.h"
#include "harness/ct_tb.h"

/* Ways of keeping; units of scratch, in front of the matrices. */
enum { F32 = 1, ROWS = 2, SQUARE = 4, SCRATCH = 300000 };

static struct ct_mat matrix(uint32_t *used, uint32_t rows, uint32_t cols, unsigned keeps) {
  struct ct_mat m = {.rows = rows, .cols = cols};
  for (unsigned k = 0; k < CT_KEEPS; ++k) {
    if (!(keeps >> k & 1)) continue;
    m.keep[k] = (struct ct_seat){1, *used};
    *used += (uint32_t)ct_mat_units(rows, cols, (enum ct_keep)k);
  }
  return m;
}

static struct ct_room room_of(const struct cycles_bed *b) {
  return (struct ct_room){.spm_words = b->spm_words,
                          .args = 1,
                          .scratch = {.reg = 1, .at = 0},
                          .scratch_units = SCRATCH};
}

static void run(struct cycles_bed *b, const char *name, int err, const char *why,
                struct ct_codes *codes) {
  if (err) fail_msg("%s: %s", name, why);
  const uint32_t args[CT_NUM_ARGS] = {b->unit};
  cycles_compare(b, name, codes, args);
  ct_codes_free(codes);
}

/* ---- Convolutions ---- */

struct layer {
  uint32_t images, size, in, out, k, stride;
};
enum pass { FORWARD, INPUT, WEIGHTS, PASSES };

/* Forward: a bias and ReLU, kept as HBFP8. Gradients: in FP32. */
static void fill_after(struct ct_tilewise *after, uint32_t *used, enum pass pass) {
  after->ins = after->outs = 1;
  after->out[0].mat = matrix(used, after->rows, after->cols, pass == FORWARD ? ROWS : F32);
  if (pass != FORWARD) return;
  after->in[1].mat = matrix(used, 1, after->cols, F32);
  after->in[1].spread = CT_SPREAD_ROWS;
  after->ins = after->ops = 2;
  after->op[0] = (struct ct_tile_op){.fn = CT_TILE_ADD, .a = 0, .b = 1};
  after->op[1] = (struct ct_tile_op){.fn = CT_TILE_RELU, .a = 2};
  after->out[0].value = 3;
}

static void convolution(struct cycles_bed *b, const struct layer *l, enum pass pass) {
  static int (*const make[PASSES])(const struct ct_conv *, const struct ct_room *,
                                   struct ct_codes *, const struct ct_why *) = {
      ct_kernel_conv, ct_kernel_conv_input, ct_kernel_conv_weights};
  static const char *const of[PASSES] = {"forward", "input", "weights"};
  char why[256] = "", name[64];
  struct ct_codes codes;
  struct ct_tilewise after = {0};
  const uint32_t o = (l->size + l->stride - 1) / l->stride;
  struct ct_conv c = {.shape = {.images = l->images,
                                .h = l->size,
                                .w = l->size,
                                .oh = o,
                                .ow = o,
                                .ky = l->k,
                                .kx = l->k,
                                .sy = l->stride,
                                .sx = l->stride,
                                .dy = 1,
                                .dx = 1,
                                .groups = 1,
                                .top = (int32_t)l->k / 2,
                                .left = (int32_t)l->k / 2},
                      .after = &after};
  uint32_t used = SCRATCH;
  c.x = matrix(&used, l->images * l->size * l->size, l->in, pass == INPUT ? 0 : ROWS);
  c.y = matrix(&used, l->images * o * o, l->out, pass == FORWARD ? 0 : SQUARE);
  c.weights =
      matrix(&used, l->k * l->k * ct_tiles(l->in) * 16, l->out, pass == WEIGHTS ? F32 : SQUARE);
  after.rows = pass == FORWARD ? c.y.rows : c.x.rows;
  after.cols = pass == FORWARD ? c.y.cols : c.x.cols;
  fill_after(&after, &used, pass);
  const struct ct_room room = room_of(b);
  const int err = make[pass](&c, &room, &codes, &(struct ct_why){why, sizeof why});
  snprintf(name, sizeof name, "%ux%u %u-%u, %ux%u/%u %s", l->size, l->size, l->in, l->out, l->k,
           l->k, l->stride, of[pass]);
  run(b, name, err, why, &codes);
}

/* ---- What stands around them ---- */

static void pooling(struct cycles_bed *b, enum ct_pool_kind kind) {
  char why[256] = "";
  struct ct_codes codes;
  uint32_t used = SCRATCH;
  struct ct_pool p = {.kind = kind,
                      .shape = {.images = 1,
                                .h = 16,
                                .w = 16,
                                .oh = 8,
                                .ow = 8,
                                .ky = 2,
                                .kx = 2,
                                .sy = 2,
                                .sx = 2,
                                .dy = 1,
                                .dx = 1}};
  p.x = matrix(&used, 256, 16, F32);
  p.y = matrix(&used, 64, 16, F32);
  p.dx = matrix(&used, 256, 16, F32);
  p.dy = matrix(&used, 64, 16, F32);
  const struct ct_room room = room_of(b);
  const struct ct_why w = {why, sizeof why};
  run(b, "pooling", ct_kernel_pool(&p, &room, &codes, &w), why, &codes);
  run(b, "pooling, backward", ct_kernel_pool_back(&p, &room, &codes, &w), why, &codes);
}

static void softmax(struct cycles_bed *b) {
  char why[256] = "";
  struct ct_codes codes;
  uint32_t used = SCRATCH;
  struct ct_softmax s = {0};
  s.x = matrix(&used, 64, 10, F32);
  s.targets = matrix(&used, 64, 10, ROWS);
  s.loss = matrix(&used, 1, 1, F32);
  s.dx = matrix(&used, 64, 10, SQUARE);
  const struct ct_room room = room_of(b);
  const int err = ct_kernel_softmax(&s, &room, &codes, &(struct ct_why){why, sizeof why});
  run(b, "softmax and loss", err, why, &codes);
}

static void columns(struct cycles_bed *b) {
  char why[256] = "";
  struct ct_codes codes;
  uint32_t used = SCRATCH;
  struct ct_sum_cols s = {.scale = 1, .squares = true};
  s.x = matrix(&used, 64, 40, F32);
  s.less = matrix(&used, 64, 1, F32);
  s.y = matrix(&used, 64, 1, F32);
  const struct ct_room room = room_of(b);
  const int err = ct_kernel_sum_cols(&s, &room, &codes, &(struct ct_why){why, sizeof why});
  run(b, "sum of columns", err, why, &codes);
}

static void moving(struct cycles_bed *b, bool turn) {
  char why[256] = "";
  struct ct_codes codes;
  uint32_t used = SCRATCH;
  struct ct_move m = {.turn = turn, .n = {1, 4, 20}, .from = {0, 20, 1}, .to = {0, 40, 1}};
  m.x = matrix(&used, 80, 40, F32);
  m.y = matrix(&used, 160, turn ? 20 : 40, F32);
  const struct ct_room room = room_of(b);
  const int err = ct_kernel_move(&m, &room, &codes, &(struct ct_why){why, sizeof why});
  run(b, turn ? "rows to columns" : "rows to other places", err, why, &codes);
}

static void gelu(struct cycles_bed *b) {
  char why[256] = "";
  struct ct_codes codes;
  uint32_t used = SCRATCH;
  struct ct_tilewise t = {.rows = 64, .cols = 32, .ins = 2, .ops = 2, .outs = 1};
  t.in[0].mat = matrix(&used, t.rows, t.cols, F32);
  t.in[1].mat = matrix(&used, t.rows, t.cols, ROWS);
  t.op[0] = (struct ct_tile_op){.fn = CT_TILE_ADD, .a = 0, .b = 1};
  t.op[1] = (struct ct_tile_op){.fn = CT_TILE_GELU, .a = 2};
  t.out[0].mat = matrix(&used, t.rows, t.cols, F32 | SQUARE);
  t.out[0].value = 3;
  const struct ct_room room = room_of(b);
  const int err = ct_kernel_tilewise(&t, &room, &codes, &(struct ct_why){why, sizeof why});
  run(b, "sum and GELU", err, why, &codes);
}

/* ---- Groups of compressed tiles ---- */

enum { PAGES = 64, PAGE = 4096 };

static void set_arena(struct cycles_bed *b) {
  uint64_t addr;
  assert_int_equal(ct_mem_alloc(b->dev, (uint64_t)(PAGES + 1) * PAGE, &addr), CT_OK);
  const uint32_t base = (uint32_t)((addr + PAGE - 1) / PAGE * PAGE / 16);
  assert_int_equal(ct_reg_write(b->dev, ct_queue_reg(CT_TRAINING, CT_CREG_ARENA_BASE), base),
                   CT_OK);
  assert_int_equal(ct_reg_write(b->dev, ct_queue_reg(CT_TRAINING, CT_CREG_ARENA_PAGES), PAGES),
                   CT_OK);
}

/* Records whose numbers all have so many bits; returns what four of them take. */
static uint32_t draw_records(struct cycles_bed *b, uint32_t at, uint32_t tiles, unsigned bits) {
  enum { RECORD = 272, GROUP_BITS = 18, TILE_BITS = 46 };
  uint8_t *x = test_malloc((size_t)tiles * RECORD);
  for (uint32_t t = 0; t < tiles; ++t) {
    memset(x + (size_t)t * RECORD, 133, 16);
    memset(x + (size_t)t * RECORD + 16, (1 << bits) - 1, RECORD - 16);
  }
  assert_int_equal(ct_mem_write(b->dev, ((uint64_t)b->unit + at) * 16, x, (size_t)tiles * RECORD),
                   CT_OK);
  test_free(x);
  return (GROUP_BITS + 4 * (TILE_BITS + 256 * bits) + 127) / 128;
}

/* K is in argument 2. */
static void pack_some(struct cycles_bed *b, struct ct_cycles_groups *groups, uint32_t tiles,
                      unsigned bits, bool back) {
  char why[256] = "", name[64];
  struct ct_codes codes;
  uint32_t used = SCRATCH;
  const struct ct_mat m = matrix(&used, 16 * tiles, 16, ROWS);
  const struct ct_pack k = {.mat = m, .index = {1, used}, .back = back, .free = back, .n1_reg = 2};
  struct ct_room room = room_of(b);
  if (!back) groups->units = draw_records(b, m.keep[CT_KEEP_ROWS].at, tiles, bits);
  room.args = 2;
  const int err = ct_kernel_pack(&k, &room, &codes, &(struct ct_why){why, sizeof why});
  snprintf(name, sizeof name, "%s %u tiles of %u bits", back ? "unpacking" : "packing", tiles,
           bits);
  run(b, name, err, why, &codes);
}

static void packing(struct cycles_bed *b) {
  struct ct_cycles_groups groups = {b->unit, UINT32_MAX, 0};
  b->core.groups = &groups;
  b->core.groups_count = 1;
  set_arena(b);
  for (uint32_t tiles = 2; tiles <= 160; tiles += tiles / 2 + 1)
    for (unsigned bits = 0; bits < 8; bits += bits ? 3 : 1)
      for (unsigned back = 0; back < 2; ++back)
        pack_some(b, &groups, tiles, bits, back);
}

static void kernels(void **state) {
  static const struct layer layer[] = {{1, 16, 16, 16, 3, 1}, {1, 16, 16, 32, 3, 2},
                                       {1, 8, 64, 32, 3, 1},  {4, 8, 32, 64, 1, 2},
                                       {1, 14, 1, 6, 5, 1},   {32, 1, 128, 64, 1, 1}};
  struct cycles_bed b;
  cycles_open(&b, *state, CT_TRAINING, 0, 0);
  for (size_t i = 0; i < sizeof layer / sizeof *layer; ++i)
    for (unsigned pass = 0; pass < PASSES; ++pass)
      convolution(&b, &layer[i], (enum pass)pass);
  pooling(&b, CT_POOL_MAX);
  pooling(&b, CT_POOL_AVERAGE);
  softmax(&b);
  columns(&b);
  moving(&b, false);
  moving(&b, true);
  gelu(&b);
  packing(&b);
  cycles_close(&b);
}

/* Groups that decide what the memory takes. */
static void slow(void **state) {
  struct cycles_bed b;
  (void)state;
  cycles_open(&b, "sim:latency=100,bandwidth=8", CT_TRAINING, 100, 8);
  packing(&b);
  cycles_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(kernels, (void *)"sim:"),
      cmocka_unit_test_prestate(kernels, (void *)"sim:core=16x8"),
      cmocka_unit_test(slow),
  };
  return cmocka_run_group_tests_name("cycles of kernels", tests, NULL, NULL);
}
