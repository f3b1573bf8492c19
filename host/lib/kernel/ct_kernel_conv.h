/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the convolution kernels. See ct_kernel.h.
 *
 *   ct_kernel_conv.c          what is asked for; forward; the gradient of the input with stride 1
 *   ct_kernel_conv_view.c     pixels that see a tensor through taps
 *   ct_kernel_conv_plan.c     how much of everything is in the scratchpad
 *   ct_kernel_conv_rows.c     products of pixels and weights
 *   ct_kernel_conv_drain.c    what becomes of a product
 *   ct_kernel_conv_made.c     what is made again meanwhile, for what becomes of it
 *   ct_kernel_conv_phases.c   the gradient of the input with other strides
 *   ct_kernel_conv_weights.c  the gradient of the weights
 */
#ifndef CT_KERNEL_CONV_H
#define CT_KERNEL_CONV_H

#include "ct_kernel_program.h"
#include "ct_tile.h"

/* Of the gradient of weights: it is not stored, but goes through what comes behind it. */
static inline bool ct_conv_joins(const struct ct_conv *k) {
  return k->after && k->weights.keep[CT_KEEP_F32].reg == 0;
}

/* ---- Pixels that see a tensor ---- */

/* Pixel (x, y) of an image of nx x ny sees at tap (i, j) what lies at (x * sx + x0 + i * dx,
 * y * sy + y0 + j * dy) of an image of w x h. flat: each pixel sees itself alone; images are a
 * matter of taste then, and so many pixels as suits a chunk. */
struct ct_conv_view {
  int32_t nx, ny, w, h, sx, sy, x0, y0, dx, dy, kx, ky;
  uint32_t rows, seen; /* pixels of all images: those that see, those that are seen */
  bool flat;
};

/* Taps and channel blocks that an MM walks over: nty lines of ntx taps of nb blocks, steps in all,
 * which begin at step k. */
struct ct_conv_seg {
  int32_t ty, tx, nty, ntx;
  uint32_t b0, nb, k, steps;
};

/* How taps and blocks are cut into those. */
struct ct_conv_cut {
  int32_t lines, taps;
  uint32_t blocks;          /* of a segment */
  uint32_t ny, nx, nb, all; /* segments along each, and in all */
};

/* Groups of 16 pixels of the tensor that is seen. */
struct ct_conv_span {
  uint32_t g0, groups;
};

/* Whether a walk can express it. name: for sentences. */
int ct_conv_view_check(const struct ct_conv_view *v, const char *name, const struct ct_why *why);
struct ct_conv_cut ct_conv_cut(const struct ct_conv_view *v, uint32_t cb, uint32_t most);
struct ct_conv_seg ct_conv_seg(const struct ct_conv_view *v, const struct ct_conv_cut *cut,
                               uint32_t cb, uint32_t i);
/* What rows [r0, r0 + rows) see through lines [ty, ty + nty) of taps. */
struct ct_conv_span ct_conv_span(const struct ct_conv_view *v, uint32_t r0, uint32_t rows,
                                 int32_t ty, int32_t nty);
/* The walk over a segment; words of a plane of channels. Where pixel r lies, seen from a slot that
 * begins with group g0 and block b0, and Pos, without images. */
struct ct_walk_shape ct_conv_walk(const struct ct_conv_view *v, const struct ct_conv_seg *seg,
                                  uint32_t plane);
int32_t ct_conv_a(const struct ct_conv_view *v, const struct ct_conv_seg *seg, uint32_t plane,
                  uint32_t r, const struct ct_conv_span *span, uint32_t b0);
uint32_t ct_conv_pos(const struct ct_conv_view *v, uint32_t r, uint32_t images);
/* Images that begin, of those that see and those that are seen, with a group. */
uint32_t ct_conv_period(const struct ct_conv_view *v);

/* ---- What becomes of a product ---- */

