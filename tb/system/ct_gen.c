/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_gen.h"

#include <string.h>

#include "host/lib/isa/ct_walk.h"

enum queue { LD, ST, MM, VL, VA, VS, QUEUES };

/* Zones of the SPM window: first word and end. Slots are tiles of 16 words. */
enum {
  SQ_LO = 0,
  SQ_HI = 384,
  ROW_LO = SQ_HI,
  ROW_HI = 640,
  F32_LO = ROW_HI,
  F32_HI = 960,
  ANY_LO = F32_HI,
  ANY_HI = CT_GEN_SPM,
  RECORD = 17,
  RECORDS = 64,              /* of each kind in the input area */
  IN_ROW = RECORD * RECORDS, /* units: where row records begin, and raw data */
  IN_RAW = 2 * RECORD * RECORDS,
};

/* Compressed groups: their index units in the output area, and what stands for the account of their
 * pages, which lie elsewhere. Nothing else is loaded or stored behind COMP_LO. */
enum { COMP_LO = 4000, COMP_INDEX = COMP_LO, COMP_SLOTS = 8, COMP_ACCOUNT = COMP_LO + COMP_SLOTS };

/* What commands touch, numbered. */
enum {
  RES_SPM = 0,
  RES_OUT = RES_SPM + CT_GEN_SPM,
  RES_TILE = RES_OUT + CT_GEN_OUT_UNITS,
  RES_ACC = RES_TILE + 16,
  RES_COUNT = RES_ACC + 16
};
enum { READ = 1, WRITE = 2 };

/* Semaphores: one for each ordered pair of queues that needs it, and those of the blocks. */
enum kind {
  KIND_PAIR,                  /* + 6 * source + destination */
  KIND_LD_A = KIND_PAIR + 36, /* LD -> MM, each k step */
  KIND_LD_B,
  KIND_ACC_FULL, /* MM -> VA, each tile */
  KIND_ACC_FREE, /* VA -> MM, each tile */
  KIND_REFILL,   /* MM -> LD, each k step */
  KIND_ROWS,     /* VS -> ST, each step */
  KIND_LOOP,     /* + 0..4: LD, VL, VA, VS, ST of a loop's body */
  KIND_COUNT = KIND_LOOP + 5
};

/* A command in a queue. before[q]: the last item of queue q that is complete when this one starts;
 * after[q]: when it completes. */
struct item {
  enum queue queue;
  unsigned at;   /* index in the program */
  unsigned sigs; /* free SIG fields that mean completion: bit 0 SIG0, bit 1 SIG1 */
  int before[QUEUES], after[QUEUES];
};

struct gen {
  ct_rng *rng;
  struct ct_gen_prog prog;
  unsigned length;
  uint32_t in, out, out_units;
  bool apart; /* nothing is loaded from the output */
  struct {
    unsigned tiles, groups, first;
  } comp[COMP_SLOTS];      /* groups that are stored; 0: none */
  uint32_t r[CT_NUM_REGS]; /* as the dispatcher has them here */
  struct ct_walk walk;     /* as the MM unit has it here */
  struct ct_walk_shape shape;
  uint32_t shape_words, images; /* what it takes of the scratchpad; 0: there is none */
  struct item items[CT_PROG_MAX];
  int count, last[QUEUES];
  int writer[RES_COUNT], reader[RES_COUNT][QUEUES];
  uint8_t touch[RES_COUNT]; /* of the command in preparation */
  int sem[KIND_COUNT], sems;
  int signaller[KIND_COUNT]; /* last item with a signal on a pair's semaphore */
};

static const enum ct_field_id wait_field[3] = {CT_F_ALL_WAIT0, CT_F_ALL_WAIT1, CT_F_ALL_WAIT2};
static const enum ct_field_id sig_field[2] = {CT_F_ALL_SIG0, CT_F_ALL_SIG1};
enum { W0 = 1, W1 = 2, W2 = 4, S0 = 1, S1 = 2 };

static uint32_t below(struct gen *g, uint32_t bound) {
  return ct_rng_below(g->rng, bound);
}

static uint32_t range(struct gen *g, uint32_t lo, uint32_t hi) {
  return lo + below(g, hi - lo + 1);
}

static bool percent(struct gen *g, unsigned p) {
  return ct_rng_percent(g->rng, p);
}

static void set(struct ct_cmd *cmd, enum ct_field_id field, int64_t value) {
  assert_true(ct_cmd_set(cmd, field, value));
}

/* Sets a field that has a register, now and then with one. */
static void set_sum(struct gen *g, struct ct_cmd *cmd, enum ct_field_id field, uint32_t value) {
  const struct ct_sum_info *sum = ct_sum_of(field);
  const struct ct_field_info *f = &ct_fields[field];
  const uint32_t reg = percent(g, 40) ? below(g, CT_NUM_REGS) : 0;
  ct_cmd_set_bits(cmd, f->lsb, f->width, value - g->r[reg]);
  set(cmd, (enum ct_field_id)sum->reg, reg);
}

static struct ct_cmd command(unsigned code) {
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, code);
  return cmd;
}

/* ---- Order --------------------------------------------------------------------------------- */

static void touch(struct gen *g, int first, int count, uint8_t how) {
  for (int i = 0; i < count; ++i)
    g->touch[first + i] |= how;
}

static void join(int *a, const int *b) {
  for (int q = 0; q < QUEUES; ++q)
    if (b[q] > a[q]) a[q] = b[q];
}

/* The semaphore of that kind, or -1 if there is none left. */
static int semaphore(struct gen *g, int kind) {
  if (g->sem[kind] < 0 && g->sems < (int)CT_NUM_SEMS) g->sem[kind] = g->sems++;
  return g->sem[kind];
}

/* need[q]: the last item of queue q that has to be complete before a command of queue starts with
 * what is touched. */
static void find_needs(const struct gen *g, enum queue queue, int need[QUEUES]) {
  for (int q = 0; q < QUEUES; ++q)
    need[q] = -1;
  for (int i = 0; i < RES_COUNT; ++i) {
    if (!g->touch[i]) continue;
    const int w = g->writer[i];
    if (w >= 0 && w > need[g->items[w].queue]) need[g->items[w].queue] = w;
    if (!(g->touch[i] & WRITE)) continue;
    for (int q = 0; q < QUEUES; ++q)
      if (g->reader[i][q] > need[q]) need[q] = g->reader[i][q];
  }
  need[queue] = -1; /* commands of one queue run in order */
}

/* Drops what follows from the rest. */
static void reduce_needs(const struct gen *g, const int before[QUEUES], int need[QUEUES]) {
  for (int q = 0; q < QUEUES; ++q) {
    if (need[q] <= before[q]) need[q] = -1;
    for (int p = 0; p < QUEUES && need[q] >= 0; ++p)
      if (p != q && need[p] >= 0 && g->items[need[p]].after[q] >= need[q]) need[q] = -1;
  }
}

/* An item of queue q, item first or later, that can still signal to queue `to`; -1 if none. */
static int find_source(const struct gen *g, int first, enum queue q, enum queue to) {
  const int least = g->signaller[KIND_PAIR + 6 * q + to];
  for (int i = first; i < g->count; ++i)
    if (g->items[i].queue == q && i > least && g->items[i].sigs) return i;
  return -1;
}

static void connect(struct gen *g, int source, struct ct_cmd *cmd, enum queue to, int wait) {
  struct item *s = &g->items[source];
  const int kind = KIND_PAIR + 6 * (int)s->queue + (int)to;
  const int sig = s->sigs & S1 ? 1 : 0;
  s->sigs &= ~(1u << sig);
  set(&g->prog.cmds[s->at], sig_field[sig], CT_SEM(g->sem[kind]));
  set(cmd, wait_field[wait], CT_SEM(g->sem[kind]));
  g->signaller[kind] = source;
}

static void record(struct gen *g, int id) {
  for (int i = 0; i < RES_COUNT; ++i) {
    if (g->touch[i] & WRITE) {
      g->writer[i] = id;
      for (int q = 0; q < QUEUES; ++q)
        g->reader[i][q] = -1;
    } else if (g->touch[i]) {
      g->reader[i][g->items[id].queue] = id;
    }
  }
  memset(g->touch, 0, sizeof g->touch);
}

/* Appends the command, ordered after all it conflicts with, by the free WAIT fields in waits. sigs:
 * its free SIG fields that mean completion. known: an item complete before it starts for other
 * reasons, or -1. Returns the item, or -1 (the generator's state is then spoilt). */
static int place(struct gen *g, enum queue queue, struct ct_cmd *cmd, unsigned waits, unsigned sigs,
                 int known) {
  if (g->prog.count >= g->length) return -1;
  struct item it = {.queue = queue, .at = g->prog.count, .sigs = sigs};
  for (int q = 0; q < QUEUES; ++q)
    it.before[q] = g->last[queue] >= 0 ? g->items[g->last[queue]].before[q] : -1;
  if (known >= 0) join(it.before, g->items[known].after);
  /* VA last: MM's Wait2, the third, orders its output tiles only, and VA has to do with no other.
   */
  static const enum queue order[QUEUES] = {LD, ST, MM, VL, VS, VA};
  int need[QUEUES];
  find_needs(g, queue, need);
  reduce_needs(g, it.before, need);
  for (int i = 0; i < QUEUES; ++i) {
    const enum queue q = order[i];
    if (need[q] < 0) continue;
    const int source = find_source(g, need[q], q, queue);
    int wait = 0;
    while (wait < 3 && !(waits >> wait & 1))
      ++wait;
    if (source < 0 || wait == 3 || semaphore(g, KIND_PAIR + 6 * (int)q + (int)queue) < 0) return -1;
    waits &= ~(1u << wait);
    connect(g, source, cmd, queue, wait);
    join(it.before, g->items[source].after);
  }
  const int id = g->count++;
  memcpy(it.after, it.before, sizeof it.after);
  if (g->last[queue] >= 0) join(it.after, g->items[g->last[queue]].after);
  it.after[queue] = id;
  g->items[id] = it;
  g->last[queue] = id;
  g->prog.cmds[g->prog.count++] = *cmd;
  record(g, id);
  return id;
}

/* Item id completes after item earlier, too. */
static void completes_after(struct gen *g, int id, int earlier) {
  join(g->items[id].after, g->items[earlier].after);
}

/* A plain command: its queue, and the WAIT and SIG fields that mean its start and its completion.
 */
struct plain {
  enum queue queue;
  struct ct_cmd cmd;
  unsigned waits, sigs;
};

static bool place_plain(struct gen *g, struct plain *p) {
  return place(g, p->queue, &p->cmd, p->waits, p->sigs, -1) >= 0;
}

static bool emit(struct gen *g, const struct ct_cmd *cmd) {
  if (g->prog.count >= g->length) return false;
  g->prog.cmds[g->prog.count++] = *cmd;
  return true;
}

/* ---- LD, ST -------------------------------------------------------------------------------- */

struct run_set {
  uint32_t dram_lo, dram_hi, spm_lo, spm_hi; /* areas; DRAM relative to base */
  uint32_t base;
  uint32_t dram, spm, nb, s0, n1, n2;
  int32_t d1, d2, s1, s2;
  bool hdr;
};

static bool inside(int64_t first, int64_t count, int64_t lo, int64_t hi) {
  return first >= lo && first + count <= hi;
}

static bool runs_fit(const struct run_set *t) {
  for (uint32_t i2 = 0; i2 < t->n2; ++i2) {
    for (uint32_t i1 = 0; i1 < t->n1; ++i1) {
      const int64_t dram = (int64_t)t->dram + (int64_t)i2 * t->d2 + (int64_t)i1 * t->d1;
      const int64_t spm = (int64_t)t->spm + (int64_t)i2 * t->s2 + (int64_t)i1 * t->s1;
      if (!inside(dram, t->nb + t->hdr, t->dram_lo, t->dram_hi) ||
          !inside(spm, (int64_t)(t->nb - 1) * t->s0 + 1, t->spm_lo, t->spm_hi))
        return false;
    }
  }
  return true;
}

