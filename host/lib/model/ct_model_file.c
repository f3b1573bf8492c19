/* SPDX-License-Identifier: Apache-2.0 */
/* Model files: docs/model-format.md says what is in them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ct_file.h"
#include "ct_model.h"

/* Where things are in a file of format version 1; the widths follow the header. */
enum {
  FORMAT = 1,
  AT_LAYERS = 16,
  AT_BATCH = 20,
  AT_SEED = 24,
  AT_STEPS = 32,
  AT_EPOCHS = 40,
  AT_RATES = 48, /* learning rate, momentum, weight decay */
  HEADER = 64,
  CHECKSUM = 4
};

static size_t file_size(const struct ct_mlp *net, size_t numbers) {
  return HEADER + 4 * ((size_t)net->layers + 1) + 4 * numbers + CHECKSUM;
}

/* ---- Saving -------------------------------------------------------------------------------- */

static void encode(const ct_model *m, const struct ct_numbers *x, uint8_t *p, size_t size) {
  memset(p, 0, HEADER);
  ct_file_begin(p, FORMAT);
  ct_file_put(p + AT_LAYERS, m->net.layers, 4);
  ct_file_put(p + AT_BATCH, m->training.batch, 4);
  ct_file_put(p + AT_SEED, m->seed, 8);
  ct_file_put(p + AT_STEPS, m->steps, 8);
  ct_file_put(p + AT_EPOCHS, m->epochs, 8);
  ct_file_put_float(p + AT_RATES, m->training.rates.lr);
  ct_file_put_float(p + AT_RATES + 4, m->training.rates.momentum);
  ct_file_put_float(p + AT_RATES + 8, m->training.rates.weight_decay);
  uint8_t *at = p + HEADER;
  for (uint32_t l = 0; l <= m->net.layers; ++l, at += 4)
    ct_file_put(at, m->net.width[l], 4);
  for (size_t i = 0; i < x->count; ++i, at += 4)
    ct_file_put_float(at, x->all[i]);
  ct_file_put(at, ct_file_crc32(p, size - CHECKSUM), 4);
}

int ct_model_save(ct_model *m, const char *path) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, path);
  struct ct_numbers *x = NULL;
  err = ct_model_numbers(m, "saved", &x);
  if (err || !x) return err;
  const size_t size = file_size(&m->net, x->count);
  uint8_t *data = malloc(size);
  if (data) {
    encode(m, x, data, size);
    err = ct_file_write(m->dev, path, data, size);
  } else {
    err = ct_fail(m->dev, CT_ERR_MEMORY, "no memory to save the model");
  }
  free(data);
  ct_numbers_free(x);
  return err;
}

/* ---- Loading ------------------------------------------------------------------------------- */

/* A file being read. */
struct source {
  ct_device *dev;
  const char *path;
  FILE *file;
};

/* Reads up to size bytes; how many there were goes to *got. */
static int read_some(const struct source *s, uint8_t *p, size_t size, size_t *got) {
  *got = fread(p, 1, size, s->file);
  return ferror(s->file) ? ct_file_cannot(s->dev, s->path, "read", errno) : CT_OK;
}

static int cut_short(const struct source *s, size_t have) {
  return ct_fail(s->dev, CT_ERR_FORMAT,
                 "%s was cut short: a model file goes on after these %zu bytes", s->path, have);
}

/* What the first bytes say, size of them. */
static int check_header(const struct source *s, const uint8_t *p, size_t size, struct ct_mlp *net) {
  const int err = ct_file_check(s->dev, s->path, p, size, FORMAT);
  if (err) return err;
  if (size < HEADER) return cut_short(s, size);
  net->layers = (uint32_t)ct_file_get(p + AT_LAYERS, 4);
  if (net->layers < 1 || net->layers > CT_MLP_LAYERS)
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s claims %u layers; a model has 1..%d", s->path,
                   net->layers, CT_MLP_LAYERS);
  return CT_OK;
}

static int read_widths(const struct source *s, uint8_t *p, struct ct_mlp *net) {
  size_t got;
  const size_t size = 4 * ((size_t)net->layers + 1);
  const int err = read_some(s, p, size, &got);
  if (err) return err;
  if (got < size) return cut_short(s, HEADER + got);
  for (uint32_t l = 0; l <= net->layers; ++l)
    net->width[l] = (uint32_t)ct_file_get(p + (size_t)4 * l, 4);
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  return ct_mlp_check(net, &why) ? ct_fail(s->dev, CT_ERR_FORMAT, "%s: %s", s->path, text) : CT_OK;
}

