/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets: the digits to the bit, IDX folders in every form, every damaged file refused; and the
 * generator that orders them. */
#include "ct_tb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data_folder.h"
#include "host/tools/data/ct_dataset.h"
#include "host/tools/data/ct_rand.h"

static char why[CT_DATASET_WHY];

static const char *const kNames[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                     "t10k-images-idx3-ubyte",  "t10k-labels-idx1-ubyte",
                                     "train-images.idx3-ubyte", "train-labels.idx1-ubyte",
                                     "test-images.idx3-ubyte",  "test-labels.idx1-ubyte"};

/* --- a small data set, and its files -----------------------------------------------------------
 */

enum { kH = 3, kW = 2, kTrain = 20, kTest = 7 };

struct idx {
  uint8_t images[16 + 64 * kH * kW], labels[8 + 64];
  size_t imagebytes, labelbytes;
};

static void be32(uint8_t *p, uint32_t n) {
  for (int i = 0; i < 4; ++i)
    p[i] = (uint8_t)(n >> (24 - 8 * i));
}

/* The pixels of an image all follow from its number, and so does its label. */
static uint8_t pixel(unsigned image, unsigned i) {
  return (uint8_t)(image * 41 + i * 7 + 3);
}

static uint8_t label(unsigned image) {
  return (uint8_t)(image % 5);
}

static struct idx make(unsigned count) {
  struct idx x = {{0}, {0}, 16 + count * kH * kW, 8 + count};
  be32(x.images, 0x803);
  be32(x.images + 4, count);
  be32(x.images + 8, kH);
  be32(x.images + 12, kW);
  be32(x.labels, 0x801);
  be32(x.labels + 4, count);
  for (unsigned n = 0; n < count; ++n) {
    for (unsigned i = 0; i < kH * kW; ++i)
      x.images[16 + n * kH * kW + i] = pixel(n, i);
    x.labels[8 + n] = label(n);
  }
  return x;
}

static void put_all(const struct idx *train, const struct idx *test) {
  folder_empty();
  put(kNames[0], train->images, train->imagebytes);
  put(kNames[1], train->labels, train->labelbytes);
  put_gz("t10k-images-idx3-ubyte.gz", test->images, test->imagebytes);
  put_gz("t10k-labels-idx1-ubyte.gz", test->labels, test->labelbytes);
}

/* part is images 0 .. whole-1, or so many of them as it holds, each once, in an order of the seed.
 */
static void expect_part(const struct ct_dataset_part *part, unsigned count, unsigned whole) {
  bool seen[64] = {false};
  assert_int_equal(part->count, count);
  for (unsigned k = 0; k < count; ++k) {
    unsigned n = 0;
    while (n < whole && pixel(n, 0) != part->pixels[k * kH * kW])
      ++n;
    assert_in_range(n, 0, whole - 1);
    assert_false(seen[n]);
    seen[n] = true;
    for (unsigned i = 0; i < kH * kW; ++i)
      assert_int_equal(part->pixels[k * kH * kW + i], pixel(n, i));
    assert_int_equal(part->labels[k], label(n));
  }
}

