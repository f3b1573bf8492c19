/* SPDX-License-Identifier: Apache-2.0 */
/* The library on the emulated device: opening, memory, tensors, jobs, model files; and what goes
 * wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coltrain/coltrain.h"
#include "ct_queue.h"
#include "ct_num.h"
#include "ct_prog.h"
#include "harness/ct_tb.h"
#include "one_copy.h"

static ct_device *open_emulator(void) {
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  return dev;
}

/* ---- Opening ---- */

static void count_log(void *arg, int level, const char *text) {
  assert_non_null(text);
  assert_in_range(level, 0, 2);
  ++*(int *)arg;
}

static void check_refused(const char *uri, int error, const char *part) {
  char why[256] = "";
  int logged = 0;
  const struct ct_options options = {
      .why = why, .why_size = sizeof why, .log = count_log, .log_arg = &logged};
  ct_device *dev = (ct_device *)&logged;
  assert_int_equal(ct_open_with(uri, &options, &dev), error);
  assert_null(dev);
  assert_int_equal(logged, 1);
  if (!strstr(why, part)) fail_msg("\"%s\" does not speak of \"%s\"", why, part);
}

static void test_open_says_what_is_wrong(void **state) {
  (void)state;
  check_refused("nowhere:", CT_ERR_NOT_FOUND, "nowhere");
  check_refused("", CT_ERR_ARG, "SCHEME");
  check_refused("../x:", CT_ERR_ARG, "SCHEME");
  check_refused("emu:speed=9", CT_ERR_ARG, "speed");
  check_refused("emu:spm=1000", CT_ERR_ARG, "1000");
  assert_int_equal(ct_open(NULL, NULL), CT_ERR_ARG);
}

static void test_a_plugin_that_is_none(void **state) {
  (void)state;
  char folder[] = "/tmp/ct_test_XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/odd.so", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("not a shared object", f);
  fclose(f);
  setenv("COLTRAIN_PLUGIN_DIR", folder, 1);
  check_refused("odd:", CT_ERR_DEVICE, "odd.so");
  unsetenv("COLTRAIN_PLUGIN_DIR");
  unlink(path);
  rmdir(folder);
}

static void test_info(void **state) {
  (void)state;
  ct_device *dev;
  struct ct_info info;
  uint64_t cycle;
  assert_int_equal(ct_open("emu:spm=8192,cols=8,lanes=4,dram=1", &dev), CT_OK);
  assert_int_equal(ct_info(dev, &info), CT_OK);
  assert_string_equal(info.uri, "emu:spm=8192,cols=8,lanes=4,dram=1");
  assert_int_equal(info.macs_per_cycle, 128);
  assert_int_equal(info.vpu_lanes, 4);
  assert_int_equal(info.spm_bytes, 131072);
  assert_int_equal(info.dram_bytes, 1 << 20);
  assert_false(info.has_clock);
  assert_int_equal(ct_now(dev, &cycle), CT_OK);
  assert_true(cycle == CT_NO_CYCLE);
  assert_string_equal(ct_last_error(dev), "");
  ct_close(dev);
  ct_close(NULL);
}

static void test_every_error_has_words(void **state) {
  (void)state;
  for (int e = CT_ERR_BUSY; e <= CT_OK; ++e)
    assert_string_not_equal(ct_strerror(e), "unknown error");
  assert_string_equal(ct_strerror(CT_ERR_BUSY - 1), "unknown error");
  assert_string_equal(ct_strerror(1), "unknown error");
  assert_string_equal(ct_counter_name(0), "BUSY");
  assert_non_null(ct_counter_text(0));
  assert_null(ct_counter_name(31));
}

static void test_the_version_is_one(void **state) {
  (void)state;
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", CT_VERSION_MAJOR, CT_VERSION_MINOR, CT_VERSION_PATCH);
  assert_string_equal(CT_VERSION_STRING, text);
  assert_string_equal(ct_version(), text);
  assert_int_equal(ct_version_number(), CT_VERSION_NUMBER);
  assert_int_equal(CT_VERSION_NUMBER,
                   CT_VERSION_MAJOR * 10000 + CT_VERSION_MINOR * 100 + CT_VERSION_PATCH);
}

