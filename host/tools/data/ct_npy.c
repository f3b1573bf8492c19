/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_fault.h"

_Static_assert(sizeof(float) == 4, "float is FP32");

/* Longest header that is read; NumPy itself stops at 10,000 bytes unless told otherwise. */
#define HEADER_MAX 65535u
#define MAGIC_BYTES 6
#define CHUNK ((size_t)1 << 20)

static const unsigned char kMagic[MAGIC_BYTES + 1] = "\x93NUMPY";

/* A file being read, and where to complain. */
struct reader {
  struct ct_fault fault;
  FILE *file;
};

/* What the header says. */
struct header {
  char descr[64];
  bool fortran;
  unsigned dims;
  size_t shape[CT_NPY_DIMS]; /* of the first dimensions */
};

#define fail(r, ...) ct_fault_say(&(r)->fault, __VA_ARGS__)

static int fail_short(const struct reader *r, const char *where) {
  if (ferror(r->file)) return fail(r, "cannot be read: %s", strerror(errno));
  return fail(r, "ends inside %s; the file was cut short, make or copy it again", where);
}

/* The header is the text of a Python dictionary; p walks over it. */
static const char *skip(const char *p) {
  return p + strspn(p, " \t\r\n");
}

/* A quoted text into out; NULL if there is none, or too long a one. */
static const char *text(const char *p, char *out, size_t size) {
  const char quote = *p;
  if (quote != '\'' && quote != '"') return NULL;
  const char *end = strchr(++p, quote);
  if (!end || (size_t)(end - p) >= size) return NULL;
  memcpy(out, p, (size_t)(end - p));
  out[end - p] = 0;
  return end + 1;
}

static const char *number(const char *p, size_t *out) {
  size_t n = 0;
  if (*p < '0' || *p > '9') return NULL;
  for (; *p >= '0' && *p <= '9'; ++p) {
    const size_t digit = (size_t)(*p - '0');
    if (n > (SIZE_MAX - digit) / 10) return NULL;
    n = n * 10 + digit;
  }
  if (*p == 'L') ++p; /* Python 2 wrote its long integers so */
  *out = n;
  return p;
}

static const char *shape(const char *p, struct header *h) {
  if (*p != '(') return NULL;
  h->dims = 0;
  for (p = skip(p + 1); *p != ')';) {
    size_t n;
    if (!(p = number(p, &n))) return NULL;
    if (h->dims < CT_NPY_DIMS) h->shape[h->dims] = n;
    ++h->dims;
    p = skip(p);
    if (*p == ',')
      p = skip(p + 1);
    else if (*p != ')')
      return NULL;
  }
  return p + 1;
}

/* The value of descr: a text, or a list for structured arrays, whose text is not looked at. */
static const char *descr(const char *p, struct header *h) {
  if (*p != '[') return text(p, h->descr, sizeof h->descr);
  unsigned depth = 0;
  for (; *p; ++p) {
    if (*p == '[') ++depth;
    if (*p == ']' && --depth == 0) break;
  }
  snprintf(h->descr, sizeof h->descr, "[...]");
  return *p ? p + 1 : NULL;
}

static const char *flag(const char *p, bool *out) {
  *out = strncmp(p, "True", 4) == 0;
  if (*out) return p + 4;
  return strncmp(p, "False", 5) == 0 ? p + 5 : NULL;
}

/* All three keys, each once, and nothing else. */
static bool parse_header(const char *p, struct header *h) {
  unsigned seen = 0;
  p = skip(p);
  if (*p != '{') return false;
  for (p = skip(p + 1); *p != '}';) {
    char key[24];
    if (!(p = text(p, key, sizeof key))) return false;
    p = skip(p);
    if (*p != ':') return false;
    p = skip(p + 1);
    const unsigned bit = strcmp(key, "descr") == 0           ? 1
                         : strcmp(key, "fortran_order") == 0 ? 2
                         : strcmp(key, "shape") == 0         ? 4
                                                             : 0;
    if (bit == 0 || (seen & bit)) return false;
    seen |= bit;
    p = bit == 1 ? descr(p, h) : bit == 2 ? flag(p, &h->fortran) : shape(p, h);
    if (!p) return false;
    p = skip(p);
    if (*p == ',')
      p = skip(p + 1);
    else if (*p != '}')
      return false;
  }
  return seen == 7 && *skip(p + 1) == 0;
}

