/* SPDX-License-Identifier: Apache-2.0 */
#include "dma_bench.h"

#include <stdlib.h>
#include <string.h>

/* ---- Set-up -------------------------------------------------------------------------------- */

static void set_windows(ct_dma_dut *d) {
  *d->rd_base_i = *d->rd_limit_i = *d->wr_base_i = *d->wr_limit_i = 0;
  *d->spm_base_i = *d->spm_size_i = 0;
  for (unsigned c = 0; c < kCtx; ++c) {
    const uint64_t base = c * kCtxUnits;
    *d->rd_base_i |= base << (32 * c);
    *d->rd_limit_i |= (base + kRdUnits) << (32 * c);
    *d->wr_base_i |= (base + kRdUnits) << (32 * c);
    *d->wr_limit_i |= (base + kCtxUnits) << (32 * c);
    *d->spm_base_i |= (uint64_t)(c * kCtxSpm) << (20 * c);
    *d->spm_size_i |= (uint64_t)kCtxSpm << (20 * c);
  }
}

static void fill(dma_bench *b) {
  ct_rng rng = ct_rng_make(1000);
  ct_rng_fill(&rng, ct_axi_mem_data(b->mem), 16 * kUnits);
  memcpy(b->model_dram, ct_axi_mem_data(b->mem), 16 * kUnits);
  for (int i = 0; i < kSpm; ++i) {
    ct_rng_fill(&rng, b->spm[i].q, 16);
    b->spm[i].e = (uint8_t)ct_rng_u64(&rng);
  }
  memcpy(b->model_spm, b->spm, sizeof b->spm);
}

dma_bench *dma_open(const struct dma_config *config) {
  dma_bench *b = test_calloc(1, sizeof *b);
  b->config = *config;
  b->config.mem.bytes = 16 * kUnits;
  b->config.mem.seed = ct_tb_seed() + 1;
  b->mem = ct_axi_mem_new(&b->config.mem);
  b->model_dram = malloc(16 * kUnits);
  assert_non_null(b->mem);
  assert_non_null(b->model_dram);
  b->rng = ct_rng_make(1001);
  b->spm_stall = ct_stall_make(1002, config->spm_stall, 3);
  for (unsigned c = 0; c < kCtx; ++c) {
    for (unsigned s = 0; s < kSides; ++s)
      b->queue[c][s].stall = ct_stall_make(1010 + 2 * c + s, config->cmd_stall, 20);
    b->fetcher[c].stall = ct_stall_make(1020 + c, config->cmd_stall, 20);
  }
  b->bad_word = -1;
  b->r_first = b->w_first = UINT64_MAX;
  fill(b);

  ct_dma_dut *d = b->dut = ct_dma_new(ct_tb_trace());
  set_windows(d);
  *d->train_cap_i = 8;
  *d->ld_yield_i = *d->ld_block_i = 0;
  *d->qos_i = ct_tb_qos(0, 0);
  *d->freeze_i = *d->flush_i = *d->abandon_i = 0;
  *d->ld_cmd_valid_i = *d->st_cmd_valid_i = *d->fetch_valid_i = 0;
  *d->fetch_soft_i = *d->fetch_drop_i = *d->st_seal_i = 0;
  *d->gat_gnt_i = *d->gat_vld_i = 0;
  *d->m_axi_rvalid_i = *d->m_axi_bvalid_i = *d->spm_rd_vld_i = 0;
  ct_dma_reset(d, 2);
  return b;
}

void dma_close(dma_bench *b) {
  ct_dma_free(b->dut);
  ct_axi_mem_free(b->mem);
  free(b->model_dram);
  test_free(b);
}

/* ---- Commands and the model ---------------------------------------------------------------- */

