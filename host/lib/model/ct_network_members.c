/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a network: everything that is a member's lies at constant strides, so a kernel's job
 * can go on from one to the next (ct_compile_groups.c). A run takes as many at once as there are
 * arenas, stage by stage. What does not fill a pass of a kernel's loop, and kernels without one,
 * run as a network's alone, member by member.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_network.h"

/* ---- Selecting one ------------------------------------------------------------------------- */

struct ct_regions ct_network_member_at(const struct ct_network *n, uint32_t member) {
  const struct ct_compiled *c = &n->compiled;
  struct ct_regions at = n->base;
  at.lasting += c->lasting * member * CT_UNIT;
  for (size_t i = 0; i < c->externals; ++i)
    if (!c->external[i].shared)
      at.external[c->external[i].reg - CT_ARG_FIRST] += c->external[i].units * member * CT_UNIT;
  return at;
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
  before->steps = n->steps;
  before->drawn = n->drawn;
  before->epochs = n->epochs;
  before->stale = n->stale;
  n->selected = member;
  n->own = ct_network_member_at(n, member);
  n->steps = n->member[member].steps;
  n->drawn = n->member[member].drawn;
  n->epochs = n->member[member].epochs;
  n->stale = n->member[member].stale;
  return CT_OK;
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

/* A run of several members; jobs NULL: they are counted. */
struct crowd {
  ct_network *n;
  const struct ct_members *run;
  uint64_t arena;
  bool once;
  struct ct_job *jobs;
  size_t count;
};

static uint64_t step_of(const struct ct_members *run, uint32_t member) {
  return run->steps ? run->steps[member - run->first] : run->step;
}

/* Numbers of a member, which is the i-th of a job. */
static void put_numbers(const struct crowd *c, uint32_t member, uint32_t i, struct ct_job *job) {
  const struct ct_compiled *o = &c->n->compiled;
  for (size_t s = 0; s < o->scalars; ++s) {
    const size_t at = o->scalar[s].reg - 1 + i * o->scalars;
    struct ct_scalar scalar = o->scalar[s];
    if (c->run->schedules) scalar.schedule = c->run->schedules[member - c->run->first];
    if (at < CT_ARG_SCALAR - 1 + CT_MEMBER_SCALARS)
      job->args[at] = ct_bits_of(ct_compiled_scalar(&scalar, step_of(c->run, member)));
  }
}

/* Adds jobs for `count` members from the i-th of a block on. */
static void add_jobs(struct crowd *c, const struct ct_programs *p, uint32_t block, uint32_t i,
                     uint32_t count, uint32_t passes) {
  struct ct_regions at = ct_network_member_at(c->n, block + i);
  struct ct_job job = {.user = c->run->user};
  at.arena = c->arena + c->n->compiled.arena * i * CT_UNIT;
  ct_network_arguments(c->n, &at, c->run->step, &job);
  for (uint32_t m = 0; m < count; ++m)
    put_numbers(c, block + i + m, m, &job);
  job.args[CT_ARG_PASSES - 1] = passes;
  for (size_t k = 0; k < p->count; ++k, ++c->count) {
    if (!c->jobs) continue;
    c->jobs[c->count] = job;
    c->jobs[c->count].program = p->of[k];
  }
}

/* Members that a job of a group has numbers for. */
static uint32_t most_at_once(const ct_network *n, uint32_t round) {
  const size_t numbers = n->compiled.scalars;
  const uint32_t most = numbers ? (uint32_t)(CT_MEMBER_SCALARS / numbers) : CT_MEMBERS_AT_ONCE;
  return round ? most / round * round : 0;
}

static void add_stage(struct crowd *c, const struct ct_network_part *p, uint32_t block,
                      uint32_t members) {
  const uint32_t most = most_at_once(c->n, p->round);
  uint32_t i = 0;
  while (most && members - i >= p->round) {
    const uint32_t some = ct_min_u32(most, (members - i) / p->round * p->round);
    add_jobs(c, &p->group, block, i, some, some / p->round);
    i += some;
  }
  for (; i < members; ++i)
    add_jobs(c, &p->programs, block, i, 1, 0);
}

/* The jobs of a block of members. */
static void add_block(struct crowd *c, uint32_t block, uint32_t members) {
  const ct_network *n = c->n;
  for (size_t i = 0; i < n->compiled.stages; ++i) {
    const struct ct_stage *stage = &n->compiled.stage[i];
    if ((stage->once && !c->once) || !n->part[i].programs.count ||
        !ct_compiled_runs(stage, step_of(c->run, block)))
      continue;
    add_stage(c, &n->part[i], block, members);
  }
}

static void add_all(struct crowd *c) {
  c->count = 0;
  for (uint32_t m = 0; m < c->run->count; m += CT_MEMBERS_AT_ONCE)
    add_block(c, c->run->first + m, ct_min_u32(CT_MEMBERS_AT_ONCE, c->run->count - m));
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
    *(m == n->selected ? &n->owner->steps : &n->member[m].steps) += n->changes;
    *(m == n->selected ? &n->stale : &n->member[m].stale) = false;
  }
}

