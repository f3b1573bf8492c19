/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files: what is written reads back bit for bit, and every other kind is refused by name. */
#include "ct_tb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/tools/data/ct_npy.h"

/* A path in the build's temporary folder, of this process alone. */
static const char *temp_path(void) {
  static char path[64];
  snprintf(path, sizeof path, "/tmp/ct_test_npy.%ld", (long)getpid());
  return path;
}

static void put(const void *bytes, size_t n) {
  FILE *f = fopen(temp_path(), "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

/* A file of one header text and n bytes of data 0, 1, 2 ...; returns its length. */
static size_t make(unsigned char *out, unsigned major, const char *dict, size_t n) {
  const size_t len = strlen(dict), lenbytes = major == 1 ? 2 : 4;
  memcpy(out, "\x93NUMPY", 6);
  out[6] = (unsigned char)major;
  out[7] = 0;
  for (size_t i = 0; i < lenbytes; ++i)
    out[8 + i] = (unsigned char)(len >> (8 * i));
  memcpy(out + 8 + lenbytes, dict, len);
  for (size_t i = 0; i < n; ++i)
    out[8 + lenbytes + len + i] = (unsigned char)i;
  return 8 + lenbytes + len + n;
}

static void expect_refused(const char *part) {
  char why[CT_NPY_WHY] = "";
  struct ct_npy a = {7, 7, NULL};
  assert_int_equal(ct_npy_read(temp_path(), &a, why, sizeof why), -1);
  if (!strstr(why, part)) fail_msg("\"%s\" is not in \"%s\"", part, why);
  assert_memory_equal(why, temp_path(), strlen(temp_path()));
  assert_null(a.data);
  assert_int_equal(a.rows + a.cols, 0);
}

static void refuse(const char *dict, size_t data, const char *part) {
  unsigned char file[1024];
  put(file, make(file, 1, dict, data));
  expect_refused(part);
}

#define DICT(descr, fortran, shape) \
  "{'descr': " descr ", 'fortran_order': " fortran ", 'shape': " shape ", }"

static void round_trip(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  for (int turn = 0; turn < 30; ++turn) {
    const size_t rows = 1 + ct_rng_below(&rng, turn < 20 ? 40 : 900);
    const size_t cols = 1 + ct_rng_below(&rng, turn < 20 ? 40 : 900);
    const size_t bytes = rows * cols * sizeof(float);
    float *data = malloc(bytes);
    char why[CT_NPY_WHY] = "";
    struct ct_npy a;
    assert_non_null(data);
    ct_rng_fill(&rng, data, bytes); /* any bits, NaNs too */
    assert_int_equal(ct_npy_write(temp_path(), data, rows, cols, why, sizeof why), 0);
    if (ct_npy_read(temp_path(), &a, why, sizeof why)) fail_msg("%s", why);
    assert_int_equal(a.rows, rows);
    assert_int_equal(a.cols, cols);
    ct_assert_same("data", a.data, data, bytes);
    ct_npy_free(&a);
    ct_npy_free(&a);
    free(data);
  }
  ct_npy_free(NULL);
}

/* What numpy.save('x.npy', numpy.array([[1, -2.5]], 'f4')) writes, byte for byte. */
static void same_as_numpy(void **state) {
  (void)state;
  unsigned char want[136], got[137];
  const float data[2] = {1.0f, -2.5f};
  static const char dict[] = DICT("'<f4'", "False", "(1, 2)");
  memset(want, ' ', sizeof want);
  memcpy(want, "\x93NUMPY\x01\x00\x76\x00", 10);
  memcpy(want + 10, dict, strlen(dict));
  want[127] = '\n';
  memcpy(want + 128, "\x00\x00\x80\x3f\x00\x00\x20\xc0", 8);
  assert_int_equal(ct_npy_write(temp_path(), data, 1, 2, NULL, 0), 0);
  FILE *f = fopen(temp_path(), "rb");
  assert_non_null(f);
  assert_int_equal(fread(got, 1, sizeof got, f), sizeof want);
  fclose(f);
  ct_assert_same("file", got, want, sizeof want);
}

/* Every version, and the freedoms of a Python dictionary. */
static void forms_that_are_read(void **state) {
  (void)state;
  static const char *const dicts[] = {
      DICT("'<f4'", "False", "(2, 3)"),
      DICT("'<f4'", "False", "(2, 3)") "      \n",
      "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}",
      " { \"descr\" : \"<f4\" , 'shape': ( 2L , 3L, ), 'fortran_order': False } \n",
  };
  for (unsigned major = 1; major <= 3; ++major)
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; ++i) {
      unsigned char file[256];
      char why[CT_NPY_WHY];
      struct ct_npy a;
      const size_t n = make(file, major, dicts[i], 24);
      put(file, n);
      if (ct_npy_read(temp_path(), &a, why, sizeof why)) fail_msg("%s", why);
      assert_int_equal(a.rows, 2);
      assert_int_equal(a.cols, 3);
      ct_assert_same("data", a.data, file + n - 24, 24);
      ct_npy_free(&a);
    }
}

static void other_types(void **state) {
  (void)state;
  refuse(DICT("'>f4'", "False", "(2, 3)"), 24, "big-endian float32");
  refuse(DICT("'<f8'", "False", "(2, 3)"), 48, "float64");
  refuse(DICT("'>f8'", "False", "(2, 3)"), 48, "float64");
  refuse(DICT("'|O'", "False", "(2, 3)"), 24, "Python objects");
  refuse(DICT("'|u1'", "False", "(2, 3)"), 6, "type '|u1'");
  refuse(DICT("'<f2'", "False", "(2, 3)"), 12, "type '<f2'");
  refuse(DICT("''", "False", "(2, 3)"), 12, "type ''");
  refuse(DICT("[('a', '<f4'), ('b', '<i4', (2,))]", "False", "(2,)"), 24, "structured");
}

static void other_shapes(void **state) {
  (void)state;
  refuse(DICT("'<f4'", "False", "()"), 4, "0-d");
  refuse(DICT("'<f4'", "False", "(6,)"), 24, "1-D array of 6");
  refuse(DICT("'<f4'", "False", "(1, 2, 3)"), 24, "3-D");
  refuse(DICT("'<f4'", "False", "(1, 1, 1, 2, 3)"), 24, "5-D");
  refuse(DICT("'<f4'", "True", "(2, 3)"), 24, "Fortran order");
  refuse(DICT("'<f4'", "False", "(0, 3)"), 0, "empty array of 0x3");
  refuse(DICT("'<f4'", "False", "(2, 0)"), 0, "empty array of 2x0");
  refuse(DICT("'<f4'", "False", "(4294967296, 4294967296)"), 24, "more than this machine");
  refuse(DICT("'<f4'", "False", "(4611686018427387904, 1)"), 24, "more than this machine");
  refuse(DICT("'<f4'", "False", "(99999999999999999999999, 1)"), 24, "header that is not");
  /* A terabyte that is not there costs no memory. */
  refuse(DICT("'<f4'", "False", "(274877906944, 1)"), 24, "24 of 1099511627776 bytes");
}

static void damaged_headers(void **state) {
  (void)state;
  static const char *const dicts[] = {
      "",
      "{",
      "{}",
      "{'descr'",
      "{'descr': ",
      "{'descr': '<f4",
      "{'descr': '<f4'}",
      "{'descr': [('a', '<f4'}",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
      "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",
      "['descr', '<f4']",
  };
  for (size_t i = 0; i < sizeof dicts / sizeof *dicts; ++i)
    refuse(dicts[i], 24, "header that is not the dictionary");
}

/* A good file cut at every byte, and one byte too long. */
static void cut_short(void **state) {
  (void)state;
  unsigned char file[256];
  for (unsigned major = 1; major <= 2; ++major) {
    const size_t n = make(file, major, DICT("'<f4'", "False", "(2, 3)"), 24);
    for (size_t cut = 1; cut < n; ++cut) {
      put(file, cut);
      expect_refused("cut short");
    }
    file[n] = 0;
    put(file, n + 1);
    expect_refused("goes on after the 24 bytes");
  }
  put(file, 0);
  expect_refused("is empty");
}

static void foreign_files(void **state) {
  (void)state;
  put("PK\x03\x04 an npz archive", 19);
  expect_refused("is not a .npy file");
  put("1,2\n", 4);
  expect_refused("is not a .npy file");
  put("\x93NUMPY\x04\x00  {}", 12);
  expect_refused("version 4.0");
  put("\x93NUMPY\x01\x01  {}", 12);
  expect_refused("version 1.1");
  put("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14);
  expect_refused("damaged");
  remove(temp_path());
  expect_refused("cannot be opened");
}

/* Any single byte of the header changed: never a crash, and never a shape that was not written. */
static void random_damage(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  unsigned char file[256];
  const size_t n = make(file, 1, DICT("'<f4'", "False", "(2, 3)"), 24);
  for (int turn = 0; turn < 2000; ++turn) {
    const size_t at = ct_rng_below(&rng, (uint32_t)n - 24);
    const unsigned char old = file[at];
    char why[CT_NPY_WHY];
    struct ct_npy a;
    file[at] = (unsigned char)ct_rng_u64(&rng);
    put(file, n);
    if (ct_npy_read(temp_path(), &a, why, sizeof why) == 0) assert_int_equal(a.rows * a.cols, 6);
    ct_npy_free(&a);
    file[at] = old;
  }
}

static void where_nothing_can_be_written(void **state) {
  (void)state;
  char why[CT_NPY_WHY] = "";
  const float one = 1;
  assert_int_equal(ct_npy_write("/nonexistent/x.npy", &one, 1, 1, why, sizeof why), -1);
  assert_non_null(strstr(why, "/nonexistent/x.npy: cannot be created"));
  assert_int_equal(ct_npy_write(temp_path(), &one, 0, 1, why, sizeof why), -1);
  assert_non_null(strstr(why, "empty or too large"));
  assert_int_equal(ct_npy_write(temp_path(), &one, SIZE_MAX / 4, 2, why, sizeof why), -1);
  if (access("/dev/full", W_OK) == 0) {
    assert_int_equal(ct_npy_write("/dev/full", &one, 1, 1, why, sizeof why), -1);
    assert_non_null(strstr(why, "could not be written to its end"));
  }
  /* A folder, and a buffer too small for the sentence. */
  struct ct_npy a;
  assert_int_equal(ct_npy_read("/tmp", &a, why, sizeof why), -1);
  assert_non_null(strstr(why, "cannot be read"));
  assert_int_equal(ct_npy_read("/tmp", &a, why, 3), -1);
  assert_string_equal(why, "/t");
}

static int clean(void **state) {
  (void)state;
  remove(temp_path());
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(round_trip),          cmocka_unit_test(same_as_numpy),
      cmocka_unit_test(forms_that_are_read), cmocka_unit_test(other_types),
      cmocka_unit_test(other_shapes),        cmocka_unit_test(damaged_headers),
      cmocka_unit_test(cut_short),           cmocka_unit_test(foreign_files),
      cmocka_unit_test(random_damage),       cmocka_unit_test(where_nothing_can_be_written),
  };
  return cmocka_run_group_tests(tests, NULL, clean);
}