struct ct_cmd dma_command(uint32_t dram, uint32_t spm, bool hdr, unsigned nb, unsigned s0) {
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, DMA_DRAM, dram);
  CT_PUT(&cmd, DMA_SPM, spm);
  CT_PUT(&cmd, DMA_HDR, hdr);
  CT_PUT(&cmd, DMA_NB, nb);
  CT_PUT(&cmd, DMA_S0, s0);
  CT_PUT(&cmd, DMA_N1, 1);
  CT_PUT(&cmd, DMA_N2, 1);
  return cmd;
}

void dma_loop1(struct ct_cmd *cmd, unsigned n1, int d1, int s1) {
  CT_PUT(cmd, DMA_N1, n1);
  CT_PUT(cmd, DMA_D1, (uint32_t)d1);
  CT_PUT(cmd, DMA_S1, (uint32_t)s1);
}

void dma_loop2(struct ct_cmd *cmd, unsigned n2, int d2, int s2) {
  CT_PUT(cmd, DMA_N2, n2);
  CT_PUT(cmd, DMA_D2, (uint32_t)d2);
  CT_PUT(cmd, DMA_S2, (uint32_t)s2);
}

struct run {
  uint32_t dram, spm, nb, s0;
  bool hdr;
};

static struct run run_of(const struct ct_cmd *cmd, unsigned i2, unsigned i1) {
  const struct run r = {
      .dram = CT_GET(cmd, DMA_DRAM) + i2 * (uint32_t)CT_GETS(cmd, DMA_D2) +
              i1 * (uint32_t)CT_GETS(cmd, DMA_D1),
      .spm = (CT_GET(cmd, DMA_SPM) + i2 * (uint32_t)CT_GETS(cmd, DMA_S2) +
              i1 * (uint32_t)CT_GETS(cmd, DMA_S1)) &
             0xFFFFF,
      .nb = CT_GET(cmd, DMA_NB),
      .s0 = CT_GET(cmd, DMA_S0),
      .hdr = CT_GET(cmd, DMA_HDR),
  };
  return r;
}

/* Bursts of a run by the rules of the bus: pages of 256 units, 16 beats unless it is a record. */
static unsigned bursts_of(const struct run *r) {
  uint32_t left = r->nb + r->hdr, addr = r->dram;
  unsigned n = 0;
  while (left) {
    uint32_t beats = 256 - addr % 256;
    if (beats > left) beats = left;
    if (!r->hdr && beats > 16) beats = 16;
    addr += beats;
    left -= beats;
    ++n;
  }
  return n;
}

static void model_load(dma_bench *b, int ctx, const struct run *r) {
  const uint8_t *p = b->model_dram + (size_t)r->dram * 16;
  for (uint32_t j = 0; j < r->nb; ++j) {
    struct dma_word *w = &b->model_spm[ctx * kCtxSpm + r->spm + j * r->s0];
    memcpy(w->q, p + 16 * (j + r->hdr), 16);
    w->e = r->hdr ? p[j] : 0;
  }
}

static void model_store(dma_bench *b, int ctx, const struct run *r) {
  uint8_t *p = b->model_dram + (size_t)r->dram * 16;
  if (r->hdr) memset(p, 0, 16);
  for (uint32_t j = 0; j < r->nb; ++j) {
    const struct dma_word *w = &b->model_spm[ctx * kCtxSpm + r->spm + j * r->s0];
    memcpy(p + 16 * (j + r->hdr), w->q, 16);
    if (r->hdr) p[j] = w->e;
  }
}

static void expect_signal(struct dma_queue *q, uint32_t field) {
  if (!(field & 16)) return;
  assert_true(q->sig_tail < kMaxSigs);
  q->sig[q->sig_tail++] = (struct dma_sig){field & 15, q->pushed, q->promised};
}

