/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plug-in "usb:": a board on USB that speaks the protocol of docs/usb.md.
 *
 * Register accesses and short memory accesses are one frame and one round trip; a short write to
 * memory is kept back and travels in front of whatever comes next, so that a descriptor and its
 * doorbell are one frame. What is not answered in time is repeated with the same tag, which the
 * board does not do twice. Long accesses to memory keep several frames under way; they may be done
 * twice, so what is missing of them goes again under new tags.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "coltrain/coltrain.h" /* the errors transports return */
#include "coltrain_spec.h"
#include "ct_usb_frame.h"
#include "ct_usb_link.h"
#include "host/transports/ct_transport.h"
#include "host/transports/ct_uri.h"

enum {
  CHUNK = 1024,      /* data of a frame of a long access; never crosses 4 KB */
  WINDOW = 8,        /* such frames under way */
  ATTEMPTS = 4,      /* each waits twice as long as the one before */
  HEARTBEAT_MS = 500 /* of a wait: is the board still there? */
};

/* A request under way. */
struct flight {
  struct ct_usb_frame request;
  bool answered;
  uint8_t code;
  uint8_t *data; /* where the answer goes, `expected` bytes */
  size_t expected;
};

struct usb {
  struct ct_usb_link *link;
  struct ct_usb_parser parser; /* of the link's thread */
  uint16_t tag;                /* of the next request */
  uint32_t clock_hz, given_hz; /* by clock= */
  unsigned timeout_ms;         /* all attempts together */
  struct ct_usb_frame kept;    /* short writes that go with the next request */
  uint8_t out[CT_USB_FRAME * (WINDOW + 1)];
  char error[256];
  bool dead;

  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t changed;
  struct flight flight[WINDOW];
  unsigned flights;
  bool irq, gone, up; /* up: the descriptor is readable */
  int fd;
};

/* ---- What comes ---------------------------------------------------------------------------- */

/* Locked. The descriptor shows what the last frame said of the interrupt, and the end. */
static void show(struct usb *u) {
  uint64_t count = 1;
  const bool up = u->irq || u->gone;
  if (up == u->up) return;
  const ssize_t n = up ? write(u->fd, &count, sizeof count) : read(u->fd, &count, sizeof count);
  if (n == (ssize_t)sizeof count) u->up = up;
}

static void take_answer(struct usb *u, const struct ct_usb_frame *f) {
  for (unsigned i = 0; i < u->flights; ++i) {
    struct flight *x = &u->flight[i];
    if (x->answered || x->request.tag != f->tag) continue;
    x->code = f->status & ~CT_USB_IRQ;
    if (x->code == CT_USB_OK && f->size != x->expected) x->code = CT_USB_DAMAGED;
    if (x->code == CT_USB_OK && x->expected) memcpy(x->data, f->payload, x->expected);
    x->answered = true;
  }
}

/* In the link's thread. */
static void take(void *arg, const uint8_t *bytes, size_t size) {
  struct usb *u = arg;
  pthread_mutex_lock(&u->lock);
  u->gone = u->gone || !bytes;
  for (size_t i = 0; bytes && i < size; ++i) {
    const struct ct_usb_frame *f = &u->parser.frame;
    if (ct_usb_take(&u->parser, bytes[i]) != CT_USB_WHOLE) continue;
    if (f->kind != CT_USB_ANSWER && f->kind != CT_USB_EVENT) continue;
    u->irq = f->status & CT_USB_IRQ;
    if (f->kind == CT_USB_ANSWER) take_answer(u, f);
  }
  show(u);
  pthread_cond_broadcast(&u->changed);
  pthread_mutex_unlock(&u->lock);
}

/* ---- Requests ------------------------------------------------------------------------------ */

static struct timespec after(unsigned ms) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += ms / 1000;
  t.tv_nsec += (long)(ms % 1000) * 1000000;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}

/* Locked. */
static bool all_answered(const struct usb *u) {
  bool all = true;
  for (unsigned i = 0; i < u->flights; ++i)
    all = all && u->flight[i].answered;
  return all;
}

