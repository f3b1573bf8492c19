/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions over matrices: random shapes on the emulator, every program proved race-free. Data
 * are small integers, so sums are exact and a loop over pixels, taps and channels says what has to
 * come out, to the bit. A shape is tried in several windows, which all leave the same.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_num.h"
#include "kernel_bed.h"

enum { MOST = 1 << 17 };

/* Pixels by channels; weights as outputs x lines x columns x inputs of a group. */
struct layer {
  struct ct_conv conv;
  struct ct_tilewise after;
  bool fractions; /* data are not integers: sums depend on their order */
  uint32_t x[MOST], w[MOST], y[MOST], matrix[MOST], bias[256], add[MOST];
};

static void fill(const struct layer *t, ct_rng *rng, uint32_t *x, size_t n) {
  assert_true(n <= MOST);
  for (size_t i = 0; i < n; ++i)
    x[i] = kb_bits(t->fractions ? (float)((int)ct_rng_below(rng, 2001) - 1000) * 1e-3f
                                : (float)((int)ct_rng_below(rng, 7) - 3));
}

static uint32_t group_in(const struct layer *t) {
  return t->conv.x.cols / t->conv.shape.groups;
}
static uint32_t group_out(const struct layer *t) {
  return t->conv.y.cols / t->conv.shape.groups;
}

/* ---- What has to come out ------------------------------------------------------------------ */

struct spot {
  uint32_t pixel, in, out, weight; /* indices of a multiplication */
};
typedef void product(struct layer *t, double *sum, const struct spot *s);

/* Visits every multiplication of a layer. */
static void visit(struct layer *t, double *sum, product *f) {
  const struct ct_window_shape *s = &t->conv.shape;
  const uint32_t ci = group_in(t), co = group_out(t);
  for (uint32_t p = 0; p < s->images * s->oh * s->ow; ++p)
    for (uint32_t tap = 0; tap < s->ky * s->kx; ++tap) {
      const int64_t y =
          (int64_t)(p / s->ow % s->oh) * s->sy - s->top + (int64_t)(tap / s->kx) * s->dy;
      const int64_t x = (int64_t)(p % s->ow) * s->sx - s->left + (int64_t)(tap % s->kx) * s->dx;
      if (y < 0 || x < 0 || y >= s->h || x >= s->w) continue;
      const uint32_t q = (uint32_t)(((int64_t)(p / s->ow / s->oh) * s->h + y) * s->w + x);
      for (uint32_t o = 0; o < t->conv.y.cols; ++o)
        for (uint32_t c = 0; c < ci; ++c)
          f(t, sum,
            &(struct spot){p * t->conv.y.cols + o, q * t->conv.x.cols + o / co * ci + c,
                           p * t->conv.y.cols + o, (o * s->ky * s->kx + tap) * ci + c});
    }
}

static void forward_product(struct layer *t, double *sum, const struct spot *s) {
  sum[s->out] += (double)kb_float(t->x[s->in]) * (double)kb_float(t->w[s->weight]);
}

static void input_product(struct layer *t, double *sum, const struct spot *s) {
  sum[s->in] += (double)kb_float(t->y[s->out]) * (double)kb_float(t->w[s->weight]);
}

static void weight_product(struct layer *t, double *sum, const struct spot *s) {
  sum[s->weight] += (double)kb_float(t->y[s->out]) * (double)kb_float(t->x[s->in]);
}

/* ---- Weights as a matrix ------------------------------------------------------------------- */

static uint32_t parts(const struct layer *t) {
  return ct_conv_parts(&t->conv);
}

static uint32_t blocks_in(const struct layer *t) {
  return ct_tiles(t->conv.x.cols / parts(t));
}

static uint32_t matrix_rows(const struct layer *t) {
  return t->conv.shape.ky * t->conv.shape.kx * blocks_in(t) * 16;
}

