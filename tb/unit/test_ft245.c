/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_ft245 against a model of the chip's pins: words in both directions, with every handshake
 * stalled at random, at full rate, and with the pins driven by one side at a time.
 */
#include "ct_tb.h"

#include <stdio.h>

#include "ct_ft245_16_dut.h"
#include "ct_ft245_32_dut.h"
#include "ct_ft245_8_dut.h"

/* One view of the models, which are types of their own. */
struct pins {
  void *dut;
  void (*eval)(void *dut);
  void (*tick)(void *dut);
  void (*close)(void *dut);
  uint8_t *rxf_n, *txe_n, *oe_n, *rd_n, *wr_n, *siwu_n, *drive, *be_in, *be_out;
  uint8_t *rx_valid, *rx_ready, *rx_keep, *tx_valid, *tx_ready, *tx_keep, *tx_flush;
  void *data_in, *data_out, *rx_data, *tx_data;
  unsigned bytes; /* of a word */
};

struct bench {
  struct pins p;
  ct_rng rng;
  ct_stall rxf, txe, rx, tx;                 /* the chip's two directions, the streams' two */
  uint32_t to_read, read, to_write, written; /* words by number */
  bool oe, drive;                            /* in the cycle before */

  unsigned flush_percent, flushes, turns;
};

#define VARIANT(name, size)                               \
  CT_TB_ANY(name)                                         \
  CT_TB_ANY_CLOCK(name)                                   \
  static struct pins name##_open(void) {                  \
    name##_dut *d = name##_new(ct_tb_trace());            \
    *d->rxf_n_i = *d->txe_n_i = 1;                        \
    *d->tx_valid_i = *d->rx_ready_i = *d->tx_flush_i = 0; \
    name##_reset(d, 2);                                   \
    const struct pins p = {.dut = d,                      \
                           .eval = name##_eval_any,       \
                           .tick = name##_tick_any,       \
                           .close = name##_free_any,      \
                           .rxf_n = d->rxf_n_i,           \
                           .txe_n = d->txe_n_i,           \
                           .oe_n = d->oe_n_o,             \
                           .rd_n = d->rd_n_o,             \
                           .wr_n = d->wr_n_o,             \
                           .siwu_n = d->siwu_n_o,         \
                           .drive = d->drive_o,           \
                           .be_in = d->be_i,              \
                           .be_out = d->be_o,             \
                           .rx_valid = d->rx_valid_o,     \
                           .rx_ready = d->rx_ready_i,     \
                           .rx_keep = d->rx_keep_o,       \
                           .tx_valid = d->tx_valid_i,     \
                           .tx_ready = d->tx_ready_o,     \
                           .tx_keep = d->tx_keep_i,       \
                           .tx_flush = d->tx_flush_i,     \
                           .data_in = d->data_i,          \
                           .data_out = d->data_o,         \
                           .rx_data = d->rx_data_o,       \
                           .tx_data = d->tx_data_i,       \
                           .bytes = size};                \
    return p;                                             \
  }

VARIANT(ct_ft245_8, 1)
VARIANT(ct_ft245_16, 2)
VARIANT(ct_ft245_32, 4)

static struct pins (*const variants[])(void) = {ct_ft245_8_open, ct_ft245_16_open,
                                                ct_ft245_32_open};
enum { kVariants = sizeof variants / sizeof variants[0], kTurn = 512, kLinger = 32 };

/* Word n of a direction, and which of its bytes count. */
static uint32_t word(uint32_t n, bool to_chip) {
  return (n + 1) * (to_chip ? 0x9E3779B1u : 0x85EBCA6Bu);
}

static uint32_t shown(const struct bench *b, uint32_t n, bool to_chip) {
  return b->p.bytes == 4 ? word(n, to_chip) : word(n, to_chip) & ((1u << 8 * b->p.bytes) - 1);
}

static uint8_t keep(const struct bench *b, uint32_t n) {
  return b->p.bytes == 1 ? 1 : (uint8_t)((word(n, true) >> 7 | 1) & ((1u << b->p.bytes) - 1));
}

