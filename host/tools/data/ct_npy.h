/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NumPy's .npy files, as far as matrices of FP32 and the arrays of data sets go.
 *
 * Read: versions 1.0, 2.0 and 3.0; C order. As a matrix: descr '<f4'; two dimensions, at least 1x1.
 * As an array: FP32 or integers, one to four dimensions, none of them 0. Everything else is refused
 * with one sentence that names the file, what was found in it and what to do. Pipes work too:
 * nothing is sought. Memory grows with the bytes that are there, not with the shape that the header
 * claims. Written: version 1.0, the data starting at a multiple of 64 bytes, as numpy.save does.
 */
#ifndef CT_NPY_H
#define CT_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* rows * cols values, row by row; free with ct_npy_free. */
struct ct_npy {
  size_t rows, cols;
  float *data;
};

/* The most dimensions of an array. */
#define CT_NPY_DIMS 4

/* count elements in C order; free with ct_npy_free_array(). Floats are this machine's, integers are
 * as in the file, for ct_npy_integer(). */
struct ct_npy_array {
  char type;   /* 'f', 'i' or 'u' */
  size_t item; /* bytes of an element */
  unsigned dims;
  size_t shape[CT_NPY_DIMS];
  size_t count;
  unsigned char *data;
};

/* Enough for every sentence, with a path of ordinary length. */
#define CT_NPY_WHY 512

/* 0, or -1 with a sentence in why (cut to whysize bytes) and *npy empty. */
int ct_npy_read(const char *path, struct ct_npy *npy, char *why, size_t whysize);

/* The same for an array; of a file that is open already, whose name is then for sentences. */
int ct_npy_read_array(const char *path, struct ct_npy_array *a, char *why, size_t whysize);
int ct_npy_read_stream(FILE *file, const char *name, struct ct_npy_array *a, char *why,
                       size_t whysize);

/* Element i of an array of integers; false if it is below 0. */
bool ct_npy_integer(const struct ct_npy_array *a, size_t i, uint64_t *value);

/* Accepts what a failed read left. */
void ct_npy_free_array(struct ct_npy_array *a);

/* Writes rows x cols values; rows and cols at least 1. 0, or -1 with a sentence in why; what was
 * written of the file stays then. */
int ct_npy_write(const char *path, const float *data, size_t rows, size_t cols, char *why,
                 size_t whysize);

/* Accepts NULL and what a failed read left. */
void ct_npy_free(struct ct_npy *npy);

#endif
