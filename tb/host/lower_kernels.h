/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random kernels for the lowering layer: phases of loops, rings and tensors over one small
 * scratchpad. A kernel is drawn once and can be recorded as often as wanted.
 */
#ifndef LOWER_KERNELS_H
#define LOWER_KERNELS_H

#include "ct_lower.h"
#include "harness/ct_tb.h"

/* Arguments, and units of device memory behind each. */
enum { K_WEIGHTS = 1, K_STATE, K_OUT, K_CALM, K_SCALAR, K_ARGS = 5 };
enum {
  K_W_ROWS = 48,
  K_W_COLS = 4,
  K_WEIGHTS_UNITS = K_W_ROWS * K_W_COLS * CT_RECORD_UNITS,
  K_STATE_TILES = 64,
  K_STATE_UNITS = K_STATE_TILES * CT_F32_TILE_UNITS,
  K_Z_ROWS = 6,
  K_Z_COLS = 4,
  K_OUT_UNITS = 2 * K_Z_ROWS * K_Z_COLS * CT_F32_TILE_UNITS,
  K_CALM_UNITS = 16,
  K_SPM_WORDS = 8192
};

enum kernel_kind { K_PRODUCT, K_UNITS, K_SUMS, K_IN_PLACE, K_SAVE, K_BACK, K_SINGLE, K_KINDS };

struct kernel_phase {
  enum kernel_kind kind;
  uint32_t passes, inner; /* of the loop, of one in it */
  uint32_t mt, bn, steps; /* row tiles, columns, k steps of a product */
  uint32_t slots, more_slots, regs, reg_at, acc_at, acc_slots;
  uint32_t from; /* row of the state, of the tensor ... */
  bool by_step, more, freed, square, split, wide, walk;
  uint32_t shape; /* further choices, bit by bit */
};

enum { K_PHASES = 6 };
struct kernel {
  struct ct_lower *l;
  unsigned phases;
  struct kernel_phase phase[K_PHASES];
  /* While it is recorded. */
  const struct kernel_phase *p;
  uint32_t w, s, o, c, x, y, z, cs, temp; /* tensors */
  uint32_t panel, in, out, load, res, acc;
  uint32_t row, spm;
  struct ct_ref held;
};

void kernel_draw(struct kernel *k, ct_rng *rng);
void kernel_record(struct kernel *k, struct ct_lower *l);
void kernel_print(const struct kernel *k);

#endif
