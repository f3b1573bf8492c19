/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device of its own process for tests of "mmio:", and the files through which it is reached:
 *
 *   /dev/uio0, /dev/coltrain (a link)      map0 registers, map1 memory, an interrupt
 *   /dev/uio1                              one map only
 *   /dev/uio2                              an interrupt, no maps, as uio_pci_generic
 *   /dev/uio3                              may not be opened
 *   /dev/mem                               registers at RIG_REGS, memory at RIG_MEM
 *   /sys/bus/pci/devices/0000:00:05.0/     resource0 registers, resource2 memory, resource4 is
 * small
 *
 * They exist only for programs that run with mmio_trap.so.
 */
#ifndef MMIO_RIG_H
#define MMIO_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "mmio_wire.h"

#define RIG_PCI "/sys/bus/pci/devices/0000:00:05.0/"
#define RIG_BY_UIO "mmio:/dev/uio0"
#define RIG_BY_PCI "mmio:" RIG_PCI "resource0,mem=" RIG_PCI "resource2"
#define RIG_BY_MEM "mmio:/dev/mem,regs=0xa0000100,mem-at=0x60000010,mem-size=0x1000000"

enum { RIG_MIB = 16 };
#define RIG_REGS 0xa0000100L
#define RIG_MEM 0x60000010L

/* Starts this program anew with the trap; returns in that one. False: not on this processor. */
bool rig_begin(char **argv);

/* Files, and a new core with these options of sim:. The next stops the one before. */
void rig_start(const char *options);
void rig_stop(void);

/* Stops it at once, as a crash would. */
void rig_kill(void);

void rig_mode(enum wire_mode mode);

/* Accesses so far that broke the rules of mmio_core.c. */
uint64_t rig_broken(void);

/* Interrupts so far. */
uint64_t rig_irqs(void);

/* The UIO device leaves /sys, as its driver is unbound; the PCI function does. */
void rig_unbind(void);
void rig_remove(void);

#endif
