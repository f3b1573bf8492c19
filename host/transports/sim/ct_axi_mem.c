/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE 1 /* ct_memory.h */
#include "host/transports/sim/ct_axi_mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/transports/ct_memory.h"

enum {
  kIds = 2,
  kQueue = 32,     /* bursts of an ID and direction under way; a power of two */
  kSlots = 64,     /* write bursts under way, both IDs: bits of a uint64_t */
  kMaxBeats = 256, /* what AXI can ask for */
  kBeat = 16,      /* bytes */
  kFaults = 8,
  kFrac = 256 /* bandwidth is counted in 1/256 cycle */
};
enum { kOkay = 0, kSlverr = 2, kDecerr = 3 };
static const uint64_t kNever = UINT64_MAX;

/* A read burst, or a write burst that awaits its answer. */
struct burst {
  uint64_t addr;
  uint64_t ready; /* first cycle in which it may be answered; kNever while it hangs */
  uint64_t seq;   /* order of arrival over both IDs */
  uint32_t beats, next;
  uint32_t slot; /* of a write */
  uint32_t bad;  /* the beat that a fault hits, of a read with kSlverr */
  uint8_t resp;
};

struct queue {
  struct burst burst[kQueue];
  uint32_t head, tail; /* free running */
};

/* A write burst between AW and B: its bytes are held back until then. */
struct write_slot {
  uint64_t addr;
  uint32_t beats, next;
  uint8_t id, resp;
  bool hangs;
  uint16_t strobe[kMaxBeats];
  uint8_t data[kMaxBeats][kBeat];
};

struct ct_axi_mem {
  struct ct_axi_mem_config config;
  uint8_t *data;
  uint64_t now, seq, rng;
  bool quiet;              /* nothing under way and idle outputs driven */
  uint64_t r_free, w_free; /* when the data buses are free again, in 1/kFrac cycle */
  uint64_t r_cost, w_cost;

  struct queue reads[kIds], answers[kIds];
  uint64_t slots_used;
  uint32_t order[kSlots]; /* slots in the order of their AW, waiting for data */
  uint32_t order_head, order_tail;
  uint32_t writes[kIds]; /* between AW and B */
  struct write_slot *slots;

  struct ct_axi_out out;
  struct ct_axi_in held; /* last cycle's inputs, where a channel was refused */
  bool ar_held, aw_held, w_held;
  bool refuses; /* something in this cycle, by a stall */

  struct {
    enum ct_fault kind;
    uint64_t addr;
  } faults[kFaults];
  uint32_t nfaults;
  uint64_t hit; /* address of the last fault that covered a burst */
  struct ct_axi_mem_stats stats;
  char error[160];
};

static uint32_t queued(const struct queue *q) {
  return q->tail - q->head;
}

static struct burst *front(struct queue *q) {
  return &q->burst[q->head % kQueue];
}

static bool stalled(ct_axi_mem *m) {
  if (m->config.stall_percent == 0) return false;
  m->rng ^= m->rng << 13;
  m->rng ^= m->rng >> 7;
  m->rng ^= m->rng << 17;
  return (uint32_t)(((m->rng >> 32) * 100) >> 32) < m->config.stall_percent;
}

/* Only the first violation is kept: what follows is mostly its consequence. */
static void violation(ct_axi_mem *m, const char *format, ...) {
  if (m->error[0]) return;
  va_list args;
  va_start(args, format);
  const int n = snprintf(m->error, sizeof m->error, "cycle %" PRIu64 ": ", m->now);
  vsnprintf(m->error + n, sizeof m->error - (size_t)n, format, args);
  va_end(args);
}

static uint32_t or_default(uint32_t value, uint32_t otherwise) {
  return value ? value : otherwise;
}

ct_axi_mem *ct_axi_mem_new(const struct ct_axi_mem_config *config) {
  ct_axi_mem *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->config = *config;
  struct ct_axi_mem_config *c = &m->config;
  c->latency = or_default(c->latency, 60);
  c->read_bytes = or_default(c->read_bytes, kBeat);
  c->write_bytes = or_default(c->write_bytes, kBeat);
  c->max_beats = or_default(c->max_beats, 17);
  c->max_reads = or_default(c->max_reads, 8);
  c->max_writes = or_default(c->max_writes, 16);
  m->r_cost = (uint64_t)kFrac * kBeat / c->read_bytes;
  m->w_cost = (uint64_t)kFrac * kBeat / c->write_bytes;
  m->rng = c->seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
  m->data = ct_memory_new(c->bytes);
  m->slots = calloc(kSlots, sizeof *m->slots);
  if (!m->data || !m->slots) {
    ct_axi_mem_free(m);
    return NULL;
  }
  return m;
}

