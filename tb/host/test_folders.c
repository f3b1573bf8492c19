/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of CIFAR batches and of .npy files: every value of them, each damage by its sentence; and
 * all kinds of folders with thousands of random damages, which neither crash nor hang nor give what
 * no data set is. */
#include "ct_tb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data_folder.h"
#include "host/tools/data/ct_dataset.h"

enum { kPlane = 1024, kImage = 3072 };

static char why[CT_DATASET_WHY];

static void open_folder(struct ct_dataset *ds) {
  if (ct_dataset_open(ds, folder_name(), 5, 0, why, sizeof why)) fail_msg("%s", why);
}

/* The sentence names the folder or a file in it, and says the part. */
static void expect_refused(const char *file, const char *part) {
  struct ct_dataset ds;
  char begin[512];
  memset(&ds, 0xA5, sizeof ds);
  why[0] = 0;
  assert_int_equal(ct_dataset_open(&ds, folder_name(), 5, 0, why, sizeof why), -1);
  snprintf(begin, sizeof begin, "%s%s%s: ", folder_name(), *file ? "/" : "", file);
  if (strncmp(why, begin, strlen(begin)) != 0) fail_msg("\"%s\" is not about %s", why, begin);
  if (!strstr(why, part)) fail_msg("\"%s\" is not in \"%s\"", part, why);
  assert_null(ds.train.pixels);
  assert_null(ds.train.values);
  assert_null(ds.test.labels);
}

/* ---- CIFAR ---- */

/* All of an image follows from its number. */
static uint8_t cifar_pixel(unsigned image, unsigned channel, unsigned at) {
  return (uint8_t)(image + 85 * channel + (image * 31 + 7) * at);
}

struct cifar {
  size_t labels, record;
  unsigned classes;
};
static const struct cifar kTen = {1, 1 + kImage, 10}, kHundred = {2, 2 + kImage, 100};

/* count images from number first on; the caller's to free. */
static uint8_t *batch(const struct cifar *k, unsigned first, unsigned count) {
  uint8_t *out = malloc(count * k->record + 1), *p = out; /* one byte more, for tests of lengths */
  for (unsigned n = first; n < first + count; ++n) {
    if (k->labels == 2) *p++ = (uint8_t)(n % 20);
    *p++ = (uint8_t)(n * 7 % k->classes);
    for (unsigned c = 0; c < 3; ++c)
      for (unsigned i = 0; i < kPlane; ++i)
        *p++ = cifar_pixel(n, c, i);
  }
  *p = 0;
  return out;
}

static void put_batch(const char *name, const struct cifar *k, unsigned first, unsigned count,
                      bool gz) {
  uint8_t *b = batch(k, first, count);
  (gz ? put_gz : put)(name, b, count * k->record);
  free(b);
}

/* Images first .. first + count - 1, each once. */
static void expect_images(const struct ct_dataset *ds, const struct ct_dataset_part *part,
                          unsigned first, unsigned count) {
  bool seen[64] = {false};
  float *x = malloc(kImage * sizeof *x);
  assert_int_equal(part->count, count);
  for (uint32_t k = 0; k < count; ++k) {
    const unsigned n = part->pixels[(size_t)k * kImage]; /* the first red pixel is the number */
    assert_in_range(n, first, first + count - 1);
    assert_false(seen[n]);
    seen[n] = true;
    assert_int_equal(part->labels[k], n * 7 % ds->classes);
    ct_dataset_values(ds, part, &k, 1, x);
    for (unsigned i = 0; i < kPlane; ++i)
      for (unsigned c = 0; c < 3; ++c)
        assert_true(x[i * 3 + c] * 256 == cifar_pixel(n, c, i));
  }
  free(x);
}

