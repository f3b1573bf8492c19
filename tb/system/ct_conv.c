/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_conv.h"

#include <math.h>
#include <string.h>

#include "host/emu/ct_num.h"
#include "host/lib/isa/ct_walk.h"

/* Name; width, height, images, blocks of channels in and out; kernel, stride, padding, dilation. */
const struct ct_conv ct_conv_layers[] = {
    {.name = "3x3", 8, 8, 1, 1, 2, 3, 1, 1, 1},
    {.name = "3x3, stride 2", 8, 8, 1, 1, 2, 3, 2, 1, 1},
    {.name = "3x3, dilation 2", 8, 8, 1, 1, 2, 3, 1, 2, 2},
    {.name = "3x3, odd images", 7, 5, 3, 2, 2, 3, 1, 1, 1, .lines = true},
    {.name = "3x3, stride 2, odd images", 7, 5, 3, 2, 1, 3, 2, 1, 1},
    {.name = "5x5, no padding", 9, 6, 2, 1, 1, 5, 1, 0, 1},
    {.name = "1x1, pixel by pixel", 6, 4, 2, 3, 2, 1, 1, 0, 1, .mixed = true},
    {.name = "3x3, two groups", 6, 6, 1, 2, 2, 3, 1, 1, 1, .grouped = true},
};
const unsigned ct_conv_layer_count = sizeof ct_conv_layers / sizeof *ct_conv_layers;

/* ---- Shapes ---- */

static int32_t out_w(const struct ct_conv *c) {
  return (c->w + 2 * c->pad - c->dilation * (c->k - 1) - 1) / c->stride + 1;
}

static int32_t out_h(const struct ct_conv *c) {
  return (c->h + 2 * c->pad - c->dilation * (c->k - 1) - 1) / c->stride + 1;
}

/* Output pixels, and as many with the last 16 filled up. */
static int32_t pixels(const struct ct_conv *c) {
  return c->images * out_w(c) * out_h(c);
}

static int32_t plane(const struct ct_conv *c) {
  return (pixels(c) + 15) / 16 * 16;
}

/* Input blocks that an output block sees. */
static int32_t blocks_in(const struct ct_conv *c) {
  return c->grouped ? 1 : c->cb;
}

/* Words of the data. */
static uint32_t x_at(const struct ct_conv *c, const struct ct_conv_data *d, int32_t image,
                     int32_t b, int32_t y, int32_t x) {
  const int32_t pixel = (image * c->h + y) * c->w + x;
  return d->x + (uint32_t)(c->mixed ? pixel * c->cb + b : b * c->images * c->h * c->w + pixel);
}

static uint32_t weights_at(const struct ct_conv *c, const struct ct_conv_data *d, int32_t tap,
                           int32_t b, int32_t n) {
  return d->weights + 16 * (uint32_t)(c->grouped ? tap * c->nb + n : (tap * c->cb + b) * c->nb + n);
}

static uint32_t dy_at(const struct ct_conv *c, const struct ct_conv_data *d, int32_t n,
                      int32_t pixel) {
  return d->dy + (uint32_t)(n * plane(c) + pixel);
}

/* ---- Data ---- */

static uint8_t draw_exponent(ct_rng *rng, bool plain) {
  if (!plain && ct_rng_percent(rng, 3)) return ct_rng_percent(rng, 60) ? 0 : 255;
  if (!plain && ct_rng_percent(rng, 3)) return (uint8_t)ct_rng_u64(rng);
  return (uint8_t)(120 + ct_rng_below(rng, 12));
}

static void draw_words(ct_rng *rng, struct ct_conv_word *w, uint32_t count, uint32_t together,
                       bool plain) {
  uint8_t e = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (i % together == 0) e = draw_exponent(rng, plain);
    w[i].e = e;
    for (unsigned j = 0; j < 16; ++j)
      w[i].q[j] = (int8_t)((int)ct_rng_below(rng, 255) - 127);
  }
}

static uint32_t to_tile(uint32_t words) {
  return (words + 15) / 16 * 16;
}

