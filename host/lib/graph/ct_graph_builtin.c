/* SPDX-License-Identifier: Apache-2.0 */
/* Networks by name. Layers are functions from a tensor to a tensor; failures go through them. */
#include <stdio.h>
#include <string.h>

#include "ct_graph_impl.h"

struct net {
  ct_graph *g;
  bool training;
};

/* ---- Layers -------------------------------------------------------------------------------- */

static int tensor(const struct net *net, const char *name, const char *part, struct ct_shape shape,
                  enum ct_role role, enum ct_initial initial) {
  char full[80];
  snprintf(full, sizeof full, "%s%s", name, part);
  return ct_graph_tensor(
      net->g,
      &(struct ct_new_tensor){.name = full, .shape = shape, .role = role, .initial = initial});
}

static uint32_t channels(const struct net *net, int x) {
  return x > 0 ? net->g->tensor[x]->shape.dim[net->g->tensor[x]->shape.dims - 1] : 1;
}

/* An operator of one input. */
static int apply(const struct net *net, const char *op, const char *name, int x) {
  return ct_graph_add(
      net->g, &(struct ct_new_node){.op = op, .name = name, .inputs = &x, .input_count = 1});
}

static int linear(const struct net *net, const char *name, int x, uint32_t outputs) {
  const int w = tensor(net, name, ".weight", (struct ct_shape){2, {outputs, channels(net, x)}},
                       CT_ROLE_WEIGHT, CT_INITIAL_HE);
  const int b =
      tensor(net, name, ".bias", (struct ct_shape){1, {outputs}}, CT_ROLE_WEIGHT, CT_INITIAL_ZEROS);
  return ct_graph_add(
      net->g, &(struct ct_new_node){
                  .op = "linear", .name = name, .inputs = (int[]){x, w, b}, .input_count = 3});
}

struct conv {
  uint32_t outputs, kernel, stride, before, after; /* padding in front and behind, both ways */
  bool bias;
};

static int conv(const struct net *net, const char *name, int x, struct conv c) {
  const int w = tensor(net, name, ".weight",
                       (struct ct_shape){4, {c.outputs, c.kernel, c.kernel, channels(net, x)}},
                       CT_ROLE_WEIGHT, CT_INITIAL_HE);
  const int b = c.bias ? tensor(net, name, ".bias", (struct ct_shape){1, {c.outputs}},
                                CT_ROLE_WEIGHT, CT_INITIAL_ZEROS)
                       : 0;
  const struct ct_attr attrs[] = {{"stride", 2, {c.stride, c.stride}},
                                  {"pad", 4, {c.before, c.before, c.after, c.after}}};
  return ct_graph_add(net->g, &(struct ct_new_node){.op = "conv",
                                                    .name = name,
                                                    .inputs = (int[]){x, w, b},
                                                    .input_count = 3,
                                                    .attrs = attrs,
                                                    .attr_count = 2});
}

static int norm(const struct net *net, const char *name, int x) {
  static const char *const part[] = {".scale", ".shift", ".mean", ".variance"};
  int in[5] = {x};
  for (unsigned i = 0; i < 4; ++i)
    in[1 + i] =
        tensor(net, name, part[i], (struct ct_shape){1, {channels(net, x)}},
               i < 2 ? CT_ROLE_WEIGHT : CT_ROLE_STATE, i % 3 ? CT_INITIAL_ZEROS : CT_INITIAL_ONES);
  const int y = ct_graph_add(
      net->g, &(struct ct_new_node){.op = net->training ? "batch_norm_train" : "batch_norm",
                                    .name = name,
                                    .inputs = in,
                                    .input_count = 5});
  for (int i = 0; i < 2 && net->training && y > 0; ++i)
    ct_graph_becomes(net->g, in[3 + i], y + 1 + i);
  return y;
}

