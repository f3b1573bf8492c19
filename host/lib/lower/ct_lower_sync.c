/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Full: what a command needs to be complete, in program order, and the tokens that tell it. Every
 * queue has a vector of how far it knows the others to be; a token brings what its giver knew.
 *
 * A loop's body is looked at once. What a queue learns in it holds for the same pass, and behind
 * the loop for the last one, for each pass gives and takes the same tokens.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_lower_impl.h"

static void visit(struct ct_sync *s, int32_t at);

static void add_use(struct ct_sync *s, int32_t item, unsigned access) {
  if (s->uses == s->use_room) {
    const size_t room = s->use_room ? 2 * s->use_room : 2048;
    struct ct_use *use = realloc(s->use, room * sizeof *use);
    if (!use) {
      ct_lower_fail(s->l, CT_ERR_MEMORY, "out of memory");
      return;
    }
    s->use = use;
    s->use_room = room;
  }
  const uint32_t space = s->item[item].access[access].space;
  s->use[s->uses] =
      (struct ct_use){.item = item, .access = (uint8_t)access, .next = s->used[space]};
  s->used[space] = (int32_t)s->uses++;
}

/* ---- Needs --------------------------------------------------------------------------------- */

void ct_no_needs(struct ct_need *need) {
  for (unsigned q = 0; q < CT_Q_COUNT; ++q)
    need[q] = (struct ct_need){CT_NOBODY, 0};
}

static void want(const struct ct_sync *s, struct ct_need *need, int32_t item, uint32_t tokens) {
  const ct_point point = ct_point_of(s->item[item].seq, tokens);
  struct ct_need *n = &need[s->item[item].q];
  if (n->item >= 0 && n->point >= point) return;
  n->item = item;
  n->point = point;
}

/* Tokens of a command after which it is through with a generation, or a part of one, that `a` uses:
 * all of it, unless it gives one for each. */
static uint32_t tokens_for(const struct ct_item *i, const struct ct_access *before,
                           const struct ct_access *a) {
  if (i->mult <= 1) return CT_ALL_OF_IT;
  if (i->by_step && i->q == CT_Q_LD)
    return a->one_part && a->part - before->part < i->mult ? a->part - before->part + 1
                                                           : CT_ALL_OF_IT;
  const uint32_t last = a->gen + a->gens - before->gen;
  if (before->gens != i->mult || !before->write || last > i->mult) return CT_ALL_OF_IT;
  return last;
}

/* The same for a tensor: of a load by steps that follow each other in one direction of its pieces,
 * those up to the last that the other command touches. */
static uint32_t steps_for(const struct ct_sync *s, const struct ct_item *i,
                          const struct ct_access *before, int32_t at, const struct ct_access *a) {
  if (!i->by_step || i->mult <= 1 || i->parent != s->item[at].parent) return CT_ALL_OF_IT;
  for (unsigned d = 0; d < 2; ++d) {
    if (before->hi[d] - before->lo[d] != (int32_t)i->mult || before->hi[!d] - before->lo[!d] != 1 ||
        memcmp(before->stride, a->stride, sizeof a->stride) != 0)
      continue;
    const int32_t last = a->hi[d] - before->lo[d];
    return last < (int32_t)i->mult ? (uint32_t)last : i->mult;
  }
  return CT_ALL_OF_IT;
}

/* Parts of a slot that an access touches; false: all of it. */
static bool parts_of(const struct ct_item *i, const struct ct_access *a, uint32_t *n) {
  *n = i->by_step && i->q == CT_Q_LD ? i->mult : 1;
  return a->one_part;
}

static bool parts_meet(const struct ct_item *i, const struct ct_access *a, const struct ct_item *j,
                       const struct ct_access *b) {
  uint32_t m, n;
  if (!parts_of(i, a, &m) || !parts_of(j, b, &n)) return true;
  return a->part < b->part + n && b->part < a->part + m;
}

