/* SPDX-License-Identifier: Apache-2.0 */
/* A model inside the library: where it lies on its device, and its programs. */
#ifndef CT_MODEL_H
#define CT_MODEL_H

#include <string.h>

#include "coltrain/network.h"
#include "ct_compile.h"
#include "ct_fixed.h"
#include "ct_prog.h"
#include "ct_queue.h"
#include "ct_weights.h"

static inline uint32_t ct_bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline uint32_t ct_units_of(uint64_t addr) {
  return (uint32_t)(addr / CT_UNIT);
}

_Static_assert(CT_MLP_LAYERS == CT_MAX_LAYERS, "one limit, in two headers");
_Static_assert(CT_INFER_ROW + CT_INFER_ROWS_MAX - 1 <= CT_MAX_ARGS, "rows are arguments");

/* What follows a model or a network, above this layer: a server. */
struct ct_follower {
  void (*end)(void *self); /* what it follows is freed; NULL: there is none */
  void *self;
};
static inline void ct_follower_end(const struct ct_follower *f) {
  if (f->end) f->end(f->self);
}

/* Programs of jobs in a row. */
struct ct_programs {
  ct_program **of;
  size_t count;
};

/* The programs of a step of so many rows, by what it does with its gradients. */
enum { CT_STEP_KINDS = CT_GRADIENTS_ADD + 1 };
struct ct_plan {
  ct_model *model; /* NULL: freed, and with it the programs */
  struct ct_plan *next;
  ct_device *dev;
  uint32_t batch;
  ct_network *step[CT_STEP_KINDS]; /* guests; NULL: nobody has asked */
  uint64_t work;                   /* address of the workspace; 0: none is needed */
  size_t refs; /* the model's, and one for each batch handle; those of steps hold their batch */
};

struct ct_rows {
  struct ct_handle handle; /* first */
  ct_device *dev;
  uint32_t width;
  size_t count, pitch; /* bytes from row to row */
  uint64_t at;
  uint32_t *use; /* of each row: requests that read it, and CT_ROW_WRITTEN */
  size_t refs;
};
enum { CT_ROW_WRITTEN = 1, CT_ROW_USE = 2 };

/* What an answer's place holds: a ct_error once there was a request, or one of these. */
enum { CT_ANSWER_NONE = 1, CT_ANSWER_AWAITED = 2 };

struct ct_answers {
  struct ct_handle handle; /* first */
  ct_device *dev;
  uint32_t classes;
  size_t count, size; /* bytes of an answer */
  uint64_t at;
  int8_t *state;
  size_t refs;
};

struct ct_model {
  struct ct_handle handle; /* first */
  ct_device *dev;
  struct ct_mlp net;
  ct_weights *live;
  struct ct_numbers *numbers; /* as long as there is no state on the device; else NULL */
  struct ct_training training;
  struct ct_plan *plan;                   /* of new steps; NULL: not prepared */
  struct ct_plan *plans;                  /* all that are there */
  ct_network *answers[CT_INFER_ROWS_MAX]; /* guests, by rows - 1; made when needed */
  uint64_t work[CT_QUEUES];               /* addresses of their workspace; 0: not needed so far */
  struct ct_programs copies;              /* by which versions are made */
  ct_network *apply;                      /* a guest; there when gradients of `live` are */
  uint32_t numbered;                      /* highest number that a version has had */
  struct ct_follower follower;
};

/* ---- Weights ---- */

/* Bytes of an image. */
static inline uint64_t ct_image_bytes(const struct ct_mlp *net) {
  return (uint64_t)ct_mlp_image_units(net) * CT_UNIT;
}

/* With memory for an image of a model of these widths, and one reference: the handle's. */
int ct_weights_make_for(ct_device *dev, const struct ct_mlp *net, ct_weights **weights);

/* The weights that a call for the model means (NULL: live), if they can be used so. */
int ct_weights_find(ct_model *model, struct ct_use use, ct_weights **weights);

/* ---- Graphs ---- */

/* A model's graph for so many rows, compiled: *network is a guest. */
struct ct_model_part {
  ct_device *dev;
  const struct ct_mlp *net;
  uint32_t rows;
  bool trains;
  enum ct_model_job job;
};
int ct_model_compile(const struct ct_model_part *part, ct_network **network);

/* Arguments of a step's jobs. */
struct ct_regions;
void ct_model_arguments(const ct_network *step, const struct ct_regions *at,
                        const struct ct_rates *rates, struct ct_job *job);

