/* SPDX-License-Identifier: Apache-2.0 */
/* ct_act_enc against host/emu/ct_act.c, byte by byte: groups of every kind with stalls on both
 * sides, its throughput, and that a flush leaves nothing behind. */
#include <string.h>

#include "act_gen.h"
#include "ct_act_enc_dut.h"

enum { kGroups = 4000, kPatience = 400, kAtOnce = 8 };

struct bench {
  ct_act_enc_dut *d;
  ct_rng rng;
  ct_stall in_stall, out_stall;
  struct act_group group[kAtOnce]; /* in order, a ring: those that went in and did not come out */
  unsigned in, out;                /* groups */
  unsigned word, unit;             /* of these */
  unsigned long cycles;
  bool mild; /* no 16 values take more than 128 bits */
};

static struct bench *open_bench(uint64_t stream, unsigned in_percent, unsigned out_percent) {
  static struct bench b; /* (too large for the stack) */
  memset(&b, 0, sizeof(b));
  b.d = ct_act_enc_new(ct_tb_trace());
  b.rng = ct_rng_make(stream);
  b.in_stall = ct_stall_make(stream + 1, in_percent, 3);
  b.out_stall = ct_stall_make(stream + 2, out_percent, 3);
  *b.d->valid_i = 0;
  *b.d->ready_i = 0;
  *b.d->flush_i = 0;
  ct_act_enc_reset(b.d, 2);
  return &b;
}

static void next_group(struct bench *b, struct act_group *g) {
  act_draw(&b->rng, g);
  if (!b->mild) return;
  for (unsigned i = 0; i < kActBlocks * 16; ++i)
    g->x[i / 16].q[i % 16] &= 63;
  g->units = ct_act_encode(g->x, g->tiles, g->bound, g->bytes);
}

/* Offers the next word of the group that goes in, if there is one. */
static bool drive(struct bench *b, unsigned groups) {
  const bool offer = b->in < groups && b->in - b->out < kAtOnce && !ct_stall_next(&b->in_stall);
  *b->d->valid_i = offer;
  if (!offer) return false;
  struct act_group *g = &b->group[b->in % kAtOnce];
  if (b->word == 0) next_group(b, g);
  const struct ct_act_block *x = &g->x[b->word];
  memcpy(b->d->data_i, x->q, sizeof(x->q));
  *b->d->exp_i = x->e;
  *b->d->bound_i = g->bound;
  *b->d->tiles_i = (uint8_t)(g->tiles - 1);
  return true;
}

static void watch(struct bench *b) {
  if (!*b->d->valid_o) return;
  assert_true(b->out < b->in || b->word > 0);
  const struct act_group *g = &b->group[b->out % kAtOnce];
  const bool last = b->unit + 1 == g->units;
  ct_assert_same("unit", b->d->data_o, &g->bytes[b->unit * CT_ACT_UNIT], CT_ACT_UNIT);
  assert_int_equal(*b->d->last_o, last);
  if (last) assert_int_equal(*b->d->units_o, g->units);
  if (!*b->d->ready_i) return;
  b->unit = last ? 0 : b->unit + 1;
  b->out += last;
}

static void step(struct bench *b, unsigned groups) {
  const bool offer = drive(b, groups);
  *b->d->ready_i = !ct_stall_next(&b->out_stall);
  ct_act_enc_eval(b->d);
  const bool taken = offer && *b->d->ready_o;
  watch(b);
  if (taken) {
    const bool last = b->word + 1 == b->group[b->in % kAtOnce].tiles * CT_ACT_BLOCKS;
    b->word = last ? 0 : b->word + 1;
    b->in += last;
  }
  ct_act_enc_tick(b->d);
  ++b->cycles;
}

static void run(struct bench *b, unsigned groups) {
  CT_TB_WHILE (b->out < groups, (unsigned long)groups * kPatience * 10)
    step(b, groups);
  ct_act_enc_eval(b->d);
  assert_true(*b->d->idle_o);
}

static void same_bytes(void **state) {
  (void)state;
  static const unsigned stalls[][2] = {{0, 0}, {30, 0}, {0, 40}, {30, 30}, {80, 5}, {5, 80}};
  for (unsigned i = 0; i < sizeof(stalls) / sizeof(*stalls); ++i) {
    struct bench *b = open_bench(10 * i, stalls[i][0], stalls[i][1]);
    run(b, (unsigned)ct_tb_draws(kGroups) / 4);
    ct_act_enc_free(b->d);
  }
}

/* Cycles for so many groups without stalls; *tiles is how many those have. */
static unsigned long cycles_of(bool mild, unsigned groups, unsigned long *tiles) {
  struct bench *b = open_bench(100, 0, 0);
  b->mild = mild;
  *tiles = 0;
  while (b->in < groups) {
    const unsigned before = b->in;
    step(b, groups);
    if (b->in != before) *tiles += b->group[before % kAtOnce].tiles;
  }
  run(b, groups);
  ct_act_enc_free(b->d);
  return b->cycles;
}

/* Without stalls a tile takes 17 cycles, as many as its record has beats; more only where 16 values
 * take more than 128 bits. */
static void line_rate(void **state) {
  (void)state;
  unsigned long tiles, cycles = cycles_of(true, 1000, &tiles);
  assert_in_range(cycles, 17 * tiles, 17 * tiles + 60);
  cycles = cycles_of(false, 1000, &tiles);
  print_message("%lu tiles of all kinds in %lu cycles\n", tiles, cycles);
  assert_in_range(cycles, 17 * tiles, 17 * tiles + tiles / 4);
}

/* After a flush at any moment the encoder is as new. */
static void flushes(void **state) {
  (void)state;
  struct bench *b = open_bench(200, 10, 10);
  for (int n = ct_tb_draws(400); n > 0; --n) {
    for (unsigned i = ct_rng_below(&b->rng, 300); i > 0; --i)
      step(b, ~0u);
    *b->d->flush_i = 1;
    *b->d->valid_i = 0;
    ct_act_enc_tick(b->d);
    *b->d->flush_i = 0;
    ct_act_enc_eval(b->d);
    assert_true(*b->d->idle_o);
    b->in = b->out = b->word = b->unit = 0;
    run(b, 2);
    b->in = b->out = 0;
  }
  ct_act_enc_free(b->d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same_bytes),
      cmocka_unit_test(line_rate),
      cmocka_unit_test(flushes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
