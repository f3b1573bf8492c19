/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows to other places, or rows that become columns: transposition, other shapes, parts of tensors,
 * tensors beside each other, and what is repeated. Numbers stay what they are.
 *
 * A row of a plane is four units, so rows move through the scratchpad by LD and ST alone. Where
 * rows become columns a tile is turned in registers: for each bit of the numbers of row and lane,
 * what has it in one of the two alone changes places with what has it in the other.
 *
 *   p = -1 * t[row ^ bit][lane ^ bit]        m is 1 where row and lane have the bit alike, else -1
 *   p = p where -m > 0, else +0
 *   v = t * -1 where m > 0, else +0
 *   t = v * -1 + -p                          one of the two is -0: the sum is the other, -0 too
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_program.h"

enum { T_MINUS, T_MASK, T_T = T_MASK + 4, T_P, T_V, TEMPS };
enum { CHUNK = 64, BITS = 4 };
enum { MOST_ROWS = 1 << 21 }; /* steps of LD and ST are that long */
static const uint32_t kOne = 0x3F800000, kTwo = 0x40000000, kMinusOne = 0xBF800000;

struct move {
  struct ct_vk v;
  const struct ct_move *k;
  uint32_t x, y, temp, loads, result; /* tensors; registers */
  uint32_t zeros, in, out;            /* in the scratchpad */
  /* Under way: rows of x and y, one plane behind the other. */
  uint32_t from_plane, to_plane, from0, to0, from, to;
  unsigned loop;
  uint32_t first, some, rows, cols;
};

/* ---- Rows ---- */

/* `count` times `each` rows, in the one or the other tensor. */
static struct ct_dma rows_of(struct move *s, uint32_t tensor, uint32_t row, const uint32_t *step,
                             struct ct_ref spm, uint32_t count, uint32_t each) {
  const uint32_t span = (count - 1) * step[1] + (each - 1) * step[2] + 1;
  struct ct_dma c = {.dram = ct_tiles_of(s->v.l, tensor, 0, 1, row, span),
                     .spm = spm,
                     .nb = CT_F32_ROW_UNITS,
                     .n1 = each,
                     .n2 = count,
                     .d1 = (int32_t)(step[2] * CT_F32_ROW_UNITS),
                     .s1 = CT_F32_ROW_UNITS,
                     .d2 = (int32_t)(step[1] * CT_F32_ROW_UNITS),
                     .s2 = (int32_t)(each * CT_F32_ROW_UNITS)};
  if (step[2] != 1) return c;
  c.nb *= each;
  c.n1 = 1;
  return c;
}

static void piece(void *kernel, uint32_t pass) {
  struct move *s = kernel;
  const struct ct_move *k = s->k;
  const uint32_t at = s->first + pass * s->some;
  const uint32_t count = s->loop == 1 ? s->some : 1, each = s->loop == 1 ? k->n[2] : s->some;
  const struct ct_ref slot = ct_next(s->v.l, s->in);
  const struct ct_dma ld =
      rows_of(s, s->x, s->from + at * k->from[s->loop], k->from, slot, count, each);
  ct_ld(s->v.l, &ld);
  const struct ct_dma st = rows_of(s, s->y, s->to + at * k->to[s->loop], k->to, slot, count, each);
  ct_st(s->v.l, &st);
}

static void pieces(struct move *s, unsigned loop, uint32_t size) {
  const uint32_t n = s->k->n[loop];
  s->loop = loop;
  s->first = 0;
  s->some = size;
  ct_repeat(s->v.l, n / size, piece, s);
  s->first = n - n % size;
  s->some = n % size;
  if (s->some) piece(s, 0);
}

static void line(void *kernel, uint32_t i) {
  struct move *s = kernel;
  s->from = s->from0 + i * s->k->from[1];
  s->to = s->to0 + i * s->k->to[1];
  pieces(s, 2, CHUNK);
}

