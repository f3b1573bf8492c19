/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tile programs over matrices: random programs of random inputs and outputs to the bit, functions
 * against libm, optimisers, small and large windows, refusals.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_num.h"
#include "ct_tile.h"
#include "kernel_bed.h"

enum { MOST_ROWS = 100, MOST_COLS = 70, MOST = MOST_ROWS * MOST_COLS, ONE = 0x3f800000 };

/* ---- What a program computes, number by number ---- */

static uint32_t negative(uint32_t x) {
  return x ^ CT_FP_SIGN;
}

static uint32_t scaled(const struct kbed *b, const struct ct_tile_op *op, uint32_t x) {
  const uint32_t s = op->s_reg ? b->number[op->s_reg - KB_NUMBER] : kb_bits(op->s);
  const uint32_t t = op->t_reg ? b->number[op->t_reg - KB_NUMBER] : kb_bits(op->t);
  if (s != ONE) x = ct_fp_mul(x, s);
  return t ? ct_fp_add(x, t) : x;
}

static uint32_t plus_one(uint32_t x) {
  return ct_fp_add(x, ONE);
}

static uint32_t one_value(const struct kbed *b, const struct ct_tile_op *op, uint32_t x,
                          uint32_t y) {
  const uint32_t s = op->s_reg ? b->number[op->s_reg - KB_NUMBER] : kb_bits(op->s);
  switch (op->fn) {
    case CT_TILE_ADD:
      return ct_fp_add(x, y);
    case CT_TILE_SUB:
      return ct_fp_add(x, negative(y));
    case CT_TILE_MUL:
      return ct_fp_mul(x, y);
    case CT_TILE_DIV:
      return ct_fp_mul(x, ct_fn_recip(y));
    case CT_TILE_MAX:
      return ct_fp_max(x, y);
    case CT_TILE_MIN:
      return ct_fp_min(x, y);
    case CT_TILE_SELECT:
      return ct_fp_gt(y, 0) ? x : 0;
    case CT_TILE_EQUAL:
      return ct_fp_eq(x, y) ? ONE : 0;
    case CT_TILE_AXPB:
      return scaled(b, op, x);
    case CT_TILE_RELU:
      return ct_fp_relu(x);
    case CT_TILE_MAX_S:
      return ct_fp_max(x, s);
    case CT_TILE_MIN_S:
      return ct_fp_min(x, s);
    case CT_TILE_SELECT_S:
      return ct_fp_gt(s, 0) ? ct_fp_add(x, 0x80000000) : 0;
    case CT_TILE_EXP:
      return ct_fn_exp(x);
    case CT_TILE_LOG:
      return ct_fn_log(x);
    case CT_TILE_RECIP:
      return ct_fn_recip(x);
    case CT_TILE_RSQRT:
      return ct_fn_rsqrt(x);
    case CT_TILE_SQRT:
      return ct_fn_recip(ct_fn_rsqrt(x));
    case CT_TILE_SIGMOID:
      return ct_fn_recip(plus_one(ct_fn_exp(ct_fp_mul(x, kb_bits(-1)))));
    case CT_TILE_TANH:
      return ct_fp_add(
          ct_fp_mul(ct_fn_recip(plus_one(ct_fn_exp(ct_fp_mul(x, kb_bits(-2))))), kb_bits(2)),
          kb_bits(-1));
    case CT_TILE_SIGMOID_BACK:
      return ct_fp_mul(y, ct_fp_mul(plus_one(ct_fp_mul(x, kb_bits(-1))), x));
    case CT_TILE_TANH_BACK:
      return ct_fp_mul(y, plus_one(ct_fp_mul(ct_fp_mul(x, x), kb_bits(-1))));
    default:
      fail_msg("no reference for function %d", (int)op->fn);
      return 0;
  }
}

/* An input and what it holds. */
struct input {
  uint32_t x[MOST];
};

static uint32_t input_at(const struct ct_tilewise *k, const struct input *in, unsigned v,
                         uint32_t row, uint32_t col) {
  const struct ct_tile_in *i = &k->in[v];
  if (i->spread == CT_SPREAD_ROWS || i->spread == CT_SPREAD_ALL) row = 0;
  if (i->spread == CT_SPREAD_COLS || i->spread == CT_SPREAD_ALL) col = 0;
  const bool lanes = i->spread == CT_SPREAD_COLS || i->spread == CT_SPREAD_ALL;
  const uint32_t x = in[v].x[(size_t)row * i->mat.cols + col];
  return lanes ? ct_fp_add(x, 0) : x;
}