static void cifar_batches(void **state) {
  (void)state;
  struct ct_dataset ds;
  const struct cifar *kinds[] = {&kTen, &kHundred};
  for (unsigned i = 0; i < 2; ++i) {
    const struct cifar *k = kinds[i];
    folder_empty();
    put_batch("data_batch_1.bin", k, 0, 5, false);
    put_batch("data_batch_2.bin.gz", k, 5, 4, true);
    put_batch("data_batch_3.bin", k, 9, 1, true); /* gzipped, whatever its name says */
    put_batch("test_batch.bin", k, 20, 3, false);
    put("batches.meta.txt", "airplane\n", 9); /* not looked at */
    open_folder(&ds);
    assert_int_equal(ds.height * 100 + ds.width, 3232);
    assert_int_equal(ds.channels, 3);
    assert_int_equal(ds.features, kImage);
    assert_int_equal(ds.classes, k->classes);
    expect_images(&ds, &ds.train, 0, 10);
    expect_images(&ds, &ds.test, 20, 3);
    ct_dataset_free(&ds);
  }
  folder_empty(); /* as CIFAR-100 has them */
  put_batch("train.bin", &kHundred, 0, 5, false);
  put_batch("test.bin", &kHundred, 7, 2, false);
  open_folder(&ds);
  expect_images(&ds, &ds.train, 0, 5);
  ct_dataset_free(&ds);
}

/* 3,074 records of one kind are as long as 3,073 of the other: the labels decide. */
static void cifar_of_either_length(void **state) {
  (void)state;
  struct ct_dataset ds;
  const struct cifar *kinds[] = {&kTen, &kHundred};
  for (unsigned i = 0; i < 2; ++i) {
    folder_empty();
    put_batch("train.bin", kinds[i], 0, kinds[!i]->record, true);
    put_batch("test.bin", kinds[i], 0, 1, false);
    open_folder(&ds);
    assert_int_equal(ds.classes, kinds[i]->classes);
    assert_int_equal(ds.train.count, kinds[!i]->record);
    ct_dataset_free(&ds);
  }
}

static void damaged_cifar(void **state) {
  (void)state;
  uint8_t *b = batch(&kTen, 0, 3);
  folder_empty();
  put_batch("data_batch_1.bin", &kTen, 0, 2, false);
  expect_refused("", "has no test batch");
  put_batch("test_batch.bin", &kTen, 0, 2, false);
  static const size_t cuts[] = {1, 3072, 3074, 3 * 3073 - 1, 3 * 3073 + 1};
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; ++i) {
    put("data_batch_2.bin", b, cuts[i]);
    expect_refused("data_batch_2.bin", "no whole number of records of 3073 bytes");
  }
  put("data_batch_2.bin", b, 0);
  expect_refused("data_batch_2.bin", "is empty");
  put("data_batch_0.bin", b, 3073 * 2 + 5);
  expect_refused("data_batch_0.bin", "neither of CIFAR-10 (3073 bytes) nor of CIFAR-100 (3074)");
  remove(in_folder("data_batch_0.bin"));
  b[2 * 3073] = 10;
  put("data_batch_2.bin", b, 3 * 3073);
  expect_refused("data_batch_2.bin", "label 10 of image 2 is out of range: CIFAR-10");
  put_batch("data_batch_2.bin", &kHundred, 0, 2, false);
  expect_refused("data_batch_2.bin", "which the batches before have (CIFAR-10)");
  folder_empty();
  put_batch("test.bin", &kHundred, 0, 2, false);
  expect_refused("", "has no training batch");
  uint8_t *h = batch(&kHundred, 0, 2);
  h[3074] = 20; /* a coarse label */
  put("train.bin", h, 2 * 3074);
  put_batch("test.bin", &kHundred, 0, 2, false);
  expect_refused("train.bin", "label 20 of image 1 is out of range: CIFAR-100");
  h[3074] = 19;
  h[3075] = 100;
  put("train.bin", h, 2 * 3074);
  expect_refused("train.bin", "label 100 of image 1");
  remove(in_folder("train.bin"));
  assert_int_equal(mkdir(in_folder("train.bin"), 0700), 0);
  expect_refused("train.bin", "is not an ordinary file");
  assert_int_equal(rmdir(in_folder("train.bin")), 0);
  free(b);
  free(h);
}

/* ---- .npy ---- */

