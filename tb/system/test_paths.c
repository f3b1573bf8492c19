/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vector paths of the emulator against the plain one, bit by bit: single tiles with everything
 * that is awkward (block exponents 0, 255 and at both ends, NaN, Inf, subnormals, -0, the mantissa
 * that never occurs), whole random programs, training, and the caller's floating-point state.
 *
 * CT_TILES=N: tiles for each path and kind of operation (default 12000: 3 million block products).
 * A path that this machine lacks is said to be missing; the plain one is always there.
 */
#include "ct_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "coltrain/coltrain.h"
#include "host/emu/ct_num.h"
#include "host/emu/ct_path.h"
#include "unit/fp_ref.h"

static const char *const names[] = {"avx2", "avx512"};
enum { NAMES = sizeof names / sizeof *names };

static unsigned tiles(void) {
  const char *text = getenv("CT_TILES");
  return text ? (unsigned)strtoul(text, NULL, 0) : 12000;
}

/* ---- Operands ------------------------------------------------------------------------------ */

/* An FP32 pattern: any, a corner case, one of a range where sums and products go wrong. */
static uint32_t awkward(ct_rng *rng) {
  switch (ct_rng_below(rng, 8)) {
    case 0:
      return fp_corners[ct_rng_below(rng, (uint32_t)fp_corners_count)];
    case 1:
      return (uint32_t)ct_rng_u64(rng);
    case 2: /* at the lower end, subnormals included */
      return (uint32_t)(ct_rng_u64(rng) & 0x80FFFFFF) + (ct_rng_below(rng, 3) << 23);
    default:
      return fp_gen(rng);
  }
}

/* Near the numbers that networks have, and sometimes anything. */
static uint32_t usual(ct_rng *rng) {
  if (ct_rng_percent(rng, 2)) return awkward(rng);
  return (uint32_t)(ct_rng_u64(rng) & 0x807FFFFF) | (110 + ct_rng_below(rng, 30)) << 23;
}

static void fill(ct_rng *rng, struct ct_emu_tile *tile) {
  const bool tame = ct_rng_percent(rng, 50);
  for (unsigned i = 0; i < 256; ++i)
    tile->x[i / 16][i % 16] = tame ? usual(rng) : awkward(rng);
}

struct side {
  int8_t q[16][16];
  uint8_t e[16];
  struct ct_words words;
};

static uint8_t exponent(ct_rng *rng, unsigned kind) {
  static const unsigned first[] = {118, 0, 225, 64, 188, 0}, range[] = {16, 24, 31, 12, 2, 256};
  if (kind > 1 && ct_rng_percent(rng, 2)) return ct_rng_percent(rng, 70) ? 0 : 255;
  return (uint8_t)(first[kind] + ct_rng_below(rng, range[kind]));
}

/* kind: where the exponents lie. */
static void fill_side(ct_rng *rng, struct side *s, bool transposed, unsigned kind) {
  const bool extreme = ct_rng_percent(rng, 10), sparse = ct_rng_percent(rng, 30);
  s->words = (struct ct_words){(const int8_t(*)[16])s->q, s->e, transposed};
  ct_rng_fill(rng, s->q, sizeof s->q);
  for (unsigned r = 0; r < 16; ++r) {
    s->e[r] = s->words.transposed && r ? s->e[0] : exponent(rng, kind);
    for (unsigned i = 0; i < 16; ++i) {
      if (sparse && ct_rng_percent(rng, 90)) s->q[r][i] = 0;
      if (extreme) s->q[r][i] = (int8_t)(ct_rng_percent(rng, 50) ? -128 : 127);
    }
  }
}

/* What a unit may have left in ACC: canonical NaNs, no subnormals. */
static void fill_acc(ct_rng *rng, struct ct_emu_tile *acc) {
  static const uint32_t special[] = {0,         CT_FP_SIGN, CT_FP_INF,  CT_FP_SIGN | CT_FP_INF,
                                     CT_FP_NAN, 0x00800000, 0x80800000, 0x7F7FFFFF,
                                     0xFF7FFFFF};
  fill(rng, acc);
  for (unsigned i = 0; i < 256; ++i) {
    uint32_t *x = &acc->x[i / 16][i % 16];
    if (ct_rng_percent(rng, 15)) *x = special[ct_rng_below(rng, 9)];
    *x = ct_fp_add(*x, CT_FP_SIGN);
  }
}

/* ---- Single tiles -------------------------------------------------------------------------- */

enum { MOST_STEPS = 4 };

