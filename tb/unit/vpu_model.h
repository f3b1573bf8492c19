/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VPU as a program sees it, without time: one context, commands one after the other. What a
 * command leaves in the tile registers and the SPM, and the words it writes, in order.
 */
#ifndef VPU_MODEL_H
#define VPU_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "host/lib/isa/ct_cmd.h"

enum { kTiles = 16, kRows = 16, kCols = 16, kWindow = 1024 /* SPM words of a context */ };

typedef struct {
  uint8_t byte[16];
  uint8_t exp;
} vpu_word;

typedef struct {
  uint32_t at; /* relative */
  vpu_word word;
} vpu_write;

typedef struct {
  uint32_t tile[kTiles][kRows][kCols]; /* FP32 bits */
  uint32_t acc[kTiles][kRows][kCols];
  vpu_word spm[kWindow];
  uint64_t nan_groups;
} vpu_state;

/* Executes a VL, VA or VS command that stays inside the window. Words written to the SPM go to
 * writes[] too, 64 at most; their number is returned. */
unsigned vpu_execute(vpu_state *s, const struct ct_cmd *cmd, vpu_write *writes);

/* The highest relative SPM address of a VL or VS command. */
uint32_t vpu_top(const struct ct_cmd *cmd);

uint32_t vpu_word_f32(const vpu_word *w, unsigned i);
void vpu_word_set_f32(vpu_word *w, unsigned i, uint32_t x);

#endif
