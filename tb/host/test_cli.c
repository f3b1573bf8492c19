/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coltrain command from end to end on emu:: products against arithmetic of this file, training
 * that resumes bit for bit, serving while training, and a sentence for everything that goes wrong.
 */
#include "ct_tb.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_run.h"
#include "coltrain/coltrain.h"

#define EMU " --device emu:"
#define LEARN " --samples 160 --layers 64-24-10 --batch 16 --lr 0.05 --momentum 0.9 --seed 5" EMU

/* ---- Matrices ---- */

enum { HEADER = 128 };

static void write_npy(const char *path, const float *x, size_t rows, size_t cols) {
  char header[HEADER];
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  memset(header, ' ', sizeof header);
  memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
  const int n =
      snprintf(header + 10, sizeof header - 10,
               "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, cols);
  header[10 + n] = ' ';
  header[HEADER - 1] = '\n';
  assert_int_equal(fwrite(header, 1, HEADER, file), HEADER);
  assert_int_equal(fwrite(x, sizeof *x, rows * cols, file), rows * cols);
  assert_int_equal(fclose(file), 0);
}

/* The values of a file of that shape; the caller frees them. */
static float *read_npy(const char *path, size_t rows, size_t cols) {
  char shape[64];
  size_t size;
  char *file = cli_slurp(path, &size);
  snprintf(shape, sizeof shape, "'shape': (%zu, %zu)", rows, cols);
  assert_int_equal(size, HEADER + rows * cols * sizeof(float));
  if (!strstr(file + 10, shape)) fail_msg("%s is not %zux%zu", path, rows, cols);
  memmove(file, file + HEADER, rows * cols * sizeof(float));
  return (float *)(void *)file;
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static double power_of_two(int e) {
  double x = 1;
  for (; e > 0; --e)
    x *= 2;
  for (; e < 0; ++e)
    x /= 2;
  return x;
}

/* Sixteen values (step apart) to mantissas; n of them exist. Returns the exponent. */
static int quantise(const float *x, size_t step, size_t n, int q[16]) {
  int e = 0;
  for (size_t i = 0; i < n; ++i) {
    const int field = (int)(bits_of(x[i * step]) >> 23 & 255);
    if (field > e) e = field;
  }
  for (size_t i = 0; i < 16; ++i) {
    const double v = i < n && e ? (double)x[i * step] * power_of_two(133 - e) : 0;
    int low = (int)v; /* towards zero */
    if (v < low) --low;
    const double rest = v - low;
    q[i] = low + (rest > 0.5 || (rest == 0.5 && low % 2 != 0));
    if (q[i] > 127) q[i] = 127;
    if (q[i] < -127) q[i] = -127;
  }
  return e;
}

static float product_element(const float *a, const float *b, size_t n, size_t k) {
  volatile float acc = 0; /* rounded to FP32 after every block */
  for (size_t k0 = 0; k0 < k; k0 += 16) {
    int qa[16], qb[16], sum = 0;
    const size_t left = k - k0 < 16 ? k - k0 : 16;
    const int ea = quantise(a + k0, 1, left, qa), eb = quantise(b + k0 * n, n, left, qb);
    for (int i = 0; i < 16; ++i)
      sum += qa[i] * qb[i];
    if (sum && ea && eb) acc = acc + (float)((double)sum * power_of_two(ea + eb - 266));
  }
  return acc;
}

static void fill(ct_rng *rng, float *x, size_t n) {
  for (size_t i = 0; i < n; ++i)
    x[i] = ((float)ct_rng_below(rng, 1 << 20) - (float)(1 << 19)) *
           (float)power_of_two((int)ct_rng_below(rng, 12) - 24);
}

static void check_product(ct_rng *rng, size_t m, size_t n, size_t k, const char *more) {
  float *a = malloc((m * k + k * n) * sizeof *a), *b = a + m * k;
  assert_non_null(a);
  fill(rng, a, m * k + k * n);
  write_npy(cli_path("a.npy"), a, m, k);
  write_npy(cli_path("b.npy"), b, k, n);
  json_t *root = cli_expect_json(cli_line("matmul %s %s -o %s --json -" EMU "%s", cli_path("a.npy"),
                                          cli_path("b.npy"), cli_path("c.npy"), more));
  assert_int_equal(cli_number_at(root, "m"), m);
  assert_int_equal(cli_number_at(root, "n"), n);
  assert_int_equal(cli_number_at(root, "k"), k);
  assert_int_equal(cli_number_at(root, "macs"), m * n * k);
  assert_true(json_is_null(cli_at(root, "cycles")));
  assert_true(json_is_null(cli_at(root, "utilisation")));
  json_decref(root);
  float *c = read_npy(cli_path("c.npy"), m, n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      const float want = product_element(a + i * k, b + j, n, k);
      if (bits_of(want) != bits_of(c[i * n + j]))
        fail_msg("%zux%zux%zu: element %zu,%zu is %a instead of %a", m, n, k, i, j,
                 (double)c[i * n + j], (double)want);
    }
  free(c);
  free(a);
}

static void matmul_is_exact(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  check_product(&rng, 1, 1, 1, "");
  check_product(&rng, 16, 16, 16, " --queue training");
  check_product(&rng, 3, 130, 17, " --queue inference");
  for (int turn = 0; turn < 4; ++turn)
    check_product(&rng, 1 + ct_rng_below(&rng, 70), 1 + ct_rng_below(&rng, 70),
                  1 + ct_rng_below(&rng, 90), "");
}

static void matmul_refuses(void **state) {
  (void)state;
  const float x[6] = {1, 2, 3, 4, 5, 6};
  const char *a = cli_path("two.npy");
  write_npy(a, x, 2, 3);
  free(cli_expect(1, "columns of the first must be the rows",
                  cli_line("matmul %s %s -o /dev/null" EMU, a, a)));
  free(cli_expect(1, "/nonexistent.npy: cannot be opened",
                  cli_line("matmul %s /nonexistent.npy -o /dev/null" EMU, a)));
  free(cli_expect(2, "two matrices are needed", cli_line("matmul %s -o c.npy" EMU, a)));
  free(cli_expect(2, "-o C.npy is missing", cli_line("matmul %s %s" EMU, a, a)));
  free(cli_expect(2, "one argument too many", cli_line("matmul %s %s %s -o c.npy" EMU, a, a, a)));
  free(cli_expect(2, "neither inference nor training",
                  cli_line("matmul %s %s -o c.npy --queue both" EMU, a, a)));
}

/* ---- What a device is ---- */

static void info_and_counters(void **state) {
  (void)state;
  json_t *root = cli_expect_json("info --json" EMU);
  assert_int_equal(cli_number_at(root, "abi"), 1);
  assert_int_equal(cli_number_at(root, "block"), 16);
  assert_int_equal(cli_number_at(root, "macs_per_cycle"), 256);
  assert_true(cli_number_at(root, "spm_bytes") > 0);
  assert_true(cli_number_at(root, "dram_bytes") > 0);
  assert_true(json_is_null(cli_at(root, "clock_hz")));
  assert_true(json_array_size(cli_at(root, "features")) > 0);
  json_decref(root);
  root = cli_expect_json("info --list --json");
  assert_string_equal(json_string_value(json_object_get(json_array_get(root, 0), "device")),
                      "emu:");
  assert_true(json_is_true(json_object_get(json_array_get(root, 0), "available")));
  json_decref(root);
  char *out = cli_expect(0, "", "info --list");
  assert_non_null(strstr(out, "usb:    a board on USB"));
  free(out);
  out = cli_expect(0, "", "info" EMU);
  assert_non_null(strstr(out, "multiply-accumulates a cycle"));
  free(out);
  /* A product of 64 cubed takes 4 x 4 tiles of 64 rows on either queue. */
  out = cli_expect(0, "", "counters" EMU);
  unsigned long inference = 0, training = 0;
  const char *rows = strstr(out, "\nMXU_ROWS");
  assert_non_null(rows);
  assert_int_equal(sscanf(rows, "\nMXU_ROWS %lu %lu", &inference, &training), 2);
  assert_int_equal(inference, 1024);
  assert_int_equal(training, 1024);
  assert_non_null(strstr(out, "\nBUSY                unknown      unknown  cycles"));
  assert_non_null(strstr(out, "\nJOBS                      1            1  jobs"));
  assert_non_null(strstr(out, "no time, so what counts cycles is unknown"));
  free(out);
  root = cli_expect_json("counters --json -" EMU);
  assert_string_equal(json_string_value(cli_at(root, "device")), "emu:");
  assert_true(json_is_null(cli_at(root, "cycles")));
  assert_int_equal(cli_number_at(cli_at(root, "inference"), "MXU_ROWS"), 1024);
  assert_int_equal(cli_number_at(cli_at(root, "training"), "MXU_ROWS"), 1024);
  assert_true(json_is_null(cli_at(root, "inference.MXU_BUSY")));
  assert_true(json_is_null(cli_at(root, "training.LD_WAIT_MEM")));
  assert_true(cli_number_at(root, "inference.LD_BEATS") > 0);
  json_decref(root);
}

/* Not a success without figures; and the file says what failed. */
/* ---- The device at hand ---- */

static json_t *named(json_t *list, const char *key, const char *name) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) {
    if (!strcmp(json_string_value(json_object_get(item, key)), name)) return item;
  }
  fail_msg("nothing is called %s", name);
  return NULL;
}

