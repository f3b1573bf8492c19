/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two uses of a tensor meet: boxes of pieces that move with the loops around them. */
#include "coltrain/coltrain.h"
#include "ct_lower_impl.h"

struct span {
  int64_t lo[2], hi[2];
};

/* The stride of an access in the loop that has `outer` loops around it. */
static int64_t stride_of(const struct ct_item *i, const struct ct_access *a, unsigned outer,
                         unsigned d) {
  return a->stride[d][i->depth - 1 - outer];
}

/* What an access touches in all passes of the loops around it but the outermost `keep`, of which it
 * is the first. */
static struct span span_of(const struct ct_sync *s, int32_t item, const struct ct_access *a,
                           unsigned keep) {
  const struct ct_item *i = &s->item[item];
  struct span span = {{a->lo[0], a->lo[1]}, {a->hi[0], a->hi[1]}};
  for (int32_t loop = i->parent; loop >= 0 && s->item[loop].depth >= keep;
       loop = s->item[loop].parent) {
    const struct ct_item *p = &s->item[loop];
    for (unsigned d = 0; d < 2; ++d) {
      const int64_t far = stride_of(i, a, p->depth, d) * ((int64_t)p->n.count - 1);
      *(far > 0 ? &span.hi[d] : &span.lo[d]) += far;
    }
  }
  return span;
}

static bool same_strides(const struct ct_item *i, const struct ct_access *a,
                         const struct ct_item *j, const struct ct_access *b, unsigned outer) {
  return stride_of(i, a, outer, 0) == stride_of(j, b, outer, 0) &&
         stride_of(i, a, outer, 1) == stride_of(j, b, outer, 1);
}

static bool spans_meet(const struct span *a, const struct span *b) {
  return a->lo[0] < b->hi[0] && b->lo[0] < a->hi[0] && a->lo[1] < b->hi[1] && b->lo[1] < a->hi[1];
}

/* Common loops in which both move alike, from the outside. */
static unsigned together(const struct ct_sync *s, int32_t x, const struct ct_access *a, int32_t y,
                         const struct ct_access *b, unsigned common) {
  unsigned outer = 0;
  while (outer < common && same_strides(&s->item[x], a, &s->item[y], b, outer))
    ++outer;
  return outer;
}

bool ct_pieces_meet(const struct ct_sync *s, const struct ct_use *before, int32_t item,
                    const struct ct_access *access) {
  const struct ct_access *a = &s->item[before->item].access[before->access];
  const int32_t parent = ct_common_parent(s, before->item, item);
  const unsigned common = parent < 0 ? 0 : s->item[parent].depth + 1;
  const unsigned keep = together(s, before->item, a, item, access, common);
  const struct span x = span_of(s, before->item, a, keep), y = span_of(s, item, access, keep);
  return spans_meet(&x, &y);
}

/* ---- Between passes ------------------------------------------------------------------------ */

/* The passes k, 1 <= k < count, in which b, moved on by k strides, meets a in this dimension. */
static void narrow(const struct span *a, const struct span *b, int64_t stride, unsigned d,
                   int64_t *from, int64_t *to) {
  while (*from <= *to &&
         !(a->lo[d] < b->hi[d] + stride * *from && b->lo[d] + stride * *from < a->hi[d])) {
    if (stride == 0) {
      *to = 0;
      return;
    }
    /* Too early: jump to where it begins; too late: never. */
    const int64_t ahead =
        stride > 0 ? a->lo[d] - (b->hi[d] + stride * *from) : b->lo[d] + stride * *from - a->hi[d];
    if (ahead < 0) {
      *to = 0;
      return;
    }
    *from += ahead / (stride > 0 ? stride : -stride) + 1;
  }
  while (*from <= *to &&
         !(a->lo[d] < b->hi[d] + stride * *to && b->lo[d] + stride * *to < a->hi[d])) {
    const int64_t over =
        stride > 0 ? b->lo[d] + stride * *to - a->hi[d] : a->lo[d] - (b->hi[d] + stride * *to);
    *to -= over / (stride > 0 ? stride : -stride) + 1;
  }
}

/* Whether a in one pass of the loop meets b in a later one. */
static bool passes_meet(const struct ct_sync *s, int32_t loop, const struct ct_use *u,
                        const struct ct_use *v) {
  const struct ct_access *a = &s->item[u->item].access[u->access];
  const struct ct_access *b = &s->item[v->item].access[v->access];
  const struct ct_item *x = &s->item[u->item], *y = &s->item[v->item];
  const unsigned outer = s->item[loop].depth;
  const unsigned keep = together(s, u->item, a, v->item, b, outer + 1);
  struct span p = span_of(s, u->item, a, keep), q = span_of(s, v->item, b, keep);
  if (keep <= outer) return spans_meet(&p, &q);
  int64_t from = 1, to = (int64_t)s->item[loop].n.count - 1;
  (void)y;
  for (unsigned round = 0; round < 2; ++round)
    for (unsigned d = 0; d < 2 && from <= to; ++d)
      narrow(&p, &q, stride_of(x, a, outer, d), d, &from, &to);
  return from <= to;
}

static bool inside(const struct ct_sync *s, int32_t item, int32_t loop) {
  for (; item >= 0; item = s->item[item].parent)
    if (item == loop) return true;
  return false;
}

static void check_pair(struct ct_sync *s, int32_t loop, const struct ct_use *u,
                       const struct ct_use *v) {
  const struct ct_access *a = &s->item[u->item].access[u->access];
  const struct ct_access *b = &s->item[v->item].access[v->access];
  if (s->item[u->item].q == s->item[v->item].q || !(a->write || b->write)) return;
  ++s->l->work;
  if (passes_meet(s, loop, u, v) || passes_meet(s, loop, v, u))
    ct_lower_fail(s->l, CT_ERR_INTERNAL,
                  "a pass of a loop uses what another one writes of tensor %s: only a ring can",
                  s->l->space[a->space].name);
}

/* Spaces that share their place, used by different queues in one loop. */
static void check_places(struct ct_sync *s, int32_t loop, uint32_t a, uint32_t b) {
  for (int32_t u = s->used[a]; u >= 0; u = s->use[u].next)
    for (int32_t v = s->used[b]; v >= 0 && inside(s, s->use[u].item, loop); v = s->use[v].next)
      if (s->item[s->use[u].item].q != s->item[s->use[v].item].q && inside(s, s->use[v].item, loop))
        ct_lower_fail(s->l, CT_ERR_INTERNAL, "%s and %s share a place and are used in one loop",
                      s->l->space[a].name, s->l->space[b].name);
}

void ct_check_passes(struct ct_sync *s, int32_t loop) {
  for (uint32_t a = 1; a < s->l->spaces; ++a)
    for (uint32_t b = 1; b < a; ++b)
      if (s->overlap[a][b]) check_places(s, loop, a, b);
  for (uint32_t space = 1; space < s->l->spaces; ++space) {
    if (s->l->space[space].slots) continue;
    for (int32_t u = s->used[space]; u >= 0 && !s->l->error; u = s->use[u].next) {
      if (!inside(s, s->use[u].item, loop)) continue;
      for (int32_t v = s->use[u].next; v >= 0; v = s->use[v].next) {
        if (inside(s, s->use[v].item, loop)) check_pair(s, loop, &s->use[u], &s->use[v]);
      }
    }
  }
}
