/* SPDX-License-Identifier: Apache-2.0 */
/* When the requests of a run arrive, the open loop: lists of ct_arrivals.h at a part of a capacity,
 * or the times of a file. */
#ifndef ARRIVALS_H
#define ARRIVALS_H

#include "cli.h"

enum arrivals_kind { ARRIVALS_POISSON, ARRIVALS_CONSTANT, ARRIVALS_BURSTY, ARRIVALS_FILE };

struct arrivals_options {
  enum arrivals_kind kind;
  uint32_t on_percent; /* of a period, BURSTY */
  uint64_t period;     /* cycles */
  const char *file;    /* CSV, its first column seconds or dates with times */
  bool ring;           /* the file is a ring, entered where the seed says */
};

struct arrivals {
  const struct arrivals_options *o;
  uint64_t seed;
  size_t count;
  uint64_t *cycle; /* count, made by arrivals_make() */
  uint64_t *times; /* of the file, its own unit; NULL */
};

/* "poisson", "constant", "bursty", "trace"; false: none of them. */
const char *arrivals_name(enum arrivals_kind kind);
bool arrivals_by_name(const char *name, enum arrivals_kind *kind);

/* Reads the file, if there is one. 0, or 1 after a sentence; close it either way. */
int arrivals_open(struct arrivals *a, const struct arrivals_options *o, size_t count,
                  uint64_t seed);
void arrivals_close(struct arrivals *a);

/* The list for permille of the capacity: `done` requests in `busy` cycles. 0, or 1 after a
 * sentence. */
int arrivals_make(struct arrivals *a, uint64_t busy, uint64_t done, uint32_t permille);

#endif
