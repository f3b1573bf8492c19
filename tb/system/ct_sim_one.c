/* SPDX-License-Identifier: Apache-2.0 */
/* The small core with one context: inference alone. */
#define CT_SIM_MODEL ct_core_one
#define CT_SIM_HEADER "ct_core_one_dut.h"
#include "ct_sim_one.h"
#include "host/transports/sim/ct_sim.c" /* NOLINT(bugprone-suspicious-include): one source, a model each */