static void model_command(dma_bench *b, int ctx, int side, const struct ct_cmd *cmd) {
  struct dma_queue *q = &b->queue[ctx][side];
  for (unsigned i2 = 0; i2 < CT_GET(cmd, DMA_N2); ++i2) {
    for (unsigned i1 = 0; i1 < CT_GET(cmd, DMA_N1); ++i1) {
      const struct run r = run_of(cmd, i2, i1);
      if (side == kLd)
        model_load(b, ctx, &r);
      else
        model_store(b, ctx, &r);
      q->promised += side == kLd ? r.nb : bursts_of(&r);
    }
    expect_signal(q, CT_GET(cmd, ALL_SIG0));
  }
  expect_signal(q, CT_GET(cmd, ALL_SIG1));
}

void dma_push_wrong(dma_bench *b, int ctx, int side, const struct ct_cmd *cmd) {
  struct dma_queue *q = &b->queue[ctx][side];
  assert_true(q->pushed < kMaxCmds);
  q->cmd[q->pushed++] = *cmd;
}

void dma_push(dma_bench *b, int ctx, int side, const struct ct_cmd *cmd) {
  model_command(b, ctx, side, cmd);
  dma_push_wrong(b, ctx, side, cmd);
}

static void fetch(dma_bench *b, int ctx, uint32_t addr, uint32_t len, bool soft) {
  struct dma_fetcher *f = &b->fetcher[ctx];
  assert_true(f->pushed - f->answered < kMaxFetches);
  f->fetch[f->pushed++ % kMaxFetches] = (struct dma_fetch){addr, len, soft};
}

void dma_fetch(dma_bench *b, int ctx, uint32_t addr, uint32_t len) {
  fetch(b, ctx, addr, len, false);
}

void dma_fetch_soft(dma_bench *b, int ctx, uint32_t addr, uint32_t len) {
  fetch(b, ctx, addr, len, true);
}

/* Whether every run of the command lies in the region. */
static bool fits(const struct ct_cmd *cmd, uint32_t dram, uint32_t spm) {
  for (unsigned i2 = 0; i2 < CT_GET(cmd, DMA_N2); ++i2) {
    for (unsigned i1 = 0; i1 < CT_GET(cmd, DMA_N1); ++i1) {
      const struct run r = run_of(cmd, i2, i1);
      if ((uint64_t)(r.dram - dram) + r.nb + r.hdr > kRdUnits) return false;
      if (r.spm < spm || r.spm + (r.nb - 1) * r.s0 >= spm + kCtxSpm / 2) return false;
    }
  }
  return true;
}

static int random_stride(ct_rng *rng, int dense, int most) {
  if (ct_rng_percent(rng, 50)) return dense;
  return (int)ct_rng_below(rng, (uint32_t)(2 * most)) - most;
}

static uint32_t random_sem(dma_bench *b, ct_rng *rng, int ctx, unsigned sem, unsigned owed) {
  if (ct_rng_percent(rng, 60)) return 0;
  b->owed[ctx][sem] += owed;
  return CT_SEM(sem);
}

struct ct_cmd dma_random_command(dma_bench *b, ct_rng *rng, int ctx, int side) {
  const uint32_t dram = (uint32_t)ctx * kCtxUnits + (side == kSt ? kRdUnits : 0);
  const uint32_t spm = side == kSt ? kCtxSpm / 2 : 0;
  const unsigned first_sem = side == kSt ? 8 : 0;
  struct ct_cmd cmd;
  do {
    const bool hdr = ct_rng_percent(rng, 50);
    const unsigned most = hdr ? 16 : ct_rng_percent(rng, 20) ? 256 : 20;
    const unsigned nb = ct_rng_percent(rng, 30) ? most : 1 + ct_rng_below(rng, most);
    const unsigned s0 = ct_rng_percent(rng, 60) ? 1 : ct_rng_below(rng, 40);
    cmd = dma_command(dram + ct_rng_below(rng, kRdUnits), spm + ct_rng_below(rng, kCtxSpm / 2), hdr,
                      nb, s0);
    dma_loop1(&cmd, 1 + ct_rng_below(rng, 5), random_stride(rng, (int)nb + hdr, 200),
              random_stride(rng, (int)nb, 100));
    dma_loop2(&cmd, 1 + ct_rng_below(rng, 4), random_stride(rng, 64, 500),
              random_stride(rng, 64, 100));
    CT_PUT(&cmd, DMA_GATHER, ctx == 0 && ct_rng_percent(rng, 30));
  } while (!fits(&cmd, dram, spm));
  const unsigned steps = CT_GET(&cmd, DMA_N2);
  CT_PUT(&cmd, ALL_WAIT0, random_sem(b, rng, ctx, first_sem, steps));
  CT_PUT(&cmd, ALL_WAIT1, random_sem(b, rng, ctx, first_sem + 1, 1));
  CT_PUT(&cmd, ALL_WAIT2, random_sem(b, rng, ctx, first_sem + 2, 1));
  CT_PUT(&cmd, ALL_SIG0, ct_rng_percent(rng, 70) ? CT_SEM(first_sem + 3) : 0);
  CT_PUT(&cmd, ALL_SIG1,
         ct_rng_percent(rng, 70) ? CT_SEM(first_sem + 3 + ct_rng_below(rng, 2)) : 0);
  return cmd;
}

