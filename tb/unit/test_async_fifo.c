/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_async_fifo between two clocks that have nothing to do with each other: random periods and
 * jitter, stalls on both sides, resets of one side. Edges are events in picoseconds. A pointer that
 * changes while the other clock samples it is not modelled: tb/formal/ct_async_fifo.proof shows
 * that only one bit of it can be in doubt.
 */
#include "ct_tb.h"

#include <stdio.h>

#include "ct_async_fifo_d2_dut.h"
#include "ct_async_fifo_d8_dut.h"
#include "ct_async_fifo_s3_dut.h"

/* One side's clock. */
typedef struct {
  uint64_t next;   /* when its next rising edge is */
  uint32_t period; /* mean */
  uint32_t jitter; /* an edge is off by less than this; under half the period */
  ct_rng rng;
  uint64_t edges;
} clock_side;

/* One view of the models, which are types of their own. */
typedef struct {
  void *dut;
  void (*eval)(void *dut);
  void (*close)(void *dut);
  uint8_t *wclk, *wrst_n, *wvalid, *wready;
  uint8_t *rclk, *rrst_n, *rvalid, *rready;
  uint32_t *wdata, *rdata;
  unsigned depth;
  clock_side w, r;
  ct_stall offer, accept;
  uint32_t sent, received; /* word n carries word(n) */
} bench;

#define VARIANT(name, words)                   \
  CT_TB_ANY(name)                              \
  static bench name##_open(void) {             \
    name##_dut *d = name##_new(ct_tb_trace()); \
    const bench b = {.dut = d,                 \
                     .eval = name##_eval_any,  \
                     .close = name##_free_any, \
                     .wclk = d->wclk_i,        \
                     .wrst_n = d->wrst_ni,     \
                     .wvalid = d->wvalid_i,    \
                     .wready = d->wready_o,    \
                     .rclk = d->rclk_i,        \
                     .rrst_n = d->rrst_ni,     \
                     .rvalid = d->rvalid_o,    \
                     .rready = d->rready_i,    \
                     .wdata = d->wdata_i,      \
                     .rdata = d->rdata_o,      \
                     .depth = words};          \
    return b;                                  \
  }

VARIANT(ct_async_fifo_d2, 2)
VARIANT(ct_async_fifo_d8, 8)
VARIANT(ct_async_fifo_s3, 16)

static bench (*const variants[])(void) = {ct_async_fifo_d2_open, ct_async_fifo_d8_open,
                                          ct_async_fifo_s3_open};
enum { kVariants = sizeof(variants) / sizeof(variants[0]) };

static uint32_t word(uint32_t n) {
  return n * 0x9E3779B1u + 1;
}

static clock_side clock_make(uint64_t stream, uint32_t period, uint32_t jitter) {
  clock_side c = {.period = period, .jitter = jitter, .rng = ct_rng_make(stream)};
  c.next = 1 + ct_rng_below(&c.rng, period);
  return c;
}

static void clock_advance(clock_side *c) {
  const uint32_t off = c->jitter ? ct_rng_below(&c->rng, c->jitter) : 0;
  c->next += c->period - c->jitter / 2 + off;
  ++c->edges;
}

static void offer_next(bench *b) {
  *b->wvalid = !ct_stall_next(&b->offer);
  *b->wdata = *b->wvalid ? word(b->sent) : 0xDEADBEEFu;
}

/* The next edge, of one clock or of both at once: what moves at it is what valid and ready say
 * before. */
static void edge(bench *b) {
  const uint64_t now = b->w.next < b->r.next ? b->w.next : b->r.next;
  const bool write = b->w.next == now;
  const bool read = b->r.next == now;
  b->eval(b->dut);
  if (read && *b->rvalid) {
    assert_true(b->sent != b->received);
    assert_int_equal(*b->rdata, word(b->received));
  }
  const bool pushed = write && *b->wvalid && *b->wready;
  const bool popped = read && *b->rvalid && *b->rready;
  if (write) *b->wclk = 1;
  if (read) *b->rclk = 1;
  b->eval(b->dut);
  *b->wclk = *b->rclk = 0;
  b->eval(b->dut);
  b->sent += pushed;
  b->received += popped;
  assert_true(b->sent - b->received <= b->depth);
  if (write) {
    clock_advance(&b->w);
    offer_next(b);
  }
  if (read) {
    clock_advance(&b->r);
    *b->rready = !ct_stall_next(&b->accept);
  }
}

