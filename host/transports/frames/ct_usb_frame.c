/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_usb_frame.h"

#include <string.h>
#include <zlib.h>

static const uint8_t magic[2] = {'C', 'T'};

/* Goes on from the CRC of what came before; 0: nothing. */
static uint32_t crc_on(uint32_t crc, const uint8_t *bytes, size_t size) {
  return (uint32_t)crc32(crc, bytes, (uInt)size);
}

/* The first 12 bytes are here. False: they are no head. */
static bool take_head(struct ct_usb_parser *p) {
  const size_t summed = CT_USB_HEAD - CT_USB_CRC;
  struct ct_usb_frame *f = &p->frame;
  if (ct_usb_get32(p->head + summed) != crc_on(0, p->head, summed)) return false;
  f->kind = p->head[2];
  f->status = p->head[3];
  f->tag = ct_usb_get16(p->head + 4);
  f->size = ct_usb_get16(p->head + 6);
  return f->size <= CT_USB_PAYLOAD;
}

/* What is no head is dropped as a whole; the search for the magic goes on behind it. */
static enum ct_usb_seen take_in_head(struct ct_usb_parser *p, uint8_t byte) {
  if (p->at < sizeof magic && byte != magic[p->at]) p->at = 0;
  if (p->at < sizeof magic && byte != magic[p->at]) return CT_USB_NOTHING;
  p->head[p->at++] = byte;
  if (p->at < CT_USB_HEAD) return CT_USB_NOTHING;
  const bool head = take_head(p);
  if (head && p->frame.size) return CT_USB_NOTHING;
  p->at = 0;
  return head ? CT_USB_WHOLE : CT_USB_NO_HEAD;
}

enum ct_usb_seen ct_usb_take(struct ct_usb_parser *p, uint8_t byte) {
  if (p->at < CT_USB_HEAD) return take_in_head(p, byte);
  const size_t i = p->at++ - CT_USB_HEAD, size = p->frame.size;
  if (i < size)
    p->frame.payload[i] = byte;
  else
    p->crc[i - size] = byte;
  if (i + 1 < size + CT_USB_CRC) return CT_USB_NOTHING;
  p->at = 0;
  const uint32_t crc =
      crc_on(ct_usb_get32(p->head + CT_USB_HEAD - CT_USB_CRC), p->frame.payload, size);
  return ct_usb_get32(p->crc) == crc ? CT_USB_WHOLE : CT_USB_BROKEN;
}

/* Of a frame that was not whole, the bytes to be looked at again. */
static size_t rest(const struct ct_usb_parser *p, enum ct_usb_seen seen) {
  return seen == CT_USB_BROKEN    ? p->frame.size + (size_t)CT_USB_CRC
         : seen == CT_USB_NO_HEAD ? CT_USB_HEAD - 1
                                  : 0;
}

/* One within these bytes lies in them as a whole, so the search goes back in them. */
static void take_again(struct ct_usb_parser *p, enum ct_usb_seen seen, ct_usb_found *found,
                       void *arg) {
  uint8_t bytes[CT_USB_PAYLOAD + CT_USB_CRC];
  const size_t size = rest(p, seen);
  if (seen == CT_USB_BROKEN) {
    memcpy(bytes, p->frame.payload, p->frame.size);
    memcpy(bytes + p->frame.size, p->crc, CT_USB_CRC);
  } else {
    memcpy(bytes, p->head + 1, size);
  }
  for (size_t i = 0; i < size; ++i) {
    seen = ct_usb_take(p, bytes[i]);
    if (seen == CT_USB_WHOLE) found(arg, &p->frame);
    i -= rest(p, seen);
  }
}

void ct_usb_take_stream(struct ct_usb_parser *p, const uint8_t *bytes, size_t size,
                        ct_usb_found *found, void *arg) {
  for (size_t i = 0; i < size; ++i) {
    const enum ct_usb_seen seen = ct_usb_take(p, bytes[i]);
    if (seen == CT_USB_WHOLE) found(arg, &p->frame);
    if (rest(p, seen)) take_again(p, seen, found, arg);
  }
}

size_t ct_usb_put(const struct ct_usb_frame *frame, uint8_t *out) {
  memcpy(out, magic, sizeof magic);
  out[2] = frame->kind;
  out[3] = frame->status;
  ct_usb_put16(out + 4, frame->tag);
  ct_usb_put16(out + 6, frame->size);
  const uint32_t crc = crc_on(0, out, 8);
  ct_usb_put32(out + 8, crc);
  if (!frame->size) return CT_USB_HEAD;
  memcpy(out + CT_USB_HEAD, frame->payload, frame->size);
  ct_usb_put32(out + CT_USB_HEAD + frame->size, crc_on(crc, frame->payload, frame->size));
  return CT_USB_HEAD + (size_t)frame->size + CT_USB_CRC;
}
