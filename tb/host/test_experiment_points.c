/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiments from files of points with known figures: what the summary computes from them, which
 * files count, how several processes share them. Nothing is simulated.
 */
#include "ct_tb.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_run.h"
#include "host/tools/experiment.h"

/* In cycles: the deadline; latencies of requests in time and late; the first arrival. */
enum {
  DEADLINE = 4000,
  IN_TIME = 1000,
  LATE = 5000,
  FIRST = 100,
  POINTS = 256,
  PATIENCE_MS = 30000
};

/* ---- Points with known figures ---- */

struct bed {
  char out[256];
  struct exp_settings settings;
  struct exp_point point[POINTS];
  size_t count;
};

/* part: percent of the requests. 1 leaves 30 for 784-512-256-10. */
static void bed_open(struct bed *b, const char *name, uint32_t part) {
  *b = (struct bed){.count = 0};
  snprintf(b->out, sizeof b->out, "%s", cli_path(name));
  b->settings = (struct exp_settings){.out = b->out,
                                      .trace = "recorded.csv",
                                      .data = "fashion-mnist",
                                      .part = part,
                                      .on_percent = 50,
                                      .period = 20,
                                      .whole = true};
  assert_int_equal(exp_store_open(&b->settings), 0);
}

static const struct exp_capacity capacity = {
    .service = DEADLINE / 10, .batch = 500, .busy = 200000, .done = 2000};

/* Its place in the list, under a name that only has to be its own. */
static struct exp_point *add(struct bed *b, struct exp_point p) {
  assert_true(b->count < POINTS);
  if (!p.memory) p.memory = "";
  if (p.kind >= EXP_ALONE) p.capacity = capacity;
  snprintf(p.name, sizeof p.name, "point-%zu", b->count);
  b->point[b->count] = p;
  return &b->point[b->count++];
}

/* Of one run. late: the first of its late requests, and how many; lost: so many of the last ones
 * have no answer. */
struct figures {
  uint64_t p99, window, rows, wrong;
  size_t late, lates, lost;
  double u;
  bool given_up;
};

static const struct figures usual = {.p99 = 10000, .window = 300, .rows = 60, .u = 0.5};

static void put_rows(const struct bed *b, const struct exp_point *p, const struct figures *f) {
  char path[EXP_PATH];
  const size_t requests = exp_point_requests(&b->settings, p);
  exp_store_path(&b->settings, p, ".csv.new", path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("request,model,sample,scheduled,arrive,start,end,batch,version,code,wrong\n", file);
  for (size_t i = 0; i + f->lost < requests; ++i) {
    const size_t at = FIRST + 10 * i;
    const bool late = i >= f->late && i < f->late + f->lates;
    fprintf(file, "%zu,0,7,%zu,,%zu,%zu,1,3,OK,0\n", i, at, at + 1, at + (late ? LATE : IN_TIME));
  }
  assert_int_equal(fclose(file), 0);
}

/* The first ten requests are not measured. */
static void put(const struct bed *b, const struct exp_point *p, const struct figures *f) {
  const size_t requests = exp_point_requests(&b->settings, p);
  json_t *p99 = f->p99 == CT_STATS_NEVER ? json_null() : json_integer((json_int_t)f->p99);
  json_t *o = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:[i, i], s:I, s:I, s:b}",
                        "settings", exp_point_settings(&b->settings, p), "measured",
                        (json_int_t)(requests - 10), "answered", (json_int_t)(requests - f->lost),
                        "wrong", (json_int_t)f->wrong, "deadline_cycles", (json_int_t)DEADLINE,
                        "deadline_misses", (json_int_t)(f->lates + f->lost), "p99_cycles", p99, "u",
                        f->u, "batches", 6, 2, "window_cycles", (json_int_t)f->window,
                        "training_rows", (json_int_t)f->rows, "given_up", (int)f->given_up);
  put_rows(b, p, f);
  assert_int_equal(exp_store_save(&b->settings, p, o), 0);
}

/* Training alone: 10, 40, 60 rows after 100, 200, 300 cycles. */
static void put_training(struct bed *b, const char *memory) {
  const struct exp_point *p = add(b, (struct exp_point){.kind = EXP_TRAINING, .memory = memory});
  json_t *o = json_pack("{s:o, s:i, s:[i, i, i]}", "settings", exp_point_settings(&b->settings, p),
                        "pitch_cycles", 100, "rows", 10, 40, 60);
  assert_int_equal(exp_store_save(&b->settings, p, o), 0);
}

/* A run beside training, and before it in the list the same alone, if it is not there yet. */
static struct exp_point *add_pair(struct bed *b, struct exp_point p) {
  p.kind = EXP_ALONE;
  if (p.policy == CT_PRIORITY) add(b, p);
  p.kind = EXP_TOGETHER;
  return add(b, p);
}

static struct exp_point half_load(uint64_t seed) {
  return (struct exp_point){.server = &exp_servers[1], .permille = 500, .seed = seed, .core = true};
}

