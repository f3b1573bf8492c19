/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every way to a device must do:
 *
 *   conform DEVICE     a device by its name ("sim:core=16x8", "emu:", "usb:" of a real board)
 *   conform_mmio       a simulated core in the address space (mmio_rig.h)
 *   conform_usb        the Verilated board behind umockdev (ct_usb_bed.h)
 *
 * What is computed is compared with emu:, byte by byte. CT_ONLY=PATTERN runs some of the tests.
 */
#include "conform.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coltrain/coltrain.h"
#include "ct_cmd.h"
#include "ct_modes.h"
#include "ct_tb.h"

enum {
  M = 20,
  N = 24,
  K = 40,
  BATCH = 16,
  IN = 20,
  OUT = 4,
  ACCESSES = 2000,
  AREA = 1 << 16,
  CALL = 1 << 13, /* bytes of a call in which the device is lost */
  WAIT_MS = 20000,
  CLOSE_MS = 1000
};

static const struct conform_way *way;

static ct_device *open_or_fail(const char *uri) {
  ct_device *dev;
  if (ct_open(uri, &dev)) fail_msg("%s: %s", uri, ct_last_error(NULL));
  return dev;
}

static void start(unsigned devices) {
  if (way->start) way->start(devices);
}

static void stop(void) {
  if (way->stop) way->stop();
}

/* Within a second, in whatever state. */
static void close_in_time(ct_device *dev) {
  const uint64_t begin = ct_tb_ms();
  ct_close(dev);
  const uint64_t ms = ct_tb_ms() - begin;
  if (ms > CLOSE_MS) fail_msg("ct_close() took %llu ms", (unsigned long long)ms);
}

/* ---- Work ------------------------------------------------------------------------------------ */

struct work {
  float product[M * N], learnt[2 + BATCH * OUT];
};

static void multiply(ct_device *dev, float *c) {
  float a[M * K], b[K * N];
  for (size_t i = 0; i < M * K; ++i)
    a[i] = (float)(i * 37 % 1009) / 256.0f - 2.0f;
  for (size_t i = 0; i < K * N; ++i)
    b[i] = (float)(i * 53 % 997) / 256.0f - 2.0f;
  if (ct_matmul(dev, CT_INFERENCE, M, N, K, a, b, c, NULL)) fail_msg("%s", ct_last_error(dev));
}

/* Trains two steps and serves a batch. */
static void learn(ct_device *dev, float *out) {
  static const uint32_t widths[] = {IN, OUT};
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f, .momentum = 0.9f}};
  float x[BATCH * IN];
  uint32_t labels[BATCH];
  ct_model *model;
  for (size_t i = 0; i < BATCH * IN; ++i)
    x[i] = (float)(i % 7) * 0.25f;
  for (uint32_t i = 0; i < BATCH; ++i)
    labels[i] = i % OUT;
  assert_int_equal(ct_model_create(dev, widths, 1, 1, &model), CT_OK);
  assert_int_equal(ct_model_training(model, &training), CT_OK);
  for (int i = 0; i < 2; ++i)
    if (ct_model_step(model, x, labels, &out[i])) fail_msg("%s", ct_last_error(dev));
  if (ct_model_infer(model, NULL, x, BATCH, out + 2)) fail_msg("%s", ct_last_error(dev));
  ct_model_free(model);
}

static void do_work(const char *uri, struct work *w) {
  ct_device *dev = open_or_fail(uri);
  memset(w, 0, sizeof *w);
  multiply(dev, w->product);
  learn(dev, w->learnt);
  close_in_time(dev);
}

static void check_product(ct_device *dev) {
  float got[M * N], want[M * N];
  ct_device *emu = open_or_fail("emu:");
  multiply(dev, got);
  multiply(emu, want);
  ct_close(emu);
  ct_assert_same("product", got, want, sizeof got);
}

static void info(void **state) {
  (void)state;
  struct ct_info i;
  start(1);
  ct_device *dev = open_or_fail(way->uri);
  assert_int_equal(ct_info(dev, &i), CT_OK);
  assert_int_equal(i.block, 16);
  assert_true(i.array_rows == 16);
  assert_true(i.array_cols == 16 || i.array_cols == 8 || i.array_cols == 4);
  assert_true(i.dram_bytes >= 1 << 20 && i.spm_words >= 128);
  assert_true(i.features & CT_FEATURE_HBFP8);
  close_in_time(dev);
  stop();
}

