/* SPDX-License-Identifier: Apache-2.0 */
#include "usb_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kQuiet = 5000, kPatience = 400000 };

/* ---- The reference's device ----------------------------------------------------------------- */

static int read_register(struct usb_registers *r, uint32_t offset, uint32_t *value) {
  ++r->reads;
  *value = r->value[offset / 4]++;
  return offset >= USB_BAD_REGISTER ? -1 : 0;
}

static int write_register(struct usb_registers *r, uint32_t offset, uint32_t value) {
  ++r->writes;
  r->value[offset / 4] += value;
  return offset >= USB_BAD_REGISTER ? -1 : 0;
}

static int ref_reg_read(void *self, uint32_t offset, uint32_t *value) {
  return read_register(&((struct usb_rig *)self)->ref_regs, offset, value);
}

static int ref_reg_write(void *self, uint32_t offset, uint32_t value) {
  return write_register(&((struct usb_rig *)self)->ref_regs, offset, value);
}

static int ref_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  if (addr >= USB_MEMORY) return -1;
  memcpy(buf, ((struct usb_rig *)self)->ref_memory + addr, size);
  return 0;
}

static int ref_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  if (addr >= USB_MEMORY) return -1;
  memcpy(((struct usb_rig *)self)->ref_memory + addr, buf, size);
  return 0;
}

static int ref_wait(void *self, uint64_t until, int timeout_ms) {
  (void)until;
  (void)timeout_ms;
  return *((struct usb_rig *)self)->dut->irq_i;
}

static const struct ct_transport_ops ref_ops = {
    .reg_read = ref_reg_read,
    .reg_write = ref_reg_write,
    .mem_read = ref_mem_read,
    .mem_write = ref_mem_write,
    .wait = ref_wait,
};

static void ref_sends(void *arg, const uint8_t *bytes, size_t size) {
  struct usb_rig *r = arg;
  assert_true(r->expected_count + size <= USB_QUEUE);
  memcpy(r->expected + r->expected_count, bytes, size);
  r->expected_count += size;
}

/* ---- The bridge's buses --------------------------------------------------------------------- */

static void drive_registers(struct usb_rig *r) {
  const ct_usb_bridge_dut *d = r->dut;
  const bool go = !ct_stall_next(&r->axil) && !r->axil_hangs;
  *d->m_axil_awready_i = go && !r->aw;
  *d->m_axil_wready_i = go && !r->w;
  *d->m_axil_arready_i = go && !r->ar;
  if (go && r->aw && r->w && !r->b) {
    *d->m_axil_bresp_i = write_register(&r->regs, r->aw_addr, r->w_data) < 0 ? 2 : 0;
    r->b = true;
  }
  if (go && r->ar && !r->r) {
    uint32_t value;
    *d->m_axil_rresp_i = read_register(&r->regs, r->ar_addr, &value) < 0 ? 3 : 0;
    *d->m_axil_rdata_i = value;
    r->r = true;
  }
  *d->m_axil_bvalid_i = r->b;
  *d->m_axil_rvalid_i = r->r;
}

static void take_registers(struct usb_rig *r) {
  const ct_usb_bridge_dut *d = r->dut;
  if (*d->m_axil_awvalid_o && *d->m_axil_awready_i) {
    r->aw = true;
    r->aw_addr = *d->m_axil_awaddr_o;
  }
  if (*d->m_axil_wvalid_o && *d->m_axil_wready_i) {
    r->w = true;
    r->w_data = *d->m_axil_wdata_o;
    assert_int_equal(*d->m_axil_wstrb_o, 15);
  }
  if (*d->m_axil_arvalid_o && *d->m_axil_arready_i) {
    r->ar = true;
    r->ar_addr = *d->m_axil_araddr_o;
  }
  if (r->b && *d->m_axil_bready_o) r->aw = r->w = r->b = false;
  if (r->r && *d->m_axil_rready_o) r->ar = r->r = false;
}

static void take_memory_outputs(struct usb_rig *r) {
  const ct_usb_bridge_dut *d = r->dut;
  r->in = (struct ct_axi_in){.awvalid = *d->m_axi_awvalid_o,
                             .wvalid = *d->m_axi_wvalid_o,
                             .arvalid = *d->m_axi_arvalid_o,
                             .bready = *d->m_axi_bready_o,
                             .rready = *d->m_axi_rready_o,
                             .awid = *d->m_axi_awid_o,
                             .awaddr = *d->m_axi_awaddr_o,
                             .awlen = *d->m_axi_awlen_o,
                             .awsize = *d->m_axi_awsize_o,
                             .awburst = *d->m_axi_awburst_o,
                             .arid = *d->m_axi_arid_o,
                             .araddr = *d->m_axi_araddr_o,
                             .arlen = *d->m_axi_arlen_o,
                             .arsize = *d->m_axi_arsize_o,
                             .arburst = *d->m_axi_arburst_o,
                             .wstrb = *d->m_axi_wstrb_o,
                             .wlast = *d->m_axi_wlast_o};
  memcpy(r->in.wdata, d->m_axi_wdata_o, sizeof r->in.wdata);
}

