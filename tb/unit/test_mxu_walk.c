/* SPDX-License-Identifier: Apache-2.0 */
/* ct_mxu_walk: random walks, row by row, against ct_walk.c. */
#include <string.h>

#include "ct_tb.h"
#include "ct_walk.h"

#include "ct_mxu_walk_dut.h"

typedef struct {
  ct_mxu_walk_dut *dut;
  ct_rng rng;
  struct ct_walk walk;
} bench;

static uint32_t below(bench *b, uint32_t bound) {
  return ct_rng_below(&b->rng, bound);
}

/* Any value of a field, or a small one. */
static void draw(bench *b, struct ct_cmd *cmd, enum ct_field_id f) {
  const struct ct_field_info *info = &ct_fields[f];
  const uint32_t bits = (uint32_t)ct_rng_u64(&b->rng);
  const bool wide = ct_rng_percent(&b->rng, 25);
  uint32_t value = wide ? bits : info->kind == CT_KIND_INT ? bits % 9 - 4 : 1 + bits % 5;
  value &= (1u << info->width) - 1;
  ct_cmd_set_bits(cmd, info->lsb, info->width, value ? value : info->kind != CT_KIND_INT);
}

static struct ct_cmd draw_command(bench *b, unsigned code) {
  const struct ct_op_info *op = ct_op_find(code);
  struct ct_cmd cmd = {{0}};
  for (unsigned f = 0; f < CT_NUM_FIELDS; ++f)
    if (ct_fields[f].group == op->group) draw(b, &cmd, (enum ct_field_id)f);
  CT_PUT(&cmd, ALL_OP, code);
  return cmd;
}

/* Half of the walks are one of a real shape. */
static void draw_walk(bench *b, struct ct_cmd *wpix, struct ct_cmd *wtap) {
  const struct ct_walk_shape s = {.w = 1 + (int32_t)below(b, 9),
                                  .h = 1 + (int32_t)below(b, 9),
                                  .pixel = 1 + (int32_t)below(b, 2),
                                  .line = 20,
                                  .image = 200,
                                  .block = 600,
                                  .nx = 1 + (int32_t)below(b, 9),
                                  .ny = 1 + (int32_t)below(b, 5),
                                  .sx = 1 + (int32_t)below(b, 2),
                                  .sy = 1 + (int32_t)below(b, 2),
                                  .x0 = (int32_t)below(b, 5) - 2,
                                  .y0 = (int32_t)below(b, 5) - 2,
                                  .dx = (int32_t)below(b, 5) - 2,
                                  .dy = (int32_t)below(b, 5) - 2,
                                  .kx = 1 + (int32_t)below(b, 3),
                                  .cb = 1 + (int32_t)below(b, 3)};
  if (ct_rng_percent(&b->rng, 50)) {
    assert_true(ct_walk_commands(&s, wpix, wtap));
    return;
  }
  *wpix = draw_command(b, CT_OP_WPIX);
  *wtap = draw_command(b, CT_OP_WTAP);
}

/* An MM that begins at one of the walk's pixels, mostly. */
static struct ct_cmd draw_mm(bench *b, const struct ct_cmd *wpix) {
  struct ct_cmd mm = {{0}};
  const uint32_t x = CT_GET(wpix, WPIX_X0) + below(b, 4) * (uint32_t)CT_GETS(wpix, WPIX_SX);
  const uint32_t y = CT_GET(wpix, WPIX_Y0) + below(b, 4) * (uint32_t)CT_GETS(wpix, WPIX_SY);
  CT_PUT(&mm, ALL_OP, CT_OP_MM);
  CT_PUT(&mm, MM_A, below(b, 1 << 20));
  CT_PUT(&mm, MM_A_TRANS, below(b, 2));
  CT_PUT(&mm, MM_POS, (x & 0x1ff) | (y & 0x1ff) << 9 | below(b, 4) << 18);
  if (ct_rng_percent(&b->rng, 10)) CT_PUT(&mm, MM_POS, (uint32_t)ct_rng_u64(&b->rng) & 0x3ffffff);
  CT_PUT(&mm, MM_KT, 1 + below(b, 12));
  CT_PUT(&mm, MM_ROWS, 1 + below(b, 128));
  CT_PUT(&mm, MM_NT, 1 + below(b, 8 / ((CT_GET(&mm, MM_ROWS) + 15) / 16)));
  return mm;
}

