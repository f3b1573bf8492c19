/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows that go over an image, of convolutions and pooling: output (oy, ox) sees, for tap (ky,
 * kx), pixel oy * stride + ky * dilation - pad. Attributes come first in their operators' lists, in
 * this order.
 */
#ifndef CT_OP_WINDOW_H
#define CT_OP_WINDOW_H

#include "ct_graph_impl.h"

enum { CT_WINDOW_STRIDE, CT_WINDOW_DILATION, CT_WINDOW_PAD, CT_WINDOW_NEXT };
enum { CT_WINDOW_MOST = 4096 };
/* Padding: top, left, bottom, right. */
#define CT_WINDOW_RULES                                                                       \
  CT_WHOLE("stride", 2, 1, CT_WINDOW_MOST, 1), CT_WHOLE("dilation", 2, 1, CT_WINDOW_MOST, 1), \
      CT_WHOLE("pad", 4, 0, CT_WINDOW_MOST, 0)

/* Along height [0] and width [1]. */
struct ct_window {
  int64_t in[2], kernel[2], out[2], stride[2], dilation[2], pad[2];
};

/* Of node n over an image x (NHWC); refused if it does not fit. */
int ct_window_make(ct_graph *g, const struct ct_gnode *n, const struct ct_shape *x,
                   const uint32_t kernel[2], struct ct_window *w);
/* The same for a node whose shapes were inferred. */
struct ct_window ct_window_of(const struct ct_gnode *n, const struct ct_shape *x,
                              const uint32_t kernel[2]);

/* The pixel along one axis, or -1 outside of the image. */
static inline int64_t ct_window_at(const struct ct_window *w, unsigned axis, int64_t out,
                                   int64_t tap) {
  const int64_t at = out * w->stride[axis] + tap * w->dilation[axis] - w->pad[axis];
  return at >= 0 && at < w->in[axis] ? at : -1;
}

#endif
