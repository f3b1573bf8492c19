/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions: forward, and the gradient of the input. See ct_kernel_conv.h. */
#include "coltrain/coltrain.h"
#include "ct_kernel_conv.h"

enum { R_VL, R_VS, ACC_CARRIER = 15, UNROLLED = 3 };

/* ---- What is asked for --------------------------------------------------------------------- */

/* Groups of channels that are a product of their own: those of the shape, or several of them
 * together that fill blocks, or all. */
uint32_t ct_conv_parts(const struct ct_conv *k) {
  const uint32_t groups = k->shape.groups, cx = k->x.cols / groups, cy = k->y.cols / groups;
  for (uint32_t n = 1; n <= CT_TILE && n < groups; n *= 2)
    if (n * cx % CT_TILE == 0 && n * cy % CT_TILE == 0 && groups % n == 0) return groups / n;
  return 1;
}

static int check_shape(const struct ct_conv *k, const char *name, const struct ct_why *why) {
  const struct ct_window_shape *s = &k->shape;
  if (!s->images || !s->h || !s->w || !s->oh || !s->ow || !s->ky || !s->kx || !s->sy || !s->sx ||
      !s->dy || !s->dx || !s->groups)
    return ct_why(why, CT_ERR_ARG, "%s: a size, stride, dilation or number of groups is 0", name);
  if (k->x.cols % s->groups || k->y.cols % s->groups)
    return ct_why(why, CT_ERR_ARG, "%s: %u and %u channels cannot be divided into %u groups", name,
                  k->x.cols, k->y.cols, s->groups);
  return CT_OK;
}

static int check_mat(const struct ct_vk *v, const struct ct_mat *m, const char *what,
                     uint64_t rows) {
  if (rows > UINT32_MAX / 2)
    return ct_why(v->why, CT_ERR_NO_SPACE, "%s: %s of %llu rows is too large", v->name, what,
                  (unsigned long long)rows);
  return ct_vk_check(v, m, what, (uint32_t)rows, m->cols);
}

static int check_keep(const struct ct_vk *v, const struct ct_mat *m, const char *what, bool rows) {
  if (m->keep[CT_KEEP_SQUARE].reg || (rows && m->keep[CT_KEEP_ROWS].reg)) return CT_OK;
  return ct_why(v->why, CT_ERR_ARG, "%s: %s is not kept as %s", v->name, what,
                rows ? "HBFP8" : "square tiles of HBFP8");
}

enum ct_keep ct_conv_keep(const struct ct_mat *m) {
  return m->keep[CT_KEEP_ROWS].reg ? CT_KEEP_ROWS : CT_KEEP_SQUARE;
}

static int check_weights(const struct ct_vk *v, const struct ct_conv *k) {
  const uint32_t parts = ct_conv_parts(k);
  const uint64_t steps = (uint64_t)k->shape.ky * k->shape.kx * ct_tiles(k->x.cols / parts);
  const int err = check_mat(v, &k->weights, "the matrix of weights", steps * CT_TILE);
  if (!err && k->weights.cols != k->y.cols)
    return ct_why(v->why, CT_ERR_ARG, "%s: weights of %u outputs for %u channels", v->name,
                  k->weights.cols, k->y.cols);
  return err;
}

static int check_mats(const struct ct_vk *v, const struct ct_conv *k, const struct ct_mat *seen,
                      uint64_t pixels) {
  int err = check_mat(v, seen, "what its pixels see", pixels);
  if (!err) err = check_weights(v, k);
  if (!err) err = check_keep(v, seen, "what its pixels see", true);
  if (!err) err = check_keep(v, &k->weights, "the matrix of weights", false);
  return err;
}

int ct_conv_check_input(const struct ct_vk *v, const struct ct_conv *k) {
  const struct ct_window_shape *s = &k->shape;
  int err = check_mats(v, k, &k->y, (uint64_t)s->images * s->oh * s->ow);
  if (!err && k->x.rows != (uint64_t)s->images * s->h * s->w)
    err = ct_why(v->why, CT_ERR_ARG, "%s: a result of %u rows has %llu pixels", v->name, k->x.rows,
                 (unsigned long long)s->images * s->h * s->w);
  return err;
}

