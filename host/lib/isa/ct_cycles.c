/* SPDX-License-Identifier: Apache-2.0 */
/* The model of time: the job, its dispatcher (rtl/ctrl), semaphores, and what comes out. */
#include "ct_cycles.h"

#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_cycles_impl.h"
#include "ct_exec.h"

enum { DEFAULT_LATENCY = 60, DEFAULT_BYTES = 16 };

/* From a command's last beat to its turn. */
enum { BEAT_TURN = 5 };

/* From the last unit's work, or END, to the completion. */
enum { SETTLED = 7, ANSWERED = 5 };

/* ---- Queues and semaphores ---- */

const struct ct_cmd *cyc_front(const struct cyc *c, enum ct_cycles_unit u) {
  const struct cyc_queue *q = &c->queue[u];
  return q->in == q->out ? NULL : &q->cmd[q->out % CYC_QUEUE];
}

uint64_t cyc_here(const struct cyc *c, enum ct_cycles_unit u) {
  const struct cyc_queue *q = &c->queue[u];
  return q->here[q->out % CYC_QUEUE];
}

void cyc_pop(struct cyc *c, enum ct_cycles_unit u, uint64_t at) {
  struct cyc_queue *q = &c->queue[u];
  q->taken[q->out++ % CYC_QUEUE] = at;
  ++c->steps;
}

bool cyc_wait(struct cyc *c, const uint32_t *field, unsigned count, uint64_t *at) {
  for (unsigned i = 0; i < count; ++i)
    if (field[i] & 16 && !c->sem[field[i] & 15].count) return false;
  for (unsigned i = 0; i < count; ++i) {
    if (!(field[i] & 16)) continue;
    struct cyc_sem *s = &c->sem[field[i] & 15];
    *at = cyc_max(*at, s->at[s->head]);
    s->head = (s->head + 1) % CYC_SEM_RING;
    --s->count;
  }
  return true;
}

bool cyc_room(const struct cyc *c, uint32_t field) {
  return !(field & 16) || c->sem[field & 15].count < CYC_SEM_MOST;
}

void cyc_signal(struct cyc *c, uint32_t field, uint64_t at) {
  if (!(field & 16)) return;
  struct cyc_sem *s = &c->sem[field & 15];
  if (s->count) at = cyc_max(at, s->at[(s->head + s->count - 1) % CYC_SEM_RING]);
  s->at[(s->head + s->count++) % CYC_SEM_RING] = at;
}

/* ---- Dispatch: ct_fetch ---- */

struct dispatch {
  const struct ct_cmd *cmd;
  size_t count, pc;
  uint32_t r[CT_NUM_REGS];
  struct {
    size_t first;
    uint32_t left;
  } loop[CT_NUM_LOOPS];
  unsigned depth, walks; /* of WPIX and WTAP, which have come: bits 0 and 1 */
  bool ended;
  uint64_t *beat;  /* of each command the last beat on the bus */
  uint64_t enters; /* first cycle in which the next command may come to its turn */
  uint64_t out;    /* the last one was dispatched */
};

static enum ct_cycles_unit unit_of(uint32_t code) {
  switch (code) {
    case CT_OP_LD:
      return CYC_LD;
    case CT_OP_ST:
      return CYC_ST;
    case CT_OP_MM:
    case CT_OP_WPIX:
    case CT_OP_WTAP:
      return CYC_MM;
    case CT_OP_VL:
      return CYC_VL;
    case CT_OP_VA:
      return CYC_VA;
    case CT_OP_VS:
      return CYC_VS;
    default:
      return CYC_UNITS;
  }
}

/* Cycles that the registers of a command take: one for each that is added, or set. */
static uint64_t sums_of(const struct ct_cmd *cmd, const struct ct_op_info *op) {
  if (op->code == CT_OP_ADDI) {
    const unsigned pairs = !!CT_GET(cmd, ADDI_RD0) + !!CT_GET(cmd, ADDI_RD1) +
                           !!CT_GET(cmd, ADDI_RD2) + !!CT_GET(cmd, ADDI_RD3);
    return pairs ? pairs - 1 : 0;
  }
  uint64_t n = 0;
  for (size_t i = 0; i < CT_NUM_SUMS; ++i)
    n += ct_sum_applies(&ct_sums[i], op) && ct_cmd_get(cmd, ct_sums[i].reg);
  return n;
}

