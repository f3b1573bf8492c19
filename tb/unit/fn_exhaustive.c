/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions over all 2^32 inputs each: some ten minutes. The worst cases that docs/numerics.md
 * quotes come from here.
 *
 *   make build/tb/fn_exhaustive
 *   build/tb/fn_exhaustive [stride]    one of every `stride` blocks of 4096 inputs (default 1: all)
 */
#include <stdio.h>
#include <stdlib.h>

#include "fn_check.h"

int main(int argc, char **argv) {
  const uint32_t stride = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 1;
  int bad = 0;
  if (!stride) return 2;
  for (enum ct_fn fn = CT_FN_EXP; fn <= CT_FN_RSQRT; ++fn) {
    const fn_report report = fn_check(fn, stride, 0);
    fn_print(fn, &report);
    fflush(stdout);
    bad |= report.bad != 0;
  }
  return bad;
}