static struct ct_cmd dma_command(struct gen *g, unsigned code, const struct run_set *t) {
  struct ct_cmd cmd = command(code);
  set_sum(g, &cmd, CT_F_DMA_DRAM, t->base + t->dram);
  set_sum(g, &cmd, CT_F_DMA_SPM, t->spm);
  set_sum(g, &cmd, CT_F_DMA_N1, t->n1);
  set(&cmd, CT_F_DMA_HDR, t->hdr);
  set(&cmd, CT_F_DMA_NB, t->nb);
  set(&cmd, CT_F_DMA_S0, t->s0);
  set(&cmd, CT_F_DMA_D1, t->d1);
  set(&cmd, CT_F_DMA_D2, t->d2);
  set(&cmd, CT_F_DMA_S1, t->s1);
  set(&cmd, CT_F_DMA_S2, t->s2);
  set(&cmd, CT_F_DMA_N2, t->n2);
  return cmd;
}

static void touch_runs(struct gen *g, const struct run_set *t, bool dram, uint8_t dram_how,
                       bool spm, uint8_t spm_how) {
  for (uint32_t i = 0; i < t->n1 * t->n2; ++i) {
    const int32_t i1 = (int32_t)(i % t->n1), i2 = (int32_t)(i / t->n1);
    const int32_t d = (int32_t)t->dram + i2 * t->d2 + i1 * t->d1;
    const int32_t s = (int32_t)t->spm + i2 * t->s2 + i1 * t->s1;
    if (dram) touch(g, RES_OUT + d, (int)t->nb + t->hdr, dram_how);
    for (uint32_t j = 0; spm && j < t->nb; ++j)
      touch(g, RES_SPM + s + (int)(j * t->s0), 1, spm_how);
  }
}

/* Random runs of any shape within the areas of t. */
static bool any_runs(struct gen *g, struct run_set *t, uint32_t max_nb) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    t->nb = range(g, 1, percent(g, 80) && max_nb > 16 ? 16 : max_nb);
    t->s0 = percent(g, 70) ? 1 : below(g, 4);
    t->n1 = range(g, 1, 4);
    t->n2 = range(g, 1, 3);
    t->d1 = (int32_t)below(g, 121) - 40;
    t->d2 = (int32_t)below(g, 401) - 200;
    t->s1 = (int32_t)below(g, 61) - 20;
    t->s2 = (int32_t)below(g, 121) - 60;
    t->dram = range(g, t->dram_lo, t->dram_hi - 1);
    t->spm = range(g, t->spm_lo, t->spm_hi - 1);
    if (runs_fit(t)) return true;
  }
  return false;
}

/* Tiles: whole slots of a zone, and whole records (of one kind) of the input. */
static bool tile_runs(struct gen *g, struct run_set *t, uint32_t max_nb) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    t->nb = max_nb < 16 ? max_nb : 16;
    t->s0 = 1;
    t->n1 = range(g, 1, 4);
    t->n2 = range(g, 1, 3);
    t->d1 = RECORD * ((int32_t)below(g, 9) - 4);
    t->d2 = RECORD * ((int32_t)below(g, 25) - 12);
    t->s1 = 16 * ((int32_t)below(g, 7) - 3);
    t->s2 = 16 * ((int32_t)below(g, 13) - 6);
    t->dram = t->dram_lo + RECORD * below(g, RECORDS);
    t->spm = t->spm_lo + 16 * below(g, (t->spm_hi - t->spm_lo) / 16);
    if (runs_fit(t)) return true;
  }
  return false;
}

/* The SIG and WAIT fields that mean completion and start. */
static unsigned dma_waits(const struct run_set *t) {
  return t->n2 == 1 ? W0 | W1 | W2 : W1 | W2;
}

static unsigned dma_sigs(const struct run_set *t) {
  return t->n2 == 1 ? S0 | S1 : S1;
}

static bool make_ld(struct gen *g, struct plain *p) {
  struct run_set t = {.base = g->in, .hdr = true};
  bool ok, from_out = false;
  switch (below(g, 4)) {
    case 0: /* square tiles */
      t.dram_hi = IN_ROW;
      t.spm_lo = SQ_LO;
      t.spm_hi = SQ_HI;
      ok = tile_runs(g, &t, 16);
      break;
    case 1: /* row records, or the first blocks of them */
      t.dram_lo = IN_ROW;
      t.dram_hi = IN_RAW;
      t.spm_lo = ROW_LO;
      t.spm_hi = ROW_HI;
      ok = tile_runs(g, &t, range(g, 1, 16));
      break;
    default: /* raw, from the input or from what was stored before */
      from_out = !g->apart && percent(g, 60);
      t.hdr = false;
      t.base = from_out ? g->out : g->in;
      t.dram_lo = from_out ? 0 : IN_RAW;
      t.dram_hi = from_out ? g->out_units : CT_GEN_IN_UNITS;
      t.spm_lo = F32_LO;
      t.spm_hi = ANY_HI;
      ok = any_runs(g, &t, 256);
  }
  if (!ok) return false;
  *p = (struct plain){LD, dma_command(g, CT_OP_LD, &t), dma_waits(&t), dma_sigs(&t)};
  touch_runs(g, &t, from_out, READ, true, WRITE);
  return true;
}

static bool make_st(struct gen *g, struct plain *p) {
  struct run_set t = {
      .base = g->out, .hdr = percent(g, 50), .dram_hi = g->out_units, .spm_hi = CT_GEN_SPM};
  if (!any_runs(g, &t, t.hdr ? 16 : 256)) return false;
  *p = (struct plain){ST, dma_command(g, CT_OP_ST, &t), dma_waits(&t), dma_sigs(&t)};
  touch_runs(g, &t, true, WRITE, true, READ);
  return true;
}

/* ---- Compressed groups ---------------------------------------------------------------------- */

/* Groups of so many words anywhere in a part of the window: S1, S2, SPM. */
static bool comp_words(struct gen *g, struct run_set *t) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    t->s1 = (int32_t)below(g, 141) - 70;
    t->s2 = (int32_t)below(g, 281) - 140;
    t->spm = range(g, t->spm_lo, t->spm_hi - 1);
    if (runs_fit(t)) return true;
  }
  return false;
}

static struct ct_cmd comp_command(struct gen *g, unsigned code, const struct run_set *t,
                                  unsigned first, uint32_t n1) {
  struct ct_cmd cmd = command(code);
  set(&cmd, CT_F_DMA_COMP, 1);
  set_sum(g, &cmd, CT_F_DMA_DRAM, t->base + t->dram);
  set_sum(g, &cmd, CT_F_DMA_SPM, t->spm);
  set_sum(g, &cmd, CT_F_DMA_N1, n1);
  set(&cmd, CT_F_DMA_NB, t->nb);
  set(&cmd, CT_F_DMA_FIRST, first);
  set(&cmd, CT_F_DMA_D2, t->n2 > 1 ? 1 : (int32_t)below(g, 200) - 100);
  set(&cmd, CT_F_DMA_S1, t->s1);
  set(&cmd, CT_F_DMA_S2, t->s2);
  set(&cmd, CT_F_DMA_N2, t->n2);
  return cmd;
}

/* One or two index units that name nothing get groups of whatever the words hold. */
static bool make_comp_st(struct gen *g, struct plain *p) {
  const unsigned s = below(g, COMP_SLOTS), tiles = range(g, 1, 4), groups = range(g, 1, 4);
  const unsigned first = below(g, 5 - groups);
  const bool two = s + 1 < COMP_SLOTS && !g->comp[s + 1].groups && percent(g, 40);
  struct run_set t = {.base = g->out,
                      .dram_hi = CT_GEN_OUT_UNITS,
                      .dram = COMP_INDEX + s,
                      .spm_hi = CT_GEN_SPM,
                      .nb = 16 * tiles,
                      .s0 = 1,
                      .n1 = groups,
                      .n2 = two ? 2 : 1};
  if (g->comp[s].groups || !comp_words(g, &t)) return false;
  const uint32_t bound = percent(g, 30) ? 0 : percent(g, 80) ? range(g, 116, 136) : below(g, 255);
  *p = (struct plain){ST, comp_command(g, CT_OP_ST, &t, first, bound << 4 | groups), dma_waits(&t),
                      dma_sigs(&t)};
  touch_runs(g, &t, false, 0, true, READ);
  for (unsigned i = s; i < s + t.n2; ++i) {
    g->comp[i].tiles = tiles;
    g->comp[i].groups = groups;
    g->comp[i].first = first;
    touch(g, RES_OUT + COMP_INDEX + (int)i, 1, WRITE);
  }
  touch(g, RES_OUT + COMP_ACCOUNT, 1, WRITE);
  return true;
}

/* Groups of an index unit come back, some or all of them; all may be freed. */
static bool make_comp_ld(struct gen *g, struct plain *p) {
  const unsigned s = below(g, COMP_SLOTS), groups = g->comp[s].groups;
  if (!groups) return false;
  const unsigned skip = percent(g, 60) ? 0 : below(g, groups);
  const unsigned count = percent(g, 60) ? groups - skip : range(g, 1, groups - skip);
  const bool freed = count == groups && percent(g, 60);
  struct run_set t = {.base = g->out,
                      .dram_hi = CT_GEN_OUT_UNITS,
                      .dram = COMP_INDEX + s,
                      .spm_lo = F32_LO,
                      .spm_hi = ANY_HI,
                      .nb = 16 * g->comp[s].tiles,
                      .s0 = 1,
                      .n1 = count,
                      .n2 = 1};
  if (!comp_words(g, &t)) return false;
  /* (Its bound is not looked at.) */
  *p = (struct plain){
      LD, comp_command(g, CT_OP_LD, &t, g->comp[s].first + skip, below(g, 256) << 4 | count),
      dma_waits(&t), dma_sigs(&t)};
  set(&p->cmd, CT_F_DMA_FREE, freed);
  touch_runs(g, &t, false, 0, true, WRITE);
  touch(g, RES_OUT + COMP_INDEX + (int)s, 1, freed ? WRITE : READ);
  if (freed) touch(g, RES_OUT + COMP_ACCOUNT, 1, WRITE);
  if (freed) g->comp[s].groups = 0;
  return true;
}

/* ---- VL, VA, VS ---------------------------------------------------------------------------- */

/* Where rows of a mode may lie: words per row, and a zone. */
struct rows {
  uint32_t mode, width, rows, stride, spm, lo, hi;
};

static bool fit_rows(struct gen *g, struct rows *v, bool store) {
  v->width = v->mode == 0 ? 4 : 1;
  for (int attempt = 0; attempt < 100; ++attempt) {
    v->rows = percent(g, 50) ? 16 : range(g, 1, 16);
    v->stride = percent(g, 60) ? v->width : range(g, store ? v->width : 0, 20);
    v->spm = range(g, v->lo, v->hi - 1);
    if (v->spm + (v->rows - 1) * v->stride + v->width <= v->hi) return true;
  }
  return false;
}

static void touch_rows(struct gen *g, const struct rows *v, uint8_t how) {
  for (uint32_t r = 0; r < v->rows; ++r)
    touch(g, RES_SPM + (int)(v->spm + r * v->stride), (int)v->width, how);
}

static bool make_vl(struct gen *g, struct plain *p) {
  struct rows v = {.mode = below(g, 3)};
  v.lo = v.mode == 0 ? F32_LO : SQ_LO;
  v.hi = v.mode == 0 ? ANY_HI : ROW_HI;
  if (!fit_rows(g, &v, false)) return false;
  const uint32_t td = below(g, 16);
  struct ct_cmd cmd = command(CT_OP_VL);
  set_sum(g, &cmd, CT_F_VL_SPM, v.spm);
  set_sum(g, &cmd, CT_F_VL_ROWS, v.rows);
  set(&cmd, CT_F_VL_MODE, v.mode);
  set(&cmd, CT_F_VL_ROW_STRIDE, v.stride);
  set(&cmd, CT_F_VL_TD, td);
  touch_rows(g, &v, READ);
  touch(g, RES_TILE + (int)td, 1, WRITE);
  *p = (struct plain){VL, cmd, W0 | W1 | W2, S0 | S1};
  return true;
}