static void image(void *kernel, uint32_t i) {
  struct move *s = kernel;
  s->from = s->from0 = s->from_plane + s->k->from_row + i * s->k->from[0];
  s->to = s->to0 = s->to_plane + s->k->to_row + i * s->k->to[0];
  if (s->k->n[2] <= CHUNK)
    pieces(s, 1, ct_min_u32(CHUNK / s->k->n[2], s->k->n[1]));
  else
    ct_repeat(s->v.l, s->k->n[1], line, s);
}

static void plane(void *kernel, uint32_t p) {
  struct move *s = kernel;
  s->from_plane = p * ct_move_plane(s->k->x.rows);
  s->to_plane = p * ct_move_plane(s->k->y.rows);
  ct_repeat(s->v.l, s->k->n[0], image, s);
}

/* ---- Tiles that are turned ---- */

static struct ct_ref temp(const struct move *s, unsigned i) {
  return ct_tile_of(s->v.l, s->temp, i, 0);
}

static void make_masks(struct move *s) {
  struct ct_lower *l = s->v.l;
  const struct ct_ref a = temp(s, T_P), b = temp(s, T_V);
  ct_va(l, &(struct ct_va){.to = temp(s, T_MINUS), .c = CT_VA_SCALAR, .sc = kMinusOne});
  for (unsigned i = 0; i < BITS; ++i) {
    const unsigned bit = 1u << i;
    ct_va(l, &(struct ct_va){.to = a, .c = CT_VA_SCALAR, .sc = kOne, .rows = bit, .cols = bit});
    ct_va(l, &(struct ct_va){
                 .to = b, .a = a, .q = a, .c = CT_VA_TILE, .row_xor = bit, .lane_xor = bit});
    for (unsigned far = 2 * bit; far < CT_TILE; far *= 2) {
      ct_va(l, &(struct ct_va){.to = a, .a = b, .q = b, .c = CT_VA_TILE, .row_xor = far});
      ct_va(l, &(struct ct_va){.to = b, .a = a, .q = a, .c = CT_VA_TILE, .lane_xor = far});
    }
    ct_va(l, &(struct ct_va){.to = temp(s, T_MASK + i),
                             .a = b,
                             .b = CT_VA_SCALAR,
                             .sb = kTwo,
                             .c = CT_VA_SCALAR,
                             .sc = kMinusOne});
  }
}

static void turn(struct move *s, struct ct_ref t, struct ct_ref to) {
  struct ct_lower *l = s->v.l;
  const struct ct_ref p = temp(s, T_P), v = temp(s, T_V);
  for (unsigned i = 0; i < BITS; ++i) {
    const unsigned bit = 1u << i;
    const struct ct_ref mask = temp(s, T_MASK + i), next = i + 1 < BITS ? temp(s, T_T) : to;
    ct_va(l, &(struct ct_va){.to = p,
                             .a = temp(s, T_MINUS),
                             .q = t,
                             .b = CT_VA_TILE,
                             .row_xor = bit,
                             .lane_xor = bit});
    ct_va(l, &(struct ct_va){
                 .to = p, .a = p, .q = mask, .c = CT_VA_TILE, .neg_c = true, .fn = CT_VA_SELECT});
    ct_va(l, &(struct ct_va){.to = v,
                             .a = t,
                             .q = mask,
                             .b = CT_VA_SCALAR,
                             .sb = kMinusOne,
                             .c = CT_VA_TILE,
                             .fn = CT_VA_SELECT});
    ct_va(l, &(struct ct_va){.to = next,
                             .a = v,
                             .q = p,
                             .b = CT_VA_SCALAR,
                             .sb = kMinusOne,
                             .c = CT_VA_TILE,
                             .neg_c = true});
    t = next;
  }
}

