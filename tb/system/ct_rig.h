/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device under test and what a driver would do with it, straight on the transport's functions:
 * windows, rings, jobs, completions. Failures of the transport fail the test.
 *
 * Device memory of context c, from c * 4 MiB: ring (16 slots), programs (one place a slot), input
 * area, output area. The context may read all of it and write the output area.
 */
#ifndef CT_RIG_H
#define CT_RIG_H

#include "ct_gen.h"
#include "host/transports/ct_transport.h"

enum {
  CT_RIG_MIB = 8,
  CT_RIG_RING_LOG2 = 4,
  CT_RIG_CTX_BYTES = 4 << 20,
  CT_RIG_PROGS = 0x10000, /* byte offsets within the context's memory */
  CT_RIG_IN = 0x100000,
  CT_RIG_OUT = 0x200000
};

struct ct_rig {
  const char *name;
  const struct ct_transport_ops *ops;
  void *self;
  const char *(*error)(void *self); /* what went wrong, or NULL */
  uint16_t tail[2];
};

struct ct_rig_cpl {
  uint32_t tag, code, addr, version, rows;
  uint64_t arrive, start, end;
};

struct ct_rig_job {
  const struct ct_gen_prog *prog;
  uint32_t tag, version, watchdog, flags;
  uint32_t prog_unit; /* where the descriptor says the program is; 0: where it is */
  uint32_t ncmds;     /* what it says of the length; 0: the program's */
};

/* Opens a device and sets up both contexts. */
void ct_rig_open(struct ct_rig *rig, const char *name, const struct ct_transport_ops *ops,
                 const char *(*error)(void *self), const char *args);
void ct_rig_close(struct ct_rig *rig);
/* Windows, rings, counts: again after a global reset. */
void ct_rig_setup(struct ct_rig *rig);
/* A context's windows alone. */
void ct_rig_windows(struct ct_rig *rig, unsigned ctx);

uint32_t ct_rig_read(struct ct_rig *rig, uint32_t offset);
void ct_rig_write(struct ct_rig *rig, uint32_t offset, uint32_t value);
/* Registers of a context, by CT_CREG_x. */
uint32_t ct_rig_cread(struct ct_rig *rig, unsigned ctx, uint32_t creg);
void ct_rig_cwrite(struct ct_rig *rig, unsigned ctx, uint32_t creg, uint32_t value);
uint64_t ct_rig_counter(struct ct_rig *rig, unsigned ctx, unsigned index);

/* First word of a context's SPM window. */
uint32_t ct_rig_spm_base(unsigned ctx);
/* Areas, as bytes in device memory and as units for commands. */
uint64_t ct_rig_addr(unsigned ctx, uint32_t offset);
uint32_t ct_rig_unit(unsigned ctx, uint32_t offset);

/* Writes program and descriptor into the ring; ring() makes it visible. */
void ct_rig_submit(struct ct_rig *rig, unsigned ctx, const struct ct_rig_job *job);
void ct_rig_ring(struct ct_rig *rig, unsigned ctx);

/* Waits for the context's next completion and pops it; fails the test after limit cycles. */
struct ct_rig_cpl ct_rig_reap(struct ct_rig *rig, unsigned ctx, uint64_t limit);
/* Lets cycles pass. */
void ct_rig_pass(struct ct_rig *rig, uint64_t cycles);

/* An SPM word by DBG_PEEK: mantissas, exponent, flags. */
void ct_rig_peek(struct ct_rig *rig, uint32_t addr, uint32_t word[5]);

#endif
