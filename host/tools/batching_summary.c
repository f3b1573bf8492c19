/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "batching.h"

/* Of what the costs promise. */
static const double part = 0.9;
const double batching_equinox = 6.67;
static const char mark_bound[] = "500us", target_bound[] = "10x";

/* ---- Figures ---- */

double batching_per_second(const struct batching_row *row, size_t rate) {
  return (double)row->rate[rate] * (double)row->clock_hz / 1e9;
}

double batching_load(const struct batching_row *row, size_t rate) {
  return (double)row->rate[rate] / 1e9 * (double)row->interval / row->batching.max_batch;
}

const struct batching_row *batching_single(const struct batching_row *rows,
                                           const struct batching_row *row) {
  for (size_t i = 0; i < BATCHING_ROWS; ++i)
    if (rows[i].server == row->server && !strcmp(rows[i].bound_name, row->bound_name) &&
        rows[i].batching.max_batch == 1)
      return &rows[i];
  return row;
}

double batching_gain(const struct batching_row *rows, const struct batching_row *row) {
  const struct batching_row *single = batching_single(rows, row);
  if (!batching_is_over(row) || !batching_is_over(single) || !row->good || !single->good) return 0;
  return (double)row->rate[row->good->rate] / (double)single->rate[single->good->rate];
}

double batching_promise(const struct batching_row *row) {
  return EXP_BATCH * (double)row->cost[1] / (double)row->cost[EXP_BATCH];
}

/* ---- Targets ---- */

/* Whether the rate that was found holds with the arrivals of every seed that was tried. */
static bool all_seeds_hold(const struct batching_row *row) {
  for (size_t i = 0; i < row->seeds; ++i)
    if (!batching_held(row, &row->seed[i].result)) return false;
  return true;
}

/* With fewer requests than the definition asks for, or where the rate does not hold with all
 * arrivals, the target is not held, but not missed either. limit 0: not known. */
static void judge(const struct batching_row *rows, const struct batching_row *row, bool whole,
                  double limit, const char *why, struct exp_target *target) {
  const double gain = batching_gain(rows, row);
  char least[32] = "";
  if (limit > 0) snprintf(least, sizeof least, "%.2f x ", limit);
  snprintf(target->text, sizeof target->text,
           "%s at 10 x its unloaded latency: batches sustain at least %sthe rate of single "
           "requests (%s)",
           row->server->name, least, why);
  target->held = -1;
  snprintf(target->figure, sizeof target->figure, "not measured");
  if (!(gain > 0)) return;
  if (gain < limit)
    target->held = 0;
  else if (whole && all_seeds_hold(row))
    target->held = 1;
  snprintf(target->figure, sizeof target->figure, "%.2f, with the arrivals of %zu seed%s%s%s", gain,
           row->seeds, row->seeds == 1 ? "" : "s",
           all_seeds_hold(row) ? "" : ", of which one fails",
           whole ? "" : ", of a part of the requests");
}

static uint64_t wrong_of(const struct batching_row *row, uint64_t *answered) {
  uint64_t wrong = 0;
  for (size_t i = 0; i < row->tries; ++i) {
    wrong += row->tried[i].result.wrong;
    *answered += row->tried[i].result.answered;
  }
  for (size_t i = 0; i < row->seeds; ++i) {
    if (row->seed[i].seed == 1) continue; /* the search's own */
    wrong += row->seed[i].result.wrong;
    *answered += row->seed[i].result.answered;
  }
  return wrong;
}

uint64_t batching_wrong(const struct batching_row *rows, uint64_t *answered) {
  uint64_t wrong = 0;
  *answered = 0;
  for (size_t i = 0; i < BATCHING_ROWS; ++i)
    wrong += wrong_of(&rows[i], answered);
  return wrong;
}