void ct_conv_draw(const struct ct_conv *c, ct_rng *rng, bool plain, struct ct_conv_data *d) {
  const uint32_t x = (uint32_t)(c->cb * c->images * c->h * c->w);
  const uint32_t weights = 16 * (uint32_t)(c->k * c->k * blocks_in(c) * c->nb);
  const uint32_t dy = (uint32_t)(c->nb * plane(c));
  memset(d, 0, sizeof *d);
  d->weights = to_tile(x);
  d->dy = d->weights + weights;
  d->out = d->dy + dy;
  d->end = d->out + 128;
  assert_true(d->end <= CT_CONV_WORDS);
  draw_words(rng, d->word, x, 1, plain);
  draw_words(rng, d->word + d->weights, weights, 16, plain);
  draw_words(rng, d->word + d->dy, dy, 16, plain);
}

size_t ct_conv_records(const struct ct_conv_data *d, uint8_t *bytes) {
  uint8_t *at = bytes;
  for (uint32_t i = 0; i < d->out; i += 16) {
    for (uint32_t j = 0; j < 16; ++j)
      *at++ = d->word[i + j].e;
    for (uint32_t j = 0; j < 16; ++j, at += 16)
      memcpy(at, d->word[i + j].q, 16);
  }
  return (size_t)(at - bytes);
}

/* ---- Programs ---- */

struct build {
  const struct ct_conv *c;
  const struct ct_conv_data *d;
  struct ct_gen_prog *prog;
  uint32_t out;
  unsigned tile; /* results so far */
};

/* Semaphores. */
enum { LOADED, FINAL, TAKEN, TURNED, STORED, WRITTEN, KEPT };

static struct ct_cmd *add(struct build *b, unsigned code) {
  assert_true(b->prog->count < CT_PROG_MAX);
  struct ct_cmd *cmd = &b->prog->cmds[b->prog->count++];
  memset(cmd, 0, sizeof *cmd);
  CT_PUT(cmd, ALL_OP, code);
  return cmd;
}

static void put(struct ct_cmd *cmd, enum ct_field_id f, int64_t value) {
  assert_true(ct_cmd_set(cmd, f, value));
}

/* An MM that waits: those behind it need not. */
static void gate(struct build *b, unsigned sem) {
  struct ct_cmd *cmd = add(b, CT_OP_MM);
  put(cmd, CT_F_MM_KT, 1);
  put(cmd, CT_F_MM_NT, 1);
  put(cmd, CT_F_MM_ROWS, 1);
  put(cmd, CT_F_ALL_WAIT0, CT_SEM(sem));
}

/* All data. */
static void load(struct build *b, uint32_t in) {
  struct ct_cmd *cmd = add(b, CT_OP_LD);
  put(cmd, CT_F_DMA_DRAM, in);
  put(cmd, CT_F_DMA_HDR, 1);
  put(cmd, CT_F_DMA_NB, 16);
  put(cmd, CT_F_DMA_S0, 1);
  put(cmd, CT_F_DMA_N1, b->d->out / 16);
  put(cmd, CT_F_DMA_D1, 17);
  put(cmd, CT_F_DMA_S1, 16);
  put(cmd, CT_F_DMA_N2, 1);
  put(cmd, CT_F_ALL_SIG1, CT_SEM(LOADED));
  gate(b, LOADED);
}

static void walk(struct build *b, const struct ct_walk_shape *s) {
  struct ct_cmd wpix, wtap;
  assert_true(ct_walk_commands(s, &wpix, &wtap));
  *add(b, CT_OP_WPIX) = wpix;
  *add(b, CT_OP_WTAP) = wtap;
}

/* An MM with Walk; its other fields are the caller's. */
struct product {
  uint32_t rows, kt, nt, b;
  int32_t bn, bk;
  bool a_trans, b_trans, accum, last; /* last: its tiles are final */
};

static void product(struct build *b, const struct product *p, uint32_t a, uint32_t pos) {
  if (!p->accum && b->tile) gate(b, TAKEN);
  struct ct_cmd *cmd = add(b, CT_OP_MM);
  put(cmd, CT_F_MM_WALK, 1);
  put(cmd, CT_F_MM_A, a);
  put(cmd, CT_F_MM_POS, pos);
  put(cmd, CT_F_MM_A_TRANS, p->a_trans);
  put(cmd, CT_F_MM_B, p->b);
  put(cmd, CT_F_MM_BN, p->bn);
  put(cmd, CT_F_MM_BK, p->bk);
  put(cmd, CT_F_MM_B_TRANS, p->b_trans);
  put(cmd, CT_F_MM_ACCUM, p->accum);
  put(cmd, CT_F_MM_KT, p->kt);
  put(cmd, CT_F_MM_NT, p->nt);
  put(cmd, CT_F_MM_ROWS, p->rows);
  put(cmd, CT_F_MM_ACC_N, (p->rows + 15) / 16);
  if (p->last) put(cmd, CT_F_ALL_SIG1, CT_SEM(FINAL));
}

