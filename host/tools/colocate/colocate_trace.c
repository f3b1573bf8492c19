/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "colocate.h"

/* Cycles that are written if nothing else is asked for: those in which new weights first take over
 * while requests are served, or if none do, the first of co-location. */
enum { DEFAULT_CYCLES = 100000 };

static int watch(struct colocate *c) {
  const int rc = live_watch(&c->live, ct_trace_cycle, c->trace);
  c->traced = rc >= 0;
  return load_check(&c->load, rc, "--trace is not possible");
}

static void unwatch(struct colocate *c) {
  if (c->traced) live_watch(&c->live, NULL, NULL);
  c->traced = false;
}

int colocate_trace_open(struct colocate *c) {
  const struct colocate_options *o = c->o;
  if (!o->trace) return 0;
  c->trace = ct_trace_open(o->trace, c->load.info.clock_hz, o->trace_bytes);
  if (!c->trace) return cli_fail("%s: cannot be created: %s", o->trace, strerror(errno));
  if (o->trace_to) ct_trace_window(c->trace, o->trace_from, o->trace_to);
  return watch(c);
}

void colocate_trace_begin(struct colocate *c, uint64_t cycle) {
  if (c->trace && !c->o->trace_to) ct_trace_window(c->trace, cycle, cycle + DEFAULT_CYCLES);
}

/* Whether the default window may still be replaced by a better one. */
static bool seeks_swap(const struct colocate *c) {
  return !c->o->trace_to && !c->trace_swap && c->server == &c->serve;
}

/* Whether the job behind this one publishes a version. */
static bool ends_epoch(const struct colocate *c, const struct job *job) {
  return job->kind == JOB_STEP && job->owner == &c->feed &&
         (job->index + 1) % c->feed.order.per_epoch == 0;
}

void colocate_trace_job(struct colocate *c, const struct job *job, const struct ct_event *r) {
  static const enum ct_trace_kind kinds[] = {[JOB_STEP] = CT_TRACE_STEP,
                                             [JOB_PUBLISH] = CT_TRACE_PUBLISH,
                                             [JOB_REQUEST] = CT_TRACE_REQUEST};
  ct_trace_job(c->trace, kinds[job->kind], (unsigned)r->queue, job->index + 1, r->arrive, r->start,
               r->end);
  if (job->kind == JOB_PUBLISH) ct_trace_swap(c->trace, job->index + 1, r->end);
  if (seeks_swap(c) && ends_epoch(c, job)) {
    ct_trace_window(c->trace, c->load.clock, c->load.clock + DEFAULT_CYCLES);
    c->trace_swap = true;
  }
}

int colocate_trace_turn(void *colocate) {
  struct colocate *c = colocate;
  if (c->traced && !ct_trace_wants(c->trace) && !seeks_swap(c)) unwatch(c);
  return 0;
}

/* One sentence about the file, another if it does not hold what was asked for. */
static void tell(const struct colocate *c, const struct ct_trace_summary *s) {
  const char *path = c->o->trace;
  if (s->from >= s->to) {
    fprintf(c->load.text, "%s is empty: the run was over before cycle %" PRIu64 "\n", path,
            s->from);
    return;
  }
  fprintf(c->load.text, "%s has cycles %" PRIu64 " to %" PRIu64 "; open it in ui.perfetto.dev\n",
          path, s->from, s->to);
  if (s->full)
    fprintf(c->load.text,
            "  it ends there because it has its %" PRIu64
            " MB; --trace-limit allows more, --trace-window FROM:TO chooses other cycles\n",
            c->o->trace_bytes / 1000000);
}

int colocate_trace_close(struct colocate *c) {
  struct ct_trace_summary summary = {.events = 0};
  unwatch(c);
  if (!c->trace) return 0;
  const int rc = ct_trace_close(c->trace, &summary);
  c->trace = NULL;
  if (rc) return cli_fail("%s: cannot be written: %s", c->o->trace, strerror(errno));
  tell(c, &summary);
  return 0;
}