size_t batching_targets(const struct batching_row *rows, const struct exp_settings *settings,
                        struct exp_target target[EXP_TARGETS]) {
  const bool whole = settings->part == 100;
  uint64_t answered;
  const uint64_t wrong = batching_wrong(rows, &answered);
  size_t n = 0;
  for (size_t i = 0; i < BATCHING_ROWS; ++i) {
    const struct batching_row *row = &rows[i];
    if (row->batching.max_batch == 1 || strcmp(row->bound_name, target_bound) != 0) continue;
    judge(rows, row, whole, batching_equinox, "what Equinox reports at 500 us", &target[n++]);
    judge(rows, row, whole, row->known ? part * batching_promise(row) : 0, "0.9 x 16 c(1) / c(16)",
          &target[n++]);
  }
  struct exp_target *t = &target[n++];
  snprintf(t->text, sizeof t->text, "answers that are not those of emu:, none allowed");
  snprintf(t->figure, sizeof t->figure, "%llu of %llu", (unsigned long long)wrong,
           (unsigned long long)answered);
  t->held = wrong ? 0 : answered && whole ? 1 : -1;
  return n;
}

/* ---- JSON ---- */

/* A run that was ended early has no p99: null, more than the bound. */
static json_t *json_p99(const struct exp_result *r) {
  return r->given_up ? json_null() : cli_json_cycles(r->p99);
}

static json_t *json_seeds(const struct batching_row *row) {
  json_t *list = json_array();
  for (size_t i = 0; i < row->seeds; ++i)
    json_array_append_new(list, json_pack("{s:I, s:o, s:b}", "seed", (json_int_t)row->seed[i].seed,
                                          "p99_cycles", json_p99(&row->seed[i].result), "held",
                                          (int)batching_held(row, &row->seed[i].result)));
  return list;
}

static json_t *json_try(const struct batching_row *row, const struct batching_try *t) {
  if (!t) return json_null();
  return json_pack("{s:f, s:I, s:f, s:o, s:f, s:I}", "rate_per_second",
                   batching_per_second(row, t->rate), "rate_per_gigacycle",
                   (json_int_t)row->rate[t->rate], "load", batching_load(row, t->rate),
                   "p99_cycles", json_p99(&t->result), "mean_batch", t->result.mean_batch,
                   "requests", (json_int_t)t->result.requests);
}

double batching_floor(const struct batching_row *row) {
  return batching_per_second(row, row->bad ? row->bad->rate : 0);
}

const char *batching_floor_by(const struct batching_row *row) {
  return row->bad ? "the lowest rate that was tried" : "by the model";
}

static json_t *json_row(const struct batching_row *row) {
  json_t *o = json_pack(
      "{s:s, s:s, s:s, s:i, s:s, s:I, s:I, s:I, s:f, s:b, s:b}", "name", row->name, "network",
      row->server->name, "bound", row->bound_name, "max_batch", (int)row->batching.max_batch,
      "batching",
      ct_batching_name(row->batching.max_batch > 1 ? CT_BATCHING_ADAPTIVE : CT_BATCHING_NONE),
      "bound_cycles", (json_int_t)row->batching.bound, "margin_cycles",
      (json_int_t)row->batching.margin, "unloaded_cycles", (json_int_t)row->service,
      "capacity_per_second",
      (double)row->clock_hz * row->batching.max_batch / (double)row->interval, "feasible",
      (int)row->feasible, "complete", (int)(!row->feasible || batching_is_over(row)));
  const struct batching_try *good = row->good;
  json_object_update_new(
      o, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "rate_per_second",
                   good ? json_real(batching_per_second(row, good->rate)) : json_null(), "load",
                   good ? json_real(batching_load(row, good->rate)) : json_null(), "p99_cycles",
                   good ? json_p99(&good->result) : json_null(), "sustained", json_try(row, good),
                   "next_rate", json_try(row, row->bad), "seeds", json_seeds(row), "rates_tried",
                   (int)row->tries));
  if (row->feasible && !good && batching_is_over(row))
    json_object_update_new(o, json_pack("{s:f, s:s}", "less_than_per_second", batching_floor(row),
                                        "less_than_by", row->bad ? "simulation" : "model"));
  return o;
}

