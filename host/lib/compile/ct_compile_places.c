/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of compiling: which ways of keeping each value needs, how long it lives, where it lies.
 *
 * Steps that depend on what lasts alone come first. A weight's new value takes the weight's place
 * if nobody reads the weight any more when that is made. Else it is copied there when all is done.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ct_compile_impl.h"

/* ---- Who uses what ------------------------------------------------------------------------- */

/* What a run makes, and its inputs. What lasts from run to run is kept as its readers and its
 * updates need it. */
static bool in_hbfp(const struct ct_compiler *c, const struct ct_val *v) {
  return v->format != CT_FORMAT_FP32 && v->place != CT_VALUE_LASTING && !ct_is_fp32_alone(c, v);
}

static void one(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                ct_value_use *f) {
  if (value != CT_NO_VALUE) f(c, s, value, keep, false);
}

static void tile_uses(struct ct_compiler *c, struct ct_net_step *s, ct_value_use *f) {
  for (unsigned i = 0; i < s->tile.ins; ++i)
    one(c, s, s->in[i], CT_KEEPS, f);
  for (unsigned i = 0; i < s->tile.ops; ++i)
    if (s->of[i] != CT_NO_VALUE) f(c, s, s->of[i], CT_KEEPS, true);
}

static void made(struct ct_compiler *c, struct ct_net_step *s, int value, ct_value_use *f) {
  if (value != CT_NO_VALUE) f(c, s, value, CT_KEEPS, true);
}

/* What is summed may be kept in HBFP8 if the graph says so: then its readers see that. */
static unsigned of_sum(const struct ct_compiler *c, const struct ct_net_step *s, int value) {
  const bool sum = s->kind == CT_STEP_SUM_ROWS || s->kind == CT_STEP_SUM_COLS;
  return sum && value != CT_NO_VALUE && in_hbfp(c, &c->value[value]) ? CT_KEEPS : CT_KEEP_F32;
}

static void vector_uses(struct ct_compiler *c, struct ct_net_step *s, ct_value_use *f) {
  /* The gradient of a maximum asks which element it was: both as they were compared. */
  one(c, s, s->x, s->kind == CT_STEP_POOL ? CT_KEEPS : of_sum(c, s, s->x), f);
  one(c, s, s->w, CT_KEEP_F32, f);
  if (s->kind == CT_STEP_POOL)
    made(c, s, s->t, f);
  else
    one(c, s, s->t, s->kind == CT_STEP_POOL_BACK ? CT_KEEPS : of_sum(c, s, s->t), f);
  one(c, s, s->dy, CT_KEEP_F32, f);
  if (s->kind == CT_STEP_POOL_BACK) one(c, s, s->y, CT_KEEP_F32, f);
  if (s->kind != CT_STEP_POOL_BACK) made(c, s, s->y, f);
  made(c, s, s->dx, f);
  made(c, s, s->loss, f);
}

void ct_step_uses(struct ct_compiler *c, struct ct_net_step *s, ct_value_use *f) {
  switch (s->kind) {
    case CT_STEP_PACK:
      one(c, s, s->x, s->way, f);
      made(c, s, s->y, f);
      return;
    case CT_STEP_UNPACK:
      one(c, s, s->x, CT_KEEP_F32, f);
      made(c, s, s->y, f);
      return;
    case CT_STEP_CONV:
      one(c, s, s->x, CT_KEEP_ROWS, f);
      one(c, s, s->w, CT_KEEP_SQUARE, f);
      made(c, s, s->y, f);
      tile_uses(c, s, f);
      return;
    case CT_STEP_CONV_INPUT:
      one(c, s, s->x, CT_KEEP_SQUARE, f);
      one(c, s, s->w, CT_KEEP_SQUARE, f);
      made(c, s, s->y, f);
      tile_uses(c, s, f);
      return;
    case CT_STEP_CONV_WEIGHTS:
      one(c, s, s->x, CT_KEEP_ROWS, f);
      one(c, s, s->dy, CT_KEEP_SQUARE, f);
      made(c, s, s->y, f);
      tile_uses(c, s, f);
      return;
    case CT_STEP_TILES:
      tile_uses(c, s, f);
      return;
    case CT_STEP_FRONT:
      one(c, s, s->x, CT_KEEP_ROWS, f);
      one(c, s, s->w, CT_KEEP_F32, f);
      made(c, s, s->y, f);
      return;
    default:
      vector_uses(c, s, f);
  }
}

