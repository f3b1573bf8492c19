/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_uart at 3 Mbaud and the clocks of the boards: bytes from a sender that is faster or slower by
 * up to 4 %, whose edges fall anywhere between those of the clock; what is sent, edge by edge; what
 * is no byte; and copies of the receiver with a fault (benches.mk), each of which must be found
 * out. Times are in cycles of the clock.
 */
#include "ct_tb.h"

#include <stdio.h>
#include <string.h>

#include "ct_uart_25_dut.h"
#include "ct_uart_35_dut.h"
#include "ct_uart_40_dut.h"
#include "ct_uart_early_dut.h"
#include "ct_uart_late_dut.h"

enum { kBytes = 256, kRoom = 16, kFrame = 10 };

/* One view of the models, which are types of their own. */
struct uart {
  CT_TB_ANY_CALLS;
  uint8_t *rx, *tx, *rx_valid, *rx_ready, *rx_data, *tx_valid, *tx_ready, *tx_data;
  double bit; /* cycles */
  uint64_t now;
};

#define VARIANT(name, mhz)                            \
  CT_TB_ANY(name)                                     \
  CT_TB_ANY_CLOCK(name)                               \
  static struct uart name##_open(void) {              \
    name##_dut *d = name##_new(ct_tb_trace());        \
    const struct uart u = {.dut = d,                  \
                           .eval = name##_eval_any,   \
                           .tick = name##_tick_any,   \
                           .reset = name##_reset_any, \
                           .close = name##_free_any,  \
                           .rx = d->rx_i,             \
                           .tx = d->tx_o,             \
                           .rx_valid = d->rx_valid_o, \
                           .rx_ready = d->rx_ready_i, \
                           .rx_data = d->rx_data_o,   \
                           .tx_valid = d->tx_valid_i, \
                           .tx_ready = d->tx_ready_o, \
                           .tx_data = d->tx_data_i,   \
                           .bit = (mhz) / 3.0};       \
    *u.rx = 1;                                        \
    *u.rx_ready = *u.tx_valid = 0;                    \
    u.reset(u.dut, 4);                                \
    return u;                                         \
  }
VARIANT(ct_uart_25, 25)
VARIANT(ct_uart_35, 35)
VARIANT(ct_uart_40, 40)
VARIANT(ct_uart_late, 25)
VARIANT(ct_uart_early, 35)

static struct uart (*const variants[])(void) = {ct_uart_25_open, ct_uart_35_open, ct_uart_40_open};
static const unsigned megahertz[] = {25, 35, 40};
enum { kVariants = sizeof(variants) / sizeof(variants[0]) };

static double chance(ct_rng *rng) {
  return (double)(ct_rng_u64(rng) >> 11) / 9007199254740992.0;
}

/* An edge of the clock, at which the line is at `level`. True with the byte that is given. */
static bool edge(struct uart *u, bool level, bool ready, uint8_t *byte) {
  *u->rx = level;
  *u->rx_ready = ready;
  u->eval(u->dut);
  const bool gives = *u->rx_valid && ready;
  *byte = *u->rx_data;
  u->tick(u->dut);
  ++u->now;
  return gives;
}

/* The line at `level` until time `until`; whatever comes is refused. */
static void quiet(struct uart *u, bool level, double until) {
  uint8_t byte;
  while ((double)u->now < until)
    if (edge(u, level, true, &byte)) fail_msg("a byte 0x%02x that nobody sent", byte);
}

/* A sender of 256 bytes, all different, one behind the other or with the line high for up to
 * `pause` bits between them. */
struct sender {
  uint8_t bytes[kBytes];
  double bit, start, pause; /* start: when the byte under way began */
  unsigned sent;
  ct_rng rng;
};

static struct sender sender_make(const struct uart *u, double faster, double pause,
                                 uint64_t stream) {
  struct sender s = {.bit = u->bit / (1.0 + faster), .pause = pause, .rng = ct_rng_make(stream)};
  for (unsigned i = 0; i < kBytes; ++i) {
    const unsigned at = ct_rng_below(&s.rng, i + 1);
    s.bytes[i] = s.bytes[at];
    s.bytes[at] = (uint8_t)i;
  }
  s.start = (double)u->now + 20 + chance(&s.rng);
  return s;
}

static bool sender_level(struct sender *s, double now) {
  while (s->sent < kBytes && now >= s->start + kFrame * s->bit) {
    s->start += (kFrame + chance(&s->rng) * s->pause) * s->bit;
    ++s->sent;
  }
  if (s->sent == kBytes || now < s->start) return true;
  const unsigned n = (unsigned)((now - s->start) / s->bit);
  return (s->bytes[s->sent] << 1 | 0x200) >> n & 1;
}

/* NULL, or what is wrong. */
static const char *receives(struct uart u, double faster, double pause, uint64_t stream) {
  static char fault[128];
  struct sender s = sender_make(&u, faster, pause, stream);
  ct_stall stall = ct_stall_make(stream + 1, 50, 20);
  unsigned got = 0;
  bool wrong = false;
  while (!wrong && (s.sent < kBytes || (double)u.now < s.start + 200)) {
    uint8_t byte = 0;
    const bool level = sender_level(&s, (double)u.now);
    const bool ready = !ct_stall_next(&stall) || s.sent == kBytes;
    if (!edge(&u, level, ready, &byte)) continue;
    wrong = got == kBytes || byte != s.bytes[got++];
  }
  u.close(u.dut);
  if (!wrong && got == kBytes) return NULL;
  (void)snprintf(fault, sizeof fault, "%s %u, sender %+.2f %%, stream %llu",
                 wrong ? "a byte that was not sent, as number" : "bytes are lost:", got,
                 100 * faster, (unsigned long long)stream);
  return fault;
}