/* ACC tiles 0..tiles-1 to the next places of the output, through one tile register and two places
 * of the scratchpad. */
static void drain(struct build *b, unsigned tiles) {
  for (unsigned i = 0; i < tiles; ++i, ++b->tile) {
    struct ct_cmd *cmd = add(b, CT_OP_VA);
    put(cmd, CT_F_VA_TA, i);
    put(cmd, CT_F_VA_A_SRC, 1);
    put(cmd, CT_F_VA_ROWS, 16);
    put(cmd, CT_F_VA_COLS, 16);
    put(cmd, CT_F_ALL_WAIT0, CT_SEM(FINAL));
    if (b->tile) put(cmd, CT_F_ALL_WAIT1, CT_SEM(STORED));
    if (i + 1 == tiles) put(cmd, CT_F_ALL_SIG0, CT_SEM(TAKEN));
    put(cmd, CT_F_ALL_SIG1, CT_SEM(TURNED));
    const uint32_t at = b->d->out + 64 * (b->tile % 2);
    cmd = add(b, CT_OP_VS);
    put(cmd, CT_F_VS_SPM, at);
    put(cmd, CT_F_VS_ROW_STRIDE, 4);
    put(cmd, CT_F_VS_ROWS, 16);
    put(cmd, CT_F_ALL_WAIT0, CT_SEM(TURNED));
    if (b->tile > 1) put(cmd, CT_F_ALL_WAIT1, CT_SEM(KEPT));
    put(cmd, CT_F_ALL_SIG0, CT_SEM(STORED));
    put(cmd, CT_F_ALL_SIG1, CT_SEM(WRITTEN));
    cmd = add(b, CT_OP_ST);
    put(cmd, CT_F_DMA_DRAM, b->out + 64 * b->tile);
    put(cmd, CT_F_DMA_SPM, at);
    put(cmd, CT_F_DMA_NB, 64);
    put(cmd, CT_F_DMA_S0, 1);
    put(cmd, CT_F_DMA_N1, 1);
    put(cmd, CT_F_DMA_N2, 1);
    put(cmd, CT_F_ALL_WAIT0, CT_SEM(WRITTEN));
    put(cmd, CT_F_ALL_SIG0, CT_SEM(KEPT));
  }
}

/* The input as it lies. */
static struct ct_walk_shape input_shape(const struct ct_conv *c) {
  const int32_t pixel = c->mixed ? c->cb : 1;
  return (struct ct_walk_shape){.w = c->w,
                                .h = c->h,
                                .pixel = pixel,
                                .line = pixel * c->w,
                                .image = pixel * c->w * c->h,
                                .block = c->mixed ? 1 : c->images * c->w * c->h,
                                .nx = out_w(c),
                                .ny = out_h(c),
                                .sx = c->stride,
                                .sy = c->stride,
                                .x0 = -c->pad,
                                .y0 = -c->pad,
                                .dx = c->dilation,
                                .dy = c->dilation,
                                .kx = c->k,
                                .cb = blocks_in(c)};
}

/* Where pixel number r of nx * ny a image is. */
struct spot {
  int32_t x, y, image;
};

static struct spot spot_of(int32_t r, int32_t nx, int32_t ny) {
  return (struct spot){r % nx, r / nx % ny, r / nx / ny};
}

/* Rows first .. first + rows - 1 of a pass, and weights for the products of all of them. */
static void forward_rows(struct build *b, int32_t first, uint32_t rows, int32_t group) {
  const struct ct_conv *c = b->c;
  const struct spot p = spot_of(first, out_w(c), out_h(c));
  const int32_t parts = c->lines ? c->k : 1;
  struct ct_walk_shape s = input_shape(c);
  const uint32_t base = x_at(c, b->d, 0, group, 0, 0);
  for (int32_t i = 0; i < parts; ++i, s.y0 += c->dilation) {
    const int32_t tap = i * c->k * c->k / parts;
    struct product m = {.rows = rows,
                        .nt = c->grouped ? 1 : (uint32_t)c->nb,
                        .bn = 16,
                        .accum = i > 0,
                        .last = i + 1 == parts};
    m.kt = (uint32_t)(c->k * c->k / parts * blocks_in(c));
    m.bk = 16 * c->nb;
    m.b = weights_at(c, b->d, tap, 0, group);
    if (i == 0 || parts > 1) walk(b, &s);
    product(b, &m, ct_walk_a(&s, base, p.x, p.y, p.image),
            ct_walk_pos(&s, p.x, p.y, (uint32_t)(c->images - p.image)));
  }
  drain(b, (rows + 15) / 16 * (c->grouped ? 1 : (unsigned)c->nb));
}

