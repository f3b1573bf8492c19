/* SPDX-License-Identifier: Apache-2.0 */
#include "train_beside.h"

#include "coltrain_spec.h"

static int top_up(void *arg) {
  struct trainer *t = arg;
  int rc = 0;
  while (rc >= 0 && t->feed.submitted < t->end && !cli_stopped())
    rc = feeder_submit(&t->feed);
  return rc;
}

int trainer_start(struct trainer *t, uint64_t first) {
  t->load->part[1] = (struct load_part){"submitting a training step", top_up, t};
  return load_check(t->load, feeder_open(&t->feed, &t->learner, first), "no room for the batches");
}

int trainer_open(struct trainer *t, struct load *load, const struct learn *learn) {
  *t = (struct trainer){.load = load, .end = UINT64_MAX, .learn = *learn};
  if (learn_open(&t->learn, &t->data) ||
      learner_open(&t->learner, &t->learn, &t->data, load->dev, true))
    return 1;
  return trainer_start(t, 0);
}

void trainer_close(struct trainer *t) {
  feeder_close(&t->feed);
  learner_close(&t->learner);
  ct_dataset_free(&t->data);
}

int trainer_take(void *trainer, const struct ct_event *event) {
  struct trainer *t = trainer;
  float loss = 0;
  if (event->error) return load_job_failed(event, "a training step");
  if (!event->user) return 0; /* a part of a step */
  const int rc = feeder_finish(&t->feed, event->user, &loss);
  if (t->losses) t->losses[t->count] = loss;
  ++t->count;
  return load_check(t->load, rc, "reading the loss");
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
