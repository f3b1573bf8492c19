/* SPDX-License-Identifier: Apache-2.0 */
/* The AXI memory of the simulator: latency, bandwidth, order, faults, and that it sees broken
 * rules. */
#include <string.h>

#include "ct_tb.h"

#include "host/transports/sim/ct_axi_mem.h"

enum { kBytes = 1 << 16 };

typedef struct {
  ct_axi_mem *mem;
  struct ct_axi_in in;
  struct ct_axi_out out;
  uint64_t refused; /* cycles with a refusal */
} port;

static port open_port(struct ct_axi_mem_config config) {
  config.bytes = kBytes;
  port p = {.mem = ct_axi_mem_new(&config), .in = {.bready = true, .rready = true}};
  assert_non_null(p.mem);
  for (unsigned i = 0; i < kBytes; ++i)
    ct_axi_mem_data(p.mem)[i] = (uint8_t)(i / 16 + i);
  return p;
}

static void cycle(port *p) {
  ct_axi_mem_cycle(p->mem, &p->in, &p->out);
  p->refused += ct_axi_mem_refuses(p->mem);
}

/* Offers one AR until it is taken. */
static void read_burst(port *p, uint8_t id, uint64_t addr, unsigned beats) {
  p->in.arvalid = true;
  p->in.arid = id;
  p->in.araddr = addr;
  p->in.arlen = (uint8_t)(beats - 1);
  p->in.arsize = 4;
  p->in.arburst = 1;
  cycle(p);
  CT_TB_WHILE (!p->out.arready, 100000)
    cycle(p);
  p->in.arvalid = false;
}

static void write_address(port *p, uint8_t id, uint64_t addr, unsigned beats) {
  p->in.awvalid = true;
  p->in.awid = id;
  p->in.awaddr = addr;
  p->in.awlen = (uint8_t)(beats - 1);
  p->in.awsize = 4;
  p->in.awburst = 1;
  cycle(p);
  CT_TB_WHILE (!p->out.awready, 100000)
    cycle(p);
  p->in.awvalid = false;
}

static void write_beat(port *p, uint8_t fill, uint16_t strobe, bool last) {
  p->in.wvalid = true;
  memset(p->in.wdata, fill, 16);
  p->in.wstrb = strobe;
  p->in.wlast = last;
  cycle(p);
  CT_TB_WHILE (!p->out.wready, 100000)
    cycle(p);
  p->in.wvalid = false;
}

/* Cycles until the next beat of R; fails after 1000. */
static unsigned next_beat(port *p) {
  for (unsigned i = 1; i < 1000; ++i) {
    cycle(p);
    if (p->out.rvalid) return i;
  }
  fail_msg("no beat");
  return 0;
}

static unsigned next_answer(port *p) {
  for (unsigned i = 1; i < 1000; ++i) {
    cycle(p);
    if (p->out.bvalid) return i;
  }
  fail_msg("no answer");
  return 0;
}

static void latency_and_bandwidth(void **state) {
  (void)state;
  static const unsigned widths[] = {16, 8, 4, 2, 1};
  for (unsigned k = 0; k < 5; ++k) {
    port p = open_port((struct ct_axi_mem_config){
        .latency = 37, .read_bytes = widths[k], .write_bytes = widths[k]});
    read_burst(&p, 1, 160, 4);
    assert_int_equal(next_beat(&p), 37);
    for (unsigned i = 0; i < 4; ++i) {
      assert_int_equal(p.out.rid, 1);
      assert_int_equal(p.out.rresp, 0);
      assert_int_equal(p.out.rlast, i == 3);
      ct_assert_same("beat", p.out.rdata, ct_axi_mem_data(p.mem) + 160 + 16 * i, 16);
      if (i < 3) assert_int_equal(next_beat(&p), 16 / widths[k]);
    }
    write_address(&p, 0, 4096, 2);
    write_beat(&p, 0x11, 0xFFFF, false);
    const uint64_t before = ct_axi_mem_now(p.mem);
    write_beat(&p, 0x22, 0x0003, true);
    assert_int_equal(ct_axi_mem_now(p.mem) - before, 16 / widths[k]);
    assert_int_not_equal(ct_axi_mem_data(p.mem)[4096 + 7], 0x11); /* not before the answer */
    assert_int_equal(next_answer(&p), 37);
    assert_int_equal(ct_axi_mem_data(p.mem)[4096 + 7], 0x11);
    assert_int_equal(ct_axi_mem_data(p.mem)[4112 + 1], 0x22);
    assert_int_not_equal(ct_axi_mem_data(p.mem)[4112 + 2], 0x22);
    assert_null(ct_axi_mem_error(p.mem));
    ct_axi_mem_free(p.mem);
  }
}