static void devices_are_listed(void **state) {
  (void)state;
  char *out = cli_expect(0, "", "list");
  assert_non_null(strstr(out, "\nsim:core=16x8 "));
  free(out);
  json_t *root = cli_expect_json("list --json -");
  json_t *sim = named(cli_at(root, "devices"), "device", "sim:core=16x16");
  assert_true(json_is_true(cli_at(sim, "available")));
  assert_string_equal(json_string_value(cli_at(sim, "error")), "");
  assert_non_null(named(cli_at(root, "devices"), "device", "emu:"));
  json_decref(root);
}

static void registers_by_name(void **state) {
  (void)state;
  json_t *root = cli_expect_json("dump --json - --device emu:core=16x8");
  json_t *registers = cli_at(root, "registers");
  json_t *geometry = named(registers, "name", "GEOMETRY");
  json_t *cols = named(cli_at(geometry, "fields"), "name", "COLS");
  assert_int_equal(cli_number_at(geometry, "offset"), 8);
  assert_int_equal(cli_number_at(geometry, "value"), 16 << 24 | 4 << 16 | 8 << 8 | 16);
  assert_int_equal(cli_number_at(cols, "value"), 8);
  assert_int_equal(cli_number_at(cols, "msb"), 15);
  assert_true(json_is_null(cli_at(cols, "called")));
  json_t *status = named(registers, "name", "CTX1.STATUS");
  assert_int_equal(cli_number_at(status, "offset"), 0x210);
  json_t *job = named(cli_at(status, "fields"), "name", "JOB");
  assert_string_equal(json_string_value(cli_at(job, "called")), "idle");
  assert_int_equal(cli_number_at(named(registers, "name", "CTX0.CNT.JOBS"), "value"), 0);
  assert_true(strlen(json_string_value(cli_at(status, "text"))) > 10);
  json_decref(root);
  char *out = cli_expect(0, "", "dump" EMU);
  assert_non_null(strstr(out, "\n0x024  POLICY                0x00000000\n"));
  assert_non_null(strstr(out, " POLICY       0 PRIORITY\n"));
  assert_null(strstr(out, "REQ_PUSH")); /* it is only written */
  free(out);
  free(cli_expect(1, "cannot read the registers of mmio:/nonexistent",
                  "dump --device mmio:/nonexistent"));
}

static void devices_are_reset(void **state) {
  (void)state;
  json_t *root = cli_expect_json("reset --json -" EMU);
  assert_string_equal(json_string_value(cli_at(root, "before.inference")), "idle");
  assert_string_equal(json_string_value(cli_at(root, "after.training")), "idle");
  assert_true(json_is_false(cli_at(root, "after.training_dead")));
  json_decref(root);
  char *out = cli_expect(0, "", "reset" EMU);
  assert_string_equal(out, "emu: was reset; before: inference idle, training idle\n");
  free(out);
  free(cli_expect(1, "/nonexistent", "reset --device mmio:/nonexistent"));
}

static void devices_test_themselves(void **state) {
  (void)state;
  static const char *const parts[] = {"registers", "memory", "product", "inference", "training"};
  json_t *root = cli_expect_json("test --json - --seed 7 --mib 2 --device emu:core=16x8,dram=32");
  assert_true(json_is_true(cli_at(root, "passed")));
  assert_int_equal(cli_number_at(root, "seed"), 7);
  assert_int_equal(json_array_size(cli_at(root, "parts")), sizeof parts / sizeof *parts);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
    assert_true(json_is_true(cli_at(named(cli_at(root, "parts"), "name", parts[i]), "passed")));
  const char *range =
      json_string_value(cli_at(named(cli_at(root, "parts"), "name", "memory"), "text"));
  unsigned long from = 0, to = 0;
  assert_int_equal(sscanf(range, "0x%lx..0x%lx,", &from, &to), 2);
  assert_int_equal(to - from, (2 << 20) - 1);
  json_decref(root);
  /* More memory than there is: that part fails, the others are done. */
  char *out = cli_expect(1, "failed its test", "test --mib 64 --device emu:dram=32");
  assert_non_null(strstr(out, "memory     FAILED  no room for 67108864 bytes"));
  assert_non_null(strstr(out, "training   ok "));
  free(out);
}

