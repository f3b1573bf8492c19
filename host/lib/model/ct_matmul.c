/* SPDX-License-Identifier: Apache-2.0 */
/* ct_matmul(): pack, one job (or a few, where one would be too large), unpack. The device keeps the
 * programs of the last shapes. */
#include <stdlib.h>
#include <string.h>

#include "ct_prog.h"
#include "ct_queue.h"

/* A product in device memory. */
struct product {
  ct_device *dev;
  enum ct_queue queue;
  uint32_t m, n, k, pitch;
  uint64_t a, b, c; /* addresses */
};

static int alloc(struct product *p) {
  int err = ct_mem_alloc(p->dev, ct_pack_size(p->m, p->k), &p->a);
  if (!err) err = ct_mem_alloc(p->dev, ct_pack_size(p->n, p->k), &p->b);
  if (!err) err = ct_mem_alloc(p->dev, (uint64_t)p->m * p->pitch * CT_UNIT, &p->c);
  return err;
}

static int upload(struct product *p, const float *a, const float *b) {
  const size_t a_size = ct_pack_size(p->m, p->k), b_size = ct_pack_size(p->n, p->k);
  void *packed = malloc(a_size > b_size ? a_size : b_size);
  if (!packed) return ct_fail(p->dev, CT_ERR_MEMORY, "no memory to pack the operands");
  ct_pack(a, p->m, p->k, p->k, CT_ROW, packed);
  int err = ct_mem_write(p->dev, p->a, packed, a_size);
  if (!err) {
    ct_pack_transposed(b, p->n, p->k, p->n, CT_ROW, packed);
    err = ct_mem_write(p->dev, p->b, packed, b_size);
  }
  free(packed);
  return err;
}

/* ---- Programs ------------------------------------------------------------------------------ */

_Static_assert((int)CT_CACHED_PROGRAMS == (int)CT_GEMM_PROGRAMS, "a set is what one product takes");

static struct ct_gemm shape_of(const struct product *p) {
  return (struct ct_gemm){
      .m = p->m, .n = p->n, .k = p->k, .pitch = p->pitch, .spm_words = ct_window_words(p->dev)};
}

static int make_programs(const struct product *p, struct ct_cached *set) {
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  const struct ct_gemm shape = shape_of(p);
  struct ct_gemm_jobs jobs;
  int err = ct_prog_gemm_jobs(&shape, &jobs, &why);
  if (err) return ct_fail(p->dev, err, "%s", text[0] ? text : ct_strerror(err));
  for (unsigned i = 0; i < CT_GEMM_PROGRAMS && !err; ++i)
    if (jobs.code[i].cmd) err = ct_code_load(p->dev, &jobs.code[i], &set->program[i]);
  set->note[0] = jobs.rows;
  set->note[1] = jobs.cols;
  ct_gemm_jobs_free(&jobs);
  if (err) ct_cache_empty(set);
  return err;
}