/* The same beyond the core grid. */
static struct exp_point other_half(enum ct_policy policy) {
  struct exp_point p = half_load(1);
  p.core = false;
  p.policy = policy;
  return p;
}

/* One pair with such figures. */
static struct exp_point *put_pair(struct bed *b, uint64_t seed, const struct figures *alone,
                                  const struct figures *together) {
  struct exp_point *p = add_pair(b, half_load(seed));
  put(b, p - 1, alone);
  put(b, p, together);
  return p;
}

/* The only cell. */
static struct exp_cell cell_of(const struct bed *b) {
  struct exp_summary s;
  assert_int_equal(exp_summary_make(&b->settings, b->point, b->count, &s), 0);
  assert_int_equal(s.cells, 1);
  const struct exp_cell c = s.cell[0];
  exp_summary_free(&s);
  return c;
}

static size_t cells_of(const struct bed *b) {
  struct exp_summary s;
  assert_int_equal(exp_summary_make(&b->settings, b->point, b->count, &s), 0);
  const size_t cells = s.cells;
  exp_summary_free(&s);
  return cells;
}

/* Figures that were computed here in another order of operations. */
static void expect_near(double got, double want) {
  if (!(fabs(got - want) <= 1e-9 * fabs(want))) fail_msg("%.12g instead of %.12g", got, want);
}

static void expect_ratio(const struct exp_ratio *r, double mean, double low, double high) {
  expect_near(r->mean, mean);
  expect_near(r->low, low);
  expect_near(r->high, high);
}

static void expect_single(const struct exp_ratio *r, double value) {
  assert_int_equal(r->seeds, 1);
  expect_near(r->mean, value);
  assert_true(isnan(r->low) && isnan(r->high));
}

static void expect_infinite(const struct exp_ratio *r) {
  assert_true(isinf(r->mean) && isinf(r->low) && isinf(r->high));
}

/* ---- Ratios ---- */

/* Rows and cycles of training alone lie on straight lines between its samples, the first from 0;
 * past the last one they go on at the mean rate, a row in five cycles. */
static void training_between_samples(void **state) {
  static const struct {
    uint64_t window, rows;
    double rows_alone, cycles_alone;
  } cases[] = {
      {50, 5, 5, 50},     {100, 10, 10, 100},  {150, 20, 25, 100 + 100 * 10 / 30.0},
      {200, 40, 40, 200}, {250, 45, 50, 225},  {299, 59, 59.8, 295},
      {300, 60, 60, 300}, {600, 90, 120, 450}, {301, 61, 60.2, 305},
  };
  (void)state;
  struct bed b;
  bed_open(&b, "samples", 1);
  put_training(&b, "");
  const struct exp_point *p = put_pair(&b, 1, &usual, &usual);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    struct figures f = usual;
    f.window = cases[i].window;
    f.rows = cases[i].rows;
    put(&b, p, &f);
    const struct exp_cell c = cell_of(&b);
    const double share = (double)f.rows / cases[i].rows_alone;
    expect_single(&c.share, share);
    expect_single(&c.share_of_idle, share / (1 - 0.5));
    expect_single(&c.same_work, cases[i].cycles_alone / (double)f.window);
  }
}

/* Logarithms l and 2 l: the deviation of the mean is l / 2, and t is 12.7062 with one degree of
 * freedom. */
static void two_seeds(void **state) {
  (void)state;
  const double l = log(1.1), half = 12.7062 * l / 2;
  struct bed b;
  bed_open(&b, "two", 1);
  put_training(&b, "");
  /* u of the run beside training is not taken. */
  struct figures alone = usual, together = usual;
  together.u = 0.9;
  alone.u = 0.4;
  together.p99 = 11000;
  put_pair(&b, 1, &alone, &together);
  alone.u = 0.5;
  together.p99 = 12100;
  together.rows = 66;
  put_pair(&b, 2, &alone, &together);
  const struct exp_cell c = cell_of(&b);
  assert_int_equal(c.seeds, 2);
  expect_ratio(&c.stretch, exp(1.5 * l), exp(1.5 * l - half), exp(1.5 * l + half));
  expect_ratio(&c.share, exp(0.5 * l), exp(0.5 * l - half), exp(0.5 * l + half));
  /* 1 / 0.6 and 1.1 / 0.5. */
  const double of_idle = (log(1 / 0.6) + log(2.2)) / 2;
  const double deviation = 12.7062 * (log(2.2) - log(1 / 0.6)) / 2;
  expect_ratio(&c.share_of_idle, exp(of_idle), exp(of_idle - deviation), exp(of_idle + deviation));
  expect_near(c.p99, 11000 * exp(l / 2));
  expect_near(c.p99_alone, 10000);
  expect_near(c.u, 0.45);
  expect_near(c.u_over_load, 1);
  /* Six batches of one and two of two in each. */
  assert_int_equal(c.batches[1], 12);
  assert_int_equal(c.batches[2], 4);
  expect_near(c.mean_batch, 1.25);
}

