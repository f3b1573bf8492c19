/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "mmio:" without hardware: the library and the coltrain command, as they are, drive a simulated
 * core in another process through each of the files a core can be reached by (mmio_rig.h). The
 * core's memory stalls in every test.
 */
#include "ct_tb.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli_run.h"
#include "coltrain/coltrain.h"
#include "ct_queue.h"
#include "ct_prog.h"
#include "mmio_rig.h"
#include "one_copy.h"
#include "tiny_program.h"

#define STALLS "stall=25,seed=7"

static const char *const uris[] = {RIG_BY_UIO, "mmio:/dev/coltrain,irq=off", RIG_BY_PCI,
                                   RIG_BY_PCI ",irq=/dev/uio2", RIG_BY_MEM};
enum { URIS = sizeof uris / sizeof *uris };

/* Of this process, in ms. */
static uint64_t cpu_ms(void) {
  struct rusage u;
  assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
  return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
         (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static ct_device *open_device(const char *uri) {
  ct_device *dev;
  if (ct_open(uri, &dev)) fail_msg("%s", ct_last_error(NULL));
  return dev;
}

/* Closes it, and the core has seen no access that a device on a bus must not see. */
static void close_device(ct_device *dev) {
  ct_close(dev);
  assert_int_equal(rig_broken(), 0);
}

/* ---- Work ---- */

enum { M = 37, N = 21, K = 50 };

static void multiply(ct_device *dev, uint64_t stream, float *c) {
  ct_rng rng = ct_rng_make(stream);
  float a[M * K], b[K * N];
  for (int i = 0; i < M * K; ++i)
    a[i] = (float)ct_rng_below(&rng, 2001) / 1000 - 1;
  for (int i = 0; i < K * N; ++i)
    b[i] = (float)ct_rng_below(&rng, 2001) / 1000 - 1;
  struct ct_timing timing = {.cycles = 0};
  if (ct_matmul(dev, CT_INFERENCE, M, N, K, a, b, c, &timing)) fail_msg("%s", ct_last_error(dev));
  assert_true(timing.cycles > 100); /* CT_NO_CYCLE on the emulator */
}

static void products_are_the_emulators(void **state) {
  (void)state;
  static float got[M * N], want[M * N];
  ct_device *emu = open_device("emu:");
  for (int i = 0; i < URIS; ++i) {
    rig_start(STALLS);
    multiply(emu, (uint64_t)i, want);
    ct_device *dev = open_device(uris[i]);
    struct ct_info info;
    assert_int_equal(ct_info(dev, &info), CT_OK);
    assert_true(info.has_clock);
    assert_true(info.dram_bytes == (uint64_t)RIG_MIB << 20);
    multiply(dev, (uint64_t)i, got);
    close_device(dev);
    ct_assert_same(uris[i], got, want, sizeof got);
  }
  ct_close(emu);
}

enum { IN = 20, HIDDEN = 24, OUT = 5, BATCH = 16, STEPS = 3 };

struct trained {
  float loss[STEPS], logits[BATCH * OUT], w[HIDDEN * IN], vw[HIDDEN * IN];
};

static void train(const char *uri, struct trained *t) {
  const uint32_t widths[] = {IN, HIDDEN, OUT};
  const struct ct_training how = {.batch = BATCH, .rates = {.lr = 0.1f, .momentum = 0.9f}};
  ct_rng rng = ct_rng_make(99);
  float x[BATCH * IN];
  uint32_t labels[BATCH];
  ct_model *model;
  ct_weights *weights = NULL;
  for (int i = 0; i < BATCH * IN; ++i)
    x[i] = (float)ct_rng_below(&rng, 1000) / 1000;
  for (int i = 0; i < BATCH; ++i)
    labels[i] = ct_rng_below(&rng, OUT);
  ct_device *dev = open_device(uri);
  int err = ct_model_create(dev, widths, 2, 5, &model);
  if (!err) err = ct_model_training(model, &how);
  for (int i = 0; i < STEPS && !err; ++i)
    err = ct_model_step(model, x, labels, &t->loss[i]);
  if (!err) err = ct_model_publish(model, &weights);
  if (!err) err = ct_model_infer(model, weights, x, BATCH, t->logits);
  if (!err) err = ct_model_get(model, 0, t->w, NULL, t->vw, NULL);
  if (err) fail_msg("%s: %s", uri, ct_last_error(dev));
  ct_weights_free(weights);
  ct_model_free(model);
  ct_close(dev);
}

static void training_is_the_emulators(void **state) {
  (void)state;
  static struct trained got, want;
  rig_start(STALLS);
  train("emu:", &want);
  train(RIG_BY_UIO, &got);
  assert_int_equal(rig_broken(), 0);
  ct_assert_same("training", &got, &want, sizeof got);
}

static void digits_by_the_command(void **state) {
  (void)state;
  char args[256];
  rig_start(STALLS);
  snprintf(args, sizeof args,
           "train --device emu: --data digits --layers 64-16-10 --epochs 2 --save %s",
           cli_path("m.ct"));
  free(cli_expect(0, "", args));
  snprintf(args, sizeof args, "infer --device emu: --data digits --model %s", cli_path("m.ct"));
  char *want = cli_expect(0, "", args);
  snprintf(args, sizeof args, "infer --device %s --data digits --model %s", RIG_BY_UIO,
           cli_path("m.ct"));
  char *got = cli_expect(0, "", args);
  assert_non_null(strstr(want, "%"));
  assert_string_equal(got, want);
  free(got);
  free(want);
  assert_int_equal(rig_broken(), 0);
}

/* Nobody can write a register of a bus at a cycle: requests arrive when their time has come or a
 * little later, by the command's two ways of serving, and no answer is there before. Columns:
 * scheduled, start, end. */
static void expect_in_time(const char *csv, const int *column, size_t n) {
  char *text = cli_slurp(cli_path(csv), NULL), *line = strchr(text, '\n');
  size_t rows = 0;
  for (; line && line[1]; line = strchr(line + 1, '\n'), ++rows) {
    uint64_t value[8] = {0};
    char *p = line + 1;
    for (size_t i = 0; i < 8; ++i) {
      value[i] = strtoull(p, NULL, 10);
      p += strcspn(p, ",\n");
      p += *p == ',';
    }
    const uint64_t scheduled = value[column[0]], start = value[column[1]], end = value[column[2]];
    assert_true(scheduled > 0 && start >= scheduled && end > start);
    assert_true(end - scheduled < 10000000);
  }
  assert_int_equal(rows, n);
  free(text);
}

static void requests_come_in_time(void **state) {
  (void)state;
  enum { N = 30 };
  char args[512];
  rig_start(STALLS);
  snprintf(args, sizeof args,
           "serve-bench --device %s --model 64-16-10 --requests %d --load 0.2 --csv %s", RIG_BY_UIO,
           N, cli_path("serve.csv"));
  free(cli_expect(0, "", args));
  expect_in_time("serve.csv", (const int[]){3, 5, 6}, N);
  snprintf(args, sizeof args,
           "colocate --device %s --data digits --layers 64-16-10 --epochs 1 --requests %d --csv %s",
           RIG_BY_UIO, N, cli_path("colocate.csv"));
  free(cli_expect(0, "", args));
  expect_in_time("colocate.csv", (const int[]){1, 2, 3}, N);
  assert_int_equal(rig_broken(), 0);
}

/* ---- Jobs in flight ---- */

enum { TEXT = 16, PLACES = 40, WAIT_MS = 10000 };

struct bed {
  ct_device *dev;
  ct_program *copy, *endless;
  uint64_t at; /* units of memory: 0 holds a text, the others are written to */
};

static struct bed open_bed(const char *uri) {
  struct bed b = {.dev = open_device(uri)};
  struct ct_code code;
  char text[PLACES * TEXT] = "sixteen letters";
  assert_int_equal(one_copy(1, 4096, &code, NULL), CT_OK);
  assert_int_equal(ct_code_load(b.dev, &code, &b.copy), CT_OK);
  b.endless = tiny_program(b.dev, true);
  assert_int_equal(ct_mem_alloc(b.dev, sizeof text, &b.at), CT_OK);
  assert_int_equal(ct_mem_write(b.dev, b.at, text, sizeof text), CT_OK);
  return b;
}

static void close_bed(struct bed *b) {
  ct_program_free(b->copy);
  ct_program_free(b->endless);
  close_device(b->dev);
}

static uint64_t submit_copy(const struct bed *b, enum ct_queue queue, uint32_t to) {
  uint64_t tag = 0;
  const struct ct_job job = {.program = b->copy,
                             .args = {(uint32_t)(b->at / TEXT), (uint32_t)(b->at / TEXT) + to}};
  if (ct_submit(b->dev, queue, &job, &tag)) fail_msg("%s", ct_last_error(b->dev));
  return tag;
}

static uint64_t submit_endless(const struct bed *b) {
  uint64_t tag = 0;
  const struct ct_job job = {.program = b->endless};
  assert_int_equal(ct_submit(b->dev, CT_INFERENCE, &job, &tag), CT_OK);
  return tag;
}

static void check_copied(const struct bed *b, uint32_t to) {
  char text[TEXT];
  assert_int_equal(ct_mem_read(b->dev, b->at + (uint64_t)to * TEXT, text, TEXT), CT_OK);
  assert_string_equal(text, "sixteen letters");
}

static void check_ends(struct bed *b, uint64_t tag, int error) {
  struct ct_event r;
  if (ct_wait(b->dev, tag, &r, WAIT_MS)) fail_msg("%s", ct_last_error(b->dev));
  assert_int_equal(r.error, error);
}

/* Waiting in vain takes as long as it should, and next to no processor time. */
static void waits_are_bounded_and_idle(void **state) {
  enum { SHORT_MS = 400 };
  (void)state;
  for (int i = 0; i < 2; ++i) { /* with the interrupt and without */
    struct ct_event r;
    rig_start(STALLS);
    struct bed b = open_bed(uris[i]);
    const uint64_t tag = submit_endless(&b);
    assert_int_equal(ct_wait(b.dev, tag, &r, CT_NO_WAIT), CT_ERR_TIMEOUT);
    const uint64_t begin = ct_tb_ms(), cpu = cpu_ms();
    assert_int_equal(ct_wait(b.dev, tag, &r, SHORT_MS), CT_ERR_TIMEOUT);
    assert_in_range(ct_tb_ms() - begin, SHORT_MS, 3 * SHORT_MS);
    assert_in_range(cpu_ms() - cpu, 0, SHORT_MS / 4);
    /* The device's clock as the limit. */
    uint64_t now = 0, later = 0;
    assert_int_equal(ct_now(b.dev, &now), CT_OK);
    assert_int_equal(ct_reap_until(b.dev, &r, now + 3000, CT_FOREVER), CT_ERR_TIMEOUT);
    assert_int_equal(ct_now(b.dev, &later), CT_OK);
    assert_in_range(later, now + 3000, now + 1000000);
    assert_int_equal(ct_cancel(b.dev, tag), CT_OK);
    check_ends(&b, tag, CT_ERR_CANCELLED);
    close_bed(&b);
  }
}

/* What a host that launches a job, waits for its end and launches the next takes for each: of the
 * library, of the driver's files and of the trap that stands for the bus. docs/array.md has it. */
static void a_launch_takes_little(void **state) {
  enum { LAUNCHES = 100, MOST_US = 1000, MHZ = 100 };
  (void)state;
  for (int i = 0; i < 2; ++i) { /* with the interrupt and without */
    struct timespec from, to;
    rig_start(STALLS);
    struct bed b = open_bed(uris[i]);
    check_ends(&b, submit_copy(&b, CT_TRAINING, 1), CT_OK);
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from), 0);
    for (int n = 0; n < LAUNCHES; ++n)
      check_ends(&b, submit_copy(&b, CT_TRAINING, 1), CT_OK);
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to), 0);
    const double us =
        (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
    printf("%s: a launch takes %.1f us of processor time, %.0f cycles at %d MHz\n", uris[i],
           us / LAUNCHES, us / LAUNCHES * MHZ, MHZ);
    assert_true(us > 0 && us / LAUNCHES < MOST_US);
    close_bed(&b);
  }
}

