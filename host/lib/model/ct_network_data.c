/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of networks: from the order of the graph to matrices, from matrices to planes of tiles.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_network.h"
#include "ct_pack.h"

/* ---- Elements and matrices ----------------------------------------------------------------- */

/* Calls f for each element of a weight: where it is in the matrix and in the tensor. */
typedef void move(void *self, size_t matrix, size_t element);

static void each_weight(const struct ct_lay *lay, move *f, void *self) {
  const struct ct_weight_lay *w = &lay->weight;
  const size_t blocks = ct_tiles(w->channels), cols = lay->mat.cols, groups = w->channels / w->own;
  for (size_t o = 0; o < cols; ++o) {
    const size_t first = groups > 1 ? o / w->outputs % groups * w->own : 0;
    for (size_t tap = 0; tap < w->taps; ++tap)
      for (size_t ch = 0; ch < w->own; ++ch)
        f(self, (tap * blocks * CT_TILE + first + ch) * cols + o,
          (o * w->taps + tap) * w->own + ch);
  }
}

static uint32_t window_channels(const struct ct_lay *lay) {
  return lay->mat.cols / (lay->windows.ky * lay->windows.kx);
}

/* Taps of a line of the image, from column x on; zeros outside. Windows are a few floats wide, for
 * which a call of memcpy() takes longer than the copy. */
static void spread_taps(const struct ct_window_shape *s, const float *line, int64_t x,
                        size_t channels, float *to) {
  if (s->dx == 1 && x >= 0 && x + s->kx <= s->w) {
    const float *const from = line + (size_t)x * channels;
    for (size_t i = 0; i < s->kx * channels; ++i)
      to[i] = from[i];
    return;
  }
  for (uint32_t kx = 0; kx < s->kx; ++kx, x += s->dx)
    for (size_t ch = 0; ch < channels; ++ch)
      *to++ = x >= 0 && x < s->w ? line[(size_t)x * channels + ch] : 0;
}

/* The window of pixel (ox, oy) of the output. */
static void spread_window(const struct ct_window_shape *s, const float *image, const uint32_t o[2],
                          size_t channels, float *to) {
  const int64_t x = (int64_t)o[0] * s->sx - s->left;
  int64_t y = (int64_t)o[1] * s->sy - s->top;
  const size_t width = s->kx * channels;
  for (uint32_t ky = 0; ky < s->ky; ++ky, y += s->dy, to += width) {
    if (y >= 0 && y < s->h)
      spread_taps(s, image + (size_t)y * s->w * channels, x, channels, to);
    else
      memset(to, 0, width * sizeof *to);
  }
}

static void spread_windows(const struct ct_lay *lay, const float *data, float *matrix) {
  const struct ct_window_shape *s = &lay->windows;
  const size_t channels = window_channels(lay), size = (size_t)s->h * s->w * channels;
  for (uint32_t n = 0; n < s->images; ++n, data += size)
    for (uint32_t y = 0; y < s->oh; ++y)
      for (uint32_t x = 0; x < s->ow; ++x, matrix += lay->mat.cols)
        spread_window(s, data, (const uint32_t[]){x, y}, channels, matrix);
}

size_t ct_lay_elements(const struct ct_lay *lay) {
  const struct ct_window_shape *s = &lay->windows;
  switch (lay->kind) {
    case CT_LAY_WEIGHT:
      return (size_t)lay->weight.taps * lay->weight.own * lay->mat.cols;
    case CT_LAY_WINDOWS:
      return (size_t)s->images * s->h * s->w * window_channels(lay);
    default:
      return (size_t)lay->mat.rows * lay->mat.cols;
  }
}

struct pair {
  const float *from;
  float *to;
};
static void to_matrix(void *self, size_t matrix, size_t element) {
  const struct pair *p = self;
  p->to[matrix] = p->from[element];
}
static void from_matrix(void *self, size_t matrix, size_t element) {
  const struct pair *p = self;
  p->to[element] = p->from[matrix];
}

void ct_lay_spread(const struct ct_lay *lay, const float *data, float *matrix) {
  if (lay->kind == CT_LAY_WINDOWS) {
    spread_windows(lay, data, matrix);
  } else if (lay->kind == CT_LAY_WEIGHT) {
    memset(matrix, 0, (size_t)lay->mat.rows * lay->mat.cols * sizeof *matrix);
    each_weight(lay, to_matrix, &(struct pair){data, matrix});
  } else {
    memcpy(matrix, data, ct_lay_elements(lay) * sizeof *matrix);
  }
}

void ct_lay_gather(const struct ct_lay *lay, const float *matrix, float *data) {
  if (lay->kind == CT_LAY_WEIGHT)
    each_weight(lay, from_matrix, &(struct pair){matrix, data});
  else
    memcpy(data, matrix, ct_lay_elements(lay) * sizeof *data);
}

/* ---- Planes -------------------------------------------------------------------------------- */

uint64_t ct_regions_at(const struct ct_regions *r, unsigned region) {
  if (region == CT_ARG_LASTING) return r->lasting;
  if (region == CT_ARG_STATE) return r->state;
  return region == CT_ARG_ARENA ? r->arena : r->external[region - CT_ARG_FIRST];
}

