/* SPDX-License-Identifier: Apache-2.0 */
/* What has ended, and waiting for it. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ct_deadline.h"
#include "ct_queue.h"

/* ---- The list ------------------------------------------------------------------------------ */

static size_t unreaped(const struct ct_queues *q) {
  return q->ring[0].unreaped + q->ring[1].unreaped;
}

static struct ct_event *at(const struct ct_queues *q, size_t i) {
  return &q->event[(q->first + i) % q->room]; /* NOLINT(*.DivideZero): it holds event i */
}

/* Room is made before anything is submitted, so that no event is ever lost for want of memory. */
int ct_event_expect(ct_device *dev, enum ct_queue queue) {
  struct ct_queues *q = dev->queues;
  if (unreaped(q) == q->room) {
    const size_t room = q->room ? 2 * q->room : 64;
    struct ct_event *event = malloc(room * sizeof *event);
    if (!event) return ct_fail(dev, CT_ERR_MEMORY, "the host has no memory left");
    for (size_t i = 0; i < q->count; ++i)
      event[i] = *at(q, i);
    free(q->event);
    q->event = event;
    q->room = room;
    q->first = 0;
  }
  ++q->ring[queue].unreaped;
  return CT_OK;
}

void ct_event_forget(ct_device *dev, enum ct_queue queue) {
  --dev->queues->ring[queue].unreaped;
}

void ct_event_put(ct_device *dev, const struct ct_event *event) {
  struct ct_queues *q = dev->queues;
  *at(q, q->count++) = *event;
  ct_show_outstanding(dev);
}

/* Index of the event of that tag, or (tag 0) of the oldest. count: it is not there. */
static size_t find(const struct ct_queues *q, uint64_t tag) {
  size_t i = 0;
  while (i < q->count && tag && at(q, i)->tag != tag)
    ++i;
  return i;
}

bool ct_event_is_there(const ct_device *dev, uint64_t tag) {
  return find(dev->queues, tag) < dev->queues->count;
}

/* The others keep their order. */
bool ct_event_take(ct_device *dev, uint64_t tag, struct ct_event *event) {
  struct ct_queues *q = dev->queues;
  size_t i = find(q, tag);
  if (i == q->count) return false;
  *event = *at(q, i);
  for (; i > 0; --i)
    *at(q, i) = *at(q, i - 1);
  q->first = (q->first + 1) % q->room;
  --q->count;
  --q->ring[event->queue].unreaped;
  ct_show_outstanding(dev);
  return true;
}

size_t ct_outstanding(const ct_device *dev, enum ct_queue queue) {
  if (!dev || !dev->queues || (queue != CT_INFERENCE && queue != CT_TRAINING)) return 0;
  return dev->queues->ring[queue].unreaped;
}

int ct_event_error(ct_device *dev, const struct ct_event *e) {
  if (e->error == CT_ERR_JOB)
    return ct_fail(dev, CT_ERR_JOB, "the device ended the job: %s (%s, address 0x%x)",
                   ct_code_text(e->code), ct_code_name(e->code), e->address);
  return e->error ? ct_fail(dev, e->error, "the job was cancelled") : CT_OK;
}

/* ---- The file descriptor ------------------------------------------------------------------- */

/* Makes an eventfd readable or not. */
static void set_wake(struct ct_queues *q, bool up) {
  uint64_t count = 1;
  if (up == q->wake_up) return;
  const ssize_t n = up ? write(q->wake, &count, sizeof count) : read(q->wake, &count, sizeof count);
  if (n == (ssize_t)sizeof count) q->wake_up = up;
}

/* The transport's descriptor counts only while something can come from there. */
static void watch_irq(ct_device *dev, bool watched) {
  struct ct_queues *q = dev->queues;
  struct epoll_event event = {.events = EPOLLIN};
  if (watched == q->irq_watched) return;
  if (watched) dev->plugin.ops->irq_fd(dev->self);
  if (!epoll_ctl(q->fd, watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, q->irq, &event))
    q->irq_watched = watched;
}

static bool owes(const ct_device *dev) {
  const struct ct_listener *above = dev->queues->listener;
  return dev->queues->ring[0].owed || dev->queues->ring[1].owed ||
         (above && above->owes && above->owes(dev));
}

/* Devices that live in this process advance only in calls: one is worth making while jobs or
 * requests are outstanding. Others show by a descriptor of their own that something may have come;
 * then only events that were taken in and not reaped are added to that, and a write that is to be
 * tried again while something waits for it. */
