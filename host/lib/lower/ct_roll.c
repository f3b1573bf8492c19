/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rolling. A repetition is found by its period: copies of p items mean equal shapes p apart, and a
 * run of p of them covers a multiple of p. So for each p only every p-th item is looked at, and the
 * run around it measured by hashes of stretches: items times the logarithm of their number in all.
 * What hashes say is checked, item by item, before a loop is made.
 */
#include "ct_roll.h"

#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"

/* ---- Nodes --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

void ct_node_hash(struct ct_node *n) {
  uint64_t hash = n->count;
  if (n->count == 0) {
    for (unsigned i = 0; i < 8; ++i)
      hash = mix(hash, n->cmd.w[i]);
    for (unsigned s = 0; s < CT_SLOTS; ++s)
      for (unsigned l = 0; l < CT_NUM_LOOPS; ++l)
        hash = mix(hash, (uint32_t)n->stride[s][l]);
  } else {
    for (uint32_t i = 1; i < n->size; i += n[i].size)
      hash = mix(hash, n[i].shape);
  }
  n->shape = hash;
}

/* The bits of slot s: of device memory, Pos, words of the scratchpad. */
static unsigned slot_bits(const struct ct_node *n, unsigned s) {
  const uint32_t op = CT_GET(&n->cmd, ALL_OP);
  if (s == 0 && (op == CT_OP_LD || op == CT_OP_ST)) return 32;
  return s == 2 ? 26 : 20;
}

static uint32_t slot_mask(const struct ct_node *n, unsigned s) {
  return UINT32_MAX >> (32 - slot_bits(n, s));
}

int32_t ct_slot_delta(const struct ct_node *a, const struct ct_node *b, unsigned s) {
  const uint32_t delta = b->slot[s] - a->slot[s];
  const unsigned bits = slot_bits(a, s);
  return bits == 32 ? (int32_t)delta : ct_sign_extend(delta & slot_mask(a, s), bits);
}

/* Whether two runs of nodes are equal but for their slots. */
static bool same_shape(const struct ct_node *a, const struct ct_node *b, size_t nodes) {
  for (size_t i = 0; i < nodes; ++i)
    if (a[i].count != b[i].count || a[i].size != b[i].size ||
        memcmp(&a[i].cmd, &b[i].cmd, sizeof a[i].cmd) != 0 ||
        memcmp(a[i].stride, b[i].stride, sizeof a[i].stride) != 0)
      return false;
  return true;
}

/* Whether c - b equals b - a in every slot. */
static bool same_delta(const struct ct_node *a, const struct ct_node *b, const struct ct_node *c,
                       size_t nodes) {
  for (size_t i = 0; i < nodes; ++i)
    for (unsigned s = 0; s < CT_SLOTS; ++s)
      if (ct_slot_delta(&a[i], &b[i], s) != ct_slot_delta(&b[i], &c[i], s)) return false;
  return true;
}

/* Commands a loop costs besides its body: LOOP, ENDL, and the registers' start and step. */
static size_t overhead(const struct ct_node *a, const struct ct_node *b, size_t nodes) {
  int32_t seen[16];
  size_t n = 0;
  for (size_t i = 0; i < nodes && n < 16; ++i) {
    for (unsigned s = 0; s < CT_SLOTS && n < 16; ++s) {
      const int32_t delta = ct_slot_delta(&a[i], &b[i], s);
      bool known = delta == 0;
      for (size_t j = 0; j < n; ++j)
        known |= seen[j] == delta;
      if (!known) seen[n++] = delta;
    }
  }
  return 2 + 2 * ((n + 3) / 4);
}

/* Puts a loop around nodes (inside which `level` loops lie already): the difference to the next
 * copy becomes a stride between those of inner and outer loops. */
static void add_strides(struct ct_node *node, size_t nodes, unsigned level,
                        const struct ct_node *next) {
  for (size_t i = 0; i < nodes; i += node[i].size) {
    if (node[i].count) {
      add_strides(node + i + 1, node[i].size - 1, level + 1, next + i + 1);
    } else {
      for (unsigned s = 0; s < CT_SLOTS; ++s) {
        int32_t *stride = node[i].stride[s];
        memmove(stride + level + 1, stride + level, (CT_NUM_LOOPS - 1 - level) * sizeof *stride);
        stride[level] = ct_slot_delta(&node[i], &next[i], s);
      }
    }
    ct_node_hash(&node[i]);
  }
}

