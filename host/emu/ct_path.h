/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the units compute on tiles, as a table of functions. There is one table for each path:
 *
 *   plain   ct_path.c         from the single values of ct_num.h: the specification
 *   avx2    ct_path_avx2.c    AVX2 and FMA
 *   avx512  ct_path_avx512.c  AVX-512 (F, BW, DQ, VL) with VNNI
 *
 * All give the same bits. The vector paths compute in the processor's FP32 with subnormals flushed
 * (enter() sets that, leave() puts back what was there) and hand what FP32 cannot do exactly, such
 * as block exponents at the ends of the range, to the plain path. A path is only offered where it
 * was seen to give the plain path's bits on corner cases: emulated processors may not flush.
 */
#ifndef CT_PATH_H
#define CT_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The vector paths are compiled in. -DCT_PATH_PLAIN_ONLY leaves them out, as other processors do.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(CT_PATH_PLAIN_ONLY)
#define CT_PATH_X86 1
#endif

/* 16x16 FP32 values, by their bits: an accumulator tile or a tile register. */
struct ct_emu_tile {
  _Alignas(64) uint32_t x[16][16];
};

/* 16 words of the scratchpad that a product reads: rows, or, transposed, columns of the operand. */
struct ct_words {
  const int8_t (*q)[16];
  const uint8_t *e; /* transposed: all the same */
  bool transposed;
};

/* One side of a product, prepared once and used several times. What data, scale and bias hold is
 * the path's own affair. */
struct ct_operand {
  _Alignas(64) int16_t data[16][16];
  _Alignas(64) int32_t scale[16], bias[16];
  unsigned low, high; /* block exponents, apart from those of empty blocks */
  struct ct_words words;
};

/* An operation of VA, its command taken apart. */
struct ct_va {
  const struct ct_emu_tile *a; /* NULL: +0 */
  const struct ct_emu_tile *q; /* the tile of operand b or c */
  unsigned b, c;               /* BSrc, CSrc */
  uint32_t sb, sc, pad;
  unsigned fn, func;
  bool negc, relu;
  unsigned rows, cols, written; /* rows past `rows` are padding, up to `written` */
  unsigned row_xor, lane_xor;
};

struct ct_path {
  const char *name;
  bool (*available)(void); /* the processor has the instructions */

  /* Brackets around calls of all others; nothing else is computed in between. */
  unsigned (*enter)(void);
  void (*leave)(unsigned state);

  /* The words must stay until the last multiply(). */
  void (*prepare_a)(struct ct_operand *a, const struct ct_words *words);
  void (*prepare_b)(struct ct_operand *b, const struct ct_words *words);
  /* acc += A * B^T for the first rows, for one k step after the other (a and b are arrays of so
   * many operands, transposed all or none); fresh: acc starts at +0. NaNs in acc are canonical. */
  void (*multiply)(const struct ct_operand *a, const struct ct_operand *b, unsigned steps,
                   unsigned rows, bool fresh, struct ct_emu_tile *acc);

  /* Sixteen rows of HBFP8 get the largest of their exponents. */
  void (*align)(int8_t (*q)[16], uint8_t *e);
  /* Rows of HBFP8 to FP32, or to what sign mode makes of them. */
  void (*dequantise)(const int8_t (*q)[16], const uint8_t *e, unsigned rows, bool sign,
                     uint32_t (*x)[16]);
  /* FP32 to rows of HBFP8 with an exponent each, or with one for all, mantissas of 8 - narrow bits;
   * returns groups with Inf or NaN. */
  unsigned (*quantise)(const uint32_t (*x)[16], unsigned rows, bool square, unsigned narrow,
                       int8_t (*q)[16], uint8_t *e);

  /* to may be a or q, unless the operation reads other elements of q than it writes. */
  void (*va)(const struct ct_va *op, struct ct_emu_tile *to);
};

/* Both avx512 tables have that name. */
extern const struct ct_path ct_path_plain, ct_path_avx2, ct_path_avx512, ct_path_avx512_vbmi;

/* The path of that name, NULL if there is none or this machine cannot; NULL or "" as name: the
 * fastest. */
const struct ct_path *ct_path_find(const char *name);

/* ---- For the vector paths ---- */

/* FP32 products and sums of blocks whose exponents add up to these need no care: no term is
 * subnormal, none overflows. */
enum { CT_PATH_LOW = 140, CT_PATH_HIGH = 376, CT_PATH_EMPTY = 133, CT_PATH_NEVER = 1000 };

/* multiply() by the plain path, of operands any path has prepared. */
void ct_path_multiply_plain(const struct ct_operand *a, const struct ct_operand *b, unsigned steps,
                            unsigned rows, bool fresh, struct ct_emu_tile *acc);
/* The function of VA's Func field. */
uint32_t ct_path_func(unsigned func, uint32_t x);

#endif
