/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What training can add to a job: see ct_chain.h. Summed along the longest chain of its operations.
 * Each operation can wait for training as long as its unit's bound says; it starts when the one
 * before it in its queue has started and the signals it waits for have been given, so
 *
 *   delay(operation) = bound(operation) + max(delay of what it waits for, and of its predecessor)
 *
 * An operation under way can lose cycles to training, too, with the floor at 0 no more than the
 * enum below says. With a floor, scratchpad and tile registers know no rank between the contexts,
 * and what they cost comes on top.
 *
 * A job begins with two reads in a row, descriptor and program. An LD, however long, waits once for
 * the beats of training that were asked for before it: none is asked for while inference reads but
 * those that a floor gives. A beat takes 16 / bandwidth cycles; a memory that stalls comes on top.
 */
#include "ct_chain.h"

#include <stdlib.h>

#include "ct_bound.h"

enum { QUEUES = 6, MOST_COMMANDS = 1000000, MOST_SIGNALS = 65536 };

/* What operations lose while they are under way: VL and VS to training's words in front of theirs,
 * VL to rows of VA (both in ct_bound.h), VA to the long way (the same), VS to words of reads that
 * are outstanding when the first is in the way; a product with A transposed to a tile that is in
 * the transposer, for each wait of its own. */
enum { VL_LOSS_16 = CT_VL_PIPE_16 + CT_VL_AHEAD_16, VL_LOSS_4 = CT_VL_PIPE_4 + CT_VL_AHEAD_4 };
enum { TRANSPOSER = 32 };

/* A side of the vector unit looks at the semaphores of a tile in turn with the other context's. */
enum { TURN = 1 };

/* The k-th signal of a semaphore is not given later than most[k - 1]. */
struct sem {
  uint64_t *most; /* MOST_SIGNALS */
  size_t count, taken;
};

struct chain {
  const struct ct_chain_core *t;
  struct ct_bound_setting setting;
  uint64_t unit[CT_UNIT_COUNT];
  struct sem sem[CT_NUM_SEMS];
  uint64_t queue[QUEUES]; /* delay of its last operation */
  uint64_t start, longest;
  size_t commands;
  bool failed;
};

static void signal_often(struct chain *c, uint32_t field, uint64_t n, uint64_t delay) {
  if (!(field & 16)) return;
  struct sem *s = &c->sem[field & 15];
  for (uint64_t i = 0; i < n && !c->failed; ++i) {
    const uint64_t before = s->count ? s->most[s->count - 1] : 0;
    c->failed = s->count == MOST_SIGNALS;
    if (!c->failed) s->most[s->count++] = delay > before ? delay : before;
  }
}

static uint64_t wait_for(struct chain *c, uint32_t field, uint64_t n) {
  if (!(field & 16)) return 0;
  struct sem *s = &c->sem[field & 15];
  s->taken += n;
  if (s->taken > s->count) c->failed = true; /* a program waits for earlier commands only */
  return s->taken && !c->failed ? s->most[s->taken - 1] : 0;
}

/* How often a command waits (Wait0, Wait1, Wait2) and signals (Sig0, Sig1), and its own bound. */
struct times {
  uint64_t wait[3], sig[2], bound;
  unsigned queue;
};

/* Outer steps of an LD or ST, and rows of a product: of a batch as many as it has requests. */
static uint64_t steps_of(const struct ct_chain_core *t, const struct ct_cmd *cmd) {
  return CT_GET(cmd, DMA_GATHER) ? t->batch : CT_GET(cmd, DMA_N2);
}

static uint64_t rows_of(const struct ct_chain_core *t, const struct ct_cmd *cmd) {
  return CT_GET(cmd, MM_ROWS) + (CT_GET(cmd, MM_ROWS_REG) == CT_BATCH_REG ? t->batch : 0);
}

static uint64_t bursts_of(const struct ct_chain_core *t, const struct ct_cmd *cmd) {
  return CT_GET(cmd, DMA_N1) * steps_of(t, cmd) * ((CT_GET(cmd, DMA_NB) + 15) / 16 + 1);
}

/* Beats of training in front of the bursts of a read that waits for semaphores `waits` times. */
static uint64_t reads(const struct chain *c, uint64_t waits, uint64_t bursts) {
  const struct ct_chain_core *t = c->t;
  return c->unit[CT_UNIT_READ] * waits + CT_BURST_AHEAD * ct_bound_owed(t->floor, bursts);
}

/* The bound of a VL, VA or VS of so many slots. */
static uint64_t tile(const struct chain *c, enum ct_unit unit, uint64_t slots) {
  return ct_bound_slots(unit, &c->setting, slots);
}

/* With 16 lanes an operation of VA is one slot. */
static uint64_t va_slots(const struct ct_chain_core *t) {
  return t->lanes == 4 ? 16 : 1;
}

/* A command's operations issue as they did; each is through so much later at most. */
static uint64_t long_way(const struct ct_cmd *cmd) {
  const bool copies = CT_GET(cmd, VA_A_SRC) == 1 && !CT_GET(cmd, VA_B_SRC) &&
                      !CT_GET(cmd, VA_C_SRC) && !CT_GET(cmd, VA_RELU) && !CT_GET(cmd, VA_FUNC);
  return copies ? CT_VA_LONG : 0;
}

