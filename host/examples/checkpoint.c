/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint and resume: training that is saved half way and goes on from the file ends with the
 * same bits as training that was never interrupted.
 *
 *   build/bin/examples/checkpoint [DEVICE [FILE]]        DEVICE: emu: (the default) or sim: */
#include <coltrain/coltrain.h>
#include <inttypes.h>
#include <stdio.h>

enum { INPUTS = 12, HIDDEN = 20, CLASSES = 3, BATCH = 8, STEPS = 10 };
enum { WEIGHTS = INPUTS * HIDDEN };

/* Step number `step` always gets the same batch: what comes next depends on how many steps the
 * model has taken, which its file knows. */
static int train(ct_model *model, uint64_t until) {
  struct ct_model_info info;
  float x[BATCH * INPUTS];
  uint32_t labels[BATCH];
  int err = ct_model_info(model, &info);
  for (uint64_t step = info.steps; step < until && !err; ++step) {
    for (uint64_t i = 0; i < sizeof x / sizeof *x; ++i)
      x[i] = (float)((i * 7 + step * 5) % 11) * 0.1f;
    for (unsigned i = 0; i < BATCH; ++i)
      labels[i] = (uint32_t)((i + step) % CLASSES);
    err = ct_model_step(model, x, labels, NULL);
  }
  return err;
}

static int create(ct_device *dev, ct_model **model) {
  const uint32_t widths[] = {INPUTS, HIDDEN, CLASSES};
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f, .momentum = 0.9f}};
  const int err = ct_model_create(dev, widths, 2, 7, model);
  return err ? err : ct_model_training(*model, &training);
}

/* Saves half way, forgets the model, and goes on from the file. */
static int in_two_parts(ct_device *dev, const char *path, float *weights) {
  ct_model *model = NULL;
  struct ct_model_info info;
  int err = create(dev, &model);
  if (!err) err = train(model, STEPS / 2);
  if (!err) err = ct_model_save(model, path);
  ct_model_free(model);
  model = NULL;
  if (!err) err = ct_model_load(dev, path, &model);
  if (!err) err = ct_model_info(model, &info);
  if (!err)
    printf("%s: %" PRIu64 " steps, batch %" PRIu32 "\n", path, info.steps, info.training.batch);
  if (!err) err = ct_model_training(model, &info.training);
  if (!err) err = train(model, STEPS);
  if (!err) err = ct_model_get(model, 0, weights, NULL, NULL, NULL);
  ct_model_free(model);
  return err;
}

static int in_one(ct_device *dev, float *weights) {
  ct_model *model = NULL;
  int err = create(dev, &model);
  if (!err) err = train(model, STEPS);
  if (!err) err = ct_model_get(model, 0, weights, NULL, NULL, NULL);
  ct_model_free(model);
  return err;
}

int main(int argc, char **argv) {
  const char *path = argc > 2 ? argv[2] : "checkpoint.ctm";
  float first[WEIGHTS], second[WEIGHTS];
  ct_device *dev;
  if (ct_open(argc > 1 ? argv[1] : "emu:", &dev)) {
    fprintf(stderr, "%s\n", ct_last_error(NULL));
    return 1;
  }
  int err = in_one(dev, first);
  if (!err) err = in_two_parts(dev, path, second);
  if (err) fprintf(stderr, "%s\n", ct_last_error(dev));
  ct_close(dev);
  if (err) return 1;
  bool same = true;
  for (int i = 0; i < WEIGHTS; ++i)
    same = same && first[i] == second[i];
  printf("resumed training %s\n", same ? "gave the same bits" : "went another way");
  return same ? 0 : 1;
}
