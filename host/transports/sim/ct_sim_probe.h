/* SPDX-License-Identifier: Apache-2.0 */
/* Turns ct_core's probe_o into the histograms of ct_probe.h. */
#ifndef CT_SIM_PROBE_H
#define CT_SIM_PROBE_H

#include "host/transports/ct_probe.h"

enum { CT_SIM_PROBE_READS = 16 }; /* reads of a context under way at most; a power of two */

/* How long an operation has waited. */
struct ct_sim_wait {
  uint64_t peer, rest;
};

struct ct_sim_probe {
  struct ct_probe *to; /* NULL: nobody asks */
  struct ct_sim_wait wait[CT_UNIT_COUNT][2];
  /* Reads that were granted and have no beat yet, by context: what they had waited at their grant,
   * less the cycles (of the peer's beats, of all others) until then. */
  struct ct_sim_wait read[2][CT_SIM_PROBE_READS];
  unsigned head[2], tail[2];
  bool begun[2];               /* the read at head has had its first beat */
  struct ct_sim_wait beats[2]; /* cycles so far with a beat of the peer, without */
};

/* One settled cycle; its number and what probe_o says. */
void ct_sim_probe_cycle(struct ct_sim_probe *p, uint64_t cycle, uint64_t events);

#endif
