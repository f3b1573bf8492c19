/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs refuse: a sentence for each kind of bad input, which names the node or the tensor,
 * and nothing is changed by what was refused. */
#include <math.h>
#include <string.h>

#include "graph_bed.h"

static struct ct_new_tensor later(const char *name) {
  return (struct ct_new_tensor){.name = name, .role = CT_ROLE_ACTIVATION};
}

static struct ct_graph_info info_of(ct_graph *g) {
  struct ct_graph_info info;
  assert_int_equal(ct_graph_info(g, &info), CT_OK);
  return info;
}

/* ---- Refusals ------------------------------------------------------------------------------ */

/* Tensors that tests of refusals use. */
struct scene {
  struct bed b;
  ct_graph *g;
  int x, image, w, kernel, scalar, label;
};

static void scene_make(struct scene *s) {
  bed_make(&s->b);
  s->g = s->b.g;
  s->x = bed_tensor(&s->b, CT_ROLE_INPUT, SHAPE(4, 6));
  s->image = bed_tensor(&s->b, CT_ROLE_INPUT, SHAPE(1, 5, 5, 6));
  s->w = ct_graph_tensor(
      s->g, &(struct ct_new_tensor){.name = "w", .role = CT_ROLE_WEIGHT, .shape = SHAPE(3, 6)});
  s->kernel = bed_tensor(&s->b, CT_ROLE_WEIGHT, SHAPE(4, 3, 3, 6));
  s->scalar = bed_tensor(&s->b, CT_ROLE_STATE, SHAPE(1));
  s->label = bed_tensor(&s->b, CT_ROLE_LABEL, SHAPE(4, 6));
}

static int tensor(const struct scene *s, enum ct_role role, struct ct_shape shape) {
  return ct_graph_tensor(s->g, &(struct ct_new_tensor){.name = "t", .role = role, .shape = shape});
}

#define NODE(s, op_, ...) \
  ct_graph_add((s)->g, &(struct ct_new_node){.op = (op_), .name = "n", __VA_ARGS__})
#define REFUSAL(name_) static int name_(struct scene *s)