/* Each fault is found by the part it is of, and said; a part that it does not touch passes. */
static const struct {
  const char *fault, *part, *text, *passes;
} faults[] = {
    {"keep=5", "registers", "register 0x230 was written 0xfffffffe and reads 0xffffffde", "memory"},
    {"keep=31", "registers", "register 0x230 was written 0xfffffffe and reads 0x7ffffffe",
     "training"},
    {"same=0", "registers", "register 0x130 was written 0x00000001 and reads 0xfffffffe",
     "product"},
    {"stuck=0x4a0003", "memory", "(wrong bits: 0x08000000)", "registers"},
    {"stuck=0x53fffc", "memory", "the word at 0x53fffc was written ", "product"},
    {"line=2", "memory", "bit 2 of its addresses does nothing", "registers"},
    {"line=12", "memory", "bit 12 of its addresses does nothing", "registers"},
    {"line=17", "memory", "bit 17 of its addresses does nothing", "product"},
    {"line=24", "memory", "what is written to 0x1440000 is read at 0x440000, too", "training"},
    {"job=1", "product", "element 8 of the product is ", "inference"},
    {"job=2", "inference", "element 8 of logits is ", "product"},
    {"job=5", "training", "element 8 of logits, loss, weights and biases after a step is ",
     "product"},
};

static void expect_fault(size_t i) {
  char line[160];
  snprintf(line, sizeof line, "test --seed 3 --device faulty:%s", faults[i].fault);
  char *out = cli_expect(1, cli_line("faulty:%s failed its test", faults[i].fault), line);
  snprintf(line, sizeof line, "%-10s FAILED  ", faults[i].part);
  const char *failed = strstr(out, line);
  snprintf(line, sizeof line, "%-10s ok ", faults[i].passes);
  if (!failed || !strstr(failed, faults[i].text) || !strstr(out, line))
    fail_msg("faulty:%s: %s", faults[i].fault, out);
  free(out);
}

/* A bit that is wrong once, whenever it is that. */
static void expect_flip(uint32_t at) {
  const char *device = cli_line("faulty:flip=%u", at);
  char *out = cli_expect(1, "failed its test", cli_line("test --device %s", device));
  if (!strstr(out, "memory     FAILED  the word at 0x")) fail_msg("%s: %s", device, out);
  assert_non_null(strstr(out, "(wrong bits: 0x"));
  assert_non_null(strstr(out, "training   ok "));
  free(out);
}

static void use_plugins(void) {
  char folder[512] = "";
  assert_true(readlink("/proc/self/exe", folder, sizeof folder - 16) > 0);
  char *slash = strrchr(folder, '/');
  assert_non_null(slash);
  strcpy(slash, "/plugins");
  setenv("COLTRAIN_PLUGIN_DIR", folder, 1);
}

static void devices_with_faults_are_found(void **state) {
  (void)state;
  enum { FLIPS = 5, READ = 2 << 20 };
  ct_rng rng = ct_rng_make(4);
  use_plugins();
  for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i)
    expect_fault(i);
  for (int i = 0; i < FLIPS; ++i)
    expect_flip(1024 + ct_rng_below(&rng, READ - 1024));
  struct cli_run run = cli_run("test --json - --device faulty:line=24", 0);
  assert_int_equal(run.status, 1);
  json_t *root = json_loads(run.out, 0, NULL);
  assert_true(json_is_false(cli_at(root, "passed")));
  assert_true(json_is_false(cli_at(named(cli_at(root, "parts"), "name", "memory"), "passed")));
  assert_true(json_is_true(cli_at(named(cli_at(root, "parts"), "name", "product"), "passed")));
  json_decref(root);
  cli_run_free(&run);
  unsetenv("COLTRAIN_PLUGIN_DIR");
}

/* What wrote it, for whoever reads it later. */
static void json_says_what_wrote_it(void **state) {
  (void)state;
  static const char *const runs[] = {"info --json" EMU,    "list --json -",
                                     "dump --json -" EMU,  "counters --json -" EMU,
                                     "reset --json -" EMU, "bench emu --seconds 0 --json -"};
  for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i) {
    json_t *root = cli_expect_json(runs[i]);
    assert_string_equal(json_string_value(cli_at(root, "coltrain")), CT_VERSION_STRING);
    const char *commit = json_string_value(cli_at(root, "commit"));
    if (commit) assert_true(strspn(commit, "0123456789abcdef") >= 7);
    json_decref(root);
  }
}

static void bench_without_a_simulator(void **state) {
  (void)state;
  FILE *file = fopen(cli_path("sim.so"), "w");
  assert_non_null(file);
  fputs("no library\n", file);
  fclose(file);
  setenv("COLTRAIN_PLUGIN_DIR", cli_path("."), 1);
  struct cli_run run = cli_run("bench sim --json -", 0);
  unsetenv("COLTRAIN_PLUGIN_DIR");
  assert_int_equal(run.status, 1);
  assert_non_null(strstr(run.err, "cannot open the device \"sim:\""));
  json_t *root = json_loads(run.out, 0, NULL);
  assert_true(json_is_true(cli_at(root, "failed")));
  assert_int_equal(json_array_size(cli_at(root, "runs")), 0);
  json_decref(root);
  cli_run_free(&run);
}

static void devices_that_are_not_there(void **state) {
  (void)state;
  free(cli_expect(1, "cannot open the device \"nowhere:\"", "info --device nowhere:"));
  free(cli_expect(1, "cannot open the device \"emu:frobs=3\"", "info --device emu:frobs=3"));
  free(cli_expect(1, "cannot open the device", "counters --device nowhere"));
}

