/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of a data set, gzipped or not (its first bytes say which), read from its beginning to its
 * end. Memory grows with the bytes that are there, whatever a header claims. Everything that goes
 * wrong is a sentence of the fault, which is about this file.
 */
#ifndef CT_SOURCE_H
#define CT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

#include "ct_fault.h"

/* The longest path of a file within a folder. */
#define CT_SOURCE_PATH 4096

struct ct_source {
  struct ct_fault fault;
  gzFile file;
};

/* Opens an ordinary file; path must stay as it is until it is closed. where: for the sentences.
 * 0 or -1; after -1 there is nothing to close. */
int ct_source_open(struct ct_source *s, const char *path, const struct ct_fault *where);
void ct_source_close(struct ct_source *s);

/* Up to n bytes, fewer at the end of the file: how many, or -1. */
int ct_source_some(struct ct_source *s, void *out, unsigned n);

/* Exactly need bytes, and then the end of the file. *out is the caller's to free, also after -1. */
int ct_source_all_of(struct ct_source *s, size_t need, uint8_t **out);

/* All that there is, at least a byte and at most limit. *out is the caller's to free, also after
 * -1. */
int ct_source_whole(struct ct_source *s, size_t limit, uint8_t **out, size_t *bytes);

/* Makes room in *data for at least one more byte after have, for at most limit; false without
 * memory. */
bool ct_source_grow(uint8_t **data, size_t have, size_t *room, size_t limit);

#endif
