/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_racecheck.h"

#include "ct_walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum unit { LD, ST, MM, VL, VA, VS, UNITS };

/* What can be known complete: steps of LD and ST, operand reads of MM (by k step), tiles of MM, VPU
 * operations. Counts start at 1. */
enum dim { D_LD, D_ST, D_MM_READ, D_MM_TILE, D_VL, D_VA, D_VS, DIMS };

static const enum unit unit_of_dim[DIMS] = {LD, ST, MM, MM, VL, VA, VS};

struct clock {
  uint32_t t[DIMS];
};

/* The latest access of each kind, as counts of the dimension. */
struct place {
  uint32_t t[DIMS]; /* 0: none */
};

/* Who signalled or waited last, and what of it: complete when its dimension has come so far. */
struct turn {
  bool taken;
  enum dim dim;
  uint32_t at;
};

struct sem {
  struct clock *fifo;
  size_t head, count, room;
  struct turn giver, taker;
};

struct queue {
  struct ct_cmd *cmd; /* dispatched, not finished; cmd[0] is at work */
  size_t count;
  bool begun;
  uint32_t step, tile;
  struct ct_walk_place at; /* MM with Walk: the k step */
  struct clock knows;      /* MM: its operand reads */
  struct clock tiles;      /* MM: its tiles; what they wait for, reads further on do not */
};

struct check {
  const struct ct_racecheck *p;
  char *why;
  size_t why_size;
  bool failed;
  uint32_t pc, r[CT_NUM_REGS];
  struct {
    uint32_t first, left;
  } loop[CT_NUM_LOOPS];
  unsigned depth;
  bool ended;
  struct sem sem[CT_NUM_SEMS];
  struct queue q[UNITS];
  struct ct_walk walk; /* of MM: as WPIX and WTAP have said */
  unsigned walks;      /* WPIX (bit 0), WTAP (bit 1) have been dispatched */
  uint32_t done[DIMS]; /* how far each dimension has come */
  struct place *spm_read, *spm_written, *dram_read, *dram_written;
  struct place acc_read[CT_ACC_TILES], acc_written[CT_ACC_TILES];
  struct place reg_read[CT_TILE_REGS], reg_written[CT_TILE_REGS];
  struct ct_racecheck_stats stats;
};

static bool fail(struct check *c, const char *format, ...) {
  if (c->failed) return false;
  c->failed = true;
  va_list args;
  va_start(args, format);
  vsnprintf(c->why, c->why_size, format, args);
  va_end(args);
  return false;
}

/* ---- Semaphores ---- */

static void join(struct clock *a, const struct clock *b) {
  for (int d = 0; d < DIMS; ++d)
    if (b->t[d] > a->t[d]) a->t[d] = b->t[d];
}

/* What must be known of the one before. */
static bool may_follow(const struct turn *before, const struct clock *knows) {
  return !before->taken || knows->t[before->dim] >= before->at;
}

static void give(struct check *c, enum dim d, uint32_t field, const struct clock *clock) {
  if (!(field & 16)) return;
  struct sem *s = &c->sem[field & 15];
  /* The same again, or one that knows the one before to be complete. MM signals reads of its next
   * command before tiles of this one. */
  if (s->giver.dim != d && !may_follow(&s->giver, clock))
    fail(c, "semaphore %u is signalled by two queues", field & 15);
  s->giver = (struct turn){true, d, clock->t[d]};
  if (s->count == 255) fail(c, "semaphore %u passes 255", field & 15);
  if (s->head + s->count == s->room) {
    if (s->count) memmove(s->fifo, s->fifo + s->head, s->count * sizeof *s->fifo);
    s->head = 0;
    if (s->count + 256 > s->room) {
      s->room = s->count + 512;
      s->fifo = realloc(s->fifo, s->room * sizeof *s->fifo);
    }
  }
  s->fifo[s->head + s->count++] = *clock;
}

