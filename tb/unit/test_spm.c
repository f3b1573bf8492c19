/* SPDX-License-Identifier: Apache-2.0 */
/* ct_spm with 8, 4 and 2 banks against an array of words: bank conflicts, ranks and reads that
 * yield, latency, order of writes and reads, parity, peek and flipped bits. */
#include "ct_tb.h"

#include <string.h>

#include "ct_spm_2_dut.h"
#include "ct_spm_4_dut.h"
#include "ct_spm_8_dut.h"

enum { kWords = 1024, kReads = 5, kWrites = 2, kLat = 2, kVariants = 3 };

static const unsigned kBanks[kVariants] = {8, 4, 2};

/* One view of the models, which are types of their own. */
typedef struct {
  CT_TB_ANY_CALLS;
  uint8_t *rd_valid_i, *rd_yield_i, *strict_i, *rd_ready_o, *rd_vld_o, *rd_perr_o, *wr_valid_i,
      *wr_ready_o;
  uint32_t *rd_addr_i, *rd_data_o, *wr_data_i, *flip_addr_i, *peek_addr_i, *peek_data_o;
  uint64_t *rd_exp_o, *wr_addr_i;
  uint16_t *wr_exp_i;
  uint8_t *flip_arm_i, *flip_bit_i, *peek_i, *peek_vld_o, *peek_exp_o, *peek_perr_o;
} spm_ports;

#define VARIANT(name)                                                     \
  CT_TB_ANY(name)                                                         \
  CT_TB_ANY_CLOCK(name)                                                   \
  static spm_ports name##_ports(void) {                                   \
    name##_dut *d = name##_new(ct_tb_trace());                            \
    const spm_ports p =                                                   \
        {                                                                 \
            CT_TB_ANY_OF(name, d),         .rd_valid_i = d->rd_valid_i,   \
            .rd_yield_i = d->rd_yield_i,   .strict_i = d->strict_i,       \
            .rd_ready_o = d->rd_ready_o,   .rd_vld_o = d->rd_vld_o,       \
            .rd_perr_o = d->rd_perr_o,     .wr_valid_i = d->wr_valid_i,   \
            .wr_ready_o = d->wr_ready_o,   .rd_addr_i = d->rd_addr_i,     \
            .rd_data_o = d->rd_data_o,     .wr_data_i = d->wr_data_i,     \
            .flip_addr_i = d->flip_addr_i, .peek_addr_i = d->peek_addr_i, \
            .peek_data_o = d->peek_data_o, .rd_exp_o = d->rd_exp_o,       \
            .wr_addr_i = d->wr_addr_i,     .wr_exp_i = d->wr_exp_i,       \
            .flip_arm_i = d->flip_arm_i,   .flip_bit_i = d->flip_bit_i,   \
            .peek_i = d->peek_i,           .peek_vld_o = d->peek_vld_o,   \
            .peek_exp_o = d->peek_exp_o,   .peek_perr_o = d->peek_perr_o, \
        };                                                                \
    return p;                                                             \
  }

VARIANT(ct_spm_8)
VARIANT(ct_spm_4)
VARIANT(ct_spm_2)

static spm_ports (*const variants[kVariants])(void) = {ct_spm_8_ports, ct_spm_4_ports,
                                                       ct_spm_2_ports};

typedef struct {
  uint32_t data[4];
  uint8_t exp;
} word;

/* A read under way: what must come out and whether that is defined. */
typedef struct {
  bool valid, known, perr;
  word w;
} expected;

typedef struct {
  bool valid;
  uint32_t addr;
  bool yield;
} rd_req;

typedef struct {
  bool valid;
  uint32_t addr;
  word w;
} wr_req;

typedef struct {
  spm_ports p;
  unsigned banks;
  word mem[kWords];
  bool bad[kWords]; /* holds a flipped bit */
  expected pipe[kLat][kReads];
  rd_req rd[kReads];
  wr_req wr[kWrites];
  bool rd_done[kReads], wr_done[kWrites]; /* served in the last cycle */
  bool strict;
  unsigned order[kReads];            /* ports, that served least recently first */
  bool seen[kReads];                 /* waits since the last 64th cycle at least */
  unsigned wait[kReads], longest[2]; /* cycles that a read waits; the most, strict or not */
  unsigned ticks;                    /* cycles in which a read has waited that does not yield */
  unsigned long reads, writes, refused;
  unsigned long overtaken; /* reads that an earlier port left to a later one */
} bench;

