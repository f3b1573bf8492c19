/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gradients need of forward, and how it is kept until then.
 *
 * Made again: the step that made the value is there once more, in front of the first step of the
 * gradients that reads it; these read what that makes. It costs no memory if what the step reads is
 * kept in any case.
 *
 * Compressed: a step behind the last use in front packs the value, and one in front of its first
 * use for gradients unpacks it. So its place is free in between, and what was unpacked lives only
 * as long as the gradients read it. The index lies with what lasts, so that the host may ask it
 * behind a run how long the groups were, and so that many small things do not cut the arena in
 * pieces. Where the value makes a weight's gradient, kernels sum for the host what it sets the
 * bound by.
 *
 * Both are told from the last way of keeping by the value's format. A value for which neither can
 * be done is kept in HBFP8.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_compile_impl.h"

enum { CT_PENDING = -2 }; /* no value */

/* ---- Who reads a value --------------------------------------------------------------------- */

/* A step that makes something anew. */
bool ct_step_makes_again(const struct ct_net_step *s) {
  return s->again && (s->kind == CT_STEP_TILES || s->kind == CT_STEP_POOL);
}

struct makes {
  bool needed;
};

static void look_at_needs(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                          bool made) {
  struct makes *m = c->scan;
  (void)s;
  (void)keep;
  for (unsigned k = 0; made && k < CT_KEEPS; ++k)
    m->needed = m->needed || c->value[value].need[k];
}

/* Whether anybody reads what a step makes: else it will have no program, and reads nothing. */
static bool is_needed(struct ct_compiler *c, struct ct_net_step *s) {
  struct makes m = {false};
  c->scan = &m;
  ct_step_uses(c, s, look_at_needs);
  c->scan = NULL;
  return m.needed;
}

struct scan {
  int value;
  struct ct_readers *r;
};

static void look(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                 bool made) {
  const struct scan *scan = c->scan;
  struct ct_readers *r = scan->r;
  if (value != scan->value) return;
  if (made || !ct_step_is_back(s)) {
    if (s->order > r->front) r->front = s->order;
    r->in_front = r->in_front || !made;
    return;
  }
  r->again = r->again || ct_step_makes_again(s);
  if (r->first == CT_FROM_START || s->order < r->first) {
    r->first = s->order;
    r->step = (size_t)(s - c->step);
  }
  if (keep == CT_KEEPS)
    r->any = true;
  else
    r->need[keep] = true;
}

struct ct_readers ct_readers_of(struct ct_compiler *c, int value) {
  struct ct_readers r = {.front = CT_FROM_START, .first = CT_FROM_START};
  struct scan scan = {value, &r};
  for (size_t i = 0; i < c->steps; ++i) {
    if (ct_step_is_back(&c->step[i]) && !is_needed(c, &c->step[i])) continue;
    c->scan = &scan;
    ct_step_uses(c, &c->step[i], look);
  }
  c->scan = NULL;
  return r;
}

bool ct_value_is_kept(const struct ct_compiler *c, int value, const struct ct_readers *r) {
  const struct ct_val *v = &c->value[value];
  if (v->place != CT_VALUE_ARENA || v->kind != CT_LAY_MATRIX || v->step == CT_FROM_START ||
      v->fixed || v->same != CT_NO_VALUE || v->within != CT_NO_VALUE || c->step[v->step].early ||
      ct_step_is_back(&c->step[v->step]))
    return false;
  for (size_t i = 0; i < c->values; ++i)
    if (c->value[i].within == value || c->value[i].same == value) return false;
  return r->first != CT_FROM_START && r->first > r->front + 2; /* orders are twice */
}

/* A step reads another value from here on; false: it did not read that one. */
bool ct_step_reads_instead(struct ct_net_step *s, int value, int instead) {
  int *const in[] = {&s->x, &s->w, &s->t, &s->dy};
  bool found = s->kind == CT_STEP_POOL_BACK && s->y == value;
  if (found) s->y = instead;
  for (size_t k = 0; k < sizeof in / sizeof *in; ++k) {
    if (*in[k] != value) continue;
    *in[k] = instead;
    found = true;
  }
  for (unsigned k = 0; k < s->tile.ins; ++k) {
    if (s->in[k] != value) continue;
    s->in[k] = instead;
    found = true;
  }
  return found;
}

