/* SPDX-License-Identifier: Apache-2.0 */
/* Ending jobs early, and resetting a queue. */
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
 * the job ran. It may have read the descriptor before: so it is asked to cancel the job of that
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

/* ---- Resetting a queue --------------------------------------------------------------------- */

/* LIMIT: cycles that the memory has for its answers, at most; it had them before. STEP, STEP_MS:
 * from look to look; LOOKS: of them, at most, after the limit. */
enum { LIMIT = 100000, STEP = 1000, STEP_MS = 1, LOOKS = 1000 };
enum { RESET = 1, STATE = 7, STATE_ABORTING = 5, WAITING_SHIFT = 8 };

/* Full number from the low 16 bits of one that is not above `submitted`. */
static uint64_t number_of(uint64_t submitted, uint32_t low) {
  return submitted - (((uint32_t)submitted - low) & 0xffff);
}

/* The device drops what it had heard of until then. If it hears of more meanwhile, by a doorbell
 * that was scheduled, nobody knows what became of that: it is done again. */
static int reset_once(ct_device *dev, enum ct_queue queue) {
  struct ct_ring *r = &dev->queues->ring[queue];
  const uint32_t tail = ct_queue_reg(queue, CT_CREG_TAIL);
  uint32_t before = 0, after = 1;
  int err = CT_OK;
  while (!err && before != after) {
    err = ct_reg_read(dev, tail, &before);
    if (!err) err = ct_reg_write(dev, ct_queue_reg(queue, CT_CREG_CONTROL), RESET);
    if (!err) err = ct_reg_read(dev, tail, &after);
  }
  if (!err) r->dropped = number_of(r->submitted, after);
  return err;
}

struct state {
  bool over; /* nothing runs of what was reset, or what comes behind has been taken */
  bool dead; /* the memory owes answers, and nothing else is missing */
};

static int read_state(ct_device *dev, enum ct_queue queue, struct state *s) {
  const struct ct_ring *r = &dev->queues->ring[queue];
  uint32_t status = 0, dead = 0, head = 0;
  int err = ct_reg_read(dev, ct_queue_reg(queue, CT_CREG_STATUS), &status);
  if (!err) err = ct_reg_read(dev, ct_queue_reg(queue, CT_CREG_HEAD), &head);
  if (!err) err = ct_reg_read(dev, CT_REG_DEAD, &dead);
  s->over = (status & STATE) == 0 || number_of(r->submitted, head) > r->dropped;
  s->dead =
      (status & STATE) == STATE_ABORTING && !(status >> WAITING_SHIFT & 255) && dead >> queue & 1;
  return err;
}

static int wait_a_little(ct_device *dev) {
  uint64_t now = 0;
  const int err = ct_now(dev, &now);
  if (err) return err;
  const uint64_t until = dev->info.has_clock ? now + STEP : CT_NO_CYCLE;
  const int irq = dev->plugin.ops->wait(dev->self, until, STEP_MS);
  return irq < 0 ? ct_fail_device(dev, irq, "waiting for the device failed") : CT_OK;
}

/* The first reset ends what runs. If the memory does not answer, the port is dead after a while,
 * and another one gives up what is owed. */
static int reset_queue(ct_device *dev, enum ct_queue queue) {
  struct state s = {false, false};
  int err = reset_once(dev, queue);
  for (unsigned look = 0; !err && !s.over && look < LOOKS; ++look) {
    err = s.dead ? reset_once(dev, queue) : wait_a_little(dev);
    if (!err) err = read_state(dev, queue, &s);
    if (!err) err = ct_poll(dev);
  }
  if (err) return err;
  if (!s.over)
    return ct_fail(dev, CT_ERR_DEVICE, "the queue does not come to rest; close the device");
  ct_ring_drop(dev, queue);
  return CT_OK;
}

/* A doorbell that failed comes first: what it is for was submitted before, and must not run behind.
 */
int ct_reset(ct_device *dev, enum ct_queue queue) {
  uint32_t limit = 0;
  int err = ct_check_device(dev);
  if (!err) err = ct_check_queue(dev, queue);
  if (!err) err = ct_ring_again(dev, queue);
  if (!err) err = ct_reg_read(dev, CT_REG_DRAIN_LIMIT, &limit);
  if (!err && limit > LIMIT) err = ct_reg_write(dev, CT_REG_DRAIN_LIMIT, LIMIT);
  if (err) return err;
  err = reset_queue(dev, queue);
  if (limit <= LIMIT) return err;
  const int restored = ct_reg_write(dev, CT_REG_DRAIN_LIMIT, limit);
  return err ? err : restored;
}