static bench *open_bench(unsigned variant) {
  bench *b = test_calloc(1, sizeof *b);
  b->p = variants[variant]();
  b->banks = kBanks[variant];
  const spm_ports *d = &b->p;
  *d->rd_valid_i = 0;
  *d->rd_yield_i = *d->strict_i = 0;
  for (unsigned p = 0; p < kReads; ++p)
    b->order[p] = p;
  *d->wr_valid_i = 0;
  *d->flip_arm_i = 0;
  *d->flip_addr_i = 0;
  *d->flip_bit_i = 0;
  *d->peek_i = 0;
  *d->peek_addr_i = 0;
  d->reset(d->dut, 2);
  return b;
}

static void close_bench(bench *b) {
  b->p.close(b->p.dut);
  test_free(b);
}

static void drive(bench *b) {
  const spm_ports *d = &b->p;
  *d->rd_valid_i = *d->rd_yield_i = 0;
  *d->strict_i = b->strict;
  for (unsigned p = 0; p < kReads; ++p) {
    *d->rd_valid_i |= (uint8_t)(b->rd[p].valid << p);
    *d->rd_yield_i |= (uint8_t)(b->rd[p].yield << p);
    ct_tb_put(d->rd_addr_i, 20 * p, 20, b->rd[p].addr);
  }
  *d->wr_valid_i = 0;
  uint64_t addrs = 0;
  for (unsigned p = 0; p < kWrites; ++p) {
    *d->wr_valid_i |= (uint8_t)(b->wr[p].valid << p);
    addrs |= (uint64_t)b->wr[p].addr << (20 * p);
    memcpy(d->wr_data_i + 4 * p, b->wr[p].w.data, 16);
    *d->wr_exp_i =
        (uint16_t)((*d->wr_exp_i & ~(0xFFu << (8 * p))) | (unsigned)b->wr[p].w.exp << (8 * p));
  }
  *d->wr_addr_i = addrs;
}

/* What the data ports show must be what was granted kLat cycles ago. */
static void check_data(bench *b) {
  const spm_ports *d = &b->p;
  for (unsigned p = 0; p < kReads; ++p) {
    const expected *e = &b->pipe[kLat - 1][p];
    assert_int_equal((*d->rd_vld_o >> p) & 1, e->valid);
    if (!e->valid) {
      assert_int_equal((*d->rd_perr_o >> p) & 1, 0);
      continue;
    }
    if (!e->known) continue;
    assert_int_equal((*d->rd_perr_o >> p) & 1, e->perr);
    ct_assert_same("read data", d->rd_data_o + 4 * p, e->w.data, 16);
    assert_int_equal((uint8_t)(*d->rd_exp_o >> (8 * p)), e->w.exp);
    ++b->reads;
  }
}

static bool same_bank(const bench *b, uint32_t a, uint32_t c) {
  return a % b->banks == c % b->banks;
}

/* The ranks of this cycle: by age, unless strict and nobody has waited long, or this is no 64th
 * cycle. */
static bool by_age(const bench *b) {
  bool any = false;
  for (unsigned p = 0; p < kReads; ++p)
    any |= b->seen[p];
  return !b->strict || (any && b->ticks % 64 == 63);
}

static void rank(const bench *b, unsigned at[kReads]) {
  for (unsigned i = 0; i < kReads; ++i)
    at[by_age(b) ? b->order[i] : i] = i;
}

static bool yields(const bench *b, unsigned p) {
  return b->strict && b->rd[p].yield;
}

