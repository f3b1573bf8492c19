/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What networks keep compressed: the pages that the device puts it in, and what is known of it. The
 * bounds that runs ask for are made in ct_network_look.c.
 *
 * The device has one set of pages, for the training queue. Networks that have the same programs
 * share it, for their runs go one after the other, and each leaves it empty. Another network finds
 * it taken.
 *
 * After a run that failed there may be groups that no index knows: all pages are freed before the
 * next run, which waits until none is under way.
 */
#include <stdlib.h>

#include "ct_graph_impl.h"
#include "ct_network_kept.h"

/* ---- Pages --------------------------------------------------------------------------------- */

enum { USUAL = 8, LEAST = 4 };
static const double LARGE_ERROR = 0.1;

static bool follows(const ct_network *n) {
  for (size_t i = 0; i < n->compiled.kepts; ++i)
    if (n->compiled.kept[i].sums) return n->kept_error > 0;
  return false;
}

/* Bits of a number for which there are pages if nobody says: half the error takes one more. From
 * USUAL on, and where nothing is lost, as many as always suffice. */
static uint32_t usual_bits(const ct_network *n) {
  uint32_t bits = LEAST;
  if (!follows(n)) return CT_KEPT_BITS;
  for (double error = n->kept_error; error < LARGE_ERROR && bits < USUAL; error *= 2)
    ++bits;
  return bits < USUAL ? bits : CT_KEPT_BITS;
}

enum { UNIT_BITS = 128 };

/* Units of a group of whole numbers of the largest size that they can have. */
static uint32_t whole_units(const struct ct_kept *k) {
  enum { GROUP_BITS = 18, TILE_BITS = 34 };
  unsigned size = 0;
  while (k->whole >> size)
    ++size;
  const uint32_t tile = TILE_BITS + size * CT_TILE * CT_TILE;
  return (GROUP_BITS + CT_ACT_TILES * tile + UNIT_BITS - 1) / UNIT_BITS;
}

static uint64_t whole_pages(const struct ct_kept *k) {
  enum { PAGE_UNITS = CT_PAGE_BYTES / CT_UNIT };
  const uint32_t each = PAGE_UNITS / whole_units(k),
                 groups = ct_pack_units(k->rows, k->cols) * CT_ACT_ENTRIES;
  return (groups + each - 1) / each;
}

/* How long groups are taken to be before they are there: as long as there are pages for. */
static void begin_groups(ct_network *n) {
  enum { NUMBERS = CT_ACT_TILES * CT_TILE * CT_TILE };
  const uint32_t units = ct_min_u32(n->shared->page_bits * NUMBERS / UNIT_BITS, CT_ACT_UNITS);
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    n->groups[i] = (struct ct_cycles_groups){.index = ct_units_of(ct_kept_index(n, k)),
                                             .count = ct_pack_units(k->rows, k->cols),
                                             .units = k->whole ? whole_units(k) : units};
    n->stored[i] =
        n->groups[i].count + (uint64_t)n->groups[i].units * ct_kept_tiles(k) / CT_ACT_TILES;
  }
}

/* For so many bits a number, and one more for each tensor, since pages have several. A page is left
 * when the next group does not fit, so 187 of its 256 units are full at least: groups of 70 units
 * for 1024 numbers that never become smaller take 12 bits each. */
static uint64_t most_pages(const ct_network *n) {
  const uint64_t page_bits = (uint64_t)8 * CT_PAGE_BYTES;
  uint64_t pages = n->compiled.kepts;
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    pages += k->whole ? whole_pages(k)
                      : (ct_kept_padded(k) * n->shared->page_bits + page_bits - 1) / page_bits;
  }
  return pages;
}

static int set(ct_network *n, uint32_t creg, uint32_t value) {
  return ct_reg_write(n->dev, ct_queue_reg(CT_TRAINING, creg), value);
}

static int check_pages(ct_network *n, uint64_t *pages) {
  *pages = most_pages(n);
  if (n->dev->pages)
    return ct_fail(n->dev, CT_ERR_BUSY,
                   "another network keeps its activations compressed, and the device has pages for "
                   "one: free that network first, or keep those of this one in HBFP8");
  if (*pages <= CT_COMP_PAGES) return CT_OK;
  return ct_fail(
      n->dev, CT_ERR_NO_SPACE,
      "what is kept compressed may take %llu pages, the device has at most %d: allow for "
      "fewer bits a number, or take smaller batches",
      (unsigned long long)*pages, CT_COMP_PAGES);
}

static int open_pages(ct_network *n) {
  struct ct_shared *s = n->shared;
  uint64_t pages;
  if (!s->page_bits) s->page_bits = usual_bits(n);
  s->nothing_lost = !(n->kept_error > 0);
  int err = check_pages(n, &pages);
  /* Jobs of a network that is gone may have been left under way. */
  if (!err) err = ct_wait_completed(n->dev, CT_TRAINING, n->dev->pages_until, n->dev->timeout_ms);
  if (!err) err = ct_mem_alloc(n->dev, (pages + 1) * CT_PAGE_BYTES, &s->pages);
  if (err) return err;
  n->dev->pages = s;
  s->page_count = (uint32_t)pages;
  err = set(n, CT_CREG_ARENA_BASE, ct_units_of(ct_first_page(s)));
  return err ? err : set(n, CT_CREG_ARENA_PAGES, s->page_count);
}

