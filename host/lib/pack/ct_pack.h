/* SPDX-License-Identifier: Apache-2.0 */
/* What the packers of matrices share: the size of a tile's record, and the check of a size. */
#ifndef CT_PACK_H
#define CT_PACK_H

#include <stddef.h>

#include "coltrain/coltrain.h"
#include "ct_layout.h"

/* A record: sixteen exponents, then sixteen rows of sixteen mantissas. */
enum { CT_RECORD = CT_RECORD_UNITS * CT_TILE };

/* CT_OK, or CT_ERR_ARG and a sentence: whether a packed matrix of that size has a size in bytes. */
int ct_pack_check(size_t rows, size_t cols);

/* ct_pack() with mantissas of 8 - narrow bits (narrow at most 6), of what was checked before. */
struct ct_pack_form {
  size_t rows, cols, pitch;
  enum ct_sharing sharing;
  unsigned narrow;
};
void ct_pack_narrow(const float *x, const struct ct_pack_form *form, uint8_t *out);

#endif