/* A line for most. */
/* clang-format off */
REFUSAL(unknown_operator) { return NODE(s, "convolve", BED_IN(s->x)); }
REFUSAL(no_operator) { return NODE(s, NULL, BED_IN(s->x)); }
REFUSAL(few_inputs) { return NODE(s, "linear", BED_IN(s->x)); }
REFUSAL(many_inputs) { return NODE(s, "relu", BED_IN(s->x, s->x)); }
REFUSAL(missing_input) { return NODE(s, "linear", BED_IN(0, s->w)); }
REFUSAL(no_such_tensor) { return NODE(s, "relu", BED_IN(999)); }
REFUSAL(missing_attr) { return NODE(s, "scale", BED_IN(s->x)); }
REFUSAL(unknown_attr) { return NODE(s, "relu", BED_IN(s->x), BED_ATTRS({"slope", 1, {1}})); }
REFUSAL(attr_twice) { return NODE(s, "scale", BED_IN(s->x), BED_ATTRS({"factor", 1, {1}}, {"factor", 1, {2}})); }
REFUSAL(attr_without_name) { return NODE(s, "scale", BED_IN(s->x), BED_ATTRS({NULL, 1, {1}})); }
REFUSAL(attr_nan) { return NODE(s, "leaky_relu", BED_IN(s->x), BED_ATTRS({"alpha", 1, {NAN}})); }
REFUSAL(attr_large) { return NODE(s, "dropout", BED_IN(s->x), BED_ATTRS({"rate", 1, {1}})); }
REFUSAL(attr_broken) { return NODE(s, "max_pool", BED_IN(s->image), BED_ATTRS({"kernel", 2, {2, 2.5}})); }
REFUSAL(attr_count) { return NODE(s, "max_pool", BED_IN(s->image), BED_ATTRS({"kernel", 1, {2}})); }
REFUSAL(attr_list) { return NODE(s, "reshape", BED_IN(s->x), BED_ATTRS({"shape", 5, {1}})); }
REFUSAL(zero_batch) { return tensor(s, CT_ROLE_INPUT, SHAPE(0, 3)); }
REFUSAL(zero_width) { return tensor(s, CT_ROLE_INPUT, SHAPE(3, 0)); }
REFUSAL(no_dims) { return tensor(s, CT_ROLE_WEIGHT, (struct ct_shape){0}); }
REFUSAL(five_dims) { return tensor(s, CT_ROLE_INPUT, (struct ct_shape){5, {1, 1, 1, 1}}); }
REFUSAL(giant_dim) { return tensor(s, CT_ROLE_INPUT, SHAPE(1, 16777217)); }
REFUSAL(giant_product) { return tensor(s, CT_ROLE_INPUT, SHAPE(16777216, 16777216, 16777216, 16777216)); }
REFUSAL(bad_role) { return tensor(s, CT_ROLE_GRADIENT, SHAPE(1)); }
REFUSAL(bad_format) { return ct_graph_set_format(s->g, s->x, (enum ct_format)9); }
REFUSAL(bad_reserved) { return ct_graph_tensor(s->g, &(struct ct_new_tensor){.name = "t", .shape = SHAPE(1), .reserved = {1}}); }
REFUSAL(giant_sum) {
  const int t = tensor(s, CT_ROLE_INPUT, SHAPE(1, 16777216));
  return NODE(s, "concat", BED_IN(t, t), BED_ATTRS({"axis", 1, {1}}));
}
REFUSAL(giant_output) {
  const int t = tensor(s, CT_ROLE_INPUT, SHAPE(16777216, 1)),
            u = bed_tensor(&s->b, CT_ROLE_INPUT, SHAPE(1, 16777216));
  return NODE(s, "add", BED_IN(t, u));
}
REFUSAL(weights_transposed) { return NODE(s, "linear", BED_IN(s->x, bed_tensor(&s->b, CT_ROLE_WEIGHT, SHAPE(6, 3)))); }
REFUSAL(bias_size) { return NODE(s, "linear", BED_IN(s->x, s->w, s->scalar)); }
REFUSAL(no_image) { return NODE(s, "conv", BED_IN(s->x, s->kernel)); }
REFUSAL(window_size) { return NODE(s, "conv", BED_IN(s->image, s->kernel), BED_ATTRS({"dilation", 2, {3, 1}})); }
REFUSAL(group_count) { return NODE(s, "conv", BED_IN(s->image, s->kernel), BED_ATTRS({"groups", 1, {2}})); }
REFUSAL(group_outputs) {
  return NODE(s, "conv", BED_IN(s->image, bed_tensor(&s->b, CT_ROLE_WEIGHT, SHAPE(4, 1, 1, 2))),
              BED_ATTRS({"groups", 1, {3}}));
}
REFUSAL(padding_alone) { return NODE(s, "average_pool", BED_IN(s->image), BED_ATTRS({"kernel", 2, {2, 2}}, {"pad", 4, {2, 0, 0, 0}})); }
REFUSAL(padding_dilated) {
  const int t = tensor(s, CT_ROLE_INPUT, SHAPE(1, 2, 9, 1));
  return NODE(s, "max_pool", BED_IN(t),
              BED_ATTRS({"kernel", 2, {2, 1}}, {"dilation", 2, {3, 1}}, {"pad", 4, {2, 0, 2, 0}}));
}
REFUSAL(not_broadcast) { return NODE(s, "mul", BED_IN(s->x, s->w)); }
REFUSAL(not_multiplied) { return NODE(s, "matmul", BED_IN(s->x, s->w)); }
REFUSAL(not_reshaped) { return NODE(s, "reshape", BED_IN(s->x), BED_ATTRS({"shape", 2, {5, -1}})); }
REFUSAL(reshaped_twice) { return NODE(s, "reshape", BED_IN(s->x), BED_ATTRS({"shape", 2, {-1, -1}})); }
REFUSAL(not_permuted) { return NODE(s, "transpose", BED_IN(s->x), BED_ATTRS({"perm", 2, {1, 1}})); }
REFUSAL(not_joined) { return NODE(s, "concat", BED_IN(s->x, s->w), BED_ATTRS({"axis", 1, {1}})); }
REFUSAL(not_sliced) { return NODE(s, "slice", BED_IN(s->x), BED_ATTRS({"axis", 1, {1}}, {"begin", 1, {3}}, {"size", 1, {4}})); }
REFUSAL(no_axis) { return NODE(s, "softmax", BED_IN(s->x), BED_ATTRS({"axis", 1, {2}})); }
REFUSAL(clip_order) { return NODE(s, "clip", BED_IN(s->x), BED_ATTRS({"min", 1, {1}}, {"max", 1, {0}})); }
REFUSAL(statistics_size) { return NODE(s, "batch_norm", BED_IN(s->x, s->scalar, s->scalar, s->scalar, s->scalar)); }
REFUSAL(targets_size) { return NODE(s, "cross_entropy", BED_IN(s->x, s->w)); }
REFUSAL(made_twice) {
  const int y = NODE(s, "relu", BED_IN(s->x));
  return ct_graph_add(
      s->g, &(struct ct_new_node){.op = "tanh", .name = "other", BED_IN(s->x), .outputs = &y});
}
REFUSAL(made_input) { return NODE(s, "relu", BED_IN(s->x), .outputs = &s->label); }
REFUSAL(declared_shape) {
  const int t = tensor(s, CT_ROLE_ACTIVATION, SHAPE(6, 4));
  return NODE(s, "relu", BED_IN(s->x), .outputs = &t);
}
REFUSAL(not_made) {
  const struct ct_new_tensor t = later("t");
  if (NODE(s, "relu", BED_IN(ct_graph_tensor(s->g, &t))) < 0) return 1;
  return ct_graph_check(s->g);
}
REFUSAL(unused_not_made) {
  const struct ct_new_tensor t = later("t");
  if (ct_graph_tensor(s->g, &t) < 0 || NODE(s, "relu", BED_IN(s->x)) < 0) return 1;
  return ct_graph_check(s->g);
}
REFUSAL(cyclic) {
  const struct ct_new_tensor t = later("t");
  const int back = ct_graph_tensor(s->g, &t),
            y = BED_ADD(&s->b, "relu", BED_IN(s->x), .name = "before");
  const int z = NODE(s, "add", BED_IN(y, back));
  if (BED_ADD(&s->b, "tanh", BED_IN(z), .name = "n2", .outputs = &back) != back) return 1;
  return ct_graph_check(s->g);
}
REFUSAL(own_output) {
  const struct ct_new_tensor t = later("t");
  const int back = ct_graph_tensor(s->g, &t);
  if (NODE(s, "relu", BED_IN(back), .outputs = &back) != back) return 1;
  return ct_graph_gradients(s->g, back, NULL, 0);
}
REFUSAL(late_shape) {
  const struct ct_new_tensor t = later("t");
  const int y = ct_graph_tensor(s->g, &t);
  if (NODE(s, "linear", BED_IN(y, s->w)) < 0 ||
      BED_ADD(&s->b, "relu", BED_IN(s->w), .outputs = &y) != y)
    return 1;
  return BED_ADD(&s->b, "flatten", BED_IN(s->image), .name = "f") < 0 ? 1
         : ct_graph_check(s->g)                                       ? ct_graph_check(s->g)
                                : NODE(s, "relu", BED_IN(s->x));
}
REFUSAL(same_names) {
  tensor(s, CT_ROLE_INPUT, SHAPE(2));
  tensor(s, CT_ROLE_INPUT, SHAPE(3));
  return NODE(s, "relu", BED_IN(s->x)) < 0 ? 1 : ct_graph_check(s->g);
}
REFUSAL(empty) { return ct_graph_check(s->g); }
REFUSAL(changed_after_check) {
  NODE(s, "relu", BED_IN(s->x));
  if (ct_graph_check(s->g)) return 1;
  return NODE(s, "relu", BED_IN(s->x));
}
REFUSAL(loss_of_many) { return ct_graph_gradients(s->g, NODE(s, "linear", BED_IN(s->x, s->w)), NULL, 0); }
REFUSAL(loss_of_nothing) { return ct_graph_gradients(s->g, NODE(s, "mse", BED_IN(s->x, s->label)), NULL, 0); }
REFUSAL(no_gradient) {
  const int y = NODE(s, "relu_grad", BED_IN(s->w, s->w));
  return ct_graph_gradients(s->g, BED_ADD(&s->b, "mse", BED_IN(y, s->w)), NULL, 0);
}
REFUSAL(gradient_of_targets) { return ct_graph_gradients(s->g, NODE(s, "cross_entropy", BED_IN(s->x, s->label)), &s->label, 1); }
REFUSAL(gradient_of_statistics) {
  const int c = tensor(s, CT_ROLE_WEIGHT, SHAPE(6)),
            y = NODE(s, "batch_norm_train", BED_IN(s->x, c, c, c, c));
  const int wide = BED_ADD(&s->b, "add", BED_IN(s->x, y + 3));
  return ct_graph_gradients(s->g, BED_ADD(&s->b, "mse", BED_IN(wide, s->label)), &s->x, 1);
}
REFUSAL(gradients_twice) {
  const int loss = NODE(s, "mse", BED_IN(s->w, s->w));
  if (ct_graph_gradients(s->g, loss, NULL, 0)) return 1;
  return ct_graph_gradients(s->g, loss, NULL, 0);
}
REFUSAL(becomes_shape) { return ct_graph_becomes(s->g, s->w, NODE(s, "relu", BED_IN(s->x))); }
REFUSAL(becomes_outside) { return ct_graph_becomes(s->g, s->w, s->kernel); }
REFUSAL(becomes_not_made) { return ct_graph_becomes(s->g, s->w, tensor(s, CT_ROLE_WEIGHT, SHAPE(3, 6))); }
REFUSAL(becomes_input) { return ct_graph_becomes(s->g, s->x, NODE(s, "relu", BED_IN(s->x))); }
REFUSAL(becomes_twice) {
  const int y = NODE(s, "relu", BED_IN(s->w));
  return ct_graph_becomes(s->g, ct_graph_becomes(s->g, s->w, y), y);
}
REFUSAL(result_outside) { return ct_graph_result(s->g, s->w); }
REFUSAL(bad_rate) {
  const struct ct_optimise how = {.schedule = {.rate = NAN}};
  return ct_graph_optimise(s->g, NODE(s, "mse", BED_IN(s->w, s->w)), &how);
}
REFUSAL(bad_floor) {
  const struct ct_optimise how = {.schedule = {.rate = 1, .floor = 2}};
  return ct_graph_optimise(s->g, NODE(s, "mse", BED_IN(s->w, s->w)), &how);
}
REFUSAL(bad_optimiser) { return ct_graph_optimise(s->g, s->w, &(struct ct_optimise){.optimiser = (enum ct_optimiser)7}); }
REFUSAL(no_network) {
  ct_graph_free(s->g);
  assert_int_equal(ct_graph_create(&s->b.g), CT_OK);
  s->g = s->b.g;
  return ct_graph_builtin(s->g, "alexnet", 1, true);
}
REFUSAL(network_of_none) {
  no_network(s);
  return ct_graph_builtin(s->g, "resnet8", 0, true);
}
REFUSAL(network_too_large) {
  no_network(s);
  return ct_graph_builtin(s->g, "resnet20", 16777216, true);
}
REFUSAL(not_empty) { return ct_graph_builtin(s->g, "lenet5", 1, true); }
REFUSAL(many_layers) {
  no_network(s);
  return ct_graph_mlp(s->g, (const uint32_t[]){1, 1}, 17, 1, true);
}
REFUSAL(width_of_none) {
  no_network(s);
  return ct_graph_mlp(s->g, (const uint32_t[]){1, 0}, 1, 1, true);
}
REFUSAL(not_found) { return ct_graph_find(s->g, "z"); }
REFUSAL(no_node) {
  struct ct_node_info node;
  return ct_graph_node_info(s->g, 0, &node);
}
REFUSAL(reads_of_no_node) { return ct_graph_reads(s->g, 0, 0, s->x); }
REFUSAL(reads_nothing) {
  NODE(s, "conv", BED_IN(s->image, s->kernel, 0));
  return ct_graph_reads(s->g, 0, 2, s->x);
}
REFUSAL(reads_too_much) {
  NODE(s, "relu", BED_IN(s->x));
  return ct_graph_reads(s->g, 0, 1, s->x);
}
REFUSAL(reads_other_shape) {
  NODE(s, "relu", BED_IN(s->x));
  return ct_graph_reads(s->g, 0, 0, s->w);
}
REFUSAL(reads_no_tensor) {
  NODE(s, "relu", BED_IN(s->x));
  return ct_graph_reads(s->g, 0, 0, 999);
}
REFUSAL(reads_itself) {
  const int y = NODE(s, "relu", BED_IN(s->x));
  return ct_graph_reads(s->g, 0, 0, y) == y ? ct_graph_check(s->g) : 1;
}
REFUSAL(reads_after_check) {
  NODE(s, "relu", BED_IN(s->x));
  return ct_graph_check(s->g) ? 1 : ct_graph_reads(s->g, 0, 0, s->label);
}
REFUSAL(run_unchecked) {
  NODE(s, "relu", BED_IN(s->x));
  return bed_try(&s->b);
}
REFUSAL(run_without_value) {
  NODE(s, "relu", BED_IN(s->w));
  return ct_graph_check(s->g) ? 1 : bed_try(&s->b);
}
REFUSAL(run_with_other_count) {
  double few[2];
  NODE(s, "relu", BED_IN(s->w));
  if (ct_graph_check(s->g)) return 1;
  return ct_graph_run_reference(
      s->g, &(struct ct_reference){.values = &(struct ct_value){s->w, few, 2}, .value_count = 1});
}
REFUSAL(run_with_two_values) {
  double w[18] = {0};
  const struct ct_value twice[] = {{s->w, w, 18}, {s->w, w, 18}};
  NODE(s, "relu", BED_IN(s->w));
  if (ct_graph_check(s->g)) return 1;
  return ct_graph_run_reference(s->g, &(struct ct_reference){.values = twice, .value_count = 2});
}
REFUSAL(run_of_too_many) {
  const struct ct_attr wide = {"shape", 2, {16777216, 16}};
  const int t = NODE(s, "fill", BED_ATTRS(wide)), u = BED_ADD(&s->b, "relu", BED_IN(t));
  return u < 0 || ct_graph_check(s->g) ? 1 : bed_try(&s->b);
}
REFUSAL(run_of_too_much) {
  const struct ct_attr wide = {"shape", 2, {8192, 8192}};
  const int t = BED_ADD(&s->b, "fill", BED_ATTRS(wide));
  return NODE(s, "matmul", BED_IN(t, t)) < 0 || ct_graph_check(s->g) ? 1 : bed_try(&s->b);
}
/* clang-format on */

