/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels: programs for single operators of networks. A kernel reads tensors in device memory,
 * works on pieces of them in the scratchpad and writes tensors to device memory; it makes its own
 * jobs, to be submitted in a row. Nothing but device memory lasts from one kernel to the next, so
 * the kernels of a network may be cut and mixed in any way.
 *
 * ---- Tensors ----
 *
 * A tensor is a matrix: its last dimension are the columns, all others together the rows. An image
 * in NHWC so has a row for each pixel and a column for each channel. It lies in planes of 16
 * columns, a plane in groups of 16 rows; so a piece is a tile of 16 x 16. Piece (plane p, group g)
 * is number p * groups + g. It is kept in one or several ways:
 *
 *   CT_KEEP_F32     a tile of 64 units: 16 rows of 16 FP32 numbers
 *   CT_KEEP_ROWS    a record of 17 units: HBFP8, an exponent for each row
 *   CT_KEEP_SQUARE  a record of 17 units: HBFP8, one exponent for the tile; it may be read
 *                   transposed
 *
 * Rows past the last one and columns past the last one are zeros in every way of keeping. Kernels
 * rely on it and see to it.
 *
 * Weights of a convolution are a matrix, too. Its columns are the outputs; its rows are what a
 * pixel of the output sees: taps line by line, in a tap the channel blocks of the input, in a block
 * its 16 channels (channels past the last one are rows of zeros). So piece (n, k) is what output
 * block n takes from step k of the product, transposed: forward reads it transposed. A linear layer
 * is a convolution of one tap on images of one pixel; one behind a flattened image is a convolution
 * whose kernel is as large as the image. A vector, such as a bias, is a matrix of one row.
 */
#ifndef CT_KERNEL_H
#define CT_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ct_prog.h"

enum ct_keep { CT_KEEP_F32, CT_KEEP_ROWS, CT_KEEP_SQUARE, CT_KEEPS };

/* Where something lies: units behind the address in argument r<reg>; reg 0: nowhere. */
struct ct_seat {
  unsigned reg;
  uint32_t at;
};

struct ct_mat {
  uint32_t rows, cols;
  unsigned narrow; /* what is written as HBFP8 has mantissas of 8 - narrow bits */
  struct ct_seat keep[CT_KEEPS];
  /* The index units of groups of compressed tiles (struct ct_pack), which are read instead where a
   * kernel says that it can: ct_reads_groups(). */
  struct ct_seat groups;
  bool free; /* that gives their pages back */
  /* What is written where groups are named, too: these of what it would be, kept so; ROWS or
   * SQUARE. bound_reg: as in struct ct_comp. Kernels of convolutions and tile programs can; others,
   * and these with CT_ERR_NO_SPACE, where index units do not fit, cannot. */
  enum ct_keep packed;
  unsigned bound_reg;
};

static inline uint32_t ct_mat_groups(const struct ct_mat *m) {
  return ct_tiles(m->rows);
}
static inline uint32_t ct_mat_planes(const struct ct_mat *m) {
  return ct_tiles(m->cols);
}
static inline uint32_t ct_keep_units(enum ct_keep keep) {
  return keep == CT_KEEP_F32 ? CT_F32_TILE_UNITS : CT_RECORD_UNITS;
}
/* Units of all of it, kept so. */
static inline uint64_t ct_mat_units(uint32_t rows, uint32_t cols, enum ct_keep keep) {
  return (uint64_t)ct_tiles(rows) * ct_tiles(cols) * ct_keep_units(keep);
}

/*
 * Who reads groups: index units have sixteen tiles side by side in each plane. LD changes between
 * groups and all else only when the one is through, so it brings two units at once, or one where
 * there are four at most; and the next ones while these are worked on, so there is room for twice
 * as many.
 */
enum { CT_GROUPS_TILES = 16 };
static inline bool ct_reads_groups(uint32_t rows) {
  return rows % (CT_GROUPS_TILES * CT_TILE) == 0;
}
static inline uint32_t ct_groups_at_once(uint32_t tiles) {
  enum { QUARTER = 4 };
  return tiles > QUARTER * CT_GROUPS_TILES ? 2 : 1;
}

