/* SPDX-License-Identifier: Apache-2.0 */
/* ct_dma_rd with one, two and three clients against a model of its rings, under random stalls,
 * errors of the memory, withdrawn requests, flushes and abandoned bursts; who goes first; what a
 * context may have outstanding; the throughput. */
#include "ct_tb.h"

#include <string.h>

#include "host/transports/sim/ct_axi_mem.h"

#include "ct_dma_rd_n1_dut.h"
#include "ct_dma_rd_n2_dut.h"
#include "ct_dma_rd_n3_dut.h"

enum { kPriority, kFcfs, kRoundRobin, kJob };
enum { kCtx = 2, kMostClients = 3, kMostPorts = kCtx * kMostClients, kVariants = 3 };
enum { kTagW = 12, kEndW = 7, kRing = 8, kUnits = 4096 };

/* One view of the models, which are types of their own; vectors over the ports are plain bytes. */
typedef struct {
  CT_TB_ANY_CALLS;
  uint16_t *qos_i;
  uint8_t *freeze_i, *train_cap_i, *yield_i, *block_i, *flush_i, *halt_i, *abandon_i;
  uint8_t *valid_i, *undo_i, *ready_o, *beat_o, *fault_o, *beat_ctx_o, *beat_first_o, *beat_last_o;
  void *addr_i, *beats_i, *tag_i, *end_tag_i;
  uint32_t *beat_addr_o, *data_o;
  uint16_t *beat_tag_o, *end_tag_o;
  uint8_t *end_o, *stay_i, *idle_o, *still_o;
  uint8_t *arvalid_o, *arready_i, *arid_o, *arlen_o, *rvalid_i, *rid_i, *rresp_i, *rlast_i;
  uint64_t *araddr_o;
  uint32_t *rdata_i;
} rd_ports;

#define VARIANT(name)                          \
  CT_TB_ANY(name)                              \
  CT_TB_ANY_CLOCK(name)                        \
  static rd_ports name##_ports(void) {         \
    name##_dut *d = name##_new(ct_tb_trace()); \
    const rd_ports p = {                       \
        CT_TB_ANY_OF(name, d),                 \
        .qos_i = d->qos_i,                     \
        .freeze_i = d->freeze_i,               \
        .train_cap_i = d->train_cap_i,         \
        .yield_i = d->yield_i,                 \
        .block_i = d->block_i,                 \
        .flush_i = d->flush_i,                 \
        .halt_i = d->halt_i,                   \
        .abandon_i = d->abandon_i,             \
        .valid_i = d->valid_i,                 \
        .undo_i = d->undo_i,                   \
        .ready_o = d->ready_o,                 \
        .beat_o = d->beat_o,                   \
        .fault_o = d->fault_o,                 \
        .beat_ctx_o = d->beat_ctx_o,           \
        .beat_first_o = d->beat_first_o,       \
        .beat_last_o = d->beat_last_o,         \
        .addr_i = d->addr_i,                   \
        .beats_i = d->beats_i,                 \
        .tag_i = d->tag_i,                     \
        .end_tag_i = d->end_tag_i,             \
        .beat_addr_o = d->beat_addr_o,         \
        .data_o = d->data_o,                   \
        .beat_tag_o = d->beat_tag_o,           \
        .end_tag_o = d->end_tag_o,             \
        .end_o = d->end_o,                     \
        .stay_i = d->stay_i,                   \
        .idle_o = d->idle_o,                   \
        .still_o = d->still_o,                 \
        .arvalid_o = d->m_axi_arvalid_o,       \
        .arready_i = d->m_axi_arready_i,       \
        .arid_o = d->m_axi_arid_o,             \
        .arlen_o = d->m_axi_arlen_o,           \
        .rvalid_i = d->m_axi_rvalid_i,         \
        .rid_i = d->m_axi_rid_i,               \
        .rresp_i = d->m_axi_rresp_i,           \
        .rlast_i = d->m_axi_rlast_i,           \
        .araddr_o = d->m_axi_araddr_o,         \
        .rdata_i = d->m_axi_rdata_i,           \
    };                                         \
    return p;                                  \
  }

