/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Verilated board (ct_board: FT245 pins, bridge, 16x8 core, SDRAM controller) between a model
 * of an SDRAM chip and the FIFOs of a model of an FT232H. Time passes in ct_usb_rtl_run() only.
 */
#ifndef CT_USB_RTL_H
#define CT_USB_RTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_usb_rtl;

/* ft_ps, clk_ps: periods of the chip's clock and the board's. NULL: no memory. */
struct ct_usb_rtl *ct_usb_rtl_new(uint32_t ft_ps, uint32_t clk_ps);
/* Accepts NULL. */
void ct_usb_rtl_free(struct ct_usb_rtl *rtl);

/* Places for bytes in the chip's FIFO to the board, and puts bytes there. */
size_t ct_usb_rtl_room(const struct ct_usb_rtl *rtl);
void ct_usb_rtl_put(struct ct_usb_rtl *rtl, const uint8_t *bytes, size_t size);

/* Takes up to size bytes out of the FIFO to the host. *flush: what was there is to leave at once;
 * asking forgets it. */
size_t ct_usb_rtl_get(struct ct_usb_rtl *rtl, uint8_t *bytes, size_t size, bool *flush);

/* Runs for so many cycles of the chip's clock. */
void ct_usb_rtl_run(struct ct_usb_rtl *rtl, unsigned cycles);

struct ct_usb_rtl_counts {
  uint64_t cycles;            /* of the chip's clock */
  uint64_t to_board, to_host; /* bytes moved at the pins */
  uint64_t first, last;       /* cycles in which the first and the last of them moved */
};
struct ct_usb_rtl_counts ct_usb_rtl_counts(const struct ct_usb_rtl *rtl);

/* The first rule of the SDRAM chip that was broken, or NULL. */
const char *ct_usb_rtl_fault(const struct ct_usb_rtl *rtl);

#endif
