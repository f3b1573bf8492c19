/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NumPy's .npy files, as far as matrices of FP32 go.
 *
 * Read: versions 1.0, 2.0 and 3.0; descr '<f4'; C order; two dimensions, at least 1x1. Everything
 * else is refused with one sentence that names the file, what was found in it and what to do. Pipes
 * work too: nothing is sought. Memory grows with the bytes that are there, not with the shape that
 * the header claims.
 * Written: version 1.0, the data starting at a multiple of 64 bytes, as numpy.save does.
 */
#ifndef CT_NPY_H
#define CT_NPY_H

#include <stddef.h>

/* rows * cols values, row by row; free with ct_npy_free. */
struct ct_npy {
  size_t rows, cols;
  float *data;
};

/* Enough for every sentence, with a path of ordinary length. */
#define CT_NPY_WHY 512

/* 0, or -1 with a sentence in why (cut to whysize bytes) and *npy empty. */
int ct_npy_read(const char *path, struct ct_npy *npy, char *why, size_t whysize);

/* Writes rows x cols values; rows and cols at least 1. 0, or -1 with a sentence in why; what was
 * written of the file stays then. */
int ct_npy_write(const char *path, const float *data, size_t rows, size_t cols, char *why,
                 size_t whysize);

/* Accepts NULL and what a failed read left. */
void ct_npy_free(struct ct_npy *npy);

#endif