static void jobs_are_cancelled(void **state) {
  (void)state;
  rig_start(STALLS);
  struct bed b = open_bed(RIG_BY_UIO);
  const uint64_t running = submit_endless(&b);
  const uint64_t queued = submit_copy(&b, CT_INFERENCE, 1), kept = submit_copy(&b, CT_INFERENCE, 2);
  check_ends(&b, submit_copy(&b, CT_TRAINING, 3), CT_OK);
  assert_int_equal(ct_cancel(b.dev, queued), CT_OK);
  assert_int_equal(ct_cancel(b.dev, running), CT_OK);
  check_ends(&b, running, CT_ERR_CANCELLED);
  check_ends(&b, queued, CT_ERR_CANCELLED);
  check_ends(&b, kept, CT_OK);
  check_copied(&b, 2);
  check_copied(&b, 3);
  /* A call that blocks for too long cancels its job, and the next call works. */
  enum { SIDE = 128 };
  static float c[M * N], square[SIDE * SIDE];
  assert_int_equal(ct_set_timeout(b.dev, 1), CT_OK);
  assert_int_equal(ct_matmul(b.dev, CT_INFERENCE, SIDE, SIDE, SIDE, square, square, square, NULL),
                   CT_ERR_TIMEOUT);
  assert_int_equal(ct_set_timeout(b.dev, CT_FOREVER), CT_OK);
  multiply(b.dev, 5, c);
  close_bed(&b);
}

