/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of perceptrons, which lie as the programs of ct_prog.h want them.
 *
 *   TILES     records as ct_pack() makes them, shared by square; or FP32 tiles, between which
 * others may lie: they are read before they are written LINES     FP32, whole units; a loss is a
 * sum of which a part is read VECTORS   rows as ct_pack_row() makes them
 */
#include <stdlib.h>
#include <string.h>

#include "ct_network.h"
#include "ct_num.h"

bool ct_lay_is_mlp(const struct ct_lay *lay) {
  return lay->kind == CT_LAY_TILES || lay->kind == CT_LAY_LINES || lay->kind == CT_LAY_VECTORS;
}

/* One way of keeping, in device memory and here. */
struct part {
  ct_network *n;
  const struct ct_lay *lay;
  enum ct_keep keep;
  uint64_t at;
  size_t size;
  uint8_t *bytes;
  const float *data; /* to be written */
};

/* From the first unit that is the tensor's to the last. */
static uint64_t units_of(const struct ct_lay *lay, enum ct_keep keep) {
  const uint64_t rows = lay->mat.rows,
                 tiles = (uint64_t)ct_tiles(lay->mat.rows) * ct_tiles(lay->mat.cols);
  if (lay->kind != CT_LAY_TILES) return rows * lay->pitch;
  if (keep == CT_KEEP_SQUARE) return tiles * CT_RECORD_UNITS;
  return (tiles - 1) * lay->pitch + CT_F32_TILE_UNITS;
}

static int open_part(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                     enum ct_keep keep, struct part *p) {
  const struct ct_seat *seat = &lay->mat.keep[keep];
  *p = (struct part){
      .n = n, .lay = lay, .keep = keep, .size = (size_t)units_of(lay, keep) * CT_UNIT};
  p->at = ct_regions_at(r, seat->reg) + (uint64_t)seat->at * CT_UNIT;
  p->bytes = calloc(1, p->size + 1);
  return p->bytes ? CT_OK : ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a tensor");
}

static int read_part(const struct part *p) {
  return ct_mem_read(p->n->dev, p->at, p->bytes, p->size);
}

static int write_part(const struct part *p) {
  return ct_mem_write(p->n->dev, p->at, p->bytes, p->size);
}

/* ---- Rows ---------------------------------------------------------------------------------- */

/* Groups of up to 16 blocks, each with 16 bytes of exponents in front. */
static void unpack_row(const uint8_t *in, uint32_t count, float *x) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t block = i / CT_TILE, group = block / CT_TILE, in_group = block % CT_TILE;
    const uint8_t *head = in + (size_t)group * (CT_TILE + 1) * CT_TILE;
    const uint8_t q = head[(size_t)(in_group + 1) * CT_TILE + i % CT_TILE];
    const uint32_t bits = ct_hbfp8_dequant((int8_t)q, head[in_group]);
    memcpy(x + i, &bits, sizeof bits);
  }
}

static void pack_lines(const struct ct_lay *lay, const float *from, uint8_t *to) {
  const uint32_t cols = lay->mat.cols;
  const size_t pitch = (size_t)lay->pitch * CT_UNIT;
  for (uint32_t i = 0; i < lay->mat.rows; ++i)
    memcpy(to + i * pitch, from + (size_t)i * cols, cols * sizeof *from);
}

static void unpack_lines(const struct ct_lay *lay, const uint8_t *from, float *to) {
  const uint32_t cols = lay->mat.cols;
  const size_t pitch = (size_t)lay->pitch * CT_UNIT;
  for (uint32_t i = 0; i < lay->mat.rows; ++i) {
    memcpy(to + (size_t)i * cols, from + i * pitch, cols * sizeof *to);
    if (lay->divide) to[i] = ct_divide(to[i], lay->divide);
  }
}

static void pack_vectors(const struct ct_lay *lay, const float *from, uint8_t *to) {
  const uint32_t cols = lay->mat.cols;
  for (uint32_t i = 0; i < lay->mat.rows; ++i)
    ct_pack_row(from + (size_t)i * cols, cols, to + (size_t)i * lay->pitch * CT_UNIT);
}

