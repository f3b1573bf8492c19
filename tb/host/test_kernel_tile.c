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
  uint32_t x = in[v].x[(size_t)row * i->mat.cols + col];
  if (lanes) x = ct_fp_add(x, 0);
  return i->sign ? (ct_fp_gt(x, 0) ? ONE : 0) : x;
}

static void reference(const struct kbed *b, const struct ct_tilewise *k, const struct input *in,
                      unsigned out, uint32_t *want) {
  for (uint32_t r = 0; r < k->rows; ++r)
    for (uint32_t c = 0; c < k->cols; ++c) {
      uint32_t value[CT_TILE_VALUES];
      for (unsigned v = 0; v < k->ins; ++v)
        value[v] = input_at(k, in, v, r, c);
      for (unsigned i = 0; i < k->ops; ++i)
        value[k->ins + i] = one_value(b, &k->op[i], value[k->op[i].a], value[k->op[i].b]);
      want[(size_t)r * k->cols + c] = value[k->out[out].value];
    }
}

/* ---- Random programs ---- */

static const enum ct_tile_fn exact[] = {
    CT_TILE_ADD,      CT_TILE_SUB,    CT_TILE_MUL,     CT_TILE_DIV,  CT_TILE_MAX,
    CT_TILE_MIN,      CT_TILE_SELECT, CT_TILE_EQUAL,   CT_TILE_AXPB, CT_TILE_RELU,
    CT_TILE_MAX_S,    CT_TILE_MIN_S,  CT_TILE_EXP,     CT_TILE_LOG,  CT_TILE_RECIP,
    CT_TILE_RSQRT,    CT_TILE_SQRT,   CT_TILE_SIGMOID, CT_TILE_TANH, CT_TILE_SIGMOID_BACK,
    CT_TILE_TANH_BACK};
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
  i->sign = keeps != KB_F32 && ct_rng_percent(&b->rng, 20);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),
  };
  return cmocka_run_group_tests_name("kernel_tile", tests, NULL, NULL);
}
