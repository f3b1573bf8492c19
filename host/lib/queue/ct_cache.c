/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are kept for the next call of the same shape: a few sets of them in the device, the
 * one that was used longest ago goes first. A set of which a job has not completed is left alone.
 */
#include <string.h>

#include "ct_queue.h"

static bool is_idle(const struct ct_cached *c) {
  for (unsigned i = 0; i < CT_CACHED_PROGRAMS; ++i)
    if (c->program[i] && c->program[i]->jobs) return false;
  return true;
}

void ct_cache_empty(struct ct_cached *c) {
  for (unsigned i = 0; i < CT_CACHED_PROGRAMS; ++i)
    ct_program_free(c->program[i]);
  memset(c, 0, sizeof *c);
}

/* The set that is to go first among those that may; NULL: none may. used 0: a place without one. */
static struct ct_cached *oldest(ct_device *dev, bool with_places) {
  struct ct_cached *found = NULL;
  for (unsigned i = 0; i < CT_CACHE; ++i) {
    struct ct_cached *c = &dev->queues->cache[i];
    if ((!c->used && !with_places) || !is_idle(c)) continue;
    if (!found || c->used < found->used) found = c;
  }
  return found;
}

struct ct_cached *ct_cache_find(ct_device *dev, const uint32_t *key) {
  for (unsigned i = 0; i < CT_CACHE; ++i) {
    struct ct_cached *c = &dev->queues->cache[i];
    if (!c->used || memcmp(c->key, key, sizeof c->key) != 0) continue;
    c->used = ++dev->queues->cache_uses;
    return c;
  }
  return NULL;
}

struct ct_cached *ct_cache_keep(ct_device *dev, const struct ct_cached *set) {
  struct ct_cached *c = oldest(dev, true);
  if (!c) return NULL;
  ct_cache_empty(c);
  *c = *set;
  c->used = ++dev->queues->cache_uses;
  return c;
}

bool ct_cache_shrink(ct_device *dev) {
  struct ct_cached *c = oldest(dev, false);
  if (c) ct_cache_empty(c);
  return c != NULL;
}

void ct_cache_close(ct_device *dev) {
  for (unsigned i = 0; i < CT_CACHE; ++i)
    for (unsigned p = 0; p < CT_CACHED_PROGRAMS; ++p)
      ct_program_drop(dev->queues->cache[i].program[p]);
}
