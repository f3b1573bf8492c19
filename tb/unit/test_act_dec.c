/* SPDX-License-Identifier: Apache-2.0 */
/* ct_act_dec against host/emu/ct_act.c: groups of every kind with stalls on both sides, its
 * throughput, and that of damaged groups exactly those end in an error that end so there. */
#include <string.h>

#include "act_gen.h"
#include "ct_act_dec_dut.h"

enum { kGroups = 4000, kPatience = 400, kAtOnce = 8 };

struct bench {
  ct_act_dec_dut *d;
  ct_rng rng;
  ct_stall in_stall, out_stall;
  struct act_group group[kAtOnce]; /* in order, a ring */
  unsigned drawn, in, out;         /* groups that there are, that went in, that came out */
  unsigned unit, word;             /* of these */
  unsigned long cycles, tiles;
  bool mild; /* no 16 values take more than 128 bits */
};

static struct bench *open_bench(uint64_t stream, unsigned in_percent, unsigned out_percent) {
  static struct bench b; /* (too large for the stack) */
  memset(&b, 0, sizeof(b));
  b.d = ct_act_dec_new(ct_tb_trace());
  b.rng = ct_rng_make(stream);
  b.in_stall = ct_stall_make(stream + 1, in_percent, 3);
  b.out_stall = ct_stall_make(stream + 2, out_percent, 3);
  *b.d->valid_i = 0;
  *b.d->ready_i = 0;
  *b.d->flush_i = 0;
  ct_act_dec_reset(b.d, 2);
  return &b;
}

static void next_group(struct bench *b) {
  struct act_group *g = &b->group[b->drawn++ % kAtOnce];
  act_draw(&b->rng, g);
  if (!b->mild) return;
  for (unsigned i = 0; i < kActBlocks * 16; ++i)
    g->x[i / 16].q[i % 16] &= 63;
  g->units = ct_act_encode(g->x, g->tiles, g->bound, g->bytes);
  memcpy(g->y, g->x, sizeof(g->y));
  for (unsigned j = 0; j < kActBlocks; ++j)
    ct_act_round(&g->y[j], g->bound);
}

static bool drive(struct bench *b, unsigned groups) {
  if (b->drawn < groups && b->drawn - b->out < kAtOnce) next_group(b);
  const bool offer = b->in < b->drawn && !ct_stall_next(&b->in_stall);
  const struct act_group *g = &b->group[b->in % kAtOnce];
  *b->d->valid_i = offer;
  memcpy(b->d->data_i, &g->bytes[b->unit * CT_ACT_UNIT], CT_ACT_UNIT);
  *b->d->last_i = b->unit + 1 == g->units;
  *b->d->tiles_i = (uint8_t)(g->tiles - 1);
  return offer;
}

static void watch(struct bench *b) {
  if (!*b->d->valid_o) return;
  assert_true(b->out < b->drawn);
  const struct act_group *g = &b->group[b->out % kAtOnce];
  const bool last = b->word + 1 == g->tiles * CT_ACT_BLOCKS;
  ct_assert_same("mantissas", b->d->data_o, g->y[b->word].q, 16);
  assert_int_equal(*b->d->exp_o, g->y[b->word].e);
  assert_int_equal(*b->d->last_o, last);
  if (!*b->d->ready_i) return;
  b->word = last ? 0 : b->word + 1;
  b->tiles += b->word % CT_ACT_BLOCKS == 0;
  b->out += last;
}

static void step(struct bench *b, unsigned groups) {
  const bool offer = drive(b, groups);
  *b->d->ready_i = !ct_stall_next(&b->out_stall);
  ct_act_dec_eval(b->d);
  const bool taken = offer && *b->d->ready_o;
  watch(b);
  if (taken) {
    const bool last = b->unit + 1 == b->group[b->in % kAtOnce].units;
    b->unit = last ? 0 : b->unit + 1;
    b->in += last;
  }
  ct_act_dec_tick(b->d);
  ++b->cycles;
}

static void run(struct bench *b, unsigned groups) {
  CT_TB_WHILE (b->out < groups, (unsigned long)groups * kPatience * 10) {
    step(b, groups);
    assert_false(*b->d->err_o);
  }
  ct_act_dec_eval(b->d);
  assert_true(*b->d->idle_o);
}

