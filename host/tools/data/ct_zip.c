/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_zip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST /* what is read stays as it is */
#include <zlib.h>

#include "ct_source.h"

/* Sizes of the records without names, and where their fields are (APPNOTE 6.3, 4.3). */
enum {
  kLocal = 30,
  kLocalName = 26,
  kLocalExtra = 28,
  kEntry = 46,
  kMethod = 10,
  kSum = 16,
  kPacked = 20,
  kPlain = 24,
  kName = 28,
  kExtra = 30,
  kComment = 32,
  kOffset = 42,
  kEnd = 22,
  kEndEntries = 10,
  kEndBytes = 12,
  kEndOffset = 16,
  kEndFar = 65535 + kEnd, /* how far the end's record may be from the end, for its comment */
  kStored = 0,
  kDeflated = 8,
};
#define ELSEWHERE 0xFFFFFFFFu /* a number that a zip64 record has */

static size_t two(const uint8_t *b) {
  return b[0] | (size_t)b[1] << 8;
}

static uint32_t four(const uint8_t *b) {
  return (uint32_t)(two(b) | two(b + 2) << 16);
}

static int damaged(const struct ct_zip *z) {
  return ct_fault_say(&z->fault, "is a damaged or cut .npz file (a zip archive); make it again");
}

bool ct_zip_is(const char *path) {
  char head[4];
  FILE *file = fopen(path, "rb");
  const bool is = file && fread(head, 1, 4, file) == 4 && memcmp(head, "PK\3\4", 4) == 0;
  if (file) fclose(file);
  return is;
}

/* Bytes of the archive from a place on; they must be there before memory is taken for them. */
static int read_at(const struct ct_zip *z, FILE *file, uint64_t at, size_t n, uint8_t **out) {
  *out = NULL;
  if (fseek(file, 0, SEEK_END)) return damaged(z);
  const long end = ftell(file);
  if (end < 0 || at > (uint64_t)end || n > (uint64_t)end - at) return damaged(z);
  *out = malloc(n + 1);
  if (!*out) return ct_fault_say(&z->fault, "no memory for %zu bytes of it", n);
  if (fseek(file, (long)at, SEEK_SET) || fread(*out, 1, n, file) != n) return damaged(z);
  return 0;
}

/* The last record of the archive says where the directory is. */
static int find_directory(struct ct_zip *z, FILE *file) {
  uint8_t *tail;
  if (fseek(file, 0, SEEK_END)) return damaged(z);
  const long size = ftell(file);
  const size_t n = size > kEndFar ? (size_t)kEndFar : size < 0 ? 0 : (size_t)size;
  int rc = read_at(z, file, (uint64_t)size - n, n, &tail);
  size_t at = n < kEnd ? 0 : n - kEnd;
  while (rc == 0 && at && memcmp(tail + at, "PK\5\6", 4) != 0)
    --at;
  if (rc == 0 && !at) rc = damaged(z);
  if (rc == 0) {
    const uint8_t *end = tail + at;
    z->entries = two(end + kEndEntries);
    z->bytes = four(end + kEndBytes);
    rc = read_at(z, file, four(end + kEndOffset), z->bytes, &z->directory);
  }
  free(tail);
  return rc;
}

int ct_zip_open(struct ct_zip *z, const struct ct_fault *f) {
  *z = (struct ct_zip){.fault = *f};
  FILE *file = fopen(f->file, "rb");
  if (!file) return ct_fault_say(f, "cannot be opened: %s", strerror(errno));
  const int rc = find_directory(z, file);
  fclose(file);
  if (rc) ct_zip_close(z);
  return rc;
}

void ct_zip_close(struct ct_zip *z) {
  free(z->directory);
  z->directory = NULL;
}

