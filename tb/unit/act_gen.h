/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of tiles for the benches of compressed activations: of every density, length, sign and
 * spread of exponents, and some that cannot be made shorter. */
#ifndef ACT_GEN_H
#define ACT_GEN_H

#include "ct_act.h"
#include "ct_tb.h"

enum { kActBlocks = CT_ACT_TILES * CT_ACT_BLOCKS };

struct act_group {
  struct ct_act_block x[kActBlocks]; /* what goes in */
  struct ct_act_block y[kActBlocks]; /* what comes back */
  unsigned tiles, units;
  uint8_t bound;
  uint8_t bytes[CT_ACT_BYTES];
};

/* Draws a group and encodes it. */
void act_draw(ct_rng *rng, struct act_group *g);

/* The exclusive or of all bytes becomes 0. */
void act_mend(uint8_t *bytes, unsigned units);

#endif
