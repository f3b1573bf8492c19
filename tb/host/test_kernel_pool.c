/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling, forward and backward, to the bit: random windows, ways of keeping and scratchpads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_num.h"
#include "kernel_bed.h"

enum { MOST = 700 * 40 };

struct values {
  uint32_t x[MOST], y[MOST], dy[MOST], dx[MOST];
};

/* ---- Reference ---- */

/* Element of the image that tap t of a window shows; -1: padding. */
static int64_t pixel(const struct ct_window_shape *p, uint32_t image, uint32_t oy, uint32_t ox,
                     uint32_t t) {
  const int64_t y = (int64_t)oy * p->sy - p->top + (int64_t)(t / p->kx) * p->dy;
  const int64_t x = (int64_t)ox * p->sx - p->left + (int64_t)(t % p->kx) * p->dx;
  if (y < 0 || y >= p->h || x < 0 || x >= p->w) return -1;
  return ((int64_t)image * p->h + y) * p->w + x;
}

/* The window's size, as a factor. */
static uint32_t share(const struct ct_pool *k, uint32_t oy, uint32_t ox) {
  const struct ct_window_shape *p = &k->shape;
  uint32_t n = 0;
  for (uint32_t t = 0; t < p->ky * p->kx; ++t)
    n += pixel(p, 0, oy, ox, t) >= 0;
  return kb_bits(1.0f / (float)(k->count_pad ? p->ky * p->kx : n));
}

static uint32_t window_of(const struct ct_pool *k, const uint32_t *x, uint32_t i, uint32_t oy,
                          uint32_t ox, uint32_t c) {
  const struct ct_window_shape *p = &k->shape;
  uint32_t y = 0;
  bool first = true;
  for (uint32_t t = 0; t < p->ky * p->kx; ++t) {
    const int64_t at = pixel(p, i, oy, ox, t);
    if (at < 0) continue;
    uint32_t v = x[(size_t)at * k->x.cols + c];
    if (k->kind == CT_POOL_AVERAGE) v = ct_fp_mul(v, share(k, oy, ox));
    y = first ? v : k->kind == CT_POOL_MAX ? ct_fp_max(v, y) : ct_fp_add(v, y);
    first = false;
  }
  return y;
}

static void reference(const struct ct_pool *k, const uint32_t *x, uint32_t *y) {
  const struct ct_window_shape *p = &k->shape;
  assert_true(p->oh > 0 && p->ow > 0);
  for (uint32_t o = 0; o < p->images * p->oh * p->ow; ++o)
    for (uint32_t c = 0; c < k->x.cols; ++c)
      y[(size_t)o * k->x.cols + c] =
          window_of(k, x, o / (p->oh * p->ow), o / p->ow % p->oh, o % p->ow, c);
}

/* What window o gives to the element that its tap t shows. */
static uint32_t given(const struct ct_pool *k, const struct values *v, uint32_t o, uint32_t t,
                      uint32_t c) {
  const struct ct_window_shape *p = &k->shape;
  const uint32_t cols = k->dx.cols, i = o / (p->oh * p->ow), oy = o / p->ow % p->oh, ox = o % p->ow;
  const uint32_t dy = v->dy[(size_t)o * cols + c], y = v->y[(size_t)o * cols + c];
  if (k->kind == CT_POOL_AVERAGE) return ct_fp_mul(dy, share(k, oy, ox));
  for (uint32_t u = 0; u <= t; ++u) {
    const int64_t at = pixel(p, i, oy, ox, u);
    if (at >= 0 && ct_fp_eq(v->x[(size_t)at * cols + c], y)) return u == t ? dy : 0;
  }
  return 0;
}

/* Taps in ascending order, of the windows that have the element there. */
static uint32_t gradient(const struct ct_pool *k, const struct values *v, uint32_t at, uint32_t c) {
  const struct ct_window_shape *p = &k->shape;
  const uint32_t i = at / (p->h * p->w);
  uint32_t sum = 0;
  bool first = true;
  for (uint32_t t = 0; t < p->ky * p->kx; ++t)
    for (uint32_t w = 0; w < p->oh * p->ow; ++w) {
      if (pixel(p, i, w / p->ow, w % p->ow, t) != (int64_t)at) continue;
      const uint32_t g = given(k, v, i * p->oh * p->ow + w, t, c);
      sum = first ? g : ct_fp_add(g, sum);
      first = false;
    }
  return sum;
}

