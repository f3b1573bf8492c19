/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator over a watched core with faults to choose from. */
#define CT_SIM_MODEL ct_core_mutant
#define CT_SIM_HEADER "ct_core_mutant_dut.h"
#include "ct_sim_watch.c"

/* Assertions in the RTL see some of the faults, too; here the benches have to. */
void ct_core_mutant_choose(void *self, uint8_t which) {
  ct_core_mutant_dut *d = ((struct sim *)self)->dut;
  ct_core_mutant_expect_errors(d, which != 0);
  *d->mutant_i = which;
}