static void the_emulators_bytes(void **state) {
  (void)state;
  static struct work got, want;
  start(1);
  do_work(way->uri, &got);
  stop();
  do_work("emu:", &want);
  ct_assert_same("product", got.product, want.product, sizeof got.product);
  ct_assert_same("training and answers", got.learnt, want.learnt, sizeof got.learnt);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void random_accesses(void **state) {
  (void)state;
  static uint8_t shadow[AREA], bytes[AREA];
  ct_rng rng = ct_rng_make(1);
  uint64_t at;
  start(1);
  ct_device *dev = open_or_fail(way->uri);
  assert_int_equal(ct_mem_alloc(dev, AREA, &at), CT_OK);
  ct_rng_fill(&rng, shadow, AREA);
  assert_int_equal(ct_mem_write(dev, at, shadow, AREA), CT_OK);
  for (unsigned i = 0; i < (way->accesses ? way->accesses : ACCESSES); ++i) {
    const size_t from = ct_rng_below(&rng, AREA), room = AREA - from;
    size_t n = 1 + ct_rng_below(&rng, ct_rng_percent(&rng, 90) ? 200 : 6000);
    if (n > room) n = room;
    if (ct_rng_percent(&rng, 50)) {
      ct_rng_fill(&rng, shadow + from, n);
      assert_int_equal(ct_mem_write(dev, at + from, shadow + from, n), CT_OK);
    } else {
      assert_int_equal(ct_mem_read(dev, at + from, bytes, n), CT_OK);
      ct_assert_same("read", bytes, shadow + from, n);
    }
  }
  assert_int_equal(ct_mem_read(dev, at, bytes, AREA), CT_OK);
  ct_assert_same("all of it", bytes, shadow, AREA);
  assert_int_equal(ct_mem_free(dev, at), CT_OK);
  close_in_time(dev);
  stop();
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static ct_program *program(ct_device *dev, const struct ct_cmd *cmd, size_t count) {
  uint8_t bytes[16 * CT_CMD_BYTES];
  ct_program *p;
  for (size_t i = 0; i < count; ++i)
    ct_cmd_to_bytes(&cmd[i], bytes + i * CT_CMD_BYTES);
  if (ct_program_load(dev, bytes, count, &p)) fail_msg("%s", ct_last_error(dev));
  return p;
}

/* Loops that never end, on every device. */
static ct_program *endless(ct_device *dev) {
  enum { NEST = 4 };
  struct ct_cmd cmd[2 * NEST + 1];
  memset(cmd, 0, sizeof cmd);
  for (int i = 0; i < NEST; ++i) {
    CT_PUT(&cmd[i], ALL_OP, CT_OP_LOOP);
    CT_PUT(&cmd[i], CTL_COUNT, UINT32_MAX);
    CT_PUT(&cmd[NEST + i], ALL_OP, CT_OP_ENDL);
  }
  CT_PUT(&cmd[2 * NEST], ALL_OP, CT_OP_END);
  return program(dev, cmd, 2 * NEST + 1);
}

/* One that the device refuses. */
static ct_program *illegal(ct_device *dev) {
  struct ct_cmd cmd[2];
  memset(cmd, 0, sizeof cmd);
  CT_PUT(&cmd[0], ALL_OP, CT_OP_ENDL); /* of no loop */
  CT_PUT(&cmd[1], ALL_OP, CT_OP_END);
  return program(dev, cmd, 2);
}

static uint64_t submit(ct_device *dev, ct_program *p, enum ct_queue queue) {
  const struct ct_job job = {.program = p};
  uint64_t tag;
  if (ct_submit(dev, queue, &job, &tag)) fail_msg("%s", ct_last_error(dev));
  return tag;
}

static void expect_end(ct_device *dev, uint64_t tag, int error) {
  struct ct_event e;
  if (ct_wait(dev, tag, &e, WAIT_MS)) fail_msg("%s", ct_last_error(dev));
  assert_int_equal(e.error, error);
}

static void timeouts_and_cancels(void **state) {
  (void)state;
  struct ct_event e;
  start(1);
  ct_device *dev = open_or_fail(way->uri);
  ct_program *p = endless(dev);
  for (int queue = 0; queue < 2; ++queue) {
    const uint64_t tag = submit(dev, p, (enum ct_queue)queue), begin = ct_tb_ms();
    assert_int_equal(ct_wait(dev, tag, &e, CT_NO_WAIT), CT_ERR_TIMEOUT);
    assert_int_equal(ct_wait(dev, tag, &e, 200), CT_ERR_TIMEOUT);
    assert_in_range(ct_tb_ms() - begin, 200, 5000);
    assert_int_equal(ct_cancel(dev, tag), CT_OK);
    expect_end(dev, tag, CT_ERR_CANCELLED);
    check_product(dev);
  }
  ct_program_free(p);
  close_in_time(dev);
  stop();
}

static void a_job_with_an_error(void **state) {
  (void)state;
  start(1);
  ct_device *dev = open_or_fail(way->uri);
  ct_program *p = illegal(dev);
  for (int queue = 0; queue < 2; ++queue)
    expect_end(dev, submit(dev, p, (enum ct_queue)queue), CT_ERR_JOB);
  check_product(dev);
  ct_program_free(p);
  close_in_time(dev);
  stop();
}

static void close_with_jobs(void **state) {
  (void)state;
  start(1);
  for (int jobs = 0; jobs < 3; ++jobs) {
    ct_device *dev = open_or_fail(way->uri);
    ct_program *p = endless(dev);
    for (int i = 0; i < 2 * jobs; ++i)
      submit(dev, p, (enum ct_queue)(i % 2));
    close_in_time(dev);
    ct_program_free(p);
  }
  ct_device *dev = open_or_fail(way->uri);
  check_product(dev);
  close_in_time(dev);
  stop();
}

/* ---- Another process ------------------------------------------------------------------------- */

/* Opens the device, keeps it at work, says so, and waits for its end. */
static int victim(void) {
  ct_device *dev;
  if (ct_open(way->uri, &dev)) return 1;
  ct_program *p = endless(dev);
  submit(dev, p, CT_INFERENCE);
  submit(dev, p, CT_TRAINING);
  if (write(STDOUT_FILENO, "!", 1) != 1) return 1;
  for (;;)
    pause();
}

/* Killed in the middle of its work, a program leaves a device that the next one opens as ever. */
static void killed(void **state) {
  (void)state;
  int out[2];
  char byte = 0;
  start(1);
  assert_int_equal(pipe(out), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    dup2(out[1], STDOUT_FILENO);
    close(out[0]);
    close(out[1]);
    execl("/proc/self/exe", "conform", way->uri, "victim", (char *)NULL);
    _exit(127);
  }
  close(out[1]);
  assert_int_equal(read(out[0], &byte, 1), 1);
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  close(out[0]);
  if (way->killed) way->killed();
  ct_device *dev = open_or_fail(way->uri);
  check_product(dev);
  close_in_time(dev);
  stop();
}

/* ---- Losing it ------------------------------------------------------------------------------- */

enum state { IDLE, WRITING, READING, REGISTERS, JOB, STATES };

/* The call in which, or after which, the device is gone. */
static int call_in(ct_device *dev, enum state s, uint64_t at, uint64_t tag) {
  static uint8_t bytes[CALL];
  struct ct_event e;
  uint64_t cycle;
  /* Writes to a bus are not answered, so a register is read after each. */
  for (unsigned i = 0; i < 2000; ++i) {
    int err = s == WRITING   ? ct_mem_write(dev, at, bytes, CALL)
              : s == READING ? ct_mem_read(dev, at, bytes, CALL)
              : s == JOB     ? ct_wait(dev, tag, &e, 10000)
                             : CT_OK;
    if (!err) err = ct_now(dev, &cycle);
    if (err) return err;
  }
  return CT_OK;
}

struct thief {
  unsigned how, after_ms;
};

static void *steal(void *arg) {
  const struct thief *t = arg;
  const struct timespec ts = {.tv_nsec = t->after_ms * 1000000L};
  nanosleep(&ts, NULL);
  way->lose(t->how);
  return NULL;
}

static void lose_in(enum state s, unsigned how) {
  struct thief t = {how, 5 + 7 * (unsigned)s};
  uint64_t at, tag = 0;
  pthread_t thread;
  start(1);
  ct_device *dev = open_or_fail(way->impatient ? way->impatient : way->uri);
  assert_int_equal(ct_mem_alloc(dev, AREA, &at), CT_OK);
  ct_program *p = endless(dev);
  if (s == JOB) tag = submit(dev, p, CT_TRAINING);
  if (s == IDLE) {
    way->lose(how);
  } else {
    assert_int_equal(pthread_create(&thread, NULL, steal, &t), 0);
  }
  const uint64_t begin = ct_tb_ms();
  assert_int_equal(call_in(dev, s, at, tag), CT_ERR_DEVICE);
  assert_true(ct_tb_ms() - begin < 8000);
  assert_true(strlen(ct_last_error(dev)) > 20);
  if (s != IDLE) pthread_join(thread, NULL);
  ct_program_free(p);
  close_in_time(dev);
  stop();
  /* It comes back as another one. */
  start(1);
  dev = open_or_fail(way->uri);
  check_product(dev);
  close_in_time(dev);
  stop();
}

static void lost_in_every_state(void **state) {
  (void)state;
  if (!way->losses) skip();
  for (unsigned how = 0; how < way->losses; ++how)
    for (int s = 0; s < STATES; ++s)
      lose_in((enum state)s, how);
}

/* ---- Two, and none --------------------------------------------------------------------------- */

static void two_at_once(void **state) {
  (void)state;
  if (!way->second) skip();
  start(2);
  ct_device *a = open_or_fail(way->uri), *b = open_or_fail(way->second);
  ct_program *p = endless(a);
  const uint64_t tag = submit(a, p, CT_TRAINING);
  for (int i = 0; i < 3; ++i) {
    check_product(a);
    check_product(b);
  }
  assert_int_equal(ct_cancel(a, tag), CT_OK);
  expect_end(a, tag, CT_ERR_CANCELLED);
  ct_program_free(p);
  close_in_time(a);
  check_product(b);
  close_in_time(b);
  stop();
}

static void refused(const char *uri, int error) {
  ct_device *dev;
  const int err = ct_open(uri, &dev);
  if (err != error) fail_msg("%s: %d, \"%s\"", uri, err, ct_last_error(NULL));
  assert_true(strlen(ct_last_error(NULL)) > 20);
}

/* What cannot be opened says which of three things is in the way; out of it, it can be. */

static void opens_after_all(void) {
  ct_device *dev = open_or_fail(way->uri);
  close_in_time(dev);
  stop();
}

static void not_there(void **state) {
  (void)state;
  if (!way->absent) skip();
  start(1);
  refused(way->absent, CT_ERR_NOT_FOUND);
  opens_after_all();
}

static void in_use(void **state) {
  (void)state;
  if (!way->occupy) skip();
  start(1);
  way->occupy(true);
  refused(way->uri, CT_ERR_BUSY);
  way->occupy(false);
  opens_after_all();
}

static void forbidden(void **state) {
  (void)state;
  if (!way->forbid) skip();
  start(1);
  way->forbid(true);
  ct_obey_modes(true);
  refused(way->uri, CT_ERR_PERMISSION);
  ct_obey_modes(false);
  way->forbid(false);
  opens_after_all();
}

int main(int argc, char **argv) {
  way = conform_way(argc > 1 ? argv[1] : NULL);
  if (!way) return 2;
  if (argc > 2 && strcmp(argv[2], "victim") == 0) return victim();
  if (way->enter && !way->enter(argv)) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(info),
      cmocka_unit_test(the_emulators_bytes),
      cmocka_unit_test(random_accesses),
      cmocka_unit_test(timeouts_and_cancels),
      cmocka_unit_test(a_job_with_an_error),
      cmocka_unit_test(close_with_jobs),
      cmocka_unit_test(killed),
      cmocka_unit_test(lost_in_every_state),
      cmocka_unit_test(two_at_once),
      cmocka_unit_test(not_there),
      cmocka_unit_test(in_use),
      cmocka_unit_test(forbidden),
  };
  if (getenv("CT_ONLY")) cmocka_set_test_filter(getenv("CT_ONLY"));
  return cmocka_run_group_tests_name(way->uri, tests, NULL, NULL);
}
