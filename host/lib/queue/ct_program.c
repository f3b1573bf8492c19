/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in device memory. */
#include <stdlib.h>

#include "ct_disasm.h"
#include "ct_queue.h"

/* A program lies in the part of the memory that jobs cannot write, or where that is full with data.
 */
static struct ct_heap *heap_of(ct_device *dev, uint64_t addr) {
  return addr < dev->data_start ? &dev->code : &dev->data;
}

/* Programs that are only kept make room for others. */
static int place(ct_device *dev, ct_program *p) {
  int err;
  do
    err = ct_heap_alloc(&dev->code, (uint64_t)p->count * CT_CMD_BYTES, 64, &p->addr);
  while (err == CT_ERR_NO_SPACE && ct_cache_shrink(dev));
  if (err == CT_ERR_NO_SPACE)
    err = ct_heap_alloc(&dev->data, (uint64_t)p->count * CT_CMD_BYTES, 64, &p->addr);
  if (err == CT_ERR_MEMORY) return ct_fail(dev, err, "the host has no memory left");
  if (err)
    return ct_fail(dev, err, "no room for another program of %u commands in device memory",
                   p->count);
  return CT_OK;
}

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
  err = place(dev, p);
  if (err) {
    free(p);
    return err;
  }
  err = ct_mem_put(dev, p->addr, commands, count * CT_CMD_BYTES);
  if (err) {
    ct_heap_free(heap_of(dev, p->addr), p->addr);
    free(p);
    return err;
  }
  ct_handle_open(&p->handle, dev);
  *program = p;
  return CT_OK;
}

int ct_disassemble(const void *commands, size_t count, ct_line_fn *line, void *arg) {
  struct ct_cmd cmds[CT_PROG_MAX];
  CT_NEED(NULL, commands);
  CT_NEED(NULL, line);
  if (count > CT_PROG_MAX)
    return ct_fail(NULL, CT_ERR_ARG, "a program has at most %u commands, not %zu", CT_PROG_MAX,
                   count);
  for (size_t i = 0; i < count; ++i)
    cmds[i] = ct_cmd_from_bytes((const uint8_t *)commands + i * CT_CMD_BYTES);
  ct_disasm(cmds, count, line, arg);
  return CT_OK;
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

/* Cancels what is left of a program in a queue, with the works that it is part of, and waits for
 * it, but not for long. Moves *until on to what does not end even so. */
static void end_jobs(ct_device *dev, enum ct_queue queue, const ct_program *p,
                     struct ct_until *until) {
  const struct ct_ring *r = &dev->queues->ring[queue];
  uint64_t end = 0;
  int err = CT_OK;
  bool part = false;
  for (uint64_t seq = r->completed; seq < r->submitted; ++seq) {
    const struct ct_pending *job = ct_ring_pending(dev, queue, seq);
    part |= job->program == p;
    if (part && job->last) {
      if (!err) err = ct_cancel_work(dev, queue, seq);
      end = seq + 1;
    }
    part &= !job->last;
  }
  if (end && !err) ct_wait_completed(dev, queue, end, CT_CANCEL_MS);
  for (uint64_t seq = r->completed; seq < end; ++seq) {
    if (ct_ring_pending(dev, queue, seq)->program != p) continue;
    ct_ring_pending(dev, queue, seq)->program = NULL;
    if (until->below[queue] <= seq) until->below[queue] = seq + 1;
  }
}

/* The program's own memory, and its handle. */
static void leave(ct_program *p, const struct ct_until *until) {
  ct_device *dev = p->handle.dev;
  if (p->jobs) {
    ct_heap_leave(heap_of(dev, p->addr), p->addr, until);
    ++dev->queues->leaving;
  } else {
    ct_heap_free(heap_of(dev, p->addr), p->addr);
  }
}

void ct_program_free(ct_program *p) {
  struct ct_until until = {{0, 0}};
  if (!p || !ct_handle_close(&p->handle, "program")) return;
  ct_device *dev = p->handle.dev;
  const bool there = dev->self && dev->queues;
  if (p->jobs && there) ct_poll(dev); /* some may be through: without an answer all count */
  if (p->jobs && there) {
    ct_log(dev, CT_LOG_WARNING,
           "%zu jobs of a model or program that is freed are under way; they are cancelled",
           p->jobs);
    for (int q = 0; q < CT_QUEUES; ++q)
      end_jobs(dev, (enum ct_queue)q, p, &until);
  }
  if (there) leave(p, &until);
  ct_handle_bury(&p->handle);
}

void ct_program_drop(ct_program *p) {
  if (!p || !ct_handle_close(&p->handle, "program")) return;
  ct_handle_bury(&p->handle);
}

/* ---- Memory that jobs use ------------------------------------------------------------------ */

static struct ct_until completed(const ct_device *dev) {
  struct ct_until u;
  for (unsigned q = 0; q < CT_QUEUES; ++q)
    u.below[q] = dev->queues->ring[q].completed;
  return u;
}

void ct_give_back_until(ct_device *dev, uint64_t addr, const struct ct_until *until) {
  if (!addr) return;
  ct_heap_leave(&dev->data, addr, until);
  ++dev->queues->leaving;
  ct_sweep(dev);
}

void ct_give_back_after(ct_device *dev, uint64_t addr, enum ct_queue queue, int err) {
  struct ct_until until = {{0, 0}};
  if (err == CT_ERR_DEVICE) until.below[queue] = dev->queues->ring[queue].submitted;
  ct_give_back_until(dev, addr, &until);
}

void ct_sweep(ct_device *dev) {
  struct ct_queues *q = dev->queues;
  const struct ct_until now = completed(dev);
  if (!q->leaving) return;
  q->leaving = ct_heap_sweep(&dev->code, &now) + ct_heap_sweep(&dev->data, &now);
}
