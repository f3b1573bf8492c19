/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_usb_bridge between a host's bytes, a register slave and a memory, and the model of docs/usb.md
 * in C (ct_usb_board) over registers and memory of its own. Both get the same bytes; what they
 * answer and what they have done to their registers and memory must be the same.
 */
#ifndef USB_RIG_H
#define USB_RIG_H

#include "ct_tb.h"

#include "ct_usb_board.h"
#include "host/transports/sim/ct_axi_mem.h"

#include "ct_usb_bridge_dut.h"

enum {
  USB_MEMORY = 1 << 16,
  USB_REGISTERS = 1024,
  USB_BAD_REGISTER = 0x800, /* registers from here on answer with an error */
  USB_QUEUE = 1 << 18
};

/* Registers that show every access: reading register n gives its value and adds 1 to it, writing
 * adds the word to it. */
struct usb_registers {
  uint32_t value[USB_REGISTERS];
  unsigned long reads, writes;
};

/* Percent of the cycles in which each handshake stands still. */
struct usb_stalls {
  unsigned rx, tx, axil, memory;
  uint32_t latency;   /* of the memory, cycles; 0: 60 */
  uint32_t bandwidth; /* of the memory, bytes a cycle; 0: 16 */
};

struct usb_rig {
  ct_usb_bridge_dut *dut;
  ct_axi_mem *mem;
  struct ct_axi_in in;
  struct ct_axi_out out;
  ct_rng rng;
  ct_stall rx, tx, axil;
  bool tx_ready, axil_hangs;
  bool aw, w, b, ar, r; /* an access of the slave under way */
  uint16_t aw_addr, ar_addr;
  uint32_t w_data;
  struct usb_registers regs;
  uint8_t *to, *from; /* bytes to the bridge, from it */
  size_t to_first, to_count, from_count;
  struct ct_usb_parser parser; /* of what it sends */
  unsigned events, frames;
  bool told;               /* the last frame said that the interrupt is up */
  uint64_t cycle, changed; /* when a byte moved last */

  struct ct_usb_board board; /* the reference */
  struct usb_registers ref_regs;
  uint8_t *ref_memory, *expected; /* bytes it answered */
  size_t expected_count;
};

struct usb_rig *usb_rig_new(struct usb_stalls stalls, uint64_t stream);
void usb_rig_free(struct usb_rig *r);

/* One cycle. */
void usb_rig_cycle(struct usb_rig *r);

/* Bytes for both; they move in the cycles to come. */
void usb_rig_send(struct usb_rig *r, const uint8_t *bytes, size_t size);

/* Runs until all bytes are taken and nothing has come for a while, then compares everything. */
void usb_rig_settle(struct usb_rig *r);

/* Adds an operation to a frame. */
void usb_op(struct ct_usb_frame *f, uint8_t code, uint8_t high, unsigned n, uint32_t word);

/* Adds a random operation to a frame, sensible in so many percent. Returns false if it has no room.
 */
bool usb_random_op(ct_rng *rng, struct ct_usb_frame *f, unsigned sensible);

#endif