/* A tile quantised square into a slot of the square zone, or anything where it does no harm. */
static struct ct_cmd vs_command(struct gen *g, struct rows *v, uint32_t ts, bool *ok) {
  v->mode = below(g, 3);
  v->lo = v->mode == 0 ? F32_LO : ROW_LO;
  v->hi = v->mode == 0 ? ANY_HI : ROW_HI;
  *ok = fit_rows(g, v, true);
  if (v->mode == 2 && percent(g, 60)) {
    v->rows = 16;
    v->stride = 1;
    v->spm = SQ_LO + 16 * below(g, (SQ_HI - SQ_LO) / 16);
  }
  struct ct_cmd cmd = command(CT_OP_VS);
  set_sum(g, &cmd, CT_F_VS_SPM, v->spm);
  set_sum(g, &cmd, CT_F_VS_ROWS, v->rows);
  set(&cmd, CT_F_VS_MODE, v->mode);
  set(&cmd, CT_F_VS_ROW_STRIDE, v->stride);
  set(&cmd, CT_F_VS_TS, ts);
  set(&cmd, CT_F_VS_NARROW, percent(g, 50) ? 0 : below(g, 7));
  return cmd;
}

static bool make_vs(struct gen *g, struct plain *p) {
  struct rows v;
  bool ok;
  const uint32_t ts = below(g, 16);
  struct ct_cmd cmd = vs_command(g, &v, ts, &ok);
  if (!ok) return false;
  touch_rows(g, &v, WRITE);
  touch(g, RES_TILE + (int)ts, 1, READ);
  *p = (struct plain){VS, cmd, W0 | W1 | W2, S0 | S1};
  return true;
}

static uint32_t random_f32(ct_rng *rng) {
  static const uint32_t special[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                     0xff800000, 0x7fc00000, 0xffc00001, 0x00000001, 0x807fffff,
                                     0x00800000, 0x7f7fffff, 0x7f800001};
  if (ct_rng_percent(rng, 3)) return special[ct_rng_below(rng, sizeof special / sizeof *special)];
  const uint32_t x = (uint32_t)ct_rng_u64(rng);
  if (ct_rng_percent(rng, 5)) return x;
  return (x & 0x807fffff) | (120 + ct_rng_below(rng, 14)) << 23;
}

/* A random VA command; what it touches is touched, but for an ACC tile. a_src: 0 tile, 1 ACC, 2
 * zero; ta: its number. */
static struct ct_cmd va_command(struct gen *g, uint32_t a_src, uint32_t ta) {
  static const uint32_t funcs[] = {0, 0, 0, 0, 8, 9, 10, 11};
  struct ct_cmd cmd = command(CT_OP_VA);
  uint32_t b = below(g, 4), c = below(g, 4);
  if (b % 3 && c % 3) *(percent(g, 50) ? &b : &c) = 3 * below(g, 2);
  const bool uses_q = b % 3 || c % 3, permutes = percent(g, 25);
  const uint32_t td = below(g, 16), tq = below(g, 15);
  const bool crosses = permutes || b == 2 || c == 2;
  const uint32_t q = crosses && tq >= td ? tq + 1 : tq; /* not td, then */
  set(&cmd, CT_F_VA_TD, td);
  set(&cmd, CT_F_VA_TA, ta);
  set(&cmd, CT_F_VA_TQ, q);
  set(&cmd, CT_F_VA_A_SRC, a_src);
  set(&cmd, CT_F_VA_B_SRC, b);
  set(&cmd, CT_F_VA_C_SRC, c);
  set(&cmd, CT_F_VA_FN, percent(g, 50) ? 0 : below(g, 5));
  set(&cmd, CT_F_VA_NEG_C, below(g, 2));
  set(&cmd, CT_F_VA_RELU, percent(g, 30));
  set(&cmd, CT_F_VA_PAD_NINF, percent(g, 30));
  set(&cmd, CT_F_VA_FUNC, funcs[below(g, 8)]);
  set(&cmd, CT_F_VA_FULL, below(g, 2));
  set_sum(g, &cmd, CT_F_VA_SB, random_f32(g->rng));
  set_sum(g, &cmd, CT_F_VA_SC, random_f32(g->rng));
  set_sum(g, &cmd, CT_F_VA_ROWS, percent(g, 50) ? 16 : range(g, 1, 16));
  set(&cmd, CT_F_VA_COLS, percent(g, 50) ? 16 : range(g, 1, 16));
  set(&cmd, CT_F_VA_ROW_XOR, permutes ? below(g, 16) : 0);
  set(&cmd, CT_F_VA_LANE_XOR, permutes ? below(g, 16) : 0);
  if (a_src == 0) touch(g, RES_TILE + (int)ta, 1, READ);
  if (uses_q) touch(g, RES_TILE + (int)q, 1, READ);
  touch(g, RES_TILE + (int)td, 1, WRITE);
  return cmd;
}

static bool make_va(struct gen *g, struct plain *p) {
  const uint32_t a_src = below(g, 3), ta = below(g, 16);
  struct ct_cmd cmd = va_command(g, a_src, ta);
  if (a_src == 1) touch(g, RES_ACC + (int)ta, 1, READ);
  *p = (struct plain){VA, cmd, W0 | W1 | W2, S0 | S1};
  return true;
}

/* ---- MM ------------------------------------------------------------------------------------ */

/* ---- Walks ---- */

/* WPIX or WTAP: it waits for nothing, and nothing waits for it. */
static bool place_walk(struct gen *g, const struct ct_cmd *cmd) {
  struct ct_cmd c = *cmd;
  ct_walk_set(&g->walk, cmd);
  return place(g, MM, &c, 0, 0, -1) >= 0;
}

/* Images of a few lines, block by block or pixel by pixel, and what looks at them. */
static void draw_shape(struct gen *g) {
  struct ct_walk_shape *s = &g->shape;
  const bool mixed = percent(g, 30);
  *s = (struct ct_walk_shape){.w = (int32_t)range(g, 1, 9),
                              .h = (int32_t)range(g, 1, 7),
                              .nx = (int32_t)range(g, 1, 9),
                              .ny = (int32_t)range(g, 1, 7),
                              .sx = (int32_t)range(g, 1, 2),
                              .sy = (int32_t)range(g, 1, 2),
                              .dx = (int32_t)range(g, 0, 4) - 2,
                              .dy = (int32_t)range(g, 0, 4) - 2,
                              .kx = (int32_t)range(g, 1, 3),
                              .cb = (int32_t)range(g, 1, 3),
                              .x0 = (int32_t)range(g, 0, 6) - 3,
                              .y0 = (int32_t)range(g, 0, 6) - 3};
  g->images = range(g, 1, 3);
  s->pixel = mixed ? s->cb : 1;
  s->line = s->w * s->pixel;
  s->image = s->line * s->h;
  s->block = mixed ? 1 : s->image * (int32_t)g->images;
  g->shape_words = (uint32_t)(s->image * (mixed ? 1 : s->cb)) * g->images;
}

/* One of a WPIX's or WTAP's fields becomes something else; whether its words lie in the window is
 * seen later. */
static void disturb(struct gen *g, struct ct_cmd *cmd) {
  static const enum ct_field_id pixels[] = {CT_F_WPIX_AX, CT_F_WPIX_AY, CT_F_WPIX_AI, CT_F_WPIX_X0,
                                            CT_F_WPIX_XE, CT_F_WPIX_Y0, CT_F_WPIX_YE, CT_F_WPIX_SX,
                                            CT_F_WPIX_SY, CT_F_WPIX_W,  CT_F_WPIX_H};
  static const enum ct_field_id taps[] = {CT_F_WTAP_TC, CT_F_WTAP_TX, CT_F_WTAP_TY,
                                          CT_F_WTAP_X,  CT_F_WTAP_Y,  CT_F_WTAP_DX,
                                          CT_F_WTAP_DY, CT_F_WTAP_KX, CT_F_WTAP_CB};
  const bool pixel = CT_GET(cmd, ALL_OP) == CT_OP_WPIX;
  const enum ct_field_id f = pixel ? pixels[below(g, 11)] : taps[below(g, 9)];
  const struct ct_field_info *info = &ct_fields[f];
  const bool wide = percent(g, 30);
  const uint32_t bits = (uint32_t)ct_rng_u64(g->rng);
  if (info->kind == CT_KIND_UINT)
    ct_cmd_set_bits(cmd, info->lsb, info->width,
                    wide ? 1 + bits % ((1u << info->width) - 1) : 1 + bits % 5);
  else
    ct_cmd_set_bits(cmd, info->lsb, info->width, wide ? bits : bits % 9 - 4);
}

/* The commands of a shape: the one before, or another one. */
static void draw_walk(struct gen *g, struct ct_cmd *wpix, struct ct_cmd *wtap) {
  if (!g->shape_words || percent(g, 70)) {
    do
      draw_shape(g);
    while (g->shape_words > ROW_HI);
  }
  assert_true(ct_walk_commands(&g->shape, wpix, wtap));
  if (percent(g, 15)) disturb(g, wpix);
  if (percent(g, 15)) disturb(g, wtap);
}

/* A and Pos somewhere in the shape. */
static void set_place(struct gen *g, struct ct_cmd *cmd) {
  const struct ct_walk_shape *s = &g->shape;
  const int32_t x = (int32_t)below(g, (uint32_t)s->nx), y = (int32_t)below(g, (uint32_t)s->ny);
  const uint32_t image = below(g, g->images), base = below(g, ROW_HI - g->shape_words + 1);
  const uint32_t left = percent(g, 5) ? below(g, 256) : g->images - image;
  set(cmd, CT_F_MM_WALK, 1);
  set_sum(g, cmd, CT_F_MM_A, ct_walk_a(s, base, x, y, (int32_t)image));
  set_sum(g, cmd, CT_F_MM_POS, ct_walk_pos(s, x, y, left));
}

/* What all k steps of an MM with Walk read of A; false: not of this window. */
static bool touch_walk(struct gen *g, const struct ct_cmd *cmd) {
  const uint32_t rows = CT_GET(cmd, MM_ROWS), kt = CT_GET(cmd, MM_KT);
  const bool trans = CT_GET(cmd, MM_A_TRANS);
  const uint32_t count = trans ? (rows + 15) / 16 * 16 : rows;
  struct ct_walk_place at = ct_walk_start(&g->walk, cmd);
  uint32_t word[128];
  for (uint32_t k = 0; k < kt; ++k, ct_walk_step(&g->walk, &at, trans)) {
    ct_walk_rows(&g->walk, &at, trans, count, word);
    for (uint32_t r = 0; r < count; ++r) {
      if (word[r] == CT_WALK_PAD) continue;
      if (word[r] >= CT_GEN_SPM) return false;
      touch(g, RES_SPM + (int)word[r], 1, READ);
    }
  }
  return true;
}

/* The command with its sums, which then need no register. */
static struct ct_cmd resolve(const struct gen *g, const struct ct_cmd *cmd) {
  const struct ct_op_info *op = ct_op_find(CT_GET(cmd, ALL_OP));
  struct ct_cmd c = *cmd;
  for (unsigned f = 0; f < CT_NUM_FIELDS; ++f) {
    const struct ct_field_info *info = &ct_fields[f];
    const struct ct_sum_info *sum = ct_sum_of((enum ct_field_id)f);
    if (!sum || info->group != op->group || info->kind == CT_KIND_REG) continue;
    const uint32_t reg = ct_cmd_get(cmd, (enum ct_field_id)sum->reg);
    ct_cmd_set_bits(&c, info->lsb, info->width, ct_cmd_get(cmd, (enum ct_field_id)f) + g->r[reg]);
    ct_cmd_set(&c, (enum ct_field_id)sum->reg, 0);
  }
  return c;
}