/* There and back, for every value; what is none has no name. */
static void test_names_go_both_ways(void **state) {
  (void)state;
  enum ct_policy policy = CT_PRIORITY;
  enum ct_batching batching = CT_BATCHING_NONE;
  int policies = 0, batchings = 0;
  for (; ct_policy_name((enum ct_policy)policies); ++policies) {
    assert_int_equal(ct_policy_by_name(ct_policy_name((enum ct_policy)policies), &policy), CT_OK);
    assert_int_equal(policy, policies);
  }
  for (; ct_batching_name((enum ct_batching)batchings); ++batchings) {
    assert_int_equal(ct_batching_by_name(ct_batching_name((enum ct_batching)batchings), &batching),
                     CT_OK);
    assert_int_equal(batching, batchings);
  }
  assert_int_equal(policies, CT_SLACK + 1);
  assert_int_equal(batchings, CT_BATCHING_ADAPTIVE + 1);
  assert_string_equal(ct_policy_name(CT_ROUND_ROBIN), "round-robin");
  assert_string_equal(ct_batching_name(CT_BATCHING_FIXED), "fixed");
  assert_null(ct_policy_name((enum ct_policy) - 1));
  assert_null(ct_batching_name((enum ct_batching) - 1));
  assert_int_equal(ct_policy_by_name("PRIORITY", &policy), CT_ERR_ARG);
  assert_non_null(strstr(ct_last_error(NULL), "priority, fcfs, round-robin, job or slack"));
}

/* ---- Memory ---- */

static void test_memory_is_reused(void **state) {
  (void)state;
  ct_device *dev;
  uint64_t a, b, c, all;
  assert_int_equal(ct_open("emu:dram=32", &dev), CT_OK);
  assert_int_equal(ct_mem_alloc(dev, 1000, &a), CT_OK);
  assert_int_equal(ct_mem_alloc(dev, 1, &b), CT_OK);
  assert_int_equal(ct_mem_alloc(dev, 0, &c), CT_OK);
  assert_int_equal(a % 256, 0);
  assert_int_equal(b, a + 1024);
  assert_int_equal(c, b + 256);
  assert_int_equal(ct_mem_alloc(dev, 1 << 25, &all), CT_ERR_NO_SPACE);
  assert_non_null(strstr(ct_last_error(dev), "33554432"));
  assert_int_equal(ct_mem_alloc(dev, UINT64_MAX, &all), CT_ERR_NO_SPACE);
  assert_int_equal(ct_mem_free(dev, b), CT_OK);
  assert_int_equal(ct_mem_free(dev, b), CT_ERR_ARG);
  assert_int_equal(ct_mem_free(dev, a), CT_OK);
  assert_int_equal(ct_mem_free(dev, 0), CT_OK);
  assert_int_equal(ct_mem_alloc(dev, 1280, &b), CT_OK);
  assert_int_equal(b, a); /* the two holes have become one */
  assert_int_equal(ct_mem_write(dev, (1 << 25) - 2, "xyz", 3), CT_ERR_ARG);
  assert_int_equal(ct_mem_write(dev, (1 << 25) - 3, "xyz", 3), CT_OK);
  char text[4] = "";
  assert_int_equal(ct_mem_read(dev, (1 << 25) - 3, text, 3), CT_OK);
  assert_string_equal(text, "xyz");
  ct_close(dev);
}

static void test_random_allocations_do_not_overlap(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  struct ct_heap heap;
  struct {
    uint64_t addr, size;
  } kept[64] = {{0, 0}};
  assert_int_equal(ct_heap_init(&heap, 4096, 1 << 20), CT_OK);
  for (int i = 0; i < 4000; ++i) {
    const uint32_t slot = ct_rng_below(&rng, 64);
    if (kept[slot].size) {
      assert_int_equal(ct_heap_free(&heap, kept[slot].addr), CT_OK);
      kept[slot].size = 0;
      continue;
    }
    const uint64_t size = 1 + ct_rng_below(&rng, 40000);
    uint64_t addr;
    if (ct_heap_alloc(&heap, size, 64, &addr)) continue;
    assert_true(addr % 64 == 0 && addr >= 4096 && addr + size <= 4096 + (1 << 20));
    for (unsigned j = 0; j < 64; ++j)
      if (kept[j].size)
        assert_true(addr + size <= kept[j].addr || kept[j].addr + kept[j].size <= addr);
    kept[slot].addr = addr;
    kept[slot].size = size;
  }
  for (unsigned j = 0; j < 64; ++j)
    if (kept[j].size) assert_int_equal(ct_heap_free(&heap, kept[j].addr), CT_OK);
  uint64_t all;
  assert_int_equal(ct_heap_alloc(&heap, 1 << 20, 64, &all), CT_OK);
  ct_heap_free_all(&heap);
}

