/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of a network's weights.
 *
 * A version is an image of what lasts (CT_ARG_LASTING) in the network that it is for: constants,
 * weights, states, and what is made of these once. Publishing copies weights and states from where
 * the other network has them, tensor by tensor, and runs the stages that run once on the copy, all
 * as one work of the training queue. So no run sees a mixture, and the bits are those of a network
 * that had been written the same weights.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_network.h"

/* ---- Publishing ---------------------------------------------------------------------------- */

/* One that is under way. */
struct publishing {
  ct_weights *w;
  ct_network *from, *to;
  uint32_t member; /* of from */
};

static void published(void *arg, ct_weights *w) {
  struct publishing *p = arg;
  w->steps = ct_network_steps_of(p->from, p->member);
  --p->to->arriving;
  ct_network_release(p->from);
  ct_network_release(p->to);
  free(p);
}

/* They hold the network, by which they are known. */
static void of_network(ct_weights *w, ct_network *n) {
  w->network = n;
  ++n->refs;
}

/* An image with constants, and zeros where copies will be. */
static int make_image(ct_network *to, ct_weights **weights) {
  ct_weights *w = NULL;
  const uint64_t size = to->compiled.lasting * CT_UNIT;
  uint8_t *zeros = calloc(to->compiled.lasting + 1, CT_UNIT);
  int err = zeros ? ct_weights_make(to->dev, size, &w)
                  : ct_fail(to->dev, CT_ERR_MEMORY, "no memory for a version");
  if (!err) err = ct_mem_write(to->dev, w->image, zeros, size);
  free(zeros);
  if (!err) {
    of_network(w, to);
    err = ct_network_put_constants(to, &(struct ct_regions){.lasting = w->image});
  }
  if (err)
    ct_weights_free(w);
  else
    *weights = w;
  return err;
}

/* What runs once, behind the copies. */
static int make_jobs(const struct publishing *p, void *user, struct ct_job **jobs, size_t *count) {
  ct_network *to = p->to;
  struct ct_job once = {.user = user, .version = to->numbered + 1};
  struct ct_regions at = {.lasting = p->w->image};
  *count = ct_network_jobs(to, CT_STAGES_ONCE, 0, &once, NULL);
  const int err = *count ? ct_network_arena(to, CT_TRAINING, &at.arena) : CT_OK;
  if (err) return err;
  *jobs = malloc((*count + 1) * sizeof **jobs);
  if (!*jobs) return ct_fail(to->dev, CT_ERR_MEMORY, "no memory for what is made of a version");
  ct_network_arguments(to, &at, 0, &once);
  ct_network_jobs(to, CT_STAGES_ONCE, 0, &once, *jobs);
  return CT_OK;
}

static int submit(struct publishing *p, void *user, uint64_t *tag) {
  struct ct_publishing how = {.weights = p->w,
                              .of = p->from->live,
                              .from = ct_network_own(p->from).lasting,
                              .copies = &p->to->copies.programs,
                              .numbered = &p->to->numbered,
                              .user = user,
                              .done = published,
                              .arg = p};
  struct ct_job *jobs = NULL;
  int err = make_jobs(p, user, &jobs, &how.jobs);
  if (!err && !how.copies->count && !how.jobs)
    err = ct_fail(p->to->dev, CT_ERR_ARG, "the network has no weights to publish");
  how.then = jobs;
  if (!err) err = ct_publish(&how, tag);
  free(jobs);
  if (err) return err;
  ++p->to->arriving;
  ++p->from->refs;
  ++p->to->refs;
  return CT_OK;
}

static int check_networks(const ct_network *from, const ct_network *to) {
  int err = ct_check_network(from);
  if (!err) err = ct_check_network(to);
  if (err) return err;
  if (from->dev != to->dev)
    return ct_fail(to->dev, CT_ERR_ARG, "the two networks are on different devices");
  if (from->narrow != to->narrow)
    return ct_fail(to->dev, CT_ERR_ARG, "the two networks have mantissas of %u and %u bits",
                   8 - from->narrow, 8 - to->narrow);
  return CT_OK;
}

int ct_network_publish_submit(ct_network *from, ct_network *to, void *user, ct_weights **weights,
                              uint64_t *tag) {
  if (weights) *weights = NULL;
  int err = check_networks(from, to);
  if (err) return err;
  CT_NEED(to->dev, weights);
  err = ct_network_ended(from);
  if (!err) err = ct_publish_may(from->live);
  if (err) return err;
  struct publishing *p = malloc(sizeof *p);
  if (!p) return ct_fail(to->dev, CT_ERR_MEMORY, "no memory for a version");
  *p = (struct publishing){NULL, from, to, from->selected};
  err = ct_copies_make(from, to);
  if (!err) err = make_image(to, &p->w);
  if (!err) err = submit(p, user, tag);
  if (!err) {
    *weights = p->w;
    return CT_OK;
  }
  ct_weights_free(p->w);
  free(p);
  return err;
}

int ct_network_load_weights(ct_network *n, const void *data, size_t size, ct_weights **weights) {
  if (weights) *weights = NULL;
  int err = ct_check_network(n);
  if (err) return err;
  CT_NEED(n->dev, data);
  CT_NEED(n->dev, weights);
  err = ct_weights_of(n->dev, n->compiled.lasting * CT_UNIT, data, size, weights);
  if (err) return err;
  of_network(*weights, n);
  (*weights)->version = ++n->numbered;
  (*weights)->steps = n->live->steps;
  return CT_OK;
}