static uint32_t rows_of(int32_t left, int32_t nt) {
  const int32_t most = 16 * (8 / nt);
  return (uint32_t)(left < most ? left : most);
}

static void forward(struct build *b) {
  const struct ct_conv *c = b->c;
  const int32_t nt = c->grouped ? 1 : c->nb;
  for (int32_t g = 0; g < (c->grouped ? c->nb : 1); ++g)
    for (int32_t r = 0; r < pixels(c); r += (int32_t)rows_of(pixels(c) - r, nt))
      forward_rows(b, r, rows_of(pixels(c) - r, nt), g);
}

/* Along one axis: whether tap i falls on an output for input pixels phase, phase + stride, ..., and
 * on which for the first. */
static bool tap_of_phase(const struct ct_conv *c, int32_t phase, int32_t i, int32_t *first) {
  const int32_t at = phase + c->pad - i * c->dilation;
  *first = at / c->stride;
  return at % c->stride == 0;
}

static int32_t phase_size(int32_t size, int32_t phase, int32_t stride) {
  return (size - phase + stride - 1) / stride;
}

/* The output's gradient as it lies, seen by input pixels of a phase. */
static struct ct_walk_shape gradient_shape(const struct ct_conv *c, int32_t px, int32_t py) {
  return (struct ct_walk_shape){.w = out_w(c),
                                .h = out_h(c),
                                .pixel = 1,
                                .line = out_w(c),
                                .image = out_w(c) * out_h(c),
                                .block = plane(c),
                                .nx = phase_size(c->w, px, c->stride),
                                .ny = phase_size(c->h, py, c->stride),
                                .sx = 1,
                                .sy = 1,
                                .dx = -c->dilation,
                                .dy = -c->dilation,
                                .kx = 1,
                                .cb = c->grouped ? 1 : c->nb};
}

/* Taps of the phase one by one, or, where none is left out and one input block sees all, in one. */
static void input_rows(struct build *b, int32_t px, int32_t py, int32_t first, int32_t block) {
  const struct ct_conv *c = b->c;
  const bool one = c->stride == 1 && c->cb == 1;
  struct ct_walk_shape s = gradient_shape(c, px, py);
  const int32_t left = s.nx * s.ny * c->images - first, nt = c->grouped ? 1 : c->cb;
  const struct spot p = spot_of(first, s.nx, s.ny);
  struct product m = {.rows = rows_of(left, nt), .nt = (uint32_t)nt, .b_trans = true, .bk = 16};
  const uint32_t base = dy_at(c, b->d, c->grouped ? block : 0, 0);
  int32_t taps = 0;
  for (int32_t i = 0; i < c->k * c->k; ++i) {
    int32_t x, y;
    taps += tap_of_phase(c, px, i % c->k, &x) && tap_of_phase(c, py, i / c->k, &y);
  }
  for (int32_t i = 0, done = 0; i < (one ? 1 : c->k * c->k); ++i) {
    if (!tap_of_phase(c, px, i % c->k, &s.x0) || !tap_of_phase(c, py, i / c->k, &s.y0)) continue;
    m.kt = (uint32_t)(s.cb * (one ? taps : 1));
    if (one) s.kx = c->k;
    m.b = weights_at(c, b->d, i, 0, block);
    m.bn = 16 * c->nb;
    m.accum = done > 0;
    m.last = one || ++done == taps;
    walk(b, &s);
    product(b, &m, ct_walk_a(&s, base, p.x, p.y, p.image),
            ct_walk_pos(&s, p.x, p.y, (uint32_t)(c->images - p.image)));
  }
  if (taps) drain(b, (m.rows + 15) / 16 * m.nt);
}

