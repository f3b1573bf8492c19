/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One training step of a multilayer perceptron as kernels of the lowering layer. Phases, in program
 * order (docs/numerics.md, Training):
 *
 *   forward(l)    X(l) * W(l)^T + b, ReLU, quantised to X(l+1); the last layer's logits stay FP32
 *   softmax       rows of 16: gradient of Z (FP32 over Z, and quantised as dZ), loss; bias sums of
 *                 the last layer, from the FP32 gradient
 *   backward(l)   dZ(l) * W(l), masked, quantised to dZ(l-1); bias sums on the way (l = last..1)
 *   biases        all of them: momentum, new value
 *   update(l)     dZ(l)^T * X(l), up to four weight tiles at a time: momentum, master weights,
 *                 compute copy
 *
 * All dX are computed before the first weight changes. Weights stream through two panels, the state
 * through two slots in and two out. What the last tile of a row or column has less than sixteen of
 * makes it different, so it stands outside the loops.
 */
#ifndef CT_TRAIN_H
#define CT_TRAIN_H

#include "ct_lower.h"

enum {
  CT_TRAIN_BLOCK = 4,   /* ACC tiles of a product */
  CT_TRAIN_UNIT = 4,    /* weight tiles updated together, at most */
  CT_TRAIN_CHUNK = 127, /* k steps of a panel, at most */
  CT_OUT_UNITS = CT_STATE_UNITS + CT_TILE
};

/* What becomes of gradients: they update, are stored, are added to those in device memory; or those
 * in device memory update. */
enum ct_train_end {
  CT_TRAIN_UPDATES = CT_GRADIENTS_NONE,
  CT_TRAIN_STORES = CT_GRADIENTS_SET,
  CT_TRAIN_ADDS = CT_GRADIENTS_ADD,
  CT_TRAIN_APPLIES
};

struct train {
  struct ct_lower *l;
  const struct ct_mlp *net;
  uint32_t batch, mt, classes, ct; /* rows, row tiles; outputs, their tiles */
  enum ct_train_end end;
  bool logits;          /* they are stored */
  uint32_t bm, blocks;  /* row tiles of a block, blocks of a column */
  uint32_t chunk, unit; /* k steps of a panel; weight tiles updated together */
  /* Tensors in SPM, in device memory, in registers. */
  uint32_t x[CT_MLP_LAYERS], dz[CT_MLP_LAYERS], z, y, bias, vb, db, loss;
  uint32_t in_x, in_y, weights[CT_MLP_LAYERS], state[CT_MLP_LAYERS], image_bias, state_bias,
      out_loss, out_z;                              /* out_z: where logits are stored */
  uint32_t gradients[CT_MLP_LAYERS], gradient_bias; /* 0: it updates; else state is 0, but for what
                                                     * applies */
  uint32_t temp, sum_loss;
  /* Rings. */
  uint32_t panel, acc[CT_TRAIN_BLOCK + 1], out, load, block_out, block_load, sum, logit, in_slot,
      out_slot, acc_unit;
  uint32_t acc_rest[CT_TRAIN_UNIT], biases[CT_TRAIN_BLOCK + 1], keep_load, keep_out;
  /* Where the loops are. */
  uint32_t layer, columns, steps, bn, base, c,
      m; /* a phase of products, its column; a row of softmax */
  bool backward, with_inputs;
  struct ct_ref held, bias_ref[CT_TRAIN_BLOCK], acc_ref;
  uint32_t mb, line, first, tiles; /* of update: the line, the first unit's tile, tiles of a unit */
  bool down;
  /* Of an update from gradients: slots of rings, column tiles of biases that go together, rings. */
  uint32_t slots, bias_tiles, bias_in, bias_out, gradient_slot;
};

/* ct_train_plan.c */
int ct_train_start(struct train *t, uint32_t spm_words, const struct ct_why *why);
/* The model in device memory: what it has of gradients is behind that argument; biases cut so. */
void ct_train_declare_model(struct train *t, unsigned gradients, struct ct_grid biases);
uint32_t ct_train_columns(const struct train *t, uint32_t tiles);

/* ct_train_products.c */
void ct_train_forward(struct train *t, uint32_t layer);
void ct_train_backward(struct train *t, uint32_t layer);

/* ct_train_softmax.c */
void ct_train_softmax(struct train *t);
struct ct_ref ct_train_temp(const struct train *t, unsigned i);
void ct_train_add_sum(struct train *t, unsigned sum, struct ct_ref tile, bool first);
void ct_train_finish_sum(struct train *t, unsigned sum, uint32_t layer, uint32_t n);

/* ct_train_update.c. A unit: up to four neighbouring weight tiles of a layer, from (n, k) on. */
struct ct_unit {
  uint32_t n, k;
  struct ct_ref in, out;
};
struct ct_optimised {
  struct ct_ref v, w, t, v_new, w_new;
  uint32_t rows, cols;
};
void ct_train_optimise(struct train *t, const struct ct_optimised *o);
void ct_train_biases(struct train *t);
void ct_train_update(struct train *t, uint32_t layer);
struct ct_ref ct_unit_tiles(const struct train *t, uint32_t tensor, const struct ct_unit *u,
                            uint32_t i, uint32_t tiles);
void ct_unit_load(struct train *t, const struct ct_unit *u, uint32_t tensor, uint32_t units,
                  struct ct_ref to);
struct ct_ref ct_unit_acc(struct train *t);
void ct_unit_multiply(struct train *t, const struct ct_unit *u, struct ct_ref acc);
void ct_unit_update(struct train *t, const struct ct_unit *u);

/* ct_train_gradients.c: the same where gradients go through device memory. */
void ct_gradient_bias_rows(struct train *t, uint32_t c, uint32_t rows);
void ct_gradient_unit(struct train *t, const struct ct_unit *u);

/* Valid rows of row tile m. */
static inline uint32_t ct_train_rows(const struct train *t, uint32_t m) {
  return ct_in_tile(t->batch, m);
}

#endif
