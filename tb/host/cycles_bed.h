/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the model of time is held against simulated cores: jobs are run, and cycles, beats, rows,
 * commands and the work of each unit compared with what it says.
 */
#ifndef CYCLES_BED_H
#define CYCLES_BED_H

#include "coltrain/coltrain.h"
#include "ct_cycles.h"
#include "ct_prog.h"

/* Device memory of a bed: of each of the things in it, and of all. */
enum { CYCLES_PART = 4 << 20, CYCLES_PARTS = 12 };

struct cycles_bed {
  const char *uri;
  ct_device *dev;
  enum ct_queue queue;
  struct ct_cycles_core core;
  uint32_t spm_words, unit; /* of the window that programs get; where its memory begins */
  unsigned cases, wrong;
};

/* latency, bytes: of the memory that the uri asks for; 0: it does not. */
void cycles_open(struct cycles_bed *b, const char *uri, enum ct_queue queue, uint32_t latency,
                 uint32_t bytes);
/* Fails if a comparison did. */
void cycles_close(struct cycles_bed *b);

/* Runs jobs in a row and compares. SHOW=1 prints a line of the table. */
void cycles_compare(struct cycles_bed *b, const char *name, const struct ct_codes *codes,
                    const uint32_t *args);

/* The first unit of part i of its memory. */
static inline uint32_t cycles_part(const struct cycles_bed *b, unsigned i) {
  return b->unit + i * (uint32_t)(CYCLES_PART / 16);
}

#endif
