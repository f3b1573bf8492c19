/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous inference: requests arrive by themselves, at cycles decided beforehand, and a loop
 * around poll() takes the answers as they come. A program with sockets would poll them in the same
 * call.
 *
 *   build/bin/examples/inference [DEVICE]        DEVICE: emu: (the default) or sim: */
#include <coltrain/coltrain.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum { INPUTS = 16, CLASSES = 4, REQUESTS = 8, GAP = 3000 };

/* Row and answer number i are request number i's. */
struct bed {
  ct_rows *rows;
  ct_answers *answers;
  ct_weights *weights;
};

static int prepare(ct_model *model, struct bed *b) {
  float x[REQUESTS][INPUTS];
  for (int r = 0; r < REQUESTS; ++r)
    for (int i = 0; i < INPUTS; ++i)
      x[r][i] = (float)((i + r) % 5) * 0.5f;
  int err = ct_model_publish(model, &b->weights);
  if (!err) err = ct_rows_create(model, REQUESTS, &b->rows);
  if (!err) err = ct_rows_write(b->rows, 0, REQUESTS, x[0]);
  if (!err) err = ct_answers_create(model, REQUESTS, &b->answers);
  return err;
}

/* All requests are submitted at once; the device hears of each when its time has come. */
static int submit_all(ct_device *dev, ct_model *model, const struct bed *b, size_t *numbers) {
  uint64_t now = 0;
  int err = ct_now(dev, &now);
  for (size_t i = 0; i < REQUESTS && !err; ++i) {
    numbers[i] = i;
    const struct ct_request request = {.weights = b->weights,
                                       .rows = b->rows,
                                       .answers = b->answers,
                                       .row = i,
                                       .answer = i,
                                       .cycle = now == CT_NO_CYCLE ? 0 : now + GAP * (i + 1),
                                       .user = &numbers[i]};
    err = ct_model_infer_submit(model, &request, NULL);
  }
  return err;
}

static int show(const struct bed *b, const struct ct_event *event) {
  const size_t number = *(const size_t *)event->user;
  float logits[CLASSES];
  int best = 0;
  if (event->error) {
    printf("request %zu failed: %s\n", number, ct_code_text(event->code));
    return event->error;
  }
  const int err = ct_answers_read(b->answers, number, 1, logits);
  for (int i = 1; i < CLASSES; ++i)
    if (logits[i] > logits[best]) best = i;
  printf("request %zu: class %d, version %" PRIu32, number, best, event->version);
  if (event->end != CT_NO_CYCLE)
    printf(", %" PRIu64 " cycles after it arrived", event->end - event->arrive);
  printf("\n");
  return err;
}

static int serve(ct_device *dev, ct_model *model, struct bed *b) {
  size_t numbers[REQUESTS];
  struct ct_event event;
  int err = prepare(model, b);
  if (!err) err = submit_all(dev, model, b, numbers);
  struct pollfd fds[] = {{.fd = ct_poll_fd(dev), .events = POLLIN}};
  for (int open = REQUESTS; open > 0 && !err;) {
    if (poll(fds, 1, -1) < 0) return CT_ERR_IO;
    err = ct_reap(dev, &event, CT_NO_WAIT);
    if (err == CT_ERR_TIMEOUT) { /* nothing yet */
      err = CT_OK;
      continue;
    }
    if (!err) err = show(b, &event);
    --open;
  }
  return err;
}

int main(int argc, char **argv) {
  const uint32_t widths[] = {INPUTS, 32, CLASSES};
  ct_device *dev;
  ct_model *model;
  struct bed bed = {.rows = NULL};
  if (ct_open(argc > 1 ? argv[1] : "emu:", &dev)) {
    fprintf(stderr, "%s\n", ct_last_error(NULL));
    return 1;
  }
  int err = ct_model_create(dev, widths, 2, 1, &model);
  if (!err) err = serve(dev, model, &bed);
  if (err) fprintf(stderr, "%s\n", ct_last_error(dev));
  ct_weights_free(bed.weights);
  ct_rows_free(bed.rows);
  ct_answers_free(bed.answers);
  ct_model_free(model);
  ct_close(dev);
  return err ? 1 : 0;
}
