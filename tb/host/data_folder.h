/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of its own for every test of data sets, and files in it. */
#ifndef DATA_FOLDER_H
#define DATA_FOLDER_H

#include <stddef.h>

/* Set-up and tear-down of a group of tests. */
int folder_make(void **state);
int folder_drop(void **state);

/* The folder, and a path in it, valid until the next call. */
const char *folder_name(void);
const char *in_folder(const char *name);

/* Removes all files. */
void folder_empty(void);

/* Writes a file, as it is or gzipped. */
void put(const char *name, const void *bytes, size_t n);
void put_gz(const char *name, const void *bytes, size_t n);

#endif