/* ---- Random shapes ---- */

static uint32_t outputs(uint32_t in, uint32_t k, uint32_t s, uint32_t d, uint32_t pad) {
  const uint32_t span = d * (k - 1) + 1;
  return in + pad < span ? 0 : (in + pad - span) / s + 1;
}

/* Every window shows something. */
static bool is_good(const struct ct_window_shape *p) {
  if (p->oh == 0 || p->ow == 0) return false;
  for (uint32_t o = 0; o < p->oh * p->ow; ++o) {
    bool any = false;
    for (uint32_t t = 0; t < p->ky * p->kx; ++t)
      any |= pixel(p, 0, o / p->ow, o % p->ow, t) >= 0;
    if (!any) return false;
  }
  return true;
}

static struct ct_window_shape random_shape(ct_rng *rng) {
  struct ct_window_shape p;
  do {
    p = (struct ct_window_shape){.images = 1 + ct_rng_below(rng, 3),
                                 .h = 1 + ct_rng_below(rng, 12),
                                 .w = 1 + ct_rng_below(rng, 19),
                                 .ky = 1 + ct_rng_below(rng, 4),
                                 .kx = 1 + ct_rng_below(rng, 4),
                                 .sy = 1 + ct_rng_below(rng, 3),
                                 .sx = 1 + ct_rng_below(rng, 3),
                                 .dy = 1 + ct_rng_percent(rng, 20),
                                 .dx = 1 + ct_rng_percent(rng, 20)};
    if (ct_rng_percent(rng, 30)) p.h = p.w = 8;
    if (ct_rng_percent(rng, 20)) p.w = 16;
    if (ct_rng_percent(rng, 50)) {
      p.top = (int32_t)ct_rng_below(rng, p.ky);
      p.left = (int32_t)ct_rng_below(rng, p.kx);
    }
    p.oh = outputs(p.h, p.ky, p.sy, p.dy, (uint32_t)p.top + ct_rng_below(rng, p.ky));
    p.ow = outputs(p.w, p.kx, p.sx, p.dx, (uint32_t)p.left + ct_rng_below(rng, p.kx));
  } while (!is_good(&p));
  return p;
}

/* Small whole numbers, with many that are equal. */
static struct ct_mat filled(struct kbed *b, uint32_t rows, uint32_t cols, uint32_t *x) {
  const struct ct_mat m = kb_mat(b, rows, cols, 1u << ct_rng_below(&b->rng, 3), false);
  for (uint32_t i = 0; i < rows * cols; ++i)
    x[i] = kb_bits((float)(int32_t)ct_rng_below(&b->rng, 21) - 10);
  kb_put(b, &m, x);
  return m;
}

static uint32_t random_window(ct_rng *rng) {
  return ct_rng_percent(rng, 50) ? 600 + ct_rng_below(rng, 600) : 1500 + ct_rng_below(rng, 8000);
}

static struct ct_pool random_pool(struct kbed *b) {
  struct ct_pool k = {.kind = ct_rng_percent(&b->rng, 50) ? CT_POOL_MAX : CT_POOL_AVERAGE,
                      .shape = random_shape(&b->rng)};
  k.count_pad = ct_rng_percent(&b->rng, 50);
  const struct ct_window_shape *p = &k.shape;
  const uint32_t cols = 1 + ct_rng_below(&b->rng, 40);
  k.x = k.dx = (struct ct_mat){.rows = p->images * p->h * p->w, .cols = cols};
  k.y = k.dy = (struct ct_mat){.rows = p->images * p->oh * p->ow, .cols = cols};
  return k;
}

static void print_shape(const struct ct_pool *k) {
  const struct ct_window_shape *p = &k->shape;
  print_message(
      "%s: %u images %u x %u -> %u x %u, windows %u x %u, steps %u, %u, dilation %u, %u, "
      "padding %d, %d%s, %u columns\n",
      k->kind == CT_POOL_MAX ? "largest" : "mean", p->images, p->h, p->w, p->oh, p->ow, p->ky,
      p->kx, p->sy, p->sx, p->dy, p->dx, p->top, p->left, k->count_pad ? " counts" : "", k->x.cols);
}