static struct ct_node loop_of(const struct ct_node *body, size_t nodes, size_t copies) {
  struct ct_node loop = {.count = (uint32_t)copies, .size = (uint32_t)nodes + 1, .depth = 1};
  for (size_t i = 0; i < nodes; ++i)
    if (body[i].depth >= loop.depth) loop.depth = (uint8_t)(body[i].depth + 1);
  return loop;
}

int ct_roll_pair(struct ct_node *node, size_t nodes, uint32_t copies) {
  const size_t body = nodes / 2;
  if (nodes < 2 || nodes % 2 || !same_shape(node, node + body, body)) return CT_ERR_INTERNAL;
  add_strides(node, body, 0, node + body);
  memmove(node + 1, node, body * sizeof *node);
  node[0] = loop_of(node + 1, body, copies);
  node[0].raw = true;
  if (node[0].depth > CT_NUM_LOOPS) return CT_ERR_INTERNAL;
  ct_node_hash(node);
  return CT_OK;
}

/* ---- Siblings ------------------------------------------------------------------------------ */

/* The top level of a program, or a loop's body. */
struct siblings {
  struct ct_node *node;
  size_t nodes;
  size_t *item; /* where each sibling starts, and the end */
  size_t items;
  unsigned above; /* loops around them */
  uint64_t *work;
  /* Of the items before each: hashes of the shapes, and of the slots, which adds up and
   * multiplies as slots do. power: of the hashes' base. */
  uint64_t *shapes, *slots, *power;
};

/* A repetition: `copies` times the items [at, at + period). */
struct repetition {
  size_t at, period, copies, gain;
};

enum { TABLES = 3 };
static const uint64_t base = UINT64_C(0xd1342543de82ef95), step = UINT64_C(0x2545f4914f6cdd1d);

static size_t nodes_in(const struct siblings *l, size_t at, size_t items) {
  return l->item[at + items] - l->item[at];
}

static struct ct_node *item_node(const struct siblings *l, size_t i) {
  return l->node + l->item[i];
}

static uint64_t shape_of(const struct siblings *l, size_t i) {
  return item_node(l, i)->shape;
}

/* A sum of an item's slots, each with a factor of its own. */
static uint64_t slots_of_item(const struct siblings *l, size_t i) {
  uint64_t sum = 0, factor = step;
  const struct ct_node *n = item_node(l, i);
  for (size_t j = 0; j < nodes_in(l, i, 1); ++j)
    for (unsigned s = 0; s < CT_SLOTS; ++s, factor *= step)
      sum += n[j].slot[s] * factor;
  return sum;
}

static void list_items(struct siblings *l) {
  l->items = 0;
  for (size_t i = 0; i < l->nodes; i += l->node[i].size)
    l->item[l->items++] = i;
  l->item[l->items] = l->nodes;
}

static void hash_items(struct siblings *l) {
  list_items(l);
  for (size_t i = 0; i < l->items; ++i) {
    l->shapes[i + 1] = l->shapes[i] * base + shape_of(l, i);
    l->slots[i + 1] = l->slots[i] * base + slots_of_item(l, i);
  }
  *l->work += l->items;
}

static uint64_t stretch(const struct siblings *l, const uint64_t *hash, size_t at, size_t items) {
  return hash[at + items] - hash[at] * l->power[items];
}

/* ---- How far something goes on ------------------------------------------------------------- */

/* Whether items [at, at + n) look like those a period later. */
static bool look_alike(const struct siblings *l, size_t at, size_t period, size_t n) {
  return stretch(l, l->shapes, at, n) == stretch(l, l->shapes, at + period, n);
}

/* Whether what the slots gain in a period is, for each of the items, what they gain in the next. */
static bool move_alike(const struct siblings *l, size_t at, size_t period, size_t n) {
  return stretch(l, l->slots, at, n) + stretch(l, l->slots, at + 2 * period, n) ==
         2 * stretch(l, l->slots, at + period, n);
}