/* What a kernel may use. */
struct ct_room {
  uint32_t spm_words; /* of the window */
  unsigned args;      /* arguments of the job are in r1..r<args> */
  uint64_t *work; /* where to add what building cost, in commands and comparisons; may be NULL */
  const struct ct_fused *group; /* jobs are for members of it (ct_lower.h), if they can be; NULL */
  struct ct_seat scratch;       /* what every kernel may write and nobody reads behind it */
  uint64_t scratch_units;       /* one at least; see ct_kernel_pool_scratch() */
};
/* The last register that may name a number: for members others take their place. */
static inline unsigned ct_room_numbers(const struct ct_room *room) {
  return room->group ? CT_NUM_ARGS : room->args;
}

/* ---- Tile by tile: element-wise operators, alone or behind a product ---- */

/*
 * A short program on tiles. Its values are numbered: first the inputs, then one for each operation
 * in order. Operations name values. Of all tensors tile (p, g) is worked on together. The last
 * value, and others that are named by outputs, are stored.
 */
enum ct_tile_fn {
  CT_TILE_ADD,    /* a + b */
  CT_TILE_SUB,    /* a - b */
  CT_TILE_MUL,    /* a * b */
  CT_TILE_DIV,    /* a * (1 / b) */
  CT_TILE_MAX,    /* the larger */
  CT_TILE_MIN,    /* the smaller */
  CT_TILE_SELECT, /* a where b > 0, else +0 */
  CT_TILE_EQUAL,  /* 1 where a == b, else +0 */
  CT_TILE_AXPB,   /* a * s + t */
  CT_TILE_RELU,
  CT_TILE_MAX_S,    /* the larger of a and s */
  CT_TILE_MIN_S,    /* the smaller of a and s */
  CT_TILE_SELECT_S, /* a where s > 0, else +0 */
  CT_TILE_EXP,
  CT_TILE_LOG,
  CT_TILE_RECIP,
  CT_TILE_RSQRT,
  CT_TILE_SQRT,
  CT_TILE_SIGMOID,
  CT_TILE_TANH,
  CT_TILE_ERF,
  CT_TILE_GELU,
  CT_TILE_SIGMOID_BACK, /* a: what sigmoid gave, b: the gradient of that */
  CT_TILE_TANH_BACK,    /* a: what tanh gave */
  CT_TILE_FNS
};

/* s and t: numbers, or arguments of the job that hold their bits. */
struct ct_tile_op {
  enum ct_tile_fn fn;
  unsigned a, b;
  float s, t;
  unsigned s_reg, t_reg; /* 0: s, t */
};

/* How an input is spread over the tiles. */
enum ct_spread {
  CT_SPREAD_NONE, /* it has a tile for each */
  CT_SPREAD_ROWS, /* a matrix of one row, the same for all rows */
  CT_SPREAD_COLS, /* a matrix of one column, the same for all columns; -0 becomes +0 */
  CT_SPREAD_ALL   /* a matrix of one number; the same */
};

struct ct_tile_in {
  struct ct_mat mat; /* one way of keeping is enough; FP32 is taken if there are several. Groups, if
                        it is not spread */
  enum ct_spread spread;
};

struct ct_tile_out {
  struct ct_mat mat; /* all its ways of keeping are written */
  unsigned value;
};

enum { CT_TILE_INS = 6, CT_TILE_OPS = 24, CT_TILE_OUTS = 4 };
struct ct_tilewise {
  uint32_t rows, cols; /* of all that is not spread */
  struct ct_tile_in in[CT_TILE_INS];
  struct ct_tile_op op[CT_TILE_OPS];
  struct ct_tile_out out[CT_TILE_OUTS];
  unsigned ins, ops, outs;
};
int ct_kernel_tilewise(const struct ct_tilewise *k, const struct ct_room *room,
                       struct ct_codes *codes, const struct ct_why *why);

/* ---- Windows that go over images: of convolutions and of pooling ---- */

