/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues: programs, descriptors, doorbells, completions.
 *
 * The device takes the descriptors of a queue in order and completes them in order, so a completion
 * belongs to the oldest job without one; its tag (the sequence number's low half) must agree.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ct_cmd.h"
#include "ct_device.h"
#include "ct_prog.h"
#include "ct_server.h"

/* ---- Programs ------------------------------------------------------------------------------ */

int ct_program_load(ct_device *dev, const void *commands, size_t count, ct_program **program) {
  if (program) *program = NULL;
  int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, commands);
  CT_NEED(dev, program);
  if (count < 1 || count > CT_PROG_MAX)
    return ct_fail(dev, CT_ERR_ARG, "a program has 1..%u commands, not %zu", CT_PROG_MAX, count);
  ct_program *p = calloc(1, sizeof *p);
  if (!p) return ct_fail(dev, CT_ERR_MEMORY, "the host has no memory left");
  p->count = (uint32_t)count;
  err = ct_heap_alloc(&dev->code, count * CT_CMD_BYTES, 64, &p->addr);
  if (err) {
    free(p);
    return ct_fail(dev, err, "no room for another program of %zu commands in device memory", count);
  }
  err = ct_mem_put(dev, p->addr, commands, count * CT_CMD_BYTES);
  if (err) {
    ct_heap_free(&dev->code, p->addr);
    free(p);
    return err;
  }
  ct_handle_open(&p->handle, dev);
  *program = p;
  return CT_OK;
}

void ct_program_free(ct_program *p) {
  ct_program_end(p);
}

int ct_code_load(ct_device *dev, struct ct_code *code, ct_program **out) {
  uint8_t *bytes = malloc(code->count * CT_CMD_BYTES + 1);
  int err = bytes ? CT_OK : ct_fail(dev, CT_ERR_MEMORY, "the host has no memory left");
  for (size_t i = 0; i < code->count && !err; ++i)
    ct_cmd_to_bytes(&code->cmd[i], bytes + i * CT_CMD_BYTES);
  if (!err) err = ct_program_load(dev, bytes, code->count, out);
  free(bytes);
  free(code->cmd);
  code->cmd = NULL;
  return err;
}

int ct_result_error(ct_device *dev, const struct ct_result *r) {
  if (r->error == CT_ERR_JOB)
    return ct_fail(dev, CT_ERR_JOB, "the device ended the job: %s (%s, address 0x%x)",
                   ct_code_text(r->code), ct_code_name(r->code), r->address);
  return r->error ? ct_fail(dev, r->error, "the job was cancelled") : CT_OK;
}

/* ---- Rings --------------------------------------------------------------------------------- */

static uint32_t queue_reg(enum ct_queue queue, uint32_t offset) {
  return CT_CTX_BASE + (uint32_t)queue * CT_CTX_STRIDE + offset;
}

static uint64_t slots(const struct ct_ring *r) {
  return UINT64_C(1) << r->log2;
}

int ct_rings_init(ct_device *dev, uint64_t addr, unsigned log2) {
  const bool requests = dev->info.features & CT_FEATURE_REQUESTS;
  int err = ct_reg_write(dev, CT_REG_IRQ_ENABLE, requests ? 7 : 3);
  for (unsigned q = 0; q < CT_QUEUES && !err; ++q) {
    struct ct_ring *r = &dev->ring[q];
    r->addr = addr + ((uint64_t)q * CT_DESC_BYTES << log2);
    r->log2 = log2;
    r->pending = calloc((size_t)1 << log2, sizeof *r->pending);
    if (!r->pending) return CT_ERR_MEMORY;
    err = ct_reg_write(dev, queue_reg((enum ct_queue)q, CT_CREG_RING_BASE),
                       (uint32_t)(r->addr / CT_UNIT));
    if (!err) err = ct_reg_write(dev, queue_reg((enum ct_queue)q, CT_CREG_RING_LOG2), log2);
  }
  return err;
}

void ct_rings_free(ct_device *dev) {
  for (unsigned q = 0; q < CT_QUEUES; ++q) {
    free(dev->ring[q].pending);
    dev->ring[q].pending = NULL;
  }
  free(dev->done);
  dev->done = NULL;
}

/* Names a job: the queue in bit 0, the sequence number plus one above, so that no tag is 0. */
static uint64_t tag_of(enum ct_queue queue, uint64_t seq) {
  return (seq + 1) << 1 | (uint64_t)queue;
}

/* ---- The file descriptor ------------------------------------------------------------------- */

