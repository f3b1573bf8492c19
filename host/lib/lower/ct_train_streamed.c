/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step whose activations lie in device memory (docs/numerics.md, Training).
 *
 * It does what ct_prog_train.c's step does, with the same order of operations for each element, but
 * the scratchpad holds only what is under way: operands come through rings, results leave at once.
 * So neither the batch nor a layer is too large for it. Phases, in program order:
 *
 *   forward(l)    X(l) * W(l)^T + b, ReLU, quantised to X(l+1); of the last layer FP32 logits Z
 *   softmax       row tile by row tile, Z read three times: maximum, sum, gradient; loss
 *   last sums     bias gradients of the last layer, from the FP32 gradient G
 *   backward(l)   dZ(l) * W(l), masked by the signs of X(l), quantised to dZ(l-1); bias gradients
 *   biases        all of them: momentum, new value
 *   update(l)     dZ(l)^T * X(l); momentum, master weights, compute copy
 *
 * Each phase of a layer is a program, or two, of its own. All dX are computed before the first
 * weight changes.
 */
#include "ct_train_streamed.h"

#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"

enum { LEAST_WINDOW = 200, ROOMY_WINDOW = 2048, MOST_BATCH = 4096 };

/* ---- The workspace ------------------------------------------------------------------------- */

static uint64_t take(struct ct_train_work *w, uint64_t units) {
  const uint64_t at = w->units;
  w->units += units;
  return at;
}

static void lay_out(const struct ct_train *shape, struct ct_train_work *w) {
  const struct ct_mlp *net = shape->net;
  const uint64_t mt = ct_tiles(shape->batch), ct = ct_mlp_out(net, net->layers - 1);
  memset(w, 0, sizeof *w);
  for (uint32_t l = 0; l < net->layers; ++l) {
    if (l) w->x[l] = take(w, mt * ct_mlp_in(net, l) * CT_RECORD_UNITS);
    w->dz[l] = take(w, mt * ct_mlp_out(net, l) * CT_RECORD_UNITS);
  }
  w->z = take(w, mt * ct * CT_F32_TILE_UNITS);
  w->g = take(w, mt * ct * CT_F32_TILE_UNITS);
  w->db = take(w, (uint64_t)ct_mlp_bias_tile(net, net->layers) * CT_F32_ROW_UNITS);
  w->scratch = take(w, 1);
}

uint64_t ct_train_streamed_units(const struct ct_train *shape) {
  struct ct_train_work w;
  lay_out(shape, &w);
  return w.units;
}

/* ---- Programs ------------------------------------------------------------------------------ */

/* The first tile of the inputs stays in the scratchpad for carriers to read. */
int ct_streamed_begin(struct ct_streamed *s, uint32_t temps) {
  s->l = ct_lower_start(s->shape->logits ? CT_TRAIN_LOGITS : CT_TRAIN_WORK, false);
  if (!s->l) return ct_why(s->why, CT_ERR_MEMORY, "no memory for the programs of a step");
  s->x0 = ct_dram_tensor(s->l, "inputs", CT_TRAIN_X, 0,
                         ct_grid(s->mt, ct_mlp_in(s->net, 0), CT_RECORD_UNITS));
  const uint32_t calm = ct_spm_tensor(s->l, "calm words", ct_grid(1, 1, CT_TILE));
  const uint32_t out =
      ct_dram_tensor(s->l, "scratch", CT_TRAIN_WORK, s->at.scratch, ct_grid(1, 1, 1));
  ct_lower_carriers(s->l, &(struct ct_carriers){.va_reg = CT_R_VA,
                                                .vl_reg = CT_R_VL,
                                                .vs_reg = CT_R_VS,
                                                .acc = 15,
                                                .spm = ct_spm_take(s->l, CT_CARRIER_WORDS),
                                                .calm = calm,
                                                .load = s->x0,
                                                .store_spm = calm,
                                                .store_dram = out});
  if (temps) s->temp = ct_reg_tensor(s->l, "temporaries", CT_R_TEMP, temps);
  ct_streamed_ld_tile(s, ct_tile_of(s->l, s->x0, 0, 0), ct_tile_of(s->l, calm, 0, 0));
  return CT_OK;
}

/* Appends the jobs that were recorded. */
int ct_streamed_end(struct ct_streamed *s) {
  struct ct_codes more = {NULL, 0};
  if (ct_spm_taken(s->l) > s->shape->spm_words)
    ct_lower_fail(s->l, CT_ERR_NO_SPACE,
                  "a step of %u rows needs %llu words of scratchpad, the window has %u",
                  s->shape->batch, (unsigned long long)ct_spm_taken(s->l), s->shape->spm_words);
  const int err = ct_lower_finish(s->l, "a training step", &more, s->why);
  s->l = NULL;
  return err ? err : ct_codes_append(s->codes, &more, s->why);
}

/* ---- Spaces -------------------------------------------------------------------------------- */

uint32_t ct_streamed_x(struct ct_streamed *s, uint32_t l) {
  if (l == 0) return s->x0;
  return ct_dram_tensor(s->l, "activations", CT_TRAIN_WORK, s->at.x[l],
                        ct_grid(s->mt, ct_mlp_in(s->net, l), CT_RECORD_UNITS));
}

