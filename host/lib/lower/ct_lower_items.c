/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a job: items, their tokens, carriers. See ct_lower_impl.h. */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_lower_impl.h"

static const uint64_t gap = UINT64_C(1) << 40; /* between places, for carriers */

/* ---- The tree ------------------------------------------------------------------------------ */

static int32_t new_item(struct ct_sync *s) {
  if (s->items == s->item_room) {
    const size_t room = s->item_room ? 2 * s->item_room : 1024;
    struct ct_item *item = realloc(s->item, room * sizeof *item);
    if (!item) {
      ct_lower_fail(s->l, CT_ERR_MEMORY, "out of memory");
      return CT_NOBODY;
    }
    s->item = item;
    s->item_room = room;
  }
  struct ct_item *i = &s->item[s->items];
  memset(i, 0, sizeof *i);
  i->parent = i->next = i->prev = i->child = i->last_child = CT_NOBODY;
  for (unsigned q = 0; q < CT_Q_COUNT; ++q)
    i->last_in[q] = CT_NOBODY;
  ++s->l->work;
  return (int32_t)s->items++;
}

/* Links an item behind `prev`, or first among the children of `parent`. */
static void link_item(struct ct_sync *s, int32_t at, int32_t parent, int32_t prev) {
  struct ct_item *i = &s->item[at];
  int32_t *first = parent < 0 ? &s->first : &s->item[parent].child;
  int32_t *last = parent < 0 ? &s->last : &s->item[parent].last_child;
  i->parent = parent;
  i->depth = parent < 0 ? 0 : s->item[parent].depth + 1;
  i->prev = prev;
  i->next = prev < 0 ? *first : s->item[prev].next;
  *(i->next < 0 ? last : &s->item[i->next].prev) = at;
  *(prev < 0 ? first : &s->item[prev].next) = at;
}

int ct_items_make(struct ct_sync *s, size_t from, size_t to) {
  int32_t parent = CT_NOBODY;
  s->first = s->last = CT_NOBODY;
  for (size_t r = from; r < to; ++r) {
    const struct ct_rec *rec = &s->l->rec[r];
    while (parent >= 0 && r >= from + (size_t)parent + s->item[parent].n.size)
      parent = s->item[parent].parent;
    const int32_t at = new_item(s);
    if (at < 0) return s->l->error;
    struct ct_item *i = &s->item[at];
    i->n = rec->n;
    i->q = rec->q;
    i->by_step = rec->by_step;
    i->mult = rec->mult;
    i->accesses = rec->accesses;
    memcpy(i->access, rec->access, sizeof i->access);
    i->seq = (r - from + 1) * gap;
    link_item(s, at, parent, parent < 0 ? s->last : s->item[parent].last_child);
    if (i->q == CT_Q_COUNT) parent = at;
  }
  return s->l->error;
}

static bool is_walk(const struct ct_node *n) {
  const uint32_t op = CT_GET(&n->cmd, ALL_OP);
  return n->count == 0 && (op == CT_OP_WPIX || op == CT_OP_WTAP);
}

/* The last WPIX and WTAP in front of a job: a job knows nothing of the one before. */
void ct_items_walk(struct ct_sync *s, size_t from) {
  for (uint32_t missing = 2; missing > 0 && from > 0;) {
    const struct ct_rec *rec = &s->l->rec[--from];
    if (!is_walk(&rec->n) ||
        (missing == 1 && CT_GET(&s->item[s->first].n.cmd, ALL_OP) == CT_GET(&rec->n.cmd, ALL_OP)))
      continue;
    const int32_t at = new_item(s);
    if (at < 0) return;
    s->item[at].n = rec->n;
    s->item[at].q = CT_Q_MM;
    s->item[at].mult = 1;
    s->item[at].seq = missing-- * (gap / 4);
    link_item(s, at, CT_NOBODY, CT_NOBODY);
  }
}

static bool writes(const struct ct_item *i, uint32_t space) {
  for (unsigned x = 0; x < i->accesses; ++x)
    if (i->access[x].space == space && i->access[x].write) return true;
  return false;
}

