/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Semaphores: a number for each channel.
 *
 * A semaphore works as long as the n-th token taken is the n-th given. Two channels that follow
 * each other in a program can share one, if
 *   - all tokens of the first are taken,
 *   - its last is given before the first of the second is: by the same queue, or by one that the
 *     other knows to be that far when it gives,
 *   - and so with taking.
 * For then all that give do so one after the other in whatever time steps take, and all that take.
 */
#include "coltrain/coltrain.h"
#include "ct_lower_impl.h"

/* Where tokens are given and taken: the first and the last item. */
struct channel {
  unsigned number; /* + 1, as items have it */
  int32_t give[2], take[2];
  bool empties;
};

static enum ct_field_id wait_field(unsigned w) {
  return w == 0 ? CT_F_ALL_WAIT0 : w == 1 ? CT_F_ALL_WAIT1 : CT_F_ALL_WAIT2;
}

static void note(const struct ct_sync *s, int32_t *ends, int32_t item) {
  if (ends[0] < 0 || s->item[item].seq < s->item[ends[0]].seq) ends[0] = item;
  if (ends[1] < 0 || s->item[item].seq > s->item[ends[1]].seq) ends[1] = item;
}

static uint64_t begin_of(const struct ct_sync *s, const struct channel *c) {
  const uint64_t take = s->item[c->take[0]].seq;
  return c->give[0] >= 0 && s->item[c->give[0]].seq < take ? s->item[c->give[0]].seq : take;
}

/* Channels that somebody waits for, in order of their first token. Signals that nobody takes go. */
static unsigned find_channels(struct ct_sync *s, struct channel *channel) {
  struct channel all[CT_CHANNELS + 1];
  unsigned n = 0;
  for (unsigned c = 0; c <= CT_CHANNELS; ++c)
    all[c] = (struct channel){.number = c,
                              .give = {CT_NOBODY, CT_NOBODY},
                              .take = {CT_NOBODY, CT_NOBODY},
                              .empties = c <= CT_FULL_CHANNELS && c && s->open[c - 1] < 0};
  for (size_t i = 0; i < s->items; ++i) {
    for (unsigned w = 0; w < 3; ++w)
      note(s, all[s->item[i].wait[w]].take, (int32_t)i);
    for (unsigned g = 0; g < 2; ++g)
      note(s, all[s->item[i].sig[g]].give, (int32_t)i);
  }
  for (unsigned c = 1; c <= CT_CHANNELS; ++c) {
    if (all[c].take[0] < 0) continue;
    unsigned at = n++;
    for (; at > 0 && begin_of(s, &channel[at - 1]) > begin_of(s, &all[c]); --at)
      channel[at] = channel[at - 1];
    channel[at] = all[c];
  }
  return n;
}

/* The operand reads of a product and its tiles go on side by side. */
static bool by_tile(const struct ct_item *i, unsigned channel) {
  return i->q == CT_Q_MM && i->wait[2] == channel;
}

/* Whether item b comes behind a in the program, and a not again behind b in a loop around both. */
static bool behind(const struct ct_sync *s, int32_t a, int32_t b) {
  return s->item[a].seq < s->item[b].seq && ct_lift(s, a, CT_NOBODY) != ct_lift(s, b, CT_NOBODY);
}

/* Whether the queue of b knows, when b gives its token (or takes it), that a is complete. */
static bool knows(const struct ct_sync *s, int32_t a, int32_t b, bool giving) {
  const struct ct_item *x = &s->item[a], *y = &s->item[b];
  const ct_point *known = giving && y->mult == 1 ? y->knows : y->before;
  return x->q == y->q || known[x->q] >= ct_point_of(x->seq, CT_ALL_OF_IT);
}

static bool can_follow(struct ct_sync *s, const struct channel *a, const struct channel *b) {
  if (!a->empties || a->give[1] < 0 || b->give[0] < 0 || !behind(s, a->give[1], b->give[0]) ||
      !behind(s, a->take[1], b->take[0]))
    return false;
  if (ct_faulty(s, CT_FAULT_SHARED)) return true;
  return knows(s, a->give[1], b->give[0], true) && knows(s, a->take[1], b->take[0], false) &&
         by_tile(&s->item[a->take[1]], a->number) == by_tile(&s->item[b->take[0]], b->number);
}

static void write_numbers(struct ct_sync *s, const unsigned *sem) {
  for (size_t i = 0; i < s->items; ++i) {
    struct ct_item *x = &s->item[i];
    if (x->q == CT_Q_COUNT) continue;
    for (unsigned w = 0; w < 3; ++w)
      ct_cmd_set(&x->n.cmd, wait_field(w), sem[x->wait[w]]);
    CT_PUT(&x->n.cmd, ALL_SIG0, sem[x->sig[0]]);
    CT_PUT(&x->n.cmd, ALL_SIG1, sem[x->sig[1]]);
  }
}

/* Each channel follows the first one that it may; else it has a semaphore of its own. */
void ct_sync_number(struct ct_sync *s) {
  struct channel channel[CT_CHANNELS];
  const struct channel *latest[CT_NUM_SEMS]; /* of each semaphore */
  unsigned sem[CT_CHANNELS + 1] = {0}, sems = 0;
  const unsigned n = find_channels(s, channel);
  for (unsigned c = 0; c < n; ++c) {
    unsigned at = 0;
    while (at < sems && !can_follow(s, latest[at], &channel[c]))
      ++at;
    if (at == CT_NUM_SEMS) {
      s->too_few = true;
      return;
    }
    if (at == sems) ++sems;
    latest[at] = &channel[c];
    sem[channel[c].number] = CT_SEM(at);
  }
  write_numbers(s, sem);
}
