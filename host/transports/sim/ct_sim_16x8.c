/* SPDX-License-Identifier: Apache-2.0 */
/* The small core: 16x8 array, 4 lanes. */
#define CT_SIM_MODEL ct_core_16x8
#define CT_SIM_HEADER "ct_core_16x8_dut.h"
#include "ct_sim.c" /* NOLINT(bugprone-suspicious-include): one source, a model each */
