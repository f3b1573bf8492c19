/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_dataset.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "ct_rand.h"

#define CHUNK ((size_t)1 << 16)
#define PATH_BYTES 4096

enum {
  kDigitsSide = 8,
  kDigitsClasses = 10,
  kDigitsMax = 16,
  kCsvMaxBytes = 64 << 20, /* of text: an answer to a file that inflates without end */
  kSideMax = 1024,
  kImagesMagic = 0x803, /* unsigned bytes, three dimensions */
  kLabelsMagic = 0x801,
};

/* Where a sentence goes, and the file that it is about. */
struct fault {
  const char *file;
  char *why;
  size_t whysize;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct fault *f, const char *format,
                                                      ...) {
  if (!f->why || f->whysize == 0) return -1;
  const int n = snprintf(f->why, f->whysize, "%s: ", f->file);
  if (n < 0 || (size_t)n >= f->whysize) return -1;
  va_list args;
  va_start(args, format);
  vsnprintf(f->why + n, f->whysize - (size_t)n, format, args);
  va_end(args);
  return -1;
}

/* Makes room for at least one more byte after have, for at most limit; false without memory. */
static bool grow(uint8_t **data, size_t have, size_t *room, size_t limit) {
  if (have < *room) return true;
  const size_t step = *room ? *room : CHUNK;
  const size_t more = step > limit - *room ? limit : *room + step;
  uint8_t *grown = realloc(*data, more);
  if (!grown) return false;
  *data = grown;
  *room = more;
  return true;
}

static void part_free(struct ct_dataset_part *part) {
  free(part->pixels);
  free(part->labels);
  *part = (struct ct_dataset_part){0, NULL, NULL};
}

void ct_dataset_free(struct ct_dataset *ds) {
  if (!ds) return;
  part_free(&ds->train);
  part_free(&ds->test);
  memset(ds, 0, sizeof *ds);
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const uint8_t t = a[i];
    a[i] = b[i];
    b[i] = t;
  }
}

/* ct_rand_shuffle on the images themselves: no second copy of them. */
static void part_shuffle(struct ct_dataset_part *part, size_t features, struct ct_rand *rand) {
  for (size_t i = part->count; i-- > 1;) {
    const size_t j = (size_t)ct_rand_below(rand, (uint64_t)i + 1);
    if (i == j) continue;
    swap_bytes(part->pixels + i * features, part->pixels + j * features, features);
    swap_bytes(part->labels + i, part->labels + j, 1);
  }
}

/* Keeps the first count images and gives the memory of the others back. */
static void part_cut(struct ct_dataset_part *part, size_t features, size_t count) {
  if (count == 0 || count >= part->count) return;
  part->count = count;
  uint8_t *less = realloc(part->pixels, count * features);
  if (less) part->pixels = less;
  less = realloc(part->labels, count);
  if (less) part->labels = less;
}

/* --- digits ------------------------------------------------------------------------------------
 */

/* A gzip member as text, the caller's to free; NULL if it is not one. */
static char *inflate_text(const struct fault *f, const void *gz, size_t bytes) {
  z_stream z = {0};
  uint8_t *out = NULL;
  size_t have = 0, room = 0;
  int rc = Z_OK;
  if (bytes > UINT32_MAX || inflateInit2(&z, 15 + 16) != Z_OK) {
    fail(f, "cannot be inflated");
    return NULL;
  }
  z.next_in = (z_const Bytef *)gz;
  z.avail_in = (uInt)bytes;
  while (rc == Z_OK && have < kCsvMaxBytes && grow(&out, have, &room, kCsvMaxBytes)) {
    z.next_out = out + have;
    z.avail_out = (uInt)(room - have);
    rc = inflate(&z, Z_NO_FLUSH);
    have = room - z.avail_out;
  }
  inflateEnd(&z);
  const bool whole = rc == Z_STREAM_END && z.avail_in == 0 && !memchr(out, 0, have);
  char *text = whole ? realloc(out, have + 1) : NULL;
  if (!text) {
    free(out);
    fail(f, "is not a whole gzip file of text; copy it again");
    return NULL;
  }
  text[have] = 0;
  return text;
}