/* One thing at a time, each waited for: cycles, and those of them with a refusal. */
static port one_by_one(unsigned width, unsigned stall) {
  port p = open_port((struct ct_axi_mem_config){.latency = 37,
                                                .read_bytes = width,
                                                .write_bytes = width,
                                                .stall_percent = stall,
                                                .seed = ct_tb_seed()});
  for (unsigned i = 0; i < 20; ++i) {
    read_burst(&p, i & 1, 256 * i, 16);
    for (unsigned n = 0; n < 16; ++n)
      next_beat(&p);
    write_address(&p, i & 1, 256 * i, 8);
    for (unsigned n = 1; n <= 8; ++n)
      write_beat(&p, (uint8_t)n, 0xFFFF, n == 8);
    next_answer(&p);
  }
  return p;
}

/* Where nothing else is under way, each cycle with a refusal is one more; without stalls there is
 * none, nor in a memory that waits for its own latency and bandwidth. */
static void refusals_are_counted(void **state) {
  (void)state;
  static const unsigned widths[] = {16, 8, 2};
  for (unsigned k = 0; k < 3; ++k) {
    port plain = one_by_one(widths[k], 0), stalls = one_by_one(widths[k], 30);
    assert_int_equal(plain.refused, 0);
    assert_true(stalls.refused > 100);
    assert_int_equal(ct_axi_mem_now(stalls.mem), ct_axi_mem_now(plain.mem) + stalls.refused);
    ct_axi_mem_free(plain.mem);
    ct_axi_mem_free(stalls.mem);
  }
}

/* Within an ID order is kept, across IDs beats mix when stalls are on. */
static void order_within_an_id(void **state) {
  (void)state;
  port p = open_port(
      (struct ct_axi_mem_config){.latency = 500, .stall_percent = 30, .seed = ct_tb_seed()});
  for (unsigned i = 0; i < 12; ++i)
    read_burst(&p, i % 2, 4096 * (i / 2) + 256 * (i % 2), 8);
  unsigned beat[2] = {0, 0}, mixed = 0, last = 0;
  for (unsigned n = 0; n < 96; ++n) {
    next_beat(&p);
    const unsigned id = p.out.rid, k = beat[id]++;
    mixed += id != last;
    last = id;
    ct_assert_same("beat", p.out.rdata,
                   ct_axi_mem_data(p.mem) + 4096 * (k / 8) + 256 * id + 16 * (k % 8), 16);
    assert_int_equal(p.out.rlast, k % 8 == 7);
  }
  assert_true(mixed > 20);
  assert_int_equal(ct_axi_mem_pending(p.mem, 0) + ct_axi_mem_pending(p.mem, 1), 0);
  ct_axi_mem_free(p.mem);
}

