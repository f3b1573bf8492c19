/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of an array. Members are asked in turn whether a run of theirs can begin; all that can are
 * submitted, each with those beside it, so that a queue holds runs of several. Then one that ends
 * next is waited for, and it begins again. The rules are in ct_array.h.
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

/* ---- Queues ---------------------------------------------------------------------------------
 *
 * With both of them a member's runs are in one until all have ended, and may go on in the other.
 * The inference queue goes first on the device, so who is there comes ahead; by so many runs, and
 * they change places. Neither holds more runs than keep the device busy while the host sees one
 * end: what waited in one at last would leave the other empty. */
enum { CHANGE = 16, WAITING = 3 };

static size_t flights_in(const struct ct_array *a, enum ct_queue queue) {
  size_t count = 0;
  for (size_t i = 0; i < a->flights; ++i)
    count += a->flight[i].queue == queue;
  return count;
}

/* Whether it is far ahead of one in the training queue. */
static bool is_ahead(const struct ct_array *a, const struct ct_array_member *m) {
  for (size_t i = 0; i < a->members; ++i) {
    const struct ct_array_member *other = a->member[i];
    if (other->under_way && other->queue == CT_TRAINING && m->next >= other->next + CHANGE)
      return true;
  }
  return false;
}

/* Whether its runs under way shall end first, so that it can change. */
static bool shall_change(const struct ct_array *a, const struct ct_array_member *m) {
  if (!a->both || !m->under_way) return false;
  return m->queue == CT_INFERENCE ? is_ahead(a, m) : !flights_in(a, CT_INFERENCE);
}

/* Where its next run goes. A version that is being made of it, or a run of another network with its
 * weights, is in a queue already. */
static enum ct_queue queue_of(const struct ct_array *a, const struct ct_array_member *m) {
  if (!a->both) return CT_TRAINING;
  if (m->under_way) return m->queue;
  const size_t *runs = m->network->live->users;
  if (runs[CT_TRAINING]) return CT_TRAINING;
  if (runs[CT_INFERENCE]) return CT_INFERENCE;
  if (is_ahead(a, m)) return CT_TRAINING;
  return flights_in(a, CT_INFERENCE) > flights_in(a, CT_TRAINING) ? CT_TRAINING : CT_INFERENCE;
}

/* Whether the queue where its next run goes holds enough. */
static bool is_held(const struct ct_array *a, const struct ct_array_member *m) {
  return a->both && flights_in(a, queue_of(a, m)) >= WAITING;
}

/* ---- Rows of members ------------------------------------------------------------------------ */

/* Whether the neighbour can begin the same run, in the same queue. */
static int may_join(struct ct_array *a, const struct ct_array_member *m,
                    struct ct_array_member *other, bool *may) {
  *may = false;
  if (!other || other->next != m->next || other->under_way != m->under_way) return CT_OK;
  if (a->both && queue_of(a, other) != queue_of(a, m)) return CT_OK;
  return may_begin(a, other, may);
}

/* The member, and all in the slots in front of it and behind it that go with it. */
static int find_row(struct ct_array *a, struct ct_array_member *m, struct ct_array_row *row) {
  struct ct_array_member *first = m, *next;
  bool may = true;
  int err = CT_OK;
  while (!err && may) {
    next = ct_array_neighbour(a, first, -1);
    err = may_join(a, m, next, &may);
    if (may) first = next;
  }
  row->count = 0;
  for (may = true; !err && may && row->count < CT_MEMBERS_AT_ONCE;) {
    row->member[row->count++] = first;
    first = ct_array_neighbour(a, first, 1);
    err = may_join(a, m, first, &may);
  }
  return err;
}

/* A row that lacks a job's room in the queue is cut; of the members that stay, m is one. */
static void cut_row(struct ct_array_row *row, const struct ct_array_member *m) {
  const uint32_t left = row->count / 2;
  uint32_t at = 0;
  while (row->member[at] != m)
    ++at;
  const uint32_t from = at < left ? 0 : row->count - left;
  for (uint32_t i = 0; i < left; ++i)
    row->member[i] = row->member[from + i];
  row->count = left;
}