static void drive_memory_inputs(struct usb_rig *r) {
  const ct_usb_bridge_dut *d = r->dut;
  const struct ct_axi_out *out = &r->out;
  *d->m_axi_awready_i = out->awready;
  *d->m_axi_wready_i = out->wready;
  *d->m_axi_arready_i = out->arready;
  *d->m_axi_bvalid_i = out->bvalid;
  *d->m_axi_bid_i = out->bid;
  *d->m_axi_bresp_i = out->bresp;
  *d->m_axi_rvalid_i = out->rvalid;
  *d->m_axi_rid_i = out->rid;
  *d->m_axi_rresp_i = out->rresp;
  *d->m_axi_rlast_i = out->rlast;
  memcpy(d->m_axi_rdata_i, out->rdata, sizeof out->rdata);
}

/* ---- Bytes ---------------------------------------------------------------------------------- */

/* The bridge's answers must be what the model said, but for the interrupt; events are counted. */
static void take_frame(struct usb_rig *r) {
  struct ct_usb_frame *f = &r->parser.frame;
  uint8_t bytes[CT_USB_FRAME];
  const bool up = f->status & CT_USB_IRQ;
  ++r->frames;
  if (f->kind == CT_USB_EVENT) {
    assert_int_equal(f->tag, 0);
    assert_int_equal(f->size, 0);
    assert_int_equal(f->status, CT_USB_IRQ);
    assert_false(r->told); /* nothing new */
    ++r->events;
  } else {
    f->status &= (uint8_t)~CT_USB_IRQ;
    const size_t size = ct_usb_put(f, bytes);
    memcpy(r->from + r->from_count, bytes, size);
    r->from_count += size;
    assert_true(r->from_count <= USB_QUEUE - CT_USB_FRAME);
  }
  r->told = up;
}

static void take_bytes(struct usb_rig *r) {
  const ct_usb_bridge_dut *d = r->dut;
  if (*d->rx_valid_i && *d->rx_ready_o) {
    ++r->to_first;
    --r->to_count;
    r->changed = r->cycle;
  }
  if (!*d->tx_valid_o || !*d->tx_ready_i) return;
  const enum ct_usb_seen seen = ct_usb_take(&r->parser, *d->tx_data_o);
  assert_true(seen != CT_USB_BROKEN);
  assert_int_equal(*d->tx_flush_o, seen == CT_USB_WHOLE);
  if (seen == CT_USB_WHOLE) take_frame(r);
  r->changed = r->cycle;
}

void usb_rig_cycle(struct usb_rig *r) {
  const ct_usb_bridge_dut *d = r->dut;
  drive_registers(r);
  if (!*d->rx_valid_i && r->to_count) *d->rx_valid_i = !ct_stall_next(&r->rx);
  if (*d->rx_valid_i) *d->rx_data_i = r->to[r->to_first];
  *d->tx_ready_i = !ct_stall_next(&r->tx);
  take_memory_outputs(r);
  if (ct_axi_mem_cycle(r->mem, &r->in, &r->out)) drive_memory_inputs(r);
  ct_usb_bridge_eval(r->dut);
  take_registers(r);
  const bool moved = *d->rx_valid_i && *d->rx_ready_o;
  take_bytes(r);
  ct_usb_bridge_tick(r->dut);
  if (moved) *d->rx_valid_i = 0;
  ++r->cycle;
  if (ct_axi_mem_error(r->mem)) fail_msg("%s", ct_axi_mem_error(r->mem));
}

void usb_rig_send(struct usb_rig *r, const uint8_t *bytes, size_t size) {
  if (!r->to_count) r->to_first = 0;
  assert_true(r->to_first + r->to_count + size <= USB_QUEUE);
  memcpy(r->to + r->to_first + r->to_count, bytes, size);
  r->to_count += size;
  for (size_t i = 0; i < size; ++i)
    ct_usb_board_take(&r->board, bytes[i]);
}

/* The model carries the interrupt as it is now; the comparison is without. */
static void strip_irq(struct usb_rig *r) {
  static struct ct_usb_parser p;
  size_t out = 0;
  p.at = 0;
  for (size_t i = 0; i < r->expected_count; ++i) {
    if (ct_usb_take(&p, r->expected[i]) != CT_USB_WHOLE) continue;
    p.frame.status &= (uint8_t)~CT_USB_IRQ;
    out += ct_usb_put(&p.frame, r->expected + out);
  }
  assert_int_equal(out, r->expected_count);
}

void usb_rig_settle(struct usb_rig *r) {
  const uint64_t start = r->cycle;
  r->changed = r->cycle;
  while (r->to_count || r->cycle - r->changed < kQuiet) {
    if (r->cycle - start > kPatience + 100 * r->to_count) fail_msg("the bridge hangs");
    usb_rig_cycle(r);
  }
  strip_irq(r);
  assert_int_equal(r->from_count, r->expected_count);
  ct_assert_same("answers", r->from, r->expected, r->expected_count);
  assert_int_equal(r->regs.reads, r->ref_regs.reads);
  assert_int_equal(r->regs.writes, r->ref_regs.writes);
  ct_assert_same("registers", r->regs.value, r->ref_regs.value, sizeof r->regs.value);
  if (memcmp(ct_axi_mem_data(r->mem), r->ref_memory, USB_MEMORY))
    ct_assert_same("memory", ct_axi_mem_data(r->mem), r->ref_memory, USB_MEMORY);
  if (*r->dut->irq_i) assert_true(r->told);
  r->from_count = r->expected_count = 0;
}

