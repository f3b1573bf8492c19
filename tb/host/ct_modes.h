/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Root in the place of an ordinary user: what the modes of files forbid is forbidden to this
 * thread, too. So tests of missing permissions mean something whoever runs them, and what only root
 * may reach, such as a build below its home, stays in reach.
 */
#ifndef CT_MODES_H
#define CT_MODES_H

#include <stdbool.h>

/* From here on, or no longer. Fails the test if that cannot be had. */
void ct_obey_modes(bool obey);

#endif
