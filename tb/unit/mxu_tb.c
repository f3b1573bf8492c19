/* SPDX-License-Identifier: Apache-2.0 */
#include "mxu_tb.h"

#include <stdlib.h>
#include <string.h>

#include "ct_mxu_c16_dut.h"
#include "ct_mxu_c16p_dut.h"
#include "ct_mxu_c4_dut.h"
#include "ct_mxu_c4w_dut.h"
#include "ct_mxu_c8_dut.h"
#include "ct_mxu_c8p_dut.h"

#define PIN(d, n) .n = (d)->n
#define VARIANT(name, num_cols, num_lanes, walks) \
  CT_TB_ANY(name)                                 \
  CT_TB_ANY_CLOCK(name)                           \
  static mxu_pins name##_open(void) {             \
    name##_dut *d = name##_new(ct_tb_trace());    \
    return (mxu_pins){d,                          \
                      name##_eval_any,            \
                      name##_tick_any,            \
                      name##_reset_any,           \
                      name##_free_any,            \
                      num_cols,                   \
                      num_lanes,                  \
                      walks,                      \
                      PIN(d, cmd_valid_i),        \
                      PIN(d, cmd_ready_o),        \
                      PIN(d, flush_i),            \
                      PIN(d, idle_o),             \
                      PIN(d, err_o),              \
                      PIN(d, qos_i),              \
                      PIN(d, freeze_i),           \
                      PIN(d, cmd_i),              \
                      PIN(d, sem_nz_i),           \
                      PIN(d, sem_dec_o),          \
                      PIN(d, sem_inc_o),          \
                      PIN(d, err_code_o),         \
                      PIN(d, err_addr_o),         \
                      PIN(d, spm_base_i),         \
                      PIN(d, spm_size_i),         \
                      PIN(d, spm_rd_addr_o),      \
                      PIN(d, spm_rd_valid_o),     \
                      PIN(d, spm_rd_ready_i),     \
                      PIN(d, spm_rd_vld_i),       \
                      PIN(d, spm_rd_perr_i),      \
                      PIN(d, spm_rd_data_i),      \
                      PIN(d, spm_rd_exp_i),       \
                      PIN(d, acc_rd_valid_i),     \
                      PIN(d, acc_rd_ctx_i),       \
                      PIN(d, acc_rd_tile_i),      \
                      PIN(d, acc_rd_row_i),       \
                      PIN(d, acc_rd_beat_i),      \
                      PIN(d, acc_rd_data_o),      \
                      PIN(d, ev_rows_o),          \
                      PIN(d, ev_busy_o),          \
                      PIN(d, ev_wait_arb_o),      \
                      PIN(d, ev_wait_b_o),        \
                      PIN(d, ev_wait_a_o),        \
                      PIN(d, ev_wait_sem_o)};     \
  }

VARIANT(ct_mxu_c16, 16, 16, true)
VARIANT(ct_mxu_c8, 8, 4, false)
VARIANT(ct_mxu_c16p, 16, 4, false)
VARIANT(ct_mxu_c8p, 8, 16, true)
VARIANT(ct_mxu_c4, 4, 4, true)
VARIANT(ct_mxu_c4w, 4, 16, false)

static mxu_pins (*const variants[kVariants])(void) = {ct_mxu_c16_open, ct_mxu_c8_open,
                                                      ct_mxu_c4_open,  ct_mxu_c16p_open,
                                                      ct_mxu_c8p_open, ct_mxu_c4w_open};
const char *const mxu_variant_names[kVariants] = {
    "16x16, 16 lanes, walks",        "16x8, 4 lanes",
    "16x4, 4 lanes, walks",          "16x16, 4 lanes, packed",
    "16x8, 16 lanes, packed, walks", "16x4, 16 lanes",
};

enum { kNobody = 2 }; /* instead of a context: reads of what was flushed */

