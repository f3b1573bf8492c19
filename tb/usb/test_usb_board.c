/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of docs/usb.md without USB: the model of the board, over the emulator, against
 * frames whose bytes get lost, damaged and mixed with garbage.
 */
#include "ct_tb.h"

#include <stdio.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "coltrain_spec.h"
#include "ct_usb_board.h"

enum { MEMORY = 1 << 16, ROUNDS = 20000 };

struct bench {
  struct ct_usb_board board;
  struct ct_usb_parser parser;
  struct ct_usb_frame last; /* answer from the board */
  unsigned answers, events;
  uint8_t shadow[MEMORY];
};

static void host_takes(void *arg, const uint8_t *bytes, size_t size) {
  struct bench *b = arg;
  for (size_t i = 0; i < size; ++i) {
    assert_true(ct_usb_take(&b->parser, bytes[i]) != CT_USB_BROKEN);
    if (b->parser.at) continue;
    b->events += b->parser.frame.kind == CT_USB_EVENT;
    b->answers += b->parser.frame.kind == CT_USB_ANSWER;
    b->last = b->parser.frame;
  }
}

static void begin(struct bench *b) {
  char why[100];
  memset(b, 0, sizeof *b);
  b->board.ops = &ct_transport_emu;
  b->board.send = host_takes;
  b->board.arg = b;
  b->board.version = CT_USB_VERSION;
  assert_int_equal(ct_transport_emu.open("dram=1", &b->board.self, why, sizeof why), 0);
}

static void end(struct bench *b) {
  ct_transport_emu.close(b->board.self);
}

static void feed(struct bench *b, const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i)
    ct_usb_board_take(&b->board, bytes[i]);
}

static void send(struct bench *b, const struct ct_usb_frame *f) {
  uint8_t bytes[CT_USB_FRAME];
  feed(b, bytes, ct_usb_put(f, bytes));
}

static void op(struct ct_usb_frame *f, uint8_t code, uint8_t high, unsigned n, uint32_t word) {
  uint8_t *p = f->payload + f->size;
  p[0] = code;
  p[1] = high;
  ct_usb_put16(p + 2, (uint16_t)n);
  ct_usb_put32(p + 4, word);
  f->size = (uint16_t)(f->size + CT_USB_OP);
}

static void data(struct ct_usb_frame *f, const void *bytes, size_t n) {
  memcpy(f->payload + f->size, bytes, n);
  f->size = (uint16_t)(f->size + n);
}

/* Sends one operation alone and returns the code of the answer. */
static unsigned code_of(struct bench *b, uint8_t code, uint8_t high, unsigned n, uint32_t word) {
  struct ct_usb_frame f = {.kind = CT_USB_REQUEST, .tag = (uint16_t)(b->last.tag + 1)};
  const unsigned answers = b->answers;
  op(&f, code, high, n, word);
  send(b, &f);
  assert_int_equal(b->answers, answers + 1);
  assert_int_equal(b->last.tag, f.tag);
  return b->last.status & ~(unsigned)CT_USB_IRQ;
}

/* The bytes that docs/usb.md shows. */
static void the_bytes_of_a_frame(void **state) {
  (void)state;
  static const uint8_t want[] = {0x43, 0x54, 0x01, 0x00, 0x34, 0x12, 0x08, 0x00,
                                 0x86, 0x96, 0xc4, 0x76, 0x02, 0x00, 0x00, 0x00,
                                 0x00, 0x00, 0x00, 0x00, 0x82, 0x5e, 0xa0, 0xc2};
  struct ct_usb_frame f = {.kind = CT_USB_REQUEST, .tag = 0x1234};
  uint8_t bytes[CT_USB_FRAME];
  op(&f, CT_USB_REG_READ, 0, 0, 0);
  assert_int_equal(ct_usb_put(&f, bytes), sizeof want);
  ct_assert_same("frame", bytes, want, sizeof want);
}

