/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free: the slots of rings. Each generation takes a token in front of its first command and gives
 * one behind its last; token number i is taken by generation i + slots, so they need not be
 * distinguished. The first generations of a job take none, as long as they are at the top level;
 * those inside loops get theirs from carriers.
 *
 * Rings between the same two queues that are used one after the other share a channel. What the
 * first has left over (a token for each of its slots) is the second one's. Where a job's channels
 * are more than the semaphores, rings of different sizes do so, too: carriers give what is missing
 * or take what is too much.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_lower_impl.h"

/* A generation in this job. */
struct life {
  bool used, carried; /* carried: it began in a job before */
  int32_t home;       /* the loop in which it begins */
  int32_t first;
  int32_t last[CT_Q_COUNT];
};

struct ring_use {
  uint32_t gens;   /* in this job */
  uint32_t credit; /* of these the first find their slots free */
  bool tokens;     /* it takes some */
  bool other;      /* another queue than the one that begins uses it */
  enum ct_q taker, giver;
  int32_t first, last; /* top-level items */
  uint32_t next;       /* of the group, in order of first use; 0: none */
  uint32_t leader;
};

struct freeing {
  struct ct_sync *s;
  struct life *life; /* by generation, from gen_from on */
  uint32_t gen_from, gens;
  struct ring_use use[CT_MOST_SPACES];
};

static const struct ct_space *space_of(const struct freeing *f, uint32_t ring) {
  return &f->s->l->space[ring];
}

static uint32_t ring_of(const struct freeing *f, uint32_t g) {
  return f->s->l->gen[f->gen_from + g].ring;
}

static uint64_t seq_of(const struct freeing *f, int32_t item) {
  return f->s->item[item].seq;
}

/* ---- What generations there are ------------------------------------------------------------ */

static void note_use(struct freeing *f, int32_t item, const struct ct_access *a) {
  const struct ct_item *i = &f->s->item[item];
  for (uint32_t g = a->gen - f->gen_from; g < a->gen - f->gen_from + a->gens; ++g) {
    struct life *life = &f->life[g];
    if (!life->used) {
      life->used = true;
      life->first = item;
      for (unsigned q = 0; q < CT_Q_COUNT; ++q)
        life->last[q] = CT_NOBODY;
    }
    if (i->seq < seq_of(f, life->first)) life->first = item;
    int32_t *last = &life->last[i->q];
    if (*last < 0 || i->seq > seq_of(f, *last)) *last = item;
  }
}

/* Generations [*from, *to) that the job's commands name. */
static void find_range(const struct ct_sync *s, uint32_t *from, uint32_t *to) {
  *from = UINT32_MAX;
  *to = 0;
  for (size_t u = 0; u < s->uses; ++u) {
    const struct ct_access *a = &s->item[s->use[u].item].access[s->use[u].access];
    if (s->l->space[a->space].slots == 0) continue;
    if (a->gen < *from) *from = a->gen;
    if (a->gen + a->gens > *to) *to = a->gen + a->gens;
  }
  if (*from > *to) *from = *to;
}

static void find_homes(struct freeing *f) {
  const struct ct_lower *l = f->s->l;
  for (uint32_t g = 0; g < f->gens; ++g) {
    struct life *life = &f->life[g];
    const struct ct_gen *gen = &l->gen[f->gen_from + g];
    if (!life->used) continue;
    life->carried = gen->at < f->s->rec_from;
    life->home = life->carried ? CT_NOBODY : f->s->item[gen->at - f->s->rec_from].parent;
    for (unsigned q = 0; q < CT_Q_COUNT; ++q)
      if (life->last[q] >= 0 && ct_lift(f->s, life->last[q], life->home) < 0)
        ct_lower_fail(f->s->l, CT_ERR_INTERNAL, "a generation of ring %s is used behind its loop",
                      space_of(f, gen->ring)->name);
    if (ct_lift(f->s, life->first, life->home) < 0)
      ct_lower_fail(f->s->l, CT_ERR_INTERNAL, "a generation of ring %s begins behind its loop",
                    space_of(f, gen->ring)->name);
  }
}

