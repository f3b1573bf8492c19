/* SPDX-License-Identifier: Apache-2.0 */
/* See ct_op_window.h. */
#include "ct_op_window.h"

static int64_t span(const struct ct_window *w, unsigned axis) {
  return w->dilation[axis] * (w->kernel[axis] - 1) + 1;
}

/* What the image has with its padding. */
static int64_t padded(const struct ct_gnode *n, const struct ct_window *w, unsigned axis) {
  return w->in[axis] + w->pad[axis] + ct_attr_u32(n, CT_WINDOW_PAD, axis + 2);
}

struct ct_window ct_window_of(const struct ct_gnode *n, const struct ct_shape *x,
                              const uint32_t kernel[2]) {
  struct ct_window w;
  for (unsigned i = 0; i < 2; ++i) {
    w.in[i] = x->dim[1 + i];
    w.kernel[i] = kernel[i];
    w.stride[i] = ct_attr_u32(n, CT_WINDOW_STRIDE, i);
    w.dilation[i] = ct_attr_u32(n, CT_WINDOW_DILATION, i);
    w.pad[i] = ct_attr_u32(n, CT_WINDOW_PAD, i);
    w.out[i] =
        padded(n, &w, i) < span(&w, i) ? 0 : (padded(n, &w, i) - span(&w, i)) / w.stride[i] + 1;
  }
  return w;
}

int ct_window_make(ct_graph *g, const struct ct_gnode *n, const struct ct_shape *x,
                   const uint32_t kernel[2], struct ct_window *w) {
  if (x->dims != 4)
    return ct_refuse(g, n, "its image is %s, it must have 4 dimensions: NHWC", CT_SHAPE(x));
  if (kernel[0] > CT_WINDOW_MOST || kernel[1] > CT_WINDOW_MOST)
    return ct_refuse(g, n, "its window is %ux%u, it may be %d at most", kernel[0], kernel[1],
                     CT_WINDOW_MOST);
  *w = ct_window_of(n, x, kernel);
  for (unsigned i = 0; i < 2; ++i)
    if (!w->out[i])
      return ct_refuse(g, n, "a window of %lld does not fit %s %lld with its padding",
                       (long long)span(w, i), i ? "width" : "height", (long long)w->in[i]);
  return CT_OK;
}