static void tile(void *kernel, uint32_t p) {
  struct move *s = kernel;
  struct ct_lower *l = s->v.l;
  const uint32_t column = s->first + p * CT_TILE;
  const uint32_t from = s->from + column / CT_TILE * ct_move_plane(s->k->x.rows);
  const uint32_t to_row = s->to_plane + s->to + column * s->k->to[2];
  const struct ct_ref in = ct_next(l, s->in), reg = ct_next(l, s->loads), t = temp(s, T_T);
  const struct ct_dma ld = rows_of(s, s->x, from, s->k->from, in, 1, s->rows);
  ct_ld(l, &ld);
  ct_vl(l, &(struct ct_vmove){.reg = reg, .spm = in, .rows = s->rows});
  ct_va(l, &(struct ct_va){.to = t, .a = reg, .rows = s->rows});
  const struct ct_ref to = ct_next(l, s->result), out = ct_next(l, s->out);
  turn(s, t, to);
  ct_vk_vs(&s->v, CT_KEEP_F32, 0, to, out);
  const struct ct_dma st = rows_of(s, s->y, to_row, s->k->to, out, 1, s->cols);
  ct_st(l, &st);
}

static void tiles(struct move *s) {
  const uint32_t cols = s->k->x.cols, whole = cols / CT_TILE;
  s->first = 0;
  s->cols = CT_TILE;
  ct_repeat(s->v.l, whole, tile, s);
  s->first = whole * CT_TILE;
  s->cols = cols % CT_TILE;
  if (s->cols) tile(s, 0);
}

static void turned_group(void *kernel, uint32_t g) {
  struct move *s = kernel;
  const uint32_t row = s->some + g * CT_TILE, from = s->from;
  s->to_plane = row / CT_TILE * ct_move_plane(s->k->y.rows);
  s->from += row * s->k->from[2];
  tiles(s);
  s->from = from;
}

static void turned_line(void *kernel, uint32_t i) {
  struct move *s = kernel;
  const uint32_t rows = s->k->n[2], whole = rows / CT_TILE;
  s->from = s->from0 + i * s->k->from[1];
  s->to = s->to0 + i * s->k->to[1];
  s->some = 0;
  s->rows = CT_TILE;
  ct_repeat(s->v.l, whole, turned_group, s);
  s->some = whole * CT_TILE;
  s->rows = rows % CT_TILE;
  if (s->rows) turned_group(s, 0);
}

static void turned_image(void *kernel, uint32_t i) {
  struct move *s = kernel;
  s->from0 = s->k->from_row + i * s->k->from[0];
  s->to0 = s->k->to_row + i * s->k->to[0];
  ct_repeat(s->v.l, s->k->n[1], turned_line, s);
}

/* ---- All ---- */

/* Rows of y past the last one. */
static void pad(void *kernel, uint32_t p) {
  static const uint32_t step[3] = {1, 1, 1};
  struct move *s = kernel;
  const uint32_t rows = s->k->y.rows, row = p * ct_move_plane(rows) + rows;
  const struct ct_dma st =
      rows_of(s, s->y, row, step, ct_tile_of(s->v.l, s->zeros, 0, 0), 1, CT_TILE - rows % CT_TILE);
  ct_st(s->v.l, &st);
}

static void all_padding(struct move *s) {
  if (s->k->y.rows % CT_TILE == 0) return;
  const struct ct_ref reg = ct_next(s->v.l, s->result);
  ct_va(s->v.l, &(struct ct_va){.to = reg});
  ct_vk_vs(&s->v, CT_KEEP_F32, 0, reg, ct_tile_of(s->v.l, s->zeros, 0, 0));
  ct_repeat(s->v.l, ct_mat_planes(&s->k->y), pad, s);
}

