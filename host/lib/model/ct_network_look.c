/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds of what networks keep compressed, as gradients can stand them and pages have room.
 *
 * With an error e of a value the gradient of a weight, which is made of it and of delta, has the
 * deviation e * sqrt(R / 3) * ||delta||, R the part of values that are not 0. It shall be s of the
 * mean of the weight's momentum, and e half of the largest value at most: where gradients vanish it
 * would grow beyond all bounds. (docs/compression.md)
 *
 * Where something is made of it again that makes the gradient, e becomes an error of that:
 * normalising multiplies it. Where it is normalised over the batch, and the weight is the scale,
 * delta is divided by the deviation of its column, and zeros are numbers as all others.
 *
 * What that takes must fit the pages until the next look. So where it is likely not to, all bounds
 * are larger, by the same factor.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ct_graph_impl.h"
#include "ct_network_kept.h"

enum { FIRST_STEPS = 20 };

bool ct_kept_looks(const ct_network *n, uint64_t step) {
  return ct_keeps(n) && n->kept_error > 0 && (step < FIRST_STEPS || step % n->refresh == 0);
}

/* What a run has left of a tensor. */
struct taken {
  uint64_t units, nonzero;
  uint64_t at[256]; /* numbers that are not 0, by their block's exponent */
  uint32_t groups;
  double largest;
  uint8_t bound; /* that it had */
  uint8_t most;  /* a larger one would leave zeros alone; 0: it has done so */
  bool read;     /* number by number, so that `at` is known */
};

/* Where that is looked for. */
struct seen {
  uint8_t *index, *page; /* of a tensor; all pages in use, NULL as long as nobody needs them */
  uint64_t pages;        /* bytes of them */
};

static void count_block(struct taken *t, const struct ct_act_block *b) {
  int most = 0;
  for (unsigned i = 0; i < CT_TILE; ++i) {
    const int q = b->q[i] < 0 ? -b->q[i] : b->q[i];
    t->nonzero += q != 0;
    t->at[b->e] += q != 0;
    if (q > most) most = q;
  }
  if (most && ldexp(most, b->e - 133) > t->largest) t->largest = ldexp(most, b->e - 133);
}

/* The groups lie where they were, though their pages are free again. */
static int read_pages(ct_network *n, struct seen *s) {
  uint32_t most = 0;
  if (s->page) return CT_OK;
  int err = ct_reg_read(n->dev, ct_queue_reg(CT_TRAINING, CT_CREG_ARENA_MOST), &most);
  if (err) return err;
  s->pages = (uint64_t)ct_min_u32(most, n->shared->page_count) * CT_PAGE_BYTES;
  s->page = malloc(s->pages + 1);
  if (!s->page) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for what is kept compressed");
  return ct_mem_read(n->dev, ct_first_page(n->shared), s->page, s->pages);
}

static int count_group(ct_network *n, const struct seen *s, uint32_t entry, uint32_t tiles,
                       struct taken *t) {
  struct ct_act_block b[CT_ACT_TILES * CT_ACT_BLOCKS];
  const uint64_t at = (uint64_t)ct_act_entry_place(entry) * CT_UNIT;
  const unsigned units = ct_act_entry_units(entry);
  if (at + (uint64_t)units * CT_UNIT > s->pages || !ct_act_decode(s->page + at, units, tiles, b))
    return ct_fail(n->dev, CT_ERR_DEVICE, "what was kept compressed cannot be read");
  for (uint32_t i = 0; i < tiles * CT_ACT_BLOCKS; ++i)
    count_block(t, &b[i]);
  return CT_OK;
}

static int read_index(ct_network *n, const struct seen *s, const struct ct_kept *k) {
  return ct_mem_read(n->dev, ct_kept_index(n, k), s->index,
                     (size_t)ct_pack_units(k->rows, k->cols) * CT_UNIT);
}

/* How long groups are, by their index. */
static int measure(ct_network *n, const struct seen *s, const struct ct_kept *k, struct taken *t) {
  const int err = read_index(n, s, k);
  for (size_t i = 0; i < ct_kept_entries(k) && !err; ++i) {
    const unsigned units = ct_act_entry_units(ct_act_entry_at(s->index, i));
    t->units += units;
    t->groups += units > 0;
  }
  return err;
}

/* Number by number. */
static int count_groups(ct_network *n, struct seen *s, const struct ct_kept *k, struct taken *t) {
  uint32_t left = ct_kept_tiles(k);
  int err = read_pages(n, s);
  if (!err) err = read_index(n, s, k);
  t->read = true;
  t->nonzero = 0;
  t->largest = 0;
  for (size_t i = 0; i < ct_kept_entries(k) && !err; ++i) {
    const uint32_t entry = ct_act_entry_at(s->index, i), tiles = ct_min_u32(left, CT_ACT_TILES);
    if (!ct_act_entry_units(entry)) continue;
    err = count_group(n, s, entry, tiles, t);
    left -= tiles;
  }
  return err;
}

