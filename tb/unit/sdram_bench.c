/* SPDX-License-Identifier: Apache-2.0 */
#include "sdram_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBeat = 16, kMaxBeats = 17, kQueue = 16, kMemory = 1 << 25, kAr = 0, kR, kAw, kW, kB };

struct burst {
  uint64_t addr;
  uint32_t beats, done;
  uint64_t asked; /* cycle */
  uint8_t id;
  bool wild, taken;
};

struct queue {
  struct burst entry[kQueue];
  unsigned first, count;
};

struct beat {
  uint32_t data[4];
  uint16_t strobe;
  bool last;
};

struct bench {
  struct sdram_dut dut;
  const struct sdram_traffic *traffic;
  ct_sdram_chip *chip;
  uint8_t *memory; /* what the chip should hold once all writes are through */
  ct_rng rng;
  ct_stall stall[5];
  struct queue reads, writes; /* oldest first; the first of them that are taken come first */
  struct beat words[kQueue * kMaxBeats];
  unsigned word_first, word_count;
  struct ct_axi_in in;
  struct ct_axi_out out;
  uint16_t dq[4]; /* the newest first */
  unsigned made;
  uint64_t next_addr, now, first_beat;
  struct sdram_result result;
  char fault[128];
};

static void complain(struct bench *b, const char *what, uint64_t addr) {
  if (b->result.fault) return;
  (void)snprintf(b->fault, sizeof b->fault, "%s (address 0x%llx, cycle %llu)", what,
                 (unsigned long long)addr, (unsigned long long)b->now);
  b->result.fault = b->fault;
}

static struct burst *at(struct queue *q, unsigned i) {
  return &q->entry[(q->first + i) % kQueue];
}

static bool overlaps(const struct queue *q, const struct burst *x) {
  for (unsigned i = 0; i < q->count; ++i) {
    const struct burst *y = &q->entry[(q->first + i) % kQueue];
    if (x->addr < y->addr + (uint64_t)y->beats * kBeat &&
        y->addr < x->addr + (uint64_t)x->beats * kBeat)
      return true;
  }
  return false;
}

/* ---- What is asked for ---- */

static struct burst pick(struct bench *b) {
  const struct sdram_traffic *t = b->traffic;
  struct burst x = {.beats = t->beats ? t->beats : 1 + ct_rng_below(&b->rng, kMaxBeats),
                    .id = (uint8_t)ct_rng_below(&b->rng, 2)};
  if (t->sequential) {
    x.addr = b->next_addr;
  } else {
    x.addr = ct_rng_u64(&b->rng) % (t->rows ? (uint64_t)t->rows << 12 : kMemory) &
             ~(uint64_t)(kBeat - 1);
  }
  const uint32_t page = (uint32_t)(4096 - x.addr % 4096) / kBeat;
  if (x.beats > page) x.beats = page;
  b->next_addr = (x.addr + (uint64_t)x.beats * kBeat) % kMemory;
  x.wild = ct_rng_percent(&b->rng, t->wild_percent);
  if (x.wild) x.addr |= (uint64_t)1 << (25 + ct_rng_below(&b->rng, 11));
  return x;
}

static void make_words(struct bench *b, const struct burst *x) {
  for (uint32_t i = 0; i < x->beats; ++i) {
    struct beat *w = &b->words[(b->word_first + b->word_count++) % (kQueue * kMaxBeats)];
    ct_rng_fill(&b->rng, w->data, sizeof w->data);
    w->strobe =
        b->traffic->strobes && ct_rng_percent(&b->rng, 50) ? (uint16_t)ct_rng_u64(&b->rng) : 0xFFFF;
    w->last = i + 1 == x->beats;
    uint8_t bytes[kBeat];
    memcpy(bytes, w->data, sizeof bytes);
    for (uint32_t k = 0; k < kBeat && !x->wild; ++k)
      if (w->strobe >> k & 1) b->memory[x->addr + (uint64_t)i * kBeat + k] = bytes[k];
  }
}

/* One more burst, if there is room for it and none under way of the other direction touches it: AXI
 * leaves open what a read sees then. */
static void make_burst(struct bench *b) {
  if (b->made == b->traffic->bursts) return;
  const bool read = ct_rng_percent(&b->rng, b->traffic->read_percent);
  struct queue *q = read ? &b->reads : &b->writes;
  if (q->count == kQueue) return;
  const struct burst x = pick(b);
  if (overlaps(read ? &b->writes : &b->reads, &x)) return;
  *at(q, q->count++) = x;
  if (!read) make_words(b, &x);
  ++b->made;
}

/* ---- What the master drives and takes ---- */

static struct burst *waiting(struct queue *q) {
  for (unsigned i = 0; i < q->count; ++i)
    if (!at(q, i)->taken) return at(q, i);
  return NULL;
}

/* An offer stays until it is taken. */
static void drive(struct bench *b) {
  struct ct_axi_in *in = &b->in;
  const struct burst *read = waiting(&b->reads);
  const struct burst *write = waiting(&b->writes);
  in->arvalid = read && (in->arvalid || !ct_stall_next(&b->stall[kAr]));
  if (in->arvalid) {
    in->araddr = read->addr;
    in->arlen = (uint8_t)(read->beats - 1);
    in->arid = read->id;
  }
  in->awvalid = write && (in->awvalid || !ct_stall_next(&b->stall[kAw]));
  if (in->awvalid) {
    in->awaddr = write->addr;
    in->awlen = (uint8_t)(write->beats - 1);
    in->awid = write->id;
  }
  in->wvalid = b->word_count && (in->wvalid || !ct_stall_next(&b->stall[kW]));
  if (in->wvalid) {
    const struct beat *w = &b->words[b->word_first];
    memcpy(in->wdata, w->data, sizeof w->data);
    in->wstrb = w->strobe;
    in->wlast = w->last;
  }
  in->rready = !ct_stall_next(&b->stall[kR]);
  in->bready = !ct_stall_next(&b->stall[kB]);
}