struct ct_window_shape {
  uint32_t images, h, w, oh, ow;   /* lines and columns of input and output */
  uint32_t ky, kx, sy, sx, dy, dx; /* window, stride, dilation */
  uint32_t groups;                 /* of channels; pooling has none and does not look */
  int32_t top, left;               /* padding in front */
};

/* ---- Convolutions: linear layers, too ---- */

/*
 * y = conv(x, weights), then what `after` does with it: its value 0 is the product, its inputs from
 * 1 on are tensors, its outputs say where y goes. The product of groups less than 16 channels wide
 * takes weights with zeros outside the diagonal.
 *
 * Gradients: that of x from that of y and weights, with the same `after`; that of the weights, in
 * FP32, from x and that of y. x: CT_KEEP_ROWS or CT_KEEP_SQUARE; weights: CT_KEEP_SQUARE; y's
 * gradient: CT_KEEP_SQUARE. A gradient of weights that is kept in no way goes through `after`, such
 * as an update, unless groups share products; else that is not looked at. The sums of a
 * gradient of weights run over the pixels of all images in
 * ascending order, whatever the scratchpad holds, so the bits are the same on every device.
 */
/* A tile program of rows and of inputs that are groups; or no operation, what is in the groups. Its
 * only output is kept in one way, HBFP8. It is made where `after` reads that, tile by tile. The
 * gradient of an input can do so if strides are 1. That of weights can read x so, if there is no
 * operation and each group has to be loaded once. CT_ERR_NO_SPACE where that or a window does not
 * allow it, or unpacking in front is faster. */
struct ct_made {
  struct ct_tilewise k;
  bool stored; /* it is written, too, for others */
};
struct ct_conv {
  struct ct_window_shape shape;
  struct ct_mat x, weights, y; /* inputs have the keeps that are read */
  const struct ct_tilewise *after;
  const struct ct_made *made; /* NULL: nothing */
};
/* Groups of channels that are products of their own: pieces of weights are those of such a group.
 */
uint32_t ct_conv_parts(const struct ct_conv *k);
int ct_kernel_conv(const struct ct_conv *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why);
int ct_kernel_conv_input(const struct ct_conv *k, const struct ct_room *room,
                         struct ct_codes *codes, const struct ct_why *why);
int ct_kernel_conv_weights(const struct ct_conv *k, const struct ct_room *room,
                           struct ct_codes *codes, const struct ct_why *why);

/* ---- Pooling ---- */

enum ct_pool_kind { CT_POOL_MAX, CT_POOL_AVERAGE };

/* y from x, and x's gradient dx from dy; the largest needs x and y for that (the first of equals
 * gets it), or `places` of y's shape, which forward has made besides y: the number of taps less the
 * tap that the largest is behind, or 0 where none is. FP32 or HBFP8 in, all ways of keeping out.
 */
struct ct_pool {
  enum ct_pool_kind kind;
  bool count_pad; /* averages: padding counts */
  struct ct_window_shape shape;
  struct ct_mat x, y, dx, dy;
  struct ct_mat places; /* rows 0: left out */
};
int ct_kernel_pool(const struct ct_pool *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why);
/* Units of scratch that are always enough. Less will do where HBFP8 that is read has lines and
 * images of whole tiles; none but the first where all is FP32 (one more FP32 y for the gradient of
 * a maximum). */
uint64_t ct_kernel_pool_scratch(const struct ct_pool *k, bool back);
int ct_kernel_pool_back(const struct ct_pool *k, const struct ct_room *room, struct ct_codes *codes,
                        const struct ct_why *why);

/* ---- Along rows and columns ---- */

/* y (one row) = scale * the sum of x's rows; with `times`, of x's rows times those of `times`,
 * with `less`, x less that row first; with `squares`, of squares, with `magnitudes` of those. Sums
 * are made group by group in ascending order, then over the 16 rows by halving: 8, 4, 2, 1. With
 * segments (images of `segment` rows), y has a row for each. Without them x may be groups, and
 * `too`, a row, scale * the sum of the rows of `times`, made in the same pass. With `zeros` alone y
 * says how many of x's numbers are 0, column by column, and `too` the largest magnitudes. */
