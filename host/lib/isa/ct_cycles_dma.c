/* SPDX-License-Identifier: Apache-2.0 */
/* The model of time: LD and ST (rtl/dma), but for commands with Comp (ct_cycles_comp.c). */
#include "ct_cycles_impl.h"

/* ---- The bus ---- */

/* Beats from `ready` on; returns the cycle of the last one. */
static uint64_t bus_move(struct cyc_bus *b, uint64_t ready, uint32_t beats) {
  b->free = cyc_max(b->free, ready << 8) + beats * b->cost;
  return (b->free - b->cost) >> 8;
}

/* From a burst's last beat on the bus: its place is free again, its signal can be taken, a command
 * with Comp may begin. */
enum { READ_ROOM = 4, READ_SIGNAL = 5, READ_QUIET = 6 };

static struct cyc_burst *recent(struct cyc_reads *r, uint64_t number) {
  return &r->recent[number % CYC_RECENT];
}

/* When a burst that is on offer from `ask` on is granted. */
static uint64_t grant_of(const struct cyc *c, const struct cyc_reads *r, uint64_t ask) {
  uint64_t grant = ask;
  if (r->bursts) grant = cyc_max(grant, r->grant + 2);
  if (r->bursts >= c->most_reads)
    grant = cyc_max(grant, r->recent[(r->bursts - c->most_reads) % CYC_RECENT].last + READ_ROOM);
  return grant;
}

/* Returns its last beat on the bus. */
static uint64_t read_burst(const struct cyc *c, struct cyc_reads *r, uint64_t ask, uint32_t beats) {
  r->grant = grant_of(c, r, ask);
  const uint64_t last = bus_move(&r->bus, r->grant + 1 + c->latency, beats);
  *recent(r, r->bursts++) = (struct cyc_burst){r->grant, last, beats};
  return last;
}

/* ---- Descriptor and program ---- */

/* From the job's start, or the END before, to its descriptor's burst on offer; from the second beat
 * of that on the bus to the program's. */
enum { START_ASK = 3, DESC_PROGRAM = 10, DESC_BEATS = CT_DESC_BYTES / 16 };

struct cyc_fetch cyc_fetch_from(uint64_t from, size_t commands) {
  return (struct cyc_fetch){.beats = 2 * (uint32_t)commands, .desc = true, .ask = from + START_ASK};
}

uint32_t cyc_fetch_burst(const struct cyc *c, struct cyc_reads *r, struct cyc_fetch *f) {
  const uint32_t beats = f->desc ? DESC_BEATS : f->beats < 16 ? f->beats : 16;
  f->last = read_burst(c, r, f->ask, beats);
  if (f->desc)
    f->ask = f->last - (((DESC_BEATS - 2) * r->bus.cost) >> 8) + DESC_PROGRAM;
  else
    f->ask += 2;
  if (!f->desc) f->beats -= beats;
  f->desc = false;
  return beats;
}

/* ---- LD ---- */

/* A burst of LD, behind all that the front end has on offer by then: it goes first (ct_dma_rd). */
uint64_t cyc_read(struct cyc *c, uint64_t ask, uint32_t beats) {
  struct cyc_reads *r = &c->reads;
  struct cyc_fetch *f = &c->next;
  while (cyc_fetch_more(f) && grant_of(c, r, f->ask) <= grant_of(c, r, ask))
    cyc_fetch_burst(c, r, f);
  c->landed = read_burst(c, r, ask, beats);
  c->out->beats_read += beats;
  ++c->steps;
  return c->landed;
}

/* Those that it went before come again. */
uint64_t cyc_read_before(struct cyc *c, uint64_t ask) {
  struct cyc_reads *r = &c->reads;
  struct cyc_burst behind[CYC_RECENT];
  uint64_t count = 0;
  while (count + c->most_reads < cyc_min(r->bursts, CYC_RECENT) &&
         recent(r, r->bursts - 1)->grant > ask) {
    behind[count++] = *recent(r, --r->bursts);
    r->grant = recent(r, r->bursts - 1)->grant;
    r->bus.free = (recent(r, r->bursts - 1)->last << 8) + r->bus.cost;
  }
  const uint64_t last = cyc_read(c, ask, 1);
  while (count-- > 0)
    c->landed = read_burst(c, r, behind[count].grant, behind[count].beats);
  return last;
}

/* ---- Pieces of a command ---- */