/* Who begins and ends a ring's generations. */
static void find_queues(struct freeing *f, uint32_t g) {
  const struct life *life = &f->life[g];
  const uint32_t ring = ring_of(f, g);
  struct ring_use *use = &f->use[ring];
  const enum ct_q taker = f->s->item[life->first].q;
  int32_t last = CT_NOBODY;
  for (unsigned q = 0; q < CT_Q_COUNT; ++q) {
    const int32_t l = life->last[q];
    if (l < 0 || life->carried || q == taker) continue;
    if (last < 0 || seq_of(f, l) > seq_of(f, last)) last = l;
  }
  const int32_t top = ct_lift(f->s, life->first, CT_NOBODY);
  if (use->gens++ == 0) use->first = top;
  for (unsigned q = 0; q < CT_Q_COUNT; ++q)
    if (life->last[q] >= 0) {
      const int32_t end = ct_lift(f->s, life->last[q], CT_NOBODY);
      if (use->last < 0 || seq_of(f, end) > seq_of(f, use->last)) use->last = end;
    }
  if (life->home >= 0) use->tokens = true;
  if (last < 0) return;
  const enum ct_q giver =
      space_of(f, ring)->other_frees ? space_of(f, ring)->freed_by : f->s->item[last].q;
  if ((use->other && use->giver != giver) || (use->taker != CT_Q_COUNT && use->taker != taker))
    ct_lower_fail(f->s->l, CT_ERR_INTERNAL,
                  "generations of ring %s begin or end with different queues",
                  space_of(f, ring)->name);
  use->giver = giver;
  use->other = true;
  use->taker = taker;
}

/* A ring whose generations have no user in this job, but for those of the job before: theirs end
 * them. */
static void find_giver(struct freeing *f, uint32_t g) {
  const struct life *life = &f->life[g];
  struct ring_use *use = &f->use[ring_of(f, g)];
  if (!life->carried || use->other) return;
  for (uint32_t h = g + 1; h < f->gens && use->taker == CT_Q_COUNT; ++h)
    if (f->life[h].used && !f->life[h].carried && ring_of(f, h) == ring_of(f, g))
      use->taker = f->s->item[f->life[h].first].q;
  int32_t last = CT_NOBODY;
  for (unsigned q = 0; q < CT_Q_COUNT; ++q)
    if (q != use->taker && life->last[q] >= 0 &&
        (last < 0 || seq_of(f, life->last[q]) > seq_of(f, last)))
      last = life->last[q];
  if (use->taker == CT_Q_COUNT || last < 0) return;
  use->giver = space_of(f, ring_of(f, g))->other_frees ? space_of(f, ring_of(f, g))->freed_by
                                                       : f->s->item[last].q;
  use->other = true;
}

/* Whether the queue of a carrier knows what it reads. */
static void check_calm(struct freeing *f, int32_t carrier) {
  struct ct_sync *s = f->s;
  const struct ct_item *c = &s->item[carrier];
  const int32_t last = ct_latest_before(s, carrier, c->q);
  for (unsigned x = 0; x < c->accesses; ++x)
    for (int32_t u = s->used[c->access[x].space]; u >= 0; u = s->use[u].next) {
      const struct ct_item *i = &s->item[s->use[u].item];
      const bool meets = c->access[x].write || i->access[s->use[u].access].write;
      if (i->q == c->q || i->seq > c->seq || !meets ||
          !ct_pieces_meet(s, &s->use[u], carrier, &c->access[x]) ||
          (last >= 0 && s->item[last].knows[i->q] >= ct_point_of(i->seq, CT_ALL_OF_IT)))
        continue;
      if (s->warm[c->q])
        ct_lower_fail(s->l, CT_ERR_INTERNAL, "a carrier of queue %d does not know tensor %s",
                      (int)c->q, s->l->space[c->access[x].space].name);
      s->cold[c->q] = s->again = true;
    }
}

