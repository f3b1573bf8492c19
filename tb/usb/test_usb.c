/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usb: as users meet it: the unmodified library, plug-in, libusb and coltrain command, over a board
 * that ct_usb_bed.h makes up. What it computes is compared with emu:, bit by bit.
 */
#include "ct_tb.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/cli_run.h"
#include "host/tiny_program.h"
#include "coltrain/coltrain.h"
#include "ct_usb_bed.h"

enum { M = 20, N = 24, K = 40, BATCH = 16, IN = 20, OUT = 4 };

/* What the bed has behind its chip where a whole core is wanted: the Verilated board, or by
 * argument the model of its bridge over a simulated core. */
static const char *sim = "rtl:";
static const char uri[] = "usb:timeout=8000"; /* the machine that tests may be busy */

static ct_device *open_or_fail(const char *name) {
  ct_device *dev;
  if (ct_open(name, &dev)) fail_msg("%s", ct_last_error(NULL));
  return dev;
}

static void multiply(const char *name, float *c) {
  float a[M * K], b[K * N];
  ct_rng rng = ct_rng_make(5);
  for (size_t i = 0; i < M * K; ++i)
    a[i] = (float)ct_rng_below(&rng, 1000) / 256.0f - 2.0f;
  for (size_t i = 0; i < K * N; ++i)
    b[i] = (float)ct_rng_below(&rng, 1000) / 256.0f - 2.0f;
  ct_device *dev = open_or_fail(name);
  if (ct_matmul(dev, CT_INFERENCE, M, N, K, a, b, c, NULL)) fail_msg("%s", ct_last_error(dev));
  ct_close(dev);
}

/* Trains two steps, serves a batch and gives all that came out. */
static void learn(const char *name, float *out) {
  static const uint32_t widths[] = {IN, OUT};
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f, .momentum = 0.9f}};
  float x[BATCH * IN];
  uint32_t labels[BATCH];
  ct_model *model;
  for (size_t i = 0; i < BATCH * IN; ++i)
    x[i] = (float)(i % 7) * 0.25f;
  for (uint32_t i = 0; i < BATCH; ++i)
    labels[i] = i % OUT;
  ct_device *dev = open_or_fail(name);
  assert_int_equal(ct_model_create(dev, widths, 1, 1, &model), CT_OK);
  assert_int_equal(ct_model_training(model, &training), CT_OK);
  for (int i = 0; i < 2; ++i)
    if (ct_model_step(model, x, labels, &out[i])) fail_msg("%s", ct_last_error(dev));
  if (ct_model_infer(model, NULL, x, BATCH, out + 2)) fail_msg("%s", ct_last_error(dev));
  ct_model_free(model);
  ct_close(dev);
}

/* Returns how many bytes the line has lost or damaged. */
static unsigned long check_work(struct ct_usb_faults faults) {
  float got[M * N], want[M * N], learnt[2 + BATCH * OUT], wanted[2 + BATCH * OUT];
  struct ct_usb_bed *bed = ct_usb_bed_new(sim, "CT0001");
  ct_usb_bed_faults(bed, faults);
  multiply(uri, got);
  learn(uri, learnt);
  const struct ct_usb_bed_counts counts = ct_usb_bed_counts(bed);
  ct_usb_bed_free(bed);
  print_message("%lu bytes lost or damaged\n", counts.bad);
  multiply("emu:", want);
  learn("emu:", wanted);
  ct_assert_same("product", got, want, sizeof want);
  ct_assert_same("training and answers", learnt, wanted, sizeof wanted);
  return counts.bad;
}

/* Of the frames of 2 KiB a twelfth is lost, so that four attempts in a row, which end the device,
 * are one in 20,000. The few bytes of one run may all be whole: then once more. */
static void the_same_bits_over_a_bad_line(void **state) {
  (void)state;
  const struct ct_usb_faults bad = {.drop = 20, .damage = 20, .packets = 30, .delay = 30};
  for (unsigned tries = 0; tries < 8; ++tries)
    if (check_work(bad)) return;
  fail_msg("no byte was lost in eight runs");
}