static void products(ct_rng *rng, const struct ct_path *path) {
  for (unsigned n = tiles(); n > 0;) {
    struct side a[MOST_STEPS], b[MOST_STEPS];
    struct ct_operand pa[MOST_STEPS], pb[MOST_STEPS], va[MOST_STEPS], vb[MOST_STEPS];
    struct ct_emu_tile want, got;
    const unsigned rows = ct_rng_percent(rng, 60) ? 16 : 1 + ct_rng_below(rng, 16);
    const bool fresh = ct_rng_percent(rng, 30);
    const unsigned steps = 1 + ct_rng_below(rng, MOST_STEPS);
    fill_acc(rng, &want);
    got = want;
    const bool a_transposed = ct_rng_percent(rng, 50), b_transposed = ct_rng_percent(rng, 50);
    const unsigned a_kind = ct_rng_below(rng, 6), b_kind = ct_rng_below(rng, 6);
    for (unsigned k = 0; k < steps; ++k) {
      fill_side(rng, &a[k], a_transposed, a_kind);
      fill_side(rng, &b[k], b_transposed, b_kind);
      ct_path_plain.prepare_a(&pa[k], &a[k].words);
      ct_path_plain.prepare_b(&pb[k], &b[k].words);
    }
    ct_path_plain.multiply(pa, pb, steps, rows, fresh, &want);
    const unsigned state = path->enter();
    for (unsigned k = 0; k < steps; ++k) {
      path->prepare_a(&va[k], &a[k].words);
      path->prepare_b(&vb[k], &b[k].words);
    }
    path->multiply(va, vb, steps, rows, fresh, &got);
    path->leave(state);
    ct_assert_same("product", got.x, want.x, sizeof want.x);
    n -= n < steps ? n : steps;
  }
}

static void conversions(ct_rng *rng, const struct ct_path *path) {
  for (unsigned n = tiles(); n > 0; --n) {
    struct side want, got;
    struct ct_emu_tile x, x_want, x_got;
    const unsigned rows = 1 + ct_rng_below(rng, 16), narrow = ct_rng_below(rng, 7);
    const bool square = ct_rng_percent(rng, 50), sign = ct_rng_percent(rng, 30);
    fill(rng, &x);
    if (ct_rng_percent(rng, 30)) /* a group at the lower end */
      for (unsigned i = 0; i < 256; ++i)
        x.x[i / 16][i % 16] &= 0x83FFFFFF;
    memset(&want, 0, sizeof want);
    memset(&got, 0, sizeof got);
    const unsigned nans_want =
        ct_path_plain.quantise((const uint32_t(*)[16])x.x, rows, square, narrow, want.q, want.e);
    unsigned state = path->enter();
    const unsigned nans_got =
        path->quantise((const uint32_t(*)[16])x.x, rows, square, narrow, got.q, got.e);
    path->leave(state);
    ct_assert_same("mantissas", got.q, want.q, sizeof want.q);
    ct_assert_same("exponents", got.e, want.e, sizeof want.e);
    assert_int_equal(nans_got, nans_want);
    fill_side(rng, &want, ct_rng_percent(rng, 50), ct_rng_below(rng, 6));
    x_want = x_got = x;
    ct_path_plain.dequantise((const int8_t(*)[16])want.q, want.e, rows, sign, x_want.x);
    state = path->enter();
    path->dequantise((const int8_t(*)[16])want.q, want.e, rows, sign, x_got.x);
    path->leave(state);
    ct_assert_same("values", x_got.x, x_want.x, sizeof x_want.x);
  }
}

/* Mostly of exponents so near to each other that something is left of every row. */
static void alignments(ct_rng *rng, const struct ct_path *path) {
  for (unsigned n = tiles(); n > 0; --n) {
    struct side want, got;
    const unsigned least = ct_rng_below(rng, 256), range = 1 + ct_rng_below(rng, 12);
    const bool near = ct_rng_percent(rng, 80);
    fill_side(rng, &want, false, ct_rng_below(rng, 6));
    for (unsigned r = 0; near && r < 16; ++r) {
      const unsigned e = least + ct_rng_below(rng, range);
      want.e[r] = (uint8_t)(e > 255 || ct_rng_percent(rng, 5) ? 0 : e);
    }
    got = want;
    ct_path_plain.align(want.q, want.e);
    const unsigned state = path->enter();
    path->align(got.q, got.e);
    path->leave(state);
    ct_assert_same("aligned mantissas", got.q, want.q, sizeof want.q);
    ct_assert_same("their exponents", got.e, want.e, sizeof want.e);
  }
}