static bool is_readable(int fd, int ms) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  assert_in_range(poll(&p, 1, ms), 0, 1);
  return p.revents & POLLIN;
}

/* Sleeps in poll() for every job, and wakes seldom in vain. Returns how often it woke. */
static int poll_for(struct bed *b, int fd, int jobs) {
  int wakes = 0;
  for (; jobs > 0; ++wakes) {
    struct ct_event r;
    int err;
    assert_true(is_readable(fd, WAIT_MS));
    while (jobs > 0 && (err = ct_reap(b->dev, &r, CT_NO_WAIT)) == CT_OK) {
      assert_int_equal(r.error, CT_OK);
      --jobs;
    }
    if (jobs > 0) assert_int_equal(err, CT_ERR_TIMEOUT);
  }
  return wakes;
}

static void poll_descriptor_sleeps(struct bed *b, bool irq) {
  enum { JOBS = 20, HANG_MS = 300 };
  const int fd = ct_poll_fd(b->dev);
  assert_true(fd >= 0);
  assert_false(is_readable(fd, 0));
  for (uint32_t i = 0; i < JOBS; ++i)
    submit_copy(b, (enum ct_queue)(i % 2), 1 + i);
  assert_int_equal(ct_poll_fd(b->dev), fd);
  poll_for(b, fd, JOBS);
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE) + ct_outstanding(b->dev, CT_TRAINING), 0);
  assert_false(is_readable(fd, 100)); /* at rest it stays at rest */
  /* One result taken in while another was waited for. */
  submit_copy(b, CT_INFERENCE, 1);
  check_ends(b, submit_copy(b, CT_INFERENCE, 2), CT_OK);
  assert_true(is_readable(fd, 0));
  assert_int_equal(poll_for(b, fd, 1), 1);
  /* A job that hangs wakes nobody often, and costs little. */
  const uint64_t tag = submit_endless(b), end = ct_tb_ms() + HANG_MS, cpu = cpu_ms();
  int wakes = 0;
  for (struct ct_event r; ct_tb_ms() < end;) {
    if (!is_readable(fd, HANG_MS)) continue;
    assert_int_equal(ct_reap(b->dev, &r, CT_NO_WAIT), CT_ERR_TIMEOUT);
    ++wakes;
  }
  assert_in_range(wakes, 0, irq ? HANG_MS / 30 : HANG_MS);
  assert_in_range(cpu_ms() - cpu, 0, HANG_MS / 3);
  assert_int_equal(ct_cancel(b->dev, tag), CT_OK);
  check_ends(b, tag, CT_ERR_CANCELLED);
}