/* ---- Plain MM ---- */

/* One output tile, one k step: its waits and Sig1 are those of a plain command. */
static bool make_mm(struct gen *g, struct plain *p) {
  const bool square_a = percent(g, 50), square_b = percent(g, 50);
  const uint32_t rows = range(g, 1, 16), acc = below(g, 16);
  const bool a_trans = square_a && percent(g, 50), b_trans = square_b && percent(g, 50);
  const uint32_t a = square_a ? 16 * below(g, SQ_HI / 16) : range(g, ROW_LO, ROW_HI - 16);
  const uint32_t b = square_b ? 16 * below(g, SQ_HI / 16) : range(g, ROW_LO, ROW_HI - 16);
  struct ct_cmd cmd = command(CT_OP_MM);
  set_sum(g, &cmd, CT_F_MM_A, a);
  set_sum(g, &cmd, CT_F_MM_B, b);
  set_sum(g, &cmd, CT_F_MM_ROWS, rows);
  set(&cmd, CT_F_MM_A_TRANS, a_trans);
  set(&cmd, CT_F_MM_B_TRANS, b_trans);
  set(&cmd, CT_F_MM_ACCUM, below(g, 2));
  set(&cmd, CT_F_MM_KT, 1);
  set(&cmd, CT_F_MM_NT, 1);
  set(&cmd, CT_F_MM_ACC, acc);
  if (g->shape_words && percent(g, 40)) {
    set(&cmd, CT_F_MM_A_TRANS, below(g, 2));
    set_place(g, &cmd);
    const struct ct_cmd c = resolve(g, &cmd);
    if (!touch_walk(g, &c)) return false;
  } else {
    touch(g, RES_SPM + (int)a, a_trans ? 16 : (int)rows, READ);
  }
  touch(g, RES_SPM + (int)b, 16, READ);
  touch(g, RES_ACC + (int)acc, 1, WRITE);
  *p = (struct plain){MM, cmd, W0 | W1 | W2, S1};
  return true;
}

/* A product fed step by step: sizes, and where its tiles lie in the square zone (A first). */
struct product {
  uint32_t mt, nt, kt, rows, acc, acc_n;
  uint32_t slot; /* of A(0,0) if strides are positive */
  bool k_major, down;
};

static bool choose_product(struct gen *g, struct product *p) {
  const uint32_t slots = (SQ_HI - SQ_LO) / 16;
  for (int attempt = 0; attempt < 200; ++attempt) {
    *p = (struct product){.mt = range(g, 1, 4), .nt = range(g, 1, 4), .kt = range(g, 1, 6)};
    const uint32_t need = p->kt * (p->mt + p->nt);
    p->acc_n = p->mt + below(g, 3);
    if (need > slots || p->mt * p->nt > 8 || (p->nt - 1) * p->acc_n + p->mt > 16) continue;
    p->slot = below(g, slots - need + 1);
    p->rows = 16 * p->mt - (percent(g, 50) ? 0 : below(g, 16));
    p->acc = below(g, 16 - ((p->nt - 1) * p->acc_n + p->mt) + 1);
    p->k_major = percent(g, 50);
    p->down = percent(g, 30);
    return true;
  }
  return false;
}

/* One operand: tiles (x, k), x < xt, of a product; its word address and strides. */
struct operand {
  uint32_t xt, first, at;
  int32_t sx, sk;
};

static struct operand operand_of(const struct product *p, uint32_t xt, uint32_t slot) {
  struct operand o = {.xt = xt, .first = 16 * slot};
  o.sx = 16 * (int32_t)(p->k_major ? 1 : p->kt);
  o.sk = 16 * (int32_t)(p->k_major ? xt : 1);
  o.at = o.first;
  if (p->down) {
    o.at += (uint32_t)((int32_t)(xt - 1) * o.sx + (int32_t)(p->kt - 1) * o.sk);
    o.sx = -o.sx;
    o.sk = -o.sk;
  }
  return o;
}

/* Loads an operand, a k step in each outer step; wait_kind: semaphore taken in each, or -1. The
 * load also waits until ACC is free for the product, if acc says so. */
static int load_operand(struct gen *g, const struct product *p, const struct operand *o,
                        int sig_kind, int wait_kind, bool acc) {
  struct run_set t = {.base = g->in, .hdr = true, .nb = 16, .s0 = 1, .n1 = o->xt, .n2 = p->kt};
  t.dram_hi = IN_ROW;
  t.spm = o->at;
  t.s1 = o->sx;
  t.s2 = o->sk;
  t.d1 = RECORD * (int32_t)range(g, 1, 3);
  t.d2 = RECORD * (int32_t)range(g, 1, 5);
  t.dram = RECORD * below(g, RECORDS - 40);
  t.spm_hi = SQ_HI;
  assert_true(runs_fit(&t));
  struct ct_cmd cmd = dma_command(g, CT_OP_LD, &t);
  if (sig_kind >= 0) {
    if (semaphore(g, sig_kind) < 0) return -1;
    set(&cmd, CT_F_ALL_SIG0, CT_SEM(g->sem[sig_kind]));
  }
  if (wait_kind >= 0) {
    if (semaphore(g, wait_kind) < 0) return -1;
    set(&cmd, CT_F_ALL_WAIT0, CT_SEM(g->sem[wait_kind]));
  }
  touch_runs(g, &t, false, 0, true, WRITE);
  for (uint32_t n = 0; acc && n < p->nt; ++n)
    touch(g, RES_ACC + (int)(p->acc + n * p->acc_n), (int)p->mt, WRITE);
  return place(g, LD, &cmd, W1 | W2, S1, -1);
}

static struct ct_cmd product_command(struct gen *g, const struct product *p,
                                     const struct operand *a, const struct operand *b, bool accum) {
  struct ct_cmd cmd = command(CT_OP_MM);
  set_sum(g, &cmd, CT_F_MM_A, a->at);
  set_sum(g, &cmd, CT_F_MM_B, b->at);
  set_sum(g, &cmd, CT_F_MM_ROWS, p->rows);
  set(&cmd, CT_F_MM_A_TRANS, below(g, 2));
  set(&cmd, CT_F_MM_B_TRANS, below(g, 2));
  set(&cmd, CT_F_MM_ACCUM, accum);
  set(&cmd, CT_F_MM_AM, a->sx);
  set(&cmd, CT_F_MM_AK, a->sk);
  set(&cmd, CT_F_MM_BN, b->sx);
  set(&cmd, CT_F_MM_BK, b->sk);
  set(&cmd, CT_F_MM_KT, p->kt);
  set(&cmd, CT_F_MM_NT, p->nt);
  set(&cmd, CT_F_MM_ACC, p->acc);
  set(&cmd, CT_F_MM_ACC_N, p->acc_n);
  set(&cmd, CT_F_ALL_SIG1, CT_SEM(g->sem[KIND_ACC_FULL]));
  return cmd;
}

static void touch_tiles(struct gen *g, uint32_t first, uint32_t count, int how) {
  for (uint32_t i = 0; i < count; ++i)
    touch(g, RES_TILE + (int)((first + i) % 16), 1, how);
}

/* take_tiles() of neighbouring ACC tiles by three commands: the first waits for what all need, the
 * last stands for all, that between them is repeated. */
static int take_repeated(struct gen *g, const struct product *p, int mm, int free_kind) {
  const uint32_t tiles = p->nt * p->mt;
  struct ct_cmd cmd = va_command(g, 1, p->acc);
  const uint32_t td = CT_GET(&cmd, VA_TD), tq = CT_GET(&cmd, VA_TQ);
  touch_tiles(g, td, tiles, WRITE);
  if ((tq - td) % 16 < tiles) { /* then it must not cross */
    set(&cmd, CT_F_VA_ROW_XOR, 0);
    set(&cmd, CT_F_VA_LANE_XOR, 0);
    if (CT_GET(&cmd, VA_B_SRC) == 2) set(&cmd, CT_F_VA_B_SRC, 1);
    if (CT_GET(&cmd, VA_C_SRC) == 2) set(&cmd, CT_F_VA_C_SRC, 1);
  }
  set(&cmd, CT_F_ALL_WAIT0, CT_SEM(g->sem[KIND_ACC_FULL]));
  if (free_kind >= 0) set(&cmd, CT_F_ALL_SIG0, CT_SEM(g->sem[free_kind]));
  for (uint32_t part = 0; part < 3; ++part) {
    struct ct_cmd one = cmd;
    const uint32_t at = part == 2 ? tiles - 1 : part;
    set(&one, CT_F_VA_TA, p->acc + at);
    set(&one, CT_F_VA_TD, (td + at) % 16);
    set(&one, CT_F_VA_MORE, part == 1 ? tiles - 3 : 0);
    if (part > 0) {
      touch_tiles(g, td, tiles, WRITE);
      if ((tq - td) % 16 >= tiles) touch_tiles(g, tq, 1, READ);
    }
    const unsigned sigs = part < 2 ? 0 : free_kind >= 0 ? S1 : S0 | S1;
    const int id = place(g, VA, &one, part == 0 ? W1 | W2 : 0, sigs, part == 2 ? mm : -1);
    if (id < 0 || part == 2) return id;
  }
  return -1;
}

/* The VA commands that take a product's tiles as they become final; the last of them, or -1.
 * free_kind: the semaphore each signals when it has read its tile, or -1. */
static int take_tiles(struct gen *g, const struct product *p, int mm, int free_kind) {
  int last = -1;
  if (p->nt * p->mt >= 3 && (p->nt == 1 || p->acc_n == p->mt) && percent(g, 50))
    return take_repeated(g, p, mm, free_kind);
  for (uint32_t t = 0; t < p->nt * p->mt; ++t) {
    struct ct_cmd cmd = va_command(g, 1, p->acc + t / p->mt * p->acc_n + t % p->mt);
    set(&cmd, CT_F_ALL_WAIT0, CT_SEM(g->sem[KIND_ACC_FULL]));
    if (free_kind >= 0) set(&cmd, CT_F_ALL_SIG0, CT_SEM(g->sem[free_kind]));
    const bool final = t + 1 == p->nt * p->mt;
    last = place(g, VA, &cmd, W1 | W2, free_kind >= 0 ? S1 : S0 | S1, final ? mm : -1);
    if (last < 0) return -1;
  }
  return last;
}

/* Two loads, the product, perhaps a refill of A behind it, the VA commands; perhaps a second
 * product of the same tiles that takes each ACC tile when it is free. */