static bool pieces_load(struct cyc *c, struct cyc_pieces *p, enum ct_cycles_unit u) {
  const struct ct_cmd *cmd = cyc_front(c, u);
  if (!cmd) return false;
  const uint64_t quiet = u == CYC_LD ? c->ld_walk.quiet : c->st_walk.quiet;
  const uint64_t at = cyc_max(cyc_max(cyc_here(c, u), p->go), quiet);
  p->cmd = *cmd;
  cyc_pop(c, u, at);
  p->active = p->begun = true;
  p->step_begun = true;
  p->length = CT_GET(cmd, DMA_NB) + CT_GET(cmd, DMA_HDR);
  p->left = p->length;
  p->i1 = CT_GET(cmd, DMA_N1) - 1;
  p->i2 = (CT_GET(cmd, DMA_GATHER) ? c->core->requests : CT_GET(cmd, DMA_N2)) - 1;
  p->addr = p->run = p->step = CT_GET(cmd, DMA_DRAM);
  /* The address of a batch's request is asked for first. */
  p->go = at + (CT_GET(cmd, DMA_GATHER) ? 5 : 1);
  return true;
}

/* Beats of the piece that is cut next. */
static uint32_t piece_beats(const struct cyc_pieces *p, bool split) {
  uint32_t most;
  if (!CT_GET(&p->cmd, DMA_HDR))
    most = p->addr % 256 > 240 ? 256 - p->addr % 256 : 16;
  else
    most = split && p->addr % 256 > 239 ? 256 - p->addr % 256 : 17;
  return p->left < most ? p->left : most;
}

/* Takes the waits of the piece that is cut next; false: they have not been signalled. */
static bool piece_waits(struct cyc *c, struct cyc_pieces *p) {
  const uint32_t wait[3] = {CT_GET(&p->cmd, ALL_WAIT0), CT_GET(&p->cmd, ALL_WAIT1),
                            CT_GET(&p->cmd, ALL_WAIT2)};
  if (p->begun) return cyc_wait(c, wait, 3, &p->go);
  return !p->step_begun || cyc_wait(c, wait, 1, &p->go);
}

static bool piece_room(const struct cyc *c, const struct cyc_pieces *p) {
  return cyc_room(c, CT_GET(&p->cmd, ALL_SIG0)) && cyc_room(c, CT_GET(&p->cmd, ALL_SIG1));
}

/* Goes on behind a piece; says what ended with it. */
static void piece_next(struct cyc_pieces *p, uint32_t beats, bool *step_end, bool *cmd_end) {
  const bool run_end = p->left == beats;
  *step_end = run_end && p->i1 == 0;
  *cmd_end = *step_end && p->i2 == 0;
  p->begun = false;
  p->step_begun = *step_end;
  p->left -= beats;
  p->addr += beats;
  if (!run_end) return;
  p->left = p->length;
  if (*step_end) {
    p->i1 = CT_GET(&p->cmd, DMA_N1) - 1;
    --p->i2;
    if (!CT_GET(&p->cmd, DMA_GATHER)) p->step += (uint32_t)CT_GETS(&p->cmd, DMA_D2);
    p->addr = p->run = p->step;
  } else {
    --p->i1;
    p->run += (uint32_t)CT_GETS(&p->cmd, DMA_D1);
    p->addr = p->run;
  }
}

/* A piece is cut in one cycle, moved out in the next or when the one before is taken. */
static uint64_t piece_offer(struct cyc_pieces *p) {
  const uint64_t move = cyc_max(p->go + 1, p->taken);
  p->go = move + 1;
  return move + 1;
}

static void piece_signals(struct cyc *c, const struct cyc_pieces *p, bool step_end, bool cmd_end,
                          uint64_t at) {
  const uint32_t sig0 = CT_GET(&p->cmd, ALL_SIG0), sig1 = CT_GET(&p->cmd, ALL_SIG1);
  if (step_end) cyc_signal(c, sig0, at);
  if (cmd_end) cyc_signal(c, sig1, at + (sig0 == sig1));
}

bool cyc_ld(struct cyc *c) {
  struct cyc_pieces *p = &c->ld;
  if (c->ld_walk.active || (!p->active && cyc_is_comp(cyc_front(c, CYC_LD))))
    return cyc_ld_groups(c);
  if (!p->active && !pieces_load(c, p, CYC_LD)) return false;
  if (!piece_room(c, p) || !piece_waits(c, p)) return false;
  const uint64_t cut = p->go;
  const uint32_t beats = piece_beats(p, true);
  bool step_end, cmd_end;
  piece_next(p, beats, &step_end, &cmd_end);
  const uint64_t last = cyc_read(c, piece_offer(p), beats);
  p->taken = c->reads.grant;
  c->ld_plain = last + READ_QUIET;
  piece_signals(c, p, step_end, cmd_end, last + READ_SIGNAL);
  if (cmd_end) {
    p->active = false;
    p->go = cut + 1;
  }
  return true;
}

