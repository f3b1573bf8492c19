/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to and from a board behind an FT232H or FT2232H in synchronous 245 FIFO mode, by libusb.
 *
 * A thread of its own handles libusb's events and keeps reads waiting at the chip, so that bytes
 * are taken, and an unplugged board is noticed, whether the owner is in a call or not. Several
 * writes are under way at a time, so that the chip has the next one when one is over.
 */
#ifndef CT_USB_LINK_H
#define CT_USB_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "host/transports/ct_transport.h"
#include "host/transports/frames/ct_line.h"

/* Which board; zeros and an empty text mean any. */
struct ct_usb_where {
  char serial[64];
  uint64_t bus, address;
  uint64_t vid, pid; /* pid 0: that of an FT232H or FT2232H */
  uint64_t latency;  /* of the chip's timer, ms */
};

/* Opens the first board that fits and puts the chip into FIFO mode. On failure returns CT_ERR_* and
 * writes a sentence to why. */
int ct_usb_link_open(const struct ct_usb_where *where, ct_line_take *take, void *arg, void **link,
                     char *why, size_t whysize);

/* Tells of the boards there are (ct_transport.h), by their serial numbers, else by their places. */
int ct_usb_link_list(ct_transport_found *found, void *arg);

/* As struct ct_line_ops wants them. */
void ct_usb_link_close(void *link);
int ct_usb_link_send(void *link, const uint8_t *bytes, size_t size, unsigned timeout_ms);
const char *ct_usb_link_error(void *link);
const char *ct_usb_link_name(const void *link);

#endif
