/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in "serial:": a board on a serial port (docs/serial.md). */
#include <stdio.h>

#include "coltrain/coltrain.h" /* the errors transports return */
#include "ct_serial_link.h"
#include "host/transports/frames/ct_frames.h"

enum {
  BITS = 10,         /* of a byte on the line */
  FRAME = 2064,      /* bytes of the longest frame */
  LEAST_MS = 700,    /* of timeout=, unless it is given */
  ATTEMPT_PART = 15, /* the first attempt has that part of it */
  ADAPTER_MS = 20    /* may pass in an adapter, there and back */
};

static const char hint[] =
    "is the FPGA configured with Coltrain's bridge, and is this its port and its rate (baud=)? "
    "(docs/serial.md)";

/* The first attempt must have time for the longest frame there and back. */
static uint64_t timeout_of(uint64_t baud) {
  const uint64_t frame_ms = (uint64_t)FRAME * BITS * 1000 / baud;
  const uint64_t ms = ATTEMPT_PART * (2 * frame_ms + ADAPTER_MS);
  return ms < LEAST_MS ? LEAST_MS : ms;
}

/* The board has no way to hold the line: of requests it takes one while it answers another and a
 * third waits, and loses what comes then. Writes are answered sooner than they come. */
static struct ct_line_limits limits_of(uint64_t baud) {
  return (struct ct_line_limits){.reads = 3, .writes = 8, .rate = baud / BITS};
}

static int open_line(const struct ct_uri *uri, struct ct_frames *f, char *why, size_t whysize) {
  static const struct ct_line_ops line = {.send = ct_serial_link_send,
                                          .error = ct_serial_link_error,
                                          .name = ct_serial_link_name,
                                          .close = ct_serial_link_close};
  const uint64_t baud = ct_uri_number(uri, "baud");
  const struct ct_line_limits limits = limits_of(baud);
  struct ct_serial_where where = {.baud = (uint32_t)baud};
  void *link = NULL;
  snprintf(where.file, sizeof where.file, "%.*s", (int)uri->file_length, uri->file);
  const int err = ct_serial_link_open(&where, ct_frames_take, f, &link, why, whysize);
  if (err) return err;
  ct_frames_set_line(f, &line, link, &limits);
  return ct_frames_greet(f, hint, why, whysize);
}

static int serial_open(const char *args, void **self, char *why, size_t whysize) {
  struct ct_uri uri;
  struct ct_frames *f = NULL;
  if (!ct_uri_parse(&uri, "serial", args, why, whysize)) return CT_ERR_ARG;
  if (!uri.file_length) {
    snprintf(why, whysize, "serial: needs the port, as in serial:/dev/ttyUSB0");
    return CT_ERR_ARG;
  }
  uint64_t timeout = ct_uri_number(&uri, "timeout");
  if (!timeout) timeout = timeout_of(ct_uri_number(&uri, "baud"));
  int err =
      ct_frames_new((unsigned)timeout, (uint32_t)ct_uri_number(&uri, "clock"), &f, why, whysize);
  if (!err) err = open_line(&uri, f, why, whysize);
  if (err)
    ct_frames_close(f);
  else
    *self = f;
  return err;
}

/* None is told of: what is behind a port shows only when it is opened and written to, and what is
 * behind it may be anything. */
static int serial_list(ct_transport_found *found, void *arg) {
  (void)found;
  (void)arg;
  return CT_OK;
}

const struct ct_transport_ops *ct_transport_plugin(void) {
  static const struct ct_transport_ops ops = {CT_FRAMES_OPS, .scheme = "serial",
                                              .open = serial_open, .list = serial_list};
  return &ops;
}