void ct_needs_of(struct ct_sync *s, int32_t at, const struct ct_access *a, struct ct_need *need) {
  const enum ct_q q = s->item[at].q;
  const bool ring = s->l->space[a->space].slots != 0;
  for (int32_t u = s->used[a->space]; u >= 0; u = s->use[u].next) {
    const struct ct_item *i = &s->item[s->use[u].item];
    const struct ct_access *b = &i->access[s->use[u].access];
    ++s->l->work;
    if (i->q == q || !(a->write || b->write) ||
        ct_point_of(i->seq, CT_ALL_OF_IT) <= s->known[q][i->q])
      continue;
    if (!ring && ct_pieces_meet(s, &s->use[u], at, a))
      want(s, need, s->use[u].item, steps_for(s, i, b, at, a));
    if (ring && a->gen < b->gen + b->gens && b->gen < a->gen + a->gens &&
        parts_meet(&s->item[at], a, i, b))
      want(s, need, s->use[u].item, tokens_for(i, b, a));
  }
  for (uint32_t z = 1; z < s->l->spaces; ++z)
    for (int32_t u = s->overlap[a->space][z] ? s->used[z] : CT_NOBODY; u >= 0; u = s->use[u].next)
      if (s->item[s->use[u].item].q != q) want(s, need, s->use[u].item, CT_ALL_OF_IT);
}

/* ---- Taking a token ------------------------------------------------------------------------ */

void ct_learn(struct ct_sync *s, enum ct_q q, int32_t giver, uint32_t tokens) {
  const struct ct_item *g = &s->item[giver];
  const bool all = tokens >= g->mult;
  const ct_point point = ct_point_of(g->seq, all ? CT_ALL_OF_IT : tokens);
  const ct_point *knows = all ? g->knows : g->before;
  for (unsigned p = 0; p < CT_Q_COUNT; ++p)
    if (knows[p] > s->known[q][p]) s->known[q][p] = knows[p];
  if (point > s->known[q][g->q]) s->known[q][g->q] = point;
  if (!ct_faulty(s, CT_FAULT_KNOWS)) return;
  for (unsigned p = 0; p < CT_Q_COUNT; ++p)
    if (s->latest[p] >= 0) s->known[q][p] = ct_point_of(s->item[s->latest[p]].seq, CT_ALL_OF_IT);
}

/* A carrier that stands further in front: what its queue has learned since does not count there. */
static void visit_early(struct ct_sync *s, int32_t carrier) {
  const enum ct_q q = s->item[carrier].q;
  ct_point now[CT_Q_COUNT];
  memcpy(now, s->known[q], sizeof now);
  memcpy(s->known[q], s->item[carrier].knows, sizeof now);
  visit(s, carrier);
  for (unsigned p = 0; p < CT_Q_COUNT; ++p)
    if (now[p] > s->known[q][p]) s->known[q][p] = now[p];
}

/* Commands of queue q without effect take tokens: in front of `at`, or at the end of a loop's body.
 * One that has to wait for the same queue itself, to be carried out, takes none. */
static void gate_at(struct ct_sync *s, int32_t at, bool end, unsigned channel, uint32_t tokens) {
  const enum ct_q q = (enum ct_q)(channel % CT_Q_COUNT);
  const uint32_t each = q == CT_Q_MM ? tokens : 1;
  for (uint32_t t = 0; t < tokens && !s->l->error;) {
    const int32_t carrier =
        end ? ct_carrier_last(s, at, q, each) : ct_carrier_before(s, at, q, each);
    if (carrier < 0) return;
    visit_early(s, carrier);
    if (ct_add_wait(s, carrier, channel, each, CT_AT_START)) t += each;
  }
}

static void gate(struct ct_sync *s, int32_t at, unsigned channel, uint32_t tokens) {
  gate_at(s, at, false, channel, tokens);
}

/* Takes what a command that gives several tokens has left, in front of `at`. */
void ct_close_giver(struct ct_sync *s, unsigned channel, int32_t at) {
  const int32_t giver = s->open[channel];
  if (giver < 0) return;
  const enum ct_q q = (enum ct_q)(channel % CT_Q_COUNT);
  const uint32_t left = s->item[giver].mult - s->item[giver].taken;
  const int32_t before = ct_lift(s, at, s->item[giver].parent);
  s->open[channel] = CT_NOBODY;
  if (before < 0) {
    ct_lower_fail(s->l, CT_ERR_INTERNAL, "signals of a loop that nobody waits for in it");
    return;
  }
  gate(s, before, channel, left);
  s->item[giver].taken = s->item[giver].mult;
  ct_learn(s, q, giver, s->item[giver].mult);
}

