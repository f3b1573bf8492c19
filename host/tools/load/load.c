/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <inttypes.h>
#include <math.h>

#include "coltrain_spec.h"

/* WAIT_MS: how long Ctrl-C may go unnoticed. PATIENCE: waits in vain until the device is given up.
 * DRAIN_TURNS: the same for the jobs at the end. */
enum { WAIT_MS = 1000, PATIENCE = 600, DRAIN_TURNS = 100000 };

int load_open(struct load *l, const char *uri, const char *json) {
  *l = (struct load){.uri = uri, .text = cli_text(json)};
  if (cli_open(uri, &l->dev)) return 1;
  return load_check(l, ct_info(l->dev, &l->info), uri);
}

void load_close(struct load *l) {
  ct_close(l->dev);
  *l = (struct load){.dev = NULL};
}

int load_check(const struct load *l, int rc, const char *doing) {
  return rc < 0 ? cli_fail_device(l->dev, rc, doing) : 0;
}

int load_job_failed(const struct ct_event *event, const char *what) {
  const bool comp = event->error == CT_ERR_JOB && event->code == CT_DEV_COMP;
  return cli_fail("%s failed on the device: %s (address 0x%" PRIx32 ")%s", what,
                  ct_code_text(event->code), event->address,
                  comp ? ". Pages for what is kept compressed may be full: have some for more bits "
                         "a number (--keep compressed:ERROR:BITS), or take smaller batches"
                       : "");
}

/* ---- Turns ---- */

static int top_up(struct load *l) {
  l->due = CT_NO_CYCLE;
  for (size_t i = 0; i < LOAD_PARTS; ++i) {
    const struct load_part *part = &l->part[i];
    const int rc = part->top_up ? part->top_up(part->arg) : 0;
    if (rc < 0 && rc != CT_ERR_FULL) return cli_fail_device(l->dev, rc, part->doing);
  }
  return 0;
}

/* The next event before the clock shows `until`, in WAIT_MS: event->tag 0: none came. */
static int wait_once(struct load *l, struct ct_event *event, uint64_t until) {
  const int rc = until == CT_NO_CYCLE ? ct_reap(l->dev, event, WAIT_MS)
                                      : ct_reap_until(l->dev, event, until, WAIT_MS);
  if (rc == CT_ERR_TIMEOUT && ++l->vain <= PATIENCE) {
    event->tag = 0;
    return 0;
  }
  l->vain = 0;
  if (rc < 0) return cli_fail_device(l->dev, rc, "waiting for the device");
  if (event->end != CT_NO_CYCLE && event->end > l->clock) l->clock = event->end;
  return 0;
}

int load_reap(struct load *l, struct ct_event *event) {
  event->tag = 0;
  while (!event->tag && !cli_stopped())
    if (wait_once(l, event, CT_NO_CYCLE)) return 1;
  return 0;
}

int load_turn(struct load *l, uint64_t until) {
  struct ct_event event;
  if (top_up(l)) return 1;
  if (wait_once(l, &event, l->due < until ? l->due : until)) return 1;
  return event.tag ? l->take(l->arg, &event) : 0;
}

int load_until(struct load *l, uint64_t cycle) {
  uint64_t now = 0;
  while (!cli_stopped()) {
    if (load_now(l, &now)) return 1;
    if (now >= cycle) break;
    if (load_turn(l, cycle)) return 1;
  }
  return 0;
}

int load_until_count(struct load *l, const uint64_t *count, uint64_t more) {
  const uint64_t end = *count + more;
  while (*count < end && !cli_stopped())
    if (load_turn(l, CT_NO_CYCLE)) return 1;
  return 0;
}

int load_drain(struct load *l) {
  for (int turns = 0; load_is_busy(l); ++turns) {
    if (load_turn(l, CT_NO_CYCLE)) return 1;
    if (turns >= DRAIN_TURNS) return cli_fail("the device does not finish its jobs");
  }
  return 0;
}

int load_now(struct load *l, uint64_t *cycle) {
  return load_check(l, ct_now(l->dev, cycle), "reading the clock");
}

bool load_is_busy(const struct load *l) {
  return ct_outstanding(l->dev, CT_INFERENCE) + ct_outstanding(l->dev, CT_TRAINING) > 0;
}

int load_policy(struct load *l, enum ct_policy policy) {
  return load_check(l, ct_set_policy(l->dev, policy), "setting the policy");
}

int load_expect(const uint32_t *widths, size_t layers, uint64_t seed, const float *x, size_t n,
                float *y) {
  ct_device *emu = NULL;
  ct_model *model = NULL;
  if (cli_open("emu:", &emu)) return 1;
  int rc = ct_model_create(emu, widths, layers, seed, &model);
  if (rc >= 0) rc = ct_model_infer(model, NULL, x, n, y);
  const int status = rc < 0 ? cli_fail_device(emu, rc, "asking emu: for the answers") : 0;
  ct_model_free(model);
  ct_close(emu);
  return status;
}

void load_show(struct load *l, const char *label, double fraction) {
  const struct ct_progress_state state = {
      .label = label, .known = CT_PROGRESS_FRACTION, .fraction = fraction};
  ct_progress_update(&l->progress, &state);
}

json_t *load_capacity_json(size_t requests, uint64_t busy, uint64_t done) {
  return json_pack("{s:I, s:o, s:o}", "requests", (json_int_t)requests, "cycles",
                   cli_json_cycles(busy ? busy : CT_NO_CYCLE), "cycles_per_request",
                   cli_json_ratio((double)busy, (double)done));
}

/* ---- Windows ---- */

static int read_counters(struct load *l, enum ct_queue queue, uint64_t *counter) {
  return load_check(l, ct_counters(l->dev, queue, counter, CT_MAX_COUNTERS),
                    "reading the counters");
}

static int read_all(struct load *l, bool clock_last, uint64_t *cycle,
                    uint64_t counter[2][CT_MAX_COUNTERS]) {
  const enum ct_queue first = clock_last ? CT_INFERENCE : CT_TRAINING;
  const enum ct_queue second = clock_last ? CT_TRAINING : CT_INFERENCE;
  return (!clock_last && load_now(l, cycle)) || read_counters(l, first, counter[first]) ||
         read_counters(l, second, counter[second]) || (clock_last && load_now(l, cycle));
}

int load_window_open(struct load *l, struct load_window *w) {
  return read_all(l, w->clock_last, &w->from, w->counter);
}

int load_window_close(struct load *l, struct load_window *w) {
  uint64_t now[2][CT_MAX_COUNTERS] = {{0}};
  if (read_all(l, w->clock_last, &w->to, now)) return 1;
  for (unsigned i = 0; i < CT_MAX_COUNTERS; ++i)
    for (unsigned q = 0; q < 2; ++q)
      w->counter[q][i] = now[q][i] - w->counter[q][i];
  w->closed = true;
  return 0;
}

double load_window_macs(const struct load_window *w) {
  if (!w->closed || w->to <= w->from) return (double)NAN;
  return (double)w->counter[CT_TRAINING][CT_CNT_MXU_ROWS] * CLI_MACS_PER_ROW /
         (double)(w->to - w->from);
}
