/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_fetch: random programs (loops, ADDI, register sums, illegal commands of every kind) while they
 * arrive, are lost on any beat and come again, and while queues stall, against the emulator's
 * dispatch; its pace; stopping.
 */
#include <string.h>

#include "ct_tb.h"

#include "ct_fetch_dut.h"
#include "host/emu/ct_emu.h"

enum {
  kMaxPushes = 4000, /* programs that dispatch more are not used */
  kSmallReg = 21,    /* r21..r24 hold 0..2 and are never written: for fields with a range */
  kSmallRegs = 4
};

/* ---- Random programs ----------------------------------------------------------------------- */

typedef struct {
  struct ct_cmd cmd[CT_PROG_MAX];
  unsigned count;
  uint32_t arg[CT_NUM_ARGS];
  unsigned rows;  /* requests of the batch it runs for, 0: none */
  unsigned walks; /* WPIX (bit 0), WTAP (bit 1) that are in it already */
  ct_rng rng;
} program;

static struct ct_cmd *append(program *p, unsigned code) {
  assert_true(p->count < CT_PROG_MAX);
  struct ct_cmd *cmd = &p->cmd[p->count++];
  memset(cmd, 0, sizeof *cmd);
  CT_PUT(cmd, ALL_OP, code);
  return cmd;
}

static uint32_t below(program *p, uint32_t bound) {
  return ct_rng_below(&p->rng, bound);
}

/* r0 or a register with a small value. */
static uint32_t small_reg(program *p) {
  return below(p, 2) ? 0 : kSmallReg + below(p, kSmallRegs);
}

/* Any bits in every field of the group, but half of the register numbers 0. */
static void randomize(program *p, struct ct_cmd *cmd, unsigned group) {
  for (unsigned f = 0; f < CT_NUM_FIELDS; ++f) {
    const struct ct_field_info *info = &ct_fields[f];
    if (info->group != group) continue;
    uint32_t value = (uint32_t)ct_rng_u64(&p->rng);
    if (info->kind == CT_KIND_REG && below(p, 2)) value = 0;
    ct_cmd_set_bits(cmd, info->lsb, info->width, value);
  }
}

static void random_sems(program *p, struct ct_cmd *cmd) {
  const unsigned first = below(p, 16); /* three different ones */
  if (below(p, 3) == 0) CT_PUT(cmd, ALL_WAIT0, CT_SEM(first));
  if (below(p, 3) == 0) CT_PUT(cmd, ALL_WAIT1, CT_SEM((first + 1) % 16));
  if (below(p, 3) == 0) CT_PUT(cmd, ALL_WAIT2, CT_SEM((first + 5) % 16));
  if (below(p, 3) == 0) CT_PUT(cmd, ALL_SIG0, CT_SEM(below(p, 16)));
  if (below(p, 3) == 0) CT_PUT(cmd, ALL_SIG1, CT_SEM(below(p, 16)));
}

/* Groups of compressed tiles. */
static void legal_comp(program *p, struct ct_cmd *cmd) {
  const unsigned groups = 1 + below(p, 4);
  CT_PUT(cmd, DMA_HDR, 0);
  CT_PUT(cmd, DMA_GATHER, 0);
  CT_PUT(cmd, DMA_NB, 16 + 16 * below(p, 4));
  CT_PUT(cmd, DMA_FIRST, below(p, 5 - groups));
  CT_PUT(cmd, DMA_N1, below(p, 255) << 4 | groups);
  CT_PUT(cmd, DMA_N1_REG, 0);
  CT_PUT(cmd, DMA_N2, 1 + below(p, 4095));
}

/* Nearly that. */
static void near_comp(program *p, struct ct_cmd *cmd) {
  legal_comp(p, cmd);
  CT_PUT(cmd, DMA_HDR, below(p, 8) == 0);
  CT_PUT(cmd, DMA_GATHER, below(p, 8) == 0);
  if (below(p, 4) == 0) CT_PUT(cmd, DMA_NB, 8 * below(p, 12));
  if (below(p, 4) == 0) CT_PUT(cmd, DMA_FIRST, below(p, 4));
  if (below(p, 4) == 0) CT_PUT(cmd, DMA_N1, below(p, 256) << 4 | below(p, 16));
  if (below(p, 4) == 0) CT_PUT(cmd, DMA_N1, (254 + below(p, 2)) << 4 | 1);
  if (below(p, 8) == 0) CT_PUT(cmd, DMA_N2, 0);
}

