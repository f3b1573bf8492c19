/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every answer is computed again by emu: with the weights of its version, as they were read back
 * from the device, and has to be the same in every bit. A test image that several requests of a
 * version carried is computed once.
 */
#include <stdlib.h>
#include <string.h>

#include "colocate.h"

enum { ROWS = 256 };

struct check {
  struct colocate *c;
  ct_device *dev; /* emu: */
  struct learner learner;
  ct_weights *weights; /* of the version that is checked */
  size_t classes;
  bool *wanted;      /* of every test image */
  float *x, *logits; /* ROWS rows; one row for every test image */
};

static void mark(struct check *k, const struct server *s, size_t version) {
  for (size_t i = 0; i < s->run.done; ++i)
    if (s->run.request[i].answered && s->run.request[i].version == version)
      k->wanted[s->run.request[i].sample] = true;
}

static int compute_rows(struct check *k, const uint32_t *sample, size_t n) {
  const struct ct_dataset *ds = &k->c->ds;
  float out[ROWS * 16], *rows = k->classes <= 16 ? out : malloc(n * k->classes * sizeof *rows);
  if (!rows) return CT_ERR_MEMORY;
  ct_dataset_values(ds, &ds->test, sample, n, k->x);
  const int rc = learner_infer(&k->learner, k->weights, k->x, n, rows);
  for (size_t i = 0; rc >= 0 && i < n; ++i)
    memcpy(k->logits + sample[i] * k->classes, rows + i * k->classes, k->classes * sizeof *rows);
  if (rows != out) free(rows);
  return rc < 0 ? rc : 0;
}

/* The logits of every wanted test image. */
static int compute(struct check *k) {
  uint32_t sample[ROWS];
  size_t n = 0;
  int rc = 0;
  for (size_t i = 0; rc >= 0 && i < k->c->ds.test.count; ++i) {
    if (!k->wanted[i]) continue;
    sample[n++] = (uint32_t)i;
    if (n < ROWS) continue;
    rc = compute_rows(k, sample, n);
    n = 0;
  }
  return rc >= 0 && n ? compute_rows(k, sample, n) : rc;
}

static size_t compare(const struct check *k, const struct server *s, size_t version) {
  size_t wrong = 0;
  for (size_t i = 0; i < s->run.done; ++i) {
    const struct request *r = &s->run.request[i];
    if (!r->answered || r->version != version) continue;
    wrong += memcmp(s->logits + i * k->classes, k->logits + r->sample * k->classes,
                    k->classes * sizeof *k->logits) != 0;
  }
  return wrong;
}

/* An answer whose completion names a version that does not exist is wrong too. */
static size_t foreign(const struct colocate *c, const struct server *s) {
  size_t wrong = 0;
  for (size_t i = 0; i < s->run.done; ++i)
    wrong += s->run.request[i].answered &&
             (s->run.request[i].version < 1 || s->run.request[i].version > c->versions.published);
  return wrong;
}

static int evaluate(struct check *k, struct version *v) {
  size_t right = 0;
  const int rc = learner_evaluate(&k->learner, k->weights, &k->c->ds.test, &right);
  v->accuracy = (double)right / (double)k->c->ds.test.count;
  return rc;
}

/* Whether a version's accuracy belongs to the results: all of them, unless that takes too long. */
static bool evaluated(const struct colocate *c, size_t number) {
  const size_t n = c->serve.run.done;
  return c->ds.test.count <= 1000 || number == c->versions.published ||
         (n && (number == c->serve.run.request[0].version ||
                number == c->serve.run.request[n - 1].version));
}

static int check_version(struct check *k, size_t number) {
  struct colocate *c = k->c;
  struct version *v = &c->versions.version[number - 1];
  memset(k->wanted, 0, c->ds.test.count * sizeof *k->wanted);
  mark(k, &c->serve, number);
  mark(k, &c->alone, number);
  for (size_t i = 0; i < POLICIES - 1; ++i)
    mark(k, &c->other[i].server, number);
  ct_weights_free(k->weights);
  int rc = learner_load_weights(&k->learner, v->bytes, c->versions.weights_bytes, &k->weights);
  if (rc >= 0) rc = compute(k);
  if (rc >= 0 && evaluated(c, number)) rc = evaluate(k, v);
  if (rc < 0) return rc;
  c->wrong += compare(k, &c->serve, number);
  c->wrong_alone += compare(k, &c->alone, number);
  for (size_t i = 0; i < POLICIES - 1; ++i)
    c->wrong_others += compare(k, &c->other[i].server, number);
  return 0;
}

static int check_all(struct check *k) {
  struct colocate *c = k->c;
  const size_t test = c->ds.test.count;
  int rc = 0;
  k->classes = c->ds.classes;
  k->wanted = malloc(test * sizeof *k->wanted);
  k->x = malloc((size_t)ROWS * c->ds.features * sizeof *k->x);
  k->logits = malloc(test * k->classes * sizeof *k->logits);
  if (!k->wanted || !k->x || !k->logits) rc = CT_ERR_MEMORY;
  c->wrong = foreign(c, &c->serve);
  c->wrong_alone = foreign(c, &c->alone);
  for (size_t i = 0; i < POLICIES - 1; ++i)
    c->wrong_others += foreign(c, &c->other[i].server);
  for (size_t v = 1; rc >= 0 && v <= c->versions.published; ++v) {
    const struct ct_progress_state state = {.label = "checking"};
    ct_progress_update(&c->load.progress, &state);
    rc = check_version(k, v);
  }
  return rc;
}

int colocate_check(struct colocate *c) {
  struct check k = {.c = c};
  if (cli_open("emu:", &k.dev)) return 1;
  int status = learner_open(&k.learner, c->l, &c->ds, k.dev, false);
  const int rc = status ? 0 : check_all(&k);
  if (!status) status = rc < 0 ? cli_fail_device(k.dev, rc, "checking the answers on emu:") : 0;
  c->checked = !status;
  ct_weights_free(k.weights);
  learner_close(&k.learner);
  ct_close(k.dev);
  free(k.wanted);
  free(k.x);
  free(k.logits);
  return status;
}
