/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of an array. Members are asked in turn whether a run of theirs can begin; all that can are
 * submitted, so that the queue holds runs of several. Then the oldest is waited for, and it begins
 * again. The rules are in ct_array.h.
 */
#include <math.h>
#include <stdlib.h>

#include "ct_array.h"
#include "ct_graph_impl.h"

/* ---- Members that end ------------------------------------------------------------------------ */

static void diverge(struct ct_array_member *m, uint64_t run) {
  m->info.state = CT_MEMBER_DIVERGED;
  m->ended_by = run;
}

static void fail(struct ct_array_member *m, uint64_t run, int error) {
  m->ended = true;
  if (m->info.state == CT_MEMBER_FAILED) return;
  m->info.state = CT_MEMBER_FAILED;
  m->info.error = error;
  m->ended_by = run;
}

/* ---- A look at the weights --------------------------------------------------------------------
 */

static int look_at(ct_network *n, int tensor, bool *right) {
  const struct ct_gtensor *t = n->graph->tensor[tensor];
  float *x = malloc(t->elements * sizeof *x + 1);
  if (!x) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory to look at weights");
  const int err = ct_network_read(n, tensor, x, t->elements);
  for (uint64_t i = 0; i < t->elements && !err && *right; ++i)
    *right = isfinite(x[i]);
  free(x);
  return err;
}

/* A version of the weights that is being made reads them, too: what was submitted ends first. */
static int look_after(ct_network *n, int tensor, bool *right) {
  int err = look_at(n, tensor, right);
  if (err != CT_ERR_BUSY) return err;
  err = ct_wait_completed(n->dev, CT_TRAINING, ct_queue_submitted(n->dev, CT_TRAINING),
                          n->dev->timeout_ms);
  return err ? err : look_at(n, tensor, right);
}

static int look(struct ct_array_member *m) {
  ct_network *n = m->network;
  bool right = true;
  int err = CT_OK;
  for (size_t i = 1; i <= n->graph->tensors && !err && right; ++i)
    if (n->graph->tensor[i]->role == CT_ROLE_WEIGHT && n->graph->tensor[i]->becomes)
      err = look_after(n, (int)i, &right);
  if (err) return err;
  m->looked = m->next;
  if (right) return CT_OK;
  if (m->info.state == CT_MEMBER_READY) diverge(m, m->next - 1);
  m->ended = true;
  return CT_OK;
}

/* ---- Beginning runs ---------------------------------------------------------------------------
 */

static bool look_is_due(const struct ct_array *a, const struct ct_array_member *m) {
  return m->next && m->next % a->look == 0 && m->looked != m->next;
}

/* Whether a run of it may begin now; what decides is known by then. */
static int may_begin(struct ct_array *a, struct ct_array_member *m, bool *may) {
  *may = false;
  if (m->info.state == CT_MEMBER_DIVERGED && m->next >= m->ended_by + m->ahead) m->ended = true;
  if (m->ended || m->next >= m->goal || m->under_way >= m->ahead) return CT_OK;
  if (look_is_due(a, m)) {
    if (m->under_way) return CT_OK;
    const int err = look(m);
    if (err || m->ended) return err;
  }
  *may = true;
  return CT_OK;
}

static int make_flight(struct ct_array *a) {
  if (a->flights < a->flight_room) return CT_OK;
  const size_t room = 2 * a->flight_room + 16;
  struct ct_array_flight *more = realloc(a->flight, room * sizeof *more);
  if (!more) return ct_fail(a->dev, CT_ERR_MEMORY, "no memory for a run");
  a->flight = more;
  a->flight_room = room;
  return CT_OK;
}

static int submit(struct ct_array *a, struct ct_array_member *m, struct ct_array_batch *b) {
  ct_frame *frame = m->frame[m->next % m->ahead];
  const struct ct_run run = {.frame = frame, .queue = CT_TRAINING, .step = m->next};
  uint64_t tag = 0;
  const int err = ct_network_submit(m->network, &run, &tag);
  if (err) return err;
  b->used = ++a->submitted;
  ++b->uses;
  a->flight[a->flights++] = (struct ct_array_flight){m, frame, b, m->next, tag};
  ++m->next;
  ++m->under_way;
  return CT_OK;
}