void ct_show_outstanding(ct_device *dev) {
  struct ct_queues *q = dev->queues;
  const size_t all = unreaped(q);
  if (q->fd < 0) return;
  set_wake(q, q->irq < 0 ? all > 0 : q->count > 0 || (all > 0 && owes(dev)));
  if (q->irq >= 0) watch_irq(dev, all > q->count);
}

/* Everything that had come has been taken in. */
static void arm_irq(ct_device *dev) {
  if (dev->queues->irq < 0) return;
  ct_show_outstanding(dev);
  if (dev->queues->irq_watched) dev->plugin.ops->irq_fd(dev->self);
}

int ct_poll_fd(ct_device *dev) {
  const int err = ct_check_device(dev);
  if (err) return err;
  struct ct_queues *q = dev->queues;
  if (q->fd >= 0) return q->fd;
  const struct ct_transport_ops *ops = dev->plugin.ops;
  q->irq = ops->irq_fd ? ops->irq_fd(dev->self) : -1;
  q->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  q->fd = q->irq < 0 ? q->wake : epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  const bool joined = q->fd >= 0 && q->wake >= 0 &&
                      (q->irq < 0 || !epoll_ctl(q->fd, EPOLL_CTL_ADD, q->wake, &event));
  if (!joined) {
    ct_poll_close(dev);
    return ct_fail(dev, CT_ERR_MEMORY, "the process has no file descriptor left");
  }
  ct_show_outstanding(dev);
  return q->fd;
}

void ct_poll_close(ct_device *dev) {
  struct ct_queues *q = dev->queues;
  if (q->wake >= 0 && q->wake != q->fd) close(q->wake);
  if (q->fd >= 0) close(q->fd);
  q->fd = q->wake = q->irq = -1; /* irq is the transport's */
  q->wake_up = q->irq_watched = false;
}

/* ---- Waiting ------------------------------------------------------------------------------- */

int ct_poll(ct_device *dev) {
  const struct ct_listener *above = dev->queues->listener;
  uint32_t status = 0;
  int err = CT_OK;
  for (unsigned q = 0; q < CT_QUEUES && !err; ++q)
    err = ct_ring_again(dev, (enum ct_queue)q);
  if (!err) err = ct_reg_read(dev, CT_REG_IRQ_STATUS, &status);
  for (unsigned q = 0; q < CT_QUEUES && !err; ++q)
    if (status >> q & 1) err = ct_ring_take(dev, (enum ct_queue)q);
  ct_sweep(dev);
  if (!err && above && above->poll) err = above->poll(dev, status);
  arm_irq(dev);
  return err;
}

struct ct_patience ct_patience(uint64_t until, int timeout_ms) {
  return (struct ct_patience){.until = until,
                              .timeout_ms = timeout_ms,
                              .end = timeout_ms >= 0 ? ct_ms_now() + timeout_ms : INT64_MAX};
}

/* Waits for the interrupt, at most until then; *up: it came, or the clock has only reached a moment
 * at which the listener is to be called. */
static int wait_for_irq(ct_device *dev, uint64_t until, int timeout_ms, bool *up) {
  const struct ct_listener *above = dev->queues->listener;
  const uint64_t due = above && above->due ? above->due(dev) : CT_NO_CYCLE;
  const int irq = dev->plugin.ops->wait(dev->self, due < until ? due : until, timeout_ms);
  if (irq < 0) return ct_fail_device(dev, irq, "waiting for the device failed");
  *up = irq > 0;
  if (*up || due >= until) return CT_OK;
  uint64_t now = 0;
  const int err = ct_now(dev, &now);
  *up = now >= due;
  return err;
}

int ct_wait_more(ct_device *dev, struct ct_patience *p, const char *what) {
  if (p->last) {
    if (p->timeout_ms < 0) return ct_fail(dev, CT_ERR_TIMEOUT, "no %s can finish at present", what);
    return ct_fail(dev, CT_ERR_TIMEOUT, "no %s finished within %d ms", what, p->timeout_ms);
  }
  int64_t left = -1;
  if (p->timeout_ms >= 0) {
    left = p->end - ct_ms_now();
    if (left < 0) left = 0;
  }
  bool up = false;
  const int err = wait_for_irq(dev, p->until, (int)left, &up);
  p->last = !up || left == 0;
  return err;
}

