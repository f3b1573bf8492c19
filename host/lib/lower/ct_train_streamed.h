/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the streamed training step: see ct_train_streamed.c. Every phase of a layer is a program
 * of its own, so nothing but device memory connects them.
 * A step that keeps its gradients has them where an update would have the state.
 */
#ifndef CT_TRAIN_STREAMED_H
#define CT_TRAIN_STREAMED_H

#include "ct_lower.h"

/* Where tensors begin in the workspace, in units. */
struct ct_train_work {
  uint64_t x[CT_MLP_LAYERS];  /* of layer l > 0: mt x in square tiles */
  uint64_t dz[CT_MLP_LAYERS]; /* mt x out square tiles */
  uint64_t z, g;              /* logits and their gradient: mt x classes FP32 tiles */
  uint64_t db;                /* gradients of the biases, laid out like the biases */
  uint64_t scratch;           /* a unit that nobody reads */
  uint64_t units;
};

struct ct_streamed {
  const struct ct_train *shape;
  const struct ct_mlp *net;
  const struct ct_why *why;
  struct ct_codes *codes;
  struct ct_train_work at;
  uint32_t mt;    /* row tiles */
  uint32_t slots; /* of rings: 2, or 1 in a small window */

  /* The program being recorded. */
  struct ct_lower *l;
  uint32_t x0;   /* the batch's inputs */
  uint32_t temp; /* registers of VA */
};

/* Registers: carriers' own, then VA's temporaries, then rings up to 15. */
enum { CT_R_VA = 0, CT_R_VL, CT_R_VS, CT_R_TEMP, CT_R_COUNT = 16 };

int ct_streamed_begin(struct ct_streamed *s, uint32_t temps);
int ct_streamed_end(struct ct_streamed *s);
uint32_t ct_streamed_x(struct ct_streamed *s, uint32_t l);
uint32_t ct_streamed_z(struct ct_streamed *s); /* logits: the caller's, if he wants them */
uint32_t ct_streamed_dz(struct ct_streamed *s, uint32_t l);
struct ct_ref ct_streamed_temp(const struct ct_streamed *s, uint32_t i);

/* A run of units between a piece of a tensor and words. */
void ct_streamed_ld(struct ct_streamed *s, struct ct_ref dram, struct ct_ref spm, uint32_t units);
void ct_streamed_st(struct ct_streamed *s, struct ct_ref dram, struct ct_ref spm, uint32_t units);
void ct_streamed_ld_tile(struct ct_streamed *s, struct ct_ref dram, struct ct_ref spm);
void ct_streamed_st_tile(struct ct_streamed *s, struct ct_ref dram, struct ct_ref spm);

/* ct_reduce() of temporary a, with b in between. */
void ct_streamed_reduce(struct ct_streamed *s, uint32_t a, uint32_t b, bool rows, unsigned fn,
                        struct ct_ref last);

/* The phases. */
int ct_streamed_forward(struct ct_streamed *s, uint32_t l);
int ct_streamed_softmax(struct ct_streamed *s);
int ct_streamed_last_sums(struct ct_streamed *s);
int ct_streamed_backward(struct ct_streamed *s, uint32_t l);
int ct_streamed_biases(struct ct_streamed *s);
int ct_streamed_update(struct ct_streamed *s, uint32_t l);

#endif
