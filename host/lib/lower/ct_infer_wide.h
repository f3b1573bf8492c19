/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes in loops, with few commands and little room: the second way of ct_prog_infer(). */
#ifndef CT_INFER_WIDE_H
#define CT_INFER_WIDE_H

#include "ct_prog.h"

/* shape is neither pinned nor resident. */
int ct_infer_wide(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why);

#endif
