/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board's end of the protocol of docs/usb.md, over any transport as the device: what the RTL's
 * bridge has to do, in C.
 */
#ifndef CT_USB_BOARD_H
#define CT_USB_BOARD_H

#include "host/transports/ct_transport.h"
#include "host/transports/frames/ct_usb_frame.h"

struct ct_usb_board {
  const struct ct_transport_ops *ops;
  void *self;
  void (*send)(void *arg, const uint8_t *bytes, size_t size);
  void *arg;
  uint16_t version; /* that HELLO answers */
  struct ct_usb_parser parser;
  struct ct_usb_frame answer; /* the last one, for a repeated request */
  bool kept;                  /* there is one */
  bool announced;             /* the last frame said that the interrupt is up, and it is since */
  unsigned long done, again;  /* requests done, and answered again without being done */
};

/* A byte from the host. */
void ct_usb_board_take(struct ct_usb_board *board, uint8_t byte);

/* To be called now and then: tells of the interrupt. */
void ct_usb_board_look(struct ct_usb_board *board);

#endif
