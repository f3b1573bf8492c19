/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of an array: members of the same programs, at the same run, lie side by side, up to eight
 * of them, so that jobs can be for all of them (ct_network_rank.c). Those with the same feed read
 * the same batches; those whose feed nobody else has have inputs of their own beside their outputs.
 *
 * A call of ct_array_run() begins with it: members that can run are put in order, cut into ranks of
 * nearly equal sizes, and moved where they do not lie so already. Their bytes go through the host,
 * which is rare: when members have joined, left or ended.
 */
#include <stdlib.h>

#include "ct_array.h"

bool ct_array_has_own_inputs(const struct ct_array_member *m) {
  return m->network->live->rank && !m->network->live->rank->common;
}

struct ct_array_member *ct_array_neighbour(const struct ct_array *a,
                                           const struct ct_array_member *m, int by) {
  if (!m->network->live->rank || (by < 0 && m->slot == 0)) return NULL;
  const uint32_t slot = by < 0 ? m->slot - 1 : m->slot + 1;
  for (size_t i = 0; i < a->members; ++i) {
    struct ct_array_member *other = a->member[i];
    if (other->network->live->rank == m->network->live->rank && other->slot == slot) return other;
  }
  return NULL;
}

/* ---- Who goes with whom -------------------------------------------------------------------- */

static bool can_run(const struct ct_array_member *m) {
  return !m->ended && m->info.state == CT_MEMBER_READY && m->next < m->goal;
}

static bool go_together(const struct ct_array_member *m, const struct ct_array_member *other) {
  return can_run(other) && m->network->shared == other->network->shared && m->next == other->next;
}

static bool same_batches(const struct ct_array_member *m, const struct ct_array_member *other) {
  return go_together(m, other) && ct_array_same_feed(&m->feed, &other->feed);
}

/* Nobody who could go with it has the same batches. */
static bool is_single(const struct ct_array *a, const struct ct_array_member *m) {
  for (size_t i = 0; i < a->members; ++i)
    if (a->member[i] != m && same_batches(m, a->member[i])) return false;
  return true;
}

/* Those that go with the i-th member, in the order in which they joined: with the same batches, or
 * single ones. 0 if one in front of it is among them, which has them already. */
static size_t companions(const struct ct_array *a, size_t i, bool common,
                         struct ct_array_member **list) {
  struct ct_array_member *first = a->member[i];
  size_t count = 0;
  if (!can_run(first) || common == is_single(a, first)) return 0;
  for (size_t k = 0; k < a->members; ++k) {
    struct ct_array_member *m = a->member[k];
    if (common ? !same_batches(first, m) : !go_together(first, m) || !is_single(a, m)) continue;
    if (k < i) return 0;
    list[count++] = m;
  }
  return count;
}

/* ---- Ranks --------------------------------------------------------------------------------- */

/* Members that are to lie side by side. */
struct rank {
  struct ct_array_member *const *list;
  size_t count;
  bool common; /* they have the same batches */
};

/* They, and nobody else, fill a rank; one alone has no rank, or one that is no larger. */
static bool lie_in_order(const struct rank *r) {
  const struct ct_rank *rank = r->list[0]->network->live->rank;
  if (!rank || rank->slots != r->count) return !rank && r->count == 1;
  for (size_t i = 0; i < r->count; ++i)
    if (r->list[i]->network->live->rank != rank || r->list[i]->slot != i) return false;
  return r->count == 1 || rank->common == r->common;
}

static int move(struct ct_array_member *m, struct ct_rank *rank, uint32_t slot) {
  const int err = ct_network_move(m->network, rank, slot);
  if (err) return err;
  for (uint32_t i = 0; i < m->ahead; ++i)
    ct_frame_move(m->frame[i], rank, i, slot);
  m->slot = slot;
  m->wrote = CT_NO_CYCLE;
  return CT_OK;
}

static int make_rank(const struct rank *r) {
  const struct ct_rank how = {.slots = (uint32_t)r->count, .common = r->common};
  const struct ct_array_member *first = r->list[0];
  struct ct_rank *rank;
  uint32_t used = 0;
  for (size_t i = 0; i < r->count; ++i)
    if (ct_weights_are_used(r->list[i]->network->live))
      return CT_OK; /* the next call may find it idle */
  int err = ct_rank_create(first->network, &how, first->ahead, &rank);
  if (err == CT_ERR_NO_SPACE) return CT_OK;
  for (; used < r->count && !err; used += !err)
    err = move(r->list[used], rank, used);
  if (err && used == 0) ct_rank_drop(rank);
  return err;
}

/* Of each queue as many. */
static size_t how_many(const struct ct_array *a, size_t count) {
  const size_t ranks = (count + CT_MEMBERS_AT_ONCE - 1) / CT_MEMBERS_AT_ONCE;
  return a->both && count > 1 ? (ranks + 1) / 2 * 2 : ranks;
}

static int make_ranks(const struct ct_array *a, const struct rank *all) {
  const struct ct_fusion *programs;
  if (all->count == 0 || (all->count == 1 && lie_in_order(all))) return CT_OK;
  int err = ct_fusion_make(all->list[0]->network, all->common, &programs);
  if (err || !programs->stage) return err;
  size_t first = 0;
  for (size_t left = how_many(a, all->count); left > 0 && !err; --left) {
    const size_t some = (all->count - first) / left;
    const struct rank r = {all->list + first, some, all->common};
    if (!lie_in_order(&r)) err = make_rank(&r);
    first += some;
  }
  return err;
}

int ct_array_ranks(struct ct_array *a) {
  struct ct_array_member **list = malloc((a->members + 1) * sizeof(struct ct_array_member *));
  int err = list ? CT_OK : ct_fail(a->dev, CT_ERR_MEMORY, "no memory for ranks of members");
  for (unsigned common = 0; common < 2; ++common)
    for (size_t i = 0; i < a->members && !err; ++i) {
      const struct rank r = {list, companions(a, i, common, list), common};
      err = make_ranks(a, &r);
    }
  free(list);
  return err;
}

/* ---- Memory -------------------------------------------------------------------------------- */

bool ct_array_spare(struct ct_array *a) {
  bool any = false;
  for (size_t i = 0; i < a->members && !a->flights; ++i) {
    struct ct_shared *shared = a->member[i]->network->shared;
    for (unsigned q = 0; q < CT_QUEUES; ++q) {
      any |= shared->ranks[q] != 0;
      ct_give_back_after(a->dev, shared->ranks[q], (enum ct_queue)q, shared->error[q]);
      shared->ranks[q] = 0;
    }
  }
  return any;
}
