/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of networks.
 *
 * A run that is waited for submits a work for each stage, in their order, each of which does
 * nothing if the one before it failed. So each stage has an event of its own, which says what it
 * took. A run that is submitted is one work with one event.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "ct_network.h"

static int no_memory(ct_device *dev) {
  return ct_fail(dev, CT_ERR_MEMORY, "no memory for a run of the network");
}

/* ---- Arguments ----------------------------------------------------------------------------- */

void ct_compiled_arguments(const struct ct_compiled *c, const struct ct_regions *r,
                           const struct ct_scalar *scalars, uint64_t step, struct ct_job *job) {
  for (unsigned i = 0; i < CT_MAX_ARGS; ++i) {
    const struct ct_argument *a = &c->argument[i];
    if (a->kind == CT_ARGUMENT_REGION)
      job->args[i] = ct_units_of(ct_regions_at(r, a->region)) + a->at;
    else if (a->kind == CT_ARGUMENT_SCALAR)
      job->args[i] = ct_bits_of(ct_compiled_scalar(&scalars[a->at], step));
    else if (a->kind == CT_ARGUMENT_INVERSE)
      job->args[i] = ct_bits_of(ct_divide(1.0f, a->at));
  }
}

void ct_network_arguments(const ct_network *n, const struct ct_regions *r, uint64_t step,
                          struct ct_job *job) {
  ct_compiled_arguments(&n->compiled, r, n->compiled.scalar, step, job);
}

/* What jobs of a run may say of the one in front, which may be another network's with the same
 * weights. own: the run reads these where they are changed. */
static uint32_t flags_of(const ct_network *n, enum ct_queue queue, bool own) {
  const bool written = own && n->live->changing[queue] > 0;
  return queue == CT_INFERENCE && !written ? CT_JOB_OVERLAP : 0;
}

size_t ct_network_stage_jobs(const ct_network *n, size_t stage) {
  return n->part[stage].programs.count * ct_compiled_passes(&n->compiled.stage[stage]);
}

/* The jobs of a stage, all passes, like another one, as far as the stage is so. */
static void make_jobs(const ct_network *n, size_t index, const struct ct_job *like,
                      struct ct_job *jobs) {
  const struct ct_stage *stage = &n->compiled.stage[index];
  const struct ct_programs *p = &n->part[index].programs;
  for (size_t k = 0; k < ct_network_stage_jobs(n, index); ++k) {
    jobs[k] = *like;
    ct_kept_arguments(n, stage, &jobs[k]);
    jobs[k].program = p->of[k % p->count];
    if (!stage->overlaps) jobs[k].flags = 0;
    ct_compiled_pass(&n->compiled, stage, (uint32_t)(k / p->count), jobs[k].args);
  }
}

int ct_network_arena(ct_network *n, enum ct_queue queue, uint64_t *addr) {
  struct ct_shared *shared = n->shared;
  int err = CT_OK;
  if (!shared->arena[queue]) {
    shared->arena[queue] = shared->spare;
    shared->spare = 0;
  }
  if (!shared->arena[queue])
    err = ct_network_alloc(n, n->compiled.arena * ct_min_u32(n->members, CT_MEMBERS_AT_ONCE),
                           &shared->arena[queue]);
  *addr = shared->arena[queue];
  return err;
}

/* ---- Who uses what ------------------------------------------------------------------------- */

static struct ct_use use_of(enum ct_queue queue, bool changes) {
  return changes ? ct_use_changes(queue) : ct_use_reads(queue);
}

int ct_network_ended(ct_network *n) {
  const int err = ct_weights_are_left(n->live) ? ct_poll(n->dev) : CT_OK;
  if (err || !ct_weights_are_left(n->live)) return err;
  return ct_fail(n->dev, CT_ERR_BUSY, "a run of the network that failed has not ended");
}

int ct_network_still(ct_network *n, bool change, const char *what) {
  const int err = ct_network_ended(n);
  return err ? err : ct_weights_still(n->live, change, what);
}

int ct_network_frame_still(ct_network *n, const char *what) {
  int err = ct_network_ended(n);
  if (!err && n->frame_runs) err = ct_poll(n->dev);
  if (err || !n->frame_runs) return err;
  return ct_fail(n->dev, CT_ERR_BUSY,
                 "runs under way use the network's own inputs and outputs: they can be %s when "
                 "these have ended",
                 what);
}

