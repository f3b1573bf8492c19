/* SPDX-License-Identifier: Apache-2.0 */
#include "act_gen.h"

#include <string.h>

/* What the blocks of a tile have in common, so that a tile may be all sparse or all dense. */
struct kind {
  unsigned density, bits, spread, strange;
  bool sign;
};

static struct kind draw_kind(ct_rng *rng) {
  struct kind k = {.density = ct_rng_below(rng, 101), .bits = 1 + ct_rng_below(rng, 7)};
  k.sign = ct_rng_percent(rng, 50);
  k.spread = 1u << ct_rng_below(rng, 5);
  k.strange = ct_rng_percent(rng, 10) ? 20 : 0;
  if (ct_rng_percent(rng, 10)) k = (struct kind){100, 7, 256, 0, true}; /* all that there is */
  if (ct_rng_percent(rng, 10)) k = (struct kind){0, 1, 1, 0, false};    /* nothing */
  return k;
}

static void draw_block(ct_rng *rng, const struct kind *k, struct ct_act_block *b) {
  b->e = (uint8_t)(k->spread > 255 ? ct_rng_u64(rng) : 120 + ct_rng_below(rng, k->spread));
  if (ct_rng_percent(rng, k->strange)) b->e = ct_rng_percent(rng, 50) ? 0 : 255;
  for (unsigned i = 0; i < 16; ++i) {
    const int size = (int)ct_rng_below(rng, 1u << k->bits);
    const bool some = ct_rng_percent(rng, k->density);
    b->q[i] = (int8_t)(!some ? 0 : k->sign && ct_rng_percent(rng, 50) ? -size : size);
    if (ct_rng_percent(rng, k->strange)) b->q[i] = (int8_t)ct_rng_u64(rng);
  }
}

void act_draw(ct_rng *rng, struct act_group *g) {
  struct kind k = draw_kind(rng);
  g->tiles = ct_rng_percent(rng, 60) ? CT_ACT_TILES : 1 + ct_rng_below(rng, CT_ACT_TILES);
  g->bound = (uint8_t)(ct_rng_percent(rng, 20)   ? 0
                       : ct_rng_percent(rng, 10) ? ct_rng_below(rng, 255)
                                                 : 112 + ct_rng_below(rng, 24));
  for (unsigned j = 0; j < kActBlocks; ++j) {
    if (ct_rng_percent(rng, 3)) k = draw_kind(rng);
    draw_block(rng, &k, &g->x[j]);
  }
  memcpy(g->y, g->x, sizeof(g->y));
  for (unsigned j = 0; j < kActBlocks; ++j)
    ct_act_round(&g->y[j], g->bound);
  g->units = ct_act_encode(g->x, g->tiles, g->bound, g->bytes);
}

void act_mend(uint8_t *bytes, unsigned units) {
  uint8_t check = 0;
  for (unsigned i = 0; i < units * CT_ACT_UNIT; ++i)
    check ^= bytes[i];
  bytes[units * CT_ACT_UNIT - 1] ^= check;
}
