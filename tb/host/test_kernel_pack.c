/* SPDX-License-Identifier: Apache-2.0 */
/* Records to compressed groups and back: what comes back is what the codec says, whatever size and
 * window, and no page is left in use. */
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_act.h"
#include "ct_queue.h"
#include "ct_device.h"
#include "kernel_bed.h"

enum { PAGES = 256, PAGE = 4096 };

struct arena {
  struct kbed bed;
  uint64_t at;
};

static uint32_t reg(struct kbed *b, uint32_t offset) {
  uint32_t value;
  assert_int_equal(ct_reg_read(b->dev, ct_queue_reg(CT_TRAINING, offset), &value), CT_OK);
  return value;
}

static void set_reg(struct kbed *b, uint32_t offset, uint32_t value) {
  assert_int_equal(ct_reg_write(b->dev, ct_queue_reg(CT_TRAINING, offset), value), CT_OK);
}

static void open_arena(struct arena *a, const char *uri) {
  uint64_t addr;
  kb_open(&a->bed, uri, 5);
  assert_int_equal(ct_mem_alloc(a->bed.dev, (uint64_t)(PAGES + 1) * PAGE, &addr), CT_OK);
  a->at = (addr + PAGE - 1) / PAGE * PAGE;
  set_reg(&a->bed, CT_CREG_ARENA_BASE, (uint32_t)(a->at / 16));
  set_reg(&a->bed, CT_CREG_ARENA_PAGES, PAGES);
}

static uint8_t *bytes_of(const struct kbed *b, const struct ct_mat *m, enum ct_keep keep) {
  return b->mem + (size_t)16 * (m->keep[keep].at + (m->keep[keep].reg == 2 ? 100 : 0));
}

static void draw_tile(ct_rng *rng, uint8_t *record) {
  struct ct_act_block b[CT_ACT_BLOCKS];
  const unsigned spread = (unsigned)ct_rng_below(rng, 5), dense = (unsigned)ct_rng_below(rng, 101);
  for (unsigned i = 0; i < CT_ACT_BLOCKS; ++i) {
    b[i].e = (uint8_t)(120 + ct_rng_below(rng, 1 + spread));
    for (unsigned k = 0; k < 16; ++k)
      b[i].q[k] = (int8_t)(ct_rng_percent(rng, dense) ? (int)ct_rng_below(rng, 255) - 127 : 0);
  }
  ct_act_to_record(b, record);
}

static void run(struct kbed *b, const struct ct_pack *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  if (ct_kernel_pack(k, &room, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  kb_run(b, &codes, window);
}

static struct ct_seat draw_index(struct kbed *b, uint32_t units) {
  const struct ct_seat seat = {1, b->used};
  for (uint32_t u = 0; u < units; ++u)
    b->out[b->used++] = true;
  return seat;
}

static void one(struct arena *a, uint32_t rows, uint32_t cols, uint32_t window) {
  struct kbed *b = &a->bed;
  const enum ct_keep keep = ct_rng_percent(&b->rng, 50) ? CT_KEEP_ROWS : CT_KEEP_SQUARE;
  const uint8_t bound =
      ct_rng_percent(&b->rng, 40) ? 0 : (uint8_t)(118 + ct_rng_below(&b->rng, 12));
  kb_clear(b);
  const struct ct_mat x = kb_mat(b, rows, cols, 1u << keep, false);
  const struct ct_mat y = kb_mat(b, rows, cols, 1u << keep, true);
  const uint32_t units = ct_pack_units(rows, cols);
  const uint32_t tiles = ct_tiles(rows) * ct_tiles(cols);
  uint8_t *from = bytes_of(b, &x, keep), *to = bytes_of(b, &y, keep);
  for (uint32_t t = 0; t < tiles; ++t)
    draw_tile(&b->rng, from + (size_t)272 * t);
  struct ct_pack k = {.mat = x, .index = draw_index(b, units), .n1_reg = KB_NUMBER};
  b->number[0] = (uint32_t)bound << 4;
  run(b, &k, window);
  assert_true(reg(b, CT_CREG_ARENA_HELD) > 0);
  k.mat = y;
  k.back = true;
  for (unsigned last = 0; last < 2; ++last) { /* read, and read once more */
    k.free = last == 1;
    memset(to, 0xa5, (size_t)272 * tiles);
    run(b, &k, window);
    for (uint32_t t = 0; t < tiles; ++t) {
      struct ct_act_block want[CT_ACT_BLOCKS];
      uint8_t record[CT_ACT_TILE_BYTES];
      ct_act_from_record(want, from + (size_t)272 * t);
      for (unsigned i = 0; i < CT_ACT_BLOCKS; ++i)
        ct_act_round(&want[i], bound);
      ct_act_to_record(want, record);
      if (memcmp(record, to + (size_t)272 * t, 272) != 0)
        fail_msg("%u x %u, window %u: tile %u of %u", rows, cols, window, t, tiles);
    }
  }
  assert_in_range(reg(b, CT_CREG_ARENA_HELD), 0, 1);
}

static void sizes(void **state) {
  (void)state;
  struct arena a;
  open_arena(&a, "emu:");
  for (uint32_t tiles = 1; tiles < 40; ++tiles)
    one(&a, 16 * tiles, 3, 2048);
  for (unsigned round = 0; round < 60; ++round)
    one(&a, 1 + ct_rng_below(&a.bed.rng, 600), 1 + ct_rng_below(&a.bed.rng, 70),
        round % 3 ? 4096 : 300);
  kb_close(&a.bed);
}

static void refused(void **state) {
  (void)state;
  struct arena a;
  open_arena(&a, "emu:");
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(4096), narrow = kb_room(200);
  struct ct_pack k = {.mat = kb_mat(&a.bed, 40, 20, KB_F32, false), .index = {1, 0}};
  const struct ct_why to = {why, sizeof why};
  assert_int_equal(ct_kernel_pack(&k, &room, &codes, &to), CT_ERR_ARG);
  assert_string_equal(why, "packing tiles: FP32 has no groups");
  k.mat = kb_mat(&a.bed, 40, 20, KB_ROWS, false);
  assert_int_equal(ct_kernel_pack(&k, &narrow, &codes, &to), CT_ERR_NO_SPACE);
  k.index.reg = KB_ARGS + 1;
  assert_int_equal(ct_kernel_pack(&k, &room, &codes, &to), CT_ERR_ARG);
  kb_close(&a.bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(refused)};
  ct_tb_seed();
  return cmocka_run_group_tests_name("packing", tests, NULL, NULL);
}
