/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of time on whole networks: every layer of LeNet-5 and ResNet-8, served and trained,
 * takes as many cycles on the simulated cores as it says, within what `coltrain explain` promises:
 * 10 %. The sum is much nearer. Of what is kept compressed that is so when a run has shown how long
 * groups are; before, kernels that load or store them may take 40 % less, for groups are taken to
 * be as long as there are pages for. Layers run in a row here, so that what a job reads for the one
 * behind it counts; the kernels alone are held by test_cycles_kernels. SHOW=1 prints the table.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "ct_network.h"
#include "harness/ct_tb.h"

enum { PERCENT = 10, PERCENT_BEFORE = 40, PERCENT_SUM = 1 };

struct net {
  const char *uri, *name;
  uint32_t batch;
  bool train;
  enum ct_format keep; /* what a step keeps; FP32: nothing is said */
  enum ct_masks masks; /* CT_MASKS_DEFAULT: none */
  uint32_t bits;       /* of what is compressed, as in struct ct_network_options */
};

static ct_graph *graph_of(const struct net *n) {
  const struct ct_optimise how = {.schedule = {.rate = 0.05}, .momentum = 0.9};
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_builtin(g, n->name, n->batch, n->train), CT_OK);
  if (n->train) assert_int_equal(ct_graph_optimise(g, ct_graph_find(g, "loss"), &how), CT_OK);
  if (n->keep) {
    assert_true(ct_graph_keep(g, CT_ROLE_ACTIVATION, n->keep) > 0);
    assert_true(ct_graph_keep(g, CT_ROLE_GRADIENT, CT_FORMAT_HBFP8) > 0);
  }
  assert_int_equal(ct_graph_check(g), CT_OK);
  return g;
}

static bool near(uint64_t want, uint64_t got, uint64_t percent) {
  const uint64_t off = want > got ? want - got : got - want;
  return off * 100 <= got * percent;
}

static const char *way_of(const struct net *n) {
  if (n->keep == CT_FORMAT_COMPRESSED) return n->masks ? ", compressed, masks" : ", compressed";
  return n->keep == CT_FORMAT_HBFP8 ? ", hbfp8" : "";
}

/* Whether a layer, or the sum of them, takes what is expected. */
static bool compare(const struct net *n, const struct ct_network_stage *s, uint64_t percent) {
  const bool good = near(s->expected, s->cycles, percent);
  const double off = 100.0 * ((double)s->expected - (double)s->cycles) / (double)s->cycles;
  if (!good || getenv("SHOW"))
    print_message("%s %s, %u, %s%s: %-28s %-21s %8" PRIu64 " measured %8" PRIu64
                  " expected %+6.1f %%\n",
                  n->uri, n->name, n->batch, n->train ? "a step" : "forward", way_of(n), s->node,
                  s->op, s->cycles, s->expected, off);
  return good;
}

/* Numbers that look like images, and labels: how long groups are depends on them. */
static void fill(ct_network *net) {
  struct ct_tensor_info t;
  ct_graph *g = ct_network_graph(net);
  assert_int_equal(ct_network_draw(net, 1), CT_OK);
  for (int i = 1; !ct_graph_tensor_info(g, i, &t); ++i) {
    if (t.role != CT_ROLE_INPUT && t.role != CT_ROLE_LABEL) continue;
    float *x = test_malloc(t.elements * sizeof *x);
    for (size_t k = 0; k < t.elements; ++k)
      x[k] = (float)((k * 37 + k / 7) % 255) / 127.0f - 1.0f;
    assert_int_equal(ct_network_write(net, i, x, t.elements), CT_OK);
    test_free(x);
  }
}

/* Groups are as long as there are pages for, or, when a run has ended, as in that. */
static void before(ct_network *net, uint64_t *expected) {
  struct ct_network_stage s;
  for (size_t i = 0; !ct_network_stage(net, i, &s); ++i)
    expected[i] = s.expected;
}

static bool has_groups(const ct_network *net, size_t stage) {
  return net->compiled.stage[stage].loads || net->compiled.stage[stage].stores;
}

/* Every layer, and all of them, after a run; by what was expected before, if that is given. */
static unsigned compare_all(const struct net *n, ct_network *net, const uint64_t *expected) {
  struct ct_network_stage s, all = {.node = "all of it", .op = ""};
  unsigned wrong = 0;
  for (size_t i = 0; !ct_network_stage(net, i, &s); ++i) {
    if (!s.jobs || !s.expected) continue; /* part of no run */
    if (expected) s.expected = expected[i];
    wrong += !compare(n, &s, expected && has_groups(net, i) ? PERCENT_BEFORE : PERCENT);
    all.expected += s.expected;
    all.cycles += s.cycles;
  }
  assert_true(all.cycles > 0);
  return wrong + !compare(n, &all, PERCENT_SUM);
}

