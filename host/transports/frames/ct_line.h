/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries the bytes of frames to a board and from it: libusb (usb/ct_usb_link.c) or a serial
 * port (serial/ct_serial_link.c). Bytes may get lost or damaged on the way.
 */
#ifndef CT_LINE_H
#define CT_LINE_H

#include <stddef.h>
#include <stdint.h>

/* Called in a thread of the line's with bytes from the board. bytes NULL: there will be no more. It
 * may be called before the line's open function returns, not after close has. */
typedef void ct_line_take(void *arg, const uint8_t *bytes, size_t size);

struct ct_line_ops {
  /* Sends bytes, in the order of the calls; they are the caller's again when it returns.
   * CT_ERR_TIMEOUT: for timeout_ms the line took none; some may be lost. CT_ERR_DEVICE: it is
   * gone. */
  int (*send)(void *line, const uint8_t *bytes, size_t size, unsigned timeout_ms);

  /* Why it is gone, as the end of a sentence; "" if it is not. */
  const char *(*error)(void *line);

  /* "the board at bus 1, address 2" */
  const char *(*name)(const void *line);

  /* Within half a second, whatever the board does; accepts NULL. */
  void (*close)(void *line);
};

/* What a line can bear. */
struct ct_line_limits {
  unsigned reads, writes; /* requests under way that read, that write, memory */
  uint64_t rate;          /* bytes a second each way at most; 0: not known */
};

#endif