static void input(struct build *b) {
  const struct ct_conv *c = b->c;
  for (int32_t phase = 0; phase < c->stride * c->stride; ++phase) {
    const int32_t px = phase % c->stride, py = phase / c->stride, nt = c->grouped ? 1 : c->cb;
    const int32_t all =
        phase_size(c->w, px, c->stride) * phase_size(c->h, py, c->stride) * c->images;
    for (int32_t g = 0; g < (c->grouped ? c->nb : 1); ++g)
      for (int32_t r = 0; r < all; r += (int32_t)rows_of(all - r, nt))
        input_rows(b, px, py, r, g);
  }
}

/* Taps first .. first + count - 1 of a line, all input blocks. */
static void weight_tiles(struct build *b, int32_t line, int32_t first, int32_t count,
                         int32_t group) {
  const struct ct_conv *c = b->c;
  const uint32_t nt = c->grouped ? 1 : (uint32_t)c->nb;
  struct ct_walk_shape s = input_shape(c);
  struct product m = {.rows = 16 * (uint32_t)(count * blocks_in(c)),
                      .nt = nt,
                      .a_trans = true,
                      .b_trans = true,
                      .last = true};
  s.x0 += first * c->dilation;
  s.y0 += line * c->dilation;
  m.kt = (uint32_t)plane(c) / 16;
  m.b = dy_at(c, b->d, group, 0);
  m.bn = plane(c);
  m.bk = 16;
  walk(b, &s);
  product(b, &m, ct_walk_a(&s, x_at(c, b->d, 0, group, 0, 0), 0, 0, 0),
          ct_walk_pos(&s, 0, 0, (uint32_t)c->images));
  drain(b, m.rows / 16 * nt);
}

static int32_t taps_of(const struct ct_conv *c, int32_t left) {
  const int32_t most = 8 / (blocks_in(c) * (c->grouped ? 1 : c->nb));
  return left < most ? left : most;
}

static void weight(struct build *b) {
  const struct ct_conv *c = b->c;
  for (int32_t g = 0; g < (c->grouped ? c->nb : 1); ++g)
    for (int32_t line = 0; line < c->k; ++line)
      for (int32_t i = 0; i < c->k; i += taps_of(c, c->k - i))
        weight_tiles(b, line, i, taps_of(c, c->k - i), g);
}

void ct_conv_program(const struct ct_conv *c, const struct ct_conv_data *d, enum ct_conv_pass pass,
                     uint32_t in, uint32_t out, struct ct_gen_prog *prog) {
  static void (*const passes[])(struct build * b) = {forward, input, weight};
  struct build b = {.c = c, .d = d, .prog = prog, .out = out};
  memset(prog, 0, sizeof *prog);
  load(&b, in);
  passes[pass](&b);
  add(&b, CT_OP_END);
}

/* ---- What has to come out ---- */

/* A sum over k steps: in FP32 as the contract says, in double, and how far the two may be apart. */
struct sum {
  uint32_t bits;
  double value, radius, magnitude;
  unsigned steps;
};

/* Adds a step: two blocks; off: how far each element of a may be from what it stands for. */
static void add_step(struct sum *s, const struct ct_conv_word *a, const struct ct_conv_word *b,
                     const double *exact) {
  int32_t dot = 0;
  for (unsigned i = 0; i < 16; ++i) {
    const double bv = ldexp(b->q[i], b->e - 133), av = ldexp(a->q[i], a->e - 133);
    dot += a->q[i] * b->q[i];
    s->value += (exact ? exact[i] : av) * bv;
    s->magnitude += fabs(av * bv);
    if (exact) s->radius += ldexp(0.5, a->e - 133) * fabs(bv);
  }
  s->bits = ct_fp_add(s->bits, ct_fp_term(dot, a->e, b->e));
  ++s->steps;
}

static void keep(struct ct_conv_result *r, unsigned tile, unsigned row, unsigned column,
                 const struct sum *s) {
  assert_true(tile < CT_CONV_TILES);
  r->bits[tile][row][column] = s->bits;
  r->value[tile][row][column] = s->value;
  r->radius[tile][row][column] = s->radius + s->magnitude * s->steps * ldexp(1, -23);
  if (row >= r->rows[tile]) r->rows[tile] = row + 1;
}

static const struct ct_conv_word *x_word(const struct ct_conv *c, const struct ct_conv_data *d,
                                         const struct spot *p, int32_t tap, int32_t b) {
  static const struct ct_conv_word none;
  const int32_t x = p->x * c->stride + tap % c->k * c->dilation - c->pad;
  const int32_t y = p->y * c->stride + tap / c->k * c->dilation - c->pad;
  if (p->image >= c->images || x < 0 || x >= c->w || y < 0 || y >= c->h) return &none;
  return &d->word[x_at(c, d, p->image, b, y, x)];
}