struct ct_val *ct_value_lives(struct ct_compiler *c, const struct ct_net_step *s, int value,
                              bool made) {
  const int whole = c->value[value].within;
  struct ct_val *v = &c->value[whole == CT_NO_VALUE ? value : whole];
  if (made && (v->first == CT_FROM_START || s->order < v->first)) v->first = s->order;
  if (v->last < s->order) v->last = s->order;
  return v;
}

/* So it does, and what reads it does so in one way of keeping. */
static void note(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                 bool is_made) {
  struct ct_val *v = ct_value_lives(c, s, value, is_made);
  if (is_made) return;
  if (keep == CT_KEEPS)
    v->any = true;
  else
    v->need[keep] = true;
}

/* ---- Order --------------------------------------------------------------------------------- */

static void number_steps(struct ct_compiler *c) {
  int order = 0;
  for (int early = 1; early >= 0; --early)
    for (size_t i = 0; i < c->steps; ++i)
      if (c->step[i].early == early) c->step[i].order = order++;
}

/* ---- New values of weights and states ------------------------------------------------------ */

/* A value that has a place of its own is copied, behind all nodes: the last one has its name. What
 * an update makes is copied in the same runs. */
static int copy_of(struct ct_compiler *c, int value) {
  const struct ct_gnode *n = c->g->node[c->order[c->g->nodes - 1]];
  struct ct_tiles t = ct_tiles_apart(c, n, c->value[value].rows, c->value[value].cols, false);
  const int copy = ct_value_like(c, value), by = c->value[value].step;
  if (!c->error && by != CT_FROM_START) c->step[t.step].runs = c->step[by].runs;
  ct_tiles_make(&t, ct_tiles_axpb(&t, ct_tiles_in(&t, value), 1, 0), copy);
  return copy;
}

/* The value of a tensor that gets a new one; where no node reads it, it is the caller's to read. */
static int replaced(struct ct_compiler *c, int tensor, int now) {
  const bool unread = c->value_of[tensor] == CT_NO_VALUE;
  const int old = ct_value_shaped(c, tensor, now);
  if (unread && !c->error) c->value[old].any = true;
  return old;
}

static bool lie_alike(const struct ct_val *a, const struct ct_val *b) {
  return a->rows == b->rows && a->cols == b->cols && a->kind == b->kind &&
         ct_same_weights(&a->weight, &b->weight);
}

static void cannot_become(struct ct_compiler *c, const struct ct_gtensor *t) {
  const struct ct_gtensor *now = c->g->tensor[t->becomes];
  if (now->node >= 0)
    ct_compile_miss(c, c->g->node[now->node], "%s, which becomes what it makes, lies otherwise",
                    t->name);
  else
    ct_compile_fail(c, CT_ERR_UNSUPPORTED, "%s cannot become %s, which lies otherwise", t->name,
                    now->name);
}

/* What another tensor's value becomes may take that one's place. */
static void replace(struct ct_compiler *c, size_t t) {
  const struct ct_gtensor *x = c->g->tensor[t];
  if (!x->becomes || c->error) return;
  int now = ct_value_of(c, x->becomes);
  const int old = c->error ? 0 : replaced(c, (int)t, now);
  if (c->error || now == old) return;
  if (!lie_alike(&c->value[old], &c->value[now])) {
    cannot_become(c, x);
    return;
  }
  const struct ct_val *made = &c->value[now];
  if (made->step == CT_FROM_START || made->place != CT_VALUE_ARENA || made->same != CT_NO_VALUE ||
      made->within != CT_NO_VALUE || ct_is_fp32_alone(c, made))
    now = copy_of(c, now);
  if (!c->error) c->value[now].same = old;
}

