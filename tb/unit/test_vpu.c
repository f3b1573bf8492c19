/* SPDX-License-Identifier: Apache-2.0 */
/* ct_vpu with 16 and with 4 lanes, these with one and with four functions: random race-free
 * programs of both contexts against the model, aborts in the middle, chains as programs use them
 * against plain C, errors, rates, shares. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/emu/ct_num.h"
#include "host/lib/isa/ct_bound.h"
#include "host/lib/lower/ct_chain.h"
#include "vpu_gen.h"

enum { kMoreSem = 9 };
enum { kVariants = 3, kPriority = 0, kFcfs = 1, kRoundRobin = 2, kJob = 3 };

static const unsigned kLanes[kVariants] = {16, 4, 4};
/* How often VA issues a beat of a function operation. */
static const unsigned kTurns[kVariants] = {1, 4, 1};

static float as_float(uint32_t x) {
  float f;
  memcpy(&f, &x, sizeof f);
  return f;
}

static uint32_t as_bits(float f) {
  uint32_t x;
  memcpy(&x, &f, sizeof x);
  return x;
}

/* ---- Random programs ----------------------------------------------------------------------- */

/* Waits for semaphores that the bench gives at random times, and signals that nobody waits for,
 * also twice the same: on what the order has left free. total: how many of the latter must arrive.
 */
static void add_extras(vpu_bench *b, const gen_order *o, unsigned first, ct_rng *rng,
                       unsigned total[kSems]) {
  vpu_ctx *x = &b->ctx[o->c];
  bool used[kSems] = {false};
  unsigned spare[kSems], n = 0;
  for (unsigned from = 0; from < kSides; ++from)
    for (unsigned to = 0; to < kSides; ++to)
      if (from != to) used[o->name[from][to]] = true;
  for (unsigned i = 0; i < kSems; ++i)
    if (!used[i]) spare[n++] = i;
  memset(total, 0, kSems * sizeof *total);
  for (unsigned i = first; i < x->emitted; ++i) {
    struct ct_cmd *cmd = &x->program[i];
    if (ct_rng_percent(rng, 10) && !CT_GET(cmd, ALL_WAIT2)) {
      const unsigned sem = spare[o->side[i]];
      CT_PUT(cmd, ALL_WAIT2, CT_SEM(sem));
      ++x->gift[sem];
    }
    if (ct_rng_below(rng, 2)) continue;
    const unsigned sem = spare[kSides + ct_rng_below(rng, n - kSides)];
    const bool twice = ct_rng_below(rng, 2);
    for (unsigned k = 0; k < 2; ++k) {
      const unsigned lsb = k ? CT_F_ALL_SIG1_LSB : CT_F_ALL_SIG0_LSB;
      if (ct_cmd_bits(cmd, lsb, 5)) continue;
      if (k == 1 && !twice) continue;
      ct_cmd_set_bits(cmd, lsb, 5, CT_SEM(sem));
      ++total[sem];
    }
  }
}

static gen_order *random_program(vpu_bench *b, unsigned c, ct_rng *rng, unsigned commands,
                                 unsigned rows, unsigned total[kSems]) {
  gen_order *o = gen_order_new(b, c);
  const unsigned first = b->ctx[c].emitted;
  gen_memory(b, c, rng);
  gen_load_all(o, rng);
  for (unsigned i = 0; i < commands; ++i) {
    const struct ct_cmd cmd = gen_random(rng, rows);
    gen_emit(o, &cmd);
  }
  gen_store_all(o);
  add_extras(b, o, first, rng, total);
  return o;
}

static void check_sems(const vpu_bench *b, unsigned c, const unsigned total[kSems]) {
  for (unsigned i = 0; i < kSems; ++i)
    assert_int_equal(b->ctx[c].sem[i], total[i]);
}

/* Every policy in turn, any floor; half of them 0. */
static void share(vpu_bench *b, ct_rng *rng, unsigned k) {
  b->policy = k % 5;
  b->floor = ct_rng_percent(rng, 50) ? 0 : (unsigned)ct_rng_below(rng, 256);
}

static void random_programs(void **state) {
  (void)state;
  static const unsigned stall[] = {0, 25, 60};
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned k = 0; k < 24; ++k) {
      vpu_bench *b = vpu_open(v, 100 * v + k);
      ct_rng rng = ct_rng_make(5000 + 100 * v + k);
      unsigned total[kCtx][kSems];
      share(b, &rng, k);
      vpu_stalls(b, 3000 + 100 * v + k, stall[k % 3], stall[k / 3 % 3], k % 5 ? 0 : 50);
      for (unsigned c = 0; c < kCtx; ++c)
        free(random_program(b, c, &rng, 300, k % 2 ? 16 : 3, total[c]));
      vpu_run(b, 400000);
      for (unsigned c = 0; c < kCtx; ++c)
        check_sems(b, c, total[c]);
      vpu_close(b);
    }
  }
}

/* One context is aborted again and again; the other must not notice, the aborted one must work
 * afterwards. */
static void aborts(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned k = 0; k < 12; ++k) {
      vpu_bench *b = vpu_open(v, 300 + 100 * v + k);
      ct_rng rng = ct_rng_make(7000 + 100 * v + k);
      unsigned total[kCtx][kSems];
      share(b, &rng, k);
      vpu_stalls(b, 4000 + 100 * v + k, 25, 25, 10);
      const unsigned victim = k & 1;
      free(random_program(b, !victim, &rng, 300, 16, total[!victim]));
      for (unsigned round = 0; round < 8; ++round) {
        free(random_program(b, victim, &rng, 60, k % 3 ? 16 : 2, total[victim]));
        const unsigned cycles = ct_rng_below(&rng, v ? 9000 : 4000);
        for (unsigned i = 0; i < cycles; ++i)
          vpu_cycle(b);
        vpu_abort(b, victim, 300);
      }
      free(random_program(b, victim, &rng, 60, 16, total[victim]));
      vpu_run(b, 400000);
      for (unsigned c = 0; c < kCtx; ++c)
        check_sems(b, c, total[c]);
      vpu_close(b);
    }
  }
}

/* ---- Rows of one context between those of the other ---------------------------------------- */

/* Like vpu_run(), but the policy changes and the unit freezes in the middle of operations. */
static void shaken_run(vpu_bench *b, ct_rng *rng, unsigned limit) {
  do {
    if (ct_rng_percent(rng, 4)) share(b, rng, (unsigned)ct_rng_below(rng, 5));
    *b->p.freeze_i = ct_rng_percent(rng, *b->p.freeze_i ? 70 : 3);
    vpu_cycle(b);
    if (!limit--) fail_msg("not finished");
  } while (!vpu_finished(b, 0) || !vpu_finished(b, 1));
  *b->p.freeze_i = 0;
  for (unsigned c = 0; c < kCtx; ++c)
    vpu_compare(b, c);
}

/* All on three tiles, so that each command needs what those just before it leave. */
static struct ct_cmd crowded(ct_rng *rng, unsigned rows) {
  enum { kFew = 3 };
  struct ct_cmd cmd = gen_random(rng, rows);
  if (CT_GET(&cmd, ALL_OP) != CT_OP_VA) {
    CT_PUT(&cmd, VL_TD, CT_GET(&cmd, VL_TD) % kFew);
    return cmd;
  }
  const unsigned td = CT_GET(&cmd, VA_TD) % kFew, tq = CT_GET(&cmd, VA_TQ) % kFew;
  const bool permutes = CT_GET(&cmd, VA_ROW_XOR) || CT_GET(&cmd, VA_LANE_XOR);
  CT_PUT(&cmd, VA_TD, td);
  CT_PUT(&cmd, VA_TA, CT_GET(&cmd, VA_TA) % kFew);
  CT_PUT(&cmd, VA_TQ, permutes && td == tq ? (td + 1) % kFew : tq);
  return cmd;
}

static void crowded_program(vpu_bench *b, unsigned c, ct_rng *rng, unsigned commands, unsigned rows,
                            unsigned total[kSems]) {
  gen_order *o = gen_order_new(b, c);
  const unsigned first = b->ctx[c].emitted;
  gen_memory(b, c, rng);
  gen_load_all(o, rng);
  for (unsigned i = 0; i < commands; ++i) {
    struct ct_cmd cmd = crowded(rng, rows);
    gen_emit(o, &cmd);
    if (CT_GET(&cmd, ALL_OP) != CT_OP_VS || CT_GET(&cmd, VS_MODE) || ct_rng_percent(rng, 30))
      continue;
    /* The square copy of a master: its exponent is known, if nothing comes between. */
    cmd = gen_vs(CT_GET(&cmd, VS_TS), 2, 900 + ct_rng_below(rng, 100), 1, CT_GET(&cmd, VS_ROWS));
    gen_emit(o, &cmd);
  }
  gen_store_all(o);
  add_extras(b, o, first, rng, total);
  free(o);
}

