/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where elements have to lie in another order: steps that move rows of FP32, or turn them into
 * columns (ct_kernel_move()).
 *
 * A move takes a tensor's dimensions but the last as loops over rows. So any order of dimensions is
 * one move, and rows of another length are two: where [N, P, C] shall be [N, P * C] it is made
 * [P, C, N] first, which lies as [P * C, N] does, and that is turned. Where rows are whole blocks
 * of 16 they are put into other planes instead, by one move.
 */
#include "ct_compile_impl.h"

enum { LAST = CT_GRAPH_DIMS - 1, LOOPS = 3, MOST_STEP = 1 << 21 };

/* Rows from one element of a dimension (not the last) to the next. */
static uint32_t step_of(const struct ct_shape *s, uint32_t dim) {
  return (uint32_t)ct_shape_part(s, dim + 1, s->dims - 1);
}

/* The shape with that last dimension, and ones in front, so that it has CT_GRAPH_DIMS. */
static struct ct_shape wide(const struct ct_shape *s) {
  struct ct_shape w = {CT_GRAPH_DIMS, {1, 1, 1, 1}};
  for (uint32_t i = 0; i < s->dims; ++i)
    w.dim[CT_GRAPH_DIMS - s->dims + i] = s->dim[i];
  return w;
}

/* ---- Steps --------------------------------------------------------------------------------- */

/* Loops of one pass go, and those that run through rows side by side in both become one. */
static void merge_loops(struct ct_move *k, unsigned loops) {
  struct ct_move m = *k;
  unsigned at = loops;
  for (unsigned i = loops; i-- > 0;) {
    if (k->n[i] == 1) continue;
    if (at < loops && k->from[i] == m.n[at] * m.from[at] && k->to[i] == m.n[at] * m.to[at]) {
      m.n[at] *= k->n[i];
      continue;
    }
    --at;
    m.n[at] = k->n[i];
    m.from[at] = k->from[i];
    m.to[at] = k->to[i];
  }
  while (at-- > 0) {
    m.n[at] = 1;
    m.from[at] = m.to[at] = 0;
  }
  *k = m;
}

static void add_move(struct ct_compiler *c, const struct ct_gnode *n, int x, int y, bool early,
                     struct ct_move how) {
  merge_loops(&how, how.turn ? LOOPS - 1 : LOOPS);
  struct ct_net_step *s = ct_step_add(c, CT_STEP_MOVE, n);
  s->early = early;
  s->move = how;
  s->x = x;
  s->y = ct_step_makes(c, s, y);
}

/* Whether a move would leave every row where it is. */
static bool moves_nothing(const struct ct_compiler *c, int x, const struct ct_move *how,
                          uint32_t rows) {
  struct ct_move k = *how;
  if (k.turn || k.planes || c->value[x].rows != rows) return false;
  merge_loops(&k, LOOPS);
  return k.n[2] == rows && (rows == 1 || (k.from[2] == 1 && k.to[2] == 1));
}

static int move_to(struct ct_compiler *c, const struct ct_gnode *n, int x, struct ct_move how,
                   uint32_t rows, uint32_t cols) {
  if (c->error || moves_nothing(c, x, &how, rows)) return x;
  const bool early = ct_values_last(c, &x, 1);
  const int y = ct_value_new(c, rows, cols);
  if (!c->error) add_move(c, n, x, y, early, how);
  return y;
}

int ct_moved(struct ct_compiler *c, const struct ct_gnode *n, int value, const struct ct_shape *s) {
  if (c->error) return 0;
  struct ct_tiles t = ct_tiles_for(c, n, &value, 1, 1);
  const int y = ct_tiles_make(&t, ct_tiles_axpb(&t, ct_tiles_in(&t, value), 1, 0), CT_NO_VALUE);
  ct_value_image(c, y, s);
  return y;
}

/* ---- Another order of dimensions ----------------------------------------------------------- */

int ct_permuted(struct ct_compiler *c, const struct ct_gnode *n, int x, const struct ct_shape *s,
                const uint32_t *perm) {
  const uint32_t last = s->dims - 1;
  struct ct_shape y = *s;
  struct ct_move k = {.n = {1, 1, 1}, .turn = perm[last] != last};
  for (uint32_t i = 0; i < s->dims; ++i)
    y.dim[i] = s->dim[perm[i]];
  unsigned loop = LOOPS - last;
  for (uint32_t i = 0; i < last; ++i) {
    if (perm[i] == last) {
      k.to[2] = step_of(&y, i);
      continue;
    }
    k.n[loop] = y.dim[i];
    k.from[loop] = step_of(s, perm[i]);
    k.to[loop++] = step_of(&y, i);
  }
  if (k.turn) {
    k.n[2] = s->dim[perm[last]];
    k.from[2] = step_of(s, perm[last]);
  }
  return move_to(c, n, x, k, ct_shape_rows(&y), ct_shape_cols(&y));
}