mxu_tb *mxu_tb_open(unsigned variant, uint64_t stream, unsigned stall) {
  mxu_tb *tb = calloc(1, sizeof *tb);
  assert_non_null(tb);
  tb->p = variants[variant]();
  tb->spm = calloc(1, sizeof *tb->spm);
  assert_non_null(tb->spm);
  tb->rng = ct_rng_make(stream * 16);
  for (unsigned i = 0; i < 3; ++i)
    tb->spm_stall[i] = ct_stall_make(stream * 16 + 1 + i, stall, 1 + 3 * (i % 2));
  for (unsigned i = 0; i < 2; ++i)
    tb->cmd_stall[i] = ct_stall_make(stream * 16 + 4 + i, stall, 20);
  tb->acc_stall = ct_stall_make(stream * 16 + 6, stall, 5);
  tb->give_percent = 100;
  for (unsigned c = 0; c < 2; ++c) {
    tb->c[c].base = c * (kSpmWords / 2);
    tb->c[c].size = kSpmWords / 2;
    tb->c[c].expect = calloc(1, sizeof *tb->c[c].expect);
    assert_non_null(tb->c[c].expect);
  }
  tb->p.reset(tb->p.dut, 2);
  return tb;
}

void mxu_tb_close(mxu_tb *tb) {
  tb->p.close(tb->p.dut);
  for (unsigned c = 0; c < 2; ++c)
    free(tb->c[c].expect);
  free(tb->spm);
  free(tb);
}

static uint8_t random_exp(ct_rng *rng) {
  const unsigned dice = ct_rng_below(rng, 400);
  if (dice == 0) return 255;
  if (dice < 20) return 0;
  if (dice < 24) return 1;
  if (dice < 26) return 254;
  return (uint8_t)(117 + ct_rng_below(rng, 20));
}

void mxu_tb_fill(mxu_tb *tb) {
  for (uint32_t w = 0; w < kSpmWords; ++w) {
    const bool square = w % (kSpmWords / 2) >= kSpmWords / 4;
    tb->spm->e[w] = square && w % 16 ? tb->spm->e[w - 1] : random_exp(&tb->rng);
    tb->spm->bad[w] = false;
    const bool extreme = ct_rng_percent(&tb->rng, 5);
    for (unsigned i = 0; i < 16; ++i) {
      const int q = (int)ct_rng_below(&tb->rng, 255) - 127;
      tb->spm->q[w][i] = (int8_t)(extreme ? (q < 0 ? -127 : 127) : q);
    }
  }
}

static void sum_up_waits(mxu_ctx *c) {
  const mxu_expect *x = c->expect;
  for (unsigned k = 0; k < x->num_steps; ++k) {
    const struct ct_cmd *cmd = &x->step_cmd[k];
    const uint32_t w0 = CT_GET(cmd, ALL_WAIT0), w1 = CT_GET(cmd, ALL_WAIT1);
    for (unsigned s = 0; s < 16; ++s)
      c->cum[k][s] = (k ? c->cum[k - 1][s] : 0) + (w0 == (16 | s) || w1 == (16 | s));
  }
}

static void owe_wait2(mxu_ctx *c, unsigned cmd) {
  if (cmd < c->num_cmds) c->owed[6 + cmd % 2] += c->cmd_tiles[cmd];
}

void mxu_tb_load(mxu_tb *tb, unsigned ctx, mxu_mode mode, const struct ct_cmd *cmds, unsigned num) {
  mxu_ctx *c = &tb->c[ctx];
  mxu_expect *x = c->expect;
  const mxu_acc acc = x->acc;
  memset(x, 0, sizeof *x);
  x->acc = acc;
  const mxu_ctx keep = {.base = c->base, .size = c->size, .expect = x, .mode = mode};
  *c = keep;
  assert_true(num <= kMaxCmds);
  c->num_cmds = num;
  for (unsigned i = 0; i < num; ++i) {
    c->cmds[i] = cmds[i];
    c->cmd_tiles[i] = CT_GET(&cmds[i], MM_NT) * ((CT_GET(&cmds[i], MM_ROWS) + 15) / 16);
    if (CT_GET(&cmds[i], ALL_OP) != CT_OP_MM) c->cmd_tiles[i] = 0;
    mxu_model_run(x, &cmds[i], tb->spm, c->base);
  }
  sum_up_waits(c);
  memcpy(c->owed, x->takes, sizeof c->owed);
  if (mode == kHandshake) {
    c->owed[6] = c->owed[7] = 0;
    owe_wait2(c, 0);
    owe_wait2(c, 1);
  }
}

