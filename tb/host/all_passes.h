/* SPDX-License-Identifier: Apache-2.0 */
/* How closely the loops of programs are looked at, in every test of host code: all_passes.c. */
#ifndef ALL_PASSES_H
#define ALL_PASSES_H

#include <stdbool.h>

/* All passes, from here on, as when a test begins; false: as many as in the library, for shapes
 * that take minutes otherwise. */
void all_passes(bool all);

#endif
