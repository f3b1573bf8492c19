/* SPDX-License-Identifier: Apache-2.0 */
/* Who is right how often, and who goes on. */
#include <math.h>
#include <stdlib.h>

#include "sweep.h"

/* ---- Accuracies ---------------------------------------------------------------------------- */

/* The event of what has the tag. A ct_error. */
static int await(const struct sweep *s, uint64_t tag) {
  struct ct_event event = {.error = CT_OK};
  const int rc = ct_wait(s->dev, tag, &event, CT_FOREVER);
  return rc < 0 ? rc : event.error;
}

/* Places for the rows of a run. */
struct rows {
  ct_frame *frame;
  float *x, *z;
};

/* Samples from `from` on, as many as there are: the last run has some again. */
static int ask(const struct sweep *s, struct rows *r, ct_weights *w, size_t from) {
  const struct ct_run run = {.frame = r->frame, .weights = w, .queue = CT_TRAINING};
  const struct ct_dataset_part *part = &s->data.test;
  uint32_t sample[SWEEP_ROWS];
  uint64_t tag = 0;
  for (size_t i = 0; i < SWEEP_ROWS; ++i)
    sample[i] = (uint32_t)((from + i) % part->count);
  ct_dataset_values(&s->data, part, sample, SWEEP_ROWS, r->x);
  int rc = ct_frame_write(r->frame, s->asked, r->x, (size_t)SWEEP_ROWS * s->data.features);
  if (rc >= 0) rc = ct_network_submit(s->answers, &run, &tag);
  if (rc >= 0) rc = await(s, tag);
  return rc < 0 ? rc
                : ct_frame_read(r->frame, s->logits, r->z, (size_t)SWEEP_ROWS * s->data.classes);
}

static int count_right(const struct sweep *s, struct rows *r, ct_weights *w, size_t *right) {
  const struct ct_dataset_part *part = &s->data.test;
  int rc = 0;
  *right = 0;
  for (size_t from = 0; from < part->count && rc >= 0; from += SWEEP_ROWS) {
    rc = ask(s, r, w, from);
    for (size_t i = 0; i < SWEEP_ROWS && from + i < part->count && rc >= 0; ++i)
      *right += cli_argmax(r->z + i * s->data.classes, s->data.classes) == part->labels[from + i];
  }
  return rc;
}

static int evaluate(const struct sweep *s, struct rows *r, struct sweep_member *m) {
  ct_weights *w = NULL;
  uint64_t tag = 0;
  size_t right = 0;
  int rc =
      ct_network_publish_submit(ct_array_network(s->array, m->number), s->answers, NULL, &w, &tag);
  if (rc >= 0) rc = await(s, tag);
  if (rc >= 0) rc = count_right(s, r, w, &right);
  ct_weights_free(w);
  if (rc >= 0) m->accuracy = (double)right / (double)s->data.test.count;
  return rc;
}

int sweep_evaluate(struct sweep *s) {
  struct rows r = {.x = malloc((size_t)SWEEP_ROWS * s->data.features * sizeof *r.x),
                   .z = malloc((size_t)SWEEP_ROWS * s->data.classes * sizeof *r.z)};
  int rc = r.x && r.z ? ct_frame_create(s->answers, &r.frame) : CT_ERR_MEMORY;
  for (size_t i = 0; i < s->members && rc >= 0 && !cli_stopped(); ++i) {
    struct sweep_member *m = &s->member[i];
    if (!m->left && m->epochs == s->epoch && m->info.state == CT_MEMBER_READY)
      rc = evaluate(s, &r, m);
  }
  ct_frame_free(r.frame);
  free(r.x);
  free(r.z);
  return rc < 0 ? sweep_fail(s, rc, "evaluating on the test images") : 0;
}

/* ---- Ranks --------------------------------------------------------------------------------- */

/* More epochs first: whoever left early was worse then. */
static bool is_better(const struct sweep_member *a, const struct sweep_member *b) {
  const bool fails_a = a->info.state != CT_MEMBER_READY, fails_b = b->info.state != CT_MEMBER_READY;
  if (fails_a != fails_b) return fails_b;
  if (a->epochs != b->epochs) return a->epochs > b->epochs;
  if (!isnan(a->accuracy) && !isnan(b->accuracy) && a->accuracy != b->accuracy)
    return a->accuracy > b->accuracy;
  if (isnan(a->loss) != isnan(b->loss)) return isnan(b->loss);
  return a->loss < b->loss;
}

/* Equal ones keep their order. */
void sweep_rank(const struct sweep *s, size_t *order) {
  for (size_t i = 0; i < s->members; ++i) {
    size_t at = i;
    for (; at > 0 && is_better(&s->member[i], &s->member[order[at - 1]]); --at)
      order[at] = order[at - 1];
    order[at] = i;
  }
}

/* Successive halving: of n members n / eta go on, then n / eta^2, ..., while it is one at least;
 * the epochs before grow by eta from time to time, up to all. */
bool sweep_rung(const struct sweep *s, size_t n, uint64_t *epochs, size_t *left) {
  const uint64_t eta = s->o->halving;
  uint64_t power = 1, share = 1;
  size_t last = 0;
  if (!eta) return false;
  for (; power * eta <= s->members; ++last)
    power *= eta;
  if (n >= last) return false;
  for (size_t i = 0; i <= n; ++i)
    share *= eta;
  *left = s->members / share;
  const uint64_t part = power / (share / eta);
  *epochs = (s->l->epochs + part - 1) / part;
  return true;
}
