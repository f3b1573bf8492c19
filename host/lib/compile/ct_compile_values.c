/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the compiler, and how tensors from outside become values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ct_compile_impl.h"

/* Makes room for one more of a list. */
static bool grow(struct ct_compiler *c, void **list, size_t *room, size_t count, size_t size) {
  if (count < *room) return true;
  const size_t more = *room ? 2 * *room : 64;
  void *p = realloc(*list, more * size);
  if (!p) {
    ct_compile_no_memory(c);
    return false;
  }
  *list = p;
  *room = more;
  return true;
}

struct ct_net_step *ct_step_add(struct ct_compiler *c, enum ct_step_kind kind,
                                const struct ct_gnode *n) {
  if (!grow(c, (void **)&c->step, &c->step_room, c->steps, sizeof *c->step)) return &c->nowhere;
  if (ct_is_product(kind) && !c->options->walks)
    ct_compile_miss(c, n, "this device has no convolution");
  struct ct_net_step *s = &c->step[c->steps++];
  memset(s, 0, sizeof *s);
  s->kind = kind;
  s->node = n;
  s->x = s->w = s->y = s->dx = s->dy = s->t = s->loss = s->made = CT_NO_VALUE;
  for (unsigned i = 0; i < CT_TILE_OPS; ++i)
    s->of[i] = CT_NO_VALUE;
  return s;
}

int ct_step_makes(struct ct_compiler *c, const struct ct_net_step *s, int value) {
  if (!c->error) c->value[value].step = (int)(s - c->step);
  return value;
}

int ct_value_new(struct ct_compiler *c, uint32_t rows, uint32_t cols) {
  if (!grow(c, (void **)&c->value, &c->value_room, c->values, sizeof *c->value)) return 0;
  struct ct_val *v = &c->value[c->values];
  memset(v, 0, sizeof *v);
  v->rows = v->images = rows;
  v->h = v->w = 1;
  v->cols = cols;
  v->kind = CT_LAY_MATRIX;
  v->step = v->first = v->last = CT_FROM_START;
  v->same = v->within = v->reshaped = v->again = v->beside = v->index = v->packed = CT_NO_VALUE;
  return (int)c->values++;
}

int ct_value_like(struct ct_compiler *c, int like) {
  const int v = ct_value_new(c, c->value[like].rows, c->value[like].cols);
  if (c->error) return 0;
  struct ct_val *to = &c->value[v];
  const struct ct_val *from = &c->value[like];
  to->images = from->images;
  to->h = from->h;
  to->w = from->w;
  to->kind = from->kind == CT_LAY_WEIGHT ? CT_LAY_WEIGHT : CT_LAY_MATRIX;
  if (to->kind == CT_LAY_WEIGHT) to->weight = from->weight;
  return v;
}

void ct_value_image(struct ct_compiler *c, int value, const struct ct_shape *s) {
  if (c->error || s->dims != 4) return;
  c->value[value].images = s->dim[0];
  c->value[value].h = s->dim[1];
  c->value[value].w = s->dim[2];
}

int ct_value_shape(struct ct_compiler *c, const struct ct_shape *s) {
  const int v = ct_value_new(c, ct_shape_rows(s), ct_shape_cols(s));
  ct_value_image(c, v, s);
  return v;
}

int ct_value_constant(struct ct_compiler *c, uint32_t rows, uint32_t cols, float number) {
  for (size_t i = 0; i < c->values; ++i) {
    const struct ct_val *v = &c->value[i];
    const bool same = v->number == number && !signbit(v->number) == !signbit(number);
    if (v->constant && v->rows == rows && v->cols == cols && same) return (int)i;
  }
  const int v = ct_value_new(c, rows, cols);
  if (c->error) return 0;
  c->value[v].place = CT_VALUE_LASTING;
  c->value[v].constant = true;
  c->value[v].number = number;
  return v;
}

