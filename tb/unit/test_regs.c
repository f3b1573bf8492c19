/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_regs: random traffic on the AXI4-Lite port against a model of the map, with stalls on every
 * channel; counters, interrupt, debug, freeze and single step, global reset.
 */
#include <string.h>

#include "ct_tb.h"

#include "coltrain_spec.h"
#include "ct_regs_dut.h"

enum { kCounters = 27, kCtxs = 2, kSpmWords = 8192 };

/* One write and one read under way, each with its own stalls. */
typedef struct {
  bool active, addr_sent, data_sent;
  uint32_t addr, data, strobe, result;
  ct_stall addr_stall, data_stall, answer_stall;
} access;

typedef struct {
  ct_regs_dut *dut;
  ct_rng rng;
  access wr, rd;
  uint64_t cycle;
  uint32_t reg[0x400 / 4];           /* the model: registers that read as written */
  uint64_t count[kCtxs * kCounters]; /* events so far */
  unsigned ev_percent;
  /* Pulses since they were last looked at. */
  unsigned tail_we[kCtxs], resets[kCtxs], cancels[kCtxs], pops[kCtxs], flips, peeks, thaws;
  uint16_t tail;
  uint32_t cancel;
  uint32_t bat[32]; /* the registers of a made-up batcher, which takes its time */
  ct_stall bat_stall;
} bench;

static uint32_t creg(unsigned c, uint32_t offset) {
  return CT_CTX_BASE + c * CT_CTX_STRIDE + offset;
}

/* ---- One cycle ----------------------------------------------------------------------------- */

static void drive(bench *b) {
  ct_regs_dut *d = b->dut;
  access *w = &b->wr, *r = &b->rd;
  /* A valid that is up stays up. */
  if (!*d->s_axil_awvalid_i)
    *d->s_axil_awvalid_i = w->active && !w->addr_sent && !ct_stall_next(&w->addr_stall);
  if (!*d->s_axil_wvalid_i)
    *d->s_axil_wvalid_i = w->active && !w->data_sent && !ct_stall_next(&w->data_stall);
  if (!*d->s_axil_arvalid_i)
    *d->s_axil_arvalid_i = r->active && !r->addr_sent && !ct_stall_next(&r->addr_stall);
  *d->s_axil_awaddr_i = (uint16_t)w->addr;
  *d->s_axil_wdata_i = w->data;
  *d->s_axil_wstrb_i = (uint8_t)w->strobe;
  *d->s_axil_araddr_i = (uint16_t)r->addr;
  *d->s_axil_bready_i = !ct_stall_next(&w->answer_stall);
  *d->s_axil_rready_i = !ct_stall_next(&r->answer_stall);
  uint64_t ev = 0;
  for (unsigned i = 0; i < kCtxs * kCounters; ++i)
    ev |= (uint64_t)ct_rng_percent(&b->rng, b->ev_percent) << i;
  *d->ev_i = ev;
}

/* What the batcher answers: words of a memory. */
static void drive_batcher(bench *b) {
  ct_regs_dut *d = b->dut;
  const bool stall = ct_stall_next(&b->bat_stall);
  *d->bat_wr_ready_i = !stall;
  *d->bat_rd_vld_i = *d->bat_rd_valid_o && !stall;
  *d->bat_rd_data_i = b->bat[*d->bat_rd_word_o];
}

static void take_handshakes(bench *b) {
  ct_regs_dut *d = b->dut;
  access *w = &b->wr, *r = &b->rd;
  if (*d->s_axil_bvalid_o && *d->s_axil_bready_i) {
    assert_true(w->active && w->addr_sent && w->data_sent);
    assert_int_equal(*d->s_axil_bresp_o, 0);
    w->active = false;
  }
  if (*d->s_axil_rvalid_o && *d->s_axil_rready_i) {
    assert_true(r->active && r->addr_sent);
    assert_int_equal(*d->s_axil_rresp_o, 0);
    r->result = *d->s_axil_rdata_o;
    r->active = false;
  }
  const bool aw = *d->s_axil_awvalid_i && *d->s_axil_awready_o;
  const bool wv = *d->s_axil_wvalid_i && *d->s_axil_wready_o;
  const bool ar = *d->s_axil_arvalid_i && *d->s_axil_arready_o;
  w->addr_sent |= aw;
  w->data_sent |= wv;
  r->addr_sent |= ar;
  ct_regs_tick(d);
  if (aw) *d->s_axil_awvalid_i = 0;
  if (wv) *d->s_axil_wvalid_i = 0;
  if (ar) *d->s_axil_arvalid_i = 0;
}

