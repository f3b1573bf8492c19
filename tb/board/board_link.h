/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plug-in of a simulated board (board_link.c) offers beside its entry point, by these
 * names; both are of the board that was opened last.
 */
#ifndef BOARD_LINK_H
#define BOARD_LINK_H

#include <stddef.h>
#include <stdint.h>

/* The lamps that were on at any time since the last call, or since the start: bit 0 is LED 0. */
uint8_t board_link_lamps(void);

/* Bytes to the board between frames: noise on the line. */
void board_link_noise(const uint8_t *bytes, size_t size);

#endif