static bool block_product(struct gen *g) {
  struct product p;
  if (!choose_product(g, &p)) return false;
  const bool again = percent(g, 40), refill = !again && percent(g, 50);
  const struct operand a = operand_of(&p, p.mt, p.slot);
  const struct operand b = operand_of(&p, p.nt, p.slot + p.kt * p.mt);
  if (semaphore(g, KIND_ACC_FULL) < 0 || (refill && semaphore(g, KIND_REFILL) < 0) ||
      (again && semaphore(g, KIND_ACC_FREE) < 0))
    return false;
  const int ld_a = load_operand(g, &p, &a, KIND_LD_A, -1, true);
  const int ld_b = ld_a < 0 ? -1 : load_operand(g, &p, &b, KIND_LD_B, -1, false);
  if (ld_b < 0) return false;
  struct ct_cmd cmd = product_command(g, &p, &a, &b, percent(g, 50));
  set(&cmd, CT_F_ALL_WAIT0, CT_SEM(g->sem[KIND_LD_A]));
  set(&cmd, CT_F_ALL_WAIT1, CT_SEM(g->sem[KIND_LD_B]));
  if (refill) set(&cmd, CT_F_ALL_SIG0, CT_SEM(g->sem[KIND_REFILL]));
  int mm = place(g, MM, &cmd, 0, 0, -1);
  if (mm < 0) return false;
  completes_after(g, mm, ld_b);
  if (refill && load_operand(g, &p, &a, -1, KIND_REFILL, false) < 0) return false;
  int last = take_tiles(g, &p, mm, again ? KIND_ACC_FREE : -1);
  if (last >= 0 && again) {
    cmd = product_command(g, &p, &a, &b, percent(g, 50));
    set(&cmd, CT_F_ALL_WAIT2, CT_SEM(g->sem[KIND_ACC_FREE]));
    mm = place(g, MM, &cmd, 0, 0, -1);
    if (mm < 0) return false;
    completes_after(g, mm, last);
    last = take_tiles(g, &p, mm, -1);
  }
  if (last < 0) return false;
  /* Whoever comes after the last VA comes after the product: it stands for it. */
  if (!refill) touch(g, (int)a.first, (int)(16 * p.kt * p.mt), READ);
  touch(g, (int)b.first, (int)(16 * p.kt * p.nt), READ);
  for (uint32_t n = 0; n < p.nt; ++n)
    touch(g, RES_ACC + (int)(p.acc + n * p.acc_n), (int)p.mt, WRITE);
  record(g, last);
  return true;
}

/* ---- VS feeding ST, step by step ------------------------------------------------------------- */

/* A tile register to each of a number of FP32 tiles in SPM, each signalling KIND_ROWS. Of three or
 * more, those between the first and the last may be one command. Returns the last item, or -1. */
static int rows_out(struct gen *g, uint32_t steps, uint32_t width) {
  const bool repeat = steps >= 3 && percent(g, 50);
  const uint32_t first = below(g, 16);
  int vs = -1;
  for (uint32_t i = 0; i < steps; ++i) {
    struct ct_cmd cmd = command(CT_OP_VS);
    const uint32_t ts = repeat ? (first + i) % 16 : below(g, 16);
    const bool inner = repeat && i > 0 && i + 1 < steps;
    if (inner && i > 1) continue;
    set_sum(g, &cmd, CT_F_VS_SPM, F32_LO + width * i);
    set_sum(g, &cmd, CT_F_VS_ROWS, 16);
    set(&cmd, CT_F_VS_ROW_STRIDE, 4);
    set(&cmd, CT_F_VS_TS, ts);
    set(&cmd, CT_F_VS_MORE, inner ? steps - 3 : 0);
    set(&cmd, CT_F_VS_TILE_STRIDE, repeat ? width : below(g, 4096));
    set(&cmd, CT_F_ALL_SIG0, CT_SEM(g->sem[KIND_ROWS]));
    if (repeat) {
      touch_tiles(g, first, steps, READ);
      touch(g, RES_SPM + F32_LO, (int)(width * steps), WRITE);
    } else {
      touch_tiles(g, ts, 1, READ);
      touch(g, RES_SPM + (int)(F32_LO + width * i), (int)width, WRITE);
    }
    vs = place(g, VS, &cmd, repeat && i > 0 ? 0 : W0 | W1 | W2, repeat && i + 1 < steps ? 0 : S1,
               -1);
    if (vs < 0) return -1;
  }
  return vs;
}

static bool block_rows(struct gen *g) {
  const uint32_t steps = range(g, 2, 5), width = 64; /* a step: a tile in FP32 */
  struct run_set t = {.base = g->out, .nb = width, .s0 = 1, .n1 = 1, .n2 = steps};
  t.dram_hi = g->out_units;
  t.spm_hi = F32_HI;
  t.spm = F32_LO;
  t.s2 = (int32_t)width;
  t.d2 = (int32_t)width + (int32_t)below(g, 8);
  t.dram = below(g, g->out_units - 600);
  if (semaphore(g, KIND_ROWS) < 0) return false;
  const int vs = rows_out(g, steps, width);
  if (vs < 0) return false;
  struct ct_cmd cmd = dma_command(g, CT_OP_ST, &t);
  set(&cmd, CT_F_ALL_WAIT0, CT_SEM(g->sem[KIND_ROWS]));
  touch_runs(g, &t, true, WRITE, false, 0);
  const int st = place(g, ST, &cmd, W1 | W2, S1, -1);
  if (st < 0) return false;
  completes_after(g, st, vs);
  touch_runs(g, &t, false, 0, true, READ);
  record(g, st);
  return true;
}

/* ---- Loops --------------------------------------------------------------------------------- */

enum { LOOP_IN = 28, LOOP_OUT = 29 }; /* registers that walk */

static bool emit_addi(struct gen *g, uint32_t rd0, uint32_t rs0, int32_t imm0, uint32_t rd1,
                      uint32_t rs1, int32_t imm1) {
  struct ct_cmd cmd = command(CT_OP_ADDI);
  set(&cmd, CT_F_ADDI_RD0, rd0);
  set(&cmd, CT_F_ADDI_RS0, rs0);
  set(&cmd, CT_F_ADDI_IMM0, imm0);
  set(&cmd, CT_F_ADDI_RD1, rd1);
  set(&cmd, CT_F_ADDI_RS1, rs1);
  set(&cmd, CT_F_ADDI_IMM1, imm1);
  return emit(g, &cmd);
}

/* What the loop's body works on: a run of raw words in, a tile, a run out. */
struct body {
  uint32_t passes, dram_in, dram_out, spm, nb, td, ts;
  int32_t step_in, step_out;
};

static void touch_body(struct gen *g, const struct body *b) {
  touch(g, RES_SPM + (int)b->spm, (int)b->nb, WRITE);
  touch(g, RES_TILE + (int)b->td, 1, WRITE);
  touch(g, RES_TILE + (int)b->ts, 1, WRITE);
  touch(g, RES_OUT + (int)b->dram_out, (int)(b->passes * (uint32_t)b->step_out), WRITE);
}

static void set_sem(struct gen *g, struct ct_cmd *cmd, int wait, int sig) {
  set(cmd, CT_F_ALL_WAIT0, CT_SEM(g->sem[KIND_LOOP + wait]));
  set(cmd, CT_F_ALL_SIG0, CT_SEM(g->sem[KIND_LOOP + sig]));
}

static struct ct_cmd body_dma(struct gen *g, unsigned code, const struct body *b, unsigned reg) {
  struct ct_cmd cmd = command(code);
  set(&cmd, CT_F_DMA_DRAM_REG, reg);
  set_sum(g, &cmd, CT_F_DMA_SPM, b->spm);
  set(&cmd, CT_F_DMA_NB, b->nb);
  set(&cmd, CT_F_DMA_S0, 1);
  set(&cmd, CT_F_DMA_N1, 1);
  set(&cmd, CT_F_DMA_N2, 1);
  return cmd;
}

/* LD -> VL -> VA -> VS -> ST, then the next pass. */
static bool emit_body(struct gen *g, const struct body *b) {
  struct ct_cmd ld = body_dma(g, CT_OP_LD, b, LOOP_IN), st = body_dma(g, CT_OP_ST, b, LOOP_OUT);
  struct ct_cmd vl = command(CT_OP_VL), va = command(CT_OP_VA), vs = command(CT_OP_VS);
  set_sem(g, &ld, 0, 1);
  set_sem(g, &vl, 1, 2);
  set_sem(g, &va, 2, 3);
  set_sem(g, &vs, 3, 4);
  set_sem(g, &st, 4, 0);
  set(&vl, CT_F_VL_SPM, b->spm);
  set(&vl, CT_F_VL_ROW_STRIDE, 4);
  set(&vl, CT_F_VL_ROWS, b->nb / 4);
  set(&vl, CT_F_VL_TD, b->td);
  set(&va, CT_F_VA_TD, b->ts);
  set(&va, CT_F_VA_TA, b->td);
  set(&va, CT_F_VA_C_SRC, 1);
  set(&va, CT_F_VA_TQ, b->ts); /* sums over the passes */
  set(&va, CT_F_VA_FULL, 1);
  set(&va, CT_F_VA_ROWS, 16);
  set(&va, CT_F_VA_COLS, range(g, 1, 16));
  set(&vs, CT_F_VS_SPM, b->spm);
  set(&vs, CT_F_VS_ROW_STRIDE, 4);
  set(&vs, CT_F_VS_ROWS, b->nb / 4);
  set(&vs, CT_F_VS_TS, b->ts);
  return emit(g, &ld) && emit(g, &vl) && emit(g, &va) && emit(g, &vs) && emit(g, &st) &&
         emit_addi(g, LOOP_IN, LOOP_IN, b->step_in, LOOP_OUT, LOOP_OUT, b->step_out);
}

/* The passes of loops one in another, nine in all at most; their product. */
static uint32_t draw_passes(struct gen *g, uint32_t *passes, unsigned deep) {
  uint32_t product = 1;
  for (unsigned i = 0; i < deep; ++i) {
    passes[i] = product <= 3 ? range(g, 1, 3) : 1;
    product *= passes[i];
  }
  return product;
}

static bool emit_loops(struct gen *g, const uint32_t *passes, unsigned deep) {
  for (unsigned i = 0; i < deep; ++i) {
    struct ct_cmd loop = command(CT_OP_LOOP);
    set_sum(g, &loop, CT_F_CTL_COUNT, passes[i]);
    if (CT_GET(&loop, CTL_COUNT_REG) >= LOOP_IN) {
      set(&loop, CT_F_CTL_COUNT_REG, 0);
      set(&loop, CT_F_CTL_COUNT, passes[i]);
    }
    if (!emit(g, &loop)) return false;
  }
  return true;
}

static bool emit_ends(struct gen *g, unsigned deep) {
  const struct ct_cmd endl = command(CT_OP_ENDL);
  for (unsigned i = 0; i < deep; ++i)
    if (!emit(g, &endl)) return false;
  return true;
}

/* A gate in front (a store after all that the loop conflicts with) gives the first token; a load
 * behind takes the last one. For the rest of the program the two stand for the loop. */
static bool block_loop(struct gen *g) {
  uint32_t passes[CT_NUM_LOOPS];
  const unsigned deep = 1 + below(g, CT_NUM_LOOPS);
  struct body b = {
      .passes = draw_passes(g, passes, deep), .nb = 4 * range(g, 1, 16), .td = below(g, 16)};
  b.ts = (b.td + 1 + below(g, 15)) % 16;
  b.spm = range(g, F32_LO, ANY_HI - b.nb);
  b.step_in = (int32_t)below(g, 100) - 20;
  b.step_out = (int32_t)b.nb;
  b.dram_in = range(g, IN_RAW + 200, CT_GEN_IN_UNITS - 64 - 9 * 80);
  b.dram_out = below(g, g->out_units - b.passes * b.nb);
  for (int i = 0; i < 5; ++i)
    if (semaphore(g, KIND_LOOP + i) < 0) return false;

  struct run_set one = {.base = g->out, .nb = 1, .s0 = 1, .n1 = 1, .n2 = 1};
  one.dram = b.dram_out;
  one.spm = b.spm;
  struct ct_cmd gate = dma_command(g, CT_OP_ST, &one);
  set(&gate, CT_F_ALL_SIG0, CT_SEM(g->sem[KIND_LOOP]));
  touch_body(g, &b);
  if (place(g, ST, &gate, W0 | W1 | W2, S1, -1) < 0) return false;

  g->r[LOOP_IN] = g->in + b.dram_in;
  g->r[LOOP_OUT] = g->out + b.dram_out;
  if (!emit_addi(g, LOOP_IN, 0, (int32_t)g->r[LOOP_IN], LOOP_OUT, 0, (int32_t)g->r[LOOP_OUT]))
    return false;
  const uint32_t in = g->r[LOOP_IN], out = g->r[LOOP_OUT];
  if (!emit_loops(g, passes, deep)) return false;
  /* In the loop the walking registers have no one value: nobody else may add them. */
  const unsigned first = g->prog.count;
  if (!emit_body(g, &b)) return false;
  for (unsigned i = first; i < g->prog.count; ++i) {
    struct ct_cmd *cmd = &g->prog.cmds[i];
    const bool dma = CT_GET(cmd, ALL_OP) == CT_OP_LD || CT_GET(cmd, ALL_OP) == CT_OP_ST;
    if (!dma || CT_GET(cmd, DMA_SPM_REG) < LOOP_IN) continue;
    set(cmd, CT_F_DMA_SPM_REG, 0);
    set(cmd, CT_F_DMA_SPM, b.spm);
  }
  if (!emit_ends(g, deep)) return false;
  g->r[LOOP_IN] = in + b.passes * (uint32_t)b.step_in;
  g->r[LOOP_OUT] = out + b.passes * (uint32_t)b.step_out;

  one.base = g->in;
  one.dram = IN_RAW;
  struct ct_cmd close = dma_command(g, CT_OP_LD, &one);
  set(&close, CT_F_ALL_WAIT0, CT_SEM(g->sem[KIND_LOOP]));
  touch_body(g, &b);
  const int id = place(g, LD, &close, W1 | W2, S0 | S1, g->count - 1);
  return id >= 0;
}