static void poll_descriptor(void **state) {
  (void)state;
  for (int i = 0; i < 2; ++i) {
    rig_start(STALLS);
    struct bed b = open_bed(uris[i]);
    poll_descriptor_sleeps(&b, i == 0);
    close_bed(&b);
  }
}

enum { IRQ_JOBS = 20 };

/* Waits for jobs one after the other, in the descriptor or in the library; how many interrupts
 * came. */
static uint64_t irqs_of_waits(struct bed *b, int fd) {
  const uint64_t before = rig_irqs();
  for (uint32_t i = 1; i <= IRQ_JOBS; ++i) {
    const uint64_t tag = submit_copy(b, fd < 0 ? CT_INFERENCE : CT_TRAINING, i);
    if (fd < 0)
      check_ends(b, tag, CT_OK);
    else
      poll_for(b, fd, 1);
  }
  return rig_irqs() - before;
}

/* Each job that is waited for gives one, either way of waiting; none, where it had ended before it
 * was waited for. On a busy machine that may be most of them, so there are a few tries. */
static void interrupts_come(void **state) {
  enum { TRIES = 10 };
  (void)state;
  rig_start(STALLS);
  struct bed b = open_bed(RIG_BY_UIO);
  for (int by_descriptor = 0; by_descriptor < 2; ++by_descriptor) {
    const int fd = by_descriptor ? ct_poll_fd(b.dev) : -1;
    uint64_t irqs = 0;
    for (int i = 0; i < TRIES && irqs < (by_descriptor ? IRQ_JOBS / 2 : IRQ_JOBS / 4); ++i) {
      irqs = irqs_of_waits(&b, fd);
      assert_in_range(irqs, 0, by_descriptor ? IRQ_JOBS + 2 : IRQ_JOBS);
    }
    assert_in_range(irqs, by_descriptor ? IRQ_JOBS / 2 : IRQ_JOBS / 4, IRQ_JOBS + 2);
  }
  close_bed(&b);
  rig_start(STALLS);
  b = open_bed(RIG_BY_UIO ",irq=off");
  check_ends(&b, submit_copy(&b, CT_INFERENCE, 1), CT_OK);
  assert_int_equal(rig_irqs(), 0);
  close_bed(&b);
}

/* A line that is not connected makes it slower, not wrong, and not for long. */
static void lost_interrupts(void **state) {
  enum { FIRST = 4, MORE = PLACES - 1, SLICE_MS = 50 };
  (void)state;
  rig_start(STALLS);
  rig_mode(WIRE_NO_IRQ);
  struct bed b = open_bed(RIG_BY_UIO);
  for (uint32_t i = 1; i <= FIRST; ++i)
    check_ends(&b, submit_copy(&b, CT_INFERENCE, i), CT_OK);
  const uint64_t begin = ct_tb_ms();
  for (uint32_t i = 1; i <= MORE; ++i)
    check_ends(&b, submit_copy(&b, CT_TRAINING, i), CT_OK);
  assert_in_range(ct_tb_ms() - begin, 0, SLICE_MS * MORE * 3 / 4);
  poll_for(&b, ct_poll_fd(b.dev), 0);
  for (uint32_t i = 1; i <= MORE; ++i)
    submit_copy(&b, CT_TRAINING, i);
  poll_for(&b, ct_poll_fd(b.dev), MORE);
  close_bed(&b);
  /* Seen by the descriptor alone. */
  b = open_bed(RIG_BY_UIO);
  for (uint32_t i = 1; i <= MORE; ++i) {
    const int fd = ct_poll_fd(b.dev);
    submit_copy(&b, CT_INFERENCE, i);
    poll_for(&b, fd, 1);
  }
  close_bed(&b);
}

