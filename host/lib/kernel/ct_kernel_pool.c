/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pooling, forward and backward.
 *
 * A pass over an image goes by runs: up to sixteen pixels of a line that see the same taps
 * (ct_pool_axis.h). For each, the pieces of lines that its taps show are loaded; a tap is then one
 * VL, with a stride between rows. Results are FP32 rows. Other ways of keeping are made from these
 * by a tile program behind it.
 *
 *   forward            the largest, or the sum of elements over the size of the window
 *   maximum, backward  first, for each window, which place has its maximum: the largest of
 *                      equal(x, y) * (taps - tap), so that the first of equals counts; 0: none has.
 *                      Then, for each element, the sum of the gradients of the windows that have
 *                      theirs there. The first half may be done in forward, which knows x and y
 *                      as they were compared
 *   average, backward  for each element the sum of the gradients of its windows over their sizes
 *
 * HBFP8 is read as it is if lines and images begin with tiles; else it is made FP32 first. What has
 * no place of its own lies in scratch.
 */
#include <stdlib.h>

#include "coltrain/coltrain.h"
#include "ct_kernel_program.h"
#include "ct_pool_axis.h"

enum { MOST_COMMANDS = 400, REGS_OF_LOADS = 8 };
enum pass { LARGEST, MEAN, FIND, GIVE_LARGEST, GIVE_MEAN };

/* A matrix that is read: through the taps, or at the position itself. */
struct feed {
  const struct ct_mat *mat;
  enum ct_keep keep;
  uint32_t tensor, line, image; /* pixels */
  uint32_t at, words;           /* in a slot: where it begins; of a line */
};

struct pool {
  struct ct_vk v;
  const struct ct_pool *k;
  enum pass pass;
  bool lean; /* one slot of everything: a shorter program */
  struct ct_pool_axis y, x;
  struct feed feed[2], self; /* self.mat NULL: none */
  unsigned feeds;
  const struct ct_mat *target;
  uint32_t to, to_line, to_image;      /* tensor of rows, pixels */
  uint32_t run;                        /* pixels at most */
  uint32_t temp, loads, selfs, result; /* registers: in between, rings */
  uint32_t rings[REGS_OF_LOADS];       /* of which `loads` is one: of so many slots + 1 */
  uint32_t in, out;                    /* rings in the scratchpad */
  uint32_t slot_words;
  /* Under way. */
  struct ct_pool_class cy, cx;
  uint32_t first_plane, plane, cols, image, line, n, first_run;
  unsigned taps; /* done of a run */
  struct ct_ref slot;
};

enum { T_SUM, T_EQUAL, T_GIVEN, TEMPS };
static struct ct_ref temp(const struct pool *s, unsigned i) {
  return ct_tile_of(s->v.l, s->temp, i, 0);
}

static bool gives(enum pass pass) {
  return pass == GIVE_LARGEST || pass == GIVE_MEAN;
}

/* ---- Loading ---- */

/* Pixels of a plane, from `row` on, to words; returns where the first is. */
static struct ct_ref load(struct pool *s, const struct feed *f, uint32_t row, uint32_t rows,
                          struct ct_ref to) {
  struct ct_lower *l = s->v.l;
  if (f->keep == CT_KEEP_F32) {
    ct_vk_ld_rows(&s->v, f->tensor, s->plane, row, rows, to);
    return to;
  }
  const uint32_t skip = row % CT_TILE, tiles = ct_tiles(skip + rows);
  ct_vk_ld(&s->v, f->keep, ct_tiles_of(l, f->tensor, s->plane, 1, row / CT_TILE, tiles), to, tiles);
  return ct_behind(to, skip);
}

/* Columns that the taps of a run show: from the leftmost on. */
static uint32_t leftmost(const struct ct_pool_class *c) {
  uint32_t x = UINT32_MAX;
  for (unsigned i = 0; i < c->taps; ++i)
    if (c->tap[i].at < x) x = c->tap[i].at;
  return x;
}

static uint32_t pixels(const struct ct_pool_class *c, uint32_t n) {
  const uint32_t left = leftmost(c);
  uint32_t right = left;
  for (unsigned i = 0; i < c->taps; ++i)
    if (c->tap[i].at > right) right = c->tap[i].at;
  return right - left + (n - 1) * c->source_step + 1;
}