/* Moves pc; false: illegal. *back: ENDL goes back. */
static bool loops(struct dispatch *d, const struct ct_cmd *cmd, uint32_t code, bool *back) {
  ++d->pc;
  if (code == CT_OP_LOOP) {
    if (d->depth == CT_NUM_LOOPS) return false;
    d->loop[d->depth].first = d->pc;
    d->loop[d->depth++].left = CT_GET(cmd, CTL_COUNT) - 1;
  } else if (code == CT_OP_ENDL) {
    if (!d->depth) return false;
    *back = d->loop[d->depth - 1].left > 0;
    if (*back) {
      --d->loop[d->depth - 1].left;
      d->pc = d->loop[d->depth - 1].first;
    } else {
      --d->depth;
    }
  }
  return true;
}

static bool refuse(struct cyc *c, int error) {
  c->error = error;
  return false;
}

/* Whether a walk, or an MM that takes one, is legal here: the core has them, and the job has said
 * both. */
static bool walk_legal(const struct cyc *c, struct dispatch *d, const struct ct_cmd *cmd) {
  const uint32_t code = CT_GET(cmd, ALL_OP);
  d->walks |= code == CT_OP_WPIX ? 1 : code == CT_OP_WTAP ? 2 : 0;
  if (code == CT_OP_WPIX || code == CT_OP_WTAP) return c->core->walks;
  return code != CT_OP_MM || !CT_GET(cmd, MM_WALK) || (c->core->walks && d->walks == 3);
}

/* The next command, with its registers; false: it is illegal, or there is none. */
static bool next_command(struct cyc *c, struct dispatch *d, struct ct_cmd *cmd,
                         const struct ct_op_info **op) {
  if (d->pc >= d->count) return refuse(c, CT_ERR_ARG);
  *cmd = d->cmd[d->pc];
  *op = ct_op_find(CT_GET(cmd, ALL_OP));
  if (!*op) return refuse(c, CT_ERR_ARG);
  const bool dma = (*op)->group == CT_GROUP_DMA;
  if (!ct_cmd_resolve(cmd, *op, d->r) || !ct_cmd_legal(cmd, (*op)->group) ||
      (dma && CT_GET(cmd, DMA_GATHER) && !c->core->requests) || !walk_legal(c, d, cmd))
    return refuse(c, CT_ERR_ARG);
  return true;
}

/* Dispatches or executes a command; false: its queue is full, or it must not. */
static bool dispatch(struct cyc *c, struct dispatch *d) {
  if (d->ended) return false;
  if (c->out->commands == CT_CYCLES_COMMANDS) return refuse(c, CT_ERR_NO_SPACE);
  struct ct_cmd cmd;
  const struct ct_op_info *op;
  if (!next_command(c, d, &cmd, &op)) return false;
  const enum ct_cycles_unit u = unit_of(op->code);
  struct cyc_queue *q = u == CYC_UNITS ? NULL : &c->queue[u];
  if (q && q->in - q->out == CYC_QUEUE) return false;
  const uint64_t enters = cyc_max(d->enters, d->beat[d->pc] + BEAT_TURN);
  const uint64_t leaves = cyc_max(enters + sums_of(&d->cmd[d->pc], op), d->out);
  d->out = leaves + 1;
  bool back = false;
  if (q) {
    if (q->in >= CYC_QUEUE) d->out = cyc_max(d->out, q->taken[q->in % CYC_QUEUE] + 1);
    q->cmd[q->in % CYC_QUEUE] = cmd;
    q->here[q->in++ % CYC_QUEUE] = d->out + 1;
  }
  if (op->code == CT_OP_ADDI) ct_cmd_addi(&cmd, d->r);
  d->ended = op->code == CT_OP_END;
  if (!loops(d, &cmd, op->code, &back)) return refuse(c, CT_ERR_ARG);
  d->enters = leaves + 1 + back;
  ++c->out->commands;
  ++c->steps;
  return true;
}

