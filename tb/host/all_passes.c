/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In every test of host code: the loops of all programs that the library makes look at all of their
 * passes, however many that are (ct_lower_look()). The linker sends ct_lower_start() here (--wrap).
 */
#include "all_passes.h"

#include "ct_lower.h"

uint64_t all_passes_look = UINT64_MAX;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
struct ct_lower *__real_ct_lower_start(unsigned args, bool batch);
struct ct_lower *__wrap_ct_lower_start(unsigned args, bool batch);

struct ct_lower *__wrap_ct_lower_start(unsigned args, bool batch) {
  struct ct_lower *l = __real_ct_lower_start(args, batch);
  if (l) ct_lower_look(l, all_passes_look);
  return l;
}
/* NOLINTEND(bugprone-reserved-identifier) */
