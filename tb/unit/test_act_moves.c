/* SPDX-License-Identifier: Apache-2.0 */
/* ct_act between a scratchpad, a memory and the rings of the DMA, all with stalls: groups are
 * stored, loaded in any order, some twice, and freed, all at the same time. Every group in memory
 * is that of the model, every word that comes back, too; and every error ends where it should. */
#include <string.h>

#include "act_gen.h"
#include "ct_act_moves_dut.h"
#include "ct_act_pages.h"

enum { kWords = 4096, kUnits = 16384, kArena = 1024, kPages = 32, kIndex = 64 };
enum { kSlots = 6, kStepWords = 256, kBack = 2048, kRing = 8, kStepsDone = 300 };
enum { kSpmBase = 100, kSpmSize = 3700 };
enum kind { kKindSpm, kKindParityOrMemory, kKindDram, kKindRoomOrGroup };

struct burst {
  uint32_t addr, beats, at, tag, end_tag, done;
};

struct ring {
  struct burst burst[kRing];
  unsigned put, end; /* free-running */
};

/* A unit of the index with its groups: 1 to 4 of them, in entries that ascend. */
struct step {
  enum { kNone, kStoring, kStored, kLoading, kTwice } state;
  unsigned groups, asked, done;
  bool again; /* it is loaded once more */
  uint8_t entry[4];
  struct act_group group[4];
};

struct bench {
  ct_act_moves_dut *d;
  ct_rng rng;
  ct_stall spm_read, spm_write, offers, beats, grants, arrivals;
  struct ct_act_block spm[kWords];
  uint8_t dram[kUnits][16];
  struct ring wr, rd;
  bool rd_v[2], wr_data; /* words and data on their way */
  uint32_t rd_at[2], wr_to;
  bool rd_data;
  uint32_t rd_from, rd_offer; /* unit on offer that was not granted; 0: none */
  struct step step[kSlots];
  unsigned storing, loading; /* steps in the order in which they were begun: that in hand */
  unsigned st_in, ld_in, finished;
  int st_step, ld_step;         /* of which requests are given; -1: none */
  int ld_first;                 /* whose groups come back next */
  unsigned told;                /* signals of stores */
  bool rate;                    /* all groups of all steps, one behind the other */
  unsigned gaps;                /* with pauses between the loads: percent of the cycles */
  uint32_t bad_word, bad_burst; /* with wrong parity, with an error; ~0: none */
  bool err, err_stores;         /* the last cycle had an error; of a store */
  enum kind err_kind;
  uint32_t err_addr;
};

/* --- The neighbours --- */

static struct burst *front(struct ring *r) {
  return r->end != r->put ? &r->burst[r->end % kRing] : NULL;
}

static void drive_spm(struct bench *b) {
  *b->d->spm_rd_ready_i = !ct_stall_next(&b->spm_read);
  *b->d->spm_wr_ready_i = !ct_stall_next(&b->spm_write);
  const struct ct_act_block *w = &b->spm[b->rd_at[1] % kWords];
  memcpy(b->d->spm_rd_data_i, w->q, 16);
  *b->d->spm_rd_exp_i = w->e;
  *b->d->spm_rd_perr_i = b->rd_v[1] && b->rd_at[1] == b->bad_word;
}

static void drive_wr(struct bench *b) {
  const struct burst *w = front(&b->wr);
  *b->d->wr_ready_i = b->wr.put - b->wr.end < 2 && !ct_stall_next(&b->grants);
  *b->d->wr_beat_i = w && !ct_stall_next(&b->beats);
  *b->d->wr_within_i = w != NULL;
  if (!w) return;
  *b->d->wr_beat_at_i = (uint8_t)(w->at + w->done);
  *b->d->wr_beat_tag_i = (uint8_t)w->tag;
  *b->d->wr_beat_last_i = w->done + 1 == w->beats;
}

