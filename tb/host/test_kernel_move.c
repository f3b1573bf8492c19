/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that move, rows that become columns: any bits but NaN and what is next to nothing come out
 * as they were, -0 and Inf among them. */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_num.h"
#include "kernel_bed.h"

enum { MOST = 400 * 70 };

struct values {
  uint32_t x[MOST], want[MOST];
};

static uint32_t some_bits(ct_rng *rng) {
  static const uint32_t rare[] = {0, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7f7fffffu};
  if (ct_rng_percent(rng, 20)) return rare[ct_rng_below(rng, 5)];
  return (uint32_t)ct_rng_u64(rng) % 0x7f000000u + 0x00800000u +
         (ct_rng_percent(rng, 50) ? 0x80000000u : 0);
}

static void run(struct kbed *b, const struct ct_move *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  if (ct_kernel_move(k, &room, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  kb_run(b, &codes, window);
}

/* Loops in a random order of their steps in y, so that every row of y is named once. */
static void draw_loops(struct kbed *b, struct ct_move *k, uint32_t most) {
  uint32_t rows = 1, order[3] = {0, 1, 2};
  for (unsigned i = 0; i < 3; ++i) {
    k->n[i] = 1 + ct_rng_below(&b->rng, most);
    const unsigned j = ct_rng_below(&b->rng, 3);
    const uint32_t t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  for (unsigned i = 3; i-- > 0;) {
    k->to[order[i]] = rows;
    rows *= k->turn && order[i] == 2 ? k->x.cols : k->n[order[i]];
  }
  k->y.rows = rows;
  rows = 1;
  for (unsigned i = 3; i-- > 0;) {
    k->from[i] = ct_rng_percent(&b->rng, 15) ? 0 : rows;
    if (k->from[i]) rows *= k->n[i];
  }
  k->from_row = ct_rng_below(&b->rng, 20);
  k->x.rows = k->from_row + rows + ct_rng_below(&b->rng, 20);
}

static void expected(const struct ct_move *k, struct values *v) {
  for (uint32_t i = 0; i < k->n[0]; ++i)
    for (uint32_t j = 0; j < k->n[1]; ++j)
      for (uint32_t r = 0; r < k->n[2]; ++r)
        for (uint32_t c = 0; c < k->x.cols; ++c) {
          const uint32_t x = k->from_row + i * k->from[0] + j * k->from[1] + r * k->from[2];
          const uint32_t y = i * k->to[0] + j * k->to[1] + (k->turn ? c : r) * k->to[2];
          v->want[y * k->y.cols + (k->turn ? r : c)] = v->x[x * k->x.cols + c];
        }
}

static void check(struct kbed *b, struct values *v, bool turn) {
  struct ct_move k = {.turn = turn, .x.cols = 1 + ct_rng_below(&b->rng, 40)};
  const bool deep = ct_rng_percent(&b->rng, 30);
  kb_clear(b);
  draw_loops(b, &k, turn ? 4 : 6);
  if (deep) { /* one long loop */
    k.n[0] = k.n[1] = 1;
    k.n[2] = 1 + ct_rng_below(&b->rng, turn ? 70 : 300);
    k.from[2] = k.to[2] = 1;
    k.x.rows = k.from_row + k.n[2];
    k.y.rows = turn ? k.x.cols : k.n[2];
  }
  k.y.cols = turn ? k.n[2] : k.x.cols;
  k.x = kb_mat(b, k.x.rows, k.x.cols, KB_F32, false);
  k.y = kb_mat(b, k.y.rows, k.y.cols, KB_F32, true);
  assert_true(k.x.rows * k.x.cols <= MOST && k.y.rows * k.y.cols <= MOST);
  for (uint32_t i = 0; i < k.x.rows * k.x.cols; ++i)
    v->x[i] = some_bits(&b->rng);
  kb_put(b, &k.x, v->x);
  run(b, &k, 400 + ct_rng_below(&b->rng, 1500));
  expected(&k, v);
  kb_check(b, &k.y, v->want, turn ? "turned" : "moved");
}

static void random_moves(bool turn) {
  struct kbed b;
  struct values *v = calloc(1, sizeof *v);
  assert_non_null(v);
  kb_open(&b, "emu:", 1 + turn);
  for (unsigned i = 0; i < 150; ++i)
    check(&b, v, turn);
  kb_close(&b);
  free(v);
}

static void test_rows(void **state) {
  (void)state;
  random_moves(false);
}

static void test_turned(void **state) {
  (void)state;
  random_moves(true);
}

/* Rows of whole blocks are cut into parts, which go to other planes; and put together again. */
static void test_planes(void **state) {
  (void)state;
  struct kbed b;
  struct values *v = calloc(1, sizeof *v);
  assert_non_null(v);
  kb_open(&b, "emu:", 4);
  for (unsigned i = 0; i < 40; ++i) {
    const uint32_t rows = 1 + ct_rng_below(&b.rng, 90), planes = 1 + ct_rng_below(&b.rng, 2),
                   parts = 1 + ct_rng_below(&b.rng, 4), cols = planes * 16;
    const bool cut = ct_rng_percent(&b.rng, 50);
    const uint32_t step = planes * ct_move_plane(rows);
    struct ct_move k = {.n = {1, parts, rows}, .planes = planes};
    memcpy(cut ? k.from : k.to, (const uint32_t[3]){0, step, 1}, sizeof k.from);
    memcpy(cut ? k.to : k.from, (const uint32_t[3]){0, 1, parts}, sizeof k.from);
    kb_clear(&b);
    const struct ct_mat whole = kb_mat(&b, rows, cols * parts, KB_F32, !cut),
                        apart = kb_mat(&b, rows * parts, cols, KB_F32, cut);
    k.x = cut ? whole : apart;
    k.y = cut ? apart : whole;
    assert_true(rows * cols * parts <= MOST);
    for (uint32_t e = 0; e < rows * cols * parts; ++e)
      v->x[e] = some_bits(&b.rng);
    kb_put(&b, &k.x, v->x);
    run(&b, &k, 400 + ct_rng_below(&b.rng, 1500));
    kb_check(&b, &k.y, v->x, "the same elements");
  }
  kb_close(&b);
  free(v);
}

static void refuse(const struct ct_move *k, const char *what) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(1000);
  const int err = ct_kernel_move(k, &room, &codes, &(struct ct_why){why, sizeof why});
  if (err != CT_ERR_ARG || !strstr(why, what)) fail_msg("%d (%s), not: %s", err, why, what);
}

static void test_refusals(void **state) {
  (void)state;
  struct kbed b;
  kb_open(&b, "emu:", 3);
  const struct ct_move good = {.x = kb_mat(&b, 20, 30, KB_F32, false),
                               .y = kb_mat(&b, 20, 30, KB_F32, true),
                               .n = {1, 1, 20},
                               .from = {0, 0, 1},
                               .to = {0, 0, 1}};
  struct ct_move k = good;
  k.from_row = 1;
  refuse(&k, "leaves the rows");
  k = good;
  k.to[2] = 2;
  refuse(&k, "leaves the rows");
  k = good;
  k.planes = 3;
  refuse(&k, "leaves the rows");
  k = good;
  k.n[1] = 0;
  refuse(&k, "leaves the rows");
  k = good;
  k.turn = true;
  refuse(&k, "y has 20 rows and 30 columns, not 20 and 20");
  k = good;
  k.x = kb_mat(&b, 20, 30, KB_ROWS, false);
  refuse(&k, "what is moved is FP32");
  kb_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_turned),
      cmocka_unit_test(test_planes),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests_name("kernel_move", tests, NULL, NULL);
}
