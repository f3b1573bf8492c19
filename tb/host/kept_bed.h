/* SPDX-License-Identifier: Apache-2.0 */
/* A training step of ResNet-8 that keeps activations compressed, small enough for tests. */
#ifndef KEPT_BED_H
#define KEPT_BED_H

#include "coltrain/network.h"

/* So many images, SGD with momentum; activations kept in a format, gradients in HBFP8. Checked;
 * free it. */
ct_graph *kept_resnet8(uint32_t images, enum ct_format format);
/* With one image, compressed, on a device. */
ct_network *kept_network(ct_device *dev, const struct ct_network_options *options);
/* One image and its label, always the same; kept_ready(): and drawn weights. */
void kept_fill(ct_network *net);
void kept_fill_times(ct_network *net, float times); /* its numbers */
void kept_ready(ct_network *net);
struct ct_network_info kept_info(ct_network *net);

#endif
