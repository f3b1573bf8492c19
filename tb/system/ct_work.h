/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's own programs as jobs of the rig: a training step, a forward pass, a product, with
 * memory contents to work on. They load all they read into the scratchpad first, so a job depends
 * on nothing but device memory.
 *
 * In each context's memory: operands from CT_WORK_IN on (never written by the device), results and
 * a training's weights and state in the rig's output area.
 */
#ifndef CT_WORK_H
#define CT_WORK_H

#include "ct_pair.h"

enum { CT_WORK_IN = 0x120000 };

enum ct_work_kind { CT_WORK_TRAIN, CT_WORK_INFER, CT_WORK_PRODUCT, CT_WORK_KINDS };

/* Writes the memory that jobs of this kind need (over what is there), on both devices. */
void ct_work_fill(struct ct_pair *pair, unsigned ctx, enum ct_work_kind kind, ct_rng *rng);

/* The job. Returns the words of the smallest window that it can do with, in steps of 16. */
uint32_t ct_work_make(struct ct_gen_prog *prog, unsigned ctx, enum ct_work_kind kind);

#endif
