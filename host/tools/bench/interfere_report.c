/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "coltrain_spec.h"
#include "ct_units.h"
#include "interfere.h"

struct stretch {
  double mean, p50, p99, max;
  int64_t most; /* cycles, of all jobs */
};

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static struct stretch stretch_of(const struct interfere *t) {
  struct stretch s = {NAN, NAN, NAN, NAN, 0};
  const size_t n = t->together.jobs < t->alone.jobs ? t->together.jobs : t->alone.jobs;
  double *x = malloc((n + 1) * sizeof *x), sum = 0;
  if (!x || !n) {
    free(x);
    return s;
  }
  for (size_t i = 0; i < n; ++i) {
    const uint64_t both = t->together.latency[i], alone = t->alone.latency[i];
    x[i] = (double)both / (double)alone;
    sum += x[i];
    if ((int64_t)(both - alone) > s.most) s.most = (int64_t)(both - alone);
  }
  qsort(x, n, sizeof *x, by_value);
  s.mean = sum / (double)n;
  s.p50 = x[(n + 1) / 2 - 1];
  s.p99 = x[(99 * n + 99) / 100 - 1];
  s.max = x[n - 1];
  free(x);
  return s;
}

static double cycles_of(const struct interfere_run *r) {
  return (double)(r->window.to - r->window.from);
}

static double busy(const struct interfere_run *r) {
  return r->window.closed && cycles_of(r) > 0 ? (double)r->served_cycles / cycles_of(r)
                                              : (double)NAN;
}

/* Multiply-accumulates of training in a cycle. */
static double rate(const struct interfere_run *r) {
  return load_window_macs(&r->window);
}

/* ---- Roofline of training alone ---- */

/* The least that a step moves and computes: each weight tile is read for the forward pass, but for
 * the first layer's once more for the gradient of its inputs, and its masters and momenta are read
 * and written, with the compute copy written, by the optimiser. */
struct roofline {
  double read, written; /* bytes a step */
  double rows;          /* of the array */
  double cycles, bound; /* measured; the largest of the three times */
  double steps, moved;  /* bytes a step by the counters */
};

static struct roofline roofline_of(const struct interfere *t) {
  enum { RECORD = 272, MASTERS = 2048 };
  const struct interfere_run *r = &t->train_alone;
  struct roofline f = {.steps = (double)r->steps};
  for (uint32_t l = 0; l < t->net.layers; ++l) {
    const double tiles = (double)ct_mlp_in(&t->net, l) * ct_mlp_out(&t->net, l);
    f.read += tiles * (MASTERS + (l ? 2 * RECORD : RECORD));
    f.written += tiles * (MASTERS + RECORD);
    f.rows += tiles * 16 * ct_tiles(t->o->batch) * (l ? 2 : 1) + tiles * 16 * ct_tiles(t->o->batch);
  }
  const double beat = (double)t->beat_cycles + t->refused / (1 - t->refused);
  f.bound = fmax(fmax(f.read, f.written) / 16 * beat, f.rows * (16.0 / t->load.info.array_cols));
  f.cycles = cycles_of(r) / f.steps;
  f.moved = 16 *
            (double)(r->window.counter[CT_TRAINING][CT_CNT_LD_BEATS] +
                     r->window.counter[CT_TRAINING][CT_CNT_ST_BEATS]) /
            f.steps;
  return f;
}

static bool has_roofline(const struct interfere *t) {
  return t->o->load == LOAD_MODEL && t->train_alone.window.closed && t->train_alone.steps;
}

static void print_roofline(FILE *to, const struct interfere *t) {
  if (!has_roofline(t)) return;
  const struct roofline f = roofline_of(t);
  fprintf(
      to,
      "roofline   a step alone takes %.0f cycles; %.0f bytes to read, %.0f to write, %.0f rows: at "
      "least %.0f (x %.3f); moved %.0f bytes\n",
      f.cycles, f.read, f.written, f.rows, f.bound, f.cycles / f.bound, f.moved);
}

static json_t *json_roofline(const struct interfere *t) {
  if (!has_roofline(t)) return json_null();
  const struct roofline f = roofline_of(t);
  return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "read_bytes", f.read, "written_bytes",
                   f.written, "rows", f.rows, "cycles", f.cycles, "least_cycles", f.bound,
                   "moved_bytes", f.moved);
}

/* ---- JSON ---- */

static json_t *json_wait(const struct ct_probe_wait *w) {
  json_t *bins = json_object();
  char name[16];
  for (unsigned i = 0; i < CT_PROBE_BINS; ++i) {
    if (!w->bin[i]) continue;
    snprintf(name, sizeof name, "%u", i);
    json_object_set_new(bins, name, json_integer((json_int_t)w->bin[i]));
  }
  return json_pack("{s:I, s:I, s:o}", "max", (json_int_t)w->max, "sum", (json_int_t)w->sum,
                   "histogram", bins);
}

