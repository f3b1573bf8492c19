/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole board, Verilated (ct_board), with models of what is at its pins: an SDRAM chip that
 * checks every rule, the FIFO side of an FT232H with a clock of its own, a serial line.
 */
#ifndef BOARD_SIM_H
#define BOARD_SIM_H

#include <stdbool.h>
#include <stdint.h>

/* What the host gives and takes; called from board_sim_step(). */
struct board_host {
  int (*next)(void *arg);                /* the next byte to the board, or -1 */
  void (*came)(void *arg, uint8_t byte); /* one from it */
  void (*flush)(void *arg);              /* what has come goes on: nothing follows soon */
  void *arg;
};

struct board_sim_options {
  bool serial;    /* the host is on the serial line, and there is no add-on: its clock stands */
  unsigned stall; /* percent of the FIFO's cycles in which it has no byte, and no room */
  uint64_t seed;
};

struct board_sim;

/* NULL if there is no memory for it. */
struct board_sim *board_sim_new(const struct board_sim_options *options,
                                const struct board_host *host);
void board_sim_free(struct board_sim *s);

/* To the next edge of a clock. false: something broke a rule, see board_sim_fault(). */
bool board_sim_step(struct board_sim *s);

/* A sentence, or NULL. Valid as long as the board. */
const char *board_sim_fault(const struct board_sim *s);

/* Cycles of the core since the start, and the lamps. */
uint64_t board_sim_cycle(const struct board_sim *s);
uint8_t board_sim_lamps(const struct board_sim *s);

#endif
