/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a run: for which sample of which model, when, and what came back. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include "cli.h"
#include "ct_stats.h"

struct request {
  uint64_t scheduled, arrive, start, end; /* device cycles; CT_NO_CYCLE */
  uint32_t model, sample, batch, version, code, answer;
  uint16_t place; /* of its answer in device memory, while it is on its way */
  bool done, answered, wrong;
  enum ct_met met;
};

enum { REQUESTS_BATCH = 16 /* the most in a batch */ };

struct requests {
  size_t count, pushed, done, failed, wrong;
  uint32_t code;                         /* of the first one that failed */
  struct request *request;               /* count, in order of arrival */
  uint64_t in_batch[REQUESTS_BATCH + 1]; /* requests that were in a batch of that many */
};

/* 0, or 1 after a sentence; close it either way. */
int requests_open(struct requests *r, size_t count);
void requests_close(struct requests *r);

/* All anew, none scheduled: which of so many models and samples, the same for a seed. models 0:
 * there is one, and none is drawn. */
void requests_draw(struct requests *r, uint64_t seed, size_t models, size_t samples);

/* Request i arrives at cycle origin + arrivals[i]. */
void requests_schedule(struct requests *r, uint64_t origin, const uint64_t *arrivals);

/* Notes that one has ended. */
void requests_take(struct requests *r, struct request *request, const struct ct_event *event);

/* Latencies of requests first .. first + n - 1, CT_STATS_NEVER for one that was not answered by
 * that cycle (CT_NO_CYCLE: at all). */
void requests_latencies(const struct requests *r, size_t first, size_t n, uint64_t by,
                        uint64_t *latency);

/* Of the first n requests, all but `drop`; by as above. 0, or 1 after a sentence. */
int requests_sum_up(const struct requests *r, size_t n, size_t drop, uint64_t by,
                    struct ct_stats *stats);

/* Part of the time since the first arrival in which a request was in service, NaN without any. 0,
 * or 1 after a sentence. */
int requests_busy(const struct requests *r, double *share);

/* How many batches had 1, 2 ... 16 requests, a new array. */
json_t *requests_json_batches(const struct requests *r);

/* A row for each request that is done, with these columns, names as in the table of requests.c
 * with commas between. 0, or 1 after a sentence. */
int requests_csv(const struct requests *r, const char *path, const char *columns);

#endif