/* One number of 0..max at *p, followed by the given character; -1 if it is anything else. */
static int csv_number(const char **p, int max, char after) {
  int n = 0;
  const char *q = *p;
  if (*q < '0' || *q > '9') return -1;
  for (; *q >= '0' && *q <= '9' && n <= max; ++q)
    n = n * 10 + (*q - '0');
  if (n > max || *q != after) return -1;
  *p = q + 1;
  return n;
}

/* Lines of 64 pixels and a label. */
static int csv_parse(const struct fault *f, const char *text, struct ct_dataset_part *all) {
  const size_t features = (size_t)kDigitsSide * kDigitsSide;
  size_t lines = 0;
  for (const char *p = text; *p; ++p)
    lines += *p == '\n';
  if (lines < 5) return fail(f, "has %zu whole lines; at least 5 are needed to split", lines);
  all->pixels = malloc(lines * features);
  all->labels = malloc(lines);
  if (!all->pixels || !all->labels) return fail(f, "no memory for %zu images", lines);
  const char *p = text;
  for (size_t line = 0; line < lines; ++line) {
    for (size_t i = 0; i < features; ++i) {
      const int n = csv_number(&p, kDigitsMax, ',');
      if (n < 0) return fail(f, "line %zu, value %zu: not 0..16 and a comma", line + 1, i + 1);
      all->pixels[line * features + i] = (uint8_t)n;
    }
    const int label = csv_number(&p, kDigitsClasses - 1, '\n');
    if (label < 0) return fail(f, "line %zu: its label is not a digit 0..9 alone", line + 1);
    all->labels[line] = (uint8_t)label;
  }
  all->count = lines;
  return *p ? fail(f, "does not end with a whole line; it was cut short") : 0;
}

/* Moves what is behind the first train images into test. */
static int part_split(const struct fault *f, size_t features, struct ct_dataset_part *all,
                      size_t train, struct ct_dataset_part *test) {
  const size_t rest = all->count - train;
  test->pixels = malloc(rest * features);
  test->labels = malloc(rest);
  if (!test->pixels || !test->labels) return fail(f, "no memory for %zu images", rest);
  memcpy(test->pixels, all->pixels + train * features, rest * features);
  memcpy(test->labels, all->labels + train, rest);
  test->count = rest;
  part_cut(all, features, train);
  return 0;
}

int ct_dataset_open_csv(struct ct_dataset *ds, const void *gz, size_t bytes, uint64_t seed,
                        size_t samples, char *why, size_t whysize) {
  const struct fault f = {"digits", why, whysize};
  const uint32_t features = kDigitsSide * kDigitsSide;
  memset(ds, 0, sizeof *ds);
  char *text = inflate_text(&f, gz, bytes);
  int rc = text ? csv_parse(&f, text, &ds->train) : -1;
  free(text);
  if (rc == 0) {
    struct ct_rand rand;
    ct_rand_seed(&rand, seed, CT_RAND_STREAM_DATASET);
    part_shuffle(&ds->train, features, &rand);
    rc = part_split(&f, features, &ds->train, ds->train.count * 4 / 5, &ds->test);
  }
  if (rc) {
    ct_dataset_free(ds);
    return rc;
  }
  ds->height = ds->width = kDigitsSide;
  ds->features = features;
  ds->classes = kDigitsClasses;
  ds->scale = 1.0f / kDigitsMax;
  part_cut(&ds->train, features, samples);
  part_cut(&ds->test, features, samples);
  return 0;
}

/* --- IDX ---------------------------------------------------------------------------------------
 */

/* Why a read stopped: a damaged or cut .gz, an error of the system, or simply the end. */
static int fail_read(const struct fault *f, gzFile file, size_t have, size_t need) {
  int code = Z_OK;
  const char *text = gzerror(file, &code);
  if (code == Z_ERRNO) return fail(f, "cannot be read: %s", strerror(errno));
  if (code != Z_OK && code != Z_BUF_ERROR)
    return fail(f, "is a damaged gzip file (%s); copy it again", text);
  return fail(f, "ends after %zu of %zu bytes of its data; it was cut short, copy it again", have,
              need);
}