static int die(struct usb *u, const char *why) {
  if (!u->dead) snprintf(u->error, sizeof u->error, "%s", why);
  u->dead = true;
  pthread_mutex_lock(&u->lock);
  u->flights = 0; /* late answers find nobody */
  u->gone = true;
  show(u);
  pthread_mutex_unlock(&u->lock);
  return CT_ERR_DEVICE;
}

/* Sends what is not answered. In front of a repetition come as many zeros as end any frame whose
 * bytes were lost. */
static int send_rest(struct usb *u, bool again, unsigned timeout_ms) {
  size_t size = again ? CT_USB_FRAME : 0;
  memset(u->out, 0, size);
  pthread_mutex_lock(&u->lock);
  for (unsigned i = 0; i < u->flights; ++i)
    if (!u->flight[i].answered) size += ct_usb_put(&u->flight[i].request, u->out + size);
  pthread_mutex_unlock(&u->lock);
  const int err = ct_usb_link_send(u->link, u->out, size, timeout_ms);
  return err == CT_ERR_TIMEOUT ? CT_OK : err;
}

/* Waits for the answers; those that say that the request came damaged count as missing. */
static bool await(struct usb *u, unsigned timeout_ms) {
  const struct timespec end = after(timeout_ms);
  pthread_mutex_lock(&u->lock);
  while (!all_answered(u) && !u->gone && !pthread_cond_timedwait(&u->changed, &u->lock, &end)) {
  }
  for (unsigned i = 0; i < u->flights; ++i)
    u->flight[i].answered = u->flight[i].answered && u->flight[i].code != CT_USB_DAMAGED;
  const bool all = all_answered(u);
  pthread_mutex_unlock(&u->lock);
  return all;
}

/* New tags for what is missing: several were under way, so the board may have forgotten them. */
static void new_tags(struct usb *u) {
  pthread_mutex_lock(&u->lock);
  for (unsigned i = 0; i < u->flights; ++i)
    if (!u->flight[i].answered) u->flight[i].request.tag = u->tag++;
  pthread_mutex_unlock(&u->lock);
}

/* Locks out the link's thread before flights are changed. */
static void begin_flights(struct usb *u) {
  pthread_mutex_lock(&u->lock);
  u->flights = 0;
  pthread_mutex_unlock(&u->lock);
}

static struct flight *add_flight(struct usb *u, uint8_t kind) {
  struct flight *x = &u->flight[u->flights];
  x->request.kind = kind;
  x->request.status = 0;
  x->request.tag = u->tag++;
  x->request.size = 0;
  x->answered = false;
  x->data = NULL;
  x->expected = 0;
  return x;
}

/* Has the flights done, each once. */
static int fly(struct usb *u, unsigned flights) {
  char why[160];
  pthread_mutex_lock(&u->lock);
  u->flights = flights;
  pthread_mutex_unlock(&u->lock);
  for (unsigned i = 0; i < ATTEMPTS && !u->dead; ++i) {
    const unsigned ms = (u->timeout_ms << i) / ((1 << ATTEMPTS) - 1) + 1;
    if (i && flights > 1) new_tags(u);
    if (send_rest(u, i > 0, ms)) return die(u, ct_usb_link_error(u->link));
    if (await(u, ms)) return CT_OK;
    if (*ct_usb_link_error(u->link)) return die(u, ct_usb_link_error(u->link));
  }
  snprintf(why, sizeof why, "%s does not answer", ct_usb_link_name(u->link));
  return die(u, why);
}

static int error_of(struct usb *u, uint8_t code) {
  if (code == CT_USB_OK) return CT_OK;
  if (code == CT_USB_REG) return CT_ERR_ARG;
  snprintf(u->error, sizeof u->error, "%s answered with code %u%s", ct_usb_link_name(u->link), code,
           code == CT_USB_MEM ? ": its memory refuses an access" : "");
  return CT_ERR_DEVICE;
}

/* Sends one request, with what was kept back in front; its operations are in u->kept. */
static int send_kept(struct usb *u, uint8_t *answer, size_t expected) {
  if (u->dead) return CT_ERR_DEVICE;
  begin_flights(u);
  struct flight *x = add_flight(u, CT_USB_REQUEST);
  x->request.size = u->kept.size;
  memcpy(x->request.payload, u->kept.payload, u->kept.size);
  x->data = answer;
  x->expected = expected;
  u->kept.size = 0;
  const int err = fly(u, 1);
  return err ? err : error_of(u, x->code);
}

