/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: as many nodes of the top level as fit a program become one. What a stretch of nodes takes
 * is known when it has its waits and signals, so a guess is tried and, if it was too long, a
 * shorter one.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_lower_impl.h"

void ct_codes_free(struct ct_codes *codes) {
  for (size_t i = 0; i < codes->count; ++i)
    free(codes->job[i].cmd);
  free(codes->job);
  *codes = (struct ct_codes){NULL, 0};
}

int ct_codes_append(struct ct_codes *all, struct ct_codes *more, const struct ct_why *why) {
  if (!more->count) return CT_OK;
  struct ct_code *job = realloc(all->job, (all->count + more->count) * sizeof *job);
  if (!job) {
    ct_codes_free(more);
    return ct_why(why, CT_ERR_MEMORY, "no memory for the programs of several jobs");
  }
  memcpy(job + all->count, more->job, more->count * sizeof *job);
  all->job = job;
  all->count += more->count;
  free(more->job);
  *more = (struct ct_codes){NULL, 0};
  return CT_OK;
}

/* ---- Counts -------------------------------------------------------------------------------- */

/* Which queues wait for which in a loop, and how many tokens of each channel it gives. */
struct flow {
  bool waits[CT_Q_COUNT][CT_Q_COUNT];
  uint64_t tokens[CT_FULL_CHANNELS];
};

/* Queues of a channel: for those of rings, found by their users. */
static void add_flow(const struct ct_sync *s, int32_t at, uint64_t times, struct flow *f,
                     int *giver) {
  for (; at >= 0; at = s->item[at].next) {
    const struct ct_item *i = &s->item[at];
    if (i->q == CT_Q_COUNT) {
      add_flow(s, i->child, times * i->n.count, f, giver);
      continue;
    }
    for (unsigned x = 0; x < 2; ++x) {
      if (i->sig[x] == 0) continue;
      giver[i->sig[x] - 1] = (int)i->q;
      if (i->sig[x] <= CT_FULL_CHANNELS) f->tokens[i->sig[x] - 1] += times * i->mult;
    }
  }
}

static void add_waits(const struct ct_sync *s, int32_t at, struct flow *f, const int *giver) {
  for (; at >= 0; at = s->item[at].next) {
    const struct ct_item *i = &s->item[at];
    if (i->q == CT_Q_COUNT) {
      add_waits(s, i->child, f, giver);
      continue;
    }
    for (unsigned w = 0; w < 3; ++w)
      if (i->wait[w] && giver[i->wait[w] - 1] >= 0) f->waits[i->q][giver[i->wait[w] - 1]] = true;
  }
}

static void close_waits(struct flow *f) {
  for (unsigned k = 0; k < CT_Q_COUNT; ++k)
    for (unsigned a = 0; a < CT_Q_COUNT; ++a)
      for (unsigned b = 0; b < CT_Q_COUNT; ++b)
        f->waits[a][b] |= f->waits[a][k] && f->waits[k][b];
}

/* In a loop that gives more than a semaphore counts to the giver must be held back by the taker. */
static void check_counts(struct ct_sync *s) {
  for (int32_t top = s->first; top >= 0 && !s->l->error; top = s->item[top].next) {
    struct flow f = {.tokens = {0}};
    int giver[CT_CHANNELS];
    if (s->item[top].q != CT_Q_COUNT) continue;
    for (unsigned c = 0; c < CT_CHANNELS; ++c)
      giver[c] = -1;
    add_flow(s, s->item[top].child, s->item[top].n.count, &f, giver);
    add_waits(s, s->item[top].child, &f, giver);
    close_waits(&f);
    for (unsigned c = 0; c < CT_FULL_CHANNELS; ++c)
      if (f.tokens[c] > CT_MOST_TOKENS && !f.waits[c / CT_Q_COUNT][c % CT_Q_COUNT])
        ct_lower_fail(s->l, CT_ERR_INTERNAL,
                      "in a loop nothing holds queue %u back, which signals queue %u %llu times",
                      c / CT_Q_COUNT, c % CT_Q_COUNT, (unsigned long long)f.tokens[c]);
  }
}

