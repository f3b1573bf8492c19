/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_sdram: random traffic at three clocks against a chip that checks every rule; the share of the
 * pins' rate that long streams get; that each rule of the chip is kept to the cycle; and broken
 * copies of the controller, each of which must be found out.
 */
#include "sdram_bench.h"

#include <stdio.h>
#include <string.h>

#define VARIANT(name, ps, delay)                                                                 \
  CT_SDRAM_GLUE(name)                                                                            \
  static bool name##_failed_any(void *v) {                                                       \
    return name##_take_error(v);                                                                 \
  }                                                                                              \
  static struct sdram_dut name##_open(void) {                                                    \
    name##_dut *d = name##_new(ct_tb_trace());                                                   \
    *d->s_axi_awvalid_i = *d->s_axi_wvalid_i = *d->s_axi_arvalid_i = 0;                          \
    name##_reset(d, 2);                                                                          \
    name##_expect_errors(d, true);                                                               \
    const struct sdram_dut dut = {                                                               \
        d, name##_outputs_any, name##_tick_any, name##_close_any, name##_failed_any, ps, delay}; \
    return dut;                                                                                  \
  }

#include "ct_sdram_100_dut.h"
#include "ct_sdram_133_dut.h"
#include "ct_sdram_50_dut.h"
VARIANT(ct_sdram_100, 10000, 0)
VARIANT(ct_sdram_133, 7519, 0)
VARIANT(ct_sdram_50, 20000, 1)

static struct sdram_dut (*const variants[])(void) = {ct_sdram_100_open, ct_sdram_133_open,
                                                     ct_sdram_50_open};
static const unsigned megahertz[] = {100, 133, 50};
enum { kVariants = sizeof(variants) / sizeof(variants[0]) };

static void no_fault(struct sdram_result r) {
  if (r.fault) fail_msg("%s", r.fault);
}

static const struct sdram_traffic kinds[] = {
    {.read_percent = 50, .rows = 3, .bursts = 1500, .strobes = true},
    {.read_percent = 50,
     .rows = 2,
     .bursts = 1500,
     .strobes = true,
     .stall_percent = {20, 60, 20, 30, 60}},
    {.read_percent = 30, .bursts = 1500, .strobes = true, .stall_percent = {50, 10, 50, 10, 50}},
    {.read_percent = 60,
     .bursts = 1500,
     .wild_percent = 20,
     .rows = 8,
     .stall_percent = {90, 20, 5, 80, 5}},
    {.read_percent = 50, .bursts = 3000, .rows = 3, .beats = 1, .strobes = true},
    {.read_percent = 50, .bursts = 600, .rows = 3, .stall_percent = {97, 50, 97, 50, 50}},
};
enum { kKinds = sizeof(kinds) / sizeof(kinds[0]) };

static void random_traffic(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v)
    for (unsigned k = 0; k < kKinds; ++k)
      no_fault(sdram_run(variants[v](), NULL, &kinds[k], 10 * v + k));
}

/* Percent of the cycles in which a word moves, from the first beat of a stream to its last. */
static double share(unsigned v, struct sdram_traffic traffic) {
  const struct sdram_result r = sdram_run(variants[v](), NULL, &traffic, 100 + v);
  no_fault(r);
  const double percent = 100.0 * 8.0 * (double)(r.beats - 1) / (double)r.cycles;
  printf(
      "  %3u MHz, bursts of %2u, %3u %% reads, %-10s %5.1f %% of the pins' rate; longest read "
      "%llu, write %llu cycles\n",
      megahertz[v], traffic.beats, traffic.read_percent,
      traffic.sequential ? "in order" : "anywhere", percent, (unsigned long long)r.longest_read,
      (unsigned long long)r.longest_write);
  return percent;
}

static void long_streams_fill_the_pins(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned reads = 0; reads <= 100; reads += 100) {
      for (uint32_t beats = 16; beats <= 17; ++beats) {
        const struct sdram_traffic t = {
            .read_percent = reads, .sequential = true, .beats = beats, .bursts = 1000};
        assert_true(share(v, t) >= 90.0);
      }
    }
    share(v, (struct sdram_traffic){
                 .read_percent = 50, .sequential = true, .beats = 16, .bursts = 1000});
    share(v, (struct sdram_traffic){.read_percent = 100, .beats = 1, .bursts = 2000});
    share(v, (struct sdram_traffic){.read_percent = 50, .beats = 16, .bursts = 1000});
  }
}

/* The chip of another maker, which asks for a little more in one respect than the controller was
 * told: that rule is broken. One that asks for just what the controller keeps (in cycles of 10 ns)
 * finds nothing. */
#define RULE(name, ps, kept, more) \
  { name, offsetof(struct ct_sdram_chip_config, ps), kept, more }