static void drive_rd(struct bench *b) {
  const struct burst *r = front(&b->rd);
  *b->d->rd_ready_i = b->rd.put - b->rd.end < kRing && !ct_stall_next(&b->offers);
  const bool beat = r && !ct_stall_next(&b->arrivals);
  const bool bad = r && r->addr == b->bad_burst;
  const bool quiet = *b->d->flush_i || *b->d->halt_i;
  *b->d->rd_beat_i = beat && !bad && !quiet;
  *b->d->rd_fault_i = beat && bad && !quiet;
  if (b->rd_data) memcpy(b->d->rd_data_i, b->dram[b->rd_from], 16);
  b->rd_data = false;
  if (!beat) return;
  *b->d->rd_beat_tag_i = (uint8_t)r->tag;
  *b->d->rd_beat_addr_i = r->addr;
  *b->d->rd_beat_last_i = r->done + 1 == r->beats;
}

static void watch_spm(struct bench *b) {
  b->rd_v[1] = b->rd_v[0];
  b->rd_at[1] = b->rd_at[0];
  b->rd_v[0] = *b->d->spm_rd_valid_o && *b->d->spm_rd_ready_i;
  b->rd_at[0] = *b->d->spm_rd_addr_o;
  if (b->rd_v[0]) assert_in_range(b->rd_at[0], kSpmBase, kSpmBase + kSpmSize - 1);
  if (!*b->d->spm_wr_valid_o || !*b->d->spm_wr_ready_i) return;
  const uint32_t to = *b->d->spm_wr_addr_o;
  assert_in_range(to, kSpmBase, kSpmBase + kSpmSize - 1);
  memcpy(b->spm[to].q, b->d->spm_wr_data_o, 16);
  b->spm[to].e = *b->d->spm_wr_exp_o;
}

/* A burst that is granted lies inside the window and a page. */
static void grant(struct ring *r, uint32_t addr, uint32_t beats) {
  assert_in_range(beats, 1, 17);
  assert_in_range(addr, kIndex, kUnits - beats);
  assert_int_equal(addr / 256, (addr + beats - 1) / 256);
  r->burst[r->put % kRing] = (struct burst){.addr = addr, .beats = beats};
}

static void watch_wr(struct bench *b) {
  if (b->wr_data) memcpy(b->dram[b->wr_to], b->d->wr_data_o, 16);
  b->wr_data = *b->d->wr_beat_i;
  if (b->wr_data) {
    struct burst *w = front(&b->wr);
    b->wr_to = w->addr + w->done;
    if (++w->done == w->beats) {
      ++b->wr.end;
      b->told += w->end_tag != 0;
    }
  }
  if (!*b->d->wr_valid_o || !*b->d->wr_ready_i) return;
  grant(&b->wr, *b->d->wr_addr_o, *b->d->wr_beats_o);
  struct burst *w = &b->wr.burst[b->wr.put++ % kRing];
  w->at = *b->d->wr_at_o;
  w->tag = *b->d->wr_tag_o;
  w->end_tag = *b->d->wr_end_tag_o;
}

static void watch_rd(struct bench *b) {
  struct burst *r = front(&b->rd);
  if (*b->d->rd_beat_i || *b->d->rd_fault_i) {
    b->rd_data = true;
    b->rd_from = r->addr + r->done;
    if (++r->done == r->beats) ++b->rd.end;
  } else if (r && (*b->d->flush_i || *b->d->halt_i)) {
    ++b->rd.end; /* dropped */
  }
  /* What is on offer stays until it is granted, or is taken back by an error. */
  const bool kept = b->rd_offer && !*b->d->flush_i && !*b->d->halt_i;
  if (kept) assert_true(*b->d->rd_valid_o && *b->d->rd_addr_o == b->rd_offer);
  b->rd_offer = *b->d->rd_valid_o && !*b->d->rd_ready_i ? *b->d->rd_addr_o : 0;
  if (!*b->d->rd_valid_o || !*b->d->rd_ready_i) return;
  grant(&b->rd, *b->d->rd_addr_o, *b->d->rd_beats_o);
  b->rd.burst[b->rd.put++ % kRing].tag = *b->d->rd_tag_o;
}

/* --- Requests --- */

