/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops. A body is recorded for as many passes as the rings take to come round, and once more; what
 * addresses and pieces gain from the one to the other are the strides. All other such groups are
 * recorded, too, one by one, and have to be where the strides say, so a body that does not move
 * evenly is found out; of programs that cost too much that way (CT_LOOK) the last one alone. Only
 * the first stays.
 */
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_lower_impl.h"
#include "ct_roll.h"

enum { LOOP_COST = 6 }; /* commands that a loop is likely to cost */

static void save_rings(const struct ct_lower *l, uint32_t *pos) {
  for (uint32_t i = 1; i < l->spaces; ++i)
    pos[i] = l->space[i].pos;
}

static bool came_round(const struct ct_lower *l, const uint32_t *pos) {
  for (uint32_t i = 1; i < l->spaces; ++i)
    if (pos[i] != l->space[i].pos) return false;
  return true;
}

/* ---- Comparing ----------------------------------------------------------------------------- */

/* Two bodies under comparison, and where their generations begin. */
struct pair {
  const struct ct_lower *l;
  const struct ct_rec *a, *b;
  size_t records, gen_a, gen_b, gens;
};

/* level: loops between the record and the bodies; what they have of strides further out does not
 * count. */
static bool same_access(const struct pair *p, const struct ct_access *a, const struct ct_access *b,
                        unsigned level) {
  if (a->space != b->space || a->write != b->write || a->part != b->part || a->gens != b->gens)
    return false;
  if (p->l->space[a->space].slots == 0) {
    for (unsigned d = 0; d < 2; ++d)
      if (a->hi[d] - a->lo[d] != b->hi[d] - b->lo[d] ||
          memcmp(a->stride[d], b->stride[d], level * sizeof *a->stride[d]) != 0)
        return false;
    return true;
  }
  if (a->gen < p->gen_a) return a->gen == b->gen; /* from outside */
  return b->gen >= p->gen_b && a->gen - p->gen_a == b->gen - p->gen_b;
}

static bool same_record(const struct pair *p, const struct ct_rec *a, const struct ct_rec *b,
                        unsigned level) {
  if (a->q != b->q || a->n.count != b->n.count || a->n.size != b->n.size ||
      a->accesses != b->accesses || a->mult != b->mult || a->by_step != b->by_step ||
      memcmp(&a->n.cmd, &b->n.cmd, sizeof a->n.cmd) != 0)
    return false;
  for (unsigned s = 0; s < CT_SLOTS; ++s)
    if (memcmp(a->n.stride[s], b->n.stride[s], level * sizeof *a->n.stride[s]) != 0) return false;
  for (unsigned i = 0; i < a->accesses; ++i)
    if (!same_access(p, &a->access[i], &b->access[i], level)) return false;
  return true;
}

static bool same_bodies(const struct pair *p, size_t from, size_t n, unsigned level) {
  for (size_t i = from; i < from + n; i += p->a[i].n.size) {
    if (!same_record(p, &p->a[i], &p->b[i], level)) return false;
    if (p->a[i].q == CT_Q_COUNT && !same_bodies(p, i + 1, p->a[i].n.size - 1, level + 1))
      return false;
  }
  return true;
}

/* ---- Strides ------------------------------------------------------------------------------- */

/* Puts a loop around records, in which `level` loops lie already. */
static void add_strides(struct ct_lower *l, struct ct_rec *a, const struct ct_rec *b, size_t n,
                        unsigned level) {
  for (size_t i = 0; i < n; i += a[i].n.size) {
    if (a[i].q == CT_Q_COUNT) {
      add_strides(l, a + i + 1, b + i + 1, a[i].n.size - 1, level + 1);
      continue;
    }
    for (unsigned s = 0; s < CT_SLOTS; ++s)
      a[i].n.stride[s][level] = ct_slot_delta(&a[i].n, &b[i].n, s);
    for (unsigned x = 0; x < a[i].accesses; ++x)
      for (unsigned d = 0; d < 2; ++d)
        a[i].access[x].stride[d][level] = b[i].access[x].lo[d] - a[i].access[x].lo[d];
  }
}