/* ---- Training ---- */

/* Loads them, and frees codes whatever the outcome; frees them. */
int ct_programs_load(ct_device *dev, struct ct_codes *codes, struct ct_programs *programs);
void ct_programs_free(struct ct_programs *programs);

/* The same with the sentence in the model's device, and not for NULL: the model's. */
int ct_model_rates(const ct_model *model, const struct ct_rates *rates);

/* Ends the steps that are under way, as far as that is possible, and gives back their programs. */
void ct_plans_end(ct_model *model);

/* ---- Gradients ---- */

/* Makes room for gradients and the programs of an update from them, unless they are there. */
int ct_gradients_prepare(ct_model *model);

/* CT_OK if a work that needs the gradients may be submitted now. *chained: it must not run if the
 * one before it in the queue fails. */
int ct_gradients_follow(ct_model *model, bool *chained);

/* A work that writes or reads them has been submitted; it has ended, with that
 * error or CT_OK. how: it set them, and all are new, added to them, or only read them (NONE). */
void ct_gradients_take(ct_model *model);
void ct_gradients_kept(ct_weights *live, enum ct_gradients how, int error);

/* ---- Requests ---- */

/* Rows of so many inputs, places for so many classes. */
int ct_rows_make(ct_device *dev, uint32_t width, size_t count, ct_rows **rows);
int ct_answers_make(ct_device *dev, uint32_t classes, size_t count, ct_answers **answers);

/* Checks what a request of so many rows names, for a network on a device. */
int ct_request_check(ct_device *dev, const struct ct_mlp *net, const struct ct_request *request,
                     uint32_t count);

/* Where its rows and answers begin; one follows another as networks have them. */
uint64_t ct_request_row(const struct ct_request *request);
uint64_t ct_request_answer(const struct ct_request *request);

/* It is under way, and has ended. */
void ct_request_take(const struct ct_request *request, uint32_t count);
void ct_request_drop(const struct ct_request *request, uint32_t count, int error);

/* ---- Numbers ---- */

/* All of a model's numbers on the host: for each layer the weights (outputs x inputs), the biases
 * and their momentum, one after the other. */
struct ct_numbers {
  float *w[CT_MLP_LAYERS], *b[CT_MLP_LAYERS], *vw[CT_MLP_LAYERS], *vb[CT_MLP_LAYERS];
  float *all;
  size_t count;
};

/* CT_OK, or an error with a sentence: NULL, freed before, or of a closed device. */
int ct_check_model(const ct_model *model);

size_t ct_numbers_count(const struct ct_mlp *net);
struct ct_numbers *ct_numbers_alloc(const struct ct_mlp *net);
void ct_numbers_free(struct ct_numbers *numbers);

/* A model with these numbers, which become its own whatever the outcome. */
int ct_model_alloc(ct_device *dev, const struct ct_mlp *net, struct ct_numbers *numbers,
                   ct_model **model);

/* Copies the part of a row-major matrix that tile (r, c) covers; the rest of the tile is 0. Back.
 */
void ct_tile_from(const float *x, uint32_t rows, uint32_t cols, uint32_t r, uint32_t c,
                  float *tile);
void ct_tile_to(const float *tile, uint32_t rows, uint32_t cols, uint32_t r, uint32_t c, float *x);

/* All tiles of a row-major matrix, row by row of them, one every `pitch` bytes. Back. */
void ct_tiles_from(const float *x, uint32_t rows, uint32_t cols, size_t pitch, uint8_t *tiles);
void ct_tiles_to(const uint8_t *tiles, uint32_t rows, uint32_t cols, size_t pitch, float *x);

/* He-uniform numbers for a layer of so many inputs; the generator's state goes on. */
void ct_draw_he(uint64_t *state, uint32_t inputs, uint64_t count, float *x);

/* Weights from a seed, the rest 0. */
void ct_model_draw(const struct ct_mlp *net, uint64_t seed, struct ct_numbers *numbers);

/* The model's numbers, to be given to ct_numbers_free(). what: of the sentence if steps are in
 * flight, such as "saved". */
int ct_model_numbers(ct_model *model, const char *what, struct ct_numbers **numbers);

/* Makes room for what training needs, if it is not there, and moves the numbers to the device. */
int ct_model_arm(ct_model *model);

#endif