/* The step needs no more of the old value than the tile whose new one it makes; all others may come
 * back to what they have read. */
static bool tile_by_tile(const struct ct_compiler *c, const struct ct_net_step *s, int old) {
  for (unsigned i = 0; i < s->tile.ins; ++i)
    if (c->value[s->in[i]].within == old) return false;
  return s->kind == CT_STEP_TILES ||
         (s->kind == CT_STEP_CONV_WEIGHTS && s->x != old && s->dy != old);
}

/* Whether somebody reads the old value when the new one is being made, or later. Early steps are
 * not run again in each run that makes a new value. */
static bool is_read_still(const struct ct_compiler *c, const struct ct_val *v) {
  const int last = c->value[v->same].last;
  bool still = last > v->first;
  for (size_t i = 0; i < c->steps; ++i) {
    const struct ct_net_step *s = &c->step[i];
    if (s->order == v->first)
      still = still || s->early || (last == v->first && !tile_by_tile(c, s, v->same));
  }
  return still;
}

/* New values that cannot be made in the place of the old ones get there behind all steps. */
static void copy_late(struct ct_compiler *c) {
  for (size_t i = 0, values = c->values; i < values && !c->error; ++i) {
    if (c->value[i].same == CT_NO_VALUE || !is_read_still(c, &c->value[i])) continue;
    const int copy = copy_of(c, (int)i);
    if (c->error) return;
    c->value[copy].same = c->value[i].same;
    c->value[i].same = CT_NO_VALUE;
    struct ct_net_step *s = &c->step[c->steps - 1];
    s->order = (int)c->steps - 1;
    ct_step_uses(c, s, note);
  }
}

/* The place of the old value is as the new one needs it, too; and FP32, whoever reads it: what is
 * kept in HBFP8 alone would lose every change that is less than half of a step of that. */
static void take_places(struct ct_compiler *c) {
  for (size_t i = 0; i < c->values; ++i) {
    struct ct_val *v = &c->value[i];
    if (v->same == CT_NO_VALUE) continue;
    struct ct_val *old = &c->value[v->same];
    v->place = CT_VALUE_LASTING;
    for (unsigned k = 0; k < CT_KEEPS; ++k)
      old->need[k] = old->need[k] || v->need[k];
    old->any = old->any || v->any;
    old->need[CT_KEEP_F32] = true;
  }
}

/* ---- Ways of keeping ----------------------------------------------------------------------- */

static void settle(struct ct_compiler *c, struct ct_val *v) {
  static const unsigned narrow[] = {
      [CT_FORMAT_FP32] = 0,  [CT_FORMAT_HBFP8] = 0,     [CT_FORMAT_HBFP6] = 2,
      [CT_FORMAT_HBFP4] = 4, [CT_FORMAT_RECOMPUTE] = 0, [CT_FORMAT_COMPRESSED] = 0};
  const bool hbfp = in_hbfp(c, v);
  v->narrow = c->options->narrow;
  if (hbfp && narrow[v->format] > v->narrow) v->narrow = narrow[v->format];
  if (v->whole) v->narrow = 0;
  const bool outside = v->place == CT_VALUE_EXTERNAL && v->step != CT_FROM_START;
  if (outside || v->constant) v->need[CT_KEEP_F32] = true;
  /* Weights are trained in FP32; what is only read needs no more than its readers. */
  if (v->any && !v->need[CT_KEEP_F32] && !v->need[CT_KEEP_ROWS]) {
    if (hbfp)
      v->need[CT_KEEP_ROWS] = v->need[CT_KEEP_ROWS] || !v->need[CT_KEEP_SQUARE];
    else
      v->need[CT_KEEP_F32] = true;
  }
  if (v->kind == CT_LAY_NUMBER) memset(v->need, 0, sizeof v->need);
}

