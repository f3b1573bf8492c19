/* SPDX-License-Identifier: Apache-2.0 */
#include "vpu_gen.h"

#include <stdlib.h>
#include <string.h>

#include "host/emu/ct_num.h"

/* ---- Commands ------------------------------------------------------------------------------ */

static struct ct_cmd rows_command(unsigned op, unsigned tile, unsigned mode, unsigned spm,
                                  unsigned stride, unsigned rows) {
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, op);
  CT_PUT(&cmd, VL_TD, tile); /* VL and VS have these fields in the same places */
  CT_PUT(&cmd, VL_MODE, mode);
  CT_PUT(&cmd, VL_SPM, spm);
  CT_PUT(&cmd, VL_ROW_STRIDE, stride);
  CT_PUT(&cmd, VL_ROWS, rows);
  return cmd;
}

struct ct_cmd gen_vl(unsigned td, unsigned mode, unsigned spm, unsigned stride, unsigned rows) {
  return rows_command(CT_OP_VL, td, mode, spm, stride, rows);
}

struct ct_cmd gen_vs(unsigned ts, unsigned mode, unsigned spm, unsigned stride, unsigned rows) {
  return rows_command(CT_OP_VS, ts, mode, spm, stride, rows);
}

struct ct_cmd gen_va(unsigned td, unsigned ta) {
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, CT_OP_VA);
  CT_PUT(&cmd, VA_TD, td);
  CT_PUT(&cmd, VA_TA, ta);
  CT_PUT(&cmd, VA_ROWS, kRows);
  CT_PUT(&cmd, VA_COLS, kCols);
  return cmd;
}

void gen_b(struct ct_cmd *cmd, unsigned source, unsigned tq) {
  CT_PUT(cmd, VA_B_SRC, source);
  if (source != 3) CT_PUT(cmd, VA_TQ, tq);
}

void gen_c(struct ct_cmd *cmd, unsigned source, unsigned tq, unsigned fn) {
  CT_PUT(cmd, VA_C_SRC, source);
  CT_PUT(cmd, VA_FN, fn);
  if (source != 3) CT_PUT(cmd, VA_TQ, tq);
}

/* ---- Order --------------------------------------------------------------------------------- */

gen_order *gen_order_new(vpu_bench *b, unsigned c) {
  gen_order *o = calloc(1, sizeof *o);
  assert_non_null(o);
  o->b = b;
  o->c = c;
  /* Six of sixteen semaphores, in places that differ from run to run. */
  uint8_t names[kSems];
  for (unsigned i = 0; i < kSems; ++i) {
    const unsigned j = ct_rng_below(&b->rng, i + 1);
    names[i] = names[j];
    names[j] = (uint8_t)i;
  }
  unsigned n = 0;
  for (unsigned from = 0; from < kSides; ++from) {
    o->last[from] = -1;
    for (unsigned to = 0; to < kSides; ++to) {
      o->ordered[from][to] = -1;
      if (from != to) o->name[from][to] = names[n++];
    }
  }
  for (unsigned t = 0; t < kTiles; ++t) {
    o->writer[t] = -1;
    for (unsigned s = 0; s < kSides; ++s)
      o->reader[t][s] = -1;
  }
  return o;
}

static void put_sig(struct ct_cmd *cmd, unsigned sem) {
  if (!CT_GET(cmd, ALL_SIG0))
    CT_PUT(cmd, ALL_SIG0, CT_SEM(sem));
  else {
    assert_int_equal(CT_GET(cmd, ALL_SIG1), 0);
    CT_PUT(cmd, ALL_SIG1, CT_SEM(sem));
  }
}

static void put_wait(struct ct_cmd *cmd, unsigned sem, unsigned place) {
  for (unsigned i = 0; i < 3; ++i, place = (place + 1) % 3) {
    const unsigned lsb = CT_F_ALL_WAIT0_LSB + 5 * place;
    if (ct_cmd_bits(cmd, lsb, 5)) continue;
    ct_cmd_set_bits(cmd, lsb, 5, CT_SEM(sem));
    return;
  }
  fail_msg("a command with four waits");
}

/* Command `first` of another side has to be complete before cmd starts. */
static void order(gen_order *o, struct ct_cmd *cmd, unsigned to, int first) {
  if (first < 0) return;
  const unsigned from = o->side[first];
  if (from == to || first <= o->ordered[from][to]) return;
  put_sig(&o->b->ctx[o->c].program[o->last[from]], o->name[from][to]);
  put_wait(cmd, o->name[from][to], ct_rng_below(&o->b->rng, 3));
  o->ordered[from][to] = o->last[from];
}

static void reads_tile(gen_order *o, struct ct_cmd *cmd, unsigned side, unsigned t) {
  order(o, cmd, side, o->writer[t]);
}

static void writes_tile(gen_order *o, struct ct_cmd *cmd, unsigned side, unsigned t) {
  order(o, cmd, side, o->writer[t]);
  for (unsigned s = 0; s < kSides; ++s)
    order(o, cmd, side, o->reader[t][s]);
}

