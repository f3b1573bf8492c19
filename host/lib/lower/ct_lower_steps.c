/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that follow others step by step: a product its loads, k step by k step, and a command of
 * several steps or tiles those that make one each. See ct_lower_sync.c for tokens that are taken
 * one by one.
 *
 * Rings bound how many of these tokens are outstanding. What is followed through a tensor is not
 * held back by anything, so only so many steps of a job are.
 */
#include "coltrain/coltrain.h"
#include "ct_lower_impl.h"

enum { MOST_AHEAD = 200 }; /* the rest is for commands that signal once */

static bool is_ring(const struct ct_sync *s, const struct ct_access *a) {
  return s->l->space[a->space].slots != 0;
}

/* Whether so many more tokens of a channel may go through a tensor. */
static bool go_ahead(struct ct_sync *s, int32_t at, unsigned channel, uint32_t tokens) {
  if (s->item[at].parent >= 0 || s->ahead[channel] + tokens > MOST_AHEAD) return false;
  s->ahead[channel] += tokens;
  return true;
}

/* The first step knows what the first giver's first token says; all of it is known behind the
 * command. */
static void learn_in_turn(struct ct_sync *s, enum ct_q q, int32_t first, int32_t last) {
  ct_learn(s, q, first, 1);
  s->late[s->item[last].q] = last;
}

/* ---- Products and their loads -------------------------------------------------------------- */

/* Part 0 of an access: of a slot, or a column of a tensor's row. */
static uint32_t first_part(const struct ct_sync *s, const struct ct_access *a) {
  return is_ring(s, a) ? a->part : (uint32_t)a->lo[1];
}

static bool same_row(const struct ct_access *a, const struct ct_access *b) {
  return a->lo[0] == b->lo[0] && a->hi[0] == a->lo[0] + 1 && b->hi[0] == b->lo[0] + 1;
}

/* The load that fills a part of an operand step by step; CT_NOBODY: none. */
static int32_t load_of(const struct ct_sync *s, const struct ct_access *b, uint32_t part) {
  const bool ring = is_ring(s, b);
  for (int32_t u = s->used[b->space]; u >= 0; u = s->use[u].next) {
    const struct ct_item *i = &s->item[s->use[u].item];
    const struct ct_access *a = &i->access[s->use[u].access];
    const uint32_t first = first_part(s, a);
    if (!a->write || i->q != CT_Q_LD || !i->by_step || part < first || part - first >= i->mult)
      continue;
    if (ring ? a->gen == b->gen : same_row(a, b) && (uint32_t)(a->hi[1] - a->lo[1]) == i->mult)
      return s->use[u].item;
  }
  return CT_NOBODY;
}

/* Whether everything that LD brings of operand a is there when the part is that goes with it. */
static bool a_is_there(const struct ct_sync *s, int32_t mm, const struct ct_access *a,
                       const struct ct_access *b) {
  for (int32_t u = s->used[a->space]; u >= 0; u = s->use[u].next) {
    const struct ct_item *i = &s->item[s->use[u].item];
    const struct ct_access *w = &i->access[s->use[u].access];
    if (i->q != CT_Q_LD || ct_point_of(i->seq, CT_ALL_OF_IT) <= s->known[CT_Q_MM][CT_Q_LD] ||
        !ct_pieces_meet(s, &s->use[u], mm, a))
      continue;
    const int32_t first = w->lo[1] > a->lo[1] ? w->lo[1] - a->lo[1] : 0;
    const int32_t load = load_of(s, b, first_part(s, b) + (uint32_t)first);
    if (load < 0 || s->item[load].seq < i->seq) return false;
  }
  return true;
}

/* Each load is followed by one product, all of it. */
static bool can_follow(const struct ct_sync *s, int32_t at, int32_t load) {
  return load >= 0 && s->item[load].parent == s->item[at].parent && !s->item[load].opened &&
         !s->item[load].sig[0];
}

bool ct_follow_steps(struct ct_sync *s, int32_t at, enum ct_q from) {
  const unsigned channel = ct_full_channel(CT_Q_LD, CT_Q_MM);
  if (from != CT_Q_LD || s->item[at].q != CT_Q_MM || !s->item[at].by_step) return false;
  const uint32_t kt = CT_GET(&s->item[at].n.cmd, MM_KT);
  const struct ct_access a = s->item[at].access[2], b = s->item[at].access[1];
  const uint32_t first = first_part(s, &b);
  int32_t load = CT_NOBODY;
  if (!a_is_there(s, at, &a, &b)) return false;
  for (uint32_t k = 0; k < kt; k += s->item[load].mult) {
    load = load_of(s, &b, first + k);
    if (!can_follow(s, at, load)) return false;
  }
  if (!is_ring(s, &b) && !go_ahead(s, at, channel, kt)) return false;
  ct_close_giver(s, channel, at);
  if (!ct_add_wait(s, at, channel, kt, CT_BY_STEP)) return false;
  for (uint32_t k = 0; k < kt; k += s->item[load].mult) {
    load = load_of(s, &b, first + k);
    ct_add_signal(s, load, channel, s->item[load].mult);
    s->item[load].opened = channel + 1;
  }
  learn_in_turn(s, CT_Q_MM, load_of(s, &b, first), load);
  return true;
}

/* ---- Parts that commands of the vector unit made, one after the other ---------------------- */

