/* SPDX-License-Identifier: Apache-2.0 */
/* ct_arbiter with 2, 3, 4 and 8 requesters against a model that keeps times of arrival and of
 * service, under every policy; the shares that the policies promise; the floor of training; the
 * bounds of ct_bound_arbiter(). */
#include "ct_tb.h"
#include "host/lib/isa/ct_bound.h"

#include "ct_arbiter_dut.h"
#include "ct_arbiter_n3_dut.h"
#include "ct_arbiter_n4_dut.h"
#include "ct_arbiter_n8_dut.h"

enum { kPriority, kFcfs, kRoundRobin, kJob, kSlack, kPolicies };
enum { kInference = 0, kTraining = 3, kMost = 8, kVariants = 4 };

/* One view of the models, which are types of their own. */
typedef struct {
  CT_TB_ANY_CALLS;
  uint16_t *qos_i;
  uint8_t *flush_i, *req_i, *defer_i, *last_i, *take_i, *gnt_o;
} arbiter_ports;

#define VARIANT(name)                                                                         \
  CT_TB_ANY(name)                                                                             \
  CT_TB_ANY_CLOCK(name)                                                                       \
  static arbiter_ports name##_ports(void) {                                                   \
    name##_dut *d = name##_new(ct_tb_trace());                                                \
    const arbiter_ports p = {                                                                 \
        CT_TB_ANY_OF(name, d), .qos_i = d->qos_i,   .flush_i = d->flush_i, .req_i = d->req_i, \
        .defer_i = d->defer_i, .last_i = d->last_i, .take_i = d->take_i,   .gnt_o = d->gnt_o, \
    };                                                                                        \
    return p;                                                                                 \
  }

VARIANT(ct_arbiter)
VARIANT(ct_arbiter_n3)
VARIANT(ct_arbiter_n4)
VARIANT(ct_arbiter_n8)

/* As in benches.mk. */
static const struct {
  arbiter_ports (*open)(void);
  int n;
  uint8_t class_of[kMost];
} kVariant[kVariants] = {
    {ct_arbiter_ports, 2, {0, 3}},
    {ct_arbiter_n3_ports, 3, {0, 1, 3}},
    {ct_arbiter_n4_ports, 4, {0, 3, 1, 3}},
    {ct_arbiter_n8_ports, 8, {0, 1, 3, 0, 2, 1, 0, 3}},
};

/* What the header of ct_arbiter says, in time stamps instead of history bits. */
typedef struct {
  int64_t now;
  int64_t since[kMost];  /* cycle in which the operation on offer came; INT64_MAX: none */
  int64_t served[kMost]; /* of the last slot; before the first one in the order of numbers */
  int holder;            /* requester inside an operation, -1: none */
  int credit;            /* 1/256 of a slot */
} model;

typedef struct {
  arbiter_ports p;
  int n;
  const uint8_t *class_of;
  unsigned trn; /* requesters of training, a bit each */
  model m;
} bench;

typedef struct {
  unsigned policy, floor, flush, req, last;
  bool take, defer;
} inputs;

static bench open_variant(int variant) {
  bench b = {.p = kVariant[variant].open(),
             .n = kVariant[variant].n,
             .class_of = kVariant[variant].class_of,
             .m = {.holder = -1}};
  for (int i = 0; i < b.n; ++i) {
    b.m.since[i] = INT64_MAX;
    b.m.served[i] = i - b.n;
    b.trn |= (unsigned)(b.class_of[i] == kTraining) << i;
  }
  *b.p.qos_i = ct_tb_qos(0, 0);
  *b.p.flush_i = 0;
  *b.p.req_i = 0;
  *b.p.defer_i = 0;
  *b.p.last_i = 0;
  *b.p.take_i = 0;
  b.p.reset(b.p.dut, 2);
  return b;
}

/* Inference and training. */
static bench open_bench(void) {
  return open_variant(0);
}