static void reference(const struct kbed *b, const struct ct_tilewise *k, const struct input *in,
                      unsigned out, uint32_t *want) {
  for (uint32_t r = 0; r < k->rows; ++r)
    for (uint32_t c = 0; c < k->cols; ++c) {
      uint32_t value[CT_TILE_VALUES] = {0};
      for (unsigned v = 0; v < k->ins; ++v)
        value[v] = input_at(k, in, v, r, c);
      for (unsigned i = 0; i < k->ops; ++i)
        value[k->ins + i] = one_value(b, &k->op[i], value[k->op[i].a], value[k->op[i].b]);
      want[(size_t)r * k->cols + c] = value[k->out[out].value];
    }
}

/* ---- Random programs ---- */

static const enum ct_tile_fn exact[] = {
    CT_TILE_ADD,       CT_TILE_SUB,     CT_TILE_MUL,     CT_TILE_DIV,  CT_TILE_MAX,
    CT_TILE_MIN,       CT_TILE_SELECT,  CT_TILE_EQUAL,   CT_TILE_AXPB, CT_TILE_RELU,
    CT_TILE_MAX_S,     CT_TILE_MIN_S,   CT_TILE_EXP,     CT_TILE_LOG,  CT_TILE_RECIP,
    CT_TILE_RSQRT,     CT_TILE_SQRT,    CT_TILE_SIGMOID, CT_TILE_TANH, CT_TILE_SIGMOID_BACK,
    CT_TILE_TANH_BACK, CT_TILE_SELECT_S};
enum { EXACT = sizeof exact / sizeof *exact };

static float some_number(ct_rng *rng) {
  return ldexpf((float)(int32_t)ct_rng_below(rng, 2001) - 1000, (int)ct_rng_below(rng, 4) - 8);
}

static void random_input(struct kbed *b, struct ct_tilewise *k, struct input *in, unsigned v) {
  struct ct_tile_in *i = &k->in[v];
  const unsigned keeps = ct_rng_percent(&b->rng, 50)   ? KB_F32
                         : ct_rng_percent(&b->rng, 50) ? KB_ROWS
                                                       : KB_SQUARE;
  i->spread =
      ct_rng_percent(&b->rng, 50) ? CT_SPREAD_NONE : (enum ct_spread)ct_rng_below(&b->rng, 4);
  const bool row = i->spread == CT_SPREAD_ROWS || i->spread == CT_SPREAD_ALL;
  const bool col = i->spread == CT_SPREAD_COLS || i->spread == CT_SPREAD_ALL;
  i->mat = kb_mat(b, row ? 1 : k->rows, col ? 1 : k->cols, keeps, false);
  for (uint32_t x = 0; x < i->mat.rows * i->mat.cols; ++x)
    in[v].x[x] = kb_bits(some_number(&b->rng));
  kb_put(b, &i->mat, in[v].x);
}

static void random_op(struct kbed *b, struct ct_tilewise *k, unsigned i) {
  struct ct_tile_op *op = &k->op[i];
  const unsigned values = k->ins + i;
  /* The last value often, so that there are chains. */
  *op = (struct ct_tile_op){
      .fn = exact[ct_rng_below(&b->rng, EXACT)],
      .a = ct_rng_percent(&b->rng, 60) ? values - 1 : ct_rng_below(&b->rng, values),
      .b = ct_rng_below(&b->rng, values),
      .s = ct_rng_percent(&b->rng, 30) ? 1 : some_number(&b->rng),
      .t = ct_rng_percent(&b->rng, 30) ? 0 : some_number(&b->rng)};
  if (ct_rng_percent(&b->rng, 30)) op->s_reg = KB_NUMBER + ct_rng_below(&b->rng, 2);
  if (ct_rng_percent(&b->rng, 30)) op->t_reg = KB_NUMBER + ct_rng_below(&b->rng, 2);
}

static void random_program(struct kbed *b, struct ct_tilewise *k, struct input *in) {
  *k = (struct ct_tilewise){.rows = 1 + ct_rng_below(&b->rng, MOST_ROWS),
                            .cols = 1 + ct_rng_below(&b->rng, MOST_COLS),
                            .ins = 1 + ct_rng_below(&b->rng, 4),
                            .ops = ct_rng_below(&b->rng, 10),
                            .outs = 1 + ct_rng_below(&b->rng, 2)};
  if (ct_rng_percent(&b->rng, 30)) k->rows = 16 * (1 + ct_rng_below(&b->rng, 6));
  for (unsigned v = 0; v < k->ins; ++v)
    random_input(b, k, in, v);
  for (unsigned i = 0; i < k->ops; ++i)
    random_op(b, k, i);
  for (unsigned o = 0; o < k->outs; ++o) {
    k->out[o].value = o ? ct_rng_below(&b->rng, k->ins + k->ops) : k->ins + k->ops - 1;
    k->out[o].mat = kb_mat(b, k->rows, k->cols, 1 + ct_rng_below(&b->rng, 7), true);
    k->out[o].mat.narrow = ct_rng_below(&b->rng, 7);
  }
}

