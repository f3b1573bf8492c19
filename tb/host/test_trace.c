/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: made-up events of a unit against a count of this file; cut, full and empty files; and the
 * simulated core serving and training, whose counters must say what the trace says.
 */
#include "ct_tb.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coltrain_spec.h"
#include "host/tools/colocate/colocate.h"
#include "host/tools/measure/ct_units.h"

#define CLOCK_HZ UINT64_C(100000000)
#define ALL UINT64_C(1000000000)

enum { UNITS = 10 }; /* the first unit's "process" */

static char path[64];

static int make_path(void **state) {
  (void)state;
  strcpy(path, "/tmp/ct_test_trace.XXXXXX");
  const int file = mkstemp(path);
  return file < 0 ? -1 : close(file);
}

static int remove_path(void **state) {
  (void)state;
  return unlink(path);
}

/* ---- Reading a trace ---- */

struct slice {
  unsigned pid, tid;
  uint64_t from, to;
  int64_t busy, waited; /* busy -1: not an operation */
  bool lost;            /* to the other queue */
};

struct file {
  json_t *root;
  struct slice *slice;
  size_t slices, starts, ends, marks, depths;
  int64_t deepest;
  uint64_t from, to; /* what it says of its window */
  uint64_t busy[CT_UNIT_COUNT][2], preempted[CT_UNIT_COUNT][2];
};

static uint64_t cycle_of(const json_t *us) {
  const double cycles = json_number_value(us) * 100;
  assert_true(fabs(cycles - round(cycles)) < 0.01);
  return (uint64_t)llround(cycles);
}

static void read_event(struct file *f, const json_t *e) {
  const char phase = *json_string_value(json_object_get(e, "ph"));
  f->starts += phase == 'b';
  f->ends += phase == 'e';
  f->marks += phase == 'i';
  if (phase == 'C') {
    const int64_t jobs = json_integer_value(json_object_get(json_object_get(e, "args"), "jobs"));
    assert_true(jobs >= 0);
    assert_in_range(cycle_of(json_object_get(e, "ts")), f->from, f->to - 1);
    f->deepest = jobs > f->deepest ? jobs : f->deepest;
    ++f->depths;
  }
  if (phase != 'X') return;
  struct slice *s = &f->slice[f->slices++];
  const json_t *busy = json_object_get(json_object_get(e, "args"), "busy");
  s->pid = (unsigned)json_integer_value(json_object_get(e, "pid"));
  s->tid = (unsigned)json_integer_value(json_object_get(e, "tid"));
  s->from = cycle_of(json_object_get(e, "ts"));
  s->to = s->from + cycle_of(json_object_get(e, "dur"));
  s->lost = !strncmp(json_string_value(json_object_get(e, "name")), "preempted", 9);
  s->busy = busy ? json_integer_value(busy) : -1;
  s->waited = json_integer_value(json_object_get(json_object_get(e, "args"), "waited"));
}

static int by_time(const void *a, const void *b) {
  const struct slice *x = a, *y = b;
  if (x->pid != y->pid) return x->pid < y->pid ? -1 : 1;
  if (x->tid != y->tid) return x->tid < y->tid ? -1 : 1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to > y->to ? -1 : x->to < y->to; /* the one around the other first */
}

/* Slices of a track stand one after the other, those of an operation inside it, and what is left of
 * it is its busy time; VL and VS are also busy while a row waits for the scratchpad. */
static void check_tracks(struct file *f) {
  struct slice *around = NULL;
  uint64_t gaps = 0;
  qsort(f->slice, f->slices, sizeof *f->slice, by_time);
  for (size_t i = 0; i <= f->slices; ++i) {
    struct slice *s = i < f->slices ? &f->slice[i] : NULL;
    const bool same = s && around && s->pid == around->pid && s->tid == around->tid;
    if (same && s->from < around->to) {
      assert_true(s->to <= around->to);
      assert_true(s->busy < 0 && around->busy >= 0);
      if (s[-1].busy < 0) assert_true(s[-1].to <= s->from); /* neighbours inside */
      const unsigned unit = s->pid - UNITS;
      if (s->lost || (unit != CT_UNIT_VL && unit != CT_UNIT_VS)) gaps += s->to - s->from;
      continue;
    }
    if (around && around->busy >= 0) {
      assert_int_equal(around->busy, around->to - around->from - gaps);
      f->busy[around->pid - UNITS][(around->tid - 1) / 2] += (uint64_t)around->busy;
    }
    gaps = 0;
    around = s;
  }
}

