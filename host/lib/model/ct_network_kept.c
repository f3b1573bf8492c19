/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What networks keep compressed: the pages that the device puts it in, and the bounds.
 *
 * The device has one set of pages, for the training queue. Networks that have the same programs
 * share it, for their runs go one after the other, and each leaves it empty. Another network finds
 * it taken.
 *
 * After a run that failed there may be groups that no index knows: all pages are freed before the
 * next run, which waits until none is under way.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ct_act.h"
#include "ct_act_pages.h"
#include "ct_graph_impl.h"
#include "ct_network.h"

static bool keeps(const ct_network *n) {
  return n->compiled.kepts > 0;
}

/* ---- Pages --------------------------------------------------------------------------------- */

/* With the padding to whole tiles. */
static uint64_t padded(const struct ct_kept *k) {
  return (uint64_t)ct_tiles(k->rows) * ct_tiles(k->cols) * CT_TILE * CT_TILE;
}

enum { LOSSLESS = 9, LEAST = 5, UNIT = 136 };
static const double LARGE_ERROR = 0.1;

static bool follows(const ct_network *n) {
  for (size_t i = 0; i < n->compiled.kepts; ++i)
    if (n->compiled.kept[i].sums) return n->kept_error > 0;
  return false;
}

/* Bits of a number for which there are pages if nobody says: half the error takes one more. From
 * LOSSLESS on, and where nothing is lost, as many as always suffice. */
static uint32_t usual_bits(const ct_network *n) {
  uint32_t bits = LEAST;
  if (!follows(n)) return CT_KEPT_BITS;
  for (double error = n->kept_error; error < LARGE_ERROR && bits < LOSSLESS; error *= 2)
    ++bits;
  return bits < LOSSLESS ? bits : CT_KEPT_BITS;
}

enum { UNIT_BITS = 128 };

static uint64_t index_at(const ct_network *n, const struct ct_kept *k) {
  return ct_network_own(n).lasting + (uint64_t)k->index.at * CT_UNIT;
}

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

static uint32_t tiles_of(const struct ct_kept *k) {
  return ct_tiles(k->rows) * ct_tiles(k->cols);
}