/* A file of version 1.0; its length. */
static size_t npy(uint8_t *out, const char *descr, const char *shape, const void *data, size_t n) {
  char dict[128];
  const int len = snprintf(
      dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
  memcpy(out, "\x93NUMPY\1", 7);
  out[7] = 0;
  out[8] = (uint8_t)len;
  out[9] = 0;
  memcpy(out + 10, dict, (size_t)len);
  memcpy(out + 10 + len, data, n);
  return 10 + (size_t)len + n;
}

static void put_npy(const char *name, const char *descr, const char *shape, const void *data,
                    size_t n) {
  static uint8_t file[4096];
  put(name, file, npy(file, descr, shape, data, n));
}

/* Six images of 2 x 3 x 2 and two more, with labels of 64 bits. */
static uint8_t npy_pixels[8 * 12];
static const int64_t kLabels[8] = {0, 1, 2, 2, 1, 0, 1, 2};

static void put_npys(void) {
  folder_empty();
  for (size_t i = 0; i < sizeof npy_pixels; ++i)
    npy_pixels[i] = (uint8_t)(i * 5 + 1);
  put_npy("x_train.npy", "|u1", "(6, 2, 3, 2)", npy_pixels, 72);
  put_npy("y_train.npy", "<i8", "(6, 1)", kLabels, 48);
  put_npy("x_test.npy", "|u1", "(2, 2, 3, 2)", npy_pixels + 72, 24);
  put_npy("y_test.npy", "<i8", "(2,)", kLabels + 6, 16);
}

/* Images first .. first + count - 1, each once, with their labels. */
static void expect_npys(const struct ct_dataset *ds, const struct ct_dataset_part *part,
                        unsigned first, unsigned count) {
  float x[12];
  unsigned seen = 0;
  assert_int_equal(part->count, count);
  for (uint32_t k = 0; k < count; ++k) {
    ct_dataset_values(ds, part, &k, 1, x);
    unsigned n = 0;
    while (n < 8 && x[0] * 256 != npy_pixels[n * 12])
      ++n;
    assert_in_range(n, first, first + count - 1);
    seen |= 1u << n;
    for (unsigned i = 0; i < ds->features; ++i)
      assert_true(x[i] * 256 == npy_pixels[n * 12 + i]);
    assert_int_equal(part->labels[k], kLabels[n]);
  }
  assert_int_equal(seen, ((1u << count) - 1) << first);
}

static void arrays(void **state) {
  (void)state;
  struct ct_dataset ds;
  put_npys();
  open_folder(&ds);
  assert_int_equal(ds.height * 100 + ds.width * 10 + ds.channels, 232);
  assert_int_equal(ds.classes, 3);
  assert_non_null(ds.train.pixels);
  expect_npys(&ds, &ds.train, 0, 6);
  expect_npys(&ds, &ds.test, 6, 2);
  ct_dataset_free(&ds);
  /* Float32, other names, other shapes, and every type of labels. */
  float values[8 * 12];
  for (size_t i = 0; i < 96; ++i)
    values[i] = (float)npy_pixels[i] / 256;
  static const char *const types[] = {"|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8"};
  static const char *const shapes[][2] = {{"(6, 12)", "(2, 12)"}, {"(6, 3, 4)", "(2, 3, 4)"}};
  for (size_t t = 0; t < 8; ++t) {
    uint8_t labels[64] = {0};
    const size_t item = (size_t)(types[t][2] - '0');
    for (size_t i = 0; i < 8; ++i)
      labels[i * item] = (uint8_t)kLabels[i];
    folder_empty();
    put_npy("train_x.npy", "<f4", shapes[t % 2][0], values, 72 * 4);
    put_npy("train_y.npy", types[t], "(6,)", labels, 6 * item);
    put_npy("test_x.npy", "<f4", shapes[t % 2][1], values + 72, 24 * 4);
    put_npy("test_y.npy", types[t], "(2,)", labels + 6 * item, 2 * item);
    open_folder(&ds);
    assert_int_equal(ds.height * 100 + ds.width, t % 2 ? 304 : 112);
    assert_null(ds.train.pixels);
    expect_npys(&ds, &ds.train, 0, 6);
    expect_npys(&ds, &ds.test, 6, 2);
    ct_dataset_free(&ds);
  }
}

/* x.npy and y.npy are split by the seed; all images are somewhere. */
static void arrays_that_are_split(void **state) {
  (void)state;
  struct ct_dataset ds;
  float values[8 * 12], x[12];
  for (size_t i = 0; i < 96; ++i)
    values[i] = (float)npy_pixels[i];
  for (int floats = 0; floats < 2; ++floats) {
    unsigned seen = 0;
    put_npys();
    folder_empty();
    put_npy("x.npy", floats ? "<f4" : "|u1", "(8, 12)", floats ? (void *)values : npy_pixels,
            floats ? 96 * 4 : 96);
    put_npy("y.npy", "<i8", "(8,)", kLabels, 64);
    open_folder(&ds);
    assert_int_equal(ds.train.count, 6);
    assert_int_equal(ds.test.count, 2);
    for (uint32_t k = 0; k < 8; ++k) {
      const uint32_t at = k < 6 ? k : k - 6;
      ct_dataset_values(&ds, k < 6 ? &ds.train : &ds.test, &at, 1, x);
      for (unsigned n = 0; n < 8; ++n)
        if (x[0] * (floats ? 1 : 256) == npy_pixels[n * 12] &&
            (k < 6 ? &ds.train : &ds.test)->labels[at] == kLabels[n])
          seen |= 1u << n;
    }
    assert_int_equal(seen, 255);
    ct_dataset_free(&ds);
  }
  put_npy("x.npy", "|u1", "(4, 12)", npy_pixels, 48);
  put_npy("y.npy", "<i8", "(4,)", kLabels, 32);
  expect_refused("", "has 4 images; at least 5 are needed to split");
}

static void damaged_arrays(void **state) {
  (void)state;
  static const struct {
    const char *name, *descr, *shape;
    size_t bytes;
    const char *file, *part;
  } bad[] = {
      {"x_train.npy", "<f8", "(6, 2)", 96, "x_train.npy", "elements of type '<f8'"},
      {"x_train.npy", "<i2", "(6, 2, 3, 1)", 72, "x_train.npy", "holds integers of 2 bytes"},
      {"x_train.npy", "|i1", "(6, 2, 3, 2)", 72, "x_train.npy", "holds integers of 1 bytes"},
      {"x_train.npy", "|u1", "(72,)", 72, "x_train.npy", "holds a 1-D array"},
      {"x_train.npy", "|u1", "(6, 1, 2, 3, 2)", 72, "x_train.npy", "holds a 5-D array"},
      {"x_train.npy", "|u1", "()", 1, "x_train.npy", "holds a 0-D array"},
      {"x_train.npy", "|u1", "(6, 0, 3, 2)", 0, "x_train.npy", "one dimension is 0"},
      {"x_train.npy", "|u1", "(6, 2, 3, 2)", 71, "x_train.npy", "ends after 71 of 72 bytes"},
      {"x_train.npy", "|u1", "(6, 2, 3, 2)", 73, "x_train.npy", "goes on after the 72 bytes"},
      {"x_train.npy", "|u1", "(6, 2, 3, 1)", 36, "", "images are 2x3x1 but its test images 2x3x2"},
      {"x_train.npy", "|u1", "(5, 2, 3, 2)", 60, "y_train.npy", "has 6 labels for 5 images"},
      {"x_train.npy", "|u1", "(9999999999999999, 9999, 2, 3)", 9, "x_train.npy",
       "more values than this machine"},
      {"x_train.npy", "|u1", "(999999999999, 2, 3, 2)", 60, "x_train.npy", "ends after 60 of"},
      {"x_train.npy", "|u1", "(1, 1025, 1)", 1025, "x_train.npy", "claims images of 1025x1x1"},
      {"x_train.npy", "<f4", "(6, 2, 3, 2)", 288, "", "are of different types"},
      {"y_train.npy", "<f4", "(6,)", 24, "y_train.npy", "labels are integers"},
      {"y_train.npy", "<i8", "(2, 3)", 48, "y_train.npy", "is no list"},
      {"y_train.npy", "<i8", "(3,)", 24, "y_train.npy", "has 3 labels for 6 images"},
  };
  static const uint8_t zeros[2048];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    put_npys();
    put_npy(bad[i].name, bad[i].descr, bad[i].shape, zeros, bad[i].bytes);
    expect_refused(bad[i].file, bad[i].part);
  }
  int64_t labels[6] = {0, 1, 256, 0, 0, 0};
  put_npys();
  put_npy("y_train.npy", "<i8", "(6,)", labels, 48);
  expect_refused("y_train.npy", "label 2 is more than 255");
  labels[2] = -1;
  put_npy("y_train.npy", "<i8", "(6,)", labels, 48);
  expect_refused("y_train.npy", "label 2 is less than 0");
  labels[2] = INT64_MIN;
  put_npy("y_train.npy", "<i8", "(6,)", labels, 48);
  expect_refused("y_train.npy", "label 2 is less than 0");
  put_npys();
  labels[0] = 3;
  labels[1] = 0;
  put_npy("y_test.npy", "<i8", "(2,)", labels, 16);
  expect_refused("", "is not within 0..2, the classes of the training set");
  float x[72] = {0};
  x[3 * 12 + 7] = NAN;
  put_npys();
  put_npy("x_train.npy", "<f4", "(6, 2, 3, 2)", x, sizeof x);
  expect_refused("x_train.npy", "value 7 of image 3 is not a finite number");
}