static int pool(const struct net *net, const char *op, const char *name, int x) {
  const struct ct_attr attrs[] = {{"kernel", 2, {2, 2}}, {"stride", 2, {2, 2}}};
  return ct_graph_add(
      net->g,
      &(struct ct_new_node){
          .op = op, .name = name, .inputs = &x, .input_count = 1, .attrs = attrs, .attr_count = 2});
}

/* The last layer, and the loss in training. */
static int finish(const struct net *net, int x, uint32_t classes) {
  ct_graph *g = net->g;
  const int z = ct_graph_result(g, linear(net, "logits", x, classes));
  if (z < 0 || !net->training) return z;
  const int y = tensor(net, "y", "", g->tensor[z]->shape, CT_ROLE_LABEL, CT_INITIAL_ZEROS);
  return ct_graph_result(g, ct_graph_add(g, &(struct ct_new_node){.op = "cross_entropy",
                                                                  .name = "loss",
                                                                  .inputs = (int[]){z, y},
                                                                  .input_count = 2}));
}

static int input(const struct net *net, struct ct_shape shape) {
  return tensor(net, "x", "", shape, CT_ROLE_INPUT, CT_INITIAL_ZEROS);
}

/* ---- LeNet-5 (LeCun, Bottou, Bengio, Haffner 1998), with ReLU and the largest of windows ---- */

static int lenet5(const struct net *net, uint32_t batch) {
  int x = input(net, (struct ct_shape){4, {batch, 28, 28, 1}});
  x = conv(net, "conv1", x, (struct conv){6, 5, 1, 2, 2, true});
  x = pool(net, "max_pool", "pool1", apply(net, "relu", "relu1", x));
  x = conv(net, "conv2", x, (struct conv){16, 5, 1, 0, 0, true});
  x = pool(net, "max_pool", "pool2", apply(net, "relu", "relu2", x));
  x = linear(net, "fc1", apply(net, "flatten", "flatten", x), 120);
  x = linear(net, "fc2", apply(net, "relu", "relu3", x), 84);
  return finish(net, apply(net, "relu", "relu4", x), 10);
}

/* ---- In the manner of VGG (Simonyan, Zisserman 2014), small, with means of windows --------- */

static int vgg(const struct net *net, uint32_t batch) {
  int x = input(net, (struct ct_shape){4, {batch, 32, 32, 3}});
  for (uint32_t stage = 0; stage < 3; ++stage) {
    char name[16];
    for (uint32_t i = 0; i < 2; ++i) {
      snprintf(name, sizeof name, "conv%u.%u", stage + 1, i + 1);
      x = conv(net, name, x, (struct conv){16u << stage, 3, 1, 1, 1, true});
      snprintf(name, sizeof name, "relu%u.%u", stage + 1, i + 1);
      x = apply(net, "relu", name, x);
    }
    snprintf(name, sizeof name, "pool%u", stage + 1);
    x = pool(net, "average_pool", name, x);
  }
  return finish(net, apply(net, "flatten", "flatten", x), 10);
}

/* ---- Residual networks --------------------------------------------------------------------- */

/* How two of them differ: MLPerf Tiny's pads images of stride 2 behind only, its convolutions have
 * a bias, its shortcuts no normalisation. */
struct style {
  bool tiny;
  uint32_t blocks; /* of a stage */
};

static struct conv style_conv(const struct style *s, uint32_t outputs, uint32_t kernel,
                              uint32_t stride) {
  const bool padded = kernel == 3;
  return (struct conv){outputs, kernel, stride, padded && !(s->tiny && stride == 2),
                       padded,  s->tiny};
}

static const char *name_of(char name[48], const char *block, const char *part) {
  snprintf(name, 48, "%s.%s", block, part);
  return name;
}