/* So do all for gradients. */
static void read_instead(struct ct_compiler *c, int value, int instead) {
  for (size_t i = 0; i < c->steps; ++i)
    if (ct_step_is_back(&c->step[i]) && c->step[i].kind != CT_STEP_UNPACK)
      ct_step_reads_instead(&c->step[i], value, instead);
}

/* ---- New steps between others -------------------------------------------------------------- */

/* While steps are added, orders are twice what they were, so that there is room between them. Of
 * two with the same order the later one is new, and comes behind. */
static void spread(struct ct_compiler *c) {
  for (size_t i = 0; i < c->steps; ++i)
    c->step[i].order *= 2;
  for (size_t i = 0; i < c->values; ++i)
    if (c->value[i].first != CT_FROM_START) c->value[i].first *= 2;
}

struct turn {
  int order;
  size_t step;
};

static int by_order(const void *a, const void *b) {
  const struct turn *x = a, *y = b;
  if (x->order != y->order) return x->order - y->order;
  return x->step < y->step ? -1 : 1;
}

static void live(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                 bool made) {
  (void)keep;
  ct_value_lives(c, s, value, made);
}

/* Orders without gaps, and the lives that follow from them. */
static void close_ranks(struct ct_compiler *c) {
  struct turn *turn = calloc(c->steps + 1, sizeof *turn);
  if (!turn) {
    ct_compile_no_memory(c);
    return;
  }
  for (size_t i = 0; i < c->steps; ++i)
    turn[i] = (struct turn){c->step[i].order, i};
  qsort(turn, c->steps, sizeof *turn, by_order);
  for (size_t i = 0; i < c->steps; ++i)
    c->step[turn[i].step].order = (int)i;
  free(turn);
  for (size_t i = 0; i < c->values; ++i)
    c->value[i].first = c->value[i].last = CT_FROM_START;
  for (size_t i = 0; i < c->steps; ++i)
    ct_step_uses(c, &c->step[i], live);
}

/* A value that lies as another, in one way of keeping or in those that gradients ask for. */
static int copy_of(struct ct_compiler *c, int value) {
  const int copy = ct_value_like(c, value);
  if (c->error) return 0;
  c->value[copy].narrow = c->value[value].narrow;
  c->value[copy].whole = c->value[value].whole;
  c->value[copy].format = c->value[value].format;
  c->value[copy].again = value;
  return copy;
}

/* ---- Made again ---------------------------------------------------------------------------- */

static uint64_t elements(const struct ct_val *v) {
  return (uint64_t)v->rows * v->cols;
}

enum { LITTLE = 16 };

/* Whether the new value of a weight or state has taken its place by then: where the new one lies
 * was settled by who read the old one before anything was made again. */
static bool is_replaced(const struct ct_compiler *c, int value, int order) {
  for (size_t i = 0; i < c->values; ++i)
    if (c->value[i].same == value && c->value[i].first < order) return true;
  return false;
}

/* Whether a value is there at `order`, when gradients begin, or costs next to nothing: it lasts,
 * they read it, too, or what is made of it is much larger. */
static bool is_there(struct ct_compiler *c, int value, int made, int order) {
  if (value == CT_NO_VALUE) return true;
  if (c->value[value].place != CT_VALUE_ARENA) return !is_replaced(c, value, order);
  if (c->value[value].within != CT_NO_VALUE) return false;
  return elements(&c->value[value]) * LITTLE <= elements(&c->value[made]) ||
         ct_readers_of(c, value).first != CT_FROM_START;
}

static bool can_be_made_again(struct ct_compiler *c, int value, int order) {
  const struct ct_net_step s = c->step[c->value[value].step];
  /* Pooling makes HBFP8 that it reads FP32 first, which takes more room than what it makes. */
  const bool pools = s.kind == CT_STEP_POOL && c->value[s.x].need[CT_KEEP_F32];
  bool there = s.kind == CT_STEP_TILES || (pools && is_there(c, s.x, value, order));
  for (unsigned i = 0; there && i < s.tile.ins; ++i)
    there = is_there(c, s.in[i], value, order);
  return there;
}

