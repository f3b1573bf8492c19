/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile program (struct ct_tilewise) as commands of VA: for ct_kernel_tilewise(), and for the
 * epilogues of products.
 *
 *   1. ct_tile_plan() looks at the program: what has to be loaded, in which order, and how many
 *      tile registers it takes. It refuses programs that are wrong.
 *   2. ct_tile_take() divides the tile registers and declares them to the lowering layer.
 *   3. For each plane: load what is in row_load[] (VL of one row each) and fill in its values, then
 *      ct_tile_rows().
 *   4. For each tile: load what is in load[], in that order, and fill in its values;
 *      ct_tile_emit(); store (VS) the registers in stored[], in order: they are values store[].
 *
 * What is the same for all rows (inputs spread over rows or over all, and what is computed from
 * such alone) is worked out once for a plane. What one command of VA can do is one command: a
 * scaled sum and its ReLU, an exponential of a difference.
 */
#ifndef CT_TILE_H
#define CT_TILE_H

#include "ct_kernel.h"
#include "ct_lower.h"

enum { CT_TILE_VALUES = CT_TILE_INS + CT_TILE_OPS };

struct ct_tile_plan {
  const struct ct_tilewise *k;
  bool product;                      /* value 0 is an ACC tile; in[0] is not looked at */
  bool row[CT_TILE_VALUES];          /* the same for all rows: row 0 of a register counts */
  bool keep[CT_TILE_VALUES];         /* such a one that is used for every tile */
  bool stored[CT_TILE_VALUES];       /* an output names it */
  unsigned uses[CT_TILE_VALUES];     /* operands of operations that count */
  unsigned last[CT_TILE_VALUES];     /* the last operation that uses it, + 1; 0: none does */
  bool counts[CT_TILE_VALUES];       /* something stored depends on it */
  unsigned load[CT_TILE_INS], loads; /* inputs, for each tile, in this order */
  unsigned row_load[CT_TILE_INS], row_loads; /* inputs, for each plane */
  unsigned store[CT_TILE_OUTS], stores;      /* values, in this order */
  unsigned temps;                            /* registers of VA's own */
  uint32_t busy;                             /* those that ct_tile_rows() fills */
  unsigned commands;                         /* of VA, for a tile */
  bool chain; /* each value is made of the one before, in place, so that `more` may be used */
};

/* args: arguments of the job are in r1..r<args>. */
int ct_tile_plan(struct ct_tile_plan *plan, const struct ct_tilewise *k, bool product,
                 unsigned args, const struct ct_why *why);

/* A tensor of registers that VA alone uses (one at least: good for struct ct_carriers.va_reg, its
 * number is first_temp), rings that VL fills, a ring that VS empties. */
struct ct_tile_regs {
  uint32_t temp, load, row_load, out;
  unsigned first_temp, end; /* end: behind the last one */
};

/* Registers from `first` on. sets: 2 where there are enough, so that the next tile is loaded, and
 * the last one stored, meanwhile; or 1, which makes programs shorter. more: as the runs will have
 * it. An error in l if the program takes too many. */
void ct_tile_take(struct ct_lower *l, const struct ct_tile_plan *plan, unsigned first,
                  uint32_t more, unsigned sets, struct ct_tile_regs *regs);

struct ct_tile_run {
  const struct ct_tilewise *k;
  const struct ct_tile_plan *plan;
  const struct ct_tile_regs *regs;
  /* Inputs are filled in by the caller: tile registers, or (value 0 of a product) an ACC tile. */
  struct ct_ref value[CT_TILE_VALUES];
  struct ct_ref stored[CT_TILE_OUTS]; /* filled in by ct_tile_emit() */
  uint32_t rows, cols, rows_reg;      /* as in struct ct_va */
  uint32_t
      more; /* further tiles, neighbours of those in value[] and stored[]; 0 unless plan->chain */
};
void ct_tile_rows(struct ct_lower *l, struct ct_tile_run *run);
void ct_tile_emit(struct ct_lower *l, struct ct_tile_run *run);

#endif