/* Served ports go behind all others, among themselves as they stood, but for those that yield. */
static void note_served(bench *b) {
  unsigned next[kReads], n = 0;
  bool any = false;
  for (unsigned pass = 0; pass < 2; ++pass) {
    for (unsigned i = 0; i < kReads; ++i) {
      const unsigned p = b->order[i];
      if ((b->rd_done[p] && !yields(b, p)) == (pass == 1)) next[n++] = p;
    }
  }
  memcpy(b->order, next, sizeof next);
  for (unsigned p = 0; p < kReads; ++p) {
    const bool waits = b->rd[p].valid && !b->rd_done[p] && !yields(b, p);
    any |= waits;
    b->seen[p] = waits && (b->seen[p] || b->ticks % 64 == 63);
    b->wait[p] = waits ? b->wait[p] + 1 : 0;
    if (b->wait[p] > b->longest[b->strict]) b->longest[b->strict] = b->wait[p];
  }
  assert_true(b->longest[0] <= 4 && b->longest[1] <= 384);
  b->ticks = any ? b->ticks + 1 : 0;
}

static void check_grants(bench *b) {
  const spm_ports *d = &b->p;
  unsigned at[kReads];
  rank(b, at);
  for (unsigned p = 0; p < kReads; ++p) {
    bool ready = true;
    for (unsigned q = 0; q < kReads; ++q) {
      const bool last = yields(b, p);
      const bool first = yields(b, q) == last ? at[q] < at[p] : last;
      const bool taken = b->rd[q].valid && same_bank(b, b->rd[q].addr, b->rd[p].addr);
      ready &= !(first && taken);
      b->overtaken += b->rd[p].valid && first && taken && q > p;
    }
    b->rd_done[p] = b->rd[p].valid && ready;
    if (b->rd[p].valid) assert_int_equal((*d->rd_ready_o >> p) & 1, ready);
    b->refused += b->rd[p].valid && !ready;
  }
  note_served(b);
  const bool clash = b->wr[0].valid && same_bank(b, b->wr[0].addr, b->wr[1].addr);
  b->wr_done[0] = b->wr[0].valid;
  b->wr_done[1] = b->wr[1].valid && !clash;
  assert_int_equal(*d->wr_ready_o & 1, 1);
  if (b->wr[1].valid) assert_int_equal(*d->wr_ready_o >> 1, !clash);
  b->refused += b->wr[1].valid && clash;
}

static expected look_up(const bench *b, unsigned p) {
  expected e = {.valid = b->rd_done[p], .known = true};
  const uint32_t addr = b->rd[p].addr % kWords;
  e.w = b->mem[addr];
  e.perr = b->bad[addr];
  for (unsigned q = 0; q < kWrites; ++q) {
    if (b->wr_done[q] && b->wr[q].addr % kWords == addr) e.known = false;
  }
  return e;
}

/* One cycle of the requests in b->rd and b->wr. */
static void cycle(bench *b) {
  drive(b);
  b->p.eval(b->p.dut);
  check_data(b);
  check_grants(b);
  memmove(b->pipe[1], b->pipe[0], sizeof b->pipe[0]);
  for (unsigned p = 0; p < kReads; ++p)
    b->pipe[0][p] = look_up(b, p);
  for (unsigned p = 0; p < kWrites; ++p) {
    if (!b->wr_done[p]) continue;
    b->mem[b->wr[p].addr % kWords] = b->wr[p].w;
    b->bad[b->wr[p].addr % kWords] = false;
    ++b->writes;
  }
  b->p.tick(b->p.dut);
}

static word random_word(ct_rng *rng) {
  word w;
  ct_rng_fill(rng, w.data, sizeof w.data);
  w.exp = (uint8_t)ct_rng_u64(rng);
  return w;
}

/* New requests on the ports that are free; a refused one stays. Words below `low` are not written.
 */
static void random_requests(bench *b, ct_rng *rng, ct_stall *stalls, unsigned span, unsigned low) {
  for (unsigned p = 0; p < kReads; ++p) {
    if (b->rd[p].valid && !b->rd_done[p]) continue;
    b->rd[p].valid = !ct_stall_next(&stalls[p]);
    b->rd[p].addr = ct_rng_below(rng, span);
    b->rd[p].yield = ct_rng_percent(rng, 40);
  }
  for (unsigned p = 0; p < kWrites; ++p) {
    if (b->wr[p].valid && !b->wr_done[p]) continue;
    b->wr[p].valid = !ct_stall_next(&stalls[kReads + p]);
    b->wr[p].addr = low + ct_rng_below(rng, span - low);
    b->wr[p].w = random_word(rng);
  }
}