static uint32_t random_window(ct_rng *rng) {
  return ct_rng_percent(rng, 50) ? 700 + ct_rng_below(rng, 600) : 1500 + ct_rng_below(rng, 20000);
}

static void check_outputs(const struct kbed *b, const struct ct_tilewise *k, const struct input *in,
                          uint32_t *want) {
  for (unsigned o = 0; o < k->outs; ++o) {
    reference(b, k, in, o, want);
    kb_check(b, &k->out[o].mat, want, "an output");
  }
}

/* CT_ERR_NO_SPACE for registers is fine, as long as it is not the rule. */
static void test_random(void **state) {
  (void)state;
  enum { PROGRAMS = 400 };
  struct kbed b;
  struct input *in = calloc(CT_TILE_INS, sizeof *in);
  uint32_t *want = calloc(MOST, sizeof *want);
  unsigned refused = 0;
  assert_true(in && want);
  kb_open(&b, "emu:", 1);
  for (unsigned i = 0; i < PROGRAMS; ++i) {
    struct ct_tilewise k;
    struct ct_codes codes;
    char why[256] = "";
    kb_clear(&b);
    b.number[0] = kb_bits(some_number(&b.rng));
    b.number[1] = kb_bits(some_number(&b.rng));
    random_program(&b, &k, in);
    const uint32_t window = random_window(&b.rng);
    const struct ct_room room = kb_room(window);
    const int err = ct_kernel_tilewise(&k, &room, &codes, &(struct ct_why){why, sizeof why});
    if (err == CT_ERR_NO_SPACE && strstr(why, "tile registers")) {
      ++refused;
      continue;
    }
    if (err) fail_msg("program %u: %s", i, why);
    kb_run(&b, &codes, window);
    check_outputs(&b, &k, in, want);
  }
  print_message("%u of %u programs take too many registers\n", refused, (unsigned)PROGRAMS);
  assert_true(refused < PROGRAMS / 10);
  kb_close(&b);
  free(in);
  free(want);
}

/* ---- One function against libm ---- */

static double libm(enum ct_tile_fn fn, double x, double y) {
  switch (fn) {
    case CT_TILE_DIV:
      return x / y;
    case CT_TILE_EXP:
      return exp(x);
    case CT_TILE_LOG:
      return log(x);
    case CT_TILE_RECIP:
      return 1 / x;
    case CT_TILE_RSQRT:
      return 1 / sqrt(x);
    case CT_TILE_SQRT:
      return sqrt(x);
    case CT_TILE_SIGMOID:
      return 1 / (1 + exp(-x));
    case CT_TILE_TANH:
      return tanh(x);
    case CT_TILE_ERF:
      return erf(x);
    case CT_TILE_GELU:
      return x * erfc(-x / sqrt(2)) / 2;
    case CT_TILE_SIGMOID_BACK:
      return y * x * (1 - x);
    case CT_TILE_TANH_BACK:
      return y * (1 - x * x);
    default:
      fail_msg("function %d", (int)fn);
      return 0;
  }
}