static int submit_row(const struct ct_array_row *row, enum ct_queue queue, uint64_t *tag) {
  const struct ct_array_member *first = row->member[0];
  const uint32_t at = (uint32_t)(first->next % first->ahead);
  ct_network *network[CT_MEMBERS_AT_ONCE] = {first->network};
  ct_frame *frame[CT_MEMBERS_AT_ONCE] = {first->frame[at]};
  for (uint32_t i = 1; i < row->count; ++i) {
    network[i] = row->member[i]->network;
    frame[i] = row->member[i]->frame[at];
  }
  if (row->count > 1)
    return ct_rank_submit(&(struct ct_rank_run){network, frame, row->count, first->next, queue},
                          tag);
  const struct ct_run run = {.frame = frame[0], .queue = queue, .step = first->next};
  return ct_network_submit(network[0], &run, tag);
}

/* All of a row read the batch of its member m, or (NULL) each what it has. */
static int submit(struct ct_array *a, struct ct_array_row *row, const struct ct_array_member *m,
                  struct ct_array_batch *b) {
  const uint32_t at = (uint32_t)(m->next % m->ahead);
  uint64_t tag = 0;
  for (uint32_t i = 0; b && i < row->count; ++i)
    ct_frame_lend(row->member[i]->frame[at], &b->at);
  const enum ct_queue queue = queue_of(a, m);
  int err = submit_row(row, queue, &tag);
  for (; err == CT_ERR_NO_SPACE && row->count > 1; err = submit_row(row, queue, &tag))
    cut_row(row, m);
  if (err == CT_ERR_FULL) a->full = queue;
  if (err) return err;
  ++a->submitted;
  if (b) b->used = a->submitted;
  if (b) ++b->uses;
  a->flight[a->flights++] = (struct ct_array_flight){*row, at, queue, b, m->next, tag};
  for (uint32_t i = 0; i < row->count; ++i) {
    ++row->member[i]->next;
    ++row->member[i]->under_way;
    row->member[i]->queue = queue;
    row->member[i]->info.beside = row->count;
  }
  return CT_OK;
}

/* Members on both sides of m up to the next that has ended; nobody if m has. */
static void keep_around(struct ct_array_row *row, const struct ct_array_member *m) {
  uint32_t from = 0, end;
  while (row->member[from] != m)
    ++from;
  for (end = from; end < row->count && !row->member[end]->ended;)
    ++end;
  while (from > 0 && !row->member[from - 1]->ended)
    --from;
  for (uint32_t i = from; i < end; ++i)
    row->member[i - from] = row->member[i];
  row->count = m->ended ? 0 : end - from;
}

/* Each of a row has inputs of its own. Whose feed fails has failed, and those next to it are
 * neighbours no more. */
static void write_own(struct ct_array *a, struct ct_array_row *row,
                      const struct ct_array_member *m) {
  for (uint32_t i = 0; i < row->count; ++i) {
    struct ct_array_member *of = row->member[i];
    if (of->wrote == of->next) continue; /* for a row that did not fit */
    const int err = of->feed.write(of->feed.arg, of->next, of->frame[of->next % of->ahead]);
    if (err < 0) {
      fail(of, of->next, err);
      continue;
    }
    of->wrote = of->next;
    ++a->written;
  }
  keep_around(row, m);
}

/* The batch of a member's next run; none where it has inputs of its own. *ready: it is there. */
static int take_batch(struct ct_array *a, struct ct_array_member *m, struct ct_array_batch **batch,
                      bool *ready) {
  bool own = false;
  *batch = NULL;
  *ready = ct_array_has_own_inputs(m);
  if (*ready) return CT_OK;
  const int err = ct_array_batch_take(a, m, batch, &own);
  *ready = !err && *batch;
  if (!err || !own) return err;
  fail(m, m->next, err);
  return CT_OK;
}

/* One of a member, and of those beside it. *begun: it has. CT_ERR_FULL: the queue has no room for
 * it. */