static void settle_all(struct ct_compiler *c) {
  for (size_t i = 0; i < c->values; ++i)
    settle(c, &c->value[i]);
  for (size_t i = 0; i < c->values; ++i) {
    struct ct_val *v = &c->value[i];
    if (v->same != CT_NO_VALUE) memcpy(v->need, c->value[v->same].need, sizeof v->need);
    if (v->within == CT_NO_VALUE) continue;
    memcpy(v->need, c->value[v->within].need, sizeof v->need);
    v->narrow = c->value[v->within].narrow;
  }
}

/* ---- Places -------------------------------------------------------------------------------- */

static uint64_t units_of(const struct ct_val *v) {
  uint64_t units = 0;
  for (unsigned k = 0; k < CT_KEEPS; ++k)
    if (v->need[k]) units += ct_val_units(v, (enum ct_keep)k);
  return units;
}

static void put(struct ct_compiler *c, struct ct_val *v, unsigned reg, uint64_t at) {
  for (unsigned k = 0; k < CT_KEEPS; ++k) {
    if (!v->need[k]) continue;
    v->keep[k] = (struct ct_seat){reg, (uint32_t)at};
    at += ct_val_units(v, (enum ct_keep)k);
    if (at > UINT32_MAX)
      ct_compile_fail(c, CT_ERR_NO_SPACE, "the network's tensors take more than 64 GiB");
  }
}

/* What early steps make lasts, too: it is made anew only when weights have changed. */
static void put_lasting(struct ct_compiler *c, struct ct_val *v) {
  put(c, v, CT_ARG_LASTING, c->out->lasting);
  c->out->lasting += units_of(v);
}

static bool is_shared(const struct ct_compiler *c, const struct ct_val *v) {
  const enum ct_role role = c->g->tensor[v->tensor]->role;
  return c->options->shared && (role == CT_ROLE_INPUT || role == CT_ROLE_LABEL);
}

/* Those for which there are no arguments left lie with what lasts. */
static void put_external(struct ct_compiler *c, struct ct_val *v) {
  struct ct_compiled *o = c->out;
  if (o->externals == CT_EXTERNALS) {
    o->crowded = true;
    put_lasting(c, v);
    return;
  }
  const unsigned reg = CT_ARG_FIRST + (unsigned)o->externals;
  o->external[o->externals++] = (struct ct_external){v->tensor, reg, units_of(v), is_shared(c, v)};
  put(c, v, reg, 0);
}

/* A value in the arena: while it lives, a stretch of it is taken. Or what step OF_STEP - value
 * needs while it runs. */
enum { OF_STEP = -1 };
struct stretch {
  uint64_t at, units;
  int first, last, value;
};

static int by_first(const void *a, const void *b) {
  const struct stretch *x = a, *y = b;
  return x->first != y->first ? x->first - y->first : x->value - y->value;
}

static int by_size(const void *a, const void *b) {
  const struct stretch *x = a, *y = b;
  if (x->units != y->units) return x->units > y->units ? -1 : 1;
  return by_first(a, b);
}