static uint32_t get(const struct bench *b, const void *port) {
  return b->p.bytes == 1   ? *(const uint8_t *)port
         : b->p.bytes == 2 ? *(const uint16_t *)port
                           : *(const uint32_t *)port;
}

static void set(const struct bench *b, void *port, uint32_t value) {
  if (b->p.bytes == 1)
    *(uint8_t *)port = (uint8_t)value;
  else if (b->p.bytes == 2)
    *(uint16_t *)port = (uint16_t)value;
  else
    *(uint32_t *)port = value;
}

static void drive_inputs(struct bench *b) {
  const struct pins *p = &b->p;
  *p->rxf_n = ct_stall_next(&b->rxf);
  *p->txe_n = ct_stall_next(&b->txe);
  *p->rx_ready = !ct_stall_next(&b->rx);
  /* The chip shows its next word while it drives the pins, and nothing useful while it does not. */
  set(b, p->data_in, *p->oe_n ? (uint32_t)ct_rng_u64(&b->rng) : shown(b, b->to_read, false));
  *p->be_in = *p->oe_n ? (uint8_t)(p->bytes == 1) : keep(b, b->to_read);
  if (!*p->tx_valid) {
    *p->tx_valid = !ct_stall_next(&b->tx);
    *p->tx_flush = ct_rng_percent(&b->rng, b->flush_percent);
  }
  set(b, p->tx_data, shown(b, b->to_write, true));
  *p->tx_keep = keep(b, b->to_write);
}

/* The pins: one side at a time, a cycle without any between two. */
static void check_pins(struct bench *b) {
  const struct pins *p = &b->p;
  const bool oe = !*p->oe_n, drive = *p->drive;
  assert_false(oe && (drive || b->drive));
  assert_false(drive && b->oe);
  if (!*p->rd_n) assert_true(oe && b->oe);
  if (!*p->wr_n) assert_true(drive);
  b->turns += (oe && !b->oe) || (drive && !b->drive);
  b->oe = oe;
  b->drive = drive;
}

/* A cycle: what moves at its edge is what the pins and handshakes say before. */
static void cycle(struct bench *b) {
  const struct pins *p = &b->p;
  drive_inputs(b);
  p->eval(p->dut);
  check_pins(b);
  if (!*p->rd_n && !*p->rxf_n) ++b->to_read;
  if (*p->rx_valid && *p->rx_ready) {
    assert_true(b->read < b->to_read);
    assert_int_equal(get(b, p->rx_data), shown(b, b->read, false));
    assert_int_equal(*p->rx_keep, keep(b, b->read));
    ++b->read;
  }
  if (!*p->wr_n && !*p->txe_n) {
    assert_true(b->written < b->to_write);
    assert_int_equal(get(b, p->data_out), shown(b, b->written, true));
    assert_int_equal(*p->be_out, keep(b, b->written));
    ++b->written;
  }
  b->flushes += !*p->siwu_n;
  const bool moves = *p->tx_valid && *p->tx_ready;
  p->tick(p->dut);
  b->to_write += moves;
  if (moves) *p->tx_valid = 0;
}

static void cycles(struct bench *b, unsigned n) {
  while (n--)
    cycle(b);
}

/* Percent of the cycles in which the chip's and the streams' two directions stand still. */
static struct bench begin(int variant, unsigned rxf, unsigned txe, unsigned rx, unsigned tx,
                          unsigned mean) {
  struct bench b = {.p = variants[variant](), .rng = ct_rng_make(1)};
  b.rxf = ct_stall_make(2, rxf, mean);
  b.txe = ct_stall_make(3, txe, mean);
  b.rx = ct_stall_make(4, rx, mean);
  b.tx = ct_stall_make(5, tx, mean);
  return b;
}

static void end(struct bench *b) {
  b->p.close(b->p.dut);
}

/* Whatever stands still, for however long: every word once, in order; and what is in there comes
 * out. */