/* Arguments lo..hi of the first operand; how far off, of the larger of 1 and the result. */
static const struct {
  enum ct_tile_fn fn;
  float lo, hi;
  double most;
} functions[] = {{CT_TILE_DIV, -9, 9, 0x1p-22},         {CT_TILE_EXP, -20, 9, 0x1p-22},
                 {CT_TILE_LOG, 0.01f, 90, 0x1p-21},     {CT_TILE_RECIP, 0.1f, 9, 0x1p-23},
                 {CT_TILE_RSQRT, 0.01f, 90, 0x1p-22},   {CT_TILE_SQRT, 0.01f, 90, 0x1p-22},
                 {CT_TILE_SIGMOID, -20, 20, 0x1p-22},   {CT_TILE_TANH, -9, 9, 0x1p-22},
                 {CT_TILE_ERF, -5, 5, 0x1.2p-21},       {CT_TILE_GELU, -9, 9, 0x1.8p-22},
                 {CT_TILE_SIGMOID_BACK, 0, 1, 0x1p-22}, {CT_TILE_TANH_BACK, -1, 1, 0x1p-22}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void run_program(struct kbed *b, const struct ct_tilewise *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  const int err = ct_kernel_tilewise(k, &room, &codes, &(struct ct_why){why, sizeof why});
  if (err) fail_msg("%s", why);
  kb_run(b, &codes, window);
}

/* Behind a value that was computed, and before one: registers in between. */
static void check_function(struct kbed *b, unsigned f, struct input *in, uint32_t *got) {
  struct ct_tilewise k = {.rows = 1 + ct_rng_below(&b->rng, MOST_ROWS),
                          .cols = 1 + ct_rng_below(&b->rng, MOST_COLS),
                          .ins = 2,
                          .ops = 3,
                          .outs = 1,
                          .op = {{.fn = CT_TILE_ADD, .a = 0, .b = 0},
                                 {.fn = functions[f].fn, .a = 2, .b = 1},
                                 {.fn = CT_TILE_AXPB, .a = 3, .s = 0.5f}},
                          .out = {{.value = 4}}};
  kb_clear(b);
  const uint32_t n = k.rows * k.cols;
  for (unsigned v = 0; v < 2; ++v) {
    k.in[v].mat = kb_mat(b, k.rows, k.cols, KB_F32, false);
    for (uint32_t i = 0; i < n; ++i)
      in[v].x[i] = kb_bits(
          (v ? 1.0f : functions[f].lo + (functions[f].hi - functions[f].lo) * (float)i / (float)n) /
          2);
    kb_put(b, &k.in[v].mat, in[v].x);
  }
  k.out[0].mat = kb_mat(b, k.rows, k.cols, KB_F32, true);
  run_program(b, &k, 1000);
  kb_get(b, &k.out[0].mat, got);
  for (uint32_t i = 0; i < n; ++i) {
    const double x = 2 * (double)kb_float(in[0].x[i]), y = (double)kb_float(in[1].x[i]);
    const double want = libm(functions[f].fn, x, y) / 2;
    const double error = fabs((double)kb_float(got[i]) - want);
    if (!(error <= functions[f].most * fmax(1, fabs(want))))
      fail_msg("function %d of %g: %g, not %g", (int)functions[f].fn, x, (double)kb_float(got[i]),
               want);
  }
}

static void test_functions(void **state) {
  (void)state;
  struct kbed b;
  struct input *in = calloc(2, sizeof *in);
  uint32_t *got = calloc(MOST, sizeof *got);
  assert_true(in && got);
  kb_open(&b, "emu:", 2);
  for (unsigned f = 0; f < FUNCTIONS; ++f)
    check_function(&b, f, in, got);
  kb_close(&b);
  free(in);
  free(got);
}

/* ---- Optimisers: in place, rates from arguments ---- */

/* m = m * mu + (g + w * decay); w = w - rate * m. */
static void momentum(struct ct_tilewise *k) {
  *k = (struct ct_tilewise){.ins = 3, .ops = 4, .outs = 2};
  k->op[0] = (struct ct_tile_op){.fn = CT_TILE_AXPB, .a = 0, .s = 0x1p-10f};
  k->op[1] = (struct ct_tile_op){.fn = CT_TILE_ADD, .a = 3, .b = 2};
  k->op[2] = (struct ct_tile_op){.fn = CT_TILE_AXPB, .a = 1, .s_reg = KB_NUMBER};
  k->op[3] = (struct ct_tile_op){.fn = CT_TILE_ADD, .a = 5, .b = 4};
  k->op[k->ops++] = (struct ct_tile_op){.fn = CT_TILE_AXPB, .a = 6, .s_reg = KB_NUMBER + 1};
  k->op[k->ops++] = (struct ct_tile_op){.fn = CT_TILE_ADD, .a = 7, .b = 0};
  k->out[0].value = 8;
  k->out[1].value = 6;
}

/* m = 0.875 m + 0.125 g; v = 0.75 v + 0.25 g^2; w = w + rate * m / (sqrt(v) + eps). */
static void adam(struct ct_tilewise *k) {
  *k = (struct ct_tilewise){.ins = 4, .outs = 3};
  const struct ct_tile_op ops[] = {{.fn = CT_TILE_AXPB, .a = 1, .s = 0.875f},
                                   {.fn = CT_TILE_AXPB, .a = 3, .s = 0.125f},
                                   {.fn = CT_TILE_ADD, .a = 4, .b = 5},
                                   {.fn = CT_TILE_MUL, .a = 3, .b = 3},
                                   {.fn = CT_TILE_AXPB, .a = 7, .s = 0.25f},
                                   {.fn = CT_TILE_AXPB, .a = 2, .s = 0.75f},
                                   {.fn = CT_TILE_ADD, .a = 8, .b = 9},
                                   {.fn = CT_TILE_SQRT, .a = 10},
                                   {.fn = CT_TILE_AXPB, .a = 11, .s = 1, .t = 0x1p-20f},
                                   {.fn = CT_TILE_RECIP, .a = 12},
                                   {.fn = CT_TILE_MUL, .a = 6, .b = 13},
                                   {.fn = CT_TILE_AXPB, .a = 14, .s_reg = KB_NUMBER + 1},
                                   {.fn = CT_TILE_ADD, .a = 15, .b = 0}};
  memcpy(k->op, ops, sizeof ops);
  k->ops = sizeof ops / sizeof *ops;
  k->out[0].value = 16;
  k->out[1].value = 6;
  k->out[2].value = 10;
}

static void check_optimiser(struct kbed *b, void (*program)(struct ct_tilewise *k), uint32_t window,
                            struct input *in, uint32_t *want) {
  struct ct_tilewise k;
  kb_clear(b);
  program(&k);
  k.rows = 1 + ct_rng_below(&b->rng, MOST_ROWS);
  k.cols = 1 + ct_rng_below(&b->rng, MOST_COLS);
  for (unsigned v = 0; v < k.ins; ++v) {
    k.in[v].mat = kb_mat(b, k.rows, k.cols, KB_F32, v + 1 < k.ins);
    for (uint32_t i = 0; i < k.rows * k.cols; ++i)
      in[v].x[i] = kb_bits(fabsf(some_number(&b->rng)));
    kb_put(b, &k.in[v].mat, in[v].x);
    if (v < k.outs) k.out[v].mat = k.in[v].mat;
  }
  const struct ct_mat copy = kb_mat(b, k.rows, k.cols, KB_SQUARE, true);
  k.out[0].mat.keep[CT_KEEP_SQUARE] = copy.keep[CT_KEEP_SQUARE];
  run_program(b, &k, window);
  check_outputs(b, &k, in, want);
}

static void test_optimisers(void **state) {
  (void)state;
  struct kbed b;
  struct input *in = calloc(4, sizeof *in);
  uint32_t *want = calloc(MOST, sizeof *want);
  assert_true(in && want);
  kb_open(&b, "emu:", 3);
  b.number[0] = kb_bits(0.9f);
  b.number[1] = kb_bits(-0.01f);
  for (unsigned i = 0; i < 20; ++i) {
    check_optimiser(&b, momentum, random_window(&b.rng), in, want);
    check_optimiser(&b, adam, random_window(&b.rng), in, want);
  }
  kb_close(&b);
  free(in);
  free(want);
}

/* ---- Long matrices: loops, and the same bytes in every window ---- */

static void test_windows(void **state) {
  (void)state;
  static const uint32_t windows[] = {256, 400, 1000, 4000, 20000};
  enum { ROWS = 1234, COLS = 40, N = ROWS * COLS };
  struct kbed b;
  struct ct_tilewise k = {.rows = ROWS, .cols = COLS, .ins = 2, .ops = 3, .outs = 1};
  uint32_t *x = calloc(N, sizeof *x), *want = calloc(N, sizeof *want), row[COLS];
  assert_true(x && want);
  k.op[0] = (struct ct_tile_op){.fn = CT_TILE_ADD, .a = 0, .b = 1};
  k.op[1] = (struct ct_tile_op){.fn = CT_TILE_RELU, .a = 2};
  k.op[2] = (struct ct_tile_op){.fn = CT_TILE_AXPB, .a = 3, .s = 3};
  k.out[0].value = 4;
  k.in[1].spread = CT_SPREAD_ROWS;
  kb_open(&b, "emu:", 4);
  k.in[0].mat = kb_mat(&b, ROWS, COLS, KB_F32, false);
  k.in[1].mat = kb_mat(&b, 1, COLS, KB_F32, false);
  k.out[0].mat = kb_mat(&b, ROWS, COLS, KB_ROWS, true);
  for (uint32_t c = 0; c < COLS; ++c)
    row[c] = kb_bits(some_number(&b.rng));
  for (uint32_t i = 0; i < N; ++i) {
    x[i] = kb_bits(some_number(&b.rng));
    want[i] = ct_fp_mul(ct_fp_relu(ct_fp_add(x[i], row[i % COLS])), kb_bits(3));
  }
  for (unsigned w = 0; w < sizeof windows / sizeof *windows; ++w) {
    struct ct_codes codes;
    const struct ct_room room = kb_room(windows[w]);
    kb_put(&b, &k.in[0].mat, x);
    kb_put(&b, &k.in[1].mat, row);
    assert_int_equal(ct_kernel_tilewise(&k, &room, &codes, NULL), CT_OK);
    assert_int_equal(codes.count, 1);
    assert_true(codes.job[0].count < 300);
    kb_run(&b, &codes, windows[w]);
    kb_check(&b, &k.out[0].mat, want, "an output");
  }
  kb_close(&b);
  free(x);
  free(want);
}

/* ---- What is refused ---- */

static void refuse(const struct ct_tilewise *k, uint32_t window, int error, const char *what) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  const int err = ct_kernel_tilewise(k, &room, &codes, &(struct ct_why){why, sizeof why});
  if (err != error || !strstr(why, what)) fail_msg("%d (%s), not %d (%s)", err, why, error, what);
  assert_null(codes.job);
}