static uint32_t index_of(const struct bench *b, int s) {
  (void)b;
  return kIndex + (uint32_t)s;
}

static void begin_store(struct bench *b, int s) {
  struct step *t = &b->step[s];
  t->state = kStoring;
  t->groups = t->asked = t->done = 0;
  t->again = ct_rng_percent(&b->rng, 30);
  for (unsigned e = 0; e < 4; ++e) {
    if (ct_rng_percent(&b->rng, 20) && (t->groups || e < 3)) continue;
    struct act_group *g = &t->group[t->groups];
    act_draw(&b->rng, g);
    memcpy(&b->spm[kSpmBase + s * kStepWords + t->groups * kActBlocks], g->x, sizeof(g->x));
    t->entry[t->groups++] = (uint8_t)e;
  }
  b->st_step = s;
}

static void drive_store(struct bench *b) {
  *b->d->st_valid_i = 0;
  for (int s = 0; s < kSlots && b->st_step < 0; ++s) {
    if (b->step[s].state == kNone && ct_rng_percent(&b->rng, 10)) begin_store(b, s);
  }
  if (b->st_step < 0) return;
  const struct step *t = &b->step[b->st_step];
  if (t->asked == t->groups) return;
  const struct act_group *g = &t->group[t->asked];
  *b->d->st_valid_i = 1;
  *b->d->st_spm_i = (uint32_t)b->st_step * kStepWords + t->asked * kActBlocks;
  *b->d->st_tiles_i = (uint8_t)(g->tiles - 1);
  *b->d->st_bound_i = g->bound;
  *b->d->st_index_i = index_of(b, b->st_step);
  *b->d->st_entry_i = t->entry[t->asked];
  *b->d->st_store_i = t->asked + 1 == t->groups;
  *b->d->st_sigs_i = 1;
}

static void drive_load(struct bench *b) {
  *b->d->ld_valid_i = 0;
  *b->d->ld_done_ready_i = ct_rng_percent(&b->rng, 70);
  for (int s = 0; s < kSlots && b->ld_step < 0; ++s) {
    if (b->step[s].state != kStored || !ct_rng_percent(&b->rng, 5)) continue;
    b->ld_step = s;
    b->step[s].state = kLoading;
    b->step[s].asked = b->step[s].done = 0;
  }
  if (b->ld_step < 0) return;
  const struct step *t = &b->step[b->ld_step];
  *b->d->ld_valid_i = t->asked < t->groups;
  if (t->asked == t->groups) return;
  *b->d->ld_spm_i = kBack + (uint32_t)b->ld_step * kStepWords + t->asked * kActBlocks;
  *b->d->ld_tiles_i = (uint8_t)(t->group[t->asked].tiles - 1);
  *b->d->ld_index_i = index_of(b, b->ld_step);
  *b->d->ld_entry_i = t->entry[t->asked];
  *b->d->ld_read_i = t->asked == 0;
  *b->d->ld_free_i = !t->again;
  *b->d->ld_sigs_i = (uint16_t)(1 + t->asked);
}

/* A step whose index unit is written: its groups are those of the model, and each in a place of its
 * own. */
static void check_stored(struct bench *b, int s) {
  const struct step *t = &b->step[s];
  uint32_t entry[4], want = 0;
  memcpy(entry, b->dram[index_of(b, s)], 16);
  for (unsigned e = 0; e < 4; ++e) {
    if (want == t->groups || t->entry[want] != e) {
      assert_int_equal(entry[e], 0);
      continue;
    }
    const struct act_group *g = &t->group[want++];
    assert_int_equal(ct_act_entry_units(entry[e]), g->units);
    const uint32_t place = ct_act_entry_place(entry[e]);
    assert_in_range(place + g->units, 1, kPages * 256);
    ct_assert_same("group", b->dram[kArena + place], g->bytes, g->units * CT_ACT_UNIT);
  }
}