static json_t *json_bound(uint64_t cycles) {
  return cycles == CT_NO_BOUND ? json_null() : json_integer((json_int_t)cycles);
}

static json_t *json_units(const struct interfere *t, const struct interfere_run *r) {
  json_t *list = json_array();
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u) {
    const struct ct_probe_side *s = &r->probe.side[u][CT_INFERENCE];
    json_array_append_new(
        list, json_pack("{s:s, s:I, s:o, s:o, s:o}", "unit", ct_probe_name(u), "operations",
                        (json_int_t)s->served, "bound", json_bound(t->bound.unit[u]),
                        "wait_training", json_wait(&s->peer), "wait_other", json_wait(&s->rest)));
  }
  return list;
}

/* What moved, of both queues, as the probe saw it. */
static json_t *json_used(const struct interfere_run *r) {
  json_t *list = json_array();
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    json_array_append_new(list, json_pack("{s:s, s:[I, I]}", "unit", ct_probe_name(u), "used",
                                          (json_int_t)r->probe.side[u][CT_INFERENCE].used,
                                          (json_int_t)r->probe.side[u][CT_TRAINING].used));
  return list;
}

static json_t *json_counters(const struct interfere_run *r) {
  json_t *root = json_object();
  const char *name;
  for (size_t i = 0; (name = ct_counter_name(i)); ++i)
    json_object_set_new(root, name,
                        json_pack("[I, I]", (json_int_t)r->window.counter[CT_INFERENCE][i],
                                  (json_int_t)r->window.counter[CT_TRAINING][i]));
  return root;
}

static json_t *json_list(const uint64_t *of_job, size_t jobs) {
  json_t *list = json_array();
  for (size_t i = 0; of_job && i < jobs; ++i)
    json_array_append_new(list, json_integer((json_int_t)of_job[i]));
  return list;
}

static json_t *json_time(const struct load_window *w) {
  return ct_units_list(w->counter[CT_INFERENCE], w->counter[CT_TRAINING], w->to - w->from);
}

static json_t *json_run(const struct interfere *t, const struct interfere_run *r) {
  if (!r->window.closed) return json_null();
  return json_pack("{s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "cycles",
                   (json_int_t)(r->window.to - r->window.from), "jobs", (json_int_t)r->jobs,
                   "wrong", (json_int_t)r->wrong, "u", cli_json_number(busy(r)),
                   "train_macs_per_cycle", cli_json_number(rate(r)), "train_jobs",
                   (json_int_t)r->steps, "units", json_units(t, r), "probe_used", json_used(r),
                   "time", json_time(&r->window), "counters", json_counters(r), "latency",
                   json_list(r->latency, r->jobs), "refused", json_list(r->refused, r->jobs));
}

json_t *interfere_jobs_json(const struct interfere_options *o) {
  return json_pack("{s:s, s:s, s:I, s:b, s:I, s:I}", "network", o->network, "device", o->device,
                   "jobs", (json_int_t)o->jobs, "resident", o->resident, "seed",
                   (json_int_t)o->seed, "gap", (json_int_t)o->gap);
}

static json_t *json_stretch(const struct interfere *t, const struct stretch *s) {
  return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o}", "mean", cli_json_number(s->mean), "p50",
                   cli_json_number(s->p50), "p99", cli_json_number(s->p99), "max",
                   cli_json_number(s->max), "most_cycles", (json_int_t)s->most, "bound_cycles",
                   interfere_job_bounded(t) ? json_bound(t->bound.job) : json_null());
}

static int write_json(const struct interfere *t, const struct stretch *s) {
  const double u = busy(&t->alone), share = rate(&t->together) / rate(&t->train_alone);
  json_t *root = interfere_jobs_json(t->o);
  json_object_update_new(
      root,
      json_pack("{s:s, s:I, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "training",
                interfere_load_name(t->o->load), "batch", (json_int_t)t->o->batch, "policy",
                ct_policy_name(t->o->policy), "floor", (json_int_t)t->o->floor, "gap_range",
                (json_int_t)t->gap_range, "alone",
                t->alone_json ? json_incref(t->alone_json) : json_run(t, &t->alone), "together",
                json_run(t, &t->together), "train_alone", json_run(t, &t->train_alone),
                "back_to_back", json_run(t, &t->busy), "stretch", json_stretch(t, s)));
  json_object_update_new(
      root,
      json_pack("{s:o, s:o, s:o, s:o, s:o}", "alone_unrefused",
                cli_json_cycles(t->refused > 0 ? t->unrefused : CT_NO_CYCLE), "roofline",
                json_roofline(t), "train_share", cli_json_number(share), "train_share_of_idle",
                cli_json_number(share / (1 - u)), "train_share_back_to_back",
                cli_json_number(rate(&t->busy) / rate(&t->train_alone))));
  return cli_json_write(t->o->json, root);
}

/* ---- Text ---- */