VARIANT(ct_dma_rd_n1)
VARIANT(ct_dma_rd_n2)
VARIANT(ct_dma_rd_n3)

/* As in benches.mk. */
static rd_ports (*const kOpen[kVariants])(void) = {ct_dma_rd_n1_ports, ct_dma_rd_n2_ports,
                                                   ct_dma_rd_n3_ports};

struct burst {
  int client;
  uint32_t addr, beats, tag, end_tag;
};

/* A context: bursts by free-running numbers, put >= land >= end; those of the model's ring. */
struct ring {
  struct burst burst[2 * kRing];
  unsigned put, land, end, lost;
  uint32_t come; /* beats of the burst at land */
  unsigned flushing, halting;
};

struct rd_config {
  int clients;
  unsigned policy, floor, cap;
  unsigned latency, mem_stall, offer_stall, stay;
  uint32_t beats;   /* of every burst; 0: random */
  unsigned trouble; /* errors, withdrawn requests, flushes: in so many of 1000 cycles */
};

typedef struct {
  struct rd_config config;
  rd_ports p;
  ct_axi_mem *mem;
  struct ct_axi_in in;
  struct ct_axi_out r; /* what the memory drives, and what it drove in the last cycle */
  struct ct_axi_out r_last;
  ct_rng rng;
  ct_stall stall[kMostPorts];
  bool offered[kMostPorts];
  unsigned held; /* ports that offer nothing, a bit each */
  struct burst offer[kMostPorts];
  struct ring ring[kCtx];
  struct burst asked[2 * kRing]; /* granted and not seen on AR yet */
  uint8_t asked_ctx[2 * kRing];
  unsigned ar_put, ar_seen;
  uint64_t now;
  const uint8_t *data; /* that must be on data_o in this cycle, or NULL */
  uint64_t grants[kMostPorts], beats[kMostPorts], ends[kMostPorts];
  uint64_t faults, undone, lost, flushed,
      against; /* against: training's grants that inference should have kept away */
  unsigned most[kCtx];
  uint64_t first_beat, last_beat;
} bench;

static bench *open_bench(const struct rd_config *config) {
  bench *b = test_calloc(1, sizeof *b);
  b->config = *config;
  const struct ct_axi_mem_config mem = {.bytes = (size_t)16 * kUnits,
                                        .latency = config->latency,
                                        .stall_percent = config->mem_stall,
                                        .seed = ct_tb_seed() + 5};
  b->mem = ct_axi_mem_new(&mem);
  assert_non_null(b->mem);
  b->rng = ct_rng_make(2000 + (uint64_t)config->clients);
  ct_rng_fill(&b->rng, ct_axi_mem_data(b->mem), (size_t)16 * kUnits);
  for (unsigned p = 0; p < kMostPorts; ++p)
    b->stall[p] = ct_stall_make(2010 + p, config->offer_stall, 12);
  b->p = kOpen[config->clients - 1]();
  *b->p.qos_i = ct_tb_qos(config->policy, config->floor);
  *b->p.train_cap_i = (uint8_t)config->cap;
  *b->p.freeze_i = *b->p.yield_i = *b->p.block_i = 0;
  *b->p.flush_i = *b->p.halt_i = *b->p.abandon_i = 0;
  *b->p.valid_i = *b->p.undo_i = *b->p.stay_i = 0;
  *b->p.arready_i = *b->p.rvalid_i = 0;
  b->first_beat = UINT64_MAX;
  b->p.reset(b->p.dut, 2);
  return b;
}

static void close_bench(bench *b) {
  if (ct_axi_mem_error(b->mem)) fail_msg("%s", ct_axi_mem_error(b->mem));
  b->p.close(b->p.dut);
  ct_axi_mem_free(b->mem);
  test_free(b);
}

static bool trouble(bench *b, unsigned share) {
  return ct_rng_below(&b->rng, 1000 * share) < b->config.trouble;
}

/* ---- Driver -------------------------------------------------------------------------------- */