typedef bool alike_fn(const struct siblings *l, size_t at, size_t period, size_t n);

/* The longest stretch that is alike, of at most `most` items: from `at` on, or up to it. */
static size_t goes_on(const struct siblings *l, alike_fn *alike, size_t at, size_t period,
                      size_t most, bool back) {
  size_t yes = 0, no = 1;
  while (no <= most && alike(l, back ? at - no : at, period, no)) {
    yes = no;
    no *= 2;
    ++*l->work;
  }
  if (no > most) no = most + 1;
  while (no - yes > 1) {
    const size_t n = yes + (no - yes) / 2;
    ++*l->work;
    if (alike(l, back ? at - n : at, period, n))
      yes = n;
    else
      no = n;
  }
  return yes;
}

/* The next stretch in [*from, to), of at least a period, that is alike: from *from on it has the
 * length returned; 0: there is none. `low`: it does not begin before. */
static size_t next_alike(const struct siblings *l, alike_fn *alike, size_t low, size_t to,
                         size_t period, size_t *from) {
  for (size_t i = *from; i < to; i += period) {
    ++*l->work;
    if (!alike(l, i, period, 1)) continue;
    const size_t ahead = goes_on(l, alike, i, period, to - i, false);
    const size_t back = goes_on(l, alike, i, period, i - low, true);
    if (ahead + back >= period) {
      *from = i - back;
      return ahead + back;
    }
    i += (ahead - 1) / period * period;
  }
  return 0;
}

/* ---- The best repetition ------------------------------------------------------------------- */

static unsigned depth_of(const struct siblings *l, size_t at, size_t items) {
  unsigned depth = 0;
  for (size_t i = at; i < at + items; ++i)
    if (item_node(l, i)->depth > depth) depth = item_node(l, i)->depth;
  return depth;
}

static bool really(const struct siblings *l, const struct repetition *r) {
  const size_t nodes = nodes_in(l, r->at, r->period);
  const struct ct_node *a = item_node(l, r->at);
  for (size_t i = 1; i < r->copies; ++i) {
    const struct ct_node *b = a + i * nodes;
    if (!same_shape(a, b, nodes)) return false;
    if (i + 1 < r->copies && !same_delta(b - nodes, b, b + nodes, nodes)) return false;
  }
  return true;
}

/* Items [from, to) look like those a period later. The place in there with the most copies, and
 * among those the first. */
static void examine(const struct siblings *l, size_t from, size_t to, size_t period,
                    struct repetition *best) {
  struct repetition r = {.at = from, .period = period, .copies = 2};
  for (size_t at = from, n; at + period < to; at += n) {
    n = next_alike(l, move_alike, at, to - period, period, &at);
    if (n == 0) break;
    if (2 + n / period > r.copies) {
      r.at = at;
      r.copies = 2 + n / period;
    }
  }
  const size_t nodes = nodes_in(l, r.at, period);
  const size_t cost = overhead(item_node(l, r.at), item_node(l, r.at + period), nodes);
  const size_t saved = (r.copies - 1) * nodes;
  if (saved <= cost || saved - cost <= best->gain) return;
  if (l->above + 1 + depth_of(l, r.at, period) > CT_NUM_LOOPS) return;
  r.gain = saved - cost;
  if (really(l, &r)) *best = r;
}

/* The repetition that saves most; false: none saves anything. */
static bool find(const struct siblings *l, struct repetition *best) {
  *best = (struct repetition){0, 0, 0, 0};
  for (size_t period = 1; 2 * period <= l->items; ++period) {
    for (size_t at = 0, n; at + period < l->items; at += n) {
      n = next_alike(l, look_alike, at, l->items - period, period, &at);
      if (n == 0) break;
      if (nodes_in(l, at, n) > best->gain) examine(l, at, at + n, period, best);
    }
  }
  return best->gain > 0;
}

static int roll(struct ct_node *node, size_t *nodes, unsigned above, uint64_t *work);

