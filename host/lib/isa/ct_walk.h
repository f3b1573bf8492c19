/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which words of the scratchpad an MM with Walk reads as rows of A: docs/programming.md, "Walks".
 * A device that has them: CT_FEATURE_CONV.
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

/* ---- Made from a shape: for whoever writes programs ---- */

/* Input as it lies in the scratchpad, and the pixels that look at it. Pixel (x, y) of an image sees
 * at tap (i, j) what lies at (x * sx + x0 + i * dx, y * sy + y0 + j * dy): x0 = -pad and dx =
 * dilation for a convolution, and so on. */
struct ct_walk_shape {
  int32_t w, h;                      /* input: columns, lines */
  int32_t pixel, line, image, block; /* words between neighbours of each kind */
  int32_t nx, ny, sx, sy;            /* pixels along x and y, and strides */
  int32_t x0, y0, dx, dy, kx, cb;    /* taps along x, channel blocks */
};

/* The two commands; false: the shape does not fit their fields. */
bool ct_walk_commands(const struct ct_walk_shape *s, struct ct_cmd *wpix, struct ct_cmd *wtap);

/* A and Pos of an MM that begins at this pixel. base: the word of pixel (0, 0) of the first image;
 * images: so many exist from the pixel's own on. */
uint32_t ct_walk_a(const struct ct_walk_shape *s, uint32_t base, int32_t x, int32_t y,
                   int32_t image);
uint32_t ct_walk_pos(const struct ct_walk_shape *s, int32_t x, int32_t y, uint32_t images);

/* ---- Walked: which words are read ---- */

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
