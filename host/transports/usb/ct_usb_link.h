/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to and from a board behind an FT232H or FT2232H in synchronous 245 FIFO mode, by libusb.
 *
 * A thread of its own handles libusb's events and keeps reads waiting at the chip, so that bytes
 * are taken, and an unplugged board is noticed, whether the owner is in a call or not.
 */
#ifndef CT_USB_LINK_H
#define CT_USB_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "host/transports/ct_transport.h"

/* Which board; zeros and an empty text mean any. */
struct ct_usb_where {
  char serial[64];
  uint64_t bus, address;
  uint64_t vid, pid; /* pid 0: that of an FT232H or FT2232H */
  uint64_t latency;  /* of the chip's timer, ms */
};

/* Called in the link's thread with bytes from the board. bytes NULL: there will be no more. It may
 * be called before ct_usb_link_open() returns, not after ct_usb_link_close() has. */
typedef void ct_usb_link_take(void *arg, const uint8_t *bytes, size_t size);

struct ct_usb_link;

/* Opens the first board that fits and puts the chip into FIFO mode. On failure returns CT_ERR_* and
 * writes a sentence to why. */
int ct_usb_link_open(const struct ct_usb_where *where, ct_usb_link_take *take, void *arg,
                     struct ct_usb_link **link, char *why, size_t whysize);

/* Tells of the boards there are (ct_transport.h), by their serial numbers, else by their places. */
int ct_usb_link_list(ct_transport_found *found, void *arg);

/* Within half a second, whatever the board does; accepts NULL. */
void ct_usb_link_close(struct ct_usb_link *link);

/* Sends bytes (libusb wants them writable). CT_ERR_TIMEOUT: the chip took not all of them in time;
 * CT_ERR_DEVICE: it is gone. */
int ct_usb_link_send(struct ct_usb_link *link, uint8_t *bytes, size_t size, unsigned timeout_ms);

/* Why it is gone, as the end of a sentence; "" if it is not. */
const char *ct_usb_link_error(struct ct_usb_link *link);

/* "the board at bus 1, address 2" */
const char *ct_usb_link_name(const struct ct_usb_link *link);

#endif