/* A line that is stuck makes nobody spin. */
static void endless_interrupts(void **state) {
  enum { HANG_MS = 300, FEW = 20 };
  (void)state;
  for (int by_descriptor = 0; by_descriptor < 2; ++by_descriptor) {
    struct ct_event r;
    rig_start(STALLS);
    rig_mode(WIRE_STUCK);
    struct bed b = open_bed(RIG_BY_UIO);
    const int fd = by_descriptor ? ct_poll_fd(b.dev) : -1;
    const uint64_t tag = submit_endless(&b), end = ct_tb_ms() + HANG_MS, cpu = cpu_ms();
    while (ct_tb_ms() < end)
      if (!by_descriptor || is_readable(fd, HANG_MS))
        assert_int_equal(ct_reap(b.dev, &r, by_descriptor ? CT_NO_WAIT : HANG_MS), CT_ERR_TIMEOUT);
    assert_in_range(cpu_ms() - cpu, 0, HANG_MS / 3);
    assert_in_range(rig_irqs(), 1, FEW);
    assert_int_equal(ct_cancel(b.dev, tag), CT_OK);
    check_ends(&b, tag, CT_ERR_CANCELLED);
    check_ends(&b, submit_copy(&b, CT_TRAINING, 1), CT_OK);
    close_bed(&b);
  }
}

/* ---- Closing, refusing, vanishing ---- */

static void closes_while_busy(void **state) {
  (void)state;
  rig_start(STALLS);
  struct bed b = open_bed(RIG_BY_UIO);
  submit_endless(&b);
  for (uint32_t i = 1; i < PLACES; ++i)
    submit_copy(&b, (enum ct_queue)(i % 2), i);
  const uint64_t begin = ct_tb_ms();
  ct_close(b.dev);
  assert_in_range(ct_tb_ms() - begin, 0, 1000);
  ct_program_free(b.copy);
  ct_program_free(b.endless);
  static float c[M * N];
  ct_device *dev = open_device(RIG_BY_UIO);
  multiply(dev, 6, c);
  close_device(dev);
}

static void check_refused(const char *uri, int error, const char *part) {
  ct_device *dev = NULL;
  const int got = ct_open(uri, &dev);
  const char *text = ct_last_error(NULL);
  if (got != error || dev || !strstr(text, part))
    fail_msg("%s: error %d instead of %d, or \"%s\" is not in: %s", uri, got, error, part, text);
}

/* A core knows its clock: clock= may say the same and nothing else. */
static void the_clock_is_the_cores(void **state) {
  (void)state;
  static const char *const good[] = {RIG_BY_UIO, RIG_BY_UIO ",clock=56.8"};
  rig_start(STALLS ",clock=56.8");
  for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
    struct ct_info info;
    ct_device *dev = open_device(good[i]);
    assert_int_equal(ct_info(dev, &info), CT_OK);
    assert_int_equal(info.clock_hz, 56800000);
    close_device(dev);
    rig_start(STALLS ",clock=56.8");
  }
  check_refused(RIG_BY_UIO ",clock=57", CT_ERR_ARG, "its clock has 56.800000 MHz");
  close_device(open_device(RIG_BY_UIO));
}