/* ---- Taking -------------------------------------------------------------------------------- */

static void take_before(struct freeing *f, int32_t at, enum ct_q q, unsigned channel,
                        uint32_t tokens) {
  const uint32_t each = q == CT_Q_MM ? tokens : 1;
  for (uint32_t t = 0; t < tokens; t += each) {
    const int32_t carrier = ct_carrier_before(f->s, at, q, each);
    if (carrier < 0) return;
    check_calm(f, carrier);
    ct_add_wait(f->s, carrier, channel, each, CT_AT_START);
  }
}

/* Tokens that nobody has to wait for. */
static void give_before(struct freeing *f, int32_t top, enum ct_q q, unsigned channel,
                        uint32_t tokens) {
  int32_t at = f->s->item[top].prev;
  while (tokens > 0 && at >= 0 && f->s->item[at].carrier && f->s->item[at].q == q &&
         ct_add_signal(f->s, at, channel, 1))
    --tokens;
  while (tokens > 0) {
    at = ct_carrier_before(f->s, top, q, 1);
    if (at < 0) return;
    check_calm(f, at);
    while (tokens > 0 && ct_add_signal(f->s, at, channel, 1))
      --tokens;
  }
}

/* Generations from g on that begin with the same command. */
static uint32_t begin_together(const struct freeing *f, uint32_t g) {
  uint32_t n = 1;
  while (g + n < f->gens && f->life[g + n].used && ring_of(f, g + n) == ring_of(f, g) &&
         f->life[g + n].first == f->life[g].first && !f->life[g + n].carried)
    ++n;
  return n;
}

static uint32_t take_gens(struct freeing *f, uint32_t g, uint32_t *fresh, unsigned channel) {
  struct ct_sync *s = f->s;
  const struct life *life = &f->life[g];
  const struct ring_use *use = &f->use[ring_of(f, g)];
  const uint32_t n = begin_together(f, g);
  if (life->home < 0 && *fresh >= n) {
    *fresh -= n;
    return n;
  }
  const int32_t at = ct_lift(s, life->first, life->home);
  if (*fresh) give_before(f, ct_lift(s, at, CT_NOBODY), use->giver, channel, *fresh);
  *fresh = 0;
  if (ct_faulty(s, CT_FAULT_NO_FREE_WAIT)) return n;
  const bool by_tile = s->item[at].q != CT_Q_LD && s->item[at].q != CT_Q_ST;
  if (at != life->first || !ct_add_wait(s, at, channel, n, by_tile ? CT_BY_TILE : CT_AT_START))
    take_before(f, at, use->taker, channel, n);
  return n;
}

/* ---- Giving -------------------------------------------------------------------------------- */

/* Whether a queue knows a generation to be over when its command c is complete. */
static bool knows_over(const struct freeing *f, const struct life *life, enum ct_q taker,
                       int32_t c) {
  const struct ct_item *i = c >= 0 ? &f->s->item[c] : NULL;
  for (unsigned q = 0; q < CT_Q_COUNT; ++q) {
    const int32_t last = life->last[q];
    if (last < 0 || q == taker) continue;
    if (!i) return false;
    if (q == i->q ? seq_of(f, last) > i->seq
                  : ct_point_of(seq_of(f, last), CT_ALL_OF_IT) > i->knows[q])
      return false;
  }
  return true;
}

/* Whether a command begins a generation of a ring on the same channel. */
static bool takes_channel(const struct freeing *f, const struct ct_item *i, uint32_t leader) {
  for (unsigned x = 0; x < i->accesses; ++x) {
    const struct ring_use *use = &f->use[i->access[x].space];
    if (use->tokens && use->leader == leader && use->taker == i->q) return true;
  }
  return false;
}