/* Logarithms 0 to 4 l: variance 10 l^2 / 4, of the mean a fifth of it; t is 2.7764. */
static void five_seeds(void **state) {
  (void)state;
  const double l = log(1.1), half = 2.7764 * l * sqrt(0.5);
  struct bed b;
  bed_open(&b, "five", 1);
  put_training(&b, "");
  struct figures f = usual;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    f.p99 = (const uint64_t[]){13310, 10000, 14641, 12100, 11000}[seed - 1];
    put_pair(&b, seed, &usual, &f);
  }
  const struct exp_cell c = cell_of(&b);
  assert_int_equal(c.seeds, 5);
  expect_ratio(&c.stretch, 1.21, 1.21 * exp(-half), 1.21 * exp(half));
  expect_ratio(&c.share, 1, 1, 1);
  expect_near(c.p99, 12100);
}

/* p99 infinite beside training, alone, and in both; with a second seed that is finite. */
static void never_answered(void **state) {
  (void)state;
  struct bed b;
  struct figures never = usual;
  never.p99 = CT_STATS_NEVER;
  bed_open(&b, "never", 1);
  put_training(&b, "");
  put_pair(&b, 1, &usual, &never);
  struct exp_cell c = cell_of(&b);
  expect_infinite(&c.stretch);
  assert_true(isinf(c.p99) && !isinf(c.p99_alone));
  put_pair(&b, 2, &usual, &usual);
  c = cell_of(&b);
  expect_infinite(&c.stretch);
  assert_int_equal(c.stretch.seeds, 2);
  expect_ratio(&c.share, 1, 1, 1);
  put(&b, &b.point[1], &never);
  put(&b, &b.point[2], &usual);
  c = cell_of(&b); /* 0 and 1: no mean of logarithms */
  assert_true(isnan(c.stretch.mean) && isinf(c.p99_alone) && !isinf(c.p99));
  put(&b, &b.point[2], &never);
  c = cell_of(&b);
  assert_true(isnan(c.stretch.mean) && isinf(c.p99_alone) && isinf(c.p99));
}

/* A run that was given up has a share only if it had measured a request: more than the first ten
 * were answered. */
static void given_up(void **state) {
  (void)state;
  struct bed b;
  struct figures f = usual;
  f.given_up = true;
  f.lost = 20;
  bed_open(&b, "given-up", 1);
  put_training(&b, "");
  const struct exp_point *p = put_pair(&b, 1, &usual, &f);
  struct exp_cell c = cell_of(&b);
  assert_true(isnan(c.share.mean) && isnan(c.same_work.mean) && isnan(c.share_of_idle.mean));
  expect_single(&c.stretch, 1);
  assert_int_equal(c.asked - c.answered, 20);
  f.lost = 19;
  put(&b, p, &f);
  c = cell_of(&b);
  expect_single(&c.share, 1);
}

/* ---- Requests one by one ---- */

/* Counted are measured requests, from the tenth on, in time alone and late together, by their
 * numbers. */
static void late_only_beside_training(void **state) {
  (void)state;
  struct bed b;
  bed_open(&b, "late", 1);
  put_training(&b, "");
  struct figures alone = usual, together = usual;
  alone.late = 14;
  alone.lates = 3; /* 14, 15, 16 */
  together.late = 8;
  together.lates = 7; /* 8 .. 14 */
  together.lost = 2;
  const struct exp_point *p = put_pair(&b, 1, &alone, &together);
  struct exp_cell c = cell_of(&b);
  assert_int_equal(c.missed_only_together, 4 + 2); /* 10 .. 13; 28, 29 */
  assert_int_equal(c.missed, 9);
  assert_int_equal(c.missed_alone, 3);
  assert_int_equal(c.requests, 20);
  alone.lost = 1;
  put(&b, p - 1, &alone);
  c = cell_of(&b);
  assert_int_equal(c.missed_only_together, 4 + 1);
  assert_int_equal(c.lost_alone, 1);
}

static void cut(const char *path, size_t bytes) {
  size_t size;
  free(cli_slurp(path, &size));
  assert_true(bytes < size);
  assert_int_equal(truncate(path, (off_t)(size - bytes)), 0);
}

/* Without all rows of both runs a seed is not there, and its run is lacking. The last row ends with
 * "1390,1,3,OK,0": cut within the cycle of its end, it has none. */