/* Output channel j of block n at pixel r. */
static struct sum forward_sum(const struct ct_conv *c, const struct ct_conv_data *d, int32_t r,
                              int32_t n, unsigned j) {
  struct sum s = {0};
  const struct spot p = spot_of(r, out_w(c), out_h(c));
  for (int32_t tap = 0; tap < c->k * c->k; ++tap)
    for (int32_t b = 0; b < blocks_in(c); ++b)
      add_step(&s, x_word(c, d, &p, tap, c->grouped ? n : b),
               &d->word[weights_at(c, d, tap, b, n) + j], NULL);
  return s;
}

/* Channel j of a weight tile, as a block over output channels. */
static struct ct_conv_word weight_column(const struct ct_conv_data *d, uint32_t at, unsigned j) {
  struct ct_conv_word w = {.e = d->word[at].e};
  for (unsigned i = 0; i < 16; ++i)
    w.q[i] = d->word[at + i].q[j];
  return w;
}

/* Input channel j of block b at pixel (x, y): every output that has seen it, tap by tap. */
static struct sum input_sum(const struct ct_conv *c, const struct ct_conv_data *d,
                            const struct spot *p, int32_t b, unsigned j) {
  static const struct ct_conv_word none;
  struct sum s = {0};
  for (int32_t tap = 0; tap < c->k * c->k; ++tap) {
    const int32_t x = p->x + c->pad - tap % c->k * c->dilation,
                  y = p->y + c->pad - tap / c->k * c->dilation;
    if (x % c->stride || y % c->stride) continue;
    const int32_t ox = x / c->stride, oy = y / c->stride;
    const bool there = x >= 0 && y >= 0 && ox < out_w(c) && oy < out_h(c);
    for (int32_t n = c->grouped ? b : 0; n < (c->grouped ? b + 1 : c->nb); ++n) {
      const struct ct_conv_word w = weight_column(d, weights_at(c, d, tap, b, n), j);
      const int32_t pixel = (p->image * out_h(c) + oy) * out_w(c) + ox;
      add_step(&s, there ? &d->word[dy_at(c, d, n, pixel)] : &none, &w, NULL);
    }
  }
  return s;
}

/* Input channel j of block b over pixels 16 * k to 16 * k + 15 at a tap: gathered, by
 * floating-point arithmetic. */
static struct ct_conv_word gathered(const struct ct_conv *c, const struct ct_conv_data *d,
                                    int32_t k, int32_t tap, int32_t b, unsigned j, double *exact) {
  struct ct_conv_word g = {.e = 0};
  const struct ct_conv_word *row[16];
  for (int32_t i = 0; i < 16; ++i) {
    const struct spot p = spot_of(16 * k + i, out_w(c), out_h(c));
    row[i] = x_word(c, d, &p, tap, b);
    if (row[i]->e > g.e) g.e = row[i]->e;
  }
  for (unsigned i = 0; i < 16; ++i) {
    g.q[i] = row[i]->e ? (int8_t)nearbyint(ldexp(row[i]->q[j], row[i]->e - g.e)) : 0;
    exact[i] = row[i]->e ? ldexp(row[i]->q[j], row[i]->e - 133) : 0;
  }
  return g;
}

/* Weight (input channel i of block b, output channel j of block n) at a tap. */
static struct sum weight_sum(const struct ct_conv *c, const struct ct_conv_data *d, int32_t tap,
                             int32_t b, unsigned i, int32_t n, unsigned j) {
  struct sum s = {0};
  for (int32_t k = 0; k < plane(c) / 16; ++k) {
    double exact[16];
    const struct ct_conv_word a = gathered(c, d, k, tap, c->grouped ? n : b, i, exact);
    const struct ct_conv_word dy = weight_column(d, dy_at(c, d, n, 16 * k), j);
    add_step(&s, &a, &dy, exact);
  }
  return s;
}

/* Results come in the order of the programs: chunks of rows or taps; in a chunk block by block of
 * columns, then tile by tile of rows. */