static void rows_between_rows(void **state) {
  (void)state;
  static const uint8_t rows[] = {16, 5, 3, 9};
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned k = 0; k < 12; ++k) {
      vpu_bench *b = vpu_open(v, 400 + 100 * v + k);
      ct_rng rng = ct_rng_make(8000 + 100 * v + k);
      unsigned total[kCtx][kSems];
      vpu_stalls(b, 5000 + 100 * v + k, k % 3 ? 0 : 30, k % 4 ? 0 : 40, 0);
      for (unsigned round = 0; round < 6; ++round) {
        const unsigned victim = (unsigned)ct_rng_below(&rng, kCtx);
        for (unsigned c = 0; c < kCtx; ++c)
          crowded_program(b, c, &rng, 60, rows[(k + round) % 4], total[c]);
        /* Abort between rows; the next program follows at once. */
        for (unsigned i = 1500 + ct_rng_below(&rng, 3500); i; --i) {
          if (ct_rng_percent(&rng, 4)) share(b, &rng, (unsigned)ct_rng_below(&rng, 5));
          vpu_cycle(b);
        }
        vpu_abort(b, victim, 400);
        crowded_program(b, victim, &rng, 60, rows[k % 4], total[victim]);
        shaken_run(b, &rng, 400000);
        for (unsigned c = 0; c < kCtx; ++c) {
          check_sems(b, c, total[c]);
          b->ctx[c].emitted = b->ctx[c].dispatched = b->ctx[c].expected = b->ctx[c].seen = 0;
          memset(b->ctx[c].sem, 0, sizeof b->ctx[c].sem);
        }
      }
      vpu_close(b);
    }
  }
}

/* Rows of one tile, one behind the other, by the long way and by the short one: the last stays. */
static void short_behind_long(void **state) {
  (void)state;
  enum { kTimes = 40, kRowsOfOne = 6 };
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 480 + v);
    ct_rng rng = ct_rng_make(8700 + v);
    for (unsigned k = 0; k < kTimes; ++k) {
      for (unsigned c = 0; c < kCtx; ++c) {
        for (unsigned i = 0; i < kRowsOfOne; ++i) {
          struct ct_cmd cmd = gen_va(0, ct_rng_below(&rng, kTiles));
          CT_PUT(&cmd, VA_A_SRC, 1);
          CT_PUT(&cmd, VA_ROWS, 1);
          CT_PUT(&cmd, VA_RELU, ct_rng_percent(&rng, 30));
          vpu_emit(b, c, &cmd);
        }
      }
      vpu_run(b, 2000); /* all is written: a row may go the short way */
      for (unsigned c = 0; c < kCtx; ++c) {
        const struct ct_cmd cmd = gen_vs(0, 0, 512, 4, 1);
        vpu_emit(b, c, &cmd);
      }
      vpu_run(b, 2000);
    }
    vpu_close(b);
  }
}

/* A command with More, each of its tiles on its own for the model. */
static void emit_more(vpu_bench *b, unsigned c, struct ct_cmd cmd, unsigned more) {
  vpu_ctx *x = &b->ctx[c];
  const bool va = CT_GET(&cmd, ALL_OP) == CT_OP_VA;
  for (unsigned i = 0; i <= more; ++i) {
    struct ct_cmd one = cmd;
    if (va) {
      CT_PUT(&one, VA_TD, CT_GET(&cmd, VA_TD) + i);
      CT_PUT(&one, VA_TA, CT_GET(&cmd, VA_TA) + i);
    } else {
      CT_PUT(&one, VS_TS, CT_GET(&cmd, VS_TS) + i);
      CT_PUT(&one, VS_SPM, CT_GET(&cmd, VS_SPM) + i * CT_GET(&cmd, VS_TILE_STRIDE));
    }
    assert_true(x->expected + 64 <= kMaxWrites);
    x->expected += vpu_execute(&x->model, &one, x->writes + x->expected);
  }
  if (va)
    CT_PUT(&cmd, VA_MORE, more);
  else
    CT_PUT(&cmd, VS_MORE, more);
  if (CT_GET(&cmd, ALL_WAIT1)) x->gift[kMoreSem] += more + 1; /* each tile waits anew */
  vpu_emit_only(b, c, &cmd);
}

/* Commands over many tiles, cut between rows and between tiles. */
static void tiles_between_tiles(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned k = 0; k < 6; ++k) {
      vpu_bench *b = vpu_open(v, 450 + 10 * v + k);
      ct_rng rng = ct_rng_make(8500 + 10 * v + k);
      for (unsigned c = 0; c < kCtx; ++c) {
        gen_order *o = gen_order_new(b, c);
        gen_memory(b, c, &rng);
        gen_load_all(o, &rng);
        free(o);
      }
      shaken_run(b, &rng, 100000);
      for (unsigned i = 0; i < 8; ++i) {
        for (unsigned c = 0; c < kCtx; ++c) {
          struct ct_cmd cmd = gen_va(i % 2 ? 0 : 8, i % 2 ? 8 : 0);
          CT_PUT(&cmd, ALL_WAIT1, CT_SEM(kMoreSem));
          const unsigned kind = (unsigned)ct_rng_below(&rng, 5), rows = 1 + ct_rng_below(&rng, 16);
          CT_PUT(&cmd, VA_ROWS, rows);
          CT_PUT(&cmd, VA_FULL, ct_rng_below(&rng, 2));
          if (kind == 1) CT_PUT(&cmd, VA_FUNC, 8);
          if (kind == 2) gen_c(&cmd, 2, CT_GET(&cmd, VA_TD), 0); /* row 0 of the first tile */
          if (kind == 3) CT_PUT(&cmd, VA_A_SRC, 1);
          if (kind == 4) gen_c(&cmd, 1, 7, 1);
          if (kind == 4) CT_PUT(&cmd, VA_LANE_XOR, CT_GET(&cmd, VA_TD) ? 5 : 0);
          emit_more(b, c, cmd, (unsigned)ct_rng_below(&rng, 8));
        }
      }
      shaken_run(b, &rng, 100000);
      for (unsigned i = 0; i < 12; ++i) {
        for (unsigned c = 0; c < kCtx; ++c) {
          const unsigned rows = 1 + ct_rng_below(&rng, 16);
          struct ct_cmd cmd = gen_vs(i % 4 * 4, i % 2 ? 2 : ct_rng_below(&rng, 3), 512, 4, rows);
          CT_PUT(&cmd, VS_TILE_STRIDE, ct_rng_below(&rng, 100));
          CT_PUT(&cmd, ALL_WAIT1, CT_SEM(kMoreSem));
          emit_more(b, c, cmd, (unsigned)ct_rng_below(&rng, 4));
        }
      }
      shaken_run(b, &rng, 100000);
      vpu_close(b);
    }
  }
}

/* ---- Chains -------------------------------------------------------------------------------- */

/* A tile as FP32 rows at word `at` of the SPM. */
static void poke_tile(vpu_bench *b, unsigned c, unsigned at, uint32_t x[kRows][kCols]) {
  for (unsigned r = 0; r < kRows; ++r)
    for (unsigned w = 0; w < 4; ++w) {
      vpu_word word = {.exp = 0};
      for (unsigned i = 0; i < 4; ++i)
        vpu_word_set_f32(&word, i, x[r][4 * w + i]);
      vpu_poke(b, c, at + 4 * r + w, &word);
    }
}

static uint32_t peek(const vpu_bench *b, unsigned c, unsigned at, unsigned r, unsigned j) {
  return vpu_word_f32(&b->ctx[c].spm[at + 4 * r + j / 4], j % 4);
}

static void random_tile(ct_rng *rng, float scale, uint32_t x[kRows][kCols]) {
  for (unsigned r = 0; r < kRows; ++r)
    for (unsigned j = 0; j < kCols; ++j)
      x[r][j] = as_bits(((float)ct_rng_below(rng, 1u << 20) / (float)(1u << 19) - 1.0f) * scale);
}

/* td = op over all lanes of ta: four steps through the tiles td and td + 1. */
static void butterfly(gen_order *o, unsigned td, unsigned ta, unsigned fn) {
  unsigned from = ta;
  for (unsigned by = 8, to = td; by; by /= 2, to ^= 1) {
    struct ct_cmd cmd = gen_va(to, from);
    gen_c(&cmd, 1, from, fn);
    CT_PUT(&cmd, VA_LANE_XOR, by);
    gen_emit(o, &cmd);
    from = to;
  }
  const struct ct_cmd copy = gen_va(td, from);
  gen_emit(o, &copy);
}