/* ---- Driver -------------------------------------------------------------------------------- */

static void give_semaphores(dma_bench *b) {
  const unsigned percent = b->config.sem_percent ? b->config.sem_percent : 100;
  for (int c = 0; c < kCtx; ++c) {
    for (int s = 0; s < kSems; ++s) {
      if (b->owed[c][s] == 0 || !ct_rng_percent(&b->rng, percent)) continue;
      --b->owed[c][s];
      ++b->sem[c][s];
    }
  }
}

static void drive_queue(dma_bench *b, int c, int side, uint8_t *valid, uint32_t *cmd) {
  struct dma_queue *q = &b->queue[c][side];
  *valid &= (uint8_t) ~(1u << c);
  if (q->popped == q->pushed || (*b->dut->flush_i >> c & 1) || ct_stall_next(&q->stall)) return;
  *valid |= (uint8_t)(1u << c);
  struct ct_cmd now = q->cmd[q->popped];
  /* The strides of the steps come as addresses. */
  if (CT_GET(&now, DMA_GATHER)) CT_PUT(&now, DMA_D2, q->popped * 7919);
  memcpy(cmd + 8 * c, now.w, 32);
}

/* The addresses of steps: LD before ST, at once or later, in the cycle after the grant. */
static void drive_gather(dma_bench *b) {
  ct_dma_dut *d = b->dut;
  *d->gat_vld_i = b->gat_granted;
  *d->gat_addr_i = b->gat_answer;
  *d->gat_gnt_i = b->gat_granted = 0;
  ct_dma_eval(d);
  const unsigned asks = *d->gat_valid_o, side = asks & 1 ? kLd : kSt;
  if (!asks || ct_rng_percent(&b->rng, 40)) return;
  const struct dma_queue *q = &b->queue[0][side];
  assert_true(q->popped > 0);
  const struct ct_cmd *cmd = &q->cmd[q->popped - 1];
  const unsigned row = *d->gat_row_o >> 4 * side & 15;
  assert_true(CT_GET(cmd, DMA_GATHER) && row < CT_GET(cmd, DMA_N2));
  *d->gat_gnt_i = b->gat_granted = (uint8_t)(1u << side);
  b->gat_answer = row * (uint32_t)CT_GETS(cmd, DMA_D2);
}

static void drive_fetcher(dma_bench *b, int c) {
  ct_dma_dut *d = b->dut;
  struct dma_fetcher *f = &b->fetcher[c];
  *d->fetch_valid_i &= (uint8_t) ~(1u << c);
  if (f->popped == f->pushed || (*d->flush_i >> c & 1) || ct_stall_next(&f->stall)) return;
  const struct dma_fetch *r = &f->fetch[f->popped % kMaxFetches];
  *d->fetch_valid_i |= (uint8_t)(1u << c);
  *d->fetch_addr_i = (*d->fetch_addr_i & ~(UINT64_C(0xFFFFFFFF) << (32 * c))) | (uint64_t)r->addr
                                                                                    << (32 * c);
  *d->fetch_len_i = (*d->fetch_len_i & ~(0x7FFu << (11 * c))) | r->len << (11 * c);
  *d->fetch_soft_i = (uint8_t)((*d->fetch_soft_i & ~(1u << c)) | (unsigned)r->soft << c);
}