static void legal_dma(program *p, struct ct_cmd *cmd) {
  randomize(p, cmd, CT_GROUP_DMA);
  CT_PUT(cmd, DMA_NB, 1 + below(p, CT_GET(cmd, DMA_HDR) ? 16 : 256));
  CT_PUT(cmd, DMA_N1, 1 + below(p, 4090));
  CT_PUT(cmd, DMA_N1_REG, small_reg(p));
  CT_PUT(cmd, DMA_N2, 1 + below(p, 4095));
  CT_PUT(cmd, DMA_GATHER, p->rows ? below(p, 2) : 0);
  if (CT_GET(cmd, DMA_GATHER)) CT_PUT(cmd, DMA_N2, 2 * below(p, 2));
  if (CT_GET(cmd, DMA_COMP)) legal_comp(p, cmd);
}

static void legal_mm(program *p, struct ct_cmd *cmd) {
  randomize(p, cmd, CT_GROUP_MM);
  const unsigned nt = 1 + below(p, 8), mt = 1 + below(p, 8 / nt), top = nt * mt;
  CT_PUT(cmd, MM_NT, nt);
  CT_PUT(cmd, MM_ROWS, 16 * mt - 2 - below(p, 14));
  CT_PUT(cmd, MM_ROWS_REG, small_reg(p));
  CT_PUT(cmd, MM_KT, 1 + below(p, 4095));
  CT_PUT(cmd, MM_ACC_N, mt);
  CT_PUT(cmd, MM_ACC, below(p, 17 - top));
  CT_PUT(cmd, MM_WALK, p->walks == 3 && below(p, 2));
}

static void legal_vector(program *p, struct ct_cmd *cmd, unsigned code) {
  static const uint8_t funcs[] = {0, 8, 9, 10, 11};
  switch (code) {
    case CT_OP_VL:
      randomize(p, cmd, CT_GROUP_VL);
      CT_PUT(cmd, VL_MODE, below(p, 3));
      CT_PUT(cmd, VL_ROWS, 1 + below(p, 14));
      CT_PUT(cmd, VL_ROWS_REG, small_reg(p));
      break;
    case CT_OP_VS:
      randomize(p, cmd, CT_GROUP_VS);
      CT_PUT(cmd, VS_MODE, below(p, 3));
      CT_PUT(cmd, VS_ROWS, 1 + below(p, 14));
      CT_PUT(cmd, VS_ROWS_REG, small_reg(p));
      CT_PUT(cmd, VS_ROUND, 0);
      CT_PUT(cmd, VS_NARROW, below(p, 7));
      break;
    default:
      randomize(p, cmd, CT_GROUP_VA);
      CT_PUT(cmd, VA_A_SRC, below(p, 3));
      CT_PUT(cmd, VA_FN, below(p, 5));
      CT_PUT(cmd, VA_FUNC, funcs[below(p, 5)]);
      CT_PUT(cmd, VA_ROWS, 1 + below(p, 14));
      CT_PUT(cmd, VA_ROWS_REG, small_reg(p));
      CT_PUT(cmd, VA_COLS, 1 + below(p, 16));
      if (below(p, 2)) CT_PUT(cmd, VA_C_SRC, 3 * below(p, 2));
      if (CT_GET(cmd, VA_C_SRC) % 3) CT_PUT(cmd, VA_B_SRC, 3 * below(p, 2));
      if (CT_GET(cmd, VA_TD) == CT_GET(cmd, VA_TQ)) CT_PUT(cmd, VA_TQ, CT_GET(cmd, VA_TD) ^ 1);
  }
}

