/* SPDX-License-Identifier: Apache-2.0 */
#include "vpu_model.h"

#include <string.h>

#include "host/emu/ct_num.h"

uint32_t vpu_word_f32(const vpu_word *w, unsigned i) {
  uint32_t x = 0;
  for (unsigned b = 0; b < 4; ++b)
    x |= (uint32_t)w->byte[4 * i + b] << 8 * b;
  return x;
}

void vpu_word_set_f32(vpu_word *w, unsigned i, uint32_t x) {
  for (unsigned b = 0; b < 4; ++b)
    w->byte[4 * i + b] = (uint8_t)(x >> 8 * b);
}

uint32_t vpu_top(const struct ct_cmd *cmd) {
  const uint32_t last = CT_GET(cmd, VL_ROWS) - 1;
  return CT_GET(cmd, VL_SPM) + last * CT_GET(cmd, VL_ROW_STRIDE) + (CT_GET(cmd, VL_MODE) ? 0 : 3);
}

static void load(vpu_state *s, const struct ct_cmd *cmd) {
  const unsigned mode = CT_GET(cmd, VL_MODE);
  for (unsigned r = 0; r < CT_GET(cmd, VL_ROWS); ++r) {
    const vpu_word *w = &s->spm[CT_GET(cmd, VL_SPM) + r * CT_GET(cmd, VL_ROW_STRIDE)];
    uint32_t *row = s->tile[CT_GET(cmd, VL_TD)][r];
    for (unsigned j = 0; j < kCols; ++j) {
      const int8_t q = (int8_t)w->byte[j];
      if (mode == 0)
        row[j] = vpu_word_f32(&w[j / 4], j % 4);
      else if (mode == 1)
        row[j] = ct_hbfp8_dequant(q, w->exp);
      else
        row[j] = q > 0 && w->exp != 0 && w->exp != 255 ? CT_FP_ONE : 0;
    }
  }
}

/* Operand b or c; source as in BSrc. */
static uint32_t operand(const vpu_state *s, const struct ct_cmd *cmd, unsigned source,
                        uint32_t scalar, unsigned r, unsigned j) {
  if (source == 3) return scalar;
  if (source == 2) r = 0;
  return s->tile[CT_GET(cmd, VA_TQ)][r ^ CT_GET(cmd, VA_ROW_XOR)][j ^ CT_GET(cmd, VA_LANE_XOR)];
}

/* What skipping an operation leaves: no subnormals, one NaN. */
static uint32_t clean(uint32_t x) {
  if ((x & 0x7FFFFFFFu) > CT_FP_INF) return CT_FP_NAN;
  return (x & CT_FP_INF) == 0 ? x & CT_FP_SIGN : x;
}

static uint32_t element(const vpu_state *s, const struct ct_cmd *cmd, unsigned r, unsigned j) {
  const unsigned a_source = CT_GET(cmd, VA_A_SRC), b_source = CT_GET(cmd, VA_B_SRC),
                 c_source = CT_GET(cmd, VA_C_SRC), ta = CT_GET(cmd, VA_TA);
  uint32_t y = 0;
  if (a_source == 0) y = s->tile[ta][r][j];
  if (a_source == 1) y = s->acc[ta][r][j];
  y = b_source ? ct_fp_mul(y, operand(s, cmd, b_source, CT_GET(cmd, VA_SB), r, j)) : clean(y);
  if (c_source) {
    uint32_t c = operand(s, cmd, c_source, CT_GET(cmd, VA_SC), r, j);
    if (CT_GET(cmd, VA_NEG_C)) c ^= CT_FP_SIGN;
    switch (CT_GET(cmd, VA_FN)) {
      case 0:
        y = ct_fp_add(y, c);
        break;
      case 1:
        y = ct_fp_max(y, c);
        break;
      case 2:
        y = ct_fp_min(y, c);
        break;
      case 3:
        y = ct_fp_gt(c, 0) ? y : 0;
        break;
      default:
        y = ct_fp_eq(y, c) ? CT_FP_ONE : 0;
    }
  }
  if (CT_GET(cmd, VA_RELU)) y = ct_fp_relu(y);
  switch (CT_GET(cmd, VA_FUNC)) {
    case 8:
      return ct_fn_exp(y);
    case 9:
      return ct_fn_recip(y);
    case 10:
      return ct_fn_log(y);
    case 11:
      return ct_fn_rsqrt(y);
    default:
      return y;
  }
}

static void arithmetic(vpu_state *s, const struct ct_cmd *cmd) {
  const unsigned rows = CT_GET(cmd, VA_ROWS), cols = CT_GET(cmd, VA_COLS);
  const unsigned written = CT_GET(cmd, VA_FULL) ? kRows : rows;
  uint32_t y[kRows][kCols];
  for (unsigned r = 0; r < written; ++r)
    for (unsigned j = 0; j < kCols; ++j)
      y[r][j] = r < rows && j < cols       ? element(s, cmd, r, j)
                : CT_GET(cmd, VA_PAD_NINF) ? CT_FP_SIGN | CT_FP_INF
                                           : 0;
  memcpy(s->tile[CT_GET(cmd, VA_TD)], y, written * sizeof y[0]);
}

static unsigned put(vpu_state *s, vpu_write *writes, unsigned n, uint32_t at,
                    const vpu_word *word) {
  s->spm[at] = *word;
  writes[n].at = at;
  writes[n].word = *word;
  return n + 1;
}

static unsigned store(vpu_state *s, const struct ct_cmd *cmd, vpu_write *writes) {
  const unsigned mode = CT_GET(cmd, VS_MODE), rows = CT_GET(cmd, VS_ROWS);
  uint32_t(*const tile)[kCols] = s->tile[CT_GET(cmd, VS_TS)];
  unsigned n = 0;
  uint8_t exp = 0;
  if (mode == 2) {
    exp = ct_hbfp8_group_exp(tile[0], (size_t)kCols * rows);
    s->nan_groups += exp == CT_EXP_NAN;
  }
  for (unsigned r = 0; r < rows; ++r) {
    const uint32_t at = CT_GET(cmd, VS_SPM) + r * CT_GET(cmd, VS_ROW_STRIDE);
    vpu_word word = {.exp = 0};
    if (mode == 0) {
      for (unsigned w = 0; w < 4; ++w) {
        for (unsigned i = 0; i < 4; ++i)
          vpu_word_set_f32(&word, i, tile[r][4 * w + i]);
        n = put(s, writes, n, at + w, &word);
      }
      continue;
    }
    if (mode == 1) {
      exp = ct_hbfp8_group_exp(tile[r], kCols);
      s->nan_groups += exp == CT_EXP_NAN;
    }
    word.exp = exp;
    for (unsigned j = 0; j < kCols; ++j)
      word.byte[j] = (uint8_t)ct_hbfp8_quant_narrow(tile[r][j], exp, CT_GET(cmd, VS_NARROW));
    n = put(s, writes, n, at, &word);
  }
  return n;
}

unsigned vpu_execute(vpu_state *s, const struct ct_cmd *cmd, vpu_write *writes) {
  switch (CT_GET(cmd, ALL_OP)) {
    case CT_OP_VL:
      load(s, cmd);
      return 0;
    case CT_OP_VA:
      arithmetic(s, cmd);
      return 0;
    default:
      return store(s, cmd, writes);
  }
}
