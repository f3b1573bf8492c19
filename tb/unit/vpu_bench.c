/* SPDX-License-Identifier: Apache-2.0 */
#include "vpu_bench.h"

#include <stdlib.h>
#include <string.h>

#include "ct_vpu_16_dut.h"
#include "ct_vpu_4_dut.h"
#include "ct_vpu_4f_dut.h"

/* ---- The models ---------------------------------------------------------------------------- */

#define SIDE(x)                                                                               \
  {                                                                                           \
    .cmd_valid_i = d->x##_cmd_valid_i, .cmd_ready_o = d->x##_cmd_ready_o,                     \
    .flush_i = d->x##_flush_i, .idle_o = d->x##_idle_o, .cmd_i = d->x##_cmd_i,                \
    .sem_nz_i = d->x##_sem_nz_i, .sem_dec_o = d->x##_sem_dec_o, .sem_inc_o = d->x##_sem_inc_o \
  }

#define VARIANT(name, n)                        \
  CT_TB_ANY(name)                               \
  CT_TB_ANY_CLOCK(name)                         \
  static vpu_ports name##_ports(void) {         \
    name##_dut *d = name##_new(ct_tb_trace());  \
    const vpu_ports p = {                       \
        CT_TB_ANY_OF(name, d),                  \
        .lanes = n,                             \
        .qos_i = d->qos_i,                      \
        .freeze_i = d->freeze_i,                \
        .err_o = d->err_o,                      \
        .spm_base_i = d->spm_base_i,            \
        .spm_size_i = d->spm_size_i,            \
        .err_addr_o = d->err_addr_o,            \
        .err_code_o = d->err_code_o,            \
        .side = {SIDE(vl), SIDE(va), SIDE(vs)}, \
        .spm_rd_valid_o = d->spm_rd_valid_o,    \
        .spm_rd_ready_i = d->spm_rd_ready_i,    \
        .spm_rd_vld_i = d->spm_rd_vld_i,        \
        .spm_rd_exp_i = d->spm_rd_exp_i,        \
        .spm_rd_perr_i = d->spm_rd_perr_i,      \
        .spm_wr_valid_o = d->spm_wr_valid_o,    \
        .spm_wr_ready_i = d->spm_wr_ready_i,    \
        .spm_wr_other_i = d->spm_wr_other_i,    \
        .spm_wr_yield_o = d->spm_wr_yield_o,    \
        .spm_rd_ctx_o = d->spm_rd_ctx_o,        \
        .spm_wr_exp_o = d->spm_wr_exp_o,        \
        .spm_rd_addr_o = d->spm_rd_addr_o,      \
        .spm_rd_data_i = d->spm_rd_data_i,      \
        .spm_wr_addr_o = d->spm_wr_addr_o,      \
        .spm_wr_data_o = d->spm_wr_data_o,      \
        .acc_rd_valid_o = d->acc_rd_valid_o,    \
        .acc_rd_ctx_o = d->acc_rd_ctx_o,        \
        .acc_rd_tile_o = d->acc_rd_tile_o,      \
        .acc_rd_row_o = d->acc_rd_row_o,        \
        .acc_rd_beat_o = d->acc_rd_beat_o,      \
        .acc_rd_data_i = d->acc_rd_data_i,      \
        .ev_vl_busy_o = d->ev_vl_busy_o,        \
        .ev_va_busy_o = d->ev_va_busy_o,        \
        .ev_vs_busy_o = d->ev_vs_busy_o,        \
        .ev_wait_arb_o = d->ev_wait_arb_o,      \
        .ev_nan_o = d->ev_nan_o,                \
        .probe_o = d->probe_o,                  \
    };                                          \
    return p;                                   \
  }

VARIANT(ct_vpu_16, 16)
VARIANT(ct_vpu_4, 4)
VARIANT(ct_vpu_4f, 4)

static vpu_ports (*const variants[])(void) = {ct_vpu_16_ports, ct_vpu_4_ports, ct_vpu_4f_ports};

void vpu_stalls(vpu_bench *b, uint64_t stream, unsigned read, unsigned write, unsigned dispatch) {
  b->rd_stall = ct_stall_make(4 * stream, read, 3);
  b->wr_stall = ct_stall_make(4 * stream + 1, write, 3);
  for (unsigned c = 0; c < kCtx; ++c)
    b->dispatch_stall[c] = ct_stall_make(4 * stream + 2 + c, dispatch, 20);
}