/* ---- drivers ---- */

static void drive_commands(mxu_tb *tb) {
  *tb->p.cmd_valid_i = 0;
  for (unsigned i = 0; i < 2; ++i) {
    const mxu_ctx *c = &tb->c[i];
    if (c->next_cmd == c->num_cmds || c->lost || ct_stall_next(&tb->cmd_stall[i])) continue;
    *tb->p.cmd_valid_i |= (uint8_t)(1u << i);
    memcpy(&tb->p.cmd_i[8 * i], c->cmds[c->next_cmd].w, 32);
  }
}

static void drive_semaphores(mxu_tb *tb) {
  uint32_t nz = 0;
  for (unsigned i = 0; i < 32; ++i)
    nz |= (uint32_t)(tb->c[i / 16].sem[i % 16] > 0) << i;
  *tb->p.sem_nz_i = nz;
}

static void drive_spm(mxu_tb *tb) {
  *tb->p.spm_rd_vld_i = 0;
  *tb->p.spm_rd_ready_i = 0;
  for (unsigned port = 0; port < 3; ++port) {
    const mxu_spm_beat *beat = &tb->spm_pipe[port][1];
    uint32_t *data = &tb->p.spm_rd_data_i[4 * port];
    *tb->p.spm_rd_exp_i &= ~(0xFFu << 8 * port);
    *tb->p.spm_rd_perr_i &= (uint8_t) ~(1u << port);
    if (beat->valid) {
      *tb->p.spm_rd_vld_i |= (uint8_t)(1u << port);
      memcpy(data, tb->spm->q[beat->addr], 16);
      *tb->p.spm_rd_exp_i |= (uint32_t)tb->spm->e[beat->addr] << 8 * port;
      *tb->p.spm_rd_perr_i |= (uint8_t)(tb->spm->bad[beat->addr] << port);
    } else {
      ct_rng_fill(&tb->rng, data, 16);
    }
    if (!ct_stall_next(&tb->spm_stall[port])) *tb->p.spm_rd_ready_i |= (uint8_t)(1u << port);
  }
}

static void drive_reader(mxu_tb *tb) {
  mxu_job *job = &tb->jobs[tb->first_job % 64];
  *tb->p.acc_rd_valid_i = 0;
  tb->acc_pipe[1] = tb->acc_pipe[0];
  tb->acc_pipe[0].valid = false;
  if (tb->num_jobs == 0 || ct_stall_next(&tb->acc_stall)) return;
  *tb->p.acc_rd_valid_i = 1;
  *tb->p.acc_rd_ctx_i = (uint8_t)job->ctx;
  *tb->p.acc_rd_tile_i = (uint8_t)job->tile;
  *tb->p.acc_rd_row_i = (uint8_t)job->row;
  *tb->p.acc_rd_beat_i = (uint8_t)job->beat;
  tb->acc_pipe[0] = (mxu_acc_beat){true, job->ctx, job->row, job->beat, job->want};
  if (++job->beat < 16 / tb->p.lanes) return;
  job->beat = 0;
  if (++job->row < 16) return;
  ++tb->first_job;
  --tb->num_jobs;
  if (!job->from_signal) return;
  mxu_ctx *c = &tb->c[job->ctx];
  ++c->finals_read;
  unsigned cmd = 0;
  for (unsigned tiles = c->cmd_tiles[0]; tiles < c->finals_read; tiles += c->cmd_tiles[cmd])
    ++cmd;
  unsigned upto = 0;
  for (unsigned i = 0; i <= cmd; ++i)
    upto += c->cmd_tiles[i];
  if (upto == c->finals_read) owe_wait2(c, cmd + 2);
}

