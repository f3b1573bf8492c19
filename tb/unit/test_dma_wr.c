/* SPDX-License-Identifier: Apache-2.0 */
/* ct_dma_wr with one, two and three clients against a model, cycle by cycle, under random stalls of
 * AW, W and B, errors of the memory, flushes, abandoned and sealed bursts; who goes first; what a
 * context may have outstanding, lost bursts included; the throughput. */
#include "ct_tb.h"

#include <string.h>

#include "host/transports/sim/ct_axi_mem.h"

#include "ct_dma_wr_n1_dut.h"
#include "ct_dma_wr_n2_dut.h"
#include "ct_dma_wr_n3_dut.h"

enum { kPriority, kFcfs, kRoundRobin, kJob };
enum { kCtx = 2, kMostClients = 3, kMostPorts = kCtx * kMostClients, kVariants = 3 };
enum { kAtW = 5, kTagW = 10, kEndW = 7, kRing = 16, kUnits = 4096, kBeat = 16 };
enum { kWaitBound = 21 }; /* beats of W that inference may see while it waits (PRIORITY) */

/* One view of the models, which are types of their own; vectors over the ports are plain bytes. */
typedef struct {
  CT_TB_ANY_CALLS;
  uint16_t *qos_i;
  uint8_t *freeze_i, *flush_i, *halt_i, *abandon_i, *seal_i, *old_o, *old_err_o;
  uint8_t *valid_i, *ready_o, *busy_i, *beat_o, *beat_at_o, *beat_last_o, *fault_o;
  void *addr_i, *beats_i, *at_i, *tag_i, *end_tag_i, *data_i;
  uint16_t *beat_tag_o, *end_tag_o, *probe_o;
  uint32_t *old_err_addr_o, *fault_addr_o, *wdata_o;
  uint8_t *end_o, *stay_i, *within_o, *idle_o, *still_o;
  uint8_t *awvalid_o, *awready_i, *awid_o, *awlen_o, *wvalid_o, *wready_i, *wlast_o;
  uint8_t *bvalid_i, *bid_i, *bresp_i;
  uint8_t *ev_beats_o, *ev_wait_arb_o, *ev_wait_mem_o;
  uint64_t *awaddr_o;
} wr_ports;

#define VARIANT(name)                          \
  CT_TB_ANY(name)                              \
  CT_TB_ANY_CLOCK(name)                        \
  static wr_ports name##_ports(void) {         \
    name##_dut *d = name##_new(ct_tb_trace()); \
    const wr_ports p = {                       \
        CT_TB_ANY_OF(name, d),                 \
        .qos_i = d->qos_i,                     \
        .freeze_i = d->freeze_i,               \
        .flush_i = d->flush_i,                 \
        .halt_i = d->halt_i,                   \
        .abandon_i = d->abandon_i,             \
        .seal_i = d->seal_i,                   \
        .old_o = d->old_o,                     \
        .old_err_o = d->old_err_o,             \
        .valid_i = d->valid_i,                 \
        .ready_o = d->ready_o,                 \
        .busy_i = d->busy_i,                   \
        .beat_o = d->beat_o,                   \
        .beat_at_o = d->beat_at_o,             \
        .beat_last_o = d->beat_last_o,         \
        .fault_o = d->fault_o,                 \
        .addr_i = d->addr_i,                   \
        .beats_i = d->beats_i,                 \
        .at_i = d->at_i,                       \
        .tag_i = d->tag_i,                     \
        .end_tag_i = d->end_tag_i,             \
        .data_i = d->data_i,                   \
        .beat_tag_o = d->beat_tag_o,           \
        .end_tag_o = d->end_tag_o,             \
        .probe_o = d->probe_o,                 \
        .old_err_addr_o = d->old_err_addr_o,   \
        .fault_addr_o = d->fault_addr_o,       \
        .wdata_o = d->m_axi_wdata_o,           \
        .end_o = d->end_o,                     \
        .stay_i = d->stay_i,                   \
        .within_o = d->within_o,               \
        .idle_o = d->idle_o,                   \
        .still_o = d->still_o,                 \
        .awvalid_o = d->m_axi_awvalid_o,       \
        .awready_i = d->m_axi_awready_i,       \
        .awid_o = d->m_axi_awid_o,             \
        .awlen_o = d->m_axi_awlen_o,           \
        .wvalid_o = d->m_axi_wvalid_o,         \
        .wready_i = d->m_axi_wready_i,         \
        .wlast_o = d->m_axi_wlast_o,           \
        .bvalid_i = d->m_axi_bvalid_i,         \
        .bid_i = d->m_axi_bid_i,               \
        .bresp_i = d->m_axi_bresp_i,           \
        .ev_beats_o = d->ev_beats_o,           \
        .ev_wait_arb_o = d->ev_wait_arb_o,     \
        .ev_wait_mem_o = d->ev_wait_mem_o,     \
        .awaddr_o = d->m_axi_awaddr_o,         \
    };                                         \
    return p;                                  \
  }