/* Its numbers are exact in HBFP8. Forward and backward have the same one. */
int ct_value_mask(struct ct_compiler *c, int like, uint32_t stream, uint32_t limit) {
  if (c->error) return 0;
  const uint32_t rows = c->value[like].rows, cols = c->value[like].cols;
  for (size_t i = 0; i < c->values; ++i) {
    const struct ct_val *v = &c->value[i];
    if (v->place == CT_VALUE_GIVEN && v->stream == stream && v->limit == limit && v->rows == rows &&
        v->cols == cols)
      return (int)i;
  }
  const int mask = ct_value_new(c, rows, cols);
  if (c->error) return 0;
  struct ct_val *v = &c->value[mask];
  v->place = CT_VALUE_GIVEN;
  v->stream = stream;
  v->limit = limit;
  v->need[CT_KEEP_ROWS] = true;
  return mask;
}

/* ---- Tensors ------------------------------------------------------------------------------- */

bool ct_value_plain(const struct ct_compiler *c, int tensor) {
  const struct ct_shape *s = &c->g->tensor[tensor]->shape;
  const struct ct_val *v = &c->value[c->value_of[tensor]];
  return v->kind == CT_LAY_MATRIX && v->rows == ct_shape_rows(s) && v->cols == ct_shape_cols(s);
}

/* A tensor that is to be kept in HBFP has that value. What is kept for several is the widest. */
static void take_format(struct ct_compiler *c, int tensor, struct ct_val *v) {
  const enum ct_format format = c->g->tensor[tensor]->format;
  if (c->g->tensor[tensor]->role == CT_ROLE_OUTPUT) return;
  if (format != CT_FORMAT_FP32 && (v->format == CT_FORMAT_FP32 || format < v->format))
    v->format = format;
}

static void from_outside(struct ct_compiler *c, int tensor, int value) {
  const struct ct_gtensor *t = c->g->tensor[tensor];
  struct ct_val *v = &c->value[value];
  v->tensor = tensor;
  take_format(c, tensor, v);
  v->place =
      t->role == CT_ROLE_WEIGHT || t->role == CT_ROLE_STATE ? CT_VALUE_LASTING : CT_VALUE_EXTERNAL;
}

void ct_value_given(struct ct_compiler *c, int tensor, const struct ct_shape *s) {
  const int v = ct_value_shape(c, s);
  if (c->error) return;
  from_outside(c, tensor, v);
  c->value_of[tensor] = v;
}

int ct_value_of(struct ct_compiler *c, int tensor) {
  if (tensor <= 0) return CT_NO_VALUE;
  if (c->value_of[tensor] == CT_NO_VALUE && !c->error)
    ct_value_given(c, tensor, &c->g->tensor[tensor]->shape);
  return c->error ? 0 : c->value_of[tensor];
}

void ct_value_is(struct ct_compiler *c, int tensor, int value) {
  if (c->error) return;
  struct ct_val *v = &c->value[value];
  c->value_of[tensor] = value;
  v->readers += c->readers[tensor];
  take_format(c, tensor, v);
  if (c->g->tensor[tensor]->role == CT_ROLE_OUTPUT && v->place == CT_VALUE_ARENA) {
    v->place = CT_VALUE_EXTERNAL;
    v->tensor = tensor;
  }
}

bool ct_same_weights(const struct ct_weight_lay *a, const struct ct_weight_lay *b) {
  return a->taps == b->taps && a->channels == b->channels && a->own == b->own &&
         (a->own == a->channels || a->outputs == b->outputs);
}

static int copy_of_gradient(struct ct_compiler *c, int tensor, int value) {
  const struct ct_gnode *n = c->g->node[c->g->tensor[tensor]->node];
  struct ct_tiles t = ct_tiles_apart(c, n, c->value[value].rows, c->value[value].cols, false);
  const int copy = ct_value_like(c, value);
  return ct_tiles_make(&t, ct_tiles_axpb(&t, ct_tiles_in(&t, value), 1, 0), copy);
}