static void make_offer(bench *b, int p) {
  struct burst *o = &b->offer[p];
  o->client = p / kCtx;
  o->beats = b->config.beats ? b->config.beats : 1 + ct_rng_below(&b->rng, 17);
  o->addr = ct_rng_below(&b->rng, kUnits / 256) * 256 + ct_rng_below(&b->rng, 257 - o->beats);
  o->tag = ct_rng_below(&b->rng, 1u << kTagW);
  o->end_tag = ct_rng_below(&b->rng, 1u << kEndW);
  b->offered[p] = true;
  if (b->config.trouble && ct_rng_percent(&b->rng, 4))
    ct_axi_mem_fault(b->mem, CT_FAULT_AXI_READ,
                     16ull * (o->addr + ct_rng_below(&b->rng, o->beats)));
  ct_tb_put(b->p.addr_i, 32 * (unsigned)p, 32, o->addr);
  ct_tb_put(b->p.beats_i, 5 * (unsigned)p, 5, o->beats);
  ct_tb_put(b->p.tag_i, kTagW * (unsigned)p, kTagW, o->tag);
  ct_tb_put(b->p.end_tag_i, kEndW * (unsigned)p, kEndW, o->end_tag);
}

static void drive_port(bench *b, int p) {
  const bool stalled = ct_stall_next(&b->stall[p]),
             dropped = (*b->p.flush_i | *b->p.halt_i) >> p % kCtx & 1;
  bool undo = false;
  if (dropped) b->offered[p] = false;
  if (b->offered[p] && trouble(b, 1)) {
    b->offered[p] = false;
    undo = true;
    ++b->undone;
  } else if (!b->offered[p] && !dropped && !stalled && !(b->held >> p & 1)) {
    make_offer(b, p);
  }
  ct_tb_put(b->p.valid_i, (unsigned)p, 1, b->offered[p]);
  ct_tb_put(b->p.undo_i, (unsigned)p, 1, undo);
  ct_tb_put(b->p.stay_i, (unsigned)p, 1, ct_rng_percent(&b->rng, b->config.stay));
}

/* An error of a context as ct_dma has it: it is halted, then flushed until nothing of it is left;
 * at times its bursts are abandoned. */
static void drive_flush(bench *b, int c) {
  struct ring *r = &b->ring[c];
  const uint8_t bit = (uint8_t)(1u << c);
  *b->p.abandon_i &= (uint8_t)~bit;
  if (!r->flushing && !r->halting && trouble(b, 5)) r->halting = 1 + ct_rng_below(&b->rng, 30);
  if (r->halting && --r->halting == 0) {
    r->flushing = 1 + ct_rng_below(&b->rng, 40);
    ++b->flushed;
  }
  if (r->flushing > 1) {
    --r->flushing;
    if (ct_rng_percent(&b->rng, 4)) *b->p.abandon_i |= bit;
  } else if (r->flushing && r->put == r->end) {
    r->flushing = 0;
  }
  ct_tb_put(b->p.halt_i, (unsigned)c, 1, r->halting > 0);
  ct_tb_put(b->p.flush_i, (unsigned)c, 1, r->flushing > 0);
}

static void drive_memory(bench *b) {
  const rd_ports *p = &b->p;
  b->r_last = b->r;
  b->in.arvalid = *p->arvalid_o;
  b->in.arid = *p->arid_o;
  b->in.araddr = *p->araddr_o;
  b->in.arlen = *p->arlen_o;
  b->in.arsize = 4;
  b->in.arburst = 1;
  b->in.rready = true;
  ct_axi_mem_cycle(b->mem, &b->in, &b->r);
  *p->arready_i = b->r.arready;
  *p->rvalid_i = b->r.rvalid;
  *p->rid_i = b->r.rid;
  *p->rresp_i = b->r.rresp;
  *p->rlast_i = b->r.rlast;
  memcpy(p->rdata_i, b->r.rdata, 16);
}

/* ---- Model --------------------------------------------------------------------------------- */

static bool asks(const bench *b, int c) {
  for (int k = 0; k < b->config.clients; ++k)
    if (b->offered[kCtx * k + c]) return true;
  return false;
}