vpu_bench *vpu_open(unsigned variant, uint64_t stream) {
  vpu_bench *b = calloc(1, sizeof *b);
  assert_non_null(b);
  b->p = variants[variant]();
  b->rng = ct_rng_make(1000 + stream);
  vpu_stalls(b, 1000 + stream, 0, 0, 0);
  const vpu_ports *p = &b->p;
  *p->freeze_i = 0;
  *p->qos_i = ct_tb_qos(0, 0);
  for (unsigned c = 0; c < kCtx; ++c) {
    b->base[c] = c ? 0x81230 : 0x407;
    b->size[c] = kWindow;
    ct_rng_fill(&b->rng, b->ctx[c].model.acc, sizeof b->ctx[c].model.acc);
    /* Exponents of some moderation, or products would hardly ever be finite. */
    uint32_t *acc = &b->ctx[c].model.acc[0][0][0];
    for (unsigned i = 0; i < kTiles * kRows * kCols; ++i)
      acc[i] = (acc[i] & 0x83FFFFFFu) | 0x3C000000u;
  }
  *p->spm_base_i = b->base[0] | (uint64_t)b->base[1] << 20;
  *p->spm_size_i = b->size[0] | (uint64_t)b->size[1] << 20;
  for (unsigned s = 0; s < kSides; ++s) {
    *p->side[s].cmd_valid_i = *p->side[s].flush_i = 0;
    *p->side[s].sem_nz_i = 0;
  }
  *p->spm_rd_vld_i = *p->spm_rd_ready_i = *p->spm_wr_ready_i = *p->spm_rd_perr_i = 0;
  *p->spm_wr_other_i = 0;
  p->reset(p->dut, 3);
  return b;
}

void vpu_close(vpu_bench *b) {
  b->p.close(b->p.dut);
  free(b);
}

/* ---- Program ------------------------------------------------------------------------------- */

void vpu_poke(vpu_bench *b, unsigned c, uint32_t at, const vpu_word *word) {
  b->ctx[c].spm[at] = b->ctx[c].model.spm[at] = *word;
}

unsigned vpu_emit_only(vpu_bench *b, unsigned c, const struct ct_cmd *cmd) {
  vpu_ctx *x = &b->ctx[c];
  assert_true(x->emitted < kMaxProgram);
  x->program[x->emitted] = *cmd;
  return x->emitted++;
}

unsigned vpu_emit(vpu_bench *b, unsigned c, const struct ct_cmd *cmd) {
  vpu_ctx *x = &b->ctx[c];
  assert_true(x->expected + 64 <= kMaxWrites);
  x->expected += vpu_execute(&x->model, cmd, x->writes + x->expected);
  return vpu_emit_only(b, c, cmd);
}

static unsigned side_of(const struct ct_cmd *cmd) {
  const unsigned op = CT_GET(cmd, ALL_OP);
  return op == CT_OP_VL ? kVl : op == CT_OP_VA ? kVa : kVs;
}

static unsigned signals(const struct ct_cmd *cmd) {
  return (CT_GET(cmd, ALL_SIG0) >> 4) + (CT_GET(cmd, ALL_SIG1) >> 4);
}

/* ---- Drivers: inputs of this cycle --------------------------------------------------------- */

/* Like ct_fetch: a command a cycle, in program order, into the queue of its side. */
static void dispatch(vpu_bench *b, unsigned c) {
  vpu_ctx *x = &b->ctx[c];
  if (ct_stall_next(&b->dispatch_stall[c]) || x->dispatched == x->emitted) return;
  const struct ct_cmd *cmd = &x->program[x->dispatched];
  vpu_queue *q = &x->queue[side_of(cmd)];
  if (q->count == kQueue) return;
  q->cmd[q->count++] = *cmd;
  ++x->dispatched;
}

static void drive_side(vpu_bench *b, unsigned s) {
  const vpu_side_ports *p = &b->p.side[s];
  *p->cmd_valid_i = 0;
  *p->sem_nz_i = 0;
  *p->flush_i = (uint8_t)b->flush;
  for (unsigned c = 0; c < kCtx; ++c) {
    vpu_ctx *x = &b->ctx[c];
    if (x->queue[s].count) {
      *p->cmd_valid_i |= (uint8_t)(1u << c);
      memcpy(p->cmd_i + 8 * c, x->queue[s].cmd[0].w, 32);
    } else {
      ct_rng_fill(&b->rng, p->cmd_i + 8 * c, 32);
    }
    for (unsigned i = 0; i < kSems; ++i)
      if (x->sem[i]) *p->sem_nz_i |= 1u << (16 * c + i);
  }
}

static void drive_memories(vpu_bench *b) {
  const vpu_ports *p = &b->p;
  *p->spm_rd_ready_i = !ct_stall_next(&b->rd_stall);
  *p->spm_wr_ready_i = !ct_stall_next(&b->wr_stall);
  *p->spm_rd_vld_i = b->read[1].valid;
  *p->spm_rd_perr_i = b->read[1].perr;
  *p->spm_rd_exp_i = b->read[1].word.exp;
  memcpy(p->spm_rd_data_i, b->read[1].word.byte, 16);
  ct_rng_fill(&b->rng, p->acc_rd_data_i, 4 * p->lanes);
  if (!b->acc[1].valid) return;
  const uint32_t *row = b->ctx[b->acc[1].ctx].model.acc[b->acc[1].tile][b->acc[1].row];
  memcpy(p->acc_rd_data_i, row + 4 * b->acc[1].beat, 4 * p->lanes);
}