/* One of a member. *begun: it has. CT_ERR_FULL: the queue has no room for it. */
static int begin(struct ct_array *a, struct ct_array_member *m, bool *begun) {
  struct ct_array_batch *batch = NULL;
  bool may, own = false;
  *begun = false;
  int err = may_begin(a, m, &may);
  if (!err && may) err = make_flight(a);
  if (err || !may) return err;
  err = ct_array_batch_take(a, m, &batch, &own);
  if (err && own) {
    fail(m, m->next, err);
    return CT_OK;
  }
  if (err || !batch) return err;
  err = submit(a, m, batch);
  *begun = !err;
  return err;
}

/* As many as can, one of each in turn. *full: there was no room in the queue; the same member goes
 * first next time. */
static int begin_all(struct ct_array *a, bool *full) {
  size_t refused = 0;
  *full = false;
  while (!a->stop && refused < a->members) {
    bool begun;
    if (a->turn >= a->members) a->turn = 0;
    const int err = begin(a, a->member[a->turn], &begun);
    *full = err == CT_ERR_FULL;
    if (*full) return CT_OK;
    if (err) return err;
    refused = begun ? 0 : refused + 1;
    ++a->turn;
  }
  return CT_OK;
}

/* ---- Ends of runs -----------------------------------------------------------------------------
 */

/* Whose loss cannot be read is not known to go on as it would alone. */
static int note(struct ct_array *a, const struct ct_array_flight *f, int error,
                struct ct_member_run *run) {
  struct ct_array_member *m = f->member;
  const int err = error ? CT_OK : ct_frame_read(f->frame, m->loss, &run->loss, 1);
  if (error || err) fail(m, f->run, error ? error : err);
  if (err) return err;
  if (!error && m->info.state == CT_MEMBER_READY && !isfinite(run->loss)) diverge(m, f->run);
  m->info.loss = run->loss;
  if (run->end != CT_NO_CYCLE) m->info.cycles += run->end - run->start;
  run->state = m->info.state;
  ++a->ended;
  return CT_OK;
}

/* The oldest run has ended that way. */
static int land(struct ct_array *a, const struct ct_event *event, const struct ct_watch *watch) {
  const struct ct_array_flight f = a->flight[0];
  for (size_t i = 1; i < a->flights; ++i)
    a->flight[i - 1] = a->flight[i];
  --a->flights;
  --f.batch->uses;
  if (!f.member) return CT_OK;
  --f.member->under_way;
  struct ct_member_run run = {.number = f.member->number,
                              .run = f.run,
                              .error = event->error,
                              .loss = NAN,
                              .start = event->start,
                              .end = event->end};
  const int err = note(a, &f, event->error, &run);
  if (!err && watch && watch->ended && watch->ended(watch->arg, &run)) a->stop = true;
  return err;
}

/* Waits for the oldest. What could not be waited for stays. */
static int wait_for_one(struct ct_array *a, const struct ct_watch *watch) {
  struct ct_event event = {.tag = 0};
  const int err = ct_finish(a->dev, a->flight[0].tag, &event);
  if (!event.tag) return err;
  return land(a, &event, watch);
}

/* The queue is full of the work of others: waits for the oldest of it. */
static int wait_for_others(struct ct_array *a) {
  const uint64_t oldest = ct_queue_submitted(a->dev, CT_TRAINING) + 1 - ct_ring_slots(a->dev);
  return ct_wait_completed(a->dev, CT_TRAINING, oldest, a->dev->timeout_ms);
}

int ct_array_run(ct_array *a, uint64_t runs, const struct ct_watch *watch) {
  int err = ct_check_array(a);
  if (err) return err;
  a->stop = false;
  for (size_t i = 0; i < a->members; ++i) {
    struct ct_array_member *m = a->member[i];
    m->goal = runs > CT_NO_CYCLE - m->next ? CT_NO_CYCLE : m->next + runs;
    if (m->goal > m->limit) m->goal = m->limit;
  }
  for (;;) {
    bool full;
    err = begin_all(a, &full);
    if (err || (!a->flights && !full)) return err;
    err = a->flights ? wait_for_one(a, watch) : wait_for_others(a);
    if (err) return err;
  }
}