/* A number of 1 is a mantissa of 1 there, so whole numbers are written as what they are. */
enum { WHOLE = 133, MOST_BOUND = 254 };

/* Until gradients have been looked at nothing is lost, unless there are too few pages for that:
 * then numbers are taken to be about 1, so that steps of this size need as many bits as there are.
 */
static void begin_bounds(ct_network *n) {
  bool guessed = false;
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    const bool few = ct_kept_has_few(n) && k->sums;
    n->bound[i] = (uint8_t)(k->whole ? WHOLE : few ? CT_KEPT_UNIT - n->shared->page_bits : 0);
    guessed = guessed || (k->sums && n->kept_error > 0 && n->shared->page_bits < CT_KEPT_BITS);
  }
  n->guessed = guessed;
}

uint8_t ct_kept_wider(const ct_network *n, size_t i, unsigned by) {
  const unsigned from = n->bound[i] ? n->bound[i] : CT_KEPT_UNIT - n->shared->page_bits;
  if (!by || !n->compiled.kept[i].sums || !(n->kept_error > 0)) return n->bound[i];
  return (uint8_t)(from + by > MOST_BOUND ? MOST_BOUND : from + by);
}

bool ct_kept_widen(ct_network *n, unsigned by) {
  bool wider = false;
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const uint8_t to = ct_kept_wider(n, i, by);
    wider = wider || to > n->bound[i];
    n->bound[i] = to;
  }
  return wider;
}

/* What may lose nothing in the pages of a network that may: they would be full some day, and fail
 * what runs together with it, too. */
static int check_shared(ct_network *n) {
  const uint32_t bits = n->shared->page_bits;
  if (n->kept_error > 0 || n->shared->nothing_lost || bits >= usual_bits(n)) return CT_OK;
  return ct_fail(n->dev, CT_ERR_ARG,
                 "the network keeps activations compressed with nothing lost, which may take %u "
                 "bits a number; the one whose pages it shares has pages for %u: give it an error, "
                 "or make that one with %u bits",
                 (unsigned)usual_bits(n), (unsigned)bits, (unsigned)usual_bits(n));
}

int ct_kept_open(ct_network *n) {
  if (!ct_keeps(n)) return CT_OK;
  n->bound = calloc(n->compiled.kepts, sizeof *n->bound);
  n->groups = calloc(n->compiled.kepts, sizeof *n->groups);
  n->stored = calloc(n->compiled.kepts, sizeof *n->stored);
  if (!n->bound || !n->groups || !n->stored)
    return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for the network");
  const int err = n->shared->pages ? check_shared(n) : open_pages(n);
  if (err) return err;
  begin_bounds(n);
  begin_groups(n);
  return CT_OK;
}