static unsigned expect_forward(const struct ct_conv *c, const struct ct_conv_data *d,
                               struct ct_conv_result *r) {
  const int32_t nt = c->grouped ? 1 : c->nb;
  unsigned tile = 0;
  for (int32_t g = 0; g < c->nb / nt; ++g) {
    for (int32_t first = 0; first < pixels(c); first += (int32_t)rows_of(pixels(c) - first, nt)) {
      const uint32_t rows = rows_of(pixels(c) - first, nt), mt = (rows + 15) / 16;
      for (uint32_t i = 0; i < 16 * rows * (uint32_t)nt; ++i) {
        const uint32_t j = i % 16, n = i / 16 % (uint32_t)nt, row = i / 16 / (uint32_t)nt;
        const struct sum s = forward_sum(c, d, first + (int32_t)row, g + (int32_t)n, j);
        keep(r, tile + n * mt + row / 16, row % 16, j, &s);
      }
      tile += mt * (uint32_t)nt;
    }
  }
  return tile;
}

static unsigned expect_phase(const struct ct_conv *c, const struct ct_conv_data *d, int32_t phase,
                             unsigned tile, struct ct_conv_result *r) {
  const int32_t px = phase % c->stride, py = phase / c->stride, nt = c->grouped ? 1 : c->cb;
  const int32_t nx = phase_size(c->w, px, c->stride), ny = phase_size(c->h, py, c->stride),
                all = nx * ny * c->images;
  for (int32_t g = 0; g < c->cb / nt; ++g) {
    for (int32_t first = 0; first < all; first += (int32_t)rows_of(all - first, nt)) {
      const uint32_t rows = rows_of(all - first, nt), mt = (rows + 15) / 16;
      for (uint32_t i = 0; i < 16 * rows * (uint32_t)nt; ++i) {
        const uint32_t j = i % 16, n = i / 16 % (uint32_t)nt, row = i / 16 / (uint32_t)nt;
        struct spot p = spot_of(first + (int32_t)row, nx, ny);
        p.x = p.x * c->stride + px;
        p.y = p.y * c->stride + py;
        const struct sum s = input_sum(c, d, &p, c->grouped ? g : (int32_t)n, j);
        keep(r, tile + n * mt + row / 16, row % 16, j, &s);
      }
      tile += mt * (uint32_t)nt;
    }
  }
  return tile;
}

static unsigned expect_input(const struct ct_conv *c, const struct ct_conv_data *d,
                             struct ct_conv_result *r) {
  unsigned tile = 0;
  for (int32_t phase = 0; phase < c->stride * c->stride; ++phase)
    tile = expect_phase(c, d, phase, tile, r);
  return tile;
}

static unsigned expect_weight(const struct ct_conv *c, const struct ct_conv_data *d,
                              struct ct_conv_result *r) {
  const uint32_t nt = c->grouped ? 1 : (uint32_t)c->nb, blocks = (uint32_t)blocks_in(c);
  unsigned tile = 0;
  for (uint32_t g = 0; g < (uint32_t)c->nb / nt; ++g) {
    for (int32_t tap = 0; tap < c->k * c->k;) {
      const uint32_t taps = (uint32_t)taps_of(c, c->k - tap % c->k), mt = taps * blocks;
      for (uint32_t i = 0; i < 256 * mt * nt; ++i) {
        const uint32_t j = i % 16, row = i / 16 % 16, m = i / 256 % mt, n = i / 256 / mt;
        const struct sum s = weight_sum(c, d, tap + (int32_t)(m / blocks), (int32_t)(m % blocks),
                                        row, (int32_t)(g + n), j);
        keep(r, tile + n * mt + m, row, j, &s);
      }
      tile += mt * nt;
      tap += (int32_t)taps;
    }
  }
  return tile;
}

unsigned ct_conv_expect(const struct ct_conv *c, const struct ct_conv_data *d,
                        enum ct_conv_pass pass, struct ct_conv_result *r) {
  memset(r, 0, sizeof *r);
  if (pass == CT_CONV_FORWARD) return expect_forward(c, d, r);
  return pass == CT_CONV_INPUT ? expect_input(c, d, r) : expect_weight(c, d, r);
}

/* ---- Ends of jobs ---- */

enum {
  WALKS_WELL,
  NO_WALK,
  ONLY_PIXELS,
  ONLY_TAPS,
  NO_WIDTH,
  NO_LINES,
  NO_TAPS,
  NO_BLOCKS,
  PIXELS_SIGNAL,
  TAPS_WAIT,
  LEAVES,
  LEAVES_TURNED,
  LEAVES_BACKWARDS,
  PADDING_OUTSIDE,
  BEGINS_OUTSIDE,
  ENDS
};