static void edges(bench *b, unsigned n) {
  for (unsigned i = 0; i < n; ++i)
    edge(b);
}

/* Both sides reset, nothing offered; then so many edges. */
static void start(bench *b, unsigned offer_percent, unsigned accept_percent, uint64_t stream) {
  b->offer = ct_stall_make(stream, 100 - offer_percent, 5);
  b->accept = ct_stall_make(stream + 1, 100 - accept_percent, 4);
  *b->wclk = *b->rclk = *b->wvalid = *b->rready = 0;
  *b->wrst_n = *b->rrst_n = 0;
  b->eval(b->dut);
  assert_int_equal(*b->wready, 0);
  assert_int_equal(*b->rvalid, 0);
  *b->wrst_n = *b->rrst_n = 1;
  b->eval(b->dut);
  b->sent = b->received = 0;
}

static void random_clocks(void **state) {
  (void)state;
  static const unsigned percents[] = {100, 50, 10};
  ct_rng rng = ct_rng_make(1);
  for (int v = 0; v < kVariants; ++v) {
    for (unsigned k = 0; k < 27; ++k) {
      bench b = variants[v]();
      const uint32_t wp = 2000 + ct_rng_below(&rng, k % 3 == 0 ? 500 : 30000);
      const uint32_t rp = 2000 + ct_rng_below(&rng, k % 3 == 0 ? 500 : 30000);
      b.w = clock_make(100 + k, wp, k % 2 ? wp / 3 : 0);
      b.r = clock_make(200 + k, rp, k % 2 ? rp / 3 : 0);
      start(&b, percents[k % 3], percents[k / 3 % 3], 300 + 2 * k);
      edges(&b, 12000);
      assert_true(b.received > 50);
      /* What is in there comes out. */
      b.offer.percent = 100;
      b.accept.percent = 0;
      edges(&b, 2000);
      assert_int_equal(b.sent, b.received);
      b.close(b.dut);
    }
  }
}

/* A word for every cycle of the slower clock, from 8 words on. */
static void full_rate(void **state) {
  (void)state;
  static const uint32_t periods[][2] = {{10000, 10000}, {10000, 9999}, {10000, 10001},
                                        {10000, 4000},  {4000, 10000}, {16667, 10000}};
  for (int v = 1; v < kVariants; ++v) {
    for (unsigned k = 0; k < sizeof(periods) / sizeof(periods[0]); ++k) {
      bench b = variants[v]();
      b.w = clock_make(400, periods[k][0], 0);
      b.r = clock_make(401, periods[k][1], 0);
      start(&b, 100, 100, 402);
      edges(&b, 100);
      const uint32_t before = b.received;
      const uint64_t w0 = b.w.edges, r0 = b.r.edges;
      edges(&b, 20000);
      const uint64_t w = b.w.edges - w0, r = b.r.edges - r0;
      const uint64_t slower = w < r ? w : r;
      assert_true(b.received - before + 2 >= slower);
      b.close(b.dut);
    }
  }
}

/* One side is reset in the middle of the traffic, for a time that has nothing to do with either
 * clock. */
static void resets_of_one_side(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  for (int v = 0; v < kVariants; ++v) {
    bench b = variants[v]();
    b.w = clock_make(500, 7000, 2000);
    b.r = clock_make(501, 3000 + ct_rng_below(&rng, 9000), 900);
    start(&b, 80, 60, 502);
    for (unsigned round = 0; round < 400; ++round) {
      edges(&b, ct_rng_below(&rng, 60));
      uint8_t *const side = round % 2 ? b.wrst_n : b.rrst_n;
      *side = 0;
      b.eval(b.dut);
      assert_int_equal(*b.wready, 0);
      assert_int_equal(*b.rvalid, 0);
      b.received = b.sent; /* what was in there is lost; the next word taken is the next to come */
      edges(&b, ct_rng_below(&rng, 6));
      assert_int_equal(b.received, b.sent);
      *side = 1;
    }
    edges(&b, 400);
    assert_true(b.received > 1000);
    b.close(b.dut);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_clocks),
      cmocka_unit_test(full_rate),
      cmocka_unit_test(resets_of_one_side),
  };
  return cmocka_run_group_tests_name("ct_async_fifo", tests, NULL, NULL);
}