/* What is made of weights once is with them, so a run that makes it changes them. */
static int check_neighbours(ct_network *n, enum ct_queue queue) {
  return ct_weights_may(n->live, use_of(queue, n->changes || n->stale));
}

/* ---- Masks of dropout ----------------------------------------------------------------------- */

/* Whether a run reads them, of the selected member: with its own weights, as check_weights() says;
 * publishing does not. */
static bool masks_are_read(const ct_network *n) {
  return n->compiled.masks && n->member[n->selected].runs > 0;
}

/* No instruction of the device makes random numbers: masks come from here. A network, or a member
 * of one, has one set of them, so no run may be under way that reads the last. */
int ct_network_put_masks(ct_network *n, const struct ct_regions *r, uint64_t step) {
  int err = masks_are_read(n) ? ct_poll(n->dev) : CT_OK;
  if (!err && masks_are_read(n))
    err =
        ct_fail(n->dev, CT_ERR_BUSY,
                "a run under way uses the masks of dropout: the next can begin when it has ended");
  return err ? err : ct_network_write_masks(n, r, step);
}

int ct_network_write_masks(ct_network *n, const struct ct_regions *r, uint64_t step) {
  int err = CT_OK;
  for (size_t i = 0; i < n->compiled.masks && !err; ++i) {
    const struct ct_mask *m = &n->compiled.mask[i];
    float *x = malloc((size_t)m->mat.rows * m->mat.cols * sizeof *x);
    if (!x) return no_memory(n->dev);
    ct_compiled_mask(m, n->seed, step, x);
    err = ct_network_put(n, r, &m->mat, x);
    free(x);
  }
  return err;
}

/* ---- Runs that are waited for --------------------------------------------------------------- */

/* Stages that have been submitted and not finished. */
struct run {
  ct_network *n;
  enum ct_queue queue;
  uint64_t step;
  struct ct_job job;
  bool forward;        /* these stages alone */
  uint64_t *tag;       /* by stage; 0: not submitted */
  size_t first;        /* the oldest one under way */
  struct ct_event bad; /* of the first that the device ended, and which stage it is */
  size_t bad_stage;
};

static bool is_full(const struct run *r) {
  return r->bad.code == CT_DEV_COMP && r->n->compiled.stage[r->bad_stage].stores;
}

/* What the first job that failed ended with: those behind it are only skipped. */
static int say_why(struct run *r, int err) {
  const struct ct_stage *stage = &r->n->compiled.stage[r->bad_stage];
  if (err != CT_ERR_JOB || !r->bad.code) return err;
  return ct_fail(r->n->dev, err,
                 "the device ended a job of %s (%s): %s (%s, address 0x%" PRIx32 ")%s", stage->node,
                 stage->op, ct_code_text(r->bad.code), ct_code_name(r->bad.code), r->bad.address,
                 is_full(r) ? ". The pages for what is kept compressed are full: have pages for "
                              "more bits a number, allow a larger error, or take smaller batches"
                            : "");
}

static int finish_one(struct run *r) {
  const size_t stage = r->first;
  struct ct_network_part *part = &r->n->part[stage];
  const uint64_t tag = r->tag[r->first++];
  struct ct_event e = {0}; /* ct_finish() leaves it where it gives up */
  if (!tag) return CT_OK;
  const int err = ct_finish(r->n->dev, tag, &e);
  if (err == CT_ERR_DEVICE) r->n->error = err; /* whatever the run ends with */
  if (err == CT_ERR_JOB && !r->bad.code) {
    r->bad = e;
    r->bad_stage = stage;
  }
  part->rows = e.rows;
  part->cycles = err || e.end == CT_NO_CYCLE ? CT_NO_CYCLE : e.end - e.start;
  return err;
}

/* Waits until so many jobs fit into the queue: for its own stages, then for what others have
 * submitted before. What can never fit is refused when it is submitted. */
static int make_queue_room(struct run *r, size_t stage, size_t jobs) {
  ct_device *dev = r->n->dev;
  const uint64_t slots = ct_ring_slots(dev);
  int err = CT_OK;
  while (!err && r->first < stage && ct_queue_room(dev, r->queue) < jobs)
    err = finish_one(r);
  if (err || jobs > slots || ct_queue_room(dev, r->queue) >= jobs) return err;
  return ct_wait_completed(dev, r->queue, ct_queue_submitted(dev, r->queue) + jobs - slots,
                           dev->timeout_ms);
}

