/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_usb_chip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_deadline.h"
#include "ct_usb_rtl.h"

enum {
  FIFO = 1024,
  STATUS = 2,
  FT_PS = 16667, /* 60 MHz; the board's clock is the same */
  LATENCY_MS = 16,
  MODE_SYNC_FIFO = 0x40
};

/* Types of requests. */
enum { TO_CHIP = 0x40, FROM_CHIP = 0xc0, FROM_DEVICE = 0x80, KIND = 0x60 };

enum request {
  SIO_RESET = 0,
  SIO_MODEM_CTRL = 1,
  SIO_SET_FLOW_CTRL = 2,
  SIO_SET_BAUD_RATE = 3,
  SIO_SET_DATA = 4,
  SIO_GET_MODEM_STATUS = 5,
  SIO_SET_EVENT_CHAR = 6,
  SIO_SET_ERROR_CHAR = 7,
  SIO_SET_LATENCY = 9,
  SIO_GET_LATENCY = 10,
  SIO_SET_BITMODE = 11,
  SIO_READ_EEPROM = 0x90
};

struct ct_usb_chip {
  struct ct_usb_rtl *rtl;
  char serial[64];
  uint8_t held[FIFO]; /* for the host */
  size_t count;
  bool flush, fifo_mode;
  uint8_t latency; /* ms */
  int64_t gave;    /* when a packet left, ms */
};

/* ---- Requests ------------------------------------------------------------------------------ */

static const uint8_t device[] = {18,   1,    0x00, 0x02, 0, 0, 0, 64, 0x03,
                                 0x04, 0x14, 0x60, 0x00, 9, 1, 2, 3,  1};

static const uint8_t configuration[] = {9,    2,    32,
                                        0,    1,    1,
                                        0,    0x80, 50, /* one, powered by the bus, 100 mA */
                                        9,    4,    0,
                                        0,    2,    0xff,
                                        0xff, 0xff, 2, /* one interface, of the vendor's kind */
                                        7,    5,    CT_USB_CHIP_IN,
                                        2,    0x00, 0x02,
                                        0, /* bulk, packets of 512 bytes */
                                        7,    5,    CT_USB_CHIP_OUT,
                                        2,    0x00, 0x02,
                                        0};

static const uint8_t languages[] = {4, 3, 0x09, 0x04};

static int reply_text(const char *text, uint8_t *reply) {
  size_t n = 2;
  for (; *text; ++text, n += 2) {
    reply[n] = (uint8_t)*text;
    reply[n + 1] = 0;
  }
  reply[0] = (uint8_t)n;
  reply[1] = 3;
  return (int)n;
}

static int reply_bytes(const uint8_t *bytes, size_t n, uint8_t *reply) {
  memcpy(reply, bytes, n);
  return (int)n;
}

static int descriptor(const struct ct_usb_chip *c, unsigned type, unsigned index, uint8_t *reply) {
  if (type == 1) return reply_bytes(device, sizeof device, reply);
  if (type == 2 && index == 0) return reply_bytes(configuration, sizeof configuration, reply);
  if (type != 3) return CT_USB_CHIP_STALL;
  switch (index) {
    case 0:
      return reply_bytes(languages, sizeof languages, reply);
    case 1:
      return reply_text("FTDI", reply);
    case 2:
      return reply_text("Single RS232-HS", reply);
    case 3:
      return reply_text(c->serial, reply);
    default:
      return CT_USB_CHIP_STALL;
  }
}

static int standard(const struct ct_usb_chip *c, const struct ct_usb_setup *s, uint8_t *reply) {
  enum { GET_STATUS, CLEAR_FEATURE, SET_FEATURE = 3, GET_DESCRIPTOR = 6 };
  static const uint8_t zeros[2];
  if (s->type == FROM_DEVICE && s->request == GET_DESCRIPTOR)
    return descriptor(c, s->value >> 8, s->value & 255, reply);
  if (s->type & FROM_DEVICE)
    return s->request == GET_STATUS ? reply_bytes(zeros, 2, reply) : CT_USB_CHIP_STALL;
  return s->request == CLEAR_FEATURE || s->request == SET_FEATURE ? 0 : CT_USB_CHIP_STALL;
}