/* ---- Rows of another length ---------------------------------------------------------------- */

static int merged(struct ct_compiler *c, const struct ct_gnode *n, int x, uint32_t parts) {
  const struct ct_val v = c->value[x];
  const uint32_t rows = v.rows / parts, step = v.cols / CT_TILE * ct_move_plane(rows);
  if (v.cols % CT_TILE == 0 && step < MOST_STEP) /* whole planes: rows need not be turned */
    return move_to(c, n, x,
                   (struct ct_move){.n = {1, parts, rows},
                                    .from = {0, 1, parts},
                                    .to = {0, step, 1},
                                    .planes = v.cols / CT_TILE},
                   rows, v.cols * parts);
  const struct ct_shape apart = {3, {v.rows / parts, parts, v.cols}},
                        turned = {2, {parts * v.cols, v.rows / parts}};
  const int m = ct_permuted(c, n, x, &apart, (const uint32_t[]){1, 2, 0});
  return ct_permuted(c, n, m, &turned, (const uint32_t[]){1, 0});
}

static int split(struct ct_compiler *c, const struct ct_gnode *n, int x, uint32_t parts) {
  const struct ct_val v = c->value[x];
  const uint32_t cols = v.cols / parts, step = cols / CT_TILE * ct_move_plane(v.rows);
  if (cols % CT_TILE == 0 && step < MOST_STEP)
    return move_to(c, n, x,
                   (struct ct_move){.n = {1, parts, v.rows},
                                    .from = {0, step, 1},
                                    .to = {0, 1, parts},
                                    .planes = cols / CT_TILE},
                   v.rows * parts, cols);
  const struct ct_shape whole = {2, {v.rows, v.cols}},
                        turned = {3, {parts, v.cols / parts, v.rows}};
  const int m = ct_permuted(c, n, x, &whole, (const uint32_t[]){1, 0});
  return ct_permuted(c, n, m, &turned, (const uint32_t[]){2, 0, 1});
}

static uint32_t common(uint32_t a, uint32_t b) {
  return b ? common(b, a % b) : a;
}

/* A value that was made for another reader is taken again. */
int ct_reshaped(struct ct_compiler *c, const struct ct_gnode *n, unsigned i, uint32_t cols) {
  const int x = ct_value_in(c, n, i);
  if (c->error || x == CT_NO_VALUE) return x;
  if (c->value[x].cols == cols && c->value[x].kind == CT_LAY_MATRIX) return x;
  for (size_t v = 0; v < c->values; ++v)
    if (c->value[v].reshaped == x && c->value[v].cols == cols) return (int)v;
  if (c->value[x].kind != CT_LAY_MATRIX) {
    ct_compile_miss(c, n, "its input (%s) lies in memory in another order",
                    c->g->tensor[n->in[i]]->name);
    return CT_NO_VALUE;
  }
  const uint32_t had = c->value[x].cols, both = common(had, cols);
  const int parts = had == both ? x : split(c, n, x, had / both);
  const int whole = c->error || cols == both ? parts : merged(c, n, parts, cols / both);
  const int y = ct_moved(c, n, whole, &(struct ct_shape){1, {cols}});
  if (!c->error) c->value[y].reshaped = x;
  return y;
}

int ct_value_plain_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i) {
  const int x = ct_value_in(c, n, i);
  if (c->error || x == CT_NO_VALUE || ct_value_plain(c, n->in[i])) return x;
  const struct ct_shape *s = ct_in(c->g, n, i);
  const int y = ct_reshaped(c, n, i, ct_shape_cols(s));
  if (y != CT_NO_VALUE) ct_value_image(c, y, s);
  return y;
}

bool ct_values_plain_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i, int *vals,
                        unsigned count) {
  bool all = true;
  for (unsigned k = 0; k < count; ++k) {
    vals[k] = ct_value_plain_in(c, n, i + k);
    all = all && vals[k] != CT_NO_VALUE;
  }
  return all && !c->error;
}