static struct file read_file(void) {
  struct file f = {.slices = 0};
  json_error_t error;
  f.root = json_load_file(path, 0, &error);
  if (!f.root) fail_msg("the trace is not JSON: line %d: %s", error.line, error.text);
  const json_t *events = json_object_get(f.root, "traceEvents");
  const json_t *other = json_object_get(f.root, "otherData");
  f.from = (uint64_t)json_integer_value(json_object_get(other, "from_cycle"));
  f.to = (uint64_t)json_integer_value(json_object_get(other, "to_cycle"));
  f.slice = calloc(json_array_size(events) + 1, sizeof *f.slice);
  assert_non_null(f.slice);
  for (size_t i = 0; i < json_array_size(events); ++i)
    read_event(&f, json_array_get(events, i));
  check_tracks(&f);
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    for (unsigned c = 0; c < 2; ++c) {
      const json_t *busy = json_object_get(json_object_get(other, "busy_cycles"), ct_probe_name(u)),
                   *cut = json_object_get(json_object_get(other, "preemptions"), ct_probe_name(u));
      assert_int_equal(json_integer_value(json_array_get(busy, c)), f.busy[u][c]);
      f.preempted[u][c] = (uint64_t)json_integer_value(json_array_get(cut, c));
    }
  return f;
}

static void free_file(struct file *f) {
  json_decref(f->root);
  free(f->slice);
}

/* ---- Made-up events ---- */

static uint64_t bit(unsigned u, enum ct_probe_event e, unsigned c) {
  return UINT64_C(1) << (CT_PROBE_UNIT_BITS * u + 2 * e + c);
}

/* A unit whose contexts do random operations: rows of 1 .. 3 cycles (the second and third without a
 * grant, as half rows are) until the operation is through. */
struct maker {
  ct_rng rng;
  unsigned rows[2]; /* left of the operation of a context */
  unsigned more;    /* cycles that the present row still takes */
  unsigned who;     /* whose it is */
  uint64_t used[2]; /* cycles in the window */
};

static uint64_t make_mxu(struct maker *m, bool counts) {
  const unsigned u = CT_UNIT_MXU;
  uint64_t events = 0;
  bool ready[2];
  for (unsigned c = 0; c < 2; ++c) {
    if (m->rows[c] == 0 && ct_rng_below(&m->rng, 8) == 0)
      m->rows[c] = 1 + ct_rng_below(&m->rng, 16);
    ready[c] = m->rows[c] && ct_rng_below(&m->rng, 4);
    if (ready[c]) events |= bit(u, CT_PROBE_READY, c);
  }
  if (m->more) {
    --m->more;
  } else if (ready[0] || ready[1]) {
    m->who = !ready[0];
    m->more = ct_rng_below(&m->rng, 2);
    events |= bit(u, CT_PROBE_GRANT, m->who);
    if (--m->rows[m->who] == 0) events |= bit(u, CT_PROBE_ACCEPT, m->who);
  } else {
    return events;
  }
  m->used[m->who] += counts;
  return events | bit(u, CT_PROBE_USED, m->who);
}