/* As the device has counted; it leaves what is no number to who reads it. */
static int counted(ct_network *n, const struct ct_kept *k, struct taken *t) {
  const struct ct_regions own = ct_network_own(n);
  float *x = malloc(2 * (size_t)k->cols * sizeof *x);
  if (!x) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for what is kept compressed");
  int err = ct_network_get(n, &own, &k->zeros, x);
  if (!err) err = ct_network_get(n, &own, &k->largest, x + k->cols);
  t->read = false;
  for (uint32_t i = 0; i < k->cols && !err; ++i) {
    const double largest = (double)x[k->cols + i];
    t->nonzero += k->rows - (uint64_t)x[i];
    t->read = t->read || !(largest <= FLT_MAX);
    if (largest > t->largest) t->largest = largest;
  }
  free(x);
  return err;
}

/* How many numbers are not 0, and the largest. */
static int count(ct_network *n, struct seen *s, const struct ct_kept *k, struct taken *t) {
  t->read = k->zeros.cols == 0;
  const int err = t->read ? CT_OK : counted(n, k, t);
  return err || !t->read ? err : count_groups(n, s, k, t);
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

/* The mean of a momentum's magnitudes, which the device has summed as a rule. */
static int momentum_of(ct_network *n, const struct ct_kept_sum *sum, double *mean) {
  const struct ct_gtensor *t = n->graph->tensor[sum->momentum];
  const struct ct_regions own = ct_network_own(n);
  const bool summed = sum->magnitudes.cols > 0;
  const size_t count = summed ? sum->magnitudes.cols : t->elements;
  float *x = malloc(count * sizeof *x);
  if (!x) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a momentum");
  const int err = summed ? ct_network_get(n, &own, &sum->magnitudes, x)
                         : ct_network_get_tensor(n, &own, &n->compiled.lay[sum->momentum], x);
  *mean = 0;
  for (size_t i = 0; i < count && !err; ++i)
    *mean += (x[i] < 0 ? -(double)x[i] : (double)x[i]) / (double)t->elements;
  free(x);
  return err;
}

/* The mean over columns of delta's squares. */
static int delta_of(ct_network *n, const struct ct_kept_sum *sum, double *mean) {
  const size_t cols = sum->delta.cols;
  const struct ct_regions own = ct_network_own(n);
  float *x = malloc(cols * sizeof *x);
  if (!x) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for the squares of gradients");
  int err = ct_network_get(n, &own, &sum->delta, x);
  if (!err && sum->variance) err = normalise(n, sum, x);
  *mean = 0;
  for (size_t i = 0; i < cols && !err; ++i)
    *mean += (double)x[i] / (double)cols;
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
 * numbers, nothing is lost, or, if there are not pages for that, no more than before. */
static uint8_t bound_of(double square, uint8_t unknown) {
  if (!(square > 0) || !(square <= DBL_MAX)) return unknown;
  const int k = root_log2(square) + 134;
  return (uint8_t)(k < 0 ? 0 : k > 254 ? 254 : k);
}

/* Whatever is kept there are pages for it. */
static bool has_room_for_all(const ct_network *n) {
  return n->shared->page_bits >= CT_KEPT_BITS;
}

/* The bound that gradients can stand. */
static int bound_for(ct_network *n, const struct taken *t, const struct ct_kept *k,
                     uint8_t *bound) {
  const double nonzero = (double)t->nonzero / ((double)k->rows * k->cols);
  double least = t->largest * t->largest / 4;
  int err = CT_OK;
  for (unsigned j = 0; j < k->sums && !err; ++j) {
    const double part = k->sum[j].variance || k->sum[j].derived ? 1 : nonzero;
    double momentum = 0, delta = 0, gain = 1;
    err = momentum_of(n, &k->sum[j], &momentum);
    if (!err) err = delta_of(n, &k->sum[j], &delta);
    if (!err) err = gain_of(n, &k->sum[j], &gain);
    const double error = n->kept_error * momentum,
                 square = error * error / (part / 3 * delta * gain);
    if (!(square > least)) least = square;
  }
  if (!err) *bound = bound_of(least, has_room_for_all(n) ? 0 : *bound);
  return err;
}

/* ---- Room for it --------------------------------------------------------------------------- */

enum { COMES_DOWN = 2, LEAST_GUESS = 112 };

static int look_at(ct_network *n, struct seen *s, size_t i, struct taken *t) {
  const struct ct_kept *k = &n->compiled.kept[i];
  *t = (struct taken){.bound = n->bound[i]};
  int err = measure(n, s, k, t);
  if (!err && k->sums) err = count(n, s, k, t);
  t->most = bound_of(t->largest * t->largest / 4, 0);
  if (err || !k->sums) return err;
  err = bound_for(n, t, k, &n->bound[i]);
  /* Zeros alone say nothing of the numbers that have become zeros: the bound comes down. */
  if (!err && !t->nonzero && t->bound > LEAST_GUESS && !has_room_for_all(n))
    n->bound[i] = t->bound - COMES_DOWN;
  return err;
}

/* Units with another bound. With a closer one each number may take a bit more for each power of
 * two, also what was 0; with a larger one what is not 0 takes so many bits less as its block's
 * exponent is below the bound. */
static double units_with(const struct ct_kept *k, const struct taken *t, unsigned bound) {
  enum { BITS = 128 };
  const double least = t->groups, most = (double)t->groups * CT_ACT_UNITS,
               all = (double)ct_kept_padded(k);
  double with = (double)t->units;
  if (bound == t->bound) return with;
  if (!bound) return most;
  if (bound < t->bound) with += (t->bound - bound) * all / BITS;
  for (unsigned e = 0; e < bound; ++e)
    with -= (double)t->at[e] * (bound - e) / BITS;
  return with < least ? least : with > most ? most : with;
}

/* The new bound made larger by so much, but no more than leaves the largest numbers. */
static uint8_t wider(const ct_network *n, size_t i, const struct taken *t, unsigned more) {
  const uint8_t now = n->bound[i], to = ct_kept_wider(n, i, more);
  if (!n->compiled.kept[i].sums || to <= t->most) return to;
  return now > t->most ? now : t->most;
}

/* Pages if all bounds are so much larger. The last group of a page leaves half of its units free on
 * average. */
static double pages_with(const ct_network *n, const struct taken *taken, unsigned more) {
  enum { PAGE = CT_PAGE_BYTES / CT_UNIT };
  double pages = 0;
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    const struct taken *t = &taken[i];
    const double units = k->sums ? units_with(k, t, wider(n, i, t, more)) : (double)t->units;
    if (t->groups) pages += 1 + units / (PAGE - units / t->groups / 2);
  }
  return pages;
}

/* An eighth of the pages is left for what grows until the next look. */
static uint32_t room_of(const ct_network *n) {
  enum { PART = 8 };
  return n->shared->page_count - n->shared->page_count / PART;
}

/* Whether there is room without anything else: as long as it is not known by how much numbers
 * become shorter, they do not. */
static bool fits(const ct_network *n, const struct taken *taken) {
  return has_room_for_all(n) || pages_with(n, taken, 0) <= room_of(n);
}

/* Where there is not, all numbers are read. */
static int read_all(ct_network *n, struct seen *s, struct taken *taken) {
  int err = CT_OK;
  for (size_t i = 0; i < n->compiled.kepts && !err; ++i)
    if (n->compiled.kept[i].sums && !taken[i].read)
      err = count_groups(n, s, &n->compiled.kept[i], &taken[i]);
  return err;
}

/* Where room cannot be, as much as can. */
static void make_fit(ct_network *n, const struct taken *taken) {
  enum { WIDEST = 32 };
  const uint32_t room = room_of(n);
  unsigned more = 0;
  double best = pages_with(n, taken, 0);
  for (unsigned by = 1; best > room && by < WIDEST; ++by) {
    const double pages = pages_with(n, taken, by);
    if (pages < best) {
      best = pages;
      more = by;
    }
  }
  if (!more) return;
  for (size_t i = 0; i < n->compiled.kepts; ++i)
    n->bound[i] = wider(n, i, &taken[i], more);
  n->pressed += n->live->steps > FIRST_STEPS;
}

static size_t largest_index(const ct_network *n) {
  size_t units = 1;
  for (size_t i = 0; i < n->compiled.kepts; ++i) {
    const struct ct_kept *k = &n->compiled.kept[i];
    if (ct_pack_units(k->rows, k->cols) > units) units = ct_pack_units(k->rows, k->cols);
  }
  return units * CT_UNIT;
}

/* Bounds for the next run, or those that there were: then it is looked at again. */
static int look_at_all(ct_network *n, struct seen *s, struct taken *taken) {
  size_t looked = 0;
  int err = CT_OK;
  for (; looked < n->compiled.kepts && !err; ++looked)
    err = look_at(n, s, looked, &taken[looked]);
  const bool full = !err && !fits(n, taken);
  if (full) err = read_all(n, s, taken);
  if (full && !err) make_fit(n, taken);
  for (size_t i = 0; i < looked && err; ++i)
    n->bound[i] = taken[i].bound;
  return err;
}

int ct_kept_look(ct_network *n) {
  struct ct_shared *shared = n->shared;
  ct_network *who = shared->looking;
  struct seen s = {.page = NULL};
  if (!who) return CT_OK;
  struct taken *taken = calloc(who->compiled.kepts, sizeof *taken);
  s.index = malloc(largest_index(n));
  int err = CT_OK;
  if (!s.index || !taken)
    err = ct_fail(n->dev, CT_ERR_MEMORY, "no memory for what is kept compressed");
  if (!err) err = look_at_all(who, &s, taken);
  free(taken);
  free(s.index);
  free(s.page);
  if (!err) shared->looking = NULL;
  return err;
}