/* How long groups are taken to be before they are there: as long as there are pages for. */
static void begin_groups(ct_network *n) {
  enum { NUMBERS = CT_ACT_TILES * CT_TILE * CT_TILE };
  const uint32_t units = ct_min_u32(n->shared->page_bits * NUMBERS / UNIT_BITS, CT_ACT_UNITS);
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    n->groups[i] = (struct ct_cycles_groups){.index = ct_units_of(index_at(n, k)),
                                             .count = ct_pack_units(k->rows, k->cols),
                                             .units = k->whole ? whole_units(k) : units};
    n->stored[i] = n->groups[i].count + (uint64_t)n->groups[i].units * tiles_of(k) / CT_ACT_TILES;
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
    pages +=
        k->whole ? whole_pages(k) : (padded(k) * n->shared->page_bits + page_bits - 1) / page_bits;
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

/* Pages begin at multiples of their size. */
static uint64_t first_page(const struct ct_shared *s) {
  return (s->pages + CT_PAGE_BYTES - 1) / CT_PAGE_BYTES * CT_PAGE_BYTES;
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
  err = set(n, CT_CREG_ARENA_BASE, ct_units_of(first_page(s)));
  return err ? err : set(n, CT_CREG_ARENA_PAGES, s->page_count);
}

/* Fewer than what loses nothing takes. */
static bool has_few(const ct_network *n) {
  return n->kept_error > 0 && n->shared->page_bits < LOSSLESS;
}

/* A number of 1 is a mantissa of 1 there, so whole numbers are written as what they are. */
enum { WHOLE = 133 };

/* Until gradients have been looked at nothing is lost, unless there are too few pages for that:
 * then numbers are taken to be about 1, so that steps of this size need as many bits as there are.
 */
static void begin_bounds(ct_network *n) {
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    const bool few = has_few(n) && k->sums;
    n->bound[i] = (uint8_t)(k->whole ? WHOLE : few ? UNIT - n->shared->page_bits : 0);
  }
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
  if (!keeps(n)) return CT_OK;
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

/* ---- Bounds -------------------------------------------------------------------------------- */

/*
 * With an error e of a value the gradient of a weight, which is made of it and of delta, has the
 * deviation e * sqrt(R / 3) * ||delta||, R the part of values that are not 0. It shall be s of the
 * mean of the weight's momentum, and e half of the largest value at most: where gradients vanish it
 * would grow beyond all bounds. (docs/compression.md)
 *
 * Where something is made of it again that makes the gradient, e becomes an error of that:
 * normalising multiplies it. Where it is normalised over the batch, and the weight is the scale,
 * delta is divided by the deviation of its column, and zeros are numbers as all others.
 */

enum { FIRST_STEPS = 20 };

bool ct_kept_looks(const ct_network *n, uint64_t step) {
  return keeps(n) && n->kept_error > 0 && (step < FIRST_STEPS || step % n->refresh == 0);
}

/* What a run has left of a tensor. */
struct seen {
  uint8_t *index, *page; /* its index, all pages in use */
  uint64_t pages;        /* bytes of them */
  uint64_t nonzero;
  double largest;
};

static void count_block(struct seen *s, const struct ct_act_block *b) {
  int most = 0;
  for (unsigned i = 0; i < CT_TILE; ++i) {
    const int q = b->q[i] < 0 ? -b->q[i] : b->q[i];
    s->nonzero += q != 0;
    if (q > most) most = q;
  }
  if (most && ldexp(most, b->e - 133) > s->largest) s->largest = ldexp(most, b->e - 133);
}

/* The groups lie where they were, though their pages are free again. */
static int count_group(ct_network *n, struct seen *s, uint32_t entry, uint32_t tiles) {
  struct ct_act_block b[CT_ACT_TILES * CT_ACT_BLOCKS];
  const uint64_t at = (uint64_t)ct_act_entry_place(entry) * CT_UNIT;
  const unsigned units = ct_act_entry_units(entry);
  if (at + (uint64_t)units * CT_UNIT > s->pages || !ct_act_decode(s->page + at, units, tiles, b))
    return ct_fail(n->dev, CT_ERR_DEVICE, "what was kept compressed cannot be read");
  for (uint32_t i = 0; i < tiles * CT_ACT_BLOCKS; ++i)
    count_block(s, &b[i]);
  return CT_OK;
}

static size_t entries_of(const struct ct_kept *k) {
  return (size_t)ct_pack_units(k->rows, k->cols) * CT_ACT_ENTRIES;
}

static int count_groups(ct_network *n, struct seen *s, const struct ct_kept *k) {
  uint32_t left = ct_tiles(k->rows) * ct_tiles(k->cols);
  int err = CT_OK;
  s->nonzero = 0;
  s->largest = 0;
  for (size_t i = 0; i < entries_of(k) && !err; ++i) {
    const uint32_t entry = ct_act_entry_at(s->index, i), tiles = ct_min_u32(left, CT_ACT_TILES);
    if (!ct_act_entry_units(entry)) continue;
    err = count_group(n, s, entry, tiles);
    left -= tiles;
  }
  return err;
}

/* Columns by the variance that they are divided by. */
static int normalise(ct_network *n, const struct ct_kept_sum *sum, float *delta) {
  const size_t cols = sum->delta.cols;
  float *x = malloc(cols * sizeof *x);
  if (!x) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a variance");
  const struct ct_regions own = ct_network_own(n);
  const int err = ct_network_get_tensor(n, &own, &n->compiled.lay[sum->variance], x);
  for (size_t i = 0; i < cols && !err; ++i)
    delta[i] = (float)((double)delta[i] / ((double)x[i] + sum->epsilon));
  free(x);
  return err;
}

/* The mean of squares of what normalising multiplies by: 1 where nothing is normalised. */
static int gain_of(ct_network *n, const struct ct_kept_sum *sum, double *gain) {
  const size_t cols = sum->through ? (size_t)n->graph->tensor[sum->through]->elements : 0;
  *gain = 1;
  if (!cols) return CT_OK;
  float *x = malloc(2 * cols * sizeof *x);
  if (!x) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a variance");
  const struct ct_regions own = ct_network_own(n);
  int err = ct_network_get_tensor(n, &own, &n->compiled.lay[sum->through], x);
  if (!err) err = ct_network_get_tensor(n, &own, &n->compiled.lay[sum->divisor], x + cols);
  double all = 0;
  for (size_t i = 0; i < cols && !err; ++i)
    all += (double)x[i] * x[i] / ((double)x[cols + i] + sum->epsilon) / (double)cols;
  free(x);
  if (!err) *gain = all;
  return err;
}

/* The mean of a momentum's magnitudes; the mean over columns of delta's squares. */
static int mean_of(ct_network *n, const struct ct_kept_sum *sum, double *momentum, double *delta) {
  const struct ct_gtensor *t = n->graph->tensor[sum->momentum];
  const size_t cols = sum->delta.cols, count = t->elements > cols ? t->elements : cols;
  float *x = malloc(count * sizeof *x);
  if (!x) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a momentum");
  const struct ct_regions own = ct_network_own(n);
  int err = ct_network_get(n, &own, &sum->delta, x);
  if (!err && sum->variance) err = normalise(n, sum, x);
  *delta = *momentum = 0;
  for (size_t i = 0; i < cols && !err; ++i)
    *delta += (double)x[i] / (double)cols;
  if (!err) err = ct_network_get_tensor(n, &own, &n->compiled.lay[sum->momentum], x);
  for (size_t i = 0; i < t->elements && !err; ++i)
    *momentum += (x[i] < 0 ? -(double)x[i] : (double)x[i]) / (double)t->elements;
  free(x);
  return err;
}

/* The largest k with 2^k at most the root. */
static int root_log2(double square) {
  int k = 0;
  while (square >= 4) {
    square /= 4;
    ++k;
  }
  while (square < 1) {
    square *= 4;
    --k;
  }
  return k;
}

/* An error's square as a bound. Where nothing is known, as behind gradients that are all 0 or no
 * numbers, nothing is lost, or with few pages no more than before. */
static uint8_t bound_of(double square, uint8_t unknown) {
  if (!(square > 0) || !(square <= DBL_MAX)) return unknown;
  const int k = root_log2(square) + 134;
  return (uint8_t)(k < 0 ? 0 : k > 254 ? 254 : k);
}

static int look_at(ct_network *n, struct seen *s, size_t i) {
  const struct ct_kept *k = &n->compiled.kept[i];
  int err = k->sums ? ct_mem_read(n->dev, index_at(n, k), s->index,
                                  (size_t)ct_pack_units(k->rows, k->cols) * CT_UNIT)
                    : CT_OK;
  if (err || !k->sums) return err;
  err = count_groups(n, s, k);
  const double nonzero = (double)s->nonzero / ((double)k->rows * k->cols);
  double least = s->largest * s->largest / 4;
  for (unsigned j = 0; j < k->sums && !err; ++j) {
    const double part = k->sum[j].variance || k->sum[j].derived ? 1 : nonzero;
    double momentum = 0, delta = 0, gain = 1;
    err = mean_of(n, &k->sum[j], &momentum, &delta);
    if (!err) err = gain_of(n, &k->sum[j], &gain);
    const double error = n->kept_error * momentum,
                 square = error * error / (part / 3 * delta * gain);
    if (!(square > least)) least = square;
  }
  if (!err) n->bound[i] = bound_of(least, has_few(n) ? n->bound[i] : 0);
  return err;
}

static size_t largest_index(const ct_network *n) {
  size_t units = 1;
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    if (ct_pack_units(k->rows, k->cols) > units) units = ct_pack_units(k->rows, k->cols);
  }
  return units * CT_UNIT;
}

