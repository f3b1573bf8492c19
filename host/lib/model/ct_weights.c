/* SPDX-License-Identifier: Apache-2.0 */
/* Weights: who holds and uses them, by the rules of ct_weights.h; versions; to and from the host.
 */
#include "ct_weights.h"

#include <stdlib.h>

#include "ct_network.h"

/* ---- References ---------------------------------------------------------------------------- */

int ct_weights_open(ct_device *dev, ct_weights **weights) {
  ct_weights *w = calloc(1, sizeof *w);
  if (!w) return ct_fail(dev, CT_ERR_MEMORY, "no memory for weights");
  ct_handle_open(&w->handle, dev);
  w->dev = dev;
  w->refs = 1;
  *weights = w;
  return CT_OK;
}

int ct_weights_make(ct_device *dev, uint64_t bytes, ct_weights **weights) {
  ct_weights *w = NULL;
  int err = ct_weights_open(dev, &w);
  if (err) return err;
  err = ct_mem_alloc(dev, bytes, &w->image);
  if (err) {
    ct_handle_burn(&w->handle);
    return err;
  }
  w->bytes = bytes;
  w->error = CT_ERR_BUSY;
  *weights = w;
  return CT_OK;
}

/* Jobs that could not be ended keep the image until they have. */
static void give_back(const ct_weights *w) {
  if (w->rank)
    ct_rank_leave(w->rank, &w->left);
  else if (w->dev->queues)
    ct_give_back_until(w->dev, w->image, &w->left);
  if (w->state) ct_heap_free(&w->dev->data, w->state);
  if (w->gradients) ct_heap_free(&w->dev->data, w->gradients);
}

void ct_weights_release(ct_weights *w) {
  if (--w->refs) return;
  give_back(w);
  if (w->network) ct_network_release(w->network);
  if (w->inside)
    ct_handle_burn(&w->handle);
  else
    ct_handle_bury(&w->handle);
}

void ct_weights_orphan(ct_weights *w) {
  if (!w) return;
  w->handle.live = false;
  ct_weights_release(w);
}

void ct_weights_take(ct_weights *w, struct ct_use use) {
  ++w->refs;
  ++w->users[use.by];
  w->changing[use.by] += use.changes;
}

void ct_weights_drop(ct_weights *w, struct ct_use use) {
  --w->users[use.by];
  w->changing[use.by] -= use.changes;
  ct_weights_release(w);
}

/* ---- What may be done with them ------------------------------------------------------------ */

static size_t sum(const size_t *counts) {
  size_t all = 0;
  for (unsigned u = 0; u < CT_WEIGHTS_USERS; ++u)
    all += counts[u];
  return all;
}

bool ct_weights_are_left(const ct_weights *w) {
  for (unsigned q = 0; q < CT_QUEUES; ++q)
    if (w->dev->queues->ring[q].completed < w->left.below[q]) return true;
  return false;
}

bool ct_weights_are_used(const ct_weights *w) {
  return sum(w->users) > 0 || ct_weights_are_left(w);
}

/* Whoever it must not meet is there. */
static bool clashes(const ct_weights *w, struct ct_use use) {
  const size_t *met = use.changes ? w->users : w->changing;
  return sum(met) > met[use.by];
}

int ct_weights_may(ct_weights *w, struct ct_use use) {
  const int err = clashes(w, use) ? ct_poll(w->dev) : CT_OK;
  if (err || !clashes(w, use)) return err;
  if (!use.changes)
    return ct_fail(w->dev, CT_ERR_BUSY,
                   "steps in flight change the live weights: publish a version to be read beside "
                   "them, or read on their queue");
  return ct_fail(w->dev, CT_ERR_BUSY,
                 "requests, runs of the other queue, or a server read the live weights, which a "
                 "step would change: publish a version for them");
}

static bool is_held(const ct_weights *w, bool change) {
  return sum(change ? w->users : w->changing) > 0;
}

int ct_weights_still(ct_weights *w, bool change, const char *what) {
  const int err = is_held(w, change) ? ct_poll(w->dev) : CT_OK;
  if (err || !is_held(w, change)) return err;
  if (sum(w->changing))
    return ct_fail(w->dev, CT_ERR_BUSY,
                   "steps in flight change the live weights of a model or network: it can be %s "
                   "when they have ended",
                   what);
  return ct_fail(w->dev, CT_ERR_BUSY,
                 "answers, gradients or versions are being made of the live weights, or a server "
                 "reads them: they can be %s when these have ended",
                 what);
}

static int check_complete(const ct_weights *w) {
  const int err = ct_check_handle(&w->handle, "version");
  if (err || !w->error) return err;
  if (w->error == CT_ERR_BUSY)
    return ct_fail(w->dev, CT_ERR_BUSY,
                   "version %u is not complete yet: wait for its event, then use it", w->version);
  return ct_fail(w->dev, w->error, "version %u was never completed: %s", w->version,
                 ct_strerror(w->error));
}

int ct_weights_ready(ct_weights *w) {
  int err = ct_check_handle(&w->handle, "version");
  if (!err && w->error == CT_ERR_BUSY) err = ct_poll(w->dev);
  return err ? err : check_complete(w);
}