static void cycle(bench *b) {
  ct_regs_dut *d = b->dut;
  drive(b);
  ct_regs_eval(d);
  drive_batcher(b);
  ct_regs_eval(d);
  if (*d->bat_wr_valid_o && *d->bat_wr_ready_i) b->bat[*d->bat_wr_word_o] = *d->bat_wr_data_o;
  assert_true(*d->cycle_o == b->cycle && *d->cycle_next_o == b->cycle + 1);
  for (unsigned c = 0; c < kCtxs; ++c) {
    b->tail_we[c] += *d->tail_we_o >> c & 1;
    b->resets[c] += *d->reset_o >> c & 1;
    b->cancels[c] += *d->cancel_o >> c & 1;
    b->pops[c] += *d->cpl_pop_o >> c & 1;
  }
  if (*d->tail_we_o) b->tail = *d->tail_o;
  if (*d->cancel_o) b->cancel = (uint32_t)*d->cancel_num_o << 16 | *d->cancel_named_o;
  b->flips += *d->flip_arm_o;
  b->peeks += *d->peek_o;
  b->thaws += !*d->freeze_o;
  for (unsigned i = 0; i < kCtxs * kCounters; ++i)
    b->count[i] += *d->ev_i >> i & 1;
  take_handshakes(b);
  ++b->cycle;
}

/* ---- Accesses ------------------------------------------------------------------------------ */

static void start(access *a, uint32_t addr, uint32_t data, uint32_t strobe) {
  a->active = true;
  a->addr_sent = a->data_sent = false;
  a->addr = addr;
  a->data = data;
  a->strobe = strobe;
}

static void finish(bench *b, const access *a) {
  for (unsigned n = 0; a->active; ++n) {
    assert_true(n < 1000);
    cycle(b);
  }
}

static void write_strobed(bench *b, uint32_t addr, uint32_t data, uint32_t strobe) {
  start(&b->wr, addr, data, strobe);
  finish(b, &b->wr);
}

static void write_reg(bench *b, uint32_t addr, uint32_t data) {
  write_strobed(b, addr, data, 15);
}

static uint32_t read_reg(bench *b, uint32_t addr) {
  start(&b->rd, addr, 0, 0);
  finish(b, &b->rd);
  return b->rd.result;
}

static bench *open_bench(uint64_t stream, unsigned stall, unsigned ev_percent) {
  bench *b = test_calloc(1, sizeof *b);
  b->dut = ct_regs_new(ct_tb_trace());
  b->rng = ct_rng_make(stream);
  b->ev_percent = ev_percent;
  access *both[] = {&b->wr, &b->rd};
  for (unsigned i = 0; i < 2; ++i) {
    both[i]->addr_stall = ct_stall_make(stream + 3 * i + 1, stall, 3);
    both[i]->data_stall = ct_stall_make(stream + 3 * i + 2, stall, 3);
    both[i]->answer_stall = ct_stall_make(stream + 3 * i + 3, stall, 3);
  }
  ct_regs_dut *d = b->dut;
  *d->s_axil_awvalid_i = *d->s_axil_wvalid_i = *d->s_axil_arvalid_i = 0;
  *d->tail_i = *d->head_i = *d->status_i = *d->dead_i = *d->cpl_valid_i = *d->cpl_count_i = 0;
  *d->quiet_i = 3;
  *d->peek_vld_i = *d->ev_i = 0;
  *d->bat_wr_ready_i = *d->bat_rd_vld_i = *d->bat_irq_i = 0;
  b->bat_stall = ct_stall_make(stream + 9, stall, 20);
  memset(d->cpl_i, 0, 84);
  ct_regs_reset(d, 2);
  return b;
}