/* ---- Nests of loops around plain commands -------------------------------------------------- */

/* Loops are written down first and then executed here, pass by pass, with the registers as the
 * dispatcher has them: that says what their commands touch, and where the registers stand behind
 * them. No command of a nest waits or signals; so its queues must have nothing to do with each
 * other in it. In front of it a command of each of its queues, a gate, comes after all that the
 * nest conflicts with; another one of each behind it stands for the nest. */
enum { NEST_UNITS = 6, NEST_RUNS = 48, NEST_STEPS = 500, WALKERS = 4 };

struct nest {
  unsigned allowed; /* queues, bit by bit */
  unsigned units;   /* commands of theirs so far */
  uint32_t walker[WALKERS];
  unsigned runs, steps; /* executed so far: of the units, of all */
  bool used[QUEUES];
  struct ct_cmd first[QUEUES]; /* the first of each, as it is executed */
  uint8_t touch[QUEUES][RES_COUNT];
};

static bool (*const makers[QUEUES])(struct gen *g, struct plain *p) = {
    [LD] = make_ld, [ST] = make_st, [MM] = make_mm, [VL] = make_vl, [VA] = make_va, [VS] = make_vs};

/* Nothing of the input or of a zone but what is meant for it. */
static bool touch_dma(struct gen *g, const struct ct_cmd *cmd, bool load) {
  struct run_set t = {.nb = CT_GET(cmd, DMA_NB),
                      .s0 = CT_GET(cmd, DMA_S0),
                      .n1 = CT_GET(cmd, DMA_N1),
                      .n2 = CT_GET(cmd, DMA_N2),
                      .d1 = CT_GETS(cmd, DMA_D1),
                      .d2 = CT_GETS(cmd, DMA_D2),
                      .s1 = CT_GETS(cmd, DMA_S1),
                      .s2 = CT_GETS(cmd, DMA_S2),
                      .hdr = CT_GET(cmd, DMA_HDR),
                      .spm = CT_GET(cmd, DMA_SPM)};
  const uint32_t dram = CT_GET(cmd, DMA_DRAM);
  const bool out = dram - g->out < g->out_units;
  t.dram = dram - (out ? g->out : g->in);
  if (!load) {
    t.dram_hi = g->out_units;
    t.spm_hi = CT_GEN_SPM;
  } else if (t.hdr) {
    const bool square = t.spm < SQ_HI;
    t.dram_lo = square ? 0 : IN_ROW;
    t.dram_hi = square ? IN_ROW : IN_RAW;
    t.spm_lo = square ? SQ_LO : ROW_LO;
    t.spm_hi = square ? SQ_HI : ROW_HI;
    if (out || t.dram % RECORD || (square && t.spm % 16)) return false;
  } else {
    t.dram_lo = out ? 0 : IN_RAW;
    t.dram_hi = out ? g->out_units : CT_GEN_IN_UNITS;
    t.spm_lo = F32_LO;
    t.spm_hi = ANY_HI;
  }
  if ((!load && !out) || !t.n1 || !runs_fit(&t)) return false;
  touch_runs(g, &t, out, load ? READ : WRITE, true, load ? WRITE : READ);
  return true;
}

static bool touch_vector(struct gen *g, const struct rows *v, uint8_t how) {
  const int64_t count = (int64_t)(v->rows - 1) * v->stride + v->width;
  if (v->rows < 1 || v->rows > 16 || !inside(v->spm, count, v->lo, v->hi)) return false;
  touch_rows(g, v, how);
  return true;
}

static bool touch_vl(struct gen *g, const struct ct_cmd *cmd) {
  const bool fp32 = CT_GET(cmd, VL_MODE) == 0;
  const struct rows v = {.width = fp32 ? 4 : 1,
                         .rows = CT_GET(cmd, VL_ROWS),
                         .stride = CT_GET(cmd, VL_ROW_STRIDE),
                         .spm = CT_GET(cmd, VL_SPM),
                         .lo = fp32 ? F32_LO : SQ_LO,
                         .hi = fp32 ? ANY_HI : ROW_HI};
  touch(g, RES_TILE + (int)CT_GET(cmd, VL_TD), 1, WRITE);
  return touch_vector(g, &v, READ);
}

static bool touch_vs(struct gen *g, const struct ct_cmd *cmd) {
  const bool fp32 = CT_GET(cmd, VS_MODE) == 0;
  struct rows v = {.width = fp32 ? 4 : 1,
                   .rows = CT_GET(cmd, VS_ROWS),
                   .stride = CT_GET(cmd, VS_ROW_STRIDE),
                   .spm = CT_GET(cmd, VS_SPM),
                   .lo = fp32 ? F32_LO : ROW_LO,
                   .hi = fp32 ? ANY_HI : ROW_HI};
  const bool whole = CT_GET(cmd, VS_MODE) == 2 && v.rows == 16 && v.stride == 1;
  if (whole && v.spm < SQ_HI) { /* a slot of the square zone */
    if (v.spm % 16) return false;
    v.lo = SQ_LO;
    v.hi = SQ_HI;
  }
  touch(g, RES_TILE + (int)CT_GET(cmd, VS_TS), 1, READ);
  return touch_vector(g, &v, WRITE);
}

static bool touch_va(struct gen *g, const struct ct_cmd *cmd) {
  const uint32_t rows = CT_GET(cmd, VA_ROWS), ta = CT_GET(cmd, VA_TA);
  const uint32_t a_src = CT_GET(cmd, VA_A_SRC);
  const bool uses_q = CT_GET(cmd, VA_B_SRC) % 3 || CT_GET(cmd, VA_C_SRC) % 3;
  if (a_src < 2) touch(g, (a_src ? RES_ACC : RES_TILE) + (int)ta, 1, READ);
  if (uses_q) touch(g, RES_TILE + (int)CT_GET(cmd, VA_TQ), 1, READ);
  touch(g, RES_TILE + (int)CT_GET(cmd, VA_TD), 1, WRITE);
  return rows >= 1 && rows <= 16;
}

/* An operand of one tile: a slot of squares, or rows if it is not to be transposed. */
static bool touch_operand(struct gen *g, uint32_t at, bool trans, uint32_t words) {
  if (at < SQ_HI ? at % 16 != 0 : trans || at < ROW_LO || at > ROW_HI - 16) return false;
  touch(g, RES_SPM + (int)at, trans ? 16 : (int)words, READ);
  return true;
}

static bool touch_mm(struct gen *g, const struct ct_cmd *cmd) {
  const uint32_t rows = CT_GET(cmd, MM_ROWS);
  touch(g, RES_ACC + (int)CT_GET(cmd, MM_ACC), 1, WRITE);
  return rows >= 1 && rows <= 16 &&
         (CT_GET(cmd, MM_WALK)
              ? touch_walk(g, cmd)
              : touch_operand(g, CT_GET(cmd, MM_A), CT_GET(cmd, MM_A_TRANS), rows)) &&
         touch_operand(g, CT_GET(cmd, MM_B), CT_GET(cmd, MM_B_TRANS), 16);
}

/* A simple MM that has to do with nothing but this one's first weight tile and first output tile.
 */
static struct ct_cmd gate_of(const struct ct_cmd *mm) {
  struct ct_cmd gate = *mm;
  if (!CT_GET(mm, MM_WALK)) return gate;
  set(&gate, CT_F_MM_WALK, 0);
  set(&gate, CT_F_MM_A, CT_GET(mm, MM_B));
  set(&gate, CT_F_MM_A_TRANS, 0);
  set(&gate, CT_F_MM_ROWS, 1 + CT_GET(mm, MM_ROWS) % 16);
  set(&gate, CT_F_MM_KT, 1);
  set(&gate, CT_F_MM_NT, 1);
  set(&gate, CT_F_ALL_WAIT0, 0);
  return gate;
}

/* A command of a unit is executed. */
static bool run_unit(struct gen *g, struct nest *n, const struct ct_cmd *cmd) {
  const struct ct_cmd c = resolve(g, cmd);
  enum queue q = LD;
  bool fits = false;
  switch (CT_GET(&c, ALL_OP)) {
    case CT_OP_LD:
      fits = touch_dma(g, &c, true);
      break;
    case CT_OP_ST:
      q = ST;
      fits = touch_dma(g, &c, false);
      break;
    case CT_OP_WPIX:
    case CT_OP_WTAP:
      ct_walk_set(&g->walk, &c);
      return ++n->runs <= NEST_RUNS;
    case CT_OP_MM:
      q = MM;
      fits = touch_mm(g, &c);
      break;
    case CT_OP_VL:
      q = VL;
      fits = touch_vl(g, &c);
      break;
    case CT_OP_VA:
      q = VA;
      fits = touch_va(g, &c);
      break;
    default:
      q = VS;
      fits = touch_vs(g, &c);
  }
  for (int i = 0; i < RES_COUNT; ++i)
    n->touch[q][i] |= g->touch[i];
  memset(g->touch, 0, sizeof g->touch);
  if (!n->used[q]) n->first[q] = q == MM ? gate_of(&c) : c;
  n->used[q] = true;
  return fits && ++n->runs <= NEST_RUNS;
}

static void run_addi(struct gen *g, const struct ct_cmd *cmd) {
  static const enum ct_field_id rd[] = {CT_F_ADDI_RD0, CT_F_ADDI_RD1, CT_F_ADDI_RD2, CT_F_ADDI_RD3};
  static const enum ct_field_id rs[] = {CT_F_ADDI_RS0, CT_F_ADDI_RS1, CT_F_ADDI_RS2, CT_F_ADDI_RS3};
  static const enum ct_field_id imm[] = {CT_F_ADDI_IMM0, CT_F_ADDI_IMM1, CT_F_ADDI_IMM2,
                                         CT_F_ADDI_IMM3};
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t to = ct_cmd_get(cmd, rd[i]);
    if (to) g->r[to] = g->r[ct_cmd_get(cmd, rs[i])] + ct_cmd_get(cmd, imm[i]);
  }
}

/* Executes what has been written down from `first` on. units: what it touches counts. False: more
 * than is allowed, or something that is not. */
static bool run_nest(struct gen *g, struct nest *n, unsigned first, bool units) {
  unsigned top[CT_NUM_LOOPS], depth = 0;
  uint32_t left[CT_NUM_LOOPS];
  for (unsigned pc = first; pc < g->prog.count; ++pc) {
    const struct ct_cmd *cmd = &g->prog.cmds[pc];
    const uint32_t code = CT_GET(cmd, ALL_OP);
    if (++n->steps > NEST_STEPS) return false;
    if (code == CT_OP_LOOP) {
      const struct ct_cmd c = resolve(g, cmd);
      top[depth] = pc;
      left[depth++] = CT_GET(&c, CTL_COUNT);
      if (!CT_GET(&c, CTL_COUNT)) return false;
    } else if (code == CT_OP_ENDL) {
      if (--left[depth - 1])
        pc = top[depth - 1];
      else
        --depth;
    } else if (code == CT_OP_ADDI) {
      run_addi(g, cmd);
    } else if (code != CT_OP_NOP && units && !run_unit(g, n, cmd)) {
      return false;
    }
  }
  return true;
}

