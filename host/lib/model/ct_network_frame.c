/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: inputs, labels and outputs of a run in device memory. */
#include <stdlib.h>

#include "ct_graph_impl.h"
#include "ct_network.h"

void ct_frame_release(ct_frame *f) {
  if (--f->refs) return;
  for (unsigned i = 0; i < CT_EXTERNALS; ++i)
    if (f->at.external[i] && !f->ranked && !(f->borrowed >> i & 1))
      ct_heap_free(&f->dev->data, f->at.external[i]);
  ct_network_release(f->network);
  f->network = NULL;
  ct_handle_bury(&f->handle);
}

bool ct_network_makes(const ct_network *n, const struct ct_external *x) {
  return n->graph->tensor[x->tensor]->node >= 0;
}

static int make_room(ct_network *n, ct_frame *f, bool whole) {
  int err = CT_OK;
  for (size_t i = 0; i < n->compiled.externals && !err; ++i) {
    const struct ct_external *x = &n->compiled.external[i];
    const unsigned at = x->reg - CT_ARG_FIRST;
    if (whole || ct_network_makes(n, x))
      err = ct_network_alloc(n, x->units, &f->at.external[at]);
    else
      f->borrowed |= 1u << at;
  }
  return err;
}

/* The first place is that of the piece, the others are within it. */
static int make_piece(ct_network *n, ct_frame *f) {
  const struct ct_compiled *c = &n->compiled;
  uint64_t units = 0, at = 0;
  for (size_t i = 0; i < c->externals; ++i)
    units += c->external[i].units;
  const int err = ct_network_alloc(n, units, &at);
  for (size_t i = 0; i < c->externals && !err; ++i) {
    const unsigned place = c->external[i].reg - CT_ARG_FIRST;
    f->at.external[place] = at;
    f->borrowed |= i ? 1u << place : 0;
    at += c->external[i].units * CT_UNIT;
  }
  return err;
}

static void begin(ct_network *n, ct_frame *f) {
  ct_handle_open(&f->handle, n->dev);
  f->dev = n->dev;
  f->network = n;
  f->refs = 1;
  ++n->refs;
}

int ct_frame_open(ct_network *n, ct_frame *f) {
  const int err = make_piece(n, f);
  if (!err) begin(n, f);
  return err;
}

int ct_frame_make(ct_network *n, bool whole, ct_frame **frame) {
  int err = ct_network_parts(n, "frames");
  if (err) return err;
  ct_frame *f = calloc(1, sizeof *f);
  if (!f) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a frame");
  begin(n, f);
  err = make_room(n, f, whole);
  if (err)
    ct_frame_free(f);
  else
    *frame = f;
  return err;
}

int ct_frame_create(ct_network *network, ct_frame **frame) {
  if (frame) *frame = NULL;
  const int err = ct_check_network(network);
  if (err) return err;
  CT_NEED(network->dev, frame);
  const int bare = ct_network_has_frame(network);
  return bare ? bare : ct_frame_make(network, true, frame);
}

int ct_inputs_make(ct_network *n, struct ct_regions *at) {
  int err = CT_OK;
  *at = (struct ct_regions){0};
  for (size_t i = 0; i < n->compiled.externals && !err; ++i) {
    const struct ct_external *x = &n->compiled.external[i];
    if (!ct_network_makes(n, x))
      err = ct_network_alloc(n, x->units, &at->external[x->reg - CT_ARG_FIRST]);
  }
  if (err) ct_inputs_free(n->dev, at);
  return err;
}

void ct_inputs_free(ct_device *dev, struct ct_regions *at) {
  for (unsigned i = 0; i < CT_EXTERNALS; ++i)
    if (at->external[i]) ct_heap_free(&dev->data, at->external[i]);
  *at = (struct ct_regions){0};
}

void ct_frame_lend(ct_frame *f, const struct ct_regions *at) {
  for (unsigned i = 0; i < CT_EXTERNALS; ++i)
    if (f->borrowed >> i & 1) f->at.external[i] = at->external[i];
}

void ct_frame_free(ct_frame *f) {
  if (f && ct_handle_close(&f->handle, "frame")) ct_frame_release(f);
}