/* ---- Publishing ---------------------------------------------------------------------------- */

/* A version that is under way. */
struct publishing {
  ct_weights *w, *of;
  void (*done)(void *arg, ct_weights *weights);
  void *arg;
};

static void published(void *arg, const struct ct_event *event) {
  struct publishing *p = arg;
  p->w->error = event->error;
  p->w->steps = p->of->steps;
  if (p->done) p->done(p->arg, p->w);
  ct_weights_drop(p->of, ct_use_reads(CT_TRAINING));
  ct_weights_drop(p->w, ct_use_changes(CT_TRAINING));
  free(p);
}

int ct_publish_may(ct_weights *of) {
  const struct ct_use use = ct_use_reads(CT_TRAINING);
  const int err = clashes(of, use) ? ct_poll(of->dev) : CT_OK;
  if (err || !clashes(of, use)) return err;
  return ct_fail(of->dev, CT_ERR_BUSY,
                 "runs of the inference queue change the weights: publish when they have ended");
}

static size_t make_jobs(const struct ct_publishing *p, struct ct_job *jobs) {
  struct ct_job copy = {.user = p->user, .version = *p->numbered + 1};
  size_t count = 0;
  copy.args[CT_COPY_FROM - 1] = ct_units_of(p->from);
  copy.args[CT_COPY_TO - 1] = ct_units_of(p->weights->image);
  for (; count < p->copies->count; ++count) {
    jobs[count] = copy;
    jobs[count].program = p->copies->of[count];
  }
  for (size_t i = 0; i < p->jobs; ++i)
    jobs[count++] = p->then[i];
  return count;
}

static int submit(const struct ct_publishing *p, struct publishing *way, uint64_t *tag) {
  struct ct_job *jobs = malloc((p->copies->count + p->jobs + 1) * sizeof *jobs);
  if (!jobs) return ct_fail(way->w->dev, CT_ERR_MEMORY, "no memory for the copies of a version");
  const struct ct_work work = {.queue = CT_TRAINING,
                               .kind = CT_EVENT_PUBLISH,
                               .job = jobs,
                               .jobs = (unsigned)make_jobs(p, jobs),
                               .cycle = CT_NO_CYCLE,
                               .done = published,
                               .arg = way};
  const int err = ct_submit_work(way->w->dev, &work, tag);
  free(jobs);
  return err;
}

int ct_publish(const struct ct_publishing *p, uint64_t *tag) {
  ct_weights *w = p->weights;
  struct publishing *way = malloc(sizeof *way);
  if (!way) return ct_fail(w->dev, CT_ERR_MEMORY, "no memory for a version");
  *way = (struct publishing){w, p->of, p->done, p->arg};
  const int err = submit(p, way, tag);
  if (err) {
    free(way);
    return err;
  }
  w->version = ++*p->numbered;
  ct_weights_take(w, ct_use_changes(CT_TRAINING));
  ct_weights_take(p->of, ct_use_reads(CT_TRAINING));
  return CT_OK;
}

/* ---- To and from the host ------------------------------------------------------------------ */

int ct_weights_info(const ct_weights *w, struct ct_weights_info *info) {
  const int err = ct_check_handle(w ? &w->handle : NULL, "version");
  if (err || !w) return err;
  CT_NEED(w->dev, info);
  *info = (struct ct_weights_info){
      .version = w->version, .error = w->error, .steps = w->steps, .bytes = w->bytes};
  return CT_OK;
}

uint64_t ct_weights_address(const ct_weights *w) {
  return w && w->handle.live ? w->image : 0;
}

static int check_size(ct_device *dev, uint64_t bytes, size_t size) {
  if (size == bytes) return CT_OK;
  return ct_fail(dev, CT_ERR_ARG, "these weights have %llu bytes, not %zu",
                 (unsigned long long)bytes, size);
}

int ct_weights_read(ct_weights *w, void *data, size_t size) {
  int err = ct_check_handle(w ? &w->handle : NULL, "version");
  if (err || !w) return err;
  CT_NEED(w->dev, data);
  err = check_size(w->dev, w->bytes, size);
  if (!err && w->live) err = ct_weights_still(w, false, "read");
  if (!err) err = ct_weights_ready(w);
  return err ? err : ct_mem_read(w->dev, w->image, data, size);
}

int ct_weights_of(ct_device *dev, uint64_t bytes, const void *data, size_t size,
                  ct_weights **weights) {
  ct_weights *w = NULL;
  int err = check_size(dev, bytes, size);
  if (!err) err = ct_weights_make(dev, bytes, &w);
  if (!err) err = ct_mem_write(dev, w->image, data, size);
  if (err) {
    ct_weights_free(w);
    return err;
  }
  w->error = CT_OK;
  *weights = w;
  return CT_OK;
}

void ct_weights_free(ct_weights *w) {
  if (w && w->live && w->handle.live) {
    ct_fail(w->dev, CT_ERR_ARG, "the live weights go with their model and are not freed");
    ct_log(w->dev, CT_LOG_WARNING, "the live weights of a model were to be freed");
    return;
  }
  if (w && ct_handle_close(&w->handle, "version")) ct_weights_release(w);
}