static void wrong_folders(void **state) {
  (void)state;
  put_npys();
  remove(in_folder("y_test.npy"));
  expect_refused("", "has no y_test.npy, the labels of x_test.npy");
  remove(in_folder("x_train.npy"));
  expect_refused("", "has no x_train.npy");
  remove(in_folder("y_train.npy"));
  expect_refused("", "has .npy files, but neither");
  put("train-images-idx3-ubyte", "\0\0\x08\x03", 4);
  expect_refused("", "has IDX files (train-images-idx3-ubyte) and .npy files (x_test.npy)");
  folder_empty();
  put("notes.txt", "nothing", 7);
  expect_refused("", "has no data set that is known");
  for (int i = 0; i < 1001; ++i) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    put(name, "", 0);
  }
  expect_refused("", "more than 1000 files");
}

/* ---- Random damage ---- */

enum { kFilesMost = 6, kBytesMost = 3 * 3074 };

/* A good folder, of which one file at a time is damaged. */
struct good {
  unsigned files;
  struct {
    char name[40];
    size_t bytes;
    uint8_t data[kBytesMost];
  } file[kFilesMost];
};

/* Takes what is in the folder. */
static void keep(struct good *g, const char *const *names) {
  for (g->files = 0; names[g->files]; ++g->files) {
    FILE *f = fopen(in_folder(names[g->files]), "rb");
    assert_non_null(f);
    snprintf(g->file[g->files].name, sizeof g->file->name, "%s", names[g->files]);
    g->file[g->files].bytes = fread(g->file[g->files].data, 1, kBytesMost, f);
    fclose(f);
  }
}