/* ---- monitors ---- */

static void push_job(mxu_tb *tb, unsigned ctx, const mxu_final *want, bool from_signal) {
  assert_true(tb->num_jobs < 64);
  tb->jobs[(tb->first_job + tb->num_jobs++) % 64] =
      (mxu_job){ctx, want->tile, 0, 0, want, from_signal};
}

/* The k-th signal of a semaphore belongs to the k-th step that names it, whose words must have
 * arrived. */
static void check_sig0(mxu_ctx *c, unsigned s) {
  unsigned *k = &c->sig0_step[s];
  const mxu_expect *x = c->expect;
  while (*k < x->num_steps && CT_GET(&x->step_cmd[*k], ALL_SIG0) != (16 | s))
    ++*k;
  assert_true(*k < x->num_steps);
  assert_true(c->arrived[0] >= x->a_end[*k] && c->arrived[1] >= x->b_end[*k]);
  ++*k;
}

static bool is_sig1(const mxu_ctx *c, unsigned s) {
  return c->mode == kHandshake && s >= 13;
}

static void monitor_signals(mxu_tb *tb) {
  for (unsigned i = 0; i < 32; ++i) {
    if (!(*tb->p.sem_inc_o >> i & 1)) continue;
    mxu_ctx *c = &tb->c[i / 16];
    if (c->lost) continue;
    ++c->given[i % 16];
    if (is_sig1(c, i % 16)) {
      assert_true(c->finals_seen < c->expect->num_finals);
      push_job(tb, i / 16, &c->expect->final[c->finals_seen++], true);
    } else if (c->mode != kShared && i % 16 < 13) {
      check_sig0(c, i % 16);
    }
  }
}

static void monitor_acc(const mxu_tb *tb) {
  const mxu_acc_beat *beat = &tb->acc_pipe[1];
  if (!beat->valid || !beat->want || !beat->want->known[beat->row]) return;
  const uint32_t *want = &beat->want->x[beat->row][tb->p.lanes * beat->beat];
  for (unsigned i = 0; i < tb->p.lanes; ++i) {
    if (tb->p.acc_rd_data_o[i] == want[i]) continue;
    fail_msg(
        "16x%u, %u lanes: context %u tile %u row %u column %u: got %08x, want %08x (cycle %llu)",
        tb->p.cols, tb->p.lanes, beat->ctx, beat->want->tile, beat->row,
        tb->p.lanes * beat->beat + i, tb->p.acc_rd_data_o[i], want[i],
        (unsigned long long)tb->cycle);
  }
}

/* A word was granted: it is the next one of its stream, and its k step was permitted. */
static void check_read(mxu_ctx *c, unsigned stream, uint32_t addr) {
  const mxu_expect *x = c->expect;
  assert_true(c->granted[stream] < (stream ? x->num_b : x->num_a));
  const mxu_read *read = stream ? &x->b[c->granted[stream]] : &x->a[c->granted[stream]];
  if (addr != read->addr)
    fail_msg("stream %u word %u: address %x, want %x", stream, c->granted[stream], addr,
             read->addr);
  ++c->granted[stream];
  if (c->mode == kShared) return;
  for (unsigned s = 0; s < 6; ++s)
    assert_true(c->taken[s] >= c->cum[read->step][s]);
}