/* What is made on the way, an index unit of 16 tiles at a time (ct_kernel_conv_made.c). */
struct ct_conv_made {
  struct ct_vk *v;
  const struct ct_made *what; /* NULL: nothing is */
  struct ct_tile_plan plan;
  struct ct_tile_regs regs;
  struct ct_tile_run run;
  struct ct_vk_lane in[CT_TILE_INS];
  enum ct_keep keep;
  uint32_t tensor;           /* 0: it is not stored */
  uint32_t words, row_words; /* of an index unit's inputs, of a plane's rows */
  uint32_t in_ring, out_ring, row_ring;
  struct ct_ref in_slot, row_slot, out_slot;
};

/* Groups that are there, or under way: an index unit. first: rows of the plane are, too. in: what a
 * product's epilogue reads besides, of as many tiles. */
struct ct_conv_unit {
  uint32_t plane;
  bool first;
  struct ct_ref groups, rows, in;
};

int ct_conv_made_start(struct ct_conv_made *m, struct ct_vk *v, const struct ct_made *what,
                       uint32_t rows, uint32_t cols);
/* All that it takes: words, registers (those from `first` on). even: parts have an even number of
 * tiles. ahead: an index unit is loaded while two others are in use, outside of loops. */
enum { CT_CONV_AHEAD = 3 };
uint32_t ct_conv_made_words(const struct ct_conv_made *m);
unsigned ct_conv_made_regs(const struct ct_conv_made *m);
void ct_conv_made_rings(struct ct_conv_made *m, unsigned first, bool even, bool ahead);
/* Loads an index unit, from tile `group` of the plane on; first: of the plane, or since another
 * one. Then it is worked on: some of its tiles, which have so many in front of them: all parts of a
 * unit have as many. They are stored behind all that reads them, by a queue that knows that to be
 * over. */
struct ct_conv_unit ct_conv_made_load(struct ct_conv_made *m, uint32_t plane, uint32_t group,
                                      bool first);
void ct_conv_made_unit(struct ct_conv_made *m, const struct ct_conv_unit *unit);
void ct_conv_made_tiles(struct ct_conv_made *m, uint32_t tile, uint32_t tiles);
void ct_conv_made_store(struct ct_conv_made *m, struct ct_ref to, uint32_t tile, uint32_t tiles);
/* Where a tile of the unit is, in that part; whether it is that matrix. */
struct ct_ref ct_conv_made_at(const struct ct_conv_made *m, uint32_t part, uint32_t tile);
bool ct_conv_made_is(const struct ct_conv_made *m, const struct ct_mat *mat);

struct ct_conv_drain {
  unsigned first;
  struct ct_vk *v;
  struct ct_tilewise own; /* k, with value 0 as an input */
  const struct ct_tilewise *k;
  struct ct_tile_plan plan;
  struct ct_tile_regs regs, rest_regs;
  struct ct_tile_run run;
  bool together; /* the tiles of a block go by one command */
  struct ct_vk_lane in[CT_TILE_INS], out[CT_TILE_OUTS][CT_KEEPS];
  uint32_t in_words, out_words, row_words; /* of a tile, of a plane's rows */
  uint32_t in_ring, out_ring, row_ring, tiles;
  uint32_t ins; /* tiles of a slot of inputs */
  struct ct_ref in_slot;
  struct ct_conv_made made;
  /* Groups are stored when all tiles of an index unit are there, and read a unit at a time: a slot
   * of results has those of several blocks, which a plane has one behind the other from an index
   * unit's first on. */
  bool groups;
  uint32_t done;             /* tiles in the slot */
  bool ahead;                /* the caller loads units, outside of loops */
  bool begins;               /* a plane */
  struct ct_conv_unit *unit; /* loaded by the caller; NULL: when its first block comes */
  struct ct_ref out_slot;
};

/* product: value 0 is in ACC; else in a band of FP32 tiles in the scratchpad. Registers from
 * d->first on. */
int ct_conv_drain_start(struct ct_conv_drain *d, struct ct_vk *v, const struct ct_tilewise *k,
                        const struct ct_made *made, uint32_t rows, uint32_t cols, bool product);
