/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coltrain experiment batching`: the search over made-up figures, and a small experiment on the
 * simulated hardware, stopped and resumed, whose figures are found again in its rows.
 */
#include "ct_tb.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_run.h"
#include "host/tools/batching.h"

enum { REQUESTS = 1066, CYCLES_LARGE = 5000, POLL_MS = 20 };

/* ---- The search ---- */

static struct batching_row made_up(uint32_t max_batch) {
  struct batching_row row = {.server = &exp_servers[0],
                             .bound_name = "10x",
                             .known = true,
                             .feasible = true,
                             .service = 1050,
                             .clock_hz = 100000000,
                             .interval = max_batch == 1 ? 900 : 1500,
                             .batching = {.bound = 10500, .max_batch = max_batch}};
  for (size_t n = 1; n <= EXP_BATCH; ++n)
    row.cost[n] = 1000 + 30 * (n - 1);
  batching_rates(&row);
  return row;
}

/* A rate is sustained up to a limit; runs above it are ended early, or have a p99 of their own. */
static struct exp_result outcome(const struct batching_row *row, size_t rate, uint64_t limit) {
  const bool good = row->rate[rate] <= limit;
  return (struct exp_result){.there = true,
                             .given_up = !good && rate % 2,
                             .p99 = row->batching.bound + (good ? 0 : 1),
                             .answered = 10,
                             .requests = 10};
}

static void search(struct batching_row *row, uint64_t limit) {
  size_t rate;
  bool tried[BATCHING_RATES] = {false};
  while ((rate = batching_next(row)) != SIZE_MAX) {
    assert_in_range(rate, 0, row->rates - 1);
    assert_false(tried[rate]);
    tried[rate] = true;
    const struct exp_result r = outcome(row, rate, limit);
    batching_take(row, rate, &r);
  }
  assert_true(batching_is_over(row));
}

/* Wherever it begins, it ends with the same two neighbours. */
static void neighbours(void **state) {
  (void)state;
  const struct batching_row like = made_up(EXP_BATCH);
  assert_true(like.rates > 100 && like.rates < BATCHING_RATES);
  assert_true(like.rate[like.rates - 1] <= UINT64_C(16000000000) / 1500);
  for (size_t i = 1; i < like.rates; ++i) {
    assert_true(like.rate[i] > like.rate[i - 1]);
    assert_true((double)like.rate[i] < 1.0101 * (double)like.rate[i - 1]);
  }
  for (size_t begin = 0; begin < like.rates; begin += 37)
    for (size_t limit = 0; limit < like.rates; limit += 29) {
      struct batching_row row = like;
      row.model = begin;
      search(&row, row.rate[limit]);
      assert_non_null(row.good);
      assert_int_equal(row.good->rate, limit);
      if (limit + 1 < row.rates)
        assert_int_equal(row.bad->rate, limit + 1);
      else
        assert_null(row.bad);
    }
  struct batching_row none = like;
  none.model = 50;
  search(&none, 0);
  assert_null(none.good);
  assert_int_equal(none.bad->rate, 0);
}

/* A right first rate costs two runs. */
static void a_good_proposal(void **state) {
  (void)state;
  struct batching_row row = made_up(1);
  row.model = 123;
  search(&row, row.rate[123]);
  assert_int_equal(row.tries, 2);
}

/* Of one engine that serves single requests p99 is known: with one of them every 1,000 cycles, and
 * nine services to wait, 0.7 to 0.85 of the capacity. */
static void the_model_is_plausible(void **state) {
  (void)state;
  struct batching_row row = made_up(1);
  row.interval = 1000;
  batching_rates(&row);
  assert_int_equal(batching_model(&row, 20000, 2000), 0);
  assert_true(batching_load(&row, row.model) > 0.7 && batching_load(&row, row.model) < 0.85);
}

/* ---- On the simulated hardware ---- */

static int by_size(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

struct rows {
  size_t n;
  uint64_t latency[REQUESTS];
  size_t batch_most;
};

static void read_rows(const char *name, struct rows *r) {
  char path[256];
  snprintf(path, sizeof path, "%s/points/%s.csv", cli_path("whole"), name);
  char *csv = cli_slurp(path, NULL), *p = strchr(csv, '\n');
  *r = (struct rows){.n = 0};
  for (++p; *p; p = strchr(p, '\n') + 1) {
    uint64_t id, model, sample, scheduled, arrive, start, end, batch;
    assert_int_equal(sscanf(p,
                            "%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64
                            ",%" SCNu64 ",%" SCNu64,
                            &id, &model, &sample, &scheduled, &arrive, &start, &end, &batch),
                     8);
    assert_int_equal(id, r->n);
    assert_true(r->n < REQUESTS && end > start && start > scheduled);
    r->latency[r->n++] = end - scheduled;
    if (batch > r->batch_most) r->batch_most = batch;
  }
  free(csv);
}

/* p99 by the definition; the first tenth is not measured. */
static uint64_t p99_of(struct rows *r) {
  const size_t drop = (r->n + 9) / 10, n = r->n - drop;
  qsort(r->latency + drop, n, sizeof *r->latency, by_size);
  return r->latency[drop + (99 * n + 99) / 100 - 1];
}

static void check_row(json_t *row) {
  json_t *good = cli_at(row, "sustained");
  const char *name = json_string_value(cli_at(row, "name"));
  const uint64_t bound = (uint64_t)cli_number_at(row, "bound_cycles");
  char file[128];
  struct rows rows;
  assert_true(json_is_true(cli_at(row, "feasible")) && json_is_true(cli_at(row, "complete")));
  snprintf(file, sizeof file, "%s-rate%.0f-seed1", name, cli_number_at(good, "rate_per_gigacycle"));
  read_rows(file, &rows);
  assert_int_equal(rows.n, cli_number_at(good, "requests"));
  assert_true(rows.batch_most <= (size_t)cli_number_at(row, "max_batch"));
  const uint64_t p99 = p99_of(&rows);
  assert_int_equal(p99, cli_number_at(row, "p99_cycles"));
  assert_true(p99 <= bound);
  json_t *next = cli_at(row, "next_rate");
  if (json_is_null(next)) { /* the capacity ended it */
    assert_true(cli_number_at(row, "rate_per_second") * 1.011 >
                cli_number_at(row, "capacity_per_second"));
    return;
  }
  /* A run that was ended has more late ones than p99 leaves room for. */
  const double good_rate = cli_number_at(good, "rate_per_gigacycle"),
               bad_rate = cli_number_at(next, "rate_per_gigacycle");
  assert_true(bad_rate > good_rate && bad_rate < 1.0102 * good_rate + 1);
  snprintf(file, sizeof file, "%s-rate%.0f-seed1", name, bad_rate);
  read_rows(file, &rows);
  const size_t all = (size_t)cli_number_at(next, "requests"), drop = (all + 9) / 10;
  size_t late = 0;
  for (size_t i = drop; i < rows.n; ++i)
    late += rows.latency[i] > bound;
  assert_true(late > (all - drop) / 100);
}

#define BATCHING "experiment batching --part 3 --only digits-10x-* --out "

static char *with(char *text, size_t size, const char *args, const char *folder) {
  snprintf(text, size, "%s%s", args, folder);
  return text;
}

/* Finished points in a folder. */
static size_t points_in(const char *folder) {
  char text[512];
  size_t n = 0;
  snprintf(text, sizeof text, "%s/points", folder);
  DIR *dir = opendir(text);
  for (const struct dirent *e; dir && (e = readdir(dir));) {
    const char *end = strrchr(e->d_name, '.');
    n += end && !strcmp(end, ".json");
  }
  if (dir) closedir(dir);
  return n;
}

/* Runs it until so many points are finished, then presses Ctrl-C. */
static void stop_after(const char *args, const char *folder, size_t points) {
  const pid_t pid = cli_start(args, cli_path("out"), cli_path("err"));
  int status = 0;
  pid_t ended = 0;
  while (points_in(folder) < points && !(ended = waitpid(pid, &status, WNOHANG)))
    cli_sleep_ms(POLL_MS);
  if (!ended) {
    kill(pid, SIGINT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
  }
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 1);
  char *err = cli_slurp(cli_path("err"), NULL);
  assert_non_null(strstr(err, "Stopped. The same command goes on"));
  free(err);
  assert_true(points_in(folder) >= points);
}

/* An experiment that was stopped twice and went on says the same as one that was not, and keeps
 * what it had. */
static void stopped_and_resumed(void **state) {
  (void)state;
  char text[512];
  struct stat before, after;
  char whole[256], parts[256];
  snprintf(whole, sizeof whole, "%s", cli_path("whole"));
  snprintf(parts, sizeof parts, "%s", cli_path("parts"));
  with(text, sizeof text, BATCHING, parts);
  stop_after(text, parts, 1);
  assert_int_equal(stat(cli_path("parts/points/digits-cost.json"), &before), 0);
  stop_after(text, parts, 2);
  free(cli_expect(0, "", text));
  assert_int_equal(stat(cli_path("parts/points/digits-cost.json"), &after), 0);
  assert_true(before.st_ino == after.st_ino);
  free(cli_expect(0, "", with(text, sizeof text, BATCHING, whole)));
  cli_assert_same_files(cli_path("whole/summary.json"), cli_path("parts/summary.json"));
}

/* After stopped_and_resumed. */
static void figures_from_the_rows(void **state) {
  (void)state;
  json_t *root = json_load_file(cli_path("whole/summary.json"), 0, NULL), *row;
  assert_non_null(root);
  double rate[2] = {0, 0};
  size_t at, found = 0;
  json_array_foreach(cli_at(root, "rows"), at, row) {
    if (strncmp(json_string_value(cli_at(row, "name")), "digits-10x-", 11) != 0) continue;
    check_row(row);
    rate[found++] = cli_number_at(row, "rate_per_second");
  }
  assert_int_equal(found, 2);
  json_t *ratio = json_array_get(cli_at(root, "ratios"), 0);
  assert_string_equal(json_string_value(cli_at(ratio, "bound")), "10x");
  const double want = rate[1] / rate[0], got = cli_number_at(ratio, "ratio");
  assert_true(got > want * (1 - 1e-9) && got < want * (1 + 1e-9));
  /* Of so few requests a target cannot be held, only missed. */
  const json_t *target = json_object_get(json_array_get(cli_at(root, "targets"), 0), "held");
  assert_true(got >= 6.67 ? json_is_null(target) : json_is_false(target));
  assert_int_equal(json_array_size(cli_at(root, "targets")), 5);
  const json_t *costs = json_object_get(json_array_get(cli_at(root, "networks"), 0), "cost_cycles");
  assert_int_equal(json_array_size(costs), EXP_BATCH);
  json_decref(root);
}

/* 5,000 cycles are fewer than a request to the large network takes alone. */
static void what_cannot_be(void **state) {
  (void)state;
  char text[512];
  char *out =
      cli_expect(0, "",
                 with(text, sizeof text, "experiment batching --part 3 --only 784-*-50us-* --out ",
                      cli_path("large")));
  assert_non_null(strstr(out, "infeasible: a request alone takes"));
  free(out);
  json_t *root = json_load_file(cli_path("large/summary.json"), 0, NULL), *row;
  size_t at, found = 0;
  json_array_foreach(cli_at(root, "rows"), at, row) {
    if (strcmp(json_string_value(cli_at(row, "bound")), "50us") != 0) continue;
    ++found;
    assert_true(cli_number_at(row, "bound_cycles") == CYCLES_LARGE);
    assert_true(cli_number_at(row, "unloaded_cycles") > CYCLES_LARGE);
    assert_true(json_is_false(cli_at(row, "feasible")));
    assert_true(json_is_null(cli_at(row, "rate_per_second")));
  }
  assert_int_equal(found, 2);
  json_decref(root);
  char *page = cli_slurp(cli_path("large/report.html"), NULL);
  assert_non_null(strstr(page, "infeasible: a request alone takes longer"));
  assert_null(strstr(page, "nan"));
  free(page);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(neighbours),
      cmocka_unit_test(a_good_proposal),
      cmocka_unit_test(the_model_is_plausible),
      cmocka_unit_test(stopped_and_resumed),
      cmocka_unit_test(figures_from_the_rows),
      cmocka_unit_test(what_cannot_be),
  };
  print_message("seed 1 of arrivals, samples and weights\n");
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