/* Makes an eventfd readable or not. */
static void set_wake(ct_device *dev, bool up) {
  uint64_t count = 1;
  if (up == dev->wake_up) return;
  const ssize_t n =
      up ? write(dev->wake, &count, sizeof count) : read(dev->wake, &count, sizeof count);
  if (n == (ssize_t)sizeof count) dev->wake_up = up;
}

/* The transport's descriptor counts only while something can come from there. */
static void watch_irq(ct_device *dev, bool watched) {
  struct epoll_event event = {.events = EPOLLIN};
  if (watched == dev->irq_watched) return;
  if (watched) dev->plugin.ops->irq_fd(dev->self);
  if (!epoll_ctl(dev->fd, watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, dev->irq, &event))
    dev->irq_watched = watched;
}

/* Devices that live in this process advance only in calls: one is worth making while jobs or
 * requests are outstanding. Others show by a descriptor of their own that something may have come;
 * then only results that were taken in and not reaped are added to that, and a write that is to be
 * tried again while something waits for it. */
void ct_show_outstanding(ct_device *dev) {
  const struct ct_requests *q = dev->requests;
  const size_t outstanding =
      dev->ring[0].unreaped + dev->ring[1].unreaped + ct_server_outstanding(dev);
  const size_t done = dev->done_count + (q ? q->list[CT_REQUEST_DONE].count : 0);
  if (dev->fd < 0) return;
  set_wake(dev,
           dev->irq < 0 ? outstanding > 0 : done > 0 || (outstanding > 0 && ct_servers_owe(dev)));
  if (dev->irq >= 0) watch_irq(dev, outstanding > done);
}

/* Everything that had come has been taken in. */
static void arm_irq(ct_device *dev) {
  if (dev->irq < 0) return;
  ct_show_outstanding(dev);
  if (dev->irq_watched) dev->plugin.ops->irq_fd(dev->self);
}

int ct_poll_fd(ct_device *dev) {
  const int err = ct_check_device(dev);
  if (err) return err;
  if (dev->fd >= 0) return dev->fd;
  const struct ct_transport_ops *ops = dev->plugin.ops;
  dev->irq = ops->irq_fd ? ops->irq_fd(dev->self) : -1;
  dev->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  dev->fd = dev->irq < 0 ? dev->wake : epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  const bool joined = dev->fd >= 0 && dev->wake >= 0 &&
                      (dev->irq < 0 || !epoll_ctl(dev->fd, EPOLL_CTL_ADD, dev->wake, &event));
  if (!joined) {
    ct_poll_close(dev);
    return ct_fail(dev, CT_ERR_MEMORY, "the process has no file descriptor left");
  }
  ct_show_outstanding(dev);
  return dev->fd;
}

void ct_poll_close(ct_device *dev) {
  if (dev->wake >= 0 && dev->wake != dev->fd) close(dev->wake);
  if (dev->fd >= 0) close(dev->fd);
  dev->fd = dev->wake = dev->irq = -1; /* irq is the transport's */
  dev->wake_up = dev->irq_watched = false;
}

/* ---- Submitting ---------------------------------------------------------------------------- */

/* Word number `word` of little-endian bytes. */
static void put32(uint8_t *p, size_t word, uint32_t v) {
  for (unsigned i = 0; i < 4; ++i)
    p[4 * word + i] = (uint8_t)(v >> 8 * i);
}

static int write_descriptor(ct_device *dev, const struct ct_ring *r, const struct ct_job *job) {
  uint8_t desc[CT_DESC_BYTES] = {0};
  put32(desc, CT_DESC_TAG, (uint32_t)r->submitted);
  put32(desc, CT_DESC_VERSION, job->version);
  put32(desc, CT_DESC_PROG, (uint32_t)(job->program->addr / CT_UNIT));
  put32(desc, CT_DESC_NCMDS, job->program->count);
  put32(desc, CT_DESC_WATCHDOG, job->watchdog);
  put32(desc, CT_DESC_FLAGS, job->flags);
  for (unsigned i = 0; i < CT_MAX_ARGS; ++i)
    put32(desc, CT_DESC_ARG0 + i, job->args[i]);
  const uint64_t slot = r->submitted & (slots(r) - 1);
  return ct_mem_put(dev, r->addr + slot * CT_DESC_BYTES, desc, sizeof desc);
}

