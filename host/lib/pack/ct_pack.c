/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors between FP32 on the host and HBFP8 as device memory holds it. No libm, no host rounding.
 */
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_device.h"
#include "ct_fixed.h"
#include "ct_num.h"
#include "ct_pack.h"
#include "ct_path.h"

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

size_t ct_pack_size(size_t rows, size_t cols) {
  const size_t r = rows / CT_TILE + (rows % CT_TILE != 0),
               c = cols / CT_TILE + (cols % CT_TILE != 0);
  return c && r > SIZE_MAX / CT_RECORD / c ? 0 : r * c * CT_RECORD;
}

/* Tile (r0, c0) of a matrix whose element (r, c) is x[r * row_step + c * col_step]; +0 outside. */
static void read_tile(const float *x, size_t rows, size_t cols, size_t row_step, size_t col_step,
                      uint32_t tile[CT_TILE][CT_TILE]) {
  if (rows < CT_TILE || cols < CT_TILE) memset(tile, 0, sizeof(uint32_t) * CT_TILE * CT_TILE);
  for (size_t r = 0; r < rows && r < CT_TILE; ++r) {
    if (col_step == 1) {
      memcpy(tile[r], x + r * row_step, sizeof *x * (cols < CT_TILE ? cols : CT_TILE));
      continue;
    }
    for (size_t c = 0; c < cols && c < CT_TILE; ++c)
      tile[r][c] = bits_of(x[r * row_step + c * col_step]);
  }
}

/* How it is laid out and rounded. */
struct form {
  size_t row_step, col_step;
  enum ct_sharing sharing;
  unsigned narrow;
};

static void pack(const float *x, size_t rows, size_t cols, const struct form *f, uint8_t *out) {
  const struct ct_path *path = ct_path_find(NULL);
  const unsigned state = path->enter();
  for (size_t r = 0; r < rows; r += CT_TILE) {
    for (size_t c = 0; c < cols; c += CT_TILE, out += CT_RECORD) {
      struct ct_emu_tile t;
      read_tile(x + r * f->row_step + c * f->col_step, rows - r, cols - c, f->row_step, f->col_step,
                t.x);
      path->quantise((const uint32_t(*)[CT_TILE])t.x, CT_TILE, f->sharing == CT_SQUARE, f->narrow,
                     (int8_t(*)[CT_TILE])(out + CT_TILE), out);
    }
  }
  path->leave(state);
}

int ct_pack_check(size_t rows, size_t cols) {
  if (!rows || !cols || ct_pack_size(rows, cols)) return CT_OK;
  return ct_fail(NULL, CT_ERR_ARG, "a matrix of %zu x %zu is more than this machine can address",
                 rows, cols);
}

/* What all three need; x: so many lines of width elements that lie next to each other. */
static int check_matrix(size_t rows, size_t cols, bool transposed, size_t pitch) {
  const size_t lines = transposed ? cols : rows, width = transposed ? rows : cols;
  const size_t most = SIZE_MAX / sizeof(float);
  const int err = ct_pack_check(rows, cols);
  if (err) return err;
  if (pitch < width)
    return ct_fail(NULL, CT_ERR_ARG, "a pitch of %zu is less than the %zu elements of a row", pitch,
                   width);
  if (width > most || (lines > 1 && pitch > (most - width) / (lines - 1)))
    return ct_fail(NULL, CT_ERR_ARG, "a pitch of %zu is more than this machine can address", pitch);
  return CT_OK;
}

static int check_sharing(enum ct_sharing sharing) {
  if (sharing == CT_ROW || sharing == CT_SQUARE) return CT_OK;
  return ct_fail(NULL, CT_ERR_ARG, "there is no sharing %d: CT_ROW or CT_SQUARE", (int)sharing);
}

int ct_pack(const float *x, size_t rows, size_t cols, size_t pitch, enum ct_sharing sharing,
            void *out) {
  CT_NEED(NULL, x);
  CT_NEED(NULL, out);
  int err = check_matrix(rows, cols, false, pitch);
  if (!err) err = check_sharing(sharing);
  if (!err) pack(x, rows, cols, &(struct form){pitch, 1, sharing, 0}, out);
  return err;
}

void ct_pack_narrow(const float *x, const struct ct_pack_form *form, uint8_t *out) {
  pack(x, form->rows, form->cols, &(struct form){form->pitch, 1, form->sharing, form->narrow}, out);
}

int ct_pack_transposed(const float *x, size_t rows, size_t cols, size_t pitch,
                       enum ct_sharing sharing, void *out) {
  CT_NEED(NULL, x);
  CT_NEED(NULL, out);
  int err = check_matrix(rows, cols, true, pitch);
  if (!err) err = check_sharing(sharing);
  if (!err) pack(x, rows, cols, &(struct form){1, pitch, sharing, 0}, out);
  return err;
}

int ct_unpack(const void *packed, size_t rows, size_t cols, size_t pitch, float *x) {
  CT_NEED(NULL, packed);
  CT_NEED(NULL, x);
  const int err = check_matrix(rows, cols, false, pitch);
  if (err) return err;
  const uint8_t *record = packed;
  for (size_t r0 = 0; r0 < rows; r0 += CT_TILE) {
    for (size_t c0 = 0; c0 < cols; c0 += CT_TILE, record += CT_RECORD) {
      for (size_t r = r0; r < rows && r < r0 + CT_TILE; ++r) {
        for (size_t c = c0; c < cols && c < c0 + CT_TILE; ++c) {
          const uint8_t q = record[CT_TILE * (r - r0 + 1) + (c - c0)];
          x[r * pitch + c] = float_of(ct_hbfp8_dequant((int8_t)q, record[r - r0]));
        }
      }
    }
  }
  return CT_OK;
}

/* Groups of up to 16 blocks, each with 16 bytes of exponents in front. */
size_t ct_pack_row_size(size_t n) {
  const size_t blocks = n / CT_TILE + (n % CT_TILE != 0);
  const size_t groups = blocks / CT_TILE + (blocks % CT_TILE != 0);
  return blocks > SIZE_MAX / CT_TILE - groups ? 0 : (blocks + groups) * CT_TILE;
}

int ct_pack_row(const float *x, size_t n, void *out) {
  CT_NEED(NULL, x);
  CT_NEED(NULL, out);
  if (n && (!ct_pack_row_size(n) || n > SIZE_MAX / sizeof *x))
    return ct_fail(NULL, CT_ERR_ARG, "a row of %zu is more than this machine can address", n);
  uint8_t *header = out;
  const size_t blocks = n / CT_TILE + (n % CT_TILE != 0);
  for (size_t b0 = 0; b0 < blocks; b0 += CT_TILE) {
    const size_t in_group = blocks - b0 < CT_TILE ? blocks - b0 : CT_TILE;
    memset(header, 0, CT_TILE);
    for (size_t b = 0; b < in_group; ++b) {
      uint32_t block[CT_TILE] = {0};
      for (size_t i = 0; i < CT_TILE && (b0 + b) * CT_TILE + i < n; ++i)
        block[i] = bits_of(x[(b0 + b) * CT_TILE + i]);
      header[b] = ct_hbfp8_group_exp(block, CT_TILE);
      for (size_t i = 0; i < CT_TILE; ++i)
        header[CT_TILE * (b + 1) + i] = (uint8_t)ct_hbfp8_quant(block[i], header[b]);
    }
    header += CT_TILE * (in_group + 1);
  }
  return CT_OK;
}
