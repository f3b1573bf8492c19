/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of time: MM (rtl/mxu). A step is a tile of a k step: up to 16 rows. Rows of A are asked
 * for ahead, as far as the row buffer has room; weight tiles one ahead of the shadow tile.
 */
#include "ct_cycles_impl.h"

/* From the request of a word of A to its row, and (transposed) from the last of its tile to the
 * first row's way out of the transposer, from there to the array, and until its buffer is free. */
enum { ROW_HERE = 4, TURN_OUT = 5, TURN_ROW = 2, TURN_FREE = 12 };

/* A k step's operands are read: from its last word's request to its signal. */
enum { SIG0 = 6, POPPED = 4 };

/* An output tile's signal, from its last row on: with 16 rows, with fewer. */
enum { SIG1_WHOLE = 3, SIG1 = 16 };

/* ---- Weight tiles (ct_mxu_bload, ct_mxu_btile) ---- */

/* From a word's request to the buffer, and until its place there is given back. */
enum { WORD_HERE = 4, WORD_FREE = 2 };

static void weights_read(struct cyc_weights *b, uint64_t from, bool trans) {
  b->ask0 = cyc_max(cyc_max(b->ask15 + 1, from), b->gone0 + WORD_FREE);
  const uint64_t old2 = b->gone2, old15 = b->gone15, turn = b->turn;
  b->ask15 = cyc_max(b->ask0 + 15, cyc_max(old15, old2 + 13) + WORD_FREE);
  b->gone0 = cyc_max(b->ask0 + WORD_HERE, old15 + 1);
  if (trans) {
    /* Into the transposer, behind the columns of the tile before; out when the shadow is free. */
    b->gone0 = cyc_max(b->gone0, turn + 2);
    b->gone2 = b->gone0 + 2;
    b->gone15 = cyc_max(b->gone0 + 15, b->ask15 + WORD_HERE);
    b->turn = cyc_max(b->gone15 + 2, b->take + 1);
    b->ready = b->turn + 19;
  } else {
    b->gone2 = cyc_max(b->gone0 + 2, b->take + 1);
    b->gone15 = cyc_max(b->gone2 + 13, b->ask15 + WORD_HERE);
    b->ready = b->gone15 + 2;
  }
}

/* ---- Rows ---- */

/* The row buffer has `room` places for what comes. */
static uint64_t places(const struct cyc_mm *mm, uint32_t room) {
  const uint64_t need = mm->row + room;
  return need > CYC_ROWS ? mm->take[(need - 1) % CYC_ROWS] + 1 : 0;
}

/* A tile of A to be transposed: returns when its first row can enter the array. */
static uint64_t turned_tile(const struct cyc *c, struct cyc_mm *mm, uint64_t from, uint32_t rows) {
  const uint64_t first =
      cyc_max(cyc_max(mm->ask + 1, from), cyc_max(places(mm, 16), mm->turned[0] + TURN_FREE));
  mm->ask = first + 15;
  const uint64_t out = cyc_max(mm->ask + TURN_OUT, mm->turned_end);
  mm->turned[0] = mm->turned[1];
  mm->turned[1] = out;
  mm->turned_end = out + rows;
  mm->turning = true;
  return out + TURN_ROW + c->core->walks;
}

/* A word of A was asked for when a row had been taken. */
static void pace(struct cyc_mm *mm, uint64_t parts) {
  struct cyc_paced *p = &mm->paced[(mm->paces + CYC_PACED - 1) % CYC_PACED];
  if (!mm->paces || mm->ask > p->last + parts) {
    p = &mm->paced[mm->paces++ % CYC_PACED];
    p->first = mm->ask;
  }
  p->last = mm->ask;
}

bool cyc_mm_paced(const struct cyc_mm *mm, uint64_t at) {
  for (uint64_t i = 1; i <= mm->paces && i <= CYC_PACED; ++i) {
    const struct cyc_paced *p = &mm->paced[(mm->paces - i) % CYC_PACED];
    if (at > p->last) return false;
    if (at >= p->first) return true;
  }
  return false;
}

/* The rows of a tile enter the array, from `from` on. Returns the first's cycle. */
static uint64_t take_rows(const struct cyc *c, struct cyc_mm *mm, uint64_t from, uint64_t asked,
                          uint32_t rows, bool trans) {
  uint64_t here = 0, first = 0;
  if (trans) here = turned_tile(c, mm, asked, rows);
  if (!trans && mm->turning) {
    asked = cyc_max(asked, mm->turned_end + TURN_ROW + c->core->walks);
    mm->turning = false;
  }
  for (uint32_t i = 0; i < rows; ++i) {
    if (!trans) {
      const uint64_t next = cyc_max(mm->ask + 1, asked), room = places(mm, 1);
      mm->ask = cyc_max(next, room);
      if (room > next) pace(mm, c->parts);
      here = mm->ask + ROW_HERE;
    }
    uint64_t at = cyc_max(here, i ? 0 : from);
    if (mm->row) at = cyc_max(at, mm->last + c->parts);
    here += trans;
    if (!i) first = at;
    mm->last = at;
    mm->take[mm->row++ % CYC_ROWS] = at;
  }
  return first;
}