static void random_rows(void **state) {
  (void)state;
  for (unsigned turn = 0; turn < 20; ++turn) {
    struct maker m = {.rng = ct_rng_make(turn)};
    const uint64_t from = ct_rng_below(&m.rng, 1000), to = from + 1 + ct_rng_below(&m.rng, 4000);
    struct ct_trace *t = ct_trace_open(path, CLOCK_HZ, ALL);
    struct ct_trace_summary sum;
    assert_non_null(t);
    ct_trace_window(t, from, to);
    for (uint64_t cycle = 0; cycle < 6000; ++cycle)
      ct_trace_cycle(t, cycle, make_mxu(&m, cycle >= from && cycle < to));
    assert_false(ct_trace_wants(t));
    assert_int_equal(ct_trace_close(t, &sum), 0);
    assert_false(sum.full);
    struct file f = read_file();
    for (unsigned c = 0; c < 2; ++c)
      assert_int_equal(f.busy[CT_UNIT_MXU][c], m.used[c]);
    for (size_t i = 0; i < f.slices; ++i)
      assert_true(f.slice[i].from >= from && f.slice[i].to <= to);
    if (to - from > 1000) assert_true(f.preempted[CT_UNIT_MXU][1] > 0);
    free_file(&f);
  }
}

/* What a full file says it covers, it covers. */
static void full_file(void **state) {
  (void)state;
  struct maker m = {.rng = ct_rng_make(1)};
  struct ct_trace *t = ct_trace_open(path, CLOCK_HZ, 40000);
  struct ct_trace_summary sum;
  uint64_t used[6000][2];
  assert_non_null(t);
  ct_trace_window(t, 0, 6000);
  for (uint64_t cycle = 0; cycle < 6000; ++cycle) {
    ct_trace_cycle(t, cycle, make_mxu(&m, true));
    memcpy(used[cycle], m.used, sizeof m.used);
  }
  ct_trace_job(t, CT_TRACE_REQUEST, 0, 1, 0, 5, 50);
  assert_int_equal(ct_trace_close(t, &sum), 0);
  assert_true(sum.full);
  assert_in_range(sum.bytes, 30000, 44000);
  assert_in_range(sum.to, 100, 5000);
  struct file f = read_file();
  for (unsigned c = 0; c < 2; ++c)
    assert_int_equal(f.busy[CT_UNIT_MXU][c], used[sum.to - 1][c]);
  assert_int_equal(f.starts, 3);
  assert_int_equal(f.ends, 3);
  free_file(&f);
}

/* The vector unit is busy from the cycle after its grant, whether words move or not. */
static void vector_operations(void **state) {
  (void)state;
  const unsigned u = CT_UNIT_VL;
  const uint64_t grant = bit(u, CT_PROBE_GRANT, 0) | bit(u, CT_PROBE_READY, 0),
                 used = bit(u, CT_PROBE_USED, 0), last = used | bit(u, CT_PROBE_ACCEPT, 0),
                 waits = bit(u, CT_PROBE_READY, 1);
  /* Three operations of context 0, the second right behind the first; context 1 waits for two. */
  const uint64_t events[] = {
      0, grant, 0, used | waits, used | waits, last | grant, used, last | waits, 0, 0, grant, 0,
      0, last,  0};
  struct ct_trace *t = ct_trace_open(path, CLOCK_HZ, ALL);
  ct_trace_window(t, 0, 1000);
  for (size_t i = 0; i < sizeof events / sizeof *events; ++i)
    ct_trace_cycle(t, i, events[i]);
  assert_int_equal(ct_trace_close(t, NULL), 0);
  struct file f = read_file();
  assert_int_equal(f.busy[u][0], 4 + 2 + 3);
  uint64_t waited = 0;
  for (size_t i = 0; i < f.slices; ++i)
    if (f.slice[i].tid == 4) waited += f.slice[i].to - f.slice[i].from;
  assert_int_equal(waited, 3);
  free_file(&f);
}

/* An operation of rows is one, whatever the other queue does between them: it is busy in its own.
 */
