/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What inference and training cost each other, on the simulated hardware: a hundredth of the
 * campaign (scripts/campaign). The command itself fails if a wait or a job exceeds its bound or an
 * answer differs from emu:'s; here its figures are added up.
 */
#include "ct_tb.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_run.h"

enum { JOBS = 4, QUEUES = 2 };

static json_t *run(const char *options) {
  char text[640];
  snprintf(text, sizeof text, "bench interference --json - --batch 16 --jobs %d %s", JOBS, options);
  return cli_expect_json(text);
}

static double number(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  assert_non_null(value);
  return json_number_value(value);
}

/* The entry of a list whose "unit" (and "queue", if given) are these. */
static const json_t *entry(const json_t *list, const char *unit, const char *queue) {
  size_t i;
  json_t *at;
  json_array_foreach(list, i, at) {
    if (strcmp(json_string_value(json_object_get(at, "unit")), unit) != 0) continue;
    if (!queue || !strcmp(json_string_value(json_object_get(at, "queue")), queue)) return at;
  }
  fail_msg("no unit %s", unit);
  return NULL;
}

/* Every operation is in the histogram once, none above the maximum or the bound, if there is one.
 */
static void check_waits(const json_t *unit) {
  const json_t *wait = json_object_get(unit, "wait_training");
  const double max = number(wait, "max");
  const double bound = json_is_null(json_object_get(unit, "bound")) ? max : number(unit, "bound");
  double operations = 0, sum = 0, highest = 0;
  const char *name;
  json_t *count;
  json_object_foreach(json_object_get(wait, "histogram"), name, count) {
    double cycles;
    assert_int_equal(sscanf(name, "%lf", &cycles), 1);
    operations += json_number_value(count);
    sum += cycles * json_number_value(count);
    if (cycles > highest) highest = cycles;
  }
  assert_true(operations == number(unit, "operations"));
  assert_true(sum == number(wait, "sum"));
  assert_true(highest == max && max <= bound);
}

/*
 * busy + waits + idle = cycles for each unit and queue. That no cycle counts twice is asserted in
 * the RTL; here that none is counted too often over the whole run (the counters of a queue are read
 * one after the other, two registers each, within `slack` cycles), and that busy is what moved by
 * the simulator's own count.
 */
static void check_time(const json_t *root, const char *which, bool at_rest) {
  static const char *const units[] = {"DMA read", "DMA write", "MXU", "VL", "VA", "VS"};
  static const char *const queues[] = {"inference", "training"};
  const json_t *part = json_object_get(root, which);
  const double cycles = number(part, "cycles"), slack = 256;
  for (unsigned u = 0; u < sizeof units / sizeof *units; ++u) {
    const json_t *used =
        json_object_get(entry(json_object_get(part, "probe_used"), units[u], NULL), "used");
    for (unsigned c = 0; c < QUEUES; ++c) {
      const json_t *t = entry(json_object_get(part, "time"), units[u], queues[c]);
      const double busy = number(t, "busy"),
                   waits = number(t, "other") + number(t, "operands") + number(t, "semaphore");
      assert_true(busy + waits + number(t, "idle") == cycles);
      assert_true(busy + waits <= cycles + slack);
      /* Where inference is at rest when the window opens and closes, its figures are exact. */
      const double moved = json_number_value(json_array_get(used, c));
      if (c == 0 && at_rest) assert_true(u < 3 ? busy == moved : busy >= moved);
    }
  }
}

/* A memory that refuses: a job takes at most the cycles with a refusal in it more than without
 * any, beside training the bound more than that. */
static void check_refusals(const json_t *root) {
  static const char *const runs[] = {"alone", "together"};
  const double plain = number(root, "alone_unrefused");
  double all = 0;
  for (unsigned r = 0; r < 2; ++r) {
    const json_t *part = json_object_get(root, runs[r]);
    const json_t *latency = json_object_get(part, "latency"),
                 *refused = json_object_get(part, "refused");
    const double bound = r ? number(json_object_get(root, "stretch"), "bound_cycles") : 0;
    assert_int_equal(json_array_size(latency), JOBS);
    assert_int_equal(json_array_size(refused), JOBS);
    for (size_t i = 0; i < JOBS; ++i) {
      const double cycles = json_number_value(json_array_get(latency, i)),
                   lost = json_number_value(json_array_get(refused, i));
      assert_true(lost < cycles);
      assert_true(cycles <= plain + lost + bound);
      all += lost;
    }
  }
  assert_true(all > 0);
}

/* Alone, nobody waits for training; beside it, somebody does, but under JOB. */
static void somebody_waits(json_t *root) {
  double alone = 0, together = 0;
  for (size_t u = 0; u < json_array_size(cli_at(root, "alone.units")); ++u) {
    alone += cli_number_at(json_array_get(cli_at(root, "alone.units"), u), "wait_training.sum");
    together +=
        cli_number_at(json_array_get(cli_at(root, "together.units"), u), "wait_training.sum");
  }
  assert_true(alone == 0);
  assert_true(together > 0 || !strcmp(json_string_value(cli_at(root, "policy")), "job"));
  assert_true(cli_number_at(root, "train_share") > 0);
}

