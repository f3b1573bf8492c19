/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Verilated core behind a transport's table of functions.
 *
 * The arguments are in ct_uri.c. Only the plug-in looks at core=, which chooses the model; wave=
 * needs a model built with TRACE=1, threads=2 one built with THREADS=2.
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
CT_SIM_DECLARE(ct_core_16x4); /* 4 columns, 4 lanes */

#endif
