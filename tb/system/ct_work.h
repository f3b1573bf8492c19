/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's own programs as jobs of the rig: a training step, a forward pass, a product, with
 * memory contents to work on. They load all they read into the scratchpad first, so a job depends
 * on nothing but device memory.
 *
 * And what a training step does with activations that are kept compressed (ct_kept.c), for context
 * 1 of a core with Compress: a product in front whose input and result are stored as groups, and
 * one behind it that loads and frees them; as one job, or as one each.
 *
 * In each context's memory: operands from CT_WORK_IN on (never written by the device), results and
 * a training's weights and state in the rig's output area.
 */
#ifndef CT_WORK_H
#define CT_WORK_H

#include "ct_pair.h"

enum { CT_WORK_IN = 0x120000 };

enum ct_work_kind {
  CT_WORK_TRAIN,
  CT_WORK_INFER,
  CT_WORK_PRODUCT,
  CT_WORK_KEPT, /* context 1 alone, from here on: both, */
  CT_WORK_FRONT,
  CT_WORK_BACK,
  CT_WORK_KINDS
};
static inline bool ct_work_of(unsigned ctx, enum ct_work_kind kind) {
  return ctx == 1 || kind < CT_WORK_KEPT;
}

/* What is kept: words of the window that ST encodes, behind them those that the decoder writes; in
 * the output area of context 1 index units, and pages. */
enum {
  CT_WORK_ENCODED = 256,
  CT_WORK_DECODED = 2 * CT_WORK_ENCODED,
  CT_WORK_GROUPS = 2, /* of an index unit */
  CT_WORK_UNITS = 2,
  CT_WORK_INDEX = CT_RIG_OUT + 0x18000,
  CT_WORK_ARENA = CT_WORK_INDEX + 0x4000,
  CT_WORK_PAGES = 4
};
/* All pages are free. */
void ct_work_arena(struct ct_rig *rig);

/* Writes the memory that jobs of this kind need (over what is there), on both devices. */
void ct_work_fill(struct ct_pair *pair, unsigned ctx, enum ct_work_kind kind, ct_rng *rng);

/* The job. Returns the words of the smallest window that it can do with, in steps of 16. */
uint32_t ct_work_make(struct ct_gen_prog *prog, unsigned ctx, enum ct_work_kind kind);

#endif