/* ---- Tensors ---- */

static uint32_t bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static float random_float(ct_rng *rng) {
  const float x = (float)ct_rng_below(rng, 1 << 24) - (float)(1 << 23);
  return ct_rng_below(rng, 8) ? x * 1e-6f : ct_rng_below(rng, 2) ? 0 : x;
}

static uint8_t largest_exponent(const float *x, size_t pitch, size_t rows, size_t cols) {
  uint8_t e = 0;
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < cols; ++c)
      if ((bits(x[r * pitch + c]) >> 23 & 255) > e) e = bits(x[r * pitch + c]) >> 23 & 255;
  return e;
}

/* Where the format says element (r, c) of a matrix lies, and its exponent. */
static void check_packed(const float *x, size_t rows, size_t cols, enum ct_sharing sharing,
                         const uint8_t *packed) {
  const size_t tiles = (cols + 15) / 16;
  for (size_t r = 0; r < (rows + 15) / 16 * 16; ++r) {
    for (size_t c = 0; c < tiles * 16; ++c) {
      const uint8_t *record = packed + (r / 16 * tiles + c / 16) * 272;
      const int8_t q = (int8_t)record[16 + r % 16 * 16 + c % 16];
      const size_t r0 = sharing == CT_SQUARE ? r / 16 * 16 : r, c0 = c / 16 * 16;
      const size_t high = sharing == CT_SQUARE ? 16 : 1;
      const uint8_t e = r0 >= rows ? 0
                                   : largest_exponent(x + r0 * cols + c0, cols,
                                                      high < rows - r0 ? high : rows - r0,
                                                      16 < cols - c0 ? 16 : cols - c0);
      assert_int_equal(record[r % 16], e);
      assert_int_equal(q, r < rows && c < cols ? ct_hbfp8_quant(bits(x[r * cols + c]), e) : 0);
    }
  }
}

static void test_packing_follows_the_format(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  for (int i = 0; i < 40; ++i) {
    const size_t rows = 1 + ct_rng_below(&rng, 50), cols = 1 + ct_rng_below(&rng, 50);
    const enum ct_sharing sharing = i % 2 ? CT_ROW : CT_SQUARE;
    float *x = malloc(rows * cols * sizeof *x), *t = malloc(rows * cols * sizeof *t),
          *back = malloc(rows * cols * sizeof *back);
    const size_t size = ct_pack_size(rows, cols);
    uint8_t *packed = malloc(size), *again = malloc(size);
    for (size_t j = 0; j < rows * cols; ++j) {
      x[j] = random_float(&rng);
      t[j % cols * rows + j / cols] = x[j];
    }
    ct_pack(x, rows, cols, cols, sharing, packed);
    check_packed(x, rows, cols, sharing, packed);
    ct_pack_transposed(t, rows, cols, rows, sharing, again);
    assert_memory_equal(packed, again, size);
    ct_unpack(packed, rows, cols, cols, back);
    ct_pack(back, rows, cols, cols, sharing, again); /* what fits is kept as it is */
    ct_unpack(again, rows, cols, cols, t);
    assert_memory_equal(back, t, rows * cols * sizeof *t);
    free(x);
    free(t);
    free(back);
    free(packed);
    free(again);
  }
  assert_int_equal(ct_pack_size(SIZE_MAX, SIZE_MAX), 0);
}