static void close_bench(bench *b) {
  b->p.close(b->p.dut);
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

static bool owed(const model *m, const inputs *in) {
  return in->policy == kPriority && in->floor > 0 && m->credit >= 256;
}

/* What of two requesters goes: its rank, or its time; a smaller key goes first. */
static int64_t rank(const bench *b, const inputs *in, int i) {
  if (in->policy != kPriority) return 0;
  return owed(&b->m, in) && bit(b->trn, i) ? -1 : b->class_of[i];
}

static int64_t age(const model *m, const inputs *in, int i) {
  return in->policy == kFcfs || in->policy == kJob ? m->since[i] : m->served[i];
}

/* Requester to be granted, or -1. */
static int model_grant(const bench *b, const inputs *in) {
  const model *m = &b->m;
  if (!by_slot(in) && m->holder >= 0 && !bit(in->flush, m->holder))
    return bit(in->req, m->holder) ? m->holder : -1;
  int best = -1;
  for (int i = 0; i < b->n; ++i) {
    if (!bit(in->req, i) || (defers(in) && !owed(m, in) && bit(b->trn, i))) continue;
    const int64_t d = best < 0 ? -1 : rank(b, in, i) - rank(b, in, best);
    if (d < 0 || (d == 0 && age(m, in, i) < age(m, in, best))) best = i;
  }
  return best;
}

static void model_step(bench *b, const inputs *in, int grant) {
  model *m = &b->m;
  for (int i = 0; i < b->n; ++i) {
    if (!bit(in->req, i) || bit(in->flush, i)) m->since[i] = INT64_MAX;
    if (m->holder == i && bit(in->flush, i)) m->holder = -1;
  }
  if (by_slot(in)) m->holder = -1;
  if (in->take && grant >= 0) {
    const bool last = bit(in->last, grant);
    m->served[grant] = m->now;
    if (last) m->since[grant] = INT64_MAX;
    m->holder = last || by_slot(in) ? -1 : grant;
    if ((in->req & b->trn) && ((in->req & ~b->trn) || defers(in)))
      m->credit += (int)in->floor - (bit(b->trn, grant) ? 256 : 0);
  }
  if (in->policy != kPriority || in->floor == 0) m->credit = 0;
  ++m->now;
}

/* One cycle, compared; returns the granted requester or -1. */
static int cycle(bench *b, const inputs *in) {
  *b->p.qos_i = ct_tb_qos(in->policy, in->floor);
  *b->p.flush_i = (uint8_t)in->flush;
  *b->p.req_i = (uint8_t)in->req;
  *b->p.defer_i = in->defer;
  *b->p.last_i = (uint8_t)in->last;
  *b->p.take_i = in->take;
  b->p.eval(b->p.dut);
  /* A request that rises now counts from now, under a flush, too. */
  for (int i = 0; i < b->n; ++i) {
    if (bit(in->req, i) && b->m.since[i] == INT64_MAX) b->m.since[i] = b->m.now;
  }
  const int grant = model_grant(b, in);
  assert_int_equal(*b->p.gnt_o, grant < 0 ? 0 : 1 << grant);
  model_step(b, in, grant);
  b->p.tick(b->p.dut);
  return grant;
}

static void draw_setting(ct_rng *rng, inputs *in) {
  in->policy = ct_rng_below(rng, kPolicies);
  in->floor = ct_rng_percent(rng, 50) ? ct_rng_below(rng, 256) : 0;
}

static void random_against_model(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  for (int round = 0; round < 40; ++round) {
    bench b = open_variant(round < kVariants ? round : (int)ct_rng_below(&rng, kVariants));
    inputs in = {0};
    unsigned busy = 50, ends = 50;
    for (int i = 0; i < 8000; ++i) {
      if (ct_rng_percent(&rng, 1)) draw_setting(&rng, &in);
      if (ct_rng_percent(&rng, 1)) {
        busy = 10 + ct_rng_below(&rng, 90);
        ends = 5 + ct_rng_below(&rng, 95);
      }
      in.flush = ct_rng_percent(&rng, 1) ? ct_rng_below(&rng, 1u << b.n) : 0;
      in.last = 0;
      for (int c = 0; c < b.n; ++c) {
        /* Requests mostly stay, as those of a real requester do. */
        if (ct_rng_percent(&rng, 30)) {
          in.req &= ~(1u << c);
          in.req |= (unsigned)ct_rng_percent(&rng, busy) << c;
        }
        in.last |= (unsigned)ct_rng_percent(&rng, ends) << c;
      }
      in.take = ct_rng_percent(&rng, 70);
      if (ct_rng_percent(&rng, 5)) in.defer = ct_rng_percent(&rng, 50);
      cycle(&b, &in);
    }
    close_bench(&b);
  }
}

static struct ct_bound_place place(const bench *b, int i) {
  struct ct_bound_place p = {.requesters = (uint32_t)b->n, .training = bit(b->trn, i)};
  for (int j = 0; j < b->n; ++j) {
    p.equals += b->class_of[j] == b->class_of[i];
    p.before += b->class_of[j] < b->class_of[i];
  }
  return p;
}

/* Every requester waits as often as it can, and others have never more than the bound meanwhile. */
static void no_wait_is_longer_than_its_bound(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  for (int round = 0; round < 200; ++round) {
    bench b = open_variant(round % kVariants);
    inputs in = {.take = true};
    draw_setting(&rng, &in);
    const struct ct_bound_setting s = {.policy = (enum ct_policy)in.policy, .floor = in.floor};
    const unsigned busy = ct_rng_percent(&rng, 50) ? 100 : 30 + ct_rng_below(&rng, 70);
    uint64_t others[kMost] = {0}, most = 0;
    bool open[kMost] = {false};
    for (int k = 0; k < 3000; ++k) {
      in.last = by_slot(&in) ? 0xff : ct_rng_below(&rng, 256);
      for (int i = 0; i < b.n; ++i)
        if (!bit(in.req, i) && ct_rng_percent(&rng, busy)) in.req |= 1u << i;
      const int got = cycle(&b, &in);
      for (int i = 0; i < b.n && got >= 0; ++i) {
        if (i == got || !bit(in.req, i)) {
          others[i] = 0;
        } else if (!open[i] && !open[got]) {
          const struct ct_bound_place p = place(&b, i);
          assert_true(++others[i] <= ct_bound_arbiter(&s, &p));
          most = others[i] > most ? others[i] : most;
        }
      }
      if (got < 0) continue;
      open[got] = !by_slot(&in) && !bit(in.last, got);
      if (!open[got]) in.req &= ~(1u << got);
    }
    if (busy == 100 && in.policy != kPriority) assert_int_equal(most, b.n - 1);
    close_bench(&b);
  }
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
  close_bench(&b);
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
  close_bench(&b);
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
  close_bench(&b);
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
    close_bench(&b);
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
    close_bench(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_against_model),
      cmocka_unit_test(no_wait_is_longer_than_its_bound),
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