static void monitor_spm(mxu_tb *tb) {
  for (unsigned port = 0; port < 3; ++port) {
    const mxu_spm_beat done = tb->spm_pipe[port][1];
    if (done.valid && done.ctx != kNobody) ++tb->c[done.ctx].arrived[port != 0];
    tb->spm_pipe[port][1] = tb->spm_pipe[port][0];
    tb->spm_pipe[port][0].valid = false;
    if (!(*tb->p.spm_rd_valid_o & *tb->p.spm_rd_ready_i & (1u << port))) continue;
    const uint32_t addr = (uint32_t)(*tb->p.spm_rd_addr_o >> 20 * port & 0xFFFFF);
    const unsigned ctx = addr >= tb->c[1].base;
    assert_true(addr < kSpmWords && (port == 0 || ctx == port - 1));
    tb->spm_pipe[port][0] = (mxu_spm_beat){true, tb->c[ctx].lost ? kNobody : ctx, addr};
    if (!tb->c[ctx].lost) check_read(&tb->c[ctx], port != 0, addr);
  }
}

static void monitor_rows(mxu_tb *tb) {
  assert_true(*tb->p.ev_rows_o != 3);
  for (unsigned i = 0; i < 2; ++i) {
    mxu_ctx *c = &tb->c[i];
    const unsigned bit = 1u << i;
    c->busy += (*tb->p.ev_busy_o & bit) != 0;
    c->wait_b += (*tb->p.ev_wait_b_o & bit) != 0;
    c->wait_a += (*tb->p.ev_wait_a_o & bit) != 0;
    c->wait_sem += (*tb->p.ev_wait_sem_o & bit) != 0;
    c->wait_arb += (*tb->p.ev_wait_arb_o & bit) != 0;
    c->wait_run = *tb->p.ev_wait_arb_o & bit ? c->wait_run + 1 : 0;
    if (c->wait_run > c->max_wait_run) c->max_wait_run = c->wait_run;
    if (!(*tb->p.ev_rows_o & bit)) continue;
    if (c->rows++ == 0) c->first_row = tb->cycle;
    c->last_row = tb->cycle;
    if (c->lost) continue;
    assert_true(c->op < c->expect->num_ops);
    /* Under FCFS, ROUND_ROBIN and JOB row tiles do not mix. */
    if (tb->policy >= 1 && tb->policy <= 3) assert_true(tb->c[!i].op_row % 16 == 0);
    if (++c->op_row == c->expect->op_rows[c->op]) {
      c->op_row = 0;
      ++c->op;
    }
  }
}

static void monitor_errors(mxu_tb *tb) {
  for (unsigned i = 0; i < 2; ++i) {
    if (!(*tb->p.err_o >> i & 1)) continue;
    mxu_ctx *c = &tb->c[i];
    assert_false(c->err); /* one error until the flush */
    c->err = true;
    c->op_row = 0; /* an operation that has failed does not hold up the other context */
    c->err_code = (uint8_t)(*tb->p.err_code_o >> 8 * i);
    c->err_addr = (uint32_t)(*tb->p.err_addr_o >> 32 * i);
  }
}

/* Counts move at the end of the cycle. */
static void move_semaphores(mxu_tb *tb) {
  for (unsigned i = 0; i < 32; ++i) {
    mxu_ctx *c = &tb->c[i / 16];
    const unsigned s = i % 16;
    if (*tb->p.sem_dec_o >> i & 1) {
      assert_true(c->sem[s] > 0);
      --c->sem[s];
      ++c->taken[s];
    }
    if (c->owed[s] && ct_rng_percent(&tb->rng, tb->give_percent)) {
      --c->owed[s];
      ++c->sem[s];
    }
  }
}

void mxu_tb_cycle(mxu_tb *tb) {
  monitor_signals(tb);
  monitor_errors(
      tb); /* a context stops a cycle before its error, as late as its last row, is told */
  monitor_rows(tb);
  *tb->p.qos_i = ct_tb_qos(tb->policy, tb->floor);
  *tb->p.spm_base_i = tb->c[0].base | (uint64_t)tb->c[1].base << 20;
  *tb->p.spm_size_i = tb->c[0].size | (uint64_t)tb->c[1].size << 20;
  monitor_acc(tb);
  drive_commands(tb);
  drive_semaphores(tb);
  drive_spm(tb);
  drive_reader(tb);
  tb->p.eval(tb->p.dut);
  for (unsigned i = 0; i < 2; ++i)
    tb->c[i].next_cmd += *tb->p.cmd_valid_i >> i & *tb->p.cmd_ready_o >> i & 1;
  monitor_spm(tb);
  move_semaphores(tb);
  tb->p.tick(tb->p.dut);
  ++tb->cycle;
}