ct_network *ct_frame_network(const ct_frame *f) {
  return f && f->handle.live && f->network->handle.live ? f->network : NULL;
}

/* ---- What may be done with it -------------------------------------------------------------- */

static int check(const ct_frame *f) {
  const int err = ct_check_handle(f ? &f->handle : NULL, "frame");
  return err || !f ? err : ct_check_network(f->network);
}

/* An input or label that nothing reads has no place anywhere. */
static bool is_unread(const struct ct_gtensor *t, const struct ct_lay *lay) {
  return lay->kind == CT_LAY_NONE && (t->role == CT_ROLE_INPUT || t->role == CT_ROLE_LABEL);
}

/* The layout of a tensor that lies in frames, or would. */
static int find(ct_frame *f, int tensor, size_t count, const struct ct_lay **lay) {
  ct_network *n = f->network;
  const int err = ct_network_find(n, tensor, count, lay);
  if (!err && is_unread(n->graph->tensor[tensor], *lay)) return CT_OK;
  for (unsigned k = 0; k < CT_KEEPS && !err; ++k)
    if ((*lay)->mat.keep[k].reg >= CT_ARG_FIRST) return CT_OK;
  return err ? err
             : ct_fail(n->dev, CT_ERR_ARG, "tensor %.80s is no input, label or output of a frame",
                       n->graph->tensor[tensor]->name);
}

/* What the device has completed meanwhile counts. */
int ct_frame_idle(const ct_frame *f, const char *what, const char *how) {
  const int err = f->busy ? ct_poll(f->dev) : CT_OK;
  if (err || !f->busy) return err;
  return ct_fail(f->dev, CT_ERR_BUSY, "a run with the %s is under way: it can be %s afterwards",
                 what, how);
}

int ct_frame_check(ct_network *n, ct_frame *f) {
  if (f->handle.dev != n->dev)
    return ct_fail(n->dev, CT_ERR_ARG, "the frame belongs to another device");
  const int err = check(f);
  if (err) return err;
  if (f->network != n) return ct_fail(n->dev, CT_ERR_ARG, "the frame belongs to another network");
  return ct_frame_idle(f, "frame", "run again");
}

void ct_frame_take(ct_frame *f) {
  ++f->refs;
  ++f->busy;
  f->ran = true;
}

void ct_frame_ended(ct_frame *f, int error) {
  --f->busy;
  f->outcome = error;
}

void ct_frame_drop(ct_frame *f, int error) {
  ct_frame_ended(f, error);
  ct_frame_release(f);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

int ct_frame_write(ct_frame *f, int tensor, const float *data, size_t count) {
  const struct ct_lay *lay;
  int err = check(f);
  if (err) return err;
  CT_NEED(f->dev, data);
  err = find(f, tensor, count, &lay);
  if (err) return err;
  const struct ct_gtensor *t = f->network->graph->tensor[tensor];
  if (t->node >= 0)
    return ct_fail(f->dev, CT_ERR_ARG, "tensor %.80s is made by the network: it cannot be written",
                   t->name);
  if (lay->kind == CT_LAY_NONE) return CT_OK;
  err = ct_frame_idle(f, "frame", "written");
  return err ? err : ct_network_put_tensor(f->network, &f->at, lay, data);
}

int ct_frame_read(ct_frame *f, int tensor, float *data, size_t count) {
  const struct ct_lay *lay;
  int err = check(f);
  if (err) return err;
  CT_NEED(f->dev, data);
  err = find(f, tensor, count, &lay);
  if (!err) err = ct_frame_idle(f, "frame", "read");
  if (err) return err;
  const struct ct_gtensor *t = f->network->graph->tensor[tensor];
  if (t->node < 0)
    return ct_fail(f->dev, CT_ERR_ARG, "tensor %.80s is an input: it cannot be read", t->name);
  if (!f->ran)
    return ct_fail(f->dev, CT_ERR_ARG, "tensor %.80s: no run with the frame has been submitted",
                   t->name);
  if (f->outcome)
    return ct_fail(f->dev, f->outcome, "tensor %.80s: the last run with the frame failed: %s",
                   t->name, ct_strerror(f->outcome));
  return ct_network_get_tensor(f->network, &f->at, lay, data);
}
