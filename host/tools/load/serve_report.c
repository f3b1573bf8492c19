/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <limits.h>

#include "ct_units.h"
#include "serve.h"

/* ---- Figures ---- */

/* Of the measured requests: those that came too late, or never; requests a second in time. */
struct figures {
  struct ct_stats latency;
  size_t missed, unknown; /* too late; answered, but nobody knows when */
  double goodput, mean_batch;
};

static bool in_time(const struct serve *s, const struct request *r) {
  return r->answered && (!s->o->deadline || r->end - r->scheduled <= s->o->deadline);
}

/* Of the servers, the most: what ADAPTIVE takes off a deadline, and deadlines that can hold, and
 * that do. 0: unknown. */
struct limits {
  uint32_t margin, least, safe;
};

static struct limits limits_of(const struct serve *s) {
  struct limits most = {0, 0, 0};
  for (size_t i = 0; i < s->o->models; ++i) {
    struct ct_server_info info;
    const struct serve_model *m = &s->model[i];
    m->kind->info(s, m, &info);
    if (info.margin > most.margin) most.margin = info.margin;
    if (info.least_deadline > most.least) most.least = info.least_deadline;
    if (info.safe_deadline > most.safe) most.safe = info.safe_deadline;
  }
  return most;
}

static double mean_batch(const struct requests *run) {
  double batches = 0, requests = 0;
  for (size_t n = 1; n <= REQUESTS_BATCH; ++n) {
    requests += (double)run->in_batch[n];
    batches += (double)run->in_batch[n] / (double)n;
  }
  return batches > 0 ? requests / batches : 0;
}

void serve_deadlines(const struct serve *s, size_t drop, size_t *missed, double *goodput) {
  const struct requests *run = &s->run;
  uint64_t last = 0;
  size_t good = 0;
  *missed = 0;
  for (size_t i = drop; i < run->count; ++i) {
    const struct request *r = &run->request[i];
    const bool met = in_time(s, r);
    good += met;
    *missed += !met;
    if (r->answered && r->end > last) last = r->end;
  }
  const uint64_t first = drop < run->count ? run->request[drop].scheduled : last;
  *goodput =
      last > first ? (double)good * (double)s->load.info.clock_hz / (double)(last - first) : 0;
}

static int figures_of(const struct serve *s, struct figures *f) {
  const struct requests *run = &s->run;
  const size_t drop = ct_stats_drop(run->count);
  *f = (struct figures){.mean_batch = mean_batch(run)};
  for (size_t i = 0; i < run->count; ++i)
    f->unknown += run->request[i].met == CT_MET_UNKNOWN;
  if (!s->load.info.has_clock || run->done < run->count) return 0;
  serve_deadlines(s, drop, &f->missed, &f->goodput);
  return requests_sum_up(run, run->count, drop, CT_NO_CYCLE, &f->latency);
}

static double per_second(const struct serve *s, uint32_t permille) {
  if (!s->capacity_busy) return 0;
  return (double)permille / 1000 * (double)s->capacity_done / (double)s->capacity_busy *
         (double)s->load.info.clock_hz;
}

/* ---- Text ---- */

static void print_latency(const struct serve *s, const struct figures *f) {
  const struct ct_stats *l = &f->latency;
  const struct {
    const char *name;
    uint64_t cycles;
  } rows[] = {
      {"p50", l->p50}, {"p90", l->p90}, {"p99", l->p99}, {"p99.9", l->p999}, {"max", l->max}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (rows[i].cycles == CT_STATS_NEVER)
      fprintf(s->load.text, "  %-6s never\n", rows[i].name);
    else if (rows[i].cycles)
      fprintf(s->load.text, "  %-6s %10" PRIu64 " cycles %12.2f us\n", rows[i].name, rows[i].cycles,
              (double)rows[i].cycles * 1e6 / (double)s->load.info.clock_hz);
  }
}