static void refusals(void **state) {
  (void)state;
  static const struct {
    const char *uri;
    int error;
    const char *part;
  } table[] = {
      {"mmio:", CT_ERR_ARG, "name the file"},
      {"mmio:regs=0", CT_ERR_ARG, "name the file"},
      {"mmio:/dev/uio0,size=1", CT_ERR_ARG, "has no option \"size\""},
      {"mmio:/dev/uio0,regs=x", CT_ERR_ARG, "option regs=x"},
      {"mmio:/dev/uio0,regs=2", CT_ERR_ARG, "multiple of 4"},
      {"mmio:/dev/uio0,mem-at=8", CT_ERR_ARG, "16"},
      {"mmio:/dev/uio0,mem-size=1000", CT_ERR_ARG, "option mem-size=1000"},
      {"mmio:/dev/uio9", CT_ERR_NOT_FOUND, "/dev/uio9 is not there"},
      {"mmio:/dev/uio3", CT_ERR_PERMISSION, "/dev/uio3: opening it is not allowed"},
      {"mmio:/dev/uio1", CT_ERR_NOT_FOUND, "/dev/uio1 has no map1"},
      {"mmio:/dev/uio2", CT_ERR_NOT_FOUND, "/dev/uio2 has no map0"},
      {"mmio:/dev/uio0,regs=16", CT_ERR_DEVICE, "/dev/uio0 is too small"},
      {"mmio:/dev/uio0,irq=/dev/zero", CT_ERR_ARG, "/dev/zero gives no interrupts"},
      {"mmio:/dev/uio0,irq=/dev/uio9", CT_ERR_NOT_FOUND, "/dev/uio9 is not there"},
      {"mmio:/tmp", CT_ERR_ARG, "/tmp"},
      {"mmio:/dev/null", CT_ERR_DEVICE, "/dev/null: mapping it fails"},
      {"mmio:/dev/zero", CT_ERR_DEVICE, "/dev/zero is not a Coltrain core"},
      {"mmio:/dev/zero", CT_ERR_DEVICE, "is the core programmed, clocked"},
      {"mmio:/proc/self/exe", CT_ERR_IO, "/proc/self/exe: opening it fails"},
      {"mmio:/proc/self/maps", CT_ERR_DEVICE, "/proc/self/maps: mapping it fails"},
      {"mmio:" RIG_PCI "resource0", CT_ERR_ARG, "where is the core's memory?"},
      {"mmio:" RIG_PCI "resource0,mem=/dev/uio9", CT_ERR_NOT_FOUND, "/dev/uio9 is not there"},
      {"mmio:" RIG_PCI "resource0,mem=" RIG_PCI "resource4", CT_ERR_DEVICE,
       "resource4 has 1048576 bytes for the core's memory and the core says it has 16777216"},
      {"mmio:" RIG_PCI "resource0,mem=" RIG_PCI "resource2,mem-at=0x100000", CT_ERR_DEVICE,
       "has 15728640 bytes"},
      {"mmio:/dev/mem,regs=0xa0000100,mem-at=0x60000010", CT_ERR_ARG, "give mem-size="},
      {"mmio:/dev/mem,regs=0xa0000100", CT_ERR_ARG, "where is the core's memory?"},
      {"mmio:/dev/mem,regs=0xa0000200,mem-at=0x60000010", CT_ERR_DEVICE,
       "at the offset 0xa0000200 ID reads"},
  };
  rig_start(STALLS);
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
    check_refused(table[i].uri, table[i].error, table[i].part);
  rig_mode(WIRE_BAD_ID);
  check_refused(RIG_BY_UIO, CT_ERR_DEVICE, "ID reads 0x10ee7024");
  rig_mode(WIRE_BAD_ABI);
  check_refused(RIG_BY_UIO, CT_ERR_ABI, "interface version 2, this library 1");
  rig_mode(WIRE_ONES);
  check_refused(RIG_BY_UIO, CT_ERR_DEVICE, "/dev/uio0: the registers read all ones");
  rig_mode(WIRE_VANISH);
  check_refused(RIG_BY_UIO, CT_ERR_DEVICE, "/dev/uio0: the registers vanish");
  rig_mode(WIRE_NO_MEM);
  check_refused(RIG_BY_UIO, CT_ERR_DEVICE, "does not keep what is written");
  rig_mode(WIRE_NORMAL);
  close_device(open_device(RIG_BY_UIO)); /* none of them left anything behind */
}

/* Less memory than the core has, if that is said. */
static void less_memory(void **state) {
  (void)state;
  struct ct_info info;
  static float c[M * N];
  rig_start(STALLS);
  ct_device *dev =
      open_device("mmio:" RIG_PCI "resource0,mem=" RIG_PCI "resource2,mem-size=0x4fffff");
  assert_int_equal(ct_info(dev, &info), CT_OK);
  assert_true(info.dram_bytes == 4 << 20);
  multiply(dev, 8, c);
  close_device(dev);
}

static void one_user_at_a_time(void **state) {
  (void)state;
  static float c[M * N];
  rig_start(STALLS);
  ct_device *dev = open_device(RIG_BY_UIO);
  check_refused(RIG_BY_UIO, CT_ERR_BUSY, "/dev/uio0 is open elsewhere");
  check_refused("mmio:/dev/coltrain", CT_ERR_BUSY, "/dev/coltrain is open elsewhere");
  char args[128];
  snprintf(args, sizeof args, "info --device %s", RIG_BY_UIO);
  free(cli_expect(1, "/dev/uio0 is open elsewhere", args));
  multiply(dev, 7, c); /* undisturbed */
  close_device(dev);
  char *out = cli_expect(0, "", args);
  assert_non_null(strstr(out, "16 MiB"));
  free(out);
}