/* Whether b is what a does `passes` passes later. */
static bool moved(const struct ct_rec *a, const struct ct_rec *b, size_t n, unsigned level,
                  uint32_t passes) {
  for (size_t i = 0; i < n; i += a[i].n.size) {
    if (a[i].q == CT_Q_COUNT) {
      if (!moved(a + i + 1, b + i + 1, a[i].n.size - 1, level + 1, passes)) return false;
      continue;
    }
    for (unsigned s = 0; s < CT_SLOTS; ++s) {
      struct ct_node want = a[i].n;
      want.slot[s] += (uint32_t)a[i].n.stride[s][level] * passes;
      if (ct_slot_delta(&want, &b[i].n, s) != 0) return false;
    }
    for (unsigned x = 0; x < a[i].accesses; ++x)
      for (unsigned d = 0; d < 2; ++d)
        if (a[i].access[x].lo[d] + (int64_t)a[i].access[x].stride[d][level] * passes !=
            b[i].access[x].lo[d])
          return false;
  }
  return true;
}

static unsigned depth_of(const struct ct_rec *rec, size_t n) {
  unsigned depth = 0;
  for (size_t i = 0; i < n; i += rec[i].n.size)
    if (rec[i].q == CT_Q_COUNT && rec[i].n.depth > depth) depth = rec[i].n.depth;
  return depth;
}

/* ---- The loop ------------------------------------------------------------------------------ */

static void call(struct ct_lower *l, ct_body *body, void *kernel, uint32_t from, uint32_t to) {
  ++l->repeating;
  for (uint32_t i = from; i < to && !l->error; ++i)
    body(kernel, i);
  --l->repeating;
}

/* A copy of the body recorded behind it, compared and dropped. passes: how much later it is; 1:
 * it gives the strides. */
static bool compare_copy(struct ct_lower *l, struct pair p, size_t mark, uint32_t passes) {
  p.a = l->rec + mark;
  p.b = l->rec + mark + p.records;
  const bool alike = l->count == mark + 2 * p.records && l->gens == p.gen_a + 2 * p.gens &&
                     same_bodies(&p, 0, p.records, 0);
  if (alike && passes == 1) add_strides(l, l->rec + mark, p.b, p.records, 0);
  const bool even = alike && moved(p.a, p.b, p.records, 0, passes);
  l->count = mark + p.records;
  l->gens = p.gen_a + p.gens;
  return even;
}

/* The rounds behind the second. */
struct rest {
  struct pair p;
  size_t mark;
  uint32_t round, rounds; /* passes of one; how many */
};

/* Whether all of them are alike, or at least the last. */
static bool look_at_rest(struct ct_lower *l, const struct rest *rest, ct_body *body, void *kernel) {
  bool even = true;
  ++l->looking;
  for (uint32_t r = 2; even && r < rest->rounds; ++r) {
    if (l->looked >= l->look) r = rest->rounds - 1;
    call(l, body, kernel, r * rest->round, (r + 1) * rest->round);
    even = !l->error && compare_copy(l, rest->p, rest->mark, r);
  }
  --l->looking;
  return even;
}

/* Turns the records behind mark into the body of a loop. */
static void close_loop(struct ct_lower *l, size_t mark, size_t gens, uint32_t count) {
  const size_t records = l->count - mark;
  const unsigned depth = depth_of(l->rec + mark, records) + 1;
  if (depth > CT_NUM_LOOPS) {
    ct_lower_fail(l, CT_ERR_INTERNAL, "more than %d nested loops", CT_NUM_LOOPS);
    return;
  }
  const struct ct_rec loop = {
      .q = CT_Q_COUNT,
      .n = {.count = count, .size = (uint32_t)records + 1, .depth = (uint8_t)depth}};
  ct_rec_add(l, &loop);
  if (l->error) return;
  memmove(l->rec + mark + 1, l->rec + mark, records * sizeof *l->rec);
  l->rec[mark] = loop;
  for (size_t g = gens; g < l->gens; ++g)
    ++l->gen[g].at;
}

