/* SPDX-License-Identifier: Apache-2.0 */
/* ct_matmul(): pack, one job (or a few, where one would be too large), unpack. */
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

static int run(struct product *p, struct ct_timing *timing) {
  char text[256];
  const struct ct_why why = {text, sizeof text};
  const struct ct_gemm shape = {
      .m = p->m, .n = p->n, .k = p->k, .pitch = p->pitch, .spm_words = ct_window_words(p->dev)};
  struct ct_code code;
  ct_program *program = NULL;
  int err = ct_prog_gemm(&shape, &code, &why);
  if (err) return ct_fail(p->dev, err, "%s", text);
  err = ct_code_load(p->dev, &code, &program);
  if (err) return err;
  struct ct_job job = {.program = program};
  job.args[CT_GEMM_A - 1] = (uint32_t)(p->a / CT_UNIT);
  job.args[CT_GEMM_B - 1] = (uint32_t)(p->b / CT_UNIT);
  job.args[CT_GEMM_C - 1] = (uint32_t)(p->c / CT_UNIT);
  struct ct_event r = {0};
  uint64_t tag = 0;
  err = ct_submit(p->dev, p->queue, &job, &tag);
  if (!err) err = ct_finish(p->dev, tag, &r);
  if (!err && timing) {
    timing->cycles = r.end == CT_NO_CYCLE ? CT_NO_CYCLE : r.end - r.arrive;
    timing->macs = (uint64_t)p->m * p->n * p->k;
  }
  ct_program_free(program);
  return err;
}

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
  if (err == CT_ERR_DEVICE) return err; /* the job may still run: its memory stays taken */
  ct_heap_free(&dev->data, p.a);
  ct_heap_free(&dev->data, p.b);
  ct_heap_free(&dev->data, p.c);
  return err;
}