/* ---- The command ---- */

/* Returns what inference printed. */
static char *train_and_infer(const char *device, const char *model) {
  char args[512];
  snprintf(args, sizeof args,
           "train --data digits --layers 64-16-10 --epochs 1 --save %s --device %s", model, device);
  free(cli_expect(0, "", args));
  snprintf(args, sizeof args, "infer --model %s --data digits --device %s", model, device);
  return cli_expect(0, "", args);
}

static void the_command(void **state) {
  (void)state;
  struct ct_usb_bed *bed = ct_usb_bed_new("emu:dram=32", "CT0001");
  char *out = cli_expect(0, "", "info --device usb:serial=CT0001");
  assert_non_null(strstr(out, "16 x 16"));
  free(out);
  /* Handwritten digits: the same model file and the same answers as on the emulator. */
  char *got = train_and_infer("usb:timeout=8000", cli_path("usb.ct"));
  ct_usb_bed_free(bed);
  char *want = train_and_infer("emu:dram=32", cli_path("emu.ct"));
  cli_assert_same_files(cli_path("usb.ct"), cli_path("emu.ct"));
  assert_string_equal(got, want);
  free(got);
  free(want);
}

/* The error of the board in the list; its text holds this. */
static int listed(const char *text) {
  struct ct_entry *e;
  size_t n;
  int error = CT_ERR_NOT_FOUND;
  assert_int_equal(ct_scan(&e, &n), CT_OK);
  for (size_t i = 0; i < n; ++i) {
    if (strcmp(e[i].uri, "usb:serial=CT0001")) continue;
    if (!strstr(e[i].text, text)) fail_msg("\"%s\" without \"%s\"", e[i].text, text);
    error = e[i].error;
  }
  ct_list_free(e);
  return error;
}

static void boards_are_listed(void **state) {
  (void)state;
  struct ct_usb_bed *bed = ct_usb_bed_new("emu:dram=32", "CT0001");
  assert_int_equal(listed("FT232H at bus 1, address 2"), CT_OK);
  ct_usb_bed_faults(bed, (struct ct_usb_faults){.busy = true});
  assert_int_equal(listed("in use by another program"), CT_ERR_BUSY);
  ct_usb_bed_free(bed);
  assert_int_equal(listed(""), CT_ERR_NOT_FOUND);
  char *out = cli_expect(0, "", "list");
  assert_non_null(strstr(out, "usb:                  none on this machine"));
  free(out);
}

/* One measurement; whether both ways leave hardly a clock of the FIFO unused. */
static bool measure_line(void) {
  static const char *const ways[] = {"write", "read"};
  struct ct_usb_bed *bed = ct_usb_bed_new("rtl:", "CT0001");
  json_t *root =
      cli_expect_json("bench link --device usb:timeout=20000 --kib 256 --requests 20 --json -");
  bool full = true;
  ct_usb_bed_free(bed);
  assert_int_equal(cli_number_at(root, "line_rate"), 60000000);
  for (unsigned i = 0; i < 2; ++i) {
    char path[64];
    snprintf(path, sizeof path, "%s.percent_of_line", ways[i]);
    print_message("%s: data in %.1f %% of the FIFO's clocks\n", ways[i], cli_number_at(root, path));
    assert_true(cli_number_at(root, path) <= 100);
    full = full && cli_number_at(root, path) >= 95;
  }
  const double p50 = cli_number_at(root, "round_trip.device.p50_us");
  print_message("a request: %.2f us of the board's time\n", p50);
  assert_true(p50 > 0.5);
  json_decref(root);
  return full;
}

/* A large write and a large read. While the machine does something else the line is empty, and that
 * is no fault of the library's: one of three tries must do. */
static void the_line_is_full(void **state) {
  (void)state;
  bool full = false;
  unsigned tries = 0;
  for (; tries < 3 && !full; ++tries)
    full = measure_line();
  print_message("%s after %u of 3 tries\n", full ? "full" : "never full", tries);
  assert_true(full);
}

