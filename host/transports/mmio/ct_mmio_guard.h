/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses to a mapping that may vanish. When a device is taken away (a PCI function removed, a bus
 * that answers with an error), the next load or store is a SIGBUS, which would end the process. A
 * guard turns it into a flag: the handler puts ordinary memory in the mapping's place, and the
 * access, done again, goes there.
 *
 * The handler is the process's: it is there while a guard is, and passes on what is not a guarded
 * access. A program that installs its own afterwards loses the protection, no more.
 */
#ifndef CT_MMIO_GUARD_H
#define CT_MMIO_GUARD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { CT_GUARD_AREAS = 2 };

struct ct_guard {
  struct {
    void *at; /* whole pages; NULL: none */
    size_t length;
  } area[CT_GUARD_AREAS];
  volatile sig_atomic_t gone; /* an access failed: what was read is worthless */
};

/* A guard for no area yet, and its end; the areas are unmapped by whoever mapped them. False: the
 * handler cannot be installed. */
bool ct_guard_open(struct ct_guard *guard);
void ct_guard_close(void);

/* The guard of this thread's present access. */
extern _Thread_local struct ct_guard *volatile ct_guard_current
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline void ct_guard_begin(struct ct_guard *guard) {
  ct_guard_current = guard;
  atomic_signal_fence(memory_order_seq_cst);
}

/* Whether the accesses since ct_guard_begin() reached the device. */
static inline bool ct_guard_end(struct ct_guard *guard) {
  atomic_signal_fence(memory_order_seq_cst);
  ct_guard_current = NULL;
  return !guard->gone;
}

#endif