static void run(struct kbed *b, const struct ct_pool *k, bool back, const struct ct_room *room) {
  struct ct_codes codes;
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  const int err =
      back ? ct_kernel_pool_back(k, room, &codes, &why) : ct_kernel_pool(k, room, &codes, &why);
  if (err) {
    print_shape(k);
    fail_msg("%u words: %s", room->spm_words, text);
  }
  kb_run(b, &codes, room->spm_words);
}

/* ---- Tests ---- */

static void check_forward(struct kbed *b, struct values *v) {
  kb_clear(b);
  struct ct_pool k = random_pool(b);
  const uint32_t least = (uint32_t)ct_kernel_pool_scratch(&k, false);
  const struct ct_room room = kb_room_scratch(b, random_window(&b->rng), least);
  k.x = filled(b, k.x.rows, k.x.cols, v->x);
  k.y = kb_mat(b, k.y.rows, k.y.cols, 1 + ct_rng_below(&b->rng, 7), true);
  run(b, &k, false, &room);
  reference(&k, v->x, v->y);
  kb_check(b, &k.y, v->y, "pooled");
}

static void check_back(struct kbed *b, struct values *v) {
  kb_clear(b);
  struct ct_pool k = random_pool(b);
  const uint32_t least = (uint32_t)ct_kernel_pool_scratch(&k, true);
  const struct ct_room room = kb_room_scratch(b, random_window(&b->rng), least);
  k.x = filled(b, k.x.rows, k.x.cols, v->x);
  k.dy = filled(b, k.dy.rows, k.dy.cols, v->dy);
  reference(&k, v->x, v->y);
  k.y = kb_mat(b, k.y.rows, k.y.cols, 1u << ct_rng_below(&b->rng, 3), false);
  kb_put(b, &k.y, v->y);
  k.dx = kb_mat(b, k.dx.rows, k.dx.cols, 1 + ct_rng_below(&b->rng, 7), true);
  run(b, &k, true, &room);
  for (uint32_t at = 0; at < k.dx.rows; ++at)
    for (uint32_t c = 0; c < k.dx.cols; ++c)
      v->dx[(size_t)at * k.dx.cols + c] = gradient(&k, v, at, c);
  kb_check(b, &k.dx, v->dx, "the gradient");
}

/* Forward says where maxima were: then the gradient asks neither for x nor for y. */
static void check_places(struct kbed *b, struct values *v) {
  kb_clear(b);
  struct ct_pool k = random_pool(b);
  k.kind = CT_POOL_MAX;
  k.places = k.y;
  const uint32_t front = (uint32_t)ct_kernel_pool_scratch(&k, false),
                 back = (uint32_t)ct_kernel_pool_scratch(&k, true);
  const struct ct_room room =
      kb_room_scratch(b, random_window(&b->rng), front > back ? front : back);
  k.x = filled(b, k.x.rows, k.x.cols, v->x);
  k.dy = filled(b, k.dy.rows, k.dy.cols, v->dy);
  reference(&k, v->x, v->y);
  k.y = kb_mat(b, k.y.rows, k.y.cols, 1 + ct_rng_below(&b->rng, 7), true);
  k.places = kb_mat(b, k.y.rows, k.y.cols, 1 + ct_rng_below(&b->rng, 7), true);
  k.dx = kb_mat(b, k.dx.rows, k.dx.cols, 1 + ct_rng_below(&b->rng, 7), true);
  run(b, &k, false, &room);
  kb_check(b, &k.y, v->y, "pooled");
  k.x = k.y = (struct ct_mat){.rows = 0};
  run(b, &k, true, &room);
  for (uint32_t at = 0; at < k.dx.rows; ++at)
    for (uint32_t c = 0; c < k.dx.cols; ++c)
      v->dx[(size_t)at * k.dx.cols + c] = gradient(&k, v, at, c);
  kb_check(b, &k.dx, v->dx, "the gradient by places");
}

static void many(const char *uri, void (*check)(struct kbed *b, struct values *v), uint64_t stream,
                 unsigned n) {
  struct kbed b;
  struct values *v = calloc(1, sizeof *v);
  assert_non_null(v);
  kb_open(&b, uri, stream);
  for (unsigned i = 0; i < n; ++i)
    check(&b, v);
  kb_close(&b);
  free(v);
}

