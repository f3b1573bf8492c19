/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole board, from the pins on: the unmodified library and command, through the unmodified
 * plug-in for USB, on a Verilated board (board_link.c). Same bytes as emu:, whatever the line.
 *
 * Two boards: 16 x 8 at 40 MHz, and the one that `make fpga' makes, 16 x 4, with the slowest core
 * that it may get, 25 MHz. There the FIFO's clock is more than twice the core's, a bit of the
 * serial line lasts 8.3 cycles, and the times of the SDRAM chip are one or two.
 */
#include "ct_tb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"

enum { IN = 12, OUT = 20, ROWS = 3, TEXT = 4096 };

static char build[512];

/* What a command prints; "" if it fails. */
static void output_of(const char *command, char text[TEXT]) {
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  text[fread(text, 1, TEXT - 1, pipe)] = 0;
  if (pclose(pipe)) *text = 0;
}

struct board {
  const char *folder; /* of its plug-in */
  uint32_t columns;
  uint64_t least_hz, most_hz;
};

/* What is opened from here on is this board: a device that says it has another core fails. */
static void use_board(const struct board *board) {
  char plugins[600];
  ct_device *dev;
  struct ct_info info;
  snprintf(plugins, sizeof plugins, "%s/tb/%s", build, board->folder);
  assert_int_equal(setenv("COLTRAIN_PLUGIN_DIR", plugins, 1), 0);
  assert_int_equal(ct_open("usb:serial=fifo,timeout=60000", &dev), CT_OK);
  assert_int_equal(ct_info(dev, &info), CT_OK);
  ct_close(dev);
  assert_int_equal(info.array_cols, board->columns);
  assert_in_range(info.clock_hz, board->least_hz, board->most_hz);
}

/* A product, training, a model file and inference, in six floating-point environments. */
static void same_bytes(void **state) {
  char command[1024], expected[TEXT], got[TEXT];
  use_board(*state);
  snprintf(command, sizeof command, "%s/same/gcc-O2/same_bytes emu:", build);
  output_of(command, expected);
  assert_true(strlen(expected) > 100);
  snprintf(command, sizeof command, "%s/same/gcc-O2/same_bytes usb:serial=fifo40,timeout=60000",
           build);
  output_of(command, got);
  assert_string_equal(got, expected);
}

/* Training on the digits and serving beside it: every answer is computed again by emu:. */
static void digits(void **state) {
  char command[1024], got[TEXT];
  use_board(*state);
  snprintf(command, sizeof command,
           "%s/bin/coltrain colocate --data digits --samples 64 --layers 64-32-10 --batch 16 "
           "--epochs 2 --requests 40 --device usb:serial=fifo10,timeout=60000",
           build);
  output_of(command, got);
  if (!strstr(got, " 40 of 40 requests, 0 lost, 0 wrong;")) fail_msg("%s", got);
}

/* The serial line is slow: one product. */
static void product_of(const char *uri, const float *a, const float *b, float *c) {
  ct_device *dev;
  assert_int_equal(ct_open(uri, &dev), CT_OK);
  assert_int_equal(ct_matmul(dev, CT_INFERENCE, ROWS, OUT, IN, a, b, c, NULL), CT_OK);
  ct_close(dev);
}

static void serial_line(void **state) {
  use_board(*state);
  float a[ROWS * IN], b[IN * OUT], expected[ROWS * OUT], got[ROWS * OUT];
  ct_rng rng = ct_rng_make(1);
  for (size_t i = 0; i < ROWS * IN; ++i)
    a[i] = (float)ct_rng_below(&rng, 2001) - 1000.0f;
  for (size_t i = 0; i < IN * OUT; ++i)
    b[i] = (float)ct_rng_below(&rng, 2001) - 1000.0f;
  product_of("emu:", a, b, expected);
  product_of("usb:serial=serial,timeout=60000", a, b, got);
  ct_assert_same("product", got, expected, sizeof got);
}

int main(int argc, char **argv) {
  (void)argc;
  static struct board wide = {"board", 8, 40000000, 40000000};
  static struct board narrow = {"board-narrow", 4, 25000000, 40000000};
  snprintf(build, sizeof build, "%s", argv[0]);
  char *slash = strstr(build, "/tb/test_board");
  assert_non_null(slash);
  *slash = 0;
  const struct CMUnitTest tests[] = {
      {"same_bytes", same_bytes, NULL, NULL, &wide},
      {"serial_line", serial_line, NULL, NULL, &wide},
      {"same_bytes_narrow", same_bytes, NULL, NULL, &narrow},
      {"digits_narrow", digits, NULL, NULL, &narrow},
      {"serial_line_narrow", serial_line, NULL, NULL, &narrow},
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