static void no_requests(bench *b) {
  memset(b->rd, 0, sizeof b->rd);
  memset(b->wr, 0, sizeof b->wr);
}

static void idle(bench *b, int cycles) {
  no_requests(b);
  for (int i = 0; i < cycles; ++i)
    cycle(b);
}

static void write_word(bench *b, unsigned port, uint32_t addr, word w) {
  no_requests(b);
  b->wr[port] = (wr_req){true, addr, w};
  cycle(b);
  no_requests(b);
}

static void read_word(bench *b, unsigned port, uint32_t addr) {
  no_requests(b);
  b->rd[port] = (rd_req){.valid = true, .addr = addr};
  cycle(b);
  idle(b, kLat);
}

static void random_traffic(unsigned v) {
  static const unsigned spans[] = {16, 64, kWords}; /* few words: many conflicts and reuses */
  for (unsigned k = 0; k < 6; ++k) {
    bench *b = open_bench(v);
    ct_rng rng = ct_rng_make(10 + k);
    ct_stall stalls[kReads + kWrites];
    for (unsigned p = 0; p < kReads + kWrites; ++p)
      stalls[p] = ct_stall_make(100 * k + p, k < 3 ? 20 : 60, 1 + p);
    for (int i = 0; i < 15000; ++i) {
      random_requests(b, &rng, stalls, spans[k % 3], 0);
      if (i % 500 == 0) {
        b->strict = !b->strict;
        memset(b->wait, 0, sizeof b->wait);
      }
      cycle(b);
    }
    assert_true(b->reads > 10000 && b->writes > 5000 && b->refused > 1000 && b->overtaken > 500);
    close_bench(b);
  }
}

/* All ports want one bank all the time: each has its turn, or, if the policy is strict, at least in
 * every 384 cycles. Of those that yield none has. */
static void all_want_one_bank(unsigned v) {
  for (unsigned strict = 0; strict < 2; ++strict) {
    bench *b = open_bench(v);
    unsigned got[kReads] = {0};
    b->strict = strict;
    for (unsigned i = 0; i < 6400; ++i) {
      for (unsigned p = 0; p < kReads; ++p)
        b->rd[p] = (rd_req){true, kBanks[v] * (i % 16), p == 3};
      cycle(b);
      for (unsigned p = 0; p < kReads; ++p)
        got[p] += b->rd_done[p];
    }
    for (unsigned p = 0; p < kReads; ++p)
      assert_in_range(got[p], strict ? (p == 3 ? 0 : 16) : 1280,
                      strict ? (p == 3 ? 0 : 6400) : 1280);
    assert_int_equal(b->longest[0], strict ? 0 : 4);
    close_bench(b);
  }
}

/* If the policy is strict, what yields changes nothing for the rest: the same reads are served in
 * the same cycles without it, beside it, and behind any number of its cycles. */
static void yielding_leaves_no_trace(unsigned v) {
  enum { kCycles = 20000 };
  unsigned char *served[2];
  for (unsigned beside = 0; beside < 2; ++beside) {
    served[beside] = test_calloc(kCycles, 1);
    bench *b = open_bench(v);
    ct_rng first = ct_rng_make(21), other = ct_rng_make(22);
    const int before = beside ? (int)ct_rng_below(&other, 200) : 0;
    rd_req held[kReads] = {{0}};
    unsigned ports = 0; /* that do not yield */
    b->strict = true;
    for (int i = -before; i < kCycles; ++i) {
      for (unsigned p = 0; p < kReads; ++p) {
        if (p == 0 && i >= 0 && i % 500 == 0) ports = ct_rng_below(&first, 1 << kReads);
        if (i >= 0 && (!held[p].valid || b->rd_done[p])) /* few pauses, two banks: long waits */
          held[p] = (rd_req){(ports >> p & 1) && ct_rng_percent(&first, 90),
                             ct_rng_percent(&first, 20), false};
        b->rd[p] = held[p];
        if (!held[p].valid && beside)
          b->rd[p] = (rd_req){ct_rng_percent(&other, 60), ct_rng_percent(&other, 20), true};
      }
      cycle(b);
      for (unsigned p = 0; p < kReads; ++p) {
        b->rd_done[p] &= held[p].valid;
        if (i >= 0) served[beside][i] |= (unsigned char)(b->rd_done[p] << p);
      }
    }
    if (!beside) assert_true(b->longest[1] > 64); /* so age did count */
    close_bench(b);
  }
  ct_assert_same("served", served[1], served[0], kCycles);
  test_free(served[0]);
  test_free(served[1]);
}