#define N "node n "
static const struct {
  const char *name;
  int (*refuse)(struct scene *s);
  int error;
  const char *sentence; /* what it says */
} refusals[] = {
#define R(name_, error_, sentence_) \
  { #name_, name_, error_, sentence_ }
    R(unknown_operator, CT_ERR_UNSUPPORTED, "node n: there is no operator convolve"),
    R(no_operator, CT_ERR_ARG, "the node, its operator, inputs or attributes are NULL"),
    R(few_inputs, CT_ERR_ARG, N "(linear): it has too few inputs: 1, it takes 2"),
    R(many_inputs, CT_ERR_ARG, N "(relu): it has too many inputs: 2, it takes 1 at most"),
    R(missing_input, CT_ERR_ARG, N "(linear): input 0 is tensor 0"),
    R(no_such_tensor, CT_ERR_ARG, N "(relu): input 0 is tensor 999, the graph has 1..6"),
    R(missing_attr, CT_ERR_ARG, N "(scale): attribute factor is missing"),
    R(unknown_attr, CT_ERR_ARG, N "(relu): it has no attribute slope"),
    R(attr_twice, CT_ERR_ARG, N "(scale): attribute factor is given twice"),
    R(attr_without_name, CT_ERR_ARG, N "(scale): an attribute has no name"),
    R(attr_nan, CT_ERR_ARG, N "(leaky_relu): attribute alpha is NaN"),
    R(attr_large, CT_ERR_ARG, N "(dropout): attribute rate is 1, it must be 0..0.999999"),
    R(attr_broken, CT_ERR_ARG, N "(max_pool): attribute kernel is 2.5, it must be a whole number"),
    R(attr_count, CT_ERR_ARG, N "(max_pool): attribute kernel has 1 numbers, it must have 2"),
    R(attr_list, CT_ERR_ARG, N "(reshape): attribute shape has 5 numbers, it must have 1 to 4"),
    R(zero_batch, CT_ERR_ARG, "tensor t of shape 0x3: the batch (its first dimension) is 0"),
    R(zero_width, CT_ERR_ARG, "tensor t of shape 3x0: a dimension is 0"),
    R(no_dims, CT_ERR_ARG, "a tensor has 1 to 4 dimensions"),
    R(five_dims, CT_ERR_ARG, "a tensor has 1 to 4 dimensions"),
    R(giant_dim, CT_ERR_ARG, "tensor t of shape 1x16777217: a dimension is larger than 2^24"),
    R(giant_product, CT_ERR_ARG, "it has more than 2^34 elements"),
    R(bad_role, CT_ERR_ARG,
      "tensor t: an input, label, weight, state or activation can be declared"),
    R(bad_format, CT_ERR_ARG, "there is no format 9"),
    R(bad_reserved, CT_ERR_ARG, "tensor t: reserved words are not 0"),
    R(giant_sum, CT_ERR_ARG, N "(concat): its output has a dimension larger than 2^24"),
    R(giant_output, CT_ERR_ARG,
      N "(add): its output would be 16777216x16777216: it has more than 2^34 elements"),
    R(weights_transposed, CT_ERR_ARG, N "(linear): its input is 4x6 and its weights are 6x3"),
    R(bias_size, CT_ERR_ARG, N "(linear): its bias (tensor5) is 1, it must be 3"),
    R(no_image, CT_ERR_ARG, N "(conv): its image is 4x6, it must have 4 dimensions: NHWC"),
    R(window_size, CT_ERR_ARG, N "(conv): a window of 7 does not fit height 5 with its padding"),
    R(group_count, CT_ERR_ARG,
      N "(conv): 2 groups of 6 input channels (weights 4x3x3x6) are not the 6 of its image"),
    R(group_outputs, CT_ERR_ARG, N "(conv): 4 output channels cannot be divided by 3 groups"),
    R(padding_alone, CT_ERR_ARG, N "(average_pool): a window of 2 may lie in the padding alone"),
    R(padding_dilated, CT_ERR_ARG, N "(max_pool): a window of 4 may lie in the padding alone"),
    R(not_broadcast, CT_ERR_ARG, N "(mul): 4x6 and 3x6 cannot be broadcast to one shape"),
    R(not_multiplied, CT_ERR_ARG, N "(matmul): 4x6 cannot be multiplied by 3x6"),
    R(not_reshaped, CT_ERR_ARG, N "(reshape): 4x6 cannot be given the shape 5x1"),
    R(reshaped_twice, CT_ERR_ARG, N "(reshape): its shape has two dimensions of -1"),
    R(not_permuted, CT_ERR_ARG, N "(transpose): perm must have each of 0..1 once"),
    R(not_joined, CT_ERR_ARG, N "(concat): 4x6 and 3x6 differ in more than dimension 1"),
    R(not_sliced, CT_ERR_ARG, N "(slice): 4 elements from 3 on do not fit dimension 1 of 4x6"),
    R(no_axis, CT_ERR_ARG, N "(softmax): its input is 4x6, it has no axis 2"),
    R(clip_order, CT_ERR_ARG, N "(clip): min 1 is above max 0"),
    R(statistics_size, CT_ERR_ARG, N "(batch_norm): its scale (tensor5) is 1, it must be 6"),
    R(targets_size, CT_ERR_ARG, N "(cross_entropy): its targets (w) is 3x6, it must be 4x6"),
    R(made_twice, CT_ERR_ARG, "node other (tanh): tensor n is made by node n already"),
    R(made_input, CT_ERR_ARG, N "(relu): tensor tensor6 comes from outside: no node can make it"),
    R(declared_shape, CT_ERR_ARG, N "(relu): its output t was declared as 6x4, it is 4x6"),
    R(not_made, CT_ERR_ARG, N "(relu): its input t is made by no node"),
    R(unused_not_made, CT_ERR_ARG, "tensor t is made by no node"),
    R(cyclic, CT_ERR_ARG, "it needs its own output: the graph is cyclic"),
    R(own_output, CT_ERR_ARG, N "(relu): it needs its own output: the graph is cyclic"),
    R(late_shape, CT_ERR_ARG, "the graph was checked: it cannot be changed"),
    R(same_names, CT_ERR_ARG, "two tensors are called t: names must differ"),
    R(empty, CT_ERR_ARG, "the graph has no nodes"),
    R(changed_after_check, CT_ERR_ARG, "the graph was checked: it cannot be changed"),
    R(loss_of_many, CT_ERR_ARG, "the loss n is 4x3, it must be a scalar"),
    R(loss_of_nothing, CT_ERR_ARG, "the loss n depends on nothing that has a gradient"),
    R(no_gradient, CT_ERR_ARG, N "(relu_grad): this operator has no gradient"),
    R(gradient_of_targets, CT_ERR_ARG, N "(cross_entropy): its targets (tensor6) have no gradient"),
    R(gradient_of_statistics, CT_ERR_ARG,
      N "(batch_norm_train): the loss depends on its statistics (n:3)"),
    R(gradients_twice, CT_ERR_ARG, "the graph has gradients already"),
    R(becomes_shape, CT_ERR_ARG, "tensor w is 3x6: it cannot become n, which is 4x6"),
    R(becomes_outside, CT_ERR_ARG, "tensor w is 3x6: it cannot become tensor4, which is 4x3x3x6"),
    R(becomes_not_made, CT_ERR_ARG, "tensor t is made by no node: w cannot become it"),
    R(becomes_input, CT_ERR_ARG, "tensor tensor1 is no weight or state: it cannot become n"),
    R(becomes_twice, CT_ERR_ARG, "tensor w becomes n already"),
    R(result_outside, CT_ERR_ARG, "tensor w is made by no node: it cannot be a result"),
    R(bad_rate, CT_ERR_ARG, "(rate): attribute rate is NaN"),
    R(bad_floor, CT_ERR_ARG, "the schedule's floor 2 is above its rate 1"),
    R(bad_optimiser, CT_ERR_ARG, "there is no optimiser 7"),
    R(no_network, CT_ERR_NOT_FOUND,
      "there is no network alexnet: lenet5, resnet8, resnet20 or vgg"),
    R(network_of_none, CT_ERR_ARG,
      "tensor x of shape 0x32x32x3: the batch (its first dimension) is 0"),
    R(network_too_large, CT_ERR_ARG, "more than 2^34 elements"),
    R(not_empty, CT_ERR_ARG, "the graph is not empty"),
    R(many_layers, CT_ERR_ARG, "a perceptron has 1..16 layers, not 17"),
    R(width_of_none, CT_ERR_ARG, "tensor logits.bias of shape 0:"),
    R(not_found, CT_ERR_NOT_FOUND, "the graph has no tensor z"),
    R(no_node, CT_ERR_ARG, "there is no node 0: the graph has 0"),
    R(reads_of_no_node, CT_ERR_NOT_FOUND, "the graph has no node 0, it has 0"),
    R(reads_nothing, CT_ERR_ARG, N "(conv): it reads nothing as input 2"),
    R(reads_too_much, CT_ERR_ARG, N "(relu): it reads nothing as input 1"),
    R(reads_other_shape, CT_ERR_ARG, N "(relu): input 0 is 4x6, it cannot be w, which is 3x6"),
    R(reads_no_tensor, CT_ERR_ARG, "an input: the graph has no tensor 999, it has 1..7"),
    R(reads_itself, CT_ERR_ARG, N "(relu): it needs its own output: the graph is cyclic"),
    R(reads_after_check, CT_ERR_ARG, "the graph was checked: it cannot be changed"),
    R(run_unchecked, CT_ERR_ARG, "the graph was not checked"),
    R(run_without_value, CT_ERR_ARG, "tensor w comes from outside: it needs a value"),
    R(run_with_other_count, CT_ERR_ARG, "the value of tensor w (3x6) has 2 elements"),
    R(run_with_two_values, CT_ERR_ARG, "the value of tensor w is given twice"),
    R(run_of_too_many, CT_ERR_NO_SPACE, "the reference would keep 536870912 numbers at once"),
    R(run_of_too_much, CT_ERR_NO_SPACE,
      N "(matmul): with it the reference needs more than 2^36 products"),
#undef R
};

static void test_refusals(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; ++i) {
    struct scene s;
    scene_make(&s);
    const int error = refusals[i].refuse(&s);
    if (error != refusals[i].error || !strstr(ct_graph_error(s.g), refusals[i].sentence))
      fail_msg("%s: error %d, \"%s\", not \"%s\"", refusals[i].name, error, ct_graph_error(s.g),
               refusals[i].sentence);
    bed_free(&s.b);
  }
}

