/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator over the small core with one context. */
#ifndef CT_SIM_ONE_H
#define CT_SIM_ONE_H

#include "host/transports/sim/ct_sim.h"

CT_SIM_DECLARE(ct_core_one);

#endif