/* Of a context the first client that asks; the ring has room for it; the caps. */
static void take_grant(bench *b) {
  const unsigned ready = *b->p.ready_o;
  if (!ready) return;
  assert_int_equal(ready & (ready - 1), 0);
  const int port = __builtin_ctz(ready), c = port % kCtx;
  for (int p = c; p < port; p += kCtx)
    assert_false(b->offered[p]);
  assert_true(b->offered[port]);
  assert_false((*b->p.freeze_i | *b->p.block_i) != 0);
  struct ring *r = &b->ring[c];
  r->burst[r->put++ % (2 * kRing)] = b->offer[port];
  b->asked[b->ar_put % (2 * kRing)] = b->offer[port];
  b->asked_ctx[b->ar_put++ % (2 * kRing)] = (uint8_t)c;
  b->offered[port] = false;
  ++b->grants[port];
  const unsigned out = r->put - r->end + r->lost;
  assert_true(out <= kRing);
  if (c == 1) assert_true(out <= (b->config.cap ? b->config.cap : 1));
  if (out > b->most[c]) b->most[c] = out;
  if (c == 1 && (asks(b, 0) || b->ring[0].put != b->ring[0].land)) ++b->against;
}

/* AR has the bursts as they were granted. */
static void check_ar(bench *b) {
  if (!b->in.arvalid || !b->r.arready) return;
  assert_true(b->ar_seen != b->ar_put);
  const unsigned at = b->ar_seen++ % (2 * kRing);
  assert_int_equal(b->in.arid, b->asked_ctx[at]);
  assert_int_equal(b->in.araddr, 16ull * b->asked[at].addr);
  assert_int_equal(b->in.arlen, b->asked[at].beats - 1);
}

/* A beat of R is heard a cycle later, by the client whose burst it is and by nobody else. */
static void check_beat(bench *b) {
  const rd_ports *p = &b->p;
  if (b->data) ct_assert_same("data of a beat", p->data_o, b->data, 16);
  b->data = NULL;
  unsigned beat = 0, fault = 0;
  if (b->r_last.rvalid) {
    const int c = b->r_last.rid;
    struct ring *r = &b->ring[c];
    if (r->lost) {
      r->lost -= b->r_last.rlast;
      ++b->lost;
    } else {
      assert_true(r->land != r->put);
      const struct burst *e = &r->burst[r->land % (2 * kRing)];
      const int port = kCtx * e->client + c;
      if (!((*p->flush_i | *p->halt_i) >> c & 1)) {
        if (b->r_last.rresp & 2)
          fault = 1u << port;
        else
          beat = 1u << port;
        b->faults += fault != 0;
        b->beats[port] += beat != 0;
        assert_int_equal(*p->beat_ctx_o, c);
        assert_int_equal(*p->beat_first_o, r->come == 0);
        assert_int_equal(*p->beat_last_o, r->come + 1 == e->beats);
        assert_int_equal(*p->beat_addr_o, e->addr);
        assert_int_equal(*p->beat_tag_o, e->tag);
        if (beat) b->data = ct_axi_mem_data(b->mem) + (size_t)16 * (e->addr + r->come);
      }
      b->last_beat = b->now;
      if (b->first_beat == UINT64_MAX) b->first_beat = b->now;
      r->come = b->r_last.rlast ? 0 : r->come + 1;
      r->land += b->r_last.rlast;
    }
  }
  assert_int_equal(*p->beat_o, beat);
  assert_int_equal(*p->fault_o, fault);
}

/* Ends: of each context that of the oldest burst that has come. (Before the beats of this cycle.)
 */
static void check_ends(bench *b) {
  unsigned ends = 0;
  for (int c = 0; c < kCtx; ++c) {
    struct ring *r = &b->ring[c];
    if (r->land == r->end) continue;
    const struct burst *e = &r->burst[r->end % (2 * kRing)];
    const int port = kCtx * e->client + c;
    ends |= 1u << port;
    assert_int_equal(*b->p.end_tag_o >> (kEndW * c) & ((1u << kEndW) - 1), e->end_tag);
    if (*b->p.stay_i >> port & 1) continue;
    ++r->end;
    ++b->ends[port];
  }
  assert_int_equal(*b->p.end_o, ends);
}