static void softmax_row(const uint32_t x[kCols], uint32_t y[kCols]) {
  float e[kCols], top = as_float(x[0]), sum[kCols];
  for (unsigned j = 0; j < kCols; ++j)
    if (as_float(x[j]) > top) top = as_float(x[j]);
  for (unsigned j = 0; j < kCols; ++j)
    sum[j] = e[j] = as_float(ct_fn_exp(as_bits(as_float(x[j]) - top)));
  for (unsigned by = 8; by; by /= 2)
    for (unsigned j = 0; j < by; ++j)
      sum[j] = sum[j] + sum[j + by];
  const float scale = as_float(ct_fn_recip(as_bits(sum[0])));
  for (unsigned j = 0; j < kCols; ++j)
    y[j] = as_bits(e[j] * scale);
}

static void softmax(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 500 + v);
    ct_rng rng = ct_rng_make(9000 + v);
    uint32_t x[kCtx][kRows][kCols], y[kCols];
    for (unsigned c = 0; c < kCtx; ++c) {
      gen_order *o = gen_order_new(b, c);
      random_tile(&rng, 9.0f, x[c]);
      poke_tile(b, c, 0, x[c]);
      struct ct_cmd cmd = gen_vl(0, 0, 0, 4, kRows);
      gen_emit(o, &cmd);
      butterfly(o, 2, 0, 1);
      cmd = gen_va(4, 0); /* exp(x - max) */
      gen_c(&cmd, 1, 2, 0);
      CT_PUT(&cmd, VA_NEG_C, 1);
      CT_PUT(&cmd, VA_FUNC, 8);
      gen_emit(o, &cmd);
      butterfly(o, 6, 4, 0);
      cmd = gen_va(8, 6);
      CT_PUT(&cmd, VA_FUNC, 9);
      gen_emit(o, &cmd);
      cmd = gen_va(9, 4);
      gen_b(&cmd, 1, 8);
      gen_emit(o, &cmd);
      cmd = gen_vs(9, 0, 512, 4, kRows);
      gen_emit(o, &cmd);
      free(o);
    }
    vpu_run(b, 4000);
    for (unsigned c = 0; c < kCtx; ++c)
      for (unsigned r = 0; r < kRows; ++r) {
        float sum = 0;
        softmax_row(x[c][r], y);
        for (unsigned j = 0; j < kCols; ++j) {
          assert_int_equal(peek(b, c, 512, r, j), y[j]);
          sum += as_float(y[j]);
        }
        assert_true(sum > 0.9999f && sum < 1.0001f);
      }
    vpu_close(b);
  }
}

/* The first element read is the last one written just before. */
static void reads_the_last_row_first(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 505 + v);
    ct_rng rng = ct_rng_make(9050 + v);
    uint32_t x[kRows][kCols];
    random_tile(&rng, 3.0f, x);
    poke_tile(b, 0, 0, x);
    gen_order *o = gen_order_new(b, 0);
    struct ct_cmd cmd = gen_vl(0, 0, 0, 4, kRows);
    gen_emit(o, &cmd);
    for (unsigned t = 1; t < 8; ++t) {
      cmd = gen_va(t, 0);
      gen_c(&cmd, t == 1 ? 0 : 1, t - 1, 0);
      CT_PUT(&cmd, VA_A_SRC, t == 1 ? 0 : 2);
      CT_PUT(&cmd, VA_ROW_XOR, 15);
      CT_PUT(&cmd, VA_LANE_XOR, 15);
      gen_emit(o, &cmd);
    }
    cmd = gen_vs(7, 0, 512, 4, kRows);
    gen_emit(o, &cmd);
    vpu_run(b, 4000);
    for (unsigned r = 0; r < kRows; ++r) /* turned six times */
      for (unsigned j = 0; j < kCols; ++j)
        assert_int_equal(peek(b, 0, 512, r, j), x[r][j]);
    free(o);
    vpu_close(b);
  }
}

/* v = mu v + g; w = w - rate v; w is stored as FP32 and, from the same value, as a square tile. */
static void optimiser(void **state) {
  (void)state;
  const float mu = 0.9f, rate = 0.01f;
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 510 + v);
    ct_rng rng = ct_rng_make(9100 + v);
    uint32_t x[3][kRows][kCols]; /* w, v, g */
    gen_order *o = gen_order_new(b, 1);
    for (unsigned t = 0; t < 3; ++t) {
      random_tile(&rng, t ? 0.1f : 1.0f, x[t]);
      poke_tile(b, 1, 64 * t, x[t]);
      const struct ct_cmd cmd = gen_vl(t, 0, 64 * t, 4, kRows);
      gen_emit(o, &cmd);
    }
    struct ct_cmd cmd = gen_va(1, 1);
    gen_b(&cmd, 3, 0);
    CT_PUT(&cmd, VA_SB, as_bits(mu));
    gen_c(&cmd, 1, 2, 0);
    gen_emit(o, &cmd);
    cmd = gen_va(0, 1);
    gen_b(&cmd, 3, 0);
    CT_PUT(&cmd, VA_SB, as_bits(-rate));
    gen_c(&cmd, 1, 0, 0);
    gen_emit(o, &cmd);
    cmd = gen_vs(0, 0, 512, 4, kRows);
    gen_emit(o, &cmd);
    cmd = gen_vs(0, 2, 600, 1, kRows);
    gen_emit(o, &cmd);
    vpu_run(b, 4000);
    uint32_t w[kRows][kCols];
    for (unsigned r = 0; r < kRows; ++r)
      for (unsigned j = 0; j < kCols; ++j) {
        const float velocity = mu * as_float(x[1][r][j]) + as_float(x[2][r][j]);
        w[r][j] = as_bits(-rate * velocity + as_float(x[0][r][j]));
        assert_int_equal(peek(b, 1, 512, r, j), w[r][j]);
      }
    const uint8_t exp = ct_hbfp8_group_exp(w[0], kRows * kCols);
    for (unsigned r = 0; r < kRows; ++r) {
      assert_int_equal(b->ctx[1].spm[600 + r].exp, exp);
      for (unsigned j = 0; j < kCols; ++j)
        assert_int_equal((int8_t)b->ctx[1].spm[600 + r].byte[j], ct_hbfp8_quant(w[r][j], exp));
    }
    free(o);
    vpu_close(b);
  }
}

/* dx = dy where q > 0, by a sign load and a multiplication; also as a select. */
static void masks(void **state) {
  (void)state;
  static const uint8_t exps[kRows] = {127, 0,   255, 1,   254, 133, 120, 2,
                                      127, 127, 0,   130, 255, 99,  3,   140};
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 520 + v);
    ct_rng rng = ct_rng_make(9200 + v);
    uint32_t dy[kRows][kCols];
    random_tile(&rng, 1.0f, dy);
    poke_tile(b, 0, 0, dy);
    for (unsigned r = 0; r < kRows; ++r) {
      vpu_word w = {.exp = exps[r]};
      for (unsigned j = 0; j < kCols; ++j)
        w.byte[j] = (uint8_t)((int)ct_rng_below(&rng, 5) - 2);
      vpu_poke(b, 0, 100 + 3 * r, &w);
    }
    gen_order *o = gen_order_new(b, 0);
    struct ct_cmd cmd = gen_vl(3, 0, 0, 4, kRows);
    gen_emit(o, &cmd);
    cmd = gen_vl(15, 2, 100, 3, kRows);
    gen_emit(o, &cmd);
    cmd = gen_va(0, 3);
    gen_b(&cmd, 1, 15);
    gen_emit(o, &cmd);
    cmd = gen_va(1, 3);
    gen_c(&cmd, 1, 15, 3);
    gen_emit(o, &cmd);
    cmd = gen_vs(0, 0, 512, 4, kRows);
    gen_emit(o, &cmd);
    cmd = gen_vs(1, 0, 640, 4, kRows);
    gen_emit(o, &cmd);
    vpu_run(b, 4000);
    for (unsigned r = 0; r < kRows; ++r)
      for (unsigned j = 0; j < kCols; ++j) {
        const int8_t q = (int8_t)b->ctx[0].spm[100 + 3 * r].byte[j];
        const bool on = q > 0 && exps[r] != 0 && exps[r] != 255;
        assert_int_equal(peek(b, 0, 512, r, j), on ? dy[r][j] : dy[r][j] & CT_FP_SIGN);
        assert_int_equal(peek(b, 0, 640, r, j), on ? dy[r][j] : 0);
      }
    free(o);
    vpu_close(b);
  }
}

/* 1.0 where a * b and c (its sign flipped or not) are equal, by value: a NaN equals nothing, zeros
 * and subnormals are equal. */