static void what_is_refused(void **state) {
  (void)state;
  static struct bench b;
  begin(&b);
  assert_int_equal(code_of(&b, CT_USB_REG_READ, 0, CT_REG_ID, 0), CT_USB_OK);
  assert_int_equal(b.last.size, 4);
  assert_int_equal(ct_usb_get32(b.last.payload), CT_ID_VALUE);
  assert_int_equal(code_of(&b, CT_USB_REG_READ, 0, 2, 0), CT_USB_REG);
  assert_int_equal(b.last.size, 0);
  assert_int_equal(code_of(&b, CT_USB_REG_WRITE, 0, 0x1000, 0), CT_USB_REG);
  assert_int_equal(code_of(&b, CT_USB_MEM_READ, 0, 16, 0xff8), CT_USB_BAD); /* crosses 4 KB */
  assert_int_equal(code_of(&b, CT_USB_MEM_READ, 0, 0, 0), CT_USB_BAD);
  assert_int_equal(code_of(&b, CT_USB_MEM_READ, 16, 4, 0), CT_USB_BAD);
  assert_int_equal(code_of(&b, CT_USB_MEM_READ, 15, 4, 0), CT_USB_MEM); /* not there */
  assert_int_equal(code_of(&b, CT_USB_MEM_READ, 0, 2049, 0), CT_USB_BAD);
  assert_int_equal(code_of(&b, CT_USB_MEM_READ, 0, 2048, 0), CT_USB_OK);
  assert_int_equal(code_of(&b, CT_USB_MEM_WRITE, 0, 1, 0), CT_USB_BAD); /* no data */
  assert_int_equal(code_of(&b, 5, 0, 0, 0), CT_USB_BAD);
  end(&b);
}

/* A doorbell rings once, however often its frame comes, and the answer is the same. */
static void a_repeated_request_is_done_once(void **state) {
  (void)state;
  static struct bench b;
  begin(&b);
  struct ct_usb_frame f = {.kind = CT_USB_REQUEST, .tag = 9}, hello = {.kind = CT_USB_HELLO};
  op(&f, CT_USB_REG_WRITE, 0, CT_REG_POLICY, 2);
  op(&f, CT_USB_REG_READ, 0, CT_REG_POLICY, 0);
  send(&b, &f);
  assert_int_equal(ct_usb_get32(b.last.payload), 2);
  assert_int_equal(ct_transport_emu.reg_write(b.board.self, CT_REG_POLICY, 1), 0);
  send(&b, &f);
  assert_int_equal(b.answers, 2);
  assert_int_equal(ct_usb_get32(b.last.payload), 2);
  uint32_t policy = 0;
  assert_int_equal(ct_transport_emu.reg_read(b.board.self, CT_REG_POLICY, &policy), 0);
  assert_int_equal(policy, 1);
  assert_int_equal(b.board.done, 1);
  assert_int_equal(b.board.again, 1);
  /* After a HELLO with another tag it is a request like any other. */
  send(&b, &hello);
  assert_int_equal(ct_usb_get16(b.last.payload), CT_USB_VERSION);
  assert_int_equal(ct_usb_get16(b.last.payload + 2), CT_USB_PAYLOAD);
  send(&b, &f);
  assert_int_equal(b.board.done, 2);
  end(&b);
}

/* A random request; what it writes also goes into the shadow. */
static void make(struct bench *b, ct_rng *rng, struct ct_usb_frame *f, uint8_t *want,
                 size_t *wanted) {
  const unsigned ops = 1 + ct_rng_below(rng, 4);
  *wanted = 0;
  for (unsigned i = 0; i < ops; ++i) {
    const uint32_t addr = ct_rng_below(rng, MEMORY);
    unsigned n = 1 + ct_rng_below(rng, 400);
    if (n > 4096 - addr % 4096) n = 4096 - addr % 4096;
    if (ct_rng_percent(rng, 50)) {
      op(f, CT_USB_MEM_WRITE, 0, n, addr);
      ct_rng_fill(rng, b->shadow + addr, n);
      data(f, b->shadow + addr, n);
    } else {
      op(f, CT_USB_MEM_READ, 0, n, addr);
      memcpy(want + *wanted, b->shadow + addr, n);
      *wanted += n;
    }
  }
}

/* Loses, damages or inserts some bytes. */
static size_t spoil(ct_rng *rng, const uint8_t *from, size_t size, uint8_t *to) {
  size_t n = 0;
  const unsigned kind = ct_rng_below(rng, 4);
  const size_t at = ct_rng_below(rng, (uint32_t)size);
  for (size_t i = 0; i < size; ++i) {
    if (i == at && kind == 0) continue;
    if (i == at && kind == 1) to[n++] = (uint8_t)ct_rng_u64(rng);
    to[n++] = i == at && kind == 2 ? from[i] ^ (uint8_t)(1 << ct_rng_below(rng, 8)) : from[i];
    if (i == at && kind == 3) break;
  }
  return n;
}