/* Where weight (o, tap, c of its group) is in the matrix. */
static size_t in_matrix(const struct layer *t, uint32_t o, uint32_t tap, uint32_t c) {
  const uint32_t channel = o / group_out(t) * group_in(t) + c;
  const uint32_t in_part = channel % (t->conv.x.cols / parts(t));
  return (size_t)(tap * blocks_in(t) * 16 + in_part) * t->conv.y.cols + o;
}

static void to_matrix(struct layer *t, const uint32_t *w) {
  const struct ct_window_shape *s = &t->conv.shape;
  const size_t n = (size_t)matrix_rows(t) * t->conv.y.cols;
  assert_true(n <= MOST);
  memset(t->matrix, 0, n * sizeof *t->matrix);
  for (uint32_t o = 0; o < t->conv.y.cols; ++o)
    for (uint32_t tap = 0; tap < s->ky * s->kx; ++tap)
      for (uint32_t c = 0; c < group_in(t); ++c)
        t->matrix[in_matrix(t, o, tap, c)] = w[(o * s->ky * s->kx + tap) * group_in(t) + c];
}

/* ---- A shape ------------------------------------------------------------------------------- */

static uint32_t size_out(uint32_t in, uint32_t pads, uint32_t k, uint32_t d, uint32_t s) {
  return (in + pads - (k - 1) * d - 1) / s + 1;
}

/* The last padding does not show in a shape: oh and ow say it. */
static void complete(struct layer *t, uint32_t bottom, uint32_t right) {
  struct ct_window_shape *s = &t->conv.shape;
  s->oh = size_out(s->h, (uint32_t)s->top + bottom, s->ky, s->dy, s->sy);
  s->ow = size_out(s->w, (uint32_t)s->left + right, s->kx, s->dx, s->sx);
  t->conv.x.rows = s->images * s->h * s->w;
  t->conv.y.rows = s->images * s->oh * s->ow;
  t->conv.weights.rows = matrix_rows(t);
  t->conv.weights.cols = t->conv.y.cols;
}

static void draw_axis(ct_rng *rng, uint32_t *in, uint32_t *k, uint32_t *d, uint32_t *s, int32_t *at,
                      uint32_t *behind) {
  *in = 1 + ct_rng_below(rng, ct_rng_percent(rng, 50) ? 9 : 20);
  *k = 1 + ct_rng_below(rng, ct_rng_percent(rng, 10) ? 17 : 5);
  if (ct_rng_percent(rng, 15)) *k = *in;
  *d = ct_rng_percent(rng, 25) ? 1 + ct_rng_below(rng, 3) : 1;
  *s = ct_rng_percent(rng, 40) ? 1 + ct_rng_below(rng, 4) : 1;
  const uint32_t far = (*k - 1) * *d;
  *at = (int32_t)ct_rng_below(rng, far + 2);
  *behind = ct_rng_below(rng, far + 2);
  if (ct_rng_percent(rng, 30)) *at = 0, *behind = 0;
  if (*in + (uint32_t)*at + *behind < far + 1) *behind = far + 1 - *in;
}

static void draw_channels(struct layer *t, ct_rng *rng) {
  struct ct_window_shape *s = &t->conv.shape;
  s->groups = ct_rng_percent(rng, 70) ? 1 : 1 + ct_rng_below(rng, 6);
  uint32_t in = 1 + ct_rng_below(rng, 70 / s->groups), out = 1 + ct_rng_below(rng, 70 / s->groups);
  if (s->groups > 1 && ct_rng_percent(rng, 50)) {
    in = out = ct_rng_percent(rng, 50) ? 16 : 4;
    s->groups = in == 16 ? s->groups : 4 * (1 + ct_rng_below(rng, 3));
  } else if (s->groups > 1 && ct_rng_percent(rng, 40)) {
    s->groups = 1 + ct_rng_below(rng, 40);
    in = out = 1;
  }
  t->conv.x.cols = in * s->groups;
  t->conv.y.cols = out * s->groups;
}