static void equals(void **state) {
  (void)state;
  static const uint32_t value[kCols] = {0,          0x80000000, 0x007FFFFF, 0x80000001,
                                        0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
                                        0x3F800000, 0xBF800000, 0x3F800001, 0x40000000,
                                        0x00800000, 0x80800000, 0x7F7FFFFF, 0x01000000};
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 540 + v);
    uint32_t x[kRows][kCols], y[kRows][kCols];
    for (unsigned r = 0; r < kRows; ++r)
      for (unsigned j = 0; j < kCols; ++j)
        x[r][j] = value[r], y[r][j] = value[j];
    poke_tile(b, 0, 0, x);
    poke_tile(b, 0, 64, y);
    gen_order *o = gen_order_new(b, 0);
    struct ct_cmd cmd = gen_vl(0, 0, 0, 4, kRows);
    gen_emit(o, &cmd);
    cmd = gen_vl(1, 0, 64, 4, kRows);
    gen_emit(o, &cmd);
    for (unsigned k = 0; k < 3; ++k) { /* c; -c; 2 a and c */
      cmd = gen_va(2 + k, 0);
      gen_c(&cmd, 1, 1, 4);
      CT_PUT(&cmd, VA_NEG_C, k == 1);
      if (k == 2) gen_b(&cmd, 3, 0), CT_PUT(&cmd, VA_SB, 0x40000000);
      gen_emit(o, &cmd);
      cmd = gen_vs(2 + k, 0, 512 + 64 * k, 4, kRows);
      gen_emit(o, &cmd);
    }
    vpu_run(b, 4000);
    for (unsigned r = 0; r < kRows; ++r)
      for (unsigned j = 0; j < kCols; ++j) {
        /* As a processor compares them, but for subnormals, which are zeros here. */
        const float a = r < 4 ? 0 : as_float(value[r]), c = j < 4 ? 0 : as_float(value[j]);
        assert_int_equal(peek(b, 0, 512, r, j), a == c ? CT_FP_ONE : 0);
        assert_int_equal(peek(b, 0, 576, r, j), a == -c ? CT_FP_ONE : 0);
        assert_int_equal(peek(b, 0, 640, r, j), 2 * a == c ? CT_FP_ONE : 0);
      }
    free(o);
    vpu_close(b);
  }
}

/* The gradient of a maximum over four tiles goes to the first of them that holds it: as
 * docs/programming.md says it is composed. */
static void maximum_backward(void **state) {
  (void)state;
  enum { kTaps = 4, kM = 4, kRest = 5, kE = 6, kDx = 8 };
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 550 + v);
    ct_rng rng = ct_rng_make(9300 + v);
    uint32_t x[kTaps][kRows][kCols], dy[kRows][kCols];
    gen_order *o = gen_order_new(b, 0);
    for (unsigned t = 0; t <= kTaps; ++t) {
      random_tile(&rng, 1.0f, dy);
      for (unsigned i = 0; t < kTaps && i < kRows * kCols; ++i) /* few values: many ties */
        x[t][i / kCols][i % kCols] = as_bits((float)ct_rng_below(&rng, 4) - 2);
      poke_tile(b, 0, 64 * t, t < kTaps ? x[t] : dy);
      const struct ct_cmd cmd = gen_vl(t < kTaps ? t : kRest, 0, 64 * t, 4, kRows);
      gen_emit(o, &cmd);
    }
    for (unsigned t = 1; t < kTaps; ++t) {
      struct ct_cmd cmd = gen_va(kM, t == 1 ? 0 : kM);
      gen_c(&cmd, 1, t, 1);
      gen_emit(o, &cmd);
    }
    for (unsigned t = 0; t < kTaps; ++t) {
      struct ct_cmd cmd = gen_va(kE, t); /* 1.0 where this one is the maximum */
      gen_c(&cmd, 1, kM, 4);
      gen_emit(o, &cmd);
      cmd = gen_va(kDx + t, kRest); /* what no earlier one has taken */
      gen_c(&cmd, 1, kE, 3);
      gen_emit(o, &cmd);
      cmd = gen_va(kRest, kRest);
      gen_c(&cmd, 1, kDx + t, 0);
      CT_PUT(&cmd, VA_NEG_C, 1);
      gen_emit(o, &cmd);
      cmd = gen_vs(kDx + t, 0, 512 + 64 * t, 4, kRows);
      gen_emit(o, &cmd);
    }
    vpu_run(b, 8000);
    for (unsigned i = 0; i < kRows * kCols; ++i) {
      const unsigned r = i / kCols, j = i % kCols;
      unsigned first = 0;
      for (unsigned t = 1; t < kTaps; ++t)
        if (as_float(x[t][r][j]) > as_float(x[first][r][j])) first = t;
      for (unsigned t = 0; t < kTaps; ++t)
        assert_int_equal(peek(b, 0, 512 + 64 * t, r, j), t == first ? dy[r][j] : 0);
    }
    free(o);
    vpu_close(b);
  }
}

/* Ties, saturation, signed zeros, subnormals, NaN and Inf, in rows and in squares. */
static void quantising(void **state) {
  (void)state;
  /* Largest exponent field 133: the step is 1. */
  static const float value[kCols] = {64.0f,  0.5f,   1.5f,    2.5f,  -0.5f, -1.5f, -2.5f, 126.5f,
                                     127.5f, 127.6f, -127.5f, 0.49f, 0.51f, -0.0f, 3.0f,  100.25f};
  static const int8_t want[kCols] = {64, 0, 2, 2, 0, -2, -2, 126, 127, 127, -127, 0, 1, 0, 3, 100};
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 530 + v);
    gen_order *o = gen_order_new(b, 1);
    uint32_t x[kRows][kCols] = {{0}};
    for (unsigned j = 0; j < kCols; ++j) {
      x[0][j] = as_bits(value[j]);
      x[1][j] = as_bits(value[15 - j] / 4);
      x[2][j] = j % 2 ? 0x80000000u : 0;
      x[3][j] = 0x007FFFFFu; /* subnormal: counts as 0 */
      x[4][j] = x[5][j] = as_bits(value[j]);
    }
    x[4][7] = 0x7FC00000;
    x[5][15] = 0xFF800000;
    poke_tile(b, 1, 0, x);
    struct ct_cmd cmd = gen_vl(0, 0, 0, 4, kRows);
    gen_emit(o, &cmd);
    cmd = gen_vs(0, 1, 512, 1, kRows);
    gen_emit(o, &cmd);
    cmd = gen_vs(0, 2, 540, 1, 4); /* without the NaN */
    gen_emit(o, &cmd);
    cmd = gen_vs(0, 2, 560, 1, kRows);
    gen_emit(o, &cmd);
    vpu_run(b, 4000);
    const vpu_word *w = b->ctx[1].spm;
    for (unsigned j = 0; j < kCols; ++j) {
      assert_int_equal((int8_t)w[512].byte[j], want[j]);
      assert_int_equal((int8_t)w[513].byte[j], want[15 - j]);
      assert_int_equal((int8_t)w[540].byte[j], want[j]);
      for (unsigned r = 2; r < kRows; ++r)
        assert_int_equal(w[512 + r].byte[j], 0);
      for (unsigned r = 0; r < kRows; ++r)
        assert_int_equal(w[560 + r].byte[j], 0);
    }
    assert_int_equal(w[512].exp, 133);
    assert_int_equal(w[513].exp, 131);
    assert_int_equal(w[514].exp, 0);
    assert_int_equal(w[515].exp, 0);
    assert_int_equal(w[516].exp, 255);
    assert_int_equal(w[517].exp, 255);
    for (unsigned r = 0; r < 4; ++r)
      assert_int_equal(w[540 + r].exp, 133);
    for (unsigned r = 0; r < kRows; ++r)
      assert_int_equal(w[560 + r].exp, 255);
    assert_int_equal(b->ctx[1].nan_events, 3); /* two rows, one square */
    free(o);
    vpu_close(b);
  }
}

/* ---- Errors -------------------------------------------------------------------------------- */

static void expect_error(vpu_bench *b, unsigned c, unsigned code, uint32_t addr, unsigned limit) {
  while (!b->ctx[c].err_code && limit--)
    vpu_cycle(b);
  assert_int_equal(b->ctx[c].err_code, code);
  assert_int_equal(b->ctx[c].err_addr, addr);
}

/* A command of c that errs, then others behind it: they must not be felt, and the other context
 * must go on. */