static void close_bench(bench *b) {
  ct_regs_free(b->dut);
  test_free(b);
}

/* ---- The map ------------------------------------------------------------------------------- */

/* What a register holds after value was written; false: it does not read as written. */
static bool stored(uint32_t addr, uint32_t value, uint32_t *held) {
  static const struct {
    uint32_t addr, mask;
  } global[] = {{CT_REG_FLOOR, 255},
                {CT_REG_IRQ_ENABLE, 7},
                {CT_REG_DRAIN_LIMIT, UINT32_MAX},
                {CT_REG_DBG_ADDR, 0xfffff}};
  static const struct {
    uint32_t offset, mask;
  } context[] = {{CT_CREG_RING_BASE, UINT32_MAX}, {CT_CREG_RD_BASE, UINT32_MAX},
                 {CT_CREG_RD_LIMIT, UINT32_MAX},  {CT_CREG_WR_BASE, UINT32_MAX},
                 {CT_CREG_WR_LIMIT, UINT32_MAX},  {CT_CREG_WATCHDOG, UINT32_MAX},
                 {CT_CREG_SPM_BASE, 0xfffff},     {CT_CREG_SPM_SIZE, 0xfffff}};
  for (unsigned i = 0; i < sizeof global / sizeof *global; ++i) {
    if (global[i].addr != addr) continue;
    *held = value & global[i].mask;
    return true;
  }
  for (unsigned i = 0; i < 2 * sizeof context / sizeof *context; ++i) {
    if (creg(i % 2, context[i / 2].offset) != addr) continue;
    *held = value & context[i / 2].mask;
    return true;
  }
  if (addr == creg(0, CT_CREG_RING_LOG2) || addr == creg(1, CT_CREG_RING_LOG2)) {
    *held = value > 10 ? 10 : value;
    return true;
  }
  if (addr == CT_REG_POLICY) {
    *held = value & 4 ? 4 : value & 3;
    return true;
  }
  if (addr >= CT_REG_REQ_INPUT && addr < CT_REG_REQ_INPUT + 0x80) {
    *held = value;
    return true;
  }
  if (addr == CT_REG_TRAIN_CAP) {
    *held = value < 1 ? 1 : value > 8 ? 8 : value;
    return true;
  }
  return false;
}

static void reset_values(bench *b) {
  memset(b->reg, 0, sizeof b->reg);
  b->reg[CT_REG_TRAIN_CAP / 4] = 4;
  b->reg[CT_REG_DRAIN_LIMIT / 4] = 100000;
  b->reg[creg(0, CT_CREG_SPM_SIZE) / 4] = 4096;
  b->reg[creg(1, CT_CREG_SPM_BASE) / 4] = 4096;
  b->reg[creg(1, CT_CREG_SPM_SIZE) / 4] = 4096;
}

/* Words of the context's window that lie in the scratchpad. */
static uint32_t window(const bench *b, unsigned ctx) {
  const uint32_t base = b->reg[creg(ctx, CT_CREG_SPM_BASE) / 4],
                 size = b->reg[creg(ctx, CT_CREG_SPM_SIZE) / 4];
  const uint32_t room = base < kSpmWords ? kSpmWords - base : 0;
  return size < room ? size : room;
}

/* A register that is stored reads as it was written; SPM_SIZE what is left of the window. */
static void check_stored(bench *b, uint32_t addr) {
  uint32_t held;
  if (!stored(addr, 0, &held)) return;
  held = b->reg[addr / 4];
  for (unsigned c = 0; c < kCtxs; ++c)
    if (addr == creg(c, CT_CREG_SPM_SIZE)) held = window(b, c);
  assert_int_equal(read_reg(b, addr), held);
}

static void check_all(bench *b) {
  for (uint32_t addr = 0; addr < 0x400; addr += 4)
    check_stored(b, addr);
}

