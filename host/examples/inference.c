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

/* What a request needs for as long as it is under way. */
struct request {
  int number;
  uint64_t row, answer; /* in device memory */
};

static int prepare(ct_device *dev, const ct_model *model, struct request *r) {
  float x[INPUTS];
  unsigned char packed[256]; /* ct_pack_row_size(INPUTS) is 32 */
  for (int i = 0; i < INPUTS; ++i)
    x[i] = (float)((i + r->number) % 5) * 0.5f;
  int err = ct_mem_alloc(dev, ct_pack_row_size(INPUTS), &r->row);
  if (!err) err = ct_mem_alloc(dev, ct_model_answer_size(model), &r->answer);
  if (!err) err = ct_pack_row(x, INPUTS, packed);
  if (!err) err = ct_mem_write(dev, r->row, packed, ct_pack_row_size(INPUTS));
  return err;
}

/* All requests are submitted at once; the device hears of each when its time has come. */
static int submit_all(ct_device *dev, ct_model *model, struct request *requests) {
  uint64_t now = 0;
  int err = ct_now(dev, &now);
  for (int i = 0; i < REQUESTS && !err; ++i) {
    struct request *r = &requests[i];
    const uint64_t at = now == CT_NO_CYCLE ? CT_NO_CYCLE : now + (uint64_t)GAP * (unsigned)(i + 1);
    r->number = i;
    err = prepare(dev, model, r);
    if (!err)
      err = ct_model_infer_submit(model, CT_INFERENCE, CT_IMAGE_SERVED, 0, 1, &r->row, r->answer,
                                  at, r, NULL);
  }
  return err;
}

static int show(ct_device *dev, const struct ct_event *result) {
  const struct request *r = result->user;
  float logits[CLASSES];
  int best = 0;
  if (result->error) {
    printf("request %d failed: %s\n", r->number, ct_code_text(result->code));
    return result->error;
  }
  const int err = ct_mem_read(dev, r->answer, logits, sizeof logits);
  for (int i = 1; i < CLASSES; ++i)
    if (logits[i] > logits[best]) best = i;
  printf("request %d: class %d, version %" PRIu32, r->number, best, result->version);
  if (result->end != CT_NO_CYCLE)
    printf(", %" PRIu64 " cycles after it arrived", result->end - result->arrive);
  printf("\n");
  return err;
}

static int serve(ct_device *dev, ct_model *model) {
  static struct request requests[REQUESTS];
  struct ct_event result;
  int err = ct_model_serve(model, NULL);
  if (!err) err = submit_all(dev, model, requests);
  struct pollfd fds[] = {{.fd = ct_poll_fd(dev), .events = POLLIN}};
  for (int open = REQUESTS; open > 0 && !err;) {
    if (poll(fds, 1, -1) < 0) return CT_ERR_IO;
    err = ct_reap(dev, &result, CT_NO_WAIT);
    if (err == CT_ERR_TIMEOUT) { /* nothing yet */
      err = CT_OK;
      continue;
    }
    if (!err) err = show(dev, &result);
    --open;
  }
  return err;
}

int main(int argc, char **argv) {
  const uint32_t widths[] = {INPUTS, 32, CLASSES};
  ct_device *dev;
  ct_model *model;
  if (ct_open(argc > 1 ? argv[1] : "emu:", &dev)) {
    fprintf(stderr, "%s\n", ct_last_error(NULL));
    return 1;
  }
  int err = ct_model_create(dev, widths, 2, 1, &model);
  if (!err) err = serve(dev, model);
  if (err) fprintf(stderr, "%s\n", ct_last_error(dev));
  ct_model_free(model);
  ct_close(dev);
  return err ? 1 : 0;
}