/* For blocks of so many row tiles, and those that are left over of so many. Whoever takes several
 * neighbours of a ring takes always as many, so what is left over has rings of its own. */
uint32_t ct_conv_drain_words(const struct ct_conv_drain *d, uint32_t tiles, uint32_t slots);
void ct_conv_drain_rings(struct ct_conv_drain *d, uint32_t tiles, uint32_t rest, uint32_t slots);
/* Tiles of a slot of results. */
uint32_t ct_conv_drain_unit(const struct ct_conv_drain *d, uint32_t tiles);
void ct_conv_drain_plane(struct ct_conv_drain *d, uint32_t plane);
/* Where something is made on the way: what comes for an index unit, ahead of its blocks (`unit`).
 */
struct ct_conv_unit ct_conv_drain_load(struct ct_conv_drain *d, uint32_t plane, uint32_t group,
                                       bool first);
/* acc: a generation for each tile; or words of the band. */
void ct_conv_drain_block(struct ct_conv_drain *d, struct ct_ref acc, uint32_t plane, uint32_t group,
                         uint32_t rows);

/* ---- A product of pixels and weights ---- */

struct ct_conv_plan {
  bool stay;                   /* weights stay while all pixels pass; else they pass, too */
  bool whole;                  /* all channel blocks that are seen are there together */
  uint32_t tiles, rest, chunk; /* row tiles of a block, of what is left over; rows of a chunk */
  uint32_t planes;             /* weights that stay: of so many planes of the result */
  uint32_t groups;             /* of what is seen, in a slot */
  uint32_t x_slots, w_slots, out_slots;
  uint32_t steps; /* k steps of a segment at most */
};

struct ct_conv_rows {
  struct ct_vk v;
  struct ct_conv_drain drain;
  struct ct_conv_view view;
  struct ct_conv_plan plan;
  struct ct_conv_cut cut;
  bool input;             /* the gradient of the input: weights as they lie, taps the other way */
  uint32_t parts, cb, nb; /* groups of channels; blocks that are seen and made in each */
  uint32_t cols;          /* of the result */
  uint32_t x, w;          /* tensors */
  uint32_t x_groups, k, w_k, w_planes; /* of a plane of x; steps; pieces of a plane of weights */
  uint32_t x_ring, w_ring, acc, rest_acc;
  /* Under way. */
  uint32_t part, plane0, planes, r0, from, first, rows, chunk_rows, plane;
  unsigned unrolled; /* loops that are written out, from the outermost on */
  struct ct_conv_span span;
  struct ct_ref x_slot, w_slot, sum;
};

struct ct_conv_view ct_conv_forward_view(const struct ct_window_shape *s);
/* How what pixels see is kept. */
enum ct_keep ct_conv_keep(const struct ct_mat *m);
/* A kernel whose program is too long with loops is cut into jobs between their passes: it is tried
 * with more and more loops that are written out, until no job is too long. Returns what the last
 * attempt said. */
typedef int ct_conv_try(const struct ct_conv *k, unsigned unrolled, const struct ct_room *room,
                        struct ct_codes *codes, const struct ct_why *why);
int ct_conv_tries(ct_conv_try *attempt, unsigned most, const struct ct_conv *k,
                  const struct ct_room *room, struct ct_codes *codes, const struct ct_why *why);
int ct_conv_phases(const struct ct_conv *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why);
/* For the gradients of the input and of the weights. */
int ct_conv_check_input(const struct ct_vk *v, const struct ct_conv *k);
int ct_conv_check(const struct ct_vk *v, const struct ct_conv *k, const struct ct_conv_view *view);
/* Those of ct_vk_carriers(), and MM's. tile: a tensor whose first piece is a record. */
void ct_conv_carriers(struct ct_vk *v, uint32_t tile, unsigned va_reg);
int ct_conv_choose(struct ct_conv_rows *c);
void ct_conv_record(struct ct_conv_rows *c, unsigned unrolled);

#endif
