/* SPDX-License-Identifier: Apache-2.0 */
/* Ending jobs early. */
#include "ct_queue.h"

/* Whether the device has taken the descriptor of job seq. */
static int is_taken(ct_device *dev, enum ct_queue queue, uint64_t seq, bool *taken) {
  uint32_t head = 0;
  const int err = ct_reg_read(dev, ct_queue_reg(queue, CT_CREG_HEAD), &head);
  *taken = ((head - (uint32_t)seq - 1) & 0xffff) < 0x8000;
  return err;
}

/* Little-endian words of the descriptor that name its program. */
static void put_run(uint8_t bytes[8], const ct_program *p) {
  const uint32_t word[2] = {(uint32_t)(p->addr / CT_UNIT), p->count};
  for (unsigned i = 0; i < 8; ++i)
    bytes[i] = (uint8_t)(word[i / 4] >> 8 * (i % 4));
}

/* A job in the ring is replaced by one that does nothing. The device may take the descriptor
 * meanwhile, or have read it a moment ago: so it is told to cancel the job of that number in any
 * case, which hits it if it runs or is about to, and nothing if it is through or not read. */
int ct_cancel_job(ct_device *dev, enum ct_queue queue, uint64_t seq) {
  struct ct_ring *r = &dev->queues->ring[queue];
  const uint64_t slot = seq & (ct_ring_slots(dev) - 1);
  bool taken = false;
  int err = is_taken(dev, queue, seq, &taken);
  if (!err && !taken) {
    uint8_t run[8];
    put_run(run, dev->queues->idle);
    err = ct_mem_put(dev, r->addr + slot * CT_DESC_BYTES + UINT64_C(4) * CT_DESC_PROG, run,
                     sizeof run);
    if (!err) err = is_taken(dev, queue, seq, &taken);
    if (!err && !taken) r->pending[slot].cancelled = true;
  }
  if (err) return err;
  return ct_reg_write(dev, ct_queue_reg(queue, CT_CREG_CONTROL), (uint32_t)seq << 16 | 4 | 2);
}

int ct_cancel(ct_device *dev, uint64_t tag) {
  uint64_t seq;
  int err = ct_check_device(dev);
  if (err) return err;
  const struct ct_listener *above = dev->queues->listener;
  if (tag && ct_event_is_there(dev, tag)) return CT_OK;
  if (above && above->pending && above->pending(dev, tag)) return above->cancel(dev, tag);
  if (!ct_is_pending(dev, tag, &seq)) return ct_unknown_tag(dev, tag);
  const enum ct_queue queue = tag & 1 ? CT_TRAINING : CT_INFERENCE;
  uint64_t first = seq - ct_ring_pending(dev, queue, seq)->before;
  if (first < dev->queues->ring[queue].completed) first = dev->queues->ring[queue].completed;
  for (; first <= seq && !err; ++first)
    err = ct_cancel_job(dev, queue, first);
  return err;
}