/* ---- The job ---- */

/* A time that was counted from `ahead` cycles before the start. */
static uint64_t since_start(const struct cyc *c, uint64_t at) {
  return at > c->core->ahead ? at - c->core->ahead : 0;
}

/* Descriptor and program are read. Where they were before the start, their time is past. */
static bool read_program(struct cyc *c, struct dispatch *d) {
  struct cyc_reads *r = &c->reads;
  struct cyc_fetch f = cyc_fetch_from(0, d->count);
  d->beat = calloc(d->count ? d->count : 1, sizeof *d->beat);
  if (!d->beat) return refuse(c, CT_ERR_MEMORY);
  c->out->beats_read = cyc_fetch_burst(c, r, &f);
  for (size_t at = 0; f.beats;) {
    const uint32_t beats = cyc_fetch_burst(c, r, &f);
    for (uint32_t i = 0; i < beats; i += 2)
      d->beat[at++] = since_start(c, f.last - (((beats - 2 - i) * r->bus.cost) >> 8));
    c->out->beats_read += beats;
  }
  r->bus.free = since_start(c, r->bus.free >> 8) << 8;
  r->grant = since_start(c, r->grant);
  for (unsigned i = 0; i < CYC_RECENT; ++i)
    r->recent[i].last = since_start(c, r->recent[i].last);
  c->landed = since_start(c, f.last);
  d->enters = d->count ? d->beat[0] + BEAT_TURN : 0;
  return true;
}

/* All but LD and ST, as far as they come. */
static bool others(struct cyc *c, struct dispatch *d) {
  bool (*const unit[])(struct cyc *) = {cyc_mm, cyc_vl, cyc_va, cyc_vs};
  bool any = false;
  for (bool moved = true; moved && !c->error;) {
    moved = false;
    while (dispatch(c, d))
      moved = true;
    for (unsigned u = 0; u < sizeof unit / sizeof *unit && !c->error; ++u)
      while (unit[u](c)) {
        moved = true;
        if (c->steps > CT_CYCLES_STEPS) return refuse(c, CT_ERR_NO_SPACE);
      }
    any |= moved;
  }
  return any;
}

/* What is read for the next job: from END on. */
static struct cyc_fetch next_of(const struct cyc *c, const struct dispatch *d) {
  return c->core->next ? cyc_fetch_from(d->out, c->core->next) : (struct cyc_fetch){0};
}

/* By how much later its program comes than if LD read nothing meanwhile. */
static uint64_t next_late(struct cyc *c, const struct dispatch *d) {
  struct cyc_reads alone = {.bus = {.cost = c->reads.bus.cost}};
  struct cyc_fetch f = next_of(c, d);
  if (!c->core->next) return 0;
  while (cyc_fetch_more(&c->next))
    cyc_fetch_burst(c, &c->reads, &c->next);
  while (cyc_fetch_more(&f))
    cyc_fetch_burst(c, &alone, &f);
  return c->next.last - f.last;
}

/* A burst of LD or ST. LD must know whether END has been dispatched by then: if it has not, and
 * nothing but LD goes on, END waits for LD. ST must know what MM reads meanwhile. */
static bool moves(struct cyc *c, const struct dispatch *d) {
  const uint64_t go = cyc_max(c->ld.go, c->ld_walk.go);
  if (d->ended || go <= d->out) return cyc_ld(c) || cyc_st(c);
  return cyc_st(c) || cyc_ld(c);
}

