/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed activations (docs/compression.md) in plain C: the specification of ct_act_enc and
 * ct_act_dec in code. A group of one to four HBFP8 tiles becomes 1 to 70 units of 16 bytes, and
 * these become tiles again, each value within a bound of what it was.
 */
#ifndef CT_ACT_H
#define CT_ACT_H

#include <stdbool.h>
#include <stdint.h>

enum {
  CT_ACT_TILES = 4,                                   /* of a group, at most */
  CT_ACT_BLOCKS = 16,                                 /* of a tile */
  CT_ACT_UNITS = 70,                                  /* of a group, at most */
  CT_ACT_UNIT = 16,                                   /* bytes */
  CT_ACT_BYTES = CT_ACT_UNITS * CT_ACT_UNIT,          /* of a group, at most */
  CT_ACT_TILE_BYTES = CT_ACT_UNIT + 16 * CT_ACT_UNIT, /* as tiles lie in memory: a record */
  CT_ACT_MAX_BOUND = 254,
};

/* A word of the scratchpad. */
struct ct_act_block {
  uint8_t e;
  int8_t q[16];
};

/* The only loss: the block as one of the exponent max(e, bound), rounded to nearest even. The error
 * of a value is at most 2^(bound - 134), and 0 where e >= bound; so with bound = 0 nothing is lost
 * (but what blocks with e = 0 or 255 and mantissas of -128 hold against the format: they become 0).
 */
void ct_act_round(struct ct_act_block *b, uint8_t bound);

/* Encodes `tiles` tiles, 1 to 4, of 16 blocks each, with a bound of 0 to 254; returns how many
 * units of `out` it filled. */
unsigned ct_act_encode(const struct ct_act_block *b, unsigned tiles, uint8_t bound,
                       uint8_t out[CT_ACT_BYTES]);

/* Decodes `units` units into `tiles` tiles. False: no such group is encoded so, and what the blocks
 * hold is of no use. Reads nothing behind the units and writes nothing behind the tiles, whatever
 * the units hold. */
bool ct_act_decode(const uint8_t *in, unsigned units, unsigned tiles, struct ct_act_block *b);

/* Between blocks and a record of memory: 16 exponents, then the mantissas. */
void ct_act_from_record(struct ct_act_block b[CT_ACT_BLOCKS], const uint8_t *record);
void ct_act_to_record(const struct ct_act_block b[CT_ACT_BLOCKS], uint8_t *record);

#endif