/* A refused call leaves the graph as it was, and what it returned goes on through other calls. */
static void test_refused_changes_nothing(void **state) {
  (void)state;
  struct scene s;
  scene_make(&s);
  const struct ct_new_tensor t = later("t");
  const int declared = ct_graph_tensor(s.g, &t), y = BED_ADD(&s.b, "linear", BED_IN(s.x, s.w));
  const int loss = BED_ADD(&s.b, "mse", BED_IN(y, y));
  const struct ct_graph_info before = info_of(s.g);
  const int bad =
      NODE(&s, "scale", BED_IN(s.x), .outputs = &declared, BED_ATTRS({"factor", 1, {NAN}}));
  const int worse = BED_ADD(&s.b, "relu", BED_IN(bad));
  assert_true(bad == CT_ERR_ARG && worse == bad && ct_graph_result(s.g, worse) == bad);
  assert_string_equal(ct_graph_error(s.g), "node n (scale): attribute factor is NaN");
  const struct ct_optimise how = {.schedule = {.rate = 1}, .momentum = 0.5, .weight_decay = 7};
  assert_int_equal(ct_graph_optimise(s.g, loss, &how), CT_ERR_ARG);
  assert_non_null(strstr(ct_graph_error(s.g), "(sgd): attribute decay is 7, it must be 0..1"));
  const struct ct_graph_info after = info_of(s.g);
  assert_true(before.nodes == after.nodes && before.tensors == after.tensors &&
              before.states == after.states);
  assert_int_equal(bed_info(&s.b, s.w).gradient, 0);
  assert_int_equal(bed_info(&s.b, s.w).becomes, 0);
  assert_int_equal(bed_info(&s.b, declared).elements, 0);
  assert_int_equal(NODE(&s, "relu", BED_IN(s.x), .outputs = &declared), declared);
  const struct ct_optimise good = {.schedule = {.rate = 1}, .momentum = 0.5};
  assert_int_equal(ct_graph_optimise(s.g, loss, &good), CT_OK);
  assert_int_equal(ct_graph_check(s.g), CT_OK);
  bed_free(&s.b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_refused_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