static void same_words(void **state) {
  (void)state;
  static const unsigned stalls[][2] = {{0, 0}, {30, 0}, {0, 40}, {30, 30}, {80, 5}, {5, 80}};
  for (unsigned i = 0; i < sizeof(stalls) / sizeof(*stalls); ++i) {
    struct bench *b = open_bench(10 * i, stalls[i][0], stalls[i][1]);
    run(b, (unsigned)ct_tb_draws(kGroups) / 4);
    ct_act_dec_free(b->d);
  }
}

/* Without stalls a tile takes 17 cycles; more only where 16 values take more than 128 bits. */
static void line_rate(void **state) {
  (void)state;
  for (int mild = 1; mild >= 0; --mild) {
    struct bench *b = open_bench(100, 0, 0);
    b->mild = mild;
    run(b, 1000);
    print_message("%lu tiles %s in %lu cycles\n", b->tiles, mild ? "" : "of all kinds", b->cycles);
    assert_in_range(b->cycles, 17 * b->tiles, 17 * b->tiles + (mild ? 60 : b->tiles / 4));
    ct_act_dec_free(b->d);
  }
}

/* A group that may be damaged: true if the decoder takes all of it for good. Its words are then
 * those of the model. */
static bool decoded(struct bench *b, const struct act_group *g) {
  struct ct_act_block y[kActBlocks];
  unsigned unit = 0, word = 0;
  for (unsigned i = 0; i < 1000 && !*b->d->err_o && word < g->tiles * CT_ACT_BLOCKS; ++i) {
    *b->d->valid_i = unit < g->units && !ct_stall_next(&b->in_stall);
    memcpy(b->d->data_i, &g->bytes[unit % CT_ACT_UNITS * CT_ACT_UNIT], CT_ACT_UNIT);
    *b->d->last_i = unit + 1 == g->units;
    *b->d->tiles_i = (uint8_t)(g->tiles - 1);
    *b->d->ready_i = !ct_stall_next(&b->out_stall);
    ct_act_dec_eval(b->d);
    unit += *b->d->valid_i && *b->d->ready_o;
    if (*b->d->valid_o && *b->d->ready_i) {
      memcpy(y[word].q, b->d->data_o, 16);
      y[word].e = *b->d->exp_o;
      assert_int_equal(*b->d->last_o, ++word == g->tiles * CT_ACT_BLOCKS);
    }
    ct_act_dec_tick(b->d);
  }
  const bool good = word == g->tiles * CT_ACT_BLOCKS;
  assert_true(good != *b->d->err_o);
  if (good) ct_assert_same("words", y, g->y, word * sizeof(*y));
  return good;
}

/* Turns bits over, mends the check or not, cuts, lengthens, or writes anything. */
static void damage(ct_rng *rng, struct act_group *g) {
  const unsigned bits = g->units * 128, kind = ct_rng_below(rng, 8);
  for (unsigned n = 1 + ct_rng_below(rng, 3); n > 0 && kind < 5; --n) {
    const unsigned bit = ct_rng_below(rng, ct_rng_percent(rng, 50) ? 60 : bits);
    g->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
  if (kind == 5) g->units = 1 + ct_rng_below(rng, g->units);
  if (kind == 6) g->units = g->units < CT_ACT_UNITS ? g->units + 1 : g->units;
  if (kind == 7) ct_rng_fill(rng, g->bytes, g->units * CT_ACT_UNIT);
  if (ct_rng_percent(rng, 10)) g->tiles = 1 + ct_rng_below(rng, CT_ACT_TILES);
  if (ct_rng_percent(rng, 90)) act_mend(g->bytes, g->units);
}

static void damaged(void **state) {
  (void)state;
  struct bench *b = open_bench(200, 10, 10);
  struct act_group *g = &b->group[0];
  unsigned good = 0, wrong = 0;
  for (int n = ct_tb_draws(20000); n > 0; --n) {
    act_draw(&b->rng, g);
    if (ct_rng_percent(&b->rng, 90)) damage(&b->rng, g);
    const bool want = ct_act_decode(g->bytes, g->units, g->tiles, g->y);
    assert_int_equal(decoded(b, g), want);
    ++*(want ? &good : &wrong);
    *b->d->valid_i = 0;
    *b->d->flush_i = !want; /* nothing of a good one is left */
    ct_act_dec_tick(b->d);
    *b->d->flush_i = 0;
    ct_act_dec_eval(b->d);
    assert_true(*b->d->idle_o);
  }
  print_message("%u groups right, %u wrong\n", good, wrong);
  assert_true(good > wrong / 100 && wrong > good);
  ct_act_dec_free(b->d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same_words),
      cmocka_unit_test(line_rate),
      cmocka_unit_test(damaged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
