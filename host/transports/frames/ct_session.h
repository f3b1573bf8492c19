/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a board and its answers (docs/usb.md), over a line that may lose bytes.
 *
 * A request alone is done exactly once: it is repeated with the same tag, which the board does not
 * do twice. Long accesses to memory keep several requests under way; they may be done twice, so
 * what is missing of them goes again under new tags. A board answers in the order of the requests:
 * what is not answered when a later one is, is missing, and nobody waits for it.
 */
#ifndef CT_SESSION_H
#define CT_SESSION_H

#include <pthread.h>
#include <stdbool.h>

#include "ct_line.h"
#include "ct_usb_frame.h"

enum { CT_SESSION_WINDOW = 32 }; /* requests under way at most */

/* A request under way. */
struct ct_flight {
  struct ct_usb_frame request;
  bool used, answered, missing;
  uint8_t code;
  uint8_t *data; /* where the answer goes, `expected` bytes */
  size_t expected;
  uint32_t order; /* of its last sending, among all */
  unsigned sent;  /* how often */
};

struct ct_session {
  const struct ct_line_ops *ops;
  void *line;
  struct ct_line_limits limits;
  unsigned timeout_ms;         /* all attempts together */
  struct ct_usb_parser parser; /* of the line's thread */
  uint16_t tag;                /* of the next request */
  uint32_t order;
  uint8_t out[CT_USB_FRAME * (CT_SESSION_WINDOW + 1)];
  char error[256];
  bool dead;

  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t changed;
  struct ct_flight flight[CT_SESSION_WINDOW];
  unsigned answers;   /* since the owner looked */
  uint32_t taken;     /* bytes that came, ever */
  bool irq, gone, up; /* up: the descriptor is readable */
  int fd;
};

/* false: the host has no memory or file descriptor left. */
bool ct_session_begin(struct ct_session *s);
/* Ends the line, too. */
void ct_session_end(struct ct_session *s);

/* A ct_line_take; arg: the session. */
void ct_session_take(void *arg, const uint8_t *bytes, size_t size);

/* Has a request done, once. Its tag is given here. Returns an error, or its code (enum
 * ct_usb_code); answer has room for `expected` bytes, which is what its answer must have. */
int ct_session_request(struct ct_session *s, const struct ct_usb_frame *request, uint8_t *answer,
                       size_t expected);

/* An access to memory of any size, a write if from is given, else a read. Returns the same. */
int ct_session_stream(struct ct_session *s, uint64_t addr, const uint8_t *from, uint8_t *to,
                      size_t size);

/* Adds an operation to a frame; what it has no room for is the caller's mistake. */
void ct_session_put_op(struct ct_usb_frame *f, uint8_t op, uint64_t address, size_t n,
                       uint32_t word);

/* Sleeps until the interrupt is up, or the board is gone, or so many ms have passed; whether it is
 * up. */
bool ct_session_sleep(struct ct_session *s, unsigned ms);

#endif