static void append_walk(program *p) {
  const bool pixels = below(p, 2);
  struct ct_cmd *cmd = append(p, pixels ? CT_OP_WPIX : CT_OP_WTAP);
  randomize(p, cmd, pixels ? CT_GROUP_WPIX : CT_GROUP_WTAP);
  if (pixels) {
    CT_PUT(cmd, WPIX_W, 1 + below(p, 255));
    CT_PUT(cmd, WPIX_H, 1 + below(p, 255));
  } else {
    CT_PUT(cmd, WTAP_KX, 1 + below(p, 15));
    CT_PUT(cmd, WTAP_CB, 1 + below(p, 255));
  }
  p->walks |= pixels ? 1 : 2;
}

static void append_unit(program *p) {
  static const uint8_t codes[] = {CT_OP_LD, CT_OP_ST, CT_OP_MM, CT_OP_VL, CT_OP_VA, CT_OP_VS};
  const unsigned code = codes[below(p, 6)];
  struct ct_cmd *cmd = append(p, code);
  if (code == CT_OP_LD || code == CT_OP_ST)
    legal_dma(p, cmd);
  else if (code == CT_OP_MM)
    legal_mm(p, cmd);
  else
    legal_vector(p, cmd, code);
  random_sems(p, cmd);
}

/* Pairs that often read what the pair before has written. */
static void append_addi(program *p) {
  struct ct_cmd *cmd = append(p, CT_OP_ADDI);
  randomize(p, cmd, CT_GROUP_ADDI);
  static const enum ct_field_id rd[] = {CT_F_ADDI_RD0, CT_F_ADDI_RD1, CT_F_ADDI_RD2, CT_F_ADDI_RD3};
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t d = ct_cmd_get(cmd, rd[i]);
    if (below(p, 2)) d = 1 + below(p, 3);
    if (d >= kSmallReg && d < kSmallReg + kSmallRegs) d = 0;
    ct_cmd_set(cmd, rd[i], d);
  }
  if (below(p, 2)) CT_PUT(cmd, ADDI_RS1, CT_GET(cmd, ADDI_RD0));
  if (below(p, 2)) CT_PUT(cmd, ADDI_RS3, CT_GET(cmd, ADDI_RD1));
}

/* Few passes, many, or none; now and then so many that only a stop ends them. */
static void append_loop(program *p) {
  struct ct_cmd *cmd = append(p, CT_OP_LOOP);
  const unsigned kind = below(p, 100);
  const uint32_t passes = kind < 80 ? below(p, 3) : kind < 96 ? below(p, 40) : UINT32_MAX - 3;
  const uint32_t reg = small_reg(p), part = reg ? p->arg[reg - 1] : 0;
  CT_PUT(cmd, CTL_COUNT_REG, reg);
  CT_PUT(cmd, CTL_COUNT, 1 + passes - (below(p, 20) ? 0 : 1 + passes) - (below(p, 2) ? part : 0));
}

/* n commands, with loops inside up to a total depth of 4; a body may have none. */
static void append_block(program *p, unsigned n, unsigned depth) {
  for (unsigned i = 0; i < n; ++i) {
    const unsigned kind = below(p, 100);
    if (kind < 12 && depth < CT_NUM_LOOPS && p->count < 300) {
      append_loop(p);
      append_block(p, below(p, 5), depth + 1);
      append(p, CT_OP_ENDL);
    } else if (kind < 25) {
      append_addi(p);
    } else if (kind < 30) {
      append(p, CT_OP_NOP);
    } else if (kind < 38) {
      append_walk(p);
    } else {
      append_unit(p);
    }
  }
}

/* One mistake, or something that looks like one. */
static void spoil(program *p) {
  struct ct_cmd *cmd = &p->cmd[below(p, p->count)];
  const struct ct_op_info *op = ct_op_find(CT_GET(cmd, ALL_OP));
  switch (op ? below(p, 6) : 0) {
    case 0: /* any bit */
      ct_cmd_set_bits(cmd, below(p, 256), 1, below(p, 2));
      break;
    case 1: /* any value of one field of it: the ones with a range come often enough */
      for (;;) {
        const struct ct_field_info *f = &ct_fields[below(p, CT_NUM_FIELDS)];
        if (f->group != op->group && f->group != CT_GROUP_ALL) continue;
        ct_cmd_set_bits(cmd, f->lsb, f->width, (uint32_t)ct_rng_u64(&p->rng));
        break;
      }
      break;
    case 2: /* one semaphore twice */
      CT_PUT(cmd, ALL_WAIT2, CT_SEM(below(p, 3)));
      CT_PUT(cmd, ALL_WAIT0, CT_SEM(below(p, 3)));
      break;
    case 3: /* all of its fields */
      randomize(p, cmd, op->group);
      break;
    case 4: /* loops that do not match */
      CT_PUT(cmd, ALL_OP, below(p, 2) ? CT_OP_LOOP : CT_OP_ENDL);
      break;
    default: /* no END, unless by luck */
      --p->count;
  }
}

