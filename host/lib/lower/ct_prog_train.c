/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a training step. See ct_train.h. */
#include "coltrain/coltrain.h"
#include "ct_train.h"

enum { LARGEST_BATCH = 4095 * CT_TILE };

static void record(struct train *t) {
  const uint32_t layers = t->net->layers;
  for (uint32_t l = 0; l < layers; ++l)
    ct_train_forward(t, l);
  ct_train_softmax(t);
  for (uint32_t l = layers - 1; l > 0; --l)
    ct_train_backward(t, l);
  ct_lower_cut(t->l); /* here little is under way */
  ct_train_biases(t);
  for (uint32_t l = 0; l < layers; ++l)
    ct_train_update(t, l);
}

int ct_prog_train(const struct ct_train *shape, struct ct_codes *codes, const struct ct_why *why) {
  struct train t = {.net = shape->net,
                    .batch = shape->batch,
                    .end = (enum ct_train_end)shape->gradients,
                    .logits = shape->logits};
  *codes = (struct ct_codes){NULL, 0};
  int err = ct_mlp_check(shape->net, why);
  if (!err && shape->batch < 1) err = ct_why(why, CT_ERR_ARG, "a batch has at least one row");
  if (!err && shape->batch > LARGEST_BATCH)
    err = ct_why(why, CT_ERR_NO_SPACE, "a batch of %u rows is too large", shape->batch);
  if (!err) err = ct_train_start(&t, shape->spm_words, why);
  if (err) return err;
  record(&t);
  ct_lower_count(t.l, shape->work);
  return ct_lower_finish(t.l, "a training step", codes, why);
}