static void errs(unsigned v, unsigned c, struct ct_cmd bad, bool parity, uint32_t addr) {
  vpu_bench *b = vpu_open(v, 600 + addr);
  ct_rng rng = ct_rng_make(9300);
  unsigned total[kCtx][kSems];
  free(random_program(b, !c, &rng, 60, 16, total[!c]));
  vpu_stalls(b, 9400 + c, 20, 20, 0);
  gen_memory(b, c, &rng);
  if (parity) b->ctx[c].bad_parity[addr - b->base[c]] = true;
  CT_PUT(&bad, ALL_SIG0, CT_SEM(5));
  vpu_emit_only(b, c, &bad);
  for (unsigned i = 0; i < 3; ++i) {
    struct ct_cmd cmd = i == 0   ? gen_vl(1, 0, 0, 4, 16)
                        : i == 1 ? gen_va(2, 1)
                                 : gen_vs(2, 0, 512, 4, 16);
    CT_PUT(&cmd, ALL_WAIT0, CT_SEM(5 + i));
    CT_PUT(&cmd, ALL_SIG0, CT_SEM(6 + i));
    vpu_emit_only(b, c, &cmd);
  }
  expect_error(b, c, parity ? CT_DEV_PARITY : CT_DEV_SPM_WINDOW, addr, 2000);
  for (unsigned i = 0; i < 200; ++i)
    vpu_cycle(b);
  for (unsigned i = 0; i < kSems; ++i)
    assert_int_equal(b->ctx[c].sem[i], 0); /* nothing was signalled */
  assert_int_equal(b->ctx[c].seen, 0);     /* nor written */
  vpu_abort(b, c, 300);
  memset(b->ctx[c].bad_parity, 0, sizeof b->ctx[c].bad_parity);
  free(random_program(b, c, &rng, 60, 16, total[c]));
  vpu_run(b, 100000);
  for (unsigned i = 0; i < kCtx; ++i)
    check_sems(b, i, total[i]);
  vpu_close(b);
}

static void errors(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned c = 0; c < kCtx; ++c) {
      const uint32_t base = c ? 0x81230 : 0x407;
      errs(v, c, gen_vl(0, 0, kWindow - 63, 4, 16), false, kWindow);
      errs(v, c, gen_vl(0, 1, kWindow, 0, 1), false, kWindow);
      errs(v, c, gen_vl(0, 2, 0xFFFFF, 65535, 16), false, 0xFFFFF + 15 * 65535);
      errs(v, c, gen_vs(0, 0, kWindow - 3, 0, 1), false, kWindow);
      errs(v, c, gen_vs(0, 1, 24, 200, 6), false, kWindow);
      errs(v, c, gen_vs(0, 2, 0, 65535, 16), false, 15 * 65535);
      errs(v, c, gen_vl(0, 0, 0, 4, 16), true, base + 63);
      errs(v, c, gen_vl(0, 1, 256, 7, 16), true, base + 256 + 7 * 8);
    }
  }
}

/* The last word of the window is inside. */
static void window_edge(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 700 + v);
    gen_order *o = gen_order_new(b, 0);
    struct ct_cmd cmd = gen_vl(0, 0, kWindow - 64, 4, 16);
    gen_emit(o, &cmd);
    cmd = gen_vs(0, 1, kWindow - 1, 9, 1);
    gen_emit(o, &cmd);
    cmd = gen_vs(0, 0, kWindow - 64, 4, 16);
    gen_emit(o, &cmd);
    vpu_run(b, 1000);
    free(o);
    vpu_close(b);
  }
}

/* ---- Rates --------------------------------------------------------------------------------- */

enum { kFlood = 40, kStarts = 80, kWarm = 60, kToken = 3 };

static unsigned side_of(const struct ct_cmd *cmd) {
  const unsigned op = CT_GET(cmd, ALL_OP);
  return op == CT_OP_VL ? kVl : op == CT_OP_VA ? kVa : kVs;
}

/* A command that takes a token, so that its start is seen. */
static void emit_seen(vpu_bench *b, unsigned c, struct ct_cmd cmd) {
  CT_PUT(&cmd, ALL_WAIT1, CT_SEM(kToken));
  vpu_emit(b, c, &cmd);
  ++b->ctx[c].sem[kToken];
}

/* kFlood commands without dependencies. */
static void flood(vpu_bench *b, unsigned c, struct ct_cmd cmd) {
  for (unsigned i = 0; i < kFlood; ++i)
    emit_seen(b, c, cmd);
}

/* Cycles between starts, which must all be the same once under way. */
static void rate(unsigned v, struct ct_cmd cmd, unsigned contexts, unsigned want) {
  vpu_bench *b = vpu_open(v, 800);
  const unsigned s = side_of(&cmd);
  b->policy = kRoundRobin;
  for (unsigned c = 0; c < contexts; ++c)
    for (unsigned i = 0; i < kStarts; ++i)
      emit_seen(b, c, cmd);
  vpu_run(b, 80000);
  assert_int_equal(b->started[s], contexts * kStarts);
  for (unsigned i = kWarm; i < b->started[s]; ++i) { /* until then buffers fill */
    const unsigned got = (unsigned)(b->starts[s][i].cycle - b->starts[s][i - 1].cycle);
    if (got != want) print_error("%u lanes, side %u, start %u\n", kLanes[v], s, i);
    assert_int_equal(got, want);
  }
  vpu_close(b);
}

/* No operation longer than the header says, and no dead cycle between them, but for one if a
 * context is alone and its last row takes a cycle only: then the next command has not taken its
 * semaphores when the side is free. */
static void rates(void **state) {
  (void)state;
  static const uint8_t vs_slots[kVariants][3] = {{64, 16, 32}, {64, 128, 128}, {64, 128, 128}};
  enum { kSpace = 31, kPay = 1 };
  for (unsigned v = 0; v < kVariants; ++v) {
    const unsigned beats = 16 / kLanes[v];
    /* Each reads what the one before writes; one that does not. */
    struct ct_cmd row = gen_va(1, 1), apart = gen_va(1, 0);
    CT_PUT(&row, VA_ROWS, 1);
    struct ct_cmd function = gen_va(1, 1), function_row = row;
    CT_PUT(&function, VA_FUNC, 9);
    CT_PUT(&function_row, VA_FUNC, 9);
    for (unsigned contexts = 1; contexts <= 2; ++contexts) {
      rate(v, gen_vl(0, 0, 0, 4, 16), contexts, 64);
      const unsigned dead = contexts == 1 && !v ? kPay : 0;
      rate(v, gen_vl(0, 1, 0, 1, 16), contexts, 16 * beats + dead);
      rate(v, gen_vl(0, 1, 0, 1, 1), contexts, beats + dead);
      for (unsigned mode = 0; mode < 3; ++mode)
        rate(v, gen_vs(0, mode, 512, 4, 16), contexts, vs_slots[v][mode] + (mode ? dead : 0));
      rate(v, gen_vs(0, 1, 512, 4, 1), contexts, v ? 8 : 1 + dead);
    }
    rate(v, apart, 2, 16 * beats);
    rate(v, apart, 1, 16 * beats);
    rate(v, gen_va(1, 1), 2, 16 * beats);
    rate(v, gen_va(1, 1), 1, v ? 64 : kSpace);
    rate(v, row, 1, kSpace);
    /* With turns, the next one of a context issues a pipe's length after the last issue. */
    rate(v, function, 2, 16 * beats * kTurns[v]);
    rate(v, function, 1, v == 1 ? 256 + 26 : v ? 64 : kSpace);
    rate(v, function_row, 1, v == 1 ? 16 + 26 : kSpace);
  }
}

/* The first start of c. */
static const vpu_start *start_of(const vpu_bench *b, unsigned s, unsigned c) {
  unsigned i = 0;
  while (i < b->started[s] && b->starts[s][i].ctx != c)
    ++i;
  assert_true(i < b->started[s]);
  return &b->starts[s][i];
}

/* An operation of inference that becomes ready while training keeps the side busy waits for one
 * start of it at most: a row, and for the last four rows of a VA with 4 lanes. */
static void waits_for_one(unsigned v, struct ct_cmd long_one, unsigned bound, unsigned at) {
  vpu_bench *b = vpu_open(v, 810);
  const unsigned s = side_of(&long_one);
  flood(b, 1, long_one);
  struct ct_cmd cmd = long_one;
  CT_PUT(&cmd, ALL_WAIT0, CT_SEM(1));
  vpu_emit(b, 0, &cmd);
  for (unsigned i = 0; i < 300 + at; ++i)
    vpu_cycle(b);
  b->ctx[0].sem[1] = 1;
  vpu_run(b, 40000);
  assert_int_equal(b->started[s], kFlood + 1);
  assert_true(start_of(b, s, 0)->waited < bound);
  assert_true(b->wait_arb[0] < bound);
  assert_int_equal(b->wait_arb[1] > 0, true); /* training waited for the one of inference */
  vpu_close(b);
}