/* What goes on in a dimension knows this of the others. */
static struct clock *known_to(struct check *c, enum dim d) {
  struct queue *q = &c->q[unit_of_dim[d]];
  return d == D_MM_TILE ? &q->tiles : &q->knows;
}

/* Takes one of each, or none. MM takes in the order of the program, for reads and tiles alike. */
static bool take(struct check *c, enum dim d, const uint32_t *field, unsigned n) {
  for (unsigned i = 0; i < n; ++i) {
    struct sem *s = &c->sem[field[i] & 15];
    if (!(field[i] & 16)) continue;
    if (unit_of_dim[s->taker.dim] != unit_of_dim[d] && !may_follow(&s->taker, known_to(c, d)))
      fail(c, "semaphore %u is awaited by two queues", field[i] & 15);
    if (s->count == 0) return false;
  }
  for (unsigned i = 0; i < n; ++i) {
    if (!(field[i] & 16)) continue;
    struct sem *s = &c->sem[field[i] & 15];
    s->taker = (struct turn){true, d, c->done[d] + 1};
    join(known_to(c, d), &s->fifo[s->head]);
    ++s->head;
    --s->count;
  }
  return true;
}

/* ---- Accesses ---- */

static const char *const unit_name[UNITS] = {"LD", "ST", "MM", "VL", "VA", "VS"};

static bool own(enum unit u, int d) {
  return unit_of_dim[d] == u;
}

/* Whether every access in `before` is known to be complete to unit u, or its own. */
static bool ordered(enum unit u, const struct clock *knows, const struct place *before) {
  for (int d = 0; d < DIMS; ++d)
    if (before->t[d] > knows->t[d] && !own(u, d)) return false;
  return true;
}

static void race(struct check *c, enum dim by, const char *what, uint32_t at, bool write,
                 const struct place *before) {
  const enum unit u = unit_of_dim[by];
  const struct clock *knows = known_to(c, by);
  static const char *const dim[DIMS] = {"LD", "ST", "MM reads", "MM tiles", "VL", "VA", "VS"};
  for (int d = 0; d < DIMS; ++d)
    if (before->t[d] > knows->t[d] && !own(u, d))
      fail(c, "race: %s number %u %s %s %u, which %s number %u uses (known: %u)", unit_name[u],
           c->done[u == MM ? D_MM_READ : by] + 1, write ? "writes" : "reads", what, at, dim[d],
           before->t[d], knows->t[d]);
}

static void access(struct check *c, enum unit u, enum dim d, uint32_t count, struct place *read,
                   struct place *written, bool write, const char *what, uint32_t at) {
  const struct clock *knows = known_to(c, d);
  if (!ordered(u, knows, written)) race(c, d, what, at, write, written);
  if (write && !ordered(u, knows, read)) race(c, d, what, at, write, read);
  (write ? written : read)->t[d] = count;
}

static bool is_written(const struct place *p) {
  for (int d = 0; d < DIMS; ++d)
    if (p->t[d]) return true;
  return false;
}

static void spm(struct check *c, enum unit u, enum dim d, uint32_t count, uint32_t at, bool write) {
  at &= 0xfffff;
  if (at >= c->p->spm_words) {
    fail(c, "%s accesses SPM word %u outside the window", unit_name[u], at);
    return;
  }
  if (!write && !c->p->spm_holds_data && !is_written(&c->spm_written[at]))
    fail(c, "%s reads SPM word %u, which nothing has written", unit_name[u], at);
  access(c, u, d, count, &c->spm_read[at], &c->spm_written[at], write, "SPM word", at);
}

static void dram(struct check *c, enum unit u, enum dim d, uint32_t count, uint32_t at,
                 bool write) {
  if (at >= c->p->dram_units) {
    fail(c, "%s accesses DRAM unit %u outside the memory", unit_name[u], at);
    return;
  }
  access(c, u, d, count, &c->dram_read[at], &c->dram_written[at], write, "DRAM unit", at);
}