static void drive_spm(dma_bench *b) {
  ct_dma_dut *d = b->dut;
  *d->spm_rd_ready_i = !ct_stall_next(&b->spm_stall);
  *d->spm_rd_vld_i = b->read_pipe[1].valid;
  *d->spm_rd_perr_i = b->read_pipe[1].valid && b->read_pipe[1].perr;
  memcpy(d->spm_rd_data_i, b->read_pipe[1].w.q, 16);
  *d->spm_rd_exp_i = b->read_pipe[1].w.e;
}

static void drive_memory(dma_bench *b) {
  ct_dma_dut *d = b->dut;
  struct ct_axi_in *in = &b->in;
  in->awvalid = *d->m_axi_awvalid_o && !b->hold_writes;
  in->awid = *d->m_axi_awid_o;
  in->awaddr = *d->m_axi_awaddr_o;
  in->awlen = *d->m_axi_awlen_o;
  in->awsize = *d->m_axi_awsize_o;
  in->awburst = *d->m_axi_awburst_o;
  in->wvalid = *d->m_axi_wvalid_o && !b->hold_writes;
  memcpy(in->wdata, d->m_axi_wdata_o, 16);
  in->wstrb = *d->m_axi_wstrb_o;
  in->wlast = *d->m_axi_wlast_o;
  in->bready = *d->m_axi_bready_o;
  in->arvalid = *d->m_axi_arvalid_o;
  in->arid = *d->m_axi_arid_o;
  in->araddr = *d->m_axi_araddr_o;
  in->arlen = *d->m_axi_arlen_o;
  in->arsize = *d->m_axi_arsize_o;
  in->arburst = *d->m_axi_arburst_o;
  in->rready = *d->m_axi_rready_o;
  ct_axi_mem_cycle(b->mem, in, &b->out);
  *d->m_axi_awready_i = b->out.awready && !b->hold_writes;
  *d->m_axi_wready_i = b->out.wready && !b->hold_writes;
  *d->m_axi_bvalid_i = b->out.bvalid;
  *d->m_axi_bid_i = b->out.bid;
  *d->m_axi_bresp_i = b->out.bresp;
  *d->m_axi_arready_i = b->out.arready;
  *d->m_axi_rvalid_i = b->out.rvalid;
  *d->m_axi_rid_i = b->out.rid;
  memcpy(d->m_axi_rdata_i, b->out.rdata, 16);
  *d->m_axi_rresp_i = b->out.rresp;
  *d->m_axi_rlast_i = b->out.rlast;
}

static void drive(dma_bench *b) {
  ct_dma_dut *d = b->dut;
  give_semaphores(b);
  uint32_t nz = 0;
  for (int c = 0; c < kCtx; ++c) {
    drive_queue(b, c, kLd, d->ld_cmd_valid_i, d->ld_cmd_i);
    drive_queue(b, c, kSt, d->st_cmd_valid_i, d->st_cmd_i);
    drive_fetcher(b, c);
    for (int s = 0; s < kSems; ++s)
      nz |= (uint32_t)(b->sem[c][s] > 0) << (16 * c + s);
  }
  *d->ld_sem_nz_i = nz;
  *d->st_sem_nz_i = nz;
  drive_spm(b);
  drive_memory(b);
  drive_gather(b);
}

/* ---- Monitor ------------------------------------------------------------------------------- */

