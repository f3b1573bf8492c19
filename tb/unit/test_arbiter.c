/* SPDX-License-Identifier: Apache-2.0 */
/* ct_arbiter against a model that keeps times of arrival, under every policy; the shares that the
 * policies promise; the floor of training. */
#include "ct_tb.h"

#include "ct_arbiter_dut.h"

enum { kPriority, kFcfs, kRoundRobin, kJob, kSlack };

/* What the header of ct_arbiter says, in time stamps instead of history bits. */
typedef struct {
  uint64_t now;
  uint64_t since[2]; /* cycle in which the operation on offer came; UINT64_MAX: none */
  int holder;        /* context inside an operation, -1: none */
  int served;        /* last context served */
  int credit;        /* 1/256 of a slot */
} model;

typedef struct {
  ct_arbiter_dut *dut;
  model m;
} bench;

typedef struct {
  unsigned policy, floor, flush, req, last;
  bool take, defer;
} inputs;

static bench open_bench(void) {
  bench b = {.dut = ct_arbiter_new(ct_tb_trace()),
             .m = {.since = {UINT64_MAX, UINT64_MAX}, .holder = -1, .served = 1}};
  *b.dut->qos_i = ct_tb_qos(0, 0);
  *b.dut->flush_i = 0;
  *b.dut->req_i = 0;
  *b.dut->defer_i = 0;
  *b.dut->last_i = 0;
  *b.dut->take_i = 0;
  ct_arbiter_reset(b.dut, 2);
  return b;
}

static bool bit(unsigned v, int c) {
  return (v >> c) & 1;
}

static bool by_slot(const inputs *in) {
  return in->policy == kPriority || in->policy == kSlack;
}

/* Training has only what it is owed. */
static bool defers(const inputs *in) {
  return in->policy == kPriority && in->defer;
}

/* Context to be granted, or -1. */
static int model_grant(const model *m, const inputs *in) {
  if (!by_slot(in) && m->holder >= 0 && !bit(in->flush, m->holder))
    return bit(in->req, m->holder) ? m->holder : -1;
  const bool owed = in->floor > 0 && m->credit >= 256;
  const unsigned req = defers(in) && !owed ? in->req & 1 : in->req;
  if (req != 3) return req == 0 ? -1 : req == 2;
  switch (in->policy) {
    case kPriority:
      return owed;
    case kRoundRobin:
    case kSlack:
      return !m->served;
    default:
      return m->since[1] < m->since[0];
  }
}

static void model_step(model *m, const inputs *in, int grant) {
  for (int c = 0; c < 2; ++c) {
    if (bit(in->req, c) && m->since[c] == UINT64_MAX) m->since[c] = m->now;
    if (!bit(in->req, c) || bit(in->flush, c)) m->since[c] = UINT64_MAX;
    if (m->holder == c && bit(in->flush, c)) m->holder = -1;
  }
  if (by_slot(in)) m->holder = -1;
  if (in->take && grant >= 0) {
    const bool last = bit(in->last, grant);
    m->served = grant;
    if (last) m->since[grant] = UINT64_MAX;
    m->holder = last || by_slot(in) ? -1 : grant;
    if (in->req == 3 || (in->req == 2 && defers(in)))
      m->credit += (int)in->floor - (grant ? 256 : 0);
  }
  if (in->policy != kPriority || in->floor == 0) m->credit = 0;
  ++m->now;
}

/* One cycle, compared; returns the granted context or -1. */
static int cycle(bench *b, const inputs *in) {
  ct_arbiter_dut *d = b->dut;
  *d->qos_i = ct_tb_qos(in->policy, in->floor);
  *d->flush_i = (uint8_t)in->flush;
  *d->req_i = (uint8_t)in->req;
  *d->defer_i = in->defer;
  *d->last_i = (uint8_t)in->last;
  *d->take_i = in->take;
  ct_arbiter_eval(d);
  /* Since a request that rises now counts from now, the model sees it before it decides. */
  model seen = b->m;
  for (int c = 0; c < 2; ++c) {
    if (bit(in->req, c) && seen.since[c] == UINT64_MAX) seen.since[c] = seen.now;
  }
  const int grant = model_grant(&seen, in);
  assert_int_equal(*d->gnt_o, grant < 0 ? 0 : 1 << grant);
  model_step(&b->m, in, grant);
  ct_arbiter_tick(d);
  return grant;
}

static void random_against_model(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  bench b = open_bench();
  inputs in = {0};
  unsigned busy = 50, ends = 50;
  for (int i = 0; i < 200000; ++i) {
    if (ct_rng_percent(&rng, 1)) in.policy = ct_rng_below(&rng, 5);
    if (ct_rng_percent(&rng, 1)) in.floor = ct_rng_percent(&rng, 50) ? ct_rng_below(&rng, 256) : 0;
    if (ct_rng_percent(&rng, 1)) {
      busy = 10 + ct_rng_below(&rng, 90);
      ends = 5 + ct_rng_below(&rng, 95);
    }
    in.flush = ct_rng_percent(&rng, 1) ? ct_rng_below(&rng, 4) : 0;
    for (int c = 0; c < 2; ++c) {
      /* Requests mostly stay, as those of a real requester do. */
      if (ct_rng_percent(&rng, 30)) {
        in.req &= ~(1u << c);
        in.req |= (unsigned)ct_rng_percent(&rng, busy) << c;
      }
    }
    in.last = (unsigned)ct_rng_percent(&rng, ends) | (unsigned)ct_rng_percent(&rng, ends) << 1;
    in.take = ct_rng_percent(&rng, 70);
    if (ct_rng_percent(&rng, 5)) in.defer = ct_rng_percent(&rng, 50);
    cycle(&b, &in);
  }
  ct_arbiter_free(b.dut);
}