static void check_idle(bench *b) {
  unsigned busy = 0;
  for (int c = 0; c < kCtx; ++c) {
    const struct ring *r = &b->ring[c];
    for (unsigned i = r->end; i != r->put; ++i)
      busy |= 1u << (kCtx * r->burst[i % (2 * kRing)].client + c);
    const bool still =
        !asks(b, c) && r->put == r->land && !(b->r_last.rvalid && b->r_last.rid == c);
    assert_int_equal(*b->p.still_o >> c & 1, still);
  }
  assert_int_equal(*b->p.idle_o, ~busy & ((1u << kCtx * b->config.clients) - 1));
}

static void abandon(bench *b) {
  for (int c = 0; c < kCtx; ++c) {
    struct ring *r = &b->ring[c];
    if (!(*b->p.abandon_i >> c & 1)) continue;
    r->lost += r->put - r->land;
    r->end = r->land = r->put;
    r->come = 0;
  }
}

static void cycle(bench *b) {
  for (int c = 0; c < kCtx; ++c)
    drive_flush(b, c);
  for (int p = 0; p < kCtx * b->config.clients; ++p)
    drive_port(b, p);
  drive_memory(b);
  b->p.eval(b->p.dut);
  check_ar(b);
  check_idle(b);
  check_ends(b);
  check_beat(b);
  take_grant(b);
  abandon(b);
  b->p.tick(b->p.dut);
  ++b->now;
}