/* A size is right or 0, at the edges too: by 128 bits, and by none of the functions' own steps. */
static void test_sizes_do_not_wrap(void **state) {
  (void)state;
  static const size_t at[] = {0,
                              1,
                              16,
                              17,
                              256,
                              257,
                              4096,
                              SIZE_MAX / 272,
                              SIZE_MAX / 17,
                              SIZE_MAX / 17 * 16,
                              SIZE_MAX / 2,
                              SIZE_MAX / 2 + 1,
                              SIZE_MAX - 300,
                              SIZE_MAX - 15,
                              SIZE_MAX};
  typedef unsigned __int128 wide;
  for (size_t i = 0; i < sizeof at / sizeof *at; ++i) {
    for (size_t d = 0; d < 40; ++d) {
      const size_t n = at[i] > SIZE_MAX - d ? SIZE_MAX : at[i] + d;
      const wide blocks = ((wide)n + 15) / 16, row = 16 * (blocks + (blocks + 15) / 16);
      const size_t want = row > SIZE_MAX ? 0 : (size_t)row;
      if (ct_pack_row_size(n) != want) fail_msg("a row of %zu: %zu", n, ct_pack_row_size(n));
      for (size_t k = 0; k < sizeof at / sizeof *at; ++k) {
        const wide tiles = blocks * (((wide)at[k] + 15) / 16);
        const size_t size = tiles > SIZE_MAX / 272 ? 0 : (size_t)tiles * 272;
        if (ct_pack_size(n, at[k]) != size)
          fail_msg("%zu x %zu: %zu", n, at[k], ct_pack_size(n, at[k]));
      }
    }
  }
}

static void test_row_vectors_follow_the_format(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  static const size_t length[] = {1, 16, 64, 250, 256, 257, 272, 784};
  for (size_t i = 0; i < sizeof length / sizeof *length; ++i) {
    const size_t n = length[i], blocks = (n + 15) / 16, size = ct_pack_row_size(n);
    assert_int_equal(size, 16 * (blocks + (blocks + 15) / 16));
    float *x = malloc(n * sizeof *x);
    uint8_t *packed = malloc(size);
    for (size_t j = 0; j < n; ++j)
      x[j] = random_float(&rng);
    ct_pack_row(x, n, packed);
    for (size_t j = 0; j < n; ++j) {
      const size_t block = j / 16, group = block / 16;
      const uint8_t *header = packed + group * 272;
      const uint8_t e =
          largest_exponent(x + block * 16, n, 1, n - block * 16 < 16 ? n - block * 16 : 16);
      assert_int_equal(header[block % 16], e);
      assert_int_equal((int8_t)header[16 + block % 16 * 16 + j % 16],
                       ct_hbfp8_quant(bits(x[j]), e));
    }
    free(x);
    free(packed);
  }
}

/* ---- Jobs ---- */

static ct_program *load_copy(ct_device *dev) {
  struct ct_code code;
  ct_program *program;
  assert_int_equal(one_copy(1, 4096, &code, NULL), CT_OK);
  assert_int_equal(ct_code_load(dev, &code, &program), CT_OK);
  return program;
}

static struct ct_job copy_job(const ct_program *program, uint64_t from, uint64_t to,
                              uint32_t version) {
  return (struct ct_job){.program = program,
                         .args = {(uint32_t)(from / 16), (uint32_t)(to / 16)},
                         .version = version,
                         .user = (void *)(uintptr_t)(version + 100)};
}

static void freeze(ct_device *dev, bool on) {
  assert_int_equal(ct_reg_write(dev, CT_REG_CTRL, on ? 2 : 0), CT_OK);
}

