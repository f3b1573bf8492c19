/* SPDX-License-Identifier: Apache-2.0 */
/* The end of compiling: steps become kernels, kernels programs. */
#include <stdlib.h>
#include <string.h>

#include "ct_compile_impl.h"

static struct ct_mat mat(const struct ct_compiler *c, int value) {
  struct ct_mat m = {0};
  if (value == CT_NO_VALUE) return m;
  const struct ct_val *v = &c->value[value];
  m = (struct ct_mat){.rows = v->rows, .cols = v->cols, .narrow = v->narrow};
  memcpy(m.keep, v->keep, sizeof m.keep);
  if (v->index != CT_NO_VALUE) m.groups = c->value[v->index].keep[CT_KEEP_F32];
  m.free = v->frees;
  return m;
}

/* ---- Tile programs ------------------------------------------------------------------------- */

/* Values of a finished tile program: the product first, then the inputs, then the operations. */
static unsigned number_of(const struct ct_net_step *s, unsigned operand) {
  const unsigned front = s->kind != CT_STEP_TILES;
  if (operand >= CT_OPERAND_OP) return front + s->tile.ins + operand - CT_OPERAND_OP;
  return operand == CT_OPERAND_PRODUCT ? 0 : front + operand;
}

static void add_out(struct ct_compiler *c, const struct ct_net_step *s, struct ct_tilewise *t,
                    int value) {
  const struct ct_val *v = &c->value[value];
  const struct ct_net_step *pack = v->packed == CT_NO_VALUE ? NULL : &c->step[v->packed];
  const bool packs = pack && pack->joined;
  if (!packs && !v->keep[CT_KEEP_F32].reg && !v->keep[CT_KEEP_ROWS].reg &&
      !v->keep[CT_KEEP_SQUARE].reg)
    return;
  if (t->outs == CT_TILE_OUTS) {
    ct_compile_fail(c, CT_ERR_INTERNAL, "a tile program of too many results");
    return;
  }
  struct ct_tile_out *out = &t->out[t->outs++];
  *out = (struct ct_tile_out){mat(c, value), number_of(s, v->part)};
  if (!packs) return;
  out->mat.groups = c->value[pack->y].keep[CT_KEEP_F32];
  out->mat.packed = pack->way;
  out->mat.bound_reg = pack->bound_reg;
}

/* Values of operations that are not stored, and that nothing which is stored depends on, go: the
 * bias that a normalisation has taken, for one. What is left is numbered anew. */
static void drop_unused(struct ct_tilewise *t) {
  bool used[CT_TILE_INS + CT_TILE_OPS] = {false};
  unsigned now[CT_TILE_INS + CT_TILE_OPS], kept = 0;
  for (unsigned i = 0; i < t->outs; ++i)
    used[t->out[i].value] = true;
  for (unsigned i = t->ops; i-- > 0;)
    if (used[t->ins + i]) used[t->op[i].a] = used[t->op[i].b] = true;
  for (unsigned i = 0; i < t->ins; ++i)
    now[i] = i;
  for (unsigned i = 0; i < t->ops; ++i) {
    now[t->ins + i] = t->ins + kept;
    if (!used[t->ins + i]) continue;
    t->op[kept] = t->op[i];
    t->op[kept].a = now[t->op[i].a];
    t->op[kept++].b = now[t->op[i].b];
  }
  for (unsigned i = 0; i < t->outs; ++i)
    t->out[i].value = now[t->out[i].value];
  t->ops = kept;
}

/* Inputs that nothing reads go, too, but not the product in front. */
static void drop_inputs(struct ct_tilewise *t, unsigned front) {
  bool used[CT_TILE_INS + CT_TILE_OPS] = {false};
  unsigned now[CT_TILE_INS + CT_TILE_OPS], kept = front;
  for (unsigned i = 0; i < t->ops; ++i)
    used[t->op[i].a] = used[t->op[i].b] = true;
  for (unsigned i = 0; i < t->outs; ++i)
    used[t->out[i].value] = true;
  for (unsigned i = 0; i < t->ins; ++i) {
    now[i] = i < front ? i : kept;
    if (i >= front && used[i]) t->in[kept++] = t->in[i];
  }
  for (unsigned i = 0; i < t->ops; ++i)
    now[t->ins + i] = kept + i;
  for (unsigned i = 0; i < t->ops; ++i) {
    t->op[i].a = now[t->op[i].a];
    t->op[i].b = now[t->op[i].b];
  }
  for (unsigned i = 0; i < t->outs; ++i)
    t->out[i].value = now[t->out[i].value];
  t->ins = kept;
}