static void layers(void **state) {
  const struct net *n = *state;
  ct_device *dev;
  ct_network *net;
  ct_graph *g = graph_of(n);
  if (ct_open(n->uri, &dev)) fail_msg("%s", ct_last_error(NULL));
  const struct ct_network_options options = {.expect = true,
                                             .masks = n->masks ? n->masks : CT_MASKS_OFF,
                                             .bits = n->bits,
                                             .error = n->bits ? 0.1 : 0};
  assert_int_equal(ct_network_create(dev, g, &options, &net), CT_OK);
  fill(net);
  uint64_t *expected = test_calloc(ct_network_stages(net) + 1, sizeof *expected);
  before(net, expected);
  for (uint64_t step = 0; step < 1 + (n->bits > 0); ++step)
    assert_int_equal(ct_network_run(net, n->train ? CT_TRAINING : CT_INFERENCE, step), CT_OK);
  assert_int_equal(compare_all(n, net, NULL), 0);
  assert_int_equal(compare_all(n, net, expected), 0);
  test_free(expected);
  ct_network_free(net);
  ct_close(dev);
  ct_graph_free(g);
}

int main(void) {
#define NET(URI, NAME, BATCH, ...) \
  { .uri = URI, .name = NAME, .batch = BATCH, __VA_ARGS__ }
  static const struct net
      lenet_step = NET("sim:", "lenet5", 2, .train = true),
      lenet_small = NET("sim:core=16x8", "lenet5", 1, .train = true, .keep = CT_FORMAT_HBFP8),
      lenet = NET("sim:core=16x8", "lenet5", 1, .train = false),
      resnet = NET("sim:", "resnet8", 1, .train = false),
      resnet_step = NET("sim:", "resnet8", 1, .train = true, .keep = CT_FORMAT_HBFP8),
      resnet_small = NET("sim:core=16x8", "resnet8", 1, .train = true),
      lenet_comp = NET("sim:", "lenet5", 2, .train = true, .keep = CT_FORMAT_COMPRESSED),
      lenet_masks = NET("sim:core=16x8", "lenet5", 2, .train = true, .keep = CT_FORMAT_COMPRESSED,
                        .masks = CT_MASKS_ON, .bits = 5),
      lenet_stored = NET("sim:core=16x8", "lenet5", 1, .train = true, .keep = CT_FORMAT_COMPRESSED,
                         .masks = CT_MASKS_STORED),
      resnet_masks = NET("sim:", "resnet8", 1, .train = true, .keep = CT_FORMAT_COMPRESSED,
                         .masks = CT_MASKS_ON),
      resnet_stored = NET("sim:", "resnet8", 1, .train = true, .keep = CT_FORMAT_COMPRESSED,
                          .masks = CT_MASKS_STORED),
      resnet_comp = NET("sim:core=16x8", "resnet8", 1, .train = true, .keep = CT_FORMAT_COMPRESSED,
                        .bits = 5);
  const struct CMUnitTest tests[] = {
      CT_PLAIN_TEST_PRESTATE(layers, (void *)&lenet_step),
      cmocka_unit_test_prestate(layers, (void *)&lenet_small),
      cmocka_unit_test_prestate(layers, (void *)&lenet),
      CT_PLAIN_TEST_PRESTATE(layers, (void *)&resnet),
      CT_PLAIN_TEST_PRESTATE(layers, (void *)&resnet_step),
      CT_PLAIN_TEST_PRESTATE(layers, (void *)&resnet_small),
      CT_PLAIN_TEST_PRESTATE(layers, (void *)&lenet_comp),
      cmocka_unit_test_prestate(layers, (void *)&lenet_masks),
      cmocka_unit_test_prestate(layers, (void *)&lenet_stored),
      CT_PLAIN_TEST_PRESTATE(layers, (void *)&resnet_masks),
      CT_PLAIN_TEST_PRESTATE(layers, (void *)&resnet_stored),
      CT_PLAIN_TEST_PRESTATE(layers, (void *)&resnet_comp),
  };
  return cmocka_run_group_tests_name("cycles of networks", tests, NULL, NULL);
}