void ct_axi_mem_free(ct_axi_mem *m) {
  if (!m) return;
  free(m->slots);
  ct_memory_free(m->data, m->config.bytes);
  free(m);
}

uint8_t *ct_axi_mem_data(ct_axi_mem *m) {
  return m->data;
}

size_t ct_axi_mem_size(const ct_axi_mem *m) {
  return m->config.bytes;
}

uint64_t ct_axi_mem_now(const ct_axi_mem *m) {
  return m->now;
}

unsigned ct_axi_mem_pending(const ct_axi_mem *m, unsigned id) {
  return id < kIds ? queued(&m->reads[id]) + m->writes[id] : 0;
}

bool ct_axi_mem_refuses(const ct_axi_mem *m) {
  return m->refuses;
}

const struct ct_axi_mem_stats *ct_axi_mem_stats(const ct_axi_mem *m) {
  return &m->stats;
}

const char *ct_axi_mem_error(const ct_axi_mem *m) {
  return m->error[0] ? m->error : NULL;
}

void ct_axi_mem_reset(ct_axi_mem *m, struct ct_axi_out *out) {
  for (int id = 0; id < kIds; ++id) {
    m->reads[id].head = m->reads[id].tail;
    m->answers[id].head = m->answers[id].tail;
    m->writes[id] = 0;
  }
  m->slots_used = 0;
  m->order_head = m->order_tail;
  m->ar_held = m->aw_held = m->w_held = false;
  m->quiet = false;
  memset(&m->out, 0, sizeof m->out);
  *out = m->out;
}

bool ct_axi_mem_fault(ct_axi_mem *m, enum ct_fault kind, uint64_t addr) {
  if (kind == CT_FAULT_NONE) {
    m->nfaults = 0;
    for (int id = 0; id < kIds; ++id) {
      for (uint32_t i = m->reads[id].head; i != m->reads[id].tail; ++i) {
        struct burst *b = &m->reads[id].burst[i % kQueue];
        if (b->ready == kNever) b->ready = m->now + m->config.latency;
      }
      for (uint32_t i = m->answers[id].head; i != m->answers[id].tail; ++i) {
        struct burst *b = &m->answers[id].burst[i % kQueue];
        if (b->ready == kNever) b->ready = m->now + m->config.latency;
      }
    }
    for (int s = 0; s < kSlots; ++s)
      m->slots[s].hangs = false;
    return true;
  }
  if (m->nfaults == kFaults) return false;
  m->faults[m->nfaults].kind = kind;
  m->faults[m->nfaults].addr = addr;
  ++m->nfaults;
  return true;
}

/* Whether a fault of that kind covers the burst (at hit); read and write faults are used up by it.
 */
static bool faulty(ct_axi_mem *m, enum ct_fault kind, uint64_t addr, uint32_t beats) {
  for (uint32_t i = 0; i < m->nfaults; ++i) {
    if (m->faults[i].kind != kind || m->faults[i].addr < addr ||
        m->faults[i].addr >= addr + (uint64_t)beats * kBeat)
      continue;
    m->hit = m->faults[i].addr;
    if (kind != CT_FAULT_AXI_HANG) m->faults[i] = m->faults[--m->nfaults];
    return true;
  }
  return false;
}

static uint8_t response(ct_axi_mem *m, enum ct_fault kind, uint64_t addr, uint32_t beats) {
  const uint64_t size = (uint64_t)beats * kBeat;
  if (faulty(m, kind, addr, beats)) return kSlverr;
  return size > m->config.bytes || addr > m->config.bytes - size ? kDecerr : kOkay;
}

/* The rules of an address channel that need no memory of the past. */
static void check_address(ct_axi_mem *m, const char *channel, unsigned id, uint64_t addr,
                          uint32_t beats, unsigned size, unsigned burst) {
  if (id >= kIds) violation(m, "%s: ID %u", channel, id);
  if (size != 4) violation(m, "%s: size %u, not 4", channel, size);
  if (burst != 1) violation(m, "%s: burst type %u, not INCR", channel, burst);
  if (addr % kBeat != 0) violation(m, "%s: address 0x%" PRIx64 " not aligned", channel, addr);
  if (beats > m->config.max_beats) violation(m, "%s: %u beats", channel, beats);
  if (addr / 4096 != (addr + (uint64_t)beats * kBeat - 1) / 4096)
    violation(m, "%s: 0x%" PRIx64 " and %u beats cross 4 KB", channel, addr, beats);
}

