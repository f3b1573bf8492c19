/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of zip archives, stored or deflated, as numpy.savez and numpy.savez_compressed write
 * them. Memory grows with the bytes that are there, whatever the archive claims. Archives of 4 GB
 * and more (zip64) are refused. Everything that goes wrong is a sentence of the fault, whose file
 * is the archive.
 */
#ifndef CT_ZIP_H
#define CT_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ct_fault.h"

/* An archive's directory. */
struct ct_zip {
  struct ct_fault fault;
  uint8_t *directory;
  size_t bytes, entries;
};

/* Whether a file begins as archives do. */
bool ct_zip_is(const char *path);

/* Reads the directory of the archive f->file. 0 or -1; after -1 there is nothing to close. */
int ct_zip_open(struct ct_zip *z, const struct ct_fault *f);
void ct_zip_close(struct ct_zip *z);

bool ct_zip_has(const struct ct_zip *z, const char *name);

/* All bytes of a member, whose check sum is right. *data is the caller's to free, also after -1. */
int ct_zip_read(const struct ct_zip *z, const char *name, uint8_t **data, size_t *bytes);

#endif
