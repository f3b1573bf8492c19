/* SPDX-License-Identifier: Apache-2.0 */
/* Between ct_tile_plan.c and ct_tile_emit.c. */
#ifndef CT_TILE_IMPL_H
#define CT_TILE_IMPL_H

#include "ct_sequences.h"
#include "ct_tile.h"

struct ct_tile_kind {
  unsigned operands;
  bool swaps;                 /* a and b may change places */
  bool in_place;              /* it takes no register in between, if one operand is a row */
  unsigned func;              /* VA's function, if it is one */
  unsigned scratch, commands; /* registers and commands of the sequence */
  void (*sequence)(struct ct_lower *l, const struct ct_sequence *s);
};
const struct ct_tile_kind *ct_tile_kind(enum ct_tile_fn fn);

/* Goes through the emission without a program: registers and commands of the plan. */
void ct_tile_count(struct ct_tile_plan *plan);

#endif