/* ---- Writing down -------------------------------------------------------------------------- */

/* Appends the nodes of siblings; returns how deep their loops nest. */
static unsigned write_items(struct ct_sync *s, struct ct_node *node, size_t *n, int32_t at) {
  unsigned deepest = 0;
  for (; at >= 0; at = s->item[at].next) {
    const size_t here = (*n)++;
    unsigned depth = 0;
    node[here] = s->item[at].n;
    if (s->item[at].q == CT_Q_COUNT) depth = 1 + write_items(s, node, n, s->item[at].child);
    node[here].size = (uint32_t)(*n - here);
    node[here].depth = (uint8_t)depth;
    if (depth > deepest) deepest = depth;
  }
  return deepest;
}

static bool share_place(const struct ct_space *a, const struct ct_space *b) {
  const uint32_t a_size = a->size * (a->slots ? a->slots : 1);
  const uint32_t b_size = b->size * (b->slots ? b->slots : 1);
  return a->place == b->place && a->reg == b->reg && a->at < b->at + b_size &&
         b->at < a->at + a_size;
}

static void find_overlaps(struct ct_sync *s) {
  for (uint32_t a = 1; a < s->l->spaces; ++a)
    for (uint32_t b = 1; b < s->l->spaces; ++b)
      s->overlap[a][b] =
          a != b && s->l->space[a].twin != b && share_place(&s->l->space[a], &s->l->space[b]);
}

/* Waits, signals and semaphores of records [from, to); again, if a carrier turned out to read what
 * its queue does not know, or if rings have to share semaphores. */
static void make_sync(struct ct_sync *s, size_t from, size_t to) {
  s->tight = false;
  do {
    ct_items_free(s);
    s->items = s->item_room = s->uses = s->use_room = s->faults = 0;
    memset(s->known, 0, sizeof s->known);
    memset(s->ahead, 0, sizeof s->ahead);
    s->again = s->too_few = false;
    ct_items_make(s, from, to);
    if (!s->l->error) ct_items_walk(s, from);
    for (unsigned q = 0; q < CT_Q_COUNT; ++q) {
      s->warm[q] = s->cold[q];
      if (s->warm[q] && !s->l->error) ct_items_warm(s, (enum ct_q)q);
    }
    if (!s->l->error) ct_sync_full(s);
    if (!s->l->error) ct_sync_free(s);
    if (!s->l->error && !s->again) ct_sync_number(s);
    if (s->too_few && !s->tight) s->tight = s->again = true;
  } while (s->again && !s->l->error);
  if (!s->l->error && !s->too_few) check_counts(s);
}

static void write_job(struct ct_sync *s, struct ct_code *code, size_t *needed) {
  struct ct_build b = {.args = s->l->b.args, .batch = s->l->b.batch, .group = s->l->b.group};
  b.node = calloc(s->items + 1, sizeof *b.node);
  if (!b.node) {
    ct_lower_fail(s->l, CT_ERR_MEMORY, "out of memory");
    return;
  }
  write_items(s, b.node, &b.count, s->first);
  s->l->work += b.count;
  const int count = ct_build_encode(&b, &code->cmd, needed);
  if (count >= 0) code->count = (size_t)count;
  if (count < 0 && count != CT_ERR_NO_SPACE)
    ct_lower_fail(
        s->l, count, "%s",
        count == CT_ERR_MEMORY ? "out of memory" : "the commands could not be written down");
  free(b.node);
}

/* Records [from, to) as one job: *needed commands. code->cmd is NULL if they are too many, or need
 * too many registers or semaphores (*needed is 0 then). */