bool mxu_tb_done(const mxu_tb *tb, unsigned ctx) {
  const mxu_ctx *c = &tb->c[ctx];
  if (c->lost) return true;
  return c->next_cmd == c->num_cmds && *tb->p.idle_o >> ctx & 1 &&
         (c->mode != kHandshake || c->finals_read == c->expect->num_finals);
}

static void check_totals(const mxu_tb *tb, unsigned ctx) {
  const mxu_ctx *c = &tb->c[ctx];
  if (c->lost) return;
  const mxu_expect *x = c->expect;
  assert_int_equal(c->granted[0], x->num_a);
  assert_int_equal(c->granted[1], x->num_b);
  assert_int_equal(c->rows, x->num_rows);
  assert_int_equal(c->busy, x->num_rows * (16 / tb->p.cols));
  for (unsigned s = 0; s < 16; ++s) {
    assert_int_equal(c->taken[s], x->takes[s]);
    assert_int_equal(c->given[s], x->gives[s]);
  }
}

void mxu_tb_run(mxu_tb *tb, unsigned limit) {
  for (unsigned i = 0; !mxu_tb_done(tb, 0) || !mxu_tb_done(tb, 1) || tb->num_jobs; ++i) {
    if (i == limit) fail_msg("not done after %u cycles", limit);
    mxu_tb_cycle(tb);
  }
  for (unsigned i = 0; i < 4; ++i)
    mxu_tb_cycle(tb); /* registered events */
  check_totals(tb, 0);
  check_totals(tb, 1);
}

void mxu_tb_check_acc(mxu_tb *tb, unsigned ctx) {
  mxu_final *want = calloc(16, sizeof *want);
  assert_non_null(want);
  const mxu_acc *acc = &tb->c[ctx].expect->acc;
  for (unsigned t = 0; t < 16; ++t) {
    want[t].tile = t;
    memcpy(want[t].x, acc->x[t], sizeof want[t].x);
    memcpy(want[t].known, acc->known[t], sizeof want[t].known);
    push_job(tb, ctx, &want[t], false);
  }
  for (unsigned i = 0; i < 100000 && tb->num_jobs; ++i)
    mxu_tb_cycle(tb);
  for (unsigned i = 0; i < 3; ++i)
    mxu_tb_cycle(tb);
  free(want);
}

void mxu_tb_flush(mxu_tb *tb, unsigned ctx, unsigned cycles, bool wait) {
  mxu_ctx *c = &tb->c[ctx];
  *tb->p.flush_i |= (uint8_t)(1u << ctx);
  mxu_tb_cycle(tb); /* it takes effect in the next cycle */
  c->lost = true;
  memset(c->sem, 0, sizeof c->sem);
  memset(c->owed, 0, sizeof c->owed);
  c->op_row = 0;
  for (unsigned port = 0; port < 3; ++port)
    for (unsigned i = 0; i < 2; ++i)
      if (tb->spm_pipe[port][i].ctx == ctx) tb->spm_pipe[port][i].ctx = kNobody;
  for (unsigned i = 0; i < cycles || (wait && !(*tb->p.idle_o >> ctx & 1)); ++i) {
    assert_true(i < 200);
    mxu_tb_cycle(tb);
  }
  *tb->p.flush_i &= (uint8_t) ~(1u << ctx);
  memset(c->expect->acc.known, 0, sizeof c->expect->acc.known);
  c->err = false;
}
