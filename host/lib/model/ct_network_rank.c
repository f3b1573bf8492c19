/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks: networks of the same programs side by side, so that a job can be for several of them. A
 * network has its memory for itself until it is moved to a slot; what it has there are the same
 * bytes. Arrays do that with members that are at the same run.
 */
#include <stdlib.h>

#include "ct_graph_impl.h"
#include "ct_network.h"

static int no_memory(ct_device *dev) {
  return ct_fail(dev, CT_ERR_MEMORY, "no memory for networks side by side");
}

/* ---- Places -------------------------------------------------------------------------------- */

static void give_back(struct ct_rank *rank) {
  for (unsigned i = 0; i < CT_RANK_FRAMES; ++i) {
    ct_give_back_until(rank->dev, rank->at[i].lasting, &rank->left);
    for (unsigned k = 0; k < CT_EXTERNALS; ++k)
      ct_give_back_after(rank->dev, rank->at[i].external[k], CT_TRAINING, CT_OK);
  }
}

void ct_rank_drop(struct ct_rank *rank) {
  if (rank->refs > 0 && --rank->refs > 0) return;
  if (rank->dev->queues) give_back(rank);
  free(rank);
}

void ct_rank_leave(struct ct_rank *rank, const struct ct_until *left) {
  for (unsigned q = 0; q < CT_QUEUES; ++q)
    if (rank->left.below[q] < left->below[q]) rank->left.below[q] = left->below[q];
  ct_rank_drop(rank);
}

/* Whether frames have places for it in the rank. */
static bool is_there(const struct ct_rank *rank, const ct_network *n, const struct ct_external *x) {
  return !rank->common || ct_network_makes(n, x);
}

static int make_frames(ct_network *n, const struct ct_rank *rank, struct ct_regions *at) {
  int err = CT_OK;
  for (size_t i = 0; i < n->compiled.externals && !err; ++i) {
    const struct ct_external *x = &n->compiled.external[i];
    if (is_there(rank, n, x))
      err = ct_network_alloc(n, x->units * rank->slots, &at->external[x->reg - CT_ARG_FIRST]);
  }
  return err;
}

int ct_rank_create(ct_network *n, const struct ct_rank *how, uint32_t frames,
                   struct ct_rank **rank) {
  struct ct_rank *r = calloc(1, sizeof *r);
  if (!r) return no_memory(n->dev);
  *r = (struct ct_rank){.dev = n->dev, .slots = how->slots, .common = how->common};
  int err = ct_network_alloc(n, n->compiled.lasting * r->slots, &r->at[0].lasting);
  for (uint32_t i = 0; i < frames && !err; ++i)
    err = make_frames(n, r, &r->at[i]);
  if (err)
    ct_rank_drop(r);
  else
    *rank = r;
  return err;
}

/* ---- Moving -------------------------------------------------------------------------------- */

static int copy(ct_network *n, uint64_t from, uint64_t to) {
  const size_t size = n->compiled.lasting * CT_UNIT;
  uint8_t *bytes = malloc(size + 1);
  if (!bytes) return no_memory(n->dev);
  int err = ct_mem_read(n->dev, from, bytes, size);
  if (!err) err = ct_mem_write(n->dev, to, bytes, size);
  free(bytes);
  return err;
}

int ct_network_move(ct_network *n, struct ct_rank *rank, uint32_t slot) {
  const uint64_t to = rank->at[0].lasting + n->compiled.lasting * slot * CT_UNIT;
  ct_weights *live = n->live;
  const int err = copy(n, live->image, to);
  if (err) return err;
  if (live->rank)
    ct_rank_drop(live->rank);
  else
    ct_give_back_after(n->dev, live->image, CT_TRAINING, CT_OK);
  ++rank->refs;
  live->rank = rank;
  live->image = to;
  return CT_OK;
}