int ct_value_weight(struct ct_compiler *c, int tensor, const struct ct_weight_lay *lay) {
  const bool fresh = c->value_of[tensor] == CT_NO_VALUE;
  if (fresh && ct_is_folded(c, tensor)) return ct_fold_weight(c, tensor, lay);
  const int value = ct_value_of(c, tensor);
  if (c->error) return 0;
  struct ct_val *v = &c->value[value];
  if (fresh) {
    v->kind = CT_LAY_WEIGHT;
    v->weight = *lay;
    v->rows = v->images = lay->taps * ct_tiles(lay->channels) * CT_TILE;
    v->h = v->w = 1;
    v->cols = c->g->tensor[tensor]->shape.dim[0];
  }
  if (v->kind != CT_LAY_WEIGHT || !ct_same_weights(&v->weight, lay)) return CT_NO_VALUE;
  return ct_is_fp32_alone(c, v) ? copy_of_gradient(c, tensor, value) : value;
}

int ct_value_shaped(struct ct_compiler *c, int tensor, int like) {
  if (c->value_of[tensor] != CT_NO_VALUE || c->error) return ct_value_of(c, tensor);
  const struct ct_val from = c->value[like];
  if (from.kind == CT_LAY_WEIGHT) return ct_value_weight(c, tensor, &from.weight);
  return ct_value_of(c, tensor);
}

/* ---- Sums ---------------------------------------------------------------------------------- */

static bool sums(const struct ct_net_step *s, const struct ct_sum_of *what) {
  return s->kind == (what->cols ? CT_STEP_SUM_COLS : CT_STEP_SUM_ROWS) && s->x == what->x &&
         s->w == what->less && s->t == what->times && s->sum.squares == what->squares &&
         s->sum.segment == what->segment && s->sum.scale == what->scale;
}

/* One that is made already, maybe beside another; CT_NO_VALUE. */
static int find_sum(const struct ct_compiler *c, const struct ct_sum_of *what) {
  const enum ct_step_kind kind = what->cols ? CT_STEP_SUM_COLS : CT_STEP_SUM_ROWS;
  const bool plain =
      what->less == CT_NO_VALUE && what->times == CT_NO_VALUE && !what->squares && !what->segment;
  for (size_t i = 0; i < c->steps; ++i) {
    const struct ct_net_step *s = &c->step[i];
    if (sums(s, what)) return s->y;
    const bool beside = plain && s->kind == kind && s->dx != CT_NO_VALUE;
    if (beside && s->t == what->x && s->sum.scale == what->scale) return s->dx;
  }
  return CT_NO_VALUE;
}

static int new_sum(struct ct_compiler *c, const struct ct_sum_of *what) {
  const uint32_t rows = c->value[what->x].rows, cols = c->value[what->x].cols;
  return what->cols ? ct_value_new(c, rows, 1)
                    : ct_value_new(c, what->segment ? rows / what->segment : 1, cols);
}

static int make_sum(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_sum_of *what,
                    struct ct_net_step **step) {
  const int y = new_sum(c, what);
  struct ct_net_step *s = ct_step_add(c, what->cols ? CT_STEP_SUM_COLS : CT_STEP_SUM_ROWS, n);
  s->x = what->x;
  s->w = what->less;
  s->t = what->times;
  s->y = ct_step_makes(c, s, y);
  s->sum = (struct ct_sum_rows){
      .squares = what->squares, .segment = what->segment, .scale = what->scale};
  *step = s;
  return y;
}

int ct_value_sum(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_sum_of *what) {
  struct ct_net_step *s;
  if (c->error) return 0;
  const int found = find_sum(c, what);
  return found == CT_NO_VALUE ? make_sum(c, n, what, &s) : found;
}

int ct_value_sums(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_sum_of *what,
                  int *too) {
  const struct ct_sum_of alone = {.x = what->times,
                                  .less = CT_NO_VALUE,
                                  .times = CT_NO_VALUE,
                                  .cols = what->cols,
                                  .scale = what->scale};
  struct ct_net_step *s;
  *too = 0;
  if (c->error) return 0;
  *too = find_sum(c, &alone);
  int y = find_sum(c, what);
  const bool both = *too == CT_NO_VALUE && y == CT_NO_VALUE;
  if (!both) *too = ct_value_sum(c, n, &alone);
  if (!both) return ct_value_sum(c, n, what);
  y = make_sum(c, n, what, &s);
  *too = new_sum(c, &alone);
  s->dx = ct_step_makes(c, s, *too);
  return y;
}
