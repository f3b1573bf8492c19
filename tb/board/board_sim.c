/* SPDX-License-Identifier: Apache-2.0 */
#include "board_sim.h"

#include <stdlib.h>

#include "ct_board_dut.h"
#include "host/transports/sim/ct_sdram_chip.h"

#ifndef BOARD_MHZ
#define BOARD_MHZ 40 /* the core, what ClockHz of the model says */
#endif

/* The board's clocks and the serial line, in picoseconds: 60 MHz of the FIFO, 3 Mbaud. */
enum { CORE_PS = 1000000 / BOARD_MHZ, FT_PS = 16667, BIT_PS = 333333 };
enum { RESET_CYCLES = 8, SILENCE_BITS = 30 };

/* A byte on a serial line: bits are counted from its start bit. */
struct serial {
  bool busy;
  unsigned bit; /* the one that is next */
  uint16_t bits;
  uint64_t at; /* when */
};

struct board_sim {
  ct_board_dut *dut;
  ct_sdram_chip *chip;
  struct board_sim_options options;
  struct board_host host;
  uint64_t rng;
  uint64_t now, core_at, ft_at; /* times: this one, of the next edges */
  uint64_t cycle;
  int waiting;            /* the byte the FIFO shows, or -1 */
  bool driven;            /* the board drove the FIFO's pins at the last edge */
  struct serial to, from; /* the serial line's two directions */
  bool unflushed;         /* a byte came on it, and silence has not been told */
  const char *fault;
};

static bool chance(struct board_sim *s, unsigned percent) {
  s->rng = s->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (s->rng >> 33) % 100 < percent;
}

static void broke(struct board_sim *s, const char *why) {
  if (!s->fault && why) s->fault = why;
}

/* ---- The serial line ------------------------------------------------------------------------ */

/* The level the host drives now. */
static bool serial_level(struct board_sim *s) {
  struct serial *l = &s->to;
  if (!l->busy) {
    const int byte = s->host.next(s->host.arg);
    if (byte < 0) return true;
    *l = (struct serial){.busy = true, .bits = (uint16_t)(0x200 | byte << 1), .at = s->now};
  }
  while (l->busy && s->now >= l->at + BIT_PS) {
    l->at += BIT_PS;
    l->busy = ++l->bit < 10;
  }
  return !l->busy || (l->bits >> l->bit & 1);
}

/* The level that the board drives is looked at in the middle of each bit. */
static void serial_take(struct board_sim *s, bool level) {
  struct serial *l = &s->from;
  if (!l->busy && !level) *l = (struct serial){.busy = true, .at = s->now + BIT_PS / 2};
  if (!l->busy && s->unflushed && s->now > l->at + (uint64_t)SILENCE_BITS * BIT_PS) {
    s->unflushed = false;
    s->host.flush(s->host.arg);
  }
  if (!l->busy || s->now < l->at) return;
  l->bits |= (uint16_t)(level << l->bit);
  l->at += BIT_PS;
  if (++l->bit < 10) return;
  l->busy = false;
  if ((l->bits & 0x201) != 0x200) broke(s, "a byte on the serial line has no start or stop bit");
  s->unflushed = true;
  s->host.came(s->host.arg, (uint8_t)(l->bits >> 1));
}

/* ---- Edges ---------------------------------------------------------------------------------- */