/* What was offered and refused in the last cycle must be offered unchanged in this one. */
static void check_held(ct_axi_mem *m, const struct ct_axi_in *in) {
  const struct ct_axi_in *h = &m->held;
  if (m->ar_held &&
      !(in->arvalid && in->araddr == h->araddr && in->arid == h->arid && in->arlen == h->arlen &&
        in->arsize == h->arsize && in->arburst == h->arburst))
    violation(m, "AR changed before it was taken");
  if (m->aw_held &&
      !(in->awvalid && in->awaddr == h->awaddr && in->awid == h->awid && in->awlen == h->awlen &&
        in->awsize == h->awsize && in->awburst == h->awburst))
    violation(m, "AW changed before it was taken");
  if (m->w_held && !(in->wvalid && in->wlast == h->wlast && in->wstrb == h->wstrb &&
                     memcmp(in->wdata, h->wdata, sizeof in->wdata) == 0))
    violation(m, "W changed before it was taken");
}

static void take_read(ct_axi_mem *m, const struct ct_axi_in *in) {
  const uint32_t beats = in->arlen + 1u;
  check_address(m, "AR", in->arid, in->araddr, beats, in->arsize, in->arburst);
  struct queue *q = &m->reads[in->arid % kIds];
  if (queued(q) >= m->config.max_reads) violation(m, "AR: too many reads of ID %u", in->arid);
  struct burst *b = &q->burst[q->tail++ % kQueue];
  b->addr = in->araddr;
  b->beats = beats;
  b->next = 0;
  b->seq = m->seq++;
  const bool hangs = faulty(m, CT_FAULT_AXI_HANG, in->araddr, beats);
  b->ready = hangs ? kNever : m->now + m->config.latency;
  b->resp = response(m, CT_FAULT_AXI_READ, in->araddr, beats);
  if (b->resp == kSlverr) b->bad = (uint32_t)((m->hit - b->addr) / kBeat);
  ++m->stats.reads;
}

static void take_write(ct_axi_mem *m, const struct ct_axi_in *in) {
  const uint32_t beats = in->awlen + 1u;
  check_address(m, "AW", in->awid, in->awaddr, beats, in->awsize, in->awburst);
  const unsigned id = in->awid % kIds;
  if (m->writes[id] >= m->config.max_writes) violation(m, "AW: too many writes of ID %u", id);
  uint32_t s = 0;
  while ((m->slots_used >> s) & 1)
    ++s;
  m->slots_used |= UINT64_C(1) << s;
  m->order[m->order_tail++ % kSlots] = s;
  ++m->writes[id];
  struct write_slot *w = &m->slots[s];
  w->addr = in->awaddr;
  w->beats = beats;
  w->next = 0;
  w->id = (uint8_t)id;
  w->hangs = faulty(m, CT_FAULT_AXI_HANG, in->awaddr, beats);
  w->resp = response(m, CT_FAULT_AXI_WRITE, in->awaddr, beats);
  ++m->stats.writes;
}

static void take_data(ct_axi_mem *m, const struct ct_axi_in *in) {
  const uint32_t s = m->order[m->order_head % kSlots];
  struct write_slot *w = &m->slots[s];
  memcpy(w->data[w->next], in->wdata, kBeat);
  w->strobe[w->next] = in->wstrb;
  const bool last = ++w->next == w->beats;
  if (in->wlast != last) violation(m, "W: WLAST %d in beat %u of %u", in->wlast, w->next, w->beats);
  const uint64_t now = m->now * kFrac;
  m->w_free = (m->w_free > now ? m->w_free : now) + m->w_cost;
  ++m->stats.write_beats;
  if (!last) return;
  ++m->order_head;
  struct queue *q = &m->answers[w->id];
  struct burst *b = &q->burst[q->tail++ % kQueue];
  b->seq = m->seq++;
  b->slot = s;
  b->resp = w->resp;
  b->ready = w->hangs ? kNever : m->now + m->config.latency;
}

/* Whether the oldest burst of a queue can be answered. */
static bool due(const ct_axi_mem *m, struct queue *q) {
  return queued(q) > 0 && front(q)->ready <= m->now;
}

/* Chooses which ID is answered next: the burst that came first, or any when stalls are on. */
static struct queue *choose(ct_axi_mem *m, struct queue *queues, uint8_t *id) {
  const bool can[kIds] = {due(m, &queues[0]), due(m, &queues[1])};
  if (!can[0] && !can[1]) return NULL;
  unsigned pick = can[0] ? 0 : 1;
  if (can[0] && can[1]) {
    pick = front(&queues[1])->seq < front(&queues[0])->seq;
    if (m->config.stall_percent) pick = (m->rng >> 40) & 1;
  }
  *id = (uint8_t)pick;
  return &queues[pick];
}

/* A beat once offered stays until it is taken. */
static void offer_read(ct_axi_mem *m) {
  if (m->out.rvalid || m->r_free >= (m->now + 1) * kFrac) return;
  if (stalled(m)) {
    m->refuses |= due(m, &m->reads[0]) || due(m, &m->reads[1]);
    return;
  }
  struct queue *q = choose(m, m->reads, &m->out.rid);
  if (!q) return;
  const struct burst *b = front(q);
  m->out.rvalid = true;
  m->out.rresp = b->resp == kSlverr && b->next != b->bad ? kOkay : b->resp;
  m->out.rlast = b->next + 1 == b->beats;
  if (m->out.rresp == kOkay)
    memcpy(m->out.rdata, m->data + b->addr + (size_t)b->next * kBeat, kBeat);
  else
    memset(m->out.rdata, 0xEE, kBeat);
}

