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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coltrain/coltrain.h"
#include "ct_build.h"
#include "ct_layout.h"

struct ct_why {
  char *text; /* may be NULL */
  size_t size;
};

/* Writes a sentence and returns error. */
int ct_why(const struct ct_why *why, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Jobs that are to run in a row. */
struct ct_codes {
  struct ct_code *job;
  size_t count;
};
void ct_codes_free(struct ct_codes *codes);
/* Adds more to all and frees it, whatever the outcome. */
int ct_codes_append(struct ct_codes *all, struct ct_codes *more, const struct ct_why *why);

/* Rolls and encodes what was built, frees b. name: of the program, for the sentence. */
int ct_code_finish(struct ct_build *b, struct ct_code *code, const char *name,
                   const struct ct_why *why);

/* ---- Product: C (m x n) = A (m x k) * B (n x k)^T ------------------------------------------- */

enum ct_gemm_result {
  CT_GEMM_F32, /* row-major, pitch units from row to row; elements past n in the last unit are +0 */
  CT_GEMM_HBFP8 /* an HBFP8 matrix as ct_pack() makes it with CT_ROW: an operand A of a product */
};

struct ct_gemm {
  uint32_t m, n, k;
  uint32_t pitch;     /* of C in FP32, at least ceil(n / 4) */
  uint32_t spm_words; /* of the window */
  enum ct_gemm_result result;
  bool part;        /* of a product that can be cut further: one try is enough */
  uint32_t c_tiles; /* of C in HBFP8, tiles from row to row; 0: as many as it has columns of them */
  uint32_t flat;    /* commands that may be written down before loops are made; 0: CT_GEMM_FLAT */
  uint64_t *work;   /* where to add what building cost, in commands and comparisons; may be NULL */
};
enum { CT_GEMM_FLAT = 6000 };

/* Arguments: r1 = A, r2 = B (HBFP8 matrices), r3 = C. */
enum { CT_GEMM_A = 1, CT_GEMM_B, CT_GEMM_C, CT_GEMM_ARGS = 3 };
int ct_prog_gemm(const struct ct_gemm *shape, struct ct_code *code, const struct ct_why *why);

/* A product as one job, or as several, each of some rows and columns of C, where a program would be
 * too long or its addresses too far apart. Nothing that device memory holds is refused, in a window
 * of CT_GEMM_WINDOW words or more (HBFP8 results: of CT_GEMM_WINDOW_HBFP8). The jobs may run in any
 * order. */
enum { CT_GEMM_PROGRAMS = 9, CT_GEMM_WINDOW = 64, CT_GEMM_WINDOW_HBFP8 = 96 };
struct ct_gemm_jobs {
  uint32_t rows, cols;                   /* of C for a job; fewer at its lower and right edges */
  struct ct_code code[CT_GEMM_PROGRAMS]; /* cmd NULL: not used */
};
struct ct_gemm_job {
  unsigned program;
  uint64_t a, b, c; /* where its parts begin, units from where A, B and C do */
};
/* On failure nothing is left to be freed. */
int ct_prog_gemm_jobs(const struct ct_gemm *shape, struct ct_gemm_jobs *jobs,
                      const struct ct_why *why);
void ct_gemm_jobs_free(struct ct_gemm_jobs *jobs);
uint64_t ct_gemm_jobs_count(const struct ct_gemm *shape, const struct ct_gemm_jobs *jobs);
struct ct_gemm_job ct_gemm_job_at(const struct ct_gemm *shape, const struct ct_gemm_jobs *jobs,
                                  uint64_t i);

/* ---- Multilayer perceptrons ---------------------------------------------------------------- */

enum { CT_MLP_LAYERS = 16, CT_MLP_WIDEST = 65536 };

/* Layer l maps width[l] inputs to width[l + 1] outputs. */
struct ct_mlp {
  uint32_t layers;
  uint32_t width[CT_MLP_LAYERS + 1];
};

/*
 * Two regions of device memory, in units of 16 bytes from their start:
 *
 * Image: what a version consists of. The weights of all layers as square HBFP8 tiles (outputs x
 * inputs), then the FP32 biases, each layer's padded to whole tiles.
 *
 * State: what only training needs. For every weight tile, in the same order, the FP32 momentum and
 * then the FP32 master weights, 16 rows of 64 bytes each (so that one run loads a tile, whatever
 * the layer's width); then the momentum of the biases, laid out like the biases.
 *
 * A third one where gradients are asked for: for every weight tile, in the same order, an FP32
 * tile; then the gradients of the biases, laid out like the biases; then a unit that updates write
 * and nobody reads.
 */
static inline uint32_t ct_mlp_in(const struct ct_mlp *n, uint32_t l) {
  return ct_tiles(n->width[l]);
}
static inline uint32_t ct_mlp_out(const struct ct_mlp *n, uint32_t l) {
  return ct_tiles(n->width[l + 1]);
}
uint32_t ct_mlp_tile(const struct ct_mlp *n, uint32_t l);      /* weight tiles before layer l */
uint32_t ct_mlp_bias_tile(const struct ct_mlp *n, uint32_t l); /* bias tiles before layer l */
uint32_t ct_mlp_bias_at(const struct ct_mlp *n);               /* of the biases in the image */
uint32_t ct_mlp_image_units(const struct ct_mlp *n);
uint32_t ct_mlp_bias_momentum_at(const struct ct_mlp *n); /* in the state */
uint32_t ct_mlp_state_units(const struct ct_mlp *n);
uint32_t ct_mlp_bias_gradient_at(const struct ct_mlp *n); /* in the gradients */
uint32_t ct_mlp_scratch_at(const struct ct_mlp *n);       /* in the gradients, behind all of them */
uint32_t ct_mlp_gradient_units(const struct ct_mlp *n);
int ct_mlp_check(const struct ct_mlp *n, const struct ct_why *why);

/* Forward pass of 1..16 rows: the answers to requests. Row vectors are gathered from r3.., logits
 * go to r2, one row every ceil(classes / 4) units.
 *
 * CT_INFER_BATCH rows: the program of a batch, whatever its size. Each request's input is a row
 * vector, its output a row of logits; only r1 is an argument.
 *
 * No shape is refused for its number of commands, nor for its widths. Activations of two layers
 * that follow each other lie in the window; where they do not fit there (or a deep network's
 * program would be too long in what is left) they go through a workspace in device memory, which
 * need not hold anything before. A window of 16 words for each row, and of 84, is enough; a refusal
 * names the words. Weights, biases and answers go through, except in the resident and pinned forms,
 * which need room for all of them.
 *
 * Pinned: weights and biases lie in ct_infer_pinned() words from pin_at on, which no other program
 * uses; the rest in the spm_words below. */
enum { CT_INFER_BATCH = 0 };
struct ct_infer {
  const struct ct_mlp *net;
  uint32_t rows, spm_words;
  uint32_t batch_most; /* rows of a batch at most; 0: CT_INFER_ROWS_MAX */
  bool resident;   /* weights and biases are where a job of the same shape without this left them */
  bool pinned;     /* they have a place of their own */
  uint32_t pin_at; /* at least spm_words */
  uint32_t *used;  /* where to note how many of the spm_words it uses; may be NULL */
  uint32_t planes; /* answers go into planes of 16 columns, a row every 4 units, a plane every so
                      many; 0: row by row. Not of a batch */
  /* Where to note how many units of workspace it takes; NULL: there is none, and what needs one is
   * refused. */
  uint64_t *work;
};
enum { CT_INFER_IMAGE = 1, CT_INFER_OUT, CT_INFER_ROW, CT_INFER_ROWS_MAX = 16 };
enum { CT_INFER_LEAST = 256 }; /* words of a window that is enough for every network */

/* The argument that is the workspace's address: the one behind all others. */
static inline unsigned ct_infer_work(uint32_t rows) {
  return rows == CT_INFER_BATCH ? CT_INFER_OUT : CT_INFER_ROW + rows;
}
uint32_t ct_infer_pinned(const struct ct_mlp *net);
int ct_prog_infer(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why);

/* One step of stochastic gradient descent (docs/numerics.md, Training): one job, or several to be
 * submitted in a row where one program would be too long. Activations stay in the scratchpad.
 *
 * With gradients the step does not update: they are left in device memory, or added to what is
 * there, and the argument CT_TRAIN_STATE is where. Momentum, rates and state are not looked at. */
struct ct_train {
  const struct ct_mlp *net;
  uint32_t batch, spm_words;
  enum ct_gradients gradients;
  bool logits;    /* they are wanted: FP32 tiles, row by row, at CT_TRAIN_LOGITS */
  uint64_t *work; /* where to add what building cost, in commands and comparisons; may be NULL */
};
enum {
  CT_TRAIN_X = 1, /* inputs, square HBFP8 tiles */
  CT_TRAIN_Y,     /* targets, HBFP8 tiles */
  CT_TRAIN_IMAGE,
  CT_TRAIN_STATE,
  CT_TRAIN_LOSS,   /* 16 bytes: the sum of the batch's losses, four times */
  CT_TRAIN_INV,    /* FP32 bits: 1 / batch */
  CT_TRAIN_MU,     /* momentum */
  CT_TRAIN_NEG_LR, /* - learning rate */
  CT_TRAIN_WD,     /* weight decay */
  CT_TRAIN_ARGS = 9
};
int ct_prog_train(const struct ct_train *shape, struct ct_codes *codes, const struct ct_why *why);

/* The same step with its activations and gradients in device memory, so that neither the batch (up
 * to 4,096 rows) nor a layer is too large: jobs to be submitted in a row. One more argument is the
 * address of ct_train_streamed_units() units of workspace, which need not hold anything before and
 * hold nothing of use behind. Bytes are those of ct_prog_train(). */
enum {
  CT_TRAIN_WORK = CT_TRAIN_ARGS + 1,
  CT_TRAIN_STREAMED_ARGS = CT_TRAIN_WORK,
  CT_TRAIN_LOGITS /* of both steps, where logits are wanted */
};
uint64_t ct_train_streamed_units(const struct ct_train *shape);
int ct_prog_train_streamed(const struct ct_train *shape, struct ct_codes *codes,
                           const struct ct_why *why);

/* The one if it fits, else the other. *work: the units of workspace it needs; may be 0. */
int ct_prog_step(const struct ct_train *shape, struct ct_codes *codes, uint64_t *work,
                 const struct ct_why *why);

/* The update of a step from gradients in device memory, each multiplied by a scale first: jobs to
 * be submitted in a row, for any batch. */
enum {
  CT_APPLY_GRADIENTS = 1,
  CT_APPLY_SCALE, /* FP32 bits */
  CT_APPLY_IMAGE = CT_TRAIN_IMAGE,
  CT_APPLY_STATE = CT_TRAIN_STATE, /* and from CT_TRAIN_MU on, as for a step */
  CT_APPLY_ARGS = CT_TRAIN_ARGS
};
int ct_prog_apply(const struct ct_mlp *net, uint32_t spm_words, struct ct_codes *codes,
                  const struct ct_why *why);

/* Copies stretches, each so many units of 16 bytes, from and to so many behind r1 and r2: jobs to
 * be submitted in a row. */
enum { CT_COPY_FROM = 1, CT_COPY_TO, CT_COPY_ARGS = 2 };
struct ct_stretch {
  uint32_t from, to, units;
};
int ct_prog_copies(const struct ct_stretch *stretch, size_t count, uint32_t spm_words,
                   struct ct_codes *codes, const struct ct_why *why);

#endif