/* Rings now or at a cycle, but never before a doorbell that is already scheduled. */
static int ring_doorbell(ct_device *dev, enum ct_queue queue, uint64_t cycle) {
  struct ct_ring *r = &dev->ring[queue];
  const struct ct_transport_ops *ops = dev->plugin.ops;
  const uint32_t reg = queue_reg(queue, CT_CREG_TAIL), tail = (uint32_t)(r->submitted + 1) & 0xffff;
  if (cycle == CT_NO_CYCLE && r->latest) {
    uint64_t now = 0;
    const int err = ct_now(dev, &now);
    if (err) return err;
    if (now > r->latest) r->latest = 0;
    cycle = r->latest ? r->latest : CT_NO_CYCLE;
  }
  if (cycle == CT_NO_CYCLE || !ops->reg_write_at) return ct_reg_write(dev, reg, tail);
  if (cycle > r->latest) r->latest = cycle;
  const int err = ops->reg_write_at(dev->self, r->latest, reg, tail);
  return err < 0 ? ct_fail_device(dev, err, "scheduling a doorbell failed") : CT_OK;
}

bool ct_queue_has_room(const ct_device *dev, enum ct_queue queue, unsigned jobs) {
  const struct ct_ring *r = &dev->ring[queue];
  return r->submitted - r->completed + jobs <= slots(r);
}

int ct_submit_job(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t cycle,
                  bool part, uint64_t *tag) {
  int err = ct_check_device(dev);
  if (!err) err = ct_check_queue(dev, queue);
  if (err) return err;
  if (!job || !job->program)
    return ct_fail(dev, CT_ERR_ARG, "%s is NULL", job ? "the job's program" : "the job");
  if (job->program->handle.dev != dev)
    return ct_fail(dev, CT_ERR_ARG, "the program belongs to another device");
  err = ct_check_handle(&job->program->handle, "program");
  if (err) return err;
  if (job->flags & ~CT_JOB_OVERLAP)
    return ct_fail(dev, CT_ERR_ARG, "unknown flags 0x%x of a job", (unsigned)job->flags);
  err =
      ct_check_reserved(dev, "ct_job", job->reserved, sizeof job->reserved / sizeof *job->reserved);
  if (err) return err;
  struct ct_ring *r = &dev->ring[queue];
  if (!ct_queue_has_room(dev, queue, 1))
    return ct_fail(dev, CT_ERR_FULL, "the %s queue is full: it holds %u jobs; reap some first",
                   queue == CT_INFERENCE ? "inference" : "training", 1u << r->log2);
  err = write_descriptor(dev, r, job);
  if (!err && queue == CT_INFERENCE) err = ct_servers_unpin(dev);
  if (!err) err = ring_doorbell(dev, queue, cycle);
  if (err) {
    r->parts = 0; /* what they belong to will not be complete */
    return err;
  }
  ct_program *program = (ct_program *)job->program; /* const to the caller, not to itself */
  r->pending[r->submitted & (slots(r) - 1)] = (struct ct_pending){
      .program = program, .scheduled = cycle, .user = job->user, .part = part, .parts = r->parts};
  ++program->jobs;
  r->parts = part ? r->parts + 1 : 0;
  if (tag) *tag = tag_of(queue, r->submitted);
  ++r->submitted;
  ++r->unreaped;
  ct_show_outstanding(dev);
  return CT_OK;
}

int ct_submit_at(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t cycle,
                 uint64_t *tag) {
  return ct_submit_job(dev, queue, job, cycle, false, tag);
}

int ct_submit(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t *tag) {
  return ct_submit_at(dev, queue, job, CT_NO_CYCLE, tag);
}

size_t ct_outstanding(const ct_device *dev, enum ct_queue queue) {
  return dev && (queue == CT_INFERENCE || queue == CT_TRAINING) ? dev->ring[queue].unreaped : 0;
}

/* ---- Completions --------------------------------------------------------------------------- */

static int keep(ct_device *dev, const struct ct_result *result) {
  if (dev->done_count == dev->done_room) {
    const size_t room = dev->done_room ? 2 * dev->done_room : 64;
    struct ct_result *done = malloc(room * sizeof *done);
    if (!done) return ct_fail(dev, CT_ERR_MEMORY, "the host has no memory left");
    for (size_t i = 0; i < dev->done_count; ++i)
      done[i] = dev->done[(dev->done_first + i) % dev->done_room];
    free(dev->done);
    dev->done = done;
    dev->done_room = room;
    dev->done_first = 0;
  }
  dev->done[(dev->done_first + dev->done_count++) % dev->done_room] = *result;
  return CT_OK;
}

