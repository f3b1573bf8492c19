/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_usb_board.h"

#include <string.h>

enum { PAGE = 4096, REGISTERS = 0x1000, HIGHEST = 16 };

static bool irq(struct ct_usb_board *b) {
  return b->ops->wait(b->self, 0, 0) > 0;
}

static void send_frame(struct ct_usb_board *b, struct ct_usb_frame *f) {
  uint8_t bytes[CT_USB_FRAME];
  b->announced = irq(b);
  f->status = (uint8_t)((f->status & ~CT_USB_IRQ) | (b->announced ? CT_USB_IRQ : 0));
  b->send(b->arg, bytes, ct_usb_put(f, bytes));
}

static uint8_t do_register(struct ct_usb_board *b, bool read, uint32_t n, uint32_t word) {
  struct ct_usb_frame *a = &b->answer;
  if (n >= REGISTERS || n % 4) return CT_USB_REG;
  if (!read) return b->ops->reg_write(b->self, n, word) < 0 ? CT_USB_REG : CT_USB_OK;
  if (a->size + 4 > CT_USB_PAYLOAD) return CT_USB_BAD;
  if (b->ops->reg_read(b->self, n, &word) < 0) return CT_USB_REG;
  ct_usb_put32(a->payload + a->size, word);
  a->size = (uint16_t)(a->size + 4);
  return CT_USB_OK;
}

static uint8_t do_memory(struct ct_usb_board *b, const uint8_t *data, uint64_t addr, size_t n) {
  struct ct_usb_frame *a = &b->answer;
  if (n == 0 || addr % PAGE + n > PAGE || addr >> 32 >= HIGHEST) return CT_USB_BAD;
  if (data) return b->ops->mem_write(b->self, addr, data, n) < 0 ? CT_USB_MEM : CT_USB_OK;
  if (a->size + n > CT_USB_PAYLOAD) return CT_USB_BAD;
  if (b->ops->mem_read(b->self, addr, a->payload + a->size, n) < 0) return CT_USB_MEM;
  a->size = (uint16_t)(a->size + n);
  return CT_USB_OK;
}

/* Does one operation and moves *at behind it. */
static uint8_t do_op(struct ct_usb_board *b, const struct ct_usb_frame *f, size_t *at) {
  const uint8_t *p = f->payload + *at;
  const size_t left = f->size - *at;
  if (left < CT_USB_OP) return CT_USB_BAD;
  const size_t n = ct_usb_get16(p + 2), data = p[0] == CT_USB_MEM_WRITE ? n : 0;
  const uint32_t word = ct_usb_get32(p + 4);
  if (data > left - CT_USB_OP) return CT_USB_BAD;
  *at += CT_USB_OP + data;
  switch (p[0]) {
    case CT_USB_REG_WRITE:
    case CT_USB_REG_READ:
      return do_register(b, p[0] == CT_USB_REG_READ, (uint32_t)n, word);
    case CT_USB_MEM_WRITE:
    case CT_USB_MEM_READ:
      return do_memory(b, p[0] == CT_USB_MEM_WRITE ? p + CT_USB_OP : NULL,
                       (uint64_t)p[1] << 32 | word, n);
    default:
      return CT_USB_BAD;
  }
}

static void do_request(struct ct_usb_board *b, const struct ct_usb_frame *f) {
  struct ct_usb_frame *a = &b->answer;
  a->size = 0;
  a->status = CT_USB_OK;
  for (size_t at = 0; at < f->size && a->status == CT_USB_OK;)
    a->status = do_op(b, f, &at);
  if (a->status != CT_USB_OK) a->size = 0;
  ++b->done;
}

static void do_hello(struct ct_usb_board *b) {
  struct ct_usb_frame *a = &b->answer;
  memset(a->payload, 0, CT_USB_HELLO_SIZE);
  ct_usb_put16(a->payload, b->version);
  ct_usb_put16(a->payload + 2, CT_USB_PAYLOAD);
  a->size = CT_USB_HELLO_SIZE;
  a->status = CT_USB_OK;
}

void ct_usb_board_take(struct ct_usb_board *b, uint8_t byte) {
  const struct ct_usb_frame *f = &b->parser.frame;
  const enum ct_usb_seen seen = ct_usb_take(&b->parser, byte);
  if ((seen != CT_USB_WHOLE && seen != CT_USB_BROKEN) ||
      (f->kind != CT_USB_REQUEST && f->kind != CT_USB_HELLO))
    return;
  if (seen == CT_USB_BROKEN) {
    struct ct_usb_frame damaged = {.kind = CT_USB_ANSWER, .status = CT_USB_DAMAGED, .tag = f->tag};
    send_frame(b, &damaged);
    return;
  }
  const bool again = f->kind == CT_USB_REQUEST && b->kept && f->tag == b->answer.tag;
  if (f->kind == CT_USB_HELLO)
    do_hello(b);
  else if (!again)
    do_request(b, f);
  b->again += again;
  b->kept = true;
  b->answer.kind = CT_USB_ANSWER;
  b->answer.tag = f->tag;
  send_frame(b, &b->answer);
}

void ct_usb_board_look(struct ct_usb_board *b) {
  struct ct_usb_frame event = {.kind = CT_USB_EVENT};
  const bool up = irq(b);
  b->announced = b->announced && up;
  if (up && !b->announced) send_frame(b, &event);
}
