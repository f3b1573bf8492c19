/* SPDX-License-Identifier: Apache-2.0 */
/* A small program: the copy of some units from r1 to r2, in one job. */
#ifndef ONE_COPY_H
#define ONE_COPY_H

#include <stdlib.h>

#include "ct_prog.h"
#include "ct_tb.h"

/* As ct_prog_copies(). */
static inline int one_copy(uint32_t units, uint32_t spm_words, struct ct_code *code,
                           const struct ct_why *why) {
  struct ct_codes codes;
  *code = (struct ct_code){.cmd = NULL};
  const int err = ct_prog_copies(&(struct ct_stretch){.units = units}, 1, spm_words, &codes, why);
  if (err) return err;
  assert_int_equal(codes.count, 1);
  *code = codes.job[0];
  free(codes.job);
  return CT_OK;
}

#endif
