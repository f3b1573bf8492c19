/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in "usb:": a board behind an FT232H or FT2232H (docs/usb.md). */
#include <stdbool.h>
#include <stdlib.h>

#include "coltrain/coltrain.h" /* the errors transports return */
#include "ct_usb_link.h"
#include "host/transports/frames/ct_frames.h"

/* The chip's FIFO has 60 MHz and a byte each. */
static const struct ct_line_limits limits = {.reads = 32, .writes = 32, .rate = 60000000};

static const char hint[] =
    "is the FPGA configured with Coltrain's USB bridge, and the chip set to 245 FIFO mode in its "
    "EEPROM? (docs/usb.md)";

static int usb_open(const char *args, void **self, char *why, size_t whysize) {
  static const struct ct_line_ops line = {.send = ct_usb_link_send,
                                          .error = ct_usb_link_error,
                                          .name = ct_usb_link_name,
                                          .close = ct_usb_link_close};
  struct ct_uri uri;
  struct ct_frames *f = NULL;
  void *link = NULL;
  if (!ct_uri_parse(&uri, "usb", args, why, whysize)) return CT_ERR_ARG;
  struct ct_usb_where where = {.bus = ct_uri_number(&uri, "bus"),
                               .address = ct_uri_number(&uri, "addr"),
                               .vid = ct_uri_number(&uri, "vid"),
                               .pid = ct_uri_number(&uri, "pid"),
                               .latency = ct_uri_number(&uri, "latency")};
  ct_uri_text(&uri, "serial", where.serial, sizeof where.serial);
  int err = ct_frames_new((unsigned)ct_uri_number(&uri, "timeout"),
                          (uint32_t)ct_uri_number(&uri, "clock"), &f, why, whysize);
  if (!err) err = ct_usb_link_open(&where, ct_frames_take, f, &link, why, whysize);
  if (!err) {
    ct_frames_set_line(f, &line, link, &limits);
    err = ct_frames_greet(f, hint, why, whysize);
  }
  if (err)
    ct_frames_close(f);
  else
    *self = f;
  return err;
}

const struct ct_transport_ops *ct_transport_plugin(void) {
  static const struct ct_transport_ops ops = {CT_FRAMES_OPS, .scheme = "usb", .open = usb_open,
                                              .list = ct_usb_link_list};
  return &ops;
}
