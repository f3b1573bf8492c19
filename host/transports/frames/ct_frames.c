/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coltrain/coltrain.h" /* the errors transports return */
#include "coltrain_spec.h"
#include "ct_deadline.h"
#include "ct_session.h"

enum {
  SHORT = 1024,      /* bytes of a write that may be kept back */
  HEARTBEAT_MS = 500 /* of a wait: is the board still there? */
};

struct ct_frames {
  struct ct_session session;
  struct ct_usb_frame kept;    /* short writes that go with the next request */
  uint32_t clock_hz, given_hz; /* by clock= */
};

/* ---- Requests ------------------------------------------------------------------------------ */

/* Of what a session returns. */
static int error_of(struct ct_frames *f, int code) {
  struct ct_session *s = &f->session;
  if (code <= CT_OK) return code;
  if (code == CT_USB_REG) return CT_ERR_ARG;
  snprintf(s->error, sizeof s->error, "%s answered with code %d%s", s->ops->name(s->line), code,
           code == CT_USB_MEM ? ": its memory refuses an access" : "");
  return CT_ERR_DEVICE;
}

/* Sends one request: the operations in f->kept. */
static int send_kept(struct ct_frames *f, uint8_t *answer, size_t expected) {
  f->kept.kind = CT_USB_REQUEST;
  const int code = ct_session_request(&f->session, &f->kept, answer, expected);
  f->kept.size = 0;
  return error_of(f, code);
}

static int flush(struct ct_frames *f) {
  if (f->session.dead) return CT_ERR_DEVICE;
  return f->kept.size ? send_kept(f, NULL, 0) : CT_OK;
}

/* Adds an operation to the next request; what it has no room for goes first. */
static int keep_op(struct ct_frames *f, uint8_t op, size_t n, uint32_t word) {
  const int err = f->kept.size + CT_USB_OP > CT_USB_PAYLOAD ? flush(f) : CT_OK;
  if (!err) ct_session_put_op(&f->kept, op, 0, n, word);
  return err;
}

/* ---- Registers ----------------------------------------------------------------------------- */

static bool is_register(uint32_t offset) {
  return offset % 4 == 0 && offset < 0x1000;
}

int ct_frames_reg_read(void *self, uint32_t offset, uint32_t *value) {
  struct ct_frames *f = self;
  uint8_t word[4] = {0};
  if (!is_register(offset)) return CT_ERR_ARG;
  int err = keep_op(f, CT_USB_REG_READ, offset, 0);
  if (!err) err = send_kept(f, word, sizeof word);
  *value = ct_usb_get32(word);
  if (offset == CT_REG_CLOCK_HZ && *value == 0) *value = f->given_hz;
  return err;
}

int ct_frames_reg_write(void *self, uint32_t offset, uint32_t value) {
  struct ct_frames *f = self;
  if (!is_register(offset)) return CT_ERR_ARG;
  const int err = keep_op(f, CT_USB_REG_WRITE, offset, value);
  return err ? err : send_kept(f, NULL, 0);
}

int ct_frames_now(void *self, uint64_t *cycle) {
  struct ct_frames *f = self;
  uint8_t words[8] = {0};
  int err = keep_op(f, CT_USB_REG_READ, CT_REG_CYCLE_LO, 0);
  if (!err && f->kept.size + CT_USB_OP > CT_USB_PAYLOAD) err = CT_ERR_INTERNAL;
  if (!err) err = keep_op(f, CT_USB_REG_READ, CT_REG_CYCLE_HI, 0);
  if (!err) err = send_kept(f, words, sizeof words);
  *cycle = (uint64_t)ct_usb_get32(words + 4) << 32 | ct_usb_get32(words);
  return err;
}

/* ---- Memory -------------------------------------------------------------------------------- */

static int access_memory(struct ct_frames *f, uint64_t addr, const uint8_t *from, uint8_t *to,
                         size_t size) {
  const int err = flush(f);
  return err ? err : error_of(f, ct_session_stream(&f->session, addr, from, to, size));
}

int ct_frames_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  return access_memory(self, addr, NULL, buf, size);
}

/* Whether an access lies in one block of SHORT bytes, and so in one operation. */
static bool is_short(uint64_t addr, size_t size) {
  return size <= SHORT - (size_t)(addr % SHORT);
}

int ct_frames_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  struct ct_frames *f = self;
  if (f->session.dead) return CT_ERR_DEVICE;
  /* Room stays for the register accesses that send it. */
  if (!is_short(addr, size) || f->kept.size + size + CT_USB_OP > CT_USB_PAYLOAD - 4 * CT_USB_OP)
    return access_memory(f, addr, buf, NULL, size);
  ct_session_put_op(&f->kept, CT_USB_MEM_WRITE, addr, size, (uint32_t)addr);
  memcpy(f->kept.payload + f->kept.size, buf, size);
  f->kept.size = (uint16_t)(f->kept.size + size);
  return CT_OK;
}