/* Figures for every path of the emulator that this machine has; the bench compares their losses. */
static void bench_of_the_emulator(void **state) {
  (void)state;
  json_t *root = cli_expect_json("bench emu --seconds 0 --json -");
  const json_t *paths = cli_at(root, "paths");
  assert_true(json_array_size(paths) >= 1);
  assert_string_equal(json_string_value(json_object_get(json_array_get(paths, 0), "path")),
                      "plain");
  for (size_t i = 0; i < json_array_size(paths); ++i) {
    const json_t *row = json_array_get(paths, i);
    assert_true(json_number_value(json_object_get(row, "gmacs_per_second")) > 0);
    assert_true(json_number_value(json_object_get(row, "samples_per_second")) > 0);
  }
  json_decref(root);
  free(cli_expect(2, "Usage", "bench"));
  free(cli_expect(2, "there is no measurement \"speed\"", "bench speed"));
  free(cli_expect(2, "--seconds: \"x\"", "bench emu --seconds x"));
  char *help = cli_expect(0, "", "bench --help");
  assert_non_null(strstr(help, "emu"));
  free(help);
}

/* Long before a minute is over. */
static void the_bench_stops(void **state) {
  (void)state;
  for (unsigned ms = 300; ms <= 2400; ms *= 2) {
    struct cli_run run = cli_run("bench emu --seconds 60 --json -", ms);
    const bool begun = run.status != 128 + SIGINT; /* else the machine was too busy */
    if (begun && (run.status != 1 || !strstr(run.err, "Stopped; this is what was measured")))
      fail_msg("status %d: %s%s", run.status, run.out, run.err);
    if (begun) {
      json_t *root = json_loads(run.out, 0, NULL);
      assert_true(json_is_true(cli_at(root, "stopped")));
      assert_int_equal(json_array_size(cli_at(root, "paths")), 0);
      json_decref(root);
    }
    cli_run_free(&run);
    if (begun) return;
  }
  fail_msg("the bench never began");
}

static void disassembly(void **state) {
  (void)state;
  char *out = cli_expect(0, "", "disasm --matmul 40 24 16");
  assert_non_null(strstr(out, " LD "));
  assert_non_null(strstr(out, " MM "));
  assert_non_null(strstr(out, " END"));
  assert_null(strstr(out, " Mode=1"));
  free(out);
  out = cli_expect(0, "", "disasm --matmul 40 24 16 --result hbfp8");
  assert_non_null(strstr(out, " Mode=1")); /* VS quantises */
  free(out);
  FILE *file = fopen(cli_path("program"), "wb");
  assert_non_null(file);
  const unsigned char bytes[64] = {0xff};
  fwrite(bytes, 1, sizeof bytes, file);
  fclose(file);
  free(cli_expect(1, "command 0 has the code 0x3f, which is no command's",
                  cli_line("disasm %s", cli_path("program"))));
  out = cli_expect(0, "", cli_line("disasm --force %s", cli_path("program")));
  assert_non_null(strstr(out, "   0  ?0x3f"));
  assert_non_null(strstr(out, "   1  NOP"));
  free(out);
  free(cli_expect(1, "a program is 1..512 commands of 32 bytes", "disasm /dev/null"));
  free(cli_expect(1, "cannot be opened", "disasm /nonexistent"));
  free(cli_expect(2, "needs three sizes", "disasm --matmul 1 2"));
  free(cli_expect(2, "not a whole number", "disasm --matmul 1 2 0"));
  free(cli_expect(2, "is not fp32 or hbfp8", "disasm --matmul 1 2 3 --result int8"));
  free(cli_expect(2, "is for --matmul", "disasm --result fp32 /dev/null"));
  free(cli_expect(2, "one file", "disasm"));
}

static void help_and_usage(void **state) {
  (void)state;
  static const char *const verbs[] = {"info",     "matmul", "train",    "infer",
                                      "colocate", "disasm", "counters", "serve-bench"};
  char *out = cli_expect(0, "", "--help");
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; ++i) {
    if (!strstr(out, verbs[i])) fail_msg("--help does not know %s", verbs[i]);
    char *help = cli_expect(0, "", cli_line("%s --help", verbs[i]));
    if (!strstr(help, cli_line("Usage: coltrain %s", verbs[i])))
      fail_msg("no help for %s", verbs[i]);
    if (!strstr(help, cli_line("Example:\n  coltrain %s", verbs[i])))
      fail_msg("no example for %s", verbs[i]);
    free(help);
  }
  free(out);
  static const char *const asked[][2] = {{"help", "Usage: coltrain VERB"},
                                         {"help train", "Usage: coltrain train"},
                                         {"help bench gemm", "Usage: coltrain bench gemm"}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; ++i) {
    out = cli_expect(0, "", asked[i][0]);
    if (strncmp(out, asked[i][1], strlen(asked[i][1]))) fail_msg("%s: %s", asked[i][0], out);
    free(out);
  }
  free(cli_expect(2, "there is no verb \"serve\"", "help serve"));
  out = cli_expect(0, "", "--version");
  assert_non_null(strstr(out, "coltrain "));
  free(out);
  free(cli_expect(2, "Usage", ""));
  free(cli_expect(2, "there is no verb \"serve\"", "serve"));
  free(cli_expect(2, "--load: \"x\"", "colocate --load x"));
  free(cli_expect(2, "--policy: there is no policy \"fair\": priority, fcfs",
                  "colocate --policy fair"));
  free(cli_expect(2, "--policy: slack is for requests with deadlines", "colocate --policy slack"));
  free(cli_expect(2, "--requests: \"0\"", "colocate --requests 0"));
  free(cli_expect(2, "--layers: \"64\"", "train --layers 64"));
  free(cli_expect(2, "--epochs: \"-1\"", "train --epochs -1"));
  free(cli_expect(2, "--lr: \"nan\"", "train --lr nan"));
  free(cli_expect(2, "--lr: a learning rate of -1: it must be 0..1000", "train --lr -1"));
  free(cli_expect(2, "--momentum: a momentum of 2: it must be 0..1", "train --momentum 2"));
  free(cli_expect(2, "--weight-decay: the weight decay is not a fin", "train --weight-decay inf"));
  free(cli_expect(2, "--model FILE is missing", "infer --data digits"));
  free(cli_expect(2, "belong together", "infer --model m --input x.npy"));
  free(cli_expect(2, "either --data, or --input", "infer --model m"));
}

