/* SPDX-License-Identifier: Apache-2.0 */
#include "learner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int learner_open(struct learner *l, const struct learn *learn, const struct ct_dataset *ds,
                 ct_device *dev, bool trains) {
  *l = (struct learner){.learn = learn, .ds = ds, .dev = dev};
  l->features = ds->features;
  l->classes = ds->classes;
  l->batch = learn->batch;
  l->ops = learn->model ? &learner_graph : &learner_mlp;
  return learn->model ? learner_graph_open(l, trains) : learner_mlp_open(l, trains);
}

int learner_load(struct learner *l, struct learn *learn, ct_device *dev, const char *path,
                 struct learner_past *past) {
  const bool graph = learn_holds_network(path);
  *l = (struct learner){.ops = graph ? &learner_graph : &learner_mlp, .learn = learn, .dev = dev};
  return graph ? learner_graph_load(l, learn, path, past) : learner_mlp_load(l, learn, path, past);
}

int learner_resume(struct learner *l, const struct ct_dataset *ds) {
  l->ds = ds;
  l->features = ds ? ds->features : 0;
  l->classes = ds ? ds->classes : 0;
  l->batch = l->learn->batch;
  return l->ops->resume(l);
}

void learner_close(struct learner *l) {
  if (l->ops) l->ops->close(l);
  *l = (struct learner){.ops = NULL};
}

/* ---- Training ---- */

int learner_batch_open(struct learner *l, struct learner_batch *b) {
  *b = (struct learner_batch){.of = l};
  return l->ops->batch_open(l, b);
}

void learner_batch_close(struct learner_batch *b) {
  ct_batch_free(b->batch);
  ct_frame_free(b->frame);
  *b = (struct learner_batch){.of = NULL};
}

int learner_batch_write(struct learner_batch *b, const float *x, const uint32_t *labels) {
  return b->of->ops->batch_write(b, x, labels);
}

int learner_batch_loss(struct learner_batch *b, float *loss) {
  return b->of->ops->batch_loss(b, loss);
}

void learner_tell(struct learner *l) {
  struct ct_network_info info;
  if (!l->steps || ct_network_info(l->steps, &info) || !info.pressed) return;
  fprintf(stderr,
          "coltrain: pages for bits a number: %" PRIu32
          "; for an error of %g that was too few %" PRIu64
          " time%s, so more was lost (--keep compressed:ERROR:BITS has pages for more BITS)\n",
          info.bits, info.error, info.pressed, info.pressed == 1 ? "" : "s");
}

int learner_step(struct learner *l, struct learner_batch *b, uint64_t step, void *user) {
  return l->ops->step(l, b, step, user);
}

/* ---- Serving ---- */

int learner_publish(struct learner *l, void *user, ct_weights **weights) {
  return l->ops->publish(l, user, weights);
}

int learner_load_weights(struct learner *l, const void *data, size_t size, ct_weights **weights) {
  return l->ops->load_weights(l, data, size, weights);
}

int learner_places_open(struct learner *l, struct learner_places *p, size_t count) {
  *p = (struct learner_places){.of = l, .count = count};
  return l->ops->places_open(l, p);
}

void learner_places_close(struct learner_places *p) {
  for (size_t i = 0; p->frame && i < p->count; ++i)
    ct_frame_free(p->frame[i]);
  ct_answers_free(p->answers);
  free(p->frame);
  free(p->x);
  *p = (struct learner_places){.of = NULL};
}

int learner_ask(struct learner_places *p, const struct learner_request *r) {
  return p->of->ops->ask(p, r);
}

int learner_answer(struct learner_places *p, size_t place, float *logits) {
  return p->of->ops->answer(p, place, logits);
}

/* ---- Calls that wait ---- */

int learner_infer(struct learner *l, ct_weights *weights, const float *x, size_t n, float *logits) {
  return l->ops->infer(l, weights, x, n, logits);
}

int learner_evaluate(struct learner *l, ct_weights *weights, const struct ct_dataset_part *part,
                     size_t *right) {
  return l->ops->evaluate(l, weights, part, right);
}

int learner_crc32(struct learner *l, uint32_t *crc) {
  return l->ops->crc32(l, crc);
}

int learner_save(struct learner *l, const char *path, uint64_t epochs) {
  return l->ops->save(l, path, epochs);
}