static void clock(bench *b, uint8_t *pulse, const struct ct_cmd *cmd) {
  ct_mxu_walk_dut *d = b->dut;
  *pulse = 1;
  memcpy(d->cmd_i, cmd->w, sizeof cmd->w);
  ct_mxu_walk_tick(d);
  *pulse = 0;
  memset(d->cmd_i, 0xa5, sizeof cmd->w);
}

/* The rows of a k step's column, with pauses. `next`: the MM that begins with the last row of all.
 */
static void column(bench *b, const struct ct_cmd *mm, const uint32_t *word, bool n_first,
                   bool n_last, const struct ct_cmd *next) {
  ct_mxu_walk_dut *d = b->dut;
  const bool trans = CT_GET(mm, MM_A_TRANS);
  const uint32_t rows = CT_GET(mm, MM_ROWS), count = trans ? (rows + 15) / 16 * 16 : rows;
  for (uint32_t r = 0; r < count; ++r) {
    while (ct_rng_percent(&b->rng, 20))
      ct_mxu_walk_tick(d);
    ct_mxu_walk_eval(d);
    assert_int_equal(*d->pad_o, word[r] == CT_WALK_PAD);
    if (word[r] != CT_WALK_PAD) assert_int_equal(*d->addr_o, word[r]);
    const bool last = r + 1 == count;
    *d->next_i = 1;
    *d->row_last_i = r % 16 == 15 || last;
    *d->m_last_i = r / 16 == (rows - 1) / 16;
    *d->n_last_i = n_last;
    *d->tile0_i = n_first && r < 16;
    if (last && next)
      clock(b, d->load_i, next);
    else
      ct_mxu_walk_tick(d);
    *d->next_i = 0;
  }
}

static void product(bench *b, const struct ct_cmd *mm, const struct ct_cmd *next) {
  const bool trans = CT_GET(mm, MM_A_TRANS);
  const uint32_t kt = CT_GET(mm, MM_KT), nt = CT_GET(mm, MM_NT);
  struct ct_walk_place at = ct_walk_start(&b->walk, mm);
  uint32_t word[128];
  for (uint32_t k = 0; k < kt; ++k, ct_walk_step(&b->walk, &at, trans)) {
    ct_walk_rows(&b->walk, &at, trans, 128, word);
    for (uint32_t n = 0; n < nt; ++n)
      column(b, mm, word, n == 0, n + 1 == nt, k + 1 == kt && n + 1 == nt ? next : NULL);
  }
}

static void walks(void **state) {
  (void)state;
  bench b = {.dut = ct_mxu_walk_new(ct_tb_trace()), .rng = ct_rng_make(1)};
  ct_mxu_walk_dut *d = b.dut;
  for (unsigned round = 0; round < 400; ++round) {
    struct ct_cmd wpix, wtap, mm;
    draw_walk(&b, &wpix, &wtap);
    if (round == 0 || ct_rng_percent(&b.rng, 80)) {
      ct_walk_set(&b.walk, &wpix);
      clock(&b, d->wpix_i, &wpix);
    }
    if (round == 0 || ct_rng_percent(&b.rng, 80)) {
      ct_walk_set(&b.walk, &wtap);
      clock(&b, d->wtap_i, &wtap);
    }
    mm = draw_mm(&b, &wpix);
    clock(&b, d->load_i, &mm);
    for (unsigned more = below(&b, 4);; --more) {
      const struct ct_cmd next = draw_mm(&b, &wpix);
      product(&b, &mm, more ? &next : NULL);
      if (!more) break;
      mm = next;
    }
  }
  ct_mxu_walk_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(walks)};
  return cmocka_run_group_tests_name("walks", tests, NULL, NULL);
}
