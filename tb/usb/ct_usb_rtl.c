/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_usb_rtl.h"

#include <stdlib.h>

#include "ct_board_usb_dut.h"
#include "host/transports/sim/ct_sdram_chip.h"

enum { FIFO = 1024 }; /* bytes, as in an FT232H */

struct fifo {
  uint8_t byte[FIFO];
  unsigned first, count;
};

struct ct_usb_rtl {
  ct_board_usb_dut *dut;
  ct_sdram_chip *chip;
  struct fifo to, from; /* the board, the host */
  bool flush;
  uint32_t ft_ps, clk_ps;
  uint64_t ft_next, clk_next; /* their next edges, ps */
  struct ct_usb_rtl_counts counts;
};

static void put(struct fifo *f, uint8_t byte) {
  f->byte[(f->first + f->count++) % FIFO] = byte;
}

static uint8_t get(struct fifo *f) {
  const uint8_t byte = f->byte[f->first];
  f->first = (f->first + 1) % FIFO;
  --f->count;
  return byte;
}

/* ---- Clocks --------------------------------------------------------------------------------- */

/* What the SDRAM chip sees and shows at this edge of its clock. */
static void memory_edge(struct ct_usb_rtl *r) {
  const ct_board_usb_dut *d = r->dut;
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
  *d->sdram_dq_i = ct_sdram_chip_cycle(r->chip, &pins);
}

/* The chip's pins before an edge of its clock: its flags say what its FIFOs hold. */
static void show_pins(struct ct_usb_rtl *r) {
  const ct_board_usb_dut *d = r->dut;
  *d->ft_rxf_n_i = r->to.count == 0;
  *d->ft_txe_n_i = r->from.count == FIFO;
  *d->ft_data_i = !*d->ft_oe_n_o && r->to.count ? r->to.byte[r->to.first] : 0xA5;
}

static void count(struct ct_usb_rtl *r, uint64_t *bytes) {
  if (!r->counts.to_board && !r->counts.to_host) r->counts.first = r->counts.cycles;
  r->counts.last = r->counts.cycles;
  ++*bytes;
}

/* What moves at the edge, by the pins before it. */
static void move(struct ct_usb_rtl *r) {
  const ct_board_usb_dut *d = r->dut;
  if (!*d->ft_rd_n_o && !*d->ft_oe_n_o && !*d->ft_rxf_n_i) {
    (void)get(&r->to);
    count(r, &r->counts.to_board);
  }
  if (!*d->ft_wr_n_o && *d->ft_drive_o && !*d->ft_txe_n_i) {
    put(&r->from, *d->ft_data_o);
    count(r, &r->counts.to_host);
  }
  r->flush = r->flush || !*d->ft_siwu_n_o;
  ++r->counts.cycles;
}

/* The next edge of one clock, or of both at once. */
static void edge(struct ct_usb_rtl *r) {
  const ct_board_usb_dut *d = r->dut;
  const uint64_t now = r->ft_next < r->clk_next ? r->ft_next : r->clk_next;
  const bool ft = r->ft_next == now, clk = r->clk_next == now;
  if (ft) show_pins(r);
  if (clk) memory_edge(r);
  *d->ft_clk_i = *d->clk_i = 0;
  ct_board_usb_eval(r->dut);
  if (ft) move(r);
  *d->ft_clk_i = ft;
  *d->clk_i = clk;
  ct_board_usb_eval(r->dut);
  if (ft) r->ft_next += r->ft_ps;
  if (clk) r->clk_next += r->clk_ps;
}

void ct_usb_rtl_run(struct ct_usb_rtl *r, unsigned cycles) {
  const uint64_t end = r->counts.cycles + cycles;
  while (r->counts.cycles < end)
    edge(r);
}

/* ---- The chip's other side ------------------------------------------------------------------ */

size_t ct_usb_rtl_room(const struct ct_usb_rtl *r) {
  return FIFO - r->to.count;
}

void ct_usb_rtl_put(struct ct_usb_rtl *r, const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size && r->to.count < FIFO; ++i)
    put(&r->to, bytes[i]);
}

size_t ct_usb_rtl_get(struct ct_usb_rtl *r, uint8_t *bytes, size_t size, bool *flush) {
  size_t n = 0;
  while (n < size && r->from.count)
    bytes[n++] = get(&r->from);
  *flush = r->flush && !r->from.count;
  r->flush = r->flush && !*flush;
  return n;
}

struct ct_usb_rtl_counts ct_usb_rtl_counts(const struct ct_usb_rtl *r) {
  return r->counts;
}

const char *ct_usb_rtl_fault(const struct ct_usb_rtl *r) {
  return ct_sdram_chip_fault(r->chip);
}

/* ---- Beginning and end ---------------------------------------------------------------------- */

static void reset(struct ct_usb_rtl *r) {
  const ct_board_usb_dut *d = r->dut;
  *d->arst_ni = 0;
  *d->uart_rx_i = 1;
  for (unsigned i = 0; i < 8; ++i)
    edge(r);
  *d->arst_ni = 1;
  r->counts = (struct ct_usb_rtl_counts){0};
}

struct ct_usb_rtl *ct_usb_rtl_new(uint32_t ft_ps, uint32_t clk_ps) {
  struct ct_usb_rtl *r = calloc(1, sizeof *r);
  struct ct_sdram_chip_config config = ct_sdram_chip_default(clk_ps);
  if (!r) return NULL;
  config.power_up_us = 1;
  r->ft_ps = ft_ps;
  r->clk_ps = clk_ps;
  r->ft_next = ft_ps;
  r->clk_next = clk_ps;
  r->chip = ct_sdram_chip_new(&config);
  r->dut = ct_board_usb_new(NULL);
  if (!r->chip || !r->dut) {
    ct_usb_rtl_free(r);
    return NULL;
  }
  reset(r);
  return r;
}

void ct_usb_rtl_free(struct ct_usb_rtl *r) {
  if (!r) return;
  if (r->dut) ct_board_usb_free(r->dut);
  ct_sdram_chip_free(r->chip);
  free(r);
}