/* Values around the end of the scratchpad, or anything. */
static uint32_t random_data(bench *b) {
  if (ct_rng_percent(&b->rng, 20)) return kSpmWords - 8 + ct_rng_below(&b->rng, 16);
  return ct_rng_percent(&b->rng, 50) ? ct_rng_below(&b->rng, 16) : (uint32_t)ct_rng_u64(&b->rng);
}

/* The windows at the ports: the one the registers ask for, as far as there is a scratchpad. */
static void check_windows(bench *b) {
  const ct_regs_dut *d = b->dut;
  cycle(b); /* they follow the registers a cycle later */
  for (unsigned c = 0; c < kCtxs; ++c) {
    assert_int_equal(*d->spm_base_o >> 20 * c & 0xfffff, b->reg[creg(c, CT_CREG_SPM_BASE) / 4]);
    assert_int_equal(*d->spm_size_o >> 20 * c & 0xfffff, window(b, c));
  }
}

static void constants(void **state) {
  (void)state;
  bench *b = open_bench(1, 30, 0);
  assert_int_equal(read_reg(b, CT_REG_ID), CT_ID_VALUE);
  assert_int_equal(read_reg(b, CT_REG_ABI), CT_ABI_VERSION);
  assert_int_equal(read_reg(b, CT_REG_GEOMETRY), 16u << 24 | 4 << 16 | 8 << 8 | 16);
  assert_int_equal(read_reg(b, CT_REG_SPM_WORDS), kSpmWords);
  assert_int_equal(read_reg(b, CT_REG_CLOCK_HZ), 100000000);
  assert_int_equal(read_reg(b, CT_REG_FEATURES), 15 | CT_FEATURE_BATCHER);
  assert_int_equal(read_reg(b, CT_REG_DRAM_BYTES), 64);
  reset_values(b);
  check_all(b);
  static const uint32_t unmapped[] = {0x01c, 0x0fc, 0x174, 0x2fc, 0x380, 0x3fc, 0x600, 0xffc};
  for (unsigned i = 0; i < sizeof unmapped / sizeof *unmapped; ++i) {
    write_reg(b, unmapped[i], UINT32_MAX);
    assert_int_equal(read_reg(b, unmapped[i]), 0);
  }
  close_bench(b);
}

/* Random writes everywhere but CTRL, with random strobes; now and then everything is read back. */
static void random_writes(void **state) {
  (void)state;
  for (unsigned k = 0; k < 3; ++k) {
    bench *b = open_bench(10 * k, 40 * k, 10);
    reset_values(b);
    for (unsigned i = 0; i < 3000; ++i) {
      const uint32_t addr = 4 * ct_rng_below(&b->rng, 0x400 / 4);
      const uint32_t strobe = ct_rng_percent(&b->rng, 70) ? 15 : ct_rng_below(&b->rng, 15);
      const uint32_t data = random_data(b);
      if (addr == CT_REG_CTRL) continue;
      write_strobed(b, addr, data, strobe);
      uint32_t held;
      if (strobe == 15 && stored(addr, data, &held)) b->reg[addr / 4] = held;
      check_stored(b, addr);
      check_windows(b);
      if (i % 500 == 0) check_all(b);
    }
    const ct_regs_dut *d = b->dut;
    assert_int_equal(*d->policy_o, b->reg[CT_REG_POLICY / 4]);
    assert_int_equal(*d->floor_o, b->reg[CT_REG_FLOOR / 4]);
    assert_int_equal(*d->train_cap_o, b->reg[CT_REG_TRAIN_CAP / 4]);
    for (unsigned c = 0; c < kCtxs; ++c) {
      assert_int_equal((uint32_t)(*d->wr_limit_o >> 32 * c), b->reg[creg(c, CT_CREG_WR_LIMIT) / 4]);
      assert_int_equal((uint32_t)(*d->rd_base_o >> 32 * c), b->reg[creg(c, CT_CREG_RD_BASE) / 4]);
      assert_int_equal(*d->ring_log2_o >> 4 * c & 15, b->reg[creg(c, CT_CREG_RING_LOG2) / 4]);
    }
    close_bench(b);
  }
}

