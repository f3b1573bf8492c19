/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of what is kept compressed that join others, where the kernel of these can do it on the
 * way.
 *
 * Packing joins the step that makes the value: its kernel stores groups besides records, and
 * nothing is read again. What unpacks a value or makes it again, right in front of a gradient of a
 * convolution's input that reads it, joins that: the array works meanwhile. So does what unpacks
 * the pixels of a gradient of weights.
 *
 * Whether the kernel can is known when it is made: where it has no room, the other step has a
 * kernel of its own after all. So the values of both have their places in any case.
 */
#include "ct_compile_impl.h"

/* ---- Made on the way ----------------------------------------------------------------------- */

static bool has_stride(const struct ct_window_shape *w) {
  return (w->sx > 1 && w->ow > 1) || (w->sy > 1 && w->oh > 1);
}

/* The value that a step makes again, or unpacks, if that can be done tile by tile of groups and
 * rows; CT_NO_VALUE. */
static int again_of(const struct ct_compiler *c, const struct ct_net_step *s) {
  int made = CT_NO_VALUE;
  if (s->kind == CT_STEP_UNPACK) return s->y;
  if (s->kind != CT_STEP_TILES || !s->again) return CT_NO_VALUE;
  for (unsigned i = 0; i < s->tile.ops; ++i) {
    if (s->of[i] != CT_NO_VALUE && made != CT_NO_VALUE) return CT_NO_VALUE;
    if (s->of[i] != CT_NO_VALUE) made = s->of[i];
  }
  for (unsigned i = 0; i < s->tile.ins; ++i) {
    const enum ct_spread spread = s->tile.in[i].spread;
    const bool row = spread == CT_SPREAD_ROWS || spread == CT_SPREAD_ALL;
    if (!row && (spread != CT_SPREAD_NONE || c->value[s->in[i]].index == CT_NO_VALUE))
      return CT_NO_VALUE;
  }
  return made;
}

/* Whether a product's epilogue reads a value tile by tile, as one way of HBFP8. */
static bool takes(const struct ct_compiler *c, const struct ct_net_step *s, int value) {
  const struct ct_val *v = &c->value[value];
  bool reads = false;
  for (unsigned i = 0; i < s->tile.ins; ++i)
    reads = reads || (s->in[i] == value && s->tile.in[i].spread == CT_SPREAD_NONE);
  return reads && s->x != value && s->w != value && !v->need[CT_KEEP_F32] &&
         v->need[CT_KEEP_ROWS] != v->need[CT_KEEP_SQUARE] && ct_reads_groups(v->rows) &&
         v->rows == s->tile.rows && v->cols == s->tile.cols;
}

struct joining {
  struct ct_net_step *by; /* what reads a value ... */
  int value;
  bool others; /* ... and whether others do */
};

static void look_for_others(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                            bool made) {
  struct joining *j = c->scan;
  (void)keep;
  j->others = j->others || (value == j->value && !made && s != j->by);
}

static void live_longer(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                        bool made) {
  const struct joining *j = c->scan;
  (void)s;
  (void)keep;
  ct_value_lives(c, j->by, value, made);
}

/* What the step in front reads lives until this one is through. */
static void may_join(struct ct_compiler *c, struct ct_net_step *by, struct ct_net_step *s,
                     int value) {
  struct joining j = {by, value, false};
  c->scan = &j;
  ct_step_uses(c, s, live_longer);
  for (size_t i = 0; i < c->steps; ++i)
    ct_step_uses(c, &c->step[i], look_for_others);
  c->scan = NULL;
  s->only = !j.others;
  by->made = (int)(s - c->step);
}

/* Whether the gradient of weights reads what a step unpacks as its pixels. */
static bool takes_pixels(const struct ct_compiler *c, const struct ct_net_step *s,
                         const struct ct_net_step *unpack) {
  const int value = unpack->y;
  bool reads = s->x == value && s->w != value && s->dy != value;
  for (unsigned i = 0; i < s->tile.ins; ++i)
    reads = reads && s->in[i] != value;
  return unpack->kind == CT_STEP_UNPACK && reads && ct_reads_groups(c->value[value].rows);
}