/* ---- What is repeated ---------------------------------------------------------------------- */

int ct_spread_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i,
                 const struct ct_shape *to) {
  const struct ct_shape s = wide(ct_in(c->g, n, i)), y = wide(to);
  const int x = ct_value_plain_in(c, n, i);
  if (c->error || x == CT_NO_VALUE || ct_shape_rows(&s) == 1 ||
      ct_shape_rows(&s) == ct_shape_rows(&y))
    return x;
  struct ct_move k = {.n = {1, 1, 1}};
  for (uint32_t d = 0; d < LAST; ++d) {
    k.n[d] = y.dim[d];
    k.from[d] = s.dim[d] == 1 ? 0 : step_of(&s, d);
    k.to[d] = step_of(&y, d);
  }
  return move_to(c, n, x, k, ct_shape_rows(&y), ct_shape_cols(&s));
}

/* ---- Parts --------------------------------------------------------------------------------- */

/* Rows of a part, in the part itself and in the whole. */
static struct ct_move part_loops(const struct ct_part *part, const struct ct_shape *whole,
                                 uint32_t axis, bool out) {
  struct ct_shape own = *whole;
  struct ct_move k = {.n = {1, 1, 1}};
  own.dim[axis] = part->size;
  for (uint32_t d = 0; d + 1 < whole->dims; ++d) {
    const unsigned loop = LOOPS - (whole->dims - 1) + d;
    k.n[loop] = own.dim[d];
    k.from[loop] = step_of(out ? whole : &own, d);
    k.to[loop] = step_of(out ? &own : whole, d);
  }
  *(out ? &k.from_row : &k.to_row) = part->begin * step_of(whole, axis);
  return k;
}

/* Along the last dimension rows are turned into columns before, and back afterwards, of a part only
 * those that it has. */
static struct ct_shape turned_shape(const struct ct_shape *s) {
  return (struct ct_shape){2, {ct_shape_cols(s), ct_shape_rows(s)}};
}
static const uint32_t kTurn[2] = {1, 0};

int ct_part_of(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_part *part,
               const struct ct_shape *whole, uint32_t axis) {
  if (axis == whole->dims - 1) {
    const struct ct_shape flat = {2, {ct_shape_rows(whole), ct_shape_cols(whole)}};
    const int m = ct_permuted(c, n, part->x, &flat, kTurn);
    const struct ct_move back = {.n = {1, 1, part->size},
                                 .from = {0, 0, 1},
                                 .to = {0, 0, 1},
                                 .from_row = part->begin,
                                 .turn = true};
    return move_to(c, n, m, back, flat.dim[0], part->size);
  }
  const uint32_t rows = ct_shape_rows(whole) / whole->dim[axis] * part->size;
  return move_to(c, n, part->x, part_loops(part, whole, axis, true), rows, ct_shape_cols(whole));
}

/* Zeros are one row, repeated. */
static void put_part(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_part *part,
                     int y, bool early, struct ct_move how) {
  int x = part->x;
  if (x == CT_NO_VALUE) {
    x = ct_value_constant(c, 1, c->error ? 1 : c->value[y].cols, 0);
    how.from[0] = how.from[1] = how.from[2] = 0;
  }
  if (!c->error) add_move(c, n, x, y, early, how);
}

int ct_whole_of(struct ct_compiler *c, const struct ct_gnode *n, const struct ct_part *part,
                unsigned parts, const struct ct_shape *whole, uint32_t axis) {
  const bool last = axis == whole->dims - 1;
  const struct ct_shape s = last ? turned_shape(whole) : *whole;
  const int y = ct_value_new(c, ct_shape_rows(&s), ct_shape_cols(&s));
  bool early = true;
  for (unsigned i = 0; i < parts && !c->error; ++i)
    early = early && (part[i].x == CT_NO_VALUE || ct_values_last(c, &part[i].x, 1));
  for (unsigned i = 0; i < parts && !c->error; ++i) {
    struct ct_move how = part_loops(&part[i], &s, last ? 0 : axis, false);
    if (last && part[i].x != CT_NO_VALUE) { /* turned on its way */
      how = (struct ct_move){.n = {1, 1, s.dim[1]},
                             .from = {0, 0, 1},
                             .to = {0, 0, 1},
                             .to_row = part[i].begin,
                             .turn = true};
    }
    put_part(c, n, &part[i], y, early, how);
  }
  return last ? ct_permuted(c, n, y, &s, kTurn) : y;
}