static void check_loaded(struct bench *b, int s, unsigned n) {
  const struct act_group *g = &b->step[s].group[n];
  const struct ct_act_block *got = &b->spm[kSpmBase + kBack + s * kStepWords + (int)n * kActBlocks];
  ct_assert_same("words", got, g->y, g->tiles * CT_ACT_BLOCKS * sizeof(*got));
}

static void watch_requests(struct bench *b) {
  if (*b->d->st_valid_i && *b->d->st_ready_o) ++b->step[b->st_step].asked;
  if (*b->d->ld_valid_i && *b->d->ld_ready_o) ++b->step[b->ld_step].asked;
  if (!*b->d->ld_done_o || !*b->d->ld_done_ready_i) return;
  struct step *t = &b->step[b->ld_step];
  assert_int_equal(*b->d->ld_sigs_o, 1 + t->done);
  check_loaded(b, b->ld_step, t->done);
  if (++t->done < t->groups) return;
  t->state = t->again ? kStored : kNone;
  t->again = false;
  b->ld_step = -1;
  ++b->finished;
}

/* Without pauses: first all are stored, then all are loaded. */
static void drive_rate(struct bench *b) {
  const bool store = b->st_in < 4 * kSlots;
  const unsigned n = store ? b->st_in : b->ld_in;
  const unsigned s = n / 4 % kSlots, g = n % 4;
  *b->d->st_valid_i = store;
  *b->d->ld_valid_i =
      b->told == kSlots && b->ld_in < 4 * kSlots && !ct_rng_percent(&b->rng, b->gaps);
  *b->d->ld_done_ready_i = 1;
  *b->d->st_spm_i = s * kStepWords + g * kActBlocks;
  *b->d->ld_spm_i = kBack + s * kStepWords + g * kActBlocks;
  *b->d->st_tiles_i = *b->d->ld_tiles_i = CT_ACT_TILES - 1;
  *b->d->st_bound_i = 120;
  *b->d->st_index_i = *b->d->ld_index_i = index_of(b, (int)s);
  *b->d->st_entry_i = *b->d->ld_entry_i = (uint8_t)g;
  *b->d->st_store_i = g == 3;
  *b->d->st_sigs_i = 1;
  *b->d->ld_read_i = g == 0;
  *b->d->ld_free_i = 1;
}

static void watch_rate(struct bench *b) {
  b->st_in += *b->d->st_valid_i && *b->d->st_ready_o;
  b->ld_in += *b->d->ld_valid_i && *b->d->ld_ready_o;
  b->finished += *b->d->ld_done_o;
}

static void watch_error(struct bench *b) {
  b->err_stores = *b->d->st_err_o;
  b->err = b->err_stores || *b->d->ld_err_o;
  b->err_kind = (enum kind)(b->err_stores ? *b->d->st_err_kind_o : *b->d->ld_err_kind_o);
  b->err_addr = b->err_stores ? *b->d->st_err_addr_o : *b->d->ld_err_addr_o;
}

static void cycle(struct bench *b, bool more) {
  drive_spm(b);
  drive_wr(b);
  drive_rd(b);
  if (b->rate) {
    drive_rate(b);
  } else {
    drive_store(b);
    drive_load(b);
  }
  if (!more) *b->d->st_valid_i = *b->d->ld_valid_i = 0;
  ct_act_moves_eval(b->d);
  watch_error(b);
  watch_spm(b);
  watch_wr(b);
  watch_rd(b);
  if (b->rate)
    watch_rate(b);
  else
    watch_requests(b);
  if (more && !b->rate && b->told > 0 && !b->wr_data) {
    check_stored(b, b->st_step);
    b->step[b->st_step].state = kStored;
    b->st_step = -1;
    --b->told;
  }
  ct_act_moves_tick(b->d);
}

static void reset_pages(struct bench *b) {
  *b->d->pages_reset_i = 1;
  cycle(b, false);
  *b->d->pages_reset_i = 0;
}