static void rows_that_are_lacking(void **state) {
  static const size_t bytes[] = {40, 11};
  (void)state;
  struct bed b;
  bed_open(&b, "rows", 1);
  put_training(&b, "");
  put_pair(&b, 1, &usual, &usual);
  const struct exp_point *p = put_pair(&b, 2, &usual, &usual);
  assert_int_equal(cell_of(&b).seeds, 2);
  for (size_t i = 0; i < 6; ++i) {
    char path[EXP_PATH];
    exp_store_path(&b.settings, p - i % 2, ".csv", path);
    if (i < 2)
      assert_int_equal(unlink(path), 0);
    else
      cut(path, bytes[i / 2 - 1]);
    struct exp_summary s;
    assert_int_equal(exp_summary_make(&b.settings, b.point, b.count, &s), 0);
    assert_int_equal(s.cells, 1);
    assert_int_equal(s.cell[0].seeds, 1);
    assert_int_equal(s.there, 5);
    assert_int_equal(s.lacking_count, 1);
    assert_string_equal(s.lacking[0].name, p->name);
    exp_summary_free(&s);
    put(&b, p - i % 2, &usual);
    assert_int_equal(cell_of(&b).seeds, 2);
  }
}

/* A row without an end is no answer. */
static void rows_without_answers(void **state) {
  (void)state;
  struct bed b;
  bed_open(&b, "failed", 1);
  put_training(&b, "");
  struct figures f = usual;
  f.lost = 1;
  const struct exp_point *p = put_pair(&b, 1, &usual, &f);
  char path[EXP_PATH];
  exp_store_path(&b.settings, p, ".csv", path);
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  fprintf(file, "29,0,7,390,,,,0,0,ADDRESS,0\n");
  fclose(file);
  assert_int_equal(cell_of(&b).missed_only_together, 1);
  cut(path, 60); /* that row, and a part of the last answer */
  file = fopen(path, "a");
  assert_non_null(file);
  fprintf(file, "\n29,0,7,390,,,,0,0,ADDRESS,0\n");
  fclose(file);
  assert_int_equal(cells_of(&b), 0);
}

/* ---- Targets ---- */

enum { STRETCH, OF_IDLE, USE, SHARE, NONE_LATE, NONE_LOST, NONE_WRONG, TARGETS };

static void expect_targets(const struct bed *b, const int *held) {
  struct exp_summary s;
  struct exp_target target[EXP_TARGETS];
  assert_int_equal(exp_summary_make(&b->settings, b->point, b->count, &s), 0);
  assert_int_equal(exp_summary_targets(&s, target), TARGETS);
  for (size_t i = 0; i < TARGETS; ++i)
    if (target[i].held != held[i])
      fail_msg("%s: %s is %d instead of %d", target[i].text, target[i].figure, target[i].held,
               held[i]);
  exp_summary_free(&s);
}

static void expect_one(const struct bed *b, int others, size_t one, int held) {
  int all[TARGETS];
  for (size_t i = 0; i < TARGETS; ++i)
    all[i] = i == one ? held : others;
  expect_targets(b, all);
}

/* Good at every target, at each load. */
static struct figures good(const struct exp_point *p) {
  return (struct figures){.p99 = 10000, .window = 300, .rows = 60, .u = p->permille / 1000.0};
}

static struct exp_point *find(struct bed *b, enum exp_kind kind, size_t server, uint32_t permille,
                              uint64_t seed) {
  for (size_t i = 0; i < b->count; ++i) {
    const struct exp_point *p = &b->point[i];
    if (p->kind == kind && p->server == &exp_servers[server] && p->permille == permille &&
        p->seed == seed && p->core && p->policy == CT_PRIORITY)
      return &b->point[i];
  }
  fail_msg("no such point");
  return NULL;
}

/* All of the core grid under PRIORITY. */
static void put_core(struct bed *b, const char *name, uint32_t part, uint64_t seeds) {
  bed_open(b, name, part);
  put_training(b, "");
  for (uint64_t i = 0; i < 8 * seeds; ++i) {
    struct exp_point *p = add_pair(b, (struct exp_point){.server = &exp_servers[i / 4 % 2],
                                                         .permille = exp_loads[i % EXP_LOADS],
                                                         .seed = i / 8 + 1,
                                                         .core = true});
    const struct figures f = good(p);
    put(b, p - 1, &f);
    put(b, p, &f);
  }
}

static void put_p99(struct bed *b, size_t server, uint32_t permille, const uint64_t *p99) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    struct exp_point *p = find(b, EXP_TOGETHER, server, permille, seed);
    struct figures f = good(p);
    f.p99 = p99[seed - 1];
    put(b, p, &f);
  }
}

