/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_waits.h"

/* BANK: a read waits for its bank. GAP, GAP_4: until a write of VL has its bank of the tile
 * registers, with 16 lanes and with 4. TURNED: what a tile keeps a buffer of the transposer.
 * ADDER: rows of a short tile wait for the adder. BLOCKED: words of VS until loads go on. */
enum { BURST = 17, AHEAD = 18, READS = 8, BANK = 4, TURNED = 120 };
enum { GAP = 16 + CT_VL_PIPE_16, GAP_4 = 16 + CT_VL_PIPE_4 };
enum { ADDER = 16, REFUSALS = 32, BLOCKED = 64, WORDS_AHEAD = 8 };

struct terms {
  const struct ct_bound_setting *s;
  bool strict; /* PRIORITY, floor 0: training makes way inside the units, too */
  bool small;
  uint64_t more;  /* cycles more that a row takes */
  uint64_t ahead; /* operations, words, bursts of training in a row in front of one */
  uint64_t cap;
};

static struct terms terms_of(const struct ct_bound_setting *s) {
  const uint64_t owed = ct_bound_owed(s->floor, 1);
  struct terms t = {.s = s,
                    .strict = s->policy == CT_PRIORITY && s->floor == 0,
                    .small = s->vpu_lanes == 4,
                    .more = 16 / s->array_cols - 1,
                    .ahead = s->policy == CT_PRIORITY ? owed : 1,
                    .cap = s->train_cap};
  if (s->policy == CT_SLACK && owed > 1) t.ahead = owed;
  return t;
}

static uint64_t wait(const struct terms *t, enum ct_unit unit) {
  return ct_bound_wait(unit, t->s);
}

/* The beats that are on their way when loads stop for VS. */
static uint64_t outstanding(const struct terms *t) {
  return BURST * (READS + t->cap);
}

/* A read of so many bursts. Without strict each waits for those that came first, and loads stop
 * once in 32 words that have kept VS from its bank, until 64 words of VS are written. */
static uint64_t read(const struct terms *t, uint64_t bursts) {
  uint64_t cycles = wait(t, CT_UNIT_READ) + AHEAD * t->ahead * bursts;
  if (t->strict) return cycles;
  const uint64_t beats = BURST * (1 + t->ahead) * bursts + outstanding(t);
  const uint64_t pause = outstanding(t) + BLOCKED * (t->small ? 8 : 2);
  return cycles + pause * (1 + beats / REFUSALS);
}

static uint64_t bursts_of(const struct ct_cmd *cmd) {
  return (uint64_t)CT_GET(cmd, DMA_N1) * CT_GET(cmd, DMA_N2) *
         ((CT_GET(cmd, DMA_NB) + 15) / 16 + 1);
}

/* Pieces of 16 words go through the reader, one of training's after the other in front of each. */
static uint64_t store(const struct terms *t, const struct ct_cmd *cmd) {
  const uint64_t bursts = bursts_of(cmd), words = 16 * bursts;
  const uint64_t pieces = t->strict ? 0 : (1 + t->ahead) * 16 * (1 + BANK) * bursts + BANK * words;
  return wait(t, CT_UNIT_WRITE) * bursts + pieces;
}

static uint64_t product(const struct terms *t, const struct ct_cmd *cmd) {
  const uint64_t kt = CT_GET(cmd, MM_KT), nt = CT_GET(cmd, MM_NT), rows = CT_GET(cmd, MM_ROWS);
  const uint64_t row_tiles = kt * nt * ((rows + 15) / 16);
  const uint64_t n = kt * nt * rows, words = CT_GET(cmd, MM_A_TRANS) ? 16 * row_tiles : n;
  const bool whole = t->s->policy == CT_FCFS || t->s->policy == CT_ROUND_ROBIN;
  uint64_t cycles = wait(t, CT_UNIT_MXU) * (whole ? row_tiles : n) + t->more * n;
  if (CT_GET(cmd, MM_A_TRANS)) cycles += TURNED * (1 + t->ahead) * row_tiles;
  if (t->strict) return cycles;
  /* Words of A wait for the port and for their banks, those of B for their banks. */
  cycles += words * (BANK + t->ahead * (1 + BANK)) + BANK * 16 * kt * nt;
  return cycles + ADDER * row_tiles;
}

/* What a VL loses under way; those of training that are in front of it, too. */
static uint64_t vl_loss(const struct terms *t, uint64_t words, uint64_t writes) {
  const uint64_t front = t->small ? CT_VL_AHEAD_4 : CT_VL_AHEAD_16;
  if (t->strict) return (t->small ? CT_VL_PIPE_4 : CT_VL_PIPE_16) + front;
  return BANK * (words + WORDS_AHEAD) + (writes + front) * (t->small ? GAP_4 : GAP);
}

/* VL, VA and VS wait row by row. */
static uint64_t slots(const struct terms *t, enum ct_unit unit, uint64_t n) {
  return ct_bound_slots(unit, t->s, n);
}

static uint64_t tile_load(const struct terms *t, const struct ct_cmd *cmd) {
  const uint64_t rows = CT_GET(cmd, VL_ROWS), words = CT_GET(cmd, VL_MODE) ? rows : 4 * rows;
  const uint64_t own = slots(t, CT_UNIT_VL, 16) + vl_loss(t, words, t->small ? 4 * rows : rows);
  return t->strict ? own : own + (1 + t->ahead) * vl_loss(t, 64, t->small ? 64 : 16);
}

static uint64_t tile_store(const struct terms *t, const struct ct_cmd *cmd) {
  const uint64_t loads = t->strict ? BURST * t->cap : 96 + 2 * outstanding(t);
  const uint64_t loss = CT_VS_AHEAD + loads;
  const uint64_t own = slots(t, CT_UNIT_VS, CT_GET(cmd, VS_MODE) ? 32 : 16) + loss;
  return (1 + CT_GET(cmd, VS_MORE)) * (t->strict ? own : own + (1 + t->ahead) * loss);
}

/* VA starts nothing while a write of VL waits for the bank. */
static uint64_t arithmetic(const struct terms *t, const struct ct_cmd *cmd) {
  const uint64_t n = t->small ? 16 : 1;
  const uint64_t gap = t->strict ? 0 : (1 + n + t->ahead) * (t->small ? GAP_4 : GAP);
  return (1 + CT_GET(cmd, VA_MORE)) * (slots(t, CT_UNIT_VA, n) + gap);
}

static uint64_t operation(const struct terms *t, const struct ct_cmd *cmd) {
  switch (CT_GET(cmd, ALL_OP)) {
    case CT_OP_LD:
      return read(t, bursts_of(cmd));
    case CT_OP_ST:
      return store(t, cmd);
    case CT_OP_MM:
      return product(t, cmd);
    case CT_OP_VL:
      return tile_load(t, cmd);
    case CT_OP_VA:
      return arithmetic(t, cmd);
    case CT_OP_VS:
      return tile_store(t, cmd);
    default:
      return 0;
  }
}

uint64_t ct_waits_job(const struct ct_gen_prog *prog, const struct ct_bound_setting *s) {
  const struct terms t = terms_of(s);
  /* Descriptor and program; each may be cut at a page. */
  uint64_t cycles = read(&t, 2) + read(&t, prog->count * CT_CMD_BYTES / 256 + 2);
  for (unsigned i = 0; i < prog->count; ++i)
    cycles += operation(&t, &prog->cmds[i]);
  return cycles;
}