static const char *tolerates(struct uart (*open)(void), uint64_t stream) {
  const char *fault = NULL;
  for (int i = -8; i <= 8 && !fault; ++i, stream += 4) {
    fault = receives(open(), i * 0.005, 0, stream);
    if (!fault) fault = receives(open(), i * 0.005, 3, stream + 2);
  }
  ct_rng rng = ct_rng_make(stream);
  for (int i = ct_tb_draws(20); i > 0 && !fault; --i, stream += 2)
    fault = receives(open(), 0.08 * chance(&rng) - 0.04, 0, stream + 2);
  return fault;
}

static void senders_may_be_off_by_4_percent(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    const char *fault = tolerates(variants[v], 1000 * v);
    if (fault) fail_msg("%u MHz: %s", megahertz[v], fault);
  }
}

/* Bit n of a byte that is sent begins with the first cycle that is n bits or more behind the start
 * bit. */
static void what_is_sent_is_in_time(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    struct uart u = variants[v]();
    for (unsigned byte = 0; byte < kBytes; ++byte) {
      *u.tx_valid = 1;
      *u.tx_data = (uint8_t)byte;
      u.eval(u.dut);
      CT_TB_WHILE (!*u.tx_ready, 40) {
        assert_int_equal(*u.tx, 1);
        u.tick(u.dut);
      }
      u.tick(u.dut);
      *u.tx_valid = 0;
      for (unsigned i = 0; i < (unsigned)(kFrame * u.bit); ++i) {
        /* (A bit's length is rounded, too.) */
        const unsigned n = (unsigned)(i / u.bit), before = i ? (unsigned)((i - 0.02) / u.bit) : 0;
        const unsigned frame = byte << 1 | 0x200;
        if (*u.tx != (frame >> n & 1) && *u.tx != (frame >> before & 1))
          fail_msg("%u MHz: bit %u of 0x%02x is wrong in cycle %u", megahertz[v], n, byte, i);
        u.tick(u.dut);
      }
    }
    u.close(u.dut);
  }
}

static void a_short_low_is_no_byte(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    struct uart u = variants[v]();
    const unsigned half = (unsigned)(u.bit / 2);
    u.close(u.dut);
    for (unsigned low = 1; low <= half; ++low) {
      u = variants[v]();
      quiet(&u, true, (double)u.now + 20);
      quiet(&u, false, (double)u.now + low);
      quiet(&u, true, (double)u.now + 200);
      const char *fault = receives(u, 0, 0, 5000 + 10 * v + low);
      if (fault) fail_msg("%u MHz, after %u cycles: %s", megahertz[v], low, fault);
    }
  }
}

/* A break, or a byte whose stop bit is low, gives nothing; what comes when the line has risen is
 * received as ever. */
static void a_low_stop_bit_drops_the_byte(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    for (unsigned i = 0; i < 60; ++i) {
      struct uart u = variants[v]();
      ct_rng rng = ct_rng_make(7000 + 100 * v + i);
      const unsigned frame = ct_rng_below(&rng, kBytes) << 1;
      const double start = (double)u.now + 20 + chance(&rng);
      quiet(&u, true, start);
      for (unsigned n = 0; n < kFrame; ++n)
        quiet(&u, frame >> n & 1, start + (n + 1) * u.bit);
      quiet(&u, false, (double)u.now + ct_rng_below(&rng, 100));
      quiet(&u, true, (double)u.now + 1 + ct_rng_below(&rng, 40));
      const char *fault = receives(u, 0, 0, 8000 + 100 * v + i);
      if (fault) fail_msg("%u MHz, after 0x%02x: %s", megahertz[v], frame >> 1, fault);
    }
  }
}

/* The bytes for which there is room stay, those that come then are lost. */
static void room_is_kept(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    struct uart u = variants[v]();
    struct sender s = sender_make(&u, 0, 0, 6000 + v);
    uint8_t byte;
    while (s.sent < kRoom + 4)
      assert_false(edge(&u, sender_level(&s, (double)u.now), false, &byte));
    for (unsigned i = 0; i < kRoom; ++i) {
      assert_true(edge(&u, true, true, &byte));
      assert_int_equal(byte, s.bytes[i]);
    }
    assert_false(edge(&u, true, true, &byte));
    u.close(u.dut);
  }
}

static const struct {
  const char *fault;
  struct uart (*open)(void);
} broken_copies[] = {
    {"samples a cycle late", ct_uart_late_open},
    {"samples a cycle early", ct_uart_early_open},
};

static void broken_copies_are_found_out(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof(broken_copies) / sizeof(broken_copies[0]); ++i) {
    const char *fault = tolerates(broken_copies[i].open, 9000 + 1000 * i);
    printf("  %s: %s\n", broken_copies[i].fault, fault ? fault : "not found out");
    assert_non_null(fault);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(senders_may_be_off_by_4_percent),
      cmocka_unit_test(what_is_sent_is_in_time),
      cmocka_unit_test(a_short_low_is_no_byte),
      cmocka_unit_test(a_low_stop_bit_drops_the_byte),
      cmocka_unit_test(room_is_kept),
      cmocka_unit_test(broken_copies_are_found_out),
  };
  return cmocka_run_group_tests_name("ct_uart", tests, NULL, NULL);
}