const struct ct_conv_end ct_conv_ends[] = {
    [WALKS_WELL] = {"a walk", CT_DEV_OK, 0},
    [NO_WALK] = {"Walk without one, though the job before had one", CT_DEV_ILLEGAL, 0},
    [ONLY_PIXELS] = {"Walk without WTAP", CT_DEV_ILLEGAL, 1},
    [ONLY_TAPS] = {"Walk without WPIX", CT_DEV_ILLEGAL, 1},
    [NO_WIDTH] = {"WPIX with W = 0", CT_DEV_ILLEGAL, 0},
    [NO_LINES] = {"WPIX with H = 0", CT_DEV_ILLEGAL, 0},
    [NO_TAPS] = {"WTAP with KX = 0", CT_DEV_ILLEGAL, 1},
    [NO_BLOCKS] = {"WTAP with CB = 0", CT_DEV_ILLEGAL, 1},
    [PIXELS_SIGNAL] = {"WPIX that signals", CT_DEV_ILLEGAL, 0},
    [TAPS_WAIT] = {"WTAP that waits", CT_DEV_ILLEGAL, 1},
    [LEAVES] = {"a walk out of the window", CT_DEV_SPM_WINDOW, CT_CONV_ENDS_WINDOW},
    [LEAVES_TURNED] = {"a transposed walk out of the window", CT_DEV_SPM_WINDOW,
                       CT_CONV_ENDS_WINDOW},
    [LEAVES_BACKWARDS] = {"a walk below the window", CT_DEV_SPM_WINDOW, 0xfffff},
    [PADDING_OUTSIDE] = {"padding outside the window", CT_DEV_OK, 0},
    [BEGINS_OUTSIDE] = {"a walk whose first pixel is padding outside the window", CT_DEV_OK, 0},
};
const unsigned ct_conv_end_count = sizeof ct_conv_ends / sizeof *ct_conv_ends;

/* What is wrong with the walk of a program. */
static void damage(unsigned number, struct ct_cmd *wpix, struct ct_cmd *wtap) {
  if (number == NO_WIDTH) put(wpix, CT_F_WPIX_W, 0);
  if (number == NO_LINES) put(wpix, CT_F_WPIX_H, 0);
  if (number == NO_TAPS) put(wtap, CT_F_WTAP_KX, 0);
  if (number == NO_BLOCKS) put(wtap, CT_F_WTAP_CB, 0);
  if (number == PIXELS_SIGNAL) put(wpix, CT_F_ALL_SIG1, CT_SEM(3));
  if (number == TAPS_WAIT) put(wtap, CT_F_ALL_WAIT1, CT_SEM(3));
  if (number == LEAVES_BACKWARDS) put(wpix, CT_F_WPIX_AX, -1);
}

void ct_conv_end_program(unsigned number, struct ct_gen_prog *prog) {
  const struct ct_walk_shape s = {.w = 16,
                                  .h = 1,
                                  .pixel = 1,
                                  .nx = 16,
                                  .ny = 1,
                                  .sx = 1,
                                  .sy = 1,
                                  .x0 = number == BEGINS_OUTSIDE ? -3 : 0,
                                  .kx = 1,
                                  .cb = 1};
  const uint32_t a[ENDS] = {[LEAVES] = CT_CONV_ENDS_WINDOW - 5,
                            [LEAVES_TURNED] = CT_CONV_ENDS_WINDOW - 5,
                            [LEAVES_BACKWARDS] = 7,
                            [PADDING_OUTSIDE] = CT_CONV_ENDS_WINDOW,
                            [BEGINS_OUTSIDE] = 0xfffff & (uint32_t)-3};
  struct build b = {.prog = prog};
  struct ct_cmd wpix, wtap;
  memset(prog, 0, sizeof *prog);
  assert_true(ct_walk_commands(&s, &wpix, &wtap));
  damage(number, &wpix, &wtap);
  if (number != NO_WALK && number != ONLY_TAPS) *add(&b, CT_OP_WPIX) = wpix;
  if (number != NO_WALK && number != ONLY_PIXELS) *add(&b, CT_OP_WTAP) = wtap;
  const struct product m = {.rows = 16, .kt = 1, .nt = 1, .a_trans = number == LEAVES_TURNED};
  product(&b, &m, a[number], ct_walk_pos(&s, 0, 0, number != PADDING_OUTSIDE));
  add(&b, CT_OP_END);
}