static void test_jobs_come_back(void **state) {
  (void)state;
  ct_device *dev = open_emulator();
  ct_program *program = load_copy(dev);
  uint64_t at, tag[3];
  struct ct_event r;
  char text[16] = "";
  assert_int_equal(ct_mem_alloc(dev, 64, &at), CT_OK);
  assert_int_equal(ct_mem_write(dev, at, "sixteen letters", 16), CT_OK);
  assert_int_equal(ct_reap(dev, &r, CT_FOREVER), CT_ERR_NOT_FOUND);
  for (uint32_t i = 0; i < 3; ++i) {
    const struct ct_job job = copy_job(program, at, at + 16 + 16 * i, i);
    assert_int_equal(ct_submit(dev, i == 1 ? CT_TRAINING : CT_INFERENCE, &job, &tag[i]), CT_OK);
  }
  assert_int_equal(ct_outstanding(dev, CT_INFERENCE), 2);
  assert_int_equal(ct_wait(dev, tag[2], &r, CT_FOREVER), CT_OK);
  assert_int_equal(r.version, 2);
  assert_true(r.tag == tag[2] && r.error == CT_OK && r.end == CT_NO_CYCLE);
  assert_ptr_equal(r.user, (void *)102);
  assert_int_equal(ct_wait(dev, tag[2], &r, 0), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_reap(dev, &r, 0), CT_OK);
  assert_int_equal(r.version, 0);
  assert_int_equal(ct_reap_until(dev, &r, 5, 0), CT_OK);
  assert_true(r.version == 1 && r.queue == CT_TRAINING);
  assert_int_equal(ct_reap(dev, &r, 0), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_mem_read(dev, at + 48, text, 16), CT_OK);
  assert_string_equal(text, "sixteen letters");
  ct_program_free(program);
  ct_close(dev);
}

static void test_a_full_queue_refuses(void **state) {
  (void)state;
  ct_device *dev = open_emulator();
  ct_program *program = load_copy(dev);
  uint64_t at;
  struct ct_event r;
  int n = 0;
  assert_int_equal(ct_mem_alloc(dev, 64, &at), CT_OK);
  const struct ct_job job = copy_job(program, at, at + 16, 7);
  freeze(dev, true);
  while (ct_submit(dev, CT_TRAINING, &job, NULL) == CT_OK)
    ++n;
  assert_int_equal(n, 1024);
  assert_int_equal(ct_submit(dev, CT_TRAINING, &job, NULL), CT_ERR_FULL);
  assert_int_equal(ct_reap(dev, &r, 0), CT_ERR_TIMEOUT);
  freeze(dev, false);
  for (; n > 0; --n)
    assert_int_equal(ct_reap(dev, &r, 1000), CT_OK);
  assert_int_equal(ct_outstanding(dev, CT_TRAINING), 0);
  assert_int_equal(ct_submit(dev, CT_TRAINING, &job, NULL), CT_OK);
  ct_program_free(program);
  ct_close(dev); /* with a job outstanding */
}

static void test_failed_jobs_say_why(void **state) {
  (void)state;
  ct_device *dev = open_emulator();
  ct_program *program = load_copy(dev);
  uint64_t at, tag;
  struct ct_event r;
  assert_int_equal(ct_mem_alloc(dev, 64, &at), CT_OK);
  const struct ct_job job = copy_job(program, at, 0, 1); /* where the rings are */
  assert_int_equal(ct_submit(dev, CT_TRAINING, &job, &tag), CT_OK);
  assert_int_equal(ct_wait(dev, tag, &r, CT_FOREVER), CT_OK);
  assert_int_equal(r.error, CT_ERR_JOB);
  assert_string_equal(ct_code_name(r.code), "DRAM_WRITE_WINDOW");
  assert_int_equal(ct_event_error(dev, &r), CT_ERR_JOB);
  assert_non_null(strstr(ct_last_error(dev), "writable window"));
  ct_device *other = open_emulator();
  assert_int_equal(ct_submit(other, CT_TRAINING, &job, &tag), CT_ERR_ARG);
  ct_close(other);
  ct_program_free(program);
  ct_close(dev);
}