static void drive(vpu_bench *b) {
  for (unsigned c = 0; c < kCtx; ++c) {
    vpu_ctx *x = &b->ctx[c];
    if (!(b->flush >> c & 1)) dispatch(b, c);
    for (unsigned i = 0; i < kSems; ++i) {
      if (!x->gift[i] || !ct_rng_percent(&b->rng, 5)) continue;
      --x->gift[i];
      ++x->sem[i];
    }
  }
  for (unsigned s = 0; s < kSides; ++s)
    drive_side(b, s);
  drive_memories(b);
}

/* ---- Monitors: outputs of this cycle ------------------------------------------------------- */

static bool locate(const vpu_bench *b, uint32_t physical, unsigned *c, uint32_t *at) {
  for (*c = 0; *c < kCtx; ++*c) {
    *at = physical - b->base[*c];
    if (*at < b->size[*c]) return true;
  }
  return false;
}

static void watch_reads(vpu_bench *b) {
  const vpu_ports *p = &b->p;
  b->read[1] = b->read[0];
  b->read[0].valid = *p->spm_rd_valid_o && *p->spm_rd_ready_i;
  ct_rng_fill(&b->rng, &b->read[0].word, sizeof b->read[0].word);
  b->read[0].perr = false;
  if (b->read[0].valid) {
    unsigned c;
    uint32_t at;
    assert_true(locate(b, *p->spm_rd_addr_o, &c, &at));
    b->read[0].word = b->ctx[c].spm[at];
    b->read[0].perr = b->ctx[c].bad_parity[at];
  }
  b->acc[1] = b->acc[0];
  b->acc[0].valid = *p->acc_rd_valid_o;
  b->acc[0].ctx = *p->acc_rd_ctx_o;
  b->acc[0].tile = *p->acc_rd_tile_o;
  b->acc[0].row = *p->acc_rd_row_o;
  b->acc[0].beat = *p->acc_rd_beat_o;
  if (p->lanes == 16) assert_int_equal(b->acc[0].beat, 0);
}

static void watch_writes(vpu_bench *b) {
  const vpu_ports *p = &b->p;
  if (!*p->spm_wr_valid_o || !*p->spm_wr_ready_i) return;
  unsigned c;
  uint32_t at;
  assert_true(locate(b, *p->spm_wr_addr_o, &c, &at));
  vpu_ctx *x = &b->ctx[c];
  vpu_word word;
  memcpy(word.byte, p->spm_wr_data_o, 16);
  word.exp = *p->spm_wr_exp_o;
  assert_true(x->seen < x->expected);
  const vpu_write *want = &x->writes[x->seen++];
  if (at != want->at || memcmp(&word, &want->word, sizeof word)) {
    print_error("cycle %llu, context %u, write %u: to %u, expected to %u\n",
                (unsigned long long)b->cycle, c, x->seen - 1, at, want->at);
    assert_int_equal(at, want->at);
    assert_int_equal(word.exp, want->word.exp);
    ct_assert_same("word", word.byte, want->word.byte, 16);
  }
  x->spm[at] = word;
  x->bad_parity[at] = false;
}

static void note_start(vpu_bench *b, unsigned s, unsigned c) {
  if (b->started[s] == kMaxStarts) return;
  b->starts[s][b->started[s]].cycle = b->cycle;
  b->starts[s][b->started[s]].waited = b->cycle - b->ctx[c].queue[s].ready;
  b->starts[s][b->started[s]++].ctx = c;
}