static void give_behind(struct freeing *f, int32_t at, enum ct_q q, unsigned channel,
                        uint32_t tokens) {
  struct ct_sync *s = f->s;
  int32_t next = s->item[at].next;
  while (tokens > 0 && next >= 0 && s->item[next].carrier && s->item[next].q == q &&
         ct_add_signal(s, next, channel, 1))
    --tokens;
  while (tokens > 0) {
    const int32_t carrier = ct_carrier_behind(s, at, q);
    if (carrier < 0) return;
    check_calm(f, carrier);
    while (tokens > 0 && ct_add_signal(s, carrier, channel, 1))
      --tokens;
  }
}

/* Generations of the same ring behind g. */
static uint32_t later_gens(const struct freeing *f, uint32_t g) {
  uint32_t n = 0;
  for (uint32_t h = g + 1; h < f->gens; ++h)
    n += f->life[h].used && ring_of(f, h) == ring_of(f, g);
  return n;
}

/* Behind item `at` nothing uses the generation any more: the first command from there on, not far,
 * that knows it and has a signal to spare; a carrier, if somebody may wait for it before. */
static void give_one(struct freeing *f, uint32_t g, int32_t at, unsigned channel) {
  enum { NEAR = 12 };
  struct ct_sync *s = f->s;
  const struct life *life = &f->life[g];
  const uint32_t ring = ring_of(f, g);
  const struct ring_use *use = &f->use[ring];
  int32_t knows = CT_NOBODY;
  bool late = false;
  unsigned far = 0;
  for (int32_t i = at; i >= 0 && !(late && knows >= 0); i = s->item[i].next) {
    late |= i != at && (s->item[i].q == CT_Q_COUNT || takes_channel(f, &s->item[i], use->leader) ||
                        far++ > NEAR);
    if (!knows_over(f, life, use->taker, ct_latest_at(s, i, use->giver))) continue;
    if (knows < 0) knows = i;
    if (!late && s->item[i].q == use->giver && s->item[i].mult == 1 &&
        ct_add_signal(s, i, channel, 1))
      return;
  }
  if (knows >= 0)
    give_behind(f, knows, use->giver, channel, 1);
  else if (life->home >= 0 || later_gens(f, g) >= use->credit)
    ct_lower_fail(s->l, CT_ERR_INTERNAL,
                  "the queue that frees ring %s does not know when a generation is over",
                  space_of(f, ring)->name);
}

/* Generations from g on that a command of several tokens ends. */
static uint32_t end_together(const struct freeing *f, uint32_t g, int32_t last) {
  uint32_t n = 0;
  const uint32_t ring = ring_of(f, g);
  const enum ct_q q = f->s->item[last].q;
  while (g + n < f->gens && f->life[g + n].used && ring_of(f, g + n) == ring &&
         f->life[g + n].last[q] == last)
    ++n;
  return n;
}

/* Where the last use lies, seen from the generation's home. */
static int32_t end_of(const struct freeing *f, const struct life *life, enum ct_q taker) {
  int32_t last = CT_NOBODY;
  for (unsigned q = 0; q < CT_Q_COUNT; ++q) {
    if (life->last[q] < 0 || q == taker) continue;
    if (last < 0 || seq_of(f, life->last[q]) > seq_of(f, last)) last = life->last[q];
  }
  return last;
}

/* A generation of the job before that others than those who begin them still use. */
static bool occupies(const struct freeing *f, uint32_t g) {
  const struct life *life = &f->life[g];
  return life->used && life->carried && end_of(f, life, f->use[ring_of(f, g)].taker) >= 0;
}

/* Tokens that a ring's first generations need not wait for. Each takes one and gives one, and must
 * have taken that of the one before it in its slot: where slots were passed over, there are fewer
 * than `slots` between the two. */
