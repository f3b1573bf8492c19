/* SPDX-License-Identifier: Apache-2.0 */
/* Model files: docs/model-format.md says what is in them. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ct_model.h"

/* Where things are in a file of format version 1; the widths follow the header. */
enum {
  FORMAT = 1,
  ORDER = 0x01020304,
  SWAPPED = 0x04030201, /* the same, big-endian */
  AT_FORMAT = 8,
  AT_ORDER = 12,
  AT_LAYERS = 16,
  AT_BATCH = 20,
  AT_SEED = 24,
  AT_STEPS = 32,
  AT_EPOCHS = 40,
  AT_RATES = 48, /* learning rate, momentum, weight decay */
  HEADER = 64,
  CHECKSUM = 4
};

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

static void put_float(uint8_t *p, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  put(p, bits, 4);
}

static float get_float(const uint8_t *p) {
  const uint32_t bits = (uint32_t)get(p, 4);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
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
  return HEADER + 4 * ((size_t)net->layers + 1) + 4 * numbers + CHECKSUM;
}

/* ---- Saving -------------------------------------------------------------------------------- */

static void encode(const ct_model *m, const struct ct_numbers *x, uint8_t *p, size_t size) {
  memset(p, 0, HEADER);
  memcpy(p, magic, sizeof magic);
  put(p + AT_FORMAT, FORMAT, 4);
  put(p + AT_ORDER, ORDER, 4);
  put(p + AT_LAYERS, m->net.layers, 4);
  put(p + AT_BATCH, m->training.batch, 4);
  put(p + AT_SEED, m->seed, 8);
  put(p + AT_STEPS, m->steps, 8);
  put(p + AT_EPOCHS, m->epochs, 8);
  put_float(p + AT_RATES, m->training.rates.lr);
  put_float(p + AT_RATES + 4, m->training.rates.momentum);
  put_float(p + AT_RATES + 8, m->training.rates.weight_decay);
  uint8_t *at = p + HEADER;
  for (uint32_t l = 0; l <= m->net.layers; ++l, at += 4)
    put(at, m->net.width[l], 4);
  for (size_t i = 0; i < x->count; ++i, at += 4)
    put_float(at, x->all[i]);
  put(at, crc32(p, size - CHECKSUM), 4);
}

static bool write_all(int fd, const uint8_t *data, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= (size_t)n;
  }
  return true;
}

/* Makes a rename in the folder of path last. */
static void sync_folder(const char *path) {
  char folder[PATH_MAX] = ".";
  const char *slash = strrchr(path, '/');
  const size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
  if (slash && length < sizeof folder) {
    memcpy(folder, path, length);
    folder[length] = 0;
  }
  const int fd = open(folder, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  fsync(fd); /* some file systems cannot: the rename is whole all the same */
  close(fd);
}

/* The new file is complete on the disk before it takes the old one's name: whenever the machine or
 * the program stops, there is a whole file of that name. */
static bool replace(const char *path, const char *beside, const uint8_t *data, size_t size) {
  const int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) return false;
  bool ok = write_all(fd, data, size) && fsync(fd) == 0;
  int reason = errno;
  if (close(fd) != 0 && ok) {
    reason = errno;
    ok = false;
  }
  if (ok && rename(beside, path) != 0) {
    reason = errno;
    ok = false;
  }
  if (ok) {
    sync_folder(path);
  } else {
    unlink(beside);
    errno = reason;
  }
  return ok;
}

/* What is no ordinary file (a pipe, /dev/full) is written to, not replaced. */
static bool write_through(const char *path, const uint8_t *data, size_t size) {
  const int fd = open(path, O_WRONLY);
  if (fd < 0) return false;
  const bool ok = write_all(fd, data, size);
  const int reason = errno;
  close(fd);
  errno = reason;
  return ok;
}

