/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_usb_bridge against the model of docs/usb.md in C: random requests, bytes lost, damaged and
 * made up, buses that stall, fail and hang, and how many of its clocks move a byte.
 *
 * CT_USB_FRAMES: frames of the test of mutated frames (20000).
 */
#include "usb_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t zeros[CT_USB_FRAME];

static void send_frame(struct usb_rig *r, const struct ct_usb_frame *f) {
  uint8_t bytes[CT_USB_FRAME];
  usb_rig_send(r, bytes, ct_usb_put(f, bytes));
}

static struct ct_usb_frame random_request(ct_rng *rng, uint16_t tag, unsigned sensible) {
  struct ct_usb_frame f = {.kind = CT_USB_REQUEST, .tag = tag};
  for (unsigned ops = ct_rng_below(rng, 6); ops && usb_random_op(rng, &f, sensible);)
    --ops;
  return f;
}

/* ---- Good frames ----------------------------------------------------------------------------- */

/* The bytes that docs/usb.md shows, and a HELLO. */
static void hello_and_a_register(void **state) {
  (void)state;
  static const uint8_t request[] = {0x43, 0x54, 0x01, 0x00, 0x34, 0x12, 0x08, 0x00,
                                    0x86, 0x96, 0xc4, 0x76, 0x02, 0x00, 0x00, 0x00,
                                    0x00, 0x00, 0x00, 0x00, 0x82, 0x5e, 0xa0, 0xc2};
  const struct ct_usb_frame hello = {.kind = CT_USB_HELLO, .tag = 77};
  struct usb_rig *r = usb_rig_new((struct usb_stalls){0}, 1);
  send_frame(r, &hello);
  usb_rig_send(r, request, sizeof request);
  usb_rig_settle(r);
  assert_int_equal(r->frames, 2);
  assert_int_equal(r->regs.reads, 1);
  assert_int_equal(*r->dut->bad_heads_o + *r->dut->bad_frames_o, 0);
  usb_rig_free(r);
}

/* Random requests of good and bad operations, some of them repeated, over stalling buses. */
static void random_requests(void **state) {
  (void)state;
  static const unsigned stalls[] = {0, 20, 60};
  ct_rng rng = ct_rng_make(10);
  for (unsigned round = 0; round < 12; ++round) {
    const struct usb_stalls s = {stalls[ct_rng_below(&rng, 3)], stalls[ct_rng_below(&rng, 3)],
                                 stalls[ct_rng_below(&rng, 3)], stalls[ct_rng_below(&rng, 3)],
                                 1 + ct_rng_below(&rng, 80),    1 + ct_rng_below(&rng, 16)};
    struct usb_rig *r = usb_rig_new(s, 20 + 10 * round);
    for (unsigned batch = 0; batch < 40; ++batch) {
      *r->dut->irq_i = ct_rng_percent(&rng, 50);
      for (unsigned i = 0; i < 8; ++i) {
        const struct ct_usb_frame f =
            random_request(&rng, (uint16_t)ct_rng_below(&rng, 65536), round % 2 ? 100 : 90);
        send_frame(r, &f);
        if (ct_rng_percent(&rng, 20)) send_frame(r, &f);
      }
      usb_rig_settle(r);
    }
    usb_rig_free(r);
  }
}

/* Every place of a byte in the source against every place in the destination, around the edges of
 * beats, bursts and halves of words. */