static void test_refusals(void **state) {
  (void)state;
  struct kbed b;
  kb_open(&b, "emu:", 5);
  const struct ct_mat x = kb_mat(&b, 20, 20, KB_F32, false), y = kb_mat(&b, 20, 20, KB_F32, true);
  const struct ct_tilewise good = {.rows = 20,
                                   .cols = 20,
                                   .in = {{.mat = x}, {.mat = x}, {.mat = x}, {.mat = x}},
                                   .op = {{.fn = CT_TILE_RELU, .a = 0}},
                                   .out = {{.mat = y, .value = 1}},
                                   .ins = 1,
                                   .ops = 1,
                                   .outs = 1};
  struct ct_tilewise k = good;
  k.op[0].a = 1;
  refuse(&k, 1000, CT_ERR_ARG, "operation 0 of a tile program takes value 1");
  k = good;
  k.op[0].fn = CT_TILE_FNS;
  refuse(&k, 1000, CT_ERR_ARG, "operation 0");
  k = good;
  k.op[0].s_reg = KB_ARGS + 1;
  refuse(&k, 1000, CT_ERR_ARG, "argument 5");
  k = good;
  k.out[0].value = 2;
  refuse(&k, 1000, CT_ERR_ARG, "output 0");
  k = good;
  k.in[0].mat.rows = 19;
  refuse(&k, 1000, CT_ERR_ARG, "an input has 19 rows and 20 columns");
  k = good;
  k.out[0].mat.keep[CT_KEEP_F32].reg = 0;
  refuse(&k, 1000, CT_ERR_ARG, "an output is kept in no way");
  k = good;
  k.outs = 0;
  refuse(&k, 1000, CT_ERR_ARG, "0 outputs");
  k = good;
  k.out[0].mat.narrow = 7;
  refuse(&k, 1000, CT_ERR_ARG, "mantissas");
  refuse(&good, 100, CT_ERR_NO_SPACE, "words of scratchpad, the window has 100");
  /* Every value is needed until the end. */
  k = good;
  k.ins = 4;
  k.ops = 19;
  for (unsigned i = 0; i < 10; ++i)
    k.op[i] = (struct ct_tile_op){.fn = CT_TILE_MUL, .a = i ? 3 + i : 0, .b = i % 4};
  for (unsigned i = 10; i < 19; ++i)
    k.op[i] = (struct ct_tile_op){.fn = CT_TILE_SUB, .a = 3 + i, .b = i - 6};
  k.out[0].value = 22;
  refuse(&k, 1000, CT_ERR_NO_SPACE, "tile registers");
  kb_close(&b);
}