static void cycles(bench *b, unsigned n) {
  while (n--)
    cycle(b);
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void random_traffic(void **state) {
  (void)state;
  static const unsigned policies[] = {kPriority, kPriority, kFcfs, kRoundRobin, kJob};
  for (int n = 1; n <= kVariants; ++n) {
    uint64_t faults = 0, lost = 0, undone = 0, flushed = 0, ends[kMostPorts] = {0};
    for (unsigned i = 0; i < 15; ++i) {
      const struct rd_config config = {.clients = n,
                                       .policy = policies[i % 5],
                                       .floor = i % 5 == 1 ? 64 : 0,
                                       .cap = i % 3 ? 8 : 2,
                                       .latency = i % 2 ? 40 : 3,
                                       .mem_stall = 30 * (i % 3),
                                       .offer_stall = i % 4 * 25,
                                       .stay = i % 3 * 20,
                                       .trouble = i % 3 ? 5 * (i % 4) : 0};
      bench *b = open_bench(&config);
      cycles(b, 6000);
      for (int p = 0; p < kCtx * n; ++p)
        ends[p] += b->ends[p];
      assert_true(b->beats[0] > 100);
      faults += b->faults;
      lost += b->lost;
      undone += b->undone;
      flushed += b->flushed;
      close_bench(b);
    }
    for (int p = 0; p < kCtx * n; ++p)
      assert_true(ends[p] > 20);
    print_message("%d clients: %u errors, %u lost beats, %u withdrawn, %u flushes\n", n,
                  (unsigned)faults, (unsigned)lost, (unsigned)undone, (unsigned)flushed);
    assert_true(faults > 20 && lost > 20 && undone > 100 && flushed > 20);
  }
}

/* Clients that ask in every cycle, of both contexts: the first has the port until it stops. */
static void first_client_first(void **state) {
  (void)state;
  const struct rd_config config = {
      .clients = 3, .policy = kRoundRobin, .cap = 8, .latency = 10, .beats = 4};
  bench *b = open_bench(&config);
  for (int k = 0; k < config.clients; ++k) {
    uint64_t before[kMostPorts];
    cycles(b, 200);
    memcpy(before, b->grants, sizeof before);
    cycles(b, 1000);
    for (int p = 0; p < kMostPorts; ++p) {
      if (p / kCtx == k)
        assert_true(b->grants[p] > before[p] + 50);
      else
        assert_int_equal(b->grants[p], before[p]);
    }
    b->held |= 3u << kCtx * k;
  }
  close_bench(b);
}

/* Whichever client asks: a beat in every cycle, from each number of clients. */
static void long_bursts_fill_the_bus(void **state) {
  (void)state;
  for (int n = 1; n <= kVariants; ++n) {
    const struct rd_config config = {
        .clients = n, .policy = kRoundRobin, .cap = 8, .latency = 60, .beats = 16};
    bench *b = open_bench(&config);
    cycles(b, 4000);
    uint64_t beats = 0;
    for (int p = 0; p < kMostPorts; ++p)
      beats += b->beats[p];
    assert_int_equal(beats, b->last_beat - b->first_beat + 1);
    assert_true(beats > 3900);
    close_bench(b);
  }
}

/* Each client of inference alone keeps all clients of training away while it reads (PRIORITY); in
 * turns the contexts share; with a floor training has its share. */
static void contexts_by_policy(void **state) {
  (void)state;
  for (int n = 1; n <= kVariants; ++n) {
    for (int k = 0; k < n; ++k) {
      struct rd_config config = {
          .clients = n, .policy = kPriority, .cap = 8, .latency = 20, .beats = 8};
      bench *b = open_bench(&config);
      b->held = 0x15 & ~(1u << kCtx * k); /* of inference only client k */
      cycles(b, 2000);
      assert_int_equal(b->grants[1] + b->grants[3] + b->grants[5], 0);
      assert_int_equal(b->against, 0);
      b->held = 0x15;
      cycles(b, 400);
      assert_true(b->grants[1] > 20);
      assert_int_equal(b->against, 0);
      close_bench(b);

      config.policy = kRoundRobin;
      b = open_bench(&config);
      b->held = 0x15 & ~(1u << kCtx * k);
      cycles(b, 4000);
      const uint64_t inf = b->grants[kCtx * k], trn = b->grants[1];
      assert_true(inf > 200 && inf <= trn + kRing && trn <= inf + kRing);
      close_bench(b);

      config.policy = kPriority;
      config.floor = 64;
      b = open_bench(&config);
      b->held = 0x15 & ~(1u << kCtx * k);
      cycles(b, 8000);
      const uint64_t all = b->grants[kCtx * k] + b->grants[1];
      assert_true(4 * b->grants[1] + 8 >= all && 4 * b->grants[1] <= all + 8);
      close_bench(b);
    }
  }
}

/* All clients of a context together have 8 bursts outstanding, of training TRAIN_CAP. */
static void ring_is_the_cap(void **state) {
  (void)state;
  for (int n = 1; n <= kVariants; ++n) {
    for (unsigned cap = 0; cap <= 8; ++cap) {
      const struct rd_config config = {.clients = n,
                                       .policy = kRoundRobin,
                                       .cap = cap,
                                       .latency = 100,
                                       .offer_stall = 20,
                                       .beats = 2};
      bench *b = open_bench(&config);
      cycles(b, 1500);
      assert_int_equal(b->most[0], kRing);
      assert_int_equal(b->most[1], cap ? cap : 1);
      close_bench(b);
    }
  }
}

/* Nothing is granted when frozen or blocked; what was granted comes. */
static void frozen_and_blocked(void **state) {
  (void)state;
  const struct rd_config config = {
      .clients = 3, .policy = kFcfs, .cap = 8, .latency = 5, .mem_stall = 20};
  bench *b = open_bench(&config);
  for (int i = 0; i < 40; ++i) {
    *b->p.freeze_i = i % 4 == 1;
    *b->p.block_i = i % 4 == 3;
    cycles(b, 300);
    if (i % 2) assert_int_equal(*b->p.idle_o, 0x3f);
  }
  close_bench(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_traffic),           cmocka_unit_test(first_client_first),
      cmocka_unit_test(long_bursts_fill_the_bus), cmocka_unit_test(contexts_by_policy),
      cmocka_unit_test(ring_is_the_cap),          cmocka_unit_test(frozen_and_blocked),
  };
  return cmocka_run_group_tests_name("ct_dma_rd", tests, NULL, NULL);
}