static uint32_t credit_of(const struct freeing *f, uint32_t ring) {
  uint32_t before[CT_MOST_TOKENS + 1] = {0}, n = 0, credit = space_of(f, ring)->slots;
  const uint32_t passes =
      f->s->l->b.group ? 2 : 1; /* of members: slots may be passed over between */
  for (uint32_t i = 0; i < passes * f->gens; ++i) {
    const uint32_t g = i % f->gens;
    if (!f->life[g].used || ring_of(f, g) != ring || (f->life[g].carried && !occupies(f, g)))
      continue;
    uint32_t *last = &before[f->s->l->gen[f->gen_from + g].slot];
    ++n;
    if (*last && n - *last < credit) credit = n - *last;
    *last = n;
  }
  return credit;
}

static uint32_t give_gens(struct freeing *f, uint32_t g, unsigned channel) {
  struct ct_sync *s = f->s;
  const struct life *life = &f->life[g];
  const struct ring_use *use = &f->use[ring_of(f, g)];
  const int32_t last = end_of(f, life, use->taker);
  if (last < 0 && life->carried) return 1;
  if (last < 0) { /* its user is in a job behind a cut: nobody in this one waits for it */
    if (life->home >= 0 || later_gens(f, g) >= use->credit)
      ct_lower_fail(s->l, CT_ERR_INTERNAL, "a generation of ring %s has no user",
                    space_of(f, ring_of(f, g))->name);
    return 1;
  }
  const int32_t at = ct_lift(s, last, life->home);
  const struct ct_item *i = &s->item[last];
  if (ct_faulty(s, CT_FAULT_NO_SIGNAL)) return 1;
  if (i->q == use->giver && i->mult > 1 && at == last) {
    const uint32_t n = end_together(f, g, last);
    if (n == i->mult && knows_over(f, life, use->taker, last) && ct_add_signal(s, last, channel, n))
      return n;
  }
  give_one(f, g, at, channel);
  return 1;
}

/* ---- Channels ------------------------------------------------------------------------------ */

static bool before(const struct freeing *f, uint32_t a, uint32_t b) {
  return seq_of(f, f->use[a].last) < seq_of(f, f->use[b].first);
}

/* Lets ring b follow the group of a; false: they are used side by side. */
static bool follow(struct freeing *f, uint32_t a, uint32_t b) {
  while (f->use[a].next)
    a = f->use[a].next;
  if (!before(f, a, b)) return false;
  f->use[a].next = b;
  f->use[b].leader = f->use[a].leader;
  return true;
}

/* Rings in order of their first use. */
static unsigned sort_rings(const struct freeing *f, uint32_t *ring) {
  unsigned n = 0;
  for (uint32_t r = 1; r < f->s->l->spaces; ++r) {
    if (!f->use[r].tokens || !f->use[r].other) continue;
    unsigned at = n++;
    for (; at > 0 && seq_of(f, f->use[ring[at - 1]].first) > seq_of(f, f->use[r].first); --at)
      ring[at] = ring[at - 1];
    ring[at] = r;
  }
  return n;
}

/* Whether ring b may follow ring a: between the same queues; equal: with as many slots, so that
 * nothing is left over or missing. */
static bool can_follow(const struct freeing *f, uint32_t a, uint32_t b, bool equal) {
  return f->use[b].leader == b && f->use[a].leader == a && f->use[a].giver == f->use[b].giver &&
         f->use[a].taker == f->use[b].taker &&
         (!equal || space_of(f, a)->slots == space_of(f, b)->slots);
}

static void join(struct freeing *f, const uint32_t *ring, unsigned rings, bool equal) {
  for (unsigned i = 1; i < rings; ++i)
    for (unsigned j = 0; j < i; ++j)
      if (can_follow(f, ring[j], ring[i], equal) && !f->use[ring[i]].next &&
          follow(f, ring[j], ring[i]))
        break;
}