/* An address that walks: the sum is the same in the first pass. */
static void walk_with(struct gen *g, struct ct_cmd *cmd, enum ct_field_id field, uint32_t reg) {
  const struct ct_sum_info *sum = ct_sum_of(field);
  const struct ct_field_info *f = &ct_fields[field];
  const uint32_t old = g->r[ct_cmd_get(cmd, (enum ct_field_id)sum->reg)];
  ct_cmd_set_bits(cmd, f->lsb, f->width, ct_cmd_get(cmd, field) + old - g->r[reg]);
  set(cmd, (enum ct_field_id)sum->reg, reg);
}

/* Walker 0 goes over records of DRAM, 1 over tiles of the scratchpad, 2 over words of either, 3
 * over anything that is no address. */
static void draw_walks(struct gen *g, const struct nest *n, struct plain *p) {
  static const enum ct_field_id spm[QUEUES] = {CT_F_DMA_SPM, CT_F_DMA_SPM, CT_F_MM_A,
                                               CT_F_VL_SPM,  CT_F_VA_SB,   CT_F_VS_SPM};
  const bool dma = p->queue == LD || p->queue == ST, any = percent(g, 30);
  const uint32_t near = n->walker[p->queue == VA ? 3 : any ? 2 : 1];
  if (percent(g, 70)) walk_with(g, &p->cmd, spm[p->queue], near);
  if (dma && percent(g, 70)) walk_with(g, &p->cmd, CT_F_DMA_DRAM, n->walker[any ? 2 : 0]);
  if (p->queue == MM && percent(g, 50)) walk_with(g, &p->cmd, CT_F_MM_B, near);
  if (p->queue == VA && percent(g, 50)) walk_with(g, &p->cmd, CT_F_VA_SC, near);
}

static bool put_unit(struct gen *g, struct nest *n) {
  const enum queue q = (enum queue)below(g, QUEUES);
  struct plain p;
  if (!(n->allowed >> q & 1) || n->units >= NEST_UNITS) return true;
  const bool made = makers[q](g, &p);
  memset(g->touch, 0, sizeof g->touch);
  if (!made) return true;
  draw_walks(g, n, &p);
  if (q == MM && CT_GET(&p.cmd, MM_WALK)) set(&p.cmd, CT_F_MM_KT, range(g, 1, 4));
  ++n->units;
  return emit(g, &p.cmd);
}

/* WPIX, WTAP or both, where the program has had them before. */
static bool put_walk(struct gen *g, const struct nest *n) {
  struct ct_cmd wpix, wtap;
  const unsigned which = range(g, 1, 3);
  if (!(n->allowed >> MM & 1) || !g->shape_words) return true;
  draw_walk(g, &wpix, &wtap);
  if (which & 1) ct_walk_set(&g->walk, &wpix);
  if (which & 2) ct_walk_set(&g->walk, &wtap);
  return (!(which & 1) || emit(g, &wpix)) && (!(which & 2) || emit(g, &wtap));
}

/* The walkers go on, one or two of them, now and then back. */
static bool put_step(struct gen *g, const struct nest *n) {
  static const int32_t unit[WALKERS] = {RECORD, 16, 1, 0x10001};
  struct ct_cmd cmd = command(CT_OP_ADDI);
  const unsigned a = below(g, WALKERS), b = below(g, WALKERS);
  set(&cmd, CT_F_ADDI_RD0, n->walker[a]);
  set(&cmd, CT_F_ADDI_RS0, n->walker[a]);
  set(&cmd, CT_F_ADDI_IMM0, unit[a] * ((int32_t)below(g, 5) - 1));
  if (a != b) {
    set(&cmd, CT_F_ADDI_RD3, n->walker[b]);
    set(&cmd, CT_F_ADDI_RS3, n->walker[b]);
    set(&cmd, CT_F_ADDI_IMM3, unit[b] * ((int32_t)below(g, 5) - 2));
  }
  run_addi(g, &cmd);
  return emit(g, &cmd);
}

static bool put_loop(struct gen *g, struct nest *n, unsigned depth);

/* A body of a loop; the first two of an outer one are often loops themselves. */
static bool put_parts(struct gen *g, struct nest *n, unsigned depth) {
  const struct ct_cmd nop = command(CT_OP_NOP);
  for (unsigned parts = 1 + below(g, 4); parts; --parts) {
    const unsigned dice = below(g, 100);
    bool ok = true;
    if (dice < 35 && depth < CT_NUM_LOOPS)
      ok = put_loop(g, n, depth + 1);
    else if (dice < 70)
      ok = put_unit(g, n);
    else if (dice < 74)
      ok = put_walk(g, n);
    else if (dice < 92)
      ok = put_step(g, n);
    else
      ok = emit(g, &nop);
    if (!ok) return false;
  }
  return true;
}

/* depth: this loop's, from 1 on. One in four has an empty body, or a NOP, and may have many passes.
 */
static bool put_loop(struct gen *g, struct nest *n, unsigned depth) {
  const bool idle = percent(g, 25);
  const struct ct_cmd nop = command(CT_OP_NOP), endl = command(CT_OP_ENDL);
  const unsigned first = g->prog.count;
  uint32_t before[CT_NUM_REGS];
  struct ct_cmd loop = command(CT_OP_LOOP);
  memcpy(before, g->r, sizeof before);
  set_sum(g, &loop, CT_F_CTL_COUNT, range(g, 1, idle ? 40 / depth : 3));
  if (!emit(g, &loop)) return false;
  if (!idle && !put_parts(g, n, depth)) return false;
  if (idle && percent(g, 50) && !emit(g, &nop)) return false;
  if (!emit(g, &endl)) return false;
  memcpy(g->r, before, sizeof before);
  n->steps = 0;
  return run_nest(g, n, first, false);
}

static bool disjoint(const struct nest *n) {
  for (int i = 0; i < RES_COUNT; ++i) {
    unsigned users = 0, writers = 0;
    for (int q = 0; q < QUEUES; ++q) {
      users += n->touch[q][i] != 0;
      writers += (n->touch[q][i] & WRITE) != 0;
    }
    if (writers && users > 1) return false;
  }
  return true;
}

/* The first command of each queue by itself, and with all that the nest touches of its queue. */
static bool place_gates(struct gen *g, const struct nest *n) {
  for (int q = 0; q < QUEUES; ++q) {
    struct plain p = {.queue = (enum queue)q, .cmd = n->first[q], .waits = W0 | W1 | W2};
    const bool steps = (q == LD || q == ST) && CT_GET(&p.cmd, DMA_N2) > 1;
    if (!n->used[q]) continue;
    p.waits = steps ? W1 | W2 : W0 | W1 | W2;
    p.sigs = steps || q == MM ? S1 : S0 | S1;
    memcpy(g->touch, n->touch[q], sizeof g->touch);
    if (!place_plain(g, &p)) return false;
  }
  return true;
}

/* Writes a nest down, sees what it does, and puts it between its gates. */
static bool nest_of(struct gen *g, struct nest *n) {
  const unsigned first = g->prog.count;
  uint32_t before[CT_NUM_REGS];
  struct ct_cmd cmds[CT_PROG_MAX];
  const struct ct_walk walk = g->walk;
  memcpy(before, g->r, sizeof before);
  for (unsigned i = 0; i < WALKERS; ++i)
    n->walker[i] = 1 + (below(g, 7) + 7 * i) % (CT_NUM_REGS - 1); /* different ones */
  if (!put_loop(g, n, 1)) return false;
  memcpy(g->r, before, sizeof before);
  g->walk = walk;
  n->steps = 0;
  if (!run_nest(g, n, first, true) || !disjoint(n)) return false;
  const unsigned count = g->prog.count - first;
  memcpy(cmds, g->prog.cmds + first, count * sizeof *cmds);
  g->prog.count = first;
  if (!place_gates(g, n)) return false;
  for (unsigned i = 0; i < count; ++i)
    if (!emit(g, &cmds[i])) return false;
  return place_gates(g, n);
}

static bool block_nest(struct gen *g) {
  struct nest *n = test_calloc(1, sizeof *n);
  n->allowed = percent(g, 30) ? 63 : 1u << below(g, QUEUES) | 1u << below(g, QUEUES);
  const bool ok = nest_of(g, n) && n->runs > 0;
  test_free(n);
  return ok;
}

/* Loops of nothing but control: they show only in the registers behind them. */
static bool block_idle(struct gen *g) {
  struct nest *n = test_calloc(1, sizeof *n);
  const bool ok = nest_of(g, n);
  test_free(n);
  return ok;
}

/* ---- Programs ------------------------------------------------------------------------------ */

static bool block_addi(struct gen *g) {
  const uint32_t rd0 = below(g, CT_NUM_REGS), rs0 = below(g, CT_NUM_REGS);
  const uint32_t rd1 = below(g, CT_NUM_REGS), rs1 = below(g, CT_NUM_REGS);
  const int32_t imm0 = (int32_t)below(g, 2000) - 1000, imm1 = (int32_t)ct_rng_u64(g->rng);
  if (rd0) g->r[rd0] = g->r[rs0] + (uint32_t)imm0;
  if (rd1) g->r[rd1] = g->r[rs1] + (uint32_t)imm1;
  return emit_addi(g, rd0, rs0, imm0, rd1, rs1, imm1);
}

static bool block_plain(struct gen *g, enum queue queue) {
  struct plain p;
  return makers[queue](g, &p) && place_plain(g, &p);
}

static bool block_ld(struct gen *g) {
  return block_plain(g, LD);
}

static bool block_st(struct gen *g) {
  return block_plain(g, ST);
}

static bool block_comp(struct gen *g) {
  struct plain p;
  return (percent(g, 50) ? make_comp_st(g, &p) : make_comp_ld(g, &p)) && place_plain(g, &p);
}

static bool block_vl(struct gen *g) {
  return block_plain(g, VL);
}

static bool block_va(struct gen *g) {
  return block_plain(g, VA);
}

static bool block_vs(struct gen *g) {
  return block_plain(g, VS);
}

static bool block_mm_small(struct gen *g) {
  return block_plain(g, MM);
}

/* The weights of an MM with Walk, somewhere among the squares. */
static bool set_weights(struct gen *g, struct ct_cmd *cmd) {
  const int32_t nt = (int32_t)CT_GET(cmd, MM_NT), kt = (int32_t)CT_GET(cmd, MM_KT);
  const int32_t bn = 16 * ((int32_t)below(g, 7) - 3), bk = 16 * ((int32_t)below(g, 7) - 3);
  const int32_t b = 16 * (int32_t)below(g, SQ_HI / 16);
  for (int32_t n = 0; n < nt; ++n)
    for (int32_t k = 0; k < kt; ++k)
      if (!inside(b + n * bn + k * bk, 16, SQ_LO, SQ_HI)) return false;
  set(cmd, CT_F_MM_BN, bn);
  set(cmd, CT_F_MM_BK, bk);
  set(cmd, CT_F_MM_B_TRANS, below(g, 2));
  set_sum(g, cmd, CT_F_MM_B, (uint32_t)b);
  for (int32_t n = 0; n < nt; ++n)
    for (int32_t k = 0; k < kt; ++k)
      touch(g, RES_SPM + b + n * bn + k * bk, 16, READ);
  return true;
}