static struct bench *open_bench(uint64_t stream) {
  static struct bench b; /* (too large for the stack) */
  memset(&b, 0, sizeof(b));
  b.d = ct_act_moves_new(ct_tb_trace());
  b.rng = ct_rng_make(stream);
  b.st_step = b.ld_step = -1;
  b.bad_word = b.bad_burst = ~0u;
  ct_stall *const stall[] = {&b.spm_read, &b.spm_write, &b.offers,
                             &b.beats,    &b.grants,    &b.arrivals};
  for (unsigned i = 0; i < 6; ++i) {
    *stall[i] = ct_stall_make(stream + 10 + i, ct_rng_percent(&b.rng, 30) ? 0 : 30, 4);
  }
  *b.d->flush_i = *b.d->halt_i = *b.d->abandon_i = *b.d->pages_reset_i = 0;
  *b.d->arena_i = kArena;
  *b.d->pages_i = kPages;
  *b.d->rd_base_i = *b.d->wr_base_i = kIndex;
  *b.d->rd_limit_i = *b.d->wr_limit_i = kUnits;
  *b.d->spm_base_i = kSpmBase;
  *b.d->spm_size_i = kSpmSize;
  *b.d->st_valid_i = *b.d->ld_valid_i = *b.d->wr_beat_i = *b.d->rd_beat_i = *b.d->rd_fault_i = 0;
  *b.d->spm_rd_perr_i = *b.d->wr_within_i = 0;
  ct_act_moves_reset(b.d, 2);
  return &b;
}

static void there_and_back(void **state) {
  (void)state;
  for (unsigned n = 0; n < 6; ++n) {
    struct bench *b = open_bench(20 * n);
    CT_TB_WHILE (b->finished < kStepsDone / 6, 400000) {
      cycle(b, true);
      assert_false(b->err);
    }
    print_message("%u steps, at most %u pages\n", b->finished, *b->d->most_o);
    ct_act_moves_free(b->d);
  }
}

static void draw_words(struct bench *b) {
  for (unsigned w = 0; w < kSlots * kStepWords; ++w) {
    struct ct_act_block *x = &b->spm[kSpmBase + w];
    x->e = (uint8_t)(118 + ct_rng_below(&b->rng, 4));
    for (unsigned i = 0; i < 16; ++i)
      x->q[i] = (int8_t)(ct_rng_u64(&b->rng) & 31);
  }
}

/* A tile in 17 cycles, as many as its record has beats: stored, and loaded. */
static void line_rate(void **state) {
  (void)state;
  enum { kTiles = kSlots * 16, kLatency = 120 };
  struct bench *b = open_bench(900);
  ct_stall *const stall[] = {&b->spm_read, &b->spm_write, &b->offers,
                             &b->beats,    &b->grants,    &b->arrivals};
  for (unsigned i = 0; i < 6; ++i)
    *stall[i] = ct_stall_make(0, 0, 1);
  draw_words(b);
  b->rate = true;
  unsigned store = 0, load = 0;
  for (; b->told < kSlots && store < 100000; ++store)
    cycle(b, true);
  for (; b->finished < 4 * kSlots && load < 100000; ++load)
    cycle(b, true);
  print_message("%u tiles: stored in %u cycles, loaded in %u\n", kTiles, store, load);
  assert_in_range(store, 17 * kTiles, 17 * kTiles + kLatency);
  assert_in_range(load, 17 * kTiles, 17 * kTiles + kLatency);
  for (unsigned w = 0; w < kSlots * kStepWords; ++w) {
    struct ct_act_block x = b->spm[kSpmBase + w];
    ct_act_round(&x, 120);
    ct_assert_same("word", &b->spm[kSpmBase + kBack + w], &x, sizeof(x));
  }
  ct_act_moves_free(b->d);
}

/* --- Errors --- */

enum fault {
  kStoreOutside, /* words outside the SPM window */
  kParity,       /* a word with wrong parity */
  kStoreFar,     /* a group, or an index unit, outside the window of writes */
  kNoRoom,       /* no page is left */
  kLoadOutside,  /* words that would be written outside the SPM window */
  kMemory,       /* the memory answers with an error */
  kLoadFar,      /* a group outside the window of reads */
  kBadEntry,     /* an entry that can be none */
  kBadGroup,     /* a bit of a group is turned over */
  kFaults
};