/* Part p of what a command reads: a generation, or a column of a tensor's row. */
static struct ct_access part_of(const struct ct_sync *s, const struct ct_access *a, uint32_t p) {
  struct ct_access part = *a;
  if (is_ring(s, a)) {
    part.gen += p;
    part.gens = 1;
  } else {
    part.lo[1] += (int32_t)p;
    part.hi[1] = part.lo[1] + 1;
  }
  return part;
}

/* Whether a command that writes w makes parts from this one on, one for each of its tiles. */
static bool makes(const struct ct_sync *s, const struct ct_item *i, const struct ct_access *w,
                  const struct ct_access *part) {
  if (!w->write || !(i->q == CT_Q_VL || i->q == CT_Q_VA || i->q == CT_Q_VS)) return false;
  if (is_ring(s, w)) return w->gens == i->mult && w->gen == part->gen;
  return same_row(w, part) && (uint32_t)(w->hi[1] - w->lo[1]) == i->mult && w->lo[1] == part->lo[1];
}

static bool meet(const struct ct_sync *s, const struct ct_use *use, int32_t at,
                 const struct ct_access *part) {
  const struct ct_access *w = &s->item[use->item].access[use->access];
  if (!is_ring(s, part)) return ct_pieces_meet(s, use, at, part);
  return w->gen <= part->gen && part->gen < w->gen + w->gens;
}

/* Who made a part, if that is a command of queue `from` that has a signal to spare. */
static int32_t maker_of(struct ct_sync *s, int32_t at, const struct ct_access *part,
                        enum ct_q from) {
  for (int32_t u = s->used[part->space]; u >= 0; u = s->use[u].next) {
    const struct ct_item *i = &s->item[s->use[u].item];
    ++s->l->work;
    if (i->q != from || !meet(s, &s->use[u], at, part)) continue;
    const bool can = makes(s, i, &i->access[s->use[u].access], part) &&
                     i->parent == s->item[at].parent && !i->opened && !(i->sig[0] && i->sig[1]) &&
                     ct_point_of(i->seq, 0) > s->known[s->item[at].q][from];
    return can ? s->use[u].item : CT_NOBODY;
  }
  return CT_NOBODY;
}

/* Whether every part of an access has its maker, in order, up to `last`. */
static bool made_in_order(struct ct_sync *s, int32_t at, const struct ct_access *a, uint32_t parts,
                          int32_t last) {
  const enum ct_q from = s->item[last].q;
  int32_t maker = CT_NOBODY;
  for (uint32_t p = 0; p < parts; p += s->item[maker].mult) {
    const struct ct_access part = part_of(s, a, p);
    const int32_t next = maker_of(s, at, &part, from);
    if (next < 0 || (maker >= 0 && s->item[next].seq <= s->item[maker].seq) ||
        s->item[next].mult > parts - p)
      return false;
    maker = next;
  }
  return maker == last;
}

/* Which access of a command goes with its tiles or k steps; none: CT_MOST_ACCESSES. */
static unsigned access_by_parts(const struct ct_sync *s, const struct ct_item *i, uint32_t parts) {
  if (i->q == CT_Q_MM && i->by_step && !is_ring(s, &i->access[2]) &&
      (uint32_t)(i->access[2].hi[1] - i->access[2].lo[1]) == parts)
    return 2;
  for (unsigned x = 0; x < i->accesses && i->q != CT_Q_MM; ++x)
    if (!i->access[x].write && is_ring(s, &i->access[x]) && i->access[x].gens == parts) return x;
  return CT_MOST_ACCESSES;
}

/* Whether another access of a command needs something of the queue. */
static bool needs_more(struct ct_sync *s, int32_t at, unsigned but, enum ct_q from) {
  for (unsigned x = 0; x < s->item[at].accesses; ++x) {
    struct ct_need need[CT_Q_COUNT];
    const struct ct_access a = s->item[at].access[x];
    ct_no_needs(need);
    if (x != but) ct_needs_of(s, at, &a, need);
    if (need[from].item >= 0) return true;
  }
  return false;
}

bool ct_follow_parts(struct ct_sync *s, int32_t at, int32_t last) {
  const enum ct_q q = s->item[at].q, from = s->item[last].q;
  const bool mm = q == CT_Q_MM;
  const uint32_t parts = mm ? CT_GET(&s->item[at].n.cmd, MM_KT) : s->item[at].mult;
  const unsigned channel = ct_full_channel(from, q), x = access_by_parts(s, &s->item[at], parts);
  if (parts < 2 || x == CT_MOST_ACCESSES) return false;
  const struct ct_access a = s->item[at].access[x];
  if (!made_in_order(s, at, &a, parts, last) || needs_more(s, at, x, from)) return false;
  if (!is_ring(s, &a) && !go_ahead(s, at, channel, parts)) return false;
  ct_close_giver(s, channel, at);
  if (!ct_add_wait(s, at, channel, parts, mm ? CT_BY_STEP : CT_BY_TILE)) return false;
  int32_t first = CT_NOBODY;
  for (uint32_t p = 0; p < parts;) {
    const struct ct_access part = part_of(s, &a, p);
    const int32_t maker = maker_of(s, at, &part, from);
    ct_add_signal(s, maker, channel, s->item[maker].mult);
    s->item[maker].opened = channel + 1;
    if (p == 0) first = maker;
    p += s->item[maker].mult;
  }
  learn_in_turn(s, q, first, last);
  return true;
}
