/* SPDX-License-Identifier: Apache-2.0 */
/* The model of time: VL, VA and VS (rtl/vpu). A step is a tile of a command. */
#include "ct_cycles_impl.h"

/* ---- The front: ct_vpu_front ---- */

/* Brings a command in front, if there is none, and has its tile take its waits; returns in *start
 * the first cycle in which it may ask. False: nothing to do yet. */
static bool front(struct cyc *c, struct cyc_side *s, enum ct_cycles_unit u, uint64_t *start) {
  if (!s->active) {
    const struct ct_cmd *cmd = cyc_front(c, u);
    if (!cmd) return false;
    const uint64_t at = cyc_max(cyc_here(c, u), s->ends);
    s->cmd = *cmd;
    cyc_pop(c, u, at);
    s->active = true;
    s->look = at + 1;
    s->more = u == CYC_VA ? CT_GET(cmd, VA_MORE) : u == CYC_VS ? CT_GET(cmd, VS_MORE) : 0;
  }
  const uint32_t wait[3] = {CT_GET(&s->cmd, ALL_WAIT0), CT_GET(&s->cmd, ALL_WAIT1),
                            CT_GET(&s->cmd, ALL_WAIT2)};
  uint64_t pays = s->look;
  if (!cyc_room(c, CT_GET(&s->cmd, ALL_SIG0)) || !cyc_room(c, CT_GET(&s->cmd, ALL_SIG1)) ||
      !cyc_wait(c, wait, 3, &pays))
    return false;
  *start = cyc_max(pays + 1, s->ready);
  return true;
}

/* A tile is done with: its last row started at `ends`, its signals can be taken from `at` on. */
static void tile_end(struct cyc *c, struct cyc_side *s, uint64_t ends, uint64_t at) {
  const uint32_t sig0 = CT_GET(&s->cmd, ALL_SIG0), sig1 = CT_GET(&s->cmd, ALL_SIG1);
  cyc_signal(c, sig0, at);
  cyc_signal(c, sig1, at + (sig0 == sig1));
  s->ends = ends;
  s->look = ends + 1;
  s->last = cyc_max(s->last, at - 2);
  if (s->more)
    --s->more;
  else
    s->active = false;
  ++c->steps;
}

/* ---- VL ---- */

/* From a start to the first write of a tile register; from the last write to the signal; with 4
 * lanes from the request of a word to the last write of the sixth behind it, before which no
 * seventh is asked for. */
enum { VL_WRITE = 8, VL_SIGNAL = 2, VL_BEHIND = 29 };

bool cyc_vl(struct cyc *c) {
  struct cyc_side *s = &c->vl;
  uint64_t start;
  if (!front(c, s, CYC_VL, &start)) return false;
  const uint64_t rows = CT_GET(&s->cmd, VL_ROWS), fp32 = CT_GET(&s->cmd, VL_MODE) == 0;
  const uint64_t words = fp32 ? 4 : 1; /* of a row */
  uint64_t write = start + rows * words + VL_WRITE - 1;
  uint64_t ends = start + (rows - 1) * words;
  s->ready = ends + words;
  if (c->core->lanes == 4 && !fp32) {
    /* Four writes for each word. */
    write = cyc_max(start + VL_WRITE, c->vl_write + 1) + 4 * rows - 1;
    if (write > VL_BEHIND) s->ready = cyc_max(s->ready, write - VL_BEHIND);
    if (rows > 1 && s->ready > 4) ends = cyc_max(ends, s->ready - 4);
  }
  c->vl_write = write;
  c->out->busy[CT_UNIT_VL] += s->ready - start;
  tile_end(c, s, ends, write + VL_SIGNAL);
  return true;
}

/* ---- VA ---- */

/* From the issue of a row to its signal, the long way and the short one; between starts whose
 * operations may depend on each other; from the last row of an operation that is written late to
 * the start of the next; from one that goes the long way to a short one. */
enum { VA_LONG = 29, VA_SHORT = 6, VA_APART = 31, VA_DRAIN = 26, VA_SHORT_AFTER = 24 };

struct va_kind {
  bool reads_a, reads_q, permutes, copies, turns;
  uint32_t ta, tq, td;
  uint64_t rows, beats; /* of a row */
};

static bool is_tile(uint32_t source) {
  return source == 1 || source == 2;
}

static struct va_kind va_kind(const struct cyc *c, const struct ct_cmd *cmd) {
  const uint32_t tile = CT_GET(cmd, VA_MORE) - c->va.more;
  const uint32_t a = CT_GET(cmd, VA_A_SRC), b = CT_GET(cmd, VA_B_SRC), cc = CT_GET(cmd, VA_C_SRC);
  const uint32_t func = CT_GET(cmd, VA_FUNC), rows = CT_GET(cmd, VA_ROWS);
  const uint32_t fn = c->core->fn_lanes ? c->core->fn_lanes : c->core->lanes == 4 ? 1 : 16;
  struct va_kind k = {.rows = CT_GET(cmd, VA_FULL) ? 16 : rows,
                      .beats = c->core->lanes == 4 ? 4 : 1};
  k.reads_a = a == 0;
  k.reads_q = is_tile(b) || is_tile(cc);
  k.ta = (CT_GET(cmd, VA_TA) + tile) % 16;
  k.td = (CT_GET(cmd, VA_TD) + tile) % 16;
  k.tq = CT_GET(cmd, VA_TQ);
  k.permutes = CT_GET(cmd, VA_ROW_XOR) || CT_GET(cmd, VA_LANE_XOR);
  k.copies = a == 1 && !b && !cc && !CT_GET(cmd, VA_RELU) && !func;
  k.turns = func && fn != c->core->lanes;
  if (k.turns) k.beats *= 4;
  return k;
}

