/* SPDX-License-Identifier: Apache-2.0 */
/* See ct_pool_axis.h. */
#include "ct_pool_axis.h"

/* What a tap shows at a position; -1: padding, or between windows. */
static int64_t shown(const struct ct_pool_axis *a, uint32_t at, uint32_t tap) {
  const int64_t offset = (int64_t)tap * a->dilation - a->pad;
  const int64_t x = a->back ? (int64_t)at - offset : (int64_t)at * a->stride + offset;
  if (x < 0) return -1;
  if (!a->back) return x < a->in ? x : -1;
  return x % a->stride == 0 && x / a->stride < a->out ? x / a->stride : -1;
}

static uint32_t size_of(const struct ct_pool_axis *a, uint32_t window) {
  const struct ct_pool_axis forward = {a->in,       a->out, a->taps, a->stride,
                                       a->dilation, a->pad, false};
  uint32_t n = 0;
  for (uint32_t tap = 0; tap < a->taps; ++tap)
    n += shown(&forward, window, tap) >= 0;
  return n;
}

static bool alike(const struct ct_pool_axis *a, uint32_t p, uint32_t q) {
  for (uint32_t tap = 0; tap < a->taps; ++tap) {
    const int64_t x = shown(a, p, tap), y = shown(a, q, tap);
    if ((x < 0) != (y < 0)) return false;
    if (a->back && x >= 0 && size_of(a, (uint32_t)x) != size_of(a, (uint32_t)y)) return false;
  }
  return true;
}

bool ct_pool_next(const struct ct_pool_axis *a, struct ct_pool_class *c) {
  const uint32_t step = a->back ? a->stride : 1, end = a->back ? a->in : a->out;
  while (c->next >= end) {
    if (++c->phase >= step || c->phase >= end) return false;
    c->next = c->phase;
  }
  c->first = c->next;
  c->step = step;
  c->count = 0;
  c->taps = 0;
  c->source_step = a->back ? 1 : a->stride;
  for (; c->next < end && alike(a, c->first, c->next); c->next += step)
    ++c->count;
  for (uint32_t tap = 0; tap < a->taps; ++tap) {
    const int64_t x = shown(a, c->first, tap);
    if (x < 0) continue;
    c->tap[c->taps].tap = tap;
    c->tap[c->taps].at = (uint32_t)x;
    c->tap[c->taps++].size = size_of(a, a->back ? (uint32_t)x : c->first);
  }
  return true;
}