int ct_kept_look(ct_network *n) {
  struct ct_shared *shared = n->shared;
  ct_network *who = shared->looking;
  struct seen s = {.pages = 0};
  uint32_t most = 0;
  if (!who) return CT_OK;
  int err = ct_reg_read(n->dev, ct_queue_reg(CT_TRAINING, CT_CREG_ARENA_MOST), &most);
  s.pages = (uint64_t)ct_min_u32(most, shared->page_count) * CT_PAGE_BYTES;
  s.index = malloc(largest_index(n));
  s.page = malloc(s.pages + 1);
  if (!err && (!s.index || !s.page))
    err = ct_fail(n->dev, CT_ERR_MEMORY, "no memory for what is kept compressed");
  if (!err) err = ct_mem_read(n->dev, first_page(shared), s.page, s.pages);
  for (size_t i = 0; i < who->compiled.kepts && !err; ++i)
    err = look_at(who, &s, i);
  free(s.index);
  free(s.page);
  if (!err) shared->looking = NULL;
  return err;
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
  if (!keeps(n)) return;
  n->shared->ends = ct_queue_submitted(n->dev, CT_TRAINING);
  if (ct_kept_looks(n, step)) n->shared->looking = n;
}

void ct_kept_forget(ct_network *n) {
  if (n->shared && n->shared->looking == n) n->shared->looking = NULL;
}

int ct_kept_settle(ct_network *n) {
  const int err = keeps(n) && n->shared->looking == n ? finish_look(n) : CT_OK;
  return err ? err : say_look(n);
}

void ct_kept_hear(ct_network *n) {
  if (keeps(n) && n->shared->looking == n) (void)finish_look(n);
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
  if (!keeps(n)) return CT_OK;
  if (queue != CT_TRAINING)
    return ct_fail(n->dev, CT_ERR_UNSUPPORTED,
                   "the network keeps activations compressed, which only the training queue does");
  int err = finish_look(n);
  if (!err) err = say_look(n);
  return err ? err : free_pages(n);
}

void ct_kept_ended(ct_network *n, int error) {
  if (!keeps(n) || !error) return;
  n->shared->leaky = true;
  n->shared->looking = NULL;
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
  const int err = ct_mem_read(n->dev, index_at(n, k), bytes, (size_t)own * CT_UNIT);
  *units = own;
  for (size_t i = 0; i < entries_of(k) && !err; ++i)
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
  if (!keeps(n) || !n->live->steps || n->measured == n->live->steps || n->frame_runs) return false;
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    if (count_units(n, k, &n->stored[i])) return false;
    const uint64_t units = CT_ACT_TILES * (n->stored[i] - n->groups[i].count) + tiles_of(k) / 2;
    n->groups[i].units = (uint32_t)(units / tiles_of(k) < 2 ? 2 : units / tiles_of(k));
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
                                   .padded = padded(k),
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
  if (bound > 254) return ct_fail(n->dev, CT_ERR_ARG, "a bound of %u: 0 to 254", bound);
  const bool exact = n->compiled.kept[index].whole;
  if (exact && bound)
    return ct_fail(n->dev, CT_ERR_ARG,
                   "what is kept of %s is a mask or another whole number, which is kept exactly",
                   n->compiled.kept[index].tensor);
  ct_kept_hear(n); /* what runs so far have seen would take its place */
  if (!exact) n->bound[index] = (uint8_t)bound;
  return CT_OK;
}