static void draw(struct layer *t, ct_rng *rng) {
  struct ct_window_shape *s = &t->conv.shape;
  uint32_t bottom, right;
  for (;;) {
    memset(&t->conv, 0, sizeof t->conv);
    s->images = 1 + ct_rng_below(rng, ct_rng_percent(rng, 50) ? 4 : 40);
    draw_axis(rng, &s->h, &s->ky, &s->dy, &s->sy, &s->top, &bottom);
    draw_axis(rng, &s->w, &s->kx, &s->dx, &s->sx, &s->left, &right);
    if (ct_rng_percent(rng, 20))
      s->h = s->w = s->ky = s->kx = 1, s->top = s->left = 0, bottom = right = 0;
    draw_channels(t, rng);
    complete(t, bottom, right);
    const uint64_t macs = (uint64_t)t->conv.y.rows * t->conv.y.cols * s->ky * s->kx * group_in(t);
    if (t->conv.x.rows * t->conv.x.cols < 40000 && t->conv.y.rows * t->conv.y.cols < 40000 &&
        matrix_rows(t) * t->conv.y.cols < 100000 && macs < 6000000)
      return;
  }
}

static void print_shape(const struct layer *t) {
  const struct ct_window_shape *s = &t->conv.shape;
  print_message(
      "%u images of %u x %u, %u channels; %u x %u, %u channels; kernel %u x %u, stride %u "
      "%u, dilation %u %u, %u groups, padding %d %d\n",
      s->images, s->h, s->w, t->conv.x.cols, s->oh, s->ow, t->conv.y.cols, s->ky, s->kx, s->sy,
      s->sx, s->dy, s->dx, s->groups, s->top, s->left);
}

/* ---- What is behind a product -------------------------------------------------------------- */

/* product, + bias, + a matrix, ReLU: some of it. Value 0 is the product. */
static void draw_after(struct layer *t, struct kbed *b, uint32_t rows, uint32_t cols) {
  struct ct_tilewise *k = &t->after;
  unsigned value = 0;
  *k = (struct ct_tilewise){.rows = rows, .cols = cols, .ins = 1};
  const bool bias = ct_rng_percent(&b->rng, 50), add = ct_rng_percent(&b->rng, 40);
  if (bias) {
    fill(t, &b->rng, t->bias, cols);
    k->in[k->ins].mat = kb_mat(b, 1, cols, KB_F32, false);
    k->in[k->ins].spread = CT_SPREAD_ROWS;
    kb_put(b, &k->in[k->ins++].mat, t->bias);
  }
  if (add) {
    static const unsigned keeps[] = {KB_F32, KB_ROWS, KB_SQUARE};
    fill(t, &b->rng, t->add, (size_t)rows * cols);
    k->in[k->ins].mat = kb_mat(b, rows, cols, keeps[ct_rng_below(&b->rng, 3)], false);
    kb_put(b, &k->in[k->ins++].mat, t->add);
  }
  for (unsigned i = 1; i < k->ins; ++i) {
    k->op[k->ops] = (struct ct_tile_op){.fn = CT_TILE_ADD, .a = value, .b = i};
    value = k->ins + k->ops++;
  }
  if (ct_rng_percent(&b->rng, 50)) {
    k->op[k->ops] = (struct ct_tile_op){.fn = CT_TILE_RELU, .a = value};
    value = k->ins + k->ops++;
  }
  k->outs = 1;
  k->out[0].mat = kb_mat(b, rows, cols, 1 + ct_rng_below(&b->rng, 7), true);
  k->out[0].value = value;
  if (ct_rng_percent(&b->rng, 20)) {
    k->outs = 2;
    k->out[1].mat = kb_mat(b, rows, cols, KB_F32, true);
    k->out[1].value = 0;
  }
}

static uint32_t apply(const struct layer *t, double sum, size_t i) {
  const struct ct_tilewise *k = &t->after;
  uint32_t v = kb_bits((float)sum);
  for (unsigned in = 1; in < k->ins; ++in)
    v = ct_fp_add(v, k->in[in].spread ? t->bias[i % k->cols] : t->add[i]);
  return k->ops && k->op[k->ops - 1].fn == CT_TILE_RELU ? ct_fp_relu(v) : v;
}