static void reg(struct check *c, enum unit u, enum dim d, uint32_t at, bool write) {
  access(c, u, d, c->done[d] + 1, &c->reg_read[at], &c->reg_written[at], write, "tile register",
         at);
}

/* ---- Units: one step; false: it has to wait ---- */

static void finish(struct check *c, enum unit u) {
  struct queue *q = &c->q[u];
  memmove(q->cmd, q->cmd + 1, --q->count * sizeof *q->cmd);
  q->begun = false;
  q->step = q->tile = 0;
}

/* A step with Comp. Its groups are ordered by their index unit, which a load that frees them takes
 * away from all others; which pages they lie in is no matter of order. */
static void comp(struct check *c, enum unit u, const struct queue *q, uint32_t n) {
  const struct ct_cmd *cmd = &q->cmd[0];
  const enum dim d = u == LD ? D_LD : D_ST;
  const uint32_t sa = CT_GET(cmd, DMA_SPM) + q->step * (uint32_t)CT_GETS(cmd, DMA_S2);
  dram(c, u, d, n, CT_GET(cmd, DMA_DRAM) + q->step * (uint32_t)CT_GETS(cmd, DMA_D2),
       u == ST || CT_GET(cmd, DMA_FREE));
  for (uint32_t i = 0; i < (CT_GET(cmd, DMA_N1) & 7) && !c->failed; ++i)
    for (uint32_t j = 0; j < CT_GET(cmd, DMA_NB); ++j)
      spm(c, u, d, n, sa + i * (uint32_t)CT_GETS(cmd, DMA_S1) + j, u == LD);
}

static void runs(struct check *c, enum unit u, const struct queue *q, uint32_t n) {
  const struct ct_cmd *cmd = &q->cmd[0];
  const enum dim d = u == LD ? D_LD : D_ST;
  const uint32_t hdr = CT_GET(cmd, DMA_HDR), nb = CT_GET(cmd, DMA_NB);
  const bool gather = CT_GET(cmd, DMA_GATHER);
  for (uint32_t i = 0; i < CT_GET(cmd, DMA_N1) && !c->failed; ++i) {
    const uint32_t step_at = !gather   ? q->step * (uint32_t)CT_GETS(cmd, DMA_D2)
                             : u == LD ? c->p->input[q->step]
                                       : c->p->output[q->step];
    const uint32_t da = CT_GET(cmd, DMA_DRAM) + step_at + i * (uint32_t)CT_GETS(cmd, DMA_D1);
    const uint32_t sa = CT_GET(cmd, DMA_SPM) + q->step * (uint32_t)CT_GETS(cmd, DMA_S2) +
                        i * (uint32_t)CT_GETS(cmd, DMA_S1);
    for (uint32_t j = 0; j < nb + hdr; ++j)
      dram(c, u, d, n, da + j, u == ST);
    for (uint32_t j = 0; j < nb; ++j)
      spm(c, u, d, n, sa + j * CT_GET(cmd, DMA_S0), u == LD);
    *(u == LD ? &c->stats.ld_beats : &c->stats.st_beats) += nb + hdr;
  }
}

static bool dma(struct check *c, enum unit u) {
  struct queue *q = &c->q[u];
  const struct ct_cmd *cmd = &q->cmd[0];
  const enum dim d = u == LD ? D_LD : D_ST;
  const uint32_t w[3] = {CT_GET(cmd, ALL_WAIT0), CT_GET(cmd, ALL_WAIT1), CT_GET(cmd, ALL_WAIT2)};
  if (!take(c, d, w, q->step ? 1 : 3)) return false;
  const uint32_t n = c->done[d] + 1;
  const bool gather = CT_GET(cmd, DMA_GATHER);
  const uint32_t steps = gather ? c->p->batch : CT_GET(cmd, DMA_N2);
  if (gather && c->p->batch == 0) return fail(c, "%s gathers outside a batch", unit_name[u]);
  (CT_GET(cmd, DMA_COMP) ? comp : runs)(c, u, q, n);
  c->done[d] = n;
  struct clock clock = q->knows;
  clock.t[d] = n;
  give(c, d, CT_GET(cmd, ALL_SIG0), &clock);
  if (++q->step == steps) {
    give(c, d, CT_GET(cmd, ALL_SIG1), &clock);
    finish(c, u);
  }
  return true;
}