/* A carrier that reads the calm words as soon as they are there. */
void ct_items_warm(struct ct_sync *s, enum ct_q q) {
  for (int32_t i = s->first; i >= 0; i = s->item[i].next) {
    if (!writes(&s->item[i], s->l->carriers.calm)) continue;
    const int32_t carrier = ct_carrier_behind(s, i, q);
    if (carrier >= 0) s->item[carrier].carrier = false; /* to be visited in its turn */
    return;
  }
}

void ct_items_free(struct ct_sync *s) {
  free(s->item);
  free(s->use);
  s->item = NULL;
  s->use = NULL;
}

int32_t ct_lift(const struct ct_sync *s, int32_t item, int32_t parent) {
  while (item >= 0 && s->item[item].parent != parent)
    item = s->item[item].parent;
  return item;
}

int32_t ct_common_parent(const struct ct_sync *s, int32_t a, int32_t b) {
  a = s->item[a].parent;
  b = s->item[b].parent;
  while (a != b) {
    if (a >= 0 && (b < 0 || s->item[a].depth >= s->item[b].depth))
      a = s->item[a].parent;
    else
      b = s->item[b].parent;
  }
  return a;
}

/* The last command of a queue at or in front of an item, or in it; in front of it. */
int32_t ct_latest_at(const struct ct_sync *s, int32_t at, enum ct_q q) {
  while (at >= 0) {
    if (s->item[at].last_in[q] >= 0) return s->item[at].last_in[q];
    while (at >= 0 && s->item[at].prev < 0)
      at = s->item[at].parent;
    if (at >= 0) at = s->item[at].prev;
  }
  return CT_NOBODY;
}

int32_t ct_latest_before(const struct ct_sync *s, int32_t at, enum ct_q q) {
  while (at >= 0 && s->item[at].prev < 0)
    at = s->item[at].parent;
  return at < 0 ? CT_NOBODY : ct_latest_at(s, s->item[at].prev, q);
}

/* ---- Tokens -------------------------------------------------------------------------------- */

static bool put_token(uint8_t *field, unsigned channel) {
  if (*field) return false;
  *field = (uint8_t)(channel + 1);
  return true;
}

static uint32_t outer_steps(const struct ct_item *i) {
  return CT_GET(&i->n.cmd, DMA_GATHER) ? 0 : CT_GET(&i->n.cmd, DMA_N2);
}

bool ct_add_wait(struct ct_sync *s, int32_t item, unsigned channel, uint32_t tokens,
                 enum ct_when when) {
  struct ct_item *i = &s->item[item];
  uint8_t *w = i->wait;
  const bool start = when == CT_AT_START;
  if (is_walk(&i->n)) return false;
  for (unsigned f = 0; f < 3; ++f)
    if (w[f] == channel + 1) return false; /* a command names a semaphore in one wait only */
  if (i->q == CT_Q_LD || i->q == CT_Q_ST) {
    if (start && tokens == 1 && (put_token(&w[1], channel) || put_token(&w[2], channel)))
      return true;
    return tokens == outer_steps(i) && (!start || tokens == 1) && put_token(&w[0], channel);
  }
  if (i->q == CT_Q_MM) {
    if (when == CT_BY_TILE) return tokens == i->mult && put_token(&w[2], channel);
    const uint32_t kt = CT_GET(&i->n.cmd, MM_KT);
    return tokens == kt && (!start || kt == 1 || i->carrier) &&
           (put_token(&w[0], channel) || put_token(&w[1], channel));
  }
  return tokens == i->mult && (when == CT_BY_TILE || tokens == 1) &&
         (put_token(&w[0], channel) || put_token(&w[1], channel) || put_token(&w[2], channel));
}

bool ct_add_signal(struct ct_sync *s, int32_t item, unsigned channel, uint32_t tokens) {
  struct ct_item *i = &s->item[item];
  uint8_t *f = i->sig;
  if (is_walk(&i->n)) return false;
  switch (i->q) {
    case CT_Q_LD:
    case CT_Q_ST:
      if (tokens == 1 && put_token(&f[1], channel)) return true;
      return tokens == outer_steps(i) && put_token(&f[0], channel);
    case CT_Q_MM:
      return tokens == i->mult && put_token(&f[1], channel);
    default:
      return tokens == i->mult && (put_token(&f[0], channel) || put_token(&f[1], channel));
  }
}