static void print_units(FILE *to, const struct interfere *t, const struct interfere_run *r,
                        const char *title) {
  fprintf(to, "\n%s\n  %-10s %10s %8s %8s %9s %9s %9s\n", title, "unit", "operations", "bound",
          "longest", "mean", "other max", "mean");
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u) {
    const struct ct_probe_side *s = &r->probe.side[u][CT_INFERENCE];
    const double n = s->served ? (double)s->served : 1;
    char bound[24] = "-";
    if (t->bound.unit[u] != CT_NO_BOUND)
      snprintf(bound, sizeof bound, "%" PRIu64, t->bound.unit[u]);
    fprintf(to, "  %-10s %10" PRIu64 " %8s %8" PRIu64 " %9.2f %9" PRIu64 " %9.2f%s\n",
            ct_probe_name(u), s->served, bound, s->peer.max, (double)s->peer.sum / n, s->rest.max,
            (double)s->rest.sum / n, s->peer.max > t->bound.unit[u] ? "  BROKEN" : "");
  }
}

static void print_bound(FILE *to, const struct interfere *t) {
  if (t->refused > 0)
    fprintf(to,
            "\nrefusals   latency less the cycles with one and what a job takes alone without any "
            "(%" PRIu64 "): at most %" PRId64,
            t->unrefused, interfere_beyond(t, &t->together));
  if (interfere_job_bounded(t)) fprintf(to, " (bound %" PRIu64 ")", t->bound.job);
  fputc('\n', to);
}

static void print_text(const struct interfere *t, const struct stretch *s) {
  FILE *to = t->load.text;
  const double u = busy(&t->alone), share = rate(&t->together) / rate(&t->train_alone);
  if (!t->alone_json) print_units(to, t, &t->alone, "Cycles inference waits, alone");
  print_units(to, t, &t->together, "Cycles inference waits for training, and for all else; both");
  print_units(to, t, &t->busy, "The same, inference back to back");
  fprintf(to,
          "\n%zu jobs, one at a time (%zu answers wrong); alone %.0f cycles each, u = %.3f\n"
          "stretch    mean %.4f  p50 %.4f  p99 %.4f  max %.4f; at most %" PRId64 " cycles more",
          t->together.jobs, t->alone.wrong + t->together.wrong + t->busy.wrong,
          (double)t->alone.served_cycles / (double)t->alone.jobs, u, s->mean, s->p50, s->p99,
          s->max, s->most);
  print_bound(to, t);
  fprintf(to,
          "training   alone %.2f MAC a cycle, beside it %.2f: x %.4f, %.4f of 1 - u\n"
          "           beside inference back to back (u = %.3f) %.2f: x %.4f\n",
          rate(&t->train_alone), rate(&t->together), share, share / (1 - u), busy(&t->busy),
          rate(&t->busy), rate(&t->busy) / rate(&t->train_alone));
  print_roofline(to, t);
  fputs("\nThe units, both queues:\n\n", to);
  ct_units_print(to, t->together.window.counter[CT_INFERENCE],
                 t->together.window.counter[CT_TRAINING],
                 t->together.window.to - t->together.window.from);
}

/* All there is to say without training. */
static void print_alone(const struct interfere *t) {
  FILE *to = t->load.text;
  if (!t->alone_json) print_units(to, t, &t->alone, "Cycles inference waits, alone");
  fprintf(to, "\n%zu jobs, one at a time (%zu answers wrong); alone %.0f cycles each\n",
          t->alone.jobs, t->alone.wrong, (double)t->alone.served_cycles / (double)t->alone.jobs);
}

static int verdict(const struct interfere *t, const struct stretch *s) {
  enum { RUNS = 3 };
  const struct interfere_run *const runs[RUNS] = {&t->alone, &t->together, &t->busy};
  size_t wrong = 0;
  bool broken = false;
  for (size_t i = 0; i < RUNS; ++i) {
    wrong += runs[i]->wrong;
    for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
      broken |= runs[i]->probe.side[u][CT_INFERENCE].peer.max > t->bound.unit[u];
  }
  if (wrong) return cli_fail("%zu answers differ from emu:", wrong);
  if (broken) return cli_fail("an operation waited longer than its bound");
  const int64_t more = t->refused > 0 ? interfere_beyond(t, &t->together) : s->most;
  if (interfere_job_bounded(t) && more > (int64_t)t->bound.job)
    return cli_fail("a job took %" PRId64 " cycles more than alone%s; the bound is %" PRIu64, more,
                    t->refused > 0 ? " and refusals" : "", t->bound.job);
  return cli_stopped();
}

int interfere_report(const struct interfere *t) {
  const struct stretch s = stretch_of(t);
  if (!t->alone.jobs) return cli_fail("stopped before a job had run");
  if (t->together.window.closed)
    print_text(t, &s);
  else
    print_alone(t);
  const int written = write_json(t, &s);
  if (!t->together.window.closed && t->o->load != LOAD_NONE)
    return cli_fail("stopped before they ran beside training");
  const int failed = verdict(t, &s);
  return written || failed;
}
