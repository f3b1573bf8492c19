/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in device memory. */
#include <stdlib.h>

#include "ct_queue.h"

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
 * it, but not for long. */
static void end_jobs(ct_device *dev, enum ct_queue queue, const ct_program *p) {
  const struct ct_ring *r = &dev->queues->ring[queue];
  uint64_t end = 0;
  int err = CT_OK;
  bool part = false;
  for (uint64_t seq = r->completed; seq < r->submitted && !err; ++seq) {
    const struct ct_pending *job = ct_ring_pending(dev, queue, seq);
    part |= job->program == p;
    if (part && job->last) {
      err = ct_cancel_work(dev, queue, seq);
      end = seq + 1;
    }
    part &= !job->last;
  }
  if (end && !err) ct_wait_completed(dev, queue, end, CT_CANCEL_MS);
  for (uint64_t seq = r->completed; seq < end; ++seq)
    if (ct_ring_pending(dev, queue, seq)->program == p)
      ct_ring_pending(dev, queue, seq)->program = NULL;
}

bool ct_program_end(ct_program *p) {
  if (!p || !ct_handle_close(&p->handle, "program")) return true;
  ct_device *dev = p->handle.dev;
  const bool there = dev->self && dev->queues;
  if (p->jobs && there) ct_poll(dev); /* some may be through: without an answer all count */
  if (p->jobs && there) {
    ct_log(dev, CT_LOG_WARNING,
           "%zu jobs of a model or program that is freed are under way; they are cancelled",
           p->jobs);
    for (int q = 0; q < CT_QUEUES; ++q)
      end_jobs(dev, (enum ct_queue)q, p);
  }
  const bool ended = p->jobs == 0 || !there;
  if (ended) ct_heap_free(&dev->code, p->addr);
  ct_handle_bury(&p->handle);
  return ended;
}

void ct_program_free(ct_program *p) {
  ct_program_end(p);
}
