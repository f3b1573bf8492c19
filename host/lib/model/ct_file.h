/* SPDX-License-Identifier: Apache-2.0 */
/* Files of models and networks (docs/model-format.md): how they begin, how they are written. */
#ifndef CT_FILE_H
#define CT_FILE_H

#include "ct_device.h"

/* Little-endian numbers of some bytes; reals by their bits. */
void ct_file_put(uint8_t *p, uint64_t v, unsigned bytes);
uint64_t ct_file_get(const uint8_t *p, unsigned bytes);
void ct_file_put_float(uint8_t *p, float x);
float ct_file_get_float(const uint8_t *p);

/* That of zlib and PNG. */
uint32_t ct_file_crc32(const uint8_t *p, size_t size);

/* The first bytes of a file: letters, format version, order of bytes. */
enum { CT_FILE_HEAD = 16 };
void ct_file_begin(uint8_t *p, uint32_t format);

/* CT_OK if the first bytes, size of them, are those of a file of that format. */
int ct_file_check(ct_device *dev, const char *path, const uint8_t *p, size_t size, uint32_t format);

/* Writes a file that is whole on the disk before it takes the place of one of that name. */
int ct_file_write(ct_device *dev, const char *path, const uint8_t *data, size_t size);

/* The error of errno, with a sentence; what: "opened", "read". */
int ct_file_cannot(ct_device *dev, const char *path, const char *what, int reason);

/* A whole file; *data is the caller's to free. */
int ct_file_read(ct_device *dev, const char *path, uint8_t **data, size_t *size);

#endif