static int write_file(ct_model *m, const char *path, const uint8_t *data, size_t size) {
  struct stat st;
  char *target = realpath(path, NULL); /* a link stays a link */
  const char *name = target ? target : path;
  const size_t room = strlen(name) + sizeof ".new";
  char *beside = malloc(room);
  bool ok = false;
  errno = ENOMEM;
  if (beside) {
    snprintf(beside, room, "%s.new", name);
    if (stat(name, &st) == 0 && !S_ISREG(st.st_mode))
      ok = write_through(name, data, size);
    else
      ok = replace(name, beside, data, size);
  }
  const int reason = errno;
  free(beside);
  free(target);
  if (ok) return CT_OK;
  return ct_fail(m->dev, reason == ENOMEM ? CT_ERR_MEMORY : CT_ERR_IO,
                 "%s could not be written: %s", path, strerror(reason));
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
    err = write_file(m, path, data, size);
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
  return ferror(s->file)
             ? ct_fail(s->dev, CT_ERR_IO, "%s cannot be read: %s", s->path, strerror(errno))
             : CT_OK;
}

static int cut_short(const struct source *s, size_t have) {
  return ct_fail(s->dev, CT_ERR_FORMAT,
                 "%s was cut short: a model file goes on after these %zu bytes", s->path, have);
}

/* What the first bytes say, size of them. */
static int check_header(const struct source *s, const uint8_t *p, size_t size, struct ct_mlp *net) {
  if (size == 0) return ct_fail(s->dev, CT_ERR_FORMAT, "%s is empty", s->path);
  if (memcmp(p, magic, size < sizeof magic ? size : sizeof magic) != 0)
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s is not a model file: it does not begin with COLTRAIN",
                   s->path);
  if (size < HEADER) return cut_short(s, size);
  /* First, because it says how the version has to be read. */
  if (get(p + AT_ORDER, 4) == SWAPPED)
    return ct_fail(s->dev, CT_ERR_FORMAT,
                   "%s has big-endian numbers: model files are little-endian, and this library "
                   "writes no others",
                   s->path);
  if (get(p + AT_FORMAT, 4) != FORMAT)
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s has format version %u, this library reads %d",
                   s->path, (unsigned)get(p + AT_FORMAT, 4), FORMAT);
  if (get(p + AT_ORDER, 4) != ORDER)
    return ct_fail(s->dev, CT_ERR_FORMAT,
                   "%s has another order of bytes: it was not written by this library", s->path);
  net->layers = (uint32_t)get(p + AT_LAYERS, 4);
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
    net->width[l] = (uint32_t)get(p + (size_t)4 * l, 4);
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
  if (get(p + size - CHECKSUM, 4) != crc32(p, size - CHECKSUM))
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s is damaged: the checksum does not match", s->path);
  return CT_OK;
}

static void take_header(ct_model *m, const uint8_t *p) {
  m->seed = get(p + AT_SEED, 8);
  m->steps = get(p + AT_STEPS, 8);
  m->epochs = get(p + AT_EPOCHS, 8);
  m->training = (struct ct_training){.batch = (uint32_t)get(p + AT_BATCH, 4),
                                     .rates = {.lr = get_float(p + AT_RATES),
                                               .momentum = get_float(p + AT_RATES + 4),
                                               .weight_decay = get_float(p + AT_RATES + 8)}};
}

/* From a whole file in memory to the device. */
static int decode(const struct source *s, const struct ct_mlp *net, const uint8_t *p,
                  ct_model **model) {
  struct ct_numbers *x = ct_numbers_alloc(net);
  if (!x) return ct_fail(s->dev, CT_ERR_MEMORY, "no memory for the model in %s", s->path);
  const uint8_t *at = p + HEADER + 4 * ((size_t)net->layers + 1);
  for (size_t i = 0; i < x->count; ++i, at += 4)
    x->all[i] = get_float(at);
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
  if (!s.file) {
    err = errno == ENOENT ? CT_ERR_NOT_FOUND : errno == EACCES ? CT_ERR_PERMISSION : CT_ERR_IO;
    return ct_fail(dev, err, "%s cannot be opened: %s", path, strerror(errno));
  }
  err = read_model(&s, model);
  fclose(s.file);
  return err;
}
