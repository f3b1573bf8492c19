/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_session.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "coltrain/coltrain.h" /* the errors transports return */
#include "ct_deadline.h"

enum {
  BEAT = 16,
  PAGE = 4096,   /* no operation on memory crosses a multiple of it */
  READ = 2048,   /* data of a frame of a long access, */
  WRITE = 2032,  /* with two operations, if it crosses a page */
  ATTEMPTS = 4,  /* each waits twice as long as the one before */
  MOST_SENT = 16 /* of one request of a long access, while others are answered */
};

/* ---- What comes ---------------------------------------------------------------------------- */

/* Locked. The descriptor shows what the last frame said of the interrupt, and the end. */
static void show(struct ct_session *s) {
  uint64_t count = 1;
  const bool up = s->irq || s->gone;
  if (up == s->up) return;
  const ssize_t n = up ? write(s->fd, &count, sizeof count) : read(s->fd, &count, sizeof count);
  if (n == (ssize_t)sizeof count) s->up = up;
}

static void take_answer(struct ct_session *s, const struct ct_usb_frame *f) {
  struct ct_flight *x = NULL;
  for (unsigned i = 0; i < CT_SESSION_WINDOW && !x; ++i)
    if (s->flight[i].used && !s->flight[i].answered && s->flight[i].request.tag == f->tag)
      x = &s->flight[i];
  if (!x) return;
  x->code = f->status & ~CT_USB_IRQ;
  if (x->code == CT_USB_OK && f->size != x->expected) x->code = CT_USB_DAMAGED;
  if (x->code == CT_USB_OK && x->expected) memcpy(x->data, f->payload, x->expected);
  x->answered = true;
  ++s->answers;
  for (unsigned i = 0; i < CT_SESSION_WINDOW; ++i) {
    struct ct_flight *before = &s->flight[i];
    if (before->used && !before->answered && (int32_t)(before->order - x->order) < 0)
      before->missing = true;
  }
}

/* Locked. */
static void take_frame(void *arg, const struct ct_usb_frame *f) {
  struct ct_session *s = arg;
  if (f->kind != CT_USB_ANSWER && f->kind != CT_USB_EVENT) return;
  s->irq = f->status & CT_USB_IRQ;
  if (f->kind == CT_USB_ANSWER) take_answer(s, f);
}