static int flush(struct usb *u) {
  return u->kept.size ? send_kept(u, NULL, 0) : u->dead ? CT_ERR_DEVICE : CT_OK;
}

static void put_op(struct ct_usb_frame *f, uint8_t op, uint64_t address, size_t n, uint32_t word) {
  uint8_t *p = f->payload + f->size;
  p[0] = op;
  p[1] = (uint8_t)(address >> 32);
  ct_usb_put16(p + 2, (uint16_t)n);
  ct_usb_put32(p + 4, word);
  f->size += CT_USB_OP;
}

/* Adds an operation to the next request; what it has no room for goes first. */
static int keep_op(struct usb *u, uint8_t op, size_t n, uint32_t word) {
  const int err = u->kept.size + CT_USB_OP > CT_USB_PAYLOAD ? flush(u) : CT_OK;
  if (!err) put_op(&u->kept, op, 0, n, word);
  return err;
}

/* ---- Registers ----------------------------------------------------------------------------- */

static bool is_register(uint32_t offset) {
  return offset % 4 == 0 && offset < 0x1000;
}

static int usb_reg_read(void *self, uint32_t offset, uint32_t *value) {
  struct usb *u = self;
  uint8_t word[4] = {0};
  if (!is_register(offset)) return CT_ERR_ARG;
  int err = keep_op(u, CT_USB_REG_READ, offset, 0);
  if (!err) err = send_kept(u, word, sizeof word);
  *value = ct_usb_get32(word);
  if (offset == CT_REG_CLOCK_HZ && *value == 0) *value = u->given_hz;
  return err;
}

static int usb_reg_write(void *self, uint32_t offset, uint32_t value) {
  struct usb *u = self;
  if (!is_register(offset)) return CT_ERR_ARG;
  const int err = keep_op(u, CT_USB_REG_WRITE, offset, value);
  return err ? err : send_kept(u, NULL, 0);
}

static int usb_now(void *self, uint64_t *cycle) {
  struct usb *u = self;
  uint8_t words[8] = {0};
  int err = keep_op(u, CT_USB_REG_READ, CT_REG_CYCLE_LO, 0);
  if (!err && u->kept.size + CT_USB_OP > CT_USB_PAYLOAD) err = CT_ERR_INTERNAL;
  if (!err) err = keep_op(u, CT_USB_REG_READ, CT_REG_CYCLE_HI, 0);
  if (!err) err = send_kept(u, words, sizeof words);
  *cycle = (uint64_t)ct_usb_get32(words + 4) << 32 | ct_usb_get32(words);
  return err;
}

/* ---- Memory -------------------------------------------------------------------------------- */

/* Bytes of an access that fit one operation: up to the next multiple of CHUNK. */
static size_t chunk(uint64_t addr, size_t size) {
  const size_t room = CHUNK - (size_t)(addr % CHUNK);
  return size < room ? size : room;
}

/* A window's worth of a long access; returns the bytes done, or an error. */
static int64_t window(struct usb *u, uint64_t addr, const uint8_t *from, uint8_t *to, size_t size) {
  size_t done = 0;
  unsigned n = 0;
  begin_flights(u);
  for (; n < WINDOW && done < size; ++n) {
    struct flight *x = &u->flight[n];
    const size_t bytes = chunk(addr + done, size - done);
    x->request = (struct ct_usb_frame){.kind = CT_USB_REQUEST, .tag = u->tag++};
    x->answered = false;
    x->data = to ? to + done : NULL;
    x->expected = to ? bytes : 0;
    put_op(&x->request, to ? CT_USB_MEM_READ : CT_USB_MEM_WRITE, addr + done, bytes,
           (uint32_t)(addr + done));
    if (from) {
      memcpy(x->request.payload + x->request.size, from + done, bytes);
      x->request.size = (uint16_t)(x->request.size + bytes);
    }
    done += bytes;
  }
  int err = fly(u, n);
  for (unsigned i = 0; i < n && !err; ++i)
    err = error_of(u, u->flight[i].code);
  return err ? err : (int64_t)done;
}