static bool run(struct cyc *c, struct dispatch *d) {
  bool ended = false;
  for (bool moved = true; moved && !c->error;) {
    moved = others(c, d);
    if (d->ended && !ended) c->next = next_of(c, d);
    ended = d->ended;
    if (!c->error && moves(c, d)) moved = true;
    if (c->steps > CT_CYCLES_STEPS) return refuse(c, CT_ERR_NO_SPACE);
  }
  bool rest = c->ld.active || c->st.active || c->ld_walk.active || c->st_walk.active ||
              c->mm.active || c->vl.active || c->va.active || c->vs.active || !d->ended;
  for (unsigned u = 0; u < CYC_UNITS; ++u)
    rest |= c->queue[u].in != c->queue[u].out;
  return rest ? refuse(c, c->error ? c->error : CT_ERR_ARG) : !c->error;
}

static void finish(struct cyc *c, const struct dispatch *d) {
  struct ct_cycles *out = c->out;
  const uint64_t row = c->mm.row ? c->mm.last + 14 + c->parts : 0;
  uint64_t end = cyc_max(cyc_max(d->out, c->landed + 3), row);
  end = cyc_max(end, cyc_max(c->ld_walk.quiet, c->st_walk.quiet));
  end = cyc_max(end, cyc_max(c->vl.last, cyc_max(c->va.last, c->vs.last)));
  end += SETTLED;
  if (c->writes.bursts) end = cyc_max(end, c->writes.answer + ANSWERED);
  out->total = end;
  const uint64_t begun = d->out + next_late(c, d);
  out->tail = end > begun ? end - begun : 1;
  out->beats_written = c->writes.beats;
  out->busy[CT_UNIT_READ] = ((out->beats_read * c->reads.bus.cost) >> 8) + c->decoded;
  out->busy[CT_UNIT_WRITE] = ((c->writes.beats * c->writes.bus.cost) >> 8) + c->encoded;
}

static bool known_core(const struct ct_cycles_core *c) {
  return (c->cols == 16 || c->cols == 8 || c->cols == 4) && (c->lanes == 16 || c->lanes == 4) &&
         c->fn_lanes <= c->lanes && c->bytes <= 16 && c->reads <= CYC_READS &&
         c->requests <= CT_BATCH_MAX;
}

int ct_cycles(const struct ct_cycles_core *core, const struct ct_cmd *cmd, size_t count,
              const uint32_t args[CT_NUM_ARGS], struct ct_cycles *out) {
  memset(out, 0, sizeof *out);
  if (!known_core(core) || count > CT_PROG_MAX) return CT_ERR_ARG;
  struct cyc *c = calloc(1, sizeof *c);
  if (!c) return CT_ERR_MEMORY;
  c->core = core;
  c->out = out;
  c->latency = core->latency ? core->latency : DEFAULT_LATENCY;
  c->parts = 16 / core->cols;
  c->most_reads = core->reads ? core->reads : CYC_READS;
  const uint32_t bytes = core->bytes ? core->bytes : DEFAULT_BYTES;
  c->reads.bus.cost = c->writes.bus.cost = 256 * 16 / bytes;
  struct dispatch d = {.cmd = cmd, .count = count};
  memcpy(&d.r[1], args, CT_NUM_ARGS * sizeof *args);
  d.r[CT_NUM_ARGS + 1] = core->requests;
  if (read_program(c, &d) && run(c, &d)) finish(c, &d);
  const int error = c->error;
  free(d.beat);
  free(c);
  return error;
}

/* ---- What bounds it ---- */

enum ct_cycles_by ct_cycles_bound(const struct ct_cycles *c) {
  const uint64_t *b = c->busy;
  const uint64_t memory = cyc_max(b[CT_UNIT_READ], b[CT_UNIT_WRITE]);
  const uint64_t vector = cyc_max(b[CT_UNIT_VL], cyc_max(b[CT_UNIT_VA], b[CT_UNIT_VS]));
  const uint64_t array = b[CT_UNIT_MXU], most = cyc_max(array, cyc_max(memory, vector));
  if (4 * most < 3 * c->total) return CT_BY_LATENCY;
  return most == array ? CT_BY_ARRAY : most == memory ? CT_BY_MEMORY : CT_BY_VECTOR;
}

const char *ct_cycles_by_name(enum ct_cycles_by by) {
  static const char *const name[] = {"array", "memory", "vector unit", "latency"};
  return name[by];
}