/* Registers that are pulses: one for each whole-word write, to the right context. */
static void pulses(void **state) {
  (void)state;
  bench *b = open_bench(40, 30, 0);
  for (unsigned i = 0; i < 400; ++i) {
    const unsigned c = ct_rng_below(&b->rng, 2), what = ct_rng_below(&b->rng, 4);
    const uint32_t data = (uint32_t)ct_rng_u64(&b->rng);
    const uint32_t strobe = ct_rng_percent(&b->rng, 80) ? 15 : 7;
    static const uint32_t offsets[] = {CT_CREG_TAIL, CT_CREG_CONTROL, CT_CREG_CONTROL,
                                       CT_CREG_CPL_POP};
    unsigned before[2][4], *const now[4] = {b->tail_we, b->resets, b->cancels, b->pops};
    for (unsigned k = 0; k < 8; ++k)
      before[k % 2][k / 2] = now[k / 2][k % 2];
    write_strobed(b, creg(c, offsets[what]), data, strobe);
    for (unsigned k = 0; k < 8; ++k) {
      const unsigned p = k / 2;
      bool expect = k % 2 == c && strobe == 15 && offsets[p] == offsets[what];
      if (p == 1) expect = expect && (data & 1);
      if (p == 2) expect = expect && (data & 2);
      assert_int_equal(now[p][k % 2] - before[k % 2][p], expect);
    }
    if (what == 0 && strobe == 15) assert_int_equal(b->tail, data & 0xffff);
    if (offsets[what] == CT_CREG_CONTROL && strobe == 15 && (data & 2))
      assert_int_equal(b->cancel, (data & 0xffff0000) | (data >> 2 & 1));
  }
  close_bench(b);
}

/* Whole completions, of the right context, zeros when there is none. */
static void completions(void **state) {
  (void)state;
  bench *b = open_bench(50, 30, 0);
  ct_regs_dut *d = b->dut;
  static const struct {
    uint32_t offset;
    unsigned lsb, width;
  } fields[] = {{CT_CREG_CPL_TAG, 0, 32},         {CT_CREG_CPL_CODE, 32, 8},
                {CT_CREG_CPL_ADDR, 40, 32},       {CT_CREG_CPL_VERSION, 72, 32},
                {CT_CREG_CPL_ARRIVE_LO, 104, 32}, {CT_CREG_CPL_ARRIVE_HI, 136, 32},
                {CT_CREG_CPL_START_LO, 168, 32},  {CT_CREG_CPL_START_HI, 200, 32},
                {CT_CREG_CPL_END_LO, 232, 32},    {CT_CREG_CPL_END_HI, 264, 32},
                {CT_CREG_CPL_ROWS, 296, 32}};
  for (unsigned round = 0; round < 20; ++round) {
    uint8_t bits[656] = {0};
    memset(d->cpl_i, 0, 84);
    for (unsigned i = 0; i < 656; ++i) {
      bits[i] = ct_rng_below(&b->rng, 2);
      d->cpl_i[i / 32] |= (uint32_t)bits[i] << i % 32;
    }
    *d->cpl_valid_i = (uint8_t)ct_rng_below(&b->rng, 4);
    *d->cpl_count_i = (uint16_t)ct_rng_below(&b->rng, 1024);
    *d->status_i = (uint8_t)ct_rng_below(&b->rng, 64);
    *d->head_i = (uint32_t)ct_rng_u64(&b->rng);
    *d->tail_i = (uint32_t)ct_rng_u64(&b->rng);
    *d->dead_i = (uint8_t)ct_rng_below(&b->rng, 4);
    *d->bat_irq_i = (uint8_t)ct_rng_below(&b->rng, 2);
    const unsigned status = *d->cpl_valid_i | *d->bat_irq_i << 2;
    write_reg(b, CT_REG_IRQ_ENABLE, round % 8);
    cycle(b);
    assert_int_equal(*d->irq_o, (status & round % 8) != 0);
    assert_int_equal(read_reg(b, CT_REG_IRQ_STATUS), status);
    assert_int_equal(read_reg(b, CT_REG_DEAD), *d->dead_i);
    for (unsigned c = 0; c < kCtxs; ++c) {
      const unsigned count = *d->cpl_count_i >> 5 * c & 31;
      assert_int_equal(read_reg(b, creg(c, CT_CREG_CPL_COUNT)), count);
      assert_int_equal(read_reg(b, creg(c, CT_CREG_STATUS)),
                       count << 8 | (*d->status_i >> 3 * c & 7));
      assert_int_equal(read_reg(b, creg(c, CT_CREG_HEAD)), *d->head_i >> 16 * c & 0xffff);
      assert_int_equal(read_reg(b, creg(c, CT_CREG_TAIL)), *d->tail_i >> 16 * c & 0xffff);
      for (unsigned f = 0; f < sizeof fields / sizeof *fields; ++f) {
        uint32_t want = 0;
        for (unsigned i = 0; i < fields[f].width; ++i)
          want |= (uint32_t)bits[328 * c + fields[f].lsb + i] << i;
        if (!(*d->cpl_valid_i >> c & 1)) want = 0;
        assert_int_equal(read_reg(b, creg(c, fields[f].offset)), want);
      }
    }
  }
  close_bench(b);
}

