/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport in front of another one that loses accesses: for tests of what the library makes of
 * registers that cannot be read or written.
 */
#ifndef FLAKY_H
#define FLAKY_H

#include "ct_tb.h"

#include "ct_device.h"

/* Whether an access that fails has taken effect in the device: at random, never, always. */
enum effect { EITHER, WITHOUT, WITH };

/* Accesses of requests fail; after a pop the device may say once that there is no record. */
struct flaky {
  struct ct_transport_ops ops;
  const struct ct_transport_ops *inner;
  void *self;
  ct_rng rng;
  uint32_t percent, only; /* writes of this register fail, and nothing else; 0: all of requests */
  unsigned from, most;    /* with only: after so many writes, and so many of them; 0: all */
  enum effect effect;
  uint32_t mem_percent; /* transfers of memory that fail, some of them on the way; 0: none */
  unsigned mem_failed;
  bool shy, popped;
  uint32_t lag;                      /* so many cycles at most pass before an access; 0: none */
  int irq;                           /* see flaky_have_irq() */
  void (*at_state)(struct flaky *f); /* NULL, or what happens while BATCH_STATE is on its way */
  unsigned failed[2];                /* without, with effect */
};

/* From now on the device's accesses come by. */
void flaky_begin(struct flaky *f, ct_device *dev);
void flaky_end(struct flaky *f, ct_device *dev);

/* As a device that runs by itself: its clock is the simulator's, its interrupt does not come.
 * f->irq is to be closed. */
void flaky_have_irq(struct flaky *f);

/* Fails so many writes of a register, from now on. */
void flaky_fail_writes(struct flaky *f, uint32_t only, unsigned most, enum effect effect);

#endif