int ct_conv_check(const struct ct_vk *v, const struct ct_conv *k, const struct ct_conv_view *view) {
  const struct ct_window_shape *s = &k->shape;
  struct ct_conv stored = *k; /* the gradient itself need not be, if something comes behind it */
  if (ct_conv_joins(k)) stored.weights.keep[CT_KEEP_F32].reg = 1;
  int err = check_shape(k, v->name, v->why);
  if (!err) err = check_mat(v, &k->x, "its input", (uint64_t)s->images * s->h * s->w);
  if (!err) err = check_mat(v, &k->y, "the gradient", (uint64_t)s->images * s->oh * s->ow);
  if (!err) err = check_weights(v, &stored);
  if (!err) err = check_keep(v, &k->x, "its input", true);
  if (!err) err = check_keep(v, &k->y, "the gradient", false);
  if (!err && !stored.weights.keep[CT_KEEP_F32].reg)
    err = ct_why(v->why, CT_ERR_ARG, "%s: it is not kept as FP32", v->name);
  return err ? err : ct_conv_view_check(view, v->name, v->why);
}

/* ---- Views --------------------------------------------------------------------------------- */

/* What strides and dilations do not matter for is made plain. */
static void simplify(struct ct_conv_view *v) {
  if (v->nx == 1) v->sx = 1;
  if (v->ny == 1) v->sy = 1;
  if (v->kx == 1) v->dx = 1;
  if (v->ky == 1) v->dy = 1;
  v->flat = v->kx == 1 && v->ky == 1 && v->sx == 1 && v->sy == 1 && v->x0 == 0 && v->y0 == 0 &&
            v->nx == v->w && v->ny == v->h;
  if (v->flat) v->nx = v->ny = v->w = v->h = CT_TILE;
}

struct ct_conv_view ct_conv_forward_view(const struct ct_window_shape *s) {
  struct ct_conv_view v = {.nx = (int32_t)s->ow,
                           .ny = (int32_t)s->oh,
                           .w = (int32_t)s->w,
                           .h = (int32_t)s->h,
                           .sx = (int32_t)s->sx,
                           .sy = (int32_t)s->sy,
                           .x0 = -s->left,
                           .y0 = -s->top,
                           .dx = (int32_t)s->dx,
                           .dy = (int32_t)s->dy,
                           .kx = (int32_t)s->kx,
                           .ky = (int32_t)s->ky,
                           .rows = s->images * s->oh * s->ow,
                           .seen = s->images * s->h * s->w};
  simplify(&v);
  return v;
}

/* Of stride 1: the taps the other way round. */
static struct ct_conv_view input_view(const struct ct_window_shape *s) {
  struct ct_conv_view v = {.nx = (int32_t)s->w,
                           .ny = (int32_t)s->h,
                           .w = (int32_t)s->ow,
                           .h = (int32_t)s->oh,
                           .sx = 1,
                           .sy = 1,
                           .x0 = s->left,
                           .y0 = s->top,
                           .dx = -(int32_t)s->dx,
                           .dy = -(int32_t)s->dy,
                           .kx = (int32_t)s->kx,
                           .ky = (int32_t)s->ky,
                           .rows = s->images * s->h * s->w,
                           .seen = s->images * s->oh * s->ow};
  simplify(&v);
  return v;
}

/* ---- Programs ------------------------------------------------------------------------------ */

void ct_conv_carriers(struct ct_vk *v, uint32_t tile, unsigned va_reg) {
  struct ct_lower *l = v->l;
  v->calm = ct_spm_tensor(l, "calm words", ct_grid(1, 1, CT_TILE));
  struct ct_carriers c = {.va_reg = va_reg,
                          .vl_reg = R_VL,
                          .vs_reg = R_VS,
                          .acc = ACC_CARRIER,
                          .spm = ct_spm_take(l, CT_CARRIER_WORDS),
                          .calm = v->calm,
                          .load = tile,
                          .store_spm = v->calm};
  if (v->room->scratch.reg)
    c.store_dram =
        ct_dram_tensor(l, "scratch", v->room->scratch.reg, v->room->scratch.at, ct_grid(1, 1, 1));
  ct_lower_carriers(l, &c);
  ct_ld(l,
        &(struct ct_dma){
            .dram = ct_tile_of(l, tile, 0, 0), .spm = ct_tile_of(l, v->calm, 0, 0), .nb = CT_TILE});
}