static void expect_set(unsigned train, unsigned test, size_t samples) {
  struct ct_dataset ds;
  if (ct_dataset_open(&ds, folder_name(), 5, samples, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(ds.height, kH);
  assert_int_equal(ds.width, kW);
  assert_int_equal(ds.channels, 1);
  assert_int_equal(ds.features, kH * kW);
  assert_int_equal(ds.classes, 5);
  assert_true(ds.scale == 0.00390625f);
  expect_part(&ds.train, train, kTrain);
  expect_part(&ds.test, test, kTest);
  ct_dataset_free(&ds);
  ct_dataset_free(&ds);
}

static void expect_refused(const char *name, const char *part) {
  struct ct_dataset ds;
  memset(&ds, 0xA5, sizeof ds);
  why[0] = 0;
  assert_int_equal(ct_dataset_open(&ds, name, 5, 0, why, sizeof why), -1);
  if (!strstr(why, part)) fail_msg("\"%s\" is not in \"%s\"", part, why);
  if (!strstr(why, name)) fail_msg("\"%s\" is not in \"%s\"", name, why);
  assert_null(ds.train.pixels);
  assert_null(ds.test.labels);
  assert_int_equal(ds.train.count + ds.features, 0);
}

/* --- the generator -----------------------------------------------------------------------------
 */

/* First outputs for the state that splitmix64 makes of seed 0, and of other streams: worked out
 * apart from this code. */
static void generator(void **state) {
  (void)state;
  static const struct {
    uint64_t seed, stream, want[3];
  } known[] = {
      {UINT64_C(0x0),
       0,
       {UINT64_C(0x99EC5F36CB75F2B4), UINT64_C(0xBF6E1F784956452A), UINT64_C(0x1A5F849D4933E6E0)}},
      {UINT64_C(0x1),
       0,
       {UINT64_C(0xB3F2AF6D0FC710C5), UINT64_C(0x853B559647364CEA), UINT64_C(0x92F89756082A4514)}},
      {UINT64_C(0x1),
       1,
       {UINT64_C(0x7801FFA85C6ECC24), UINT64_C(0x0858358F00DD267E), UINT64_C(0x867DF49580968B98)}},
      {UINT64_C(0xFFFFFFFFFFFFFFFF),
       5,
       {UINT64_C(0xDD990FF279F998A1), UINT64_C(0x9A3B7F5E162AC1D2), UINT64_C(0xC2667CC481CB2D98)}},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    struct ct_rand rand;
    ct_rand_seed(&rand, known[i].seed, known[i].stream);
    for (int k = 0; k < 3; ++k)
      assert_int_equal(ct_rand_next(&rand), known[i].want[k]);
  }
}

/* The bound is reached and never passed, every value about as often as every other. */
static void bounded(void **state) {
  (void)state;
  struct ct_rand rand;
  ct_rand_seed(&rand, ct_tb_seed(), 99);
  for (unsigned n = 1; n < 20; ++n) {
    unsigned hits[20] = {0};
    for (unsigned k = 0; k < 2000 * n; ++k) {
      const uint64_t x = ct_rand_below(&rand, n);
      assert_true(x < n);
      ++hits[x];
    }
    for (unsigned x = 0; x < n; ++x) /* 2000 expected, deviation below 45 */
      assert_in_range(hits[x], 2000 - 6 * 45, 2000 + 6 * 45);
  }
  /* Three quarters of 2^64: taking the remainder would make the lower third twice as likely. */
  const uint64_t n = UINT64_C(3) << 62;
  unsigned low = 0;
  for (unsigned k = 0; k < 9000; ++k)
    low += ct_rand_below(&rand, n) < (UINT64_C(1) << 62);
  assert_in_range(low, 3000 - 6 * 45, 3000 + 6 * 45);
  const struct ct_rand before = rand;
  assert_int_equal(ct_rand_below(&rand, 0), 0);
  assert_memory_equal(&before, &rand, sizeof rand);
  for (unsigned k = 0; k < 1000; ++k) {
    const float u = ct_rand_unit(&rand);
    assert_true(u >= 0 && u < 1);
  }
}

/* All 24 orders of four things come about equally often. */
static void shuffled(void **state) {
  (void)state;
  struct ct_rand rand;
  unsigned hits[256] = {0}, orders = 0;
  ct_rand_seed(&rand, ct_tb_seed(), 98);
  for (unsigned k = 0; k < 24000; ++k) {
    uint32_t a[4] = {0, 1, 2, 3};
    ct_rand_shuffle(&rand, a, 4);
    assert_int_equal(1u << a[0] | 1u << a[1] | 1u << a[2] | 1u << a[3], 15);
    ++hits[a[0] | a[1] << 2 | a[2] << 4 | a[3] << 6];
  }
  for (unsigned i = 0; i < 256; ++i)
    if (hits[i]) {
      ++orders;
      assert_in_range(hits[i], 1000 - 6 * 32, 1000 + 6 * 32);
    }
  assert_int_equal(orders, 24);
  ct_rand_shuffle(&rand, NULL, 0);
}

/* --- digits ------------------------------------------------------------------------------------
 */

static uint64_t fnv(uint64_t h, const void *bytes, size_t n) {
  const uint8_t *p = bytes;
  for (size_t i = 0; i < n; ++i)
    h = (h ^ p[i]) * UINT64_C(0x100000001B3);
  return h;
}

static uint64_t digest(const struct ct_dataset *ds) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  h = fnv(h, ds->train.pixels, ds->train.count * ds->features);
  h = fnv(h, ds->train.labels, ds->train.count);
  h = fnv(h, ds->test.pixels, ds->test.count * ds->features);
  return fnv(h, ds->test.labels, ds->test.count);
}

static void digits(void **state) {
  (void)state;
  static const unsigned each[10] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
  unsigned hits[10] = {0};
  struct ct_dataset ds;
  if (ct_dataset_open(&ds, "digits", 1, 0, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(ds.train.count, 1437);
  assert_int_equal(ds.test.count, 360);
  assert_int_equal(ds.height, 8);
  assert_int_equal(ds.width, 8);
  assert_int_equal(ds.features, 64);
  assert_int_equal(ds.classes, 10);
  assert_true(ds.scale == 0.0625f);
  for (size_t i = 0; i < 1437; ++i)
    ++hits[ds.train.labels[i]];
  for (size_t i = 0; i < 360; ++i)
    ++hits[ds.test.labels[i]];
  assert_memory_equal(hits, each, sizeof each);
  assert_int_equal(digest(&ds), UINT64_C(0x226B5CA977DD2067)); /* worked out apart from this code */
  ct_dataset_free(&ds);
  ct_dataset_free(NULL);
}

static void seeds_and_samples(void **state) {
  (void)state;
  struct ct_dataset a, b;
  assert_int_equal(ct_dataset_open(&a, "digits", 2, 0, why, sizeof why), 0);
  assert_int_equal(ct_dataset_open(&b, "digits", 2, 400, why, sizeof why), 0);
  assert_int_equal(b.train.count, 400);
  assert_int_equal(b.test.count, 360);
  /* Fewer samples are the first ones of the same order. */
  assert_memory_equal(a.train.pixels, b.train.pixels, 400 * 64);
  assert_memory_equal(a.train.labels, b.train.labels, 400);
  assert_memory_equal(a.test.pixels, b.test.pixels, 360 * 64);
  ct_dataset_free(&b);
  assert_int_equal(ct_dataset_open(&b, "digits", 3, 1, why, sizeof why), 0);
  assert_int_equal(b.train.count, 1);
  assert_int_equal(b.test.count, 1);
  ct_dataset_free(&b);
  assert_int_equal(ct_dataset_open(&b, "digits", 3, 0, why, sizeof why), 0);
  assert_int_not_equal(digest(&a), digest(&b));
  ct_dataset_free(&a);
  ct_dataset_free(&b);
}

static void values(void **state) {
  (void)state;
  struct ct_dataset ds;
  float out[3 * 64];
  const uint32_t order[3] = {359, 0, 17};
  assert_int_equal(ct_dataset_open(&ds, "digits", 4, 0, why, sizeof why), 0);
  ct_dataset_values(&ds, &ds.test, order, 3, out);
  for (unsigned k = 0; k < 3; ++k)
    for (unsigned i = 0; i < 64; ++i)
      assert_true(out[k * 64 + i] * 16 == (float)ds.test.pixels[order[k] * 64 + i]);
  ct_dataset_values(&ds, &ds.train, NULL, 3, out);
  for (unsigned i = 0; i < 3 * 64; ++i)
    assert_true(out[i] * 16 == (float)ds.train.pixels[i]);
  ct_dataset_free(&ds);
}

/* A CSV of n good lines, compressed; the text of line 2 may be given. */
static size_t make_csv(uint8_t *out, size_t size, unsigned n, const char *second, const char *end) {
  char text[8192] = "";
  for (unsigned k = 0; k < n; ++k) {
    if (k == 1 && second) {
      strcat(text, second);
      continue;
    }
    for (unsigned i = 0; i < 64; ++i)
      strcat(text, i % 3 ? "16," : "0,");
    strcat(text, "9\n");
  }
  strcat(text, end);
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = (Bytef *)text;
  z.avail_in = (uInt)strlen(text);
  z.next_out = out;
  z.avail_out = (uInt)size;
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  assert_int_equal(deflateEnd(&z), Z_OK);
  return size - z.avail_out;
}

static void refuse_csv(const void *gz, size_t n, const char *part) {
  struct ct_dataset ds;
  assert_int_equal(ct_dataset_open_csv(&ds, gz, n, 1, 0, why, sizeof why), -1);
  if (!strstr(why, part)) fail_msg("\"%s\" is not in \"%s\"", part, why);
  assert_null(ds.train.pixels);
}

static void damaged_csv(void **state) {
  (void)state;
  uint8_t gz[8192];
  struct ct_dataset ds;
  size_t n = make_csv(gz, sizeof gz, 10, NULL, "");
  assert_int_equal(ct_dataset_open_csv(&ds, gz, n, 1, 0, why, sizeof why), 0);
  assert_int_equal(ds.train.count, 8);
  assert_int_equal(ds.test.count, 2);
  ct_dataset_free(&ds);
  for (size_t cut = 0; cut < n; ++cut)
    refuse_csv(gz, cut, "not a whole gzip file");
  gz[n] = 0;
  refuse_csv(gz, n + 1, "not a whole gzip file");
  refuse_csv("1,2,3\n", 6, "not a whole gzip file");
  n = make_csv(gz, sizeof gz, 0, NULL, "");
  refuse_csv(gz, n, "has 0 whole lines");
  static const char *const lines[][2] = {
      {"17,0,9\n", "line 2, value 1:"}, {"0,-1,9\n", "line 2, value 2:"},
      {"0,1,\n", "line 2, value 3:"},   {"\n", "line 2, value 1:"},
      {"1 ,2\n", "line 2, value 1:"},   {"99999999999999,1\n", "line 2, value 1:"}};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
    n = make_csv(gz, sizeof gz, 10, lines[i][0], "");
    refuse_csv(gz, n, lines[i][1]);
  }
  char line[160] = "";
  for (unsigned i = 0; i < 64; ++i)
    strcat(line, "1,");
  static const char *const labels[] = {"10\n", "x\n", "\n", "1,\n", "-1\n"};
  for (size_t i = 0; i < sizeof labels / sizeof *labels; ++i) {
    strcpy(line + 128, labels[i]);
    n = make_csv(gz, sizeof gz, 10, line, "");
    refuse_csv(gz, n, "line 2: its label");
  }
  n = make_csv(gz, sizeof gz, 4, NULL, "");
  refuse_csv(gz, n, "at least 5");
  n = make_csv(gz, sizeof gz, 10, NULL, "1,2");
  refuse_csv(gz, n, "does not end with a whole line");
}

/* --- IDX ---------------------------------------------------------------------------------------
 */

static void folders(void **state) {
  (void)state;
  const struct idx train = make(kTrain), test = make(kTest);
  put_all(&train, &test);
  expect_set(kTrain, kTest, 0);
  expect_set(kTrain, kTest, 100);
  expect_set(9, kTest, 9);
  expect_set(2, 2, 2);
  folder_empty(); /* the other names */
  put_gz("train-images.idx3-ubyte.gz", train.images, train.imagebytes);
  put(kNames[5], train.labels, train.labelbytes);
  put(kNames[6], test.images, test.imagebytes);
  put(kNames[7], test.labels, test.labelbytes);
  expect_set(kTrain, kTest, 0);
}

static void wrong_names(void **state) {
  (void)state;
  expect_refused("no/such/folder", "neither a data set");
  expect_refused("", "neither a data set");
  folder_empty();
  expect_refused(folder_name(), "has no data set that is known");
  const struct idx train = make(kTrain), test = make(kTest);
  put_all(&train, &test);
  remove(in_folder(kNames[0]));
  expect_refused(folder_name(), "has no train-images-idx3-ubyte");
  put_all(&train, &test);
  remove(in_folder("t10k-labels-idx1-ubyte.gz"));
  expect_refused(folder_name(), "has no t10k-labels-idx1-ubyte");
  setenv("CT_DATASETS", folder_name(), 1);
  expect_refused("fashion-mnist", "install Debian's package dataset-fashion-mnist");
  unsetenv("CT_DATASETS");
}

static void wrong_contents(void **state) {
  (void)state;
  const struct idx train = make(kTrain), test = make(kTest);
  struct idx bad = train;
  be32(bad.images, 0x801);
  put_all(&bad, &test);
  expect_refused(folder_name(), "holds labels instead of images");
  be32(bad.images, 0xD03); /* FP32 */
  put_all(&bad, &test);
  expect_refused(folder_name(), "begins with 0x00000d03 instead of 0x00000803");
  bad = train;
  be32(bad.labels, 0x803);
  put_all(&bad, &test);
  expect_refused(folder_name(), "holds images instead of labels");
  for (int i = 4; i < 16; i += 4) {
    bad = train;
    be32(bad.images + i, 0);
    put_all(&bad, &test);
    expect_refused(folder_name(), "is empty");
    be32(bad.images + i, UINT32_MAX);
    put_all(&bad, &test);
    expect_refused(folder_name(), i == 4 ? "cut short" : "at most 1024x1024");
  }
  bad = make(kTrain - 1);
  memcpy(bad.images, train.images, sizeof bad.images);
  bad.imagebytes = train.imagebytes;
  put_all(&bad, &test);
  expect_refused(folder_name(), "has 20 images but 19 labels");
  bad = test;
  be32(bad.images + 8, kW);
  be32(bad.images + 12, kH);
  put_all(&train, &bad);
  expect_refused(folder_name(), "training images are 3x2 but its test images 2x3");
  bad = test;
  bad.labels[8 + 3] = 5;
  put_all(&train, &bad);
  expect_refused(folder_name(), "label 5 of test image 3 is not within 0..4");
}

/* Every plain file cut at every byte, or one byte too long. */
static void cut_files(void **state) {
  (void)state;
  const struct idx train = make(kTrain), test = make(kTest);
  put_all(&train, &test);
  for (size_t n = 0; n < train.imagebytes; ++n) {
    put(kNames[0], train.images, n);
    expect_refused(folder_name(), n < 16 ? "shorter than the header" : "cut short");
  }
  put(kNames[0], train.images, train.imagebytes + 1);
  expect_refused(folder_name(), "goes on after");
  put(kNames[0], train.images, train.imagebytes);
  for (size_t n = 0; n < train.labelbytes; ++n) {
    put(kNames[1], train.labels, n);
    expect_refused(folder_name(), n < 8 ? "shorter than the header" : "cut short");
  }
  put(kNames[1], train.labels, train.labelbytes + 1);
  expect_refused(folder_name(), "goes on after");
}

/* A gzipped file cut at every byte, its check sum included, and with any byte of it changed. */
static void damaged_gzip(void **state) {
  (void)state;
  const struct idx train = make(kTrain), test = make(kTest);
  const char *name = "t10k-images-idx3-ubyte.gz";
  uint8_t gz[512];
  put_all(&train, &test);
  FILE *f = fopen(in_folder(name), "rb");
  assert_non_null(f);
  const size_t n = fread(gz, 1, sizeof gz, f);
  fclose(f);
  assert_in_range(n, 30, sizeof gz - 1);
  for (size_t cut = 0; cut < n; ++cut) {
    put(name, gz, cut);
    expect_refused(folder_name(), name);
  }
  unsigned harmless = 0;
  for (size_t at = 10; at < n; ++at) { /* behind the header, whose time stamp may be anything */
    struct ct_dataset ds;
    gz[at] ^= 0x10;
    put(name, gz, n);
    if (ct_dataset_open(&ds, folder_name(), 5, 0, why, sizeof why) == 0) {
      expect_part(&ds.test, kTest, kTest); /* another way to write the same */
      ct_dataset_free(&ds);
      ++harmless;
    }
    gz[at] ^= 0x10;
  }
  assert_in_range(harmless, 0, 1);
  put(name, gz, n);
  expect_set(kTrain, kTest, 0);
}

/* The real one, where the package is installed. */
static void fashion(void **state) {
  (void)state;
  unsigned hits[10] = {0};
  struct ct_dataset ds;
  if (access("/usr/share/datasets/fashion-mnist", R_OK)) skip();
  if (ct_dataset_open(&ds, "fashion-mnist", 1, 0, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(ds.train.count, 60000);
  assert_int_equal(ds.test.count, 10000);
  assert_int_equal(ds.features, 784);
  assert_int_equal(ds.classes, 10);
  for (size_t i = 0; i < 60000; ++i)
    ++hits[ds.train.labels[i]];
  for (int i = 0; i < 10; ++i)
    assert_int_equal(hits[i], 6000);
  ct_dataset_free(&ds);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(generator),         cmocka_unit_test(bounded),
      cmocka_unit_test(shuffled),          cmocka_unit_test(digits),
      cmocka_unit_test(seeds_and_samples), cmocka_unit_test(values),
      cmocka_unit_test(damaged_csv),       cmocka_unit_test(folders),
      cmocka_unit_test(wrong_names),       cmocka_unit_test(wrong_contents),
      cmocka_unit_test(cut_files),         cmocka_unit_test(damaged_gzip),
      cmocka_unit_test(fashion),
  };
  return cmocka_run_group_tests(tests, folder_make, folder_drop);
}
