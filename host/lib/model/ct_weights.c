/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights: the live ones of a model and versions of them.
 *
 * Live weights are written by steps, in the order of the training queue, and what reads them on
 * that queue sees them between two steps. Requests of the inference queue and servers know no such
 * order: while one of these reads live weights no step may be submitted, and while one step is in
 * flight none of these may begin. A version is read by everybody, as soon as its copy is complete.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_network.h"

/* ---- References ---------------------------------------------------------------------------- */

int ct_weights_make(ct_device *dev, uint64_t bytes, ct_weights **weights) {
  ct_weights *w = calloc(1, sizeof *w);
  if (!w) return ct_fail(dev, CT_ERR_MEMORY, "no memory for weights");
  const int err = ct_mem_alloc(dev, bytes, &w->image);
  if (err) {
    free(w);
    return err;
  }
  ct_handle_open(&w->handle, dev);
  w->dev = dev;
  w->bytes = bytes;
  w->error = CT_ERR_BUSY;
  w->refs = 1;
  *weights = w;
  return CT_OK;
}

int ct_weights_make_for(ct_device *dev, const struct ct_mlp *net, ct_weights **weights) {
  const int err = ct_weights_make(dev, ct_image_bytes(net), weights);
  if (!err) (*weights)->net = *net;
  return err;
}

static void release(ct_weights *w) {
  if (--w->refs) return;
  ct_heap_free(&w->dev->data, w->image);
  if (w->state) ct_heap_free(&w->dev->data, w->state);
  if (w->gradients) ct_heap_free(&w->dev->data, w->gradients);
  if (w->network) ct_network_release(w->network);
  ct_handle_bury(&w->handle);
}

void ct_weights_take(ct_weights *w, enum ct_weights_use use) {
  ++w->refs;
  w->readers += use == CT_WEIGHTS_READ;
  w->writers += use == CT_WEIGHTS_WRITTEN;
}

void ct_weights_drop(ct_weights *w, enum ct_weights_use use) {
  w->readers -= use == CT_WEIGHTS_READ;
  w->writers -= use == CT_WEIGHTS_WRITTEN;
  release(w);
}

void ct_weights_orphan(ct_weights *w) {
  if (!w) return;
  w->model = NULL;
  w->handle.live = false;
  release(w);
}

/* ---- What may be done with them ------------------------------------------------------------ */

static int check_weights(const ct_weights *w) {
  const int err = ct_check_handle(&w->handle, "version");
  if (err || !w->error) return err;
  if (w->error == CT_ERR_BUSY)
    return ct_fail(w->dev, CT_ERR_BUSY,
                   "version %u is not complete yet: wait for its event, then use it", w->version);
  return ct_fail(w->dev, w->error, "version %u was never completed: %s", w->version,
                 ct_strerror(w->error));
}

static bool same_widths(const struct ct_mlp *a, const struct ct_mlp *b) {
  return a->layers == b->layers && !memcmp(a->width, b->width, (a->layers + 1) * sizeof *a->width);
}

static bool clashes(const ct_weights *w, enum ct_weights_use use) {
  return (use == CT_WEIGHTS_READ && w->writers) || (use == CT_WEIGHTS_WRITTEN && w->readers);
}

static int check_use(const ct_weights *w, enum ct_weights_use use) {
  if (!clashes(w, use)) return CT_OK;
  if (use == CT_WEIGHTS_READ)
    return ct_fail(w->dev, CT_ERR_BUSY,
                   "steps in flight change the live weights: publish a version to be read beside "
                   "them, or read on the training queue");
  return ct_fail(w->dev, CT_ERR_BUSY,
                 "requests or a server read the live weights, which a step would change: publish a "
                 "version for them");
}

int ct_weights_ready(ct_weights *w) {
  int err = ct_check_handle(&w->handle, "version");
  if (!err && w->error == CT_ERR_BUSY) err = ct_poll(w->dev);
  return err ? err : check_weights(w);
}

/* What the device has completed meanwhile counts. */
int ct_weights_find(ct_model *m, enum ct_weights_use use, ct_weights **weights) {
  if (!*weights) *weights = m->live;
  ct_weights *w = *weights;
  if (w->handle.dev != m->dev)
    return ct_fail(m->dev, CT_ERR_ARG, "the weights belong to another device");
  int err = ct_check_handle(&w->handle, "version");
  if (!err && (w->error == CT_ERR_BUSY || clashes(w, use))) err = ct_poll(m->dev);
  if (!err) err = check_weights(w);
  if (!err && w->network)
    err = ct_fail(m->dev, CT_ERR_ARG, "the weights are of a network, not of a model");
  if (!err && !same_widths(&w->net, &m->net))
    err = ct_fail(m->dev, CT_ERR_ARG, "the weights are of a model of other widths");
  return err ? err : check_use(w, use);
}

int ct_weights_still(ct_model *m, bool change, const char *what) {
  const ct_weights *w = m->live;
  const bool used = w->writers || (change && (w->readers || w->keepers));
  const int err = used ? ct_poll(m->dev) : CT_OK;
  if (err) return err;
  if (w->writers)
    return ct_fail(m->dev, CT_ERR_BUSY,
                   "steps in flight change the model: it can be %s when they have ended", what);
  if (change && w->readers)
    return ct_fail(m->dev, CT_ERR_BUSY,
                   "requests or a server read the live weights: they can be %s when these have "
                   "ended, or read a version",
                   what);
  if (change && w->keepers)
    return ct_fail(m->dev, CT_ERR_BUSY,
                   "steps in flight make gradients by the live weights: they can be %s when these "
                   "have ended",
                   what);
  return CT_OK;
}