static int access_memory(struct usb *u, uint64_t addr, const uint8_t *from, uint8_t *to,
                         size_t size) {
  const int err = flush(u);
  if (err) return err;
  for (size_t done = 0; done < size;) {
    const int64_t n =
        window(u, addr + done, from ? from + done : NULL, to ? to + done : NULL, size - done);
    if (n < 0) return (int)n;
    done += (size_t)n;
  }
  return CT_OK;
}

static int usb_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  return access_memory(self, addr, NULL, buf, size);
}

static int usb_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  struct usb *u = self;
  if (u->dead) return CT_ERR_DEVICE;
  const bool is_short = size <= CHUNK && chunk(addr, size) == size;
  /* Room stays for the register accesses that send it. */
  if (!is_short || u->kept.size + size + CT_USB_OP > CT_USB_PAYLOAD - 4 * CT_USB_OP)
    return access_memory(u, addr, buf, NULL, size);
  put_op(&u->kept, CT_USB_MEM_WRITE, addr, size, (uint32_t)addr);
  memcpy(u->kept.payload + u->kept.size, buf, size);
  u->kept.size = (uint16_t)(u->kept.size + size);
  return CT_OK;
}

/* ---- Waiting ------------------------------------------------------------------------------- */

static int64_t ms_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Sleeps until the interrupt is up, or the board is gone, or so many ms have passed. */
static bool sleep_until_irq(struct usb *u, unsigned ms) {
  const struct timespec end = after(ms);
  pthread_mutex_lock(&u->lock);
  while (!u->irq && !u->gone && !pthread_cond_timedwait(&u->changed, &u->lock, &end)) {
  }
  const bool irq = u->irq;
  pthread_mutex_unlock(&u->lock);
  return irq;
}

/* How long the device's clock takes to reach a cycle; 0: it has. */
static int ms_to_cycle(struct usb *u, uint64_t until, int64_t *ms) {
  uint64_t now = 0;
  *ms = INT64_MAX;
  if (until == CT_NO_CYCLE) return CT_OK;
  const int err = usb_now(u, &now);
  if (until <= now)
    *ms = 0;
  else
    *ms = u->clock_hz ? (int64_t)((until - now) / u->clock_hz * 1000 +
                                  (until - now) % u->clock_hz * 1000 / u->clock_hz + 1)
                      : 1;
  return err;
}

static int usb_wait(void *self, uint64_t until, int timeout_ms) {
  struct usb *u = self;
  const int64_t end = timeout_ms < 0 ? INT64_MAX : ms_now() + timeout_ms;
  int err = flush(u);
  while (!err) {
    int64_t ms, left = end == INT64_MAX ? INT64_MAX : end - ms_now();
    err = ms_to_cycle(u, until, &ms);
    if (err) break;
    if (left < 0) left = 0;
    if (left < ms) ms = left;
    if (sleep_until_irq(u, ms < HEARTBEAT_MS ? (unsigned)ms : HEARTBEAT_MS)) return 1;
    if (ms == 0 || (ms <= HEARTBEAT_MS && ms == left)) return u->dead ? CT_ERR_DEVICE : 0;
    err = send_kept(u, NULL, 0);
  }
  return err;
}

static int usb_irq_fd(void *self) {
  return ((struct usb *)self)->fd;
}

static const char *usb_error(void *self) {
  return ((struct usb *)self)->error;
}

/* ---- Opening and closing ------------------------------------------------------------------- */

static bool parse(const char *args, struct ct_usb_where *w, struct usb *u, char *why,
                  size_t whysize) {
  struct ct_uri uri;
  if (!ct_uri_parse(&uri, "usb", args, why, whysize)) return false;
  *w = (struct ct_usb_where){.bus = ct_uri_number(&uri, "bus"),
                             .address = ct_uri_number(&uri, "addr"),
                             .vid = ct_uri_number(&uri, "vid"),
                             .pid = ct_uri_number(&uri, "pid"),
                             .latency = ct_uri_number(&uri, "latency")};
  ct_uri_text(&uri, "serial", w->serial, sizeof w->serial);
  u->timeout_ms = (unsigned)ct_uri_number(&uri, "timeout");
  u->given_hz = (uint32_t)ct_uri_number(&uri, "clock");
  return true;
}

