/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest programs for tests of what happens around a job. */
#ifndef TINY_PROGRAM_H
#define TINY_PROGRAM_H

#include <stdbool.h>

#include "coltrain/coltrain.h"

/* Ends at once; endless: waits for a semaphore that nobody signals. Fails the test if it cannot be
 * loaded; free it with ct_program_free(). */
ct_program *tiny_program(ct_device *dev, bool endless);

#endif
