/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training step does with activations that are kept compressed, as small as it can be: in
 * front y = relu(x * w^T), and x and y are stored as groups; behind it they are loaded and freed,
 * and y * w^T, where x is above 0, and x itself are stored.
 *
 * So ST reads words that LD and VS have written and encodes them, and what the decoder writes is
 * read by the array (y), by the vector unit (x) and by ST.
 */
#ifndef CT_KEPT_H
#define CT_KEPT_H

#include "host/lib/lower/ct_prog.h"

/* Tiles of x and of y, in groups of four; of w; of the results: FP32, then the records of x. */
enum { CT_KEPT_ROWS = 2, CT_KEPT_COLS = 4, CT_KEPT_TILES = CT_KEPT_ROWS * CT_KEPT_COLS };
enum { CT_KEPT_WEIGHTS = CT_KEPT_COLS * CT_KEPT_COLS };

/* Arguments: places in device memory, and the bounds' exponents << 4. An index unit for x, and one
 * for y. */
enum {
  CT_KEPT_X = 1,
  CT_KEPT_W,
  CT_KEPT_INDEX,
  CT_KEPT_OUT,
  CT_KEPT_X_BOUND,
  CT_KEPT_Y_BOUND,
  CT_KEPT_ARGS = CT_KEPT_Y_BOUND
};

int ct_kept_program(bool front, bool back, uint32_t spm_words, struct ct_code *code,
                    const struct ct_why *why);

#endif
