/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_work.h"

#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_kept.h"
#include "host/lib/lower/ct_prog.h"

enum {
  BATCH = 16,
  ROWS = 3,
  M = 40,
  N = 24,
  K = 48,
  AREA = 0x8000,
  STEP_WORDS = 16,
  MOST_WORDS = 2048,
  KEPT_RESULTS = CT_WORK_INDEX + 0x1000
};

static const struct ct_mlp trained = {.layers = 2, .width = {32, 16, 10}};
static const struct ct_mlp served = {.layers = 2, .width = {48, 32, 10}};

/* Device memory is filled front to back. */
struct filler {
  struct ct_pair *pair;
  ct_rng *rng;
  uint64_t addr;
};

static void put(struct filler *f, const void *bytes, size_t size) {
  ct_pair_mem_write(f->pair, f->addr, bytes, size);
  f->addr += size;
}

/* Square tiles with values of about +-1. */
static void put_tiles(struct filler *f, uint32_t tiles) {
  for (uint32_t t = 0; t < tiles; ++t) {
    uint8_t record[16 * CT_RECORD_UNITS];
    memset(record, 124 + (int)ct_rng_below(f->rng, 4), 16);
    for (unsigned i = 16; i < sizeof record; ++i)
      record[i] = (uint8_t)((int)ct_rng_below(f->rng, 255) - 127);
    put(f, record, sizeof record);
  }
}

/* Half of the values are 0, the others of any length: groups of any size. */
static void put_sparse(struct filler *f, uint32_t tiles) {
  for (uint32_t t = 0; t < tiles; ++t) {
    uint8_t record[16 * CT_RECORD_UNITS];
    memset(record, 124 + (int)ct_rng_below(f->rng, 4), 16);
    for (unsigned i = 16; i < sizeof record; ++i) {
      const int most = 1 << ct_rng_below(f->rng, 8);
      record[i] = (uint8_t)(ct_rng_percent(f->rng, 50)
                                ? 0
                                : (int)ct_rng_below(f->rng, 2 * (uint32_t)most - 1) - (most - 1));
    }
    put(f, record, sizeof record);
  }
}

static void put_floats(struct filler *f, uint32_t units) {
  for (uint32_t i = 0; i < 4 * units; ++i) {
    const uint32_t x = ((uint32_t)ct_rng_u64(f->rng) & 0x807fffff) | (118 + ct_rng_below(f->rng, 8))
                                                                         << 23;
    const uint8_t bytes[4] = {(uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16),
                              (uint8_t)(x >> 24)};
    put(f, bytes, sizeof bytes);
  }
}

static void put_image(struct filler *f, const struct ct_mlp *net) {
  put_tiles(f, ct_mlp_tile(net, net->layers));
  put_floats(f, ct_mlp_image_units(net) - ct_mlp_bias_at(net));
}

/* Targets of one label each: 1.0 is 64 with the exponent 127. */
static void put_targets(struct filler *f) {
  uint8_t record[16 * CT_RECORD_UNITS] = {0};
  memset(record, 127, 16);
  for (unsigned r = 0; r < BATCH; ++r)
    record[16 + 16 * r + ct_rng_below(f->rng, trained.width[trained.layers])] = 64;
  put(f, record, sizeof record);
}

/* A row vector of up to 256 elements: exponents, then its blocks. */
static void put_row(struct filler *f, uint32_t elements) {
  uint8_t bytes[16 * CT_RECORD_UNITS] = {0};
  const uint32_t blocks = ct_tiles(elements);
  for (uint32_t b = 0; b < blocks; ++b)
    bytes[b] = (uint8_t)(124 + ct_rng_below(f->rng, 5));
  for (uint32_t i = 0; i < elements; ++i)
    bytes[16 + i] = (uint8_t)((int)ct_rng_below(f->rng, 255) - 127);
  put(f, bytes, 16 * (size_t)(1 + blocks));
}

/* What is kept has one place, whichever half of it a job does. */
static uint64_t in_at(unsigned ctx, enum ct_work_kind kind) {
  if (kind > CT_WORK_KEPT) kind = CT_WORK_KEPT;
  return ct_rig_addr(ctx, CT_WORK_IN + AREA * (uint32_t)kind);
}

static uint64_t out_at(unsigned ctx, enum ct_work_kind kind) {
  return ct_rig_addr(ctx, CT_RIG_OUT + AREA * (uint32_t)kind);
}

void ct_work_fill(struct ct_pair *pair, unsigned ctx, enum ct_work_kind kind, ct_rng *rng) {
  struct filler in = {pair, rng, in_at(ctx, kind)}, out = {pair, rng, out_at(ctx, kind)};
  switch (kind) {
    case CT_WORK_TRAIN:
      put_tiles(&in, ct_tiles(BATCH) * ct_mlp_in(&trained, 0));
      put_targets(&in);
      put_image(&out, &trained);
      put_floats(&out, ct_mlp_state_units(&trained));
      break;
    case CT_WORK_INFER:
      put_image(&in, &served);
      for (unsigned r = 0; r < ROWS; ++r)
        put_row(&in, served.width[0]);
      break;
    case CT_WORK_PRODUCT:
      put_tiles(&in, ct_tiles(K) * (ct_tiles(M) + ct_tiles(N)));
      break;
    default:
      put_sparse(&in, CT_KEPT_TILES);
      put_tiles(&in, CT_KEPT_WEIGHTS);
  }
}

static uint32_t units(uint64_t addr) {
  return (uint32_t)(addr / 16);
}