/* ---- Behind a product ---- */

enum { TILES = 4 };

/* Four tiles of A times B, and the program on them: as one run, or tile by tile. */
static void record_product(struct ct_lower *l, const struct ct_tile_plan *plan,
                           const struct ct_mat *a, const struct ct_mat *w, const struct ct_mat *row,
                           const struct ct_mat *y) {
  const uint32_t more = plan->chain ? TILES - 1 : 0;
  struct ct_tile_regs regs;
  const uint32_t da =
      ct_dram_tensor(l, "a", a->keep[CT_KEEP_SQUARE].reg, a->keep[CT_KEEP_SQUARE].at,
                     ct_grid(TILES, 1, CT_RECORD_UNITS));
  const uint32_t dw = ct_dram_tensor(l, "w", w->keep[CT_KEEP_SQUARE].reg,
                                     w->keep[CT_KEEP_SQUARE].at, ct_grid(1, 1, CT_RECORD_UNITS));
  const uint32_t dr = ct_dram_tensor(l, "row", row->keep[CT_KEEP_F32].reg,
                                     row->keep[CT_KEEP_F32].at, ct_grid(1, 1, CT_F32_TILE_UNITS));
  const uint32_t dy = ct_dram_tensor(l, "y", y->keep[CT_KEEP_F32].reg, y->keep[CT_KEEP_F32].at,
                                     ct_grid(TILES, 1, CT_F32_TILE_UNITS));
  const uint32_t sa = ct_spm_tensor(l, "a", ct_grid(TILES, 1, CT_TILE));
  const uint32_t sw = ct_spm_tensor(l, "w", ct_grid(1, 1, CT_TILE));
  const uint32_t sr = ct_spm_tensor(l, "row", ct_grid(1, 1, CT_F32_ROW_UNITS));
  const uint32_t sy = ct_spm_tensor(l, "y", ct_grid(TILES, 1, CT_F32_TILE_UNITS));
  const uint32_t acc = ct_acc_ring(l, "acc", 0, TILES);
  ct_tile_take(l, plan, 2, more, 1, &regs);
  ct_lower_carriers(l, &(struct ct_carriers){.va_reg = regs.first_temp,
                                             .vs_reg = 1,
                                             .acc = 15,
                                             .spm = ct_spm_take(l, CT_CARRIER_WORDS),
                                             .calm = sw,
                                             .load = dw});
  ct_ld(l, &(struct ct_dma){.dram = ct_all_of(l, da),
                            .spm = ct_all_of(l, sa),
                            .hdr = true,
                            .nb = 16,
                            .n1 = TILES,
                            .d1 = 17,
                            .s1 = 16});
  ct_ld(l,
        &(struct ct_dma){.dram = ct_all_of(l, dw), .spm = ct_all_of(l, sw), .hdr = true, .nb = 16});
  ct_ld(l, &(struct ct_dma){.dram = ct_all_of(l, dr), .spm = ct_all_of(l, sr), .nb = 4});
  const struct ct_ref product = ct_next_n(l, acc, TILES);
  ct_mm(l, &(struct ct_mm){.a = ct_all_of(l, sa),
                           .am = 16,
                           .b = ct_all_of(l, sw),
                           .acc = product,
                           .kt = 1,
                           .nt = 1,
                           .rows = TILES * 16});
  struct ct_tile_run run = {
      .k = plan->k, .plan = plan, .regs = &regs, .rows = 16, .cols = 16, .more = more};
  if (plan->row_loads) {
    run.value[1] = ct_next(l, regs.row_load);
    ct_vl(l, &(struct ct_vmove){.reg = run.value[1], .spm = ct_all_of(l, sr), .rows = 1});
  }
  ct_tile_rows(l, &run);
  for (uint32_t t = 0; t < TILES; t += more + 1) {
    run.value[0] = more ? product : ct_nth(product, t);
    ct_tile_emit(l, &run);
    ct_vs(l, &(struct ct_vmove){.reg = run.stored[0],
                                .spm = ct_tiles_of(l, sy, t, more + 1, 0, 1),
                                .rows = 16,
                                .more = more,
                                .tile_stride = CT_F32_TILE_UNITS});
  }
  ct_st(l, &(struct ct_dma){.dram = ct_all_of(l, dy),
                            .spm = ct_all_of(l, sy),
                            .nb = 64,
                            .n1 = TILES,
                            .d1 = 64,
                            .s1 = 64});
}

