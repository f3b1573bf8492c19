/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of an array: inputs and labels in device memory, by kind of network, feed and run.
 *
 * Members that have the same feed and are at the same run find the batch that the first of them had
 * written. One that no run under way reads may be written anew: the one that was used longest ago.
 */
#include <stdlib.h>

#include "ct_array.h"

bool ct_array_same_feed(const struct ct_feed *a, const struct ct_feed *b) {
  return a->write == b->write && a->arg == b->arg;
}

static struct ct_array_batch *find(const struct ct_array *a, const struct ct_array_member *m) {
  for (size_t i = 0; i < a->batches; ++i) {
    struct ct_array_batch *b = a->batch[i];
    if (b->kind == m->network->shared && b->run == m->next &&
        ct_array_same_feed(&b->feed, &m->feed))
      return b;
  }
  return NULL;
}

/* Of a kind: the one that nobody reads and was used longest ago. *count: how many there are. */
static struct ct_array_batch *oldest(const struct ct_array *a, const struct ct_shared *kind,
                                     size_t *count) {
  struct ct_array_batch *best = NULL;
  *count = 0;
  for (size_t i = 0; i < a->batches; ++i) {
    struct ct_array_batch *b = a->batch[i];
    if (b->kind != kind) continue;
    ++*count;
    if (!b->uses && (!best || b->used < best->used)) best = b;
  }
  return best;
}

/* More than this of a kind are never read at once. */
static size_t most(const struct ct_array *a, const struct ct_shared *kind) {
  size_t count = 1;
  for (size_t i = 0; i < a->members; ++i)
    if (a->member[i]->network->shared == kind) count += a->member[i]->ahead;
  return count;
}

static int add(struct ct_array *a, const struct ct_array_member *m, struct ct_array_batch **batch) {
  struct ct_array_batch **more =
      realloc(a->batch, (a->batches + 1) * sizeof(struct ct_array_batch *));
  struct ct_array_batch *b = calloc(1, sizeof *b);
  if (more) a->batch = more;
  int err = more && b ? ct_inputs_make(m->network, &b->at)
                      : ct_fail(a->dev, CT_ERR_MEMORY, "no memory for a batch");
  if (err) {
    free(b);
    return err;
  }
  b->kind = m->network->shared;
  b->run = CT_NO_CYCLE;
  a->batch[a->batches++] = b;
  *batch = b;
  return CT_OK;
}

int ct_array_batch_reserve(struct ct_array *a, const struct ct_array_member *m) {
  struct ct_array_batch *batch;
  size_t count;
  oldest(a, m->network->shared, &count);
  return count ? CT_OK : add(a, m, &batch);
}

/* One to be written: a new one while there is room and few are there, else one that was used. NULL:
 * all are being read. */
static int choose(struct ct_array *a, const struct ct_array_member *m,
                  struct ct_array_batch **batch) {
  size_t count;
  *batch = oldest(a, m->network->shared, &count);
  if (*batch && (count > a->ahead || count >= most(a, m->network->shared))) return CT_OK;
  const int err = add(a, m, batch);
  return err == CT_ERR_NO_SPACE ? CT_OK : err;
}

int ct_array_batch_take(struct ct_array *a, struct ct_array_member *m,
                        struct ct_array_batch **batch, bool *own) {
  ct_frame *frame = m->frame[m->next % m->ahead];
  int err = CT_OK;
  *own = false;
  *batch = find(a, m);
  const bool written = *batch;
  if (!written) err = choose(a, m, batch);
  if (err || !*batch) return err;
  ct_frame_lend(frame, &(*batch)->at);
  if (written) return CT_OK;
  (*batch)->run = CT_NO_CYCLE;
  (*batch)->feed = m->feed;
  *own = true;
  err = m->feed.write(m->feed.arg, m->next, frame);
  if (err < 0) return err;
  (*batch)->run = m->next;
  ++a->written;
  return CT_OK;
}

/* ---- Giving back ---------------------------------------------------------------------------- */

static bool has_members(const struct ct_array *a, const struct ct_shared *kind) {
  for (size_t i = 0; i < a->members; ++i)
    if (a->member[i]->network->shared == kind) return true;
  return false;
}

void ct_array_batches_trim(struct ct_array *a) {
  size_t left = 0;
  for (size_t i = 0; i < a->batches; ++i) {
    struct ct_array_batch *b = a->batch[i];
    if (!has_members(a, b->kind)) b->kind = NULL;
    if (b->uses || b->kind) {
      a->batch[left++] = b;
      continue;
    }
    ct_inputs_free(a->dev, &b->at);
    free(b);
  }
  a->batches = left;
}

/* What a run under way reads stays until its queue is through. */
void ct_array_batches_free(struct ct_array *a) {
  for (size_t i = 0; i < a->batches; ++i) {
    struct ct_array_batch *b = a->batch[i];
    for (unsigned k = 0; k < CT_EXTERNALS && a->dev->queues; ++k)
      ct_give_back_after(a->dev, b->at.external[k], CT_TRAINING, b->uses ? CT_ERR_DEVICE : CT_OK);
    free(b);
  }
  free(a->batch);
  a->batch = NULL;
  a->batches = 0;
}
