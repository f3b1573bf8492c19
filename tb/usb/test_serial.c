/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serial: as users meet it: the unmodified library, plug-in and command, over a pseudo terminal
 * with a board at its other end (ct_serial_bed.h). What it computes is compared with emu:, bit by
 * bit.
 */
#include "ct_tb.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coltrain/coltrain.h"
#include "ct_serial_bed.h"
#include "host/cli_run.h"
#include "host/tiny_program.h"

enum { M = 20, N = 24, K = 40, URI = 128 };

static char uri[URI];

static struct ct_serial_bed *begin(const char *device, const char *options) {
  struct ct_serial_bed *bed = ct_serial_bed_new(device);
  snprintf(uri, sizeof uri, "serial:%s%s", ct_serial_bed_file(bed), options);
  return bed;
}

static void multiply(const char *name, size_t m, float *c) {
  float a[M * K], b[K * N];
  ct_rng rng = ct_rng_make(5);
  for (size_t i = 0; i < M * K; ++i)
    a[i] = (float)ct_rng_below(&rng, 1000) / 256.0f - 2.0f;
  for (size_t i = 0; i < K * N; ++i)
    b[i] = (float)ct_rng_below(&rng, 1000) / 256.0f - 2.0f;
  ct_device *dev;
  if (ct_open(name, &dev)) fail_msg("%s", ct_last_error(NULL));
  if (ct_matmul(dev, CT_INFERENCE, m, N, m, a, b, c, NULL)) fail_msg("%s", ct_last_error(dev));
  ct_close(dev);
}

static void check_product(size_t m) {
  float got[M * N], want[M * N];
  multiply(uri, m, got);
  multiply("emu:", m, want);
  ct_assert_same("product", got, want, m * N * sizeof *got);
}

static void the_same_bits_as_the_emulator(void **state) {
  (void)state;
  struct ct_serial_bed *bed = begin("sim:core=16x8", ",timeout=8000");
  check_product(M);
  /* Not more, see test_usb.c: four attempts in a row that fail end the device. */
  ct_serial_bed_faults(bed, (struct ct_serial_faults){.drop = 20, .damage = 20});
  for (int i = 0; i < 5; ++i)
    check_product(M);
  ct_serial_bed_free(bed);
}

/* The board's own serial line, bit by bit: a product, and its rate. */
static void the_board_s_line(void **state) {
  (void)state;
  struct ct_serial_bed *bed = begin("rtl:", ",timeout=600000");
  char args[256];
  check_product(3);
  snprintf(args, sizeof args, "bench link --device %s --kib 12 --requests 3 --json -", uri);
  json_t *root = cli_expect_json(args);
  ct_serial_bed_free(bed);
  assert_int_equal(cli_number_at(root, "line_rate"), 300000);
  const double write = cli_number_at(root, "write.percent_of_line"),
               read = cli_number_at(root, "read.percent_of_line");
  print_message("12 KiB: %.1f %% of the line writing, %.1f %% reading\n", write, read);
  assert_true(write > 90 && write <= 100);
  assert_true(read > 90 && read <= 100);
  json_decref(root);
}

/* ---- Refusals ---- */

static void what_is_refused(void **state) {
  (void)state;
  char other[URI + 16];
  struct ct_serial_bed *bed = begin("emu:dram=32", "");
  tiny_refused("serial:", CT_ERR_ARG, "as in serial:/dev/ttyUSB0");
  tiny_refused("serial:/dev/ttyNONE", CT_ERR_NOT_FOUND, "there is no port /dev/ttyNONE");
  tiny_refused("serial:/dev/null", CT_ERR_ARG, "is no serial port");
  tiny_refused("serial:/tmp", CT_ERR_ARG, "is no serial port");
  tiny_refused("serial:/dev/ttyUSB0,baud=3", CT_ERR_ARG, "a number of 9600..12000000");
  ct_serial_bed_occupy(bed, true);
  tiny_refused(uri, CT_ERR_BUSY, "in use by another program");
  ct_serial_bed_occupy(bed, false);
  ct_device *dev;
  assert_int_equal(ct_open(uri, &dev), CT_OK);
  tiny_refused(uri, CT_ERR_BUSY, "in use by another program");
  ct_close(dev);
  ct_serial_bed_faults(bed, (struct ct_serial_faults){.silent = true});
  tiny_refused(uri, CT_ERR_DEVICE, "does not answer: is the FPGA configured");
  ct_serial_bed_faults(bed, (struct ct_serial_faults){0});
  snprintf(other, sizeof other, "%s,baud=115200", uri);
  assert_int_equal(ct_open(other, &dev), CT_OK);
  struct ct_info info;
  assert_int_equal(ct_info(dev, &info), CT_OK);
  assert_int_equal(info.line_rate, 11520);
  ct_close(dev);
  ct_serial_bed_free(bed);
}

/* No port is opened to look what is there. */
static void none_is_listed(void **state) {
  (void)state;
  struct ct_serial_bed *bed = begin("emu:dram=32", "");
  char *out = cli_expect(0, "", "list");
  assert_non_null(strstr(out, "serial:               not looked for: name the port"));
  assert_null(strstr(out, ct_serial_bed_file(bed)));
  free(out);
  ct_serial_bed_free(bed);
}

static void a_board_is_lost(void **state) {
  (void)state;
  static const char *const texts[] = {"was unplugged", "does not answer"};
  for (unsigned i = 0; i < 2; ++i) {
    struct ct_serial_bed *bed = begin("emu:dram=32", "");
    ct_device *dev;
    uint64_t cycle;
    assert_int_equal(ct_open(uri, &dev), CT_OK);
    if (i == 0)
      ct_serial_bed_unplug(bed);
    else
      ct_serial_bed_faults(bed, (struct ct_serial_faults){.silent = true});
    const uint64_t start = ct_tb_ms();
    assert_int_equal(ct_now(dev, &cycle), CT_ERR_DEVICE);
    if (!strstr(ct_last_error(dev), texts[i])) fail_msg("\"%s\"", ct_last_error(dev));
    ct_close(dev);
    assert_true(ct_tb_ms() - start < 3000);
    ct_serial_bed_free(bed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_bits_as_the_emulator),
      CT_PLAIN_TEST(the_board_s_line),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(none_is_listed),
      cmocka_unit_test(a_board_is_lost),
  };
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