/* What coltrain list says about a device. */
static void check_listed(const char *device, const char *error, const char *text) {
  json_t *root = cli_expect_json("list --json -"), *item, *found = NULL;
  size_t i;
  json_array_foreach(cli_at(root, "devices"), i, item) {
    if (!strcmp(json_string_value(cli_at(item, "device")), device)) found = item;
  }
  if (!found) fail_msg("%s is not listed", device);
  assert_string_equal(json_string_value(cli_at(found, "error")), error);
  if (!strstr(json_string_value(cli_at(found, "text")), text))
    fail_msg("%s: %s", device, json_string_value(cli_at(found, "text")));
  assert_true(json_is_true(cli_at(found, "available")) == !*error);
  json_decref(root);
}

static void devices_are_listed(void **state) {
  (void)state;
  static float c[M * N];
  rig_start(STALLS);
  check_listed("mmio:/dev/uio0", "", "UIO device \"");
  check_listed("mmio:/dev/uio2", ct_strerror(CT_ERR_NOT_FOUND), "/dev/uio2 has no map0");
  check_listed("mmio:/dev/uio3", ct_strerror(CT_ERR_PERMISSION), "opening it is not allowed");
  check_listed(RIG_BY_PCI, "", "PCI function with 16 MiB");
  ct_device *dev = open_device(RIG_BY_UIO);
  check_listed("mmio:/dev/uio0", ct_strerror(CT_ERR_BUSY), "/dev/uio0 is open elsewhere");
  multiply(dev, 7, c); /* undisturbed */
  close_device(dev);
  free(cli_expect(0, "", "list"));
}

/* A job that never ends, left behind by a program that was killed, is seen and then gone. */
static void what_was_left_behind(void **state) {
  (void)state;
  rig_start(STALLS);
  uint64_t tag;
  int status;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    ct_device *dev = open_device(RIG_BY_UIO);
    const struct ct_job job = {.program = tiny_program(dev, true)};
    const int err = ct_submit(dev, CT_TRAINING, &job, &tag);
    struct ct_event r;
    if (!err) ct_reap(dev, &r, 100);
    _exit(err != 0); /* as a kill: nothing is closed */
  }
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
  char *out = cli_expect(0, "", "dump --device " RIG_BY_UIO);
  const char *of = strstr(out, "CTX1.STATUS");
  assert_non_null(of);
  assert_memory_equal(strstr(of, " JOB "), " JOB          4 draining\n", 25);
  free(out);
  out = cli_expect(0, "", "reset --device " RIG_BY_UIO);
  assert_non_null(strstr(out, "before: inference idle, training draining\n"));
  free(out);
  out = cli_expect(0, "", "test --device " RIG_BY_UIO);
  assert_non_null(strstr(out, "training   ok "));
  free(out);
}

enum loss { ONES, VANISHED, UNBOUND, CRASHED, LOSSES, REMOVED = LOSSES };

static void lose(enum loss how) {
  if (how == ONES) rig_mode(WIRE_ONES);
  if (how == VANISHED) rig_mode(WIRE_VANISH);
  if (how == UNBOUND) rig_unbind();
  if (how == CRASHED) rig_kill();
  if (how == REMOVED) rig_remove();
}

/* In the middle of a wait; a child does it, so that it happens then. */
static pid_t lose_later(enum loss how) {
  fflush(NULL);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid) return pid;
  cli_sleep_ms(150);
  lose(how);
  _exit(0);
}

static void check_gone(struct bed *b) {
  char bytes[64] = "";
  uint32_t value;
  uint64_t now;
  assert_non_null(strstr(ct_last_error(b->dev), "failed: /"));
  assert_non_null(strstr(ct_last_error(b->dev), "open it again when the device is back"));
  assert_int_equal(ct_reg_read(b->dev, CT_REG_ID, &value), CT_ERR_DEVICE);
  assert_int_equal(ct_mem_write(b->dev, b->at, bytes, sizeof bytes), CT_ERR_DEVICE);
  assert_int_equal(ct_mem_read(b->dev, b->at, bytes, sizeof bytes), CT_ERR_DEVICE);
  assert_int_equal(ct_now(b->dev, &now), CT_ERR_DEVICE);
}

static void check_loss(const char *uri, enum loss how, bool by_descriptor) {
  struct ct_event r;
  rig_start(STALLS);
  struct bed b = open_bed(uri);
  const int fd = by_descriptor ? ct_poll_fd(b.dev) : -1;
  const uint64_t tag = submit_endless(&b), begin = ct_tb_ms();
  int err = CT_ERR_TIMEOUT;
  const pid_t child = lose_later(how);
  if (by_descriptor)
    while (err == CT_ERR_TIMEOUT) {
      assert_true(is_readable(fd, WAIT_MS));
      err = ct_reap(b.dev, &r, CT_NO_WAIT);
    }
  else
    err = ct_wait(b.dev, tag, &r, CT_FOREVER);
  assert_int_equal(err, CT_ERR_DEVICE);
  assert_in_range(ct_tb_ms() - begin, 100, 1500);
  assert_int_equal(waitpid(child, NULL, 0), child);
  check_gone(&b);
  assert_int_equal(ct_reap(b.dev, &r, CT_FOREVER), CT_ERR_DEVICE);
  const uint64_t closing = ct_tb_ms();
  ct_program_free(b.copy);
  ct_program_free(b.endless);
  ct_close(b.dev);
  assert_in_range(ct_tb_ms() - closing, 0, 1000);
}

