/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An FT232H in synchronous 245 FIFO mode as a host on USB sees it: descriptors, requests, packets
 * that two status bytes head. Behind its pins is the Verilated board of ct_usb_rtl.h. Time passes
 * in ct_usb_chip_run() only, but for the latency timer, which is the host's time.
 */
#ifndef CT_USB_CHIP_H
#define CT_USB_CHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  CT_USB_CHIP_VENDOR = 0x0403,
  CT_USB_CHIP_PRODUCT = 0x6014,
  CT_USB_CHIP_VERSION = 0x0900, /* bcdDevice: drivers know the FT232H by it */
  CT_USB_CHIP_OUT = 0x02,       /* bulk endpoints */
  CT_USB_CHIP_IN = 0x81,
  CT_USB_CHIP_PACKET = 512,
  CT_USB_CHIP_REPLY = 256, /* most bytes of an answer to a request */
  CT_USB_CHIP_STALL = -1
};

struct ct_usb_chip;

/* A board that has just got power. serial: at most 60 characters. NULL: no memory. */
struct ct_usb_chip *ct_usb_chip_new(const char *serial);
/* Accepts NULL. */
void ct_usb_chip_free(struct ct_usb_chip *chip);

struct ct_usb_setup {
  uint8_t type, request;
  uint16_t value, index, length;
};

/* Answers a request with so many bytes, at most setup->length, in reply, or with
 * CT_USB_CHIP_STALL. */
int ct_usb_chip_request(struct ct_usb_chip *chip, const struct ct_usb_setup *setup, uint8_t *reply);

/* Takes bytes for the board, as many as its FIFO has places for. */
size_t ct_usb_chip_take(struct ct_usb_chip *chip, const uint8_t *bytes, size_t size);

/* Goes on with a transfer of size bytes to the host, of which *at are there. True: it is over,
 * since it is full or its last packet was a short one. */
bool ct_usb_chip_give(struct ct_usb_chip *chip, uint8_t *bytes, size_t size, size_t *at);

/* Runs for so many cycles of the chip's clock. */
void ct_usb_chip_run(struct ct_usb_chip *chip, unsigned cycles);

/* The first rule of the board's memory that was broken, or NULL. */
const char *ct_usb_chip_fault(const struct ct_usb_chip *chip);

#endif
