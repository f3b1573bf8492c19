/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK ((size_t)1 << 16)

int ct_source_open(struct ct_source *s, const char *path, const struct ct_fault *where) {
  struct stat st;
  *s = (struct ct_source){{path, where->why, where->whysize}, NULL};
  if (stat(path, &st)) return ct_fault_say(&s->fault, "cannot be opened: %s", strerror(errno));
  if (!S_ISREG(st.st_mode)) return ct_fault_say(&s->fault, "is not an ordinary file");
  errno = 0;
  s->file = gzopen(path, "rb");
  if (!s->file)
    return ct_fault_say(&s->fault, "cannot be opened: %s", strerror(errno ? errno : ENOMEM));
  gzbuffer(s->file, CHUNK);
  return 0;
}

void ct_source_close(struct ct_source *s) {
  gzclose_r(s->file);
}

/* Whether the last read failed, or met the end of a .gz before that of its data. */
static bool failed(struct ct_source *s, int got) {
  int code = Z_OK;
  gzerror(s->file, &code);
  return got < 0 || code != Z_OK;
}

/* Why a read stopped: a damaged or cut .gz, an error of the system, or (NULL) simply the end. */
static int say(struct ct_source *s) {
  int code = Z_OK;
  const char *text = gzerror(s->file, &code);
  if (code == Z_ERRNO) return ct_fault_say(&s->fault, "cannot be read: %s", strerror(errno));
  if (code == Z_BUF_ERROR)
    return ct_fault_say(&s->fault, "ends within its gzip data; it was cut short, copy it again");
  return ct_fault_say(&s->fault, "is a damaged gzip file (%s); copy it again", text);
}

int ct_source_some(struct ct_source *s, void *out, unsigned n) {
  const int got = gzread(s->file, out, n);
  if (got < 0) return say(s);
  return (unsigned)got < n && failed(s, got) ? say(s) : got;
}

bool ct_source_grow(uint8_t **data, size_t have, size_t *room, size_t limit) {
  if (have < *room) return true;
  const size_t step = *room ? *room : CHUNK;
  const size_t more = step > limit - *room ? limit : *room + step;
  uint8_t *grown = realloc(*data, more);
  if (!grown) return false;
  *data = grown;
  *room = more;
  return true;
}

/* Up to limit bytes into *out; how many in *have. */
static int fill(struct ct_source *s, size_t limit, uint8_t **out, size_t *have) {
  size_t room = 0;
  *have = 0;
  while (*have < limit) {
    if (!ct_source_grow(out, *have, &room, limit))
      return ct_fault_say(&s->fault, "no memory for its %zu bytes", limit);
    const size_t ask = room - *have < CHUNK ? room - *have : CHUNK;
    const int got = ct_source_some(s, *out + *have, (unsigned)ask);
    if (got < 0) return -1;
    *have += (size_t)got;
    if (got == 0) break;
  }
  return 0;
}

/* 1 if there is another byte, 0 at the end, -1 for an error (a check sum that is wrong is one). */
static int more(struct ct_source *s) {
  uint8_t byte;
  return ct_source_some(s, &byte, 1);
}

int ct_source_all_of(struct ct_source *s, size_t need, uint8_t **out) {
  size_t have;
  if (fill(s, need, out, &have)) return -1;
  if (have < need)
    return ct_fault_say(&s->fault,
                        "ends after %zu of %zu bytes of its data; it was cut short, copy it again",
                        have, need);
  const int rest = more(s);
  if (rest <= 0) return rest;
  return ct_fault_say(&s->fault, "goes on after the %zu bytes that its header says", need);
}

int ct_source_whole(struct ct_source *s, size_t limit, uint8_t **out, size_t *bytes) {
  if (fill(s, limit, out, bytes)) return -1;
  if (*bytes == 0) return ct_fault_say(&s->fault, "is empty");
  const int rest = *bytes == limit ? more(s) : 0;
  if (rest <= 0) return rest;
  return ct_fault_say(&s->fault, "is longer than the %zu bytes that are taken", limit);
}
