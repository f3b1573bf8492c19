/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model files, version 1. All numbers little-endian.
 *
 *   offset  size
 *   0       8      "COLTRAIN"
 *   8       4      format version: 1
 *   12      4      01020304h, to be sure of the order of bytes
 *   16      4      layers L, 1..16
 *   20      4      0, reserved
 *   24      8 x 3  seed, steps taken, epochs finished
 *   48      4(L+1) widths
 *   ...            for each layer, FP32: weights (outputs x inputs), biases, momentum of the
 * weights, momentum of the biases end-4   4      CRC-32 (as in zlib) of everything before
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_model.h"

enum { FORMAT = 1, HEADER = 48, ORDER = 0x01020304 };

static const char magic[8] = {'C', 'O', 'L', 'T', 'R', 'A', 'I', 'N'};

static void put(uint8_t *p, uint64_t v, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get(const uint8_t *p, unsigned bytes) {
  uint64_t v = 0;
  for (unsigned i = 0; i < bytes; ++i)
    v |= (uint64_t)p[i] << 8 * i;
  return v;
}

static uint32_t crc32(const uint8_t *p, size_t size) {
  uint32_t table[256], crc = 0xffffffff;
  for (uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int b = 0; b < 8; ++b)
      table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
  }
  for (size_t i = 0; i < size; ++i)
    crc = crc >> 8 ^ table[(crc ^ p[i]) & 255];
  return ~crc;
}

static size_t file_size(const struct ct_mlp *net, size_t numbers) {
  return HEADER + 4 * ((size_t)net->layers + 1) + 4 * numbers + 4;
}

/* ---- Saving -------------------------------------------------------------------------------- */

static void encode(const ct_model *m, const struct ct_numbers *x, uint8_t *p, size_t size) {
  memcpy(p, magic, sizeof magic);
  put(p + 8, FORMAT, 4);
  put(p + 12, ORDER, 4);
  put(p + 16, m->net.layers, 4);
  put(p + 20, 0, 4);
  put(p + 24, m->seed, 8);
  put(p + 32, m->steps, 8);
  put(p + 40, m->epochs, 8);
  uint8_t *at = p + HEADER;
  for (uint32_t l = 0; l <= m->net.layers; ++l, at += 4)
    put(at, m->net.width[l], 4);
  for (size_t i = 0; i < x->count; ++i, at += 4) {
    uint32_t bits;
    memcpy(&bits, &x->all[i], sizeof bits);
    put(at, bits, 4);
  }
  put(at, crc32(p, size - 4), 4);
}

/* Writes beside the file first, so that an interrupted save leaves the old one. */
static int write_file(ct_model *m, const char *path, const uint8_t *data, size_t size) {
  char *beside = malloc(strlen(path) + 5);
  if (!beside) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory to save the model");
  sprintf(beside, "%s.new", path);
  FILE *f = fopen(beside, "wb");
  bool ok = f && fwrite(data, 1, size, f) == size;
  if (f) ok = fclose(f) == 0 && ok;
  ok = ok && rename(beside, path) == 0;
  const int reason = errno;
  if (!ok && f) remove(beside);
  free(beside);
  return ok ? CT_OK
            : ct_fail(m->dev, CT_ERR_IO, "%s could not be written: %s", path, strerror(reason));
}

int ct_model_save(ct_model *m, const char *path) {
  if (!m || !path) return CT_ERR_ARG;
  struct ct_numbers x;
  uint8_t *data = NULL;
  int err = ct_numbers_alloc(&m->net, &x);
  const size_t size = file_size(&m->net, x.count);
  if (!err && !(data = malloc(size))) err = CT_ERR_MEMORY;
  if (err) ct_fail(m->dev, err, "no memory to save the model");
  if (!err) err = ct_model_download(m, &x);
  if (!err && data) {
    encode(m, &x, data, size);
    err = write_file(m, path, data, size);
  }
  free(data);
  ct_numbers_free(&x);
  return err;
}

/* ---- Loading ------------------------------------------------------------------------------- */

