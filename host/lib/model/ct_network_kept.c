/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What networks keep compressed: the pages that the device puts it in, and the bounds.
 *
 * The device has one set of pages, for the training queue. Networks that have the same programs
 * share it, for their runs go one after the other, and each leaves it empty. Another network finds
 * it taken.
 *
 * After a run that failed there may be groups that no index knows: all pages are freed before the
 * next run, as soon as none is under way.
 */
#include <stdlib.h>

#include "ct_network.h"

enum { GROUP_UNITS = 70, PAGE_UNITS = CT_PAGE_BYTES / CT_UNIT };

static bool keeps(const ct_network *n) {
  return n->compiled.kepts > 0;
}

/* ---- Pages --------------------------------------------------------------------------------- */

/* A page is left when the next group does not fit: at least so much of it is full then. What others
 * have begun, and are not through with, is a page more. */
static uint64_t pages_of(const struct ct_kept *k) {
  const uint64_t full = PAGE_UNITS - GROUP_UNITS + 1;
  return (ct_pack_groups(k->rows, k->cols) * (uint64_t)GROUP_UNITS + full - 1) / full + 1;
}

static uint64_t most_pages(const ct_network *n) {
  uint64_t pages = 1;
  for (size_t i = 0; i < n->compiled.kepts; ++i)
    pages += pages_of(&n->compiled.kept[i]);
  return pages;
}

static int set(ct_network *n, uint32_t creg, uint32_t value) {
  return ct_reg_write(n->dev, ct_queue_reg(CT_TRAINING, creg), value);
}

static int check_pages(ct_network *n, uint64_t bytes, uint64_t *pages) {
  *pages = most_pages(n);
  if (bytes && bytes / CT_PAGE_BYTES < *pages) *pages = bytes / CT_PAGE_BYTES;
  if (n->dev->pages)
    return ct_fail(n->dev, CT_ERR_BUSY,
                   "another network keeps its activations compressed, and the device has pages for "
                   "one: free that network first, or keep those of this one in HBFP8");
  if (*pages == 0)
    return ct_fail(n->dev, CT_ERR_ARG, "%llu bytes for what is kept compressed: a page has %d",
                   (unsigned long long)bytes, CT_PAGE_BYTES);
  if (*pages <= CT_COMP_PAGES) return CT_OK;
  return ct_fail(n->dev, CT_ERR_NO_SPACE,
                 "what is kept compressed may take %llu pages, the device has at most %d: say how "
                 "many bytes there are to be",
                 (unsigned long long)*pages, CT_COMP_PAGES);
}

/* Pages begin at multiples of their size. */
static int open_pages(ct_network *n, uint64_t bytes) {
  struct ct_shared *s = n->shared;
  uint64_t pages;
  int err = check_pages(n, bytes, &pages);
  if (!err) err = ct_mem_alloc(n->dev, (pages + 1) * CT_PAGE_BYTES, &s->pages);
  if (err) return err;
  n->dev->pages = s;
  s->page_count = (uint32_t)pages;
  const uint64_t first = (s->pages + CT_PAGE_BYTES - 1) / CT_PAGE_BYTES * CT_PAGE_BYTES;
  err = set(n, CT_CREG_ARENA_BASE, ct_units_of(first));
  return err ? err : set(n, CT_CREG_ARENA_PAGES, s->page_count);
}

int ct_kept_open(ct_network *n, uint64_t bytes) {
  if (!keeps(n)) return CT_OK;
  n->bound = calloc(n->compiled.kepts, sizeof *n->bound);
  if (!n->bound) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for the network");
  return n->shared->pages ? CT_OK : open_pages(n, bytes);
}

void ct_kept_leave(ct_device *dev, struct ct_shared *s) {
  if (!s->pages) return;
  ct_give_back_after(dev, s->pages, CT_TRAINING, s->error[CT_TRAINING]);
  s->pages = 0;
  dev->pages = NULL;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

int ct_kept_begin(ct_network *n, enum ct_queue queue) {
  const struct ct_ring *ring = &n->dev->queues->ring[CT_TRAINING];
  if (!keeps(n)) return CT_OK;
  if (queue != CT_TRAINING)
    return ct_fail(n->dev, CT_ERR_UNSUPPORTED,
                   "the network keeps activations compressed, which only the training queue does");
  if (!n->shared->leaky || ring->completed != ring->submitted) return CT_OK;
  n->shared->leaky = false;
  return set(n, CT_CREG_ARENA_PAGES, n->shared->page_count);
}

void ct_kept_ended(ct_network *n, int error) {
  if (keeps(n) && error) n->shared->leaky = true;
}

void ct_kept_argument(const ct_network *n, const struct ct_stage *stage, struct ct_job *job) {
  job->args[CT_ARG_BOUND - 1] = (uint32_t)n->bound[stage->kept - 1] << 4;
}

/* ---- Facts --------------------------------------------------------------------------------- */

static int find(ct_network *n, size_t index) {
  const int err = ct_check_network(n);
  if (err || index < n->compiled.kepts) return err;
  return ct_fail(n->dev, CT_ERR_NOT_FOUND, "the network keeps %zu tensors compressed, not %zu",
                 n->compiled.kepts, index + 1);
}

/* Units of the groups of an index, and its own. */
static int count_units(ct_network *n, const struct ct_kept *k, uint64_t *units) {
  const uint32_t own = ct_pack_units(k->rows, k->cols);
  const uint64_t at = n->shared->arena[CT_TRAINING] + (uint64_t)k->index.at * CT_UNIT;
  uint8_t *bytes = malloc((size_t)own * CT_UNIT);
  if (!bytes) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for an index");
  const int err = ct_mem_read(n->dev, at, bytes, (size_t)own * CT_UNIT);
  *units = own;
  for (size_t i = 0; i < (size_t)own * CT_UNIT; i += 4)
    *units += bytes[i] & 127;
  free(bytes);
  return err;
}

int ct_network_kept(ct_network *n, size_t index, struct ct_network_kept *kept) {
  int err = find(n, index);
  if (err) return err;
  CT_NEED(n->dev, kept);
  const struct ct_kept *k = &n->compiled.kept[index];
  *kept = (struct ct_network_kept){
      .tensor = k->tensor,
      .values = (uint64_t)ct_tiles(k->rows) * ct_tiles(k->cols) * CT_TILE * CT_TILE,
      .bound = n->bound[index]};
  err = ct_network_still(n, true, "looked at");
  if (err || !n->steps) return err;
  uint64_t units = 0;
  err = count_units(n, k, &units);
  kept->bytes = units * CT_UNIT;
  return err;
}

int ct_network_keep_within(ct_network *n, size_t index, uint32_t bound) {
  const int err = find(n, index);
  if (err) return err;
  if (bound > 254) return ct_fail(n->dev, CT_ERR_ARG, "a bound of %u: 0 to 254", bound);
  n->bound[index] = (uint8_t)bound;
  return CT_OK;
}