static void garbage(struct bench *b, ct_rng *rng) {
  uint8_t bytes[64];
  const size_t n = ct_rng_below(rng, sizeof bytes);
  ct_rng_fill(rng, bytes, n);
  for (size_t i = 0; i + 1 < n; ++i)
    if (ct_rng_percent(rng, 10)) memcpy(bytes + i, "CT", 2);
  feed(b, bytes, n);
}

/* What a host does: repeats, with zeros in front, until the right answer has come. */
static void frames_survive_a_bad_line(void **state) {
  (void)state;
  static struct bench b;
  static const uint8_t zeros[CT_USB_FRAME];
  static uint8_t bytes[CT_USB_FRAME], spoilt[CT_USB_FRAME + 1], want[CT_USB_PAYLOAD];
  ct_rng rng = ct_rng_make(1);
  begin(&b);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    struct ct_usb_frame f = {.kind = CT_USB_REQUEST, .tag = (uint16_t)(round + 1)};
    size_t wanted;
    make(&b, &rng, &f, want, &wanted);
    const size_t size = ct_usb_put(&f, bytes);
    if (ct_rng_percent(&rng, 20)) garbage(&b, &rng);
    b.last.tag = (uint16_t)(f.tag - 1);
    unsigned tries = ct_rng_below(&rng, 3);
    while (tries--)
      feed(&b, spoilt, spoil(&rng, bytes, size, spoilt));
    feed(&b, zeros, sizeof zeros);
    feed(&b, bytes, size);
    assert_int_equal(b.last.tag, f.tag);
    assert_int_equal(b.last.status, CT_USB_OK);
    assert_int_equal(b.last.size, wanted);
    ct_assert_same("answer", b.last.payload, want, wanted);
    assert_int_equal(b.board.done, round + 1);
  }
  end(&b);
}

/* ---- The host's decoder ---- */

struct seen {
  unsigned count;
  uint16_t tag[8];
};

static void note(void *arg, const struct ct_usb_frame *f) {
  struct seen *s = arg;
  if (s->count < 8) s->tag[s->count] = f->tag;
  ++s->count;
}

/* Wherever behind its head a frame loses bytes, or one is damaged, the next is seen; whatever its
 * payload holds, heads of frames that are not there, too. */
static void a_lost_byte_costs_one_frame(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(4);
  for (unsigned round = 0; round < 4000; ++round) {
    struct ct_usb_parser p = {.at = 0};
    struct seen seen = {0};
    uint8_t bytes[4 * CT_USB_FRAME] = {0}; /* what comes behind ends any that has begun */
    size_t size = 0, first = 0;
    for (uint16_t tag = 1; tag <= 3; ++tag) {
      struct ct_usb_frame f = {.kind = CT_USB_ANSWER, .tag = tag};
      f.size = (uint16_t)(1 + ct_rng_below(&rng, ct_rng_below(&rng, 2) ? 40 : CT_USB_PAYLOAD));
      for (size_t i = 0; i < f.size; ++i)
        f.payload[i] = (uint8_t)ct_rng_below(&rng, 256);
      const struct ct_usb_frame inner = {.kind = CT_USB_EVENT, .size = 100, .tag = 9};
      uint8_t head[CT_USB_FRAME];
      ct_usb_put(&inner, head);
      if (f.size >= CT_USB_HEAD && ct_rng_below(&rng, 2)) memcpy(f.payload, head, CT_USB_HEAD);
      size += ct_usb_put(&f, bytes + size);
      if (tag == 1) first = size;
    }
    const size_t at = CT_USB_HEAD + ct_rng_below(&rng, (uint32_t)(first - CT_USB_HEAD));
    const size_t lost = ct_rng_below(&rng, 4) % (first - at + 1);
    if (lost)
      memmove(bytes + at, bytes + at + lost, sizeof bytes - at - lost);
    else
      bytes[at] ^= 0x10;
    for (size_t i = 0, n; i < sizeof bytes; i += n) {
      n = 1 + ct_rng_below(&rng, 700);
      if (n > sizeof bytes - i) n = sizeof bytes - i;
      ct_usb_take_stream(&p, bytes + i, n, note, &seen);
    }
    assert_int_equal(seen.count, 2);
    /* If what came in the place of the last bytes is the same, it is the next that lost some. */
    assert_true(seen.tag[0] == 2 || (lost && seen.tag[0] == 1));
    assert_int_equal(seen.tag[1], 3);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bytes_of_a_frame),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(a_repeated_request_is_done_once),
      cmocka_unit_test(frames_survive_a_bad_line),
      cmocka_unit_test(a_lost_byte_costs_one_frame),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