/* What cannot be, or need not be. */
static void print_limits(const struct serve *s) {
  const struct limits l = limits_of(s);
  const bool adaptive = s->o->serving.batching == CT_BATCHING_ADAPTIVE;
  if (s->o->deadline < l.least)
    fprintf(s->load.text, "               cannot hold: a request alone takes %" PRIu32 " cycles\n",
            l.least);
  else if (adaptive && s->o->deadline < l.safe)
    fprintf(s->load.text,
            "               below %" PRIu32
            " cycles batches go at once, and may be late when others "
            "are in front\n",
            l.safe);
}

static void print_times(const struct serve *s, const struct figures *f) {
  fprintf(s->load.text, "capacity       %.1f cycles a request, %.0f requests a second\n",
          (double)s->capacity_busy / (double)s->capacity_done, per_second(s, 1000));
  fprintf(s->load.text, "load           %.3f, %.0f requests a second, %s arrivals\n",
          (double)s->o->permille / 1000, per_second(s, s->o->permille),
          arrivals_name(s->o->arrivals.kind));
  fprintf(s->load.text, "latency        of %zu requests, the first %zu left out\n",
          f->latency.count, f->latency.dropped);
  print_latency(s, f);
  if (s->o->deadline)
    fprintf(s->load.text, "deadline       %" PRIu32 " cycles, missed by %zu of %zu (%.3f %%)\n",
            s->o->deadline, f->missed, f->latency.count,
            f->latency.count ? 100 * (double)f->missed / (double)f->latency.count : 0);
  if (s->o->deadline) print_limits(s);
  fprintf(s->load.text, "goodput        %.0f requests a second\n", f->goodput);
  if (s->probes_done)
    fprintf(s->load.text,
            "sustainable    %.3f of the capacity, %.0f requests a second, with p99 <= %" PRIu64
            " cycles\n",
            (double)s->sustainable / 1000, per_second(s, s->sustainable), s->o->bound);
}

void serve_print(const struct serve *s) {
  struct figures f;
  if (figures_of(s, &f)) return;
  for (size_t i = 0; i < s->o->models; ++i) {
    char layers[PATH_MAX];
    struct ct_server_info info;
    const struct serve_model *m = &s->model[i];
    serve_name(m->shape, layers, sizeof layers);
    m->kind->info(s, m, &info);
    fprintf(s->load.text, "model          %s, weights %s\n", layers,
            info.pinned_words ? "stay in the scratchpad" : "come with every batch");
  }
  const uint32_t margin = limits_of(s).margin;
  fprintf(s->load.text, "batching       %s, up to %" PRIu32 " requests",
          ct_batching_name(s->o->serving.batching),
          s->o->serving.max_batch ? s->o->serving.max_batch : 16);
  if (margin && s->o->serving.batching == CT_BATCHING_ADAPTIVE)
    fprintf(s->load.text, ", %" PRIu32 " cycles early", margin);
  fputc('\n', s->load.text);
  if (s->load.info.has_clock && s->capacity_done && s->run.done == s->run.count) print_times(s, &f);
  if (f.unknown)
    fprintf(s->load.text,
            "deadline       %" PRIu32
            " cycles: whether it was met is unknown of %zu requests, for "
            "this device has no time\n",
            s->o->deadline, f.unknown);
  fprintf(s->load.text, "batches        %.2f requests in the mean\n", f.mean_batch);
  fprintf(s->load.text, "answers        %zu of %zu, %zu wrong\n", s->run.done - s->run.failed,
          s->run.count, s->wrong);
  cli_tell_stopped(s->load.text);
}

/* ---- CSV ---- */

int serve_csv(const struct serve *s) {
  static const char columns[] =
      "request,model,sample,scheduled,arrive,start,end,batch,version,code,wrong";
  return s->o->csv ? requests_csv(&s->run, s->o->csv, columns) : 0;
}

/* ---- JSON ---- */

static json_t *cycles(uint64_t n) {
  return n == 0 || n == CT_STATS_NEVER ? json_null() : json_integer((json_int_t)n);
}