static void test_forward(void **state) {
  (void)state;
  many("emu:", check_forward, 1, 60);
}

static void test_back(void **state) {
  (void)state;
  many("emu:", check_back, 2, 60);
}

static void test_places(void **state) {
  (void)state;
  many("emu:", check_places, 5, 60);
}

static void test_simulated(void **state) {
  (void)state;
  many("sim:core=16x8", check_forward, 3, 2);
  many("sim:stall=10,seed=7", check_back, 4, 2);
  many("sim:stall=10,seed=8", check_places, 6, 2);
}

/* Images of 112 x 112 are loops, in a window of 1,000 words. */
static void test_large(void **state) {
  (void)state;
  struct ct_pool k = {.kind = CT_POOL_MAX,
                      .shape = {.images = 16,
                                .h = 112,
                                .w = 112,
                                .oh = 56,
                                .ow = 56,
                                .ky = 3,
                                .kx = 3,
                                .sy = 2,
                                .sx = 2,
                                .dy = 1,
                                .dx = 1,
                                .top = 1,
                                .left = 1},
                      .x = {.rows = 16 * 112 * 112, .cols = 64, .keep = {{1, 0}}},
                      .y = {.rows = 16 * 56 * 56, .cols = 64, .keep = {{2, 0}}}};
  struct ct_room room = kb_room(1000);
  struct ct_codes codes;
  k.dx = k.x;
  k.dy = k.y;
  room.scratch = (struct ct_seat){3, 0};
  room.scratch_units = ct_kernel_pool_scratch(&k, true);
  assert_int_equal(room.scratch_units, 1 + 16 * 56 * 56 / 16 * 4 * 64);
  assert_int_equal(ct_kernel_pool(&k, &room, &codes, NULL), CT_OK);
  assert_true(codes.count <= 4);
  ct_codes_free(&codes);
  assert_int_equal(ct_kernel_pool_back(&k, &room, &codes, NULL), CT_OK);
  assert_true(codes.count <= 12);
  ct_codes_free(&codes);
}

static void refuse(const struct ct_pool *k, bool back, const struct ct_room *room, int error,
                   const char *what) {
  struct ct_codes codes;
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  const int err =
      back ? ct_kernel_pool_back(k, room, &codes, &why) : ct_kernel_pool(k, room, &codes, &why);
  if (err != error || !strstr(text, what)) fail_msg("%d (%s), not %d (%s)", err, text, error, what);
  assert_null(codes.job);
}

static void test_refusals(void **state) {
  (void)state;
  const struct ct_pool good = {.kind = CT_POOL_MAX,
                               .shape = {1, 4, 4, 2, 2, 2, 2, 2, 2, 1, 1, 1, 0, 0},
                               .x = {.rows = 16, .cols = 5, .keep = {{1, 0}}},
                               .y = {.rows = 4, .cols = 5, .keep = {{2, 0}}},
                               .dx = {.rows = 16, .cols = 5, .keep = {{1, 99}}},
                               .dy = {.rows = 4, .cols = 5, .keep = {{2, 99}}}};
  struct ct_room room = kb_room(1000);
  struct ct_pool k = good;
  k.shape.sx = 0;
  refuse(&k, false, &room, CT_ERR_ARG, "a size, step or dilation is 0");
  k = good;
  k.y.rows = 5;
  refuse(&k, false, &room, CT_ERR_ARG, "y has 5 rows and 5 columns, not 4 and 5");
  k = good;
  k.shape.ky = k.shape.kx = 20;
  refuse(&k, false, &room, CT_ERR_NO_SPACE, "a window of 20 x 20");
  refuse(&good, true, &room, CT_ERR_NO_SPACE, "pooling needs 65 units of scratch, there are 1");
  room = kb_room(20);
  refuse(&good, false, &room, CT_ERR_NO_SPACE, "words of scratchpad, the window has 20");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forward), cmocka_unit_test(test_back),
      cmocka_unit_test(test_places),  cmocka_unit_test(test_simulated),
      cmocka_unit_test(test_large),   cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests_name("kernel_pool", tests, NULL, NULL);
}