/* What was probably meant. */
static void names_that_do_not_exist(void **state) {
  (void)state;
  static const struct {
    const char *args, *answer;
  } wrong[] = {
      {"colcate", "did you mean \"colocate\"?"},
      {"tarin", "did you mean \"train\"?"},
      {"xyzzy", "coltrain --help lists them"},
      {"bench gem", "did you mean \"gemm\"?"},
      {"bench frobnicate", "coltrain bench --help lists them"},
      {"colocate --polcy job", "there is no option --polcy; did you mean --policy?"},
      {"colocate --requets=3", "did you mean --requests?"},
      {"train --epcohs 3", "did you mean --epochs?"},
      {"train --epochs 3 --bogus", "there is no option --bogus; coltrain train --help lists them"},
      {"bench emu --secnds 1", "did you mean --seconds?"},
      {"info --device emu: --jsonfile", "did you mean --json?"},
      {"bench gemm", "give a --shape MxNxK"},
      {"bench gemm --all", "there is no option --all"},
      {"bench gemm --shape 16x16", "--shape: \"16x16\" is not MxNxK"},
      {"bench gemm --shape 16x16x16x16", "--shape: more than 3 numbers"},
      {"bench gemm --shape 16xx16", "--shape: \"\" is not a whole number of 1..4096"},
      {"bench gemm --shape 16x16x4294967297", "\"4294967297\" is not a whole number"},
      {"bench gemm --stall 0,10", "--stall: \"0,10\" is not a whole number of 0..90"},
      {"bench gemm --result both", "--result: \"both\" is not hbfp8 or fp32"},
      {"bench gemm --beside all", "--beside: \"all\" is not alone, training or inference"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    free(cli_expect(2, wrong[i].answer, wrong[i].args));
  static const char *const verbs[] = {"info",      "train",     "infer",
                                      "colocate",  "counters",  "bench gemm",
                                      "bench emu", "bench sim", "bench interference"};
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; ++i)
    free(cli_expect(2, "\"extra\" is one argument too many", cli_line("%s extra", verbs[i])));
  /* Values are not names, names may be cut short, and nothing behind -- is an option. */
  free(cli_expect(1, "/nonexistent/--polcy: cannot be written",
                  "colocate --csv /nonexistent/--polcy" EMU));
  free(cli_expect(1, "neither a data set", "colocate --data --polcy --req 3" EMU));
  free(cli_expect(1, "cannot be opened", "disasm -- --polcy"));
}

/* ---- Training ---- */

static void resuming_changes_nothing(void **state) {
  (void)state;
  json_t *whole =
      cli_expect_json(cli_line("train --epochs 3 --save %s --json -" LEARN, cli_path("whole.ctm")));
  json_decref(
      cli_expect_json(cli_line("train --epochs 1 --save %s --json -" LEARN, cli_path("part.ctm"))));
  json_t *rest = cli_expect_json(cli_line(
      "train --samples 160 --batch 16 --lr 0.05 --momentum 0.9 --epochs 3 --resume %s --save %s "
      "--json -" EMU,
      cli_path("part.ctm"), cli_path("rest.ctm")));
  cli_assert_same_files(cli_path("whole.ctm"), cli_path("rest.ctm"));
  assert_true(cli_number_at(whole, "weights_crc32") == cli_number_at(rest, "weights_crc32"));
  assert_int_equal(cli_number_at(whole, "steps"), 30);
  assert_int_equal(cli_number_at(rest, "steps"), 20);
  assert_true(cli_number_at(whole, "loss_last") < cli_number_at(whole, "loss_first"));
  assert_int_equal(json_array_size(cli_at(whole, "by_epoch")), 3);
  /* What infer says of the file is what train said of the weights. */
  char *out =
      cli_expect(0, "", cli_line("infer --data digits --model %s" EMU, cli_path("whole.ctm")));
  assert_non_null(strstr(out, "of 360 test images right"));
  free(out);
  json_decref(whole);
  json_decref(rest);
}

/* Writes a file to a pipe; whoever opens that once more meets its end. */
static pid_t feed(const char *pipe, const char *file) {
  size_t size;
  char *data = cli_slurp(file, &size);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (!pid) {
    signal(SIGPIPE, SIG_IGN);
    const int fd = open(pipe, O_WRONLY);
    const bool all = write(fd, data, size) == (ssize_t)size;
    close(fd);
    cli_sleep_ms(10000);
    _exit(open(pipe, O_WRONLY | O_NONBLOCK) < 0 || !all);
  }
  free(data);
  return pid;
}

/* A model comes from a pipe, too, of which there is but one reading. */
static void a_model_from_a_pipe(void **state) {
  (void)state;
  free(cli_expect(0, "", cli_line("train --epochs 1 --save %s" LEARN, cli_path("piped.ctm"))));
  assert_int_equal(mkfifo(cli_path("pipe"), 0600), 0);
  const pid_t writer = feed(cli_path("pipe"), cli_path("piped.ctm"));
  char *out = cli_expect(0, "", cli_line("infer --data digits --model %s" EMU, cli_path("pipe")));
  assert_non_null(strstr(out, "of 360 test images right"));
  free(out);
  kill(writer, SIGKILL);
  waitpid(writer, NULL, 0);
}

/* The line of the last epoch is the last that is said of it; a loss that grew is a short number. */
static void an_epochs_line(void **state) {
  (void)state;
  struct cli_run run = cli_run("train --epochs 1 --lr 1000 --samples 640 --device emu:", 0);
  if (run.status || strstr(run.err, "100 %")) fail_msg("%d %s", run.status, run.err);
  if (strlen(run.out) > 60 || !strstr(run.out, "e+")) fail_msg("%s", run.out);
  cli_run_free(&run);
}

static void the_seed_decides(void **state) {
  (void)state;
  json_t *a = cli_expect_json("train --epochs 1 --json -" LEARN);
  json_t *b = cli_expect_json("train --epochs 1 --json -" LEARN);
  json_t *c = cli_expect_json("train --epochs 1 --json -" LEARN " --seed 6");
  const double want = cli_number_at(a, "weights_crc32");
  assert_true(cli_number_at(b, "weights_crc32") == want);
  assert_true(cli_number_at(c, "weights_crc32") != want);
  json_decref(a);
  json_decref(b);
  json_decref(c);
}

static void inference_of_a_matrix(void **state) {
  (void)state;
  const size_t rows = 19;
  ct_rng rng = ct_rng_make(2);
  float x[19 * 64];
  json_decref(
      cli_expect_json(cli_line("train --epochs 1 --save %s --json -" LEARN, cli_path("m.ctm"))));
  for (size_t i = 0; i < rows * 64; ++i)
    x[i] = (float)ct_rng_below(&rng, 17) / 16.0f;
  write_npy(cli_path("x.npy"), x, rows, 64);
  free(cli_expect(0, "",
                  cli_line("infer --model %s --input %s --output %s" EMU, cli_path("m.ctm"),
                           cli_path("x.npy"), cli_path("y.npy"))));
  float *y = read_npy(cli_path("y.npy"), rows, 10);
  /* A row's answer does not depend on its neighbours: the last row alone. */
  write_npy(cli_path("x.npy"), x + (rows - 1) * 64, 1, 64);
  free(cli_expect(0, "",
                  cli_line("infer --model %s --input %s --output %s" EMU, cli_path("m.ctm"),
                           cli_path("x.npy"), cli_path("z.npy"))));
  float *z = read_npy(cli_path("z.npy"), 1, 10);
  ct_assert_same("last row", z, y + (rows - 1) * 10, 10 * sizeof *y);
  free(y);
  free(z);
  write_npy(cli_path("x.npy"), x, rows, 63);
  free(cli_expect(1, "has 63 columns",
                  cli_line("infer --model %s --input %s --output %s" EMU, cli_path("m.ctm"),
                           cli_path("x.npy"), cli_path("y.npy"))));
}

static void training_refuses(void **state) {
  (void)state;
  json_decref(
      cli_expect_json(cli_line("train --epochs 1 --save %s --json -" LEARN, cli_path("r.ctm"))));
  free(cli_expect(1, "neither a data set", "train --data nothing" EMU));
  mkdir(cli_path("empty"), 0700);
  free(cli_expect(1, "has no data set that is known",
                  cli_line("train --data %s" EMU, cli_path("empty"))));
  free(cli_expect(1, "do not fit digits", "train --layers 63-10" EMU));
  free(cli_expect(1, "the model cannot be loaded", "train --resume /nonexistent" EMU));
  free(cli_expect(1, "the model cannot be loaded", "infer --data digits --model /dev/null" EMU));
  free(cli_expect(
      1, "leave --layers out",
      cli_line("train --epochs 2 --resume %s --layers 64-25-10" EMU, cli_path("r.ctm"))));
  free(cli_expect(1, "leave --seed out",
                  cli_line("train --epochs 2 --resume %s --seed 6" EMU, cli_path("r.ctm"))));
  free(cli_expect(1, "has been trained for 1 epoch; give",
                  cli_line("train --epochs 1 --resume %s" EMU, cli_path("r.ctm"))));
  free(cli_expect(1, "/nonexistent/x: cannot be written",
                  "train --epochs 1 --save /nonexistent/x" LEARN));
  free(cli_expect(1, "/nonexistent/x: cannot be written",
                  "train --epochs 1 --json /nonexistent/x" LEARN));
  if (access("/dev/full", W_OK) == 0)
    free(cli_expect(1, "/dev/full: the results cannot be written",
                    "train --epochs 1 --json /dev/full" LEARN));
}

/* Interrupted at any moment, the file has the model after the steps that were finished; resumed
 * from it, training ends with the bytes of a run that was never interrupted. */
static void check_resumed(const char *file, uint64_t steps) {
  const unsigned epochs = (unsigned)(steps / 10 + 2); /* 10 steps each */
  json_decref(
      cli_expect_json(cli_line("train --epochs %u --resume %s --save %s --samples 160 --json -" EMU,
                               epochs, file, cli_path("on.ctm"))));
  json_decref(cli_expect_json(
      cli_line("train --epochs %u --save %s --json -" LEARN, epochs, cli_path("never.ctm"))));
  cli_assert_same_files(cli_path("on.ctm"), cli_path("never.ctm"));
  free(cli_expect(0, "", cli_line("infer --data digits --model %s" EMU, file)));
}

static uint64_t number_after(const char *text, const char *what) {
  const char *at = strstr(text, what);
  if (!at) fail_msg("no \"%s\" in: %s", what, text);
  return strtoull(at + strlen(what), NULL, 10);
}

static void training_stops_cleanly(void **state) {
  (void)state;
  char path[256];
  snprintf(path, sizeof path, "%s", cli_path("stopped.ctm"));
  int stopped = 0;
  for (unsigned ms = 50; stopped < 3; ms = 2 * ms + 100) {
    struct cli_run run = cli_run(
        cli_line("train --epochs 100000 --save %s --json %s" LEARN, path, cli_path("stopped.json")),
        ms);
    /* On a machine that is busy the command may not even have begun. */
    if (run.status == 128 + SIGINT && !*run.out && ms < 2000) {
      cli_run_free(&run);
      continue;
    }
    if (run.status != 1 || !strstr(run.out, "--resume goes on from there"))
      fail_msg("status %d: %s%s", run.status, run.out, run.err);
    json_t *root = json_load_file(cli_path("stopped.json"), 0, NULL);
    assert_non_null(root);
    assert_true(json_is_true(json_object_get(root, "stopped")));
    const bool evaluated = json_array_size(cli_at(root, "by_epoch")) > 0;
    assert_int_equal(json_is_null(json_object_get(root, "test_accuracy")), !evaluated);
    json_decref(root);
    check_resumed(path, number_after(run.out, "stopped after "));
    cli_run_free(&run);
    ++stopped;
  }
}

/* ---- Serving while training ---- */

static const char *const colocate_keys[] = {
    "serve.requests",
    "serve.completed",
    "serve.lost",
    "serve.wrong",
    "serve.p50_cycles",
    "serve.p99_cycles",
    "serve.max_cycles",
    "serve.accuracy_first",
    "serve.accuracy_last",
    "serve_alone.p50_cycles",
    "serve_alone.p99_cycles",
    "train.steps",
    "train.loss_first",
    "train.loss_last",
    "train.test_accuracy",
    "train.cycles",
    "train.macs_per_cycle",
    "train.weights_crc32",
    "train_alone.cycles",
    "train_alone.macs_per_cycle",
    "ratio.p99",
    "ratio.train_throughput",
};

static void check_rows(const char *path, size_t requests, unsigned versions) {
  char *csv = cli_slurp(path, NULL), *p = csv;
  static const char header[] = "id,scheduled,start,end,version,answer\n";
  assert_memory_equal(p, header, strlen(header));
  p += strlen(header);
  unsigned newest = 1;
  for (size_t i = 0; i < requests; ++i) {
    size_t id;
    unsigned version, answer;
    int used = 0;
    if (sscanf(p, "%zu,,,,%u,%u\n%n", &id, &version, &answer, &used) != 3 || !used)
      fail_msg("row %zu of the CSV: %.40s", i, p);
    assert_int_equal(id, i);
    assert_in_range(version, newest, versions);
    assert_in_range(answer, 0, 9);
    newest = version;
    p += used;
  }
  assert_int_equal(*p, 0);
  assert_in_range(newest, 2, versions); /* the weights were swapped while serving */
  free(csv);
}

static void serving_while_training(void **state) {
  (void)state;
  json_t *train = cli_expect_json("train --epochs 2 --json -" LEARN);
  json_t *root = cli_expect_json(
      cli_line("colocate --epochs 2 --requests 40 --csv %s --save %s --json -" LEARN,
               cli_path("r.csv"), cli_path("c.ctm")));
  for (size_t i = 0; i < sizeof colocate_keys / sizeof *colocate_keys; ++i) {
    const char *key = colocate_keys[i];
    const json_t *value = cli_at(root, key);
    const bool timed = strstr(key, "cycle") || strstr(key, "ratio");
    if (timed != json_is_null(value)) fail_msg("%s is %snull on emu:", key, timed ? "not " : "");
  }
  assert_int_equal(cli_number_at(root, "serve.requests"), 40);
  assert_int_equal(cli_number_at(root, "serve.completed"), 40);
  assert_int_equal(cli_number_at(root, "serve.lost"), 0);
  assert_int_equal(cli_number_at(root, "serve.wrong"), 0);
  assert_int_equal(cli_number_at(root, "train.steps"), 20);
  assert_true(cli_number_at(root, "train.weights_crc32") == cli_number_at(train, "weights_crc32"));
  assert_true(cli_number_at(root, "train.test_accuracy") == cli_number_at(train, "test_accuracy"));
  check_rows(cli_path("r.csv"), 40, 3);
  json_t *again = cli_expect_json(
      cli_line("colocate --epochs 2 --requests 40 --csv %s --json -" LEARN, cli_path("s.csv")));
  cli_assert_same_files(cli_path("r.csv"), cli_path("s.csv"));
  char *out = cli_expect(0, "", cli_line("infer --data digits --model %s" EMU, cli_path("c.ctm")));
  free(out);
  json_decref(again);
  json_decref(root);
  json_decref(train);
}

/* Few requests, many, one; fewer steps than requests and the reverse. */
static void unusual_numbers(void **state) {
  (void)state;
  static const char *const args[] = {"--epochs 1 --requests 1", "--epochs 1 --requests 97",
                                     "--epochs 7 --requests 3 --batch 160",
                                     "--epochs 1 --requests 2 --batch 200 --policy job"};
  for (size_t i = 0; i < sizeof args / sizeof *args; ++i) {
    json_t *root = cli_expect_json(cli_line("colocate --json -" LEARN " %s", args[i]));
    assert_true(cli_number_at(root, "serve.completed") == cli_number_at(root, "serve.requests"));
    assert_int_equal(cli_number_at(root, "serve.wrong"), 0);
    json_decref(root);
  }
}

static void colocate_refuses(void **state) {
  (void)state;
  free(cli_expect(1, "neither a data set", "colocate --data nothing" EMU));
  free(cli_expect(1, "/nonexistent/x: cannot be written",
                  "colocate --epochs 1 --requests 4 --csv /nonexistent/x" LEARN));
  free(cli_expect(1, "cannot open the device", "colocate --device nowhere:"));
}

/* A page by itself: charts, no scripts, nothing from elsewhere, no figure that is none. Whether it
 * is well-formed is tb/python/test_report.py's. */
static void a_report(void **state) {
  (void)state;
  static const char *const has[] = {"<!doctype html>",
                                    "name=\"viewport\"",
                                    "prefers-color-scheme:dark",
                                    "Does it learn?",
                                    "Do the answers get better while it serves?",
                                    "has no clock",
                                    "64-24-10",
                                    "The final weights are the same"};
  static const char *const not [] = {"<script", "http", "nan", "inf ", "None", "-0 %"};
  static const char *const args[] = {"--epochs 5 --requests 100", "--epochs 1 --requests 1",
                                     "--epochs 1 --requests 9 --batch 160"};
  char path[256];
  snprintf(path, sizeof path, "%s", cli_path("report.html"));
  for (size_t i = 0; i < sizeof args / sizeof *args; ++i) {
    free(cli_expect(0, "", cli_line("colocate --report %s" LEARN " %s", path, args[i])));
    char *page = cli_slurp(path, NULL);
    size_t charts = 0;
    for (size_t k = 0; k < sizeof has / sizeof *has && i == 0; ++k)
      if (!strstr(page, has[k])) fail_msg("the report has no %s", has[k]);
    for (size_t k = 0; k < sizeof not / sizeof *not ; ++k)
      if (strstr(page, not [k])) fail_msg("the report has %.60s", strstr(page, not [k]));
    for (const char *svg = page; (svg = strstr(svg, "<svg role")); ++svg, ++charts) {
    }
    assert_true(charts >= 2);
    free(page);
  }
}

static void traces_refused(void **state) {
  (void)state;
  free(cli_expect(1, "only a simulated core can be watched",
                  cli_line("colocate --trace %s" LEARN, cli_path("t.json"))));
  free(cli_expect(1, "/nonexistent/t.json: cannot be written",
                  "colocate --trace /nonexistent/t.json" LEARN));
  free(cli_expect(2, "\"5\" is not FROM:TO", "colocate --trace t.json --trace-window 5" EMU));
  free(cli_expect(2, "\"5:\" is not FROM:TO", "colocate --trace t.json --trace-window 5:" EMU));
  free(cli_expect(2, "9:3 is empty", "colocate --trace t.json --trace-window 9:3" EMU));
  free(cli_expect(2, "with --trace only", "colocate --trace-window 3:9" EMU));
  free(cli_expect(2, "--trace-limit: \"0\"", "colocate --trace t.json --trace-limit 0" EMU));
}

/* Ctrl-C: a sentence, what was measured, status 1. */
static void serving_stops_cleanly(void **state) {
  (void)state;
  char path[256];
  snprintf(path, sizeof path, "%s", cli_path("cut.ctm"));
  for (unsigned ms = 1600; ms <= 2400; ms += 800) { /* Python begins first, for the report */
    struct cli_run run =
        cli_run(cli_line("colocate --epochs 10000 --requests 10000 --save %s --report %s" LEARN,
                         path, cli_path("cut.html")),
                ms);
    if (run.status != 1 || !strstr(run.out, "Stopped; this is what was measured") ||
        !strstr(run.out, ", 0 lost, 0 wrong") || !strstr(run.out, "--resume goes on from there"))
      fail_msg("status %d: %s%s", run.status, run.out, run.err);
    check_resumed(path, number_after(run.out, "trained   "));
    char *page = cli_slurp(cli_path("cut.html"), NULL);
    assert_non_null(strstr(page, "This run was stopped early"));
    free(page);
    cli_run_free(&run);
  }
}

/* ---- Serving in batches ---- */

/* Without time: every answer, by two models, in batches. */
static void serving_in_batches(void **state) {
  (void)state;
  json_t *root = cli_expect_json(cli_line(
      "serve-bench --requests 700 --model 64-20-10 --model 30-12-16-5 --json - --csv %s" EMU,
      cli_path("requests.csv")));
  assert_true(cli_number_at(root, "serve.completed") == 700);
  assert_true(cli_number_at(root, "serve.wrong") == 0);
  assert_true(cli_number_at(root, "serve.mean_batch") > 2);
  assert_true(json_is_null(cli_at(root, "serve.p99_cycles")));
  assert_true(json_is_null(cli_at(root, "sustainable")));
  assert_int_equal(json_array_size(cli_at(root, "models")), 2);
  double requests = 0;
  for (size_t n = 0; n < 16; ++n)
    requests +=
        (double)(n + 1) * json_number_value(json_array_get(cli_at(root, "serve.batches"), n));
  assert_true(requests == 700);
  json_decref(root);
  char *rows = cli_slurp(cli_path("requests.csv"), NULL);
  assert_non_null(strstr(rows,
                         "request,model,sample,scheduled,arrive,start,end,batch,version,code,"
                         "wrong\n0,"));
  assert_int_equal(cli_lines_of(rows), 701);
  free(rows);
}

/* Nobody knows when an answer came, so nobody says that it came in time. */
static void deadlines_without_time(void **state) {
  (void)state;
  char *text = cli_expect(0, "", "serve-bench --requests 50 --deadline 5000" EMU);
  assert_non_null(strstr(text, "whether it was met is unknown of 50 requests"));
  free(text);
  json_t *root = cli_expect_json("serve-bench --requests 50 --deadline 5000 --json -" EMU);
  assert_true(cli_number_at(root, "serve.deadline_unknown") == 50);
  assert_true(json_is_null(cli_at(root, "serve.deadline_misses")));
  assert_true(json_is_null(cli_at(root, "serve.goodput_per_second")));
  json_decref(root);
  root = cli_expect_json("serve-bench --requests 50 --json -" EMU);
  assert_true(cli_number_at(root, "serve.deadline_unknown") == 0);
  json_decref(root);
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void serve_bench_refuses(void **state) {
  (void)state;
  static const struct {
    const char *text, *answer;
  } bad[] = {{"TIMESTAMP,Tokens\n2023-11-16 18:15:46.68,1\n2023-13-16 18:15:46,2\n",
              "line 3 does not begin with seconds"},
             {"1.5\n2.5\n2.25\n", "line 3 is earlier than the line before"},
             {"time\n1\n", "fewer than two arrival times"},
             {"1\n2x\n", "line 2 does not begin with seconds"},
             {"1\n2\n3\n", "has 3 arrivals, not 2000; give --requests"}};
  char path[256];
  snprintf(path, sizeof path, "%s", cli_path("bad.csv"));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    write_text(path, bad[i].text);
    free(cli_expect(1, bad[i].answer, cli_line("serve-bench --trace %s" EMU, path)));
  }
  write_text(path, "when\n2023-12-31T23:59:59.5;a\n2024-01-01 00:00:00.0000001,b\n");
  free(cli_expect(0, "", cli_line("serve-bench --requests 2 --trace %s" EMU, path)));
  free(cli_expect(
      0, "", "serve-bench --requests 1000 --trace host/data/traces/azure-conversation.csv" EMU));
  /* One arrival to a line, however long the line is. */
  char wide[1500];
  snprintf(wide, sizeof wide, "5,%0700d\n6,%0700d\n", 7, 8);
  write_text(path, wide);
  free(cli_expect(1, "has 2 arrivals, not 2000", cli_line("serve-bench --trace %s" EMU, path)));
  free(cli_expect(1, "cannot be opened", "serve-bench --trace /nonexistent" EMU));
  free(cli_expect(1, "cannot be read", "serve-bench --trace ." EMU));
  free(cli_expect(1, "line 1 is longer than", "serve-bench --trace /dev/zero" EMU));
  free(cli_expect(1, "cannot be written", "serve-bench --csv /nonexistent/x" EMU));
  free(cli_expect(2, "--arrivals: \"never\" is none of poisson", "serve-bench --arrivals never"));
  free(cli_expect(2, "--batching: there is no batching \"all\": none, fixed",
                  "serve-bench --batching all"));
  free(cli_expect(2, "--model: \"64\" is not a list", "serve-bench --model 64"));
  free(cli_expect(2, "--max-batch: \"17\"", "serve-bench --max-batch 17"));
  free(cli_expect(2, "8 models at most",
                  "serve-bench --model 4-4 --model 4-4 --model 4-4 --model 4-4 --model 4-4 "
                  "--model 4-4 --model 4-4 --model 4-4 --model 4-4"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matmul_is_exact),
      cmocka_unit_test(matmul_refuses),
      cmocka_unit_test(info_and_counters),
      cmocka_unit_test(devices_are_listed),
      cmocka_unit_test(registers_by_name),
      cmocka_unit_test(devices_are_reset),
      cmocka_unit_test(devices_test_themselves),
      cmocka_unit_test(devices_with_faults_are_found),
      cmocka_unit_test(json_says_what_wrote_it),
      cmocka_unit_test(bench_without_a_simulator),
      cmocka_unit_test(devices_that_are_not_there),
      cmocka_unit_test(bench_of_the_emulator),
      cmocka_unit_test(the_bench_stops),
      cmocka_unit_test(disassembly),
      cmocka_unit_test(help_and_usage),
      cmocka_unit_test(names_that_do_not_exist),
      cmocka_unit_test(resuming_changes_nothing),
      cmocka_unit_test(a_model_from_a_pipe),
      cmocka_unit_test(an_epochs_line),
      cmocka_unit_test(the_seed_decides),
      cmocka_unit_test(inference_of_a_matrix),
      cmocka_unit_test(training_refuses),
      cmocka_unit_test(training_stops_cleanly),
      cmocka_unit_test(serving_while_training),
      cmocka_unit_test(unusual_numbers),
      cmocka_unit_test(colocate_refuses),
      cmocka_unit_test(serving_stops_cleanly),
      cmocka_unit_test(a_report),
      cmocka_unit_test(traces_refused),
      cmocka_unit_test(serving_in_batches),
      cmocka_unit_test(deadlines_without_time),
      cmocka_unit_test(serve_bench_refuses),
  };
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
