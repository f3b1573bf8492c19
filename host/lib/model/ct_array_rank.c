/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of an array: members of the same programs, feed and run lie side by side, up to eight of
 * them, so that jobs can be for all of them (ct_network_rank.c).
 *
 * A call of ct_array_run() begins with it: members that can run are put in order, cut into ranks of
 * nearly equal sizes, and moved where they do not lie so already. Their bytes go through the host,
 * which is rare: when members have joined, left or ended.
 */
#include <stdlib.h>

#include "ct_array.h"

struct ct_array_member *ct_array_neighbour(const struct ct_array *a,
                                           const struct ct_array_member *m, int by) {
  if (!m->network->rank || (by < 0 && m->slot == 0)) return NULL;
  const uint32_t slot = by < 0 ? m->slot - 1 : m->slot + 1;
  for (size_t i = 0; i < a->members; ++i) {
    struct ct_array_member *other = a->member[i];
    if (other->network->rank == m->network->rank && other->slot == slot) return other;
  }
  return NULL;
}

/* ---- Who goes with whom -------------------------------------------------------------------- */

static bool can_run(const struct ct_array_member *m) {
  return !m->ended && m->info.state == CT_MEMBER_READY && m->next < m->goal;
}

/* Runs of it, or a version that is being made of it, are under way. */
static bool is_used(const ct_network *n) {
  return n->own_runs[CT_INFERENCE] + n->own_runs[CT_TRAINING] > 0;
}

static bool go_together(const struct ct_array_member *m, const struct ct_array_member *other) {
  return m->network->shared == other->network->shared && m->next == other->next &&
         m->loss == other->loss && ct_array_same_feed(&m->feed, &other->feed);
}

/* Those that go with the i-th member, in the order in which they joined; 0 if one in front of it is
 * among them, which has them already. */
static size_t companions(const struct ct_array *a, size_t i, struct ct_array_member **list) {
  size_t count = 0;
  for (size_t k = 0; k < a->members; ++k) {
    struct ct_array_member *m = a->member[k];
    if (!can_run(m) || !go_together(a->member[i], m)) continue;
    if (k < i) return 0;
    list[count++] = m;
  }
  return count;
}

/* ---- Ranks --------------------------------------------------------------------------------- */

/* They, and nobody else, fill a rank; one alone has no rank, or one that is no larger. */
static bool lie_in_order(struct ct_array_member *const *list, size_t count) {
  const struct ct_rank *rank = list[0]->network->rank;
  if (!rank || rank->slots != count) return !rank && count == 1;
  for (size_t i = 0; i < count; ++i)
    if (list[i]->network->rank != rank || list[i]->slot != i) return false;
  return true;
}

static int move(struct ct_array_member *m, struct ct_rank *rank, uint32_t slot) {
  const int err = ct_network_move(m->network, rank, slot);
  if (err) return err;
  for (uint32_t i = 0; i < m->ahead; ++i)
    ct_frame_move(m->frame[i], rank, i, slot);
  m->slot = slot;
  return CT_OK;
}

static int make_rank(struct ct_array_member *const *list, size_t count) {
  struct ct_rank *rank;
  uint32_t used = 0;
  for (size_t i = 0; i < count; ++i)
    if (is_used(list[i]->network)) return CT_OK; /* the next call may find it idle */
  int err = ct_rank_create(list[0]->network, (uint32_t)count, list[0]->ahead, &rank);
  if (err == CT_ERR_NO_SPACE) return CT_OK;
  for (; used < count && !err; used += !err)
    err = move(list[used], rank, used);
  if (err && used == 0) ct_rank_drop(rank);
  return err;
}

static int make_ranks(struct ct_array_member *const *list, size_t count) {
  const struct ct_fusion *programs;
  if (count == 0 || lie_in_order(list, count)) return CT_OK;
  int err = ct_fusion_make(list[0]->network, true, &programs);
  if (err || !programs->stage) return err;
  const size_t ranks = (count + CT_MEMBERS_AT_ONCE - 1) / CT_MEMBERS_AT_ONCE;
  for (size_t r = 0, first = 0; r < ranks && !err; ++r) {
    const size_t end = count * (r + 1) / ranks;
    if (!lie_in_order(list + first, end - first)) err = make_rank(list + first, end - first);
    first = end;
  }
  return err;
}

int ct_array_ranks(struct ct_array *a) {
  struct ct_array_member **list = malloc((a->members + 1) * sizeof(struct ct_array_member *));
  int err = list ? CT_OK : ct_fail(a->dev, CT_ERR_MEMORY, "no memory for ranks of members");
  for (size_t i = 0; i < a->members && !err; ++i)
    if (can_run(a->member[i])) err = make_ranks(list, companions(a, i, list));
  free(list);
  return err;
}