static void core_edge(struct board_sim *s) {
  const ct_board_dut *d = s->dut;
  const struct ct_sdram_pins pins = {.cke = *d->sdram_cke_o,
                                     .cs_n = *d->sdram_cs_no,
                                     .ras_n = *d->sdram_ras_no,
                                     .cas_n = *d->sdram_cas_no,
                                     .we_n = *d->sdram_we_no,
                                     .dq_oe = *d->sdram_dq_oe_o,
                                     .ba = *d->sdram_ba_o,
                                     .dqm = *d->sdram_dqm_o,
                                     .a = *d->sdram_a_o,
                                     .dq = *d->sdram_dq_o};
  *d->clk_i = 0;
  /* (Before its first reset the board has no pins yet, as an FPGA that is not configured.) */
  if (s->cycle >= RESET_CYCLES) *d->sdram_dq_i = ct_sdram_chip_cycle(s->chip, &pins);
  *d->uart_rx_i = s->options.serial ? serial_level(s) : 1;
  if (s->options.serial && s->cycle >= RESET_CYCLES) serial_take(s, *d->uart_tx_o);
  *d->arst_ni = s->cycle >= RESET_CYCLES;
  ct_board_eval(s->dut);
  *d->clk_i = 1;
  ct_board_eval(s->dut);
  ++s->cycle;
  broke(s, ct_sdram_chip_fault(s->chip));
}

/* What the chip does at an edge of its clock, by the pins as they were before it. */
static void ft_edge(struct board_sim *s) {
  const ct_board_dut *d = s->dut;
  const bool oe = !*d->ft_oe_n_o, drive = *d->ft_drive_o;
  const bool reads = oe && !*d->ft_rd_n_o && !*d->ft_rxf_n_i;
  const bool writes = !*d->ft_wr_n_o && !*d->ft_txe_n_i;
  const uint8_t byte = *d->ft_data_o;
  if (oe && (drive || s->driven)) broke(s, "the board drives the FIFO's data while the chip does");
  if (writes && !drive) broke(s, "the board writes a byte that it does not drive");
  s->driven = drive;
  *d->ft_clk_i = 0;
  ct_board_eval(s->dut);
  *d->ft_clk_i = 1;
  ct_board_eval(s->dut);
  if (writes) s->host.came(s->host.arg, byte);
  if (!*d->ft_siwu_n_o) s->host.flush(s->host.arg);
  if (reads) s->waiting = -1;
  if (s->waiting < 0) s->waiting = s->host.next(s->host.arg);
  *d->ft_rxf_n_i = s->waiting < 0 || chance(s, s->options.stall);
  *d->ft_txe_n_i = chance(s, s->options.stall);
  *d->ft_data_i = !*d->ft_oe_n_o && s->waiting >= 0 ? (uint8_t)s->waiting : (uint8_t)s->cycle;
}

bool board_sim_step(struct board_sim *s) {
  if (s->options.serial || s->core_at <= s->ft_at) {
    s->now = s->core_at;
    s->core_at += CORE_PS;
    core_edge(s);
  } else {
    s->now = s->ft_at;
    s->ft_at += FT_PS;
    ft_edge(s);
  }
  return !s->fault;
}

/* ---- Beginning and end ---------------------------------------------------------------------- */

struct board_sim *board_sim_new(const struct board_sim_options *options,
                                const struct board_host *host) {
  struct board_sim *s = calloc(1, sizeof *s);
  const struct ct_sdram_chip_config config = ct_sdram_chip_default(CORE_PS);
  if (!s) return NULL;
  s->options = *options;
  s->host = *host;
  s->rng = options->seed;
  s->waiting = -1;
  s->core_at = CORE_PS;
  s->ft_at = FT_PS;
  s->chip = ct_sdram_chip_new(&config);
  s->dut = s->chip ? ct_board_new(NULL) : NULL;
  if (!s->dut) {
    board_sim_free(s);
    return NULL;
  }
  *s->dut->ft_rxf_n_i = *s->dut->ft_txe_n_i = *s->dut->uart_rx_i = 1;
  return s;
}

void board_sim_free(struct board_sim *s) {
  if (!s) return;
  if (s->dut) ct_board_free(s->dut);
  ct_sdram_chip_free(s->chip);
  free(s);
}

const char *board_sim_fault(const struct board_sim *s) {
  return s->fault;
}

uint64_t board_sim_cycle(const struct board_sim *s) {
  return s->cycle;
}

uint8_t board_sim_lamps(const struct board_sim *s) {
  return *s->dut->led_o;
}