static int to_chip(struct ct_usb_chip *c, const struct ct_usb_setup *s) {
  switch (s->request) {
    case SIO_RESET: /* all of it, or what one of the FIFOs holds */
      c->count = 0;
      return 0;
    case SIO_SET_LATENCY:
      c->latency = (uint8_t)s->value;
      return 0;
    case SIO_SET_BITMODE:
      c->fifo_mode = s->value >> 8 == MODE_SYNC_FIFO;
      return 0;
    case SIO_MODEM_CTRL:
    case SIO_SET_FLOW_CTRL:
    case SIO_SET_BAUD_RATE:
    case SIO_SET_DATA:
    case SIO_SET_EVENT_CHAR:
    case SIO_SET_ERROR_CHAR:
      return 0;
    default:
      return CT_USB_CHIP_STALL;
  }
}

static int from_chip(const struct ct_usb_chip *c, const struct ct_usb_setup *s, uint8_t *reply) {
  static const uint8_t modem[] = {0x02, 0x60}, empty[] = {0xff, 0xff};
  switch (s->request) {
    case SIO_GET_MODEM_STATUS:
      return reply_bytes(modem, sizeof modem, reply);
    case SIO_GET_LATENCY:
      return reply_bytes(&c->latency, 1, reply);
    case SIO_READ_EEPROM:
      return reply_bytes(empty, sizeof empty, reply);
    default:
      return CT_USB_CHIP_STALL;
  }
}

int ct_usb_chip_request(struct ct_usb_chip *c, const struct ct_usb_setup *s, uint8_t *reply) {
  const int n = !(s->type & KIND)      ? standard(c, s, reply)
                : s->type == TO_CHIP   ? to_chip(c, s)
                : s->type == FROM_CHIP ? from_chip(c, s, reply)
                                       : CT_USB_CHIP_STALL;
  return n > s->length ? s->length : n;
}

/* ---- Transfers ----------------------------------------------------------------------------- */

size_t ct_usb_chip_take(struct ct_usb_chip *c, const uint8_t *bytes, size_t size) {
  if (!c->fifo_mode) return size; /* goes out at some other pins */
  const size_t room = ct_usb_rtl_room(c->rtl), n = size < room ? size : room;
  ct_usb_rtl_put(c->rtl, bytes, n);
  return n;
}

/* One packet with up to n of the bytes that are held. */
static size_t packet(struct ct_usb_chip *c, uint8_t *to, size_t n) {
  if (n > c->count) n = c->count;
  to[0] = 0x02;
  to[1] = 0x60;
  memcpy(to + STATUS, c->held, n);
  c->count -= n;
  memmove(c->held, c->held + n, c->count);
  c->gave = ct_ms_now();
  return STATUS + n;
}

bool ct_usb_chip_give(struct ct_usb_chip *c, uint8_t *bytes, size_t size, size_t *at) {
  bool flush = false;
  if (c->fifo_mode && c->count < FIFO) {
    c->count += ct_usb_rtl_get(c->rtl, c->held + c->count, FIFO - c->count, &flush);
    c->flush = c->flush || flush;
  }
  while (size - *at > STATUS) {
    const size_t left = size - *at, room = left < CT_USB_CHIP_PACKET ? left : CT_USB_CHIP_PACKET;
    const bool full = c->count >= room - STATUS, late = ct_ms_now() - c->gave >= c->latency;
    if (!full && !c->flush && !late) return false;
    *at += packet(c, bytes + *at, room - STATUS);
    c->flush = c->flush && c->count;
    if (!full) return true;
  }
  return true;
}

void ct_usb_chip_run(struct ct_usb_chip *c, unsigned cycles) {
  ct_usb_rtl_run(c->rtl, cycles);
}

const char *ct_usb_chip_fault(const struct ct_usb_chip *c) {
  return ct_usb_rtl_fault(c->rtl);
}

/* ---- Beginning and end --------------------------------------------------------------------- */

struct ct_usb_chip *ct_usb_chip_new(const char *serial) {
  struct ct_usb_chip *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->latency = LATENCY_MS;
  snprintf(c->serial, sizeof c->serial, "%.60s", serial);
  c->rtl = ct_usb_rtl_new(FT_PS, FT_PS);
  if (c->rtl) return c;
  free(c);
  return NULL;
}

void ct_usb_chip_free(struct ct_usb_chip *c) {
  if (!c) return;
  ct_usb_rtl_free(c->rtl);
  free(c);
}
