/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_probe.h"

#include <stddef.h>

#include "ct_device.h"

const char *ct_probe_name(enum ct_unit unit) {
  static const char *const names[] = {"DMA read", "DMA write", "MXU", "VL", "VA", "VS"};
  return names[unit];
}

int ct_probe(ct_device *dev, struct ct_probe *probe) {
  const struct ct_transport_ops *ops = dev->plugin.ops;
  if (!ops->probe)
    return ct_fail(dev, CT_ERR_UNSUPPORTED, "only a simulated core can be watched in every cycle");
  return ops->probe(dev->self, probe);
}
