/* SPDX-License-Identifier: Apache-2.0 */
/* The plain path, and the choice between paths. */
#include "ct_path.h"

#include <string.h>

#include "ct_num.h"

/* ---- Products ------------------------------------------------------------------------------ */

static void prepare(struct ct_operand *o, const struct ct_words *words) {
  o->words = *words;
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 16; ++j)
      *(words->transposed ? &o->data[j][i] : &o->data[i][j]) = (int16_t)(int)words->q[i][j];
}

static int32_t dot(const int16_t *a, const int16_t *b) {
  int32_t s = 0;
  for (unsigned i = 0; i < 16; ++i)
    s += a[i] * b[i];
  return s;
}

static void multiply_step(const struct ct_operand *a, const struct ct_operand *b, unsigned rows,
                          bool fresh, struct ct_emu_tile *acc) {
  for (unsigned r = 0; r < rows; ++r) {
    for (unsigned c = 0; c < 16; ++c) {
      const uint32_t p = ct_fp_term(dot(a->data[r], b->data[c]), a->words.e[r], b->words.e[c]);
      acc->x[r][c] = ct_fp_add(fresh ? 0 : acc->x[r][c], p);
    }
  }
}

static void multiply(const struct ct_operand *a, const struct ct_operand *b, unsigned steps,
                     unsigned rows, bool fresh, struct ct_emu_tile *acc) {
  for (unsigned k = 0; k < steps; ++k)
    multiply_step(&a[k], &b[k], rows, fresh && k == 0, acc);
}

void ct_path_multiply_plain(const struct ct_operand *a, const struct ct_operand *b, unsigned steps,
                            unsigned rows, bool fresh, struct ct_emu_tile *acc) {
  for (unsigned k = 0; k < steps; ++k) {
    struct ct_operand pa, pb;
    prepare(&pa, &a[k].words);
    prepare(&pb, &b[k].words);
    multiply_step(&pa, &pb, rows, fresh && k == 0, acc);
  }
}

/* ---- HBFP8 --------------------------------------------------------------------------------- */

static void dequantise(const int8_t (*q)[16], const uint8_t *e, unsigned rows, bool sign,
                       uint32_t (*x)[16]) {
  for (unsigned r = 0; r < rows; ++r) {
    const bool empty = e[r] == CT_EXP_ZERO || e[r] == CT_EXP_NAN; /* every q counts as 0 */
    for (unsigned i = 0; i < 16; ++i) {
      if (sign)
        x[r][i] = !empty && q[r][i] > 0 ? CT_FP_ONE : 0;
      else
        x[r][i] = ct_hbfp8_dequant(q[r][i], e[r]);
    }
  }
}

static void align(int8_t (*q)[16], uint8_t *e) {
  uint8_t top = 0;
  for (unsigned r = 0; r < 16; ++r)
    if (e[r] > top) top = e[r];
  for (unsigned r = 0; r < 16; ++r) {
    for (unsigned j = 0; j < 16 && e[r] != top; ++j)
      q[r][j] = ct_hbfp8_align(q[r][j], e[r], top);
    e[r] = top;
  }
}

static unsigned quantise(const uint32_t (*x)[16], unsigned rows, bool square, unsigned narrow,
                         int8_t (*q)[16], uint8_t *e) {
  const uint8_t shared = square ? ct_hbfp8_group_exp(x[0], (size_t)16 * rows) : 0;
  unsigned nans = shared == CT_EXP_NAN;
  for (unsigned r = 0; r < rows; ++r) {
    e[r] = square ? shared : ct_hbfp8_group_exp(x[r], 16);
    if (!square) nans += e[r] == CT_EXP_NAN;
    for (unsigned i = 0; i < 16; ++i)
      q[r][i] = ct_hbfp8_quant_narrow(x[r][i], e[r], narrow);
  }
  return nans;
}

/* ---- VA ------------------------------------------------------------------------------------ */

/* What a bypassed multiplication or addition makes of its operand. */
static uint32_t canonical(uint32_t x) {
  if ((x & ~CT_FP_SIGN) > CT_FP_INF) return CT_FP_NAN;
  return x & CT_FP_INF ? x : x & CT_FP_SIGN;
}

/* Operand b or c (src: BSrc, CSrc) of element (r, j). */
static uint32_t operand(const struct ct_va *op, unsigned src, uint32_t scalar, unsigned r,
                        unsigned j) {
  if (src == 3) return scalar;
  return op->q->x[(src == 2 ? 0 : r) ^ op->row_xor][j ^ op->lane_xor];
}