static void bounded_wait(void **state) {
  (void)state;
  struct ct_cmd function = gen_va(1, 0);
  CT_PUT(&function, VA_FUNC, 8);
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned at = 0; at < 130; at += 9) {
      waits_for_one(v, gen_vl(0, 0, 0, 4, 16), 4, at);
      waits_for_one(v, gen_va(1, 0), 16, at);
      waits_for_one(v, function, 16, at);
      waits_for_one(v, gen_vs(0, 0, 512, 4, 16), 4, at);
      waits_for_one(v, gen_vs(0, 1, 512, 4, 16), v ? 4 : 1, at);
      waits_for_one(v, gen_vs(0, 2, 512, 4, 16), v ? 4 : 1, at);
    }
  }
}

/* With a floor inference can lose to slots that training is owed, as many in a row as the floor
 * makes. Each operation of inference is ready in the cycle after training has started one, which is
 * the worst: then it waits for all but that cycle of all of them. */
static void waits_with_a_floor(unsigned v, struct ct_cmd cmd, unsigned slot, unsigned floor) {
  enum { kTries = 40, kTrainings = 400 };
  vpu_bench *b = vpu_open(v, 815);
  const unsigned owed = 255 / (256 - floor), s = side_of(&cmd);
  b->floor = floor;
  for (unsigned i = 0; i < kTrainings; ++i)
    emit_seen(b, 1, cmd);
  CT_PUT(&cmd, ALL_WAIT0, CT_SEM(1));
  CT_PUT(&cmd, ALL_SIG0, 0);
  CT_PUT(&cmd, ALL_SIG1, 0);
  /* A single row, or the next try would wait for the rows of this one. */
  if (CT_GET(&cmd, ALL_OP) == CT_OP_VA)
    CT_PUT(&cmd, VA_ROWS, 1);
  else
    CT_PUT(&cmd, VL_ROWS, 1);
  uint64_t most = 0;
  for (unsigned i = 0; i < kTries; ++i) {
    vpu_emit(b, 0, &cmd);
    unsigned before = b->started[s] + 1; /* one for which training may have had to wait */
    CT_TB_WHILE (
        b->started[s] <= before || b->starts[s][b->started[s] - 1].cycle + slot != b->cycle,
        100000) {
      vpu_cycle(b);
      assert_true(b->started[s] < kTrainings);
    }
    /* In this cycle training starts its next row, and inference takes its semaphore. */
    b->ctx[0].sem[1] = 1;
    vpu_cycle(b);
    before = b->started[s];
    CT_TB_WHILE (b->started[s] == before || b->starts[s][b->started[s] - 1].ctx, 100000)
      vpu_cycle(b);
    assert_true(b->started[s] - before <= owed + 2);
    const uint64_t waited = b->starts[s][b->started[s] - 1].waited;
    if (waited > most) most = waited;
  }
  assert_int_equal(most, slot * (1 + owed) - 1);
  vpu_run(b, 100000);
  vpu_close(b);
}

static struct ct_cmd twice_of(struct ct_cmd cmd) {
  CT_PUT(&cmd, ALL_SIG0, CT_SEM(2));
  CT_PUT(&cmd, ALL_SIG1, CT_SEM(2));
  return cmd;
}

static void bounded_wait_with_a_floor(void **state) {
  (void)state;
  static const uint8_t floors[] = {64, 128, 200};
  struct ct_cmd copy = gen_va(1, 0);
  CT_PUT(&copy, VA_A_SRC, 1); /* no tile register is read: one follows the other at once */
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned i = 0; i < sizeof floors; ++i) {
      waits_with_a_floor(v, gen_vl(0, 0, 0, 4, 16), 4, floors[i]);
      waits_with_a_floor(v, copy, v ? 4 : 16, floors[i]);
      waits_with_a_floor(v, twice_of(copy), v ? 4 : 17, floors[i]);
      waits_with_a_floor(v, gen_vs(0, 0, 512, 4, 16), 4, floors[i]);
      waits_with_a_floor(v, gen_vs(0, 2, 512, 4, 16), v ? 4 : 1, floors[i]);
    }
  }
}

/* VA of both contexts without a gap: VL gets its writes through all the same. */
static void load_is_not_starved(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 820 + v);
    b->policy = kRoundRobin;
    struct ct_cmd cmd = gen_vl(5, 1, 0, 1, 16);
    CT_PUT(&cmd, ALL_WAIT0, CT_SEM(1));
    CT_PUT(&cmd, ALL_SIG0, CT_SEM(2));
    vpu_emit(b, 1, &cmd);
    for (unsigned c = 0; c < kCtx; ++c)
      flood(b, c, gen_va(1, 0));
    for (unsigned i = 0; i < 200; ++i)
      vpu_cycle(b);
    b->ctx[1].sem[1] = 1;
    const uint64_t start = b->cycle;
    CT_TB_WHILE (!b->ctx[1].sem[2], 100000)
      vpu_cycle(b);
    /* A gap comes after 16 cycles of hunger, an operation under way and its rows in the pipe, and
     * lasts 27 writes. */
    const unsigned gap = 16 + 1 + 256 / kLanes[v] + 27, writes = 256 / kLanes[v];
    assert_true(b->cycle - start < (writes + 26) / 27 * gap + writes + 23);
    assert_true(b->started[kVa] < 2 * kFlood);
    vpu_run(b, 20000);
    vpu_close(b);
  }
}

/* Operations of one row, which all write the bank of row 0: one in two cycles, with those of the
 * other context between them one a cycle. */
static void flood_rows(vpu_bench *b, unsigned c, unsigned n) {
  struct ct_cmd row = gen_va(1, 0);
  CT_PUT(&row, VA_A_SRC, 1);
  CT_PUT(&row, VA_ROWS, 1);
  CT_PUT(&row, VA_RELU, 1); /* the long way */
  for (unsigned i = 0; i < n; ++i)
    emit_seen(b, c, row);
}

/* What training does beside a VL of inference: rows of VA that all go to one bank, a row a cycle;
 * and loads between them, which take as long, of 16 rows or of one each that doubles its signal. */
enum beside { kNothing, kRowsOfVa, kLoads, kDoubled };

static void emit_beside(vpu_bench *b, unsigned v, enum beside beside, unsigned mode) {
  enum { kRounds = 70, kTilesOfVa = 8, kOfOneRow = 4 };
  struct ct_cmd row = gen_va(8, 0);
  CT_PUT(&row, VA_A_SRC, 1);
  CT_PUT(&row, VA_ROWS, 1);
  CT_PUT(&row, VA_RELU, 1);              /* the long way */
  const bool slow = v == 0 && mode == 0; /* the load: VA has a row in each of its 64 cycles */
  const unsigned times = beside == kLoads && slow ? 8 : beside == kLoads ? 2 : 1;
  const struct ct_cmd load = gen_vl(7, mode, 0, mode ? 1 : 4, 16);
  const struct ct_cmd doubled = twice_of(gen_vl(7, mode, 0, 1, 1));
  for (unsigned i = 0; i < kRounds; ++i) {
    for (unsigned n = 0; n < times; ++n)
      emit_more(b, 1, row, kTilesOfVa - 1);
    for (unsigned n = 0; n < kOfOneRow && beside == kDoubled; ++n)
      emit_seen(b, 1, doubled);
    if (beside == kLoads) emit_seen(b, 1, load);
  }
}

/* Cycles that a VL of inference takes from being ready to its signal. */
static unsigned load_takes(unsigned v, enum beside beside, unsigned mode, unsigned at) {
  vpu_bench *b = vpu_open(v, 840);
  struct ct_cmd cmd = gen_vl(4, 1, 0, 1, 16);
  CT_PUT(&cmd, ALL_WAIT0, CT_SEM(1));
  CT_PUT(&cmd, ALL_SIG0, CT_SEM(2));
  vpu_emit(b, 0, &cmd);
  if (beside != kNothing) emit_beside(b, v, beside, mode);
  for (unsigned i = 0; i < 100 + at; ++i)
    vpu_cycle(b);
  const unsigned loads = b->started[kVl];
  b->ctx[0].sem[1] = 1;
  const uint64_t start = b->cycle;
  CT_TB_WHILE (!b->ctx[0].sem[2], 100000)
    vpu_cycle(b);
  const unsigned taken = (unsigned)(b->cycle - start);
  const bool more = b->ctx[1].dispatched != b->ctx[1].emitted;
  vpu_run(b, 40000);
  /* Both sides of training were at work before, and were not done after. */
  assert_int_equal(more, beside != kNothing);
  if (beside >= kLoads) assert_in_range(loads, 1, b->started[kVl] - 2);
  vpu_close(b);
  return taken;
}