static void try_job(struct ct_lower *l, size_t from, size_t to, struct ct_code *code,
                    size_t *needed) {
  struct ct_sync *s = calloc(1, sizeof *s);
  *code = (struct ct_code){NULL, 0};
  *needed = 0;
  if (!s) {
    ct_lower_fail(l, CT_ERR_MEMORY, "out of memory");
    return;
  }
  s->l = l;
  s->rec_from = from;
  find_overlaps(s);
  make_sync(s, from, to);
  if (!l->error && !s->too_few) write_job(s, code, needed);
  ct_items_free(s);
  free(s);
}

/* ---- Cuts ---------------------------------------------------------------------------------- */

static size_t next_node(const struct ct_lower *l, size_t at) {
  return at + l->rec[at].n.size;
}

/* The last cut from `from` on at which no more than so many records go together; at least one node.
 */
static size_t cut_at(const struct ct_lower *l, size_t from, size_t records, size_t end) {
  size_t to = next_node(l, from);
  while (to < end && next_node(l, to) - from <= records)
    to = next_node(l, to);
  return to;
}

static int add_job(struct ct_lower *l, struct ct_codes *codes, const struct ct_code *code) {
  struct ct_code *job = realloc(codes->job, (codes->count + 1) * sizeof *job);
  if (!job) {
    free(code->cmd);
    return ct_lower_fail(l, CT_ERR_MEMORY, "out of memory");
  }
  codes->job = job;
  codes->job[codes->count++] = *code;
  return CT_OK;
}

static size_t too_long(struct ct_lower *l, const char *name, size_t needed) {
  const char *part = l->one_job ? "" : "a loop of ";
  if (needed)
    ct_lower_fail(l, CT_ERR_NO_SPACE, "%sthe program for %s needs %zu commands, a device takes %zu",
                  part, name, needed, l->limit);
  else
    ct_lower_fail(l, CT_ERR_NO_SPACE,
                  "%sthe program for %s needs more registers or semaphores than there are", part,
                  name);
  return l->count;
}

/* The longest job from `from` on, as guesses go. Returns where the next one begins. */
static size_t make_job(struct ct_lower *l, size_t from, const char *name, struct ct_codes *codes) {
  size_t to = cut_at(l, from, l->limit, l->count), needed = 0;
  struct ct_code code;
  if (!l->one_job && from < l->cut && l->cut < to && to - from > CT_LONG_JOB) to = l->cut;
  if (l->one_job && to < l->count) return too_long(l, name, l->count);
  for (;;) {
    try_job(l, from, to, &code, &needed);
    if (l->error) return l->count;
    if (code.cmd && code.count <= l->limit) break;
    free(code.cmd);
    const size_t records = to - from, most = needed ? records * l->limit / needed : records / 2;
    const size_t shorter = cut_at(l, from, most < records ? most : records - 1, to);
    if (shorter == to || l->one_job) return too_long(l, name, needed);
    to = shorter;
  }
  add_job(l, codes, &code);
  return to;
}

int ct_lower_finish(struct ct_lower *l, const char *name, struct ct_codes *codes,
                    const struct ct_why *why) {
  *codes = (struct ct_codes){NULL, 0};
  for (size_t at = 0; at < l->count && !l->error;)
    at = make_job(l, at, name, codes);
  if (!l->error && codes->count == 0)
    ct_lower_fail(l, CT_ERR_ARG, "%s: there is nothing to do", name);
  const int err = l->error;
  if (err) {
    ct_why(why, err, "%s", l->why);
    ct_codes_free(codes);
  }
  if (l->count_work) *l->count_work += l->work;
  ct_lower_drop(l);
  return err;
}

/* ---- For tests ----------------------------------------------------------------------------- */

int ct_lower_list(const struct ct_lower *l, struct ct_code *code) {
  *code = (struct ct_code){calloc(l->count + 1, sizeof *code->cmd), 0};
  if (!code->cmd) return CT_ERR_MEMORY;
  for (size_t i = 0; i < l->count; ++i) {
    if (l->rec[i].q == CT_Q_COUNT) {
      free(code->cmd);
      code->cmd = NULL;
      return CT_ERR_INTERNAL;
    }
    code->cmd[code->count++] = ct_node_command(&l->rec[i].n);
  }
  return CT_OK;
}