/* Replaces a repetition by a loop, and rolls its body. */
static int make_loop(struct siblings *l, const struct repetition *r) {
  struct ct_node *first = item_node(l, r->at);
  const size_t body = nodes_in(l, r->at, r->period),
               all = nodes_in(l, r->at, r->period * r->copies);
  struct ct_node *copy = malloc(2 * body * sizeof *copy);
  if (!copy) return CT_ERR_MEMORY;
  memcpy(copy, first, 2 * body * sizeof *copy);
  add_strides(copy, body, 0, copy + body);
  size_t rolled = body;
  const int err = roll(copy, &rolled, l->above + 1, l->work);
  if (!err) {
    memcpy(first + 1, copy, rolled * sizeof *copy);
    first[0] = loop_of(copy, rolled, r->copies);
    ct_node_hash(first);
    memmove(first + 1 + rolled, first + all, (l->nodes - l->item[r->at] - all) * sizeof *first);
    l->nodes -= all - 1 - rolled;
  }
  free(copy);
  return err;
}

/* ---- Loops that were there from the beginning ---------------------------------------------- */

/* Whether `other` is what the nodes of a loop's body do in pass number `pass`, which may be behind
 * its last one, or negative. level: loops between. */
static bool is_pass(const struct ct_node *body, size_t nodes, unsigned level, int64_t pass,
                    const struct ct_node *other) {
  for (size_t i = 0; i < nodes; i += body[i].size) {
    const struct ct_node *a = &body[i], *b = &other[i];
    if (a->count != b->count || a->size != b->size) return false;
    if (a->count) {
      if (!is_pass(a + 1, a->size - 1, level + 1, pass, b + 1)) return false;
      continue;
    }
    if (memcmp(&a->cmd, &b->cmd, sizeof a->cmd) != 0) return false;
    for (unsigned s = 0; s < CT_SLOTS; ++s) {
      const int32_t *stride = a->stride[s];
      const uint32_t at = a->slot[s] + (uint32_t)((int64_t)stride[level] * pass);
      if ((at ^ b->slot[s]) & slot_mask(a, s) ||
          memcmp(stride, b->stride[s], level * sizeof *stride) != 0 ||
          memcmp(stride + level + 1, b->stride[s] + level,
                 (CT_NUM_LOOPS - 1 - level) * sizeof *stride) != 0)
        return false;
    }
  }
  return true;
}

/* Lets a body begin that many passes later. */
static void shift(struct ct_node *body, size_t nodes, unsigned level, int64_t passes) {
  for (size_t i = 0; i < nodes; i += body[i].size) {
    if (body[i].count) {
      shift(body + i + 1, body[i].size - 1, level + 1, passes);
      continue;
    }
    for (unsigned s = 0; s < CT_SLOTS; ++s) {
      const uint32_t by = (uint32_t)((int64_t)body[i].stride[s][level] * passes);
      body[i].slot[s] = (body[i].slot[s] + by) & slot_mask(&body[i], s);
    }
  }
}

/* How many items behind a loop (in front of it) go on as its body would. inside: the body. */
static size_t like_body(const struct siblings *l, size_t loop, const struct siblings *inside,
                        bool back) {
  const size_t p = inside->items;
  const int64_t count = item_node(l, loop)->count;
  for (size_t i = 0;; ++i) {
    if (i >= (back ? loop : l->items - loop - 1)) return i;
    const size_t at = back ? loop - 1 - i : loop + 1 + i, k = back ? p - 1 - i % p : i % p;
    const int64_t pass = back ? -1 - (int64_t)(i / p) : count + (int64_t)(i / p);
    ++*l->work;
    if (nodes_in(l, at, 1) != nodes_in(inside, k, 1) ||
        !is_pass(item_node(inside, k), nodes_in(inside, k, 1), 0, pass, item_node(l, at)))
      return i;
  }
}

/* Takes in the neighbours of a loop that make whole copies, turning the body if it has to. `body`
 * has room for it. Returns how many items it took in front of the loop. */
