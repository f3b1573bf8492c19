/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE 1 /* cfmakeraw */
#include "ct_serial_bed.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "board/board_sim.h"
#include "ct_pty.h"
#include "ct_tb.h"
#include "ct_usb_behind.h"

enum { BUFFER = 4096, STEPS = 256, FULL_MS = 200 };

struct ct_serial_bed {
  int host, port; /* the pseudo terminal: our end, and the port, held open */
  char file[CT_PTY_NAME];
  pthread_t thread;

  /* Of the thread. */
  struct board_sim *rtl; /* NULL: the model in C */
  struct ct_usb_behind model;
  uint8_t in[BUFFER], out[BUFFER]; /* to the board, from it */
  size_t in_at, in_count, out_count;
  ct_rng rng;

  pthread_mutex_t lock; /* of what follows */
  struct ct_serial_faults faults;
  bool stop, gone;
};

static struct ct_serial_faults faults_of(struct ct_serial_bed *b) {
  pthread_mutex_lock(&b->lock);
  const struct ct_serial_faults f = b->faults;
  pthread_mutex_unlock(&b->lock);
  return f;
}

/* ---- The line ------------------------------------------------------------------------------ */

/* A port without flow control: what nobody takes is lost. */
static void send_out(struct ct_serial_bed *b) {
  struct pollfd p = {.fd = b->host, .events = POLLOUT};
  size_t done = 0;
  while (done < b->out_count && !faults_of(b).silent) {
    const ssize_t n = write(b->host, b->out + done, b->out_count - done);
    if (n > 0)
      done += (size_t)n;
    else if (poll(&p, 1, FULL_MS) <= 0)
      break;
  }
  b->out_count = 0;
}

static bool spoil(struct ct_serial_bed *b, const struct ct_serial_faults *f, uint8_t *byte) {
  if (f->drop && ct_rng_below(&b->rng, 1000000) < f->drop) return false;
  if (f->damage && ct_rng_below(&b->rng, 1000000) < f->damage)
    *byte ^= (uint8_t)(1 + ct_rng_below(&b->rng, 255));
  return true;
}

static void came(void *arg, uint8_t byte) {
  struct ct_serial_bed *b = arg;
  b->out[b->out_count++] = byte;
  if (b->out_count == BUFFER) send_out(b);
}

static void flush(void *arg) {
  send_out(arg);
}

static int next(void *arg) {
  struct ct_serial_bed *b = arg;
  return b->in_at < b->in_count ? b->in[b->in_at++] : -1;
}

static void board_sends(void *arg, const uint8_t *bytes, size_t size) {
  struct ct_serial_bed *b = arg;
  const struct ct_serial_faults f = faults_of(b);
  for (size_t i = 0; i < size; ++i) {
    uint8_t byte = bytes[i];
    if (spoil(b, &f, &byte)) came(b, byte);
  }
  send_out(b);
}

static void run_model(struct ct_serial_bed *b) {
  const struct ct_serial_faults f = faults_of(b);
  const bool idle = b->in_at == b->in_count;
  for (int byte; (byte = next(b)) >= 0;) {
    uint8_t taken = (uint8_t)byte;
    if (spoil(b, &f, &taken)) ct_usb_board_take(&b->model.board, taken);
  }
  ct_usb_behind_run(&b->model, idle);
}

static void run_rtl(struct ct_serial_bed *b) {
  for (unsigned i = 0; i < STEPS; ++i)
    if (!board_sim_step(b->rtl)) fail_msg("the board: %s", board_sim_fault(b->rtl));
}

static void *run(void *arg) {
  struct ct_serial_bed *b = arg;
  for (bool stop = false; !stop;) {
    pthread_mutex_lock(&b->lock);
    if (b->in_at == b->in_count && !b->gone) {
      const ssize_t n = read(b->host, b->in, sizeof b->in);
      b->in_at = 0;
      b->in_count = n > 0 ? (size_t)n : 0;
    }
    stop = b->stop;
    pthread_mutex_unlock(&b->lock);
    if (b->rtl)
      run_rtl(b);
    else
      run_model(b);
  }
  return NULL;
}

/* ---- The bed ------------------------------------------------------------------------------- */

static void open_board(struct ct_serial_bed *b, const char *device) {
  static const struct board_sim_options options = {.serial = true, .seed = 1};
  const struct board_host host = {next, came, flush, b};
  if (strcmp(device, "rtl:") == 0) {
    b->rtl = board_sim_new(&options, &host);
    assert_non_null(b->rtl);
    return;
  }
  ct_usb_behind_open(&b->model, device, board_sends, b);
}

static void open_port(struct ct_serial_bed *b) {
  struct termios t;
  assert_int_equal(fcntl(b->host, F_SETFL, O_NONBLOCK), 0);
  b->port = open(b->file, O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true(b->port >= 0);
  tcgetattr(b->port, &t);
  cfmakeraw(&t);
  assert_int_equal(tcsetattr(b->port, TCSANOW, &t), 0);
}

struct ct_serial_bed *ct_serial_bed_new(const char *device) {
  char file[CT_PTY_NAME];
  const int host = ct_pty_open(file);
  struct ct_serial_bed *b = calloc(1, sizeof *b);
  assert_non_null(b);
  b->host = host;
  memcpy(b->file, file, sizeof file);
  b->rng = ct_rng_make(78);
  pthread_mutex_init(&b->lock, NULL);
  open_port(b);
  open_board(b, device);
  assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
  return b;
}

void ct_serial_bed_free(struct ct_serial_bed *b) {
  pthread_mutex_lock(&b->lock);
  b->stop = true;
  pthread_mutex_unlock(&b->lock);
  pthread_join(b->thread, NULL);
  if (!b->gone) close(b->host);
  if (!b->gone) close(b->port);
  ct_usb_behind_close(&b->model);
  board_sim_free(b->rtl);
  pthread_mutex_destroy(&b->lock);
  free(b);
}

const char *ct_serial_bed_file(const struct ct_serial_bed *b) {
  return b->file;
}

void ct_serial_bed_faults(struct ct_serial_bed *b, struct ct_serial_faults faults) {
  pthread_mutex_lock(&b->lock);
  b->faults = faults;
  pthread_mutex_unlock(&b->lock);
}

void ct_serial_bed_unplug(struct ct_serial_bed *b) {
  pthread_mutex_lock(&b->lock);
  b->gone = true;
  b->faults.silent = true;
  close(b->port);
  close(b->host);
  pthread_mutex_unlock(&b->lock);
}

void ct_serial_bed_occupy(struct ct_serial_bed *b, bool occupied) {
  assert_int_equal(flock(b->port, occupied ? LOCK_EX : LOCK_UN), 0);
}

void ct_serial_bed_killed(struct ct_serial_bed *b) {
  assert_int_equal(ioctl(b->port, TIOCNXCL), 0);
}