static void bounds_hold(const char *options) {
  json_t *root = run(options);
  static const char *const runs[] = {"alone", "together", "back_to_back"};
  for (unsigned i = 0; i < sizeof runs / sizeof *runs; ++i) {
    json_t *part = cli_at(root, runs[i]), *unit;
    size_t u;
    assert_int_equal(cli_number_at(part, "wrong"), 0);
    json_array_foreach(cli_at(part, "units"), u, unit) check_waits(unit);
    check_time(root, runs[i], i < 2);
  }
  somebody_waits(root);
  const bool of_jobs = !json_is_null(cli_at(root, "stretch.bound_cycles"));
  if (of_jobs && !json_is_null(json_object_get(root, "alone_unrefused"))) check_refusals(root);
  json_decref(root);
}

static void beside_a_model(void **state) {
  (void)state;
  bounds_hold("--network digits --device sim:");
}

static void beside_full_units(void **state) {
  (void)state;
  bounds_hold("--network digits --training stress --device sim:stall=25,seed=3");
  bounds_hold("--network 32x2 --training stress --device sim:core=16x8,bandwidth=8,stall=40");
}

static void beside_full_units_slow_memory(void **state) {
  (void)state;
  bounds_hold("--network 32x2 --training stress --device sim:core=16x8,bandwidth=2");
}

static void beside_one_bank(void **state) {
  (void)state;
  bounds_hold("--network digits --training banks");
  bounds_hold("--network 32x2 --training banks --device sim:core=16x8,bandwidth=8");
}

/* Inference with its weights in the scratchpad, back to back: more than half of training's rate
 * remains, and products of operands that are there, too, cost inference not a cycle. */
static void resident(void **state) {
  (void)state;
  for (unsigned products = 0; products < 2; ++products) {
    json_t *root = run(products ? "--network digits --resident --training products"
                                : "--network digits --resident --training model");
    assert_int_equal(cli_number_at(root, "back_to_back.wrong"), 0);
    assert_true(cli_number_at(root, "back_to_back.u") > 0.9);
    assert_true(cli_number_at(root, "train_share_back_to_back") >= 0.5);
    if (products) assert_true(cli_number_at(root, "stretch.max") == 1);
    json_decref(root);
  }
}

/* CT_DRAWS, or as many as a test has by itself. */
static unsigned long draws(unsigned long usual) {
  const char *text = getenv("CT_DRAWS");
  return text ? strtoul(text, NULL, 0) : usual;
}

#define ANY(of) of[ct_rng_below(&rng, sizeof of / sizeof *of)]

/* Any network and load on any core and memory. (With the usual seed the first draw is four columns,
 * full units and a memory that stalls most of the time.) */
static void any_memory(void **state) {
  (void)state;
  static const char *const
      networks[] = {"32x2", "64x3", "100-50-10", "digits", "40-300-16", "16x1", "17-33-65-7"},
      *const loads[] = {"model", "stress", "banks"}, *const cores[] = {"16x16", "16x8", "16x4"};
  static const unsigned stall[] = {1, 5, 25, 50, 80}, bytes[] = {16, 8, 3, 2},
                        late[] = {20, 60, 200};
  ct_rng rng = ct_rng_make(30);
  for (unsigned long i = 0; i < draws(1); ++i) {
    /* One after the other: the order in which arguments of a call are made is the compiler's. */
    const char *network = ANY(networks), *load = ANY(loads), *core = ANY(cores);
    const char *resident = ct_rng_percent(&rng, 50) ? " --resident" : "";
    const unsigned stalls = ANY(stall), width = ANY(bytes), latency = ANY(late);
    char options[256];
    snprintf(options, sizeof options,
             "--network %s%s --training %s --gap 1500 --seed %lu --device "
             "sim:core=%s,stall=%u,bandwidth=%u,latency=%u,seed=%u",
             network, resident, load, i, core, stalls, width, latency, ct_rng_below(&rng, 1000));
    print_message("%s\n", options);
    bounds_hold(options);
  }
}

/* Any policy, floor and TRAIN_CAP beside any load: the bounds of single waits. (On a memory that
 * stalls some policies have none for reads: it answers them out of turn.) */
static void any_policy(void **state) {
  (void)state;
  static const char *const policies[] = {"priority", "fcfs", "round-robin", "slack", "job"},
                           *const networks[] = {"32x2", "100-50-10", "digits", "17-33-65-7"},
                           *const loads[] = {"model", "stress", "banks"},
                           *const cores[] = {"16x16", "16x8", "16x4"};
  static const unsigned stall[] = {0, 0, 5, 50}, latency[] = {8, 60};
  ct_rng rng = ct_rng_make(2);
  for (unsigned long i = 0; i < 2 * draws(2); ++i) {
    const char *policy = ANY(policies), *network = ANY(networks), *load = ANY(loads);
    const char *core = ANY(cores);
    const unsigned floor = ct_rng_percent(&rng, 50) ? 0 : ct_rng_below(&rng, 256);
    const unsigned cap = 1 + ct_rng_below(&rng, 8), stalls = ANY(stall), late = ANY(latency);
    char options[256];
    snprintf(options, sizeof options,
             "--policy %s --floor %u --train-cap %u --network %s --training %s --gap 1500 "
             "--seed %lu --device sim:core=%s,stall=%u,latency=%u,seed=%u",
             policy, floor, cap, network, load, i, core, stalls, late, ct_rng_below(&rng, 1000));
    print_message("%s\n", options);
    bounds_hold(options);
  }
}