/* The programs, from the last time or new. *set: kept, or own if there is no place. */
static int find_programs(const struct product *p, struct ct_cached *own, struct ct_cached **set) {
  *own = (struct ct_cached){.key = {p->m, p->n, p->k}};
  *set = ct_cache_find(p->dev, own->key);
  if (*set) return CT_OK;
  const int err = make_programs(p, own);
  if (err) return err;
  *set = ct_cache_keep(p->dev, own);
  if (!*set) *set = own;
  return CT_OK;
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

/* One work's at most; a queue holds more than that. */
enum { TOGETHER = 16 };

static struct ct_job job_at(const struct product *p, const struct ct_cached *set, uint64_t i) {
  const struct ct_gemm shape = shape_of(p);
  const struct ct_gemm_jobs jobs = {.rows = set->note[0], .cols = set->note[1]};
  const struct ct_gemm_job part = ct_gemm_job_at(&shape, &jobs, i);
  struct ct_job job = {.program = set->program[part.program]};
  job.args[CT_GEMM_A - 1] = (uint32_t)(p->a / CT_UNIT + part.a);
  job.args[CT_GEMM_B - 1] = (uint32_t)(p->b / CT_UNIT + part.b);
  job.args[CT_GEMM_C - 1] = (uint32_t)(p->c / CT_UNIT + part.c);
  return job;
}

/* Jobs from number `from` on, as many as go together; *count: how many. */
static int run_some(const struct product *p, const struct ct_cached *set, uint64_t from,
                    unsigned *count, struct ct_event *event) {
  struct ct_job job[TOGETHER];
  uint64_t tag = 0;
  const uint64_t room = ct_queue_room(p->dev, p->queue);
  if (room && *count > room) *count = (unsigned)room;
  for (unsigned i = 0; i < *count; ++i)
    job[i] = job_at(p, set, from + i);
  const struct ct_work work = {
      .queue = p->queue, .kind = CT_EVENT_JOB, .job = job, .jobs = *count, .cycle = CT_NO_CYCLE};
  const int err = ct_submit_work(p->dev, &work, &tag);
  return err ? err : ct_finish(p->dev, tag, event);
}

static int run_all(const struct product *p, const struct ct_cached *set, struct ct_timing *timing) {
  const struct ct_gemm shape = shape_of(p);
  const struct ct_gemm_jobs jobs = {.rows = set->note[0], .cols = set->note[1]};
  const uint64_t all = ct_gemm_jobs_count(&shape, &jobs);
  uint64_t begin = 0;
  struct ct_event e = {0};
  for (uint64_t i = 0, left = all; left > 0;) {
    unsigned count = left < TOGETHER ? (unsigned)left : TOGETHER;
    const int err = run_some(p, set, i, &count, &e);
    if (err) return err;
    if (i == 0) begin = e.arrive;
    i += count;
    left -= count;
  }
  if (!timing) return CT_OK;
  timing->cycles = e.end == CT_NO_CYCLE ? CT_NO_CYCLE : e.end - begin;
  timing->macs = (uint64_t)p->m * p->n * p->k;
  return CT_OK;
}

static int run(const struct product *p, struct ct_timing *timing) {
  struct ct_cached own, *set;
  int err = find_programs(p, &own, &set);
  if (err) return err;
  err = run_all(p, set, timing);
  if (set == &own) ct_cache_empty(&own);
  return err;
}

/* ---- The call ------------------------------------------------------------------------------ */

static int download(struct product *p, float *c) {
  if (p->pitch * 4 == p->n) return ct_mem_read(p->dev, p->c, c, (size_t)p->m * p->n * sizeof *c);
  const size_t row = (size_t)p->pitch * CT_UNIT;
  uint8_t *rows = malloc(row * p->m);
  if (!rows) return ct_fail(p->dev, CT_ERR_MEMORY, "no memory for the result");
  const int err = ct_mem_read(p->dev, p->c, rows, row * p->m);
  for (size_t i = 0; i < p->m && !err; ++i)
    memcpy(c + i * p->n, rows + i * row, p->n * sizeof *c);
  free(rows);
  return err;
}

int ct_matmul(ct_device *dev, enum ct_queue queue, size_t m, size_t n, size_t k, const float *a,
              const float *b, float *c, struct ct_timing *timing) {
  int err = ct_check_device(dev);
  if (!err) err = ct_check_queue(dev, queue);
  if (err) return err;
  CT_NEED(dev, a);
  CT_NEED(dev, b);
  CT_NEED(dev, c);
  const size_t most = 1 << 24;
  if (m < 1 || n < 1 || k < 1 || m > most || n > most || k > most)
    return ct_fail(dev, CT_ERR_ARG, "a product of %zu x %zu x %zu: each must be 1..%zu", m, n, k,
                   most);
  struct product p = {.dev = dev,
                      .queue = queue,
                      .m = (uint32_t)m,
                      .n = (uint32_t)n,
                      .k = (uint32_t)k,
                      .pitch = (uint32_t)(n + 3) / 4};
  err = alloc(&p);
  if (!err) err = upload(&p, a, b);
  if (!err) err = run(&p, timing);
  if (!err) err = download(&p, c);
  ct_give_back_after(dev, p.a, queue, err);
  ct_give_back_after(dev, p.b, queue, err);
  ct_give_back_after(dev, p.c, queue, err);
  return err;
}
