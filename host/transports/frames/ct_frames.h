/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A board that speaks the protocol of docs/usb.md, behind any line: what a transport must offer
 * (ct_transport.h), but for opening. A plug-in makes one, opens its line, and starts it; its table
 * has CT_FRAMES_OPS.
 *
 * Register accesses and short memory accesses are one frame and one round trip; a short write to
 * memory is kept back and travels in front of whatever comes next, so that a descriptor and its
 * doorbell are one frame.
 */
#ifndef CT_FRAMES_H
#define CT_FRAMES_H

#include "ct_line.h"
#include "host/transports/ct_transport.h"
#include "host/transports/ct_uri.h"

struct ct_frames;

/* timeout_ms: of a request, all repetitions included; given_hz: the clock of a board that cannot
 * tell, or 0. On failure writes a sentence to why. */
int ct_frames_new(unsigned timeout_ms, uint32_t given_hz, struct ct_frames **frames, char *why,
                  size_t whysize);

/* A ct_line_take, with frames. */
void ct_frames_take(void *frames, const uint8_t *bytes, size_t size);

/* The line is open, and from here on closed with the rest. */
void ct_frames_set_line(struct ct_frames *f, const struct ct_line_ops *ops, void *line,
                        const struct ct_line_limits *limits);

/* Asks what the board speaks. hint: what to look at if it does not answer. */
int ct_frames_greet(struct ct_frames *f, const char *hint, char *why, size_t whysize);

void ct_frames_close(void *frames); /* accepts NULL */
int ct_frames_reg_read(void *frames, uint32_t offset, uint32_t *value);
int ct_frames_reg_write(void *frames, uint32_t offset, uint32_t value);
int ct_frames_mem_read(void *frames, uint64_t addr, void *buf, size_t size);
int ct_frames_mem_write(void *frames, uint64_t addr, const void *buf, size_t size);
int ct_frames_wait(void *frames, uint64_t until, int timeout_ms);
int ct_frames_now(void *frames, uint64_t *cycle);
int ct_frames_irq_fd(void *frames);
const char *ct_frames_error(void *frames);
uint64_t ct_frames_line_rate(void *frames);

#define CT_FRAMES_OPS                                                                \
  .abi = CT_TRANSPORT_ABI, .close = ct_frames_close, .reg_read = ct_frames_reg_read, \
  .reg_write = ct_frames_reg_write, .mem_read = ct_frames_mem_read,                  \
  .mem_write = ct_frames_mem_write, .wait = ct_frames_wait, .now = ct_frames_now,    \
  .irq_fd = ct_frames_irq_fd, .error = ct_frames_error, .line_rate = ct_frames_line_rate

#endif
