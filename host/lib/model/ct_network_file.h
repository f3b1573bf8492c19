/* SPDX-License-Identifier: Apache-2.0 */
/* A file of a network, format version 2, taken apart. */
#ifndef CT_NETWORK_FILE_H
#define CT_NETWORK_FILE_H

#include "ct_network.h"

/* How activations are kept compressed. */
struct ct_bounds {
  bool there; /* the file says so; else nothing below is known */
  double error;
  uint32_t refresh, bits;
  enum ct_masks masks; /* never CT_MASKS_DEFAULT */
  uint32_t count; /* of tensors, with their bounds: between list and end, in the file's bytes */
  const uint8_t *list, *end;
};

struct ct_network_file {
  uint64_t seed, steps, epochs;
  uint64_t masks; /* the seed of dropout */
  bool kernels;   /* as in struct ct_network_options */
  uint32_t mantissa;
  ct_graph *graph;       /* checked */
  const uint8_t **value; /* by tensor: its reals, in the bytes of the file; NULL: none */
  struct ct_bounds bounds;
};

/* Takes apart size bytes, which must stay. path: of sentences. Free it either way. */
int ct_network_file_parse(ct_device *dev, const char *path, const uint8_t *data, size_t size,
                          struct ct_network_file *f);
void ct_network_file_free(struct ct_network_file *f);

/* ---- ct_network_bounds.c ---- */

/* The bytes of the chunk `kept`, and these; 0: the network has none. */
size_t ct_bounds_size(const ct_network *n);
void ct_bounds_put(const ct_network *n, uint8_t *p);
/* From such a chunk, which must stay. CT_ERR_FORMAT. */
int ct_bounds_parse(ct_device *dev, const char *path, const uint8_t *p, size_t size,
                    struct ct_bounds *b);

/* What a file says where the options say nothing. */
void ct_bounds_fill_in(struct ct_network_options *how, const struct ct_bounds *b);
/* CT_OK, or CT_ERR_ARG: the network keeps other tensors, or otherwise. */
int ct_bounds_check(ct_network *n, const struct ct_bounds *b, const char *path);
/* Goes on with them; without any it begins anew. */
void ct_bounds_take(ct_network *n, const struct ct_bounds *b);

#endif
