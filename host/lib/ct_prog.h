/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of the library: from shapes to commands. Builders know no device, only the size of the
 * scratchpad window a program will have. All programs are race-free by semaphores, wait only for
 * commands that come earlier in the program, and use no more than 4 nested loops.
 *
 * Addresses in arguments count units of 16 bytes. On failure builders return a ct_error and leave a
 * sentence in why (if not NULL).
 */
#ifndef CT_PROG_H
#define CT_PROG_H

#include <stddef.h>
#include <stdint.h>

#include "ct_build.h"

/* Units of 16 bytes: an HBFP8 tile record, an FP32 tile, an FP32 row of a tile. */
enum { CT_TILE = 16, CT_RECORD_UNITS = 17, CT_F32_TILE_UNITS = 64, CT_F32_ROW_UNITS = 4 };

static inline uint32_t ct_tiles(uint32_t n) {
  return n / CT_TILE + (n % CT_TILE != 0);
}

static inline uint32_t ct_min_u32(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

/* Elements of tile t that exist, of n in all: 1..16. */
static inline uint32_t ct_in_tile(uint32_t n, uint32_t t) {
  return ct_min_u32(n - t * CT_TILE, CT_TILE);
}

/* A finished program. free(cmd). */
struct ct_code {
  struct ct_cmd *cmd;
  size_t count;
};

struct ct_why {
  char *text; /* may be NULL */
  size_t size;
};

/* Writes a sentence and returns error. */
int ct_why(const struct ct_why *why, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Rolls and encodes what was built, frees b. name: of the program, for the sentence. */
int ct_code_finish(struct ct_build *b, struct ct_code *code, const char *name,
                   const struct ct_why *why);

/* ---- Product: C (m x n) = A (m x k) * B (n x k)^T ------------------------------------------- */

enum ct_gemm_result {
  CT_GEMM_F32 /* row-major, pitch units from row to row; elements past n in the last unit are +0 */
};

struct ct_gemm {
  uint32_t m, n, k;
  uint32_t pitch;     /* of C, at least ceil(n / 4) */
  uint32_t spm_words; /* of the window */
  enum ct_gemm_result result;
};

/* Arguments: r1 = A, r2 = B (HBFP8 matrices), r3 = C. */
enum { CT_GEMM_A = 1, CT_GEMM_B, CT_GEMM_C, CT_GEMM_ARGS = 3 };
int ct_prog_gemm(const struct ct_gemm *shape, struct ct_code *code, const struct ct_why *why);

#endif