static void test_cancelled_jobs_do_nothing(void **state) {
  (void)state;
  ct_device *dev = open_emulator();
  ct_program *program = load_copy(dev);
  uint64_t at, tag[3];
  struct ct_event r;
  char text[64] = "";
  assert_int_equal(ct_mem_alloc(dev, 64, &at), CT_OK);
  memcpy(text, "sixteen letters", 16);
  assert_int_equal(ct_mem_write(dev, at, text, 64), CT_OK);
  freeze(dev, true);
  for (uint32_t i = 0; i < 3; ++i) {
    const struct ct_job job = copy_job(program, at, at + 16 + 16 * i, i);
    assert_int_equal(ct_submit(dev, CT_INFERENCE, &job, &tag[i]), CT_OK);
  }
  assert_int_equal(ct_cancel(dev, tag[1]), CT_OK);
  assert_int_equal(ct_cancel(dev, tag[2] + 2), CT_ERR_NOT_FOUND);
  freeze(dev, false);
  for (uint32_t i = 0; i < 3; ++i) {
    assert_int_equal(ct_wait(dev, tag[i], &r, CT_FOREVER), CT_OK);
    assert_int_equal(r.error, i == 1 ? CT_ERR_CANCELLED : CT_OK);
    assert_int_equal(r.version, i);
  }
  assert_int_equal(ct_cancel(dev, tag[1]), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_mem_read(dev, at, text, 64), CT_OK);
  assert_memory_equal(text, text + 16, 16);
  assert_memory_equal(text, text + 48, 16);
  assert_int_equal(text[32], 0);
  ct_program_free(program);
  ct_close(dev);
}

static void test_programs_have_limits(void **state) {
  (void)state;
  ct_device *dev = open_emulator();
  ct_program *program;
  static uint8_t commands[513 * 32];
  assert_int_equal(ct_program_load(dev, commands, 0, &program), CT_ERR_ARG);
  assert_int_equal(ct_program_load(dev, commands, 513, &program), CT_ERR_ARG);
  assert_null(program);
  assert_int_equal(ct_program_load(dev, commands, 512, &program), CT_OK);
  ct_program_free(program);
  ct_program_free(NULL);
  ct_close(dev);
}

/* ---- Model files ---- */

static const uint32_t widths[] = {30, 20, 5};

static ct_model *trained_model(ct_device *dev, int steps, ct_model *go_on) {
  const struct ct_training t = {.batch = 6,
                                .rates = {.lr = 0.05f, .momentum = 0.9f, .weight_decay = 1e-3f}};
  ct_model *m = go_on;
  if (!m) assert_int_equal(ct_model_create(dev, widths, 2, 42, &m), CT_OK);
  assert_int_equal(ct_model_training(m, &t), CT_OK);
  struct ct_model_info info;
  for (int i = 0; i < steps; ++i) {
    assert_int_equal(ct_model_info(m, &info), CT_OK);
    ct_rng rng = ct_rng_make(100 + info.steps);
    float x[180];
    uint32_t labels[6];
    for (int j = 0; j < 180; ++j)
      x[j] = (float)ct_rng_below(&rng, 100) * 0.01f;
    for (int j = 0; j < 6; ++j)
      labels[j] = ct_rng_below(&rng, 5);
    assert_int_equal(ct_model_step(m, x, labels, NULL), CT_OK);
  }
  return m;
}

static void assert_same_numbers(ct_model *a, ct_model *b) {
  for (size_t l = 0; l < 2; ++l) {
    const size_t n = (size_t)widths[l] * widths[l + 1] + widths[l + 1];
    float x[2][1300];
    assert_true(2 * n <= 1300);
    for (int i = 0; i < 2; ++i)
      assert_int_equal(ct_model_get(i ? b : a, l, x[i], x[i] + n - widths[l + 1], x[i] + n,
                                    x[i] + 2 * n - widths[l + 1]),
                       CT_OK);
    assert_memory_equal(x[0], x[1], 2 * n * sizeof(float));
  }
}

static void test_training_resumes_from_a_file(void **state) {
  (void)state;
  char path[] = "/tmp/ct_model_XXXXXX";
  close(mkstemp(path));
  ct_device *dev = open_emulator();
  ct_model *straight = trained_model(dev, 5, NULL), *first = trained_model(dev, 3, NULL), *second;
  struct ct_model_info info;
  ct_model_set_epochs(first, 2);
  assert_int_equal(ct_model_save(first, path), CT_OK);
  assert_int_equal(ct_model_load(dev, path, &second), CT_OK);
  assert_same_numbers(first, second);
  assert_int_equal(ct_model_info(second, &info), CT_OK);
  assert_true(info.training.batch == 6 && info.training.rates.lr == 0.05f &&
              info.training.rates.momentum == 0.9f && info.training.rates.weight_decay == 1e-3f);
  assert_true(info.steps == 3 && info.epochs == 2 && info.seed == 42 && info.layers == 2 &&
              info.widths[2] == 5);
  assert_int_equal(info.macs_per_row, 700);
  trained_model(dev, 2, second);
  assert_same_numbers(straight, second);
  ct_model_free(straight);
  ct_model_free(first);
  ct_model_free(second);
  ct_close(dev);
  unlink(path);
}

