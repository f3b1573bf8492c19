/* SPDX-License-Identifier: Apache-2.0 */
#include "coltrain/coltrain.h"
#include "ct_kernel_conv.h"
int ct_kernel_conv_weights(const struct ct_conv *k, const struct ct_room *room,
                           struct ct_codes *codes, const struct ct_why *why) {
  (void)k;
  (void)room;
  (void)codes;
  return ct_why(why, CT_ERR_UNSUPPORTED, "not yet");
}
