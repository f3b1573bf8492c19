/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors, doorbells, completions.
 *
 * The device takes the descriptors of a queue in order and completes them in order, so a completion
 * belongs to the oldest job without one; its tag (the sequence number's low half) must agree.
 *
 * The jobs of a work become visible by one doorbell. Each but the first has the flag CHAIN: the
 * device does not run it if the one before ended with an error, so after a failure nothing of the
 * work runs that could spoil more. A work that needs what the one before it leaves has it from its
 * first job on.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_queue.h"

int ct_rings_open(ct_device *dev) {
  const bool requests = dev->info.features & CT_FEATURE_REQUESTS;
  int err = ct_reg_write(dev, CT_REG_IRQ_ENABLE, requests ? 7 : 3);
  for (unsigned i = 0; i < CT_QUEUES && !err; ++i) {
    const enum ct_queue queue = (enum ct_queue)i;
    struct ct_ring *r = &dev->queues->ring[i];
    r->addr = (uint64_t)i * CT_DESC_BYTES << dev->ring_log2;
    r->pending = calloc(ct_ring_slots(dev), sizeof *r->pending);
    if (!r->pending) return CT_ERR_MEMORY;
    err = ct_reg_write(dev, ct_queue_reg(queue, CT_CREG_RING_BASE), (uint32_t)(r->addr / CT_UNIT));
    if (!err) err = ct_reg_write(dev, ct_queue_reg(queue, CT_CREG_RING_LOG2), dev->ring_log2);
  }
  return err;
}

uint64_t ct_queue_room(const ct_device *dev, enum ct_queue queue) {
  const struct ct_ring *r = &dev->queues->ring[queue];
  return ct_ring_slots(dev) - (r->submitted - r->completed);
}

uint64_t ct_queue_submitted(const ct_device *dev, enum ct_queue queue) {
  return dev->queues->ring[queue].submitted;
}

bool ct_queue_is_idle(const ct_device *dev, enum ct_queue queue) {
  return dev->queues->ring[queue].submitted == dev->queues->ring[queue].completed;
}

bool ct_queue_is_at(const ct_device *dev, enum ct_queue queue, enum ct_event_kind kind) {
  const struct ct_ring *r = &dev->queues->ring[queue];
  return !ct_queue_is_idle(dev, queue) && ct_ring_pending(dev, queue, r->completed)->kind == kind;
}

/* ---- Submitting ---------------------------------------------------------------------------- */

/* Word number `word` of little-endian bytes. */
static void put32(uint8_t *p, size_t word, uint32_t v) {
  for (unsigned i = 0; i < 4; ++i)
    p[4 * word + i] = (uint8_t)(v >> 8 * i);
}

static int write_descriptor(ct_device *dev, const struct ct_ring *r, uint64_t seq,
                            const struct ct_job *job, bool chain) {
  uint8_t desc[CT_DESC_BYTES] = {0};
  put32(desc, CT_DESC_TAG, (uint32_t)seq);
  put32(desc, CT_DESC_VERSION, job->version);
  put32(desc, CT_DESC_PROG, (uint32_t)(job->program->addr / CT_UNIT));
  put32(desc, CT_DESC_NCMDS, job->program->count);
  put32(desc, CT_DESC_WATCHDOG, job->watchdog);
  put32(desc, CT_DESC_FLAGS, job->flags | (chain ? CT_FLAG_CHAIN : 0));
  for (unsigned i = 0; i < CT_MAX_ARGS; ++i)
    put32(desc, CT_DESC_ARG0 + i, job->args[i]);
  const uint64_t slot = seq & (ct_ring_slots(dev) - 1);
  return ct_mem_put(dev, r->addr + slot * CT_DESC_BYTES, desc, sizeof desc);
}

/* Tells the device of the jobs so far. If that fails, it may have taken effect all the same; so it
 * is done again, which changes nothing then, before anything else is submitted. */
static int write_tail(ct_device *dev, enum ct_queue queue, uint64_t submitted) {
  const int err =
      ct_reg_write(dev, ct_queue_reg(queue, CT_CREG_TAIL), (uint32_t)submitted & 0xffff);
  dev->queues->ring[queue].owed = err != CT_OK;
  return err;
}

int ct_ring_again(ct_device *dev, enum ct_queue queue) {
  const struct ct_ring *r = &dev->queues->ring[queue];
  return r->owed ? write_tail(dev, queue, r->submitted) : CT_OK;
}

/* Rings now or at a cycle, but never before a doorbell that is already scheduled. What is written
 * now is owed if it fails: the jobs are in the ring. */
static int ring_doorbell(ct_device *dev, const struct ct_work *work) {
  struct ct_ring *r = &dev->queues->ring[work->queue];
  const struct ct_transport_ops *ops = dev->plugin.ops;
  const uint64_t submitted = r->submitted + work->jobs;
  uint64_t cycle = work->cycle;
  if (cycle == CT_NO_CYCLE && r->latest) {
    uint64_t now = 0;
    const int err = ct_now(dev, &now);
    if (err) return err;
    if (now > r->latest) r->latest = 0;
    cycle = r->latest ? r->latest : CT_NO_CYCLE;
  }
  if (cycle == CT_NO_CYCLE || !ops->reg_write_at) {
    (void)write_tail(dev, work->queue, submitted);
    return CT_OK;
  }
  if (cycle > r->latest) r->latest = cycle;
  const int err = ops->reg_write_at(dev->self, r->latest, ct_queue_reg(work->queue, CT_CREG_TAIL),
                                    (uint32_t)submitted & 0xffff);
  return err < 0 ? ct_fail_device(dev, err, "scheduling a doorbell failed") : CT_OK;
}

static int check_job(ct_device *dev, const struct ct_job *job) {
  if (!job || !job->program)
    return ct_fail(dev, CT_ERR_ARG, "%s is NULL", job ? "the job's program" : "the job");
  if (job->program->handle.dev != dev)
    return ct_fail(dev, CT_ERR_ARG, "the program belongs to another device");
  const int err = ct_check_handle(&job->program->handle, "program");
  if (err) return err;
  if (job->flags & ~CT_JOB_OVERLAP)
    return ct_fail(dev, CT_ERR_ARG, "unknown flags 0x%x of a job", (unsigned)job->flags);
  return ct_check_reserved(dev, "ct_job", job->reserved,
                           sizeof job->reserved / sizeof *job->reserved);
}

static int check_work(ct_device *dev, const struct ct_work *work) {
  int err = ct_check_device(dev);
  if (!err) err = ct_check_queue(dev, work->queue);
  if (!err && work->queue == CT_TRAINING && !(dev->info.features & CT_FEATURE_TRAINING))
    return ct_fail(dev, CT_ERR_UNSUPPORTED,
                   "this device has one context, for inference: it has no queue CT_TRAINING");
  for (unsigned i = 0; i < work->jobs && !err; ++i)
    err = check_job(dev, work->job ? work->job + i : NULL);
  if (err) return err;
  const char *name = work->queue == CT_INFERENCE ? "inference" : "training";
  const unsigned slots = (unsigned)ct_ring_slots(dev);
  if (work->jobs > slots)
    return ct_fail(dev, CT_ERR_NO_SPACE, "this takes %u jobs in a row, the %s queue holds %u",
                   work->jobs, name, slots);
  if (ct_queue_room(dev, work->queue) >= work->jobs) return CT_OK;
  return ct_fail(dev, CT_ERR_FULL, "the %s queue is full: it holds %u jobs; reap some first", name,
                 slots);
}

static int write_work(ct_device *dev, const struct ct_work *work) {
  struct ct_ring *r = &dev->queues->ring[work->queue];
  const struct ct_listener *above = dev->queues->listener;
  int err = CT_OK;
  for (unsigned i = 0; i < work->jobs && !err; ++i)
    err = write_descriptor(dev, r, r->submitted + i, &work->job[i], i > 0 || work->chained);
  if (!err && above && above->joins) err = above->joins(dev, work->queue);
  return err ? err : ring_doorbell(dev, work);
}

static void note_work(ct_device *dev, const struct ct_work *work) {
  struct ct_ring *r = &dev->queues->ring[work->queue];
  for (unsigned i = 0; i < work->jobs; ++i, ++r->submitted) {
    ct_program *program = (ct_program *)work->job[i].program; /* const to the caller only */
    *ct_ring_pending(dev, work->queue, r->submitted) =
        (struct ct_pending){.program = program,
                            .scheduled = work->cycle,
                            .user = work->job[i].user,
                            .done = work->done,
                            .arg = work->arg,
                            .kind = work->kind,
                            .last = i + 1 == work->jobs,
                            .before = i};
    ++program->jobs;
  }
}

int ct_submit_work(ct_device *dev, const struct ct_work *work, uint64_t *tag) {
  int err = check_work(dev, work);
  if (!err) err = ct_ring_again(dev, work->queue);
  if (err) return err;
  err = ct_event_expect(dev, work->queue);
  if (err) return err;
  err = write_work(dev, work);
  if (err) {
    ct_event_forget(dev, work->queue);
    return err;
  }
  note_work(dev, work);
  if (tag) *tag = ct_job_tag(work->queue, dev->queues->ring[work->queue].submitted - 1);
  ct_show_outstanding(dev);
  return CT_OK;
}

int ct_submit_at(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t cycle,
                 uint64_t *tag) {
  const struct ct_work work = {
      .queue = queue, .kind = CT_EVENT_JOB, .job = job, .jobs = 1, .cycle = cycle};
  return ct_submit_work(dev, &work, tag);
}

int ct_submit(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t *tag) {
  return ct_submit_at(dev, queue, job, CT_NO_CYCLE, tag);
}

/* ---- Completions --------------------------------------------------------------------------- */

/* The words of a completion, as they are read. */
struct completion {
  uint32_t tag, code, addr, version, rows, time[6];
};

/* Reads the oldest completion of a queue. */
static int read_completion(ct_device *dev, enum ct_queue queue, struct completion *c) {
  static const uint32_t offset[] = {
      CT_CREG_CPL_TAG,      CT_CREG_CPL_CODE,      CT_CREG_CPL_ADDR,      CT_CREG_CPL_VERSION,
      CT_CREG_CPL_ROWS,     CT_CREG_CPL_ARRIVE_LO, CT_CREG_CPL_ARRIVE_HI, CT_CREG_CPL_START_LO,
      CT_CREG_CPL_START_HI, CT_CREG_CPL_END_LO,    CT_CREG_CPL_END_HI};
  uint32_t *const word[] = {&c->tag,     &c->code,    &c->addr,    &c->version,
                            &c->rows,    &c->time[0], &c->time[1], &c->time[2],
                            &c->time[3], &c->time[4], &c->time[5]};
  const unsigned n = dev->info.has_clock ? 11 : 5;
  for (unsigned i = 0; i < n; ++i) {
    const int err = ct_reg_read(dev, ct_queue_reg(queue, offset[i]), word[i]);
    if (err) return err;
  }
  return CT_OK;
}

/* Drops it from the device. If that fails, it may be gone all the same. */
static int pop(ct_device *dev, enum ct_queue queue) {
  const int err = ct_reg_write(dev, ct_queue_reg(queue, CT_CREG_CPL_POP), 1);
  dev->queues->ring[queue].unpopped = err != CT_OK;
  return err;
}

static uint64_t time_of(const ct_device *dev, const uint32_t *word) {
  return dev->info.has_clock ? (uint64_t)word[1] << 32 | word[0] : CT_NO_CYCLE;
}

int ct_code_error(uint32_t code) {
  if (code == CT_DEV_OK) return CT_OK;
  const bool ended = code == CT_DEV_CANCELLED || code == CT_DEV_UNLOADED || code == CT_DEV_RESET;
  return ended ? CT_ERR_CANCELLED : CT_ERR_JOB;
}

/* Adds a job to the event of its work: times from the first to the last, the sum of the rows, and
 * what the first that failed said (those behind it did nothing). */
static void add_job(ct_device *dev, const struct ct_pending *p, const struct completion *c,
                    struct ct_event *e) {
  if (p->before == 0)
    *e = (struct ct_event){.kind = p->kind,
                           .version = c->version,
                           .scheduled = p->scheduled,
                           .arrive = time_of(dev, c->time),
                           .start = time_of(dev, c->time + 2),
                           .deadline = CT_NO_CYCLE,
                           .user = p->user};
  e->end = time_of(dev, c->time + 4);
  e->rows += c->rows;
  ++e->jobs;
  if (e->error) return;
  const bool empty = p->emptied && c->code == CT_DEV_DESCRIPTOR; /* see ct_cancel.c */
  e->code = empty ? CT_DEV_CANCELLED : c->code;
  e->error = ct_code_error(e->code);
  e->address = empty ? 0 : c->addr;
}

/* The oldest job is over. */
static void job_over(ct_device *dev, enum ct_queue queue, const struct completion *c) {
  const struct ct_listener *above = dev->queues->listener;
  struct ct_ring *r = &dev->queues->ring[queue];
  const struct ct_pending p = *ct_ring_pending(dev, queue, r->completed);
  add_job(dev, &p, c, &r->work);
  r->work.queue = queue;
  r->work.tag = ct_job_tag(queue, r->completed++);
  if (p.program) --p.program->jobs;
  if (above && above->completed) above->completed(dev, queue);
  if (!p.last) return;
  if (p.done) p.done(p.arg, &r->work);
  ct_event_put(dev, &r->work);
}

void ct_ring_drop(ct_device *dev, enum ct_queue queue) {
  const struct ct_ring *r = &dev->queues->ring[queue];
  const uint32_t never = UINT32_MAX; /* CT_NO_CYCLE */
  const struct completion c = {.code = CT_DEV_RESET,
                               .time = {never, never, never, never, never, never}};
  while (r->completed < r->dropped)
    job_over(dev, queue, &c);
  ct_sweep(dev);
}

static int take_completion(ct_device *dev, enum ct_queue queue) {
  struct ct_ring *r = &dev->queues->ring[queue];
  struct completion c = {0};
  int err = read_completion(dev, queue, &c);
  if (err) return err;
  if (r->unpopped && c.tag == r->popped) return pop(dev, queue); /* taken in before */
  r->popped = c.tag;
  err = pop(dev, queue);
  /* One from behind a reset. */
  if (r->completed < r->dropped && c.tag == (uint32_t)r->dropped) ct_ring_drop(dev, queue);
  if (r->completed == r->submitted || c.tag != (uint32_t)r->completed)
    return ct_fail(dev, CT_ERR_DEVICE, "a completion came that belongs to no job (tag 0x%x)",
                   c.tag);
  job_over(dev, queue, &c);
  return err;
}

int ct_ring_take(ct_device *dev, enum ct_queue queue) {
  uint32_t waiting = 1;
  int err = CT_OK;
  while (waiting && !err) {
    err = take_completion(dev, queue);
    if (!err) err = ct_reg_read(dev, ct_queue_reg(queue, CT_CREG_CPL_COUNT), &waiting);
  }
  return err;
}
