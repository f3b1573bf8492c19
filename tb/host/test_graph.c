/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs as they are built and refused: order, shapes, names, networks by name with the numbers
 * that are published of them, and a sentence for each kind of bad input that names the node or
 * tensor.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_graph_impl.h"
#include "graph_bed.h"

/* ---- Networks by name ---------------------------------------------------------------------- */

static struct ct_graph_info info_of(ct_graph *g) {
  struct ct_graph_info info;
  assert_int_equal(ct_graph_info(g, &info), CT_OK);
  return info;
}

/* Parameters as they are published: LeNet-5's and ResNet-20's without running statistics, MLPerf
 * Tiny's with them. */
static void test_networks_by_name(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint64_t weights, states, macs;
  } nets[] = {{"lenet5", 61706, 0, 416520},
              {"resnet8", 78666 - 480, 480, 12501632},
              {"resnet20", 272474, 1568, 40813184},
              {"vgg", 82330, 0, 9889792}};
  for (size_t i = 0; i < sizeof nets / sizeof *nets; ++i)
    for (int training = 0; training < 2; ++training) {
      struct bed b;
      bed_make(&b);
      if (ct_graph_builtin(b.g, nets[i].name, 3, training)) fail_msg("%s", ct_graph_error(b.g));
      bed_check(&b);
      const struct ct_graph_info info = info_of(b.g);
      assert_int_equal(info.weights, nets[i].weights);
      assert_int_equal(info.states, nets[i].states);
      assert_int_equal(ct_graph_macs(b.g), 3 * nets[i].macs);
      const struct ct_tensor_info z = bed_info(&b, ct_graph_find(b.g, "logits"));
      assert_true(ct_shape_same(&z.shape, &SHAPE(3, 10)) && z.role == CT_ROLE_OUTPUT);
      assert_int_equal(ct_graph_find(b.g, "loss") > 0, training);
      bed_free(&b);
    }
}

/* Where a network pads its images is in no count of it: MLPerf Tiny's pads behind only at stride 2
 * (Keras' "same"), ResNet-20 on both sides, and a kernel of one pixel nowhere. */
static void test_padding_of_networks(void **state) {
  (void)state;
  for (int tiny = 0; tiny < 2; ++tiny) {
    struct bed b;
    bed_make(&b);
    assert_int_equal(ct_graph_builtin(b.g, tiny ? "resnet8" : "resnet20", 1, false), CT_OK);
    bed_check(&b);
    size_t strided = 0;
    for (size_t i = 0; i < info_of(b.g).nodes; ++i) {
      struct ct_node_info node;
      struct ct_attr stride, pad;
      assert_int_equal(ct_graph_node_info(b.g, i, &node), CT_OK);
      if (strcmp(node.op, "conv") != 0) continue;
      assert_int_equal(ct_graph_node_attr(b.g, i, "stride", &stride), CT_OK);
      assert_int_equal(ct_graph_node_attr(b.g, i, "pad", &pad), CT_OK);
      const uint32_t kernel = bed_info(&b, node.inputs[1]).shape.dim[1];
      const bool halves = stride.value[0] == 2;
      strided += halves && kernel == 3;
      for (int side = 0; side < 4; ++side)
        assert_true(pad.value[side] == (kernel == 3 && !(tiny && halves && side < 2)));
    }
    assert_int_equal(strided, 2);
    bed_free(&b);
  }
}

/* A training step costs three times its forward products, less the images' gradient. */
static void test_macs_of_training(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_mlp(b.g, (const uint32_t[]){784, 512, 256, 10}, 3, 64, true), CT_OK);
  const uint64_t layers[] = {784 * 512, 512 * 256, 256 * 10};
  assert_int_equal(info_of(b.g).weights, layers[0] + layers[1] + layers[2] + 778);
  assert_int_equal(ct_graph_macs(b.g), 64 * (layers[0] + layers[1] + layers[2]));
  const struct ct_optimise how = {.schedule = {.rate = 0.1}};
  assert_int_equal(ct_graph_optimise(b.g, ct_graph_find(b.g, "loss"), &how), CT_OK);
  bed_check(&b);
  assert_int_equal(ct_graph_macs(b.g), 64 * (2 * layers[0] + 3 * layers[1] + 3 * layers[2]));
  assert_int_equal(info_of(b.g).states, info_of(b.g).weights);
  bed_free(&b);
}

/* A whole step of a residual network runs, and says what it will not do. */
static void test_step_of_resnet8(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_builtin(b.g, "resnet8", 1, true), CT_OK);
  const struct ct_optimise how = {
      .optimiser = CT_OPTIMISER_ADAMW, .schedule = {.rate = 0.01}, .clip = 1, .weight_decay = 0.1};
  const int loss = ct_graph_find(b.g, "loss");
  if (ct_graph_optimise(b.g, loss, &how)) fail_msg("%s", ct_graph_error(b.g));
  bed_check(&b);
  const struct ct_graph_info info = info_of(b.g);
  for (int t = 1; t <= (int)info.tensors; ++t) {
    const struct ct_tensor_info tensor = bed_info(&b, t);
    if (tensor.node >= 0) continue;
    assert_int_equal(tensor.role == CT_ROLE_WEIGHT, tensor.gradient > 0);
    if (tensor.role == CT_ROLE_WEIGHT || tensor.role == CT_ROLE_STATE)
      assert_true(tensor.becomes > 0);
    for (size_t i = 0; i < tensor.elements; ++i)
      bed_data(&b, t)[i] =
          tensor.role == CT_ROLE_STATE ? 0 : (double)ct_rng_below(&rng, 100) * 1e-3;
  }
  b.update = true;
  bed_data(&b, loss);
  const int w = ct_graph_find(b.g, "conv.weight");
  const double was = bed_data(&b, w)[0];
  bed_run(&b);
  assert_true(isfinite(bed_data(&b, loss)[0]) && bed_data(&b, loss)[0] > 0);
  assert_true(bed_data(&b, w)[0] != was && fabs(bed_data(&b, w)[0] - was) < 0.02);
  bed_free(&b);
}