/* Without conflicts every port is served in every cycle; as many ports as there are banks. */
static void all_ports_at_once(unsigned v) {
  const unsigned reads = kBanks[v] < kReads ? kBanks[v] : kReads;
  bench *b = open_bench(v);
  ct_rng rng = ct_rng_make(20);
  for (uint32_t i = 0; i < 500; ++i) {
    for (unsigned p = 0; p < reads; ++p)
      b->rd[p] = (rd_req){true, (i + p) % kWords, i & 1u << p};
    for (unsigned p = 0; p < kWrites; ++p)
      b->wr[p] = (wr_req){true, (i + 5 + p) % kWords, random_word(&rng)};
    cycle(b);
    for (unsigned p = 0; p < reads; ++p)
      assert_true(b->rd_done[p]);
    assert_true(b->wr_done[1]);
  }
  close_bench(b);
}

/* The exponent and data of addr as peek shows them; waits for them, with or without other traffic.
 */
static bool peek(bench *b, uint32_t addr, word *w, void (*traffic)(bench *, void *), void *arg) {
  *b->p.peek_i = 1;
  *b->p.peek_addr_i = addr;
  for (int i = 0; i < 2000; ++i) {
    no_requests(b);
    if (traffic) traffic(b, arg);
    cycle(b);
    *b->p.peek_i = 0;
    if (!*b->p.peek_vld_o) continue;
    memcpy(w->data, b->p.peek_data_o, 16);
    w->exp = *b->p.peek_exp_o;
    return *b->p.peek_perr_o;
  }
  fail_msg("peek got no answer");
  return false;
}

static void flip(bench *b, uint32_t addr, unsigned bit) {
  *b->p.flip_arm_i = 1;
  *b->p.flip_addr_i = addr;
  *b->p.flip_bit_i = (uint8_t)bit;
  no_requests(b);
  cycle(b);
  *b->p.flip_arm_i = 0;
  word *w = &b->mem[addr % kWords];
  if (bit < 128) w->data[bit / 32] ^= 1u << (bit % 32);
  if (bit >= 128 && bit < 136) w->exp ^= (uint8_t)(1u << (bit - 128));
  b->bad[addr % kWords] = true;
}

/* Every one of the 144 bits is seen by every port, and gone after a write by either port. */
static void flips_show_until_written(unsigned v) {
  bench *b = open_bench(v);
  ct_rng rng = ct_rng_make(30);
  for (unsigned bit = 0; bit < 144; ++bit) {
    const uint32_t addr = ct_rng_below(&rng, kWords);
    write_word(b, bit % 2, addr, random_word(&rng));
    flip(b, addr, bit);
    idle(b, 6);
    for (unsigned p = 0; p < kReads; ++p)
      read_word(b, p, addr);
    word w;
    assert_true(peek(b, addr, &w, NULL, NULL));
    ct_assert_same("peeked data", w.data, b->mem[addr].data, 16);
    assert_int_equal(w.exp, b->mem[addr].exp);
    write_word(b, (bit / 2) % 2, addr, random_word(&rng));
    read_word(b, bit % kReads, addr);
    assert_false(peek(b, addr, &w, NULL, NULL));
    assert_int_equal(w.exp, b->mem[addr].exp);
  }
  close_bench(b);
}