/* Tiles 0..2 are operands; the result may go over either, where that is legal. */
static void operations(ct_rng *rng, const struct ct_path *path) {
  static const unsigned funcs[] = {0, 0, 0, 0, 8, 9, 10, 11};
  static const unsigned alone[] = {0, 3};
  for (unsigned n = tiles(); n > 0; --n) {
    struct ct_emu_tile want[3], got[3];
    const bool crosses = ct_rng_percent(rng, 30);
    const unsigned tile = crosses && ct_rng_percent(rng, 50) ? 2 : 1, b = ct_rng_below(rng, 3);
    struct ct_va op = {.sb = usual(rng),
                       .sc = usual(rng),
                       .pad = ct_rng_percent(rng, 50) ? 0 : CT_FP_SIGN | CT_FP_INF,
                       .b = b == 2 ? tile : alone[b],
                       .fn = ct_rng_below(rng, 5),
                       .func = funcs[ct_rng_below(rng, 8)],
                       .negc = ct_rng_percent(rng, 40),
                       .relu = ct_rng_percent(rng, 20),
                       .rows = 1 + ct_rng_below(rng, 16),
                       .cols = 1 + ct_rng_below(rng, 16)};
    op.c = b != 2 && ct_rng_percent(rng, 60) ? tile : alone[ct_rng_below(rng, 2)];
    op.written = ct_rng_percent(rng, 50) ? 16 : op.rows;
    if (crosses) {
      op.row_xor = ct_rng_below(rng, 16);
      op.lane_xor = ct_rng_below(rng, 16);
    }
    for (unsigned i = 0; i < 3; ++i)
      fill(rng, &want[i]);
    for (unsigned i = ct_rng_percent(rng, 30) ? 0 : 256; i < 256; ++i) /* equal ones */
      if (ct_rng_percent(rng, 50)) want[1].x[i / 16][i % 16] = want[0].x[i / 16][i % 16];
    memcpy(got, want, sizeof want);
    const unsigned to = crosses ? 2 * ct_rng_below(rng, 2) : ct_rng_below(rng, 3);
    const bool has_a = ct_rng_percent(rng, 90);
    op.a = has_a ? &want[0] : NULL;
    op.q = &want[1];
    ct_path_plain.va(&op, &want[to]);
    op.a = has_a ? &got[0] : NULL;
    op.q = &got[1];
    const unsigned state = path->enter();
    path->va(&op, &got[to]);
    path->leave(state);
    ct_assert_same("operation", got, want, sizeof want);
  }
}

static void each_path(void (*test)(ct_rng *, const struct ct_path *), uint64_t stream) {
#ifdef CT_PATH_X86
  static const struct ct_path *const paths[] = {&ct_path_avx2, &ct_path_avx512,
                                                &ct_path_avx512_vbmi};
  for (unsigned i = 0; i < 3; ++i) {
    ct_rng rng = ct_rng_make(stream);
    /* The choice also wants them to flush subnormals here. */
    if (paths[i]->available() && ct_path_find(paths[i]->name))
      test(&rng, paths[i]);
    else
      printf("  this machine has no %s path (%u)\n", paths[i]->name, i);
  }
#else
  (void)test;
  (void)stream;
#endif
}

static void products_agree(void **state) {
  (void)state;
  each_path(products, 1);
}

static void conversions_agree(void **state) {
  (void)state;
  each_path(conversions, 2);
}

static void alignments_agree(void **state) {
  (void)state;
  each_path(alignments, 8);
}

static void operations_agree(void **state) {
  (void)state;
  each_path(operations, 3);
}

/* ---- Whole programs ------------------------------------------------------------------------ */

enum { JOBS = 3, ROUNDS = 12 };

struct outcome {
  uint8_t out[16 * CT_GEN_OUT_UNITS];
  uint64_t counters[32];
  uint32_t rows[JOBS];
};

/* parity: a bit of a word that no window has is wrong, so the parity of every word is looked at. */
static void run_programs(const char *args, bool parity, const uint8_t *in,
                         const struct ct_gen_prog *progs, unsigned ctx, struct outcome *outcome) {
  struct ct_rig rig;
  ct_rig_open(&rig, args, &ct_transport_emu, NULL, args);
  ct_rig_write(&rig, CT_REG_DBG_ADDR, 0);
  if (parity) ct_rig_write(&rig, CT_REG_DBG_FLIP, 0x100);
  rig.ops->mem_write(rig.self, ct_rig_addr(ctx, CT_RIG_IN), in, 16 * CT_GEN_IN_UNITS);
  for (unsigned j = 0; j < JOBS; ++j) {
    const struct ct_rig_job job = {.prog = &progs[j], .tag = j};
    ct_rig_submit(&rig, ctx, &job);
    ct_rig_ring(&rig, ctx);
    const struct ct_rig_cpl cpl = ct_rig_reap(&rig, ctx, 0);
    assert_int_equal(cpl.code, CT_DEV_OK);
    outcome->rows[j] = cpl.rows;
  }
  for (unsigned i = 0; i < 32; ++i)
    outcome->counters[i] = ct_rig_counter(&rig, ctx, i);
  rig.ops->mem_read(rig.self, ct_rig_addr(ctx, CT_RIG_OUT), outcome->out, sizeof outcome->out);
  ct_rig_close(&rig);
}