static void every_alignment(void **state) {
  (void)state;
  static const unsigned lengths[] = {1, 2, 3, 15, 16, 17, 31, 255, 256, 257, 300};
  struct usb_rig *r = usb_rig_new((struct usb_stalls){.latency = 2}, 200);
  ct_rng rng = ct_rng_make(11);
  uint16_t tag = 0;
  for (unsigned addr = 0; addr < 18; ++addr) {
    for (unsigned k = 0; k < sizeof lengths / sizeof lengths[0]; ++k) {
      for (unsigned odd = 0; odd < 2; ++odd) {
        struct ct_usb_frame f = {.kind = CT_USB_REQUEST, .tag = ++tag};
        const unsigned n = lengths[k];
        /* A write or a read of an odd number of bytes before it moves what follows by one. */
        if (odd) {
          usb_op(&f, CT_USB_MEM_WRITE, 0, 1, 9000);
          f.payload[f.size++] = (uint8_t)tag;
          usb_op(&f, CT_USB_MEM_READ, 0, 1, 9000);
        }
        usb_op(&f, CT_USB_MEM_WRITE, 0, n, 4096 + 240 + addr);
        ct_rng_fill(&rng, f.payload + f.size, n);
        f.size = (uint16_t)(f.size + n);
        usb_op(&f, CT_USB_MEM_READ, 0, n, 4096 + 240 + addr);
        usb_op(&f, CT_USB_REG_READ, 0, 16, 0);
        usb_op(&f, CT_USB_MEM_READ, 0, n, addr);
        send_frame(r, &f);
      }
    }
    usb_rig_settle(r);
  }
  /* An answer of 2048 bytes, even and odd; one byte more is refused, and its first word is not
   * overwritten by what comes behind its end. */
  for (unsigned first = 0; first < 3; ++first) {
    for (unsigned more = 0; more < 2; ++more) {
      struct ct_usb_frame f = {.kind = CT_USB_REQUEST, .tag = ++tag};
      if (first) usb_op(&f, CT_USB_MEM_READ, 0, first, 5);
      usb_op(&f, CT_USB_MEM_READ, 0, 2044 - first, 1);
      if (more) usb_op(&f, CT_USB_REG_READ, 0, 20, 0);
      usb_op(&f, CT_USB_MEM_READ, 0, more ? 1 : 4, 6);
      send_frame(r, &f);
    }
  }
  usb_rig_settle(r);
  usb_rig_free(r);
}

/* ---- Bad frames ------------------------------------------------------------------------------ */

static void flip(ct_rng *rng, uint8_t *bytes, size_t size) {
  for (unsigned n = 1 + ct_rng_below(rng, 3); n; --n)
    bytes[ct_rng_below(rng, (uint32_t)size)] ^= (uint8_t)(1u << ct_rng_below(rng, 8));
}

/* Loses, adds or copies some bytes; the result has at most 64 more. */
static size_t spoil(ct_rng *rng, uint8_t *bytes, size_t size) {
  const size_t at = ct_rng_below(rng, (uint32_t)size), n = 1 + ct_rng_below(rng, 64);
  switch (ct_rng_below(rng, 5)) {
    case 0:
      flip(rng, bytes, size);
      return size;
    case 1: { /* lost */
      const size_t lost = n < size - at ? n : size - at;
      memmove(bytes + at, bytes + at + lost, size - at - lost);
      return size - lost;
    }
    case 2: /* inserted */
      memmove(bytes + at + n, bytes + at, size - at);
      ct_rng_fill(rng, bytes + at, n);
      return size + n;
    case 3: /* cut off */
      return at;
    default: /* another head in the middle */
      memcpy(bytes + at, "CT\1", size - at < 3 ? size - at : 3);
      return size;
  }
}

/* A frame of any kind, its fields made up in part, with right CRCs. */
static struct ct_usb_frame made_up(ct_rng *rng) {
  struct ct_usb_frame f = random_request(rng, (uint16_t)ct_rng_below(rng, 4), 60);
  if (ct_rng_percent(rng, 20)) f.kind = (uint8_t)ct_rng_below(rng, 5);
  if (ct_rng_percent(rng, 5)) f.kind = (uint8_t)ct_rng_u64(rng);
  f.status = (uint8_t)ct_rng_u64(rng);
  if (f.size && ct_rng_percent(rng, 30)) flip(rng, f.payload, f.size);
  if (ct_rng_percent(rng, 20)) f.size = (uint16_t)ct_rng_below(rng, CT_USB_PAYLOAD + 1);
  return f;
}

