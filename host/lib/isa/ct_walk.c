/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_walk.h"

enum { WORDS = (1 << 20) - 1 };

/* ---- Made ---- */

struct value {
  enum ct_field_id field;
  int64_t value;
};

static bool put_all(struct ct_cmd *cmd, unsigned op, const struct value *v, size_t count) {
  bool fits = true;
  *cmd = (struct ct_cmd){{0}};
  CT_PUT(cmd, ALL_OP, op);
  for (size_t i = 0; i < count; ++i)
    fits &= ct_cmd_set(cmd, v[i].field, v[i].value);
  return fits;
}

bool ct_walk_commands(const struct ct_walk_shape *s, struct ct_cmd *wpix, struct ct_cmd *wtap) {
  const int64_t xe = (int64_t)(s->nx - 1) * s->sx, ye = (int64_t)(s->ny - 1) * s->sy;
  const int64_t along = xe * s->pixel, down = ye * s->line;
  const int64_t blocks = (int64_t)(s->cb - 1) * s->block;
  const int64_t taps = (int64_t)(s->kx - 1) * s->dx * s->pixel;
  const struct value pixels[] = {{CT_F_WPIX_AX, (int64_t)s->sx * s->pixel},
                                 {CT_F_WPIX_AY, (int64_t)s->sy * s->line - along},
                                 {CT_F_WPIX_AI, s->image - down - along},
                                 {CT_F_WPIX_XE, xe},
                                 {CT_F_WPIX_YE, ye},
                                 {CT_F_WPIX_SX, s->sx},
                                 {CT_F_WPIX_SY, s->sy},
                                 {CT_F_WPIX_W, s->w},
                                 {CT_F_WPIX_H, s->h}};
  const struct value steps[] = {{CT_F_WTAP_TC, s->block},
                                {CT_F_WTAP_TX, (int64_t)s->dx * s->pixel - blocks},
                                {CT_F_WTAP_TY, (int64_t)s->dy * s->line - taps - blocks},
                                {CT_F_WTAP_X, s->x0},
                                {CT_F_WTAP_Y, s->y0},
                                {CT_F_WTAP_DX, s->dx},
                                {CT_F_WTAP_DY, s->dy},
                                {CT_F_WTAP_KX, s->kx},
                                {CT_F_WTAP_CB, s->cb}};
  const bool fits = put_all(wpix, CT_OP_WPIX, pixels, sizeof pixels / sizeof *pixels);
  return put_all(wtap, CT_OP_WTAP, steps, sizeof steps / sizeof *steps) && fits;
}

uint32_t ct_walk_a(const struct ct_walk_shape *s, uint32_t base, int32_t x, int32_t y,
                   int32_t image) {
  return (base + (uint32_t)(image * s->image + (y * s->sy + s->y0) * s->line +
                            (x * s->sx + s->x0) * s->pixel)) &
         WORDS;
}

uint32_t ct_walk_pos(const struct ct_walk_shape *s, int32_t x, int32_t y, uint32_t images) {
  return ((uint32_t)(x * s->sx) & 0x1ff) | ((uint32_t)(y * s->sy) & 0x1ff) << 9 |
         (images & 0xff) << 18;
}

/* ---- Walked ---- */

void ct_walk_set(struct ct_walk *w, const struct ct_cmd *cmd) {
  if (CT_GET(cmd, ALL_OP) == CT_OP_WPIX) {
    w->x0 = CT_GETS(cmd, WPIX_X0);
    w->xe = CT_GETS(cmd, WPIX_XE);
    w->y0 = CT_GETS(cmd, WPIX_Y0);
    w->ye = CT_GETS(cmd, WPIX_YE);
    w->sx = CT_GETS(cmd, WPIX_SX);
    w->sy = CT_GETS(cmd, WPIX_SY);
    w->w = (int32_t)CT_GET(cmd, WPIX_W);
    w->h = (int32_t)CT_GET(cmd, WPIX_H);
    w->ax = CT_GET(cmd, WPIX_AX);
    w->ay = CT_GET(cmd, WPIX_AY);
    w->ai = CT_GET(cmd, WPIX_AI);
  } else {
    w->x = CT_GETS(cmd, WTAP_X);
    w->y = CT_GETS(cmd, WTAP_Y);
    w->dx = CT_GETS(cmd, WTAP_DX);
    w->dy = CT_GETS(cmd, WTAP_DY);
    w->tc = CT_GET(cmd, WTAP_TC);
    w->tx = CT_GET(cmd, WTAP_TX);
    w->ty = CT_GET(cmd, WTAP_TY);
    w->kx = CT_GET(cmd, WTAP_KX);
    w->cb = CT_GET(cmd, WTAP_CB);
  }
}