static void take_commands(dma_bench *b) {
  const ct_dma_dut *d = b->dut;
  for (int c = 0; c < kCtx; ++c) {
    b->queue[c][kLd].popped += (*d->ld_cmd_valid_i & *d->ld_cmd_ready_o) >> c & 1;
    b->queue[c][kSt].popped += (*d->st_cmd_valid_i & *d->st_cmd_ready_o) >> c & 1;
    b->fetcher[c].popped += (*d->fetch_valid_i & *d->fetch_ready_o) >> c & 1;
  }
}

/* Signals must be those that are next in order, and not before their work is done. */
static void take_signals(dma_bench *b, int c, int side, uint32_t incs) {
  struct dma_queue *q = &b->queue[c][side];
  while (incs) {
    assert_true(q->sig_head < q->sig_tail);
    const struct dma_sig *s = &q->sig[q->sig_head++];
    assert_true(incs >> s->sem & 1);
    assert_true(q->done >= s->done);
    assert_true(s->cmd < q->popped);
    incs &= ~(1u << s->sem);
    ++b->sem[c][s->sem];
  }
}

static void take_semaphores(dma_bench *b) {
  const ct_dma_dut *d = b->dut;
  for (int c = 0; c < kCtx; ++c) {
    take_signals(b, c, kLd, *d->ld_sem_inc_o >> (16 * c) & 0xFFFF);
    take_signals(b, c, kSt, *d->st_sem_inc_o >> (16 * c) & 0xFFFF);
    for (int s = 0; s < kSems; ++s) {
      const unsigned n =
          (*d->ld_sem_dec_o >> (16 * c + s) & 1) + (*d->st_sem_dec_o >> (16 * c + s) & 1);
      assert_true(b->sem[c][s] >= n);
      b->sem[c][s] -= n;
    }
  }
}

static void move_spm(dma_bench *b) {
  const ct_dma_dut *d = b->dut;
  b->read_pipe[1] = b->read_pipe[0];
  b->read_pipe[0].valid = *d->spm_rd_valid_o && *d->spm_rd_ready_i;
  if (b->read_pipe[0].valid) {
    const uint32_t addr = *d->spm_rd_addr_o;
    assert_true(addr < kSpm);
    b->read_pipe[0].w = b->spm[addr];
    b->read_pipe[0].perr = (int32_t)addr == b->bad_word;
  }
  if (*d->spm_wr_valid_o) {
    const uint32_t addr = *d->spm_wr_addr_o;
    assert_true(addr < kSpm);
    memcpy(b->spm[addr].q, d->spm_wr_data_o, 16);
    b->spm[addr].e = *d->spm_wr_exp_o;
    ++b->queue[addr / kCtxSpm][kLd].done;
  }
}

static void check_fetch(dma_bench *b) {
  const ct_dma_dut *d = b->dut;
  assert_true(*d->fetch_rvalid_o != 3);
  for (int c = 0; c < kCtx; ++c) {
    struct dma_fetcher *f = &b->fetcher[c];
    if (!(*d->fetch_rvalid_o >> c & 1)) continue;
    assert_true(f->answered < f->popped);
    if (b->cut[c] && b->bad_fetches[c]) continue; /* what follows is not what it seems */
    const struct dma_fetch *r = &f->fetch[f->answered % kMaxFetches];
    ct_assert_same("fetched beat", d->fetch_rdata_o,
                   b->model_dram + 16 * (size_t)(r->addr + f->beat), 16);
    ++f->beat;
    assert_int_equal(*d->fetch_rlast_o, f->beat == r->len);
    if (f->beat < r->len) continue;
    f->beat = 0;
    ++f->answered;
  }
}

/* Bursts stay in the windows of their context, training under its cap, nothing starts when frozen.
 */
