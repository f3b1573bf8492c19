/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "colocate.h"

/* ---- Images ---- */

int images_open(struct images *im, ct_model *model, const struct ct_dataset *ds) {
  *im = (struct images){.rows = NULL};
  float *x = malloc(ds->features * sizeof *x);
  int rc = x ? ct_rows_create(model, ds->test.count, &im->rows) : CT_ERR_MEMORY;
  for (size_t i = 0; rc >= 0 && i < ds->test.count; ++i) {
    const uint32_t sample = (uint32_t)i;
    ct_dataset_values(ds, &ds->test, &sample, 1, x);
    rc = ct_rows_write(im->rows, i, 1, x);
  }
  free(x);
  return rc < 0 ? rc : 0;
}

void images_close(struct images *im) {
  ct_rows_free(im->rows);
  im->rows = NULL;
}

/* ---- Requests ---- */

int server_open(struct server *s, ct_device *dev, ct_model *model, const struct images *images,
                struct versions *versions, size_t count, size_t samples, uint64_t seed) {
  struct ct_model_info info;
  struct ct_info device;
  *s = (struct server){.dev = dev,
                       .model = model,
                       .images = images,
                       .versions = versions,
                       .limit = count,
                       .due = CT_NO_CYCLE};
  int rc = ct_model_info(model, &info);
  if (rc >= 0) rc = ct_info(dev, &device);
  if (rc < 0) return rc;
  s->waits = device.has_clock && !device.has_schedule;
  s->classes = info.widths[info.layers];
  s->logits = calloc(count, s->classes * sizeof *s->logits);
  if (!s->logits || requests_open(&s->run, count)) return CT_ERR_MEMORY;
  requests_draw(&s->run, seed, 0, samples);
  rc = ct_answers_create(model, SERVER_DEPTH, &s->answers);
  return rc < 0 ? rc : 0;
}

void server_close(struct server *s) {
  ct_answers_free(s->answers);
  requests_close(&s->run);
  free(s->logits);
  *s = (struct server){.dev = NULL};
}

/* Whether the next request is due; s->due if it is not. */
static int is_due(struct server *s, const struct request *r, bool *due) {
  uint64_t now = 0;
  *due = !s->waits || r->scheduled == CT_NO_CYCLE;
  if (*due) return 0;
  const int rc = ct_now(s->dev, &now);
  *due = now >= r->scheduled;
  if (!*due) s->due = r->scheduled;
  return rc;
}

int server_submit(struct server *s) {
  const size_t i = s->run.pushed;
  bool due = false;
  s->due = CT_NO_CYCLE;
  if (i >= s->limit || i - s->run.done >= SERVER_DEPTH) return CT_ERR_FULL;
  struct request *r = &s->run.request[i];
  const int clock = is_due(s, r, &due);
  if (clock < 0 || !due) return clock < 0 ? clock : CT_ERR_FULL;
  struct version *version = &s->versions->version[s->versions->published - 1];
  struct job *job = &s->jobs[i % SERVER_DEPTH];
  *job = (struct job){JOB_REQUEST, s, i};
  const uint32_t number = (uint32_t)s->versions->published;
  const struct ct_request request = {.rows = s->images->rows,
                                     .row = r->sample,
                                     .answers = s->answers,
                                     .answer = i % SERVER_DEPTH,
                                     .weights = version->weights,
                                     .cycle = r->scheduled == CT_NO_CYCLE ? 0 : r->scheduled,
                                     .user = job};
  const int rc = ct_model_infer_submit(s->model, &request, NULL);
  if (rc < 0) return rc;
  r->version = number;
  ++version->outstanding;
  s->run.pushed = i + 1;
  return 0;
}

int server_finish(struct server *s, const struct job *job, const struct ct_event *result) {
  const size_t i = job->index;
  struct request *r = &s->run.request[i];
  --s->versions->version[r->version - 1].outstanding;
  requests_take(&s->run, r, result);
  if (!r->answered) return 0;
  float *logits = s->logits + i * s->classes;
  const int rc = ct_answers_read(s->answers, i % SERVER_DEPTH, 1, logits);
  r->answer = cli_argmax(logits, s->classes);
  return rc < 0 ? rc : 0;
}
