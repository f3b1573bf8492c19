/* SPDX-License-Identifier: Apache-2.0 */
/* How matrices are cut into tiles, and the sizes of tiles in device memory (docs/programming.md).
 */
#ifndef CT_LAYOUT_H
#define CT_LAYOUT_H

#include <stdint.h>

/* Units of 16 bytes: an HBFP8 tile record, an FP32 tile, an FP32 row of a tile. */
enum {
  CT_TILE = 16,
  CT_RECORD_UNITS = 17,
  CT_F32_TILE_UNITS = 64,
  CT_F32_ROW_UNITS = 4,
  CT_STATE_UNITS = 2 * CT_F32_TILE_UNITS /* master weights and momentum of a tile */
};

static inline uint32_t ct_tiles(uint32_t n) {
  return n / CT_TILE + (n % CT_TILE != 0);
}

static inline uint32_t ct_min_u32(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

static inline uint32_t ct_ceil_div(uint32_t a, uint32_t b) {
  return a / b + (a % b != 0);
}

/* Elements of tile t that exist, of n in all: 1..16. */
static inline uint32_t ct_in_tile(uint32_t n, uint32_t t) {
  return ct_min_u32(n - t * CT_TILE, CT_TILE);
}

#endif
