/* SPDX-License-Identifier: Apache-2.0 */
/* Inference by jobs: requests, and calls that wait for theirs. */
#include <stdlib.h>

#include "ct_network.h"
#include "ct_num.h"

/* What answers that many rows, made when it is first needed. */
static int find_answers(ct_model *m, size_t rows) {
  const struct ct_model_part part = {
      .dev = m->dev, .net = &m->net, .rows = (uint32_t)rows, .job = CT_MODEL_RUN};
  ct_network **n = &m->answers[rows - 1];
  return *n ? CT_OK : ct_model_compile(&part, n);
}

/* Where jobs keep activations that have no room in the scratchpad. It takes as much for each number
 * of rows, holds nothing from job to job, and jobs of a queue that use it run one after the other:
 * so there is one for each queue, from the first such job on. */
static int find_work(ct_model *m, enum ct_queue queue, size_t rows) {
  const uint64_t units = m->answers[rows - 1]->compiled.arena;
  if (!units || m->work[queue]) return CT_OK;
  return ct_mem_alloc(m->dev, units * CT_UNIT, &m->work[queue]);
}

/* A request that is under way. */
struct asked {
  struct ct_request request;
  uint32_t count;
};

static void answered(void *arg, const struct ct_event *event) {
  struct asked *a = arg;
  ct_weights_drop(a->request.weights, ct_use_reads(a->request.queue));
  ct_request_drop(&a->request, a->count, event->error);
  free(a);
}

/* What a request for a job has and one for a server has not, and the other way round. */
static int check_request(ct_model *m, const struct ct_request *r, struct asked *a) {
  int err = ct_check_queue(m->dev, r->queue);
  if (err) return err;
  if (r->count > CT_INFER_ROWS_MAX)
    return ct_fail(m->dev, CT_ERR_ARG, "a request has 1..%d rows, not %u", CT_INFER_ROWS_MAX,
                   r->count);
  if (r->deadline)
    return ct_fail(m->dev, CT_ERR_ARG, "a job has no deadline: requests of a server have");
  *a = (struct asked){.request = *r, .count = r->count ? r->count : 1};
  err = ct_request_check(m->dev, &m->net, r, a->count);
  if (!err) err = ct_weights_find(m, ct_use_reads(r->queue), &a->request.weights);
  if (!err) err = find_answers(m, a->count);
  return err ? err : find_work(m, r->queue, a->count);
}

/* A request reads weights and its rows; the request before it writes answers. */
static int submit(ct_model *m, struct asked *a, uint64_t *tag) {
  const struct ct_request *r = &a->request;
  const ct_network *n = m->answers[a->count - 1];
  const struct ct_regions at = {
      .lasting = r->weights->image,
      .arena = m->work[r->queue],
      .external = {[CT_MLP_X] = ct_request_row(r), [CT_MLP_LOGITS] = ct_request_answer(r)}};
  struct ct_job like = {.version = r->weights->version,
                        .user = r->user,
                        .flags = r->queue == CT_INFERENCE ? CT_JOB_OVERLAP : 0};
  struct ct_work work = {.queue = r->queue,
                         .kind = CT_EVENT_ANSWER,
                         .cycle = r->cycle ? r->cycle : CT_NO_CYCLE,
                         .done = answered,
                         .arg = a};
  ct_network_arguments(n, &at, 0, &like);
  return ct_network_send(n, CT_STAGES_ALL, 0, &like, &work, tag);
}

int ct_model_infer_submit(ct_model *m, const struct ct_request *request, uint64_t *tag) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, request);
  struct asked *a = malloc(sizeof *a);
  if (!a) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for a request");
  err = check_request(m, request, a);
  if (!err) err = submit(m, a, tag);
  if (err) {
    free(a);
    return err;
  }
  ct_request_take(&a->request, a->count);
  ct_weights_take(a->request.weights, ct_use_reads(request->queue));
  return CT_OK;
}

/* ---- Calls that wait ----------------------------------------------------------------------- */

static uint32_t classes_of(const ct_model *m) {
  return m->net.width[m->net.layers];
}

/* Whether so many rows of inputs and of answers can lie in the caller's memory. */
static int check_rows(const ct_model *m, size_t rows) {
  const size_t in = m->net.width[0], out = classes_of(m);
  if (rows < SIZE_MAX / sizeof(float) / (in > out ? in : out)) return CT_OK;
  return ct_fail(m->dev, CT_ERR_ARG, "%zu rows are more than this machine can address", rows);
}

/* How many of so many rows go together: fewer where the activations of all have no room. */
static size_t rows_together(ct_model *m, size_t rows) {
  size_t n = rows < CT_INFER_ROWS_MAX ? rows : CT_INFER_ROWS_MAX;
  while (n > 1 && find_answers(m, n) == CT_ERR_NO_SPACE)
    n /= 2;
  return n;
}

/* All rows through the handles of a request, which have room for some of them. Live weights are
 * read behind the steps in flight. */
static int infer_rows(ct_model *m, struct ct_request *r, const float *x, size_t rows,
                      float *logits) {
  const size_t in = m->net.width[0], out = classes_of(m);
  int err = CT_OK;
  for (size_t i = 0, n; i < rows && !err; i += n) {
    uint64_t tag = 0;
    n = rows_together(m, rows - i);
    r->count = (uint32_t)n;
    r->queue = m->live->changing[CT_TRAINING] && (!r->weights || r->weights == m->live)
                   ? CT_TRAINING
                   : CT_INFERENCE;
    err = ct_rows_write(r->rows, 0, n, x + i * in);
    if (!err) err = ct_model_infer_submit(m, r, &tag);
    if (!err) err = ct_finish(m->dev, tag, NULL);
    if (!err) err = ct_answers_read(r->answers, 0, n, logits + i * out);
  }
  return err;
}

int ct_model_infer(ct_model *m, ct_weights *weights, const float *x, size_t rows, float *logits) {
  int err = ct_check_model(m);
  if (err || rows == 0) return err;
  CT_NEED(m->dev, x);
  CT_NEED(m->dev, logits);
  err = check_rows(m, rows);
  if (err) return err;
  const size_t room = rows < CT_INFER_ROWS_MAX ? rows : CT_INFER_ROWS_MAX;
  struct ct_request r = {.weights = weights};
  err = ct_rows_create(m, room, &r.rows);
  if (!err) err = ct_answers_create(m, room, &r.answers);
  if (!err) err = infer_rows(m, &r, x, rows, logits);
  ct_rows_free(r.rows);
  ct_answers_free(r.answers);
  return err;
}

/* The first of the largest. */
static size_t largest(const float *x, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; ++i)
    if (ct_fp_gt(ct_bits_of(x[i]), ct_bits_of(x[best]))) best = i;
  return best;
}

int ct_model_evaluate(ct_model *m, ct_weights *weights, const float *x, const uint32_t *labels,
                      size_t rows, size_t *right) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, right);
  if (rows) CT_NEED(m->dev, x);
  if (rows) CT_NEED(m->dev, labels);
  const size_t classes = classes_of(m);
  err = check_rows(m, rows);
  if (err) return err;
  float *logits = calloc(rows * classes + 1, sizeof *logits);
  if (!logits) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for answers");
  err = ct_model_infer(m, weights, x, rows, logits);
  size_t hits = 0;
  for (size_t r = 0; r < rows && !err; ++r)
    hits += largest(logits + r * classes, classes) == labels[r];
  if (!err) *right = hits;
  free(logits);
  return err;
}
