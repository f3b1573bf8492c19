/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes whose activations go through device memory. See ct_infer_spilled.c. */
#ifndef CT_INFER_SPILLED_H
#define CT_INFER_SPILLED_H

#include "ct_prog.h"

/* *shape->work is how many units of workspace it takes. */
int ct_infer_spilled(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why);

#endif
