/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of time on whole networks: every layer of LeNet-5 and ResNet-8, served and trained,
 * takes as many cycles on the simulated cores as it says, within what `coltrain explain` promises:
 * 10 %. The sum is much nearer. Layers run in a row here, so that what a job reads for the one
 * behind it counts; the kernels alone are held by test_cycles_kernels. SHOW=1 prints the table.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "coltrain/network.h"
#include "harness/ct_tb.h"

enum { PERCENT = 10, PERCENT_SUM = 1 };

struct net {
  const char *uri, *name;
  uint32_t batch;
  bool train, keep; /* HBFP8 for what a step keeps */
};

static ct_graph *graph_of(const struct net *n) {
  const struct ct_optimise how = {.schedule = {.rate = 0.05}, .momentum = 0.9};
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_builtin(g, n->name, n->batch, n->train), CT_OK);
  if (n->train) assert_int_equal(ct_graph_optimise(g, ct_graph_find(g, "loss"), &how), CT_OK);
  if (n->keep) {
    assert_true(ct_graph_keep(g, CT_ROLE_ACTIVATION, CT_FORMAT_HBFP8) > 0);
    assert_true(ct_graph_keep(g, CT_ROLE_GRADIENT, CT_FORMAT_HBFP8) > 0);
  }
  assert_int_equal(ct_graph_check(g), CT_OK);
  return g;
}

static bool near(uint64_t want, uint64_t got, uint64_t percent) {
  const uint64_t off = want > got ? want - got : got - want;
  return off * 100 <= got * percent;
}

/* Whether a layer, or the sum of them, takes what is expected. */
static bool compare(const struct net *n, const struct ct_network_stage *s, uint64_t percent) {
  const bool good = near(s->expected, s->cycles, percent);
  const double off = 100.0 * ((double)s->expected - (double)s->cycles) / (double)s->cycles;
  if (!good || getenv("SHOW"))
    print_message("%s %s, %u, %s%s: %-28s %-21s %8" PRIu64 " measured %8" PRIu64
                  " expected %+6.1f %%\n",
                  n->uri, n->name, n->batch, n->train ? "a step" : "forward",
                  n->keep ? ", hbfp8" : "", s->node, s->op, s->cycles, s->expected, off);
  return good;
}

static void layers(void **state) {
  const struct net *n = *state;
  struct ct_network_stage s, all = {.node = "all of it", .op = ""};
  unsigned wrong = 0;
  ct_device *dev;
  ct_network *net;
  ct_graph *g = graph_of(n);
  if (ct_open(n->uri, &dev)) fail_msg("%s", ct_last_error(NULL));
  const struct ct_network_options options = {.expect = true};
  assert_int_equal(ct_network_create(dev, g, &options, &net), CT_OK);
  assert_int_equal(ct_network_run(net, n->train ? CT_TRAINING : CT_INFERENCE, 0), CT_OK);
  for (size_t i = 0; !ct_network_stage(net, i, &s); ++i) {
    if (!s.jobs) continue;
    wrong += !compare(n, &s, PERCENT);
    all.expected += s.expected;
    all.cycles += s.cycles;
  }
  assert_true(all.cycles > 0);
  wrong += !compare(n, &all, PERCENT_SUM);
  assert_int_equal(wrong, 0);
  ct_network_free(net);
  ct_close(dev);
  ct_graph_free(g);
}

int main(void) {
  static const struct net lenet_step = {"sim:", "lenet5", 2, true, false},
                          lenet_small = {"sim:core=16x8", "lenet5", 1, true, true},
                          lenet = {"sim:core=16x8", "lenet5", 1, false, false},
                          resnet = {"sim:", "resnet8", 1, false, false},
                          resnet_step = {"sim:", "resnet8", 1, true, true},
                          resnet_small = {"sim:core=16x8", "resnet8", 1, true, false};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(layers, (void *)&lenet_step),
      cmocka_unit_test_prestate(layers, (void *)&lenet_small),
      cmocka_unit_test_prestate(layers, (void *)&lenet),
      cmocka_unit_test_prestate(layers, (void *)&resnet),
      cmocka_unit_test_prestate(layers, (void *)&resnet_step),
      cmocka_unit_test_prestate(layers, (void *)&resnet_small),
  };
  return cmocka_run_group_tests_name("cycles of networks", tests, NULL, NULL);
}