static void unpack_vectors(const struct ct_lay *lay, const uint8_t *from, float *to) {
  const uint32_t cols = lay->mat.cols;
  for (uint32_t i = 0; i < lay->mat.rows; ++i)
    unpack_row(from + (size_t)i * lay->pitch * CT_UNIT, cols, to + (size_t)i * cols);
}

/* ---- All ----------------------------------------------------------------------------------- */

void ct_lay_pack(const struct ct_lay *lay, enum ct_keep keep, const float *from, uint8_t *to) {
  const uint32_t rows = lay->mat.rows, cols = lay->mat.cols;
  if (lay->kind == CT_LAY_LINES)
    pack_lines(lay, from, to);
  else if (lay->kind == CT_LAY_VECTORS)
    pack_vectors(lay, from, to);
  else if (keep == CT_KEEP_F32)
    ct_tiles_from(from, rows, cols, (size_t)lay->pitch * CT_UNIT, to);
  else
    ct_pack(from, rows, cols, cols, CT_SQUARE, to);
}

void ct_lay_unpack(const struct ct_lay *lay, enum ct_keep keep, const uint8_t *from, float *to) {
  const uint32_t rows = lay->mat.rows, cols = lay->mat.cols;
  if (lay->kind == CT_LAY_LINES)
    unpack_lines(lay, from, to);
  else if (lay->kind == CT_LAY_VECTORS)
    unpack_vectors(lay, from, to);
  else if (keep == CT_KEEP_F32)
    ct_tiles_to(from, rows, cols, (size_t)lay->pitch * CT_UNIT, to);
  else
    ct_unpack(from, rows, cols, cols, to);
}

/* Between FP32 tiles of weights there are those of their momentum. */
static bool is_mixed(const struct ct_lay *lay, enum ct_keep keep) {
  return lay->kind == CT_LAY_TILES && keep == CT_KEEP_F32 && lay->pitch != CT_F32_TILE_UNITS;
}

/* Others lie between: these may have been written since the memory was made. */
static int put_part(const struct part *p) {
  const int err = is_mixed(p->lay, p->keep) ? read_part(p) : CT_OK;
  if (err) return err;
  ct_lay_pack(p->lay, p->keep, p->data, p->bytes);
  return write_part(p);
}

/* Parts of tensors that there is memory for. */
struct parts {
  struct part part[CT_PUTS * CT_KEEPS];
  size_t count;
};

static int open_parts(ct_network *n, const struct ct_regions *r, const struct ct_put *put,
                      struct parts *all) {
  int err = CT_OK;
  for (unsigned k = 0; k < CT_KEEPS && !err && put->data; ++k) {
    struct part *p = &all->part[all->count];
    if (!put->lay->mat.keep[k].reg) continue;
    err = open_part(n, r, put->lay, (enum ct_keep)k, p);
    p->data = put->data;
    all->count += !err;
  }
  return err;
}

int ct_network_put_mlps(ct_network *n, const struct ct_regions *r, const struct ct_put *put,
                        size_t count) {
  struct parts all = {.count = 0};
  int err = CT_OK;
  for (size_t i = 0; i < count && !err; ++i)
    err = open_parts(n, r, &put[i], &all);
  for (size_t i = 0; i < all.count && !err; ++i)
    err = put_part(&all.part[i]);
  for (size_t i = 0; i < all.count; ++i)
    free(all.part[i].bytes);
  return err;
}

int ct_network_put_mlp(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                       const float *data) {
  return ct_network_put_mlps(n, r, &(struct ct_put){lay, data}, 1);
}

int ct_network_get_mlp(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                       float *data) {
  unsigned k = 0;
  while (k < CT_KEEPS - 1 && !lay->mat.keep[k].reg)
    ++k;
  struct part p;
  int err = open_part(n, r, lay, (enum ct_keep)k, &p);
  if (!err) err = read_part(&p);
  if (!err) ct_lay_unpack(lay, (enum ct_keep)k, p.bytes, data);
  free(p.bytes);
  return err;
}