static struct ct_ref load_line(struct pool *s, const struct feed *f, unsigned ty, uint32_t run) {
  const struct ct_pool_class *cx = &s->cx, *cy = &s->cy;
  const uint32_t line = cy->tap[ty].at + s->line * cy->source_step;
  const uint32_t column = leftmost(cx) + run * s->run * cx->source_step;
  return load(s, f, s->image * f->image + line * f->line + column, pixels(cx, s->n),
              ct_behind(s->slot, f->at + ty * f->words));
}

static uint32_t target_row(const struct pool *s, uint32_t run) {
  return s->image * s->to_image + (s->cy.first + s->line * s->cy.step) * s->to_line + s->cx.first +
         run * s->run * s->cx.step;
}

static struct ct_ref into_register(struct pool *s, const struct feed *f, uint32_t ring,
                                   struct ct_ref words, uint32_t stride) {
  const struct ct_ref reg = ct_next(s->v.l, ring);
  ct_vl(s->v.l, &(struct ct_vmove){.reg = reg,
                                   .spm = words,
                                   .mode = ct_vk_vl_mode(f->keep),
                                   .rows = s->n,
                                   .stride = stride * ct_vk_row_words(f->keep)});
  return reg;
}

/* ---- What a tap adds ---- */

static void va(struct pool *s, struct ct_va c) {
  c.rows = s->n;
  c.cols = s->cols;
  ct_va(s->v.l, &c);
}

/* The scale of a window of so many lines and columns. */
static uint32_t share(const struct pool *s, uint32_t lines, uint32_t columns) {
  const uint32_t all = s->k->shape.ky * s->k->shape.kx;
  return ct_vk_bits(1.0f / (float)(s->k->count_pad ? all : lines * columns));
}

/* x: registers of the feeds. first: nothing is in the sum yet. */
static void add_tap(struct pool *s, const struct ct_ref *x, struct ct_ref self, struct ct_ref to,
                    unsigned ty, unsigned tx) {
  const struct ct_ref sum = temp(s, T_SUM), equal = temp(s, T_EQUAL);
  const bool first = s->taps++ == 0;
  const unsigned more = first ? CT_VA_NONE : CT_VA_TILE;
  const uint32_t place = s->cy.tap[ty].tap * s->x.taps + s->cx.tap[tx].tap;
  const uint32_t score = ct_vk_bits((float)(s->y.taps * s->x.taps - place));
  switch (s->pass) {
    case LARGEST:
      va(s, (struct ct_va){.to = to, .a = x[0], .q = sum, .c = more, .fn = CT_VA_MAX});
      return;
    case MEAN:
    case GIVE_MEAN:
      va(s, (struct ct_va){.to = to,
                           .a = x[0],
                           .b = CT_VA_SCALAR,
                           .sb = share(s, s->cy.tap[ty].size, s->cx.tap[tx].size),
                           .q = sum,
                           .c = more});
      return;
    case FIND:
      va(s, (struct ct_va){.to = equal, .a = x[0], .q = self, .c = CT_VA_TILE, .fn = CT_VA_EQUAL});
      va(s, (struct ct_va){.to = to,
                           .a = equal,
                           .b = CT_VA_SCALAR,
                           .sb = score,
                           .q = sum,
                           .c = more,
                           .fn = CT_VA_MAX});
      return;
    default:
      va(s,
         (struct ct_va){.to = equal, .a = x[0], .c = CT_VA_SCALAR, .sc = score, .fn = CT_VA_EQUAL});
      va(s, (struct ct_va){.to = first ? to : temp(s, T_GIVEN),
                           .a = x[1],
                           .q = equal,
                           .c = CT_VA_TILE,
                           .fn = CT_VA_SELECT});
      if (!first) va(s, (struct ct_va){.to = to, .a = temp(s, T_GIVEN), .q = sum, .c = CT_VA_TILE});
  }
}

/* ---- A run ---- */