static struct times times_of(const struct chain *c, const struct ct_cmd *cmd) {
  const struct ct_chain_core *t = c->t;
  const uint64_t *b = c->unit, beat = t->beat_cycles, steps = steps_of(t, cmd);
  switch (CT_GET(cmd, ALL_OP)) {
    case CT_OP_LD: {
      const uint64_t waits = CT_GET(cmd, ALL_WAIT0) & 16 ? steps : 1;
      return (struct times){
          {steps, 1, 1}, {steps, 1}, beat * reads(c, waits, bursts_of(t, cmd)), 0};
    }
    case CT_OP_ST: { /* with a floor training is also owed words of the scratchpad */
      const uint64_t bursts = bursts_of(t, cmd);
      const uint64_t bound =
          beat * b[CT_UNIT_WRITE] * bursts + ct_bound_owed(t->floor, 16 * bursts);
      return (struct times){{steps, 1, 1}, {steps, 1}, bound, 1};
    }
    case CT_OP_MM: {
      const uint64_t kt = CT_GET(cmd, MM_KT), rows = rows_of(t, cmd), nt = CT_GET(cmd, MM_NT);
      const uint64_t tiles = nt * ((rows + 15) / 16), row = 16 / t->cols; /* cycles */
      /* With a floor training is owed rows of the array and words of A (8 or 4 columns: those in
       * turn). */
      const uint64_t n = kt * rows * nt, words = CT_GET(cmd, MM_A_TRANS) ? 16 * kt * tiles : n;
      const uint64_t port = row > 1 && t->floor ? words : ct_bound_owed(t->floor, words);
      const uint64_t pauses = CT_GET(cmd, ALL_WAIT0) & 16 ? kt : 1;
      const uint64_t turn = CT_GET(cmd, MM_A_TRANS) ? TRANSPOSER * pauses : 0;
      const uint64_t bound = (row - 1) * n + port + row * ct_bound_owed(t->floor, n) + turn;
      return (struct times){{kt, kt, tiles}, {kt, tiles}, bound, 2};
    }
    case CT_OP_VL:
      return (struct times){
          {1, 1, 1},
          {1, 1},
          TURN + tile(c, CT_UNIT_VL, 16) + (t->lanes == 4 ? VL_LOSS_4 : VL_LOSS_16),
          3};
    case CT_OP_VA: {
      const uint64_t n = 1 + (uint64_t)CT_GET(cmd, VA_MORE);
      const uint64_t bound = n * (TURN + tile(c, CT_UNIT_VA, va_slots(t))) + long_way(cmd);
      return (struct times){{n, n, n}, {n, n}, bound, 4};
    }
    default: {
      const uint64_t n = 1 + (uint64_t)CT_GET(cmd, VS_MORE);
      const uint64_t slots = CT_GET(cmd, VS_MODE) ? 32 : 16; /* a row in two passes, at most */
      const uint64_t loss = CT_VS_AHEAD + (uint64_t)CT_BURST * t->train_cap;
      const uint64_t bound = n * (TURN + tile(c, CT_UNIT_VS, slots) + loss);
      return (struct times){{n, n, n}, {n, n}, bound, 5};
    }
  }
}

static void add_command(struct chain *c, const struct ct_cmd *cmd) {
  const struct times n = times_of(c, cmd);
  const uint32_t wait[3] = {CT_GET(cmd, ALL_WAIT0), CT_GET(cmd, ALL_WAIT1), CT_GET(cmd, ALL_WAIT2)};
  uint64_t delay = c->queue[n.queue] > c->start ? c->queue[n.queue] : c->start;
  for (unsigned i = 0; i < 3; ++i) {
    const uint64_t given = wait_for(c, wait[i], n.wait[i]);
    if (given > delay) delay = given;
  }
  delay += n.bound;
  c->queue[n.queue] = delay;
  signal_often(c, CT_GET(cmd, ALL_SIG0), n.sig[0], delay);
  signal_often(c, CT_GET(cmd, ALL_SIG1), n.sig[1], delay);
  if (delay > c->longest) c->longest = delay;
}

/* Runs the program from `at` to its ENDL or END; returns the index of that. */
static size_t walk(struct chain *c, const struct ct_code *code, size_t at) {
  for (; at < code->count && !c->failed; ++at) {
    const struct ct_cmd *cmd = &code->cmd[at];
    const uint32_t op = CT_GET(cmd, ALL_OP);
    if (++c->commands > MOST_COMMANDS) c->failed = true;
    if (op == CT_OP_END || op == CT_OP_ENDL) return at;
    if (op == CT_OP_LOOP) {
      size_t end = at;
      for (uint32_t i = 0; i < CT_GET(cmd, CTL_COUNT) && !c->failed; ++i)
        end = walk(c, code, at + 1);
      at = end;
    } else if (op != CT_OP_ADDI) {
      add_command(c, cmd);
    }
  }
  return at;
}

static void fill_units(struct chain *c) {
  c->setting = (struct ct_bound_setting){.policy = CT_PRIORITY,
                                         .floor = c->t->floor,
                                         .train_cap = c->t->train_cap,
                                         .array_cols = c->t->cols,
                                         .vpu_lanes = c->t->lanes};
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    c->unit[u] = ct_bound_wait((enum ct_unit)u, &c->setting);
}

uint64_t ct_chain_job(const struct ct_chain_core *t, const struct ct_code *code) {
  /* Bursts of 16 beats, cut at pages of 4 KB. */
  const uint64_t bytes = code->count * sizeof(struct ct_cmd);
  const uint64_t program = (bytes + 255) / 256 + bytes / 4096 + 1;
  struct chain c = {.t = t};
  fill_units(&c);
  c.start = (reads(&c, 1, 1) + reads(&c, 1, program)) * t->beat_cycles;
  uint64_t *most = calloc((size_t)CT_NUM_SEMS * MOST_SIGNALS, sizeof *most);
  for (size_t i = 0; most && i < CT_NUM_SEMS; ++i)
    c.sem[i].most = most + i * MOST_SIGNALS;
  if (most) walk(&c, code, 0);
  const uint64_t bound = !most || c.failed ? 0 : c.longest;
  free(most);
  return bound;
}