/* The words of row tile m of A. */
static void mm_a(struct check *c, const struct ct_cmd *cmd, uint32_t k, uint32_t m, uint32_t rows) {
  const uint32_t a =
      CT_GET(cmd, MM_A) + m * (uint32_t)CT_GETS(cmd, MM_AM) + k * (uint32_t)CT_GETS(cmd, MM_AK);
  const bool trans = CT_GET(cmd, MM_A_TRANS), walk = CT_GET(cmd, MM_WALK);
  uint32_t word[128];
  if (walk) ct_walk_rows(&c->walk, &c->q[MM].at, trans, 16 * m + 16, word);
  for (uint32_t i = 0; i < (trans ? 16 : rows); ++i) {
    const uint32_t at = walk ? word[16 * m + i] : a + i;
    if (!walk || at != CT_WALK_PAD) spm(c, MM, D_MM_READ, c->done[D_MM_READ] + 1, at, false);
  }
}

static bool mm_tile(struct check *c, const struct ct_cmd *cmd, uint32_t k, uint32_t n, uint32_t m) {
  struct queue *q = &c->q[MM];
  const uint32_t w2 = CT_GET(cmd, ALL_WAIT2), step = c->done[D_MM_READ] + 1;
  const uint32_t left = CT_GET(cmd, MM_ROWS) - 16 * m, rows = left < 16 ? left : 16;
  join(&q->tiles, &q->knows); /* a tile needs the reads of its k steps */
  if (k == 0 && !take(c, D_MM_TILE, &w2, 1)) return false;
  const uint32_t b =
      CT_GET(cmd, MM_B) + n * (uint32_t)CT_GETS(cmd, MM_BN) + k * (uint32_t)CT_GETS(cmd, MM_BK);
  for (uint32_t i = 0; i < 16 && m == 0; ++i)
    spm(c, MM, D_MM_READ, step, b + i, false);
  mm_a(c, cmd, k, m, rows);
  const uint32_t tile = CT_GET(cmd, MM_ACC) + n * CT_GET(cmd, MM_ACC_N) + m;
  const uint32_t count = ++c->done[D_MM_TILE];
  access(c, MM, D_MM_TILE, count, &c->acc_read[tile], &c->acc_written[tile], true, "ACC tile",
         tile);
  c->stats.rows += rows;
  if (k + 1 == CT_GET(cmd, MM_KT)) {
    struct clock clock = q->tiles;
    clock.t[D_MM_TILE] = count;
    /* The step's operands have been read when its last tile is final. */
    clock.t[D_MM_READ] = n + 1 == CT_GET(cmd, MM_NT) && left <= 16 ? step : step - 1;
    give(c, D_MM_TILE, CT_GET(cmd, ALL_SIG1), &clock);
  }
  return true;
}

/* WPIX, WTAP. */
static bool walk(struct check *c) {
  ct_walk_set(&c->walk, &c->q[MM].cmd[0]);
  finish(c, MM);
  return true;
}

