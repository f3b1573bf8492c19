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

/* A job in the ring is left without commands: the device ends it with DESCRIPTOR, which no other
 * job of the library gets, so whatever the device reads in this moment, its completion says whether
 * the job ran. It may have read the descriptor before: so it is told to cancel the job of that
 * number in any case, which hits it if it runs or is about to, and nothing if it is through or not
 * read. */
static int cancel_job(ct_device *dev, enum ct_queue queue, uint64_t seq) {
  static const uint8_t none[4];
  const uint64_t slot = seq & (ct_ring_slots(dev) - 1);
  const uint64_t count =
      dev->queues->ring[queue].addr + slot * CT_DESC_BYTES + UINT64_C(4) * CT_DESC_NCMDS;
  bool taken = false;
  int err = is_taken(dev, queue, seq, &taken);
  if (!err && !taken) {
    ct_ring_pending(dev, queue, seq)->emptied = true; /* perhaps even if the write fails */
    err = ct_mem_put(dev, count, none, sizeof none);
  }
  if (err) return err;
  return ct_reg_write(dev, ct_queue_reg(queue, CT_CREG_CONTROL), (uint32_t)seq << 16 | 4 | 2);
}

/* The last job first: the device goes on meanwhile, and what it comes to is whole up to the first
 * job that does not run. */
int ct_cancel_work(ct_device *dev, enum ct_queue queue, uint64_t last) {
  const uint64_t completed = dev->queues->ring[queue].completed;
  uint64_t first = last - ct_ring_pending(dev, queue, last)->before;
  int err = CT_OK;
  if (first < completed) first = completed;
  for (uint64_t seq = last + 1; seq > first && !err; --seq)
    err = cancel_job(dev, queue, seq - 1);
  return err;
}

int ct_cancel(ct_device *dev, uint64_t tag) {
  uint64_t seq;
  int err = ct_check_device(dev);
  if (err) return err;
  const struct ct_listener *above = dev->queues->listener;
  if (tag && ct_event_is_there(dev, tag)) return CT_OK;
  if (above && above->pending && above->pending(dev, tag)) return above->cancel(dev, tag);
  if (!ct_is_pending(dev, tag, &seq)) return ct_unknown_tag(dev, tag);
  return ct_cancel_work(dev, tag & 1 ? CT_TRAINING : CT_INFERENCE, seq);
}
