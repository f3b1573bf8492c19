/* SPDX-License-Identifier: Apache-2.0 */
/* Files of models and networks (docs/model-format.md): how they begin, how they are written. */
#ifndef CT_FILE_H
#define CT_FILE_H

#include "ct_device.h"
#include "ct_prog.h"

/* Little-endian numbers of some bytes; reals by their bits. */
void ct_file_put(uint8_t *p, uint64_t v, unsigned bytes);
uint64_t ct_file_get(const uint8_t *p, unsigned bytes);
void ct_file_put_float(uint8_t *p, float x);
float ct_file_get_float(const uint8_t *p);

/* So many reals, which follow each other; to and from. */
uint8_t *ct_file_put_floats(uint8_t *p, const float *x, size_t count);
void ct_file_get_floats(const uint8_t *p, float *x, size_t count);

/* That of zlib and PNG, of all in front of it, is the end of a file. */
enum { CT_FILE_SUM = 4 };
void ct_file_seal(uint8_t *data, size_t size);
bool ct_file_is_sealed(const uint8_t *data, size_t size);

/* The first bytes of a file: letters, format version, order of bytes. */
enum { CT_FILE_HEAD = 16 };
void ct_file_begin(uint8_t *p, uint32_t format);

/* CT_OK if the first bytes, size of them, are those of a file of a format that this library reads,
 * which *format is then. */
enum { CT_FILE_MODEL = 1, CT_FILE_NETWORK };
int ct_file_check(ct_device *dev, const char *path, const uint8_t *p, size_t size,
                  uint32_t *format);

/* Seals what is to be a file and writes it: it is whole on the disk before it takes the place of
 * one of that name. */
int ct_file_write(ct_device *dev, const char *path, uint8_t *data, size_t size);

/* The error of errno, with a sentence; what: "opened", "read". */
int ct_file_cannot(ct_device *dev, const char *path, const char *what, int reason);

/* A whole file, or as much of one as says that it is none: what is foreign is not read to its end,
 * nor what goes on behind a model's. *data is the caller's to free. */
int ct_file_read(ct_device *dev, const char *path, uint8_t **data, size_t *size);

/* ---- Format version 1 ---- */

/* A model's, taken apart. */
struct ct_model_file {
  struct ct_mlp net;
  uint64_t seed, steps, epochs;
  struct ct_training training;
  const uint8_t *numbers; /* reals in the bytes of the file: layer by layer weights, biases, and
                             their momentum */
};
int ct_model_file_parse(ct_device *dev, const char *path, const uint8_t *data, size_t size,
                        struct ct_model_file *f);
/* Whether so many bytes are all that can be of use. */
bool ct_model_file_is_read(const uint8_t *data, size_t size);

#endif