/* ---- ST ---- */

/* From the last word asked of the scratchpad to its burst on offer; from a burst's grant to its
 * first beat on the bus; from an answer to its place; from the last grant to a command with Comp.
 */
enum { WORDS_OFFER = 4, WRITE_BEAT = 3, WRITE_ROOM = 3, WRITE_QUIET = 2 };

/* A write burst on offer from `ask` on; returns its answer. */
uint64_t cyc_write(struct cyc *c, uint64_t ask, uint32_t beats) {
  struct cyc_writes *w = &c->writes;
  uint64_t grant = ask;
  if (w->bursts) grant = cyc_max(grant, cyc_max(w->grant + 2, w->asked - 1));
  if (w->bursts >= CYC_WRITES)
    grant = cyc_max(grant, w->answers[w->bursts % CYC_WRITES] + WRITE_ROOM);
  const uint64_t first = cyc_max(grant + 1, w->bursts ? w->asked + 1 : 0);
  const uint64_t last = bus_move(&w->bus, first + WRITE_BEAT - 1, beats);
  /* Two beats are under way between the request of a beat and the bus. */
  const uint64_t paced = last - 2 * (w->bus.cost >> 8);
  w->grant = grant;
  w->asked = cyc_max(first + beats - 1, w->bus.cost > 256 ? paced : 0);
  w->answer = cyc_max(w->answer + 1, last + c->latency);
  w->answers[w->bursts++ % CYC_WRITES] = w->answer;
  w->beats += beats;
  ++c->steps;
  return w->answer;
}

/* The last of so many words is asked of the scratchpad, and one cycle more. A word of A that wants
 * the same bank goes first, as the port that was served less recently. Where a row takes `parts`
 * cycles and there are 8 / parts banks, both ports are as many banks on with the next word of A as
 * before, so ST loses a cycle with each. Where a row takes one, they meet once. */
static uint64_t words_read(const struct cyc *c, const struct cyc_pieces *p, uint64_t at,
                           uint32_t words) {
  if (c->parts == 1 || CT_GET(&p->cmd, DMA_S0) != 1) return at + words;
  for (uint32_t i = 0, met = 0; i < words; ++i, ++at)
    if (cyc_mm_paced(&c->mm, at) && ++met % (c->parts - 1) == 0) ++at;
  return at;
}

bool cyc_st(struct cyc *c) {
  struct cyc_pieces *p = &c->st;
  struct cyc_writes *w = &c->writes;
  if (c->st_walk.active || (!p->active && cyc_is_comp(cyc_front(c, CYC_ST))))
    return cyc_st_groups(c);
  if (!p->active && !pieces_load(c, p, CYC_ST)) return false;
  if (!piece_room(c, p) || !piece_waits(c, p)) return false;
  const uint64_t cut = p->go;
  const uint32_t addr = p->addr, beats = piece_beats(p, false),
                 words = beats - CT_GET(&p->cmd, DMA_HDR);
  bool step_end, cmd_end;
  piece_next(p, beats, &step_end, &cmd_end);
  uint64_t load = cyc_max(piece_offer(p), w->read);
  if (w->pieces >= CYC_SLOTS) load = cyc_max(load, w->slot[w->pieces % CYC_SLOTS] + 1);
  p->taken = load;
  w->read = words_read(c, p, load, words);
  /* A record that crosses a page leaves in two bursts. */
  const uint32_t room = 256 - addr % 256;
  uint64_t answer;
  if (beats > room) {
    cyc_write(c, w->read + WORDS_OFFER, room);
    answer = cyc_write(c, w->grant + 2, beats - room);
  } else {
    answer = cyc_write(c, cyc_max(w->read + WORDS_OFFER, w->grant + 2), beats);
  }
  w->slot[w->pieces++ % CYC_SLOTS] = w->asked;
  c->st_plain = w->grant + WRITE_QUIET;
  piece_signals(c, p, step_end, cmd_end, answer + CYC_WRITE_SIGNAL);
  if (cmd_end) {
    p->active = false;
    p->go = cut + 1;
  }
  return true;
}
