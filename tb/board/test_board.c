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

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board_link.h"
#include "coltrain/coltrain.h"
#include "ct_transport.h"

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

/* ---- Lamps (docs/fpga.md) ------------------------------------------------------------------- */

/* (The heartbeat would take twenty million cycles to begin.) */
enum {
  HEARTBEAT = 1,
  INFERENCE = 1 << 1,
  TRAINING = 1 << 2,
  BYTES = 1 << 3,
  SERIAL = 1 << 4,
  INTERRUPT = 1 << 5,
  DAMAGED = 1 << 6,
  MEMORY_ERROR = 1 << 7
};

/* What the plug-in of the board in use has. It stays loaded. */
static void *in_plugin(const char *name) {
  char path[700];
  snprintf(path, sizeof path, "%s/usb.so", getenv("COLTRAIN_PLUGIN_DIR"));
  void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = plugin ? dlsym(plugin, name) : NULL;
  if (!symbol) fail_msg("%s has no %s", path, name);
  return symbol;
}

/* Which were on since the last time, and after it. */
static void expect_lamps(const char *what, unsigned expected) {
  uint8_t (*lamps)(void);
  *(void **)&lamps = in_plugin("board_link_lamps");
  const unsigned lit = lamps() & ~(unsigned)HEARTBEAT;
  if (lit != expected) fail_msg("%s: lamps 0x%02x, not 0x%02x", what, lit, expected);
}

static void use_line(ct_device *dev) {
  uint64_t cycle;
  assert_int_equal(ct_now(dev, &cycle), CT_OK);
}

/* One kind of work on a board on which there was none: its lamp, and no other's. */
static void lamp_of_work(enum ct_queue queue, unsigned lamp) {
  static const float a[ROWS * IN] = {1}, b[IN * OUT] = {1};
  float c[ROWS * OUT];
  ct_device *dev;
  assert_int_equal(ct_open("usb:serial=fifo,timeout=60000", &dev), CT_OK);
  expect_lamps("opened", BYTES);
  assert_int_equal(ct_matmul(dev, queue, ROWS, OUT, IN, a, b, c, NULL), CT_OK);
  expect_lamps("work", BYTES | lamp | INTERRUPT);
  use_line(dev);
  expect_lamps("after it", BYTES | lamp);
  ct_close(dev);
}

static void lamps_of_work(void **state) {
  use_board(*state);
  lamp_of_work(CT_INFERENCE, INFERENCE);
  lamp_of_work(CT_TRAINING, TRAINING);
}

static void lamp_of_the_serial_line(void **state) {
  ct_device *dev;
  use_board(*state);
  assert_int_equal(ct_open("usb:serial=serial,timeout=60000", &dev), CT_OK);
  expect_lamps("opened", BYTES | SERIAL);
  ct_close(dev);
}

/* Reading register 0 as in docs/usb.md, with a wrong bit at the end of all, or of the head alone.
 */
static void lamp_of_damaged_frames(void **state) {
  static const uint8_t frame[] = {0x43, 0x54, 1, 0, 0x34, 0x12, 8, 0, 0x86, 0x96, 0xc4, 0x76,
                                  2,    0,    0, 0, 0,    0,    0, 0, 0x82, 0x5e, 0xa0, 0xc3};
  static const uint8_t head[] = {0x43, 0x54, 1, 0, 0x34, 0x12, 8, 0, 0x86, 0x96, 0xc4, 0x77};
  void (*noise)(const uint8_t *bytes, size_t size);
  use_board(*state);
  *(void **)&noise = in_plugin("board_link_noise");
  for (int i = 0; i < 2; ++i) {
    ct_device *dev;
    assert_int_equal(ct_open("usb:serial=fifo,timeout=60000", &dev), CT_OK);
    use_line(dev);
    expect_lamps("good frames", BYTES);
    noise(i ? head : frame, i ? sizeof head : sizeof frame);
    use_line(dev);
    use_line(dev);
    expect_lamps(i ? "a damaged head" : "a damaged frame", BYTES | DAMAGED);
    ct_close(dev);
  }
}

/* The library asks for nothing behind the memory's end; its transport does. */
static void lamp_of_the_memory(void **state) {
  const struct ct_transport_ops *(*plugin)(void);
  uint8_t bytes[16];
  char why[200] = "";
  void *self;
  use_board(*state);
  *(void **)&plugin = in_plugin("ct_transport_plugin");
  if (plugin()->open("serial=fifo,timeout=60000", &self, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(plugin()->mem_read(self, 0, bytes, sizeof bytes), CT_OK);
  expect_lamps("memory", BYTES);
  assert_int_equal(plugin()->mem_read(self, UINT64_C(1) << 30, bytes, sizeof bytes), CT_ERR_DEVICE);
  expect_lamps("no memory", BYTES | MEMORY_ERROR);
  assert_int_equal(plugin()->mem_read(self, 0, bytes, sizeof bytes), CT_OK);
  expect_lamps("memory again", BYTES | MEMORY_ERROR);
  plugin()->close(self);
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
      {"lamps_of_work", lamps_of_work, NULL, NULL, &wide},
      {"lamp_of_the_serial_line", lamp_of_the_serial_line, NULL, NULL, &wide},
      {"lamp_of_damaged_frames", lamp_of_damaged_frames, NULL, NULL, &wide},
      {"lamp_of_the_memory", lamp_of_the_memory, NULL, NULL, &wide},
      {"same_bytes_narrow", same_bytes, NULL, NULL, &narrow},
      {"digits_narrow", digits, NULL, NULL, &narrow},
      {"serial_line_narrow", serial_line, NULL, NULL, &narrow},
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