/* ---- Carriers ------------------------------------------------------------------------------ */

/* It uses the first piece of a tensor. */
static void touch(struct ct_item *i, uint32_t space, bool write) {
  i->access[i->accesses++] = (struct ct_access){.space = space, .write = write, .hi = {1, 1}};
}

static uint32_t start_of(const struct ct_lower *l, uint32_t space) {
  return l->space[space].at;
}

static void dma_carrier(struct ct_sync *s, struct ct_item *i, struct ct_cmd *cmd) {
  const struct ct_lower *l = s->l;
  const struct ct_carriers *c = &l->carriers;
  const bool ld = i->q == CT_Q_LD;
  const uint32_t dram = ld ? c->load : c->store_dram;
  if (dram == 0)
    ct_lower_fail(s->l, CT_ERR_INTERNAL, "%s has to carry a signal and does not know how",
                  ld ? "LD" : "ST");
  CT_PUT(cmd, ALL_OP, ld ? CT_OP_LD : CT_OP_ST);
  CT_PUT(cmd, DMA_DRAM, start_of(l, dram));
  CT_PUT(cmd, DMA_DRAM_REG, l->space[dram].reg);
  CT_PUT(cmd, DMA_SPM, ld ? c->spm + CT_F32_ROW_UNITS : start_of(l, c->store_spm));
  CT_PUT(cmd, DMA_NB, 1);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_N1, 1);
  CT_PUT(cmd, DMA_N2, 1);
  touch(i, dram, !ld);
  if (!ld) touch(i, c->store_spm, false);
}

/* VL and MM read calm words. */
static void need_calm(struct ct_sync *s, enum ct_q q) {
  if (s->l->carriers.calm == 0)
    ct_lower_fail(s->l, CT_ERR_NO_SPACE, "%s has to carry a signal and has no calm words",
                  q == CT_Q_MM ? "MM" : "VL");
}

static void mm_carrier(struct ct_sync *s, struct ct_item *i, struct ct_cmd *cmd, uint32_t steps) {
  const struct ct_carriers *c = &s->l->carriers;
  const uint32_t at = start_of(s->l, c->calm);
  need_calm(s, CT_Q_MM);
  CT_PUT(cmd, ALL_OP, CT_OP_MM);
  CT_PUT(cmd, MM_A, at);
  CT_PUT(cmd, MM_B, at);
  CT_PUT(cmd, MM_KT, steps);
  CT_PUT(cmd, MM_NT, 1);
  CT_PUT(cmd, MM_ROWS, 1);
  CT_PUT(cmd, MM_ACC, c->acc);
  touch(i, c->calm, false);
}

enum { VA_NOTHING = 2 };

/* A tile register that nobody uses: what does not read registers need not keep away from the
 * operation before. 0: all are used. */
static unsigned spare_register(const struct ct_lower *l) {
  uint32_t used = UINT32_C(1) << l->carriers.va_reg | UINT32_C(1) << l->carriers.vl_reg |
                  UINT32_C(1) << l->carriers.vs_reg;
  for (uint32_t i = 1; i < l->spaces; ++i)
    if (l->space[i].place == CT_IN_REG)
      for (uint32_t r = 0; r < l->space[i].size * (l->space[i].slots ? l->space[i].slots : 1); ++r)
        used |= UINT32_C(1) << (l->space[i].at + r);
  for (unsigned r = CT_TILE - 1; r > 0; --r)
    if (!(used >> r & 1)) return r;
  return 0;
}

