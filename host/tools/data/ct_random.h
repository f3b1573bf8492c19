/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets that are drawn: random-HxWxC. */
#ifndef CT_RANDOM_H
#define CT_RANDOM_H

#include <stdbool.h>

#include "ct_dataset.h"
#include "ct_fault.h"

#define CT_RANDOM_NAME "random-"

/* Whether a name is that of such a set. */
bool ct_random_is(const char *name);

/* Draws all images of the set that the fault is about. 0, or -1 after a sentence; what is there is
 * for ct_dataset_free() either way. */
int ct_random_make(struct ct_dataset *ds, const struct ct_fault *f, uint64_t seed);

#endif
