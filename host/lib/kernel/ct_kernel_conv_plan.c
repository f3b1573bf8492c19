/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of everything is in the scratchpad: all ways that fit are weighed by the cycles they are
 * likely to take, and the cheapest is taken.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_conv.h"

enum {
  MOST_ROWS = 4080,
  MOST_GROUPS = 4095,
  LEAST_STEP = 20,
  STAY_COST = 100,
  PASS_COST = 250,
  BLOCK_COST = 12,
  UNEVEN_COST = 8, /* no loops: programs are long */
  FIXED_WORDS = CT_TILE + CT_CARRIER_WORDS
};

static uint64_t words_of(const struct ct_conv_rows *c, const struct ct_conv_plan *p,
                         const struct ct_conv_cut *cut) {
  const uint64_t x = (uint64_t)p->groups * CT_TILE * (p->whole ? c->cb : cut->blocks);
  const uint64_t w = CT_TILE * (p->stay ? (uint64_t)c->k * p->planes : p->steps);
  return FIXED_WORDS + x * p->x_slots + w * p->w_slots +
         ct_conv_drain_words(&c->drain, p->tiles, p->out_slots);
}

/* Cycles, about. */
static uint64_t cost_of(const struct ct_conv_rows *c, const struct ct_conv_plan *p,
                        const struct ct_conv_cut *cut) {
  const uint64_t chunks = (c->view.rows + p->chunk - 1) / p->chunk;
  const uint64_t made = (uint64_t)c->nb * c->parts;
  const uint64_t passes = p->stay ? (uint64_t)ct_ceil_div(c->nb, p->planes) * c->parts : c->parts;
  const uint64_t blocks = ct_tiles(c->view.rows), rows = ct_min_u32(p->chunk, c->view.rows);
  const uint64_t block = ct_min_u32(p->tiles * CT_TILE, (uint32_t)rows);
  const uint64_t rest = p->stay ? (rows % block + CT_TILE - 1) / CT_TILE : 0;
  const uint64_t step = block > LEAST_STEP ? block : LEAST_STEP;
  const uint64_t multiply = chunks * (rows / block * step + rest * LEAST_STEP) * c->k * made;
  const uint64_t group = (uint64_t)p->groups * CT_RECORD_UNITS;
  uint64_t load = made * c->k * CT_RECORD_UNITS * (p->stay ? 1 : chunks);
  load +=
      p->whole ? passes * chunks * group * c->cb : made * chunks * group * cut->blocks * cut->all;
  load += blocks * made * c->drain.in_words;
  const uint64_t groups = c->drain.groups ? CT_TILE : 0;
  const uint64_t store = blocks * made * (c->drain.out_words + groups);
  const uint64_t pieces = p->stay ? passes * chunks : made * chunks * cut->all;
  uint64_t cost = multiply > load ? multiply : load;
  if (store > cost) cost = store;
  const uint32_t image = (uint32_t)(c->view.nx * c->view.ny), full = p->tiles * CT_TILE;
  if (image % full && full % image) cost += blocks * made * UNEVEN_COST;
  const bool once = p->stay && passes == 1 && !c->v.room->group; /* weights come once */
  if (p->x_slots == 1 || (p->w_slots == 1 && !once)) cost += load < multiply ? load : multiply;
  if (p->out_slots == 1) cost += store / 2;
  cost += group * (p->whole ? c->cb : cut->blocks); /* the first chunk: nothing goes on meanwhile */
  return cost + pieces * (p->stay ? STAY_COST : PASS_COST) +
         chunks * made * ct_ceil_div((uint32_t)rows, p->tiles * CT_TILE) * BLOCK_COST;
}

struct best {
  struct ct_conv_plan plan;
  struct ct_conv_cut cut;
  struct ct_conv_view view;
  uint64_t cost, least; /* words of the smallest that was tried */
};

static void try_plan(const struct ct_conv_rows *c, const struct ct_conv_plan *p, struct best *b) {
  const uint32_t most = p->stay ? UINT32_MAX : p->steps;
  const struct ct_conv_cut cut = ct_conv_cut(&c->view, c->cb, most);
  const uint64_t words = words_of(c, p, &cut);
  if (b->least == 0 || words < b->least) b->least = words;
  if (words > c->v.room->spm_words) return;
  const uint64_t cost = cost_of(c, p, &cut);
  if (b->cost && cost >= b->cost) return;
  b->plan = *p;
  b->cut = cut;
  b->view = c->view;
  b->cost = cost;
}

/* Two slots of everything where there is room, or one of some. */
static void try_slots(const struct ct_conv_rows *c, struct ct_conv_plan p, struct best *b) {
  const bool once = p.stay && p.planes == c->nb && c->parts == 1 && !c->v.room->group;
  for (unsigned i = 0; i < 8; ++i) {
    p.x_slots = i & 1 ? 1 : 2;
    p.w_slots = i & 2 || once ? 1 : 2;
    p.out_slots = i & 4 ? 1 : 2;
    try_plan(c, &p, b);
  }
}