static int check_order(const struct reader *r, const struct header *h) {
  return h->fortran ? fail(r, "is in Fortran order; save numpy.ascontiguousarray(a) instead") : 0;
}

static int check_type(const struct reader *r, const struct header *h) {
  const char *d = h->descr;
  const size_t len = strlen(d);
  if (strcmp(d, "<f4") == 0) return 0;
  if (strcmp(d, ">f4") == 0)
    return fail(r, "holds big-endian float32 ('>f4'); save a.astype('<f4') instead");
  if (strcmp(d, "<f8") == 0 || strcmp(d, ">f8") == 0)
    return fail(r, "holds float64 ('%s'); save a.astype('<f4') instead", d);
  if (len > 1 && d[len - 1] == 'O')
    return fail(r, "holds Python objects ('%s'), which are never loaded; save a 2-D float32 array",
                d);
  if (d[0] == '[')
    return fail(r, "holds a structured array; save one 2-D float32 array for each field");
  return fail(r, "holds elements of type '%s'; save a.astype('<f4') instead", d);
}

static int check_shape(const struct reader *r, const struct header *h) {
  if (h->dims == 0) return fail(r, "holds a single number (0-d); save a.reshape(1, 1) instead");
  if (h->dims == 1)
    return fail(r,
                "holds a 1-D array of %zu; save a.reshape(1, -1) for one row or a.reshape(-1, 1) "
                "for rows of one value",
                h->shape[0]);
  if (h->dims > 2)
    return fail(r, "holds a %u-D array; save a.reshape(len(a), -1), one row for each sample",
                h->dims);
  if (h->shape[0] == 0 || h->shape[1] == 0)
    return fail(r, "holds an empty array of %zux%zu; at least 1x1 is needed", h->shape[0],
                h->shape[1]);
  if (h->shape[0] > SIZE_MAX / sizeof(float) / h->shape[1])
    return fail(r, "claims %zux%zu values, more than this machine can address", h->shape[0],
                h->shape[1]);
  return check_order(r, h);
}

/* The bytes of an element of a type that arrays may have; 0 for all others. */
static size_t item_bytes(const char *descr) {
  static const char *const known[] = {"|u1", "|i1", "<u2", "<i2", "<u4",
                                      "<i4", "<u8", "<i8", "<f4"};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strcmp(descr, known[i]) == 0) return (size_t)(descr[2] - '0');
  return 0;
}

/* Any array: *count elements. */
static int check_array(const struct reader *r, const struct header *h, size_t *count) {
  const size_t item = item_bytes(h->descr);
  *count = 1;
  if (!item)
    return fail(r, "holds elements of type '%s'; integers and float32 (little-endian) are taken",
                h->descr);
  if (h->dims == 0 || h->dims > CT_NPY_DIMS)
    return fail(r, "holds a %u-D array; 1 to %d dimensions are taken", h->dims, CT_NPY_DIMS);
  for (unsigned i = 0; i < h->dims; ++i) {
    if (h->shape[i] == 0) return fail(r, "holds an empty array: one dimension is 0");
    if (h->shape[i] > SIZE_MAX / item / *count)
      return fail(r, "claims more values than this machine can address");
    *count *= h->shape[i];
  }
  return check_order(r, h);
}