static void store_run(struct pool *s, struct ct_ref reg, uint32_t row, uint32_t n, uint32_t step) {
  struct ct_lower *l = s->v.l;
  const struct ct_ref out = ct_next(l, s->out);
  ct_vs(l, &(struct ct_vmove){.reg = reg, .spm = out, .rows = n});
  ct_st(l, &(struct ct_dma){.dram = ct_tiles_of(l, s->to, s->plane, 1, row, (n - 1) * step + 1),
                            .spm = out,
                            .nb = (step == 1 ? n : 1) * CT_F32_ROW_UNITS,
                            .n1 = step == 1 ? 1 : n,
                            .d1 = (int32_t)(step * CT_F32_ROW_UNITS),
                            .s1 = CT_F32_ROW_UNITS});
}

static void taps_of_run(struct pool *s, struct ct_ref to, struct ct_ref self,
                        struct ct_ref line[][2]) {
  const struct ct_pool_class *cx = &s->cx;
  const unsigned all = s->cy.taps * cx->taps;
  s->taps = 0;
  for (unsigned ty = 0; ty < s->cy.taps; ++ty)
    for (unsigned tx = 0; tx < cx->taps; ++tx) {
      struct ct_ref x[2] = {{.space = 0}};
      for (unsigned f = 0; f < s->feeds; ++f) {
        const uint32_t skip = (cx->tap[tx].at - leftmost(cx)) * ct_vk_row_words(s->feed[f].keep);
        x[f] =
            into_register(s, &s->feed[f], s->loads, ct_behind(line[ty][f], skip), cx->source_step);
      }
      add_tap(s, x, self, s->taps + 1 == all ? to : temp(s, T_SUM), ty, tx);
    }
}

static void one_run(void *kernel, uint32_t i) {
  struct pool *s = kernel;
  struct ct_lower *l = s->v.l;
  const uint32_t run = s->first_run + i, row = target_row(s, run);
  const struct ct_ref to = ct_next(l, s->result);
  struct ct_ref line[CT_POOL_TAPS][2], self = {.space = 0};
  if (s->cy.taps == 0 || s->cx.taps == 0) {
    va(s, (struct ct_va){.to = to});
    store_run(s, to, row, s->n, s->cx.step);
    return;
  }
  s->slot = ct_next(l, s->in);
  for (unsigned ty = 0; ty < s->cy.taps; ++ty)
    for (unsigned f = 0; f < s->feeds; ++f)
      line[ty][f] = load_line(s, &s->feed[f], ty, run);
  if (s->self.mat) {
    const struct ct_ref words = load(s, &s->self, row, s->n, ct_behind(s->slot, s->self.at));
    self = into_register(s, &s->self, s->selfs, words, 1);
  }
  taps_of_run(s, to, self, line);
  store_run(s, to, row, s->n, s->cx.step);
}

/* ---- Loops ---- */

static void one_line(void *kernel, uint32_t i) {
  struct pool *s = kernel;
  s->line = i;
  ct_repeat(s->v.l, s->n == s->run ? s->cx.count / s->run : 1, one_run, s);
}

static void one_image(void *kernel, uint32_t i) {
  struct pool *s = kernel;
  s->image = i;
  ct_repeat(s->v.l, s->cy.count, one_line, s);
}

static void one_plane(void *kernel, uint32_t p) {
  struct pool *s = kernel;
  s->plane = s->first_plane + p;
  ct_repeat(s->v.l, s->k->shape.images, one_image, s);
}

/* So many registers that they come round with runs: programs are short then. */
static uint32_t loads_of(const struct pool *s) {
  const uint32_t uses = s->cy.taps * s->cx.taps * s->feeds;
  uint32_t slots = REGS_OF_LOADS;
  while (slots > 1 && uses % slots)
    --slots;
  return slots;
}

static void one_class(struct pool *s, uint32_t planes) {
  const unsigned first = CT_VK_FIRST_REG + TEMPS;
  const uint32_t whole = s->cx.count / s->run, rest = s->cx.count % s->run;
  uint32_t *ring = &s->rings[loads_of(s) - 1];
  if (*ring == 0) *ring = ct_reg_ring(s->v.l, "loads", first, loads_of(s));
  s->loads = *ring;
  s->n = s->run;
  s->first_run = 0;
  if (whole) ct_repeat(s->v.l, planes, one_plane, s);
  s->n = rest;
  s->first_run = whole;
  if (rest) ct_repeat(s->v.l, planes, one_plane, s);
}

