/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_walk.h"

enum { WORDS = (1 << 20) - 1 };

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
    p->x = wrap(p->x + w->sx, 9);
    p->at += w->ax;
    return;
  }
  p->x = w->x0;
  if (p->y != w->ye) {
    p->y = wrap(p->y + w->sy, 9);
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

static uint32_t word_of(const struct ct_walk *w, const struct ct_walk_pixel *p,
                        const struct ct_walk_tap *t) {
  const int32_t x = wrap(p->x + t->x, 10), y = wrap(p->y + t->y, 10);
  const bool there = p->images && x >= 0 && x < w->w && y >= 0 && y < w->h;
  return there ? (p->at + t->at) & WORDS : CT_WALK_PAD;
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
  for (uint32_t r = 0; r < rows; ++r) {
    if (trans && r % 16 == 0 && r) {
      p = at->pixel;
      next_tap(w, &t);
    }
    word[r] = word_of(w, &p, &t);
    next_pixel(w, &p);
  }
}

void ct_walk_step(const struct ct_walk *w, struct ct_walk_place *at, bool trans) {
  if (!trans) next_tap(w, &at->tap);
  for (unsigned i = 0; trans && i < 16; ++i)
    next_pixel(w, &at->pixel);
}
