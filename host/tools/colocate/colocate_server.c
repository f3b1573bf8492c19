/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "colocate.h"

int server_open(struct server *s, struct learner *learner, struct versions *versions,
                size_t count) {
  struct ct_info device;
  *s = (struct server){.dev = learner->dev,
                       .versions = versions,
                       .classes = learner->classes,
                       .limit = count,
                       .due = CT_NO_CYCLE};
  const int rc = ct_info(learner->dev, &device);
  if (rc < 0) return rc;
  s->waits = device.has_clock && !device.has_schedule;
  s->logits = calloc(count, s->classes * sizeof *s->logits);
  if (!s->logits || requests_open(&s->run, count)) return CT_ERR_MEMORY;
  requests_draw(&s->run, learner->learn->seed, 0, learner->ds->test.count);
  return learner_places_open(learner, &s->places, SERVER_DEPTH);
}

void server_close(struct server *s) {
  if (s->places.of) learner_places_close(&s->places);
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
  const struct learner_request request = {.place = i % SERVER_DEPTH,
                                          .sample = r->sample,
                                          .weights = version->weights,
                                          .cycle = r->scheduled,
                                          .user = job};
  const int rc = learner_ask(&s->places, &request);
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
  const int rc = learner_answer(&s->places, i % SERVER_DEPTH, logits);
  r->answer = cli_argmax(logits, s->classes);
  return rc < 0 ? rc : 0;
}