static json_t *json_networks(const struct batching_row *rows) {
  json_t *list = json_array();
  for (size_t i = 0; i < BATCHING_ROWS; i += (size_t)BATCHING_BOUNDS * BATCHING_SIZES) {
    const struct batching_row *row = &rows[i];
    if (!row->known) continue;
    json_t *cost = json_array();
    for (size_t n = 1; n <= EXP_BATCH; ++n)
      json_array_append_new(cost, json_integer((json_int_t)row->cost[n]));
    json_array_append_new(list, json_pack("{s:s, s:I, s:o, s:f}", "network", row->server->name,
                                          "unloaded_cycles", (json_int_t)row->service,
                                          "cost_cycles", cost, "promise", batching_promise(row)));
  }
  return list;
}

static json_t *json_ratios(const struct batching_row *rows) {
  json_t *list = json_array();
  for (size_t i = 0; i < BATCHING_ROWS; ++i) {
    const struct batching_row *row = &rows[i];
    if (!row->known || row->batching.max_batch == 1) continue;
    const double gain = batching_gain(rows, row);
    const bool mark = !strcmp(row->bound_name, mark_bound);
    json_array_append_new(
        list,
        json_pack("{s:s, s:s, s:o, s:f, s:o, s:o}", "network", row->server->name, "bound",
                  row->bound_name, "ratio", gain > 0 ? json_real(gain) : json_null(), "promise",
                  batching_promise(row), "of_promise", cli_json_ratio(gain, batching_promise(row)),
                  "mark_equinox", mark ? json_real(batching_equinox) : json_null()));
  }
  return list;
}

json_t *batching_json(const struct batching_row *rows, const struct exp_settings *settings) {
  struct exp_target target[EXP_TARGETS];
  const size_t targets = batching_targets(rows, settings, target);
  json_t *list = json_array();
  for (size_t i = 0; i < BATCHING_ROWS; ++i)
    if (rows[i].known) json_array_append_new(list, json_row(&rows[i]));
  return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "experiment", "batching", "part_percent",
                   (int)settings->part, "networks", json_networks(rows), "rows", list, "ratios",
                   json_ratios(rows), "targets", exp_targets_json(target, targets));
}

/* ---- Text ---- */

static void print_row(const struct batching_row *rows, const struct batching_row *row, FILE *to) {
  fprintf(to, "%-15s %-6s %10llu %5u", row->server->name, row->bound_name,
          (unsigned long long)row->batching.bound, (unsigned)row->batching.max_batch);
  if (!row->feasible) {
    fprintf(to, "  infeasible: a request alone takes %llu cycles\n",
            (unsigned long long)row->service);
    return;
  }
  if (!row->good && batching_is_over(row)) {
    fprintf(to, "  less than %.0f a second, %s\n", batching_floor(row), batching_floor_by(row));
    return;
  }
  if (!row->good) {
    fprintf(to, "  not measured\n");
    return;
  }
  const double gain = batching_gain(rows, row);
  fprintf(to, " %10.0f  %5.3f %10llu  %5.2f", batching_per_second(row, row->good->rate),
          batching_load(row, row->good->rate), (unsigned long long)row->good->result.p99,
          row->good->result.mean_batch);
  if (row->batching.max_batch > 1 && gain > 0)
    fprintf(to, "  %6.2f of %.2f", gain, batching_promise(row));
  fprintf(to, "%s\n", batching_is_over(row) ? "" : "  search not over");
}

void batching_print(const struct batching_row *rows, const struct exp_settings *settings,
                    FILE *to) {
  struct exp_target target[EXP_TARGETS];
  const size_t targets = batching_targets(rows, settings, target);
  fprintf(to, "%-15s %-6s %10s %5s %10s  %5s %10s  %5s  %6s\n", "network", "bound", "cycles",
          "batch", "per second", "load", "p99", "mean", "ratio, and what the costs promise");
  for (size_t i = 0; i < BATCHING_ROWS; ++i)
    if (rows[i].known) print_row(rows, &rows[i], to);
  fputc('\n', to);
  exp_targets_print(target, targets, to);
}