/* Takes result number i, keeping the order of the others. */
static struct ct_result take(ct_device *dev, size_t i) {
  const struct ct_result result = dev->done[(dev->done_first + i) % dev->done_room];
  for (; i > 0; --i)
    dev->done[(dev->done_first + i) % dev->done_room] =
        dev->done[(dev->done_first + i - 1) % dev->done_room];
  dev->done_first = (dev->done_first + 1) % dev->done_room;
  --dev->done_count;
  --dev->ring[result.queue].unreaped;
  ct_show_outstanding(dev);
  return result;
}

/* Reads the oldest completion of a queue and drops it from the device. */
static int pop(ct_device *dev, enum ct_queue queue) {
  static const uint32_t offset[] = {
      CT_CREG_CPL_TAG,      CT_CREG_CPL_CODE,      CT_CREG_CPL_ADDR,      CT_CREG_CPL_VERSION,
      CT_CREG_CPL_ROWS,     CT_CREG_CPL_ARRIVE_LO, CT_CREG_CPL_ARRIVE_HI, CT_CREG_CPL_START_LO,
      CT_CREG_CPL_START_HI, CT_CREG_CPL_END_LO,    CT_CREG_CPL_END_HI};
  struct ct_ring *r = &dev->ring[queue];
  const unsigned n = dev->info.has_clock ? 11 : 5;
  uint32_t v[11] = {0};
  for (unsigned i = 0; i < n; ++i) {
    const int err = ct_reg_read(dev, queue_reg(queue, offset[i]), &v[i]);
    if (err) return err;
  }
  const int err = ct_reg_write(dev, queue_reg(queue, CT_CREG_CPL_POP), 1);
  if (err) return err;
  if (r->completed == r->submitted || v[0] != (uint32_t)r->completed)
    return ct_fail(dev, CT_ERR_DEVICE, "a completion came that belongs to no job (tag 0x%x)", v[0]);
  const struct ct_pending *p = &r->pending[r->completed & (slots(r) - 1)];
  struct ct_result result = {.tag = tag_of(queue, r->completed),
                             .queue = queue,
                             .code = v[1],
                             .address = v[2],
                             .version = v[3],
                             .rows = v[4],
                             .scheduled = p->scheduled,
                             .user = p->user};
  const bool clock = dev->info.has_clock;
  result.arrive = clock ? (uint64_t)v[6] << 32 | v[5] : CT_NO_CYCLE;
  result.start = clock ? (uint64_t)v[8] << 32 | v[7] : CT_NO_CYCLE;
  result.end = clock ? (uint64_t)v[10] << 32 | v[9] : CT_NO_CYCLE;
  if (p->cancelled || v[1] == CT_DEV_CANCELLED)
    result.error = CT_ERR_CANCELLED;
  else if (v[1])
    result.error = CT_ERR_JOB;
  ++r->completed;
  if (queue == CT_INFERENCE && dev->requests) dev->requests->idle = dev->requests->handed;
  if (p->program) --p->program->jobs;
  if (!p->part || result.error == CT_ERR_JOB) return keep(dev, &result);
  --r->unreaped;
  ct_show_outstanding(dev);
  return CT_OK;
}

int ct_poll(ct_device *dev) {
  uint32_t status = 0;
  int err = ct_reg_read(dev, CT_REG_IRQ_STATUS, &status);
  for (unsigned q = 0; q < CT_QUEUES && !err; ++q) {
    uint32_t waiting = status >> q & 1;
    while (waiting && !err) {
      err = pop(dev, (enum ct_queue)q);
      if (!err) err = ct_reg_read(dev, queue_reg((enum ct_queue)q, CT_CREG_CPL_COUNT), &waiting);
    }
  }
  if (!err && dev->requests) err = ct_requests_poll(dev, status & 4);
  arm_irq(dev);
  return err;
}

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Index of a finished job: of this one, or (tag 0) of the oldest. done_count: there is none. */
static size_t find_done(const ct_device *dev, uint64_t tag) {
  size_t i = 0;
  while (i < dev->done_count && tag && dev->done[(dev->done_first + i) % dev->done_room].tag != tag)
    ++i;
  return i;
}

struct ct_patience ct_patience(uint64_t until, int timeout_ms) {
  return (struct ct_patience){.until = until,
                              .timeout_ms = timeout_ms,
                              .end = timeout_ms >= 0 ? now_ms() + timeout_ms : INT64_MAX};
}

/* Waits for the interrupt, at most until then; *up: it came, or the clock has only reached a moment
 * at which a request is to be handed over. */
