/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perceptron in front of other nodes, in a graph for answers of up to 16 rows: its layers are one
 * stage, the program of ct_prog_infer(), with the bits that kernels have. It reads rows as they
 * come from outside and an image in r1, and gives a matrix in FP32, in the places where others read
 * it. Its job has arguments of its own (struct ct_stage). With more rows kernels are faster, which
 * have what stands behind the last layer in its own program.
 *
 * The program writes rows that there are, and others rely on zeros behind them: so nobody else has
 * the matrix's place, which is zero from the beginning.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_compile_impl.h"
#include "ct_graph_perceptron.h"

struct ct_front {
  struct ct_perceptron p;
  struct ct_mlp net;
  struct ct_mlp_answers answers;
  bool *has;     /* by node */
  int image;     /* a value; CT_NO_VALUE: nobody needs what it gives */
  uint32_t work; /* where the workspace begins in the arena */
};

/* ---- Which nodes --------------------------------------------------------------------------- */

static void mark(const struct ct_compiler *c, struct ct_front *f) {
  const ct_graph *g = c->g;
  for (int t = f->p.logits; t != f->p.x; t = g->node[g->tensor[t]->node]->in[0])
    f->has[g->tensor[t]->node] = true;
}

/* Its programs, or why there are none. */
static int make(const struct ct_compiler *c, struct ct_front *f) {
  f->net = (struct ct_mlp){.layers = f->p.layers};
  memcpy(f->net.width, f->p.width, (f->p.layers + 1) * sizeof *f->p.width);
  f->answers = (struct ct_mlp_answers){.net = &f->net, .batch = f->p.batch, .planes = true};
  if (f->p.batch > CT_INFER_ROWS_MAX || ct_mlp_check(&f->net, NULL)) return CT_ERR_NO_SPACE;
  f->has = calloc(c->g->nodes + 1, sizeof *f->has);
  return f->has ? ct_mlp_answers(c, &f->answers, NULL) : CT_ERR_MEMORY;
}

void ct_front_find(struct ct_compiler *c) {
  const struct ct_compile_options *o = c->options;
  struct ct_perceptron p;
  if (o->kernels || o->members || o->narrow || !ct_graph_front(c->g, &p)) return;
  c->front = calloc(1, sizeof *c->front);
  if (!c->front) {
    ct_compile_no_memory(c);
    return;
  }
  c->front->p = p;
  c->front->image = CT_NO_VALUE;
  const int err = make(c, c->front);
  if (err == CT_ERR_MEMORY) ct_compile_no_memory(c);
  if (err)
    ct_front_free(c);
  else
    mark(c, c->front);
}

bool ct_front_has(const struct ct_compiler *c, const struct ct_gnode *n) {
  return c->front && c->front->has[n->index];
}

void ct_front_free(struct ct_compiler *c) {
  if (!c->front) return;
  ct_codes_free(&c->front->answers.codes);
  free(c->front->has);
  free(c->front);
  c->front = NULL;
}

/* ---- Its step ------------------------------------------------------------------------------ */

static int input_of(struct ct_compiler *c, const struct ct_front *f) {
  const int x = ct_value_new(c, f->p.batch, f->net.width[0]);
  if (c->error) return 0;
  struct ct_val *v = &c->value[x];
  v->kind = CT_LAY_VECTORS;
  v->pitch = ct_mlp_row(&f->net);
  v->units = (uint64_t)f->p.batch * v->pitch;
  v->place = CT_VALUE_EXTERNAL;
  v->tensor = f->p.x;
  c->value_of[f->p.x] = x;
  return x;
}

static int image_of(struct ct_compiler *c, const struct ct_front *f) {
  const int image = ct_value_new(c, 1, 1);
  if (c->error) return 0;
  c->value[image].units = ct_mlp_image_units(&f->net);
  c->value[image].place = CT_VALUE_LASTING;
  return image;
}

/* These read a matrix in FP32 as it is; others want it in HBFP8, too, and so a copy. */
static bool reads_fp32(const struct ct_gnode *n) {
  static const char *const ops[] = {"relu", "leaky_relu", "clip",  "sigmoid", "tanh",
                                    "erf",  "gelu",       "scale", "softmax"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i)
    if (n->op == ct_gop_find(ops[i])) return true;
  return false;
}

