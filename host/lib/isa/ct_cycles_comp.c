/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of time: LD and ST with Comp (rtl/dma/ct_dma_comp.sv). A step is a group. How long the
 * groups are is told (struct ct_cycles_groups); with 16 bytes a cycle it hardly matters, for
 * encoder and decoder take 17 cycles a tile whatever it becomes.
 */
#include "ct_cycles_impl.h"

enum { TILE_CYCLES = 17, MOST_UNITS = 70, GROUP_TILES = 4, BURST = 16 };

/* ---- Requests: ct_act_walk ---- */

static uint32_t units_of(const struct ct_cycles_core *core, uint32_t index, uint32_t tiles) {
  uint32_t units = MOST_UNITS;
  for (size_t i = 0; i < core->groups_count; ++i)
    if (index - core->groups[i].index < core->groups[i].count) units = core->groups[i].units;
  return (units * tiles + GROUP_TILES - 1) / GROUP_TILES;
}

/* A command may be taken when plain ones are through. */
static bool walk_load(struct cyc *c, struct cyc_walk *w, enum ct_cycles_unit u, uint64_t plain) {
  const struct ct_cmd *cmd = cyc_front(c, u);
  if (!cmd) return false;
  const uint64_t at = cyc_max(cyc_max(cyc_here(c, u), plain), w->go ? w->go - 1 : 0);
  w->cmd = *cmd;
  cyc_pop(c, u, at);
  w->active = w->begun = w->step_begun = true;
  w->i1 = (CT_GET(cmd, DMA_N1) & 7) - 1;
  w->i2 = CT_GET(cmd, DMA_N2) - 1;
  w->index = CT_GET(cmd, DMA_DRAM);
  w->tiles = CT_GET(cmd, DMA_NB) / 16;
  w->units = units_of(c->core, w->index, w->tiles);
  w->go = at + 1;
  return true;
}

/* Takes the waits of the next group; false: they have not been signalled. Semaphores are looked at
 * a cycle before the request is on offer. */
static bool walk_waits(struct cyc *c, struct cyc_walk *w) {
  const uint32_t wait[3] = {CT_GET(&w->cmd, ALL_WAIT0), CT_GET(&w->cmd, ALL_WAIT1),
                            CT_GET(&w->cmd, ALL_WAIT2)};
  const unsigned count = w->begun ? 3 : w->step_begun ? 1 : 0;
  bool any = false;
  for (unsigned i = 0; i < count; ++i)
    any |= wait[i] & 16;
  if (!any) return true;
  if (!cyc_wait(c, wait, count, &w->go)) return false;
  ++w->go;
  return true;
}

static bool walk_room(const struct cyc *c, const struct cyc_walk *w) {
  return cyc_room(c, CT_GET(&w->cmd, ALL_SIG0)) && cyc_room(c, CT_GET(&w->cmd, ALL_SIG1));
}

/* Goes on behind a group that was taken in a cycle; says what ended with it. */
static void walk_next(struct cyc_walk *w, uint64_t taken, bool *step_end, bool *cmd_end) {
  *step_end = w->i1 == 0;
  *cmd_end = *step_end && w->i2 == 0;
  w->begun = false;
  w->step_begun = *step_end;
  w->go = taken + 1;
  ++w->requests;
  if (*cmd_end) w->active = false;
  if (!*step_end) {
    --w->i1;
    return;
  }
  w->i1 = (CT_GET(&w->cmd, DMA_N1) & 7) - 1;
  --w->i2;
  w->index += (uint32_t)CT_GETS(&w->cmd, DMA_D2);
}

static void walk_signals(struct cyc *c, const struct ct_cmd *cmd, bool step_end, bool cmd_end,
                         uint64_t at) {
  const uint32_t sig0 = CT_GET(cmd, ALL_SIG0), sig1 = CT_GET(cmd, ALL_SIG1);
  if (step_end) cyc_signal(c, sig0, at);
  if (cmd_end) cyc_signal(c, sig1, at + (sig0 == sig1));
}