static int by_place(const void *a, const void *b) {
  const struct stretch *x = *(const struct stretch *const *)a,
                       *y = *(const struct stretch *const *)b;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* The lowest place among those that have one and live at the same time. */
static void find_place(struct stretch *s, const struct stretch *before, size_t count,
                       const struct stretch **beside) {
  size_t n = 0;
  for (size_t i = 0; i < count; ++i)
    if (before[i].first <= s->last && s->first <= before[i].last) beside[n++] = &before[i];
  qsort(beside, n, sizeof(struct stretch *), by_place);
  s->at = 0;
  for (size_t i = 0; i < n && beside[i]->at < s->at + s->units; ++i)
    if (beside[i]->at + beside[i]->units > s->at) s->at = beside[i]->at + beside[i]->units;
}

/* One after the other; what they take together. */
static uint64_t arrange(struct stretch *s, size_t count, const struct stretch **beside,
                        int (*order)(const void *, const void *)) {
  uint64_t units = 0;
  qsort(s, count, sizeof *s, order);
  for (size_t i = 0; i < count; ++i) {
    find_place(&s[i], s, i, beside);
    if (s[i].at + s[i].units > units) units = s[i].at + s[i].units;
  }
  return units;
}

/* As they begin to live, or, if that takes less, the largest first. */
static void put_in_arena(struct ct_compiler *c, struct stretch *s, const struct stretch **beside) {
  size_t count = 0;
  for (size_t i = 0; i < c->values; ++i) {
    struct ct_val *v = &c->value[i];
    const uint64_t units = units_of(v);
    if (v->place != CT_VALUE_ARENA || !units) continue;
    for (unsigned k = 0; k < CT_KEEPS; ++k)
      if (v->need[k]) v->keep[k].reg = CT_ARG_ARENA;
    if (v->within == CT_NO_VALUE)
      s[count++] = (struct stretch){0, units, v->fixed ? CT_FROM_START : v->first,
                                    v->fixed ? INT_MAX : v->last, (int)i};
  }
  for (size_t i = 0; i < c->steps; ++i) {
    const int order = c->step[i].order;
    c->step[i].scratch_units = ct_step_scratch(c, &c->step[i]);
    if (c->step[i].scratch_units)
      s[count++] = (struct stretch){0, c->step[i].scratch_units, order, order, OF_STEP - (int)i};
  }
  const uint64_t least = arrange(s, count, beside, by_size);
  c->out->arena = arrange(s, count, beside, by_first);
  if (least < c->out->arena) c->out->arena = arrange(s, count, beside, by_size);
  for (size_t i = 0; i < count && !c->error; ++i) {
    if (s[i].value > OF_STEP)
      put(c, &c->value[s[i].value], CT_ARG_ARENA, s[i].at);
    else
      c->step[OF_STEP - s[i].value].scratch = s[i].at;
  }
}

/* Planes of a value that has a place. */
static void put_within(struct ct_compiler *c, struct ct_val *v) {
  const struct ct_val *whole = &c->value[v->within];
  for (unsigned k = 0; k < CT_KEEPS; ++k) {
    v->keep[k] = whole->keep[k];
    if (v->keep[k].reg)
      v->keep[k].at += (uint32_t)ct_mat_units(v->rows, v->plane * CT_TILE, (enum ct_keep)k);
  }
}

static void put_all(struct ct_compiler *c) {
  for (size_t i = 0; i < c->values && !c->error; ++i) {
    struct ct_val *v = &c->value[i];
    if (v->step != CT_FROM_START && c->step[v->step].early && v->place == CT_VALUE_ARENA)
      v->place = CT_VALUE_LASTING;
    if (!units_of(v) || v->within != CT_NO_VALUE) continue;
    if (v->place == CT_VALUE_EXTERNAL) put_external(c, v);
    const bool lasts = v->place == CT_VALUE_LASTING || v->place == CT_VALUE_GIVEN;
    if (lasts && v->same == CT_NO_VALUE) put_lasting(c, v);
  }
  for (size_t i = 0; i < c->values && !c->error; ++i)
    if (c->value[i].same != CT_NO_VALUE)
      memcpy(c->value[i].keep, c->value[c->value[i].same].keep, sizeof c->value[i].keep);
  struct stretch *all = calloc(c->values + c->steps + 1, sizeof *all);
  const struct stretch **beside = calloc(c->values + c->steps + 1, sizeof(struct stretch *));
  if (all && beside)
    put_in_arena(c, all, beside);
  else
    ct_compile_no_memory(c);
  free(all);
  free(beside);
  for (size_t i = 0; i < c->values && !c->error; ++i)
    if (c->value[i].within != CT_NO_VALUE) put_within(c, &c->value[i]);
}

/* ---- What others see of it ----------------------------------------------------------------- */

static void describe(struct ct_compiler *c, size_t t) {
  struct ct_lay *lay = &c->out->lay[t];
  if (c->value_of[t] == CT_NO_VALUE) return;
  const struct ct_val *v = &c->value[c->value_of[t]];
  lay->kind = units_of(v) ? v->kind : CT_LAY_NONE;
  lay->mat = (struct ct_mat){.rows = v->rows, .cols = v->cols, .narrow = v->narrow};
  memcpy(lay->mat.keep, v->keep, sizeof v->keep);
  lay->weight = v->weight;
  lay->windows = v->windows;
  lay->pitch = v->pitch;
}

static void describe_constants(struct ct_compiler *c) {
  struct ct_compiled *o = c->out;
  o->constant = calloc(c->values + 1, sizeof *o->constant);
  if (!o->constant) {
    ct_compile_no_memory(c);
    return;
  }
  for (size_t i = 0; i < c->values; ++i) {
    const struct ct_val *v = &c->value[i];
    if (!v->constant || !v->keep[CT_KEEP_F32].reg) continue;
    struct ct_constant *k = &o->constant[o->constants++];
    k->lay = (struct ct_lay){
        .kind = v->kind, .mat = {.rows = v->rows, .cols = v->cols}, .weight = v->weight};
    memcpy(k->lay.mat.keep, v->keep, sizeof v->keep);
    k->value = v->number;
  }
}

static void describe_masks(struct ct_compiler *c) {
  struct ct_compiled *o = c->out;
  o->mask = calloc(c->values + 1, sizeof *o->mask);
  if (!o->mask) {
    ct_compile_no_memory(c);
    return;
  }
  for (size_t i = 0; i < c->values; ++i) {
    const struct ct_val *v = &c->value[i];
    if (v->place != CT_VALUE_GIVEN) continue;
    struct ct_mask *m = &o->mask[o->masks++];
    *m = (struct ct_mask){.mat = {.rows = v->rows, .cols = v->cols, .narrow = v->narrow},
                          .stream = v->stream,
                          .limit = v->limit};
    memcpy(m->mat.keep, v->keep, sizeof v->keep);
  }
}

/* What is left of the registers is for loops: networks of few numbers all leave the same. */
enum { USUAL_NUMBERS = 8 };

static void name_arguments(struct ct_compiled *o) {
  const unsigned numbers = o->scalars > USUAL_NUMBERS ? (unsigned)o->scalars : USUAL_NUMBERS;
  o->args = CT_ARG_FIRST + CT_EXTERNALS + numbers - 1;
  for (unsigned reg = CT_ARG_LASTING; reg < CT_ARG_FIRST + o->externals; ++reg)
    o->argument[reg - 1] = (struct ct_argument){.kind = CT_ARGUMENT_REGION, .region = reg};
  for (uint32_t i = 0; i < o->scalars; ++i)
    o->argument[o->scalar[i].reg - 1] = (struct ct_argument){.kind = CT_ARGUMENT_SCALAR, .at = i};
}

void ct_compile_places(struct ct_compiler *c) {
  for (size_t t = 1; t <= c->g->tensors; ++t)
    replace(c, t);
  number_steps(c);
  for (size_t i = 0; i < c->steps; ++i)
    ct_step_uses(c, &c->step[i], note);
  copy_late(c);
  if (!c->error) ct_compile_runs(c);
  take_places(c);
  settle_all(c);
  if (!c->error) ct_compile_kept(c);
  if (!c->error) put_all(c);
  if (!c->error) ct_compile_kept_places(c);
  for (size_t t = 1; t <= c->g->tensors && !c->error; ++t)
    describe(c, t);
  if (!c->error) ct_front_describe(c);
  if (!c->error) describe_constants(c);
  if (!c->error) describe_masks(c);
  name_arguments(c->out);
}
