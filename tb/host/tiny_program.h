/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest programs for tests of what happens around a job; and devices that do not open. */
#ifndef TINY_PROGRAM_H
#define TINY_PROGRAM_H

#include <stdbool.h>

#include "coltrain/coltrain.h"

/* Ends at once; endless: waits for a semaphore that nobody signals. Fails the test if it cannot be
 * loaded; free it with ct_program_free(). */
ct_program *tiny_program(ct_device *dev, bool endless);

/* An endless program at the head of a queue: what is submitted behind it waits until it is let go.
 * `emu`: the emulator has no time, so its device is frozen meanwhile. Returns the job's tag. */
uint64_t tiny_hold(ct_device *dev, enum ct_queue queue, ct_program *endless, bool emu);
void tiny_let_go(ct_device *dev, uint64_t tag, bool emu);

/* Opening the device gives this error within three seconds, and a sentence with this text. */
void tiny_refused(const char *uri, int error, const char *text);

#endif