static int submit_stage(struct run *r, size_t stage, bool chained) {
  const size_t count = ct_network_stage_jobs(r->n, stage);
  struct ct_job *jobs = malloc((count + 1) * sizeof *jobs);
  if (!jobs) return no_memory(r->n->dev);
  make_jobs(r->n, stage, &r->job, jobs);
  const struct ct_work work = {.queue = r->queue,
                               .kind = CT_EVENT_JOB,
                               .job = jobs,
                               .jobs = (unsigned)count,
                               .cycle = CT_NO_CYCLE,
                               .chained = chained};
  const int err = ct_submit_work(r->n->dev, &work, &r->tag[stage]);
  free(jobs);
  return err;
}

static int run_stages(struct run *r) {
  ct_network *n = r->n;
  int err = CT_OK;
  size_t i = 0;
  for (bool chained = false; i < n->compiled.stages && !err; ++i) {
    const struct ct_stage *stage = &n->compiled.stage[i];
    if (stage->once && !n->stale && !n->changes) continue;
    if (!n->part[i].programs.count || (r->forward && stage->backward)) continue;
    if (!ct_compiled_runs(stage, r->step) || (stage->looks && !ct_kept_looks(n, r->step))) {
      n->part[i].rows = 0;
      n->part[i].cycles = CT_NO_CYCLE;
      continue;
    }
    err = make_queue_room(r, i, ct_network_stage_jobs(n, i));
    if (!err) err = submit_stage(r, i, chained);
    chained = true;
  }
  while (r->first < i) {
    const int one = finish_one(r);
    if (!err) err = one;
  }
  return say_why(r, err);
}

static int check_run(ct_network *n, enum ct_queue queue) {
  int err = ct_check_network(n);
  if (!err) err = ct_check_queue(n->dev, queue);
  return err ? err : ct_network_ended(n);
}

int ct_network_check_run(ct_network *n, enum ct_queue queue) {
  const int err = check_run(n, queue);
  return err ? err : check_neighbours(n, queue);
}

/* r: network, queue, step, stages. */
static int run_and_wait(struct run *r, const struct ct_regions *at) {
  ct_network *n = r->n;
  r->tag = calloc(n->compiled.stages + 1, sizeof *r->tag);
  if (!r->tag) return no_memory(n->dev);
  ct_network_arguments(n, at, r->step, &r->job);
  r->job.flags = flags_of(n, r->queue, true);
  n->queue = r->queue;
  n->error = CT_OK;
  const int err = run_stages(r);
  n->ends = ct_queue_submitted(n->dev, r->queue);
  free(r->tag);
  if (err && !n->error) n->error = err;
  if (n->error == CT_ERR_DEVICE) n->live->left.below[r->queue] = n->ends;
  return err;
}

int ct_network_run_forward(ct_network *n, enum ct_queue queue, const struct ct_regions *at,
                           uint64_t step, bool *full) {
  struct run r = {.n = n, .queue = queue, .step = step, .forward = true};
  const int before = n->error, err = run_and_wait(&r, at);
  *full = err == CT_ERR_JOB && is_full(&r);
  if (n->error != CT_ERR_DEVICE) n->error = before;
  return err;
}

int ct_network_run(ct_network *n, enum ct_queue queue, uint64_t step) {
  struct ct_regions at;
  int err = ct_network_check_run(n, queue);
  if (!err) err = ct_network_has_frame(n);
  if (!err) err = ct_network_frame_still(n, "run");
  if (err) return err;
  at = ct_network_own(n);
  err = ct_network_arena(n, queue, &at.arena);
  if (!err) err = ct_network_put_masks(n, &at, step);
  if (!err) err = ct_kept_begin(n, queue);
  if (!err) err = ct_network_try(n, queue, &at, step);
  if (err) return err;
  struct run r = {.n = n, .queue = queue, .step = step};
  err = run_and_wait(&r, &at);
  ct_kept_submitted(n, step);
  ct_kept_ended(n, err, r.bad.code);
  if (err) return err;
  n->stale = false;
  n->live->steps += n->changes;
  (void)ct_kept_look(n); /* (the step has been made: the next one tells) */
  return CT_OK;
}