/* A mean of 1.0799 within 1.08 +- 0.0005, and the same mean with seeds far apart. */
static void targets_by_the_unfavourable_end(void **state) {
  (void)state;
  struct bed b;
  put_core(&b, "targets", 100, 5);
  expect_one(&b, 1, STRETCH, 1);
  put_p99(&b, 1, 800, (const uint64_t[]){10800, 10795, 10805, 10800, 10800});
  expect_one(&b, 1, STRETCH, 1);
  put_p99(&b, 1, 800, (const uint64_t[]){10400, 10800, 11200, 10400, 11200});
  expect_one(&b, 1, STRETCH, 0);
  /* Not above load 0.8, and not for the small network. */
  put_p99(&b, 1, 800, (const uint64_t[]){10000, 10000, 10000, 10000, 10000});
  put_p99(&b, 1, 900, (const uint64_t[]){20000, 20000, 20000, 20000, 20000});
  put_p99(&b, 0, 500, (const uint64_t[]){20000, 20000, 20000, 20000, 20000});
  expect_one(&b, 1, STRETCH, 1);
  /* Infinite is against it. */
  put_p99(&b, 1, 200, (const uint64_t[]){10000, 10000, CT_STATS_NEVER, 10000, 10000});
  expect_one(&b, 1, STRETCH, 0);
  /* In both runs there is no ratio, which hides no other load that is against it. */
  struct figures never = good(find(&b, EXP_ALONE, 1, 200, 3));
  never.p99 = CT_STATS_NEVER;
  put(&b, find(&b, EXP_ALONE, 1, 200, 3), &never);
  expect_one(&b, 1, STRETCH, -1);
  put_p99(&b, 1, 500, (const uint64_t[]){12000, 12000, 12000, 12000, 12000});
  expect_one(&b, 1, STRETCH, 0);
}

/* The same figures, with something of the core grid missing: nothing is held, but a point that is
 * there can be against it. */
static void targets_of_a_part(void **state) {
  (void)state;
  struct bed b;
  put_core(&b, "part", 1, 5);
  expect_one(&b, -1, STRETCH, -1);
  put_p99(&b, 1, 800, (const uint64_t[]){20000, 20000, 20000, 20000, 20000});
  expect_one(&b, -1, STRETCH, 0);
  put_core(&b, "four", 100, 4);
  expect_one(&b, -1, STRETCH, -1);
  /* Without the other axes, what speaks of all runs. */
  put_core(&b, "core", 100, 5);
  b.settings.whole = false;
  expect_targets(&b, (const int[TARGETS]){1, 1, 1, 1, -1, -1, -1});
}

static void remove_file(const struct bed *b, const struct exp_point *p, const char *end) {
  char path[EXP_PATH];
  exp_store_path(&b->settings, p, end, path);
  assert_int_equal(unlink(path), 0);
}

/* One file of the whole grid is away: what does not speak of it is held. */
static void targets_without_a_file(void **state) {
  (void)state;
  struct bed b;
  put_core(&b, "away", 100, 5);
  const struct exp_point *p = find(&b, EXP_TOGETHER, 1, 900, 5);
  const struct figures f = good(p);
  static const int high[TARGETS] = {1, 1, 1, 1, 1, -1, -1};
  remove_file(&b, p, ".json");
  expect_targets(&b, high);
  put(&b, p, &f);
  remove_file(&b, p - 1, ".csv");
  expect_targets(&b, high);
  put(&b, p - 1, &f);
  /* A load that is not in the list at all. */
  size_t kept = 0;
  for (size_t i = 0; i < b.count; ++i)
    if (b.point[i].permille != 200 || b.point[i].server != &exp_servers[1])
      b.point[kept++] = b.point[i];
  b.count = kept;
  expect_targets(&b, (const int[TARGETS]){-1, -1, -1, -1, -1, -1, -1});
}

/* Whatever is not of the core grid can be lacking, too: by its rows, or for want of training alone
 * with that memory. */
static void targets_beyond_the_core(void **state) {
  (void)state;
  struct bed b;
  put_core(&b, "beyond", 100, 5);
  const struct exp_point *p = add_pair(&b, other_half(CT_FCFS));
  struct figures f = good(p);
  put(&b, p, &f);
  expect_one(&b, 1, STRETCH, 1);
  remove_file(&b, p, ".csv");
  expect_one(&b, 1, NONE_WRONG, -1);
  put(&b, p, &f);
  struct exp_point other = other_half(CT_PRIORITY);
  other.memory = "bandwidth=8";
  p = add_pair(&b, other);
  put(&b, p - 1, &f);
  put(&b, p, &f);
  static const int memory[TARGETS] = {1, 1, 1, 1, -1, -1, -1};
  expect_targets(&b, memory);
  put_training(&b, "bandwidth=8");
  expect_one(&b, 1, STRETCH, 1);
}