/* Slots of each context out of n, both always asking, in operations of `length` slots. */
static void count_slots(unsigned policy, unsigned floor, unsigned length, int n, int got[2]) {
  bench b = open_bench();
  unsigned at[2] = {0, 0};
  got[0] = got[1] = 0;
  for (int i = 0; i < n; ++i) {
    const inputs in = {.policy = policy,
                       .floor = floor,
                       .req = 3,
                       .last = (unsigned)(at[0] == length - 1) | (unsigned)(at[1] == length - 1)
                                                                     << 1,
                       .take = true};
    const int c = cycle(&b, &in);
    assert_true(c >= 0);
    ++got[c];
    at[c] = (at[c] + 1) % length;
  }
  ct_arbiter_free(b.dut);
}

static void priority_starves_without_floor(void **state) {
  (void)state;
  int got[2];
  count_slots(kPriority, 0, 5, 1000, got);
  assert_int_equal(got[1], 0);
}

static void floor_is_the_share(void **state) {
  (void)state;
  static const unsigned floors[] = {1, 3, 16, 64, 100, 128, 200, 255};
  const int n = 256 * 100;
  for (unsigned i = 0; i < sizeof floors / sizeof *floors; ++i) {
    int got[2];
    count_slots(kPriority, floors[i], 7, n, got);
    const int want = n / 256 * (int)floors[i];
    assert_in_range(got[1], want - 2, want + 1);
  }
}

/* With a floor of at most one half two owed slots never follow one another. */
static void floor_bounds_the_wait(void **state) {
  (void)state;
  bench b = open_bench();
  int before = -1;
  for (int i = 0; i < 10000; ++i) {
    const inputs in = {.floor = 1u + (unsigned)i / 79, .req = 3, .last = 3, .take = true};
    assert_true(in.floor <= 128);
    const int c = cycle(&b, &in);
    assert_false(c == 1 && before == 1);
    before = c;
  }
  ct_arbiter_free(b.dut);
}

/* An idle inference costs training nothing, and training saves up no more than one slot. */
static void free_slots_are_not_counted(void **state) {
  (void)state;
  bench b = open_bench();
  inputs in = {.floor = 128, .last = 3, .take = true};
  in.req = 2;
  for (int i = 0; i < 1000; ++i)
    assert_int_equal(cycle(&b, &in), 1);
  in.req = 3;
  int got[2] = {0, 0};
  for (int i = 0; i < 8; ++i)
    ++got[cycle(&b, &in)];
  assert_in_range(got[1], 3, 4);
  ct_arbiter_free(b.dut);
}

/* A training that defers has what inference's slots earn it and no more, in pauses of inference,
 * too. */
static void deferring_leaves_the_rest(void **state) {
  (void)state;
  static const unsigned floors[] = {0, 16, 64, 128, 200};
  for (unsigned i = 0; i < sizeof floors / sizeof *floors; ++i) {
    bench b = open_bench();
    int got[2] = {0, 0};
    for (int k = 0; k < 4096; ++k) {
      const unsigned pause = k % 4 == 0 ? 2 : 3;
      const inputs in = {.floor = floors[i], .req = pause, .last = 3, .take = true, .defer = true};
      const int c = cycle(&b, &in);
      if (c >= 0) ++got[c];
    }
    const int share = (got[0] + got[1]) * (int)floors[i] / 256;
    assert_true(got[1] >= share - 2 && got[1] <= share + (floors[i] > 0));
    assert_true(got[0] > 0);
    ct_arbiter_free(b.dut);
  }
}

static void round_robin_is_even(void **state) {
  (void)state;
  for (unsigned length = 1; length < 6; ++length) {
    int got[2];
    count_slots(kRoundRobin, 0, length, 600, got);
    assert_int_equal(got[0], 300);
    count_slots(kFcfs, 0, length, 600, got);
    assert_int_equal(got[0], 300);
    count_slots(kSlack, 0, length, 600, got);
    assert_int_equal(got[0], 300);
  }
}

/* An operation of training holds inference off until its last slot, even while it pauses; a flush
 * lets go at once. */
static void fcfs_keeps_and_flush_frees(void **state) {
  (void)state;
  static const unsigned policies[] = {kFcfs, kRoundRobin, kJob};
  for (int i = 0; i < 3; ++i) {
    bench b = open_bench();
    inputs in = {.policy = policies[i], .take = true};
    in.req = 2;
    assert_int_equal(cycle(&b, &in), 1);
    in.req = 1;
    for (int k = 0; k < 10; ++k)
      assert_int_equal(cycle(&b, &in), -1);
    in.req = 3;
    in.last = 2;
    assert_int_equal(cycle(&b, &in), 1);
    in.last = 0;
    assert_int_equal(cycle(&b, &in), 0);
    assert_int_equal(cycle(&b, &in), 0);
    in.flush = 1;
    in.req = 2;
    assert_int_equal(cycle(&b, &in), 1);
    ct_arbiter_free(b.dut);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_against_model),
      cmocka_unit_test(priority_starves_without_floor),
      cmocka_unit_test(floor_is_the_share),
      cmocka_unit_test(floor_bounds_the_wait),
      cmocka_unit_test(free_slots_are_not_counted),
      cmocka_unit_test(deferring_leaves_the_rest),
      cmocka_unit_test(round_robin_is_even),
      cmocka_unit_test(fcfs_keeps_and_flush_frees),
  };
  return cmocka_run_group_tests_name("ct_arbiter", tests, NULL, NULL);
}
