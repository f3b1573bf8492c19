/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes between mmio_trap.so, which catches a program's loads and stores, and mmio_core, which
 * is the device: each access is a request and its answer, packets of a local socket. A packet with
 * WIRE_IRQ turns its connection into a UIO device's interrupt: from then on it carries only counts
 * to the program and enables (0 or 1) from it, 4 bytes each.
 */
#ifndef MMIO_WIRE_H
#define MMIO_WIRE_H

#include <stdint.h>

enum wire_op {
  WIRE_READ_REG, /* addr, size; the answer's value */
  WIRE_WRITE_REG,
  WIRE_READ_MEM,
  WIRE_WRITE_MEM,
  WIRE_IRQ,
  WIRE_MODE, /* value: enum wire_mode, from now on */
  WIRE_STATS /* value 0: how often the rules of mmio_core.c were broken so far; 1: interrupts */
};

enum wire_mode {
  WIRE_NORMAL,
  WIRE_ONES,    /* a device that is gone: reads give ones, writes nothing */
  WIRE_VANISH,  /* a mapping that is taken away: accesses raise SIGBUS */
  WIRE_NO_IRQ,  /* the interrupt's wire is cut */
  WIRE_STUCK,   /* the interrupt's wire is up for ever */
  WIRE_UNBOUND, /* the driver is unbound: the interrupt's connections are closed */
  WIRE_BAD_ID,  /* another device answers */
  WIRE_BAD_ABI,
  WIRE_NO_MEM /* memory keeps nothing */
};

struct wire {
  uint32_t op, size;
  uint64_t addr, value;
};

#endif