static void offer_answer(ct_axi_mem *m) {
  if (m->out.bvalid) return;
  if (stalled(m)) {
    m->refuses |= due(m, &m->answers[0]) || due(m, &m->answers[1]);
    return;
  }
  struct queue *q = choose(m, m->answers, &m->out.bid);
  if (!q) return;
  m->out.bvalid = true;
  m->out.bresp = front(q)->resp;
}

static void finish_beat(ct_axi_mem *m) {
  struct queue *q = &m->reads[m->out.rid];
  struct burst *b = front(q);
  const uint64_t now = m->now * kFrac;
  m->r_free = (m->r_free > now ? m->r_free : now) + m->r_cost;
  ++m->stats.read_beats;
  if (++b->next == b->beats) ++q->head;
}

/* The write becomes visible. */
static void finish_write(ct_axi_mem *m) {
  struct queue *q = &m->answers[m->out.bid];
  const struct burst *b = front(q);
  const struct write_slot *w = &m->slots[b->slot];
  ++q->head;
  --m->writes[m->out.bid];
  m->slots_used &= ~(UINT64_C(1) << b->slot);
  if (w->resp != kOkay) return;
  for (uint32_t i = 0; i < w->beats; ++i) {
    uint8_t *p = m->data + w->addr + (size_t)i * kBeat;
    if (w->strobe[i] == 0xFFFF) {
      memcpy(p, w->data[i], kBeat);
      continue;
    }
    for (int j = 0; j < kBeat; ++j) {
      if ((w->strobe[i] >> j) & 1) p[j] = w->data[i][j];
    }
  }
}

static bool room(const struct queue *queues) {
  return queued(&queues[0]) < kQueue && queued(&queues[1]) < kQueue;
}

/* Whether an address of a write, and a beat, would be taken but for a stall. */
static bool takes_write(const ct_axi_mem *m) {
  return m->writes[0] < kQueue && m->writes[1] < kQueue;
}

static bool takes_data(const ct_axi_mem *m) {
  return m->order_head != m->order_tail && m->w_free < (m->now + 1) * kFrac;
}

static void drive(ct_axi_mem *m) {
  m->refuses = false;
  if (queued(&m->reads[0]) | queued(&m->reads[1])) offer_read(m);
  if (queued(&m->answers[0]) | queued(&m->answers[1])) offer_answer(m);
  m->out.arready = room(m->reads) && !stalled(m);
  m->out.awready = takes_write(m) && !stalled(m);
  m->out.wready = takes_data(m) && !stalled(m);
}

/* Remembers what was refused, for check_held(). */
static void hold(ct_axi_mem *m, const struct ct_axi_in *in) {
  m->ar_held = in->arvalid && !m->out.arready;
  m->aw_held = in->awvalid && !m->out.awready;
  m->w_held = in->wvalid && !m->out.wready;
  if (m->ar_held | m->aw_held | m->w_held) m->held = *in;
  m->refuses |= (m->ar_held && room(m->reads)) || (m->aw_held && takes_write(m)) ||
                (m->w_held && takes_data(m));
}

bool ct_axi_mem_cycle(ct_axi_mem *m, const struct ct_axi_in *in, struct ct_axi_out *out) {
  if (m->quiet && !(in->arvalid | in->awvalid | in->wvalid)) {
    ++m->now;
    return false;
  }
  if (m->ar_held | m->aw_held | m->w_held) check_held(m, in);
  drive(m);
  *out = m->out;
  hold(m, in);

  if (m->out.rvalid && in->rready) {
    finish_beat(m);
    m->out.rvalid = false;
  }
  if (m->out.bvalid && in->bready) {
    finish_write(m);
    m->out.bvalid = false;
  }
  /* Data before a new address: a beat belongs to an AW of an earlier cycle. */
  if (in->wvalid && m->out.wready) take_data(m, in);
  if (in->awvalid && m->out.awready) take_write(m, in);
  if (in->arvalid && m->out.arready) take_read(m, in);

  /* A quiet memory drives what it drove in its last cycle; that must be free of valids. */
  const uint32_t busy = queued(&m->reads[0]) | queued(&m->reads[1]) | m->writes[0] | m->writes[1];
  m->quiet = !busy && !(out->rvalid | out->bvalid) && out->arready && out->awready &&
             !(m->ar_held | m->aw_held | m->w_held);
  ++m->now;
  return true;
}
