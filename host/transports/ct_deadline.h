/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock in milliseconds, and moments to wait until. */
#ifndef CT_DEADLINE_H
#define CT_DEADLINE_H

#include <stdint.h>
#include <time.h>

static inline int64_t ct_ms_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* For pthread_cond_timedwait() on a condition of the monotonic clock. */
static inline struct timespec ct_after_ms(unsigned ms) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += ms / 1000;
  t.tv_nsec += (long)(ms % 1000) * 1000000;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}

#endif