static bool read_in_fp32(const struct ct_compiler *c, int tensor) {
  for (size_t i = 0; i < c->g->nodes; ++i)
    for (uint32_t k = 0; k < c->g->node[i]->inputs; ++k)
      if (c->g->node[i]->in[k] == tensor && !reads_fp32(c->g->node[i])) return false;
  return true;
}

void ct_front_lower(struct ct_compiler *c, const struct ct_gnode *n) {
  struct ct_front *f = c->front;
  if (n->out[0] != f->p.logits) return;
  const int x = input_of(c, f);
  f->image = image_of(c, f);
  int y = ct_value_new(c, f->p.batch, f->net.width[f->net.layers]);
  if (c->error) return;
  c->value[y].fixed = true;
  struct ct_net_step *s = ct_step_add(c, CT_STEP_FRONT, n);
  s->x = x;
  s->w = f->image;
  s->y = ct_step_makes(c, s, y);
  if (!read_in_fp32(c, f->p.logits)) y = ct_moved(c, n, y, &c->g->tensor[f->p.logits]->shape);
  ct_value_is(c, f->p.logits, y);
}

/* ---- When all has a place ------------------------------------------------------------------ */

static void put_lay(struct ct_compiler *c, int tensor, const struct ct_lay *lay) {
  const uint32_t at = c->value[c->front->image].keep[CT_KEEP_F32].at;
  struct ct_lay *to = &c->out->lay[tensor];
  *to = *lay;
  for (unsigned k = 0; k < CT_KEEPS; ++k)
    if (to->mat.keep[k].reg) to->mat.keep[k].at += at;
}

void ct_front_describe(struct ct_compiler *c) {
  const struct ct_front *f = c->front;
  if (!f || f->image == CT_NO_VALUE) return;
  for (uint32_t l = 0; l < f->net.layers; ++l) {
    struct ct_layer_lays lays;
    ct_layer_lays(&f->net, l, 0, &lays);
    put_lay(c, f->p.w[l], &lays.w);
    put_lay(c, f->p.b[l], &lays.b);
  }
}

void ct_front_scratch(struct ct_compiler *c) {
  if (!c->front) return;
  c->front->work = (uint32_t)c->out->arena;
  c->out->arena += c->front->answers.work;
}

static struct ct_argument at(const struct ct_seat *seat, uint32_t units) {
  return (struct ct_argument){
      .kind = CT_ARGUMENT_REGION, .region = seat->reg, .at = seat->at + units};
}

static void name_arguments(const struct ct_compiler *c, const struct ct_net_step *s,
                           struct ct_argument *own) {
  const struct ct_front *f = c->front;
  const struct ct_val *x = &c->value[s->x];
  const struct ct_seat work = {CT_ARG_ARENA, f->work};
  own[CT_INFER_IMAGE - 1] = at(&c->value[s->w].keep[CT_KEEP_F32], 0);
  own[CT_INFER_OUT - 1] = at(&c->value[s->y].keep[CT_KEEP_F32], 0);
  for (uint32_t i = 0; i < x->rows; ++i)
    own[CT_INFER_ROW - 1 + i] = at(&x->keep[CT_KEEP_ROWS], i * x->pitch);
  if (f->answers.work) own[ct_infer_work(x->rows) - 1] = at(&work, 0);
}

void ct_front_stage(struct ct_compiler *c, const struct ct_net_step *s, struct ct_stage *stage) {
  struct ct_front *f = c->front;
  stage->own = calloc(CT_MAX_ARGS, sizeof *stage->own);
  if (!stage->own) {
    ct_compile_no_memory(c);
    return;
  }
  name_arguments(c, s, stage->own);
  stage->overlaps = !f->answers.work;
  stage->codes = f->answers.codes;
  f->answers.codes = (struct ct_codes){NULL, 0};
  stage->macs = 0;
  for (size_t i = 0; i < c->g->nodes; ++i)
    if (f->has[i]) stage->macs += ct_node_macs(c->g, c->g->node[i]);
}
