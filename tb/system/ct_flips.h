/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single bits of the scratchpad turn over while jobs run in both contexts. Every flip has to be
 * reported by the job whose window it hit (PARITY, with the word's address) or to be without
 * effect, which means: the word was written over before anybody read it, or nobody read it again.
 * In both cases all of device memory must come out as on the emulator, which knows of no flip, and
 * the context that was hit must do its next jobs right.
 *
 * What the core did with the word is seen by a monitor beside it (ct_watch.h); that the word is
 * as it should be, but for the bit, is looked up by DBG_PEEK.
 *
 * In three of seven scenes training keeps its activations compressed (ct_kept.h), so bits turn over
 * in words that ST encodes and in words that the decoder has written.
 */
#ifndef CT_FLIPS_H
#define CT_FLIPS_H

#include <stdio.h>

#include "ct_pair.h"
#include "ct_watch.h"

enum ct_flip_class {
  CT_FLIP_REPORTED_A, /* by the unit that read it first */
  CT_FLIP_REPORTED_B,
  CT_FLIP_REPORTED_VL,
  CT_FLIP_REPORTED_ST,
  CT_FLIP_WRITTEN, /* without effect: written over before any read */
  CT_FLIP_UNREAD,  /* without effect: not read again */
  CT_FLIP_MASKED,  /* wrong: read, not reported, memory right all the same */
  CT_FLIP_SILENT,  /* wrong: not reported, memory or scratchpad not as without the flip */
  CT_FLIP_OTHER,   /* wrong: another error or address, another context, no recovery */
  CT_FLIP_CLASSES,
  CT_FLIP_WRONG = CT_FLIP_MASKED /* from here on */
};
enum { CT_FLIP_BITS = 3 }; /* mantissa, exponent, parity */

/* Of words in which activations are kept: before they are encoded, when they are decoded. */
enum { CT_FLIP_ENCODED, CT_FLIP_DECODED, CT_FLIP_KEPT };

struct ct_flips {
  const struct ct_core *core;
  ct_watch_fn *look;
  unsigned long count;
  uint64_t stream;           /* of random numbers */
  void (*start)(void *self); /* called with the opened device; may be NULL */
  bool stop;                 /* at the first that is wrong */
};

struct ct_flips_result {
  unsigned long count[CT_FLIP_CLASSES][CT_FLIP_BITS];
  unsigned long kept[CT_FLIP_CLASSES][CT_FLIP_KEPT]; /* of these */
  unsigned long flips, wrong, late; /* late: came after the last job's end and was drawn again */
  unsigned long jobs;
  uint64_t cycles;
};

void ct_flips_run(const struct ct_flips *setup, struct ct_flips_result *result);
void ct_flips_print(const struct ct_flips_result *result);
/* As in docs/data/faults-flips.csv, and the row of faults-flips-run.csv with its head. */
void ct_flips_csv(FILE *file, const struct ct_flips_result *result, const char *rtl_commit);
void ct_flips_csv_run(FILE *file, const struct ct_flips_result *result, const char *rtl_commit);

#endif
