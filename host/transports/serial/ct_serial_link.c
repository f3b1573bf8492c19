/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE 1 /* flock */
#include "ct_serial_link.h"

/* The kernel's own, for any rate; <termios.h> has the same names and cannot be there, too. */
#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/serial.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "coltrain/coltrain.h"

enum { READ_BYTES = 4096, NAME = 300 };

struct serial_link {
  int fd, wake; /* wake: readable when the thread shall end */
  ct_line_take *take;
  void *arg;
  pthread_t thread;
  bool running;
  char name[NAME];

  pthread_mutex_t lock; /* of what follows */
  bool gone;
  char error[NAME + 64];
};

/* ---- The port ------------------------------------------------------------------------------ */

static int cannot_open(const char *file, int error, char *why, size_t whysize) {
  switch (error) {
    case EACCES:
    case EPERM:
      snprintf(why, whysize,
               "no permission for %s: you may have to be in its group (ls -l shows it, usually "
               "dialout)",
               file);
      return CT_ERR_PERMISSION;
    case EBUSY:
      snprintf(why, whysize, "%s is in use by another program: close that first", file);
      return CT_ERR_BUSY;
    case ENOENT:
    case ENXIO:
    case ENODEV:
      snprintf(why, whysize, "there is no port %s: is the board plugged in?", file);
      return CT_ERR_NOT_FOUND;
    case EISDIR:
    case ENOTDIR:
      snprintf(why, whysize, "%s is no serial port", file);
      return CT_ERR_ARG;
    default:
      snprintf(why, whysize, "%s cannot be opened: %s", file, strerror(error));
      return CT_ERR_DEVICE;
  }
}

/* TIOCEXCL keeps others out, but root; the lock keeps out whoever asks for it, as root does. */
static int claim(int fd, const char *file, char *why, size_t whysize) {
  if (flock(fd, LOCK_EX | LOCK_NB))
    return cannot_open(file, errno == EWOULDBLOCK ? EBUSY : errno, why, whysize);
  ioctl(fd, TIOCEXCL);
  return CT_OK;
}

static int set_up(int fd, const char *file, uint32_t baud, char *why, size_t whysize) {
  struct termios2 t = {
      .c_cflag = CS8 | CREAD | CLOCAL | BOTHER, .c_ispeed = baud, .c_ospeed = baud};
  struct serial_struct serial;
  t.c_cc[VMIN] = 1;
  if (ioctl(fd, TCSETS2, &t) || ioctl(fd, TCGETS2, &t)) {
    snprintf(why, whysize, "%s cannot be set to %" PRIu32 " baud: %s", file, baud, strerror(errno));
    return CT_ERR_DEVICE;
  }
  /* A receiver bears 2 % at both ends. */
  if (t.c_ospeed < baud - baud / 50 || t.c_ospeed > baud + baud / 50) {
    snprintf(why, whysize, "%s cannot do %" PRIu32 " baud: the nearest is %" PRIu32, file, baud,
             (uint32_t)t.c_ospeed);
    return CT_ERR_ARG;
  }
  /* An adapter's bytes shall not wait for a timer. Not all have one. */
  if (!ioctl(fd, TIOCGSERIAL, &serial)) {
    serial.flags |= (int)ASYNC_LOW_LATENCY;
    ioctl(fd, TIOCSSERIAL, &serial);
  }
  ioctl(fd, TCFLSH, TCIOFLUSH);
  return CT_OK;
}