static void make_good(struct good *g, unsigned kind) {
  static const char *const idx[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                    "test-images-idx3-ubyte.gz", "test-labels-idx1-ubyte", NULL};
  static const char *const cifar[] = {"data_batch_1.bin", "test_batch.bin.gz", NULL};
  static const char *const arrays[] = {"x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy",
                                       NULL};
  static const char *const pair[] = {"x.npy", "y.npy", NULL};
  static const uint8_t images[16 + 24] = {0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0, 2, 1, 9};
  static const uint8_t labels[8 + 6] = {0, 0, 8, 1, 0, 0, 0, 6, 0, 1, 2, 0, 1, 2};
  float values[24];
  folder_empty();
  switch (kind) {
    case 0:
      put(idx[0], images, sizeof images);
      put(idx[1], labels, sizeof labels);
      put_gz(idx[2], images, sizeof images);
      put(idx[3], labels, sizeof labels);
      keep(g, idx);
      break;
    case 1:
    case 2:
      put_batch(cifar[0], kind == 1 ? &kTen : &kHundred, 0, 2, false);
      put_batch(cifar[1], kind == 1 ? &kTen : &kHundred, 2, 1, true);
      keep(g, cifar);
      break;
    case 3:
      put_npys();
      keep(g, arrays);
      break;
    default:
      for (int i = 0; i < 24; ++i)
        values[i] = (float)i;
      put_npy(pair[0], "<f4", "(6, 4)", values, sizeof values);
      put_npy(pair[1], "|u1", "(6, 1)", labels + 8, 6);
      keep(g, pair);
  }
}