static int begin(struct ct_array *a, struct ct_array_member *m, bool *begun) {
  struct ct_array_batch *batch;
  struct ct_array_row row = {.count = 0};
  bool may, ready = false;
  *begun = false;
  int err = may_begin(a, m, &may);
  if (shall_change(a, m) || is_held(a, m)) may = false;
  if (!err && may) err = make_flight(a);
  if (err || !may) return err;
  err = take_batch(a, m, &batch, &ready);
  if (err || !ready) return err;
  err = find_row(a, m, &row);
  if (!err && !batch) write_own(a, &row, m);
  if (err || !row.count) return err;
  err = submit(a, &row, m, batch);
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
static int note(struct ct_array *a, const struct ct_array_flight *f, uint32_t i, int error,
                struct ct_member_run *run) {
  struct ct_array_member *m = f->row.member[i];
  const int err = error ? CT_OK : ct_frame_read(m->frame[f->frame], m->loss, &run->loss, 1);
  if (error || err) fail(m, f->run, error ? error : err);
  if (err) return err;
  if (!error && m->info.state == CT_MEMBER_READY && !isfinite(run->loss)) diverge(m, f->run);
  m->info.loss = run->loss;
  if (run->end != CT_NO_CYCLE) m->info.cycles += (run->end - run->start) / f->row.count;
  run->state = m->info.state;
  ++a->ended;
  return CT_OK;
}

/* That of one of its members. */
static int land_one(struct ct_array *a, const struct ct_array_flight *f, uint32_t i,
                    const struct ct_event *event, const struct ct_watch *watch) {
  struct ct_array_member *m = f->row.member[i];
  if (!m) return CT_OK;
  --m->under_way;
  struct ct_member_run run = {.number = m->number,
                              .run = f->run,
                              .error = event->error,
                              .loss = NAN,
                              .start = event->start,
                              .end = event->end};
  const int err = note(a, f, i, event->error, &run);
  if (!err && watch && watch->ended && watch->ended(watch->arg, &run)) a->stop = true;
  return err;
}

/* A run has ended that way. */
static int land(struct ct_array *a, size_t at, const struct ct_event *event,
                const struct ct_watch *watch) {
  const struct ct_array_flight f = a->flight[at];
  int err = CT_OK;
  for (size_t i = at + 1; i < a->flights; ++i)
    a->flight[i - 1] = a->flight[i];
  --a->flights;
  if (f.batch) --f.batch->uses;
  for (uint32_t i = 0; i < f.row.count; ++i) {
    const int one = land_one(a, &f, i, event, watch);
    if (!err) err = one;
  }
  return err;
}

/* The oldest that has ended, or of the queue that will be empty first. */
static size_t next_to_end(const struct ct_array *a) {
  const size_t first = flights_in(a, CT_INFERENCE), second = flights_in(a, CT_TRAINING);
  const enum ct_queue queue = first && (!second || first <= second) ? CT_INFERENCE : CT_TRAINING;
  for (size_t i = 0; first && second && i < a->flights; ++i)
    if (ct_event_is_there(a->dev, a->flight[i].tag)) return i;
  size_t at = 0;
  while (a->flight[at].queue != queue)
    ++at;
  return at;
}

/* Waits for one. What could not be waited for stays. */
static int wait_for_one(struct ct_array *a, const struct ct_watch *watch) {
  struct ct_event event = {.tag = 0};
  const size_t at = next_to_end(a);
  const int err = ct_finish(a->dev, a->flight[at].tag, &event);
  if (!event.tag) return err;
  return land(a, at, &event, watch);
}

/* The queue is full of the work of others: waits for the oldest of it. */
static int wait_for_others(struct ct_array *a) {
  const uint64_t oldest = ct_queue_submitted(a->dev, a->full) + 1 - ct_ring_slots(a->dev);
  return ct_wait_completed(a->dev, a->full, oldest, a->dev->timeout_ms);
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
  if (!a->apart && !a->flights) err = ct_array_ranks(a);
  if (err) return err;
  for (;;) {
    bool full;
    err = begin_all(a, &full);
    if (err || (!a->flights && !full)) return err;
    err = a->flights ? wait_for_one(a, watch) : wait_for_others(a);
    if (err) return err;
  }
}