/* Any number of rows, tiles and k steps, without semaphores. */
static bool walk_command(struct gen *g, struct ct_cmd *cmd) {
  *cmd = command(CT_OP_MM);
  const uint32_t rows = percent(g, 50) ? 16 * range(g, 1, 8) : range(g, 1, 128),
                 mt = (rows + 15) / 16;
  const uint32_t nt = range(g, 1, 8 / mt), acc_n = below(g, 4);
  const uint32_t top = (nt - 1) * acc_n + mt;
  if (top > 16) return false;
  const uint32_t acc = below(g, 16 - top + 1);
  set_sum(g, cmd, CT_F_MM_ROWS, rows);
  set(cmd, CT_F_MM_ACCUM, below(g, 2));
  set(cmd, CT_F_MM_A_TRANS, below(g, 2));
  set(cmd, CT_F_MM_KT, range(g, 1, percent(g, 70) ? 4 : 20));
  set(cmd, CT_F_MM_NT, nt);
  set(cmd, CT_F_MM_ACC, acc);
  set(cmd, CT_F_MM_ACC_N, acc_n);
  set(cmd, CT_F_MM_AM, (int32_t)below(g, 9) - 4); /* not looked at */
  set_place(g, cmd);
  if (!set_weights(g, cmd)) return false;
  touch(g, RES_ACC + (int)acc, (int)top, WRITE);
  const struct ct_cmd c = resolve(g, cmd);
  return touch_walk(g, &c);
}

/* A walk and an MM along it, between two MMs that stand for it: one comes after all that it
 * conflicts with, the other signals. */
static bool block_walk(struct gen *g) {
  struct ct_cmd wpix, wtap, cmd;
  const bool first = g->shape_words == 0;
  uint8_t all[RES_COUNT];
  draw_walk(g, &wpix, &wtap);
  if ((first || percent(g, 80)) && !place_walk(g, &wpix)) return false;
  if ((first || percent(g, 80)) && !place_walk(g, &wtap)) return false;
  if (!walk_command(g, &cmd)) return false;
  memcpy(all, g->touch, sizeof all);
  const struct ct_cmd c = resolve(g, &cmd);
  struct plain gate = {.queue = MM, .cmd = gate_of(&c), .waits = W0 | W1 | W2};
  if (!place_plain(g, &gate)) return false;
  memcpy(g->touch, all, sizeof all);
  if (place(g, MM, &cmd, 0, 0, -1) < 0) return false;
  memcpy(g->touch, all, sizeof all);
  gate = (struct plain){.queue = MM, .cmd = gate_of(&c), .sigs = S1};
  return place_plain(g, &gate);
}

static bool block_nop(struct gen *g) {
  const struct ct_cmd cmd = command(CT_OP_NOP);
  return emit(g, &cmd);
}

static void start(struct gen *g, struct ct_gen_prog *prog) {
  memset(g->sem, -1, sizeof g->sem);
  memset(g->last, -1, sizeof g->last);
  memset(g->writer, -1, sizeof g->writer);
  memset(g->reader, -1, sizeof g->reader);
  memset(g->signaller, -1, sizeof g->signaller);
  for (unsigned i = 0; i < CT_NUM_ARGS; ++i) {
    prog->args[i] = percent(g, 50) ? below(g, 4096) : (uint32_t)ct_rng_u64(g->rng);
    g->r[1 + i] = prog->args[i];
  }
}

static void generate(ct_rng *rng, struct ct_gen_prog *prog, unsigned length, uint32_t in,
                     uint32_t out, bool comp) {
  static const struct {
    bool (*make)(struct gen *g);
    unsigned weight;
  } blocks[] = {{block_ld, 16},      {block_st, 14},   {block_vl, 14},  {block_va, 20},
                {block_vs, 14},      {block_addi, 4},  {block_nop, 1},  {block_mm_small, 14},
                {block_product, 10}, {block_rows, 4},  {block_loop, 4}, {block_nest, 14},
                {block_idle, 4},     {block_walk, 14}, {block_comp, 40}};
  struct gen *g = test_calloc(2, sizeof *g), *saved = g + 1;
  g->rng = rng;
  g->length = length - 1;
  g->in = in;
  g->out = out;
  g->out_units = comp ? COMP_LO : CT_GEN_OUT_UNITS;
  g->apart = percent(g, 50);
  start(g, prog);
  for (unsigned failures = 0; g->prog.count < g->length && failures < 200;) {
    uint32_t pick = below(g, comp ? 187 : 147);
    size_t i = 0;
    while (pick >= blocks[i].weight)
      pick -= blocks[i++].weight;
    *saved = *g;
    if (!blocks[i].make(g)) {
      *g = *saved;
      ++failures;
    }
  }
  /* Where nothing fits any more: up to the length that was asked for. */
  while (g->prog.count < g->length)
    (percent(g, 50) ? block_nop : block_addi)(g);
  memcpy(prog->cmds, g->prog.cmds, sizeof prog->cmds);
  prog->count = g->prog.count;
  prog->overlap = g->apart;
  prog->cmds[prog->count++] = command(CT_OP_END);
  test_free(g);
}

void ct_gen_random(ct_rng *rng, struct ct_gen_prog *prog, unsigned length, uint32_t in,
                   uint32_t out) {
  generate(rng, prog, length, in, out, false);
}

void ct_gen_compressing(ct_rng *rng, struct ct_gen_prog *prog, unsigned length, uint32_t in,
                        uint32_t out) {
  generate(rng, prog, length, in, out, true);
}

static void append(struct ct_gen_prog *prog, const struct ct_cmd *cmd) {
  assert_true(prog->count < CT_PROG_MAX);
  prog->cmds[prog->count++] = *cmd;
}

/* A DMA command of n1 plain runs; wait, sig: SEM fields. */
static void append_dma(struct ct_gen_prog *prog, unsigned code, uint32_t dram, uint32_t spm,
                       uint32_t nb, bool hdr, uint32_t n1, uint32_t wait, uint32_t sig) {
  struct ct_cmd cmd = command(code);
  set(&cmd, CT_F_DMA_DRAM, dram);
  set(&cmd, CT_F_DMA_SPM, spm);
  set(&cmd, CT_F_DMA_NB, nb);
  set(&cmd, CT_F_DMA_HDR, hdr);
  set(&cmd, CT_F_DMA_S0, 1);
  set(&cmd, CT_F_DMA_N1, n1);
  set(&cmd, CT_F_DMA_N2, 1);
  set(&cmd, CT_F_DMA_S1, nb);
  set(&cmd, CT_F_DMA_D1, nb + hdr);
  set(&cmd, CT_F_ALL_WAIT0, wait);
  set(&cmd, CT_F_ALL_SIG1, sig);
  append(prog, &cmd);
}

void ct_gen_setup(struct ct_gen_prog *prog, uint32_t in) {
  memset(prog, 0, sizeof *prog);
  append_dma(prog, CT_OP_LD, in, SQ_LO, 16, true, SQ_HI / 16, 0, CT_SEM(0));
  set(&prog->cmds[0], CT_F_ALL_SIG0, CT_SEM(0)); /* two of the same at once */
  append_dma(prog, CT_OP_LD, in + IN_ROW, ROW_LO, 16, true, (ROW_HI - ROW_LO) / 16, 0, 0);
  append_dma(prog, CT_OP_LD, in + IN_RAW, F32_LO, 64, false, (ANY_HI - F32_LO) / 64, 0, CT_SEM(1));
  for (uint32_t half = 0; half < 2; ++half) {
    struct ct_cmd mm = command(CT_OP_MM);
    set(&mm, CT_F_MM_ROWS, 128);
    set(&mm, CT_F_MM_AM, 16);
    set(&mm, CT_F_MM_B, 16 * 9 + 16 * half);
    set(&mm, CT_F_MM_KT, 1);
    set(&mm, CT_F_MM_NT, 1);
    set(&mm, CT_F_MM_ACC, 8 * half);
    set(&mm, CT_F_ALL_WAIT0, CT_SEM(0));
    append(prog, &mm);
  }
  for (uint32_t t = 0; t < 16; ++t) {
    struct ct_cmd vl = command(CT_OP_VL);
    set(&vl, CT_F_VL_SPM, F32_LO + 16 * t);
    set(&vl, CT_F_VL_ROW_STRIDE, 4);
    set(&vl, CT_F_VL_ROWS, 16);
    set(&vl, CT_F_VL_TD, t);
    set(&vl, CT_F_ALL_WAIT0, t ? 0 : CT_SEM(1));
    append(prog, &vl);
  }
  const struct ct_cmd end = command(CT_OP_END);
  append(prog, &end);
}

/* SPM as records; then tile registers and ACC tiles, each through one place in SPM. */
void ct_gen_dump(struct ct_gen_prog *prog, uint32_t out) {
  memset(prog, 0, sizeof *prog);
  append_dma(prog, CT_OP_ST, out, 0, 16, true, CT_GEN_SPM / 16, 0, CT_SEM(1));
  for (uint32_t t = 0; t < 32; ++t) {
    struct ct_cmd va = command(CT_OP_VA), vs = command(CT_OP_VS);
    if (t >= 16) { /* into tile register 0, which has been stored */
      set(&va, CT_F_VA_TA, t - 16);
      set(&va, CT_F_VA_A_SRC, 1);
      set(&va, CT_F_VA_ROWS, 16);
      set(&va, CT_F_VA_COLS, 16);
      set(&va, CT_F_ALL_WAIT0, CT_SEM(2)); /* the VS before has read it */
      set(&va, CT_F_ALL_SIG1, CT_SEM(3));
      append(prog, &va);
      set(&vs, CT_F_ALL_WAIT1, CT_SEM(3));
    }
    set(&vs, CT_F_VS_SPM, F32_LO);
    set(&vs, CT_F_VS_ROW_STRIDE, 4);
    set(&vs, CT_F_VS_ROWS, 16);
    set(&vs, CT_F_VS_TS, t < 16 ? t : 0);
    set(&vs, CT_F_ALL_WAIT0, CT_SEM(1));
    set(&vs, CT_F_ALL_SIG0, CT_SEM(0));
    set(&vs, CT_F_ALL_SIG1, t >= 15 ? CT_SEM(2) : 0);
    append(prog, &vs);
    append_dma(prog, CT_OP_ST, out + CT_GEN_SPM / 16 * RECORD + 64 * t, F32_LO, 64, false, 1,
               CT_SEM(0), CT_SEM(1));
  }
  const struct ct_cmd end = command(CT_OP_END);
  append(prog, &end);
}

/* A block with a mostly ordinary exponent; 0 and 255 with any mantissas. */
static uint8_t random_exp(ct_rng *rng) {
  if (ct_rng_percent(rng, 2)) return (uint8_t)(ct_rng_percent(rng, 70) ? 0 : 255);
  if (ct_rng_percent(rng, 2)) return (uint8_t)ct_rng_u64(rng);
  return (uint8_t)(124 + ct_rng_below(rng, 8));
}

static void random_record(ct_rng *rng, uint8_t *record, bool square) {
  const uint8_t e = random_exp(rng);
  for (unsigned r = 0; r < 16; ++r) {
    record[r] = square ? e : random_exp(rng);
    for (unsigned i = 0; i < 16; ++i) /* -128 never occurs */
      record[16 + 16 * r + i] = (uint8_t)(int8_t)((int)ct_rng_below(rng, 255) - 127);
  }
}

void ct_gen_input(ct_rng *rng, uint8_t bytes[16 * CT_GEN_IN_UNITS]) {
  for (unsigned i = 0; i < RECORDS; ++i) {
    random_record(rng, bytes + 16 * RECORD * i, true);
    random_record(rng, bytes + 16 * (IN_ROW + RECORD * i), false);
  }
  for (unsigned at = 16 * IN_RAW; at < 16 * CT_GEN_IN_UNITS; at += 4) {
    const uint32_t x = random_f32(rng);
    for (unsigned b = 0; b < 4; ++b)
      bytes[at + b] = (uint8_t)(x >> 8 * b);
  }
}
