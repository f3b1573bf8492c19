/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with deadlines, which the device collects into batches by itself: pushed in a burst,
 * answered a few at a time, each as if it had been alone.
 *
 *   build/bin/examples/serving [DEVICE]          DEVICE: emu: (the default) or sim: */
#include <coltrain/coltrain.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS = 48, CLASSES = 4, REQUESTS = 40, DEADLINE = 20000 };

/* Row and answer number i are request number i's. */
struct bed {
  float x[REQUESTS][INPUTS];
  ct_rows *rows;
  ct_answers *answers;
  ct_weights *weights;
  ct_server *server;
};

static int prepare(ct_model *model, struct bed *b) {
  /* As late as the deadlines allow, so that batches become large. */
  const struct ct_serving how = {.batching = CT_BATCHING_ADAPTIVE};
  for (int r = 0; r < REQUESTS; ++r)
    for (int i = 0; i < INPUTS; ++i)
      b->x[r][i] = (float)((i * r) % 7) * 0.25f;
  int err = ct_model_publish(model, &b->weights);
  if (!err) err = ct_rows_create(model, REQUESTS, &b->rows);
  if (!err) err = ct_rows_write(b->rows, 0, REQUESTS, b->x[0]);
  if (!err) err = ct_answers_create(model, REQUESTS, &b->answers);
  if (!err) err = ct_server_create(model, b->weights, &how, &b->server);
  return err;
}

static int push(const struct bed *b, size_t number) {
  const struct ct_request request = {.rows = b->rows,
                                     .answers = b->answers,
                                     .row = number,
                                     .answer = number,
                                     .deadline = DEADLINE,
                                     .user = (void *)b->x[number]};
  return ct_server_push(b->server, &request, NULL);
}

static bool same_bits(const void *a, const void *b, size_t size) {
  return memcmp(a, b, size) == 0;
}

/* An answer, against the same sample asked for alone. */
static int check(ct_model *model, const struct bed *b, const struct ct_event *event, int *same) {
  const float *x = event->user;
  const size_t number = (size_t)(x - b->x[0]) / INPUTS;
  float together[CLASSES], alone[CLASSES];
  if (event->error) {
    printf("a request failed: %s\n", ct_code_text(event->code));
    return event->error;
  }
  int err = ct_answers_read(b->answers, number, 1, together);
  if (!err) err = ct_model_infer(model, b->weights, x, 1, alone);
  *same += !err && same_bits(together, alone, sizeof alone);
  return err;
}

static int serve(ct_device *dev, ct_model *model, struct bed *b) {
  struct ct_event event[REQUESTS];
  int met[3] = {0}, same = 0;
  uint32_t largest = 0;
  int err = prepare(model, b);
  for (size_t i = 0; i < REQUESTS && !err; ++i)
    err = push(b, i);
  for (int i = 0; i < REQUESTS && !err; ++i)
    err = ct_reap(dev, &event[i], CT_FOREVER);
  for (int i = 0; i < REQUESTS && !err; ++i) {
    if (event[i].batch > largest) largest = event[i].batch;
    met[event[i].met]++;
    err = check(model, b, &event[i], &same);
  }
  if (!err)
    printf("%d requests in batches of up to %" PRIu32
           ": %d by their deadline, %d too late, %d without a clock to tell; "
           "%d with the bits of an answer alone\n",
           REQUESTS, largest, met[CT_MET_YES], met[CT_MET_NO], met[CT_MET_UNKNOWN], same);
  return err;
}

int main(int argc, char **argv) {
  const uint32_t widths[] = {INPUTS, 32, CLASSES};
  ct_device *dev;
  ct_model *model;
  static struct bed bed;
  if (ct_open(argc > 1 ? argv[1] : "emu:", &dev)) {
    fprintf(stderr, "%s\n", ct_last_error(NULL));
    return 1;
  }
  int err = ct_model_create(dev, widths, 2, 1, &model);
  if (!err) err = serve(dev, model, &bed);
  if (err) fprintf(stderr, "%s\n", ct_last_error(dev));
  ct_server_free(bed.server);
  ct_weights_free(bed.weights);
  ct_rows_free(bed.rows);
  ct_answers_free(bed.answers);
  ct_model_free(model);
  ct_close(dev);
  return err ? 1 : 0;
}