static void check_product(struct kbed *b, const struct ct_tilewise *program, bool chain,
                          unsigned commands) {
  enum { ROWS = TILES * 16, N = ROWS * 16 };
  static struct input in[2];
  uint32_t x[N], w[256], want[N];
  struct ct_tile_plan plan;
  struct ct_codes codes;
  char why[256] = "";
  struct ct_tilewise k = *program;
  k.rows = ROWS;
  k.cols = 16;
  k.ins = 2;
  k.outs = 1;
  k.in[1].spread = CT_SPREAD_ROWS;
  kb_clear(b);
  const struct ct_mat a = kb_mat(b, ROWS, 16, KB_SQUARE, false);
  const struct ct_mat m = kb_mat(b, 16, 16, KB_SQUARE, false);
  k.in[1].mat = kb_mat(b, 1, 16, KB_F32, false);
  k.out[0].mat = kb_mat(b, ROWS, 16, KB_F32, true);
  for (unsigned i = 0; i < N; ++i)
    x[i] = kb_bits((float)ct_rng_below(&b->rng, 64) - 32);
  for (unsigned i = 0; i < 256; ++i)
    w[i] = kb_bits((float)ct_rng_below(&b->rng, 64) - 32);
  for (unsigned i = 0; i < 16; ++i)
    in[1].x[i] = kb_bits(some_number(&b->rng));
  kb_put(b, &a, x);
  kb_put(b, &m, w);
  kb_put(b, &k.in[1].mat, in[1].x);
  for (unsigned r = 0; r < ROWS; ++r)
    for (unsigned n = 0; n < 16; ++n) {
      float sum = 0;
      for (unsigned i = 0; i < 16; ++i)
        sum += kb_float(x[r * 16 + i]) * kb_float(w[n * 16 + i]);
      in[0].x[r * 16 + n] = kb_bits(sum);
    }
  k.in[0].mat.cols = 16;
  assert_int_equal(ct_tile_plan(&plan, &k, true, KB_ARGS, NULL), CT_OK);
  assert_int_equal(plan.chain, chain);
  assert_int_equal(plan.commands, commands);
  struct ct_lower *l = ct_lower_start(KB_ARGS, false);
  assert_non_null(l);
  record_product(l, &plan, &a, &m, &k.in[1].mat, &k.out[0].mat);
  if (ct_lower_finish(l, "a product", &codes, &(struct ct_why){why, sizeof why}))
    fail_msg("%s", why);
  kb_run(b, &codes, 2000);
  reference(b, &k, in, 0, want);
  kb_check(b, &k.out[0].mat, want, "behind a product");
}

