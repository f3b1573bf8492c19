/* SPDX-License-Identifier: Apache-2.0 */
/* How closely the loops of programs are looked at, in every test of host code: all_passes.c. */
#ifndef ALL_PASSES_H
#define ALL_PASSES_H

#include <stdint.h>

/* As for ct_lower_look(): no limit. For shapes that take minutes so: CT_LOOK. */
extern uint64_t all_passes_look;

#endif