static void watch_bus(dma_bench *b) {
  const ct_dma_dut *d = b->dut;
  const struct ct_axi_in *in = &b->in;
  const struct ct_axi_out *out = &b->out;
  if (in->arvalid && out->arready) {
    const uint64_t at = in->araddr / 16, base = (uint64_t)in->arid * kCtxUnits;
    assert_true(b->open_windows || (at >= base && at + in->arlen + 1 <= base + kRdUnits));
    ++b->bursts[in->arid][kLd];
    if (++b->reads_pending[in->arid] > b->most_reads[in->arid]) ++b->most_reads[in->arid];
    b->crossings += (at + in->arlen + 1) % 256 == 0;
  }
  if (in->awvalid && out->awready) {
    const uint64_t at = in->awaddr / 16, base = (uint64_t)in->awid * kCtxUnits + kRdUnits;
    assert_true(b->open_windows || (at >= base && at + in->awlen + 1 <= base + kRdUnits));
    ++b->bursts[in->awid][kSt];
  }
  if (out->rvalid) {
    assert_true(in->rready);
    b->reads_pending[out->rid] -= out->rlast;
    b->mixed += b->last_open && out->rid != b->last_rid;
    b->last_open = !out->rlast;
    b->last_rid = out->rid;
    b->r_last = b->now;
    if (b->r_first == UINT64_MAX) b->r_first = b->now;
  }
  if (in->wvalid && out->wready) {
    b->w_last = b->now;
    if (b->w_first == UINT64_MAX) b->w_first = b->now;
  }
  if (out->bvalid) ++b->queue[out->bid][kSt].done;
  for (int c = 0; c < kCtx; ++c) {
    b->beats[c][kLd] += *d->ev_ld_beats_o >> c & 1;
    b->beats[c][kSt] += *d->ev_st_beats_o >> c & 1;
    b->waits[c][kLd] += *d->ev_ld_wait_arb_o >> c & 1;
    b->waits[c][kSt] += *d->ev_st_wait_arb_o >> c & 1;
  }
}

/* Idle must not be said while anything is under way, and a failed context is not idle. */
static void check_idle(dma_bench *b) {
  const ct_dma_dut *d = b->dut;
  for (int c = 0; c < kCtx; ++c) {
    const bool flush = *d->flush_i >> c & 1;
    for (int side = 0; side < kSides; ++side) {
      const bool idle = *(side == kLd ? d->ld_idle_o : d->st_idle_o) >> c & 1;
      const struct dma_queue *q = &b->queue[c][side];
      if (!idle || flush) continue;
      assert_true(q->sig_head == q->sig_tail || q->sig[q->sig_head].cmd >= q->popped);
      assert_int_equal(b->err[c].count, 0);
    }
    /* (What is left of a fetch that has failed does not come.) */
    if ((*d->fetch_idle_o >> c & 1) && !b->cut[c] && !b->expect_error[c] && !flush)
      assert_int_equal(b->fetcher[c].beat, 0);
    if ((*d->ld_quiet_o & *d->fetch_idle_o) >> c & 1) assert_true(*d->ld_idle_o >> c & 1);
    if ((*d->ld_idle_o >> c & 1) && !flush)
      assert_true((*d->ld_quiet_o & *d->fetch_idle_o) >> c & 1);
    const bool both = (*d->ld_idle_o & *d->st_idle_o) >> c & 1;
    if (both && !b->forgotten[c]) assert_int_equal(ct_axi_mem_pending(b->mem, (unsigned)c), 0);
  }
}

static void take_errors(dma_bench *b) {
  const ct_dma_dut *d = b->dut;
  for (int c = 0; c < kCtx; ++c) {
    b->bad_fetches[c] += *d->fetch_bad_o >> c & 1;
    if (*d->st_old_err_o >> c & 1) {
      ++b->old_errs[c];
      b->old_err_addr = *d->st_old_err_addr_o;
    }
    if (!(*d->err_o >> c & 1)) continue;
    ++b->err[c].count;
    b->err[c].code = (uint8_t)(*d->err_code_o >> (8 * c));
    b->err[c].addr = (uint32_t)(*d->err_addr_o >> (32 * c));
    if (!b->expect_error[c])
      fail_msg("context %d: error %u at 0x%x", c, b->err[c].code, b->err[c].addr);
  }
}

