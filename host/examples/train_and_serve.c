/* SPDX-License-Identifier: Apache-2.0 */
/* What Coltrain is for: a model answers requests while it learns. Training steps fill the training
 * queue, requests go to the inference queue, and every now and then the trained weights become the
 * version that is served. The task: count how many of six bits are set.
 *
 *   build/bin/examples/train_and_serve [DEVICE]        DEVICE: emu: (the default) or sim: */
#include <coltrain/coltrain.h>
#include <inttypes.h>
#include <stdio.h>

enum { BITS = 6, CLASSES = BITS + 1, BATCH = 32, STEPS = 240, SWAP = 60, ROWS = 16 };

/* One step under way while requests are answered. */
struct trainer {
  ct_model *model;
  ct_batch *batch;
  uint64_t tag;
};

struct server {
  ct_model *model;
  ct_weights *weights; /* the version that answers */
  ct_rows *rows;
  ct_answers *answers;
  uint32_t labels[ROWS];
};

/* n rows of bits and their classes. */
static void make_rows(unsigned *seed, int n, float *x, uint32_t *labels) {
  for (int i = 0; i < n; ++i) {
    labels[i] = 0;
    for (int b = 0; b < BITS; ++b) {
      *seed = *seed * 1664525u + 1013904223u;
      x[i * BITS + b] = (float)(*seed >> 31);
      labels[i] += *seed >> 31;
    }
  }
}

static int start_step(struct trainer *t, unsigned *seed) {
  float x[BATCH * BITS];
  uint32_t labels[BATCH];
  make_rows(seed, BATCH, x, labels);
  const struct ct_step step = {.batch = t->batch};
  const int err = ct_batch_write(t->batch, x, labels);
  return err ? err : ct_model_step_submit(t->model, &step, &t->tag);
}

/* Sixteen requests in one job, answered by the version that is served; how many are right. */
static int serve(ct_device *dev, struct server *s, unsigned *seed, int *right, uint32_t *version) {
  float x[ROWS * BITS], logits[ROWS][CLASSES];
  const struct ct_request request = {
      .weights = s->weights, .rows = s->rows, .answers = s->answers, .count = ROWS};
  struct ct_event event;
  uint64_t tag = 0;
  make_rows(seed, ROWS, x, s->labels);
  int err = ct_rows_write(s->rows, 0, ROWS, x);
  if (!err) err = ct_model_infer_submit(s->model, &request, &tag);
  if (!err) err = ct_wait(dev, tag, &event, CT_FOREVER);
  if (!err) err = event.error;
  if (!err) err = ct_answers_read(s->answers, 0, ROWS, logits[0]);
  *right = 0;
  for (int i = 0; i < ROWS && !err; ++i) {
    uint32_t best = 0;
    for (uint32_t c = 1; c < CLASSES; ++c)
      if (logits[i][c] > logits[i][best]) best = c;
    *right += best == s->labels[i];
  }
  *version = err ? 0 : event.version;
  return err;
}

/* A new version takes over; the one before goes when its last request has. */
static int swap(struct server *s) {
  ct_weights *next;
  const int err = ct_model_publish(s->model, &next);
  if (err) return err;
  ct_weights_free(s->weights);
  s->weights = next;
  return CT_OK;
}

static int allocate(struct trainer *t, struct server *s) {
  int err = ct_batch_create(t->model, &t->batch);
  if (!err) err = ct_rows_create(s->model, ROWS, &s->rows);
  if (!err) err = ct_answers_create(s->model, ROWS, &s->answers);
  return err;
}

static int run(ct_device *dev, struct trainer *t, struct server *s) {
  unsigned seed = 1, requests = 99;
  int right = 0;
  uint32_t version = 0;
  struct ct_event step;
  int err = allocate(t, s);
  if (!err) err = swap(s);
  for (int i = 1; i <= STEPS && !err; ++i) {
    err = start_step(t, &seed); /* runs while the next line serves */
    if (!err) err = serve(dev, s, &requests, &right, &version);
    if (!err) err = ct_wait(dev, t->tag, &step, CT_FOREVER);
    if (!err) err = step.error;
    if (i % SWAP) continue;
    float loss = 0;
    if (!err) err = ct_batch_loss(t->batch, &loss);
    if (!err) err = swap(s);
    if (!err)
      printf("step %3d: loss %.3f, version %" PRIu32 " had %d of %d right\n", i, (double)loss,
             version, right, ROWS);
  }
  if (!err) err = serve(dev, s, &requests, &right, &version);
  if (!err) printf("version %" PRIu32 " has %d of %d right\n", version, right, ROWS);
  return err;
}

int main(int argc, char **argv) {
  const uint32_t widths[] = {BITS, 32, CLASSES};
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.05f, .momentum = 0.9f}};
  ct_device *dev;
  ct_model *model;
  if (ct_open(argc > 1 ? argv[1] : "emu:", &dev)) {
    fprintf(stderr, "%s\n", ct_last_error(NULL));
    return 1;
  }
  int err = ct_model_create(dev, widths, 2, 1, &model);
  if (!err) err = ct_model_training(model, &training);
  struct trainer trainer = {.model = model};
  struct server server = {.model = model};
  if (!err) err = run(dev, &trainer, &server);
  if (err) fprintf(stderr, "%s\n", ct_last_error(dev));
  ct_batch_free(trainer.batch);
  ct_weights_free(server.weights);
  ct_rows_free(server.rows);
  ct_answers_free(server.answers);
  ct_model_free(model);
  ct_close(dev);
  return err ? 1 : 0;
}