static program random_program(uint64_t stream) {
  program p = {.rng = ct_rng_make(stream)};
  p.rows = below(&p, 2) * (1 + below(&p, CT_BATCH_MAX));
  for (unsigned i = 0; i < CT_NUM_ARGS; ++i)
    p.arg[i] = (uint32_t)ct_rng_u64(&p.rng);
  for (unsigned i = 0; i < kSmallRegs; ++i)
    p.arg[kSmallReg - 1 + i] = below(&p, 3);
  /* One in four in a loop that ends where the program ends, or nearly. */
  const bool around = below(&p, 4) == 0;
  if (around) append_loop(&p);
  append_block(&p, 1 + below(&p, below(&p, 4) ? 20 : 90), around);
  while (p.count < CT_PROG_MAX - 2 && below(&p, 40) == 0) /* as long as the buffer is */
    while (p.count < CT_PROG_MAX - 2)
      append_unit(&p);
  if (around) append(&p, CT_OP_ENDL);
  if (!around || below(&p, 4)) append(&p, CT_OP_END);
  if (p.count < 400 && below(&p, 3) == 0) append_block(&p, 1 + below(&p, 5), 0); /* never reached */
  for (unsigned n = below(&p, 3); n && p.count > 1; --n)
    spoil(&p);
  return p;
}

/* ---- Model --------------------------------------------------------------------------------- */

typedef struct {
  struct ct_cmd cmd[kMaxPushes];
  uint8_t unit[kMaxPushes];
  unsigned pushes;
  bool ends; /* by END; otherwise by an illegal command */
  uint32_t index;
  uint64_t executed;
} expected;

/* What ct_emu.c does for the dispatch, which is all of the emulator that is linked here. */
void ct_emu_fail(struct ct_emu_ctx *ctx, uint32_t code, uint32_t addr) {
  assert_int_equal(code, CT_DEV_ILLEGAL);
  ctx->failed = true;
  ctx->result.addr = addr;
}

/* False: more than the bench can hold, and what it holds is the beginning. */
static bool model(const program *p, expected *e) {
  struct ct_emu_ctx *ctx = test_calloc(1, sizeof *ctx);
  for (unsigned i = 0; i < p->count; ++i)
    ct_emu_prepare(&ctx->prog[i], &p->cmd[i]);
  ctx->ncmds = p->count;
  ctx->compress = true;
  memcpy(ctx->r + 1, p->arg, sizeof p->arg);
  ctx->batch = ctx->r[CT_NUM_ARGS + 1] = p->rows;
  e->pushes = 0;
  bool fits = true;
  while (fits && !ctx->ended && !ctx->failed) {
    assert_true(ct_emu_dispatch(ctx));
    for (unsigned u = 0; u < CT_EMU_UNITS; ++u) {
      struct ct_emu_queue *q = &ctx->queue[u];
      if (!q->count) continue;
      struct ct_cmd *cmd = &e->cmd[e->pushes];
      *cmd = q->slot[q->head].cmd;
      if ((u == CT_EMU_LD || u == CT_EMU_ST) && CT_GET(cmd, DMA_GATHER))
        CT_PUT(cmd, DMA_N2, p->rows);
      e->unit[e->pushes++] = (uint8_t)u;
      q->count = 0;
    }
    fits = e->pushes < kMaxPushes && ctx->cnt[CT_CNT_CMDS] < 3 * kMaxPushes;
  }
  e->ends = ctx->ended;
  e->index = ctx->failed ? ctx->result.addr : ctx->pc;
  e->executed = ctx->cnt[CT_CNT_CMDS];
  test_free(ctx);
  return fits;
}