uint64_t ct_network_steps_of(const ct_network *n, uint32_t member) {
  return member == n->selected ? n->owner->steps : n->member[member].steps;
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
  ct_network_end(n, f->queue);
  --n->frame_runs;
  for (uint32_t m = f->first; m < f->first + f->count; ++m)
    --n->member[m].runs;
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
  if (!err) err = ct_network_has_frame(n);
  if (!err) err = check_members(n, run->first, run->count);
  if (!err) err = check_idle(n, run);
  return err ? err : check_steps(n, run);
}

static int put_masks(ct_network *n, const struct ct_members *run) {
  int err = CT_OK;
  for (uint32_t m = run->first; m < run->first + run->count && !err; ++m) {
    const struct ct_regions at = ct_network_member_at(n, m);
    err = ct_network_put_masks(n, &at, step_of(run, m));
  }
  return err;
}

static int no_memory(ct_device *dev) {
  return ct_fail(dev, CT_ERR_MEMORY, "no memory for a run of members");
}

/* All jobs as one work. */
static int submit(struct crowd *c, uint64_t *tag) {
  const struct ct_members *run = c->run;
  ct_network *n = c->n;
  struct flight *f = malloc(sizeof *f);
  int err = ct_network_check_most(n, c->count);
  c->jobs = malloc((c->count + 1) * sizeof *c->jobs);
  if (!err && (!f || !c->jobs)) err = no_memory(n->dev);
  if (!err) {
    add_all(c);
    *f = (struct flight){n, run->first, run->count, run->queue};
    const struct ct_work work = {.queue = run->queue,
                                 .kind = CT_EVENT_RUN,
                                 .job = c->jobs,
                                 .jobs = (unsigned)c->count,
                                 .cycle = run->cycle ? run->cycle : CT_NO_CYCLE,
                                 .done = landed,
                                 .arg = f};
    err = ct_submit_work(n->dev, &work, tag);
  }
  free(c->jobs);
  if (err) {
    free(f);
    return err;
  }
  ++n->refs;
  ct_network_begin(n, run->queue);
  ++n->frame_runs;
  for (uint32_t m = run->first; m < run->first + run->count; ++m)
    ++n->member[m].runs;
  return CT_OK;
}

int ct_network_submit_members(ct_network *n, const struct ct_members *run, uint64_t *tag) {
  int err = check(n, run);
  if (err) return err;
  struct crowd c = {.n = n, .run = run, .once = is_stale(n, run)};
  err = ct_network_arena(n, run->queue, &c.arena);
  if (!err) err = put_masks(n, run);
  if (err) return err;
  add_all(&c);
  return c.count ? submit(&c, tag) : ct_fail(n->dev, CT_ERR_ARG, "the network has nothing to run");
}

/* Waits for room in the queue; what can never fit is refused when it is submitted. */
static int make_room(ct_network *n, enum ct_queue queue, size_t jobs) {
  ct_device *dev = n->dev;
  const uint64_t slots = ct_ring_slots(dev);
  if (jobs > slots || ct_queue_room(dev, queue) >= jobs) return CT_OK;
  return ct_wait_completed(dev, queue, ct_queue_submitted(dev, queue) + jobs - slots,
                           dev->timeout_ms);
}

/* A block of members after the other, so that a queue of any length will do. */
int ct_network_run_members(ct_network *n, const struct ct_members *run) {
  int err = check(n, run);
  struct ct_members some = *run;
  for (uint32_t m = 0; !err && m < run->count; m += some.count) {
    some = *run;
    struct crowd c = {.n = n, .run = &some};
    struct ct_event event = {0};
    uint64_t tag = 0;
    some.first += m;
    some.count = ct_min_u32(CT_MEMBERS_AT_ONCE, run->count - m);
    if (some.steps) some.steps += m;
    if (some.schedules) some.schedules += m;
    c.once = is_stale(n, &some);
    for (add_all(&c); c.count > ct_ring_slots(n->dev) && some.count > 1; add_all(&c))
      some.count /= 2;
    err = make_room(n, run->queue, c.count);
    if (!err) err = ct_network_submit_members(n, &some, &tag);
    if (!err) err = ct_finish(n->dev, tag, &event);
    n->queue = run->queue;
    n->ends = ct_queue_submitted(n->dev, run->queue);
    n->error = err;
  }
  return err;
}