/* Rows are pixels of `made`, which see `seen`. unrolled: loops that are written out. */
static int try_rows(const struct ct_conv *k, struct ct_conv_rows *c, unsigned unrolled,
                    const struct ct_room *room, struct ct_codes *codes, const struct ct_why *why) {
  const struct ct_mat *seen = c->input ? &k->y : &k->x, *made = c->input ? &k->x : &k->y;
  struct ct_vk *v = &c->v;
  int err = ct_vk_start(v, c->input ? "the gradient of a convolution's input" : "a convolution",
                        room, why);
  if (err) return err;
  err = check_mats(v, k, seen, c->view.seen);
  if (!err && made->rows != c->view.rows)
    err = ct_why(why, CT_ERR_ARG, "%s: a result of %u rows has %u pixels", v->name, made->rows,
                 c->view.rows);
  if (!err) err = ct_conv_view_check(&c->view, v->name, why);
  c->parts = ct_conv_parts(k);
  c->cb = ct_tiles(seen->cols / c->parts);
  c->nb = ct_tiles(made->cols / c->parts);
  c->cols = made->cols;
  c->k = (uint32_t)(c->view.ky * c->view.kx) * c->cb;
  c->w_k = ct_mat_groups(&k->weights);
  c->x_groups = ct_mat_groups(seen);
  c->drain.first = CT_VK_FIRST_REG;
  if (!err) err = ct_conv_drain_start(&c->drain, v, k->after, k->made, c->view.rows, c->cols, true);
  if (!err) {
    c->x = ct_vk_tensor(v, seen, ct_conv_keep(seen), false);
    c->w = ct_vk_tensor(v, &k->weights, CT_KEEP_SQUARE, false);
    err = ct_conv_choose(c);
  }
  if (err) {
    ct_lower_drop(v->l);
    return err;
  }
  ct_conv_record(c, unrolled);
  return ct_vk_end(v, codes);
}

static int try_forward(const struct ct_conv *k, unsigned unrolled, const struct ct_room *room,
                       struct ct_codes *codes, const struct ct_why *why) {
  struct ct_conv_rows c = {.view = ct_conv_forward_view(&k->shape)};
  return try_rows(k, &c, unrolled, room, codes, why);
}

static int try_input(const struct ct_conv *k, unsigned unrolled, const struct ct_room *room,
                     struct ct_codes *codes, const struct ct_why *why) {
  struct ct_conv_rows c = {.view = input_view(&k->shape), .input = true};
  return try_rows(k, &c, unrolled, room, codes, why);
}

int ct_conv_tries(ct_conv_try *attempt, unsigned most, const struct ct_conv *k,
                  const struct ct_room *room, struct ct_codes *codes, const struct ct_why *why) {
  int err = CT_ERR_NO_SPACE;
  *codes = (struct ct_codes){NULL, 0};
  for (unsigned unrolled = 0; unrolled <= most && err == CT_ERR_NO_SPACE; ++unrolled)
    err = attempt(k, unrolled, room, codes, why);
  return err;
}

int ct_kernel_conv(const struct ct_conv *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why) {
  *codes = (struct ct_codes){NULL, 0};
  const int err = check_shape(k, "a convolution", why);
  return err ? err : ct_conv_tries(try_forward, UNROLLED, k, room, codes, why);
}

int ct_kernel_conv_input(const struct ct_conv *k, const struct ct_room *room,
                         struct ct_codes *codes, const struct ct_why *why) {
  *codes = (struct ct_codes){NULL, 0};
  const int err = check_shape(k, "the gradient of a convolution's input", why);
  if (err) return err;
  if ((k->shape.sx > 1 && k->shape.ow > 1) || (k->shape.sy > 1 && k->shape.oh > 1))
    return ct_conv_phases(k, room, codes, why);
  return ct_conv_tries(try_input, UNROLLED, k, room, codes, why);
}