static void send_something(struct usb_rig *r, ct_rng *rng) {
  uint8_t bytes[CT_USB_FRAME + 64];
  const struct ct_usb_frame f = made_up(rng);
  size_t size = ct_usb_put(&f, bytes);
  switch (ct_rng_below(rng, 4)) {
    case 0: /* as it is */
      break;
    case 1:
    case 2:
      size = spoil(rng, bytes, size);
      break;
    default: /* no frame at all */
      size = ct_rng_below(rng, 64);
      ct_rng_fill(rng, bytes, size);
      for (size_t i = 0; i + 1 < size; ++i)
        if (ct_rng_percent(rng, 10)) memcpy(bytes + i, "CT", 2);
  }
  usb_rig_send(r, bytes, size);
}

/* Whatever comes, the bridge does what the model does: it asks for nothing else, answers nothing
 * else and, after the zeros that end any frame, the next good one is answered. */
static void mutated_frames(void **state) {
  (void)state;
  const char *text = getenv("CT_USB_FRAMES");
  const unsigned long frames = text ? strtoul(text, NULL, 0) : 20000;
  ct_rng rng = ct_rng_make(30);
  struct usb_rig *r =
      usb_rig_new((struct usb_stalls){.rx = 5, .axil = 20, .memory = 10, .latency = 8}, 300);
  unsigned long sent = 0;
  for (unsigned batch = 0; sent < frames; ++batch) {
    *r->dut->irq_i = batch >> 3 & 1;
    for (unsigned i = 0; i < 40; ++i, ++sent)
      send_something(r, &rng);
    usb_rig_send(r, zeros, sizeof zeros);
    usb_rig_settle(r);
    const struct ct_usb_frame hello = {.kind = CT_USB_HELLO, .tag = (uint16_t)(batch + 9)};
    const unsigned before = r->frames;
    send_frame(r, &hello);
    usb_rig_settle(r);
    assert_int_equal(r->frames, before + 1);
    assert_int_equal(r->parser.frame.tag, hello.tag);
  }
  printf("%lu frames in %llu cycles: %u and %u bad ones counted, %lu requests done, %lu repeated\n",
         sent, (unsigned long long)r->cycle, *r->dut->bad_heads_o, *r->dut->bad_frames_o,
         r->board.done, r->board.again);
  assert_true(*r->dut->bad_heads_o > 0 && *r->dut->bad_frames_o > 0);
  usb_rig_free(r);
}

static void counters(void **state) {
  (void)state;
  struct usb_rig *r = usb_rig_new((struct usb_stalls){0}, 400);
  struct ct_usb_frame f = {.kind = CT_USB_REQUEST, .tag = 3};
  uint8_t bytes[CT_USB_FRAME];
  usb_op(&f, CT_USB_REG_WRITE, 0, 4, 5);
  const size_t size = ct_usb_put(&f, bytes);
  bytes[5] ^= 1; /* the head */
  usb_rig_send(r, bytes, 12);
  usb_rig_settle(r);
  assert_int_equal(*r->dut->bad_heads_o, 1);
  bytes[5] ^= 1;
  bytes[14] ^= 4; /* the payload */
  usb_rig_send(r, bytes, size);
  usb_rig_settle(r);
  assert_int_equal(*r->dut->bad_frames_o, 1);
  f.kind = CT_USB_ANSWER;
  send_frame(r, &f);
  usb_rig_settle(r);
  assert_int_equal(*r->dut->bad_frames_o, 2);
  assert_int_equal(*r->dut->bad_heads_o, 1);
  assert_int_equal(r->regs.writes, 0);
  assert_int_equal(r->frames, 1);
  usb_rig_free(r);
}

/* ---- Buses that do not answer ---------------------------------------------------------------- */

/* Sends one operation and returns the code of its answer, the cycles until then in *cycles. */
static unsigned code_of(struct usb_rig *r, struct ct_usb_frame *f, uint64_t *cycles) {
  uint8_t bytes[CT_USB_FRAME];
  const unsigned before = r->frames;
  static uint16_t tag;
  f->kind = CT_USB_REQUEST;
  f->tag = ++tag;
  const size_t size = ct_usb_put(f, bytes);
  r->to_first = 0;
  r->to_count = size;
  memcpy(r->to, bytes, size);
  const uint64_t start = r->cycle;
  CT_TB_WHILE (r->frames == before, 10000)
    usb_rig_cycle(r);
  *cycles = r->cycle - start;
  assert_int_equal(r->parser.frame.tag, f->tag);
  r->from_count = 0;
  return r->parser.frame.status & ~(unsigned)CT_USB_IRQ;
}