/* Whether it is made element by element of at most one value of a run that is not small. What is
 * unpacked for that takes no more room than unpacking what it makes would have taken twice; pooling
 * takes more. */
static bool reads_one(const struct ct_compiler *c, int value) {
  const struct ct_net_step *s = &c->step[c->value[value].step];
  unsigned large = 0;
  for (unsigned i = 0; i < s->tile.ins; ++i)
    large += c->value[s->in[i]].place == CT_VALUE_ARENA &&
             elements(&c->value[s->in[i]]) * LITTLE > elements(&c->value[value]);
  return s->kind == CT_STEP_TILES && large <= 1;
}

/* The way in which it is read where any will do. */
static enum ct_keep any_way(const struct ct_val *v) {
  return v->need[CT_KEEP_F32] ? CT_KEEP_F32 : v->need[CT_KEEP_ROWS] ? CT_KEEP_ROWS : CT_KEEP_SQUARE;
}

static void make_again(struct ct_compiler *c, int value, const struct ct_readers *r) {
  const int copy = copy_of(c, value);
  if (c->error) return;
  const struct ct_net_step made = c->step[c->value[value].step];
  struct ct_net_step *s = ct_step_add(c, made.kind, made.node);
  if (c->error) return;
  *s = made;
  s->again = true;
  s->order = r->first - 1;
  for (unsigned k = 0; k < CT_TILE_OPS; ++k)
    s->of[k] = s->of[k] == value ? copy : CT_NO_VALUE;
  if (s->kind == CT_STEP_POOL) {
    s->y = copy;
    s->t = CT_NO_VALUE;
  }
  ct_step_makes(c, s, copy);
  memcpy(c->value[copy].need, r->need, sizeof c->value[copy].need);
  if (r->any) c->value[copy].need[any_way(&c->value[value])] = true;
  c->value[copy].part = c->value[value].part;
  read_instead(c, value, copy);
}

/* ---- Compressed ---------------------------------------------------------------------------- */

/* The one way of keeping in which gradients read it, as records; CT_KEEPS: there is none. What may
 * be read in any way is read as FP32 where it has that. */
static enum ct_keep way_of(const struct ct_val *v, const struct ct_readers *r) {
  bool need[CT_KEEPS];
  memcpy(need, r->need, sizeof need);
  if (r->any) need[any_way(v)] = true;
  if (need[CT_KEEP_F32] || need[CT_KEEP_ROWS] == need[CT_KEEP_SQUARE]) return CT_KEEPS;
  return need[CT_KEEP_ROWS] ? CT_KEEP_ROWS : CT_KEEP_SQUARE;
}

/* FP32, with what lasts. */
void ct_value_for_host(struct ct_compiler *c, int value) {
  c->value[value].need[CT_KEEP_F32] = true;
  c->value[value].place = CT_VALUE_LASTING;
}

/* Room for the index units of a matrix, as one of FP32. */
static int index_of(struct ct_compiler *c, int value) {
  const uint32_t units = ct_pack_units(c->value[value].rows, c->value[value].cols);
  const uint32_t tiles = (units + CT_F32_TILE_UNITS - 1) / CT_F32_TILE_UNITS;
  const int index = ct_value_new(c, tiles * CT_TILE, CT_TILE);
  if (!c->error) ct_value_for_host(c, index);
  return index;
}

struct ct_net_step *ct_step_between(struct ct_compiler *c, enum ct_step_kind kind,
                                    const struct ct_gnode *n, int order) {
  struct ct_net_step *s = ct_step_add(c, kind, n);
  s->order = order;
  s->runs = 1;
  return s;
}

static const char *name_of(const struct ct_compiler *c, int value) {
  const struct ct_val *v = &c->value[value];
  return v->tensor ? c->g->tensor[v->tensor]->name : c->step[v->step].node->name;
}

static void note_kept(struct ct_compiler *c, int value, int index) {
  struct ct_compiled *o = c->out;
  const struct ct_val *v = &c->value[value];
  if (!o->kept) o->kept = calloc(c->values + 1, sizeof *o->kept); /* (there will not be more) */
  if (!o->kept) {
    ct_compile_no_memory(c);
    return;
  }
  o->kept[o->kepts++] =
      (struct ct_kept){.tensor = name_of(c, value),
                       .value = value,
                       .whole = v->whole,
                       .beside = v->beside != CT_NO_VALUE,
                       .rows = v->rows,
                       .cols = v->cols,
                       .index = {.at = (uint32_t)index}}; /* until places are known */
}