static void gone_while_waiting(void **state) {
  (void)state;
  for (int how = 0; how < LOSSES; ++how)
    for (int i = 0; i < 2; ++i)
      check_loss(uris[i], (enum loss)how, false);
  check_loss(RIG_BY_PCI, REMOVED, false);
}

static void gone_while_polling(void **state) {
  (void)state;
  for (int how = 0; how < LOSSES; ++how)
    check_loss(uris[how % 2], (enum loss)how, true);
  check_loss(RIG_BY_PCI, REMOVED, true);
}

/* Memory that reads all ones is not taken for data. */
static void gone_before_reading(void **state) {
  (void)state;
  for (int how = 0; how < 2; ++how) {
    rig_start(STALLS);
    struct bed b = open_bed(RIG_BY_UIO);
    char bytes[100];
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(ct_mem_write(b.dev, b.at, bytes, sizeof bytes), CT_OK);
    assert_int_equal(ct_mem_read(b.dev, b.at, bytes, sizeof bytes), CT_OK); /* as data they may */
    rig_mode(how ? WIRE_VANISH : WIRE_ONES);
    assert_int_equal(ct_mem_read(b.dev, b.at, bytes, sizeof bytes), CT_ERR_DEVICE);
    check_gone(&b);
    rig_mode(WIRE_NORMAL);
    assert_int_equal(ct_mem_read(b.dev, b.at, bytes, sizeof bytes), CT_ERR_DEVICE); /* for good */
    ct_program_free(b.copy);
    ct_program_free(b.endless);
    ct_close(b.dev);
    close_device(open_device(RIG_BY_UIO)); /* and it is back */
  }
}

/* Odd places and lengths, against a copy. */
static void memory_is_bytes(void **state) {
  enum { ROOM = 300, ROUNDS = 100 };
  (void)state;
  uint8_t want[ROOM], got[ROOM];
  ct_rng rng = ct_rng_make(3);
  uint64_t at;
  rig_start(STALLS);
  ct_device *dev = open_device(RIG_BY_MEM);
  assert_int_equal(ct_mem_alloc(dev, ROOM, &at), CT_OK);
  ct_rng_fill(&rng, want, ROOM);
  assert_int_equal(ct_mem_write(dev, at, want, ROOM), CT_OK);
  for (int i = 0; i < ROUNDS; ++i) {
    const uint32_t from = ct_rng_below(&rng, ROOM), size = ct_rng_below(&rng, ROOM - from + 1);
    ct_rng_fill(&rng, want + from, size);
    assert_int_equal(ct_mem_write(dev, at + from, want + from, size), CT_OK);
    const uint32_t f = ct_rng_below(&rng, ROOM), n = ct_rng_below(&rng, ROOM - f + 1);
    assert_int_equal(ct_mem_read(dev, at + f, got, n), CT_OK);
    ct_assert_same("memory", got, want + f, n);
  }
  close_device(dev);
}

static int group_end(void **state) {
  rig_stop();
  return cli_remove_folder(state);
}

int main(int argc, char **argv) {
  (void)argc;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_are_the_emulators),
      cmocka_unit_test(training_is_the_emulators),
      cmocka_unit_test(digits_by_the_command),
      cmocka_unit_test(requests_come_in_time),
      cmocka_unit_test(memory_is_bytes),
      cmocka_unit_test(waits_are_bounded_and_idle),
      cmocka_unit_test(a_launch_takes_little),
      cmocka_unit_test(jobs_are_cancelled),
      cmocka_unit_test(poll_descriptor),
      cmocka_unit_test(interrupts_come),
      cmocka_unit_test(lost_interrupts),
      cmocka_unit_test(endless_interrupts),
      cmocka_unit_test(closes_while_busy),
      cmocka_unit_test(the_clock_is_the_cores),
      cmocka_unit_test(refusals),
      cmocka_unit_test(less_memory),
      cmocka_unit_test(one_user_at_a_time),
      cmocka_unit_test(devices_are_listed),
      cmocka_unit_test(what_was_left_behind),
      cmocka_unit_test(gone_while_waiting),
      cmocka_unit_test(gone_while_polling),
      cmocka_unit_test(gone_before_reading),
  };
  if (!rig_begin(argv)) {
    puts("skipped: mmio_trap.so knows x86-64 only");
    return 0;
  }
  return cmocka_run_group_tests(tests, NULL, group_end);
}
