/* SPDX-License-Identifier: Apache-2.0 */
/* ct_act_pages against host/emu/ct_act_pages.c: random groups taken and freed in any order, an
 * arena that runs full, frees of what is not there; and that no two groups ever overlap. */
#include <string.h>

#include "ct_act_pages.h"
#include "ct_tb.h"

#include "ct_act_pages_dut.h"

enum { kPages = 32, kUnits = kPages * CT_ACT_PAGE_UNITS, kSteps = 200000 };

struct group {
  uint32_t place;
  unsigned units;
};

struct bench {
  ct_act_pages_dut *d;
  struct ct_act_pages model;
  uint16_t groups[kPages];
  uint32_t freed[kPages];
  struct group live[kUnits];
  unsigned lives;
  uint8_t taken[kUnits]; /* by a group that lives */
  unsigned long cycles, none, wrong;
};

static void reset(struct bench *b, unsigned pages) {
  *b->d->pages_i = (uint8_t)pages;
  *b->d->reset_i = 1;
  ct_act_pages_tick(b->d);
  *b->d->reset_i = 0;
  b->model = ct_act_pages(pages, b->groups, b->freed);
  b->lives = 0;
  memset(b->taken, 0, sizeof(b->taken));
}

/* Ticks until *ready; the answer is on show then. */
static void await(struct bench *b, const uint8_t *ready) {
  ct_act_pages_eval(b->d);
  CT_TB_WHILE (!*ready, 4) {
    ct_act_pages_tick(b->d);
    ++b->cycles;
    ct_act_pages_eval(b->d);
  }
}

static void take(struct bench *b, unsigned units) {
  const int64_t want = ct_act_take(&b->model, units);
  *b->d->take_valid_i = 1;
  *b->d->take_units_i = (uint8_t)units;
  await(b, b->d->take_ready_o);
  assert_int_equal(*b->d->take_none_o, want == CT_ACT_NO_PLACE);
  const uint32_t place = *b->d->take_place_o;
  ct_act_pages_tick(b->d);
  *b->d->take_valid_i = 0;
  if (want == CT_ACT_NO_PLACE) {
    ++b->none;
    return;
  }
  assert_int_equal(place, want);
  for (unsigned i = 0; i < units; ++i) {
    assert_false(b->taken[place + i]);
    b->taken[place + i] = 1;
  }
  assert_int_equal(place / CT_ACT_PAGE_UNITS, (place + units - 1) / CT_ACT_PAGE_UNITS);
  b->live[b->lives++] = (struct group){place, units};
}

static void give_back(struct bench *b, uint32_t place) {
  const bool want = ct_act_free(&b->model, place);
  *b->d->free_valid_i = 1;
  *b->d->free_place_i = (uint16_t)place;
  await(b, b->d->free_ready_o);
  assert_int_equal(*b->d->free_bad_o, !want);
  ct_act_pages_tick(b->d);
  *b->d->free_valid_i = 0;
  b->wrong += !want;
}

static void free_live(struct bench *b, unsigned i) {
  const struct group g = b->live[i];
  give_back(b, g.place);
  memset(&b->taken[g.place], 0, g.units);
  b->live[i] = b->live[--b->lives];
}

/* A free of a page without groups; others cannot be told from right ones. */
static void free_none(struct bench *b, ct_rng *rng) {
  const uint32_t page = ct_rng_below(rng, kPages);
  for (unsigned i = 0; i < CT_ACT_PAGE_UNITS; ++i) {
    if (b->taken[page * CT_ACT_PAGE_UNITS + i]) return;
  }
  give_back(b, page * CT_ACT_PAGE_UNITS + ct_rng_below(rng, CT_ACT_PAGE_UNITS));
}

static void one_step(struct bench *b, ct_rng *rng, unsigned filling) {
  if (ct_rng_percent(rng, 2)) {
    free_none(b, rng);
  } else if (ct_rng_percent(rng, filling) || !b->lives) {
    take(b, ct_rng_percent(rng, 50) ? 1 + ct_rng_below(rng, 70) : 1 + ct_rng_below(rng, 4));
  } else {
    /* Backward frees what came last, mostly. */
    free_live(b, ct_rng_percent(rng, 70) ? b->lives - 1 : ct_rng_below(rng, b->lives));
  }
  ct_act_pages_eval(b->d);
  assert_int_equal(*b->d->held_o, b->model.held);
  assert_int_equal(*b->d->most_o, b->model.most);
}

static void same_places(void **state) {
  (void)state;
  static struct bench b; /* (too large for the stack) */
  memset(&b, 0, sizeof(b));
  b.d = ct_act_pages_new(ct_tb_trace());
  *b.d->reset_i = *b.d->take_valid_i = *b.d->free_valid_i = 0;
  ct_act_pages_reset(b.d, 2);
  ct_rng rng = ct_rng_make(1);
  unsigned filling = 60;
  reset(&b, kPages);
  for (int n = ct_tb_draws(kSteps); n > 0; --n) {
    if (ct_rng_below(&rng, 500) == 0) filling = 30 + ct_rng_below(&rng, 60);
    if (ct_rng_below(&rng, 20000) == 0) reset(&b, 1 + ct_rng_below(&rng, kPages));
    one_step(&b, &rng, filling);
  }
  while (b.lives)
    free_live(&b, b.lives - 1);
  ct_act_pages_eval(b.d);
  assert_in_range(*b.d->held_o, 0, 1); /* the open page is held */
  print_message("%lu times no room, %lu frees of nothing\n", b.none, b.wrong);
  assert_true(b.none > 100 && b.wrong > 100);
  ct_act_pages_free(b.d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_places)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