/* The oldest taken burst of this ID: answers of an ID come in order, and ct_sdram keeps all of them
 * so. */
static struct burst *answered(struct bench *b, struct queue *q, uint8_t id) {
  struct burst *x = q->count && at(q, 0)->taken ? at(q, 0) : NULL;
  if (!x || x->id != id) {
    complain(b, "an answer nobody waits for", 0);
    return NULL;
  }
  return x;
}

static void drop(struct queue *q) {
  q->first = (q->first + 1) % kQueue;
  --q->count;
}

static void count_beat(struct bench *b) {
  if (!b->result.beats++) b->first_beat = b->now;
  b->result.cycles = b->now - b->first_beat;
}

static void take_read(struct bench *b) {
  struct burst *x = answered(b, &b->reads, b->out.rid);
  if (!x) return;
  static const uint8_t zeros[kBeat];
  const uint64_t addr = x->addr + (uint64_t)x->done * kBeat;
  if (memcmp(b->out.rdata, x->wild ? zeros : b->memory + addr, kBeat) != 0)
    complain(b, "wrong data", addr);
  if (b->out.rresp != (x->wild ? 3 : 0)) complain(b, "wrong RRESP", addr);
  if (b->out.rlast != (x->done + 1 == x->beats)) complain(b, "wrong RLAST", addr);
  count_beat(b);
  if (++x->done < x->beats) return;
  if (x->asked > b->first_beat && b->now - x->asked > b->result.longest_read)
    b->result.longest_read = b->now - x->asked;
  drop(&b->reads);
}

static void take_answer(struct bench *b) {
  struct burst *x = answered(b, &b->writes, b->out.bid);
  if (!x) return;
  if (b->out.bresp != (x->wild ? 3 : 0)) complain(b, "wrong BRESP", x->addr);
  if (x->asked > b->first_beat && b->now - x->asked > b->result.longest_write)
    b->result.longest_write = b->now - x->asked;
  for (uint32_t i = 0; i < x->beats; ++i)
    count_beat(b);
  drop(&b->writes);
}

static void take(struct bench *b) {
  struct ct_axi_in *in = &b->in;
  const struct ct_axi_out *out = &b->out;
  if (in->arvalid && out->arready) {
    struct burst *x = waiting(&b->reads);
    x->taken = true;
    x->asked = b->now;
    in->arvalid = false;
  }
  if (in->awvalid && out->awready) {
    struct burst *x = waiting(&b->writes);
    x->taken = true;
    x->asked = b->now;
    in->awvalid = false;
  }
  if (in->wvalid && out->wready) {
    b->word_first = (b->word_first + 1) % (kQueue * kMaxBeats);
    --b->word_count;
    in->wvalid = false;
  }
  if (out->rvalid && in->rready) take_read(b);
  if (out->bvalid && in->bready) take_answer(b);
}

static void cycle(struct bench *b) {
  struct ct_sdram_pins pins;
  make_burst(b);
  drive(b);
  b->dut.outputs(b->dut.dut, &b->out, &pins);
  memmove(b->dq + 1, b->dq, sizeof b->dq - sizeof b->dq[0]);
  b->dq[0] = ct_sdram_chip_cycle(b->chip, &pins);
  b->dut.tick(b->dut.dut, &b->in, b->dq[b->dut.read_delay]);
  take(b);
  ++b->now;
  if (ct_sdram_chip_fault(b->chip)) complain(b, ct_sdram_chip_fault(b->chip), 0);
  if (b->dut.failed(b->dut.dut)) complain(b, "an assertion of the RTL", 0);
}

struct sdram_result sdram_run(struct sdram_dut dut, const struct ct_sdram_chip_config *chip,
                              const struct sdram_traffic *traffic, uint64_t stream) {
  static char fault[128];
  const struct ct_sdram_chip_config normal = ct_sdram_chip_default(dut.clock_ps);
  struct bench *b = calloc(1, sizeof *b);
  assert_non_null(b);
  b->dut = dut;
  b->traffic = traffic;
  b->chip = ct_sdram_chip_new(chip ? chip : &normal);
  b->memory = calloc(kMemory, 1);
  assert_true(b->chip && b->memory);
  b->rng = ct_rng_make(stream);
  for (unsigned i = 0; i < 5; ++i)
    b->stall[i] = ct_stall_make(stream * 8 + i, traffic->stall_percent[i], 12);
  const uint64_t limit = 40000 + (uint64_t)traffic->bursts * 3000;
  while ((b->made < traffic->bursts || b->reads.count || b->writes.count) && !b->result.fault) {
    cycle(b);
    if (b->now > limit) complain(b, "nothing moves any more", 0);
  }
  for (unsigned i = 0; i < 2000 && !b->result.fault; ++i)
    cycle(b);
  if (!b->result.fault && memcmp(ct_sdram_chip_data(b->chip), b->memory, kMemory) != 0)
    complain(b, "the chip holds other bytes than were written", 0);
  struct sdram_result result = b->result;
  if (result.fault) result.fault = memcpy(fault, b->fault, sizeof fault);
  ct_sdram_chip_free(b->chip);
  free(b->memory);
  free(b);
  dut.close(dut.dut);
  return result;
}