/* Refuses a file of another length before memory is taken for what its header claims; where there
 * is no length, as with a pipe, read_rest() does. */
static int check_length(const struct source *s, size_t size) {
  struct stat st;
  if (fstat(fileno(s->file), &st) != 0 || !S_ISREG(st.st_mode)) return CT_OK;
  if ((uint64_t)st.st_size < size)
    return ct_fail(s->dev, CT_ERR_FORMAT,
                   "%s was cut short: it has %lld bytes, its header says %zu", s->path,
                   (long long)st.st_size, size);
  if ((uint64_t)st.st_size > size)
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s goes on after the %zu bytes that its header says",
                   s->path, size);
  return CT_OK;
}

/* The rest of a file of size bytes, of which have are in p. */
static int read_rest(const struct source *s, uint8_t *p, size_t have, size_t size) {
  size_t got;
  int err = read_some(s, p + have, size - have, &got);
  if (err) return err;
  if (have + got < size)
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s was cut short: it has %zu bytes, its header says %zu",
                   s->path, have + got, size);
  uint8_t more;
  err = read_some(s, &more, 1, &got);
  if (err) return err;
  if (got)
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s goes on after the %zu bytes that its header says",
                   s->path, size);
  if (ct_file_get(p + size - CHECKSUM, 4) != ct_file_crc32(p, size - CHECKSUM))
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s is damaged: the checksum does not match", s->path);
  return CT_OK;
}

static void take_header(ct_model *m, const uint8_t *p) {
  m->seed = ct_file_get(p + AT_SEED, 8);
  m->steps = ct_file_get(p + AT_STEPS, 8);
  m->epochs = ct_file_get(p + AT_EPOCHS, 8);
  m->training =
      (struct ct_training){.batch = (uint32_t)ct_file_get(p + AT_BATCH, 4),
                           .rates = {.lr = ct_file_get_float(p + AT_RATES),
                                     .momentum = ct_file_get_float(p + AT_RATES + 4),
                                     .weight_decay = ct_file_get_float(p + AT_RATES + 8)}};
}

/* From a whole file in memory to the device. */
static int decode(const struct source *s, const struct ct_mlp *net, const uint8_t *p,
                  ct_model **model) {
  struct ct_numbers *x = ct_numbers_alloc(net);
  if (!x) return ct_fail(s->dev, CT_ERR_MEMORY, "no memory for the model in %s", s->path);
  const uint8_t *at = p + HEADER + 4 * ((size_t)net->layers + 1);
  for (size_t i = 0; i < x->count; ++i, at += 4)
    x->all[i] = ct_file_get_float(at);
  const int err = ct_model_alloc(s->dev, net, x, model);
  if (!err) take_header(*model, p);
  return err;
}

/* Header and widths decide how much is read: what is foreign is not read to its end. */
static int read_model(const struct source *s, ct_model **model) {
  uint8_t head[HEADER + 4 * (CT_MLP_LAYERS + 1)], *data = NULL;
  struct ct_mlp net = {.layers = 0};
  size_t got;
  int err = read_some(s, head, HEADER, &got);
  if (!err) err = check_header(s, head, got, &net);
  if (!err) err = read_widths(s, head + HEADER, &net);
  if (err) return err;
  const size_t have = HEADER + 4 * ((size_t)net.layers + 1);
  const size_t size = file_size(&net, ct_numbers_count(&net));
  err = check_length(s, size);
  if (err) return err;
  data = malloc(size);
  if (!data) return ct_fail(s->dev, CT_ERR_MEMORY, "no memory for the model in %s", s->path);
  memcpy(data, head, have);
  err = read_rest(s, data, have, size);
  if (!err) err = decode(s, &net, data, model);
  free(data);
  return err;
}

int ct_model_load(ct_device *dev, const char *path, ct_model **model) {
  if (model) *model = NULL;
  int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, path);
  CT_NEED(dev, model);
  struct source s = {dev, path, fopen(path, "rb")};
  if (!s.file) return ct_file_cannot(dev, path, "opened", errno);
  err = read_model(&s, model);
  fclose(s.file);
  return err;
}