static int read_all(ct_device *dev, const char *path, uint8_t **data, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) {
    const int err = errno == ENOENT   ? CT_ERR_NOT_FOUND
                    : errno == EACCES ? CT_ERR_PERMISSION
                                      : CT_ERR_IO;
    return ct_fail(dev, err, "%s: %s", path, strerror(errno));
  }
  size_t room = 1 << 16;
  int err = CT_OK;
  *size = 0;
  *data = malloc(room);
  while (!err && *data) {
    *size += fread(*data + *size, 1, room - *size, f);
    if (*size < room) break;
    room *= 2;
    uint8_t *more = realloc(*data, room);
    if (!more) err = ct_fail(dev, CT_ERR_MEMORY, "no memory to read %s", path);
    if (more) *data = more;
  }
  if (!*data) err = ct_fail(dev, CT_ERR_MEMORY, "no memory to read %s", path);
  if (ferror(f)) err = ct_fail(dev, CT_ERR_IO, "%s: reading failed", path);
  fclose(f);
  return err;
}

static int check_header(ct_device *dev, const char *path, const uint8_t *p, size_t size,
                        struct ct_mlp *net) {
  if (size < sizeof magic || memcmp(p, magic, sizeof magic) != 0)
    return ct_fail(dev, CT_ERR_FORMAT, "%s is not a model file", path);
  if (size < HEADER + 8)
    return ct_fail(dev, CT_ERR_FORMAT, "%s is too short for a model file", path);
  if (get(p + 8, 4) != FORMAT)
    return ct_fail(dev, CT_ERR_FORMAT, "%s has format version %u, this library reads %d", path,
                   (unsigned)get(p + 8, 4), FORMAT);
  if (get(p + 12, 4) != ORDER)
    return ct_fail(dev, CT_ERR_FORMAT, "%s has another order of bytes", path);
  net->layers = (uint32_t)get(p + 16, 4);
  if (net->layers < 1 || net->layers > CT_MLP_LAYERS || size < file_size(net, 0))
    return ct_fail(dev, CT_ERR_FORMAT, "%s claims %u layers", path, net->layers);
  for (uint32_t l = 0; l <= net->layers; ++l)
    net->width[l] = (uint32_t)get(p + HEADER + (size_t)4 * l, 4);
  char text[256];
  const struct ct_why why = {text, sizeof text};
  return ct_mlp_check(net, &why) ? ct_fail(dev, CT_ERR_FORMAT, "%s: %s", path, text) : CT_OK;
}

static int decode(ct_device *dev, const char *path, const uint8_t *p, size_t size,
                  ct_model **model) {
  struct ct_mlp net = {.layers = 0};
  struct ct_numbers x = {.all = NULL};
  int err = check_header(dev, path, p, size, &net);
  if (err) return err;
  err = ct_numbers_alloc(&net, &x);
  if (err) return ct_fail(dev, err, "no memory for the model in %s", path);
  if (size != file_size(&net, x.count))
    err = ct_fail(dev, CT_ERR_FORMAT, "%s has %zu bytes, its header says %zu", path, size,
                  file_size(&net, x.count));
  else if (get(p + size - 4, 4) != crc32(p, size - 4))
    err = ct_fail(dev, CT_ERR_FORMAT, "%s is damaged: the checksum does not match", path);
  const uint8_t *at = p + HEADER + 4 * ((size_t)net.layers + 1);
  for (size_t i = 0; i < x.count && !err; ++i, at += 4) {
    const uint32_t bits = (uint32_t)get(at, 4);
    memcpy(&x.all[i], &bits, sizeof bits);
  }
  ct_model *m = NULL;
  if (!err) err = ct_model_alloc(dev, &net, &m);
  if (!err) err = ct_model_upload(m, &x);
  ct_numbers_free(&x);
  if (err) {
    ct_model_free(m);
    return err;
  }
  m->seed = get(p + 24, 8);
  m->steps = get(p + 32, 8);
  m->epochs = get(p + 40, 8);
  *model = m;
  return CT_OK;
}

int ct_model_load(ct_device *dev, const char *path, ct_model **model) {
  if (!dev || !path || !model) return CT_ERR_ARG;
  *model = NULL;
  uint8_t *data = NULL;
  size_t size = 0;
  int err = read_all(dev, path, &data, &size);
  if (!err && data) err = decode(dev, path, data, size, model);
  free(data);
  return err;
}
