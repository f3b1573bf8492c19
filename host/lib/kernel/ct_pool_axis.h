/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One axis of a pooling, cut into classes: positions, evenly spaced, that see the same taps. So
 * what padding does at the borders, and strides between them, is in which commands there are, not
 * in what they read.
 *
 * Forward, positions are those of the output; a tap shows an element of the input. Backward they
 * are those of the input; a tap shows the window that has the element there.
 */
#ifndef CT_POOL_AXIS_H
#define CT_POOL_AXIS_H

#include <stdbool.h>
#include <stdint.h>

struct ct_pool_axis {
  uint32_t in, out, taps, stride, dilation;
  int32_t pad;
  bool back;
};

enum { CT_POOL_TAPS = 32 };
struct ct_pool_class {
  uint32_t first, count, step; /* positions */
  uint32_t phase, next;        /* of ct_pool_next() */
  unsigned taps;
  uint32_t source_step; /* from a position to the next */
  struct {
    uint32_t tap, at; /* what it shows at the first position */
    uint32_t size;    /* elements that exist of that window */
  } tap[CT_POOL_TAPS];
};

/* The first class (of a zeroed structure), and those behind it; false: there are no more. */
bool ct_pool_next(const struct ct_pool_axis *a, struct ct_pool_class *c);

#endif