/* ---- Order, shapes, what can be asked ------------------------------------------------------ */

static struct ct_new_tensor later(const char *name) {
  return (struct ct_new_tensor){.name = name, .role = CT_ROLE_ACTIVATION};
}

/* Nodes in the order of a file, which need not be that of their tensors. */
static void test_order(void **state) {
  (void)state;
  const struct ct_new_tensor middle = later("middle");
  uint32_t order[3];
  struct bed b;
  bed_make(&b);
  const int x = bed_values(&b, CT_ROLE_INPUT, SHAPE(2), (const double[]){-1, 2}),
            m = ct_graph_tensor(b.g, &middle);
  const int y = BED_ADD(&b, "scale", BED_IN(m), BED_ATTRS({"factor", 1, {10}}), .name = "last");
  const int z = BED_ADD(&b, "relu", BED_IN(x), .name = "between");
  assert_int_equal(BED_ADD(&b, "add", BED_IN(x, z), .outputs = &m, .name = "first"), m);
  assert_int_equal(bed_info(&b, y).elements, 0);
  assert_int_equal(ct_graph_order(b.g, order, 3), 3);
  assert_true(order[0] == 1 && order[1] == 2 && order[2] == 0);
  bed_expect(&b, y, (const double[]){-10, 40}, 2, 0);
  assert_int_equal(bed_info(&b, y).elements, 2);
  assert_string_equal(bed_info(&b, m).name, "middle");
  bed_free(&b);
}

static void test_questions(void **state) {
  (void)state;
  struct ct_node_info node;
  struct ct_attr attr;
  struct bed b;
  bed_make(&b);
  const int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(1, 8, 8, 2)),
            w = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(4, 3, 3, 2));
  const int y = BED_ADD(&b, "conv", BED_IN(x, w), .name = "edge", BED_ATTRS({"stride", 2, {2, 1}}));
  BED_ADD(&b, "relu", BED_IN(y));
  assert_int_equal(ct_graph_node_info(b.g, 0, &node), CT_OK);
  assert_true(!strcmp(node.op, "conv") && !strcmp(node.name, "edge") && node.input_count == 2 &&
              node.output_count == 1);
  assert_true(node.inputs[1] == w && node.outputs[0] == y && node.macs == 3 * 6 * 4 * 18 &&
              !node.backward);
  assert_int_equal(ct_graph_node_attr(b.g, 0, "stride", &attr), CT_OK);
  assert_true(attr.count == 2 && attr.value[0] == 2 && attr.value[1] == 1);
  assert_int_equal(ct_graph_node_attr(b.g, 0, "pad", &attr), CT_OK);
  assert_true(attr.count == 4 && attr.value[3] == 0);
  assert_int_equal(ct_graph_node_attr(b.g, 0, "colour", &attr), CT_ERR_NOT_FOUND);
  assert_int_equal(ct_graph_set_format(b.g, w, CT_FORMAT_HBFP8), w);
  assert_int_equal(bed_info(&b, w).format, CT_FORMAT_HBFP8);
  size_t ops = 0;
  while (ct_graph_op_name(ops))
    ++ops;
  assert_int_equal(ops, ct_gop_count());
  bed_free(&b);
}

/* ---- Limits -------------------------------------------------------------------------------- */

static void test_null(void **state) {
  (void)state;
  struct ct_graph_info info;
  assert_int_equal(ct_graph_create(NULL), CT_ERR_ARG);
  assert_int_equal(ct_graph_check(NULL), CT_ERR_ARG);
  assert_int_equal(ct_graph_info(NULL, &info), CT_ERR_ARG);
  assert_int_equal(ct_graph_builtin(NULL, "lenet5", 1, true), CT_ERR_ARG);
  assert_int_equal(ct_graph_run_reference(NULL, NULL), CT_ERR_ARG);
  assert_int_equal(ct_graph_macs(NULL), 0);
  assert_string_equal(ct_graph_error(NULL), "the graph is NULL: ct_graph_create() makes one");
  ct_graph_free(NULL);
}

/* As many nodes as there may be are no matter of minutes. */
static void test_many_nodes(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(1));
  for (int i = 0; i < CT_GRAPH_MOST_NODES; ++i)
    x = BED_ADD(&b, "relu", BED_IN(x));
  assert_true(x > 0);
  assert_int_equal(BED_ADD(&b, "relu", BED_IN(x)), CT_ERR_ARG);
  assert_string_equal(ct_graph_error(b.g),
                      "node relu65536 (relu): the graph has 65536 nodes, which is the most");
  bed_check(&b);
  bed_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_networks_by_name),
      cmocka_unit_test(test_macs_of_training),
      cmocka_unit_test(test_padding_of_networks),
      cmocka_unit_test(test_step_of_resnet8),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_questions),
      cmocka_unit_test(test_null),
      cmocka_unit_test(test_many_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