static const enum kind kKindOf[kFaults] = {
    kKindSpm,        kKindParityOrMemory, kKindDram, kKindRoomOrGroup,
    kKindSpm,        kKindParityOrMemory, kKindDram, kKindRoomOrGroup,
    kKindRoomOrGroup};

/* Any group in memory that was stored and not begun to be loaded: its step, or -1. */
static int stored_step(const struct bench *b) {
  for (int s = 0; s < kSlots; ++s) {
    if (b->step[s].state == kStored) return s;
  }
  return -1;
}

static void spoil_entry(struct bench *b, int s) {
  static const uint32_t wrong[] = {0, 71, 127, 250u << 7 | 7, (kPages * 256u) << 7 | 1, ~0u};
  const uint32_t w = wrong[ct_rng_below(&b->rng, 6)];
  memcpy(&b->dram[index_of(b, s)][4 * b->step[s].entry[0]], &w, sizeof(w));
}

static void turn_bit(struct bench *b, uint32_t entry, uint32_t bit) {
  b->dram[kArena + ct_act_entry_place(entry) + bit / 128][bit % 128 / 8] ^= (uint8_t)(1 << bit % 8);
}

static void spoil_group(struct bench *b, int s) {
  uint32_t entry;
  memcpy(&entry, &b->dram[index_of(b, s)][4 * b->step[s].entry[0]], sizeof(entry));
  turn_bit(b, entry, ct_rng_below(&b->rng, 128 * ct_act_entry_units(entry)));
}

/* Everything is forgotten; what W has is finished, what was asked for comes and is dropped. */
static void flush(struct bench *b) {
  *b->d->halt_i = 1;
  *b->d->flush_i = ct_rng_percent(&b->rng, 50);
  cycle(b, false);
  *b->d->flush_i = 1;
  *b->d->halt_i = 0;
  cycle(b, false);
  CT_TB_WHILE (
      !*b->d->st_idle_o || !*b->d->ld_idle_o || front(&b->wr) || front(&b->rd) || b->wr_data,
      2000) {
    cycle(b, false);
    assert_false(*b->d->spm_wr_valid_o || *b->d->wr_valid_o || *b->d->rd_valid_o);
  }
  *b->d->flush_i = 0;
  memset(b->step, 0, sizeof(b->step));
  b->st_step = b->ld_step = -1;
  b->told = 0;
  b->rd_data = false;
  b->bad_word = b->bad_burst = ~0u;
  *b->d->spm_size_i = kSpmSize;
  *b->d->rd_limit_i = *b->d->wr_limit_i = kUnits;
  *b->d->wr_base_i = kIndex;
  *b->d->pages_i = kPages;
  reset_pages(b);
}

static void inject(struct bench *b, enum fault f) {
  const int s = stored_step(b);
  switch (f) {
    case kStoreOutside:
      *b->d->spm_size_i = 0;
      break;
    case kParity:
      b->bad_word = b->st_step >= 0 ? kSpmBase + (uint32_t)b->st_step * kStepWords : kSpmBase;
      break;
    case kStoreFar:
      *b->d->wr_limit_i = kIndex + 1 + ct_rng_below(&b->rng, kArena - kIndex);
      *b->d->wr_base_i = ct_rng_percent(&b->rng, 50) ? kIndex : *b->d->wr_limit_i;
      break;
    case kNoRoom:
      flush(b);
      *b->d->pages_i = 0;
      break;
    case kLoadOutside:
      *b->d->spm_size_i = kBack;
      break;
    case kMemory:
      b->bad_burst = index_of(b, s);
      break;
    case kLoadFar:
      *b->d->rd_limit_i = kArena;
      break;
    case kBadEntry:
      spoil_entry(b, s);
      break;
    default:
      spoil_group(b, s);
  }
}

