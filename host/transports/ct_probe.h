/* SPDX-License-Identifier: Apache-2.0
 *
 * What a simulated core's units do, cycle by cycle, kept as histograms: how long operations of a
 * context that were ready waited until they were served, the cycles given to the other context
 * apart from all others. Hardware has no such thing; its counters (ct_regs.def) hold sums only.
 *
 * Ready and served. Granted is served for writes (the burst is complete in its buffer), rows of the
 * array and tile operations of the vector unit. A read is served when its first beat comes: it
 * waits in the memory, behind what was asked for before it. A read of training that defers to
 * inference is ready when it is owed a slot.
 */
#ifndef CT_PROBE_H
#define CT_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "coltrain/coltrain.h"
#include "host/lib/isa/ct_bound.h"

/* The events of a unit, a bit for each context: bits of probe_o from 10 * unit on, two each. */
enum ct_probe_event {
  CT_PROBE_READY,
  CT_PROBE_GRANT,
  CT_PROBE_USED,
  CT_PROBE_ACCEPT,
  CT_PROBE_COMPLETE,
  CT_PROBE_EVENTS
};
enum { CT_PROBE_UNIT_BITS = 2 * CT_PROBE_EVENTS, CT_PROBE_BINS = 512 };

struct ct_probe_wait {
  uint64_t sum, max;
  uint64_t bin[CT_PROBE_BINS]; /* operations that waited so many cycles; the last: or more */
};

/* A unit and a context. */
struct ct_probe_side {
  uint64_t served;           /* operations */
  uint64_t used, complete;   /* cycles in which something moved; operations completed */
  struct ct_probe_wait peer; /* cycles waited while the unit served the other context */
  struct ct_probe_wait rest; /* cycles waited for the memory, the scratchpad or the own context */
};

/* Called with every cycle's number and events (probe_o), in the thread that uses the device. */
typedef void ct_probe_watch(void *arg, uint64_t cycle, uint64_t events);

struct ct_probe {
  uint64_t cycles;
  uint64_t refreshes, rows; /* of the memory's chip, if it has one: refreshes, rows opened */
  uint64_t refused;         /* cycles in which the memory refused something, at random (stall=) */
  struct ct_probe_side side[CT_UNIT_COUNT][2];
  ct_probe_watch *watch; /* NULL: nobody */
  void *watch_arg;
};

/* "DMA read" ... */
const char *ct_probe_name(enum ct_unit unit);

/* From here on the device adds to *probe (zeroed by the caller but for watch, valid until the next
 * call); NULL: no more. CT_ERR_UNSUPPORTED unless the device is a simulated core. */
int ct_probe(ct_device *dev, struct ct_probe *probe);

#endif