/* ---- Publishing ---------------------------------------------------------------------------- */

int ct_publish(const struct ct_publishing *p, uint64_t *tag) {
  ct_weights *w = p->weights;
  struct ct_job copy = {.user = p->user, .version = *p->numbered + 1};
  struct ct_job *jobs = malloc((p->copies->count + p->jobs + 1) * sizeof *jobs);
  if (!jobs) return ct_fail(w->dev, CT_ERR_MEMORY, "no memory for the copies of a version");
  copy.args[CT_COPY_FROM - 1] = ct_units_of(p->from);
  copy.args[CT_COPY_TO - 1] = ct_units_of(w->image);
  size_t count = 0;
  for (; count < p->copies->count; ++count) {
    jobs[count] = copy;
    jobs[count].program = p->copies->of[count];
  }
  for (size_t i = 0; i < p->jobs; ++i)
    jobs[count++] = p->then[i];
  const struct ct_work work = {.queue = CT_TRAINING,
                               .kind = CT_EVENT_PUBLISH,
                               .job = jobs,
                               .jobs = (unsigned)count,
                               .cycle = CT_NO_CYCLE,
                               .done = p->done,
                               .arg = p->arg};
  const int err = ct_submit_work(w->dev, &work, tag);
  free(jobs);
  if (err) return err;
  w->version = ++*p->numbered;
  ct_weights_take(w, CT_WEIGHTS_ORDERED);
  return CT_OK;
}

static int make_copies(ct_model *m) {
  const struct ct_stretch image = {.units = ct_mlp_image_units(&m->net)};
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  struct ct_codes codes;
  if (m->copies.count) return CT_OK;
  const int err = ct_prog_copies(&image, 1, ct_window_words(m->dev), &codes, &why);
  return err ? ct_fail(m->dev, err, "%s", text) : ct_programs_load(m->dev, &codes, &m->copies);
}

static void published(void *arg, const struct ct_event *event) {
  ct_weights *w = arg, *from = w->from;
  w->error = event->error;
  w->from = NULL;
  if (from->model) w->steps = from->model->steps;
  ct_weights_drop(from, CT_WEIGHTS_ORDERED);
  ct_weights_drop(w, CT_WEIGHTS_ORDERED);
}

static int submit_copies(ct_model *m, ct_weights *w, void *user, uint64_t *tag) {
  const struct ct_publishing p = {.weights = w,
                                  .from = m->live->image,
                                  .copies = &m->copies,
                                  .numbered = &m->numbered,
                                  .user = user,
                                  .done = published,
                                  .arg = w};
  const int err = ct_publish(&p, tag);
  if (err) return err;
  w->from = m->live;
  ct_weights_take(m->live, CT_WEIGHTS_ORDERED);
  return CT_OK;
}

static int publish(ct_model *m, void *user, ct_weights **weights, uint64_t *tag, const char *call) {
  if (weights) *weights = NULL;
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED_OF(m->dev, call, weights);
  ct_weights *w = NULL;
  err = make_copies(m);
  if (!err) err = ct_weights_make_for(m->dev, &m->net, &w);
  if (err) return err;
  err = submit_copies(m, w, user, tag);
  if (err)
    ct_weights_free(w);
  else
    *weights = w;
  return err;
}

int ct_model_publish_submit(ct_model *m, void *user, ct_weights **weights, uint64_t *tag) {
  return publish(m, user, weights, tag, __func__);
}

int ct_model_publish(ct_model *m, ct_weights **weights) {
  uint64_t tag = 0;
  int err = publish(m, NULL, weights, &tag, __func__);
  if (err) return err;
  err = ct_finish(m->dev, tag, NULL);
  if (err) {
    ct_weights_free(*weights);
    *weights = NULL;
  }
  return err;
}

/* ---- To and from the host ------------------------------------------------------------------ */

ct_weights *ct_model_weights(ct_model *m) {
  return m && m->handle.live ? m->live : NULL;
}

int ct_weights_info(const ct_weights *w, struct ct_weights_info *info) {
  const int err = ct_check_handle(w ? &w->handle : NULL, "version");
  if (err || !w) return err;
  CT_NEED(w->dev, info);
  *info = (struct ct_weights_info){.version = w->version,
                                   .error = w->error,
                                   .steps = w->model ? w->model->steps : w->steps,
                                   .bytes = w->bytes};
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
  if (!err && w->model) err = ct_weights_still(w->model, false, "read");
  if (!err && w->error == CT_ERR_BUSY) err = ct_poll(w->dev);
  if (!err) err = check_weights(w);
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

int ct_weights_load(ct_model *m, const void *data, size_t size, ct_weights **weights) {
  if (weights) *weights = NULL;
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, data);
  CT_NEED(m->dev, weights);
  err = ct_weights_of(m->dev, ct_image_bytes(&m->net), data, size, weights);
  if (err) return err;
  (*weights)->net = m->net;
  (*weights)->version = ++m->numbered;
  (*weights)->steps = m->steps;
  return CT_OK;
}

void ct_weights_free(ct_weights *w) {
  if (w && w->model && w->handle.live) {
    ct_fail(w->dev, CT_ERR_ARG, "the live weights go with their model and are not freed");
    ct_log(w->dev, CT_LOG_WARNING, "the live weights of a model were to be freed");
    return;
  }
  if (w && ct_handle_close(&w->handle, "version")) release(w);
}