static void check_after(struct layer *t, struct kbed *b, const double *sum) {
  const struct ct_tilewise *k = &t->after;
  const size_t n = (size_t)k->rows * k->cols;
  uint32_t *want = test_malloc(n * sizeof *want);
  for (size_t i = 0; i < n; ++i)
    want[i] = apply(t, sum[i], i);
  kb_check(b, &k->out[0].mat, want, "the result");
  for (size_t i = 0; i < n; ++i)
    want[i] = kb_bits((float)sum[i]);
  if (k->outs > 1) kb_check(b, &k->out[1].mat, want, "the product");
  test_free(want);
}

/* ---- Passes -------------------------------------------------------------------------------- */

enum pass { FORWARD, INPUT, WEIGHTS };
typedef int kernel(const struct ct_conv *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why);

static void prepare(struct layer *t, struct kbed *b, enum pass pass) {
  struct ct_conv *c = &t->conv;
  const struct ct_window_shape *s = &c->shape;
  fill(t, &b->rng, t->x, (size_t)c->x.rows * c->x.cols);
  fill(t, &b->rng, t->y, (size_t)c->y.rows * c->y.cols);
  fill(t, &b->rng, t->w, (size_t)c->y.cols * s->ky * s->kx * group_in(t));
  to_matrix(t, t->w);
  kb_clear(b);
  const unsigned keep = ct_rng_percent(&b->rng, 50) ? KB_ROWS : KB_SQUARE;
  if (pass != INPUT) c->x = kb_mat(b, c->x.rows, c->x.cols, keep, false);
  if (pass != FORWARD) c->y = kb_mat(b, c->y.rows, c->y.cols, KB_SQUARE, false);
  c->weights = kb_mat(b, c->weights.rows, c->weights.cols, pass == WEIGHTS ? KB_F32 : KB_SQUARE,
                      pass == WEIGHTS);
  if (pass != INPUT) kb_put(b, &c->x, t->x);
  if (pass != FORWARD) kb_put(b, &c->y, t->y);
  if (pass != WEIGHTS) kb_put(b, &c->weights, t->matrix);
  c->after = &t->after;
  if (pass == FORWARD) draw_after(t, b, c->y.rows, c->y.cols);
  if (pass == INPUT) draw_after(t, b, c->x.rows, c->x.cols);
}

static void check_weights(struct layer *t, struct kbed *b, const double *sum) {
  const struct ct_window_shape *s = &t->conv.shape;
  const size_t n = (size_t)t->conv.y.cols * s->ky * s->kx * group_in(t);
  for (size_t i = 0; i < n; ++i)
    t->w[i] = kb_bits((float)sum[i]);
  to_matrix(t, t->w);
  kb_check(b, &t->conv.weights, t->matrix, "the gradient");
}

static const struct {
  kernel *make;
  product *product;
} passes[] = {[FORWARD] = {ct_kernel_conv, forward_product},
              [INPUT] = {ct_kernel_conv_input, input_product},
              [WEIGHTS] = {ct_kernel_conv_weights, weight_product}};

/* false: the window is too small, which the sentence says. */
static bool build(struct layer *t, enum pass pass, uint32_t words, struct ct_codes *codes) {
  char why[256] = "";
  const struct ct_room room = kb_room(words);
  const int err = passes[pass].make(&t->conv, &room, codes, &(struct ct_why){why, sizeof why});
  if (err == CT_ERR_NO_SPACE && strstr(why, "words of scratchpad")) return false;
  if (err) {
    print_shape(t);
    fail_msg("%u words: %s", words, why);
  }
  return true;
}