/* ---- Counters ------------------------------------------------------------------------------ */

/* Reads stay exact while events rain: between what had happened when the read began and when it
 * ended. When they have stopped, all agree. */
static void counters(void **state) {
  (void)state;
  static const unsigned percents[] = {100, 60, 3};
  for (unsigned k = 0; k < 3; ++k) {
    bench *b = open_bench(60 + 10 * k, 20 * k, percents[k]);
    for (unsigned i = 0; i < 3000; ++i) {
      const unsigned c = ct_rng_below(&b->rng, 2), n = ct_rng_below(&b->rng, kCounters);
      const uint64_t before = b->count[kCounters * c + n];
      const uint32_t low = read_reg(b, CT_CNT_BASE + (c * 32 + n) * 8);
      assert_in_range(low, before ? before - 1 : 0, b->count[kCounters * c + n]);
      for (unsigned wait = i % 7 ? 0 : ct_rng_below(&b->rng, 400); wait; --wait)
        cycle(b);
    }
    b->ev_percent = 0;
    for (unsigned i = 0; i < kCtxs * 32; ++i) {
      const unsigned n = i % 32, at = kCounters * (i / 32) + n;
      assert_int_equal(read_reg(b, CT_CNT_BASE + i * 8), n < kCounters ? b->count[at] : 0);
      assert_int_equal(read_reg(b, CT_CNT_BASE + i * 8 + 4), 0);
    }
    close_bench(b);
  }
}

static void cycle_counter(void **state) {
  (void)state;
  bench *b = open_bench(70, 0, 0);
  for (unsigned i = 0; i < 50; ++i) {
    const uint64_t before = b->cycle;
    const uint32_t low = read_reg(b, CT_REG_CYCLE_LO);
    assert_in_range(low, before, b->cycle);
    assert_int_equal(read_reg(b, CT_REG_CYCLE_HI), 0);
  }
  close_bench(b);
}

/* ---- Debug, freeze, reset -------------------------------------------------------------------- */

