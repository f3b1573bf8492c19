/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where kernels are tried: matrices in device memory, filled and read by the contract of numbers
 * (host/emu/ct_num.h), programs proved race-free and run, what was not to be written unchanged.
 */
#ifndef KERNEL_BED_H
#define KERNEL_BED_H

#include "coltrain/coltrain.h"
#include "ct_kernel.h"
#include "harness/ct_tb.h"

/* r1 and r2 are addresses, r3 and r4 numbers. */
enum { KB_ARGS = 4, KB_NUMBER = 3, KB_UNITS = 1 << 16 };
enum { KB_F32 = 1, KB_ROWS = 2, KB_SQUARE = 4 };

struct kbed {
  ct_device *dev;
  uint64_t at;
  uint8_t *mem, *before;
  bool *out; /* units that may be written */
  uint32_t used;
  uint32_t number[2]; /* bits of r3 and r4 */
  ct_rng rng;
};

void kb_open(struct kbed *b, const char *uri, uint64_t stream);
void kb_close(struct kbed *b);
/* Nothing is in memory. */
void kb_clear(struct kbed *b);
struct ct_room kb_room(uint32_t spm_words);
/* The same with more scratch: right behind kb_clear(). */
struct ct_room kb_room_scratch(struct kbed *b, uint32_t spm_words, uint64_t units);

/* A new matrix. keeps: KB_F32 ..; out: it may be written. */
struct ct_mat kb_mat(struct kbed *b, uint32_t rows, uint32_t cols, unsigned keeps, bool out);
/* rows x cols bits of FP32. HBFP8 is quantised, and x becomes what was written (of the last way of
 * keeping). */
void kb_put(struct kbed *b, const struct ct_mat *m, uint32_t *x);
/* All ways of keeping it must hold these numbers, padding zeros. NaN is any NaN. */
void kb_check(const struct kbed *b, const struct ct_mat *m, const uint32_t *want, const char *what);
/* What is kept as FP32. */
void kb_get(const struct kbed *b, const struct ct_mat *m, uint32_t *x);

/* Race-free, whatever time steps take; then what is in memory afterwards. Frees codes. */
void kb_run(struct kbed *b, struct ct_codes *codes, uint32_t spm_words);

uint32_t kb_bits(float x);
float kb_float(uint32_t bits);

#endif