/* The last start of an operation, from its first one on, and the beat that signals. */
static uint64_t va_last_start(const struct cyc *c, const struct va_kind *k) {
  if (c->core->lanes == 16) return 0;
  if (k->turns) return (k->rows - 1) * k->beats;
  return k->rows > 4 ? (k->rows - 4) * k->beats : 0;
}

static uint64_t va_tells(const struct cyc *c, const struct va_kind *k) {
  if (k->turns) return k->rows * k->beats - 1;
  if (c->core->lanes == 16) return 0;
  return (k->rows > 4 ? (k->rows - 4) * 4 : 0) + 1;
}

/* How far behind the last start one that reads tile registers must keep with 4 lanes, row for row.
 */
static uint64_t va_apart(const struct va_kind *k) {
  const uint64_t row = k->turns ? k->rows - 1 : k->rows > 4 ? k->rows - 4 : 0;
  return row >= 8 ? 0 : VA_APART - 4 * row;
}

/* Whether it reads what that one writes. */
static bool reads(const struct va_kind *k, const struct cyc_young *y) {
  return (k->reads_a && (y->any || k->ta == y->to)) || (k->reads_q && (y->any || k->tq == y->to));
}

/* It writes: those behind it that read that keep apart. Before the last one all are taken for one.
 */
static void va_writes(const struct cyc *c, struct cyc_va *v, const struct va_kind *k,
                      uint64_t start, uint64_t last_start) {
  if (c->core->lanes == 4) {
    v->apart = last_start + va_apart(k);
    return;
  }
  const bool any = v->before.until > start + 1;
  v->before = v->last;
  v->before.any = any;
  v->last = (struct cyc_young){.until = start + VA_APART, .to = k->td};
}

/* When it may start, behind the one before. */
static uint64_t va_start(const struct cyc *c, const struct va_kind *k, uint64_t start) {
  const struct cyc_va *v = &c->va_pipe;
  if (k->reads_a || k->reads_q) start = cyc_max(start, v->apart);
  if (reads(k, &v->last)) start = cyc_max(start, v->last.until);
  if (reads(k, &v->before)) start = cyc_max(start, v->before.until);
  if (v->issue && (k->permutes || v->late)) start = cyc_max(start, v->issue + VA_DRAIN);
  return start;
}

bool cyc_va(struct cyc *c) {
  struct cyc_side *s = &c->va;
  struct cyc_va *v = &c->va_pipe;
  uint64_t start;
  if (!front(c, s, CYC_VA, &start)) return false;
  const struct va_kind k = va_kind(c, &s->cmd);
  start = va_start(c, &k, start);
  const uint64_t beats = k.rows * k.beats, last_start = start + va_last_start(c, &k);
  const bool quick = k.copies && (!v->slow || start >= v->slow + VA_SHORT_AFTER);
  const uint32_t sig0 = CT_GET(&s->cmd, ALL_SIG0);
  const bool twice = c->core->lanes == 16 && sig0 & 16 && sig0 == CT_GET(&s->cmd, ALL_SIG1);
  s->ready = start + beats + twice;
  va_writes(c, v, &k, start, last_start);
  v->issue = start + beats;
  v->late = k.turns;
  if (!quick) v->slow = v->issue;
  c->out->busy[CT_UNIT_VA] += s->ready - start;
  tile_end(c, s, last_start, start + 1 + va_tells(c, &k) + (quick ? VA_SHORT : VA_LONG));
  s->last = cyc_max(s->last, v->issue + VA_LONG - 1);
  return true;
}

/* ---- VS ---- */

/* From a slot's read of the tile register to its word at the scratchpad, and to the signal. */
enum { VS_WORD = 9, VS_SIGNAL = 2 };

/* The tile register that it stores now. */
static uint32_t vs_tile(const struct cyc_side *s) {
  return (CT_GET(&s->cmd, VS_TS) + CT_GET(&s->cmd, VS_MORE) - s->more) % 16;
}

/* A square tile that is stored right behind the same tile as FP32 has its exponent from there. */
static bool vs_known(const struct cyc *c, uint64_t start) {
  const struct ct_cmd *cmd = &c->vs.cmd;
  const struct cyc_vs *v = &c->vs_before;
  return CT_GET(cmd, VS_MODE) == 2 && v->fp32 && start == v->end && v->tile == vs_tile(&c->vs) &&
         v->rows == CT_GET(cmd, VS_ROWS);
}

bool cyc_vs(struct cyc *c) {
  struct cyc_side *s = &c->vs;
  uint64_t start;
  if (!front(c, s, CYC_VS, &start)) return false;
  const uint64_t rows = CT_GET(&s->cmd, VS_ROWS), mode = CT_GET(&s->cmd, VS_MODE);
  const bool small = c->core->lanes == 4;
  const uint64_t row = small || mode == 0 ? 4 : 1; /* slots of a pass over a row */
  const uint64_t passes = mode == 0 || (mode == 1 && !small) || vs_known(c, start) ? 1 : 2;
  s->ready = start + rows * row * passes;
  c->vs_before = (struct cyc_vs){
      .fp32 = mode == 0, .tile = vs_tile(s), .rows = (uint32_t)rows, .end = s->ready};
  c->out->busy[CT_UNIT_VS] += s->ready - start;
  tile_end(c, s, s->ready - row, s->ready + VS_WORD + VS_SIGNAL);
  return true;
}