static void debug(void **state) {
  (void)state;
  bench *b = open_bench(80, 30, 0);
  ct_regs_dut *d = b->dut;
  for (unsigned i = 0; i < 50; ++i) {
    const uint32_t addr = ct_rng_below(&b->rng, 1 << 20), bit = ct_rng_below(&b->rng, 144);
    uint32_t word[4];
    ct_rng_fill(&b->rng, word, sizeof word);
    const uint32_t exponent = ct_rng_below(&b->rng, 256), bad = ct_rng_below(&b->rng, 2);
    write_reg(b, CT_REG_DBG_ADDR, addr);
    b->flips = b->peeks = 0;
    write_reg(b, CT_REG_DBG_FLIP, (i % 2) << 8 | bit);
    assert_int_equal(*d->flip_addr_o, addr);
    assert_int_equal(*d->flip_bit_o, bit);
    write_reg(b, CT_REG_DBG_PEEK, 0);
    cycle(b);
    assert_int_equal(b->flips, i % 2);
    assert_int_equal(b->peeks, 1);
    assert_int_equal(*d->peek_addr_o, addr);
    assert_int_equal(read_reg(b, CT_REG_DBG_DATA4) >> 31, 0);
    memcpy(d->peek_data_i, word, sizeof word);
    *d->peek_exp_i = (uint8_t)exponent;
    *d->peek_perr_i = (uint8_t)bad;
    *d->peek_vld_i = 1;
    cycle(b);
    *d->peek_vld_i = 0;
    memset(d->peek_data_i, 0, sizeof word);
    for (unsigned w = 0; w < 4; ++w)
      assert_int_equal(read_reg(b, CT_REG_DBG_DATA0 + 4 * w), word[w]);
    assert_int_equal(read_reg(b, CT_REG_DBG_DATA4), 1u << 31 | bad << 8 | exponent);
  }
  close_bench(b);
}

static void freeze(void **state) {
  (void)state;
  bench *b = open_bench(90, 0, 0);
  write_reg(b, CT_REG_CTRL, 4); /* a step without a freeze is none */
  assert_int_equal(*b->dut->freeze_o, 0);
  write_reg(b, CT_REG_CTRL, 6); /* freezes, but does not step */
  b->thaws = 0;
  for (unsigned i = 0; i < 20; ++i) {
    assert_int_equal(read_reg(b, CT_REG_CTRL), 2);
    assert_int_equal(b->thaws, i);
    write_reg(b, CT_REG_CTRL, 6);
    cycle(b);
  }
  write_reg(b, CT_REG_CTRL, 0);
  assert_int_equal(*b->dut->freeze_o, 0);
  close_bench(b);
}

static void global_reset(void **state) {
  (void)state;
  bench *b = open_bench(100, 20, 40);
  ct_regs_dut *d = b->dut;
  write_reg(b, CT_REG_DRAIN_LIMIT, 77);
  write_reg(b, creg(1, CT_CREG_SPM_SIZE), 5);
  write_reg(b, CT_REG_CTRL, 2);
  *d->quiet_i = 0;
  write_reg(b, CT_REG_CTRL, 3);
  assert_true(b->resets[0] == 1 && b->resets[1] == 1);
  for (unsigned i = 0; i < 100; ++i) { /* as long as a context is not quiet */
    cycle(b);
    assert_int_equal(*d->core_rst_no, 1);
    assert_int_equal(*d->hold_o, 1);
    *d->quiet_i = 1 + i % 2;
  }
  assert_int_equal(read_reg(b, CT_REG_CTRL), 3);
  assert_int_equal(read_reg(b, CT_REG_DRAIN_LIMIT), 77);
  *d->quiet_i = 3;
  CT_TB_WHILE (*d->core_rst_no, 100000)
    cycle(b);
  memset(b->count, 0, sizeof b->count);
  unsigned low = 0;
  b->ev_percent = 0;
  CT_TB_WHILE (!*d->core_rst_no, 100000) {
    cycle(b);
    ++low;
  }
  assert_in_range(low, 2, 16);
  assert_int_equal(read_reg(b, CT_REG_CTRL), 0);
  reset_values(b);
  check_all(b);
  for (unsigned i = 0; i < kCounters; ++i)
    assert_int_equal(read_reg(b, CT_CNT_BASE + i * 8), 0);
  const uint32_t now = read_reg(b, CT_REG_CYCLE_LO);
  assert_in_range(now, 100, b->cycle); /* goes on */
  close_bench(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(constants),    cmocka_unit_test(random_writes),
      cmocka_unit_test(pulses),       cmocka_unit_test(completions),
      cmocka_unit_test(counters),     cmocka_unit_test(cycle_counter),
      cmocka_unit_test(debug),        cmocka_unit_test(freeze),
      cmocka_unit_test(global_reset),
  };
  return cmocka_run_group_tests_name("ct_regs", tests, NULL, NULL);
}
