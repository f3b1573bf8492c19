/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with deadlines, which the device collects into batches by itself: pushed in a burst,
 * answered a few at a time, each as if it had been alone.
 *
 *   build/bin/examples/serving [DEVICE]          DEVICE: emu: (the default) or sim: */
#include <coltrain/coltrain.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS = 48, CLASSES = 4, REQUESTS = 40, ROW = 64, DEADLINE = 20000 };

/* What a request needs for as long as it is under way. */
struct request {
  float x[INPUTS];
  uint64_t row, answer; /* in device memory */
};

static int push(ct_device *dev, ct_server *server, struct request *r, int number, uint64_t at) {
  unsigned char packed[ROW] = {0};
  for (int i = 0; i < INPUTS; ++i)
    r->x[i] = (float)((i * number) % 7) * 0.25f;
  r->row = at + (uint64_t)number * 2 * ROW;
  r->answer = r->row + ROW;
  int err = ct_pack_row(r->x, INPUTS, packed);
  if (!err) err = ct_mem_write(dev, r->row, packed, ct_pack_row_size(INPUTS));
  const struct ct_request request = {
      .input = r->row, .output = r->answer, .deadline = DEADLINE, .user = r};
  return err ? err : ct_server_push(server, &request, NULL);
}

/* An answer, against the same sample asked for alone. */
static int check(ct_device *dev, ct_model *model, const struct ct_event *record, int *same) {
  const struct request *r = record->user;
  float alone[CLASSES];
  uint32_t batch_bits[CLASSES], alone_bits[CLASSES];
  if (record->error) {
    printf("a request failed: %s\n", ct_code_text(record->code));
    return record->error;
  }
  int err = ct_mem_read(dev, r->answer, batch_bits, sizeof batch_bits);
  if (!err) err = ct_model_infer(model, CT_IMAGE_SERVED, r->x, 1, alone);
  if (err) return err;
  memcpy(alone_bits, alone, sizeof alone);
  *same += memcmp(batch_bits, alone_bits, sizeof alone_bits) == 0;
  return CT_OK;
}

static int serve(ct_device *dev, ct_model *model) {
  static struct request requests[REQUESTS];
  /* As late as the deadlines allow, so that batches become large. */
  const struct ct_serving how = {.batching = CT_BATCHING_ADAPTIVE};
  struct ct_event record[REQUESTS];
  ct_server *server = NULL;
  uint64_t at = 0;
  int met[3] = {0}, same = 0;
  uint32_t largest = 0;
  int err = ct_mem_alloc(dev, (uint64_t)REQUESTS * 2 * ROW, &at);
  if (!err) err = ct_model_serve(model, NULL);
  if (!err) err = ct_server_create(model, &how, &server);
  for (int i = 0; i < REQUESTS && !err; ++i)
    err = push(dev, server, &requests[i], i, at);
  for (int i = 0; i < REQUESTS && !err; ++i)
    err = ct_reap(dev, &record[i], CT_FOREVER);
  for (int i = 0; i < REQUESTS && !err; ++i) {
    if (record[i].batch > largest) largest = record[i].batch;
    met[record[i].met]++;
    err = check(dev, model, &record[i], &same);
  }
  ct_server_free(server);
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
