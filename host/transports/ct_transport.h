/* SPDX-License-Identifier: Apache-2.0
 *
 * What a way to a device must offer: registers, memory, waiting and time. Everything above this
 * table is one code for every device. A transport is used by one thread at a time.
 */
#ifndef CT_TRANSPORT_H
#define CT_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#define CT_TRANSPORT_ABI 7
struct ct_probe;

#define CT_NO_CYCLE UINT64_MAX /* "no such time": the device has no clock, or no limit */

/* Faults a simulated device can be asked for; addr is a DRAM byte address (AXI faults). */
enum ct_fault {
  CT_FAULT_NONE,      /* forget all armed faults */
  CT_FAULT_AXI_READ,  /* the next read burst that covers addr answers SLVERR, on that beat */
  CT_FAULT_AXI_WRITE, /* the next write burst that covers addr answers SLVERR */
  CT_FAULT_AXI_HANG   /* reads and writes that cover addr are never answered (until NONE) */
};

/* A device that is there: args, what follows "scheme:" in a name that opens it and no other; text,
 * what it is, or why it could not be opened now, as error says. */
typedef void ct_transport_found(void *arg, const char *args, const char *text, int error);

/* All functions return 0 (or a non-negative result) on success and a negative CT_ERR_* of
 * coltrain.h on failure. Addresses of memory are byte offsets into device memory. */
struct ct_transport_ops {
  uint32_t abi;       /* CT_TRANSPORT_ABI */
  const char *scheme; /* "sim", "emu", ... */

  /* Opens the device that args (what follows "scheme:") names. On failure writes one sentence to
   * why (whysize bytes). */
  int (*open)(const char *args, void **self, char *why, size_t whysize);
  void (*close)(void *self);

  int (*reg_read)(void *self, uint32_t offset, uint32_t *value);
  int (*reg_write)(void *self, uint32_t offset, uint32_t value);

  /* Performs the register write when the device's clock shows cycle (or at once if that has
   * passed); returns without waiting. Writes scheduled for one cycle keep their order. NULL: the
   * device has no such means and the caller writes at once. */
  int (*reg_write_at)(void *self, uint64_t cycle, uint32_t offset, uint32_t value);

  int (*mem_read)(void *self, uint64_t addr, void *buf, size_t size);
  int (*mem_write)(void *self, uint64_t addr, const void *buf, size_t size);

  /* Waits until the interrupt is up (returns 1), the device's clock reaches until (CT_NO_CYCLE: no
   * such limit; returns 0) or timeout_ms of wall clock have passed (negative: none; returns 0). A
   * simulated device advances only in here and by register accesses. */
  int (*wait)(void *self, uint64_t until, int timeout_ms);

  /* The device's clock in cycles since reset; CT_NO_CYCLE if it has none. */
  int (*now)(void *self, uint64_t *cycle);

  /* Arms a fault; NULL: the device cannot. */
  int (*fault)(void *self, enum ct_fault kind, uint64_t addr);

  /* Adds to *probe in every cycle from here on (ct_probe.h), NULL: no more; it stays the caller's.
   * NULL: the device cannot. */
  int (*probe)(void *self, struct ct_probe *probe);

  /* A descriptor that poll() finds readable when it is time to look at the device: its interrupt
   * came, or, without one, enough time has passed. The same one every time, the transport's own.
   * Each call forgets what came before it and arms it again, so it is called when everything that
   * the device had to say has been taken. NULL: the device advances only in calls. */
  int (*irq_fd)(void *self);

  /* What went wrong, after CT_ERR_DEVICE from any of these, as the end of a sentence; "" if there
   * is nothing to add. Valid until the next call. NULL: the transport never knows. */
  const char *(*error)(void *self);

  /* What the memory is, for people, valid as long as the device: at most 39 characters. NULL: that
   * is not known. */
  const char *(*memory)(void *self);

  /* Bytes a second, each way, that the line to the device carries at most, heads and all; 0: not
   * known. NULL: there is no such line. */
  uint64_t (*line_rate)(void *self);

  /* Tells of every device of this kind that the machine has. None is reset or read. NULL: there is
   * one, which the scheme alone names. */
  int (*list)(ct_transport_found *found, void *arg);
};

/* Transports linked into the library. */
extern const struct ct_transport_ops ct_transport_emu, ct_transport_mmio;

/* Entry point of a transport built as a plug-in (lib/coltrain/<scheme>.so). */
const struct ct_transport_ops *ct_transport_plugin(void);

#endif