static size_t absorb(struct siblings *l, size_t loop, const struct siblings *inside,
                     struct ct_node *body) {
  struct ct_node *first = item_node(l, loop);
  const size_t p = inside->items, before = like_body(l, loop, inside, true);
  const size_t more = (before + like_body(l, loop, inside, false)) / p;
  const size_t back = before < more * p ? before : more * p, end = loop + 1 + more * p - back;
  const size_t turned = nodes_in(inside, p - back % p, back % p);
  if (more == 0) return 0;
  memcpy(body, first + first->size - turned, turned * sizeof *body);
  memcpy(body + turned, first + 1, (inside->nodes - turned) * sizeof *body);
  shift(body, turned, 0, -(int64_t)(back / p) - 1);
  shift(body + turned, inside->nodes - turned, 0, -(int64_t)(back / p));
  struct ct_node *to = item_node(l, loop - back);
  *to = *first;
  to->count += (uint32_t)more;
  memcpy(to + 1, body, inside->nodes * sizeof *body);
  ct_node_hash(to);
  memmove(to + 1 + inside->nodes, l->node + l->item[end], (l->nodes - l->item[end]) * sizeof *to);
  l->nodes -= l->item[end] - l->item[loop - back] - 1 - inside->nodes;
  return back;
}

/* absorb() with what it needs. */
static int absorb_around(struct siblings *l, size_t loop, size_t *before) {
  struct ct_node *first = item_node(l, loop);
  struct siblings inside = {.node = first + 1, .nodes = first->size - 1};
  struct ct_node *body = malloc(inside.nodes * sizeof *body);
  inside.item = malloc((inside.nodes + 1) * sizeof *inside.item);
  const int err = body && inside.item ? CT_OK : CT_ERR_MEMORY;
  if (!err) {
    list_items(&inside);
    *before = absorb(l, loop, &inside, body);
    list_items(l);
  }
  free(body);
  free(inside.item);
  return err;
}

/* The neighbours of every such loop, those of the deepest first: in them the others must still be
 * as they are in its body. */
static int absorb_all(struct siblings *l) {
  int err = CT_OK;
  list_items(l);
  for (unsigned depth = CT_NUM_LOOPS; depth > 0; --depth) {
    for (size_t i = 0; i < l->items && !err; ++i) {
      size_t before = 0;
      if (!item_node(l, i)->raw || item_node(l, i)->depth != depth) continue;
      err = absorb_around(l, i, &before);
      i -= before;
    }
  }
  return err;
}

/* Rolls the bodies of such loops. */
static int roll_raw(struct siblings *l) {
  int err = CT_OK;
  for (size_t i = 0; i < l->nodes && !err; i += l->node[i].size) {
    struct ct_node *loop = &l->node[i];
    if (!loop->raw) continue;
    const size_t size = loop->size;
    size_t rolled = size - 1;
    err = roll(loop + 1, &rolled, l->above + 1, l->work);
    memmove(loop + 1 + rolled, loop + size, (l->nodes - i - size) * sizeof *loop);
    l->nodes -= size - 1 - rolled;
    *loop = loop_of(loop + 1, rolled, loop->count);
    ct_node_hash(loop);
  }
  return err;
}

static int roll(struct ct_node *node, size_t *nodes, unsigned above, uint64_t *work) {
  struct siblings l = {.node = node, .nodes = *nodes, .above = above, .work = work};
  struct repetition r;
  int err = CT_OK;
  l.item = malloc((l.nodes + 1) * sizeof *l.item);
  l.shapes = calloc(TABLES * (l.nodes + 1), sizeof *l.shapes);
  if (!l.item || !l.shapes) err = CT_ERR_MEMORY;
  if (!err) {
    l.slots = l.shapes + l.nodes + 1;
    l.power = l.slots + l.nodes + 1;
    l.power[0] = 1;
    for (size_t i = 0; i < l.nodes; ++i)
      l.power[i + 1] = l.power[i] * base;
  }
  if (!err) err = absorb_all(&l);
  while (!err) {
    hash_items(&l);
    if (!find(&l, &r)) break;
    err = make_loop(&l, &r);
  }
  if (!err) err = roll_raw(&l);
  free(l.item);
  free(l.shapes);
  *nodes = l.nodes;
  return err;
}

int ct_roll(struct ct_node *node, size_t *nodes, uint64_t *work) {
  return roll(node, nodes, 0, work);
}