/* Each of the other targets, missed by one run. */
static void targets_missed_by_one_run(void **state) {
  (void)state;
  struct bed b;
  put_core(&b, "one", 100, 5);
  struct exp_point *p = find(&b, EXP_TOGETHER, 1, 500, 3);
  struct figures f = good(p);
  f.late = 2000;
  f.lates = 1;
  put(&b, p, &f);
  expect_one(&b, 1, NONE_LATE, 0);
  f = good(p);
  f.wrong = 1;
  put(&b, p, &f);
  expect_one(&b, 1, NONE_WRONG, 0);
  f = good(p);
  put(&b, p, &f);
  f.wrong = 1;
  put(&b, p - 1, &f);
  expect_one(&b, 1, NONE_WRONG, 0);
  f = good(p);
  f.u = 0.53;
  put(&b, p - 1, &f);
  expect_one(&b, 1, USE, 0);
  f = good(p);
  put(&b, p - 1, &f);
  p = find(&b, EXP_TOGETHER, 0, 900, 5);
  f = good(p);
  f.lost = 1;
  put(&b, p - 1, &f);
  put(&b, p, &f); /* late in both */
  expect_one(&b, 1, NONE_LOST, 0);
  f.lost = 0;
  put(&b, p - 1, &f);
  put(&b, p, &f);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    p = find(&b, EXP_TOGETHER, 1, 200, seed);
    f = good(p);
    f.rows = 46; /* of 60; and of 0.8 of them 0.958 */
    put(&b, p, &f);
  }
  expect_one(&b, 1, SHARE, 0);
  /* One seed in which training got nothing. */
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    p = find(&b, EXP_TOGETHER, 1, 200, seed);
    f = good(p);
    f.rows = seed == 4 ? 0 : 60;
    put(&b, p, &f);
  }
  static const int starved[TARGETS] = {1, 0, 1, 0, 1, 1, 1};
  expect_targets(&b, starved);
}

/* Under FCFS and in bursts only wrong answers count; lost ones in bursts do. */
static void targets_under_other_conditions(void **state) {
  (void)state;
  struct bed b;
  put_core(&b, "wrong", 100, 5);
  const struct exp_point *fcfs = add_pair(&b, other_half(CT_FCFS));
  struct exp_point other = other_half(CT_PRIORITY);
  other.arrivals = SERVE_BURSTY;
  const struct exp_point *bursts = add_pair(&b, other);
  struct figures f = good(fcfs);
  put(&b, bursts - 1, &f);
  f.p99 = CT_STATS_NEVER;
  f.late = 1500;
  f.lates = 100;
  put(&b, bursts, &f);
  f.lost = 500;
  put(&b, fcfs, &f);
  expect_one(&b, 1, STRETCH, 1);
  f.wrong = 1;
  put(&b, fcfs, &f);
  expect_one(&b, 1, NONE_WRONG, 0);
  f.wrong = 0;
  put(&b, fcfs, &f);
  f.lost = 0;
  f.wrong = 1;
  put(&b, bursts, &f);
  expect_one(&b, 1, NONE_WRONG, 0);
  f.wrong = 0;
  f.lost = 1;
  put(&b, bursts, &f);
  expect_one(&b, 1, NONE_LOST, 0);
}

/* ---- Files of points ---- */

static bool is_there(const struct exp_settings *settings, const struct exp_point *p) {
  struct exp_result r;
  const bool there = exp_store_load(settings, p, &r);
  exp_result_free(&r);
  return there;
}

/* A file counts for the settings it was made by, and whole. */
static void other_settings(void **state) {
  (void)state;
  struct bed b;
  bed_open(&b, "settings", 100);
  const struct exp_point *p = put_pair(&b, 1, &usual, &usual);
  assert_true(is_there(&b.settings, p));
  struct exp_settings s = b.settings;
  s.part = 99;
  assert_false(is_there(&s, p));
  s = b.settings;
  s.data = "mnist";
  assert_false(is_there(&s, p));
  assert_true(is_there(&s, p - 1)); /* which trains nothing */
  uint64_t *const figures[] = {&b.point[1].capacity.service, &b.point[1].capacity.batch,
                               &b.point[1].capacity.busy, &b.point[1].capacity.done,
                               &b.point[1].seed};
  for (size_t i = 0; i < sizeof figures / sizeof *figures; ++i) {
    ++*figures[i];
    assert_false(is_there(&b.settings, p));
    --*figures[i];
  }
  put_training(&b, "");
  const struct exp_point *training = &b.point[b.count - 1];
  s = b.settings;
  s.part = 3; /* fewer samples: a window of the whole experiment would go beyond them */
  assert_true(is_there(&b.settings, training));
  assert_false(is_there(&s, training));
  b.point[1].policy = CT_FCFS;
  assert_false(is_there(&b.settings, p));
  b.point[1].policy = CT_PRIORITY;
  b.point[1].memory = "bandwidth=8";
  assert_false(is_there(&b.settings, p));
  b.point[1].memory = "";
  assert_true(is_there(&b.settings, p));
}

static void half_a_file(void **state) {
  (void)state;
  struct bed b;
  bed_open(&b, "half", 100);
  const struct exp_point *p = put_pair(&b, 1, &usual, &usual);
  char path[EXP_PATH];
  size_t size;
  exp_store_path(&b.settings, p, ".json", path);
  free(cli_slurp(path, &size));
  cut(path, size / 2);
  assert_false(is_there(&b.settings, p));
  put(&b, p, &usual);
  assert_true(is_there(&b.settings, p));
  exp_store_path(&b.settings, p, ".json.new", path); /* written whole, then renamed */
  assert_int_equal(access(path, F_OK), -1);
}

/* ---- Processes ---- */

/* With nothing in a buffer that both would write. */
static pid_t begin(void) {
  fflush(NULL);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  return pid;
}

