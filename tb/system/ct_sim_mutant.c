/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator over a watched core with faults to choose from. */
#define CT_SIM_MODEL ct_core_mutant
#define CT_SIM_HEADER "ct_core_mutant_dut.h"
#include "ct_sim_watch.c"

void ct_core_mutant_choose(void *self, uint8_t which) {
  *((struct sim *)self)->dut->mutant_i = which;
}