/* Where a way of keeping lies: an address. */
static uint64_t region_at(const struct ct_regions *r, const struct ct_seat *seat) {
  return ct_regions_at(r, seat->reg) + (uint64_t)seat->at * CT_UNIT;
}

enum { TILE_FLOATS = CT_TILE * CT_TILE, RECORD_BYTES = CT_RECORD_UNITS * CT_UNIT };

/* A plane of a matrix, in one way of keeping. */
static void make_plane(const struct ct_mat *m, enum ct_keep keep, uint32_t plane, const float *x,
                       uint8_t *out) {
  const uint32_t groups = ct_mat_groups(m);
  if (keep == CT_KEEP_F32) {
    for (uint32_t g = 0; g < groups; ++g) {
      float tile[TILE_FLOATS];
      ct_tile_from(x, m->rows, m->cols, g, plane, tile);
      memcpy(out + (size_t)g * sizeof tile, tile, sizeof tile);
    }
    return;
  }
  ct_pack_narrow(x + (size_t)plane * CT_TILE,
                 &(struct ct_pack_form){.rows = m->rows,
                                        .cols = ct_in_tile(m->cols, plane),
                                        .pitch = m->cols,
                                        .sharing = keep == CT_KEEP_ROWS ? CT_ROW : CT_SQUARE,
                                        .narrow = m->narrow},
                 out);
}

static void read_plane(const struct ct_mat *m, enum ct_keep keep, uint32_t plane, const uint8_t *in,
                       float *x) {
  const uint32_t groups = ct_mat_groups(m);
  if (keep == CT_KEEP_F32) {
    for (uint32_t g = 0; g < groups; ++g) {
      float tile[TILE_FLOATS];
      memcpy(tile, in + (size_t)g * sizeof tile, sizeof tile);
      ct_tile_to(tile, m->rows, m->cols, g, plane, x);
    }
    return;
  }
  ct_unpack(in, m->rows, ct_in_tile(m->cols, plane), m->cols, x + (size_t)plane * CT_TILE);
}

static size_t plane_bytes(const struct ct_mat *m, enum ct_keep keep) {
  return (size_t)ct_mat_groups(m) * ct_keep_units(keep) * CT_UNIT;
}

static int put_keep(ct_network *n, const struct ct_mat *m, enum ct_keep keep, uint64_t at,
                    const float *x) {
  const size_t size = plane_bytes(m, keep), planes = ct_mat_planes(m);
  uint8_t *all = malloc(size * planes + 1);
  if (!all) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a tensor");
  for (uint32_t p = 0; p < planes; ++p)
    make_plane(m, keep, p, x, all + p * size);
  const int err = ct_mem_write(n->dev, at, all, size * planes);
  free(all);
  return err;
}

int ct_network_put(ct_network *n, const struct ct_regions *r, const struct ct_mat *m,
                   const float *x) {
  int err = CT_OK;
  for (unsigned k = 0; k < CT_KEEPS && !err; ++k)
    if (m->keep[k].reg) err = put_keep(n, m, (enum ct_keep)k, region_at(r, &m->keep[k]), x);
  return err;
}

size_t ct_network_raw(const struct ct_mat *m) {
  size_t bytes = 0;
  for (unsigned k = 0; k < CT_KEEPS; ++k)
    if (m->keep[k].reg) bytes += plane_bytes(m, (enum ct_keep)k) * ct_mat_planes(m);
  return bytes;
}

static int each_raw(ct_network *n, const struct ct_regions *r, const struct ct_mat *m, uint8_t *to,
                    const uint8_t *from) {
  int err = CT_OK;
  size_t done = 0;
  for (unsigned k = 0; k < CT_KEEPS && !err; ++k) {
    const size_t size = plane_bytes(m, (enum ct_keep)k) * ct_mat_planes(m);
    if (!m->keep[k].reg) continue;
    const uint64_t at = region_at(r, &m->keep[k]);
    err =
        to ? ct_mem_read(n->dev, at, to + done, size) : ct_mem_write(n->dev, at, from + done, size);
    done += size;
  }
  return err;
}

int ct_network_get_raw(ct_network *n, const struct ct_regions *r, const struct ct_mat *m,
                       uint8_t *bytes) {
  return each_raw(n, r, m, bytes, NULL);
}

int ct_network_put_raw(ct_network *n, const struct ct_regions *r, const struct ct_mat *m,
                       const uint8_t *bytes) {
  return each_raw(n, r, m, NULL, bytes);
}

int ct_network_get(ct_network *n, const struct ct_regions *r, const struct ct_mat *m, float *x) {
  unsigned keep = 0;
  while (keep < CT_KEEPS - 1 && !m->keep[keep].reg)
    ++keep;
  const size_t size = plane_bytes(m, (enum ct_keep)keep), planes = ct_mat_planes(m);
  uint8_t *all = malloc(size * planes + 1);
  if (!all) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a tensor");
  const int err = ct_mem_read(n->dev, region_at(r, &m->keep[keep]), all, size * planes);
  for (uint32_t p = 0; p < planes && !err; ++p)
    read_plane(m, (enum ct_keep)keep, p, all + p * size, x);
  free(all);
  return err;
}
