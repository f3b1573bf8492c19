/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a network keeps activations compressed, as its file has it, so that training goes on with the
 * bounds that it had: the chunk `kept` of docs/model-format.md.
 *
 * The tensors are those that the compiler keeps, in its order, which is the graph's: whatever the
 * core, so that a file goes on on another one.
 */
#include <stdio.h>
#include <string.h>

#include "ct_file.h"
#include "ct_network_file.h"

enum { HEAD = 24, ENTRY = 16, EXACT = 256, MOST_K = 254 };
enum { ALL_MASKS = 1, STORED_MASKS = 2 }; /* or neither */

/* ---- Writing ------------------------------------------------------------------------------- */

size_t ct_bounds_size(const ct_network *n) {
  size_t size = n->compiled.kepts ? HEAD : 0;
  for (size_t i = 0; i < n->compiled.kepts; ++i)
    size += ENTRY + strlen(n->compiled.kept[i].tensor);
  return size;
}

static uint8_t *put_entry(const struct ct_kept *k, uint8_t bound, uint8_t *p) {
  const size_t length = strlen(k->tensor);
  ct_file_put(p, k->rows, 4);
  ct_file_put(p + 4, k->cols, 4);
  ct_file_put(p + 8, k->whole ? EXACT : bound, 4);
  ct_file_put(p + 12, length, 4);
  memcpy(p + ENTRY, k->tensor, length);
  return p + ENTRY + length;
}

void ct_bounds_put(const ct_network *n, uint8_t *p) {
  uint64_t error;
  memcpy(&error, &n->kept_error, sizeof error);
  ct_file_put(p, error, 8);
  ct_file_put(p + 8, n->refresh, 4);
  ct_file_put(p + 12, n->shared->page_bits, 4);
  ct_file_put(p + 16,
              n->masks == CT_MASKS_ON    ? ALL_MASKS
              : n->masks == CT_MASKS_OFF ? 0
                                         : STORED_MASKS,
              4);
  ct_file_put(p + 20, n->compiled.kepts, 4);
  p += HEAD;
  for (size_t i = 0; i < n->compiled.kepts; ++i)
    p = put_entry(&n->compiled.kept[i], n->bound[i], p);
}

/* ---- Reading ------------------------------------------------------------------------------- */

struct entry {
  uint32_t rows, cols, bound;
  bool exact;
  const char *name; /* not ended by a zero */
  size_t length;
};

/* False: there are not so many bytes, or it makes no sense. */
static bool next_entry(const uint8_t **at, const uint8_t *end, struct entry *e) {
  const uint8_t *p = *at;
  if (end - p < ENTRY) return false;
  const uint64_t bound = ct_file_get(p + 8, 4), length = ct_file_get(p + 12, 4);
  *e = (struct entry){.rows = (uint32_t)ct_file_get(p, 4),
                      .cols = (uint32_t)ct_file_get(p + 4, 4),
                      .bound = bound == EXACT ? 0 : (uint32_t)bound,
                      .exact = bound == EXACT,
                      .name = (const char *)p + ENTRY,
                      .length = (size_t)length};
  if (length > (uint64_t)(end - p - ENTRY) || (bound > MOST_K && bound != EXACT)) return false;
  *at = p + ENTRY + length;
  return true;
}

static bool parse(const uint8_t *p, size_t size, struct ct_bounds *b) {
  const uint8_t *const end = p + size;
  struct entry e;
  if (size < HEAD) return false;
  const uint64_t error = ct_file_get(p, 8);
  memcpy(&b->error, &error, sizeof b->error);
  b->refresh = (uint32_t)ct_file_get(p + 8, 4);
  b->bits = (uint32_t)ct_file_get(p + 12, 4);
  const uint64_t flags = ct_file_get(p + 16, 4);
  b->masks = flags == ALL_MASKS ? CT_MASKS_ON : flags ? CT_MASKS_STORED : CT_MASKS_OFF;
  b->count = (uint32_t)ct_file_get(p + 20, 4);
  b->list = p += HEAD;
  b->end = end;
  for (uint32_t i = 0; i < b->count; ++i)
    if (!next_entry(&p, end, &e)) return false;
  return p == end && b->error >= 0 && b->error <= 1 && b->refresh && b->count && b->bits &&
         b->bits <= CT_KEPT_BITS && flags <= STORED_MASKS;
}

