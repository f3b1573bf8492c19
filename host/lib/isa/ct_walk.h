/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which words of the scratchpad an MM with Walk reads as rows of A: docs/programming.md, "Walks".
 *
 *   struct ct_walk w;
 *   ct_walk_set(&w, &wpix);
 *   ct_walk_set(&w, &wtap);
 *   struct ct_walk_place at = ct_walk_start(&w, &mm);
 *   for (k = 0; k < Kt; ++k) {
 *     ct_walk_rows(&w, &at, trans, 16 * row_tiles, word);  ... word[16 * m + i] or CT_WALK_PAD
 *     ct_walk_step(&w, &at, trans);
 *   }
 */
#ifndef CT_WALK_H
#define CT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "ct_cmd.h"

/* Instead of an address: the row is padding. */
enum { CT_WALK_PAD = 0x100000 };

/* What WPIX and WTAP have said. Strides are words modulo 2^20. */
struct ct_walk {
  int32_t x0, xe, y0, ye, sx, sy, w, h;
  uint32_t ax, ay, ai;
  int32_t x, y, dx, dy;
  uint32_t tc, tx, ty, kx, cb;
};

/* A pixel, and a tap as it moves the pixel. at: what its steps add to the address. */
struct ct_walk_pixel {
  uint32_t at, images;
  int32_t x, y;
};
struct ct_walk_tap {
  uint32_t at, kx, cb; /* kx, cb: steps until the next line, the next tap */
  int32_t x, y;
};

/* Where a k step begins. */
struct ct_walk_place {
  struct ct_walk_pixel pixel;
  struct ct_walk_tap tap;
};

/* cmd: a WPIX or a WTAP. */
void ct_walk_set(struct ct_walk *w, const struct ct_cmd *cmd);

/* The first k step of this MM, whose registers have been added in. */
struct ct_walk_place ct_walk_start(const struct ct_walk *w, const struct ct_cmd *mm);

/* The words of a k step, one for each row: 0..2^20-1 in the window, or CT_WALK_PAD. trans: ATrans;
 * then rows is a multiple of 16. */
void ct_walk_rows(const struct ct_walk *w, const struct ct_walk_place *at, bool trans,
                  uint32_t rows, uint32_t *word);

/* Goes on to the next k step. */
void ct_walk_step(const struct ct_walk *w, struct ct_walk_place *at, bool trans);

#endif