/* ---- Jobs ---- */

/* The board works while the host sleeps in poll(). */
static void the_descriptor_wakes(void **state) {
  (void)state;
  struct ct_usb_bed *bed = ct_usb_bed_new(sim, "CT0001");
  ct_device *dev = open_or_fail(uri);
  struct ct_event r;
  uint64_t tag;
  ct_program *program = tiny_program(dev, false);
  struct pollfd p = {.fd = ct_poll_fd(dev), .events = POLLIN};
  assert_true(p.fd >= 0);
  assert_int_equal(poll(&p, 1, 50), 0);
  for (int i = 0; i < 5; ++i) {
    const struct ct_job job = {.program = program};
    assert_int_equal(ct_submit(dev, CT_INFERENCE, &job, &tag), CT_OK);
    assert_int_equal(poll(&p, 1, 10000), 1);
    assert_int_equal(ct_wait(dev, tag, &r, 10000), CT_OK);
    assert_int_equal(r.error, CT_OK);
    assert_int_equal(ct_reap(dev, &r, CT_NO_WAIT), CT_ERR_NOT_FOUND);
    assert_int_equal(poll(&p, 1, 20), 0);
  }
  ct_program_free(program);
  ct_close(dev);
  ct_usb_bed_free(bed);
}

static void an_endless_job(void **state) {
  (void)state;
  struct ct_usb_bed *bed = ct_usb_bed_new(sim, "CT0001");
  ct_device *dev = open_or_fail(uri);
  struct ct_event r;
  uint64_t tag;
  ct_program *program = tiny_program(dev, true);
  const struct ct_job job = {.program = program};
  assert_int_equal(ct_submit(dev, CT_TRAINING, &job, &tag), CT_OK);
  const uint64_t start = ct_tb_ms();
  assert_int_equal(ct_reap(dev, &r, 700), CT_ERR_TIMEOUT); /* longer than a heartbeat */
  assert_true(ct_tb_ms() - start >= 700);
  assert_int_equal(ct_cancel(dev, tag), CT_OK);
  assert_int_equal(ct_wait(dev, tag, &r, 10000), CT_OK);
  assert_int_equal(r.error, CT_ERR_CANCELLED);
  assert_int_equal(ct_submit(dev, CT_TRAINING, &job, &tag), CT_OK);
  const uint64_t closing = ct_tb_ms();
  ct_close(dev);
  assert_true(ct_tb_ms() - closing < 3000);
  ct_program_free(program);
  ct_usb_bed_free(bed);
}

/* ---- Refusals ---- */

static void what_is_refused(void **state) {
  (void)state;
  struct ct_usb_bed *bed = ct_usb_bed_new("emu:dram=32", "CT0001");
  tiny_refused("usb:serial=other", CT_ERR_NOT_FOUND, "serial number \"other\"");
  tiny_refused("usb:bus=3,addr=4", CT_ERR_NOT_FOUND, "at bus 3, address 4");
  tiny_refused("usb:bus=3", CT_ERR_NOT_FOUND, "at bus 3 is on USB");
  tiny_refused("usb:addr=9", CT_ERR_NOT_FOUND, "at address 9 is on USB");
  tiny_refused("usb:vid=0x1234,pid=0x5678", CT_ERR_NOT_FOUND, "no board 1234:5678 is on USB");
  tiny_refused("usb:vid=0x1234", CT_ERR_NOT_FOUND, "no board 1234:6014 or 1234:6010 is on USB");
  tiny_refused("usb:speed=3", CT_ERR_ARG, "has no option \"speed\"");
  ct_usb_bed_faults(bed, (struct ct_usb_faults){.busy = true});
  tiny_refused("usb:", CT_ERR_BUSY, "in use by another program");
  ct_usb_bed_faults(bed, (struct ct_usb_faults){.silent = true});
  tiny_refused("usb:", CT_ERR_DEVICE, "does not answer: is the FPGA configured");
  ct_usb_bed_faults(bed, (struct ct_usb_faults){0});
  ct_usb_bed_version(bed, 2);
  tiny_refused(uri, CT_ERR_ABI, "speaks version 2");
  ct_usb_bed_version(bed, 1);
  ct_close(open_or_fail("usb:bus=1,addr=2,timeout=8000"));
  ct_usb_bed_free(bed);
}