enum { kTimeout = 1 << 10 }; /* TimeoutLog2 of the model */

static void a_register_bus_that_hangs(void **state) {
  (void)state;
  for (unsigned write = 0; write < 2; ++write) {
    struct usb_rig *r = usb_rig_new((struct usb_stalls){0}, 500);
    struct ct_usb_frame f = {0}, m = {0};
    uint64_t cycles;
    usb_op(&f, write ? CT_USB_REG_WRITE : CT_USB_REG_READ, 0, 8, 1);
    usb_op(&m, CT_USB_MEM_READ, 0, 300, 4);
    assert_int_equal(code_of(r, &f, &cycles), CT_USB_OK);
    r->axil_hangs = true;
    assert_int_equal(code_of(r, &f, &cycles), CT_USB_REG);
    assert_true(cycles >= kTimeout && cycles < kTimeout + 100);
    assert_int_equal(code_of(r, &f, &cycles), CT_USB_REG);
    assert_true(cycles < 100);
    assert_int_equal(code_of(r, &m, &cycles), CT_USB_OK); /* memory is another bus */
    r->axil_hangs = false;
    for (unsigned i = 0; i < 10; ++i)
      usb_rig_cycle(r);
    assert_int_equal(r->regs.reads + r->regs.writes, 2); /* the late one is done once */
    assert_int_equal(code_of(r, &f, &cycles), CT_USB_OK);
    assert_int_equal(r->regs.reads + r->regs.writes, 3);
    usb_rig_free(r);
  }
}

static void a_memory_that_hangs(void **state) {
  (void)state;
  for (unsigned write = 0; write < 2; ++write) {
    struct usb_rig *r = usb_rig_new((struct usb_stalls){.latency = 5}, 600);
    struct ct_usb_frame f = {0}, g = {0}, reg = {0};
    uint64_t cycles;
    usb_op(&f, write ? CT_USB_MEM_WRITE : CT_USB_MEM_READ, 0, 700, 4096 + 3);
    if (write) {
      ct_rng_fill(&r->rng, f.payload + f.size, 700);
      f.size += 700;
    }
    usb_op(&g, CT_USB_MEM_READ, 0, 16, 64);
    usb_op(&reg, CT_USB_REG_READ, 0, 8, 1);
    assert_true(ct_axi_mem_fault(r->mem, CT_FAULT_AXI_HANG, 4096 + 300));
    assert_int_equal(code_of(r, &f, &cycles), CT_USB_MEM);
    assert_true(cycles >= kTimeout && cycles < kTimeout + 2500);
    assert_int_equal(code_of(r, &g, &cycles), CT_USB_MEM);
    assert_true(cycles < 100);
    assert_int_equal(code_of(r, &reg, &cycles), CT_USB_OK);
    assert_true(ct_axi_mem_fault(r->mem, CT_FAULT_NONE, 0));
    for (unsigned i = 0; i < 200; ++i)
      usb_rig_cycle(r);
    assert_int_equal(code_of(r, &g, &cycles), CT_USB_OK);
    ct_assert_same("read", r->parser.frame.payload, r->ref_memory + 64, 16);
    usb_rig_free(r);
  }
}

