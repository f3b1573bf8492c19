/* SPDX-License-Identifier: Apache-2.0 */
/* ct_skid: order, full throughput, registered handshakes. */
#include "ct_tb.h"

#include "ct_skid_dut.h"

/* The driver offers the counter as data, the monitor expects the counter back: every loss, copy or
 * swap shows. */
typedef struct {
  ct_skid_dut *dut;
  uint32_t sent, received;
} bench;

static bench open_bench(void) {
  bench b = {.dut = ct_skid_new(ct_tb_trace())};
  *b.dut->valid_i = 0;
  *b.dut->ready_i = 0;
  ct_skid_reset(b.dut, 2);
  return b;
}

static void cycle(bench *b, bool offer, bool accept) {
  ct_skid_dut *d = b->dut;
  const bool ready_before = *d->ready_o;
  *d->valid_i = offer;
  *d->data_i = offer ? b->sent * 0x9E3779B1u : 0xDEADBEEFu;
  *d->ready_i = accept;
  ct_skid_eval(d);
  assert_int_equal(*d->ready_o, ready_before); /* no path from an input */
  const bool out = *d->valid_o && accept;
  const uint32_t data = *d->data_o;
  if (offer && *d->ready_o) ++b->sent;
  const bool held = *d->valid_o && !accept;
  ct_skid_tick(d);
  if (out) assert_int_equal(data, b->received++ * 0x9E3779B1u);
  if (held) {
    assert_true(*d->valid_o);
    assert_int_equal(*d->data_o, data);
  }
}

static void full_throughput(void **state) {
  (void)state;
  bench b = open_bench();
  for (int i = 0; i < 1000; ++i)
    cycle(&b, true, true);
  assert_int_equal(b.sent, 1000);
  assert_int_equal(b.received, 999);
  ct_skid_free(b.dut);
}

static void holds_two_words(void **state) {
  (void)state;
  bench b = open_bench();
  for (int i = 0; i < 5; ++i)
    cycle(&b, true, false);
  assert_int_equal(b.sent, 2);
  for (int i = 0; i < 5; ++i)
    cycle(&b, false, true);
  assert_int_equal(b.received, 2);
  ct_skid_free(b.dut);
}

static void random_stalls(void **state) {
  (void)state;
  static const unsigned percents[] = {10, 50, 90};
  for (unsigned k = 0; k < 9; ++k) {
    bench b = open_bench();
    ct_stall in = ct_stall_make(2 * k, percents[k % 3], 1 + k);
    ct_stall out = ct_stall_make(2 * k + 1, percents[k / 3], 4);
    for (int i = 0; i < 5000; ++i)
      cycle(&b, !ct_stall_next(&in), !ct_stall_next(&out));
    assert_true(b.received > 20);
    for (int i = 0; i < 3; ++i)
      cycle(&b, false, true);
    assert_int_equal(b.sent, b.received);
    ct_skid_free(b.dut);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(full_throughput),
      cmocka_unit_test(holds_two_words),
      cmocka_unit_test(random_stalls),
  };
  return cmocka_run_group_tests_name("ct_skid", tests, NULL, NULL);
}