/* k steps that fit: all, or halves. */
static void try_steps(const struct ct_conv_rows *c, struct ct_conv_plan p, struct best *b) {
  p.stay = false;
  p.rest = ct_tiles(c->view.rows) % p.tiles;
  if (p.tiles < 8 ? 2 * p.tiles + p.rest > 15 : p.rest > 7) return;
  for (p.steps = c->k; p.steps > 0; p.steps /= 2)
    for (unsigned whole = 0; whole < 2; ++whole) {
      p.whole = whole;
      const struct ct_conv_cut cut = ct_conv_cut(&c->view, c->cb, p.steps);
      struct ct_conv_plan q = p;
      q.steps = (uint32_t)(cut.lines * cut.taps) * cut.blocks;
      try_slots(c, q, b);
    }
}

/* Whether chunks have whole index units, of whole blocks. */
static bool whole_units(const struct ct_conv_rows *c, const struct ct_conv_plan *p) {
  const uint32_t period = ct_conv_period(&c->view) * (uint32_t)(c->view.nx * c->view.ny);
  return CT_GROUPS_TILES % p->tiles == 0 && ct_reads_groups(p->chunk) &&
         (period <= p->chunk || ct_reads_groups(period));
}

static void try_planes(const struct ct_conv_rows *c, struct ct_conv_plan p, struct best *b) {
  if (c->drain.groups && !whole_units(c, &p)) return;
  p.stay = p.whole = true;
  p.steps = c->k;
  p.rest = 1;
  for (uint32_t n = 1; n <= c->nb; ++n) {
    p.planes = ct_ceil_div(c->nb, n);
    try_slots(c, p, b);
    if (n > 16) n += n / 4;
  }
}

/* Groups of the largest chunk: of those of a period, or of all. */
static uint32_t most_groups(const struct ct_conv_view *v, uint32_t chunk, bool all) {
  const uint64_t period = (uint64_t)ct_conv_period(v) * (uint32_t)(v->nx * v->ny);
  const uint64_t rows = all || period > v->rows ? v->rows : period > chunk ? period : chunk;
  uint32_t most = 0;
  for (uint32_t r = 0; r < rows; r += chunk) {
    const uint32_t n = ct_min_u32(chunk, ct_min_u32((uint32_t)rows, v->rows) - r);
    const uint32_t groups = ct_conv_span(v, r, n, 0, v->ky).groups;
    if (groups > most) most = groups;
  }
  return most;
}

static void try_chunk(struct ct_conv_rows *c, struct ct_conv_plan p, struct best *b) {
  const struct ct_conv_view view = c->view;
  if (c->view.flat) {
    c->view.nx = c->view.w = CT_TILE;
    c->view.ny = c->view.h = (int32_t)p.chunk / CT_TILE;
  }
  p.groups = most_groups(&c->view, p.chunk, false);
  if (p.groups <= MOST_GROUPS && p.tiles < 8) try_planes(c, p, b);
  p.groups = most_groups(&c->view, p.chunk, true);
  const bool passes = p.chunk == p.tiles * CT_TILE && !c->drain.groups;
  if (p.groups <= MOST_GROUPS && passes) try_steps(c, p, b);
  c->view = view;
}

static void try_tiles(struct ct_conv_rows *c, uint32_t tiles, struct best *b) {
  const struct ct_conv_view *v = &c->view;
  const uint64_t period = (uint64_t)ct_conv_period(v) * (uint32_t)(v->nx * v->ny);
  struct ct_conv_plan p = {.tiles = tiles};
  for (p.chunk = tiles * CT_TILE; p.chunk <= MOST_ROWS && (v->flat || p.chunk < period);
       p.chunk *= 2) {
    try_chunk(c, p, b);
    if (p.chunk >= v->rows) return;
  }
  for (uint64_t n = 1; !v->flat && n * period <= MOST_ROWS; n *= 2) {
    p.chunk = (uint32_t)(n * period);
    try_chunk(c, p, b);
    if (p.chunk >= v->rows) return;
  }
}

int ct_conv_choose(struct ct_conv_rows *c) {
  struct best b = {.cost = 0};
  for (uint32_t tiles = ct_min_u32(8, ct_tiles(c->view.rows)); tiles > 0; --tiles)
    try_tiles(c, tiles, &b);
  if (b.cost == 0)
    return ct_why(c->v.why, CT_ERR_NO_SPACE, "%s needs %llu words of scratchpad, the window has %u",
                  c->v.name, (unsigned long long)b.least, c->v.room->spm_words);
  c->plan = b.plan;
  c->cut = b.cut;
  c->view = b.view;
  return CT_OK;
}
