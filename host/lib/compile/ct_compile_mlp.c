/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph that is a perceptron as a whole: one stage, the programs of ct_prog.h. What lies where is
 * as these want it, so bytes and cycles are those of a model of the same widths.
 *
 *   answers   of 1..16 rows. r1: the image; r2: the workspace; then the rows, the logits.
 *   a step    r1: the image, the state behind it; r2: the workspace, and a loss that nobody asked
 *             for; then inputs, targets, loss and logits, as far as somebody did. The state of
 *             models is in r1 no more: see struct ct_compile_options.
 *
 * Answers of more rows, up to CT_MLP_ROWS_MAX, are passes of one program. They have the same bits
 * by kernels, so still more, or a window that is too small, go there. Steps have not: whether a
 * step is one goes by the graph alone.
 */
#include <stdlib.h>

#include "ct_compile_impl.h"
#include "ct_graph_perceptron.h"

enum { MOST_BATCH = 4096 };
enum { BURST = 4, ALIGN = 16 }; /* units by which rows, the state begin */

struct whole {
  struct ct_compiler *c;
  const struct ct_perceptron *p;
  struct ct_mlp net;
  struct ct_passes passes; /* of answers */
  uint32_t state;          /* where it begins in r1 */
  uint64_t work;           /* units of workspace */
  char text[256];
  struct ct_why why;
};

static uint32_t round_up(uint32_t x, uint32_t to) {
  return ct_ceil_div(x, to) * to;
}

uint32_t ct_mlp_row(const struct ct_mlp *net) {
  const uint32_t blocks = ct_mlp_in(net, 0);
  return round_up(blocks + ct_tiles(blocks), BURST);
}

/* ---- Where things lie ---------------------------------------------------------------------- */

static void lay(struct whole *w, int tensor, const struct ct_lay *how) {
  w->c->out->lay[tensor] = *how;
}

/* An external region of so many units; its name. */
static unsigned external(struct whole *w, int tensor, uint64_t units) {
  struct ct_compiled *o = w->c->out;
  const unsigned reg = CT_ARG_FIRST + (unsigned)o->externals;
  o->external[o->externals++] = (struct ct_external){.tensor = tensor, .reg = reg, .units = units};
  return reg;
}

static void argument(struct whole *w, unsigned reg, unsigned region, uint64_t at) {
  w->c->out->argument[reg - 1] =
      (struct ct_argument){.kind = CT_ARGUMENT_REGION, .region = region, .at = (uint32_t)at};
}

/* The same of a row in the first pass: rows follow each other every `pitch` units. */
static void argument_row(struct whole *w, unsigned reg, unsigned region, uint32_t i,
                         uint32_t pitch) {
  argument(w, reg, region, (uint64_t)i * pitch);
  w->c->out->argument[reg - 1].row = pitch;
}

/* Weights: records in the image, and masters in the state, if there is one. */
static void lay_weights(const struct ct_mlp *net, uint32_t l, uint32_t state,
                        struct ct_layer_lays *lays) {
  const uint32_t tile = ct_mlp_tile(net, l), at = state + tile * CT_STATE_UNITS;
  struct ct_lay k = {.kind = CT_LAY_TILES,
                     .mat = {.rows = net->width[l + 1], .cols = net->width[l]},
                     .pitch = CT_STATE_UNITS};
  lays->w = k;
  lays->w.mat.keep[CT_KEEP_SQUARE] = (struct ct_seat){CT_ARG_LASTING, tile * CT_RECORD_UNITS};
  if (!state) return;
  lays->w.mat.keep[CT_KEEP_F32] = (struct ct_seat){CT_ARG_LASTING, at + CT_F32_TILE_UNITS};
  lays->vw = k;
  lays->vw.mat.keep[CT_KEEP_F32] = (struct ct_seat){CT_ARG_LASTING, at};
}

