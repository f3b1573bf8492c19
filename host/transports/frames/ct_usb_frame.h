/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames over a byte stream without packet boundaries: what docs/usb.md describes, in C. Both ends
 * use this: the plug-in, and the model of the board that the tests and the RTL's bench compare
 * with.
 *
 *   'C' 'T' kind status | tag 2 | size 2 | CRC of the 8 bytes 4 |  payload, size bytes | CRC 4
 *
 * Numbers are little-endian. The last two parts are absent if size is 0. The CRC is that of zlib
 * and Ethernet; the second is that of the first 8 bytes followed by the payload: were it that of
 * the payload alone, a head that comes where a payload of 8 bytes got lost would pass for that
 * payload. A frame without magic, or with a wrong CRC or size in its first 12 bytes, is not seen at
 * all; one with a wrong CRC at its end is seen as damaged.
 */
#ifndef CT_USB_FRAME_H
#define CT_USB_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  CT_USB_VERSION = 1,    /* of the protocol, as HELLO answers it */
  CT_USB_PAYLOAD = 2048, /* most bytes of a payload */
  CT_USB_HEAD = 12,
  CT_USB_CRC = 4,
  CT_USB_FRAME = CT_USB_HEAD + CT_USB_PAYLOAD + CT_USB_CRC, /* most bytes of a frame */
  CT_USB_OP = 8,        /* bytes of an operation, without data */
  CT_USB_HELLO_SIZE = 8 /* payload of its answer: version 2, payload at most 2, 0 of 4 bytes */
};

/* Kinds of frames. */
enum ct_usb_kind {
  CT_USB_REQUEST = 1, /* to the board: operations */
  CT_USB_HELLO = 2,   /* to the board: who are you; forgets the answer it keeps */
  CT_USB_ANSWER = 3,  /* from the board, with the tag of what it answers */
  CT_USB_EVENT = 4    /* from the board: the interrupt is up */
};

/* The status byte of frames from the board: a code, and whether the interrupt is up. */
enum ct_usb_code {
  CT_USB_OK = 0,
  CT_USB_BAD = 1,     /* the operations make no sense */
  CT_USB_REG = 2,     /* a register access was answered with an error */
  CT_USB_MEM = 3,     /* a memory access was answered with an error */
  CT_USB_DAMAGED = 4, /* the payload's CRC is wrong: nothing was done */
  CT_USB_IRQ = 0x80   /* bit: the interrupt is up */
};

/* Operations of a request: code 1, high 1, n 2, word 4; then n bytes of data after MEM_WRITE. */
enum ct_usb_op {
  CT_USB_REG_WRITE = 1, /* register n = word */
  CT_USB_REG_READ = 2,  /* answers register n, 4 bytes */
  CT_USB_MEM_WRITE = 3, /* n bytes (1..) to address high * 2^32 + word, within 4 KB */
  CT_USB_MEM_READ = 4   /* answers n bytes from there */
};

struct ct_usb_frame {
  uint8_t kind, status;
  uint16_t tag, size;
  uint8_t payload[CT_USB_PAYLOAD];
};

/* Takes a stream apart; begin with zeros. */
struct ct_usb_parser {
  struct ct_usb_frame frame;
  uint8_t head[CT_USB_HEAD], crc[CT_USB_CRC];
  size_t at; /* bytes of the frame so far */
};

/* NO_HEAD: 12 bytes with the magic, and no head; all of them are dropped. */
enum ct_usb_seen { CT_USB_NOTHING, CT_USB_NO_HEAD, CT_USB_WHOLE, CT_USB_BROKEN };

/* Takes a byte. CT_USB_WHOLE: it completes parser->frame, which is valid until the next call.
 * CT_USB_BROKEN: the same, but the payload is damaged. */
enum ct_usb_seen ct_usb_take(struct ct_usb_parser *parser, uint8_t byte);

typedef void ct_usb_found(void *arg, const struct ct_usb_frame *frame);

/* The host's way: takes bytes and gives whole frames, each valid during the call. What lies behind
 * the magic of a damaged frame is looked at again, for one that lost a byte ends in the next one.
 * (The board drops both: the host sends zeros in front of what it repeats.) */
void ct_usb_take_stream(struct ct_usb_parser *parser, const uint8_t *bytes, size_t size,
                        ct_usb_found *found, void *arg);

/* Writes a frame to out (CT_USB_FRAME bytes are enough) and returns its size. */
size_t ct_usb_put(const struct ct_usb_frame *frame, uint8_t *out);

static inline uint16_t ct_usb_get16(const uint8_t *p) {
  return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t ct_usb_get32(const uint8_t *p) {
  return ct_usb_get16(p) | (uint32_t)ct_usb_get16(p + 2) << 16;
}

static inline void ct_usb_put16(uint8_t *p, uint16_t v) {
  p[0] = (uint8_t)v;
  p[1] = (uint8_t)(v >> 8);
}

static inline void ct_usb_put32(uint8_t *p, uint32_t v) {
  ct_usb_put16(p, (uint16_t)v);
  ct_usb_put16(p + 2, (uint16_t)(v >> 16));
}

#endif