static void faults(void **state) {
  (void)state;
  port p = open_port((struct ct_axi_mem_config){.latency = 9});
  assert_true(ct_axi_mem_fault(p.mem, CT_FAULT_AXI_READ, 1024 + 40));
  assert_true(ct_axi_mem_fault(p.mem, CT_FAULT_AXI_HANG, 2048));
  static const uint8_t want[] = {0, 2, 0, 3}; /* not covered, hit, used up, beyond the end */
  static const uint64_t addr[] = {1024 + 48, 1024, 1024, kBytes};
  for (int i = 0; i < 4; ++i) {
    read_burst(&p, 0, addr[i], 3);
    for (int j = 0; j < 3; ++j) {
      next_beat(&p);
      assert_int_equal(p.out.rresp, want[i] == 2 && j != 2 ? 0 : want[i]); /* on its beat alone */
    }
  }
  read_burst(&p, 0, 2048, 1);
  read_burst(&p, 0, 0, 1);
  read_burst(&p, 1, 16, 1);
  next_beat(&p);
  assert_int_equal(p.out.rid, 1); /* the other ID is answered, this one hangs with all behind it */
  for (int i = 0; i < 500; ++i) {
    cycle(&p);
    assert_false(p.out.rvalid);
  }
  assert_int_equal(ct_axi_mem_pending(p.mem, 0), 2);
  ct_axi_mem_fault(p.mem, CT_FAULT_NONE, 0);
  next_beat(&p);
  ct_assert_same("late beat", p.out.rdata, ct_axi_mem_data(p.mem) + 2048, 16);

  ct_axi_mem_fault(p.mem, CT_FAULT_AXI_WRITE, 4096);
  write_address(&p, 1, 4096, 1);
  write_beat(&p, 0x77, 0xFFFF, true);
  next_answer(&p);
  assert_int_equal(p.out.bresp, 2);
  assert_int_equal(p.out.bid, 1);
  assert_int_not_equal(ct_axi_mem_data(p.mem)[4096], 0x77);
  assert_null(ct_axi_mem_error(p.mem));
  ct_axi_mem_free(p.mem);
}

static void break_page(port *p) {
  read_burst(p, 0, 4096 - 16, 2);
}
static void break_length(port *p) {
  read_burst(p, 0, 0, 18);
}
static void break_alignment(port *p) {
  read_burst(p, 0, 8, 1);
}
static void break_id(port *p) {
  read_burst(p, 2, 0, 1);
}
static void break_outstanding(port *p) {
  for (int i = 0; i < 9; ++i)
    read_burst(p, 0, 0, 1);
}
static void break_write_page(port *p) {
  write_address(p, 0, 8192 - 32, 3);
}
static void break_last(port *p) {
  write_address(p, 0, 0, 2);
  write_beat(p, 0, 0xFFFF, true);
}
static void break_missing_last(port *p) {
  write_address(p, 0, 0, 1);
  write_beat(p, 0, 0xFFFF, false);
}
/* W is refused before there is an address: what was offered must stay. */
static void break_stable_data(port *p) {
  p->in.wvalid = true;
  cycle(p);
  p->in.wdata[2] ^= 1;
  cycle(p);
}
static void break_valid(port *p) {
  p->in.wvalid = true;
  cycle(p);
  p->in.wvalid = false;
  cycle(p);
}

static void broken_rules_are_seen(void **state) {
  (void)state;
  static void (*const rules[])(port *) = {
      break_page,       break_length, break_alignment,    break_id,          break_outstanding,
      break_write_page, break_last,   break_missing_last, break_stable_data, break_valid};
  for (unsigned i = 0; i < sizeof rules / sizeof *rules; ++i) {
    port p = open_port((struct ct_axi_mem_config){.latency = 50});
    assert_null(ct_axi_mem_error(p.mem));
    rules[i](&p);
    if (!ct_axi_mem_error(p.mem)) fail_msg("rule %u: not seen", i);
    ct_axi_mem_free(p.mem);
  }
}

static void reset_forgets(void **state) {
  (void)state;
  port p = open_port((struct ct_axi_mem_config){.latency = 5});
  read_burst(&p, 0, 0, 4);
  write_address(&p, 1, 0, 4);
  ct_axi_mem_reset(p.mem, &p.out);
  for (int i = 0; i < 100; ++i) {
    cycle(&p);
    assert_false(p.out.rvalid || p.out.bvalid || p.out.wready);
  }
  ct_axi_mem_free(p.mem);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(latency_and_bandwidth), cmocka_unit_test(refusals_are_counted),
      cmocka_unit_test(order_within_an_id),    cmocka_unit_test(faults),
      cmocka_unit_test(broken_rules_are_seen), cmocka_unit_test(reset_forgets),
  };
  return cmocka_run_group_tests_name("ct_axi_mem", tests, NULL, NULL);
}
