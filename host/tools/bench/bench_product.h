/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product C = A * B of random HBFP8 matrices in a device's memory, as the measurements run it:
 * loaded once, submitted as often as wanted.
 */
#ifndef BENCH_PRODUCT_H
#define BENCH_PRODUCT_H

#include "coltrain/coltrain.h"
#include "ct_prog.h"

struct bench_product {
  uint32_t m, n, k;
  enum ct_gemm_result result;
  uint64_t a, b, c; /* addresses in device memory */
  size_t c_size;    /* bytes */
  ct_program *program;
};

/* Bytes of C. */
size_t bench_product_size(uint32_t m, uint32_t n, enum ct_gemm_result result);

/* Allocates, writes the operands (the same for the same shape) and loads the program. p has the
 * shape and the format of the result; what else was in it is lost. A ct_error, of which the device
 * has a sentence; then nothing is left to be freed. */
int bench_product_make(ct_device *dev, struct bench_product *p);
void bench_product_free(ct_device *dev, struct bench_product *p);

/* Its watchdog lets it run a thousand times as long as the array needs for it, so that waiting for
 * it ends. */
int bench_product_submit(ct_device *dev, enum ct_queue queue, const struct bench_product *p,
                         uint64_t *tag);

/* The next job of either queue that ends, or the error it ended with. */
int bench_product_reap(ct_device *dev, struct ct_event *r, int timeout_ms);

/* C in host memory, which the caller frees; a ct_error. */
int bench_product_read(ct_device *dev, const struct bench_product *p, uint8_t **c);

#endif
