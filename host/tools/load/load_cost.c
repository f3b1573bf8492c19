/* SPDX-License-Identifier: Apache-2.0 */
/* How long batches of 1 .. 16 take on a device that does nothing else. */
#include "verb_load.h"

/* ROUNDS: batches of each size, the first of them unmeasured. WAIT: cycles after the first request
 * of a batch until it goes; all of them have come by then. LEAD: cycles between handing them over
 * and their arrival. ROW: full batches one after the other. */
enum { ROUNDS = 4, WAIT = 4000, LEAD = 4000, ROW = 4 };

/* Requests that come together, and go in batches of that size. *first: cycles of the first batch
 * from start to end, *interval: from end to end, the mean of the others. */
static int some_batches(struct serve *s, const struct serve_model *m, uint32_t size, uint32_t count,
                        uint64_t *first, uint64_t *interval) {
  struct ct_event record = {.end = 0};
  uint64_t now = 0, end = 0;
  int rc = ct_now(s->load.dev, &now);
  for (uint32_t i = 0; rc >= 0 && i < size * count; ++i) {
    const struct ct_request request = {.rows = m->rows,
                                       .row = i % SERVE_SAMPLES,
                                       .answers = m->answers,
                                       .answer = i,
                                       .cycle = now + LEAD};
    rc = ct_server_push(m->server, &request, NULL);
  }
  if (load_check(&s->load, rc, "measuring what a batch costs")) return 1;
  for (uint32_t i = 0; i < size * count; ++i) {
    if (load_reap(&s->load, &record)) return 1;
    if (!record.tag) return 0;
    if (record.error) return cli_fail("a request failed: %s", ct_code_text(record.code));
    if (record.batch != size)
      return cli_fail("a batch of %u requests was to be measured, but %u went together",
                      (unsigned)size, (unsigned)record.batch);
    if (i < size) {
      end = record.end;
      *first = record.end - record.start;
    }
  }
  if (count > 1) *interval = (record.end - end) / (count - 1);
  return 0;
}

static int cost_of(struct serve *s, const struct serve_model *m, uint32_t size, uint64_t *cost) {
  uint64_t cycles[ROUNDS], none;
  for (size_t i = 0; i < ROUNDS && !cli_stopped(); ++i)
    if (some_batches(s, m, size, 1, &cycles[i], &none)) return 1;
  if (cli_stopped()) return 0;
  ct_stats_sort(cycles + 1, ROUNDS - 1);
  *cost = ct_stats_quantile(cycles + 1, ROUNDS - 1, 1, 2);
  return 0;
}

/* The model's server anew: complete batches of that size. */
static int collect(struct serve *s, struct serve_model *m, uint32_t size) {
  const struct ct_serving how = {
      .batching = CT_BATCHING_FIXED, .max_batch = size, .max_wait = WAIT};
  return serve_batches(s, m, &how);
}

/* From end to end of full batches that follow each other; the first ones load the weights. */
static int interval_of(struct serve *s, struct serve_model *m, uint32_t size, uint64_t *interval) {
  uint64_t first;
  if (cli_stopped()) return 0;
  return collect(s, m, size) || some_batches(s, m, size, ROW, &first, interval) ||
         some_batches(s, m, size, ROW, &first, interval);
}

static int costs_of(struct serve *s, struct serve_model *m, const char *label, json_t *list) {
  if (collect(s, m, LOAD_BATCH)) return 1;
  for (uint32_t size = 1; size <= LOAD_BATCH && !cli_stopped(); ++size) {
    uint64_t cost = 0;
    if (cost_of(s, m, size, &cost)) return 1;
    json_array_append_new(list, json_integer((json_int_t)cost));
    load_show(&s->load, label, (double)size / LOAD_BATCH);
  }
  return 0;
}

/* A request alone, served at once; then batches, which wait until they are complete. */
int load_cost(const struct load_spec *spec, struct serve *s, json_t *o) {
  struct serve_model *m = &s->model[0];
  uint64_t service = 0, one = 0, full = 0;
  json_t *list = json_array();
  json_object_set_new(o, "cost_cycles", list);
  if (load_ask_alone(s, m, &service) || costs_of(s, m, spec->label, list) ||
      interval_of(s, m, 1, &one) || interval_of(s, m, LOAD_BATCH, &full))
    return 1;
  json_object_update_new(
      o, json_pack("{s:I, s:I, s:I, s:I}", "service_cycles", (json_int_t)service, "clock_hz",
                   (json_int_t)s->load.info.clock_hz, "interval_cycles_of_1", (json_int_t)one,
                   "interval_cycles_of_16", (json_int_t)full));
  return 0;
}