static void close_all(struct ct_sync *s, int32_t at) {
  for (unsigned c = 0; c < CT_FULL_CHANNELS; ++c)
    ct_close_giver(s, c, at);
}

/* At the end of a body. */
static void close_body(struct ct_sync *s, int32_t loop) {
  for (unsigned c = 0; c < CT_FULL_CHANNELS && !s->l->error; ++c) {
    const int32_t giver = s->open[c];
    if (giver < 0 || s->item[giver].parent != loop) continue;
    const enum ct_q q = (enum ct_q)(c % CT_Q_COUNT);
    const uint32_t left = s->item[giver].mult - s->item[giver].taken;
    s->open[c] = CT_NOBODY;
    gate_at(s, loop, true, c, left);
    ct_learn(s, q, giver, s->item[giver].mult);
  }
}

/* Step by step: a giver of several tokens and a taker in the same body. False: not so. */
static bool take_several(struct ct_sync *s, int32_t at, const struct ct_need *n, unsigned channel) {
  struct ct_item *g = &s->item[n->item];
  const uint32_t tokens = (uint32_t)(n->point & CT_ALL_OF_IT);
  const enum ct_q q = s->item[at].q;
  if (g->mult <= 1 || tokens == CT_ALL_OF_IT || g->parent != s->item[at].parent) return false;
  if (!g->opened) {
    ct_close_giver(s, channel, at);
    if (!ct_add_signal(s, n->item, channel, g->mult)) return false;
    s->item[n->item].opened = channel + 1;
    s->open[channel] = n->item;
  } else if (s->open[channel] != n->item) {
    return false;
  }
  g = &s->item[n->item];
  /* What MM takes here are its operands, which it reads before its tiles have waited. */
  const uint32_t take = tokens - g->taken, mult = q == CT_Q_MM ? 1 : s->item[at].mult;
  if (mult > 1 && take == mult && ct_add_wait(s, at, channel, mult, CT_BY_TILE)) {
    /* tile by tile */
  } else if (mult == 1 && ct_add_wait(s, at, channel, 1, CT_AT_START)) {
    gate(s, at, channel, take - 1);
  } else {
    gate(s, at, channel, take);
  }
  s->item[n->item].taken = tokens;
  if (tokens == s->item[n->item].mult) s->open[channel] = CT_NOBODY;
  ct_learn(s, q, n->item, tokens);
  return true;
}

/* Who tells that a command is complete: itself, or a carrier behind it (and the loops around it
 * that `parent` is not in). */
static int32_t find_giver(struct ct_sync *s, int32_t item, int32_t parent, unsigned channel) {
  const enum ct_q q = s->item[item].q;
  const int32_t lifted = ct_lift(s, item, parent);
  if (lifted == item && ct_add_signal(s, item, channel, 1)) return item;
  const int32_t next = s->item[lifted].next;
  if (next >= 0 && s->item[next].carrier && s->item[next].q == q &&
      ct_add_signal(s, next, channel, 1))
    return next;
  const int32_t carrier = ct_carrier_behind(s, lifted, q);
  if (carrier < 0) return CT_NOBODY;
  const int32_t last = s->item[lifted].last_in[q];
  struct ct_item *c = &s->item[carrier];
  memcpy(c->before, s->item[last].knows, sizeof c->before);
  memcpy(c->knows, s->item[last].knows, sizeof c->knows);
  for (unsigned x = 0; x < c->accesses; ++x)
    add_use(s, carrier, x);
  ct_add_signal(s, carrier, channel, 1);
  return carrier;
}

static void take_one(struct ct_sync *s, int32_t at, const struct ct_need *n, unsigned channel) {
  const enum ct_q q = s->item[at].q;
  const int32_t parent = ct_common_parent(s, n->item, at);
  const int32_t lifted = ct_lift(s, at, parent);
  ct_close_giver(s, channel, at);
  if (n->point <= s->known[q][s->item[n->item].q]) return;
  if ((parent != s->item[n->item].parent || lifted != at) && ct_faulty(s, CT_FAULT_NO_BARRIER)) {
    ct_learn(s, q, n->item, CT_ALL_OF_IT);
    return;
  }
  const int32_t giver = find_giver(s, n->item, parent, channel);
  if (giver < 0) return;
  if (lifted != at || !ct_add_wait(s, at, channel, 1, CT_AT_START)) gate(s, lifted, channel, 1);
  ct_learn(s, q, giver, CT_ALL_OF_IT);
}