/* The address that belongs to an error: of the step that is being stored or loaded. */
static void check_address(const struct bench *b, enum fault f, uint32_t addr) {
  const uint32_t st_words = (uint32_t)b->st_step * kStepWords;
  uint32_t entry;
  switch (f) {
    case kStoreOutside:
      assert_in_range(addr, st_words, st_words + kStepWords - 1);
      break;
    case kParity:
      assert_int_equal(addr, b->bad_word);
      break;
    case kStoreFar:
      if (addr < kArena)
        assert_int_equal(addr, index_of(b, b->st_step));
      else
        assert_in_range(addr, kArena, kArena + kPages * CT_ACT_PAGE_UNITS - 1);
      break;
    case kNoRoom:
      assert_int_equal(addr, index_of(b, b->st_step));
      break;
    case kLoadOutside:
      assert_int_equal(addr, kBack + b->ld_step * kStepWords);
      break;
    case kMemory:
      assert_int_equal(addr, b->bad_burst);
      break;
    case kLoadFar:
      memcpy(&entry, &b->dram[index_of(b, b->ld_step)][4 * b->step[b->ld_step].entry[0]], 4);
      assert_int_equal(addr, kArena + ct_act_entry_place(entry));
      break;
    default:
      assert_int_equal(addr, index_of(b, b->ld_step));
  }
}

static void errors(void **state) {
  (void)state;
  struct bench *b = open_bench(500);
  unsigned seen[kFaults] = {0};
  for (int n = ct_tb_draws(600); n > 0; --n) {
    const enum fault f = (enum fault)ct_rng_below(&b->rng, kFaults);
    /* A store that is to fail is the only one that runs, so that its error is the first. */
    for (unsigned i = 300 + ct_rng_below(&b->rng, 600); i > 0; --i)
      cycle(b, true);
    CT_TB_WHILE (f > kNoRoom && (stored_step(b) < 0 || b->ld_step >= 0), 100000)
      cycle(b, true);
    inject(b, f);
    CT_TB_WHILE (!b->err, 100000)
      cycle(b, true);
    if (b->err_stores == (f <= kNoRoom)) {
      assert_int_equal(b->err_kind, kKindOf[f]);
      check_address(b, f, b->err_addr);
      ++seen[f];
    }
    flush(b);
    const unsigned goal = b->finished + 1;
    CT_TB_WHILE (b->finished < goal, 100000) {
      cycle(b, true);
      assert_false(b->err);
    }
  }
  for (unsigned f = 0; f < kFaults; ++f)
    assert_true(seen[f] > 5);
  ct_act_moves_free(b->d);
}

/* Units follow each other. A damaged group is an error of its own unit, and all groups in front of
 * it come back, also if its very first bits are wrong. */
static void damaged_behind(void **state) {
  (void)state;
  for (unsigned n = 0; n < 60; ++n) {
    struct bench *b = open_bench(1000 + 20 * n);
    draw_words(b);
    b->rate = true;
    b->gaps = n % 2 ? 90 : 0;
    b->spm_write = ct_stall_make(n, n % 3 ? 60 : 0, 8);
    CT_TB_WHILE (b->told < kSlots || b->wr_data, 400000)
      cycle(b, true);
    const unsigned s = ct_rng_below(&b->rng, kSlots);
    const unsigned g = ct_rng_percent(&b->rng, 60) ? 0 : ct_rng_below(&b->rng, 4);
    uint32_t entry[4];
    memcpy(entry, b->dram[index_of(b, (int)s)], sizeof(entry));
    const uint32_t bits = ct_rng_percent(&b->rng, 60) ? 10 : 128 * ct_act_entry_units(entry[g]);
    turn_bit(b, entry[g], bits == 10 ? 9 : ct_rng_below(&b->rng, bits));
    CT_TB_WHILE (!b->err, 400000)
      cycle(b, true);
    assert_int_equal(b->err_kind, kKindRoomOrGroup);
    assert_int_equal(b->err_addr, index_of(b, (int)s));
    assert_int_equal(b->finished, 4 * s + g);
    ct_act_moves_free(b->d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(there_and_back),
      cmocka_unit_test(errors),
      cmocka_unit_test(damaged_behind),
      cmocka_unit_test(line_rate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
