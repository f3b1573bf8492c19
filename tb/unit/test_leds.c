/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_leds at several clocks, by what docs/fpga.md says of lamps: each shows its own events and no
 * other's, at once, for a sixteenth to an eighth of a second after the last one; once off, it stays
 * off. The heartbeat is half a second off, half a second on, whatever happens. Times are in cycles.
 */
#include "ct_tb.h"

#include "ct_leds_1000_dut.h"
#include "ct_leds_1600_dut.h"
#include "ct_leds_32_dut.h"

enum { LAMPS = 7, RESET = 3 };

/* One view of the models, which are types of their own. */
struct leds {
  CT_TB_ANY_CALLS;
  uint8_t *rst_n, *event, *lamp, *beat;
  unsigned lamps, hz;
};

#define VARIANT(name, lamps_, hz_)                                                        \
  CT_TB_ANY(name)                                                                         \
  CT_TB_ANY_CLOCK(name)                                                                   \
  static struct leds name##_open(void) {                                                  \
    name##_dut *d = name##_new(ct_tb_trace());                                            \
    const struct leds l = {CT_TB_ANY_OF(name, d), .lamps = lamps_,     .hz = hz_,         \
                           .rst_n = d->rst_ni,    .event = d->event_i, .lamp = d->lamp_o, \
                           .beat = d->beat_o};                                            \
    *l.event = 0;                                                                         \
    l.reset(l.dut, RESET);                                                                \
    return l;                                                                             \
  }
VARIANT(ct_leds_32, 1, 32)
VARIANT(ct_leds_1000, 7, 1000)
VARIANT(ct_leds_1600, 4, 1600)

static struct leds (*const variants[])(void) = {ct_leds_32_open, ct_leds_1000_open,
                                                ct_leds_1600_open};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* ---- The model ------------------------------------------------------------------------------- */

/* What the lamps' meaning says, not how they are made: a lamp must be on, must be off, or may go
 * out, by how long ago its last event was. */
struct model {
  unsigned sixteenth; /* of a second, in whole cycles */
  bool seen[LAMPS];   /* an event came since the reset */
  unsigned age[LAMPS];
  bool lit[LAMPS];
  uint64_t now;
};

static struct model model_make(const struct leds *l) {
  return (struct model){.sixteenth = l->hz / 16};
}

/* A cycle has passed, in which these events came. */
static void check(struct model *m, const struct leds *l, unsigned events) {
  ++m->now;
  for (unsigned i = 0; i < l->lamps; ++i) {
    const bool event = events >> i & 1, on = *l->lamp >> i & 1;
    m->age[i] = event ? 0 : m->age[i] + 1;
    m->seen[i] |= event;
    const bool must = m->seen[i] && m->age[i] < m->sixteenth;
    const bool may = m->seen[i] && m->age[i] < 2 * m->sixteenth && (event || m->lit[i]);
    if (on ? !may : must)
      fail_msg(
          "lamp %u is %s in cycle %llu, %u after its last event; a sixteenth of a second is %u", i,
          on ? "on" : "off", (unsigned long long)m->now, m->age[i], m->sixteenth);
    m->lit[i] = on;
  }
  assert_int_equal(*l->lamp >> l->lamps, 0);
  const bool beat = m->now / (8 * m->sixteenth) % 2;
  if (*l->beat != beat)
    fail_msg("the heartbeat is %d in cycle %llu", *l->beat, (unsigned long long)m->now);
}

static void cycle(struct model *m, struct leds *l, unsigned events) {
  *l->event = (uint8_t)events;
  l->tick(l->dut);
  check(m, l, events);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Each lamp by itself: a single event at every moment of two sixteenths. */
static void single_events(void **state) {
  (void)state;
  for (size_t v = 0; v < VARIANTS; ++v) {
    struct leds l = variants[v]();
    struct model m = model_make(&l);
    for (unsigned i = 0; i < l.lamps; ++i)
      for (unsigned when = 0; when < 2 * m.sixteenth; ++when) {
        cycle(&m, &l, 1U << i);
        for (unsigned n = 0; n < 2 * m.sixteenth; ++n)
          cycle(&m, &l, 0);
        assert_int_equal(*l.lamp, 0);
      }
    l.close(l.dut);
  }
}

/* Events of all lamps, each with bursts and pauses of its own, about as long as lamps stay on. */
static void random_events(void **state) {
  (void)state;
  for (size_t v = 0; v < VARIANTS; ++v) {
    struct leds l = variants[v]();
    struct model m = model_make(&l);
    ct_stall quiet[LAMPS];
    ct_rng rng = ct_rng_make(100 + v);
    for (unsigned i = 0; i < l.lamps; ++i)
      quiet[i] = ct_stall_make(10 * v + i, 60 + 5 * i, 1 + (i % 3) * m.sixteenth);
    for (int n = 0; n < ct_tb_draws(400000); ++n) {
      unsigned events = 0;
      for (unsigned i = 0; i < l.lamps; ++i)
        events |= (unsigned)(!ct_stall_next(&quiet[i]) && ct_rng_percent(&rng, 30)) << i;
      cycle(&m, &l, events);
    }
    l.close(l.dut);
  }
}

/* In a reset, which may come at any time, every lamp is off, whatever happens; nothing of what was
 * before is shown after it. */
static void resets(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(200);
  for (size_t v = 0; v < VARIANTS; ++v) {
    struct leds l = variants[v]();
    for (int n = 0; n < ct_tb_draws(400); ++n) {
      struct model m = model_make(&l);
      for (unsigned left = ct_rng_below(&rng, 20 * m.sixteenth); left; --left)
        cycle(&m, &l, ct_rng_below(&rng, 1U << l.lamps));
      *l.rst_n = 0;
      l.eval(l.dut);
      assert_int_equal(*l.lamp | *l.beat, 0);
      *l.event = (uint8_t)((1U << l.lamps) - 1);
      l.tick(l.dut);
      assert_int_equal(*l.lamp | *l.beat, 0);
      *l.rst_n = 1;
    }
    l.close(l.dut);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(single_events),
      cmocka_unit_test(random_events),
      cmocka_unit_test(resets),
  };
  return cmocka_run_group_tests_name("leds", tests, NULL, NULL);
}