/* ---- Waiting ------------------------------------------------------------------------------- */

/* How long the device's clock takes to reach a cycle; 0: it has. */
static int ms_to_cycle(struct ct_frames *f, uint64_t until, int64_t *ms) {
  uint64_t now = 0;
  *ms = INT64_MAX;
  if (until == CT_NO_CYCLE) return CT_OK;
  const int err = ct_frames_now(f, &now);
  if (until <= now)
    *ms = 0;
  else
    *ms = f->clock_hz ? (int64_t)((until - now) / f->clock_hz * 1000 +
                                  (until - now) % f->clock_hz * 1000 / f->clock_hz + 1)
                      : 1;
  return err;
}

int ct_frames_wait(void *self, uint64_t until, int timeout_ms) {
  struct ct_frames *f = self;
  const int64_t end = timeout_ms < 0 ? INT64_MAX : ct_ms_now() + timeout_ms;
  int err = flush(f);
  while (!err) {
    int64_t ms, left = end == INT64_MAX ? INT64_MAX : end - ct_ms_now();
    err = ms_to_cycle(f, until, &ms);
    if (err) break;
    if (left < 0) left = 0;
    if (left < ms) ms = left;
    if (ct_session_sleep(&f->session, ms < HEARTBEAT_MS ? (unsigned)ms : HEARTBEAT_MS)) return 1;
    if (ms == 0 || (ms <= HEARTBEAT_MS && ms == left)) return f->session.dead ? CT_ERR_DEVICE : 0;
    err = send_kept(f, NULL, 0);
  }
  return err;
}

int ct_frames_irq_fd(void *self) {
  return ((struct ct_frames *)self)->session.fd;
}

const char *ct_frames_error(void *self) {
  return ((struct ct_frames *)self)->session.error;
}

uint64_t ct_frames_line_rate(void *self) {
  return ((struct ct_frames *)self)->session.limits.rate;
}

/* ---- Opening and closing ------------------------------------------------------------------- */

int ct_frames_new(unsigned timeout_ms, uint32_t given_hz, struct ct_frames **frames, char *why,
                  size_t whysize) {
  struct ct_frames *f = calloc(1, sizeof *f);
  if (!f || !ct_session_begin(&f->session)) {
    ct_frames_close(f);
    snprintf(why, whysize, "the host has no memory or file descriptor left");
    return CT_ERR_MEMORY;
  }
  f->session.timeout_ms = timeout_ms;
  f->given_hz = given_hz;
  *frames = f;
  return CT_OK;
}

void ct_frames_take(void *frames, const uint8_t *bytes, size_t size) {
  ct_session_take(&((struct ct_frames *)frames)->session, bytes, size);
}

void ct_frames_set_line(struct ct_frames *f, const struct ct_line_ops *ops, void *line,
                        const struct ct_line_limits *limits) {
  f->session.ops = ops;
  f->session.line = line;
  f->session.limits = *limits;
}

/* clock= is for a board that cannot tell, and for no other. */
static int find_clock(struct ct_frames *f, char *why, size_t whysize) {
  if (ct_frames_reg_read(f, CT_REG_CLOCK_HZ, &f->clock_hz)) {
    snprintf(why, whysize, "%s", f->session.error);
    return CT_ERR_DEVICE;
  }
  return ct_uri_clock(f->given_hz, f->clock_hz, why, whysize) ? CT_OK : CT_ERR_ARG;
}

/* Zeros end what another program left unfinished; a random tag sets any answers from before apart.
 */
int ct_frames_greet(struct ct_frames *f, const char *hint, char *why, size_t whysize) {
  static const uint8_t zeros[CT_USB_FRAME];
  struct ct_session *s = &f->session;
  const struct ct_usb_frame request = {.kind = CT_USB_HELLO};
  uint8_t hello[CT_USB_HELLO_SIZE] = {0};
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  s->tag = (uint16_t)(t.tv_nsec >> 4 ^ t.tv_sec);
  s->ops->send(s->line, zeros, sizeof zeros, s->timeout_ms / 8);
  if (ct_session_request(s, &request, hello, sizeof hello)) {
    snprintf(why, whysize, "%s: %s", s->error, hint);
    return CT_ERR_DEVICE;
  }
  const unsigned version = ct_usb_get16(hello), payload = ct_usb_get16(hello + 2);
  if (version == CT_USB_VERSION && payload >= CT_USB_PAYLOAD) return find_clock(f, why, whysize);
  snprintf(why, whysize,
           "%s speaks version %u of the protocol with frames of %u bytes, this library version %u "
           "with %u: use a bitstream and a library of one release",
           s->ops->name(s->line), version, payload, CT_USB_VERSION, CT_USB_PAYLOAD);
  return CT_ERR_ABI;
}

void ct_frames_close(void *frames) {
  struct ct_frames *f = frames;
  if (!f) return;
  if (f->session.ops && !f->session.dead) flush(f);
  ct_session_end(&f->session);
  free(f);
}
