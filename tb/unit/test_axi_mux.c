/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_axi_mux between two masters and a memory that answers bursts of different IDs in any order:
 * every beat comes from and goes to where it belongs, with all handshakes stalled at random; and
 * who waits how long when everybody always asks.
 */
#include "ct_tb.h"

#include <string.h>

#include "ct_axi_mux_dut.h"

enum { PORTS = 2, QUEUE = 64, MAX_BEATS = 17, PATIENCE = 4 };

struct burst {
  uint8_t port, id;
  uint64_t addr;
  unsigned beats, done;
};

struct queue {
  struct burst burst[QUEUE];
  unsigned count;
};

/* What a port has asked for and not been answered yet, in order for each ID. */
struct bench {
  ct_axi_mux_dut *dut;
  ct_rng rng;
  unsigned stall, ask;        /* percent */
  struct queue reads, writes; /* at the memory */
  struct queue await_r[PORTS], await_b[PORTS], to_write[PORTS];
  struct burst ar[PORTS], aw[PORTS];
  int answering;    /* read under way at the memory, or -1 */
  bool b_wait;      /* a write's answer is on offer */
  unsigned first_w; /* of writes: whose beats come */
  unsigned long beats_r, beats_w, bursts;
  uint8_t taken_ar, taken_aw,
      taken_w; /* by ports, in this cycle: their valids fall after the edge */
  bool taken_r;
  unsigned passed[3],
      most[3]; /* reads chosen while inference, the host, training wait at their port */
};

static struct burst *push(struct queue *q, struct burst b) {
  assert_true(q->count < QUEUE);
  q->burst[q->count] = b;
  return &q->burst[q->count++];
}

static void drop(struct queue *q, unsigned i) {
  memmove(q->burst + i, q->burst + i + 1, (--q->count - i) * sizeof *q->burst);
}

/* The oldest of an ID; fails the test if there is none. */
static unsigned oldest(const struct queue *q, unsigned id) {
  for (unsigned i = 0; i < q->count; ++i)
    if (q->burst[i].id == id) return i;
  fail_msg("an answer that nobody waits for");
  return 0;
}

static uint32_t word_of(uint64_t addr, unsigned beat) {
  return (uint32_t)((addr >> 4) + beat) * 0x9E3779B1u;
}

static bool goes(struct bench *b) {
  return !ct_rng_percent(&b->rng, b->stall);
}

/* A port's address, in its place of a wire that two ports share. */
static void put_addr(uint32_t *wire, unsigned port, uint64_t addr) {
  for (unsigned i = 0; i < 36; ++i) {
    const unsigned at = 36 * port + i;
    wire[at / 32] = (wire[at / 32] & ~(1u << at % 32)) | (uint32_t)(addr >> i & 1) << at % 32;
  }
}

static void bit(uint8_t *wire, unsigned port, bool value) {
  *wire = (uint8_t)((*wire & ~(1u << port)) | (unsigned)value << port);
}

static void ask(struct bench *b, unsigned port, struct burst *x, uint8_t *valid, uint8_t *id,
                uint32_t *addr, uint16_t *len, const struct queue *waiting) {
  if (!(*valid >> port & 1) && waiting->count < 8 && ct_rng_percent(&b->rng, b->ask)) {
    *x = (struct burst){.port = (uint8_t)port,
                        .id = (uint8_t)(port ? 0 : ct_rng_below(&b->rng, 2)),
                        .addr = ct_rng_u64(&b->rng) & 0xffffffff0ull,
                        .beats = 1 + ct_rng_below(&b->rng, MAX_BEATS)};
    bit(valid, port, true);
  }
  bit(id, port, x->id);
  put_addr(addr, port, x->addr);
  *len = (uint16_t)((*len & ~(0xffu << 8 * port)) | (x->beats - 1) << 8 * port);
}

/* ---- Inputs of a cycle ---- */