/* Rows behind the last one. */
static void padding(void *kernel, uint32_t p) {
  struct pool *s = kernel;
  const struct ct_ref to = ct_next(s->v.l, s->result);
  s->plane = s->first_plane + p;
  s->n = CT_TILE - s->target->rows % CT_TILE;
  va(s, (struct ct_va){.to = to});
  store_run(s, to, s->target->rows, s->n, 1);
}

static void some_planes(struct pool *s, uint32_t planes) {
  s->cy = (struct ct_pool_class){.count = 0};
  while (ct_pool_next(&s->y, &s->cy)) {
    s->cx = (struct ct_pool_class){.count = 0};
    while (ct_pool_next(&s->x, &s->cx))
      one_class(s, planes);
  }
  if (s->target->rows % CT_TILE) ct_repeat(s->v.l, planes, padding, s);
}

static void all_planes(struct pool *s) {
  const uint32_t whole = s->target->cols / CT_TILE;
  s->first_plane = 0;
  s->cols = CT_TILE;
  if (whole) some_planes(s, whole);
  s->first_plane = whole;
  s->cols = s->target->cols % CT_TILE;
  if (s->cols) some_planes(s, 1);
}

/* ---- Places ---- */

/* Pixels of a line that a run of n sees at most. */
static uint32_t width(const struct pool *s, uint32_t n) {
  struct ct_pool_class c = {.count = 0};
  uint32_t most = 1;
  while (ct_pool_next(&s->x, &c)) {
    const uint32_t w = c.taps ? pixels(&c, n < c.count ? n : c.count) : 0;
    if (w > most) most = w;
  }
  return most;
}

static uint32_t feed_words(const struct feed *f, uint32_t pixels_of_line) {
  return f->keep == CT_KEEP_F32 ? pixels_of_line * CT_F32_ROW_UNITS
                                : ct_tiles(pixels_of_line + CT_TILE - 1) * CT_TILE;
}

static uint32_t slot_words(struct pool *s, uint32_t n) {
  uint32_t words = 0;
  for (unsigned f = 0; f < s->feeds; ++f) {
    s->feed[f].at = words;
    s->feed[f].words = feed_words(&s->feed[f], width(s, n));
    words += s->feed[f].words * s->y.taps;
  }
  s->self.at = words;
  return s->self.mat ? words + feed_words(&s->self, n) : words;
}

static void open_feed(struct pool *s, struct feed *f) {
  ct_vk_keep(f->mat, &f->keep);
  f->tensor = f->keep == CT_KEEP_F32 ? ct_vk_rows_tensor(&s->v, f->mat, false)
                                     : ct_vk_tensor(&s->v, f->mat, f->keep, false);
}

static void place(struct pool *s) {
  struct ct_lower *l = s->v.l;
  const uint32_t slots = s->lean ? 1 : 2, out = CT_TILE * CT_F32_ROW_UNITS;
  for (unsigned f = 0; f < s->feeds; ++f)
    open_feed(s, &s->feed[f]);
  if (s->self.mat) open_feed(s, &s->self);
  s->to = ct_vk_rows_tensor(&s->v, s->target, true);
  s->temp = ct_reg_tensor(l, "in between", CT_VK_FIRST_REG, TEMPS);
  s->selfs = ct_reg_ring(l, "own", CT_VK_FIRST_REG + TEMPS + REGS_OF_LOADS, 1);
  s->result = ct_reg_ring(l, "results", CT_VK_FIRST_REG + TEMPS + REGS_OF_LOADS + 1, slots);
  ct_vk_carriers(&s->v, CT_VK_FIRST_REG);
  for (s->run = CT_TILE;
       s->run > 1 && ct_vk_left(&s->v) < (uint64_t)slots * (slot_words(s, s->run) + out);)
    s->run /= 2;
  s->in = ct_spm_ring(l, "in", slot_words(s, s->run), slots);
  s->out = ct_spm_ring(l, "out", out, slots);
}

/* ---- A pass ---- */

/* What pooling works with: FP32 where there is some, else HBFP8 as it is, else FP32 in scratch. */
struct mats {
  struct ct_mat x, y, dx, dy, places;
};