/* ---- Runs that are submitted ---------------------------------------------------------------- */

/* One that is under way. */
struct flight {
  ct_network *n;
  ct_frame *frame;     /* NULL: the network's own */
  ct_weights *weights; /* NULL: its own */
  enum ct_queue queue;
  uint32_t member; /* whose own they are */
};

void ct_network_begin(ct_network *n, enum ct_queue queue, uint32_t first, uint32_t count) {
  ct_weights_take(n->live, use_of(queue, n->changes));
  for (uint32_t m = first; m < first + count; ++m)
    ++n->member[m].runs;
}

void ct_network_end(ct_network *n, enum ct_queue queue, uint32_t first, uint32_t count) {
  ct_weights_drop(n->live, use_of(queue, n->changes));
  for (uint32_t m = first; m < first + count; ++m)
    --n->member[m].runs;
}

static void landed(void *arg, const struct ct_event *event) {
  struct flight *f = arg;
  ct_network *n = f->n;
  ct_kept_ended(n, event->error, event->code);
  if (f->weights) {
    ct_weights_drop(f->weights, ct_use_reads(f->queue));
  } else {
    ct_network_end(n, f->queue, f->member, 1);
    if (!event->error) ct_network_note_run(n, f->member, 1);
  }
  if (f->frame)
    ct_frame_drop(f->frame, event->error);
  else
    --n->frame_runs;
  ct_network_release(n);
  free(f);
}

static void take_off(const struct flight *f) {
  ++f->n->refs;
  if (f->weights) {
    ct_weights_take(f->weights, ct_use_reads(f->queue));
  } else {
    ct_network_begin(f->n, f->queue, f->member, 1);
  }
  if (f->frame)
    ct_frame_take(f->frame);
  else
    ++f->n->frame_runs;
}

int ct_network_parts(ct_network *n, const char *what) {
  if (n->members > 1)
    return ct_fail(n->dev, CT_ERR_UNSUPPORTED, "the network has %u members, and these have no %s",
                   n->members, what);
  if (!n->compiled.crowded) return CT_OK;
  return ct_fail(n->dev, CT_ERR_UNSUPPORTED,
                 "the network has more than %d inputs, labels and outputs: the others lie with its "
                 "own weights, so it has no %s",
                 CT_EXTERNALS, what);
}

static bool is_among(const struct ct_stage *stage, enum ct_stages which) {
  return which == CT_STAGES_ALL || which == (stage->once ? CT_STAGES_ONCE : CT_STAGES_REST);
}

size_t ct_network_most_jobs(const ct_network *n, enum ct_stages which) {
  size_t count = 0;
  for (size_t i = 0; i < n->compiled.stages; ++i)
    if (is_among(&n->compiled.stage[i], which)) count += ct_network_stage_jobs(n, i);
  return count;
}

size_t ct_network_jobs(const ct_network *n, enum ct_stages which, uint64_t step,
                       const struct ct_job *like, struct ct_job *jobs) {
  size_t count = 0;
  for (size_t i = 0; i < n->compiled.stages; ++i) {
    const struct ct_stage *stage = &n->compiled.stage[i];
    if (!is_among(stage, which) || !ct_compiled_runs(stage, step)) continue;
    if (stage->looks && !ct_kept_looks(n, step)) continue;
    if (jobs) make_jobs(n, i, like, jobs + count);
    count += ct_network_stage_jobs(n, i);
  }
  return count;
}

int ct_network_takes(ct_network *n, ct_weights *w) {
  if (w->handle.dev != n->dev)
    return ct_fail(n->dev, CT_ERR_ARG, "the weights belong to another device");
  const int err = ct_weights_ready(w);
  if (err || w->network == n) return err;
  const ct_network *made = w->network;
  if (made && made->handle.live && made->live == n->live && !ct_network_fits(n, made)) return CT_OK;
  return ct_fail(n->dev, CT_ERR_ARG, "the weights were published for something else");
}