VARIANT(ct_dma_wr_n1)
VARIANT(ct_dma_wr_n2)
VARIANT(ct_dma_wr_n3)

/* As in benches.mk. */
static wr_ports (*const kOpen[kVariants])(void) = {ct_dma_wr_n1_ports, ct_dma_wr_n2_ports,
                                                   ct_dma_wr_n3_ports};

struct burst {
  int port;
  uint32_t addr, beats, at, tag, end_tag;
};

/* A context: bursts by free-running numbers, put >= ans >= end; those before mark are of the job
 * before. */
struct ring {
  struct burst burst[2 * kRing];
  unsigned put, ans, end, mark, lost;
  bool room; /* there was, a cycle ago */
  unsigned flushing, halting;
  bool abandon; /* in the next cycle, under a flush */
};

/* A beat on its way: whose it is, and its data. */
struct beat {
  bool valid, last;
  int ctx;
  uint8_t data[kBeat];
};

struct wr_config {
  int clients;
  unsigned policy, floor;
  unsigned latency, mem_stall, write_bytes, offer_stall, stay;
  uint32_t beats;   /* of every burst; 0: random */
  unsigned trouble; /* errors, flushes, seals: in so many of 1000 cycles */
};

typedef struct {
  struct wr_config config;
  wr_ports p;
  ct_axi_mem *mem;
  struct ct_axi_in in;
  struct ct_axi_out b; /* what the memory drives, and what it drove in the last cycle */
  struct ct_axi_out b_last;
  ct_rng rng;
  ct_stall stall[kMostPorts];
  bool offered[kMostPorts];
  unsigned held; /* ports that offer nothing, a bit each */
  struct burst offer[kMostPorts];
  struct ring ring[kCtx];
  bool aw;                    /* AW offers the burst granted last */
  struct burst aw_burst;      /* and what it is */
  bool job, next;             /* bursts of W: the one being asked for, and the one behind it */
  struct burst jobs[2];       /* these; beats counts down, at counts up */
  struct beat asked, out;     /* beats: asked for, on W */
  unsigned old_err;           /* expected on old_err_o in this cycle */
  uint32_t old_err_addr;      /* with this address */
  unsigned ev[3];             /* expected on ev_beats_o, ev_wait_arb_o, ev_wait_mem_o */
  unsigned answered, beating; /* of this cycle, for the probe */
  unsigned wait;              /* beats of W while inference waits */
  uint64_t now;
  uint64_t grants[kMostPorts], beats[kMostPorts], ends[kMostPorts];
  uint64_t faults, old_faults, lost, flushed, sealed, full, waits;
  unsigned most[kCtx];
  uint64_t first_beat, last_beat;
} bench;