static void set_axes(struct pool *s) {
  const struct ct_window_shape *p = &s->k->shape;
  const bool back = gives(s->pass);
  s->y = (struct ct_pool_axis){p->h, p->oh, p->ky, p->sy, p->dy, p->top, back};
  s->x = (struct ct_pool_axis){p->w, p->ow, p->kx, p->sx, p->dx, p->left, back};
  s->to_line = back ? p->w : p->ow;
  s->to_image = back ? p->h * p->w : p->oh * p->ow;
}

static void set_feeds(struct pool *s, const struct mats *m) {
  const struct ct_window_shape *p = &s->k->shape;
  const bool back = gives(s->pass);
  s->feeds = s->pass == GIVE_LARGEST ? 2 : 1;
  s->feed[0].mat = s->pass == GIVE_LARGEST ? &m->places : s->pass == GIVE_MEAN ? &m->dy : &m->x;
  if (s->feeds > 1) s->feed[1].mat = &m->dy;
  if (s->pass == FIND) s->self.mat = &m->y;
  s->target = s->pass == FIND ? &m->places : back ? &m->dx : &m->y;
  for (unsigned f = 0; f < s->feeds; ++f) {
    s->feed[f].line = back ? p->ow : p->w;
    s->feed[f].image = back ? p->oh * p->ow : p->h * p->w;
  }
}

/* HBFP8 that is read as it is: runs have to begin alike in their tiles. */
static bool runs_fit(const struct pool *s) {
  bool hbfp8 = s->self.mat && s->self.keep != CT_KEEP_F32;
  for (unsigned f = 0; f < s->feeds; ++f)
    hbfp8 |= s->feed[f].keep != CT_KEEP_F32;
  return !hbfp8 || s->run == CT_TILE;
}

static void member(void *kernel, uint32_t i) {
  (void)i;
  all_planes(kernel);
}

static int make_pass(struct pool *s, const struct mats *m, const struct ct_room *room,
                     struct ct_codes *codes, const struct ct_why *why) {
  const int err = ct_vk_start(&s->v, "pooling", room, why);
  if (err) return err;
  set_axes(s);
  set_feeds(s, m);
  place(s);
  if (!runs_fit(s))
    ct_lower_fail(s->v.l, CT_ERR_NO_SPACE, "pooling of HBFP8 in a window of %u words",
                  room->spm_words);
  else
    ct_members(s->v.l, member, s);
  return ct_vk_end(&s->v, codes);
}

/* Appends a pass. */
static int add_pass(const struct ct_pool *k, enum pass pass, const struct mats *m,
                    const struct ct_room *room, struct ct_codes *codes, const struct ct_why *why) {
  struct ct_codes more;
  struct pool roomy = {.k = k, .pass = pass}, lean = {.k = k, .pass = pass, .lean = true};
  int err = make_pass(&roomy, m, room, &more, why);
  if (err == CT_ERR_NO_SPACE) err = make_pass(&lean, m, room, &more, why);
  return err ? err : ct_codes_append(codes, &more, why);
}

/* ---- Other ways of keeping ---- */

/* A tile program that copies. */
static int add_copy(const struct ct_mat *from, const struct ct_mat *to, const struct ct_room *room,
                    struct ct_codes *codes, const struct ct_why *why) {
  struct ct_codes more;
  const struct ct_tilewise copy = {.rows = from->rows,
                                   .cols = from->cols,
                                   .in = {{.mat = *from}},
                                   .out = {{.mat = *to, .value = 0}},
                                   .ins = 1,
                                   .outs = 1};
  const int err = ct_kernel_tilewise(&copy, room, &more, why);
  return err ? err : ct_codes_append(codes, &more, why);
}

/* What is FP32 lies in m; all other ways of keeping are made of it. */
static int add_others(const struct ct_mat *m, const struct ct_mat *all, const struct ct_room *room,
                      struct ct_codes *codes, const struct ct_why *why) {
  struct ct_mat others = *all;
  others.keep[CT_KEEP_F32].reg = 0;
  enum ct_keep keep;
  return ct_vk_keep(&others, &keep) ? add_copy(m, &others, room, codes, why) : CT_OK;
}

/* ---- Scratch ---- */

struct scratch {
  const struct ct_room *room;
  uint64_t used;
};

