/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest way through the library: a product, then a small model that learns to add bits.
 *
 *   build/bin/examples/first_steps [DEVICE]        DEVICE: emu: (the default) or sim: */
#include <coltrain/coltrain.h>
#include <stdio.h>

enum { BITS = 6, CLASSES = BITS + 1, BATCH = 32 };

/* Rows of bits; the class is how many are set. */
static void make_batch(unsigned *seed, float *x, uint32_t *labels) {
  for (int i = 0; i < BATCH; ++i) {
    labels[i] = 0;
    for (int b = 0; b < BITS; ++b) {
      *seed = *seed * 1664525u + 1013904223u;
      const unsigned bit = *seed >> 31;
      x[i * BITS + b] = (float)bit;
      labels[i] += bit;
    }
  }
}

static int multiply(ct_device *dev) {
  const float a[2 * 3] = {1, 2, 3, 4, 5, 6}, b[3 * 2] = {1, 0, 0, 1, 1, 1};
  float c[2 * 2];
  const int err = ct_matmul(dev, CT_INFERENCE, 2, 2, 3, a, b, c, NULL);
  if (!err) printf("product: %g %g / %g %g\n", c[0], c[1], c[2], c[3]);
  return err;
}

static int learn(ct_device *dev) {
  const uint32_t widths[] = {BITS, 32, CLASSES};
  const struct ct_training training = {.batch = BATCH, .lr = 0.05f, .momentum = 0.9f};
  float x[BATCH * BITS], loss = 0;
  uint32_t labels[BATCH];
  size_t right = 0;
  unsigned seed = 1;
  ct_model *model = NULL;
  int err = ct_model_create(dev, widths, 2, 1, &model);
  if (!err) err = ct_model_training(model, &training);
  for (int step = 0; step < 200 && !err; ++step) {
    make_batch(&seed, x, labels);
    err = ct_model_step(model, x, labels, &loss);
    if (step % 50 == 0 && !err) printf("step %3d: loss %.3f\n", step, (double)loss);
  }
  make_batch(&seed, x, labels);
  if (!err) err = ct_model_evaluate(model, 0, x, labels, BATCH, &right);
  if (!err) printf("counts right: %zu of %d\n", right, BATCH);
  ct_model_free(model);
  return err;
}

int main(int argc, char **argv) {
  char why[256] = "";
  const struct ct_options options = {.why = why, .why_size = sizeof why};
  ct_device *dev;
  int err = ct_open_with(argc > 1 ? argv[1] : "emu:", &options, &dev);
  if (err) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  err = multiply(dev);
  if (!err) err = learn(dev);
  if (err) fprintf(stderr, "%s\n", ct_last_error(dev));
  ct_close(dev);
  return err ? 1 : 0;
}