/* Training's VA starts nothing more once it is in the way of a VL of inference: what is lost are
 * the rows that were under way, a row of training's load, and the words of loads in front, each
 * a cycle more than its writes if it doubles a signal: the terms of ct_chain.c. */
static void training_leaves_the_port(void **state) {
  (void)state;
  enum { kRow = 4, kTimes = 120 };
  static const struct {
    enum beside beside;
    unsigned mode, step;
    const char *name;
  } cases[] = {{kRowsOfVa, 0, 3, "rows of VA"},
               {kLoads, 0, 3, "FP32 loads"},
               {kLoads, 1, 3, "HBFP8 loads"},
               {kDoubled, 0, 1, "doubled FP32 loads"},
               {kDoubled, 1, 1, "doubled HBFP8 loads"}};
  for (unsigned v = 0; v < kVariants; ++v) {
    const unsigned pipe = v ? CT_VL_PIPE_4 : CT_VL_PIPE_16;
    const unsigned ahead = kRow + (v ? CT_VL_AHEAD_4 : CT_VL_AHEAD_16);
    const unsigned alone = load_takes(v, kNothing, 0, 0);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; ++i) {
      const unsigned bound = cases[i].beside == kRowsOfVa ? pipe : pipe + ahead;
      unsigned most = 0;
      for (unsigned at = 0; at < kTimes; at += cases[i].step) {
        const unsigned taken = load_takes(v, cases[i].beside, cases[i].mode, at);
        assert_in_range(taken, alone, alone + bound);
        if (taken > most) most = taken;
      }
      printf("%u lanes, beside %s: up to %u cycles more, bound %u\n", kLanes[v], cases[i].name,
             most - alone, bound);
    }
  }
}

/* The bound of a job of one VA, without its reads. */
static unsigned bound_of_va(unsigned v, const struct ct_cmd *va) {
  struct ct_cmd cmd[2] = {*va, {{0}}};
  CT_PUT(&cmd[0], ALL_WAIT0, 0);
  CT_PUT(&cmd[1], ALL_OP, CT_OP_END);
  const struct ct_chain_core core = {.cols = v ? 8 : 16, .lanes = kLanes[v], .train_cap = 4};
  return (unsigned)ct_chain_job(&core, &(struct ct_code){cmd, 2});
}

/* Cycles that a copy from ACC of inference takes from being ready to its signal, beside operations
 * of training that go the long way. */
static unsigned copy_takes(unsigned v, struct ct_cmd copy, bool beside, unsigned at) {
  vpu_bench *b = vpu_open(v, 890);
  struct ct_cmd longer = gen_va(8, 0);
  CT_PUT(&longer, VA_A_SRC, 1);
  CT_PUT(&longer, VA_RELU, 1);
  vpu_emit(b, 0, &copy);
  for (unsigned i = 0; beside && i < 60; ++i)
    emit_seen(b, 1, longer);
  for (unsigned i = 0; i < 100 + at; ++i)
    vpu_cycle(b);
  b->ctx[0].sem[1] = 1;
  const uint64_t start = b->cycle;
  CT_TB_WHILE (!b->ctx[0].sem[2], 100000)
    vpu_cycle(b);
  const unsigned taken = (unsigned)(b->cycle - start);
  vpu_run(b, 40000);
  vpu_close(b);
  return taken;
}

/* Behind rows of training that go the long way it goes that, too: the term of ct_chain.c. */
static void copies_go_the_long_way(void **state) {
  (void)state;
  enum { kTimes = 70 };
  for (unsigned v = 0; v < kVariants; ++v) {
    struct ct_cmd copy = gen_va(4, 0);
    CT_PUT(&copy, VA_A_SRC, 1);
    CT_PUT(&copy, ALL_WAIT0, CT_SEM(1));
    CT_PUT(&copy, ALL_SIG0, CT_SEM(2));
    const unsigned alone = copy_takes(v, copy, false, 0), bound = bound_of_va(v, &copy);
    unsigned most = 0;
    for (unsigned at = 0; at < kTimes; ++at) {
      const unsigned taken = copy_takes(v, copy, true, at);
      assert_in_range(taken, alone, alone + bound);
      if (taken > most) most = taken;
    }
    assert_true(most - alone >= CT_VA_LONG);
    printf("%u lanes, a copy behind the long way: up to %u cycles more, bound %u\n", kLanes[v],
           most - alone, bound);
  }
}

/* Cycles that a VS of inference takes from being ready to its signal, beside stores of training.
 * The scratchpad refuses words until some cycles after that. */
static unsigned store_takes(unsigned v, const struct ct_cmd *other, unsigned refused, unsigned at) {
  vpu_bench *b = vpu_open(v, 880);
  struct ct_cmd cmd = gen_vs(5, 0, 512, 4, 16);
  CT_PUT(&cmd, ALL_WAIT0, CT_SEM(1));
  CT_PUT(&cmd, ALL_SIG0, CT_SEM(2));
  vpu_emit(b, 0, &cmd);
  for (unsigned i = 0; other && i < 40; ++i)
    vpu_emit(b, 1, other);
  for (unsigned i = 0; i < 50 + at; ++i)
    vpu_cycle(b);
  if (other && refused) {
    vpu_stalls(b, 881, 0, 100, 0);
    for (unsigned i = 0; i < 40; ++i)
      vpu_cycle(b);
  }
  b->ctx[0].sem[1] = 1;
  const uint64_t start = b->cycle;
  for (unsigned i = 0; other && i < refused; ++i)
    vpu_cycle(b);
  vpu_stalls(b, 882, 0, 0, 0);
  CT_TB_WHILE (!b->ctx[0].sem[2], 100000)
    vpu_cycle(b);
  const unsigned taken = (unsigned)(b->cycle - start);
  vpu_run(b, 20000);
  vpu_close(b);
  return taken;
}

/* Training's words are in front of those of inference when a burst of training's loads has their
 * bank: the terms of ct_chain.c. */
static void stores_in_front(void **state) {
  (void)state;
  enum { kRow = 4, kTimes = 24, kModes = 3 };
  for (unsigned v = 0; v < kVariants; ++v) {
    const unsigned alone = store_takes(v, NULL, 0, 0);
    unsigned most = 0;
    for (unsigned i = 0; i < 2 * kModes; ++i) {
      struct ct_cmd cmd = gen_vs(7, i % kModes, 600, 4, i < kModes ? 16 : 1);
      if (i >= kModes) cmd = twice_of(cmd);
      for (unsigned at = 0; at < kTimes; ++at) {
        const unsigned beside = store_takes(v, &cmd, 0, at);
        const unsigned behind = store_takes(v, &cmd, CT_BURST, at);
        assert_in_range(beside, alone, alone + kRow + CT_VS_AHEAD);
        assert_in_range(behind, alone, alone + kRow + CT_VS_AHEAD + CT_BURST);
        if (behind > most) most = behind;
      }
    }
    printf("%u lanes, stores in front: up to %u cycles more, bound %u\n", kLanes[v], most - alone,
           kRow + CT_VS_AHEAD + CT_BURST);
  }
}

/* Longest time between starts of inference's rows, beside those of training and loads of context
 * c. */
static unsigned longest_gap(unsigned v, unsigned c, unsigned policy) {
  enum { kRowsOfInference = 400 };
  vpu_bench *b = vpu_open(v, 850 + v);
  b->policy = policy;
  for (unsigned i = 0; i < kFlood; ++i) {
    const struct ct_cmd load = gen_vl(5, 1, 0, 1, 16);
    for (unsigned x = 0; x < kCtx; ++x)
      flood_rows(b, x, kRowsOfInference / kFlood);
    vpu_emit(b, c, &load);
  }
  uint64_t most = 0, last = 0;
  vpu_run(b, 20000);
  for (unsigned i = 0; i < b->started[kVa]; ++i) {
    if (b->starts[kVa][i].ctx) continue;
    const uint64_t now = b->starts[kVa][i].cycle;
    if (last && now - last > most) most = now - last;
    last = now;
  }
  assert_int_equal(b->started[kVa], 2 * kRowsOfInference);
  vpu_close(b);
  return (unsigned)most;
}

/* VA of inference makes gaps for a VL that starves, but under PRIORITY not for training's, and
 * inference's finds the cycles between its rows. (With 4 lanes a row goes to both banks, and VL is
 * in time without a gap.) */
static void no_gap_for_training(void **state) {
  (void)state;
  enum {
    kSteady = 3,
    kGap = 5,
    kLongest = 60
  }; /* steady: a command of one row, with its semaphores */
  assert_in_range(longest_gap(0, 1, kPriority), 1, kSteady);
  assert_in_range(longest_gap(0, 1, kRoundRobin), kGap, kLongest);
  assert_in_range(longest_gap(0, 0, kPriority), 1, kSteady);
  for (unsigned v = 1; v < kVariants; ++v)
    assert_in_range(longest_gap(v, 1, kPriority), 4, 5);
}