/* Its status; killed, and the test fails, if it takes too long. */
static int wait_for(pid_t pid) {
  const uint64_t from = ct_tb_ms();
  int status = 0;
  pid_t got;
  while ((got = waitpid(pid, &status, WNOHANG)) == 0 && ct_tb_ms() - from < PATIENCE_MS)
    cli_sleep_ms(5);
  if (got == pid) return status;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  fail_msg("a process has not ended after %d ms", PATIENCE_MS);
  return -1;
}

/* The next byte of a pipe; 0: everyone who could write has ended. */
static char next_byte(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  char c = 0;
  if (poll(&p, 1, PATIENCE_MS) != 1) fail_msg("nothing came within %d ms", PATIENCE_MS);
  return read(fd, &c, 1) == 1 ? c : 0;
}

static void say(int fd, char c) {
  if (write(fd, &c, 1) != 1) _exit(99);
}

/* Another process cannot take what is taken; killed, it has given it back. */
static void claims(void **state) {
  (void)state;
  struct bed b;
  int ends[2];
  bool left = false;
  bed_open(&b, "claims", 1);
  const struct exp_point *p = add_pair(&b, half_load(1));
  assert_int_equal(pipe(ends), 0);
  const pid_t pid = begin();
  if (pid == 0) {
    say(ends[1], exp_store_claim(&b.settings, p) >= 0 ? 'y' : 'n');
    cli_sleep_ms(4 * PATIENCE_MS);
    _exit(0);
  }
  assert_int_equal(next_byte(ends[0]), 'y');
  assert_int_equal(exp_store_claim(&b.settings, p), -1);
  assert_int_equal(exp_make(&b.settings, p, &left), 0);
  assert_true(left);
  const int other = exp_store_claim(&b.settings, p - 1);
  assert_true(other >= 0);
  close(other);
  assert_int_equal(kill(pid, SIGKILL), 0);
  assert_true(WIFSIGNALED(wait_for(pid)));
  const int claim = exp_store_claim(&b.settings, p);
  assert_true(claim >= 0);
  close(claim);
  /* What is there is not made again. */
  left = false;
  put(&b, p, &usual);
  assert_int_equal(exp_make(&b.settings, p, &left), 0);
  assert_false(left);
  close(ends[0]);
  close(ends[1]);
}

struct task {
  pid_t parent;
  int to;
  char what; /* a child: 'f' fails, 'k' is killed, 'g' ends well */
};

static int do_task(const void *arg) {
  const struct task *t = arg;
  if (getpid() == t->parent) return 0;
  fprintf(stderr, "7 %% of the point\n");
  if (t->what == 'f') return cli_fail("the point of a child cannot be made");
  fprintf(stderr, "coltrain: no failure\n");
  fflush(stderr);
  if (t->what == 'k') raise(SIGKILL);
  return 0;
}

/* exp_make_by() in a process whose standard error is a file: its status. */
static int status_of(char what, const char *err) {
  const pid_t pid = begin();
  if (pid == 0) {
    const struct task t = {.parent = getpid(), .what = what};
    if (!freopen(err, "w", stderr)) _exit(99);
    _exit(exp_make_by(2, do_task, &t));
  }
  const int status = wait_for(pid);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* Sentences of a child that failed are heard, nothing else of it. */
static void a_child_is_heard(void **state) {
  static const char once[] = "coltrain: the point of a child cannot be made\n";
  static const struct {
    char what;
    int status;
    const char *text;
  } cases[] = {{'f', 1, once}, {'k', 1, ""}, {'g', 0, ""}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const char *err = cli_path("stderr");
    assert_int_equal(status_of(cases[i].what, err), cases[i].status);
    char *text = cli_slurp(err, NULL);
    assert_string_equal(text, cases[i].text);
    free(text);
  }
}

/* A child works until it is told to stop; the parent has nothing more to do, or works too. */
static int work_on(const void *arg) {
  const struct task *t = arg;
  const uint64_t from = ct_tb_ms();
  say(t->to, 'r');
  if (getpid() == t->parent && t->what == 'w') return 0;
  while (!cli_stopped() && ct_tb_ms() - from < 4 * PATIENCE_MS)
    cli_sleep_ms(5);
  return 0;
}

/* Three processes with a pipe that ends when they all have; the first of them. */
static pid_t start_work(char what, int *from) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const pid_t pid = begin();
  if (pid == 0) {
    const struct task t = {.parent = getpid(), .to = ends[1], .what = what};
    close(ends[0]);
    cli_catch_stop();
    _exit(exp_make_by(3, work_on, &t));
  }
  close(ends[1]);
  for (int i = 0; i < 3; ++i)
    assert_int_equal(next_byte(ends[0]), 'r');
  *from = ends[0];
  return pid;
}