void dma_cycle(dma_bench *b) {
  *b->dut->qos_i = ct_tb_qos(b->policy, b->floor);
  drive(b);
  ct_dma_eval(b->dut);
  take_errors(b);
  take_semaphores(b);
  check_idle(b);
  take_commands(b);
  move_spm(b);
  check_fetch(b);
  watch_bus(b);
  ct_dma_tick(b->dut);
  ++b->now;
}

void dma_cycles(dma_bench *b, unsigned n) {
  while (n--)
    dma_cycle(b);
}

/* ---- Ends ---------------------------------------------------------------------------------- */

bool dma_done(const dma_bench *b, int ctx) {
  for (int s = 0; s < kSides; ++s) {
    const struct dma_queue *q = &b->queue[ctx][s];
    if (q->popped < q->pushed || q->sig_head < q->sig_tail || q->done < q->promised) return false;
  }
  if (b->fetcher[ctx].answered != b->fetcher[ctx].pushed) return false;
  return (*b->dut->ld_idle_o & *b->dut->st_idle_o) >> ctx & 1;
}

unsigned dma_drain(dma_bench *b, unsigned limit) {
  for (unsigned i = 0; i < limit; ++i) {
    if (dma_done(b, 0) && dma_done(b, 1)) return i;
    dma_cycle(b);
  }
  fail_msg("not done after %u cycles", limit);
  return 0;
}

static void forget(dma_bench *b, int ctx) {
  for (int s = 0; s < kSides; ++s) {
    struct dma_queue *q = &b->queue[ctx][s];
    q->pushed = q->popped = q->sig_head = q->sig_tail = 0;
    q->promised = q->done;
  }
  struct dma_fetcher *f = &b->fetcher[ctx];
  f->pushed = f->popped = f->answered = f->beat = 0;
  memset(b->sem[ctx], 0, sizeof b->sem[ctx]);
  memset(b->owed[ctx], 0, sizeof b->owed[ctx]);
  memset(&b->err[ctx], 0, sizeof b->err[ctx]);
  const size_t bytes = (size_t)16 * kCtxUnits;
  memcpy(b->model_dram + ctx * bytes, ct_axi_mem_data(b->mem) + ctx * bytes, bytes);
  memcpy(b->model_spm + ctx * kCtxSpm, b->spm + ctx * kCtxSpm, sizeof b->spm / kCtx);
}

void dma_flush(dma_bench *b, int ctx, unsigned limit) {
  *b->dut->flush_i |= (uint8_t)(1u << ctx);
  dma_cycle(b);
  /* From now on (a signal given before may still be on its wire in the first cycle): no signals. */
  unsigned heads[kSides];
  for (int s = 0; s < kSides; ++s)
    heads[s] = b->queue[ctx][s].sig_head;
  for (unsigned i = 1; !((*b->dut->ld_idle_o & *b->dut->st_idle_o) >> ctx & 1); ++i) {
    dma_cycle(b);
    if (i > limit) fail_msg("flush: not idle after %u cycles", limit);
  }
  dma_cycle(b); /* the one in which idle is seen */
  for (int s = 0; s < kSides; ++s)
    assert_int_equal(b->queue[ctx][s].sig_head, heads[s]);
  forget(b, ctx);
  *b->dut->flush_i &= (uint8_t) ~(1u << ctx);
}

void dma_check(dma_bench *b) {
  if (ct_axi_mem_error(b->mem)) fail_msg("%s", ct_axi_mem_error(b->mem));
  ct_assert_same("memory", ct_axi_mem_data(b->mem), b->model_dram, 16 * kUnits);
  for (int i = 0; i < kSpm; ++i) {
    if (b->spm[i].e == b->model_spm[i].e && memcmp(b->spm[i].q, b->model_spm[i].q, 16) == 0)
      continue;
    fail_msg("SPM word %d differs from the model's", i);
  }
}