static void drive_ports(struct bench *b) {
  const ct_axi_mux_dut *d = b->dut;
  for (unsigned p = 0; p < PORTS; ++p) {
    ask(b, p, &b->ar[p], d->s_axi_arvalid_i, d->s_axi_arid_i, d->s_axi_araddr_i, d->s_axi_arlen_i,
        &b->await_r[p]);
    ask(b, p, &b->aw[p], d->s_axi_awvalid_i, d->s_axi_awid_i, d->s_axi_awaddr_i, d->s_axi_awlen_i,
        &b->await_b[p]);
    bit(d->s_axi_rready_i, p, goes(b));
    bit(d->s_axi_bready_i, p, goes(b));
    if (!b->to_write[p].count || (!(*d->s_axi_wvalid_i >> p & 1) && !goes(b))) continue;
    const struct burst *x = b->to_write[p].burst;
    bit(d->s_axi_wvalid_i, p, true);
    bit(d->s_axi_wlast_i, p, x->done + 1 == x->beats);
    for (unsigned i = 0; i < 4; ++i)
      d->s_axi_wdata_i[4 * p + i] = word_of(x->addr, x->done) + i;
    *d->s_axi_wstrb_i =
        (*d->s_axi_wstrb_i & ~(0xffffu << 16 * p)) | (word_of(x->addr, x->done) >> 16) << 16 * p;
  }
}

static void drive_memory(struct bench *b) {
  const ct_axi_mux_dut *d = b->dut;
  *d->m_axi_arready_i = b->reads.count < 4 && goes(b);
  *d->m_axi_awready_i = b->writes.count < 4 && goes(b);
  *d->m_axi_wready_i = b->first_w < b->writes.count && goes(b);
  if (b->answering < 0 && b->reads.count && goes(b)) {
    const unsigned any = ct_rng_below(&b->rng, b->reads.count);
    const struct burst *x = &b->reads.burst[any];
    b->answering = 0;
    while (b->reads.burst[b->answering].id != x->id || b->reads.burst[b->answering].port != x->port)
      ++b->answering;
  }
  *d->m_axi_rvalid_i = *d->m_axi_rvalid_i || (b->answering >= 0 && goes(b));
  if (b->answering >= 0) {
    const struct burst *x = &b->reads.burst[b->answering];
    *d->m_axi_rid_i = (uint8_t)(x->port << 1 | x->id);
    *d->m_axi_rlast_i = x->done + 1 == x->beats;
    for (unsigned i = 0; i < 4; ++i)
      d->m_axi_rdata_i[i] = word_of(x->addr, x->done) ^ i;
  }
  const struct burst *w = b->writes.burst;
  if (!b->b_wait && b->writes.count && w->done == w->beats && goes(b)) {
    b->b_wait = true;
    *d->m_axi_bid_i = (uint8_t)(w->port << 1 | w->id);
  }
  *d->m_axi_bvalid_i = b->b_wait;
}

/* ---- What a cycle hands over ---- */

static void count_passed(struct bench *b, unsigned port) {
  const ct_axi_mux_dut *d = b->dut;
  const bool waits[3] = {(*d->s_axi_arvalid_i & 1) && !b->ar[0].id, *d->s_axi_arvalid_i >> 1 & 1,
                         (*d->s_axi_arvalid_i & 1) && b->ar[0].id};
  for (unsigned i = 0; i < 3; ++i) {
    const bool own = port == (i == 1);
    b->passed[i] = waits[i] && !own ? b->passed[i] + 1 : 0;
    if (b->passed[i] > b->most[i]) b->most[i] = b->passed[i];
  }
}

static void take_ports(struct bench *b) {
  const ct_axi_mux_dut *d = b->dut;
  for (unsigned p = 0; p < PORTS; ++p) {
    if (*d->s_axi_arvalid_i & *d->s_axi_arready_o & 1 << p) {
      count_passed(b, p);
      push(&b->await_r[p], b->ar[p]);
      b->taken_ar |= (uint8_t)(1 << p);
    }
    if (*d->s_axi_awvalid_i & *d->s_axi_awready_o & 1 << p) {
      push(&b->await_b[p], b->aw[p]);
      push(&b->to_write[p], b->aw[p]);
      b->taken_aw |= (uint8_t)(1 << p);
    }
    if (*d->s_axi_wvalid_i & *d->s_axi_wready_o & 1 << p) {
      assert_true(b->to_write[p].count);
      b->taken_w |= (uint8_t)(1 << p);
      if (++b->to_write[p].burst[0].done == b->to_write[p].burst[0].beats) drop(&b->to_write[p], 0);
    }
    if (*d->s_axi_rvalid_o & *d->s_axi_rready_i & 1 << p) {
      const unsigned i = oldest(&b->await_r[p], *d->s_axi_rid_o);
      struct burst *x = &b->await_r[p].burst[i];
      for (unsigned w = 0; w < 4; ++w)
        assert_int_equal(d->s_axi_rdata_o[w], word_of(x->addr, x->done) ^ w);
      assert_int_equal(*d->s_axi_rlast_o, ++x->done == x->beats);
      ++b->beats_r;
      if (x->done == x->beats) drop(&b->await_r[p], i);
    }
    if (*d->s_axi_bvalid_o & *d->s_axi_bready_i & 1 << p) {
      drop(&b->await_b[p], oldest(&b->await_b[p], *d->s_axi_bid_o));
      ++b->bursts;
    }
  }
}

