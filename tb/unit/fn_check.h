/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the functions of host/emu/ct_num.c against libm in double precision: error, monotonicity,
 * exactness. Shared by test_fn (a sample) and fn_exhaustive (every input).
 */
#ifndef FN_CHECK_H
#define FN_CHECK_H

#include <stdint.h>

#include "host/emu/ct_num.h"

typedef struct {
  uint64_t inputs, bad;
  uint32_t first_bad;    /* the first input that broke a rule, when bad > 0 */
  const char *first_why; /* and the rule */
  double relative;       /* worst relative error, log within 2^-4 of 1 left out */
  uint32_t relative_at;
  double absolute; /* log only: worst absolute error within 2^-4 of 1 */
  uint32_t absolute_at;
} fn_report;

/* Runs through one function in ascending order of the argument, from -NaN to +NaN; of every
 * `stride` blocks of 4096 neighbouring inputs it takes one, the block `first` in the first round.
 */
fn_report fn_check(enum ct_fn fn, uint32_t stride, uint32_t first);

/* One line on standard output. */
void fn_print(enum ct_fn fn, const fn_report *report);

#endif
