/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiment.h"

void exp_store_path(const struct exp_settings *settings, const struct exp_point *point,
                    const char *end, char path[EXP_PATH]) {
  snprintf(path, EXP_PATH, "%s/points/%s%s", settings->out, point->name, end);
}

/* Every folder of a path. */
static int make_folders(char *path) {
  for (char *p = path + 1;; ++p) {
    const char c = *p;
    if (c && c != '/') continue;
    *p = 0;
    if (mkdir(path, 0777) && errno != EEXIST)
      return cli_fail("the folder %s cannot be made: %s", path, strerror(errno));
    *p = c;
    if (!c) return 0;
  }
}

int exp_store_open(const struct exp_settings *settings) {
  char path[EXP_PATH];
  if (strlen(settings->out) + EXP_NAME + 32 > sizeof path)
    return cli_fail("--out: the path %s is too long", settings->out);
  snprintf(path, sizeof path, "%s/points", settings->out);
  return make_folders(path);
}

/* ---- Reading ---- */

static uint64_t count_of(const json_t *o, const char *key) {
  const json_int_t n = json_integer_value(json_object_get(o, key));
  return n > 0 ? (uint64_t)n : 0;
}

/* null: never. */
static uint64_t cycles_of(const json_t *o, const char *key) {
  const json_t *v = json_object_get(o, key);
  return json_is_null(v) ? CT_STATS_NEVER : count_of(o, key);
}

double exp_mean_batch(const uint64_t batches[EXP_BATCH + 1]) {
  double requests = 0, all = 0;
  for (size_t n = 1; n <= EXP_BATCH; ++n) {
    all += (double)batches[n];
    requests += (double)(n * batches[n]);
  }
  return all > 0 ? requests / all : 0;
}

static bool take_samples(const json_t *o, struct exp_result *r) {
  const json_t *list = json_object_get(o, "rows");
  if (!list) return true;
  r->samples = json_array_size(list);
  r->pitch = count_of(o, "pitch_cycles");
  r->sample = calloc(r->samples + 1, sizeof *r->sample);
  for (size_t i = 0; r->sample && i < r->samples; ++i)
    r->sample[i] = (uint64_t)json_integer_value(json_array_get(list, i));
  return r->sample && r->samples && r->pitch;
}

static bool take(const json_t *o, struct exp_result *r) {
  const json_t *batches = json_object_get(o, "batches"), *cost = json_object_get(o, "cost_cycles");
  *r = (struct exp_result){
      .there = true,
      .service = count_of(o, "service_cycles"),
      .batch = count_of(o, "batch_cycles"),
      .clock_hz = count_of(o, "clock_hz"),
      .interval = {count_of(o, "interval_cycles_of_1"), count_of(o, "interval_cycles_of_16")},
      .busy = count_of(o, "busy_cycles"),
      .done = count_of(o, "completed"),
      .requests = count_of(json_object_get(o, "settings"), "requests"),
      .measured = count_of(o, "measured"),
      .answered = count_of(o, "answered"),
      .wrong = count_of(o, "wrong"),
      .missed = count_of(o, "deadline_misses"),
      .deadline = count_of(o, "deadline_cycles"),
      .p99 = cycles_of(o, "p99_cycles"),
      .u = json_real_value(json_object_get(o, "u")),
      .window = count_of(o, "window_cycles"),
      .rows = count_of(o, "training_rows"),
      .given_up = json_is_true(json_object_get(o, "given_up"))};
  for (size_t n = 1; n <= EXP_BATCH; ++n) {
    r->batches[n] = (uint64_t)json_integer_value(json_array_get(batches, n - 1));
    r->cost[n] = (uint64_t)json_integer_value(json_array_get(cost, n - 1));
  }
  r->mean_batch = exp_mean_batch(r->batches);
  return take_samples(o, r);
}

bool exp_store_load(const struct exp_settings *settings, const struct exp_point *point,
                    struct exp_result *result) {
  char path[EXP_PATH];
  exp_store_path(settings, point, ".json", path);
  *result = (struct exp_result){.there = false};
  json_t *o = json_load_file(path, 0, NULL);
  if (!o) return false;
  json_t *wanted = exp_point_settings(settings, point);
  const bool same = json_equal(json_object_get(o, "settings"), wanted);
  const bool good = same && take(o, result);
  if (!good) exp_result_free(result);
  json_decref(wanted);
  json_decref(o);
  return good;
}

void exp_result_free(struct exp_result *result) {
  free(result->sample);
  *result = (struct exp_result){.there = false};
}

/* ---- Making ---- */

/* The lock is the system's, so a process that dies gives it back. */
int exp_store_claim(const struct exp_settings *settings, const struct exp_point *point) {
  char path[EXP_PATH];
  exp_store_path(settings, point, ".lock", path);
  const int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  if (fd < 0) {
    cli_fail("%s: cannot be written: %s", path, strerror(errno));
    return -2;
  }
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return -1;
}

int exp_store_save(const struct exp_settings *settings, const struct exp_point *point,
                   json_t *json) {
  char path[EXP_PATH], fresh[EXP_PATH], lock[EXP_PATH], rows[EXP_PATH], fresh_rows[EXP_PATH];
  exp_store_path(settings, point, ".json", path);
  exp_store_path(settings, point, ".json.new", fresh);
  exp_store_path(settings, point, ".lock", lock);
  exp_store_path(settings, point, ".csv", rows);
  exp_store_path(settings, point, ".csv.new", fresh_rows);
  const int status = json_dump_file(json, fresh, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
  json_decref(json);
  /* The rows first: without its file of figures a point is not there. Some have no rows. */
  if (status || (rename(fresh_rows, rows) && errno != ENOENT) || rename(fresh, path))
    return cli_fail("%s: cannot be written: %s", path, strerror(errno));
  unlink(lock);
  return 0;
}