static struct ct_mat in_scratch(struct scratch *s, const struct ct_mat *m) {
  struct ct_mat f32 = {.rows = m->rows, .cols = m->cols};
  f32.keep[CT_KEEP_F32] = (struct ct_seat){s->room->scratch.reg ? s->room->scratch.reg : 1,
                                           s->room->scratch.at + (uint32_t)s->used};
  s->used += ct_mat_units(m->rows, m->cols, CT_KEEP_F32);
  return f32;
}

/* Read as it is: FP32, or HBFP8 whose images and lines (every step-th) begin with tiles. */
static bool as_it_is(const struct ct_mat *m, bool direct, uint32_t line, uint32_t step,
                     uint32_t lines) {
  return m->keep[CT_KEEP_F32].reg ||
         (direct && (uint64_t)line * step % CT_TILE == 0 && (uint64_t)line * lines % CT_TILE == 0);
}

/* Whether the places of maxima are to be found. */
static bool finds(const struct ct_pool *k, bool back) {
  return k->kind == CT_POOL_MAX && back == (k->places.rows == 0);
}

/* Where things are: what is not as it should be gets a place in scratch. */
static void find_mats(const struct ct_pool *k, bool back, bool direct, struct scratch *s,
                      struct mats *m) {
  const struct ct_window_shape *p = &k->shape;
  const bool largest = k->kind == CT_POOL_MAX;
  *m = (struct mats){.x = k->x, .y = k->y, .dx = k->dx, .dy = k->dy, .places = k->places};
  if (!back || finds(k, back))
    if (!as_it_is(&k->x, direct, p->w, p->sy, p->h)) m->x = in_scratch(s, &k->x);
  if (!back) {
    if (!k->y.keep[CT_KEEP_F32].reg) m->y = in_scratch(s, &k->y);
    if (k->places.rows && !k->places.keep[CT_KEEP_F32].reg) m->places = in_scratch(s, &k->places);
    return;
  }
  if (finds(k, back)) {
    m->places = in_scratch(s, &k->dy);
    if (!as_it_is(&k->y, direct, p->ow, 1, p->oh)) m->y = in_scratch(s, &k->y);
  } else if (largest && !as_it_is(&k->places, direct, p->ow, 1, p->oh)) {
    m->places = in_scratch(s, &k->places);
  }
  if (!as_it_is(&k->dy, direct, p->ow, 1, p->oh)) m->dy = in_scratch(s, &k->dy);
  if (!k->dx.keep[CT_KEEP_F32].reg) m->dx = in_scratch(s, &k->dx);
}

uint64_t ct_kernel_pool_scratch(const struct ct_pool *k, bool back) {
  const struct ct_room room = {.scratch = {.reg = 1}};
  struct scratch s = {&room, 1};
  struct mats m;
  find_mats(k, back, false, &s, &m);
  return s.used;
}

/* ---- All ---- */

static int check_shape(const struct ct_pool *k, const struct ct_why *why) {
  const struct ct_window_shape *p = &k->shape;
  const uint32_t taps = p->ky * p->kx;
  if (!p->images || !p->h || !p->w || !p->oh || !p->ow || !p->ky || !p->kx || !p->sy || !p->sx ||
      !p->dy || !p->dx)
    return ct_why(why, CT_ERR_ARG, "pooling: a size, step or dilation is 0");
  if (p->ky > CT_POOL_TAPS || p->kx > CT_POOL_TAPS ||
      taps * (k->kind == CT_POOL_MAX ? 5 : 2) > MOST_COMMANDS)
    return ct_why(why, CT_ERR_NO_SPACE,
                  "pooling: a window of %u x %u is too large for a program; a mean of whole images "
                  "is a sum of rows",
                  p->ky, p->kx);
  return CT_OK;
}

static int check_mat(const struct ct_pool *k, const struct ct_room *room, const struct ct_mat *m,
                     const char *what, const struct ct_why *why) {
  const struct ct_window_shape *p = &k->shape;
  const bool in = m == &k->x || m == &k->dx;
  const uint64_t rows = (uint64_t)p->images * (in ? p->h : p->oh) * (in ? p->w : p->ow);
  const struct ct_vk v = {.name = "pooling", .room = room, .why = why};
  if (rows > UINT32_MAX) return ct_why(why, CT_ERR_NO_SPACE, "pooling: %s has too many rows", what);
  return ct_vk_check(&v, m, what, (uint32_t)rows, k->x.cols ? k->x.cols : k->dx.cols);
}