static int wait_for_irq(ct_device *dev, uint64_t until, int timeout_ms, bool *up) {
  const uint64_t due = dev->requests ? ct_requests_due(dev) : CT_NO_CYCLE;
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
    left = p->end - now_ms();
    if (left < 0) left = 0;
  }
  bool up = false;
  const int err = wait_for_irq(dev, p->until, (int)left, &up);
  p->last = !up || left == 0;
  return err;
}

/* Waits for a job (0: for any). */
static int reap(ct_device *dev, uint64_t tag, struct ct_result *result, uint64_t until,
                int timeout_ms) {
  struct ct_patience p = ct_patience(until, timeout_ms);
  for (int err = CT_OK;;) {
    size_t i = find_done(dev, tag);
    if (i == dev->done_count) {
      err = ct_poll(dev);
      if (err) return err;
      i = find_done(dev, tag);
    }
    if (i < dev->done_count) {
      const struct ct_result r = take(dev, i);
      if (result) *result = r;
      return CT_OK;
    }
    err = ct_wait_more(dev, &p, "job");
    if (err) return err;
  }
}

int ct_reap_until(ct_device *dev, struct ct_result *result, uint64_t until, int timeout_ms) {
  int err = ct_check_device(dev);
  if (!err) err = ct_check_timeout(dev, timeout_ms);
  if (err) return err;
  CT_NEED(dev, result);
  return reap(dev, 0, result, until, timeout_ms);
}

int ct_reap(ct_device *dev, struct ct_result *result, int timeout_ms) {
  int err = ct_check_device(dev);
  if (!err) err = ct_check_timeout(dev, timeout_ms);
  if (err) return err;
  CT_NEED(dev, result);
  if (dev->ring[0].unreaped + dev->ring[1].unreaped == 0)
    return ct_fail(dev, CT_ERR_NOT_FOUND, "no job is outstanding");
  return reap(dev, 0, result, CT_NO_CYCLE, timeout_ms);
}

/* Whether the tag names a job that has not completed; its sequence number. */
static bool is_pending(const ct_device *dev, uint64_t tag, uint64_t *seq) {
  const struct ct_ring *r = &dev->ring[tag & 1];
  *seq = (tag >> 1) - 1;
  return tag >> 1 && *seq >= r->completed && *seq < r->submitted;
}

static int unknown(ct_device *dev, uint64_t tag) {
  return ct_fail(dev, CT_ERR_NOT_FOUND,
                 "no job with tag %llu is outstanding: it was reaped, or never submitted",
                 (unsigned long long)tag);
}

int ct_wait(ct_device *dev, uint64_t tag, struct ct_result *result, int timeout_ms) {
  uint64_t seq;
  int err = ct_check_device(dev);
  if (!err) err = ct_check_timeout(dev, timeout_ms);
  if (err) return err;
  if (!is_pending(dev, tag, &seq) && find_done(dev, tag ? tag : UINT64_MAX) == dev->done_count)
    return unknown(dev, tag);
  return reap(dev, tag, result, CT_NO_CYCLE, timeout_ms);
}

int ct_wait_completed(ct_device *dev, enum ct_queue queue, uint64_t seq, int timeout_ms) {
  struct ct_patience p = ct_patience(CT_NO_CYCLE, timeout_ms);
  int err = ct_poll(dev);
  while (!err && dev->ring[queue].completed < seq) {
    err = ct_wait_more(dev, &p, "job");
    if (!err) err = ct_poll(dev);
  }
  return err;
}

/* ---- Jobs of calls that block -------------------------------------------------------------- */

/* Cancels a job that took too long: its buffers are about to be given back. */
static int give_up(ct_device *dev, uint64_t tag, struct ct_result *result) {
  int err = ct_cancel(dev, tag);
  if (!err) err = reap(dev, tag, result, CT_NO_CYCLE, CT_CANCEL_MS);
  if (err) return ct_fail(dev, CT_ERR_DEVICE, "a job took too long and cannot be cancelled");
  return ct_fail(dev, CT_ERR_TIMEOUT, "the job did not finish within %d ms and was cancelled",
                 dev->timeout_ms);
}

