/* SPDX-License-Identifier: Apache-2.0 */
/* What the formats of files have in common. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "ct_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Bytes --------------------------------------------------------------------------------- */

void ct_file_put(uint8_t *p, uint64_t v, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    p[i] = (uint8_t)(v >> 8 * i);
}

uint64_t ct_file_get(const uint8_t *p, unsigned bytes) {
  uint64_t v = 0;
  for (unsigned i = 0; i < bytes; ++i)
    v |= (uint64_t)p[i] << 8 * i;
  return v;
}

void ct_file_put_float(uint8_t *p, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  ct_file_put(p, bits, 4);
}

float ct_file_get_float(const uint8_t *p) {
  const uint32_t bits = (uint32_t)ct_file_get(p, 4);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

uint8_t *ct_file_put_floats(uint8_t *p, const float *x, size_t count) {
  for (size_t i = 0; i < count; ++i, p += 4)
    ct_file_put_float(p, x[i]);
  return p;
}

void ct_file_get_floats(const uint8_t *p, float *x, size_t count) {
  for (size_t i = 0; i < count; ++i)
    x[i] = ct_file_get_float(p + 4 * i);
}

static uint32_t crc32_of(const uint8_t *p, size_t size) {
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

void ct_file_seal(uint8_t *data, size_t size) {
  ct_file_put(data + size - CT_FILE_SUM, crc32_of(data, size - CT_FILE_SUM), CT_FILE_SUM);
}

bool ct_file_is_sealed(const uint8_t *data, size_t size) {
  return size >= CT_FILE_SUM &&
         ct_file_get(data + size - CT_FILE_SUM, CT_FILE_SUM) == crc32_of(data, size - CT_FILE_SUM);
}

/* ---- The beginning of a file --------------------------------------------------------------- */

enum {
  ORDER = 0x01020304,
  SWAPPED = 0x04030201, /* the same, big-endian */
  AT_FORMAT = 8,
  AT_ORDER = 12
};

static const char magic[8] = {'C', 'O', 'L', 'T', 'R', 'A', 'I', 'N'};

void ct_file_begin(uint8_t *p, uint32_t format) {
  memcpy(p, magic, sizeof magic);
  ct_file_put(p + AT_FORMAT, format, 4);
  ct_file_put(p + AT_ORDER, ORDER, 4);
}

int ct_file_check(ct_device *dev, const char *path, const uint8_t *p, size_t size,
                  uint32_t *format) {
  if (size == 0) return ct_fail(dev, CT_ERR_FORMAT, "%s is empty", path);
  if (memcmp(p, magic, size < sizeof magic ? size : sizeof magic) != 0)
    return ct_fail(dev, CT_ERR_FORMAT, "%s is not a model file: it does not begin with COLTRAIN",
                   path);
  if (size < CT_FILE_HEAD)
    return ct_fail(dev, CT_ERR_FORMAT,
                   "%s was cut short: a model file goes on after these %zu bytes", path, size);
  /* First, because it says how the version has to be read. */
  if (ct_file_get(p + AT_ORDER, 4) == SWAPPED)
    return ct_fail(dev, CT_ERR_FORMAT,
                   "%s has big-endian numbers: model files are little-endian, and this library "
                   "writes no others",
                   path);
  *format = (uint32_t)ct_file_get(p + AT_FORMAT, 4);
  if (*format != CT_FILE_MODEL && *format != CT_FILE_NETWORK)
    return ct_fail(dev, CT_ERR_FORMAT, "%s has format version %u: this library reads 1 and 2", path,
                   *format);
  if (ct_file_get(p + AT_ORDER, 4) != ORDER)
    return ct_fail(dev, CT_ERR_FORMAT,
                   "%s has another order of bytes: it was not written by this library", path);
  return CT_OK;
}

/* ---- Writing ------------------------------------------------------------------------------- */

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

int ct_file_write(ct_device *dev, const char *path, uint8_t *data, size_t size) {
  struct stat st;
  ct_file_seal(data, size);
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
  return ct_fail(dev, reason == ENOMEM ? CT_ERR_MEMORY : CT_ERR_IO, "%s could not be written: %s",
                 path, strerror(reason));
}

/* ---- Reading ------------------------------------------------------------------------------- */

int ct_file_cannot(ct_device *dev, const char *path, const char *what, int reason) {
  const int err = reason == ENOENT   ? CT_ERR_NOT_FOUND
                  : reason == EACCES ? CT_ERR_PERMISSION
                  : reason == ENOMEM ? CT_ERR_MEMORY
                                     : CT_ERR_IO;
  return ct_fail(dev, err, "%s cannot be %s: %s", path, what, strerror(reason));
}

static bool is_read(const uint8_t *p, size_t size) {
  if (size < CT_FILE_HEAD) return false;
  if (memcmp(p, magic, sizeof magic) != 0) return true;
  const uint64_t format = ct_file_get(p + AT_FORMAT, 4);
  return format == CT_FILE_MODEL ? ct_model_file_is_read(p, size) : format != CT_FILE_NETWORK;
}

/* Memory grows with the bytes that are there. */
static int read_all(ct_device *dev, const char *path, FILE *file, uint8_t **data, size_t *size) {
  size_t room = 0, got = 1;
  for (*size = 0; got && !is_read(*data, *size); *size += got) {
    if (*size == room) {
      room = 2 * room + 65536;
      uint8_t *more = realloc(*data, room);
      if (!more) return ct_file_cannot(dev, path, "read", ENOMEM);
      *data = more;
    }
    got = fread(*data + *size, 1, room - *size, file);
    if (!got && ferror(file)) return ct_file_cannot(dev, path, "read", errno);
  }
  return CT_OK;
}

int ct_file_read(ct_device *dev, const char *path, uint8_t **data, size_t *size) {
  *data = NULL;
  FILE *file = fopen(path, "rb");
  if (!file) return ct_file_cannot(dev, path, "opened", errno);
  const int err = read_all(dev, path, file, data, size);
  fclose(file);
  if (!err) return CT_OK;
  free(*data);
  *data = NULL;
  return err;
}