/* A sum of coordinates as the hardware keeps it. */
static int32_t wrap(int32_t v, unsigned bits) {
  return ct_sign_extend((uint32_t)v & ((1u << bits) - 1), bits);
}

static void next_pixel(const struct ct_walk *w, struct ct_walk_pixel *p) {
  if (p->x != w->xe) {
    p->x = wrap(p->x + w->sx, 10);
    p->at += w->ax;
    return;
  }
  p->x = w->x0;
  if (p->y != w->ye) {
    p->y = wrap(p->y + w->sy, 10);
    p->at += w->ay;
    return;
  }
  p->y = w->y0;
  p->at += w->ai;
  if (p->images) --p->images;
}

static void next_tap(const struct ct_walk *w, struct ct_walk_tap *t) {
  if (--t->cb) {
    t->at += w->tc;
    return;
  }
  t->cb = w->cb;
  if (--t->kx) {
    t->x = wrap(t->x + w->dx, 10);
    t->at += w->tx;
    return;
  }
  t->kx = w->kx;
  t->x = w->x;
  t->y = wrap(t->y + w->dy, 10);
  t->at += w->ty;
}

/* Words of pixels from p on at one tap, to the end of a line or so many. Returns their number, and
 * p is the next one. */
static uint32_t line_words(const struct ct_walk *w, struct ct_walk_pixel *p,
                           const struct ct_walk_tap *t, uint32_t most, uint32_t *word) {
  const int32_t y = wrap(p->y + t->y, 10), xe = w->xe, tap_x = t->x;
  const uint32_t width = p->images && y >= 0 && y < w->h ? (uint32_t)w->w : 0;
  uint32_t at = p->at + t->at, n = 0;
  int32_t x = p->x;
  for (;; x = wrap(x + w->sx, 10), at += w->ax) {
    const uint32_t column = (uint32_t)wrap(x + tap_x, 10); /* large to the left of the image */
    word[n++] = column < width ? at & WORDS : CT_WALK_PAD;
    if (x == xe || n == most) break;
  }
  p->x = x;
  p->at = at - t->at;
  next_pixel(w, p);
  return n;
}

struct ct_walk_place ct_walk_start(const struct ct_walk *w, const struct ct_cmd *mm) {
  const uint32_t pos = CT_GET(mm, MM_POS);
  return (struct ct_walk_place){
      .pixel = {.at = CT_GET(mm, MM_A),
                .images = pos >> 18,
                .x = ct_sign_extend(pos & 0x1ff, 9),
                .y = ct_sign_extend(pos >> 9 & 0x1ff, 9)},
      .tap = {.kx = w->kx, .cb = w->cb, .x = w->x, .y = w->y},
  };
}

void ct_walk_rows(const struct ct_walk *w, const struct ct_walk_place *at, bool trans,
                  uint32_t rows, uint32_t *word) {
  struct ct_walk_pixel p = at->pixel;
  struct ct_walk_tap t = at->tap;
  for (uint32_t r = 0; r < rows;) {
    const uint32_t end = trans ? (r / 16 + 1) * 16 : rows;
    r += line_words(w, &p, &t, end - r, word + r);
    if (trans && r == end) {
      p = at->pixel;
      next_tap(w, &t);
    }
  }
}

void ct_walk_step(const struct ct_walk *w, struct ct_walk_place *at, bool trans) {
  if (!trans) next_tap(w, &at->tap);
  for (unsigned i = 0; trans && i < 16; ++i)
    next_pixel(w, &at->pixel);
}
