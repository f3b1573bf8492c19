/* SPDX-License-Identifier: Apache-2.0 */
/* A file of a network, format version 2, taken apart. */
#ifndef CT_NETWORK_FILE_H
#define CT_NETWORK_FILE_H

#include "ct_network.h"

struct ct_network_file {
  uint64_t seed, steps, epochs;
  uint64_t masks; /* the seed of dropout */
  bool kernels;   /* as in struct ct_network_options */
  uint32_t mantissa;
  ct_graph *graph;       /* checked */
  const uint8_t **value; /* by tensor: its reals, in the bytes of the file; NULL: none */
};

/* Takes apart size bytes, which must stay. path: of sentences. Free it either way. */
int ct_network_file_parse(ct_device *dev, const char *path, const uint8_t *data, size_t size,
                          struct ct_network_file *f);
void ct_network_file_free(struct ct_network_file *f);

#endif
