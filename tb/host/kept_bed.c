/* SPDX-License-Identifier: Apache-2.0 */
#include "kept_bed.h"

#include "ct_tb.h"
#include "network_bed.h"

ct_graph *kept_resnet8(uint32_t images, enum ct_format format) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.01}, .momentum = 0.9};
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_builtin(g, "resnet8", images, true), CT_OK);
  assert_int_equal(ct_graph_optimise(g, ct_graph_find(g, "loss"), &how), CT_OK);
  assert_true(ct_graph_keep(g, CT_ROLE_ACTIVATION, format) > 10);
  assert_true(ct_graph_keep(g, CT_ROLE_GRADIENT, CT_FORMAT_HBFP8) > 10);
  assert_int_equal(ct_graph_check(g), CT_OK);
  return g;
}

ct_network *kept_network(ct_device *dev, const struct ct_network_options *options) {
  ct_network *net;
  ct_graph *g = kept_resnet8(1, CT_FORMAT_COMPRESSED);
  if (ct_network_create(dev, g, options, &net)) fail_msg("%s", ct_last_error(dev));
  ct_graph_free(g);
  return net;
}

void kept_fill_times(ct_network *net, float times) {
  float x[32 * 32 * 3], y[10] = {0};
  ct_graph *g = ct_network_graph(net);
  ct_rng rng = ct_rng_make(8);
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i)
    x[i] = times * ((float)ct_rng_below(&rng, 256) / 256 - 0.5f);
  y[3] = 1;
  assert_int_equal(ct_network_write(net, ct_graph_find(g, "x"), x, sizeof x / sizeof *x), CT_OK);
  assert_int_equal(ct_network_write(net, ct_graph_find(g, "y"), y, 10), CT_OK);
}

void kept_fill(ct_network *net) {
  kept_fill_times(net, 1);
}

void kept_ready(ct_network *net) {
  assert_int_equal(ct_network_draw(net, 1), CT_OK);
  kept_fill(net);
}

struct ct_network_info kept_info(ct_network *net) {
  struct ct_network_info info;
  assert_int_equal(ct_network_info(net, &info), CT_OK);
  return info;
}