/* Magic, version, length, and then the dictionary. */
static int read_header(const struct reader *r, struct header *h) {
  unsigned char fixed[MAGIC_BYTES + 2], len[4] = {0};
  const size_t got = fread(fixed, 1, sizeof fixed, r->file);
  if (ferror(r->file)) return fail_short(r, "its header");
  if (got == 0) return fail(r, "is empty; a .npy file made by numpy.save is needed");
  if (memcmp(fixed, kMagic, got < MAGIC_BYTES ? got : MAGIC_BYTES) != 0)
    return fail(r,
                "is not a .npy file (it does not begin with \\x93NUMPY); make one with "
                "numpy.save");
  if (got < sizeof fixed) return fail_short(r, "its header");
  const unsigned major = fixed[MAGIC_BYTES], minor = fixed[MAGIC_BYTES + 1];
  if (major < 1 || major > 3 || minor != 0)
    return fail(r, "is a .npy file of version %u.%u; 1.0, 2.0 and 3.0 are known", major, minor);
  const size_t lenbytes = major == 1 ? 2 : 4;
  if (fread(len, 1, lenbytes, r->file) != lenbytes) return fail_short(r, "its header");
  const size_t n = len[0] | (size_t)len[1] << 8 | (size_t)len[2] << 16 | (size_t)len[3] << 24;
  if (n > HEADER_MAX)
    return fail(r, "claims a header of %zu bytes, more than %u; it is damaged", n, HEADER_MAX);
  char *dict = calloc(n + 1, 1);
  if (!dict) return fail(r, "cannot be read: no memory for its header");
  int rc = 0;
  if (fread(dict, 1, n, r->file) != n)
    rc = fail_short(r, "its header");
  else if (strlen(dict) != n || !parse_header(dict, h))
    rc = fail(r,
              "has a header that is not the dictionary of descr, fortran_order and shape that "
              "numpy.save writes; it is damaged");
  free(dict);
  return rc;
}

/* Values are little-endian in the file, whatever the machine is. */
static void decode(float *data, size_t count) {
  const unsigned char *bytes = (const unsigned char *)data;
  for (size_t i = 0; i < count; ++i) {
    const unsigned char *b = bytes + 4 * i;
    const uint32_t bits = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    memcpy(&data[i], &bits, sizeof bits);
  }
}

/* Reads need bytes into *out, growing it as they come: a false shape does not cost memory. */
static int read_data(const struct reader *r, size_t need, unsigned char **out) {
  size_t have = 0, room = 0;
  while (have < need) {
    if (have == room) {
      const size_t step = room ? room : CHUNK;
      room = step > need - room ? need : room + step;
      unsigned char *grown = realloc(*out, room);
      if (!grown) return fail(r, "needs %zu bytes of memory, which are not there", need);
      *out = grown;
    }
    const size_t got = fread(*out + have, 1, room - have, r->file);
    have += got;
    if (got == 0 && ferror(r->file)) return fail_short(r, "its data");
    if (got == 0)
      return fail(r, "ends after %zu of %zu bytes of data; it was cut short, make or copy it again",
                  have, need);
  }
  if (fgetc(r->file) != EOF)
    return fail(r, "goes on after the %zu bytes of its array; save one array to a file", need);
  return 0;
}

int ct_npy_read(const char *path, struct ct_npy *npy, char *why, size_t whysize) {
  struct reader r = {{path, why, whysize}, fopen(path, "rb")};
  struct header h = {{0}, false, 0, {0}};
  unsigned char *data = NULL;
  *npy = (struct ct_npy){0, 0, NULL};
  if (!r.file) return fail(&r, "cannot be opened: %s", strerror(errno));
  int rc = read_header(&r, &h);
  if (rc == 0) rc = check_type(&r, &h);
  if (rc == 0) rc = check_shape(&r, &h);
  if (rc == 0) rc = read_data(&r, h.shape[0] * h.shape[1] * sizeof(float), &data);
  fclose(r.file);
  if (rc) {
    free(data);
    return rc;
  }
  *npy = (struct ct_npy){h.shape[0], h.shape[1], (float *)(void *)data};
  decode(npy->data, npy->rows * npy->cols);
  return 0;
}

int ct_npy_read_array(const char *path, struct ct_npy_array *a, char *why, size_t whysize) {
  const struct reader r = {{path, why, whysize}, fopen(path, "rb")};
  *a = (struct ct_npy_array){0};
  if (!r.file) return fail(&r, "cannot be opened: %s", strerror(errno));
  const int rc = ct_npy_read_stream(r.file, path, a, why, whysize);
  fclose(r.file);
  return rc;
}