static void place(struct move *s) {
  struct ct_lower *l = s->v.l;
  s->x = ct_vk_line_tensor(&s->v, &s->k->x, false);
  s->y = ct_vk_line_tensor(&s->v, &s->k->y, true);
  s->temp = ct_reg_tensor(l, "in between", CT_VK_FIRST_REG, TEMPS);
  s->loads = ct_reg_ring(l, "loads", CT_VK_FIRST_REG + TEMPS, 2);
  s->result = ct_reg_ring(l, "results", CT_VK_FIRST_REG + TEMPS + 2, 2);
  ct_vk_carriers(&s->v, CT_VK_FIRST_REG + T_P);
  s->zeros = ct_spm_tensor(l, "zeros", ct_grid(1, 1, CT_F32_TILE_UNITS));
  const uint32_t words = s->k->turn ? CT_F32_TILE_UNITS : CHUNK * CT_F32_ROW_UNITS;
  const uint32_t slots = ct_vk_left(&s->v) >= 4 * (uint64_t)words ? 2 : 1;
  s->in = ct_spm_ring(l, "in", words, slots);
  if (s->k->turn) s->out = ct_spm_ring(l, "out", words, slots);
}

static uint32_t planes_of(const struct ct_move *k) {
  return k->planes ? k->planes : ct_mat_planes(&k->x);
}

/* The last row that is touched, counted from 1, beginning with the first plane. */
static uint64_t reach(const struct ct_move *k, bool to) {
  const uint32_t *step = to ? k->to : k->from;
  const uint64_t inner = to && k->turn ? k->x.cols : k->n[2];
  return 1 + (to ? k->to_row : k->from_row) + (uint64_t)(k->n[0] - 1) * step[0] +
         (uint64_t)(k->n[1] - 1) * step[1] + (inner - 1) * step[2];
}

/* Within the plane that a row is in, or within all planes. */
static bool stays(const struct ct_move *k, bool to) {
  const struct ct_mat *m = to ? &k->y : &k->x;
  if (!k->planes) return reach(k, to) <= m->rows;
  return k->planes <= ct_mat_planes(m) &&
         reach(k, to) + (uint64_t)(k->planes - 1) * ct_move_plane(m->rows) <=
             (uint64_t)ct_mat_planes(m) * ct_move_plane(m->rows);
}

static int check(const struct move *s) {
  const struct ct_move *k = s->k;
  const uint32_t cols = k->planes ? k->y.cols : k->turn ? k->n[2] : k->x.cols;
  int err = ct_vk_check(&s->v, &k->x, "x", k->x.rows, k->x.cols);
  if (!err) err = ct_vk_check(&s->v, &k->y, "y", k->y.rows, cols);
  if (err) return err;
  if (!k->x.keep[CT_KEEP_F32].reg || !k->y.keep[CT_KEEP_F32].reg)
    return ct_why(s->v.why, CT_ERR_ARG, "%s: what is moved is FP32", s->v.name);
  if (!k->n[0] || !k->n[1] || !k->n[2] || !stays(k, false) || !stays(k, true))
    return ct_why(s->v.why, CT_ERR_ARG, "%s: it leaves the rows that there are", s->v.name);
  bool far = k->x.rows >= MOST_ROWS || k->y.rows >= MOST_ROWS;
  for (unsigned i = 0; i < 3; ++i)
    far = far || k->from[i] >= MOST_ROWS || k->to[i] >= MOST_ROWS;
  if (far)
    return ct_why(s->v.why, CT_ERR_NO_SPACE, "%s: over %d rows or more", s->v.name, MOST_ROWS);
  return CT_OK;
}

static void member(void *kernel, uint32_t i) {
  struct move *s = kernel;
  (void)i;
  all_padding(s);
  if (s->k->turn)
    ct_repeat(s->v.l, s->k->n[0], turned_image, s);
  else
    ct_repeat(s->v.l, planes_of(s->k), plane, s);
}

int ct_kernel_move(const struct ct_move *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why) {
  struct move s = {.k = k};
  *codes = (struct ct_codes){NULL, 0};
  int err = ct_vk_start(&s.v, "rows to other places", room, why);
  if (err) return err;
  err = check(&s);
  if (err) {
    ct_lower_drop(s.v.l);
    return err;
  }
  place(&s);
  if (k->turn) make_masks(&s);
  ct_members(s.v.l, member, &s);
  return ct_vk_end(&s.v, codes);
}
