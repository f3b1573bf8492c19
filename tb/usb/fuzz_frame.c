/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer's target for the decoder of docs/usb.md (ct_usb_frame.c), which both ends use. The
 * input is taken as bytes from the line, and once more as the fields of frames, which get their
 * CRCs here: the first way tries what is no frame, the second what is behind the CRCs.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/transports/frames/ct_usb_frame.h"

static const struct ct_usb_frame good = {
    .kind = CT_USB_ANSWER, .status = CT_USB_IRQ, .tag = 7, .size = 3, .payload = "abc"};

static void check(bool holds) {
  if (!holds) abort();
}

static bool same(const struct ct_usb_frame *a, const struct ct_usb_frame *b) {
  return a->kind == b->kind && a->status == b->status && a->tag == b->tag && a->size == b->size &&
         !memcmp(a->payload, b->payload, a->size);
}

static enum ct_usb_seen feed(struct ct_usb_parser *p, const uint8_t *bytes, size_t size) {
  enum ct_usb_seen seen = CT_USB_NOTHING;
  for (size_t i = 0; i < size; ++i) {
    seen = ct_usb_take(p, bytes[i]);
    check(p->at < CT_USB_FRAME);
    check(seen == CT_USB_NOTHING || p->at == 0);
    check(seen < CT_USB_WHOLE || p->frame.size <= CT_USB_PAYLOAD);
    check(seen != CT_USB_BROKEN || p->frame.size);
  }
  return seen;
}

/* Zeros end whatever has begun, and the next good frame is seen as it was sent. */
static void recover(struct ct_usb_parser *p) {
  static const uint8_t zeros[CT_USB_FRAME];
  uint8_t bytes[CT_USB_FRAME];
  feed(p, zeros, sizeof zeros);
  check(feed(p, bytes, ct_usb_put(&good, bytes)) == CT_USB_WHOLE);
  check(same(&p->frame, &good));
}

static void same_as_good(void *arg, const struct ct_usb_frame *f) {
  *(bool *)arg = same(f, &good);
}

/* The host's way needs no zeros behind what is damaged, but for a frame that has not ended. */
static void recover_in_stream(struct ct_usb_parser *p, const uint8_t *data, size_t size) {
  static const uint8_t zeros[CT_USB_FRAME];
  uint8_t bytes[CT_USB_FRAME];
  bool seen = false;
  ct_usb_take_stream(p, data, size, same_as_good, &seen);
  seen = false;
  ct_usb_take_stream(p, bytes, ct_usb_put(&good, bytes), same_as_good, &seen);
  ct_usb_take_stream(p, zeros, sizeof zeros, same_as_good, &seen);
  check(seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ct_usb_parser raw, made, stream;
  static struct ct_usb_frame f;
  static uint8_t bytes[CT_USB_FRAME];
  memset(&raw, 0, sizeof raw);
  memset(&made, 0, sizeof made);
  memset(&stream, 0, sizeof stream);
  feed(&raw, data, size);
  recover(&raw);
  recover_in_stream(&stream, data, size);
  while (size >= 8) {
    f.kind = data[0];
    f.status = data[1];
    f.tag = ct_usb_get16(data + 2);
    f.size = ct_usb_get16(data + 4) % (CT_USB_PAYLOAD + 1);
    const unsigned spoil = ct_usb_get16(data + 6);
    data += 8;
    size -= 8;
    if (f.size > size) f.size = (uint16_t)size;
    memcpy(f.payload, data, f.size);
    data += f.size;
    size -= f.size;
    const size_t n = ct_usb_put(&f, bytes);
    if (spoil & 1) { /* one bit, which no CRC lets pass */
      bytes[spoil / 16 % n] ^= (uint8_t)(1u << (spoil / 2 & 7));
      check(feed(&made, bytes, n) != CT_USB_WHOLE);
      recover(&made);
    } else {
      check(feed(&made, bytes, n) == CT_USB_WHOLE && same(&made.frame, &f));
    }
  }
  return 0;
}