static int check(const struct ct_pool *k, bool back, const struct ct_room *room,
                 const struct ct_why *why) {
  const bool maps = !back || finds(k, back);
  int err = check_shape(k, why);
  if (!err && maps) err = check_mat(k, room, &k->x, "x", why);
  if (!err && maps) err = check_mat(k, room, &k->y, "y", why);
  if (!err && k->places.rows) err = check_mat(k, room, &k->places, "places", why);
  if (!err && back) err = check_mat(k, room, &k->dx, "dx", why);
  if (!err && back) err = check_mat(k, room, &k->dy, "dy", why);
  return err;
}

/* Inputs that lie in scratch are made FP32. */
static int add_unpacked(const struct ct_mat *m, const struct ct_mat *given,
                        const struct ct_room *room, struct ct_codes *codes,
                        const struct ct_why *why) {
  const bool same = m->keep[CT_KEEP_F32].reg == given->keep[CT_KEEP_F32].reg;
  return same ? CT_OK : add_copy(given, m, room, codes, why);
}

static int forward(const struct ct_pool *k, const struct mats *m, const struct ct_room *room,
                   struct ct_codes *codes, const struct ct_why *why) {
  int err = add_unpacked(&m->x, &k->x, room, codes, why);
  if (!err) err = add_pass(k, k->kind == CT_POOL_MAX ? LARGEST : MEAN, m, room, codes, why);
  if (!err && finds(k, false)) {
    err = add_pass(k, FIND, m, room, codes, why);
    if (!err) err = add_others(&m->places, &k->places, room, codes, why);
  }
  return err ? err : add_others(&m->y, &k->y, room, codes, why);
}

static int backward(const struct ct_pool *k, const struct mats *m, const struct ct_room *room,
                    struct ct_codes *codes, const struct ct_why *why) {
  const bool largest = k->kind == CT_POOL_MAX;
  int err = add_unpacked(&m->dy, &k->dy, room, codes, why);
  if (!err && finds(k, true)) {
    err = add_unpacked(&m->x, &k->x, room, codes, why);
    if (!err) err = add_unpacked(&m->y, &k->y, room, codes, why);
    if (!err) err = add_pass(k, FIND, m, room, codes, why);
  } else if (!err && largest) {
    err = add_unpacked(&m->places, &k->places, room, codes, why);
  }
  if (!err) err = add_pass(k, largest ? GIVE_LARGEST : GIVE_MEAN, m, room, codes, why);
  return err ? err : add_others(&m->dx, &k->dx, room, codes, why);
}

static int attempt(const struct ct_pool *k, bool back, bool direct, const struct ct_room *room,
                   struct ct_codes *codes, const struct ct_why *why) {
  struct scratch s = {room, 1};
  struct mats m;
  find_mats(k, back, direct, &s, &m);
  if (s.used > 1 && (room->scratch.reg == 0 || s.used > room->scratch_units))
    return ct_why(why, CT_ERR_NO_SPACE, "pooling needs %llu units of scratch, there are %llu",
                  (unsigned long long)s.used, (unsigned long long)room->scratch_units);
  const int err = (back ? backward : forward)(k, &m, room, codes, why);
  if (err) ct_codes_free(codes);
  return err;
}

static int make(const struct ct_pool *k, bool back, const struct ct_room *room,
                struct ct_codes *codes, const struct ct_why *why) {
  *codes = (struct ct_codes){NULL, 0};
  int err = check(k, back, room, why);
  if (err) return err;
  err = attempt(k, back, true, room, codes, why);
  return err == CT_ERR_NO_SPACE ? attempt(k, back, false, room, codes, why) : err;
}

int ct_kernel_pool(const struct ct_pool *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why) {
  return make(k, false, room, codes, why);
}

int ct_kernel_pool_back(const struct ct_pool *k, const struct ct_room *room, struct ct_codes *codes,
                        const struct ct_why *why) {
  return make(k, true, room, codes, why);
}