/* The first call afterwards fails with the reason; none hangs, close least of all. */
static void check_loss(bool unplug, const char *text) {
  struct ct_info info;
  uint64_t cycle;
  struct ct_usb_bed *bed = ct_usb_bed_new("emu:dram=32", "CT0001");
  ct_device *dev = open_or_fail("usb:");
  if (unplug)
    ct_usb_bed_unplug(bed);
  else
    ct_usb_bed_faults(bed, (struct ct_usb_faults){.silent = true});
  const uint64_t start = ct_tb_ms();
  assert_int_equal(ct_now(dev, &cycle), CT_ERR_DEVICE);
  if (!strstr(ct_last_error(dev), text)) fail_msg("\"%s\"", ct_last_error(dev));
  assert_int_equal(ct_now(dev, &cycle), CT_ERR_DEVICE);
  assert_int_equal(ct_info(dev, &info), CT_OK);
  assert_true(ct_tb_ms() - start < 3000);
  ct_close(dev);
  assert_true(ct_tb_ms() - start < 5000);
  ct_usb_bed_free(bed);
}

/* A job is running when the board is lost. wait: the loss is noticed by a wait, not by close. */
static void check_loss_in_a_job(bool unplug, bool wait) {
  struct ct_usb_bed *bed = ct_usb_bed_new(sim, "CT0001");
  ct_device *dev = open_or_fail("usb:");
  struct ct_event r;
  uint64_t tag;
  ct_program *program = tiny_program(dev, true);
  const struct ct_job job = {.program = program};
  assert_int_equal(ct_submit(dev, CT_TRAINING, &job, &tag), CT_OK);
  assert_int_equal(ct_reap(dev, &r, 50), CT_ERR_TIMEOUT);
  if (unplug)
    ct_usb_bed_unplug(bed);
  else
    ct_usb_bed_faults(bed, (struct ct_usb_faults){.silent = true});
  const uint64_t start = ct_tb_ms();
  if (wait) assert_int_equal(ct_wait(dev, tag, &r, 10000), CT_ERR_DEVICE);
  assert_true(ct_tb_ms() - start < 3000);
  const uint64_t closing = ct_tb_ms();
  ct_close(dev);
  assert_true(ct_tb_ms() - closing < 2000); /* 0.7 s, on a machine that is not busy */
  ct_program_free(program);
  ct_usb_bed_free(bed);
}

static void a_board_is_lost(void **state) {
  (void)state;
  for (unsigned i = 0; i < 4; ++i)
    check_loss_in_a_job(i & 1, i & 2);
  check_loss(true, "unplugged");
  check_loss(false, "does not answer");
}

/* A test that fails leaves its board and its open device behind, for the next one to meet. */
static int no_board_is_left(void **state) {
  (void)state;
  if (!ct_usb_bed_count()) return 0;
  print_error("the tests after this one are not run: its board is still there\n");
  fflush(NULL);
  _exit(1);
}

int main(int argc, char **argv) {
  if (argc > 1) sim = argv[1];
  ct_usb_bed_enter(argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(the_same_bits_over_a_bad_line, no_board_is_left),
      cmocka_unit_test_teardown(the_command, no_board_is_left),
      cmocka_unit_test_teardown(boards_are_listed, no_board_is_left),
      cmocka_unit_test_teardown(the_line_is_full, no_board_is_left),
      cmocka_unit_test_teardown(the_descriptor_wakes, no_board_is_left),
      cmocka_unit_test_teardown(an_endless_job, no_board_is_left),
      cmocka_unit_test_teardown(what_is_refused, no_board_is_left),
      cmocka_unit_test_teardown(a_board_is_lost, no_board_is_left),
  };
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