static bench *open_bench(const struct wr_config *config) {
  bench *b = test_calloc(1, sizeof *b);
  b->config = *config;
  const struct ct_axi_mem_config mem = {.bytes = (size_t)kBeat * kUnits,
                                        .latency = config->latency,
                                        .stall_percent = config->mem_stall,
                                        .write_bytes = config->write_bytes,
                                        .seed = ct_tb_seed() + 6};
  b->mem = ct_axi_mem_new(&mem);
  assert_non_null(b->mem);
  b->rng = ct_rng_make(2100 + (uint64_t)config->clients);
  for (unsigned p = 0; p < kMostPorts; ++p)
    b->stall[p] = ct_stall_make(2110 + p, config->offer_stall, 12);
  b->p = kOpen[config->clients - 1]();
  const wr_ports *d = &b->p;
  *d->qos_i = ct_tb_qos(config->policy, config->floor);
  *d->freeze_i = *d->flush_i = *d->halt_i = *d->abandon_i = *d->seal_i = 0;
  *d->valid_i = *d->busy_i = *d->stay_i = 0;
  *d->awready_i = *d->wready_i = *d->bvalid_i = 0;
  b->first_beat = UINT64_MAX;
  d->reset(d->dut, 2);
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

static unsigned dropped(const bench *b) {
  return *b->p.flush_i | *b->p.halt_i;
}

static unsigned bit_of(int ctx) {
  return 1u << ctx;
}

/* ---- Driver -------------------------------------------------------------------------------- */

static void make_offer(bench *b, int p) {
  struct burst *o = &b->offer[p];
  const unsigned at = (unsigned)p;
  o->port = p;
  o->beats = b->config.beats ? b->config.beats : 1 + ct_rng_below(&b->rng, 17);
  o->addr = ct_rng_below(&b->rng, kUnits / 256) * 256 + ct_rng_below(&b->rng, 257 - o->beats);
  o->at = ct_rng_below(&b->rng, 1u << kAtW);
  o->tag = ct_rng_below(&b->rng, 1u << kTagW);
  o->end_tag = ct_rng_below(&b->rng, 1u << kEndW);
  b->offered[p] = true;
  if (b->config.trouble && ct_rng_percent(&b->rng, 8))
    ct_axi_mem_fault(b->mem, CT_FAULT_AXI_WRITE,
                     (uint64_t)kBeat * (o->addr + ct_rng_below(&b->rng, o->beats)));
  ct_tb_put(b->p.addr_i, 32 * at, 32, o->addr);
  ct_tb_put(b->p.beats_i, 5 * at, 5, o->beats);
  ct_tb_put(b->p.at_i, kAtW * at, kAtW, o->at);
  ct_tb_put(b->p.tag_i, kTagW * at, kTagW, o->tag);
  ct_tb_put(b->p.end_tag_i, kEndW * at, kEndW, o->end_tag);
}

static void drive_port(bench *b, int p) {
  const bool stalled = ct_stall_next(&b->stall[p]), gone = dropped(b) >> p % kCtx & 1,
             sealed = *b->p.seal_i >> p % kCtx & 1;
  if (gone) b->offered[p] = false;
  if (!b->offered[p] && !gone && !sealed && !stalled && !(b->held >> p & 1)) make_offer(b, p);
  ct_tb_put(b->p.valid_i, (unsigned)p, 1, b->offered[p]);
  ct_tb_put(b->p.busy_i, (unsigned)p, 1, ct_rng_percent(&b->rng, 10));
  ct_tb_put(b->p.stay_i, (unsigned)p, 1, ct_rng_percent(&b->rng, b->config.stay));
}

static bool asks(const bench *b, int c) {
  for (int p = c; p < kCtx * b->config.clients; p += kCtx)
    if (b->offered[p]) return true;
  return false;
}

/* An error of a context as ct_dma has it: it is halted, then flushed until nothing of it is left;
 * at times its bursts are abandoned. Of a context that asks nothing the bursts are sealed at times.
 */
static void drive_flush(bench *b, int c) {
  struct ring *r = &b->ring[c];
  bool abandoned = false;
  if (!r->flushing && !r->halting && trouble(b, 5)) r->halting = 1 + ct_rng_below(&b->rng, 30);
  if (r->halting && --r->halting == 0) {
    r->flushing = 1 + ct_rng_below(&b->rng, 40);
    ++b->flushed;
  }
  if (r->flushing > 1) {
    --r->flushing;
    abandoned = r->abandon || ct_rng_percent(&b->rng, 4);
    r->abandon = false;
  } else if (r->flushing && r->put == r->end) {
    r->flushing = 0;
  }
  ct_tb_put(b->p.abandon_i, (unsigned)c, 1, abandoned);
  ct_tb_put(b->p.halt_i, (unsigned)c, 1, r->halting > 0);
  ct_tb_put(b->p.flush_i, (unsigned)c, 1, r->flushing > 0);
  const bool seal = !asks(b, c) && !(dropped(b) >> c & 1) && (int)(r->mark - r->end) <= 0 &&
                    b->config.trouble && ct_rng_percent(&b->rng, 5);
  ct_tb_put(b->p.seal_i, (unsigned)c, 1, seal);
  b->sealed += seal && r->put != r->end;
}

static void drive_memory(bench *b) {
  const wr_ports *p = &b->p;
  b->b_last = b->b;
  b->in.awvalid = *p->awvalid_o;
  b->in.awid = *p->awid_o;
  b->in.awaddr = *p->awaddr_o;
  b->in.awlen = *p->awlen_o;
  b->in.awsize = 4;
  b->in.awburst = 1;
  b->in.wvalid = *p->wvalid_o;
  b->in.wlast = *p->wlast_o;
  b->in.wstrb = 0xFFFF;
  memcpy(b->in.wdata, p->wdata_o, kBeat);
  b->in.bready = true;
  ct_axi_mem_cycle(b->mem, &b->in, &b->b);
  *p->awready_i = b->b.awready;
  *p->wready_i = b->b.wready;
  *p->bvalid_i = b->b.bvalid;
  *p->bid_i = b->b.bid;
  *p->bresp_i = b->b.bresp;
}

/* ---- Model: AW and W ----------------------------------------------------------------------- */

static bool out_moves(const bench *b) {
  return !b->out.valid || b->b.wready;
}

/* A beat is asked for in this cycle, and it is the last of its burst. */
static bool steps(const bench *b) {
  return b->job && (!b->asked.valid || out_moves(b));
}

static bool ends_job(const bench *b) {
  return steps(b) && b->jobs[0].beats == 1;
}

/* AW and W offer what was granted, in that order, each until it is taken. */
static void check_bus(bench *b) {
  const wr_ports *p = &b->p;
  assert_int_equal(b->in.awvalid, b->aw);
  if (b->aw) {
    assert_int_equal(b->in.awid, b->aw_burst.port % kCtx);
    assert_int_equal(b->in.awaddr, (uint64_t)kBeat * b->aw_burst.addr);
    assert_int_equal(b->in.awlen, b->aw_burst.beats - 1);
  }
  assert_int_equal(b->in.wvalid, b->out.valid);
  if (b->out.valid) {
    ct_assert_same("data of a beat", p->wdata_o, b->out.data, kBeat);
    assert_int_equal(b->in.wlast, b->out.last);
  }
}

/* The client whose burst it is, and no other, is asked for the next beat. */
static void check_beat(bench *b) {
  const wr_ports *p = &b->p;
  const unsigned beat = steps(b) ? 1u << b->jobs[0].port : 0;
  assert_int_equal(*p->beat_o, beat);
  if (beat) {
    assert_int_equal(*p->beat_at_o, b->jobs[0].at % (1u << kAtW));
    assert_int_equal(*p->beat_tag_o, b->jobs[0].tag);
    assert_int_equal(*p->beat_last_o, b->jobs[0].beats == 1);
  }
  assert_int_equal(*p->within_o,
                   (b->job ? 1u << b->jobs[0].port : 0) | (b->next ? 1u << b->jobs[1].port : 0));
  b->beating = beat ? bit_of(b->jobs[0].port % kCtx) : 0;
}

/* The edge: the output takes the beat asked for before, whose data the client drives now. */
static void move_beats(bench *b) {
  if (b->out.valid && b->b.wready) {
    b->last_beat = b->now;
    if (b->first_beat == UINT64_MAX) b->first_beat = b->now;
  }
  const bool step = steps(b), moves = out_moves(b), end = ends_job(b);
  if (moves) {
    b->out = b->asked;
    b->asked.valid = false;
  }
  if (!step) return;
  struct burst *j = &b->jobs[0];
  b->asked.valid = true;
  b->asked.last = end;
  b->asked.ctx = j->port % kCtx;
  ct_rng_fill(&b->rng, b->asked.data, kBeat);
  ++b->beats[j->port];
  ++j->at;
  --j->beats;
  if (!end) return;
  b->job = b->next;
  b->jobs[0] = b->jobs[1];
  b->next = false;
}

/* After the edge: the client's data, those of the others are what they were. */
static void drive_data(bench *b, unsigned beat) {
  if (!beat) return;
  const int client = __builtin_ctz(beat) / kCtx;
  memcpy((uint8_t *)b->p.data_i + (size_t)kBeat * client, b->asked.data, kBeat);
}

/* ---- Model: who is granted ----------------------------------------------------------------- */

static bool wants(const bench *b, int c) {
  return asks(b, c) && !*b->p.freeze_i && b->ring[c].room;
}

/* Of a context the first client that asks. A grant comes exactly when one may: AW is free, and at
 * most two beats of the burst at hand are left and none behind it. */
static int check_grant(bench *b) {
  const unsigned ready = *b->p.ready_o, want = wants(b, 0) | (unsigned)wants(b, 1) << 1;
  const bool may = !b->aw && !b->next && (!b->job || b->jobs[0].beats <= 2);
  assert_int_equal(ready & (ready - 1), 0);
  assert_int_equal(ready != 0, may && want != 0);
  if (!ready) return -1;
  const int port = __builtin_ctz(ready), c = port % kCtx;
  for (int p = c; p < port; p += kCtx)
    assert_false(b->offered[p]);
  assert_true(b->offered[port] && want >> c & 1);
  if (b->config.policy == kPriority && !b->config.floor && want & 1) assert_int_equal(c, 0);
  return port;
}

/* PRIORITY, floor 0: the beats that pass while a burst of inference waits. */
static void check_wait(bench *b, int port) {
  if (b->config.policy != kPriority || b->config.floor || !wants(b, 0) || port % kCtx == 0)
    b->wait = 0;
  else if (b->out.valid && b->b.wready)
    ++b->wait;
  if (port >= 0 && port % kCtx == 0) b->wait = 0;
  if (b->wait > b->waits) b->waits = b->wait;
  assert_true(b->wait <= kWaitBound);
}

/* Of this cycle, for the next. */
static void look_for_room(bench *b, bool *room) {
  for (int c = 0; c < kCtx; ++c) {
    const struct ring *r = &b->ring[c];
    room[c] = r->put - r->end + r->lost < kRing;
    b->full += !room[c] && r->lost && asks(b, c);
  }
}

static void take_grant(bench *b, int port) {
  if (b->b.awready) b->aw = false;
  if (port < 0) return;
  const int c = port % kCtx;
  struct ring *r = &b->ring[c];
  r->burst[r->put++ % (2 * kRing)] = b->offer[port];
  b->aw = true;
  b->aw_burst = b->offer[port];
  b->jobs[b->job] = b->offer[port];
  b->next = b->job;
  b->job = true;
  b->offered[port] = false;
  ++b->grants[port];
}

/* ---- Model: answers and ends --------------------------------------------------------------- */

/* The oldest burst of a context that is not answered is of the job before. */
static bool is_old(const bench *b, int c) {
  const struct ring *r = &b->ring[c];
  return *b->p.seal_i >> c & 1 || (int)(r->mark - r->ans) > 0;
}

/* An error answer to burst e: a fault of its client, or told apart a cycle later if it is of the
 * job before. Returns the fault. */
static unsigned take_error(bench *b, const struct burst *e, bool old) {
  const int c = e->port % kCtx;
  if (old) {
    b->old_err = bit_of(c);
    b->old_err_addr = e->addr;
    ++b->old_faults;
    return 0;
  }
  if (dropped(b) >> c & 1) return 0;
  ++b->faults;
  assert_int_equal(*b->p.fault_addr_o, e->addr);
  return 1u << e->port;
}

/* An answer is heard a cycle after it came. Returns the context whose oldest burst was answered
 * without an error, in this job, or -1. */
static int check_answer(bench *b) {
  const wr_ports *p = &b->p;
  unsigned fault = 0;
  int good = -1;
  assert_int_equal(*p->old_err_o, b->old_err);
  if (b->old_err) assert_int_equal(*p->old_err_addr_o, b->old_err_addr);
  b->old_err = 0;
  const int c = b->b_last.bid;
  struct ring *r = &b->ring[c];
  if (b->b_last.bvalid && r->lost) {
    --r->lost;
    ++b->lost;
  } else if (b->b_last.bvalid) {
    assert_true(r->ans != r->put);
    const bool old = is_old(b, c);
    if (b->b_last.bresp & 2)
      fault = take_error(b, &r->burst[r->ans % (2 * kRing)], old);
    else if (!old)
      good = c;
    ++r->ans;
  }
  assert_int_equal(*p->fault_o, fault);
  return good;
}

/* Ends: of each context that of the oldest burst that was answered before, or now and well. */
static void check_ends(bench *b, const unsigned *answered, int good) {
  unsigned ends = 0;
  b->answered = 0;
  for (int c = 0; c < kCtx; ++c) {
    struct ring *r = &b->ring[c];
    if (answered[c] == r->end && good != c) continue;
    const struct burst *e = &r->burst[r->end % (2 * kRing)];
    ends |= 1u << e->port;
    assert_int_equal(*b->p.end_tag_o >> (kEndW * c) & ((1u << kEndW) - 1), e->end_tag);
    if (*b->p.stay_i >> e->port & 1) continue;
    b->answered |= bit_of(c);
    ++r->end;
    ++b->ends[e->port];
  }
  assert_int_equal(*b->p.end_o, ends);
}

static void abandon(bench *b, int c) {
  struct ring *r = &b->ring[c];
  if (*b->p.abandon_i >> c & 1) {
    r->lost += r->put - r->ans;
    r->end = r->ans = r->mark = r->put;
  } else if (*b->p.seal_i >> c & 1) {
    r->mark = r->put;
  }
  const unsigned held = r->put - r->end + r->lost;
  assert_true(held <= kRing);
  if (held > b->most[c]) b->most[c] = held;
}

/* ---- Model: what is said of clients and contexts ------------------------------------------- */

static void check_idle(bench *b) {
  unsigned busy = 0, old = 0;
  for (int c = 0; c < kCtx; ++c) {
    const struct ring *r = &b->ring[c];
    for (unsigned i = r->end; i != r->put; ++i)
      busy |= 1u << r->burst[i % (2 * kRing)].port;
    if ((int)(r->mark - r->end) > 0) old |= bit_of(c);
  }
  assert_int_equal(*b->p.idle_o, ~busy & ((1u << kCtx * b->config.clients) - 1));
  assert_int_equal(*b->p.old_o, old);
}

static bool has_work(const bench *b, int c) {
  bool busy = b->ring[c].put != b->ring[c].ans;
  for (int p = c; p < kCtx * b->config.clients; p += kCtx)
    busy |= *b->p.busy_i >> p & 1;
  return busy;
}

/* Each cycle of a context is a beat, a wait for the other's, a wait for the memory, or still. */
static void check_still(bench *b) {
  assert_int_equal(*b->p.ev_beats_o, b->ev[0]);
  assert_int_equal(*b->p.ev_wait_arb_o, b->ev[1]);
  assert_int_equal(*b->p.ev_wait_mem_o, b->ev[2]);
  const int sent = b->out.valid && b->b.wready ? b->out.ctx : -1;
  unsigned still = 0;
  memset(b->ev, 0, sizeof b->ev);
  for (int c = 0; c < kCtx; ++c) {
    const bool pending = asks(b, c) || (b->job && b->jobs[0].port % kCtx == c) ||
                         (b->next && b->jobs[1].port % kCtx == c) ||
                         (b->asked.valid && b->asked.ctx == c) || (b->out.valid && b->out.ctx == c);
    if (sent == c)
      b->ev[0] |= bit_of(c);
    else if (sent >= 0 && pending)
      b->ev[1] |= bit_of(c);
    else if (pending || has_work(b, c))
      b->ev[2] |= bit_of(c);
    else
      still |= bit_of(c);
  }
  assert_int_equal(*b->p.still_o, still);
}

static void check_probe(const bench *b, int port) {
  const unsigned granted = port < 0 ? 0 : bit_of(port % kCtx);
  assert_int_equal(*b->p.probe_o, b->answered << 8 | (ends_job(b) ? b->beating : 0) << 6 |
                                      b->beating << 4 | granted << 2 | wants(b, 0) |
                                      (unsigned)wants(b, 1) << 1);
}

static void cycle(bench *b) {
  for (int c = 0; c < kCtx; ++c)
    drive_flush(b, c);
  for (int p = 0; p < kCtx * b->config.clients; ++p)
    drive_port(b, p);
  drive_memory(b);
  b->p.eval(b->p.dut);
  check_bus(b);
  check_beat(b);
  check_idle(b);
  check_still(b);
  const int port = check_grant(b);
  check_wait(b, port);
  bool room[kCtx];
  look_for_room(b, room);
  const unsigned answered[kCtx] = {b->ring[0].ans, b->ring[1].ans};
  check_ends(b, answered, check_answer(b));
  check_probe(b, port);
  const unsigned beat = *b->p.beat_o;
  move_beats(b);
  take_grant(b, port);
  for (int c = 0; c < kCtx; ++c) {
    abandon(b, c);
    b->ring[c].room = room[c];
  }
  b->p.tick(b->p.dut);
  drive_data(b, beat);
  ++b->now;
}

static void cycles(bench *b, unsigned n) {
  while (n--)
    cycle(b);
}

/* ---- Tests --------------------------------------------------------------------------------- */

struct totals {
  uint64_t faults, old_faults, lost, flushed, sealed, waits, ends[kMostPorts];
};

static void random_run(const struct wr_config *config, struct totals *t) {
  bench *b = open_bench(config);
  for (int i = 0; i < 6; ++i) {
    *b->p.freeze_i = i == 2;
    cycles(b, i == 2 ? 200 : 1000);
  }
  for (int p = 0; p < kCtx * config->clients; ++p)
    t->ends[p] += b->ends[p];
  t->faults += b->faults;
  t->old_faults += b->old_faults;
  t->lost += b->lost;
  t->flushed += b->flushed;
  t->sealed += b->sealed;
  if (b->waits > t->waits) t->waits = b->waits;
  close_bench(b);
}

static void random_traffic(void **state) {
  (void)state;
  static const unsigned policies[] = {kPriority, kPriority, kFcfs, kRoundRobin, kJob};
  static const unsigned stalls[] = {0, 50, 75, 92};
  for (int n = 1; n <= kVariants; ++n) {
    struct totals t = {0};
    for (unsigned i = 0; i < 15; ++i) {
      const struct wr_config config = {.clients = n,
                                       .policy = policies[i % 5],
                                       .floor = i % 5 == 1 ? 64 : 0,
                                       .latency = i % 2 ? 40 : 3,
                                       .mem_stall = 30 * (i % 3),
                                       .write_bytes = i % 4 == 3 ? 8 : 16,
                                       .offer_stall = stalls[i % 4],
                                       .stay = i % 3 * 20,
                                       .trouble = i % 3 ? 5 * (i % 4) : 0};
      random_run(&config, &t);
    }
    print_message(
        "%d clients: %u errors, %u of the job before, %u lost, %u flushes, %u seals, waits of %u "
        "beats\n",
        n, (unsigned)t.faults, (unsigned)t.old_faults, (unsigned)t.lost, (unsigned)t.flushed,
        (unsigned)t.sealed, (unsigned)t.waits);
    for (int p = 0; p < kCtx * n; ++p)
      assert_true(t.ends[p] > 20);
    assert_true(t.faults > 20 && t.old_faults > 5 && t.lost > 10 && t.flushed > 20 &&
                t.sealed > 20);
    assert_true(t.waits > 8);
  }
}

/* Clients that ask in every cycle, of both contexts: the first has the port until it stops. */
static void first_client_first(void **state) {
  (void)state;
  const struct wr_config config = {.clients = 3, .policy = kRoundRobin, .latency = 10, .beats = 4};
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

/* Whichever client asks: a beat in every cycle, of bursts of two beats, too. */
static void bursts_fill_the_bus(void **state) {
  (void)state;
  static const uint32_t beats[] = {2, 3, 16, 17};
  for (int n = 1; n <= kVariants; ++n) {
    for (unsigned i = 0; i < sizeof beats / sizeof *beats; ++i) {
      const struct wr_config config = {
          .clients = n, .policy = kRoundRobin, .latency = 20, .beats = beats[i]};
      bench *b = open_bench(&config);
      cycles(b, 1500);
      const uint64_t sent = ct_axi_mem_stats(b->mem)->write_beats;
      assert_int_equal(sent, b->last_beat - b->first_beat + 1);
      assert_true(sent > 1480);
      close_bench(b);
    }
  }
}

/* A run in which client k of inference and all of training ask in every cycle. */
static bench *compete(int n, int k, unsigned policy, unsigned floor, unsigned cycles_run) {
  const struct wr_config config = {
      .clients = n, .policy = policy, .floor = floor, .latency = 20, .beats = 8};
  bench *b = open_bench(&config);
  b->held = 0x15 & ~(1u << kCtx * k);
  cycles(b, cycles_run);
  return b;
}

/* Each client of inference alone keeps all clients of training away while it writes (PRIORITY); in
 * turns the contexts share; with a floor training has its share. */
static void contexts_by_policy(void **state) {
  (void)state;
  for (int n = 1; n <= kVariants; ++n) {
    for (int k = 0; k < n; ++k) {
      bench *b = compete(n, k, kPriority, 0, 2000);
      assert_true(b->grants[kCtx * k] > 200);
      assert_int_equal(b->grants[1] + b->grants[3] + b->grants[5], 0);
      b->held = 0x15;
      cycles(b, 400);
      assert_true(b->grants[1] > 20);
      close_bench(b);

      b = compete(n, k, kRoundRobin, 0, 4000);
      const uint64_t inf = b->grants[kCtx * k], trn = b->grants[1];
      assert_true(inf > 200 && inf <= trn + 1 && trn <= inf + 1);
      close_bench(b);

      b = compete(n, k, kPriority, 64, 8000);
      const uint64_t all = b->grants[kCtx * k] + b->grants[1];
      assert_true(all > 400 && 4 * b->grants[1] + 8 >= all && 4 * b->grants[1] <= all + 8);
      close_bench(b);
    }
  }
}

/* All clients of a context together have 16 bursts outstanding, and all of them do. */
static void ring_is_the_cap(void **state) {
  (void)state;
  for (int n = 1; n <= kVariants; ++n) {
    const struct wr_config config = {
        .clients = n, .policy = kRoundRobin, .latency = 200, .offer_stall = 20, .beats = 2};
    bench *b = open_bench(&config);
    cycles(b, 3000);
    assert_int_equal(b->most[0], kRing);
    assert_int_equal(b->most[1], kRing);
    close_bench(b);
  }
}

/* Nothing is granted when frozen; what was granted is written and answered. */
static void frozen(void **state) {
  (void)state;
  const struct wr_config config = {.clients = 3, .policy = kFcfs, .latency = 5, .mem_stall = 20};
  bench *b = open_bench(&config);
  for (int i = 0; i < 40; ++i) {
    *b->p.freeze_i = i % 2;
    cycles(b, 300);
    if (i % 2) {
      assert_int_equal(*b->p.idle_o, 0x3f);
      assert_int_equal(ct_axi_mem_pending(b->mem, 0) + ct_axi_mem_pending(b->mem, 1), 0);
    }
  }
  close_bench(b);
}

/* A full ring of context c is abandoned: the context writes nothing more until answers of the lost
 * bursts come, and then one burst for each. again: it is abandoned in each cycle until then. */
static void lose_a_ring(int clients, int c, bool again) {
  const struct wr_config config = {
      .clients = clients, .policy = kRoundRobin, .latency = 400, .beats = 2};
  bench *b = open_bench(&config);
  struct ring *r = &b->ring[c];
  cycles(b, 200);
  assert_int_equal(r->put - r->ans, kRing);
  const unsigned put = r->put;
  r->flushing = 2;
  r->abandon = true;
  cycle(b);
  assert_int_equal(r->lost, kRing);
  cycles(b, 150);
  assert_int_equal(r->put, put);
  assert_true(b->full > 100);
  CT_TB_WHILE (r->lost, 400) {
    if (again) r->flushing = 2;
    r->abandon = again;
    cycle(b);
    assert_true(r->put - put <= kRing - r->lost);
  }
  cycles(b, 100);
  assert_int_equal(r->put - put, kRing);
  assert_int_equal(b->lost, kRing);
  close_bench(b);
}

static void lost_bursts_keep_their_places(void **state) {
  (void)state;
  for (int n = 1; n <= kVariants; ++n) {
    for (int c = 0; c < kCtx; ++c) {
      lose_a_ring(n, c, false);
      lose_a_ring(n, c, true);
    }
  }
}

/* The same when some are answered, and their ends not taken: only the others are lost. */
static void answered_bursts_are_not_lost(void **state) {
  (void)state;
  for (int n = 1; n <= kVariants; ++n) {
    for (int c = 0; c < kCtx; ++c) {
      const struct wr_config config = {
          .clients = n, .policy = kRoundRobin, .latency = 400, .beats = 2, .stay = 100};
      bench *b = open_bench(&config);
      struct ring *r = &b->ring[c];
      CT_TB_WHILE (r->ans - r->end < 5, 1000)
        cycle(b);
      const unsigned put = r->put, owed = r->put - r->ans;
      assert_true(owed > 4 && r->put - r->end == kRing);
      b->config.stay = 0;
      r->flushing = 2;
      r->abandon = true;
      cycle(b);
      assert_in_range(r->lost, owed - 1, owed); /* an answer may come in this cycle */
      CT_TB_WHILE (r->lost, 400)
        cycle(b);
      cycles(b, 300);
      assert_true(r->put - put >= kRing);
      close_bench(b);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_traffic),
      cmocka_unit_test(first_client_first),
      cmocka_unit_test(bursts_fill_the_bus),
      cmocka_unit_test(contexts_by_policy),
      cmocka_unit_test(ring_is_the_cap),
      cmocka_unit_test(frozen),
      cmocka_unit_test(lost_bursts_keep_their_places),
      cmocka_unit_test(answered_bursts_are_not_lost),
  };
  return cmocka_run_group_tests_name("ct_dma_wr", tests, NULL, NULL);
}
