/* SPDX-License-Identifier: Apache-2.0 */
/* The operators by name: ct_gop_relu and so on, by the files that have them. Those that end in
 * _grad are made by gradients. */
#ifndef CT_OP_H
#define CT_OP_H

#include "ct_graph_impl.h"

/* clang-format off */
#define CT_GOPS(X) \
  /* ct_op_unary.c: element by element */ \
  X(relu) X(relu_grad) X(leaky_relu) X(leaky_relu_grad) X(clip) X(clip_grad) X(sigmoid) \
  X(sigmoid_grad) X(tanh) X(tanh_grad) X(erf) X(erf_grad) X(gelu) X(gelu_grad) X(scale) \
  /* ct_op_binary.c: element by element, with broadcasting */ \
  X(add) X(sub) X(mul) X(div) X(sum_to) X(fill) \
  /* ct_op_conv.c */ \
  X(conv) X(conv_input_grad) X(conv_weight_grad) \
  /* ct_op_matmul.c */ \
  X(linear) X(matmul) \
  /* ct_op_pool.c */ \
  X(max_pool) X(max_pool_grad) X(average_pool) X(average_pool_grad) X(global_average_pool) \
  X(global_average_pool_grad) \
  /* ct_op_norm.c */ \
  X(batch_norm) X(batch_norm_train) X(batch_norm_grad) X(batch_norm_fold) X(layer_norm) \
  X(layer_norm_grad) \
  /* ct_op_loss.c */ \
  X(softmax) X(softmax_grad) X(cross_entropy) X(cross_entropy_grad) X(mse) \
  /* ct_op_shape.c */ \
  X(reshape) X(flatten) X(transpose) X(concat) X(slice) X(slice_grad) \
  /* ct_op_dropout.c */ \
  X(dropout) \
  /* ct_op_train.c: updates */ \
  X(rate) X(accumulate) X(clip_norm) X(sgd) X(adam)
/* clang-format on */

#define CT_GOP_DECLARE(name) extern const struct ct_gop ct_gop_##name;
CT_GOPS(CT_GOP_DECLARE)
#undef CT_GOP_DECLARE

#endif