static int block(const struct net *net, const struct style *s, const char *name, int x,
                 uint32_t outputs, uint32_t stride) {
  char n[48];
  int y = conv(net, name_of(n, name, "conv1"), x, style_conv(s, outputs, 3, stride));
  y = norm(net, name_of(n, name, "norm1"), y);
  y = apply(net, "relu", name_of(n, name, "relu1"), y);
  y = conv(net, name_of(n, name, "conv2"), y, style_conv(s, outputs, 3, 1));
  y = norm(net, name_of(n, name, "norm2"), y);
  if (channels(net, x) != outputs) {
    x = conv(net, name_of(n, name, "shortcut"), x, style_conv(s, outputs, 1, stride));
    if (!s->tiny) x = norm(net, name_of(n, name, "norm3"), x);
  }
  y = ct_graph_add(
      net->g,
      &(struct ct_new_node){
          .op = "add", .name = name_of(n, name, "add"), .inputs = (int[]){y, x}, .input_count = 2});
  return apply(net, "relu", name_of(n, name, "relu2"), y);
}

static int resnet(const struct net *net, const struct style *s, uint32_t batch) {
  int x = input(net, (struct ct_shape){4, {batch, 32, 32, 3}});
  x = norm(net, "norm", conv(net, "conv", x, style_conv(s, 16, 3, 1)));
  x = apply(net, "relu", "relu", x);
  for (uint32_t stage = 0; stage < 3; ++stage)
    for (uint32_t i = 0; i < s->blocks; ++i) {
      char name[32];
      snprintf(name, sizeof name, "block%u.%u", stage + 1, i + 1);
      x = block(net, s, name, x, 16u << stage, stage && !i ? 2 : 1);
    }
  x = apply(net, "global_average_pool", "pool", x);
  return finish(net, apply(net, "flatten", "flatten", x), 10);
}

/* ---- By name ------------------------------------------------------------------------------- */

/* Refuses a graph that is not empty. */
static int begin(ct_graph *g) {
  const int err = ct_graph_open(g);
  if (err || (!g->tensors && !g->nodes)) return err;
  return ct_graph_fail(g, CT_ERR_ARG, "the graph is not empty: a network by name needs a new one");
}

static int end(ct_graph *g, int made) {
  if (made > 0) return CT_OK;
  ct_graph_rollback(g, (struct ct_mark){0, 0});
  return made;
}

int ct_graph_builtin(ct_graph *g, const char *name, uint32_t batch, bool training) {
  const struct net net = {g, training};
  const int err = begin(g);
  if (err) return err;
  if (name && !strcmp(name, "lenet5")) return end(g, lenet5(&net, batch));
  if (name && !strcmp(name, "resnet8"))
    return end(g, resnet(&net, &(struct style){true, 1}, batch));
  if (name && !strcmp(name, "resnet20"))
    return end(g, resnet(&net, &(struct style){false, 3}, batch));
  if (name && !strcmp(name, "vgg")) return end(g, vgg(&net, batch));
  return ct_graph_fail(g, CT_ERR_NOT_FOUND,
                       "there is no network %.80s: lenet5, resnet8, resnet20 or vgg",
                       name ? name : "NULL");
}

int ct_graph_mlp(ct_graph *g, const uint32_t *widths, size_t layers, uint32_t batch,
                 bool training) {
  const struct net net = {g, training};
  const int err = begin(g);
  if (err) return err;
  if (!widths || layers < 1 || layers > CT_MAX_LAYERS)
    return ct_graph_fail(g, CT_ERR_ARG, "a perceptron has 1..%d layers, not %zu", CT_MAX_LAYERS,
                         widths ? layers : 0);
  int x = input(&net, (struct ct_shape){2, {batch, widths[0]}});
  for (size_t l = 1; l < layers; ++l) {
    char fc[16], relu[16];
    snprintf(fc, sizeof fc, "fc%zu", l);
    snprintf(relu, sizeof relu, "relu%zu", l);
    x = apply(&net, "relu", relu, linear(&net, fc, x, widths[l]));
  }
  return end(g, finish(&net, x, widths[layers]));
}
