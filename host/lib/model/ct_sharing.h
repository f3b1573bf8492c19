/* SPDX-License-Identifier: Apache-2.0 */
/* How a device is shared by inference and training now, for bounds of what that costs. */
#ifndef CT_SHARING_H
#define CT_SHARING_H

#include "ct_chain.h"
#include "ct_device.h"

/* With a memory of 16 bytes a cycle. batch: requests of a program for batches; else 1. A
 * ct_error. */
int ct_sharing(ct_device *dev, uint32_t batch, struct ct_chain_core *core);

#endif
