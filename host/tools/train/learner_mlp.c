/* SPDX-License-Identifier: Apache-2.0 */
/* Perceptrons that are trained and served. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "learner.h"

int learner_mlp_open(struct learner *l, bool trains) {
  if (trains) return learn_create(l->learn, l->dev, &l->model);
  const struct learn *how = l->learn;
  const int rc = ct_model_create(l->dev, how->widths, how->layers, how->seed, &l->model);
  return rc < 0 ? cli_fail_device(l->dev, rc, "making the model") : 0;
}

/* ---- Files ---- */

/* What was not given is as it was when the model was saved. */
static void keep_training(struct learn *l, const struct ct_training *was) {
  if (was->batch == 0) return; /* never trained */
  if (l->batch == 0) l->batch = was->batch;
  if (l->lr < 0) l->lr = was->rates.lr;
  if (l->momentum < 0) l->momentum = was->rates.momentum;
  if (l->weight_decay < 0) l->weight_decay = was->rates.weight_decay;
}

/* A saved model decides layers and seed; whoever names others asks for something else. */
static int take_over(struct learn *l, const char *path, const struct ct_model_info *info) {
  char have[256], want[256];
  learn_layers_text(info->widths, info->layers, have, sizeof have);
  learn_layers_text(l->widths, l->layers, want, sizeof want);
  if (l->model)
    return cli_fail("%s holds a perceptron of the layers %s, not %s; leave --model out", path, have,
                    l->model);
  if (l->layers && strcmp(have, want) != 0)
    return cli_fail("%s holds a model of the layers %s, not %s; leave --layers out", path, have,
                    want);
  if (l->seed_given && l->seed != info->seed)
    return cli_fail("%s was begun with seed %" PRIu64 ", not %" PRIu64 "; leave --seed out", path,
                    info->seed, l->seed);
  memcpy(l->widths, info->widths, (info->layers + 1) * sizeof *info->widths);
  l->layers = info->layers;
  l->seed = info->seed;
  keep_training(l, &info->training);
  return 0;
}

int learner_mlp_load(struct learner *l, struct learn *learn, const char *path,
                     struct learner_past *past) {
  struct ct_model_info info;
  int rc = ct_model_load(l->dev, path, &l->model);
  if (rc < 0) {
    l->model = NULL;
    return cli_fail_device(l->dev, rc, "the model cannot be loaded");
  }
  rc = ct_model_info(l->model, &info);
  if (rc < 0) return cli_fail_device(l->dev, rc, path);
  *past = (struct learner_past){.steps = info.steps, .epochs = info.epochs};
  return take_over(learn, path, &info);
}

static int resume(struct learner *l) {
  return learn_prepare(l->learn, l->dev, l->model);
}

static int save(struct learner *l, const char *path, uint64_t epochs) {
  ct_model_set_epochs(l->model, epochs);
  return ct_model_save(l->model, path);
}

static void close_it(struct learner *l) {
  ct_rows_free(l->images);
  ct_model_free(l->model);
}

/* ---- Training ---- */

static int batch_open(struct learner *l, struct learner_batch *b) {
  return ct_batch_create(l->model, &b->batch);
}

static int batch_write(struct learner_batch *b, const float *x, const uint32_t *labels) {
  return ct_batch_write(b->batch, x, labels);
}

static int batch_loss(struct learner_batch *b, float *loss) {
  return ct_batch_loss(b->batch, loss);
}

static int step(struct learner *l, struct learner_batch *b, uint64_t number, void *user) {
  (void)number;
  const struct ct_step next = {.batch = b->batch, .user = user};
  return ct_model_step_submit(l->model, &next, NULL);
}

/* ---- Serving ---- */

static int publish(struct learner *l, void *user, ct_weights **weights) {
  return ct_model_publish_submit(l->model, user, weights, NULL);
}

static int load_weights(struct learner *l, const void *data, size_t size, ct_weights **weights) {
  return ct_weights_load(l->model, data, size, weights);
}

/* The test images, packed, in device memory. */
static int open_images(struct learner *l) {
  const struct ct_dataset *ds = l->ds;
  if (l->images) return 0;
  float *x = malloc(ds->features * sizeof *x);
  int rc = x ? ct_rows_create(l->model, ds->test.count, &l->images) : CT_ERR_MEMORY;
  for (size_t i = 0; rc >= 0 && i < ds->test.count; ++i) {
    const uint32_t sample = (uint32_t)i;
    ct_dataset_values(ds, &ds->test, &sample, 1, x);
    rc = ct_rows_write(l->images, i, 1, x);
  }
  free(x);
  return rc;
}

static int places_open(struct learner *l, struct learner_places *p) {
  const int rc = open_images(l);
  return rc < 0 ? rc : ct_answers_create(l->model, p->count, &p->answers);
}

static int ask(struct learner_places *p, const struct learner_request *r) {
  const struct ct_request request = {.rows = p->of->images,
                                     .row = r->sample,
                                     .answers = p->answers,
                                     .answer = r->place,
                                     .weights = r->weights,
                                     .cycle = r->cycle == CT_NO_CYCLE ? 0 : r->cycle,
                                     .user = r->user};
  return ct_model_infer_submit(p->of->model, &request, NULL);
}

static int answer(struct learner_places *p, size_t place, float *logits) {
  return ct_answers_read(p->answers, place, 1, logits);
}

/* ---- Calls that wait ---- */

static int infer(struct learner *l, ct_weights *weights, const float *x, size_t n, float *logits) {
  return ct_model_infer(l->model, weights, x, n, logits);
}

static int evaluate(struct learner *l, ct_weights *weights, const struct ct_dataset_part *part,
                    size_t *right) {
  return learn_evaluate(l->model, weights, l->ds, part, right);
}

static int crc(struct learner *l, uint32_t *crc32) {
  return cli_weights_crc32(l->model, crc32);
}

const struct learner_ops learner_mlp = {batch_open,   batch_write, batch_loss, step,   publish,
                                        load_weights, places_open, ask,        answer, infer,
                                        evaluate,     crc,         save,       resume, close_it};