static bool mm(struct check *c) {
  struct queue *q = &c->q[MM];
  const struct ct_cmd *cmd = &q->cmd[0];
  if (CT_GET(cmd, ALL_OP) != CT_OP_MM) return walk(c);
  if (q->step == 0 && !q->begun) q->at = ct_walk_start(&c->walk, cmd);
  const uint32_t w[2] = {CT_GET(cmd, ALL_WAIT0), CT_GET(cmd, ALL_WAIT1)};
  const uint32_t mt = (CT_GET(cmd, MM_ROWS) + 15) / 16, tiles = mt * CT_GET(cmd, MM_NT);
  if (!q->begun && !take(c, D_MM_READ, w, 2)) return false;
  bool moved = !q->begun;
  q->begun = true;
  for (; q->tile < tiles && !c->failed; ++q->tile, moved = true)
    if (!mm_tile(c, cmd, q->step, q->tile / mt, q->tile % mt)) return moved;
  struct clock clock = q->knows;
  clock.t[D_MM_READ] = ++c->done[D_MM_READ];
  give(c, D_MM_READ, CT_GET(cmd, ALL_SIG0), &clock);
  q->begun = false;
  q->tile = 0;
  if (CT_GET(cmd, MM_WALK)) ct_walk_step(&c->walk, &q->at, CT_GET(cmd, MM_A_TRANS));
  if (++q->step == CT_GET(cmd, MM_KT)) finish(c, MM);
  return true;
}

static void vl_vs_words(struct check *c, enum unit u, enum dim d, uint32_t at, uint32_t mode,
                        uint32_t rows, uint32_t stride) {
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t w = 0; w < (mode == 0 ? 4 : 1); ++w)
      spm(c, u, d, c->done[d] + 1, at + r * stride + w, u == VS);
}

static void va(struct check *c, const struct ct_cmd *cmd) {
  const uint32_t ta = CT_GET(cmd, VA_TA), b = CT_GET(cmd, VA_B_SRC), src = CT_GET(cmd, VA_C_SRC);
  if (CT_GET(cmd, VA_A_SRC) == 0) reg(c, VA, D_VA, ta, false);
  if (CT_GET(cmd, VA_A_SRC) == 1)
    access(c, VA, D_VA, c->done[D_VA] + 1, &c->acc_read[ta], &c->acc_written[ta], false, "ACC tile",
           ta);
  if (b == 1 || b == 2 || src == 1 || src == 2) reg(c, VA, D_VA, CT_GET(cmd, VA_TQ), false);
  reg(c, VA, D_VA, CT_GET(cmd, VA_TD), true);
}

/* Turns a repeated VA or VS into what is left of it; false: nothing is. */
static bool next_tile(struct ct_cmd *cmd, enum unit u) {
  const uint32_t more = u == VA ? CT_GET(cmd, VA_MORE) : u == VS ? CT_GET(cmd, VS_MORE) : 0;
  if (more == 0) return false;
  if (u == VA) {
    ct_cmd_set(cmd, CT_F_VA_MORE, more - 1);
    ct_cmd_set(cmd, CT_F_VA_TA, (CT_GET(cmd, VA_TA) + 1) % 16);
    ct_cmd_set(cmd, CT_F_VA_TD, (CT_GET(cmd, VA_TD) + 1) % 16);
  } else {
    ct_cmd_set(cmd, CT_F_VS_MORE, more - 1);
    ct_cmd_set(cmd, CT_F_VS_TS, (CT_GET(cmd, VS_TS) + 1) % 16);
    ct_cmd_set(cmd, CT_F_VS_SPM, CT_GET(cmd, VS_SPM) + CT_GET(cmd, VS_TILE_STRIDE));
  }
  return true;
}

