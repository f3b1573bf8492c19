/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of models: which may be used by one, and its versions. */
#include <string.h>

#include "ct_network.h"

int ct_weights_make_for(ct_device *dev, const struct ct_mlp *net, ct_weights **weights) {
  const int err = ct_weights_make(dev, ct_image_bytes(net), weights);
  if (!err) (*weights)->net = *net;
  return err;
}

ct_weights *ct_model_weights(ct_model *m) {
  return m && m->handle.live ? m->live : NULL;
}

static bool same_widths(const struct ct_mlp *a, const struct ct_mlp *b) {
  return a->layers == b->layers && !memcmp(a->width, b->width, (a->layers + 1) * sizeof *a->width);
}

int ct_weights_find(ct_model *m, struct ct_use use, ct_weights **weights) {
  if (!*weights) *weights = m->live;
  ct_weights *w = *weights;
  if (w->handle.dev != m->dev)
    return ct_fail(m->dev, CT_ERR_ARG, "the weights belong to another device");
  const int err = ct_weights_ready(w);
  if (err) return err;
  if (w->network)
    return ct_fail(m->dev, CT_ERR_ARG, "the weights are of a network, not of a model");
  if (!same_widths(&w->net, &m->net))
    return ct_fail(m->dev, CT_ERR_ARG, "the weights are of a model of other widths");
  return ct_weights_may(w, use);
}

/* ---- Publishing ---------------------------------------------------------------------------- */

static int make_copies(ct_model *m) {
  const struct ct_stretch image = {.units = ct_mlp_image_units(&m->net)};
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  struct ct_codes codes;
  if (m->copies.count) return CT_OK;
  const int err = ct_prog_copies(&image, 1, ct_window_words(m->dev), &codes, &why);
  return err ? ct_fail(m->dev, err, "%s", text) : ct_programs_load(m->dev, &codes, &m->copies);
}

static int publish(ct_model *m, void *user, ct_weights **weights, uint64_t *tag, const char *call) {
  if (weights) *weights = NULL;
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED_OF(m->dev, call, weights);
  struct ct_publishing p = {.of = m->live,
                            .from = m->live->image,
                            .copies = &m->copies,
                            .numbered = &m->numbered,
                            .user = user};
  err = ct_publish_may(m->live);
  if (!err) err = make_copies(m);
  if (!err) err = ct_weights_make_for(m->dev, &m->net, &p.weights);
  if (!err) err = ct_publish(&p, tag);
  if (err)
    ct_weights_free(p.weights);
  else
    *weights = p.weights;
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
  (*weights)->steps = m->live->steps;
  return CT_OK;
}
