/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of waits from the events of ct_core's probe, made up here cycle by cycle. */
#include "ct_tb.h"

#include <stdlib.h>

#include "host/transports/sim/ct_sim_probe.h"

struct watch {
  struct ct_probe probe;
  struct ct_sim_probe sim;
  uint64_t cycle;
};

static struct watch *open_watch(void) {
  struct watch *w = calloc(1, sizeof *w);
  assert_non_null(w);
  w->sim.to = &w->probe;
  return w;
}

static uint64_t bit(enum ct_unit u, enum ct_probe_event e, unsigned c) {
  return UINT64_C(1) << (CT_PROBE_UNIT_BITS * u + 2 * e + c);
}

static void cycles(struct watch *w, unsigned n, uint64_t events) {
  while (n--) {
    ct_sim_probe_cycle(&w->sim, w->cycle, events);
    ++w->cycle;
  }
}

/* Ready while the other context works, then while nothing moves, then granted. */
static void waits_by_cause(void **state) {
  (void)state;
  struct watch *w = open_watch();
  for (unsigned u = CT_UNIT_WRITE; u < CT_UNIT_COUNT; ++u) {
    const uint64_t ready = bit(u, CT_PROBE_READY, 0);
    const struct ct_probe_side *s = &w->probe.side[u][0];
    cycles(w, 7, ready | bit(u, CT_PROBE_USED, 1));
    cycles(w, 1, ready | bit(u, CT_PROBE_GRANT, 1));
    cycles(w, 5, ready);
    cycles(w, 3, ready | bit(u, CT_PROBE_USED, 0));
    assert_int_equal(s->served, 0);
    cycles(w, 1, ready | bit(u, CT_PROBE_GRANT, 0));
    cycles(w, 1, ready | bit(u, CT_PROBE_GRANT, 0)); /* the next one, at once */
    assert_int_equal(s->served, 2);
    assert_int_equal(s->peer.max, 8);
    assert_int_equal(s->peer.sum, 8);
    assert_int_equal(s->rest.sum, 8);
    assert_int_equal(s->peer.bin[8], 1);
    assert_int_equal(s->peer.bin[0], 1);
    assert_int_equal(s->rest.bin[8], 1);
    assert_int_equal(s->used, 3);
  }
  free(w);
}

/* A read is served by its first beat, in the order of grants; the peer's beats meanwhile count. */
static void reads_until_their_first_beat(void **state) {
  (void)state;
  struct watch *w = open_watch();
  const uint64_t ready = bit(CT_UNIT_READ, CT_PROBE_READY, 0),
                 grant = ready | bit(CT_UNIT_READ, CT_PROBE_GRANT, 0),
                 beat = bit(CT_UNIT_READ, CT_PROBE_USED, 0),
                 last = beat | bit(CT_UNIT_READ, CT_PROBE_ACCEPT, 0),
                 peer = bit(CT_UNIT_READ, CT_PROBE_USED, 1);
  const struct ct_probe_side *s = &w->probe.side[CT_UNIT_READ][0];
  cycles(w, 2, ready | peer); /* not granted yet */
  cycles(w, 1, grant);
  cycles(w, 1, grant | peer); /* a second read */
  cycles(w, 10, 0);
  cycles(w, 4, peer);
  cycles(w, 1, beat);
  assert_int_equal(s->served, 1);
  assert_int_equal(s->peer.max, 2 + 1 + 4);
  assert_int_equal(s->rest.max, 1 + 10);
  cycles(w, 2, beat);
  cycles(w, 1, last);
  cycles(w, 3, peer);
  cycles(w, 1, last); /* a burst of one beat */
  assert_int_equal(s->served, 2);
  assert_int_equal(s->peer.sum, 7 + 1 + 4 + 3);
  assert_int_equal(s->rest.sum, 11 + 10 + 4);
  assert_int_equal(s->used, 5);
  assert_int_equal(s->peer.bin[8], 1);
  free(w);
}

/* What does not fit the histogram is in its last bin; the maximum is true. */
static void long_waits(void **state) {
  (void)state;
  struct watch *w = open_watch();
  const uint64_t ready = bit(CT_UNIT_VS, CT_PROBE_READY, 1);
  cycles(w, 2 * CT_PROBE_BINS, ready | bit(CT_UNIT_VS, CT_PROBE_USED, 0));
  cycles(w, 1, ready | bit(CT_UNIT_VS, CT_PROBE_GRANT, 1));
  assert_int_equal(w->probe.side[CT_UNIT_VS][1].peer.max, 2 * CT_PROBE_BINS);
  assert_int_equal(w->probe.side[CT_UNIT_VS][1].peer.bin[CT_PROBE_BINS - 1], 1);
  assert_int_equal(w->probe.cycles, 2 * CT_PROBE_BINS + 1);
  free(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(waits_by_cause),
      cmocka_unit_test(reads_until_their_first_beat),
      cmocka_unit_test(long_waits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