static void test_product(void **state) {
  (void)state;
  struct kbed b;
  kb_open(&b, "emu:", 6);
  /* Values: 0 the product, 1 a row. */
  const struct ct_tilewise bias = {
      .ops = 2,
      .op = {{.fn = CT_TILE_ADD, .a = 0, .b = 1}, {.fn = CT_TILE_RELU, .a = 2}},
      .out = {{.value = 3}}};
  const struct ct_tilewise norm = {.ops = 5,
                                   .op = {{.fn = CT_TILE_MUL, .a = 1, .b = 1},
                                          {.fn = CT_TILE_SUB, .a = 2, .b = 0},
                                          {.fn = CT_TILE_MUL, .a = 1, .b = 3},
                                          {.fn = CT_TILE_MAX_S, .a = 4, .s = -1},
                                          {.fn = CT_TILE_TANH, .a = 5}},
                                   .out = {{.value = 6}}};
  const struct ct_tilewise squares = {
      .ops = 2,
      .op = {{.fn = CT_TILE_MUL, .a = 0, .b = 0}, {.fn = CT_TILE_SUB, .a = 2, .b = 0}},
      .out = {{.value = 3}}};
  const struct ct_tilewise copy = {.ops = 0, .out = {{.value = 0}}};
  const struct ct_tilewise gated = {
      .ops = 2,
      .op = {{.fn = CT_TILE_SIGMOID, .a = 0}, {.fn = CT_TILE_MUL, .a = 0, .b = 2}},
      .out = {{.value = 3}}};
  const struct ct_tilewise back = {
      .ops = 2,
      .op = {{.fn = CT_TILE_AXPB, .a = 1, .s = 0.5f}, {.fn = CT_TILE_SIGMOID_BACK, .a = 0, .b = 2}},
      .out = {{.value = 3}}};
  const struct ct_tilewise quotient = {
      .ops = 2,
      .op = {{.fn = CT_TILE_DIV, .a = 1, .b = 0}, {.fn = CT_TILE_EQUAL, .a = 1, .b = 2}},
      .out = {{.value = 3}}};
  check_product(&b, &bias, true, 1);
  check_product(&b, &norm, true, 5);
  check_product(&b, &squares, false, 3);
  check_product(&b, &copy, true, 1);
  check_product(&b, &gated, false, 3);
  check_product(&b, &back, false, 6);
  check_product(&b, &quotient, false, 3);
  kb_close(&b);
}

/* ---- The cores ---- */

static void test_simulated(void **state) {
  (void)state;
  static const char *const uris[] = {"sim:stall=10,seed=7", "sim:core=16x8"};
  struct input *in = calloc(CT_TILE_INS, sizeof *in);
  uint32_t *want = calloc(MOST, sizeof *want);
  assert_true(in && want);
  for (unsigned u = 0; u < 2; ++u) {
    struct kbed b;
    kb_open(&b, uris[u], 7 + u);
    for (unsigned i = 0; i < 3; ++i) {
      kb_clear(&b);
      struct ct_tilewise k;
      struct ct_codes codes;
      random_program(&b, &k, in);
      const struct ct_room room = kb_room(1200);
      if (ct_kernel_tilewise(&k, &room, &codes, NULL)) continue;
      kb_run(&b, &codes, 1200);
      check_outputs(&b, &k, in, want);
    }
    kb_close(&b);
  }
  free(in);
  free(want);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),     cmocka_unit_test(test_functions),
      cmocka_unit_test(test_optimisers), cmocka_unit_test(test_windows),
      cmocka_unit_test(test_refusals),   cmocka_unit_test(test_product),
      cmocka_unit_test(test_simulated),
  };
  return cmocka_run_group_tests_name("kernel_tile", tests, NULL, NULL);
}