uint32_t ct_streamed_z(struct ct_streamed *s) {
  const bool wanted = s->shape->logits;
  return ct_dram_tensor(s->l, "logits", wanted ? CT_TRAIN_LOGITS : CT_TRAIN_WORK,
                        wanted ? 0 : s->at.z,
                        ct_grid(s->mt, ct_mlp_out(s->net, s->net->layers - 1), CT_F32_TILE_UNITS));
}

uint32_t ct_streamed_dz(struct ct_streamed *s, uint32_t l) {
  return ct_dram_tensor(s->l, "gradients", CT_TRAIN_WORK, s->at.dz[l],
                        ct_grid(s->mt, ct_mlp_out(s->net, l), CT_RECORD_UNITS));
}

struct ct_ref ct_streamed_temp(const struct ct_streamed *s, uint32_t i) {
  return ct_tile_of(s->l, s->temp, i, 0);
}

/* ---- Commands ------------------------------------------------------------------------------ */

void ct_streamed_ld(struct ct_streamed *s, struct ct_ref dram, struct ct_ref spm, uint32_t units) {
  ct_ld(s->l, &(struct ct_dma){.dram = dram, .spm = spm, .nb = units});
}

void ct_streamed_st(struct ct_streamed *s, struct ct_ref dram, struct ct_ref spm, uint32_t units) {
  ct_st(s->l, &(struct ct_dma){.dram = dram, .spm = spm, .nb = units});
}

void ct_streamed_ld_tile(struct ct_streamed *s, struct ct_ref dram, struct ct_ref spm) {
  ct_ld(s->l, &(struct ct_dma){.dram = dram, .spm = spm, .hdr = true, .nb = CT_TILE});
}

void ct_streamed_st_tile(struct ct_streamed *s, struct ct_ref dram, struct ct_ref spm) {
  ct_st(s->l, &(struct ct_dma){.dram = dram, .spm = spm, .hdr = true, .nb = CT_TILE});
}

void ct_streamed_reduce(struct ct_streamed *s, uint32_t a, uint32_t b, bool rows, unsigned fn,
                        struct ct_ref last) {
  ct_reduce(s->l, &(struct ct_reduce){.a = ct_streamed_temp(s, a),
                                      .b = ct_streamed_temp(s, b),
                                      .to = last,
                                      .rows = rows,
                                      .fn = fn});
}

/* ---- The step ------------------------------------------------------------------------------ */

static int check(const struct ct_train *shape, const struct ct_why *why) {
  int err = ct_mlp_check(shape->net, why);
  if (!err && shape->batch < 1) err = ct_why(why, CT_ERR_ARG, "a batch has at least one row");
  if (!err && shape->batch > MOST_BATCH)
    err = ct_why(why, CT_ERR_NO_SPACE,
                 "a batch of %u rows is too large: %d are the most, unless the scratchpad holds "
                 "all that a step makes",
                 shape->batch, MOST_BATCH);
  if (!err && shape->spm_words < LEAST_WINDOW)
    err = ct_why(why, CT_ERR_NO_SPACE,
                 "a training step needs %d words of scratchpad, the window has %u", LEAST_WINDOW,
                 shape->spm_words);
  if (!err && ct_train_streamed_units(shape) > UINT32_MAX)
    err = ct_why(why, CT_ERR_NO_SPACE,
                 "the activations of a batch of %u rows do not fit device memory", shape->batch);
  return err;
}

static int record_phases(struct ct_streamed *s) {
  const uint32_t layers = s->net->layers;
  int err = CT_OK;
  for (uint32_t l = 0; l < layers && !err; ++l)
    err = ct_streamed_forward(s, l);
  if (!err) err = ct_streamed_softmax(s);
  if (!err) err = ct_streamed_last_sums(s);
  for (uint32_t l = layers; l-- > 1 && !err;)
    err = ct_streamed_backward(s, l);
  if (!err) err = ct_streamed_biases(s);
  for (uint32_t l = 0; l < layers && !err; ++l)
    err = ct_streamed_update(s, l);
  return err;
}

int ct_prog_train_streamed(const struct ct_train *shape, struct ct_codes *codes,
                           const struct ct_why *why) {
  *codes = (struct ct_codes){NULL, 0};
  int err = check(shape, why);
  if (err) return err;
  struct ct_streamed s = {.shape = shape,
                          .net = shape->net,
                          .why = why,
                          .codes = codes,
                          .mt = ct_tiles(shape->batch),
                          .slots = shape->spm_words < ROOMY_WINDOW ? 1 : 2};
  lay_out(shape, &s.at);
  err = record_phases(&s);
  if (err) ct_codes_free(codes);
  return err;
}

/* ---- One step or the other ----------------------------------------------------------------- */

int ct_prog_step(const struct ct_train *shape, struct ct_codes *codes, uint64_t *work,
                 const struct ct_why *why) {
  *work = 0;
  int err = ct_prog_train(shape, codes, why);
  if (err != CT_ERR_NO_SPACE) return err;
  err = ct_prog_train_streamed(shape, codes, why);
  if (!err) *work = ct_train_streamed_units(shape);
  return err;
}