static const struct {
  const char *rule;
  size_t field;
  uint32_t kept, more;
} rules[] = {
    RULE("tRCD", rcd_ps, 20000, 1),
    RULE("tRP", rp_ps, 20000, 1),
    RULE("tRFC", rfc_ps, 70000, 1),
    RULE("tWR: PRECHARGE too soon", wr_ps, 20000, 1),
    RULE("tWR: PRECHARGE too few", wr_cycles, 2, 1),
    RULE("tRAS", ras_ps, 100000, 1),
    RULE("tRC:", rc_ps, 120000, 1),
    RULE("tRRD", rrd_ps, 40000, 20001), /* 40 ns is the bound, 60 what short bursts show */
    RULE("refreshes are late", refresh_ps, 7812500, (uint32_t)-700000),
    RULE("power-up: too few", power_up_refresh, 8, 1),
    RULE("in power-up", power_up_us, 200, 1),
};
#undef RULE

static void every_rule_is_checked(void **state) {
  (void)state;
  const struct sdram_traffic t = {.read_percent = 50, .rows = 3, .beats = 1, .bursts = 3000};
  for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); ++i) {
    for (unsigned broken = 0; broken < 2; ++broken) {
      struct ct_sdram_chip_config chip = ct_sdram_chip_default(10000);
      const uint32_t asks = rules[i].kept + (broken ? rules[i].more : 0);
      memcpy((char *)&chip + rules[i].field, &asks, sizeof asks);
      const struct sdram_result r = sdram_run(ct_sdram_100_open(), &chip, &t, 200 + i);
      if (!broken) no_fault(r);
      if (broken && (!r.fault || !strstr(r.fault, rules[i].rule)))
        fail_msg("%s: %s", rules[i].rule, r.fault ? r.fault : "no fault");
    }
  }
}

/* Copies of the controller, each with one fault (benches.mk): one of the kinds of traffic finds it.
 */
#include "ct_sdram_dqm_dut.h"
#include "ct_sdram_gap_dut.h"
#include "ct_sdram_late_dut.h"
#include "ct_sdram_rcd_dut.h"
#include "ct_sdram_room_dut.h"
#include "ct_sdram_row_dut.h"
#include "ct_sdram_strobe_dut.h"
#include "ct_sdram_turn_dut.h"
#include "ct_sdram_wild_dut.h"
#include "ct_sdram_wr_dut.h"
#include "ct_sdram_wr_ns_dut.h"
VARIANT(ct_sdram_rcd, 10000, 0)
VARIANT(ct_sdram_gap, 10000, 0)
VARIANT(ct_sdram_wr, 10000, 0)
VARIANT(ct_sdram_wr_ns, 20000, 1)
VARIANT(ct_sdram_row, 10000, 0)
VARIANT(ct_sdram_late, 10000, 0)
VARIANT(ct_sdram_strobe, 10000, 0)
VARIANT(ct_sdram_dqm, 10000, 0)
VARIANT(ct_sdram_wild, 10000, 0)
VARIANT(ct_sdram_room, 10000, 0)
VARIANT(ct_sdram_turn, 10000, 0)

static const struct {
  const char *fault;
  struct sdram_dut (*open)(void);
} broken_copies[] = {
    {"tRCD a cycle short", ct_sdram_rcd_open},
    {"no cycle between the chip's data and ours", ct_sdram_gap_open},
    {"tWR a cycle short", ct_sdram_wr_open},
    {"tWR as its nanoseconds say, one cycle at 50 MHz", ct_sdram_wr_ns_open},
    {"a bank is used with whatever row is open", ct_sdram_row_open},
    {"a refresh every 65 ms / 8192", ct_sdram_late_open},
    {"strobes only for the first word", ct_sdram_strobe_open},
    {"DQM low a cycle short", ct_sdram_dqm_open},
    {"writes outside the memory write", ct_sdram_wild_open},
    {"reads without room for their beats", ct_sdram_room_open},
    {"reads always go first", ct_sdram_turn_open},
};

static void broken_copies_are_found_out(void **state) {
  (void)state;
  static const struct sdram_traffic more[] = {
      {.read_percent = 60, .bursts = 4000, .rows = 3, .stall_percent = {0, 90, 0, 0, 0}},
      {.read_percent = 80, .bursts = 15000, .rows = 3, .beats = 1},
  };
  for (unsigned i = 0; i < sizeof(broken_copies) / sizeof(broken_copies[0]); ++i) {
    const char *fault = NULL;
    for (unsigned k = 0; k < kKinds && !fault; ++k)
      fault = sdram_run(broken_copies[i].open(), NULL, &kinds[k], 300 + k).fault;
    for (unsigned k = 0; k < 2 && !fault; ++k)
      fault = sdram_run(broken_copies[i].open(), NULL, &more[k], 310 + k).fault;
    printf("  %s: %s\n", broken_copies[i].fault, fault ? fault : "not found out");
    assert_non_null(fault);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_traffic),
      cmocka_unit_test(long_streams_fill_the_pins),
      cmocka_unit_test(every_rule_is_checked),
      cmocka_unit_test(broken_copies_are_found_out),
  };
  return cmocka_run_group_tests_name("ct_sdram", tests, NULL, NULL);
}
