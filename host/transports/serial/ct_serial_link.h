/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to and from a board on a serial port: raw, 8 data bits, no parity, one stop bit, no flow
 * control. A thread of its own takes what comes, and notices when the port goes away.
 */
#ifndef CT_SERIAL_LINK_H
#define CT_SERIAL_LINK_H

#include "host/transports/frames/ct_line.h"

struct ct_serial_where {
  char file[256];
  uint32_t baud;
};

/* Opens the port for this user alone: CT_ERR_BUSY if another program has it so. On failure returns
 * CT_ERR_* and writes a sentence to why. */
int ct_serial_link_open(const struct ct_serial_where *where, ct_line_take *take, void *arg,
                        void **link, char *why, size_t whysize);

/* As struct ct_line_ops wants them. */
void ct_serial_link_close(void *link);
int ct_serial_link_send(void *link, const uint8_t *bytes, size_t size, unsigned timeout_ms);
const char *ct_serial_link_error(void *link);
const char *ct_serial_link_name(const void *link);

#endif