/* ---- Driver and monitor ---------------------------------------------------------------------- */

typedef struct {
  ct_fetch_dut *dut;
  ct_stall arrive, queue[CT_EMU_UNITS];
  const program *prog;
  const expected *want;
  ct_rng rng;
  unsigned errors; /* in percent of the reads; the one of a program that is read ahead */
  unsigned beats, pushes;
  unsigned lost;          /* the beat that does not come, behind the last: all of them do */
  unsigned away;          /* cycles until the program comes again */
  unsigned rereads, late; /* so far; those that took a command away that had been there */
  uint64_t executed, cycles;
  bool ended, failed;
} bench;

static bench open_bench(uint64_t stream, unsigned arrive, unsigned queue) {
  bench b = {.dut = ct_fetch_new(ct_tb_trace()), .arrive = ct_stall_make(stream, arrive, 5)};
  for (unsigned u = 0; u < CT_EMU_UNITS; ++u)
    b.queue[u] = ct_stall_make(stream + 1 + u, queue, 4);
  b.rng = ct_rng_make(stream + 50);
  b.errors = 40;
  ct_fetch_dut *d = b.dut;
  *d->load_i = *d->start_i = *d->stop_i = *d->prog_valid_i = *d->arg_we_i = *d->q_ready_i = 0;
  *d->ncmds_i = 1;
  *d->rows_i = 0;
  ct_fetch_reset(d, 2);
  return b;
}

/* Which beat of the read that begins is lost: any, often one of the last. */
static void draw_error(bench *b) {
  const unsigned beats = 2 * b->prog->count;
  const unsigned back = ct_rng_percent(&b->rng, 30) ? ct_rng_below(&b->rng, 4) : beats;
  b->beats = 0;
  b->lost = beats;
  if (!ct_rng_percent(&b->rng, b->errors)) return;
  b->lost = back < beats ? beats - 1 - back : ct_rng_below(&b->rng, beats);
}

/* As ct_job does it: r25..r31 cleared but for the number of requests, then the arguments, a beat a
 * cycle; then the start. */
static void begin(bench *b, const program *p, const expected *e) {
  ct_fetch_dut *d = b->dut;
  b->prog = p;
  b->want = e;
  draw_error(b);
  b->away = *d->load_i = 0;
  b->pushes = 0;
  b->executed = b->cycles = 0;
  b->ended = b->failed = false;
  *d->q_ready_i = 0;
  *d->arg_we_i = 1;
  for (unsigned beat = 0; beat < 8; ++beat) {
    *d->arg_group_i = (beat - 2) & 7;
    memset(d->arg_data_i, 0, 16);
    if (beat >= 2) memcpy(d->arg_data_i, p->arg + 4 * (beat - 2), 16);
    if (beat == 0) memcpy(d->arg_data_i, &p->rows, sizeof p->rows);
    ct_fetch_tick(d);
  }
  *d->arg_we_i = 0;
  *d->ncmds_i = (uint16_t)p->count;
  *d->rows_i = (uint8_t)p->rows;
  *d->load_i = *d->start_i = 1;
  ct_fetch_tick(d);
  *d->load_i = *d->start_i = 0;
}

static void drive(bench *b) {
  ct_fetch_dut *d = b->dut;
  const bool more = b->beats < 2 * b->prog->count && !b->away && !ct_stall_next(&b->arrive);
  *d->prog_valid_i = more && b->beats != b->lost;
  *d->load_i = b->away == 1;
  if (more && b->beats == b->lost) b->away = 2 + ct_rng_below(&b->rng, 30);
  if (*d->prog_valid_i)
    memcpy(d->prog_data_i, &b->prog->cmd[b->beats / 2].w[4 * (b->beats % 2)], 16);
  *d->q_ready_i = 0;
  for (unsigned u = 0; u < CT_EMU_UNITS; ++u)
    if (!ct_stall_next(&b->queue[u])) *d->q_ready_i |= (uint8_t)(1u << u);
}