/* A step that unpacks the groups of an index in front of that order; the value that it makes. */
static int unpack(struct ct_compiler *c, int value, int index, enum ct_keep way, int order,
                  const struct ct_gnode *n) {
  const int copy = copy_of(c, value);
  if (c->error) return 0;
  c->value[copy].need[way] = true;
  struct ct_net_step *s = ct_step_between(c, CT_STEP_UNPACK, n, order - 1);
  s->again = true;
  s->x = index;
  s->way = way;
  s->y = ct_step_makes(c, s, copy);
  return copy;
}

/* Words that sixteen tiles of a value take in the scratchpad, in each way of keeping or in one. */
static uint32_t words_of(const struct ct_compiler *c, int value, bool all) {
  const struct ct_val *v = &c->value[value];
  uint32_t words = v->index == CT_NO_VALUE ? 0 : CT_TILE; /* groups are needed in no other way */
  for (unsigned k = 0; k < CT_KEEPS && (all || !words); ++k)
    if (v->need[k]) words += k == CT_KEEP_F32 ? CT_F32_TILE_UNITS : CT_TILE;
  return CT_GROUPS_TILES * words;
}

enum { OTHER_WORDS = 1024, SHORT = 8 }; /* carriers, rows, sums; operations */

/* Whether there is room for as much of a value's groups as comes at once, twice; words: of sixteen
 * tiles with all that belongs to them. */
static bool has_room_for_groups(const struct ct_compiler *c, int value, uint32_t words) {
  const struct ct_val *v = &c->value[value];
  const uint64_t units = ct_groups_at_once(ct_tiles(v->rows) * ct_tiles(v->cols));
  return ct_reads_groups(v->rows) && 2 * units * words + OTHER_WORDS <= c->options->spm_words;
}

bool ct_can_sum_groups(const struct ct_compiler *c, int value) {
  return has_room_for_groups(c, value, words_of(c, value, false));
}

/* Whether a step reads the value tile by tile, in their order, is short, has room for it, and is no
 * update, which is not there in each run: then it may read the groups themselves. */
static bool reads_groups(const struct ct_compiler *c, const struct ct_net_step *s, int value) {
  uint32_t words = 0;
  bool reads = s->kind == CT_STEP_TILES && s->tile.ops <= SHORT && s->runs <= 1;
  for (unsigned i = 0; i < s->tile.ins; ++i) {
    reads = reads && (s->in[i] != value || s->tile.in[i].spread == CT_SPREAD_NONE);
    if (s->tile.in[i].spread == CT_SPREAD_NONE || s->tile.in[i].spread == CT_SPREAD_COLS)
      words += words_of(c, s->in[i], false);
  }
  for (unsigned i = 0; i < s->tile.ops; ++i)
    if (s->of[i] != CT_NO_VALUE) words += words_of(c, s->of[i], true);
  if (s->kind == CT_STEP_SUM_ROWS) {
    reads = s->x == value && s->t != value && s->w != value && !s->sum.segment;
    words = words_of(c, value, false) + (s->t == CT_NO_VALUE ? 0 : words_of(c, s->t, false));
  }
  return reads && has_room_for_groups(c, value, words);
}

/* The value as its groups alone. */
int ct_value_of_groups(struct ct_compiler *c, int value, int index) {
  const int copy = copy_of(c, value);
  if (!c->error) c->value[copy].index = index;
  return copy;
}

/* Gradients that can read the groups themselves, or will have no program. */
static void read_groups(struct ct_compiler *c, int value, int index) {
  for (size_t i = 0; i < c->steps && !c->error; ++i) {
    struct ct_net_step *s = &c->step[i];
    if (!ct_step_is_back(s) || !ct_step_reads_instead(s, value, value)) continue;
    if (!reads_groups(c, s, value) && is_needed(c, s)) continue;
    const int copy = ct_value_of_groups(c, value, index);
    if (c->error) return;
    ct_step_reads_instead(&c->step[i], value, copy);
  }
}