static struct ct_tilewise tile_program(struct ct_compiler *c, const struct ct_net_step *s) {
  const unsigned front = s->kind != CT_STEP_TILES;
  struct ct_tilewise t = {
      .rows = s->tile.rows, .cols = s->tile.cols, .ins = s->tile.ins + front, .ops = s->tile.ops};
  for (unsigned i = 0; i < s->tile.ins; ++i) {
    t.in[front + i] = s->tile.in[i];
    t.in[front + i].mat = mat(c, s->in[i]);
  }
  for (unsigned i = 0; i < s->tile.ops; ++i) {
    t.op[i] = s->tile.op[i];
    t.op[i].a = number_of(s, t.op[i].a);
    t.op[i].b = number_of(s, t.op[i].b);
  }
  if (front) add_out(c, s, &t, s->y);
  for (unsigned i = 0; i < s->tile.ops; ++i)
    if (s->of[i] != CT_NO_VALUE) add_out(c, s, &t, s->of[i]);
  drop_unused(&t);
  drop_inputs(&t, front);
  return t;
}

/* What a step makes that joins a product: a tile program, or what is in groups. */
static struct ct_made made_by(struct ct_compiler *c, const struct ct_net_step *s) {
  struct ct_made made = {.stored = !s->only};
  if (s->kind == CT_STEP_TILES) {
    made.k = tile_program(c, s);
    return made;
  }
  const struct ct_mat m = mat(c, s->y);
  made.k = (struct ct_tilewise){.rows = m.rows, .cols = m.cols, .ins = 1, .outs = 1};
  made.k.out[0].mat = m;
  made.k.in[0].mat = (struct ct_mat){
      .rows = m.rows, .cols = m.cols, .groups = mat(c, s->x).keep[CT_KEEP_F32], .free = s->frees};
  return made;
}

/* ---- Kernels ------------------------------------------------------------------------------- */

/* A matrix in the place of weights: its last rows are lanes of zeros. */
static struct ct_mat lanes_of(struct ct_mat m) {
  m.rows = ct_tiles(m.rows) * CT_TILE;
  return m;
}

static int conv(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t) {
  const struct ct_tilewise after = tile_program(c, s);
  struct ct_conv k = {.shape = s->window, .weights = lanes_of(mat(c, s->w)), .after = &after};
  if (s->kind == CT_STEP_CONV) {
    k.x = mat(c, s->x);
    k.y = mat(c, s->y);
    return ct_kernel_conv(&k, &t->room, t->codes, &t->why);
  }
  const struct ct_net_step *again = s->made == CT_NO_VALUE ? NULL : &c->step[s->made];
  const bool joins = again && again->joined;
  const struct ct_made made = joins ? made_by(c, again) : (struct ct_made){.stored = false};
  if (joins) k.made = &made;
  if (s->kind == CT_STEP_CONV_INPUT) {
    k.y = mat(c, s->x);
    k.x = mat(c, s->y);
    return ct_kernel_conv_input(&k, &t->room, t->codes, &t->why);
  }
  k.x = mat(c, s->x);
  k.y = mat(c, s->dy);
  k.weights = lanes_of(mat(c, s->y));
  if (s->tile.ops == 0) k.after = NULL;
  return ct_kernel_conv_weights(&k, &t->room, t->codes, &t->why);
}

static struct ct_pool pool_of(const struct ct_compiler *c, const struct ct_net_step *s) {
  return (struct ct_pool){.kind = s->pool_kind,
                          .shape = s->window,
                          .count_pad = s->count_pad,
                          .x = mat(c, s->x),
                          .y = mat(c, s->y),
                          .places = mat(c, s->t),
                          .dx = mat(c, s->dx),
                          .dy = mat(c, s->dy)};
}