static int check_weights(ct_network *n, ct_weights *w) {
  const int err = ct_network_takes(n, w);
  if (err) return err;
  if (n->compiled.masks)
    return ct_fail(
        n->dev, CT_ERR_ARG,
        "this network has dropout, whose masks lie beside its own weights: its runs take "
        "none from outside");
  if (n->changes)
    return ct_fail(n->dev, CT_ERR_ARG,
                   "runs of this network change its weights: they take none from outside");
  return ct_network_parts(n, "versions of them");
}

int ct_network_check_submit(ct_network *n, const struct ct_run *run) {
  int err = check_run(n, run->queue);
  if (!err)
    err = ct_check_reserved(n->dev, "ct_run", run->reserved,
                            sizeof run->reserved / sizeof *run->reserved);
  if (!err && !run->frame) err = ct_network_has_frame(n);
  if (!err) err = run->weights ? check_weights(n, run->weights) : check_neighbours(n, run->queue);
  if (err) return err;
  return run->frame ? ct_frame_check(n, run->frame) : ct_network_frame_still(n, "run again");
}

/* Where a run finds everything. */
static int regions_of(ct_network *n, const struct ct_run *run, struct ct_regions *at) {
  const struct ct_regions own = ct_network_own(n);
  *at = run->frame ? run->frame->at : own;
  at->lasting = run->weights ? run->weights->image : own.lasting;
  return ct_network_arena(n, run->queue, &at->arena);
}

/* Where the run that ends a step will not fit its first one need not begin. */
int ct_network_check_most(ct_network *n, uint64_t most) {
  const uint64_t slots = ct_ring_slots(n->dev);
  if (most <= slots) return CT_OK;
  return ct_fail(n->dev, CT_ERR_NO_SPACE,
                 "a run of the network takes up to %llu jobs in a row, a queue holds %llu",
                 (unsigned long long)most, (unsigned long long)slots);
}

int ct_network_send(const ct_network *n, enum ct_stages which, uint64_t step,
                    const struct ct_job *like, struct ct_work *work, uint64_t *tag) {
  const size_t count = ct_network_jobs(n, which, step, like, NULL);
  if (!count) return ct_fail(n->dev, CT_ERR_ARG, "the network has nothing to run");
  struct ct_job *jobs = malloc(count * sizeof *jobs);
  if (!jobs) return no_memory(n->dev);
  ct_network_jobs(n, which, step, like, jobs);
  work->job = jobs;
  work->jobs = (unsigned)count;
  const int err = ct_submit_work(n->dev, work, tag);
  free(jobs);
  return err;
}

static int submit(const struct ct_run *run, struct flight *f, const struct ct_job *like,
                  uint64_t *tag) {
  ct_network *n = f->n;
  const bool once = !run->weights && (n->stale || n->changes);
  const enum ct_stages which = once ? CT_STAGES_ALL : CT_STAGES_REST;
  const int err = ct_network_check_most(n, ct_network_most_jobs(n, which));
  if (err) return err;
  struct ct_work work = {.queue = run->queue,
                         .kind = CT_EVENT_RUN,
                         .cycle = run->cycle ? run->cycle : CT_NO_CYCLE,
                         .done = landed,
                         .arg = f};
  return ct_network_send(n, which, run->step, like, &work, tag);
}

int ct_network_submit(ct_network *n, const struct ct_run *run, uint64_t *tag) {
  struct ct_regions at;
  int err = ct_check_network(n);
  if (err) return err;
  CT_NEED(n->dev, run);
  err = ct_network_check_submit(n, run);
  if (!err) err = regions_of(n, run, &at);
  if (!err) err = ct_network_put_masks(n, &at, run->step);
  if (!err) err = ct_kept_begin(n, run->queue);
  if (!err) err = ct_network_try(n, run->queue, &at, run->step);
  if (err) return err;
  struct flight *f = malloc(sizeof *f);
  if (!f) return no_memory(n->dev);
  *f = (struct flight){n, run->frame, run->weights, run->queue, n->selected};
  struct ct_job like = {.user = run->user,
                        .version = run->weights ? run->weights->version : 0,
                        .flags = flags_of(n, run->queue, !run->weights)};
  ct_network_arguments(n, &at, run->step, &like);
  err = submit(run, f, &like, tag);
  if (err) {
    free(f);
    return err;
  }
  take_off(f);
  ct_kept_submitted(n, run->step);
  return CT_OK;
}