/* Whether a step reads the groups of an index; what of it then says that it frees them. */
static bool *frees_of(struct ct_compiler *c, struct ct_net_step *s, int index) {
  if (s->kind == CT_STEP_UNPACK && s->x == index) return &s->frees;
  for (size_t i = 0; i < c->values; ++i)
    if (c->value[i].index == index && ct_step_reads_instead(s, (int)i, (int)i))
      return &c->value[i].frees;
  return NULL;
}

/* In front of the first reader; CT_FROM_START: there is no place behind the step that packs. */
static int front_of_readers(struct ct_compiler *c, int index, int packed) {
  int first = CT_FROM_START;
  for (size_t i = 0; i < c->steps; ++i)
    if (frees_of(c, &c->step[i], index) && (first == CT_FROM_START || c->step[i].order < first))
      first = c->step[i].order;
  return ct_even(first - 1) > packed ? ct_even(first - 1) : CT_FROM_START;
}

/* The last one that has a program, and is there in each run, frees. */
static void choose_freeing(struct ct_compiler *c, int index) {
  struct ct_net_step *last = NULL;
  for (size_t i = 0; i < c->steps; ++i) {
    struct ct_net_step *s = &c->step[i];
    if (!s->looks && frees_of(c, s, index) && is_needed(c, s) && (!last || s->order >= last->order))
      last = s;
  }
  if (last) *frees_of(c, last, index) = true;
}

/* What makes something again is far in front of other gradients: it reads groups, or unpacks for
 * itself. */
static void again_from(struct ct_compiler *c, int value, int index, enum ct_keep way,
                       bool followed) {
  for (size_t i = 0, steps = c->steps; i < steps && !c->error; ++i) {
    if (!ct_step_makes_again(&c->step[i]) || !ct_step_reads_instead(&c->step[i], value, CT_PENDING))
      continue;
    const int order = c->step[i].order;
    int own = CT_NO_VALUE;
    ct_step_reads_instead(&c->step[i], CT_PENDING, value);
    if (reads_groups(c, &c->step[i], value))
      own = ct_value_of_groups(c, value, index);
    else
      own = unpack(c, value, index, way, order, c->step[i].node);
    if (c->error) return;
    ct_step_reads_instead(&c->step[i], value, own);
    if (followed) ct_bound_derived(c, value, i);
  }
}

static void unpack_all(struct ct_compiler *c, int value, int index, enum ct_keep way) {
  const bool followed = ct_bound_follows(c, value);
  int copy = CT_NO_VALUE;
  again_from(c, value, index, way, followed);
  if (c->error || ct_readers_of(c, value).first == CT_FROM_START) return;
  read_groups(c, value, index);
  const struct ct_readers r = ct_readers_of(c, value);
  if (r.first != CT_FROM_START && !c->error) {
    copy = unpack(c, value, index, way, r.first, c->step[r.step].node);
    if (!c->error) read_instead(c, value, copy);
  }
  if (!followed || c->error) return;
  ct_bound_sums(c, value, copy);
  struct ct_kept *k = &c->out->kept[c->out->kepts - 1];
  if (!c->error && k->sums == 0) ct_bound_means(c, value, k);
}

/* Whether nobody in front reads what a tile program makes, as with masks, and that surely stores
 * groups itself: then it needs no place. (Who makes a mask of it has the same order.) */
static bool is_packed_alone(const struct ct_compiler *c, int value, const struct ct_readers *r) {
  const struct ct_val *v = &c->value[value];
  const struct ct_net_step *s = &c->step[v->step];
  size_t outside = 0;
  for (size_t i = 0; i < c->values; ++i)
    outside += c->value[i].place == CT_VALUE_EXTERNAL;
  uint64_t words = (uint64_t)CT_GROUPS_TILES * CT_TILE;
  for (unsigned i = 0; i < s->tile.ins; ++i)
    words += words_of(c, s->in[i], false);
  return s->kind == CT_STEP_TILES && !r->in_front && ct_reads_groups(v->rows) &&
         s->tile.ops <= SHORT && outside < CT_EXTERNALS &&
         2 * words + OTHER_WORDS <= c->options->spm_words;
}