/* Idle must not show while the context has commands inside that have not signalled. */
static void watch_side(vpu_bench *b, unsigned s, unsigned c) {
  const vpu_side_ports *p = &b->p.side[s];
  vpu_ctx *x = &b->ctx[c];
  vpu_queue *q = &x->queue[s];
  const uint32_t inc = *p->sem_inc_o >> 16 * c & 0xFFFF, dec = *p->sem_dec_o >> 16 * c & 0xFFFF;
  const bool flushed = b->flush >> c & 1, idle = *p->idle_o >> c & 1;
  if (q->owed && !flushed && !x->err_code) assert_false(idle);
  if (inc) assert_false(idle);
  if (x->quiet > 2) assert_int_equal(inc, 0);
  /* The first row of a tile starts with its semaphores taken, a cycle or more after it took them.
   */
  if (dec) x->queue[s].paid = true;
  if (!(*b->p.probe_o >> (10 * s + c) & 1)) x->queue[s].ready = b->cycle + 1;
  if (x->queue[s].paid && *b->p.probe_o >> (10 * s + 2 + c) & 1) {
    note_start(b, s, c);
    x->queue[s].paid = false;
  }
  for (unsigned i = 0; i < kSems; ++i) {
    if (dec >> i & 1) {
      assert_true(x->sem[i] > 0);
      --x->sem[i];
    }
    if (inc >> i & 1) {
      assert_true(flushed || x->err_code || q->owed > 0);
      if (q->owed) --q->owed;
      ++x->sem[i];
    }
  }
  if (!(*p->cmd_valid_i & *p->cmd_ready_o & 1u << c)) return;
  assert_false(flushed);
  q->owed += signals(&q->cmd[0]);
  ++q->inside;
  memmove(q->cmd, q->cmd + 1, sizeof q->cmd - sizeof q->cmd[0]);
  --q->count;
}

static void watch_errors(vpu_bench *b) {
  const vpu_ports *p = &b->p;
  for (unsigned c = 0; c < kCtx; ++c) {
    vpu_ctx *x = &b->ctx[c];
    x->nan_events += *p->ev_nan_o >> c & 1;
    for (unsigned side = 0; side < 3; ++side)
      b->wait_arb[c] += *p->ev_wait_arb_o >> (2 * side + c) & 1;
    x->quiet = x->err_code || (b->flush >> c & 1) ? x->quiet + 1 : 0;
    if (!(*p->err_o >> c & 1) || x->err_code) continue;
    x->err_code = (uint8_t)(*p->err_code_o >> 8 * c);
    x->err_addr = (uint32_t)(*p->err_addr_o >> 32 * c);
  }
}

void vpu_cycle(vpu_bench *b) {
  *b->p.qos_i = ct_tb_qos(b->policy, b->floor);
  drive(b);
  b->p.eval(b->p.dut);
  watch_errors(b);
  watch_reads(b); /* before the writes: a read sees those of earlier cycles only */
  watch_writes(b);
  for (unsigned s = 0; s < kSides; ++s)
    for (unsigned c = 0; c < kCtx; ++c)
      watch_side(b, s, c);
  b->p.tick(b->p.dut);
  ++b->cycle;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

bool vpu_finished(const vpu_bench *b, unsigned c) {
  const vpu_ctx *x = &b->ctx[c];
  bool done = x->dispatched == x->emitted;
  for (unsigned s = 0; s < kSides; ++s)
    done = done && !x->queue[s].count && (*b->p.side[s].idle_o >> c & 1);
  return done;
}

void vpu_compare(vpu_bench *b, unsigned c) {
  vpu_ctx *x = &b->ctx[c];
  assert_int_equal(x->seen, x->expected);
  assert_int_equal(x->nan_events, x->model.nan_groups);
  assert_int_equal(x->err_code, 0);
  ct_assert_same("SPM", x->spm, x->model.spm, sizeof x->spm);
  for (unsigned s = 0; s < kSides; ++s)
    assert_int_equal(x->queue[s].owed, 0);
  for (unsigned i = 0; i < kSems; ++i)
    assert_int_equal(x->gift[i], 0);
}

void vpu_run(vpu_bench *b, uint64_t limit) {
  const uint64_t end = b->cycle + limit;
  do {
    vpu_cycle(b);
    if (b->cycle >= end) fail_msg("not finished after %llu cycles", (unsigned long long)limit);
  } while (!vpu_finished(b, 0) || !vpu_finished(b, 1));
  for (unsigned c = 0; c < kCtx; ++c)
    vpu_compare(b, c);
}

void vpu_abort(vpu_bench *b, unsigned c, uint64_t limit) {
  vpu_ctx *x = &b->ctx[c];
  const uint64_t end = b->cycle + limit;
  x->dispatched = x->emitted = 0;
  for (unsigned s = 0; s < kSides; ++s)
    x->queue[s].count = 0;
  b->flush |= 1u << c;
  do {
    vpu_cycle(b);
    assert_true(b->cycle < end);
  } while (!vpu_finished(b, c));
  /* Idle stays: nothing comes afterwards. */
  for (unsigned i = 0; i < 40; ++i) {
    vpu_cycle(b);
    assert_true(vpu_finished(b, c));
  }
  b->flush &= ~(1u << c);
  memset(x->sem, 0, sizeof x->sem);
  memset(x->gift, 0, sizeof x->gift);
  for (unsigned s = 0; s < kSides; ++s)
    x->queue[s].inside = x->queue[s].owed = 0, x->queue[s].paid = false;
  memcpy(x->model.spm, x->spm, sizeof x->spm);
  x->expected = x->seen = 0;
  x->nan_events = x->model.nan_groups = 0;
  x->err_code = 0;
}