static bool run(struct layer *t, struct kbed *b, enum pass pass, uint32_t words) {
  struct ct_codes codes;
  if (!build(t, pass, words, &codes)) return false;
  if (getenv("CT_VERBOSE")) print_message("%u words: %zu jobs\n", words, codes.count);
  kb_run(b, &codes, words);
  double *sum = test_calloc(MOST, sizeof *sum);
  visit(t, sum, passes[pass].product);
  if (pass == WEIGHTS)
    check_weights(t, b, sum);
  else
    check_after(t, b, sum);
  test_free(sum);
  return true;
}

static uint32_t draw_window(ct_rng *rng) {
  static const uint32_t words[] = {1500, 6000, 24000};
  return ct_rng_percent(rng, 50) ? words[ct_rng_below(rng, 3)] : 400 + ct_rng_below(rng, 3000);
}

static void random_cases(const char *uri, enum pass pass, unsigned cases, uint64_t stream) {
  struct layer *t = test_calloc(1, sizeof *t);
  struct kbed b;
  unsigned done = 0, tight = 0;
  kb_open(&b, uri, stream);
  const char *only = getenv("CT_CASE");
  for (unsigned i = 0; i < cases; ++i) {
    const ct_rng at = b.rng;
    b.rng.s[0] ^= i * UINT64_C(0x9e3779b97f4a7c15);
    draw(t, &b.rng);
    prepare(t, &b, pass);
    const uint32_t words = draw_window(&b.rng);
    if (!only || (unsigned)strtoul(only, NULL, 10) == i) {
      if (getenv("CT_VERBOSE")) {
        print_message("case %u, %u words: ", i, words);
        print_shape(t);
      }
      if (run(t, &b, pass, words))
        ++done;
      else
        ++tight;
    }
    b.rng = at;
    ct_rng_u64(&b.rng);
  }
  print_message("%u shapes, and %u windows too small\n", done, tight);
  if (!only) assert_true(done > cases / 2);
  kb_close(&b);
  test_free(t);
}

static void test_forward(void **state) {
  (void)state;
  random_cases("emu:", FORWARD, 50, 71);
}

static void test_input(void **state) {
  (void)state;
  random_cases("emu:", INPUT, 50, 72);
}

static void test_weights(void **state) {
  (void)state;
  random_cases("emu:", WEIGHTS, 50, 73);
}

/* Sums that are rounded: the same bits whatever the window, so the same order. */
static void test_windows(void **state) {
  (void)state;
  static const uint32_t words[] = {24000, 6000, 3000, 1500, 900, 600};
  enum { BYTES = KB_UNITS * 16, SCRATCH = 16 };
  struct layer *t = test_calloc(1, sizeof *t);
  uint8_t *before = test_malloc(BYTES), *first = test_malloc(BYTES);
  struct kbed b;
  kb_open(&b, "emu:", 74);
  t->fractions = true;
  unsigned runs = 0;
  for (unsigned i = 0; i < 30; ++i) {
    const enum pass pass = (enum pass)(i % 3);
    struct ct_codes codes;
    draw(t, &b.rng);
    prepare(t, &b, pass);
    memcpy(before, b.mem, BYTES);
    for (unsigned w = 0; w < sizeof words / sizeof *words; ++w) {
      memcpy(b.mem, before, BYTES);
      if (!build(t, pass, words[w], &codes)) continue;
      kb_run(&b, &codes, words[w]);
      if (w == 0) memcpy(first, b.mem, BYTES);
      if (memcmp(first + SCRATCH, b.mem + SCRATCH, BYTES - SCRATCH) != 0) {
        print_shape(t);
        fail_msg("%u words leave other bytes than %u", words[w], words[0]);
      }
      ++runs;
    }
  }
  print_message("%u runs\n", runs);
  assert_true(runs > 100);
  kb_close(&b);
  test_free(before);
  test_free(first);
  test_free(t);
}

struct image_case {
  uint32_t images, in, out, k;
  int32_t pad;
};