static void write_bytes(const char *path, const uint8_t *data, size_t size) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  fclose(f);
}

static void check_file_refused(ct_device *dev, const char *path, const uint8_t *data, size_t size,
                               const char *part) {
  ct_model *m;
  write_bytes(path, data, size);
  assert_int_equal(ct_model_load(dev, path, &m), CT_ERR_FORMAT);
  assert_null(m);
  if (!strstr(ct_last_error(dev), part))
    fail_msg("\"%s\" does not speak of \"%s\"", ct_last_error(dev), part);
}

static void test_damaged_files_are_refused(void **state) {
  (void)state;
  char path[] = "/tmp/ct_model_XXXXXX";
  close(mkstemp(path));
  ct_device *dev = open_emulator();
  ct_model *m = trained_model(dev, 0, NULL), *none;
  assert_int_equal(ct_model_save(m, path), CT_OK);
  uint8_t data[8192];
  FILE *f = fopen(path, "rb");
  const size_t size = fread(data, 1, sizeof data, f);
  fclose(f);
  assert_int_equal(size, 64 + 12 + 4 * 2 * (30 * 20 + 20 + 20 * 5 + 5) + 4);
  const struct {
    size_t at;
    const char *part;
  } harm[] = {{0, "not a model"}, {8, "version"},    {12, "order"},          {16, "layers"},
              {64, "cut short"},  {100, "checksum"}, {size - 1, "checksum"}, {24, "checksum"}};
  for (size_t i = 0; i < sizeof harm / sizeof *harm; ++i) {
    data[harm[i].at] ^= 0x60;
    check_file_refused(dev, path, data, size, harm[i].part);
    data[harm[i].at] ^= 0x60;
  }
  for (size_t cut = 0; cut < size; cut += 61)
    check_file_refused(dev, path, data, cut, "");
  assert_int_equal(ct_model_load(dev, "/nowhere/model", &none), CT_ERR_NOT_FOUND);
  ct_model_free(m);
  unlink(path);
  ct_close(dev);
}

/* Bytes changed at random, wherever they are: every file is refused in words, and no header,
 * however large its claims, costs more memory than the file has bytes. */
static void test_random_damage(void **state) {
  (void)state;
  char path[] = "/tmp/ct_model_XXXXXX";
  close(mkstemp(path));
  ct_device *dev = open_emulator();
  ct_model *m = trained_model(dev, 0, NULL);
  ct_rng rng = ct_rng_make(8);
  assert_int_equal(ct_model_save(m, path), CT_OK);
  uint8_t good[8192], data[8192];
  FILE *f = fopen(path, "rb");
  const size_t size = fread(good, 1, sizeof good, f);
  fclose(f);
  for (int turn = 0; turn < 400; ++turn) {
    ct_model *other = NULL;
    memcpy(data, good, size);
    const uint32_t changes = 1 + ct_rng_below(&rng, 3);
    for (uint32_t i = 0; i < changes; ++i)
      data[ct_rng_below(&rng, ct_rng_percent(&rng, 70) ? 76 : (uint32_t)size)] ^=
          (uint8_t)(1 + ct_rng_below(&rng, 255));
    write_bytes(path, data, ct_rng_percent(&rng, 80) ? size : ct_rng_below(&rng, (uint32_t)size));
    const int err = ct_model_load(dev, path, &other);
    if (err != CT_ERR_FORMAT) fail_msg("turn %d: %d: %s", turn, err, ct_last_error(dev));
    if (!strstr(ct_last_error(dev), path)) fail_msg("no name in: %s", ct_last_error(dev));
    assert_null(other);
  }
  ct_model_free(m);
  unlink(path);
  ct_close(dev);
}