static void a_memory_that_fails(void **state) {
  (void)state;
  struct usb_rig *r = usb_rig_new((struct usb_stalls){.latency = 5}, 700);
  struct ct_usb_frame f = {0}, g = {0};
  uint64_t cycles;
  usb_op(&f, CT_USB_MEM_READ, 0, 700, 4096 + 3);
  usb_op(&g, CT_USB_MEM_WRITE, 0, 700, 4096 + 3);
  g.size += 700;
  assert_true(ct_axi_mem_fault(r->mem, CT_FAULT_AXI_READ, 4096 + 600));
  assert_int_equal(code_of(r, &f, &cycles), CT_USB_MEM);
  assert_int_equal(code_of(r, &f, &cycles), CT_USB_OK);
  assert_true(ct_axi_mem_fault(r->mem, CT_FAULT_AXI_WRITE, 4096 + 300));
  assert_int_equal(code_of(r, &g, &cycles), CT_USB_MEM);
  assert_int_equal(code_of(r, &g, &cycles), CT_USB_OK);
  usb_rig_free(r);
}

/* ---- The interrupt --------------------------------------------------------------------------- */

static void events(void **state) {
  (void)state;
  struct usb_rig *r = usb_rig_new((struct usb_stalls){0}, 800);
  for (unsigned i = 1; i <= 5; ++i) {
    *r->dut->irq_i = 1;
    for (unsigned k = 0; k < 200; ++k)
      usb_rig_cycle(r);
    assert_int_equal(r->events, i); /* one, however long it is up */
    *r->dut->irq_i = 0;
    r->told = false;
    for (unsigned k = 0; k < 200; ++k)
      usb_rig_cycle(r);
  }
  /* An answer that says so is enough. */
  const struct ct_usb_frame hello = {.kind = CT_USB_HELLO, .tag = 4};
  send_frame(r, &hello);
  for (unsigned k = 0; k < 12; ++k)
    usb_rig_cycle(r);
  *r->dut->irq_i = 1;
  usb_rig_settle(r);
  assert_true(r->told);
  assert_true(r->events <= 6);
  usb_rig_free(r);
}

/* ---- Rates ----------------------------------------------------------------------------------- */

/* Bytes that move in a hundred cycles in the busy direction, with frames of n bytes of data back to
 * back. */
static double share(bool write, unsigned n, uint32_t latency, uint32_t bandwidth) {
  struct usb_rig *r =
      usb_rig_new((struct usb_stalls){.latency = latency, .bandwidth = bandwidth}, 900);
  const unsigned frames = 40;
  for (unsigned i = 0; i < frames; ++i) {
    struct ct_usb_frame f = {.kind = CT_USB_REQUEST, .tag = (uint16_t)(i + 1)};
    usb_op(&f, write ? CT_USB_MEM_WRITE : CT_USB_MEM_READ, 0, n,
           n == 1024 ? i % 64 * n : i % 16 * 4096);
    if (write) f.size = (uint16_t)(f.size + n);
    send_frame(r, &f);
  }
  CT_TB_WHILE (r->frames < 2, 100000)
    usb_rig_cycle(r);
  const uint64_t start = r->cycle;
  CT_TB_WHILE (r->frames < frames - 2, 1000000)
    usb_rig_cycle(r);
  const double bytes = (double)(frames - 4) * (n + 16 + (write ? 8 : 0));
  const double got = 100 * bytes / (double)(r->cycle - start);
  printf("%s of %u bytes, latency %u, %u bytes a cycle: a byte in %.1f %% of the cycles\n",
         write ? "write" : "read", n, latency, bandwidth, got);
  usb_rig_free(r);
  return got;
}

static void rates(void **state) {
  (void)state;
  for (unsigned write = 0; write < 2; ++write) {
    assert_true(share(write, 1024, 20, 16) > 99);
    assert_true(share(write, 1024, 60, 16) > 99);
    assert_true(share(write, 2032, 60, 16) > 99);
    assert_true(share(write, 1024, 20, 2) > 99); /* an SDRAM's */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hello_and_a_register),
      cmocka_unit_test(every_alignment),
      cmocka_unit_test(random_requests),
      cmocka_unit_test(mutated_frames),
      cmocka_unit_test(counters),
      cmocka_unit_test(a_register_bus_that_hangs),
      cmocka_unit_test(a_memory_that_hangs),
      cmocka_unit_test(a_memory_that_fails),
      cmocka_unit_test(events),
      cmocka_unit_test(rates),
  };
  return cmocka_run_group_tests_name("ct_usb_bridge", tests, NULL, NULL);
}