int ct_finish(ct_device *dev, uint64_t tag, unsigned jobs, struct ct_result *result) {
  struct ct_result last = {0};
  bool first = true;
  int err = reap(dev, tag, &last, CT_NO_CYCLE, dev->timeout_ms);
  if (err && err != CT_ERR_TIMEOUT) return err;
  const int late = err ? give_up(dev, tag, &last) : CT_OK;
  if (late == CT_ERR_DEVICE) return late;
  /* The first part that failed is the reason for what came after. */
  for (uint64_t t = tag - 2 * (uint64_t)(jobs - 1); t < tag; t += 2) {
    const size_t i = find_done(dev, t);
    if (i == dev->done_count) continue;
    const struct ct_result part = take(dev, i);
    if (first) last = part;
    first = false;
  }
  if (result) *result = last;
  return late ? late : ct_result_error(dev, &last);
}

/* ---- Cancelling ---------------------------------------------------------------------------- */

/* Whether the device has taken the descriptor of job seq. */
static int is_taken(ct_device *dev, enum ct_queue queue, uint64_t seq, bool *taken) {
  uint32_t head = 0;
  const int err = ct_reg_read(dev, queue_reg(queue, CT_CREG_HEAD), &head);
  *taken = ((head - (uint32_t)seq - 1) & 0xffff) < 0x8000;
  return err;
}

/* A job in the ring is replaced by one that does nothing. The device may take the descriptor
 * meanwhile, or have read it a moment ago: so it is told to cancel the job of that number in any
 * case, which hits it if it runs or is about to, and nothing if it is through or not read. */
static int cancel_one(ct_device *dev, enum ct_queue queue, uint64_t seq) {
  struct ct_ring *r = &dev->ring[queue];
  const uint64_t slot = seq & (slots(r) - 1);
  bool taken = false;
  int err = is_taken(dev, queue, seq, &taken);
  if (!err && !taken) {
    uint8_t run[8];
    put32(run, 0, (uint32_t)(dev->idle->addr / CT_UNIT));
    put32(run, 1, dev->idle->count);
    err = ct_mem_put(dev, r->addr + slot * CT_DESC_BYTES + UINT64_C(4) * CT_DESC_PROG, run,
                     sizeof run);
    if (!err) err = is_taken(dev, queue, seq, &taken);
    if (!err && !taken) r->pending[slot].cancelled = true;
  }
  if (err) return err;
  return ct_reg_write(dev, queue_reg(queue, CT_CREG_CONTROL), (uint32_t)seq << 16 | 4 | 2);
}

int ct_cancel(ct_device *dev, uint64_t tag) {
  uint64_t seq;
  int err = ct_check_device(dev);
  if (err) return err;
  if (!is_pending(dev, tag, &seq))
    return tag && find_done(dev, tag) < dev->done_count ? CT_OK : unknown(dev, tag);
  const enum ct_queue queue = tag & 1 ? CT_TRAINING : CT_INFERENCE;
  const struct ct_ring *r = &dev->ring[queue];
  uint64_t first = seq - r->pending[seq & (slots(r) - 1)].parts;
  if (first < r->completed) first = r->completed;
  for (; first <= seq && !err; ++first)
    err = cancel_one(dev, queue, first);
  return err;
}

/* ---- Freeing programs ---------------------------------------------------------------------- */

/* Cancels what is left of a program in a queue and waits for it, but not for long. */
static void end_jobs(ct_device *dev, enum ct_queue queue, const ct_program *p) {
  const struct ct_ring *r = &dev->ring[queue];
  uint64_t end = 0;
  int err = CT_OK;
  for (uint64_t seq = r->completed; seq < r->submitted && !err; ++seq) {
    if (r->pending[seq & (slots(r) - 1)].program != p) continue;
    err = cancel_one(dev, queue, seq);
    end = seq + 1;
  }
  if (end && !err) ct_wait_completed(dev, queue, end, CT_CANCEL_MS);
  for (uint64_t seq = r->completed; seq < end; ++seq)
    if (r->pending[seq & (slots(r) - 1)].program == p)
      r->pending[seq & (slots(r) - 1)].program = NULL;
}

bool ct_program_end(ct_program *p) {
  if (!p || !ct_handle_close(&p->handle, "program")) return true;
  ct_device *dev = p->handle.dev;
  if (p->jobs && dev->self) ct_poll(dev); /* some may be through: without an answer all count */
  if (p->jobs && dev->self) {
    ct_log(dev, CT_LOG_WARNING,
           "%zu jobs of a model or program that is freed are under way; they are cancelled",
           p->jobs);
    for (int q = 0; q < CT_QUEUES; ++q)
      end_jobs(dev, (enum ct_queue)q, p);
  }
  const bool ended = p->jobs == 0 || !dev->self;
  if (ended) ct_heap_free(&dev->code, p->addr);
  ct_handle_bury(&p->handle);
  return ended;
}