void ct_session_take(void *arg, const uint8_t *bytes, size_t size) {
  struct ct_session *s = arg;
  pthread_mutex_lock(&s->lock);
  s->gone = s->gone || !bytes;
  s->taken += (uint32_t)size;
  if (bytes) ct_usb_take_stream(&s->parser, bytes, size, take_frame, s);
  show(s);
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

/* ---- Waiting and giving up ----------------------------------------------------------------- */

bool ct_session_sleep(struct ct_session *s, unsigned ms) {
  const struct timespec end = ct_after_ms(ms);
  pthread_mutex_lock(&s->lock);
  while (!s->irq && !s->gone && !pthread_cond_timedwait(&s->changed, &s->lock, &end)) {
  }
  const bool irq = s->irq;
  pthread_mutex_unlock(&s->lock);
  return irq;
}

/* Waits for an answer to anything that is under way; once more as long, if bytes came: on a slow
 * line an answer takes a while. */
static bool await(struct ct_session *s, unsigned timeout_ms) {
  pthread_mutex_lock(&s->lock);
  const uint32_t before = s->taken;
  for (unsigned times = 0; times < 2 && !s->answers && !s->gone; ++times) {
    const struct timespec end = ct_after_ms(timeout_ms);
    if (times && s->taken == before) break;
    while (!s->answers && !s->gone && !pthread_cond_timedwait(&s->changed, &s->lock, &end)) {
    }
  }
  const bool any = s->answers;
  pthread_mutex_unlock(&s->lock);
  return any;
}

/* Late answers find nobody. */
static void forget(struct ct_session *s) {
  pthread_mutex_lock(&s->lock);
  for (unsigned i = 0; i < CT_SESSION_WINDOW; ++i)
    s->flight[i].used = false;
  s->answers = 0;
  pthread_mutex_unlock(&s->lock);
}

static int die(struct ct_session *s) {
  const char *why = s->ops->error(s->line);
  if (!s->dead && *why) snprintf(s->error, sizeof s->error, "%s", why);
  if (!s->dead && !*why)
    snprintf(s->error, sizeof s->error, "%s does not answer", s->ops->name(s->line));
  s->dead = true;
  forget(s);
  pthread_mutex_lock(&s->lock);
  s->gone = true;
  show(s);
  pthread_mutex_unlock(&s->lock);
  return CT_ERR_DEVICE;
}

static unsigned patience(const struct ct_session *s, unsigned attempt) {
  return (s->timeout_ms << attempt) / ((1 << ATTEMPTS) - 1) + 1;
}

/* What the line did not take in time counts as lost. */
static bool send_out(struct ct_session *s, size_t size, unsigned timeout_ms) {
  const int err = s->ops->send(s->line, s->out, size, timeout_ms);
  return err == CT_OK || err == CT_ERR_TIMEOUT;
}

/* In front of a repetition come as many zeros as end any frame whose bytes were lost. */
static size_t put_zeros(struct ct_session *s) {
  memset(s->out, 0, CT_USB_FRAME);
  return CT_USB_FRAME;
}

/* Locked. */
static size_t put_flight(struct ct_session *s, struct ct_flight *x, size_t at) {
  x->used = true;
  x->answered = x->missing = false;
  x->order = s->order++;
  ++x->sent;
  return at + ct_usb_put(&x->request, s->out + at);
}

/* ---- A request alone ----------------------------------------------------------------------- */

int ct_session_request(struct ct_session *s, const struct ct_usb_frame *request, uint8_t *answer,
                       size_t expected) {
  struct ct_flight *x = &s->flight[0];
  if (s->dead) return CT_ERR_DEVICE;
  forget(s);
  x->request = *request;
  x->request.tag = s->tag++;
  x->data = answer;
  x->expected = expected;
  for (unsigned i = 0; i < ATTEMPTS; ++i) {
    const unsigned ms = patience(s, i);
    size_t size = i ? put_zeros(s) : 0;
    pthread_mutex_lock(&s->lock);
    size = put_flight(s, x, size);
    s->answers = 0;
    pthread_mutex_unlock(&s->lock);
    if (!send_out(s, size, ms)) return die(s);
    /* One that came damaged was not done. */
    if (await(s, ms) && x->code != CT_USB_DAMAGED) return x->code;
    if (*s->ops->error(s->line)) return die(s);
  }
  return die(s);
}

/* ---- Long accesses to memory --------------------------------------------------------------- */

void ct_session_put_op(struct ct_usb_frame *f, uint8_t op, uint64_t address, size_t n,
                       uint32_t word) {
  uint8_t *p = f->payload + f->size;
  p[0] = op;
  p[1] = (uint8_t)(address >> 32);
  ct_usb_put16(p + 2, (uint16_t)n);
  ct_usb_put32(p + 4, word);
  f->size += CT_USB_OP;
}

struct stream {
  uint64_t addr;
  const uint8_t *from;
  uint8_t *to;
  size_t size, launched;
  unsigned window;
  int code; /* the first that is neither OK nor DAMAGED */
  bool hopeless;
};

/* The request for what comes next: as much as fits a frame, up to a whole beat. */
static void launch(struct ct_session *s, struct stream *t, struct ct_flight *x) {
  const uint64_t addr = t->addr + t->launched;
  const size_t most = (t->to ? READ : WRITE) - (size_t)(addr % BEAT), left = t->size - t->launched;
  const size_t bytes = left < most ? left : most;
  struct ct_usb_frame *f = &x->request;
  f->kind = CT_USB_REQUEST;
  f->status = 0;
  f->tag = s->tag++;
  f->size = 0;
  for (size_t done = 0; done < bytes;) {
    const size_t room = PAGE - (size_t)((addr + done) % PAGE);
    const size_t n = bytes - done < room ? bytes - done : room;
    ct_session_put_op(f, t->to ? CT_USB_MEM_READ : CT_USB_MEM_WRITE, addr + done, n,
                      (uint32_t)(addr + done));
    if (t->from) {
      memcpy(f->payload + f->size, t->from + t->launched + done, n);
      f->size = (uint16_t)(f->size + n);
    }
    done += n;
  }
  x->data = t->to ? t->to + t->launched : NULL;
  x->expected = t->to ? bytes : 0;
  x->sent = 0;
  t->launched += bytes;
}

/* Locked. Whether the flight goes again. */
static bool settle(struct stream *t, struct ct_flight *x) {
  if (x->answered && x->code == CT_USB_DAMAGED) x->missing = true;
  if (x->missing) {
    t->hopeless = t->hopeless || x->sent == MOST_SENT;
    return true;
  }
  if (x->answered) {
    x->used = false;
    if (x->code != CT_USB_OK && !t->code) t->code = x->code;
  }
  return false;
}

/* Takes what was answered, and puts what goes now. Returns the bytes, in *flying how many are under
 * way. */
static size_t advance(struct ct_session *s, struct stream *t, size_t size, unsigned *flying) {
  *flying = 0;
  pthread_mutex_lock(&s->lock);
  s->answers = 0;
  for (unsigned i = 0; i < t->window; ++i) {
    struct ct_flight *x = &s->flight[i];
    if (x->used && settle(t, x)) {
      x->request.tag = s->tag++;
      size = put_flight(s, x, size);
    } else if (!x->used && t->launched < t->size && !t->code) {
      launch(s, t, x);
      size = put_flight(s, x, size);
    }
    *flying += x->used;
  }
  pthread_mutex_unlock(&s->lock);
  return size;
}

static void miss_all(struct ct_session *s) {
  pthread_mutex_lock(&s->lock);
  for (unsigned i = 0; i < CT_SESSION_WINDOW; ++i)
    s->flight[i].missing = s->flight[i].used && !s->flight[i].answered;
  pthread_mutex_unlock(&s->lock);
}

int ct_session_stream(struct ct_session *s, uint64_t addr, const uint8_t *from, uint8_t *to,
                      size_t size) {
  struct stream t = {.addr = addr,
                     .from = from,
                     .to = to,
                     .size = size,
                     .window = to ? s->limits.reads : s->limits.writes};
  if (s->dead) return CT_ERR_DEVICE;
  forget(s);
  for (unsigned attempt = 0;;) {
    unsigned flying;
    const unsigned ms = patience(s, attempt);
    const size_t zeros = attempt ? put_zeros(s) : 0, n = advance(s, &t, zeros, &flying);
    if (!flying) return t.code;
    if (t.hopeless || (n && !send_out(s, n, ms))) return die(s);
    if (await(s, ms)) {
      attempt = 0;
      continue;
    }
    if (++attempt == ATTEMPTS || *s->ops->error(s->line)) return die(s);
    miss_all(s);
  }
}

/* ---- Beginning and end --------------------------------------------------------------------- */

bool ct_session_begin(struct ct_session *s) {
  pthread_condattr_t attr;
  pthread_mutex_init(&s->lock, NULL);
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&s->changed, &attr);
  pthread_condattr_destroy(&attr);
  s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return s->fd >= 0;
}

void ct_session_end(struct ct_session *s) {
  if (s->ops) s->ops->close(s->line);
  if (s->fd >= 0) close(s->fd);
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->lock);
}
