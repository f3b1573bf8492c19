/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a network: everything that is a member's lies at constant strides. */
#include <stdlib.h>
#include <string.h>

#include "ct_network.h"
#include "ct_network_kept.h"

/* ---- Selecting one ------------------------------------------------------------------------- */

struct ct_regions ct_network_member_at(const struct ct_network *n, uint32_t member) {
  const struct ct_compiled *c = &n->compiled;
  struct ct_regions at = n->base;
  at.lasting = n->live ? n->live->image + c->lasting * member * CT_UNIT : 0;
  for (size_t i = 0; i < c->externals; ++i)
    if (!c->external[i].shared)
      at.external[c->external[i].reg - CT_ARG_FIRST] += c->external[i].units * member * CT_UNIT;
  return at;
}

struct ct_regions ct_network_own(const ct_network *n) {
  return ct_network_member_at(n, n->selected);
}

static int check_members(ct_network *n, uint32_t first, uint32_t count) {
  if (count && first < n->members && count <= n->members - first) return CT_OK;
  return ct_fail(n->dev, CT_ERR_ARG, "%u members from %u on: the network has %u", count, first,
                 n->members);
}

int ct_network_select(ct_network *n, uint32_t member) {
  int err = ct_check_network(n);
  if (!err) err = check_members(n, member, 1);
  if (err) return err;
  struct ct_network_member *before = &n->member[n->selected];
  if (n->members == 1) return CT_OK;
  before->steps = n->live->steps;
  before->seed = n->live->seed;
  before->epochs = n->live->epochs;
  before->stale = n->stale;
  n->selected = member;
  n->live->steps = n->member[member].steps;
  n->live->seed = n->member[member].seed;
  n->live->epochs = n->member[member].epochs;
  n->stale = n->member[member].stale;
  return CT_OK;
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

/* A run of several members. */
struct crowd {
  ct_network *n;
  const struct ct_members *run;
};

static uint64_t step_of(const struct ct_members *run, uint32_t member) {
  return run->steps ? run->steps[member - run->first] : run->step;
}

/* Of member i of the run. */
static void member(const void *arg, uint32_t i, struct ct_crowd_member *m) {
  const struct crowd *c = arg;
  const struct ct_compiled *o = &c->n->compiled;
  m->at = ct_network_member_at(c->n, c->run->first + i);
  m->step = step_of(c->run, c->run->first + i);
  for (size_t s = 0; s < o->scalars; ++s) {
    m->scalar[s] = o->scalar[s];
    if (c->run->updates) ct_compiled_update(&m->scalar[s], &c->run->updates[i]);
    if (c->run->schedules) m->scalar[s].schedule = c->run->schedules[i];
  }
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* One that is under way. */
struct flight {
  ct_network *n;
  uint32_t first, count;
  enum ct_queue queue;
};

void ct_network_note_run(ct_network *n, uint32_t first, uint32_t count) {
  for (uint32_t m = first; m < first + count; ++m) {
    *(m == n->selected ? &n->live->steps : &n->member[m].steps) += n->changes;
    *(m == n->selected ? &n->stale : &n->member[m].stale) = false;
  }
}

uint64_t ct_network_steps_of(const ct_network *n, uint32_t member) {
  return member == n->selected ? n->live->steps : n->member[member].steps;
}

/* Whether what is made of weights alone has to be made anew for one of them. */
static bool is_stale(const ct_network *n, const struct ct_members *run) {
  bool stale = n->changes;
  for (uint32_t m = run->first; m < run->first + run->count; ++m)
    stale |= m == n->selected ? n->stale : n->member[m].stale;
  return stale;
}

static void landed(void *arg, const struct ct_event *event) {
  struct flight *f = arg;
  ct_network *n = f->n;
  ct_network_end(n, f->queue, f->first, f->count);
  --n->frame_runs;
  if (!event->error) ct_network_note_run(n, f->first, f->count);
  ct_network_release(n);
  free(f);
}

/* Members of a job have the same stages. */
static int check_steps(ct_network *n, const struct ct_members *run) {
  for (size_t i = 0; i < n->compiled.stages; ++i)
    for (uint32_t m = 1; m < run->count; ++m)
      if (ct_compiled_runs(&n->compiled.stage[i], step_of(run, run->first)) !=
          ct_compiled_runs(&n->compiled.stage[i], step_of(run, run->first + m)))
        return ct_fail(n->dev, CT_ERR_ARG,
                       "runs %llu and %llu of members are not as far in their steps",
                       (unsigned long long)step_of(run, run->first),
                       (unsigned long long)step_of(run, run->first + m));
  return CT_OK;
}

static bool is_busy(const ct_network *n, const struct ct_members *run) {
  size_t runs = 0;
  for (uint32_t m = run->first; m < run->first + run->count; ++m)
    runs += n->member[m].runs;
  return runs > 0;
}

static int check_member(ct_network *n, const struct ct_members *run, uint32_t m) {
  const struct ct_schedule *schedule = run->schedules ? &run->schedules[m] : NULL;
  const struct ct_optimise *how = run->updates ? &run->updates[m] : NULL;
  if (!schedule && how) schedule = &how->schedule;
  const char *wrong = schedule ? ct_compiled_wrong_schedule(schedule) : NULL;
  if (!wrong && how) wrong = ct_compiled_wrong_update(&n->compiled, how);
  if (!wrong) return CT_OK;
  return ct_fail(n->dev, CT_ERR_ARG,
                 "%s of member %u is not a number that updates of the network take", wrong,
                 run->first + m);
}

/* Numbers that are constants of the programs are all members', and so is whether weights decay. */
static int check_updates(ct_network *n, const struct ct_members *run) {
  int err = CT_OK;
  if (run->updates && n->compiled.fixed)
    return ct_fail(
        n->dev, CT_ERR_UNSUPPORTED,
        "the network has more than %d numbers of a run, so members have the same but for "
        "the rate",
        CT_SCALARS);
  for (uint32_t m = 0; m < run->count && !err; ++m)
    err = check_member(n, run, m);
  return err;
}

/* Runs of other members may be under way: of one queue, or of both if nothing changes. */
static int check_idle(ct_network *n, const struct ct_members *run) {
  const int err = is_busy(n, run) ? ct_poll(n->dev) : CT_OK;
  if (err || !is_busy(n, run)) return err;
  return ct_fail(
      n->dev, CT_ERR_BUSY,
      "a run of some of these members is under way: the next can begin when it has ended");
}

static int check(ct_network *n, const struct ct_members *run) {
  int err = ct_check_network(n);
  if (err) return err;
  CT_NEED(n->dev, run);
  err = ct_check_reserved(n->dev, "ct_members", run->reserved,
                          sizeof run->reserved / sizeof *run->reserved);
  if (!err) err = ct_network_check_run(n, run->queue);
  if (!err && ct_keeps(n))
    err = ct_fail(n->dev, CT_ERR_UNSUPPORTED,
                  "the network keeps activations compressed, which runs of members cannot do");
  if (!err) err = ct_network_has_frame(n);
  if (!err) err = check_members(n, run->first, run->count);
  if (!err) err = check_idle(n, run);
  if (!err) err = check_updates(n, run);
  return err ? err : check_steps(n, run);
}

/* Each member has its own: none of these has a run under way. */
static int put_masks(ct_network *n, const struct ct_members *run) {
  int err = CT_OK;
  for (uint32_t m = run->first; m < run->first + run->count && !err; ++m) {
    const struct ct_regions at = ct_network_member_at(n, m);
    err = ct_network_write_masks(n, &at, step_of(run, m));
  }
  return err;
}

static int submit(struct ct_crowd *c, const struct crowd *of, uint64_t *tag) {
  const struct ct_members *run = of->run;
  ct_network *n = of->n;
  struct flight *f = malloc(sizeof *f);
  if (!f) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a run of members");
  *f = (struct flight){n, run->first, run->count, run->queue};
  const struct ct_work how = {.queue = run->queue,
                              .cycle = run->cycle ? run->cycle : CT_NO_CYCLE,
                              .done = landed,
                              .arg = f};
  const int err = ct_crowd_submit(c, &how, tag);
  if (err) {
    free(f);
    return err;
  }
  ++n->refs;
  ct_network_begin(n, run->queue, run->first, run->count);
  ++n->frame_runs;
  return CT_OK;
}

/* The jobs of a run, counted. */
static struct ct_crowd crowd_of(const struct crowd *of) {
  struct ct_crowd c = {.n = of->n,
                       .group = &of->n->shared->group[of->n->common],
                       .count = of->run->count,
                       .of = member,
                       .arg = of,
                       .once = is_stale(of->n, of->run),
                       .user = of->run->user};
  ct_crowd_jobs(&c);
  return c;
}

int ct_network_submit_members(ct_network *n, const struct ct_members *run, uint64_t *tag) {
  int err = check(n, run);
  if (err) return err;
  const struct crowd of = {n, run};
  struct ct_crowd c = crowd_of(&of);
  if (!c.jobs) return ct_fail(n->dev, CT_ERR_ARG, "the network has nothing to run");
  err = ct_network_check_most(n, c.jobs);
  if (!err) err = ct_network_arena(n, run->queue, &c.arena);
  if (!err) err = put_masks(n, run);
  return err ? err : submit(&c, &of, tag);
}

/* Waits for room in the queue; what can never fit is refused when it is submitted. */
static int make_room(ct_network *n, enum ct_queue queue, size_t jobs) {
  ct_device *dev = n->dev;
  const uint64_t slots = ct_ring_slots(dev);
  if (jobs > slots || ct_queue_room(dev, queue) >= jobs) return CT_OK;
  return ct_wait_completed(dev, queue, ct_queue_submitted(dev, queue) + jobs - slots,
                           dev->timeout_ms);
}

/* Members from the m-th on: a block, or as many of it as the queue holds jobs for. */
static size_t cut(ct_network *n, const struct ct_members *run, uint32_t m,
                  struct ct_members *some) {
  const struct crowd of = {n, some};
  *some = *run;
  some->first += m;
  some->count = ct_min_u32(CT_MEMBERS_AT_ONCE, run->count - m);
  if (some->steps) some->steps += m;
  if (some->schedules) some->schedules += m;
  if (some->updates) some->updates += m;
  size_t jobs = crowd_of(&of).jobs;
  while (jobs > ct_ring_slots(n->dev) && some->count > 1) {
    some->count /= 2;
    jobs = crowd_of(&of).jobs;
  }
  return jobs;
}

/* A block of members after the other, so that a queue of any length will do. */
int ct_network_run_members(ct_network *n, const struct ct_members *run) {
  int err = check(n, run);
  struct ct_members some = {.count = 0};
  for (uint32_t m = 0; !err && m < run->count; m += some.count) {
    const size_t jobs = cut(n, run, m, &some);
    struct ct_event event = {0};
    uint64_t tag = 0;
    err = make_room(n, run->queue, jobs);
    if (!err) err = ct_network_submit_members(n, &some, &tag);
    if (!err) err = ct_finish(n->dev, tag, &event);
    n->queue = run->queue;
    n->ends = ct_queue_submitted(n->dev, run->queue);
    n->error = err;
  }
  return err;
}
