/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes whose activations stay in the scratchpad: the first two ways of ct_prog_infer().
 */
#ifndef CT_INFER_WIDE_H
#define CT_INFER_WIDE_H

#include "ct_prog.h"

/* Block by block, the fastest; *code may have weights that stay. CT_ERR_NO_SPACE if that takes too
 * many commands or too much room. */
int ct_infer_flat(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why);

/* In loops, with few commands and little room. shape is neither pinned nor resident. */
int ct_infer_wide(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why);

#endif