static void rows_of_two(void **state) {
  (void)state;
  const unsigned u = CT_UNIT_VS;
  const uint64_t mine = bit(u, CT_PROBE_GRANT, 1), used = bit(u, CT_PROBE_USED, 1),
                 ends = bit(u, CT_PROBE_ACCEPT, 1), other = bit(u, CT_PROBE_GRANT, 0),
                 others = bit(u, CT_PROBE_USED, 0), done = bit(u, CT_PROBE_ACCEPT, 0);
  /* Training's rows of 2, 3 (one cycle stalled) and 1 cycles; a row of inference of 2 behind the
   * first; one more of training that a flush drops. */
  const uint64_t events[] = {mine,
                             used,
                             used | other,
                             others,
                             others | done | mine,
                             used,
                             0,
                             used | mine,
                             used | ends | mine,
                             used,
                             ends,
                             0};
  struct ct_trace *t = ct_trace_open(path, CLOCK_HZ, ALL);
  ct_trace_window(t, 0, 1000);
  for (size_t i = 0; i < sizeof events / sizeof *events; ++i)
    ct_trace_cycle(t, i, events[i]);
  struct ct_trace_summary sum;
  assert_int_equal(ct_trace_close(t, &sum), 0);
  struct file f = read_file();
  assert_int_equal(f.busy[u][1], 2 + 3 + 1 + 2);
  assert_int_equal(f.busy[u][0], 2);
  assert_int_equal(sum.preempted[u][1], 1);
  assert_int_equal(f.slices, 3 + 3); /* and what training lost, and two stalls */
  free_file(&f);
}

/* The second window takes the place of the first. */
static void another_window(void **state) {
  (void)state;
  struct maker m = {.rng = ct_rng_make(3)};
  struct ct_trace *t = ct_trace_open(path, CLOCK_HZ, ALL);
  assert_non_null(t);
  ct_trace_window(t, 100, 2000);
  for (uint64_t cycle = 0; cycle < 6000; ++cycle) {
    if (cycle == 200) ct_trace_job(t, CT_TRACE_REQUEST, 0, 1, 150, 160, 200);
    if (cycle == 2900) ct_trace_job(t, CT_TRACE_STEP, 1, 1, 1900, 1950, 2900);
    if (cycle == 3000) ct_trace_window(t, 3000, 3500);
    if (cycle == 3100) ct_trace_job(t, CT_TRACE_STEP, 1, 2, 1950, 2900, 3100);
    if (cycle == 3300) ct_trace_job(t, CT_TRACE_REQUEST, 0, 2, 3200, 3250, 3300);
    uint64_t events = make_mxu(&m, cycle >= 3000 && cycle < 3500);
    /* An operation from one window to before the other. */
    if (cycle == 1990) events |= bit(CT_UNIT_VL, CT_PROBE_GRANT, 0);
    if (cycle == 2500) events |= bit(CT_UNIT_VL, CT_PROBE_ACCEPT, 0);
    ct_trace_cycle(t, cycle, events);
  }
  assert_int_equal(ct_trace_close(t, NULL), 0);
  struct file f = read_file();
  assert_true(f.slices > 10);
  assert_int_equal(f.busy[CT_UNIT_VL][0], 0);
  /* Of the jobs that reach into the second window; the step no longer waits in it. */
  assert_int_equal(f.starts, 2 + 3);
  assert_int_equal(f.ends, 2 + 3);
  assert_int_equal(f.depths, 2 * 2);
  assert_int_equal(f.deepest, 1);
  for (size_t i = 0; i < f.slices; ++i)
    assert_true(f.slice[i].from >= 3000 && f.slice[i].to <= 3500);
  for (unsigned c = 0; c < 2; ++c)
    assert_int_equal(f.busy[CT_UNIT_MXU][c], m.used[c]);
  free_file(&f);
}

static void nothing_to_show(void **state) {
  (void)state;
  struct ct_trace_summary sum;
  struct ct_trace *t = ct_trace_open(path, CLOCK_HZ, ALL);
  ct_trace_window(t, 100, 200);
  ct_trace_cycle(t, 10, UINT64_MAX);
  assert_int_equal(ct_trace_close(t, &sum), 0);
  assert_true(sum.from >= sum.to);
  struct file f = read_file();
  assert_int_equal(f.slices, 0);
  free_file(&f);
  assert_int_equal(ct_trace_close(NULL, NULL), 0);
  assert_null(ct_trace_open("/nonexistent/trace.json", CLOCK_HZ, ALL));
}