static uint64_t more_than(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

/* Cycles of a group in encoder or decoder beyond those of its beats. */
static uint64_t coding(const struct cyc_walk *w, const struct cyc_bus *bus) {
  return more_than((uint64_t)w->tiles * TILE_CYCLES, (w->units * bus->cost) >> 8);
}

/* ---- Loads: ct_act_ld ---- */

/* From a beat on the bus to the entry that is looked up in it; from there to the bursts on offer;
 * from the first beat of a group to its first word written, from the last beat to the last word;
 * between words of two groups; from the last word to done, without freeing and what that takes (a
 * closed page's: the open one's takes a cycle less); from done to the signal, and to a plain
 * command. */
enum {
  LD_ENTRY = 3,
  LD_OFFER = 2,
  LD_FIRST = 11,
  LD_LAST = 9,
  LD_APART = 2,
  LD_DONE = 1,
  LD_FREE = 2,
  LD_SIGNAL = 2,
  LD_QUIET = 3
};

/* When the index unit is there. It is asked for in its turn, when the one before is in use, and
 * goes before bursts of groups. */
static uint64_t ld_index(struct cyc *c, uint64_t taken) {
  struct cyc_act_ld *a = &c->act_ld;
  const uint64_t ask = cyc_max(cyc_max(taken, a->asked) + 1, a->used + 1);
  a->asked = ask;
  a->used = cyc_read_before(c, ask) + LD_ENTRY;
  return a->used;
}

/* The group's bursts; first and last beat on the bus. */
static void ld_bursts(struct cyc *c, uint32_t units, uint64_t ask, uint64_t *first,
                      uint64_t *last) {
  for (uint32_t left = units; left > 0;) {
    const uint32_t beats = left < BURST ? left : BURST;
    *last = cyc_read(c, ask, beats);
    if (left == units) *first = *last - (((beats - 1) * c->reads.bus.cost) >> 8);
    left -= beats;
    ask = c->reads.grant + 1;
  }
  c->act_ld.got = c->reads.grant;
}

/* The decoder takes its time, or waits for the last beat; returns when the group is done. Freeing
 * holds up the next one, but for the cycle in which it has no word. */
static uint64_t ld_words(struct cyc_act_ld *a, uint64_t tiles, uint64_t first, uint64_t last,
                         bool frees) {
  const uint64_t begin = cyc_max(first + LD_FIRST, a->word + LD_APART);
  const uint64_t word = cyc_max(begin + tiles * TILE_CYCLES - 2, last + LD_LAST);
  const uint64_t done = word + LD_DONE + (frees ? LD_FREE : 0);
  a->word = frees ? done - 1 : word;
  return done;
}

bool cyc_ld_groups(struct cyc *c) {
  struct cyc_walk *w = &c->ld_walk;
  struct cyc_act_ld *a = &c->act_ld;
  if (!w->active && !walk_load(c, w, CYC_LD, c->ld_plain)) return false;
  if (!walk_room(c, w) || !walk_waits(c, w)) return false;
  const struct ct_cmd cmd = w->cmd;
  const bool reads = w->step_begun;
  bool step_end, cmd_end;
  uint64_t first = 0, last = 0, *put = &a->put[w->requests % CYC_GROUPS];
  const uint64_t taken = cyc_max(w->go, *put);
  walk_next(w, taken, &step_end, &cmd_end);
  uint64_t entry = cyc_max(taken + 2, a->got + 1);
  if (reads) entry = cyc_max(entry, ld_index(c, taken));
  ld_bursts(c, w->units, entry + LD_OFFER, &first, &last);
  const uint64_t done = ld_words(a, w->tiles, first, last, CT_GET(&cmd, DMA_FREE));
  *put = done + 1;
  walk_signals(c, &cmd, step_end, cmd_end, done + LD_SIGNAL);
  w->quiet = done + LD_QUIET;
  c->decoded += coding(w, &c->reads.bus);
  return true;
}

/* ---- Stores: ct_act_st ---- */

/* From a request taken to its first word at the encoder, which takes words so many cycles behind
 * the reader; from a tile's first word to its header; words behind a tile that come while its
 * header waits; from a header given to its first bits out, and from a group in the buffer to its
 * bursts on offer; from its last burst to the next group's page, or to the index unit's burst on
 * offer; from the last grant to a plain command. */
enum {
  ST_WORD = 4,
  ST_AHEAD = 8,
  ST_HEAD = 19,
  ST_HALT = 3,
  ST_OUT = 7,
  ST_TAKE = 4,
  ST_NEXT = 2,
  ST_INDEX = 3,
  ST_QUIET = 2
};

/* A tile goes through the encoder; returns when its last bits are out. out: from when on there is
 * room for the group's. */
static uint64_t st_tile(struct cyc_act_st *a, uint64_t word, uint64_t out) {
  a->in = cyc_max(cyc_max(word, a->in + 16), more_than(a->give, ST_HALT));
  a->give = cyc_max(cyc_max(a->in + ST_HEAD, a->give + TILE_CYCLES), more_than(out, ST_OUT));
  return a->give + ST_OUT + TILE_CYCLES - 1;
}

static void st_bursts(struct cyc *c, uint32_t units, uint64_t ask) {
  for (uint32_t left = units; left > 0;) {
    const uint32_t beats = left < BURST ? left : BURST;
    cyc_write(c, ask, beats);
    left -= beats;
    ask = c->writes.grant + 1;
  }
}

/* Words are read and encoded; returns when the group is in the buffer. */
static uint64_t st_encode(struct cyc_act_st *a, uint64_t tiles, uint64_t taken, uint64_t half) {
  uint64_t out = 0;
  for (uint64_t i = 0; i < tiles; ++i)
    out = st_tile(a, taken + ST_WORD + 16 * i, half);
  a->reader = cyc_max(taken + 16 * tiles, more_than(a->in + 16, ST_WORD + ST_AHEAD));
  return out;
}

bool cyc_st_groups(struct cyc *c) {
  struct cyc_walk *w = &c->st_walk;
  struct cyc_act_st *a = &c->act_st;
  if (!w->active && !walk_load(c, w, CYC_ST, c->st_plain)) return false;
  if (!walk_room(c, w) || !walk_waits(c, w)) return false;
  const struct ct_cmd cmd = w->cmd;
  bool step_end, cmd_end;
  uint64_t *through = &a->through[w->requests % 4], *half = &a->half[w->requests % 2];
  const uint64_t taken = cyc_max(cyc_max(w->go, *through), a->reader);
  walk_next(w, taken, &step_end, &cmd_end);
  const uint64_t out = st_encode(a, w->tiles, taken, *half);
  st_bursts(c, w->units, cyc_max(out + 1, a->sent) + ST_TAKE - 1);
  if (step_end) {
    const uint64_t answer = cyc_write(c, c->writes.grant + ST_INDEX, 1);
    walk_signals(c, &cmd, step_end, cmd_end, answer + CYC_WRITE_SIGNAL);
  }
  a->sent = *through = c->writes.grant + (step_end ? 1 : ST_NEXT);
  *half = c->writes.asked + 1;
  w->quiet = c->writes.grant + ST_QUIET;
  c->encoded += coding(w, &c->writes.bus);
  return true;
}