static void compress(struct ct_compiler *c, int value, const struct ct_readers *r,
                     enum ct_keep way) {
  const int index = index_of(c, value);
  if (!c->error) note_kept(c, value, index);
  if (c->error) return;
  struct ct_net_step *s =
      ct_step_between(c, CT_STEP_PACK, c->step[c->value[value].step].node, r->front + 1);
  s->x = value;
  s->way = way;
  s->kept = (uint32_t)c->out->kepts;
  s->y = ct_step_makes(c, s, index);
  if (c->error) return;
  c->value[value].packed = (int)(s - c->step);
  const bool alone = is_packed_alone(c, value, r);
  unpack_all(c, value, index, way);
  const int order = c->error ? 0 : front_of_readers(c, index, r->front + 1);
  if (!c->error) ct_bound_counts(c, value, index, order);
  if (!c->error) choose_freeing(c, index);
  if (alone) memset(c->value[value].need, 0, sizeof c->value[value].need);
}

static void refuse(struct ct_compiler *c, int value) {
  const char *name = name_of(c, value);
  if (!c->options->compress)
    ct_compile_fail(
        c, CT_ERR_UNSUPPORTED,
        "what %s makes is to be kept compressed, which this device cannot do: it was made "
        "without that. Keep it in HBFP8",
        name);
  else if (c->options->members)
    ct_compile_fail(c, CT_ERR_UNSUPPORTED,
                    "what %s makes is to be kept compressed: networks of several members cannot do "
                    "that",
                    name);
}

/* ---- All ----------------------------------------------------------------------------------- */

bool ct_is_made_again(struct ct_compiler *c, int value, const struct ct_readers *r) {
  const struct ct_val *v = &c->value[value];
  const bool few = !v->whole && (v->format == CT_FORMAT_RECOMPUTE || reads_one(c, value));
  return few && !r->again && can_be_made_again(c, value, r->first);
}

static void one(struct ct_compiler *c, int value, enum ct_format format) {
  const struct ct_readers r = ct_readers_of(c, value);
  if (!ct_value_is_kept(c, value, &r)) return;
  /* What others are made of again would have to be there when gradients begin. Whole numbers take
   * less than what they are made of. */
  if (ct_is_made_again(c, value, &r)) {
    make_again(c, value, &r);
    return;
  }
  if (format == CT_FORMAT_RECOMPUTE) return;
  const enum ct_keep way = way_of(&c->value[value], &r);
  if (way == CT_KEEPS) return;
  refuse(c, value);
  if (!c->error) compress(c, value, &r, way);
}

/* From the last value to the first: what is made again may need others that are. */
static void all(struct ct_compiler *c, enum ct_format format) {
  spread(c);
  if (format == CT_FORMAT_COMPRESSED && c->options->masks) ct_compile_gates(c);
  for (size_t i = c->values; i-- > 0 && !c->error;)
    if (c->value[i].format == format) one(c, (int)i, format);
  if (!c->error) close_ranks(c);
  if (!c->error) ct_compile_made(c);
}

static bool asks(const struct ct_compiler *c, enum ct_format format) {
  for (size_t i = 0; i < c->values; ++i)
    if (c->value[i].format == format) return true;
  return false;
}

static void place_row(const struct ct_compiler *c, struct ct_mat *row) {
  struct ct_seat *at = &row->keep[CT_KEEP_F32];
  if (row->cols) *at = c->value[at->at].keep[CT_KEEP_F32];
}

void ct_compile_kept_places(struct ct_compiler *c) {
  for (size_t i = 0; i < c->out->kepts; ++i) {
    struct ct_kept *k = &c->out->kept[i];
    k->index = c->value[k->index.at].keep[CT_KEEP_F32];
    place_row(c, &k->zeros);
    place_row(c, &k->largest);
    for (unsigned j = 0; j < k->sums; ++j) {
      place_row(c, &k->sum[j].delta);
      place_row(c, &k->sum[j].magnitudes);
    }
  }
}

void ct_compile_kept(struct ct_compiler *c) {
  if (asks(c, CT_FORMAT_RECOMPUTE)) all(c, CT_FORMAT_RECOMPUTE);
  if (!c->error && asks(c, CT_FORMAT_COMPRESSED)) all(c, CT_FORMAT_COMPRESSED);
}
