/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "colocate.h"
#include "ct_stats.h"

enum { RECENT = 1000 };

/* Requests that have arrived and are not answered; without a clock those submitted. */
static size_t waiting(const struct colocate *c, const struct server *s) {
  size_t n = 0;
  if (!c->load.info.has_clock || s->run.request[0].scheduled == CT_NO_CYCLE)
    return s->run.pushed - s->run.done;
  for (size_t i = s->run.done; i < s->run.count && s->run.request[i].scheduled <= c->load.clock;
       ++i)
    ++n;
  return n;
}

static json_t *microseconds(const struct colocate *c, uint64_t cycles) {
  return cli_json_ratio(1e6 * cycles_or_nan(cycles), (double)c->load.info.clock_hz);
}

static void add_latency(const struct colocate *c, const struct server *s, json_t *requests) {
  const size_t n = s->run.done < RECENT ? s->run.done : RECENT;
  uint64_t samples[RECENT];
  struct ct_stats stats;
  if (!n || !c->load.info.has_clock || s->run.request[0].scheduled == CT_NO_CYCLE) return;
  requests_latencies(&s->run, s->run.done - n, n, CT_NO_CYCLE, samples);
  ct_stats_sum_up(&stats, samples, n, 0);
  json_object_set_new(requests, "p50_us", microseconds(c, stats.p50));
  json_object_set_new(requests, "p99_us", microseconds(c, stats.p99));
}

void colocate_live(struct colocate *c) {
  json_t *line = live_begin(&c->live);
  if (!line) return;
  const struct server *s = c->server;
  const uint64_t training =
      c->feed.submitted - c->feed.finished + c->filler.submitted - c->filler.finished;
  json_object_set_new(line, "run", json_string(c->label ? c->label : ""));
  if (c->state.known & CT_PROGRESS_FRACTION)
    json_object_set_new(line, "fraction", json_real(c->state.fraction));
  json_object_set_new(line, "queues",
                      json_pack("{s:I, s:I}", "inference", (json_int_t)(s ? waiting(c, s) : 0),
                                "training", (json_int_t)training));
  if (s && s != &c->probe) { /* what measures the capacity is not what is asked to be served */
    json_t *requests =
        json_pack("{s:I, s:I}", "done", (json_int_t)s->run.done, "count", (json_int_t)s->run.count);
    if (c->state.known & CT_PROGRESS_ACCURACY)
      json_object_set_new(requests, "accuracy", json_real(c->state.accuracy));
    add_latency(c, s, requests);
    json_object_set_new(line, "requests", requests);
  }
  /* The second model's steps are training too. */
  live_steps(&c->live, line, c->feed.finished + c->filler.finished, c->steps + c->filler.finished,
             c->feed.finished ? (double)c->losses[c->feed.finished - 1] : (double)NAN);
  live_end(&c->live, line);
}