static void children_stop(void **state) {
  static const struct {
    char what;
    int signal;
  } cases[] = {{'w', SIGTERM}, {'b', SIGTERM}, {'b', SIGINT}, {'w', SIGKILL}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int from;
    const pid_t pid = start_work(cases[i].what, &from);
    assert_int_equal(kill(pid, cases[i].signal), 0);
    const int status = wait_for(pid);
    if (cases[i].signal == SIGKILL)
      assert_true(WIFSIGNALED(status));
    else
      assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(next_byte(from), 0); /* none of them is left */
    close(from);
  }
}

/* ---- The command ---- */

/* Points of `colocation` by their names; the capacity that they refer to is in a file, too. */
static void put_named(struct bed *b, const char *arrivals_name, enum serve_arrivals arrivals) {
  struct exp_point p = half_load(1);
  p.arrivals = arrivals;
  struct exp_point *together = add_pair(b, p), *alone = together - 1;
  snprintf(alone->name, EXP_NAME, "784-512-256-10-alone-load50-%s-seed1", arrivals_name);
  snprintf(together->name, EXP_NAME, "784-512-256-10-priority-load50-%s-seed1", arrivals_name);
  put(b, alone, &usual);
  put(b, together, &usual);
}

static void put_references(struct bed *b) {
  struct exp_point c = {.kind = EXP_CAPACITY, .server = &exp_servers[1], .memory = "", .seed = 1};
  struct exp_point t = {.kind = EXP_TRAINING, .memory = "", .seed = 1, .name = "training"};
  snprintf(c.name, sizeof c.name, "784-512-256-10-capacity");
  json_t *o = json_pack(
      "{s:o, s:I, s:I, s:I, s:I}", "settings", exp_point_settings(&b->settings, &c),
      "service_cycles", (json_int_t)capacity.service, "batch_cycles", (json_int_t)capacity.batch,
      "busy_cycles", (json_int_t)capacity.busy, "completed", (json_int_t)capacity.done);
  assert_int_equal(exp_store_save(&b->settings, &c, o), 0);
  o = json_pack("{s:o, s:i, s:[i, i, i]}", "settings", exp_point_settings(&b->settings, &t),
                "pitch_cycles", 100, "rows", 10, 40, 60);
  assert_int_equal(exp_store_save(&b->settings, &t, o), 0);
}

static int colocation(const struct bed *b, const char *only) {
  const pid_t pid = begin();
  if (pid == 0) {
    char *argv[] = {"colocation", "--out", (char *)b->out, "--part",     "1", "--seeds", "1",
                    "--jobs",     "2",     "--only",       (char *)only, NULL};
    if (!freopen(cli_path("text"), "w", stdout) || !freopen(cli_path("stderr"), "w", stderr))
      _exit(99);
    _exit(experiment_colocation(11, argv));
  }
  const int status = wait_for(pid);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* Points that are there are not made again, by their names and with the capacity in its file; what
 * they say is written. */
static void colocation_of_files(void **state) {
  (void)state;
  struct bed b;
  bed_open(&b, "colocation", 1);
  b.settings.trace = "azure-conversation.csv";
  put_references(&b);
  put_named(&b, "poisson", SERVE_POISSON);
  put_named(&b, "bursty", SERVE_BURSTY);
  put_named(&b, "trace", SERVE_TRACE);
  /* All but that with bandwidth=8. */
  assert_int_equal(colocation(&b, "784-*-priority-load50-*[!8]-seed1"), 0);
  char path[EXP_PATH];
  snprintf(path, sizeof path, "%s/summary.json", b.out);
  json_t *o = json_load_file(path, 0, NULL);
  assert_non_null(o);
  assert_int_equal(cli_number_at(o, "points_there"), 8);
  assert_int_equal(json_array_size(cli_at(o, "cells")), 3);
  const json_t *cell = json_array_get(cli_at(o, "cells"), 0);
  assert_string_equal(json_string_value(json_object_get(cell, "arrivals")), "poisson");
  assert_true(json_is_true(json_object_get(cell, "core")));
  json_decref(o);
  assert_int_equal(colocation(&b, "nothing-*"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(training_between_samples),
      cmocka_unit_test(two_seeds),
      cmocka_unit_test(five_seeds),
      cmocka_unit_test(never_answered),
      cmocka_unit_test(given_up),
      cmocka_unit_test(late_only_beside_training),
      cmocka_unit_test(rows_that_are_lacking),
      cmocka_unit_test(rows_without_answers),
      cmocka_unit_test(targets_by_the_unfavourable_end),
      cmocka_unit_test(targets_of_a_part),
      cmocka_unit_test(targets_without_a_file),
      cmocka_unit_test(targets_beyond_the_core),
      cmocka_unit_test(targets_missed_by_one_run),
      cmocka_unit_test(targets_under_other_conditions),
      cmocka_unit_test(other_settings),
      cmocka_unit_test(half_a_file),
      cmocka_unit_test(claims),
      cmocka_unit_test(a_child_is_heard),
      cmocka_unit_test(children_stop),
      cmocka_unit_test(colocation_of_files),
  };
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