static int train_program(struct ct_code *code, unsigned ctx, uint32_t spm_words, uint32_t *args,
                         const struct ct_why *why) {
  const struct ct_train shape = {.net = &trained, .batch = BATCH, .spm_words = spm_words};
  struct ct_codes codes;
  const uint32_t in = units(in_at(ctx, CT_WORK_TRAIN)), out = units(out_at(ctx, CT_WORK_TRAIN));
  const int err = ct_prog_train(&shape, &codes, why);
  if (err) return err;
  if (codes.count > 1) { /* a larger window needs fewer */
    ct_codes_free(&codes);
    return ct_why(why, CT_ERR_NO_SPACE, "%u words are too few for a step of one job", spm_words);
  }
  *code = codes.job[0];
  free(codes.job);
  args[CT_TRAIN_X - 1] = in;
  args[CT_TRAIN_Y - 1] = in + CT_RECORD_UNITS * ct_tiles(BATCH) * ct_mlp_in(&trained, 0);
  args[CT_TRAIN_IMAGE - 1] = out;
  args[CT_TRAIN_STATE - 1] = out + ct_mlp_image_units(&trained);
  args[CT_TRAIN_LOSS - 1] = args[CT_TRAIN_STATE - 1] + ct_mlp_state_units(&trained);
  args[CT_TRAIN_INV - 1] = 0x3d800000;    /* 1/16 */
  args[CT_TRAIN_MU - 1] = 0x3f000000;     /* 0.5 */
  args[CT_TRAIN_NEG_LR - 1] = 0xbc800000; /* -1/64 */
  args[CT_TRAIN_WD - 1] = 0x3a800000;     /* 1/1024 */
  return 0;
}

static int infer_program(struct ct_code *code, unsigned ctx, uint32_t spm_words, uint32_t *args,
                         const struct ct_why *why) {
  const struct ct_infer shape = {.net = &served, .rows = ROWS, .spm_words = spm_words};
  const uint32_t in = units(in_at(ctx, CT_WORK_INFER));
  args[CT_INFER_IMAGE - 1] = in;
  args[CT_INFER_OUT - 1] = units(out_at(ctx, CT_WORK_INFER));
  for (uint32_t r = 0; r < ROWS; ++r)
    args[CT_INFER_ROW - 1 + r] =
        in + ct_mlp_image_units(&served) + r * (1 + ct_tiles(served.width[0]));
  return ct_prog_infer(&shape, code, why);
}

static int product_program(struct ct_code *code, unsigned ctx, uint32_t spm_words, uint32_t *args,
                           const struct ct_why *why) {
  const struct ct_gemm shape = {.m = M, .n = N, .k = K, .pitch = N / 4, .spm_words = spm_words};
  const uint32_t in = units(in_at(ctx, CT_WORK_PRODUCT));
  args[CT_GEMM_A - 1] = in;
  args[CT_GEMM_B - 1] = in + CT_RECORD_UNITS * ct_tiles(K) * ct_tiles(M);
  args[CT_GEMM_C - 1] = units(out_at(ctx, CT_WORK_PRODUCT));
  return ct_prog_gemm(&shape, code, why);
}

static int kept(struct ct_code *code, bool front, bool back, uint32_t spm_words, uint32_t *args,
                const struct ct_why *why) {
  const uint32_t in = units(in_at(1, CT_WORK_KEPT));
  args[CT_KEPT_X - 1] = in;
  args[CT_KEPT_W - 1] = in + CT_RECORD_UNITS * CT_KEPT_TILES;
  args[CT_KEPT_INDEX - 1] = ct_rig_unit(1, CT_WORK_INDEX);
  args[CT_KEPT_OUT - 1] = ct_rig_unit(1, KEPT_RESULTS);
  args[CT_KEPT_X_BOUND - 1] = 121 << 4;
  args[CT_KEPT_Y_BOUND - 1] = 129 << 4;
  return ct_kept_program(front, back, spm_words, code, why);
}

static int kept_program(struct ct_code *code, unsigned ctx, uint32_t spm_words, uint32_t *args,
                        const struct ct_why *why) {
  (void)ctx;
  return kept(code, true, true, spm_words, args, why);
}

static int front_program(struct ct_code *code, unsigned ctx, uint32_t spm_words, uint32_t *args,
                         const struct ct_why *why) {
  (void)ctx;
  return kept(code, true, false, spm_words, args, why);
}

static int back_program(struct ct_code *code, unsigned ctx, uint32_t spm_words, uint32_t *args,
                        const struct ct_why *why) {
  (void)ctx;
  return kept(code, false, true, spm_words, args, why);
}

void ct_work_arena(struct ct_rig *rig) {
  ct_rig_cwrite(rig, 1, CT_CREG_ARENA_BASE, ct_rig_unit(1, CT_WORK_ARENA));
  ct_rig_cwrite(rig, 1, CT_CREG_ARENA_PAGES, CT_WORK_PAGES);
}

uint32_t ct_work_make(struct ct_gen_prog *prog, unsigned ctx, enum ct_work_kind kind) {
  static int (*const make[])(struct ct_code * code, unsigned ctx, uint32_t spm_words,
                             uint32_t *args, const struct ct_why *why) = {
      train_program, infer_program, product_program, kept_program, front_program, back_program};
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  struct ct_code code = {0};
  uint32_t words = 0;
  int err = -1;
  memset(prog, 0, sizeof *prog);
  while (err < 0 && words < MOST_WORDS)
    err = make[kind](&code, ctx, words += STEP_WORDS, prog->args, &why);
  if (err < 0) fail_msg("work %d: %s", (int)kind, text);
  assert_true(code.count <= CT_PROG_MAX);
  memcpy(prog->cmds, code.cmd, code.count * sizeof *code.cmd);
  prog->count = (unsigned)code.count;
  free(code.cmd);
  return words;
}