static uint32_t be32(const uint8_t *b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The magic and its dimensions, each at least 1. */
static int idx_header(const struct fault *f, gzFile file, uint32_t magic, uint32_t *dims) {
  const unsigned count = magic & 0xFF;
  uint8_t head[16];
  const unsigned need = 4 + 4 * count;
  const int got = gzread(file, head, need);
  if (got < 0) return fail_read(f, file, 0, need);
  const uint32_t found = got >= 4 ? be32(head) : 0;
  if (got >= 4 && found != magic && (found == kImagesMagic || found == kLabelsMagic))
    return fail(f, "holds %s instead of %s; are the names exchanged?",
                found == kImagesMagic ? "images" : "labels",
                magic == kImagesMagic ? "images" : "labels");
  if (got >= 4 && found != magic)
    return fail(f,
                "begins with 0x%08x instead of 0x%08x; an IDX file of %u-D unsigned bytes is "
                "needed",
                (unsigned)found, (unsigned)magic, count);
  if ((unsigned)got < need)
    return fail(f, "is shorter than the header of an IDX file; copy it again");
  for (unsigned i = 0; i < count; ++i)
    if ((dims[i] = be32(head + 4 + (size_t)4 * i)) == 0)
      return fail(f, "is empty: one dimension is 0");
  return 0;
}

/* Exactly need bytes and the end of the file, into *out, which grows with what is there. */
static int idx_data(const struct fault *f, gzFile file, size_t need, uint8_t **out) {
  size_t have = 0, room = 0;
  while (have < need) {
    if (!grow(out, have, &room, need)) return fail(f, "no memory for its %zu bytes", need);
    const size_t ask = room - have < CHUNK ? room - have : CHUNK;
    const int got = gzread(file, *out + have, (unsigned)ask);
    if (got <= 0) return fail_read(f, file, have, need);
    have += (size_t)got;
  }
  uint8_t more;
  const int got = gzread(file, &more, 1);
  int code = Z_OK;
  gzerror(file, &code);
  if (got > 0) return fail(f, "goes on after the %zu bytes that its header says", need);
  return got < 0 || code != Z_OK ? fail_read(f, file, have, need) : 0;
}

/* One file into *out; dims holds as many numbers as the magic has dimensions. */
static int idx_read(const struct fault *where, const char *path, uint32_t magic, uint32_t *dims,
                    uint8_t **out) {
  const struct fault f = {path, where->why, where->whysize};
  errno = 0;
  gzFile file = gzopen(path, "rb");
  if (!file) return fail(&f, "cannot be opened: %s", strerror(errno ? errno : ENOMEM));
  gzbuffer(file, CHUNK);
  int rc = idx_header(&f, file, magic, dims);
  size_t need = dims[0];
  if (rc == 0 && magic == kImagesMagic) {
    if (dims[1] - 1 >= kSideMax || dims[2] - 1 >= kSideMax)
      rc = fail(&f, "claims images of %ux%u; at most %dx%d are taken", (unsigned)dims[1],
                (unsigned)dims[2], kSideMax, kSideMax);
    else if (need > SIZE_MAX / dims[1] / dims[2])
      rc = fail(&f, "claims more images than this machine can address");
    else
      need *= (size_t)dims[1] * dims[2];
  }
  if (rc == 0) rc = idx_data(&f, file, need, out);
  gzclose_r(file);
  return rc;
}

/* The file of a kind ("images-idx3") of a part by one of its usual names. */
static int idx_find(const struct fault *f, const char *dir, const char *const *parts,
                    const char *kind, char *path) {
  static const char *const ends[] = {"", ".gz"};
  for (; *parts; ++parts)
    for (unsigned i = 0; i < 4; ++i) {
      const int n = snprintf(path, PATH_BYTES, "%s/%s-%.6s%c%s-ubyte%s", dir, *parts, kind,
                             i < 2 ? '-' : '.', kind + 7, ends[i % 2]);
      struct stat st;
      if (n < 0 || n >= PATH_BYTES) return fail(f, "the name of the folder is too long");
      if (stat(path, &st) == 0) return 0;
      if (errno != ENOENT) return fail(f, "%s: %s", path, strerror(errno));
    }
  return fail(f,
              "has no %s-%s-ubyte, nor one with .gz; give a folder with the four IDX files of "
              "MNIST",
              parts[-1], kind);
}

static int idx_part(const struct fault *f, const char *dir, const char *const *parts,
                    uint32_t *dims, struct ct_dataset_part *part) {
  char path[PATH_BYTES];
  uint32_t labels = 0;
  if (idx_find(f, dir, parts, "images-idx3", path) ||
      idx_read(f, path, kImagesMagic, dims, &part->pixels) ||
      idx_find(f, dir, parts, "labels-idx1", path) ||
      idx_read(f, path, kLabelsMagic, &labels, &part->labels))
    return -1;
  if (labels != dims[0])
    return fail(f, "has %u images but %u labels in %s", (unsigned)dims[0], (unsigned)labels, path);
  part->count = labels;
  return 0;
}

static int check_labels(const struct fault *f, const char *what, const struct ct_dataset_part *part,
                        uint32_t classes) {
  for (size_t i = 0; i < part->count; ++i)
    if (part->labels[i] >= classes)
      return fail(f,
                  "label %u of %s image %zu is not within 0..%u, the classes of the training set",
                  part->labels[i], what, i, (unsigned)classes - 1);
  return 0;
}

static uint32_t largest_label(const struct ct_dataset_part *part) {
  uint32_t most = 0;
  for (size_t i = 0; i < part->count; ++i)
    if (part->labels[i] > most) most = part->labels[i];
  return most;
}

/* classes: how many there must be, 0 to see from the training labels. */
static int open_idx(struct ct_dataset *ds, const struct fault *f, const char *dir, uint32_t classes,
                    uint64_t seed, size_t samples) {
  static const char *const train[] = {"train", NULL};
  static const char *const test[] = {"test", "t10k", NULL};
  uint32_t dims[3] = {0}, testdims[3] = {0};
  if (idx_part(f, dir, train, dims, &ds->train) || idx_part(f, dir, test, testdims, &ds->test))
    return -1;
  if (testdims[1] != dims[1] || testdims[2] != dims[2])
    return fail(f, "its training images are %ux%u but its test images %ux%u", (unsigned)dims[1],
                (unsigned)dims[2], (unsigned)testdims[1], (unsigned)testdims[2]);
  ds->height = dims[1];
  ds->width = dims[2];
  ds->features = dims[1] * dims[2];
  ds->classes = classes ? classes : largest_label(&ds->train) + 1;
  ds->scale = 1.0f / 256;
  if (check_labels(f, "training", &ds->train, ds->classes) ||
      check_labels(f, "test", &ds->test, ds->classes))
    return -1;
  struct ct_rand rand;
  ct_rand_seed(&rand, seed, CT_RAND_STREAM_DATASET);
  part_shuffle(&ds->train, ds->features, &rand);
  part_shuffle(&ds->test, ds->features, &rand);
  part_cut(&ds->train, ds->features, samples);
  part_cut(&ds->test, ds->features, samples);
  return 0;
}

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --- both --------------------------------------------------------------------------------------
 */

int ct_dataset_open(struct ct_dataset *ds, const char *name, uint64_t seed, size_t samples,
                    char *why, size_t whysize) {
  const struct fault f = {name, why, whysize};
  if (strcmp(name, "digits") == 0)
    return ct_dataset_open_csv(ds, ct_digits_gz, (size_t)(ct_digits_gz_end - ct_digits_gz), seed,
                               samples, why, whysize);
  memset(ds, 0, sizeof *ds);
  char dir[PATH_BYTES];
  const bool fashion = strcmp(name, "fashion-mnist") == 0;
  const char *base = getenv("CT_DATASETS");
  const int n = fashion ? snprintf(dir, sizeof dir, "%s/fashion-mnist",
                                   base && *base ? base : "/usr/share/datasets")
                        : snprintf(dir, sizeof dir, "%s", name);
  if (n < 0 || (size_t)n >= sizeof dir) return fail(&f, "the name of the folder is too long");
  if (!is_folder(dir))
    return fashion
               ? fail(&f,
                      "there is no folder %s; install Debian's package "
                      "dataset-fashion-mnist or give a folder with its files",
                      dir)
               : fail(&f, "neither a data set (digits, fashion-mnist) nor a folder of IDX files");
  const struct fault in = {dir, why, whysize};
  const int rc = open_idx(ds, &in, dir, fashion ? 10 : 0, seed, samples);
  if (rc) ct_dataset_free(ds);
  return rc;
}

void ct_dataset_values(const struct ct_dataset *ds, const struct ct_dataset_part *part,
                       const uint32_t *order, size_t n, float *out) {
  for (size_t k = 0; k < n; ++k) {
    const uint8_t *from = part->pixels + (order ? order[k] : k) * ds->features;
    for (size_t i = 0; i < ds->features; ++i)
      *out++ = (float)from[i] * ds->scale;
  }
}
