/* SPDX-License-Identifier: Apache-2.0 */
#include "train_beside.h"

#include "coltrain_spec.h"

static int top_up(void *arg) {
  struct trainer *t = arg;
  int rc = 0;
  while (rc >= 0)
    rc = feeder_submit(&t->feed);
  return rc;
}

int trainer_open(struct trainer *t, struct load *load, struct learn *learn) {
  *t = (struct trainer){.load = load};
  if (learn_open(learn, &t->data) || learn_create(learn, load->dev, &t->model)) return 1;
  load->part[1] = (struct load_part){"submitting a training step", top_up, t};
  return load_check(load, feeder_open(&t->feed, load->dev, t->model, learn, &t->data, 0),
                    "no room for batches");
}

void trainer_close(struct trainer *t) {
  feeder_close(&t->feed);
  ct_model_free(t->model);
  ct_dataset_free(&t->data);
}

int trainer_take(void *trainer, const struct ct_event *event) {
  struct trainer *t = trainer;
  float loss;
  if (event->error) return load_job_failed(event, "a training step");
  if (!event->user) return 0; /* a part of a step */
  return load_check(t->load, feeder_finish(&t->feed, event->user, &loss), "reading a loss");
}

int trainer_read(const struct trainer *t, uint64_t *rows, uint64_t *cycle) {
  uint64_t counter[CT_MAX_COUNTERS] = {0};
  const int rc = ct_counters(t->load->dev, CT_TRAINING, counter, CT_MAX_COUNTERS);
  *rows = counter[CT_CNT_MXU_ROWS];
  return load_check(t->load, rc, "reading the counters") || load_now(t->load, cycle);
}

int trainer_begin(struct trainer *t) {
  t->steps = t->feed.finished;
  return trainer_read(t, &t->rows, &t->from);
}
