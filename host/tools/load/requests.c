/* SPDX-License-Identifier: Apache-2.0 */
#include "requests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ct_rand.h"

int requests_open(struct requests *r, size_t count) {
  *r = (struct requests){.count = count, .request = calloc(count, sizeof *r->request)};
  return r->request ? 0 : cli_fail("no memory for %zu requests", count);
}

void requests_close(struct requests *r) {
  free(r->request);
  *r = (struct requests){.count = 0};
}

void requests_draw(struct requests *r, uint64_t seed, size_t models, size_t samples) {
  struct ct_rand rand;
  ct_rand_seed(&rand, seed, CT_RAND_STREAM_REQUESTS);
  *r = (struct requests){.count = r->count, .request = r->request};
  for (size_t i = 0; i < r->count; ++i)
    r->request[i] = (struct request){.model = models ? (uint32_t)ct_rand_below(&rand, models) : 0,
                                     .sample = (uint32_t)ct_rand_below(&rand, samples),
                                     .scheduled = CT_NO_CYCLE,
                                     .arrive = CT_NO_CYCLE,
                                     .start = CT_NO_CYCLE,
                                     .end = CT_NO_CYCLE};
}

void requests_schedule(struct requests *r, uint64_t origin, const uint64_t *arrivals) {
  for (size_t i = 0; i < r->count; ++i)
    r->request[i].scheduled = origin + arrivals[i];
}

void requests_take(struct requests *r, struct request *request, const struct ct_event *event) {
  request->done = true;
  request->answered = event->error == CT_OK;
  request->arrive = event->arrive;
  request->start = event->start;
  request->end = event->end;
  request->batch = event->batch;
  request->version = event->version;
  request->code = event->code;
  request->met = event->met;
  ++r->done;
  if (!request->answered && !r->failed++) r->code = event->code;
  if (event->batch <= REQUESTS_BATCH) ++r->in_batch[event->batch];
}

/* ---- Figures ---- */

void requests_latencies(const struct requests *r, size_t first, size_t n, uint64_t by,
                        uint64_t *latency) {
  for (size_t i = 0; i < n; ++i) {
    const struct request *q = &r->request[first + i];
    latency[i] = q->answered && q->end <= by ? q->end - q->scheduled : CT_STATS_NEVER;
  }
}

int requests_sum_up(const struct requests *r, size_t n, size_t drop, uint64_t by,
                    struct ct_stats *stats) {
  uint64_t *latency = malloc((n + 1) * sizeof *latency);
  if (!latency) return cli_fail("no memory for %zu latencies", n);
  requests_latencies(r, 0, n, by, latency);
  ct_stats_sum_up(stats, latency, n, drop);
  free(latency);
  return 0;
}

static int compare_ends(const void *a, const void *b) {
  const struct request *x = a, *y = b;
  return (x->end > y->end) - (x->end < y->end);
}

/* Requests of several models are not answered in the order in which they arrive. */
int requests_busy(const struct requests *r, double *share) {
  struct ct_stats_busy busy = {0};
  uint64_t first = CT_NO_CYCLE;
  struct request *sorted = malloc(r->count * sizeof *sorted);
  if (!sorted) return cli_fail("no memory for %zu requests", r->count);
  memcpy(sorted, r->request, r->count * sizeof *sorted);
  qsort(sorted, r->count, sizeof *sorted, compare_ends);
  for (size_t i = 0; i < r->count; ++i) {
    if (sorted[i].scheduled < first) first = sorted[i].scheduled;
    if (sorted[i].answered) ct_stats_busy_add(&busy, sorted[i].start, sorted[i].end);
  }
  *share = ct_stats_busy_share(&busy, first);
  free(sorted);
  return 0;
}

json_t *requests_json_batches(const struct requests *r) {
  json_t *list = json_array();
  for (size_t n = 1; n <= REQUESTS_BATCH; ++n)
    json_array_append_new(list, json_integer((json_int_t)((r->in_batch[n] + n - 1) / n)));
  return list;
}

/* ---- Rows ---- */

enum kind { INDEX, CYCLE, NUMBER, ANSWER, CODE, FLAG };

static const struct column {
  const char *name;
  enum kind kind;
  size_t at;
} columns_known[] = {
    {"id", INDEX, 0},
    {"request", INDEX, 0},
    {"model", NUMBER, offsetof(struct request, model)},
    {"sample", NUMBER, offsetof(struct request, sample)},
    {"scheduled", CYCLE, offsetof(struct request, scheduled)},
    {"arrive", CYCLE, offsetof(struct request, arrive)},
    {"start", CYCLE, offsetof(struct request, start)},
    {"end", CYCLE, offsetof(struct request, end)},
    {"batch", NUMBER, offsetof(struct request, batch)},
    {"version", NUMBER, offsetof(struct request, version)},
    {"answer", ANSWER, offsetof(struct request, answer)},
    {"code", CODE, offsetof(struct request, code)},
    {"wrong", FLAG, offsetof(struct request, wrong)},
};

static const struct column *column_of(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof columns_known / sizeof *columns_known; ++i)
    if (strlen(columns_known[i].name) == length && !strncmp(columns_known[i].name, name, length))
      return &columns_known[i];
  return NULL;
}

/* What is unknown is empty. */
static void put_value(FILE *file, const struct request *q, size_t index, const struct column *c) {
  const char *at = (const char *)q + c->at;
  uint64_t cycle;
  uint32_t number;
  switch (c->kind) {
    case INDEX:
      fprintf(file, "%zu", index);
      break;
    case CYCLE:
      memcpy(&cycle, at, sizeof cycle);
      if (cycle != CT_NO_CYCLE) fprintf(file, "%" PRIu64, cycle);
      break;
    case CODE:
      fputs(ct_code_name(q->code), file);
      break;
    case FLAG:
      fprintf(file, "%d", q->wrong);
      break;
    default:
      memcpy(&number, at, sizeof number);
      if (c->kind == NUMBER || q->answered) fprintf(file, "%" PRIu32, number);
  }
}

static void put_row(FILE *file, const struct requests *r, size_t index, const char *columns) {
  for (const char *name = columns; *name;) {
    const size_t length = strcspn(name, ",");
    const struct column *column = column_of(name, length);
    if (column) put_value(file, &r->request[index], index, column);
    name += length;
    if (*name) fputc(*name++, file);
  }
  fputc('\n', file);
}

int requests_csv(const struct requests *r, const char *path, const char *columns) {
  FILE *file = fopen(path, "w");
  if (!file) return cli_fail("%s: cannot be created: %s", path, strerror(errno));
  fprintf(file, "%s\n", columns);
  for (size_t i = 0; i < r->count; ++i)
    if (r->request[i].done) put_row(file, r, i, columns);
  const bool bad = ferror(file);
  if (fclose(file) || bad) return cli_fail("%s: cannot be written: %s", path, strerror(errno));
  return 0;
}