static json_t *json_models(const struct serve *s) {
  json_t *list = json_array();
  for (size_t i = 0; i < s->o->models; ++i) {
    char layers[PATH_MAX];
    struct ct_server_info info;
    const struct serve_model *m = &s->model[i];
    serve_name(m->shape, layers, sizeof layers);
    m->kind->info(s, m, &info);
    json_array_append_new(list, json_pack("{s:s, s:b}", "layers", layers, "weights_stay",
                                          (int)(info.pinned_words > 0)));
  }
  return list;
}

static json_t *json_search(const struct serve *s) {
  if (!s->probes_done) return json_null();
  json_t *list = json_array();
  for (size_t i = 0; i < s->probes_done; ++i)
    json_array_append_new(list, json_pack("{s:f, s:o}", "load", s->probes[i].permille / 1000.0,
                                          "p99_cycles", cycles(s->probes[i].p99)));
  return json_pack("{s:I, s:f, s:f, s:o}", "bound_cycles", (json_int_t)s->o->bound, "load",
                   s->sustainable / 1000.0, "requests_per_second", per_second(s, s->sustainable),
                   "probes", list);
}

int serve_json(const struct serve *s) {
  struct figures f;
  const struct serve_options *o = s->o;
  const struct limits limits = limits_of(s);
  if (figures_of(s, &f)) return 1;
  const struct ct_stats *l = &f.latency;
  json_t *root = json_pack(
      "{s:s, s:o, s:s, s:I, s:f, s:s, s:i, s:I, s:I, s:I, s:b}", "device", o->device, "models",
      json_models(s), "arrivals", arrivals_name(o->arrivals.kind), "seed", (json_int_t)o->seed,
      "load", o->permille / 1000.0, "batching", ct_batching_name(o->serving.batching), "max_batch",
      o->serving.max_batch ? (int)o->serving.max_batch : 16, "max_wait_cycles",
      (json_int_t)o->serving.max_wait, "margin_cycles", (json_int_t)limits.margin,
      "deadline_cycles", (json_int_t)o->deadline, "stopped", (int)cli_stopped());
  json_object_set_new(root, "least_deadline_cycles", cycles(limits.least));
  json_object_set_new(root, "safe_deadline_cycles", cycles(limits.safe));
  json_object_set_new(
      root, "clock_hz",
      s->load.info.has_clock ? json_integer((json_int_t)s->load.info.clock_hz) : json_null());
  json_object_set_new(root, "capacity",
                      load_capacity_json(s->capacity_done, s->capacity_busy, s->capacity_done));
  json_object_set_new(
      root, "serve",
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:f, s:o}",
                "requests", (json_int_t)s->run.count, "completed",
                (json_int_t)(s->run.done - s->run.failed), "wrong", (json_int_t)s->wrong,
                "measured", (json_int_t)l->count, "dropped", (json_int_t)l->dropped, "p50_cycles",
                cycles(l->p50), "p90_cycles", cycles(l->p90), "p99_cycles", cycles(l->p99),
                "p999_cycles", cycles(l->p999), "max_cycles", cycles(l->max), "deadline_misses",
                o->deadline && l->count ? json_integer((json_int_t)f.missed) : json_null(),
                "deadline_unknown", (json_int_t)f.unknown, "goodput_per_second",
                f.goodput > 0 ? json_real(f.goodput) : json_null(), "mean_batch", f.mean_batch,
                "batches", requests_json_batches(&s->run)));
  json_object_set_new(root, "sustainable", json_search(s));
  const struct load_window *w = &s->window;
  const bool whole = s->run.done == s->run.count && w->closed;
  json_object_set_new(root, "array", cli_json_array(s->load.dev));
  json_object_set_new(
      root, "time",
      whole ? ct_units_json(w->counter[CT_INFERENCE], NULL, w->to - w->from) : json_null());
  return cli_json_write(o->json, root);
}
