/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_dataset.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "ct_folder.h"
#include "ct_rand.h"
#include "ct_random.h"
#include "ct_source.h"
#include "ct_zip.h"

enum {
  kDigitsSide = 8,
  kDigitsClasses = 10,
  kDigitsMax = 16,
  kSplitLeast = 5,         /* images that can be split 4 to 1 */
  kCsvMaxBytes = 64 << 20, /* of text: an answer to a file that inflates without end */
};

static void part_free(struct ct_dataset_part *part) {
  free(part->pixels);
  free(part->values);
  free(part->labels);
  *part = (struct ct_dataset_part){0, NULL, NULL, NULL};
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

/* The images of a part, whichever type their pixels have, and how long each is. */
static uint8_t *images_of(const struct ct_dataset_part *part) {
  return part->values ? (uint8_t *)part->values : part->pixels;
}

static size_t image_bytes(const struct ct_dataset_part *part, size_t features) {
  return part->values ? features * sizeof *part->values : features;
}

static void set_images(struct ct_dataset_part *part, void *images, bool floats) {
  part->values = floats ? images : NULL;
  part->pixels = floats ? NULL : images;
}

/* ct_rand_shuffle on the images themselves: no second copy of them. */
static void part_shuffle(struct ct_dataset_part *part, size_t features, struct ct_rand *rand) {
  const size_t bytes = image_bytes(part, features);
  uint8_t *images = images_of(part);
  for (size_t i = part->count; i-- > 1;) {
    const size_t j = (size_t)ct_rand_below(rand, (uint64_t)i + 1);
    if (i == j) continue;
    swap_bytes(images + i * bytes, images + j * bytes, bytes);
    swap_bytes(part->labels + i, part->labels + j, 1);
  }
}

/* Keeps the first count images and gives the memory of the others back. */
static void part_cut(struct ct_dataset_part *part, size_t features, size_t count) {
  if (count == 0 || count >= part->count) return;
  part->count = count;
  void *less = realloc(images_of(part), count * image_bytes(part, features));
  if (less) set_images(part, less, part->values);
  less = realloc(part->labels, count);
  if (less) part->labels = less;
}

/* --- digits ------------------------------------------------------------------------------------
 */

/* A gzip member as text, the caller's to free; NULL if it is not one. */
static char *inflate_text(const struct ct_fault *f, const void *gz, size_t bytes) {
  z_stream z = {0};
  uint8_t *out = NULL;
  size_t have = 0, room = 0;
  int rc = Z_OK;
  if (bytes > UINT32_MAX || inflateInit2(&z, 15 + 16) != Z_OK) {
    ct_fault_write(f, "cannot be inflated");
    return NULL;
  }
  z.next_in = (z_const Bytef *)gz;
  z.avail_in = (uInt)bytes;
  while (rc == Z_OK && have < kCsvMaxBytes && ct_source_grow(&out, have, &room, kCsvMaxBytes)) {
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
    ct_fault_write(f, "is not a whole gzip file of text; copy it again");
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
static int csv_parse(const struct ct_fault *f, const char *text, struct ct_dataset_part *all) {
  const size_t features = (size_t)kDigitsSide * kDigitsSide;
  size_t lines = 0;
  for (const char *p = text; *p; ++p)
    lines += *p == '\n';
  if (lines < kSplitLeast)
    return ct_fault_say(f, "has %zu whole lines; at least %d are needed to split", lines,
                        kSplitLeast);
  all->pixels = malloc(lines * features);
  all->labels = malloc(lines);
  if (!all->pixels || !all->labels) return ct_fault_say(f, "no memory for %zu images", lines);
  const char *p = text;
  for (size_t line = 0; line < lines; ++line) {
    for (size_t i = 0; i < features; ++i) {
      const int n = csv_number(&p, kDigitsMax, ',');
      if (n < 0)
        return ct_fault_say(f, "line %zu, value %zu: not 0..16 and a comma", line + 1, i + 1);
      all->pixels[line * features + i] = (uint8_t)n;
    }
    const int label = csv_number(&p, kDigitsClasses - 1, '\n');
    if (label < 0)
      return ct_fault_say(f, "line %zu: its label is not a digit 0..9 alone", line + 1);
    all->labels[line] = (uint8_t)label;
  }
  all->count = lines;
  return *p ? ct_fault_say(f, "does not end with a whole line; it was cut short") : 0;
}

/* Moves what is behind the first train images into test. */
static int part_split(const struct ct_fault *f, size_t features, struct ct_dataset_part *all,
                      size_t train, struct ct_dataset_part *test) {
  const size_t rest = all->count - train, bytes = image_bytes(all, features);
  set_images(test, malloc(rest * bytes), all->values);
  test->labels = malloc(rest);
  if (!images_of(test) || !test->labels) return ct_fault_say(f, "no memory for %zu images", rest);
  memcpy(images_of(test), images_of(all) + train * bytes, rest * bytes);
  memcpy(test->labels, all->labels + train, rest);
  test->count = rest;
  part_cut(all, features, train);
  return 0;
}

int ct_dataset_open_csv(struct ct_dataset *ds, const void *gz, size_t bytes, uint64_t seed,
                        size_t samples, char *why, size_t whysize) {
  const struct ct_fault f = {"digits", why, whysize};
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
  ds->channels = 1;
  ds->features = features;
  ds->classes = kDigitsClasses;
  ds->scale = 1.0f / kDigitsMax;
  part_cut(&ds->train, features, samples);
  part_cut(&ds->test, features, samples);
  return 0;
}

/* --- folders -----------------------------------------------------------------------------------
 */

static int check_labels(const struct ct_fault *f, const char *what,
                        const struct ct_dataset_part *part, uint32_t classes) {
  for (size_t i = 0; i < part->count; ++i)
    if (part->labels[i] >= classes)
      return ct_fault_say(
          f, "label %u of %s image %zu is not within 0..%u, the classes of the training set",
          part->labels[i], what, i, (unsigned)classes - 1);
  return 0;
}

static uint32_t largest_label(const struct ct_dataset_part *part) {
  uint32_t most = 0;
  for (size_t i = 0; i < part->count; ++i)
    if (part->labels[i] > most) most = part->labels[i];
  return most;
}

/* What all kinds of folders need when their files are read. */
static int finish(struct ct_dataset *ds, const struct ct_fault *f, uint64_t seed, size_t samples) {
  struct ct_rand rand;
  ds->features = ds->height * ds->width * ds->channels;
  if (ds->features == 0) return ct_fault_say(f, "has images without pixels");
  if (ds->classes == 0) ds->classes = largest_label(&ds->train) + 1;
  if (check_labels(f, "training", &ds->train, ds->classes) ||
      check_labels(f, "test", &ds->test, ds->classes))
    return -1;
  ct_rand_seed(&rand, seed, CT_RAND_STREAM_DATASET);
  part_shuffle(&ds->train, ds->features, &rand);
  if (ds->test.count == 0) {
    if (ds->train.count < kSplitLeast)
      return ct_fault_say(f, "has %zu images; at least %d are needed to split", ds->train.count,
                          kSplitLeast);
    if (part_split(f, ds->features, &ds->train, ds->train.count * 4 / 5, &ds->test)) return -1;
  } else {
    part_shuffle(&ds->test, ds->features, &rand);
  }
  part_cut(&ds->train, ds->features, samples);
  part_cut(&ds->test, ds->features, samples);
  return 0;
}

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --- all ---------------------------------------------------------------------------------------
 */

static int open_random(struct ct_dataset *ds, const struct ct_fault *f, uint64_t seed,
                       size_t samples) {
  int rc = ct_random_make(ds, f, seed);
  if (rc == 0) rc = finish(ds, f, seed, samples);
  if (rc) ct_dataset_free(ds);
  return rc;
}

int ct_dataset_open(struct ct_dataset *ds, const char *name, uint64_t seed, size_t samples,
                    char *why, size_t whysize) {
  const struct ct_fault f = {name, why, whysize};
  if (strcmp(name, "digits") == 0)
    return ct_dataset_open_csv(ds, ct_digits_gz, (size_t)(ct_digits_gz_end - ct_digits_gz), seed,
                               samples, why, whysize);
  memset(ds, 0, sizeof *ds);
  if (ct_random_is(name)) return open_random(ds, &f, seed, samples);
  char dir[CT_SOURCE_PATH];
  const bool fashion = strcmp(name, "fashion-mnist") == 0;
  const char *base = getenv("CT_DATASETS");
  const int n = fashion ? snprintf(dir, sizeof dir, "%s/fashion-mnist",
                                   base && *base ? base : "/usr/share/datasets")
                        : snprintf(dir, sizeof dir, "%s", name);
  if (n < 0 || (size_t)n >= sizeof dir)
    return ct_fault_say(&f, "the name of the folder is too long");
  const bool archive = !fashion && ct_zip_is(dir);
  if (!archive && !is_folder(dir))
    return fashion
               ? ct_fault_say(&f,
                              "there is no folder %s; install Debian's package "
                              "dataset-fashion-mnist or give a folder with its files",
                              dir)
               : ct_fault_say(
                     &f,
                     "neither a data set (digits, fashion-mnist, random-HxWxC) nor a folder of IDX "
                     "files, CIFAR batches or .npy files, nor an .npz file");
  const struct ct_fault in = {dir, why, whysize};
  int rc = fashion   ? ct_idx_read(ds, &in, 10)
           : archive ? ct_npzset_read(ds, &in)
                     : ct_folder_read(ds, &in);
  if (rc == 0) rc = finish(ds, &in, seed, samples);
  if (rc) ct_dataset_free(ds);
  return rc;
}

void ct_dataset_values(const struct ct_dataset *ds, const struct ct_dataset_part *part,
                       const uint32_t *order, size_t n, float *out) {
  for (size_t k = 0; k < n; ++k, out += ds->features) {
    const size_t first = (order ? order[k] : k) * ds->features;
    if (part->values)
      memcpy(out, part->values + first, ds->features * sizeof *out);
    else
      for (size_t i = 0; i < ds->features; ++i)
        out[i] = (float)part->pixels[first + i] * ds->scale;
  }
}