static void lay_biases(const struct ct_mlp *net, uint32_t l, uint32_t state,
                       struct ct_layer_lays *lays) {
  const uint32_t at = ct_mlp_bias_tile(net, l) * CT_F32_ROW_UNITS;
  struct ct_lay k = {.kind = CT_LAY_LINES,
                     .mat = {.rows = 1, .cols = net->width[l + 1]},
                     .pitch = ct_mlp_out(net, l) * CT_F32_ROW_UNITS};
  lays->b = k;
  lays->b.mat.keep[CT_KEEP_F32] = (struct ct_seat){CT_ARG_LASTING, ct_mlp_bias_at(net) + at};
  if (!state) return;
  lays->vb = k;
  lays->vb.mat.keep[CT_KEEP_F32] =
      (struct ct_seat){CT_ARG_LASTING, state + ct_mlp_bias_momentum_at(net) + at};
}

void ct_layer_lays(const struct ct_mlp *net, uint32_t l, uint32_t state,
                   struct ct_layer_lays *lays) {
  *lays = (struct ct_layer_lays){.vw = {.kind = CT_LAY_NONE}};
  lay_weights(net, l, state, lays);
  lay_biases(net, l, state, lays);
}

void ct_layer_gradients(const struct ct_mlp *net, uint32_t l, struct ct_lay *w, struct ct_lay *b) {
  struct ct_layer_lays lays;
  ct_layer_lays(net, l, 0, &lays);
  *w = lays.w;
  *b = lays.b;
  w->pitch = CT_F32_TILE_UNITS;
  w->mat.keep[CT_KEEP_SQUARE] = (struct ct_seat){0, 0};
  w->mat.keep[CT_KEEP_F32] =
      (struct ct_seat){CT_ARG_ARENA, ct_mlp_tile(net, l) * CT_F32_TILE_UNITS};
  b->mat.keep[CT_KEEP_F32] = (struct ct_seat){
      CT_ARG_ARENA, ct_mlp_bias_gradient_at(net) + ct_mlp_bias_tile(net, l) * CT_F32_ROW_UNITS};
}

static void lay_model(struct whole *w) {
  const uint32_t image = ct_mlp_image_units(&w->net);
  const bool state = w->p->trains && !w->c->options->model;
  w->state = state ? round_up(image, ALIGN) : 0;
  w->c->out->lasting = state ? w->state + ct_mlp_state_units(&w->net) : image;
  for (uint32_t l = 0; l < w->net.layers; ++l) {
    struct ct_layer_lays lays;
    ct_layer_lays(&w->net, l, w->state, &lays);
    lay(w, w->p->w[l], &lays.w);
    lay(w, w->p->b[l], &lays.b);
    if (!state) continue;
    lay(w, w->p->vw[l], &lays.vw);
    lay(w, w->p->vb[l], &lays.vb);
  }
}

/* A matrix from outside, or for it, in one way of keeping. */
static unsigned lay_outside(struct whole *w, int tensor, struct ct_lay k, enum ct_keep keep,
                            uint64_t units) {
  const unsigned reg = external(w, tensor, units);
  k.mat.rows = k.divide ? 1 : w->p->batch;
  k.mat.keep[keep] = (struct ct_seat){reg, 0};
  lay(w, tensor, &k);
  return reg;
}

static unsigned lay_tiles(struct whole *w, int tensor, uint32_t cols, enum ct_keep keep) {
  const struct ct_lay k = {.kind = CT_LAY_TILES, .mat = {.cols = cols}, .pitch = CT_F32_TILE_UNITS};
  return lay_outside(w, tensor, k, keep, ct_mat_units(w->p->batch, cols, keep));
}

/* ---- Answers ------------------------------------------------------------------------------- */

static void lay_answers(struct whole *w) {
  const uint32_t classes = w->net.width[w->net.layers], answer = ct_ceil_div(classes, 4);
  const uint32_t row = ct_mlp_row(&w->net);
  const struct ct_lay x = {.kind = CT_LAY_VECTORS, .mat = {.cols = w->net.width[0]}, .pitch = row};
  const struct ct_lay z = {.kind = CT_LAY_LINES, .mat = {.cols = classes}, .pitch = answer};
  const uint32_t all = w->p->batch, rows = w->passes.rows;
  const unsigned from = lay_outside(w, w->p->x, x, CT_KEEP_ROWS, (uint64_t)all * row);
  const unsigned to = lay_outside(w, w->p->logits, z, CT_KEEP_F32, (uint64_t)all * answer);
  argument(w, CT_INFER_IMAGE, CT_ARG_LASTING, 0);
  argument_row(w, CT_INFER_OUT, to, 0, answer);
  for (uint32_t i = 0; i < rows; ++i)
    argument_row(w, CT_INFER_ROW + i, from, i, row);
  if (w->work) argument(w, ct_infer_work(rows), CT_ARG_ARENA, 0);
  w->c->out->args = ct_infer_work(rows);
}