static int open_port(const char *file, uint32_t baud, int *port, char *why, size_t whysize) {
  const int fd = open(file, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  struct termios2 before;
  if (fd < 0) return cannot_open(file, errno, why, whysize);
  int err = ioctl(fd, TCGETS2, &before) ? cannot_open(file, ENOTDIR, why, whysize) : CT_OK;
  if (!err) err = claim(fd, file, why, whysize);
  if (!err) err = set_up(fd, file, baud, why, whysize);
  if (err)
    close(fd);
  else
    *port = fd;
  return err;
}

/* ---- Bytes --------------------------------------------------------------------------------- */

/* The first reason counts. */
static void lose(struct serial_link *l) {
  pthread_mutex_lock(&l->lock);
  l->gone = true;
  snprintf(l->error, sizeof l->error, "%s was unplugged", l->name);
  pthread_mutex_unlock(&l->lock);
}

static bool is_gone(struct serial_link *l) {
  pthread_mutex_lock(&l->lock);
  const bool gone = l->gone;
  pthread_mutex_unlock(&l->lock);
  return gone;
}

/* Whether a call may be made again. A port that was unplugged says EIO, or that nothing comes any
 * more. */
static bool is_passing(ssize_t n) {
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void *take_bytes(void *arg) {
  struct serial_link *l = arg;
  uint8_t bytes[READ_BYTES];
  struct pollfd p[] = {{.fd = l->fd, .events = POLLIN}, {.fd = l->wake, .events = POLLIN}};
  for (;;) {
    const int ready = poll(p, 2, -1);
    if (ready < 0 && errno == EINTR) continue;
    if (p[1].revents) return NULL;
    const ssize_t n = read(l->fd, bytes, sizeof bytes);
    if (n > 0) {
      l->take(l->arg, bytes, (size_t)n);
    } else if (ready < 0 || !is_passing(n)) {
      lose(l);
      l->take(l->arg, NULL, 0);
      return NULL;
    }
  }
}

int ct_serial_link_send(void *link, const uint8_t *bytes, size_t size, unsigned timeout_ms) {
  struct serial_link *l = link;
  for (size_t done = 0; done < size && !is_gone(l);) {
    struct pollfd p = {.fd = l->fd, .events = POLLOUT};
    const ssize_t n = write(l->fd, bytes + done, size - done);
    if (n > 0)
      done += (size_t)n;
    else if (!is_passing(n))
      lose(l);
    else if (poll(&p, 1, (int)timeout_ms) == 0)
      return CT_ERR_TIMEOUT;
  }
  return is_gone(l) ? CT_ERR_DEVICE : CT_OK;
}

const char *ct_serial_link_error(void *link) {
  struct serial_link *l = link;
  return is_gone(l) ? l->error : "";
}

const char *ct_serial_link_name(const void *link) {
  return ((const struct serial_link *)link)->name;
}

/* ---- Opening and closing ------------------------------------------------------------------- */

/* The thread leaves signals to the program's own. */
static bool start_thread(struct serial_link *l) {
  sigset_t all, before;
  l->wake = eventfd(0, EFD_CLOEXEC);
  if (l->wake < 0) return false;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  l->running = pthread_create(&l->thread, NULL, take_bytes, l) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return l->running;
}

int ct_serial_link_open(const struct ct_serial_where *where, ct_line_take *take, void *arg,
                        void **link, char *why, size_t whysize) {
  struct serial_link *l = calloc(1, sizeof *l);
  if (!l) {
    snprintf(why, whysize, "the host has no memory left");
    return CT_ERR_MEMORY;
  }
  l->fd = l->wake = -1;
  l->take = take;
  l->arg = arg;
  pthread_mutex_init(&l->lock, NULL);
  snprintf(l->name, sizeof l->name, "the board at %s", where->file);
  int err = open_port(where->file, where->baud, &l->fd, why, whysize);
  if (!err && !start_thread(l)) {
    snprintf(why, whysize, "the host has no thread or file descriptor left");
    err = CT_ERR_MEMORY;
  }
  if (err)
    ct_serial_link_close(l);
  else
    *link = l;
  return err;
}

void ct_serial_link_close(void *link) {
  struct serial_link *l = link;
  const uint64_t one = 1;
  if (!l) return;
  if (l->running && write(l->wake, &one, sizeof one) == (ssize_t)sizeof one)
    pthread_join(l->thread, NULL);
  if (l->fd >= 0) {
    ioctl(l->fd, TCFLSH, TCOFLUSH); /* or close() waits until it has gone */
    ioctl(l->fd, TIOCNXCL);
    close(l->fd);
  }
  if (l->wake >= 0) close(l->wake);
  pthread_mutex_destroy(&l->lock);
  free(l);
}
