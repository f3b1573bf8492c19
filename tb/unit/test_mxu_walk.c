/* SPDX-License-Identifier: Apache-2.0 */
/* ct_mxu_walk: random walks, row by row, against ct_walk.c. */
#include <string.h>

#include "ct_tb.h"
#include "ct_walk.h"

#include "ct_mxu_walk_dut.h"

typedef struct {
  ct_mxu_walk_dut *dut;
  ct_rng rng;
  struct ct_walk walk, said; /* of the MM, and of the next one */
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
static struct ct_cmd draw_mm(bench *b) {
  struct ct_cmd mm = {{0}};
  const uint32_t x = (uint32_t)(b->said.x0 + (int32_t)below(b, 4) * b->said.sx);
  const uint32_t y = (uint32_t)(b->said.y0 + (int32_t)below(b, 4) * b->said.sy);
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

static void say(bench *b, uint8_t *pulse, const struct ct_cmd *cmd) {
  *pulse = 1;
  memcpy(b->dut->cmd_i, cmd->w, sizeof cmd->w);
  ct_mxu_walk_tick(b->dut);
  *pulse = 0;
  memset(b->dut->cmd_i, 0xa5, sizeof cmd->w);
}

static void load(bench *b, const struct ct_cmd *mm) {
  ct_mxu_walk_dut *d = b->dut;
  *d->load_i = 1;
  *d->a_i = CT_GET(mm, MM_A);
  *d->pos_i = CT_GET(mm, MM_POS);
  *d->trans_i = CT_GET(mm, MM_A_TRANS);
  ct_mxu_walk_tick(d);
  *d->load_i = 0;
  *d->a_i = *d->pos_i = 0;
  *d->trans_i = !*d->trans_i;
  b->walk = b->said;
}

/* Another walk, or a part of it, which does not concern the MM that is under way. */
static void change(bench *b) {
  struct ct_cmd wpix, wtap;
  draw_walk(b, &wpix, &wtap);
  if (ct_rng_percent(&b->rng, 70)) {
    ct_walk_set(&b->said, &wpix);
    say(b, b->dut->wpix_i, &wpix);
  }
  if (ct_rng_percent(&b->rng, 70)) {
    ct_walk_set(&b->said, &wtap);
    say(b, b->dut->wtap_i, &wtap);
  }
}

/* The rows of a k step's column, with pauses. `next`: the MM that begins with the last row of all.
 */
static void column(bench *b, const struct ct_cmd *mm, const uint32_t *word, bool n_first,
                   bool n_last, struct ct_cmd *next) {
  ct_mxu_walk_dut *d = b->dut;
  const bool change_now = next && ct_rng_percent(&b->rng, 70);
  const bool trans = CT_GET(mm, MM_A_TRANS);
  const uint32_t rows = CT_GET(mm, MM_ROWS), count = trans ? (rows + 15) / 16 * 16 : rows;
  for (uint32_t r = 0; r < count; ++r) {
    while (ct_rng_percent(&b->rng, 20))
      ct_mxu_walk_tick(d);
    if (change_now && r == count / 2) change(b);
    ct_mxu_walk_eval(d);
    assert_int_equal(*d->pad_o, word[r] == CT_WALK_PAD);
    if (word[r] != CT_WALK_PAD) assert_int_equal(*d->addr_o, word[r]);
    const bool last = r + 1 == count;
    if (last && next) *next = draw_mm(b);
    *d->next_i = 1;
    *d->row_last_i = r % 16 == 15 || last;
    *d->m_last_i = r / 16 == (rows - 1) / 16;
    *d->n_last_i = n_last;
    *d->tile0_i = n_first && r < 16;
    if (last && next)
      load(b, next);
    else
      ct_mxu_walk_tick(d);
    *d->next_i = 0;
  }
}

static void product(bench *b, const struct ct_cmd *mm, struct ct_cmd *next) {
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
  struct ct_cmd wpix, wtap;
  draw_walk(&b, &wpix, &wtap);
  ct_walk_set(&b.said, &wpix);
  ct_walk_set(&b.said, &wtap);
  say(&b, d->wpix_i, &wpix);
  say(&b, d->wtap_i, &wtap);
  for (unsigned round = 0; round < 400; ++round) {
    if (ct_rng_percent(&b.rng, 70)) change(&b);
    struct ct_cmd mm = draw_mm(&b), next = mm;
    load(&b, &mm);
    for (unsigned more = below(&b, 4);; --more) {
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
