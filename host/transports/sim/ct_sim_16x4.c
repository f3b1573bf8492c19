/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest core: 16x4 array, 4 lanes. */
#define CT_SIM_MODEL ct_core_16x4
#define CT_SIM_HEADER "ct_core_16x4_dut.h"
#include "ct_sim.c" /* NOLINT(bugprone-suspicious-include): one source, a model each */