/* ---- Operations ----------------------------------------------------------------------------- */

void usb_op(struct ct_usb_frame *f, uint8_t code, uint8_t high, unsigned n, uint32_t word) {
  uint8_t *p = f->payload + f->size;
  p[0] = code;
  p[1] = high;
  ct_usb_put16(p + 2, (uint16_t)n);
  ct_usb_put32(p + 4, word);
  f->size = (uint16_t)(f->size + CT_USB_OP);
}

static unsigned random_length(ct_rng *rng, unsigned room) {
  static const unsigned often[] = {1, 2, 4, 15, 16, 17, 64, 255, 256, 257};
  unsigned n = ct_rng_percent(rng, 30)   ? often[ct_rng_below(rng, 10)]
               : ct_rng_percent(rng, 70) ? 1 + ct_rng_below(rng, 100)
                                         : 1 + ct_rng_below(rng, 2048);
  return n < room ? n : room;
}

bool usb_random_op(ct_rng *rng, struct ct_usb_frame *f, unsigned sensible) {
  const unsigned room = CT_USB_PAYLOAD - f->size;
  if (room <= CT_USB_OP) return false;
  if (!ct_rng_percent(rng, sensible)) {
    usb_op(f, (uint8_t)ct_rng_below(rng, 6), (uint8_t)(1u << ct_rng_below(rng, 8)),
           (unsigned)ct_rng_u64(rng) & (0xFFFFu >> ct_rng_below(rng, 13)),
           (uint32_t)ct_rng_u64(rng));
    return true;
  }
  if (ct_rng_percent(rng, 40)) {
    usb_op(f, ct_rng_percent(rng, 50) ? CT_USB_REG_READ : CT_USB_REG_WRITE, 0,
           4 * ct_rng_below(rng, ct_rng_percent(rng, 5) ? USB_REGISTERS : USB_BAD_REGISTER / 4),
           (uint32_t)ct_rng_u64(rng));
    return true;
  }
  const bool write = ct_rng_percent(rng, 50);
  uint32_t addr = ct_rng_below(rng, USB_MEMORY);
  if (ct_rng_percent(rng, 20)) addr &= ~15u;
  unsigned n = random_length(rng, write ? room - CT_USB_OP : CT_USB_PAYLOAD);
  if (n > 4096 - addr % 4096) n = 4096 - addr % 4096;
  usb_op(f, write ? CT_USB_MEM_WRITE : CT_USB_MEM_READ, 0, n, addr);
  if (!write) return true;
  ct_rng_fill(rng, f->payload + f->size, n);
  f->size = (uint16_t)(f->size + n);
  return true;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

struct usb_rig *usb_rig_new(struct usb_stalls stalls, uint64_t stream) {
  struct usb_rig *r = calloc(1, sizeof *r);
  assert_non_null(r);
  r->dut = ct_usb_bridge_new(ct_tb_trace());
  const struct ct_axi_mem_config config = {.bytes = USB_MEMORY,
                                           .latency = stalls.latency,
                                           .read_bytes = stalls.bandwidth,
                                           .write_bytes = stalls.bandwidth,
                                           .stall_percent = stalls.memory,
                                           .seed = ct_tb_seed() + stream,
                                           .max_beats = 8,
                                           .max_reads = 1,
                                           .max_writes = 1};
  r->mem = ct_axi_mem_new(&config);
  r->to = malloc(USB_QUEUE);
  r->from = malloc(USB_QUEUE);
  r->expected = malloc(USB_QUEUE);
  r->ref_memory = malloc(USB_MEMORY);
  assert_true(r->mem && r->to && r->from && r->expected && r->ref_memory);
  r->rng = ct_rng_make(stream);
  ct_rng_fill(&r->rng, r->ref_memory, USB_MEMORY);
  memcpy(ct_axi_mem_data(r->mem), r->ref_memory, USB_MEMORY);
  r->rx = ct_stall_make(stream + 1, stalls.rx, 5);
  r->tx = ct_stall_make(stream + 2, stalls.tx, 7);
  r->axil = ct_stall_make(stream + 3, stalls.axil, 3);
  r->board = (struct ct_usb_board){
      .ops = &ref_ops, .self = r, .send = ref_sends, .arg = r, .version = CT_USB_VERSION};
  *r->dut->rx_valid_i = *r->dut->irq_i = 0;
  ct_axi_mem_reset(r->mem, &r->out);
  drive_memory_inputs(r);
  ct_usb_bridge_reset(r->dut, 3);
  return r;
}

void usb_rig_free(struct usb_rig *r) {
  ct_usb_bridge_free(r->dut);
  ct_axi_mem_free(r->mem);
  free(r->to);
  free(r->from);
  free(r->expected);
  free(r->ref_memory);
  free(r);
}