int ct_npy_read_stream(FILE *file, const char *name, struct ct_npy_array *a, char *why,
                       size_t whysize) {
  const struct reader r = {{name, why, whysize}, file};
  struct header h = {{0}, false, 0, {0}};
  size_t count = 0;
  *a = (struct ct_npy_array){0};
  int rc = read_header(&r, &h);
  if (rc == 0) rc = check_array(&r, &h, &count);
  if (rc == 0) rc = read_data(&r, count * item_bytes(h.descr), &a->data);
  if (rc) {
    ct_npy_free_array(a);
    return rc;
  }
  a->type = h.descr[1];
  a->item = item_bytes(h.descr);
  a->dims = h.dims;
  a->count = count;
  memcpy(a->shape, h.shape, sizeof a->shape);
  if (a->type == 'f') decode((float *)(void *)a->data, count);
  return 0;
}

bool ct_npy_integer(const struct ct_npy_array *a, size_t i, uint64_t *value) {
  const unsigned char *from = a->data + i * a->item;
  *value = 0;
  for (size_t k = 0; k < a->item; ++k)
    *value |= (uint64_t)from[k] << (8 * k);
  return a->type != 'i' || from[a->item - 1] < 0x80;
}

void ct_npy_free_array(struct ct_npy_array *a) {
  free(a->data);
  *a = (struct ct_npy_array){0};
}

void ct_npy_free(struct ct_npy *npy) {
  if (!npy) return;
  free(npy->data);
  *npy = (struct ct_npy){0, 0, NULL};
}

/* The whole header of version 1.0, with blanks up to a multiple of 64 bytes; its length. */
static size_t make_header(char *out, size_t size, size_t rows, size_t cols) {
  const size_t fixed = MAGIC_BYTES + 4;
  memcpy(out, kMagic, MAGIC_BYTES);
  const int len =
      snprintf(out + fixed, size - fixed,
               "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, cols);
  const size_t text_end = fixed + (size_t)len;
  const size_t total = (text_end + 1 + 63) / 64 * 64;
  memset(out + text_end, ' ', total - text_end);
  out[total - 1] = '\n';
  out[MAGIC_BYTES] = 1;
  out[MAGIC_BYTES + 1] = 0;
  out[MAGIC_BYTES + 2] = (char)((total - fixed) & 0xFF);
  out[MAGIC_BYTES + 3] = (char)((total - fixed) >> 8);
  return total;
}

static bool write_values(FILE *file, const float *data, size_t count) {
  unsigned char block[4096];
  while (count > 0) {
    const size_t n = count < sizeof block / 4 ? count : sizeof block / 4;
    for (size_t i = 0; i < n; ++i) {
      uint32_t bits;
      memcpy(&bits, &data[i], sizeof bits);
      for (int k = 0; k < 4; ++k)
        block[4 * i + (size_t)k] = (unsigned char)(bits >> (8 * k));
    }
    if (fwrite(block, 4, n, file) != n) return false;
    data += n;
    count -= n;
  }
  return true;
}

int ct_npy_write(const char *path, const float *data, size_t rows, size_t cols, char *why,
                 size_t whysize) {
  struct reader r = {{path, why, whysize}, NULL};
  char head[256];
  if (rows == 0 || cols == 0 || rows > SIZE_MAX / sizeof(float) / cols)
    return fail(&r, "cannot be written: an array of %zux%zu is empty or too large", rows, cols);
  r.file = fopen(path, "wb");
  if (!r.file) return fail(&r, "cannot be created: %s", strerror(errno));
  const size_t len = make_header(head, sizeof head, rows, cols);
  errno = 0;
  bool ok = fwrite(head, 1, len, r.file) == len && write_values(r.file, data, rows * cols);
  int error = errno;
  if (fclose(r.file) != 0) {
    if (ok) error = errno;
    ok = false;
  }
  return ok ? 0 : fail(&r, "could not be written to its end: %s", strerror(error));
}
