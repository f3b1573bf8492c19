/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In every test of host code: the loops of all programs that the library makes look at all of their
 * passes, however many that are (ct_lower_look()). The linker sends ct_lower_start() here (--wrap).
 */
#include "all_passes.h"

#include "ct_lower.h"

static uint64_t records = UINT64_MAX;

void all_passes(bool all) {
  records = all ? UINT64_MAX : CT_LOOK;
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
struct ct_lower *__real_ct_lower_start(unsigned args, bool batch);
struct ct_lower *__wrap_ct_lower_start(unsigned args, bool batch);

struct ct_lower *__wrap_ct_lower_start(unsigned args, bool batch) {
  struct ct_lower *l = __real_ct_lower_start(args, batch);
  if (l) ct_lower_look(l, records);
  return l;
}
/* NOLINTEND(bugprone-reserved-identifier) */