/* While a VS waits for a bank: training is asked to read nothing more if the VS is inference's and
 * a word of training has the bank, until the VS is over. */
static void vs_asks_for_its_bank(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned c = i & 1, other = i >> 1 & 1;
      vpu_bench *b = vpu_open(v, 860);
      b->policy = i & 4 ? kRoundRobin : kPriority;
      b->floor = i & 8 ? 30 : 0;
      const bool asks = c == 0 && other && !(i & 12);
      const struct ct_cmd cmd = gen_vs(0, 1, 512, 1, 16);
      vpu_emit(b, c, &cmd);
      *b->p.spm_wr_other_i = (uint8_t)other;
      vpu_stalls(b, 861, 0, 100, 0);
      bool asked = false;
      for (unsigned n = 0; n < 100; ++n) {
        vpu_cycle(b);
        asked |= *b->p.spm_wr_yield_o;
      }
      assert_int_equal(asked, asks);
      assert_int_equal(*b->p.spm_wr_yield_o, asks); /* and goes on asking */
      vpu_stalls(b, 862, 0, 0, 0);
      vpu_run(b, 1000);
      for (unsigned n = 0; n < 4; ++n)
        vpu_cycle(b);
      assert_int_equal(*b->p.spm_wr_yield_o, 0);
      vpu_close(b);
    }
  }
}

/* Words of training count as inference's for the scratchpad while inference's load stands behind.
 */
static void loads_inherit_their_rank(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 870);
    struct ct_cmd cmd = gen_vl(5, 1, 0, 1, 16);
    emit_seen(b, 1, gen_vl(7, 0, 0, 4, 16));
    CT_PUT(&cmd, ALL_WAIT0, CT_SEM(1));
    vpu_emit(b, 0, &cmd);
    vpu_stalls(b, 871, 100, 0, 0);
    for (unsigned n = 0; n < 30; ++n)
      vpu_cycle(b);
    assert_int_equal(*b->p.spm_rd_valid_o, 1);
    assert_int_equal(*b->p.spm_rd_ctx_o, 1); /* inference is not ready */
    b->ctx[0].sem[1] = 1;
    for (unsigned n = 0; n < 3; ++n)
      vpu_cycle(b);
    assert_int_equal(*b->p.spm_rd_valid_o, 1);
    assert_int_equal(*b->p.spm_rd_ctx_o, 0);
    vpu_stalls(b, 872, 0, 0, 0);
    vpu_run(b, 1000);
    vpu_close(b);
  }
}

/* VA of both contexts without a gap: VL gets its writes through all the same, FP32 at full rate,
 * since VA leaves it every other bank. */
static void load_keeps_its_rate(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    vpu_bench *b = vpu_open(v, 824 + v);
    b->policy = kRoundRobin;
    flood(b, 0, gen_va(1, 0));
    for (unsigned i = 0; i < kFlood; ++i) {
      /* Two operations in the time of a load, or one in that of two. */
      if (v == 0 || i % 2 == 0) emit_seen(b, 1, gen_vl(5, 0, 0, 4, 16));
      emit_seen(b, 1, v == 0 || i % 2 ? gen_va(1, 0) : gen_vl(5, 0, 0, 4, 16));
      if (v == 0) emit_seen(b, 1, gen_va(1, 0));
    }
    CT_TB_WHILE (b->started[kVa] < kFlood, 100000)
      vpu_cycle(b);
    const unsigned loads = b->started[kVl];
    assert_in_range(loads, 8, kFlood);
    for (unsigned i = 2; i < loads; ++i)
      assert_int_equal(b->starts[kVl][i].cycle - b->starts[kVl][i - 1].cycle, 64);
    vpu_run(b, 40000);
    vpu_close(b);
  }
}

/* A tile stored as it is and then square has its exponent known: one pass, if tile and rows are
 * the same. The bench compares what is written. */
static void square_after_masters(void **state) {
  (void)state;
  static const unsigned rows[] = {16, 16, 5, 16}, tile[] = {3, 3, 7, 4}, again[] = {3, 4, 7, 4},
                        again_rows[] = {16, 16, 5, 3};
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned i = 0; i < 4; ++i) {
      vpu_bench *b = vpu_open(v, 826 + v);
      const bool known = tile[i] == again[i] && rows[i] == again_rows[i];
      for (unsigned n = 0; n < 8; ++n) {
        emit_seen(b, 1, gen_vs(tile[i], 0, 512, 4, rows[i]));
        emit_seen(b, 1, gen_vs(again[i], 2, 640, 1, again_rows[i]));
      }
      vpu_run(b, 40000);
      assert_int_equal(b->started[kVs], 16);
      for (unsigned n = 8; n < 16; n += 2) {
        const uint64_t first = b->starts[kVs][n].cycle, second = b->starts[kVs][n + 1].cycle;
        assert_int_equal(second - first, 4 * rows[i]);
        if (n + 2 < 16) /* a row of one cycle is over before the next command has its semaphores */
          assert_int_equal(b->starts[kVs][n + 2].cycle - second,
                           again_rows[i] * (v ? 4u : 1u) * (known ? 1 : 2) + !v);
      }
      vpu_close(b);
    }
  }
}

/* ---- Who goes first ------------------------------------------------------------------------ */

static unsigned trainings(unsigned v, unsigned policy, unsigned floor, char order[2 * kFlood + 1]) {
  vpu_bench *b = vpu_open(v, 830);
  b->policy = policy;
  b->floor = floor;
  *b->p.freeze_i = 1;
  for (unsigned c = 0; c < kCtx; ++c)
    flood(
        b, c,
        gen_vl(c, 0, 0, 4, 16)); /* rows of four cycles: the next command is ready when one ends */
  for (unsigned i = 0; i < 50; ++i)
    vpu_cycle(b);
  assert_int_equal(b->started[kVl], 0); /* frozen */
  *b->p.freeze_i = 0;
  vpu_run(b, 20000);
  assert_int_equal(b->started[kVl], 2 * kFlood);
  unsigned early = 0;
  for (unsigned i = 0; i < 2 * kFlood; ++i) {
    order[i] = b->starts[kVl][i].ctx ? 't' : 'i';
    early += i < kFlood && b->starts[kVl][i].ctx;
  }
  order[2 * kFlood] = 0;
  vpu_close(b);
  return early;
}

static void policies(void **state) {
  (void)state;
  char order[2 * kFlood + 1], alternating[2 * kFlood + 1];
  for (unsigned i = 0; i < 2 * kFlood; ++i)
    alternating[i] = i % 2 ? 't' : 'i';
  alternating[2 * kFlood] = 0;
  for (unsigned v = 0; v < kVariants; ++v) {
    assert_int_equal(trainings(v, kPriority, 0, order), 0);
    assert_in_range(trainings(v, kPriority, 64, order), kFlood / 4 - 1, kFlood / 4 + 1);
    assert_in_range(trainings(v, kPriority, 128, order), kFlood / 2 - 1, kFlood / 2 + 1);
    trainings(v, kRoundRobin, 0, order);
    assert_string_equal(order, alternating);
    trainings(v, kFcfs, 0, order);
    assert_string_equal(order, alternating);
    trainings(v, kJob, 0, order);
    assert_string_equal(order, alternating);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(softmax),
      cmocka_unit_test(reads_the_last_row_first),
      cmocka_unit_test(optimiser),
      cmocka_unit_test(masks),
      cmocka_unit_test(equals),
      cmocka_unit_test(maximum_backward),
      cmocka_unit_test(quantising),
      cmocka_unit_test(window_edge),
      cmocka_unit_test(rates),
      cmocka_unit_test(bounded_wait),
      cmocka_unit_test(bounded_wait_with_a_floor),
      cmocka_unit_test(load_is_not_starved),
      cmocka_unit_test(training_leaves_the_port),
      cmocka_unit_test(copies_go_the_long_way),
      cmocka_unit_test(stores_in_front),
      cmocka_unit_test(no_gap_for_training),
      cmocka_unit_test(vs_asks_for_its_bank),
      cmocka_unit_test(loads_inherit_their_rank),
      cmocka_unit_test(load_keeps_its_rate),
      cmocka_unit_test(square_after_masters),
      cmocka_unit_test(policies),
      cmocka_unit_test(errors),
      cmocka_unit_test(aborts),
      cmocka_unit_test(rows_between_rows),
      cmocka_unit_test(short_behind_long),
      cmocka_unit_test(tiles_between_tiles),
      cmocka_unit_test(random_programs),
  };
  return cmocka_run_group_tests_name("ct_vpu", tests, NULL, NULL);
}