static void take_memory(struct bench *b) {
  const ct_axi_mux_dut *d = b->dut;
  if (*d->m_axi_rvalid_i && *d->m_axi_rready_o) {
    struct burst *x = &b->reads.burst[b->answering];
    b->taken_r = true;
    if (++x->done == x->beats) {
      drop(&b->reads, (unsigned)b->answering);
      b->answering = -1;
    }
  }
  if (b->b_wait && *d->m_axi_bready_o) {
    b->b_wait = false;
    drop(&b->writes, 0);
    --b->first_w;
  }
  if (*d->m_axi_arvalid_o && *d->m_axi_arready_i)
    push(&b->reads, (struct burst){.port = *d->m_axi_arid_o >> 1,
                                   .id = *d->m_axi_arid_o & 1,
                                   .addr = *d->m_axi_araddr_o,
                                   .beats = *d->m_axi_arlen_o + 1u});
  if (*d->m_axi_wvalid_o && *d->m_axi_wready_i) {
    struct burst *x = &b->writes.burst[b->first_w];
    for (unsigned w = 0; w < 4; ++w)
      assert_int_equal(d->m_axi_wdata_o[w], word_of(x->addr, x->done) + w);
    assert_int_equal(*d->m_axi_wstrb_o, word_of(x->addr, x->done) >> 16);
    assert_int_equal(*d->m_axi_wlast_o, ++x->done == x->beats);
    b->first_w += x->done == x->beats;
    ++b->beats_w;
  }
  if (*d->m_axi_awvalid_o && *d->m_axi_awready_i)
    push(&b->writes, (struct burst){.port = *d->m_axi_awid_o >> 1,
                                    .id = *d->m_axi_awid_o & 1,
                                    .addr = *d->m_axi_awaddr_o,
                                    .beats = *d->m_axi_awlen_o + 1u});
}

/* Inputs change after the edge: what was handed over stays until then. */
static void let_go(struct bench *b) {
  const ct_axi_mux_dut *d = b->dut;
  *d->s_axi_arvalid_i &= (uint8_t)~b->taken_ar;
  *d->s_axi_awvalid_i &= (uint8_t)~b->taken_aw;
  *d->s_axi_wvalid_i &= (uint8_t)~b->taken_w;
  if (b->taken_r) *d->m_axi_rvalid_i = 0;
  b->taken_ar = b->taken_aw = b->taken_w = 0;
  b->taken_r = false;
}

/* ---- Tests ---- */

static struct bench begin(unsigned stall, unsigned ask) {
  struct bench b = {.dut = ct_axi_mux_new(ct_tb_trace()),
                    .rng = ct_rng_make(stall),
                    .stall = stall,
                    .ask = ask,
                    .answering = -1};
  const ct_axi_mux_dut *d = b.dut;
  *d->s_axi_arvalid_i = *d->s_axi_awvalid_i = *d->s_axi_wvalid_i = 0;
  *d->m_axi_rvalid_i = *d->m_axi_bvalid_i = 0;
  ct_axi_mux_reset(b.dut, 2);
  return b;
}

static void run(struct bench *b, unsigned cycles) {
  for (unsigned n = 0; n < cycles; ++n) {
    drive_ports(b);
    drive_memory(b);
    ct_axi_mux_eval(b->dut);
    take_ports(b);
    take_memory(b);
    ct_axi_mux_tick(b->dut);
    let_go(b);
  }
}

static void every_beat_arrives(void **state) {
  static const unsigned stalls[] = {0, 30, 80};
  (void)state;
  for (size_t i = 0; i < sizeof stalls / sizeof *stalls; ++i) {
    struct bench b = begin(stalls[i], 50);
    run(&b, 100000);
    assert_true(b.bursts > 500 && b.beats_r > 4000 && b.beats_w > 4000);
    ct_axi_mux_free(b.dut);
  }
}

/* Everybody always asks: the bounds are met, and no wait is longer. */
static void bounds(void **state) {
  (void)state;
  struct bench b = begin(0, 100);
  run(&b, 100000);
  assert_int_equal(b.most[0], 1);
  assert_in_range(b.most[1], 1, PATIENCE);
  assert_in_range(b.most[2], 1, PATIENCE + 1);
  ct_axi_mux_free(b.dut);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_beat_arrives),
      cmocka_unit_test(bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