/* Images of 15 x 15. */
static void uneven_layer(struct layer *t, const struct image_case *c) {
  memset(&t->conv, 0, sizeof t->conv);
  t->conv.shape = (struct ct_window_shape){
      .images = c->images, .h = 15, .w = 15, .ky = c->k, .kx = c->k, .top = c->pad, .left = c->pad};
  t->conv.shape.sy = t->conv.shape.sx = 1;
  t->conv.shape.dy = t->conv.shape.dx = 1;
  t->conv.shape.groups = 1;
  t->conv.x.cols = c->in;
  t->conv.y.cols = c->out;
  complete(t, (uint32_t)c->pad, (uint32_t)c->pad);
}

/* 225 pixels are one more than whole tiles: blocks of the second image do not begin where it does,
 * and those that a loop over the blocks of an image would take cross its end. */
static void test_uneven_images(void **state) {
  (void)state;
  static const struct image_case cases[] = {{2, 16, 16, 3, 1},  {2, 32, 16, 3, 1},
                                            {4, 48, 16, 3, 1},  {4, 16, 15, 15, 0},
                                            {8, 32, 15, 15, 0}, {11, 16, 22, 15, 0}};
  static const uint32_t words[] = {925, 1711, 1996, 2328, 2500, 4096, 4312, 8192};
  struct layer *t = test_calloc(1, sizeof *t);
  struct kbed b;
  unsigned runs = 0;
  kb_open(&b, "emu:", 75);
  for (unsigned i = 0; i < 2 * sizeof cases / sizeof *cases; ++i) {
    const enum pass pass = i % 2 ? INPUT : FORWARD;
    uneven_layer(t, &cases[i / 2]);
    prepare(t, &b, pass);
    for (unsigned w = 0; w < sizeof words / sizeof *words; ++w)
      runs += run(t, &b, pass, words[w]);
  }
  print_message("%u runs\n", runs);
  assert_true(runs > 60);
  kb_close(&b);
  test_free(t);
}

/* What a walk cannot express, or what does not fit together, gets a sentence. */
static void test_refusals(void **state) {
  (void)state;
  static const struct ct_window_shape good = {2, 8, 8, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1};
  struct ct_window_shape bad[8];
  static const char *const says[] = {"300 x 8 pixels", "strides", "dilations", "beyond",
                                     "is 0",           "groups",  "rows",      "rows"};
  for (unsigned i = 0; i < 8; ++i)
    bad[i] = good;
  bad[0].w = bad[0].ow = 300;
  bad[1].sy = 9;
  bad[2].dx = 40;
  bad[3].left = 600;
  bad[4].ky = 0;
  bad[5].groups = 5;
  bad[6].images = 3;
  bad[7].kx = 4;
  for (unsigned i = 0; i < 8; ++i) {
    const struct ct_mat x = {.rows = 2 * 8 * bad[i].w, .cols = 16, .keep[CT_KEEP_ROWS] = {1, 9}};
    const struct ct_mat w = {.rows = 9 * 16, .cols = 16, .keep[CT_KEEP_SQUARE] = {1, 5000}};
    struct ct_tilewise after = {.rows = 2 * 8 * bad[i].ow, .cols = 16, .ins = 1, .outs = 1};
    after.out[0].mat =
        (struct ct_mat){.rows = after.rows, .cols = 16, .keep[CT_KEEP_F32] = {1, 10000}};
    const struct ct_conv k = {.shape = bad[i],
                              .x = x,
                              .weights = w,
                              .y = {.rows = after.rows, .cols = 16},
                              .after = &after};
    const struct ct_room room = kb_room(6000);
    struct ct_codes codes;
    char why[256] = "";
    const int err = ct_kernel_conv(&k, &room, &codes, &(struct ct_why){why, sizeof why});
    if (err == CT_OK || !strstr(why, says[i])) fail_msg("case %u: %d, %s", i, err, why);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forward),       cmocka_unit_test(test_input),
      cmocka_unit_test(test_weights),       cmocka_unit_test(test_windows),
      cmocka_unit_test(test_uneven_images), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests_name("convolutions", tests, NULL, NULL);
}