static void test_saving_to_nowhere(void **state) {
  (void)state;
  ct_device *dev = open_emulator();
  ct_model *m = trained_model(dev, 0, NULL);
  assert_int_equal(ct_model_save(m, "/nowhere/at/all"), CT_ERR_IO);
  assert_non_null(strstr(ct_last_error(dev), "/nowhere/at/all"));
  ct_model_free(m);
  ct_close(dev);
}

/* The generator is part of the interface: these numbers stay. */
static void test_initial_weights_are_fixed(void **state) {
  (void)state;
  ct_device *dev = open_emulator();
  ct_model *m;
  float w[600];
  double sum = 0, square = 0;
  assert_int_equal(ct_model_create(dev, widths, 2, 1, &m), CT_OK);
  assert_int_equal(ct_model_get(m, 0, w, NULL, NULL, NULL), CT_OK);
  for (int i = 0; i < 600; ++i) {
    assert_true(w[i] > -0.4473f && w[i] < 0.4473f); /* sqrt(6 / 30) = 0.44721 */
    sum += w[i];
    square += w[i] * w[i];
  }
  assert_true(sum / 600 > -0.04 && sum / 600 < 0.04);
  assert_true(square / 600 > 0.055 && square / 600 < 0.078); /* 2 / 30 = 0.0667 */
  assert_int_equal(bits(w[0]), 0x3d73da50);
  assert_int_equal(bits(w[599]), 0x3ebe2854);
  ct_model_free(m);
  ct_close(dev);
}

/* Its image is more than one program copies. */
static void test_a_version_of_a_large_model(void **state) {
  (void)state;
  static const uint32_t widths[] = {1100, 1100};
  ct_device *dev = open_emulator();
  ct_model *m;
  ct_weights *version;
  struct ct_weights_info info;
  struct ct_event e;
  uint64_t tag;
  assert_int_equal(ct_model_create(dev, widths, 1, 1, &m), CT_OK);
  assert_int_equal(ct_model_publish_submit(m, NULL, &version, &tag), CT_OK);
  assert_int_equal(ct_wait(dev, tag, &e, CT_FOREVER), CT_OK);
  assert_int_equal(e.error, CT_OK);
  assert_int_equal(e.jobs, 2);
  assert_int_equal(ct_weights_info(version, &info), CT_OK);
  uint8_t *live = malloc(info.bytes), *copy = malloc(info.bytes);
  assert_true(live && copy);
  assert_int_equal(ct_weights_read(ct_model_weights(m), live, info.bytes), CT_OK);
  assert_int_equal(ct_weights_read(version, copy, info.bytes), CT_OK);
  assert_memory_equal(live, copy, info.bytes);
  free(live);
  free(copy);
  ct_weights_free(version);
  ct_model_free(m);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_open_says_what_is_wrong),
                                     cmocka_unit_test(test_a_plugin_that_is_none),
                                     cmocka_unit_test(test_info),
                                     cmocka_unit_test(test_every_error_has_words),
                                     cmocka_unit_test(test_the_version_is_one),
                                     cmocka_unit_test(test_names_go_both_ways),
                                     cmocka_unit_test(test_sizes_do_not_wrap),
                                     cmocka_unit_test(test_memory_is_reused),
                                     cmocka_unit_test(test_random_allocations_do_not_overlap),
                                     cmocka_unit_test(test_packing_follows_the_format),
                                     cmocka_unit_test(test_row_vectors_follow_the_format),
                                     cmocka_unit_test(test_jobs_come_back),
                                     cmocka_unit_test(test_a_full_queue_refuses),
                                     cmocka_unit_test(test_failed_jobs_say_why),
                                     cmocka_unit_test(test_cancelled_jobs_do_nothing),
                                     cmocka_unit_test(test_programs_have_limits),
                                     cmocka_unit_test(test_training_resumes_from_a_file),
                                     cmocka_unit_test(test_damaged_files_are_refused),
                                     cmocka_unit_test(test_random_damage),
                                     cmocka_unit_test(test_saving_to_nowhere),
                                     cmocka_unit_test(test_initial_weights_are_fixed),
                                     cmocka_unit_test(test_a_version_of_a_large_model)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