int ct_bounds_parse(ct_device *dev, const char *path, const uint8_t *p, size_t size,
                    struct ct_bounds *b) {
  const bool again = b->there;
  b->there = true;
  if (!again && parse(p, size, b)) return CT_OK;
  return ct_fail(dev, CT_ERR_FORMAT, "%s is damaged: its chunk kept %s", path,
                 again ? "is there twice" : "makes no sense");
}

/* ---- Settings ------------------------------------------------------------------------------ */

void ct_bounds_fill_in(struct ct_network_options *how, const struct ct_bounds *b) {
  if (!b->there) return;
  /* (What is less than 0 or no number is not nothing: it is refused, as without a file.) */
  if (how->error >= 0 && how->error <= 0) how->error = b->error;
  if (!how->refresh) how->refresh = b->refresh;
  if (!how->bits) how->bits = b->bits;
  if (how->masks == CT_MASKS_DEFAULT) how->masks = b->masks;
}

static int say_other(ct_network *n, const char *path, const char *has, const char *own) {
  return ct_fail(n->dev, CT_ERR_ARG,
                 "%s keeps activations compressed %s, not %s: training does not go on with that",
                 path, has, own);
}

static const char *with(enum ct_masks masks) {
  static const char *const texts[] = {[CT_MASKS_ON] = "with all masks",
                                      [CT_MASKS_OFF] = "without masks",
                                      [CT_MASKS_STORED] = "with masks of what is stored alone"};
  return texts[masks];
}

static int check_settings(ct_network *n, const struct ct_bounds *b, const char *path) {
  char has[64], own[64];
  if (b->masks != n->masks) return say_other(n, path, with(b->masks), with(n->masks));
  if (b->error < n->kept_error || b->error > n->kept_error) {
    snprintf(has, sizeof has, "with an error of %g", b->error);
    snprintf(own, sizeof own, "%g", n->kept_error);
    return say_other(n, path, has, own);
  }
  if (b->refresh == n->refresh) return CT_OK;
  snprintf(has, sizeof has, "with a look each %u steps", (unsigned)b->refresh);
  snprintf(own, sizeof own, "each %u", (unsigned)n->refresh);
  return say_other(n, path, has, own);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

static bool is_of(const struct entry *e, const struct ct_kept *k) {
  return e->rows == k->rows && e->cols == k->cols && e->exact == (k->whole > 0) &&
         e->length == strlen(k->tensor) && !memcmp(e->name, k->tensor, e->length);
}

/* The same in the same order. */
static int check_tensors(ct_network *n, const struct ct_bounds *b, const char *path) {
  const uint8_t *p = b->list;
  struct entry e;
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    if (next_entry(&p, b->end, &e) && is_of(&e, k)) continue;
    return ct_fail(n->dev, CT_ERR_ARG,
                   "%s does not fit the network, which keeps %.80s compressed: the file has no "
                   "bound for that in its place",
                   path, k->tensor);
  }
  if (p == b->end) return CT_OK;
  return ct_fail(n->dev, CT_ERR_ARG,
                 "%s does not fit the network: it has bounds for %u tensors that are kept "
                 "compressed, not %zu",
                 path, (unsigned)b->count, n->compiled.kepts);
}

int ct_bounds_check(ct_network *n, const struct ct_bounds *b, const char *path) {
  if (!b->there) return CT_OK;
  const int err = n->compiled.kepts ? check_settings(n, b, path) : CT_OK;
  return err ? err : check_tensors(n, b, path);
}

void ct_bounds_take(ct_network *n, const struct ct_bounds *b) {
  const uint8_t *p = b->list;
  struct entry e;
  if (!n->compiled.kepts) return;
  ct_kept_anew(n);
  n->continued = b->there;
  /* With fewer pages than the file's network had, what they have room for is the least. */
  const bool fewer = n->shared->page_bits < b->bits;
  for (size_t i = 0; b->there && i < n->compiled.kepts && next_entry(&p, b->end, &e); ++i)
    if (!e.exact && (!fewer || e.bound > n->bound[i])) n->bound[i] = (uint8_t)e.bound;
}