void ct_repeat(struct ct_lower *l, uint32_t passes, ct_body *body, void *kernel) {
  const size_t mark = l->count, gens = l->gens;
  uint32_t pos[CT_MOST_SPACES] = {0}, round = 0;
  if (l->error || passes == 0) return;
  save_rings(l, pos);
  do
    call(l, body, kernel, round, round + 1);
  while (++round < passes && !l->error && (l->flat || !came_round(l, pos)));
  const struct pair p = {
      .l = l, .records = l->count - mark, .gen_a = gens, .gen_b = l->gens, .gens = l->gens - gens};
  const uint32_t rounds = passes / round;
  if (rounds < 2 || (rounds - 1) * p.records <= LOOP_COST) {
    call(l, body, kernel, round, passes);
    return;
  }
  call(l, body, kernel, round, 2 * round);
  const bool even = !l->error && compare_copy(l, p, mark, 1) &&
                    look_at_rest(l, &(struct rest){p, mark, round, rounds}, body, kernel);
  if (!even)
    ct_lower_fail(l, CT_ERR_INTERNAL, "the passes of a loop of %u do not look alike", passes);
  else
    close_loop(l, mark, gens, rounds);
  call(l, body, kernel, rounds * round, passes);
}

/* ---- Members ------------------------------------------------------------------------------- */

void ct_lower_group(struct ct_lower *l, const struct ct_fused *group) {
  l->b.group = group;
  l->one_job |= group != NULL;
}

/* So many members from the first one on: those of a pass. */
static void call_members(struct ct_lower *l, ct_body *body, void *kernel, uint32_t first) {
  ++l->repeating;
  for (uint32_t i = 0; i < l->b.group->round && !l->error; ++i) {
    l->member = first + i;
    body(kernel, i);
  }
  --l->repeating;
  l->member = 0;
}

/* What a pass leaves of a ring's last round is passed over, so that the next one finds it alike. */
static void turn_back(struct ct_lower *l, const uint32_t *pos) {
  for (uint32_t i = 1; i < l->spaces; ++i)
    l->space[i].pos = pos[i];
}

/* Registers move the addresses of a member: the commands of a pass have no strides for it. They
 * have to be those of the regions. */
static void take_strides(struct ct_lower *l, size_t mark) {
  const struct ct_fused *g = l->b.group;
  for (size_t r = mark; r < l->count; ++r) {
    struct ct_rec *rec = &l->rec[r];
    if (rec->q != CT_Q_LD && rec->q != CT_Q_ST) continue;
    const uint32_t reg = CT_GET(&rec->n.cmd, DMA_DRAM_REG);
    int32_t *stride = rec->n.stride[0];
    unsigned level = CT_NUM_LOOPS - 1;
    while (level > 0 && stride[level] == 0)
      --level;
    if (g->stride[reg] == 0) continue;
    if ((uint32_t)stride[level] != g->stride[reg] * g->round)
      ct_lower_fail(l, CT_ERR_INTERNAL, "members do not lie at equal distances");
    stride[level] = 0;
  }
}

/* Two passes are enough: of a member's number, which is all that a body does not see, addresses and
 * pieces are linear functions (ct_cmd_address(), touch()). */
void ct_members(struct ct_lower *l, ct_body *body, void *kernel) {
  const size_t mark = l->count, gens = l->gens;
  uint32_t pos[CT_MOST_SPACES] = {0};
  if (!l->b.group) body(kernel, 0);
  if (!l->b.group || l->error) return;
  save_rings(l, pos);
  call_members(l, body, kernel, 0);
  turn_back(l, pos);
  const struct pair p = {
      .l = l, .records = l->count - mark, .gen_a = gens, .gen_b = l->gens, .gens = l->gens - gens};
  call_members(l, body, kernel, l->b.group->round);
  turn_back(l, pos);
  if (l->error) return;
  if (!compare_copy(l, p, mark, 1)) {
    ct_lower_fail(l, CT_ERR_INTERNAL, "the members of a group do not look alike");
    return;
  }
  take_strides(l, mark);
  if (depth_of(l->rec + mark, p.records) == CT_NUM_LOOPS)
    ct_lower_fail(l, CT_ERR_NO_SPACE, "no loop is left for the members of a group");
  close_loop(l, mark, gens, CT_MOST_PASSES);
  if (!l->error) l->rec[mark].n.members = true;
}