/* Bytes changed (mostly near the beginning, where headers are), cut, added, moved or repeated. */
static size_t damage(ct_rng *rng, uint8_t *data, size_t n, size_t room) {
  for (unsigned times = 1 + ct_rng_below(rng, 4); times; --times) {
    const size_t near = n < 100 || ct_rng_percent(rng, 20) ? n : 100;
    const size_t at = near ? ct_rng_below(rng, (uint32_t)near) : 0;
    switch (ct_rng_below(rng, 7)) {
      case 0:
      case 1:
        if (n) data[at] = (uint8_t)ct_rng_u64(rng);
        break;
      case 2:
        if (n) data[at] ^= (uint8_t)(1u << ct_rng_below(rng, 8));
        break;
      case 3:
        if (n) data[at] = (uint8_t) "\xFF\x7F\x80\0'(,9"[ct_rng_below(rng, 8)];
        break;
      case 4:
        n = at;
        break;
      case 5: /* a digit, or any byte, more */
        if (n < room) {
          memmove(data + at + 1, data + at, n - at);
          data[at] = ct_rng_percent(rng, 50) ? '9' : (uint8_t)ct_rng_u64(rng);
          ++n;
        }
        break;
      default:
        if (n) {
          memmove(data + at, data + at + 1, n - at - 1);
          --n;
        }
    }
  }
  return n;
}

/* What was opened is a data set; what was refused says why. */
static bool check_opened(int rc, const struct ct_dataset *ds) {
  const struct ct_dataset_part *parts[] = {&ds->train, &ds->test};
  if (rc) {
    assert_int_equal(rc, -1);
    if (strncmp(why, folder_name(), strlen(folder_name())) != 0) fail_msg("\"%s\"", why);
    assert_in_range(strlen(why), strlen(folder_name()) + 10, sizeof why - 2);
    assert_null(ds->train.pixels);
    assert_null(ds->train.labels);
    return false;
  }
  assert_int_equal(ds->features, ds->height * ds->width * ds->channels);
  assert_true(ds->features > 0);
  float *x = malloc(ds->features * sizeof *x);
  for (int p = 0; p < 2; ++p) {
    assert_true(parts[p]->count > 0);
    for (uint32_t k = 0; k < parts[p]->count; ++k) {
      assert_in_range(parts[p]->labels[k], 0, ds->classes - 1);
      ct_dataset_values(ds, parts[p], &k, 1, x);
      for (size_t i = 0; i < ds->features; ++i)
        assert_true(isfinite(x[i]));
    }
  }
  free(x);
  return true;
}

static void random_damage(void **state) {
  (void)state;
  static struct good g;
  static uint8_t data[kBytesMost + 64];
  ct_rng rng = ct_rng_make(11);
  unsigned opened = 0, all = 0;
  alarm(300); /* a hang ends the test */
  for (unsigned kind = 0; kind < 5; ++kind) {
    make_good(&g, kind);
    for (unsigned n = 0; n < 1500; ++n, ++all) {
      struct ct_dataset ds;
      const unsigned i = ct_rng_below(&rng, g.files);
      const unsigned other = ct_rng_percent(&rng, 5) ? ct_rng_below(&rng, g.files) : i;
      memcpy(data, g.file[i].data, g.file[i].bytes);
      put(g.file[other].name, data, damage(&rng, data, g.file[i].bytes, sizeof data));
      const int rc = ct_dataset_open(&ds, folder_name(), n, n % 3, why, sizeof why);
      opened += check_opened(rc, &ds);
      ct_dataset_free(&ds);
      put(g.file[other].name, g.file[other].data, g.file[other].bytes);
    }
  }
  alarm(0);
  print_message("%u of %u could be opened\n", opened, all);
  assert_in_range(opened, all / 20, all / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cifar_batches),         cmocka_unit_test(cifar_of_either_length),
      cmocka_unit_test(damaged_cifar),         cmocka_unit_test(arrays),
      cmocka_unit_test(arrays_that_are_split), cmocka_unit_test(damaged_arrays),
      cmocka_unit_test(wrong_folders),         cmocka_unit_test(random_damage),
  };
  return cmocka_run_group_tests(tests, folder_make, folder_drop);
}