static void mark(uint64_t *words, const struct ct_cmd *cmd) {
  for (unsigned r = 0; r < CT_GET(cmd, VL_ROWS); ++r)
    for (unsigned w = 0; w < (CT_GET(cmd, VL_MODE) ? 1 : 4); ++w) {
      const unsigned at = CT_GET(cmd, VL_SPM) + r * CT_GET(cmd, VL_ROW_STRIDE) + w;
      words[at / 64] |= UINT64_C(1) << at % 64;
    }
}

static bool meet(const uint64_t *a, const uint64_t *b) {
  for (unsigned i = 0; i < kWindow / 64; ++i)
    if (a[i] & b[i]) return true;
  return false;
}

static bool uses_q(const struct ct_cmd *cmd) {
  return CT_GET(cmd, VA_B_SRC) % 3 || CT_GET(cmd, VA_C_SRC) % 3;
}

/* What a command reads and writes, noted as being done by command n. */
static void note(gen_order *o, const struct ct_cmd *cmd, unsigned side, unsigned n) {
  o->side[n] = (uint8_t)side;
  o->last[side] = (int)n;
  if (side == kVl) {
    mark(o->reads[n], cmd);
    o->writer[CT_GET(cmd, VL_TD)] = (int)n;
  } else if (side == kVs) {
    mark(o->writes[n], cmd);
    o->reader[CT_GET(cmd, VS_TS)][side] = (int)n;
  } else {
    if (CT_GET(cmd, VA_A_SRC) == 0) o->reader[CT_GET(cmd, VA_TA)][side] = (int)n;
    if (uses_q(cmd)) o->reader[CT_GET(cmd, VA_TQ)][side] = (int)n;
    o->writer[CT_GET(cmd, VA_TD)] = (int)n;
  }
}

static void order_tiles(gen_order *o, struct ct_cmd *cmd, unsigned side) {
  if (side == kVl) writes_tile(o, cmd, side, CT_GET(cmd, VL_TD));
  if (side == kVs) reads_tile(o, cmd, side, CT_GET(cmd, VS_TS));
  if (side != kVa) return;
  if (CT_GET(cmd, VA_A_SRC) == 0) reads_tile(o, cmd, side, CT_GET(cmd, VA_TA));
  if (uses_q(cmd)) reads_tile(o, cmd, side, CT_GET(cmd, VA_TQ));
  writes_tile(o, cmd, side, CT_GET(cmd, VA_TD));
}

static void order_words(gen_order *o, struct ct_cmd *cmd, unsigned side) {
  if (side == kVa) return;
  uint64_t mine[kWindow / 64] = {0};
  mark(mine, cmd);
  for (int n = (int)o->b->ctx[o->c].emitted - 1; n >= 0; --n)
    if (meet(mine, side == kVl ? o->writes[n] : o->reads[n])) order(o, cmd, side, n);
}

unsigned gen_emit(gen_order *o, const struct ct_cmd *command) {
  struct ct_cmd cmd = *command;
  const unsigned op = CT_GET(&cmd, ALL_OP);
  const unsigned side = op == CT_OP_VL ? kVl : op == CT_OP_VA ? kVa : kVs;
  order_tiles(o, &cmd, side);
  order_words(o, &cmd, side);
  note(o, &cmd, side, o->b->ctx[o->c].emitted);
  return vpu_emit(o->b, o->c, &cmd);
}

/* ---- Random contents ----------------------------------------------------------------------- */

uint32_t gen_float(ct_rng *rng) {
  static const uint32_t special[] = {0,          0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                     0x7F800001, 0xFFFFFFFF, 0x00000001, 0x807FFFFF, 0x00800000,
                                     0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000};
  const uint32_t bits = (uint32_t)ct_rng_u64(rng);
  const unsigned kind = ct_rng_below(rng, 100);
  if (kind < 3) return special[ct_rng_below(rng, sizeof special / sizeof special[0])];
  if (kind < 10) return (bits & 0x80FFFFFFu) | (100 + bits % 55) << 23;
  if (kind < 30) return (bits & 0x80700000u) | (124 + bits % 8) << 23; /* ties, equal values */
  return (bits & 0x807FFFFFu) | (120 + bits % 12) << 23;
}

static void random_hbfp(ct_rng *rng, vpu_word *w) {
  ct_rng_fill(rng, w->byte, 16);
  for (unsigned i = 0; i < 16; ++i)
    if (w->byte[i] == 0x80) w->byte[i] = 0;
  const unsigned kind = ct_rng_below(rng, 40);
  w->exp = (uint8_t)(kind == 0   ? 255
                     : kind == 1 ? 0
                     : kind < 4  ? 1 + ct_rng_below(rng, 254)
                     : kind == 4 ? 1 + ct_rng_below(rng, 7)
                                 : 118 + ct_rng_below(rng, 16));
}