static struct ct_passes passes_of(uint32_t batch) {
  const uint32_t count = ct_ceil_div(batch, CT_INFER_ROWS_MAX);
  return (struct ct_passes){.count = count, .rows = ct_ceil_div(batch, count), .all = batch};
}

int ct_mlp_answers(const struct ct_compiler *c, struct ct_mlp_answers *a,
                   const struct ct_why *why) {
  a->passes = passes_of(a->batch);
  const struct ct_infer shape = {.net = a->net,
                                 .rows = a->passes.rows,
                                 .spm_words = c->options->spm_words,
                                 .planes = a->planes ? ct_tiles(a->batch) * CT_F32_TILE_UNITS : 0,
                                 .work = &a->work};
  struct ct_code code;
  const int err = ct_prog_infer(&shape, &code, why);
  if (err) return err;
  a->codes.job = malloc(sizeof *a->codes.job);
  if (!a->codes.job) {
    free(code.cmd);
    return CT_ERR_MEMORY;
  }
  *a->codes.job = code;
  a->codes.count = 1;
  return CT_OK;
}

static int make_answers(struct whole *w, struct ct_codes *codes) {
  struct ct_mlp_answers a = {.net = &w->net, .batch = w->p->batch};
  const int err = ct_mlp_answers(w->c, &a, &w->why);
  w->passes = a.passes;
  w->work = a.work;
  *codes = a.codes;
  return err;
}

/* ---- Steps --------------------------------------------------------------------------------- */

/* The device leaves the sum over the rows. */
static void lay_loss(struct whole *w) {
  const struct ct_perceptron *p = w->p;
  const struct ct_lay k = {
      .kind = CT_LAY_LINES, .mat = {.cols = 1}, .pitch = 1, .divide = p->batch};
  if (w->c->g->tensor[p->loss]->role == CT_ROLE_OUTPUT)
    argument(w, CT_TRAIN_LOSS, lay_outside(w, p->loss, k, CT_KEEP_F32, 1), 0);
  else
    argument(w, CT_TRAIN_LOSS, CT_ARG_ARENA, w->c->out->arena++);
}

/* What changes, and by which numbers. */
static void lay_update(struct whole *w) {
  const ct_graph *g = w->c->g;
  const struct ct_gnode *update = g->node[g->tensor[g->tensor[w->p->w[0]]->becomes]->node];
  argument(w, CT_TRAIN_IMAGE, CT_ARG_LASTING, 0);
  argument(w, CT_TRAIN_STATE, w->state ? CT_ARG_LASTING : CT_ARG_STATE, w->state);
  ct_scalar_in(w->c, CT_SCALAR_MINUS_RATE, update, CT_TRAIN_NEG_LR);
  ct_scalar_in(w->c, CT_SCALAR_MOMENTUM, update, CT_TRAIN_MU);
  ct_scalar_in(w->c, CT_SCALAR_DECAY, update, CT_TRAIN_WD);
  w->c->out->args = CT_TRAIN_LOGITS;
}

static void lay_step(struct whole *w) {
  const struct ct_perceptron *p = w->p;
  const uint32_t classes = p->width[p->layers];
  argument(w, CT_TRAIN_X, lay_tiles(w, p->x, p->width[0], CT_KEEP_SQUARE), 0);
  argument(w, CT_TRAIN_Y, lay_tiles(w, p->y, classes, CT_KEEP_SQUARE), 0);
  argument(w, CT_TRAIN_WORK, CT_ARG_ARENA, 0);
  lay_loss(w);
  if (!p->quiet) argument(w, CT_TRAIN_LOGITS, lay_tiles(w, p->logits, classes, CT_KEEP_F32), 0);
  w->c->out->argument[CT_TRAIN_INV - 1] =
      (struct ct_argument){.kind = CT_ARGUMENT_INVERSE, .at = p->batch};
  lay_update(w);
}

/* From gradients. */
static void lay_apply(struct whole *w) {
  argument(w, CT_APPLY_GRADIENTS, CT_ARG_ARENA, 0);
  lay_update(w);
}