void ct_kept_leave(ct_device *dev, struct ct_shared *s) {
  if (!s->pages) return;
  ct_give_back_after(dev, s->pages, CT_TRAINING, s->error[CT_TRAINING]);
  s->pages = 0;
  dev->pages = NULL;
  dev->pages_until = s->ends;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* So many jobs of the training queue: those of runs that use the pages. */
static int wait_for(ct_network *n, uint64_t jobs) {
  return ct_wait_completed(n->dev, CT_TRAINING, jobs, n->dev->timeout_ms);
}

/* Who has looked must have ended, and be heard, before anything else changes what it has seen. If
 * that cannot be read, who has looked is told when it runs again: its step has been made. */
static int finish_look(ct_network *n) {
  ct_network *who = n->shared->looking;
  if (!who) return CT_OK;
  const int err = wait_for(n, n->shared->ends);
  if (!err) who->look_error = ct_kept_look(n);
  if (!err) n->shared->looking = NULL;
  return err;
}

static int say_look(ct_network *n) {
  const int err = n->look_error;
  n->look_error = CT_OK;
  if (!err) return CT_OK;
  return ct_fail(
      n->dev, err,
      "what is kept compressed could not be read after an earlier step, so bounds are as "
      "they were. That step has been made, nothing has been done now");
}

void ct_kept_submitted(ct_network *n, uint64_t step) {
  if (!ct_keeps(n)) return;
  n->shared->ends = ct_queue_submitted(n->dev, CT_TRAINING);
  if (ct_kept_looks(n, step)) n->shared->looking = n;
}

void ct_kept_forget(ct_network *n) {
  if (n->shared && n->shared->looking == n) n->shared->looking = NULL;
}

int ct_kept_settle(ct_network *n) {
  const int err = ct_keeps(n) && n->shared->looking == n ? finish_look(n) : CT_OK;
  return err ? err : say_look(n);
}

void ct_kept_hear(ct_network *n) {
  if (ct_keeps(n) && n->shared->looking == n) (void)finish_look(n);
}

void ct_kept_anew(ct_network *n) {
  ct_kept_forget(n);
  n->look_error = CT_OK;
  begin_bounds(n);
}

/* All pages, when nobody uses any. */
static int free_pages(ct_network *n) {
  int err = n->shared->leaky ? wait_for(n, n->shared->ends) : CT_OK;
  if (err || !n->shared->leaky) return err;
  err = set(n, CT_CREG_ARENA_PAGES, n->shared->page_count);
  if (!err) n->shared->leaky = false;
  return err;
}

int ct_kept_begin(ct_network *n, enum ct_queue queue) {
  if (!ct_keeps(n)) return CT_OK;
  if (queue != CT_TRAINING)
    return ct_fail(n->dev, CT_ERR_UNSUPPORTED,
                   "the network keeps activations compressed, which only the training queue does");
  int err = finish_look(n);
  if (!err) err = say_look(n);
  return err ? err : free_pages(n);
}

void ct_kept_leaks(ct_network *n) {
  n->shared->leaky = true;
  n->shared->looking = NULL;
  n->shared->ends = ct_queue_submitted(n->dev, CT_TRAINING);
}

/* Where pages were full, the next run looks for bounds that fit its numbers. */
void ct_kept_ended(ct_network *n, int error, uint32_t code) {
  if (!ct_keeps(n) || !error) return;
  ct_kept_leaks(n);
  if (error != CT_ERR_JOB || code != CT_DEV_COMP || !follows(n)) return;
  n->guessed = true;
  ++n->pressed;
}

void ct_kept_arguments(const ct_network *n, const struct ct_stage *stage, struct ct_job *job) {
  for (unsigned i = 0; i < stage->stores; ++i)
    job->args[stage->store[i].reg - 1] = (uint32_t)n->bound[stage->store[i].kept] << 4;
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
  uint8_t *bytes = malloc((size_t)own * CT_UNIT);
  if (!bytes) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for an index");
  const int err = ct_mem_read(n->dev, ct_kept_index(n, k), bytes, (size_t)own * CT_UNIT);
  *units = own;
  for (size_t i = 0; i < ct_kept_entries(k) && !err; ++i)
    *units += ct_act_entry_units(ct_act_entry_at(bytes, i));
  free(bytes);
  return err;
}

void ct_kept_bytes(const ct_network *n, const struct ct_stage *stage, uint64_t *read,
                   uint64_t *written) {
  *read = stage->read;
  *written = stage->written;
  for (unsigned i = 0; i < stage->loads; ++i)
    *read += n->stored[stage->load[i]] * CT_UNIT;
  for (unsigned i = 0; i < stage->stores; ++i)
    *written += n->stored[stage->store[i].kept] * CT_UNIT;
}

bool ct_kept_measured(ct_network *n) {
  if (!ct_keeps(n) || !n->live->steps || n->measured == n->live->steps || n->frame_runs)
    return false;
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    if (count_units(n, k, &n->stored[i])) return false;
    const uint64_t units =
        CT_ACT_TILES * (n->stored[i] - n->groups[i].count) + ct_kept_tiles(k) / 2;
    n->groups[i].units = (uint32_t)(units / ct_kept_tiles(k) < 2 ? 2 : units / ct_kept_tiles(k));
  }
  n->measured = n->live->steps;
  return true;
}

int ct_network_kept(ct_network *n, size_t index, struct ct_network_kept *kept) {
  int err = find(n, index);
  if (err) return err;
  CT_NEED(n->dev, kept);
  const struct ct_kept *k = &n->compiled.kept[index];
  err = ct_network_frame_still(n, "looked at");
  if (!err) err = finish_look(n);
  if (!err) err = say_look(n);
  if (err) return err;
  *kept = (struct ct_network_kept){.tensor = k->tensor,
                                   .values = (uint64_t)k->rows * k->cols,
                                   .padded = ct_kept_padded(k),
                                   .bound = k->whole ? 0 : n->bound[index],
                                   .exact = k->whole > 0,
                                   .beside = k->beside};
  if (!n->live->steps) return CT_OK;
  uint64_t units = 0;
  err = count_units(n, k, &units);
  /* A run leaves groups; none has ended here since the network was loaded. */
  if (units > ct_pack_units(k->rows, k->cols)) kept->bytes = units * CT_UNIT;
  return err;
}

int ct_network_keep_within(ct_network *n, size_t index, uint32_t bound) {
  const int err = find(n, index);
  if (err) return err;
  if (bound > MOST_BOUND) return ct_fail(n->dev, CT_ERR_ARG, "a bound of %u: 0 to 254", bound);
  const bool exact = n->compiled.kept[index].whole;
  if (exact && bound)
    return ct_fail(n->dev, CT_ERR_ARG,
                   "what is kept of %s is a mask or another whole number, which is kept exactly",
                   n->compiled.kept[index].tensor);
  ct_kept_hear(n); /* what runs so far have seen would take its place */
  if (!exact) n->bound[index] = (uint8_t)bound;
  return CT_OK;
}
