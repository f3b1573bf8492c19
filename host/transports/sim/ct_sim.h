/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Verilated core behind a transport's table of functions.
 *
 * Arguments: dram=MIB (256), latency=CYCLES (60), bandwidth=BYTES a cycle each way (16),
 * stall=PERCENT (0), seed=N (1), wave=FILE (needs a model built with TRACE=1), core=16x16|16x8
 * (which model; only the plug-in looks at it), threads=1|2 (2 needs a model built with THREADS=2;
 * only the plug-in looks at it).
 *
 * One ct_sim.c is one model: CT_SIM_MODEL names it (see the shim in tb/harness/vshim.awk).
 */
#ifndef CT_SIM_H
#define CT_SIM_H

#include <stdint.h>

#include "host/transports/ct_transport.h"

/* The table for the model that is called NAME. */
#define CT_SIM_DECLARE(NAME)                       \
  extern const struct ct_transport_ops NAME##_sim; \
  const char *NAME##_sim_error(void *self)

CT_SIM_DECLARE(ct_core);      /* 16 columns, 16 lanes */
CT_SIM_DECLARE(ct_core_16x8); /* 8 columns, 4 lanes */

#endif