/* The entry of a member, all of which is in the directory; NULL. */
static const uint8_t *find(const struct ct_zip *z, const char *name) {
  size_t at = 0;
  for (size_t i = 0; i < z->entries && z->bytes - at >= kEntry; ++i) {
    const uint8_t *e = z->directory + at;
    const size_t length = two(e + kName),
                 all = kEntry + length + two(e + kExtra) + two(e + kComment);
    if (memcmp(e, "PK\1\2", 4) != 0 || all > z->bytes - at) return NULL;
    if (length == strlen(name) && memcmp(e + kEntry, name, length) == 0) return e;
    at += all;
  }
  return NULL;
}

bool ct_zip_has(const struct ct_zip *z, const char *name) {
  return find(z, name) != NULL;
}

/* Inflates to as many bytes as the directory says, which grow as they come. */
static int inflate_all(const struct ct_zip *z, const uint8_t *from, size_t n, size_t want,
                       uint8_t **out) {
  z_stream s = {.next_in = from, .avail_in = (uInt)n};
  size_t room = 0;
  int code = inflateInit2(&s, -MAX_WBITS);
  if (code != Z_OK) return ct_fault_say(&z->fault, "no memory to read it");
  while (code == Z_OK && s.total_out < want) {
    if (!ct_source_grow(out, s.total_out, &room, want)) code = Z_MEM_ERROR;
    if (code != Z_OK) break;
    s.next_out = *out + s.total_out;
    s.avail_out = (uInt)(room - s.total_out);
    code = inflate(&s, Z_NO_FLUSH);
  }
  const bool whole = s.total_out == want;
  inflateEnd(&s);
  if (code == Z_MEM_ERROR) return ct_fault_say(&z->fault, "no memory for its %zu bytes", want);
  return whole ? 0 : damaged(z);
}

/* What is stored of an entry, from behind its local header on. */
static int read_packed(const struct ct_zip *z, FILE *file, const uint8_t *e, uint8_t **packed) {
  uint8_t *local;
  const uint64_t at = four(e + kOffset);
  int rc = read_at(z, file, at, kLocal, &local);
  if (rc == 0 && memcmp(local, "PK\3\4", 4) != 0) rc = damaged(z);
  *packed = NULL;
  if (rc == 0)
    rc = read_at(z, file, at + kLocal + two(local + kLocalName) + two(local + kLocalExtra),
                 four(e + kPacked), packed);
  free(local);
  return rc;
}

static int unpack(const struct ct_zip *z, const uint8_t *e, uint8_t *packed, uint8_t **data) {
  const size_t method = two(e + kMethod), n = four(e + kPacked), want = four(e + kPlain);
  if (method == kDeflated) return inflate_all(z, packed, n, want, data);
  if (method != kStored)
    return ct_fault_say(&z->fault, "is packed by a method (%zu) that is not known", method);
  if (n != want) return damaged(z);
  *data = malloc(n + 1);
  if (!*data) return ct_fault_say(&z->fault, "no memory for its %zu bytes", n);
  memcpy(*data, packed, n);
  return 0;
}

int ct_zip_read(const struct ct_zip *z, const char *name, uint8_t **data, size_t *bytes) {
  const uint8_t *e = find(z, name);
  uint8_t *packed = NULL;
  *data = NULL;
  *bytes = 0;
  if (!e) return ct_fault_say(&z->fault, "has no %s", name);
  if (four(e + kPacked) == ELSEWHERE || four(e + kPlain) == ELSEWHERE ||
      four(e + kOffset) == ELSEWHERE)
    return ct_fault_say(&z->fault,
                        "has 4 GB or more, which is not taken; use a folder of .npy files");
  FILE *file = fopen(z->fault.file, "rb");
  if (!file) return ct_fault_say(&z->fault, "cannot be opened: %s", strerror(errno));
  int rc = read_packed(z, file, e, &packed);
  fclose(file);
  if (rc == 0) rc = unpack(z, e, packed, data);
  free(packed);
  if (rc == 0 && crc32_z(crc32_z(0, NULL, 0), *data, four(e + kPlain)) != four(e + kSum))
    rc = damaged(z);
  if (rc == 0) *bytes = four(e + kPlain);
  return rc;
}