static void share(struct freeing *f, const uint32_t *ring, unsigned rings) {
  for (unsigned i = 0; i < rings; ++i)
    f->use[ring[i]].leader = ring[i];
  join(f, ring, rings, true);
  if (f->s->tight) join(f, ring, rings, false);
}

/* ---- All ----------------------------------------------------------------------------------- */

/* left: tokens of the ring before in the same channel. Returns those that this one leaves. */
static uint32_t free_ring(struct freeing *f, uint32_t ring, uint32_t left) {
  struct ct_sync *s = f->s;
  const struct ring_use *use = &f->use[ring];
  const unsigned channel = ct_free_channel(f->use[ring].leader);
  uint32_t fresh = use->credit;
  for (uint32_t g = 0; g < f->gens && fresh > 0; ++g)
    if (occupies(f, g) && ring_of(f, g) == ring) --fresh;
  if (left > fresh) {
    take_before(f, use->first, use->taker, channel, left - fresh);
    left = fresh;
  }
  fresh -= left;
  if (ct_faulty(s, CT_FAULT_CREDIT)) give_before(f, use->first, use->giver, channel, 1);
  for (uint32_t g = 0, n; g < f->gens && !s->l->error; g += n) {
    n = 1;
    if (!f->life[g].used || ring_of(f, g) != ring || f->life[g].carried) continue;
    n = take_gens(f, g, &fresh, channel);
  }
  for (uint32_t g = 0, n; g < f->gens && !s->l->error; g += n) {
    n = 1;
    if (f->life[g].used && ring_of(f, g) == ring) n = give_gens(f, g, channel);
  }
  return use->credit - fresh;
}

/* The rings of a channel, one after the other, if this is the first of them. */
static void free_group(struct freeing *f, uint32_t ring) {
  uint32_t left = 0;
  if (f->use[ring].leader != ring) return;
  for (uint32_t r = ring; r && !f->s->l->error; r = f->use[r].next)
    left = free_ring(f, r, left);
}

void ct_sync_free(struct ct_sync *s) {
  struct freeing f = {.s = s};
  uint32_t ring[CT_MOST_SPACES], to;
  find_range(s, &f.gen_from, &to);
  f.gens = to - f.gen_from;
  f.life = calloc(f.gens + 1, sizeof *f.life);
  if (!f.life) {
    ct_lower_fail(s->l, CT_ERR_MEMORY, "out of memory");
    return;
  }
  for (uint32_t r = 0; r < CT_MOST_SPACES; ++r) {
    f.use[r].taker = CT_Q_COUNT;
    f.use[r].first = f.use[r].last = CT_NOBODY;
  }
  for (size_t u = 0; u < s->uses; ++u) {
    const struct ct_access *a = &s->item[s->use[u].item].access[s->use[u].access];
    if (s->l->space[a->space].slots) note_use(&f, s->use[u].item, a);
  }
  find_homes(&f);
  for (uint32_t g = 0; g < f.gens && !s->l->error; ++g)
    if (f.life[g].used) find_queues(&f, g);
  for (uint32_t g = 0; g < f.gens && !s->l->error; ++g)
    if (f.life[g].used) find_giver(&f, g);
  for (uint32_t r = 1; r < s->l->spaces && !s->l->error; ++r) {
    if (f.use[r].gens == 0) continue;
    f.use[r].credit = credit_of(&f, r);
    if (f.use[r].gens > f.use[r].credit) f.use[r].tokens = true;
  }
  const unsigned rings = s->l->error ? 0 : sort_rings(&f, ring);
  share(&f, ring, rings);
  /* What the array waits for has the first choice of signals. */
  for (unsigned i = 0; i < rings; ++i)
    if (f.use[ring[i]].taker == CT_Q_MM) free_group(&f, ring[i]);
  for (unsigned i = 0; i < rings; ++i)
    if (f.use[ring[i]].taker != CT_Q_MM) free_group(&f, ring[i]);
  free(f.life);
}