static uint32_t combine(unsigned fn, uint32_t t, uint32_t c) {
  switch (fn) {
    case 0:
      return ct_fp_add(t, c);
    case 1:
      return ct_fp_max(t, c);
    case 2:
      return ct_fp_min(t, c);
    case 3:
      return ct_fp_gt(c, 0) ? t : 0;
    default:
      return ct_fp_eq(t, c) ? CT_FP_ONE : 0;
  }
}

uint32_t ct_path_func(unsigned func, uint32_t x) {
  switch (func) {
    case 8:
      return ct_fn_exp(x);
    case 9:
      return ct_fn_recip(x);
    case 10:
      return ct_fn_log(x);
    case 11:
      return ct_fn_rsqrt(x);
    default:
      return x;
  }
}

static uint32_t element(const struct ct_va *op, unsigned r, unsigned j) {
  uint32_t y = op->a ? op->a->x[r][j] : 0;
  y = op->b ? ct_fp_mul(y, operand(op, op->b, op->sb, r, j)) : canonical(y);
  if (op->c) {
    const uint32_t c = operand(op, op->c, op->sc, r, j);
    y = combine(op->fn, y, op->negc ? c ^ CT_FP_SIGN : c);
  }
  if (op->relu) y = ct_fp_relu(y);
  return ct_path_func(op->func, y);
}

static void va(const struct ct_va *op, struct ct_emu_tile *to) {
  struct ct_emu_tile y;
  for (unsigned r = 0; r < op->written; ++r)
    for (unsigned j = 0; j < 16; ++j)
      y.x[r][j] = r < op->rows && j < op->cols ? element(op, r, j) : op->pad;
  memcpy(to->x, y.x, op->written * sizeof y.x[0]);
}

/* ---- The table ----------------------------------------------------------------------------- */

static bool available(void) {
  return true;
}

static unsigned enter(void) {
  return 0;
}

static void leave(unsigned state) {
  (void)state;
}

const struct ct_path ct_path_plain = {
    .name = "plain",
    .available = available,
    .enter = enter,
    .leave = leave,
    .prepare_a = prepare,
    .prepare_b = prepare,
    .multiply = multiply,
    .align = align,
    .dequantise = dequantise,
    .quantise = quantise,
    .va = va,
};

/* ---- The choice ---------------------------------------------------------------------------- */

/* Products, and sums, whose result depends on how the processor treats what is below 2^-126. */
static bool same_bits(const struct ct_path *path) {
  static const uint32_t a[8] = {0x00800000, 0x007FFFFF, 0x00800001, 0x3F7FFFFE,
                                0x80800000, 0x807FFFFF, 0x7F800000, 0x00FFFFFF};
  static const uint32_t b[8] = {0x3F000000, 0x3F800000, 0x3F7FFFFE, 0x00800001,
                                0x3F7FFFFF, 0x4B000000, 0xFF800000, 0x80800000};
  struct ct_emu_tile x, y, want, got;
  bool same = true;
  for (unsigned i = 0; i < 256; ++i) {
    x.x[i / 16][i % 16] = a[i % 8];
    y.x[i / 16][i % 16] = b[i / 8 % 8];
  }
  for (unsigned sum = 0; sum < 2; ++sum) {
    const struct ct_va op = {
        .a = &x, .q = &y, .b = !sum, .c = sum, .rows = 16, .cols = 16, .written = 16};
    ct_path_plain.va(&op, &want);
    const unsigned state = path->enter();
    path->va(&op, &got);
    path->leave(state);
    same = same && memcmp(want.x, got.x, sizeof want.x) == 0;
  }
  return same;
}

static const struct ct_path *usable(const struct ct_path *path, const char *name) {
  const bool wanted = !name || !*name || strcmp(name, path->name) == 0;
  return wanted && path->available() && same_bits(path) ? path : NULL;
}

const struct ct_path *ct_path_find(const char *name) {
  const struct ct_path *path = NULL;
#ifdef CT_PATH_X86
  path = usable(&ct_path_avx512_vbmi, name);
  if (!path) path = usable(&ct_path_avx512, name);
  if (!path) path = usable(&ct_path_avx2, name);
#endif
  return path ? path : usable(&ct_path_plain, name);
}