static bool applies(const struct whole *w) {
  return w->c->options->model == CT_MODEL_UPDATE;
}

static enum ct_gradients gradients_of(enum ct_model_job job) {
  if (job == CT_MODEL_SET) return CT_GRADIENTS_SET;
  return job == CT_MODEL_ADD ? CT_GRADIENTS_ADD : CT_GRADIENTS_NONE;
}

static int make_step(struct whole *w, struct ct_codes *codes) {
  const struct ct_compile_options *o = w->c->options;
  const struct ct_train shape = {.net = &w->net,
                                 .batch = w->p->batch,
                                 .spm_words = o->spm_words,
                                 .gradients = gradients_of(o->model),
                                 .logits = !w->p->quiet};
  if (applies(w)) return ct_prog_apply(&w->net, o->spm_words, codes, &w->why);
  return ct_prog_step(&shape, codes, &w->work, &w->why);
}

/* ---- The stage ----------------------------------------------------------------------------- */

static void count(const struct whole *w, struct ct_stage *s) {
  const struct ct_compiled *o = w->c->out;
  const ct_graph *g = w->c->g;
  const bool trains = w->p->trains;
  s->read = o->lasting * CT_TILE;
  s->written = trains ? s->read : 0;
  for (size_t i = 0; i < o->externals; ++i)
    *(g->tensor[o->external[i].tensor]->node < 0 ? &s->read : &s->written) +=
        o->external[i].units * CT_TILE;
  for (size_t i = 0; i < g->nodes; ++i)
    s->macs += ct_node_macs(g, g->node[i]);
}

static void make_stage(struct whole *w, struct ct_codes *codes) {
  struct ct_compiled *o = w->c->out;
  const ct_graph *g = w->c->g;
  o->stage = calloc(1, sizeof *o->stage);
  if (!o->stage) {
    ct_codes_free(codes);
    ct_compile_no_memory(w->c);
    return;
  }
  o->stages = 1;
  o->whole = true;
  o->stage->node = g->node[g->tensor[w->p->logits]->node]->name;
  o->stage->op = w->p->trains ? "step of a perceptron" : "perceptron";
  o->stage->backward = w->p->trains;
  o->stage->runs = 1;
  o->stage->overlaps = !w->p->trains && !w->work;
  if (!w->p->trains) o->stage->passes = w->passes;
  o->stage->codes = *codes;
  o->arena = w->work;
  lay_model(w);
  if (applies(w))
    lay_apply(w);
  else if (w->p->trains)
    lay_step(w);
  else
    lay_answers(w);
  if (!w->p->trains) o->mlp = w->net;
  count(w, o->stage);
}

/* Whether the programs can say it, as far as the graph goes. */
static bool is_sayable(const struct whole *w) {
  const struct ct_perceptron *p = w->p;
  if (w->c->options->model) return true;
  if (w->c->options->narrow || ct_mlp_check(&w->net, NULL)) return false;
  return p->batch <= (p->trains ? MOST_BATCH : CT_MLP_ROWS_MAX);
}

bool ct_compile_mlp(struct ct_compiler *c) {
  struct ct_perceptron p;
  struct ct_codes codes = {NULL, 0};
  const int found = c->options->kernels || c->options->members ? 0 : ct_graph_perceptron(c->g, &p);
  if (found < 0) ct_compile_no_memory(c);
  if (!found && c->options->model)
    ct_compile_fail(c, CT_ERR_INTERNAL, "the graph of a model is no perceptron");
  if (found <= 0) return c->error;
  struct whole w = {.c = c, .p = &p, .net = {.layers = p.layers}};
  w.why = (struct ct_why){w.text, sizeof w.text};
  for (uint32_t l = 0; l <= p.layers; ++l)
    w.net.width[l] = p.width[l];
  if (!is_sayable(&w)) return false;
  const int err = p.trains ? make_step(&w, &codes) : make_answers(&w, &codes);
  if (err == CT_ERR_NO_SPACE && !p.trains && !c->options->model) return false;
  if (err == CT_ERR_MEMORY)
    ct_compile_no_memory(c);
  else if (err)
    ct_compile_fail(c, err, "%s", w.text);
  else
    make_stage(&w, &codes);
  return true;
}
