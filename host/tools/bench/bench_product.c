/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_product.h"

#include <stdlib.h>

#include "ct_queue.h"
#include "ct_rand.h"

enum { PATIENCE = 1000 };

static uint32_t pitch(uint32_t n) {
  return (n + 3) / 4;
}

size_t bench_product_size(uint32_t m, uint32_t n, enum ct_gemm_result result) {
  return result == CT_GEMM_HBFP8 ? ct_pack_size(m, n) : (size_t)m * pitch(n) * CT_UNIT;
}

static int no_memory(ct_device *dev, const char *what) {
  return ct_fail(dev, CT_ERR_MEMORY, "the host has no memory for %s of the product", what);
}

/* Random numbers from -0.5 to 0.5, packed; the same for a seed. */
static int upload(ct_device *dev, uint32_t rows, uint32_t cols, uint64_t seed, uint64_t *at) {
  const size_t size = ct_pack_size(rows, cols);
  struct ct_rand rand;
  float *x = malloc(sizeof *x * rows * cols);
  void *packed = malloc(size);
  int rc = x && packed ? ct_mem_alloc(dev, size, at) : no_memory(dev, "an operand");
  if (x && rc >= 0) {
    ct_rand_seed(&rand, seed, CT_RAND_STREAM_NONE);
    for (size_t i = 0; i < (size_t)rows * cols; ++i)
      x[i] = ct_rand_unit(&rand) - 0.5f;
    ct_pack(x, rows, cols, cols, CT_ROW, packed);
    rc = ct_mem_write(dev, *at, packed, size);
  }
  free(x);
  free(packed);
  return rc;
}

static int load(ct_device *dev, struct bench_product *p) {
  char text[160] = "";
  const struct ct_why why = {text, sizeof text};
  const struct ct_gemm shape = {.m = p->m,
                                .n = p->n,
                                .k = p->k,
                                .pitch = pitch(p->n),
                                .spm_words = ct_window_words(dev),
                                .result = p->result};
  struct ct_code code = {NULL, 0};
  const int rc = ct_prog_gemm(&shape, &code, &why);
  return rc < 0 ? ct_fail(dev, rc, "%s", *text ? text : ct_strerror(rc))
                : ct_code_load(dev, &code, &p->program);
}

int bench_product_make(ct_device *dev, struct bench_product *p) {
  *p = (struct bench_product){.m = p->m, .n = p->n, .k = p->k, .result = p->result};
  p->c_size = bench_product_size(p->m, p->n, p->result);
  int rc = upload(dev, p->m, p->k, 1, &p->a);
  if (rc >= 0) rc = upload(dev, p->n, p->k, 2, &p->b);
  if (rc >= 0) rc = ct_mem_alloc(dev, p->c_size, &p->c);
  if (rc >= 0) rc = load(dev, p);
  if (rc < 0) bench_product_free(dev, p);
  return rc;
}

void bench_product_free(ct_device *dev, struct bench_product *p) {
  ct_program_free(p->program);
  ct_mem_free(dev, p->a);
  ct_mem_free(dev, p->b);
  ct_mem_free(dev, p->c);
}

static uint32_t watchdog(const struct bench_product *p) {
  const uint64_t rows = (uint64_t)(p->m + 16) * ct_tiles(p->n) * ct_tiles(p->k);
  const uint64_t cycles = PATIENCE * (rows + p->c_size + 1000);
  return cycles < UINT32_MAX ? (uint32_t)cycles : UINT32_MAX;
}

int bench_product_submit(ct_device *dev, enum ct_queue queue, const struct bench_product *p,
                         uint64_t *tag) {
  struct ct_job job = {.program = p->program, .watchdog = watchdog(p)};
  job.args[CT_GEMM_A - 1] = (uint32_t)(p->a / CT_UNIT);
  job.args[CT_GEMM_B - 1] = (uint32_t)(p->b / CT_UNIT);
  job.args[CT_GEMM_C - 1] = (uint32_t)(p->c / CT_UNIT);
  return ct_submit(dev, queue, &job, tag);
}

int bench_product_reap(ct_device *dev, struct ct_event *r, int timeout_ms) {
  const int rc = ct_reap(dev, r, timeout_ms);
  return rc >= 0 && r->error ? ct_event_error(dev, r) : rc;
}

int bench_product_read(ct_device *dev, const struct bench_product *p, uint8_t **c) {
  *c = malloc(p->c_size);
  const int rc = *c ? ct_mem_read(dev, p->c, *c, p->c_size) : no_memory(dev, "a result");
  if (rc < 0) {
    free(*c);
    *c = NULL;
  }
  return rc;
}