/* Also with a scratchpad that ends soon after a window, and with parity looked at. */
static void programs_agree(void **state) {
  (void)state;
  struct ct_gen_prog *progs = test_calloc(JOBS, sizeof *progs);
  struct outcome *want = test_calloc(1, sizeof *want), *got = test_calloc(1, sizeof *got);
  uint8_t *in = test_malloc(16 * CT_GEN_IN_UNITS);
  ct_rng rng = ct_rng_make(4);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    const unsigned ctx = round % 2;
    char args[64];
    ct_gen_input(&rng, in);
    ct_gen_setup(&progs[0], ct_rig_unit(ctx, CT_RIG_IN));
    ct_gen_random(&rng, &progs[1], 250, ct_rig_unit(ctx, CT_RIG_IN), ct_rig_unit(ctx, CT_RIG_OUT));
    ct_gen_dump(&progs[2], ct_rig_unit(ctx, CT_RIG_OUT));
    run_programs("dram=8,path=plain", false, in, progs, ctx, want);
    for (unsigned i = 0; i < 2 * NAMES; ++i) {
      if (!ct_path_find(names[i / 2])) continue;
      snprintf(args, sizeof args, "dram=8,spm=%u,path=%s", i % 2 ? 4096 : 8192, names[i / 2]);
      run_programs(args, i % 2 != 0, in, progs, ctx, got);
      ct_assert_same(args, got->out, want->out, sizeof want->out);
      assert_memory_equal(got->counters, want->counters, sizeof want->counters);
      assert_memory_equal(got->rows, want->rows, sizeof want->rows);
    }
  }
  test_free(progs);
  test_free(want);
  test_free(got);
  test_free(in);
}

/* ---- Training ------------------------------------------------------------------------------ */

enum { INPUTS = 50, HIDDEN = 37, CLASSES = 10, BATCH = 33, STEPS = 3 };

struct trained {
  float loss[STEPS], w[HIDDEN * INPUTS], b[HIDDEN], vw[HIDDEN * INPUTS], vb[HIDDEN];
};

static void train(const char *uri, struct trained *t) {
  static const uint32_t widths[] = {INPUTS, HIDDEN, CLASSES};
  const struct ct_training training = {
      .batch = BATCH, .rates = {.lr = 0.1f, .momentum = 0.9f, .weight_decay = 1e-4f}};
  ct_device *dev;
  ct_model *model;
  float x[BATCH * INPUTS];
  uint32_t labels[BATCH];
  ct_rng rng = ct_rng_make(5);
  for (unsigned i = 0; i < BATCH * INPUTS; ++i)
    x[i] = (float)ct_rng_below(&rng, 1 << 20) / (float)(1 << 20);
  for (unsigned i = 0; i < BATCH; ++i)
    labels[i] = ct_rng_below(&rng, CLASSES);
  assert_int_equal(ct_open(uri, &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, widths, 2, 7, &model), CT_OK);
  assert_int_equal(ct_model_training(model, &training), CT_OK);
  for (unsigned i = 0; i < STEPS; ++i)
    assert_int_equal(ct_model_step(model, x, labels, &t->loss[i]), CT_OK);
  assert_int_equal(ct_model_get(model, 0, t->w, t->b, t->vw, t->vb), CT_OK);
  ct_model_free(model);
  ct_close(dev);
}

static void training_agrees(void **state) {
  (void)state;
  struct trained *want = test_calloc(1, sizeof *want), *got = test_calloc(1, sizeof *got);
  train("emu:dram=16,path=plain", want);
  train("emu:dram=16", got);
  ct_assert_same("the fastest path", got, want, sizeof *want);
  for (unsigned i = 0; i < NAMES; ++i) {
    char uri[48];
    if (!ct_path_find(names[i])) continue;
    snprintf(uri, sizeof uri, "emu:dram=16,path=%s", names[i]);
    train(uri, got);
    ct_assert_same(uri, got, want, sizeof *want);
  }
  test_free(want);
  test_free(got);
}

/* ---- The choice, and the caller's state ---------------------------------------------------- */

