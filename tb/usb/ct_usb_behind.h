/* SPDX-License-Identifier: Apache-2.0 */
/* ct_usb_board with a device behind it, a simulated core or the emulator: a board in C for a bed.
 */
#ifndef CT_USB_BEHIND_H
#define CT_USB_BEHIND_H

#include "ct_usb_board.h"
#include "host/lib/device/ct_device.h"

struct ct_usb_behind {
  struct ct_plugin plugin;
  void *self;
  struct ct_usb_board board;
};

/* device: "sim:..." or "emu:..."; fails the test if there is none. What the board sends goes to
 * send(arg, ...). */
void ct_usb_behind_open(struct ct_usb_behind *b, const char *device,
                        void (*send)(void *arg, const uint8_t *bytes, size_t size), void *arg);
/* Accepts one that was never opened. */
void ct_usb_behind_close(struct ct_usb_behind *b);

/* To be called again and again: the device runs for a while if nothing came from the host (idle),
 * and the board tells of the interrupt. */
void ct_usb_behind_run(struct ct_usb_behind *b, bool idle);

#endif