struct traffic {
  ct_rng rng;
  ct_stall stalls[kReads + kWrites];
};

static void above_64(bench *b, void *arg) {
  struct traffic *t = arg;
  for (unsigned p = 0; p < kReads; ++p)
    b->rd[p] = (rd_req){!ct_stall_next(&t->stalls[p]), 64 + ct_rng_below(&t->rng, kWords - 64),
                        ct_rng_percent(&t->rng, 40)};
  for (unsigned p = 0; p < kWrites; ++p)
    b->wr[p] = (wr_req){!ct_stall_next(&t->stalls[kReads + p]),
                        64 + ct_rng_below(&t->rng, kWords - 64), random_word(&t->rng)};
}

/* Flip and peek wait for free banks and are right under traffic; a peek shows a flip armed before.
 */
static void debug_under_traffic(unsigned v) {
  bench *b = open_bench(v);
  struct traffic t = {.rng = ct_rng_make(40)};
  for (unsigned p = 0; p < kReads + kWrites; ++p)
    t.stalls[p] = ct_stall_make(41 + p, 30, 3);
  for (int i = 0; i < 300; ++i) {
    const uint32_t addr = ct_rng_below(&t.rng, 64);
    word w;
    if (i % 3 == 0) write_word(b, 0, addr, random_word(&t.rng));
    const bool flipped = !b->bad[addr] && ct_rng_percent(&t.rng, 60);
    if (flipped) flip(b, addr, ct_rng_below(&t.rng, 144));
    assert_int_equal(peek(b, addr, &w, above_64, &t), b->bad[addr]);
    ct_assert_same("peeked data", w.data, b->mem[addr].data, 16);
    assert_int_equal(w.exp, b->mem[addr].exp);
  }
  close_bench(b);
}

/* A flip held up by traffic is void when its word is written first, at whatever moment. */
static void late_flip_is_void(unsigned v) {
  bench *b = open_bench(v);
  ct_rng rng = ct_rng_make(50);
  for (int delay = 0; delay < 8; ++delay) {
    for (unsigned port = 0; port < kWrites; ++port) {
      const uint32_t addr = 8 + ct_rng_below(&rng, 50);
      write_word(b, 0, addr, random_word(&rng));
      *b->p.flip_arm_i = 1;
      *b->p.flip_addr_i = addr + (delay & 1) * kWords; /* the same word */
      *b->p.flip_bit_i = 5;
      for (int i = 0; i < 20; ++i) {
        no_requests(b);
        /* VS writes all the time: a flip reads its word but cannot put it back. */
        b->wr[1] = (wr_req){true, (uint32_t)(128 + i), random_word(&rng)};
        if (i == delay + 1) {
          b->wr[port] = (wr_req){true, addr, random_word(&rng)};
          b->wr[1].addr += same_bank(b, b->wr[0].addr, b->wr[1].addr) && port == 0;
        }
        cycle(b);
        *b->p.flip_arm_i = 0;
      }
      idle(b, 5);
      word w;
      assert_false(peek(b, addr, &w, NULL, NULL));
      read_word(b, 0, addr);
    }
  }
  close_bench(b);
}

/* Each with all variants. */
#define ON_ALL(test)                         \
  static void test##_all(void **state) {     \
    (void)state;                             \
    for (unsigned v = 0; v < kVariants; ++v) \
      test(v);                               \
  }

ON_ALL(random_traffic)
ON_ALL(all_want_one_bank)
ON_ALL(yielding_leaves_no_trace)
ON_ALL(all_ports_at_once)
ON_ALL(flips_show_until_written)
ON_ALL(debug_under_traffic)
ON_ALL(late_flip_is_void)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_traffic_all),           cmocka_unit_test(all_ports_at_once_all),
      cmocka_unit_test(flips_show_until_written_all), cmocka_unit_test(debug_under_traffic_all),
      cmocka_unit_test(late_flip_is_void_all),        cmocka_unit_test(all_want_one_bank_all),
      cmocka_unit_test(yielding_leaves_no_trace_all),
  };
  return cmocka_run_group_tests_name("ct_spm", tests, NULL, NULL);
}