uint64_t ct_step_scratch(const struct ct_compiler *c, const struct ct_net_step *s) {
  if (s->kind != CT_STEP_POOL && s->kind != CT_STEP_POOL_BACK) return 0;
  const struct ct_pool k = pool_of(c, s);
  return ct_kernel_pool_scratch(&k, s->kind == CT_STEP_POOL_BACK);
}

static int pool(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t) {
  const struct ct_pool k = pool_of(c, s);
  return s->kind == CT_STEP_POOL ? ct_kernel_pool(&k, &t->room, t->codes, &t->why)
                                 : ct_kernel_pool_back(&k, &t->room, t->codes, &t->why);
}

static int sums(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t) {
  if (s->kind == CT_STEP_SPREAD_ROWS) {
    struct ct_spread_rows k = s->spread;
    k.dy = mat(c, s->dy);
    k.dx = mat(c, s->dx);
    return ct_kernel_spread_rows(&k, &t->room, t->codes, &t->why);
  }
  if (s->kind == CT_STEP_SUM_COLS) {
    const struct ct_sum_cols k = {.x = mat(c, s->x),
                                  .times = mat(c, s->t),
                                  .less = mat(c, s->w),
                                  .y = mat(c, s->y),
                                  .too = mat(c, s->dx),
                                  .squares = s->sum.squares,
                                  .scale = s->sum.scale};
    return ct_kernel_sum_cols(&k, &t->room, t->codes, &t->why);
  }
  struct ct_sum_rows k = s->sum;
  k.x = mat(c, s->x);
  k.y = mat(c, s->y);
  k.too = mat(c, s->dx);
  k.less = mat(c, s->w);
  k.times = mat(c, s->t);
  return ct_kernel_sum_rows(&k, &t->room, t->codes, &t->why);
}

static int softmax(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t) {
  const struct ct_softmax k = {.x = mat(c, s->x),
                               .y = mat(c, s->y),
                               .targets = mat(c, s->t),
                               .loss = mat(c, s->loss),
                               .dloss = mat(c, s->dy),
                               .dx = mat(c, s->dx)};
  return ct_kernel_softmax(&k, &t->room, t->codes, &t->why);
}

static int move(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t) {
  struct ct_move k = s->move;
  k.x = mat(c, s->x);
  k.y = mat(c, s->y);
  return ct_kernel_move(&k, &t->room, t->codes, &t->why);
}

/* A matrix in one way of keeping alone. */
static int pack(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t) {
  const bool back = s->kind == CT_STEP_UNPACK;
  struct ct_mat m = mat(c, back ? s->y : s->x);
  for (unsigned k = 0; k < CT_KEEPS; ++k)
    if (k != s->way) m.keep[k].reg = 0;
  const struct ct_pack k = {.mat = m,
                            .index = mat(c, back ? s->x : s->y).keep[CT_KEEP_F32],
                            .back = back,
                            .free = s->frees,
                            .n1_reg = CT_ARG_BOUND};
  return ct_kernel_pack(&k, &t->room, t->codes, &t->why);
}

int ct_step_program(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t) {
  switch (s->kind) {
    case CT_STEP_TILES: {
      const struct ct_tilewise k = tile_program(c, s);
      return c->error ? c->error : ct_kernel_tilewise(&k, &t->room, t->codes, &t->why);
    }
    case CT_STEP_CONV:
    case CT_STEP_CONV_INPUT:
    case CT_STEP_CONV_WEIGHTS:
      return conv(c, s, t);
    case CT_STEP_POOL:
    case CT_STEP_POOL_BACK:
      return pool(c, s, t);
    case CT_STEP_SOFTMAX:
      return softmax(c, s, t);
    case CT_STEP_MOVE:
      return move(c, s, t);
    case CT_STEP_PACK:
    case CT_STEP_UNPACK:
      return pack(c, s, t);
    default:
      return sums(c, s, t);
  }
}

/* ---- Stages -------------------------------------------------------------------------------- */

static const char *const kind_names[CT_STEP_KIND_COUNT] = {"elements",
                                                           "conv",
                                                           "conv input gradient",
                                                           "conv weight gradient",
                                                           "pool",
                                                           "pool gradient",
                                                           "sum",
                                                           "sum of columns",
                                                           "spreading",
                                                           "moving",
                                                           "softmax",
                                                           "compressing",
                                                           "decompressing",
                                                           "perceptron"};