/* Ctrl-C: what there is by then is written. */
static void stopped(void **state) {
  (void)state;
  const char *file = cli_path("stopped.json");
  char args[256];
  snprintf(args, sizeof args, "bench interference --network digits --jobs 100000 --json %s", file);
  struct cli_run run = cli_run(args, 1500);
  if (!strstr(run.err, "before a job had run") && run.status != 128 + SIGINT) {
    assert_int_equal(run.status, 1);
    json_t *root = json_load_file(file, 0, NULL);
    assert_non_null(root);
    assert_true(cli_number_at(root, "alone.jobs") > 0);
    json_decref(root);
  }
  cli_run_free(&run);
}

static void what_cannot_run(void **state) {
  (void)state;
  free(cli_expect(1, "do not fit",
                  "bench interference --resident --network 200x5 --device sim:core=16x8"));
  free(cli_expect(1, "needs a number of 1..16",
                  "bench interference --network digits --device sim:bandwidth=0"));
}

/* Inference alone from a file: the same figures as with a run of its own, and no other jobs' run.
 */
static void alone_from_a_file(void **state) {
  (void)state;
  const char *file = cli_path("alone.json");
  char options[512];
  snprintf(options, sizeof options,
           "bench interference --network digits --batch 16 --jobs %d --training none --json %s",
           JOBS, file);
  free(cli_expect(0, "", options));
  json_t *own = run("--network digits");
  snprintf(options, sizeof options, "--network digits --alone %s", file);
  json_t *taken = run(options);
  assert_true(json_equal(json_object_get(own, "alone"), json_object_get(taken, "alone")));
  /* Without a run alone before it, the run beside training begins in another cycle. The vector
   * unit's fronts look at the contexts in turn, so a request may differ by some cycles. */
  const double mine = number(json_object_get(own, "stretch"), "mean");
  const double theirs = number(json_object_get(taken, "stretch"), "mean");
  assert_true(mine - theirs < 0.01 && theirs - mine < 0.01);
  json_decref(own);
  json_decref(taken);
  snprintf(options, sizeof options, "bench interference --network digits --jobs %d --alone %s",
           JOBS + 1, file);
  free(cli_expect(1, "its jobs is 4, not 5", options));
}

/* What the memory refuses is known however the device's name says it. */
static void memory_by_any_name(void **state) {
  (void)state;
  json_t *plain = run("--network digits --training none --device sim:stall=25");
  json_t *other = run("--network digits --training none --device sim:stall=0,stall=0x19");
  assert_true(number(plain, "alone_unrefused") > 0);
  assert_true(number(other, "alone_unrefused") == number(plain, "alone_unrefused"));
  assert_true(json_equal(json_object_get(other, "alone"), json_object_get(plain, "alone")));
  json_decref(plain);
  json_decref(other);
}

/* The targets of the network of docs/results.md, on a few jobs and with every unit busy: the mean,
 * the slowest, how much longer in cycles (the bound of a job is far above), training's part. */
static void targets_of_the_large_network(void **state) {
  (void)state;
  json_t *root = run("--network 784-512-256-10 --gap 4600 --training stress");
  const json_t *stretch = json_object_get(root, "stretch");
  assert_true(number(stretch, "mean") <= 1.002);
  assert_true(number(stretch, "max") <= 1.005);
  assert_true(number(stretch, "most_cycles") <= 150);
  assert_true(number(root, "train_share_of_idle") >= 0.97);
  json_decref(root);
}

/* With a floor training gets its share of what both want, and bounds are those with a floor. */
static void with_a_floor(void **state) {
  (void)state;
  bounds_hold("--network digits --training stress --floor 64");
  bounds_hold("--network 32x2 --training stress --floor 200 --device sim:core=16x8,bandwidth=4");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(beside_a_model),
      cmocka_unit_test(beside_full_units),
      cmocka_unit_test(beside_full_units_slow_memory),
      cmocka_unit_test(beside_one_bank),
      cmocka_unit_test(resident),
      cmocka_unit_test(any_memory),
      cmocka_unit_test(any_policy),
      cmocka_unit_test(what_cannot_run),
      cmocka_unit_test(stopped),
      cmocka_unit_test(with_a_floor),
      cmocka_unit_test(targets_of_the_large_network),
      cmocka_unit_test(alone_from_a_file),
      cmocka_unit_test(memory_by_any_name),
  };
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
