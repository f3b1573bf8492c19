/* SPDX-License-Identifier: Apache-2.0 */
/* ct_fifo with 1, 4 and 5 words: order, count, full and empty, against a counting model. */
#include "ct_tb.h"

#include "ct_fifo_d1_dut.h"
#include "ct_fifo_d4_dut.h"
#include "ct_fifo_d5_dut.h"

/* One view of the three models, which are types of their own. */
typedef struct {
  void *dut;
  void (*eval)(void *dut);
  void (*tick)(void *dut);
  void (*close)(void *dut);
  uint8_t *valid_i, *ready_o, *valid_o, *ready_i, *count_o;
  uint32_t *data_i, *data_o;
  unsigned depth;
  uint32_t sent,
      received; /* the model: word n carries word(n), so these two numbers are its whole state */
} bench;

#define VARIANT(name, words)                   \
  CT_TB_ANY(name)                              \
  CT_TB_ANY_CLOCK(name)                        \
  static bench name##_open(void) {             \
    name##_dut *d = name##_new(ct_tb_trace()); \
    *d->valid_i = 0;                           \
    *d->ready_i = 0;                           \
    name##_reset(d, 2);                        \
    const bench b = {d,                        \
                     name##_eval_any,          \
                     name##_tick_any,          \
                     name##_free_any,          \
                     d->valid_i,               \
                     d->ready_o,               \
                     d->valid_o,               \
                     d->ready_i,               \
                     d->count_o,               \
                     d->data_i,                \
                     d->data_o,                \
                     words,                    \
                     0,                        \
                     0};                       \
    return b;                                  \
  }

VARIANT(ct_fifo_d1, 1)
VARIANT(ct_fifo_d4, 4)
VARIANT(ct_fifo_d5, 5)

static bench (*const variants[])(void) = {ct_fifo_d1_open, ct_fifo_d4_open, ct_fifo_d5_open};
enum { kVariants = sizeof(variants) / sizeof(variants[0]) };

static uint32_t word(uint32_t n) {
  return n * 0x9E3779B1u + 1;
}

/* Driver and monitor of one cycle, with every output compared. */
static void cycle(bench *b, bool offer, bool accept) {
  const unsigned held = b->sent - b->received;
  *b->valid_i = offer;
  *b->data_i = offer ? word(b->sent) : 0xDEADBEEFu;
  *b->ready_i = accept;
  b->eval(b->dut);
  assert_int_equal(*b->count_o, held);
  assert_int_equal(*b->ready_o, held < b->depth);
  assert_int_equal(*b->valid_o, held > 0);
  if (held) assert_int_equal(*b->data_o, word(b->received));
  b->tick(b->dut);
  if (held && accept) ++b->received;
  if (offer && held < b->depth) ++b->sent;
}

static void fills_and_drains(void **state) {
  (void)state;
  for (int v = 0; v < kVariants; ++v) {
    bench b = variants[v]();
    for (int round = 0; round < 3; ++round) {
      for (unsigned i = 0; i < b.depth + 2; ++i)
        cycle(&b, true, false);
      assert_int_equal(b.sent - b.received, b.depth);
      for (unsigned i = 0; i < b.depth + 2; ++i)
        cycle(&b, false, true);
      assert_int_equal(b.sent, b.received);
    }
    b.close(b.dut);
  }
}

static void streams(void **state) {
  (void)state;
  for (int v = 0; v < kVariants; ++v) {
    bench b = variants[v]();
    for (int i = 0; i < 1000; ++i)
      cycle(&b, true, true);
    assert_int_equal(b.sent, b.depth == 1 ? 500 : 1000);
    b.close(b.dut);
  }
}

static void random_stalls(void **state) {
  (void)state;
  static const unsigned percents[] = {10, 50, 90};
  for (int v = 0; v < kVariants; ++v) {
    for (unsigned k = 0; k < 9; ++k) {
      bench b = variants[v]();
      ct_stall in = ct_stall_make(2 * k, percents[k % 3], 1 + k);
      ct_stall out = ct_stall_make(2 * k + 1, percents[k / 3], 4);
      for (int i = 0; i < 5000; ++i)
        cycle(&b, !ct_stall_next(&in), !ct_stall_next(&out));
      assert_true(b.received > 20);
      b.close(b.dut);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fills_and_drains),
      cmocka_unit_test(streams),
      cmocka_unit_test(random_stalls),
  };
  return cmocka_run_group_tests_name("ct_fifo", tests, NULL, NULL);
}