/* ---- All ----------------------------------------------------------------------------------- */

static void order(struct ct_sync *s, int32_t at, const struct ct_need *n) {
  const enum ct_q q = s->item[at].q, from = s->item[n->item].q;
  const unsigned channel = ct_full_channel(from, q);
  if (n->point <= s->known[q][from]) return;
  if (ct_faulty(s, CT_FAULT_NO_FULL_WAIT)) {
    ct_learn(s, q, n->item, CT_ALL_OF_IT);
    return;
  }
  if (ct_follow_steps(s, at, from) || ct_follow_parts(s, at, n->item)) return;
  if (!take_several(s, at, n, channel)) take_one(s, at, n, channel);
}

/* The latest command first: it is likely to have known the others. */
static struct ct_need *latest_of(struct ct_need *need) {
  struct ct_need *latest = need;
  for (unsigned p = 1; p < CT_Q_COUNT; ++p)
    if (need[p].point > latest->point) latest = &need[p];
  return latest;
}

static void visit(struct ct_sync *s, int32_t at) {
  const enum ct_q q = s->item[at].q;
  struct ct_need need[CT_Q_COUNT];
  ct_no_needs(need);
  int32_t late[CT_Q_COUNT]; /* of a command that is visited, while a carrier in front of it is */
  memcpy(late, s->late, sizeof late);
  for (unsigned p = 0; p < CT_Q_COUNT; ++p)
    s->late[p] = CT_NOBODY;
  memcpy(s->item[at].before, s->known[q], sizeof s->item[at].before);
  for (unsigned x = 0; x < s->item[at].accesses; ++x) {
    const struct ct_access a = s->item[at].access[x];
    ct_needs_of(s, at, &a, need);
  }
  for (unsigned done = 0; done < CT_Q_COUNT && !s->l->error; ++done) {
    struct ct_need *n = latest_of(need);
    if (n->item >= 0) order(s, at, n);
    *n = (struct ct_need){CT_NOBODY, 0};
  }
  for (unsigned p = 0; p < CT_Q_COUNT; ++p)
    if (s->late[p] >= 0) ct_learn(s, q, s->late[p], CT_ALL_OF_IT);
  memcpy(s->late, late, sizeof late);
  memcpy(s->item[at].knows, s->known[q], sizeof s->item[at].knows);
  s->item[at].last_in[q] = at;
  s->latest[q] = at;
  for (unsigned x = 0; x < s->item[at].accesses; ++x)
    add_use(s, at, x);
}

static void leave(struct ct_sync *s, int32_t loop) {
  close_body(s, loop);
  for (unsigned q = 0; q < CT_Q_COUNT; ++q)
    for (int32_t i = s->item[loop].last_child; i >= 0 && s->item[loop].last_in[q] < 0;
         i = s->item[i].prev)
      s->item[loop].last_in[q] = s->item[i].last_in[q];
  ct_check_passes(s, loop);
}

static void walk(struct ct_sync *s, int32_t first) {
  for (int32_t i = first; i >= 0 && !s->l->error; i = s->item[i].next) {
    if (s->item[i].q != CT_Q_COUNT) {
      if (!s->item[i].carrier) visit(s, i);
      continue;
    }
    close_all(s, i);
    walk(s, s->item[i].child);
    if (!s->l->error) leave(s, i);
  }
}

void ct_sync_full(struct ct_sync *s) {
  for (unsigned c = 0; c < CT_FULL_CHANNELS; ++c)
    s->open[c] = CT_NOBODY;
  for (unsigned q = 0; q < CT_Q_COUNT; ++q)
    s->latest[q] = CT_NOBODY;
  for (uint32_t i = 0; i < CT_MOST_SPACES; ++i)
    s->used[i] = CT_NOBODY;
  walk(s, s->first);
}
