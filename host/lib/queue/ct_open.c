/* SPDX-License-Identifier: Apache-2.0 */
/* A device with its queues: opened and closed. */
#include <stdlib.h>
#include <string.h>

#include "ct_queue.h"

static int open_queues(ct_device *dev) {
  struct ct_queues *q = dev->queues = calloc(1, sizeof *q);
  if (!q) return CT_ERR_MEMORY;
  q->fd = q->wake = q->irq = -1;
  return ct_rings_open(dev);
}

static int open_device(const char *uri, const struct ct_options *options, ct_device **device,
                       const char *call) {
  if (device) *device = NULL;
  CT_NEED_OF(NULL, call, device);
  CT_NEED_OF(NULL, call, uri);
  ct_device *dev;
  int err = ct_device_open(uri, options, &dev);
  if (!err) err = open_queues(dev);
  if (err) {
    ct_device_failed(dev, uri, options, err);
    ct_close(dev);
    return err;
  }
  dev->error[0] = 0;
  dev->opened = true;
  ct_log(dev, CT_LOG_INFO, "%s is open: %u x %u, %llu bytes of memory", uri, dev->info.array_rows,
         dev->info.array_cols, (unsigned long long)dev->info.dram_bytes);
  *device = dev;
  return CT_OK;
}

int ct_open_with(const char *uri, const struct ct_options *options, ct_device **device) {
  return open_device(uri, options, device, __func__);
}

int ct_open(const char *uri, ct_device **device) {
  return open_device(uri, NULL, device, __func__);
}

static void close_queues(ct_device *dev) {
  struct ct_queues *q = dev->queues;
  const size_t unreaped = q->ring[0].unreaped + q->ring[1].unreaped;
  if (unreaped)
    ct_log(dev, CT_LOG_WARNING, "closed with %zu jobs or requests that nobody reaped", unreaped);
  if (q->listener && q->listener->close) q->listener->close(dev);
  ct_cache_close(dev);
}

/* Tells those who wait for the end of something that there will be none: the device has stopped. */
static void abandon(struct ct_ring *r, uint64_t slots) {
  const struct ct_event closed = {.error = CT_ERR_CLOSED};
  for (; r->completed < r->submitted; ++r->completed) {
    const struct ct_pending *p = &r->pending[r->completed & (slots - 1)];
    if (p->last && p->done) p->done(p->arg, &closed);
  }
}

static void free_queues(struct ct_queues *q) {
  for (unsigned i = 0; q && i < CT_QUEUES; ++i)
    free(q->ring[i].pending);
  if (q) free(q->event);
  free(q);
}

void ct_close(ct_device *dev) {
  if (!dev) return;
  if (dev->closed) {
    ct_fail(dev, CT_ERR_CLOSED, "the device %s was closed before", dev->info.uri);
    return;
  }
  struct ct_queues *q = dev->queues;
  const uint64_t slots = ct_ring_slots(dev);
  if (q) close_queues(dev);
  if (q) ct_poll_close(dev);
  dev->queues = NULL;
  ct_device_close(dev); /* the device itself may be gone after this */
  for (unsigned i = 0; q && i < CT_QUEUES; ++i)
    abandon(&q->ring[i], slots);
  free_queues(q);
}