/* ---- Commands ---- */

/* WPIX and WTAP are executed as they leave the queue. */
static bool mm_load(struct cyc *c) {
  struct cyc_mm *mm = &c->mm;
  const struct ct_cmd *cmd = cyc_front(c, CYC_MM);
  if (!cmd) return false;
  const uint64_t at = cyc_max(cyc_here(c, CYC_MM), mm->slot);
  mm->cmd = *cmd;
  cyc_pop(c, CYC_MM, at);
  mm->slot = at + 1;
  if (CT_GET(cmd, ALL_OP) != CT_OP_MM) return true;
  mm->active = true;
  mm->permitted = false;
  mm->load = at;
  mm->permit = at;
  mm->rows = CT_GET(cmd, MM_ROWS);
  mm->tiles = (mm->rows + 15) / 16;
  mm->k = mm->n = mm->m = 0;
  /* Both streams take it when they are through with the one before. */
  mm->slot = cyc_max(mm->load + 1, cyc_max(mm->ask, mm->b.ask15)) + 1;
  return true;
}

/* A k step takes its semaphores; false: they have not been signalled. */
static bool mm_permit(struct cyc *c) {
  struct cyc_mm *mm = &c->mm;
  const uint32_t wait[2] = {CT_GET(&mm->cmd, ALL_WAIT0), CT_GET(&mm->cmd, ALL_WAIT1)};
  uint64_t at = mm->permit + 1;
  if (mm->ksteps >= CYC_KSTEPS) at = cyc_max(at, mm->signalled[mm->ksteps % CYC_KSTEPS] + 1);
  if (!cyc_room(c, CT_GET(&mm->cmd, ALL_SIG0)) || !cyc_wait(c, wait, 2, &at)) return false;
  mm->permit = at;
  mm->permitted = true;
  return true;
}

/* All words of a k step have been asked for. */
static void mm_kstep_end(struct cyc *c) {
  struct cyc_mm *mm = &c->mm;
  const uint64_t last = cyc_max(mm->ask, mm->b.ask15);
  uint64_t popped = last + POPPED;
  if (mm->ksteps) popped = cyc_max(popped, mm->signalled[(mm->ksteps - 1) % CYC_KSTEPS] + 1);
  mm->signalled[mm->ksteps++ % CYC_KSTEPS] = popped;
  cyc_signal(c, CT_GET(&mm->cmd, ALL_SIG0), popped + SIG0 - POPPED);
  mm->n = 0;
  mm->permitted = false;
  if (++mm->k == CT_GET(&mm->cmd, MM_KT)) {
    mm->active = false;
    mm->slot = cyc_max(mm->slot, mm->permit + 1);
  }
}

static void mm_work(struct cyc *c) {
  const struct cyc_mm *mm = &c->mm;
  const uint64_t load = CT_GET(&mm->cmd, MM_B_TRANS) ? 20 : 16, rows = mm->rows * c->parts;
  c->out->busy[CT_UNIT_MXU] += cyc_max(load, rows);
  c->out->rows += mm->rows;
}

bool cyc_mm(struct cyc *c) {
  struct cyc_mm *mm = &c->mm;
  if (!mm->active) return mm_load(c);
  const uint32_t sig1 = CT_GET(&mm->cmd, ALL_SIG1), wait2 = CT_GET(&mm->cmd, ALL_WAIT2);
  if (!cyc_room(c, sig1) || (!mm->permitted && !mm_permit(c))) return false;
  uint64_t from = 0;
  if (mm->k == 0 && wait2 & 16) {
    if (!cyc_wait(c, &wait2, 1, &from)) return false;
    /* It is taken on the way to the head of the row buffer. */
    from = cyc_max(from, mm->last) + 1;
  }
  const uint64_t asked = cyc_max(mm->permit + 1, mm->load + 2);
  if (mm->m == 0) {
    mm_work(c);
    weights_read(&mm->b, asked, CT_GET(&mm->cmd, MM_B_TRANS));
    from = cyc_max(from, mm->b.ready);
  }
  const uint32_t left = mm->rows - 16 * mm->m, rows = left < 16 ? left : 16;
  const uint64_t first = take_rows(c, mm, from, asked, rows, CT_GET(&mm->cmd, MM_A_TRANS));
  if (mm->m == 0) mm->b.take = first;
  c->steps += rows;
  if (mm->k + 1 == CT_GET(&mm->cmd, MM_KT))
    cyc_signal(c, sig1, mm->last + (rows == 16 ? SIG1_WHOLE : SIG1 + c->parts - 1));
  if (++mm->m < mm->tiles) return true;
  mm->m = 0;
  if (++mm->n == CT_GET(&mm->cmd, MM_NT)) mm_kstep_end(c);
  return true;
}