static bool can_take(const struct ct_compiler *c, const struct ct_net_step *by,
                     const struct ct_net_step *s, int value) {
  if (value == CT_NO_VALUE) return false;
  if (by->kind == CT_STEP_CONV_WEIGHTS) return takes_pixels(c, by, s);
  return by->kind == CT_STEP_CONV_INPUT && !has_stride(&by->window) && takes(c, by, value);
}

void ct_compile_made(struct ct_compiler *c) {
  for (size_t i = 0; i < c->steps; ++i) {
    struct ct_net_step *by = &c->step[i];
    if (by->kind != CT_STEP_CONV_INPUT && by->kind != CT_STEP_CONV_WEIGHTS) continue;
    for (size_t k = 0; k < c->steps; ++k) {
      struct ct_net_step *s = &c->step[k];
      const int value =
          s->order + 1 == by->order && s->runs == by->runs ? again_of(c, s) : CT_NO_VALUE;
      if (can_take(c, by, s, value)) may_join(c, by, s, value);
    }
  }
}

/* ---- When kernels are made ----------------------------------------------------------------- */

/* What packs a value that the step makes as operation i, or (i: the number of these) as a product;
 * NULL. */
static struct ct_net_step *packing(const struct ct_compiler *c, const struct ct_net_step *s,
                                   unsigned i) {
  const int value = i < s->tile.ops ? s->of[i] : s->y;
  const struct ct_val *v = value == CT_NO_VALUE ? NULL : &c->value[value];
  const bool makes = v && v->packed != CT_NO_VALUE && &c->step[v->step] == s;
  return makes ? &c->step[v->packed] : NULL;
}

static bool stores_groups(const struct ct_net_step *s) {
  return s->kind == CT_STEP_TILES || s->kind == CT_STEP_CONV;
}

bool ct_packs(const struct ct_compiler *c, const struct ct_net_step *s) {
  bool packs = false;
  for (unsigned i = 0; stores_groups(s) && i <= s->tile.ops; ++i)
    packs = packs || packing(c, s, i);
  return packs;
}

/* Groups are stored if there is an argument for their bound that no region has. */
static bool join_packing(struct ct_compiler *c, const struct ct_net_step *s, bool joins) {
  struct ct_stage *stage = &c->out->stage[s->order];
  stage->stores = 0;
  for (unsigned i = 0; stores_groups(s) && i <= s->tile.ops; ++i) {
    struct ct_net_step *pack = packing(c, s, i);
    const unsigned reg = CT_ARG_FIRST + (unsigned)c->out->externals + stage->stores;
    if (!pack) continue;
    pack->joined =
        joins && ct_reads_groups(c->value[pack->x].rows) && reg < CT_ARG_FIRST + CT_EXTERNALS;
    pack->bound_reg = reg;
    if (pack->joined) stage->store[stage->stores++] = (struct ct_stores){pack->kept - 1, reg};
  }
  return stage->stores > 0;
}

bool ct_join(struct ct_compiler *c, const struct ct_net_step *s, bool joins) {
  const bool packs = join_packing(c, s, joins);
  if (s->made == CT_NO_VALUE) return packs;
  c->step[s->made].joined = joins;
  return joins;
}

void ct_stage_loads(struct ct_stage *stage, uint32_t kept) {
  for (unsigned i = 0; i < stage->loads; ++i)
    if (stage->load[i] == kept) return;
  if (stage->loads < sizeof stage->load / sizeof *stage->load) stage->load[stage->loads++] = kept;
}

void ct_has_joined(struct ct_compiler *c, const struct ct_net_step *s) {
  struct ct_stage *own = &c->out->stage[s->order];
  int by = s->kind == CT_STEP_PACK ? c->value[s->x].step : CT_NO_VALUE;
  for (size_t i = 0; i < c->steps && by == CT_NO_VALUE; ++i)
    if (c->step[i].made == (int)(s - c->step)) by = (int)i;
  struct ct_stage *stage = &c->out->stage[c->step[by].order];
  if (s->kind != CT_STEP_PACK) stage->read += own->read;
  if (!s->only) stage->written += own->written;
  for (unsigned i = 0; i < own->loads; ++i)
    ct_stage_loads(stage, own->load[i]);
  own->read = own->written = own->loads = 0;
}