struct ct_sum_rows {
  struct ct_mat x, times, less, y, too; /* rows 0: left out */
  bool squares, magnitudes, zeros;
  uint32_t segment; /* 0: all rows together */
  float scale;
};
int ct_kernel_sum_rows(const struct ct_sum_rows *k, const struct ct_room *room,
                       struct ct_codes *codes, const struct ct_why *why);

/* y (one column) = scale * the sum of x's columns; `times`, `less` (a column, -0 counts as +0),
 * `squares` and `too` as above. Column c is added to partial sum c mod 16, in ascending order, then
 * halving as above. */
struct ct_sum_cols {
  struct ct_mat x, times, less, y, too; /* rows 0: left out */
  bool squares;
  float scale;
};
int ct_kernel_sum_cols(const struct ct_sum_cols *k, const struct ct_room *room,
                       struct ct_codes *codes, const struct ct_why *why);

/* dx = scale * dy, each row of dy for a segment of so many rows: the gradient of a mean of rows. */
struct ct_spread_rows {
  struct ct_mat dy, dx;
  uint32_t segment;
  float scale;
};
int ct_kernel_spread_rows(const struct ct_spread_rows *k, const struct ct_room *room,
                          struct ct_codes *codes, const struct ct_why *why);

/* Rows of x go to other places in y, both FP32. For all i below n, three loops, row `from_row` plus
 * what i times `from` add up to becomes row `to_row` plus i times `to`; what is repeated has a step
 * of 0. All planes of x move alike, to those of y; or `planes` of them do, and steps may lead into
 * other planes: those are ct_move_plane() rows away. turn: the rows of the innermost loop become
 * columns of y, and column j of x becomes row j times to[2]. Rows of y that are not named stay, but
 * those past the last become zeros. */
struct ct_move {
  struct ct_mat x, y;
  uint32_t n[3], from[3], to[3], from_row, to_row;
  uint32_t planes; /* 0: all */
  bool turn;
};
static inline uint32_t ct_move_plane(uint32_t rows) {
  return ct_tiles(rows) * CT_TILE;
}
int ct_kernel_move(const struct ct_move *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why);

/* So many records, shared by square, each turned: from and to so many units behind CT_COPY_FROM and
 * CT_COPY_TO, which do not overlap. That is how weights of a kernel become those of ct_prog.h, and
 * back: piece (n, k) of the one is tile (n, k) of the other, turned. */
struct ct_turn {
  uint32_t from, to, tiles;
};
int ct_kernel_turn(const struct ct_turn *k, uint32_t spm_words, struct ct_codes *codes,
                   const struct ct_why *why);

/* Records of a matrix to groups of compressed tiles (docs/compression.md), and back. Groups are of
 * four tiles in the order of the pieces, four of them in an index unit; those that are left over
 * are one more group, in a unit of its own. n1_reg: an argument that has the bound's exponent in
 * bits 11..4. The device has CT_FEATURE_COMPRESSION, and the queue is training's. */
struct ct_pack {
  struct ct_mat mat;    /* kept as records, one way */
  struct ct_seat index; /* ct_pack_units() of them */
  bool back;            /* from groups to records ... */
  bool free;            /* ... whose pages are given back */
  unsigned n1_reg;      /* to groups */
};
uint32_t ct_pack_units(uint32_t rows, uint32_t cols);
int ct_kernel_pack(const struct ct_pack *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why);

/* Softmax of each row. With targets: loss (1 x 1) = the mean over rows of - sum(target * log
 * softmax), and dx = (softmax - target) * dloss / rows. What is not wanted has rows 0. */
struct ct_softmax {
  struct ct_mat x, y;                 /* softmax itself */
  struct ct_mat targets, loss, dloss; /* dloss: 1 x 1; rows 0: 1 */
  struct ct_mat dx;
};
int ct_kernel_softmax(const struct ct_softmax *k, const struct ct_room *room,
                      struct ct_codes *codes, const struct ct_why *why);

#endif