/* clock= is for a board that cannot tell, and for no other. */
static int find_clock(struct usb *u, char *why, size_t whysize) {
  if (usb_reg_read(u, CT_REG_CLOCK_HZ, &u->clock_hz)) {
    snprintf(why, whysize, "%s", u->error);
    return CT_ERR_DEVICE;
  }
  return ct_uri_clock(u->given_hz, u->clock_hz, why, whysize) ? CT_OK : CT_ERR_ARG;
}

/* Asks what the board speaks. A random tag sets any answers from before apart. */
static int greet(struct usb *u, char *why, size_t whysize) {
  uint8_t hello[CT_USB_HELLO_SIZE] = {0};
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  u->tag = (uint16_t)(t.tv_nsec >> 4 ^ t.tv_sec);
  begin_flights(u);
  struct flight *x = add_flight(u, CT_USB_HELLO);
  x->data = hello;
  x->expected = sizeof hello;
  memset(u->out, 0, CT_USB_FRAME);
  ct_usb_link_send(u->link, u->out, CT_USB_FRAME, u->timeout_ms / 8);
  if (fly(u, 1)) {
    snprintf(why, whysize,
             "%s: is the FPGA configured with Coltrain's USB bridge, and the chip set to 245 FIFO "
             "mode in its EEPROM? (docs/usb.md)",
             u->error);
    return CT_ERR_DEVICE;
  }
  const unsigned version = ct_usb_get16(hello), payload = ct_usb_get16(hello + 2);
  if (version == CT_USB_VERSION && payload >= CT_USB_PAYLOAD) return CT_OK;
  snprintf(why, whysize,
           "%s speaks version %u of the protocol with frames of %u bytes, this library version %u "
           "with %u: use a bitstream and a library of one release",
           ct_usb_link_name(u->link), version, payload, CT_USB_VERSION, CT_USB_PAYLOAD);
  return CT_ERR_ABI;
}

static void usb_close(void *self) {
  struct usb *u = self;
  if (!u) return;
  if (!u->dead) flush(u);
  ct_usb_link_close(u->link);
  if (u->fd >= 0) close(u->fd);
  pthread_cond_destroy(&u->changed);
  pthread_mutex_destroy(&u->lock);
  free(u);
}

static struct usb *new_usb(void) {
  struct usb *u = calloc(1, sizeof *u);
  pthread_condattr_t attr;
  if (!u) return NULL;
  pthread_mutex_init(&u->lock, NULL);
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&u->changed, &attr);
  pthread_condattr_destroy(&attr);
  u->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (u->fd >= 0) return u;
  usb_close(u);
  return NULL;
}

static int usb_open(const char *args, void **self, char *why, size_t whysize) {
  struct ct_usb_where where;
  struct usb *u = new_usb();
  if (!u) {
    snprintf(why, whysize, "the host has no memory or file descriptor left");
    return CT_ERR_MEMORY;
  }
  int err = parse(args, &where, u, why, whysize) ? CT_OK : CT_ERR_ARG;
  if (!err) err = ct_usb_link_open(&where, take, u, &u->link, why, whysize);
  if (!err) err = greet(u, why, whysize);
  if (!err) err = find_clock(u, why, whysize);
  if (err) {
    usb_close(u);
    return err;
  }
  *self = u;
  return CT_OK;
}

const struct ct_transport_ops *ct_transport_plugin(void) {
  static const struct ct_transport_ops ops = {
      .abi = CT_TRANSPORT_ABI,
      .scheme = "usb",
      .open = usb_open,
      .close = usb_close,
      .reg_read = usb_reg_read,
      .reg_write = usb_reg_write,
      .mem_read = usb_mem_read,
      .mem_write = usb_mem_write,
      .wait = usb_wait,
      .now = usb_now,
      .irq_fd = usb_irq_fd,
      .error = usb_error,
      .list = ct_usb_link_list,
  };
  return &ops;
}