void gen_memory(vpu_bench *b, unsigned c, ct_rng *rng) {
  for (unsigned at = 0; at < kWindow; ++at) {
    vpu_word w = {.exp = 0};
    if (at < 256) {
      for (unsigned i = 0; i < 4; ++i)
        vpu_word_set_f32(&w, i, gen_float(rng));
      w.exp = (uint8_t)ct_rng_below(rng, 256); /* FP32 loads do not look at it */
    } else if (at < 512) {
      random_hbfp(rng, &w);
    }
    vpu_poke(b, c, at, &w);
  }
}

void gen_load_all(gen_order *o, ct_rng *rng) {
  for (unsigned t = 0; t < kTiles; ++t) {
    const struct ct_cmd cmd = gen_vl(t, 0, ct_rng_below(rng, 193), 4, kRows);
    gen_emit(o, &cmd);
  }
}

void gen_store_all(gen_order *o) {
  for (unsigned t = 0; t < kTiles; ++t) {
    const struct ct_cmd cmd = gen_vs(t, 0, 512 + 64 * (t % 8), 4, kRows);
    gen_emit(o, &cmd);
  }
}

/* ---- Random commands ----------------------------------------------------------------------- */

static struct ct_cmd random_rows(ct_rng *rng, unsigned op, unsigned rows) {
  const unsigned mode = ct_rng_below(rng, 3), n = 1 + ct_rng_below(rng, rows);
  const unsigned words = op == CT_OP_VL && mode ? 256 : 0;
  const unsigned base = op == CT_OP_VS || ct_rng_percent(rng, 10) ? 512 : words;
  const unsigned size = op == CT_OP_VS || base == 512 ? 512 : 256, tail = mode ? 1 : 4;
  const unsigned most = n > 1 ? (size - tail) / (n - 1) : 65535;
  /* Rows that overlap are allowed: the last one written stays. */
  unsigned stride = ct_rng_below(rng, most < 40 ? most + 1 : 41);
  if (n == 1) stride = ct_rng_below(rng, 65536);
  const unsigned span = (n - 1) * stride + tail;
  const unsigned at = base + ct_rng_below(rng, size - span + 1);
  struct ct_cmd cmd = rows_command(op, ct_rng_below(rng, kTiles), mode, at, stride, n);
  if (op == CT_OP_VS) CT_PUT(&cmd, VS_NARROW, ct_rng_below(rng, 7));
  return cmd;
}

static struct ct_cmd random_va(ct_rng *rng, unsigned rows) {
  static const uint8_t funcs[] = {0, 0, 0, 8, 9, 10, 11};
  struct ct_cmd cmd = gen_va(ct_rng_below(rng, kTiles), ct_rng_below(rng, kTiles));
  const unsigned b = ct_rng_below(rng, 4), c = ct_rng_below(rng, 4);
  CT_PUT(&cmd, VA_A_SRC, ct_rng_below(rng, 10) < 7 ? 0 : 1 + ct_rng_below(rng, 2));
  CT_PUT(&cmd, VA_TQ, ct_rng_below(rng, kTiles));
  CT_PUT(&cmd, VA_B_SRC, b % 3 && c % 3 ? 0 : b);
  CT_PUT(&cmd, VA_C_SRC, c);
  CT_PUT(&cmd, VA_FN, ct_rng_below(rng, 5));
  CT_PUT(&cmd, VA_NEG_C, ct_rng_below(rng, 2));
  CT_PUT(&cmd, VA_RELU, ct_rng_percent(rng, 20));
  CT_PUT(&cmd, VA_PAD_NINF, ct_rng_percent(rng, 20));
  CT_PUT(&cmd, VA_FUNC, funcs[ct_rng_below(rng, sizeof funcs)]);
  CT_PUT(&cmd, VA_FULL, ct_rng_below(rng, 2));
  CT_PUT(&cmd, VA_SB, gen_float(rng));
  CT_PUT(&cmd, VA_SC, gen_float(rng));
  CT_PUT(&cmd, VA_ROWS, 1 + ct_rng_below(rng, rows));
  CT_PUT(&cmd, VA_COLS, ct_rng_below(rng, 2) ? 16 : 1 + ct_rng_below(rng, 16));
  if (ct_rng_percent(rng, 25)) {
    CT_PUT(&cmd, VA_ROW_XOR, ct_rng_below(rng, 16));
    CT_PUT(&cmd, VA_LANE_XOR, ct_rng_below(rng, 16));
    if (CT_GET(&cmd, VA_TQ) == CT_GET(&cmd, VA_TD))
      CT_PUT(&cmd, VA_TQ, (CT_GET(&cmd, VA_TD) + 1) % kTiles);
  } else if (ct_rng_percent(rng, 25)) {
    CT_PUT(&cmd, VA_TQ, CT_GET(&cmd, VA_TD));
  }
  return cmd;
}

struct ct_cmd gen_random(ct_rng *rng, unsigned rows) {
  const unsigned kind = ct_rng_below(rng, 100);
  if (kind < 25) return random_rows(rng, CT_OP_VL, rows);
  if (kind < 50) return random_rows(rng, CT_OP_VS, rows);
  return random_va(rng, rows);
}
