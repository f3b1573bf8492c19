/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_sharing.h"

#include "coltrain_spec.h"

int ct_sharing(ct_device *dev, uint32_t batch, struct ct_chain_core *core) {
  *core = (struct ct_chain_core){
      .cols = dev->info.array_cols, .lanes = dev->info.vpu_lanes, .beat_cycles = 1, .batch = batch};
  const int err = ct_reg_read(dev, CT_REG_TRAIN_CAP, &core->train_cap);
  return err ? err : ct_reg_read(dev, CT_REG_FLOOR, &core->floor);
}