/* What the last run made stays behind. */
void ct_frame_move(ct_frame *f, const struct ct_rank *rank, uint32_t frame, uint32_t slot) {
  const struct ct_compiled *c = &f->network->compiled;
  for (size_t i = 0; i < c->externals; ++i) {
    const struct ct_external *x = &c->external[i];
    const unsigned k = x->reg - CT_ARG_FIRST;
    if (!is_there(rank, f->network, x)) continue;
    if (!f->ranked && ct_network_makes(f->network, x))
      ct_give_back_after(f->dev, f->at.external[k], CT_TRAINING, CT_OK);
    f->at.external[k] = rank->at[frame].external[k] + x->units * slot * CT_UNIT;
  }
  f->ranked = true;
  f->ran = false;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* One that is under way. */
struct flight {
  uint32_t count;
  enum ct_queue queue;
  struct {
    ct_network *network;
    ct_frame *frame;
  } of[CT_MEMBERS_AT_ONCE];
};

static void landed(void *arg, const struct ct_event *event) {
  struct flight *f = arg;
  for (uint32_t i = 0; i < f->count; ++i) {
    ct_network *n = f->of[i].network;
    ct_network_end(n, f->queue, 0, 1);
    if (!event->error) ct_network_note_run(n, 0, 1);
    ct_frame_drop(f->of[i].frame, event->error);
    ct_network_release(n);
  }
  free(f);
}

static void take_off(const struct ct_rank_run *run, struct flight *f) {
  f->count = run->count;
  f->queue = run->queue;
  for (uint32_t i = 0; i < run->count; ++i) {
    f->of[i].network = run->network[i];
    f->of[i].frame = run->frame[i];
    ++run->network[i]->refs;
    ct_network_begin(run->network[i], run->queue, 0, 1);
    ct_frame_take(run->frame[i]);
  }
}

static void member(const void *arg, uint32_t i, struct ct_crowd_member *m) {
  const struct ct_rank_run *run = arg;
  const ct_network *n = run->network[i];
  m->at = run->frame[i]->at;
  m->at.lasting = n->live->image;
  m->step = run->step;
  for (size_t s = 0; s < n->compiled.scalars; ++s)
    m->scalar[s] = n->compiled.scalar[s];
}

static int arenas(ct_network *n, enum ct_queue queue, uint64_t *addr) {
  uint64_t *at = &n->shared->ranks[queue];
  const int err = *at ? CT_OK : ct_network_alloc(n, n->compiled.arena * CT_MEMBERS_AT_ONCE, at);
  *addr = *at;
  return err;
}

/* All that can be refused before anything has happened. */
static int check(const struct ct_rank_run *run) {
  int err = CT_OK;
  for (uint32_t i = 0; i < run->count && !err; ++i)
    err = ct_network_check_submit(run->network[i],
                                  &(struct ct_run){.frame = run->frame[i], .queue = run->queue});
  return err;
}

static int put_masks(const struct ct_rank_run *run) {
  int err = CT_OK;
  for (uint32_t i = 0; i < run->count && !err; ++i) {
    const struct ct_regions own = ct_network_own(run->network[i]);
    err = ct_network_put_masks(run->network[i], &own, run->step);
  }
  return err;
}

int ct_rank_submit(const struct ct_rank_run *run, uint64_t *tag) {
  ct_network *n = run->network[0];
  struct ct_crowd c = {.n = n, .count = run->count, .of = member, .arg = run, .once = true};
  int err = check(run);
  if (!err) err = ct_fusion_make(n, n->live->rank->common, &c.group);
  if (!err) err = arenas(n, run->queue, &c.arena);
  if (err) return err;
  ct_crowd_jobs(&c);
  err = ct_network_check_most(n, c.jobs);
  if (!err) err = put_masks(run);
  if (err) return err;
  struct flight *f = calloc(1, sizeof *f);
  if (!f) return no_memory(n->dev);
  const struct ct_work how = {.queue = run->queue, .cycle = CT_NO_CYCLE, .done = landed, .arg = f};
  err = ct_crowd_submit(&c, &how, tag);
  if (err)
    free(f);
  else
    take_off(run, f);
  return err;
}