/* The number of what is kept by an index; false: that is none. */
static bool kept_by(const struct ct_compiler *c, int index, uint32_t *kept) {
  const struct ct_compiled *o = c->out;
  if (index == CT_NO_VALUE) return false;
  const struct ct_seat at = c->value[index].keep[CT_KEEP_F32];
  for (*kept = 0; *kept < o->kepts; ++*kept)
    if (o->kept[*kept].index.reg == at.reg && o->kept[*kept].index.at == at.at) return true;
  return false;
}

/* How long groups are is known when they are there. */
static void count_bytes(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                        bool made) {
  const struct ct_val *v = &c->value[value];
  struct ct_stage *stage = &c->out->stage[s->order];
  uint32_t kept;
  if (kept_by(c, value, &kept) || kept_by(c, v->index, &kept)) {
    if (!made) ct_stage_loads(stage, kept);
    return;
  }
  for (unsigned k = 0; k < CT_KEEPS; ++k) {
    if (!v->keep[k].reg) continue;
    const uint64_t bytes = ct_val_units(v, (enum ct_keep)k) * 16;
    if (made) {
      stage->written += bytes;
    } else if (keep == k || keep == CT_KEEPS) {
      stage->read += bytes;
      if (keep == CT_KEEPS) break;
    }
  }
}

static uint32_t scratch_of(const struct ct_compiler *c, const struct ct_net_step *s) {
  return (uint32_t)(s->scratch_units ? s->scratch : c->scratch);
}

static void stage_of(struct ct_compiler *c, struct ct_net_step *s) {
  struct ct_stage *stage = &c->out->stage[s->order];
  stage->node = s->node->name;
  stage->op = s->kind == CT_STEP_TILES ? s->node->op->name : kind_names[s->kind];
  stage->backward = s->node->backward || s->again;
  stage->once = s->early;
  stage->runs = s->runs;
  stage->looks = s->looks;
  stage->macs = ct_is_product(s->kind) ? ct_node_macs(c->g, s->node) : 0;
  ct_step_uses(c, s, count_bytes);
  if (stage->written == 0 && s->kind != CT_STEP_PACK &&
      !ct_packs(c, s)) { /* nobody reads what it makes: it has no program */
    stage->read = stage->macs = stage->loads = 0;
    return;
  }
  if (s->kind == CT_STEP_FRONT) {
    ct_front_stage(c, s, stage);
    return;
  }
  if (s->joined) {
    ct_has_joined(c, s);
    return;
  }
  struct ct_target t = {.room = {.spm_words = c->options->spm_words,
                                 .args = c->out->args,
                                 .scratch = {CT_ARG_ARENA, scratch_of(c, s)},
                                 .scratch_units = s->scratch_units ? s->scratch_units : 1},
                        .codes = &stage->codes};
  t.why = (struct ct_why){t.text, sizeof t.text};
  const bool joined = ct_join(c, s, true);
  int err = ct_step_program(c, s, &t);
  if (joined && err == CT_ERR_NO_SPACE) {
    ct_join(c, s, false);
    err = ct_step_program(c, s, &t);
  }
  if (s->kind == CT_STEP_PACK)
    stage->store[stage->stores++] = (struct ct_stores){s->kept - 1, CT_ARG_BOUND};
  if (err) ct_compile_no_kernel(c, s->node, err, t.text);
  if (!c->error && c->options->members) ct_step_group(c, s, &t);
}

/* What every kernel may write lies behind all tensors: a unit. */
static void make_scratch(struct ct_compiler *c) {
  c->scratch = c->out->arena++;
  ct_front_scratch(c);
  if (c->out->arena > UINT32_MAX)
    ct_compile_fail(c, CT_ERR_NO_SPACE, "the network's tensors take more than 64 GiB");
}

void ct_compile_programs(struct ct_compiler *c) {
  make_scratch(c);
  struct ct_compiled *o = c->out;
  o->stage = calloc(c->steps + 1, sizeof *o->stage);
  if (!o->stage) ct_compile_no_memory(c);
  o->stages = o->stage ? c->steps : 0;
  for (size_t i = 0; i < c->steps && !c->error; ++i)
    stage_of(c, &c->step[i]);
}