static void v_carrier(struct ct_sync *s, struct ct_item *i, struct ct_cmd *cmd) {
  const struct ct_carriers *c = &s->l->carriers;
  if (i->q == CT_Q_VA) {
    const unsigned spare = spare_register(s->l);
    CT_PUT(cmd, ALL_OP, CT_OP_VA);
    CT_PUT(cmd, VA_TD, spare ? spare : c->va_reg);
    if (spare)
      CT_PUT(cmd, VA_A_SRC, VA_NOTHING);
    else
      CT_PUT(cmd, VA_TA, c->va_reg);
    CT_PUT(cmd, VA_ROWS, 1);
    CT_PUT(cmd, VA_COLS, CT_TILE);
  } else if (i->q == CT_Q_VS) {
    CT_PUT(cmd, ALL_OP, CT_OP_VS);
    CT_PUT(cmd, VS_TS, c->vs_reg);
    CT_PUT(cmd, VS_SPM, c->spm);
    CT_PUT(cmd, VS_ROWS, 1);
    CT_PUT(cmd, VS_ROW_STRIDE, CT_F32_ROW_UNITS);
  } else {
    need_calm(s, CT_Q_VL);
    CT_PUT(cmd, ALL_OP, CT_OP_VL);
    CT_PUT(cmd, VL_TD, c->vl_reg);
    CT_PUT(cmd, VL_SPM, start_of(s->l, c->calm));
    CT_PUT(cmd, VL_ROWS, 1);
    CT_PUT(cmd, VL_ROW_STRIDE, CT_F32_ROW_UNITS);
    touch(i, c->calm, false);
  }
}

/* What comes next in the program behind an item and all that is in it. */
static uint64_t seq_behind(const struct ct_sync *s, int32_t item) {
  while (item >= 0 && s->item[item].next < 0)
    item = s->item[item].parent;
  return item < 0 ? UINT64_MAX >> 12 : s->item[s->item[item].next].seq;
}

static uint64_t last_seq(const struct ct_sync *s, int32_t item) {
  while (s->item[item].last_child >= 0)
    item = s->item[item].last_child;
  return s->item[item].seq;
}

/* A carrier behind `prev`, or first in `parent`. */
static int32_t new_carrier(struct ct_sync *s, enum ct_q q, uint32_t steps, int32_t parent,
                           int32_t prev) {
  struct ct_cmd cmd = {{0}};
  if (!s->l->has_carriers) ct_lower_fail(s->l, CT_ERR_INTERNAL, "no carriers have been named");
  const int32_t at = s->l->error ? CT_NOBODY : new_item(s);
  if (at < 0) return CT_NOBODY;
  struct ct_item *i = &s->item[at];
  i->q = q;
  i->mult = 1;
  i->carrier = true;
  if (q == CT_Q_LD || q == CT_Q_ST)
    dma_carrier(s, i, &cmd);
  else if (q == CT_Q_MM)
    mm_carrier(s, i, &cmd, steps);
  else
    v_carrier(s, i, &cmd);
  ct_node_of(&i->n, &cmd);
  i->last_in[q] = at;
  link_item(s, at, parent, prev);
  const uint64_t low = prev >= 0 ? last_seq(s, prev) : parent >= 0 ? s->item[parent].seq : 0;
  const uint64_t high =
      s->item[at].next >= 0 ? s->item[s->item[at].next].seq : seq_behind(s, parent);
  i->seq = low + (high > low + gap ? gap : high - low) / 2;
  const int32_t last = ct_latest_before(s, at, q);
  if (last >= 0) {
    memcpy(i->before, s->item[last].knows, sizeof i->before);
    memcpy(i->knows, s->item[last].knows, sizeof i->knows);
  }
  if (i->seq <= low || (i->seq >= high && high))
    ct_lower_fail(s->l, CT_ERR_INTERNAL, "no room for another carrier");
  return at;
}

int32_t ct_carrier_behind(struct ct_sync *s, int32_t item, enum ct_q q) {
  return new_carrier(s, q, 1, s->item[item].parent, item);
}

int32_t ct_carrier_before(struct ct_sync *s, int32_t item, enum ct_q q, uint32_t tokens) {
  return new_carrier(s, q, tokens, s->item[item].parent, s->item[item].prev);
}

int32_t ct_carrier_last(struct ct_sync *s, int32_t loop, enum ct_q q, uint32_t tokens) {
  return new_carrier(s, q, tokens, loop, s->item[loop].last_child);
}

bool ct_faulty(struct ct_sync *s, enum ct_lower_fault fault) {
  return s->l->fault == fault && s->faults++ == s->l->fault_nth;
}