static bool vpu(struct check *c, enum unit u) {
  struct ct_cmd *cmd = &c->q[u].cmd[0];
  const enum dim d = u == VL ? D_VL : u == VA ? D_VA : D_VS;
  const uint32_t w[3] = {CT_GET(cmd, ALL_WAIT0), CT_GET(cmd, ALL_WAIT1), CT_GET(cmd, ALL_WAIT2)};
  if (!take(c, d, w, 3)) return false;
  if (u == VL) {
    vl_vs_words(c, u, d, CT_GET(cmd, VL_SPM), CT_GET(cmd, VL_MODE), CT_GET(cmd, VL_ROWS),
                CT_GET(cmd, VL_ROW_STRIDE));
    reg(c, u, d, CT_GET(cmd, VL_TD), true);
  } else if (u == VA) {
    va(c, cmd);
  } else {
    reg(c, u, d, CT_GET(cmd, VS_TS), false);
    vl_vs_words(c, u, d, CT_GET(cmd, VS_SPM), CT_GET(cmd, VS_MODE), CT_GET(cmd, VS_ROWS),
                CT_GET(cmd, VS_ROW_STRIDE));
  }
  struct clock clock = c->q[u].knows;
  clock.t[d] = ++c->done[d];
  give(c, d, CT_GET(cmd, ALL_SIG0), &clock);
  give(c, d, CT_GET(cmd, ALL_SIG1), &clock);
  if (!next_tile(cmd, u)) finish(c, u);
  return true;
}

static bool unit_step(struct check *c, enum unit u) {
  if (c->q[u].count == 0) return false;
  if (u == LD || u == ST) return dma(c, u);
  return u == MM ? mm(c) : vpu(c, u);
}

/* ---- Dispatch ---- */

static void add_registers(struct check *c, struct ct_cmd *cmd, unsigned group) {
  for (size_t i = 0; i < CT_NUM_SUMS; ++i) {
    if (ct_sums[i].group != group) continue;
    const struct ct_field_info *f = &ct_fields[ct_sums[i].value];
    const uint32_t sum = ct_cmd_get(cmd, ct_sums[i].value) + c->r[ct_cmd_get(cmd, ct_sums[i].reg)];
    ct_cmd_set_bits(cmd, f->lsb, f->width, sum);
  }
}

static void addi(struct check *c, const struct ct_cmd *cmd) {
  const uint32_t u[4][3] = {{CT_GET(cmd, ADDI_RD0), CT_GET(cmd, ADDI_RS0), CT_GET(cmd, ADDI_IMM0)},
                            {CT_GET(cmd, ADDI_RD1), CT_GET(cmd, ADDI_RS1), CT_GET(cmd, ADDI_IMM1)},
                            {CT_GET(cmd, ADDI_RD2), CT_GET(cmd, ADDI_RS2), CT_GET(cmd, ADDI_IMM2)},
                            {CT_GET(cmd, ADDI_RD3), CT_GET(cmd, ADDI_RS3), CT_GET(cmd, ADDI_IMM3)}};
  for (int i = 0; i < 4; ++i)
    if (u[i][0]) c->r[u[i][0]] = c->r[u[i][1]] + u[i][2];
}

static void endl(struct check *c) {
  if (c->depth == 0) {
    fail(c, "ENDL without LOOP at %u", c->pc);
  } else if (c->loop[c->depth - 1].left) {
    --c->loop[c->depth - 1].left;
    c->pc = c->loop[c->depth - 1].first;
  } else {
    --c->depth;
    ++c->pc;
  }
}

static enum unit unit_of(uint32_t op) {
  static const uint32_t code[UNITS] = {CT_OP_LD, CT_OP_ST, CT_OP_MM, CT_OP_VL, CT_OP_VA, CT_OP_VS};
  enum unit u = LD;
  if (op == CT_OP_WPIX || op == CT_OP_WTAP) return MM;
  while (u < UNITS && code[u] != op)
    ++u;
  return u;
}

static bool enqueue(struct check *c, const struct ct_cmd *cmd, enum unit u) {
  struct queue *q = &c->q[u];
  if (q->count >= c->p->depth + 1) return false; /* one more is in the unit */
  q->cmd[q->count++] = *cmd;
  ++c->pc;
  return true;
}

