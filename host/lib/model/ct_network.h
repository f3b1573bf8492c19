/* SPDX-License-Identifier: Apache-2.0 */
/* A network inside the library: its compiled form, and where its regions lie. */
#ifndef CT_NETWORK_H
#define CT_NETWORK_H

#include "coltrain/network.h"
#include "ct_compile.h"
#include "ct_model.h"

struct ct_network_part {
  struct ct_programs programs;
  uint64_t rows, cycles, commands, expected;
  const char *bound;
};

struct ct_network {
  struct ct_handle handle; /* first */
  ct_device *dev;
  ct_graph *graph; /* its own */
  struct ct_compiled compiled;
  struct ct_network_part *part; /* by stage */
  uint64_t lasting, arena;      /* addresses of regions; 0: none */
  uint64_t external[CT_EXTERNALS];
  uint64_t seed;       /* of dropout */
  bool stale;          /* weights were written since the stages that run once have run */
  enum ct_queue queue; /* of the last run */
  int error;           /* how it ended; CT_ERR_DEVICE: jobs of it may be under way */
  bool changes;        /* runs change weights or states: those stages run each time */
};

/* Where a way of keeping lies: an address. */
uint64_t ct_network_at(const ct_network *n, const struct ct_seat *seat);

/* The matrix of a tensor, rows x cols of it, from its elements, and back. */
size_t ct_lay_elements(const struct ct_lay *lay);
void ct_lay_spread(const struct ct_lay *lay, const float *data, float *matrix);
void ct_lay_gather(const struct ct_lay *lay, const float *matrix, float *data);

/* A matrix to all its places, and back from the best of them. */
int ct_network_put(ct_network *n, const struct ct_mat *mat, const float *matrix);
int ct_network_get(ct_network *n, const struct ct_mat *mat, float *matrix);

#endif