/* Waits for the event of that tag (0: for any). */
static int reap(ct_device *dev, uint64_t tag, struct ct_event *event, struct ct_patience p) {
  const char *what = unreaped(dev->queues) ? "job or request" : "job";
  struct ct_event e;
  for (;;) {
    bool there = ct_event_take(dev, tag, &e);
    if (!there) {
      const int err = ct_poll(dev);
      if (err) return err;
      there = ct_event_take(dev, tag, &e);
    }
    if (there) {
      if (event) *event = e;
      return CT_OK;
    }
    const int err = ct_wait_more(dev, &p, what);
    if (err) return err;
  }
}

int ct_reap_until(ct_device *dev, struct ct_event *event, uint64_t until, int timeout_ms) {
  int err = ct_check_device(dev);
  if (!err) err = ct_check_timeout(dev, timeout_ms);
  if (err) return err;
  CT_NEED(dev, event);
  return reap(dev, 0, event, ct_patience(until, timeout_ms));
}

int ct_reap(ct_device *dev, struct ct_event *event, int timeout_ms) {
  int err = ct_check_device(dev);
  if (!err) err = ct_check_timeout(dev, timeout_ms);
  if (err) return err;
  CT_NEED(dev, event);
  if (unreaped(dev->queues) == 0)
    return ct_fail(dev, CT_ERR_NOT_FOUND, "no job or request is outstanding");
  return reap(dev, 0, event, ct_patience(CT_NO_CYCLE, timeout_ms));
}

bool ct_is_pending(const ct_device *dev, uint64_t tag, uint64_t *seq) {
  const uint64_t queue = tag & ((1u << CT_TAG_BITS) - 1);
  *seq = (tag >> CT_TAG_BITS) - 1;
  if (queue >= CT_QUEUES || tag >> CT_TAG_BITS == 0) return false;
  const struct ct_ring *r = &dev->queues->ring[queue];
  return *seq >= r->completed && *seq < r->submitted &&
         ct_ring_pending(dev, (enum ct_queue)queue, *seq)->last;
}

int ct_unknown_tag(ct_device *dev, uint64_t tag) {
  return ct_fail(dev, CT_ERR_NOT_FOUND,
                 "nothing with tag %llu is outstanding: it was reaped, or never submitted",
                 (unsigned long long)tag);
}

int ct_wait(ct_device *dev, uint64_t tag, struct ct_event *event, int timeout_ms) {
  uint64_t seq;
  int err = ct_check_device(dev);
  if (!err) err = ct_check_timeout(dev, timeout_ms);
  if (err) return err;
  const struct ct_listener *above = dev->queues->listener;
  const bool known = tag && (ct_is_pending(dev, tag, &seq) || ct_event_is_there(dev, tag) ||
                             (above && above->pending && above->pending(dev, tag)));
  return known ? reap(dev, tag, event, ct_patience(CT_NO_CYCLE, timeout_ms))
               : ct_unknown_tag(dev, tag);
}

int ct_wait_completed(ct_device *dev, enum ct_queue queue, uint64_t seq, int timeout_ms) {
  struct ct_patience p = ct_patience(CT_NO_CYCLE, timeout_ms);
  int err = ct_poll(dev);
  while (!err && dev->queues->ring[queue].completed < seq) {
    err = ct_wait_more(dev, &p, "job");
    if (!err) err = ct_poll(dev);
  }
  return err;
}

/* ---- Calls that block ---------------------------------------------------------------------- */

/* Cancels what took too long: its buffers are about to be given back. */
static int give_up(ct_device *dev, uint64_t tag, struct ct_event *event) {
  int err = ct_cancel(dev, tag);
  if (!err) err = reap(dev, tag, event, ct_patience(CT_NO_CYCLE, CT_CANCEL_MS));
  if (err) return ct_fail(dev, CT_ERR_DEVICE, "a job took too long and cannot be cancelled");
  return ct_fail(dev, CT_ERR_TIMEOUT, "the job did not finish within %d ms and was cancelled",
                 dev->timeout_ms);
}

int ct_finish(ct_device *dev, uint64_t tag, struct ct_event *event) {
  struct ct_event e = {0};
  int err = reap(dev, tag, &e, ct_patience(CT_NO_CYCLE, dev->timeout_ms));
  if (err && err != CT_ERR_TIMEOUT) return err;
  if (err) err = give_up(dev, tag, &e);
  if (event && err != CT_ERR_DEVICE) *event = e;
  return err ? err : ct_event_error(dev, &e);
}