static void paths_are_chosen(void **state) {
  (void)state;
  ct_device *dev = NULL;
  char why[256] = "";
  const struct ct_options options = {.why = why, .why_size = sizeof why};
  assert_ptr_equal(ct_path_find("plain"), &ct_path_plain);
  assert_null(ct_path_find("fast"));
  assert_non_null(ct_path_find(NULL));
  assert_ptr_equal(ct_path_find(""), ct_path_find(NULL));
  assert_true(ct_open_with("emu:path=fast", &options, &dev) < 0);
  assert_non_null(strstr(why, "option path=fast"));
  for (unsigned i = 0; i < NAMES; ++i)
    if (ct_path_find(names[i])) assert_string_equal(ct_path_find(names[i])->name, names[i]);
}

#ifdef __SSE2__

/* Products do not care how the caller rounds, and leave it as it was, sticky flags included. */
static void callers_state_is_kept(void **state) {
  (void)state;
  enum { SIDE = 20 };
  static const unsigned states[] = {0x1F80, 0x1F80 | 0x6000, 0x1F80 | 0x2000 | 0x8040, 0x1FBF};
  float a[SIDE * SIDE], want[SIDE * SIDE], got[SIDE * SIDE];
  ct_device *dev;
  ct_rng rng = ct_rng_make(6);
  for (unsigned i = 0; i < SIDE * SIDE; ++i)
    a[i] = (float)ct_rng_below(&rng, 1 << 22) / 3.0f;
  assert_int_equal(ct_open("emu:dram=16,path=plain", &dev), CT_OK);
  assert_int_equal(ct_matmul(dev, CT_TRAINING, SIDE, SIDE, SIDE, a, a, want, NULL), CT_OK);
  ct_close(dev);
  for (unsigned i = 0; i < sizeof states / sizeof *states; ++i) {
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(states[i]);
    const unsigned before = _mm_getcsr(); /* valgrind keeps only the rounding */
    const int opened = ct_open("emu:dram=16", &dev);
    const int done = ct_matmul(dev, CT_TRAINING, SIDE, SIDE, SIDE, a, a, got, NULL);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(saved);
    assert_int_equal(opened, CT_OK);
    assert_int_equal(done, CT_OK);
    assert_int_equal(after, before);
    ct_assert_same("product", got, want, sizeof want);
    ct_close(dev);
  }
}

#else

static void callers_state_is_kept(void **state) {
  (void)state;
  skip();
}

#endif

/* Columns of a product that share an ACC tile: k steps come first, so its steps cannot go at once.
 */
static void columns_share_tiles(void **state) {
  (void)state;
  struct ct_gen_prog *progs = test_calloc(JOBS, sizeof *progs);
  struct outcome *want = test_calloc(1, sizeof *want), *got = test_calloc(1, sizeof *got);
  uint8_t *in = test_malloc(16 * CT_GEN_IN_UNITS);
  ct_rng rng = ct_rng_make(5);
  ct_gen_input(&rng, in);
  ct_gen_setup(&progs[0], ct_rig_unit(0, CT_RIG_IN));
  struct ct_cmd *mm = progs[1].cmds;
  CT_PUT(mm, ALL_OP, CT_OP_MM);
  CT_PUT(mm, MM_B, 64);
  CT_PUT(mm, MM_AM, 16);
  CT_PUT(mm, MM_AK, 32);
  CT_PUT(mm, MM_BN, 32);
  CT_PUT(mm, MM_BK, 16);
  CT_PUT(mm, MM_KT, 2);
  CT_PUT(mm, MM_NT, 2);
  CT_PUT(mm, MM_ROWS, 32);
  CT_PUT(mm, MM_ACC_N, 1);
  CT_PUT(&mm[1], ALL_OP, CT_OP_END);
  progs[1].count = 2;
  ct_gen_dump(&progs[2], ct_rig_unit(0, CT_RIG_OUT));
  run_programs("dram=8,path=plain", true, in, progs, 0, want); /* step by step */
  run_programs("dram=8,path=plain", false, in, progs, 0, got);
  ct_assert_same("columns share tiles", got->out, want->out, sizeof want->out);
  test_free(progs);
  test_free(want);
  test_free(got);
  test_free(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_agree),        cmocka_unit_test(conversions_agree),
      cmocka_unit_test(alignments_agree),      cmocka_unit_test(operations_agree),
      cmocka_unit_test(programs_agree),        cmocka_unit_test(columns_share_tiles),
      cmocka_unit_test(training_agrees),       cmocka_unit_test(paths_are_chosen),
      cmocka_unit_test(callers_state_is_kept),
  };
  ct_tb_seed();
  return cmocka_run_group_tests_name("paths of the emulator", tests, NULL, NULL);
}