static bool dispatch(struct check *c) {
  if (c->ended) return false;
  if (c->pc >= c->p->count) return fail(c, "the program has no END");
  struct ct_cmd cmd = c->p->cmds[c->pc];
  const uint32_t op = CT_GET(&cmd, ALL_OP);
  const struct ct_op_info *info = ct_op_find(op);
  if (!info) return fail(c, "unknown operation at %u", c->pc);
  if (op == CT_OP_LOOP || info->group != CT_GROUP_CTL) add_registers(c, &cmd, info->group);
  if (op == CT_OP_MM && CT_GET(&cmd, MM_WALK) && c->walks != 3)
    return fail(c, "MM walks at %u, and WPIX or WTAP is missing before it", c->pc);
  if (unit_of(op) < UNITS && !enqueue(c, &cmd, unit_of(op))) return false;
  c->walks |= op == CT_OP_WPIX ? 1 : op == CT_OP_WTAP ? 2 : 0;
  ++c->stats.dispatched;
  if (unit_of(op) < UNITS) return true;
  if (op == CT_OP_ENDL) {
    endl(c);
    return true;
  }
  ++c->pc;
  c->ended = op == CT_OP_END;
  if (op == CT_OP_ADDI) addi(c, &cmd);
  if (op != CT_OP_LOOP) return true;
  if (c->depth == CT_NUM_LOOPS) return fail(c, "more than %u loops", CT_NUM_LOOPS);
  c->loop[c->depth].first = c->pc;
  c->loop[c->depth++].left = CT_GET(&cmd, CTL_COUNT) - 1;
  return true;
}

/* ---- All ---- */

static void start(struct check *c, const struct ct_racecheck *p) {
  c->p = p;
  memcpy(c->r + 1, p->args, sizeof p->args);
  c->r[CT_NUM_ARGS + 1] = p->batch;
  for (unsigned u = 0; u < UNITS; ++u)
    c->q[u].cmd = calloc(p->depth + 2, sizeof *c->q[u].cmd);
  c->spm_read = calloc(p->spm_words, sizeof *c->spm_read);
  c->spm_written = calloc(p->spm_words, sizeof *c->spm_written);
  c->dram_read = calloc(p->dram_units, sizeof *c->dram_read);
  c->dram_written = calloc(p->dram_units, sizeof *c->dram_written);
}

static void stop(struct check *c) {
  for (unsigned s = 0; s < CT_NUM_SEMS; ++s)
    free(c->sem[s].fifo);
  for (unsigned u = 0; u < UNITS; ++u)
    free(c->q[u].cmd);
  free(c->spm_read);
  free(c->spm_written);
  free(c->dram_read);
  free(c->dram_written);
}

static bool eager_step(struct check *c, enum unit u) {
  const bool dispatched = dispatch(c);
  return unit_step(c, u) || dispatched;
}

bool ct_racecheck(const struct ct_racecheck *p, struct ct_racecheck_stats *stats, char *why,
                  size_t why_size) {
  struct check *c = calloc(1, sizeof *c);
  c->why = why;
  c->why_size = why_size;
  start(c, p);
  for (bool moved = true; moved && !c->failed;) {
    moved = false;
    while (!c->failed && dispatch(c))
      moved = true;
    for (unsigned u = 0; u < UNITS && !c->failed; ++u) {
      moved |= unit_step(c, (enum unit)u);
      while (p->eager && !c->failed && eager_step(c, (enum unit)(p->eager - 1)))
        moved = true;
    }
  }
  bool busy = !c->ended;
  for (unsigned u = 0; u < UNITS; ++u)
    busy |= c->q[u].count != 0;
  if (busy)
    fail(c, "stuck: command %u is next; queues LD %zu ST %zu MM %zu VL %zu VA %zu VS %zu", c->pc,
         c->q[LD].count, c->q[ST].count, c->q[MM].count, c->q[VL].count, c->q[VA].count,
         c->q[VS].count);
  if (stats) *stats = c->stats;
  const bool ok = !c->failed;
  stop(c);
  free(c);
  return ok;
}