/* ---- The simulated core ---- */

/* What operations say that they waited is what their track of waits has. (Of a pass through the
 * array or the vector unit only the first row's wait is its own; the others' stand inside it.) */
static void check_waits(const struct file *f) {
  uint64_t said[CT_UNIT_COUNT][2] = {{0}}, had[CT_UNIT_COUNT][2] = {{0}};
  for (size_t i = 0; i < f->slices; ++i) {
    const struct slice *s = &f->slice[i];
    const unsigned u = s->pid - UNITS, c = (s->tid - 1) / 2;
    if (s->busy >= 0) said[u][c] += (uint64_t)s->waited;
    if (s->tid % 2 == 0) had[u][c] += s->to - s->from;
  }
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    for (unsigned c = 0; c < 2; ++c) {
      if (u >= CT_UNIT_MXU)
        assert_true(said[u][c] <= had[u][c]);
      else
        assert_int_equal(said[u][c], had[u][c]);
    }
}

enum { REQUESTS = 60 };

/* The whole run: every counter of a unit's busy cycles is the trace's. */
static void same_as_the_counters(const char *device) {
  struct colocate_options o = {.learn = LEARN_DEFAULTS,
                               .requests = REQUESTS,
                               .permille = 600,
                               .trace = path,
                               .trace_to = ALL,
                               .trace_bytes = ALL};
  struct colocate c;
  uint64_t counters[2][CT_MAX_COUNTERS] = {{0}};
  o.learn.device = device;
  o.learn.samples = 64;
  o.learn.batch = 16;
  o.learn.epochs = 1;
  o.learn.widths[0] = 64;
  o.learn.widths[1] = 24;
  o.learn.widths[2] = 10;
  o.learn.layers = 2;
  assert_int_equal(colocate_open(&c, &o), 0);
  ct_progress_open(&c.load.progress, stderr);
  assert_int_equal(colocate_runs(&c), 0);
  ct_progress_close(&c.load.progress);
  for (unsigned q = 0; q < 2; ++q)
    assert_true(ct_counters(c.load.dev, (enum ct_queue)q, counters[q], CT_MAX_COUNTERS) > 0);
  assert_int_equal(colocate_trace_close(&c), 0);
  struct file f = read_file();
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    for (unsigned q = 0; q < 2; ++q) {
      const uint64_t want = ct_unit_time(u, counters[q]).busy;
      assert_true(want > 0);
      if (f.busy[u][q] != want)
        fail_msg("%s of queue %u: %llu busy cycles in the trace, %llu in the counter",
                 ct_unit_name(u), q, (unsigned long long)f.busy[u][q], (unsigned long long)want);
    }
  check_waits(&f);
  assert_true(f.preempted[CT_UNIT_MXU][1] > 0);
  /* With 16 lanes an operation of VA is one slot, with 4 training's is cut row by row. */
  assert_true(strstr(device, "core=16x8") ? f.preempted[CT_UNIT_VA][1] > 0
                                          : !f.preempted[CT_UNIT_VA][1]);
  assert_int_equal(f.starts, f.ends);
  assert_int_equal(f.marks, c.versions.published);
  assert_true(f.starts >= 3 * (2 * REQUESTS + 4) && f.depths > 2 * REQUESTS);
  free_file(&f);
  colocate_close(&c);
}

static void traces_of_cores(void **state) {
  (void)state;
  same_as_the_counters("sim:stall=25,seed=3");
  same_as_the_counters("sim:core=16x8");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_rows),       cmocka_unit_test(full_file),
      cmocka_unit_test(vector_operations), cmocka_unit_test(rows_of_two),
      cmocka_unit_test(nothing_to_show),   cmocka_unit_test(another_window),
      cmocka_unit_test(traces_of_cores),
  };
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