static void monitor(bench *b) {
  const ct_fetch_dut *d = b->dut;
  const expected *e = b->want;
  if (*d->q_valid_o) {
    assert_true(b->pushes < e->pushes);
    assert_int_equal(*d->q_valid_o, 1u << e->unit[b->pushes]);
    ct_assert_same("command", d->q_cmd_o, e->cmd[b->pushes].w, 32);
    if (*d->q_valid_o & *d->q_ready_i) ++b->pushes;
  }
  b->executed += *d->done_o;
  assert_int_equal(*d->first_o, b->beats >= 2);
  assert_int_equal(*d->loaded_o, b->beats == 2 * b->prog->count);
  if (*d->err_o) {
    assert_false(e->ends || b->failed);
    assert_int_equal(*d->idx_o, e->index);
    assert_int_equal(b->pushes, e->pushes);
    b->failed = true;
  }
}

/* One cycle. */
static void cycle(bench *b) {
  drive(b);
  ct_fetch_eval(b->dut);
  monitor(b);
  b->beats += *b->dut->prog_valid_i;
  if (*b->dut->load_i) {
    ++b->rereads;
    b->late += *b->dut->idx_o > 0;
    draw_error(b);
  }
  b->away -= b->away > 0;
  ct_fetch_tick(b->dut);
  ++b->cycles;
  if (*b->dut->end_o) {
    assert_true(b->want->ends);
    b->ended = true;
  }
}

