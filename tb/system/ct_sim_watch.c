/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator over a watched core. */
#ifndef CT_SIM_MODEL
#define CT_SIM_MODEL ct_core_watch
#define CT_SIM_HEADER "ct_core_watch_dut.h"
#endif
#include "ct_watch.h"
#include "host/transports/sim/ct_sim.c" /* one source, a model each */

struct ct_watch PASTE(CT_SIM_MODEL, _look)(void *self) {
  const DUT(dut) *d = ((struct sim *)self)->dut;
  return (struct ct_watch){.live = *d->watch_o & 1,
                           .done = *d->watch_o >> 1 & 1,
                           .written = *d->watch_o >> 2 & 1,
                           .read = *d->watch_o >> 3,
                           .at = *d->at_o};
}