static void no_word_is_lost_or_doubled(void **state) {
  (void)state;
  static const unsigned percents[] = {0, 10, 50, 90, 99};
  ct_rng rng = ct_rng_make(9);
  for (int v = 0; v < kVariants; ++v) {
    for (unsigned round = 0; round < 120; ++round) {
      struct bench b = begin(v, percents[ct_rng_below(&rng, 5)], percents[ct_rng_below(&rng, 5)],
                             percents[ct_rng_below(&rng, 5)], percents[ct_rng_below(&rng, 5)],
                             1 + ct_rng_below(&rng, 30));
      b.flush_percent = ct_rng_below(&rng, 50);
      cycles(&b, 3000);
      b.rxf.percent = b.tx.percent = 100;
      b.rx.percent = b.txe.percent = 0;
      cycles(&b, 400);
      assert_int_equal(b.read, b.to_read);
      assert_int_equal(b.written, b.to_write);
      end(&b);
    }
  }
}

/* One direction alone: a word in every cycle, but for the few in which it begins. */
static void full_rate(void **state) {
  (void)state;
  for (int v = 0; v < kVariants; ++v) {
    struct bench in = begin(v, 0, 100, 0, 100, 1), out = begin(v, 100, 0, 100, 0, 1);
    cycles(&in, 10000);
    cycles(&out, 10000);
    assert_true(in.read >= 9990);
    assert_true(out.written >= 9990);
    assert_int_equal(in.turns, 1);
    end(&in);
    end(&out);
  }
}

/* Both directions: they share the pins evenly, and the turns cost 7 cycles in 1024. */
static void both_directions(void **state) {
  (void)state;
  struct bench b = begin(0, 0, 0, 0, 0, 1);
  cycles(&b, 100000);
  printf("both directions: %u + %u words in 100000 cycles\n", b.read, b.written);
  assert_true(b.read + b.written >= 99000);
  assert_true(b.read > 49000 && b.written > 49000);
  end(&b);
}

/* A direction that cannot go on does not keep the other from the pins. */
static void a_stuck_direction_gives_way(void **state) {
  (void)state;
  struct bench b = begin(0, 0, 0, 100, 0, 1); /* nobody takes what is read */
  cycles(&b, 2000);
  assert_true(b.written > 1900);
  end(&b);
  b = begin(0, 0, 100, 0, 0, 1); /* the chip takes nothing */
  cycles(&b, 2000);
  assert_true(b.read > 1900);
  end(&b);
}

/* A pulse of one cycle when the flushed word has gone and Linger cycles have passed; none in a
 * stream, and one in its end only. */
static void flushes(void **state) {
  (void)state;
  struct bench b = begin(0, 100, 0, 100, 0, 1);
  b.flush_percent = 100;
  cycles(&b, 1000);
  assert_int_equal(b.flushes, 0);
  b.tx.percent = 100;
  cycles(&b, kLinger + 20);
  assert_int_equal(b.flushes, 1);
  assert_int_equal(b.written, b.to_write);
  cycles(&b, 1000);
  assert_int_equal(b.flushes, 1);
  /* Words without the mark are left to the chip's timer. */
  b.tx.percent = b.flush_percent = 0;
  cycles(&b, 10);
  b.tx.percent = 100;
  cycles(&b, 1000);
  assert_int_equal(b.flushes, 1);
  /* While the chip takes nothing, a flush waits. */
  b.txe.percent = 100;
  b.tx.percent = 0;
  b.flush_percent = 100;
  cycles(&b, 500);
  b.tx.percent = 100;
  cycles(&b, 500);
  assert_int_equal(b.flushes, 1);
  b.txe.percent = 0;
  cycles(&b, 500);
  assert_int_equal(b.flushes, 2);
  end(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_word_is_lost_or_doubled),
      cmocka_unit_test(full_rate),
      cmocka_unit_test(both_directions),
      cmocka_unit_test(a_stuck_direction_gives_way),
      cmocka_unit_test(flushes),
  };
  return cmocka_run_group_tests_name("ct_ft245", tests, NULL, NULL);
}