static void run_to_end(bench *b) {
  while (!b->ended && !b->failed) {
    cycle(b);
    assert_true(b->cycles < 2000000);
  }
  for (int i = 0; i < 20 || b->beats < 2 * b->prog->count; ++i)
    cycle(b);
  *b->dut->load_i = 0;
  assert_int_equal(b->pushes, b->want->pushes);
  assert_int_equal(b->executed, b->want->executed);
  assert_int_equal(*b->dut->idx_o, b->want->index);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void random_programs(void **state) {
  (void)state;
  static const unsigned percents[] = {0, 30, 80};
  expected *e = test_malloc(sizeof *e);
  unsigned ended = 0, failed = 0, indices = 0, rereads = 0, late = 0;
  for (unsigned k = 0; k < 9; ++k) {
    bench b = open_bench(100 * k, percents[k % 3], percents[k / 3]);
    for (unsigned i = 0; i < 150; ++i) {
      const program p = random_program(10000 * (k + 1) + i);
      if (!model(&p, e)) continue;
      begin(&b, &p, e);
      run_to_end(&b);
      ended += e->ends;
      failed += !e->ends;
      indices += !e->ends && e->index > 3;
    }
    rereads += b.rereads;
    late += b.late;
    ct_fetch_free(b.dut);
  }
  /* The mixture is one worth running. */
  assert_true(ended > 300 && failed > 200 && indices > 100);
  assert_true(rereads > 300 && late > 200);
  test_free(e);
}

static uint32_t one_of(program *p, const uint16_t *values, uint32_t count) {
  return values[below(p, count)];
}
#define ONE_OF(p, ...) \
  one_of(p, (const uint16_t[]){__VA_ARGS__}, sizeof((const uint16_t[]){__VA_ARGS__}) / 2)

/* Values on both sides of every limit, without registers. */
static void near_limits(program *p, struct ct_cmd *cmd, unsigned group) {
  randomize(p, cmd, group);
  for (unsigned f = 0; f < CT_NUM_FIELDS; ++f)
    if (ct_fields[f].group == group && ct_fields[f].kind == CT_KIND_REG) ct_cmd_set(cmd, f, 0);
  switch (group) {
    case CT_GROUP_DMA:
      CT_PUT(cmd, DMA_NB, ONE_OF(p, 0, 1, 1, 9, 15, 16, 16, 17, 255, 256, 257, 511));
      CT_PUT(cmd, DMA_N1, ONE_OF(p, 0, 1, 1, 4095, 4095));
      CT_PUT(cmd, DMA_N2, ONE_OF(p, 0, 1, 1, 4095, 4095));
      break;
    case CT_GROUP_MM:
      CT_PUT(cmd, MM_ROWS,
             below(p, 8) ? 16 * (1 + below(p, 4)) - below(p, 2) * below(p, 16)
                         : ONE_OF(p, 0, 1, 112, 113, 127, 128, 129, 144, 255));
      CT_PUT(cmd, MM_NT, below(p, 10));
      CT_PUT(cmd, MM_KT, ONE_OF(p, 0, 1, 1, 2, 4095, 4095));
      CT_PUT(cmd, MM_ACC_N, below(p, below(p, 2) ? 4 : 16));
      CT_PUT(cmd, MM_ACC, below(p, 16));
      CT_PUT(cmd, MM_WALK, below(p, 2));
      break;
    case CT_GROUP_WPIX:
      CT_PUT(cmd, WPIX_W, ONE_OF(p, 0, 1, 1, 128, 255));
      CT_PUT(cmd, WPIX_H, ONE_OF(p, 0, 1, 1, 128, 255));
      break;
    case CT_GROUP_WTAP:
      CT_PUT(cmd, WTAP_KX, ONE_OF(p, 0, 1, 1, 8, 15));
      CT_PUT(cmd, WTAP_CB, ONE_OF(p, 0, 1, 1, 128, 255));
      break;
    case CT_GROUP_VL:
      CT_PUT(cmd, VL_MODE, below(p, 5));
      CT_PUT(cmd, VL_ROWS, ONE_OF(p, 0, 1, 2, 15, 16, 17, 18, 31));
      break;
    case CT_GROUP_VS:
      CT_PUT(cmd, VS_MODE, below(p, 5));
      CT_PUT(cmd, VS_ROWS, ONE_OF(p, 0, 1, 2, 15, 16, 16, 17, 31));
      CT_PUT(cmd, VS_ROUND, ONE_OF(p, 0, 0, 0, 0, 1, 2, 3));
      CT_PUT(cmd, VS_NARROW, below(p, 8));
      break;
    default:
      CT_PUT(cmd, VA_A_SRC, ONE_OF(p, 0, 0, 1, 1, 2, 2, 3));
      CT_PUT(cmd, VA_FN, ONE_OF(p, 0, 1, 2, 3, 4, 4, 5, 6, 7));
      CT_PUT(cmd, VA_FUNC, ONE_OF(p, 0, 0, 7, 8, 8, 9, 9, 10, 11, 12, 15));
      CT_PUT(cmd, VA_ROWS, ONE_OF(p, 0, 1, 1, 7, 15, 16, 16, 17));
      CT_PUT(cmd, VA_COLS, ONE_OF(p, 0, 1, 1, 7, 15, 16, 16, 17));
      CT_PUT(cmd, VA_ROW_XOR, ONE_OF(p, 0, 0, 0, 1, 8));
      CT_PUT(cmd, VA_LANE_XOR, ONE_OF(p, 0, 0, 0, 1, 8));
      CT_PUT(cmd, VA_TQ, CT_GET(cmd, VA_TD) ^ ONE_OF(p, 0, 1, 8));
  }
}

/* One command and END: exactly the legal ones pass. */
static void legality(void **state) {
  (void)state;
  static const uint8_t codes[] = {CT_OP_LD, CT_OP_ST, CT_OP_MM,   CT_OP_VL,
                                  CT_OP_VA, CT_OP_VS, CT_OP_WPIX, CT_OP_WTAP};
  expected *e = test_malloc(sizeof *e);
  bench b = open_bench(300, 0, 0);
  program p = {.rng = ct_rng_make(301)};
  unsigned passed[8] = {0}, refused[8] = {0};
  for (unsigned i = 0; i < 80000; ++i) {
    const unsigned u = i % 8;
    p.count = 0;
    p.rows = below(&p, 2) * (1 + below(&p, CT_BATCH_MAX));
    /* Walks for MM: one of the two, or both, or one twice. */
    for (unsigned n = u == 2 ? below(&p, 3) : 0; n; --n)
      append_walk(&p);
    struct ct_cmd *cmd = append(&p, codes[u]);
    near_limits(&p, cmd, ct_op_find(codes[u])->group);
    if (u < 2) CT_PUT(cmd, DMA_COMP, below(&p, 2));
    if (u < 2 && CT_GET(cmd, DMA_COMP)) near_comp(&p, cmd);
    if (below(&p, 2)) {
      CT_PUT(cmd, ALL_WAIT0, 8 * below(&p, 4) + below(&p, 8)); /* enabled half the time */
      CT_PUT(cmd, ALL_WAIT1, 8 * below(&p, 4) + below(&p, 8));
      CT_PUT(cmd, ALL_WAIT2, 8 * below(&p, 4) + below(&p, 8));
    }
    append(&p, CT_OP_END);
    assert_true(model(&p, e));
    begin(&b, &p, e);
    run_to_end(&b);
    ++(e->ends ? passed : refused)[u];
  }
  for (unsigned u = 0; u < 8; ++u)
    assert_true(passed[u] > 200 && refused[u] > 200);
  ct_fetch_free(b.dut);
  test_free(e);
}

/* A stop at any time ends dispatch at once, and the next program does not see the last one. */
static void stops(void **state) {
  (void)state;
  expected *e = test_malloc(sizeof *e);
  bench b = open_bench(77, 30, 30);
  ct_rng rng = ct_rng_make(78);
  unsigned endless = 0;
  for (unsigned i = 0; i < 300; ++i) {
    const program p = random_program(200000 + i);
    const bool whole = model(&p, e); /* the beginning is enough, but for a run to the end */
    endless += !whole;
    begin(&b, &p, e);
    for (unsigned n = ct_rng_below(&rng, 200); n && !b.ended && !b.failed; --n)
      cycle(&b);
    if (i % 3 == 0 && whole) {
      run_to_end(&b);
      continue;
    }
    *b.dut->prog_valid_i = *b.dut->load_i = 0;
    *b.dut->stop_i = 1;
    for (int n = 0; n < 5; ++n) {
      *b.dut->q_ready_i = (uint8_t)ct_rng_below(&rng, 64);
      ct_fetch_eval(b.dut);
      assert_int_equal(*b.dut->q_valid_o, 0);
      assert_int_equal(*b.dut->err_o, 0);
      ct_fetch_tick(b.dut);
    }
    *b.dut->stop_i = 0;
    for (int n = 0; n < 5; ++n) {
      ct_fetch_tick(b.dut);
      assert_int_equal(*b.dut->q_valid_o, 0);
    }
  }
  assert_true(endless > 5);
  ct_fetch_free(b.dut);
  test_free(e);
}

/* Cycles for a program of LOOP passes, n commands, ENDL, END with everything else at its best. */
static uint64_t cycles_of(program *p, uint32_t passes, unsigned n, bool registers) {
  struct ct_cmd *loop = append(p, CT_OP_LOOP);
  CT_PUT(loop, CTL_COUNT, passes);
  for (unsigned i = 0; i < n; ++i) {
    struct ct_cmd *cmd = append(p, CT_OP_MM);
    legal_mm(p, cmd);
    CT_PUT(cmd, MM_A_REG, registers ? 1 + i : 0);
    CT_PUT(cmd, MM_B_REG, registers ? 2 + i : 0);
    CT_PUT(cmd, MM_ROWS_REG, registers ? kSmallReg : 0);
    CT_PUT(cmd, MM_POS_REG, registers ? 3 + i : 0);
  }
  append(p, CT_OP_ENDL);
  append(p, CT_OP_END);
  expected *e = test_malloc(sizeof *e);
  assert_true(model(p, e));
  assert_true(e->ends);
  bench b = open_bench(1, 0, 0);
  b.errors = 0;
  begin(&b, p, e);
  run_to_end(&b);
  ct_fetch_free(b.dut);
  test_free(e);
  return b.cycles;
}

/* The slowest command takes 5 cycles, one without registers 1, an ENDL that goes back 2. */
static void pace(void **state) {
  (void)state;
  for (int registers = 0; registers < 2; ++registers) {
    program p = {.rng = ct_rng_make(5)}, q = {.rng = ct_rng_make(5)};
    const uint64_t many = cycles_of(&p, 102, 8, registers), few = cycles_of(&q, 2, 8, registers);
    assert_int_equal(many - few, 100 * (8 * (registers ? 5 : 1) + 2));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_programs),
      cmocka_unit_test(legality),
      cmocka_unit_test(stops),
      cmocka_unit_test(pace),
  };
  return cmocka_run_group_tests_name("ct_fetch", tests, NULL, NULL);
}
